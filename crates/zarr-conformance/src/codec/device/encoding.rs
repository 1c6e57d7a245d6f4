use zarr_buffer_api::{Layout, Region};
use zarr_codec_api::{CodecError, DeviceSlot, Direction, EncodeSlot, Placement, Registry, Scratch, Segment, Source, Stage};

use super::bound::Bound;
use super::runner::{CANARY, Runner, laid_out};
use super::{DeviceCodecCase, DeviceCodecSubject, case};
use crate::suite::{Broken, Trial, ensure, ensure_same};

/// They hold where the provider takes the first stages of the chain for encoding; where it takes none, there is nothing to hold.
pub(super) fn cases() -> Vec<DeviceCodecCase> {
    vec![
        case("encode", "what the device encodes is what the reference encodes, in batches of any number and order", encode),
        case("encode/scatter", "a chunk encodes to the same from a strided source", scatter),
        case("encode/unaligned", "sources and room for encoded bytes lie at any alignment, and nothing beside the room changes", unaligned),
        case("encode/other-size", "room of another size than the encoded chunk's is refused, and nothing is written", other_size),
    ]
}

/// The first stages, as the device encodes them, and chunks for them.
struct Encoder {
    runner: Runner,
    /// Decoded, and encoded by the reference.
    chunks: Vec<(Vec<u8>, Vec<u8>)>,
    /// Bytes of an encoded chunk.
    room: usize,
}

impl Encoder {
    /// `None` if the device does not encode.
    fn of(subject: &dyn DeviceCodecSubject) -> Result<Option<Self>, Broken> {
        let stages = subject.reference().stages();
        let Some(bound) = subject.provider().bind(stages, Direction::Encode)? else {
            return Ok(None);
        };
        ensure!((1..=stages.len()).contains(&bound.consumed), "the provider took {} of {} stages to encode", bound.consumed, stages.len());
        let Segment::Device(segment) = bound.segment else {
            return Err(Broken::Failed("a segment on the host, from a provider that was to be checked on a device".into()));
        };
        let stages = &stages[..bound.consumed];
        let exact = stages.last().map(|stage| stage.encoded.byte_len()).transpose()?.flatten().and_then(|len| len.exact());
        let room = exact.ok_or_else(|| Broken::Failed("takes stages to encode whose encoded size is not known before".into()))? as usize;
        let decoder = Bound::of(subject)?;
        let mut chunks = Vec::new();
        for (_, decoded) in &decoder.chunks {
            chunks.push((decoded.clone(), encode_on_host(subject.host(), stages, decoded)?));
        }
        Ok(Some(Self { runner: Runner { segment, ..decoder.runner }, chunks, room }))
    }

    /// Encodes chunks one behind the other, `gap` bytes before each, `skew` bytes before each source. Gives statuses and all bytes.
    fn encode(&self, order: &[usize], gap: usize, skew: usize) -> Result<(Vec<bool>, Vec<u8>), Broken> {
        let runner = &self.runner;
        let queue = runner.device.create_queue()?;
        let pitch = self.room + gap;
        let output = runner.upload(&*queue, &vec![CANARY; order.len() * pitch + gap])?;
        let mut slots = Vec::new();
        for (slot, &index) in order.iter().enumerate() {
            let source = runner.upload(&*queue, &[&vec![0xFF; skew], self.chunks[index].0.as_slice()].concat())?;
            let start = slot * pitch + gap;
            let decoded = Region::new(source, runner.contiguous(skew)?)?;
            slots.push(DeviceSlot { encoded: output.slice(start..start + self.room)?, decoded });
        }
        let ticket = runner.segment.encode(&slots, &runner.context(&*queue, slots.len()))?;
        drop(slots);
        let statuses: Vec<bool> = ticket.wait()?.iter().map(Result::is_ok).collect();
        ensure!(statuses.len() == order.len(), "{} statuses for {} slots", statuses.len(), order.len());
        Ok((statuses, runner.download(&*queue, &output)?))
    }
}

/// What the host's codecs make of a chunk, stage by stage.
fn encode_on_host(host: &Registry, stages: &[Stage], decoded: &[u8]) -> Result<Vec<u8>, Broken> {
    let (mut left, mut bytes) = (stages, decoded.to_vec());
    while !left.is_empty() {
        let mut on_host = host.providers().filter(|provider| provider.placement() == Placement::Host);
        let bound = on_host.find_map(|provider| provider.bind(left, Direction::Encode).transpose()).transpose()?;
        let bound = bound.ok_or_else(|| Broken::Failed("the reference does not encode what the device encodes".into()))?;
        let Segment::Host(segment) = bound.segment else {
            return Err(Broken::Failed("a segment on a device, from the reference".into()));
        };
        let mut encoded = Vec::new();
        let mut slots = [EncodeSlot { decoded: Source::Bytes(&bytes), encoded: &mut encoded, status: Ok(()) }];
        segment.encode(&mut slots, &mut Scratch::new());
        let [slot] = slots;
        slot.status?;
        bytes = encoded;
        left = left.get(bound.consumed.max(1)..).unwrap_or_default();
    }
    Ok(bytes)
}

fn encode(subject: &dyn DeviceCodecSubject, _: &Trial) -> Result<(), Broken> {
    let Some(encoder) = Encoder::of(subject)? else { return Ok(()) };
    let count = encoder.chunks.len();
    let many = (0..subject.many().max(3)).map(|index| index * 3 % count).collect();
    for order in [vec![], vec![0], vec![count - 1, 0], (0..count).rev().collect(), many] {
        let (statuses, output) = encoder.encode(&order, 0, 0)?;
        ensure!(statuses.iter().all(|&good| good), "a chunk was not encoded: {statuses:?}");
        let expected: Vec<u8> = order.iter().flat_map(|&index| encoder.chunks[index].1.clone()).collect();
        ensure_same(&format!("encoded bytes of a batch of {}", order.len()), &output, &expected)?;
    }
    Ok(())
}

fn scatter(subject: &dyn DeviceCodecSubject, _: &Trial) -> Result<(), Broken> {
    let Some(encoder) = Encoder::of(subject)? else { return Ok(()) };
    let runner = &encoder.runner;
    if !runner.segment.scatters() {
        return Ok(());
    }
    let queue = runner.device.create_queue()?;
    let (layout, room) = runner.strided();
    for (decoded, encoded) in &encoder.chunks {
        let source = runner.upload(&*queue, &laid_out(&layout, decoded, room))?;
        let output = runner.upload(&*queue, &vec![CANARY; encoder.room])?;
        let slot = DeviceSlot { encoded: output.clone(), decoded: Region::new(source, layout.clone())? };
        runner.segment.encode(&[slot], &runner.context(&*queue, 1))?.wait()?.into_iter().collect::<Result<(), CodecError>>()?;
        ensure_same("encoded bytes of a strided source", &runner.download(&*queue, &output)?, encoded)?;
    }
    Ok(())
}

fn unaligned(subject: &dyn DeviceCodecSubject, _: &Trial) -> Result<(), Broken> {
    let Some(encoder) = Encoder::of(subject)? else { return Ok(()) };
    let order: Vec<usize> = (0..encoder.chunks.len()).collect();
    for skew in [1, 2, 3, 5, 8] {
        let (statuses, output) = encoder.encode(&order, skew, skew)?;
        ensure!(statuses.iter().all(|&good| good), "an unaligned chunk was not encoded: {statuses:?}");
        let gap = vec![CANARY; skew];
        let mut expected: Vec<u8> = encoder.chunks.iter().flat_map(|(_, encoded)| [gap.as_slice(), encoded].concat()).collect();
        expected.extend(&gap);
        ensure_same(&format!("encoded bytes of chunks {skew} bytes off"), &output, &expected)?;
    }
    Ok(())
}

fn other_size(subject: &dyn DeviceCodecSubject, _: &Trial) -> Result<(), Broken> {
    let Some(encoder) = Encoder::of(subject)? else { return Ok(()) };
    let runner = &encoder.runner;
    let queue = runner.device.create_queue()?;
    for (decoded, _) in &encoder.chunks {
        for room in [encoder.room + 1, encoder.room.saturating_sub(1)].into_iter().filter(|&room| room != encoder.room) {
            let source = runner.upload(&*queue, decoded)?;
            let output = runner.upload(&*queue, &vec![CANARY; room])?;
            let slot =
                DeviceSlot { encoded: output.clone(), decoded: Region::new(source, Layout::contiguous(&runner.shape, runner.item_size)?)? };
            let accepted = match runner.segment.encode(&[slot], &runner.context(&*queue, 1)) {
                Ok(ticket) => ticket.wait()?.iter().all(Result::is_ok),
                Err(_) => false,
            };
            ensure!(!accepted, "a chunk of {} encoded bytes is accepted with room for {room}", encoder.room);
            ensure_same("room of another size", &runner.download(&*queue, &output)?, &vec![CANARY; room])?;
        }
    }
    Ok(())
}

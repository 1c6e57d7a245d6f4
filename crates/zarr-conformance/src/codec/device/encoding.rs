use std::ops::Range;
use std::sync::atomic::Ordering;

use zarr_buffer_api::{Buffer, Layout, Queue, Region};
use zarr_codec_api::{
    Chain, CodecError, CodecErrorKind, DeviceContext, Direction, EncodeSlot, Encoded, Placement, Policy, Registry, Scratch, Segment,
    Source, Stage, Target,
};

use super::bound::Bound;
use super::memory::Metered;
use super::runner::{Runner, laid_out};
use super::{DeviceCodecCase, DeviceCodecSubject, case};
use crate::suite::{Broken, Trial, ensure, ensure_same};

/// They hold where the provider takes the first stages of the chain for encoding; where it takes none, there is nothing to hold.
pub(super) fn cases() -> Vec<DeviceCodecCase> {
    vec![
        case(
            "encode",
            "chunks encode to what the reference makes of them, or decodes alike, one behind the other, in batches of any number and order",
            encode,
        ),
        case("encode/same", "a chunk encodes to the same bytes each time, alone and beside any others", same),
        case("encode/scatter", "of a strided source its elements are encoded, and nothing beside them", scatter),
        case("encode/unaligned", "sources lie at any alignment", unaligned),
        case("encode/ordered", "elements come by another queue, which may overwrite them right after the call", ordered),
        case("encode/other-size", "a source of another size than the chunk's is refused", other_size),
        case(
            "encode/scratch",
            "a batch takes no more memory than was declared, whatever that holds beforehand, and one over budget is refused as a limit",
            scratch,
        ),
    ]
}

/// The first stages, as the device encodes them, and chunks for them.
struct Encoder {
    runner: Runner,
    /// Decoded, and encoded by the reference.
    chunks: Vec<(Vec<u8>, Vec<u8>)>,
    /// The stages on the host, where encoders may make different bytes of a chunk. `None` where all make the same.
    decoder: Option<Chain>,
    /// The most bytes of an encoded chunk.
    most: u64,
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
        let len = stages.last().map(|stage| stage.encoded.byte_len()).transpose()?.flatten();
        let len = len.ok_or_else(|| Broken::Failed("takes stages to encode whose encoded size is not bounded".into()))?;
        let decoder = match len.exact() {
            Some(_) => None,
            None => {
                let codecs: Vec<_> = stages.iter().map(|stage| stage.codec.clone()).collect();
                Some(Chain::bind(&codecs, subject.reference().representation().clone(), subject.host(), &Policy::Host)?)
            }
        };
        let bound = Bound::of(subject)?;
        let mut chunks = Vec::new();
        for (_, decoded) in &bound.chunks {
            chunks.push((decoded.clone(), encode_on_host(subject.host(), stages, decoded)?));
        }
        Ok(Some(Self { runner: Runner { segment, ..bound.runner }, chunks, decoder, most: len.upper() }))
    }

    /// Encodes chunks from sources of their own, `skew` bytes before each.
    fn encode(&self, order: &[usize], skew: usize) -> Result<Vec<Vec<u8>>, Broken> {
        let queue = self.runner.device.create_queue()?;
        self.encode_in(&self.runner.context(&*queue, order.len()), order, skew)
    }

    /// The same in a context.
    fn encode_in(&self, context: &DeviceContext<'_>, order: &[usize], skew: usize) -> Result<Vec<Vec<u8>>, Broken> {
        let runner = &self.runner;
        let mut sources = Vec::with_capacity(order.len());
        for &index in order {
            let source = runner.upload(context.queue, &[&vec![0xFF; skew], self.chunks[index].0.as_slice()].concat())?;
            sources.push(Region::new(source, runner.contiguous(skew)?)?);
        }
        let encoded = runner.segment.encode(&sources, context)?;
        // The work holds on to what it needs.
        drop(sources);
        self.taken_apart(context.queue, encoded, order.len())
    }

    /// The chunks of a batch, all of which are good.
    fn taken_apart(&self, queue: &dyn Queue, encoded: Encoded, count: usize) -> Result<Vec<Vec<u8>>, Broken> {
        let Encoded { bytes, ticket } = encoded;
        let ranges = ticket.wait()?;
        ensure!(ranges.len() == count, "{} statuses for {count} chunks", ranges.len());
        let ranges = ranges.into_iter().collect::<Result<Vec<_>, CodecError>>()?;
        let mut end = 0;
        for Range { start, end: next } in &ranges {
            ensure!(*start == end && next >= start, "chunks of the batch lie at {ranges:?}, not one behind the other");
            end = *next;
        }
        ensure!(end <= bytes.len(), "chunks of the batch lie up to byte {end} of {}", bytes.len());
        // What lies behind them was perhaps never written.
        let found = self.runner.download(queue, &bytes.slice(0..end)?)?;
        Ok(ranges.into_iter().map(|range| found[range].to_vec()).collect())
    }

    /// Holds encoded bytes of a batch against what they are to be.
    fn check(&self, what: &str, order: &[usize], found: &[Vec<u8>]) -> Result<(), Broken> {
        for (&index, found) in order.iter().zip(found) {
            ensure!(found.len() as u64 <= self.most, "{what}: a chunk of {} encoded bytes, {} are the most", found.len(), self.most);
            let (decoded, expected) = &self.chunks[index];
            match &self.decoder {
                None => ensure_same(what, found, expected)?,
                Some(chain) => {
                    let decode = |encoded: &[u8]| {
                        let mut bytes = vec![0; decoded.len()];
                        chain.decode(encoded, Target::Exact(&mut bytes), &mut Scratch::new()).map(|_| bytes)
                    };
                    let bytes =
                        decode(found).map_err(|error| Broken::Failed(format!("{what}: the reference does not decode it: {error}")))?;
                    // Of lossy codecs, what the reference keeps.
                    ensure_same(&format!("{what}, decoded"), &bytes, &decode(expected)?)?;
                }
            }
        }
        Ok(())
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
    for order in [vec![], vec![0], vec![count - 1, 0], (0..count).rev().collect(), vec![count - 1; 3], many] {
        let found = encoder.encode(&order, 0)?;
        encoder.check(&format!("a chunk of a batch of {}", order.len()), &order, &found)?;
    }
    Ok(())
}

fn same(subject: &dyn DeviceCodecSubject, _: &Trial) -> Result<(), Broken> {
    let Some(encoder) = Encoder::of(subject)? else { return Ok(()) };
    let count = encoder.chunks.len();
    let mut alone = Vec::with_capacity(count);
    for index in 0..count {
        alone.extend(encoder.encode(&[index], 0)?);
    }
    // Once more alone, and each before, between and behind others and itself.
    let mut orders: Vec<Vec<usize>> = (0..count).map(|index| vec![index]).collect();
    orders.extend((0..count).map(|first| (0..count).map(|index| (first + index) % count).collect()));
    orders.extend([(0..count).rev().collect(), (0..3 * count).map(|index| index / 3).collect()]);
    for order in orders {
        let found = encoder.encode(&order, 0)?;
        for (place, (&index, found)) in order.iter().zip(&found).enumerate() {
            ensure_same(&format!("chunk {index}, once more as chunk {place} of {}", order.len()), found, &alone[index])?;
        }
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
    for (index, (decoded, _)) in encoder.chunks.iter().enumerate() {
        let source = Region::new(runner.upload(&*queue, &laid_out(&layout, decoded, room))?, layout.clone())?;
        let encoded = runner.segment.encode(&[source], &runner.context(&*queue, 1))?;
        encoder.check("a chunk of a strided source", &[index], &encoder.taken_apart(&*queue, encoded, 1)?)?;
    }
    Ok(())
}

fn unaligned(subject: &dyn DeviceCodecSubject, _: &Trial) -> Result<(), Broken> {
    let Some(encoder) = Encoder::of(subject)? else { return Ok(()) };
    let order: Vec<usize> = (0..encoder.chunks.len()).collect();
    for skew in [1, 2, 3, 5, 8] {
        encoder.check(&format!("a chunk {skew} bytes off"), &order, &encoder.encode(&order, skew)?)?;
    }
    Ok(())
}

fn ordered(subject: &dyn DeviceCodecSubject, _: &Trial) -> Result<(), Broken> {
    let Some(encoder) = Encoder::of(subject)? else { return Ok(()) };
    let runner = &encoder.runner;
    let (first, second) = (runner.device.create_queue()?, runner.device.create_queue()?);
    for (index, (decoded, _)) in encoder.chunks.iter().enumerate() {
        let source = runner.upload(&*second, decoded)?;
        let chunk = Region::new(source.clone(), runner.contiguous(0)?)?;
        let encoded = runner.segment.encode(&[chunk], &runner.context(&*first, 1))?;
        let whole = Layout::contiguous(&[source.len()], 1)?;
        second.fill_region(&Region::new(source, whole)?, &[0xEE])?;
        encoder.check("a chunk encoded beside another queue", &[index], &encoder.taken_apart(&*second, encoded, 1)?)?;
    }
    Ok(())
}

fn other_size(subject: &dyn DeviceCodecSubject, _: &Trial) -> Result<(), Broken> {
    let Some(encoder) = Encoder::of(subject)? else { return Ok(()) };
    let runner = &encoder.runner;
    let queue = runner.device.create_queue()?;
    let elements = runner.shape.iter().product::<usize>();
    let upload = |len: usize| -> Result<Buffer, Broken> {
        let bytes: Vec<u8> = encoder.chunks[0].0.iter().copied().chain([0; 64]).cycle().take(len).collect();
        runner.upload(&*queue, &bytes)
    };
    for other in [elements.checked_sub(1), Some(elements + 1)].into_iter().flatten() {
        let source = Region::new(upload(other * runner.item_size)?, Layout::contiguous(&[other], runner.item_size)?)?;
        let accepted = match runner.segment.encode(&[source], &runner.context(&*queue, 1)) {
            Ok(encoded) => encoded.ticket.wait()?.iter().all(Result::is_ok),
            Err(_) => false,
        };
        ensure!(!accepted, "a chunk of {elements} elements is encoded from {other}");
    }
    Ok(())
}

fn scratch(subject: &dyn DeviceCodecSubject, _: &Trial) -> Result<(), Broken> {
    let Some(encoder) = Encoder::of(subject)? else { return Ok(()) };
    let runner = &encoder.runner;
    let queue = runner.device.create_queue()?;
    for count in [1, 3, subject.many()] {
        let order: Vec<usize> = (0..count).map(|index| index % encoder.chunks.len()).collect();
        let metered = Metered::new(&runner.device);
        let context = DeviceContext { device: &metered, ..runner.context(&*queue, count) };
        let found = encoder.encode_in(&context, &order, 0)?;
        encoder.check("a chunk encoded in used memory", &order, &found)?;
        let (taken, declared) = (metered.taken.load(Ordering::Relaxed), runner.segment.scratch_len(count));
        ensure!(taken <= declared, "a batch of {count} took {taken} bytes of memory, declared are {declared}");
    }
    let needed = runner.segment.scratch_len(1);
    if needed > 0 {
        let source = Region::new(runner.upload(&*queue, &encoder.chunks[0].0)?, runner.contiguous(0)?)?;
        let context = DeviceContext { scratch_budget: 0, ..runner.context(&*queue, 1) };
        match runner.segment.encode(&[source], &context) {
            Err(error) if error.kind() == CodecErrorKind::Limit => {}
            Err(error) => return Err(Broken::Failed(format!("refused as {:?} ({error}), expected Limit", error.kind()))),
            Ok(_) => return Err(Broken::Failed(format!("took {needed} bytes of memory on a budget of 0"))),
        }
    }
    Ok(())
}

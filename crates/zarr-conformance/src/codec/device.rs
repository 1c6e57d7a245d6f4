//! The laws of codecs on a device, held against a reference on the host.

use std::sync::Arc;

use zarr_buffer_api::{Buffer, Device, Layout, Queue, Region};
use zarr_codec_api::{
    ArrayRepresentation, Chain, CodecError, CodecErrorKind, CodecProvider, DeviceContext, DeviceSegment, DeviceSlot, Direction, Placement,
    Policy, Registry, Representation, Scratch, Segment, Source, Target,
};
use zarr_meta::Extension;

use crate::samples::{Sample, samples};
use crate::suite::{Broken, Case, Report, Subject, Suite, Trial, ensure, ensure_same};

/// A codec chain on a device.
pub trait DeviceCodecSubject: Subject {
    /// The device.
    fn device(&self) -> &dyn Device;

    /// The implementation on the device. It takes the whole chain as one segment.
    fn provider(&self) -> &dyn CodecProvider;

    /// The same chain, on the host.
    fn reference(&self) -> &Chain;
}

/// A chain as it comes, with what it does not support.
#[derive(Debug, Clone)]
pub struct DeviceCodecUnderTest {
    device: Arc<dyn Device>,
    provider: Arc<dyn CodecProvider>,
    reference: Chain,
    unsupported: Vec<String>,
}

impl DeviceCodecUnderTest {
    /// The chain `codecs` over chunks of `decoded`, of fixed size, by `provider` on `device`; `reference` has the same codecs on the host.
    ///
    /// # Errors
    /// When the reference does not take the chain.
    pub fn new(
        device: Arc<dyn Device>,
        provider: Arc<dyn CodecProvider>,
        reference: &Registry,
        codecs: &[Extension],
        decoded: ArrayRepresentation,
    ) -> Result<Self, CodecError> {
        let reference = Chain::bind(codecs, decoded, reference, &Policy::Host)?;
        Ok(Self { device, provider, reference, unsupported: Vec::new() })
    }

    /// Declares that cases whose ids begin with `start` are not supported.
    #[must_use]
    pub fn without(mut self, start: impl Into<String>) -> Self {
        self.unsupported.push(start.into());
        self
    }
}

impl Subject for DeviceCodecUnderTest {
    fn name(&self) -> String {
        let names: Vec<&str> = self.reference.stages().iter().map(|stage| stage.codec.name.as_str()).collect();
        format!("{} on {} by {}", names.join(", "), self.device.id(), self.provider.name())
    }

    fn unsupported(&self) -> &[String] {
        &self.unsupported
    }
}

impl DeviceCodecSubject for DeviceCodecUnderTest {
    fn device(&self) -> &dyn Device {
        &*self.device
    }

    fn provider(&self) -> &dyn CodecProvider {
        &*self.provider
    }

    fn reference(&self) -> &Chain {
        &self.reference
    }
}

impl From<DeviceCodecUnderTest> for Suite {
    fn from(subject: DeviceCodecUnderTest) -> Self {
        Self::new(Arc::new(subject) as Arc<dyn DeviceCodecSubject>, cases())
    }
}

/// All cases for codecs on a device.
pub fn cases() -> Vec<Case<dyn DeviceCodecSubject>> {
    vec![
        case("binds", "the provider takes the chain, and says where it runs", binds),
        case("decode", "chunks decode to what the reference encoded, in batches of any number and order", decode),
        case("scatter", "a strided destination gets its elements, and nothing beside them changes", scatter),
        case("unaligned", "encoded bytes and destinations lie at any alignment", unaligned),
        case("bad-slot-alone", "a bad chunk fails its own slot and leaves zeros there; the others are decoded", bad_slot_alone),
        case("verdicts", "what the reference accepts and rejects, so does the device, with the same bytes", verdicts),
        case(
            "scratch-budget",
            "a batch whose temporary memory is over budget is refused as a limit, and nothing is written",
            scratch_budget,
        ),
        case("ordered", "another queue sees the decoded bytes without the host waiting, and inputs may go meanwhile", ordered),
        case("two-queues", "batches on several queues at a time do not disturb each other", two_queues),
    ]
}

/// Runs all cases on a chain.
pub fn check(subject: &(dyn DeviceCodecSubject + 'static)) -> Report {
    Report::of(subject, &cases())
}

type DeviceCodecCase = Case<dyn DeviceCodecSubject>;

fn case(id: &str, says: &'static str, check: fn(&dyn DeviceCodecSubject, &Trial) -> Result<(), Broken>) -> DeviceCodecCase {
    Case::new(format!("device-codec/{id}"), says, move |subject: &(dyn DeviceCodecSubject + 'static), trial| check(subject, trial))
}

/// A subject's segment, and chunks for it.
struct Bound<'a> {
    device: &'a dyn Device,
    chain: &'a Chain,
    segment: Arc<dyn DeviceSegment>,
    /// Encoded and decoded.
    chunks: Vec<(Vec<u8>, Vec<u8>)>,
    /// Bytes of a decoded chunk.
    len: usize,
    item_size: usize,
}

impl<'a> Bound<'a> {
    fn of(subject: &'a dyn DeviceCodecSubject) -> Result<Self, Broken> {
        let chain = subject.reference();
        let array = chain.representation();
        let segment = bind(subject)?;
        let mut chunks = Vec::new();
        for sample in samples(&Representation::Array(array.clone()))? {
            let Sample::Bytes(bytes) = sample else {
                return Err(Broken::Unsupported("elements of variable length".into()));
            };
            let mut encoded = Vec::new();
            chain.encode(Source::Bytes(&bytes), &mut encoded, &mut Scratch::new())?;
            let mut decoded = vec![0; bytes.len()];
            chain.decode(&encoded, Target::Exact(&mut decoded), &mut Scratch::new())?;
            chunks.push((encoded, decoded));
        }
        let len = array.fixed_len("conformance")?;
        Ok(Self { device: subject.device(), chain, segment, chunks, len, item_size: array.data_type.fixed_size().unwrap_or(1) })
    }

    fn context<'q>(&self, queue: &'q dyn Queue, slots: usize) -> DeviceContext<'q>
    where
        'a: 'q,
    {
        DeviceContext { device: self.device, queue, scratch_budget: self.segment.scratch_len(slots) }
    }

    fn upload(&self, queue: &dyn Queue, bytes: &[u8]) -> Result<Buffer, Broken> {
        let staging = self.device.allocate_staging(bytes.len())?;
        staging.host_write()?.copy_from_slice(bytes);
        if self.device.is_unified() {
            return Ok(staging);
        }
        let buffer = self.device.allocate(bytes.len(), queue)?;
        queue.copy(&staging, &buffer)?;
        Ok(buffer)
    }

    fn download(&self, queue: &dyn Queue, buffer: &Buffer) -> Result<Vec<u8>, Broken> {
        let back = self.device.allocate_staging(buffer.len())?;
        queue.copy(buffer, &back)?;
        back.wait()?;
        let bytes = back.host_read()?.to_vec();
        Ok(bytes)
    }

    /// The shape of a chunk, in elements.
    fn shape(&self) -> Vec<usize> {
        self.chain.representation().shape.iter().map(|&len| len as usize).collect()
    }

    fn contiguous(&self, offset: usize) -> Result<Layout, Broken> {
        Ok(Layout { offset, ..Layout::contiguous(&self.shape(), self.item_size)? })
    }

    /// Decodes `chunks` one behind the other, `gap` bytes before each, `skew` bytes before each encoded chunk. Gives statuses and all bytes.
    fn decode(&self, queue: &dyn Queue, chunks: &[&[u8]], gap: usize, skew: usize) -> Result<(Vec<bool>, Vec<u8>), Broken> {
        let pitch = self.len + gap;
        let output = self.upload(queue, &vec![CANARY; chunks.len() * pitch + gap])?;
        let mut slots = Vec::new();
        for (index, chunk) in chunks.iter().enumerate() {
            let encoded = self.upload(queue, &[&vec![0xFF; skew], *chunk].concat())?;
            let encoded = encoded.slice(skew..skew + chunk.len())?;
            slots.push(DeviceSlot { encoded, decoded: Region::new(output.clone(), self.contiguous(index * pitch + gap)?)? });
        }
        let ticket = self.segment.decode(&slots, &self.context(queue, slots.len()))?;
        drop(slots);
        let statuses = ticket.wait()?;
        ensure!(statuses.len() == chunks.len(), "{} statuses for {} slots", statuses.len(), chunks.len());
        Ok((statuses.iter().map(Result::is_ok).collect(), self.download(queue, &output)?))
    }
}

const CANARY: u8 = 0x5C;

fn bind(subject: &dyn DeviceCodecSubject) -> Result<Arc<dyn DeviceSegment>, Broken> {
    let stages = subject.reference().stages();
    let bound = subject.provider().bind(stages, Direction::Decode)?;
    let bound = bound.ok_or_else(|| Broken::Unsupported("the provider does not take the chain".into()))?;
    ensure!(bound.consumed == stages.len(), "the provider took {} of {} stages", bound.consumed, stages.len());
    match bound.segment {
        Segment::Device(segment) => Ok(segment),
        Segment::Host(_) => Err(Broken::Failed("a segment on the host, from a provider that was to be checked on a device".into())),
    }
}

fn binds(subject: &dyn DeviceCodecSubject, _: &Trial) -> Result<(), Broken> {
    bind(subject)?;
    let placement = subject.provider().placement();
    ensure!(placement == Placement::Device(subject.device().id()), "placed on {placement}, the device is {}", subject.device().id());
    for stage in subject.reference().stages() {
        ensure!(subject.provider().codecs().contains(&stage.codec.name), "{} is not among its codecs", stage.codec.name);
    }
    let mut unknown = subject.reference().stages().to_vec();
    if let Some(last) = unknown.last_mut() {
        last.codec = Extension::new("example.nobody-knows-this");
    }
    ensure!(subject.provider().bind(&unknown, Direction::Decode)?.is_none(), "takes a codec that does not exist");
    Ok(())
}

fn decode(subject: &dyn DeviceCodecSubject, _: &Trial) -> Result<(), Broken> {
    let bound = Bound::of(subject)?;
    let queue = bound.device.create_queue()?;
    let count = bound.chunks.len();
    for order in [vec![], vec![0], vec![count - 1, 0], (0..count).rev().collect(), (0..5 * count).map(|index| index * 3 % count).collect()]
    {
        let chunks: Vec<&[u8]> = order.iter().map(|&index| bound.chunks[index].0.as_slice()).collect();
        let (statuses, output) = bound.decode(&*queue, &chunks, 0, 0)?;
        ensure!(statuses.iter().all(|&good| good), "a good chunk was refused: {statuses:?}");
        let expected: Vec<u8> = order.iter().flat_map(|&index| bound.chunks[index].1.clone()).collect();
        ensure_same(&format!("a batch of {}", order.len()), &output, &expected)?;
    }
    Ok(())
}

fn scatter(subject: &dyn DeviceCodecSubject, _: &Trial) -> Result<(), Broken> {
    let bound = Bound::of(subject)?;
    if !bound.segment.scatters() {
        return Ok(());
    }
    let queue = bound.device.create_queue()?;
    let shape = bound.shape();
    // The axes turned around, with a gap behind each, the first one backwards.
    let mut strides = vec![0isize; shape.len()];
    let (mut step, mut offset) = (bound.item_size as isize, 3);
    for (axis, (stride, &len)) in strides.iter_mut().zip(&shape).enumerate() {
        *stride = step;
        if axis == 0 && len > 0 {
            offset += step * (len as isize - 1);
            *stride = -step;
        }
        step *= len as isize + 1;
    }
    let layout = Layout { offset: offset as usize, shape: shape.clone(), strides, item_size: bound.item_size };
    let room = step as usize + 16;
    for (encoded, decoded) in &bound.chunks {
        let mut expected = vec![CANARY; room];
        let mut places = vec![layout.offset as isize];
        for (&len, &stride) in layout.shape.iter().zip(&layout.strides) {
            places = places.iter().flat_map(|&place| (0..len as isize).map(move |index| place + index * stride)).collect();
        }
        for (place, element) in places.into_iter().zip(decoded.chunks_exact(bound.item_size)) {
            expected[place as usize..place as usize + bound.item_size].copy_from_slice(element);
        }
        let output = bound.upload(&*queue, &vec![CANARY; room])?;
        let slot = DeviceSlot { encoded: bound.upload(&*queue, encoded)?, decoded: Region::new(output.clone(), layout.clone())? };
        let statuses = bound.segment.decode(&[slot], &bound.context(&*queue, 1))?.wait()?;
        statuses.into_iter().collect::<Result<(), _>>()?;
        ensure_same("a strided destination", &bound.download(&*queue, &output)?, &expected)?;
    }
    Ok(())
}

fn unaligned(subject: &dyn DeviceCodecSubject, _: &Trial) -> Result<(), Broken> {
    let bound = Bound::of(subject)?;
    let queue = bound.device.create_queue()?;
    for skew in [1, 2, 3, 5, 8] {
        let chunks: Vec<&[u8]> = bound.chunks.iter().map(|(encoded, _)| encoded.as_slice()).collect();
        let (statuses, output) = bound.decode(&*queue, &chunks, skew, skew)?;
        ensure!(statuses.iter().all(|&good| good), "an unaligned chunk was refused: {statuses:?}");
        let mut expected: Vec<u8> =
            bound.chunks.iter().flat_map(|(_, decoded)| [&vec![CANARY; skew], decoded.as_slice()].concat()).collect();
        expected.extend(vec![CANARY; skew]);
        ensure_same(&format!("chunks {skew} bytes off"), &output, &expected)?;
    }
    Ok(())
}

impl Bound<'_> {
    /// What the reference says of encoded bytes.
    fn verdict(&self, encoded: &[u8]) -> Option<Vec<u8>> {
        let mut decoded = vec![0; self.len];
        self.chain.decode(encoded, Target::Exact(&mut decoded), &mut Scratch::new()).is_ok().then_some(decoded)
    }

    /// Variants of the chunks that may be bad.
    fn variants(&self, trial: &Trial) -> Vec<Vec<u8>> {
        let mut random = trial.random(17);
        let mut variants = vec![Vec::new(), vec![0], vec![0xFF; 50]];
        for (encoded, _) in &self.chunks {
            for end in [1, 4, 8, encoded.len() / 2, encoded.len().saturating_sub(1)] {
                variants.push(encoded[..end.min(encoded.len())].to_vec());
            }
            variants.push([encoded.as_slice(), &[0]].concat());
            variants.push([encoded.as_slice(), encoded].concat());
            for _ in 0..40 {
                let mut bytes = encoded.clone();
                if !bytes.is_empty() {
                    let at = random.below(bytes.len());
                    bytes[at] ^= 1 << random.below(8);
                }
                variants.push(bytes);
            }
        }
        variants
    }
}

fn bad_slot_alone(subject: &dyn DeviceCodecSubject, trial: &Trial) -> Result<(), Broken> {
    let bound = Bound::of(subject)?;
    let queue = bound.device.create_queue()?;
    let Some(bad) = bound.variants(trial).into_iter().find(|variant| bound.verdict(variant).is_none()) else {
        return Ok(());
    };
    for position in 0..=bound.chunks.len() {
        let mut chunks: Vec<&[u8]> = bound.chunks.iter().map(|(encoded, _)| encoded.as_slice()).collect();
        chunks.insert(position, &bad);
        let (statuses, output) = bound.decode(&*queue, &chunks, 0, 0)?;
        let good: Vec<bool> = (0..chunks.len()).map(|slot| slot != position).collect();
        ensure!(statuses == good, "with a bad chunk in slot {position}, the slots are good: {statuses:?}");
        let mut decoded: Vec<&[u8]> = bound.chunks.iter().map(|(_, decoded)| decoded.as_slice()).collect();
        let zeros = vec![0; bound.len];
        decoded.insert(position, &zeros);
        ensure_same(&format!("a batch with a bad chunk in slot {position}"), &output, &decoded.concat())?;
    }
    Ok(())
}

fn verdicts(subject: &dyn DeviceCodecSubject, trial: &Trial) -> Result<(), Broken> {
    let bound = Bound::of(subject)?;
    let queue = bound.device.create_queue()?;
    let variants = bound.variants(trial);
    let (statuses, output) = bound.decode(&*queue, &variants.iter().map(Vec::as_slice).collect::<Vec<_>>(), 0, 0)?;
    for (index, (variant, good)) in variants.iter().zip(statuses).enumerate() {
        let expected = bound.verdict(variant);
        let head = &variant[..variant.len().min(64)];
        ensure!(expected.is_some() == good, "the reference accepts: {}, the device: {good}, of {head:02x?}", expected.is_some());
        let found = &output[index * bound.len..(index + 1) * bound.len];
        ensure_same(&format!("variant {index}"), found, &expected.unwrap_or(vec![0; bound.len]))?;
    }
    Ok(())
}

fn scratch_budget(subject: &dyn DeviceCodecSubject, _: &Trial) -> Result<(), Broken> {
    let bound = Bound::of(subject)?;
    let queue = bound.device.create_queue()?;
    let output = bound.upload(&*queue, &vec![CANARY; bound.len])?;
    let slot =
        DeviceSlot { encoded: bound.upload(&*queue, &bound.chunks[0].0)?, decoded: Region::new(output.clone(), bound.contiguous(0)?)? };
    let needed = bound.segment.scratch_len(1);
    ensure!(bound.segment.scratch_len(100) >= needed, "more slots need less temporary memory");
    if needed > 0 {
        // What it makes of less is its own affair; without any it cannot work.
        let context = DeviceContext { scratch_budget: 0, ..bound.context(&*queue, 1) };
        match bound.segment.decode(std::slice::from_ref(&slot), &context) {
            Err(error) if error.kind() == CodecErrorKind::Limit => {}
            Err(error) => return Err(Broken::Failed(format!("refused as {:?} ({error}), expected Limit", error.kind()))),
            Ok(_) => return Err(Broken::Failed(format!("took {needed} bytes of temporary memory on a budget of 0"))),
        }
        ensure_same("after a refused batch", &bound.download(&*queue, &output)?, &vec![CANARY; bound.len])?;
    }
    let statuses = bound.segment.decode(&[slot], &bound.context(&*queue, 1))?.wait()?;
    statuses.into_iter().collect::<Result<(), _>>()?;
    Ok(())
}

fn ordered(subject: &dyn DeviceCodecSubject, _: &Trial) -> Result<(), Broken> {
    let bound = Bound::of(subject)?;
    let (first, second) = (bound.device.create_queue()?, bound.device.create_queue()?);
    for (encoded, decoded) in &bound.chunks {
        let output = bound.device.allocate(bound.len, &*first)?;
        // The encoded bytes come by the second queue, and the decoded ones leave by it.
        let slot = DeviceSlot { encoded: bound.upload(&*second, encoded)?, decoded: Region::new(output.clone(), bound.contiguous(0)?)? };
        let ticket = bound.segment.decode(std::slice::from_ref(&slot), &bound.context(&*first, 1))?;
        let whole = Layout::contiguous(&[slot.encoded.len()], 1)?;
        second.fill_region(&Region::new(slot.encoded.clone(), whole)?, &[0xEE])?;
        drop(slot);
        ensure_same("decoded bytes, by another queue", &bound.download(&*second, &output)?, decoded)?;
        ticket.wait()?.into_iter().collect::<Result<(), _>>()?;
    }
    Ok(())
}

fn two_queues(subject: &dyn DeviceCodecSubject, _: &Trial) -> Result<(), Broken> {
    let bound = Bound::of(subject)?;
    let bound = &bound;
    std::thread::scope(|scope| {
        let work = |first: usize| {
            move || -> Result<(), Broken> {
                let queue = bound.device.create_queue()?;
                for round in 0..4 {
                    let (encoded, decoded) = &bound.chunks[(first + round) % bound.chunks.len()];
                    let (statuses, output) = bound.decode(&*queue, &[encoded, encoded], 0, 0)?;
                    ensure!(statuses == [true, true], "a chunk is refused beside other queues");
                    ensure_same("beside other queues", &output, &[decoded.as_slice(), decoded].concat())?;
                }
                Ok(())
            }
        };
        let threads: Vec<_> = (0..3).map(|first| scope.spawn(work(first))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().unwrap_or_else(|_| Err(Broken::Failed("a thread panicked".into()))))
    })
}

//! Codecs on a device, honest or wrong in one way, around those of the toy devices.

use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use zarr_buffer_api::{Buffer, BufferError, Device, Event, Layout, Queue, QueueId, Region};
use zarr_codec_api::{
    ArrayRepresentation, Bound, CodecError, CodecErrorKind, CodecProvider, Completion, DeviceContext, DeviceSegment, DeviceSlot, Direction,
    Encoded, Limits, Placement, Registry, Representation, Segment, Stage, Ticket,
};
use zarr_conformance::Suite;
use zarr_conformance::codec::device::DeviceCodecUnderTest;
use zarr_conformance::toy::{OpaqueDevice, ToyProvider, UnifiedDevice};
use zarr_meta::{DataType, Extension, FillValue, Json};

use crate::Wrong;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    TakesUnknownCodecs,
    IsElsewhere,
    FallsBack,
    SwapsTheSlotsOfAPair,
    OneStatusTooFew,
    AllAreGood,
    OneBadAllBad,
    LeavesBadSlotsUnzeroed,
    LastBadSpoilsTheFirst,
    AcceptsTrailingBytes,
    ReadsOnePast,
    IgnoresTheBudget,
    TakesMoreThanDeclared,
    TrustsWhatScratchHolds,
    IgnoresStrides,
    CutsDestinations,
    RefusesUnaligned,
    WorksWhenWaitedFor,
    NeverWritesBack,
    WrongOnASecondQueue,
    // Of encoding:
    EncodesThePairSwapped,
    SwapsTheRangesOfAPair,
    LeavesAGapInAPair,
    OneRangeTooFewOfAPair,
    RangesOfAPairPassTheEnd,
    EncodesABitWrongInAPair,
    SpoilsTheLastByteOfAPair,
    EncodesPairsToTooMuch,
    RefusesToEncodePairs,
    FailsAllButTheFirst,
    MarksThoseBehindOthers,
    MarksEverySecondBatch,
    EncodesAsIfContiguous,
    EncodesAlignedOnly,
    EncodesWhenWaitedFor,
    EncodesTheFrontOfMore,
    EncodingTakesMoreThanDeclared,
    EncodingIgnoresTheBudget,
}

#[derive(Debug)]
struct WrongProvider {
    fault: Fault,
    device: Arc<dyn Device>,
    inner: ToyProvider,
    /// Whose buffers nobody waits for.
    other: Arc<dyn Queue>,
    work: Arc<AtomicU64>,
}

struct WrongSegment {
    fault: Fault,
    device: Arc<dyn Device>,
    inner: Arc<dyn DeviceSegment>,
    other: Arc<dyn Queue>,
    work: Arc<AtomicU64>,
    first_queue: Mutex<Option<QueueId>>,
}

impl fmt::Debug for WrongSegment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.fault)
    }
}

/// From where to where.
type Move = (Region, Region);

/// Statuses known before, and what is left to be done when somebody asks for them.
#[derive(Debug)]
struct WrongCompletion {
    event: Event,
    good: Vec<bool>,
    /// By whom, and what.
    late: Option<(Arc<dyn Queue>, Vec<Move>)>,
}

impl Completion for WrongCompletion {
    fn event(&self) -> &Event {
        &self.event
    }
    fn statuses(&self) -> Result<Vec<Result<(), CodecError>>, BufferError> {
        if let Some((queue, copies)) = &self.late {
            for (from, to) in copies {
                queue.copy_region(from, to)?;
            }
            queue.record()?.wait()?;
        }
        Ok(self.good.iter().map(|&good| if good { Ok(()) } else { Err(CodecError::format("wrong", "bad")) }).collect())
    }
}

/// Ranges known before, or all that is left to be done when somebody asks for them.
#[derive(Debug)]
struct WrongRanges {
    event: Event,
    ranges: Vec<Option<Range<usize>>>,
    late: Option<LateEncoding>,
}

#[derive(Debug)]
struct LateEncoding {
    inner: Arc<dyn DeviceSegment>,
    device: Arc<dyn Device>,
    queue: Arc<dyn Queue>,
    chunks: Vec<Region>,
    output: Buffer,
}

impl LateEncoding {
    fn run(&self) -> Result<Vec<Result<Range<usize>, CodecError>>, CodecError> {
        let Encoded { bytes, ticket } = self.inner.encode(
            &self.chunks,
            &DeviceContext { device: &*self.device, queue: &*self.queue, scratch_budget: self.inner.scratch_len(self.chunks.len()) },
        )?;
        let ranges = ticket.wait()?;
        let end = ranges.iter().flatten().map(|range| range.end).max().unwrap_or(0);
        self.queue.copy(&bytes.slice(0..end)?, &self.output.slice(0..end)?)?;
        Ok(ranges)
    }
}

impl Completion<Range<usize>> for WrongRanges {
    fn event(&self) -> &Event {
        &self.event
    }
    fn statuses(&self) -> Result<Vec<Result<Range<usize>, CodecError>>, BufferError> {
        let bad = || CodecError::format("wrong", "bad");
        Ok(match &self.late {
            Some(late) => late.run().unwrap_or_else(|_| late.chunks.iter().map(|_| Err(bad())).collect()),
            None => self.ranges.iter().map(|range| range.clone().ok_or_else(bad)).collect(),
        })
    }
}

/// A frame of zstd that decodes to nothing, of that many bytes and its header.
fn skipped(len: usize) -> Vec<u8> {
    [&0x184D_2A50_u32.to_le_bytes()[..], &(len as u32).to_le_bytes(), &vec![0; len]].concat()
}

/// Of the same box, as if without gaps.
fn as_if_contiguous(region: &Region) -> Result<Region, CodecError> {
    let Region { buffer, layout } = region;
    let offset = layout.span()?.start;
    Ok(Region { buffer: buffer.clone(), layout: Layout { offset, ..Layout::contiguous(&layout.shape, layout.item_size)? } })
}

fn fill(queue: &dyn Queue, region: &Region, value: u8) -> Result<(), CodecError> {
    Ok(queue.fill_region(region, &vec![value; region.layout.item_size])?)
}

/// Bytes on the device, once they are there.
fn look(device: &dyn Device, queue: &dyn Queue, buffer: &Buffer) -> Result<Vec<u8>, CodecError> {
    let back = device.allocate_staging(buffer.len())?;
    queue.copy(buffer, &back)?;
    back.wait()?;
    let bytes = back.host_read()?.to_vec();
    Ok(bytes)
}

/// Bytes to the device, of whose memory nobody keeps count.
fn upload(device: &dyn Device, queue: &dyn Queue, bytes: &[u8]) -> Result<Buffer, CodecError> {
    let staging = device.allocate_staging(bytes.len())?;
    staging.host_write()?.copy_from_slice(bytes);
    if device.is_unified() {
        return Ok(staging);
    }
    let buffer = device.allocate(bytes.len(), queue)?;
    queue.copy(&staging, &buffer)?;
    Ok(buffer)
}

/// The byte behind a buffer, if the allocation goes on there.
fn byte_behind(buffer: &Buffer) -> Option<u8> {
    let at = buffer.offset() + buffer.len();
    let pointer = buffer.memory().host_pointer().filter(|_| at < buffer.memory().len())?;
    // SAFETY: within the allocation, whose writes are done.
    Some(unsafe { pointer.as_ptr().wrapping_add(at).read() })
}

impl DeviceSegment for WrongSegment {
    fn decode(&self, slots: &[DeviceSlot], context: &DeviceContext<'_>) -> Result<Ticket, CodecError> {
        let mut slots = slots.to_vec();
        let mut context = *context;
        if self.fault != Fault::FallsBack {
            self.work.fetch_add(1, Ordering::Relaxed);
        }
        match self.fault {
            Fault::SwapsTheSlotsOfAPair if slots.len() == 2 => {
                let (first, second) = (slots[0].encoded.clone(), slots[1].encoded.clone());
                (slots[0].encoded, slots[1].encoded) = (second, first);
            }
            Fault::IgnoresTheBudget => context.scratch_budget = u64::MAX,
            Fault::TakesMoreThanDeclared => drop(context.device.allocate(1000, context.queue)?),
            Fault::IgnoresStrides => {
                for slot in &mut slots {
                    slot.decoded = as_if_contiguous(&slot.decoded)?;
                }
            }
            Fault::CutsDestinations => {
                for slot in &mut slots {
                    let layout = &mut slot.decoded.layout;
                    if let [len] = layout.shape[..] {
                        layout.shape[0] = len.min(30);
                    }
                }
            }
            Fault::RefusesUnaligned if slots.iter().any(|slot| !slot.encoded.address().is_multiple_of(4)) => {
                return Err(CodecError::parameter("wrong", "unaligned"));
            }
            Fault::AcceptsTrailingBytes => {
                for slot in &mut slots {
                    let bytes = look(context.device, context.queue, &slot.encoded)?;
                    if let Ok(frame) = zstd::zstd_safe::find_frame_compressed_size(&bytes) {
                        slot.encoded = slot.encoded.slice(0..frame)?;
                    }
                }
            }
            Fault::WorksWhenWaitedFor | Fault::NeverWritesBack => return self.later(&slots, &context),
            _ => {}
        }
        let marked = self.fault == Fault::TrustsWhatScratchHolds && {
            if context.scratch_budget < self.scratch_len(slots.len()) {
                return Err(CodecError::new(CodecErrorKind::Limit, "wrong", "over budget"));
            }
            let table = context.device.allocate(16, context.queue)?;
            look(context.device, context.queue, &table)? == [0x69; 16]
        };
        let mut good: Vec<bool> = self.inner.decode(&slots, &context)?.wait()?.iter().map(Result::is_ok).collect();
        self.spoil(&slots, &context, &mut good)?;
        if marked {
            slots.iter().try_for_each(|slot| fill(context.queue, &slot.decoded, 7))?;
        }
        Ok(Ticket::new(WrongCompletion { event: context.queue.record()?, good, late: None }))
    }

    fn scatters(&self) -> bool {
        self.inner.scatters()
    }

    fn scratch_len(&self, slots: usize) -> u64 {
        self.inner.scratch_len(slots) + if self.fault == Fault::TrustsWhatScratchHolds { 16 } else { 0 }
    }

    fn encode(&self, chunks: &[Region], context: &DeviceContext<'_>) -> Result<Encoded, CodecError> {
        let mut chunks = chunks.to_vec();
        let mut context = *context;
        let is_pair = chunks.len() == 2;
        let batch = self.work.fetch_add(1, Ordering::Relaxed);
        match self.fault {
            Fault::EncodesThePairSwapped if is_pair => chunks.reverse(),
            Fault::RefusesToEncodePairs if is_pair => return Err(CodecError::parameter("wrong", "a pair")),
            Fault::EncodesAsIfContiguous => chunks = chunks.iter().map(as_if_contiguous).collect::<Result<_, _>>()?,
            Fault::EncodesAlignedOnly => {
                let is_aligned = |chunk: &Region| (chunk.buffer.address() + chunk.layout.offset as u64).is_multiple_of(4);
                if chunks.iter().any(|chunk| chunk.layout.is_contiguous() && !is_aligned(chunk)) {
                    return Err(CodecError::parameter("wrong", "unaligned"));
                }
            }
            Fault::EncodesTheFrontOfMore => {
                for chunk in &mut chunks {
                    if let [len] = &mut chunk.layout.shape[..] {
                        *len = 30.min(*len);
                    }
                }
            }
            Fault::EncodingTakesMoreThanDeclared => drop(context.device.allocate(1000, context.queue)?),
            Fault::EncodingIgnoresTheBudget => context.scratch_budget = u64::MAX,
            Fault::EncodesWhenWaitedFor if context.scratch_budget >= self.scratch_len(chunks.len()) => {
                let output = context.device.allocate(self.scratch_len(chunks.len()) as usize, context.queue)?;
                let (inner, device, queue) = (Arc::clone(&self.inner), Arc::clone(&self.device), Arc::clone(&self.other));
                let late = Some(LateEncoding { inner, device, queue, chunks, output: output.clone() });
                let ticket = Ticket::new(WrongRanges { event: context.queue.record()?, ranges: Vec::new(), late });
                return Ok(Encoded { bytes: output, ticket });
            }
            _ => {}
        }
        let Encoded { bytes, ticket } = self.inner.encode(&chunks, &context)?;
        if self.fault == Fault::None {
            return Ok(Encoded { bytes, ticket });
        }
        let ranges: Vec<Range<usize>> = ticket.wait()?.into_iter().collect::<Result<_, _>>()?;
        let end = ranges.last().map_or(0, |range| range.end);
        let found = look(context.device, context.queue, &bytes.slice(0..end)?)?;
        let mut encoded: Vec<Vec<u8>> = ranges.into_iter().map(|range| found[range].to_vec()).collect();
        self.spoil_encoded(&mut encoded, batch);
        let mut end = 0;
        let mut ranges: Vec<Option<Range<usize>>> = Vec::new();
        for chunk in &encoded {
            ranges.push(Some(end..end + chunk.len()));
            end += chunk.len();
        }
        match self.fault {
            Fault::SwapsTheRangesOfAPair if is_pair => ranges.reverse(),
            Fault::LeavesAGapInAPair if is_pair => {
                encoded[0].push(0);
                ranges[1] = ranges[1].clone().map(|range| range.start + 1..range.end + 1);
            }
            Fault::OneRangeTooFewOfAPair if is_pair => drop(ranges.pop()),
            Fault::RangesOfAPairPassTheEnd if is_pair => drop(encoded[1].pop()),
            Fault::FailsAllButTheFirst => ranges.iter_mut().skip(1).for_each(|range| *range = None),
            _ => {}
        }
        let bytes = upload(&*self.device, context.queue, &encoded.concat())?;
        Ok(Encoded { bytes, ticket: Ticket::new(WrongRanges { event: context.queue.record()?, ranges, late: None }) })
    }
}

impl WrongSegment {
    /// Does wrong what was done right.
    fn spoil(&self, slots: &[DeviceSlot], context: &DeviceContext<'_>, good: &mut Vec<bool>) -> Result<(), CodecError> {
        match self.fault {
            Fault::AllAreGood => good.fill(true),
            Fault::OneBadAllBad if good.contains(&false) => good.fill(false),
            Fault::OneStatusTooFew => drop(good.pop()),
            Fault::LeavesBadSlotsUnzeroed => {
                for (slot, _) in slots.iter().zip(&*good).filter(|(_, good)| !**good) {
                    fill(context.queue, &slot.decoded, 7)?;
                }
            }
            Fault::LastBadSpoilsTheFirst if good.last() == Some(&false) => fill(context.queue, &slots[0].decoded, 7)?,
            Fault::ReadsOnePast => {
                for slot in slots.iter().filter(|slot| byte_behind(&slot.encoded) == Some(0xFF)) {
                    fill(context.queue, &slot.decoded, 7)?;
                }
            }
            Fault::WrongOnASecondQueue => {
                let mut first = self.first_queue.lock().unwrap();
                if *first.get_or_insert(context.queue.id()) != context.queue.id() {
                    slots.iter().try_for_each(|slot| fill(context.queue, &slot.decoded, 7))?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Does wrong what was encoded right.
    fn spoil_encoded(&self, encoded: &mut [Vec<u8>], batch: u64) {
        match self.fault {
            Fault::EncodesABitWrongInAPair if encoded.len() == 2 => {
                let mut bytes = zstd::bulk::decompress(&encoded[1], 1000).unwrap();
                bytes[7] ^= 1;
                encoded[1] = zstd::bulk::compress(&bytes, 1).unwrap();
            }
            Fault::SpoilsTheLastByteOfAPair if encoded.len() == 2 => *encoded[1].last_mut().unwrap() ^= 1,
            Fault::EncodesPairsToTooMuch if encoded.len() == 2 => encoded[0].extend(skipped(65 << 10)),
            Fault::MarksThoseBehindOthers => encoded.iter_mut().skip(1).for_each(|chunk| chunk.extend(skipped(0))),
            Fault::MarksEverySecondBatch if batch % 2 == 1 => encoded.iter_mut().for_each(|chunk| chunk.extend(skipped(0))),
            _ => {}
        }
    }

    /// Works on copies of the destinations, of which nobody knows, and brings them home once somebody asks how it went; or never.
    fn later(&self, slots: &[DeviceSlot], context: &DeviceContext<'_>) -> Result<Ticket, CodecError> {
        let event = context.queue.record()?;
        let mut hidden = Vec::new();
        for slot in slots {
            let buffer = self.device.allocate(slot.decoded.buffer.len(), &*self.other)?;
            hidden.push(DeviceSlot { encoded: slot.encoded.clone(), decoded: Region { buffer, layout: slot.decoded.layout.clone() } });
        }
        let good =
            self.inner.decode(&hidden, &DeviceContext { queue: &*self.other, ..*context })?.wait()?.iter().map(Result::is_ok).collect();
        let copies = hidden.into_iter().zip(slots).map(|(from, to)| (from.decoded, to.decoded.clone())).collect();
        let late = (self.fault == Fault::WorksWhenWaitedFor).then(|| (Arc::clone(&self.other), copies));
        Ok(Ticket::new(WrongCompletion { event, good, late }))
    }
}

impl CodecProvider for WrongProvider {
    fn name(&self) -> &str {
        "wrong"
    }
    fn placement(&self) -> Placement {
        if self.fault == Fault::IsElsewhere { Placement::Host } else { self.inner.placement() }
    }
    fn codecs(&self) -> Vec<String> {
        self.inner.codecs()
    }
    fn encoded_representation(
        &self,
        codec: &Extension,
        decoded: &Representation,
        limits: &Limits,
    ) -> Result<Option<Representation>, CodecError> {
        self.inner.encoded_representation(codec, decoded, limits)
    }
    fn bind(&self, stages: &[Stage], direction: Direction) -> Result<Option<Bound>, CodecError> {
        let mut stages = stages.to_vec();
        if let (Fault::TakesUnknownCodecs, Some(last)) = (self.fault, stages.last_mut()) {
            last.codec = codecs()[1].clone();
        }
        let Some(bound) = self.inner.bind(&stages, direction)? else { return Ok(None) };
        let Segment::Device(inner) = bound.segment else { return Ok(None) };
        let (fault, device, other, work) = (self.fault, Arc::clone(&self.device), Arc::clone(&self.other), Arc::clone(&self.work));
        let segment = WrongSegment { fault, device, inner, other, work, first_queue: Mutex::default() };
        Ok(Some(Bound { consumed: bound.consumed, segment: Segment::Device(Arc::new(segment)) }))
    }
}

fn codecs() -> [Extension; 2] {
    let parse = |text: &str| Extension::parse(&Json::parse(text.as_bytes()).unwrap()).unwrap();
    [
        parse(r#"{"name":"bytes","configuration":{"endian":"little"}}"#),
        parse(r#"{"name":"zstd","configuration":{"level":1,"checksum":true}}"#),
    ]
}

fn suite(fault: Fault, device: Arc<dyn Device>, inner: ToyProvider) -> Suite {
    let reference = Registry::new().with(zarr_codecs_cpu::provider());
    let fill_value = FillValue::default_for(&DataType::UInt16);
    let decoded = ArrayRepresentation { data_type: DataType::UInt16, shape: vec![5, 6], fill_value };
    let work = Arc::new(AtomicU64::new(0));
    let other = device.create_queue().unwrap();
    let provider = WrongProvider { fault, device: Arc::clone(&device), inner, other, work: Arc::clone(&work) };
    let subject = DeviceCodecUnderTest::new(device, Arc::new(provider), &reference, &codecs(), decoded).unwrap();
    subject.with_many(20).counting(move || work.load(Ordering::Relaxed)).into()
}

fn opaque(fault: Fault) -> Suite {
    let device = OpaqueDevice::new(0);
    let inner = device.provider();
    suite(fault, device, inner)
}

/// Where the host can look.
fn unified(fault: Fault) -> Suite {
    let device = UnifiedDevice::new(1);
    let inner = device.provider();
    suite(fault, device, inner)
}

/// Of which the host encodes what the size of depends on data.
fn exact(fault: Fault) -> Suite {
    let device = OpaqueDevice::new(2);
    let inner = device.provider().without_encoding("zstd");
    suite(fault, device, inner)
}

pub(crate) fn honest() -> Vec<Suite> {
    vec![opaque(Fault::None), unified(Fault::None), exact(Fault::None)]
}

pub(crate) fn wrong() -> Vec<Wrong> {
    let alone = |fault, law| Wrong::alone(fault, law, move || opaque(fault));
    let found = |fault, law| Wrong::found(fault, law, move || opaque(fault));
    vec![
        alone(Fault::TakesUnknownCodecs, "device-codec/binds"),
        alone(Fault::IsElsewhere, "device-codec/binds"),
        alone(Fault::FallsBack, "device-codec/ran"),
        alone(Fault::SwapsTheSlotsOfAPair, "device-codec/decode"),
        found(Fault::OneStatusTooFew, "device-codec/decode"),
        found(Fault::AllAreGood, "device-codec/verdicts"),
        found(Fault::OneBadAllBad, "device-codec/bad-slot-alone"),
        found(Fault::LeavesBadSlotsUnzeroed, "device-codec/bad-slot-alone"),
        alone(Fault::LastBadSpoilsTheFirst, "device-codec/bad-slot-alone"),
        alone(Fault::AcceptsTrailingBytes, "device-codec/verdicts"),
        Wrong::alone(Fault::ReadsOnePast, "device-codec/reads-past", || unified(Fault::ReadsOnePast)),
        alone(Fault::IgnoresTheBudget, "device-codec/scratch-budget"),
        alone(Fault::TakesMoreThanDeclared, "device-codec/scratch-len"),
        alone(Fault::TrustsWhatScratchHolds, "device-codec/dirty-scratch"),
        alone(Fault::IgnoresStrides, "device-codec/scatter"),
        alone(Fault::CutsDestinations, "device-codec/other-size"),
        alone(Fault::RefusesUnaligned, "device-codec/unaligned"),
        alone(Fault::WorksWhenWaitedFor, "device-codec/ordered"),
        found(Fault::NeverWritesBack, "device-codec/decode"),
        alone(Fault::WrongOnASecondQueue, "device-codec/two-queues"),
        alone(Fault::EncodesThePairSwapped, "device-codec/encode"),
        Wrong::alone("EncodesThePairSwapped, to a size that is known", "device-codec/encode", || exact(Fault::EncodesThePairSwapped)),
        alone(Fault::SwapsTheRangesOfAPair, "device-codec/encode"),
        alone(Fault::LeavesAGapInAPair, "device-codec/encode"),
        alone(Fault::OneRangeTooFewOfAPair, "device-codec/encode"),
        alone(Fault::RangesOfAPairPassTheEnd, "device-codec/encode"),
        alone(Fault::EncodesABitWrongInAPair, "device-codec/encode"),
        alone(Fault::SpoilsTheLastByteOfAPair, "device-codec/encode"),
        alone(Fault::EncodesPairsToTooMuch, "device-codec/encode"),
        alone(Fault::RefusesToEncodePairs, "device-codec/encode"),
        found(Fault::FailsAllButTheFirst, "device-codec/encode"),
        alone(Fault::MarksThoseBehindOthers, "device-codec/encode/same"),
        alone(Fault::MarksEverySecondBatch, "device-codec/encode/same"),
        alone(Fault::EncodesAsIfContiguous, "device-codec/encode/scatter"),
        alone(Fault::EncodesAlignedOnly, "device-codec/encode/unaligned"),
        alone(Fault::EncodesWhenWaitedFor, "device-codec/encode/ordered"),
        alone(Fault::EncodesTheFrontOfMore, "device-codec/encode/other-size"),
        alone(Fault::EncodingTakesMoreThanDeclared, "device-codec/encode/scratch"),
        alone(Fault::EncodingIgnoresTheBudget, "device-codec/encode/scratch"),
    ]
}

//! Deliberately wrong codecs, on the host and on a device: the laws find each of them.

use std::collections::HashSet;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use zarr_buffer_api::{BufferError, Device, Event, Layout, Queue, Region};
use zarr_codec_api::{
    ArrayRepresentation, ArrayToArray, Bound, ByteLen, BytesToBytes, CodecError, CodecProvider, Completion, DecodeSlot, DeviceContext,
    DeviceSegment, DeviceSlot, Direction, EncodeSlot, HostProvider, HostSegment, Limits, Placement, Registry, Representation, Scratch,
    Segment, SimpleCodec, Stage, Target, Ticket,
};
use zarr_conformance::codec::device::{self, DeviceCodecUnderTest};
use zarr_conformance::codec::{CodecUnderTest, check};
use zarr_conformance::toy::{OpaqueDevice, ToyProvider};
use zarr_meta::{DataType, Extension, FillValue, Json};

/// What a codec does wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    LastByteDropped,
    WritesOnePast,
    WrongOnUnaligned,
    AcceptsOtherSize,
    IgnoresLimit,
    AllocatesTheClaim,
    PanicsOnShort,
    PanicsOnClaim,
    DeclaresTooLittle,
    DeclaresWrongExact,
    RemembersTheLast,
    LosesSignBits,
    RacesBetweenThreads,
    WrongView,
    // Of the segment:
    WrongInSlotOne,
    StatusNotSet,
    StopsAtBad,
    BlamesTheNext,
    UsesDirtyScratch,
    SaysVerbatim,
    // Of the provider:
    TakesUnknown,
    FailsOnUnknown,
    ListsNothing,
    TakesTooMany,
}

/// The length in four bytes, then the bytes with every bit flipped.
#[derive(Debug)]
struct Framed {
    fault: Fault,
    last: Mutex<Vec<u8>>,
    busy: Mutex<Vec<u8>>,
}

impl Framed {
    fn body<'a>(&self, encoded: &'a [u8]) -> Result<(usize, &'a [u8]), CodecError> {
        if self.fault == Fault::PanicsOnShort {
            assert!(encoded.len() >= 4, "too short");
        }
        let (head, body) = encoded.split_first_chunk::<4>().ok_or_else(|| CodecError::format("framed", "no length"))?;
        let len = u32::from_le_bytes(*head) as usize;
        if self.fault == Fault::PanicsOnClaim {
            assert!(len <= body.len(), "too long");
        }
        Ok((len, body))
    }
}

impl BytesToBytes for Framed {
    fn encoded_len(&self, decoded: ByteLen) -> ByteLen {
        match self.fault {
            Fault::DeclaresTooLittle => ByteLen::AtMost(decoded.upper() + 3),
            Fault::DeclaresWrongExact => ByteLen::Exact(decoded.upper() + 5),
            _ => decoded.plus(4),
        }
    }

    fn decode(&self, encoded: &[u8], decoded: &mut [u8]) -> Result<(), CodecError> {
        let (len, body) = self.body(encoded)?;
        if (len != decoded.len() || body.len() != len) && self.fault != Fault::AcceptsOtherSize {
            return Err(CodecError::size("framed", decoded.len(), len));
        }
        decoded.iter_mut().zip(body).for_each(|(to, from)| *to = !from);
        match self.fault {
            Fault::LastByteDropped => decoded.iter_mut().last().into_iter().for_each(|byte| *byte = 0),
            Fault::WritesOnePast => {
                let end = decoded.as_mut_ptr().wrapping_add(decoded.len());
                // SAFETY: none; this is the mistake. The test's destinations have room behind them.
                unsafe { end.write(1) };
            }
            Fault::WrongOnUnaligned if !(decoded.as_ptr() as usize).is_multiple_of(4) => decoded.fill(0),
            Fault::RemembersTheLast => {
                let mut last = self.last.lock().unwrap();
                if last.len() == decoded.len() {
                    decoded.copy_from_slice(&last);
                }
                *last = decoded.to_vec();
            }
            Fault::RacesBetweenThreads => {
                *self.busy.lock().unwrap() = decoded.to_vec();
                std::thread::sleep(std::time::Duration::from_micros(200));
                let busy = self.busy.lock().unwrap();
                decoded.iter_mut().zip(&*busy).for_each(|(to, from)| *to = *from);
            }
            _ => {}
        }
        Ok(())
    }

    fn decode_growing(&self, encoded: &[u8], decoded: &mut Vec<u8>, limit: usize) -> Result<(), CodecError> {
        let (len, body) = self.body(encoded)?;
        if self.fault == Fault::AllocatesTheClaim {
            decoded.reserve(len.min(1 << 28));
        }
        if len > limit && self.fault != Fault::IgnoresLimit {
            return Err(CodecError::limit("framed", limit));
        }
        if body.len() != len {
            return Err(CodecError::size("framed", len, body.len()));
        }
        decoded.extend(body.iter().map(|byte| !byte));
        Ok(())
    }

    fn encode(&self, decoded: &[u8], encoded: &mut Vec<u8>) -> Result<(), CodecError> {
        encoded.extend((decoded.len() as u32).to_le_bytes());
        let keep = if self.fault == Fault::LosesSignBits { 0x7F } else { 0xFF };
        encoded.extend(decoded.iter().map(|byte| !(byte & keep)));
        Ok(())
    }

    fn view<'a>(&self, encoded: &'a [u8]) -> Option<Result<&'a [u8], CodecError>> {
        (self.fault == Fault::WrongView).then_some(Ok(encoded))
    }
}

/// Wraps a provider and its segments.
#[derive(Debug)]
struct WrongProvider {
    fault: Fault,
    inner: HostProvider,
}

#[derive(Debug)]
struct WrongSegment {
    fault: Fault,
    inner: Arc<dyn HostSegment>,
}

impl HostSegment for WrongSegment {
    fn decode(&self, slots: &mut [DecodeSlot<'_>], scratch: &mut Scratch) {
        match self.fault {
            Fault::StatusNotSet => {
                for slot in slots {
                    let mut one = [DecodeSlot { encoded: slot.encoded, decoded: reborrow(&mut slot.decoded), status: Ok(()) }];
                    self.inner.decode(&mut one, scratch);
                    let [done] = one;
                    if done.status.is_err() {
                        slot.status = done.status;
                    }
                }
                return;
            }
            Fault::StopsAtBad => {
                let mut failed = false;
                for slot in slots {
                    if !failed {
                        self.inner.decode(std::slice::from_mut(slot), scratch);
                        failed = slot.status.is_err();
                    }
                }
                return;
            }
            _ => self.inner.decode(slots, scratch),
        }
        match self.fault {
            Fault::WrongInSlotOne => {
                if let Some(DecodeSlot { decoded: Target::Exact(bytes), .. }) = slots.get_mut(1) {
                    bytes.iter_mut().for_each(|byte| *byte ^= 1);
                }
            }
            Fault::BlamesTheNext => {
                if let Some(bad) = slots.iter().position(|slot| slot.status.is_err())
                    && bad + 1 < slots.len()
                {
                    slots[bad].status = Ok(());
                    slots[bad + 1].status = Err(CodecError::format("framed", "not me"));
                }
            }
            Fault::UsesDirtyScratch => {
                let used = scratch.take_len(1);
                if let Some(DecodeSlot { decoded: Target::Exact(bytes), .. }) = slots.first_mut() {
                    bytes.iter_mut().for_each(|byte| *byte |= used[0]);
                }
            }
            _ => {}
        }
    }
    fn encode(&self, slots: &mut [EncodeSlot<'_>], scratch: &mut Scratch) {
        self.inner.encode(slots, scratch);
    }
    fn is_verbatim(&self) -> bool {
        self.fault == Fault::SaysVerbatim
    }
    fn view<'a>(&self, encoded: &'a [u8]) -> Option<Result<&'a [u8], CodecError>> {
        self.inner.view(encoded)
    }
}

fn reborrow<'a>(target: &'a mut Target<'_>) -> Target<'a> {
    match target {
        Target::Exact(bytes) => Target::Exact(bytes),
        Target::Growing { bytes, limit } => Target::Growing { bytes, limit: *limit },
        Target::Variable { elements, limit } => Target::Variable { elements, limit: *limit },
    }
}

impl CodecProvider for WrongProvider {
    fn name(&self) -> &str {
        "wrong"
    }
    fn placement(&self) -> Placement {
        Placement::Host
    }
    fn codecs(&self) -> Vec<String> {
        if self.fault == Fault::ListsNothing { Vec::new() } else { self.inner.codecs() }
    }
    fn encoded_representation(
        &self,
        codec: &Extension,
        decoded: &Representation,
        limits: &Limits,
    ) -> Result<Option<Representation>, CodecError> {
        let found = self.inner.encoded_representation(codec, decoded, limits)?;
        match self.fault {
            Fault::FailsOnUnknown if found.is_none() => Err(CodecError::unsupported(&codec.name, "who?")),
            Fault::TakesUnknown if found.is_none() => Ok(Some(decoded.clone())),
            _ => Ok(found),
        }
    }
    fn bind(&self, stages: &[Stage], direction: Direction) -> Result<Option<Bound>, CodecError> {
        let Some(bound) = self.inner.bind(stages, direction)? else { return Ok(None) };
        let Segment::Host(inner) = bound.segment else { return Ok(None) };
        let consumed = if self.fault == Fault::TakesTooMany { bound.consumed + 1 } else { bound.consumed };
        Ok(Some(Bound { consumed, segment: Segment::Host(Arc::new(WrongSegment { fault: self.fault, inner })) }))
    }
}

fn failures(fault: Fault) -> HashSet<String> {
    let make = move |_: &Extension, _: &Representation| {
        Ok(SimpleCodec::bytes_to_bytes(Framed { fault, last: Mutex::default(), busy: Mutex::default() }))
    };
    let provider = Arc::new(WrongProvider { fault, inner: HostProvider::new("wrong").with("framed", make) });
    let subject = |len| CodecUnderTest::new(provider.clone(), Extension::new("framed"), Representation::Bytes(len));
    [ByteLen::Exact(100), ByteLen::AtMost(60)]
        .into_iter()
        .flat_map(|len| check(&subject(len)).failures().map(|(id, _)| id.to_owned()).collect::<Vec<_>>())
        .collect()
}

#[test]
fn wrong_codecs_are_found() {
    assert_eq!(failures(Fault::None), HashSet::new());
    let wrong = [
        (Fault::LastByteDropped, "codec/round-trip"),
        (Fault::WritesOnePast, "codec/decode/exact"),
        (Fault::WrongOnUnaligned, "codec/decode/exact"),
        (Fault::AcceptsOtherSize, "codec/decode/other-size"),
        (Fault::IgnoresLimit, "codec/decode/limit"),
        (Fault::AllocatesTheClaim, "codec/decode/mutated"),
        (Fault::PanicsOnShort, "codec/decode/truncated"),
        (Fault::PanicsOnClaim, "codec/decode/garbage"),
        (Fault::DeclaresTooLittle, "codec/encoded-size"),
        (Fault::DeclaresWrongExact, "codec/encoded-size"),
        (Fault::RemembersTheLast, "codec/repeatable"),
        (Fault::LosesSignBits, "codec/round-trip"),
        (Fault::RacesBetweenThreads, "codec/batch/threads"),
        (Fault::WrongView, "codec/verbatim"),
        (Fault::WrongInSlotOne, "codec/batch/equals-singles"),
        (Fault::StatusNotSet, "codec/batch/equals-singles"),
        (Fault::StopsAtBad, "codec/batch/bad-slot-alone"),
        (Fault::BlamesTheNext, "codec/batch/bad-slot-alone"),
        (Fault::UsesDirtyScratch, "codec/batch/dirty-scratch"),
        (Fault::SaysVerbatim, "codec/verbatim"),
        (Fault::TakesUnknown, "codec/names"),
        (Fault::FailsOnUnknown, "codec/names"),
        (Fault::ListsNothing, "codec/names"),
        (Fault::TakesTooMany, "codec/round-trip"),
    ];
    for (fault, id) in wrong {
        let failed = failures(fault);
        assert!(failed.contains(id), "{fault:?} is not found by {id}, but by {failed:?}");
    }
}

/// Says that it works element by element, and stores the differences of neighbours from the end.
#[derive(Debug)]
struct Differences;

impl ArrayToArray for Differences {
    fn encoded_representation(&self, decoded: &ArrayRepresentation) -> Result<ArrayRepresentation, CodecError> {
        Ok(decoded.clone())
    }
    fn decode(&self, _: &ArrayRepresentation, encoded: &[u8], decoded: &mut [u8]) -> Result<(), CodecError> {
        let mut sum = 0u8;
        for (to, from) in decoded.iter_mut().zip(encoded).rev() {
            sum = sum.wrapping_add(*from);
            *to = sum;
        }
        Ok(())
    }
    fn encode(&self, _: &ArrayRepresentation, decoded: &[u8], encoded: &mut [u8]) -> Result<(), CodecError> {
        let mut last = 0u8;
        for (to, from) in encoded.iter_mut().zip(decoded).rev() {
            *to = from.wrapping_sub(last);
            last = *from;
        }
        Ok(())
    }
    fn is_elementwise(&self) -> bool {
        true
    }
}

#[test]
fn false_claims_of_being_elementwise_are_found() {
    let provider = HostProvider::new("wrong").with("differences", |_, _| Ok(SimpleCodec::array_to_array(Differences)));
    let fill_value = FillValue::default_for(&DataType::UInt8);
    let decoded = ArrayRepresentation { data_type: DataType::UInt8, shape: vec![5, 6], fill_value };
    let subject = CodecUnderTest::new(Arc::new(provider), Extension::new("differences"), Representation::Array(decoded));
    let report = check(&subject);
    assert_eq!(report.failures().map(|(id, _)| id).collect::<Vec<_>>(), ["codec/elementwise"], "{report}");
}

/// What a codec on a device does wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DeviceFault {
    None,
    SwapsSlots,
    AllAreGood,
    OneBadAllBad,
    LeavesBadUnzeroed,
    IgnoresBudget,
    IgnoresStrides,
    WorksOnAnotherQueue,
    OneStatusTooFew,
    RefusesUnaligned,
    WrongOnSecondQueue,
}

#[derive(Debug)]
struct WrongDeviceProvider {
    fault: DeviceFault,
    inner: ToyProvider,
    /// Whose buffers nobody waits for.
    other: Arc<dyn Queue>,
}

struct WrongDeviceSegment {
    fault: DeviceFault,
    inner: Arc<dyn DeviceSegment>,
    other: Arc<dyn Queue>,
    calls: AtomicUsize,
    first_queue: Mutex<Option<zarr_buffer_api::QueueId>>,
}

impl fmt::Debug for WrongDeviceSegment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.fault)
    }
}

#[derive(Debug)]
struct WrongCompletion {
    event: Event,
    good: Vec<bool>,
}

impl Completion for WrongCompletion {
    fn event(&self) -> &Event {
        &self.event
    }
    fn statuses(&self) -> Result<Vec<Result<(), CodecError>>, BufferError> {
        Ok(self.good.iter().map(|&good| if good { Ok(()) } else { Err(CodecError::format("wrong", "bad")) }).collect())
    }
}

impl DeviceSegment for WrongDeviceSegment {
    fn decode(&self, slots: &[DeviceSlot], context: &DeviceContext<'_>) -> Result<Ticket, CodecError> {
        let mut slots = slots.to_vec();
        let mut context = *context;
        self.calls.fetch_add(1, Ordering::Relaxed);
        match self.fault {
            DeviceFault::SwapsSlots if slots.len() == 2 => {
                let (first, second) = (slots[0].encoded.clone(), slots[1].encoded.clone());
                (slots[0].encoded, slots[1].encoded) = (second, first);
            }
            DeviceFault::IgnoresBudget => context.scratch_budget = u64::MAX,
            DeviceFault::IgnoresStrides => {
                for slot in &mut slots {
                    let layout = &slot.decoded.layout;
                    let start = layout.span()?.start;
                    slot.decoded.layout = Layout { offset: start, ..Layout::contiguous(&layout.shape, layout.item_size)? };
                }
            }
            DeviceFault::RefusesUnaligned if slots.iter().any(|slot| !slot.encoded.address().is_multiple_of(4)) => {
                return Err(CodecError::parameter("wrong", "unaligned"));
            }
            _ => {}
        }
        if self.fault == DeviceFault::WorksOnAnotherQueue {
            // To copies of the destinations, of which nobody knows, and late back on the host's own time.
            let event = context.queue.record()?;
            let on = DeviceContext { queue: &*self.other, ..context };
            let hidden: Vec<DeviceSlot> = slots
                .iter()
                .map(|slot| {
                    let buffer = context.device.allocate(slot.decoded.buffer.len(), &*self.other)?;
                    Ok(DeviceSlot { encoded: slot.encoded.clone(), decoded: Region { buffer, layout: slot.decoded.layout.clone() } })
                })
                .collect::<Result<_, CodecError>>()?;
            let good = self.inner.decode(&hidden, &on)?.wait()?.iter().map(Result::is_ok).collect();
            return Ok(Ticket::new(WrongCompletion { event, good }));
        }
        let mut good: Vec<bool> = self.inner.decode(&slots, &context)?.wait()?.iter().map(Result::is_ok).collect();
        match self.fault {
            DeviceFault::AllAreGood => good.fill(true),
            DeviceFault::OneBadAllBad if good.contains(&false) => good.fill(false),
            DeviceFault::OneStatusTooFew => drop(good.pop()),
            DeviceFault::LeavesBadUnzeroed => {
                for (slot, _) in slots.iter().zip(&good).filter(|(_, good)| !**good) {
                    context.queue.fill_region(&slot.decoded, &vec![7; slot.decoded.layout.item_size])?;
                }
            }
            DeviceFault::WrongOnSecondQueue => {
                let mut first = self.first_queue.lock().unwrap();
                if *first.get_or_insert(context.queue.id()) != context.queue.id() {
                    for slot in &slots {
                        context.queue.fill_region(&slot.decoded, &vec![7; slot.decoded.layout.item_size])?;
                    }
                }
            }
            _ => {}
        }
        Ok(Ticket::new(WrongCompletion { event: context.queue.record()?, good }))
    }
    fn scatters(&self) -> bool {
        self.inner.scatters()
    }
    fn scratch_len(&self, slots: usize) -> u64 {
        self.inner.scratch_len(slots)
    }
}

impl CodecProvider for WrongDeviceProvider {
    fn name(&self) -> &str {
        "wrong"
    }
    fn placement(&self) -> Placement {
        self.inner.placement()
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
        let Some(bound) = self.inner.bind(stages, direction)? else { return Ok(None) };
        let Segment::Device(inner) = bound.segment else { return Ok(None) };
        let (fault, other) = (self.fault, Arc::clone(&self.other));
        let segment = WrongDeviceSegment { fault, inner, other, calls: AtomicUsize::new(0), first_queue: Mutex::default() };
        Ok(Some(Bound { consumed: bound.consumed, segment: Segment::Device(Arc::new(segment)) }))
    }
}

fn device_failures(fault: DeviceFault) -> HashSet<String> {
    let device = OpaqueDevice::new(0);
    let provider = WrongDeviceProvider { fault, inner: device.provider(), other: device.create_queue().unwrap() };
    let reference = Registry::new().with(zarr_codecs_cpu::provider());
    let parse = |text: &str| Extension::parse(&Json::parse(text.as_bytes()).unwrap()).unwrap();
    let codecs = [
        parse(r#"{"name":"bytes","configuration":{"endian":"little"}}"#),
        parse(r#"{"name":"zstd","configuration":{"level":1,"checksum":true}}"#),
    ];
    let fill_value = FillValue::default_for(&DataType::UInt16);
    let decoded = ArrayRepresentation { data_type: DataType::UInt16, shape: vec![5, 6], fill_value };
    let subject = DeviceCodecUnderTest::new(device, Arc::new(provider), &reference, &codecs, decoded).unwrap();
    device::check(&subject).failures().map(|(id, _)| id.to_owned()).collect()
}

#[test]
fn wrong_codecs_on_a_device_are_found() {
    assert_eq!(device_failures(DeviceFault::None), HashSet::new());
    let wrong = [
        (DeviceFault::SwapsSlots, "device-codec/decode"),
        (DeviceFault::AllAreGood, "device-codec/bad-slot-alone"),
        (DeviceFault::OneBadAllBad, "device-codec/bad-slot-alone"),
        (DeviceFault::LeavesBadUnzeroed, "device-codec/bad-slot-alone"),
        (DeviceFault::IgnoresBudget, "device-codec/scratch-budget"),
        (DeviceFault::IgnoresStrides, "device-codec/scatter"),
        (DeviceFault::WorksOnAnotherQueue, "device-codec/decode"),
        (DeviceFault::OneStatusTooFew, "device-codec/decode"),
        (DeviceFault::RefusesUnaligned, "device-codec/unaligned"),
        (DeviceFault::WrongOnSecondQueue, "device-codec/two-queues"),
    ];
    for (fault, id) in wrong {
        let failed = device_failures(fault);
        assert!(failed.contains(id), "{fault:?} is not found by {id}, but by {failed:?}");
    }
}

use std::sync::Arc;

use zarr_buffer_api::{Buffer, BufferError, Event, Layout, Region};
use zarr_codec_api::{CodecError, Completion, DeviceContext, DeviceSegment, DeviceSlot, Ticket};

use crate::codecs::{scatter, zstd};
use crate::engine::Engine;

/// Where chunks start in memory of their own: kernels write 16 bytes at a time.
const ALIGN: usize = 256;

/// One codec, as the kernels run it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Elements in the order of the device's memory.
    Bytes,
    /// Frames, with the most bytes that they may decode to.
    Zstd { decoded: u64 },
}

/// A run of stages on a device, in the order of decoding.
#[derive(Debug)]
pub(crate) struct KernelSegment {
    engine: Arc<dyn Engine>,
    steps: Vec<Step>,
}

impl KernelSegment {
    pub(crate) fn new(engine: Arc<dyn Engine>, steps: Vec<Step>) -> Self {
        Self { engine, steps }
    }
}

impl DeviceSegment for KernelSegment {
    fn decode(&self, slots: &[DeviceSlot], context: &DeviceContext<'_>) -> Result<Ticket, CodecError> {
        for slot in slots {
            slot.decoded.layout.check_within(slot.decoded.buffer.len())?;
        }
        if self.zstd().is_none() || slots.is_empty() {
            return self.copy(slots, context);
        }
        // A decoder looks back at what it made: boxes with gaps are filled from contiguous memory.
        let len = |slot: &DeviceSlot| slot.decoded.layout.len() * slot.decoded.layout.item_size;
        let apart = |slot: &&DeviceSlot| !slot.decoded.layout.is_contiguous();
        let staged = slots.iter().filter(apart).map(|slot| len(slot).next_multiple_of(ALIGN)).sum();
        let staged_boxes = slots.iter().filter(apart).count();
        let used = staged as u64 + scatter::scratch_len(staged_boxes);
        let context = &DeviceContext { scratch_budget: context.scratch_budget.saturating_sub(used), ..*context };
        let staging = if staged == 0 { None } else { Some(context.device.allocate(staged, context.queue)?) };
        let (mut targets, mut boxes, mut at) = (Vec::with_capacity(slots.len()), Vec::new(), 0);
        for slot in slots {
            let layout = &slot.decoded.layout;
            match &staging {
                Some(staging) if !layout.is_contiguous() => {
                    let target = staging.slice(at..at + len(slot))?;
                    at += len(slot).next_multiple_of(ALIGN);
                    boxes.push((target.clone(), &slot.decoded));
                    targets.push(target);
                }
                _ => targets.push(slot.decoded.buffer.slice(layout.offset..layout.offset + len(slot))?),
            }
        }
        let chunks: Vec<zstd::Chunk<'_>> =
            slots.iter().zip(&targets).map(|(slot, decoded)| zstd::Chunk { encoded: &slot.encoded, decoded }).collect();
        let statuses = zstd::decode(&*self.engine, &chunks, context)?;
        scatter::scatter(&*self.engine, &boxes, context)?;
        let event = context.queue.record()?;
        Ok(Ticket::new(KernelCompletion { event, known: Vec::new(), statuses: Some(statuses) }))
    }

    fn scatters(&self) -> bool {
        true
    }

    fn scratch_len(&self, slots: usize) -> u64 {
        self.zstd().map_or(0, |len| {
            let staged = (len.next_multiple_of(ALIGN as u64)).saturating_mul(slots as u64);
            zstd::Layout::new(std::iter::repeat_n(len, slots), u64::MAX).total.saturating_add(staged) + scatter::scratch_len(slots)
        })
    }
}

impl KernelSegment {
    /// The most bytes that a chunk decodes to, if there is anything to decode.
    fn zstd(&self) -> Option<u64> {
        self.steps.iter().find_map(|step| match step {
            Step::Zstd { decoded } => Some(*decoded),
            Step::Bytes => None,
        })
    }

    fn copy(&self, slots: &[DeviceSlot], context: &DeviceContext<'_>) -> Result<Ticket, CodecError> {
        let mut known = Vec::with_capacity(slots.len());
        for slot in slots {
            let layout = &slot.decoded.layout;
            let len = layout.len() * layout.item_size;
            if slot.encoded.len() == len {
                let source = Region::new(slot.encoded.clone(), Layout::contiguous(&layout.shape, layout.item_size)?)?;
                context.queue.copy_region(&source, &slot.decoded)?;
                known.push(Ok(()));
            } else {
                context.queue.fill_region(&slot.decoded, &vec![0; layout.item_size])?;
                known.push(Err((len, slot.encoded.len())));
            }
        }
        let event = context.queue.record()?;
        Ok(Ticket::new(KernelCompletion { event, known, statuses: None }))
    }
}

/// Verdicts that the host knew before, or those that the device will have written.
#[derive(Debug)]
struct KernelCompletion {
    event: Event,
    known: Vec<Result<(), (usize, usize)>>,
    statuses: Option<Buffer>,
}

impl Completion for KernelCompletion {
    fn event(&self) -> &Event {
        &self.event
    }

    fn statuses(&self) -> Result<Vec<Result<(), CodecError>>, BufferError> {
        let Some(statuses) = &self.statuses else {
            let verdict =
                |known: &Result<(), (usize, usize)>| known.map_err(|(expected, found)| CodecError::size("bytes", expected, found));
            return Ok(self.known.iter().map(verdict).collect());
        };
        let bytes = statuses.host_read()?;
        let codes = bytes.chunks_exact(4).map(|code| u32::from_le_bytes([code[0], code[1], code[2], code[3]]));
        Ok(codes.map(zstd::verdict).collect())
    }
}

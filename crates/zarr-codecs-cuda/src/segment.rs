use std::sync::Arc;

use zarr_buffer_api::{Buffer, BufferError, Event, Layout, Region};
use zarr_codec_api::{CodecError, Completion, DeviceContext, DeviceSegment, DeviceSlot, Ticket};

use crate::codecs::zstd;
use crate::engine::Engine;

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
        let zstd = self.steps.iter().any(|step| matches!(step, Step::Zstd { .. }));
        let mut targets = Vec::with_capacity(slots.len());
        for slot in slots {
            let layout = &slot.decoded.layout;
            if !layout.is_contiguous() {
                return Err(CodecError::parameter("zstd", "a strided destination, and the segment does not scatter"));
            }
            let len = layout.len() * layout.item_size;
            targets.push(slot.decoded.buffer.slice(layout.offset..layout.offset + len)?);
        }
        if !zstd || slots.is_empty() {
            return self.copy(slots, &targets, context);
        }
        let chunks: Vec<zstd::Chunk<'_>> =
            slots.iter().zip(&targets).map(|(slot, decoded)| zstd::Chunk { encoded: &slot.encoded, decoded }).collect();
        let statuses = zstd::decode(&*self.engine, &chunks, context)?;
        let event = context.queue.record()?;
        Ok(Ticket::new(KernelCompletion { event, known: Vec::new(), statuses: Some(statuses) }))
    }

    fn scratch_len(&self, slots: usize) -> u64 {
        let len = self.steps.iter().find_map(|step| match step {
            Step::Zstd { decoded } => Some(*decoded),
            Step::Bytes => None,
        });
        len.map_or(0, |len| zstd::Layout::new(std::iter::repeat_n(len, slots), u64::MAX).total)
    }
}

impl KernelSegment {
    fn copy(&self, slots: &[DeviceSlot], targets: &[Buffer], context: &DeviceContext<'_>) -> Result<Ticket, CodecError> {
        let mut known = Vec::with_capacity(slots.len());
        for (slot, target) in slots.iter().zip(targets) {
            if slot.encoded.len() == target.len() {
                context.queue.copy(&slot.encoded, target)?;
                known.push(Ok(()));
            } else {
                let bytes = Region::new(target.clone(), Layout::contiguous(&[target.len()], 1)?)?;
                context.queue.fill_region(&bytes, &[0])?;
                known.push(Err((target.len(), slot.encoded.len())));
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

use std::fmt;
use std::ops::Range;

use zarr_buffer_api::{Buffer, BufferError, Device, Event, Queue, Region};

use crate::CodecError;

/// A bound run of stages that enqueues its work on a device.
///
/// It never waits and never downloads: sizes come from metadata, verdicts come with the [`Ticket`]. It orders its work and notes it on every
/// buffer that it touches with [`zarr_buffer_api::enqueue`], so that slots may be dropped, and other queues used, right after the call.
pub trait DeviceSegment: fmt::Debug + Send + Sync + 'static {
    /// Enqueues the decoding of every slot on `context.queue`. A bad slot fails alone, and its destination is zeroed. No byte outside the
    /// destinations' elements is written. A slot that decodes to another size than its destination's is bad.
    ///
    /// # Errors
    /// When nothing could be enqueued: buffers that do not fit, a spent budget, or a failed device.
    fn decode(&self, slots: &[DeviceSlot], context: &DeviceContext<'_>) -> Result<Ticket, CodecError>;

    /// Whether [`DeviceSegment::decode`] takes destinations with any strides. If not, it is given contiguous ones.
    fn scatters(&self) -> bool {
        false
    }

    /// Enqueues the encoding of `chunks`, whose elements lie where the regions say, at any strides if [`DeviceSegment::scatters`]. What comes out lies in memory
    /// that this allocates, since nobody knows before how much it is.
    ///
    /// # Errors
    /// As [`DeviceSegment::decode`]; unsupported by default.
    fn encode(&self, chunks: &[Region], context: &DeviceContext<'_>) -> Result<Encoded, CodecError> {
        let _ = (chunks, context);
        Err(CodecError::unsupported("device", "this segment does not encode"))
    }

    /// The most temporary device memory that a call for `slots` chunks takes, with what [`DeviceSegment::encode`] gives, in bytes. Who has less of it makes
    /// several calls of fewer chunks, down to one.
    fn scratch_len(&self, slots: usize) -> u64;
}

/// What a device makes of chunks that it encodes.
#[derive(Debug)]
pub struct Encoded {
    /// The chunks, one behind the other in the order of the batch, from the start on and without gaps but where one failed; behind them, anything.
    pub bytes: Buffer,
    /// Where in `bytes` each chunk lies.
    pub ticket: Ticket<Range<usize>>,
}

/// One chunk to decode on a device.
#[derive(Debug, Clone)]
pub struct DeviceSlot {
    /// Encoded bytes, at any alignment.
    pub encoded: Buffer,
    /// Decoded elements. For bytes between two segments: one axis of single bytes.
    pub decoded: Region,
}

/// Where a device segment runs.
#[derive(Debug, Clone, Copy)]
pub struct DeviceContext<'a> {
    /// Allocates temporary memory.
    pub device: &'a dyn Device,
    /// Takes the work.
    pub queue: &'a dyn Queue,
    /// The most temporary device memory to use, in bytes.
    pub scratch_budget: u64,
}

/// What a device implements for the outcome of enqueued work, of which each chunk comes to a `T`.
pub trait Completion<T = ()>: fmt::Debug + Send + Sync + 'static {
    /// Complete once the work, and the copy of its statuses back to the host, is done.
    fn event(&self) -> &Event;

    /// One status per chunk. Called once [`Completion::event`] is complete.
    ///
    /// # Errors
    /// When the statuses could not be copied back.
    fn statuses(&self) -> Result<Vec<Result<T, CodecError>>, BufferError>;
}

/// The outcome of work on a device: a status per chunk, once the work is done.
#[derive(Debug)]
#[must_use = "a ticket that nobody looks at hides failed chunks"]
pub struct Ticket<T = ()>(Box<dyn Completion<T>>);

impl<T: 'static> Ticket<T> {
    /// Wraps a device's own completion.
    pub fn new(completion: impl Completion<T>) -> Self {
        Self(Box::new(completion))
    }

    /// The event after which the statuses are known.
    pub fn event(&self) -> &Event {
        self.0.event()
    }

    /// Whether the statuses are known. Never blocks.
    ///
    /// # Errors
    /// When the work failed as a whole.
    pub fn is_complete(&self) -> Result<bool, BufferError> {
        self.event().is_complete()
    }

    /// Blocks until the work is done; one status per chunk, in the order of the batch.
    ///
    /// # Errors
    /// When the work failed as a whole.
    pub fn wait(self) -> Result<Vec<Result<T, CodecError>>, BufferError> {
        if !self.event().is_complete()? {
            self.event().wait()?;
        }
        self.0.statuses()
    }
}

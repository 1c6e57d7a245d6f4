//! A device whose work is waited for, step by step, and codecs on it: to see how long each takes alone.
#![deny(clippy::missing_trait_methods)]

use std::any::Any;
use std::cell::Cell;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use zarr::buffer_api::{Buffer, BufferError, Device, DeviceId, Event, Queue, QueueId, Region};
use zarr::codec_api::{
    Bound, CodecError, CodecProvider, DeviceContext, DeviceSegment, DeviceSlot, Direction, Encoded, Limits, Placement, Representation,
    Segment, Stage, Ticket,
};
use zarr::meta::Extension;
use zarr::{DeviceTarget, Registry};

/// Time that each stage took on a device.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Spent {
    pub(super) upload: Duration,
    pub(super) decode: Duration,
    pub(super) scatter: Duration,
}

/// Adds up times; what is timed runs alone.
#[derive(Debug, Clone, Default)]
pub(super) struct Clock(Arc<Mutex<Spent>>);

impl Clock {
    /// What was spent since the last call.
    pub(super) fn take(&self) -> Spent {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Times work on a queue that is idle before, and after.
    fn time<R, E: From<BufferError>>(
        &self,
        queue: &dyn Queue,
        stage: impl FnOnce(&mut Spent) -> &mut Duration,
        work: impl FnOnce() -> Result<R, E>,
    ) -> Result<R, E> {
        // A codec copies what its kernels need: that is part of its own time.
        let Some(_inside) = Inside::enter() else { return work() };
        let mut spent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        queue.record()?.wait()?;
        let start = Instant::now();
        let done = work()?;
        queue.record()?.wait()?;
        *stage(&mut spent) += start.elapsed();
        Ok(done)
    }
}

thread_local! {
    static TIMING: Cell<bool> = const { Cell::new(false) };
}

/// This thread is timing something.
struct Inside;

impl Inside {
    /// `None` where it already was.
    fn enter() -> Option<Self> {
        // Made only then: the end of one clears the mark.
        (!TIMING.replace(true)).then(|| Self)
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        TIMING.set(false);
    }
}

/// The same target, timed.
pub(super) fn target(inner: &DeviceTarget, clock: &Clock) -> DeviceTarget {
    let mut timed = inner.clone();
    timed.queue = Arc::new(TimedQueue { inner: Arc::clone(&inner.queue), clock: clock.clone() });
    timed.device = Arc::new(TimedDevice { inner: Arc::clone(&inner.device), clock: clock.clone() });
    timed
}

/// The same codecs; those on a device timed.
pub(super) fn registry(inner: &Registry, clock: &Clock) -> Registry {
    let empty = Registry::new().with_limits(*inner.limits());
    inner.providers().fold(empty, |registry, provider| registry.with(TimedProvider { inner: Arc::clone(provider), clock: clock.clone() }))
}

#[derive(Debug)]
struct TimedDevice {
    inner: Arc<dyn Device>,
    clock: Clock,
}

impl Device for TimedDevice {
    fn id(&self) -> DeviceId {
        self.inner.id()
    }

    fn name(&self) -> String {
        self.inner.name()
    }

    fn is_unified(&self) -> bool {
        self.inner.is_unified()
    }

    fn create_queue(&self) -> Result<Arc<dyn Queue>, BufferError> {
        Ok(Arc::new(TimedQueue { inner: self.inner.create_queue()?, clock: self.clock.clone() }))
    }

    fn allocate(&self, len: usize, queue: &dyn Queue) -> Result<Buffer, BufferError> {
        self.inner.allocate(len, queue)
    }

    fn allocate_staging(&self, len: usize) -> Result<Buffer, BufferError> {
        self.inner.allocate_staging(len)
    }

    fn as_any(&self) -> &dyn Any {
        self.inner.as_any()
    }
}

#[derive(Debug)]
struct TimedQueue {
    inner: Arc<dyn Queue>,
    clock: Clock,
}

impl Queue for TimedQueue {
    fn id(&self) -> QueueId {
        self.inner.id()
    }

    fn device(&self) -> DeviceId {
        self.inner.device()
    }

    fn record(&self) -> Result<Event, BufferError> {
        self.inner.record()
    }

    fn wait_for(&self, event: &Event) -> Result<(), BufferError> {
        self.inner.wait_for(event)
    }

    fn copy(&self, source: &Buffer, destination: &Buffer) -> Result<(), BufferError> {
        self.clock.time(&*self.inner, |spent| &mut spent.upload, || self.inner.copy(source, destination))
    }

    fn copy_region(&self, source: &Region, destination: &Region) -> Result<(), BufferError> {
        self.clock.time(&*self.inner, |spent| &mut spent.scatter, || self.inner.copy_region(source, destination))
    }

    fn fill_region(&self, destination: &Region, element: &[u8]) -> Result<(), BufferError> {
        self.clock.time(&*self.inner, |spent| &mut spent.scatter, || self.inner.fill_region(destination, element))
    }

    fn as_any(&self) -> &dyn Any {
        self.inner.as_any()
    }
}

struct TimedProvider {
    inner: Arc<dyn CodecProvider>,
    clock: Clock,
}

impl fmt::Debug for TimedProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl CodecProvider for TimedProvider {
    fn name(&self) -> &str {
        self.inner.name()
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

    fn is_elementwise(&self, codec: &Extension, decoded: &Representation) -> bool {
        self.inner.is_elementwise(codec, decoded)
    }

    fn bind(&self, stages: &[Stage], direction: Direction) -> Result<Option<Bound>, CodecError> {
        let bound = self.inner.bind(stages, direction)?;
        Ok(bound.map(|bound| match bound.segment {
            Segment::Device(inner) => {
                Bound { consumed: bound.consumed, segment: Segment::Device(Arc::new(TimedSegment { inner, clock: self.clock.clone() })) }
            }
            Segment::Host(_) => bound,
        }))
    }
}

#[derive(Debug)]
struct TimedSegment {
    inner: Arc<dyn DeviceSegment>,
    clock: Clock,
}

impl DeviceSegment for TimedSegment {
    fn decode(&self, slots: &[DeviceSlot], context: &DeviceContext<'_>) -> Result<Ticket, CodecError> {
        self.clock.time(context.queue, |spent| &mut spent.decode, || self.inner.decode(slots, context))
    }

    fn scatters(&self) -> bool {
        self.inner.scatters()
    }

    fn encode(&self, chunks: &[Region], context: &DeviceContext<'_>) -> Result<Encoded, CodecError> {
        self.inner.encode(chunks, context)
    }

    fn scratch_len(&self, slots: usize) -> u64 {
        self.inner.scratch_len(slots)
    }
}

#[cfg(test)]
mod tests {
    use zarr_conformance::toy::OpaqueDevice;

    use super::*;

    #[test]
    fn what_a_timed_stage_does_itself_counts_as_its_own() {
        let toy = OpaqueDevice::new(0);
        let queue = toy.create_queue().unwrap();
        let clock = Clock::default();
        let timed = TimedQueue { inner: queue, clock: clock.clone() };
        let to = toy.allocate(4, &*timed.inner).unwrap();
        // As many copies as a codec likes.
        let copies = || (0..3).try_for_each(|_| timed.copy(&Buffer::from_vec(vec![1; 4]), &to));
        clock.time(&*timed.inner, |spent| &mut spent.decode, copies).unwrap();
        let spent = clock.take();
        assert!(spent.upload.is_zero() && !spent.decode.is_zero());
    }
}

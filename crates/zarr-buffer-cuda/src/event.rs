use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use zarr_buffer_api::{BufferError, EventState, QueueId};

use crate::CudaError;
use crate::driver::{RawEvent, Stream};

/// A point in a stream. Its handle goes back to the context's store.
#[derive(Debug)]
pub(crate) struct CudaEvent {
    /// There until the value is dropped.
    raw: Option<RawEvent>,
    stream: Arc<Stream>,
    queue: QueueId,
    /// Whether the point was seen to be passed.
    passed: AtomicBool,
}

impl CudaEvent {
    /// For this long a waiting thread asks again and again; from then on it sleeps in between.
    const SPIN: Duration = Duration::from_micros(30);
    const SHORTEST_SLEEP: Duration = Duration::from_micros(50);
    const LONGEST_SLEEP: Duration = Duration::from_millis(1);

    pub(crate) fn record(stream: &Arc<Stream>, queue: QueueId) -> Result<Self, CudaError> {
        let raw = stream.context().event()?;
        if let Err(error) = stream.record(&raw) {
            stream.context().recycle(raw);
            return Err(error);
        }
        Ok(Self { raw: Some(raw), stream: Arc::clone(stream), queue, passed: AtomicBool::new(false) })
    }

    /// The stream in which the point lies.
    pub(crate) fn stream(&self) -> &Arc<Stream> {
        &self.stream
    }

    /// Lets later work on `stream` wait for this point.
    pub(crate) fn hold(&self, stream: &Stream) -> Result<(), CudaError> {
        match &self.raw {
            Some(raw) if !self.passed.load(Ordering::Acquire) => stream.wait_event(raw),
            _ => Ok(()),
        }
    }

    fn query(&self) -> Result<bool, CudaError> {
        let Some(raw) = &self.raw else { return Ok(true) };
        if self.passed.load(Ordering::Acquire) {
            return Ok(true);
        }
        let _entered = self.stream.context().enter()?;
        let passed = raw.is_complete()?;
        if passed {
            self.passed.store(true, Ordering::Release);
        }
        Ok(passed)
    }
}

impl Drop for CudaEvent {
    fn drop(&mut self) {
        if let Some(raw) = self.raw.take() {
            self.stream.context().recycle(raw);
        }
    }
}

impl EventState for CudaEvent {
    fn queue(&self) -> QueueId {
        self.queue
    }

    fn is_complete(&self) -> Result<bool, BufferError> {
        self.query().map_err(|error| error.on(self.stream.context().ordinal()))
    }

    fn wait(&self) -> Result<(), BufferError> {
        // The driver's own wait either burns a core or wants an interrupt behind every event, waited for or not.
        let start = Instant::now();
        while !self.is_complete()? {
            let waited = start.elapsed();
            if waited < Self::SPIN {
                std::hint::spin_loop();
            } else {
                std::thread::sleep((waited / 16).clamp(Self::SHORTEST_SLEEP, Self::LONGEST_SLEEP));
            }
        }
        Ok(())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

use std::any::Any;
use std::ffi::c_void;
use std::sync::Arc;
use std::thread::ThreadId;

use zarr_buffer_api::{Buffer, BufferError, BufferErrorKind, Device, DeviceId, Event, Queue, QueueId, Region};

use crate::CudaDevice;
use crate::driver::Stream;
use crate::event::CudaEvent;

/// A stream of a CUDA device.
///
/// Of other events than those of CUDA, a queue waits only for complete ones: a stream cannot wait for them, and the host does not wait in
/// secret, so that others are refused as [`BufferErrorKind::NotReady`].
pub struct CudaQueue {
    id: QueueId,
    device: CudaDevice,
    stream: Arc<Stream>,
    /// The one thread that may use it: the per-thread default stream is another one on each.
    thread: Option<ThreadId>,
}

impl CudaQueue {
    /// The handle of the legacy default stream, which waits for all streams that do not opt out, and they for it.
    pub const LEGACY_DEFAULT: *mut c_void = std::ptr::without_provenance_mut(1);
    /// The handle of the calling thread's default stream.
    pub const PER_THREAD_DEFAULT: *mut c_void = std::ptr::without_provenance_mut(2);

    pub(crate) fn new(device: CudaDevice, stream: Arc<Stream>) -> Self {
        Self { id: QueueId::unique(), device, stream, thread: None }
    }

    /// A queue on a stream that somebody else owns: a `CUstream` (or `cudaStream_t`) of `device`'s primary context, null or
    /// [`CudaQueue::LEGACY_DEFAULT`], or [`CudaQueue::PER_THREAD_DEFAULT`]. A queue on the latter can be used by the calling thread alone.
    ///
    /// # Errors
    /// [`BufferErrorKind::Parameter`] when the stream belongs to another device or context.
    ///
    /// # Safety
    /// The stream is alive, and lives until the queue is dropped. It is not being captured.
    pub unsafe fn from_raw_stream(device: &CudaDevice, stream: *mut c_void) -> Result<Arc<Self>, BufferError> {
        // Null means one of two streams, by how a program was compiled; in the driver, the legacy one.
        let raw = if stream.is_null() { Self::LEGACY_DEFAULT } else { stream };
        // SAFETY: the caller's promise; whether it belongs to the context is asked below, before anything else is done with it.
        let borrowed = unsafe { Stream::borrowed(&device.shared().context, raw.cast()) };
        let special = raw == Self::LEGACY_DEFAULT || raw == Self::PER_THREAD_DEFAULT;
        if !special && !borrowed.is_of_context().map_err(|error| device.error(error))? {
            return Err(BufferError::parameter("a stream of another device or context").on(device.id()));
        }
        let thread = (raw == Self::PER_THREAD_DEFAULT).then(|| std::thread::current().id());
        Ok(Arc::new(Self { thread, ..Self::new(device.clone(), Arc::new(borrowed)) }))
    }

    pub(crate) fn legacy_default(device: &CudaDevice) -> Arc<Self> {
        // SAFETY: this stream lives as long as the context.
        let stream = unsafe { Stream::borrowed(&device.shared().context, Self::LEGACY_DEFAULT.cast()) };
        Arc::new(Self::new(device.clone(), Arc::new(stream)))
    }

    /// The stream's handle (`CUstream`), for calls of the driver by others. What they enqueue is in order with the queue's work, and noted on no
    /// buffer unless it is done within [`zarr_buffer_api::enqueue`].
    pub fn stream(&self) -> *mut c_void {
        self.stream.raw().cast()
    }

    /// The device, with its type.
    pub fn cuda_device(&self) -> &CudaDevice {
        &self.device
    }

    /// Blocks the calling thread until all work on the queue is done.
    ///
    /// # Errors
    /// [`BufferErrorKind::Device`] when that work failed.
    pub fn synchronize(&self) -> Result<(), BufferError> {
        self.open()?.synchronize().map_err(|error| self.device.error(error))
    }

    /// The stream, for work by the calling thread.
    pub(crate) fn open(&self) -> Result<&Arc<Stream>, BufferError> {
        if self.thread.is_some_and(|thread| thread != std::thread::current().id()) {
            return Err(BufferError::parameter("the default stream of another thread").on(self.device.id()));
        }
        Ok(&self.stream)
    }
}

impl std::fmt::Debug for CudaQueue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "CudaQueue({:?} on {}, stream {:p})", self.id, self.device.id(), self.stream.raw())
    }
}

impl Queue for CudaQueue {
    fn id(&self) -> QueueId {
        self.id
    }

    fn device(&self) -> DeviceId {
        self.device.id()
    }

    fn record(&self) -> Result<Event, BufferError> {
        Ok(Event::new(CudaEvent::record(self.open()?, self.id).map_err(|error| self.device.error(error))?))
    }

    fn wait_for(&self, event: &Event) -> Result<(), BufferError> {
        let stream = self.open()?;
        if event.queue() == self.id {
            return Ok(());
        }
        match event.as_any().downcast_ref::<CudaEvent>() {
            Some(event) => event.hold(stream).map_err(|error| self.device.error(error)),
            None if event.is_complete()? => Ok(()),
            None => {
                let message = "an event of another kind of device is not complete, and a stream cannot wait for it; wait for it first";
                Err(BufferError::new(BufferErrorKind::NotReady, message).on(self.device.id()))
            }
        }
    }

    fn copy(&self, source: &Buffer, destination: &Buffer) -> Result<(), BufferError> {
        self.copy_bytes(source, destination)
    }

    fn copy_region(&self, source: &Region, destination: &Region) -> Result<(), BufferError> {
        self.copy_box(source, destination)
    }

    fn fill_region(&self, destination: &Region, element: &[u8]) -> Result<(), BufferError> {
        self.fill_box(destination, element)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

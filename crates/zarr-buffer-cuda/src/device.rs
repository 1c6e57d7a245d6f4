use std::any::Any;
use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use zarr_buffer_api::{Buffer, BufferError, BufferErrorKind, Device, DeviceId, Queue, enqueue};

use crate::blocks::Blocks;
use crate::driver::{Context, Exportable, Pinned, Pool, Stream};
use crate::memory::{DeviceMemory, Orphan};
use crate::regions::RegionKernels;
use crate::staging::PinnedMemory;
use crate::{CudaDeviceInfo, CudaError, CudaQueue};

/// How a [`CudaDevice`] uses memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct CudaDeviceOptions {
    /// The most bytes of device memory in live buffers; more is refused as out of memory. Memory that is freed behind pending work no longer
    /// counts. No limit but the device's if `None`.
    pub memory_limit: Option<u64>,
    /// Bytes of freed memory that the pool keeps for reuse when somebody synchronises with the device. Memory that it does not keep costs a call
    /// of the system when it is needed again.
    pub release_threshold: u64,
    /// The most bytes of pinned host memory. No limit if `None`.
    pub staging_limit: Option<u64>,
}

impl Default for CudaDeviceOptions {
    fn default() -> Self {
        Self { memory_limit: None, release_threshold: u64::MAX, staging_limit: None }
    }
}

/// A CUDA device. Cheap to clone: clones share the pool, the budget and the staging memory.
///
/// It goes with the last of its clones, queues and buffers; that gives pinned memory back to the system, and waits for work on it. The end of a
/// buffer alone waits for nothing.
#[derive(Debug, Clone)]
pub struct CudaDevice {
    shared: Arc<Shared>,
}

/// What a device, its queues and its buffers share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) info: CudaDeviceInfo,
    pub(crate) options: CudaDeviceOptions,
    pub(crate) context: Arc<Context>,
    pub(crate) pool: Pool,
    /// Bytes in live buffers.
    pub(crate) used: AtomicU64,
    /// Waits for nothing, ever: what is freed here is free.
    pub(crate) idle: Arc<Stream>,
    /// Waits for events of several streams, to free behind them.
    pub(crate) behind: Arc<Stream>,
    orphans: Mutex<Vec<Orphan>>,
    pub(crate) staging: Blocks<Pinned>,
    pub(crate) exportable: Blocks<Exportable>,
    pub(crate) regions: OnceLock<RegionKernels>,
    /// Devices that the pool's memory is open to, by ordinal.
    peers: Mutex<Vec<i32>>,
}

impl Shared {
    pub(crate) fn orphans(&self) -> MutexGuard<'_, Vec<Orphan>> {
        self.orphans.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives what the pool keeps beyond `keep` bytes back to the system, as far as it is known to be free.
    pub(crate) fn trim_pool(&self, keep: usize) -> Result<(), CudaError> {
        // Frees count once the host has seen them done. There is nothing in this stream but frees of idle memory.
        self.idle.synchronize()?;
        self.pool.trim(keep)
    }

    /// Opens the pool's memory to another device, where the hardware can; copies go through the host where it cannot.
    pub(crate) fn open_pool_to(&self, other: &Context) -> Result<(), CudaError> {
        let mut peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        if other.ordinal() != self.info.ordinal && !peers.contains(&other.ordinal()) {
            if other.reaches(&self.context)? {
                self.pool.share_with(other)?;
            }
            peers.push(other.ordinal());
        }
        Ok(())
    }
}

impl CudaDevice {
    /// The device with this number, from 0.
    ///
    /// # Errors
    /// [`BufferErrorKind::Unsupported`] when there is no driver, an older one than this crate can use, or the device lacks stream-ordered
    /// memory; [`BufferErrorKind::Parameter`] when there is no such device; [`BufferErrorKind::Device`] when the driver fails.
    pub fn new(ordinal: i32) -> Result<Arc<Self>, BufferError> {
        Self::with_options(ordinal, CudaDeviceOptions::default())
    }

    /// The device with this number, from 0, with options.
    ///
    /// # Errors
    /// As [`CudaDevice::new`].
    pub fn with_options(ordinal: i32, options: CudaDeviceOptions) -> Result<Arc<Self>, BufferError> {
        let count = match crate::driver::device_count() {
            Err(error) if error.is_no_device() => 0,
            count => count?,
        };
        if !(0..count).contains(&ordinal) {
            return Err(BufferError::parameter(format!("CUDA device {ordinal} of {count}")));
        }
        let info = CudaDeviceInfo::of(ordinal).map_err(|error| error.on(ordinal))?;
        if !info.memory_pools {
            let message = format!("{} cannot allocate memory in the order of streams", info.name);
            return Err(BufferError::new(BufferErrorKind::Unsupported, message).on(info.id()));
        }
        let shared = Shared::new(info, options).map_err(|error| error.on(ordinal))?;
        Ok(Arc::new(Self { shared: Arc::new(shared) }))
    }

    /// What is known of the device.
    pub fn info(&self) -> &CudaDeviceInfo {
        &self.shared.info
    }

    /// The options it was made with.
    pub fn options(&self) -> &CudaDeviceOptions {
        &self.shared.options
    }

    /// A new queue, as [`Device::create_queue`], with its type: a stream that does not wait for the default stream.
    ///
    /// # Errors
    /// [`BufferErrorKind::Device`] when the driver refuses.
    pub fn queue(&self) -> Result<Arc<CudaQueue>, BufferError> {
        let stream = Stream::new(&self.shared.context).map_err(|error| self.error(error))?;
        Ok(Arc::new(CudaQueue::new(self.clone(), Arc::new(stream))))
    }

    /// The legacy default stream as a queue: it waits for all streams that do not opt out, and they for it.
    pub fn default_queue(&self) -> Arc<CudaQueue> {
        CudaQueue::legacy_default(self)
    }

    /// The handle of the primary context (`CUcontext`), for calls of the driver by others. Lives as long as the device.
    pub fn context(&self) -> *mut c_void {
        self.shared.context.raw().cast()
    }

    /// Bytes of device memory in live buffers that came from here.
    pub fn memory_in_use(&self) -> u64 {
        self.shared.used.load(Ordering::Relaxed)
    }

    /// Bytes of device memory that the pool holds, in use or for reuse.
    ///
    /// # Errors
    /// [`BufferErrorKind::Device`] when the driver fails.
    pub fn memory_reserved(&self) -> Result<u64, BufferError> {
        self.shared.pool.reserved().map_err(|error| self.error(error))
    }

    /// Bytes of the device's memory that are free, over all processes, and in all.
    ///
    /// # Errors
    /// [`BufferErrorKind::Device`] when the driver fails.
    pub fn free_memory(&self) -> Result<(u64, u64), BufferError> {
        self.shared.context.free_memory().map_err(|error| self.error(error))
    }

    /// Bytes of pinned host memory, in use or for reuse.
    pub fn staging_memory(&self) -> u64 {
        self.shared.staging.total()
    }

    /// Gives memory that nobody uses back to the system: of the device, but for `keep` bytes of the pool, and pinned host memory. Waits for
    /// the device while it gives back what is not of the pool.
    ///
    /// # Errors
    /// [`BufferErrorKind::Device`] when the driver fails.
    pub fn trim(&self, keep: usize) -> Result<(), BufferError> {
        self.shared.sweep();
        self.shared.staging.trim();
        self.shared.exportable.trim();
        self.shared.trim_pool(keep).map_err(|error| self.error(error))
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    pub(crate) fn error(&self, error: CudaError) -> BufferError {
        error.on(self.shared.info.ordinal)
    }

    /// The queue behind `queue`, if it is one of this device.
    pub(crate) fn own_queue<'a>(&self, queue: &'a dyn Queue) -> Result<&'a CudaQueue, BufferError> {
        queue
            .as_any()
            .downcast_ref::<CudaQueue>()
            .filter(|queue| queue.cuda_device().shared.context.raw() == self.shared.context.raw())
            .ok_or_else(|| BufferError::parameter("a queue of another device").on(self.id()))
    }
}

impl Shared {
    fn new(info: CudaDeviceInfo, options: CudaDeviceOptions) -> Result<Self, CudaError> {
        let context = Arc::new(Context::retain(info.ordinal)?);
        Ok(Self {
            pool: Pool::new(&context, options.release_threshold)?,
            used: AtomicU64::new(0),
            idle: Arc::new(Stream::new(&context)?),
            behind: Arc::new(Stream::new(&context)?),
            orphans: Mutex::default(),
            staging: Blocks::default(),
            exportable: Blocks::default(),
            regions: OnceLock::new(),
            peers: Mutex::default(),
            info,
            options,
            context,
        })
    }
}

impl Device for CudaDevice {
    fn id(&self) -> DeviceId {
        self.shared.info.id()
    }

    fn name(&self) -> String {
        self.shared.info.name.clone()
    }

    fn is_unified(&self) -> bool {
        false
    }

    fn create_queue(&self) -> Result<Arc<dyn Queue>, BufferError> {
        Ok(self.queue()?)
    }

    fn allocate(&self, len: usize, queue: &dyn Queue) -> Result<Buffer, BufferError> {
        let queue = self.own_queue(queue)?;
        let buffer = Buffer::new(DeviceMemory::new(&self.shared, len, queue.open()?)?);
        if len > 0 {
            // In the order of this queue the memory is there at once; to others, only after this event.
            enqueue(queue, &[], &[&buffer], || Ok::<(), BufferError>(()))?;
        }
        Ok(buffer)
    }

    fn allocate_staging(&self, len: usize) -> Result<Buffer, BufferError> {
        PinnedMemory::new(&self.shared, len).map(Buffer::new)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

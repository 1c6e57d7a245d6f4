use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::{Buffer, BufferError, Event, Layout};

/// Kinds of device, numbered as `DLDeviceType` in DLPack 1.1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
#[repr(i32)]
pub enum DeviceKind {
    /// Host memory.
    Cpu = 1,
    /// NVIDIA device memory.
    Cuda = 2,
    /// Host memory pinned for CUDA.
    CudaHost = 3,
    /// OpenCL.
    OpenCl = 4,
    /// Vulkan.
    Vulkan = 7,
    /// Metal.
    Metal = 8,
    /// AMD device memory.
    Rocm = 10,
    /// Host memory pinned for ROCm.
    RocmHost = 11,
    /// For devices outside the standard list; the toy devices of tests use it.
    ExtDev = 12,
    /// CUDA managed memory.
    CudaManaged = 13,
    /// oneAPI.
    OneApi = 14,
}

/// One device: a kind and an ordinal, as in DLPack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeviceId {
    /// The kind of device.
    pub kind: DeviceKind,
    /// Which one of that kind, from 0.
    pub ordinal: i32,
}

impl DeviceId {
    /// The host.
    pub const CPU: Self = Self::new(DeviceKind::Cpu, 0);

    /// The `ordinal`-th device of `kind`.
    pub const fn new(kind: DeviceKind, ordinal: i32) -> Self {
        Self { kind, ordinal }
    }
}

impl fmt::Display for DeviceId {
    /// `cpu`, `cuda:0`, ...
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.kind {
            DeviceKind::Cpu => return f.write_str("cpu"),
            DeviceKind::Cuda => "cuda",
            DeviceKind::CudaHost => "cuda_host",
            DeviceKind::OpenCl => "opencl",
            DeviceKind::Vulkan => "vulkan",
            DeviceKind::Metal => "metal",
            DeviceKind::Rocm => "rocm",
            DeviceKind::RocmHost => "rocm_host",
            DeviceKind::ExtDev => "ext",
            DeviceKind::CudaManaged => "cuda_managed",
            DeviceKind::OneApi => "oneapi",
        };
        write!(f, "{name}:{}", self.ordinal)
    }
}

/// A number that tells queues apart, over all devices of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct QueueId(u64);

impl QueueId {
    /// A number no other queue has.
    pub fn unique() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// A box of elements in a buffer: where a decoder scatters to, or an encoder gathers from.
#[derive(Debug, Clone)]
pub struct Region {
    /// The bytes.
    pub buffer: Buffer,
    /// The elements in them; offsets count from the start of `buffer`.
    pub layout: Layout,
}

impl Region {
    /// A box of `buffer`.
    ///
    /// # Errors
    /// [`crate::BufferErrorKind::Parameter`] when an element would lie outside.
    pub fn new(buffer: Buffer, layout: Layout) -> Result<Self, BufferError> {
        layout.check_within(buffer.len())?;
        Ok(Self { buffer, layout })
    }
}

/// Somewhere that bytes can live and work can be enqueued.
///
/// A device is a value: there is no current device, no default queue and no global state.
pub trait Device: fmt::Debug + Send + Sync + 'static {
    /// Which device this is.
    fn id(&self) -> DeviceId;

    /// The device's own name, as a person would recognise it.
    fn name(&self) -> String;

    /// Whether the host can read and write this device's buffers where they are. If so, [`Device::allocate_staging`] gives
    /// device memory, and nothing needs to be copied between the two.
    fn is_unified(&self) -> bool;

    /// A new queue. Queues run side by side; one queue runs its work in order.
    ///
    /// # Errors
    /// [`crate::BufferErrorKind::Device`] when the device refuses.
    fn create_queue(&self) -> Result<Arc<dyn Queue>, BufferError>;

    /// `len` bytes of device memory, aligned to at least 256 bytes where `len` is not 0. The contents are undefined until
    /// written. The memory may be used by work on `queue` at once; other queues are ordered by the buffer's events.
    ///
    /// # Errors
    /// [`crate::BufferErrorKind::OutOfMemory`] when there is no room.
    fn allocate(&self, len: usize, queue: &dyn Queue) -> Result<Buffer, BufferError>;

    /// `len` bytes that the host can write and from which this device copies best (pinned, or shared). The bytes are initialised.
    ///
    /// # Errors
    /// [`crate::BufferErrorKind::OutOfMemory`] when there is no room.
    fn allocate_staging(&self, len: usize) -> Result<Buffer, BufferError>;

    /// The implementation, for the codecs that were written for it.
    fn as_any(&self) -> &dyn Any;
}

/// An in-order queue of work on one device.
///
/// Every method enqueues and returns; none waits. An implementation orders its work and notes it on the buffers with
/// [`crate::enqueue`]. A source or destination may be host memory or memory of this queue's device; other pairs
/// are [`crate::BufferErrorKind::Unsupported`] unless the device says more. Bytes that are read and bytes that are written by one call
/// do not overlap. Methods may be called from several threads; work that is enqueued may outlive the queue's handle.
pub trait Queue: fmt::Debug + Send + Sync + 'static {
    /// Tells queues apart.
    fn id(&self) -> QueueId;

    /// The device this queue runs on.
    fn device(&self) -> DeviceId;

    /// Marks the point after everything enqueued so far. Called by [`crate::enqueue`] while it holds the locks of the buffers at hand: an
    /// implementation uses no buffers here.
    ///
    /// # Errors
    /// [`crate::BufferErrorKind::Device`] when the device refuses.
    fn record(&self) -> Result<Event, BufferError>;

    /// Work enqueued after this call starts only once `event` is complete. The host does not wait.
    ///
    /// # Errors
    /// [`crate::BufferErrorKind::Device`] when the device refuses.
    fn wait_for(&self, event: &Event) -> Result<(), BufferError>;

    /// Copies all of `source` to `destination`, of the same length, on any pairing of host and this device.
    ///
    /// # Errors
    /// [`crate::BufferErrorKind::Parameter`] when the lengths differ.
    fn copy(&self, source: &Buffer, destination: &Buffer) -> Result<(), BufferError>;

    /// Copies a box to a box of the same shape and element size, both on this device (or host-visible where the device is unified).
    ///
    /// # Errors
    /// [`crate::BufferErrorKind::Parameter`] when shapes or element sizes differ.
    fn copy_region(&self, source: &Region, destination: &Region) -> Result<(), BufferError>;

    /// Writes the bytes of one element to every element of a box on this device.
    ///
    /// # Errors
    /// [`crate::BufferErrorKind::Parameter`] when `element` is not one element long.
    fn fill_region(&self, destination: &Region, element: &[u8]) -> Result<(), BufferError>;

    /// The implementation, for the codecs that launch their own work on it.
    fn as_any(&self) -> &dyn Any;
}

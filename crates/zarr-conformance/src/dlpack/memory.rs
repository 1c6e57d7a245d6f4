//! The memory that tensors lie in: the laws reach their bytes only through it, so that it may be a device's.
#![expect(unsafe_code, reason = "DLPack is pointers")]

use std::any::Any;
use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;

use zarr_buffer_api::{Buffer, BufferError, Device, DeviceId, Memory, Queue};
use zarr_buffer_dlpack::abi::DLDevice;
use zarr_buffer_dlpack::device_to_raw;

/// Memory of one device, and how the host gets at it.
///
/// # Safety
/// What [`TensorMemory::place`] gives is memory of the device, and holds the bytes until [`Placed::hold`] is dropped.
pub unsafe trait TensorMemory: Send + Sync {
    /// What tensors in it name as their device.
    fn device(&self) -> DLDevice;

    /// Copies bytes of a tensor to the host, and waits for that and for whatever writes them.
    ///
    /// # Errors
    /// Why they cannot be had, in words: they are not of this device, for one.
    ///
    /// # Safety
    /// If `from` is memory of the device at all, `to.len()` bytes are there.
    unsafe fn read(&self, from: *const u8, to: &mut [u8]) -> Result<(), String>;

    /// Memory with these bytes; it is aligned for any elements.
    ///
    /// # Errors
    /// Why there is none, in words.
    fn place(&self, bytes: &[u8]) -> Result<Placed, String>;
}

/// Bytes in the memory of a device.
pub struct Placed {
    /// Where they start. The host may be unable to dereference it.
    pub start: *mut u8,
    /// Keeps them.
    pub hold: Box<dyn Any + Send>,
}

impl fmt::Debug for Placed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Placed").field("start", &self.start).finish_non_exhaustive()
    }
}

/// Memory that the host dereferences.
#[derive(Debug, Clone, Copy)]
pub struct HostMemory(DLDevice);

impl Default for HostMemory {
    fn default() -> Self {
        Self(device_to_raw(DeviceId::CPU))
    }
}

impl HostMemory {
    /// Memory that tensors name as another device, which the host may dereference all the same: pinned memory, for one. What is placed there is plain memory.
    pub fn named(device: DeviceId) -> Self {
        Self(device_to_raw(device))
    }
}

// SAFETY: plain memory, which its box keeps.
unsafe impl TensorMemory for HostMemory {
    fn device(&self) -> DLDevice {
        self.0
    }

    unsafe fn read(&self, from: *const u8, to: &mut [u8]) -> Result<(), String> {
        // SAFETY: the caller's promise; nobody else has `to`.
        unsafe { from.copy_to_nonoverlapping(to.as_mut_ptr(), to.len()) };
        Ok(())
    }

    fn place(&self, bytes: &[u8]) -> Result<Placed, String> {
        let mut words = vec![0u128; bytes.len().div_ceil(16) + 1];
        for (word, bytes) in words.iter_mut().zip(bytes.chunks(16)) {
            let mut whole = [0; 16];
            whole[..bytes.len()].copy_from_slice(bytes);
            *word = u128::from_ne_bytes(whole);
        }
        Ok(Placed { start: words.as_mut_ptr().cast(), hold: Box::new(words) })
    }
}

/// Memory of a [`Device`]; copies of its queue read it.
#[derive(Debug, Clone)]
pub struct DeviceMemory {
    device: Arc<dyn Device>,
    queue: Arc<dyn Queue>,
}

impl DeviceMemory {
    /// Memory of `device`.
    ///
    /// # Errors
    /// As [`Device::create_queue`].
    pub fn new(device: Arc<dyn Device>) -> Result<Self, BufferError> {
        Ok(Self { queue: device.create_queue()?, device })
    }

    /// Where the copies are enqueued.
    pub fn queue(&self) -> &Arc<dyn Queue> {
        &self.queue
    }

    /// A buffer with these bytes, which are there when this returns.
    ///
    /// # Errors
    /// As [`Device::allocate`] and [`Queue::copy`].
    pub fn upload(&self, bytes: &[u8]) -> Result<Buffer, BufferError> {
        let there = self.device.allocate(bytes.len(), &*self.queue)?;
        self.queue.copy(&Buffer::from_vec(bytes.to_vec()), &there)?;
        there.wait()?;
        Ok(there)
    }

    /// The bytes of a buffer, behind all work on them.
    ///
    /// # Errors
    /// As [`Queue::copy`]; what that work failed of.
    pub fn download(&self, buffer: &Buffer) -> Result<Vec<u8>, BufferError> {
        let here = Buffer::from_vec(vec![0; buffer.len()]);
        self.queue.copy(buffer, &here)?;
        here.wait()?;
        Ok(here.host_read()?.to_vec())
    }
}

// SAFETY: what a device allocates is its memory for as long as the buffer is there.
unsafe impl TensorMemory for DeviceMemory {
    fn device(&self) -> DLDevice {
        device_to_raw(self.device.id())
    }

    unsafe fn read(&self, from: *const u8, to: &mut [u8]) -> Result<(), String> {
        let there = At { device: self.device.id(), address: from.addr() as u64, len: to.len() };
        to.copy_from_slice(&self.download(&Buffer::new(there)).map_err(|error| error.to_string())?);
        Ok(())
    }

    fn place(&self, bytes: &[u8]) -> Result<Placed, String> {
        let buffer = self.upload(bytes).map_err(|error| error.to_string())?;
        Ok(Placed { start: std::ptr::with_exposed_provenance_mut(buffer.address() as usize), hold: Box::new(buffer) })
    }
}

/// Bytes of a tensor, while they are copied.
#[derive(Debug)]
struct At {
    device: DeviceId,
    address: u64,
    len: usize,
}

// SAFETY: made and dropped within `read`, whose caller promises the bytes; the copy is waited for there, and where waiting fails, `retire` waits by
// default. Nothing here touches the bytes.
unsafe impl Memory for At {
    fn device(&self) -> DeviceId {
        self.device
    }

    fn len(&self) -> usize {
        self.len
    }

    fn address(&self) -> u64 {
        self.address
    }

    fn host_pointer(&self) -> Option<NonNull<u8>> {
        None
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

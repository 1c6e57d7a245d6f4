//! Tensors in device memory, handed to another process on the same machine without a copy.
//!
//! The exporter allocates with [`CudaDevice::allocate_exportable`] (memory of the pool cannot be exported), writes, calls [`export`], and
//! sends the descriptor, as JSON say, to the other process. That one calls [`open`], or takes the fields apart and opens them with any other library:
//! the handles are those of `cudaIpcOpenMemHandle` and `cudaIpcOpenEventHandle`.
//!
//! From Python, with CuPy (strides are in bytes, and `first` is 0 unless one is negative):
//!
//! ```python
//! runtime = cupy.cuda.runtime
//! base = runtime.ipcOpenMemHandle(bytes.fromhex(d["memory_handle"]))
//! event = runtime.ipcOpenEventHandle(bytes.fromhex(d["ready_event"]))
//! runtime.streamWaitEvent(cupy.cuda.get_current_stream().ptr, event)
//! start = base + d["offset"] + d["first"]
//! memory = cupy.cuda.UnownedMemory(start, d["bytes"] - d["first"], owner=None)
//! array = cupy.ndarray(d["shape"], d["dtype"], cupy.cuda.MemoryPointer(memory, 0), d["strides"])
//! ```
//!
//! # Who owns what, and how long
//!
//! * The exporter owns the memory. [`IpcExport`] keeps memory and event alive, and must itself be kept until the other process says, by whatever
//!   way the two talk, that it has dropped what it opened. Memory that is reused or freed before that changes under the opener's hands.
//! * The opener holds a mapping. It is closed when the last buffer of it goes and work on it is done.
//! * The exporter's work before the export is ordered before the opener's by the event; there is no order the other way. Whoever
//!   writes later has to agree with the other first.
//! * A process cannot open what it exported itself, nor export what it opened. Both need the same device, by its UUID.

mod descriptor;
mod memory;

use std::fmt;
use std::sync::Arc;

use zarr_buffer_api::{Buffer, BufferError, BufferErrorKind, Device, Layout, enqueue};

pub use descriptor::IpcDescriptor;

use crate::driver::{Imported, RawEvent};
use crate::{CudaDevice, CudaQueue};
use descriptor::{handle_bytes, handle_text};
use memory::{ExportableMemory, ImportedMemory};

/// What a buffer's bytes are, to who opens it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IpcTensor {
    /// Name of the data type, as Zarr has it.
    pub dtype: String,
    /// The elements within the buffer.
    pub layout: Layout,
    /// Whether writing is forbidden.
    pub read_only: bool,
}

/// An export under way: the descriptor, and what keeps it true. Keep it until the other process is done.
pub struct IpcExport {
    descriptor: IpcDescriptor,
    /// Goes before the buffer, which holds the device.
    _event: RawEvent,
    buffer: Buffer,
}

impl IpcExport {
    /// What to send to the other process.
    pub fn descriptor(&self) -> &IpcDescriptor {
        &self.descriptor
    }

    /// The bytes.
    pub fn buffer(&self) -> &Buffer {
        &self.buffer
    }
}

impl fmt::Debug for IpcExport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IpcExport").field("descriptor", &self.descriptor).field("buffer", &self.buffer).finish_non_exhaustive()
    }
}

impl CudaDevice {
    /// `len` bytes of device memory that can be exported to other processes. They are there at once, for all queues, with undefined
    /// contents; whole pages of 2 MiB are taken, and kept for reuse.
    ///
    /// # Errors
    /// [`BufferErrorKind::OutOfMemory`] when there is no room.
    pub fn allocate_exportable(&self, len: usize) -> Result<Buffer, BufferError> {
        Ok(Buffer::new(ExportableMemory::new(self.shared(), len)?))
    }
}

/// Makes a tensor known to other processes. The event that goes with it lies on `queue`, behind the last write to the buffer.
///
/// # Errors
/// [`BufferErrorKind::Unsupported`] when the memory is not from [`CudaDevice::allocate_exportable`], or the driver or machine has no IPC;
/// [`BufferErrorKind::Parameter`] when the layout does not lie in the buffer or the queue is of another device; as [`enqueue`].
pub fn export(buffer: &Buffer, tensor: &IpcTensor, queue: &CudaQueue) -> Result<IpcExport, BufferError> {
    let device = queue.cuda_device();
    let memory = buffer.memory().as_any().downcast_ref::<ExportableMemory>().ok_or_else(|| {
        let message = "this memory cannot be exported; allocate it with `allocate_exportable`";
        BufferError::new(BufferErrorKind::Unsupported, message).on(buffer.device())
    })?;
    if buffer.device() != device.id() {
        return Err(BufferError::parameter("a queue of another device").on(buffer.device()));
    }
    tensor.layout.check_within(buffer.len())?;
    let fail = |error| device.error(error);
    let stream = queue.open()?;
    let event = || {
        let _entered = stream.context().enter()?;
        let event = RawEvent::new(stream.context(), RawEvent::INTERPROCESS)?;
        let handle = event.export()?;
        Ok((event, handle))
    };
    let (event, event_handle) = event().map_err(fail)?;
    let (memory_handle, allocation_size) = memory.export().map_err(fail)?;
    enqueue(queue, &[buffer], &[], || stream.record(&event).map_err(fail))?;
    let descriptor = IpcDescriptor {
        version: IpcDescriptor::VERSION,
        device_uuid: device.info().uuid.clone(),
        memory_handle: handle_text(memory_handle),
        allocation_size,
        offset: buffer.offset() as u64,
        bytes: buffer.len() as u64,
        dtype: tensor.dtype.clone(),
        item_size: tensor.layout.item_size as u64,
        shape: tensor.layout.shape.iter().map(|&len| len as u64).collect(),
        strides: tensor.layout.strides.iter().map(|&stride| stride as i64).collect(),
        first: tensor.layout.offset as u64,
        read_only: tensor.read_only,
        ready_event: Some(handle_text(event_handle)),
    };
    Ok(IpcExport { descriptor, buffer: buffer.clone(), _event: event })
}

/// Opens another process's tensor. Work on `queue`, and any that is ordered after what the buffer knows, comes after the exporter's. Of a tensor
/// that is read-only nothing here prevents writes: whoever opens it has to keep to it.
///
/// # Errors
/// [`BufferErrorKind::Parameter`] when the descriptor contradicts itself or is of another device than the queue; [`BufferErrorKind::Device`] when
/// the driver cannot open it: the exporter is gone, or is this process, or the processes are kept apart (containers).
pub fn open(descriptor: &IpcDescriptor, queue: &CudaQueue) -> Result<(Buffer, IpcTensor), BufferError> {
    let tensor = descriptor.tensor()?;
    let device = queue.cuda_device();
    if descriptor.device_uuid != device.info().uuid {
        let message = format!("IPC descriptor: memory of {}, not of {}", descriptor.device_uuid, device.info().uuid);
        return Err(BufferError::parameter(message).on(device.id()));
    }
    let shared = device.shared();
    shared.sweep();
    let fail = |error| device.error(error);
    let stream = queue.open()?;
    let memory = Imported::open(&shared.context, handle_bytes(&descriptor.memory_handle)?).map_err(fail)?;
    let found = memory.len().map_err(fail)? as u64;
    if found < descriptor.offset + descriptor.bytes {
        let message = format!("IPC descriptor: {} bytes from byte {}, and the allocation has {found}", descriptor.bytes, descriptor.offset);
        return Err(BufferError::parameter(message).on(device.id()));
    }
    let event = match &descriptor.ready_event {
        None => None,
        Some(handle) => Some(RawEvent::import(&shared.context, handle_bytes(handle)?).map_err(fail)?),
    };
    // Of the whole tensor's bytes, as the exporter's buffer has them.
    let buffer = Buffer::new(ImportedMemory::new(Arc::clone(shared), memory, event, descriptor)?);
    let opened = buffer.memory().as_any().downcast_ref::<ImportedMemory>().and_then(ImportedMemory::event);
    enqueue(queue, &[], &[&buffer], || opened.map_or(Ok(()), |event| stream.wait_event(event).map_err(fail)))?;
    Ok((buffer, tensor))
}

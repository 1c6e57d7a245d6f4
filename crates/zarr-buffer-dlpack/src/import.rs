//! Managed tensors to buffers.

use std::any::Any;
use std::ptr::NonNull;

use zarr_buffer_api::{Buffer, DeviceId, Event, Layout, Memory, Region};
use zarr_meta::DataType;

use crate::abi::{DLPackVersion, FLAG_IS_COPIED, FLAG_READ_ONLY};
use crate::device::{check_addresses, is_host};
use crate::{DlpackError, Managed, ManagedTensor, Reaper, device_from_raw};

/// What an imported buffer will be used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// It is read. A read-only tensor is taken only so, and the caller promises that nobody writes through the buffer.
    ReadOnly,
    /// It is read and written.
    ReadWrite,
}

/// A tensor that was taken in.
#[derive(Debug, Clone)]
pub struct Imported {
    /// The elements. The buffer reaches from the first byte of any element to the last; the tensor is given back when it and all its clones are gone.
    pub region: Region,
    /// The data type of the elements.
    pub data_type: DataType,
    /// Whether the producer forbids writing. The legacy structure cannot.
    pub read_only: bool,
    /// Whether the producer made a copy for us.
    pub copied: bool,
    /// The version that the tensor stated; `None` for the legacy structure.
    pub version: Option<DLPackVersion>,
}

impl<T: ManagedTensor> Managed<T> {
    /// Makes a buffer of the tensor. Its deleter is called once: when the last buffer is gone and work on it is done, on whichever thread that is, or now if
    /// the tensor is refused.
    ///
    /// # Errors
    /// [`DlpackError::ElementType`] for vectors, handles, packed elements, and types that Zarr lacks; [`DlpackError::Device`] for kinds that are not known, or whose
    /// tensors are handles; [`DlpackError::Layout`] for negative lengths and whatever overflows; [`DlpackError::Null`]; [`DlpackError::ReadOnly`].
    ///
    /// # Safety
    /// Until the deleter is called, the bytes from the first element to the last are there, initialised, on the device that the tensor names. From this
    /// call on nobody uses them but through the buffer (with [`Access::ReadOnly`]: nobody writes them, through the buffer or otherwise);
    /// of strided tensors that includes the bytes between the elements. Whatever work of others on them was under way is done, or ordered before all that
    /// the caller will enqueue.
    pub unsafe fn import(self, access: Access) -> Result<Imported, DlpackError> {
        take_in(self, access, None)
    }

    /// As [`Managed::import`]; dropping the last buffer does not wait for work on it, but leaves the tensor to `reaper`.
    ///
    /// # Errors
    /// As [`Managed::import`].
    ///
    /// # Safety
    /// As [`Managed::import`].
    pub unsafe fn import_with(self, access: Access, reaper: &Reaper) -> Result<Imported, DlpackError> {
        reaper.sweep();
        take_in(self, access, Some(reaper.clone()))
    }
}

fn take_in<T: ManagedTensor>(managed: Managed<T>, access: Access, reaper: Option<Reaper>) -> Result<Imported, DlpackError> {
    let tensor = *managed.tensor();
    let read_only = managed.flags() & FLAG_READ_ONLY != 0;
    if read_only && access == Access::ReadWrite {
        return Err(DlpackError::ReadOnly);
    }
    let device = device_from_raw(tensor.device)?;
    check_addresses(device)?;
    let data_type = managed.element_type().to_data_type()?;
    let item_size = data_type.fixed_size().unwrap_or(1);
    let (span, layout) = place(&managed, item_size)?;
    let mut memory = Foreign::new(&tensor, device, span, reaper)?;
    let copied = managed.flags() & FLAG_IS_COPIED != 0;
    // SAFETY: a structure of this kind, since `managed` owns one.
    let version = unsafe { T::version(NonNull::from(managed.get())) };
    memory.owner = Some(Box::new(managed));
    let buffer = Buffer::new(memory);
    Ok(Imported { region: Region::new(buffer, layout)?, data_type, read_only, copied, version })
}

/// Bytes of a tensor, counted from its first element.
struct Span {
    /// Not positive: where a negative stride leads.
    low: isize,
    len: usize,
}

/// The bytes that the elements span, and where each lies in them.
fn place<T: ManagedTensor>(managed: &Managed<T>, item_size: usize) -> Result<(Span, Layout), DlpackError> {
    let ndim = managed.tensor().ndim;
    let axes = usize::try_from(ndim).map_err(|_| DlpackError::Layout(format!("{ndim} axes")))?;
    if axes != 0 && managed.tensor().shape.is_null() {
        return Err(DlpackError::Null { what: "the shape" });
    }
    let too_large = || DlpackError::Layout(format!("shape {:?}, strides {:?} overflow", managed.shape(), managed.strides()));
    let shape = managed.shape().iter().map(|&len| usize::try_from(len));
    let shape: Vec<usize> =
        shape.collect::<Result<_, _>>().map_err(|_| DlpackError::Layout(format!("shape {:?} is not one", managed.shape())))?;
    let mut layout = Layout::contiguous(&shape, item_size)?;
    if let Some(strides) = managed.strides() {
        let item_size = isize::try_from(item_size).map_err(|_| too_large())?;
        for ((bytes, &stride), &len) in layout.strides.iter_mut().zip(strides).zip(&shape) {
            let product = isize::try_from(stride).ok().and_then(|stride| stride.checked_mul(item_size));
            // Nobody steps along an axis of one element, whatever its stride says.
            *bytes = if len > 1 { product.ok_or_else(too_large)? } else { product.unwrap_or(0) };
        }
    }
    if layout.is_empty() {
        return Ok((Span { low: 0, len: 0 }, layout));
    }
    let (mut low, mut high) = (0isize, isize::try_from(item_size).map_err(|_| too_large())?);
    for (&len, &stride) in layout.shape.iter().zip(&layout.strides) {
        let reach = isize::try_from(len - 1).ok().and_then(|steps| stride.checked_mul(steps)).ok_or_else(too_large)?;
        let end = if reach < 0 { &mut low } else { &mut high };
        *end = end.checked_add(reach).ok_or_else(too_large)?;
    }
    let len = high.checked_sub(low).and_then(|len| usize::try_from(len).ok()).ok_or_else(too_large)?;
    layout.offset = low.unsigned_abs();
    Ok((Span { low, len }, layout))
}

/// The memory of somebody else's tensor.
#[derive(Debug)]
struct Foreign {
    device: DeviceId,
    address: u64,
    host: Option<NonNull<u8>>,
    len: usize,
    /// The managed tensor, given back when this is dropped. `None` only once it was left to the reaper.
    owner: Option<Box<dyn Any + Send + Sync>>,
    reaper: Option<Reaper>,
}

impl Foreign {
    fn new(tensor: &crate::abi::DLTensor, device: DeviceId, span: Span, reaper: Option<Reaper>) -> Result<Self, DlpackError> {
        let host = is_host(device.kind);
        if span.len == 0 {
            return Ok(Self { device, address: 0, host: host.then_some(NonNull::dangling()), len: 0, owner: None, reaper });
        }
        if tensor.data.is_null() {
            return Err(DlpackError::Null { what: "the data pointer of a tensor with elements" });
        }
        let overflow = || DlpackError::Layout(format!("{} bytes at {:p} + {} wrap around", span.len, tensor.data, tensor.byte_offset));
        let offset = usize::try_from(tensor.byte_offset).map_err(|_| overflow())?;
        let address = tensor.data.addr().checked_add(offset).and_then(|first| first.checked_add_signed(span.low)).ok_or_else(overflow)?;
        address.checked_add(span.len).ok_or_else(overflow)?;
        let start = tensor.data.cast::<u8>().wrapping_add(offset).wrapping_offset(span.low);
        let host = if host { Some(NonNull::new(start).ok_or_else(overflow)?) } else { None };
        Ok(Self { device, address: address as u64, host, len: span.len, owner: None, reaper })
    }
}

// SAFETY: the addresses are plain numbers; bytes and deleter may be used from any thread by the contract of `Managed`.
unsafe impl Send for Foreign {}
// SAFETY: shared access gives out only the addresses.
unsafe impl Sync for Foreign {}

// SAFETY: whoever imported promised that the bytes are there, initialised and used by nobody else until the deleter is called, which the owner
// does when this value, or the reaper's entry after it, is dropped. The addresses are fixed, and nothing here touches the bytes. Where the tensor is
// read-only, the promise is that nobody writes.
unsafe impl Memory for Foreign {
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
        self.host
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn retire(&mut self, pending: &[Event]) {
        match (&self.reaper, self.owner.take()) {
            (Some(reaper), Some(owner)) => reaper.put_aside(pending, owner),
            (_, owner) => {
                for event in pending {
                    // The work is over when it failed, too.
                    let _ = event.wait();
                }
                drop(owner);
            }
        }
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        if let Some(reaper) = &self.reaper {
            reaper.sweep();
        }
    }
}

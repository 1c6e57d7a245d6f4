//! Buffers to managed tensors.

use std::ffi::c_void;
use std::fmt;

use zarr_buffer_api::{Buffer, DeviceId, DeviceKind, Layout, Region};
use zarr_meta::DataType;

use crate::abi::{
    DLManagedTensor, DLManagedTensorVersioned, DLTensor, FLAG_IS_COPIED, FLAG_IS_SUBBYTE_TYPE_PADDED, FLAG_READ_ONLY, VERSION,
};
use crate::device::{check_addresses, is_host};
use crate::{DlpackError, ElementType, Managed, ManagedTensor, device_to_raw};

/// Called with the tensor's share of the buffer.
type Hook = Box<dyn FnOnce(&Buffer) + Send + Sync>;

/// A tensor about to be handed out.
///
/// The managed tensor keeps the buffer's allocation alive until its deleter runs, on any thread. `data` points at the first element and `byte_offset` is 0: that
/// is what consumers expect that look at only one of the two. Without elements `data` is null. Strides are always there.
///
/// Handing out orders nothing: see [`crate::Request`] for who must wait for [`Buffer::ready`]. What the consumer does with the bytes is not seen by the
/// buffer, so that whoever goes on using the buffer agrees with the consumer on the order; [`Export::on_release`] is where to make up for it.
pub struct Export {
    buffer: Buffer,
    device: DeviceId,
    /// Bytes from the start of the buffer to the first element.
    first: usize,
    /// The shape, then the strides in elements.
    dims: Box<[i64]>,
    empty: bool,
    element: ElementType,
    read_only: bool,
    copied: bool,
    on_release: Option<Hook>,
}

impl Export {
    /// Elements that start at the start of a buffer. Strides are in elements; without them the elements are in C order.
    ///
    /// # Errors
    /// [`DlpackError::DataType`] for what DLPack cannot name; [`DlpackError::Layout`] when an element lies outside of the buffer;
    /// [`DlpackError::Device`] where tensors are handles.
    pub fn new(buffer: &Buffer, shape: &[u64], strides: Option<&[i64]>, data_type: &DataType) -> Result<Self, DlpackError> {
        let element = ElementType::of(data_type)?;
        let item_size = data_type.fixed_size().unwrap_or(1);
        let too_large = || DlpackError::Layout(format!("shape {shape:?} does not fit the address space"));
        let lens: Vec<usize> = shape.iter().map(|&len| usize::try_from(len)).collect::<Result<_, _>>().map_err(|_| too_large())?;
        let mut layout = Layout::contiguous(&lens, item_size)?;
        if let Some(strides) = strides {
            let bytes = strides.iter().map(|&stride| isize::try_from(stride).ok()?.checked_mul(item_size.cast_signed()));
            layout.strides = bytes.collect::<Option<_>>().ok_or_else(too_large)?;
        }
        Self::from_layout(buffer, &layout, element)
    }

    /// A box of a buffer. Its strides must be whole elements.
    ///
    /// # Errors
    /// As [`Export::new`]; [`DlpackError::Layout`] when strides are not whole elements, or elements do not have the size of the data type.
    pub fn from_region(region: &Region, data_type: &DataType) -> Result<Self, DlpackError> {
        let element = ElementType::of(data_type)?;
        if data_type.fixed_size() != Some(region.layout.item_size) {
            return Err(DlpackError::Layout(format!("elements of {} bytes as {data_type}", region.layout.item_size)));
        }
        Self::from_layout(&region.buffer, &region.layout, element)
    }

    fn from_layout(buffer: &Buffer, layout: &Layout, element: ElementType) -> Result<Self, DlpackError> {
        check_addresses(buffer.device())?;
        layout.check_within(buffer.len())?;
        i32::try_from(layout.shape.len()).map_err(|_| DlpackError::Layout(format!("{} axes", layout.shape.len())))?;
        let item_size = layout.item_size.cast_signed();
        let shape = layout.shape.iter().map(|&len| i64::try_from(len).ok());
        let strides = layout.strides.iter().map(|&stride| (stride % item_size == 0).then_some((stride / item_size) as i64));
        let dims = shape.chain(strides).collect::<Option<_>>();
        let dims = dims.ok_or_else(|| DlpackError::Layout(format!("strides of {:?} bytes are not whole elements", layout.strides)))?;
        Ok(Self {
            buffer: buffer.clone(),
            device: buffer.device(),
            first: layout.offset,
            dims,
            empty: layout.is_empty(),
            element,
            read_only: false,
            copied: false,
            on_release: None,
        })
    }

    /// Says that the consumer must not write.
    #[must_use]
    pub fn read_only(mut self, read_only: bool) -> Self {
        self.read_only = read_only;
        self
    }

    /// Says that the bytes were copied for the consumer, and nobody else uses them.
    #[must_use]
    pub fn copied(mut self, copied: bool) -> Self {
        self.copied = copied;
        self
    }

    /// Hands memory that the host can dereference out as plain host memory, whatever its device: for consumers that do not know of pinned memory.
    ///
    /// # Errors
    /// [`DlpackError::Device`] when the host cannot dereference it.
    pub fn on_host(mut self) -> Result<Self, DlpackError> {
        if !self.buffer.is_host_visible() {
            let raw = device_to_raw(self.device);
            let reason = "the host cannot dereference its memory";
            return Err(DlpackError::Device { device_type: raw.device_type, device_id: raw.device_id, reason });
        }
        self.device = DeviceId::CPU;
        Ok(self)
    }

    /// What the deleter does first, on whichever thread it is called, with the buffer still there. Consumers give tensors back while their own work on them is
    /// still under way: this is the place to enqueue a wait for it on the buffer, lest its memory is used anew too early. Must not panic.
    #[must_use]
    pub fn on_release(mut self, hook: impl FnOnce(&Buffer) + Send + Sync + 'static) -> Self {
        self.on_release = Some(Box::new(hook));
        self
    }

    /// The device that the tensor will name.
    pub fn device(&self) -> DeviceId {
        self.device
    }

    /// The structure before version 1.
    ///
    /// # Errors
    /// [`DlpackError::NeedsVersioned`] when the tensor is read-only, or its elements are narrower than a byte: there is no room to say so.
    pub fn into_legacy(self) -> Result<Managed<DLManagedTensor>, DlpackError> {
        if self.read_only {
            return Err(DlpackError::NeedsVersioned { what: "that the tensor is read-only" });
        }
        if self.element.padded {
            return Err(DlpackError::NeedsVersioned { what: "that elements narrower than a byte have a byte each" });
        }
        self.into_managed(|dl_tensor, manager_ctx| DLManagedTensor { dl_tensor, manager_ctx, deleter: Some(release_legacy) })
    }

    /// The structure of version 1.
    ///
    /// # Errors
    /// None yet; the signature is that of [`Export::into_legacy`].
    pub fn into_versioned(self) -> Result<Managed<DLManagedTensorVersioned>, DlpackError> {
        let flag = |set: bool, flag: u64| if set { flag } else { 0 };
        let flags = flag(self.read_only, FLAG_READ_ONLY)
            | flag(self.copied, FLAG_IS_COPIED)
            | flag(self.element.padded, FLAG_IS_SUBBYTE_TYPE_PADDED);
        self.into_managed(|dl_tensor, manager_ctx| DLManagedTensorVersioned {
            version: VERSION,
            manager_ctx,
            deleter: Some(release_versioned),
            flags,
            dl_tensor,
        })
    }

    fn into_managed<T: ManagedTensor>(self, structure: impl FnOnce(DLTensor, *mut c_void) -> T) -> Result<Managed<T>, DlpackError> {
        let data = self.data();
        let Self { buffer, device, dims, element, on_release, .. } = self;
        let axes = dims.len() / 2;
        let dims = Dims::new(dims);
        let tensor = DLTensor {
            data,
            device: exported_device(device),
            ndim: axes as i32,
            dtype: element.raw,
            shape: dims.at(0),
            strides: dims.at(axes),
            byte_offset: 0,
        };
        let holder = Box::into_raw(Box::<Holder<T>>::new_uninit());
        let managed = structure(tensor, holder.cast());
        // SAFETY: freshly allocated for exactly this type, and nobody else knows of it.
        unsafe { holder.cast::<Holder<T>>().write(Holder { managed, _dims: dims, buffer, on_release }) };
        // SAFETY: the structure is the holder's first field. We own it; its deleter frees the holder, which may happen on any thread, since
        // buffers and numbers may be dropped on any; shape and strides live in the holder and nobody changes them.
        unsafe { Managed::from_raw(holder.cast::<T>()) }
    }

    /// The address of the first element.
    fn data(&self) -> *mut c_void {
        if self.empty {
            return std::ptr::null_mut();
        }
        match self.buffer.memory().host_pointer() {
            Some(base) if is_host(self.device.kind) => base.as_ptr().wrapping_add(self.buffer.offset() + self.first).cast(),
            _ => std::ptr::with_exposed_provenance_mut((self.buffer.address() + self.first as u64) as usize),
        }
    }
}

/// Host memory has no number, DLPack says.
fn exported_device(device: DeviceId) -> crate::abi::DLDevice {
    let host = matches!(device.kind, DeviceKind::Cpu | DeviceKind::CudaHost | DeviceKind::RocmHost);
    device_to_raw(if host { DeviceId::new(device.kind, 0) } else { device })
}

/// Shape and strides at an address that does not change when the value moves.
struct Dims {
    start: *mut i64,
    len: usize,
}

impl Dims {
    fn new(dims: Box<[i64]>) -> Self {
        let len = dims.len();
        Self { start: Box::into_raw(dims).cast(), len }
    }

    fn at(&self, index: usize) -> *mut i64 {
        self.start.wrapping_add(index)
    }
}

impl Drop for Dims {
    fn drop(&mut self) {
        // SAFETY: taken apart in `new`, and put together again only here.
        drop(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(self.start, self.len)) });
    }
}

/// What a tensor of ours owns.
#[repr(C)]
struct Holder<T> {
    managed: T,
    _dims: Dims,
    buffer: Buffer,
    on_release: Option<Hook>,
}

impl<T> Drop for Holder<T> {
    fn drop(&mut self) {
        if let Some(hook) = self.on_release.take() {
            hook(&self.buffer);
        }
    }
}

impl fmt::Debug for Export {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dims = self.dims.split_at(self.dims.len() / 2);
        write!(f, "Export({:?} + {}, shape {:?}, strides {:?}, {:?})", self.buffer, self.first, dims.0, dims.1, self.element)
    }
}

/// # Safety
/// `this` is null or a structure made by [`Export::into_legacy`] that was not given back yet.
unsafe extern "C" fn release_legacy(this: *mut DLManagedTensor) {
    if !this.is_null() {
        // SAFETY: a live structure of ours, by the contract.
        let holder = unsafe { (*this).manager_ctx };
        // SAFETY: the holder that the structure was made with, and this is the one call that frees it.
        drop(unsafe { Box::from_raw(holder.cast::<Holder<DLManagedTensor>>()) });
    }
}

/// # Safety
/// `this` is null or a structure made by [`Export::into_versioned`] that was not given back yet.
unsafe extern "C" fn release_versioned(this: *mut DLManagedTensorVersioned) {
    if !this.is_null() {
        // SAFETY: a live structure of ours, by the contract.
        let holder = unsafe { (*this).manager_ctx };
        // SAFETY: the holder that the structure was made with, and this is the one call that frees it.
        drop(unsafe { Box::from_raw(holder.cast::<Holder<DLManagedTensorVersioned>>()) });
    }
}

//! Tensors of producers, taken over: the one place that follows their pointers.
#![expect(unsafe_code, reason = "DLPack is pointers")]

use std::ptr::NonNull;
use std::sync::Arc;

use zarr_buffer_dlpack::abi::{DLDataType, DLDevice, DLManagedTensor, DLManagedTensorVersioned, DLPackVersion, DLTensor};

use super::{TensorMemory, c_order, places};
use crate::suite::{Broken, ensure};

type Deleter<T> = Option<unsafe extern "C" fn(*mut T)>;

/// What both structures have.
pub(super) trait Structure: Sized + 'static {
    fn tensor(&self) -> DLTensor;
    fn deleter(&self) -> Deleter<Self>;
    fn version(&self) -> Option<DLPackVersion>;
    fn flags(&self) -> u64;
}

impl Structure for DLManagedTensor {
    fn tensor(&self) -> DLTensor {
        self.dl_tensor
    }
    fn deleter(&self) -> Deleter<Self> {
        self.deleter
    }
    fn version(&self) -> Option<DLPackVersion> {
        None
    }
    fn flags(&self) -> u64 {
        0
    }
}

impl Structure for DLManagedTensorVersioned {
    fn tensor(&self) -> DLTensor {
        self.dl_tensor
    }
    fn deleter(&self) -> Deleter<Self> {
        self.deleter
    }
    fn version(&self) -> Option<DLPackVersion> {
        Some(self.version)
    }
    fn flags(&self) -> u64 {
        self.flags
    }
}

/// A tensor of which the deleter is called when it goes.
pub(super) struct Taken<T: Structure> {
    managed: NonNull<T>,
    memory: Arc<dyn TensorMemory>,
}

// SAFETY: a deleter may be called on any thread, and so may the tensor be read.
unsafe impl<T: Structure> Send for Taken<T> {}

impl<T: Structure> Taken<T> {
    /// Takes over what a producer gave, in its memory.
    ///
    /// # Safety
    /// As [`super::ProducerSubject`] says.
    pub(super) unsafe fn new(pointer: *mut T, memory: Arc<dyn TensorMemory>) -> Result<Self, Broken> {
        let managed = NonNull::new(pointer).ok_or_else(|| Broken::Failed("the pointer to the managed tensor is null".into()))?;
        Ok(Self { managed, memory })
    }

    fn get(&self) -> &T {
        // SAFETY: a managed tensor that we own.
        unsafe { self.managed.as_ref() }
    }

    pub(super) fn tensor(&self) -> DLTensor {
        self.get().tensor()
    }

    pub(super) fn device(&self) -> DLDevice {
        self.tensor().device
    }

    pub(super) fn data_type(&self) -> DLDataType {
        self.tensor().dtype
    }

    pub(super) fn version(&self) -> Option<DLPackVersion> {
        self.get().version()
    }

    pub(super) fn flags(&self) -> u64 {
        self.get().flags()
    }

    pub(super) fn has_deleter(&self) -> bool {
        self.get().deleter().is_some()
    }

    pub(super) fn axes(&self) -> Result<usize, Broken> {
        let axes = self.tensor().ndim;
        ensure!((0..=64).contains(&axes), "{axes} axes");
        Ok(axes as usize)
    }

    pub(super) fn shape(&self) -> Result<Vec<i64>, Broken> {
        let axes = self.axes()?;
        self.numbers(self.tensor().shape, axes).ok_or_else(|| Broken::Failed("the shape is null".into()))
    }

    /// `None` where there are none.
    pub(super) fn strides(&self) -> Result<Option<Vec<i64>>, Broken> {
        Ok(self.numbers(self.tensor().strides, self.axes()?))
    }

    fn numbers(&self, pointer: *mut i64, axes: usize) -> Option<Vec<i64>> {
        if axes == 0 {
            return Some(Vec::new());
        }
        if pointer.is_null() {
            return None;
        }
        // SAFETY: not null, so a number for each axis, as long as we own the tensor.
        Some(unsafe { std::slice::from_raw_parts(pointer, axes) }.to_vec())
    }

    /// The elements in C order, of `item_size` bytes each.
    pub(super) fn elements(&self, item_size: usize) -> Result<Vec<u8>, Broken> {
        let shape = self.shape()?;
        let strides = self.strides()?.unwrap_or_else(|| c_order(&shape));
        let tensor = self.tensor();
        let mut elements = Vec::new();
        for place in places(&shape, &strides) {
            ensure!(!tensor.data.is_null(), "there are elements, and no data");
            let at = tensor.byte_offset as isize + place as isize * item_size as isize;
            let start = tensor.data.cast::<u8>().wrapping_offset(at);
            let mut element = vec![0; item_size];
            // SAFETY: an element of a tensor in this memory, as shape, strides and offset of its producer say.
            unsafe { self.memory.read(start, &mut element) }.map_err(Broken::Failed)?;
            elements.extend(element);
        }
        Ok(elements)
    }
}

impl<T: Structure> Drop for Taken<T> {
    fn drop(&mut self) {
        if let Some(deleter) = self.get().deleter() {
            // SAFETY: called once, by the owner.
            unsafe { deleter(self.managed.as_ptr()) };
        }
    }
}

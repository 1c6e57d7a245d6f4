//! Tensors by hand, as another library makes them; their deleters count their calls and free nothing.
#![expect(unsafe_code, reason = "DLPack is pointers")]

use std::ffi::c_void;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicUsize, Ordering};

use zarr_buffer_dlpack::abi::{DLDataType, DLDevice, DLManagedTensor, DLManagedTensorVersioned, DLTensor, VERSION, code};

use super::{ConsumerSubject, Placed, Seen, c_order};
use crate::suite::Broken;

/// What a tensor is made of; to be changed as a case needs it.
pub(super) struct Recipe {
    pub(super) bytes: Vec<u8>,
    /// From the start of `bytes` to what the data pointer points at.
    pub(super) data: usize,
    pub(super) byte_offset: u64,
    pub(super) shape: Vec<i64>,
    pub(super) strides: Option<Vec<i64>>,
    pub(super) ndim: i32,
    pub(super) dtype: DLDataType,
    /// Another device than that of the consumer's memory.
    pub(super) device: Option<DLDevice>,
    pub(super) version: (u32, u32),
    pub(super) flags: u64,
    pub(super) deleter: bool,
    pub(super) null_data: bool,
}

impl Recipe {
    /// Numbers of 32 bits in C order.
    pub(super) fn new(shape: &[i64], bytes: Vec<u8>) -> Self {
        Self {
            bytes,
            data: 0,
            byte_offset: 0,
            shape: shape.to_vec(),
            strides: Some(c_order(shape)),
            ndim: shape.len() as i32,
            dtype: DLDataType { code: code::INT, bits: 32, lanes: 1 },
            device: None,
            version: (VERSION.major, VERSION.minor),
            flags: 0,
            deleter: true,
            null_data: false,
        }
    }
}

/// A tensor, in the memory of a consumer.
pub(super) struct Foreign(NonNull<Parts>);

struct Parts {
    memory: Placed,
    shape: Vec<i64>,
    strides: Vec<i64>,
    calls: AtomicUsize,
    legacy: DLManagedTensor,
    versioned: DLManagedTensorVersioned,
}

unsafe extern "C" fn count_legacy(this: *mut DLManagedTensor) {
    // SAFETY: a structure of ours, which lives until its `Foreign` goes.
    count(unsafe { (*this).manager_ctx });
}

unsafe extern "C" fn count_versioned(this: *mut DLManagedTensorVersioned) {
    // SAFETY: a structure of ours, which lives until its `Foreign` goes.
    count(unsafe { (*this).manager_ctx });
}

fn count(context: *mut c_void) {
    // SAFETY: the context of our structures is their counter, which lives as long as they.
    unsafe { &*context.cast::<AtomicUsize>() }.fetch_add(1, Ordering::SeqCst);
}

impl Foreign {
    /// # Errors
    /// When the consumer's memory has no room.
    pub(super) fn new(recipe: Recipe, subject: &dyn ConsumerSubject) -> Result<Self, Broken> {
        let device = subject.memory().device();
        let memory = subject.memory().place(&recipe.bytes).map_err(Broken::Failed)?;
        let none = DLTensor {
            data: null_mut(),
            device: recipe.device.unwrap_or(device),
            ndim: recipe.ndim,
            dtype: recipe.dtype,
            shape: null_mut(),
            strides: null_mut(),
            byte_offset: recipe.byte_offset,
        };
        let (major, minor) = recipe.version;
        let parts = Box::into_raw(Box::new(Parts {
            memory,
            shape: recipe.shape,
            strides: recipe.strides.clone().unwrap_or_default(),
            calls: AtomicUsize::new(0),
            legacy: DLManagedTensor { dl_tensor: none, manager_ctx: null_mut(), deleter: recipe.deleter.then_some(count_legacy) },
            versioned: DLManagedTensorVersioned {
                version: zarr_buffer_dlpack::abi::DLPackVersion { major, minor },
                manager_ctx: null_mut(),
                deleter: recipe.deleter.then_some(count_versioned),
                flags: recipe.flags,
                dl_tensor: none,
            },
        }));
        // SAFETY: just made, and nobody else has it yet.
        let made = unsafe { &mut *parts };
        let data = if recipe.null_data { null_mut() } else { made.memory.start.wrapping_add(recipe.data).cast() };
        let shape = if made.shape.is_empty() { null_mut() } else { made.shape.as_mut_ptr() };
        let strides = if recipe.strides.is_some_and(|strides| !strides.is_empty()) { made.strides.as_mut_ptr() } else { null_mut() };
        let tensor = DLTensor { data, shape, strides, ..none };
        (made.legacy.dl_tensor, made.versioned.dl_tensor) = (tensor, tensor);
        let calls = (&raw mut made.calls).cast::<c_void>();
        (made.legacy.manager_ctx, made.versioned.manager_ctx) = (calls, calls);
        // Not null: from a box.
        Ok(Self(NonNull::new(parts).unwrap_or_else(|| unreachable!("a box is somewhere"))))
    }

    /// How often a deleter was called.
    pub(super) fn calls(&self) -> usize {
        // SAFETY: ours until this value goes, and only the counter is looked at.
        unsafe { &(*self.0.as_ptr()).calls }.load(Ordering::SeqCst)
    }

    /// Hands it to a consumer as the versioned structure.
    pub(super) fn give(&self, subject: &dyn ConsumerSubject, write: bool) -> Result<Seen, String> {
        // SAFETY: of a live value.
        let pointer = unsafe { &raw mut (*self.0.as_ptr()).versioned };
        // SAFETY: a managed tensor, given away once.
        unsafe { subject.versioned(pointer, write) }
    }

    /// Hands it to a consumer as the legacy structure.
    pub(super) fn give_legacy(&self, subject: &dyn ConsumerSubject) -> Result<Seen, String> {
        // SAFETY: of a live value.
        let pointer = unsafe { &raw mut (*self.0.as_ptr()).legacy };
        // SAFETY: a managed tensor, given away once.
        unsafe { subject.legacy(pointer) }
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        // Somebody may still have what was not given back, so that it stays.
        if self.calls() > 0 {
            // SAFETY: from a box, and given back.
            drop(unsafe { Box::from_raw(self.0.as_ptr()) });
        }
    }
}

//! Owned managed tensors.

use std::ffi::CStr;
use std::fmt;
use std::marker::PhantomData;
use std::ptr::NonNull;

use crate::abi::{
    DLManagedTensor, DLManagedTensorVersioned, DLPackVersion, DLTensor, LEGACY_CAPSULE, LEGACY_CAPSULE_USED, VERSION, VERSIONED_CAPSULE,
    VERSIONED_CAPSULE_USED,
};
use crate::{DlpackError, ElementType};

/// The legacy or the versioned structure.
pub trait ManagedTensor: sealed::Structure {
    /// The name of a Python capsule that owns one.
    const CAPSULE: &'static CStr;
    /// The name of a capsule whose tensor was taken.
    const CAPSULE_USED: &'static CStr;
}

pub(crate) mod sealed {
    use super::*;

    /// What the two structures have in common.
    pub trait Structure: Sized + 'static {
        /// The version, which only the newer structure has. Reads nothing else.
        ///
        /// # Safety
        /// The pointer is to a structure of this kind, of any version.
        unsafe fn version(this: NonNull<Self>) -> Option<DLPackVersion>;

        /// The deleter. Reads nothing else.
        ///
        /// # Safety
        /// The pointer is to a structure of this kind, of any version.
        unsafe fn deleter(this: NonNull<Self>) -> Option<unsafe extern "C" fn(*mut Self)>;

        fn tensor(&self) -> &DLTensor;
        fn flags(&self) -> u64;
    }
}

impl ManagedTensor for DLManagedTensor {
    const CAPSULE: &'static CStr = LEGACY_CAPSULE;
    const CAPSULE_USED: &'static CStr = LEGACY_CAPSULE_USED;
}

impl sealed::Structure for DLManagedTensor {
    unsafe fn version(_: NonNull<Self>) -> Option<DLPackVersion> {
        None
    }

    unsafe fn deleter(this: NonNull<Self>) -> Option<unsafe extern "C" fn(*mut Self)> {
        // SAFETY: the caller has a structure of this kind.
        unsafe { (*this.as_ptr()).deleter }
    }

    fn tensor(&self) -> &DLTensor {
        &self.dl_tensor
    }

    fn flags(&self) -> u64 {
        0
    }
}

impl ManagedTensor for DLManagedTensorVersioned {
    const CAPSULE: &'static CStr = VERSIONED_CAPSULE;
    const CAPSULE_USED: &'static CStr = VERSIONED_CAPSULE_USED;
}

impl sealed::Structure for DLManagedTensorVersioned {
    unsafe fn version(this: NonNull<Self>) -> Option<DLPackVersion> {
        // SAFETY: the caller has a structure of this kind; the version is its first field, whatever the version.
        Some(unsafe { (*this.as_ptr()).version })
    }

    unsafe fn deleter(this: NonNull<Self>) -> Option<unsafe extern "C" fn(*mut Self)> {
        // SAFETY: the caller has a structure of this kind; the deleter stays where it is in every version.
        unsafe { (*this.as_ptr()).deleter }
    }

    fn tensor(&self) -> &DLTensor {
        &self.dl_tensor
    }

    fn flags(&self) -> u64 {
        self.flags
    }
}

/// A managed tensor that is ours to give back: dropping it calls its deleter, once, on whichever thread drops it.
pub struct Managed<T: ManagedTensor> {
    pointer: NonNull<T>,
    owns: PhantomData<T>,
}

// SAFETY: a deleter may be called from any thread (DLPack's specification, and the contract of `from_raw`); the rest is plain data
// that nobody changes.
unsafe impl<T: ManagedTensor> Send for Managed<T> {}
// SAFETY: as above; shared access only reads the structure.
unsafe impl<T: ManagedTensor> Sync for Managed<T> {}

impl<T: ManagedTensor> Managed<T> {
    /// Takes a managed tensor over, as a consumer does.
    ///
    /// # Errors
    /// [`DlpackError::Null`]; [`DlpackError::Version`] for a major version other than 1, whose deleter is called.
    ///
    /// # Safety
    /// A pointer that is not null is to a managed tensor, of whatever version, that the caller owns and that nobody else gives back. Its deleter is null or
    /// may be called once from any thread. Until then the structure does not change, and its `shape` and `strides`, where they are not
    /// null, are `ndim` numbers each, which do not change either.
    pub unsafe fn from_raw(pointer: *mut T) -> Result<Self, DlpackError> {
        let pointer = NonNull::new(pointer).ok_or(DlpackError::Null { what: "the managed tensor" })?;
        let managed = Self { pointer, owns: PhantomData };
        // SAFETY: a structure of this kind by the contract of this function.
        match unsafe { T::version(pointer) } {
            Some(version) if version.major != VERSION.major => Err(DlpackError::Version { major: version.major, minor: version.minor }),
            _ => Ok(managed),
        }
    }

    /// Gives the tensor away: whoever gets the pointer calls the deleter.
    #[must_use = "nobody else will call the deleter"]
    pub fn into_raw(self) -> *mut T {
        std::mem::ManuallyDrop::new(self).pointer.as_ptr()
    }

    /// The pointer, still ours.
    pub fn as_ptr(&self) -> *mut T {
        self.pointer.as_ptr()
    }

    /// The structure.
    pub fn get(&self) -> &T {
        // SAFETY: a structure of a known version, which lives and does not change until we call the deleter (contract of `from_raw`).
        unsafe { self.pointer.as_ref() }
    }

    /// The tensor inside.
    pub fn tensor(&self) -> &DLTensor {
        self.get().tensor()
    }

    /// The flags; none for the legacy structure.
    pub fn flags(&self) -> u64 {
        self.get().flags()
    }

    /// The type of the elements.
    pub fn element_type(&self) -> ElementType {
        ElementType { raw: self.tensor().dtype, padded: self.flags() & crate::abi::FLAG_IS_SUBBYTE_TYPE_PADDED != 0 }
    }

    /// Elements along each axis, as the structure says; no axes where it has no shape.
    pub fn shape(&self) -> &[i64] {
        self.numbers(self.tensor().shape).unwrap_or_default()
    }

    /// Elements from one to the next along each axis; `None` where the structure has none, which means C order.
    pub fn strides(&self) -> Option<&[i64]> {
        self.numbers(self.tensor().strides)
    }

    fn numbers(&self, pointer: *mut i64) -> Option<&[i64]> {
        let len = usize::try_from(self.tensor().ndim).unwrap_or(0);
        if pointer.is_null() {
            return (len == 0).then_some(&[]);
        }
        // SAFETY: not null, so `ndim` numbers that live as long as the tensor does (contract of `from_raw`).
        Some(unsafe { std::slice::from_raw_parts(pointer, len) })
    }
}

impl<T: ManagedTensor> Drop for Managed<T> {
    fn drop(&mut self) {
        // SAFETY: we own a structure of this kind.
        if let Some(deleter) = unsafe { T::deleter(self.pointer) } {
            // SAFETY: called once, here, by the owner (contract of `from_raw`).
            unsafe { deleter(self.pointer.as_ptr()) };
        }
    }
}

impl<T: ManagedTensor> fmt::Debug for Managed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Managed").field("tensor", self.tensor()).field("flags", &self.flags()).finish()
    }
}

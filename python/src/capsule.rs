//! DLPack tensors in Python capsules.

use std::ffi::c_void;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use pyo3::{Bound, ffi};
use zarr_buffer_dlpack::abi::{DLManagedTensor, DLManagedTensorVersioned, VERSION};
use zarr_buffer_dlpack::{Access, Export, Format, Imported, Managed, ManagedTensor};

use crate::error::{Failure, Outcome, exchange};

/// A capsule that owns a tensor, for one consumer.
pub(crate) fn hand_out<'py>(py: Python<'py>, export: Export, format: Format) -> Outcome<Bound<'py, PyAny>> {
    match format {
        Format::Legacy => wrap(py, export.into_legacy()?),
        Format::Versioned => wrap(py, export.into_versioned()?),
    }
}

fn wrap<T: ManagedTensor>(py: Python<'_>, managed: Managed<T>) -> Outcome<Bound<'_, PyAny>> {
    let raw = managed.into_raw();
    // SAFETY: the pointer is not null, the name is static, and the destructor fits what the capsule holds.
    let capsule = unsafe { ffi::PyCapsule_New(raw.cast(), T::CAPSULE.as_ptr(), Some(destroy::<T>)) };
    // SAFETY: a new reference, or null with an exception set.
    let capsule = unsafe { Bound::from_owned_ptr_or_err(py, capsule) };
    if capsule.is_err() {
        // SAFETY: no capsule owns the tensor.
        drop(unsafe { Managed::from_raw(raw) });
    }
    Ok(capsule?)
}

/// # Safety
/// Called by Python with a capsule of [`wrap`], once.
unsafe extern "C" fn destroy<T: ManagedTensor>(capsule: *mut ffi::PyObject) {
    // SAFETY: a capsule. Consumers change its name when they take the tensor.
    if unsafe { ffi::PyCapsule_IsValid(capsule, T::CAPSULE.as_ptr()) } == 1 {
        // SAFETY: valid under this name.
        let raw = unsafe { ffi::PyCapsule_GetPointer(capsule, T::CAPSULE.as_ptr()) };
        // SAFETY: the tensor of `wrap`, which nobody took.
        drop(unsafe { Managed::<T>::from_raw(raw.cast()) });
    }
}

/// Where an object says that its memory is: DLPack's kind and number.
pub(crate) fn device_of(object: &Bound<'_, PyAny>) -> Outcome<(i32, i32)> {
    if !object.hasattr("__dlpack_device__")? {
        return Err(PyTypeError::new_err("an object with __dlpack__ and __dlpack_device__ is needed").into());
    }
    Ok(object.call_method0("__dlpack_device__")?.extract()?)
}

/// Takes the memory of an object that speaks DLPack. `stream` will use it.
pub(crate) fn take(object: &Bound<'_, PyAny>, access: Access, stream: Option<u64>) -> Outcome<Imported> {
    let py = object.py();
    let arguments = PyDict::new(py);
    if let Some(stream) = stream {
        arguments.set_item("stream", stream)?;
    }
    let legacy = arguments.copy()?;
    arguments.set_item("max_version", (VERSION.major, VERSION.minor))?;
    let capsule = match object.call_method("__dlpack__", (), Some(&arguments)) {
        // Producers from before version 1 do not know the argument.
        Err(error) if error.is_instance_of::<PyTypeError>(py) => object.call_method("__dlpack__", (), Some(&legacy))?,
        answer => answer?,
    };
    match unwrap::<DLManagedTensorVersioned>(&capsule)? {
        Some(managed) => import(managed, access),
        None => match unwrap::<DLManagedTensor>(&capsule)? {
            Some(managed) => import(managed, access),
            None => Err(exchange(format!("__dlpack__ gave {}, and no fresh DLPack capsule", capsule.repr()?))),
        },
    }
}

/// Takes the tensor out of a capsule; `None` when there is none of this kind in it.
fn unwrap<T: ManagedTensor>(capsule: &Bound<'_, PyAny>) -> Outcome<Option<Managed<T>>> {
    // SAFETY: any object may be asked.
    if unsafe { ffi::PyCapsule_IsValid(capsule.as_ptr(), T::CAPSULE.as_ptr()) } != 1 {
        return Ok(None);
    }
    // SAFETY: valid under this name.
    let raw: *mut c_void = unsafe { ffi::PyCapsule_GetPointer(capsule.as_ptr(), T::CAPSULE.as_ptr()) };
    // SAFETY: a capsule; the name is static. From here on the capsule does not own the tensor.
    if unsafe { ffi::PyCapsule_SetName(capsule.as_ptr(), T::CAPSULE_USED.as_ptr()) } != 0 {
        return Err(Failure::Python(PyErr::fetch(capsule.py())));
    }
    // SAFETY: a capsule of this name owns a tensor of this kind, and what was in it is ours now; that the producer keeps DLPack's rules is
    // what speaking the protocol means.
    Ok(Some(unsafe { Managed::from_raw(raw.cast()) }?))
}

fn import<T: ManagedTensor>(managed: Managed<T>, access: Access) -> Outcome<Imported> {
    // SAFETY: the producer's promise of memory that is there. That nobody else uses it while it is written is what `read(out=...)` demands; that nobody
    // writes it while it is read, what `write` does.
    Ok(unsafe { managed.import(access) }?)
}

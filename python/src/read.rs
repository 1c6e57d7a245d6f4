//! Where elements are read to: NumPy's arrays, tensors, memory of others.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString, PyTuple};
use zarr::{DataType, Elements, Selection};
use zarr_buffer_api::{Buffer, DeviceId};
use zarr_buffer_dlpack::Access;
use zarr_store_api::AnyStore;

use crate::error::{Outcome, exchange, parameter, unsupported};
use crate::tensor::Tensor;
use crate::wait::wait;
use crate::{capsule, device};

/// Bytes of a selection.
pub(crate) fn byte_len(array: &zarr::Array, shape: &[u64]) -> Outcome<usize> {
    let Some(item_size) = array.item_size() else {
        let name = array.data_type();
        return Err(unsupported(format!("elements of variable length ({name}) make no tensor: index the array, which gives objects")));
    };
    let elements = shape.iter().try_fold(1usize, |product, &len| product.checked_mul(usize::try_from(len).ok()?));
    let len = elements.and_then(|elements| elements.checked_mul(item_size));
    len.ok_or_else(|| parameter(format!("{shape:?} elements of {item_size} bytes do not fit the address space")))
}

/// The memory of `out=`, where it is, and whether it fits.
pub(crate) fn destination(own: &DataType, out: &Bound<'_, PyAny>, shape: &[u64], wanted: DeviceId, stream: Option<u64>) -> Outcome<Buffer> {
    let misfit = |what: &str, found: String, expected: String| parameter(format!("out= has {what} {found}, and the selection {expected}"));
    let numbers = |shape: &[u64]| format!("{shape:?}");
    if let Ok(tensor) = out.cast::<Tensor>() {
        let tensor = tensor.get();
        if tensor.zarr_type() != own {
            return Err(misfit("data type", tensor.zarr_type().to_string(), own.to_string()));
        }
        if tensor.sizes() != shape {
            return Err(misfit("shape", numbers(tensor.sizes()), numbers(shape)));
        }
        return Ok(tensor.buffer().clone());
    }
    let taken = capsule::take(out, Access::ReadWrite, stream)?;
    let found: Vec<u64> = taken.region.layout.shape.iter().map(|&len| len as u64).collect();
    let same = zarr_buffer_dlpack::ElementType::of(own)? == zarr_buffer_dlpack::ElementType::of(&taken.data_type)?;
    if !same {
        return Err(misfit("data type", taken.data_type.to_string(), own.to_string()));
    }
    if found != shape {
        return Err(misfit("shape", numbers(&found), numbers(shape)));
    }
    if !taken.region.layout.is_contiguous() {
        return Err(parameter("out= is not in C order without gaps"));
    }
    if taken.region.buffer.device() != wanted {
        return Err(exchange(format!("out= said {wanted}, and gave memory of {}", taken.region.buffer.device())));
    }
    Ok(taken.region.buffer)
}

/// Reads to new memory of the host.
pub(crate) fn read_to_host(py: Python<'_>, array: &zarr::Array, selection: &Selection) -> Outcome<Tensor> {
    let read = if is_long(array, selection) {
        wait(py, array.read_to_host_async(selection))?
    } else {
        py.detach(|| array.read_to_host(selection))
    };
    Ok(Tensor::of(read?, None))
}

/// Whether a read or a write may take so long that somebody wants to end it.
pub(crate) fn is_long(array: &zarr::Array, selection: &Selection) -> bool {
    /// Decoded bytes: fewer take no longer than to be noticed.
    const LONG: u64 = 16 << 20;
    let elements = array.decoded_elements(selection).unwrap_or(0);
    matches!(array.store(), AnyStore::Async(_)) || elements.saturating_mul(array.item_size().unwrap_or(64) as u64) >= LONG
}

/// Elements of variable length, as objects.
fn objects<'py>(py: Python<'py>, array: &zarr::Array, selection: &Selection) -> Outcome<Bound<'py, PyAny>> {
    let data = if is_long(array, selection) { wait(py, array.read_async(selection))? } else { py.detach(|| array.read(selection)) }?;
    let Elements::Variable(elements) = &data.elements else { return Err(unsupported("elements of fixed size as objects")) };
    let text = matches!(array.data_type(), DataType::String);
    let list = PyList::empty(py);
    for element in elements.iter() {
        if text {
            list.append(PyString::from_bytes(py, element)?)?;
        } else {
            list.append(PyBytes::new(py, element))?;
        }
    }
    Ok(py.import("zarrgpu._numpy")?.call_method1("objects", (list, PyTuple::new(py, &data.shape)?))?)
}

pub(crate) fn to_numpy<'py>(py: Python<'py>, array: &zarr::Array, selection: &Selection) -> Outcome<Bound<'py, PyAny>> {
    if array.item_size().is_none() {
        return objects(py, array, selection);
    }
    Tensor::to_numpy(&Bound::new(py, read_to_host(py, array, selection)?)?, None, None)
}

/// Where to read to: as named, or where `out=` is, or to the host.
pub(crate) fn place(named: Option<&str>, out: Option<&Bound<'_, PyAny>>) -> Outcome<DeviceId> {
    let named = named.map(device::parse).transpose()?;
    let Some(out) = out else { return Ok(named.unwrap_or(DeviceId::CPU)) };
    let (device_type, device_id) = capsule::device_of(out)?;
    let raw = zarr_buffer_dlpack::abi::DLDevice { device_type, device_id };
    let found = zarr_buffer_dlpack::device_from_raw(raw)?;
    match named {
        Some(named) if named != found => Err(parameter(format!("out= is on {found}, and device= says {named}"))),
        _ if found != DeviceId::CPU && found.kind != zarr_buffer_api::DeviceKind::Cuda => {
            Err(unsupported(format!("out= is on {found}; \"cpu\" and \"cuda:N\" are read to")))
        }
        _ => Ok(found),
    }
}

/// The handle of a CUDA stream: a number, or an object that has one.
pub(crate) fn handle(stream: &Bound<'_, PyAny>) -> Outcome<u64> {
    if let Ok(handle) = stream.extract::<u64>() {
        return Ok(handle);
    }
    if stream.hasattr("__cuda_stream__")? {
        let (_, handle): (u64, u64) = stream.call_method0("__cuda_stream__")?.extract()?;
        return Ok(handle);
    }
    for name in ["cuda_stream", "ptr"] {
        if stream.hasattr(name)? {
            return Ok(stream.getattr(name)?.extract()?);
        }
    }
    Err(parameter("stream= takes a CUDA stream: a number, or an object with __cuda_stream__, cuda_stream or ptr"))
}

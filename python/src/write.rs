//! What is written: elements from Python to arrays.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};
use zarr::{DataType, Selection};
use zarr_buffer_api::{Buffer, Device as _, DeviceId, DeviceKind, Layout, Queue as _, Region};
use zarr_buffer_dlpack::{Access, ElementType};
use zarr_codec_api::VariableData;

use crate::cuda::{self, Gpu};
use crate::error::{Outcome, parameter};
use crate::memory::Elements;
use crate::tensor::Tensor;
use crate::wait::wait_detached;
use crate::{capsule, data_type};

/// Elements to write, of the data type of an array.
pub(crate) enum Data {
    /// In memory of NumPy's.
    Host(Elements),
    /// Of variable length, in C order over a shape.
    Variable(VariableData, Vec<u64>),
    /// On a GPU, in C order without gaps over a shape.
    Gpu(Buffer, Vec<u64>, Box<Gpu>),
}

impl Data {
    /// Takes what somebody wants to write to elements of `own`: on the host anything that NumPy takes, broadcast to `shape` if there is one; on a GPU, what
    /// has just that data type and shape. `stream` is where work on a GPU runs.
    pub(crate) fn of(
        value: &Bound<'_, PyAny>,
        own: &DataType,
        shape: Option<&Bound<'_, PyTuple>>,
        stream: Option<(u64, Py<PyAny>)>,
    ) -> Outcome<Self> {
        let py = value.py();
        let numpy = py.import("zarrgpu._numpy")?;
        if let Some(ordinal) = gpu_of(value)? {
            let mut gpu = py.detach(|| cuda::gpu(ordinal))?;
            if let Some((handle, owner)) = stream {
                gpu = gpu.on_stream(handle, owner)?;
            }
            let (buffer, found) = on_gpu(value, own, &gpu)?;
            let wanted: Option<Vec<u64>> = shape.map(|shape| shape.extract()).transpose()?;
            if let Some(wanted) = wanted.filter(|wanted| *wanted != found) {
                return Err(parameter(format!("data of shape {found:?} on {}, and the selection has {wanted:?}", buffer.device())));
            }
            return Ok(Self::Gpu(buffer, found, Box::new(gpu)));
        }
        if stream.is_some() {
            return Err(parameter("stream= is for data on a GPU"));
        }
        if own.fixed_size().is_none() {
            let text = matches!(own, DataType::String);
            let (elements, shape): (Bound<'_, PyList>, Vec<u64>) = numpy.call_method1("variable", (value, text, shape))?.extract()?;
            let mut data = VariableData::new();
            for element in &elements {
                data.push(element.cast::<PyBytes>().map_err(PyErr::from)?.as_bytes());
            }
            return Ok(Self::Variable(data, shape));
        }
        let taken = of_dlpack(value, own)?;
        let value = taken.as_ref().unwrap_or(value);
        let array = numpy.call_method1("elements", (value, data_type::dtype(py, own)?, shape))?;
        Ok(Self::Host(Elements::of(&array)?))
    }

    /// Elements along each axis.
    pub(crate) fn shape(&self) -> Vec<u64> {
        match self {
            Self::Host(elements) => elements.layout().shape.iter().map(|&len| len as u64).collect(),
            Self::Variable(_, shape) | Self::Gpu(_, shape, _) => shape.clone(),
        }
    }

    /// The same elements along one axis.
    pub(crate) fn flat(self, py: Python<'_>) -> Outcome<Self> {
        let count = |shape: &[u64]| vec![shape.iter().product()];
        Ok(match self {
            Self::Host(elements) => Self::Host(Elements::of(&elements.array(py).call_method1("reshape", (-1,))?)?),
            Self::Variable(elements, shape) => Self::Variable(elements, count(&shape)),
            Self::Gpu(buffer, shape, gpu) => Self::Gpu(buffer, count(&shape), gpu),
        })
    }

    /// Writes, by an array with the codecs of the GPU that the data are on, if they are on one. For who has let go of Python's lock. Where `long`, Python's
    /// signals end it: no more chunks are begun then.
    pub(crate) fn write(self, array: &zarr::Array, selection: &Selection, long: bool) -> Outcome<()> {
        match self {
            Self::Host(elements) if long => {
                let (bytes, loan) = elements.lend();
                let written = wait_detached(array.write_strided_async(selection, bytes, elements.layout()));
                drop(loan);
                written??;
            }
            Self::Host(elements) => array.write_strided(selection, elements.bytes(), elements.layout())?,
            Self::Variable(elements, _) if long => wait_detached(array.write_variable_async(selection, elements))??,
            Self::Variable(elements, _) => array.write_variable(selection, &elements)?,
            Self::Gpu(buffer, _, gpu) => array.write_from_device(selection, &buffer, &gpu.target)?,
        }
        Ok(())
    }
}

/// The number of the GPU that an object has its elements on.
fn gpu_of(value: &Bound<'_, PyAny>) -> Outcome<Option<i32>> {
    let id = match value.cast::<Tensor>() {
        Ok(tensor) => tensor.get().device_id(),
        Err(_) if !value.hasattr("__dlpack_device__")? => return Ok(None),
        Err(_) => {
            let (device_type, device_id) = capsule::device_of(value)?;
            zarr_buffer_dlpack::device_from_raw(zarr_buffer_dlpack::abi::DLDevice { device_type, device_id })?
        }
    };
    Ok((id.kind == DeviceKind::Cuda).then_some(id.ordinal))
}

/// The elements of an object on a GPU, and their shape.
fn on_gpu(value: &Bound<'_, PyAny>, own: &DataType, gpu: &Gpu) -> Outcome<(Buffer, Vec<u64>)> {
    let wrong = |found: &DataType| parameter(format!("data of {found} on {}, and elements of {own}", gpu.device.id()));
    if let Ok(tensor) = value.cast::<Tensor>() {
        let tensor = tensor.get();
        if tensor.zarr_type() != own {
            return Err(wrong(tensor.zarr_type()));
        }
        return Ok((tensor.buffer().clone(), tensor.sizes().to_vec()));
    }
    let taken = capsule::take(value, Access::ReadOnly, Some(gpu.queue.stream().addr() as u64))?;
    if ElementType::of(own)? != ElementType::of(&taken.data_type)? {
        return Err(wrong(&taken.data_type));
    }
    let Region { buffer, layout } = taken.region;
    let shape = layout.shape.iter().map(|&len| len as u64).collect();
    if layout.is_contiguous() {
        return Ok((buffer, shape));
    }
    let packed = Layout::contiguous(&layout.shape, layout.item_size)?;
    let copy = gpu.device.allocate(packed.span()?.len(), &*gpu.queue)?;
    gpu.queue.copy_region(&Region::new(buffer, layout)?, &Region::new(copy.clone(), packed)?)?;
    Ok((copy, shape))
}

/// A NumPy array over the elements of an object on the host that speaks DLPack, where they are of the data type and in C order: NumPy itself does not know all of
/// them, such as torch's of bfloat16.
fn of_dlpack<'py>(value: &Bound<'py, PyAny>, own: &DataType) -> Outcome<Option<Bound<'py, PyAny>>> {
    let py = value.py();
    let of_numpy = value.is_instance(&py.import("numpy")?.getattr("ndarray")?)? || value.is_instance_of::<Tensor>();
    if of_numpy || !value.hasattr("__dlpack__")? {
        return Ok(None);
    }
    // What cannot be had this way is NumPy's to take, or to refuse.
    let Ok(taken) = capsule::take(value, Access::ReadOnly, None) else { return Ok(None) };
    let same = ElementType::of(own).is_ok_and(|own| ElementType::of(&taken.data_type).is_ok_and(|found| found == own));
    let Region { buffer, layout } = taken.region;
    if !same || buffer.device() != DeviceId::CPU || !layout.is_contiguous() {
        return Ok(None);
    }
    let shape = layout.shape.iter().map(|&len| len as u64).collect();
    Tensor::to_numpy(&Bound::new(py, Tensor::new(buffer, shape, own.clone(), None))?, None, None).map(Some)
}

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString, PyTuple};
use zarr::{DataType, Elements, Policy, Selection, Version};
use zarr_buffer_api::{Buffer, Device as _, DeviceId};
use zarr_store_api::AnyStore;

use crate::cuda::{self, Gpu};
use crate::each::ReadEach;
use crate::error::{Outcome, exchange, parameter, unsupported};
use crate::node::Origin;
use crate::selection::{self, Kind};
use crate::tensor::Tensor;
use crate::wait::wait;
use crate::{capsule, data_type, device, node};

/// An array in a store. Indexing with integers, slices and `...` gives NumPy arrays; `read` gives tensors, on any device.
#[pyclass(frozen, weakref, module = "zarrgpu")]
pub(crate) struct Array {
    inner: zarr::Array,
    origin: Arc<Origin>,
    /// The same array with the codecs of devices, by device and policy.
    bound: Mutex<HashMap<(DeviceId, Wish), zarr::Array>>,
}

/// Where chunks are decoded when an array is read to a device.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Wish {
    Prefer,
    Require,
    Host,
}

pub(crate) fn format_number(version: Version) -> u8 {
    match version {
        Version::V2 => 2,
        _ => 3,
    }
}

impl Array {
    pub(crate) fn new(inner: zarr::Array, origin: Arc<Origin>) -> Self {
        Self { inner, origin, bound: Mutex::default() }
    }

    /// The array with the codecs of a GPU.
    fn on(&self, gpu: &Gpu, wish: Wish) -> Outcome<zarr::Array> {
        let id = gpu.device.id();
        let mut bound = self.bound.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(array) = bound.get(&(id, wish)) {
            return Ok(array.clone());
        }
        let mut options = self.inner.options().clone();
        options.registry = gpu.options.registry.clone();
        options.policy = match wish {
            Wish::Prefer => Policy::Prefer(id),
            Wish::Require => Policy::Require(id),
            Wish::Host => Policy::Host,
        };
        let array = self.inner.with_options(&options)?;
        bound.insert((id, wish), array.clone());
        Ok(array)
    }

    /// Bytes of a selection.
    fn byte_len(&self, shape: &[u64]) -> Outcome<usize> {
        let Some(item_size) = self.inner.item_size() else {
            let name = self.inner.data_type();
            return Err(unsupported(format!("elements of variable length ({name}) make no tensor: index the array, which gives objects")));
        };
        let elements = shape.iter().try_fold(1usize, |product, &len| product.checked_mul(usize::try_from(len).ok()?));
        let len = elements.and_then(|elements| elements.checked_mul(item_size));
        len.ok_or_else(|| parameter(format!("{shape:?} elements of {item_size} bytes do not fit the address space")))
    }

    fn read_into(&self, selection: &Selection, buffer: &Buffer) -> Outcome<()> {
        buffer.wait()?;
        self.inner.read_into(selection, &mut buffer.host_write()?)?;
        Ok(())
    }

    fn read_to_gpu(&self, selection: &Selection, out: Option<&Buffer>, gpu: &Gpu, wish: Wish) -> Outcome<Buffer> {
        let array = self.on(gpu, wish)?;
        let pending = match out {
            Some(buffer) => array.enqueue_read_into(selection, buffer, &gpu.target)?,
            None => array.enqueue_read(selection, &gpu.target)?,
        };
        Ok(pending.wait()?.buffer)
    }

    /// The memory of `out=`, where it is, and whether it fits.
    fn destination(&self, out: &Bound<'_, PyAny>, shape: &[u64], wanted: DeviceId, stream: Option<u64>) -> Outcome<Buffer> {
        let misfit =
            |what: &str, found: String, expected: String| parameter(format!("out= has {what} {found}, and the selection {expected}"));
        let numbers = |shape: &[u64]| format!("{shape:?}");
        let own = self.inner.data_type();
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
        let taken = capsule::take(out, stream)?;
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
    fn read_to_host(&self, py: Python<'_>, selection: &Selection) -> Outcome<Tensor> {
        let read = if self.is_long(selection) {
            wait(py, self.inner.read_to_host_async(selection))?
        } else {
            py.detach(|| self.inner.read_to_host(selection))
        };
        Ok(Tensor::of(read?, None))
    }

    /// Whether a read may take so long that somebody wants to end it.
    fn is_long(&self, selection: &Selection) -> bool {
        /// Decoded bytes: fewer take no longer than to be noticed.
        const LONG: u64 = 16 << 20;
        let elements = self.inner.decoded_elements(selection).unwrap_or(0);
        matches!(self.inner.store(), AnyStore::Async(_)) || elements.saturating_mul(self.inner.item_size().unwrap_or(64) as u64) >= LONG
    }

    /// Elements of variable length, as objects.
    fn objects<'py>(&self, py: Python<'py>, selection: &Selection) -> Outcome<Bound<'py, PyAny>> {
        let data =
            if self.is_long(selection) { wait(py, self.inner.read_async(selection))? } else { py.detach(|| self.inner.read(selection)) }?;
        let Elements::Variable(elements) = &data.elements else { return Err(unsupported("elements of fixed size as objects")) };
        let text = matches!(self.inner.data_type(), DataType::String);
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

    fn to_numpy<'py>(&self, py: Python<'py>, selection: &Selection) -> Outcome<Bound<'py, PyAny>> {
        if self.inner.item_size().is_none() {
            return self.objects(py, selection);
        }
        Tensor::to_numpy(&Bound::new(py, self.read_to_host(py, selection)?)?, None, None)
    }
}

#[pymethods]
impl Array {
    /// The path in the store.
    #[getter]
    fn path(&self) -> String {
        self.inner.path().to_string()
    }

    /// Elements along each axis, slowest first.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.inner.shape())
    }

    /// Number of axes.
    #[getter]
    fn ndim(&self) -> usize {
        self.inner.shape().len()
    }

    /// Number of elements.
    #[getter]
    fn size(&self) -> u64 {
        self.inner.shape().iter().product()
    }

    /// NumPy's dtype of the elements; `object` for those of variable length.
    #[getter]
    fn dtype<'py>(&self, py: Python<'py>) -> Outcome<Bound<'py, PyAny>> {
        data_type::dtype(py, self.inner.data_type())
    }

    /// Zarr's data type, as in metadata.
    #[getter]
    fn data_type(&self) -> String {
        self.inner.data_type().to_string()
    }

    /// Elements of a chunk along each axis, the unit of decoding: of inner chunks where there are shards.
    #[getter]
    fn chunks<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.inner.inner_chunk_shape())
    }

    /// Elements of a shard along each axis; `None` where there are none.
    #[getter]
    fn shards<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        if self.inner.shard_levels().is_empty() {
            return Ok(None);
        }
        let first = vec![0; self.inner.shape().len()];
        PyTuple::new(py, self.inner.chunk_grid().chunk_shape(&first)).map(Some)
    }

    /// The attributes.
    #[getter]
    fn attributes<'py>(&self, py: Python<'py>) -> Outcome<Bound<'py, PyAny>> {
        node::attributes(py, self.inner.attributes())
    }

    /// As `attributes`.
    #[getter]
    fn attrs<'py>(&self, py: Python<'py>) -> Outcome<Bound<'py, PyAny>> {
        self.attributes(py)
    }

    /// The names of the axes, where they have any.
    #[getter]
    fn dimension_names<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        self.inner.dimension_names().map(|names| PyTuple::new(py, names)).transpose()
    }

    /// What absent elements are.
    #[getter]
    fn fill_value<'py>(&self, py: Python<'py>) -> Outcome<Bound<'py, PyAny>> {
        let bytes = self.inner.fill_value().as_bytes();
        Ok(match self.inner.data_type() {
            DataType::String => PyString::from_bytes(py, bytes)?.into_any(),
            DataType::Bytes => PyBytes::new(py, bytes).into_any(),
            fixed => py.import("zarrgpu._numpy")?.call_method1("element", (PyBytes::new(py, bytes), data_type::dtype(py, fixed)?))?,
        })
    }

    /// The version of the format: 2 or 3.
    #[getter]
    fn zarr_format(&self) -> u8 {
        format_number(self.inner.version())
    }

    /// Which implementation decodes what, and where bytes cross to the device. For a GPU as for `read`.
    #[pyo3(signature = (device="cpu", *, policy="prefer"))]
    fn explain(&self, py: Python<'_>, device: &str, policy: &str) -> Outcome<String> {
        let id = device::parse(device)?;
        let wish = wish(policy)?;
        if id == DeviceId::CPU {
            return Ok(self.inner.explain());
        }
        py.detach(|| Ok(self.on(&cuda::gpu(id.ordinal)?, wish)?.explain()))
    }

    /// Reads to a device: a `Tensor`, whose elements are known to be good.
    ///
    /// `selection`: integers, slices, `...`, lists and masks, one for each axis, as a product; or the same as a text. `device`: `"cpu"`, `"cuda"`,
    /// `"cuda:N"`, or `"auto"` for the first GPU if there is one. `out`: a tensor or any object with `__dlpack__`, of the right shape and data type and in C
    /// order, whose memory is written; nobody else may use it meanwhile. `stream`: the CUDA stream to work on (a number, or an object of torch,
    /// CuPy or cuda.core); later work on it sees the elements, and it lives as long as they do. By default a stream of this package's own. `policy`: `"prefer"` decodes on the
    /// device what it can, `"require"` fails where it cannot all, `"host"` decodes on the host. `ipc`: into memory of a GPU that other processes can open
    /// without a copy.
    #[pyo3(signature = (selection=None, *, device=None, out=None, stream=None, policy="prefer", ipc=false))]
    #[expect(clippy::too_many_arguments, reason = "Python's have names")]
    fn read<'py>(
        &self,
        py: Python<'py>,
        selection: Option<&Bound<'py, PyAny>>,
        device: Option<&str>,
        out: Option<&Bound<'py, PyAny>>,
        stream: Option<&Bound<'py, PyAny>>,
        policy: &str,
        ipc: bool,
    ) -> Outcome<Tensor> {
        let selection = selection::parse(selection, self.inner.shape().len(), Kind::Product)?;
        let shape = self.inner.selection_shape(&selection)?;
        let len = self.byte_len(&shape)?;
        let wish = wish(policy)?;
        let id = place(device, out)?;
        let own = self.inner.data_type().clone();
        if id == DeviceId::CPU {
            if stream.is_some() || ipc {
                return Err(parameter("stream= and ipc= are for reads to a GPU"));
            }
            let Some(out) = out else { return self.read_to_host(py, &selection) };
            let buffer = self.destination(out, &shape, id, None)?;
            py.detach(|| self.read_into(&selection, &buffer))?;
            return Ok(Tensor::new(buffer, shape, own, None));
        }
        let mut gpu = py.detach(|| cuda::gpu(id.ordinal))?;
        if let Some(stream) = stream {
            gpu = gpu.on_stream(handle(stream)?, stream.clone().unbind())?;
        }
        let unknown_to_owner = out.is_some() && stream.is_none();
        let out = out.map(|out| self.destination(out, &shape, id, Some(gpu.queue.stream().addr() as u64))).transpose()?;
        let buffer = py.detach(|| -> Outcome<Buffer> {
            let out = match out {
                None if ipc => Some(gpu.device.allocate_exportable(len)?),
                out => out,
            };
            let buffer = self.read_to_gpu(&selection, out.as_ref(), &gpu, wish)?;
            if unknown_to_owner {
                // Whoever owns the memory knows nothing of our stream.
                buffer.wait()?;
            }
            Ok(buffer)
        })?;
        Ok(Tensor::new(buffer, shape, own, Some(gpu)))
    }

    /// Reads one selection after the other, each to a `Tensor`, while the next ones are read and decoded.
    ///
    /// `selections`: an iterable of what `read` takes, asked for the next one as there is room; by default every chunk (shard, where there are shards), in C
    /// order. `ahead`: how many reads may be ahead of the one that is handed out: to the host, by default one for each thread; to a GPU, two, each with memory for its
    /// tensor. `ahead_bytes`: how many bytes results on the host may have together, by default 256 MiB. `device`, `stream` and `policy` are those of `read`. A read that
    /// fails raises its error, and the next call goes on with the next selection.
    #[pyo3(signature = (selections=None, *, device=None, stream=None, policy="prefer", ahead=None, ahead_bytes=None))]
    #[expect(clippy::too_many_arguments, reason = "all but two by keyword")]
    fn read_each(
        &self,
        py: Python<'_>,
        selections: Option<&Bound<'_, PyAny>>,
        device: Option<&str>,
        stream: Option<&Bound<'_, PyAny>>,
        policy: &str,
        ahead: Option<usize>,
        ahead_bytes: Option<usize>,
    ) -> Outcome<ReadEach> {
        self.byte_len(&[])?;
        let wish = wish(policy)?;
        let id = place(device, None)?;
        if id == DeviceId::CPU {
            if stream.is_some() {
                return Err(parameter("stream= is for reads to a GPU"));
            }
            return ReadEach::new(&self.inner, selections, None, ahead, ahead_bytes);
        }
        let mut gpu = py.detach(|| cuda::gpu(id.ordinal))?;
        if let Some(stream) = stream {
            gpu = gpu.on_stream(handle(stream)?, stream.clone().unbind())?;
        }
        ReadEach::new(&self.on(&gpu, wish)?, selections, Some(gpu), ahead, ahead_bytes)
    }

    /// The elements at integers, slices and `...`, as a NumPy array, or as a scalar where NumPy gives one: each axis has an integer, and there is no `...`.
    fn __getitem__<'py>(&self, py: Python<'py>, index: &Bound<'py, PyAny>) -> Outcome<Bound<'py, PyAny>> {
        let selection = selection::parse(Some(index), self.inner.shape().len(), Kind::Basic)?;
        let array = self.to_numpy(py, &selection)?;
        let scalar = self.inner.selection_shape(&selection)?.is_empty() && !selection::has_ellipsis(index);
        Ok(if scalar { array.get_item(PyTuple::empty(py))? } else { array })
    }

    /// All elements, for NumPy.
    #[pyo3(signature = (dtype=None, copy=None))]
    fn __array__<'py>(&self, py: Python<'py>, dtype: Option<&Bound<'py, PyAny>>, copy: Option<bool>) -> Outcome<Bound<'py, PyAny>> {
        if copy == Some(false) {
            return Err(parameter("reading an array makes a copy of it"));
        }
        let array = self.to_numpy(py, &Selection::all())?;
        Ok(match dtype {
            Some(dtype) => array.call_method1("astype", (dtype,))?,
            None => array,
        })
    }

    fn __len__(&self) -> PyResult<usize> {
        match self.inner.shape().first() {
            Some(&len) => Ok(usize::try_from(len)?),
            None => Err(pyo3::exceptions::PyTypeError::new_err("an array without axes has no length")),
        }
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        self.origin.reduce(py, &self.path())
    }

    fn __repr__(&self) -> String {
        let array = &self.inner;
        format!("<zarrgpu.Array {} {} {:?} in {}>", array.path(), array.data_type(), array.shape(), array.store().name())
    }
}

fn wish(policy: &str) -> Outcome<Wish> {
    match policy {
        "prefer" => Ok(Wish::Prefer),
        "require" => Ok(Wish::Require),
        "host" => Ok(Wish::Host),
        _ => Err(parameter(format!("no policy is called {policy:?}: \"prefer\", \"require\" and \"host\" are"))),
    }
}

/// Where to read to: as named, or where `out=` is, or to the host.
fn place(named: Option<&str>, out: Option<&Bound<'_, PyAny>>) -> Outcome<DeviceId> {
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
fn handle(stream: &Bound<'_, PyAny>) -> Outcome<u64> {
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

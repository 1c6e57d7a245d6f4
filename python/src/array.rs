use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString, PyTuple};
use zarr::{DataType, Policy, Selection, StoredMetadata, Version};
use zarr_buffer_api::{Buffer, Device as _, DeviceId};

use crate::cuda::{self, Gpu};
use crate::each::ReadEach;
use crate::error::{Failure, Outcome, parameter};
use crate::node::Origin;
use crate::read::{byte_len, destination, handle, is_long, place, read_to_host, to_numpy};
use crate::selection::{self, Kind};
use crate::tensor::Tensor;
use crate::vindex::VIndex;
use crate::wait::{Turn, wait_detached};
use crate::write::Data;
use crate::{create, data_type, device, node};

/// An array in a store. Indexing with integers, slices and `...` gives NumPy arrays; `read` gives tensors, on any device. One that was opened by `mode="r+"` or created is
/// written by assignment, `write` and `append`.
#[pyclass(frozen, weakref, module = "zarrgpu")]
pub(crate) struct Array {
    /// As it was opened, or last changed from here.
    inner: RwLock<Arc<zarr::Array>>,
    origin: Arc<Origin>,
    /// Taken while shape or attributes change.
    changing: Turn,
    /// Taken by one append: the next one may write to the same chunk.
    appending: Turn,
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
        let (changing, appending) = Default::default();
        Self { inner: RwLock::new(Arc::new(inner)), origin, changing, appending, bound: Mutex::default() }
    }

    pub(crate) fn array(&self) -> Arc<zarr::Array> {
        Arc::clone(&self.inner.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The array with the codecs of a GPU.
    fn on(&self, gpu: &Gpu, wish: Wish) -> Outcome<zarr::Array> {
        let id = gpu.device.id();
        let mut bound = self.bound.lock().unwrap_or_else(PoisonError::into_inner);
        let own = self.array();
        if let Some(array) = bound.get(&(id, wish)) {
            return Ok(array.clone());
        }
        let mut options = own.options().clone();
        options.registry = gpu.options.registry.clone();
        options.policy = match wish {
            Wish::Prefer => Policy::Prefer(id),
            Wish::Require => Policy::Require(id),
            Wish::Host => Policy::Host,
        };
        let array = own.with_options(&options)?;
        bound.insert((id, wish), array.clone());
        Ok(array)
    }

    fn read_to_gpu(&self, selection: &Selection, out: Option<&Buffer>, gpu: &Gpu, wish: Wish) -> Outcome<Buffer> {
        let array = self.on(gpu, wish)?;
        let pending = match out {
            Some(buffer) => array.enqueue_read_into(selection, buffer, &gpu.target)?,
            None => array.enqueue_read(selection, &gpu.target)?,
        };
        Ok(pending.wait()?.buffer)
    }

    /// Writes a value of Python's, over `shape` where that is not the selection's own.
    pub(crate) fn put(
        &self,
        selection: &Selection,
        shape: Option<Bound<'_, PyTuple>>,
        value: &Bound<'_, PyAny>,
        stream: Option<(u64, Py<PyAny>)>,
    ) -> Outcome<()> {
        self.origin.check_writable()?;
        let (py, array) = (value.py(), self.array());
        let shape = shape.map_or_else(|| Ok(PyTuple::new(py, array.selection_shape(selection)?)?), Outcome::Ok)?;
        let mut data = Data::of(value, array.data_type(), Some(&shape), stream)?;
        if matches!(selection, Selection::Points(_)) {
            data = data.flat(py)?;
        }
        py.detach(|| self.write_data(&array, selection, data))
    }

    fn write_data(&self, array: &zarr::Array, selection: &Selection, data: Data) -> Outcome<()> {
        let of_gpu = match &data {
            Data::Gpu(_, _, gpu) => Some(self.on(gpu, Wish::Prefer)?),
            _ => None,
        };
        data.write(of_gpu.as_ref().unwrap_or(array), selection, is_long(array, selection))
    }

    /// Changes shape or attributes. For who has let go of Python's lock.
    fn change<T>(&self, change: impl FnOnce(&mut zarr::Array) -> Outcome<T>) -> Outcome<T> {
        let _one = self.changing.take("array is being changed")?;
        let mut array = (*self.array()).clone();
        let result = change(&mut array);
        let mut bound = self.bound.lock().unwrap_or_else(PoisonError::into_inner);
        *self.inner.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(array);
        bound.clear();
        result
    }
}

#[pymethods]
impl Array {
    /// The path in the store.
    #[getter]
    fn path(&self) -> String {
        self.array().path().to_string()
    }

    /// Elements along each axis, slowest first.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.array().shape())
    }

    /// Number of axes.
    #[getter]
    fn ndim(&self) -> usize {
        self.array().shape().len()
    }

    /// Number of elements.
    #[getter]
    fn size(&self) -> u64 {
        self.array().shape().iter().product()
    }

    /// NumPy's dtype of the elements; `object` for those of variable length.
    #[getter]
    fn dtype<'py>(&self, py: Python<'py>) -> Outcome<Bound<'py, PyAny>> {
        data_type::dtype(py, self.array().data_type())
    }

    /// Zarr's data type, as in metadata.
    #[getter]
    fn data_type(&self) -> String {
        self.array().data_type().to_string()
    }

    /// Elements of a chunk along each axis, the unit of decoding: of inner chunks where there are shards.
    #[getter]
    fn chunks<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.array().inner_chunk_shape())
    }

    /// Elements of a shard along each axis; `None` where there are none.
    #[getter]
    fn shards<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let array = self.array();
        if array.shard_levels().is_empty() {
            return Ok(None);
        }
        let first = vec![0; array.shape().len()];
        PyTuple::new(py, array.chunk_grid().chunk_shape(&first)).map(Some)
    }

    /// Whether the array was opened to read, and not to write.
    #[getter]
    fn read_only(&self) -> bool {
        !self.origin.is_writable()
    }

    /// The attributes, a mapping. What is set in it is stored.
    #[getter]
    fn attributes(this: Bound<'_, Self>) -> PyResult<Bound<'_, PyAny>> {
        node::live_attributes(this.into_any())
    }

    /// As `attributes`.
    #[getter]
    fn attrs(this: Bound<'_, Self>) -> PyResult<Bound<'_, PyAny>> {
        node::live_attributes(this.into_any())
    }

    /// The names of the axes, where they have any.
    #[getter]
    fn dimension_names<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        self.array().dimension_names().map(|names| PyTuple::new(py, names)).transpose()
    }

    /// What absent elements are; `None` where version 2 leaves that open.
    #[getter]
    fn fill_value<'py>(&self, py: Python<'py>) -> Outcome<Bound<'py, PyAny>> {
        let array = self.array();
        if matches!(array.stored_metadata(), StoredMetadata::ArrayV2(stored) if stored.fill_value.is_null()) {
            return Ok(py.None().into_bound(py));
        }
        let bytes = array.fill_value().as_bytes();
        Ok(match array.data_type() {
            DataType::String => PyString::from_bytes(py, bytes)?.into_any(),
            DataType::Bytes => PyBytes::new(py, bytes).into_any(),
            fixed => py.import("zarrgpu._numpy")?.call_method1("element", (PyBytes::new(py, bytes), data_type::dtype(py, fixed)?))?,
        })
    }

    /// The version of the format: 2 or 3.
    #[getter]
    fn zarr_format(&self) -> u8 {
        format_number(self.array().version())
    }

    /// Which implementation decodes what, and where bytes cross to the device. For a GPU as for `read`.
    #[pyo3(signature = (device="cpu", *, policy="prefer"))]
    fn explain(&self, py: Python<'_>, device: &str, policy: &str) -> Outcome<String> {
        let id = device::parse(device)?;
        let wish = wish(policy)?;
        if id == DeviceId::CPU {
            return Ok(self.array().explain());
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
        let array = self.array();
        let selection = selection::parse(selection, array.shape().len(), Kind::Product)?;
        let shape = array.selection_shape(&selection)?;
        let len = byte_len(&array, &shape)?;
        let wish = wish(policy)?;
        let id = place(device, out)?;
        let own = array.data_type().clone();
        if id == DeviceId::CPU {
            if stream.is_some() || ipc {
                return Err(parameter("stream= and ipc= are for reads to a GPU"));
            }
            let Some(out) = out else { return read_to_host(py, &array, &selection) };
            let buffer = destination(&own, out, &shape, id, None)?;
            py.detach(|| -> Outcome<()> {
                buffer.wait()?;
                array.read_into(&selection, &mut buffer.host_write()?)?;
                Ok(())
            })?;
            return Ok(Tensor::new(buffer, shape, own, None));
        }
        let mut gpu = py.detach(|| cuda::gpu(id.ordinal))?;
        if let Some(stream) = stream {
            gpu = gpu.on_stream(handle(stream)?, stream.clone().unbind())?;
        }
        let unknown_to_owner = out.is_some() && stream.is_none();
        let out = out.map(|out| destination(&own, out, &shape, id, Some(gpu.queue.stream().addr() as u64))).transpose()?;
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
    /// order. `ahead`: how many reads may be ahead of the one that is handed out: to the host, by default one for each thread (of a remote store as many as `concurrency`, if that is more); to a GPU, two, each with memory for its
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
        let array = self.array();
        byte_len(&array, &[])?;
        let wish = wish(policy)?;
        let id = place(device, None)?;
        if id == DeviceId::CPU {
            if stream.is_some() {
                return Err(parameter("stream= is for reads to a GPU"));
            }
            return ReadEach::new(&array, selections, None, ahead, ahead_bytes);
        }
        let mut gpu = py.detach(|| cuda::gpu(id.ordinal))?;
        if let Some(stream) = stream {
            gpu = gpu.on_stream(handle(stream)?, stream.clone().unbind())?;
        }
        ReadEach::new(&self.on(&gpu, wish)?, selections, Some(gpu), ahead, ahead_bytes)
    }

    /// The elements at integers, slices and `...`, as a NumPy array, or as a scalar where NumPy gives one: each axis has an integer, and there is no `...`.
    fn __getitem__<'py>(&self, py: Python<'py>, index: &Bound<'py, PyAny>) -> Outcome<Bound<'py, PyAny>> {
        let array = self.array();
        let selection = selection::parse(Some(index), array.shape().len(), Kind::Basic)?;
        let found = to_numpy(py, &array, &selection)?;
        let scalar = array.selection_shape(&selection)?.is_empty() && !selection::has_ellipsis(index);
        Ok(if scalar { found.get_item(PyTuple::empty(py))? } else { found })
    }

    /// Writes to integers, slices and `...`, as `write` does.
    fn __setitem__(&self, index: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> Outcome<()> {
        self.put(&selection::parse(Some(index), self.array().shape().len(), Kind::Basic)?, None, value, None)
    }

    /// Writes a selection, as `read` takes it: `None` is the whole array. Chunks that it covers in part are read first, and each chunk (shard, where there are shards) is
    /// stored whole, or not at all.
    ///
    /// `data` on the host: whatever NumPy makes an array of, broadcast to the selection. Elements are cast where NumPy's rule `same_kind` allows it; integers and texts
    /// that do not fit are refused. `data` on a GPU: a tensor, or any object with `__dlpack__`, of just the data type and shape; the device encodes what its codecs can. Nobody
    /// may write the memory meanwhile. `stream`: for data on a GPU, the CUDA stream to work on, as for `read`; in any case the memory is read after what its owner has
    /// enqueued so far, and all is stored when the call returns.
    #[pyo3(signature = (selection, data, *, stream=None))]
    fn write(&self, selection: Option<&Bound<'_, PyAny>>, data: &Bound<'_, PyAny>, stream: Option<&Bound<'_, PyAny>>) -> Outcome<()> {
        let selection = selection::parse(selection, self.array().shape().len(), Kind::Product)?;
        let stream = stream.map(|stream| Ok::<_, Failure>((handle(stream)?, stream.clone().unbind()))).transpose()?;
        self.put(&selection, None, data, stream)
    }

    /// Makes the array, as it is stored now, longer along `axis` and writes `data` there, which may be what `write` takes. Its other axes are as long as the array's. Gives the
    /// new shape. Where that fails or is interrupted, the array is made as long as before, if the store lets it.
    #[pyo3(signature = (data, axis=0))]
    fn append<'py>(&self, py: Python<'py>, data: &Bound<'py, PyAny>, axis: isize) -> Outcome<Bound<'py, PyTuple>> {
        self.origin.check_writable()?;
        let data_type = self.array().data_type().clone();
        let data = Data::of(data, &data_type, None, None)?;
        let shape = py.detach(|| -> Outcome<Vec<u64>> {
            let _one = self.appending.take("array is being appended to")?;
            let (before, added, grown) = self.change(|array| {
                array.refresh()?;
                if *array.data_type() != data_type {
                    return Err(parameter("the array was created anew, with another data type: open it again"));
                }
                let before = array.shape().to_vec();
                let (added, grown) = grown(&before, &data.shape(), axis)?;
                array.make_room(&grown)?;
                Ok((before, added, grown))
            })?;
            let written = self.write_data(&self.array(), &added, data);
            if written.is_err() {
                // Whoever tries again appends to what was there. Why the data were not written matters more than whether this works.
                let _ = self.change(|array| {
                    array.refresh()?;
                    if array.shape() == grown {
                        array.resize(&before)?;
                    }
                    Ok(())
                });
            }
            written?;
            Ok(grown)
        })?;
        Ok(PyTuple::new(py, shape)?)
    }

    /// Changes the shape. Chunks that no longer hold any element are removed, and what others hold outside becomes the fill value.
    fn resize(&self, py: Python<'_>, shape: &Bound<'_, PyAny>) -> Outcome<()> {
        self.origin.check_writable()?;
        let shape = create::lengths(shape, "shape")?;
        py.detach(|| self.change(|array| Ok(wait_detached(array.resize_async(&shape))??)))
    }

    /// Takes over what was changed of the stored metadata since the array was opened, as its shape by who appends to it.
    fn refresh(&self, py: Python<'_>) -> Outcome<()> {
        py.detach(|| self.change(|array| Ok(wait_detached(array.refresh_async())??)))
    }

    /// Single points, to read and to write: `array.vindex[[1, 2], [3, 4]]`.
    #[getter]
    fn vindex(this: Py<Self>) -> VIndex {
        VIndex(this)
    }

    fn _attributes<'py>(&self, py: Python<'py>) -> Outcome<Bound<'py, PyAny>> {
        node::attributes(py, self.array().attributes())
    }

    fn _change_attributes(&self, py: Python<'_>, set: &Bound<'_, PyAny>, remove: Vec<String>) -> Outcome<()> {
        self.origin.check_writable()?;
        let set = node::object(set)?;
        py.detach(|| self.change(|array| Ok(wait_detached(array.update_attributes_async(|own| node::change(own, &set, &remove)))??)))
    }

    /// All elements, for NumPy.
    #[pyo3(signature = (dtype=None, copy=None))]
    fn __array__<'py>(&self, py: Python<'py>, dtype: Option<&Bound<'py, PyAny>>, copy: Option<bool>) -> Outcome<Bound<'py, PyAny>> {
        if copy == Some(false) {
            return Err(parameter("reading an array makes a copy of it"));
        }
        let array = to_numpy(py, &self.array(), &Selection::all())?;
        Ok(match dtype {
            Some(dtype) => array.call_method1("astype", (dtype,))?,
            None => array,
        })
    }

    fn __len__(&self) -> PyResult<usize> {
        match self.array().shape().first() {
            Some(&len) => Ok(usize::try_from(len)?),
            None => Err(pyo3::exceptions::PyTypeError::new_err("an array without axes has no length")),
        }
    }

    /// Gives the zip archive that it was opened or created in its name; what is written later fails. Does nothing for other stores, and for nodes below of that one.
    fn close(&self, py: Python<'_>) -> Outcome<()> {
        self.origin.close(py, &self.path())
    }

    fn __enter__(this: Bound<'_, Self>) -> Bound<'_, Self> {
        this
    }

    /// As `close`; after an exception, a zip archive stays what it was before.
    #[pyo3(signature = (exception_type, *_about_it))]
    fn __exit__(&self, py: Python<'_>, exception_type: Option<&Bound<'_, PyAny>>, _about_it: &Bound<'_, PyTuple>) -> Outcome<()> {
        self.origin.leave(py, &self.path(), exception_type)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        self.origin.reduce(py, &self.path())
    }

    fn __repr__(&self) -> String {
        let array = self.array();
        format!("<zarrgpu.Array {} {} {:?} in {}>", array.path(), array.data_type(), array.shape(), array.store().name())
    }
}

/// What `data` appends along an axis: where, and the shape then.
fn grown(shape: &[u64], data: &[u64], axis: isize) -> Outcome<(Selection, Vec<u64>)> {
    let along = if axis < 0 { axis.checked_add_unsigned(shape.len()) } else { Some(axis) };
    let along = along.and_then(|axis| usize::try_from(axis).ok()).filter(|&axis| axis < shape.len());
    let along = along.ok_or_else(|| parameter(format!("axis={axis} of an array of {} axes", shape.len())))?;
    let fits = data.len() == shape.len() && (0..shape.len()).all(|axis| axis == along || data[axis] == shape[axis]);
    if !fits {
        return Err(parameter(format!("data of shape {data:?} cannot be appended to an array of shape {shape:?} along axis {along}")));
    }
    let mut grown = shape.to_vec();
    let too_long = || parameter(format!("axis {along} would be too long"));
    grown[along] = shape[along].checked_add(data[along]).ok_or_else(too_long)?;
    let ranges = grown.iter().enumerate().map(|(axis, &len)| if axis == along { shape[axis]..len } else { 0..len });
    Ok((Selection::ranges(ranges), grown))
}

fn wish(policy: &str) -> Outcome<Wish> {
    match policy {
        "prefer" => Ok(Wish::Prefer),
        "require" => Ok(Wish::Require),
        "host" => Ok(Wish::Host),
        _ => Err(parameter(format!("no policy is called {policy:?}: \"prefer\", \"require\" and \"host\" are"))),
    }
}

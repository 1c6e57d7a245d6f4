use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use pyo3::exceptions::{PyAttributeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use zarr::DataType;
use zarr_buffer_api::{Buffer, Device as _, DeviceId, HostDevice, Queue as _};
use zarr_buffer_cuda::ipc::IpcExport;
use zarr_buffer_dlpack::{Export, Request, Synchronize, device_to_raw};

use crate::cuda::{self, Gpu};
use crate::error::{Outcome, unsupported};
use crate::{capsule, data_type};

/// Elements on a device, in C order without gaps. Array libraries take it without a copy: `torch.from_dlpack(tensor)`, `cupy.from_dlpack(tensor)`,
/// `jax.dlpack.from_dlpack(tensor)`, `numpy.asarray(tensor)` for one on the host.
#[pyclass(frozen, weakref, module = "zarrgpu")]
pub(crate) struct Tensor {
    buffer: Buffer,
    shape: Vec<u64>,
    data_type: DataType,
    /// Where the elements are on a GPU: the GPU, with the queue that wrote them.
    gpu: Option<Gpu>,
    /// Whether somebody has the plain address, and may use it on any stream until this is dropped.
    address_known: AtomicBool,
    /// What keeps the memory known to other processes.
    export: Mutex<Option<IpcExport>>,
}

/// Opens the tensor of another process, described by `Tensor.ipc_descriptor()`; its memory, not a copy.
#[pyfunction]
pub(crate) fn open_ipc(py: Python<'_>, descriptor: &Bound<'_, PyDict>) -> Outcome<Tensor> {
    let text: String = py.import("json")?.call_method1("dumps", (descriptor,))?.extract()?;
    py.detach(|| cuda::open(&text))
}

impl Tensor {
    pub(crate) fn new(buffer: Buffer, shape: Vec<u64>, data_type: DataType, gpu: Option<Gpu>) -> Self {
        Self { buffer, shape, data_type, gpu, address_known: AtomicBool::new(false), export: Mutex::default() }
    }

    pub(crate) fn of(read: zarr::Tensor, gpu: Option<Gpu>) -> Self {
        Self::new(read.buffer, read.shape, read.data_type, gpu)
    }

    pub(crate) fn buffer(&self) -> &Buffer {
        &self.buffer
    }

    pub(crate) fn zarr_type(&self) -> &DataType {
        &self.data_type
    }

    pub(crate) fn sizes(&self) -> &[u64] {
        &self.shape
    }

    pub(crate) fn device_id(&self) -> DeviceId {
        self.buffer.device()
    }

    /// The same elements in new memory, on the host or where they are. Waits for them on the host, and only there.
    fn copy_to(&self, host: bool) -> Outcome<Self> {
        let (gpu, shape) = (if host { None } else { self.gpu.clone() }, self.shape.clone());
        let buffer = match (&self.gpu, &gpu) {
            (None, _) => {
                let copy = HostDevice.allocate_staging(self.buffer.len())?;
                self.buffer.wait()?;
                copy.host_write()?.copy_from_slice(&self.buffer.host_read()?);
                copy
            }
            (Some(from), None) => {
                let copy = HostDevice.allocate_staging(self.buffer.len())?;
                from.queue.copy(&self.buffer, &copy)?;
                copy.wait()?;
                copy
            }
            (Some(from), Some(_)) => {
                let copy = from.device.allocate(self.buffer.len(), &*from.queue)?;
                from.queue.copy(&self.buffer, &copy)?;
                copy
            }
        };
        Ok(Self::new(buffer, shape, self.data_type.clone(), gpu))
    }

    /// A dictionary of NumPy's array interface over the elements, version 3; CUDA's has the same fields and more.
    fn interface<'py>(&self, py: Python<'py>, type_string: &str) -> Outcome<Bound<'py, PyDict>> {
        let fields = PyDict::new(py);
        fields.set_item("shape", PyTuple::new(py, &self.shape)?)?;
        fields.set_item("typestr", type_string)?;
        let on_gpu = self.gpu.is_some();
        let address = if self.buffer.is_empty() && on_gpu { 0 } else { self.buffer.address() };
        fields.set_item("data", (address, false))?;
        fields.set_item("strides", py.None())?;
        fields.set_item("version", 3)?;
        Ok(fields)
    }

    pub(crate) fn to_numpy<'py>(
        tensor: &Bound<'py, Self>,
        dtype: Option<&Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> Outcome<Bound<'py, PyAny>> {
        let (py, this) = (tensor.py(), tensor.get());
        if this.gpu.is_some() {
            let message = format!("the elements are on {}; NumPy needs them on the host: tensor.cpu()", this.device_id());
            return Err(PyTypeError::new_err(message).into());
        }
        let own = data_type::dtype(py, &this.data_type)?;
        let interface = this.interface(py, &data_type::plain_type_string(&this.data_type))?;
        Ok(py.import("zarrgpu._numpy")?.call_method1("array", (tensor, interface, own, dtype, copy))?)
    }

    fn dlpack_device(&self) -> (i32, i32) {
        let raw = device_to_raw(self.device_id());
        (raw.device_type, raw.device_id)
    }
}

#[pymethods]
impl Tensor {
    /// Elements along each axis, slowest first.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.shape)
    }

    /// Bytes from one element to the next along each axis.
    #[getter]
    fn strides<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let mut next = self.itemsize() as u64;
        let mut strides = vec![0; self.shape.len()];
        for (stride, &len) in strides.iter_mut().zip(&self.shape).rev() {
            *stride = next;
            next = next.saturating_mul(len.max(1));
        }
        PyTuple::new(py, strides)
    }

    /// Number of axes.
    #[getter]
    fn ndim(&self) -> usize {
        self.shape.len()
    }

    /// Number of elements.
    #[getter]
    fn size(&self) -> u64 {
        self.shape.iter().product()
    }

    /// Bytes of one element.
    #[getter]
    fn itemsize(&self) -> usize {
        self.data_type.fixed_size().unwrap_or(0)
    }

    /// Bytes of all elements.
    #[getter]
    fn nbytes(&self) -> usize {
        self.buffer.len()
    }

    /// NumPy's dtype of the elements.
    #[getter]
    fn dtype<'py>(&self, py: Python<'py>) -> Outcome<Bound<'py, PyAny>> {
        data_type::dtype(py, &self.data_type)
    }

    /// Zarr's data type of the elements, as in metadata.
    #[getter]
    fn data_type(&self) -> String {
        self.data_type.to_string()
    }

    /// Where the elements are: `"cpu"`, `"cuda:0"`.
    #[getter]
    fn device(&self) -> String {
        self.device_id().to_string()
    }

    /// The address of the first element, on the device.
    #[getter]
    fn data_ptr(&self) -> u64 {
        self.address_known.store(true, Ordering::Relaxed);
        self.buffer.address()
    }

    /// Whether all work on the elements is done. Never blocks.
    #[getter]
    fn ready(&self) -> Outcome<bool> {
        Ok(self.buffer.is_idle()?)
    }

    /// Blocks until all work on the elements is done.
    fn wait(&self, py: Python<'_>) -> Outcome<()> {
        Ok(py.detach(|| self.buffer.wait())?)
    }

    /// The elements on the host: this tensor if they are there, else a copy. Waits for it.
    fn cpu<'py>(slf: &Bound<'py, Self>) -> Outcome<Bound<'py, Self>> {
        let py = slf.py();
        let this = slf.get();
        if this.gpu.is_none() {
            py.detach(|| this.buffer.wait())?;
            return Ok(slf.clone());
        }
        Ok(Bound::new(py, py.detach(|| this.copy_to(true))?)?)
    }

    /// The elements as a NumPy array: over the same memory if they are on the host, else over a copy.
    fn numpy<'py>(slf: &Bound<'py, Self>) -> Outcome<Bound<'py, PyAny>> {
        Self::to_numpy(&Self::cpu(slf)?, None, None)
    }

    /// What another process needs to open the elements on a GPU (`zarrgpu.open_ipc`, or the driver's own calls), as a dictionary. They are there as long as
    /// this tensor. Memory of `read(ipc=True)` is handed over as it is, other memory as a copy on the device.
    fn ipc_descriptor<'py>(&self, py: Python<'py>) -> Outcome<Bound<'py, PyAny>> {
        let gpu =
            self.gpu.as_ref().ok_or_else(|| unsupported("the elements are on the host; memory of a GPU is handed to other processes"))?;
        let text = py.detach(|| -> Outcome<String> {
            let mut kept = self.export.lock().unwrap_or_else(PoisonError::into_inner);
            let export = match kept.take() {
                Some(export) => export,
                None => cuda::export(gpu, &self.buffer, &self.shape, &self.data_type)?,
            };
            Ok(kept.insert(export).descriptor().to_json())
        })?;
        Ok(py.import("json")?.call_method1("loads", (text,))?)
    }

    /// A DLPack capsule, by the rules of the Python array API standard. Raises `BufferError` for what cannot be had.
    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        stream: Option<i64>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> Outcome<Bound<'py, PyAny>> {
        let answer = Request { stream, max_version, dl_device, copy }.answer(self.device_id(), self.buffer.is_host_visible())?;
        let copied = if answer.copy { Some(py.detach(|| self.copy_to(answer.device == DeviceId::CPU))?) } else { None };
        let source = copied.as_ref().unwrap_or(self);
        let mut export = Export::new(&source.buffer, &source.shape, None, &source.data_type)?.copied(answer.copy);
        if answer.device == DeviceId::CPU {
            export = export.on_host()?;
        }
        let handle = match answer.synchronize {
            Synchronize::Nothing => None,
            Synchronize::Host => {
                py.detach(|| source.buffer.wait())?;
                None
            }
            Synchronize::Stream(handle) => {
                if let Some(gpu) = &source.gpu {
                    gpu.order_before(&source.buffer, handle)?;
                }
                Some(handle)
            }
        };
        if let Some(gpu) = source.gpu.clone() {
            let consumer = gpu.consumer(handle);
            export = export.on_release(move |buffer| gpu.note_return(buffer, consumer));
        }
        capsule::hand_out(py, export, answer.format)
    }

    /// DLPack's kind and number of the device.
    fn __dlpack_device__(&self) -> (i32, i32) {
        self.dlpack_device()
    }

    /// For NumPy; only on the host.
    #[pyo3(signature = (dtype=None, copy=None))]
    fn __array__<'py>(slf: &Bound<'py, Self>, dtype: Option<&Bound<'py, PyAny>>, copy: Option<bool>) -> Outcome<Bound<'py, PyAny>> {
        Self::to_numpy(slf, dtype, copy)
    }

    /// CUDA's array interface, version 3; only on a GPU, and for data types that NumPy has.
    #[getter]
    fn __cuda_array_interface__<'py>(&self, py: Python<'py>) -> Outcome<Bound<'py, PyDict>> {
        let Some(gpu) = &self.gpu else {
            return Err(PyAttributeError::new_err("the elements are on the host").into());
        };
        let Some(type_string) = data_type::type_string(&self.data_type) else {
            return Err(PyAttributeError::new_err(format!("the CUDA array interface has no name for {}", self.data_type)).into());
        };
        self.address_known.store(true, Ordering::Relaxed);
        let fields = self.interface(py, &type_string)?;
        // Not all consumers look at the stream. Those that do not work on the default stream, as a rule: it is made to wait.
        if self.buffer.is_idle()? {
            fields.set_item("stream", py.None())?;
        } else {
            gpu.order_before(&self.buffer, 1)?;
            fields.set_item("stream", 1)?;
        }
        Ok(fields)
    }

    fn __len__(&self) -> PyResult<usize> {
        match self.shape.first() {
            Some(&len) => Ok(usize::try_from(len)?),
            None => Err(PyTypeError::new_err("a tensor without axes has no length")),
        }
    }

    fn __repr__(&self) -> String {
        format!("<zarrgpu.Tensor {} {:?} on {}>", self.data_type, self.shape, self.device_id())
    }
}

impl Drop for Tensor {
    fn drop(&mut self) {
        // Whoever had the address is done with it on the host; work enqueued on a stream may still use it.
        if let (Some(gpu), true) = (&self.gpu, self.address_known.load(Ordering::Relaxed)) {
            gpu.note_return(&self.buffer, gpu.consumer(None));
        }
    }
}

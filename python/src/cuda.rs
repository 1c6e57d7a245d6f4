//! GPUs of this process, and order between our work and that of other libraries.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::sys;
use pyo3::prelude::*;
use zarr::Options;
use zarr::cuda::{CudaDevice, CudaQueue};
use zarr_array::DeviceTarget;
use zarr_buffer_api::{Buffer, BufferError, BufferErrorKind, Device as _, Layout, Queue as _, enqueue};
use zarr_buffer_cuda::ipc::{self, IpcDescriptor, IpcExport, IpcTensor};
use zarr_meta::{DataType, Json};

use crate::error::{Outcome, parameter, unsupported};
use crate::tensor::Tensor;

/// A device, a queue on it, and the codecs that run there.
#[derive(Clone)]
pub(crate) struct Gpu {
    pub(crate) device: Arc<CudaDevice>,
    pub(crate) queue: Arc<CudaQueue>,
    pub(crate) target: DeviceTarget,
    pub(crate) options: Options,
    /// The object that the queue's stream belongs to, if it is somebody else's.
    _owner: Option<Arc<Py<PyAny>>>,
}

/// The GPU with a number, and the queue that reads without `stream=` share. Made when it is first asked for, and kept.
pub(crate) fn gpu(ordinal: i32) -> Outcome<Gpu> {
    static GPUS: Mutex<BTreeMap<i32, Gpu>> = Mutex::new(BTreeMap::new());
    let mut gpus = GPUS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(gpu) = gpus.get(&ordinal) {
        return Ok(gpu.clone());
    }
    let device = CudaDevice::new(ordinal)?;
    let queue = device.queue()?;
    let options = zarr::cuda::options(&device)?;
    let target = zarr::cuda::target(&device)?.with_queue(Arc::clone(&queue) as _);
    let gpu = Gpu { device, queue, target, options, _owner: None };
    gpus.insert(ordinal, gpu.clone());
    Ok(gpu)
}

impl Gpu {
    /// The same device, with work on a stream of somebody else's, which `owner` keeps alive.
    pub(crate) fn on_stream(&self, handle: u64, owner: Py<PyAny>) -> Outcome<Self> {
        let queue = self.borrow(handle)?;
        let target = self.target.clone().with_queue(Arc::clone(&queue) as _);
        Ok(Self { target, queue, _owner: Some(Arc::new(owner)), ..self.clone() })
    }

    /// A queue on a stream that was named to us.
    fn borrow(&self, handle: u64) -> Result<Arc<CudaQueue>, BufferError> {
        let stream = std::ptr::with_exposed_provenance_mut::<c_void>(handle as usize);
        // SAFETY: who passes a stream to `read` or `__dlpack__` promises, by their contracts, that it is alive, and to `read`, that it stays so while
        // the tensor does; an object that owns it is kept.
        unsafe { CudaQueue::from_raw_stream(&self.device, stream) }
    }

    /// Whether a number names the stream of this value's queue.
    fn is_own(&self, handle: u64) -> bool {
        self.queue.stream().addr() as u64 == handle
    }

    /// Lets later work on a consumer's stream come after all work on a buffer so far. The host does not wait.
    pub(crate) fn order_before(&self, buffer: &Buffer, handle: u64) -> Outcome<()> {
        if self.is_own(handle) {
            enqueue(&*self.queue, &[], &[buffer], || Ok::<_, BufferError>(()))?;
        } else {
            let queue = self.borrow(handle)?;
            enqueue(&*queue, &[], &[buffer], || Ok::<_, BufferError>(()))?;
        }
        Ok(())
    }

    /// What tells, when a consumer gives memory back, which of its work must be over before the memory is used anew.
    pub(crate) fn consumer(&self, handle: Option<u64>) -> Consumer {
        match handle {
            Some(handle) if self.is_own(handle) => Consumer::Ours,
            Some(handle) if handle > 2 && is_non_blocking(handle) => Consumer::Apart,
            _ => Consumer::Default,
        }
    }

    /// Notes a consumer's work on a buffer that it gives back.
    pub(crate) fn note_return(&self, buffer: &Buffer, consumer: Consumer) {
        let noted = match consumer {
            Consumer::Ours => enqueue(&*self.queue, &[], &[buffer], || Ok(())),
            Consumer::Default => match self.borrow(CudaQueue::LEGACY_DEFAULT.addr() as u64) {
                Ok(queue) => enqueue(&*queue, &[], &[buffer], || Ok(())),
                Err(error) => Err(error),
            },
            // Without Python's lock, which work of the consumer on the host may need; Python may be gone.
            Consumer::Apart => Python::try_attach(|py| py.detach(|| self.synchronize())).unwrap_or_else(|| self.synchronize()),
        };
        // There is nobody to tell. A context that refuses this is lost, and with it the work.
        let _: Result<(), BufferError> = noted;
    }

    /// Waits for all work of the process on the device.
    fn synchronize(&self) -> Result<(), BufferError> {
        let check = |result: sys::CUresult| match result {
            sys::CUresult::CUDA_SUCCESS => Ok(()),
            error => Err(BufferError::new(BufferErrorKind::Device, format!("{error:?}")).on(self.device.id())),
        };
        // SAFETY: the driver is loaded, since there is a device, whose context lives as long as it does.
        check(unsafe { sys::cuCtxPushCurrent_v2(self.device.context().cast()) })?;
        // SAFETY: a context is current.
        let waited = check(unsafe { sys::cuCtxSynchronize() });
        let mut popped = std::ptr::null_mut();
        // SAFETY: the context pushed above is popped.
        check(unsafe { sys::cuCtxPopCurrent_v2(&mut popped) })?;
        waited
    }
}

/// Makes a tensor's memory known to other processes; memory that cannot be is copied to some that can.
pub(crate) fn export(gpu: &Gpu, buffer: &Buffer, shape: &[u64], data_type: &DataType) -> Outcome<IpcExport> {
    let lens: Vec<usize> = shape.iter().map(|&len| len as usize).collect();
    let layout = Layout::contiguous(&lens, data_type.fixed_size().unwrap_or(1))?;
    let tensor = IpcTensor { dtype: data_type.to_string(), layout, read_only: false };
    match ipc::export(buffer, &tensor, &gpu.queue) {
        Err(error) if error.kind == BufferErrorKind::Unsupported => {
            let copy = gpu.device.allocate_exportable(buffer.len())?;
            gpu.queue.copy(buffer, &copy)?;
            Ok(ipc::export(&copy, &tensor, &gpu.queue)?)
        }
        export => Ok(export?),
    }
}

/// Opens the tensor of another process.
pub(crate) fn open(descriptor: &str) -> Outcome<Tensor> {
    let descriptor = IpcDescriptor::from_json(descriptor)?;
    let found = zarr::cuda::devices()?;
    let info = found.iter().find(|info| info.uuid == descriptor.device_uuid);
    let info = info.ok_or_else(|| unsupported(format!("the device {} is not one of this process", descriptor.device_uuid)))?;
    let gpu = gpu(info.ordinal)?;
    let (buffer, tensor) = ipc::open(&descriptor, &gpu.queue)?;
    let json = if tensor.dtype.starts_with('{') { Json::parse(tensor.dtype.as_bytes()) } else { Ok(Json::String(tensor.dtype.clone())) };
    let data_type = json.and_then(|json| DataType::parse(&json)).map_err(|error| parameter(error.to_string()))?;
    if !tensor.layout.is_contiguous() || tensor.layout.offset != 0 {
        return Err(parameter("a tensor that is not in C order without gaps"));
    }
    let shape = tensor.layout.shape.iter().map(|&len| len as u64).collect();
    Ok(Tensor::new(buffer, shape, data_type, Some(gpu)))
}

/// How a consumer's work can be found when it gives memory back. Its stream may be gone by then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Consumer {
    /// On the queue of the tensor.
    Ours,
    /// On a default stream, or one that the legacy default stream waits for.
    Default,
    /// On a stream that waits for nobody: only the device as a whole can be waited for.
    Apart,
}

/// Whether the legacy default stream does not wait for a stream.
fn is_non_blocking(handle: u64) -> bool {
    let mut flags = 0;
    // SAFETY: the driver is loaded, since there is a device; the stream is alive, as whoever named it promised.
    let result = unsafe { sys::cuStreamGetFlags(std::ptr::with_exposed_provenance_mut(handle as usize), &mut flags) };
    result != sys::CUresult::CUDA_SUCCESS || flags & sys::CUstream_flags::CU_STREAM_NON_BLOCKING as u32 != 0
}

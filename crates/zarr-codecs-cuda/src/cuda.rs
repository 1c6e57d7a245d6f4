use std::sync::Arc;

use zarr_buffer_api::{BufferError, BufferErrorKind, Device, DeviceId, Queue};
use zarr_buffer_cuda::{CudaDevice, CudaFunction, CudaModule, CudaQueue};

use crate::engine::{Engine, Kernel, Launch};
use crate::provider::KernelProvider;

/// The kernels, for each architecture that they were compiled for.
static FATBIN: &[u8] = include_bytes!("../kernels/codecs.fatbin");

/// The codecs of this crate on one CUDA device, as the provider `cuda`.
///
/// # Errors
/// When the device cannot load the kernels.
pub fn cuda_provider(device: &Arc<CudaDevice>) -> Result<KernelProvider, BufferError> {
    Ok(KernelProvider::new(CudaEngine::new(device)?))
}

/// Kernels on a CUDA device.
#[derive(Debug)]
pub struct CudaEngine {
    device: Arc<CudaDevice>,
    /// In the order of [`Kernel::ALL`].
    functions: Vec<CudaFunction>,
    side: Arc<CudaQueue>,
}

impl CudaEngine {
    /// Loads the kernels.
    ///
    /// # Errors
    /// When the device cannot load them.
    pub fn new(device: &Arc<CudaDevice>) -> Result<Self, BufferError> {
        let module = CudaModule::load(device, FATBIN)?;
        let functions = Kernel::ALL.iter().map(|kernel| module.function(kernel.name())).collect::<Result<_, _>>()?;
        Ok(Self { device: Arc::clone(device), functions, side: device.queue()? })
    }
}

// SAFETY: launches are those of the driver, on the stream of the queue.
unsafe impl Engine for CudaEngine {
    fn name(&self) -> &'static str {
        "cuda"
    }

    fn device(&self) -> DeviceId {
        self.device.id()
    }

    fn multiprocessors(&self) -> u32 {
        self.device.info().multiprocessors
    }

    fn has_registers(&self) -> bool {
        true
    }

    fn shared_memory(&self) -> u32 {
        self.device.info().shared_memory_per_block
    }

    fn side_queue(&self, _: &dyn Queue) -> Option<&dyn Queue> {
        Some(&*self.side)
    }

    unsafe fn launch(&self, queue: &dyn Queue, kernel: Kernel, launch: Launch, params: &[u8]) -> Result<(), BufferError> {
        let wrong = || BufferError::new(BufferErrorKind::Parameter, "a queue of another kind of device").on(self.device.id());
        let queue = queue.as_any().downcast_ref::<CudaQueue>().ok_or_else(wrong)?;
        let function = &self.functions[kernel as usize];
        // SAFETY: the caller's promise.
        unsafe { queue.launch(function, [launch.grid, 1, 1], launch.threads, launch.shared, params) }
    }
}

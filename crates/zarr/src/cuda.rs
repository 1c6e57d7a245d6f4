//! Reads that end on an NVIDIA GPU.
//!
//! ```no_run
//! use zarr::cuda::CudaDevice;
//! use zarr::{Array, OpenOptions, Selection};
//!
//! let device = CudaDevice::new(0)?;
//! let (store, path) = zarr::locate("data.zarr/temperature", &OpenOptions::read())?;
//! let array = Array::open(store, &path, &zarr::cuda::options(&device)?)?;
//! println!("{}", array.explain());
//! let tensor = array.read_to_device(&Selection::all(), &zarr::cuda::target(&device)?)?;
//! println!("{} bytes at {:#x}", tensor.buffer.len(), tensor.buffer.address());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Building this takes no CUDA compiler and no toolkit. Without a driver, [`devices`] and [`CudaDevice::new`] are errors that say so.

use std::any::Any;
use std::sync::Arc;

pub use zarr_buffer_cuda::{CudaDevice, CudaDeviceInfo, CudaDeviceOptions, CudaQueue, devices, driver_version};

use crate::buffer_api::{BufferError, Device as _, Queue};
use crate::{ArrayError, DeviceTarget, Observer, Options, Policy, Registry, Stage};

/// The codecs compiled in: those of `device`, and those of the CPU for the rest.
///
/// # Errors
/// When the driver refuses the kernels.
pub fn registry(device: &Arc<CudaDevice>) -> Result<Registry, BufferError> {
    Ok(crate::registry().with(zarr_codecs_cuda::cuda_provider(device)?))
}

/// The default options over [`registry`]: the device decodes what it can, the CPU what comes before that. [`crate::Array::explain`] tells.
///
/// # Errors
/// As [`registry`].
pub fn options(device: &Arc<CudaDevice>) -> Result<Options, BufferError> {
    Ok(Options::new(registry(device)?).with_policy(Policy::Prefer(device.id())))
}

/// A target with a queue of its own, as [`DeviceTarget::new`], whose reads show their stages in NVIDIA's profilers ([`Ranges`]).
///
/// # Errors
/// When the device refuses a queue.
pub fn target(device: &Arc<CudaDevice>) -> Result<DeviceTarget, ArrayError> {
    let target = DeviceTarget::new(Arc::clone(device) as _)?;
    // Nobody else loads the profiler's library.
    Ok(if zarr_buffer_cuda::nvtx::is_available() { target.with_observer(Arc::new(Ranges)) } else { target })
}

/// Shows the stages of reads as NVTX ranges on the time lines of the threads that run or enqueue them, where a profiler's library is.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ranges;

impl Observer for Ranges {
    fn begin(&self, stage: Stage, _: u64, _: Option<&Arc<dyn Queue>>) -> Box<dyn Any> {
        Box::new(zarr_buffer_cuda::nvtx::range(&format!("zarr: {stage}")))
    }
}

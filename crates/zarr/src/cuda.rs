//! Reads that end on an NVIDIA GPU.
//!
//! ```no_run
//! use zarr::cuda::CudaDevice;
//! use zarr::{Array, DeviceTarget, OpenOptions, Selection};
//!
//! let device = CudaDevice::new(0)?;
//! let (store, path) = zarr::locate("data.zarr/temperature", &OpenOptions::read())?;
//! let array = Array::open(store, &path, &zarr::cuda::options(&device)?)?;
//! println!("{}", array.explain());
//! let tensor = array.read_to_device(&Selection::all(), &DeviceTarget::new(device)?)?;
//! println!("{} bytes at {:#x}", tensor.buffer.len(), tensor.buffer.address());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Building this takes no CUDA compiler and no toolkit. Without a driver, [`devices`] and [`CudaDevice::new`] are errors that say so.

use std::sync::Arc;

pub use zarr_buffer_cuda::{CudaDevice, CudaDeviceInfo, CudaDeviceOptions, CudaQueue, devices, driver_version};

use crate::buffer_api::{BufferError, Device as _};
use crate::{Options, Policy, Registry};

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

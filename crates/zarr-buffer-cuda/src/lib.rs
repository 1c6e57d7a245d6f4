//! NVIDIA GPUs behind the contracts of `zarr-buffer-api`.
//!
//! * [`devices`] says what is there. That there is no driver, or no device, is an answer and no panic: `libcuda` is opened at run time.
//! * [`CudaDevice`] is a [`zarr_buffer_api::Device`]: memory from a stream-ordered pool of its own, within a byte budget, and pinned staging
//!   memory that is reused. It shares the primary context, and so its memory, with other CUDA libraries of the process.
//! * [`CudaQueue`] is a [`zarr_buffer_api::Queue`]: a stream, of its own or of somebody else. Nothing here waits for a device in secret.
//! * [`CudaModule`] and [`CudaFunction`] load and launch kernels that were compiled ahead of time.
//! * [`ipc`] hands memory to another process.
//!
//! It decodes nothing: codecs for CUDA live in `zarr-codecs-cuda`. Tensors of other libraries come and go through `zarr-buffer-dlpack`.
//!
//! # Driver
//!
//! The driver of CUDA 12.0 or later (on Linux 525.60.13), and nothing else of CUDA: no toolkit, no compiler, no other library. Copies and
//! fills of boxes within a device run kernels of this crate, which devices of compute capability 8.0 and later take.
//!
//! # Example
//!
//! ```
//! use zarr_buffer_api::{Buffer, Device, Queue};
//! use zarr_buffer_cuda::{CudaDevice, devices};
//!
//! match devices() {
//!     Err(error) => println!("no CUDA here: {error}"),
//!     Ok(found) => {
//!         for info in found {
//!             let device = CudaDevice::new(info.ordinal)?;
//!             let queue = device.queue()?;
//!             let there = device.allocate(4, &*queue)?;
//!             queue.copy(&Buffer::from_vec(vec![1, 2, 3, 4]), &there)?;
//!             there.wait()?;
//!         }
//!     }
//! }
//! # Ok::<(), zarr_buffer_api::BufferError>(())
//! ```

mod blocks;
mod copy;
mod device;
mod driver;
mod error;
mod event;
mod info;
pub mod ipc;
mod memory;
mod module;
pub mod nvtx;
mod queue;
mod regions;
mod staging;
#[doc(hidden)]
pub mod testing;
mod timer;

pub use device::{CudaDevice, CudaDeviceOptions};
pub use error::CudaError;
pub use info::{CudaDeviceInfo, devices, driver_version};
pub use module::{CudaFunction, CudaModule};
pub use queue::CudaQueue;
pub use timer::CudaMark;

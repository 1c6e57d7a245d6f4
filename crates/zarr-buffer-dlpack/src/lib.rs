//! Any Zarr buffer to [DLPack] and back.
//!
//! * [`Export`] makes an owned managed tensor, legacy or versioned, of a `zarr_buffer_api::Buffer`, a shape and a Zarr data type.
//! * [`Managed`] owns a managed tensor, ours or somebody else's, and calls its deleter once. [`Managed::import`] makes a buffer of it.
//! * [`Request`] holds what a consumer passes to `__dlpack__`, and says what the producer must do: which structure, on which device, a copy
//!   or not, which stream waits.
//! * [`abi`] is the C layout, of DLPack 1.3. No other crate of the workspace knows it.
//!
//! It enqueues nothing, waits for nothing but to free memory behind its work, and knows neither Python nor CUDA: the capsule and the streams belong to
//! the caller. Buffers and devices are in `zarr-buffer-api`, data types in `zarr-meta`.
//!
//! ```
//! use zarr_buffer_api::Buffer;
//! use zarr_buffer_dlpack::{Access, Export};
//! use zarr_meta::DataType;
//!
//! let buffer = Buffer::from_vec((0..24).collect());
//! let tensor = Export::new(&buffer, &[2, 3], None, &DataType::Float32)?.into_versioned()?;
//! assert_eq!(tensor.shape(), [2, 3]);
//! assert_eq!(tensor.strides(), Some(&[3, 1][..]));
//!
//! // SAFETY: the tensor is the buffer's, and nobody uses the buffer while the imported one lives.
//! let back = unsafe { tensor.import(Access::ReadWrite) }?;
//! assert_eq!(back.data_type, DataType::Float32);
//! assert_eq!(back.region.buffer.host_read()?.len(), 24);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [DLPack]: https://dmlc.github.io/dlpack/latest/c_api.html

pub mod abi;
mod data_type;
mod device;
mod error;
mod export;
mod import;
mod managed;
mod protocol;
mod reaper;

pub use data_type::ElementType;
pub use device::{device_from_raw, device_to_raw};
pub use error::DlpackError;
pub use export::Export;
pub use import::{Access, Imported};
pub use managed::{Managed, ManagedTensor};
pub use protocol::{Answer, Format, Request, Synchronize};
pub use reaper::Reaper;

//! Codecs of Zarr on NVIDIA GPUs.
//!
//! [`cuda_provider`] gives a [`zarr_codec_api::CodecProvider`] for one device. Put it into a registry beside the codecs of the host, and open arrays with a
//! policy that prefers the device.
//!
//! * `zstd`: decoding, with the verdicts and the bytes of libzstd 1.5.7. Frames that need a dictionary are refused. Chunks of more than 512 MiB are left to the
//!   host. One corner of damaged data is not followed: a block of more than 64 KiB of literals that makes more than its maximum, where libzstd overwrites its own literals.
//! * `bytes`, where it is the device's byte order.
//! * Decoded chunks go to any box of the output, a batch in one launch.
//!
//! The kernels are in `kernels/`, for anyone to read. They are compiled ahead of time and embedded; the driver is all that has to be there. What starts them
//! is an [`Engine`]: CUDA here, the host in `zarr-codecs-cuda-host`, where the same sources run under sanitizers and fuzzers.
//!
//! Devices, queues and memory are `zarr-buffer-cuda`'s. What has no kernel here runs on the host, by `zarr-codecs-cpu`: the chain is divided, and says so.

mod codecs;
mod constants;
mod cuda;
mod engine;
mod provider;
mod segment;

pub use cuda::{CudaEngine, cuda_provider};
pub use engine::{Engine, Kernel, Launch};
pub use provider::KernelProvider;

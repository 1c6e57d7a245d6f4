//! Codecs of Zarr on NVIDIA GPUs.
//!
//! [`cuda_provider`] gives a [`zarr_codec_api::CodecProvider`] for one device. Put it into a registry beside the codecs of the host, and open arrays with a
//! policy that prefers the device.
//!
//! * `zstd`: decoding, with the verdicts and the bytes of libzstd 1.5.7. Frames that need a dictionary are refused. Chunks of more than 512 MiB are left to the
//!   host. One corner of damaged data is not followed: a block of more than 64 KiB of literals that makes more than its maximum, where libzstd overwrites its own literals.
//!   Encoding, where the level is at most 3: a frame of blocks of 64 KiB for each chunk, the same one each time. Higher levels are left to the host.
//! * `blosc`: decoding, where the inner codec of the metadata is `lz4`, `lz4hc` or `zstd` (not with a block size of less than 16 KiB), with any shuffle and type size. A chunk whose header names
//!   another inner codec is an error that says so; no known writer makes one. `blosclz`, `zlib` and `snappy` are left to the host.
//! * `gzip` and `numcodecs.zlib`: decoding, with the verdicts and the bytes of `zarr-codecs-cpu`; checksums are verified. A chunk of more than 64 blocks with codes and one for each 16 stored bytes
//!   is an error that says so.
//! * `numcodecs.lz4`: decoding, with the verdicts and the bytes of `zarr-codecs-cpu`.
//! * Both ways: `bytes` in either byte order, `numcodecs.shuffle`, `crc32c`, `transpose`, and the array to array codecs that take one number at a time: `bitround`,
//!   `scale_offset`, `cast_value`, `numcodecs.fixedscaleoffset`, `numcodecs.astype`, `numcodecs.quantize`. Bytes, NaN and verdicts are those of `zarr-codecs-cpu`.
//! * All that becomes of the elements of a batch, up to their places in any boxes of the output, is one pass over them.
//!
//! Left to the host: integers narrower than a byte, values of floats narrower than 16 bits, structs in the other byte order, chunks of more than 2 GiB.
//!
//! The kernels are in `kernels/`, for anyone to read. They are compiled ahead of time, for devices of compute capability 8.0 and later, and embedded; the driver is all that has to be
//! there. What starts them is an [`Engine`]: CUDA here, the host in `zarr-codecs-cuda-host`, where the same sources run under sanitizers and fuzzers.
//!
//! Devices, queues and memory are `zarr-buffer-cuda`'s. What has no kernel here runs on the host, by `zarr-codecs-cpu`: the chain is divided, and says so.

mod codecs;
mod constants;
mod cuda;
mod engine;
mod number;
mod provider;
mod recipe;
mod segment;
mod table;

pub use cuda::{CudaEngine, cuda_provider};
pub use engine::{Engine, Kernel, Launch};
pub use provider::KernelProvider;

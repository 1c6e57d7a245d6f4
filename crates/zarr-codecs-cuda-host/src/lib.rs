//! The kernels of `zarr-codecs-cuda`, built for the host.
//!
//! The same sources, compiled by the host's C++ compiler: each thread of a block of threads is a coroutine, and barriers and collectives are where they
//! switch, in an order drawn from a seed. So the kernels run where there is no GPU: under the address and undefined-behaviour sanitizers, in fuzzers, and
//! in the conformance suite, which takes [`host_provider`] like any other provider. It is a means of testing, not a fast decoder: `zarr-codecs-cpu` is that.
//!
//! Memory is the host's: use it with [`zarr_buffer_api::HostDevice`]. Give every chunk an allocation of its own of just its size, or reads past its end go unseen.

mod engine;
mod scheduler;

pub use engine::{HostOptions, host_provider};

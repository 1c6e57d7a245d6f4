//! Zarr codecs on the CPU, each a feature on its field library.
//!
//! [`provider`] makes a [`zarr_codec_api::HostProvider`] of every codec that was compiled in; put it into a registry.
//! [`codecs`] documents each: configuration, specification, and what it does where implementations part ways.
//!
//! A codec whose work is done by a library stands behind a feature of its name, and one feature pulls one library; `blosc` pulls those of
//! the codecs inside it. Codecs that need no library are always there.
//!
//! This crate does no I/O, has no thread pool, and works on one chunk at a time on the caller's thread: `zarr-array` cuts the batches and owns the
//! threads. `sharding_indexed` is not here: the planner of `zarr-array` sees through it. `zarr-codecs-cuda` mirrors these modules for the GPU.
#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::arithmetic_side_effects, clippy::cast_possible_truncation))]

use zarr_codec_api::HostProvider;

pub mod codecs;

mod checksum;
mod config;
#[cfg(any(feature = "gzip", feature = "zlib"))]
mod deflate;
mod dispatch;
mod filter;
mod library;
mod number;
mod shuffle;
#[cfg(any(feature = "bz2", feature = "lzma"))]
mod stream;
mod swap;
#[cfg(test)]
mod testing;

/// Every codec that was compiled in, as a provider named `cpu`.
#[must_use]
pub fn provider() -> HostProvider {
    codecs::register(HostProvider::new("cpu"))
}

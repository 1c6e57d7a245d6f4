//! Zarr codecs on the CPU, each a feature on its field library.
//!
//! [`provider`] makes a [`zarr_codec_api::HostProvider`] of every codec that was compiled in; put it into a registry.
//! [`codecs`] documents each: configuration, specification, and what it does where implementations part ways.
//!
//! A codec whose work is done by a library stands behind a feature of its name, and one feature pulls one library; `blosc` pulls those of
//! the codecs inside it. Codecs that need no library are always there.
//!
//! ```
//! # #[cfg(all(feature = "zstd", feature = "crc32c"))] {
//! use zarr_codec_api::{ArrayRepresentation, Chain, Policy, Registry, Scratch, Source, Target};
//! use zarr_meta::{DataType, Extension, FillValue, Json};
//!
//! let registry = Registry::new().with(zarr_codecs_cpu::provider());
//! let metadata = r#"[{"name": "bytes", "configuration": {"endian": "big"}},
//!                    {"name": "zstd", "configuration": {"level": 3}},
//!                    {"name": "crc32c"}]"#;
//! let codecs: Vec<Extension> =
//!     Json::parse(metadata.as_bytes())?.as_array().into_iter().flatten().map(Extension::parse).collect::<Result<_, _>>()?;
//! let data_type = DataType::Int16;
//! let chunk = ArrayRepresentation { fill_value: FillValue::default_for(&data_type), data_type, shape: vec![2, 3] };
//! let chain = Chain::bind(&codecs, chunk, &registry, &Policy::Host)?;
//!
//! let elements: Vec<u8> = (1..=6i16).flat_map(i16::to_ne_bytes).collect();
//! let (mut encoded, mut decoded, mut scratch) = (Vec::new(), vec![0; elements.len()], Scratch::new());
//! chain.encode(Source::Bytes(&elements), &mut encoded, &mut scratch)?;
//! chain.decode(&encoded, Target::Exact(&mut decoded), &mut scratch)?;
//! assert_eq!(decoded, elements);
//! # }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
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

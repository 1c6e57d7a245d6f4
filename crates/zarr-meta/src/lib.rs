//! Zarr metadata as Rust types: what `zarr.json`, `.zarray`, `.zgroup`, `.zattrs` and `.zmetadata`
//! say, read and written.
//!
//! - Version 3 (core 3.1 and the registry of extensions): [`ArrayMetadataV3`],
//!   [`GroupMetadataV3`], [`NodeMetadata`].
//! - Version 2: [`ArrayMetadataV2`], [`GroupMetadataV2`], [`ConsolidatedMetadataV2`]; arrays
//!   convert both ways, with [`ArrayMetadataV2::to_v3`] and [`ArrayMetadataV2::from_v3`].
//! - Their parts: [`DataType`], [`FillValue`], [`ChunkGrid`], [`ChunkKeyEncoding`], [`Extension`],
//!   [`NodePath`].
//! - [`Json`], a value that keeps number literals and the order of keys, so that attributes survive
//!   a round trip unchanged.
//!
//! The crate does no input or output: stores are the work of `zarr-store-api` and `zarr-store`. It
//! knows codecs by name and configuration alone: what they do is the work of `zarr-codec-api` and
//! its providers. Opening an array, and everything that needs its chunks, is the work of
//! `zarr-array`.
//!
//! Where the specification, the registry and the implementations disagree, see [`decisions`].
//!
//! # Reading
//!
//! ```
//! use zarr_meta::{DataType, NodeMetadata};
//!
//! let text = br#"{
//!   "zarr_format": 3,
//!   "node_type": "array",
//!   "shape": [10000, 1000],
//!   "data_type": "float64",
//!   "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1000, 100]}},
//!   "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
//!   "fill_value": "NaN",
//!   "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
//!   "dimension_names": ["rows", "columns"]
//! }"#;
//! let NodeMetadata::Array(array) = NodeMetadata::parse(text)? else { panic!("a group") };
//! assert_eq!(array.data_type, DataType::Float64);
//! assert_eq!(array.chunk_grid.grid_shape(&array.shape), [10, 10]);
//! assert_eq!(array.chunk_key_encoding.encode(&[9, 0]), "c/9/0");
//! assert_eq!(array.fill_value.as_bytes(), f64::NAN.to_ne_bytes());
//! # Ok::<(), zarr_meta::MetadataError>(())
//! ```
//!
//! # The configuration of a codec
//!
//! Codec authors describe theirs as a struct, and never see the JSON:
//!
//! ```
//! use zarr_meta::{Extension, Json};
//!
//! #[derive(serde::Deserialize, serde::Serialize)]
//! #[serde(deny_unknown_fields)]
//! struct Zstd {
//!     level: i32,
//!     #[serde(default)]
//!     checksum: bool,
//! }
//!
//! let codec = Extension::parse(&Json::parse(br#"{"name": "zstd", "configuration": {"level": 3}}"#)?)?;
//! let config: Zstd = codec.config()?;
//! assert_eq!((config.level, config.checksum), (3, false));
//!
//! let error = Extension::new("zstd").config::<Zstd>().err().map(|error| error.to_string());
//! assert_eq!(error.as_deref(), Some("$.configuration: missing field `level`"));
//! # Ok::<(), zarr_meta::MetadataError>(())
//! ```
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(clippy::indexing_slicing, clippy::cast_possible_truncation, clippy::unwrap_used, clippy::expect_used, clippy::panic)
)]

mod base64;
mod chunk_grid;
mod chunk_key;
mod data_type;
mod endianness;
mod error;
mod extension;
mod fill_value;
mod json;
mod path;
mod read;
mod v2;
mod v3;
mod via_json;

pub use chunk_grid::{ChunkGrid, GridAxis};
pub use chunk_key::{ChunkKeyEncoding, Separator};
pub use data_type::{DataType, ElementSize, MAX_ELEMENT_SIZE, StructField, SwapRun, TimeUnit};
pub use endianness::Endianness;
pub use error::{JsonPath, MetadataError};
pub use extension::Extension;
pub use fill_value::FillValue;
pub use json::{Json, JsonObject, MAX_DEPTH, Number};
pub use path::NodePath;
pub use v2::{ArrayMetadataV2, CodecV2, ConsolidatedMetadataV2, DataTypeV2, FieldV2, GroupMetadataV2, NodeMetadataV2, Order};
pub use v3::{ArrayMetadataV3, ConsolidatedMetadata, GroupMetadataV3, NodeMetadata};

#[doc = include_str!("decisions.md")]
pub mod decisions {}

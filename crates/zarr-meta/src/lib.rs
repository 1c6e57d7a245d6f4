//! Zarr v2 and v3 metadata as Rust types: data types, fill values, chunk grids, chunk keys
#![forbid(unsafe_code)]

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

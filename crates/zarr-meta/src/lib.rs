//! Zarr v2 and v3 metadata as Rust types: data types, fill values, chunk grids, chunk keys
#![forbid(unsafe_code)]

mod chunk_grid;
mod chunk_key;
mod data_type;
mod endianness;
mod error;
mod extension;
mod json;
mod read;

pub use chunk_grid::{ChunkGrid, GridAxis};
pub use chunk_key::{ChunkKeyEncoding, Separator};
pub use data_type::{DataType, ElementSize, MAX_ELEMENT_SIZE, StructField, SwapRun, TimeUnit};
pub use endianness::Endianness;
pub use error::{JsonPath, MetadataError};
pub use extension::Extension;
pub use json::{Json, JsonObject, MAX_DEPTH, Number};

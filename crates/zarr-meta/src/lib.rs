//! Zarr v2 and v3 metadata as Rust types: data types, fill values, chunk grids, chunk keys

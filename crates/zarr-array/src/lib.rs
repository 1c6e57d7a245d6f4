//! Zarr arrays and groups: open, create, read, write; plan, fetch, decode

//! Laws that every Zarr codec, store and device must hold

pub mod store;

//! Laws that every Zarr codec, store and device must hold
#[cfg(feature = "toy")]
pub mod toy;

pub mod store;

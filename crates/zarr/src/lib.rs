//! Zarr from object store to tensor: the front door

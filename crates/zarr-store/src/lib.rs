//! Zarr stores: memory, filesystem, zip, object_store, and wrappers

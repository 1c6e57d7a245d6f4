//! The contract between Zarr arrays and stores: keys, byte ranges, blocking and async stores

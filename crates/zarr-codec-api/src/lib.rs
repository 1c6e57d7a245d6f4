//! The contract between Zarr arrays and codecs: providers, segments, registry, limits, errors

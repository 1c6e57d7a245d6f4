//! Zarr codecs on the CPU, each a feature on its field library

//! Safe faces of the compression libraries, with their contexts kept per thread: making one costs more than decoding a small chunk does.

#[cfg(any(feature = "gzip", feature = "zlib", feature = "blosc"))]
pub(crate) mod deflate;
#[cfg(all(feature = "inflate-pieces", any(feature = "gzip", feature = "zlib")))]
pub(crate) mod inflate;
#[cfg(any(feature = "lz4", feature = "blosc"))]
pub(crate) mod lz4;
#[cfg(any(feature = "zstd", feature = "blosc"))]
pub(crate) mod zstd;

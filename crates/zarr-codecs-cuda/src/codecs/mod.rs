pub(crate) mod zstd;

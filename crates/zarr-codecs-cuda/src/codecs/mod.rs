pub(crate) mod scatter;
pub(crate) mod zstd;

//! The codecs, one module each.

use zarr_codec_api::HostProvider;

#[cfg(feature = "adler32")]
pub mod adler32;
pub mod bytes;
#[cfg(feature = "crc32")]
pub mod crc32;
#[cfg(feature = "crc32c")]
pub mod crc32c;
pub mod fletcher32;
#[cfg(feature = "gzip")]
pub mod gzip;
pub mod jenkins_lookup3;
#[cfg(feature = "lz4")]
pub mod lz4;
pub mod transpose;
#[cfg(feature = "zlib")]
pub mod zlib;
#[cfg(feature = "zstd")]
pub mod zstd;

/// Adds every codec that was compiled in.
pub(crate) fn register(provider: HostProvider) -> HostProvider {
    let codecs: &[fn(HostProvider) -> HostProvider] = &[
        #[cfg(feature = "adler32")]
        adler32::register,
        bytes::register,
        #[cfg(feature = "crc32")]
        crc32::register,
        #[cfg(feature = "crc32c")]
        crc32c::register,
        fletcher32::register,
        #[cfg(feature = "gzip")]
        gzip::register,
        jenkins_lookup3::register,
        #[cfg(feature = "lz4")]
        lz4::register,
        transpose::register,
        #[cfg(feature = "zlib")]
        zlib::register,
        #[cfg(feature = "zstd")]
        zstd::register,
    ];
    codecs.iter().fold(provider, |provider, register| register(provider))
}

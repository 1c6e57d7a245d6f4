//! The codecs, one module each.
//!
//! # What is not here
//!
//! * `numcodecs.pickle` is refused ([`pickle`] says why).
//! * `snappy` is a codec inside `blosc` alone: nothing writes it by itself.
//! * `zarrs.vlen`, `zarrs.optional` and `zarrs.gdeflate`, which zarrs calls experimental, does not write unless asked to, and shares with no other
//!   implementation.
//! * Proposals to the registry that no released implementation follows: `arrow-ipc`, `lzw`, `n5_varlen`, `label_multiset`.
//! * Codecs of images (`jpeg`, `jpegxl`, `imagecodecs_*`), which are libraries of their own: a crate outside this workspace adds one as a provider.
//!
//! An array with one of these opens with an error that names the codec.

use zarr_codec_api::HostProvider;

#[cfg(feature = "adler32")]
pub mod adler32;
pub mod astype;
pub mod base64;
pub mod bitround;
#[cfg(feature = "blosc")]
pub mod blosc;
pub mod bytes;
#[cfg(feature = "bz2")]
pub mod bz2;
pub mod cast_value;
pub mod categorize;
pub mod conditional;
#[cfg(feature = "crc32")]
pub mod crc32;
#[cfg(feature = "crc32c")]
pub mod crc32c;
pub mod delta;
pub mod fixedscaleoffset;
pub mod fletcher32;
#[cfg(feature = "gzip")]
pub mod gzip;
pub mod jenkins_lookup3;
pub mod json2;
#[cfg(feature = "lz4")]
pub mod lz4;
#[cfg(feature = "lzma")]
pub mod lzma;
pub mod msgpack2;
pub mod n5_default;
pub mod packbits;
#[cfg(feature = "pcodec")]
pub mod pcodec;
pub mod pickle;
pub mod quantize;
pub mod reshape;
pub mod scale_offset;
pub mod shuffle;
pub mod transpose;
mod vlen;
pub mod vlen_array;
pub mod vlen_bytes;
pub mod vlen_utf8;
pub mod zfp;
#[cfg(feature = "zlib")]
pub mod zlib;
#[cfg(feature = "zstd")]
pub mod zstd;

/// Adds every codec that was compiled in.
pub(crate) fn register(provider: HostProvider) -> HostProvider {
    let codecs: &[fn(HostProvider) -> HostProvider] = &[
        #[cfg(feature = "adler32")]
        adler32::register,
        #[cfg(feature = "blosc")]
        blosc::register,
        bytes::register,
        #[cfg(feature = "bz2")]
        bz2::register,
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
        #[cfg(feature = "lzma")]
        lzma::register,
        shuffle::register,
        transpose::register,
        #[cfg(feature = "zlib")]
        zlib::register,
        #[cfg(feature = "zstd")]
        zstd::register,
        astype::register,
        base64::register,
        bitround::register,
        cast_value::register,
        categorize::register,
        conditional::register,
        delta::register,
        fixedscaleoffset::register,
        json2::register,
        msgpack2::register,
        n5_default::register,
        packbits::register,
        #[cfg(feature = "pcodec")]
        pcodec::register,
        pickle::register,
        quantize::register,
        reshape::register,
        scale_offset::register,
        vlen::register,
        vlen_array::register,
        vlen_bytes::register,
        vlen_utf8::register,
        zfp::register,
    ];
    codecs.iter().fold(provider, |provider, register| register(provider))
}

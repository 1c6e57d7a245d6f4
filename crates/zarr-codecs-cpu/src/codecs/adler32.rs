//! `numcodecs.adler32`: the data, and their Adler-32 (that of zlib).
//!
//! Configuration: `{"location": "start" | "end"}`, at the start unless told otherwise. Four bytes in little-endian order. Bytes→bytes.
//! Decoding checks, always.
//!
//! Specification: [numcodecs](https://numcodecs.readthedocs.io/en/stable/checksum32.html). The library is
//! [`simd-adler32`](https://docs.rs/simd-adler32).

use zarr_codec_api::{CodecError, HostProvider, Representation, SimpleCodec};
use zarr_meta::Extension;

use crate::checksum::{Checksum, Location};
use crate::config;

pub(crate) fn register(provider: HostProvider) -> HostProvider {
    provider.with("numcodecs.adler32", make)
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    location: Option<Location>,
}

fn make(codec: &Extension, _: &Representation) -> Result<SimpleCodec, CodecError> {
    let config: Config = config::read(codec)?;
    let location = config.location.unwrap_or(Location::Start);
    let compute = |data: &[u8]| simd_adler32::adler32(&data);
    Ok(SimpleCodec::bytes_to_bytes(Checksum { name: "adler32", location, compute }))
}

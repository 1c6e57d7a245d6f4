//! `numcodecs.crc32`: the data, and their CRC-32 (that of zlib and gzip).
//!
//! Configuration: `{"location": "start" | "end"}`, at the start unless told otherwise. Four bytes in little-endian order. Bytes→bytes.
//! Decoding checks, always.
//!
//! Specification: [numcodecs](https://numcodecs.readthedocs.io/en/stable/checksum32.html). The library is
//! [`crc32fast`](https://docs.rs/crc32fast).

use zarr_codec_api::{CodecError, HostProvider, Representation, SimpleCodec};
use zarr_meta::Extension;

use crate::checksum::{Checksum, Location};
use crate::config;

pub(crate) fn register(provider: HostProvider) -> HostProvider {
    provider.with("numcodecs.crc32", make)
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    location: Option<Location>,
}

fn make(codec: &Extension, _: &Representation) -> Result<SimpleCodec, CodecError> {
    let config: Config = config::read(codec)?;
    let location = config.location.unwrap_or(Location::Start);
    Ok(SimpleCodec::bytes_to_bytes(Checksum { name: "crc32", location, compute: crc32fast::hash }))
}

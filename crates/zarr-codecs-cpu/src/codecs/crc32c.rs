//! `crc32c`, `numcodecs.crc32c`: the data, and their CRC-32C (Castagnoli).
//!
//! `crc32c` has no configuration and puts the checksum, four bytes in little-endian order, behind the data. `numcodecs.crc32c` has
//! `{"location": "start" | "end"}`, at the end unless told otherwise. Bytes→bytes. Decoding checks, always.
//!
//! Specification: [core codec `crc32c`](https://zarr-specs.readthedocs.io/en/latest/v3/codecs/crc32c/index.html).
//!
//! The library is [`crc32c`](https://docs.rs/crc32c), which uses the processor's own instruction.

use zarr_codec_api::{CodecError, HostProvider, Representation, SimpleCodec};
use zarr_meta::Extension;

use crate::checksum::{Checksum, Location};
use crate::config::{self, NoConfig};

pub(crate) fn register(provider: HostProvider) -> HostProvider {
    provider.with("crc32c", make).with("numcodecs.crc32c", make_numcodecs)
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    location: Option<Location>,
}

fn make(codec: &Extension, _: &Representation) -> Result<SimpleCodec, CodecError> {
    let NoConfig {} = config::read(codec)?;
    Ok(at(Location::End))
}

fn make_numcodecs(codec: &Extension, _: &Representation) -> Result<SimpleCodec, CodecError> {
    let config: Config = config::read(codec)?;
    Ok(at(config.location.unwrap_or(Location::End)))
}

fn at(location: Location) -> SimpleCodec {
    SimpleCodec::bytes_to_bytes(Checksum { name: "crc32c", location, compute: ::crc32c::crc32c })
}

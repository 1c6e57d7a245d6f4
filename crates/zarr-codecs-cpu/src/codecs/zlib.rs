//! `numcodecs.zlib`: the zlib format.
//!
//! Configuration: `{"level": -1..=9}`, 1 when absent; -1 is 6. Bytes→bytes.
//!
//! Specification: [numcodecs](https://numcodecs.readthedocs.io/en/stable/compression/zlib.html);
//! [RFC 1950](https://www.rfc-editor.org/rfc/rfc1950). The library is libdeflate, by way of
//! [`libdeflate-sys`](https://docs.rs/libdeflate-sys).
//!
//! Where implementations part ways: *bytes behind the stream* are ignored, as Python's `zlib.decompress`, and with it numcodecs, does. The
//! Adler-32 at the end of the stream is verified. *Preset dictionaries* are refused. *Length symbols that never occur* (RFC 1951 §3.2.6) are taken for
//! the longest length, so that the checksum decides; zlib, and with it numcodecs, refuses them.
//!
//! In pieces as [`gzip`](super::gzip).

use zarr_codec_api::{ByteLen, BytesToBytes, CodecError, HostProvider, Pieces, Representation, SimpleCodec};
use zarr_meta::Extension;

use crate::config;
use crate::deflate::{append, explain, pieces};
use crate::library::deflate::{self, Format, Problem};

const NAME: &str = "zlib";

pub(crate) fn register(provider: HostProvider) -> HostProvider {
    provider.with("numcodecs.zlib", make)
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    level: Option<i64>,
}

fn make(codec: &Extension, _: &Representation) -> Result<SimpleCodec, CodecError> {
    let config: Config = config::read(codec)?;
    Ok(SimpleCodec::bytes_to_bytes(Zlib { level: crate::deflate::level(NAME, Some(config.level.unwrap_or(1)), -1)? }))
}

/// The codec.
#[derive(Debug)]
struct Zlib {
    level: i32,
}

impl BytesToBytes for Zlib {
    fn encoded_len(&self, decoded: ByteLen) -> ByteLen {
        decoded.compressed()
    }

    fn decode(&self, encoded: &[u8], decoded: &mut [u8]) -> Result<(), CodecError> {
        match deflate::decompress(Format::Zlib, encoded, decoded) {
            Ok(progress) if progress.written == decoded.len() => Ok(()),
            Ok(progress) => Err(CodecError::size(NAME, decoded.len(), progress.written)),
            Err(Problem::NoRoom) => Err(CodecError::format(NAME, format!("decodes to more than the expected {} bytes", decoded.len()))),
            Err(problem) => Err(explain(NAME, problem, 0)),
        }
    }

    fn decode_growing(&self, encoded: &[u8], decoded: &mut Vec<u8>, limit: usize) -> Result<(), CodecError> {
        append(NAME, Format::Zlib, (encoded, 0), None, decoded, limit).map(drop)
    }

    fn encode(&self, decoded: &[u8], encoded: &mut Vec<u8>) -> Result<(), CodecError> {
        deflate::compress(Format::Zlib, self.level, decoded, encoded).map_err(|problem| explain(NAME, problem, 0))
    }

    /// The checksum at the end is of all, so that there is no front that is decoded alone.
    fn pieces(&self, decoded_len: usize, _: usize) -> Option<Box<dyn Pieces>> {
        pieces(NAME, Format::Zlib, decoded_len)
    }
}

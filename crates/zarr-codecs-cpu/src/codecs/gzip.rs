//! `gzip`, `numcodecs.gzip`: gzip.
//!
//! Configuration: `{"level": 0..=9}`; under the name of numcodecs also -1, its default, which is 6. Bytes→bytes.
//!
//! Specification: [core codec `gzip`](https://zarr-specs.readthedocs.io/en/latest/v3/codecs/gzip/index.html);
//! [RFC 1952](https://www.rfc-editor.org/rfc/rfc1952). The library is libdeflate, by way of
//! [`libdeflate-sys`](https://docs.rs/libdeflate-sys).
//!
//! Where implementations part ways:
//! * *Several members* are decoded one after the other, as RFC 1952 §2.2 has it and zarr-python does; `zarrs` stops after the first.
//! * *File names, comments and extra fields* in the header are skipped.
//! * *Zeros behind a member* are padding; *any other bytes* are an error. So does Python's `gzip` module, and with it zarr-python.
//! * CRC-32 and length are verified.
//! * *Length symbols that never occur* (RFC 1951 §3.2.6) are taken for the longest length, so that the checksum decides; zlib, and with it
//!   zarr-python, refuses them.
//!
//! Where many threads read large chunks, some of them decode in pieces, by zlib-rs (feature `inflate-pieces`): with less memory, and more slowly. A chunk that this
//! refuses is decoded at once.
//!
//! One member is written, without name and time, so that equal data give equal bytes.

use zarr_codec_api::{ByteLen, BytesToBytes, CodecError, HostProvider, Pieces, Representation, SimpleCodec};
use zarr_meta::Extension;

use crate::config;
use crate::deflate::{append, explain, pieces};
use crate::library::deflate::{self, Format, Problem};

const NAME: &str = "gzip";

pub(crate) fn register(provider: HostProvider) -> HostProvider {
    provider.with(NAME, |codec, _| make(codec, 0)).with("numcodecs.gzip", |codec, _: &Representation| make(codec, -1))
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    level: Option<i64>,
}

fn make(codec: &Extension, least: i64) -> Result<SimpleCodec, CodecError> {
    let config: Config = config::read(codec)?;
    let level = crate::deflate::level(&codec.name, config.level.or((least < 0).then_some(1)), least)?;
    Ok(SimpleCodec::bytes_to_bytes(Gzip { level }))
}

/// The codec.
#[derive(Debug)]
struct Gzip {
    level: i32,
}

/// What follows a member: `None` at the end, with or without padding.
fn next_member(rest: &[u8], offset: usize) -> Result<Option<(&[u8], usize)>, CodecError> {
    match rest.iter().position(|byte| *byte != 0) {
        None => Ok(None),
        Some(zeros) => {
            let offset = offset.saturating_add(zeros);
            match rest.get(zeros..) {
                Some(member) if member.starts_with(&[0x1f, 0x8b]) => Ok(Some((member, offset))),
                _ => Err(CodecError::format(NAME, "the bytes behind the last member are neither a member nor zeros").at(offset as u64)),
            }
        }
    }
}

impl Gzip {
    /// Calls `decode` with each member; it answers with the length of the member.
    fn members(encoded: &[u8], mut decode: impl FnMut(&[u8], usize) -> Result<usize, CodecError>) -> Result<(), CodecError> {
        let (mut member, mut offset) = (encoded, 0usize);
        loop {
            let consumed = decode(member, offset)?;
            offset = offset.saturating_add(consumed);
            match next_member(member.get(consumed..).unwrap_or_default(), offset)? {
                None => return Ok(()),
                Some(next) => (member, offset) = next,
            }
        }
    }
}

impl BytesToBytes for Gzip {
    fn encoded_len(&self, decoded: ByteLen) -> ByteLen {
        decoded.compressed()
    }

    fn decode(&self, encoded: &[u8], decoded: &mut [u8]) -> Result<(), CodecError> {
        let expected = decoded.len();
        let mut written = 0usize;
        Self::members(encoded, |member, offset| {
            let room = decoded.get_mut(written..).unwrap_or_default();
            match deflate::decompress(Format::Gzip, member, room) {
                Ok(progress) => {
                    written = written.saturating_add(progress.written);
                    Ok(progress.consumed)
                }
                Err(Problem::NoRoom) => Err(CodecError::format(NAME, format!("decodes to more than the expected {expected} bytes"))),
                Err(problem) => Err(explain(NAME, problem, offset)),
            }
        })?;
        if written == expected { Ok(()) } else { Err(CodecError::size(NAME, expected, written)) }
    }

    fn decode_growing(&self, encoded: &[u8], decoded: &mut Vec<u8>, limit: usize) -> Result<(), CodecError> {
        // The last four bytes say how long the last member is, modulo 2^32.
        let hint = encoded.last_chunk().map(|len| u32::from_le_bytes(*len)).and_then(|len| usize::try_from(len).ok());
        Self::members(encoded, |member, offset| append(NAME, Format::Gzip, (member, offset), hint, decoded, limit))
    }

    fn encode(&self, decoded: &[u8], encoded: &mut Vec<u8>) -> Result<(), CodecError> {
        deflate::compress(Format::Gzip, self.level, decoded, encoded).map_err(|problem| explain(NAME, problem, 0))
    }

    /// The checksum at the end is of all, so that there is no front that is decoded alone.
    fn pieces(&self, decoded_len: usize, _: usize) -> Option<Box<dyn Pieces>> {
        pieces(NAME, Format::Gzip, decoded_len)
    }
}

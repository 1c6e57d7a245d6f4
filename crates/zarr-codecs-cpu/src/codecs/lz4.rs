//! `numcodecs.lz4`: an LZ4 block with its decoded size before it.
//!
//! Configuration: `{"acceleration": 1}`, 1 when absent; less than 1 is taken as 1. Bytes→bytes. Four bytes say the decoded size in
//! little-endian order, then follows one [LZ4 block](https://github.com/lz4/lz4/blob/dev/doc/lz4_Block_format.md) (no frame).
//!
//! Specification: [numcodecs](https://numcodecs.readthedocs.io/en/stable/compression/lz4.html). The library is liblz4, by way of
//! [`lz4-sys`](https://docs.rs/lz4-sys); where the processor has AVX-512 VBMI, the middle of a block is decoded here.
//!
//! Where implementations part ways: the size that the chunk claims must be the size that Zarr's metadata tells; bytes behind the block are an error.

use std::ffi::c_int;

use zarr_codec_api::{ByteLen, BytesToBytes, CodecError, HostProvider, Representation, SimpleCodec};
use zarr_meta::Extension;

use crate::config;
use crate::library::lz4 as library;

const NAME: &str = "lz4";

pub(crate) fn register(provider: HostProvider) -> HostProvider {
    provider.with("numcodecs.lz4", make)
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    acceleration: Option<c_int>,
}

fn make(codec: &Extension, _: &Representation) -> Result<SimpleCodec, CodecError> {
    let config: Config = config::read(codec)?;
    Ok(SimpleCodec::bytes_to_bytes(Lz4 { acceleration: config.acceleration.unwrap_or(1) }))
}

/// The codec.
#[derive(Debug)]
struct Lz4 {
    acceleration: c_int,
}

/// The decoded size that the chunk claims, and its block.
fn split(encoded: &[u8]) -> Result<(usize, &[u8]), CodecError> {
    let (size, block) = encoded
        .split_first_chunk()
        .ok_or_else(|| CodecError::format(NAME, format!("{} bytes are too few to hold the decoded size", encoded.len())))?;
    Ok((usize::try_from(u32::from_le_bytes(*size)).unwrap_or(usize::MAX), block))
}

fn damaged() -> CodecError {
    CodecError::format(NAME, "the block is damaged, cut short, or decodes to another size than it claims").at(4)
}

impl BytesToBytes for Lz4 {
    fn encoded_len(&self, decoded: ByteLen) -> ByteLen {
        decoded.compressed()
    }

    fn decode(&self, encoded: &[u8], decoded: &mut [u8]) -> Result<(), CodecError> {
        let (size, block) = split(encoded)?;
        if size != decoded.len() {
            return Err(CodecError::size(NAME, decoded.len(), size));
        }
        if library::decompress(block, decoded) == Some(size) { Ok(()) } else { Err(damaged()) }
    }

    fn decode_growing(&self, encoded: &[u8], decoded: &mut Vec<u8>, limit: usize) -> Result<(), CodecError> {
        let (size, block) = split(encoded)?;
        if size > limit {
            return Err(CodecError::limit(NAME, limit));
        }
        if size > block.len().saturating_mul(library::MAX_RATIO) {
            return Err(CodecError::format(NAME, format!("{} bytes cannot decode to the {size} that they claim", block.len())));
        }
        if library::decompress_append(block, decoded, size) == Some(size) { Ok(()) } else { Err(damaged()) }
    }

    fn encode(&self, decoded: &[u8], encoded: &mut Vec<u8>) -> Result<(), CodecError> {
        let too_large = || CodecError::parameter(NAME, format!("{} bytes are more than an LZ4 block can hold", decoded.len()));
        let size = u32::try_from(decoded.len()).ok().filter(|_| decoded.len() <= library::MAX_INPUT_SIZE).ok_or_else(too_large)?;
        encoded.extend_from_slice(&size.to_le_bytes());
        library::compress(decoded, encoded, self.acceleration.max(1)).ok_or_else(too_large)
    }
}

//! `blosc`, `numcodecs.blosc`: the chunk in blocks, shuffled, each compressed by an inner codec, under a header of 16 bytes.
//!
//! Configuration of `blosc`: `{"cname": "blosclz" | "lz4" | "lz4hc" | "snappy" | "zlib" | "zstd", "clevel": 0..=9, "shuffle": "noshuffle" | "shuffle" |
//! "bitshuffle", "typesize": bytes, "blocksize": bytes}`; a block size of 0, or none, leaves the choice to the codec. Configuration of `numcodecs.blosc`: the
//! same, but every key may be absent (`lz4`, 5, 1, 0), and `shuffle` is 0, 1, 2, or -1 for bitshuffle where the type size is 1 and shuffle elsewhere.
//! Both names read both spellings of `shuffle`. Bytes→bytes.
//!
//! Specification: [core codec `blosc`](https://zarr-specs.readthedocs.io/en/latest/v3/codecs/blosc/index.html), the
//! [chunk format](https://github.com/Blosc/c-blosc/blob/main/README_CHUNK_FORMAT.rst), numcodecs'
//! [Blosc](https://numcodecs.readthedocs.io/en/stable/compression/blosc.html).
//!
//! The container and the shuffles are our own: nothing is read or allocated on the word of a header, and the contexts of the inner codecs are kept from
//! chunk to chunk. The inner codecs are liblz4 (the middle of its blocks is decoded here, where the processor has AVX-512 VBMI), libzstd, libdeflate (zlib)
//! and [`snap`](https://docs.rs/snap); `blosclz` is encoded by c-blosc, by way of [`blosc-src`](https://docs.rs/blosc-src), and decoded here.
//!
//! Where implementations part ways:
//! * *The header wins over the metadata*: for decoding, the configuration is not looked at.
//! * *`typesize`* is needed to shuffle, so encoding without it is refused under the name `blosc`, decoding is not; under the name of numcodecs it is 1 when
//!   absent. More than 255, the most that the header holds, is taken as 1.
//! * *Bytes behind the chunk*, and a chunk of another size than the header says, are errors, as they are for `blosc_cbuffer_validate`.
//! * Blocks may lie in any order, as several threads write them, but not overlap.
//! * *Of a block of LZ4 the front can be had alone*, unless its bits are shuffled: what lies behind it is not looked at, bad or not.
//! * *`clevel` 0*, chunks of less than 128 bytes and those that do not shrink are stored as they are.
//! * Chunks of 2 GiB and more do not fit the format: encoding them is an error.

use zarr_codec_api::{Blocks, ByteLen, BytesToBytes, CodecError, HostProvider, Representation, SimpleCodec};
use zarr_meta::Extension;

use crate::config;

mod blosclz;
mod decode;
mod encode;
mod header;

const NAME: &str = "blosc";

pub(crate) fn register(provider: HostProvider) -> HostProvider {
    provider.with(NAME, make).with("numcodecs.blosc", make_numcodecs)
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    cname: Compressor,
    clevel: u8,
    shuffle: ShuffleConfig,
    typesize: Option<u64>,
    blocksize: Option<u64>,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct NumcodecsConfig {
    cname: Option<Compressor>,
    clevel: Option<u8>,
    shuffle: Option<ShuffleConfig>,
    typesize: Option<u64>,
    blocksize: Option<u64>,
}

#[derive(serde::Deserialize)]
#[serde(untagged)]
enum ShuffleConfig {
    Name(Shuffle),
    Number(i8),
}

/// What happens to a block before it is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
enum Shuffle {
    #[serde(rename = "noshuffle")]
    None,
    #[serde(rename = "shuffle")]
    Bytes,
    #[serde(rename = "bitshuffle")]
    Bits,
}

/// The inner codec.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
enum Compressor {
    Blosclz,
    Lz4,
    Lz4hc,
    Snappy,
    Zlib,
    Zstd,
}

/// The codec. What it is configured for matters only to encoding.
#[derive(Debug)]
struct Blosc {
    compressor: Compressor,
    level: u8,
    shuffle: Shuffle,
    type_size: Option<usize>,
    /// 0 where the codec is to choose.
    block_size: usize,
}

fn make(codec: &Extension, _: &Representation) -> Result<SimpleCodec, CodecError> {
    build(codec, config::read(codec)?)
}

fn make_numcodecs(codec: &Extension, _: &Representation) -> Result<SimpleCodec, CodecError> {
    let config: NumcodecsConfig = config::read(codec)?;
    let config = Config {
        cname: config.cname.unwrap_or(Compressor::Lz4),
        clevel: config.clevel.unwrap_or(5),
        shuffle: config.shuffle.unwrap_or(ShuffleConfig::Name(Shuffle::Bytes)),
        typesize: Some(config.typesize.unwrap_or(1)),
        blocksize: config.blocksize,
    };
    build(codec, config)
}

fn build(codec: &Extension, config: Config) -> Result<SimpleCodec, CodecError> {
    if config.clevel > 9 {
        return Err(CodecError::metadata(&codec.name, format!("clevel {} is not within 0 and 9", config.clevel)));
    }
    let type_size = match config.typesize {
        None | Some(0) => None,
        Some(size) => Some(usize::from(u8::try_from(size).unwrap_or(1))),
    };
    let shuffle = match config.shuffle {
        ShuffleConfig::Name(shuffle) => shuffle,
        ShuffleConfig::Number(0) => Shuffle::None,
        ShuffleConfig::Number(1) => Shuffle::Bytes,
        ShuffleConfig::Number(2) => Shuffle::Bits,
        ShuffleConfig::Number(-1) if type_size == Some(1) => Shuffle::Bits,
        ShuffleConfig::Number(-1) => Shuffle::Bytes,
        ShuffleConfig::Number(other) => {
            return Err(CodecError::metadata(&codec.name, format!("shuffle {other} is not -1, 0, 1 or 2")));
        }
    };
    let block_size = usize::try_from(config.blocksize.unwrap_or(0)).unwrap_or(usize::MAX);
    Ok(SimpleCodec::bytes_to_bytes(Blosc { compressor: config.cname, level: config.clevel, shuffle, type_size, block_size }))
}

impl BytesToBytes for Blosc {
    fn encoded_len(&self, decoded: ByteLen) -> ByteLen {
        decoded.compressed()
    }

    fn decode(&self, encoded: &[u8], decoded: &mut [u8]) -> Result<(), CodecError> {
        decode::decode(encoded, decoded)
    }

    fn decode_growing(&self, encoded: &[u8], decoded: &mut Vec<u8>, limit: usize) -> Result<(), CodecError> {
        decode::decode_growing(encoded, decoded, limit)
    }

    fn encode(&self, decoded: &[u8], encoded: &mut Vec<u8>) -> Result<(), CodecError> {
        encode::encode(self, decoded, encoded)
    }

    fn blocks<'a>(&self, encoded: &'a [u8], decoded_len: usize) -> Option<Box<dyn Blocks + 'a>> {
        decode::blocks(encoded, decoded_len).map(|blocks| Box::new(blocks) as Box<dyn Blocks + 'a>)
    }
}

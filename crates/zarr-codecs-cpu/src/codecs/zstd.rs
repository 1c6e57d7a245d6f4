//! `zstd`, `numcodecs.zstd`: Zstandard.
//!
//! Configuration: `{"level": -131072..=22, "checksum": bool}`. Level 0 is the library's default. `checksum` may be absent, and is false then; arrays
//! converted from Zarr v2 have none. Bytes→bytes.
//!
//! Specification: [registry, `zstd`](https://github.com/zarr-developers/zarr-extensions/tree/main/codecs/zstd);
//! [RFC 8878](https://www.rfc-editor.org/rfc/rfc8878). The library is libzstd, by way of [`zstd`](https://docs.rs/zstd).
//!
//! One frame without a checksum, which is what Zarr's writers make, is decoded by a decoder of our own, which is faster (x86-64 with AVX2 and BMI2, as most have since 2015), where the size is known: not in front of strings and other
//! elements of variable length. All others are libzstd's, and so is every frame that is not in order: what is read and what is refused is what libzstd says.
//!
//! Where implementations part ways:
//! * *Frames without content size*, which streaming writers leave, are read: the size comes from Zarr's metadata.
//! * *Several frames* are decoded one after the other, *skippable frames* skipped, as RFC 8878 §3 has it.
//! * *Checksums* in frames are verified, whatever the configuration says.
//! * *Other bytes behind the last frame* are an error, as is a chunk without any frame, or one that decodes to less or more than the chunk.
//! * *Dictionaries* are refused: Zarr has no place to keep one.
//! * Frames of the formats before 0.8 are refused.
//!
//! Large chunks, and those of which the front is wanted, are decoded in pieces, with memory for the window and not for the chunk. An encoder may reach back further than the window of its frame, though
//! RFC 8878 §3.1.1.1.2 forbids it, and libzstd does not look: such a frame is decoded at once, and in pieces by libzstd are only those with a checksum.
//! Of one frame that says that it is as large as the chunk, and has no checksum, the front can be had alone: what lies behind it is not looked at, bad or not.
//!
//! One frame with a content size is written.

use zarr_codec_api::{ByteLen, BytesToBytes, CodecError, HostProvider, Pieces, Representation, SimpleCodec};
use zarr_meta::Extension;

use crate::config;
use crate::library::zstd::{self as library, frames, pieces};

const NAME: &str = "zstd";

pub(crate) fn register(provider: HostProvider) -> HostProvider {
    provider.with_names(&[NAME, "numcodecs.zstd"], make)
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    #[serde(default)]
    level: i64,
    checksum: Option<bool>,
}

fn make(codec: &Extension, _: &Representation) -> Result<SimpleCodec, CodecError> {
    let config: Config = config::read(codec)?;
    let level = i32::try_from(config.level)
        .ok()
        .filter(|level| (-131_072..=22).contains(level))
        .ok_or_else(|| CodecError::metadata(&codec.name, format!("level {} is not within -131072 and 22", config.level)))?;
    Ok(SimpleCodec::bytes_to_bytes(Zstd { level, checksum: config.checksum.unwrap_or(false) }))
}

/// The codec.
#[derive(Debug)]
struct Zstd {
    level: i32,
    checksum: bool,
}

/// Why libzstd failed: what our own walk over the frames finds wrong is clearer.
fn explain(encoded: &[u8], problem: library::Problem) -> CodecError {
    match frames::bound(encoded) {
        Err(error) => error,
        Ok(_) => CodecError::format(NAME, problem),
    }
}

impl BytesToBytes for Zstd {
    fn encoded_len(&self, decoded: ByteLen) -> ByteLen {
        decoded.compressed()
    }

    fn decode(&self, encoded: &[u8], decoded: &mut [u8]) -> Result<(), CodecError> {
        if encoded.is_empty() {
            return Err(CodecError::format(NAME, "no frame in 0 bytes"));
        }
        match library::decompress(encoded, decoded) {
            Ok(written) if written == decoded.len() => Ok(()),
            Ok(written) => Err(CodecError::size(NAME, decoded.len(), written)),
            Err(problem) => Err(explain(encoded, problem)),
        }
    }

    fn decode_growing(&self, encoded: &[u8], decoded: &mut Vec<u8>, limit: usize) -> Result<(), CodecError> {
        let bound = frames::bound(encoded)?;
        let room = usize::try_from(bound).unwrap_or(usize::MAX).min(limit);
        decoded.reserve(room);
        match library::decompress_growing(encoded, decoded) {
            Ok(written) if written <= limit => Ok(()),
            Ok(_) => Err(CodecError::limit(NAME, limit)),
            Err(_) if bound > limit as u64 && decoded.capacity() < usize::try_from(bound).unwrap_or(usize::MAX) => {
                Err(CodecError::limit(NAME, limit))
            }
            Err(problem) => Err(explain(encoded, problem)),
        }
    }

    fn encode(&self, decoded: &[u8], encoded: &mut Vec<u8>) -> Result<(), CodecError> {
        encoded.reserve(library::bound(decoded.len()));
        library::compress(decoded, encoded, self.level, self.checksum).map(drop).map_err(|problem| CodecError::parameter(NAME, problem))
    }

    fn pieces(&self, decoded_len: usize, wanted: usize) -> Option<Box<dyn Pieces>> {
        Some(Box::new(Frames(pieces::Pieces::new(decoded_len, wanted))))
    }
}

/// The frames of a chunk, in pieces.
struct Frames(pieces::Pieces);

impl Pieces for Frames {
    fn decode(&mut self, encoded: &[u8], each: &mut dyn FnMut(&[u8])) -> Result<(), CodecError> {
        self.0.decode(encoded, each).map_err(|problem| CodecError::format(NAME, problem))
    }

    fn is_done(&self) -> bool {
        self.0.is_done()
    }

    fn finish(self: Box<Self>) -> Result<(), CodecError> {
        self.0.finish().map_err(|problem| CodecError::format(NAME, problem))
    }
}

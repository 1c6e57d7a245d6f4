//! `gzip`, `numcodecs.gzip`, `numcodecs.zlib`: decoding on a device.
//!
//! A chunk is one run of bits, in which nothing says where anything starts. One block of threads decodes it: its threads read on from as many places at once, and again
//! until each starts where the one before it came out. `kernels/deflate` says how.

use zarr_codec_api::{CodecError, Stage};

use crate::codecs::spans::{Spans, SpansKernel};
use crate::constants::*;
use crate::engine::Kernel;
use crate::recipe::Compression;

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    level: Option<i64>,
}

/// What surrounds the compressed bytes.
pub(crate) fn compression(stage: &Stage) -> Option<Compression> {
    let config: Config = stage.codec.config().ok()?;
    // What is none the host refuses.
    let (compression, levels) = match stage.codec.name.as_str() {
        "gzip" => return config.level.filter(|level| (0..=9).contains(level)).map(|_| Compression::Gzip),
        "numcodecs.zlib" => (Compression::Zlib, -1..=9),
        _ => (Compression::Gzip, -1..=9),
    };
    config.level.is_none_or(|level| levels.contains(&level)).then_some(compression)
}

pub(crate) const SPANS: Spans = Spans {
    name: "deflate",
    many: SpansKernel { kernel: Kernel::DeflateDecode, threads: DEFLATE_THREADS, shared: DEFLATE_SHARED },
    blocks_each: 3,
    few: SpansKernel { kernel: Kernel::DeflateDecodeWide, threads: DEFLATE_WIDE_THREADS, shared: DEFLATE_WIDE_SHARED },
};

/// The format, to the kernels.
pub(crate) fn format(compression: Compression) -> u32 {
    if compression == Compression::Zlib { DEFLATE_ZLIB } else { DEFLATE_GZIP }
}

/// The words for a status.
pub(crate) fn verdict(name: &str, status: u32) -> Result<(), CodecError> {
    let words = match status {
        SPANS_GOOD => return Ok(()),
        DEFLATE_TRUNCATED => "the bytes end too early",
        DEFLATE_HEADER => "the header is not one of this format, or wants what is not supported",
        DEFLATE_BETWEEN => "the bytes behind the last member are neither a member nor zeros",
        DEFLATE_RESERVED_BLOCK => "a block of the reserved kind",
        DEFLATE_STORED_LEN => "the length of a stored block is not what its complement says",
        DEFLATE_CODE_LENGTHS => "the lengths of a block's codes do not add up",
        DEFLATE_CODE => "the lengths of a block's codes make no code",
        DEFLATE_DISTANCE => "a match from before the start",
        DEFLATE_OUTPUT_TOO_LARGE => "decodes to more bytes than expected",
        DEFLATE_OUTPUT_TOO_SMALL => "decodes to fewer bytes than expected",
        DEFLATE_CHECKSUM => "the checksum does not match",
        DEFLATE_LEN => "decodes to another number of bytes than its end says",
        DEFLATE_TOO_MANY_BLOCKS => {
            let message = "more blocks than the device takes for so few bytes; a policy that prefers the host reads it";
            return Err(CodecError::unsupported(name, message));
        }
        _ => "failed for an unknown reason",
    };
    Err(CodecError::format(name, words))
}

//! `numcodecs.lz4`: decoding on a device.
//!
//! One block of threads decodes a chunk: its threads read sequences from as many places at once, and again until each starts where the one before it came out.
//! `kernels/lz4` says how.

use zarr_codec_api::{CodecError, Stage};

use crate::codecs::spans::{Spans, SpansKernel};
use crate::constants::*;
use crate::engine::Kernel;
use crate::recipe::Compression;

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    #[serde(rename = "acceleration")]
    _acceleration: Option<i32>,
}

/// What is none the host refuses.
pub(crate) fn compression(stage: &Stage) -> Option<Compression> {
    stage.codec.config::<Config>().ok().map(|_| Compression::Lz4)
}

pub(crate) const SPANS: Spans = Spans {
    name: "lz4",
    many: SpansKernel { kernel: Kernel::Lz4Decode, threads: LZ4_THREADS, shared: LZ4_SHARED },
    blocks_each: 4,
    few: SpansKernel { kernel: Kernel::Lz4DecodeWide, threads: LZ4_WIDE_THREADS, shared: LZ4_WIDE_SHARED },
};

/// The words for a status.
pub(crate) fn verdict(status: u32) -> Result<(), CodecError> {
    let words = match status {
        SPANS_GOOD => return Ok(()),
        LZ4_TRUNCATED => "the bytes are too few to hold the decoded size",
        LZ4_SIZE => "the chunk claims another decoded size than expected",
        LZ4_DAMAGED => "the block is damaged, cut short, or decodes to another size than it claims",
        _ => "failed for an unknown reason",
    };
    Err(CodecError::format("lz4", words))
}

//! libzstd, and a decoder of our own for what is common.

use std::cell::RefCell;

use ::zstd::zstd_safe::{CCtx, CParameter, DCtx, WriteBuf, compress_bound, get_error_name};

#[cfg(target_arch = "x86_64")]
mod decode;
#[cfg(not(target_arch = "x86_64"))]
#[path = "decode_nothing.rs"]
mod decode;
pub(crate) mod frames;
#[cfg(feature = "zstd")]
pub(crate) mod pieces;

/// The most that a thread's encoder keeps between calls. The highest levels want hundreds of megabytes.
const KEEP: usize = 16 << 20;

thread_local! {
    static DECODER: RefCell<Option<DCtx<'static>>> = const { RefCell::new(None) };
    static ENCODER: RefCell<Option<CCtx<'static>>> = const { RefCell::new(None) };
}

/// What libzstd has to say.
pub(crate) type Problem = &'static str;

const NO_MEMORY: Problem = "no memory for a context";

/// Decodes every frame to the start of `decoded`, and answers with the number of bytes. Checksums are verified.
pub(crate) fn decompress(encoded: &[u8], decoded: &mut [u8]) -> Result<usize, Problem> {
    match decode::decompress(encoded, decoded) {
        Some(written) => Ok(written),
        None => decompress_by_library(encoded, decoded),
    }
}

/// As [`decompress`], to a vector with capacity for what comes out, and by libzstd: our own decoder writes to memory that is initialised.
#[cfg(feature = "zstd")]
pub(crate) fn decompress_growing(encoded: &[u8], decoded: &mut Vec<u8>) -> Result<usize, Problem> {
    decompress_by_library(encoded, decoded)
}

fn decompress_by_library<T: WriteBuf + ?Sized>(encoded: &[u8], decoded: &mut T) -> Result<usize, Problem> {
    DECODER.with_borrow_mut(|slot| {
        let context = match slot {
            Some(context) => context,
            None => slot.insert(DCtx::try_create().ok_or(NO_MEMORY)?),
        };
        context.decompress(decoded, encoded).map_err(get_error_name)
    })
}

/// The most bytes that `len` bytes encode to.
pub(crate) fn bound(len: usize) -> usize {
    compress_bound(len)
}

/// Encodes to one frame that tells its content size, at the start of `encoded` (of a vector: to its capacity), and answers with the number of bytes.
pub(crate) fn compress<T: WriteBuf + ?Sized>(decoded: &[u8], encoded: &mut T, level: i32, checksum: bool) -> Result<usize, Problem> {
    ENCODER.with_borrow_mut(|slot| {
        let context = match slot {
            Some(context) => context,
            None => slot.insert(CCtx::try_create().ok_or(NO_MEMORY)?),
        };
        let result = context
            .set_parameter(CParameter::CompressionLevel(level))
            .and_then(|_| context.set_parameter(CParameter::ChecksumFlag(checksum)))
            .and_then(|_| context.compress2(encoded, decoded))
            .map_err(get_error_name);
        if context.sizeof() > KEEP {
            *slot = None;
        }
        result
    })
}

//! libzstd.

use std::cell::RefCell;

use ::zstd::zstd_safe::{CCtx, CParameter, DCtx, WriteBuf, compress_bound, get_error_name};

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

/// Decodes every frame to the start of `decoded` (of a vector: to its capacity), and answers with the number of bytes. Checksums are verified.
pub(crate) fn decompress<T: WriteBuf + ?Sized>(encoded: &[u8], decoded: &mut T) -> Result<usize, Problem> {
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

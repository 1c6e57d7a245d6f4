//! c-blosc, called as `blosc.h` says.
#![expect(unsafe_code, reason = "a C library")]

use std::ffi::{CStr, c_int};

use blosc_src::{blosc_cbuffer_validate, blosc_compress_ctx, blosc_decompress_ctx};

pub(super) const SHUFFLE: c_int = blosc_src::BLOSC_SHUFFLE as c_int;
pub(super) const BITSHUFFLE: c_int = blosc_src::BLOSC_BITSHUFFLE as c_int;

/// One chunk, of just its size.
pub(super) fn decode(bytes: &[u8], limit: usize) -> Result<Vec<u8>, String> {
    let mut len = 0;
    // SAFETY: as many bytes as it is told, and a place for the decoded size.
    let status = unsafe { blosc_cbuffer_validate(bytes.as_ptr().cast(), bytes.len(), &raw mut len) };
    if status < 0 || len > limit {
        return Err(format!("no chunk of at most {limit} bytes: c-blosc says {status}, and {len} bytes"));
    }
    let mut decoded = vec![0; len];
    // SAFETY: a chunk of a valid size, and room for as many bytes as it is told.
    let written = unsafe { blosc_decompress_ctx(bytes.as_ptr().cast(), decoded.as_mut_ptr().cast(), decoded.len(), 1) };
    if usize::try_from(written) == Ok(len) { Ok(decoded) } else { Err(format!("c-blosc says {written} of {len} bytes")) }
}

/// One chunk of elements of `size` bytes, at level 5.
pub(super) fn encode(bytes: &[u8], size: usize, compressor: &CStr, shuffle: c_int) -> Result<Vec<u8>, String> {
    let mut encoded = vec![0; bytes.len() + blosc_src::BLOSC_MAX_OVERHEAD as usize];
    let (from, to) = (bytes.as_ptr().cast(), encoded.as_mut_ptr().cast());
    // SAFETY: as many bytes and as much room as it is told; the name ends with a zero.
    let written = unsafe { blosc_compress_ctx(5, shuffle, size, bytes.len(), from, to, encoded.len(), compressor.as_ptr(), 0, 1) };
    encoded.truncate(usize::try_from(written).ok().filter(|written| *written > 0).ok_or_else(|| format!("c-blosc says {written}"))?);
    Ok(encoded)
}

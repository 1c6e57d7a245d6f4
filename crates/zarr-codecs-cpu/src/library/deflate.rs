//! libdeflate: DEFLATE in the gzip and zlib formats, from whole buffers to whole buffers.

use std::cell::RefCell;
use std::ffi::c_int;
#[cfg(any(feature = "gzip", feature = "zlib"))]
use std::mem::MaybeUninit;
use std::ptr::NonNull;

use libdeflate_sys as sys;

/// What surrounds the compressed bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// RFC 1952; one member.
    #[cfg(feature = "gzip")]
    Gzip,
    /// RFC 1950.
    #[cfg(any(feature = "zlib", feature = "blosc"))]
    Zlib,
}

/// What one call has done.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Progress {
    #[cfg_attr(not(any(feature = "gzip", feature = "zlib")), expect(dead_code, reason = "inside of blosc, lengths are known"))]
    pub(crate) consumed: usize,
    pub(crate) written: usize,
}

/// Why a call has failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Problem {
    /// The bytes are not of the format, are cut short, or do not have the checksum that they claim.
    BadData,
    /// They decode to more than there is room for.
    NoRoom,
    /// No memory for a context.
    NoMemory,
}

/// The most bytes that one byte can decode to (a match of 258 bytes in two bits), rounded up.
pub(crate) const MAX_RATIO: usize = 1032;

thread_local! {
    static DECODER: RefCell<Option<Decompressor>> = const { RefCell::new(None) };
    static ENCODER: RefCell<Option<Compressor>> = const { RefCell::new(None) };
}

/// Decodes one gzip member or zlib stream to the start of `decoded`; bytes behind it are left.
pub(crate) fn decompress(format: Format, encoded: &[u8], decoded: &mut [u8]) -> Result<Progress, Problem> {
    let (pointer, len) = (decoded.as_mut_ptr(), decoded.len());
    // SAFETY: the slice is valid for writes of its length.
    unsafe { decompress_to(format, encoded, pointer, len) }
}

/// Decodes one gzip member or zlib stream to at most `room` bytes behind what is in `decoded`; bytes behind the stream are left.
#[cfg(any(feature = "gzip", feature = "zlib"))]
pub(crate) fn decompress_append(format: Format, encoded: &[u8], decoded: &mut Vec<u8>, room: usize) -> Result<Progress, Problem> {
    decoded.reserve(room);
    let spare: &mut [MaybeUninit<u8>] = decoded.spare_capacity_mut();
    let (pointer, len) = (spare.as_mut_ptr().cast(), spare.len().min(room));
    // SAFETY: the spare capacity is valid for writes of its length.
    let progress = unsafe { decompress_to(format, encoded, pointer, len) }?;
    let filled = decoded.len().saturating_add(progress.written);
    // SAFETY: `written` bytes behind the old length were initialised, and lie within the capacity.
    unsafe { decoded.set_len(filled) };
    Ok(progress)
}

/// # Safety
/// `decoded` is valid for writes of `len` bytes. On success, the first `written` of them are initialised, and `written` is at most `len`.
unsafe fn decompress_to(format: Format, encoded: &[u8], decoded: *mut u8, len: usize) -> Result<Progress, Problem> {
    let call = match format {
        #[cfg(feature = "gzip")]
        Format::Gzip => sys::libdeflate_gzip_decompress_ex,
        #[cfg(any(feature = "zlib", feature = "blosc"))]
        Format::Zlib => sys::libdeflate_zlib_decompress_ex,
    };
    DECODER.with_borrow_mut(|slot| {
        let context = match slot {
            Some(context) => context,
            None => slot.insert(Decompressor::new().ok_or(Problem::NoMemory)?),
        };
        let (mut consumed, mut written) = (0, 0);
        // SAFETY: the context is live and used by this thread alone; the input is a slice, the output valid by the caller's promise, and the
        // library stays within both.
        let result =
            unsafe { call(context.0.as_ptr(), encoded.as_ptr().cast(), encoded.len(), decoded.cast(), len, &mut consumed, &mut written) };
        match result {
            sys::libdeflate_result_LIBDEFLATE_SUCCESS => Ok(Progress { consumed, written }),
            sys::libdeflate_result_LIBDEFLATE_INSUFFICIENT_SPACE => Err(Problem::NoRoom),
            _ => Err(Problem::BadData),
        }
    })
}

/// Appends the encoded bytes to `encoded`, at a level from 0 (stored) to 12.
#[cfg(any(feature = "gzip", feature = "zlib"))]
pub(crate) fn compress(format: Format, level: c_int, decoded: &[u8], encoded: &mut Vec<u8>) -> Result<(), Problem> {
    let room = with_compressor(level, |context| {
        let bound = match format {
            #[cfg(feature = "gzip")]
            Format::Gzip => sys::libdeflate_gzip_compress_bound,
            #[cfg(any(feature = "zlib", feature = "blosc"))]
            Format::Zlib => sys::libdeflate_zlib_compress_bound,
        };
        // SAFETY: the context is live and used by this thread alone.
        unsafe { bound(context.pointer.as_ptr(), decoded.len()) }
    })?;
    encoded.reserve(room);
    let spare: &mut [MaybeUninit<u8>] = encoded.spare_capacity_mut();
    let (pointer, len) = (spare.as_mut_ptr().cast(), spare.len());
    // SAFETY: the spare capacity is valid for writes of its length.
    let written = unsafe { compress_to(format, level, decoded, pointer, len) }?;
    let filled = encoded.len().saturating_add(written);
    // SAFETY: `written` bytes behind the old length were initialised, and lie within the capacity.
    unsafe { encoded.set_len(filled) };
    Ok(())
}

/// Encodes to the start of `encoded`. [`Problem::NoRoom`] when it does not fit.
#[cfg(feature = "blosc")]
pub(crate) fn compress_within(format: Format, level: c_int, decoded: &[u8], encoded: &mut [u8]) -> Result<usize, Problem> {
    // SAFETY: the slice is valid for writes of its length.
    unsafe { compress_to(format, level, decoded, encoded.as_mut_ptr(), encoded.len()) }
}

/// # Safety
/// `encoded` is valid for writes of `len` bytes. On success, the first of them, as many as the answer says, are initialised.
unsafe fn compress_to(format: Format, level: c_int, decoded: &[u8], encoded: *mut u8, len: usize) -> Result<usize, Problem> {
    let call = match format {
        #[cfg(feature = "gzip")]
        Format::Gzip => sys::libdeflate_gzip_compress,
        #[cfg(any(feature = "zlib", feature = "blosc"))]
        Format::Zlib => sys::libdeflate_zlib_compress,
    };
    with_compressor(level, |context| {
        // SAFETY: the context is live and used by this thread alone; the input is a slice, the output valid by the caller's promise, and the
        // library stays within both.
        unsafe { call(context.pointer.as_ptr(), decoded.as_ptr().cast(), decoded.len(), encoded.cast(), len) }
    })
    .and_then(|written| if written == 0 { Err(Problem::NoRoom) } else { Ok(written) })
}

fn with_compressor<T>(level: c_int, work: impl FnOnce(&mut Compressor) -> T) -> Result<T, Problem> {
    ENCODER.with_borrow_mut(|slot| {
        let context = match slot {
            Some(context) if context.level == level => context,
            _ => slot.insert(Compressor::new(level).ok_or(Problem::NoMemory)?),
        };
        Ok(work(context))
    })
}

/// Owns a context.
struct Decompressor(NonNull<sys::libdeflate_decompressor>);

impl Decompressor {
    fn new() -> Option<Self> {
        // SAFETY: no conditions.
        NonNull::new(unsafe { sys::libdeflate_alloc_decompressor() }).map(Self)
    }
}

impl Drop for Decompressor {
    fn drop(&mut self) {
        // SAFETY: made by the library, not freed before, not used after.
        unsafe { sys::libdeflate_free_decompressor(self.0.as_ptr()) };
    }
}

/// Owns a context, which is made for one level.
struct Compressor {
    pointer: NonNull<sys::libdeflate_compressor>,
    level: c_int,
}

impl Compressor {
    fn new(level: c_int) -> Option<Self> {
        // SAFETY: no conditions; unknown levels make it answer with null.
        let pointer = NonNull::new(unsafe { sys::libdeflate_alloc_compressor(level) })?;
        Some(Self { pointer, level })
    }
}

impl Drop for Compressor {
    fn drop(&mut self) {
        // SAFETY: made by the library, not freed before, not used after.
        unsafe { sys::libdeflate_free_compressor(self.pointer.as_ptr()) };
    }
}

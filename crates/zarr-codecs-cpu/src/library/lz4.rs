//! liblz4: blocks, without frames around them.

#[cfg(feature = "blosc")]
use std::cell::RefCell;
use std::ffi::c_int;
use std::mem::MaybeUninit;

use lz4_sys as sys;

/// The most bytes that one byte can decode to.
pub(crate) const MAX_RATIO: usize = 255;

/// The most bytes that a block can encode.
#[cfg(feature = "lz4")]
pub(crate) const MAX_INPUT_SIZE: usize = 0x7E00_0000;

/// Decodes a block to the start of `decoded`, and answers with the number of bytes. `None` when the block is damaged, cut short, or decodes to
/// more.
pub(crate) fn decompress(encoded: &[u8], decoded: &mut [u8]) -> Option<usize> {
    let pointer = decoded.as_mut_ptr();
    // SAFETY: the slice is valid for writes of its length.
    unsafe { decompress_to(encoded, pointer, decoded.len()) }
}

/// Decodes no more of a block than the first `decoded.len()` bytes, and answers with their number: fewer, if the block has fewer. `None` when as much of it is damaged.
#[cfg(feature = "blosc")]
pub(crate) fn decompress_front(encoded: &[u8], decoded: &mut [u8]) -> Option<usize> {
    // Of lz4.h, which the bindings leave out.
    unsafe extern "C" {
        fn LZ4_decompress_safe_partial(
            source: *const std::ffi::c_char,
            target: *mut std::ffi::c_char,
            source_len: c_int,
            wanted: c_int,
            target_len: c_int,
        ) -> c_int;
    }
    let (encoded_len, len) = (c_int::try_from(encoded.len()).ok()?, c_int::try_from(decoded.len()).ok()?);
    // A bad match, at an offset of 0, is of itself, and so of what the memory held before.
    decoded.fill(0);
    // SAFETY: both are slices, and the library stays within them.
    let written = unsafe { LZ4_decompress_safe_partial(encoded.as_ptr().cast(), decoded.as_mut_ptr().cast(), encoded_len, len, len) };
    usize::try_from(written).ok()
}

/// Decodes a block to at most `room` bytes behind what is in `decoded`.
#[cfg(feature = "lz4")]
pub(crate) fn decompress_append(encoded: &[u8], decoded: &mut Vec<u8>, room: usize) -> Option<usize> {
    decoded.reserve(room);
    let spare: &mut [MaybeUninit<u8>] = decoded.spare_capacity_mut();
    let (pointer, len) = (spare.as_mut_ptr().cast(), spare.len().min(room));
    // SAFETY: the spare capacity is valid for writes of its length.
    let written = unsafe { decompress_to(encoded, pointer, len) }?;
    let filled = decoded.len().saturating_add(written);
    // SAFETY: `written` bytes behind the old length were initialised, and lie within the capacity.
    unsafe { decoded.set_len(filled) };
    Some(written)
}

/// # Safety
/// `decoded` is valid for writes of `len` bytes. The first of them, as many as the answer says, are initialised.
unsafe fn decompress_to(encoded: &[u8], decoded: *mut u8, len: usize) -> Option<usize> {
    let (encoded_len, len) = (c_int::try_from(encoded.len()).ok()?, c_int::try_from(len).ok()?);
    // SAFETY: the input is a slice, the output valid by the caller's promise, and this variant stays within both.
    let written = unsafe { sys::LZ4_decompress_safe(encoded.as_ptr().cast(), decoded.cast(), encoded_len, len) };
    usize::try_from(written).ok()
}

/// Appends a block to `encoded`; the higher the acceleration, the faster and the larger. `None` when there is too much to encode.
#[cfg(feature = "lz4")]
pub(crate) fn compress(decoded: &[u8], encoded: &mut Vec<u8>, acceleration: c_int) -> Option<()> {
    let len = c_int::try_from(decoded.len()).ok()?;
    // SAFETY: no conditions.
    let room = usize::try_from(unsafe { sys::LZ4_compressBound(len) }).ok().filter(|room| *room > 0)?;
    encoded.reserve(room);
    let spare: &mut [MaybeUninit<u8>] = encoded.spare_capacity_mut();
    let room = c_int::try_from(spare.len()).unwrap_or(c_int::MAX);
    // SAFETY: the input is a slice, the output is spare capacity of at least `room` bytes, and the library stays within both.
    let written = unsafe { sys::LZ4_compress_fast(decoded.as_ptr().cast(), spare.as_mut_ptr().cast(), len, room, acceleration) };
    let filled = encoded.len().checked_add(usize::try_from(written).ok().filter(|written| *written > 0)?)?;
    // SAFETY: `written` bytes behind the old length were initialised, and lie within the capacity.
    unsafe { encoded.set_len(filled) };
    Some(())
}

/// Encodes a block to the start of `encoded`; `None` when it does not fit.
#[cfg(feature = "blosc")]
pub(crate) fn compress_within(decoded: &[u8], encoded: &mut [u8], acceleration: c_int) -> Option<usize> {
    let len = c_int::try_from(decoded.len()).ok()?;
    let room = c_int::try_from(encoded.len()).ok()?;
    // SAFETY: both are slices, and the library stays within them.
    let written = unsafe { sys::LZ4_compress_fast(decoded.as_ptr().cast(), encoded.as_mut_ptr().cast(), len, room, acceleration) };
    usize::try_from(written).ok().filter(|written| *written > 0)
}

/// Encodes a block to the start of `encoded`, slower and smaller; `None` when it does not fit.
#[cfg(feature = "blosc")]
pub(crate) fn compress_high_within(decoded: &[u8], encoded: &mut [u8], level: c_int) -> Option<usize> {
    thread_local! {
        /// Of words, for their alignment.
        static STATE: RefCell<Vec<MaybeUninit<u64>>> = const { RefCell::new(Vec::new()) };
    }
    // Of lz4hc.h, which the bindings leave out.
    unsafe extern "C" {
        fn LZ4_sizeofStateHC() -> c_int;
        fn LZ4_compress_HC_extStateHC(
            state: *mut std::ffi::c_void,
            source: *const std::ffi::c_char,
            target: *mut std::ffi::c_char,
            source_len: c_int,
            target_len: c_int,
            level: c_int,
        ) -> c_int;
    }
    let len = c_int::try_from(decoded.len()).ok()?;
    let room = c_int::try_from(encoded.len()).ok()?;
    STATE.with_borrow_mut(|state| {
        // SAFETY: no conditions.
        let bytes = usize::try_from(unsafe { LZ4_sizeofStateHC() }).ok()?;
        state.resize(bytes.div_ceil(size_of::<u64>()), MaybeUninit::uninit());
        // SAFETY: the state is aligned and as large as the library asks for, and is initialised by the call; the others are slices, and the
        // library stays within them.
        let written = unsafe {
            LZ4_compress_HC_extStateHC(state.as_mut_ptr().cast(), decoded.as_ptr().cast(), encoded.as_mut_ptr().cast(), len, room, level)
        };
        usize::try_from(written).ok().filter(|written| *written > 0)
    })
}

//! liblz4: blocks, without frames around them. Where the processor can, `middle` decodes most of a block before the library does the rest.

#[cfg(feature = "blosc")]
use std::cell::RefCell;
use std::ffi::{c_char, c_int};
use std::mem::MaybeUninit;

use lz4_sys as sys;

#[cfg(target_arch = "x86_64")]
mod middle;

/// The most bytes that one byte can decode to.
pub(crate) const MAX_RATIO: usize = 255;

/// The most bytes that a block can encode.
#[cfg(feature = "lz4")]
pub(crate) const MAX_INPUT_SIZE: usize = 0x7E00_0000;

// Of lz4.h, which the bindings leave out. The dictionary is what was decoded before, and stands right before the target.
unsafe extern "C" {
    fn LZ4_decompress_safe_usingDict(
        source: *const c_char,
        target: *mut c_char,
        source_len: c_int,
        target_len: c_int,
        dictionary: *const c_char,
        dictionary_len: c_int,
    ) -> c_int;
    #[cfg(feature = "blosc")]
    fn LZ4_decompress_safe_partial_usingDict(
        source: *const c_char,
        target: *mut c_char,
        source_len: c_int,
        wanted: c_int,
        target_len: c_int,
        dictionary: *const c_char,
        dictionary_len: c_int,
    ) -> c_int;
}

/// Decodes a block to the start of `decoded`, and answers with the number of bytes. `None` when the block is damaged, cut short, or decodes to
/// more.
pub(crate) fn decompress(encoded: &[u8], decoded: &mut [u8]) -> Option<usize> {
    check_lens(encoded, decoded)?;
    let rest = Rest::behind(decode_middle(encoded, decoded), encoded, decoded)?;
    // SAFETY: the rest of a slice, the rest of another, and all that is before it, which is initialised; the library stays within them.
    let written = unsafe {
        LZ4_decompress_safe_usingDict(rest.encoded, rest.decoded, rest.encoded_len, rest.decoded_len, rest.before, rest.before_len)
    };
    rest.written(written)
}

/// Decodes no more of a block than the first `decoded.len()` bytes, and answers with their number: fewer, if the block has fewer. `None` when as much of it is damaged.
#[cfg(feature = "blosc")]
pub(crate) fn decompress_front(encoded: &[u8], decoded: &mut [u8]) -> Option<usize> {
    check_lens(encoded, decoded)?;
    let start = decode_middle(encoded, decoded);
    // A bad match, at an offset of 0, is of itself, and so of what the memory held before.
    decoded.get_mut(start.written..)?.fill(0);
    let rest = Rest::behind(start, encoded, decoded)?;
    let Rest { decoded_len, before_len, .. } = rest;
    // SAFETY: the rest of a slice, the rest of another, and all that is before it, which is initialised; the library stays within them.
    let written = unsafe {
        LZ4_decompress_safe_partial_usingDict(
            rest.encoded,
            rest.decoded,
            rest.encoded_len,
            decoded_len,
            decoded_len,
            rest.before,
            before_len,
        )
    };
    rest.written(written)
}

/// `None` for more than the library takes, of which a part may have been decoded before.
fn check_lens(encoded: &[u8], decoded: &[u8]) -> Option<()> {
    c_int::try_from(encoded.len().max(decoded.len())).ok().map(drop)
}

/// How far a block is decoded: to the start of a sequence.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Progress {
    /// Bytes of the input.
    read: usize,
    /// Bytes of the output.
    written: usize,
}

/// Decodes as much as [`middle`] does, if the processor can.
fn decode_middle(encoded: &[u8], decoded: &mut [u8]) -> Progress {
    #[cfg(target_arch = "x86_64")]
    if middle::is_supported() {
        // SAFETY: the processor has the instructions.
        return unsafe { middle::decode(encoded, decoded) };
    }
    let _ = (encoded, decoded);
    Progress::default()
}

/// What is left of a block for the library.
struct Rest {
    encoded: *const c_char,
    encoded_len: c_int,
    decoded: *mut c_char,
    decoded_len: c_int,
    /// What is decoded already.
    before: *const c_char,
    before_len: c_int,
}

impl Rest {
    fn behind(start: Progress, encoded: &[u8], decoded: &mut [u8]) -> Option<Self> {
        let encoded = encoded.get(start.read..)?;
        let decoded_len = decoded.len().checked_sub(start.written)?;
        let before = decoded.as_mut_ptr();
        Some(Self {
            encoded: encoded.as_ptr().cast(),
            encoded_len: c_int::try_from(encoded.len()).ok()?,
            decoded: before.wrapping_add(start.written).cast(),
            decoded_len: c_int::try_from(decoded_len).ok()?,
            before: before.cast_const().cast(),
            before_len: c_int::try_from(start.written).ok()?,
        })
    }

    /// All that is decoded, if the library answers so.
    fn written(&self, answer: c_int) -> Option<usize> {
        usize::try_from(answer).ok()?.checked_add(usize::try_from(self.before_len).ok()?)
    }
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
#[cfg(any(feature = "lz4", test))]
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
            source: *const c_char,
            target: *mut c_char,
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

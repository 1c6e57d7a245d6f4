//! Loads and stores within slices, without a look at their lengths.

use std::arch::x86_64::{__m128i, __m256i, _mm_loadu_si128, _mm_storeu_si128, _mm256_loadu_si256, _mm256_storeu_si256};

/// Bytes of a word.
pub(super) const WORD: usize = 8;
/// Bytes of a register, and of one of twice the size.
pub(super) const WIDTH: usize = 16;
pub(super) const WIDE: usize = 32;

/// # Safety
/// `at + 8` is at most the length of `bytes`.
#[inline(always)]
pub(super) unsafe fn word(bytes: &[u8], at: usize) -> u64 {
    debug_assert!(at + WORD <= bytes.len());
    // SAFETY: by the caller's promise.
    let from = unsafe { bytes.as_ptr().add(at) };
    // SAFETY: by the caller's promise; an array of bytes has no alignment.
    u64::from_le_bytes(unsafe { *from.cast() })
}

/// # Safety
/// `at + 16` is at most the length of `bytes`.
#[inline(always)]
pub(super) unsafe fn load(bytes: &[u8], at: usize) -> __m128i {
    debug_assert!(at + WIDTH <= bytes.len());
    // SAFETY: by the caller's promise.
    let from = unsafe { bytes.as_ptr().add(at) };
    // SAFETY: by the caller's promise; the load assumes no alignment.
    unsafe { _mm_loadu_si128(from.cast()) }
}

/// # Safety
/// `at + 16` is at most the length of `bytes`.
#[inline(always)]
pub(super) unsafe fn store(bytes: &mut [u8], at: usize, register: __m128i) {
    debug_assert!(at + WIDTH <= bytes.len());
    // SAFETY: by the caller's promise.
    let to = unsafe { bytes.as_mut_ptr().add(at) };
    // SAFETY: by the caller's promise; the store assumes no alignment.
    unsafe { _mm_storeu_si128(to.cast(), register) };
}

/// # Safety
/// `at + 32` is at most the length of `bytes`.
#[target_feature(enable = "avx2")]
#[inline]
pub(super) unsafe fn load_wide(bytes: &[u8], at: usize) -> __m256i {
    debug_assert!(at + WIDE <= bytes.len());
    // SAFETY: by the caller's promise.
    let from = unsafe { bytes.as_ptr().add(at) };
    // SAFETY: by the caller's promise; the load assumes no alignment.
    unsafe { _mm256_loadu_si256(from.cast()) }
}

/// # Safety
/// `at + 32` is at most the length of `bytes`.
#[target_feature(enable = "avx2")]
#[inline]
pub(super) unsafe fn store_wide(bytes: &mut [u8], at: usize, register: __m256i) {
    debug_assert!(at + WIDE <= bytes.len());
    // SAFETY: by the caller's promise.
    let to = unsafe { bytes.as_mut_ptr().add(at) };
    // SAFETY: by the caller's promise; the store assumes no alignment.
    unsafe { _mm256_storeu_si256(to.cast(), register) };
}

//! Shuffles for type sizes that are powers of two, by a network of interleaves.
//!
//! `N` vectors of 16 bytes are `16 * N` bytes with an address of `4 + log2 N` bits: which vector, then which byte. Interleaving the first half of the vectors
//! with the second half, byte by byte, rotates the bits of every byte's address to the left by one. Unshuffling `N` streams of 16 bytes is a rotation
//! by `log2 N`, shuffling 16 elements of `N` bytes one by 4: the same step, so many times.

use vector::{Vector, interleave, load, store};

/// Elements that one pass of the network takes.
const ELEMENTS: usize = 16;

/// Shuffles elements of `N` bytes from the first on, sixteen at a time, and answers with how many. Both slices hold `elements` of them.
pub(super) fn shuffle<const N: usize>(from: &[u8], to: &mut [u8], elements: usize) -> usize {
    assert_holds::<N>(from, to, elements);
    let (from, to) = (from.as_ptr(), to.as_mut_ptr());
    // SAFETY: both slices hold `elements` elements of `N` bytes, and cannot overlap.
    unsafe { shuffle_unchecked::<N>(from, to, elements) }
}

/// Unshuffles elements of `N` bytes from the first on, sixteen at a time, and answers with how many. Both slices hold `elements` of them.
pub(super) fn unshuffle<const N: usize>(from: &[u8], to: &mut [u8], elements: usize) -> usize {
    assert_holds::<N>(from, to, elements);
    let (from, to) = (from.as_ptr(), to.as_mut_ptr());
    // SAFETY: both slices hold `elements` elements of `N` bytes, and cannot overlap.
    unsafe { unshuffle_unchecked::<N>(from, to, elements) }
}

/// The callers compute `elements` from the lengths; this is what the unsafe code below stands on.
fn assert_holds<const N: usize>(from: &[u8], to: &[u8], elements: usize) {
    let len = elements.checked_mul(N);
    assert!(len == Some(from.len()) && len == Some(to.len()), "{elements} elements of {N} bytes in slices of other lengths");
}

macro_rules! passes {
    ($($name:ident, $body:ident;)*) => {$(
        /// # Safety
        /// `from` is valid for reads and `to` for writes of `elements * N` bytes, and the two do not overlap.
        unsafe fn $name<const N: usize>(from: *const u8, to: *mut u8, elements: usize) -> usize {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2")]
                unsafe fn wide<const N: usize>(from: *const u8, to: *mut u8, elements: usize) -> usize {
                    // SAFETY: the same promise.
                    unsafe { $body::<N>(from, to, elements) }
                }
                if crate::dispatch::has_avx2() {
                    // SAFETY: the processor has the feature; the rest is the caller's promise.
                    return unsafe { wide::<N>(from, to, elements) };
                }
            }
            // SAFETY: the same promise.
            unsafe { $body::<N>(from, to, elements) }
        }
    )*};
}

passes! {
    shuffle_unchecked, shuffle_pass;
    unshuffle_unchecked, unshuffle_pass;
}

/// # Safety
/// As [`shuffle_unchecked`].
#[inline(always)]
unsafe fn shuffle_pass<const N: usize>(from: *const u8, to: *mut u8, elements: usize) -> usize {
    let passes = elements / ELEMENTS;
    for pass in 0..passes {
        let first = pass.wrapping_mul(ELEMENTS);
        let mut vectors = std::array::from_fn::<Vector, N, _>(|vector| {
            let offset = first.wrapping_mul(N).wrapping_add(vector.wrapping_mul(16));
            // SAFETY: 16 of the bytes of the 16 elements from `first` on.
            unsafe { load(from.wrapping_add(offset)) }
        });
        for _ in 0..4 {
            vectors = rotate(vectors);
        }
        for (stream, vector) in vectors.into_iter().enumerate() {
            let offset = stream.wrapping_mul(elements).wrapping_add(first);
            // SAFETY: bytes of the same 16 elements, in one of the `N` streams of `elements` bytes.
            unsafe { store(to.wrapping_add(offset), vector) };
        }
    }
    passes.wrapping_mul(ELEMENTS)
}

/// # Safety
/// As [`unshuffle_unchecked`].
#[inline(always)]
unsafe fn unshuffle_pass<const N: usize>(from: *const u8, to: *mut u8, elements: usize) -> usize {
    let passes = elements / ELEMENTS;
    for pass in 0..passes {
        let first = pass.wrapping_mul(ELEMENTS);
        let mut vectors = std::array::from_fn::<Vector, N, _>(|stream| {
            let offset = stream.wrapping_mul(elements).wrapping_add(first);
            // SAFETY: bytes of the 16 elements from `first` on, in one of the `N` streams of `elements` bytes.
            unsafe { load(from.wrapping_add(offset)) }
        });
        for _ in 0..N.trailing_zeros() {
            vectors = rotate(vectors);
        }
        for (index, vector) in vectors.into_iter().enumerate() {
            let offset = first.wrapping_mul(N).wrapping_add(index.wrapping_mul(16));
            // SAFETY: 16 of the bytes of the same 16 elements.
            unsafe { store(to.wrapping_add(offset), vector) };
        }
    }
    passes.wrapping_mul(ELEMENTS)
}

/// One step of the network.
#[inline(always)]
#[expect(clippy::indexing_slicing, clippy::arithmetic_side_effects, reason = "indices of an array of a length known when compiling")]
fn rotate<const N: usize>(vectors: [Vector; N]) -> [Vector; N] {
    let mut rotated = vectors;
    for index in 0..N / 2 {
        let (low, high) = interleave(vectors[index], vectors[index + N / 2]);
        rotated[2 * index] = low;
        rotated[2 * index + 1] = high;
    }
    rotated
}

#[cfg(target_arch = "x86_64")]
mod vector {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_storeu_si128, _mm_unpackhi_epi8, _mm_unpacklo_epi8};

    pub(super) type Vector = __m128i;

    /// # Safety
    /// 16 bytes are valid for reads.
    #[inline(always)]
    pub(super) unsafe fn load(from: *const u8) -> Vector {
        // SAFETY: the caller's promise; no alignment is needed, and SSE2 is part of x86-64.
        unsafe { _mm_loadu_si128(from.cast()) }
    }

    /// # Safety
    /// 16 bytes are valid for writes.
    #[inline(always)]
    pub(super) unsafe fn store(to: *mut u8, vector: Vector) {
        // SAFETY: the caller's promise; no alignment is needed, and SSE2 is part of x86-64.
        unsafe { _mm_storeu_si128(to.cast(), vector) };
    }

    /// The bytes of both in turn: those of the lower halves, and those of the upper ones.
    #[inline(always)]
    pub(super) fn interleave(first: Vector, second: Vector) -> (Vector, Vector) {
        // SAFETY: SSE2 is part of x86-64.
        let low = unsafe { _mm_unpacklo_epi8(first, second) };
        // SAFETY: as above.
        let high = unsafe { _mm_unpackhi_epi8(first, second) };
        (low, high)
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod vector {
    /// The compiler finds the vector instructions for these.
    pub(super) type Vector = [u8; 16];

    /// # Safety
    /// 16 bytes are valid for reads.
    #[inline(always)]
    pub(super) unsafe fn load(from: *const u8) -> Vector {
        // SAFETY: the caller's promise; no alignment is needed.
        unsafe { from.cast::<Vector>().read_unaligned() }
    }

    /// # Safety
    /// 16 bytes are valid for writes.
    #[inline(always)]
    pub(super) unsafe fn store(to: *mut u8, vector: Vector) {
        // SAFETY: the caller's promise; no alignment is needed.
        unsafe { to.cast::<Vector>().write_unaligned(vector) };
    }

    /// The bytes of both in turn: those of the lower halves, and those of the upper ones.
    #[inline(always)]
    #[expect(clippy::indexing_slicing, clippy::arithmetic_side_effects, reason = "indices below 16, known when compiling")]
    pub(super) fn interleave(first: Vector, second: Vector) -> (Vector, Vector) {
        let of =
            |start: usize| std::array::from_fn(|index| if index % 2 == 0 { first[start + index / 2] } else { second[start + index / 2] });
        (of(0), of(8))
    }
}

//! Bit shuffle: byte shuffle, then bits within each stream.

use super::{shuffle, unshuffle};

/// Takes elements apart by bits; `scratch` is overwritten, and as long as the others. As c-blosc has it, nothing happens where the number of elements is no
/// multiple of eight. Bytes behind the last whole element stay where they are.
pub(crate) fn bitshuffle(type_size: usize, from: &[u8], to: &mut [u8], scratch: &mut [u8]) {
    let elements = from.len().checked_div(type_size).unwrap_or(0);
    if !elements.is_multiple_of(8) || elements == 0 {
        to.copy_from_slice(from);
        return;
    }
    let whole = elements.saturating_mul(type_size);
    shuffle(type_size, from, scratch);
    let (Some(streams), Some(rows)) = (scratch.get_mut(..whole), to.get_mut(..whole)) else {
        return;
    };
    for (stream, rows) in streams.chunks_exact_mut(elements).zip(rows.chunks_exact_mut(elements)) {
        transpose_bits(stream);
        shuffle(8, stream, rows);
    }
    copy_rest(from, to, whole);
}

/// Puts elements together again.
pub(crate) fn bitunshuffle(type_size: usize, from: &[u8], to: &mut [u8], scratch: &mut [u8]) {
    let elements = from.len().checked_div(type_size).unwrap_or(0);
    if !elements.is_multiple_of(8) || elements == 0 {
        to.copy_from_slice(from);
        return;
    }
    let whole = elements.saturating_mul(type_size);
    let (Some(rows), Some(streams)) = (from.get(..whole), scratch.get_mut(..whole)) else {
        return;
    };
    for (rows, stream) in rows.chunks_exact(elements).zip(streams.chunks_exact_mut(elements)) {
        unshuffle(8, rows, stream);
        transpose_bits(stream);
    }
    if let Some(to) = to.get_mut(..whole) {
        unshuffle(type_size, streams, to);
    }
    copy_rest(from, to, whole);
}

fn copy_rest(from: &[u8], to: &mut [u8], start: usize) {
    let (from, to) = (from.get(start..).unwrap_or_default(), to.get_mut(start..).unwrap_or_default());
    to.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
}

/// Transposes each eight bytes as a matrix of 8 × 8 bits: bit `i` of byte `k` goes to bit `k` of byte `i`.
fn transpose_bits(bytes: &mut [u8]) {
    #[cfg(target_arch = "x86_64")]
    if std::is_x86_feature_detected!("gfni") && std::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has both.
        unsafe { by_matrices::transpose_bits(bytes) };
        return;
    }
    transpose_bits_by_swaps(bytes);
}

/// With Galois Field New Instructions (Ice Lake and later, Zen 4 and later), of which one multiplies four times eight bytes by a matrix of 8 × 8 bits each.
#[cfg(target_arch = "x86_64")]
mod by_matrices {
    use std::arch::x86_64::{
        __m256i, _mm256_gf2p8affine_epi64_epi8, _mm256_loadu_si256, _mm256_set1_epi64x, _mm256_shuffle_epi8, _mm256_storeu_si256,
    };

    #[target_feature(enable = "avx2,gfni")]
    pub(super) fn transpose_bits(bytes: &mut [u8]) {
        let (vectors, rest) = bytes.as_chunks_mut::<32>();
        // The bytes of each eight in reverse: the first row of a matrix is its last byte.
        const REVERSE: [u8; 32] = {
            let mut order = [0; 32];
            let mut index = 0;
            while index < 32 {
                #[expect(clippy::indexing_slicing, clippy::cast_possible_truncation, reason = "less than 32")]
                {
                    order[index] = (index as u8) ^ 7;
                }
                index += 1;
            }
            order
        };
        let reverse = load(&REVERSE);
        // Byte `i` has bit `i`: a product of rows and it is bit `i` of the rows.
        let columns = _mm256_set1_epi64x(i64::from_le_bytes([1, 2, 4, 8, 16, 32, 64, 128]));
        for vector in vectors {
            let matrices = _mm256_shuffle_epi8(load(vector), reverse);
            store(vector, _mm256_gf2p8affine_epi64_epi8::<0>(columns, matrices));
        }
        super::transpose_bits_by_swaps(rest);
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    fn load(bytes: &[u8; 32]) -> __m256i {
        // SAFETY: 32 bytes; the load assumes no alignment.
        unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    fn store(bytes: &mut [u8; 32], vector: __m256i) {
        // SAFETY: 32 bytes; the store assumes no alignment.
        unsafe { _mm256_storeu_si256(bytes.as_mut_ptr().cast(), vector) };
    }
}

crate::dispatch::multiversion! {
    fn transpose_bits_by_swaps(bytes: &mut [u8]) {
        for eight in bytes.as_chunks_mut::<8>().0 {
            // Swaps the off-diagonal squares of 1, 2 and 4 bits (Warren, Hacker's Delight, 7-3).
            let mut bits = u64::from_le_bytes(*eight);
            for (shift, mask) in [(7u32, 0x00AA_00AA_00AA_00AA_u64), (14, 0x0000_CCCC_0000_CCCC), (28, 0x0000_0000_F0F0_F0F0)] {
                let swap = (bits ^ (bits >> shift)) & mask;
                bits ^= swap ^ (swap << shift);
            }
            *eight = bits.to_le_bytes();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_transposed_either_way() {
        for len in (0..400).step_by(8) {
            let bytes: Vec<u8> = (0..len as u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
            let (mut here, mut swapped) = (bytes.clone(), bytes.clone());
            transpose_bits(&mut here);
            transpose_bits_by_swaps(&mut swapped);
            let bit = |bytes: &[u8], byte: usize, bit: usize| bytes[byte] >> bit & 1;
            for at in 0..len {
                let (eight, within) = (at / 8 * 8, at % 8);
                for other in 0..8 {
                    assert_eq!(bit(&here, at, other), bit(&bytes, eight + other, within));
                }
            }
            assert_eq!(here, swapped);
        }
    }
}

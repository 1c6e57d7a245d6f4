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

crate::dispatch::multiversion! {
    /// Transposes each eight bytes as a matrix of 8 × 8 bits: bit `i` of byte `k` goes to bit `k` of byte `i`.
    fn transpose_bits(bytes: &mut [u8]) {
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

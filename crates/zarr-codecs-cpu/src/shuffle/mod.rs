//! Byte shuffle and bit shuffle.
//!
//! Shuffling takes elements of `type_size` bytes apart: first all first bytes, then all second ones, and so on. Bit shuffling does so with bits: for each byte
//! of the element and each of its bits, from the lowest, one row with that bit of every element, eight elements to a byte.

#[cfg(any(feature = "blosc", test))]
mod bits;
mod network;

#[cfg(any(feature = "blosc", test))]
pub(crate) use bits::{bitshuffle, bitunshuffle};

/// Takes elements apart by bytes. Bytes behind the last whole element stay where they are. The slices are of equal length.
pub(crate) fn shuffle(type_size: usize, from: &[u8], to: &mut [u8]) {
    permute(type_size, from, to, true);
}

/// Puts elements together again.
pub(crate) fn unshuffle(type_size: usize, from: &[u8], to: &mut [u8]) {
    permute(type_size, from, to, false);
}

fn permute(type_size: usize, from: &[u8], to: &mut [u8], apart: bool) {
    let len = from.len().min(to.len());
    let elements = len.checked_div(type_size).unwrap_or(0);
    let whole = elements.saturating_mul(type_size);
    let (Some((from, from_rest)), Some((to, to_rest))) = (from.split_at_checked(whole), to.split_at_mut_checked(whole)) else {
        return;
    };
    to_rest.iter_mut().zip(from_rest).for_each(|(to, from)| *to = *from);
    let done = match (type_size, apart) {
        (1, _) => {
            to.copy_from_slice(from);
            elements
        }
        (2, true) => network::shuffle::<2>(from, to, elements),
        (2, false) => network::unshuffle::<2>(from, to, elements),
        (4, true) => network::shuffle::<4>(from, to, elements),
        (4, false) => network::unshuffle::<4>(from, to, elements),
        (8, true) => network::shuffle::<8>(from, to, elements),
        (8, false) => network::unshuffle::<8>(from, to, elements),
        (16, true) => network::shuffle::<16>(from, to, elements),
        (16, false) => network::unshuffle::<16>(from, to, elements),
        _ => 0,
    };
    if done < elements {
        if apart {
            shuffle_from(type_size, from, to, elements, done);
        } else {
            unshuffle_from(type_size, from, to, elements, done);
        }
    }
}

/// Elements are taken in runs, so that all the streams of one stay in the cache.
const RUN: usize = 256;

/// Any type size, from element `start` on.
fn shuffle_from(type_size: usize, from: &[u8], to: &mut [u8], elements: usize, start: usize) {
    for first in (start..elements).step_by(RUN) {
        let last = first.saturating_add(RUN).min(elements);
        let run = from.get(first.saturating_mul(type_size)..last.saturating_mul(type_size)).unwrap_or_default();
        for (byte, stream) in to.chunks_exact_mut(elements).enumerate() {
            let values = run.iter().skip(byte).step_by(type_size);
            stream.get_mut(first..last).unwrap_or_default().iter_mut().zip(values).for_each(|(to, from)| *to = *from);
        }
    }
}

/// Any type size, from element `start` on.
fn unshuffle_from(type_size: usize, from: &[u8], to: &mut [u8], elements: usize, start: usize) {
    for first in (start..elements).step_by(RUN) {
        let last = first.saturating_add(RUN).min(elements);
        let run = to.get_mut(first.saturating_mul(type_size)..last.saturating_mul(type_size)).unwrap_or_default();
        for (byte, stream) in from.chunks_exact(elements).enumerate() {
            let values = stream.get(first..last).unwrap_or_default();
            run.iter_mut().skip(byte).step_by(type_size).zip(values).for_each(|(to, from)| *to = *from);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn naive_shuffle(type_size: usize, from: &[u8]) -> Vec<u8> {
        let elements = from.len() / type_size;
        let mut to = from.to_vec();
        for element in 0..elements {
            for byte in 0..type_size {
                to[byte * elements + element] = from[element * type_size + byte];
            }
        }
        to
    }

    fn naive_bitshuffle(type_size: usize, from: &[u8]) -> Vec<u8> {
        let elements = from.len() / type_size;
        let mut to = from.to_vec();
        if !elements.is_multiple_of(8) {
            return to;
        }
        to[..elements * type_size].fill(0);
        for element in 0..elements {
            for bit in 0..type_size * 8 {
                let set = from[element * type_size + bit / 8] >> (bit % 8) & 1;
                to[bit * (elements / 8) + element / 8] |= set << (element % 8);
            }
        }
        to
    }

    proptest! {
        #[test]
        fn agrees_with_one_at_a_time(
            bytes in prop::collection::vec(any::<u8>(), 0..5000),
            type_size in prop::sample::select(vec![1usize, 2, 3, 4, 5, 7, 8, 12, 16, 17, 24, 255]),
        ) {
            let (mut there, mut back, mut scratch) = (vec![0; bytes.len()], vec![0; bytes.len()], vec![0; bytes.len()]);
            shuffle(type_size, &bytes, &mut there);
            prop_assert_eq!(&there, &naive_shuffle(type_size, &bytes));
            unshuffle(type_size, &there, &mut back);
            prop_assert_eq!(&back, &bytes);
            for len in [bytes.len(), bytes.len() / (8 * type_size) * (8 * type_size)] {
                let bytes = &bytes[..len];
                bitshuffle(type_size, bytes, &mut there[..len], &mut scratch[..len]);
                prop_assert_eq!(&there[..len], &naive_bitshuffle(type_size, bytes));
                bitunshuffle(type_size, &there[..len], &mut back[..len], &mut scratch[..len]);
                prop_assert_eq!(&back[..len], bytes);
            }
        }
    }
}

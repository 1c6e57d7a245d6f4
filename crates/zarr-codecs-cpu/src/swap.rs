//! Changing the byte order of numbers inside elements.

use zarr_meta::SwapRun;

use crate::dispatch::multiversion;

/// Copies elements of `element_len` bytes, with the bytes of each number of `runs` reversed. The slices are of equal length.
pub(crate) fn copy(from: &[u8], to: &mut [u8], element_len: usize, runs: &[SwapRun]) {
    match uniform(element_len, runs) {
        Some(2) => copy_2(from, to),
        Some(4) => copy_4(from, to),
        Some(8) => copy_8(from, to),
        _ => {
            let len = from.len().min(to.len());
            if let (Some(to), Some(from)) = (to.get_mut(..len), from.get(..len)) {
                to.copy_from_slice(from);
            }
            in_place(to, element_len, runs);
        }
    }
}

/// Reverses the bytes of each number of `runs`, in every element of `element_len` bytes.
pub(crate) fn in_place(bytes: &mut [u8], element_len: usize, runs: &[SwapRun]) {
    match uniform(element_len, runs) {
        Some(2) => swap_2(bytes),
        Some(4) => swap_4(bytes),
        Some(8) => swap_8(bytes),
        _ if runs.is_empty() || element_len == 0 => {}
        _ => {
            for element in bytes.chunks_exact_mut(element_len) {
                for run in runs {
                    let numbers = element.get_mut(run.offset..).unwrap_or_default();
                    numbers.chunks_exact_mut(run.width).take(run.count).for_each(<[u8]>::reverse);
                }
            }
        }
    }
}

/// The width of the numbers, where elements consist of such numbers and nothing else.
fn uniform(element_len: usize, runs: &[SwapRun]) -> Option<usize> {
    match runs {
        [run] if run.offset == 0 && run.width.saturating_mul(run.count) == element_len => Some(run.width),
        _ => None,
    }
}

macro_rules! widths {
    ($($type:ty, $width:literal, $copy:ident, $swap:ident;)*) => {$(
        multiversion! {
            fn $copy(from: &[u8], to: &mut [u8]) {
                for (to, from) in to.as_chunks_mut::<$width>().0.iter_mut().zip(from.as_chunks::<$width>().0) {
                    *to = <$type>::from_ne_bytes(*from).swap_bytes().to_ne_bytes();
                }
            }

            fn $swap(bytes: &mut [u8]) {
                for number in bytes.as_chunks_mut::<$width>().0 {
                    *number = <$type>::from_ne_bytes(*number).swap_bytes().to_ne_bytes();
                }
            }
        }
    )*};
}

widths! {
    u16, 2, copy_2, swap_2;
    u32, 4, copy_4, swap_4;
    u64, 8, copy_8, swap_8;
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn agrees_with_one_number_at_a_time(
            bytes in prop::collection::vec(any::<u8>(), 0..300),
            gap in 0usize..3,
            width in prop::sample::select(vec![2usize, 3, 4, 8, 16]),
            count in 1usize..4,
        ) {
            let element_len = gap + width * count;
            let bytes = &bytes[..bytes.len() / element_len * element_len];
            let runs = [SwapRun { offset: gap, width, count }];
            let mut expected = bytes.to_vec();
            for element in expected.chunks_mut(element_len) {
                for number in element[gap..].chunks_mut(width) {
                    number.reverse();
                }
            }
            let mut copied = vec![0; bytes.len()];
            copy(bytes, &mut copied, element_len, &runs);
            prop_assert_eq!(&copied, &expected);
            let mut swapped = bytes.to_vec();
            in_place(&mut swapped, element_len, &runs);
            prop_assert_eq!(&swapped, &expected);
        }
    }
}

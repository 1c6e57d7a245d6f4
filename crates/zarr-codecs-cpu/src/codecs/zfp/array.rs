//! Whole arrays: cut into blocks, in C order, incomplete ones padded.
#![expect(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    reason = "blocks have 256 slots; places in the array are below its length, which callers checked to be the product of the extents"
)]

use zarr_codec_api::CodecError;

use super::block::{LARGEST, Parameters, Scalar};
use super::stream::{Reader, Writer};

/// The extents of an array of 1 to 4 dimensions, the fastest axis first, the missing ones 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Extents {
    pub(super) dimensions: usize,
    pub(super) lengths: [usize; 4],
}

impl Extents {
    /// Of a chunk: of no dimensions as of one; `None` for more than four.
    pub(super) fn of(shape: &[u64]) -> Option<Self> {
        let mut lengths = [1; 4];
        if shape.len() > lengths.len() {
            return None;
        }
        for (length, extent) in lengths.iter_mut().zip(shape.iter().rev()) {
            *length = usize::try_from(*extent).ok()?;
        }
        Some(Self { dimensions: shape.len().max(1), lengths })
    }

    /// The number of elements, if it fits.
    pub(super) fn elements(&self) -> Option<usize> {
        self.lengths.iter().try_fold(1usize, |product, length| product.checked_mul(*length))
    }

    /// The number of blocks, saturating.
    pub(super) fn blocks(&self) -> u64 {
        let along = |(axis, length): (usize, &usize)| if axis < self.dimensions { length.div_ceil(4) } else { *length };
        let blocks = self.lengths.iter().enumerate().map(along).fold(1usize, usize::saturating_mul);
        u64::try_from(blocks).unwrap_or(u64::MAX)
    }

    /// Elements between neighbours along each axis.
    fn strides(&self) -> [usize; 4] {
        let [x, y, z, _] = self.lengths;
        [1, x, x * y, x * y * z]
    }

    /// The first element of every block and how many elements it has along each axis.
    fn each_block(&self, mut visit: impl FnMut(usize, [usize; 4]) -> Result<(), CodecError>) -> Result<(), CodecError> {
        let strides = self.strides();
        let [x, y, z, w] = self.lengths;
        let size = |start: usize, length: usize| (length - start).min(4);
        for l in (0..w).step_by(4) {
            for k in (0..z).step_by(4) {
                for j in (0..y).step_by(4) {
                    for i in (0..x).step_by(4) {
                        let origin = i + j * strides[1] + k * strides[2] + l * strides[3];
                        visit(origin, [size(i, x), size(j, y), size(k, z), size(l, w)])?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// Calls `visit` with the place in the block and the offset from its first element in the array, for all elements that the block has.
fn each_element(sizes: [usize; 4], strides: [usize; 4], mut visit: impl FnMut(usize, usize)) {
    for l in 0..sizes[3] {
        for k in 0..sizes[2] {
            for j in 0..sizes[1] {
                let place = 4 * j + 16 * k + 64 * l;
                let offset = j * strides[1] + k * strides[2] + l * strides[3];
                for i in 0..sizes[0] {
                    visit(place + i, offset + i);
                }
            }
        }
    }
}

/// Fills up incomplete lines, the fastest axis first: with the last element, but for the fourth place, which takes the first.
fn pad<T: Copy>(block: &mut [T; LARGEST], sizes: [usize; 4], dimensions: usize) {
    for (axis, have) in sizes.into_iter().enumerate().take(dimensions).filter(|(_, have)| *have < 4) {
        let stride = 1 << (2 * axis);
        for start in (0..1usize << (2 * dimensions)).filter(|place| (place / stride).is_multiple_of(4)) {
            for missing in have..4 {
                let from = if missing == 3 { 0 } else { missing - 1 };
                block[start + missing * stride] = block[start + from * stride];
            }
        }
    }
}

/// Encodes all blocks behind what the writer holds. `numbers` has as many elements as the extents say.
pub(super) fn encode<T: Scalar>(
    numbers: &[T],
    extents: &Extents,
    parameters: &Parameters,
    writer: &mut Writer<'_>,
) -> Result<(), CodecError> {
    let strides = extents.strides();
    extents.each_block(|origin, sizes| {
        let mut block = [T::default(); LARGEST];
        each_element(sizes, strides, |place, offset| block[place] = numbers[origin + offset]);
        pad(&mut block, sizes, extents.dimensions);
        T::encode(&block, extents.dimensions, parameters, writer)
    })
}

/// Decodes all blocks. `numbers` has as many elements as the extents say.
pub(super) fn decode<T: Scalar>(
    numbers: &mut [T],
    extents: &Extents,
    parameters: &Parameters,
    reader: &mut Reader<'_>,
) -> Result<(), CodecError> {
    let strides = extents.strides();
    let mut block = [T::default(); LARGEST];
    extents.each_block(|origin, sizes| {
        T::decode(&mut block, extents.dimensions, parameters, reader)?;
        each_element(sizes, strides, |place, offset| numbers[origin + offset] = block[place]);
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extents_are_turned_around() {
        let extents = Extents::of(&[2, 3, 5]).unwrap();
        assert_eq!((extents.dimensions, extents.lengths), (3, [5, 3, 2, 1]));
        assert_eq!(extents.blocks(), 2);
        assert_eq!(Extents::of(&[]).unwrap().dimensions, 1);
        assert_eq!(Extents::of(&[1; 5]), None);
        assert_eq!(Extents::of(&[0, 3]).unwrap().blocks(), 0);
    }

    #[test]
    fn lines_are_filled_up() {
        let mut block = [0; LARGEST];
        block[0] = 7;
        block[1] = 8;
        pad(&mut block, [2, 1, 1, 1], 2);
        assert_eq!(block[..8], [7, 8, 8, 7, 7, 8, 8, 7]);
        assert_eq!(block[8..17], [7, 8, 8, 7, 7, 8, 8, 7, 0]);
    }
}

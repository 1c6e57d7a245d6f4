//! One block: 4^d numbers, decorrelated, ordered by frequency and coded bit plane by bit plane.
//!
//! After P. Lindstrom, "Fixed-Rate Compressed Floating-Point Arrays", IEEE Transactions on Visualization and Computer Graphics 20(12),
//! 2014, and the [documentation of the algorithm](https://zfp.readthedocs.io/en/latest/algorithm.html); the details of the streams are
//! those of codec version 5.
#![expect(
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    reason = "blocks have 256 slots, indices come from loops over powers of four below that, shifts are below the width, values wrap"
)]

use zarr_codec_api::CodecError;

use super::order::places;
use super::stream::{Reader, Writer};

/// Numbers of the largest block.
pub(super) const LARGEST: usize = 256;

/// The exponent below which coding is reversible instead of lossy.
pub(super) const LEAST_EXPONENT: i32 = -1074;

/// How blocks are coded: the four numbers of the library's expert mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Parameters {
    /// The fewest bits of a block.
    pub(super) min_bits: u32,
    /// The most bits of a block.
    pub(super) max_bits: u32,
    /// The most bit planes of a block.
    pub(super) max_precision: u32,
    /// The exponent of the lowest bit plane that is coded, for floating point numbers. Below [`LEAST_EXPONENT`]: reversible.
    pub(super) min_exponent: i32,
}

impl Parameters {
    pub(super) fn is_reversible(&self) -> bool {
        self.min_exponent < LEAST_EXPONENT
    }
}

/// A number type of the library.
pub(super) trait Scalar: Copy + Default + std::fmt::Debug {
    /// Bits of an exponent; 0 for integers.
    const EXPONENT_BITS: u32;

    /// Bits of what stands before the bit planes in a reversible block; of a lossy one it is the exponent and a bit.
    const REVERSIBLE_PREFIX: u32;

    /// Bits of a number.
    const WIDTH: u32;

    /// Writes a block of `dimensions` dimensions.
    ///
    /// # Errors
    /// When a number cannot be coded.
    fn encode(block: &[Self; LARGEST], dimensions: usize, parameters: &Parameters, writer: &mut Writer<'_>) -> Result<(), CodecError>;

    /// Reads a block of `dimensions` dimensions.
    ///
    /// # Errors
    /// When the stream ends early.
    fn decode(block: &mut [Self; LARGEST], dimensions: usize, parameters: &Parameters, reader: &mut Reader<'_>) -> Result<(), CodecError>;
}

/// What remains of the budget of a block.
#[derive(Debug, Clone, Copy)]
struct Budget {
    /// Bits that must still be written.
    min: u32,
    /// Bits that may still be written.
    max: u32,
}

impl Budget {
    fn of(parameters: &Parameters) -> Self {
        Self { min: parameters.min_bits, max: parameters.max_bits }
    }

    fn less(self, bits: u32) -> Self {
        Self { min: self.min.saturating_sub(bits), max: self.max.saturating_sub(bits) }
    }
}

/// The integers that are coded.
trait Integer: Copy + Default {
    const BITS: u32;
    /// Bits that hold a precision less one.
    const PRECISION_BITS: u32;
    fn plus(self, other: Self) -> Self;
    fn minus(self, other: Self) -> Self;
    fn halved(self) -> Self;
    fn doubled(self) -> Self;
    /// In base -2, where small numbers of both signs have zeros above.
    fn to_negabinary(self) -> u64;
    fn from_negabinary(bits: u64) -> Self;
}

macro_rules! integer {
    ($kind:ty, $unsigned:ty, $precision_bits:expr) => {
        impl Integer for $kind {
            const BITS: u32 = <$kind>::BITS;
            const PRECISION_BITS: u32 = $precision_bits;

            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }

            fn minus(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }

            fn halved(self) -> Self {
                self >> 1
            }

            fn doubled(self) -> Self {
                self << 1
            }

            fn to_negabinary(self) -> u64 {
                const MASK: $unsigned = <$unsigned>::MAX / 3 * 2;
                u64::from(self.cast_unsigned().wrapping_add(MASK) ^ MASK)
            }

            fn from_negabinary(bits: u64) -> Self {
                const MASK: $unsigned = <$unsigned>::MAX / 3 * 2;
                ((bits as $unsigned) ^ MASK).wrapping_sub(MASK).cast_signed()
            }
        }
    };
}
integer!(i32, u32, 5);
integer!(i64, u64, 6);

/// Calls `transform` for every line of four along every axis; `backward` starts with the slowest axis.
fn each_line<T: Integer>(block: &mut [T; LARGEST], dimensions: usize, backward: bool, transform: impl Fn([T; 4]) -> [T; 4]) {
    let size = 1usize << (2 * dimensions);
    for step in 0..dimensions {
        let axis = if backward { dimensions - 1 - step } else { step };
        let stride = 1usize << (2 * axis);
        for start in (0..size).filter(|index| (index / stride).is_multiple_of(4)) {
            let line = [0, 1, 2, 3].map(|i| block[start + i * stride]);
            for (i, value) in transform(line).into_iter().enumerate() {
                block[start + i * stride] = value;
            }
        }
    }
}

/// The lifted transform of four numbers, nearly orthogonal.
fn forward<T: Integer>([mut x, mut y, mut z, mut w]: [T; 4]) -> [T; 4] {
    x = x.plus(w).halved();
    w = w.minus(x);
    z = z.plus(y).halved();
    y = y.minus(z);
    x = x.plus(z).halved();
    z = z.minus(x);
    w = w.plus(y).halved();
    y = y.minus(w);
    w = w.plus(y.halved());
    y = y.minus(w.halved());
    [x, y, z, w]
}

fn backward<T: Integer>([mut x, mut y, mut z, mut w]: [T; 4]) -> [T; 4] {
    y = y.plus(w.halved());
    w = w.minus(y.halved());
    y = y.plus(w);
    w = w.doubled().minus(y);
    z = z.plus(x);
    x = x.doubled().minus(z);
    y = y.plus(z);
    z = z.doubled().minus(y);
    w = w.plus(x);
    x = x.doubled().minus(w);
    [x, y, z, w]
}

/// Differences of differences: reversible without a further bit.
fn forward_reversible<T: Integer>([x, mut y, mut z, mut w]: [T; 4]) -> [T; 4] {
    w = w.minus(z);
    z = z.minus(y);
    y = y.minus(x);
    w = w.minus(z);
    z = z.minus(y);
    w = w.minus(z);
    [x, y, z, w]
}

fn backward_reversible<T: Integer>([x, mut y, mut z, mut w]: [T; 4]) -> [T; 4] {
    w = w.plus(z);
    z = z.plus(y);
    w = w.plus(z);
    y = y.plus(x);
    z = z.plus(y);
    w = w.plus(z);
    [x, y, z, w]
}

fn encode_integers<T: Integer>(
    block: &mut [T; LARGEST],
    dimensions: usize,
    is_reversible: bool,
    precision: u32,
    budget: Budget,
    writer: &mut Writer<'_>,
) {
    if is_reversible {
        each_line(block, dimensions, false, forward_reversible);
    } else {
        each_line(block, dimensions, false, forward);
    }
    let mut coefficients = [0u64; LARGEST];
    let places = places(dimensions);
    let coefficients = &mut coefficients[..places.len()];
    for (coefficient, place) in coefficients.iter_mut().zip(places) {
        *coefficient = block[usize::from(*place)].to_negabinary();
    }
    let mut bits = 0;
    let mut precision = precision;
    if is_reversible {
        // Only as many planes as reach down to the lowest bit that is set.
        let any = coefficients.iter().fold(0, |any, coefficient| any | coefficient);
        let needed = T::BITS.saturating_sub(any.trailing_zeros());
        precision = needed.min(precision).max(1);
        writer.write(u64::from(precision - 1), T::PRECISION_BITS);
        bits = T::PRECISION_BITS;
    }
    bits += encode_planes(coefficients, T::BITS, precision, budget.max.saturating_sub(bits), writer);
    writer.pad(budget.min.saturating_sub(bits));
}

fn decode_integers<T: Integer>(
    block: &mut [T; LARGEST],
    dimensions: usize,
    is_reversible: bool,
    precision: u32,
    budget: Budget,
    reader: &mut Reader<'_>,
) -> Result<(), CodecError> {
    let mut bits = 0;
    let mut precision = precision;
    if is_reversible {
        precision = reader.read(T::PRECISION_BITS)? as u32 + 1;
        bits = T::PRECISION_BITS;
    }
    let mut coefficients = [0u64; LARGEST];
    let places = places(dimensions);
    let coefficients = &mut coefficients[..places.len()];
    bits += decode_planes(coefficients, T::BITS, precision, budget.max.saturating_sub(bits), reader)?;
    reader.skip(budget.min.saturating_sub(bits));
    for (coefficient, place) in coefficients.iter().zip(places) {
        block[usize::from(*place)] = T::from_negabinary(*coefficient);
    }
    if is_reversible {
        each_line(block, dimensions, true, backward_reversible);
    } else {
        each_line(block, dimensions, true, backward);
    }
    Ok(())
}

/// Writes the highest `precision` bit planes within `budget` bits and says how many bits that took.
///
/// Of each plane first come the bits of the coefficients that were significant before. Then, again and again, a bit that says whether any
/// bit is left in the plane, and if so the bits up to the next one that is set; its coefficient is significant from then on.
fn encode_planes(coefficients: &[u64], width: u32, precision: u32, budget: u32, writer: &mut Writer<'_>) -> u32 {
    let size = coefficients.len();
    let mut left = budget;
    let mut significant = 0;
    for plane in (width.saturating_sub(precision)..width).rev() {
        if left == 0 {
            break;
        }
        let bit = |index: usize| (coefficients[index] >> plane) & 1 == 1;
        let known = significant.min(left as usize);
        for start in (0..known).step_by(64) {
            let count = (known - start).min(64);
            let bits = (0..count).fold(0, |bits, i| bits | u64::from(bit(start + i)) << i);
            writer.write(bits, count as u32);
        }
        left -= known as u32;
        if left == 0 {
            break;
        }
        let last = (significant..size).rev().find(|index| bit(*index));
        while left > 0 && significant < size {
            left -= 1;
            let any = last.is_some_and(|last| last >= significant);
            writer.write_bit(any);
            if !any {
                break;
            }
            while left > 0 && significant < size - 1 {
                left -= 1;
                writer.write_bit(bit(significant));
                if bit(significant) {
                    break;
                }
                significant += 1;
            }
            significant += 1;
        }
    }
    budget - left
}

fn decode_planes(coefficients: &mut [u64], width: u32, precision: u32, budget: u32, reader: &mut Reader<'_>) -> Result<u32, CodecError> {
    let size = coefficients.len();
    let mut left = budget;
    let mut significant = 0;
    for plane in (width.saturating_sub(precision)..width).rev() {
        if left == 0 {
            break;
        }
        let known = significant.min(left as usize);
        for start in (0..known).step_by(64) {
            let count = (known - start).min(64);
            let bits = reader.read(count as u32)?;
            for (i, coefficient) in coefficients[start..start + count].iter_mut().enumerate() {
                *coefficient |= (bits >> i & 1) << plane;
            }
        }
        left -= known as u32;
        while left > 0 && significant < size {
            left -= 1;
            if !reader.read_bit()? {
                break;
            }
            while left > 0 && significant < size - 1 {
                left -= 1;
                if reader.read_bit()? {
                    break;
                }
                significant += 1;
            }
            // Where the budget ends in the search, the library takes the coefficient it stopped at.
            coefficients[significant] |= 1 << plane;
            significant += 1;
        }
    }
    Ok(budget - left)
}

macro_rules! integer_scalar {
    ($kind:ty) => {
        impl Scalar for $kind {
            const EXPONENT_BITS: u32 = 0;
            const REVERSIBLE_PREFIX: u32 = <$kind as Integer>::PRECISION_BITS;
            const WIDTH: u32 = <$kind>::BITS;

            fn encode(
                block: &[Self; LARGEST],
                dimensions: usize,
                parameters: &Parameters,
                writer: &mut Writer<'_>,
            ) -> Result<(), CodecError> {
                let (mut block, precision) = (*block, parameters.max_precision);
                encode_integers(&mut block, dimensions, parameters.is_reversible(), precision, Budget::of(parameters), writer);
                Ok(())
            }

            fn decode(
                block: &mut [Self; LARGEST],
                dimensions: usize,
                parameters: &Parameters,
                reader: &mut Reader<'_>,
            ) -> Result<(), CodecError> {
                let precision = parameters.max_precision;
                decode_integers(block, dimensions, parameters.is_reversible(), precision, Budget::of(parameters), reader)
            }
        }
    };
}
integer_scalar!(i32);
integer_scalar!(i64);

/// Bit planes of a block whose largest value is below `2^exponent`.
fn precision(exponent: i32, parameters: &Parameters, dimensions: usize) -> u32 {
    let planes = i64::from(exponent) - i64::from(parameters.min_exponent) + 2 * dimensions as i64 + 2;
    u32::try_from(planes.max(0)).unwrap_or(u32::MAX).min(parameters.max_precision)
}

/// `2^exponent`, 0 where that is too small.
fn power_of_two(exponent: i32) -> f64 {
    match exponent {
        ..-1074 => 0.0,
        -1074..-1022 => f64::from_bits(1 << (exponent + 1074)),
        _ => f64::from_bits(((exponent.min(1023) + 1023) as u64) << 52),
    }
}

/// Numbers as multiples of a power of two, common to the block, that their integers hold; or, reversibly, their bits as integers.
macro_rules! float_scalar {
    ($kind:ty, $int:ty, $exponent_bits:expr, $bias:expr, $mantissa_bits:expr) => {
        impl Scalar for $kind {
            const EXPONENT_BITS: u32 = $exponent_bits;
            const REVERSIBLE_PREFIX: u32 = 2 + $exponent_bits + <$int as Integer>::PRECISION_BITS;
            const WIDTH: u32 = <$int>::BITS;

            fn encode(
                block: &[Self; LARGEST],
                dimensions: usize,
                parameters: &Parameters,
                writer: &mut Writer<'_>,
            ) -> Result<(), CodecError> {
                const FRACTION_BITS: i32 = <$int>::BITS as i32 - 2;
                let size = 1usize << (2 * dimensions);
                let numbers = &block[..size];
                let budget = Budget::of(parameters);
                let is_finite = numbers.iter().all(|number| number.is_finite());
                let largest = numbers.iter().fold(0.0, |largest: $kind, number| largest.max(number.abs()));
                // Numbers lie below 2^exponent. Of subnormal ones the exponent is no smaller than of others.
                let exponent = match (largest.to_bits() >> $mantissa_bits) as i32 {
                    _ if largest == 0.0 => -$bias,
                    0 => 1 - $bias,
                    field => field - ($bias - 1),
                };
                let mut integers = [0; LARGEST];
                if is_finite {
                    // In two steps, as a single factor may overflow; the library's does for the smallest numbers, and codes something else.
                    let shift = FRACTION_BITS - exponent;
                    let (first, second) = (power_of_two(shift / 2), power_of_two(shift - shift / 2));
                    for (integer, number) in integers.iter_mut().zip(numbers) {
                        *integer = (f64::from(*number) * first * second) as $int;
                    }
                }
                if parameters.is_reversible() {
                    if numbers.iter().all(|number| number.to_bits() == 0) {
                        writer.write_bit(false);
                        writer.pad(budget.min.saturating_sub(1));
                        return Ok(());
                    }
                    let unit = power_of_two(exponent - FRACTION_BITS) as $kind;
                    let survives = |(number, integer): (&$kind, &$int)| number.to_bits() == (unit * *integer as $kind).to_bits();
                    let bits = if is_finite && largest != 0.0 && numbers.iter().zip(&integers).all(survives) {
                        writer.write(1, 2);
                        writer.write((exponent + $bias) as u64, $exponent_bits);
                        2 + $exponent_bits
                    } else {
                        for (integer, number) in integers.iter_mut().zip(numbers) {
                            *integer = sign_magnitude(number.to_bits().cast_signed());
                        }
                        writer.write(3, 2);
                        2
                    };
                    encode_integers(&mut integers, dimensions, true, parameters.max_precision, budget.less(bits), writer);
                    return Ok(());
                }
                if !is_finite {
                    return Err(CodecError::parameter(super::NAME, "NaN and infinity need the mode \"reversible\""));
                }
                let precision = precision(exponent, parameters, dimensions);
                if precision == 0 || largest == 0.0 {
                    writer.write_bit(false);
                    writer.pad(budget.min.saturating_sub(1));
                    return Ok(());
                }
                writer.write((exponent + $bias) as u64 * 2 + 1, 1 + $exponent_bits);
                encode_integers(&mut integers, dimensions, false, precision, budget.less(1 + $exponent_bits), writer);
                return Ok(());

                /// Negative numbers count down from -1, so that neighbours are near.
                fn sign_magnitude(bits: $int) -> $int {
                    if bits < 0 { bits ^ <$int>::MAX } else { bits }
                }
            }

            fn decode(
                block: &mut [Self; LARGEST],
                dimensions: usize,
                parameters: &Parameters,
                reader: &mut Reader<'_>,
            ) -> Result<(), CodecError> {
                const FRACTION_BITS: i32 = <$int>::BITS as i32 - 2;
                let size = 1usize << (2 * dimensions);
                let budget = Budget::of(parameters);
                if !reader.read_bit()? {
                    reader.skip(budget.min.saturating_sub(1));
                    block[..size].fill(0.0);
                    return Ok(());
                }
                let is_reversible = parameters.is_reversible();
                let mut integers = [0; LARGEST];
                if is_reversible && reader.read_bit()? {
                    decode_integers::<$int>(&mut integers, dimensions, true, parameters.max_precision, budget.less(2), reader)?;
                    for (number, integer) in block[..size].iter_mut().zip(&integers) {
                        let bits = if *integer < 0 { *integer ^ <$int>::MAX } else { *integer };
                        *number = <$kind>::from_bits(bits.cast_unsigned());
                    }
                    return Ok(());
                }
                let exponent = reader.read($exponent_bits)? as i32 - $bias;
                let (precision, bits) = if is_reversible {
                    (parameters.max_precision, 2 + $exponent_bits)
                } else {
                    (precision(exponent, parameters, dimensions), 1 + $exponent_bits)
                };
                decode_integers::<$int>(&mut integers, dimensions, is_reversible, precision, budget.less(bits), reader)?;
                let unit = power_of_two(exponent - FRACTION_BITS) as $kind;
                for (number, integer) in block[..size].iter_mut().zip(&integers) {
                    *number = unit * *integer as $kind;
                }
                Ok(())
            }
        }
    };
}
float_scalar!(f32, i32, 8, 127, 23);
float_scalar!(f64, i64, 11, 1023, 52);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn lines() -> impl Strategy<Value = [i64; 4]> {
        prop::array::uniform4(-(1i64 << 58)..1 << 58)
    }

    proptest! {
        #[test]
        fn the_transform_loses_little(line in lines()) {
            let back = backward(forward(line));
            prop_assert!(line.iter().zip(back).all(|(a, b)| (a - b).abs() <= 4), "{line:?} {back:?}");
        }

        #[test]
        fn the_reversible_transform_loses_nothing(line in prop::array::uniform4(any::<i32>())) {
            prop_assert_eq!(backward_reversible(forward_reversible(line)), line);
        }

        #[test]
        fn negabinary_comes_back(value in any::<i32>(), wide in any::<i64>()) {
            prop_assert_eq!(i32::from_negabinary(value.to_negabinary()), value);
            prop_assert_eq!(i64::from_negabinary(wide.to_negabinary()), wide);
        }

        #[test]
        fn planes_come_back_as_far_as_the_budget_goes(values in prop::collection::vec(any::<u32>(), 64), precision in 1u32..=32, budget in 0u32..3000) {
            let coefficients: Vec<u64> = values.iter().enumerate().map(|(i, v)| u64::from(v >> (i / 2))).collect();
            let mut bytes = Vec::new();
            let mut writer = Writer::new(&mut bytes);
            let written = encode_planes(&coefficients, 32, precision, budget, &mut writer);
            writer.finish();
            let mut back = vec![0; 64];
            let mut reader = Reader::new(&bytes);
            prop_assert_eq!(decode_planes(&mut back, 32, precision, budget, &mut reader).unwrap(), written);
            if written < budget {
                let kept = u64::MAX << (32 - precision);
                prop_assert!(coefficients.iter().zip(&back).all(|(a, b)| a & kept == *b));
            }
        }
    }

    #[test]
    fn small_numbers_are_small_in_base_minus_two() {
        assert_eq!([0, 1, -1, 2, -2].map(|v: i32| v.to_negabinary()), [0, 1, 3, 6, 2]);
    }
}

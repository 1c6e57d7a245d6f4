//! Numbers between their bytes and values that can be computed with: integers as `i64`, floating point numbers as `f64`, both exactly.
//!
//! The codecs that change values work on blocks of [`BLOCK`] numbers on the stack. Every number type converts into one of two forms and
//! back, so that the conversions are as many as the types, not as their pairs. Unsigned 64-bit integers keep their bits in an `i64`.

mod float;
mod numpy;

pub(crate) use float::Format;
use numpy::store_float_as_int;
pub(crate) use numpy::{Numpy, cast, int_to_float, load};
use zarr_meta::DataType;

/// Numbers that are converted at a time.
pub(crate) const BLOCK: usize = 512;

/// The type of one real number in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Number {
    /// One byte, 0 or 1.
    Bool,
    /// Two's complement; narrower than a byte they take a whole one.
    Int { bits: u32, signed: bool },
    /// Floating point; narrower than a byte they take a whole one.
    Float(Format),
}

/// How a value between two representable ones is rounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Rounding {
    #[default]
    NearestEven,
    TowardsZero,
    TowardsPositive,
    TowardsNegative,
    NearestAway,
}

impl Rounding {
    #[cfg(test)]
    pub(crate) const ALL: [Self; 5] =
        [Self::NearestEven, Self::TowardsZero, Self::TowardsPositive, Self::TowardsNegative, Self::NearestAway];

    /// Rounds to a whole number.
    pub(crate) fn to_whole(self, value: f64) -> f64 {
        match self {
            Self::NearestEven => value.round_ties_even(),
            Self::TowardsZero => value.trunc(),
            Self::TowardsPositive => value.ceil(),
            Self::TowardsNegative => value.floor(),
            Self::NearestAway => value.round(),
        }
    }
}

impl Number {
    pub(crate) const I64: Self = Self::Int { bits: 64, signed: true };

    /// The type of the numbers of a data type; `None` for those that are no real numbers. Times are none here.
    pub(crate) fn of(data_type: &DataType) -> Option<Self> {
        let format = match data_type {
            DataType::Bool => return Some(Self::Bool),
            DataType::Float4E2M1FN => Format::F4_E2M1FN,
            DataType::Float6E2M3FN => Format::F6_E2M3FN,
            DataType::Float6E3M2FN => Format::F6_E3M2FN,
            DataType::Float8E3M4 => Format::F8_E3M4,
            DataType::Float8E4M3 => Format::F8_E4M3,
            DataType::Float8E4M3FN => Format::F8_E4M3FN,
            DataType::Float8E4M3B11FNUZ => Format::F8_E4M3B11FNUZ,
            DataType::Float8E4M3FNUZ => Format::F8_E4M3FNUZ,
            DataType::Float8E5M2 => Format::F8_E5M2,
            DataType::Float8E5M2FNUZ => Format::F8_E5M2FNUZ,
            DataType::Float8E8M0FNU => Format::F8_E8M0FNU,
            DataType::BFloat16 => Format::BF16,
            DataType::Float16 => Format::F16,
            DataType::Float32 => Format::F32,
            DataType::Float64 => Format::F64,
            other => {
                let signed = other.is_signed_integer();
                if !signed && !other.is_unsigned_integer() {
                    return None;
                }
                return other.bit_width().map(|bits| Self::Int { bits, signed });
            }
        };
        Some(Self::Float(format))
    }

    /// Bytes of one number in memory.
    pub(crate) const fn size(self) -> usize {
        match self {
            Self::Bool => 1,
            Self::Int { bits, .. } => bits.div_ceil(8) as usize,
            Self::Float(format) => format.size(),
        }
    }

    /// The least and the largest value, for integers.
    #[expect(clippy::arithmetic_side_effects, reason = "integers of at most 64 bits, computed with 128")]
    pub(crate) const fn range(self) -> Option<(i128, i128)> {
        match self {
            Self::Bool => Some((0, 1)),
            Self::Int { bits, signed: true } => Some((-(1 << (bits - 1)), (1 << (bits - 1)) - 1)),
            Self::Int { bits, signed: false } => Some((0, (1 << bits) - 1)),
            Self::Float(_) => None,
        }
    }

    /// Whether integers keep bits in an `i64` that mean another value.
    pub(crate) const fn is_u64(self) -> bool {
        matches!(self, Self::Int { bits: 64, signed: false })
    }

    /// The value of an integer in the form of [`load_ints`].
    pub(crate) fn exact(self, value: i64) -> i128 {
        if self.is_u64() { i128::from(value.cast_unsigned()) } else { i128::from(value) }
    }

    /// An integer, in the form of [`load_ints`], after the arithmetic of this type: what does not fit wraps around.
    #[expect(clippy::arithmetic_side_effects, reason = "widths of 2 to 64 bits")]
    pub(crate) const fn wrap(self, value: i64) -> i64 {
        match self {
            Self::Bool => (value != 0) as i64,
            Self::Int { bits, signed: true } => value << (64 - bits) >> (64 - bits),
            Self::Int { bits, signed: false } => (value.cast_unsigned() << (64 - bits) >> (64 - bits)).cast_signed(),
            Self::Float(_) => value,
        }
    }
}

/// Converts each `$size` bytes with `$convert` into an element of `$out`.
macro_rules! load {
    ($bytes:expr, $out:expr, $kind:ty, $convert:expr) => {
        for (bytes, out) in $bytes.as_chunks().0.iter().zip($out.iter_mut()) {
            *out = $convert(<$kind>::from_ne_bytes(*bytes));
        }
    };
}

/// The reverse of `load`.
macro_rules! store {
    ($values:expr, $bytes:expr, $convert:expr) => {
        for (value, bytes) in $values.iter().zip($bytes.as_chunks_mut().0.iter_mut()) {
            *bytes = $convert(*value).to_ne_bytes();
        }
    };
}

/// Integers and booleans from their bytes. Bits above a narrow integer are ignored; a boolean is true if its byte is not zero.
pub(crate) fn load_ints(number: Number, bytes: &[u8], out: &mut [i64]) {
    match number {
        Number::Bool => load!(bytes, out, u8, |v| i64::from(v != 0)),
        Number::Int { bits: 8, signed: true } => load!(bytes, out, i8, i64::from),
        Number::Int { bits: 8, signed: false } => load!(bytes, out, u8, i64::from),
        Number::Int { bits: 16, signed: true } => load!(bytes, out, i16, i64::from),
        Number::Int { bits: 16, signed: false } => load!(bytes, out, u16, i64::from),
        Number::Int { bits: 32, signed: true } => load!(bytes, out, i32, i64::from),
        Number::Int { bits: 32, signed: false } => load!(bytes, out, u32, i64::from),
        Number::Int { bits: 64, .. } => load!(bytes, out, i64, |v| v),
        narrow @ Number::Int { .. } => load!(bytes, out, u8, |v| narrow.wrap(i64::from(v))),
        Number::Float(_) => {}
    }
}

/// Integers to their bytes; those that do not fit lose their upper bits. Booleans: whether not zero.
#[expect(clippy::cast_possible_truncation, reason = "losing the upper bits is what this does")]
pub(crate) fn store_ints(number: Number, values: &[i64], bytes: &mut [u8]) {
    match number {
        Number::Bool => store!(values, bytes, |v| u8::from(v != 0)),
        Number::Int { bits: 8, .. } => store!(values, bytes, |v| v as u8),
        Number::Int { bits: 16, .. } => store!(values, bytes, |v| v as u16),
        Number::Int { bits: 32, .. } => store!(values, bytes, |v| v as u32),
        Number::Int { bits: 64, .. } => store!(values, bytes, |v: i64| v),
        narrow @ Number::Int { .. } => store!(values, bytes, |v| narrow.wrap(v) as u8),
        Number::Float(_) => {}
    }
}

/// Floating point numbers from their bytes, exactly.
pub(crate) fn load_floats(format: Format, bytes: &[u8], out: &mut [f64]) {
    match format {
        Format::F64 => load!(bytes, out, f64, |v| v),
        Format::F32 => load!(bytes, out, f32, f64::from),
        _ if format.size() == 2 => load!(bytes, out, u16, |v| format.value(u64::from(v))),
        _ => load!(bytes, out, u8, |v| format.value(u64::from(v))),
    }
}

/// Floating point numbers to their bytes, to the nearest, ties to even; those too large become infinite, or the largest where there is
/// no infinity.
#[expect(clippy::cast_possible_truncation, reason = "rounding is what this does")]
pub(crate) fn store_floats(format: Format, values: &[f64], bytes: &mut [u8]) {
    let round = |value| match format.round(value, Rounding::NearestEven) {
        Ok(bits) => bits,
        Err(out_of_range) => format.clamped(out_of_range),
    };
    match format {
        Format::F64 => store!(values, bytes, |v: f64| v),
        Format::F32 => store!(values, bytes, |v| v as f32),
        _ if format.size() == 2 => store!(values, bytes, |v| round(v) as u16),
        _ => store!(values, bytes, |v| round(v) as u8),
    }
}

/// [`store_floats`], or [`store_float_as_int`] for integers.
pub(crate) fn store_values(to: Number, values: &[f64], bytes: &mut [u8]) {
    match to {
        Number::Float(format) => store_floats(format, values, bytes),
        integer => store_float_as_int(integer, values, bytes),
    }
}

/// [`store_ints`] of values of the type `from`, rounded for floating point numbers.
pub(crate) fn store_int_values(from: Number, values: &[i64], to: Number, bytes: &mut [u8]) {
    match to {
        Number::Float(format) => {
            let mut floats = [0.0; BLOCK];
            int_to_float(from, values, format, &mut floats);
            store_floats(format, &floats, bytes);
        }
        integer => store_ints(integer, values, bytes),
    }
}

/// The low `bytes.len()` bytes of `bits`.
pub(crate) fn store_bits(bits: u64, bytes: &mut [u8]) {
    let all = bits.to_le_bytes();
    bytes.iter_mut().zip(all).for_each(|(to, from)| *to = from);
    if cfg!(target_endian = "big") {
        bytes.reverse();
    }
}

/// Calls `convert` with blocks of at most [`BLOCK`] elements of both sides, which hold equally many elements.
pub(crate) fn blocks<E>(
    from: (&[u8], usize),
    to: (&mut [u8], usize),
    mut convert: impl FnMut(&[u8], &mut [u8]) -> Result<(), E>,
) -> Result<(), E> {
    let size = |size: usize| size.max(1).saturating_mul(BLOCK);
    from.0.chunks(size(from.1)).zip(to.0.chunks_mut(size(to.1))).try_for_each(|(from, to)| convert(from, to))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_come_back_from_both_forms() {
        for bits in [2, 4, 8, 16, 32, 64] {
            for signed in [false, true] {
                let number = Number::Int { bits, signed };
                let (least, most) = number.range().unwrap();
                for value in [least, most, 0, 1] {
                    let mut bytes = vec![0; number.size()];
                    store_ints(number, &[value as i64], &mut bytes);
                    let mut out = [9];
                    load_ints(number, &bytes, &mut out);
                    assert_eq!(number.exact(out[0]), value, "{number:?}");
                    assert_eq!(number.exact(number.wrap(value as i64)), value);
                }
            }
        }
    }

    #[test]
    fn narrow_integers_ignore_the_upper_bits() {
        let mut out = [0; 2];
        load_ints(Number::Int { bits: 4, signed: true }, &[0x3f, 0x17], &mut out);
        assert_eq!(out, [-1, 7]);
        let mut bytes = [0; 2];
        store_ints(Number::Int { bits: 2, signed: true }, &[-1, 5], &mut bytes);
        assert_eq!(bytes, [0xff, 1]);
    }

    #[test]
    fn every_plain_number_type_is_known() {
        for data_type in DataType::plain() {
            let real = data_type.bit_width().is_some() && data_type.components() == 1;
            let number = Number::of(&data_type);
            assert_eq!(number.is_some(), real, "{data_type}");
            if let Some(number) = number {
                assert_eq!(Some(number.size()), data_type.fixed_size(), "{data_type}");
            }
        }
    }
}

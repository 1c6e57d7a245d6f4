//! Floating point numbers of any width between JSON and their bits.

use crate::{DataType, Json, MetadataError, Number};

/// How a floating point type uses its bit patterns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Special {
    /// Infinities and NaN under the largest exponent, as in IEEE 754.
    Ieee,
    /// All ones below the sign is NaN; no infinities.
    NanAtAllOnes,
    /// Neither infinities nor NaN.
    Finite,
    /// One NaN where negative zero would be; no infinities.
    NanAtNegativeZero,
    /// No sign and no mantissa: powers of two; all ones is NaN.
    ExponentOnly,
}

/// The layout of a floating point type of at most 64 bits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Format {
    exponent_bits: u32,
    mantissa_bits: u32,
    bias: i32,
    special: Special,
}

impl Format {
    pub(crate) fn of(data_type: &DataType) -> Option<Self> {
        use Special::{ExponentOnly, Finite, Ieee, NanAtAllOnes, NanAtNegativeZero};
        let (exponent_bits, mantissa_bits, bias, special) = match data_type {
            DataType::Float4E2M1FN => (2, 1, 1, Finite),
            DataType::Float6E2M3FN => (2, 3, 1, Finite),
            DataType::Float6E3M2FN => (3, 2, 3, Finite),
            DataType::Float8E3M4 => (3, 4, 3, Ieee),
            DataType::Float8E4M3 => (4, 3, 7, Ieee),
            DataType::Float8E4M3FN => (4, 3, 7, NanAtAllOnes),
            DataType::Float8E4M3B11FNUZ => (4, 3, 11, NanAtNegativeZero),
            DataType::Float8E4M3FNUZ => (4, 3, 8, NanAtNegativeZero),
            DataType::Float8E5M2 => (5, 2, 15, Ieee),
            DataType::Float8E5M2FNUZ => (5, 2, 16, NanAtNegativeZero),
            DataType::Float8E8M0FNU => (8, 0, 127, ExponentOnly),
            DataType::BFloat16 => (8, 7, 127, Ieee),
            DataType::Float16 => (5, 10, 15, Ieee),
            DataType::Float32 => (8, 23, 127, Ieee),
            DataType::Float64 => (11, 52, 1023, Ieee),
            _ => return None,
        };
        Some(Self { exponent_bits, mantissa_bits, bias, special })
    }

    fn width(self) -> u32 {
        let sign = u32::from(self.special != Special::ExponentOnly);
        sign + self.exponent_bits + self.mantissa_bits
    }

    /// The bytes that one number takes in memory.
    pub(crate) fn bytes(self) -> usize {
        self.width().div_ceil(8) as usize
    }

    fn sign_bit(self) -> u64 {
        match self.special {
            Special::ExponentOnly => 0,
            _ => 1 << (self.exponent_bits + self.mantissa_bits),
        }
    }

    fn exponent_mask(self) -> u64 {
        ((1 << self.exponent_bits) - 1) << self.mantissa_bits
    }

    fn mantissa_mask(self) -> u64 {
        (1 << self.mantissa_bits) - 1
    }

    fn infinity(self) -> Option<u64> {
        (self.special == Special::Ieee).then(|| self.exponent_mask())
    }

    /// The NaN that `"NaN"` stands for.
    fn nan(self) -> Option<u64> {
        match self.special {
            Special::Ieee => Some(self.exponent_mask() | 1 << (self.mantissa_bits - 1)),
            Special::NanAtAllOnes => Some(self.exponent_mask() | self.mantissa_mask()),
            Special::Finite => None,
            Special::NanAtNegativeZero => Some(self.sign_bit()),
            Special::ExponentOnly => Some(self.exponent_mask()),
        }
    }

    fn is_nan(self, bits: u64) -> bool {
        match self.special {
            Special::Ieee => bits & !self.sign_bit() > self.exponent_mask(),
            Special::NanAtAllOnes => self.nan() == Some(bits & !self.sign_bit()),
            _ => self.nan() == Some(bits),
        }
    }

    /// The largest finite number.
    fn largest(self) -> u64 {
        match self.special {
            Special::Ieee => self.exponent_mask() - 1,
            Special::Finite | Special::NanAtNegativeZero => self.exponent_mask() | self.mantissa_mask(),
            Special::NanAtAllOnes => (self.exponent_mask() | self.mantissa_mask()) - 1,
            Special::ExponentOnly => self.exponent_mask() - 1,
        }
    }

    /// The value of a bit pattern that is neither NaN nor infinite. Exact.
    fn decode(self, bits: u64) -> f64 {
        if self.exponent_bits == 11 {
            return f64::from_bits(bits);
        }
        let exponent = i32::try_from((bits & self.exponent_mask()) >> self.mantissa_bits).unwrap_or(0);
        let fraction = bits & self.mantissa_mask();
        let subnormal = exponent == 0 && self.special != Special::ExponentOnly;
        let significand = if subnormal { fraction } else { fraction | 1 << self.mantissa_bits };
        let scale =
            exponent.max(i32::from(self.special != Special::ExponentOnly)) - self.bias - i32::try_from(self.mantissa_bits).unwrap_or(0);
        // At most 24 bits times a power of two within the range of f64: exact.
        let magnitude = significand as f64 * power_of_two(scale);
        if bits & self.sign_bit() == 0 { magnitude } else { -magnitude }
    }

    /// The bits of the number nearest to a finite `value`, ties to even. Beyond the largest finite
    /// number: infinity where the type has one, else `None`.
    fn encode(self, value: f64) -> Option<u64> {
        if self.exponent_bits == 11 {
            return Some(value.to_bits());
        }
        let sign = if value.is_sign_negative() { self.sign_bit() } else { 0 };
        if value == 0.0 {
            return match self.special {
                // TensorStore writes the least value, which has all bits clear, as 0.0.
                Special::ExponentOnly | Special::NanAtNegativeZero => Some(0),
                _ => Some(sign),
            };
        }
        if self.special == Special::ExponentOnly && value < 0.0 {
            return None;
        }
        let (significand, exponent) = split(value);
        // The exponent of the unit in the last place of the result: that of the value's own
        // leading bit, but no less than that of the subnormal numbers.
        let mantissa_bits = i32::try_from(self.mantissa_bits).unwrap_or(0);
        let leading = exponent + 63 - i32::try_from(significand.leading_zeros()).unwrap_or(0);
        let least = i32::from(self.special != Special::ExponentOnly) - self.bias;
        let unit = leading.max(least) - mantissa_bits;
        let rounded = shift_right_to_even(significand, unit - exponent);
        // With the implicit bit in `rounded`, adding it to the exponent field carries by itself.
        let field = u64::try_from(leading.max(least) - least).unwrap_or(0);
        let magnitude = match self.special {
            Special::ExponentOnly if rounded == 0 => 0,
            Special::ExponentOnly => field + rounded - 1,
            _ => (field << self.mantissa_bits) + rounded,
        };
        if magnitude > self.largest() {
            return self.infinity().map(|infinity| sign | infinity);
        }
        // Negative numbers that round to zero must not turn into the NaN of these types.
        let sign = if magnitude == 0 && self.special == Special::NanAtNegativeZero { 0 } else { sign };
        Some(sign | magnitude)
    }

    /// Reads a fill value: a number, `"NaN"`, `"Infinity"`, `"-Infinity"`, or `"0x.."`.
    pub(crate) fn parse(self, value: &Json) -> Result<u64, MetadataError> {
        let expected = || {
            MetadataError::unexpected(
                format!(
                    "a number{}{}, or \"0x\" and {} hexadecimal digits",
                    if self.nan().is_some() { ", \"NaN\"" } else { "" },
                    if self.infinity().is_some() { ", \"Infinity\", \"-Infinity\"" } else { "" },
                    self.bytes() * 2
                ),
                value,
            )
        };
        let bits = match value {
            Json::Number(number) if number.is_finite() => self.parse_finite(number),
            Json::Number(number) => self.parse_name(number.as_str()),
            Json::String(text) => match text.strip_prefix("0x") {
                Some(digits) => self.parse_hexadecimal(digits),
                None => self.parse_name(text),
            },
            _ => None,
        };
        bits.ok_or_else(expected)
    }

    fn parse_finite(self, number: &Number) -> Option<u64> {
        if self.exponent_bits == 8 && self.mantissa_bits == 23 {
            // Through f64 a literal could be rounded twice.
            let value: f32 = number.as_str().parse().ok()?;
            return Some(u64::from(value.to_bits()));
        }
        let value = number.as_f64();
        if value.is_infinite() {
            let sign = if value < 0.0 { self.sign_bit() } else { 0 };
            return self.infinity().map(|infinity| sign | infinity);
        }
        self.encode(value)
    }

    fn parse_name(self, name: &str) -> Option<u64> {
        match name {
            Number::NAN => self.nan(),
            Number::INFINITY => self.infinity(),
            Number::NEG_INFINITY => self.infinity().map(|infinity| infinity | self.sign_bit()),
            _ => None,
        }
    }

    fn parse_hexadecimal(self, digits: &str) -> Option<u64> {
        let all_digits = digits.bytes().all(|b| b.is_ascii_hexdigit());
        if digits.len() != self.bytes() * 2 || !all_digits {
            return None;
        }
        let bits = u64::from_str_radix(digits, 16).ok()?;
        let fits = self.width() == 64 || bits >> self.width() == 0;
        fits.then_some(bits)
    }

    /// The JSON form of a bit pattern, which [`parse`](Self::parse) reads back to the same bits.
    pub(crate) fn to_json(self, bits: u64) -> Json {
        let outside = self.width() < 64 && bits >> self.width() != 0;
        if outside || (self.is_nan(bits) && self.nan() != Some(bits)) {
            return format!("0x{bits:0digits$x}", digits = self.bytes() * 2).into();
        }
        if self.is_nan(bits) {
            return Number::NAN.into();
        }
        match self.infinity() {
            Some(infinity) if bits == infinity => Number::INFINITY.into(),
            Some(infinity) if bits == infinity | self.sign_bit() => Number::NEG_INFINITY.into(),
            _ => self.decode(bits).into(),
        }
    }
}

/// A finite number as a significand times a power of two.
fn split(value: f64) -> (u64, i32) {
    let bits = value.to_bits();
    let exponent = i32::try_from(bits >> 52 & 0x7ff).unwrap_or(0);
    let fraction = bits & ((1 << 52) - 1);
    if exponent == 0 { (fraction, -1074) } else { (fraction | 1 << 52, exponent - 1075) }
}

/// Two to the power of `exponent`, which must lie within the range of normal numbers, or the
/// nearest power that does.
fn power_of_two(exponent: i32) -> f64 {
    let field = u64::try_from((exponent + 1023).clamp(1, 2046)).unwrap_or(1);
    f64::from_bits(field << 52)
}

/// `value` shifted right by `by` bits (left if negative), rounded to nearest, ties to even.
fn shift_right_to_even(value: u64, by: i32) -> u64 {
    let Ok(by) = u32::try_from(by) else {
        return value.checked_shl(by.unsigned_abs()).unwrap_or(0);
    };
    if by == 0 {
        return value;
    }
    let kept = value.checked_shr(by).unwrap_or(0);
    let half = 1u64.checked_shl(by - 1).unwrap_or(0);
    if half == 0 {
        return 0;
    }
    let rest = value & (half | (half - 1));
    kept + u64::from(rest > half || (rest == half && kept & 1 == 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn formats() -> impl Iterator<Item = (DataType, Format)> {
        DataType::plain().filter_map(|t| Format::of(&t).map(|format| (t, format)))
    }

    /// Every bit pattern of the types of up to 16 bits is its own fill value again.
    #[test]
    fn every_bit_pattern_survives() {
        for (data_type, format) in formats().filter(|(_, format)| format.width() <= 16) {
            for bits in 0..1u64 << format.width() {
                let json = format.to_json(bits);
                assert_eq!(format.parse(&json), Ok(bits), "{data_type} {bits:#x} {json}");
            }
        }
    }

    #[test]
    fn float32_bits_survive() {
        let Some(format) = Format::of(&DataType::Float32) else { panic!("float32") };
        for high in 0..=u16::MAX {
            for low in [0u32, 1, 0x8000, 0xffff] {
                let bits = u64::from(u32::from(high) << 16 | low);
                let json = format.to_json(bits);
                assert_eq!(format.parse(&json), Ok(bits), "{bits:#x} {json}");
                if let Some(value) = json.as_f64() {
                    assert_eq!(format.encode(value), Some(bits), "{bits:#x} {value}");
                    assert_eq!(value, f64::from(f32::from_bits(u32::try_from(bits).unwrap_or(0))));
                }
            }
        }
    }

    /// The rounding of the narrow types against that of the compiler's own f32.
    #[test]
    fn rounding_is_to_nearest_even() {
        let Some(format) = Format::of(&DataType::Float32) else { panic!("float32") };
        let mut bits = 0x1234_5678_9abc_def1_u64;
        for _ in 0..200_000 {
            bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            // Exponents around those of f32, its subnormal numbers and its overflow included.
            let exponent = 1023 - 155 + (bits >> 32) % 290;
            let value = f64::from_bits(bits >> 63 << 63 | exponent << 52 | (bits & ((1 << 52) - 1)));
            for value in [value, f64::from_bits(value.to_bits() & !((1 << 28) - 1))] {
                let expected = u64::from((value as f32).to_bits());
                assert_eq!(format.encode(value), Some(expected), "{value:e}");
            }
        }
    }

    #[test]
    fn values_of_the_registry() {
        let parse = |data_type: &DataType, text: &str| {
            let value = Json::parse(text.as_bytes()).unwrap_or_default();
            Format::of(data_type).and_then(|format| format.parse(&value).ok())
        };
        for (data_type, text, bits) in [
            (DataType::Float16, "\"NaN\"", Some(0x7e00)),
            (DataType::Float16, "NaN", Some(0x7e00)),
            (DataType::Float16, "\"-Infinity\"", Some(0xfc00)),
            (DataType::Float16, "65519.99", Some(0x7bff)),
            (DataType::Float16, "65520", Some(0x7c00)),
            (DataType::Float16, "-1e400", Some(0xfc00)),
            (DataType::Float16, "5.960464477539063e-08", Some(1)),
            (DataType::Float16, "2.9e-8", Some(0)),
            (DataType::BFloat16, "\"NaN\"", Some(0x7fc0)),
            (DataType::Float32, "\"NaN\"", Some(0x7fc0_0000)),
            (DataType::Float32, "\"0x7f800001\"", Some(0x7f80_0001)),
            (DataType::Float32, "\"0x7f8001\"", None),
            (DataType::Float64, "\"NaN\"", Some(0x7ff8_0000_0000_0000)),
            (DataType::Float64, "-0.0", Some(1 << 63)),
            (DataType::Float8E4M3, "\"NaN\"", Some(0x7c)),
            (DataType::Float8E4M3FN, "\"NaN\"", Some(0x7f)),
            (DataType::Float8E4M3FN, "448", Some(0x7e)),
            (DataType::Float8E4M3FN, "500", None),
            (DataType::Float8E4M3FN, "\"0xff\"", Some(0xff)),
            (DataType::Float8E4M3FNUZ, "\"NaN\"", Some(0x80)),
            (DataType::Float8E4M3FNUZ, "-0.0", Some(0)),
            (DataType::Float8E4M3FNUZ, "-1e-30", Some(0)),
            (DataType::Float8E4M3FNUZ, "240", Some(0x7f)),
            (DataType::Float8E4M3FNUZ, "\"Infinity\"", None),
            (DataType::Float8E4M3FNUZ, "300", None),
            (DataType::Float8E5M2, "57344", Some(0x7b)),
            (DataType::Float8E5M2, "\"Infinity\"", Some(0x7c)),
            (DataType::Float8E3M4, "15.5", Some(0x6f)),
            (DataType::Float8E8M0FNU, "\"NaN\"", Some(0xff)),
            (DataType::Float8E8M0FNU, "1", Some(127)),
            (DataType::Float8E8M0FNU, "3", Some(129)),
            (DataType::Float8E8M0FNU, "2.9", Some(128)),
            (DataType::Float8E8M0FNU, "0", Some(0)),
            (DataType::Float8E8M0FNU, "-1", None),
            (DataType::Float4E2M1FN, "6", Some(7)),
            (DataType::Float4E2M1FN, "-0.5", Some(9)),
            (DataType::Float4E2M1FN, "\"0x0f\"", Some(15)),
            (DataType::Float4E2M1FN, "\"0x1f\"", None),
            (DataType::Float4E2M1FN, "\"NaN\"", None),
            (DataType::Float6E3M2FN, "28", Some(0x1f)),
            (DataType::Float6E2M3FN, "7.5", Some(0x1f)),
        ] {
            assert_eq!(parse(&data_type, text), bits, "{data_type} {text}");
        }
    }
}

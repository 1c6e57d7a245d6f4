//! Binary floating point formats of up to 64 bits: exact values of their bits, and bits of exact values under any rounding.
#![expect(
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    reason = "widths, exponents and shifts are bounded by the formats below, all of at most 64 bits"
)]

use super::Rounding;

/// How a format uses its extreme bit patterns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Special {
    /// The largest exponent holds infinities and NaN, as in IEEE 754.
    Ieee,
    /// Neither infinities nor NaN.
    Finite,
    /// NaN where exponent and mantissa are all ones; no infinities.
    NanAtAllOnes,
    /// One NaN where negative zero would be; no infinities.
    NanAtNegativeZero,
    /// No sign, no mantissa, no zero: powers of two; all ones is NaN.
    ExponentOnly,
}

/// A floating point format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Format {
    exponent_bits: u32,
    mantissa_bits: u32,
    bias: i32,
    special: Special,
}

/// A value beyond what a format can hold, after rounding to its precision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OutOfRange {
    /// Below the least value rather than above the largest one.
    pub(crate) below: bool,
}

impl Format {
    pub(crate) const F4_E2M1FN: Self = Self::new(2, 1, 1, Special::Finite);
    pub(crate) const F6_E2M3FN: Self = Self::new(2, 3, 1, Special::Finite);
    pub(crate) const F6_E3M2FN: Self = Self::new(3, 2, 3, Special::Finite);
    pub(crate) const F8_E3M4: Self = Self::new(3, 4, 3, Special::Ieee);
    pub(crate) const F8_E4M3: Self = Self::new(4, 3, 7, Special::Ieee);
    pub(crate) const F8_E4M3FN: Self = Self::new(4, 3, 7, Special::NanAtAllOnes);
    pub(crate) const F8_E4M3B11FNUZ: Self = Self::new(4, 3, 11, Special::NanAtNegativeZero);
    pub(crate) const F8_E4M3FNUZ: Self = Self::new(4, 3, 8, Special::NanAtNegativeZero);
    pub(crate) const F8_E5M2: Self = Self::new(5, 2, 15, Special::Ieee);
    pub(crate) const F8_E5M2FNUZ: Self = Self::new(5, 2, 16, Special::NanAtNegativeZero);
    pub(crate) const F8_E8M0FNU: Self = Self::new(8, 0, 127, Special::ExponentOnly);
    pub(crate) const BF16: Self = Self::new(8, 7, 127, Special::Ieee);
    pub(crate) const F16: Self = Self::new(5, 10, 15, Special::Ieee);
    pub(crate) const F32: Self = Self::new(8, 23, 127, Special::Ieee);
    pub(crate) const F64: Self = Self::new(11, 52, 1023, Special::Ieee);

    const fn new(exponent_bits: u32, mantissa_bits: u32, bias: i32, special: Special) -> Self {
        Self { exponent_bits, mantissa_bits, bias, special }
    }

    /// Bits of one number.
    pub(crate) const fn width(self) -> u32 {
        let sign = !matches!(self.special, Special::ExponentOnly) as u32;
        sign + self.exponent_bits + self.mantissa_bits
    }

    /// Bytes of one number in memory.
    pub(crate) const fn size(self) -> usize {
        self.width().div_ceil(8) as usize
    }

    /// Bits of the mantissa that are stored.
    #[cfg(test)]
    pub(crate) const fn mantissa_bits(self) -> u32 {
        self.mantissa_bits
    }

    pub(crate) const fn has_infinity(self) -> bool {
        matches!(self.special, Special::Ieee)
    }

    pub(crate) const fn has_nan(self) -> bool {
        !matches!(self.special, Special::Finite)
    }

    /// Whether every value of `other`, NaN included, has the same value here.
    pub(crate) const fn holds_format(self, other: Self) -> bool {
        if matches!(other.special, Special::ExponentOnly) {
            return self.exponent_bits == 11;
        }
        let exponents = self.bias >= other.bias && (1 << self.exponent_bits) - self.bias >= (1 << other.exponent_bits) - other.bias;
        matches!(self.special, Special::Ieee) && self.mantissa_bits >= other.mantissa_bits && exponents && self.exponent_bits >= 8
    }

    const fn sign_bit(self) -> u64 {
        match self.special {
            Special::ExponentOnly => 0,
            _ => 1 << (self.exponent_bits + self.mantissa_bits),
        }
    }

    const fn exponent_mask(self) -> u64 {
        (1 << self.exponent_bits) - 1
    }

    const fn mantissa_mask(self) -> u64 {
        (1 << self.mantissa_bits) - 1
    }

    /// The bits of infinity; `None` where there is none.
    fn infinity(self) -> Option<u64> {
        self.has_infinity().then(|| self.exponent_mask() << self.mantissa_bits)
    }

    /// The bits of the usual NaN; `None` where there is none.
    pub(crate) fn nan(self) -> Option<u64> {
        match self.special {
            Special::Ieee => {
                let quiet = 1 << (self.mantissa_bits - 1);
                Some((self.exponent_mask() << self.mantissa_bits) | quiet)
            }
            Special::Finite => None,
            Special::NanAtAllOnes => Some((self.exponent_mask() << self.mantissa_bits) | self.mantissa_mask()),
            Special::NanAtNegativeZero => Some(self.sign_bit()),
            Special::ExponentOnly => Some(self.exponent_mask()),
        }
    }

    /// The bits of the largest finite value.
    fn largest(self) -> u64 {
        match self.special {
            Special::Ieee => (self.exponent_mask() << self.mantissa_bits) - 1,
            Special::NanAtAllOnes => ((self.exponent_mask() << self.mantissa_bits) | self.mantissa_mask()) - 1,
            Special::Finite | Special::NanAtNegativeZero => (self.exponent_mask() << self.mantissa_bits) | self.mantissa_mask(),
            Special::ExponentOnly => self.exponent_mask() - 1,
        }
    }

    /// The value of the low bits, exactly; any NaN is a NaN.
    pub(crate) fn value(self, bits: u64) -> f64 {
        let mantissa = bits & self.mantissa_mask();
        let exponent = (bits >> self.mantissa_bits) & self.exponent_mask();
        let negative = bits & self.sign_bit() != 0;
        let magnitude = match self.special {
            Special::Ieee if exponent == self.exponent_mask() => {
                if mantissa == 0 {
                    f64::INFINITY
                } else {
                    f64::NAN
                }
            }
            Special::NanAtAllOnes if exponent == self.exponent_mask() && mantissa == self.mantissa_mask() => f64::NAN,
            Special::NanAtNegativeZero if negative && exponent == 0 && mantissa == 0 => f64::NAN,
            Special::ExponentOnly if exponent == self.exponent_mask() => f64::NAN,
            Special::ExponentOnly => power_of_two(exponent as i32 - self.bias),
            _ if exponent == 0 => mantissa as f64 * power_of_two(1 - self.bias - self.mantissa_bits as i32),
            _ => f64::from_bits((((exponent as i32 - self.bias + 1023) as u64) << 52) | (mantissa << (52 - self.mantissa_bits))),
        };
        if negative { -magnitude } else { magnitude }
    }

    /// The bits of `value`, rounded. Infinities count as out of range where the format has none, NaN and the missing NaN too.
    pub(crate) fn round(self, value: f64, rounding: Rounding) -> Result<u64, OutOfRange> {
        if value.is_nan() {
            return self.nan().ok_or(OutOfRange { below: false });
        }
        let negative = value.is_sign_negative();
        if value.is_infinite() {
            let sign = if negative { self.sign_bit() } else { 0 };
            return self.infinity().map(|bits| bits | sign).ok_or(OutOfRange { below: negative });
        }
        let bits = value.to_bits();
        let exponent = (bits >> 52) & 0x7ff;
        let mantissa = bits & ((1 << 52) - 1);
        match exponent {
            0 => self.round_scaled(negative, u128::from(mantissa), -1074, rounding),
            _ => self.round_scaled(negative, u128::from(mantissa | (1 << 52)), exponent as i32 - 1075, rounding),
        }
    }

    /// The bits of the integer `value`, of at most 65 bits with its sign, rounded.
    pub(crate) fn round_integer(self, value: i128, rounding: Rounding) -> Result<u64, OutOfRange> {
        self.round_scaled(value < 0, value.unsigned_abs(), 0, rounding)
    }

    /// The bits of `significand * 2^exponent`, where the significand has at most 65 bits.
    fn round_scaled(self, negative: bool, significand: u128, exponent: i32, rounding: Rounding) -> Result<u64, OutOfRange> {
        if self.special == Special::ExponentOnly && (negative || significand == 0) {
            return Err(OutOfRange { below: true });
        }
        let sign = if negative { self.sign_bit() } else { 0 };
        let zero = if self.special == Special::NanAtNegativeZero { 0 } else { sign };
        if significand == 0 {
            return Ok(zero);
        }
        let top = 127 - significand.leading_zeros() as i32 + exponent;
        let least_normal = 1 - self.bias;
        let mantissa_bits = self.mantissa_bits as i32;
        // The weight of the last bit that is kept: below the normal numbers it no longer falls.
        let last = match self.special {
            Special::ExponentOnly => top,
            _ => top.max(least_normal) - mantissa_bits,
        };
        let kept = shift_rounded(significand, last - exponent, negative, rounding);
        if kept == 0 {
            return Ok(zero);
        }
        // Rounding up may have carried into a further bit.
        let carried = kept >> (mantissa_bits + 1) != 0;
        let (kept, last) = if carried { (kept >> 1, last + 1) } else { (kept, last) };
        let is_normal = kept >> mantissa_bits != 0;
        let exponent_field = if self.special == Special::ExponentOnly {
            last + self.bias
        } else if is_normal {
            last + mantissa_bits + self.bias
        } else {
            0
        };
        if exponent_field < 0 {
            return Err(OutOfRange { below: true });
        }
        let bits = ((exponent_field as u64) << self.mantissa_bits) | (kept as u64 & self.mantissa_mask());
        if exponent_field as u64 > self.exponent_mask() || bits > self.largest() {
            return Err(OutOfRange { below: negative });
        }
        Ok(bits | sign)
    }

    /// What a value out of range becomes when it is clamped: an infinity where the format has one, else the nearest finite value.
    pub(crate) fn clamped(self, out_of_range: OutOfRange) -> u64 {
        let magnitude = self.infinity().unwrap_or(self.largest());
        match (out_of_range.below, self.special) {
            (false, _) => magnitude,
            (true, Special::ExponentOnly) => 0,
            (true, _) => magnitude | self.sign_bit(),
        }
    }

    /// The nearest value of the format, ties to even, infinite where it overflows; what arithmetic in the format itself gives.
    pub(crate) fn nearest(self, value: f64) -> f64 {
        match self {
            Self::F64 => value,
            Self::F32 => f64::from(value as f32),
            _ => match self.round(value, Rounding::NearestEven) {
                Ok(bits) => self.value(bits),
                Err(out_of_range) if out_of_range.below => f64::NEG_INFINITY,
                Err(_) => f64::INFINITY,
            },
        }
    }
}

/// `2^exponent` for an exponent of a normal or subnormal `f64`.
fn power_of_two(exponent: i32) -> f64 {
    if exponent >= -1022 { f64::from_bits(((exponent + 1023) as u64) << 52) } else { f64::from_bits(1 << (exponent + 1074)) }
}

/// `significand / 2^shift`, rounded to an integer. The significand has at most 65 bits; so has the result, which callers keep small.
fn shift_rounded(significand: u128, shift: i32, negative: bool, rounding: Rounding) -> u128 {
    if shift <= 0 {
        return significand << shift.unsigned_abs();
    }
    // From here on what is cut off is less than half of the last bit.
    let (whole, rest, half) =
        if shift > 66 { (0, 1, 2) } else { (significand >> shift, significand & ((1 << shift) - 1), 1u128 << (shift - 1)) };
    let up = match rounding {
        Rounding::NearestEven => rest > half || (rest == half && whole & 1 == 1),
        Rounding::NearestAway => rest >= half,
        Rounding::TowardsZero => false,
        Rounding::TowardsPositive => rest != 0 && !negative,
        Rounding::TowardsNegative => rest != 0 && negative,
    };
    whole + u128::from(up)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ALL: [Format; 15] = [
        Format::F4_E2M1FN,
        Format::F6_E2M3FN,
        Format::F6_E3M2FN,
        Format::F8_E3M4,
        Format::F8_E4M3,
        Format::F8_E4M3FN,
        Format::F8_E4M3B11FNUZ,
        Format::F8_E4M3FNUZ,
        Format::F8_E5M2,
        Format::F8_E5M2FNUZ,
        Format::F8_E8M0FNU,
        Format::BF16,
        Format::F16,
        Format::F32,
        Format::F64,
    ];

    #[test]
    fn every_value_of_a_small_format_rounds_to_itself() {
        for format in ALL.iter().filter(|format| format.width() <= 16) {
            for bits in 0..1u64 << format.width() {
                let value = format.value(bits);
                for rounding in Rounding::ALL {
                    let back = format.round(value, rounding);
                    if value.is_nan() {
                        assert_eq!(back.ok(), format.nan(), "{format:?}");
                    } else {
                        assert_eq!(back, Ok(bits), "{format:?} {bits:#x} {value}");
                    }
                }
            }
        }
    }

    /// The neighbours are found by walking through all values: no arithmetic of the code under test.
    #[test]
    fn rounding_picks_the_right_neighbour() {
        for format in ALL.iter().filter(|format| format.width() <= 8) {
            let mut values: Vec<f64> = (0..1u64 << format.width()).map(|bits| format.value(bits)).filter(|v| v.is_finite()).collect();
            values.sort_by(f64::total_cmp);
            for pair in values.windows(2) {
                let (low, high) = (pair[0], pair[1]);
                let middle = low / 2.0 + high / 2.0;
                let quarter = low / 2.0 + middle / 2.0;
                let get = |value, rounding| format.value(format.round(value, rounding).unwrap());
                if low == high {
                    continue;
                }
                assert_eq!(get(quarter, Rounding::NearestEven), low, "{format:?}");
                assert_eq!(get(quarter, Rounding::TowardsPositive), high, "{format:?}");
                assert_eq!(get(quarter, Rounding::TowardsNegative), low, "{format:?}");
                let to_zero = if low < 0.0 { high } else { low };
                let away = if low < 0.0 { low } else { high };
                assert_eq!(get(quarter, Rounding::TowardsZero), to_zero, "{format:?}");
                assert_eq!(get(middle, Rounding::NearestAway), away, "{format:?}");
            }
            assert_eq!(format.value(format.largest()), *values.last().unwrap(), "{format:?}");
        }
    }

    #[test]
    fn out_of_range_is_told_apart() {
        assert_eq!(Format::F16.round(65519.9, Rounding::NearestEven), Ok(0x7bff));
        assert_eq!(Format::F16.round(65520.0, Rounding::NearestEven), Err(OutOfRange { below: false }));
        assert_eq!(Format::F16.round(65535.0, Rounding::TowardsZero), Ok(0x7bff));
        assert_eq!(Format::F16.round(65536.0, Rounding::TowardsZero), Err(OutOfRange { below: false }));
        assert_eq!(Format::F16.round(-1e9, Rounding::NearestEven), Err(OutOfRange { below: true }));
        assert_eq!(Format::F16.clamped(OutOfRange { below: true }), 0xfc00);
        assert_eq!(Format::F4_E2M1FN.round(7.0, Rounding::NearestEven), Err(OutOfRange { below: false }));
        assert_eq!(Format::F4_E2M1FN.value(Format::F4_E2M1FN.clamped(OutOfRange { below: true })), -6.0);
        assert_eq!(Format::F8_E8M0FNU.round(0.0, Rounding::NearestEven), Err(OutOfRange { below: true }));
        assert_eq!(Format::F8_E8M0FNU.round(f64::MIN_POSITIVE, Rounding::NearestEven), Err(OutOfRange { below: true }));
        // As ml_dtypes has it.
        for (value, bits) in [(1.5, 128), (3.0, 129), (0.75, 127), (1.49, 127)] {
            assert_eq!(Format::F8_E8M0FNU.round(value, Rounding::NearestEven), Ok(bits));
        }
        assert_eq!(Format::F8_E4M3FNUZ.round(f64::INFINITY, Rounding::NearestEven), Err(OutOfRange { below: false }));
        assert_eq!(Format::F8_E4M3FNUZ.round(-0.0, Rounding::NearestEven), Ok(0));
        assert_eq!(Format::F8_E4M3FNUZ.round(-1e-30, Rounding::NearestEven), Ok(0));
    }

    #[test]
    fn what_holds_what() {
        assert!(Format::F64.holds_format(Format::F32));
        assert!(Format::F32.holds_format(Format::BF16));
        assert!(Format::F32.holds_format(Format::F16));
        assert!(!Format::F32.holds_format(Format::F64));
        assert!(!Format::F16.holds_format(Format::BF16));
        assert!(!Format::F32.holds_format(Format::F8_E8M0FNU));
        assert!(Format::F64.holds_format(Format::F8_E8M0FNU));
        assert_eq!(Format::F16.mantissa_bits(), 10);
    }

    proptest! {
        #[test]
        fn single_precision_agrees_with_the_hardware(bits in any::<u64>()) {
            let value = f64::from_bits(bits);
            let expected = value as f32;
            let got = Format::F32.round(value, Rounding::NearestEven);
            if value.is_nan() {
                prop_assert_eq!(got, Ok(0x7fc0_0000));
            } else if expected.is_infinite() && value.is_finite() {
                prop_assert!(got.is_err());
            } else {
                prop_assert_eq!(got, Ok(u64::from(expected.to_bits())));
            }
            prop_assert_eq!(Format::F64.round(value, Rounding::TowardsZero).map(|b| Format::F64.value(b).to_bits()).ok(),
                Some(if value.is_nan() { f64::NAN.to_bits() } else { bits }));
        }

        #[test]
        fn integers_agree_with_the_hardware(value in any::<i64>(), unsigned in any::<u64>()) {
            for format in [Format::F32, Format::F64] {
                let convert = |v: i128| if format == Format::F32 { u64::from((v as f32).to_bits()) } else { (v as f64).to_bits() };
                for value in [i128::from(value), i128::from(unsigned)] {
                    prop_assert_eq!(format.round_integer(value, Rounding::NearestEven), Ok(convert(value)));
                }
            }
        }
    }
}

//! Numbers as their literals.

/// A JSON number, kept as the literal it was written as.
///
/// Also holds the values that are not finite, which JSON proper lacks.
/// Equality is that of the literals: `1.0` and `1` differ.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Number(Box<str>);

impl Number {
    pub(crate) const NAN: &'static str = "NaN";
    pub(crate) const INFINITY: &'static str = "Infinity";
    pub(crate) const NEG_INFINITY: &'static str = "-Infinity";

    /// Takes text that the caller knows to be a literal.
    pub(super) fn from_literal(text: &str) -> Self {
        Self(text.into())
    }

    /// A number from its literal, by the grammar of RFC 8259, or `NaN`, `Infinity`, `-Infinity`.
    pub fn parse(text: &str) -> Option<Self> {
        let finite = super::parse::number_length(text.as_bytes()) == Some(text.len());
        let other = [Self::NAN, Self::INFINITY, Self::NEG_INFINITY].contains(&text);
        (finite || other).then(|| Self(text.into()))
    }

    /// The literal.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// False for NaN and the infinities.
    pub fn is_finite(&self) -> bool {
        !self.0.ends_with(['N', 'y'])
    }

    /// True for a literal without fraction and exponent.
    pub fn is_integer(&self) -> bool {
        self.is_finite() && !self.0.contains(['.', 'e', 'E'])
    }

    /// The value, if the literal is an integer in range.
    pub fn as_u64(&self) -> Option<u64> {
        self.as_i128().and_then(|value| u64::try_from(value).ok())
    }

    /// The value, if the literal is an integer in range.
    pub fn as_i64(&self) -> Option<i64> {
        self.as_i128().and_then(|value| i64::try_from(value).ok())
    }

    /// The value, if the literal is an integer in range.
    pub fn as_i128(&self) -> Option<i128> {
        if self.is_integer() { self.0.parse().ok() } else { None }
    }

    /// The value, if the literal is an integer in range.
    pub fn as_u128(&self) -> Option<u128> {
        if self.is_integer() { self.0.parse().ok() } else { None }
    }

    /// The value, if it is a whole number in range, however it is written: `1`, `1.0`, `10e-1`.
    pub fn whole(&self) -> Option<i128> {
        if self.is_integer() {
            return self.as_i128();
        }
        if !self.is_finite() {
            return None;
        }
        let (negative, rest) = match self.0.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, &*self.0),
        };
        let (mantissa, exponent) = match rest.split_once(['e', 'E']) {
            // An exponent that i64 cannot hold belongs to zero or to no whole number we could hold.
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().ok()?),
            None => (rest, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits: String = [whole, fraction].concat();
        let significant = digits.trim_end_matches('0');
        let significant = significant.trim_start_matches('0');
        if significant.is_empty() {
            return Some(0);
        }
        let trailing = digits.len() - digits.trim_end_matches('0').len();
        let power = exponent.checked_sub(i64::try_from(fraction.len()).ok()?)?.checked_add(i64::try_from(trailing).ok()?)?;
        let scale = 10i128.checked_pow(u32::try_from(power).ok()?)?;
        let value = significant.parse::<i128>().ok()?.checked_mul(scale)?;
        Some(if negative { -value } else { value })
    }

    /// The nearest `f64`; infinite if the literal lies beyond its range.
    pub fn as_f64(&self) -> f64 {
        match &*self.0 {
            Self::NAN => f64::NAN,
            Self::INFINITY => f64::INFINITY,
            Self::NEG_INFINITY => f64::NEG_INFINITY,
            literal => literal.parse().unwrap_or(f64::NAN),
        }
    }
}

impl std::fmt::Display for Number {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

macro_rules! from_integer {
    ($($kind:ty),*) => {$(
        impl From<$kind> for Number {
            fn from(value: $kind) -> Self {
                Self(value.to_string().into())
            }
        }
    )*};
}
from_integer!(u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize);

impl From<f64> for Number {
    /// The shortest literal that reads back as the same value, with a fraction or an exponent as
    /// Python has it: `1.0`, `1e20`.
    fn from(value: f64) -> Self {
        Self(if value.is_nan() {
            Self::NAN.into()
        } else if value.is_infinite() {
            if value > 0.0 { Self::INFINITY.into() } else { Self::NEG_INFINITY.into() }
        } else {
            // `{:?}` is the shortest form that reads back, and always has a fraction or exponent.
            format!("{value:?}").into()
        })
    }
}

impl From<f32> for Number {
    /// The value as `f64`, exactly, as numpy and zarr-python write it.
    fn from(value: f32) -> Self {
        Self::from(f64::from(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_in_any_dress() {
        for (text, value) in [
            ("1", Some(1)),
            ("1.0", Some(1)),
            ("-1.00", Some(-1)),
            ("10e-1", Some(1)),
            ("1.5e1", Some(15)),
            ("1.5", None),
            ("0.0", Some(0)),
            ("-0.0", Some(0)),
            ("0e99999999999999999999", None),
            ("1e400", None),
            ("1e-1", None),
            ("NaN", None),
            ("18446744073709551615.0", Some(18_446_744_073_709_551_615)),
        ] {
            assert_eq!(Number::parse(text).and_then(|n| n.whole()), value, "{text}");
        }
    }

    #[test]
    fn literals_outside_the_grammar_are_refused() {
        for text in ["", "01", "+1", "1.", ".5", "1e", "0x10", "inf", "nan", "1 ", "-"] {
            assert_eq!(Number::parse(text), None, "{text}");
        }
    }

    #[test]
    fn floats_keep_a_fraction() {
        assert_eq!(Number::from(1.0).as_str(), "1.0");
        assert_eq!(Number::from(0.1f32).as_str(), "0.10000000149011612");
        assert_eq!(Number::from(f64::NEG_INFINITY).as_str(), "-Infinity");
    }
}

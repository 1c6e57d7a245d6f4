//! `bitround`: fewer significant bits, for better compression.
//!
//! * Specification: [zarr-extensions, bitround](https://github.com/zarr-developers/zarr-extensions/tree/main/codecs/bitround); version 2:
//!   the filter `bitround` of numcodecs. Also known by the deprecated name `numcodecs.bitround`.
//! * Configuration: `keepbits`, the number of significant bits to keep: of the mantissa for floating point numbers, from the most
//!   significant set bit for integers.
//! * Data types: `float16`, `bfloat16`, `float32`, `float64` and the complex numbers of those; integers of 8 to 64 bits; `numpy.datetime64`
//!   and `numpy.timedelta64`.
//!
//! Decoding changes nothing. Encoding rounds to the nearest, ties to even, bit for bit as numcodecs does, except:
//! * NaN is left as it is. The arithmetic of numcodecs turns a NaN whose payload is cut off or carries over into infinity or -0.0.
//! * `keepbits` beyond the width of the mantissa leaves the value as it is (as in zarrs; an error in numcodecs).
//!
//! The registry wants `keepbits` of at least 1; 0 is what numcodecs allows, and is accepted. Integers are rounded by magnitude, so that
//! small negative numbers stay small (zarrs rounds the two's complement pattern); a value that would round beyond the data type is
//! truncated instead.

use serde::Deserialize;
use zarr_codec_api::{CodecError, HostProvider};
use zarr_meta::DataType;

use crate::config;
use crate::filter::{self, Filter};
use crate::number::{BLOCK, Format, Number, blocks, load_ints, store_ints};

const NAME: &str = "bitround";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    keepbits: u32,
}

pub(crate) fn register(provider: HostProvider) -> HostProvider {
    provider.with_names(&[NAME, "numcodecs.bitround", "https://codec.zarrs.dev/array_to_bytes/bitround"], |codec, decoded| {
        let Config { keepbits } = config::read(codec)?;
        let data_type = &filter::array(codec, decoded)?.data_type;
        let kind = Kind::of(data_type).ok_or_else(|| filter::unsupported(codec, data_type))?;
        Ok(filter::codec(BitRound { keepbits, kind, data_type: data_type.clone() }))
    })
}

/// What is rounded.
#[derive(Debug, Clone, Copy)]
enum Kind {
    /// IEEE 754 numbers in 2, 4 or 8 bytes, with so many bits of mantissa.
    Float {
        size: usize,
        mantissa: u32,
    },
    Int(Number),
}

impl Kind {
    fn of(data_type: &DataType) -> Option<Self> {
        let component = data_type.complex_component();
        let number = match component.as_ref().unwrap_or(data_type) {
            DataType::NumpyDateTime64 { .. } | DataType::NumpyTimeDelta64 { .. } => Number::I64,
            other => Number::of(other)?,
        };
        Some(match number {
            Number::Float(Format::F64) => Self::Float { size: 8, mantissa: 52 },
            Number::Float(Format::F32) => Self::Float { size: 4, mantissa: 23 },
            Number::Float(Format::F16) => Self::Float { size: 2, mantissa: 10 },
            Number::Float(Format::BF16) => Self::Float { size: 2, mantissa: 7 },
            Number::Int { bits: 8.., .. } => Self::Int(number),
            _ => return None,
        })
    }
}

#[derive(Debug)]
struct BitRound {
    keepbits: u32,
    kind: Kind,
    data_type: DataType,
}

/// Rounds numbers of one width.
macro_rules! round_floats {
    ($kind:ty, $decoded:expr, $encoded:expr, $mantissa:expr, $drop:expr) => {{
        // The sign shifted out, what lies beyond infinity is NaN.
        let infinity = <$kind>::MAX << ($mantissa + 1);
        let half = (1 << ($drop - 1)) - 1;
        let keep = <$kind>::MAX << $drop;
        for (from, to) in $decoded.as_chunks().0.iter().zip($encoded.as_chunks_mut().0.iter_mut()) {
            let bits = <$kind>::from_ne_bytes(*from);
            let rounded = bits.wrapping_add(((bits >> $drop) & 1).wrapping_add(half)) & keep;
            *to = if bits << 1 > infinity { bits } else { rounded }.to_ne_bytes();
        }
    }};
}

impl Filter for BitRound {
    fn encoded_type(&self) -> &DataType {
        &self.data_type
    }

    #[expect(clippy::arithmetic_side_effects, reason = "at least one bit and at most the mantissa is dropped")]
    fn encode(&self, decoded: &[u8], encoded: &mut [u8]) -> Result<(), CodecError> {
        match self.kind {
            Kind::Float { mantissa, .. } if self.keepbits >= mantissa => encoded.copy_from_slice(decoded),
            Kind::Float { size, mantissa } => {
                let drop = mantissa - self.keepbits;
                match size {
                    8 => round_floats!(u64, decoded, encoded, mantissa, drop),
                    4 => round_floats!(u32, decoded, encoded, mantissa, drop),
                    _ => round_floats!(u16, decoded, encoded, mantissa, drop),
                }
            }
            Kind::Int(number) => blocks((decoded, number.size()), (encoded, number.size()), |decoded, encoded| {
                let mut values = [0; BLOCK];
                load_ints(number, decoded, &mut values);
                values.iter_mut().for_each(|value| *value = round_integer(number, *value, self.keepbits));
                store_ints(number, &values, encoded);
                Ok::<(), CodecError>(())
            })?,
        }
        Ok(())
    }

    fn decode(&self, encoded: &[u8], decoded: &mut [u8]) -> Result<(), CodecError> {
        decoded.copy_from_slice(encoded);
        Ok(())
    }

    fn decodes_verbatim(&self) -> bool {
        true
    }
}

#[expect(clippy::arithmetic_side_effects, clippy::cast_possible_truncation, reason = "values of at most 65 bits in 128")]
fn round_integer(number: Number, value: i64, keepbits: u32) -> i64 {
    let exact = number.exact(value);
    let magnitude = exact.unsigned_abs();
    let width = 128 - magnitude.leading_zeros();
    if width <= keepbits {
        return value;
    }
    let drop = width - keepbits;
    let round = |up: u128| {
        let rounded = ((magnitude + up) >> drop << drop).cast_signed();
        if exact < 0 { -rounded } else { rounded }
    };
    let half = (1u128 << (drop - 1)) - 1;
    let rounded = round(half + ((magnitude >> drop) & 1));
    let fits = number.range().is_some_and(|(least, most)| (least..=most).contains(&rounded));
    (if fits { rounded } else { round(0) }) as i64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use zarr_meta::FillValue;

    use super::*;
    use crate::testing::{ArrayCodec, bytes_of};

    fn round(keepbits: u32, data_type: &DataType, bytes: &[u8]) -> Vec<u8> {
        let elements = bytes.len() / data_type.fixed_size().unwrap();
        let codec = ArrayCodec::new(NAME, &format!("{{\"keepbits\": {keepbits}}}"), data_type, &[elements as u64]);
        codec.encode(bytes).unwrap()
    }

    fn round_i8(keepbits: u32, values: &[i8]) -> Vec<i8> {
        let bytes = bytes_of(values, i8::to_ne_bytes);
        round(keepbits, &DataType::Int8, &bytes).iter().map(|b| *b as i8).collect()
    }

    #[test]
    fn nan_keeps_its_bits() {
        let bits = [0x7fc0_0000u32, 0x7f80_0001, 0x7fff_ffff, 0xffff_ffff, 0x7f80_0000, 0xff80_0000, 0x8000_0000, 0];
        let bytes = bytes_of(&bits, u32::to_ne_bytes);
        for keepbits in [0, 1, 3, 22, 23, 99] {
            assert_eq!(round(keepbits, &DataType::Float32, &bytes), bytes, "{keepbits}");
        }
    }

    #[test]
    fn integers_keep_their_leading_bits() {
        assert_eq!(round_i8(3, &[0, 1, 7, 8, 9, 10, 11, 13, 15, -9, -11, -1]), [0, 1, 7, 8, 8, 10, 12, 12, 16, -8, -12, -1]);
        // 127 would round to 128.
        assert_eq!(round_i8(1, &[127, -127, -128]), [64, -128, -128]);
        assert_eq!(round_i8(0, &[5, -5]), [8, -8]);
        assert_eq!(round(3, &DataType::UInt8, &[255, 250, 200]), [224, 224, 192]);
        let most = bytes_of(&[u64::MAX, 1 << 63], u64::to_ne_bytes);
        assert_eq!(round(2, &DataType::UInt64, &most), bytes_of(&[3 << 62, 1 << 63], u64::to_ne_bytes));
    }

    #[test]
    fn not_a_time_stays() {
        let data_type = crate::number::Numpy::parse("<M8[ns]").unwrap().data_type;
        let bytes = bytes_of(&[i64::MIN, 1025], i64::to_ne_bytes);
        assert_eq!(round(4, &data_type, &bytes), bytes_of(&[i64::MIN, 1024], i64::to_ne_bytes));
    }

    #[test]
    fn the_fill_value_is_rounded() {
        let fill = FillValue::from_bytes(1.0001f32.to_ne_bytes(), &DataType::Float32).unwrap();
        let codec = ArrayCodec::with_fill(NAME, r#"{"keepbits": 3}"#, &DataType::Float32, &[2], fill).unwrap();
        assert_eq!(codec.encoded_array().fill_value.as_bytes(), 1.0f32.to_ne_bytes());
        assert_eq!(codec.encoded_array().data_type, DataType::Float32);
        assert_eq!(codec.decode(&[1; 8]).unwrap(), [1; 8]);
    }

    #[test]
    fn other_configurations_are_refused() {
        let make = |configuration: &str, data_type: &DataType| {
            ArrayCodec::with_fill(NAME, configuration, data_type, &[1], FillValue::default_for(data_type)).is_ok()
        };
        assert!(make(r#"{"keepbits": 3}"#, &DataType::ComplexBFloat16));
        assert!(!make(r#"{"keepbits": 3}"#, &DataType::Bool));
        assert!(!make(r#"{"keepbits": 3}"#, &DataType::Float8E4M3));
        assert!(!make(r#"{"keepbits": -1}"#, &DataType::Float32));
        assert!(!make(r#"{"keepbits": 1, "x": 1}"#, &DataType::Float32));
        assert!(!make("{}", &DataType::Float32));
    }

    proptest! {
        #[test]
        fn rounding_is_to_the_nearest(value in any::<f32>().prop_filter("finite", |v| v.is_finite()), keepbits in 0u32..23) {
            let out = round(keepbits, &DataType::Float32, &value.to_ne_bytes());
            let rounded = f32::from_ne_bytes(out.try_into().unwrap());
            let exponent = (value.to_bits() >> 23) & 0xff;
            let ulp = 2f64.powi(exponent.max(1) as i32 - 127 - keepbits as i32);
            if rounded.is_finite() {
                prop_assert!((f64::from(rounded) - f64::from(value)).abs() <= ulp / 2.0);
            }
        }

        #[test]
        fn rounding_twice_is_rounding_once(values in prop::collection::vec(any::<i32>(), 1..40), keepbits in 0u32..33) {
            let bytes = bytes_of(&values, i32::to_ne_bytes);
            let once = round(keepbits, &DataType::Int32, &bytes);
            prop_assert_eq!(round(keepbits.max(1), &DataType::Int32, &once), once);
        }
    }
}

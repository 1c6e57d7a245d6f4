//! `numcodecs.quantize`: fewer decimal digits, for better compression.
//!
//! * Specification: the filter [`quantize`](https://numcodecs.readthedocs.io/en/stable/filter/quantize.html) of numcodecs, in version 2 by
//!   that id.
//! * Configuration: `digits`, the number of decimal digits behind the point to keep; `dtype`, the numpy type of the elements, which
//!   defaults to the array's data type; `astype`, that of the stored elements, which defaults to `dtype`.
//! * Data types: `float16`, `float32`, `float64`.
//!
//! Encoding rounds to multiples of the largest power of two that is not above `10^-digits`, ties to even, then converts to `astype`. All is
//! computed in `dtype`: in `float16`, five digits make every value NaN, as in numcodecs. Decoding converts back, and changes nothing where
//! the types are the same.

use serde::Deserialize;
use zarr_codec_api::{CodecError, HostProvider};
use zarr_meta::DataType;

use crate::config;
use crate::filter::{self, Filter};
use crate::number::{BLOCK, Format, Number, Numpy, blocks, cast, load_floats, store_floats};

const NAME: &str = "numcodecs.quantize";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    digits: i32,
    dtype: Option<String>,
    astype: Option<String>,
}

pub(crate) fn register(provider: HostProvider) -> HostProvider {
    provider.with(NAME, |codec, decoded| {
        let config: Config = config::read(codec)?;
        let (decoded, encoded) = filter::numpy_types(codec, decoded, config.dtype.as_deref(), config.astype.as_deref())?;
        let float = |numpy: &Numpy| match numpy.number {
            Number::Float(format) if !numpy.is_complex() => Ok(format),
            _ => Err(CodecError::unsupported(NAME, "only floating point numbers can be quantized")),
        };
        let (from, to) = (float(&decoded)?, float(&encoded)?);
        let scale = scale(config.digits)
            .ok_or_else(|| CodecError::metadata(NAME, format!("{} digits are beyond double precision", config.digits)))?;
        Ok(filter::codec(Quantize { decoded, encoded, from, to, scale: from.nearest(scale) }))
    })
}

/// The power of two at or above `10^digits`; `None` where it is no double, as in Python.
fn scale(digits: i32) -> Option<f64> {
    let bits = (f64::from(digits) * std::f64::consts::LOG2_10).ceil();
    (-308..=307).contains(&digits).then(|| bits.exp2())
}

#[derive(Debug)]
struct Quantize {
    decoded: Numpy,
    encoded: Numpy,
    from: Format,
    to: Format,
    scale: f64,
}

impl Filter for Quantize {
    fn encoded_type(&self) -> &DataType {
        &self.encoded.data_type
    }

    fn encode(&self, decoded: &[u8], encoded: &mut [u8]) -> Result<(), CodecError> {
        blocks((decoded, self.decoded.size()), (encoded, self.encoded.size()), |decoded, encoded| {
            let mut values = [0.0; BLOCK];
            load_floats(self.from, decoded, &mut values);
            for value in &mut values {
                *value = self.from.nearest(self.from.nearest(*value * self.scale).round_ties_even() / self.scale);
            }
            store_floats(self.to, &values, encoded);
            Ok(())
        })
    }

    fn decode(&self, encoded: &[u8], decoded: &mut [u8]) -> Result<(), CodecError> {
        cast(&self.encoded, encoded, &self.decoded, decoded);
        Ok(())
    }

    fn decodes_verbatim(&self) -> bool {
        self.from == self.to
    }
}

#[cfg(test)]
mod tests {
    use zarr_meta::FillValue;

    use super::*;
    use crate::testing::{ArrayCodec, bytes_of};

    #[test]
    fn scales_are_powers_of_two() {
        assert_eq!(scale(0), Some(1.0));
        assert_eq!(scale(1), Some(16.0));
        assert_eq!(scale(3), Some(1024.0));
        assert_eq!(scale(-1), Some(0.125));
        assert_eq!(scale(307), Some(2f64.powi(1020)));
        assert_eq!(scale(308), None);
    }

    #[test]
    fn values_and_the_fill_value_are_rounded() {
        let fill = FillValue::from_bytes(0.7f64.to_ne_bytes(), &DataType::Float64).unwrap();
        let configuration = r#"{"digits": 1, "dtype": "<f8", "astype": "<f4"}"#;
        let codec = ArrayCodec::with_fill(NAME, configuration, &DataType::Float64, &[3], fill).unwrap();
        let values = bytes_of(&[0.1, 0.2, -0.0], f64::to_ne_bytes);
        let encoded = codec.encode(&values).unwrap();
        assert_eq!(encoded, bytes_of(&[0.125f32, 0.1875, -0.0], f32::to_ne_bytes));
        assert_eq!(codec.decode(&encoded).unwrap(), bytes_of(&[0.125f64, 0.1875, -0.0], f64::to_ne_bytes));
        assert_eq!(codec.encoded_array().fill_value.as_bytes(), 0.6875f32.to_ne_bytes());
    }

    #[test]
    fn only_floating_point_numbers() {
        for (configuration, data_type) in [
            (r#"{"digits": 1}"#, DataType::Int32),
            (r#"{"digits": 1}"#, DataType::Complex64),
            (r#"{"digits": 1, "astype": "<i4"}"#, DataType::Float32),
            (r#"{"digits": 999}"#, DataType::Float32),
            ("{}", DataType::Float32),
        ] {
            let fill = FillValue::default_for(&data_type);
            assert!(ArrayCodec::with_fill(NAME, configuration, &data_type, &[1], fill).is_err(), "{configuration}");
        }
    }
}

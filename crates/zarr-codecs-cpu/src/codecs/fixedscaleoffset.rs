//! `numcodecs.fixedscaleoffset`: numbers shifted, scaled and rounded.
//!
//! * Specification: the filter [`fixedscaleoffset`](https://numcodecs.readthedocs.io/en/stable/filter/fixedscaleoffset.html) of numcodecs,
//!   in version 2 by that id; described in [zarr-extensions,
//!   scale_offset](https://github.com/zarr-developers/zarr-extensions/tree/main/codecs/scale_offset), which supersedes it.
//! * Configuration: `offset` and `scale`, numbers; `dtype`, the numpy type of the elements, which defaults to the array's data type;
//!   `astype`, that of the stored elements, which defaults to `dtype`.
//! * Data types: booleans, integers of 8 to 64 bits, `float16`, `float32`, `float64`.
//!
//! Encoding gives `round((x - offset) * scale)`, ties to even, converted to `astype` without checks; decoding gives `x / scale + offset`,
//! converted to `dtype` without checks. Each step is computed in the type in which numpy 2 computes it: floating point numbers in their own
//! type; integers in their own, wrapping around, for as long as `offset` and `scale` are written as integers, else in double precision;
//! divisions of integers in double precision. Encoding integers with an integer `offset` or `scale` that their type cannot hold is an
//! error, as in numpy 2. Conversions are those of [`super::astype`].

use serde::Deserialize;
use zarr_codec_api::{CodecError, HostProvider};
use zarr_meta::{DataType, Json};

use crate::config;
use crate::filter::{self, Filter};
use crate::number::{BLOCK, Format, Number, Numpy, blocks, int_to_float, load, load_floats, load_ints, store_int_values, store_values};

const NAME: &str = "numcodecs.fixedscaleoffset";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    offset: Json,
    scale: Json,
    dtype: Option<String>,
    astype: Option<String>,
}

pub(crate) fn register(provider: HostProvider) -> HostProvider {
    provider.with(NAME, |codec, decoded| {
        let config: Config = config::read(codec)?;
        let (decoded, encoded) = filter::numpy_types(codec, decoded, config.dtype.as_deref(), config.astype.as_deref())?;
        if decoded.is_complex() || encoded.is_complex() {
            return Err(CodecError::unsupported(NAME, "complex numbers are not supported"));
        }
        Ok(filter::codec(FixedScaleOffset {
            offset: Scalar::read("offset", &config.offset)?,
            scale: Scalar::read("scale", &config.scale)?,
            decoded,
            encoded,
        }))
    })
}

/// A number as Python has it, which decides in what type numpy computes.
#[derive(Debug, Clone, Copy)]
enum Scalar {
    Int(i128),
    /// An integer that no 128 bits hold, nearly: good for floating point numbers alone.
    LargeInt(f64),
    Float(f64),
}

impl Scalar {
    fn read(key: &str, value: &Json) -> Result<Self, CodecError> {
        let number = value.as_number().ok_or_else(|| CodecError::metadata(NAME, format!("{key} must be a number, found {value}")))?;
        Ok(match number.as_i128() {
            Some(value) => Self::Int(value),
            None if number.is_integer() => Self::LargeInt(number.as_f64()),
            None => Self::Float(number.as_f64()),
        })
    }

    fn as_f64(self) -> f64 {
        match self {
            Self::Int(value) => value as f64,
            Self::LargeInt(value) | Self::Float(value) => value,
        }
    }
}

#[derive(Debug)]
struct FixedScaleOffset {
    offset: Scalar,
    scale: Scalar,
    decoded: Numpy,
    encoded: Numpy,
}

impl FixedScaleOffset {
    /// Encodes integers; `number` is the type in which they are subtracted and multiplied.
    #[expect(clippy::cast_possible_truncation, reason = "unsigned 64-bit integers keep their bits")]
    fn encode_ints(&self, number: Number, decoded: &[u8], encoded: &mut [u8]) -> Result<(), CodecError> {
        let integer = |scalar| match scalar {
            Scalar::Float(_) => Ok(None),
            Scalar::Int(value) if number.range().is_some_and(|(least, most)| (least..=most).contains(&value)) => Ok(Some(value as i64)),
            _ => Err(CodecError::parameter(NAME, "an integer offset or scale does not fit the data type")),
        };
        // Once one operand is a floating point number, so is the result.
        let offset = integer(self.offset)?;
        let scale = if offset.is_some() { integer(self.scale)? } else { None };
        let mut integers = [0; BLOCK];
        load_ints(self.decoded.number, decoded, &mut integers);
        let Some(offset) = offset else {
            let mut values = [0.0; BLOCK];
            load(self.decoded.number, decoded, &mut values);
            let (offset, scale) = (self.offset.as_f64(), self.scale.as_f64());
            values.iter_mut().for_each(|value| *value = ((*value - offset) * scale).round_ties_even());
            store_values(self.encoded.number, &values, encoded);
            return Ok(());
        };
        integers.iter_mut().for_each(|value| *value = number.wrap(value.wrapping_sub(offset)));
        if let Some(scale) = scale {
            integers.iter_mut().for_each(|value| *value = number.wrap(value.wrapping_mul(scale)));
            store_int_values(number, &integers, self.encoded.number, encoded);
        } else {
            let mut values = [0.0; BLOCK];
            int_to_float(number, &integers, Format::F64, &mut values);
            let scale = self.scale.as_f64();
            values.iter_mut().for_each(|value| *value = (*value * scale).round_ties_even());
            store_values(self.encoded.number, &values, encoded);
        }
        Ok(())
    }
}

impl Filter for FixedScaleOffset {
    fn encoded_type(&self) -> &DataType {
        &self.encoded.data_type
    }

    fn encode(&self, decoded: &[u8], encoded: &mut [u8]) -> Result<(), CodecError> {
        blocks((decoded, self.decoded.size()), (encoded, self.encoded.size()), |decoded, encoded| match self.decoded.number {
            Number::Float(format) => {
                let mut values = [0.0; BLOCK];
                load_floats(format, decoded, &mut values);
                let (offset, scale) = (format.nearest(self.offset.as_f64()), format.nearest(self.scale.as_f64()));
                for value in &mut values {
                    *value = format.nearest(format.nearest(*value - offset) * scale).round_ties_even();
                }
                store_values(self.encoded.number, &values, encoded);
                Ok(())
            }
            Number::Bool => self.encode_ints(Number::I64, decoded, encoded),
            number => self.encode_ints(number, decoded, encoded),
        })
    }

    fn decode(&self, encoded: &[u8], decoded: &mut [u8]) -> Result<(), CodecError> {
        let format = match self.encoded.number {
            Number::Float(format) => format,
            _ => Format::F64,
        };
        let (offset, scale) = (format.nearest(self.offset.as_f64()), format.nearest(self.scale.as_f64()));
        blocks((encoded, self.encoded.size()), (decoded, self.decoded.size()), |encoded, decoded| {
            let mut values = [0.0; BLOCK];
            load(self.encoded.number, encoded, &mut values);
            for value in &mut values {
                *value = format.nearest(format.nearest(*value / scale) + offset);
            }
            store_values(self.decoded.number, &values, decoded);
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use zarr_meta::FillValue;

    use super::*;
    use crate::testing::{ArrayCodec, bytes_of};

    #[test]
    fn the_example_of_numcodecs() {
        let fill = FillValue::from_bytes(1000.5f64.to_ne_bytes(), &DataType::Float64).unwrap();
        let configuration = r#"{"offset": 1000, "scale": 10, "dtype": "<f8", "astype": "|u1"}"#;
        let codec = ArrayCodec::with_fill(NAME, configuration, &DataType::Float64, &[4], fill).unwrap();
        let values = bytes_of(&[1000.0, 1000.111, 1000.35, 1001.0], f64::to_ne_bytes);
        assert_eq!(codec.encode(&values).unwrap(), [0, 1, 4, 10]);
        assert_eq!(codec.decode(&[0, 1, 4, 10]).unwrap(), bytes_of(&[1000.0, 1000.1, 1000.4, 1001.0], f64::to_ne_bytes));
        assert_eq!(codec.encoded_array().data_type, DataType::UInt8);
        assert_eq!(codec.encoded_array().fill_value.as_bytes(), [5]);
    }

    #[test]
    fn integers_that_do_not_fit_are_an_error_only_in_encoding() {
        let codec = ArrayCodec::new(NAME, r#"{"offset": 1000, "scale": 1}"#, &DataType::UInt8, &[1]);
        assert!(codec.encoded().is_err());
        let codec = ArrayCodec::new(NAME, r#"{"offset": 0, "scale": 1000.0, "astype": "<i4"}"#, &DataType::UInt8, &[1]);
        assert_eq!(codec.encode(&[7]).unwrap(), 7000i32.to_ne_bytes());
        assert_eq!(codec.decode(&7000i32.to_ne_bytes()).unwrap(), [7]);
    }

    #[test]
    fn what_is_no_number_is_refused() {
        for (configuration, data_type) in [
            (r#"{"offset": "1", "scale": 1}"#, DataType::Float32),
            (r#"{"offset": 1}"#, DataType::Float32),
            (r#"{"offset": 1, "scale": 1}"#, DataType::Complex64),
            (r#"{"offset": 1, "scale": 1, "astype": "<c8"}"#, DataType::Float32),
        ] {
            let fill = FillValue::default_for(&data_type);
            assert!(ArrayCodec::with_fill(NAME, configuration, &data_type, &[1], fill).is_err(), "{configuration}");
        }
    }
}

//! `scale_offset`: numbers shifted and scaled, in their own data type.
//!
//! * Specification: [zarr-extensions, scale_offset](https://github.com/zarr-developers/zarr-extensions/tree/main/codecs/scale_offset).
//! * Configuration: `offset` (0 by default) and `scale` (1 by default, not 0), each as a fill value of the array's data type is written.
//! * Data types: integers and floating point numbers of any width.
//!
//! Encoding gives `(x - offset) * scale`, decoding `x / scale + offset`.
//!
//! Integers, as in zarr-python: a result beyond the data type is an error, and so is a quotient with a remainder; what comes before the
//! result may go beyond the data type. Floating point numbers: every operation rounds to the nearest value of the data type, ties to even,
//! and may give infinity or NaN; where the data type has no such value, that is an error.

use serde::Deserialize;
use zarr_codec_api::{CodecError, HostProvider};
use zarr_meta::{DataType, FillValue, Json};

use crate::config;
use crate::filter::{self, Filter};
use crate::number::{BLOCK, Format, Number, Rounding, blocks, load_floats, load_ints, store_bits, store_floats, store_ints};

const NAME: &str = "scale_offset";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    offset: Option<Json>,
    scale: Option<Json>,
}

pub(crate) fn register(provider: HostProvider) -> HostProvider {
    provider.with(NAME, |codec, decoded| {
        let config: Config = config::read(codec)?;
        let data_type = &filter::array(codec, decoded)?.data_type;
        let kind = match Number::of(data_type) {
            Some(number @ Number::Int { .. }) => {
                let offset = scalar("offset", config.offset, data_type)?.map_or(0, |element| integer(number, &element));
                let scale = scalar("scale", config.scale, data_type)?.map_or(1, |element| integer(number, &element));
                if scale == 0 {
                    return Err(CodecError::metadata(NAME, "scale is 0"));
                }
                Kind::Int { number, offset, scale }
            }
            Some(Number::Float(format)) => {
                let offset = scalar("offset", config.offset, data_type)?.map_or(0.0, |element| float(format, &element));
                let scale = scalar("scale", config.scale, data_type)?.map_or(1.0, |element| float(format, &element));
                if scale == 0.0 {
                    return Err(CodecError::metadata(NAME, "scale is 0"));
                }
                Kind::Float { format, offset, scale }
            }
            _ => return Err(filter::unsupported(codec, data_type)),
        };
        Ok(filter::codec(ScaleOffset { kind, data_type: data_type.clone() }))
    })
}

/// The element that a value of the configuration stands for.
fn scalar(key: &str, value: Option<Json>, data_type: &DataType) -> Result<Option<FillValue>, CodecError> {
    let parse = |value: Json| FillValue::parse(&value, data_type);
    value.map(parse).transpose().map_err(|error| CodecError::metadata(NAME, key).with_source(error))
}

fn integer(number: Number, element: &FillValue) -> i128 {
    let mut value = [0];
    load_ints(number, element.as_bytes(), &mut value);
    let [value] = value;
    number.exact(value)
}

fn float(format: Format, element: &FillValue) -> f64 {
    let mut value = [0.0];
    load_floats(format, element.as_bytes(), &mut value);
    let [value] = value;
    value
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Int { number: Number, offset: i128, scale: i128 },
    Float { format: Format, offset: f64, scale: f64 },
}

#[derive(Debug)]
struct ScaleOffset {
    kind: Kind,
    data_type: DataType,
}

/// Why an element has no counterpart.
type Problem = &'static str;

impl ScaleOffset {
    fn run(
        &self,
        from: &[u8],
        to: &mut [u8],
        int: impl Fn(i128, i128, i128) -> Result<i128, Problem>,
        float: impl Fn(f64, f64, f64, &dyn Fn(f64) -> f64) -> f64,
    ) -> Result<(), Problem> {
        match self.kind {
            Kind::Int { number, offset, scale } => blocks((from, number.size()), (to, number.size()), |from, to| {
                let mut values = [0; BLOCK];
                load_ints(number, from, &mut values);
                let count = from.len().checked_div(number.size()).unwrap_or(0);
                for value in values.iter_mut().take(count) {
                    let result = int(number.exact(*value), offset, scale)?;
                    *value = narrow(number, result).ok_or("the result does not fit the data type")?;
                }
                store_ints(number, &values, to);
                Ok(())
            }),
            Kind::Float { format: format @ (Format::F32 | Format::F64), offset, scale } => {
                blocks((from, format.size()), (to, format.size()), |from, to| {
                    let mut values = [0.0; BLOCK];
                    load_floats(format, from, &mut values);
                    if format == Format::F32 {
                        values.iter_mut().for_each(|value| *value = float(*value, offset, scale, &|value| Format::F32.nearest(value)));
                    } else {
                        values.iter_mut().for_each(|value| *value = float(*value, offset, scale, &|value| value));
                    }
                    store_floats(format, &values, to);
                    Ok(())
                })
            }
            Kind::Float { format, offset, scale } => {
                from.chunks_exact(format.size()).zip(to.chunks_exact_mut(format.size())).try_for_each(|(from, to)| {
                    let mut value = [0.0];
                    load_floats(format, from, &mut value);
                    let [value] = value;
                    let result = float(value, offset, scale, &|value| format.nearest(value));
                    let bits = format.round(result, Rounding::NearestEven).map_err(|_| "the data type has no such value")?;
                    store_bits(bits, to);
                    Ok(())
                })
            }
        }
    }
}

/// An integer in the form of `load_ints`, if it is in range.
#[expect(clippy::cast_possible_truncation, reason = "unsigned 64-bit integers keep their bits")]
fn narrow(number: Number, value: i128) -> Option<i64> {
    let (least, most) = number.range()?;
    (least..=most).contains(&value).then_some(value as i64)
}

impl Filter for ScaleOffset {
    fn encoded_type(&self) -> &DataType {
        &self.data_type
    }

    fn encode(&self, decoded: &[u8], encoded: &mut [u8]) -> Result<(), CodecError> {
        let int = |value: i128, offset, scale| {
            value.checked_sub(offset).and_then(|value| value.checked_mul(scale)).ok_or("the result does not fit the data type")
        };
        self.run(decoded, encoded, int, |value, offset, scale, round| round(round(value - offset) * scale))
            .map_err(|problem| CodecError::parameter(NAME, problem))
    }

    fn decode(&self, encoded: &[u8], decoded: &mut [u8]) -> Result<(), CodecError> {
        let int = |value: i128, offset, scale| match (value.checked_div(scale), value.checked_rem(scale)) {
            (Some(quotient), Some(0)) => quotient.checked_add(offset).ok_or("the result does not fit the data type"),
            _ => Err("a value is no multiple of the scale"),
        };
        self.run(encoded, decoded, int, |value, offset, scale, round| round(round(value / scale) + offset))
            .map_err(|problem| CodecError::format(NAME, problem))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::{ArrayCodec, bytes_of};

    fn make(configuration: &str, data_type: &DataType, elements: u64) -> Result<ArrayCodec, CodecError> {
        ArrayCodec::with_fill(NAME, configuration, data_type, &[elements], FillValue::default_for(data_type))
    }

    #[test]
    fn integers_are_checked() {
        let codec = make(r#"{"offset": 10, "scale": 3}"#, &DataType::Int8, 2).unwrap();
        assert_eq!(codec.encode(&[12, 10]).unwrap(), [6, 0]);
        assert_eq!(codec.decode(&[6, 0]).unwrap(), [12, 10]);
        assert!(codec.encode(&[100, 0]).is_err());
        assert!(codec.decode(&[7, 0]).is_err());
        // In between the result is beyond the data type.
        let codec = make(r#"{"offset": -100, "scale": -1}"#, &DataType::Int8, 1).unwrap();
        assert_eq!(codec.encode(&[28]).unwrap(), [128]);
        assert_eq!(codec.decode(&[128]).unwrap(), [28]);
        let configuration = r#"{"offset": 18446744073709551615, "scale": 18446744073709551615}"#;
        let fill = FillValue::from_bytes(u64::MAX.to_ne_bytes(), &DataType::UInt64).unwrap();
        let codec = ArrayCodec::with_fill(NAME, configuration, &DataType::UInt64, &[1], fill).unwrap();
        assert!(codec.encode(&0u64.to_ne_bytes()).is_err());
        assert_eq!(codec.encode(&u64::MAX.to_ne_bytes()).unwrap(), 0u64.to_ne_bytes());
    }

    #[test]
    fn floating_point_numbers_round_in_their_own_type() {
        let codec = make(r#"{"offset": 5, "scale": 0.1}"#, &DataType::Float32, 3).unwrap();
        let values = [7.3f32, f32::NAN, f32::INFINITY];
        let expected = values.map(|v| (v - 5.0) * 0.1);
        let encoded = codec.encode(&bytes_of(&values, f32::to_ne_bytes)).unwrap();
        assert_eq!(encoded, bytes_of(&expected, f32::to_ne_bytes));
        let decoded = expected.map(|v| v / 0.1 + 5.0);
        assert_eq!(codec.decode(&encoded).unwrap(), bytes_of(&decoded, f32::to_ne_bytes));
    }

    #[test]
    fn narrow_floating_point_numbers_overflow_only_where_they_can() {
        let codec = make(r#"{"scale": 4}"#, &DataType::Float4E2M1FN, 1).unwrap();
        let one = Format::F4_E2M1FN.round(1.0, Rounding::NearestEven).unwrap() as u8;
        let four = Format::F4_E2M1FN.round(4.0, Rounding::NearestEven).unwrap() as u8;
        assert_eq!(codec.encode(&[one]).unwrap(), [four]);
        assert!(codec.encode(&[four]).is_err());
        let codec = make(r#"{"scale": 4}"#, &DataType::Float16, 1).unwrap();
        assert_eq!(codec.encode(&0x7bffu16.to_ne_bytes()).unwrap(), 0x7c00u16.to_ne_bytes());
    }

    #[test]
    fn the_fill_value_is_scaled_and_defaults_do_nothing() {
        let fill = FillValue::from_bytes(7.0f64.to_ne_bytes(), &DataType::Float64).unwrap();
        let configuration = r#"{"offset": 5, "scale": "0x4000000000000000"}"#;
        let codec = ArrayCodec::with_fill(NAME, configuration, &DataType::Float64, &[1], fill).unwrap();
        assert_eq!(codec.encoded_array().fill_value.as_bytes(), 4.0f64.to_ne_bytes());
        assert_eq!(make("{}", &DataType::UInt8, 1).unwrap().encode(&[200]).unwrap(), [200]);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        for (configuration, data_type) in [
            (r#"{"scale": 0}"#, DataType::Int8),
            (r#"{"scale": 0.0}"#, DataType::Float32),
            (r#"{"offset": 0.5}"#, DataType::Int8),
            (r#"{"offset": 200}"#, DataType::Int8),
            (r#"{"offset": 1, "x": 1}"#, DataType::Int8),
            ("{}", DataType::Bool),
            ("{}", DataType::Complex64),
            ("{}", DataType::String),
        ] {
            assert!(make(configuration, &data_type, 1).is_err(), "{configuration} {data_type}");
        }
    }

    proptest! {
        #[test]
        fn single_precision_is_single_precision(x in any::<u32>(), offset in any::<f32>(), scale in any::<f32>()) {
            prop_assume!(offset.is_finite() && scale.is_finite() && scale != 0.0);
            let x = f32::from_bits(x);
            let codec = make(&format!("{{\"offset\": {offset:?}, \"scale\": {scale:?}}}"), &DataType::Float32, 1).unwrap();
            let same = |bytes: Vec<u8>, expected: f32| {
                let got = f32::from_ne_bytes(bytes.try_into().unwrap());
                got.to_bits() == expected.to_bits() || (got.is_nan() && expected.is_nan())
            };
            prop_assert!(same(codec.encode(&x.to_ne_bytes()).unwrap(), (x - offset) * scale));
            prop_assert!(same(codec.decode(&x.to_ne_bytes()).unwrap(), x / scale + offset));
        }
    }
}

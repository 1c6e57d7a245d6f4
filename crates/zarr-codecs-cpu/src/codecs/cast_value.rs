//! `cast_value`: elements stored as another number type, by value.
//!
//! * Specification: [zarr-extensions, cast_value](https://github.com/zarr-developers/zarr-extensions/tree/main/codecs/cast_value).
//! * Configuration: `data_type`, that of the stored elements; `rounding`: `"nearest-even"` (the default), `"towards-zero"`,
//!   `"towards-positive"`, `"towards-negative"` or `"nearest-away"`; `out_of_range`: `"clamp"` or `"wrap"` (integers only), absent for an
//!   error; `scalar_map`: `encode` and `decode`, lists of pairs of scalars.
//! * Data types: integers and floating point numbers of any width, both sides.
//!
//! Both ways, each element is taken by the first of: the scalar map, by value, the first pair that matches (NaN matches every NaN, zero
//! both zeros); its own value, where the other type holds it; its value rounded; `out_of_range` applied to the rounded value. Otherwise it
//! is an error. Rounding towards zero does not bring a value of 1e39 into the range of `float32`: the exponent counts as unbounded in
//! rounding, as in zarr-python's implementation. Clamping gives infinity where the type has one. NaN and infinity are errors where the type
//! has none, clamped or not.
//!
//! The fill value is cast like an element, and must be castable back; it may lose digits on the way. (The specification wants it to survive
//! the round trip; neither zarr-python nor zarrs checks, and most fill values behind a `scale_offset` would not.)

use serde::Deserialize;
use zarr_codec_api::{CodecError, HostProvider};
use zarr_meta::{DataType, FillValue, Json};

use crate::config;
use crate::filter::{self, Filter};
use crate::number::{
    BLOCK, Format, Number, Rounding, blocks, load_floats, load_ints, store_bits, store_floats, store_int_values, store_ints,
};

const NAME: &str = "cast_value";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    data_type: Json,
    #[serde(default)]
    rounding: Rounding,
    out_of_range: Option<OutOfRange>,
    #[serde(default)]
    scalar_map: Option<ScalarMap>,
}

/// What becomes of values beyond the type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum OutOfRange {
    Clamp,
    Wrap,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct ScalarMap {
    #[serde(default)]
    encode: Option<Vec<(Json, Json)>>,
    #[serde(default)]
    decode: Option<Vec<(Json, Json)>>,
}

pub(crate) fn register(provider: HostProvider) -> HostProvider {
    provider.with(NAME, |codec, decoded| {
        let config: Config = config::read(codec)?;
        let decoded = &filter::array(codec, decoded)?.data_type;
        let encoded = DataType::parse(&config.data_type).map_err(|error| CodecError::metadata(NAME, "data_type").with_source(error))?;
        let number = |data_type| match Number::of(data_type) {
            Some(number @ (Number::Int { .. } | Number::Float(_))) => Ok(number),
            _ => Err(filter::unsupported(codec, data_type)),
        };
        let (from, to) = (number(decoded)?, number(&encoded)?);
        if config.out_of_range == Some(OutOfRange::Wrap) && matches!(to, Number::Float(_)) {
            return Err(CodecError::metadata(NAME, "out_of_range \"wrap\" is for integers"));
        }
        let map = config.scalar_map.unwrap_or_default();
        let direction = |from, to, map| Cast { from, to, rounding: config.rounding, out_of_range: config.out_of_range, map };
        Ok(filter::codec(CastValue {
            encode: direction(from, to, read_map(map.encode, (decoded, from), (&encoded, to))?),
            decode: direction(to, from, read_map(map.decode, (&encoded, to), (decoded, from))?),
            data_type: encoded,
        }))
    })
}

fn read_map(
    pairs: Option<Vec<(Json, Json)>>,
    from: (&DataType, Number),
    to: (&DataType, Number),
) -> Result<Vec<(Key, FillValue)>, CodecError> {
    let parse = |value: &Json, data_type| {
        // The example of the specification has a sign that its own fill values lack.
        let value = if value.as_str() == Some("+Infinity") { &Json::from("Infinity") } else { value };
        FillValue::parse(value, data_type).map_err(|error| CodecError::metadata(NAME, "scalar_map").with_source(error))
    };
    pairs.unwrap_or_default().iter().map(|(key, value)| Ok((Key::of(from.1, &parse(key, from.0)?), parse(value, to.0)?))).collect()
}

/// What an element is compared with.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Key {
    /// An integer in the form of `load_ints`.
    Int(i64),
    Float(f64),
    Nan,
}

impl Key {
    fn of(number: Number, element: &FillValue) -> Self {
        match number {
            Number::Float(format) => {
                let mut value = [0.0];
                load_floats(format, element.as_bytes(), &mut value);
                let [value] = value;
                if value.is_nan() { Self::Nan } else { Self::Float(value) }
            }
            integer => {
                let mut value = [0];
                load_ints(integer, element.as_bytes(), &mut value);
                let [value] = value;
                Self::Int(value)
            }
        }
    }
}

#[derive(Debug)]
struct CastValue {
    encode: Cast,
    decode: Cast,
    data_type: DataType,
}

impl Filter for CastValue {
    fn encoded_type(&self) -> &DataType {
        &self.data_type
    }

    fn encode(&self, decoded: &[u8], encoded: &mut [u8]) -> Result<(), CodecError> {
        self.encode.run(decoded, encoded).map_err(|problem| CodecError::parameter(NAME, problem))
    }

    fn decode(&self, encoded: &[u8], decoded: &mut [u8]) -> Result<(), CodecError> {
        self.decode.run(encoded, decoded).map_err(|problem| CodecError::format(NAME, problem))
    }

    fn encode_fill(&self, decoded: &[u8], encoded: &mut [u8]) -> Result<(), CodecError> {
        let mut back = vec![0; decoded.len()];
        let cast = self.encode.run(decoded, encoded).and_then(|()| self.decode.run(encoded, &mut back));
        cast.map_err(|problem| CodecError::metadata(NAME, format!("fill value: {problem}")))
    }
}

/// One direction.
#[derive(Debug)]
struct Cast {
    from: Number,
    to: Number,
    rounding: Rounding,
    out_of_range: Option<OutOfRange>,
    map: Vec<(Key, FillValue)>,
}

/// Why an element has no counterpart.
type Problem = String;

/// Stands in for elements that the scalar map takes: every number type holds it.
const NEUTRAL: i64 = 1;

impl Cast {
    fn run(&self, from: &[u8], to: &mut [u8]) -> Result<(), Problem> {
        blocks((from, self.from.size()), (to, self.to.size()), |from, to| {
            let count = from.len().checked_div(self.from.size()).unwrap_or(0);
            let mut mapped = Vec::new();
            match self.from {
                Number::Float(format) => {
                    let mut values = [0.0; BLOCK];
                    let values = values.get_mut(..count).unwrap_or_default();
                    load_floats(format, from, values);
                    self.take_mapped(
                        values,
                        NEUTRAL as f64,
                        &mut mapped,
                        |value| if value.is_nan() { Key::Nan } else { Key::Float(value) },
                    );
                    match self.to {
                        Number::Float(target) => self.float_to_float(format, values, target, to)?,
                        target => self.float_to_int(values, target, to)?,
                    }
                }
                number => {
                    let mut values = [0; BLOCK];
                    let values = values.get_mut(..count).unwrap_or_default();
                    load_ints(number, from, values);
                    self.take_mapped(values, NEUTRAL, &mut mapped, Key::Int);
                    match self.to {
                        Number::Float(target) => self.int_to_float(number, values, target, to)?,
                        target => self.int_to_int(number, values, target, to)?,
                    }
                }
            }
            for (index, element) in mapped {
                if let Some(slot) = to.chunks_exact_mut(self.to.size()).nth(index) {
                    slot.copy_from_slice(element);
                }
            }
            Ok(())
        })
    }

    /// Puts [`NEUTRAL`] in place of elements that the map takes, and notes what they become.
    fn take_mapped<'a, T: Copy>(&'a self, values: &mut [T], neutral: T, mapped: &mut Vec<(usize, &'a [u8])>, key: impl Fn(T) -> Key) {
        if self.map.is_empty() {
            return;
        }
        for (index, value) in values.iter_mut().enumerate() {
            let wanted = key(*value);
            if let Some((_, element)) = self.map.iter().find(|(key, _)| *key == wanted) {
                mapped.push((index, element.as_bytes()));
                *value = neutral;
            }
        }
    }

    #[expect(clippy::cast_possible_truncation, reason = "in range, or meant to wrap around")]
    fn int_to_int(&self, from: Number, values: &mut [i64], to: Number, output: &mut [u8]) -> Result<(), Problem> {
        if let (Some((from_least, from_most)), Some((least, most))) = (from.range(), to.range())
            && (from_least < least || from_most > most)
            && self.out_of_range != Some(OutOfRange::Wrap)
        {
            for value in values.iter_mut() {
                let exact = from.exact(*value);
                if !(least..=most).contains(&exact) {
                    match self.out_of_range {
                        None => return Err(beyond(exact)),
                        Some(_) => *value = exact.clamp(least, most) as i64,
                    }
                }
            }
        }
        store_ints(to, values, output);
        Ok(())
    }

    fn int_to_float(&self, from: Number, values: &[i64], to: Format, output: &mut [u8]) -> Result<(), Problem> {
        // Single and double precision hold the range of all integers; others are few enough to go one by one.
        let exact = matches!((from, to), (Number::Int { bits: ..=32, .. }, Format::F64) | (Number::Int { bits: ..=16, .. }, Format::F32));
        if exact || (self.rounding == Rounding::NearestEven && matches!(to, Format::F32 | Format::F64)) {
            store_int_values(from, values, Number::Float(to), output);
            return Ok(());
        }
        for (value, slot) in values.iter().zip(output.chunks_exact_mut(to.size())) {
            let value = from.exact(*value);
            let bits = match (to.round_integer(value, self.rounding), self.out_of_range) {
                (Ok(bits), _) => bits,
                (Err(out_of_range), Some(_)) => to.clamped(out_of_range),
                (Err(_), None) => return Err(beyond(value)),
            };
            store_bits(bits, slot);
        }
        Ok(())
    }

    #[expect(clippy::cast_possible_truncation, reason = "whole numbers in range, or meant to wrap around")]
    fn float_to_int(&self, values: &mut [f64], to: Number, output: &mut [u8]) -> Result<(), Problem> {
        let Number::Int { bits, signed } = to else { return Ok(()) };
        let modulus = 2f64.powi(bits as i32);
        // The largest value may be no double; the one after it is.
        let (least, end) = if signed { (-modulus / 2.0, modulus / 2.0) } else { (0.0, modulus) };
        let (lowest, highest) = to.range().unwrap_or_default();
        let mut integers = [0i64; BLOCK];
        for (value, integer) in values.iter().zip(&mut integers) {
            let rounded = self.rounding.to_whole(*value);
            let exact = if rounded >= least && rounded < end {
                rounded as i128
            } else if !value.is_finite() {
                return Err(format!("{value} has no counterpart among integers"));
            } else {
                match self.out_of_range {
                    None => return Err(beyond(value)),
                    Some(OutOfRange::Clamp) if rounded < least => lowest,
                    Some(OutOfRange::Clamp) => highest,
                    Some(OutOfRange::Wrap) => (rounded % modulus) as i128,
                }
            };
            *integer = exact as i64;
        }
        store_ints(to, integers.get(..values.len()).unwrap_or_default(), output);
        Ok(())
    }

    #[expect(clippy::cast_possible_truncation, reason = "rounding to single precision")]
    fn float_to_float(&self, from: Format, values: &[f64], to: Format, output: &mut [u8]) -> Result<(), Problem> {
        let to_single = from == Format::F64 && to == Format::F32 && self.rounding == Rounding::NearestEven;
        // An error can only come of a finite value that becomes infinite.
        let overflows = || values.iter().any(|value| value.is_finite() && (*value as f32).is_infinite());
        if to.holds_format(from) || (to_single && (self.out_of_range.is_some() || !overflows())) {
            store_floats(to, values, output);
            return Ok(());
        }
        for (value, slot) in values.iter().zip(output.chunks_exact_mut(to.size())) {
            let lacking = (value.is_nan() && !to.has_nan()) || (value.is_infinite() && !to.has_infinity());
            let bits = match (to.round(*value, self.rounding), self.out_of_range) {
                (Ok(bits), _) => bits,
                (Err(_), _) if lacking => return Err(format!("{value} has no counterpart in the data type")),
                (Err(out_of_range), Some(_)) => to.clamped(out_of_range),
                (Err(_), None) => return Err(beyond(value)),
            };
            store_bits(bits, slot);
        }
        Ok(())
    }
}

fn beyond(value: impl std::fmt::Display) -> Problem {
    format!("{value} is beyond the data type")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::{ArrayCodec, bytes_of};

    fn make(configuration: &str, data_type: &DataType, elements: u64) -> Result<ArrayCodec, CodecError> {
        ArrayCodec::with_fill(NAME, configuration, data_type, &[elements], FillValue::default_for(data_type))
    }

    fn floats_to_int8(configuration: &str, values: &[f64]) -> Result<Vec<i8>, CodecError> {
        let codec = make(&format!("{{\"data_type\": \"int8\"{configuration}}}"), &DataType::Float64, values.len() as u64).unwrap();
        codec.encode(&bytes_of(values, f64::to_ne_bytes)).map(|bytes| bytes.iter().map(|b| *b as i8).collect())
    }

    #[test]
    fn every_rounding() {
        let values = [1.5, 2.5, -1.5, -2.5, 0.4, -0.6, -0.0];
        for (rounding, expected) in [
            ("nearest-even", [2, 2, -2, -2, 0, -1, 0]),
            ("towards-zero", [1, 2, -1, -2, 0, 0, 0]),
            ("towards-positive", [2, 3, -1, -2, 1, 0, 0]),
            ("towards-negative", [1, 2, -2, -3, 0, -1, 0]),
            ("nearest-away", [2, 3, -2, -3, 0, -1, 0]),
        ] {
            assert_eq!(floats_to_int8(&format!(r#", "rounding": "{rounding}""#), &values).unwrap(), expected, "{rounding}");
        }
        assert_eq!(floats_to_int8("", &values).unwrap(), [2, 2, -2, -2, 0, -1, 0]);
    }

    #[test]
    fn the_examples_of_the_specification() {
        assert!(floats_to_int8("", &[128.0]).is_err());
        assert_eq!(floats_to_int8(r#", "out_of_range": "clamp""#, &[128.0, -1e300]).unwrap(), [127, -128]);
        assert_eq!(floats_to_int8(r#", "out_of_range": "wrap""#, &[128.0, 300.5, 1e20]).unwrap(), [-128, 44, 0]);
        let codec = make(r#"{"data_type": "int16", "out_of_range": "wrap"}"#, &DataType::Int32, 3).unwrap();
        let encoded = codec.encode(&bytes_of(&[32768i32, 32769, -32769], i32::to_ne_bytes)).unwrap();
        assert_eq!(encoded, bytes_of(&[-32768i16, -32767, 32767], i16::to_ne_bytes));
        let numpy = r#"{"data_type": "uint8", "rounding": "towards-zero", "out_of_range": "wrap",
            "scalar_map": {"encode": [["NaN", 0], ["+Infinity", 0], ["-Infinity", 0]]}}"#;
        let codec = make(numpy, &DataType::Float64, 4).unwrap();
        let values = bytes_of(&[f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.9], f64::to_ne_bytes);
        assert_eq!(codec.encode(&values).unwrap(), [0, 0, 0, 255]);
    }

    #[test]
    fn rounding_comes_before_the_range() {
        assert_eq!(floats_to_int8("", &[127.4, -128.5]).unwrap(), [127, -128]);
        assert!(floats_to_int8("", &[127.5]).is_err());
        assert!(floats_to_int8(r#", "out_of_range": "clamp""#, &[f64::INFINITY]).is_err());
        assert!(floats_to_int8(r#", "out_of_range": "wrap""#, &[f64::NAN]).is_err());
    }

    #[test]
    fn narrower_floating_point_numbers() {
        let cast = |rest: &str, value: f64| {
            let codec = make(&format!("{{\"data_type\": \"float32\"{rest}}}"), &DataType::Float64, 1).unwrap();
            codec.encode(&value.to_ne_bytes()).map(|bytes| f32::from_ne_bytes(bytes.try_into().unwrap())).ok()
        };
        let above = 3.4028235677973366e38;
        assert_eq!(cast("", above), None);
        assert_eq!(cast(r#", "out_of_range": "clamp""#, above), Some(f32::INFINITY));
        assert_eq!(cast(r#", "rounding": "towards-zero""#, above), Some(f32::MAX));
        assert_eq!(cast(r#", "rounding": "towards-zero""#, 1e39), None);
        assert_eq!(cast(r#", "rounding": "towards-zero", "out_of_range": "clamp""#, 1e39), Some(f32::INFINITY));
        assert_eq!(cast("", f64::NEG_INFINITY), Some(f32::NEG_INFINITY));
        assert!(cast("", f64::NAN).unwrap().is_nan());
        assert_eq!(cast("", -0.0).unwrap().to_bits(), (-0.0f32).to_bits());
        assert_eq!(cast(r#", "rounding": "towards-positive""#, 1.0 + 1e-12), Some(1.0 + f32::EPSILON));
    }

    #[test]
    fn types_without_infinity_or_nan() {
        let cast = |data_type: &str, rest: &str, value: f32| {
            let codec = make(&format!("{{\"data_type\": \"{data_type}\"{rest}}}"), &DataType::Float32, 1).unwrap();
            codec.encode(&value.to_ne_bytes()).ok()
        };
        let clamp = r#", "out_of_range": "clamp""#;
        assert_eq!(cast("float4_e2m1fn", clamp, 100.0), Some(vec![7]));
        assert_eq!(cast("float4_e2m1fn", clamp, f32::INFINITY), None);
        assert_eq!(cast("float4_e2m1fn", clamp, f32::NAN), None);
        assert_eq!(cast("float4_e2m1fn", r#", "scalar_map": {"encode": [["NaN", -6]]}"#, f32::NAN), Some(vec![15]));
        assert_eq!(cast("float8_e4m3fnuz", "", f32::NAN), Some(vec![0x80]));
        assert_eq!(cast("float8_e4m3fnuz", clamp, f32::INFINITY), None);
        assert_eq!(cast("bfloat16", "", 1e-40), Some(0x0001u16.to_ne_bytes().to_vec()));
    }

    #[test]
    fn wide_integers_are_exact() {
        let codec = make(r#"{"data_type": "float64", "rounding": "towards-zero"}"#, &DataType::UInt64, 2).unwrap();
        let encoded = codec.encode(&bytes_of(&[u64::MAX, (1 << 53) + 1], u64::to_ne_bytes)).unwrap();
        assert_eq!(encoded, bytes_of(&[18446744073709549568.0, 9007199254740992.0], f64::to_ne_bytes));
        let codec = make(r#"{"data_type": "int64"}"#, &DataType::UInt64, 1).unwrap();
        assert!(codec.encode(&u64::MAX.to_ne_bytes()).is_err());
        assert!(codec.decode(&(-1i64).to_ne_bytes()).is_err());
        let codec = make(r#"{"data_type": "uint64"}"#, &DataType::Float64, 1).unwrap();
        assert_eq!(codec.encode(&1.8e19f64.to_ne_bytes()).unwrap(), 18_000_000_000_000_000_000u64.to_ne_bytes());
        assert!(codec.encode(&18446744073709551616f64.to_ne_bytes()).is_err());
    }

    #[test]
    fn the_map_goes_both_ways_and_takes_the_first() {
        let configuration =
            r#"{"data_type": "uint8", "scalar_map": {"encode": [["NaN", 255], [0, 7], [-0.0, 8]], "decode": [[255, "NaN"]]}}"#;
        let codec = make(configuration, &DataType::Float32, 4).unwrap();
        let nan = f32::from_bits(0x7fc0_1234);
        let encoded = codec.encode(&bytes_of(&[nan, 0.0, -0.0, 3.0], f32::to_ne_bytes)).unwrap();
        assert_eq!(encoded, [255, 7, 7, 3]);
        let decoded = codec.decode(&encoded).unwrap();
        assert_eq!(decoded, bytes_of(&[f32::NAN, 7.0, 7.0, 3.0], f32::to_ne_bytes));
        assert_eq!(codec.encoded_array().fill_value.as_bytes(), [7]);
    }

    #[test]
    fn the_fill_value_must_be_castable() {
        let fill = FillValue::from_bytes(f32::NAN.to_ne_bytes(), &DataType::Float32).unwrap();
        let codec = ArrayCodec::with_fill(NAME, r#"{"data_type": "uint8"}"#, &DataType::Float32, &[1], fill).unwrap();
        assert!(codec.encoded().is_err());
        let fill = FillValue::from_bytes(0.3f32.to_ne_bytes(), &DataType::Float32).unwrap();
        let codec = ArrayCodec::with_fill(NAME, r#"{"data_type": "uint8"}"#, &DataType::Float32, &[1], fill).unwrap();
        assert_eq!(codec.encoded_array().fill_value.as_bytes(), [0]);
    }

    #[test]
    fn configurations_that_do_not_fit_are_refused() {
        for (configuration, data_type) in [
            (r#"{"data_type": "bool"}"#, DataType::Int8),
            (r#"{"data_type": "int8"}"#, DataType::Bool),
            (r#"{"data_type": "complex64"}"#, DataType::Int8),
            (r#"{"data_type": "float32", "out_of_range": "wrap"}"#, DataType::Float64),
            (r#"{"data_type": "int8", "out_of_range": "error"}"#, DataType::Float64),
            (r#"{"data_type": "int8", "rounding": "up"}"#, DataType::Float64),
            (r#"{"data_type": "int8", "x": 1}"#, DataType::Float64),
            (r#"{"data_type": "int8", "scalar_map": {"encode": [[1, 300]]}}"#, DataType::Float64),
            (r#"{"data_type": "int8", "scalar_map": {"encode": [[1]]}}"#, DataType::Float64),
            ("{}", DataType::Float64),
        ] {
            assert!(make(configuration, &data_type, 1).is_err(), "{configuration}");
        }
    }

    proptest! {
        #[test]
        fn integers_between_all_types(value in any::<i64>(), shift in 0u32..64) {
            let value = value >> shift;
            let types = [DataType::Int2, DataType::Int4, DataType::Int8, DataType::UInt8, DataType::Int16, DataType::UInt16, DataType::UInt32, DataType::Int64, DataType::UInt64];
            for to in &types {
                let (least, most) = Number::of(to).unwrap().range().unwrap();
                let codec = make(&format!("{{\"data_type\": \"{to}\"}}"), &DataType::Int64, 1).unwrap();
                let encoded = codec.encode(&value.to_ne_bytes());
                prop_assert_eq!(encoded.is_ok(), (least..=most).contains(&i128::from(value)));
                if let Ok(encoded) = encoded {
                    prop_assert_eq!(codec.decode(&encoded).unwrap(), value.to_ne_bytes());
                }
            }
        }
    }
}

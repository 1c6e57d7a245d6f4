//! `numcodecs.delta`: the differences of neighbours.
//!
//! * Specification: the filter [`delta`](https://numcodecs.readthedocs.io/en/stable/filter/delta.html) of numcodecs, in version 2 by that
//!   id.
//! * Configuration: `dtype`, the numpy type of the elements, which defaults to the array's data type; `astype`, that of the stored
//!   differences, which defaults to `dtype`.
//! * Data types: integers of 8 to 64 bits, `float16`, `float32`, `float64`, `complex64`, `complex128`; times as the integers they are.
//!
//! The chunk is taken flat, in C order. The first element is stored as it is, every other as its difference from the one before, computed
//! in `dtype` (integers wrap around) and then converted to `astype` without checks. Decoding sums up in the type that numpy computes with
//! for `dtype` and `astype`, and converts each sum to `dtype`. Differences of floating point numbers are rounded, so that decoding gives
//! the original only nearly, as in numcodecs.
//!
//! A first element that an integer `astype` does not hold is an error, as with the numpy of today; nothing behind it could be decoded.
//!
//! Booleans are refused: what numcodecs writes of them it cannot read back.

use serde::Deserialize;
use zarr_codec_api::{CodecError, HostProvider};
use zarr_meta::DataType;

use crate::config;
use crate::filter::{self, Filter};
use crate::number::{Format, Number, Numpy, cast, load_ints};

const NAME: &str = "numcodecs.delta";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    dtype: Option<String>,
    astype: Option<String>,
}

pub(crate) fn register(provider: HostProvider) -> HostProvider {
    provider.with(NAME, |codec, decoded| {
        let config: Config = config::read(codec)?;
        let (decoded, encoded) = filter::numpy_types(codec, decoded, config.dtype.as_deref(), config.astype.as_deref())?;
        if decoded.number == Number::Bool || encoded.number == Number::Bool {
            return Err(CodecError::unsupported(NAME, "differences of booleans cannot be decoded"));
        }
        Ok(filter::codec(Delta { decoded, encoded }))
    })
}

#[derive(Debug)]
struct Delta {
    decoded: Numpy,
    encoded: Numpy,
}

/// Calls `$run` for the type of the numbers, with the arithmetic that it has.
macro_rules! for_number {
    ($number:expr, $run:ident, $int_operation:ident, $float_operation:expr, $lag:expr, $($argument:expr),*) => {{
        match $number {
            Number::Float(Format::F64) => $run($($argument),*, f64::from_ne_bytes, f64::to_ne_bytes, $float_operation, $lag),
            Number::Float(Format::F32) => $run($($argument),*, f32::from_ne_bytes, f32::to_ne_bytes, $float_operation, $lag),
            Number::Float(format) => {
                let load = |bytes| format.value(u64::from(u16::from_ne_bytes(bytes)));
                $run($($argument),*, load, |value| half_bytes(format, value), $float_operation, $lag)
            }
            Number::Int { bits: 64, .. } => $run($($argument),*, u64::from_ne_bytes, u64::to_ne_bytes, u64::$int_operation, $lag),
            Number::Int { bits: 32, .. } => $run($($argument),*, u32::from_ne_bytes, u32::to_ne_bytes, u32::$int_operation, $lag),
            Number::Int { bits: 16, .. } => $run($($argument),*, u16::from_ne_bytes, u16::to_ne_bytes, u16::$int_operation, $lag),
            _ => $run($($argument),*, u8::from_ne_bytes, u8::to_ne_bytes, u8::$int_operation, $lag),
        }
    }};
}

/// A half precision number, from the exact result of one operation on two of them.
#[expect(clippy::cast_possible_truncation, reason = "the format has 16 bits")]
fn half_bytes(format: Format, value: f64) -> [u8; 2] {
    let rounded = format.round(value, crate::number::Rounding::NearestEven).unwrap_or_else(|out| format.clamped(out));
    (rounded as u16).to_ne_bytes()
}

/// Stores the difference of each number and the one `lag` (1 or 2) before it.
fn differences<T: Copy, const N: usize>(
    decoded: &[u8],
    output: &mut [u8],
    load: impl Fn([u8; N]) -> T,
    store: impl Fn(T) -> [u8; N],
    subtract: impl Fn(T, T) -> T,
    lag: usize,
) {
    let (decoded, output) = (decoded.as_chunks().0, output.as_chunks_mut().0);
    for (from, to) in decoded.iter().zip(output.iter_mut()).take(lag) {
        *to = *from;
    }
    let pairs = decoded.iter().zip(decoded.iter().skip(lag));
    for ((before, from), to) in pairs.zip(output.iter_mut().skip(lag)) {
        *to = store(subtract(load(*from), load(*before)));
    }
}

/// Adds to each number the one `lag` (1 or 2) before it, from the front.
fn sum_up<T: Copy, const N: usize>(
    decoded: &mut [u8],
    load: impl Fn([u8; N]) -> T,
    store: impl Fn(T) -> [u8; N],
    add: impl Fn(T, T) -> T,
    lag: usize,
) {
    let mut numbers = decoded.as_chunks_mut().0.iter_mut();
    let mut before = [None; 2];
    for slot in before.iter_mut().take(lag) {
        *slot = numbers.next().map(|bytes| load(*bytes));
    }
    let [Some(mut first), second] = before else { return };
    match second {
        None => {
            for bytes in numbers {
                *bytes = store(add(first, load(*bytes)));
                first = load(*bytes);
            }
        }
        Some(mut second) => {
            for bytes in numbers {
                *bytes = store(add(first, load(*bytes)));
                (first, second) = (second, load(*bytes));
            }
        }
    }
}

impl Filter for Delta {
    fn encoded_type(&self) -> &DataType {
        &self.encoded.data_type
    }

    fn encode(&self, decoded: &[u8], encoded: &mut [u8]) -> Result<(), CodecError> {
        if let Some((least, most)) = self.encoded.number.range()
            && let Some(first) = decoded.get(..self.decoded.size())
            && matches!(self.decoded.number, Number::Int { .. })
        {
            let mut value = [0];
            load_ints(self.decoded.number, first, &mut value);
            let [value] = value;
            let value = self.decoded.number.exact(value);
            if !(least..=most).contains(&value) {
                return Err(CodecError::parameter(NAME, format!("the first element, {value}, does not fit the encoded type")));
            }
        }
        self.encode_fill(decoded, encoded)
    }

    /// The fill value stands for all elements: what it becomes as the first one need not fit.
    fn encode_fill(&self, decoded: &[u8], encoded: &mut [u8]) -> Result<(), CodecError> {
        let lag = self.decoded.components;
        if (self.decoded.number, lag) == (self.encoded.number, self.encoded.components) {
            for_number!(self.decoded.number, differences, wrapping_sub, |a, b| a - b, lag, decoded, encoded);
        } else {
            let mut output = vec![0; decoded.len()];
            for_number!(self.decoded.number, differences, wrapping_sub, |a, b| a - b, lag, decoded, &mut output);
            cast(&self.decoded, &output, &self.encoded, encoded);
        }
        Ok(())
    }

    fn decode(&self, encoded: &[u8], decoded: &mut [u8]) -> Result<(), CodecError> {
        let (number, components) = self.decoded.promoted(&self.encoded);
        // Integers wrap around alike in any width.
        let is_exact = matches!((self.decoded.number, number), (Number::Int { .. }, Number::Int { .. }));
        if is_exact || (number, components) == (self.decoded.number, self.decoded.components) {
            cast(&self.encoded, encoded, &self.decoded, decoded);
            for_number!(self.decoded.number, sum_up, wrapping_add, |a, b| a + b, self.decoded.components, decoded);
        } else {
            let wide = Numpy { data_type: self.encoded.data_type.clone(), number, components };
            let elements = encoded.len().checked_div(self.encoded.size()).unwrap_or(0);
            let mut sums = vec![0; elements.saturating_mul(wide.size())];
            cast(&self.encoded, encoded, &wide, &mut sums);
            for_number!(number, sum_up, wrapping_add, |a, b| a + b, components, &mut sums);
            cast(&wide, &sums, &self.decoded, decoded);
        }
        Ok(())
    }

    fn is_elementwise(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use zarr_meta::FillValue;

    use super::*;
    use crate::testing::{ArrayCodec, bytes_of};

    #[test]
    fn the_example_of_numcodecs() {
        let fill = FillValue::from_bytes(9i16.to_ne_bytes(), &DataType::Int16).unwrap();
        let codec = ArrayCodec::with_fill(NAME, r#"{"dtype": "<i2", "astype": "|i1"}"#, &DataType::Int16, &[2, 2], fill).unwrap();
        let values = bytes_of(&[100i16, 102, 101, 104], i16::to_ne_bytes);
        assert_eq!(codec.encode(&values).unwrap(), [100, 2, 255, 3]);
        assert_eq!(codec.decode(&[100, 2, 255, 3]).unwrap(), values);
        assert_eq!(codec.encoded_array().data_type, DataType::Int8);
        assert_eq!(codec.encoded_array().fill_value.as_bytes(), [9]);
    }

    #[test]
    fn the_first_element_must_fit() {
        let fill = FillValue::from_bytes(300i16.to_ne_bytes(), &DataType::Int16).unwrap();
        let codec = ArrayCodec::with_fill(NAME, r#"{"astype": "|i1"}"#, &DataType::Int16, &[2], fill).unwrap();
        assert!(codec.encode(&bytes_of(&[300i16, 301], i16::to_ne_bytes)).is_err());
        assert_eq!(codec.encoded_array().fill_value.as_bytes(), [44]);
    }

    #[test]
    fn negative_zero_stays_in_front() {
        let codec = ArrayCodec::new(NAME, r#"{"dtype": "<f4"}"#, &DataType::Float32, &[2]);
        let values = bytes_of(&[-0.0f32, -0.0], f32::to_ne_bytes);
        let encoded = codec.encode(&values).unwrap();
        assert_eq!(encoded, bytes_of(&[-0.0f32, 0.0], f32::to_ne_bytes));
        assert_eq!(codec.decode(&encoded).unwrap(), bytes_of(&[-0.0f32, 0.0], f32::to_ne_bytes));
    }

    #[test]
    fn times_are_integers() {
        let data_type = Numpy::parse("<M8[s]").unwrap().data_type;
        let codec = ArrayCodec::new(NAME, r#"{"dtype": "<i8", "astype": "<i4"}"#, &data_type, &[3]);
        let values = bytes_of(&[5i64, 7, 4], i64::to_ne_bytes);
        let encoded = codec.encode(&values).unwrap();
        assert_eq!(encoded, bytes_of(&[5i32, 2, -3], i32::to_ne_bytes));
        assert_eq!(codec.decode(&encoded).unwrap(), values);
    }

    #[test]
    fn booleans_and_unknown_types_are_refused() {
        for (configuration, data_type) in [
            ("{}", DataType::Bool),
            (r#"{"dtype": "O"}"#, DataType::Int8),
            ("{}", DataType::BFloat16),
            (r#"{"dtype": "<i4"}"#, DataType::Int8),
        ] {
            let fill = FillValue::default_for(&data_type);
            assert!(ArrayCodec::with_fill(NAME, configuration, &data_type, &[1], fill).is_err());
        }
    }

    proptest! {
        #[test]
        fn integers_come_back(values in prop::collection::vec(any::<i32>(), 0..1200)) {
            let codec = ArrayCodec::new(NAME, r#"{"dtype": "<i4"}"#, &DataType::Int32, &[values.len() as u64]);
            let bytes = bytes_of(&values, i32::to_ne_bytes);
            prop_assert_eq!(codec.decode(&codec.encode(&bytes).unwrap()).unwrap(), bytes);
        }

        #[test]
        fn small_whole_complex_numbers_come_back(values in prop::collection::vec(-1000i16..1000, 0..40)) {
            let parts: Vec<f32> = values.iter().chain(&values).map(|v| f32::from(*v)).collect();
            let codec = ArrayCodec::new(NAME, r#"{"astype": "<c16"}"#, &DataType::Complex64, &[values.len() as u64]);
            let bytes = bytes_of(&parts, f32::to_ne_bytes);
            prop_assert_eq!(codec.decode(&codec.encode(&bytes).unwrap()).unwrap(), bytes);
        }
    }
}

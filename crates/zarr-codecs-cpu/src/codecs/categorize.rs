//! `numcodecs.categorize`: a few strings as small integers.
//!
//! * Specification: the filter [`categorize`](https://numcodecs.readthedocs.io/en/stable/filter/categorize.html) of numcodecs, in version 2 by
//!   that id; no writer has it in version 3.
//! * Configuration: `labels`, the strings; `dtype`, the numpy type of the elements, `|O` or `<U..`; `astype`, the integers that are stored, `|u1`
//!   unless it is given.
//! * Data types: `string`, for `|O`, as an array→bytes codec; `fixed_length_utf32`, for `<U..`, as an array→array codec.
//!
//! A string becomes the place of its label, counted from 1, and 0 if it has none. Numbers without a label become empty strings. Of equal labels
//! the last one counts for encoding. As numpy does, labels are cut to the length of the type, and an element has no zeros at its end.

use std::collections::HashMap;

use serde::Deserialize;
use zarr_codec_api::{
    ArrayRepresentation, ArrayToBytes, ByteLen, CodecError, HostProvider, Limits, Representation, SimpleCodec, VariableData,
};
use zarr_meta::{DataType, Extension};

use crate::config;
use crate::filter::{self, Filter};
use crate::number::{Number, Numpy};

const NAME: &str = "numcodecs.categorize";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    labels: Vec<String>,
    dtype: String,
    #[serde(default = "one_byte")]
    astype: String,
}

fn one_byte() -> String {
    "|u1".to_owned()
}

pub(crate) fn register(provider: HostProvider) -> HostProvider {
    provider.with(NAME, make)
}

fn make(codec: &Extension, decoded: &Representation) -> Result<SimpleCodec, CodecError> {
    let config: Config = config::read(codec)?;
    let data_type = &filter::array(codec, decoded)?.data_type;
    let no_integers = || CodecError::unsupported(NAME, format!("{:?} is no type of integers", config.astype));
    let astype = Numpy::parse(&config.astype).ok_or_else(no_integers)?;
    let (Number::Int { .. }, Some((_, largest))) = (astype.number, astype.number.range()) else { return Err(no_integers()) };
    let count = i128::try_from(config.labels.len()).unwrap_or(i128::MAX);
    if count > largest {
        return Err(CodecError::metadata(NAME, format!("{count} labels are more than {} can number", config.astype)));
    }
    let kind = config.dtype.trim_start_matches(['<', '>', '|', '=']);
    match data_type {
        DataType::String if kind.starts_with('O') || kind == "object" => {
            let codes = Codes { labels: config.labels.into_iter().map(String::into_bytes).collect(), width: astype.size() };
            let big_endian = config.astype.starts_with('>') && astype.size() > 1;
            Ok(SimpleCodec::array_to_bytes(Objects { places: codes.places(), codes, big_endian }))
        }
        DataType::FixedLengthUtf32 { length_bytes: 1.. } if kind.starts_with('U') => {
            let size = data_type.fixed_size().unwrap_or(0);
            let fit = |label: &String| {
                let mut element: Vec<u8> = label.trim_end_matches('\0').chars().flat_map(|c| u32::from(c).to_ne_bytes()).collect();
                // Kept as long as it is for comparing: a label that was cut is no element.
                element.resize(element.len().max(size), 0);
                element
            };
            let codes = Codes { labels: config.labels.iter().map(fit).collect(), width: astype.size() };
            Ok(filter::codec(Fixed { places: codes.places(), codes, size, encoded: astype.data_type }))
        }
        other => Err(CodecError::metadata(NAME, format!("elements of type {other} are none of {:?}, as dtype has it", config.dtype))),
    }
}

/// The labels, as elements, and their numbers.
#[derive(Debug)]
struct Codes {
    labels: Vec<Vec<u8>>,
    /// Bytes of a number.
    width: usize,
}

impl Codes {
    /// The number of each label.
    fn places(&self) -> HashMap<Vec<u8>, u64> {
        self.labels.iter().cloned().zip(1..).collect()
    }

    /// The label of a number in little-endian order.
    fn label(&self, number: &[u8]) -> Option<&[u8]> {
        let mut bytes = [0; 8];
        bytes.get_mut(..number.len())?.copy_from_slice(number);
        // A negative number is beyond all labels in this form, as there are fewer than the largest positive one.
        let place = usize::try_from(u64::from_le_bytes(bytes)).ok()?.checked_sub(1)?;
        self.labels.get(place).map(Vec::as_slice)
    }
}

/// Strings of any length.
#[derive(Debug)]
struct Objects {
    codes: Codes,
    places: HashMap<Vec<u8>, u64>,
    big_endian: bool,
}

impl Objects {
    fn len(&self, representation: &ArrayRepresentation) -> Result<usize, CodecError> {
        let elements = representation.elements()?;
        elements.checked_mul(self.codes.width).ok_or_else(|| CodecError::limit(NAME, usize::MAX))
    }
}

fn fixed() -> CodecError {
    CodecError::parameter(NAME, "elements of variable length are asked for as if their length were fixed")
}

impl ArrayToBytes for Objects {
    fn encoded_len(&self, decoded: &ArrayRepresentation, _: &Limits) -> Result<ByteLen, CodecError> {
        Ok(ByteLen::Exact(u64::try_from(self.len(decoded)?).unwrap_or(u64::MAX)))
    }

    fn decode(&self, _: &ArrayRepresentation, _: &[u8], _: &mut [u8]) -> Result<(), CodecError> {
        Err(fixed())
    }

    fn encode(&self, _: &ArrayRepresentation, _: &[u8], _: &mut Vec<u8>) -> Result<(), CodecError> {
        Err(fixed())
    }

    fn decode_variable(
        &self,
        representation: &ArrayRepresentation,
        encoded: &[u8],
        decoded: &mut VariableData,
        limit: usize,
    ) -> Result<(), CodecError> {
        let expected = self.len(representation)?;
        if encoded.len() != expected {
            return Err(CodecError::size(NAME, expected, encoded.len()));
        }
        let mut number = [0; 8];
        for stored in encoded.chunks_exact(self.codes.width) {
            let Some(number) = number.get_mut(..stored.len()) else { break };
            number.copy_from_slice(stored);
            if self.big_endian {
                number.reverse();
            }
            let label = self.codes.label(number).unwrap_or_default();
            if decoded.byte_len().checked_add(label.len()).is_none_or(|len| len > limit) {
                return Err(CodecError::limit(NAME, limit));
            }
            decoded.push(label);
        }
        Ok(())
    }

    fn encode_variable(
        &self,
        representation: &ArrayRepresentation,
        decoded: &VariableData,
        encoded: &mut Vec<u8>,
    ) -> Result<(), CodecError> {
        let expected = representation.elements()?;
        if decoded.len() != expected {
            return Err(CodecError::parameter(NAME, format!("expected {expected} elements, found {}", decoded.len())));
        }
        encoded.reserve(self.len(representation)?);
        for element in decoded.iter() {
            let mut number = self.places.get(element).copied().unwrap_or(0).to_le_bytes();
            let Some(number) = number.get_mut(..self.codes.width) else { break };
            if self.big_endian {
                number.reverse();
            }
            encoded.extend_from_slice(number);
        }
        Ok(())
    }
}

/// Strings of one length.
#[derive(Debug)]
struct Fixed {
    codes: Codes,
    places: HashMap<Vec<u8>, u64>,
    /// Bytes of an element; not 0.
    size: usize,
    encoded: DataType,
}

impl Filter for Fixed {
    fn encoded_type(&self) -> &DataType {
        &self.encoded
    }

    fn encode(&self, decoded: &[u8], encoded: &mut [u8]) -> Result<(), CodecError> {
        for (element, number) in decoded.chunks_exact(self.size).zip(encoded.chunks_exact_mut(self.codes.width)) {
            let place = self.places.get(element).copied().unwrap_or(0).to_le_bytes();
            number.copy_from_slice(place.get(..number.len()).unwrap_or_default());
            if cfg!(target_endian = "big") {
                number.reverse();
            }
        }
        Ok(())
    }

    fn decode(&self, encoded: &[u8], decoded: &mut [u8]) -> Result<(), CodecError> {
        let mut little = [0; 8];
        for (number, element) in encoded.chunks_exact(self.codes.width).zip(decoded.chunks_exact_mut(self.size)) {
            let Some(little) = little.get_mut(..number.len()) else { break };
            little.copy_from_slice(number);
            if cfg!(target_endian = "big") {
                little.reverse();
            }
            match self.codes.label(little).and_then(|label| label.get(..element.len())) {
                Some(label) => element.copy_from_slice(label),
                None => element.fill(0),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use zarr_meta::FillValue;

    use super::*;
    use crate::testing::{ArrayCodec, bytes_of};

    const LABELS: &str = r#""labels": ["female", "male", "\u00e9"]"#;

    fn objects(astype: &str, count: u64) -> ArrayCodec {
        ArrayCodec::new(NAME, &format!(r#"{{{LABELS}, "dtype": "|O", "astype": "{astype}"}}"#), &DataType::String, &[count])
    }

    fn utf32(text: &str, length: usize) -> Vec<u8> {
        let mut points: Vec<u32> = text.chars().map(u32::from).collect();
        points.resize(length, 0);
        bytes_of(&points, u32::to_ne_bytes)
    }

    #[test]
    fn objects_become_numbers() {
        let strings: VariableData = ["male", "female", "unexpected", "", "\u{e9}"].into_iter().collect();
        let known: VariableData = ["male", "female", "", "", "\u{e9}"].into_iter().collect();
        for (astype, encoded) in
            [("|u1", &[2u8, 1, 0, 0, 3][..]), ("<i2", &[2, 0, 1, 0, 0, 0, 0, 0, 3, 0]), (">u2", &[0, 2, 0, 1, 0, 0, 0, 0, 0, 3])]
        {
            let codec = objects(astype, 5);
            assert_eq!(codec.encode_variable(&strings).unwrap(), encoded);
            assert_eq!(codec.decode_variable(encoded, 14).unwrap(), known);
            assert!(codec.decode_variable(encoded, 11).is_err());
            assert!(codec.decode_variable(&encoded[1..], 100).is_err());
        }
        let strange: VariableData = ["", ""].into_iter().collect();
        assert_eq!(objects("|i1", 2).decode_variable(&[255, 4], 100).unwrap(), strange);
    }

    #[test]
    fn strings_of_one_length_become_numbers() {
        let data_type = DataType::FixedLengthUtf32 { length_bytes: 16 };
        let fill = FillValue::from_bytes(utf32("male", 4), &data_type).unwrap();
        let configuration = format!(r#"{{{LABELS}, "dtype": "<U4", "astype": "<i2"}}"#);
        let codec = ArrayCodec::with_fill(NAME, &configuration, &data_type, &[4], fill).unwrap();
        assert_eq!(codec.encoded_array().data_type, DataType::Int16);
        assert_eq!(codec.encoded_array().fill_value.as_bytes(), 2i16.to_ne_bytes());
        let strings = ["male", "fema", "\u{e9}", "mal"].map(|text| utf32(text, 4)).concat();
        // As numpy has it, the label is cut, and then no longer equal to what it decodes to.
        assert_eq!(codec.encode(&strings).unwrap(), bytes_of(&[2i16, 0, 3, 0], i16::to_ne_bytes));
        let decoded = codec.decode(&bytes_of(&[1i16, 2, 3, -1], i16::to_ne_bytes)).unwrap();
        assert_eq!(decoded, ["fema", "male", "\u{e9}", ""].map(|text| utf32(text, 4)).concat());
    }

    #[test]
    fn configurations_that_cannot_be() {
        let many = format!(r#"{{"labels": [{}"x"], "dtype": "|O"}}"#, "\"y\",".repeat(255));
        for (configuration, data_type) in [
            (many.as_str(), DataType::String),
            (r#"{"labels": ["a"], "dtype": "|O", "astype": "<f4"}"#, DataType::String),
            (r#"{"labels": ["a"], "dtype": "|O", "astype": "|b1"}"#, DataType::String),
            (r#"{"labels": ["a"], "dtype": "<U2"}"#, DataType::String),
            (r#"{"labels": ["a"], "dtype": "|O"}"#, DataType::FixedLengthUtf32 { length_bytes: 8 }),
            (r#"{"labels": ["a"], "dtype": "<i2"}"#, DataType::Int16),
            // An element of no bytes is none that numbers could be read of.
            (r#"{"labels": ["a"], "dtype": "<U0"}"#, DataType::FixedLengthUtf32 { length_bytes: 0 }),
            (r#"{"dtype": "|O"}"#, DataType::String),
        ] {
            let fill = FillValue::default_for(&data_type);
            assert!(ArrayCodec::with_fill(NAME, configuration, &data_type, &[3], fill).is_err(), "{configuration}");
        }
    }
}

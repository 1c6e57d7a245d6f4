//! Fill values to JSON. The bytes are known to be an element of the type.

use super::float::Format;
use super::{NOT_A_TIME, swap_bytes};
use crate::data_type::sub_array_len;
use crate::{DataType, Endianness, Json, JsonObject, base64};

/// The form of version 3.
pub(super) fn write(bytes: &[u8], data_type: &DataType) -> Json {
    if let Some(component) = data_type.complex_component() {
        let (real, imaginary) = bytes.split_at(bytes.len() / 2);
        return [write(real, &component), write(imaginary, &component)].into_iter().collect();
    }
    if let Some(format) = Format::of(data_type) {
        return format.to_json(unsigned(bytes));
    }
    match data_type {
        DataType::Bool => Json::Bool(bytes.iter().any(|&byte| byte != 0)),
        DataType::NumpyDateTime64 { .. } | DataType::NumpyTimeDelta64 { .. } => {
            if bytes == NOT_A_TIME {
                "NaT".into()
            } else {
                signed(bytes).into()
            }
        }
        DataType::Raw { .. } => bytes.iter().copied().collect(),
        DataType::NullTerminatedBytes { .. } => base64::encode(without_padding(bytes)).into(),
        DataType::Bytes => base64::encode(bytes).into(),
        DataType::String => String::from_utf8_lossy(bytes).into_owned().into(),
        DataType::FixedLengthUtf32 { .. } => utf32(bytes).into(),
        DataType::Struct(fields) => {
            let mut rest = bytes;
            let mut object = Vec::with_capacity(fields.len());
            for field in fields {
                let size = field.data_type.fixed_size().unwrap_or(0).min(rest.len());
                let (head, tail) = rest.split_at(size);
                object.push((field.name.as_str(), write(head, &field.data_type)));
                rest = tail;
            }
            Json::Object(object.into_iter().collect())
        }
        DataType::SubArray { element, shape } => {
            // As a struct with a field for each element: that is how the type itself is written.
            let size = element.fixed_size().unwrap_or(0).max(1);
            let elements = bytes.chunks(size).take(sub_array_len(shape));
            let object: JsonObject = elements.enumerate().map(|(index, part)| (index.to_string(), write(part, element))).collect();
            Json::Object(object)
        }
        integers if integers.is_signed_integer() => signed(bytes).into(),
        _ => unsigned(bytes).into(),
    }
}

/// The form of version 2: base64 for bytes and structs, names for floats that are not finite.
pub(super) fn write_v2(bytes: &[u8], data_type: &DataType, endianness: Endianness) -> Json {
    match data_type {
        // In full: tensorstore refuses strings cut off at their padding.
        DataType::Raw { .. } | DataType::NullTerminatedBytes { .. } => base64::encode(bytes).into(),
        DataType::Struct(_) | DataType::SubArray { .. } => {
            let mut bytes = bytes.to_vec();
            if endianness != Endianness::NATIVE {
                swap_bytes(data_type, &mut bytes);
            }
            base64::encode(&bytes).into()
        }
        // Readers of version 2 know integers alone.
        DataType::NumpyDateTime64 { .. } | DataType::NumpyTimeDelta64 { .. } => signed(bytes).into(),
        other => write(bytes, other),
    }
}

/// The bytes as an unsigned integer in the byte order of the machine; at most eight of them.
fn unsigned(bytes: &[u8]) -> u64 {
    let fold = |value: u64, byte: &u8| value << 8 | u64::from(*byte);
    match Endianness::NATIVE {
        Endianness::Little => bytes.iter().rev().fold(0, fold),
        Endianness::Big => bytes.iter().fold(0, fold),
    }
}

fn signed(bytes: &[u8]) -> i64 {
    let value = unsigned(bytes);
    let unused = 64 - 8 * u32::try_from(bytes.len().clamp(1, 8)).unwrap_or(8);
    // Shifting up and back down with the sign extends it.
    (value << unused).cast_signed() >> unused
}

fn without_padding(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    bytes.get(..end).unwrap_or(bytes)
}

/// The string, without the zeros at its end. Code points that Unicode lacks become U+FFFD.
fn utf32(bytes: &[u8]) -> String {
    let text: String = bytes
        .chunks_exact(4)
        .map(|unit| u32::try_from(unsigned(unit)).ok().and_then(char::from_u32).unwrap_or(char::REPLACEMENT_CHARACTER))
        .collect();
    text.trim_end_matches('\0').to_owned()
}

//! Fill values from JSON.

use super::float::Format;
use super::{FillValue, NOT_A_TIME, swap_bytes};
use crate::data_type::MAX_ELEMENT_SIZE;
use crate::{DataType, ElementSize, Endianness, Json, MetadataError, base64, read};

/// Whose rules a fill value follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    V3,
    /// Version 2, where the raw bytes of structs are in the byte order of the data type.
    V2(Endianness),
}

impl Dialect {
    fn is_v2(self) -> bool {
        matches!(self, Self::V2(_))
    }

    /// The byte order of structs in base64. Version 3's `structured` was written on
    /// little-endian machines.
    fn byte_order(self) -> Endianness {
        match self {
            Self::V3 => Endianness::Little,
            Self::V2(endianness) => endianness,
        }
    }
}

pub(super) fn read(value: &Json, data_type: &DataType, dialect: Dialect) -> Result<FillValue, MetadataError> {
    match data_type.size() {
        ElementSize::Variable => variable(value, data_type, dialect).map(FillValue::Variable),
        ElementSize::Fixed(size) if size <= MAX_ELEMENT_SIZE => {
            let mut bytes = Vec::new();
            fixed(value, data_type, dialect, &mut bytes)?;
            Ok(FillValue::Fixed(bytes.into()))
        }
        ElementSize::Fixed(_) => Err(MetadataError::unsupported(format!("elements of more than {MAX_ELEMENT_SIZE} bytes"))),
    }
}

fn variable(value: &Json, data_type: &DataType, dialect: Dialect) -> Result<Box<[u8]>, MetadataError> {
    match (data_type, value) {
        (DataType::String, Json::String(text)) => Ok(text.as_bytes().into()),
        (DataType::Bytes, Json::String(text)) => {
            base64::decode(text).map(Into::into).ok_or_else(|| MetadataError::unexpected("base64", value))
        }
        (DataType::Bytes, Json::Array(_)) => byte_list(value).map(Into::into),
        // Writers of version 2 put zero for any type.
        (_, Json::Number(number)) if dialect.is_v2() && number.whole() == Some(0) => Ok(Box::default()),
        (DataType::Bytes, _) => Err(MetadataError::unexpected("base64 or an array of bytes", value)),
        _ => Err(MetadataError::unexpected("a string", value)),
    }
}

/// Appends the bytes of one element of fixed size.
fn fixed(value: &Json, data_type: &DataType, dialect: Dialect, out: &mut Vec<u8>) -> Result<(), MetadataError> {
    if let Some(component) = data_type.complex_component() {
        return complex(value, &component, dialect, out);
    }
    if let Some(format) = Format::of(data_type) {
        push_integer(format.parse(value)?, format.bytes(), out);
        return Ok(());
    }
    let size = data_type.fixed_size().unwrap_or(0);
    if dialect.is_v2() && is_zero(value) && !matches!(data_type, DataType::Bool) {
        // Writers of version 2 put zero for any type.
        out.resize(out.len() + size, 0);
        return Ok(());
    }
    match data_type {
        DataType::Bool => out.push(boolean(value, dialect)?.into()),
        DataType::NumpyDateTime64 { .. } | DataType::NumpyTimeDelta64 { .. } => match value {
            Json::String(text) if text == "NaT" => out.extend_from_slice(&NOT_A_TIME),
            _ => integer(value, true, 64, dialect, out).map_err(|_| MetadataError::unexpected("a 64-bit integer or \"NaT\"", value))?,
        },
        DataType::Raw { .. } => match value {
            Json::Array(_) => exactly(byte_list(value)?, size, value, out)?,
            Json::String(_) => padded(value, size, out)?,
            _ => return Err(MetadataError::unexpected("an array of bytes or base64", value)),
        },
        DataType::NullTerminatedBytes { .. } => padded(value, size, out)?,
        DataType::FixedLengthUtf32 { .. } => utf32(value, size, out)?,
        DataType::Struct(fields) => match value {
            Json::Object(object) => {
                for field in fields {
                    read::required(object, &field.name, |value| fixed(value, &field.data_type, dialect, out))?;
                }
                let names: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
                read::only(object, &names)?;
            }
            _ => packed(value, data_type, size, dialect, out)?,
        },
        DataType::SubArray { element, shape } => match value {
            Json::Array(elements) => sub_array(elements, element, shape, value, dialect, out)?,
            _ => packed(value, data_type, size, dialect, out)?,
        },
        integers => {
            let bits = integers.bit_width().unwrap_or(8);
            integer(value, integers.is_signed_integer(), bits, dialect, out)?;
        }
    }
    Ok(())
}

fn is_zero(value: &Json) -> bool {
    value.as_number().is_some_and(|number| number.whole() == Some(0))
}

fn boolean(value: &Json, dialect: Dialect) -> Result<bool, MetadataError> {
    match value {
        Json::Bool(value) => Ok(*value),
        Json::Number(number) if dialect.is_v2() => match number.whole() {
            Some(0) => Ok(false),
            Some(1) => Ok(true),
            _ => Err(MetadataError::unexpected("true, false, 1 or 0", value)),
        },
        _ => Err(MetadataError::unexpected("true or false", value)),
    }
}

/// A whole number; `1.0` and `1e0` are taken for `1`.
fn integer(value: &Json, signed: bool, bits: u32, dialect: Dialect, out: &mut Vec<u8>) -> Result<(), MetadataError> {
    let (least, most) = if signed { (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1) } else { (0, (1i128 << bits) - 1) };
    let number = match value {
        Json::Number(number) => number.whole(),
        Json::String(text) if dialect.is_v2() => text.parse().ok(),
        _ => None,
    };
    let number = number
        .filter(|number| (least..=most).contains(number))
        .ok_or_else(|| MetadataError::unexpected(format!("an integer in [{least}, {most}]"), value))?;
    // In two's complement the low bytes of the wider integer are the narrower one, sign included.
    let size = usize::try_from(bits.div_ceil(8)).unwrap_or(1);
    let low = number.to_le_bytes();
    out.extend(in_native_order(low.get(..size).unwrap_or(&low)));
    Ok(())
}

/// Appends the low `size` bytes of `bits` in the byte order of the machine.
fn push_integer(bits: u64, size: usize, out: &mut Vec<u8>) {
    let low = bits.to_le_bytes();
    out.extend(in_native_order(low.get(..size).unwrap_or(&low)));
}

fn in_native_order(little_endian: &[u8]) -> Vec<u8> {
    let mut bytes = little_endian.to_vec();
    if Endianness::NATIVE == Endianness::Big {
        bytes.reverse();
    }
    bytes
}

fn complex(value: &Json, component: &DataType, dialect: Dialect, out: &mut Vec<u8>) -> Result<(), MetadataError> {
    match value {
        Json::Array(pair) if pair.len() == 2 => {
            for (index, part) in pair.iter().enumerate() {
                fixed(part, component, dialect, out).map_err(|error| error.within_index(index))?;
            }
            Ok(())
        }
        Json::Number(_) if dialect.is_v2() => {
            fixed(value, component, dialect, out)?;
            fixed(&Json::from(0), component, dialect, out)
        }
        _ => Err(MetadataError::unexpected("a pair of a real and an imaginary part", value)),
    }
}

fn byte_list(value: &Json) -> Result<Vec<u8>, MetadataError> {
    read::list(value, "an array of bytes", |byte| {
        byte.as_u64().and_then(|byte| u8::try_from(byte).ok()).ok_or_else(|| MetadataError::unexpected("an integer in [0, 255]", byte))
    })
}

fn exactly(bytes: Vec<u8>, size: usize, value: &Json, out: &mut Vec<u8>) -> Result<(), MetadataError> {
    if bytes.len() != size {
        return Err(MetadataError::unexpected(format!("{size} bytes"), value));
    }
    out.extend(bytes);
    Ok(())
}

/// Base64 of at most `size` bytes, with zeros after them.
fn padded(value: &Json, size: usize, out: &mut Vec<u8>) -> Result<(), MetadataError> {
    let bytes = value
        .as_str()
        .and_then(base64::decode)
        .filter(|bytes| bytes.len() <= size)
        .ok_or_else(|| MetadataError::unexpected(format!("base64 of at most {size} bytes"), value))?;
    let end = out.len() + size;
    out.extend(bytes);
    out.resize(end, 0);
    Ok(())
}

/// Base64 of a whole struct, the form that came before objects. An empty string stands for zeros.
fn packed(value: &Json, data_type: &DataType, size: usize, dialect: Dialect, out: &mut Vec<u8>) -> Result<(), MetadataError> {
    let mut bytes =
        value.as_str().and_then(base64::decode).filter(|bytes| bytes.len() == size || (bytes.is_empty() && dialect.is_v2())).ok_or_else(
            || MetadataError::unexpected(format!("an object with a value for every field, or base64 of {size} bytes"), value),
        )?;
    bytes.resize(size, 0);
    if dialect.byte_order() != Endianness::NATIVE {
        swap_bytes(data_type, &mut bytes);
    }
    out.extend(bytes);
    Ok(())
}

fn utf32(value: &Json, size: usize, out: &mut Vec<u8>) -> Result<(), MetadataError> {
    let text = read::string(value)?;
    if text.chars().count() > size / 4 {
        return Err(MetadataError::unexpected(format!("a string of at most {} code points", size / 4), value));
    }
    let end = out.len() + size;
    out.extend(text.chars().flat_map(|c| u32::from(c).to_ne_bytes()));
    out.resize(end, 0);
    Ok(())
}

/// A sub-array as nested lists.
fn sub_array(
    elements: &[Json],
    element: &DataType,
    shape: &[u64],
    value: &Json,
    dialect: Dialect,
    out: &mut Vec<u8>,
) -> Result<(), MetadataError> {
    let inner = match shape.split_first() {
        Some((length, inner)) if u64::try_from(elements.len()) == Ok(*length) => inner,
        Some((length, _)) => {
            return Err(MetadataError::unexpected(format!("an array of {length}"), value));
        }
        None => return Err(MetadataError::unexpected("no array", value)),
    };
    for (index, part) in elements.iter().enumerate() {
        let result = match (inner, part) {
            ([], _) => fixed(part, element, dialect, out),
            (_, Json::Array(parts)) => sub_array(parts, element, inner, part, dialect, out),
            _ => Err(MetadataError::unexpected("an array", part)),
        };
        result.map_err(|error| error.within_index(index))?;
    }
    Ok(())
}

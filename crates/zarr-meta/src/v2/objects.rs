//! Python's objects: what elements of `|O` are with each codec that encodes them, and their fill values.

use super::CodecV2;
use crate::{DataType, FillValue, Json, MetadataError, Number};

/// How objects are encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Objects {
    /// Strings.
    Text,
    /// Bytes, or arrays of one type.
    Bytes,
    /// JSON: an element is the text of any value.
    Json,
    /// MessagePack: an element is the bytes of any value.
    MessagePack,
    /// Pickles, which cannot be read without running them.
    Pickle,
}

impl Objects {
    /// What the first codec that encodes objects makes of them.
    pub(super) fn find<'a>(mut codecs: impl Iterator<Item = &'a CodecV2>) -> Option<Self> {
        codecs.find_map(|codec| match codec.id.as_str() {
            "vlen-utf8" | "categorize" => Some(Self::Text),
            "vlen-bytes" | "vlen-array" => Some(Self::Bytes),
            "json2" => Some(Self::Json),
            "msgpack2" => Some(Self::MessagePack),
            "pickle" => Some(Self::Pickle),
            _ => None,
        })
    }

    pub(super) fn data_type(self) -> DataType {
        match self {
            Self::Text | Self::Json => DataType::String,
            Self::Bytes | Self::MessagePack | Self::Pickle => DataType::Bytes,
        }
    }

    /// The fill value of any JSON, null included, for codecs of any value. `None` for the others: their fill values are those of their data type.
    pub(super) fn fill_value(self, value: &Json) -> Option<Result<FillValue, MetadataError>> {
        let element = match self {
            Self::Json => Ok(text(value).into_bytes()),
            Self::MessagePack => {
                let mut out = Vec::new();
                pack(value, &mut out).map(|()| out)
            }
            Self::Text | Self::Bytes | Self::Pickle => return None,
        };
        Some(element.and_then(|element| FillValue::from_bytes(element, &self.data_type())))
    }

    /// The way back from [`fill_value`](Self::fill_value).
    pub(super) fn fill_value_to_json(self, value: &FillValue) -> Option<Result<Json, MetadataError>> {
        match self {
            // An empty element is no value; that of a new array is left out.
            Self::Json | Self::MessagePack if value.as_bytes().is_empty() => Some(Ok(Json::Null)),
            Self::Json => Some(Json::parse(value.as_bytes())),
            Self::MessagePack => Some(
                unpack(value.as_bytes())
                    .ok_or_else(|| MetadataError::unsupported("a fill value in MessagePack that is no number and no string")),
            ),
            Self::Text | Self::Bytes | Self::Pickle => None,
        }
    }
}

/// JSON text, with the bare NaN that Python writes.
fn text(value: &Json) -> String {
    match value {
        Json::Number(number) => number.as_str().to_owned(),
        other => other.to_text(),
    }
}

/// Appends a value as Python's msgpack does, in as few bytes as it takes.
fn pack(value: &Json, out: &mut Vec<u8>) -> Result<(), MetadataError> {
    match value {
        Json::Null => out.push(0xc0),
        Json::Bool(value) => out.push(0xc2 | u8::from(*value)),
        Json::Number(number) => pack_number(number, out),
        Json::String(text) => {
            pack_length(text.len(), (0xa0, 31), &[0xd9, 0xda, 0xdb], out)?;
            out.extend_from_slice(text.as_bytes());
        }
        Json::Array(items) => {
            pack_length(items.len(), (0x90, 15), &[0xdc, 0xdd], out)?;
            items.iter().try_for_each(|item| pack(item, out))?;
        }
        Json::Object(object) => {
            pack_length(object.len(), (0x80, 15), &[0xde, 0xdf], out)?;
            for (key, value) in object.iter() {
                pack(&key.into(), out)?;
                pack(value, out)?;
            }
        }
    }
    Ok(())
}

fn pack_number(number: &Number, out: &mut Vec<u8>) {
    // The head, and how many of the last bytes of the number follow it.
    let (head, bytes, width) = match (number.as_u64(), number.as_i64()) {
        (Some(value), _) => {
            let (head, width) = match value {
                0..=0x7f => (None, 1),
                0x80..=0xff => (Some(0xcc), 1),
                0x100..=0xffff => (Some(0xcd), 2),
                0x1_0000..=0xffff_ffff => (Some(0xce), 4),
                _ => (Some(0xcf), 8),
            };
            (head, value.to_be_bytes(), width)
        }
        (None, Some(value)) => {
            let (head, width) = match value {
                -0x20.. => (None, 1),
                -0x80.. => (Some(0xd0), 1),
                -0x8000.. => (Some(0xd1), 2),
                -0x8000_0000.. => (Some(0xd2), 4),
                _ => (Some(0xd3), 8),
            };
            (head, value.to_be_bytes(), width)
        }
        // Floating point numbers, and integers that MessagePack does not have.
        (None, None) => (Some(0xcb), number.as_f64().to_be_bytes(), 8),
    };
    out.extend(head);
    out.extend_from_slice(bytes.get(bytes.len() - width..).unwrap_or_default());
}

/// Appends the head of a value with a length: in the head if it is `most` at most, else behind one of the last `wide` heads.
fn pack_length(length: usize, (short, most): (u8, u8), wide: &[u8], out: &mut Vec<u8>) -> Result<(), MetadataError> {
    let length = u32::try_from(length).map_err(|_| MetadataError::unsupported("a fill value of 4 GiB"))?;
    let bytes = length.to_be_bytes();
    match (u8::try_from(length), u16::try_from(length), wide) {
        (Ok(length), ..) if length <= most => out.push(short | length),
        (Ok(length), _, [head, _, _]) => out.extend_from_slice(&[*head, length]),
        (_, Ok(length), [.., head, _]) => {
            out.push(*head);
            out.extend_from_slice(&length.to_be_bytes());
        }
        _ => {
            out.extend(wide.last());
            out.extend_from_slice(&bytes);
        }
    }
    Ok(())
}

/// The value of one nil, boolean, number or string.
fn unpack(bytes: &[u8]) -> Option<Json> {
    let (&head, rest) = bytes.split_first()?;
    let unsigned = || rest.iter().fold(0u64, |number, byte| number << 8 | u64::from(*byte));
    Some(match (head, rest) {
        (0xc0, []) => Json::Null,
        (0xc2 | 0xc3, []) => Json::Bool(head == 0xc3),
        (0x00..=0x7f, []) => head.into(),
        (0xe0..=0xff, []) => head.cast_signed().into(),
        (0xcc, [_]) | (0xcd, [_, _]) | (0xce, [_, _, _, _]) | (0xcf, [_, _, _, _, _, _, _, _]) => unsigned().into(),
        (0xd0, [byte]) => byte.cast_signed().into(),
        (0xd1, _) => i16::from_be_bytes(rest.try_into().ok()?).into(),
        (0xd2, _) => i32::from_be_bytes(rest.try_into().ok()?).into(),
        (0xd3, _) => i64::from_be_bytes(rest.try_into().ok()?).into(),
        (0xca, _) => f32::from_be_bytes(rest.try_into().ok()?).into(),
        (0xcb, _) => f64::from_be_bytes(rest.try_into().ok()?).into(),
        (0xa0..=0xbf, text) if usize::from(head & 0x1f) == text.len() => std::str::from_utf8(text).ok()?.into(),
        (0xd9, [length, text @ ..]) if usize::from(*length) == text.len() => std::str::from_utf8(text).ok()?.into(),
        (0xda, [high, low, text @ ..]) if usize::from(u16::from_be_bytes([*high, *low])) == text.len() => {
            std::str::from_utf8(text).ok()?.into()
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(value: &str) -> Vec<u8> {
        let value = Json::parse(value.as_bytes()).unwrap();
        Objects::MessagePack.fill_value(&value).unwrap().unwrap().as_bytes().to_vec()
    }

    /// The bytes are those of Python's msgpack 1.1.2.
    #[test]
    fn fill_values_in_messagepack() {
        for (text, bytes) in [
            ("null", &b"\xc0"[..]),
            ("true", b"\xc3"),
            ("0", b"\x00"),
            ("127", b"\x7f"),
            ("200", b"\xcc\xc8"),
            ("300", b"\xcd\x01\x2c"),
            ("70000", b"\xce\x00\x01\x11\x70"),
            ("18446744073709551615", b"\xcf\xff\xff\xff\xff\xff\xff\xff\xff"),
            ("-1", b"\xff"),
            ("-33", b"\xd0\xdf"),
            ("-129", b"\xd1\xff\x7f"),
            ("-40000", b"\xd2\xff\xff\x63\xc0"),
            ("-3000000000", b"\xd3\xff\xff\xff\xff\x4d\x2f\xa2\x00"),
            ("1.5", b"\xcb\x3f\xf8\x00\x00\x00\x00\x00\x00"),
            ("\"\"", b"\xa0"),
            ("\"foo\"", b"\xa3foo"),
        ] {
            assert_eq!(packed(text), bytes, "{text}");
            let value = FillValue::from_bytes(bytes, &DataType::Bytes).unwrap();
            assert_eq!(Objects::MessagePack.fill_value_to_json(&value).unwrap().unwrap().to_text(), text);
        }
        assert_eq!(packed(r#"{"a":[1,{}]}"#), b"\x81\xa1a\x92\x01\x80");
        assert_eq!(packed(&format!("{:?}", "x".repeat(40)))[..2], *b"\xd9\x28");
        assert_eq!(packed(&format!("{:?}", "x".repeat(300)))[..3], *b"\xda\x01\x2c");
        assert_eq!(packed(&format!("{:?}", [0; 16]))[..3], *b"\xdc\x00\x10");
    }

    #[test]
    fn fill_values_in_json() {
        for text in ["null", "0", "\"\"", "[1,{\"a\":2}]", "NaN"] {
            let value = Objects::Json.fill_value(&Json::parse(text.as_bytes()).unwrap()).unwrap().unwrap();
            assert_eq!(value.as_bytes(), text.as_bytes());
            assert_eq!(Objects::Json.fill_value_to_json(&value).unwrap(), Json::parse(text.as_bytes()));
        }
        let empty = FillValue::default_for(&DataType::String);
        assert_eq!(Objects::Json.fill_value_to_json(&empty), Some(Ok(Json::Null)));
    }
}

//! `numcodecs.msgpack2`: any values that MessagePack has, as one MessagePack array.
//!
//! * Specification: the filter [`msgpack2`](https://numcodecs.readthedocs.io/en/stable/other/msgpacks.html) of numcodecs, in version 2 by
//!   that id; no writer has it in version 3. Values: the [MessagePack specification](https://github.com/msgpack/msgpack/blob/master/spec.md).
//! * Configuration: `raw`, `use_bin_type`, `use_single_float`: how Python's objects become values and back, which is up to the caller here.
//! * Data type: `bytes`. An element is its value in MessagePack, as it is stored: `\xa3foo` for a string, `\xc0` for None.
//!
//! A chunk is an array: the elements, nested in further arrays by its shape, then the numpy type, `|O`, then the shape. That must be the
//! chunk's, or its number of elements. The numpy type is not looked at. Text is not checked to be UTF-8. Arrays without dimensions are
//! not supported, as in numcodecs.

use serde::Deserialize;
use zarr_codec_api::{ArrayRepresentation, ArrayToBytes, ByteLen, CodecError, HostProvider, Limits, SimpleCodec, VariableData};
use zarr_meta::{DataType, MAX_DEPTH};

use crate::config;

const NAME: &str = "numcodecs.msgpack2";
/// The numpy type of objects, as a string of two bytes.
const OBJECTS: &[u8] = b"\xa2|O";
/// Numpy type and shape behind the elements.
const TRAILERS: u64 = 2;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    #[serde(rename = "raw")]
    _raw: Option<bool>,
    #[serde(rename = "use_bin_type")]
    _use_bin_type: Option<bool>,
    #[serde(rename = "use_single_float")]
    _use_single_float: Option<bool>,
}

pub(crate) fn register(provider: HostProvider) -> HostProvider {
    provider.with(NAME, |codec, _| {
        config::read::<Config>(codec)?;
        Ok(SimpleCodec::array_to_bytes(MsgPack2))
    })
}

#[derive(Debug)]
struct MsgPack2;

fn fixed() -> CodecError {
    CodecError::parameter(NAME, "elements of variable length are asked for as if their length were fixed")
}

/// A place in MessagePack bytes.
struct Cursor<'a> {
    rest: &'a [u8],
    len: usize,
}

impl<'a> Cursor<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, len: bytes.len() }
    }

    fn format(&self, message: impl Into<String>) -> CodecError {
        let offset = self.len.saturating_sub(self.rest.len());
        CodecError::format(NAME, message).at(u64::try_from(offset).unwrap_or(u64::MAX))
    }

    fn truncated(&self) -> CodecError {
        self.format("the chunk is truncated")
    }

    /// Goes past `count` bytes.
    fn skip(&mut self, count: u64) -> Result<&'a [u8], CodecError> {
        let parts = usize::try_from(count).ok().and_then(|count| self.rest.split_at_checked(count));
        let (bytes, rest) = parts.ok_or_else(|| self.truncated())?;
        self.rest = rest;
        Ok(bytes)
    }

    /// Goes past an unsigned number of `width` bytes, big-endian.
    fn number(&mut self, width: u64) -> Result<u64, CodecError> {
        Ok(self.skip(width)?.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    /// Goes past the head of a value and the bytes that belong to it alone; gives the number of values inside it, which come next.
    fn head(&mut self) -> Result<u64, CodecError> {
        let head = self.number(1)?;
        let (bytes, inside) = match head {
            // Small integers, nil, booleans.
            0x00..=0x7f | 0xe0..=0xff | 0xc0 | 0xc2 | 0xc3 => (0, 0),
            0x80..=0x8f => (0, (head & 0x0f).saturating_mul(2)),
            0x90..=0x9f => (0, head & 0x0f),
            0xa0..=0xbf => (head & 0x1f, 0),
            // Bytes and strings with a length of 8, 16 and 32 bits.
            0xc4 | 0xd9 => (self.number(1)?, 0),
            0xc5 | 0xda => (self.number(2)?, 0),
            0xc6 | 0xdb => (self.number(4)?, 0),
            // Extensions have one byte more, their type.
            0xc7 => (self.number(1)?.saturating_add(1), 0),
            0xc8 => (self.number(2)?.saturating_add(1), 0),
            0xc9 => (self.number(4)?.saturating_add(1), 0),
            0xd4 => (2, 0),
            0xd5 => (3, 0),
            0xd6 => (5, 0),
            0xd7 => (9, 0),
            0xd8 => (17, 0),
            // Numbers.
            0xcc | 0xd0 => (1, 0),
            0xcd | 0xd1 => (2, 0),
            0xca | 0xce | 0xd2 => (4, 0),
            0xcb | 0xcf | 0xd3 => (8, 0),
            0xdc => (0, self.number(2)?),
            0xdd => (0, self.number(4)?),
            0xde => (0, self.number(2)?.saturating_mul(2)),
            0xdf => (0, self.number(4)?.saturating_mul(2)),
            _ => return Err(self.format(format!("no value begins with {head:#04x}"))),
        };
        self.skip(bytes)?;
        Ok(inside)
    }

    /// Goes past one value, and gives its bytes.
    fn value(&mut self) -> Result<&'a [u8], CodecError> {
        let start = self.rest;
        let mut wanted = 1u64;
        while let Some(rest) = wanted.checked_sub(1) {
            wanted = rest.saturating_add(self.head()?);
        }
        Ok(start.get(..start.len().saturating_sub(self.rest.len())).unwrap_or_default())
    }

    /// Goes past the head of an array; gives its length.
    fn array(&mut self) -> Result<u64, CodecError> {
        match self.rest.first() {
            Some(0x90..=0x9f | 0xdc | 0xdd) => self.head(),
            Some(_) => Err(self.format("expected an array")),
            None => Err(self.truncated()),
        }
    }

    /// Goes past an unsigned integer.
    fn unsigned(&mut self) -> Result<u64, CodecError> {
        match self.number(1)? {
            small @ 0..=0x7f => Ok(small),
            0xcc => self.number(1),
            0xcd => self.number(2),
            0xce => self.number(4),
            0xcf => self.number(8),
            _ => Err(self.format("a length in the shape is no number")),
        }
    }
}

/// The shape at the end of a chunk.
fn shape(encoded: &[u8]) -> Result<Vec<u64>, CodecError> {
    let mut cursor = Cursor::new(encoded);
    let items = cursor.array()?;
    let Some(before) = items.checked_sub(1) else { return Err(cursor.format("the chunk does not end in its shape")) };
    for _ in 0..before {
        cursor.value()?;
    }
    let rank = cursor.array()?;
    let shape = (0..rank).map(|_| cursor.unsigned()).collect::<Result<_, _>>()?;
    match cursor.rest.len() {
        0 => Ok(shape),
        more => Err(cursor.format(format!("{more} bytes follow the chunk's array"))),
    }
}

/// Reads the elements of an array whose head has been read.
fn read(cursor: &mut Cursor<'_>, shape: &[u64], take: &mut impl FnMut(&[u8]) -> Result<(), CodecError>) -> Result<(), CodecError> {
    let Some((&length, inner)) = shape.split_first() else { return take(cursor.value()?) };
    for _ in 0..length {
        if let Some(&expected) = inner.first()
            && cursor.array()? != expected
        {
            return Err(cursor.format("the elements are not nested by the shape of the chunk"));
        }
        read(cursor, inner, take)?;
    }
    Ok(())
}

/// Appends the head of an array.
fn push_array(length: u64, out: &mut Vec<u8>) -> Result<(), CodecError> {
    match u32::try_from(length) {
        Ok(length) => {
            let [_, _, high, low] = length.to_be_bytes();
            match length {
                0..=0x0f => out.push(0x90 | low),
                0x10..=0xffff => out.extend_from_slice(&[0xdc, high, low]),
                _ => {
                    out.push(0xdd);
                    out.extend_from_slice(&length.to_be_bytes());
                }
            }
            Ok(())
        }
        Err(_) => Err(CodecError::parameter(NAME, format!("{length} does not fit the 32 bits of a length"))),
    }
}

/// Appends an unsigned integer in as few bytes as it takes.
fn push_unsigned(number: u64, out: &mut Vec<u8>) {
    let (head, width) = match number {
        0..=0x7f => (None, 1),
        0x80..=0xff => (Some(0xcc), 1),
        0x100..=0xffff => (Some(0xcd), 2),
        0x1_0000..=0xffff_ffff => (Some(0xce), 4),
        _ => (Some(0xcf), 8),
    };
    out.extend(head);
    let bytes = number.to_be_bytes();
    out.extend_from_slice(bytes.last_chunk::<8>().and_then(|all| all.get(all.len().saturating_sub(width)..)).unwrap_or_default());
}

/// Appends the elements of an array whose head has been written.
fn write<'a>(elements: &mut impl Iterator<Item = &'a [u8]>, shape: &[u64], out: &mut Vec<u8>) -> Result<(), CodecError> {
    let Some((&length, inner)) = shape.split_first() else {
        let element = elements.next().unwrap_or_default();
        let mut cursor = Cursor::new(element);
        if cursor.value().is_err() || !cursor.rest.is_empty() {
            return Err(CodecError::parameter(NAME, "an element is not one value in MessagePack"));
        }
        out.extend_from_slice(element);
        return Ok(());
    };
    for _ in 0..length {
        if let Some(&inner) = inner.first() {
            push_array(inner, out)?;
        }
        write(elements, inner, out)?;
    }
    Ok(())
}

impl ArrayToBytes for MsgPack2 {
    fn encoded_len(&self, decoded: &ArrayRepresentation, limits: &Limits) -> Result<ByteLen, CodecError> {
        if decoded.data_type != DataType::Bytes {
            return Err(CodecError::unsupported(NAME, format!("data type {} is not supported", decoded.data_type)));
        }
        if !(1..MAX_DEPTH).contains(&decoded.shape.len()) {
            return Err(CodecError::unsupported(NAME, format!("{} dimensions are not supported", decoded.shape.len())));
        }
        Ok(ByteLen::AtMost(limits.variable_chunk))
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
        let elements = u64::try_from(representation.elements()?).unwrap_or(u64::MAX);
        let shape = shape(encoded)?;
        let mut cursor = Cursor::new(encoded);
        if shape != representation.shape && shape != [elements] {
            return Err(cursor.format(format!("expected shape {:?}, found {shape:?}", representation.shape)));
        }
        if shape.first().and_then(|length| length.checked_add(TRAILERS)) != Some(cursor.array()?) {
            return Err(cursor.format("the elements are not nested by the shape of the chunk"));
        }
        read(&mut cursor, &shape, &mut |element| {
            if decoded.byte_len().checked_add(element.len()).is_none_or(|len| len > limit) {
                return Err(CodecError::limit(NAME, limit));
            }
            decoded.push(element);
            Ok(())
        })
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
        let shape = &representation.shape;
        push_array(shape.first().copied().unwrap_or(0).saturating_add(TRAILERS), encoded)?;
        write(&mut decoded.iter(), shape, encoded)?;
        encoded.extend_from_slice(OBJECTS);
        push_array(u64::try_from(shape.len()).unwrap_or(u64::MAX), encoded)?;
        for &length in shape {
            push_unsigned(length, encoded);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::{ArrayCodec, bytes_never_panic};

    fn codec(shape: &[u64]) -> ArrayCodec {
        ArrayCodec::new(NAME, r#"{"raw": false, "use_bin_type": true, "use_single_float": false}"#, &DataType::Bytes, shape)
    }

    fn data(elements: &[&[u8]]) -> VariableData {
        elements.iter().collect()
    }

    #[test]
    fn every_kind_of_value() {
        let values: &[&[u8]] = &[
            b"\x00",
            b"\xff",
            b"\xc0",
            b"\xc3",
            b"\xa3foo",
            b"\x81\xa1a\x92\x01\x80",
            b"\xc4\x02ab",
            b"\xc5\x00\x01a",
            b"\xc6\x00\x00\x00\x01a",
            b"\xc7\x01\x05a",
            b"\xc8\x00\x00\x05",
            b"\xc9\x00\x00\x00\x01\x05a",
            b"\xca\x00\x00\x00\x00",
            b"\xcb\x00\x00\x00\x00\x00\x00\x00\x00",
            b"\xcd\x01\x00",
            b"\xd0\x80",
            b"\xd3\x80\x00\x00\x00\x00\x00\x00\x00",
            b"\xd4\x01a",
            b"\xd8\x010123456789abcdef",
            b"\xd9\x01a",
            b"\xda\x00\x01a",
            b"\xdb\x00\x00\x00\x01a",
            b"\xdc\x00\x01\x01",
            b"\xdd\x00\x00\x00\x02\x01\x02",
            b"\xde\x00\x01\x01\x02",
            b"\xdf\x00\x00\x00\x01\x01\x02",
        ];
        let elements = data(values);
        let codec = codec(&[13, 2]);
        let encoded = codec.encode_variable(&elements).unwrap();
        assert!(encoded.starts_with(b"\x9f\x92\x00\xff\x92\xc0\xc3"), "{encoded:?}");
        assert!(encoded.ends_with(b"\xa2|O\x92\x0d\x02"));
        assert_eq!(codec.decode_variable(&encoded, 1000).unwrap(), elements);
        assert!(codec.decode_variable(&encoded, 100).is_err());
        bytes_never_panic(&encoded, |bytes| drop(codec.decode_variable(bytes, 1000)));
    }

    #[test]
    fn lengths_take_as_few_bytes_as_they_can() {
        for length in [0usize, 13, 14, 127, 128, 255, 256, 65533, 65534, 65536] {
            let elements: VariableData = std::iter::repeat_n(b"\x01", length).collect();
            let codec = codec(&[length as u64]);
            let encoded = codec.encode_variable(&elements).unwrap();
            let extra = |limits: [usize; 2], number: usize| limits.iter().filter(|limit| number > **limit).count() * 2;
            let head = 1 + extra([15, 65535], length + 2);
            let shape = 1 + usize::from(length > 127) + usize::from(length > 255) + 2 * usize::from(length > 65535);
            assert_eq!(encoded.len(), head + length + OBJECTS.len() + 1 + shape, "{length}");
            assert_eq!(codec.decode_variable(&encoded, 1 << 20).unwrap(), elements);
        }
    }

    #[test]
    fn malformed_chunks_are_told_apart() {
        for (encoded, message) in [
            (&b""[..], "truncated"),
            (b"\x94\x01\x02\xa2|O\x91", "truncated"),
            (b"\x94\x01\x02\xa2|O\x91\x02\x00", "1 bytes follow"),
            (b"\x01", "expected an array"),
            (b"\x90", "does not end in its shape"),
            (b"\x94\x01\x02\xa2|O\x91\xc0", "no number"),
            (b"\x94\x01\xc1\xa2|O\x91\x02", "no value begins with 0xc1"),
            (b"\x94\x01\x02\xa2|O\x91\x03", "expected shape [2], found [3]"),
            (b"\x93\x01\xa2|O\x91\x02", "not nested"),
            (b"\xdd\xff\xff\xff\xff\x01", "truncated"),
        ] {
            let error = codec(&[2]).decode_variable(encoded, 1000).unwrap_err().to_string();
            assert!(error.contains(message), "{error} / {message}");
        }
        assert!(codec(&[2, 1]).decode_variable(b"\x94\x01\x91\x02\xa2|O\x92\x02\x01", 1000).is_err());
        for wrong in [&b""[..], b"\xa2a", b"\x01\x01", b"\xc1"] {
            assert!(codec(&[1]).encode_variable(&data(&[wrong])).is_err(), "{wrong:?}");
        }
        for (data_type, shape) in [(DataType::String, &[1][..]), (DataType::Bytes, &[])] {
            assert!(ArrayCodec::new(NAME, "{}", &data_type, shape).encoded().is_err());
        }
    }

    proptest! {
        #[test]
        fn any_bytes_decode_or_fail(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            drop(codec(&[2]).decode_variable(&bytes, 1000));
        }
    }
}

//! `numcodecs.json2`: any JSON values, as one JSON document.
//!
//! * Specification: the filter [`json2`](https://numcodecs.readthedocs.io/en/stable/other/json.html) of numcodecs, in version 2 by that id;
//!   no writer has it in version 3.
//! * Configuration: `encoding` (UTF-8, or ASCII), `ensure_ascii`, `allow_nan`, `sort_keys`, `indent`, `separators`: what Python's encoder makes
//!   of a value, by its defaults unless they are given; `skipkeys`, `check_circular` and `strict` change nothing here.
//! * Data type: `string`. An element is the JSON text of its value, without white space: `42`, `"foo"` with its quotes, `["bar","baz"]`, `null`. So no
//!   value is mistaken for another, and what was read can be written again.
//!
//! A chunk is a list: the elements, nested in further lists by its shape, then the numpy type, `|O`, then the shape. That must be the
//! chunk's, or its number of elements. The numpy type is not looked at. Strings with lone surrogates, which are no Unicode, are an error.

mod text;

use serde::Deserialize;
use text::{Cursor, Style};
use zarr_codec_api::{ArrayRepresentation, ArrayToBytes, ByteLen, CodecError, HostProvider, Limits, SimpleCodec, VariableData};
use zarr_meta::{DataType, Json, MAX_DEPTH};

use crate::config;

const NAME: &str = "numcodecs.json2";
/// The numpy type of objects.
const OBJECTS: &str = "|O";
/// The longest text of an element, in bytes: a value in memory takes a multiple of its text.
const LONGEST: usize = 16 << 20;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    encoding: Option<String>,
    #[serde(default = "yes")]
    ensure_ascii: bool,
    #[serde(default = "yes")]
    allow_nan: bool,
    #[serde(default = "yes")]
    sort_keys: bool,
    indent: Option<Indent>,
    separators: Option<[String; 2]>,
    #[serde(rename = "skipkeys")]
    _skipkeys: Option<bool>,
    #[serde(rename = "check_circular")]
    _check_circular: Option<bool>,
    #[serde(rename = "strict")]
    _strict: Option<bool>,
}

/// What stands before an item on a line of its own, for each level.
#[derive(Deserialize)]
#[serde(untagged)]
enum Indent {
    Spaces(u8),
    Text(String),
}

fn yes() -> bool {
    true
}

pub(crate) fn register(provider: HostProvider) -> HostProvider {
    provider.with(NAME, |codec, _| {
        let config: Config = config::read(codec)?;
        if let Some(encoding) = &config.encoding
            && !["utf-8", "utf8", "ascii", "us-ascii"].contains(&encoding.to_ascii_lowercase().as_str())
        {
            return Err(CodecError::unsupported(NAME, format!("text in {encoding:?} is not supported")));
        }
        let indent = config.indent.map(|indent| match indent {
            Indent::Spaces(count) => " ".repeat(count.into()),
            Indent::Text(text) => text,
        });
        let [item, key] = config.separators.unwrap_or_else(|| match indent {
            None => [",".to_owned(), ":".to_owned()],
            Some(_) => [", ".to_owned(), ": ".to_owned()],
        });
        let style = Style { item, key, indent, ascii: config.ensure_ascii, sorted: config.sort_keys, not_finite: config.allow_nan };
        Ok(SimpleCodec::array_to_bytes(Json2 { style }))
    })
}

#[derive(Debug)]
struct Json2 {
    style: Style,
}

fn format(message: impl Into<String>, offset: usize) -> CodecError {
    CodecError::format(NAME, message).at(u64::try_from(offset).unwrap_or(u64::MAX))
}

fn fixed() -> CodecError {
    CodecError::parameter(NAME, "elements of variable length are asked for as if their length were fixed")
}

/// The shape at the end of a chunk.
fn shape(encoded: &[u8]) -> Result<Vec<u64>, CodecError> {
    let mut cursor = Cursor::new(encoded);
    let truncated = |cursor: &Cursor<'_>| format("the chunk is no list that ends", cursor.offset());
    if !cursor.take(b'[') {
        return Err(truncated(&cursor));
    }
    let (mut last, mut at) = (None, 0);
    while !cursor.take(b']') {
        if last.is_some() && !cursor.take(b',') {
            return Err(truncated(&cursor));
        }
        at = cursor.offset();
        last = Some(cursor.value().ok_or_else(|| truncated(&cursor))?);
    }
    if !cursor.is_at_end() {
        return Err(format("text follows the chunk's list", cursor.offset()));
    }
    let shape = last.filter(|text| text.len() <= LONGEST).and_then(|text| Json::parse(text).ok());
    let shape: Option<Vec<u64>> = shape.as_ref().and_then(Json::as_array).and_then(|shape| shape.iter().map(Json::as_u64).collect());
    shape.ok_or_else(|| format("the chunk does not end in its shape", at))
}

/// Reads the elements of an array, without the brackets around it.
fn read(cursor: &mut Cursor<'_>, shape: &[u64], take: &mut impl FnMut(&[u8], usize) -> Result<(), CodecError>) -> Result<(), CodecError> {
    let wrong = |cursor: &Cursor<'_>| format("the elements are not nested by the shape of the chunk", cursor.offset());
    let Some((&length, inner)) = shape.split_first() else {
        let at = cursor.offset();
        return take(cursor.value().ok_or_else(|| wrong(cursor))?, at);
    };
    for index in 0..length {
        if index > 0 && !cursor.take(b',') {
            return Err(wrong(cursor));
        }
        if inner.is_empty() {
            read(cursor, inner, take)?;
            continue;
        }
        if !cursor.take(b'[') {
            return Err(wrong(cursor));
        }
        read(cursor, inner, take)?;
        if !cursor.take(b']') {
            return Err(wrong(cursor));
        }
    }
    Ok(())
}

/// The elements of an array as values, nested by its shape.
fn nest(elements: &mut impl Iterator<Item = Result<Json, CodecError>>, shape: &[u64]) -> Result<Vec<Json>, CodecError> {
    let Some((&length, inner)) = shape.split_first() else { return elements.take(1).collect() };
    if inner.is_empty() {
        return elements.take(usize::try_from(length).unwrap_or(usize::MAX)).collect();
    }
    (0..length).map(|_| nest(elements, inner).map(Json::Array)).collect()
}

impl ArrayToBytes for Json2 {
    fn encoded_len(&self, decoded: &ArrayRepresentation, limits: &Limits) -> Result<ByteLen, CodecError> {
        if decoded.data_type != DataType::String {
            return Err(CodecError::unsupported(NAME, format!("data type {} is not supported", decoded.data_type)));
        }
        if decoded.shape.len() >= MAX_DEPTH {
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
        let elements = representation.elements()?;
        let shape = shape(encoded)?;
        if shape != representation.shape && shape != [u64::try_from(elements).unwrap_or(u64::MAX)] {
            return Err(format(format!("expected shape {:?}, found {shape:?}", representation.shape), encoded.len()));
        }
        let style = Style::compact();
        let mut text = String::new();
        let mut cursor = Cursor::new(encoded);
        cursor.take(b'[');
        read(&mut cursor, &shape, &mut |element, at| {
            if element.len() > LONGEST {
                return Err(CodecError::limit(NAME, LONGEST));
            }
            let value = Json::parse(element).map_err(|error| format(format!("an element is no JSON: {error}"), at))?;
            text.clear();
            style.write(&value, 0, &mut text)?;
            if decoded.byte_len().checked_add(text.len()).is_none_or(|len| len > limit) {
                return Err(CodecError::limit(NAME, limit));
            }
            decoded.push(text.as_bytes());
            Ok(())
        })?;
        // The numpy type and the shape are what must follow: anything more would be elements beyond the shape.
        let has_elements = shape.first() != Some(&0);
        let rest = |cursor: &mut Cursor<'_>| {
            (!has_elements || cursor.take(b',')) && cursor.value().is_some_and(|dtype| dtype.starts_with(b"\"")) && cursor.take(b',') && {
                cursor.value();
                cursor.take(b']')
            }
        };
        if rest(&mut cursor) { Ok(()) } else { Err(format("the numpy type and the shape do not follow the elements", cursor.offset())) }
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
        let mut elements = decoded.iter().map(|element| {
            Json::parse(element).map_err(|error| CodecError::parameter(NAME, format!("an element is no JSON text: {error}")))
        });
        let mut items = nest(&mut elements, &representation.shape)?;
        items.push(OBJECTS.into());
        items.push(representation.shape.clone().into());
        let mut text = String::new();
        self.style.write(&Json::Array(items), 0, &mut text)?;
        encoded.extend_from_slice(text.as_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::{ArrayCodec, bytes_never_panic};

    fn codec(configuration: &str, shape: &[u64]) -> ArrayCodec {
        ArrayCodec::new(NAME, configuration, &DataType::String, shape)
    }

    fn data(elements: &[&str]) -> VariableData {
        elements.iter().collect()
    }

    #[test]
    fn as_numcodecs_writes_it() {
        let encoded = br#"[[42,"f\u00f6\ud83d\ude00"],[["bar",1.0],{"a":1,"b":[]}],[null,NaN],"|O",[3,2]]"#;
        let elements = data(&["42", "\"f\u{f6}\u{1f600}\"", "[\"bar\",1.0]", "{\"a\":1,\"b\":[]}", "null", "NaN"]);
        let codec = codec("{}", &[3, 2]);
        assert_eq!(codec.decode_variable(encoded, 1000).unwrap(), elements);
        assert_eq!(codec.encode_variable(&elements).unwrap(), encoded);
        let unsorted = data(&["42", "\"f\u{f6}\u{1f600}\"", "[ \"bar\",1.0]", "{\"b\":[], \"a\":1}", "null", "NaN"]);
        assert_eq!(codec.encode_variable(&unsorted).unwrap(), encoded);
        bytes_never_panic(encoded, |bytes| drop(codec.decode_variable(bytes, 1000)));
    }

    #[test]
    fn arrays_without_dimensions_and_without_elements() {
        for (shape, elements, encoded) in [
            (&[][..], &["1"][..], &br#"[1,"|O",[]]"#[..]),
            (&[0], &[], br#"["|O",[0]]"#),
            (&[2, 0], &[], br#"[[],[],"|O",[2,0]]"#),
            (&[0, 2], &[], br#"["|O",[0,2]]"#),
        ] {
            let codec = codec("{}", shape);
            assert_eq!(codec.decode_variable(encoded, 1000).unwrap(), data(elements));
            assert_eq!(codec.encode_variable(&data(elements)).unwrap(), encoded);
        }
        assert_eq!(codec("{}", &[2, 1]).decode_variable(br#"[1,[2],"|O",[2]]"#, 1000).unwrap(), data(&["1", "[2]"]));
    }

    #[test]
    fn options_of_the_encoder() {
        let elements = data(&["\"\u{e9}\u{7f}\"", "{\"b\":[1,{}],\"a\":[]}"]);
        for (configuration, encoded) in [
            (r#"{"ensure_ascii":false,"sort_keys":false}"#, "[\"\u{e9}\u{7f}\",{\"b\":[1,{}],\"a\":[]},\"|O\",[2]]"),
            (r#"{"separators":[", ",": "]}"#, "[\"\\u00e9\\u007f\", {\"a\": [], \"b\": [1, {}]}, \"|O\", [2]]"),
            (
                r#"{"indent":1}"#,
                "[\n \"\\u00e9\\u007f\", \n {\n  \"a\": [], \n  \"b\": [\n   1, \n   {}\n  ]\n }, \n \"|O\", \n [\n  2\n ]\n]",
            ),
        ] {
            assert_eq!(String::from_utf8(codec(configuration, &[2]).encode_variable(&elements).unwrap()).unwrap(), encoded);
            assert_eq!(codec(configuration, &[2]).decode_variable(encoded.as_bytes(), 100).unwrap().get(0), elements.get(0));
        }
        assert!(codec(r#"{"allow_nan":false}"#, &[1]).encode_variable(&data(&["[-Infinity]"])).is_err());
        let fill = || zarr_meta::FillValue::default_for(&DataType::String);
        for wrong in [r#"{"encoding":"utf-16"}"#, r#"{"indent":-1}"#, r#"{"other":1}"#] {
            assert!(ArrayCodec::with_fill(NAME, wrong, &DataType::String, &[1], fill()).is_err(), "{wrong}");
        }
        assert!(ArrayCodec::new(NAME, "{}", &DataType::Bytes, &[1]).encoded().is_err());
    }

    #[test]
    fn malformed_chunks_are_told_apart() {
        for (encoded, message) in [
            (&b""[..], "no list that ends"),
            (br#"[1,2,"|O",[2]"#, "no list that ends"),
            (br#"[1,2,"|O",[2]]x"#, "text follows"),
            (br#"[1,2,"|O",3]"#, "does not end in its shape"),
            (br#"[1,2,"|O",[3]]"#, "expected shape [2], found [3]"),
            (br#"[1,"|O",[2]]"#, "do not follow the elements"),
            (br#"[1,2,3,"|O",[2]]"#, "do not follow the elements"),
            (br#"[1,tru,"|O",[2]]"#, "an element is no JSON"),
            (br#"[1,"\ud800","|O",[2]]"#, "an element is no JSON"),
            (b"[1,\"\xff\",\"|O\",[2]]", "an element is no JSON"),
        ] {
            let error = codec("{}", &[2]).decode_variable(encoded, 1000).unwrap_err().to_string();
            assert!(error.contains(message), "{error} / {message}");
        }
        let error = codec("{}", &[2, 2]).decode_variable(br#"[[1,2],3,"|O",[2,2]]"#, 1000).unwrap_err().to_string();
        assert!(error.contains("not nested"), "{error}");
        assert!(codec("{}", &[1]).encode_variable(&data(&["foo"])).unwrap_err().to_string().contains("no JSON text"));
        assert!(codec("{}", &[1]).decode_variable(br#"["abc","|O",[1]]"#, 4).is_err());
    }

    proptest! {
        #[test]
        fn strings_come_back(strings in prop::collection::vec(".{0,12}", 0..20)) {
            let quoted: VariableData = strings.iter().map(|text| Json::from(text.as_str()).to_text()).collect();
            let codec = codec("{}", &[strings.len() as u64]);
            let encoded = codec.encode_variable(&quoted).unwrap();
            prop_assert_eq!(codec.decode_variable(&encoded, 1 << 20).unwrap(), quoted);
        }
    }
}

//! `&Json` as a serde data format to read from.

use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::de::{DeserializeSeed, Deserializer, EnumAccess, IntoDeserializer, MapAccess, SeqAccess, Unexpected, VariantAccess, Visitor};
use serde::forward_to_deserialize_any;

use super::super::{Json, Number};
use super::{Error, JSON_NEWTYPE};

/// A value to be read into a Rust type.
#[derive(Clone, Copy)]
pub(super) struct Value<'a>(pub(super) &'a Json);

impl<'de> Deserializer<'de> for Value<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Json::Null => visitor.visit_unit(),
            Json::Bool(value) => visitor.visit_bool(*value),
            Json::Number(number) => visit_number(number, visitor),
            Json::String(text) => visitor.visit_borrowed_str(text),
            Json::Array(elements) => visitor.visit_seq(Elements { rest: elements, index: 0 }),
            Json::Object(_) => visitor.visit_map(Entries::of(self.0)),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Json::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, name: &'static str, visitor: V) -> Result<V::Value, Error> {
        if name == JSON_NEWTYPE { visitor.visit_newtype_struct(Verbatim(self.0)) } else { visitor.visit_newtype_struct(self) }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let not_an_enum = || <Error as serde::de::Error>::invalid_type(unexpected(self.0), &"a string, or an object with one key");
        match self.0 {
            Json::String(text) => visitor.visit_enum(text.as_str().into_deserializer()),
            Json::Object(object) if object.len() == 1 => {
                let (variant, content) = object.iter().next().ok_or_else(not_an_enum)?;
                visitor.visit_enum(Variant { name: variant, content })
            }
            _ => Err(not_an_enum()),
        }
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(self, _name: &'static str, visitor: V) -> Result<V::Value, Error> {
        // A codec without parameters has an empty configuration, which `struct Config;` must read.
        match self.0 {
            Json::Object(object) if object.is_empty() => visitor.visit_unit(),
            _ => self.deserialize_any(visitor),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit seq
        tuple tuple_struct map struct identifier ignored_any
    }
}

fn visit_number<'de, V: Visitor<'de>>(number: &Number, visitor: V) -> Result<V::Value, Error> {
    if let Some(value) = number.as_u64() {
        visitor.visit_u64(value)
    } else if let Some(value) = number.as_i64() {
        visitor.visit_i64(value)
    } else if let Some(value) = number.as_i128() {
        visitor.visit_i128(value)
    } else if let Some(value) = number.as_u128() {
        visitor.visit_u128(value)
    } else {
        visitor.visit_f64(number.as_f64())
    }
}

fn unexpected(value: &Json) -> Unexpected<'_> {
    match value {
        Json::Null => Unexpected::Unit,
        Json::Bool(value) => Unexpected::Bool(*value),
        Json::Number(number) => Unexpected::Other(number.as_str()),
        Json::String(text) => Unexpected::Str(text),
        Json::Array(_) => Unexpected::Seq,
        Json::Object(_) => Unexpected::Map,
    }
}

/// A value on its way into a `Json`: numbers go over as literals.
struct Verbatim<'a>(&'a Json);

impl<'de> Deserializer<'de> for Verbatim<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Json::Number(number) => {
                let literal: StrDeserializer<'_, Error> = number.as_str().into_deserializer();
                visitor.visit_enum(literal)
            }
            other => Value(other).deserialize_any(visitor),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

struct Elements<'a> {
    rest: &'a [Json],
    index: usize,
}

impl<'de> SeqAccess<'de> for Elements<'de> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Error> {
        let Some((first, rest)) = self.rest.split_first() else { return Ok(None) };
        let index = self.index;
        self.rest = rest;
        self.index += 1;
        seed.deserialize(Value(first)).map(Some).map_err(|Error(error)| Error(error.within_index(index)))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.rest.len())
    }
}

struct Entries<'a> {
    rest: Box<dyn Iterator<Item = (&'a str, &'a Json)> + 'a>,
    current: Option<(&'a str, &'a Json)>,
}

impl<'a> Entries<'a> {
    fn of(value: &'a Json) -> Self {
        let entries = value.as_object().into_iter().flat_map(|object| object.iter());
        Self { rest: Box::new(entries), current: None }
    }
}

impl<'de> MapAccess<'de> for Entries<'de> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Error> {
        self.current = self.rest.next();
        let Some((key, _)) = self.current else { return Ok(None) };
        seed.deserialize(Key(key)).map(Some)
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, Error> {
        let Some((key, value)) = self.current.take() else {
            return Err(Error::new("a value was asked for before its key"));
        };
        seed.deserialize(Value(value)).map_err(|Error(error)| Error(error.within(key)))
    }
}

/// An object key; reads into strings, and into integers and booleans by their text.
struct Key<'a>(&'a str);

macro_rules! key_from_text {
    ($($method:ident => $visit:ident),*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            match self.0.parse() {
                Ok(value) => visitor.$visit(value),
                Err(_) => visitor.visit_borrowed_str(self.0),
            }
        }
    )*};
}

impl<'de> Deserializer<'de> for Key<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_borrowed_str(self.0)
    }

    key_from_text! {
        deserialize_bool => visit_bool,
        deserialize_i8 => visit_i64, deserialize_i16 => visit_i64, deserialize_i32 => visit_i64,
        deserialize_i64 => visit_i64, deserialize_u8 => visit_u64, deserialize_u16 => visit_u64,
        deserialize_u32 => visit_u64, deserialize_u64 => visit_u64
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let name: StrDeserializer<'_, Error> = self.0.into_deserializer();
        visitor.visit_enum(name)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _name: &'static str, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    forward_to_deserialize_any! {
        i128 u128 f32 f64 char str string bytes byte_buf option unit unit_struct seq tuple
        tuple_struct map struct identifier ignored_any
    }
}

struct Variant<'a> {
    name: &'a str,
    content: &'a Json,
}

impl<'de> EnumAccess<'de> for Variant<'de> {
    type Error = Error;
    type Variant = Content<'de>;

    fn variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<(T::Value, Content<'de>), Error> {
        let name = seed.deserialize(Key(self.name))?;
        Ok((name, Content { name: self.name, value: self.content }))
    }
}

struct Content<'a> {
    name: &'a str,
    value: &'a Json,
}

impl Content<'_> {
    fn place<T>(name: &str, result: Result<T, Error>) -> Result<T, Error> {
        result.map_err(|Error(error)| Error(error.within(name)))
    }
}

impl<'de> VariantAccess<'de> for Content<'de> {
    type Error = Error;

    fn unit_variant(self) -> Result<(), Error> {
        Self::place(self.name, serde::Deserialize::deserialize(Value(self.value)))
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Error> {
        Self::place(self.name, seed.deserialize(Value(self.value)))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _len: usize, visitor: V) -> Result<V::Value, Error> {
        Self::place(self.name, Value(self.value).deserialize_any(visitor))
    }

    fn struct_variant<V: Visitor<'de>>(self, _fields: &'static [&'static str], visitor: V) -> Result<V::Value, Error> {
        let result = match self.value {
            Json::Object(_) => MapAccessDeserializer::new(Entries::of(self.value)).deserialize_any(visitor),
            other => Value(other).deserialize_any(visitor),
        };
        Self::place(self.name, result)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;

    use super::super::super::Json;

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Shuffle {
        Off,
        Bits { width: u8 },
        Pair(u8, u8),
        One(u8),
    }

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Config {
        level: i32,
        #[serde(default)]
        checksum: bool,
        size: Option<u64>,
        shuffle: Shuffle,
        scalar: Json,
        map: Vec<(f32, String)>,
        by_number: BTreeMap<u16, i8>,
    }

    fn json(text: &str) -> Json {
        Json::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn a_configuration_reads_into_a_struct() {
        let value = json(
            r#"{"level":-5,"shuffle":"off","scalar":[123456789012345678901234567890123456789012.50],
                "map":[[1,"a"],[2.5,"b"]],"by_number":{"7":-1}}"#,
        );
        assert_eq!(
            value.to::<Config>(),
            Ok(Config {
                level: -5,
                checksum: false,
                size: None,
                shuffle: Shuffle::Off,
                scalar: json("[123456789012345678901234567890123456789012.50]"),
                map: vec![(1.0, "a".to_owned()), (2.5, "b".to_owned())],
                by_number: [(7, -1)].into(),
            })
        );
        for (text, expected) in [
            (r#"{"bits":{"width":3}}"#, Shuffle::Bits { width: 3 }),
            (r#"{"pair":[1,2]}"#, Shuffle::Pair(1, 2)),
            (r#"{"one":9}"#, Shuffle::One(9)),
        ] {
            assert_eq!(json(text).to::<Shuffle>(), Ok(expected));
        }
    }

    #[test]
    fn errors_point_into_the_configuration() {
        let error = json(r#"{"level":1,"shuffle":"off","scalar":1,"map":[[1,"a"],[2,3]],"by_number":{}}"#)
            .to::<Config>()
            .map_err(|error| error.to_string());
        assert_eq!(error, Err("$.map[1][1]: invalid type: integer `3`, expected a string".to_owned()));
        for text in [r#"{"level":1.5}"#, r#"{"level":1,"extra":1}"#, "[]", "null", r#"{"level":5000000000}"#] {
            assert!(json(text).to::<Config>().is_err(), "{text}");
        }
        assert!(json(r#"{"a":1,"b":2}"#).to::<Shuffle>().is_err());
    }

    #[test]
    fn an_empty_configuration_reads_into_a_unit_struct() {
        #[derive(Debug, PartialEq, Deserialize)]
        struct None;
        assert_eq!(json("{}").to::<None>(), Ok(None));
        assert!(json(r#"{"a":1}"#).to::<None>().is_err());
    }
}

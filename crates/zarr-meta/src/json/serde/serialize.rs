//! `Json` as a serde data format to write to.

use serde::Serialize;
use serde::ser::{
    SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple, SerializeTupleStruct, SerializeTupleVariant,
    Serializer,
};

use super::super::object::Builder;
use super::super::{Json, JsonObject};
use super::Error;

pub(super) struct ToJson;

macro_rules! from_value {
    ($($method:ident: $kind:ty),*) => {$(
        fn $method(self, value: $kind) -> Result<Json, Error> {
            Ok(value.into())
        }
    )*};
}

impl Serializer for ToJson {
    type Ok = Json;
    type Error = Error;
    type SerializeSeq = Elements;
    type SerializeTuple = Elements;
    type SerializeTupleStruct = Elements;
    type SerializeTupleVariant = Elements;
    type SerializeMap = Entries;
    type SerializeStruct = Entries;
    type SerializeStructVariant = Entries;

    from_value! {
        serialize_bool: bool, serialize_i8: i8, serialize_i16: i16, serialize_i32: i32,
        serialize_i64: i64, serialize_i128: i128, serialize_u8: u8, serialize_u16: u16,
        serialize_u32: u32, serialize_u64: u64, serialize_u128: u128, serialize_f32: f32,
        serialize_f64: f64, serialize_str: &str
    }

    fn serialize_char(self, value: char) -> Result<Json, Error> {
        Ok(value.to_string().into())
    }

    fn serialize_bytes(self, value: &[u8]) -> Result<Json, Error> {
        Ok(value.iter().copied().collect())
    }

    fn serialize_none(self) -> Result<Json, Error> {
        Ok(Json::Null)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<Json, Error> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<Json, Error> {
        Ok(Json::Null)
    }

    /// An empty object: the configuration of a codec without parameters.
    fn serialize_unit_struct(self, _name: &'static str) -> Result<Json, Error> {
        Ok(Json::Object(JsonObject::new()))
    }

    fn serialize_unit_variant(self, _name: &'static str, _index: u32, variant: &'static str) -> Result<Json, Error> {
        Ok(variant.into())
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _name: &'static str, value: &T) -> Result<Json, Error> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<Json, Error> {
        Ok(under(variant, value.serialize(self)?))
    }

    fn serialize_seq(self, _len: Option<usize>) -> Result<Elements, Error> {
        Ok(Elements::default())
    }

    fn serialize_tuple(self, _len: usize) -> Result<Elements, Error> {
        Ok(Elements::default())
    }

    fn serialize_tuple_struct(self, _name: &'static str, _len: usize) -> Result<Elements, Error> {
        Ok(Elements::default())
    }

    fn serialize_tuple_variant(self, _name: &'static str, _index: u32, variant: &'static str, _len: usize) -> Result<Elements, Error> {
        Ok(Elements { variant: Some(variant), elements: Vec::new() })
    }

    fn serialize_map(self, _len: Option<usize>) -> Result<Entries, Error> {
        Ok(Entries::default())
    }

    fn serialize_struct(self, _name: &'static str, _len: usize) -> Result<Entries, Error> {
        Ok(Entries::default())
    }

    fn serialize_struct_variant(self, _name: &'static str, _index: u32, variant: &'static str, _len: usize) -> Result<Entries, Error> {
        Ok(Entries { variant: Some(variant), ..Entries::default() })
    }
}

fn under(variant: &str, content: Json) -> Json {
    Json::Object(JsonObject::new().with(variant, content))
}

fn finish(variant: Option<&'static str>, content: Json) -> Json {
    match variant {
        Some(variant) => under(variant, content),
        None => content,
    }
}

#[derive(Default)]
pub(super) struct Elements {
    variant: Option<&'static str>,
    elements: Vec<Json>,
}

impl Elements {
    fn push<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        let index = self.elements.len();
        let value = value.serialize(ToJson).map_err(|Error(error)| Error(error.within_index(index)))?;
        self.elements.push(value);
        Ok(())
    }

    fn finish(self) -> Json {
        finish(self.variant, Json::Array(self.elements))
    }
}

macro_rules! elements {
    ($($name:ident::$push:ident),*) => {$(
        impl $name for Elements {
            type Ok = Json;
            type Error = Error;

            fn $push<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
                self.push(value)
            }

            fn end(self) -> Result<Json, Error> {
                Ok(self.finish())
            }
        }
    )*};
}
elements!(
    SerializeSeq::serialize_element,
    SerializeTuple::serialize_element,
    SerializeTupleStruct::serialize_field,
    SerializeTupleVariant::serialize_field
);

#[derive(Default)]
pub(super) struct Entries {
    variant: Option<&'static str>,
    entries: Builder,
    key: Option<String>,
}

impl Entries {
    fn push<T: Serialize + ?Sized>(&mut self, key: &str, value: &T) -> Result<(), Error> {
        let value = value.serialize(ToJson).map_err(|Error(error)| Error(error.within(key)))?;
        self.entries.push(key.to_owned(), value);
        Ok(())
    }

    fn finish(self) -> Json {
        finish(self.variant, Json::Object(self.entries.finish()))
    }
}

impl SerializeMap for Entries {
    type Ok = Json;
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Error> {
        self.key = Some(match key.serialize(ToJson)? {
            Json::String(text) => text,
            Json::Number(number) if number.is_integer() => number.as_str().to_owned(),
            Json::Bool(value) => value.to_string(),
            other => return Err(Error::new(format!("{} as an object key", other.excerpt()))),
        });
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        let key = self.key.take().ok_or_else(|| Error::new("a value without a key"))?;
        self.push(&key, value)
    }

    fn end(self) -> Result<Json, Error> {
        Ok(self.finish())
    }
}

macro_rules! fields {
    ($($name:ident),*) => {$(
        impl $name for Entries {
            type Ok = Json;
            type Error = Error;

            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                key: &'static str,
                value: &T,
            ) -> Result<(), Error> {
                self.push(key, value)
            }

            fn end(self) -> Result<Json, Error> {
                Ok(self.finish())
            }
        }
    )*};
}
fields!(SerializeStruct, SerializeStructVariant);

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Serialize;

    use super::super::super::Json;

    #[derive(Serialize)]
    #[serde(rename_all = "lowercase")]
    enum Mode {
        Rate { rate: f64 },
        Plain,
        Pair(u8, i8),
        One(Option<bool>),
    }

    #[derive(Serialize)]
    struct Config {
        modes: Vec<Mode>,
        #[serde(skip_serializing_if = "Option::is_none")]
        absent: Option<u8>,
        map: BTreeMap<u8, char>,
        json: Json,
    }

    #[test]
    fn a_struct_writes_as_a_configuration() {
        let config = Config {
            modes: vec![Mode::Rate { rate: 2.0 }, Mode::Plain, Mode::Pair(1, -1), Mode::One(None)],
            absent: None,
            map: [(1, 'x')].into(),
            json: Json::from(vec![u128::MAX]),
        };
        assert_eq!(
            Json::from_serialize(&config).map(|json| json.to_text()).as_deref(),
            Ok(
                r#"{"modes":[{"rate":{"rate":2.0}},"plain",{"pair":[1,-1]},{"one":null}],"map":{"1":"x"},"json":[340282366920938463463374607431768211455]}"#
            )
        );
    }

    #[test]
    fn keys_that_are_no_strings_are_refused() {
        let map: BTreeMap<Vec<u8>, u8> = [(vec![1], 1)].into();
        assert!(Json::from_serialize(&map).is_err());
    }

    #[test]
    fn json_passes_through_other_formats() {
        let text = r#"{"b":[1,-2,2.5,null,true,"x"],"a":{}}"#;
        let value: Json = serde_json::from_str(text).unwrap_or_default();
        assert_eq!(value.get("b").and_then(|b| b.as_array()).map(<[Json]>::len), Some(6));
        assert_eq!(serde_json::to_string(&value).ok().as_deref(), Some(text));
    }
}

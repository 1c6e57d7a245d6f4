//! The bridge to serde: JSON values into and out of any type, and `Json` in any format.

mod deserialize;
mod serialize;

use std::fmt;

use serde::de::{DeserializeOwned, EnumAccess, MapAccess, SeqAccess, VariantAccess, Visitor};
use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::object::Builder;
use super::{Json, JsonObject, Number};
use crate::{MetadataError, error::JsonPath};

pub(super) fn from_json<T: DeserializeOwned>(value: &Json) -> Result<T, MetadataError> {
    T::deserialize(deserialize::Value(value)).map_err(|Error(error)| error)
}

pub(super) fn to_json<T: Serialize + ?Sized>(value: &T) -> Result<Json, MetadataError> {
    value.serialize(serialize::ToJson).map_err(|Error(error)| error)
}

/// What `Json` calls itself when it asks a deserializer for a newtype struct, so that
/// [`deserialize::Value`] can hand number literals over unchanged. Other formats see an ordinary newtype.
const JSON_NEWTYPE: &str = "$zarr_meta::Json";

/// An error under way through serde; gathers its place on the way out.
#[derive(Debug)]
struct Error(MetadataError);

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Error {}

impl Error {
    fn new(problem: impl fmt::Display) -> Self {
        Self(MetadataError::Configuration { at: JsonPath::root(), problem: problem.to_string() })
    }
}

impl serde::de::Error for Error {
    fn custom<T: fmt::Display>(problem: T) -> Self {
        Self::new(problem)
    }
}

impl serde::ser::Error for Error {
    fn custom<T: fmt::Display>(problem: T) -> Self {
        Self::new(problem)
    }
}

impl Serialize for Number {
    /// As an integer where the literal is one that 128 bits hold, else as the nearest `f64`.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if let Some(value) = self.as_u64() {
            serializer.serialize_u64(value)
        } else if let Some(value) = self.as_i64() {
            serializer.serialize_i64(value)
        } else if let Some(value) = self.as_i128() {
            serializer.serialize_i128(value)
        } else if let Some(value) = self.as_u128() {
            serializer.serialize_u128(value)
        } else {
            serializer.serialize_f64(self.as_f64())
        }
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::Number(number) => number.serialize(serializer),
            Self::String(text) => serializer.serialize_str(text),
            Self::Array(elements) => {
                let mut sequence = serializer.serialize_seq(Some(elements.len()))?;
                for element in elements {
                    sequence.serialize_element(element)?;
                }
                sequence.end()
            }
            Self::Object(object) => object.serialize(serializer),
        }
    }
}

impl Serialize for JsonObject {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.len()))?;
        for (key, value) in self.iter() {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_newtype_struct(JSON_NEWTYPE, JsonVisitor)
    }
}

impl<'de> Deserialize<'de> for JsonObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ObjectVisitor;

        impl<'de> Visitor<'de> for ObjectVisitor {
            type Value = JsonObject;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<JsonObject, A::Error> {
                read_object(map)
            }
        }

        deserializer.deserialize_map(ObjectVisitor)
    }
}

fn read_object<'de, A: MapAccess<'de>>(mut map: A) -> Result<JsonObject, A::Error> {
    let mut entries = Builder::default();
    while let Some((key, value)) = map.next_entry()? {
        entries.push(key, value);
    }
    Ok(entries.finish())
}

struct JsonVisitor;

impl<'de> Visitor<'de> for JsonVisitor {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, inner: D) -> Result<Json, D::Error> {
        inner.deserialize_any(JsonVisitor)
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_none<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, inner: D) -> Result<Json, D::Error> {
        Json::deserialize(inner)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Json, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Json, E> {
        Ok(value.into())
    }

    fn visit_i128<E>(self, value: i128) -> Result<Json, E> {
        Ok(value.into())
    }

    fn visit_u128<E>(self, value: u128) -> Result<Json, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Json, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Json, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Json, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Json, A::Error> {
        let mut elements = Vec::new();
        while let Some(element) = sequence.next_element()? {
            elements.push(element);
        }
        Ok(Json::Array(elements))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Json, A::Error> {
        read_object(map).map(Json::Object)
    }

    /// Only [`deserialize::Value`] offers an enum to a visitor that asked for anything at all: its variant
    /// name is a number's literal.
    fn visit_enum<A: EnumAccess<'de>>(self, data: A) -> Result<Json, A::Error> {
        let (literal, variant): (String, _) = data.variant()?;
        variant.unit_variant()?;
        Number::parse(&literal).map(Json::Number).ok_or_else(|| serde::de::Error::custom("malformed number"))
    }
}

//! JSON values that keep what Zarr attributes need kept: number literals and key order.

mod number;
mod object;
mod parse;
mod serde;
mod write;

pub use number::Number;
pub use object::JsonObject;
pub use parse::MAX_DEPTH;

use crate::MetadataError;

/// A JSON value (RFC 8259).
///
/// Unlike the usual value types it keeps every number as it was written, so that integers past
/// 2^64 and floats with more digits than `f64` holds survive a round trip, and it keeps the order
/// of object keys.
///
/// [`Json::parse`] also reads the bare tokens `NaN`, `Infinity` and `-Infinity` which Python
/// writes. [`Json::to_text`] never writes them: a number that is not finite becomes the string
/// `"NaN"`, `"Infinity"` or `"-Infinity"`, the spelling Zarr gives these values in fill values.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Json {
    /// `null`
    #[default]
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number, as its literal.
    Number(Number),
    /// A string.
    String(String),
    /// An array.
    Array(Vec<Json>),
    /// An object, in the order of its keys.
    Object(JsonObject),
}

impl Json {
    /// Parses a whole document.
    ///
    /// A byte order mark is skipped. Of several equal keys in an object the last value wins, at
    /// the place of the first, as in Python and JavaScript. Nesting deeper than [`MAX_DEPTH`] and
    /// lone surrogates in strings are errors.
    ///
    /// # Errors
    /// [`MetadataError::Syntax`] with the place at which the text stops being JSON.
    pub fn parse(text: &[u8]) -> Result<Self, MetadataError> {
        parse::parse(text)
    }

    /// The value as compact text, without any white space.
    pub fn to_text(&self) -> String {
        write::compact(self)
    }

    /// The value as text with two spaces of indentation, the form zarr-python writes.
    pub fn to_text_pretty(&self) -> String {
        write::pretty(self)
    }

    /// Reads the value into a type of the caller's, by its `Deserialize` implementation.
    ///
    /// # Errors
    /// [`MetadataError::Configuration`] if the value does not fit the type.
    pub fn to<T: ::serde::de::DeserializeOwned>(&self) -> Result<T, MetadataError> {
        serde::from_json(self)
    }

    /// Builds a value from any type that implements `Serialize`.
    ///
    /// # Errors
    /// [`MetadataError::Configuration`] if the type's implementation fails, or has map keys that
    /// are not strings, integers or booleans.
    pub fn from_serialize<T: ::serde::Serialize + ?Sized>(value: &T) -> Result<Self, MetadataError> {
        serde::to_json(value)
    }

    /// The boolean, if it is one.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// The number, if it is one.
    pub fn as_number(&self) -> Option<&Number> {
        match self {
            Self::Number(value) => Some(value),
            _ => None,
        }
    }

    /// The number as `u64`, if it is an integer literal in range.
    pub fn as_u64(&self) -> Option<u64> {
        self.as_number().and_then(Number::as_u64)
    }

    /// The number as `i64`, if it is an integer literal in range.
    pub fn as_i64(&self) -> Option<i64> {
        self.as_number().and_then(Number::as_i64)
    }

    /// The number as the nearest `f64`, if it is a number.
    pub fn as_f64(&self) -> Option<f64> {
        self.as_number().map(Number::as_f64)
    }

    /// The string, if it is one.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(value) => Some(value),
            _ => None,
        }
    }

    /// The elements, if it is an array.
    pub fn as_array(&self) -> Option<&[Json]> {
        match self {
            Self::Array(value) => Some(value),
            _ => None,
        }
    }

    /// The object, if it is one.
    pub fn as_object(&self) -> Option<&JsonObject> {
        match self {
            Self::Object(value) => Some(value),
            _ => None,
        }
    }

    /// The object, if it is one, to change it.
    pub fn as_object_mut(&mut self) -> Option<&mut JsonObject> {
        match self {
            Self::Object(value) => Some(value),
            _ => None,
        }
    }

    /// True for `null`.
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// The value under `key`, if this is an object that has it.
    pub fn get(&self, key: &str) -> Option<&Json> {
        self.as_object().and_then(|object| object.get(key))
    }

    /// A short rendering for error messages.
    pub(crate) fn excerpt(&self) -> String {
        const LIMIT: usize = 60;
        let (kind, text) = match self {
            Self::Null => return "null".to_owned(),
            Self::Array(elements) => (format!("an array of {}", elements.len()), None),
            Self::Object(object) => (format!("an object with {} keys", object.len()), None),
            Self::Bool(_) => ("the boolean".to_owned(), Some(self.to_text())),
            Self::Number(number) => ("the number".to_owned(), Some(number.as_str().to_owned())),
            Self::String(_) => ("the string".to_owned(), Some(self.to_text())),
        };
        match text {
            None => kind,
            Some(text) if text.chars().count() <= LIMIT => format!("{kind} {text}"),
            Some(text) => {
                let head: String = text.chars().take(LIMIT).collect();
                format!("{kind} {head}..")
            }
        }
    }
}

impl From<bool> for Json {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<&str> for Json {
    fn from(value: &str) -> Self {
        Self::String(value.to_owned())
    }
}

impl From<String> for Json {
    fn from(value: String) -> Self {
        Self::String(value)
    }
}

impl From<Number> for Json {
    fn from(value: Number) -> Self {
        Self::Number(value)
    }
}

impl From<JsonObject> for Json {
    fn from(value: JsonObject) -> Self {
        Self::Object(value)
    }
}

impl<T: Into<Json>> From<Vec<T>> for Json {
    fn from(values: Vec<T>) -> Self {
        Self::Array(values.into_iter().map(Into::into).collect())
    }
}

impl<T: Into<Json>> FromIterator<T> for Json {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        Self::Array(values.into_iter().map(Into::into).collect())
    }
}

impl<T: Into<Json>> From<Option<T>> for Json {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

macro_rules! from_number {
    ($($kind:ty),*) => {$(
        impl From<$kind> for Json {
            fn from(value: $kind) -> Self {
                Self::Number(Number::from(value))
            }
        }
    )*};
}
from_number!(u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize, f32, f64);

impl std::fmt::Display for Json {
    /// Compact text; with `{:#}` the indented form.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&if f.alternate() { self.to_text_pretty() } else { self.to_text() })
    }
}

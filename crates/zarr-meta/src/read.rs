//! Small helpers that take values out of JSON objects and say what is wrong where.

use crate::{Json, JsonObject, JsonPath, MetadataError};

/// The object, or an error that says what was expected.
pub(crate) fn object<'a>(value: &'a Json, what: &str) -> Result<&'a JsonObject, MetadataError> {
    value.as_object().ok_or_else(|| MetadataError::unexpected(what, value))
}

/// The value of a required key, through `read`.
pub(crate) fn required<T>(
    object: &JsonObject,
    key: &str,
    read: impl FnOnce(&Json) -> Result<T, MetadataError>,
) -> Result<T, MetadataError> {
    match object.get(key) {
        Some(value) => read(value).map_err(|error| error.within(key)),
        None => Err(MetadataError::missing(key)),
    }
}

/// The value of an optional key, through `read`; `None` if the key is absent.
pub(crate) fn optional<T>(
    object: &JsonObject,
    key: &str,
    read: impl FnOnce(&Json) -> Result<T, MetadataError>,
) -> Result<Option<T>, MetadataError> {
    object.get(key).map(read).transpose().map_err(|error| error.within(key))
}

/// An error unless every key of `object` is among `known`.
pub(crate) fn only(object: &JsonObject, known: &[&str]) -> Result<(), MetadataError> {
    match object.keys().find(|key| !known.contains(key)) {
        None => Ok(()),
        Some(key) => Err(MetadataError::UnknownKey { at: JsonPath::root(), key: key.to_owned() }),
    }
}

/// An array, each element through `read`.
pub(crate) fn list<T>(value: &Json, what: &str, read: impl Fn(&Json) -> Result<T, MetadataError>) -> Result<Vec<T>, MetadataError> {
    value
        .as_array()
        .ok_or_else(|| MetadataError::unexpected(what, value))?
        .iter()
        .enumerate()
        .map(|(index, element)| read(element).map_err(|error| error.within_index(index)))
        .collect()
}

/// A whole number from zero up, written without fraction or exponent.
pub(crate) fn unsigned(value: &Json) -> Result<u64, MetadataError> {
    value.as_u64().ok_or_else(|| MetadataError::unexpected("an integer in [0, 2^64)", value))
}

/// An array of whole numbers.
pub(crate) fn unsigned_list(value: &Json) -> Result<Vec<u64>, MetadataError> {
    list(value, "an array of integers", unsigned)
}

/// A string.
pub(crate) fn string(value: &Json) -> Result<&str, MetadataError> {
    value.as_str().ok_or_else(|| MetadataError::unexpected("a string", value))
}

//! JSON for programs to read: the metadata crate's own values, which keep numbers as they are.

use zarr::meta::{Json, JsonObject};

/// A float as JSON has it: a string where it is not finite.
pub(crate) fn float(value: f64) -> Json {
    if value.is_nan() {
        "NaN".into()
    } else if value.is_infinite() {
        if value > 0.0 { "Infinity".into() } else { "-Infinity".into() }
    } else {
        value.into()
    }
}

pub(crate) fn optional<T: Into<Json>>(value: Option<T>) -> Json {
    value.map_or(Json::Null, Into::into)
}

pub(crate) fn object() -> JsonObject {
    JsonObject::new()
}

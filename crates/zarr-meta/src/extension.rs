//! Extension objects: a name with a configuration.

use serde::de::DeserializeOwned;

use crate::{Json, JsonObject, MetadataError};

/// A named extension with its configuration: what `codecs`, `data_type`, `chunk_grid` and
/// `chunk_key_encoding` hold.
///
/// Specification: core 3.1, "Extension definition". Reads the object form and the bare string,
/// writes the object form alone, since most readers refuse the bare string.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Extension {
    /// The registered name or URI.
    pub name: String,
    /// The configuration; `None` when the key is absent.
    pub configuration: Option<JsonObject>,
    /// Whether a reader that does not know the extension must fail.
    pub must_understand: bool,
}

impl Extension {
    /// An extension without configuration that must be understood.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), configuration: None, must_understand: true }
    }

    /// An extension with a configuration that must be understood.
    pub fn with_configuration(name: impl Into<String>, configuration: JsonObject) -> Self {
        Self { name: name.into(), configuration: Some(configuration), must_understand: true }
    }

    /// An extension whose configuration is what `config` serializes to.
    ///
    /// # Errors
    /// [`MetadataError::Configuration`] if `config` fails to serialize, or is not an object.
    pub fn from_config<T: serde::Serialize + ?Sized>(name: impl Into<String>, config: &T) -> Result<Self, MetadataError> {
        match Json::from_serialize(config)? {
            Json::Object(configuration) => Ok(Self::with_configuration(name, configuration)),
            other => Err(MetadataError::unexpected("an object as configuration", &other)),
        }
    }

    /// Reads an extension from its object form or from a bare string.
    ///
    /// # Errors
    /// If the value is neither, the name is missing or empty, the configuration is not an object,
    /// `must_understand` is not a boolean, or there are other keys.
    pub fn parse(value: &Json) -> Result<Self, MetadataError> {
        let object = match value {
            Json::String(name) if !name.is_empty() => return Ok(Self::new(name)),
            Json::Object(object) => object,
            other => {
                return Err(MetadataError::unexpected("an extension: an object with a name, or a name", other));
            }
        };
        let name = match object.get("name") {
            Some(Json::String(name)) if !name.is_empty() => name.clone(),
            Some(other) => {
                return Err(MetadataError::unexpected("a name that is not empty", other).within("name"));
            }
            None => return Err(MetadataError::missing("name")),
        };
        let configuration = match object.get("configuration") {
            None => None,
            Some(Json::Object(configuration)) => Some(configuration.clone()),
            Some(other) => {
                return Err(MetadataError::unexpected("an object", other).within("configuration"));
            }
        };
        let must_understand = match object.get("must_understand") {
            None => true,
            Some(Json::Bool(value)) => *value,
            Some(other) => {
                return Err(MetadataError::unexpected("true or false", other).within("must_understand"));
            }
        };
        let known = ["name", "configuration", "must_understand"];
        if let Some(key) = object.keys().find(|key| !known.contains(key)) {
            return Err(MetadataError::UnknownKey { at: crate::JsonPath::root(), key: key.to_owned() });
        }
        Ok(Self { name, configuration, must_understand })
    }

    /// The object form. `must_understand` is written only when it is false.
    pub fn to_json(&self) -> Json {
        let mut object = JsonObject::new().with("name", self.name.as_str());
        if let Some(configuration) = &self.configuration {
            object.insert("configuration", configuration.clone());
        }
        if !self.must_understand {
            object.insert("must_understand", false);
        }
        Json::Object(object)
    }

    /// Reads the configuration into a type of the extension author's. An absent configuration
    /// reads as an empty object. Whether unknown keys are errors is up to the type
    /// (`#[serde(deny_unknown_fields)]`).
    ///
    /// # Errors
    /// [`MetadataError::Configuration`] if the configuration does not fit the type.
    pub fn config<T: DeserializeOwned>(&self) -> Result<T, MetadataError> {
        let configuration = Json::Object(self.configuration.clone().unwrap_or_default());
        configuration.to().map_err(|error| error.within("configuration"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Extension, MetadataError> {
        Json::parse(text.as_bytes()).and_then(|value| Extension::parse(&value))
    }

    #[test]
    fn both_forms_are_read_and_one_is_written() {
        let short = parse("\"crc32c\"");
        assert_eq!(short, parse(r#"{"name":"crc32c"}"#));
        assert_eq!(short.map(|e| e.to_json().to_text()).as_deref(), Ok(r#"{"name":"crc32c"}"#));
        let full = r#"{"name":"x","configuration":{"a":1},"must_understand":false}"#;
        assert_eq!(parse(full).map(|e| e.to_json().to_text()).as_deref(), Ok(full));
    }

    #[test]
    fn malformed_extensions_are_refused() {
        for text in [
            "1",
            "null",
            "\"\"",
            "{}",
            r#"{"name":1}"#,
            r#"{"name":""}"#,
            r#"{"name":"x","configuration":null}"#,
            r#"{"name":"x","must_understand":0}"#,
            r#"{"name":"x","other":1}"#,
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn configurations_read_into_types() {
        #[derive(Debug, PartialEq, serde::Deserialize, serde::Serialize)]
        struct Gzip {
            level: u8,
        }
        let gzip = parse(r#"{"name":"gzip","configuration":{"level":5}}"#);
        assert_eq!(gzip.and_then(|gzip| gzip.config()), Ok(Gzip { level: 5 }));
        assert_eq!(
            Extension::new("gzip").config::<Gzip>().map_err(|error| error.to_string()),
            Err("$.configuration: missing field `level`".to_owned())
        );
        assert_eq!(
            Extension::from_config("gzip", &Gzip { level: 1 }).map(|e| e.to_json().to_text()).as_deref(),
            Ok(r#"{"name":"gzip","configuration":{"level":1}}"#)
        );
        assert!(Extension::from_config("gzip", &1).is_err());
    }
}

//! serde for the types that read and write themselves as JSON, so that they can stand in the
//! configuration structs of codec authors.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{ChunkGrid, ChunkKeyEncoding, DataType, Extension, Json};

macro_rules! via_json {
    ($($name:ident),*) => {$(
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                self.to_json().serialize(serializer)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let value = Json::deserialize(deserializer)?;
                Self::parse(&value).map_err(serde::de::Error::custom)
            }
        }
    )*};
}
via_json!(Extension, DataType, ChunkGrid, ChunkKeyEncoding);

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Deserialize, Serialize)]
    struct Sharding {
        chunk_shape: Vec<u64>,
        codecs: Vec<Extension>,
        data_type: DataType,
    }

    #[test]
    fn configurations_may_hold_extensions() {
        let text = r#"{"chunk_shape":[2],"codecs":[{"name":"bytes"}],"data_type":"r16"}"#;
        let json = Json::parse(text.as_bytes()).unwrap_or_default();
        let config = json.to::<Sharding>();
        assert_eq!(config.as_ref().map(|c| c.codecs.len()), Ok(1));
        assert_eq!(config.and_then(|c| Json::from_serialize(&c)), Ok(json));
        let wrong = Json::parse(br#"{"chunk_shape":[2],"codecs":[{"nam":"bytes"}],"data_type":"r16"}"#);
        assert_eq!(
            wrong.and_then(|json| json.to::<Sharding>()).map_err(|error| error.to_string()),
            Err("$.codecs[0]: $: the required key \"name\" is missing".to_owned())
        );
    }
}

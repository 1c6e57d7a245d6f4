//! The filters and the compressor of version 2.

use crate::{Json, JsonObject, MetadataError, read};

/// A filter or a compressor: a numcodecs id with its configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CodecV2 {
    /// The id: `blosc`, `delta`.
    pub id: String,
    /// The other keys.
    pub configuration: JsonObject,
}

impl CodecV2 {
    /// A codec.
    pub fn new(id: impl Into<String>, configuration: JsonObject) -> Self {
        Self { id: id.into(), configuration }
    }

    /// Reads a codec: an object with an `id`.
    ///
    /// # Errors
    /// If the value is no object, or the id is missing or no string.
    pub fn parse(value: &Json) -> Result<Self, MetadataError> {
        let object = read::object(value, "a codec: an object with an id")?;
        let id = read::required(object, "id", |id| read::string(id).map(str::to_owned))?;
        let mut configuration = object.clone();
        configuration.remove("id");
        Ok(Self { id, configuration })
    }

    /// The codec as an object with its `id` first.
    pub fn to_json(&self) -> Json {
        let mut object = JsonObject::new().with("id", self.id.as_str());
        super::extend(&mut object, &self.configuration);
        object.into()
    }

    /// Whether `dtype` is that of Python's objects.
    fn is_of_objects(&self) -> bool {
        let dtype = self.configuration.get("dtype").and_then(Json::as_str).unwrap_or_default();
        dtype == "object" || dtype.trim_start_matches(['<', '>', '|', '=']).starts_with('O')
    }

    /// What the codec takes and gives.
    pub(super) fn kind(&self) -> Kind {
        match self.id.as_str() {
            "categorize" if self.is_of_objects() => Kind::ArrayToBytes,
            "vlen-utf8" | "vlen-bytes" | "vlen-array" | "json2" | "pickle" | "msgpack2" | "pcodec" | "zfpy" => Kind::ArrayToBytes,
            "zlib" | "gzip" | "bz2" | "lzma" | "lz4" | "zstd" | "blosc" | "snappy" | "shuffle" | "crc32" | "crc32c" | "adler32"
            | "fletcher32" | "jenkins_lookup3" | "base64" => Kind::BytesToBytes,
            _ => Kind::ArrayToArray,
        }
    }
}

/// What a codec takes and gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    ArrayToArray,
    ArrayToBytes,
    BytesToBytes,
}

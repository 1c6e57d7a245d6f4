//! The metadata of an array.

use super::{attributes, check_format, check_ignorable, check_node_type, ignorable};
use crate::{ChunkGrid, ChunkKeyEncoding, DataType, Extension, FillValue, Json, JsonObject, MetadataError, read};

/// The metadata of a version 3 array.
///
/// Specification: core 3.1, "Array metadata".
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ArrayMetadataV3 {
    /// The length of each dimension in elements.
    pub shape: Vec<u64>,
    /// The type of the elements.
    pub data_type: DataType,
    /// How chunks tile the array.
    pub chunk_grid: ChunkGrid,
    /// How chunk coordinates become keys.
    pub chunk_key_encoding: ChunkKeyEncoding,
    /// The element where nothing was written.
    pub fill_value: FillValue,
    /// The codecs, in the order of encoding. Not empty.
    pub codecs: Vec<Extension>,
    /// The user's attributes.
    pub attributes: JsonObject,
    /// The names of the dimensions, as many as the shape has; `None` for an unnamed one.
    pub dimension_names: Option<Vec<Option<String>>>,
    /// Storage transformers. None is registered, so all that can be here are ones which may be
    /// ignored.
    pub storage_transformers: Vec<Extension>,
    /// Keys that the specification does not define, each an object with
    /// `"must_understand": false`.
    pub unknown: JsonObject,
}

const KNOWN: [&str; 11] = [
    "zarr_format",
    "node_type",
    "shape",
    "data_type",
    "chunk_grid",
    "chunk_key_encoding",
    "fill_value",
    "codecs",
    "attributes",
    "storage_transformers",
    "dimension_names",
];

impl ArrayMetadataV3 {
    /// Metadata with the parts that have no default. Chunk keys are those of
    /// [`ChunkKeyEncoding::default`]; attributes and dimension names are empty.
    pub fn new(
        shape: impl Into<Vec<u64>>,
        data_type: DataType,
        chunk_grid: ChunkGrid,
        fill_value: FillValue,
        codecs: impl Into<Vec<Extension>>,
    ) -> Self {
        Self {
            shape: shape.into(),
            data_type,
            chunk_grid,
            chunk_key_encoding: ChunkKeyEncoding::default(),
            fill_value,
            codecs: codecs.into(),
            attributes: JsonObject::new(),
            dimension_names: None,
            storage_transformers: Vec::new(),
            unknown: JsonObject::new(),
        }
    }

    /// Reads the `zarr.json` of an array.
    ///
    /// # Errors
    /// If the text is not JSON, or the document breaks a rule of the specification.
    pub fn parse(text: &[u8]) -> Result<Self, MetadataError> {
        Self::from_json(&Json::parse(text)?)
    }

    /// Reads the `zarr.json` of an array that is parsed already.
    ///
    /// # Errors
    /// If the document breaks a rule of the specification.
    pub fn from_json(document: &Json) -> Result<Self, MetadataError> {
        let object = read::object(document, "array metadata: an object")?;
        check_format(object)?;
        check_node_type(object, "array")?;
        let unknown = ignorable(object, &KNOWN)?;
        let data_type = read::required(object, "data_type", DataType::parse)?;
        let mut metadata = Self {
            shape: read::required(object, "shape", read::unsigned_list)?,
            chunk_grid: read::required(object, "chunk_grid", ChunkGrid::parse)?,
            chunk_key_encoding: read::required(object, "chunk_key_encoding", ChunkKeyEncoding::parse)?,
            fill_value: read::required(object, "fill_value", |value| FillValue::parse(value, &data_type))?,
            codecs: read::required(object, "codecs", extensions)?,
            attributes: attributes(object)?,
            dimension_names: read::optional(object, "dimension_names", dimension_names)?.flatten(),
            storage_transformers: read::optional(object, "storage_transformers", |value| {
                if value.is_null() { Ok(Vec::new()) } else { extensions(value) }
            })?
            .unwrap_or_default(),
            data_type,
            unknown,
        };
        metadata.chunk_grid.repair_empty_axes(&metadata.shape);
        metadata.check()?;
        Ok(metadata)
    }

    /// The document.
    ///
    /// # Errors
    /// As [`check`](Self::check): metadata that could not be read back is not written.
    pub fn to_json(&self) -> Result<Json, MetadataError> {
        self.check()?;
        let mut object = JsonObject::new()
            .with("zarr_format", 3)
            .with("node_type", "array")
            .with("shape", self.shape.clone())
            .with("data_type", self.data_type.to_json())
            .with("chunk_grid", self.chunk_grid.to_json())
            .with("chunk_key_encoding", self.chunk_key_encoding.to_json())
            .with("fill_value", self.fill_value.to_json(&self.data_type)?)
            .with("codecs", self.codecs.iter().map(Extension::to_json).collect::<Json>())
            .with("attributes", self.attributes.clone());
        if let Some(names) = &self.dimension_names {
            object.insert("dimension_names", names.clone());
        }
        if !self.storage_transformers.is_empty() {
            let transformers: Json = self.storage_transformers.iter().map(Extension::to_json).collect();
            object.insert("storage_transformers", transformers);
        }
        for (key, value) in self.unknown.iter() {
            object.insert(key, value.clone());
        }
        Ok(Json::Object(object))
    }

    /// The document as indented text, for the key `zarr.json`.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub fn to_bytes(&self) -> Result<Vec<u8>, MetadataError> {
        Ok(self.to_json()?.to_text_pretty().into_bytes())
    }

    /// Checks what the types do not enforce: that the chunk grid fits the shape, that there is a
    /// codec, one name per dimension, a fill value of the data type, and nothing that must be
    /// understood but is not. Whether the codecs fit one another is for those who know the codecs.
    ///
    /// # Errors
    /// The first rule broken, and where.
    pub fn check(&self) -> Result<(), MetadataError> {
        if let Some(axis) = self.shape.iter().position(|&len| i64::try_from(len).is_err()) {
            return Err(MetadataError::unsupported("an axis of more than 2^63 - 1 elements").within_index(axis).within("shape"));
        }
        self.chunk_grid.check(&self.shape).map_err(|error| error.within("chunk_grid"))?;
        self.fill_value.check(&self.data_type).map_err(|error| error.within("fill_value"))?;
        if self.codecs.is_empty() {
            return Err(MetadataError::inconsistent("an array needs at least one codec").within("codecs"));
        }
        if let Some(names) = &self.dimension_names
            && names.len() != self.shape.len()
        {
            return Err(
                MetadataError::inconsistent(format!("{} names for {} dimensions", names.len(), self.shape.len())).within("dimension_names")
            );
        }
        for (index, transformer) in self.storage_transformers.iter().enumerate() {
            if transformer.must_understand {
                return Err(MetadataError::unknown("storage transformer", &transformer.name)
                    .within_index(index)
                    .within("storage_transformers"));
            }
        }
        for (key, value) in self.unknown.iter() {
            check_ignorable(key, value)?;
            if KNOWN.contains(&key) {
                return Err(MetadataError::inconsistent("a key of the specification among the unknown ones").within(key));
            }
        }
        Ok(())
    }
}

fn extensions(value: &Json) -> Result<Vec<Extension>, MetadataError> {
    read::list(value, "an array of extensions", Extension::parse)
}

fn dimension_names(value: &Json) -> Result<Option<Vec<Option<String>>>, MetadataError> {
    if value.is_null() {
        return Ok(None);
    }
    read::list(value, "an array of names", |name| match name {
        Json::Null => Ok(None),
        Json::String(name) => Ok(Some(name.clone())),
        other => Err(MetadataError::unexpected("a name or null", other)),
    })
    .map(Some)
}

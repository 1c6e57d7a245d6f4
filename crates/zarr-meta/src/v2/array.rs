//! The metadata of an array: `.zarray` and `.zattrs`.

use super::objects::Objects;
use super::{CodecV2, DataTypeV2, attributes, check_format, extend, others};
use crate::fill_value::Dialect;
use crate::{ChunkGrid, ChunkKeyEncoding, DataType, Endianness, FillValue, Json, JsonObject, MetadataError, Separator, read};

/// The order of the elements of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Order {
    /// Row-major: the last dimension varies fastest.
    C,
    /// Column-major: the first dimension varies fastest.
    F,
}

/// The metadata of a version 2 array.
///
/// Specification: version 2, "Arrays".
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ArrayMetadataV2 {
    /// The length of each dimension in elements.
    pub shape: Vec<u64>,
    /// The length of a chunk along each dimension.
    pub chunks: Vec<u64>,
    /// The type of the elements.
    pub data_type: DataTypeV2,
    /// The last codec of encoding.
    pub compressor: Option<CodecV2>,
    /// The fill value as it is written; null where none is defined.
    pub fill_value: Json,
    /// The order of the elements of a chunk.
    pub order: Order,
    /// The codecs before the compressor, in the order of encoding.
    pub filters: Vec<CodecV2>,
    /// The character between the coordinates in chunk keys.
    pub dimension_separator: Separator,
    /// The user's attributes, which `.zattrs` holds.
    pub attributes: JsonObject,
    /// Other keys of the `.zarray`, which the specification ignores.
    pub unknown: JsonObject,
}

const KNOWN: [&str; 9] = ["zarr_format", "shape", "chunks", "dtype", "compressor", "fill_value", "order", "filters", "dimension_separator"];

impl ArrayMetadataV2 {
    /// Metadata with the parts that have no default: in C order, without codecs, fill value and
    /// attributes, with `.` in chunk keys.
    pub fn new(shape: impl Into<Vec<u64>>, chunks: impl Into<Vec<u64>>, data_type: DataTypeV2) -> Self {
        Self {
            shape: shape.into(),
            chunks: chunks.into(),
            data_type,
            compressor: None,
            fill_value: Json::Null,
            order: Order::C,
            filters: Vec::new(),
            dimension_separator: Separator::Dot,
            attributes: JsonObject::new(),
            unknown: JsonObject::new(),
        }
    }

    /// Reads a `.zarray`, and the `.zattrs` beside it if there is one.
    ///
    /// # Errors
    /// If a text is not JSON, or a document breaks a rule of the specification.
    pub fn parse(zarray: &[u8], zattrs: Option<&[u8]>) -> Result<Self, MetadataError> {
        let attributes = zattrs.map(Json::parse).transpose()?;
        Self::from_json(&Json::parse(zarray)?, attributes.as_ref())
    }

    /// As [`parse`](Self::parse), of documents that are parsed already.
    ///
    /// # Errors
    /// If a document breaks a rule of the specification.
    pub fn from_json(zarray: &Json, zattrs: Option<&Json>) -> Result<Self, MetadataError> {
        let object = read::object(zarray, "array metadata: an object")?;
        check_format(object)?;
        let codec = |value: &Json| match value {
            Json::Null => Ok(None),
            other => CodecV2::parse(other).map(Some),
        };
        let mut metadata = Self {
            shape: read::required(object, "shape", read::unsigned_list)?,
            chunks: read::required(object, "chunks", read::unsigned_list)?,
            data_type: read::required(object, "dtype", DataTypeV2::parse)?,
            compressor: read::optional(object, "compressor", codec)?.flatten(),
            fill_value: object.get("fill_value").cloned().unwrap_or_default(),
            order: read::optional(object, "order", order)?.unwrap_or(Order::C),
            filters: read::optional(object, "filters", |value| match value {
                Json::Null => Ok(Vec::new()),
                other => read::list(other, "an array of codecs or null", CodecV2::parse),
            })?
            .unwrap_or_default(),
            dimension_separator: read::optional(object, "dimension_separator", |value| match value {
                Json::Null => Ok(Separator::Dot),
                other => Separator::parse(other),
            })?
            .unwrap_or(Separator::Dot),
            attributes: attributes(zattrs)?,
            unknown: others(object, &KNOWN),
        };
        let mut grid = metadata.chunk_grid();
        grid.repair_empty_axes(&metadata.shape);
        if let ChunkGrid::Regular { chunk_shape } = grid {
            metadata.chunks = chunk_shape;
        }
        metadata.check()?;
        Ok(metadata)
    }

    /// The `.zarray`.
    ///
    /// # Errors
    /// As [`check`](Self::check): metadata that could not be read back is not written.
    pub fn to_json(&self) -> Result<Json, MetadataError> {
        self.check()?;
        let filters = match self.filters.as_slice() {
            // The specification forbids an empty list.
            [] => Json::Null,
            filters => filters.iter().map(CodecV2::to_json).collect(),
        };
        let mut object = JsonObject::new()
            .with("zarr_format", 2)
            .with("shape", self.shape.clone())
            .with("chunks", self.chunks.clone())
            .with("dtype", self.data_type.to_json())
            .with("compressor", self.compressor.as_ref().map(CodecV2::to_json))
            .with("fill_value", self.fill_value.clone())
            .with("order", if self.order == Order::C { "C" } else { "F" })
            .with("filters", filters)
            .with("dimension_separator", self.dimension_separator.to_json());
        extend(&mut object, &self.unknown);
        Ok(object.into())
    }

    /// The `.zarray` as indented text.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub fn to_bytes(&self) -> Result<Vec<u8>, MetadataError> {
        Ok(self.to_json()?.to_text_pretty().into_bytes())
    }

    /// The `.zattrs` as indented text.
    pub fn attributes_to_bytes(&self) -> Vec<u8> {
        Json::from(self.attributes.clone()).to_text_pretty().into_bytes()
    }

    /// The chunk grid.
    pub fn chunk_grid(&self) -> ChunkGrid {
        ChunkGrid::regular(self.chunks.clone())
    }

    /// How chunk coordinates become keys.
    pub fn chunk_key_encoding(&self) -> ChunkKeyEncoding {
        ChunkKeyEncoding::V2 { separator: self.dimension_separator }
    }

    /// The data type of the elements. That of `|O` depends on the codec that encodes the objects:
    /// `vlen-utf8` and `categorize` give strings, `json2` strings that are the JSON text of each value, `msgpack2` bytes that are
    /// each value in MessagePack, and the others bytes.
    ///
    /// # Errors
    /// [`MetadataError::Inconsistent`] for `|O` without such a codec.
    pub fn element_type(&self) -> Result<DataType, MetadataError> {
        if let Some(data_type) = self.data_type.data_type() {
            return Ok(data_type);
        }
        let without = || MetadataError::inconsistent("objects without a codec that encodes them").within("dtype");
        self.objects().map(Objects::data_type).ok_or_else(without)
    }

    /// How objects are encoded, if the elements are objects.
    pub(super) fn objects(&self) -> Option<Objects> {
        let codecs = self.filters.iter().chain(&self.compressor);
        (self.data_type == DataTypeV2::Object).then(|| Objects::find(codecs)).flatten()
    }

    /// The fill value as an element; `None` for null, unless that is a value like others, as it is for `json2` and `msgpack2`.
    ///
    /// # Errors
    /// If the value is none that the data type permits.
    pub fn fill_value(&self) -> Result<Option<FillValue>, MetadataError> {
        let objects = self.objects();
        if let Some(value) = objects.and_then(|objects| objects.fill_value(&self.fill_value)) {
            return value.map(Some).map_err(|error| error.within("fill_value"));
        }
        if self.fill_value.is_null() || objects == Some(Objects::Pickle) {
            return Ok(None);
        }
        let dialect = Dialect::V2(self.byte_order());
        FillValue::parse_v2(&self.fill_value, &self.element_type()?, dialect).map(Some).map_err(|error| error.within("fill_value"))
    }

    /// Sets the fill value; `None` for null.
    ///
    /// # Errors
    /// [`MetadataError::Inconsistent`] if it is no element of the data type.
    pub fn set_fill_value(&mut self, value: Option<&FillValue>) -> Result<(), MetadataError> {
        self.fill_value = match value {
            None => Json::Null,
            Some(value) => match self.objects().and_then(|objects| objects.fill_value_to_json(value)) {
                Some(json) => json?,
                None => value.to_json_v2(&self.element_type()?, self.byte_order())?,
            },
        };
        Ok(())
    }

    /// Checks that there is one chunk length per dimension, none of them 0, and that the fill value is one of the data type.
    ///
    /// # Errors
    /// The first rule broken, and where.
    pub fn check(&self) -> Result<(), MetadataError> {
        self.chunk_grid().check(&self.shape).map_err(|error| error.within("chunks"))?;
        self.element_type()?;
        self.fill_value().map(drop)
    }

    /// The byte order of structs in base64; where fields differ nothing reads them anyway.
    fn byte_order(&self) -> Endianness {
        self.data_type.endianness().ok().flatten().unwrap_or(Endianness::Little)
    }
}

fn order(value: &Json) -> Result<Order, MetadataError> {
    match value.as_str() {
        Some("C") => Ok(Order::C),
        Some("F") => Ok(Order::F),
        _ => Err(MetadataError::unexpected("\"C\" or \"F\"", value)),
    }
}

//! Version 2: `.zarray`, `.zgroup`, `.zattrs` and `.zmetadata`.

mod array;
mod codecs;
mod consolidated;
mod data_type;
mod from_v3;
mod objects;
mod to_v3;

pub use array::{ArrayMetadataV2, Order};
pub use codecs::CodecV2;
pub use consolidated::{ConsolidatedMetadataV2, NodeMetadataV2};
pub use data_type::{DataTypeV2, FieldV2};

use crate::{GroupMetadataV3, Json, JsonObject, MetadataError, read};

/// The metadata of a version 2 group.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct GroupMetadataV2 {
    /// The user's attributes, which `.zattrs` holds.
    pub attributes: JsonObject,
    /// Other keys of the `.zgroup`.
    pub unknown: JsonObject,
}

impl GroupMetadataV2 {
    /// A group with attributes.
    pub fn new(attributes: JsonObject) -> Self {
        Self { attributes, unknown: JsonObject::new() }
    }

    /// Reads a `.zgroup`, and the `.zattrs` beside it if there is one.
    ///
    /// # Errors
    /// If a text is not JSON, or a document is malformed.
    pub fn parse(zgroup: &[u8], zattrs: Option<&[u8]>) -> Result<Self, MetadataError> {
        let attributes = zattrs.map(Json::parse).transpose()?;
        Self::from_json(&Json::parse(zgroup)?, attributes.as_ref())
    }

    /// As [`parse`](Self::parse), of documents that are parsed already.
    ///
    /// # Errors
    /// If a document is malformed.
    pub fn from_json(zgroup: &Json, zattrs: Option<&Json>) -> Result<Self, MetadataError> {
        let object = read::object(zgroup, "group metadata: an object")?;
        check_format(object)?;
        Ok(Self { attributes: attributes(zattrs)?, unknown: others(object, &["zarr_format"]) })
    }

    /// The `.zgroup`.
    pub fn to_json(&self) -> Json {
        let mut object = JsonObject::new().with("zarr_format", 2);
        extend(&mut object, &self.unknown);
        object.into()
    }

    /// The `.zgroup` as indented text.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.to_json().to_text_pretty().into_bytes()
    }

    /// The `.zattrs` as indented text.
    pub fn attributes_to_bytes(&self) -> Vec<u8> {
        Json::from(self.attributes.clone()).to_text_pretty().into_bytes()
    }

    /// The same group in version 3.
    pub fn to_v3(&self) -> GroupMetadataV3 {
        GroupMetadataV3::new(self.attributes.clone())
    }
}

fn check_format(object: &JsonObject) -> Result<(), MetadataError> {
    read::required(object, "zarr_format", |value| match value.as_u64() {
        Some(2) => Ok(()),
        _ => Err(MetadataError::unexpected("2", value)),
    })
}

/// The attributes of a `.zattrs`, which need not exist.
fn attributes(zattrs: Option<&Json>) -> Result<JsonObject, MetadataError> {
    match zattrs {
        None | Some(Json::Null) => Ok(JsonObject::new()),
        Some(value) => read::object(value, "attributes: an object").cloned(),
    }
}

/// The keys that are not among `known`: version 2 ignores them.
fn others(object: &JsonObject, known: &[&str]) -> JsonObject {
    object.iter().filter(|(key, _)| !known.contains(key)).map(|(k, v)| (k, v.clone())).collect()
}

/// Adds keys that are not there yet.
fn extend(object: &mut JsonObject, more: &JsonObject) {
    for (key, value) in more.iter() {
        if !object.contains_key(key) {
            object.insert(key, value.clone());
        }
    }
}

//! Consolidated metadata: `.zmetadata`.

use std::collections::BTreeMap;

use super::{ArrayMetadataV2, GroupMetadataV2};
use crate::{Json, JsonObject, MetadataError, NodePath, read};

/// What the documents of version 2 at one path describe.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum NodeMetadataV2 {
    /// An array.
    Array(Box<ArrayMetadataV2>),
    /// A group.
    Group(Box<GroupMetadataV2>),
}

/// Copies of all the documents of a hierarchy, by their keys: `a/b/.zarray`.
///
/// The documents are read when asked for: one array of an unknown data type does not keep the
/// others from opening.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ConsolidatedMetadataV2 {
    documents: BTreeMap<String, Json>,
}

impl ConsolidatedMetadataV2 {
    /// Consolidated metadata without any documents.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads a `.zmetadata`.
    ///
    /// # Errors
    /// If the text is not JSON, or not of format 1.
    pub fn parse(text: &[u8]) -> Result<Self, MetadataError> {
        let document = Json::parse(text)?;
        let object = read::object(&document, "consolidated metadata: an object")?;
        read::required(object, "zarr_consolidated_format", |value| match value.as_u64() {
            Some(1) => Ok(()),
            _ => Err(MetadataError::unexpected("1", value)),
        })?;
        let documents = read::required(object, "metadata", |metadata| {
            let metadata = read::object(metadata, "an object with a document for each key")?;
            Ok(metadata.iter().map(|(key, value)| (key.to_owned(), value.clone())).collect())
        })?;
        Ok(Self { documents })
    }

    /// The `.zmetadata`.
    pub fn to_json(&self) -> Json {
        let metadata: JsonObject = self.documents.iter().map(|(key, value)| (key.as_str(), value.clone())).collect();
        JsonObject::new().with("metadata", metadata).with("zarr_consolidated_format", 1).into()
    }

    /// The `.zmetadata` as indented text.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.to_json().to_text_pretty().into_bytes()
    }

    /// The metadata of the node at a path; `None` if it is not listed.
    ///
    /// # Errors
    /// If one of its documents is malformed.
    pub fn node(&self, path: &NodePath) -> Result<Option<NodeMetadataV2>, MetadataError> {
        let zattrs = self.documents.get(&path.zattrs_key());
        if let Some(zarray) = self.documents.get(&path.zarray_key()) {
            let array = ArrayMetadataV2::from_json(zarray, zattrs).map_err(|error| error.within(&path.zarray_key()))?;
            return Ok(Some(NodeMetadataV2::Array(array.into())));
        }
        let Some(zgroup) = self.documents.get(&path.zgroup_key()) else { return Ok(None) };
        let group = GroupMetadataV2::from_json(zgroup, zattrs).map_err(|error| error.within(&path.zgroup_key()))?;
        Ok(Some(NodeMetadataV2::Group(group.into())))
    }

    /// Sets the documents of the node at a path.
    ///
    /// # Errors
    /// If the metadata cannot be written.
    pub fn insert(&mut self, path: &NodePath, node: &NodeMetadataV2) -> Result<(), MetadataError> {
        let (key, other_key, document, attributes) = match node {
            NodeMetadataV2::Array(array) => (path.zarray_key(), path.zgroup_key(), array.to_json()?, &array.attributes),
            NodeMetadataV2::Group(group) => (path.zgroup_key(), path.zarray_key(), group.to_json(), &group.attributes),
        };
        self.documents.remove(&other_key);
        self.documents.insert(key, document);
        self.documents.insert(path.zattrs_key(), attributes.clone().into());
        Ok(())
    }

    /// Sets the document at a key, as `a/b/.zarray`, whether or not this crate understands it.
    pub fn insert_document(&mut self, key: &str, document: Json) {
        self.documents.insert(key.to_owned(), document);
    }

    /// The paths of all nodes, in order. Keys that name no node are passed over.
    pub fn paths(&self) -> impl Iterator<Item = NodePath> {
        self.documents.keys().filter_map(|key| {
            let path = match key.as_str() {
                ".zarray" | ".zgroup" => "",
                key => key.strip_suffix("/.zarray").or_else(|| key.strip_suffix("/.zgroup"))?,
            };
            NodePath::new_v2(path).ok()
        })
    }

    /// The documents by their keys.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Json)> {
        self.documents.iter().map(|(key, document)| (key.as_str(), document))
    }
}

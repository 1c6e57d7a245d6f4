//! Version 3: the `zarr.json` of arrays and groups.

mod array;
mod consolidated;
mod group;

pub use array::ArrayMetadataV3;
pub use consolidated::ConsolidatedMetadata;
pub use group::GroupMetadataV3;

use crate::{Json, JsonObject, JsonPath, MetadataError, read};

/// What a `zarr.json` describes.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum NodeMetadata {
    /// An array.
    Array(Box<ArrayMetadataV3>),
    /// A group.
    Group(Box<GroupMetadataV3>),
}

impl NodeMetadata {
    /// Reads a `zarr.json`.
    ///
    /// # Errors
    /// If the text is not JSON, or the document breaks a rule of the specification.
    pub fn parse(text: &[u8]) -> Result<Self, MetadataError> {
        Self::from_json(&Json::parse(text)?)
    }

    /// Reads a `zarr.json` that is parsed already.
    ///
    /// # Errors
    /// If the document breaks a rule of the specification.
    pub fn from_json(document: &Json) -> Result<Self, MetadataError> {
        let object = read::object(document, "a metadata document: an object")?;
        check_format(object)?;
        match node_type(object)? {
            "array" => ArrayMetadataV3::from_json(document).map(|array| Self::Array(array.into())),
            "group" => GroupMetadataV3::from_json(document).map(|group| Self::Group(group.into())),
            _ => Err(unexpected_node_type(object, "\"array\" or \"group\"")),
        }
    }

    /// The attributes of the node.
    pub fn attributes(&self) -> &JsonObject {
        match self {
            Self::Array(array) => &array.attributes,
            Self::Group(group) => &group.attributes,
        }
    }

    /// The document.
    ///
    /// # Errors
    /// As [`ArrayMetadataV3::to_json`].
    pub fn to_json(&self) -> Result<Json, MetadataError> {
        match self {
            Self::Array(array) => array.to_json(),
            Self::Group(group) => group.to_json(),
        }
    }

    /// The document as indented text.
    ///
    /// # Errors
    /// As [`ArrayMetadataV3::to_json`].
    pub fn to_bytes(&self) -> Result<Vec<u8>, MetadataError> {
        Ok(self.to_json()?.to_text_pretty().into_bytes())
    }
}

impl From<ArrayMetadataV3> for NodeMetadata {
    fn from(array: ArrayMetadataV3) -> Self {
        Self::Array(array.into())
    }
}

impl From<GroupMetadataV3> for NodeMetadata {
    fn from(group: GroupMetadataV3) -> Self {
        Self::Group(group.into())
    }
}

fn check_format(object: &JsonObject) -> Result<(), MetadataError> {
    read::required(object, "zarr_format", |value| match value.as_u64() {
        Some(3) => Ok(()),
        _ => Err(MetadataError::unexpected("3", value)),
    })
}

fn node_type(object: &JsonObject) -> Result<&str, MetadataError> {
    match object.get("node_type") {
        Some(value) => read::string(value).map_err(|error| error.within("node_type")),
        None => Err(MetadataError::missing("node_type")),
    }
}

fn unexpected_node_type(object: &JsonObject, expected: &str) -> MetadataError {
    let found = object.get("node_type").unwrap_or(&Json::Null);
    MetadataError::unexpected(expected, found).within("node_type")
}

fn check_node_type(object: &JsonObject, expected: &str) -> Result<(), MetadataError> {
    if node_type(object)? == expected { Ok(()) } else { Err(unexpected_node_type(object, &format!("{expected:?}"))) }
}

/// The attributes; absent and null are empty.
fn attributes(object: &JsonObject) -> Result<JsonObject, MetadataError> {
    let attributes = read::optional(object, "attributes", |value| match value {
        Json::Null => Ok(JsonObject::new()),
        _ => read::object(value, "an object").cloned(),
    })?;
    Ok(attributes.unwrap_or_default())
}

/// The keys that are not among `known`, if each may be ignored.
fn ignorable(object: &JsonObject, known: &[&str]) -> Result<JsonObject, MetadataError> {
    let mut rest = Vec::new();
    for (key, value) in object.iter().filter(|(key, _)| !known.contains(key)) {
        check_ignorable(key, value)?;
        rest.push((key, value.clone()));
    }
    Ok(rest.into_iter().collect())
}

/// A key that the specification does not define must hold an object that says it may be ignored.
fn check_ignorable(key: &str, value: &Json) -> Result<(), MetadataError> {
    match value.get("must_understand") {
        Some(Json::Bool(false)) => Ok(()),
        _ => Err(MetadataError::UnknownKey { at: JsonPath::root(), key: key.to_owned() }),
    }
}

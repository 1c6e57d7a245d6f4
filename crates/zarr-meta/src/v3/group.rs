//! The metadata of a group.

use super::{ConsolidatedMetadata, attributes, check_format, check_ignorable, check_node_type, ignorable};
use crate::{Json, JsonObject, MetadataError, read};

/// The metadata of a version 3 group.
///
/// Specification: core 3.1, "Group metadata".
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct GroupMetadataV3 {
    /// The user's attributes.
    pub attributes: JsonObject,
    /// Copies of the metadata of the nodes below.
    pub consolidated_metadata: Option<ConsolidatedMetadata>,
    /// Keys that the specification does not define, each an object with
    /// `"must_understand": false`.
    pub unknown: JsonObject,
}

const KNOWN: [&str; 4] = ["zarr_format", "node_type", "attributes", CONSOLIDATED];
const CONSOLIDATED: &str = "consolidated_metadata";

impl GroupMetadataV3 {
    /// A group with attributes.
    pub fn new(attributes: JsonObject) -> Self {
        Self { attributes, ..Self::default() }
    }

    /// Reads the `zarr.json` of a group.
    ///
    /// # Errors
    /// If the text is not JSON, or the document breaks a rule of the specification.
    pub fn parse(text: &[u8]) -> Result<Self, MetadataError> {
        Self::from_json(&Json::parse(text)?)
    }

    /// Reads the `zarr.json` of a group that is parsed already.
    ///
    /// # Errors
    /// If the document breaks a rule of the specification.
    pub fn from_json(document: &Json) -> Result<Self, MetadataError> {
        let object = read::object(document, "group metadata: an object")?;
        check_format(object)?;
        check_node_type(object, "group")?;
        let mut unknown = ignorable(object, &KNOWN)?;
        let consolidated_metadata = match object.get(CONSOLIDATED) {
            // Early releases of zarr-python 3 wrote null.
            None | Some(Json::Null) => None,
            Some(value) => match ConsolidatedMetadata::from_json(value) {
                Ok(consolidated) => Some(consolidated),
                // A kind from the future that says it may be ignored.
                Err(MetadataError::Unknown { .. }) if check_ignorable(CONSOLIDATED, value).is_ok() => {
                    unknown.insert(CONSOLIDATED, value.clone());
                    None
                }
                Err(error) => return Err(error.within(CONSOLIDATED)),
            },
        };
        Ok(Self { attributes: attributes(object)?, consolidated_metadata, unknown })
    }

    /// The document.
    ///
    /// # Errors
    /// If `unknown` holds something that may not be ignored.
    pub fn to_json(&self) -> Result<Json, MetadataError> {
        let mut object = JsonObject::new().with("zarr_format", 3).with("node_type", "group").with("attributes", self.attributes.clone());
        if let Some(consolidated) = &self.consolidated_metadata {
            object.insert(CONSOLIDATED, consolidated.to_json());
        }
        for (key, value) in self.unknown.iter() {
            check_ignorable(key, value)?;
            if object.contains_key(key) {
                return Err(MetadataError::inconsistent("a key of the specification among the unknown ones").within(key));
            }
            object.insert(key, value.clone());
        }
        Ok(Json::Object(object))
    }

    /// The document as indented text, for the key `zarr.json`.
    ///
    /// # Errors
    /// As [`to_json`](Self::to_json).
    pub fn to_bytes(&self) -> Result<Vec<u8>, MetadataError> {
        Ok(self.to_json()?.to_text_pretty().into_bytes())
    }
}

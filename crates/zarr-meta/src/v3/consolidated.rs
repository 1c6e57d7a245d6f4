//! Consolidated metadata: the metadata of a whole hierarchy in the document of its group.

use std::collections::BTreeMap;

use super::NodeMetadata;
use crate::{Json, JsonObject, MetadataError, NodePath, read};

/// Copies of the metadata of the nodes below a group, by their paths relative to it.
///
/// The documents are read when asked for: one array of an unknown data type does not keep the
/// others from opening.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ConsolidatedMetadata {
    documents: BTreeMap<String, Json>,
}

impl ConsolidatedMetadata {
    /// Consolidated metadata without any nodes.
    pub fn new() -> Self {
        Self::default()
    }

    /// The number of nodes.
    pub fn len(&self) -> usize {
        self.documents.len()
    }

    /// True when there are no nodes.
    pub fn is_empty(&self) -> bool {
        self.documents.is_empty()
    }

    /// The document of the node at `path` relative to the group: `a/b`, without a leading `/`.
    pub fn document(&self, path: &str) -> Option<&Json> {
        self.documents.get(path)
    }

    /// The metadata of the node at `path` relative to the group; `None` if it is not listed.
    ///
    /// # Errors
    /// If the document breaks a rule of the specification.
    pub fn node(&self, path: &str) -> Result<Option<NodeMetadata>, MetadataError> {
        self.document(path).map(|document| NodeMetadata::from_json(document).map_err(|error| error.within(path))).transpose()
    }

    /// Sets the metadata of the node at `path` relative to the group.
    ///
    /// # Errors
    /// If the path is not that of a node below the group, or the metadata cannot be written.
    pub fn insert(&mut self, path: &str, node: &NodeMetadata) -> Result<(), MetadataError> {
        self.insert_document(path, node.to_json()?)
    }

    /// Sets the document of the node at `path` relative to the group, whether or not this crate understands it.
    ///
    /// # Errors
    /// If the path is not that of a node below the group, or the document is no object.
    pub fn insert_document(&mut self, path: &str, mut document: Json) -> Result<(), MetadataError> {
        let path = NodePath::new(path)?;
        if path.is_root() {
            return Err(MetadataError::Path { path: path.to_string(), problem: "the group itself is not among the nodes below it" });
        }
        if document.as_object().is_none() {
            return Err(MetadataError::unexpected("a metadata document: an object", &document));
        }
        if document.get("node_type").and_then(Json::as_str) == Some("group")
            && let Some(group) = document.as_object_mut()
        {
            // The nodes below are listed beside it.
            group.remove("consolidated_metadata");
        }
        self.documents.insert(path.without_slash().to_owned(), document);
        Ok(())
    }

    /// The paths relative to the group and the documents, in order of the paths.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Json)> {
        self.documents.iter().map(|(path, document)| (path.as_str(), document))
    }

    /// The nodes below the one at `path` relative to the group, at any depth.
    pub fn below<'a>(&'a self, path: &str) -> impl Iterator<Item = (&'a str, &'a Json)> {
        let prefix = if path.is_empty() { String::new() } else { format!("{path}/") };
        self.documents
            .range(prefix.clone()..)
            .take_while(move |(path, _)| path.starts_with(&prefix))
            .map(|(path, document)| (path.as_str(), document))
            .filter(|(path, _)| !path.is_empty())
    }

    /// Reads the `consolidated_metadata` of a group.
    ///
    /// # Errors
    /// [`MetadataError::Unknown`] if the kind is not `inline`, others if the value is malformed.
    pub fn from_json(value: &Json) -> Result<Self, MetadataError> {
        let object = read::object(value, "consolidated metadata: an object")?;
        read::required(object, "kind", |kind| match read::string(kind)? {
            "inline" => Ok(()),
            other => Err(MetadataError::unknown("kind of consolidated metadata", other)),
        })?;
        let documents = read::required(object, "metadata", |metadata| {
            let metadata = read::object(metadata, "an object with a document for each path")?;
            let mut documents = BTreeMap::new();
            for (path, document) in metadata.iter() {
                if document.as_object().is_none() {
                    return Err(MetadataError::unexpected("a metadata document: an object", document).within(path));
                }
                let relative = path.strip_prefix('/').unwrap_or(path);
                documents.insert(relative.to_owned(), document.clone());
            }
            Ok(documents)
        })?;
        Ok(Self { documents })
    }

    /// The `consolidated_metadata` of a group. Nodes come after the groups that hold them.
    pub fn to_json(&self) -> Json {
        let mut documents: Vec<(&str, &Json)> = self.iter().collect();
        documents.sort_by_key(|(path, _)| path.bytes().filter(|&b| b == b'/').count());
        let metadata: JsonObject = documents.into_iter().map(|(path, document)| (path, document.clone())).collect();
        JsonObject::new().with("kind", "inline").with("must_understand", false).with("metadata", metadata).into()
    }
}

//! Finding and storing the metadata of nodes, of either version.

use bytes::Bytes;
use zarr_meta::{
    ArrayMetadataV2, ArrayMetadataV3, ConsolidatedMetadata, ConsolidatedMetadataV2, GroupMetadataV2, GroupMetadataV3, Json, JsonObject,
    MetadataError, NodeMetadata, NodeMetadataV2, NodePath,
};
use zarr_store_api::{ByteRange, StoreKey, StorePrefix};

use crate::ArrayError;
use crate::storage::Storage;

/// The versions of the Zarr format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Version {
    /// `.zarray`, `.zgroup`, `.zattrs`.
    V2,
    /// `zarr.json`.
    #[default]
    V3,
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::V2 => "v2",
            Self::V3 => "v3",
        })
    }
}

/// The metadata of a node, as it is stored.
#[derive(Debug, Clone, PartialEq)]
pub enum StoredMetadata {
    /// An array of version 2.
    ArrayV2(Box<ArrayMetadataV2>),
    /// An array of version 3.
    ArrayV3(Box<ArrayMetadataV3>),
    /// A group of version 2.
    GroupV2(Box<GroupMetadataV2>),
    /// A group of version 3.
    GroupV3(Box<GroupMetadataV3>),
}

impl StoredMetadata {
    /// The version of the format.
    pub fn version(&self) -> Version {
        match self {
            Self::ArrayV2(_) | Self::GroupV2(_) => Version::V2,
            Self::ArrayV3(_) | Self::GroupV3(_) => Version::V3,
        }
    }

    /// Whether the node is an array.
    pub fn is_array(&self) -> bool {
        matches!(self, Self::ArrayV2(_) | Self::ArrayV3(_))
    }

    /// The user's attributes.
    pub fn attributes(&self) -> &JsonObject {
        match self {
            Self::ArrayV2(array) => &array.attributes,
            Self::ArrayV3(array) => &array.attributes,
            Self::GroupV2(group) => &group.attributes,
            Self::GroupV3(group) => &group.attributes,
        }
    }

    pub(crate) fn attributes_mut(&mut self) -> &mut JsonObject {
        match self {
            Self::ArrayV2(array) => &mut array.attributes,
            Self::ArrayV3(array) => &mut array.attributes,
            Self::GroupV2(group) => &mut group.attributes,
            Self::GroupV3(group) => &mut group.attributes,
        }
    }
}

impl From<NodeMetadata> for StoredMetadata {
    fn from(node: NodeMetadata) -> Self {
        match node {
            NodeMetadata::Array(array) => Self::ArrayV3(array),
            NodeMetadata::Group(group) => Self::GroupV3(group),
            _ => unreachable!("zarr-meta knows arrays and groups"),
        }
    }
}

impl From<NodeMetadataV2> for StoredMetadata {
    fn from(node: NodeMetadataV2) -> Self {
        match node {
            NodeMetadataV2::Array(array) => Self::ArrayV2(array),
            NodeMetadataV2::Group(group) => Self::GroupV2(group),
            _ => unreachable!("zarr-meta knows arrays and groups"),
        }
    }
}

/// Metadata of a whole hierarchy in one document.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Consolidated {
    V2(ConsolidatedMetadataV2),
    V3(ConsolidatedMetadata),
}

pub(crate) fn key(path: &NodePath, name: &str) -> Result<StoreKey, ArrayError> {
    Ok(StoreKey::new(path.key(name))?)
}

pub(crate) fn prefix(path: &NodePath) -> Result<StorePrefix, ArrayError> {
    Ok(StorePrefix::new(path.prefix())?)
}

async fn document(storage: &Storage, key: &StoreKey) -> Result<Option<Bytes>, ArrayError> {
    Ok(storage.get(key, ByteRange::All).await?)
}

/// The metadata of the node at a path: version 3 where there is both.
///
/// # Errors
/// When the store fails or the document breaks a rule.
pub(crate) async fn load(storage: &Storage, path: &NodePath) -> Result<Option<StoredMetadata>, ArrayError> {
    let v3 = key(path, "zarr.json")?;
    if let Some(text) = document(storage, &v3).await? {
        return NodeMetadata::parse(&text).map(|node| Some(node.into())).map_err(|error| ArrayError::metadata(&v3, error));
    }
    let zarray = key(path, ".zarray")?;
    if let Some(text) = document(storage, &zarray).await? {
        let attributes = document(storage, &key(path, ".zattrs")?).await?;
        let array = ArrayMetadataV2::parse(&text, attributes.as_deref()).map_err(|error| ArrayError::metadata(&zarray, error))?;
        return Ok(Some(StoredMetadata::ArrayV2(array.into())));
    }
    let zgroup = key(path, ".zgroup")?;
    if let Some(text) = document(storage, &zgroup).await? {
        let attributes = document(storage, &key(path, ".zattrs")?).await?;
        let group = GroupMetadataV2::parse(&text, attributes.as_deref()).map_err(|error| ArrayError::metadata(&zgroup, error))?;
        return Ok(Some(StoredMetadata::GroupV2(group.into())));
    }
    Ok(None)
}

/// The documents of a node as they are stored, which need not be understood.
pub(crate) struct Documents {
    pub(crate) version: Version,
    pub(crate) is_array: bool,
    /// `zarr.json`, `.zarray` or `.zgroup`.
    pub(crate) document: Json,
    /// `.zattrs`.
    pub(crate) attributes: Option<Json>,
}

/// The documents of the node at a path: of version 3 where there is both.
///
/// # Errors
/// When the store fails or a document is no JSON.
pub(crate) async fn load_documents(storage: &Storage, path: &NodePath) -> Result<Option<Documents>, ArrayError> {
    let json = async |name: &str| -> Result<Option<Json>, ArrayError> {
        let key = key(path, name)?;
        let text = document(storage, &key).await?;
        text.map(|text| Json::parse(&text).map_err(|error| ArrayError::metadata(&key, error))).transpose()
    };
    if let Some(document) = json("zarr.json").await? {
        let is_array = document.get("node_type").and_then(Json::as_str) == Some("array");
        return Ok(Some(Documents { version: Version::V3, is_array, document, attributes: None }));
    }
    for (name, is_array) in [(".zarray", true), (".zgroup", false)] {
        if let Some(document) = json(name).await? {
            let attributes = json(".zattrs").await?;
            return Ok(Some(Documents { version: Version::V2, is_array, document, attributes }));
        }
    }
    Ok(None)
}

/// Whether the array at a path has, as it is stored, a certain shape, or is not stored at all.
pub(crate) async fn has_shape(storage: &Storage, path: &NodePath, version: Version, shape: &[u64]) -> Result<bool, ArrayError> {
    let name = match version {
        Version::V2 => ".zarray",
        Version::V3 => "zarr.json",
    };
    let Some(text) = document(storage, &key(path, name)?).await? else { return Ok(true) };
    let stored = |document: &Json| document.get("shape")?.as_array()?.iter().map(Json::as_u64).collect::<Option<Vec<u64>>>();
    Ok(Json::parse(&text).ok().as_ref().and_then(stored).as_deref() == Some(shape))
}

/// Stores the metadata of a node. The document that makes it a node comes last, so that a writer that is cut off leaves no half node.
pub(crate) async fn store(storage: &Storage, path: &NodePath, metadata: &StoredMetadata) -> Result<(), ArrayError> {
    let attributes = |attributes: &JsonObject, bytes: Vec<u8>| (!attributes.is_empty()).then_some(bytes);
    let (name, bytes, zattrs) = match metadata {
        StoredMetadata::ArrayV3(array) => ("zarr.json", array.to_bytes(), None),
        StoredMetadata::GroupV3(group) => ("zarr.json", group.to_bytes(), None),
        StoredMetadata::ArrayV2(array) => (".zarray", array.to_bytes(), attributes(&array.attributes, array.attributes_to_bytes())),
        StoredMetadata::GroupV2(group) => (".zgroup", Ok(group.to_bytes()), attributes(&group.attributes, group.attributes_to_bytes())),
    };
    let at = key(path, name)?;
    let bytes = bytes.map_err(|error| ArrayError::metadata(&at, error))?;
    if metadata.version() == Version::V2 {
        let key = key(path, ".zattrs")?;
        match zattrs {
            Some(zattrs) => storage.set(&key, zattrs.into()).await?,
            None => storage.erase(&key).await?,
        }
    }
    storage.set(&at, bytes.into()).await?;
    Ok(())
}

/// The consolidated metadata stored at a group, if there is any.
pub(crate) async fn load_consolidated(
    storage: &Storage,
    path: &NodePath,
    metadata: &StoredMetadata,
) -> Result<Option<Consolidated>, ArrayError> {
    match metadata {
        StoredMetadata::GroupV3(group) => Ok(group.consolidated_metadata.clone().map(Consolidated::V3)),
        StoredMetadata::GroupV2(_) => {
            let key = key(path, ".zmetadata")?;
            let Some(text) = document(storage, &key).await? else { return Ok(None) };
            ConsolidatedMetadataV2::parse(&text).map(|all| Some(Consolidated::V2(all))).map_err(|error| ArrayError::metadata(&key, error))
        }
        StoredMetadata::ArrayV2(_) | StoredMetadata::ArrayV3(_) => Ok(None),
    }
}

impl Consolidated {
    /// The metadata of the node at a path below the group, relative to it, without a leading slash.
    pub(crate) fn node(&self, relative: &str) -> Result<Option<StoredMetadata>, MetadataError> {
        match self {
            Self::V3(all) => Ok(all.node(relative)?.map(Into::into)),
            Self::V2(all) => Ok(all.node(&NodePath::new_v2(relative)?)?.map(Into::into)),
        }
    }

    /// Paths of all nodes below the group, relative to it, without a leading slash.
    pub(crate) fn paths(&self) -> Vec<String> {
        match self {
            Self::V3(all) => all.iter().map(|(path, _)| path.to_owned()).collect(),
            Self::V2(all) => all.paths().map(|path| path.without_slash().to_owned()).filter(|path| !path.is_empty()).collect(),
        }
    }
}

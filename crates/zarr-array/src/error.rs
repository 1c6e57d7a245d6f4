use zarr_buffer_api::BufferError;
use zarr_codec_api::CodecError;
use zarr_meta::{MetadataError, NodePath};
use zarr_store_api::{StoreError, StoreKey};

use crate::node::StoredMetadata;
use crate::storage::Storage;

/// An error of an array or a group: which node, which chunk, and who is to blame.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArrayError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),

    /// The metadata is not what the specification allows.
    #[error("{key}: {source}")]
    Metadata {
        /// The key of the metadata document.
        key: String,
        /// What is wrong with it.
        #[source]
        source: MetadataError,
    },

    /// The codecs of an array cannot be bound, before any chunk is looked at.
    #[error("array {path}: {source}")]
    Codecs {
        /// The array.
        path: String,
        /// Which codec, and why.
        #[source]
        source: CodecError,
    },

    /// A chunk cannot be decoded or encoded.
    #[error("chunk {chunk:?} ({key}): {source}")]
    Chunk {
        /// The key of the chunk, or of the shard around it.
        key: StoreKey,
        /// Chunk coordinates; inside a shard, those of the inner chunk, counted over the whole array.
        chunk: Vec<u64>,
        /// Which codec, and why.
        #[source]
        source: CodecError,
    },

    /// A selection does not fit the array.
    #[error("selection: {0}")]
    Selection(String),

    /// The caller's data or buffer does not fit the selection or the data type, or a path is no path of a node.
    #[error("{0}")]
    Parameter(String),

    /// There is no node at a path.
    #[error("no {what} at {path} in {store}")]
    NotFound {
        /// `array`, `group` or `node`.
        what: &'static str,
        /// The path asked for.
        path: String,
        /// The store's name.
        store: String,
    },

    /// There is a node at a path already.
    #[error("there is already {what} at {path} in {store}; erase it first, or ask to overwrite it")]
    Exists {
        /// `an array` or `a group`.
        what: &'static str,
        /// Where it is.
        path: String,
        /// The store's name.
        store: String,
    },

    /// A device or a buffer failed.
    #[error(transparent)]
    Buffer(#[from] BufferError),
}

impl ArrayError {
    pub(crate) fn metadata(key: &StoreKey, source: MetadataError) -> Self {
        Self::Metadata { key: key.to_string(), source }
    }

    pub(crate) fn exists(found: &StoredMetadata, path: &NodePath, storage: &Storage) -> Self {
        let what = if found.is_array() { "an array" } else { "a group" };
        Self::Exists { what, path: path.to_string(), store: storage.name() }
    }

    pub(crate) fn selection(message: impl Into<String>) -> Self {
        Self::Selection(message.into())
    }

    pub(crate) fn parameter(message: impl Into<String>) -> Self {
        Self::Parameter(message.into())
    }
}

use std::error::Error;
use std::fmt;

use zarr_buffer_api::BufferError;
use zarr_codec_api::CodecError;
use zarr_meta::{MetadataError, NodePath};
use zarr_store_api::{StoreError, StoreKey};

use crate::node::StoredMetadata;
use crate::storage::Storage;

/// An error of an array or a group: which node, which chunk, and who is to blame.
///
/// `Display` ends with the error inside, and [`Error::source`] begins behind that one.
#[derive(Debug)]
#[non_exhaustive]
pub enum ArrayError {
    /// The store failed.
    Store(StoreError),

    /// The metadata is not what the specification allows.
    Metadata {
        /// The key of the metadata document.
        key: String,
        /// What is wrong with it.
        source: MetadataError,
    },

    /// The codecs of an array cannot be bound, before any chunk is looked at.
    Codecs {
        /// The array.
        path: String,
        /// Which codec, and why.
        source: CodecError,
    },

    /// A chunk cannot be decoded or encoded.
    Chunk {
        /// The key of the chunk, or of the shard around it.
        key: StoreKey,
        /// Chunk coordinates; inside a shard, those of the inner chunk, counted over the whole array.
        chunk: Vec<u64>,
        /// Which codec, and why.
        source: CodecError,
    },

    /// A selection does not fit the array.
    Selection(String),

    /// The caller's data or buffer does not fit the selection or the data type, or a path is no path of a node.
    Parameter(String),

    /// There is no node at a path, or one of the other kind.
    NotFound {
        /// `array`, `group` or `node`, and which is there in its place.
        what: &'static str,
        /// The path asked for.
        path: String,
        /// The store's name.
        store: String,
    },

    /// There is a node at a path already.
    Exists {
        /// `an array` or `a group`.
        what: &'static str,
        /// Where it is.
        path: String,
        /// The store's name.
        store: String,
    },

    /// A device or a buffer failed.
    Buffer(BufferError),
}

impl fmt::Display for ArrayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Store(error) => error.fmt(f),
            Self::Buffer(error) => error.fmt(f),
            // It names the path itself.
            Self::Metadata { source: source @ MetadataError::Path { .. }, .. } => source.fmt(f),
            Self::Metadata { key, source } => write!(f, "{key}: {source}"),
            Self::Codecs { path, source } => write!(f, "array {path}: {source}"),
            Self::Chunk { key, chunk, source } => write!(f, "chunk {chunk:?} ({key}): {source}"),
            Self::Selection(message) => write!(f, "selection: {message}"),
            Self::Parameter(message) => f.write_str(message),
            Self::NotFound { what, path, store } => write!(f, "no {what} at {path} in {store}"),
            Self::Exists { what, path, store } => {
                write!(f, "there is already {what} at {path} in {store}; erase it first, or ask to overwrite it")
            }
        }
    }
}

impl Error for ArrayError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Store(error) => error.source(),
            Self::Buffer(error) => error.source(),
            Self::Metadata { source, .. } => source.source(),
            Self::Codecs { source, .. } | Self::Chunk { source, .. } => source.source(),
            Self::Selection(_) | Self::Parameter(_) | Self::NotFound { .. } | Self::Exists { .. } => None,
        }
    }
}

impl From<StoreError> for ArrayError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<BufferError> for ArrayError {
    fn from(error: BufferError) -> Self {
        Self::Buffer(error)
    }
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

//! The marker of a copy that is under way, and the documents that end it.

use zarr::StoredMetadata;
use zarr::meta::{Json, NodePath};
use zarr::store_api::{AnyStore, StoreKey, StorePrefix};

use crate::error::{Context as _, Failure, Result};
use crate::{json, store};

/// A key at the root of the destination. It is removed when the copy is whole.
pub(crate) const MARKER: &str = ".zarr-copy";

/// What is being copied.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Marker {
    /// The source, in words.
    pub(crate) source: String,
    /// A digest of the metadata of the source and of the destination.
    pub(crate) digest: u64,
}

impl Marker {
    pub(crate) fn key(root: &NodePath) -> Result<StoreKey> {
        Ok(StorePrefix::new(root.prefix())?.key(MARKER)?)
    }

    pub(crate) fn load(store: &AnyStore, root: &NodePath) -> Result<Option<Self>> {
        let key = Self::key(root)?;
        let Some(text) = store::get(store, &key)? else { return Ok(None) };
        let unreadable =
            || Failure::new(format!("the marker of an interrupted copy, {key}, cannot be read")).hint("--overwrite starts the copy again");
        let marker = Json::parse(&text).ok().and_then(|json| {
            let digest = u64::from_str_radix(json.get("digest")?.as_str()?, 16).ok()?;
            Some(Self { source: json.get("source")?.as_str()?.to_owned(), digest })
        });
        marker.map(Some).ok_or_else(unreadable)
    }

    /// What a command says that would have to begin here.
    pub(crate) fn in_the_way(&self, name: &str) -> Failure {
        Failure::new(format!("an interrupted copy of {} is at {name}", self.source))
    }

    pub(crate) fn store(&self, store: &AnyStore, root: &NodePath) -> Result<()> {
        let object = json::object()
            .with("about", "A copy by `zarr copy` is under way here, or was interrupted: `zarr copy --resume` goes on with it.")
            .with("source", self.source.as_str())
            .with("digest", format!("{:016x}", self.digest));
        let key = Self::key(root)?;
        store::set(store, &key, Json::from(object).to_text_pretty()).context(|| format!("cannot store {key} in {}", store.name()))
    }

    pub(crate) fn remove(store: &AnyStore, root: &NodePath) -> Result<()> {
        Ok(store::erase(store, &Self::key(root)?)?)
    }
}

/// FNV-1a, 64 bits: enough to tell different settings apart by accident, which is all that is asked of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Digest(pub(crate) u64);

impl Digest {
    pub(crate) fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    pub(crate) fn add(&mut self, bytes: &[u8]) {
        // The length keeps what follows apart.
        for byte in (bytes.len() as u64).to_le_bytes().iter().chain(bytes) {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

/// The documents of a node, in the order in which they are to be stored: the one that makes the node comes last. `None`: there must be none.
pub(crate) fn documents(path: &NodePath, stored: &StoredMetadata) -> Result<Vec<(StoreKey, Option<Vec<u8>>)>> {
    let attributes = |empty: bool, bytes: Vec<u8>| (path.zattrs_key(), (!empty).then_some(bytes));
    let documents = match stored {
        StoredMetadata::ArrayV3(array) => vec![(path.metadata_key(), Some(array.to_bytes()?))],
        StoredMetadata::GroupV3(group) => vec![(path.metadata_key(), Some(group.to_bytes()?))],
        StoredMetadata::ArrayV2(array) => {
            vec![attributes(array.attributes.is_empty(), array.attributes_to_bytes()), (path.zarray_key(), Some(array.to_bytes()?))]
        }
        StoredMetadata::GroupV2(group) => {
            vec![attributes(group.attributes.is_empty(), group.attributes_to_bytes()), (path.zgroup_key(), Some(group.to_bytes()))]
        }
    };
    documents.into_iter().map(|(key, bytes)| Ok((StoreKey::new(key)?, bytes))).collect()
}

/// Whether a node is stored exactly so.
pub(crate) fn is_stored(store: &AnyStore, documents: &[(StoreKey, Option<Vec<u8>>)]) -> Result<bool> {
    for (key, bytes) in documents {
        if store::get(store, key)?.as_deref() != bytes.as_deref() {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_read_back() {
        let store = AnyStore::from(zarr::store::MemoryStore::new());
        let root = NodePath::new("/a").unwrap();
        assert_eq!(Marker::load(&store, &root).unwrap(), None);
        let marker = Marker { source: "file:///x".to_owned(), digest: u64::MAX - 3 };
        marker.store(&store, &root).unwrap();
        assert_eq!(Marker::load(&store, &root).unwrap(), Some(marker));
        store::set(&store, &Marker::key(&root).unwrap(), "{").unwrap();
        assert!(Marker::load(&store, &root).is_err());
        Marker::remove(&store, &root).unwrap();
        assert_eq!(Marker::load(&store, &root).unwrap(), None);
    }

    #[test]
    fn digests_tell_pieces_apart() {
        let of = |parts: &[&[u8]]| {
            let mut digest = Digest::new();
            parts.iter().for_each(|part| digest.add(part));
            digest.0
        };
        assert_ne!(of(&[b"ab", b"c"]), of(&[b"a", b"bc"]));
    }
}

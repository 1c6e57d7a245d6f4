//! What there is to say about a node without decoding it.

use std::collections::HashSet;

use zarr::meta::{Extension, Json, JsonObject};
use zarr::store_api::{StoreErrorKind, StorePrefix};
use zarr::{Array, ArrayError, Group, Node};

use crate::codecs;
use crate::context::Context;
use crate::error::{Failure, Result};
use crate::{json, store, units, values};

/// An array: its metadata in words, and how much of it is stored.
#[derive(Debug)]
pub(crate) struct ArrayFacts {
    pub(crate) version: String,
    pub(crate) shape: Vec<u64>,
    pub(crate) dimension_names: Option<Vec<Option<String>>>,
    pub(crate) data_type: String,
    pub(crate) fill_value: Json,
    /// Elements of the innermost chunks.
    pub(crate) chunks: Vec<u64>,
    /// Elements of shards, where there are any.
    pub(crate) shards: Option<Vec<u64>>,
    /// Whether chunks differ in shape.
    pub(crate) rectilinear: bool,
    /// Chunks (shards) along each axis.
    pub(crate) grid: Vec<u64>,
    pub(crate) codecs: String,
    /// Bytes of all elements; `None` where elements differ in length.
    pub(crate) decoded: Option<u64>,
    pub(crate) stored: Option<StoredSize>,
}

/// What the store holds of an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StoredSize {
    pub(crate) bytes: u64,
    pub(crate) chunks: u64,
}

/// The most chunks that are asked for one by one, in a store that cannot be listed.
const PROBED: u64 = 4096;

impl ArrayFacts {
    pub(crate) fn new(array: &Array, context: &Context) -> Result<Self> {
        Ok(Self { stored: stored_size(array, context)?, ..Self::of_metadata(array) })
    }

    /// Without asking the store.
    pub(crate) fn of_metadata(array: &Array) -> Self {
        let metadata = array.metadata();
        let sharded = !array.shard_levels().is_empty();
        let uniform = metadata.chunk_grid.uniform_chunk_shape();
        Self {
            version: array.version().to_string(),
            shape: array.shape().to_vec(),
            dimension_names: metadata.dimension_names.clone(),
            data_type: values::type_name(array.data_type()),
            fill_value: metadata.fill_value.to_json(array.data_type()).unwrap_or_default(),
            chunks: array.inner_chunk_shape(),
            shards: sharded.then(|| uniform.clone().unwrap_or_else(|| metadata.chunk_grid.chunk_shape(&vec![0; array.shape().len()]))),
            rectilinear: uniform.is_none(),
            grid: array.chunk_grid_shape(),
            codecs: chain(array),
            decoded: array.item_size().map(|size| units::product(array.shape()).saturating_mul(size as u64)),
            stored: None,
        }
    }

    pub(crate) fn total_chunks(&self) -> u64 {
        units::product(&self.grid)
    }

    pub(crate) fn ratio(&self) -> Option<f64> {
        units::ratio(self.decoded?, self.stored?.bytes)
    }

    pub(crate) fn ratio_text(&self) -> String {
        self.ratio().map(|ratio| format!("{ratio:.2}")).unwrap_or_default()
    }

    /// `24×37×49 in 120×37×49`
    pub(crate) fn chunks_text(&self) -> String {
        let chunks = if self.rectilinear { "varying".to_owned() } else { units::shape(&self.chunks) };
        match &self.shards {
            Some(shards) if self.rectilinear => {
                format!("{} in varying shards", units::shape(&self.chunks)).replace("varying in", &units::shape(shards))
            }
            Some(shards) => format!("{chunks} in {}", units::shape(shards)),
            None => chunks,
        }
    }

    pub(crate) fn stored_text(&self) -> String {
        self.stored.map_or("?".to_owned(), |stored| units::bytes(stored.bytes))
    }

    pub(crate) fn decoded_text(&self) -> String {
        self.decoded.map_or("varies".to_owned(), units::bytes)
    }

    pub(crate) fn present_text(&self) -> String {
        format!("{}/{}", self.stored.map_or("?".to_owned(), |stored| stored.chunks.to_string()), self.total_chunks())
    }

    pub(crate) fn to_json(&self, array: &Array) -> JsonObject {
        let codecs: Json = array.metadata().codecs.iter().map(Extension::to_json).collect();
        json::object()
            .with("kind", "array")
            .with("zarr_format", if self.version == "v2" { 2 } else { 3 })
            .with("shape", self.shape.clone())
            .with("dimension_names", json::optional(self.dimension_names.clone()))
            .with("data_type", array.data_type().to_json())
            .with("fill_value", self.fill_value.clone())
            .with("chunk_shape", if self.rectilinear && self.shards.is_none() { Json::Null } else { self.chunks.clone().into() })
            .with("shard_shape", json::optional(self.shards.clone().filter(|_| !self.rectilinear)))
            .with("chunk_grid_shape", self.grid.clone())
            .with("chunk_grid", array.chunk_grid().to_json())
            .with("codecs", codecs)
            .with("stored_bytes", json::optional(self.stored.map(|stored| stored.bytes)))
            .with("decoded_bytes", json::optional(self.decoded.filter(|&bytes| bytes < u64::MAX)))
            .with("ratio", json::optional(self.ratio()))
            .with("chunks_present", json::optional(self.stored.map(|stored| stored.chunks)))
            .with("chunks_total", self.total_chunks())
    }
}

/// The codec chain in words; that of inner chunks, where there are shards and nothing else around them.
pub(crate) fn chain(array: &Array) -> String {
    let codecs = &array.metadata().codecs;
    if let [only] = codecs.as_slice()
        && only.name == "sharding_indexed"
    {
        let inner = only.configuration.as_ref().and_then(|configuration| configuration.get("codecs")?.as_array()).unwrap_or_default();
        let inner: Vec<Extension> = inner.iter().filter_map(|codec| Extension::parse(codec).ok()).collect();
        return codecs::in_words(&inner);
    }
    codecs::in_words(codecs)
}

/// Bytes and number of the stored chunks; `None` where that cannot be found out, or only by too many requests.
fn stored_size(array: &Array, context: &Context) -> Result<Option<StoredSize>> {
    let store = array.store();
    let rank = array.shape().len();
    let grid = array.chunk_grid_shape();
    let keys = if store.is_listable() {
        let prefix = StorePrefix::new(array.path().prefix())?;
        let encoding = &array.metadata().chunk_key_encoding;
        let inside = |chunk: &[u64]| chunk.iter().zip(&grid).all(|(index, count)| index < count);
        let mut keys = store::list(store, &prefix)?;
        keys.retain(|key| prefix.strip(key).and_then(|key| encoding.decode(key, rank)).is_some_and(|chunk| inside(&chunk)));
        keys
    } else {
        if units::product(&grid) > PROBED {
            return Ok(None);
        }
        coordinates(&grid).map(|chunk| array.chunk_key(&chunk)).collect::<Result<_, _>>()?
    };
    let sizes = context.try_each(16, &keys, |key| Ok(store::size(store, key)?))?;
    let sizes: Vec<u64> = sizes.into_iter().flatten().collect();
    Ok(Some(StoredSize { bytes: sizes.iter().sum(), chunks: sizes.len() as u64 }))
}

/// All coordinates of the grid of an array in a store that cannot be listed. There may be too many to try them all.
pub(crate) fn every_chunk(array: &Array) -> Result<Vec<Vec<u64>>> {
    const TRIED: u64 = 10_000_000;
    let grid = array.chunk_grid_shape();
    let total = units::product(&grid);
    if total > TRIED {
        return Err(Failure::new(format!("{} may have {total} chunks, and the store cannot be listed", array.path())));
    }
    Ok(coordinates(&grid).collect())
}

/// All coordinates of a grid, in C order.
pub(crate) fn coordinates(counts: &[u64]) -> impl Iterator<Item = Vec<u64>> {
    let counts = counts.to_vec();
    let total = units::product(&counts);
    (0..total).map(move |mut flat| {
        let mut coordinates = vec![0; counts.len()];
        for (coordinate, &count) in coordinates.iter_mut().zip(&counts).rev() {
            *coordinate = flat % count;
            flat /= count;
        }
        coordinates
    })
}

/// A node below another one, or why it cannot be opened or listed.
#[derive(Debug)]
pub(crate) struct Entry {
    /// Relative to where the walk began; empty for that node itself.
    pub(crate) path: String,
    pub(crate) node: Result<Node, Failure>,
}

/// The node and all nodes below it, each before those below it, as consolidated metadata have them where there are any. A node that cannot be opened or listed does not
/// keep the others from being seen.
pub(crate) fn walk(root: Node) -> Result<Vec<Entry>> {
    match root {
        Node::Array(_) => Ok(vec![Entry { path: String::new(), node: Ok(root) }]),
        Node::Group(group) => {
            let below = walk_group(&group, group.names()?, "");
            Ok(with_root(group, below))
        }
    }
}

/// As [`walk`], but by the documents that are stored, whatever consolidated metadata say of them; by those alone only where the store cannot be listed. Gives the
/// paths, too, of what they name and is not stored.
pub(crate) fn walk_stored(root: Node) -> Result<(Vec<Entry>, Vec<String>)> {
    let group = match root {
        Node::Group(group) if group.is_consolidated() => group,
        other => return Ok((walk(other)?, Vec::new())),
    };
    let stored = group.without_consolidated();
    let mut below = match stored.names() {
        Ok(names) => walk_group(&stored, names, ""),
        Err(ArrayError::Store(error)) if matches!(error.kind(), StoreErrorKind::Unsupported | StoreErrorKind::Permission) => {
            return Ok((walk(Node::Group(group))?, Vec::new()));
        }
        Err(error) => return Err(error.into()),
    };
    let seen: HashSet<String> = below.iter().map(|entry| entry.path.clone()).collect();
    let mut missing = Vec::new();
    for Entry { path, node: copy } in walk_group(&group, group.names()?, "") {
        if seen.contains(&path) {
            continue;
        }
        match stored.get(&path) {
            // No group that is stored leads to it.
            Ok(node) => below.push(Entry { path, node: Ok(node) }),
            Err(ArrayError::NotFound { .. }) => missing.push((path, copy)),
            Err(error) => below.push(Entry { path, node: Err(error.into()) }),
        }
    }
    // A group of which there is but a copy leads to what is stored below it.
    let leads = |path: &str| below.iter().any(|entry| entry.path.strip_prefix(path).is_some_and(|rest| rest.starts_with('/')));
    let (led, missing): (Vec<_>, Vec<_>) = missing.into_iter().partition(|(path, copy)| matches!(copy, Ok(Node::Group(_))) && leads(path));
    below.extend(led.into_iter().map(|(path, node)| Entry { path, node }));
    below.sort_by(|a, b| a.path.split('/').cmp(b.path.split('/')));
    Ok((with_root(group, below), missing.into_iter().map(|(path, _)| path).collect()))
}

fn with_root(group: Box<Group>, below: Vec<Entry>) -> Vec<Entry> {
    let mut entries = vec![Entry { path: String::new(), node: Ok(Node::Group(group)) }];
    entries.extend(below);
    entries
}

fn walk_group(group: &Group, names: Vec<String>, path: &str) -> Vec<Entry> {
    let mut entries = Vec::new();
    for name in names {
        let path = if path.is_empty() { name.clone() } else { format!("{path}/{name}") };
        let below = match group.get(&name) {
            Ok(Node::Group(group)) => group.names().map(|names| {
                let below = walk_group(&group, names, &path);
                (Node::Group(group), below)
            }),
            Ok(array) => Ok((array, Vec::new())),
            Err(error) => Err(error),
        };
        match below {
            Ok((node, below)) => {
                entries.push(Entry { path, node: Ok(node) });
                entries.extend(below);
            }
            Err(error) => entries.push(Entry { path, node: Err(error.into()) }),
        }
    }
    entries
}

/// What to call a node that was named by a URL: the last part of it.
pub(crate) fn short_name(url: &str) -> &str {
    let trimmed = url.trim_end_matches('/');
    trimmed.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or(url)
}

pub(crate) fn group_line(group: &Group) -> String {
    let consolidated = if group.is_consolidated() { ", consolidated" } else { "" };
    format!("group, {}{consolidated}", group.version())
}

#[cfg(test)]
mod tests {
    use zarr::GroupBuilder;
    use zarr::store_api::AnyStore;
    use zarr_store::{Fault, FaultyStore, MemoryStore, When};

    use super::*;

    #[test]
    fn a_group_that_cannot_be_listed_does_not_hide_the_others() {
        let faulty = FaultyStore::new(MemoryStore::new());
        let store = AnyStore::blocking(faulty.clone());
        let root = GroupBuilder::new().create(store, "/", &zarr::options()).unwrap();
        for name in ["a/b", "c/d"] {
            root.create_group(name, &GroupBuilder::new()).unwrap();
        }
        faulty.heal();
        // The root, then the first group.
        faulty.inject(When::List(1), Fault::Fail(StoreErrorKind::Permission));
        let entries = walk(Node::Group(Box::new(root))).unwrap();
        let seen: Vec<_> = entries.iter().map(|entry| (entry.path.as_str(), entry.node.is_ok())).collect();
        assert_eq!(seen, [("", true), ("a", false), ("c", true), ("c/d", true)]);
    }

    /// A hierarchy that is consolidated, of which one group has lost its document, and one array is gone.
    fn damaged() -> (FaultyStore<MemoryStore>, Node) {
        let faulty = FaultyStore::new(MemoryStore::new());
        let store = AnyStore::blocking(faulty.clone());
        let mut root = GroupBuilder::new().create(store.clone(), "/", &zarr::options()).unwrap();
        for name in ["a/b/c", "d", "e/f"] {
            root.create_array(name, &zarr::ArrayBuilder::new([2], zarr::DataType::Int8)).unwrap();
        }
        root.consolidate().unwrap();
        for document in ["a/b/zarr.json", "d/zarr.json"] {
            store::erase(&store, &zarr::store_api::StoreKey::new(document).unwrap()).unwrap();
        }
        faulty.heal();
        (faulty, Node::Group(Box::new(root)))
    }

    fn paths(entries: &[Entry]) -> Vec<(&str, bool)> {
        entries.iter().map(|entry| (entry.path.as_str(), entry.node.is_ok())).collect()
    }

    #[test]
    fn groups_of_which_there_is_but_a_copy_lead_to_what_is_stored() {
        let (_, root) = damaged();
        let (entries, missing) = walk_stored(root).unwrap();
        assert_eq!(paths(&entries), [("", true), ("a", true), ("a/b", true), ("a/b/c", true), ("e", true), ("e/f", true)]);
        assert_eq!(missing, ["d"]);
    }

    #[test]
    fn copies_count_where_nothing_can_be_listed() {
        let (faulty, root) = damaged();
        faulty.inject(When::List(0), Fault::Fail(StoreErrorKind::Permission));
        let (entries, missing) = walk_stored(root.clone()).unwrap();
        assert_eq!((entries.len(), missing.len()), (7, 0));
        faulty.heal();
        // One directory of several is no matter of the whole store.
        faulty.inject(When::List(1), Fault::Fail(StoreErrorKind::Permission));
        let (entries, _) = walk_stored(root).unwrap();
        assert!(paths(&entries).contains(&("a", false)), "{entries:?}");
    }
}

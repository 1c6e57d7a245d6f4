//! Zarr from object store to tensor: the front door.
//!
//! ```
//! # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/data/north_america.zarr/air_temperature");
//! use zarr::Selection;
//!
//! let array = zarr::open_array(path)?;
//! let last_year: Vec<f32> = array.read_elements(&Selection::parse("-1", 3)?)?;
//! assert_eq!(last_year.len(), 37 * 49);
//! # Ok::<(), zarr::ArrayError>(())
//! ```
//!
//! This crate puts the others together and adds no logic of its own: [`open`] opens a node by URL or path, [`registry`] is the list of codecs compiled in,
//! [`options`] are the defaults over it. Take the crates one by one when you want less: `zarr-meta` for metadata alone, `zarr-array` with
//! your own store and two codecs.
//!
//! | you want | look at |
//! |---|---|
//! | read, write, resize | [`Array`] |
//! | open to write | [`locate`] with [`OpenOptions::write`], then [`Array::open`] |
//! | walk and build hierarchies | [`Group`] |
//! | create an array or a group | [`ArrayBuilder`], [`GroupBuilder`] |
//! | your own I/O | [`ReadPlan`] |
//! | any store of the `object_store` crate | [`store`]`::ObjectStoreAdapter`, with the feature `remote` |
//! | many arrays at once | [`ReadSet`] |
//! | a store of your own | [`store_api`] |
//! | a codec of your own | [`codec_api`] |
//! | a device of your own | [`buffer_api`] |
//! | an NVIDIA GPU | `cuda`, with the feature of that name |
//!
//! # Coming from the crate `zarrs`
//!
//! | `zarrs` | here |
//! |---|---|
//! | `Array::open(store, path)`, `Array<TStorage>` | [`open_array`] of a path or URL; [`Array::open`] of a store in [`store`]. One [`Array`] for all stores |
//! | `ArrayBuilder::build`, `store_metadata` | [`ArrayBuilder::create`], which stores metadata, as do [`Array::set_attributes`] and [`Array::resize`] |
//! | `ArraySubset::new_with_ranges` | [`Selection::ranges`]; steps, lists and masks by [`Selection::axes`] and [`Selection::parse`] |
//! | `retrieve_array_subset` | [`Array::read_elements`], [`Array::read_ndarray`]; as bytes [`Array::read`] |
//! | `retrieve_array_subset_into` | [`Array::read_into`] |
//! | `retrieve_chunk`, `retrieve_chunks` | the same calls with [`Selection::Blocks`], without what chunks at the edge have outside of the array; one after the other, read ahead: [`Array::read_each`] of [`Array::chunk_selections`] |
//! | `retrieve_subchunk_opt` | the same calls: of a shard, what is asked for is the inner chunks that a selection touches |
//! | `ArrayShardedReadableExtCache` | [`Options::with_index_cache`] |
//! | `ChunkCache` | there is none |
//! | `retrieve_encoded_chunk` | [`Array::read_encoded_chunk`] |
//! | `partial_decoder` | [`Array::plan`], for I/O of one's own |
//! | `store_array_subset`, `store_chunk` | [`Array::write_elements`], [`Array::write`]: chunks that a selection covers in part are read first |
//! | `erase_chunk` | [`Array::erase_chunk`] |
//! | `CodecOptions`, `global_config_mut` | [`Options`], of each array: [`with_pool`](Options::with_pool), [`with_write_empty_chunks`](Options::with_write_empty_chunks), ..; nothing is global, and checksums are always checked |
//! | `async_retrieve_array_subset`, .. | [`Array::read_elements_async`], .. |
//! | `Group::children`, `traverse` | [`Group::children`], [`Group::walk`] |
//! | a codec plugin | [`Registry::with`] |
#![forbid(unsafe_code)]

#[cfg(feature = "cuda")]
pub mod cuda;

pub use zarr_array::{
    Array, ArrayBuilder, ArrayData, ArrayError, AxisSelection, Coalescing, Crossings, DecodeJob, DeviceTarget, Element, Elements, Group,
    GroupBuilder, Node, Observer, Options, PendingTensor, Pool, ReadEach, ReadEachToDevice, ReadPlan, ReadSet, Request, RequestId,
    Selection, Stage, StoredMetadata, Tensor, Version,
};
pub use zarr_buffer_api as buffer_api;
pub use zarr_codec_api as codec_api;
pub use zarr_codec_api::{Policy, Registry};
pub use zarr_codecs_cpu as codecs_cpu;
pub use zarr_meta as meta;
pub use zarr_meta::{ChunkGrid, ChunkKeyEncoding, DataType, Extension, FillValue, Json, JsonObject};
pub use zarr_store as store;
pub use zarr_store::{OpenOptions, open_url};
pub use zarr_store_api as store_api;
pub use zarr_store_api::AnyStore;

/// The codecs compiled in, on the CPU.
pub fn registry() -> Registry {
    Registry::new().with(zarr_codecs_cpu::provider())
}

/// The default options over [`registry`].
pub fn options() -> Options {
    Options::new(registry())
}

/// Opens the array or group at a URL or path, to read: `data.zarr/temperature`, `file:///..`, `archive.zip/node`, `s3://bucket/prefix`, `https://..`.
/// See [`open_url`] for the forms and the features that they need.
///
/// # Errors
/// [`ArrayError::NotFound`] when there is no node; [`ArrayError::Store`] when the store cannot be opened; [`ArrayError::Metadata`] and
/// [`ArrayError::Codecs`] when the node cannot be understood.
pub fn open(url: &str) -> Result<Node, ArrayError> {
    let (store, path) = locate(url, &OpenOptions::read())?;
    Node::open(store, &path, &options())
}

/// As [`open`].
///
/// # Errors
/// As [`open`].
pub async fn open_async(url: &str) -> Result<Node, ArrayError> {
    let (store, path) = locate(url, &OpenOptions::read())?;
    Node::open_async(store, &path, &options()).await
}

/// Opens an array to read. See [`open`]. To write to it, too, [`locate`] its store with [`OpenOptions::write`] and use [`Array::open`].
///
/// # Errors
/// As [`open`]; [`ArrayError::NotFound`] when the node is a group.
pub fn open_array(url: &str) -> Result<Array, ArrayError> {
    let (store, path) = locate(url, &OpenOptions::read())?;
    Array::open(store, &path, &options())
}

/// As [`open_array`].
///
/// # Errors
/// As [`open_array`].
pub async fn open_array_async(url: &str) -> Result<Array, ArrayError> {
    let (store, path) = locate(url, &OpenOptions::read())?;
    Array::open_async(store, &path, &options()).await
}

/// Opens a group to read. See [`open`].
///
/// # Errors
/// As [`open`]; [`ArrayError::NotFound`] when the node is an array.
pub fn open_group(url: &str) -> Result<Group, ArrayError> {
    let (store, path) = locate(url, &OpenOptions::read())?;
    Group::open(store, &path, &options())
}

/// As [`open_group`].
///
/// # Errors
/// As [`open_group`].
pub async fn open_group_async(url: &str) -> Result<Group, ArrayError> {
    let (store, path) = locate(url, &OpenOptions::read())?;
    Group::open_async(store, &path, &options()).await
}

/// Splits a URL into a store and the path of a node in it: what follows a zip archive is a path inside, all else is the store. [`zarr_store::local_archive`] says what
/// a local archive is; elsewhere it is what has a name that ends in `.zip`.
///
/// # Errors
/// [`ArrayError::Store`] when the store cannot be opened.
pub fn locate(url: &str, how: &OpenOptions) -> Result<(AnyStore, String), ArrayError> {
    if let Some((archive, inside)) = zarr_store::local_archive(url)? {
        return Ok((open_url(&format!("zip://{archive}"), how)?, inside));
    }
    match archive_in_url(url) {
        Some((archive, inside)) => Ok((open_url(archive, how)?, inside.trim_end_matches('/').to_owned())),
        None => Ok((open_url(url, how)?, "/".to_owned())),
    }
}

/// The URL of an archive on a server, and what is behind it.
fn archive_in_url(url: &str) -> Option<(&str, &str)> {
    let host = url.find("://")? + 3;
    let mut ends = url.match_indices('/').map(|(at, _)| at).filter(|&at| at > host);
    let is_archive = |end: &usize| url.get(end - 4..*end).is_some_and(|end| end.eq_ignore_ascii_case(".zip"));
    ends.find(is_archive).map(|end| url.split_at(end))
}

/// The examples of the README, compiled with the feature that one of them needs.
#[cfg(all(doctest, feature = "cuda"))]
#[doc = include_str!("../../../README.md")]
struct Readme;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_feature_that_is_missing_is_one_of_this_crate() {
        for url in ["s3://bucket/a", "gs://bucket/a", "az://container/a", "https://example.invalid/a"] {
            let Some(error) =
                open_url(url, &OpenOptions::read()).err().filter(|error| error.kind() == store_api::StoreErrorKind::Unsupported)
            else {
                continue;
            };
            let error = error.to_string();
            let feature = error.split('`').nth(1).unwrap_or_else(|| panic!("{error}"));
            assert!(include_str!("../Cargo.toml").contains(&format!("\n{feature} = [")), "{error}");
        }
    }

    #[test]
    fn archives_on_servers() {
        assert_eq!(archive_in_url("s3://bucket/x/a.ZIP/b/c"), Some(("s3://bucket/x/a.ZIP", "/b/c")));
        for url in ["s3://bucket/a.zip", "https://host/a.zipper/b", "data/a.zip/b", "s3://é"] {
            assert_eq!(archive_in_url(url), None, "{url}");
        }
    }

    #[test]
    fn blocking_and_async_calls_open_the_same() {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/data/north_america.zarr");
        let inside = format!("{root}/air_temperature");
        assert!(matches!(pollster::block_on(open_async(root)), Ok(Node::Group(_))));
        assert!(matches!(pollster::block_on(open_async(&inside)), Ok(Node::Array(_))));
        let (blocking, array) = (open_array(&inside).unwrap(), pollster::block_on(open_array_async(&inside)).unwrap());
        assert_eq!(array.metadata(), blocking.metadata());
        let (blocking, group) = (open_group(root).unwrap(), pollster::block_on(open_group_async(root)).unwrap());
        assert_eq!(group.names().unwrap(), blocking.names().unwrap());
        assert!(matches!(pollster::block_on(open_array_async(root)), Err(ArrayError::NotFound { .. })));
        assert!(matches!(pollster::block_on(open_group_async(&inside)), Err(ArrayError::NotFound { .. })));
    }

    #[test]
    fn an_archive_that_is_yet_to_be_written() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
        let (store, path) = locate(&at("new.zip/a/b"), &OpenOptions::write()).unwrap();
        assert_eq!(path, "/a/b");
        ArrayBuilder::new([4], DataType::Int32).create(store, &path, &options()).unwrap();
        assert!(std::path::Path::new(&at("new.zip")).is_file());
        assert_eq!(open_array(&at("new.zip/a/b")).unwrap().shape(), [4]);

        std::fs::create_dir(at("folder.zip")).unwrap();
        let (_, path) = locate(&at("folder.zip/a"), &OpenOptions::write()).unwrap();
        assert_eq!(path, "/");
        let missing = locate(&at("none.zip/a"), &OpenOptions::read()).unwrap_err();
        assert!(matches!(missing, ArrayError::Store(error) if error.kind() == store_api::StoreErrorKind::NotFound));
    }
}

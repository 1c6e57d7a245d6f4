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
//! | walk and build hierarchies | [`Group`] |
//! | create an array | [`ArrayBuilder`] |
//! | your own I/O | [`ReadPlan`] |
//! | many arrays at once | [`ReadSet`] |
//! | a store of your own | [`store_api`] |
//! | a codec of your own | [`codec_api`] |
//! | a device of your own | [`buffer_api`] |
//! | an NVIDIA GPU | `cuda`, with the feature of that name |
#![forbid(unsafe_code)]

#[cfg(feature = "cuda")]
pub mod cuda;

pub use zarr_array::{
    Array, ArrayBuilder, ArrayData, ArrayError, AxisSelection, Coalescing, Crossings, DecodeJob, DeviceTarget, Element, Elements, Group,
    Node, Observer, Options, PendingTensor, Pool, ReadEach, ReadEachToDevice, ReadPlan, ReadSet, Request, RequestId, Selection, Stage,
    StoredMetadata, Tensor, Version,
};
pub use zarr_buffer_api as buffer_api;
pub use zarr_codec_api as codec_api;
pub use zarr_codec_api::{Policy, Registry};
pub use zarr_codecs_cpu as codecs_cpu;
pub use zarr_meta as meta;
pub use zarr_meta::{DataType, FillValue};
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

/// Opens an array to read. See [`open`].
///
/// # Errors
/// As [`open`]; [`ArrayError::NotFound`] when the node is a group.
pub fn open_array(url: &str) -> Result<Array, ArrayError> {
    let (store, path) = locate(url, &OpenOptions::read())?;
    Array::open(store, &path, &options())
}

/// Opens a group to read. See [`open`].
///
/// # Errors
/// As [`open`]; [`ArrayError::NotFound`] when the node is an array.
pub fn open_group(url: &str) -> Result<Group, ArrayError> {
    let (store, path) = locate(url, &OpenOptions::read())?;
    Group::open(store, &path, &options())
}

/// Splits a URL into a store and the path of a node in it: what follows a zip archive is a path inside, all else is the store.
///
/// # Errors
/// [`ArrayError::Store`] when the store cannot be opened.
pub fn locate(url: &str, how: &OpenOptions) -> Result<(AnyStore, String), ArrayError> {
    let archive_end = url.match_indices(".zip/").map(|(at, _)| at + 4).find(|&end| url.get(..end).is_some_and(is_file_or_remote));
    match archive_end.map(|end| url.split_at(end)) {
        Some((archive, inside)) => Ok((open_url(archive, how)?, inside.trim_end_matches('/').to_owned())),
        None => Ok((open_url(url, how)?, "/".to_owned())),
    }
}

fn is_file_or_remote(url: &str) -> bool {
    url.contains("://") || std::path::Path::new(url).is_file()
}

/// The examples of the README, compiled.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

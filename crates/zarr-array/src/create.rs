//! Creating and removing nodes.

use zarr_meta::{
    ArrayMetadataV2, ArrayMetadataV3, ChunkGrid, ChunkKeyEncoding, DataType, Endianness, Extension, FillValue, GroupMetadataV2,
    GroupMetadataV3, Json, JsonObject, NodePath, Separator,
};
use zarr_store_api::AnyStore;

use crate::array::node_path;
use crate::node::{self, StoredMetadata, Version};
use crate::storage::{Storage, block_on};
use crate::{Array, ArrayError, Group, Options};

/// Describes a new array. Only shape and data type have no default.
///
/// No setting gives way to another one: [`codecs`](Self::codecs) goes with none of the parts of a chain ([`filters`](Self::filters),
/// [`array_to_bytes`](Self::array_to_bytes), [`compressors`](Self::compressors)), [`chunk_grid`](Self::chunk_grid) neither with [`chunks`](Self::chunks) nor with
/// [`shards`](Self::shards), and [`index_at_start`](Self::index_at_start) needs shards. All else is an error of [`metadata`](Self::metadata) and
/// [`create`](Self::create).
///
/// ```no_run
/// # use zarr_array::{Array, ArrayBuilder, ArrayError, Options};
/// # fn create(store: zarr_store_api::AnyStore, options: &Options) -> Result<Array, ArrayError> {
/// use zarr_meta::DataType;
/// ArrayBuilder::new([64, 721, 1440], DataType::Float32)
///     .chunks([1, 721, 1440])
///     .shards([16, 721, 1440])
///     .dimension_names(["time", "latitude", "longitude"])
///     .create(store, "/temperature", options)
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct ArrayBuilder {
    shape: Vec<u64>,
    data_type: DataType,
    grid: Option<ChunkGrid>,
    chunks: Option<Vec<u64>>,
    shards: Option<Vec<u64>>,
    fill_value: Option<FillValue>,
    filters: Vec<Extension>,
    array_to_bytes: Option<Extension>,
    compressors: Option<Vec<Extension>>,
    codecs: Option<Vec<Extension>>,
    index_at_start: bool,
    key_encoding: Option<ChunkKeyEncoding>,
    dimension_names: Option<Vec<Option<String>>>,
    attributes: JsonObject,
    version: Version,
    overwrite: bool,
}

impl ArrayBuilder {
    /// An array of `shape`, in elements along each axis, slowest first.
    pub fn new(shape: impl Into<Vec<u64>>, data_type: DataType) -> Self {
        Self {
            shape: shape.into(),
            data_type,
            grid: None,
            chunks: None,
            shards: None,
            fill_value: None,
            filters: Vec::new(),
            array_to_bytes: None,
            compressors: None,
            codecs: None,
            index_at_start: false,
            key_encoding: None,
            dimension_names: None,
            attributes: JsonObject::new(),
            version: Version::V3,
            overwrite: false,
        }
    }

    /// Elements of a chunk along each axis (of an inner chunk, where there are shards). Default: up to 4 MiB, the last axes whole.
    #[must_use]
    pub fn chunks(mut self, chunks: impl Into<Vec<u64>>) -> Self {
        self.chunks = Some(chunks.into());
        self
    }

    /// Elements of a shard along each axis, multiples of the chunk's. Default: no shards.
    #[must_use]
    pub fn shards(mut self, shards: impl Into<Vec<u64>>) -> Self {
        self.shards = Some(shards.into());
        self
    }

    /// A chunk grid of any kind; of shards, where [`ArrayBuilder::codecs`] has some.
    #[must_use]
    pub fn chunk_grid(mut self, grid: ChunkGrid) -> Self {
        self.grid = Some(grid);
        self
    }

    /// What absent elements are. Default: zero, false, or empty.
    ///
    /// ```
    /// # use zarr_array::ArrayBuilder;
    /// use zarr_meta::{DataType, FillValue};
    /// let nan = FillValue::from_bytes(f32::NAN.to_ne_bytes(), &DataType::Float32)?;
    /// let builder = ArrayBuilder::new([64, 721], DataType::Float32).fill_value(nan);
    /// # Ok::<(), zarr_meta::MetadataError>(())
    /// ```
    #[must_use]
    pub fn fill_value(mut self, fill_value: FillValue) -> Self {
        self.fill_value = Some(fill_value);
        self
    }

    /// Array→array codecs. Default: none.
    #[must_use]
    pub fn filters(mut self, filters: impl Into<Vec<Extension>>) -> Self {
        self.filters = filters.into();
        self
    }

    /// The array→bytes codec. Default: `bytes`, little endian; `vlen-utf8` or `vlen-bytes` for elements of variable length.
    #[must_use]
    pub fn array_to_bytes(mut self, codec: Extension) -> Self {
        self.array_to_bytes = Some(codec);
        self
    }

    /// Bytes→bytes codecs. Default: `zstd` at level 3. An empty list stores chunks as they are.
    #[must_use]
    pub fn compressors(mut self, compressors: impl Into<Vec<Extension>>) -> Self {
        self.compressors = Some(compressors.into());
        self
    }

    /// The whole codec chain of a chunk (of an inner chunk, where there are [`shards`](Self::shards)), in place of the three parts above. Where `sharding_indexed` is in it,
    /// [`chunks`](Self::chunks) is the shape of its shards.
    #[must_use]
    pub fn codecs(mut self, codecs: impl Into<Vec<Extension>>) -> Self {
        self.codecs = Some(codecs.into());
        self
    }

    /// Puts the index of [`ArrayBuilder::shards`] at their start. Default: at their end.
    #[must_use]
    pub fn index_at_start(mut self) -> Self {
        self.index_at_start = true;
        self
    }

    /// How chunks are named. Default: `c/0/0` for version 3, `0.0` for version 2.
    #[must_use]
    pub fn chunk_key_encoding(mut self, encoding: ChunkKeyEncoding) -> Self {
        self.key_encoding = Some(encoding);
        self
    }

    /// The names of the axes. Default: none.
    #[must_use]
    pub fn dimension_names<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.dimension_names = Some(names.into_iter().map(|name| Some(name.into())).collect());
        self
    }

    /// Names of axes of which some may have none.
    #[must_use]
    pub fn optional_dimension_names(mut self, names: Option<Vec<Option<String>>>) -> Self {
        self.dimension_names = names;
        self
    }

    /// The user's attributes. Default: none.
    #[must_use]
    pub fn attributes(mut self, attributes: JsonObject) -> Self {
        self.attributes = attributes;
        self
    }

    /// The version of the format. Default: 3.
    #[must_use]
    pub fn version(mut self, version: Version) -> Self {
        self.version = version;
        self
    }

    /// Whether a node that is already there is removed, and with it every key below its path, whatever that is. Default: that is an error.
    #[must_use]
    pub fn overwrite(mut self, overwrite: bool) -> Self {
        self.overwrite = overwrite;
        self
    }

    /// The metadata that the array will have.
    ///
    /// # Errors
    /// [`ArrayError::Parameter`] when settings contradict each other; [`ArrayError::Metadata`] when the parts do not fit together, or version 2 cannot express them.
    pub fn metadata(&self) -> Result<StoredMetadata, ArrayError> {
        self.check_settings()?;
        let size = self.data_type.fixed_size();
        let chunks = self.chunks.clone().unwrap_or_else(|| default_chunks(&self.shape, size.unwrap_or(64)));
        let outer = self.shards.clone().unwrap_or_else(|| chunks.clone());
        let grid = self.grid.clone().unwrap_or_else(|| ChunkGrid::regular(outer));
        let fill_value = self.fill_value.clone().unwrap_or_else(|| FillValue::default_for(&self.data_type));
        let codecs = self.chain(&chunks);
        let mut metadata = ArrayMetadataV3::new(self.shape.clone(), self.data_type.clone(), grid, fill_value, codecs);
        metadata.attributes = self.attributes.clone();
        metadata.dimension_names = self.dimension_names.clone();
        metadata.chunk_key_encoding = self.key_encoding.clone().unwrap_or(match self.version {
            Version::V2 => ChunkKeyEncoding::V2 { separator: Separator::Dot },
            Version::V3 => ChunkKeyEncoding::default(),
        });
        let wrong = |source| ArrayError::Metadata { key: "new array".into(), source };
        metadata.check().map_err(wrong)?;
        match self.version {
            Version::V3 => Ok(StoredMetadata::ArrayV3(metadata.into())),
            Version::V2 => Ok(StoredMetadata::ArrayV2(ArrayMetadataV2::from_v3(&metadata).map_err(wrong)?.into())),
        }
    }

    /// That no setting has to give way to another one.
    fn check_settings(&self) -> Result<(), ArrayError> {
        let parts = !self.filters.is_empty() || self.array_to_bytes.is_some() || self.compressors.is_some();
        let (grid, shards) = (self.grid.is_some(), self.shards.is_some());
        let contradictions = [
            (
                self.codecs.is_some() && parts,
                "`codecs` and parts of a chain: put `filters`, `array_to_bytes` and `compressors` into `codecs`, or leave it out",
            ),
            (grid && self.chunks.is_some(), "`chunk_grid` and `chunks`: leave one of them out"),
            (grid && shards, "`chunk_grid` and `shards`: have the grid be that of shards, and put `sharding_indexed` into `codecs`"),
            (
                self.index_at_start && !shards,
                "`index_at_start` without shards: set `shards`, or say it in the `sharding_indexed` of `codecs`",
            ),
        ];
        match contradictions.into_iter().find(|(found, _)| *found) {
            Some((_, what)) => Err(ArrayError::parameter(format!("a new array was given {what}"))),
            None => Ok(()),
        }
    }

    fn chain(&self, chunks: &[u64]) -> Vec<Extension> {
        let codecs = self.codecs.clone().unwrap_or_else(|| self.chain_of_parts());
        if self.shards.is_none() {
            return codecs;
        }
        let list = |codecs: &[Extension]| Json::Array(codecs.iter().map(Extension::to_json).collect());
        let index_codecs = [bytes_codec(Some(Endianness::Little)), Extension::new("crc32c")];
        let configuration = JsonObject::new()
            .with("chunk_shape", Json::Array(chunks.iter().map(|&len| len.into()).collect()))
            .with("codecs", list(&codecs))
            .with("index_codecs", list(&index_codecs))
            .with("index_location", if self.index_at_start { "start" } else { "end" });
        vec![Extension::with_configuration("sharding_indexed", configuration)]
    }

    fn chain_of_parts(&self) -> Vec<Extension> {
        let mut codecs = self.filters.clone();
        codecs.push(self.array_to_bytes.clone().unwrap_or_else(|| match &self.data_type {
            DataType::String => Extension::new("vlen-utf8"),
            DataType::Bytes => Extension::new("vlen-bytes"),
            data_type => bytes_codec(data_type.is_byte_order_sensitive().then_some(Endianness::Little)),
        }));
        let zstd = || JsonObject::new().with("level", 3u64).with("checksum", false);
        codecs.extend(self.compressors.clone().unwrap_or_else(|| vec![Extension::with_configuration("zstd", zstd())]));
        codecs
    }

    /// Stores the metadata and opens the array.
    ///
    /// No group above it is created: that is what [`Group::create_array`] does. Chunks that are stored already become the array's, unless it overwrites.
    ///
    /// # Errors
    /// [`ArrayError::Exists`] when there is a node and it may not be replaced; [`ArrayError::Parameter`], [`ArrayError::Metadata`], [`ArrayError::Codecs`] when path or
    /// description does not hold together: then nothing was stored; when the store fails.
    pub fn create(&self, store: impl Into<AnyStore>, path: &str, options: &Options) -> Result<Array, ArrayError> {
        block_on(self.create_async(store, path, options))
    }

    /// As [`ArrayBuilder::create`].
    ///
    /// # Errors
    /// As [`ArrayBuilder::create`].
    pub async fn create_async(&self, store: impl Into<AnyStore>, path: &str, options: &Options) -> Result<Array, ArrayError> {
        let (storage, path) = (Storage(store.into()), new_path(path, self.version)?);
        let stored = self.metadata()?;
        let array = Array::from_stored(storage.clone(), path.clone(), stored.clone(), options)?;
        make_way(&storage, &path, self.overwrite).await?;
        node::store(&storage, &path, &stored).await?;
        Ok(array)
    }
}

/// Describes a new group. Nothing must be said: a group of version 3 without attributes.
///
/// ```no_run
/// # use zarr_array::{ArrayError, Group, GroupBuilder, Options, Version};
/// # fn create(store: zarr_store_api::AnyStore, options: &Options) -> Result<Group, ArrayError> {
/// use zarr_meta::JsonObject;
/// let attributes = JsonObject::new().with("title", "reanalysis");
/// GroupBuilder::new().attributes(attributes).version(Version::V2).overwrite(true).create(store, "/", options)
/// # }
/// ```
#[derive(Debug, Clone, Default)]
pub struct GroupBuilder {
    attributes: JsonObject,
    version: Version,
    overwrite: bool,
}

impl GroupBuilder {
    /// A group without attributes.
    pub fn new() -> Self {
        Self::default()
    }

    /// The user's attributes. Default: none.
    #[must_use]
    pub fn attributes(mut self, attributes: JsonObject) -> Self {
        self.attributes = attributes;
        self
    }

    /// The version of the format. Default: 3.
    #[must_use]
    pub fn version(mut self, version: Version) -> Self {
        self.version = version;
        self
    }

    /// Whether a node that is already there is removed, and with it every key below its path, whatever that is. Default: that is an error.
    #[must_use]
    pub fn overwrite(mut self, overwrite: bool) -> Self {
        self.overwrite = overwrite;
        self
    }

    /// The metadata that the group will have.
    pub fn metadata(&self) -> StoredMetadata {
        match self.version {
            Version::V2 => StoredMetadata::GroupV2(GroupMetadataV2::new(self.attributes.clone()).into()),
            Version::V3 => StoredMetadata::GroupV3(GroupMetadataV3::new(self.attributes.clone()).into()),
        }
    }

    /// Stores the metadata and opens the group.
    ///
    /// No group above it is created: that is what [`Group::create_group`] does.
    ///
    /// # Errors
    /// [`ArrayError::Exists`] when there is a node and it may not be replaced; [`ArrayError::Metadata`] when the path is none of the format; when the store fails.
    pub fn create(&self, store: impl Into<AnyStore>, path: &str, options: &Options) -> Result<Group, ArrayError> {
        block_on(self.create_async(store, path, options))
    }

    /// As [`GroupBuilder::create`].
    ///
    /// # Errors
    /// As [`GroupBuilder::create`].
    pub async fn create_async(&self, store: impl Into<AnyStore>, path: &str, options: &Options) -> Result<Group, ArrayError> {
        let (storage, path) = (Storage(store.into()), new_path(path, self.version)?);
        let stored = self.metadata();
        make_way(&storage, &path, self.overwrite).await?;
        node::store(&storage, &path, &stored).await?;
        Ok(Group::created(storage, path, stored, options))
    }
}

fn bytes_codec(endianness: Option<Endianness>) -> Extension {
    match endianness {
        Some(endianness) => Extension::with_configuration("bytes", JsonObject::new().with("endian", endianness.name())),
        None => Extension::new("bytes"),
    }
}

/// Up to 4 MiB of elements, the last axes whole first: what a row-wise reader wants, and what compresses well.
fn default_chunks(shape: &[u64], item_size: usize) -> Vec<u64> {
    let mut room = ((4 << 20) / item_size.max(1) as u64).max(1);
    let mut chunks = vec![1; shape.len()];
    for (chunk, &len) in chunks.iter_mut().zip(shape).rev() {
        *chunk = len.clamp(1, room);
        room = (room / *chunk).max(1);
    }
    chunks
}

/// The path of a node that is to be created, by the rules of its version.
pub(crate) fn new_path(path: &str, version: Version) -> Result<NodePath, ArrayError> {
    match version {
        Version::V2 => node_path(path),
        Version::V3 => NodePath::new(path).map_err(|source| ArrayError::Metadata { key: path.to_owned(), source }),
    }
}

/// Makes sure that a node can be created at a path.
pub(crate) async fn make_way(storage: &Storage, path: &NodePath, overwrite: bool) -> Result<(), ArrayError> {
    if overwrite {
        return erase(storage, path).await;
    }
    match node::load(storage, path).await? {
        None => Ok(()),
        Some(found) => Err(ArrayError::exists(&found, path, storage)),
    }
}

/// Removes a node and all below it: metadata first, so that nobody opens a node that is half gone.
pub(crate) async fn erase(storage: &Storage, path: &NodePath) -> Result<(), ArrayError> {
    for name in ["zarr.json", ".zarray", ".zgroup", ".zattrs", ".zmetadata"] {
        storage.erase(&node::key(path, name)?).await?;
    }
    storage.erase_prefix(&node::prefix(path)?).await?;
    Ok(())
}

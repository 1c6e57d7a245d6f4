//! Arrays.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use zarr_buffer_api::{BufferError, Layout, OwnedTiles, TileWriter, unwritten};
use zarr_codec_api::VariableData;
use zarr_meta::{ArrayMetadataV3, ChunkGrid, DataType, FillValue, JsonObject, NodePath};
use zarr_store_api::{AnyStore, ByteRange, Store, StoreKey};

use crate::chunks::Chunks;
use crate::data::{Aligned, ArrayData, Elements, HOST_ALIGN, padded, place};
use crate::element::{Element, check_type};
use crate::gate::Gate;
use crate::node::{self, StoredMetadata, Version};
use crate::plan::{ChunkKeys, Plan};
use crate::read::{Job, Sink, read_async, read_blocking, read_until};
use crate::resize::{Search, clear_outside, product};
use crate::selection::Resolved;
use crate::shard_index::IndexCache;
use crate::storage::{Storage, block_on};
use crate::variable::VariableSink;
use crate::write::{Data, Empty, OwnedData, write_async, write_blocking};
use crate::{ArrayError, Options, Selection, Tensor};

/// A Zarr array, of either version. Cheap to clone; clones share the store.
///
/// Methods that read, write and change come in two forms: blocking, and async with `_async` behind the name; what reads ahead or is enqueued is blocking alone. Both take the store's native path. In the async form, data and
/// results are owned, decoding and encoding run on the pool, and dropping the future is safe: every chunk is old or new.
///
/// The blocking form waits for an async store on the calling thread. That may be any thread where the store brings its own runtime, as stores opened by URL do.
/// A bare `ObjectStoreAdapter` wants `OnRuntime` around it, or a thread inside of the client's runtime (as by `Handle::enter`) that is none of its workers, where the call
/// may never end. A thread of the array's own pool decodes while it waits.
#[derive(Debug, Clone)]
pub struct Array {
    pub(crate) storage: Storage,
    path: NodePath,
    stored: Arc<StoredMetadata>,
    metadata: Arc<ArrayMetadataV3>,
    pub(crate) chunks: Arc<Chunks>,
    keys: ChunkKeys,
    options: Options,
    pub(crate) indexes: Option<Arc<IndexCache>>,
    /// Whether the threads of the pool have other reads to do than the one at hand.
    busy: bool,
    /// The gate that this read has in common with others; `None`: each its own.
    gate: Option<Arc<Gate>>,
}

impl Array {
    /// Opens the array at `path` (`/` for the root).
    ///
    /// # Errors
    /// [`ArrayError::NotFound`] when there is none; [`ArrayError::Metadata`] and [`ArrayError::Codecs`] when it cannot be understood.
    pub fn open(store: impl Into<AnyStore>, path: &str, options: &Options) -> Result<Self, ArrayError> {
        block_on(Self::open_async(store, path, options))
    }

    /// As [`Array::open`].
    ///
    /// # Errors
    /// As [`Array::open`].
    pub async fn open_async(store: impl Into<AnyStore>, path: &str, options: &Options) -> Result<Self, ArrayError> {
        let storage = Storage(store.into());
        let path = node_path(path)?;
        match node::load(&storage, &path).await? {
            Some(metadata) if metadata.is_array() => Self::from_stored(storage, path, metadata, options),
            found => {
                let what = if found.is_some() { "array, but a group," } else { "array" };
                Err(ArrayError::NotFound { what, path: path.to_string(), store: storage.name() })
            }
        }
    }

    /// An array from metadata at hand: nothing is read.
    ///
    /// # Errors
    /// [`ArrayError::Metadata`] and [`ArrayError::Codecs`] when it cannot be understood.
    pub fn from_metadata(store: impl Into<AnyStore>, path: &str, metadata: StoredMetadata, options: &Options) -> Result<Self, ArrayError> {
        Self::from_stored(Storage(store.into()), node_path(path)?, metadata, options)
    }

    pub(crate) fn from_stored(storage: Storage, path: NodePath, stored: StoredMetadata, options: &Options) -> Result<Self, ArrayError> {
        let (metadata, document) = match &stored {
            StoredMetadata::ArrayV3(array) => (array.as_ref().clone(), "zarr.json"),
            StoredMetadata::ArrayV2(array) => {
                (array.to_v3().map_err(|source| ArrayError::Metadata { key: path.key(".zarray"), source })?, ".zarray")
            }
            StoredMetadata::GroupV2(_) | StoredMetadata::GroupV3(_) => {
                return Err(ArrayError::NotFound { what: "array, but a group,", path: path.to_string(), store: storage.name() });
            }
        };
        metadata.check().map_err(|source| ArrayError::Metadata { key: path.key(document), source })?;
        let chunks = Chunks::new(
            metadata.chunk_grid.clone(),
            metadata.data_type.clone(),
            metadata.fill_value.clone(),
            &metadata.codecs,
            &options.registry,
            &options.policy,
        );
        let codecs = |source| ArrayError::Codecs { path: path.to_string(), source };
        let chunks = chunks.map_err(codecs)?;
        // Codecs that cannot work are told now, not at the first chunk.
        let first = vec![0; metadata.shape.len()];
        let bound = chunks.bound(&chunks.leaf_shape(&first)).map_err(codecs)?;
        if let (Some(device), None) = (options.policy.device(), bound.chain.device()) {
            tracing::info!(%path, %device, "no codec of the array runs on the device; the host decodes");
        }
        let keys = ChunkKeys { prefix: node::prefix(&path)?, encoding: metadata.chunk_key_encoding.clone() };
        Ok(Self {
            storage,
            path,
            stored: Arc::new(stored),
            metadata: Arc::new(metadata),
            chunks: Arc::new(chunks),
            keys,
            options: options.clone(),
            indexes: (options.index_cache > 0).then(|| Arc::new(IndexCache::new(options.index_cache))),
            busy: false,
            gate: None,
        })
    }

    /// Where the array lies in its store.
    pub fn path(&self) -> &NodePath {
        &self.path
    }

    /// The store.
    pub fn store(&self) -> &AnyStore {
        &self.storage.0
    }

    /// The same array, for several reads at a time: one thread is enough for a chunk.
    pub(crate) fn busy(&self) -> Self {
        Self { busy: true, ..self.clone() }
    }

    /// The same array, for reads that are polled together and share what may be under way.
    pub(crate) fn behind(&self, gate: &Arc<Gate>) -> Self {
        Self { gate: Some(Arc::clone(gate)), ..self.clone() }
    }

    /// The same array, for a read that must not wait for others.
    pub(crate) fn alone(&self) -> Self {
        Self { gate: None, ..self.clone() }
    }

    /// The same array, for reads that a thread of a pool waits for; `None` where no threads can be had.
    pub(crate) fn apart(&self) -> Option<Self> {
        let options = Options { pool: self.options.pool.apart()?, ..self.options.clone() };
        Some(Self { gate: Some(Gate::new(&options)), options, ..self.clone() })
    }

    /// What holds back the requests of a read or write of an async store.
    pub(crate) fn gate(&self) -> Arc<Gate> {
        self.gate.clone().unwrap_or_else(|| Gate::new(&self.options))
    }

    /// Whether several threads should work on one chunk.
    pub(crate) fn shares(&self) -> bool {
        !self.busy && self.options.pool.threads() > 1
    }

    /// Memory for a result.
    fn unwritten(&self, len: usize, spread: bool) -> Result<Vec<u8>, BufferError> {
        if self.busy { unwritten(len) } else { self.options.pool.unwritten(len, spread) }
    }

    /// What the array works with.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// The same array with other options.
    ///
    /// # Errors
    /// [`ArrayError::Codecs`] when the new registry or policy does not serve its codecs.
    pub fn with_options(&self, options: &Options) -> Result<Self, ArrayError> {
        Self::from_stored(self.storage.clone(), self.path.clone(), (*self.stored).clone(), options)
    }

    /// The metadata, in the terms of version 3 for arrays of either version.
    pub fn metadata(&self) -> &ArrayMetadataV3 {
        &self.metadata
    }

    /// The metadata as it is stored.
    pub fn stored_metadata(&self) -> &StoredMetadata {
        &self.stored
    }

    /// The version of the format.
    pub fn version(&self) -> Version {
        self.stored.version()
    }

    /// Elements along each axis, slowest first.
    pub fn shape(&self) -> &[u64] {
        &self.metadata.shape
    }

    /// The data type of the elements.
    pub fn data_type(&self) -> &DataType {
        &self.metadata.data_type
    }

    /// What absent elements are.
    pub fn fill_value(&self) -> &FillValue {
        &self.metadata.fill_value
    }

    /// The user's attributes.
    pub fn attributes(&self) -> &JsonObject {
        &self.metadata.attributes
    }

    /// The names of the axes, where they have any.
    pub fn dimension_names(&self) -> Option<&[Option<String>]> {
        self.metadata.dimension_names.as_deref()
    }

    /// The grid of chunks (of shards, for a sharded array).
    pub fn chunk_grid(&self) -> &ChunkGrid {
        &self.metadata.chunk_grid
    }

    /// Chunks along each axis.
    pub fn chunk_grid_shape(&self) -> Vec<u64> {
        self.metadata.chunk_grid.grid_shape(&self.metadata.shape)
    }

    /// The selection of each chunk of the grid (of each shard, for a sharded array), in C order.
    pub fn chunk_selections(&self) -> impl Iterator<Item = Selection> + use<> {
        product(self.chunk_grid_shape()).map(|chunk| Selection::Blocks(chunk.into_iter().map(|index| index..index + 1).collect()))
    }

    /// The selection of each innermost chunk inside the array's shape, in C order: of each inner chunk for a sharded array, otherwise of each chunk of the grid.
    pub fn inner_chunk_selections(&self) -> impl Iterator<Item = Selection> + use<> {
        let (inner, shape) = (self.chunks.cuts.inner.last().cloned(), self.shape().to_vec());
        let counts = match &inner {
            Some(inner) => shape.iter().zip(inner).map(|(&len, &inner)| len.div_ceil(inner)).collect(),
            None => self.chunk_grid_shape(),
        };
        product(counts).map(move |chunk| match &inner {
            // Inner chunks divide all that is around them, also where shards have several shapes.
            Some(inner) => Selection::ranges(chunk.iter().zip(inner).zip(&shape).map(|((&index, &inner), &len)| {
                let start = index * inner;
                start..start.saturating_add(inner).min(len)
            })),
            None => Selection::Blocks(chunk.into_iter().map(|index| index..index + 1).collect()),
        })
    }

    /// Elements of the innermost chunks, the unit of decoding: of inner chunks for a sharded array. For a rectilinear grid without shards, those of the first chunk.
    pub fn inner_chunk_shape(&self) -> Vec<u64> {
        self.chunks.leaf_shape(&vec![0; self.shape().len()])
    }

    /// Elements of inner chunks at each level of sharding, outermost first; empty when there are no shards.
    pub fn shard_levels(&self) -> Vec<Vec<u64>> {
        self.chunks.cuts.inner.clone()
    }

    /// The key under which a chunk is stored.
    ///
    /// # Errors
    /// When the coordinates do not make a key.
    pub fn chunk_key(&self, chunk: &[u64]) -> Result<StoreKey, ArrayError> {
        self.keys.key(chunk)
    }

    /// Bytes of one element in memory; `None` for elements of variable length.
    pub fn item_size(&self) -> Option<usize> {
        self.chunks.item_size()
    }

    /// The shape of what a selection gives.
    ///
    /// # Errors
    /// [`ArrayError::Selection`] when it does not fit the array.
    pub fn selection_shape(&self, selection: &Selection) -> Result<Vec<u64>, ArrayError> {
        // Without a plan, whose size grows with the number of chunks.
        Ok(selection.resolve(&self.metadata.shape, &self.metadata.chunk_grid)?.shape())
    }

    /// Elements of the chunks (of inner chunks, for a sharded array) that a selection touches: a read decodes no more. Points count as if each lay in
    /// a chunk of its own, and the chunks of a rectilinear grid as if all had the shape of the first.
    ///
    /// # Errors
    /// [`ArrayError::Selection`] when it does not fit the array.
    pub fn decoded_elements(&self, selection: &Selection) -> Result<u64, ArrayError> {
        let shape = self.inner_chunk_shape();
        let chunks = match selection.resolve(&self.metadata.shape, &self.metadata.chunk_grid)? {
            Resolved::Product(axes) => axes.iter().zip(&shape).fold(1u64, |product, (axis, &len)| product.saturating_mul(axis.chunks(len))),
            Resolved::Points { count, .. } => count as u64,
        };
        Ok(shape.iter().fold(chunks, |product, &len| product.saturating_mul(len)))
    }

    pub(crate) fn internal_plan(&self, selection: &Selection) -> Result<Plan, ArrayError> {
        self.resolved_plan(&selection.resolve(&self.metadata.shape, &self.metadata.chunk_grid)?)
    }

    pub(crate) fn resolved_plan(&self, resolved: &Resolved) -> Result<Plan, ArrayError> {
        // A plan grows with the chunks that it names: what fits nowhere gets none.
        let shape = resolved.shape();
        let bytes = shape.iter().try_fold(self.item_size().unwrap_or(1) as u64, |bytes, &len| bytes.checked_mul(len));
        if !shape.contains(&0) && bytes.is_none_or(|bytes| isize::try_from(bytes).is_err()) {
            let name = self.data_type().name();
            return Err(ArrayError::parameter(format!("elements of {name} of shape {shape:?} are more than memory can have")));
        }
        let coalescing = self.options.coalescing_for(&self.storage.0);
        let plan = Plan::new(Arc::clone(&self.chunks), self.keys.clone(), &self.metadata.shape, resolved, coalescing)?;
        Ok(Plan { indexes: self.indexes.clone(), ..plan })
    }

    /// Reads into the caller's memory: elements in C order, native byte order. Returns the shape.
    ///
    /// # Errors
    /// [`ArrayError::Parameter`] when `output` is not exactly as long as the selection; the first chunk or request that fails. After an error,
    /// `output` holds anything.
    pub fn read_into(&self, selection: &Selection, output: &mut [u8]) -> Result<Vec<u64>, ArrayError> {
        let resolved = selection.resolve(&self.metadata.shape, &self.metadata.chunk_grid)?;
        if let (AnyStore::Blocking(store), Some(whole)) = (&self.storage.0, self.whole_chunk(&resolved)?) {
            check_len(whole.byte_len(), output.len())?;
            self.read_whole(&**store, &whole, output)?;
            return Ok(resolved.shape());
        }
        let plan = Arc::new(self.resolved_plan(&resolved)?);
        self.check_fixed()?;
        let layout = plan.output_layout()?;
        check_len(layout.span()?.len(), output.len())?;
        match &self.storage.0 {
            AnyStore::Blocking(store) => {
                let tiles = TileWriter::new(output, layout, plan.tiles())?;
                read_blocking(&[Job { plan: &plan, store: &**store, sink: &tiles }], &self.options.pool)?;
            }
            // An async read owns its memory.
            AnyStore::Async(_) => output.copy_from_slice(&block_on(self.read_bytes_of(Arc::clone(&plan), Vec::new(), 0))?),
        }
        Ok(plan.cut.result_shape())
    }

    /// Reads elements of any data type: their bytes in C order, native byte order, or elements of variable length.
    ///
    /// A chunk of which no element is wanted is not read. Of one that a part is wanted of, what has nothing to do with that may be left out, and then nobody sees whether it is good: inner chunks, blocks of
    /// `blosc`, the end of a frame of `zstd` without a checksum.
    ///
    /// # Errors
    /// The first chunk or request that fails.
    pub fn read(&self, selection: &Selection) -> Result<ArrayData, ArrayError> {
        Ok(self.read_aligned(selection, 1)?.data)
    }

    /// As [`Array::read`]. Dropping the future ends the read: chunks that nobody has begun are left.
    ///
    /// # Errors
    /// As [`Array::read`].
    pub async fn read_async(&self, selection: &Selection) -> Result<ArrayData, ArrayError> {
        Ok(self.read_aligned_async(selection, 1).await?.data)
    }

    /// Reads elements of fixed length to the host, to a multiple of 256 bytes, so that array libraries take them without a copy.
    ///
    /// # Errors
    /// [`ArrayError::Parameter`] when the elements have no fixed length; the first chunk or request that fails.
    pub fn read_to_host(&self, selection: &Selection) -> Result<Tensor, ArrayError> {
        self.check_fixed()?;
        self.read_aligned(selection, HOST_ALIGN)?.into_tensor()
    }

    /// As [`Array::read_to_host`].
    ///
    /// # Errors
    /// As [`Array::read_to_host`].
    pub async fn read_to_host_async(&self, selection: &Selection) -> Result<Tensor, ArrayError> {
        self.check_fixed()?;
        self.read_aligned_async(selection, HOST_ALIGN).await?.into_tensor()
    }

    pub(crate) fn read_aligned(&self, selection: &Selection, align: usize) -> Result<Aligned, ArrayError> {
        match &self.storage.0 {
            AnyStore::Blocking(store) => self.read_aligned_until(&**store, selection, align, &AtomicBool::new(false)),
            AnyStore::Async(_) => block_on(self.read_aligned_async(selection, align)),
        }
    }

    /// Reads until somebody else sets `failed`: then the result is of no interest.
    fn read_aligned_until(
        &self,
        store: &dyn Store,
        selection: &Selection,
        align: usize,
        failed: &AtomicBool,
    ) -> Result<Aligned, ArrayError> {
        if failed.load(Ordering::Relaxed) {
            return Err(ArrayError::parameter("nobody wants the result any more"));
        }
        let resolved = selection.resolve(&self.metadata.shape, &self.metadata.chunk_grid)?;
        if let Some(whole) = self.whole_chunk(&resolved)? {
            let mut output = self.unwritten(padded(whole.byte_len(), align), false)?;
            let start = place(&mut output, whole.byte_len(), align);
            self.read_whole(store, &whole, output.get_mut(start..).unwrap_or_default())?;
            return Ok(self.aligned(resolved.shape(), Elements::Fixed(output), start));
        }
        let plan = self.resolved_plan(&resolved)?;
        let (elements, start) = if self.item_size().is_some() {
            let mut layout = plan.output_layout()?;
            let len = layout.span()?.len();
            let mut output = self.unwritten(padded(len, align), plan.is_spread(&layout))?;
            let start = place(&mut output, len, align);
            layout.offset = start;
            let tiles = TileWriter::new(&mut output, layout, plan.tiles())?;
            read_until(&[Job { plan: &plan, store, sink: &tiles }], &self.options.pool, failed)?;
            drop(tiles);
            (Elements::Fixed(output), start)
        } else {
            let sink = VariableSink::default();
            read_until(&[Job { plan: &plan, store, sink: &sink }], &self.options.pool, failed)?;
            (Elements::Variable(sink.finish(plan.output_layout()?.len())), 0)
        };
        Ok(self.aligned(plan.cut.result_shape(), elements, start))
    }

    pub(crate) async fn read_aligned_async(&self, selection: &Selection, align: usize) -> Result<Aligned, ArrayError> {
        if let AnyStore::Blocking(store) = &self.storage.0 {
            // The native path: all of it on the pool.
            let (array, store, selection) = (self.clone(), Arc::clone(store), selection.clone());
            let read = move |unwanted: &AtomicBool| array.read_aligned_until(&*store, &selection, align, unwanted);
            return self.options.pool.compute_while_wanted(read).await;
        }
        let plan = Arc::new(self.internal_plan(selection)?);
        let shape = plan.cut.result_shape();
        let (elements, start) = if self.item_size().is_some() {
            let len = plan.output_layout()?.span()?.len();
            let mut output = unwritten(padded(len, align))?;
            let start = place(&mut output, len, align);
            (Elements::Fixed(self.read_bytes_of(plan, output, start).await?), start)
        } else {
            let len = plan.output_layout()?.len();
            let sink = Arc::new(VariableSink::default());
            read_async(plan, self.storage.clone(), Arc::clone(&sink) as Arc<dyn Sink>, self.options.pool.clone(), self.gate()).await?;
            (Elements::Variable(sink.finish(len)), 0)
        };
        Ok(self.aligned(shape, elements, start))
    }

    fn aligned(&self, shape: Vec<u64>, elements: Elements, start: usize) -> Aligned {
        Aligned { data: ArrayData { shape, data_type: self.data_type().clone(), elements }, start }
    }

    /// Reads into memory that the call owns and gives back: `output` must be exactly as long as the selection.
    ///
    /// # Errors
    /// As [`Array::read_into`]; `output` is lost with an error.
    pub async fn read_into_async(&self, selection: &Selection, output: Vec<u8>) -> Result<Vec<u8>, ArrayError> {
        self.check_fixed()?;
        let plan = self.internal_plan(selection)?;
        check_len(plan.output_layout()?.span()?.len(), output.len())?;
        self.read_bytes_of(Arc::new(plan), output, 0).await
    }

    /// Reads into `output`, from `start` on, or into fresh memory if it is empty.
    pub(crate) async fn read_bytes_of(&self, plan: Arc<Plan>, output: Vec<u8>, start: usize) -> Result<Vec<u8>, ArrayError> {
        let layout = Layout { offset: start, ..plan.output_layout()? };
        let output = if output.is_empty() { unwritten::<u8>(layout.span()?.len())? } else { output };
        let tiles = Arc::new(OwnedTiles::new(output, layout, plan.tiles())?);
        let sink = Arc::clone(&tiles) as Arc<dyn Sink>;
        read_async(plan, self.storage.clone(), sink, self.options.pool.clone(), self.gate()).await?;
        // Pool threads let go of the tiles just before they answer; the last may still be on its way out.
        let mut tiles = tiles;
        loop {
            match Arc::try_unwrap(tiles) {
                Ok(tiles) => return Ok(tiles.into_bytes()),
                Err(shared) => tiles = shared,
            }
            std::thread::yield_now();
        }
    }

    /// Reads elements as Rust values, in C order.
    ///
    /// # Errors
    /// [`ArrayError::Parameter`] when `T` is not the array's data type; the first chunk or request that fails.
    pub fn read_elements<T: Element>(&self, selection: &Selection) -> Result<Vec<T>, ArrayError> {
        check_type::<T>(self.data_type())?;
        T::read(self, selection)
    }

    /// As [`Array::read_elements`], into memory that is there already: `output` is exactly as long as the selection. Returns the shape.
    ///
    /// # Errors
    /// As [`Array::read_elements`]; [`ArrayError::Parameter`] when `output` has another length. After an error, `output` holds anything.
    pub fn read_elements_into<T: Element>(&self, selection: &Selection, output: &mut [T]) -> Result<Vec<u64>, ArrayError> {
        check_type::<T>(self.data_type())?;
        T::read_into(self, selection, output)
    }

    /// As [`Array::read_elements`].
    ///
    /// # Errors
    /// As [`Array::read_elements`].
    pub async fn read_elements_async<T: Element>(&self, selection: &Selection) -> Result<Vec<T>, ArrayError> {
        check_type::<T>(self.data_type())?;
        T::from_data(self.read_async(selection).await?)
    }

    /// Writes the bytes of elements, in C order over the selection, native byte order. Chunks that are covered in part are read first.
    ///
    /// Every chunk (shard, for a sharded array) is stored by one atomic call. Two writers of one chunk at the same time: the last one wins, whole.
    ///
    /// The array may have grown since this handle was opened. So before a write that covers the part inside its shape of a chunk that the shape cuts, the stored metadata are
    /// looked at once. If they have another shape, such chunks are read first, too, and keep what they hold outside of the shape of the handle; else that becomes the fill value.
    ///
    /// # Errors
    /// [`ArrayError::Parameter`] when `data` is not exactly as long as the selection; the first chunk or request that fails. Chunks written before stay written.
    pub fn write(&self, selection: &Selection, data: &[u8]) -> Result<(), ArrayError> {
        self.check_fixed()?;
        let plan = self.internal_plan(selection)?;
        check_len(plan.output_layout()?.span()?.len(), data.len())?;
        self.write_plan(plan, Data::Fixed(data), || OwnedData::Fixed(bytes::Bytes::copy_from_slice(data)))
    }

    /// As [`Array::write`], of data that the call owns. Dropping the future ends the write: chunks that nobody has begun stay as they are.
    ///
    /// # Errors
    /// As [`Array::write`].
    pub async fn write_async(&self, selection: &Selection, data: impl Into<bytes::Bytes>) -> Result<(), ArrayError> {
        self.check_fixed()?;
        let plan = self.internal_plan(selection)?;
        let data = data.into();
        check_len(plan.output_layout()?.span()?.len(), data.len())?;
        self.write_owned(plan, OwnedData::Fixed(data)).await
    }

    /// The plan of a write, told whether others may have changed the shape: asked of the store where that matters.
    pub(crate) async fn look_outside(&self, plan: Plan) -> Result<Plan, ArrayError> {
        if plan.outgrown.is_some() {
            return Ok(plan);
        }
        let outgrown = plan.sets_outside() && !node::has_shape(&self.storage, &self.path, self.version(), &plan.shape).await?;
        Ok(Plan { outgrown: Some(outgrown), ..plan })
    }

    pub(crate) fn write_plan(&self, plan: Plan, data: Data<'_>, owned: impl FnOnce() -> OwnedData) -> Result<(), ArrayError> {
        match &self.storage.0 {
            AnyStore::Blocking(_) => {
                let plan = block_on(self.look_outside(plan))?;
                write_blocking(&plan, &self.storage, data, self.empty(), &self.options.pool)
            }
            // Asked from this thread, which is the one that may be inside of a runtime.
            AnyStore::Async(_) => block_on(self.write_owned(plan, owned())),
        }
    }

    pub(crate) async fn write_owned(&self, plan: Plan, data: OwnedData) -> Result<(), ArrayError> {
        let plan = self.look_outside(plan).await?;
        write_async(Arc::new(plan), self.storage.clone(), data, self.empty(), self.options.pool.clone(), self.gate()).await
    }

    /// Writes elements of variable length, in C order over the selection.
    ///
    /// # Errors
    /// As [`Array::write`].
    pub fn write_variable(&self, selection: &Selection, elements: &VariableData) -> Result<(), ArrayError> {
        let plan = self.variable_plan(selection, elements.len())?;
        self.write_plan(plan, Data::Variable(elements), || OwnedData::Variable(Arc::new(elements.clone())))
    }

    /// As [`Array::write_variable`].
    ///
    /// # Errors
    /// As [`Array::write`].
    pub async fn write_variable_async(&self, selection: &Selection, elements: VariableData) -> Result<(), ArrayError> {
        let plan = self.variable_plan(selection, elements.len())?;
        self.write_owned(plan, OwnedData::Variable(Arc::new(elements))).await
    }

    fn variable_plan(&self, selection: &Selection, len: usize) -> Result<Plan, ArrayError> {
        if self.item_size().is_some() {
            return Err(ArrayError::parameter(format!("elements of {} have a fixed length", self.data_type().name())));
        }
        let plan = self.internal_plan(selection)?;
        let expected = plan.output_layout()?.len();
        if len != expected {
            return Err(ArrayError::parameter(format!("the selection has {expected} elements, and {len} were given")));
        }
        Ok(plan)
    }

    /// Writes Rust values, in C order over the selection.
    ///
    /// # Errors
    /// [`ArrayError::Parameter`] when `T` is not the array's data type; otherwise as [`Array::write`].
    pub fn write_elements<T: Element>(&self, selection: &Selection, elements: &[T]) -> Result<(), ArrayError> {
        check_type::<T>(self.data_type())?;
        T::write(self, selection, elements)
    }

    /// As [`Array::write_elements`].
    ///
    /// # Errors
    /// As [`Array::write_elements`].
    pub async fn write_elements_async<T: Element>(&self, selection: &Selection, elements: &[T]) -> Result<(), ArrayError> {
        check_type::<T>(self.data_type())?;
        match T::to_owned_data(elements) {
            Elements::Fixed(bytes) => self.write_async(selection, bytes).await,
            Elements::Variable(elements) => self.write_variable_async(selection, elements).await,
        }
    }

    /// Reads one chunk of the grid as it is stored, without decoding; `None` when it is absent.
    ///
    /// # Errors
    /// [`ArrayError::Parameter`] when there is not one coordinate for each axis; when the store fails.
    pub fn read_encoded_chunk(&self, chunk: &[u64]) -> Result<Option<bytes::Bytes>, ArrayError> {
        block_on(self.read_encoded_chunk_async(chunk))
    }

    /// As [`Array::read_encoded_chunk`].
    ///
    /// # Errors
    /// As [`Array::read_encoded_chunk`].
    pub async fn read_encoded_chunk_async(&self, chunk: &[u64]) -> Result<Option<bytes::Bytes>, ArrayError> {
        Ok(self.storage.get(&self.key_of(chunk)?, ByteRange::All).await?)
    }

    /// Stores the encoded bytes of one chunk of the grid as they are.
    ///
    /// # Errors
    /// [`ArrayError::Parameter`] when the chunk is outside the grid; when the store fails.
    pub fn write_encoded_chunk(&self, chunk: &[u64], encoded: impl Into<bytes::Bytes>) -> Result<(), ArrayError> {
        block_on(self.write_encoded_chunk_async(chunk, encoded))
    }

    /// As [`Array::write_encoded_chunk`].
    ///
    /// # Errors
    /// As [`Array::write_encoded_chunk`].
    pub async fn write_encoded_chunk_async(&self, chunk: &[u64], encoded: impl Into<bytes::Bytes>) -> Result<(), ArrayError> {
        let (key, grid) = (self.key_of(chunk)?, self.chunk_grid_shape());
        if chunk.iter().zip(&grid).any(|(at, count)| at >= count) {
            return Err(ArrayError::parameter(format!("chunk {chunk:?} is outside the grid of {grid:?} chunks")));
        }
        Ok(self.storage.set(&key, encoded.into()).await?)
    }

    /// Removes one chunk of the grid: its elements are the fill value from then on.
    ///
    /// # Errors
    /// [`ArrayError::Parameter`] when there is not one coordinate for each axis; when the store fails.
    pub fn erase_chunk(&self, chunk: &[u64]) -> Result<(), ArrayError> {
        block_on(self.erase_chunk_async(chunk))
    }

    /// As [`Array::erase_chunk`].
    ///
    /// # Errors
    /// As [`Array::erase_chunk`].
    pub async fn erase_chunk_async(&self, chunk: &[u64]) -> Result<(), ArrayError> {
        let key = self.key_of(chunk)?;
        Ok(self.storage.erase(&key).await?)
    }

    /// The size of a chunk of the grid as it is stored, in bytes; `None` when it is absent.
    ///
    /// # Errors
    /// [`ArrayError::Parameter`] when there is not one coordinate for each axis; when the store fails.
    pub fn stored_chunk_size(&self, chunk: &[u64]) -> Result<Option<u64>, ArrayError> {
        block_on(self.stored_chunk_size_async(chunk))
    }

    /// As [`Array::stored_chunk_size`].
    ///
    /// # Errors
    /// As [`Array::stored_chunk_size`].
    pub async fn stored_chunk_size_async(&self, chunk: &[u64]) -> Result<Option<u64>, ArrayError> {
        Ok(self.storage.size(&self.key_of(chunk)?).await?)
    }

    /// Bytes of all stored chunks together, and their number; found by listing.
    ///
    /// # Errors
    /// When the store fails or cannot be listed.
    pub fn stored_size(&self) -> Result<(u64, u64), ArrayError> {
        block_on(self.stored_size_async())
    }

    /// As [`Array::stored_size`].
    ///
    /// # Errors
    /// As [`Array::stored_size`].
    pub async fn stored_size_async(&self) -> Result<(u64, u64), ArrayError> {
        let prefix = node::prefix(&self.path)?;
        let (mut bytes, mut chunks) = (0u64, 0u64);
        for key in self.storage.list(&prefix).await? {
            let chunk = prefix.strip(&key).and_then(|key| self.metadata.chunk_key_encoding.decode(key, self.shape().len()));
            if chunk.is_some()
                && let Some(size) = self.storage.size(&key).await?
            {
                bytes = bytes.saturating_add(size);
                chunks += 1;
            }
        }
        Ok((bytes, chunks))
    }

    /// Takes over what was changed of the stored metadata since the array was opened, as its shape by who appends to it.
    ///
    /// # Errors
    /// As [`Array::open`]; then nothing changed here.
    pub fn refresh(&mut self) -> Result<(), ArrayError> {
        block_on(self.refresh_async())
    }

    /// As [`Array::refresh`].
    ///
    /// # Errors
    /// As [`Array::refresh`].
    pub async fn refresh_async(&mut self) -> Result<(), ArrayError> {
        *self = Self::open_async(self.store().clone(), &self.path.to_string(), &self.options).await?;
        Ok(())
    }

    /// Replaces the attributes, in the store and here, after a [`refresh`](Array::refresh).
    ///
    /// # Errors
    /// When the array is no longer there, or the store fails; then the attributes are as they were.
    pub fn set_attributes(&mut self, attributes: JsonObject) -> Result<(), ArrayError> {
        block_on(self.set_attributes_async(attributes))
    }

    /// As [`Array::set_attributes`].
    ///
    /// # Errors
    /// As [`Array::set_attributes`].
    pub async fn set_attributes_async(&mut self, attributes: JsonObject) -> Result<(), ArrayError> {
        self.update_attributes_async(|own| *own = attributes).await
    }

    /// Changes some of the attributes, in the store and here, as they are after a [`refresh`](Array::refresh).
    ///
    /// # Errors
    /// As [`Array::set_attributes`].
    pub fn update_attributes(&mut self, change: impl FnOnce(&mut JsonObject)) -> Result<(), ArrayError> {
        block_on(self.update_attributes_async(change))
    }

    /// As [`Array::update_attributes`].
    ///
    /// # Errors
    /// As [`Array::update_attributes`].
    pub async fn update_attributes_async(&mut self, change: impl FnOnce(&mut JsonObject)) -> Result<(), ArrayError> {
        self.refresh_async().await?;
        let mut stored = (*self.stored).clone();
        change(stored.attributes_mut());
        node::store(&self.storage, &self.path, &stored).await?;
        Arc::make_mut(&mut self.metadata).attributes.clone_from(stored.attributes());
        self.stored = Arc::new(stored);
        Ok(())
    }

    /// Changes the shape, in the store and here. Chunks that no longer hold any element are removed, and the elements of others that fall outside
    /// are set to the fill value: an array that grows again finds no stale elements. It begins with a [`refresh`](Array::refresh).
    ///
    /// The order is such that a reader never sees stale elements inside the shape: when shrinking, first the metadata, then the chunks; when growing, first what a shrink
    /// that was cut off may have left where the array grows, then the metadata. That is not looked for where the store cannot be listed and the array grows by many chunks. A
    /// shrink that failed is completed by another one to the same shape, if the store can be listed.
    ///
    /// # Errors
    /// When the array is no longer there, the new shape does not fit the chunk grid, or the store fails.
    pub fn resize(&mut self, shape: &[u64]) -> Result<(), ArrayError> {
        block_on(self.resize_async(shape))
    }

    /// As [`Array::resize`].
    ///
    /// # Errors
    /// As [`Array::resize`].
    pub async fn resize_async(&mut self, shape: &[u64]) -> Result<(), ArrayError> {
        self.refresh_async().await?;
        self.set_shape(shape, true).await
    }

    /// As [`Array::resize`] to a shape that is nowhere smaller, for whoever writes all elements that are new, before or after: what is stored of them stays.
    ///
    /// # Errors
    /// As [`Array::resize`]; [`ArrayError::Parameter`] when the shape is smaller along an axis.
    pub fn make_room(&mut self, shape: &[u64]) -> Result<(), ArrayError> {
        block_on(self.make_room_async(shape))
    }

    /// As [`Array::make_room`].
    ///
    /// # Errors
    /// As [`Array::make_room`].
    pub async fn make_room_async(&mut self, shape: &[u64]) -> Result<(), ArrayError> {
        self.refresh_async().await?;
        if shape.iter().zip(self.shape()).any(|(new, old)| new < old) {
            return Err(ArrayError::parameter(format!("the shape {shape:?} is smaller than {:?}", self.shape())));
        }
        self.set_shape(shape, false).await
    }

    /// Changes the shape of an array that is as it is stored; `clear`: what is stored where it grows is set to the fill value.
    async fn set_shape(&mut self, shape: &[u64], clear: bool) -> Result<(), ArrayError> {
        let old_shape = self.shape().to_vec();
        if shape.len() != old_shape.len() {
            return Err(ArrayError::parameter(format!("a shape of {} axes for an array of {}", shape.len(), old_shape.len())));
        }
        let mut stored = (*self.stored).clone();
        match &mut stored {
            StoredMetadata::ArrayV2(array) => array.shape = shape.to_vec(),
            StoredMetadata::ArrayV3(array) => array.shape = shape.to_vec(),
            StoredMetadata::GroupV2(_) | StoredMetadata::GroupV3(_) => {}
        }
        let resized = Self::from_stored(self.storage.clone(), self.path.clone(), stored, &self.options)?;
        let (old_grid, grid) = (self.chunk_grid_shape(), resized.chunk_grid_shape());
        // What stays along the axes that change in one way.
        let kept = |changes: fn(&u64, &u64) -> bool, kept: &[u64]| -> Option<Vec<u64>> {
            let changed: Vec<bool> = old_shape.iter().zip(shape).map(|(old, new)| changes(old, new)).collect();
            let kept = kept.iter().zip(&changed).map(|(&len, &changed)| if changed { len } else { u64::MAX });
            changed.contains(&true).then(|| kept.collect())
        };
        if let Some(kept) = kept(u64::lt, &old_shape).filter(|_| clear) {
            clear_outside(&resized, kept, grid.clone(), Search::Cheaply).await?;
        }
        node::store(&resized.storage, &resized.path, &resized.stored).await?;
        *self = resized;
        match kept(u64::gt, shape) {
            Some(kept) => clear_outside(self, kept, old_grid, Search::Grid).await,
            None if clear && old_shape == shape => clear_outside(self, old_shape, grid, Search::Listing).await,
            None => Ok(()),
        }
    }

    /// The same array as if it had another shape.
    pub(crate) fn with_shape(&self, shape: Vec<u64>) -> Self {
        let mut array = self.clone();
        Arc::make_mut(&mut array.metadata).shape = shape;
        array
    }

    /// Makes the array, as it is after a [`refresh`](Array::refresh), longer along `axis` and writes `data` there: the bytes of elements in C order, whose shape is the
    /// array's with another length along `axis`. Where they cannot be written, the array is made as long as before, if the store lets it.
    ///
    /// # Errors
    /// As [`Array::resize`] and [`Array::write`].
    pub fn append(&mut self, axis: usize, data: &[u8]) -> Result<(), ArrayError> {
        let elements = self.elements_in(data.len())?;
        let (before, added) = block_on(self.grow(axis, elements))?;
        let written = self.write(&added, data);
        if written.is_err() {
            block_on(self.take_back(&before));
        }
        written
    }

    /// As [`Array::append`], of data that the call owns. If the future is dropped, the array stays longer.
    ///
    /// # Errors
    /// As [`Array::append`].
    pub async fn append_async(&mut self, axis: usize, data: impl Into<bytes::Bytes>) -> Result<(), ArrayError> {
        let data = data.into();
        let elements = self.elements_in(data.len())?;
        let (before, added) = self.grow(axis, elements).await?;
        let written = self.write_async(&added, data).await;
        if written.is_err() {
            self.take_back(&before).await;
        }
        written
    }

    /// As [`Array::append`], of Rust values.
    ///
    /// # Errors
    /// [`ArrayError::Parameter`] when `T` is not the array's data type; otherwise as [`Array::append`].
    pub fn append_elements<T: Element>(&mut self, axis: usize, elements: &[T]) -> Result<(), ArrayError> {
        check_type::<T>(self.data_type())?;
        let (before, added) = block_on(self.grow(axis, elements.len() as u64))?;
        let written = self.write_elements(&added, elements);
        if written.is_err() {
            block_on(self.take_back(&before));
        }
        written
    }

    /// As [`Array::append_elements`]. If the future is dropped, the array stays longer.
    ///
    /// # Errors
    /// As [`Array::append_elements`].
    pub async fn append_elements_async<T: Element>(&mut self, axis: usize, elements: &[T]) -> Result<(), ArrayError> {
        check_type::<T>(self.data_type())?;
        let (before, added) = self.grow(axis, elements.len() as u64).await?;
        let written = self.write_elements_async(&added, elements).await;
        if written.is_err() {
            self.take_back(&before).await;
        }
        written
    }

    /// How many elements so many bytes are.
    fn elements_in(&self, bytes: usize) -> Result<u64, ArrayError> {
        self.check_fixed()?;
        match self.item_size() {
            Some(size) if size > 0 && bytes.is_multiple_of(size) => Ok((bytes / size) as u64),
            _ => Err(ArrayError::parameter(format!("{bytes} bytes are no whole number of elements"))),
        }
    }

    /// Makes the array longer by so many elements along `axis`: its shape before, and the selection that they are.
    async fn grow(&mut self, axis: usize, elements: u64) -> Result<(Vec<u64>, Selection), ArrayError> {
        let data_type = self.data_type().clone();
        self.refresh_async().await?;
        if *self.data_type() != data_type {
            return Err(ArrayError::parameter("the array was created anew, with another data type"));
        }
        let before = self.shape().to_vec();
        let (grown, added) = self.grown(axis, elements)?;
        self.set_shape(&grown, false).await?;
        Ok((before, added))
    }

    /// Makes the array as long as it was before [`Array::grow`]. Why its data were not written matters more than whether this works.
    async fn take_back(&mut self, before: &[u64]) {
        let grown = self.shape().to_vec();
        if self.refresh_async().await.is_ok() && self.shape() == grown {
            let _ = self.set_shape(before, true).await;
        }
    }

    /// The shape with so many elements more along `axis`, and the selection that they are.
    fn grown(&self, axis: usize, elements: u64) -> Result<(Vec<u64>, Selection), ArrayError> {
        let shape = self.shape().to_vec();
        let old = shape.get(axis).copied().ok_or_else(|| ArrayError::parameter(format!("axis {axis} of an array of {}", shape.len())))?;
        let others = shape.iter().enumerate().filter(|(other, _)| *other != axis);
        let slab = others.fold(1u64, |product, (_, &len)| product.saturating_mul(len));
        if slab == 0 || !elements.is_multiple_of(slab) {
            return Err(ArrayError::parameter(format!("{elements} elements are no whole number of slabs of {slab}")));
        }
        let new = old.checked_add(elements / slab).ok_or_else(|| ArrayError::parameter("the array would be too long"))?;
        let mut grown = shape;
        if let Some(axis) = grown.get_mut(axis) {
            *axis = new;
        }
        let ranges = grown.iter().enumerate().map(|(other, &len)| if other == axis { old..len } else { 0..len });
        let selection = Selection::ranges(ranges);
        Ok((grown, selection))
    }

    /// Removes the array: its metadata first, then its chunks.
    ///
    /// # Errors
    /// When the store fails; what was removed before stays removed.
    pub fn erase(self) -> Result<(), ArrayError> {
        block_on(self.erase_async())
    }

    /// As [`Array::erase`].
    ///
    /// # Errors
    /// As [`Array::erase`].
    pub async fn erase_async(self) -> Result<(), ArrayError> {
        crate::create::erase(&self.storage, &self.path).await
    }

    /// What a read does, in words: shards, segments of the codec chain, where each runs, and where bytes cross a bus.
    pub fn explain(&self) -> String {
        crate::explain::explain(self)
    }

    /// The key of a chunk that the caller named.
    fn key_of(&self, chunk: &[u64]) -> Result<StoreKey, ArrayError> {
        let rank = self.shape().len();
        if chunk.len() != rank {
            return Err(ArrayError::parameter(format!("chunk {chunk:?} of an array of {rank} axes")));
        }
        self.keys.key(chunk)
    }

    pub(crate) fn empty(&self) -> Empty {
        // Where version 2 has no fill value, nothing says what an absent chunk holds: each reader fills in its own.
        let undefined = matches!(&*self.stored, StoredMetadata::ArrayV2(array) if array.fill_value.is_null());
        Empty { keep: self.options.write_empty_chunks || undefined }
    }

    pub(crate) fn check_fixed(&self) -> Result<(), ArrayError> {
        match self.item_size() {
            Some(_) => Ok(()),
            None => Err(ArrayError::parameter(format!(
                "elements of {} have no fixed length; use the calls for variable length",
                self.data_type().name()
            ))),
        }
    }
}

pub(crate) fn node_path(path: &str) -> Result<NodePath, ArrayError> {
    // The rules of version 2 are the looser ones, and which version a node has is known only once it is found.
    NodePath::new_v2(path).map_err(|source| ArrayError::parameter(source.to_string()))
}

fn check_len(expected: usize, found: usize) -> Result<(), ArrayError> {
    if expected == found {
        return Ok(());
    }
    Err(ArrayError::parameter(format!("the selection has {expected} bytes, and {found} were given")))
}

//! From a store to memory of a batch: what threads of the pool do.

use std::any::Any;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use rayon::prelude::*;
use zarr_buffer_api::{AxisTiles, Buffer, Layout, Queue, Region, TileWriter};
use zarr_codec_api::{CodecError, Segment};
use zarr_store_api::{AnyStore, ByteRange, StoreError, StoreErrorKind, ValueReader};

use super::DeviceTarget;
use super::batch::{ALIGN, Load, Loaded, Route, element_bytes};
use super::observe::Stage;
use super::scatter::boxes;
use crate::chunks::BoundChunk;
use crate::gate::Gate;
use crate::geometry::Leaf;
use crate::plan::{ChunkNode, ChunkPart, Gather, Plan, Step, Steps, Then, bytes_of, covers_all, gather, index_of, place, tile_lens};
use crate::pool::with_scratch;
use crate::read::{fetch_gated, short, vanished};
use crate::storage::block_on;
use crate::{Array, ArrayError};

/// What all threads of a read share.
#[derive(Debug)]
pub(super) struct Reader {
    pub(super) array: Array,
    pub(super) plan: Arc<Plan>,
    pub(super) output: Buffer,
    pub(super) layout: Layout,
    pub(super) target: DeviceTarget,
    /// The store reads straight into memory of the device.
    direct: bool,
    tiles: Vec<AxisTiles>,
    /// Nobody wants the rest any more.
    pub(super) failed: AtomicBool,
}

/// Loads that share memory.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) loads: Vec<Load>,
    /// Bytes of memory that it takes.
    pub(super) room: usize,
    /// Whether several threads share the work. Where there are many batches, one thread does each: who waits for others of its batch would be handed a whole
    /// batch meanwhile.
    pub(super) shared: bool,
    /// For stores that only an async task can ask: what they answered, for each load.
    pub(super) fetched: Option<Vec<Fetched>>,
}

/// The bytes of a load's ranges, if there is such a value.
pub(super) type Fetched = Option<Vec<Bytes>>;

/// Memory of a batch.
#[derive(Debug, Clone)]
pub(super) enum Memory {
    /// Of the host, or of a unified device.
    Staging(Buffer),
    /// Of the device, that the store reads to; the queue takes its copies.
    Landing(Buffer, Arc<dyn Queue>),
}

/// A chunk in memory of a batch.
#[derive(Debug)]
pub(super) struct Chunk {
    pub(super) node: ChunkNode,
    pub(super) bound: Arc<BoundChunk>,
    /// Where its bytes lie.
    pub(super) bytes: Range<usize>,
    pub(super) work: Work,
}

/// What came of a batch.
#[derive(Debug, Default)]
pub(super) struct Filled {
    pub(super) chunks: Vec<Chunk>,
    /// Loads that found no room any more.
    pub(super) rest: Vec<Load>,
    /// Bytes that were reserved for the others, and bytes that there were.
    pub(super) reserved: usize,
    pub(super) used: usize,
}

/// What is to be done with a chunk on the device.
#[derive(Debug)]
pub(super) enum Work {
    /// It is absent.
    Fill,
    /// Its bytes are elements: boxes in the memory of the batch, and in the output.
    Place(Vec<(Layout, Layout)>),
    /// It is to be decoded: to this place, if it is wanted whole and the device can.
    Decode(Option<Region>),
}

/// Where the bytes of a load come from.
enum Source<'a> {
    /// A blocking store, asked on the spot.
    Store,
    /// One value of it.
    Value(Box<dyn ValueReader + 'a>),
    Fetched(Fetched),
}

/// Loads that one thread does, one behind the other without gaps.
struct Share<'a> {
    loads: &'a [Load],
    sources: Vec<Source<'a>>,
    start: usize,
    memory: &'a mut [u8],
}

/// What to fetch for a chunk of the grid; shard indexes are fetched here, behind the gate of an async store.
pub(super) async fn expand(
    array: &Array,
    plan: &Plan,
    chunk: usize,
    gate: Option<&Arc<Gate>>,
) -> Result<(Vec<Load>, Vec<ChunkNode>), ArrayError> {
    let (mut loads, mut absent) = (Vec::new(), Vec::new());
    // Of a shard in a blocking store; its inner chunks are read later: see `Reader::same_value`.
    let mut value = None;
    let start = match &array.storage.0 {
        AnyStore::Blocking(store) => plan.start(chunk, |key| Ok(value.insert(store.reader(key)?).version()))?,
        AnyStore::Async(_) => plan.start_kept(chunk)?,
    };
    let mut next: VecDeque<Steps> = VecDeque::from([start]);
    while let Some(steps) = next.pop_front() {
        absent.extend(steps.absent);
        for mut fetch in steps.fetches {
            if let Then::Chunks(_) = fetch.then {
                loads.push(Load::new(plan, fetch)?);
                continue;
            }
            let index = match (&value, gate) {
                (Some(value), _) => value.get_ranges(&fetch.ranges)?,
                (None, Some(gate)) => fetch_gated(plan, &array.storage, gate, &mut fetch).await?.0,
                (None, None) => return Err(ArrayError::parameter("an async store is asked behind a gate")),
            };
            if let Then::Index(node) = &fetch.then {
                next.push_back(with_scratch(|scratch| plan.supply_index(node, index_of(index.as_deref()), scratch))?);
            }
        }
    }
    Ok((loads, absent))
}

impl Reader {
    pub(super) fn new(array: &Array, plan: &Arc<Plan>, output: &Buffer, target: &DeviceTarget) -> Result<Self, ArrayError> {
        // Staging memory of a unified device is its own memory: filling that is as direct.
        let direct = match &array.storage.0 {
            AnyStore::Blocking(store) => !target.device.is_unified() && store.reads_to_device(target.device.id()),
            AnyStore::Async(_) => false,
        };
        Ok(Self {
            array: array.clone(),
            plan: Arc::clone(plan),
            output: output.clone(),
            layout: plan.output_layout()?,
            target: target.clone(),
            direct,
            tiles: plan.tiles(),
            failed: AtomicBool::new(false),
        })
    }

    /// Whether the store puts the bytes of a load where the device decodes them.
    pub(super) fn goes_direct(&self, load: &Load) -> bool {
        self.direct && matches!(load.route, Route::Stored | Route::Verbatim)
    }

    pub(super) fn observe(&self, stage: Stage, bytes: u64, queue: Option<&Arc<dyn Queue>>) -> Option<Box<dyn Any>> {
        self.target.observer.as_ref().map(|observer| observer.begin(stage, bytes, queue))
    }

    /// What to fetch for some chunks of the grid; shard indexes are fetched here, by a blocking store.
    pub(super) fn expand(&self, chunks: Range<usize>) -> Result<(Vec<Load>, Vec<ChunkNode>), ArrayError> {
        let _stage = self.observe(Stage::Plan, 0, None);
        let (mut loads, mut absent) = (Vec::with_capacity(chunks.len()), Vec::new());
        for chunk in chunks {
            let (more, without) = block_on(expand(&self.array, &self.plan, chunk, None))?;
            loads.extend(more);
            absent.extend(without);
        }
        Ok((loads, absent))
    }

    /// Fetches loads into the memory of the batch.
    pub(super) fn fetch(&self, batch: Batch, memory: &Memory) -> Result<Filled, ArrayError> {
        let filled = match memory {
            Memory::Staging(staging) if batch.shared => self.fetch_shared(batch, staging),
            Memory::Staging(staging) => self.fetch_row(batch, staging),
            Memory::Landing(landing, queue) => self.fetch_direct(&batch.loads, landing, queue),
        };
        if filled.is_err() {
            self.failed.store(true, Ordering::Relaxed);
        }
        filled
    }

    /// On this thread, one behind the other, as many as there is room for.
    fn fetch_row(&self, mut batch: Batch, staging: &Buffer) -> Result<Filled, ArrayError> {
        let mut memory = staging.host_write()?;
        let share = Share { loads: &batch.loads, sources: sources(&batch.loads, &mut None)?, start: 0, memory: &mut memory };
        let (done, filled) = self.fetch_share(share)?;
        Ok(Filled { rest: batch.loads.split_off(done), ..filled })
    }

    /// Side by side on the threads of the pool, each load where room is reserved for it.
    fn fetch_shared(&self, batch: Batch, staging: &Buffer) -> Result<Filled, ArrayError> {
        let mut memory = staging.host_write()?;
        let mut rest: &mut [u8] = &mut memory;
        let mut fetched = batch.fetched.map(Vec::into_iter);
        let (mut shares, mut start) = (Vec::new(), 0);
        for loads in batch.loads.chunks(self.loads_of_a_share()) {
            let room = loads.iter().map(|load| load.room).sum();
            let (memory, after) = rest.split_at_mut_checked(room).ok_or_else(|| ArrayError::parameter("staging memory is too small"))?;
            shares.push(Share { loads, sources: sources(loads, &mut fetched)?, start, memory });
            start += room;
            rest = after;
        }
        let fetch = |share: Share<'_>| {
            let wanted = share.loads.len();
            let (done, filled) = self.fetch_share(share)?;
            if done == wanted { Ok(filled) } else { Err(ArrayError::parameter("staging memory is too small")) }
        };
        let filled: Vec<Filled> = self.array.options().pool.run(|| shares.into_par_iter().map(fetch).collect::<Result<_, _>>())?;
        Ok(Filled { chunks: filled.into_iter().flat_map(|filled| filled.chunks).collect(), ..Filled::default() })
    }

    /// At most so many loads in a row are for one thread: a small read keeps all of them busy, too.
    fn loads_of_a_share(&self) -> usize {
        self.plan.chunk_count().div_ceil(4 * self.array.options().pool.threads()).max(1)
    }

    /// Gives how many loads were done, too.
    fn fetch_share(&self, share: Share<'_>) -> Result<(usize, Filled), ArrayError> {
        let Share { loads, sources, start, memory } = share;
        let _stage = self.observe(Stage::Fetch, loads.iter().map(|load| load.room as u64).sum(), None);
        let mut filled = Filled { chunks: Vec::with_capacity(loads.len()), ..Filled::default() };
        let mut done = 0;
        for (load, source) in loads.iter().zip(sources) {
            let Some(place) = memory.get_mut(filled.used..).and_then(|rest| rest.get_mut(..load.room)) else { break };
            if self.failed.load(Ordering::Relaxed) {
                return Ok((loads.len(), filled));
            }
            let loaded = self.load_one(load, source, start + filled.used, place)?;
            let end = loaded.iter().filter_map(|loaded| loaded.bytes.as_ref()).map(|bytes| bytes.end - start).max();
            // What follows comes close behind, so that one copy takes all of it.
            filled.used = end.unwrap_or(filled.used).next_multiple_of(ALIGN);
            filled.reserved += load.room;
            self.prepare(load, loaded, &mut filled.chunks)?;
            done += 1;
        }
        Ok((done, filled))
    }

    /// Has the store read every load to its place in memory of the device.
    fn fetch_direct(&self, loads: &[Load], landing: &Buffer, queue: &Arc<dyn Queue>) -> Result<Filled, ArrayError> {
        let AnyStore::Blocking(store) = &self.array.storage.0 else {
            return Err(ArrayError::parameter("only a blocking store reads straight to a device"));
        };
        let starts = loads.iter().scan(0, |next, load| Some(std::mem::replace(next, *next + load.room)));
        let places: Vec<(&Load, usize)> = loads.iter().zip(starts).collect();
        let load_one = |(load, start): (&Load, usize)| {
            let _stage = self.observe(Stage::Fetch, load.room as u64, Some(queue));
            let loaded = self.load_stored(load, start, |_, range, place| {
                let into = landing.slice(start + place.start..start + place.end);
                let into = into.map_err(|error| StoreError::from_buffer(error, "no room for the bytes on the device"))?;
                store.get_into_buffer(&load.fetch.key, range, &into, &self.target.device, queue)
            });
            // There is no reader for this; the value that is there now was there before.
            self.same_value(load)?;
            let loaded = loaded?;
            let mut chunks = Vec::with_capacity(loaded.len());
            self.prepare(load, loaded, &mut chunks)?;
            Ok(chunks)
        };
        let chunks: Vec<Vec<Chunk>> =
            self.array.options().pool.run(|| places.into_par_iter().map(load_one).collect::<Result<_, ArrayError>>())?;
        Ok(Filled { chunks: chunks.into_iter().flatten().collect(), ..Filled::default() })
    }

    /// The value of a blocking store whose index said where the bytes of a load are, and not another one that took its place since; `None` where it
    /// does not matter, or nobody can tell.
    fn same_value(&self, load: &Load) -> Result<Option<Box<dyn ValueReader + '_>>, ArrayError> {
        let (AnyStore::Blocking(store), Some(version)) = (&self.array.storage.0, &load.fetch.version) else { return Ok(None) };
        let key = &load.fetch.key;
        let value = store.reader(key)?;
        if value.version().as_ref() == Some(version) {
            return Ok(Some(value));
        }
        Err(StoreError::new(StoreErrorKind::Replaced, "the shard was replaced while it was read").with_key(key).into())
    }

    /// What the device has to do with the chunks of a load.
    fn prepare(&self, load: &Load, loaded: Vec<Loaded>, chunks: &mut Vec<Chunk>) -> Result<(), ArrayError> {
        for Loaded { node, bytes, skipped } in loaded {
            let bound = self.plan.bound(&node)?;
            let (bytes, work) = match bytes {
                None => (0..0, Work::Fill),
                Some(bytes) => {
                    let work = match load.route {
                        Route::Elements => Work::Place(self.boxes_of_elements(&node, &bound, bytes.start)?),
                        Route::Verbatim => Work::Place(self.boxes_of_chunk(&node, &bound.layout, bytes.start, skipped)?),
                        Route::Stored | Route::HalfDecoded => Work::Decode(self.whole(&node, &bound)?),
                    };
                    (bytes, work)
                }
            };
            chunks.push(Chunk { node, bound: bound.into_owned(), bytes, work });
        }
        Ok(())
    }

    /// From elements that were decoded, packed, to byte `start`.
    fn boxes_of_elements(&self, node: &ChunkNode, bound: &BoundChunk, mut start: usize) -> Result<Vec<(Layout, Layout)>, ArrayError> {
        let mut found = Vec::new();
        for leaf in self.plan.leaves(node) {
            let lens = tile_lens(&leaf);
            let packed = Layout::contiguous(&lens, self.layout.item_size)?;
            let from = Gather { offset: start, steps: packed.strides.iter().map(|&stride| Step::Stride(stride)).collect() };
            found.extend(boxes(&lens, &from, &place(&leaf, &self.tiles, &self.layout), self.layout.item_size));
            start += element_bytes(&leaf, bound);
        }
        Ok(found)
    }

    /// From a decoded chunk, of which what follows byte `skipped` lies at byte `start`.
    pub(super) fn boxes_of_chunk(
        &self,
        node: &ChunkNode,
        layout: &Layout,
        start: usize,
        skipped: usize,
    ) -> Result<Vec<(Layout, Layout)>, ArrayError> {
        let mut found = Vec::new();
        for leaf in self.plan.leaves(node) {
            let mut from = gather(&leaf, layout);
            from.offset = (from.offset + start).checked_sub(skipped).ok_or_else(|| short(&self.plan, node))?;
            found.extend(boxes(&tile_lens(&leaf), &from, &place(&leaf, &self.tiles, &self.layout), self.layout.item_size));
        }
        Ok(found)
    }

    /// The places of a chunk that is not there.
    pub(super) fn boxes_of_absent(&self, node: &ChunkNode) -> Vec<Layout> {
        let mut found = Vec::new();
        for leaf in self.plan.leaves(node) {
            let to = place(&leaf, &self.tiles, &self.layout);
            let nowhere = Gather { offset: 0, steps: to.steps.iter().map(|_| Step::Stride(0)).collect() };
            found.extend(boxes(&tile_lens(&leaf), &nowhere, &to, self.layout.item_size).into_iter().map(|(_, to)| to));
        }
        found
    }

    /// The place of a chunk that is wanted whole, if the device can decode to it.
    fn whole(&self, node: &ChunkNode, bound: &BoundChunk) -> Result<Option<Region>, ArrayError> {
        let leaves = self.plan.leaves(node);
        let [leaf] = leaves.as_slice() else { return Ok(None) };
        self.in_place(leaf, bound)
    }

    fn in_place(&self, leaf: &Leaf<'_>, bound: &BoundChunk) -> Result<Option<Region>, ArrayError> {
        if !covers_all(leaf) {
            return Ok(None);
        }
        let to = place(leaf, &self.tiles, &self.layout);
        let mut strides = Vec::with_capacity(to.steps.len());
        for step in &to.steps {
            let Step::Stride(stride) = step else { return Ok(None) };
            strides.push(*stride);
        }
        // The chain has the axes as they are stored: a transpose is their order here.
        let (lens, order) = (tile_lens(leaf), &self.plan.chunks.order);
        let (shape, strides) = order.iter().filter_map(|&axis| Some((lens.get(axis).copied()?, strides.get(axis).copied()?))).unzip();
        let layout = Layout { offset: to.offset, shape, strides, item_size: self.layout.item_size };
        let scatters =
            matches!(bound.chain.segments().last().map(|bound| &bound.segment), Some(Segment::Device(segment)) if segment.scatters());
        if !scatters && !layout.is_contiguous() {
            return Ok(None);
        }
        Ok(Some(Region::new(self.output.clone(), layout)?))
    }

    fn load_one<'a>(&'a self, load: &Load, mut source: Source<'a>, start: usize, place: &mut [u8]) -> Result<Vec<Loaded>, ArrayError> {
        if let (Source::Store, Some(value)) = (&source, self.same_value(load)?) {
            source = Source::Value(value);
        }
        match load.route {
            Route::Stored | Route::Verbatim => self.load_stored(load, start, |index, range, at| {
                self.read_range(load, &source, index, range, place.get_mut(at).unwrap_or_default())
            }),
            Route::HalfDecoded | Route::Elements => self.load_decoded(load, source, start, place),
        }
    }

    /// Loads bytes as they are stored. `read` reads the range of an index to a place among the bytes reserved for the load, and says how many there are.
    fn load_stored(
        &self,
        load: &Load,
        start: usize,
        mut read: impl FnMut(usize, ByteRange, Range<usize>) -> Result<Option<usize>, StoreError>,
    ) -> Result<Vec<Loaded>, ArrayError> {
        let mut lens = Vec::with_capacity(load.fetch.ranges.len());
        for (index, (range, &at)) in load.fetch.ranges.iter().zip(&load.places).enumerate() {
            let end = load.places.get(index + 1).copied().unwrap_or(load.room);
            match read(index, *range, at..end) {
                Ok(len) => lens.push(len),
                // One with a source is about the memory itself, not about its length.
                Err(error) if error.kind() == StoreErrorKind::Parameter && error.get_ref().is_none() => {
                    let node = load.parts().first().map(|part| part.node.clone());
                    let Some(node) = node else { return Err(error.into()) };
                    let message = "stored chunk is larger than any encoder makes it";
                    return Err(self.plan.error(&node, CodecError::format("chunk", message)));
                }
                Err(error) => return Err(error.into()),
            }
        }
        load.parts()
            .iter()
            .map(|part| {
                let at = load.places.get(part.range).copied().unwrap_or(0);
                let bytes = match (lens.get(part.range).copied().flatten(), &part.within) {
                    // A range of a value that ends inside of it.
                    (Some(len), None)
                        if part.partial && load.fetch.ranges.get(part.range).and_then(ByteRange::len_hint) != Some(len as u64) =>
                    {
                        let message = "the stored chunk ends before an element that is wanted";
                        return Err(self.plan.error(&part.node, CodecError::format("bytes", message)));
                    }
                    (Some(len), None) => Some(0..len),
                    (Some(len), Some(within)) if within.end <= len => Some(within.clone()),
                    (Some(_), Some(_)) => return Err(short(&self.plan, &part.node)),
                    (None, Some(_)) => return Err(vanished(&self.plan, std::slice::from_ref(part))),
                    (None, None) => None,
                };
                if let (Route::Verbatim, Some(bytes), false) = (load.route, &bytes, part.partial) {
                    let expected = self.plan.bound(&part.node)?.byte_len;
                    if bytes.len() != expected {
                        return Err(self.plan.error(&part.node, CodecError::size("bytes", expected, bytes.len())));
                    }
                }
                let bytes = bytes.map(|bytes| start + at + bytes.start..start + at + bytes.end);
                Ok(Loaded { node: part.node.clone(), bytes, skipped: part.skipped })
            })
            .collect()
    }

    fn read_range(
        &self,
        load: &Load,
        source: &Source<'_>,
        index: usize,
        range: ByteRange,
        into: &mut [u8],
    ) -> Result<Option<usize>, StoreError> {
        match (source, &self.array.storage.0) {
            (Source::Value(value), _) => value.get_into(range, into),
            (Source::Store, AnyStore::Blocking(store)) => store.get_into(&load.fetch.key, range, into),
            (Source::Fetched(Some(ranges)), _) => {
                let bytes =
                    ranges.get(index).ok_or_else(|| StoreError::new(StoreErrorKind::Io, "an answer without a range that was asked for"))?;
                let to = into.get_mut(..bytes.len()).ok_or_else(|| StoreError::new(StoreErrorKind::Parameter, "more bytes than room"))?;
                to.copy_from_slice(bytes);
                Ok(Some(bytes.len()))
            }
            _ => Ok(None),
        }
    }

    fn load_decoded(&self, load: &Load, source: Source<'_>, start: usize, place: &mut [u8]) -> Result<Vec<Loaded>, ArrayError> {
        let ranges = match source {
            Source::Fetched(ranges) => ranges,
            Source::Value(value) => value.get_ranges(&load.fetch.ranges)?,
            Source::Store => block_on(self.array.storage.get_ranges(&load.fetch.key, &load.fetch.ranges))?,
        };
        let parts = load.parts();
        let each = place.len() / parts.len().max(1);
        let mut at = 0;
        let mut loaded = Vec::with_capacity(parts.len());
        for part in parts {
            let node = part.node.clone();
            let Some(ranges) = &ranges else {
                if part.within.is_some() {
                    return Err(vanished(&self.plan, std::slice::from_ref(part)));
                }
                loaded.push(Loaded { node, bytes: None, skipped: 0 });
                continue;
            };
            let encoded = bytes_of(part, ranges).ok_or_else(|| short(&self.plan, &node))?;
            let bound = self.plan.bound(&node)?;
            let len = if load.route == Route::Elements {
                let len = self.plan.leaves(&node).iter().map(|leaf| element_bytes(leaf, &bound)).sum();
                let into = place.get_mut(at..at + len).unwrap_or_default();
                self.decode_elements(part, encoded, into)?;
                loaded.push(Loaded { node, bytes: Some(start + at..start + at + len), skipped: 0 });
                len
            } else {
                let mut bytes = Vec::new();
                let decoded = with_scratch(|scratch| bound.chain.decode_to_device_input(encoded, &mut bytes, scratch));
                decoded.map_err(|error| self.plan.error(&node, error))?;
                let into = place.get_mut(at..at + bytes.len()).filter(|_| bytes.len() <= each).ok_or_else(|| short(&self.plan, &node))?;
                into.copy_from_slice(&bytes);
                loaded.push(Loaded { node, bytes: Some(start + at..start + at + bytes.len()), skipped: 0 });
                each
            };
            at += len;
        }
        Ok(loaded)
    }

    /// Decodes what is wanted of a chunk, packed in C order.
    fn decode_elements(&self, part: &ChunkPart, encoded: &[u8], into: &mut [u8]) -> Result<(), ArrayError> {
        let bound = self.plan.bound(&part.node)?;
        let mut rest = into;
        for leaf in self.plan.leaves(&part.node) {
            let (into, behind) = rest.split_at_mut_checked(element_bytes(&leaf, &bound)).ok_or_else(|| short(&self.plan, &part.node))?;
            rest = behind;
            let layout = Layout::contiguous(&tile_lens(&leaf), self.layout.item_size)?;
            let tiles = layout.shape.iter().map(|&len| AxisTiles::Ranges(std::iter::once(0..len).collect())).collect();
            let rank = layout.shape.len();
            let writer = TileWriter::new(into, layout, tiles)?;
            let mut tile = writer.claim(&vec![0; rank])?;
            with_scratch(|scratch| self.plan.decode(part, encoded, &leaf, &mut tile, scratch))?;
        }
        Ok(())
    }
}

/// The next sources, one for each load.
fn sources<'a>(loads: &[Load], fetched: &mut Option<std::vec::IntoIter<Fetched>>) -> Result<Vec<Source<'a>>, ArrayError> {
    let next = |_| match fetched {
        None => Ok(Source::Store),
        Some(fetched) => fetched.next().map(Source::Fetched).ok_or_else(|| ArrayError::parameter("a load without an answer")),
    };
    loads.iter().map(next).collect()
}

//! Fetch into staging and upload, or fetch to the device; decode, scatter: batch by batch, in order on one queue.

use std::collections::VecDeque;
use std::error::Error;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use rayon::prelude::*;
use zarr_buffer_api::{Buffer, Layout, Region};
use zarr_codec_api::{Chain, DeviceContext, DeviceSlot, Segment, Ticket};
use zarr_store_api::{AnyStore, ByteRange, StoreError, StoreErrorKind};

use super::DeviceTarget;
use super::batch::{ALIGN, Load, Loaded, Route, element_bytes};
use crate::chunks::BoundChunk;
use crate::geometry::Leaf;
use crate::plan::{ChunkNode, ChunkPart, Gather, Plan, Step, Steps, Then, covers_all, gather, place, tile_lens};
use crate::pool::with_scratch;
use crate::read::{short, vanished};
use crate::storage::block_on;
use crate::{Array, ArrayError};

/// Buffers in a ring of memory for batches.
const RING: usize = 3;
/// Chunks whose first step is taken together: their shard indexes are fetched side by side.
const AHEAD: usize = 64;

/// Decoded bytes of the chunks that a device decodes together: enough that all of it has something to do.
const GATHER: u64 = 512 << 20;

/// Who does the host's part of a pipeline, and its waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Host {
    /// The calling thread, which may block.
    Caller,
    /// The pool: the caller is an async task.
    Pool,
}

pub(super) struct Pipeline {
    array: Array,
    plan: Arc<Plan>,
    output: Buffer,
    layout: Layout,
    target: DeviceTarget,
    /// The store reads straight into memory of the device.
    direct: bool,
    /// Staging memory of the last batches.
    staging: VecDeque<Buffer>,
    /// Memory of the device that the store read the last batches to.
    landing: VecDeque<Buffer>,
    /// Chunks that are on the device, to be decoded together, their decoded bytes, and where those go then.
    gathered: Vec<(Arc<BoundChunk>, ChunkNode, DeviceSlot)>,
    gathered_len: u64,
    gathered_scatters: Vec<Scatter>,
    tickets: Vec<(Ticket, Vec<ChunkNode>)>,
}

/// The bytes of a load that were fetched before, for stores that only an async task can ask.
type Fetched = Option<Vec<Bytes>>;

/// Where the bytes of a load come from.
enum Source {
    /// A blocking store, asked on the spot.
    Store,
    Fetched(Fetched),
}

/// One box of elements that goes from a decoded chunk to the output.
struct Scatter {
    source: Buffer,
    from: Layout,
    to: Layout,
}

impl Pipeline {
    pub(super) fn new(array: &Array, plan: &Arc<Plan>, output: &Buffer, target: &DeviceTarget) -> Result<Self, ArrayError> {
        let layout = plan.output_layout()?;
        // Staging memory of a unified device is its own memory: filling that is as direct.
        let direct = match &array.storage.0 {
            AnyStore::Blocking(store) => !target.device.is_unified() && store.reads_to_device(target.device.id()),
            AnyStore::Async(_) => false,
        };
        Ok(Self {
            array: array.clone(),
            plan: Arc::clone(plan),
            output: output.clone(),
            layout,
            target: target.clone(),
            direct,
            staging: VecDeque::new(),
            landing: VecDeque::new(),
            gathered: Vec::new(),
            gathered_len: 0,
            gathered_scatters: Vec::new(),
            tickets: Vec::new(),
        })
    }

    pub(super) async fn run(mut self, host: Host) -> Result<Vec<(Ticket, Vec<ChunkNode>)>, ArrayError> {
        let slot = (self.target.staging / RING).max(ALIGN);
        let (mut batch, mut room) = (Vec::new(), 0usize);
        let count = self.plan.chunk_count();
        for first in (0..count).step_by(AHEAD) {
            let (loads, absent) = self.expand(first..count.min(first + AHEAD)).await?;
            for node in absent {
                self.fill(&node)?;
            }
            for load in loads {
                let other_way = batch.first().is_some_and(|first| self.goes_direct(first) != self.goes_direct(&load));
                if !batch.is_empty() && (room + load.room > slot || other_way) {
                    self = self.flush_batch(std::mem::take(&mut batch), room, host).await?;
                    room = 0;
                }
                room += load.room;
                batch.push(load);
            }
        }
        if !batch.is_empty() {
            self = self.flush_batch(batch, room, host).await?;
        }
        self.decode_gathered()?;
        Ok(self.tickets)
    }

    /// What to fetch for some chunks of the grid; shard indexes are fetched here, side by side.
    async fn expand(&self, chunks: Range<usize>) -> Result<(Vec<Load>, Vec<ChunkNode>), ArrayError> {
        let expanded: Vec<(Vec<Load>, Vec<ChunkNode>)> = match &self.array.storage.0 {
            AnyStore::Blocking(_) => self
                .array
                .options()
                .pool
                .run(|| chunks.into_par_iter().map(|chunk| block_on(self.expand_one(chunk))).collect::<Result<_, _>>())?,
            AnyStore::Async(_) => {
                let expanded = stream::iter(chunks).map(|chunk| self.expand_one(chunk));
                expanded.buffered(self.array.options().concurrency).try_collect().await?
            }
        };
        let (loads, absent): (Vec<_>, Vec<_>) = expanded.into_iter().unzip();
        Ok((loads.into_iter().flatten().collect(), absent.into_iter().flatten().collect()))
    }

    async fn expand_one(&self, chunk: usize) -> Result<(Vec<Load>, Vec<ChunkNode>), ArrayError> {
        let (mut loads, mut absent) = (Vec::new(), Vec::new());
        let mut next: VecDeque<Steps> = VecDeque::from([self.plan.start(chunk)?]);
        while let Some(steps) = next.pop_front() {
            absent.extend(steps.absent);
            for fetch in steps.fetches {
                match &fetch.then {
                    Then::Index(node) => {
                        let range = fetch.ranges.first().copied().unwrap_or(ByteRange::All);
                        let index = self.array.storage.get(&fetch.key, range).await?;
                        next.push_back(with_scratch(|scratch| self.plan.supply_index(node, index.as_deref(), scratch))?);
                    }
                    Then::Chunks(_) => loads.push(Load::new(&self.plan, fetch)?),
                }
            }
        }
        Ok((loads, absent))
    }

    /// Fetches a batch and enqueues its work.
    async fn flush_batch(mut self, batch: Vec<Load>, room: usize, host: Host) -> Result<Self, ArrayError> {
        let fetched: Option<Vec<Fetched>> = match &self.array.storage.0 {
            // Threads of the pool ask it themselves, straight into the memory of the batch.
            AnyStore::Blocking(_) => None,
            AnyStore::Async(_) => {
                let storage = &self.array.storage;
                let fetches = stream::iter(&batch).map(|load| storage.get_ranges(&load.fetch.key, &load.fetch.ranges));
                Some(fetches.buffered(self.array.options().concurrency).try_collect().await?)
            }
        };
        if host == Host::Caller {
            self.flush(batch, room, fetched)?;
            return Ok(self);
        }
        let pool = self.array.options().pool.clone();
        let done = pool.compute(move || self.flush(batch, room, fetched).map(|()| self)).await;
        done.unwrap_or_else(|| Err(ArrayError::parameter("the thread pool was shut down")))
    }

    /// Whether the store puts the bytes of a load where the device decodes them.
    fn goes_direct(&self, load: &Load) -> bool {
        self.direct && matches!(load.route, Route::Stored | Route::Verbatim)
    }

    fn flush(&mut self, batch: Vec<Load>, room: usize, fetched: Option<Vec<Fetched>>) -> Result<(), ArrayError> {
        let routes: Vec<Route> = batch.iter().map(|load| load.route).collect();
        let direct = batch.first().is_some_and(|first| self.goes_direct(first));
        let (device_bytes, loaded) = if direct {
            let landing = match reused(&mut self.landing, room)? {
                Some(buffer) => buffer,
                None => self.target.device.allocate(room, &*self.target.queue)?,
            };
            let loaded = self.load_direct(&batch, &landing)?;
            self.landing.push_back(landing.clone());
            (landing, loaded)
        } else {
            let staging = match reused(&mut self.staging, room)? {
                Some(buffer) => buffer,
                None => self.target.device.allocate_staging(room)?,
            };
            let loaded = self.load(&batch, fetched, &staging)?;
            let device_bytes = self.upload(&staging, &loaded)?;
            self.staging.push_back(staging);
            (device_bytes, loaded)
        };
        drop(batch);

        let mut scatters = Vec::new();
        for (route, chunks) in routes.into_iter().zip(loaded) {
            for Loaded { node, bytes, skipped } in chunks {
                let Some(bytes) = bytes else {
                    self.fill(&node)?;
                    continue;
                };
                let bound = self.plan.bound(&node)?;
                let encoded = device_bytes.slice(bytes)?;
                match route {
                    Route::Elements => self.scatter_elements(&node, &bound, &encoded, &mut scatters)?,
                    Route::Verbatim => self.scatter_chunk(&node, &bound.layout, skipped, &encoded, &mut scatters)?,
                    Route::Stored | Route::HalfDecoded => {
                        let mut behind = std::mem::take(&mut self.gathered_scatters);
                        let slot = self.slot(&node, &bound, encoded, &mut behind);
                        self.gathered_scatters = behind;
                        self.gathered_len += bound.byte_len as u64;
                        self.gathered.push((bound, node, slot?));
                    }
                }
            }
        }
        self.scatter(scatters)?;
        // Memory of a ring holds the next batch soon.
        let lasting = !direct && !self.target.device.is_unified();
        if !lasting || self.gathered_len >= GATHER.min(self.target.scratch / 4) {
            self.decode_gathered()?;
        }
        Ok(())
    }

    /// Enqueues the decoding of what is gathered, and the copies behind it.
    fn decode_gathered(&mut self) -> Result<(), ArrayError> {
        self.gathered_len = 0;
        let gathered = std::mem::take(&mut self.gathered);
        self.decode(gathered)?;
        let scatters = std::mem::take(&mut self.gathered_scatters);
        self.scatter(scatters)
    }

    fn scatter(&self, scatters: Vec<Scatter>) -> Result<(), ArrayError> {
        for scatter in scatters {
            let source = Region::new(scatter.source, scatter.from)?;
            self.target.queue.copy_region(&source, &Region::new(self.output.clone(), scatter.to)?)?;
        }
        Ok(())
    }

    /// Fetches every load into its place in staging memory, side by side on the threads of the pool.
    fn load(&self, batch: &[Load], fetched: Option<Vec<Fetched>>, staging: &Buffer) -> Result<Vec<Vec<Loaded>>, ArrayError> {
        let mut memory = staging.host_write()?;
        let mut rest: &mut [u8] = &mut memory;
        let mut places = Vec::with_capacity(batch.len());
        let mut start = 0;
        let mut fetched = fetched.map(Vec::into_iter);
        for load in batch {
            let source = match &mut fetched {
                None => Source::Store,
                Some(fetched) => Source::Fetched(fetched.next().flatten()),
            };
            let (place, after) =
                rest.split_at_mut_checked(load.room).ok_or_else(|| ArrayError::parameter("staging memory is too small"))?;
            places.push((load, source, start, place));
            start += load.room;
            rest = after;
        }
        self.array
            .options()
            .pool
            .run(|| places.into_par_iter().map(|(load, source, start, place)| self.load_one(load, source, start, place)).collect())
    }

    /// Has the store read every load to its place in memory of the device, side by side on the threads of the pool.
    fn load_direct(&self, batch: &[Load], landing: &Buffer) -> Result<Vec<Vec<Loaded>>, ArrayError> {
        let AnyStore::Blocking(store) = &self.array.storage.0 else {
            return Err(ArrayError::parameter("only a blocking store reads straight to a device"));
        };
        let (device, queue) = (&self.target.device, &self.target.queue);
        let starts = batch.iter().scan(0, |next, load| Some(std::mem::replace(next, *next + load.room)));
        let places: Vec<(&Load, usize)> = batch.iter().zip(starts).collect();
        let load_one = |(load, start): (&Load, usize)| {
            self.load_stored(load, start, |_, range, place| {
                let into = landing.slice(start + place.start..start + place.end);
                let into = into.map_err(|error| StoreError::from_buffer(error, "no room for the bytes on the device"))?;
                store.get_into_buffer(&load.fetch.key, range, &into, device, queue)
            })
        };
        self.array.options().pool.run(|| places.into_par_iter().map(load_one).collect())
    }

    fn load_one(&self, load: &Load, source: Source, start: usize, place: &mut [u8]) -> Result<Vec<Loaded>, ArrayError> {
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
                Err(error) if error.kind() == StoreErrorKind::Parameter && error.source().is_none() => {
                    let node = load.parts().first().map(|part| part.node.clone());
                    let Some(node) = node else { return Err(error.into()) };
                    let message = "stored chunk is larger than any encoder makes it";
                    return Err(self.plan.error(&node, zarr_codec_api::CodecError::format("chunk", message)));
                }
                Err(error) => return Err(error.into()),
            }
        }
        load.parts()
            .iter()
            .map(|part| {
                let at = load.places.get(part.range).copied().unwrap_or(0);
                let bytes = match (lens.get(part.range).copied().flatten(), &part.within) {
                    (Some(len), None) => Some(0..len),
                    (Some(len), Some(within)) if within.end <= len => Some(within.clone()),
                    (Some(_), Some(_)) => return Err(short(&self.plan, &part.node)),
                    (None, Some(_)) => return Err(vanished(&self.plan, std::slice::from_ref(part))),
                    (None, None) => None,
                };
                if let (Route::Verbatim, Some(bytes), false) = (load.route, &bytes, part.partial) {
                    let expected = self.plan.bound(&part.node)?.byte_len;
                    if bytes.len() != expected {
                        return Err(self.plan.error(&part.node, zarr_codec_api::CodecError::size("bytes", expected, bytes.len())));
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
        source: &Source,
        index: usize,
        range: ByteRange,
        into: &mut [u8],
    ) -> Result<Option<usize>, StoreError> {
        match (source, &self.array.storage.0) {
            (Source::Store, AnyStore::Blocking(store)) => store.get_into(&load.fetch.key, range, into),
            (Source::Fetched(Some(ranges)), _) => {
                let bytes = ranges.get(index).map_or(&[][..], |bytes| bytes);
                let to = into.get_mut(..bytes.len()).ok_or_else(|| StoreError::new(StoreErrorKind::Parameter, "more bytes than room"))?;
                to.copy_from_slice(bytes);
                Ok(Some(bytes.len()))
            }
            _ => Ok(None),
        }
    }

    fn load_decoded(&self, load: &Load, source: Source, start: usize, place: &mut [u8]) -> Result<Vec<Loaded>, ArrayError> {
        let ranges = match source {
            Source::Fetched(ranges) => ranges,
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
            let encoded = crate::plan::bytes_of(part, ranges).ok_or_else(|| short(&self.plan, &node))?;
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
        for leaf in self.plan.leaves(&part.node) {
            let layout = Layout::contiguous(&tile_lens(&leaf), self.layout.item_size)?;
            let tiles = layout.shape.iter().map(|&len| zarr_buffer_api::AxisTiles::Ranges(std::iter::once(0..len).collect())).collect();
            let rank = layout.shape.len();
            let writer = zarr_buffer_api::TileWriter::new(into, layout, tiles)?;
            let mut tile = writer.claim(&vec![0; rank])?;
            with_scratch(|scratch| self.plan.decode(part, encoded, &leaf, &mut tile, scratch))?;
        }
        Ok(())
    }

    /// Staged bytes where the device sees them: in place, or uploaded by as few copies as there are runs of bytes in use.
    fn upload(&self, staging: &Buffer, loaded: &[Vec<Loaded>]) -> Result<Buffer, ArrayError> {
        if self.target.device.is_unified() {
            return Ok(staging.clone());
        }
        let mut used: Vec<Range<usize>> = Vec::new();
        for bytes in loaded.iter().flatten().filter_map(|loaded| loaded.bytes.clone()) {
            match used.last_mut() {
                // Gaps of less than a page are cheaper to copy than to skip.
                Some(last) if bytes.start >= last.start && bytes.start <= last.end + 4096 => last.end = last.end.max(bytes.end),
                _ => used.push(bytes),
            }
        }
        let len = used.iter().map(|range| range.end).max().unwrap_or(0);
        let device = self.target.device.allocate(len, &*self.target.queue)?;
        for range in used {
            self.target.queue.copy(&staging.slice(range.clone())?, &device.slice(range)?)?;
        }
        Ok(device)
    }

    fn scatter_elements(
        &self,
        node: &ChunkNode,
        bound: &BoundChunk,
        elements: &Buffer,
        scatters: &mut Vec<Scatter>,
    ) -> Result<(), ArrayError> {
        let tiles = self.plan.tiles();
        let mut start = 0;
        for leaf in self.plan.leaves(node) {
            let lens = tile_lens(&leaf);
            let packed = Layout::contiguous(&lens, self.layout.item_size)?;
            let from = Gather { offset: 0, steps: packed.strides.iter().map(|&stride| Step::Stride(stride)).collect() };
            let len = element_bytes(&leaf, bound);
            self.boxes(&lens, &from, &place(&leaf, &tiles, &self.layout), &elements.slice(start..start + len)?, scatters);
            start += len;
        }
        Ok(())
    }

    /// Scatters from a chunk, of which `elements` starts at byte `skipped`.
    fn scatter_chunk(
        &self,
        node: &ChunkNode,
        layout: &Layout,
        skipped: usize,
        elements: &Buffer,
        scatters: &mut Vec<Scatter>,
    ) -> Result<(), ArrayError> {
        let tiles = self.plan.tiles();
        for leaf in self.plan.leaves(node) {
            let mut from = gather(&leaf, layout);
            from.offset = from.offset.checked_sub(skipped).ok_or_else(|| short(&self.plan, node))?;
            self.boxes(&tile_lens(&leaf), &from, &place(&leaf, &tiles, &self.layout), elements, scatters);
        }
        Ok(())
    }

    /// Where a chunk is decoded to: its place in the output, if it is wanted whole and the device can; else memory of its own, scattered from later.
    fn slot(&self, node: &ChunkNode, bound: &BoundChunk, encoded: Buffer, scatters: &mut Vec<Scatter>) -> Result<DeviceSlot, ArrayError> {
        let tiles = self.plan.tiles();
        let leaves = self.plan.leaves(node);
        if let [leaf] = leaves.as_slice()
            && let Some(decoded) = self.in_place(leaf, bound, &tiles)?
        {
            return Ok(DeviceSlot { encoded, decoded });
        }
        let own = self.target.device.allocate(bound.byte_len, &*self.target.queue)?;
        self.scatter_chunk(node, &bound.layout, 0, &own, scatters)?;
        Ok(DeviceSlot { encoded, decoded: Region::new(own, stored_layout(bound)?)? })
    }

    fn in_place(&self, leaf: &Leaf<'_>, bound: &BoundChunk, tiles: &[zarr_buffer_api::AxisTiles]) -> Result<Option<Region>, ArrayError> {
        if !covers_all(leaf) {
            return Ok(None);
        }
        let to = place(leaf, tiles, &self.layout);
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

    /// Boxes of even steps between two sides: lists of positions are cut into runs.
    fn boxes(&self, lens: &[usize], from: &Gather, to: &Gather, source: &Buffer, scatters: &mut Vec<Scatter>) {
        let item_size = self.layout.item_size;
        let start = |offset| Layout { offset, shape: Vec::new(), strides: Vec::new(), item_size };
        let mut boxes = vec![(start(from.offset), start(to.offset))];
        for ((&len, from), to) in lens.iter().zip(&from.steps).zip(&to.steps) {
            let runs = even_runs(len, from, to);
            boxes = boxes
                .into_iter()
                .flat_map(|(a, b)| {
                    runs.iter().map(move |run| {
                        let grow = |side: &Layout, offset: isize, stride: isize| {
                            let mut side = side.clone();
                            side.offset = side.offset.wrapping_add_signed(offset);
                            side.shape.push(run.len);
                            side.strides.push(stride);
                            side
                        };
                        (grow(&a, run.from.0, run.from.1), grow(&b, run.to.0, run.to.1))
                    })
                })
                .collect();
        }
        scatters.extend(boxes.into_iter().map(|(from, to)| Scatter { source: source.clone(), from, to }));
    }

    /// Enqueues the decoding of a batch, one call for each chain.
    fn decode(&mut self, slots: Vec<(Arc<BoundChunk>, ChunkNode, DeviceSlot)>) -> Result<(), ArrayError> {
        let mut groups: Vec<(Arc<BoundChunk>, Vec<ChunkNode>, Vec<DeviceSlot>)> = Vec::new();
        for (bound, node, slot) in slots {
            match groups.iter_mut().find(|(other, ..)| Arc::ptr_eq(other, &bound)) {
                Some((_, nodes, slots)) => {
                    nodes.push(node);
                    slots.push(slot);
                }
                None => groups.push((bound, vec![node], vec![slot])),
            }
        }
        for (bound, nodes, slots) in groups {
            let first = nodes.first().cloned();
            let wrong = |error| first.as_ref().map_or_else(|| ArrayError::parameter("an empty batch"), |node| self.plan.error(node, error));
            let tickets = enqueue_chain(&bound.chain, slots, &self.target).map_err(wrong)?;
            self.tickets.extend(tickets.into_iter().map(|ticket| (ticket, nodes.clone())));
        }
        Ok(())
    }

    fn fill(&self, node: &ChunkNode) -> Result<(), ArrayError> {
        let tiles = self.plan.tiles();
        let mut scatters = Vec::new();
        for leaf in self.plan.leaves(node) {
            let to = place(&leaf, &tiles, &self.layout);
            let nowhere = Gather { offset: 0, steps: to.steps.iter().map(|_| Step::Stride(0)).collect() };
            self.boxes(&tile_lens(&leaf), &nowhere, &to, &self.output, &mut scatters);
        }
        for scatter in scatters {
            self.target.queue.fill_region(&Region::new(self.output.clone(), scatter.to)?, self.plan.chunks.fill_bytes())?;
        }
        Ok(())
    }
}

/// Memory of an earlier batch, once no work uses it any more: the host waits here, and only here, for the device to let go of it. `None` while the ring is
/// not full, or if what it has is too short.
fn reused(ring: &mut VecDeque<Buffer>, len: usize) -> Result<Option<Buffer>, ArrayError> {
    if ring.len() < RING {
        return Ok(None);
    }
    let Some(buffer) = ring.pop_front().filter(|buffer| buffer.len() >= len) else { return Ok(None) };
    if !buffer.is_idle()? {
        buffer.wait()?;
    }
    Ok(Some(buffer))
}

/// A decoded chunk as its chain leaves it: C order over the axes as stored.
fn stored_layout(bound: &BoundChunk) -> Result<Layout, ArrayError> {
    let shape: Vec<usize> = bound.chain.representation().shape.iter().map(|&len| len as usize).collect();
    Ok(Layout::contiguous(&shape, bound.layout.item_size)?)
}

/// Enqueues the device's segments one behind the other. Between two of them lies memory of the stage's size.
fn enqueue_chain(chain: &Chain, slots: Vec<DeviceSlot>, target: &DeviceTarget) -> Result<Vec<Ticket>, zarr_codec_api::CodecError> {
    let context = DeviceContext { device: &*target.device, queue: &*target.queue, scratch_budget: target.scratch };
    let segments: Vec<_> = chain.segments().iter().filter(|bound| matches!(bound.segment, Segment::Device(_))).collect();
    let mut tickets = Vec::with_capacity(segments.len());
    let mut inputs: Vec<Buffer> = slots.iter().map(|slot| slot.encoded.clone()).collect();
    for (index, bound) in segments.iter().enumerate() {
        let Segment::Device(segment) = &bound.segment else { continue };
        let last = index + 1 == segments.len();
        let mut of_segment = Vec::with_capacity(slots.len());
        for (slot, encoded) in slots.iter().zip(&inputs) {
            let decoded = if last {
                slot.decoded.clone()
            } else {
                let stage = chain.stages().get(bound.stages.start).map(|stage| stage.decoded.byte_len()).transpose()?.flatten();
                let exact = stage.and_then(|len| len.exact()).and_then(|len| usize::try_from(len).ok());
                let len = exact.ok_or_else(|| {
                    zarr_codec_api::CodecError::unsupported(&bound.provider, "bytes of unknown size between two segments on a device")
                })?;
                Region::new(target.device.allocate(len, &*target.queue)?, Layout::contiguous(&[len], 1)?)?
            };
            of_segment.push(DeviceSlot { encoded: encoded.clone(), decoded });
        }
        tickets.push(segment.decode(&of_segment, &context)?);
        inputs = of_segment.into_iter().map(|slot| slot.decoded.buffer).collect();
    }
    Ok(tickets)
}

/// A run of elements with even steps on both sides: offset and stride.
struct Run {
    len: usize,
    from: (isize, isize),
    to: (isize, isize),
}

fn even_runs(len: usize, from: &Step, to: &Step) -> Vec<Run> {
    if let (Step::Stride(from), Step::Stride(to)) = (from, to) {
        return vec![Run { len, from: (0, *from), to: (0, *to) }];
    }
    let mut runs: Vec<Run> = Vec::new();
    for index in 0..len {
        let (a, b) = (from.at(index), to.at(index));
        match runs.last_mut() {
            Some(run) if run.len == 1 => {
                run.from.1 = a - run.from.0;
                run.to.1 = b - run.to.0;
                run.len = 2;
            }
            Some(run) if a == run.from.0 + run.from.1 * run.len as isize && b == run.to.0 + run.to.1 * run.len as isize => run.len += 1,
            _ => runs.push(Run { len: 1, from: (a, 0), to: (b, 0) }),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_become_even_runs() {
        let runs = even_runs(5, &Step::List(vec![0, 4, 8, 40, 36]), &Step::Stride(4));
        let found: Vec<_> = runs.iter().map(|run| (run.len, run.from, run.to)).collect();
        assert_eq!(found, [(3, (0, 4), (0, 4)), (2, (40, -4), (12, 4))]);
    }
}

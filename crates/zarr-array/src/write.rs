//! Writing: gather, encode, store. A chunk that is written in part is read first; the rest of it stays as it is.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use rayon::prelude::*;
use zarr_buffer_api::{AxisTiles, CopyAxis, Layout, Offsets, copy_axes};
use zarr_codec_api::{CodecError, Scratch, Source, Target, VariableData};
use zarr_store_api::{AnyStore, ByteRange, WritableStore};

use crate::ArrayError;
use crate::chunks::BoundChunk;
use crate::device::Prepared;
use crate::gate::Gate;
use crate::geometry::{Cells, Leaf, chunk_inside};
use crate::plan::{ChunkNode, Plan, Step, covers_in_order, for_each_pair, gather, place, tile_lens};
use crate::pool::{Pool, with_scratch};
use crate::read::requests_of;
use crate::shard_index::{IndexLocation, entry_number, no_entry};
use crate::storage::{Storage, block_on};

/// What to write: elements over the axes of the selection, as the plan's layout has them.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Data<'a> {
    Fixed(&'a [u8]),
    Variable(&'a VariableData),
    /// Whole chunks, on their way through their chain.
    Prepared(&'a Prepared),
}

/// What to write, owned.
#[derive(Debug, Clone)]
pub(crate) enum OwnedData {
    Fixed(Bytes),
    Variable(Arc<VariableData>),
    Prepared(Arc<Prepared>),
}

impl OwnedData {
    pub(crate) fn as_data(&self) -> Data<'_> {
        match self {
            Self::Fixed(bytes) => Data::Fixed(bytes),
            Self::Variable(elements) => Data::Variable(elements),
            Self::Prepared(chunks) => Data::Prepared(chunks),
        }
    }
}

/// How to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Empty {
    /// Whether chunks that hold only the fill value are stored.
    pub(crate) keep: bool,
}

/// Writes with any store, from this thread's point of view at once. Blocking stores are called from all threads of the pool.
pub(crate) fn write_blocking(plan: &Plan, storage: &Storage, data: Data<'_>, empty: Empty, pool: &Pool) -> Result<(), ArrayError> {
    write_until(plan, storage, data, empty, pool, &AtomicBool::new(false))
}

/// As [`write_blocking`], until somebody else sets `unwanted`: then no more chunks are begun.
fn write_until(plan: &Plan, storage: &Storage, data: Data<'_>, empty: Empty, pool: &Pool, unwanted: &AtomicBool) -> Result<(), ArrayError> {
    let layout = plan.output_layout()?;
    let tiles = plan.tiles();
    let encoder = Encoder { plan, data, layout: &layout, tiles: &tiles, empty };
    let write = |index: usize| -> Result<(), ArrayError> {
        if unwanted.load(Ordering::Relaxed) {
            return Err(ArrayError::parameter("nobody waits for the write any more"));
        }
        let (chunk, cells) = plan.cut.chunk(index);
        let key = plan.keys.key(&chunk)?;
        let old = if encoder.is_whole(&chunk, &cells) { None } else { block_on(storage.get(&key, ByteRange::All))? };
        let node = ChunkNode { chunk: chunk.into(), key, cells };
        match (&storage.0, plan.chunks.levels.is_empty()) {
            (AnyStore::Blocking(store), true) => {
                let store = store.as_writable().ok_or_else(|| storage.read_only())?;
                with_scratch(|scratch| encoder.put_leaf(store, &node, old.as_deref(), scratch))
            }
            _ => {
                let encoded = pool.run(|| encoder.chunk(&node, old))?;
                block_on(put(storage, &node, encoded))
            }
        }
    };
    match plan.chunk_count() {
        count @ (0 | 1) => (0..count).try_for_each(write),
        count => pool.run(|| (0..count).into_par_iter().with_max_len(1).try_for_each(write)),
    }
}

/// Writes with any store, for an async caller: encoding runs on the pool, on data that it owns. Each chunk is stored by one atomic call, so that
/// dropping the future leaves every chunk old or new; no more are begun then.
pub(crate) async fn write_async(
    plan: Arc<Plan>,
    storage: Storage,
    data: OwnedData,
    empty: Empty,
    pool: Pool,
    gate: Arc<Gate>,
) -> Result<(), ArrayError> {
    if matches!(storage.0, AnyStore::Blocking(_)) {
        let of_pool = pool.clone();
        let write = move |unwanted: &AtomicBool| write_until(&plan, &storage, data.as_data(), empty, &of_pool, unwanted);
        return pool.compute_while_wanted(write).await;
    }
    let (layout, tiles) = (Arc::new(plan.output_layout()?), Arc::new(plan.tiles()));
    let chunks = stream::iter(0..plan.chunk_count()).map(|index| {
        let (plan, storage, data, pool, gate) = (Arc::clone(&plan), storage.clone(), data.clone(), pool.clone(), Arc::clone(&gate));
        let (layout, tiles) = (Arc::clone(&layout), Arc::clone(&tiles));
        async move {
            let (chunk, cells) = plan.cut.chunk(index);
            let key = plan.keys.key(&chunk)?;
            // The old value and the new one may have as many bytes as the chunk.
            let len = plan.chunks.byte_len_at(&chunk);
            let _pass = gate.enter(requests_of(len.unwrap_or(0)), len).await;
            let whole = Encoder { plan: &plan, data: data.as_data(), layout: &layout, tiles: &tiles, empty }.is_whole(&chunk, &cells);
            let old = if whole { None } else { storage.get(&key, ByteRange::All).await? };
            let node = ChunkNode { chunk: chunk.into(), key, cells };
            let of_pool = node.clone();
            let encoded = pool
                .compute(move || Encoder { plan: &plan, data: data.as_data(), layout: &layout, tiles: &tiles, empty }.chunk(&of_pool, old))
                .await?;
            put(&storage, &node, encoded).await
        }
    });
    chunks.buffer_unordered(gate.requests()).try_collect().await
}

async fn put(storage: &Storage, node: &ChunkNode, encoded: Option<Vec<Bytes>>) -> Result<(), ArrayError> {
    match encoded {
        None => storage.erase(&node.key).await?,
        Some(mut parts) => match (parts.pop(), parts.is_empty()) {
            (Some(value), true) => storage.set(&node.key, value).await?,
            (last, _) => {
                parts.extend(last);
                storage.set_vectored(&node.key, parts).await?;
            }
        },
    }
    Ok(())
}

/// The stored value of the one chunk of a plan that covers all of it.
pub(crate) fn encode_value(plan: &Plan, data: Data<'_>, empty: Empty) -> Result<Option<Vec<Bytes>>, ArrayError> {
    let (layout, tiles) = (plan.output_layout()?, plan.tiles());
    let (chunk, cells) = plan.cut.chunk(0);
    let key = plan.keys.key(&chunk)?;
    Encoder { plan, data, layout: &layout, tiles: &tiles, empty }.chunk(&ChunkNode { chunk: chunk.into(), key, cells }, None)
}

/// Turns data into the bytes of chunks.
struct Encoder<'a> {
    plan: &'a Plan,
    data: Data<'a>,
    layout: &'a Layout,
    tiles: &'a [AxisTiles],
    empty: Empty,
}

impl Encoder<'_> {
    /// Whether every element of a chunk of the grid is written that is not to be kept.
    fn is_whole(&self, chunk: &[u64], cells: &Cells) -> bool {
        let (grid, shape) = (&self.plan.chunks.cuts.grid, &self.plan.shape);
        self.plan.cut.covers(cells, |axis| {
            let index = chunk.get(axis).copied().unwrap_or(0);
            if self.plan.outgrown == Some(true) { grid.chunk_len(axis, index) } else { chunk_inside(grid, shape, axis, index) }
        })
    }

    /// The stored value of a chunk of the grid, in pieces; `None`: it holds only the fill value and is not stored.
    fn chunk(&self, node: &ChunkNode, old: Option<Bytes>) -> Result<Option<Vec<Bytes>>, ArrayError> {
        self.node(0, node, old)
    }

    fn node(&self, level: usize, node: &ChunkNode, old: Option<Bytes>) -> Result<Option<Vec<Bytes>>, ArrayError> {
        if level < self.plan.chunks.levels.len() {
            return self.shard(level, node, old);
        }
        let encoded = with_scratch(|scratch| {
            let mut encoded = scratch.take();
            let stored = self.leaf(node, old.as_deref(), &mut encoded, scratch);
            // A piece of its own, of just its size: shards keep all their pieces until they are stored.
            let piece = stored.map(|stored| stored.then(|| Bytes::copy_from_slice(&encoded)));
            scratch.give(encoded);
            piece
        });
        Ok(encoded.map_err(|error| self.plan.error(node, error))?.map(|encoded| vec![encoded]))
    }

    /// Encodes a chunk that is no shard and stores it, from memory that is reused or, if nothing is to be done, from the caller's.
    fn put_leaf(&self, store: &dyn WritableStore, node: &ChunkNode, old: Option<&[u8]>, scratch: &mut Scratch) -> Result<(), ArrayError> {
        let fail = |error| self.plan.error(node, error);
        let bound = self.plan.bound(node)?;
        if let (Data::Fixed(data), [leaf], [_]) = (self.data, self.plan.leaves(node).as_slice(), bound.chain.stages())
            && bound.verbatim
            && covers_in_order(&bound, leaf)
        {
            if let Some(source) = self.contiguous(leaf, data, bound.byte_len) {
                if !self.empty.keep && is_all(source, self.plan.chunks.fill_bytes()) {
                    return Ok(store.erase(&node.key)?);
                }
                return Ok(store.set_vectored(&node.key, &[source])?);
            }
            return self.put_rows(store, node, &bound, leaf, data, scratch);
        }
        let mut encoded = scratch.take();
        let stored = self.leaf(node, old, &mut encoded, scratch).map_err(fail);
        let result = match stored {
            Ok(true) => store.set_vectored(&node.key, &[&encoded]).map_err(ArrayError::from),
            Ok(false) => store.erase(&node.key).map_err(ArrayError::from),
            Err(error) => Err(error),
        };
        scratch.give(encoded);
        result
    }

    /// Stores a whole chunk as it is, some rows at a time: a large one would not stay in caches between the copy and the write.
    fn put_rows(
        &self,
        store: &dyn WritableStore,
        node: &ChunkNode,
        bound: &BoundChunk,
        leaf: &Leaf<'_>,
        data: &[u8],
        scratch: &mut Scratch,
    ) -> Result<(), ArrayError> {
        const PIECE: usize = 256 << 10;
        let fill = self.plan.chunks.fill_bytes();
        let (lens, from) = (tile_lens(leaf), place(leaf, self.tiles, self.layout));
        // Rows along the first axis that has several.
        let split = lens.iter().position(|&len| len > 1).unwrap_or(0);
        let row = bound.layout.strides.get(split).map_or(bound.byte_len, |stride| stride.unsigned_abs()).max(1);
        let piece_len = (PIECE / row).max(1).saturating_mul(row).min(bound.byte_len);
        let copy = |at: usize, piece: &mut [u8]| {
            let rows = at / row..at.saturating_add(piece.len()) / row;
            let mut offset = from.offset;
            let axes: Vec<CopyAxis<'_>> = lens
                .iter()
                .zip(from.steps.iter().zip(&bound.layout.strides))
                .enumerate()
                .map(|(axis, (&len, (step, &stride)))| match (axis == split && len > 1, step) {
                    (false, step) => CopyAxis { len, destination: Offsets::Stride(stride), source: step.offsets() },
                    (true, Step::Stride(step)) => {
                        offset = offset.wrapping_add_signed(step.wrapping_mul(rows.start as isize));
                        CopyAxis { len: rows.len(), destination: Offsets::Stride(stride), source: Offsets::Stride(*step) }
                    }
                    (true, Step::List(list)) => {
                        // Rows that a list does not have are an error of the copy.
                        let of_rows = list.get(rows.clone()).unwrap_or_default();
                        CopyAxis { len: rows.len(), destination: Offsets::Stride(stride), source: Offsets::List(of_rows) }
                    }
                })
                .collect();
            copy_axes(piece, 0, data, offset, &axes, self.layout.item_size)
        };
        let mut piece = scratch.take_len(piece_len);
        let mut failed = Ok(());
        let mut is_fill = !self.empty.keep;
        let mut at = 0;
        while is_fill && at < bound.byte_len {
            let front = piece.get_mut(..piece_len.min(bound.byte_len - at)).unwrap_or_default();
            copy(at, front)?;
            is_fill = is_all(front, fill);
            at += front.len();
        }
        let stored = if is_fill {
            store.erase(&node.key)
        } else {
            let mut make = |at: u64, piece: &mut [u8]| {
                let copied = usize::try_from(at).map_or(Ok(()), |at| copy(at, piece));
                failed = std::mem::replace(&mut failed, Ok(())).and(copied);
            };
            store.set_pieces(&node.key, bound.byte_len as u64, &mut piece, &mut make)
        };
        scratch.give(piece);
        failed?;
        Ok(stored?)
    }

    fn shard(&self, level: usize, node: &ChunkNode, old: Option<Bytes>) -> Result<Option<Vec<Bytes>>, ArrayError> {
        let fail = |error| self.plan.error(node, error);
        let chunks = &self.plan.chunks;
        let Some(shard) = chunks.levels.get(level) else { return Ok(None) };
        let cells = chunks.cells_at(&node.chunk, level);
        let stored: Vec<u64> = shard.order.iter().map(|&axis| cells.get(axis).copied().unwrap_or(0)).collect();
        let codec = shard.index.bound(&stored).map_err(fail)?;
        let count = cells.iter().try_fold(1u64, |product, &count| product.checked_mul(count)).and_then(|count| usize::try_from(count).ok());
        let count = count.ok_or_else(|| fail(CodecError::limit("sharding_indexed", usize::MAX)))?;

        let mut inner: Vec<Option<Vec<Bytes>>> = vec![None; count];
        if let Some(old) = &old {
            let range = codec.range(shard.index.location, None).and_then(|range| {
                range.resolve(old.len() as u64).map_err(|error| CodecError::format("sharding_indexed", error.to_string()))
            });
            let range = range.map_err(fail)?;
            let encoded = old.get(range.start as usize..range.end as usize).unwrap_or_default();
            let index = with_scratch(|scratch| codec.decode(encoded, scratch)).map_err(fail)?;
            for (number, slot) in inner.iter_mut().enumerate() {
                let entry = index.get(number, Some(old.len() as u64)).map_err(fail)?;
                *slot = entry.map(|entry| vec![old.slice(entry.start as usize..entry.end as usize)]);
            }
        }
        let touched: Vec<(usize, ChunkNode, Option<Bytes>)> = self
            .plan
            .cut
            .split(&node.cells, level)
            .into_iter()
            .map(|(cell, of_cell)| {
                let number = entry_number(&cell, &cells, &shard.order);
                let before = inner.get_mut(number).and_then(Option::take).and_then(|mut parts| parts.pop());
                (number, ChunkNode { cells: of_cell, ..node.clone() }, before)
            })
            .collect();
        let encoded: Vec<(usize, Option<Vec<Bytes>>)> = touched
            .into_par_iter()
            .with_max_len(1)
            .map(|(number, node, before)| Ok((number, self.node(level + 1, &node, before)?)))
            .collect::<Result<_, ArrayError>>()?;
        for (number, parts) in encoded {
            *inner.get_mut(number).ok_or_else(|| fail(no_entry(number)))? = parts;
        }
        if inner.iter().all(Option::is_none) {
            return Ok(None);
        }

        let mut index = codec.empty();
        let mut at = if shard.index.location == IndexLocation::Start { codec.encoded_len } else { 0 };
        let mut parts = Vec::with_capacity(count + 1);
        for (number, pieces) in inner.into_iter().enumerate() {
            let Some(pieces) = pieces else { continue };
            let len: u64 = pieces.iter().map(|piece| piece.len() as u64).sum();
            index.set(number, Range { start: at, end: at + len }).map_err(fail)?;
            at += len;
            parts.extend(pieces);
        }
        let index = Bytes::from(with_scratch(|scratch| codec.encode(&index, scratch)).map_err(fail)?);
        match shard.index.location {
            IndexLocation::Start => parts.insert(0, index),
            IndexLocation::End => parts.push(index),
        }
        Ok(Some(parts))
    }

    /// Encodes an innermost chunk into the empty `encoded`; `false`: it holds only the fill value and is not stored.
    fn leaf(&self, node: &ChunkNode, old: Option<&[u8]>, encoded: &mut Vec<u8>, scratch: &mut Scratch) -> Result<bool, CodecError> {
        let bound = self.plan.chunks.bound_at(&node.chunk)?;
        let leaves = self.plan.leaves(node);
        match self.data {
            Data::Fixed(data) => self.fixed(&bound, &leaves, data, old, encoded, scratch),
            Data::Variable(data) => self.variable(&bound, &leaves, data, old, encoded, scratch),
            Data::Prepared(chunks) => {
                let tile = leaves.first().map_or(&[][..], |leaf| leaf.tile.as_slice());
                if chunks.is_empty(tile) {
                    return Ok(false);
                }
                chunks.with(tile, |bytes| bound.chain.encode_rest(bytes, encoded, scratch)).map(|()| true)
            }
        }
    }

    fn fixed(
        &self,
        bound: &BoundChunk,
        leaves: &[Leaf<'_>],
        data: &[u8],
        old: Option<&[u8]>,
        encoded: &mut Vec<u8>,
        scratch: &mut Scratch,
    ) -> Result<bool, CodecError> {
        let fill = self.plan.chunks.fill_bytes();
        if let [leaf] = leaves
            && covers_in_order(bound, leaf)
            && let Some(source) = self.contiguous(leaf, data, bound.byte_len)
        {
            return self.encode(bound, source, fill, encoded, scratch);
        }
        let mut decoded = scratch.try_take_len(bound.byte_len, "chunk")?;
        let covered = matches!(leaves, [leaf] if self.plan.covers_leaf(leaf));
        let result = match old {
            Some(old) if !covered => bound.chain.decode(old, Target::Exact(&mut decoded), scratch),
            _ => {
                let full = covered && leaves.iter().all(|leaf| leaf.parts.iter().all(|part| part.inside == part.chunk_len));
                if !full {
                    fill_all(&mut decoded, fill);
                }
                Ok(())
            }
        };
        let result = result.and_then(|()| {
            for leaf in leaves {
                let (to, from) = (gather(leaf, &bound.layout), place(leaf, self.tiles, self.layout));
                let axes: Vec<CopyAxis<'_>> = tile_lens(leaf)
                    .into_iter()
                    .zip(to.steps.iter().zip(&from.steps))
                    .map(|(len, (to, from)): (usize, (&Step, &Step))| CopyAxis { len, destination: to.offsets(), source: from.offsets() })
                    .collect();
                copy_axes(&mut decoded, to.offset, data, from.offset, &axes, self.layout.item_size)?;
            }
            self.encode(bound, &decoded, fill, encoded, scratch)
        });
        scratch.give(decoded);
        result
    }

    /// The data of a whole chunk, where it lies side by side.
    fn contiguous<'d>(&self, leaf: &Leaf<'_>, data: &'d [u8], len: usize) -> Option<&'d [u8]> {
        let from = place(leaf, self.tiles, self.layout);
        let mut expected = self.layout.item_size;
        for (step, count) in from.steps.iter().zip(tile_lens(leaf)).rev() {
            match step.offsets() {
                Offsets::Stride(stride) if count == 1 || usize::try_from(stride) == Ok(expected) => expected *= count,
                _ => return None,
            }
        }
        data.get(from.offset..from.offset.checked_add(len)?)
    }

    fn encode(
        &self,
        bound: &BoundChunk,
        decoded: &[u8],
        fill: &[u8],
        encoded: &mut Vec<u8>,
        scratch: &mut Scratch,
    ) -> Result<bool, CodecError> {
        if !self.empty.keep && is_all(decoded, fill) {
            return Ok(false);
        }
        bound.chain.encode(Source::Bytes(decoded), encoded, scratch)?;
        Ok(true)
    }

    fn variable(
        &self,
        bound: &BoundChunk,
        leaves: &[Leaf<'_>],
        data: &VariableData,
        old: Option<&[u8]>,
        encoded: &mut Vec<u8>,
        scratch: &mut Scratch,
    ) -> Result<bool, CodecError> {
        let fill = self.plan.chunks.fill_bytes();
        let count = bound.chain.representation().elements()?;
        let mut before = VariableData::new();
        if let Some(old) = old {
            let limit = usize::try_from(self.plan.chunks.registry().limits().variable_chunk).unwrap_or(usize::MAX);
            bound.chain.decode(old, Target::Variable { elements: &mut before, limit }, scratch)?;
        }
        let mut elements: Vec<&[u8]> = (0..count).map(|index| before.get(index).unwrap_or(fill)).collect();
        for leaf in leaves {
            let (to, from) = (gather(leaf, &bound.layout), place(leaf, self.tiles, self.layout));
            for_each_pair(&tile_lens(leaf), &to, &from, &mut |to, from| {
                if let (Some(slot), Some(element)) = (elements.get_mut(to), data.get(from)) {
                    *slot = element;
                }
            });
        }
        if !self.empty.keep && elements.iter().all(|element| *element == fill) {
            return Ok(false);
        }
        let elements: VariableData = elements.into_iter().collect();
        bound.chain.encode(Source::Variable(&elements), encoded, scratch)?;
        Ok(true)
    }
}

pub(crate) fn fill_all(bytes: &mut [u8], fill: &[u8]) {
    match fill {
        [] => {}
        [first, rest @ ..] if rest.iter().all(|byte| byte == first) => bytes.fill(*first),
        _ => bytes.chunks_exact_mut(fill.len()).for_each(|element| element.copy_from_slice(fill)),
    }
}

pub(crate) fn is_all(bytes: &[u8], fill: &[u8]) -> bool {
    !fill.is_empty() && bytes.chunks_exact(fill.len()).all(|element| element == fill)
}

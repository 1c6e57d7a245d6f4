//! One whole chunk of the grid, or inner chunk of a shard whose index is at hand: the read that needs no plan.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rayon::prelude::*;
use zarr_buffer_api::TileWriter;
use zarr_codec_api::{CodecError, Scratch, Target};
use zarr_meta::ChunkGrid;
use zarr_store_api::{ByteRange, Store, StoreErrorKind, StoreKey};

use crate::blocks::{decode_shared, is_shared};
use crate::chunks::BoundChunk;
use crate::pool::with_scratch;
use crate::read::{Fetched, Job, fetch_bounded, read_value};
use crate::selection::{Positions, Resolved};
use crate::shard_index::entry_number;
use crate::write::fill_all;
use crate::{Array, ArrayError};

/// An innermost chunk that is, element for element, what a selection wants.
pub(crate) struct WholeChunk {
    /// Counted over the whole array.
    chunk: Vec<u64>,
    /// The shard that it is in; `None`: it is one of the grid.
    shard: Option<Vec<u64>>,
    bound: Arc<BoundChunk>,
}

impl WholeChunk {
    /// Bytes of the chunk, and of the result.
    pub(crate) fn byte_len(&self) -> usize {
        self.bound.byte_len
    }
}

impl Array {
    /// The chunk that a selection is; `None` if it is something else, or a shard, or an inner chunk of shards in shards, or a chunk that is decoded into another order.
    pub(crate) fn whole_chunk(&self, resolved: &Resolved) -> Result<Option<WholeChunk>, ArrayError> {
        let (ChunkGrid::Regular { chunk_shape }, Resolved::Product(axes)) = (self.chunk_grid(), resolved) else { return Ok(None) };
        let (innermost, is_inner) = match self.chunks.cuts.inner.as_slice() {
            [] => (chunk_shape, false),
            [inner] => (inner, true),
            _ => return Ok(None),
        };
        if self.item_size().is_none() || axes.len() != innermost.len() {
            return Ok(None);
        }
        let mut chunk = Vec::with_capacity(axes.len());
        for (positions, &chunk_len) in axes.iter().zip(innermost.iter()) {
            match positions {
                Positions::Steps { start, step, len, .. }
                    if *len == chunk_len && (*step == 1 || *len == 1) && start.is_multiple_of(*len) =>
                {
                    chunk.push(start / len);
                }
                _ => return Ok(None),
            }
        }
        let shard = is_inner.then(|| {
            let of_axes = chunk.iter().zip(innermost.iter()).zip(chunk_shape.iter());
            of_axes.map(|((number, len), outer)| (number * len).checked_div(*outer).unwrap_or(0)).collect::<Vec<_>>()
        });
        let codecs = |source| ArrayError::Codecs { path: self.path().to_string(), source };
        let bound = self.chunks.bound_at(shard.as_deref().unwrap_or(&chunk)).map_err(codecs)?.into_owned();
        Ok((bound.layout.is_contiguous() && bound.byte_len > 0).then_some(WholeChunk { chunk, shard, bound }))
    }

    /// Reads a whole chunk into memory of its size.
    pub(crate) fn read_whole(&self, store: &dyn Store, whole: &WholeChunk, output: &mut [u8]) -> Result<(), ArrayError> {
        let WholeChunk { chunk, shard, bound } = whole;
        if let Some(shard) = shard {
            return self.read_inner(store, whole, shard, output);
        }
        let key = self.chunk_key(chunk)?;
        let fail = |source| ArrayError::Chunk { key: key.clone(), chunk: chunk.clone(), source };
        let fill = self.chunks.fill_bytes();
        if bound.verbatim {
            let wrong = |found: u64| fail(CodecError::size("bytes", bound.byte_len, usize::try_from(found).unwrap_or(usize::MAX)));
            let found = match self.read_shared(store, &key, output)? {
                Some(found) => found,
                None => match store.get_into(&key, ByteRange::All, output) {
                    Ok(Some(len)) => Found::Bytes(len as u64),
                    Ok(None) => Found::Nothing,
                    Err(error) if error.kind() == StoreErrorKind::Parameter => Found::Other,
                    Err(error) => return Err(error.into()),
                },
            };
            return match found {
                Found::Bytes(len) if len == bound.byte_len as u64 => Ok(()),
                Found::Bytes(len) => Err(wrong(len)),
                Found::Other => Err(wrong(store.size(&key)?.unwrap_or(0))),
                Found::Nothing => {
                    fill_all(output, fill);
                    Ok(())
                }
            };
        }
        with_scratch(|scratch| {
            let get_into = |bytes: &mut [u8]| store.get_into(&key, ByteRange::All, bytes);
            let fetched = fetch_bounded(bound.encoded_len.upper(), scratch, get_into, || store.get(&key, ByteRange::All))?;
            let Some(fetched) = fetched else {
                fill_all(output, fill);
                return Ok(());
            };
            self.decode_whole(bound, fetched, output, scratch).map_err(fail)
        })
    }

    /// Reads a whole inner chunk: at once if the index of its shard is at hand, else as any selection.
    fn read_inner(&self, store: &dyn Store, whole: &WholeChunk, shard: &[u64], output: &mut [u8]) -> Result<(), ArrayError> {
        let WholeChunk { chunk, bound, .. } = whole;
        let key = self.chunk_key(shard)?;
        let fail = |chunk: &[u64], source| ArrayError::Chunk { key: key.clone(), chunk: chunk.to_vec(), source };
        let value = store.reader(&key)?;
        let kept = self.indexes.as_ref().zip(value.version()).and_then(|(indexes, version)| indexes.get(&key, None, &version));
        let (Some(index), Some(level)) = (kept, self.chunks.levels.first()) else {
            let axis =
                |(&number, &len): (&u64, &usize)| Positions::Steps { start: number * len as u64, step: 1, len: len as u64, keep: true };
            let plan = self.resolved_plan(&Resolved::Product(chunk.iter().zip(&bound.layout.shape).map(axis).collect()))?;
            let tiles = TileWriter::new(output, plan.output_layout()?, plan.tiles())?;
            return read_value(&Job { plan: &plan, store, sink: &tiles }, &*value, &AtomicBool::new(false), &self.options().pool);
        };
        let cells = self.chunks.cells_at(shard, 0);
        let cell: Vec<u64> = chunk.iter().zip(&cells).map(|(number, &count)| number.checked_rem(count).unwrap_or(0)).collect();
        let Some(range) = index.get(entry_number(&cell, &cells, &level.order), None).map_err(|error| fail(shard, error))? else {
            fill_all(output, self.chunks.fill_bytes());
            return Ok(());
        };
        let (len, range) = (range.end - range.start, ByteRange::Bounded { start: range.start, end: range.end });
        let removed = || fail(chunk, CodecError::format("sharding_indexed", "the shard was removed while it was read"));
        if bound.verbatim && len == bound.byte_len as u64 {
            return value.get_into(range, output)?.map(drop).ok_or_else(removed);
        }
        with_scratch(|scratch| {
            let fetched = fetch_bounded(len, scratch, |bytes| value.get_into(range, bytes), || value.get(range))?;
            let fetched = fetched.ok_or_else(removed)?;
            self.decode_whole(bound, fetched, output, scratch).map_err(|error| fail(chunk, error))
        })
    }

    fn decode_whole(&self, bound: &BoundChunk, fetched: Fetched, output: &mut [u8], scratch: &mut Scratch) -> Result<(), CodecError> {
        let decoded = match (is_shared(bound.byte_len) && self.shares()).then(|| bound.chain.blocks(&fetched)).flatten() {
            Some(blocks) if blocks.block_len() < bound.byte_len => decode_shared(&*blocks, output, &self.options().pool),
            _ => bound.chain.decode(&fetched, Target::Exact(output), scratch),
        };
        if let Fetched::Scratch(bytes, _) = fetched {
            scratch.give(bytes);
        }
        decoded
    }

    /// Reads a large value into `output` by the threads of the pool, each a part; `None` where that is not faster.
    fn read_shared(&self, store: &dyn Store, key: &StoreKey, output: &mut [u8]) -> Result<Option<Found>, ArrayError> {
        /// A thread's copy of less takes no longer than waking another thread.
        const SHARE: usize = 4 << 20;
        const PART: usize = 1 << 20;
        if output.len() < SHARE || !self.shares() {
            return Ok(None);
        }
        let value = store.reader(key)?;
        if !value.is_parallel() {
            return Ok(None);
        }
        let last = output.len().div_ceil(PART) - 1;
        let read = |(index, part): (usize, &mut [u8])| {
            let (start, wanted) = ((index * PART) as u64, part.len() as u64);
            // What lies behind the last part makes the value too long.
            let range = if index == last { ByteRange::From(start) } else { ByteRange::Bounded { start, end: start + wanted } };
            match value.get_into(range, part) {
                Ok(Some(len)) if len as u64 == wanted => Ok(()),
                Ok(Some(_)) => Err(Ok(Found::Other)),
                Ok(None) => Err(Ok(Found::Nothing)),
                Err(error) if matches!(error.kind(), StoreErrorKind::Parameter | StoreErrorKind::OutOfRange) => Err(Ok(Found::Other)),
                Err(error) => Err(Err(error)),
            }
        };
        let len = output.len() as u64;
        match self.options().pool.run(|| output.par_chunks_mut(PART).enumerate().try_for_each(read)) {
            Ok(()) => Ok(Some(Found::Bytes(len))),
            Err(Ok(found)) => Ok(Some(found)),
            Err(Err(error)) => Err(error.into()),
        }
    }
}

/// What was read of a value.
enum Found {
    /// So many bytes: all.
    Bytes(u64),
    /// Fewer or more bytes than expected.
    Other,
    /// There is no such value.
    Nothing,
}

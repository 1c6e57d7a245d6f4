//! One whole chunk of the grid: the read that needs no plan.

use std::sync::Arc;

use zarr_codec_api::{CodecError, Target};
use zarr_meta::ChunkGrid;
use zarr_store_api::{ByteRange, Store, StoreErrorKind};

use crate::chunks::BoundChunk;
use crate::pool::with_scratch;
use crate::read::{Fetched, fetch_bounded};
use crate::selection::{Positions, Resolved};
use crate::write::fill_all;
use crate::{Array, ArrayError};

/// A chunk that is, element for element, what a selection wants.
pub(crate) struct WholeChunk {
    chunk: Vec<u64>,
    bound: Arc<BoundChunk>,
}

impl WholeChunk {
    /// Bytes of the chunk, and of the result.
    pub(crate) fn byte_len(&self) -> usize {
        self.bound.byte_len
    }
}

impl Array {
    /// The chunk that a selection is; `None` if it is something else, or a shard, or a chunk that is decoded into another order.
    pub(crate) fn whole_chunk(&self, resolved: &Resolved) -> Result<Option<WholeChunk>, ArrayError> {
        let (ChunkGrid::Regular { chunk_shape }, Resolved::Product(axes)) = (self.chunk_grid(), resolved) else { return Ok(None) };
        if !self.chunks.levels.is_empty() || self.item_size().is_none() || axes.len() != chunk_shape.len() {
            return Ok(None);
        }
        let mut chunk = Vec::with_capacity(axes.len());
        for (positions, &chunk_len) in axes.iter().zip(chunk_shape.iter()) {
            match positions {
                Positions::Steps { start, step, len, .. }
                    if *len == chunk_len && (*step == 1 || *len == 1) && start.is_multiple_of(*len) =>
                {
                    chunk.push(start / len);
                }
                _ => return Ok(None),
            }
        }
        let codecs = |source| ArrayError::Codecs { path: self.path().to_string(), source };
        let bound = self.chunks.bound_at(&chunk).map_err(codecs)?;
        Ok((bound.layout.is_contiguous() && bound.byte_len > 0).then_some(WholeChunk { chunk, bound }))
    }

    /// Reads a whole chunk into memory of its size.
    pub(crate) fn read_whole(&self, store: &dyn Store, whole: &WholeChunk, output: &mut [u8]) -> Result<(), ArrayError> {
        let WholeChunk { chunk, bound } = whole;
        let key = self.chunk_key(chunk)?;
        let fail = |source| ArrayError::Chunk { key: key.clone(), chunk: chunk.clone(), source };
        let fill = self.chunks.fill_bytes();
        if bound.verbatim {
            let wrong = |found| Err(fail(CodecError::size("bytes", bound.byte_len, found)));
            return match store.get_into(&key, ByteRange::All, output) {
                Ok(Some(len)) if len == bound.byte_len => Ok(()),
                Ok(Some(len)) => wrong(len),
                Ok(None) => {
                    fill_all(output, fill);
                    Ok(())
                }
                Err(error) if error.kind() == StoreErrorKind::Parameter => {
                    wrong(usize::try_from(store.size(&key)?.unwrap_or(0)).unwrap_or(usize::MAX))
                }
                Err(error) => Err(error.into()),
            };
        }
        with_scratch(|scratch| {
            let get_into = |bytes: &mut [u8]| store.get_into(&key, ByteRange::All, bytes);
            let fetched = fetch_bounded(bound.encoded_len.upper(), scratch, get_into, || store.get(&key, ByteRange::All))?;
            let Some(fetched) = fetched else {
                fill_all(output, fill);
                return Ok(());
            };
            let decoded = bound.chain.decode(&fetched, Target::Exact(output), scratch).map_err(fail);
            if let Fetched::Scratch(bytes, _) = fetched {
                scratch.give(bytes);
            }
            decoded
        })
    }
}

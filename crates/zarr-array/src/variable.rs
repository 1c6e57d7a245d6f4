//! Reading elements of variable length: chunks are decoded in any order, then put together.

use std::sync::{Mutex, PoisonError};

use zarr_codec_api::{Scratch, VariableData};

use crate::ArrayError;
use crate::plan::{ChunkNode, ChunkPart, Plan, for_each_pair, gather, place, tile_lens};
use crate::read::Sink;

/// Collects decoded chunks and where their elements go.
#[derive(Debug, Default)]
pub(crate) struct VariableSink {
    pieces: Mutex<Vec<Piece>>,
}

/// A chunk, and pairs of a place in the result and an element of the chunk.
#[derive(Debug)]
struct Piece {
    places: Vec<(usize, usize)>,
    elements: VariableData,
}

impl VariableSink {
    fn push(&self, plan: &Plan, node: &ChunkNode, elements: VariableData, same: bool) -> Result<(), ArrayError> {
        let bound = plan.bound(node)?;
        let (tiles, layout) = (plan.tiles(), plan.output_layout()?);
        let mut places = Vec::new();
        for leaf in plan.leaves(node) {
            let (from, to) = (gather(&leaf, &bound.layout), place(&leaf, &tiles, &layout));
            for_each_pair(&tile_lens(&leaf), &to, &from, &mut |to, from| places.push((to, if same { 0 } else { from })));
        }
        self.pieces.lock().unwrap_or_else(PoisonError::into_inner).push(Piece { places, elements });
        Ok(())
    }

    /// The elements of the result in C order.
    pub(crate) fn finish(&self, len: usize) -> VariableData {
        let pieces = std::mem::take(&mut *self.pieces.lock().unwrap_or_else(PoisonError::into_inner));
        let mut sources: Vec<Option<&[u8]>> = vec![None; len];
        for piece in &pieces {
            for &(to, from) in &piece.places {
                if let Some(source) = sources.get_mut(to) {
                    *source = piece.elements.get(from);
                }
            }
        }
        sources.into_iter().map(Option::unwrap_or_default).collect()
    }
}

impl Sink for VariableSink {
    fn chunk(&self, plan: &Plan, part: &ChunkPart, encoded: &[u8], scratch: &mut Scratch) -> Result<(), ArrayError> {
        let elements = plan.decode_variable(&part.node, encoded, scratch)?;
        self.push(plan, &part.node, elements, false)
    }

    fn absent(&self, plan: &Plan, node: &ChunkNode) -> Result<(), ArrayError> {
        self.push(plan, node, [plan.chunks.fill_bytes()].into_iter().collect(), true)
    }
}

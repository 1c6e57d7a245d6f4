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
        let elements = keep_wanted(&mut places, elements);
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

/// The elements that are wanted alone, unless all of them take no more than twice as much memory.
fn keep_wanted(places: &mut [(usize, usize)], elements: VariableData) -> VariableData {
    let size = |bytes: usize, count: usize| bytes.saturating_add(count.saturating_mul(size_of::<usize>()));
    let wanted = || places.iter().map(|&(_, from)| elements.get(from).unwrap_or_default());
    let bytes = wanted().fold(0usize, |sum, element| sum.saturating_add(element.len()));
    if size(bytes, places.len()) > size(elements.byte_len(), elements.len()) / 2 {
        return elements;
    }
    let kept = wanted().collect();
    places.iter_mut().enumerate().for_each(|(at, (_, from))| *from = at);
    kept
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

#[cfg(test)]
mod tests {
    use zarr_codec_api::Registry;
    use zarr_meta::DataType;
    use zarr_store::MemoryStore;
    use zarr_store_api::AnyStore;

    use super::*;
    use crate::read::{Job, read_blocking};
    use crate::{ArrayBuilder, Options, Selection};

    #[test]
    fn only_what_is_wanted_is_kept() {
        let options = Options::new(Registry::new().with(zarr_codecs_cpu::provider()));
        let store = MemoryStore::new();
        let builder = ArrayBuilder::new([10_000], DataType::String).chunks([1000]);
        let array = builder.create(AnyStore::blocking(store.clone()), "/", &options).unwrap();
        let strings: Vec<String> = (0..10_000).map(|at| format!("{at:0100}")).collect();
        array.write_elements(&Selection::all(), &strings).unwrap();
        for (wanted, expected) in [
            ("::500", 20 * 100),
            ("[7, 7, 9007, 7]", 4 * 100),
            ("990:1010", 20 * 100),
            ("5", 100),
            ("::-1", 10_000 * 100),
            (":999", 1000 * 100),
        ] {
            let wanted = Selection::parse(wanted, 1).unwrap();
            let plan = array.internal_plan(&wanted).unwrap();
            let sink = VariableSink::default();
            read_blocking(&[Job { plan: &plan, store: &store, sink: &sink }], &options.pool).unwrap();
            let kept: usize = sink.pieces.lock().unwrap().iter().map(|piece| piece.elements.byte_len()).sum();
            let found = sink.finish(plan.output_layout().unwrap().len());
            let read = array.read_elements::<String>(&wanted).unwrap();
            assert!(found.iter().eq(read.iter().map(String::as_bytes)), "{wanted:?}");
            assert_eq!(kept, expected, "{wanted:?}");
        }
    }
}

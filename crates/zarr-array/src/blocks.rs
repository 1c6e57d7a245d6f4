//! Chunks in blocks that decode each on its own: no room for a whole chunk, and no block that nobody wants.

use std::ops::Range;

use rayon::prelude::*;
use zarr_buffer_api::{Offsets, TileMut};
use zarr_codec_api::{Blocks, CodecError, Scratch};

use crate::chunks::BoundChunk;
use crate::geometry::Leaf;
use crate::plan::{Gather, Step, gather, tile_lens};
use crate::pool::Pool;

/// Decoded bytes from which on the blocks of one chunk are shared out over the threads: decoding less takes no longer than waking them.
const SHARE: usize = 512 << 10;

/// Whether a chunk of so many bytes is worth several threads.
pub(crate) fn is_shared(byte_len: usize) -> bool {
    byte_len >= SHARE
}

/// Decodes all blocks to `decoded`, the whole chunk, by the threads of the pool.
pub(crate) fn decode_shared(blocks: &dyn Blocks, decoded: &mut [u8], pool: &Pool) -> Result<(), CodecError> {
    let block_len = blocks.block_len().max(1);
    pool.run(|| decoded.par_chunks_mut(block_len).enumerate().try_for_each(|(index, block)| blocks.decode(index, block)))
}

/// Where the elements of a leaf lie in the bytes of its chunk, row by row: a row is what lies at one position along the first axis.
pub(crate) struct Rows {
    /// Of the first row.
    pub(crate) offset: usize,
    pub(crate) count: usize,
    /// From one row to the next.
    pub(crate) step: usize,
    /// Bytes from the first element of a row to the end of its last.
    pub(crate) span: usize,
}

impl Rows {
    /// `None` where elements do not follow each other in even steps forwards.
    pub(crate) fn new(leaf: &Leaf<'_>, gathered: &Gather, item_size: usize) -> Option<Self> {
        let lens = tile_lens(leaf);
        let mut strides = Vec::with_capacity(lens.len());
        for (&len, step) in lens.iter().zip(&gathered.steps) {
            strides.push(match step {
                Step::Stride(_) if len == 1 => 0,
                Step::Stride(stride) => usize::try_from(*stride).ok()?,
                Step::List(_) => return None,
            });
        }
        let (&count, lens) = lens.split_first()?;
        let (&step, strides) = strides.split_first()?;
        // Of elements of one decoded chunk, whose size was checked when its chain was bound.
        let span = lens.iter().zip(strides).map(|(&len, &stride)| len.saturating_sub(1) * stride).sum::<usize>() + item_size;
        let some = count > 0 && lens.iter().all(|&len| len > 0);
        some.then_some(Self { offset: gathered.offset, count, step, span })
    }

    /// Bytes up to the end of the last row.
    fn front(&self) -> usize {
        self.offset + self.count.saturating_sub(1) * self.step + self.span
    }
}

/// Whether the front of a block is so short that it is worth leaving out what lies behind.
fn is_short(front: usize, block_len: usize) -> bool {
    front <= block_len - block_len / 8
}

/// Blocks of a chunk, decoded one behind the other.
struct Window<'a> {
    blocks: &'a dyn Blocks,
    block_len: usize,
    /// Bytes of the chunk.
    byte_len: usize,
    /// Bytes up to the end of the last that is wanted.
    front: usize,
    bytes: Vec<u8>,
    held: Range<usize>,
}

impl Window<'_> {
    /// Where a block starts, or the chunk ends.
    fn edge(&self, block: usize) -> usize {
        block.saturating_mul(self.block_len).min(self.byte_len)
    }

    /// The bytes of the held blocks.
    fn range(&self) -> Range<usize> {
        self.edge(self.held.start)..self.edge(self.held.end)
    }

    /// Makes the window hold the bytes of `wanted`, which begins no earlier than what was wanted before. Blocks that it holds are not decoded again.
    fn hold(&mut self, wanted: Range<usize>, scratch: &mut Scratch) -> Result<(), CodecError> {
        let needed = wanted.start / self.block_len..wanted.end.div_ceil(self.block_len);
        let before = self.range();
        if self.held.contains(&needed.start) {
            let from = self.edge(needed.start) - before.start;
            if from > 0 {
                self.bytes.copy_within(from..before.len(), 0);
            }
            self.held.start = needed.start;
        } else {
            self.held = needed.start..needed.start;
        }
        let start = self.edge(needed.start);
        let room = self.edge(needed.end) - start;
        if self.bytes.len() < room {
            let mut larger = scratch.take_len(room);
            let kept = self.range().len();
            if let (Some(to), Some(from)) = (larger.get_mut(..kept), self.bytes.get(..kept)) {
                to.copy_from_slice(from);
            }
            scratch.give(std::mem::replace(&mut self.bytes, larger));
        }
        while self.held.end < needed.end {
            let place = self.edge(self.held.end) - start..self.edge(self.held.end + 1) - start;
            self.decode(self.held.end, place)?;
            self.held.end += 1;
        }
        Ok(())
    }

    /// Decodes a block to its place among the held bytes; of the last one no more than is wanted, if that is less.
    fn decode(&mut self, block: usize, place: Range<usize>) -> Result<(), CodecError> {
        let wanted = self.front.saturating_sub(self.edge(block));
        if is_short(wanted, place.len())
            && let Some(front) = self.bytes.get_mut(place.start..place.start + wanted)
            && let Some(decoded) = self.blocks.decode_front(block, front)
        {
            return decoded;
        }
        self.blocks.decode(block, self.bytes.get_mut(place).unwrap_or_default())
    }
}

/// Decodes what a leaf wants of a chunk into its tile, some rows at a time, and only the blocks that they lie in. `false` when the leaf has no rows, or the chunk is one block that
/// is wanted to its end.
pub(crate) fn scatter_blocks(
    bound: &BoundChunk,
    blocks: &dyn Blocks,
    leaf: &Leaf<'_>,
    tile: &mut TileMut<'_>,
    scratch: &mut Scratch,
) -> Result<bool, CodecError> {
    let gathered = gather(leaf, &bound.layout);
    let Some(rows) = Rows::new(leaf, &gathered, bound.layout.item_size) else { return Ok(false) };
    let steps: Vec<Offsets<'_>> = gathered.steps.iter().map(Step::offsets).collect();
    let (block_len, byte_len, front) = (blocks.block_len().max(1), bound.byte_len, rows.front());
    if block_len >= byte_len && !is_short(front, byte_len) {
        return Ok(false);
    }
    let mut window = Window { blocks, block_len, byte_len, front, bytes: Vec::new(), held: 0..0 };
    let mut scatter = || {
        let mut row = 0;
        while row < rows.count {
            let start = rows.offset + row * rows.step;
            window.hold(start..start + rows.span, scratch)?;
            let held = window.range();
            // All rows that end inside the window.
            let more = (held.end - start - rows.span).checked_div(rows.step).unwrap_or(0);
            let next = rows.count.min(row + 1 + more);
            let decoded = window.bytes.get(..held.len()).unwrap_or_default();
            tile.rows(row..next)?.copy_from(decoded, start - held.start, &steps)?;
            row = next;
        }
        Ok(())
    };
    let result: Result<(), CodecError> = scatter();
    scratch.give(window.bytes);
    result.map(|()| true)
}

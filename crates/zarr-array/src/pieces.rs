//! Large chunks that are decoded from the start to the end: pieces are read one after the other, and rows copied to where they belong as they come, so that no
//! thread needs room for a whole chunk.

use zarr_buffer_api::{BufferError, Offsets, TileMut};
use zarr_codec_api::{Pieces, Scratch};
use zarr_store_api::{ByteRange, StoreError, ValueReader};

use crate::blocks::Rows;
use crate::chunks::BoundChunk;
use crate::geometry::Leaf;
use crate::plan::{Gather, Step, gather};

/// Decoded bytes from which on a chunk is worth several reads.
const LEAST: usize = 1 << 20;
/// Encoded bytes that are read at once.
const PIECE: usize = 256 << 10;
/// Bytes that the threads of a pool may hold together of chunks that are decoded at once because that is faster.
const ROOM: usize = 60 << 20;
/// The largest part of a chunk that a row may be.
const SHARE: usize = 8;

/// What a leaf wants of a chunk that is decoded in pieces.
pub(crate) struct InPieces {
    gathered: Gather,
    rows: Rows,
    pieces: Box<dyn Pieces>,
}

impl InPieces {
    /// `None` where the chunk is small, does not decode in pieces, is better decoded at once, or the leaf has no short rows one behind the other.
    pub(crate) fn new(bound: &BoundChunk, leaf: &Leaf<'_>) -> Option<Self> {
        if bound.byte_len < LEAST {
            return None;
        }
        let gathered = gather(leaf, &bound.layout);
        let rows = Rows::new(leaf, &gathered, bound.layout.item_size)?;
        let short = rows.count > 1 && rows.span <= rows.step && rows.span <= bound.byte_len / SHARE;
        let pieces = short.then(|| bound.chain.pieces())??;
        if pieces.is_slower() && has_room(bound) {
            return None;
        }
        Some(Self { gathered, rows, pieces })
    }

    /// Reads and decodes the chunk in `range` of a value into a tile. `false` when it is absent, bad, or better decoded at once; the tile then holds anything.
    pub(crate) fn read(
        mut self,
        value: &dyn ValueReader,
        range: ByteRange,
        tile: &mut TileMut<'_>,
        scratch: &mut Scratch,
    ) -> Result<bool, StoreError> {
        let (mut start, end) = match range {
            ByteRange::All => (0, u64::MAX),
            ByteRange::Bounded { start, end } => (start, end),
            _ => return Ok(false),
        };
        let steps: Vec<Offsets<'_>> = self.gathered.steps.iter().map(Step::offsets).collect();
        let mut rows = Scatter { rows: &self.rows, steps: &steps, tile, next: 0, at: 0, begun: scratch.take(), copied: Ok(()) };
        let mut piece = scratch.take_len(PIECE);
        let mut read = || {
            while start < end {
                let stop = end.min(start + PIECE as u64);
                let Some(len) = value.get_into(ByteRange::Bounded { start, end: stop }, &mut piece)? else { return Ok(false) };
                let encoded = piece.get(..len).unwrap_or_default();
                if self.pieces.decode(encoded, &mut |decoded| rows.take(decoded)).is_err() {
                    return Ok(false);
                }
                start += len as u64;
                if start < stop {
                    break;
                }
            }
            Ok(true)
        };
        let read = read();
        let all = rows.next == self.rows.count && rows.copied.is_ok();
        scratch.give(piece);
        scratch.give(rows.begun);
        Ok(read? && all && self.pieces.finish().is_ok())
    }
}

/// Whether this thread may hold a chunk, encoded and decoded, when those before it in the pool do, too.
fn has_room(bound: &BoundChunk) -> bool {
    let encoded = usize::try_from(bound.encoded_len.upper()).unwrap_or(usize::MAX);
    let threads = rayon::current_thread_index().unwrap_or(0).saturating_add(1);
    bound.byte_len.saturating_add(encoded).saturating_mul(threads) <= ROOM
}

/// Copies rows out of decoded bytes, which come one behind the other.
struct Scatter<'a, 'tile> {
    rows: &'a Rows,
    steps: &'a [Offsets<'a>],
    tile: &'a mut TileMut<'tile>,
    /// The next row.
    next: usize,
    /// Decoded bytes that came.
    at: usize,
    /// Of the next row, the bytes that came.
    begun: Vec<u8>,
    copied: Result<(), BufferError>,
}

impl Scatter<'_, '_> {
    fn take(&mut self, decoded: &[u8]) {
        let Rows { offset, count, step, span } = *self.rows;
        let end = self.at + decoded.len();
        if !self.begun.is_empty() {
            let more = decoded.len().min(span - self.begun.len());
            self.begun.extend_from_slice(decoded.get(..more).unwrap_or_default());
            if self.begun.len() == span {
                let row = std::mem::take(&mut self.begun);
                self.copy(1, &row, 0);
                self.begun = row;
                self.begun.clear();
            }
        }
        let start = |row: usize| offset + row * step;
        if self.begun.is_empty() && self.next < count {
            if let Some(more) = end.checked_sub(start(self.next) + span) {
                let rows = (count - self.next).min(more / step + 1);
                self.copy(rows, decoded, start(self.next) - self.at);
            }
            if self.next < count && start(self.next) < end {
                self.begun.extend_from_slice(decoded.get(start(self.next) - self.at..).unwrap_or_default());
            }
        }
        self.at = end;
    }

    /// Copies the next rows, of which the first begins at byte `offset` of `decoded`.
    fn copy(&mut self, rows: usize, decoded: &[u8], offset: usize) {
        if let Some(mut tile) = self.tile.rows(self.next..self.next + rows)
            && self.copied.is_ok()
        {
            self.copied = tile.copy_from(decoded, offset, self.steps);
        }
        self.next += rows;
    }
}

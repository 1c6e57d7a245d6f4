//! Chunks that are decoded from the start to the end, and copied to where they belong as they come: large ones, of which pieces are read one after the other, so that no
//! thread needs room for a whole chunk; and those of which the front is wanted, so that what lies behind is neither decoded nor, of large ones, read.

use zarr_buffer_api::{BufferError, Layout, Offsets, TileMut};
use zarr_codec_api::{Pieces, Scratch};
use zarr_store_api::{ByteRange, StoreError, ValueReader};

use crate::blocks::Rows;
use crate::chunks::BoundChunk;
use crate::geometry::{Elements, Leaf};
use crate::plan::{Gather, Step, gather};

/// Decoded bytes from which on a chunk is worth several reads.
const LEAST: usize = 1 << 20;
/// Encoded bytes that are read at once.
const PIECE: usize = 256 << 10;
/// Bytes that the threads of a pool may hold together of chunks that are decoded at once because that is faster.
const ROOM: usize = 60 << 20;
/// The largest part of a chunk that a row may be, and the smallest that is worth leaving out.
const SHARE: usize = 8;
/// Decoded bytes that are too few to be left out: of a block of zstd.
const BLOCK: usize = 128 << 10;

/// What a leaf wants of a chunk that is decoded in pieces.
pub(crate) struct InPieces {
    wanted: Wanted,
    pieces: Box<dyn Pieces>,
}

/// Where the wanted elements lie in the decoded bytes.
struct Wanted {
    gathered: Gather,
    /// Rows, each to be copied when it is there; `None`: all to be copied at once.
    rows: Option<Rows>,
    /// Bytes up to the end of the last.
    front: usize,
}

impl InPieces {
    /// To decode the front of a chunk. `None` where that leaves out too little, or would take more memory than the whole.
    pub(crate) fn of_front(bound: &BoundChunk, leaf: &Leaf<'_>) -> Option<Self> {
        let front = front(leaf, &bound.layout);
        let behind = bound.byte_len.saturating_sub(front);
        if behind < BLOCK.max(bound.byte_len / SHARE) {
            return None;
        }
        let pieces = bound.chain.pieces(front).filter(|pieces| !pieces.is_slower())?;
        let gathered = gather(leaf, &bound.layout);
        let rows = short_rows(bound, leaf, &gathered);
        // Without rows, all that is wanted is held twice.
        if rows.is_none() && behind < front.saturating_add(BLOCK) {
            return None;
        }
        Some(Self { wanted: Wanted { gathered, rows, front }, pieces })
    }

    /// To decode a chunk while it is read. `None` where it is small, does not decode in pieces, is better decoded at once, or the leaf wants all of it and has no
    /// short rows one behind the other.
    pub(crate) fn of_read(bound: &BoundChunk, leaf: &Leaf<'_>) -> Option<Self> {
        if bound.byte_len < LEAST {
            return None;
        }
        Self::of_front(bound, leaf).or_else(|| {
            let gathered = gather(leaf, &bound.layout);
            let rows = short_rows(bound, leaf, &gathered).filter(|rows| rows.count > 1)?;
            let pieces = bound.chain.pieces(bound.byte_len)?;
            let at_once = pieces.is_slower() && has_room(bound);
            let wanted = Wanted { gathered, rows: Some(rows), front: bound.byte_len };
            (!at_once).then_some(Self { wanted, pieces })
        })
    }

    /// Decodes a chunk into a tile. `false` when it is bad, or better decoded at once; the tile then holds anything.
    pub(crate) fn decode(mut self, encoded: &[u8], tile: &mut TileMut<'_>, scratch: &mut Scratch) -> bool {
        let steps = self.wanted.steps();
        let mut scatter = Scatter::new(&self.wanted, &steps, tile, scratch.take());
        let good = self.pieces.decode(encoded, &mut |decoded| scatter.take(decoded)).is_ok();
        let all = scatter.finish();
        scratch.give(scatter.begun);
        good && all && self.pieces.finish().is_ok()
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
        let steps = self.wanted.steps();
        let mut piece = scratch.take_len(PIECE);
        let mut scatter = Scatter::new(&self.wanted, &steps, tile, scratch.take());
        let mut read = || {
            while start < end && !self.pieces.is_done() {
                let stop = end.min(start + PIECE as u64);
                let Some(len) = value.get_into(ByteRange::Bounded { start, end: stop }, &mut piece)? else { return Ok(false) };
                let encoded = piece.get(..len).unwrap_or_default();
                if self.pieces.decode(encoded, &mut |decoded| scatter.take(decoded)).is_err() {
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
        let all = scatter.finish();
        scratch.give(piece);
        scratch.give(scatter.begun);
        Ok(read? && all && self.pieces.finish().is_ok())
    }
}

impl Wanted {
    fn steps(&self) -> Vec<Offsets<'_>> {
        self.gathered.steps.iter().map(Step::offsets).collect()
    }
}

/// Decoded bytes of a chunk up to the end of the last element that a leaf wants.
fn front(leaf: &Leaf<'_>, layout: &Layout) -> usize {
    // Of elements of one decoded chunk, whose size was checked when its chain was bound.
    let last = |elements: &Elements| match *elements {
        Elements::Steps { start, step, len } => start.saturating_add_signed(step.max(0).saturating_mul(len.saturating_sub(1) as i64)),
        Elements::List(ref list) => list.iter().copied().max().unwrap_or(0),
    };
    let lasts = leaf.parts.iter().zip(&layout.strides).map(|(part, stride)| last(&part.elements) as usize * stride.unsigned_abs());
    lasts.sum::<usize>() + layout.item_size
}

/// The rows of a leaf, if they lie one behind the other, each no more than a part of the chunk.
fn short_rows(bound: &BoundChunk, leaf: &Leaf<'_>, gathered: &Gather) -> Option<Rows> {
    let rows = Rows::new(leaf, gathered, bound.layout.item_size)?;
    ((rows.count == 1 || rows.span <= rows.step) && rows.span <= bound.byte_len / SHARE).then_some(rows)
}

/// Whether this thread may hold a chunk, encoded and decoded, when those before it in the pool do, too.
fn has_room(bound: &BoundChunk) -> bool {
    let encoded = usize::try_from(bound.encoded_len.upper()).unwrap_or(usize::MAX);
    let threads = rayon::current_thread_index().unwrap_or(0).saturating_add(1);
    bound.byte_len.saturating_add(encoded).saturating_mul(threads) <= ROOM
}

/// Copies elements out of decoded bytes, which come one behind the other.
struct Scatter<'a, 'tile> {
    wanted: &'a Wanted,
    steps: &'a [Offsets<'a>],
    tile: &'a mut TileMut<'tile>,
    /// The next row.
    next: usize,
    /// Decoded bytes that came.
    at: usize,
    /// Of the next row, the bytes that came; without rows, all that came.
    begun: Vec<u8>,
    copied: Result<(), BufferError>,
}

impl<'a, 'tile> Scatter<'a, 'tile> {
    fn new(wanted: &'a Wanted, steps: &'a [Offsets<'a>], tile: &'a mut TileMut<'tile>, begun: Vec<u8>) -> Self {
        Self { wanted, steps, tile, next: 0, at: 0, begun, copied: Ok(()) }
    }

    fn take(&mut self, decoded: &[u8]) {
        match &self.wanted.rows {
            Some(rows) => self.take_rows(rows, decoded),
            // Without room for it, the whole has none either, and says so.
            None if self.begun.is_empty() && self.begun.try_reserve_exact(self.wanted.front).is_err() => {}
            None => {
                let more = decoded.len().min(self.wanted.front - self.begun.len());
                self.begun.extend_from_slice(decoded.get(..more).unwrap_or_default());
            }
        }
    }

    fn take_rows(&mut self, rows: &Rows, decoded: &[u8]) {
        let Rows { offset, count, step, span } = *rows;
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
                let rows = (count - self.next).min(more.checked_div(step).unwrap_or(0) + 1);
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
        if self.copied.is_ok() {
            let tile = self.tile.rows(self.next..self.next + rows);
            self.copied = tile.and_then(|mut tile| tile.copy_from(decoded, offset, self.steps));
        }
        self.next += rows;
    }

    /// Whether every element came and was copied.
    fn finish(&mut self) -> bool {
        match &self.wanted.rows {
            Some(rows) => self.next == rows.count && self.copied.is_ok(),
            None => {
                let all = self.begun.len() == self.wanted.front;
                all && self.tile.copy_from(&self.begun, self.wanted.gathered.offset, self.steps).is_ok()
            }
        }
    }
}

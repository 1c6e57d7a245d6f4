//! Plan: what to ask of a store, and what to do with the answers. No I/O.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use zarr_buffer_api::{AxisTiles, Layout, Offsets, TileMut};
use zarr_codec_api::{CodecError, Scratch, Target, VariableData};
use zarr_meta::ChunkKeyEncoding;
use zarr_store_api::{ByteRange, StoreKey, StorePrefix, Version};

use crate::ArrayError;
use crate::blocks::scatter_blocks;
use crate::chunks::{BoundChunk, Chunks};
use crate::geometry::{Cells, Cut, Elements, Leaf};
use crate::pieces::InPieces;
use crate::selection::Resolved;
use crate::shard_index::{IndexCache, ShardIndex, entry_number};

/// How chunks are named in a store.
#[derive(Debug, Clone)]
pub(crate) struct ChunkKeys {
    pub(crate) prefix: StorePrefix,
    pub(crate) encoding: ChunkKeyEncoding,
}

impl ChunkKeys {
    pub(crate) fn key(&self, chunk: &[u64]) -> Result<StoreKey, ArrayError> {
        Ok(self.prefix.key(&self.encoding.encode(chunk))?)
    }
}

/// How ranges of one value are put together into requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Coalescing {
    /// The most bytes between two wanted ranges that are read along rather than asked around.
    pub gap: u64,
    /// The most bytes of one request that are read along, as a share of those wanted, in percent.
    pub waste: u8,
    /// The most bytes in one request, unless a single inner chunk has more.
    pub request: u64,
}

/// What of an array is wanted, cut into parts of chunks.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) chunks: Arc<Chunks>,
    pub(crate) keys: ChunkKeys,
    /// The shape of the array.
    pub(crate) shape: Vec<u64>,
    pub(crate) cut: Cut,
    pub(crate) coalescing: Coalescing,
    /// Indexes that need not be fetched again.
    pub(crate) indexes: Option<Arc<IndexCache>>,
    /// Where the data to write lie, over [`Cut::full_shape`]; `None`: in C order without gaps.
    pub(crate) data_layout: Option<Layout>,
    /// Of a write: whether the stored array may have another shape, so that what chunks hold outside of this one is kept. `None`: nobody has looked.
    pub(crate) outgrown: Option<bool>,
}

/// A shard, or part of one, whose index is wanted.
#[derive(Debug, Clone)]
pub(crate) struct ShardNode {
    chunk: Arc<[u64]>,
    key: StoreKey,
    level: usize,
    /// Where the shard lies in the stored value; `None`: it is the value.
    base: Option<Range<u64>>,
    cells: Cells,
    /// Of the value, where the store tells.
    pub(crate) version: Option<Version>,
}

/// One innermost chunk, wanted in part or whole.
#[derive(Debug, Clone)]
pub(crate) struct ChunkNode {
    pub(crate) chunk: Arc<[u64]>,
    pub(crate) key: StoreKey,
    pub(crate) cells: Cells,
}

/// What to ask a store for.
#[derive(Debug)]
pub(crate) struct Fetch {
    pub(crate) key: StoreKey,
    pub(crate) ranges: Vec<ByteRange>,
    /// Of the value whose index says so, where the store tells: other versions have something else there.
    pub(crate) version: Option<Version>,
    pub(crate) then: Then,
}

/// What the bytes are for.
#[derive(Debug)]
pub(crate) enum Then {
    Index(ShardNode),
    Chunks(Vec<ChunkPart>),
}

/// One innermost chunk in the bytes of a fetch.
#[derive(Debug)]
pub(crate) struct ChunkPart {
    /// Which of the ranges.
    pub(crate) range: usize,
    /// Where in that range; `None`: all of it.
    pub(crate) within: Option<Range<usize>>,
    /// Of a chunk whose encoded bytes are its decoded bytes: where in it these bytes start.
    pub(crate) skipped: usize,
    /// Whether the bytes are a part of the chunk, from `skipped` on.
    pub(crate) partial: bool,
    pub(crate) node: ChunkNode,
}

/// The next steps of a plan.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    pub(crate) fetches: Vec<Fetch>,
    /// Chunks that are absent: to be filled.
    pub(crate) absent: Vec<ChunkNode>,
}

impl Plan {
    pub(crate) fn new(
        chunks: Arc<Chunks>,
        keys: ChunkKeys,
        shape: &[u64],
        resolved: &Resolved,
        coalescing: Coalescing,
    ) -> Result<Self, ArrayError> {
        let cut = chunks.cuts.cut(shape, resolved)?;
        if cut.chunk_count().is_none() {
            return Err(ArrayError::selection("the selection touches more chunks than fit the address space"));
        }
        Ok(Self { chunks, keys, shape: shape.to_vec(), cut, coalescing, indexes: None, data_layout: None, outgrown: None })
    }

    /// Chunks of the grid that are touched.
    pub(crate) fn chunk_count(&self) -> usize {
        self.cut.chunk_count().unwrap_or(0)
    }

    pub(crate) fn tiles(&self) -> Vec<AxisTiles> {
        self.cut.tiles()
    }

    /// Whether a write sets elements outside of the shape, in chunks that the shape cuts, unless they are kept.
    pub(crate) fn sets_outside(&self) -> bool {
        self.cut.covers_cut(&self.chunks.cuts.grid, &self.shape)
    }

    /// Whether a write sets every element of an innermost chunk that it must not keep.
    pub(crate) fn covers_leaf(&self, leaf: &Leaf<'_>) -> bool {
        let keeps = self.outgrown == Some(true);
        !leaf.points && leaf.parts.iter().all(|part| part.elements.covers(if keeps { part.chunk_len } else { part.inside }))
    }

    /// Where the elements of the result lie, in C order, or those of the data to write; elements of variable length count as one byte each.
    pub(crate) fn output_layout(&self) -> Result<Layout, ArrayError> {
        if let Some(layout) = &self.data_layout {
            return Ok(layout.clone());
        }
        Ok(Layout::contiguous(&self.cut.full_shape(), self.chunks.item_size().unwrap_or(1))?)
    }

    /// Whether each chunk has parts all over the result, so that threads at work on different chunks meet in the same pages: several would have the system
    /// clear the same huge page, of which all but one are thrown away.
    pub(crate) fn is_spread(&self, output: &Layout) -> bool {
        /// Of some huge pages.
        const FAR: usize = 16 << 20;
        let (mut span, mut bytes) = (output.item_size, output.item_size);
        for (tiles, &stride) in self.cut.tiles().iter().zip(&output.strides) {
            let AxisTiles::Ranges(ranges) = tiles else { return false };
            let len = ranges.iter().map(Range::len).max().unwrap_or(0);
            span = span.saturating_add(len.saturating_sub(1).saturating_mul(stride.unsigned_abs()));
            bytes = bytes.saturating_mul(len);
        }
        span >= FAR && span / 2 >= bytes
    }

    /// The first step for the `index`-th chunk that is touched. If it is a shard, `look` says which version of its value is going to be read, if that is known.
    pub(crate) fn start(
        &self,
        index: usize,
        look: impl FnOnce(&StoreKey) -> Result<Option<Version>, ArrayError>,
    ) -> Result<Steps, ArrayError> {
        let (chunk, cells) = self.cut.chunk(index);
        let chunk: Arc<[u64]> = chunk.into();
        let key = self.keys.key(&chunk)?;
        let mut steps = Steps::default();
        if self.chunks.levels.is_empty() {
            let node = ChunkNode { chunk, key: key.clone(), cells };
            let (range, skipped, partial) = self.range_of(&node, None).map_err(|error| self.error(&node, error))?;
            let part = ChunkPart { range: 0, within: None, skipped, partial, node };
            steps.fetches.push(Fetch { key, ranges: vec![range], version: None, then: Then::Chunks(vec![part]) });
        } else {
            let version = look(&key)?;
            self.enter(ShardNode { chunk, key, level: 0, base: None, cells, version }, &mut steps)?;
        }
        Ok(steps)
    }

    /// As [`Plan::start`], for a store that says by its answers whether a value is of the version that indexes are kept of.
    pub(crate) fn start_kept(&self, index: usize) -> Result<Steps, ArrayError> {
        let kept = self.start(index, |key| Ok(self.indexes.as_ref().and_then(|indexes| indexes.version(key))))?;
        // If nothing is to be asked for, nobody would say so.
        if kept.fetches.is_empty() { self.start(index, |_| Ok(None)) } else { Ok(kept) }
    }

    /// The steps into a shard: its index is at hand, or to be fetched.
    fn enter(&self, node: ShardNode, steps: &mut Steps) -> Result<(), ArrayError> {
        let kept = self.indexes.as_ref().zip(node.version.as_ref());
        match kept.and_then(|(indexes, version)| indexes.get(&node.key, node.base.as_ref(), version)) {
            Some(index) => self.use_index(&node, &index, steps).map_err(|error| self.shard_error(&node, error))?,
            None => {
                let fetch = self.fetch_index(node)?;
                steps.fetches.push(fetch);
                Ok(())
            }
        }
    }

    fn fetch_index(&self, node: ShardNode) -> Result<Fetch, ArrayError> {
        let range = self.index_range(&node).map_err(|error| self.shard_error(&node, error))?;
        Ok(Fetch { key: node.key.clone(), ranges: vec![range], version: node.version.clone(), then: Then::Index(node) })
    }

    fn index_range(&self, node: &ShardNode) -> Result<ByteRange, CodecError> {
        let (level, cells) = self.level(node)?;
        let stored: Vec<u64> = level.order.iter().map(|&axis| cells.get(axis).copied().unwrap_or(0)).collect();
        level.index.bound(&stored)?.range(level.index.location, node.base.as_ref())
    }

    fn level(&self, node: &ShardNode) -> Result<(&crate::chunks::ShardLevel, Vec<u64>), CodecError> {
        let level = self.chunks.levels.get(node.level).ok_or_else(|| CodecError::metadata("sharding_indexed", "no such level"))?;
        Ok((level, self.chunks.cells_at(&node.chunk, node.level)))
    }

    /// The next steps, given the bytes of a shard's index; `None` when the shard is absent.
    pub(crate) fn supply_index(&self, node: &ShardNode, encoded: Option<&[u8]>, scratch: &mut Scratch) -> Result<Steps, ArrayError> {
        match encoded {
            None => {
                let mut steps = Steps::default();
                self.absent(node.level, node, &mut steps.absent);
                Ok(steps)
            }
            Some(encoded) => {
                let index = self.decode_index(node, encoded, scratch).map_err(|error| self.shard_error(node, error))?;
                if let (Some(indexes), Some(version)) = (&self.indexes, &node.version) {
                    indexes.put(&node.key, node.base.as_ref(), version, &index);
                }
                let mut steps = Steps::default();
                self.use_index(node, &index, &mut steps).map_err(|error| self.shard_error(node, error))??;
                Ok(steps)
            }
        }
    }

    fn decode_index(&self, node: &ShardNode, encoded: &[u8], scratch: &mut Scratch) -> Result<Arc<ShardIndex>, CodecError> {
        let (level, cells) = self.level(node)?;
        let stored: Vec<u64> = level.order.iter().map(|&axis| cells.get(axis).copied().unwrap_or(0)).collect();
        Ok(Arc::new(level.index.bound(&stored)?.decode(encoded, scratch)?))
    }

    fn use_index(&self, node: &ShardNode, index: &ShardIndex, steps: &mut Steps) -> Result<Result<(), ArrayError>, CodecError> {
        let (level, cells) = self.level(node)?;
        let len = node.base.as_ref().map(|base| base.end - base.start);
        let start = node.base.as_ref().map_or(0, |base| base.start);
        let innermost = node.level + 1 == self.chunks.levels.len();
        let mut wanted: Vec<(Range<u64>, usize, bool, ChunkNode)> = Vec::new();
        for (cell, inner) in self.cut.split(&node.cells, node.level) {
            let inner = ShardNode { level: node.level + 1, cells: inner, ..node.clone() };
            let Some(entry) = index.get(entry_number(&cell, &cells, &level.order), len)? else {
                self.absent(inner.level, &inner, &mut steps.absent);
                continue;
            };
            let place = || Some(start.checked_add(entry.start)?..start.checked_add(entry.end)?);
            let range = place().ok_or_else(|| CodecError::format("sharding_indexed", "an entry of the index overflows"))?;
            if innermost {
                let chunk = ChunkNode { chunk: inner.chunk, key: inner.key, cells: inner.cells };
                let (wanted_range, skipped, partial) = self.range_of(&chunk, Some(&range))?;
                let range = match wanted_range {
                    ByteRange::Bounded { start, end } => start..end,
                    _ => range,
                };
                wanted.push((range, skipped, partial, chunk));
            } else {
                if let Err(error) = self.enter(ShardNode { base: Some(range), ..inner }, steps) {
                    return Ok(Err(error));
                }
            }
        }
        self.coalesce(node, wanted, &mut steps.fetches);
        Ok(Ok(()))
    }

    /// Cuts a fetch of many inner chunks into some of at most `most` bytes each (or of one inner chunk), for threads that read side by side.
    pub(crate) fn pieces(key: &StoreKey, ranges: &[ByteRange], parts: Vec<ChunkPart>, most: usize) -> Vec<Fetch> {
        let start = |index: usize| match ranges.get(index) {
            Some(ByteRange::Bounded { start, .. }) => *start,
            _ => 0,
        };
        let mut pieces: Vec<Fetch> = Vec::new();
        // Which range the last piece is of, and where its bytes begin in that.
        let (mut range, mut first) = (usize::MAX, 0usize);
        for part in parts {
            let within = part.within.clone().unwrap_or(0..0);
            let end = start(part.range) + within.end as u64;
            match pieces.last_mut() {
                // Parts come in the order of their bytes.
                Some(Fetch { ranges, then: Then::Chunks(parts), .. })
                    if part.range == range && within.end.saturating_sub(first) <= most =>
                {
                    if let Some(ByteRange::Bounded { end: last, .. }) = ranges.first_mut() {
                        *last = end.max(*last);
                    }
                    parts.push(ChunkPart { range: 0, within: Some(within.start - first..within.end - first), ..part });
                }
                _ => {
                    (range, first) = (part.range, within.start);
                    let bytes = ByteRange::Bounded { start: start(range) + first as u64, end };
                    let part = ChunkPart { range: 0, within: Some(0..within.len()), ..part };
                    pieces.push(Fetch { key: key.clone(), ranges: vec![bytes], version: None, then: Then::Chunks(vec![part]) });
                }
            }
        }
        pieces
    }

    /// Puts neighbouring inner chunks together, up to the size of a request.
    fn coalesce(&self, node: &ShardNode, mut wanted: Vec<(Range<u64>, usize, bool, ChunkNode)>, fetches: &mut Vec<Fetch>) {
        wanted.sort_by_key(|(range, ..)| (range.start, range.end));
        let mut ranges: Vec<Range<u64>> = Vec::new();
        let mut parts: Vec<ChunkPart> = Vec::new();
        // Bytes of the request at hand: wanted, and between those.
        let (mut useful, mut wasted) = (0u64, 0u64);
        let mut flush = |ranges: &mut Vec<Range<u64>>, parts: &mut Vec<ChunkPart>| {
            if !parts.is_empty() {
                let ranges = ranges.drain(..).map(|range| ByteRange::Bounded { start: range.start, end: range.end }).collect();
                let (key, version) = (node.key.clone(), node.version.clone());
                fetches.push(Fetch { key, ranges, version, then: Then::Chunks(std::mem::take(parts)) });
            }
        };
        for (range, skipped, partial, node) in wanted {
            let len = range.end - range.start;
            if !parts.is_empty() && useful.saturating_add(wasted).saturating_add(len) > self.coalescing.request {
                flush(&mut ranges, &mut parts);
                (useful, wasted) = (0, 0);
            }
            let joined = ranges.last_mut().filter(|last| {
                let gap = range.start.saturating_sub(last.end);
                let allowed = useful.saturating_add(len) / 100 * u64::from(self.coalescing.waste);
                gap == 0 || (gap <= self.coalescing.gap && wasted.saturating_add(gap) <= allowed)
            });
            match joined {
                Some(last) => {
                    wasted = wasted.saturating_add(range.start.saturating_sub(last.end));
                    useful = useful.saturating_add(range.end.saturating_sub(range.start.max(last.end)));
                    last.end = last.end.max(range.end);
                }
                None => {
                    useful = useful.saturating_add(len);
                    ranges.push(range.clone());
                }
            }
            let index = ranges.len() - 1;
            let start = ranges.last().map_or(0, |last| last.start);
            // A request is bounded and in memory, so that places in it fit the address space.
            let within = (range.start - start) as usize..(range.end - start) as usize;
            parts.push(ChunkPart { range: index, within: Some(within), skipped, partial, node });
        }
        flush(&mut ranges, &mut parts);
    }

    /// The bytes wanted of a chunk that lies at `base` of its value (`None`: it is the value): all, unless any part can be read on its own.
    fn range_of(&self, node: &ChunkNode, base: Option<&Range<u64>>) -> Result<(ByteRange, usize, bool), CodecError> {
        let whole = base.map_or(ByteRange::All, |base| ByteRange::Bounded { start: base.start, end: base.end });
        let bound = self.chunks.bound_at(&node.chunk)?;
        if !bound.verbatim {
            return Ok((whole, 0, false));
        }
        let start = base.map_or(0, |base| base.start);
        if base.is_some_and(|base| base.end - base.start != bound.byte_len as u64) {
            return Ok((whole, 0, false));
        }
        let mut span: Option<Range<usize>> = None;
        for leaf in self.cut.leaves(&node.cells) {
            if leaf.points || leaf.parts.iter().any(|part| matches!(part.elements, Elements::List(_))) {
                return Ok((whole, 0, false));
            }
            let reached = reach(&leaf, &bound);
            span = Some(span.map_or(reached.clone(), |span| span.start.min(reached.start)..span.end.max(reached.end)));
        }
        let span = span.unwrap_or(0..0);
        // Small savings are not worth a check that the chunk has the right size.
        if span.len() >= bound.byte_len - bound.byte_len / 4 {
            return Ok((whole, 0, false));
        }
        Ok((ByteRange::Bounded { start: start + span.start as u64, end: start + span.end as u64 }, span.start, true))
    }

    /// All innermost chunks of an absent shard.
    fn absent(&self, level: usize, node: &ShardNode, absent: &mut Vec<ChunkNode>) {
        if level == self.chunks.levels.len() {
            absent.push(ChunkNode { chunk: Arc::clone(&node.chunk), key: node.key.clone(), cells: node.cells.clone() });
            return;
        }
        for (_, cells) in self.cut.split(&node.cells, level) {
            self.absent(level + 1, &ShardNode { cells, ..node.clone() }, absent);
        }
    }

    /// The chain of a chunk, and what of it is wanted.
    pub(crate) fn bound(&self, node: &ChunkNode) -> Result<Cow<'_, Arc<BoundChunk>>, ArrayError> {
        self.chunks.bound_at(&node.chunk).map_err(|error| self.error(node, error))
    }

    pub(crate) fn leaves<'a>(&'a self, node: &ChunkNode) -> Vec<Leaf<'a>> {
        self.cut.leaves(&node.cells)
    }

    /// Decodes a chunk into a tile of the result.
    pub(crate) fn decode(
        &self,
        part: &ChunkPart,
        encoded: &[u8],
        leaf: &Leaf<'_>,
        tile: &mut TileMut<'_>,
        scratch: &mut Scratch,
    ) -> Result<(), ArrayError> {
        let bound = self.bound(&part.node)?;
        self.decode_bound(&bound, part, encoded, leaf, tile, scratch).map_err(|error| self.error(&part.node, of_page(error, encoded)))
    }

    fn decode_bound(
        &self,
        bound: &BoundChunk,
        part: &ChunkPart,
        encoded: &[u8],
        leaf: &Leaf<'_>,
        tile: &mut TileMut<'_>,
        scratch: &mut Scratch,
    ) -> Result<(), CodecError> {
        if part.partial {
            return scatter(bound, encoded, part.skipped, leaf, tile);
        }
        if covers_in_order(bound, leaf)
            && let Some(contiguous) = tile.as_contiguous()
            && contiguous.len() == bound.byte_len
        {
            return bound.chain.decode(encoded, Target::Exact(contiguous), scratch);
        }
        if let Some(view) = bound.chain.view(encoded) {
            let view = view?;
            if view.len() != bound.byte_len {
                return Err(CodecError::size("bytes", bound.byte_len, view.len()));
            }
            return scatter(bound, view, 0, leaf, tile);
        }
        if let Some(blocks) = bound.chain.blocks(encoded)
            && scatter_blocks(bound, &*blocks, leaf, tile, scratch)?
        {
            return Ok(());
        }
        if let Some(pieces) = InPieces::of_front(bound, leaf)
            && pieces.decode(encoded, tile, scratch)
        {
            return Ok(());
        }
        let mut decoded = scratch.try_take_len(bound.byte_len, "chunk")?;
        let result =
            bound.chain.decode(encoded, Target::Exact(&mut decoded), scratch).and_then(|()| scatter(bound, &decoded, 0, leaf, tile));
        scratch.give(decoded);
        result
    }

    /// Decodes a chunk of elements of variable length.
    pub(crate) fn decode_variable(&self, node: &ChunkNode, encoded: &[u8], scratch: &mut Scratch) -> Result<VariableData, ArrayError> {
        let bound = self.bound(node)?;
        let mut elements = VariableData::new();
        let limit = usize::try_from(self.chunks.registry().limits().variable_chunk).unwrap_or(usize::MAX);
        bound
            .chain
            .decode(encoded, Target::Variable { elements: &mut elements, limit }, scratch)
            .map_err(|error| self.error(node, of_page(error, encoded)))?;
        let expected = bound.layout.len();
        if elements.len() != expected {
            let message = format!("{} elements in a chunk of {expected}", elements.len());
            return Err(self.error(node, CodecError::format("chunk", message)));
        }
        Ok(elements)
    }

    pub(crate) fn error(&self, node: &ChunkNode, source: CodecError) -> ArrayError {
        let chunk = self.leaves(node).first().map(|leaf| leaf_coordinates(leaf)).unwrap_or_else(|| node.chunk.to_vec());
        ArrayError::Chunk { key: node.key.clone(), chunk, source }
    }

    fn shard_error(&self, node: &ShardNode, source: CodecError) -> ArrayError {
        ArrayError::Chunk { key: node.key.clone(), chunk: node.chunk.to_vec(), source }
    }
}

/// Says of bytes that do not decode what they look like, where they are what servers and proxies answer in place of a value.
fn of_page(error: CodecError, encoded: &[u8]) -> CodecError {
    let text = encoded.trim_ascii_start();
    let begins = |with: &str| text.get(..with.len()).is_some_and(|start| start.eq_ignore_ascii_case(with.as_bytes()));
    match ["<!DOCTYPE", "<html", "<?xml"].into_iter().find(|with| begins(with)) {
        Some(with) => {
            let message = format!("the stored bytes begin with `{with}`: a page of HTML or XML in place of a chunk");
            CodecError::new(error.kind(), error.codec(), message).with_source(error)
        }
        None => error,
    }
}

/// Coordinates of an innermost chunk, counted over the whole array.
fn leaf_coordinates(leaf: &Leaf<'_>) -> Vec<u64> {
    leaf.parts
        .iter()
        .map(|part| if part.cells.is_empty() { part.chunk } else { part.origin.checked_div(part.chunk_len).unwrap_or(0) })
        .collect()
}

/// Whether a part of the result is the whole chunk, element for element, as it is decoded.
pub(crate) fn covers_in_order(bound: &BoundChunk, leaf: &Leaf<'_>) -> bool {
    bound.layout.is_contiguous() && covers_all(leaf)
}

/// Whether a part of the result is the whole chunk, along each axis in its order.
pub(crate) fn covers_all(leaf: &Leaf<'_>) -> bool {
    !leaf.points
        && leaf.parts.iter().all(
            |part| matches!(part.elements, Elements::Steps { start: 0, step, len } if len == part.chunk_len && (step == 1 || len == 1)),
        )
}

/// The bytes of a decoded chunk between the first and the last element wanted.
fn reach(leaf: &Leaf<'_>, bound: &BoundChunk) -> Range<usize> {
    let (mut low, mut high) = (0usize, 0usize);
    for (part, &stride) in leaf.parts.iter().zip(&bound.layout.strides) {
        let stride = stride.unsigned_abs();
        let (first, last) = match &part.elements {
            Elements::Steps { start, step, len } => {
                let end = start.saturating_add_signed(step.saturating_mul(*len as i64 - 1));
                ((*start).min(end), (*start).max(end))
            }
            Elements::List(list) => (list.iter().min().copied().unwrap_or(0), list.iter().max().copied().unwrap_or(0)),
        };
        low += first as usize * stride;
        high += last as usize * stride;
    }
    low..high + bound.layout.item_size
}

/// Where the elements of a leaf lie in the bytes of its decoded chunk: an offset, and steps for each axis of the tile.
pub(crate) struct Gather {
    pub(crate) offset: usize,
    pub(crate) steps: Vec<Step>,
}

/// Steps along one axis of a tile.
pub(crate) enum Step {
    Stride(isize),
    List(Vec<isize>),
}

impl Step {
    pub(crate) fn offsets(&self) -> Offsets<'_> {
        match self {
            Self::Stride(stride) => Offsets::Stride(*stride),
            Self::List(list) => Offsets::List(list),
        }
    }

    pub(crate) fn at(&self, index: usize) -> isize {
        match self {
            Self::Stride(stride) => stride * index as isize,
            Self::List(list) => list.get(index).copied().unwrap_or(0),
        }
    }
}

pub(crate) fn gather(leaf: &Leaf<'_>, layout: &Layout) -> Gather {
    // Strides and elements lie inside one decoded chunk, whose size was checked when its chain was bound.
    if leaf.points {
        let count = leaf.parts.first().map_or(1, |part| part.elements.len());
        let mut offsets = vec![0isize; count];
        for (part, &stride) in leaf.parts.iter().zip(&layout.strides) {
            if let Elements::List(list) = &part.elements {
                offsets.iter_mut().zip(list.iter()).for_each(|(offset, &element)| *offset += element as isize * stride);
            }
        }
        return Gather { offset: 0, steps: vec![Step::List(offsets)] };
    }
    let mut offset = 0usize;
    let steps = leaf
        .parts
        .iter()
        .zip(&layout.strides)
        .map(|(part, &stride)| match &part.elements {
            Elements::Steps { start, step, .. } => {
                offset += *start as usize * stride.unsigned_abs();
                Step::Stride(stride.wrapping_mul(*step as isize))
            }
            Elements::List(list) => Step::List(list.iter().map(|&element| element as isize * stride).collect()),
        })
        .collect();
    Gather { offset, steps }
}

/// Where the elements of a leaf lie in the result (or in the data to write).
pub(crate) fn place(leaf: &Leaf<'_>, tiles: &[AxisTiles], layout: &Layout) -> Gather {
    let mut offset = layout.offset;
    let steps = leaf
        .tile
        .iter()
        .zip(tiles)
        .zip(&layout.strides)
        .map(|((&index, tiles), &stride)| match tiles {
            AxisTiles::Ranges(ranges) => {
                // Positions of what is in memory.
                offset = offset.wrapping_add_signed(ranges.get(index).map_or(0, |range| range.start as isize) * stride);
                Step::Stride(stride)
            }
            AxisTiles::Lists(lists) => {
                Step::List(lists.get(index).map_or(Vec::new(), |list| list.iter().map(|&at| at as isize * stride).collect()))
            }
        })
        .collect();
    Gather { offset, steps }
}

/// Elements of a leaf along each axis of its tile.
pub(crate) fn tile_lens(leaf: &Leaf<'_>) -> Vec<usize> {
    if leaf.points {
        return vec![leaf.parts.first().map_or(1, |part| part.elements.len())];
    }
    leaf.parts.iter().map(|part| part.elements.len()).collect()
}

/// Calls `each` with the places of every element on two sides.
pub(crate) fn for_each_pair(lens: &[usize], a: &Gather, b: &Gather, each: &mut impl FnMut(usize, usize)) {
    fn walk(lens: &[usize], a: (&[Step], isize), b: (&[Step], isize), each: &mut impl FnMut(usize, usize)) {
        let (Some((&len, lens)), Some((first_a, rest_a)), Some((first_b, rest_b))) =
            (lens.split_first(), a.0.split_first(), b.0.split_first())
        else {
            each(a.1 as usize, b.1 as usize);
            return;
        };
        for index in 0..len {
            walk(lens, (rest_a, a.1 + first_a.at(index)), (rest_b, b.1 + first_b.at(index)), each);
        }
    }
    walk(lens, (&a.steps, a.offset as isize), (&b.steps, b.offset as isize), each);
}

/// Copies what is wanted of a decoded chunk, of which `decoded` starts at byte `skipped`, into a tile.
fn scatter(bound: &BoundChunk, decoded: &[u8], skipped: usize, leaf: &Leaf<'_>, tile: &mut TileMut<'_>) -> Result<(), CodecError> {
    let Gather { offset, steps } = gather(leaf, &bound.layout);
    let steps: Vec<Offsets<'_>> = steps.iter().map(Step::offsets).collect();
    let offset =
        offset.checked_sub(skipped).ok_or_else(|| CodecError::parameter("bytes", "a part of a chunk starts behind its first element"))?;
    Ok(tile.copy_from(decoded, offset, &steps)?)
}

/// What a store answers for a shard's index; `None`: there is no such shard. An answer without a piece is one without bytes.
pub(crate) fn index_of(ranges: Option<&[Bytes]>) -> Option<&[u8]> {
    ranges.map(|ranges| ranges.first().map_or(&[][..], |bytes| bytes))
}

/// The bytes of one chunk among those of a fetch.
pub(crate) fn bytes_of<'a>(part: &ChunkPart, ranges: &'a [Bytes]) -> Option<&'a [u8]> {
    let bytes = ranges.get(part.range)?;
    match &part.within {
        None => Some(bytes),
        Some(within) => bytes.get(within.clone()),
    }
}

//! What a device encodes of the elements that lie on it, before the host encodes the rest.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use zarr_buffer_api::{AxisTiles, Buffer, Layout, Region};
use zarr_codec_api::{CodecError, DeviceContext, DeviceSegment, Encoded, Segment};

use super::DeviceTarget;
use crate::ArrayError;
use crate::chunks::BoundChunk;
use crate::geometry::{Elements, Leaf};
use crate::plan::{ChunkNode, Gather, Plan, Step, place, tile_lens};
use crate::write::is_all;

/// Chunks that went through the first stages of their chain, in memory of the host.
#[derive(Debug)]
pub(crate) struct Prepared {
    parts: Vec<Buffer>,
    /// By the tile of the chunk: in which part, and where in it.
    chunks: HashMap<Vec<usize>, (usize, Range<usize>)>,
    /// Those that hold only the fill value.
    empty: HashSet<Vec<usize>>,
}

impl Prepared {
    /// Whether a chunk holds only the fill value.
    pub(crate) fn is_empty(&self, tile: &[usize]) -> bool {
        self.empty.contains(tile)
    }

    /// Calls `encode` with what became of a chunk.
    pub(crate) fn with<R>(&self, tile: &[usize], encode: impl FnOnce(&[u8]) -> Result<R, CodecError>) -> Result<R, CodecError> {
        let unseen = || CodecError::parameter("chunk", "a chunk that the device has not seen");
        let (part, range) = self.chunks.get(tile).ok_or_else(unseen)?;
        let bytes = self.parts.get(*part).ok_or_else(unseen)?.host_read()?;
        encode(bytes.get(range.clone()).ok_or_else(unseen)?)
    }
}

/// Chunks of a plan that a device encodes, all of which are written whole.
#[derive(Debug)]
pub(crate) struct Preparing {
    source: Source,
    nodes: Vec<ChunkNode>,
    segment: Arc<dyn DeviceSegment>,
    /// Chunks that the device encodes at a time.
    most: usize,
    /// The first of them.
    begun: Encoded,
    keep: bool,
}

/// Where the elements of chunks are.
#[derive(Debug)]
struct Source {
    buffer: Buffer,
    layout: Layout,
    tiles: Vec<AxisTiles>,
    bound: Arc<BoundChunk>,
}

/// Enqueues the encoding of the chunks of a plan on the device, as far as its codecs go. `None` where the device has no part in it, or too little memory for it, or not all
/// chunks are written whole from one box of the source: then the host encodes.
///
/// # Errors
/// When the device fails.
pub(crate) fn begin(plan: &Plan, source: &Buffer, keep: bool, target: &DeviceTarget) -> Result<Option<Preparing>, ArrayError> {
    let tiles = plan.tiles();
    let are_boxes = tiles.iter().all(|axis| matches!(axis, AxisTiles::Ranges(_)));
    if plan.chunk_count() == 0 || !are_boxes {
        return Ok(None);
    }
    // Whether there is anything for the device to do, before chunks are looked at one by one.
    let (chunk, cells) = plan.cut.chunk(0);
    let first = ChunkNode { key: plan.keys.key(&chunk)?, chunk: chunk.into(), cells };
    let bound = plan.bound(&first)?.into_owned();
    let Some(Segment::Device(segment)) = bound.chain.device_encode().map(|on_device| on_device.segment.clone()) else { return Ok(None) };
    let nodes = innermost(plan)?;
    let Some(most) = most_chunks(&*segment, nodes.len() + usize::from(!keep), target.scratch) else { return Ok(None) };
    for node in &nodes {
        let is_whole = matches!(plan.leaves(node).as_slice(), [leaf] if plan.covers_leaf(leaf) && is_in_order(leaf));
        if !is_whole || !Arc::ptr_eq(&*plan.bound(node)?, &bound) {
            return Ok(None);
        }
    }
    let source = Source { buffer: source.clone(), layout: plan.output_layout()?, tiles, bound };
    let begun = source.encode(plan, &nodes, keep, 0..most, &*segment, target)?;
    Ok(Some(Preparing { source, nodes, segment, most, begun, keep }))
}

/// How many of so many chunks a segment encodes at a time in so much memory.
fn most_chunks(segment: &dyn DeviceSegment, chunks: usize, scratch: u64) -> Option<usize> {
    let mut most = chunks;
    while segment.scratch_len(most) > scratch {
        if most <= 1 {
            return None;
        }
        most = most.div_ceil(2);
    }
    Some(most)
}

fn is_in_order(leaf: &Leaf<'_>) -> bool {
    let in_order = |elements: &Elements| matches!(elements, Elements::Steps { start: 0, step, len } if *step == 1 || *len == 1);
    leaf.parts.iter().all(|part| in_order(&part.elements))
}

/// The innermost chunks that a plan touches.
fn innermost(plan: &Plan) -> Result<Vec<ChunkNode>, ArrayError> {
    let mut nodes = Vec::new();
    for index in 0..plan.chunk_count() {
        let (chunk, cells) = plan.cut.chunk(index);
        let key = plan.keys.key(&chunk)?;
        let mut level = vec![ChunkNode { chunk: chunk.into(), key, cells }];
        for number in 0..plan.chunks.levels.len() {
            level = level
                .iter()
                .flat_map(|node| plan.cut.split(&node.cells, number).into_iter().map(|(_, cells)| ChunkNode { cells, ..node.clone() }))
                .collect();
        }
        nodes.extend(level);
    }
    Ok(nodes)
}

impl Preparing {
    /// Waits until the host has what came out of all chunks.
    ///
    /// # Errors
    /// The first chunk that cannot be encoded; when the device fails.
    pub(crate) fn finish(self, plan: &Plan, target: &DeviceTarget) -> Result<Prepared, ArrayError> {
        let Self { source, nodes, segment, most, begun, keep } = self;
        let chunks = nodes.len() + usize::from(!keep);
        let (mut parts, mut places) = (Vec::new(), Vec::new());
        let mut begun = Some(begun);
        for start in (0..chunks).step_by(most) {
            let range = start..chunks.min(start + most);
            let Encoded { bytes, ticket } = match begun.take() {
                Some(begun) => begun,
                None => source.encode(plan, &nodes, keep, range.clone(), &*segment, target)?,
            };
            let statuses = ticket.wait()?;
            if statuses.len() != range.len() {
                return Err(ArrayError::parameter(format!("{} statuses of {} chunks", statuses.len(), range.len())));
            }
            let mut end = 0;
            for (status, index) in statuses.into_iter().zip(range) {
                let place = match (status, nodes.get(index)) {
                    (Ok(range), _) => range,
                    (Err(error), Some(node)) => return Err(plan.error(node, error)),
                    // That of fill values, which nothing that could be encoded looks like.
                    (Err(_), None) => continue,
                };
                end = end.max(place.end);
                places.push((parts.len(), place));
            }
            let used = bytes.slice(0..end)?;
            let on_host = if used.is_host_visible() { used } else { super::download(&used, target)? };
            on_host.wait()?;
            parts.push(on_host);
        }
        let fill = places.get(nodes.len()).filter(|_| !keep);
        let empty = fill.map_or(Ok(HashSet::new()), |fill| source.empty_chunks(&parts, nodes.iter().zip(&places), fill, plan, target))?;
        let tiles = nodes.iter().map(|node| plan.leaves(node).into_iter().next().map(|leaf| leaf.tile).unwrap_or_default());
        Ok(Prepared { chunks: tiles.zip(places).collect(), parts, empty })
    }
}

impl Source {
    /// Enqueues the encoding of some chunks. Behind the last one, if that matters, comes one of fill values: what does not look like it does not hold them.
    fn encode(
        &self,
        plan: &Plan,
        nodes: &[ChunkNode],
        keep: bool,
        range: Range<usize>,
        segment: &dyn DeviceSegment,
        target: &DeviceTarget,
    ) -> Result<Encoded, ArrayError> {
        let mut regions = Vec::with_capacity(range.len());
        for node in nodes.iter().take(range.end).skip(range.start) {
            let leaves = plan.leaves(node);
            let leaf = leaves.first().ok_or_else(|| ArrayError::parameter("a chunk without elements"))?;
            regions.push(self.elements(leaf, plan, target)?);
        }
        if !keep && range.contains(&nodes.len()) {
            regions.push(self.filled(plan, target)?);
        }
        if !segment.scatters() {
            for region in regions.iter_mut().filter(|region| !region.layout.is_contiguous()) {
                let layout = Layout::contiguous(&region.layout.shape, region.layout.item_size)?;
                let buffer = target.device.allocate(self.bound.byte_len, &*target.queue)?;
                let side_by_side = Region::new(buffer, layout)?;
                target.queue.copy_region(region, &side_by_side)?;
                *region = side_by_side;
            }
        }
        let context = DeviceContext { device: &*target.device, queue: &*target.queue, scratch_budget: target.scratch };
        segment.encode(&regions, &context).map_err(|error| match nodes.get(range.start).or(nodes.last()) {
            Some(node) => plan.error(node, error),
            None => ArrayError::parameter("an empty batch"),
        })
    }

    /// The chunks that hold only the fill value. Codecs may make other elements look like it: chunks that do are looked at as they were.
    fn empty_chunks<'a>(
        &self,
        parts: &[Buffer],
        chunks: impl Iterator<Item = (&'a ChunkNode, &'a (usize, Range<usize>))>,
        fill: &(usize, Range<usize>),
        plan: &Plan,
        target: &DeviceTarget,
    ) -> Result<HashSet<Vec<usize>>, ArrayError> {
        let mut suspects = Vec::new();
        let mut total = 0;
        {
            let parts = parts.iter().map(Buffer::host_read).collect::<Result<Vec<_>, _>>()?;
            let bytes = |(part, range): &(usize, Range<usize>)| parts.get(*part).and_then(|bytes| bytes.get(range.clone()));
            for (node, _) in chunks.filter(|(_, place)| bytes(place) == bytes(fill)) {
                for leaf in plan.leaves(node) {
                    let from = self.place(&leaf)?;
                    let len = from.layout.len() * from.layout.item_size;
                    suspects.push((leaf.tile.clone(), from, total..total + len));
                    total += len;
                }
            }
        }
        if suspects.is_empty() {
            return Ok(HashSet::new());
        }
        let (device, queue) = (&target.device, &target.queue);
        let packed = device.allocate(total, &**queue)?;
        for (_, from, range) in &suspects {
            let layout = Layout::contiguous(&from.layout.shape, from.layout.item_size)?;
            queue.copy_region(from, &Region::new(packed.slice(range.clone())?, layout)?)?;
        }
        let on_host = if packed.is_host_visible() { packed } else { super::download(&packed, target)? };
        on_host.wait()?;
        let elements = on_host.host_read()?;
        let is_empty = |range: &Range<usize>| elements.get(range.clone()).is_some_and(|part| is_all(part, plan.chunks.fill_bytes()));
        Ok(suspects.into_iter().filter(|(_, _, range)| is_empty(range)).map(|(tile, _, _)| tile).collect())
    }

    /// Where the elements of a chunk lie in the source, for each axis of the array.
    fn place(&self, leaf: &Leaf<'_>) -> Result<Region, ArrayError> {
        let Gather { offset, steps } = place(leaf, &self.tiles, &self.layout);
        let stride = |step: &Step| match step {
            Step::Stride(stride) => Ok(*stride),
            Step::List(_) => Err(ArrayError::parameter("a chunk that is scattered over the source")),
        };
        let strides = steps.iter().map(stride).collect::<Result<_, _>>()?;
        let layout = Layout { offset, shape: tile_lens(leaf), strides, item_size: self.layout.item_size };
        Ok(Region::new(self.buffer.clone(), layout)?)
    }

    /// The elements of a whole chunk, with the axes as they are stored: in the source, or beside fill values where the chunk reaches beyond the array.
    fn elements(&self, leaf: &Leaf<'_>, plan: &Plan, target: &DeviceTarget) -> Result<Region, ArrayError> {
        let from = self.place(leaf)?;
        if leaf.parts.iter().all(|part| part.inside == part.chunk_len) {
            return as_stored(plan, from);
        }
        let whole = self.filled(plan, target)?;
        let layout = Layout { shape: from.layout.shape.clone(), ..self.bound.layout.clone() };
        target.queue.copy_region(&from, &Region::new(whole.buffer.clone(), layout)?)?;
        Ok(whole)
    }

    /// A chunk of fill values, with the axes as they are stored.
    fn filled(&self, plan: &Plan, target: &DeviceTarget) -> Result<Region, ArrayError> {
        let buffer = target.device.allocate(self.bound.byte_len, &*target.queue)?;
        let whole = as_stored(plan, Region::new(buffer, self.bound.layout.clone())?)?;
        target.queue.fill_region(&whole, plan.chunks.fill_bytes())?;
        Ok(whole)
    }
}

fn as_stored(plan: &Plan, region: Region) -> Result<Region, ArrayError> {
    let Layout { offset, shape, strides, item_size } = region.layout;
    let order = &plan.chunks.order;
    let (shape, strides) = order.iter().filter_map(|&axis| Some((shape.get(axis).copied()?, strides.get(axis).copied()?))).unzip();
    Ok(Region::new(region.buffer, Layout { offset, shape, strides, item_size })?)
}

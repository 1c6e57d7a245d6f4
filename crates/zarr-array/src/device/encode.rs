//! What a device encodes of the elements that lie on it, before the host encodes the rest.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use zarr_buffer_api::{AxisTiles, Buffer, Layout, Region};
use zarr_codec_api::{CodecError, DeviceContext, DeviceSegment, DeviceSlot, Segment, Ticket};

use super::DeviceTarget;
use crate::ArrayError;
use crate::chunks::BoundChunk;
use crate::geometry::{Elements, Leaf};
use crate::plan::{ChunkNode, Gather, Plan, Step, place, tile_lens};
use crate::write::is_all;

/// Chunks that went through the first stages of their chain, in memory of the host.
#[derive(Debug)]
pub(crate) struct Prepared {
    bytes: Buffer,
    /// By the tile of the chunk.
    chunks: HashMap<Vec<usize>, Range<usize>>,
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
        let bytes = self.bytes.host_read()?;
        let chunk = self.chunks.get(tile).and_then(|range| bytes.get(range.clone()));
        encode(chunk.ok_or_else(|| CodecError::parameter("chunk", "a chunk that the device has not seen"))?)
    }
}

/// A batch of chunks, all of which are written whole.
struct Batch<'a> {
    plan: &'a Plan,
    target: &'a DeviceTarget,
    source: &'a Buffer,
    source_layout: Layout,
    tiles: Vec<AxisTiles>,
    bound: Arc<BoundChunk>,
}

/// Encodes the chunks of a plan on the device, as far as its codecs go, and waits until the host has what came out. `None` where the device has no part
/// in it, or not all chunks are written whole from one box of the source: then the host encodes.
///
/// # Errors
/// The first chunk that cannot be encoded; when the device fails.
pub(crate) fn prepare(plan: &Plan, source: &Buffer, keep: bool, target: &DeviceTarget) -> Result<Option<Prepared>, ArrayError> {
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
    for node in &nodes {
        let is_whole = matches!(plan.leaves(node).as_slice(), [leaf] if plan.covers_leaf(leaf) && is_in_order(leaf));
        if !is_whole || !Arc::ptr_eq(&*plan.bound(node)?, &bound) {
            return Ok(None);
        }
    }
    let Some(len) = encoded_len(&bound).map_err(|error| plan.error(&first, error))? else { return Ok(None) };
    let batch = Batch { plan, target, source, source_layout: plan.output_layout()?, tiles, bound };
    batch.run(&*segment, &nodes, len, keep).map(Some)
}

/// Bytes that come out of the device for one chunk.
fn encoded_len(bound: &BoundChunk) -> Result<Option<usize>, CodecError> {
    let last = bound.chain.device_encode().and_then(|on_device| bound.chain.stages().get(on_device.stages.clone())?.last());
    let len = last.map(|stage| stage.encoded.byte_len()).transpose()?.flatten().and_then(|len| len.exact());
    Ok(len.and_then(|len| usize::try_from(len).ok()))
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

impl Batch<'_> {
    fn run(&self, segment: &dyn DeviceSegment, nodes: &[ChunkNode], len: usize, keep: bool) -> Result<Prepared, ArrayError> {
        let (device, queue) = (&self.target.device, &self.target.queue);
        let fail = |node: &ChunkNode, error: CodecError| self.plan.error(node, error);
        // One more chunk, of fill values: what does not look like it does not hold them.
        let count = nodes.len() + usize::from(!keep);
        let encoded = device.allocate(count * len, &**queue)?;
        let mut slots = Vec::with_capacity(count);
        let mut chunks = HashMap::with_capacity(nodes.len());
        for (index, node) in nodes.iter().enumerate() {
            let leaves = self.plan.leaves(node);
            let leaf = leaves.first().ok_or_else(|| ArrayError::parameter("a chunk without elements"))?;
            let range = index * len..(index + 1) * len;
            slots.push(DeviceSlot { encoded: encoded.slice(range.clone())?, decoded: self.elements(leaf)? });
            chunks.insert(leaf.tile.clone(), range);
        }
        if !keep {
            slots.push(DeviceSlot { encoded: encoded.slice(nodes.len() * len..count * len)?, decoded: self.filled()? });
        }
        let context = DeviceContext { device: &**device, queue: &**queue, scratch_budget: self.target.scratch };
        let wrong = |error| nodes.first().map_or_else(|| ArrayError::parameter("an empty batch"), |node| fail(node, error));
        let ticket = segment.encode(&slots, &context).map_err(wrong)?;
        drop(slots);
        let on_host = if encoded.is_host_visible() { encoded } else { super::download(&encoded, self.target)? };
        on_host.wait()?;
        self.check(ticket, nodes, count)?;
        let empty = if keep { HashSet::new() } else { self.empty_chunks(&on_host, nodes, len)? };
        Ok(Prepared { bytes: on_host, chunks, empty })
    }

    fn check(&self, ticket: Ticket, nodes: &[ChunkNode], count: usize) -> Result<(), ArrayError> {
        let statuses = ticket.wait()?;
        if statuses.len() != count {
            return Err(ArrayError::parameter(format!("{} statuses of {count} chunks", statuses.len())));
        }
        // The last one may be that of fill values, and does not matter: chunks that look like them are compared as elements.
        for (status, node) in statuses.into_iter().zip(nodes) {
            status.map_err(|error| self.plan.error(node, error))?;
        }
        Ok(())
    }

    /// The chunks that hold only the fill value. Codecs may make other elements look like it: chunks that do are looked at as they were.
    fn empty_chunks(&self, encoded: &Buffer, nodes: &[ChunkNode], len: usize) -> Result<HashSet<Vec<usize>>, ArrayError> {
        let mut suspects = Vec::new();
        let mut total = 0;
        {
            let bytes = encoded.host_read()?;
            let (chunks, fill) = bytes.split_at(nodes.len() * len);
            for (node, _) in nodes.iter().zip(chunks.chunks_exact(len.max(1))).filter(|(_, chunk)| *chunk == fill) {
                for leaf in self.plan.leaves(node) {
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
        let (device, queue) = (&self.target.device, &self.target.queue);
        let packed = device.allocate(total, &**queue)?;
        for (_, from, range) in &suspects {
            let layout = Layout::contiguous(&from.layout.shape, from.layout.item_size)?;
            queue.copy_region(from, &Region::new(packed.slice(range.clone())?, layout)?)?;
        }
        let on_host = if packed.is_host_visible() { packed } else { super::download(&packed, self.target)? };
        on_host.wait()?;
        let elements = on_host.host_read()?;
        let is_empty = |range: &Range<usize>| elements.get(range.clone()).is_some_and(|part| is_all(part, self.plan.chunks.fill_bytes()));
        Ok(suspects.into_iter().filter(|(_, _, range)| is_empty(range)).map(|(tile, _, _)| tile).collect())
    }

    /// Where the elements of a chunk lie in the source, for each axis of the array.
    fn place(&self, leaf: &Leaf<'_>) -> Result<Region, ArrayError> {
        let Gather { offset, steps } = place(leaf, &self.tiles, &self.source_layout);
        let stride = |step: &Step| match step {
            Step::Stride(stride) => Ok(*stride),
            Step::List(_) => Err(ArrayError::parameter("a chunk that is scattered over the source")),
        };
        let strides = steps.iter().map(stride).collect::<Result<_, _>>()?;
        let layout = Layout { offset, shape: tile_lens(leaf), strides, item_size: self.source_layout.item_size };
        Ok(Region::new(self.source.clone(), layout)?)
    }

    /// The elements of a whole chunk, with the axes as they are stored: in the source, or beside fill values where the chunk reaches beyond the array.
    fn elements(&self, leaf: &Leaf<'_>) -> Result<Region, ArrayError> {
        let from = self.place(leaf)?;
        if leaf.parts.iter().all(|part| part.inside == part.chunk_len) {
            return self.as_stored(from);
        }
        let whole = self.filled()?;
        let layout = Layout { shape: from.layout.shape.clone(), ..self.bound.layout.clone() };
        self.target.queue.copy_region(&from, &Region::new(whole.buffer.clone(), layout)?)?;
        Ok(whole)
    }

    /// A chunk of fill values, with the axes as they are stored.
    fn filled(&self) -> Result<Region, ArrayError> {
        let buffer = self.target.device.allocate(self.bound.byte_len, &*self.target.queue)?;
        let whole = self.as_stored(Region::new(buffer, self.bound.layout.clone())?)?;
        self.target.queue.fill_region(&whole, self.plan.chunks.fill_bytes())?;
        Ok(whole)
    }

    fn as_stored(&self, region: Region) -> Result<Region, ArrayError> {
        let Layout { offset, shape, strides, item_size } = region.layout;
        let order = &self.plan.chunks.order;
        let (shape, strides) = order.iter().filter_map(|&axis| Some((shape.get(axis).copied()?, strides.get(axis).copied()?))).unzip();
        Ok(Region::new(region.buffer, Layout { offset, shape, strides, item_size })?)
    }
}

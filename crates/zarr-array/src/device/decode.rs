//! Chunks that are on the device: gathered, and decoded together.

use std::sync::Arc;

use zarr_buffer_api::{Buffer, Layout, Region};
use zarr_codec_api::{Chain, CodecError, DeviceContext, DeviceSlot, Segment, Ticket};

use super::fetch::{Chunk, Reader, Work};
use super::observe::Stage;
use super::scatter::Scatter;
use super::{DeviceTarget, Verdicts};
use crate::ArrayError;
use crate::chunks::BoundChunk;
use crate::plan::ChunkNode;

/// Decoded bytes of the chunks that a device decodes together: enough that all of it has something to do. A batch takes as long as its densest chunk, so that
/// to start earlier with fewer bytes makes a read slower (as measured with zstd on an H200: 10 ms for 540 MB, and 9.6 for 137).
const MOST: u64 = 512 << 20;

/// Decoded bytes from which on chunks that are gathered are decoded.
fn enough(target: &DeviceTarget) -> u64 {
    MOST.min(target.scratch / 4)
}

/// Chunks of one chain, to be decoded in one call.
#[derive(Debug)]
struct Group {
    bound: Arc<BoundChunk>,
    nodes: Vec<ChunkNode>,
    slots: Vec<DeviceSlot>,
}

/// Chunks on the device, to be decoded together.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    groups: Vec<Group>,
    /// Bytes that they decode to.
    len: u64,
    /// Where those go then that are not decoded to their place.
    scatters: Vec<Scatter>,
    /// The verdicts on what was decoded before.
    pub(super) verdicts: Vec<Verdicts>,
}

impl Gathered {
    /// Takes chunks whose encoded bytes are in `device`, of which the first is byte `base` of their batch. Those that are enough are decoded: chunks of a few
    /// bytes each may be thousands of times as large decoded.
    pub(super) fn take(&mut self, reader: &Reader, chunks: Vec<Chunk>, device: &Buffer, base: usize) -> Result<(), ArrayError> {
        let enough = enough(&reader.target);
        let mut next = Vec::new();
        let mut len = self.len;
        for chunk in chunks {
            if len > 0 && len >= enough {
                self.take_some(reader, std::mem::take(&mut next), device, base)?;
                self.decode(reader)?;
                len = 0;
            }
            len = len.saturating_add(chunk.bound.byte_len as u64);
            next.push(chunk);
        }
        self.take_some(reader, next, device, base)
    }

    fn take_some(&mut self, reader: &Reader, chunks: Vec<Chunk>, device: &Buffer, base: usize) -> Result<(), ArrayError> {
        // Chunks that are not decoded to their place get memory of their own, together.
        let apart: usize = chunks.iter().filter_map(own_room).sum();
        let own = if apart == 0 { None } else { Some(reader.target.device.allocate(apart, &*reader.target.queue)?) };
        let mut at = 0;
        for chunk in chunks {
            let room = own_room(&chunk);
            let Chunk { node, bound, bytes, work } = chunk;
            let encoded = device.slice(bytes.start.wrapping_sub(base)..bytes.end.wrapping_sub(base))?;
            let decoded = match (work, room, &own) {
                (Work::Decode(Some(place)), ..) => place,
                (_, Some(room), Some(own)) => {
                    let own = own.slice(at..at + bound.byte_len)?;
                    at += room;
                    let boxes = reader.boxes_of_chunk(&node, &bound.layout, 0, 0)?;
                    self.scatters.extend(boxes.into_iter().map(|(from, to)| Scatter { source: own.clone(), from, to }));
                    Region::new(own, stored_layout(&bound)?)?
                }
                // Of a chunk without bytes nothing is to be decoded.
                (Work::Decode(None), ..) if bound.byte_len == 0 => continue,
                _ => return Err(ArrayError::parameter("a chunk that is not to be decoded")),
            };
            self.len += bound.byte_len as u64;
            let slot = DeviceSlot { encoded, decoded };
            match self.groups.iter_mut().find(|group| Arc::ptr_eq(&group.bound, &bound)) {
                Some(group) => {
                    group.nodes.push(node);
                    group.slots.push(slot);
                }
                None => self.groups.push(Group { bound, nodes: vec![node], slots: vec![slot] }),
            }
        }
        Ok(())
    }

    /// Whether there is enough to decode.
    pub(super) fn is_due(&self, target: &DeviceTarget) -> bool {
        self.len >= enough(target)
    }

    /// Whether anything was decoded yet.
    pub(super) fn has_begun(&self) -> bool {
        !self.verdicts.is_empty()
    }

    /// Enqueues the decoding of what is gathered, one call for each chain, and the copies behind it.
    pub(super) fn decode(&mut self, reader: &Reader) -> Result<(), ArrayError> {
        let target = &reader.target;
        if !self.groups.is_empty() {
            let _stage = reader.observe(Stage::Decode, self.len, Some(&target.queue));
            for Group { bound, nodes, slots } in std::mem::take(&mut self.groups) {
                let at_once = at_once(&bound.chain, slots.len(), target);
                let (mut nodes, mut slots) = (nodes.into_iter(), slots.into_iter());
                while slots.len() > 0 {
                    let some: Vec<DeviceSlot> = slots.by_ref().take(at_once).collect();
                    let nodes: Arc<[ChunkNode]> = nodes.by_ref().take(at_once).collect();
                    let wrong = |error| {
                        nodes.first().map_or_else(|| ArrayError::parameter("an empty batch"), |node| reader.plan.error(node, error))
                    };
                    let tickets = enqueue_chain(&bound.chain, some, target).map_err(wrong)?;
                    self.verdicts.extend(tickets.into_iter().map(|ticket| Verdicts { ticket, nodes: Arc::clone(&nodes) }));
                }
            }
        }
        self.len = 0;
        scatter(reader, std::mem::take(&mut self.scatters))
    }
}

/// How many of so many chunks the device has temporary memory for; of one, its codec says that it has not.
fn at_once(chain: &Chain, chunks: usize, target: &DeviceTarget) -> usize {
    let needs = |chunks: usize| {
        let of_segment = |segment: &Segment| match segment {
            Segment::Device(segment) => segment.scratch_len(chunks),
            Segment::Host(_) => 0,
        };
        chain.segments().iter().map(|bound| of_segment(&bound.segment)).max().unwrap_or(0)
    };
    let mut halves = std::iter::successors(Some(chunks), |&chunks| (chunks > 1).then_some(chunks.div_ceil(2)));
    halves.find(|&chunks| needs(chunks) <= target.scratch).unwrap_or(1)
}

/// Enqueues copies to the output.
pub(super) fn scatter(reader: &Reader, scatters: Vec<Scatter>) -> Result<(), ArrayError> {
    if scatters.is_empty() {
        return Ok(());
    }
    let queue = &reader.target.queue;
    let bytes = scatters.iter().map(|scatter| (scatter.to.len() * scatter.to.item_size) as u64).sum();
    let _stage = reader.observe(Stage::Scatter, bytes, Some(queue));
    for Scatter { source, from, to } in scatters {
        queue.copy_region(&Region::new(source, from)?, &Region::new(reader.output.clone(), to)?)?;
    }
    Ok(())
}

/// Bytes of memory of its own that a chunk takes; `None` for one that is decoded to its place.
fn own_room(chunk: &Chunk) -> Option<usize> {
    /// What devices align allocations to, at least.
    const ALIGN: usize = 256;
    matches!(chunk.work, Work::Decode(None)).then(|| chunk.bound.byte_len.next_multiple_of(ALIGN))
}

/// A decoded chunk as its chain leaves it: C order over the axes as stored.
fn stored_layout(bound: &BoundChunk) -> Result<Layout, ArrayError> {
    let shape: Vec<usize> = bound.chain.representation().shape.iter().map(|&len| len as usize).collect();
    Ok(Layout::contiguous(&shape, bound.layout.item_size)?)
}

/// Enqueues the device's segments one behind the other. Between two of them lies memory of the stage's size.
fn enqueue_chain(chain: &Chain, slots: Vec<DeviceSlot>, target: &DeviceTarget) -> Result<Vec<Ticket>, CodecError> {
    let context = DeviceContext { device: &*target.device, queue: &*target.queue, scratch_budget: target.scratch };
    let segments: Vec<_> = chain.segments().iter().filter(|bound| matches!(bound.segment, Segment::Device(_))).collect();
    if let [bound] = segments.as_slice()
        && let Segment::Device(segment) = &bound.segment
    {
        return Ok(vec![segment.decode(&slots, &context)?]);
    }
    if segments.is_empty() {
        return Err(CodecError::unsupported(context.device.name(), "no codec of the chain is bound to the device"));
    }
    let mut tickets = Vec::with_capacity(segments.len());
    let mut inputs: Vec<Buffer> = slots.iter().map(|slot| slot.encoded.clone()).collect();
    for (index, bound) in segments.iter().enumerate() {
        let Segment::Device(segment) = &bound.segment else { continue };
        let last = index + 1 == segments.len();
        let mut of_segment = Vec::with_capacity(slots.len());
        for (slot, encoded) in slots.iter().zip(&inputs) {
            let decoded = if last {
                slot.decoded.clone()
            } else {
                let stage = chain.stages().get(bound.stages.start).map(|stage| stage.decoded.byte_len()).transpose()?.flatten();
                let exact = stage.and_then(|len| len.exact()).and_then(|len| usize::try_from(len).ok());
                let len = exact
                    .ok_or_else(|| CodecError::unsupported(&bound.provider, "bytes of unknown size between two segments on a device"))?;
                Region::new(target.device.allocate(len, &*target.queue)?, Layout::contiguous(&[len], 1)?)?
            };
            of_segment.push(DeviceSlot { encoded: encoded.clone(), decoded });
        }
        tickets.push(segment.decode(&of_segment, &context)?);
        inputs = of_segment.into_iter().map(|slot| slot.decoded.buffer).collect();
    }
    Ok(tickets)
}

//! What goes through staging memory together.

use std::ops::Range;

use crate::ArrayError;
use crate::chunks::BoundChunk;
use crate::geometry::Leaf;
use crate::plan::{ChunkNode, ChunkPart, Fetch, Plan, Then, tile_lens};
use zarr_codec_api::{CodecError, Placement, Representation};
use zarr_store_api::ByteRange;

/// How the bytes of a fetch reach the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Route {
    /// As they are stored: the device decodes them.
    Stored,
    /// As they are stored, which is elements already: the device scatters.
    Verbatim,
    /// After the host's part of the codec chain: the device decodes the rest.
    HalfDecoded,
    /// As elements of the result: the host decodes, the device scatters.
    Elements,
}

/// A fetch and its place in staging memory.
#[derive(Debug)]
pub(super) struct Load {
    pub(super) fetch: Fetch,
    pub(super) route: Route,
    /// Bytes reserved.
    pub(super) room: usize,
    /// For each range of a stored route: where in the reserved bytes it starts.
    pub(super) places: Vec<usize>,
}

/// What a load turned out to be: for each chunk, where its bytes lie in staging memory, or that it is absent.
#[derive(Debug)]
pub(super) struct Loaded {
    pub(super) node: ChunkNode,
    pub(super) bytes: Option<Range<usize>>,
    /// Bytes of the chunk before these, which were not fetched.
    pub(super) skipped: usize,
}

/// Staged bytes start at multiples of this, so that no load shares a cache line with another.
pub(super) const ALIGN: usize = 64;

impl Load {
    pub(super) fn new(plan: &Plan, fetch: Fetch) -> Result<Self, ArrayError> {
        let Then::Chunks(parts) = &fetch.then else { return Err(ArrayError::parameter("an index is no load")) };
        let Some(first) = parts.first() else { return Err(ArrayError::parameter("an empty load")) };
        let bound = plan.bound(&first.node)?;
        let route = route(&bound);
        let mut places = Vec::new();
        let mut room = 0usize;
        match route {
            Route::Stored | Route::Verbatim => {
                for range in &fetch.ranges {
                    places.push(room);
                    let len = match range.len_hint() {
                        Some(len) => len,
                        // Chunks that an encoder made larger than the bound are read on their own.
                        None if *range == ByteRange::All => bound.encoded_len.upper(),
                        None => 0,
                    };
                    room = add(room, len)?;
                }
            }
            Route::HalfDecoded => {
                let len = device_input(&bound).map_err(|error| plan.error(&first.node, error))?;
                room = add(0, (len as u64).saturating_mul(parts.len() as u64))?;
            }
            Route::Elements => {
                for part in parts {
                    for leaf in plan.leaves(&part.node) {
                        room = add(room, element_bytes(&leaf, &bound) as u64)?;
                    }
                }
            }
        }
        Ok(Self { fetch, route, room: room.next_multiple_of(ALIGN), places })
    }

    pub(super) fn parts(&self) -> &[ChunkPart] {
        match &self.fetch.then {
            Then::Chunks(parts) => parts,
            Then::Index(_) => &[],
        }
    }
}

fn add(room: usize, len: u64) -> Result<usize, ArrayError> {
    usize::try_from(len)
        .ok()
        .and_then(|len| room.checked_add(len))
        .ok_or_else(|| ArrayError::parameter("a chunk does not fit the address space"))
}

/// Which way the bytes of a chunk go.
pub(super) fn route(bound: &BoundChunk) -> Route {
    if bound.verbatim {
        return Route::Verbatim;
    }
    if bound.chain.device().is_none() {
        return Route::Elements;
    }
    let starts_on_host = bound.chain.segments().first().is_some_and(|segment| segment.placement == Placement::Host);
    if starts_on_host { Route::HalfDecoded } else { Route::Stored }
}

/// The most bytes that the host's part of a chain gives.
pub(super) fn device_input(bound: &BoundChunk) -> Result<usize, CodecError> {
    let first = bound.chain.segments().iter().find(|segment| segment.placement != Placement::Host);
    let stage = first.and_then(|segment| segment.stages.end.checked_sub(1)).and_then(|last| bound.chain.stages().get(last));
    let encoded = stage.map_or_else(|| bound.chain.encoded(), |stage| stage.encoded.clone());
    let len = match &encoded {
        Representation::Bytes(len) => len.upper(),
        Representation::Array(_) => encoded.byte_len()?.map_or(0, |len| len.upper()),
    };
    usize::try_from(len).map_err(|_| CodecError::limit("chunk", usize::MAX))
}

/// Bytes of the elements wanted of a chunk.
pub(super) fn element_bytes(leaf: &Leaf<'_>, bound: &BoundChunk) -> usize {
    tile_lens(leaf).iter().product::<usize>() * bound.layout.item_size
}

//! `sharding_indexed` as an ordinary array→bytes codec, over a whole shard in memory.
//!
//! The planner sees through shards and reads only what it needs of them. Where codecs stand around a shard that it cannot see through
//! (compressed shards, delta before a shard), this takes over.

use std::sync::Arc;

use bytes::Bytes;
use zarr_buffer_api::TileWriter;
use zarr_codec_api::{
    ArrayRepresentation, ArrayToBytes, ByteLen, CodecError, HostProvider, Limits, Policy, Registry, Representation, Scratch, SimpleCodec,
    VariableData,
};
use zarr_meta::{ChunkGrid, ChunkKeyEncoding, Extension, Separator};
use zarr_store_api::StorePrefix;

use crate::ArrayError;
use crate::chunks::Chunks;
use crate::plan::{ChunkKeys, Coalescing, Fetch, Plan, Steps, Then, bytes_of};
use crate::read::{Sink, short};
use crate::selection::Selection;
use crate::variable::VariableSink;
use crate::write::{Data, Empty, encode_value};

const CODEC: &str = "sharding_indexed";

/// A provider of the codec, whose inner codecs come from `registry`.
pub(crate) fn provider(registry: &Registry, policy: &Policy) -> HostProvider {
    // Inner codecs run inside a host codec, whatever the array's policy.
    let policy = if policy.device().is_some() { Policy::Host } else { policy.clone() };
    let registry = registry.clone();
    HostProvider::new("zarr-array").with(CODEC, move |codec, decoded| {
        let rank = match decoded {
            Representation::Array(array) => array.shape.len(),
            Representation::Bytes(_) => return Err(CodecError::metadata(CODEC, "stands behind the array to bytes codec")),
        };
        // A configuration that cannot work is told before any chunk is looked at.
        crate::shard_index::ShardingConfiguration(codec).parse(rank)?;
        Ok(SimpleCodec::array_to_bytes(WholeShard { codec: codec.clone(), registry: registry.clone(), policy: policy.clone() }))
    })
}

#[derive(Debug)]
struct WholeShard {
    codec: Extension,
    registry: Registry,
    policy: Policy,
}

impl WholeShard {
    /// A plan for one shard as an array of one chunk.
    fn plan(&self, representation: &ArrayRepresentation) -> Result<Plan, CodecError> {
        let grid = ChunkGrid::regular(representation.shape.clone());
        let chunks = Chunks::new(
            grid,
            representation.data_type.clone(),
            representation.fill_value.clone(),
            std::slice::from_ref(&self.codec),
            &self.registry,
            &self.policy,
        )?;
        let keys = ChunkKeys { prefix: StorePrefix::default(), encoding: ChunkKeyEncoding::Default { separator: Separator::Slash } };
        let resolved = Selection::all().resolve(&representation.shape, &chunks.cuts.grid).map_err(into_codec)?;
        let coalescing = Coalescing { gap: 0, waste: 0, request: 0 };
        Plan::new(Arc::new(chunks), keys, &representation.shape, &resolved, coalescing).map_err(into_codec)
    }

    fn read(&self, plan: &Plan, encoded: &[u8], sink: &dyn Sink) -> Result<(), ArrayError> {
        let mut scratch = Scratch::new();
        let mut next: Vec<Steps> = (0..plan.chunk_count()).map(|chunk| plan.start(chunk, |_| Ok(None))).collect::<Result<_, _>>()?;
        while let Some(steps) = next.pop() {
            for node in &steps.absent {
                sink.absent(plan, node)?;
            }
            for Fetch { ranges, then, .. } in steps.fetches {
                let slices: Vec<Bytes> = ranges
                    .iter()
                    .map(|range| {
                        let range = range.resolve(encoded.len() as u64)?;
                        // Resolved against the slice, so that both ends lie in it.
                        Ok(Bytes::copy_from_slice(encoded.get(range.start as usize..range.end as usize).unwrap_or_default()))
                    })
                    .collect::<Result<_, zarr_store_api::StoreError>>()?;
                match then {
                    Then::Index(node) => next.push(plan.supply_index(&node, slices.first().map(|bytes| &**bytes), &mut scratch)?),
                    Then::Chunks(parts) => {
                        for part in &parts {
                            let bytes = bytes_of(part, &slices).ok_or_else(|| short(plan, &part.node))?;
                            sink.chunk(plan, part, bytes, &mut scratch)?;
                        }
                    }
                }
            }
        }
        Ok(())
    }

    fn write(&self, representation: &ArrayRepresentation, data: Data<'_>, encoded: &mut Vec<u8>) -> Result<(), CodecError> {
        let plan = self.plan(representation)?;
        let parts = encode_value(&plan, data, Empty { keep: false }).map_err(into_codec)?;
        match parts {
            Some(parts) => parts.iter().for_each(|part| encoded.extend_from_slice(part)),
            // A shard without inner chunks still has an index when something around it must encode it.
            None => {
                let parts = encode_value(&plan, data, Empty { keep: true }).map_err(into_codec)?;
                parts.into_iter().flatten().for_each(|part| encoded.extend_from_slice(&part));
            }
        }
        Ok(())
    }
}

fn into_codec(error: ArrayError) -> CodecError {
    match error {
        ArrayError::Chunk { source, .. } => source,
        error => CodecError::format(CODEC, "a shard inside of the chunk").with_source(error),
    }
}

impl ArrayToBytes for WholeShard {
    fn encoded_len(&self, decoded: &ArrayRepresentation, limits: &Limits) -> Result<ByteLen, CodecError> {
        let plan = self.plan(decoded)?;
        let Some(len) = decoded.byte_len()? else { return Ok(ByteLen::AtMost(limits.variable_chunk)) };
        // Each inner chunk may grow a little, and has an entry of 16 bytes.
        let inner: u64 = plan.chunks.cells_at(&vec![0; decoded.shape.len()], 0).iter().product();
        Ok(ByteLen::AtMost((len as u64).saturating_mul(2).saturating_add(inner.saturating_mul(128)).saturating_add(64 << 10)))
    }

    fn decode(&self, representation: &ArrayRepresentation, encoded: &[u8], decoded: &mut [u8]) -> Result<(), CodecError> {
        let plan = self.plan(representation)?;
        let tiles = TileWriter::new(decoded, plan.output_layout().map_err(into_codec)?, plan.tiles())?;
        self.read(&plan, encoded, &tiles).map_err(into_codec)
    }

    fn encode(&self, representation: &ArrayRepresentation, decoded: &[u8], encoded: &mut Vec<u8>) -> Result<(), CodecError> {
        self.write(representation, Data::Fixed(decoded), encoded)
    }

    fn decode_variable(
        &self,
        representation: &ArrayRepresentation,
        encoded: &[u8],
        decoded: &mut VariableData,
        limit: usize,
    ) -> Result<(), CodecError> {
        let plan = self.plan(representation)?;
        let sink = VariableSink::default();
        self.read(&plan, encoded, &sink).map_err(into_codec)?;
        for element in sink.finish(representation.elements()?).iter() {
            if decoded.byte_len().saturating_add(element.len()) > limit {
                return Err(CodecError::limit(CODEC, limit));
            }
            decoded.push(element);
        }
        Ok(())
    }

    fn encode_variable(
        &self,
        representation: &ArrayRepresentation,
        decoded: &VariableData,
        encoded: &mut Vec<u8>,
    ) -> Result<(), CodecError> {
        self.write(representation, Data::Variable(decoded), encoded)
    }
}

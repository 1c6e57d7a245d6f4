//! How one array's chunks are stored: levels of sharding, the codec chain of the innermost chunks, and the order of their axes.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use zarr_buffer_api::Layout;
use zarr_codec_api::{ArrayRepresentation, ByteLen, Chain, CodecError, Policy, Registry, Representation};
use zarr_meta::{ChunkGrid, DataType, Extension, FillValue, GridAxis, Json};

use crate::geometry::Cuts;
use crate::shard_index::{IndexCodec, ShardingConfiguration};

/// Everything that the planner knows about an array: no store, no I/O.
#[derive(Debug)]
pub(crate) struct Chunks {
    pub(crate) cuts: Cuts,
    /// The levels of sharding, outermost first.
    pub(crate) levels: Vec<ShardLevel>,
    /// The codecs of the innermost chunks, transposes next to the array taken out.
    codecs: Vec<Extension>,
    /// Axis `i` of an innermost chunk, as stored, is axis `order[i]` of the array.
    pub(crate) order: Vec<usize>,
    pub(crate) data_type: DataType,
    pub(crate) fill_value: FillValue,
    registry: Registry,
    policy: Policy,
    bound: RwLock<HashMap<Vec<u64>, Arc<BoundChunk>>>,
    /// The one chain of all innermost chunks, where they have one shape.
    uniform: OnceLock<Arc<BoundChunk>>,
}

/// One level of sharding.
#[derive(Debug)]
pub(crate) struct ShardLevel {
    /// Axis `i` of the shard, as stored, is axis `order[i]` of the array.
    pub(crate) order: Vec<usize>,
    pub(crate) index: IndexCodec,
}

/// The codec chain for innermost chunks of one shape.
#[derive(Debug)]
pub(crate) struct BoundChunk {
    pub(crate) chain: Chain,
    /// Where the elements of a decoded chunk lie, for each axis of the array.
    pub(crate) layout: Layout,
    /// Bytes of a decoded chunk; 0 for elements of variable length.
    pub(crate) byte_len: usize,
    /// Whether encoded bytes are decoded bytes.
    pub(crate) verbatim: bool,
    /// The most that a chunk encodes to by any sane encoder; exact when the chain says so.
    pub(crate) encoded_len: ByteLen,
}

impl Chunks {
    pub(crate) fn new(
        grid: ChunkGrid,
        data_type: DataType,
        fill_value: FillValue,
        codecs: &[Extension],
        registry: &Registry,
        policy: &Policy,
    ) -> Result<Self, CodecError> {
        let rank = grid.rank();
        let registry = registry.clone().with(crate::sharding::provider(registry, policy));
        let mut order: Vec<usize> = (0..rank).collect();
        let (mut hoisted, mut levels, mut inner) = (Vec::new(), Vec::new(), Vec::new());
        let mut codecs = codecs.to_vec();
        let representation = ArrayRepresentation { data_type: data_type.clone(), shape: vec![1; rank], fill_value: fill_value.clone() };
        loop {
            let Some(shard) = split_sharding(&codecs, &representation, &registry, &mut order, &mut hoisted)? else { break };
            let parsed = ShardingConfiguration(&shard).parse(rank)?;
            let mut inner_shape = vec![0; rank];
            for (&axis, &len) in order.iter().zip(&parsed.chunk_shape) {
                if let Some(inner) = inner_shape.get_mut(axis) {
                    *inner = len;
                }
            }
            let level =
                ShardLevel { order: order.clone(), index: IndexCodec::new(parsed.index_codecs, parsed.location, &registry, order.len())? };
            codecs = parsed.codecs;
            levels.push(level);
            inner.push(inner_shape);
        }
        let mut all = hoisted;
        all.extend(fold_transposes(&codecs, &representation, &registry, &mut order)?);
        let chunks = Self {
            cuts: Cuts { grid, inner },
            levels,
            codecs: all,
            order,
            data_type,
            fill_value,
            registry,
            policy: policy.clone(),
            bound: RwLock::default(),
            uniform: OnceLock::new(),
        };
        chunks.check_levels()?;
        Ok(chunks)
    }

    /// Inner chunks must divide what is around them, all the way in.
    fn check_levels(&self) -> Result<(), CodecError> {
        let mut outer: Option<&Vec<u64>> = None;
        for inner in &self.cuts.inner {
            for (axis, &len) in inner.iter().enumerate() {
                let divides = |outer: u64| len != 0 && outer.is_multiple_of(len);
                let fits = match outer {
                    Some(outer) => outer.get(axis).is_some_and(|&outer| divides(outer)),
                    None => match &self.cuts.grid {
                        ChunkGrid::Rectilinear { axes } => {
                            let all =
                                |axis: &GridAxis| axis.as_step().is_none_or(divides) && axis.as_runs().all(|(outer, _)| divides(outer));
                            axes.get(axis).is_some_and(all)
                        }
                        grid => divides(grid.chunk_len(axis, 0)),
                    },
                };
                if !fits {
                    return Err(CodecError::metadata(
                        "sharding_indexed",
                        format!("inner chunks of {len} along axis {axis} do not divide the chunk around them"),
                    ));
                }
            }
            outer = Some(inner);
        }
        Ok(())
    }

    /// Bytes of one element; `None` for elements of variable length.
    pub(crate) fn item_size(&self) -> Option<usize> {
        self.data_type.fixed_size()
    }

    /// The bytes of the fill value of a data type of fixed length.
    pub(crate) fn fill_bytes(&self) -> &[u8] {
        match &self.fill_value {
            FillValue::Fixed(bytes) | FillValue::Variable(bytes) => bytes,
        }
    }

    /// The shape of the innermost chunk that holds inner chunks of `level` (or the chunk itself) at `chunk` of the grid.
    pub(crate) fn shape_at(&self, chunk: &[u64], level: usize) -> Vec<u64> {
        match level.checked_sub(1) {
            None => self.cuts.grid.chunk_shape(chunk),
            Some(outer) => self.cuts.inner.get(outer).cloned().unwrap_or_default(),
        }
    }

    /// Bytes of the decoded elements of the chunk at `chunk` of the grid; `None` for elements of variable length, and where they do not fit the address space.
    pub(crate) fn byte_len_at(&self, chunk: &[u64]) -> Option<usize> {
        let elements = self.shape_at(chunk, 0).iter().try_fold(1u64, |product, &len| product.checked_mul(len))?;
        usize::try_from(elements).ok()?.checked_mul(self.item_size()?)
    }

    /// How many inner chunks a shard of `level` has along each axis of the array.
    pub(crate) fn cells_at(&self, chunk: &[u64], level: usize) -> Vec<u64> {
        let outer = self.shape_at(chunk, level);
        let inner = self.cuts.inner.get(level).map(Vec::as_slice).unwrap_or_default();
        outer.iter().zip(inner).map(|(&outer, &inner)| outer.checked_div(inner).unwrap_or(0)).collect()
    }

    /// The shape of the innermost chunks at `chunk` of the grid.
    pub(crate) fn leaf_shape(&self, chunk: &[u64]) -> Vec<u64> {
        self.shape_at(chunk, self.levels.len())
    }

    /// The codec chain for the innermost chunks at `chunk` of the grid. Borrowed where all have the same: threads that count references to it for each chunk would wait for each other.
    pub(crate) fn bound_at(&self, chunk: &[u64]) -> Result<Cow<'_, Arc<BoundChunk>>, CodecError> {
        if self.levels.is_empty() && !matches!(self.cuts.grid, ChunkGrid::Regular { .. }) {
            return self.bound(&self.leaf_shape(chunk)).map(Cow::Owned);
        }
        if let Some(bound) = self.uniform.get() {
            return Ok(Cow::Borrowed(bound));
        }
        let bound = self.bound(&self.leaf_shape(chunk))?;
        Ok(Cow::Borrowed(self.uniform.get_or_init(|| bound)))
    }

    /// The codec chain for innermost chunks of a shape.
    pub(crate) fn bound(&self, shape: &[u64]) -> Result<Arc<BoundChunk>, CodecError> {
        if let Some(bound) = self.bound.read().unwrap_or_else(PoisonError::into_inner).get(shape) {
            return Ok(Arc::clone(bound));
        }
        let bound = Arc::new(self.bind(shape)?);
        let mut cache = self.bound.write().unwrap_or_else(PoisonError::into_inner);
        // A rectilinear grid may have as many shapes as chunks.
        if cache.len() >= 1024 {
            cache.clear();
        }
        Ok(Arc::clone(cache.entry(shape.to_vec()).or_insert(bound)))
    }

    fn bind(&self, shape: &[u64]) -> Result<BoundChunk, CodecError> {
        let stored: Vec<u64> = self.order.iter().map(|&axis| shape.get(axis).copied().unwrap_or(0)).collect();
        let representation = ArrayRepresentation { data_type: self.data_type.clone(), shape: stored, fill_value: self.fill_value.clone() };
        let byte_len = representation.byte_len()?.unwrap_or(0);
        // Elements of variable length are counted, not measured.
        let item_size = self.item_size().unwrap_or(1);
        let in_memory = |len: &u64| usize::try_from(*len).map_err(|_| CodecError::limit("chunk", usize::MAX));
        let stored: Vec<usize> = representation.shape.iter().map(in_memory).collect::<Result<_, _>>()?;
        let c_order = Layout::contiguous(&stored, item_size)?;
        let mut layout = Layout { offset: 0, shape: vec![0; stored.len()], strides: vec![0; stored.len()], item_size };
        for (position, &axis) in self.order.iter().enumerate() {
            if let (Some(len), Some(stride)) = (layout.shape.get_mut(axis), layout.strides.get_mut(axis)) {
                *len = stored.get(position).copied().unwrap_or(0);
                *stride = c_order.strides.get(position).copied().unwrap_or(0);
            }
        }
        let chain = Chain::bind(&self.codecs, representation, &self.registry, &self.policy)?;
        let encoded_len = match chain.encoded() {
            Representation::Bytes(len) => len,
            Representation::Array(_) => return Err(CodecError::metadata("codecs", "the chain has no array to bytes codec")),
        };
        let verbatim = byte_len > 0 && chain.is_verbatim();
        Ok(BoundChunk { chain, layout, byte_len, verbatim, encoded_len })
    }

    pub(crate) fn registry(&self) -> &Registry {
        &self.registry
    }
}

/// If the chain ends in a shard that the planner can see through, takes what stands before it apart (transposes into `order`, elementwise
/// codecs into `hoisted`) and gives the shard. A chain in which anything else stands around the shard is left to the whole-shard codec.
fn split_sharding(
    codecs: &[Extension],
    representation: &ArrayRepresentation,
    registry: &Registry,
    order: &mut Vec<usize>,
    hoisted: &mut Vec<Extension>,
) -> Result<Option<Extension>, CodecError> {
    let Some((shard, before)) = codecs.split_last().filter(|(last, _)| last.name == "sharding_indexed") else { return Ok(None) };
    let mut new_order = order.clone();
    let mut new_hoisted = hoisted.clone();
    let mut decoded = Representation::Array(representation.clone());
    for codec in &new_hoisted {
        decoded = registry.encoded_representation(codec, &decoded)?;
    }
    for codec in before {
        if let Some(permutation) = transpose_order(codec, order.len())? {
            new_order = permutation.iter().filter_map(|&axis| new_order.get(axis).copied()).collect();
        } else if is_elementwise(codec, &decoded, registry) {
            decoded = registry.encoded_representation(codec, &decoded)?;
            new_hoisted.push(codec.clone());
        } else {
            return Ok(None);
        }
    }
    *order = new_order;
    *hoisted = new_hoisted;
    Ok(Some(shard.clone()))
}

/// Takes the transposes out that only elementwise codecs separate from the array: they are an order of axes, not work.
fn fold_transposes(
    codecs: &[Extension],
    representation: &ArrayRepresentation,
    registry: &Registry,
    order: &mut Vec<usize>,
) -> Result<Vec<Extension>, CodecError> {
    let mut left = Vec::with_capacity(codecs.len());
    let mut decoded = Representation::Array(representation.clone());
    let mut codecs = codecs.iter();
    for codec in codecs.by_ref() {
        if let Some(permutation) = transpose_order(codec, order.len())? {
            *order = permutation.iter().filter_map(|&axis| order.get(axis).copied()).collect();
            continue;
        }
        left.push(codec.clone());
        if !is_elementwise(codec, &decoded, registry) {
            break;
        }
        decoded = registry.encoded_representation(codec, &decoded)?;
    }
    left.extend(codecs.cloned());
    Ok(left)
}

fn is_elementwise(codec: &Extension, decoded: &Representation, registry: &Registry) -> bool {
    registry.providers().any(|provider| provider.is_elementwise(codec, decoded))
}

/// The permutation of a `transpose` codec; `None` for any other codec.
fn transpose_order(codec: &Extension, rank: usize) -> Result<Option<Vec<usize>>, CodecError> {
    if codec.name != "transpose" {
        return Ok(None);
    }
    let order = codec.configuration.as_ref().and_then(|configuration| configuration.get("order"));
    let wrong = || CodecError::metadata("transpose", format!("order is not a permutation of the {rank} axes"));
    let permutation: Vec<usize> = match order {
        Some(Json::String(order)) if order == "C" => (0..rank).collect(),
        Some(Json::String(order)) if order == "F" => (0..rank).rev().collect(),
        Some(order) => order
            .as_array()
            .ok_or_else(wrong)?
            .iter()
            .map(|axis| axis.as_u64().and_then(|axis| usize::try_from(axis).ok()).ok_or_else(wrong))
            .collect::<Result<_, _>>()?,
        None => return Err(wrong()),
    };
    let mut seen = vec![false; rank];
    for &axis in &permutation {
        match seen.get_mut(axis) {
            Some(seen) if !*seen => *seen = true,
            _ => return Err(wrong()),
        }
    }
    if permutation.len() == rank { Ok(Some(permutation)) } else { Err(wrong()) }
}

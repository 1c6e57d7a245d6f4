//! The index of a shard: where its inner chunks lie.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use zarr_codec_api::{ArrayRepresentation, Chain, CodecError, Policy, Registry, Representation, Scratch, Source, Target};
use zarr_meta::{DataType, Extension, FillValue, Json};
use zarr_store_api::{ByteRange, StoreKey, Version};

/// Both numbers of the entry of an empty inner chunk.
const EMPTY: u64 = u64::MAX;
const CODEC: &str = "sharding_indexed";

/// Where the index stands in a shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IndexLocation {
    Start,
    End,
}

/// The configuration of `sharding_indexed`, as JSON.
pub(crate) struct ShardingConfiguration<'a>(pub(crate) &'a Extension);

/// The configuration of `sharding_indexed`, checked.
#[derive(Debug, Clone)]
pub(crate) struct Sharding {
    /// Elements of an inner chunk along each axis of the shard, as stored.
    pub(crate) chunk_shape: Vec<u64>,
    pub(crate) codecs: Vec<Extension>,
    pub(crate) index_codecs: Vec<Extension>,
    pub(crate) location: IndexLocation,
}

impl ShardingConfiguration<'_> {
    pub(crate) fn parse(&self, rank: usize) -> Result<Sharding, CodecError> {
        let wrong = |message: String| CodecError::metadata(CODEC, message);
        let configuration = self.0.configuration.as_ref().ok_or_else(|| wrong("the configuration is missing".into()))?;
        let mut sharding = Sharding { chunk_shape: Vec::new(), codecs: Vec::new(), index_codecs: Vec::new(), location: IndexLocation::End };
        for (key, value) in configuration.iter() {
            match key {
                "chunk_shape" => {
                    sharding.chunk_shape = lengths(value).ok_or_else(|| wrong("chunk_shape is not a list of lengths".into()))?
                }
                "codecs" => sharding.codecs = codecs(key, value)?,
                "index_codecs" => sharding.index_codecs = codecs(key, value)?,
                "index_location" => {
                    sharding.location = match value.as_str() {
                        Some("start") => IndexLocation::Start,
                        Some("end") => IndexLocation::End,
                        _ => return Err(wrong("index_location is neither \"start\" nor \"end\"".into())),
                    }
                }
                other => return Err(wrong(format!("unknown key {other:?} in the configuration"))),
            }
        }
        if sharding.chunk_shape.len() != rank || sharding.chunk_shape.contains(&0) {
            return Err(wrong(format!("chunk_shape {:?} is not {rank} lengths of at least 1", sharding.chunk_shape)));
        }
        if sharding.codecs.is_empty() || sharding.index_codecs.is_empty() {
            return Err(wrong("codecs or index_codecs are missing".into()));
        }
        Ok(sharding)
    }
}

fn lengths(value: &Json) -> Option<Vec<u64>> {
    value.as_array()?.iter().map(Json::as_u64).collect()
}

fn codecs(key: &str, value: &Json) -> Result<Vec<Extension>, CodecError> {
    let list = value.as_array().ok_or_else(|| CodecError::metadata(CODEC, format!("{key} is not a list")))?;
    let parse = |codec| Extension::parse(codec).map_err(|error| CodecError::metadata(CODEC, key).with_source(error));
    list.iter().map(parse).collect()
}

/// The codec chain of an index: any whose encoded size is certain.
#[derive(Debug)]
pub(crate) struct IndexCodec {
    codecs: Vec<Extension>,
    pub(crate) location: IndexLocation,
    registry: Registry,
    /// By the number of inner chunks along each axis, as stored: rectilinear grids have shards of several shapes.
    bound: RwLock<HashMap<Vec<u64>, Arc<BoundIndex>>>,
}

/// The codec chain of an index of one shape.
#[derive(Debug)]
pub(crate) struct BoundIndex {
    chain: Chain,
    decoded_len: usize,
    /// Bytes of the encoded index.
    pub(crate) encoded_len: u64,
}

impl IndexCodec {
    /// The index of shards of `rank` axes.
    pub(crate) fn new(codecs: Vec<Extension>, location: IndexLocation, registry: &Registry, rank: usize) -> Result<Self, CodecError> {
        let index = Self { codecs, location, registry: registry.clone(), bound: RwLock::default() };
        // An index of unknown size is an error of the metadata, to be told when the array is opened.
        index.bound(&vec![1; rank])?;
        Ok(index)
    }

    /// The chain for an index of so many inner chunks along each axis, as stored.
    pub(crate) fn bound(&self, cells: &[u64]) -> Result<Arc<BoundIndex>, CodecError> {
        if let Some(bound) = self.bound.read().unwrap_or_else(PoisonError::into_inner).get(cells) {
            return Ok(Arc::clone(bound));
        }
        let mut shape = cells.to_vec();
        shape.push(2);
        let fill_value = FillValue::Fixed(Box::new([0xFF; 8]));
        let representation = ArrayRepresentation { data_type: DataType::UInt64, shape, fill_value };
        let decoded_len = representation.fixed_len(CODEC)?;
        let chain = Chain::bind(&self.codecs, representation, &self.registry, &Policy::Host)?;
        let encoded_len = match chain.encoded() {
            Representation::Bytes(len) => len.exact(),
            Representation::Array(_) => None,
        };
        let encoded_len = encoded_len.ok_or_else(|| CodecError::metadata(CODEC, "index_codecs do not give an index of certain size"))?;
        let bound = Arc::new(BoundIndex { chain, decoded_len, encoded_len });
        let mut cache = self.bound.write().unwrap_or_else(PoisonError::into_inner);
        if cache.len() >= 1024 {
            cache.clear();
        }
        cache.insert(cells.to_vec(), Arc::clone(&bound));
        Ok(bound)
    }
}

impl BoundIndex {
    /// Where the index lies, in a shard that is a whole value (`base` is `None`) or part of one.
    pub(crate) fn range(&self, location: IndexLocation, base: Option<&Range<u64>>) -> Result<ByteRange, CodecError> {
        let Some(base) = base else {
            return Ok(match location {
                IndexLocation::Start => ByteRange::Bounded { start: 0, end: self.encoded_len },
                IndexLocation::End => ByteRange::Suffix(self.encoded_len),
            });
        };
        if base.end - base.start < self.encoded_len {
            return Err(CodecError::format(
                CODEC,
                format!("a shard of {} bytes has no room for its index of {}", base.end - base.start, self.encoded_len),
            ));
        }
        Ok(match location {
            IndexLocation::Start => ByteRange::Bounded { start: base.start, end: base.start + self.encoded_len },
            IndexLocation::End => ByteRange::Bounded { start: base.end - self.encoded_len, end: base.end },
        })
    }

    pub(crate) fn decode(&self, encoded: &[u8], scratch: &mut Scratch) -> Result<ShardIndex, CodecError> {
        if encoded.len() as u64 != self.encoded_len {
            let (expected, found) = (self.encoded_len, encoded.len());
            return Err(CodecError::format(
                CODEC,
                format!("the shard is cut short: its index has {expected} bytes, and {found} are there"),
            ));
        }
        let mut entries = vec![0; self.decoded_len];
        let wrong =
            |error| CodecError::format(CODEC, "the shard's index cannot be decoded, as when a shard is cut short").with_source(error);
        self.chain.decode(encoded, Target::Exact(&mut entries), scratch).map_err(wrong)?;
        Ok(ShardIndex { entries })
    }

    pub(crate) fn encode(&self, index: &ShardIndex, scratch: &mut Scratch) -> Result<Vec<u8>, CodecError> {
        let mut encoded = Vec::new();
        self.chain.encode(Source::Bytes(&index.entries), &mut encoded, scratch)?;
        if encoded.len() as u64 != self.encoded_len {
            return Err(CodecError::metadata(CODEC, format!("index_codecs gave {} bytes instead of {}", encoded.len(), self.encoded_len)));
        }
        Ok(encoded)
    }

    pub(crate) fn empty(&self) -> ShardIndex {
        ShardIndex { entries: vec![0xFF; self.decoded_len] }
    }
}

/// A decoded index: pairs of offset and length, C order over the inner chunks as stored, native byte order.
#[derive(Debug, Clone)]
pub(crate) struct ShardIndex {
    entries: Vec<u8>,
}

impl ShardIndex {
    /// Where inner chunk `number` lies, counted from the start of the shard; `None` when it is empty. `len` is the length of the shard, where known.
    pub(crate) fn get(&self, number: usize, len: Option<u64>) -> Result<Option<Range<u64>>, CodecError> {
        let entry = number.checked_mul(16).and_then(|at| self.entries.get(at..at.checked_add(16)?));
        let Some((offset, nbytes)) =
            entry.and_then(|entry| entry.split_first_chunk::<8>()).and_then(|(offset, rest)| Some((offset, rest.first_chunk::<8>()?)))
        else {
            return Err(no_entry(number));
        };
        let (offset, nbytes) = (u64::from_ne_bytes(*offset), u64::from_ne_bytes(*nbytes));
        if offset == EMPTY && nbytes == EMPTY {
            return Ok(None);
        }
        let end = offset.checked_add(nbytes).filter(|&end| len.is_none_or(|len| end <= len));
        match end {
            Some(end) => Ok(Some(offset..end)),
            None => Err(CodecError::format(
                CODEC,
                format!(
                    "entry {number} of the index, {nbytes} bytes at {offset}, lies outside the shard{}",
                    len.map_or(String::new(), |len| format!(" of {len} bytes"))
                ),
            )),
        }
    }

    pub(crate) fn set(&mut self, number: usize, range: Range<u64>) -> Result<(), CodecError> {
        let entry = number.checked_mul(16).and_then(|at| self.entries.get_mut(at..at.checked_add(16)?));
        let (offset, nbytes) = entry.ok_or_else(|| no_entry(number))?.split_at_mut(8);
        offset.copy_from_slice(&range.start.to_ne_bytes());
        nbytes.copy_from_slice(&(range.end - range.start).to_ne_bytes());
        Ok(())
    }
}

/// Indexes of shards that were read lately, within a number of bytes. Each is of one version of a value, and serves reads of that version.
#[derive(Debug)]
pub(crate) struct IndexCache {
    capacity: usize,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    values: HashMap<StoreKey, OfValue>,
    bytes: usize,
}

/// The indexes of a value.
#[derive(Debug)]
struct OfValue {
    version: Version,
    /// By the shard's place in the value that holds it; `None`: it is the value.
    indexes: HashMap<Option<Range<u64>>, Arc<ShardIndex>>,
    bytes: usize,
}

/// About what an index takes besides its entries: a key, a place, a version, and what maps and allocators keep of them.
const OVERHEAD: usize = 256;

impl IndexCache {
    pub(crate) fn new(capacity: usize) -> Self {
        Self { capacity, kept: Mutex::default() }
    }

    pub(crate) fn get(&self, key: &StoreKey, base: Option<&Range<u64>>, version: &Version) -> Option<Arc<ShardIndex>> {
        let kept = self.kept();
        let value = kept.values.get(key).filter(|value| value.version == *version)?;
        value.indexes.get(&base.cloned()).cloned()
    }

    /// The version of a value that indexes are kept of.
    pub(crate) fn version(&self, key: &StoreKey) -> Option<Version> {
        self.kept().values.get(key).map(|value| value.version.clone())
    }

    /// Forgets the indexes of a value that was replaced.
    pub(crate) fn forget(&self, key: &StoreKey) {
        let mut kept = self.kept();
        if let Some(old) = kept.values.remove(key) {
            kept.bytes -= old.bytes;
        }
    }

    /// Keeps an index in the place of those of another version.
    pub(crate) fn put(&self, key: &StoreKey, base: Option<&Range<u64>>, version: &Version, index: &Arc<ShardIndex>) {
        let bytes = index.entries.len() + OVERHEAD;
        if bytes > self.capacity || !version.is_settled() {
            return;
        }
        let mut kept = self.kept();
        let Kept { values, bytes: sum } = &mut *kept;
        match values.get(key) {
            Some(value) if value.version != *version => {
                *sum -= value.bytes;
                values.remove(key);
            }
            // Another thread was faster.
            Some(value) if value.indexes.contains_key(&base.cloned()) => return,
            _ => {}
        }
        if *sum + bytes > self.capacity {
            // Readers walk through shards in some order: what is old is seldom asked for again.
            values.clear();
            *sum = 0;
        }
        *sum += bytes;
        let value = values.entry(key.clone());
        let value = value.or_insert_with(|| OfValue { version: version.clone(), indexes: HashMap::new(), bytes: 0 });
        value.indexes.insert(base.cloned(), Arc::clone(index));
        value.bytes += bytes;
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The error about an inner chunk that the index has no place for.
pub(crate) fn no_entry(number: usize) -> CodecError {
    CodecError::format(CODEC, format!("the index has no entry {number}"))
}

/// The number of an inner chunk in the index: C order over the axes as stored.
pub(crate) fn entry_number(cell: &[u64], cells: &[u64], order: &[usize]) -> usize {
    order.iter().fold(0usize, |number, &axis| {
        let count = cells.get(axis).copied().unwrap_or(0) as usize;
        number.wrapping_mul(count).wrapping_add(cell.get(axis).copied().unwrap_or(0) as usize)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_of_one_version_and_within_bounds() {
        let key = |name: &str| StoreKey::new(name).unwrap();
        let version = |number| Version::of_numbers([number, 0, 0, 0]);
        let index = Arc::new(ShardIndex { entries: vec![0; 64] });
        // Room for three.
        let cache = IndexCache::new(3 * (64 + OVERHEAD) + 10);
        let is_kept = |name: &str, base: Option<Range<u64>>, number| cache.get(&key(name), base.as_ref(), &version(number)).is_some();
        cache.put(&key("a"), None, &version(1), &index);
        cache.put(&key("a"), Some(&(8..99)), &version(1), &index);
        cache.put(&key("b"), None, &version(2), &index);
        // Kept already: no reason to make room.
        cache.put(&key("a"), None, &version(1), &index);
        assert!(is_kept("a", None, 1) && is_kept("a", Some(8..99), 1) && is_kept("b", None, 2));
        assert!(!is_kept("a", None, 2) && !is_kept("a", Some(0..99), 1) && !is_kept("c", None, 1));
        // Another version takes the place of both.
        cache.put(&key("a"), None, &version(3), &index);
        assert!(is_kept("a", None, 3) && !is_kept("a", None, 1) && !is_kept("a", Some(8..99), 1) && is_kept("b", None, 2));
        cache.put(&key("c"), None, &version(4), &index);
        assert!(is_kept("b", None, 2) && is_kept("c", None, 4));
        cache.put(&key("d"), None, &version(5), &index);
        assert!(is_kept("d", None, 5) && !is_kept("b", None, 2));
        cache.put(&key("e"), None, &version(6).unsettled(), &index);
        assert!(!is_kept("e", None, 6));
        cache.forget(&key("d"));
        assert_eq!(cache.kept().bytes, 0);
    }
}

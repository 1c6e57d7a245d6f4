//! Values in memory.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use zarr_store_api::{
    AnyStore, ByteRange, Bytes, ListableStore, Listing, ReadableStore, Store, StoreError, StoreKey, StorePrefix, ValueReader, Version,
    WritableStore,
};

use crate::bytes_of;

/// A store in memory. Clones share the values.
///
/// Reads hand out the stored bytes without a copy. A process that is forked while another thread has hold of the values may wait for it for ever: then, use no store of this kind there.
///
/// ```
/// use zarr_store::MemoryStore;
/// use zarr_store_api::{ByteRange, ReadableStore, StoreKey, WritableStore};
///
/// let store = MemoryStore::new();
/// let key = StoreKey::new("a/c/0")?;
/// store.set(&key, "hello".into())?;
/// assert_eq!(store.get(&key, ByteRange::Suffix(2))?.as_deref(), Some(&b"lo"[..]));
/// # Ok::<(), zarr_store_api::StoreError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct MemoryStore {
    values: Arc<RwLock<BTreeMap<StoreKey, Value>>>,
}

#[derive(Clone, Debug)]
struct Value {
    bytes: Bytes,
    /// No other value of the process has it.
    number: u64,
}

impl MemoryStore {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn value(&self, key: &StoreKey) -> Option<Value> {
        self.read().get(key).cloned()
    }

    // No operation can leave the map half changed, so a panic elsewhere does not spoil it.
    fn read(&self) -> RwLockReadGuard<'_, BTreeMap<StoreKey, Value>> {
        self.values.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, BTreeMap<StoreKey, Value>> {
        self.values.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Calls `visit` for the keys below a prefix in order; its answer says where to go on.
fn walk(
    values: &BTreeMap<StoreKey, Value>,
    prefix: &StorePrefix,
    mut visit: impl FnMut(&StoreKey) -> Result<Option<StoreKey>, StoreError>,
) -> Result<(), StoreError> {
    // The least key that can lie below the prefix; NUL itself is not allowed in keys.
    let mut from = match prefix.key("\u{1}") {
        Ok(least) if !prefix.is_root() => Bound::Included(least),
        _ => Bound::Unbounded,
    };
    loop {
        let mut skip_to = None;
        for (key, _) in values.range((from.clone(), Bound::Unbounded)) {
            if !prefix.contains(key) {
                return Ok(());
            }
            skip_to = visit(key)?;
            if skip_to.is_some() {
                break;
            }
        }
        match skip_to {
            Some(next) => from = Bound::Included(next),
            None => return Ok(()),
        }
    }
}

impl ReadableStore for MemoryStore {
    fn get(&self, key: &StoreKey, range: ByteRange) -> Result<Option<Bytes>, StoreError> {
        let Some(value) = self.value(key) else { return Ok(None) };
        bytes_of(&value.bytes, range).map(Some).map_err(|error| error.with_key(key))
    }

    fn size(&self, key: &StoreKey) -> Result<Option<u64>, StoreError> {
        Ok(self.read().get(key).map(|value| value.bytes.len() as u64))
    }

    fn get_ranges(&self, key: &StoreKey, ranges: &[ByteRange]) -> Result<Option<Vec<Bytes>>, StoreError> {
        let Some(value) = self.value(key) else { return Ok(None) };
        let parts: Result<_, _> = ranges.iter().map(|range| bytes_of(&value.bytes, *range)).collect();
        parts.map(Some).map_err(|error: StoreError| error.with_key(key))
    }

    /// The value of this moment, whatever becomes of the key.
    fn reader<'a>(&'a self, key: &StoreKey) -> Result<Box<dyn ValueReader + 'a>, StoreError> {
        Ok(Box::new(Held { key: key.clone(), value: self.value(key) }))
    }
}

/// A value that was stored, or `None` where there was none.
#[derive(Debug)]
struct Held {
    key: StoreKey,
    value: Option<Value>,
}

impl ValueReader for Held {
    fn get(&self, range: ByteRange) -> Result<Option<Bytes>, StoreError> {
        let Some(value) = &self.value else { return Ok(None) };
        bytes_of(&value.bytes, range).map(Some).map_err(|error| error.with_key(&self.key))
    }

    fn get_ranges(&self, ranges: &[ByteRange]) -> Result<Option<Vec<Bytes>>, StoreError> {
        match &self.value {
            Some(_) => ranges.iter().map(|range| self.get(*range)).collect(),
            None => Ok(None),
        }
    }

    fn get_into(&self, range: ByteRange, dst: &mut [u8]) -> Result<Option<usize>, StoreError> {
        let Some(bytes) = self.get(range)? else { return Ok(None) };
        let (length, capacity) = (bytes.len(), dst.len());
        let front = dst.get_mut(..length);
        let too_short = || StoreError::destination_too_short(length as u64, capacity).with_key(&self.key).with_range(range);
        front.ok_or_else(too_short)?.copy_from_slice(&bytes);
        Ok(Some(length))
    }

    fn get_pieces(&self, range: ByteRange, _: &mut [u8], each: &mut dyn FnMut(u64, &[u8])) -> Result<Option<u64>, StoreError> {
        let Some(bytes) = self.get(range)? else { return Ok(None) };
        each(0, &bytes);
        Ok(Some(bytes.len() as u64))
    }

    fn version(&self) -> Option<Version> {
        self.value.as_ref().map(|value| Version::of_numbers([value.number, 0, 0, 0]))
    }
}

impl WritableStore for MemoryStore {
    fn set(&self, key: &StoreKey, value: Bytes) -> Result<(), StoreError> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        self.write().insert(key.clone(), Value { bytes: value, number: NEXT.fetch_add(1, Ordering::Relaxed) });
        Ok(())
    }

    fn erase(&self, key: &StoreKey) -> Result<(), StoreError> {
        self.write().remove(key);
        Ok(())
    }

    fn erase_prefix(&self, prefix: &StorePrefix) -> Result<(), StoreError> {
        let mut values = self.write();
        let mut doomed = Vec::new();
        walk(&values, prefix, |key| {
            doomed.push(key.clone());
            Ok(None)
        })?;
        for key in doomed {
            values.remove(&key);
        }
        Ok(())
    }
}

impl ListableStore for MemoryStore {
    fn list(&self, prefix: &StorePrefix) -> Result<Vec<StoreKey>, StoreError> {
        let mut keys = Vec::new();
        walk(&self.read(), prefix, |key| {
            keys.push(key.clone());
            Ok(None)
        })?;
        Ok(keys)
    }

    fn list_dir(&self, prefix: &StorePrefix) -> Result<Listing, StoreError> {
        let mut listing = Listing::default();
        walk(&self.read(), prefix, |key| {
            let Some((below, _)) = prefix.strip(key).and_then(|name| name.split_once('/')) else {
                listing.keys.push(key.clone());
                return Ok(None);
            };
            listing.prefixes.push(prefix.join(below)?);
            // `0` follows `/` in ASCII: the first key that is not below this prefix any more.
            prefix.key(&format!("{below}0")).map(Some)
        })?;
        listing.sort();
        Ok(listing)
    }
}

impl Store for MemoryStore {
    fn as_writable(&self) -> Option<&dyn WritableStore> {
        Some(self)
    }

    fn as_listable(&self) -> Option<&dyn ListableStore> {
        Some(self)
    }

    fn name(&self) -> String {
        "memory://".to_owned()
    }
}

impl From<MemoryStore> for AnyStore {
    fn from(store: MemoryStore) -> Self {
        AnyStore::blocking(store)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_stays_with_the_value_that_it_found() {
        let store = MemoryStore::new();
        let key = |name| StoreKey::new(name).unwrap();
        store.set(&key("a"), "old value".into()).unwrap();
        let (reader, absent) = (store.reader(&key("a")).unwrap(), store.reader(&key("b")).unwrap());
        store.set(&key("a"), "new".into()).unwrap();
        store.set(&key("b"), "new".into()).unwrap();
        let mut bytes = [0; 4];
        assert_eq!(reader.get_into((4..8).into(), &mut bytes).unwrap(), Some(4));
        assert_eq!((&bytes, reader.get(ByteRange::Suffix(5)).unwrap().as_deref()), (b"valu", Some(&b"value"[..])));
        assert_eq!(reader.get_ranges(&[ByteRange::All, (0..3).into()]).unwrap().unwrap(), ["old value", "old"]);
        assert!(reader.get_into(ByteRange::All, &mut bytes).is_err());
        assert!(absent.get(ByteRange::All).unwrap().is_none() && absent.get_ranges(&[]).unwrap().is_none());
        assert_eq!(store.reader(&key("a")).unwrap().get(ByteRange::All).unwrap().as_deref(), Some(&b"new"[..]));
    }
}

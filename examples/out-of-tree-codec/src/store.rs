use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use zarr_store_api::{ByteRange, Bytes, ListableStore, Listing, ReadableStore, Store, StoreError, StoreKey, StorePrefix, WritableStore};

/// Values on a shelf in memory, to read, write and list.
#[derive(Debug, Default)]
pub struct Shelf(Mutex<BTreeMap<StoreKey, Bytes>>);

impl Shelf {
    fn values(&self) -> MutexGuard<'_, BTreeMap<StoreKey, Bytes>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ReadableStore for Shelf {
    fn get(&self, key: &StoreKey, range: ByteRange) -> Result<Option<Bytes>, StoreError> {
        let Some(value) = self.values().get(key).cloned() else {
            return Ok(None);
        };
        let range = range.resolve(value.len() as u64).map_err(|error| error.with_key(key))?;
        Ok(Some(value.slice(range.start as usize..range.end as usize)))
    }
    fn size(&self, key: &StoreKey) -> Result<Option<u64>, StoreError> {
        Ok(self.values().get(key).map(|value| value.len() as u64))
    }
}

impl WritableStore for Shelf {
    fn set(&self, key: &StoreKey, value: Bytes) -> Result<(), StoreError> {
        self.values().insert(key.clone(), value);
        Ok(())
    }
    fn erase(&self, key: &StoreKey) -> Result<(), StoreError> {
        self.values().remove(key);
        Ok(())
    }
    fn erase_prefix(&self, prefix: &StorePrefix) -> Result<(), StoreError> {
        self.values().retain(|key, _| !prefix.contains(key));
        Ok(())
    }
}

impl ListableStore for Shelf {
    fn list(&self, prefix: &StorePrefix) -> Result<Vec<StoreKey>, StoreError> {
        Ok(self.values().keys().filter(|key| prefix.contains(key)).cloned().collect())
    }
    fn list_dir(&self, prefix: &StorePrefix) -> Result<Listing, StoreError> {
        Ok(Listing::from_keys(prefix, self.list(prefix)?))
    }
}

impl Store for Shelf {
    fn as_writable(&self) -> Option<&dyn WritableStore> {
        Some(self)
    }
    fn as_listable(&self) -> Option<&dyn ListableStore> {
        Some(self)
    }
    fn name(&self) -> String {
        "shelf".into()
    }
}

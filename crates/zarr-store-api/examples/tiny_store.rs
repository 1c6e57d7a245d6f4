//! A complete store of one's own: values in a map, blocking, readable, writable and listable.
//!
//! Run with `cargo run -p zarr-store-api --example tiny_store`.

use std::collections::BTreeMap;
use std::sync::Mutex;

use zarr_store_api::{
    AnyStore, ByteRange, Bytes, ListableStore, Listing, ReadableStore, Store, StoreError, StoreKey, StorePrefix, WritableStore,
};

#[derive(Debug, Default)]
struct TinyStore(Mutex<BTreeMap<StoreKey, Bytes>>);

impl TinyStore {
    fn map(&self) -> std::sync::MutexGuard<'_, BTreeMap<StoreKey, Bytes>> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl ReadableStore for TinyStore {
    fn get(&self, key: &StoreKey, range: ByteRange) -> Result<Option<Bytes>, StoreError> {
        let Some(value) = self.map().get(key).cloned() else {
            return Ok(None);
        };
        let range = range.resolve(value.len() as u64).map_err(|error| error.with_key(key))?;
        Ok(Some(value.slice(range.start as usize..range.end as usize)))
    }

    fn size(&self, key: &StoreKey) -> Result<Option<u64>, StoreError> {
        Ok(self.map().get(key).map(|value| value.len() as u64))
    }
}

impl WritableStore for TinyStore {
    fn set(&self, key: &StoreKey, value: Bytes) -> Result<(), StoreError> {
        self.map().insert(key.clone(), value);
        Ok(())
    }

    fn erase(&self, key: &StoreKey) -> Result<(), StoreError> {
        self.map().remove(key);
        Ok(())
    }

    fn erase_prefix(&self, prefix: &StorePrefix) -> Result<(), StoreError> {
        self.map().retain(|key, _| !prefix.contains(key));
        Ok(())
    }
}

impl ListableStore for TinyStore {
    fn list(&self, prefix: &StorePrefix) -> Result<Vec<StoreKey>, StoreError> {
        Ok(self.map().keys().filter(|key| prefix.contains(key)).cloned().collect())
    }

    fn list_dir(&self, prefix: &StorePrefix) -> Result<Listing, StoreError> {
        Ok(Listing::from_keys(prefix, self.list(prefix)?))
    }
}

impl Store for TinyStore {
    fn as_writable(&self) -> Option<&dyn WritableStore> {
        Some(self)
    }

    fn as_listable(&self) -> Option<&dyn ListableStore> {
        Some(self)
    }

    fn name(&self) -> String {
        "tiny://".to_owned()
    }
}

fn main() -> Result<(), StoreError> {
    let store = TinyStore::default();
    let array = StorePrefix::new("temperature")?;
    store.set(&array.key("zarr.json")?, Bytes::from_static(b"{}"))?;
    store.set_vectored(&array.key("c/0/0")?, &[b"inner chunks", b" + ", b"index"])?;

    let mut tail = [0u8; 5];
    let read = store.get_into(&array.key("c/0/0")?, ByteRange::Suffix(5), &mut tail)?;
    println!("{} has {:?}", store.name(), store.list(&StorePrefix::root())?);
    println!("last {read:?} bytes of the chunk: {:?}", String::from_utf8_lossy(&tail));
    if let Err(error) = store.get(&array.key("c/0/0")?, ByteRange::From(1000)) {
        println!("an error reads like this: {error}");
    }

    let any = AnyStore::blocking(store);
    println!("{any:?} is writable: {}", any.is_writable());
    Ok(())
}

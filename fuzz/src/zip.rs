//! Zip archives.

use std::sync::Arc;

use zarr_store::{MemoryStore, ZipLimits, ZipStore};
use zarr_store_api::{ByteRange, ListableStore, ReadableStore, StoreKey, StorePrefix, WritableStore};

/// An archive: opened, listed, and every entry read in full and in part.
pub fn zip_directory(data: &[u8]) {
    let store = MemoryStore::new();
    let key = StoreKey::new("archive.zip").expect("a key");
    store.set(&key, data.to_vec().into()).expect("memory");
    let mut limits = ZipLimits::default();
    limits.inflated_bytes = 1 << 20;
    let Ok(archive) = ZipStore::open_in(Arc::new(store), key, limits) else { return };
    let keys = archive.list(&StorePrefix::root()).expect("the directory is in memory");
    for key in keys.iter().take(16) {
        let size = archive.size(key).expect("the directory is in memory").expect("a key that was listed");
        if let Ok(value) = archive.get(key, ByteRange::All) {
            let value = value.expect("a key that was listed");
            assert_eq!(value.len() as u64, size);
            let half = size / 2;
            let part = archive.get(key, ByteRange::Bounded { start: half, end: size }).expect("part of a value that can be read");
            assert_eq!(part.as_deref(), value.get(half as usize..));
        }
        let _ = archive.get(key, ByteRange::Suffix(16));
        let _ = archive.get_into(key, ByteRange::Bounded { start: 0, end: 8 }, &mut [0; 8]);
    }
}

//! The stores of `zarr-store`, and its wrappers.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use object_store::memory::InMemory;
use tempfile::TempDir;
use zarr_store::{Durability, FilesystemStore, MemoryStore, Metrics, ObjectStoreAdapter, Prefix, ReadOnly, ZipStore, ZipWriteOptions};
use zarr_store_api::{AnyStore, Bytes, StoreError, StoreKey, StorePrefix, WritableStore as _};

use super::{Entry, Unbuilt};
use crate::store::{StoreUnderTest, WrapperUnderTest};

/// Fresh paths in a folder that goes with the last of them.
#[derive(Clone)]
struct Places(Arc<(TempDir, AtomicUsize)>);

impl Places {
    fn new() -> Result<Self, Unbuilt> {
        Ok(Self(Arc::new((tempfile::tempdir()?, AtomicUsize::new(0)))))
    }

    fn next(&self) -> PathBuf {
        let (folder, count) = &*self.0;
        folder.path().join(count.fetch_add(1, Ordering::Relaxed).to_string())
    }
}

/// A store that must be there: the laws have nothing to say of one that cannot be made.
fn made<S: Into<AnyStore>>(store: Result<S, StoreError>) -> AnyStore {
    store.unwrap_or_else(|error| panic!("the store cannot be made: {error}")).into()
}

fn filled_memory(values: &[(StoreKey, Bytes)]) -> MemoryStore {
    let store = MemoryStore::new();
    for (key, value) in values {
        store.set(key, value.clone()).unwrap_or_else(|error| panic!("the store cannot be filled: {error}"));
    }
    store
}

/// A closed archive with `values`, each of which took the place of another.
fn archive(path: PathBuf, options: ZipWriteOptions, values: &[(StoreKey, Bytes)]) -> Result<ZipStore, StoreError> {
    let archive = ZipStore::create_with(&path, options)?;
    for (key, value) in values {
        archive.set(key, "old".into())?;
        archive.set(key, value.clone())?;
    }
    archive.close()?;
    ZipStore::open(&path)
}

fn deflated() -> ZipWriteOptions {
    let mut options = ZipWriteOptions::default();
    options.deflate_level = Some(6);
    options
}

fn in_places(name: &'static str, make: impl Fn(PathBuf) -> AnyStore + Clone + Send + Sync + 'static) -> Entry {
    Entry::new(format!("store/{name}"), move || {
        let (places, make) = (Places::new()?, make.clone());
        Ok(StoreUnderTest::writable(name, move || make(places.next())))
    })
}

fn closed_archive(name: &'static str, options: fn() -> ZipWriteOptions) -> Entry {
    Entry::new(format!("store/{name}"), move || {
        let places = Places::new()?;
        Ok(StoreUnderTest::filled(name, move |values| made(archive(places.next(), options(), values))))
    })
}

fn wrapper(name: &'static str, wrap: fn(AnyStore) -> AnyStore) -> Entry {
    Entry::new(format!("store/wrapper/{name}"), move || Ok(WrapperUnderTest::new(name, wrap)))
}

fn prefix(text: &str) -> StorePrefix {
    StorePrefix::new(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

pub(super) fn entries() -> Vec<Entry> {
    vec![
        Entry::new("store/memory", || Ok(StoreUnderTest::writable("memory", || MemoryStore::new().into()))),
        in_places("filesystem", |path| made(FilesystemStore::new(path))),
        in_places("filesystem-durable", |path| {
            made(FilesystemStore::new(path).map(|store| store.with_durability(Durability::FileAndDirectory)))
        }),
        in_places("zip-while-written", |path| made(ZipStore::create(path))),
        in_places("zip-while-written-deflated", |path| made(ZipStore::create_with(path, deflated()))),
        closed_archive("zip", ZipWriteOptions::default),
        closed_archive("zip-deflated", deflated),
        Entry::new("store/object-store", || {
            let make = || ObjectStoreAdapter::new(Arc::new(InMemory::new()), "memory://").into();
            Ok(StoreUnderTest::writable("object_store in memory", make))
        }),
        Entry::new("store/counted-memory", || Ok(StoreUnderTest::writable("counted memory", || Metrics::any(MemoryStore::new().into()).0))),
        Entry::new("store/memory-below-a-prefix", || {
            let make = || {
                let beside =
                    ["a/bc", "a/b.", "z"].map(|key| (StoreKey::new(key).unwrap_or_else(|error| panic!("{error}")), "beside".into()));
                Prefix::any(filled_memory(&beside).into(), prefix("a/b"))
            };
            Ok(StoreUnderTest::writable("memory below a prefix", make))
        }),
        Entry::new("store/read-only-memory", || {
            Ok(StoreUnderTest::filled("read-only memory", |values| ReadOnly::any(filled_memory(values).into())))
        }),
        wrapper("metrics", |store| Metrics::any(store).0),
        wrapper("prefix", |store| Prefix::any(store, prefix("a"))),
        wrapper("empty-prefix", |store| Prefix::any(store, StorePrefix::root())),
        Entry::new("store/wrapper/read-only", || Ok(WrapperUnderTest::new("read-only", ReadOnly::any).read_only())),
    ]
}

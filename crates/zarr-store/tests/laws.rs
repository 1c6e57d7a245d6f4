//! The blocking stores and wrappers keep the laws of stores.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use tempfile::TempDir;
use zarr_conformance::store::{Verdict, assert_held, check_filled_store, check_forwarding, check_store};
use zarr_store::{Durability, FilesystemStore, MemoryStore, Metrics, Prefix, ReadOnly, ZipStore, ZipWriteOptions};
use zarr_store_api::{AnyStore, StorePrefix, WritableStore};

/// Fresh paths in a directory that is removed in the end.
struct Places(TempDir, AtomicUsize);

impl Places {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap(), AtomicUsize::new(0))
    }

    fn next(&self) -> PathBuf {
        self.0.path().join(self.1.fetch_add(1, Ordering::Relaxed).to_string())
    }
}

fn all_apply(outcomes: &[zarr_conformance::store::Outcome]) {
    let skipped: Vec<_> = outcomes.iter().filter(|outcome| matches!(outcome.verdict, Verdict::Skipped(_))).collect();
    assert!(skipped.is_empty(), "{skipped:?}");
}

#[test]
fn memory() {
    let outcomes = check_store(|| MemoryStore::new().into());
    assert_held(&outcomes);
    all_apply(&outcomes);
}

#[test]
fn filesystem() {
    let places = Places::new();
    let outcomes = check_store(|| FilesystemStore::new(places.next()).unwrap().into());
    assert_held(&outcomes);
    all_apply(&outcomes);
}

#[test]
fn filesystem_durable() {
    let places = Places::new();
    let make = || FilesystemStore::new(places.next()).unwrap().with_durability(Durability::FileAndDirectory);
    assert_held(&check_store(|| make().into()));
}

#[test]
fn filesystem_leaves_nothing_behind() {
    let places = Places::new();
    assert_held(&check_store(|| FilesystemStore::new(places.next()).unwrap().into()));
    let mut todo = vec![places.0.path().to_owned()];
    while let Some(dir) = todo.pop() {
        for entry in std::fs::read_dir(dir).unwrap().flatten() {
            assert!(!entry.file_name().to_string_lossy().starts_with(".zarr-partial"), "{entry:?} is left");
            if entry.file_type().unwrap().is_dir() {
                todo.push(entry.path());
            }
        }
    }
}

#[test]
fn zip_while_it_is_written() {
    let places = Places::new();
    assert_held(&check_store(|| ZipStore::create(places.next()).unwrap().into()));
    let mut deflate = ZipWriteOptions::default();
    deflate.deflate_level = Some(6);
    assert_held(&check_store(|| ZipStore::create_with(places.next(), deflate).unwrap().into()));
}

#[test]
fn zip_once_it_is_closed() {
    let places = Places::new();
    for level in [None, Some(1)] {
        let mut options = ZipWriteOptions::default();
        options.deflate_level = level;
        let make = |values: &[(_, _)]| -> AnyStore {
            let path = places.next();
            let archive = ZipStore::create_with(&path, options).unwrap();
            for (key, value) in values {
                // A first version of each, to be replaced.
                archive.set(key, "old".into()).unwrap();
                archive.set(key, bytes::Bytes::clone(value)).unwrap();
            }
            archive.close().unwrap();
            ZipStore::open(&path).unwrap().into()
        };
        assert_held(&check_filled_store(make));
    }
}

#[test]
fn zip_in_a_store() {
    let places = Places::new();
    let make = |values: &[(_, _)]| -> AnyStore {
        let path = places.next();
        let archive = ZipStore::create(&path).unwrap();
        values.iter().for_each(|(key, value)| archive.set(key, bytes::Bytes::clone(value)).unwrap());
        drop(archive);
        let (key, outer) = ("in/data.zip".parse().unwrap(), MemoryStore::new());
        outer.set(&key, std::fs::read(path).unwrap().into()).unwrap();
        ZipStore::open_in(std::sync::Arc::new(outer), key, Default::default()).unwrap().into()
    };
    assert_held(&check_filled_store(make));
}

#[test]
fn wrappers() {
    assert_held(&check_store(|| Metrics::any(MemoryStore::new().into()).0));
    let make = || {
        let inner = MemoryStore::new();
        for sibling in ["a/bc", "a/b.", "z"] {
            inner.set(&sibling.parse().unwrap(), "beside".into()).unwrap();
        }
        Prefix::any(inner.into(), StorePrefix::new("a/b").unwrap())
    };
    assert_held(&check_store(make));
    let filled = |values: &[(_, _)]| {
        let inner = MemoryStore::new();
        values.iter().for_each(|(key, value)| inner.set(key, bytes::Bytes::clone(value)).unwrap());
        let store = ReadOnly::any(inner.into());
        assert!(!store.is_writable());
        store
    };
    assert_held(&check_filled_store(filled));
}

#[test]
fn wrappers_forward_every_method() {
    assert_held(&check_forwarding(|store| Metrics::any(store).0, true));
    assert_held(&check_forwarding(|store| Prefix::any(store, StorePrefix::new("a").unwrap()), true));
    assert_held(&check_forwarding(|store| Prefix::any(store, StorePrefix::root()), true));
    assert_held(&check_forwarding(ReadOnly::any, false));
    // Pointers to stores are stores, too.
    let boxed = |store| match store {
        AnyStore::Blocking(store) => AnyStore::blocking(Box::new(store)),
        AnyStore::Async(store) => AnyStore::asynchronous(Box::new(store)),
    };
    assert_held(&check_forwarding(boxed, true));
    #[cfg(feature = "test-util")]
    {
        use zarr_store::FaultyStore;
        let faulty = |store| match store {
            AnyStore::Blocking(store) => AnyStore::blocking(FaultyStore::new(store)),
            AnyStore::Async(store) => AnyStore::asynchronous(FaultyStore::new(store)),
        };
        assert_held(&check_forwarding(faulty, true));
    }
}

#[test]
fn metrics_count() {
    use std::sync::Arc;
    use zarr_conformance::toy::UnifiedDevice;
    use zarr_store::StoreMethod;
    use zarr_store_api::{ByteRange, Device, ReadableStore};
    let store = Metrics::new(MemoryStore::new());
    let key = "a/b".parse().unwrap();
    store.set(&key, vec![1; 100].into()).unwrap();
    store.set_vectored(&key, &[&[1; 30], &[2; 12]]).unwrap();
    store.get_ranges(&key, &[(0..10).into(), ByteRange::Suffix(5)]).unwrap();
    store.get_into(&key, ByteRange::From(40), &mut [0; 8]).unwrap();
    store.get(&key, ByteRange::From(43)).unwrap_err();
    let device: Arc<dyn Device> = UnifiedDevice::new(0);
    let queue = device.create_queue().unwrap();
    let dst = device.allocate(100, &*queue).unwrap();
    store.get_into_buffer(&key, ByteRange::Suffix(20), &dst, &device, &queue).unwrap();
    let handle = store.handle();
    let counted = handle.snapshot();
    let ranges = counted.method(StoreMethod::GetRanges);
    assert_eq!((ranges.calls, ranges.ranges, ranges.bytes), (1, 2, 15));
    assert_eq!((counted.bytes_read(), counted.bytes_written()), (37, 142));
    let into_buffers = counted.method(StoreMethod::GetIntoBuffer);
    assert_eq!((into_buffers.calls, into_buffers.ranges, into_buffers.bytes), (1, 1, 20));
    assert_eq!((counted.requests(), counted.reads(), counted.writes(), counted.errors()), (6, 4, 2, 1));
    assert_eq!(handle.reset(), counted);
    assert_eq!(handle.snapshot(), Default::default());
}

/// A law that nothing breaks shows nothing.
#[cfg(feature = "test-util")]
#[test]
fn bad_stores_are_caught() {
    use zarr_store::{Fault, FaultyStore, When};
    use zarr_store_api::StoreErrorKind;
    let broken = |when: When, fault: Fault| -> Vec<&'static str> {
        let make = || AnyStore::blocking(FaultyStore::new(MemoryStore::new()).with(when.clone(), fault.clone()));
        let outcomes = check_store(make);
        outcomes.iter().filter(|outcome| matches!(outcome.verdict, Verdict::Broken(_))).map(|outcome| outcome.id).collect()
    };
    let torn = broken(When::Write(5), Fault::Tear(7));
    assert!(torn.contains(&"write/atomic") && torn.contains(&"read/whole"), "{torn:?}");
    let short = broken(When::Read(3), Fault::Tear(0));
    assert!(short.contains(&"read/ranges") && short.contains(&"read/into-buffer") && short.contains(&"write/atomic"), "{short:?}");
    let failing = broken(When::List(0), Fault::Fail(StoreErrorKind::Io));
    assert!(failing.iter().all(|id| id.contains("list") || id.contains("erase-")) && failing.len() >= 7, "{failing:?}");
}

//! The blocking stores and wrappers keep the laws of stores.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tempfile::TempDir;
use zarr_conformance::assert_conforms;
use zarr_conformance::store::{StoreUnderTest, WrapperUnderTest};
use zarr_store::{Durability, FilesystemStore, MemoryStore, Metrics, Prefix, ReadOnly, ZipStore, ZipWriteOptions};
use zarr_store_api::{AnyStore, Bytes, StoreKey, StorePrefix, WritableStore};

/// Fresh paths in a directory that is removed in the end.
#[derive(Clone)]
struct Places(Arc<(TempDir, AtomicUsize)>);

impl Places {
    fn new() -> Self {
        Self(Arc::new((tempfile::tempdir().unwrap(), AtomicUsize::new(0))))
    }

    fn next(&self) -> PathBuf {
        self.0.0.path().join(self.0.1.fetch_add(1, Ordering::Relaxed).to_string())
    }
}

#[test]
fn memory() {
    assert_conforms(StoreUnderTest::writable("memory", || MemoryStore::new().into()));
}

#[test]
fn filesystem() {
    let places = Places::new();
    assert_conforms(StoreUnderTest::writable("filesystem", move || FilesystemStore::new(places.next()).unwrap().into()));
}

#[test]
fn filesystem_durable() {
    let places = Places::new();
    let make = move || FilesystemStore::new(places.next()).unwrap().with_durability(Durability::FileAndDirectory).into();
    assert_conforms(StoreUnderTest::writable("filesystem, durable", make));
}

#[test]
fn filesystem_leaves_nothing_behind() {
    let places = Places::new();
    let next = places.clone();
    assert_conforms(StoreUnderTest::writable("filesystem", move || FilesystemStore::new(next.next()).unwrap().into()));
    let mut todo = vec![places.0.0.path().to_owned()];
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
    let next = places.clone();
    assert_conforms(StoreUnderTest::writable("zip", move || ZipStore::create(next.next()).unwrap().into()));
    let mut deflate = ZipWriteOptions::default();
    deflate.deflate_level = Some(6);
    let make = move || ZipStore::create_with(places.next(), deflate).unwrap().into();
    assert_conforms(StoreUnderTest::writable("zip, deflated", make));
}

#[test]
fn zip_once_it_is_closed() {
    for level in [None, Some(1)] {
        let places = Places::new();
        let mut options = ZipWriteOptions::default();
        options.deflate_level = level;
        let make = move |values: &[(StoreKey, Bytes)]| -> AnyStore {
            let path = places.next();
            let archive = ZipStore::create_with(&path, options).unwrap();
            for (key, value) in values {
                // A first version of each, to be replaced.
                archive.set(key, "old".into()).unwrap();
                archive.set(key, value.clone()).unwrap();
            }
            archive.close().unwrap();
            ZipStore::open(&path).unwrap().into()
        };
        assert_conforms(StoreUnderTest::filled("zip, closed", make));
    }
}

#[test]
fn zip_in_a_store() {
    let places = Places::new();
    let make = move |values: &[(StoreKey, Bytes)]| -> AnyStore {
        let path = places.next();
        let archive = ZipStore::create(&path).unwrap();
        values.iter().for_each(|(key, value)| archive.set(key, value.clone()).unwrap());
        drop(archive);
        let (key, outer) = ("in/data.zip".parse().unwrap(), MemoryStore::new());
        outer.set(&key, std::fs::read(path).unwrap().into()).unwrap();
        ZipStore::open_in(Arc::new(outer), key, Default::default()).unwrap().into()
    };
    assert_conforms(StoreUnderTest::filled("zip in memory", make));
}

#[test]
fn wrappers() {
    assert_conforms(StoreUnderTest::writable("counted memory", || Metrics::any(MemoryStore::new().into()).0));
    let make = || {
        let inner = MemoryStore::new();
        for sibling in ["a/bc", "a/b.", "z"] {
            inner.set(&sibling.parse().unwrap(), "beside".into()).unwrap();
        }
        Prefix::any(inner.into(), StorePrefix::new("a/b").unwrap())
    };
    assert_conforms(StoreUnderTest::writable("memory below a prefix", make));
    let filled = |values: &[(StoreKey, Bytes)]| {
        let inner = MemoryStore::new();
        values.iter().for_each(|(key, value)| inner.set(key, value.clone()).unwrap());
        ReadOnly::any(inner.into())
    };
    assert_conforms(StoreUnderTest::filled("read-only memory", filled));
}

#[test]
fn wrappers_forward_every_method() {
    assert_conforms(WrapperUnderTest::new("metrics", |store| Metrics::any(store).0));
    assert_conforms(WrapperUnderTest::new("prefix", |store| Prefix::any(store, StorePrefix::new("a").unwrap())));
    assert_conforms(WrapperUnderTest::new("empty prefix", |store| Prefix::any(store, StorePrefix::root())));
    assert_conforms(WrapperUnderTest::new("read-only", ReadOnly::any).read_only());
    // Pointers to stores are stores, too.
    let boxed = |store| match store {
        AnyStore::Blocking(store) => AnyStore::blocking(Box::new(store)),
        AnyStore::Async(store) => AnyStore::asynchronous(Box::new(store)),
    };
    assert_conforms(WrapperUnderTest::new("box", boxed));
    #[cfg(feature = "test-util")]
    {
        use zarr_store::FaultyStore;
        let faulty = |store| match store {
            AnyStore::Blocking(store) => AnyStore::blocking(FaultyStore::new(store)),
            AnyStore::Async(store) => AnyStore::asynchronous(FaultyStore::new(store)),
        };
        let store = WrapperUnderTest::new("faulty, without a fault", faulty);
        // It reads by key and whole, so that a fault strikes every read, and tears a value and not a piece of it.
        assert_conforms(store.without("wrapper/blocking/get_pieces").without("wrapper/blocking/reader"));
    }
}

#[test]
fn metrics_count() {
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
    use zarr_conformance::{Suite, Trial};
    use zarr_store::{Fault, FaultyStore, When};
    use zarr_store_api::StoreErrorKind;
    let broken = |when: When, fault: Fault| -> Vec<String> {
        let make = move || AnyStore::blocking(FaultyStore::new(MemoryStore::new()).with(when.clone(), fault.clone()));
        let report = Suite::from(StoreUnderTest::writable("faulty", make)).run(&Trial::default());
        report.failures().map(|(id, _)| id.to_owned()).collect()
    };
    let has = |broken: &[String], ids: &[&str]| ids.iter().all(|id| broken.iter().any(|broken| broken == id));
    let torn = broken(When::Write(5), Fault::Tear(7));
    assert!(has(&torn, &["store/write/atomic", "store/read/whole"]), "{torn:?}");
    let short = broken(When::Read(3), Fault::Tear(0));
    assert!(has(&short, &["store/range/within", "store/buffer/read", "store/write/atomic"]), "{short:?}");
    let failing = broken(When::List(0), Fault::Fail(StoreErrorKind::Io));
    assert!(failing.iter().all(|id| id.contains("list")) && failing.len() >= 6, "{failing:?}");
}

//! The object store adapter over `object_store`'s own store in memory.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures::stream::BoxStream;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetRange, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, ObjectStoreExt as _,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use tokio::runtime::Runtime;
use zarr_conformance::assert_conforms;
use zarr_conformance::store::StoreUnderTest;
use zarr_store::{AsyncToBlocking, ObjectStoreAdapter};
use zarr_store_api::{AsyncReadableStore, AsyncStore, ByteRange, ReadableStore, StoreErrorKind, StoreKey, Version, WritableStore};

/// A store in memory that counts reads, may refuse suffix ranges, as Azure does, may lack entity tags, and may be written to while it is read.
#[derive(Debug, Default)]
struct Counting {
    inner: InMemory,
    reads: AtomicU64,
    no_suffixes: bool,
    no_tags: bool,
    /// It passes over conditions.
    no_conditions: bool,
    /// It does not answer ranges, or not those of empty values.
    no_ranges: bool,
    no_empty_ranges: bool,
    /// So many times, what was read last is replaced by as many bytes, each one larger, and by so many more.
    replaced: AtomicU64,
    more: usize,
}

impl fmt::Display for Counting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Counting")
    }
}

#[zarr_store_api::async_trait]
impl ObjectStore for Counting {
    async fn put_opts(&self, path: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        self.inner.put_opts(path, payload, options).await
    }

    async fn put_multipart_opts(&self, path: &Path, options: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(path, options).await
    }

    async fn get_opts(&self, path: &Path, mut options: GetOptions) -> Result<GetResult> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        if self.no_conditions {
            options.if_match = None;
        }
        let is_empty = self.no_empty_ranges && self.inner.head(path).await?.size == 0;
        if options.range.is_some() && (self.no_ranges || is_empty) {
            return Err(object_store::Error::NotSupported { source: "no ranges here".into() });
        }
        if self.no_suffixes && matches!(options.range, Some(GetRange::Suffix(_))) {
            return Err(object_store::Error::NotSupported { source: "no suffixes here".into() });
        }
        let mut result = self.inner.get_opts(path, options).await?;
        if self.no_tags {
            result.meta.e_tag = None;
        }
        if self.replaced.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok() {
            let old = self.inner.get_opts(path, GetOptions::default()).await?.bytes().await?;
            let new: Vec<u8> = old.iter().map(|byte| byte + 1).chain(std::iter::repeat_n(0, self.more)).collect();
            self.inner.put_opts(path, new.into(), PutOptions::default()).await?;
        }
        Ok(result)
    }

    fn delete_stream(&self, paths: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(paths)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}

fn key(text: &str) -> StoreKey {
    StoreKey::new(text).unwrap()
}

fn inside_a_runtime(store: StoreUnderTest) -> StoreUnderTest {
    let runtime = Runtime::new().unwrap();
    store.within(move |check| {
        let _entered = runtime.enter();
        check();
    })
}

#[test]
fn laws() {
    let make = || ObjectStoreAdapter::new(Arc::new(InMemory::new()), "memory://").into();
    assert_conforms(inside_a_runtime(StoreUnderTest::writable("object_store", make)));
}

#[test]
fn laws_below_a_prefix() {
    let make = || {
        let inner = Arc::new(InMemory::new());
        for sibling in ["data/arr", "data/array2/zarr.json", "other"] {
            let path = Path::from(sibling);
            let put = object_store::ObjectStoreExt::put(&*inner, &path, "beside".into());
            futures::executor::block_on(put).unwrap();
        }
        ObjectStoreAdapter::new(inner, "memory://data/array").with_prefix(Path::from("data/array")).into()
    };
    assert_conforms(StoreUnderTest::writable("object_store below a prefix", make));
}

#[test]
fn laws_where_suffixes_are_refused() {
    let make = || {
        let inner = Counting { no_suffixes: true, ..Counting::default() };
        ObjectStoreAdapter::new(Arc::new(inner), "memory://").into()
    };
    assert_conforms(StoreUnderTest::writable("object_store without suffix ranges", make));
}

#[test]
fn neighbouring_ranges_are_one_request() {
    let inner = Arc::new(Counting::default());
    let store = ObjectStoreAdapter::new(Arc::clone(&inner) as Arc<dyn ObjectStore>, "memory://").with_gap(100);
    let store = AsyncToBlocking::new(store).unwrap();
    store.set(&key("a"), vec![7; 100_000].into()).unwrap();
    let ranges: Vec<ByteRange> = (0..50).map(|i| (i * 150..i * 150 + 60).into()).chain([(50_000..60_000).into()]).collect();
    let before = inner.reads.load(Ordering::Relaxed);
    let read = store.get_ranges(&key("a"), &ranges).unwrap().unwrap();
    assert_eq!(read.iter().map(|bytes| bytes.len()).sum::<usize>(), 50 * 60 + 10_000);
    assert_eq!(inner.reads.load(Ordering::Relaxed) - before, 2);
}

#[test]
fn keys_that_object_stores_cannot_hold_are_refused() {
    let store = AsyncToBlocking::new(ObjectStoreAdapter::new(Arc::new(InMemory::new()), "memory://")).unwrap();
    let error = store.set(&key("line\nbreak"), "x".into()).unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::InvalidKey);
    for odd in ["100%", "a b", "[x]", "~", "%2E%2E", "a\\b", "#?*"] {
        store.set(&key(odd), odd.into()).unwrap();
        assert_eq!(store.get(&key(odd), ByteRange::All).unwrap().as_deref(), Some(odd.as_bytes()), "{odd}");
    }
}

#[test]
fn large_values_go_up_in_parts() {
    for part in [1, 7, 999, 1000, 100_000] {
        let make = move || ObjectStoreAdapter::new(Arc::new(InMemory::new()), "memory://").with_upload_parts(5000, part * 100).into();
        let name = format!("object_store, in parts of {}", part * 100);
        assert_conforms(inside_a_runtime(StoreUnderTest::writable(name, make)));
    }
}

#[test]
fn large_values_come_in_pieces() {
    for piece in [1, 7, 999, 1000] {
        let make = move || ObjectStoreAdapter::new(Arc::new(InMemory::new()), "memory://").with_read_pieces(10, piece).into();
        assert_conforms(inside_a_runtime(StoreUnderTest::writable(format!("object_store, in pieces of {piece}"), make)));
    }
}

fn counted(inner: Counting, value: &[u8]) -> (Arc<Counting>, AsyncToBlocking<ObjectStoreAdapter>) {
    let inner = Arc::new(inner);
    let store = ObjectStoreAdapter::new(Arc::clone(&inner) as Arc<dyn ObjectStore>, "memory://").with_read_pieces(100, 40);
    let store = AsyncToBlocking::new(store).unwrap();
    store.set(&key("a"), value.to_vec().into()).unwrap();
    (inner, store)
}

#[test]
fn several_reads_are_of_one_version() {
    let value: Vec<u8> = (0..90).collect();
    let odd = |odd: Counting| {
        let inner = Arc::new(odd);
        let store = ObjectStoreAdapter::new(Arc::clone(&inner) as Arc<dyn ObjectStore>, "memory://").with_gap(0).with_read_pieces(50, 20);
        futures::executor::block_on(store.as_writable().unwrap().set(&key("a"), value.clone().into())).unwrap();
        (inner, store)
    };
    let read = |store: &ObjectStoreAdapter, ranges: &[ByteRange], version: Option<&Version>| {
        futures::executor::block_on(store.get_versioned(&key("a"), ranges, version)).map(Option::unwrap)
    };
    let two: [ByteRange; 2] = [(0..10).into(), (30..40).into()];
    // A server that passes over conditions still says what it answers with.
    for no_conditions in [false, true] {
        let (inner, store) = odd(Counting { no_conditions, ..Counting::default() });
        let (bytes, version) = read(&store, &[ByteRange::Suffix(7)], None).unwrap();
        assert_eq!(bytes, [&value[83..]]);
        let version = version.unwrap();
        for (ranges, requests) in [(&two[..], 2), (&[(0..3).into()], 1), (&[ByteRange::All], 5)] {
            inner.reads.store(0, Ordering::Relaxed);
            let (bytes, of) = read(&store, ranges, Some(&version)).unwrap();
            assert_eq!((bytes.len(), of.as_ref()), (ranges.len(), Some(&version)));
            assert_eq!(inner.reads.load(Ordering::Relaxed), requests);
        }
        inner.replaced.store(1, Ordering::Relaxed);
        read(&store, &two[..1], Some(&version)).unwrap();
        for ranges in [&two[..], &two[..1], &[ByteRange::All], &[ByteRange::Suffix(3)], &[(5..5).into()], &[]] {
            let error = read(&store, ranges, Some(&version)).unwrap_err();
            assert_eq!(error.kind(), StoreErrorKind::Replaced, "{error}");
            assert_eq!(error.key(), Some(&key("a")));
        }
        let (bytes, new) = read(&store, &two, None).unwrap();
        assert!(bytes[1].iter().copied().eq(31..41) && new.unwrap() != version);
        // Between the two requests of a first read.
        inner.replaced.store(1, Ordering::Relaxed);
        assert_eq!(read(&store, &two, None).unwrap_err().kind(), StoreErrorKind::Replaced);
    }

    // Without tags, whatever is there.
    let (inner, store) = odd(Counting { no_tags: true, replaced: 1.into(), ..Counting::default() });
    let (bytes, version) = read(&store, &two, None).unwrap();
    assert!(version.is_none() && bytes[0][0] == 0 && bytes[1][0] == 31);
    assert_eq!(inner.reads.load(Ordering::Relaxed), 2);

    // The size that an end is counted from is of the same version.
    let (inner, store) = odd(Counting { no_suffixes: true, more: 5, ..Counting::default() });
    for replaced in [0, 1, 2] {
        let (bytes, _) = read(&store, &[ByteRange::Suffix(5)], None).unwrap();
        let end: &[u8] = if replaced == 0 { &[85, 86, 87, 88, 89] } else { &[0, 0, 0, 0, 0] };
        assert_eq!(bytes, [end], "replaced {replaced} times");
        inner.replaced.store(replaced + 1, Ordering::Relaxed);
    }
}

#[test]
fn pieces_are_of_one_value() {
    let value: Vec<u8> = (0..130).collect();
    let requests = |inner: &Counting| inner.reads.swap(0, Ordering::Relaxed);
    let (inner, store) = counted(Counting::default(), &value);
    let mut into = [0; 200];
    for _ in 0..2 {
        assert_eq!(store.get(&key("a"), ByteRange::All).unwrap().unwrap(), value);
        assert_eq!(requests(&inner), 4);
        assert_eq!(store.get(&key("a"), (20..129).into()).unwrap().unwrap(), value[20..129]);
        assert_eq!(requests(&inner), 3);
        assert_eq!(store.get(&key("a"), (20..120).into()).unwrap().unwrap(), value[20..120]);
        assert_eq!(requests(&inner), 1);
        assert_eq!(store.get_into(&key("a"), ByteRange::All, &mut into).unwrap(), Some(130));
        assert_eq!((&into[..130], requests(&inner)), (&value[..], 4));
    }
    assert_eq!(store.get_into(&key("a"), ByteRange::All, &mut into[..99]).unwrap_err().kind(), StoreErrorKind::Parameter);

    let (inner, store) = counted(Counting { no_tags: true, ..Counting::default() }, &value);
    assert_eq!(store.get(&key("a"), ByteRange::All).unwrap().unwrap(), value);
    assert_eq!(requests(&inner), 1);

    let (inner, store) = counted(Counting { replaced: 2.into(), ..Counting::default() }, &value);
    let replaced: Vec<u8> = (2..132).collect();
    assert_eq!(store.get(&key("a"), ByteRange::All).unwrap().unwrap(), replaced);
    inner.replaced.store(1, Ordering::Relaxed);
    assert_eq!(store.get_into(&key("a"), ByteRange::All, &mut into).unwrap(), Some(130));
    assert!(into[..130].iter().copied().eq(3..133));
    inner.replaced.store(100, Ordering::Relaxed);
    assert!(store.get(&key("a"), ByteRange::All).unwrap().unwrap().windows(2).all(|pair| pair[1] == pair[0] + 1));

    // Where nothing fits together, one request does, and from then on no more are made.
    for odd in
        [Counting { no_conditions: true, replaced: 100.into(), ..Counting::default() }, Counting { no_ranges: true, ..Counting::default() }]
    {
        let (inner, store) = counted(odd, &value);
        assert!(store.get(&key("a"), ByteRange::All).unwrap().unwrap().windows(2).all(|pair| pair[1] == pair[0] + 1));
        inner.replaced.store(0, Ordering::Relaxed);
        assert!(requests(&inner) <= 3 * 4 + 1);
        store.get(&key("a"), ByteRange::All).unwrap();
        assert_eq!(requests(&inner), 1);
    }

    // Of an empty value nothing is learnt of others.
    let (inner, store) = counted(Counting { no_empty_ranges: true, ..Counting::default() }, &value);
    store.set(&key("b"), Vec::new().into()).unwrap();
    store.get(&key("a"), ByteRange::All).unwrap();
    assert_eq!(store.get(&key("b"), ByteRange::All).unwrap().unwrap().len(), 0);
    requests(&inner);
    assert_eq!(store.get(&key("a"), (20..30).into()).unwrap().unwrap(), value[20..30]);
    assert_eq!(requests(&inner), 1);

    let store = ObjectStoreAdapter::new(Arc::new(InMemory::new()), "memory://").with_read_pieces(1 << 20, 128 << 20);
    let store = AsyncToBlocking::new(store).unwrap();
    let large: Vec<u8> = (0..(130 << 20)).map(|at| (at >> 20) as u8).collect();
    store.set(&key("a"), large.clone().into()).unwrap();
    assert!(store.get(&key("a"), ByteRange::All).unwrap().unwrap() == large);
}

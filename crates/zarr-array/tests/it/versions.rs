//! Shards that are replaced while they are read, or between reads: in an object store, in a blocking store, and behind adapters.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use futures::stream::BoxStream;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, PutMultipartOptions, PutOptions, PutPayload,
    PutResult, Result,
};
use zarr_array::{Array, ArrayBuilder, ArrayError, DeviceTarget, Options, ReadSet, Selection};
use zarr_buffer_api::Device;
use zarr_codec_api::Policy;
use zarr_conformance::toy::{OpaqueDevice, UnifiedDevice};
use zarr_meta::DataType;
use zarr_store::{AsyncToBlocking, BlockingToAsync, MemoryStore, ObjectStoreAdapter};
use zarr_store_api::{
    AnyStore, ByteRange, Bytes, DeviceId, ReadableStore, Store, StoreError, StoreErrorKind, StoreKey, ValueReader, WritableStore,
};

use crate::common::{codecs, options, runtime};

const LEN: u32 = 96;

/// An object store of one shard, which is replaced by its next version after some of the answers about it.
#[derive(Debug)]
struct Changing {
    inner: InMemory,
    versions: Vec<Bytes>,
    /// Of the version that is there.
    number: AtomicUsize,
    /// Requests for the shard.
    reads: AtomicUsize,
    /// After how many of them it is replaced, and whether it is after each one from then on.
    after: AtomicUsize,
    always: bool,
    no_tags: bool,
    no_conditions: bool,
}

impl fmt::Display for Changing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Changing")
    }
}

impl Changing {
    async fn replace(&self, path: &Path) -> Result<()> {
        let number = self.number.fetch_add(1, Ordering::SeqCst) + 1;
        let next = self.versions[number % self.versions.len()].clone();
        self.inner.put_opts(path, next.into(), PutOptions::default()).await.map(drop)
    }

    /// From now on, it is replaced after so many requests.
    fn begin(&self, after: usize) {
        self.reads.store(0, Ordering::SeqCst);
        self.after.store(after, Ordering::SeqCst);
    }
}

#[zarr_store_api::async_trait]
impl ObjectStore for Changing {
    async fn put_opts(&self, path: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        self.inner.put_opts(path, payload, options).await
    }

    async fn put_multipart_opts(&self, path: &Path, options: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(path, options).await
    }

    async fn get_opts(&self, path: &Path, mut options: GetOptions) -> Result<GetResult> {
        if self.no_conditions {
            options.if_match = None;
        }
        let result = self.inner.get_opts(path, options).await;
        if path.as_ref() == "c/0" {
            let read = self.reads.fetch_add(1, Ordering::SeqCst) + 1;
            let after = self.after.load(Ordering::SeqCst);
            if read == after || (self.always && read > after) {
                self.replace(path).await?;
            }
        }
        let mut result = result?;
        if self.no_tags {
            result.meta.e_tag = None;
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

/// The elements of a version: no two have one in common but 0, and inner chunks of 0, which are absent, shift the others to other places.
fn model(number: usize) -> Vec<u32> {
    (0..LEN).map(|at| if at / 4 == number as u32 || at / 4 == 11 { 0 } else { 1000 * (number as u32 + 1) + at }).collect()
}

fn layouts() -> Vec<(&'static str, ArrayBuilder)> {
    let little = r#"{"name":"bytes","configuration":{"endian":"little"}}"#;
    let shard = |len: u32, codecs: &str| {
        format!(
            r#"{{"name":"sharding_indexed","configuration":{{"chunk_shape":[{len}],"codecs":[{codecs}],"index_codecs":[{little}],"index_location":"end"}}}}"#
        )
    };
    let build =
        |json: String| ArrayBuilder::new([u64::from(LEN)], DataType::UInt32).chunks([u64::from(LEN)]).codecs(codecs(&format!("[{json}]")));
    vec![
        ("one level", build(shard(4, little))),
        ("two levels", build(shard(24, &shard(4, little)))),
        ("a compressor", build(shard(4, &format!(r#"{little},{{"name":"zstd","configuration":{{"level":1,"checksum":false}}}}"#)))),
    ]
}

/// The metadata of an array of one shard, and the versions of that, which `write` makes.
fn stored(
    builder: &ArrayBuilder,
    options: &Options,
    write: impl Fn(&Array, usize) -> std::result::Result<(), ArrayError>,
) -> (Bytes, Vec<Bytes>) {
    let store = MemoryStore::new();
    let array = builder.create(AnyStore::blocking(store.clone()), "/", options).unwrap();
    let value = |key: &str| store.get(&StoreKey::new(key).unwrap(), ByteRange::All).unwrap().unwrap();
    let version = |number| {
        write(&array, number).unwrap();
        value("c/0")
    };
    (value("zarr.json"), (0..5).map(version).collect())
}

fn write_model(array: &Array, number: usize) -> std::result::Result<(), ArrayError> {
    array.write_elements(&Selection::all(), &model(number))
}

/// An array of one shard in such a store.
fn changing(builder: &ArrayBuilder, options: &Options, change: impl FnOnce(&mut Changing)) -> (Array, Arc<Changing>) {
    changing_to(builder, options, write_model, change)
}

/// As [`changing`], where `write` makes a version.
fn changing_to(
    builder: &ArrayBuilder,
    options: &Options,
    write: impl Fn(&Array, usize) -> std::result::Result<(), ArrayError>,
    change: impl FnOnce(&mut Changing),
) -> (Array, Arc<Changing>) {
    let (metadata, versions) = stored(builder, options, write);
    let mut store = Changing {
        inner: InMemory::new(),
        versions,
        number: AtomicUsize::new(0),
        reads: AtomicUsize::new(0),
        after: AtomicUsize::new(usize::MAX),
        always: false,
        no_tags: false,
        no_conditions: false,
    };
    change(&mut store);
    let put = |path: &str, value: Bytes| {
        futures::executor::block_on(store.inner.put_opts(&Path::from(path), value.into(), PutOptions::default()))
    };
    put("zarr.json", metadata).unwrap();
    put("c/0", store.versions[0].clone()).unwrap();
    let store = Arc::new(store);
    let adapter = ObjectStoreAdapter::new(Arc::clone(&store) as Arc<dyn ObjectStore>, "memory://").with_gap(0);
    (Array::open(adapter, "/", options).unwrap(), store)
}

/// All; some inner chunks that are asked for one by one; parts of two, and one that is absent in one version alone.
fn selections() -> Vec<Selection> {
    [":", "::8", "[1, 90]", "3:6", "17"].iter().map(|text| Selection::parse(text, 1).unwrap()).collect()
}

/// What a selection gives of the version that was there at last.
fn expected(store: &Changing, wanted: &Selection) -> Vec<u32> {
    elements(store.number.load(Ordering::SeqCst) % store.versions.len(), wanted)
}

/// What a selection gives of a version.
fn elements(number: usize, wanted: &Selection) -> Vec<u32> {
    let memory = MemoryStore::new();
    let array = ArrayBuilder::new([u64::from(LEN)], DataType::UInt32).create(AnyStore::blocking(memory), "/", &options()).unwrap();
    write_model(&array, number).unwrap();
    array.read_elements(wanted).unwrap()
}

type Read = dyn Fn(&Array, &Selection) -> std::result::Result<Vec<u32>, ArrayError>;

/// Every way to read, with the options it takes.
fn reads() -> Vec<(String, Options, Box<Read>)> {
    let small = || options().with_coalescing(zarr_array::Coalescing { gap: 0, waste: 0, request: 16 });
    let mut reads: Vec<(String, Options, Box<Read>)> = vec![
        ("blocking".into(), small(), Box::new(|array, wanted| array.read_elements(wanted))),
        ("joined".into(), options(), Box::new(|array, wanted| array.read_elements(wanted))),
        ("one by one".into(), small().with_concurrency(1), Box::new(|array, wanted| array.read_elements(wanted))),
        ("async".into(), small(), Box::new(|array, wanted| runtime().block_on(array.read_async(wanted))?.into_elements())),
        ("each".into(), small(), Box::new(|array, wanted| array.read_each([wanted.clone()]).next().unwrap()?.into_elements())),
        (
            "set".into(),
            small(),
            Box::new(|array, wanted| {
                let mut set = ReadSet::new();
                set.push(array, wanted.clone());
                set.read()?.remove(0).into_elements()
            }),
        ),
    ];
    let unified = UnifiedDevice::new(1);
    let opaque = OpaqueDevice::new(0);
    let devices: [(&str, Arc<dyn Device>, _); 2] =
        [("unified", unified.clone(), unified.provider()), ("opaque", opaque.clone(), opaque.provider())];
    for (name, device, provider) in devices {
        // Staging memory for one inner chunk, or for all.
        for (staging, concurrency) in [(64, 1), (64, 64), (1 << 20, 64)] {
            let mut options = small().with_concurrency(concurrency).with_policy(Policy::Prefer(device.id()));
            options.registry = options.registry.with(provider.clone());
            let target = DeviceTarget::new(Arc::clone(&device)).unwrap().with_staging(staging);
            let to_host = move |target: &DeviceTarget, tensor: zarr_array::Tensor| {
                let staging = target.device.allocate_staging(tensor.buffer.len()).unwrap();
                target.queue.copy(&tensor.buffer, &staging).unwrap();
                staging.wait().unwrap();
                let bytes = staging.host_read().unwrap();
                bytes.chunks_exact(4).map(|bytes| u32::from_ne_bytes(bytes.try_into().unwrap())).collect()
            };
            let of = target.clone();
            let plain = move |array: &Array, wanted: &Selection| Ok(to_host(&of, array.read_to_device(wanted, &of)?));
            let name = format!("{name}, staging {staging}, {concurrency} at once");
            reads.push((name.clone(), options.clone(), Box::new(plain)));
            let ahead = move |array: &Array, wanted: &Selection| {
                Ok(to_host(&target, array.read_each_to_device([wanted.clone()], &target).next().unwrap()?))
            };
            reads.push((format!("{name}, ahead"), options, Box::new(ahead)));
        }
    }
    reads
}

#[test]
fn a_shard_that_is_replaced_is_read_again() {
    for (how, options, read) in reads() {
        for (layout, builder) in layouts() {
            for no_conditions in [false, true] {
                let (array, store) = changing(&builder, &options, |store| store.no_conditions = no_conditions);
                for wanted in selections() {
                    for after in 1..8 {
                        store.begin(after);
                        let found = read(&array, &wanted).unwrap_or_else(|error| panic!("{how}, {layout}, after {after}: {error}"));
                        // An answer that came before the shard was replaced may have been the last one.
                        if store.reads.load(Ordering::SeqCst) > after {
                            assert_eq!(found, expected(&store, &wanted), "{how}, {layout}, {wanted:?}, after {after}");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn strings_of_a_shard_that_is_replaced_are_read_again() {
    let inner = r#"{"name":"sharding_indexed","configuration":{"chunk_shape":[4],"codecs":[{"name":"vlen-utf8"}],"index_codecs":[{"name":"bytes","configuration":{"endian":"little"}}]}}"#;
    let builder = ArrayBuilder::new([40], DataType::String).chunks([40]).codecs(codecs(&format!("[{inner}]")));
    let strings = |number: usize| (0..40).map(|at| if at / 4 == number { String::new() } else { format!("{number}:{at}") }).collect();
    let stored = |number: usize| -> Vec<String> { strings(number) };
    let options = options().with_coalescing(zarr_array::Coalescing { gap: 0, waste: 0, request: 16 });
    for after in 1..12 {
        let (array, store) =
            changing_to(&builder, &options, |array, number| array.write_elements(&Selection::all(), &stored(number)), |_| {});
        store.begin(after);
        let found = array.read_elements::<String>(&Selection::all()).unwrap();
        let last = store.number.load(Ordering::SeqCst);
        assert!((last == 1 && store.reads.load(Ordering::SeqCst) == after) || found == stored(last), "after {after}: {found:?}");
    }
}

#[test]
fn a_shard_that_is_replaced_each_time_is_an_error() {
    for (how, options, read) in reads() {
        for (layout, builder) in layouts() {
            let (array, store) = changing(&builder, &options, |store| store.always = true);
            store.begin(1);
            match read(&array, &Selection::all()) {
                Err(ArrayError::Store(error)) => {
                    assert_eq!(error.kind(), StoreErrorKind::Replaced, "{how}, {layout}: {error}");
                    assert_eq!(error.key().map(StoreKey::as_str), Some("c/0"), "{how}, {layout}: {error}");
                }
                other => panic!("{how}, {layout}: {other:?}"),
            }
            let requests = store.reads.load(Ordering::SeqCst);
            // Three times an index, and what is asked for at once of all that there is.
            assert!((6..=3 * (1 + 24)).contains(&requests), "{how}, {layout}: {requests} requests");
        }
    }
}

#[test]
fn a_read_that_nobody_disturbs_takes_no_more_requests() {
    for (layout, builder) in layouts() {
        for no_tags in [false, true] {
            let none = options().with_index_cache(0);
            let (array, store) = changing(&builder, &none, |store| store.no_tags = no_tags);
            for wanted in selections() {
                assert_eq!(array.read_elements::<u32>(&wanted).unwrap(), expected(&store, &wanted), "{layout}, {no_tags}");
            }
            store.begin(usize::MAX);
            array.read_elements::<u32>(&Selection::parse("17", 1).unwrap()).unwrap();
            assert_eq!(store.reads.load(Ordering::SeqCst), if layout == "two levels" { 3 } else { 2 }, "{layout}");
        }
    }
}

#[test]
fn a_kept_index_serves_its_version_alone() {
    let first = ["0:3", "4:7"].map(|text| Selection::parse(text, 1).unwrap());
    let wanted: Vec<Selection> = first.into_iter().chain(selections()).collect();
    for (how, options, read) in reads() {
        for (layout, builder) in layouts() {
            let (array, store) = changing(&builder, &options, |_| {});
            // Of each version another inner chunk is absent, of which the index alone says so.
            for round in 0..6 {
                for wanted in &wanted {
                    let found = read(&array, wanted).unwrap_or_else(|error| panic!("{how}, {layout}: {error}"));
                    assert_eq!(found, expected(&store, wanted), "{how}, {layout}, {wanted:?}, version {round}");
                }
                store.begin(usize::MAX);
                read(&array, &Selection::parse("17", 1).unwrap()).unwrap();
                assert_eq!(store.reads.load(Ordering::SeqCst), 1, "{how}, {layout}");
                futures::executor::block_on(store.replace(&Path::from("c/0"))).unwrap();
            }
        }
    }
}

#[test]
fn a_write_of_a_part_keeps_one_version_of_the_rest() {
    for (layout, builder) in layouts() {
        for after in 1..3 {
            let (array, store) = changing(&builder, &options(), |_| {});
            store.begin(after);
            array.write_elements(&Selection::parse("90:92", 1).unwrap(), &[7u32, 8]).unwrap();
            store.begin(usize::MAX);
            let found = array.read_elements::<u32>(&Selection::all()).unwrap();
            let with = |number: usize| {
                let mut model = model(number);
                model[90..92].copy_from_slice(&[7, 8]);
                model
            };
            assert!(found == with(0) || found == with(1), "{layout}, after {after}: {found:?}");
        }
    }
}

/// A blocking store of one shard, which is replaced by its next version after one of the calls for it.
#[derive(Debug)]
struct Replacing {
    inner: MemoryStore,
    versions: Vec<Bytes>,
    calls: Mutex<Calls>,
    /// It reads straight to devices.
    direct: bool,
}

#[derive(Debug, Default)]
struct Calls {
    /// Of the version that is there.
    number: usize,
    made: usize,
    /// Of those, reads without a reader.
    by_key: usize,
    /// After how many the shard is replaced.
    after: usize,
}

type Answer<T> = std::result::Result<T, StoreError>;

impl Replacing {
    fn put(&self, number: usize) {
        self.inner.set(&StoreKey::new("c/0").unwrap(), self.versions[number % self.versions.len()].clone()).unwrap();
    }

    /// From now on, the shard is replaced after so many calls. Gives the version that is there.
    fn begin(&self, after: usize) -> usize {
        let mut calls = self.calls.lock().unwrap();
        *calls = Calls { number: calls.number, after, ..Calls::default() };
        calls.number
    }

    /// Answers a call. The next one comes when the shard is replaced, if it is.
    fn call<'a, T>(&'a self, key: &StoreKey, by_key: bool, answer: impl FnOnce(&'a MemoryStore) -> T) -> T {
        let mut calls = self.calls.lock().unwrap();
        let answer = answer(&self.inner);
        if key.as_str() == "c/0" {
            calls.made += 1;
            calls.by_key += usize::from(by_key);
            if calls.made == calls.after {
                calls.number = (calls.number + 1) % self.versions.len();
                self.put(calls.number);
            }
        }
        answer
    }
}

impl ReadableStore for Replacing {
    fn get(&self, key: &StoreKey, range: ByteRange) -> Answer<Option<Bytes>> {
        self.call(key, true, |store| store.get(key, range))
    }

    fn size(&self, key: &StoreKey) -> Answer<Option<u64>> {
        self.inner.size(key)
    }

    fn reader<'a>(&'a self, key: &StoreKey) -> Answer<Box<dyn ValueReader + 'a>> {
        self.call(key, false, |store| store.reader(key))
    }

    fn reads_to_device(&self, _: DeviceId) -> bool {
        self.direct
    }
}

impl Store for Replacing {
    fn name(&self) -> String {
        "replacing".to_owned()
    }
}

/// An array of one shard in such a store.
fn replacing(builder: &ArrayBuilder, options: &Options, direct: bool) -> (Array, Arc<Replacing>) {
    let (metadata, versions) = stored(builder, options, write_model);
    let store = Arc::new(Replacing { inner: MemoryStore::new(), versions, calls: Mutex::default(), direct });
    store.inner.set(&StoreKey::new("zarr.json").unwrap(), metadata).unwrap();
    store.put(0);
    (Array::open(AnyStore::Blocking(Arc::clone(&store) as Arc<dyn Store>), "/", options).unwrap(), store)
}

/// Reads while the shard is replaced after one of the calls: all is of the version that was there before, or the read is an error. The next one gives the
/// next version.
fn read_while_replaced(how: &str, options: &Options, read: &Read, direct: bool) {
    for (layout, builder) in layouts() {
        for kept in [0, 1 << 20] {
            let (array, store) = replacing(&builder, &options.clone().with_index_cache(kept), direct);
            for (wanted, after) in selections().iter().flat_map(|wanted| (1..8).map(move |after| (wanted, after))) {
                let how = format!("{how}, {layout}, {kept} bytes kept, {wanted:?}, after {after}");
                let before = store.begin(after);
                let found = read(&array, wanted);
                let is_noticeable = store.calls.lock().unwrap().made > after;
                match found {
                    Ok(found) => {
                        assert_eq!(found, elements(before, wanted), "{how}");
                        assert!(!is_noticeable, "{how}: nobody noticed");
                    }
                    Err(ArrayError::Store(error)) if is_noticeable => assert_eq!(error.kind(), StoreErrorKind::Replaced, "{how}: {error}"),
                    Err(error) => panic!("{how}: {error}"),
                }
                let next = store.begin(usize::MAX);
                assert_eq!(read(&array, wanted).unwrap(), elements(next, wanted), "{how}, then");
            }
            store.begin(usize::MAX);
            read(&array, &Selection::all()).unwrap();
            assert_eq!(store.calls.lock().unwrap().by_key > 0, direct, "{how}, {layout}: only reads straight to a device have no reader");
        }
    }
}

#[test]
fn a_shard_of_a_blocking_store_that_is_replaced_is_of_one_version_or_an_error() {
    for (how, options, read) in reads() {
        read_while_replaced(&how, &options, &read, false);
    }
}

#[test]
fn a_shard_that_is_replaced_while_a_store_reads_it_to_a_device_is_of_one_version_or_an_error() {
    for (how, options, read) in reads().into_iter().filter(|(how, ..)| how.starts_with("opaque")) {
        read_while_replaced(&how, &options, &read, true);
    }
}

/// An adapter's name, an array over it, and what replaces the shard by a version.
type Adapted = (&'static str, Array, Box<dyn Fn(usize)>);

/// Both adapters; they hide what tells versions apart.
fn adapted(builder: &ArrayBuilder, options: &Options, runtime: &tokio::runtime::Runtime) -> Vec<Adapted> {
    let (array, remote) = changing(builder, options, |_| {});
    let AnyStore::Async(inner) = array.store() else { panic!("{array:?}") };
    let blocking = AsyncToBlocking::new(Arc::clone(inner)).unwrap();
    let (_, local) = replacing(builder, options, false);
    let asynchronous = BlockingToAsync::with_handle(Arc::clone(&local), runtime.handle().clone());
    // Not by `AnyStore::blocking` and `asynchronous`: those give an array the store behind an adapter.
    let open = |store| Array::open(store, "/", options).unwrap();
    vec![
        (
            "async to blocking",
            open(AnyStore::Blocking(Arc::new(blocking))),
            Box::new(move |_| futures::executor::block_on(remote.replace(&Path::from("c/0"))).unwrap()),
        ),
        ("blocking to async", open(AnyStore::Async(Arc::new(asynchronous))), Box::new(move |number| local.put(number))),
    ]
}

#[test]
fn a_shard_behind_an_adapter_is_read_by_the_index_that_it_has_now() {
    let runtime = runtime();
    for (how, options, read) in reads() {
        for (layout, builder) in layouts() {
            for (adapter, array, replace) in adapted(&builder, &options, &runtime) {
                for number in 0..5 {
                    for wanted in selections() {
                        let found = read(&array, &wanted).unwrap_or_else(|error| panic!("{adapter}, {how}, {layout}: {error}"));
                        assert_eq!(found, elements(number, &wanted), "{adapter}, {how}, {layout}, {wanted:?}, version {number}");
                    }
                    replace(number + 1);
                }
            }
        }
    }
}

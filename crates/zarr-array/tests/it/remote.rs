//! Requests that are under way at an async store: as many as the options say, and no more.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use zarr_array::{Array, ArrayBuilder, DeviceTarget, Options, ReadSet, Selection};
use zarr_conformance::toy::{OpaqueDevice, ToyOptions};
use zarr_meta::DataType;
use zarr_store::{MemoryStore, OnRuntime};
use zarr_store_api::{
    AnyStore, AsyncListableStore, AsyncReadableStore, AsyncStore, AsyncWritableStore, ByteRange, Bytes, ListableStore, Listing,
    ReadableStore, StoreError, StoreKey, StorePrefix, WritableStore, async_trait,
};

use crate::common::options;

/// A store far away, that counts.
#[derive(Debug, Default)]
struct Far {
    store: MemoryStore,
    counts: Arc<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    requests: Count,
    bytes: Count,
}

/// Of now, and the most there ever were.
#[derive(Debug, Default)]
struct Count(AtomicUsize, AtomicUsize);

impl Count {
    fn add(&self, number: usize) {
        let now = self.0.fetch_add(number, Ordering::Relaxed) + number;
        self.1.fetch_max(now, Ordering::Relaxed);
    }

    fn sub(&self, number: usize) {
        self.0.fetch_sub(number, Ordering::Relaxed);
    }

    fn take_most(&self) -> usize {
        self.1.swap(0, Ordering::Relaxed)
    }
}

impl Far {
    /// Is asked, takes its time, and answers with so many bytes.
    async fn answer<T>(&self, answer: T, bytes: usize) -> T {
        self.counts.requests.add(1);
        self.counts.bytes.add(bytes);
        tokio::time::sleep(Duration::from_millis(20)).await;
        self.counts.requests.sub(1);
        self.counts.bytes.sub(bytes);
        answer
    }
}

#[async_trait]
impl AsyncReadableStore for Far {
    async fn get(&self, key: &StoreKey, range: ByteRange) -> Result<Option<Bytes>, StoreError> {
        let value = ReadableStore::get(&self.store, key, range)?;
        let bytes = value.as_ref().map_or(0, Bytes::len);
        Ok(self.answer(value, bytes).await)
    }

    async fn size(&self, key: &StoreKey) -> Result<Option<u64>, StoreError> {
        ReadableStore::size(&self.store, key)
    }
}

#[async_trait]
impl AsyncWritableStore for Far {
    async fn set(&self, key: &StoreKey, value: Bytes) -> Result<(), StoreError> {
        let bytes = value.len();
        WritableStore::set(&self.store, key, value)?;
        self.answer(Ok(()), bytes).await
    }

    async fn erase(&self, key: &StoreKey) -> Result<(), StoreError> {
        WritableStore::erase(&self.store, key)?;
        self.answer(Ok(()), 0).await
    }

    async fn erase_prefix(&self, prefix: &StorePrefix) -> Result<(), StoreError> {
        WritableStore::erase_prefix(&self.store, prefix)
    }
}

#[async_trait]
impl AsyncListableStore for Far {
    async fn list(&self, prefix: &StorePrefix) -> Result<Vec<StoreKey>, StoreError> {
        ListableStore::list(&self.store, prefix)
    }

    async fn list_dir(&self, prefix: &StorePrefix) -> Result<Listing, StoreError> {
        ListableStore::list_dir(&self.store, prefix)
    }
}

impl AsyncStore for Far {
    fn as_writable(&self) -> Option<&dyn AsyncWritableStore> {
        Some(self)
    }

    fn as_listable(&self) -> Option<&dyn AsyncListableStore> {
        Some(self)
    }

    fn name(&self) -> String {
        "far".into()
    }
}

/// An array in a store far away, of numbers from 0 on.
fn far(builder: &ArrayBuilder, len: u32, options: &Options) -> (Array, Arc<Counts>) {
    let far = Far::default();
    let counts = Arc::clone(&far.counts);
    let array = builder.create(OnRuntime::new(far).unwrap(), "/", options).unwrap();
    array.write_elements(&Selection::all(), &(0..len).collect::<Vec<u32>>()).unwrap();
    (array, counts)
}

fn raw(builder: ArrayBuilder) -> ArrayBuilder {
    builder.codecs(crate::common::codecs(r#"[{"name":"bytes","configuration":{"endian":"little"}}]"#))
}

fn take(counts: &[&Counts]) -> Vec<usize> {
    counts.iter().map(|counts| counts.requests.take_most()).collect()
}

#[test]
fn no_more_requests_than_asked() {
    let options = options().with_concurrency(4);
    let numbers: Vec<u32> = (0..256).collect();
    // 16 shards of two levels; every other inner chunk, so that they are not asked for together.
    let nested = ArrayBuilder::new([256], DataType::UInt32).chunks([1]).shards([16]);
    let (array, counts) = far(&nested, 256, &options);
    assert_eq!(take(&[&counts]), [4], "write");
    let elements: Vec<u32> = array.read_elements(&Selection::all()).unwrap();
    assert_eq!((elements, take(&[&counts])), (numbers.clone(), vec![4]), "read");
    let elements: Vec<u32> = array.read_elements(&Selection::parse("::2", 1).unwrap()).unwrap();
    assert_eq!((elements[3], take(&[&counts])), (6, vec![4]), "every other one");
    let each: Result<Vec<_>, _> =
        array.read_each((0..32).map(|at| Selection::parse(&format!("{}:{}", at * 8, at * 8 + 8), 1).unwrap())).collect();
    assert_eq!((each.unwrap().len(), take(&[&counts])), (32, vec![4]), "one read after the other");

    let set = ReadSet::new().with(&array, Selection::all()).with(&array, Selection::all()).with(&array, Selection::all());
    assert_eq!((set.read().unwrap().len(), take(&[&counts])), (3, vec![4]), "a read set");

    let device = OpaqueDevice::with_options(0, ToyOptions::default());
    let target = DeviceTarget::new(device).unwrap();
    array.read_to_device(&Selection::all(), &target).unwrap();
    assert_eq!(take(&[&counts]), [4], "to a device");
    set.read_to_device(&target).unwrap();
    assert_eq!(take(&[&counts]), [4], "a read set to a device");
}

#[test]
fn a_shrink_clears_several_chunks_at_a_time() {
    let options = options().with_concurrency(4);
    let (mut array, counts) = far(&raw(ArrayBuilder::new([16, 16], DataType::UInt32).chunks([2, 2])), 256, &options);
    take(&[&counts]);
    array.resize(&[16, 9]).unwrap();
    assert_eq!(take(&[&counts]), [4], "erased and blanked");
    array.resize(&[16, 15]).unwrap();
    assert_eq!(take(&[&counts]), [4], "looked at where it grows");
    let row: Vec<u32> = array.read_elements(&Selection::parse("1, :", 2).unwrap()).unwrap();
    assert_eq!(row, [16, 17, 18, 19, 20, 21, 22, 23, 24, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn large_values_count_as_the_pieces_that_stores_read_them_in() {
    // Four chunks of 12 MiB.
    let len = 3 << 20;
    let builder = raw(ArrayBuilder::new([4 * len], DataType::UInt32).chunks([len]));
    let (array, counts) = far(&builder, 4 * len as u32, &options().with_concurrency(6));
    take(&[&counts]);
    let elements: Vec<u32> = array.read_elements(&Selection::all()).unwrap();
    assert_eq!((elements[4 * len as usize - 1], take(&[&counts])), (4 * len as u32 - 1, vec![2]));
}

#[test]
fn reads_one_after_the_other_are_asked_for_ahead() {
    let options = options().with_concurrency(8);
    let (array, counts) = far(&raw(ArrayBuilder::new([64], DataType::UInt32).chunks([4])), 64, &options);
    take(&[&counts]);
    let each: Result<Vec<_>, _> = array.read_each(array.chunk_selections()).collect();
    assert_eq!((each.unwrap().len(), take(&[&counts])), (16, vec![8]), "to the host");
    let target = DeviceTarget::new(OpaqueDevice::with_options(0, ToyOptions::default())).unwrap();
    let chunks: Vec<Selection> = array.chunk_selections().collect();
    let each: Result<Vec<_>, _> = array.read_each_to_device(chunks.clone(), &target).collect();
    assert_eq!((each.unwrap().len(), take(&[&counts])), (16, vec![8]), "to a device");
    let set = chunks.iter().fold(ReadSet::new(), |set, chunk| set.with(&array, chunk.clone()));
    set.read_to_device(&target).unwrap();
    assert_eq!(take(&[&counts]), [8], "a read set to a device");
    // A result that is larger than what may wait is not asked for ahead.
    let small = array.with_options(&options.with_in_flight_bytes(16)).unwrap();
    let each: Result<Vec<_>, _> = small.read_each_to_device(chunks, &target).collect();
    assert_eq!((each.unwrap().len(), take(&[&counts])), (16, vec![1]), "to a device, without room");
}

#[test]
fn blocking_calls_inside_of_a_runtime() {
    let read = || {
        let (array, _) = far(&ArrayBuilder::new([64], DataType::UInt32).chunks([4]), 64, &options());
        array.read_elements::<u32>(&Selection::all()).unwrap()
    };
    let (sender, done) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let of_one = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let found = of_one.block_on(async { read() });
        let of_many = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let task = of_many.spawn(async move { read() });
        sender.send([found, of_many.block_on(task).unwrap()])
    });
    let numbers: Vec<u32> = (0..64).collect();
    assert_eq!(done.recv_timeout(Duration::from_secs(30)).expect("an end"), [numbers.clone(), numbers]);
}

#[test]
fn many_ranges_of_a_shard() {
    let nested = ArrayBuilder::new([256], DataType::UInt32).chunks([1]).shards([128]);
    let (array, counts) = far(&nested, 256, &options().with_concurrency(40));
    take(&[&counts]);
    let expected: Vec<u32> = (0..256).step_by(2).collect();
    // 64 ranges of each shard.
    assert_eq!(array.read_elements::<u32>(&Selection::parse("::2", 1).unwrap()).unwrap(), expected);
    let reversed: Vec<u32> = expected.iter().rev().copied().collect();
    assert_eq!(array.read_elements::<u32>(&Selection::parse("254::-2", 1).unwrap()).unwrap(), reversed);
    assert!(take(&[&counts])[0] <= 40);
}

#[test]
fn a_small_read_does_not_let_many_large_ones_wait() {
    let options = options().with_in_flight_bytes(3 * 4000);
    let (array, _) = far(&raw(ArrayBuilder::new([32_000], DataType::UInt32).chunks([1000])), 32_000, &options);
    let target = DeviceTarget::new(OpaqueDevice::with_options(0, ToyOptions::default())).unwrap();
    let asked = Arc::new(AtomicUsize::new(0));
    let counting = Arc::clone(&asked);
    let selections = (0..32u64).map(move |chunk| {
        counting.fetch_add(1, Ordering::Relaxed);
        let len = if chunk == 0 { 1 } else { 1000 };
        Selection::parse(&format!("{}:{}", chunk * 1000, chunk * 1000 + len), 1).unwrap()
    });
    let mut each = array.read_each_to_device(selections, &target).with_ahead(1);
    each.next().unwrap().unwrap();
    std::thread::sleep(Duration::from_millis(100));
    // The one that was given, one that is ready, one that waits for that, and those that were asked for.
    assert!(asked.load(Ordering::Relaxed) <= 8, "{asked:?}");
    assert_eq!(each.count(), 31);
}

#[test]
fn no_more_bytes_than_asked() {
    const CHUNK: usize = 4000;
    let options = options().with_in_flight_bytes(3 * CHUNK + 1);
    let chunked = |shards| {
        let builder = ArrayBuilder::new([32_000], DataType::UInt32).chunks([1000]);
        raw(if shards { builder.shards([4000]) } else { builder })
    };
    for (shards, most) in [(false, 3 * CHUNK), (true, 4 * CHUNK)] {
        let (array, counts) = far(&chunked(shards), 32_000, &options);
        assert!(counts.bytes.take_most() <= most + 100, "written");
        array.read_elements::<u32>(&Selection::all()).unwrap();
        let read = counts.bytes.take_most();
        assert!((most..most + 100).contains(&read), "{read} bytes in flight");
    }
}

#[test]
fn a_dropped_read_asks_for_no_more() {
    let (array, counts) = far(&raw(ArrayBuilder::new([256], DataType::UInt32).chunks([1])), 256, &options().with_concurrency(2));
    let store = array.store().clone();
    assert!(matches!(store, AnyStore::Async(_)));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let all = Selection::all();
        assert!(tokio::time::timeout(Duration::from_millis(50), array.read_async(&all)).await.is_err());
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert_eq!(counts.requests.0.load(Ordering::Relaxed), 2, "two were cut short, and nobody counted them down");
        take(&[&counts]);
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert_eq!(counts.requests.take_most(), 0);
    });
}

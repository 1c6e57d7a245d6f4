//! Reads one after the other, with the next ones running ahead.

use std::cell::Cell;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use futures::{FutureExt, StreamExt, TryStreamExt, stream};
use rayon::iter::{ParallelBridge, ParallelIterator};
use zarr_array::{Array, ArrayBuilder, ArrayData, ArrayError, DeviceTarget, Options, Pool, Selection};
use zarr_conformance::toy::OpaqueDevice;
use zarr_meta::DataType;
use zarr_store::{BlockingToAsync, FilesystemStore, MemoryStore};
use zarr_store_api::{AnyStore, AsyncReadableStore, AsyncStore, ByteRange, Bytes, ReadableStore, Store, StoreError, StoreKey, async_trait};

use crate::common::{Random, SHAPE, codecs, layouts, memory, options, positions, runtime, selection};

/// A store that tells of each chunk before it is read.
struct Told {
    store: Arc<MemoryStore>,
    tell: Box<dyn Fn(&str) + Send + Sync>,
}

impl fmt::Debug for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Told")
    }
}

impl ReadableStore for Told {
    fn get(&self, key: &StoreKey, range: ByteRange) -> Result<Option<Bytes>, StoreError> {
        if key.as_str() != "zarr.json" {
            (self.tell)(key.as_str());
        }
        self.store.get(key, range)
    }

    fn size(&self, key: &StoreKey) -> Result<Option<u64>, StoreError> {
        self.store.size(key)
    }
}

impl Store for Told {
    fn name(&self) -> String {
        "told".into()
    }
}

#[async_trait]
impl AsyncReadableStore for Told {
    async fn get(&self, key: &StoreKey, range: ByteRange) -> Result<Option<Bytes>, StoreError> {
        ReadableStore::get(self, key, range)
    }

    async fn size(&self, key: &StoreKey) -> Result<Option<u64>, StoreError> {
        ReadableStore::size(self, key)
    }
}

impl AsyncStore for Told {
    fn name(&self) -> String {
        "told".into()
    }
}

fn pool(threads: usize) -> Pool {
    Pool::new(Arc::new(rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap()))
}

fn threads(threads: usize) -> Options {
    options().with_pool(pool(threads))
}

/// Numbers 0, 1, .. in chunks of two.
fn numbers(count: u32) -> Arc<MemoryStore> {
    let store = Arc::new(MemoryStore::new());
    let builder = ArrayBuilder::new([u64::from(count)], DataType::UInt32).chunks([2]);
    let array = builder.create(AnyStore::Blocking(store.clone()), "/", &options()).unwrap();
    array.write_elements(&Selection::all(), &(0..count).collect::<Vec<_>>()).unwrap();
    store
}

/// The array of numbers, in a store that tells.
fn told(count: u32, options: &Options, tell: impl Fn(&str) + Send + Sync + 'static) -> Array {
    let store = Told { store: numbers(count), tell: Box::new(tell) };
    Array::open(AnyStore::blocking(store), "/", options).unwrap()
}

/// An array of twenty chunks that are too large for whoever waits for one to do the next, in a store that tells; none is there.
fn told_of_large(options: &Options, tell: impl Fn(&str) + Send + Sync + 'static) -> Array {
    let store = Arc::new(MemoryStore::new());
    let builder = ArrayBuilder::new([20 << 16], DataType::UInt32).chunks([1 << 16]);
    builder.create(AnyStore::Blocking(store.clone()), "/", options).unwrap();
    Array::open(AnyStore::blocking(Told { store, tell: Box::new(tell) }), "/", options).unwrap()
}

fn elements(read: Result<ArrayData, ArrayError>) -> Vec<u32> {
    read.unwrap().into_elements().unwrap()
}

fn expected(count: u32) -> Vec<Vec<u32>> {
    (0..count).step_by(2).map(|first| vec![first, first + 1]).collect()
}

/// Ends the test when `work` hangs.
fn in_time<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let _ = sender.send(catch_unwind(AssertUnwindSafe(work)));
    });
    receiver.recv_timeout(Duration::from_secs(60)).expect("a result in time").unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Counts up to what others wait for.
#[derive(Default)]
struct Counter(Mutex<usize>, Condvar);

impl Counter {
    fn add(&self) {
        *self.0.lock().unwrap() += 1;
        self.1.notify_all();
    }

    fn get(&self) -> usize {
        *self.0.lock().unwrap()
    }

    #[track_caller]
    fn wait_for(&self, count: usize) {
        let found = self.1.wait_timeout_while(self.0.lock().unwrap(), Duration::from_secs(30), |found| *found < count).unwrap().0;
        assert!(*found >= count, "{found} of {count}");
    }
}

#[test]
fn the_chunks_of_any_array_make_it_up() {
    let mut random = Random(19);
    for (name, builder) in layouts() {
        let store = Arc::new(MemoryStore::new());
        let array = builder.create(AnyStore::Blocking(store.clone()), "/", &options()).unwrap();
        let values: Vec<i32> = (1..=SHAPE.iter().product::<u64>() as i32).collect();
        // Some chunks are absent.
        array.write_elements(&Selection::parse("0:9", 3).unwrap(), &values[..9 * 63]).unwrap();
        let whole: Vec<i32> = array.read_elements(&Selection::all()).unwrap();
        let counts = array.chunk_grid_shape();
        let mut found = vec![-1; whole.len()];
        let mut chunks = array.read_each(array.chunk_selections());
        for index in 0..counts.iter().product::<u64>() {
            let chunk = [index / (counts[1] * counts[2]), index / counts[2] % counts[1], index % counts[2]];
            let edge = |axis: usize, index: u64| array.chunk_grid().chunk_origin(axis, index).min(SHAPE[axis]);
            let ends: [u64; 3] =
                std::array::from_fn(|axis| if chunk[axis] + 1 == counts[axis] { SHAPE[axis] } else { edge(axis, chunk[axis] + 1) });
            let ranges = (0..3).map(|axis| edge(axis, chunk[axis])..ends[axis]);
            let (places, shape) = positions(&Selection::ranges(ranges), &SHAPE);
            let data = chunks.next().expect("a chunk").unwrap();
            assert_eq!(data.shape, shape, "{name}: {chunk:?}");
            for (place, element) in places.into_iter().zip(data.into_elements::<i32>().unwrap()) {
                found[place] = element;
            }
        }
        assert!(chunks.next().is_none(), "{name}");
        assert_eq!(found, whole, "{name}");

        let samples: Vec<Selection> = (0..40).map(|_| selection(&mut random, &SHAPE)).collect();
        let read: Vec<ArrayData> = array.read_each(samples.clone()).collect::<Result<_, _>>().unwrap();
        let plain: Vec<ArrayData> = samples.iter().map(|sample| array.read(sample).unwrap()).collect();
        assert_eq!(read, plain, "{name}");
        let other = AnyStore::asynchronous(Told { store: Arc::clone(&store), tell: Box::new(|_| ()) });
        let other = Array::open(other, "/", &options()).unwrap();
        for array in [&array, &other] {
            for (tensor, plain) in array.read_each_to_host(samples.clone()).zip(&plain) {
                let tensor = tensor.unwrap();
                assert_eq!((&tensor.shape, &tensor.data_type), (&plain.shape, &plain.data_type), "{name}");
                assert_eq!(&*tensor.buffer.host_read().unwrap(), plain.as_bytes().unwrap(), "{name}");
                assert!(tensor.buffer.is_empty() || tensor.buffer.address().is_multiple_of(256), "{name}");
            }
        }
    }
}

#[test]
fn elements_of_variable_length_and_arrays_without_axes() {
    let names = ArrayBuilder::new([9], DataType::String).chunks([2]).create(memory(), "/names", &options()).unwrap();
    let words: Vec<String> = (0..9).map(|i| "x".repeat(i)).collect();
    names.write_elements(&Selection::all(), &words).unwrap();
    assert!(names.read_to_host(&Selection::all()).is_err() && names.read_each_to_host(names.chunk_selections()).all(|read| read.is_err()));
    for bytes in [0, 3, 1 << 20] {
        let each = names.read_each(names.chunk_selections()).with_ahead_bytes(bytes);
        let found: Vec<Vec<String>> = each.map(|chunk| chunk.unwrap().into_elements().unwrap()).collect();
        assert_eq!(found.concat(), words);
        assert_eq!(found.len(), 5);
    }
    let scalar = ArrayBuilder::new([], DataType::UInt32).chunks([]).create(memory(), "/", &options()).unwrap();
    scalar.write_elements(&Selection::all(), &[7u32]).unwrap();
    assert_eq!(scalar.read_each(scalar.chunk_selections()).map(elements).collect::<Vec<_>>(), [[7]]);
    let empty = ArrayBuilder::new([0, 4], DataType::UInt32).chunks([2, 2]).create(memory(), "/", &options()).unwrap();
    assert!(empty.read_each(empty.chunk_selections()).next().is_none());
    let mut nothing = scalar.read_each([]);
    assert!(nothing.next().is_none() && nothing.next().is_none());
}

#[test]
fn large_chunks_one_by_one_and_several_at_a_time() {
    let dir = tempfile::tempdir().unwrap();
    let store = AnyStore::blocking(FilesystemStore::new(dir.path()).unwrap());
    let values: Vec<u32> = (0..12 << 20).map(|i: u32| i.wrapping_mul(i >> 3) >> 20).collect();
    let options = threads(3);
    let little = r#"{"name":"bytes","configuration":{"endian":"little"}}"#;
    let blosc = r#"{"name":"blosc","configuration":{"cname":"lz4","clevel":1,"shuffle":"shuffle","typesize":4,"blocksize":65536}}"#;
    for (name, codecs_of) in [("raw", format!("[{little}]")), ("blosc", format!("[{little},{blosc}]"))] {
        let builder = ArrayBuilder::new([12 << 20], DataType::UInt32).chunks([2 << 20]).codecs(codecs(&codecs_of));
        let array = builder.create(store.clone(), &format!("/{name}"), &options).unwrap();
        array.write_elements(&Selection::all(), &values).unwrap();
        for bytes in [0, 20 << 20, 256 << 20] {
            let each = array.read_each(array.chunk_selections()).with_ahead_bytes(bytes);
            let found: Vec<u32> = each.flat_map(elements).collect();
            assert!(found == values, "{name}, {bytes} bytes");
        }
    }
}

#[test]
fn results_come_in_the_order_of_the_selections() {
    // The sooner it is asked for, the later it comes.
    let array = told(24, &threads(4), |key| {
        let chunk: u64 = key.trim_start_matches("c/").parse().unwrap();
        std::thread::sleep(Duration::from_millis(5 * (3 - chunk % 4)));
    });
    assert_eq!(array.read_each(array.chunk_selections()).map(elements).collect::<Vec<_>>(), expected(24));
    let backwards: Vec<Selection> = array.chunk_selections().collect::<Vec<_>>().into_iter().rev().collect();
    let found: Vec<_> = array.read_each(backwards).with_ahead(9).map(elements).collect();
    assert_eq!(found, expected(24).into_iter().rev().collect::<Vec<_>>());
}

#[test]
fn selections_are_asked_for_as_there_is_room() {
    let array = Array::open(AnyStore::Blocking(numbers(40)), "/", &threads(2)).unwrap();
    let pulled = Cell::new(0);
    let selections = || array.chunk_selections().inspect(|_| pulled.set(pulled.get() + 1));
    // Chunks of 8 bytes. Of those that do not fit, one is held back.
    for (ahead, bytes, room, back) in
        [(0, 1 << 20, 1, 0), (5, 1 << 20, 6, 0), (5, 24, 3, 1), (5, 0, 1, 1), (5, 31, 3, 1), (50, 1 << 20, 20, 0)]
    {
        pulled.set(0);
        let mut each = array.read_each(selections()).with_ahead(ahead).with_ahead_bytes(bytes);
        assert_eq!((pulled.get(), each.size_hint()), (0, (20, Some(20))));
        for number in 0..20 {
            assert_eq!(elements(each.next().unwrap()), [2 * number, 2 * number + 1]);
            assert_eq!(pulled.get(), (number as usize + room + back).min(20), "{ahead} reads, {bytes} bytes, after {number}");
            assert_eq!(each.size_hint().0, 19 - number as usize);
        }
        assert!(each.next().is_none());
    }
    pulled.set(0);
    let mut each = array.read_each(selections());
    each.next();
    assert_eq!(pulled.get(), 3, "as many as the pool has threads, and the one that is handed out");
}

#[test]
fn reads_run_ahead_while_the_caller_looks() {
    for of_async in [false, true] {
        let asked = Arc::new(Counter::default());
        let count = Arc::clone(&asked);
        let store = Told { store: numbers(40), tell: Box::new(move |_| count.add()) };
        let store = if of_async { AnyStore::Async(Arc::new(store)) } else { AnyStore::blocking(store) };
        let array = Array::open(store, "/", &threads(2)).unwrap();
        let mut each = array.read_each(array.chunk_selections()).with_ahead(4);
        for number in 0..20 {
            assert_eq!(elements(each.next().unwrap()), [2 * number, 2 * number + 1]);
            asked.wait_for((number as usize + 5).min(20));
        }
        assert_eq!(asked.get(), 20);
    }
}

#[test]
fn whoever_waits_does_small_reads() {
    let (asked, first) = (Arc::new(Counter::default()), Arc::new(Counter::default()));
    let (count, began) = (Arc::clone(&asked), Arc::clone(&first));
    let array = told(12, &threads(1), move |key| {
        count.add();
        if key == "c/0" {
            began.add();
            count.wait_for(6);
        }
    });
    // The one thread of the pool is at the first read when the others come.
    let selections = array.chunk_selections().enumerate().inspect(|(number, _)| {
        if *number == 1 {
            first.wait_for(1)
        }
    });
    let each = array.read_each(selections.map(|(_, selection)| selection)).with_ahead(8);
    assert_eq!(each.map(elements).collect::<Vec<_>>(), expected(12));
}

#[test]
fn after_an_error_the_next_ones_come() {
    let store = numbers(12);
    let array = Array::open(AnyStore::Blocking(store), "/", &options()).unwrap();
    array.write_encoded_chunk(&[2], vec![1]).unwrap();
    let mut selections: Vec<Selection> = array.chunk_selections().collect();
    selections.insert(4, Selection::parse("12", 1).unwrap());
    let found: Vec<Result<ArrayData, ArrayError>> = array.read_each(selections).collect();
    assert_eq!(found.len(), 7);
    assert!(matches!(found[2], Err(ArrayError::Chunk { .. })), "{:?}", found[2]);
    assert!(matches!(found[4], Err(ArrayError::Selection(_))), "{:?}", found[4]);
    let good: Vec<Vec<u32>> = found.into_iter().filter(Result::is_ok).map(elements).collect();
    assert_eq!(good, [[0, 1], [2, 3], [6, 7], [8, 9], [10, 11]]);
}

#[test]
fn dropping_an_async_read_begins_no_more_chunks() {
    let (asked, gate) = (Arc::new(Counter::default()), Arc::new(Counter::default()));
    let (count, open) = (Arc::clone(&asked), Arc::clone(&gate));
    let pool = Arc::new(rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap());
    let array = told(40, &options().with_pool(Pool::new(Arc::clone(&pool))), move |_| {
        count.add();
        open.wait_for(1);
    });
    let all = Selection::all();
    let mut read = Box::pin(array.read_async(&all));
    assert!((&mut read).now_or_never().is_none());
    asked.wait_for(1);
    drop(read);
    gate.add();
    // The one thread comes to this when it is done with the read.
    pool.install(|| ());
    assert_eq!(asked.get(), 1);
    assert_eq!(pollster::block_on(array.read_async(&all)).unwrap(), array.read(&all).unwrap());
}

#[test]
fn a_wait_for_the_next_one_has_an_end() {
    let gate = Arc::new(Counter::default());
    let open = Arc::clone(&gate);
    let array = told_of_large(&threads(1), move |_| open.wait_for(1));
    let mut each = array.read_each(array.chunk_selections().take(2));
    assert!(!each.wait_timeout(Duration::from_millis(5)));
    gate.add();
    assert!(each.wait_timeout(Duration::from_secs(60)));
    assert_eq!(each.by_ref().map(elements).collect::<Vec<_>>(), [[0; 1 << 16]; 2]);
    assert!(each.wait_timeout(Duration::from_secs(60)));
}

#[test]
fn dropping_it_begins_no_more_reads() {
    let (asked, gate) = (Arc::new(Counter::default()), Arc::new(Counter::default()));
    let (count, open) = (Arc::clone(&asked), Arc::clone(&gate));
    let pool = Arc::new(rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap());
    let tell = move |key: &str| {
        count.add();
        match key {
            "c/0" => std::thread::sleep(Duration::from_millis(50)),
            "c/1" => open.wait_for(1),
            _ => {}
        }
    };
    let array = told_of_large(&options().with_pool(Pool::new(Arc::clone(&pool))), tell);
    let mut each = array.read_each(array.chunk_selections()).with_ahead(8);
    assert_eq!(elements(each.next().unwrap()), [0; 1 << 16]);
    asked.wait_for(2);
    drop(each);
    gate.add();
    // The one thread gets to this when it is through with all that was spawned before.
    pool.install(|| ());
    assert_eq!(asked.get(), 2);
}

#[test]
fn what_panics_in_a_read_panics_at_the_caller() {
    for of_async in [false, true] {
        in_time(move || {
            let tell = |key: &str| assert_ne!(key, "c/3", "a store that panics");
            let store = Told { store: numbers(12), tell: Box::new(tell) };
            let store = if of_async { AnyStore::Async(Arc::new(store)) } else { AnyStore::blocking(store) };
            let array = Array::open(store, "/", &threads(2)).unwrap();
            let mut each = array.read_each(array.chunk_selections());
            let mut found = Vec::new();
            while let Some(read) =
                catch_unwind(AssertUnwindSafe(|| each.next())).unwrap_or(Some(Err(ArrayError::Parameter("panic".into()))))
            {
                found.push(read.map(|read| read.into_elements::<u32>().unwrap()).map_err(|error| error.to_string()));
            }
            assert_eq!(found.len(), 6);
            assert_eq!(found[3], Err("panic".to_owned()));
            assert_eq!(found[4], Ok(vec![8, 9]));
        });
    }
}

/// The kinds of stores, with an array in shards in each: reads wait for each other's work.
fn sharded(options: &Options, handle: &tokio::runtime::Handle) -> [Array; 2] {
    let store = Arc::new(MemoryStore::new());
    let builder = ArrayBuilder::new([64, 64], DataType::UInt32).chunks([4, 4]).shards([16, 32]);
    let array = builder.create(AnyStore::Blocking(store.clone()), "/", options).unwrap();
    array.write_elements(&Selection::all(), &(0..64 * 64).collect::<Vec<u32>>()).unwrap();
    let slow = BlockingToAsync::with_handle(store, handle.clone());
    [array, Array::open(AnyStore::Async(Arc::new(slow)), "/", options).unwrap()]
}

fn assert_sharded(found: &[ArrayData], array: &Array) {
    let plain: Vec<ArrayData> = array.chunk_selections().map(|of| array.read(&of).unwrap()).collect();
    assert_eq!(found.len(), 8);
    assert_eq!(found, plain);
}

#[test]
fn from_any_thread_and_every_store() {
    for count in [1, 2, 5] {
        in_time(move || {
            let runtime = runtime();
            let pool = Arc::new(rayon::ThreadPoolBuilder::new().num_threads(count).build().unwrap());
            for array in sharded(&options().with_pool(Pool::new(Arc::clone(&pool))), runtime.handle()) {
                let read = {
                    let array = array.clone();
                    move || array.read_each(array.chunk_selections()).collect::<Result<Vec<_>, _>>().unwrap()
                };
                assert_sharded(&read(), &array);
                let blocking = runtime.spawn_blocking(read.clone());
                assert_sharded(&runtime.block_on(blocking).unwrap(), &array);
                for _ in 0..20 {
                    assert_sharded(&pool.install(&read), &array);
                    // Several on one pool, inside of each other's waiting.
                    pool.scope(|scope| (0..4).for_each(|_| scope.spawn(|_| assert_sharded(&read(), &array))));
                }
            }
        });
    }
}

#[test]
fn taken_along_to_a_thread_of_the_pool() {
    // With few requests in flight, those of reads that began elsewhere hold back the others.
    for (count, requests) in [(1, 64), (2, 64), (3, 64), (1, 1), (2, 1), (2, 2)] {
        in_time(move || {
            let runtime = runtime();
            let pool = Arc::new(rayon::ThreadPoolBuilder::new().num_threads(count).build().unwrap());
            let options = options().with_pool(Pool::new(Arc::clone(&pool))).with_concurrency(requests);
            for array in sharded(&options, runtime.handle()) {
                for _ in 0..50 {
                    let mut each = array.read_each(array.chunk_selections()).with_ahead(5);
                    let first = each.next().unwrap().unwrap();
                    let rest: Vec<ArrayData> = pool.install(|| each.collect::<Result<_, _>>().unwrap());
                    assert_sharded(&[vec![first], rest].concat(), &array);
                    // Each of the pool's threads asks for the next one.
                    let mut each = array.read_each(array.chunk_selections());
                    let first = each.next().unwrap().unwrap();
                    let seen = AtomicUsize::new(first.byte_len());
                    pool.install(|| {
                        each.par_bridge().for_each(|data| {
                            seen.fetch_add(data.unwrap().byte_len(), Ordering::Relaxed);
                        })
                    });
                    assert_eq!(seen.into_inner(), 64 * 64 * 4);
                }
            }
        });
    }
}

/// A store that reads an array for each value, one after the other, by the same threads.
#[test]
fn reads_inside_of_a_read() {
    for threads in [1, 2] {
        let pool = Arc::new(rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap());
        let options = options().with_pool(Pool::new(Arc::clone(&pool)));
        let below = told(12, &options, |_| {});
        let target = DeviceTarget::new(OpaqueDevice::new(0)).unwrap();
        let array = told(8, &options, move |_| {
            let found: Vec<Vec<u32>> = below.read_each(below.chunk_selections()).map(elements).collect();
            assert_eq!(found, expected(12));
            assert!(below.read_each_to_device(below.chunk_selections(), &target).all(|tensor| tensor.is_ok()));
            assert_eq!(below.read_elements::<u32>(&Selection::all()).unwrap(), expected(12).concat());
        });
        in_time(move || {
            let read = || array.read_each(array.chunk_selections()).map(elements).collect::<Vec<_>>();
            assert_eq!(pool.install(read), expected(8));
            assert_eq!(read(), expected(8));
        });
    }
}

#[test]
fn in_async_code_a_stream_does_it() {
    let runtime = runtime();
    for array in sharded(&threads(2), runtime.handle()) {
        let reads = stream::iter(array.chunk_selections()).map(|of| {
            let array = array.clone();
            async move { array.read_async(&of).await }
        });
        let found: Vec<ArrayData> = runtime.block_on(reads.buffered(4).try_collect()).unwrap();
        assert_sharded(&found, &array);
    }
}

#[test]
fn a_blocking_read_of_an_async_store_on_the_only_thread_of_its_pool() {
    in_time(|| {
        let runtime = runtime();
        let pool = Arc::new(rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap());
        let [_, array] = sharded(&options().with_pool(Pool::new(Arc::clone(&pool))), runtime.handle());
        let found: Vec<u32> = pool.install(|| array.read_elements(&Selection::all()).unwrap());
        assert_eq!(found, (0..64 * 64).collect::<Vec<u32>>());
    });
}

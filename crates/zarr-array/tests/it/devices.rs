//! Both toy devices through the same plan, fetch and decode as the host: every layout, any selection, with copies and waits counted.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::common::{Random, SHAPE, SMALL, codecs, grown, layouts, memory, options, outgrown, positions, runtime, selection};
use zarr_array::{
    Array, ArrayBuilder, ArrayError, AxisSelection, DeviceTarget, Observer, Options, Pool, ReadSet, Selection, Stage, Tensor,
};
use zarr_buffer_api::{Buffer, BufferErrorKind, Device, DeviceId, Queue};
use zarr_codec_api::Policy;
use zarr_conformance::toy::{OpaqueDevice, Schedule, ToyOptions, ToyProvider, UnifiedDevice};
use zarr_meta::DataType;
use zarr_store::{BlockingToAsync, MemoryStore};
use zarr_store_api::{AnyStore, ByteRange, Bytes, ReadableStore, Store, StoreError, StoreErrorKind, StoreKey, ValueReader, WritableStore};

/// A toy device of either kind.
#[derive(Clone)]
pub(crate) enum Toy {
    Opaque(Arc<OpaqueDevice>),
    Unified(Arc<UnifiedDevice>),
}

impl Toy {
    pub(crate) fn device(&self) -> Arc<dyn Device> {
        match self {
            Self::Opaque(device) => Arc::clone(device) as Arc<dyn Device>,
            Self::Unified(device) => Arc::clone(device) as Arc<dyn Device>,
        }
    }

    fn provider(&self) -> ToyProvider {
        match self {
            Self::Opaque(device) => device.provider(),
            Self::Unified(device) => device.provider(),
        }
    }

    fn counters(&self) -> zarr_conformance::toy::Counters {
        match self {
            Self::Opaque(device) => device.counters(),
            Self::Unified(device) => device.counters(),
        }
    }

    pub(crate) fn assert_clean(&self) {
        match self {
            Self::Opaque(device) => device.assert_clean(),
            Self::Unified(device) => device.assert_clean(),
        }
    }

    pub(crate) fn options(&self, policy: impl Fn(&dyn Device) -> Policy) -> Options {
        let device = self.device();
        let mut options = options().with_policy(policy(&*device));
        options.registry = options.registry.with(self.provider());
        options
    }

    /// Copies to the host, with an explicit wait.
    pub(crate) fn download(&self, tensor: &Tensor, target: &DeviceTarget) -> Vec<u8> {
        let staging = self.device().allocate_staging(tensor.buffer.len()).unwrap();
        target.queue.copy(&tensor.buffer, &staging).unwrap();
        staging.wait().unwrap();
        staging.host_read().unwrap().to_vec()
    }

    pub(crate) fn upload(&self, bytes: &[u8], target: &DeviceTarget) -> Buffer {
        let buffer = self.device().allocate(bytes.len(), &*target.queue).unwrap();
        target.queue.copy(&Buffer::from_vec(bytes.to_vec()), &buffer).unwrap();
        buffer
    }
}

fn toys() -> Vec<(String, Toy)> {
    let schedules = [Schedule::Soon, Schedule::Delayed { seed: 5 }, Schedule::WhenWaitedFor];
    let mut toys = Vec::new();
    for schedule in schedules {
        let how = ToyOptions { schedule, ..ToyOptions::default() };
        toys.push((format!("opaque, {schedule:?}"), Toy::Opaque(OpaqueDevice::with_options(0, how))));
        toys.push((format!("unified, {schedule:?}"), Toy::Unified(UnifiedDevice::with_options(1, how))));
    }
    toys
}

fn bytes_of(values: &[i32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_ne_bytes()).collect()
}

pub(crate) fn prefer(device: &dyn Device) -> Policy {
    Policy::Prefer(device.id())
}

#[test]
fn reads_and_writes_agree_with_a_vector_on_every_device() {
    for (toy_name, toy) in toys() {
        let mut random = Random(23);
        // A staging ring of 600 bytes makes many batches of every read.
        for staging in [600, 1 << 20] {
            let target = DeviceTarget::new(toy.device()).unwrap().with_staging(staging);
            for (name, builder) in layouts() {
                let name = format!("{toy_name}, {name}, staging {staging}");
                let array = builder.create(memory(), "/", &toy.options(prefer)).unwrap_or_else(|error| panic!("{name}: {error}"));
                let mut model = vec![0i32; SHAPE.iter().product::<u64>() as usize];
                for _ in 0..4 {
                    let written = selection(&mut random, &SHAPE);
                    let (places, _) = positions(&written, &SHAPE);
                    let values: Vec<i32> = places.iter().map(|_| random.next() as i32).collect();
                    for (&at, &value) in places.iter().zip(&values) {
                        model[at] = value;
                    }
                    let source = toy.upload(&bytes_of(&values), &target);
                    array.write_from_device(&written, &source, &target).unwrap_or_else(|error| panic!("{name}: {written:?}: {error}"));
                    let wanted = selection(&mut random, &SHAPE);
                    let (places, shape) = positions(&wanted, &SHAPE);
                    let expected: Vec<i32> = places.iter().map(|&at| model[at]).collect();
                    let tensor = array.read_to_device(&wanted, &target).unwrap_or_else(|error| panic!("{name}: {wanted:?}: {error}"));
                    assert_eq!(tensor.shape, shape, "{name}");
                    assert_eq!(toy.download(&tensor, &target), bytes_of(&expected), "{name}: {wanted:?}");
                }
            }
        }
        toy.assert_clean();
    }
}

#[test]
fn a_write_from_a_device_through_an_older_handle_keeps_what_others_added() {
    let options = ToyOptions::default();
    for toy in [Toy::Opaque(OpaqueDevice::with_options(0, options)), Toy::Unified(UnifiedDevice::with_options(1, options))] {
        for (name, builder) in layouts() {
            let mut model: Vec<i32> = (0..SHAPE.iter().product::<u64>() as i32).map(|value| value + 1).collect();
            let (old, new) = outgrown(memory(), &builder, &model, &toy.options(prefer));
            let target = DeviceTarget::new(toy.device()).unwrap().with_staging(600);
            for turn in 0..2 {
                let values: Vec<i32> = (0..SMALL.iter().product::<u64>() as i32).map(|value| -value - turn).collect();
                for (at, &value) in values.iter().enumerate() {
                    model[grown(at)] = value;
                }
                let source = toy.upload(&bytes_of(&values), &target);
                match turn {
                    0 => old.write_from_device(&Selection::all(), &source, &target).unwrap(),
                    _ => pollster::block_on(old.write_from_device_async(&Selection::all(), &source, &target)).unwrap(),
                }
                assert!(new.read_elements::<i32>(&Selection::all()).unwrap() == model, "{name}");
            }
        }
        toy.assert_clean();
    }
}

/// A sharded zstd array of 8 shards with 8 inner chunks of 16 elements each.
fn sharded(store: AnyStore, options: &Options) -> (Array, Vec<i32>) {
    let array = ArrayBuilder::new([16, 64], DataType::Int32).chunks([4, 4]).shards([8, 16]).create(store, "/", options).unwrap();
    let values: Vec<i32> = (0..16 * 64).map(|i| i / 3).collect();
    array.write_elements(&Selection::all(), &values).unwrap();
    (array, values)
}

#[test]
fn an_opaque_device_costs_one_upload_a_batch_and_one_wait_a_read() {
    // Work that starts only when it is waited for: every wait shows.
    let toy = OpaqueDevice::with_options(0, ToyOptions { schedule: Schedule::WhenWaitedFor, ..ToyOptions::default() });
    let wrapped = Toy::Opaque(Arc::clone(&toy));
    let (array, values) = sharded(memory(), &wrapped.options(prefer));
    let target = DeviceTarget::new(wrapped.device()).unwrap();
    let before = toy.counters();
    let pending = array.enqueue_read(&Selection::all(), &target).unwrap();
    let enqueued = toy.counters().since(&before);
    // crc32c is checked in the shard's index on the host; zstd runs on the device, 64 chunks in one batch.
    assert_eq!(enqueued.host_waits, 0, "enqueueing waits for nothing");
    assert_eq!(enqueued.host_to_device.copies, 1, "one upload for the batch");
    assert_eq!((enqueued.kernel_launches, enqueued.kernel_slots), (1, 64));
    assert_eq!(enqueued.device_to_host.copies, 0);
    let tensor = pending.wait().unwrap();
    let done = toy.counters().since(&before);
    assert_eq!(done.host_waits, 1, "one wait, for the verdicts");
    assert_eq!(done.region_copies.copies, 0, "the device scatters by itself");
    assert_eq!(wrapped.download(&tensor, &target), bytes_of(&values));
    toy.assert_clean();
}

#[test]
fn a_unified_device_copies_nothing() {
    let toy = UnifiedDevice::new(1);
    let wrapped = Toy::Unified(Arc::clone(&toy));
    let (array, values) = sharded(memory(), &wrapped.options(prefer));
    let on_host = array.with_options(&wrapped.options(|_| Policy::Host)).unwrap();
    let target = DeviceTarget::new(wrapped.device()).unwrap();
    for array in [&array, &on_host] {
        let before = toy.counters();
        let tensor = array.read_to_device(&Selection::all(), &target).unwrap();
        let done = toy.counters().since(&before);
        assert_eq!((done.host_to_device.copies, done.device_to_host.copies), (0, 0));
        assert_eq!((done.device_to_device.copies, done.host_to_host.copies, done.region_copies.copies), (0, 0, 0));
        tensor.buffer.wait().unwrap();
        assert_eq!(&*tensor.buffer.host_read().unwrap(), &bytes_of(&values)[..]);
        // Written from where it is.
        let before = toy.counters();
        array.write_from_device(&Selection::all(), &tensor.buffer, &target).unwrap();
        let done = toy.counters().since(&before);
        assert_eq!((done.bus_copies(), done.device_to_device.copies, done.host_to_host.copies), (0, 0, 0));
        assert_eq!(array.read_elements::<i32>(&Selection::all()).unwrap(), values);
    }
    toy.assert_clean();
}

#[test]
fn a_write_downloads_once() {
    // Work that starts only when it is waited for: every wait shows.
    let toy = OpaqueDevice::with_options(0, ToyOptions { schedule: Schedule::WhenWaitedFor, ..ToyOptions::default() });
    let wrapped = Toy::Opaque(Arc::clone(&toy));
    let encoded_there = wrapped.options(prefer);
    let mut elements_only = options().with_policy(prefer(&*toy));
    elements_only.registry = elements_only.registry.with(toy.provider().without_encoding("zstd"));
    let target = DeviceTarget::new(wrapped.device()).unwrap();
    // What is encoded there is waited for twice, since nobody knows before how much comes out.
    for (options, launches, waits) in [(encoded_there, 1, 2), (elements_only, 0, 1)] {
        let (array, values) = sharded(memory(), &options);
        let source = wrapped.upload(&bytes_of(&values), &target);
        let before = toy.counters();
        array.write_from_device(&Selection::all(), &source, &target).unwrap();
        let done = toy.counters().since(&before);
        assert_eq!((done.device_to_host.copies, done.kernel_launches), (1, launches));
        match launches {
            0 => assert_eq!(done.device_to_host.bytes, 16 * 64 * 4),
            _ => assert!(done.device_to_host.bytes < 16 * 64 * 4, "{} bytes", done.device_to_host.bytes),
        }
        assert_eq!((done.host_waits, done.host_to_device.copies), (waits, 0));
        assert_eq!(array.read_elements::<i32>(&Selection::all()).unwrap(), values);
        // With less staging than data: one row of shards at a time.
        let before = toy.counters();
        array.write_from_device(&Selection::all(), &source, &target.clone().with_staging(2048)).unwrap();
        let done = toy.counters().since(&before);
        assert_eq!(done.device_to_host.copies, 2);
        assert!(done.peak_staging_bytes <= 16 * 64 * 4, "{} bytes", done.peak_staging_bytes);
        // Some chunks at a time, as many as fit, or all of them.
        for scratch in [1 << 20, u64::MAX] {
            let mut some = target.clone();
            some.scratch = scratch;
            let before = toy.counters();
            array.write_from_device(&Selection::all(), &source, &some).unwrap();
            let launched = toy.counters().since(&before).kernel_launches;
            assert!(launches == 0 || (launched > 1) == (scratch < u64::MAX), "{launched} launches with {scratch}");
            assert_eq!(array.read_elements::<i32>(&Selection::all()).unwrap(), values);
        }
        assert_eq!(array.read_elements::<i32>(&Selection::all()).unwrap(), values);
        // With too little memory on the device to encode there, the host does.
        let mut small = target.clone();
        small.scratch = 1;
        array.write_from_device(&Selection::all(), &source, &small).unwrap();
        assert_eq!(array.read_elements::<i32>(&Selection::all()).unwrap(), values);
    }
    toy.assert_clean();
}

/// Rows of 128 KiB, a chunk each, stored as they are.
fn raw(store: AnyStore, options: &Options) -> (Array, Vec<i32>) {
    let array =
        ArrayBuilder::new([16, 32 << 10], DataType::Int32).chunks([1, 32 << 10]).compressors([]).create(store, "/", options).unwrap();
    let values: Vec<i32> = (0..16 * (32 << 10)).collect();
    array.write_elements(&Selection::all(), &values).unwrap();
    (array, values)
}

#[test]
fn elements_that_lie_side_by_side_are_uploaded_to_their_place() {
    let toy = OpaqueDevice::new(0);
    let wrapped = Toy::Opaque(Arc::clone(&toy));
    let target = DeviceTarget::new(wrapped.device()).unwrap();
    let (array, values) = raw(memory(), &wrapped.options(prefer));
    let text = array.explain();
    assert!(text.contains("elements cross the bus once, as they are stored"), "{text}");
    let before = toy.counters();
    let pending = array.enqueue_read(&Selection::all(), &target).unwrap();
    let crossings = pending.crossings();
    let tensor = pending.wait().unwrap();
    let done = toy.counters().since(&before);
    assert_eq!((done.host_to_device.copies, done.host_to_device.bytes), (1, values.len() as u64 * 4), "neighbours are one copy");
    assert_eq!((crossings.uploads, crossings.uploaded), (1, values.len() as u64 * 4));
    assert_eq!((done.region_copies.copies, done.device_to_device.copies, done.allocations), (0, 0, 1), "nothing but the result");
    assert_eq!(wrapped.download(&tensor, &target), bytes_of(&values));

    // Every second element: boxes, by way of the device.
    let every_second = Selection::parse(":, ::2", 2).unwrap();
    let tensor = array.read_to_device(&every_second, &target).unwrap();
    let expected: Vec<i32> = values.iter().step_by(2).copied().collect();
    assert_eq!(wrapped.download(&tensor, &target), bytes_of(&expected));
    toy.assert_clean();
}

#[test]
fn uploads_go_on_beside_decoding() {
    for schedule in [Schedule::Soon, Schedule::Delayed { seed: 3 }, Schedule::WhenWaitedFor] {
        let toy = OpaqueDevice::with_options(0, ToyOptions { schedule, ..ToyOptions::default() });
        let wrapped = Toy::Opaque(Arc::clone(&toy));
        let (array, values) = sharded(memory(), &wrapped.options(prefer));
        // Room for few chunks, so that many batches are fetched, and many are decoded.
        let mut target = DeviceTarget::new(wrapped.device()).unwrap().with_staging(3 << 10);
        target.scratch = 4 << 10;
        for _ in 0..4 {
            let before = toy.counters();
            let tensor = array.read_to_device(&Selection::all(), &target).unwrap();
            let done = toy.counters().since(&before);
            assert!(done.kernel_launches > 1, "{} launches", done.kernel_launches);
            assert_eq!(done.kernel_slots, 64);
            assert_eq!(done.queues, 1, "a queue for uploads behind the first decoding");
            assert_eq!(wrapped.download(&tensor, &target), bytes_of(&values), "{schedule:?}");
        }
        assert!(toy.counters().peak_staging_bytes <= (3 << 10) + 64 * 4 + 4096, "{} bytes", toy.counters().peak_staging_bytes);
        toy.assert_clean();
    }
}

#[test]
fn chunks_that_compress_differently_share_batches() {
    let toy = OpaqueDevice::new(0);
    let wrapped = Toy::Opaque(Arc::clone(&toy));
    let array = ArrayBuilder::new([256, 4096], DataType::Int32).chunks([1, 4096]).create(memory(), "/", &wrapped.options(prefer)).unwrap();
    // The first half takes a few bytes for each chunk, the second nearly all that is reserved.
    let mut random = Random(5);
    let values: Vec<i32> = (0..256 * 4096).map(|i| if i < 128 * 4096 { 7 } else { random.next() as i32 }).collect();
    array.write_elements(&Selection::all(), &values).unwrap();
    let budget = 3 * (256 << 10);
    let target = DeviceTarget::new(wrapped.device()).unwrap().with_staging(budget);
    for _ in 0..3 {
        let pending = array.enqueue_read(&Selection::all(), &target).unwrap();
        let uploads = pending.crossings().uploads;
        assert!(uploads < 128, "{uploads} uploads for 256 chunks");
        assert_eq!(wrapped.download(&pending.wait().unwrap(), &target), bytes_of(&values));
    }
    toy.assert_clean();
}

#[test]
fn one_thread_is_enough() {
    let toy = OpaqueDevice::new(0);
    let wrapped = Toy::Opaque(Arc::clone(&toy));
    let target = DeviceTarget::new(wrapped.device()).unwrap().with_staging(3 << 10);
    let one = Arc::new(rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap());
    let options = wrapped.options(prefer).with_pool(Pool::new(Arc::clone(&one)));
    let (array, values) = sharded(memory(), &options);
    // The thread that drives the read is the only one of the pool.
    let tensor = runtime().block_on(array.read_to_device_async(&Selection::all(), &target)).unwrap();
    assert_eq!(wrapped.download(&tensor, &target), bytes_of(&values));
    let tensor = one.install(|| array.read_to_device(&Selection::all(), &target)).unwrap();
    assert_eq!(wrapped.download(&tensor, &target), bytes_of(&values));
    // The only thread waits for another one that reads ahead.
    let all = std::iter::repeat_n(Selection::all(), 3);
    let mut begun = array.read_each_to_device(all.clone(), &target);
    let first = begun.next();
    let rest = one.install(|| begun.collect::<Vec<_>>());
    assert_eq!(rest.len(), 2);
    for tensor in one.install(|| array.read_each_to_device(all, &target).collect::<Vec<_>>()).into_iter().chain(first).chain(rest) {
        assert_eq!(wrapped.download(&tensor.unwrap(), &target), bytes_of(&values));
    }
    toy.assert_clean();
}

/// Counts the stages that begin and end.
#[derive(Debug, Default)]
struct Stages(Arc<Mutex<Vec<(Stage, bool)>>>);

/// Notes the end of a stage.
struct Ends(Stage, Arc<Mutex<Vec<(Stage, bool)>>>);

impl Observer for Stages {
    fn begin(&self, stage: Stage, _: u64, queue: Option<&Arc<dyn Queue>>) -> Box<dyn std::any::Any> {
        assert_eq!(queue.is_none(), matches!(stage, Stage::Plan | Stage::Fetch), "{stage}");
        self.0.lock().unwrap().push((stage, true));
        Box::new(Ends(stage, Arc::clone(&self.0)))
    }
}

impl Drop for Ends {
    fn drop(&mut self) {
        self.1.lock().unwrap().push((self.0, false));
    }
}

#[test]
fn an_observer_sees_every_stage_begin_and_end() {
    let toy = OpaqueDevice::new(0);
    let wrapped = Toy::Opaque(Arc::clone(&toy));
    let stages = Stages::default();
    let noted = Arc::clone(&stages.0);
    let target = DeviceTarget::new(wrapped.device()).unwrap().with_observer(Arc::new(stages));
    let (array, values) = sharded(memory(), &wrapped.options(prefer));
    let tensor = array.read_to_device(&Selection::parse("1:, :", 2).unwrap(), &target).unwrap();
    assert_eq!(wrapped.download(&tensor, &target), bytes_of(&values[64..]));
    let noted = noted.lock().unwrap();
    for stage in [Stage::Plan, Stage::Fetch, Stage::Upload, Stage::Decode, Stage::Scatter] {
        let count = |begins: bool| noted.iter().filter(|noted| **noted == (stage, begins)).count();
        assert!(count(true) > 0, "{stage}");
        assert_eq!(count(true), count(false), "{stage}");
    }
    toy.assert_clean();
}

#[test]
fn staging_stays_within_its_budget() {
    let toy = OpaqueDevice::new(0);
    let wrapped = Toy::Opaque(Arc::clone(&toy));
    let array = ArrayBuilder::new([512, 256], DataType::Int32)
        .chunks([8, 256])
        .compressors([])
        .create(memory(), "/", &wrapped.options(prefer))
        .unwrap();
    let values: Vec<i32> = (0..512 * 256).collect();
    array.write_elements(&Selection::all(), &values).unwrap();
    let budget = 96 << 10;
    let target = DeviceTarget::new(wrapped.device()).unwrap().with_staging(budget);
    let tensor = array.read_to_device(&Selection::all(), &target).unwrap();
    assert!(toy.counters().peak_staging_bytes <= budget as u64, "{} bytes", toy.counters().peak_staging_bytes);
    assert_eq!(wrapped.download(&tensor, &target), bytes_of(&values));
    toy.assert_clean();
}

#[test]
fn mixed_chains_cross_the_bus_once() {
    let toy = OpaqueDevice::new(0);
    let wrapped = Toy::Opaque(Arc::clone(&toy));
    let target = DeviceTarget::new(wrapped.device()).unwrap();
    let chain = codecs(
        r#"[{"name":"bytes","configuration":{"endian":"little"}},{"name":"zstd","configuration":{"level":1,"checksum":false}},{"name":"crc32c"}]"#,
    );
    let builder = ArrayBuilder::new([32, 32], DataType::Int32).chunks([8, 32]).codecs(chain);
    let array = builder.create(memory(), "/", &wrapped.options(prefer)).unwrap();
    let values: Vec<i32> = (0..1024).collect();
    array.write_elements(&Selection::all(), &values).unwrap();
    let text = array.explain();
    assert!(text.contains("crc32c on host by cpu") && text.contains("upload") && text.contains("zstd"), "{text}");
    assert!(text.contains("decoded in part cross the bus once"), "{text}");
    let before = toy.counters();
    let tensor = array.read_to_device(&Selection::all(), &target).unwrap();
    let done = toy.counters().since(&before);
    assert_eq!((done.kernel_slots, done.device_to_host.copies), (4, 0));
    assert!(done.host_to_device.copies <= 4);
    assert_eq!(wrapped.download(&tensor, &target), bytes_of(&values));

    // Big-endian elements: the device lacks the last stage, so all of the chain runs on the host, and only elements are uploaded.
    let big = codecs(r#"[{"name":"bytes","configuration":{"endian":"big"}},{"name":"zstd","configuration":{"level":1,"checksum":false}}]"#);
    let builder = ArrayBuilder::new([32, 32], DataType::Int32).chunks([8, 32]).codecs(big);
    let array = builder.create(memory(), "/", &wrapped.options(prefer)).unwrap();
    array.write_elements(&Selection::all(), &values).unwrap();
    assert!(!array.explain().contains("upload"), "{}", array.explain());
    assert!(array.explain().contains("elements that the host has decoded cross the bus once"), "{}", array.explain());
    let before = toy.counters();
    let tensor = array.read_to_device(&Selection::all(), &target).unwrap();
    let done = toy.counters().since(&before);
    assert_eq!((done.kernel_slots, done.host_to_device.copies, done.host_to_device.bytes), (0, 1, 4096));
    assert_eq!(wrapped.download(&tensor, &target), bytes_of(&values));
    // And when the device is required, that is an error that says so.
    let required = array.with_options(&wrapped.options(|device| Policy::Require(device.id())));
    let message = required.unwrap_err().to_string();
    assert!(message.contains("requires"), "{message}");
    toy.assert_clean();
}

#[test]
fn unfused_and_contiguous_segments_give_the_same() {
    let toy = OpaqueDevice::new(0);
    let wrapped = Toy::Opaque(Arc::clone(&toy));
    let target = DeviceTarget::new(wrapped.device()).unwrap();
    for provider in
        [toy.provider().unfused(), toy.provider().contiguous_only(), toy.provider().without("bytes"), toy.provider().without("zstd")]
    {
        let mut options = options().with_policy(Policy::Prefer(toy.id()));
        options.registry = options.registry.with(provider);
        let (array, values) = sharded(memory(), &options);
        let tensor = array.read_to_device(&Selection::all(), &target).unwrap();
        assert_eq!(wrapped.download(&tensor, &target), bytes_of(&values));
        let other: Vec<i32> = values.iter().map(|value| value * 7 + 1).collect();
        array.write_from_device(&Selection::all(), &wrapped.upload(&bytes_of(&other), &target), &target).unwrap();
        assert_eq!(array.read_elements::<i32>(&Selection::all()).unwrap(), other);
    }
    toy.assert_clean();
}

#[test]
fn missing_chunks_are_filled_on_the_device() {
    for (name, toy) in toys() {
        let target = DeviceTarget::new(toy.device()).unwrap();
        let builder = ArrayBuilder::new([16, 64], DataType::Int32)
            .chunks([4, 4])
            .shards([8, 16])
            .fill_value(zarr_meta::FillValue::from_bytes(7i32.to_ne_bytes().to_vec(), &DataType::Int32).unwrap());
        let array = builder.create(memory(), "/", &toy.options(prefer)).unwrap();
        array.write_elements(&Selection::ranges([5..6, 5..6]), &[1i32]).unwrap();
        let before = toy.counters();
        let tensor = array.read_to_device(&Selection::all(), &target).unwrap();
        let done = toy.counters().since(&before);
        assert_eq!(done.fills.copies, 63, "{name}: every inner chunk but one");
        let mut expected = vec![7i32; 16 * 64];
        expected[5 * 64 + 5] = 1;
        assert_eq!(toy.download(&tensor, &target), bytes_of(&expected), "{name}");
        toy.assert_clean();
    }
}

#[test]
fn a_bad_chunk_is_told_by_the_verdict() {
    for (name, toy) in toys() {
        let target = DeviceTarget::new(toy.device()).unwrap();
        let builder = ArrayBuilder::new([8, 8], DataType::Int32).chunks([4, 8]);
        let array = builder.create(memory(), "/", &toy.options(prefer)).unwrap();
        let values: Vec<i32> = (0..64).collect();
        array.write_elements(&Selection::all(), &values).unwrap();
        let mut bad = array.read_encoded_chunk(&[1, 0]).unwrap().unwrap().to_vec();
        let at = bad.len() / 2;
        bad.truncate(at);
        array.write_encoded_chunk(&[1, 0], bad).unwrap();
        let pending = array.enqueue_read(&Selection::all(), &target).unwrap();
        let error = pending.wait().unwrap_err();
        assert!(matches!(&error, ArrayError::Chunk { chunk, .. } if chunk == &[1, 0]), "{name}: {error}");
        // Who asks for it gets the rest, and zeros for the bad chunk.
        let tensor = array.enqueue_read(&Selection::all(), &target).unwrap().into_unchecked();
        let mut expected = values.clone();
        expected[32..].fill(0);
        assert_eq!(toy.download(&tensor, &target), bytes_of(&expected), "{name}");
        toy.assert_clean();
    }
}

#[test]
fn read_sets_async_stores_and_variable_elements() {
    let runtime = runtime();
    for (name, toy) in toys() {
        let target = DeviceTarget::new(toy.device()).unwrap();
        let store = AnyStore::Async(Arc::new(BlockingToAsync::new(MemoryStore::new())));
        let _inside = runtime.enter();
        let (array, values) = sharded(memory(), &toy.options(prefer));
        let builder = ArrayBuilder::new([16, 64], DataType::Int32).chunks([4, 4]).shards([8, 16]);
        let remote = runtime.block_on(async {
            let remote = builder.create_async(store, "/", &toy.options(prefer)).await.unwrap();
            let source = toy.upload(&bytes_of(&values), &target);
            remote.write_from_device_async(&Selection::all(), &source, &target).await.unwrap();
            let tensor = remote.read_to_device_async(&Selection::all(), &target).await.unwrap();
            assert_eq!(toy.download(&tensor, &target), bytes_of(&values), "{name}");
            remote
        });
        let set = ReadSet::new().with(&array, Selection::all()).with(&remote, Selection::parse("3, ::-1", 2).unwrap());
        let tensors = set.read_to_device(&target).unwrap();
        assert_eq!(toy.download(&tensors[0], &target), bytes_of(&values), "{name}");
        let row: Vec<i32> = values[3 * 64..4 * 64].iter().rev().copied().collect();
        assert_eq!(toy.download(&tensors[1], &target), bytes_of(&row), "{name}");

        let strings = ArrayBuilder::new([3], DataType::String).create(memory(), "/", &toy.options(prefer)).unwrap();
        assert!(strings.read_to_device(&Selection::all(), &target).is_err(), "{name}: strings stay on the host");
        toy.assert_clean();
    }
}

#[test]
fn a_caller_s_buffer_and_two_queues() {
    let toy = OpaqueDevice::with_options(0, ToyOptions { schedule: Schedule::Delayed { seed: 9 }, ..ToyOptions::default() });
    let wrapped = Toy::Opaque(Arc::clone(&toy));
    let (array, values) = sharded(memory(), &wrapped.options(prefer));
    let first = DeviceTarget::new(wrapped.device()).unwrap();
    let second = first.clone().with_queue(wrapped.device().create_queue().unwrap());
    let output = wrapped.device().allocate(values.len() * 4, &*first.queue).unwrap();
    for _ in 0..8 {
        // The same memory written from two queues in turn, without a wait by the host in between.
        let a = array.enqueue_read_into(&Selection::all(), &output, &first).unwrap();
        let b = array.enqueue_read_into(&Selection::all(), &output, &second).unwrap();
        b.wait().unwrap();
        let tensor = a.wait().unwrap();
        assert_eq!(wrapped.download(&tensor, &second), bytes_of(&values));
    }
    let short = wrapped.device().allocate(8, &*first.queue).unwrap();
    assert!(matches!(array.enqueue_read_into(&Selection::all(), &short, &first), Err(ArrayError::Parameter(_))));
    assert_eq!(output.host_read().unwrap_err().kind, BufferErrorKind::NotHostVisible);
    toy.assert_clean();
}

/// A store in which somebody replaces a value as soon as a reader of it was given.
#[derive(Debug)]
struct ReplacedStore {
    inner: MemoryStore,
    next: Mutex<Option<(StoreKey, Bytes)>>,
}

impl ReadableStore for ReplacedStore {
    fn get(&self, key: &StoreKey, range: ByteRange) -> Result<Option<Bytes>, StoreError> {
        self.inner.get(key, range)
    }

    fn size(&self, key: &StoreKey) -> Result<Option<u64>, StoreError> {
        self.inner.size(key)
    }

    fn reader<'a>(&'a self, key: &StoreKey) -> Result<Box<dyn ValueReader + 'a>, StoreError> {
        let reader = self.inner.reader(key);
        if let Some((_, value)) = self.next.lock().unwrap().take_if(|(replaced, _)| replaced == key) {
            self.inner.set(key, value)?;
        }
        reader
    }
}

impl Store for ReplacedStore {
    fn as_writable(&self) -> Option<&dyn WritableStore> {
        self.inner.as_writable()
    }

    fn name(&self) -> String {
        "replaced".to_owned()
    }
}

#[test]
fn a_shard_that_is_replaced_between_its_index_and_its_inner_chunks_is_no_mixture() {
    for (name, toy) in toys() {
        let target = DeviceTarget::new(toy.device()).unwrap();
        let builder = ArrayBuilder::new([8, 8], DataType::Int32).chunks([2, 2]).shards([8, 8]).compressors([]);
        let store = Arc::new(ReplacedStore { inner: MemoryStore::new(), next: Mutex::default() });
        let array = builder.create(AnyStore::from(Arc::clone(&store) as Arc<dyn Store>), "/", &toy.options(prefer)).unwrap();
        array.write_elements(&Selection::all(), &[2i32; 64]).unwrap();
        let key = StoreKey::new("c/0/0").unwrap();
        let full = store.get(&key, ByteRange::All).unwrap().unwrap();
        // In this one the only inner chunk lies where the first one lies in the other, and is another one.
        array.erase_chunk(&[0, 0]).unwrap();
        array.write_elements(&Selection::ranges([6..8, 6..8]), &[1i32; 4]).unwrap();
        *store.next.lock().unwrap() = Some((key, full));
        let corner = Selection::ranges([6..8, 6..8]);
        match (&toy, array.read_to_device(&corner, &target)) {
            (Toy::Opaque(_), Err(ArrayError::Store(error))) => assert_eq!(error.kind(), StoreErrorKind::Replaced, "{name}"),
            // As onto the host: all of a shard from one reader.
            (Toy::Unified(_), Ok(tensor)) => assert_eq!(toy.download(&tensor, &target), bytes_of(&[1; 4]), "{name}"),
            (_, other) => panic!("{name}: {other:?}"),
        }
        let tensor = array.read_to_device(&corner, &target).unwrap();
        assert_eq!(toy.download(&tensor, &target), bytes_of(&[2; 4]), "{name}");
        toy.assert_clean();
    }
}

/// A store that reads straight to one device: a copy on the queue it is given, from memory that it keeps.
#[derive(Debug)]
struct DirectStore {
    inner: MemoryStore,
    device: DeviceId,
    reads: AtomicU64,
    kept: Mutex<Vec<Buffer>>,
}

impl DirectStore {
    fn new(device: DeviceId) -> Arc<Self> {
        Arc::new(Self { inner: MemoryStore::new(), device, reads: AtomicU64::new(0), kept: Mutex::default() })
    }

    fn reads(&self) -> u64 {
        self.reads.swap(0, Ordering::Relaxed)
    }
}

impl ReadableStore for DirectStore {
    fn get(&self, key: &StoreKey, range: ByteRange) -> Result<Option<Bytes>, StoreError> {
        self.inner.get(key, range)
    }

    fn size(&self, key: &StoreKey) -> Result<Option<u64>, StoreError> {
        self.inner.size(key)
    }

    fn get_into_buffer(
        &self,
        key: &StoreKey,
        range: ByteRange,
        dst: &Buffer,
        _: &Arc<dyn Device>,
        queue: &Arc<dyn Queue>,
    ) -> Result<Option<usize>, StoreError> {
        let Some(bytes) = self.inner.get(key, range)? else { return Ok(None) };
        if bytes.len() > dst.len() {
            return Err(StoreError::destination_too_short(bytes.len() as u64, dst.len()));
        }
        let source = Buffer::from_vec(bytes.to_vec());
        let copied = dst.slice(0..bytes.len()).and_then(|front| queue.copy(&source, &front));
        copied.map_err(|error| StoreError::from_buffer(error, "cannot copy"))?;
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.kept.lock().unwrap().push(source);
        Ok(Some(bytes.len()))
    }

    fn reads_to_device(&self, device: DeviceId) -> bool {
        device == self.device
    }
}

impl Store for DirectStore {
    fn as_writable(&self) -> Option<&dyn WritableStore> {
        self.inner.as_writable()
    }

    fn name(&self) -> String {
        "direct".to_owned()
    }
}

fn any(store: &Arc<DirectStore>) -> AnyStore {
    AnyStore::from(Arc::clone(store) as Arc<dyn Store>)
}

#[test]
fn a_store_that_reads_to_the_device_needs_no_staging() {
    let toy = OpaqueDevice::new(0);
    let wrapped = Toy::Opaque(Arc::clone(&toy));
    let target = DeviceTarget::new(wrapped.device()).unwrap();

    // Encoded bytes, decoded on the device.
    let store = DirectStore::new(toy.id());
    let (array, values) = sharded(any(&store), &wrapped.options(prefer));
    assert!(array.explain().contains("the store reads straight to it"), "{}", array.explain());
    let before = toy.counters();
    let pending = array.enqueue_read(&Selection::all(), &target).unwrap();
    let enqueued = toy.counters().since(&before);
    assert_eq!(enqueued.host_waits, 0, "enqueueing waits for nothing");
    assert_eq!((enqueued.kernel_launches, enqueued.kernel_slots), (1, 64));
    assert_eq!(enqueued.host_to_device.copies, store.reads(), "the copies of the store, and no others");
    assert_eq!((pending.crossings().uploads, pending.crossings().direct_batches), (0, 1));
    assert!(enqueued.host_to_device.copies >= 8, "a read for each shard at least");
    assert_eq!(enqueued.staging_allocations, 1, "the statuses of the batch");
    assert!(enqueued.peak_staging_bytes <= 64 * 4);
    let tensor = pending.wait().unwrap();
    assert!(toy.counters().since(&before).host_waits <= 1, "one wait, for the verdicts, unless they are there");
    assert_eq!(wrapped.download(&tensor, &target), bytes_of(&values));

    // Elements as they are stored, scattered by the device; some of them skipped, and a chunk missing.
    let store = DirectStore::new(toy.id());
    let builder = ArrayBuilder::new([16, 64], DataType::Int32).chunks([4, 64]).compressors([]);
    let array = builder.create(any(&store), "/", &wrapped.options(prefer)).unwrap();
    array.write_elements(&Selection::ranges([0..12, 0..64]), &values[..12 * 64]).unwrap();
    let before = toy.counters();
    let tensor = array.read_to_device(&Selection::ranges([3..16, 0..64]), &target).unwrap();
    let done = toy.counters().since(&before);
    assert_eq!((done.staging_allocations, done.host_waits, done.device_to_host.copies), (0, 0, 0));
    assert_eq!((done.host_to_device.copies, store.reads()), (3, 3));
    let mut expected = values[3 * 64..].to_vec();
    expected[9 * 64..].fill(0);
    assert_eq!(wrapped.download(&tensor, &target), bytes_of(&expected));

    // Chunks that the host decodes go the ordinary way.
    let on_host = array_on_host(&any(&store), &wrapped);
    store.reads();
    let tensor = on_host.read_to_device(&Selection::all(), &target).unwrap();
    assert_eq!(store.reads(), 0);
    assert_eq!(wrapped.download(&tensor, &target), bytes_of(&values));

    // Another device is none of the store's business.
    let store = DirectStore::new(DeviceId::CPU);
    let (array, values) = sharded(any(&store), &wrapped.options(prefer));
    assert!(array.explain().contains("stored bytes cross the bus once"), "{}", array.explain());
    let tensor = array.read_to_device(&Selection::all(), &target).unwrap();
    assert_eq!(store.reads(), 0);
    assert_eq!(wrapped.download(&tensor, &target), bytes_of(&values));
    toy.assert_clean();
}

fn array_on_host(store: &AnyStore, toy: &Toy) -> Array {
    let builder = ArrayBuilder::new([16, 64], DataType::Int32).chunks([4, 4]).shards([8, 16]);
    let array = builder.create(store.clone(), "/host", &toy.options(|_| Policy::Host)).unwrap();
    let values: Vec<i32> = (0..16 * 64).map(|i| i / 3).collect();
    array.write_elements(&Selection::all(), &values).unwrap();
    array
}

#[test]
fn direct_reads_agree_with_reads_on_the_host_in_bounded_memory() {
    for schedule in [Schedule::Soon, Schedule::Delayed { seed: 11 }, Schedule::WhenWaitedFor] {
        let toy = OpaqueDevice::with_options(0, ToyOptions { schedule, ..ToyOptions::default() });
        let wrapped = Toy::Opaque(Arc::clone(&toy));
        let mut random = Random(41);
        // Many batches of every read, or one.
        for staging in [600, 1 << 20] {
            let target = DeviceTarget::new(wrapped.device()).unwrap().with_staging(staging);
            for (name, builder) in layouts() {
                let array = builder.create(any(&DirectStore::new(toy.id())), "/", &wrapped.options(prefer)).unwrap();
                let written = selection(&mut random, &SHAPE);
                let values: Vec<i32> = positions(&written, &SHAPE).0.iter().map(|_| random.next() as i32).collect();
                array.write_elements(&written, &values).unwrap();
                for _ in 0..3 {
                    let wanted = selection(&mut random, &SHAPE);
                    let expected: Vec<i32> = array.read_elements(&wanted).unwrap();
                    let tensor = array.read_to_device(&wanted, &target).unwrap_or_else(|error| panic!("{name}: {wanted:?}: {error}"));
                    assert_eq!(wrapped.download(&tensor, &target), bytes_of(&expected), "{name}, {schedule:?}: {wanted:?}");
                }
            }
        }
        toy.assert_clean();
    }

    // A ring of three buffers of 32 KiB, for 512 KiB of elements.
    let toy = OpaqueDevice::with_options(0, ToyOptions { schedule: Schedule::WhenWaitedFor, ..ToyOptions::default() });
    let wrapped = Toy::Opaque(Arc::clone(&toy));
    let builder = ArrayBuilder::new([512, 256], DataType::Int32).chunks([8, 256]).compressors([]);
    let array = builder.create(any(&DirectStore::new(toy.id())), "/", &wrapped.options(prefer)).unwrap();
    let values: Vec<i32> = (0..512 * 256).collect();
    array.write_elements(&Selection::all(), &values).unwrap();
    let target = DeviceTarget::new(wrapped.device()).unwrap().with_staging(96 << 10);
    let tensor = array.read_to_device(&Selection::all(), &target).unwrap();
    let counters = toy.counters();
    assert_eq!(counters.peak_staging_bytes, 0);
    assert!(counters.peak_bytes <= (512 << 10) + (96 << 10), "{} bytes on the device", counters.peak_bytes);
    assert_eq!(wrapped.download(&tensor, &target), bytes_of(&values));
    toy.assert_clean();
}

#[test]
fn a_chunk_too_large_for_its_place_on_the_device_is_an_error_of_that_chunk() {
    let toy = OpaqueDevice::new(0);
    let wrapped = Toy::Opaque(Arc::clone(&toy));
    let target = DeviceTarget::new(wrapped.device()).unwrap();
    let store = DirectStore::new(toy.id());
    let array = ArrayBuilder::new([8, 8], DataType::Int32).chunks([4, 8]).create(any(&store), "/", &wrapped.options(prefer)).unwrap();
    array.write_elements(&Selection::all(), &[5i32; 64]).unwrap();
    array.write_encoded_chunk(&[1, 0], vec![0; 1 << 16]).unwrap();
    let error = array.read_to_device(&Selection::all(), &target).unwrap_err();
    assert!(matches!(&error, ArrayError::Chunk { chunk, .. } if chunk == &[1, 0]), "{error}");
    toy.assert_clean();
}

#[test]
fn reads_to_a_device_run_ahead() {
    for (name, toy) in toys() {
        let target = DeviceTarget::new(toy.device()).unwrap();
        let (array, values) = sharded(memory(), &toy.options(prefer));
        for ahead in [1, 2, 5] {
            let pulled = Arc::new(AtomicUsize::new(0));
            let count = Arc::clone(&pulled);
            let rows = [3, 0, 99, 15, 7, 7, 1].into_iter();
            let selections = rows.clone().map(move |row| {
                count.fetch_add(1, Ordering::SeqCst);
                Selection::axes([AxisSelection::from(row), (..).into()])
            });
            let mut reads = array.read_each_to_device(selections, &target).with_ahead(ahead);
            for (index, row) in rows.enumerate() {
                let read = reads.next().unwrap();
                assert!(pulled.load(Ordering::SeqCst) <= index + 1 + ahead, "{name}, {ahead} ahead");
                match read {
                    Ok(tensor) => {
                        let row = row as usize;
                        assert_eq!(toy.download(&tensor, &target), bytes_of(&values[64 * row..64 * (row + 1)]), "{name}, row {row}");
                    }
                    Err(error) => assert!(row == 99 && matches!(error, ArrayError::Selection(_)), "{name}, row {row}: {error}"),
                }
            }
            assert!(reads.next().is_none() && reads.next().is_none(), "{name}");
        }
        // Begun and dropped; and what panics among the selections panics here.
        drop(array.read_each_to_device(array.chunk_selections(), &target));
        let mut reads = array.read_each_to_device(array.chunk_selections(), &target);
        assert!(reads.next().unwrap().is_ok(), "{name}");
        drop(reads);
        let broken = (0..3).map(|index| if index == 1 { panic!("no more selections") } else { Selection::all() });
        let mut reads = array.read_each_to_device(broken, &target);
        assert!(reads.next().unwrap().is_ok(), "{name}");
        assert!(catch_unwind(AssertUnwindSafe(|| reads.next())).is_err(), "{name}");
        assert!(reads.next().is_none(), "{name}");
    }
}

/// A raw chunk that is shorter than it should be, of which a part is read that reaches behind its end.
#[test]
fn a_part_that_a_stored_chunk_does_not_have_is_an_error() {
    let runtime = runtime();
    let _inside = runtime.enter();
    for (name, toy) in toys() {
        let store = MemoryStore::new();
        let direct = match &toy {
            Toy::Opaque(device) => Some(DirectStore::new(device.id())),
            Toy::Unified(_) => None,
        };
        let mut stores = vec![AnyStore::blocking(store.clone()), AnyStore::Async(Arc::new(BlockingToAsync::new(MemoryStore::new())))];
        stores.extend(direct.iter().map(any));
        for store in stores {
            let builder = ArrayBuilder::new([200], DataType::UInt8).chunks([100]).compressors([]);
            let array = builder.create(store, "/", &toy.options(prefer)).unwrap();
            array.write_elements(&Selection::all(), &(0..200).collect::<Vec<u8>>()).unwrap();
            let chunk = array.read_encoded_chunk(&[0]).unwrap().unwrap();
            array.write_encoded_chunk(&[0], chunk.slice(..30)).unwrap();
            let target = DeviceTarget::new(toy.device()).unwrap();
            let tensor = array.read_to_device(&Selection::ranges(std::iter::once(10..30)), &target).unwrap();
            assert_eq!(toy.download(&tensor, &target), (10..30).collect::<Vec<u8>>(), "{name}");
            for wanted in [10..31, 40..50, 10..150] {
                let wanted = Selection::ranges([wanted]);
                assert!(array.read(&wanted).is_err());
                let read = array.read_to_device(&wanted, &target);
                assert!(read.is_err(), "{name}, {}: {wanted:?} was read", array.store().name());
            }
        }
        toy.assert_clean();
    }
}

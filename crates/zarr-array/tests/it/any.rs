//! Any array: shapes, grids, chains and selections at random, written and read in every way there is, beside a vector of bytes.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use zarr_array::{Array, ArrayBuilder, ArrayError, AxisSelection, DeviceTarget, ReadSet, Selection, Version};
use zarr_buffer_api::Layout;
use zarr_codec_api::Scratch;
use zarr_conformance::toy::{OpaqueDevice, Schedule, ToyOptions, UnifiedDevice};
use zarr_meta::{ChunkGrid, DataType, FillValue, GridAxis};
use zarr_store::{BlockingToAsync, FilesystemStore, MemoryStore};
use zarr_store_api::{AnyStore, Store};

use crate::common::{Random, codecs, options, positions, runtime, selection};
use crate::devices::{Toy, prefer};

/// An array, and what a reader needs to know of it that it does not ask the array for.
#[derive(Debug)]
struct Any {
    shape: Vec<u64>,
    /// The lengths of the chunks along each axis, of which the last may reach over the shape.
    edges: Vec<Vec<u64>>,
    data_type: DataType,
    fill: Vec<u8>,
    version: Version,
    rectilinear: bool,
    chain: String,
}

impl Any {
    fn new(random: &mut Random) -> Self {
        let (data_type, size) = match random.below(6) {
            0 => (DataType::UInt8, 1),
            1 => (DataType::Int16, 2),
            2 => (DataType::Raw { bits: 24 }, 3),
            3 => (DataType::Int32, 4),
            4 => (DataType::Float64, 8),
            _ => (DataType::Complex128, 16),
        };
        let is_large = random.below(12) == 0;
        let most: u64 = if is_large { 3 << 20 } else { 8 << 10 };
        let rank = [0, 1, 1, 2, 2, 3, 3, 3, 4, 4][random.below(10) as usize];
        let mut shape = Vec::with_capacity(rank);
        let mut left = most / size;
        for axis in 0..rank {
            let len = match random.below(if is_large { 3 } else { 8 }) {
                0 => 1,
                1 if !is_large => random.below(2),
                _ if is_large => 1 + random.below(if axis + 1 == rank { left.min(1 << 18) } else { left.min(160) }),
                _ => 1 + random.below(left.min(14)),
            };
            left = (left / len.max(1)).max(1);
            shape.push(len);
        }
        let version = if random.below(4) == 0 { Version::V2 } else { Version::V3 };
        let rectilinear = version == Version::V3 && rank > 0 && random.below(8) == 0;
        // Lines and planes: strides of axes of one element say nothing.
        let lines = random.below(3) == 0;
        let edges: Vec<Vec<u64>> = shape.iter().map(|&len| edges(random, len, rectilinear, lines)).collect();
        // Shards are cut evenly along each axis.
        let even = edges.iter().all(|edges| edges.iter().all(|edge| *edge == edges[0]));
        let chunk: Vec<u64> = edges.iter().map(|edges| edges[0]).collect();
        let chain = chain(random, &chunk, size, if even && version == Version::V3 { 2 } else { 0 }, version);
        let fill = if random.below(2) == 0 { vec![0; size as usize] } else { (0..size).map(|_| 1 + random.below(100) as u8).collect() };
        Self { shape, edges, data_type, fill, version, rectilinear, chain }
    }

    fn builder(&self) -> ArrayBuilder {
        let builder = ArrayBuilder::new(self.shape.clone(), self.data_type.clone()).version(self.version).codecs(codecs(&self.chain));
        let builder = builder.fill_value(FillValue::from_bytes(self.fill.clone(), &self.data_type).unwrap());
        if self.rectilinear {
            let axis = |edges: &Vec<u64>| match edges.iter().all(|edge| *edge == edges[0]) {
                true => GridAxis::step(edges[0]).unwrap(),
                false => GridAxis::edges(edges.iter().copied()).unwrap(),
            };
            let axes = self.edges.iter().map(axis).collect();
            builder.chunk_grid(ChunkGrid::Rectilinear { axes })
        } else {
            builder.chunks(self.edges.iter().map(|edges| edges[0]).collect::<Vec<_>>())
        }
    }

    fn elements(&self) -> usize {
        self.shape.iter().product::<u64>() as usize
    }

    fn is_large(&self) -> bool {
        self.elements() * self.fill.len() > 64 << 10
    }

    /// A selection, and the same one as flat positions, with the shape of the result.
    fn selection(&self, random: &mut Random) -> (Selection, Vec<usize>, Vec<u64>) {
        let is_empty = self.shape.contains(&0);
        // Of a large array boxes alone: each row and run of a list is work of its own for a toy device.
        let (wanted, same) = match random.below(if self.is_large() { 3 } else { 6 }) {
            0 => (Selection::all(), None),
            1 if !is_empty => {
                let some = |edges: &Vec<u64>| {
                    let start = random.below(edges.len() as u64 + 1);
                    start..start + random.below(edges.len() as u64 + 1 - start)
                };
                let blocks: Vec<std::ops::Range<u64>> = self.edges.iter().map(some).collect();
                let edge = |axis: usize, block: u64| {
                    let end: u64 = self.edges[axis].iter().take(block as usize).sum();
                    end.min(self.shape[axis]) as i64
                };
                let slice = |(axis, block): (usize, &std::ops::Range<u64>)| AxisSelection::Slice {
                    start: Some(edge(axis, block.start)),
                    stop: Some(edge(axis, block.end)),
                    step: 1,
                };
                let axes = Selection::axes(blocks.iter().enumerate().map(slice));
                (Selection::Blocks(blocks), Some(axes))
            }
            // Boxes that begin at the first element, or end at the last: fronts of chunks, and whole chunks.
            2 => {
                let slice = |&len: &u64| {
                    let (start, stop) = match random.below(3) {
                        0 => (0, random.below(len + 1)),
                        1 => (random.below(len + 1), len),
                        _ => (0, len),
                    };
                    AxisSelection::Slice { start: Some(start as i64), stop: Some(stop as i64), step: 1 }
                };
                (Selection::axes(self.shape.iter().map(slice).collect::<Vec<_>>()), None)
            }
            _ if is_empty || self.shape.is_empty() => (Selection::all(), None),
            _ => (selection(random, &self.shape), None),
        };
        let (places, shape) = positions(same.as_ref().unwrap_or(&wanted), &self.shape);
        (wanted, places, shape)
    }
}

/// Chunks that cover an axis: all of one length, or, of a rectilinear grid, of any.
fn edges(random: &mut Random, len: u64, rectilinear: bool, lines: bool) -> Vec<u64> {
    if rectilinear && random.below(2) == 0 {
        let mut edges = Vec::new();
        while edges.iter().sum::<u64>() < len.max(1) {
            edges.push(1 + random.below(len.max(1)));
        }
        return edges;
    }
    let chunk = match random.below(if lines { 2 } else { 5 }) {
        // Not so short that there are thousands.
        0 => len.div_ceil(12).max(1),
        1 => len.max(1),
        2 => len + 1 + random.below(4),
        _ => len.div_ceil(12).max(1) + random.below(len.max(1)),
    };
    vec![chunk; len.div_ceil(chunk) as usize + usize::from(len == 0)]
}

/// A chain of codecs for chunks of a shape, with shards of shards up to a depth.
fn chain(random: &mut Random, shape: &[u64], size: u64, depth: u64, version: Version) -> String {
    let mut shape = shape.to_vec();
    let mut chain = Vec::new();
    let mut turn = |random: &mut Random, reversed: bool| {
        let mut order: Vec<usize> = (0..shape.len()).rev().collect();
        for at in (1..order.len()).rev().filter(|_| !reversed) {
            order.swap(at, random.below(at as u64 + 1) as usize);
        }
        shape = order.iter().map(|&axis| shape[axis]).collect();
        format!(r#"{{"name":"transpose","configuration":{{"order":{order:?}}}}}"#)
    };
    // Version 2 knows two orders.
    let turns = random.below(if version == Version::V2 { 2 } else { 3 });
    chain.extend((0..turns).map(|_| turn(random, version == Version::V2)));
    let endian = ["little", "big"][random.below(2) as usize];
    let bytes = format!(r#"{{"name":"bytes","configuration":{{"endian":"{endian}"}}}}"#);
    let crc = r#"{"name":"crc32c"}"#;
    if depth > 0 && !shape.is_empty() && random.below(2) == 0 {
        // As many parts as divide the axis, and not so many that a shard has thousands.
        let part = |&len: &u64| {
            let parts: Vec<u64> = (1..=len.min(6)).filter(|&parts| len.is_multiple_of(parts)).collect();
            len / parts[random.below(parts.len() as u64) as usize]
        };
        let inner: Vec<u64> = shape.iter().map(part).collect();
        let codecs = self::chain(random, &inner, size, depth - 1, version);
        let index = ["start", "end"][random.below(2) as usize];
        let checked = if random.below(2) == 0 { format!("[{bytes},{crc}]") } else { format!("[{bytes}]") };
        chain.push(format!(
            r#"{{"name":"sharding_indexed","configuration":{{"chunk_shape":{inner:?},"codecs":{codecs},"index_codecs":{checked},"index_location":"{index}"}}}}"#
        ));
    } else {
        chain.push(bytes);
    }
    let blosc = |random: &mut Random| {
        let (name, shuffle) = (["lz4", "zstd", "blosclz"][random.below(3) as usize], ["shuffle", "noshuffle"][random.below(2) as usize]);
        let block = [0, 4096, 70_000][random.below(3) as usize];
        format!(
            r#"{{"name":"blosc","configuration":{{"cname":"{name}","clevel":5,"shuffle":"{shuffle}","typesize":{size},"blocksize":{block}}}}}"#
        )
    };
    match random.below(9) {
        0..4 => {}
        4 => chain.push(blosc(random)),
        5 => chain.push(r#"{"name":"gzip","configuration":{"level":1}}"#.to_owned()),
        6 if version == Version::V3 => chain.push(crc.to_owned()),
        turn => {
            let checked = turn % 2 == 0;
            chain.push(format!(r#"{{"name":"zstd","configuration":{{"level":1,"checksum":{checked}}}}}"#));
        }
    }
    if version == Version::V3 && random.below(5) == 0 {
        chain.push(crc.to_owned());
    }
    format!("[{}]", chain.join(","))
}

/// One array through handles of every kind.
struct Handles {
    plain: Array,
    remote: Array,
    devices: Vec<(Toy, Array, Array)>,
    /// Bytes that staging rings may have. Large reads make few batches: a toy device looks through all that it did before, each time.
    staging: &'static [usize],
    runtime: Arc<tokio::runtime::Runtime>,
}

impl Handles {
    fn new<S: Store + 'static>(any: &Any, store: impl Fn() -> S, toys: &[Toy], runtime: &Arc<tokio::runtime::Runtime>) -> Self {
        let _inside = runtime.enter();
        let plain = any.builder().create(AnyStore::blocking(store()), "/", &options()).unwrap_or_else(|error| panic!("{any:?}: {error}"));
        let remote = || AnyStore::Async(Arc::new(BlockingToAsync::with_handle(store(), runtime.handle().clone())));
        let open = |toy: &Toy| {
            let options = toy.options(prefer);
            let remote = runtime.block_on(Array::open_async(remote(), "/", &options)).unwrap();
            (toy.clone(), plain.with_options(&options).unwrap(), remote)
        };
        let devices = toys.iter().map(open).collect();
        let staging: &[usize] = if any.is_large() { &[300_000, 4 << 20] } else { &[600, 20_000, 4 << 20] };
        let remote = runtime.block_on(Array::open_async(remote(), "/", &options())).unwrap();
        Self { plain, remote, devices, staging, runtime: Arc::clone(runtime) }
    }

    /// A device, and a handle of it.
    fn device(&self, random: &mut Random) -> (&Toy, &Array, DeviceTarget) {
        let (toy, plain, remote) = &self.devices[random.below(self.devices.len() as u64) as usize];
        let target = DeviceTarget::new(toy.device()).unwrap().with_staging(self.staging[random.below(self.staging.len() as u64) as usize]);
        (toy, if random.below(3) == 0 { remote } else { plain }, target)
    }

    /// Reads in one of the ways.
    fn read(&self, wanted: &Selection, shape: &[u64], len: usize, random: &mut Random) -> Result<(String, Vec<u8>), ArrayError> {
        let _inside = self.runtime.enter();
        let bytes = |data: zarr_array::ArrayData| {
            assert_eq!(data.shape, shape);
            data.as_bytes().unwrap().to_vec()
        };
        let host = |tensor: zarr_array::Tensor| {
            assert_eq!(tensor.shape, shape);
            tensor.buffer.host_read().unwrap().get(..len).unwrap().to_vec()
        };
        let wait = &self.runtime;
        let way = random.below(14);
        let of = |name: &str| format!("{name} of {wanted:?}");
        Ok(match way {
            0 => (of("read"), bytes(self.plain.read(wanted)?)),
            1 => {
                let mut output = vec![0xA7; len];
                assert_eq!(self.plain.read_into(wanted, &mut output)?, shape);
                (of("read_into"), output)
            }
            2 => (of("read_async"), bytes(wait.block_on(self.plain.read_async(wanted))?)),
            3 => (of("read_async, async store"), bytes(wait.block_on(self.remote.read_async(wanted))?)),
            4 => (of("read_to_host"), host(self.plain.read_to_host(wanted)?)),
            5 => (of("read_to_host, async store"), host(self.remote.read_to_host(wanted)?)),
            6 | 7 => {
                let array = if way == 6 { &self.plain } else { &self.remote };
                let all: Vec<Vec<u8>> = array.read_each(vec![wanted.clone(); 3]).map(|data| data.map(bytes)).collect::<Result<_, _>>()?;
                assert!(all.iter().all(|data| *data == all[0]), "{wanted:?}");
                (of("read_each"), all[0].clone())
            }
            8 => {
                let set = ReadSet::new().with(&self.plain, Selection::all()).with(&self.plain, wanted.clone());
                (of("a read set"), bytes(set.read()?.remove(1)))
            }
            9 => (of("a plan"), self.read_plan(wanted, random)?),
            10 => {
                let (toy, array, target) = self.device(random);
                let target_buffer = toy.upload(&vec![0xA7; len], &target);
                let tensor = array.enqueue_read_into(wanted, &target_buffer, &target)?.wait()?;
                assert_eq!(tensor.shape, shape);
                (
                    format!("{} into a buffer of {}, {:?}", of("read"), target.device.id(), array.store().name()),
                    toy.download(&tensor, &target),
                )
            }
            11 => {
                let (toy, array, target) = self.device(random);
                let all: Vec<Vec<u8>> = array
                    .read_each_to_device(vec![wanted.clone(); 3], &target)
                    .map(|tensor| tensor.map(|tensor| toy.download(&tensor, &target)))
                    .collect::<Result<_, _>>()?;
                assert!(all.iter().all(|data| *data == all[0]), "{wanted:?}");
                (format!("{} to {}", of("read_each"), target.device.id()), all[0].clone())
            }
            _ => {
                let (toy, array, target) = self.device(random);
                let tensor = array.read_to_device(wanted, &target)?;
                assert_eq!(tensor.shape, shape);
                (format!("{} to {}, {:?}", of("read"), target.device.id(), array.store().name()), toy.download(&tensor, &target))
            }
        })
    }

    /// The public plan, driven by hand.
    fn read_plan(&self, wanted: &Selection, random: &mut Random) -> Result<Vec<u8>, ArrayError> {
        let AnyStore::Blocking(store) = self.plain.store().clone() else { panic!("a blocking store") };
        let mut plan = self.plain.plan(wanted)?;
        let output = plan.output(vec![0xA7; plan.output_len()])?;
        let (mut scratch, mut waiting) = (Scratch::new(), Vec::new());
        while !plan.is_done() {
            waiting.extend(plan.next_requests(3)?);
            let request = waiting.swap_remove(random.below(waiting.len() as u64) as usize);
            let bytes = store.get_ranges(&request.key, &request.ranges)?;
            plan.supply(request.id, bytes)?.into_iter().try_for_each(|job| job.run(&output, &mut scratch))?;
        }
        Ok(output.into_bytes())
    }

    fn write(&self, wanted: &Selection, shape: &[u64], data: &[u8], size: usize, random: &mut Random) -> String {
        let _inside = self.runtime.enter();
        let of = |name: &str| format!("{name} of {wanted:?}");
        let wait = &self.runtime;
        match random.below(8) {
            0 | 1 => self.plain.write(wanted, data).map(|()| of("write")),
            2 => wait.block_on(self.plain.write_async(wanted, data.to_vec())).map(|()| of("write_async")),
            3 => wait.block_on(self.remote.write_async(wanted, data.to_vec())).map(|()| of("write_async, async store")),
            4 => {
                // Each axis backwards, with gaps.
                let mut strides = vec![0isize; shape.len()];
                let mut next = size as isize * 2;
                for (stride, &len) in strides.iter_mut().zip(shape).rev() {
                    *stride = -next;
                    next *= len.max(1) as isize;
                }
                let last: isize = strides.iter().zip(shape).map(|(stride, &len)| -stride * (len as isize - 1).max(0)).sum();
                let layout =
                    Layout { offset: last as usize, shape: shape.iter().map(|&len| len as usize).collect(), strides, item_size: size };
                let mut spread = vec![0x5C; last as usize + size];
                for (at, element) in data.chunks(size).enumerate() {
                    let place = last as usize - at * size * 2;
                    spread[place..place + size].copy_from_slice(element);
                }
                self.plain.write_strided(wanted, &spread, &layout).map(|()| of("write_strided"))
            }
            way => {
                let (toy, array, target) = self.device(random);
                let source = toy.upload(data, &target);
                let written = if way == 5 {
                    wait.block_on(array.write_from_device_async(wanted, &source, &target))
                } else {
                    array.write_from_device(wanted, &source, &target)
                };
                written.map(|()| format!("{} from {}, {:?}", of("write"), target.device.id(), array.store().name()))
            }
        }
        .unwrap_or_else(|error| panic!("{wanted:?}: {error}"))
    }
}

/// Writes and reads an array beside a vector.
fn hold(seed: u64, runtime: &Arc<tokio::runtime::Runtime>) {
    let mut random = Random(seed);
    let toy = |schedule| ToyOptions { schedule, ..ToyOptions::default() };
    let toys = [
        Toy::Opaque(OpaqueDevice::with_options(0, toy(Schedule::Soon))),
        Toy::Opaque(OpaqueDevice::with_options(1, toy(Schedule::Delayed { seed }))),
        Toy::Unified(UnifiedDevice::with_options(2, toy(Schedule::WhenWaitedFor))),
    ];
    let any = Any::new(&mut random);
    let directory = tempfile::tempdir().unwrap();
    let handles = if random.below(2) == 0 {
        let store = MemoryStore::new();
        Handles::new(&any, || store.clone(), &toys, runtime)
    } else {
        Handles::new(&any, || FilesystemStore::new(directory.path()).unwrap(), &toys, runtime)
    };
    let size = any.fill.len();
    let mut model = any.fill.repeat(any.elements());
    let mut done: Vec<String> = Vec::new();
    for turn in 0..if any.is_large() { 3 } else { 8 } {
        let (wanted, places, shape) = if turn == 0 { whole(&any) } else { any.selection(&mut random) };
        let wild = random.below(2) == 0;
        let data: Vec<u8> = match random.below(6) {
            // Chunks may vanish again.
            0 => any.fill.repeat(places.len()),
            _ => (0..places.len() * size).map(|at| if wild { random.next() as u8 } else { (at / 7) as u8 }).collect(),
        };
        for (&at, element) in places.iter().zip(data.chunks(size)) {
            model[at * size..][..size].copy_from_slice(element);
        }
        done.push(handles.write(&wanted, &shape, &data, size, &mut random));
        for turn in 0..if any.is_large() { 4 } else { 6 } {
            let (wanted, places, shape) = if turn == 0 { whole(&any) } else { any.selection(&mut random) };
            let expected: Vec<u8> = places.iter().flat_map(|&at| model[at * size..][..size].iter().copied()).collect();
            let (way, found) =
                handles.read(&wanted, &shape, expected.len(), &mut random).unwrap_or_else(|error| panic!("{wanted:?}: {error}"));
            if found != expected {
                let wrong = found.iter().zip(&expected).position(|(found, expected)| found != expected);
                panic!("{way}, after {done:?}, of {any:?}: {} bytes for {}, the first wrong one at {wrong:?}", found.len(), expected.len());
            }
        }
    }
    damage(&any, &handles, &model, &mut random);
    drop(handles);
    toys.iter().for_each(Toy::assert_clean);
}

/// Cuts stored values short, or makes them longer: a read gives an error or what was written, and never anything else.
fn damage(any: &Any, handles: &Handles, model: &[u8], random: &mut Random) {
    // An index at the end of a shard is then read where there is none, and nothing may tell.
    if any.chain.contains(r#""end""#) || any.shape.contains(&0) {
        return;
    }
    let size = any.fill.len();
    for _ in 0..2 {
        let chunk: Vec<u64> = any.edges.iter().map(|edges| random.below(edges.len() as u64)).collect();
        let Some(stored) = handles.plain.read_encoded_chunk(&chunk).unwrap() else { continue };
        let damaged = match random.below(3) {
            0 => [stored.to_vec(), vec![0x6B; 1 + random.below(9) as usize]].concat(),
            _ => stored[..random.below(stored.len() as u64) as usize].to_vec(),
        };
        let what = format!("{} of {} bytes of chunk {chunk:?}", damaged.len(), stored.len());
        handles.plain.write_encoded_chunk(&chunk, damaged).unwrap();
        for _ in 0..6 {
            let (wanted, places, shape) = any.selection(random);
            let expected: Vec<u8> = places.iter().flat_map(|&at| model[at * size..][..size].iter().copied()).collect();
            if let Ok((way, found)) = handles.read(&wanted, &shape, expected.len(), random) {
                assert!(found == expected, "{way}, with {what}, of {any:?}");
            }
        }
        // What is cut short and then made longer is of the right length again.
        handles.plain.write_encoded_chunk(&chunk, stored).unwrap();
    }
}

fn whole(any: &Any) -> (Selection, Vec<usize>, Vec<u64>) {
    (Selection::all(), (0..any.elements()).collect(), any.shape.clone())
}

/// `ZARR_ANY_ARRAYS=FIRST..LAST` holds others than the ones that are always held.
#[test]
fn any_array_agrees_with_a_vector_in_every_way() {
    let seeds = std::env::var("ZARR_ANY_ARRAYS").ok();
    let seeds = seeds.as_deref().and_then(|seeds| seeds.split_once("..")).map_or(0..120, |(first, last)| {
        let seed = |text: &str| text.parse::<u64>().expect("a number");
        seed(first)..seed(last)
    });
    let runtime = Arc::new(runtime());
    for seed in seeds {
        let held = catch_unwind(AssertUnwindSafe(|| hold(seed, &runtime)));
        assert!(held.is_ok(), "array {seed}");
    }
}

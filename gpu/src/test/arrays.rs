//! Arrays read to a device are the arrays that the CPU reads.

use std::error::Error;
use std::sync::Arc;

use zarr_array::{Array, ArrayBuilder, ArrayError, AxisSelection, DeviceTarget, Options, ReadSet, Selection, Tensor};
use zarr_buffer_api::{Buffer, Layout, Region};
use zarr_codec_api::{ArrayRepresentation, Chain, CodecProvider, DeviceContext, DeviceSlot, Direction, Policy, Segment};
use zarr_meta::{ChunkGrid, DataType, FillValue, GridAxis};
use zarr_store::MemoryStore;
use zarr_store_api::AnyStore;

use super::data::{
    BIG, BZ2, CHECKED, CRC, FAST, GZIP, LITTLE, LZ4, Random, ZLIB, ZSTD, codecs, data_types, elements, options, reference, selection,
    shard, shuffle, transpose,
};
use super::{Subject, Test, TestResult};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

type OnSubject = fn(&Subject) -> TestResult;

const SHAPE: [u64; 3] = [13, 9, 70];

pub(super) fn tests(subject: &Subject) -> Vec<Test> {
    let mut tests = Vec::new();
    for (name, chunks, chain) in layouts() {
        let subject = subject.clone();
        tests.push(Test::new(format!("arrays::layout::{name}"), move || layout(&subject, chunks, &chain)));
    }
    let all: [(&str, OnSubject); 12] = [
        ("data-types", every_data_type),
        ("rectilinear", rectilinear),
        ("missing-chunks", missing_chunks),
        ("dense-chunks", dense_chunks),
        ("bytes-between", bytes_between),
        ("two-queues", two_queues),
        ("async", asynchronous),
        ("read-each", read_each),
        ("read-set", read_set),
        ("policies", policies),
        ("bad-chunk", bad_chunk),
        ("write", write),
    ];
    for (name, test) in all {
        let subject = subject.clone();
        tests.push(Test::new(format!("arrays::{name}"), move || test(&subject)));
    }
    tests
}

/// One array read to several devices at a time, each from a thread of its own; and copied from each to the next.
pub(super) fn several(subjects: &[Subject]) -> TestResult {
    let count = 3_000_000;
    let builder = ArrayBuilder::new([count], DataType::Float32).chunks([count / 37]).codecs(codecs(&format!("[{LITTLE},{ZSTD}]"))?);
    let array = filled(&builder, &reference_options(), 4)?;
    let expected = array.read(&Selection::all())?;
    let expected = expected.as_bytes().ok_or("elements of fixed size")?;
    let read = |subject: &Subject| -> Result<(Tensor, DeviceTarget)> {
        let target = target(subject)?.with_staging(1 << 20);
        Ok((array.with_options(&options(subject))?.read_to_device(&Selection::all(), &target)?, target))
    };
    for _ in 0..3 {
        let tensors = std::thread::scope(|scope| {
            let lanes: Vec<_> = subjects.iter().map(|subject| scope.spawn(|| read(subject))).collect();
            lanes.into_iter().map(|lane| lane.join().unwrap_or_else(|_| Err("a thread panicked".into()))).collect::<Result<Vec<_>>>()
        })?;
        for (from, to) in tensors.iter().zip(tensors.iter().cycle().skip(1)) {
            same(&download(&from.0, &from.1)?, expected, &format!("on {}", from.1.device.id()))?;
            let copy = Tensor { buffer: to.1.device.allocate(from.0.buffer.len(), &*to.1.queue)?, ..from.0.clone() };
            to.1.queue.copy(&from.0.buffer, &copy.buffer)?;
            same(&download(&copy, &to.1)?, expected, &format!("from {} to {}", from.1.device.id(), to.1.device.id()))?;
        }
    }
    Ok(())
}

/// One zstd chunk on the device.
pub(super) fn probe(subject: &Subject) -> TestResult {
    let array = filled(&ArrayBuilder::new([1000], DataType::Int32).chunks([1000]), &reference_options(), 1)?;
    agree(&array, &Selection::all(), subject, &target(subject)?)
}

fn layouts() -> Vec<(&'static str, [u64; 3], String)> {
    let chunks = [4, 5, 30];
    vec![
        ("raw", chunks, LITTLE.to_owned()),
        ("raw-big", chunks, BIG.to_owned()),
        ("crc32c", chunks, format!("{LITTLE},{CRC}")),
        ("zstd", chunks, format!("{LITTLE},{ZSTD}")),
        ("zstd-checksum", chunks, format!("{LITTLE},{CHECKED}")),
        ("zstd-fast", chunks, format!("{LITTLE},{FAST}")),
        ("zstd-crc32c", chunks, format!("{LITTLE},{ZSTD},{CRC}")),
        ("one-chunk", [20, 20, 100], format!("{LITTLE},{ZSTD}")),
        ("rows", [3, 9, 70], format!("{LITTLE},{ZSTD}")),
        ("shuffle", chunks, format!("{LITTLE},{},{ZSTD}", shuffle(4))),
        ("transpose", chunks, format!("{},{LITTLE},{ZSTD}", transpose("[2,0,1]"))),
        ("two-transposes", chunks, format!("{},{},{BIG}", transpose("[2,0,1]"), transpose("[1,0,2]"))),
        ("gzip", chunks, format!("{LITTLE},{GZIP}")),
        ("gzip-around-zstd", chunks, format!("{LITTLE},{ZSTD},{GZIP}")),
        ("zstd-around-gzip", chunks, format!("{LITTLE},{GZIP},{ZSTD}")),
        ("lz4", chunks, format!("{LITTLE},{LZ4}")),
        ("lz4-around-zstd", chunks, format!("{LITTLE},{ZSTD},{LZ4}")),
        ("shard-lz4", [6, 4, 60], shard("[2,2,30]", &format!("{LITTLE},{LZ4}"), "start")),
        ("bz2", chunks, format!("{LITTLE},{BZ2}")),
        ("bz2-around-gzip", chunks, format!("{LITTLE},{GZIP},{BZ2}")),
        ("zstd-around-bz2", chunks, format!("{LITTLE},{BZ2},{ZSTD}")),
        ("shard-zlib", [6, 4, 60], shard("[2,2,30]", &format!("{LITTLE},{ZLIB}"), "end")),
        ("zstd-twice", chunks, format!("{LITTLE},{ZSTD},{ZSTD}")),
        ("shard", [6, 4, 60], shard("[2,2,30]", &format!("{LITTLE},{ZSTD}"), "end")),
        ("shard-raw", [6, 4, 60], shard("[2,2,30]", LITTLE, "start")),
        ("shard-crc32c", [6, 4, 60], shard("[2,2,30]", &format!("{LITTLE},{ZSTD},{CRC}"), "start")),
        ("shard-nested", [8, 8, 80], shard("[4,4,80]", &shard("[2,4,20]", &format!("{LITTLE},{ZSTD}"), "start"), "end")),
        ("shuffle-crc32c", chunks, format!("{},{BIG},{},{CRC}", transpose("[1,2,0]"), shuffle(4))),
        ("shard-shuffle", [6, 4, 60], shard("[2,2,30]", &format!("{BIG},{},{ZSTD},{CRC}", shuffle(4)), "end")),
        (
            "shard-transpose",
            [6, 4, 60],
            format!("{},{}", transpose("[2,0,1]"), shard("[30,2,2]", &format!("{LITTLE},{},{CRC}", shuffle(4)), "end")),
        ),
        ("values", chunks, format!("{},{LITTLE},{ZSTD}", r#"{"name":"scale_offset","configuration":{"offset":-5,"scale":3}}"#)),
        ("shard-compressed", [6, 4, 60], format!("{},{ZSTD}", shard("[2,2,30]", LITTLE, "end"))),
    ]
}

/// Any selection of a layout, through staging rings of several sizes.
fn layout(subject: &Subject, chunks: [u64; 3], chain: &str) -> TestResult {
    let builder = ArrayBuilder::new(SHAPE, DataType::Int32).chunks(chunks).codecs(codecs(&format!("[{chain}]"))?);
    let array = filled(&builder, &reference_options(), 3)?;
    let mut random = Random(11);
    for staging in [2000, 20_000, 64 << 20] {
        let target = target(subject)?.with_staging(staging);
        agree(&array, &Selection::all(), subject, &target)?;
        for _ in 0..if subject.small { 4 } else { 40 } {
            agree(&array, &selection(&mut random, &SHAPE), subject, &target)?;
        }
    }
    Ok(())
}

fn every_data_type(subject: &Subject) -> TestResult {
    let target = target(subject)?;
    for data_type in data_types() {
        for endian in [LITTLE, BIG] {
            let base = ArrayBuilder::new(SHAPE, data_type.clone()).chunks([4, 5, 30]);
            let array = filled(&base.codecs(codecs(&format!("[{endian},{ZSTD}]"))?), &reference_options(), 5)?;
            agree(&array, &Selection::all(), subject, &target)?;
            agree(&array, &Selection::parse("::-2, 1:, 3:60:7", 3)?, subject, &target)?;
        }
    }
    Ok(())
}

fn rectilinear(subject: &Subject) -> TestResult {
    let axes = [GridAxis::edges([5, 1, 7]), GridAxis::runs([(3, 3)]), GridAxis::edges([20, 50])];
    let axes = axes.into_iter().collect::<Option<Vec<_>>>().ok_or("edges of chunks")?;
    let builder = ArrayBuilder::new(SHAPE, DataType::Float64).chunk_grid(ChunkGrid::Rectilinear { axes });
    let array = filled(&builder.codecs(codecs(&format!("[{LITTLE},{ZSTD}]"))?), &reference_options(), 7)?;
    agree(&array, &Selection::all(), subject, &target(subject)?)
}

/// Chunks that are not stored are filled on the device.
fn missing_chunks(subject: &Subject) -> TestResult {
    for inner in [None, Some([2, 5, 10])] {
        let mut builder =
            ArrayBuilder::new([20, 20, 40], DataType::Int16).fill_value(FillValue::from_bytes(12345i16.to_ne_bytes(), &DataType::Int16)?);
        builder = match inner {
            Some(inner) => builder.chunks(inner).shards([10, 10, 20]),
            None => builder.chunks([10, 10, 20]),
        };
        let array = builder.create(AnyStore::blocking(MemoryStore::new()), "/", &reference_options())?;
        agree(&array, &Selection::all(), subject, &target(subject)?)?;
        array.write(&Selection::parse("3:6, 2:13, 5:25", 3)?, &elements(&DataType::Int16, 3 * 11 * 20, 1))?;
        agree(&array, &Selection::all(), subject, &target(subject)?)?;
        agree(&array, &Selection::parse("::3, ::-1, 1", 3)?, subject, &target(subject)?)?;
    }
    Ok(())
}

/// Chunks of a few bytes each, of which thousands fit into a batch that decode to more than the device has temporary memory for.
fn dense_chunks(subject: &Subject) -> TestResult {
    let builder = ArrayBuilder::new([2048, 4096], DataType::Int32).chunks([128, 128]).codecs(codecs(&format!("[{LITTLE},{ZSTD}]"))?);
    let array = builder.create(AnyStore::blocking(MemoryStore::new()), "/", &reference_options())?;
    array.write_elements(&Selection::parse("0:128, 0:128", 2)?, &vec![7i32; 128 * 128])?;
    let one = array.read_encoded_chunk(&[0, 0])?.ok_or("a chunk")?;
    for chunk in 0..16 * 32 {
        array.write_encoded_chunk(&[chunk / 32, chunk % 32], one.clone())?;
    }
    let target = target(subject)?.with_scratch(8 << 20).with_staging(600 << 10);
    // Whole chunks, which are decoded to their places, and parts of them, which are decoded beside.
    for wanted in [Selection::all(), Selection::parse("1:, 5:", 2)?] {
        agree(&array, &wanted, subject, &target)?;
    }
    Ok(())
}

/// Where codecs of others follow, numbers are decoded to memory of bytes.
fn bytes_between(subject: &Subject) -> TestResult {
    let fill_value = FillValue::from_bytes(vec![0; 4], &DataType::Int32)?;
    let representation = ArrayRepresentation { data_type: DataType::Int32, shape: vec![300], fill_value };
    let chain = Chain::bind(&codecs(&format!("[{BIG}]"))?, representation, &reference(), &Policy::default())?;
    let bound =
        CodecProvider::bind(&subject.provider, chain.stages(), Direction::Decode)?.ok_or("numbers of the other order are decoded")?;
    let Segment::Device(segment) = bound.segment else { return Err("a segment on the device".into()) };
    let target = target(subject)?;
    let (encoded, out) = (target.device.allocate(1200, &*target.queue)?, target.device.allocate(1200, &*target.queue)?);
    target.queue.copy(&Buffer::from_vec((0..300i32).flat_map(i32::to_be_bytes).collect()), &encoded)?;
    let slot = DeviceSlot { encoded, decoded: Region::new(out.clone(), Layout::contiguous(&[1200], 1)?)? };
    let context = DeviceContext { device: &*target.device, queue: &*target.queue, scratch_budget: target.scratch };
    segment.decode(&[slot], &context)?.wait()?.into_iter().collect::<std::result::Result<Vec<_>, _>>()?;
    let staging = target.device.allocate_staging(1200)?;
    target.queue.copy(&out, &staging)?;
    staging.wait()?;
    let expected: Vec<u8> = (0..300i32).flat_map(i32::to_ne_bytes).collect();
    same(&staging.host_read()?, &expected, "numbers between two segments")
}

fn two_queues(subject: &Subject) -> TestResult {
    let count = if subject.small { 20_000 } else { 3_000_000 };
    let array = filled(&ArrayBuilder::new([count], DataType::Float32).chunks([count / 37]), &reference_options(), 2)?;
    let array = array.with_options(&options(subject))?;
    let expected = array.read(&Selection::all())?;
    let expected = expected.as_bytes().ok_or("elements of fixed size")?;
    std::thread::scope(|scope| {
        let lanes: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| -> TestResult {
                    let target = target(subject)?.with_staging(1 << 20);
                    for _ in 0..3 {
                        same(&download(&array.read_to_device(&Selection::all(), &target)?, &target)?, expected, "on one of two queues")?;
                    }
                    Ok(())
                })
            })
            .collect();
        lanes.into_iter().try_for_each(|lane| lane.join().map_err(|_| "a thread panicked")?)
    })
}

fn asynchronous(subject: &Subject) -> TestResult {
    let array = filled(&ArrayBuilder::new(SHAPE, DataType::Int32).chunks([2, 3, 10]).shards([4, 9, 20]), &reference_options(), 9)?;
    let expected = array.read(&Selection::all())?;
    let target = target(subject)?.with_staging(4000);
    let array = array.with_options(&options(subject))?;
    let tensor = pollster::block_on(array.read_to_device_async(&Selection::all(), &target))?;
    same(&download(&tensor, &target)?, expected.as_bytes().unwrap_or_default(), "read by an async call")
}

/// One after the other, while a thread enqueues the next ones.
fn read_each(subject: &Subject) -> TestResult {
    let array = filled(&ArrayBuilder::new([40, 9, 70], DataType::Int32).chunks([2, 3, 10]).shards([4, 9, 20]), &reference_options(), 3)?;
    let target = target(subject)?.with_staging(4000);
    let on_device = array.with_options(&options(subject))?;
    let count = if subject.small { 4 } else { 20 };
    for ahead in [1, 2, 6] {
        let mut random = Random(ahead as u64);
        let selections: Vec<Selection> = (0..count).map(|_| selection(&mut random, &[40, 9, 70])).collect();
        let tensors = on_device.read_each_to_device(selections.clone(), &target).with_ahead(ahead);
        for (tensor, selection) in tensors.zip(&selections) {
            same(
                &download(&tensor?, &target)?,
                array.read(selection)?.as_bytes().unwrap_or_default(),
                &format!("{ahead} ahead, {selection:?}"),
            )?;
        }
    }
    Ok(())
}

fn read_set(subject: &Subject) -> TestResult {
    let target = target(subject)?;
    let mut set = ReadSet::new();
    let mut expected = Vec::new();
    for (seed, data_type) in data_types().into_iter().enumerate() {
        let array = filled(&ArrayBuilder::new(SHAPE, data_type).chunks([4, 5, 30]), &options(subject), seed as u64)?;
        let selection = Selection::parse(&format!("{}, :, ::2", seed % 13), 3)?;
        expected.push(array.read(&selection)?);
        set.push(&array, selection);
    }
    for (tensor, expected) in set.read_to_device(&target)?.iter().zip(expected) {
        same(&download(tensor, &target)?, expected.as_bytes().unwrap_or_default(), "in a read set")?;
    }
    Ok(())
}

/// `Require` is an error where the CPU would have to help; `explain` says where the device works.
fn policies(subject: &Subject) -> TestResult {
    let id = subject.device.id();
    let required = options(subject).with_policy(Policy::Require(id));
    let zstd = filled(&ArrayBuilder::new(SHAPE, DataType::Int32).chunks([4, 5, 30]), &reference_options(), 1)?;
    let on_device = zstd.with_options(&required)?;
    if !on_device.explain().contains(&format!("on {id} by {}", CodecProvider::name(&subject.provider))) {
        return Err(format!("explain says nothing of {id}: {}", on_device.explain()).into());
    }
    let builder = ArrayBuilder::new(SHAPE, DataType::Int32).chunks([4, 5, 30]).codecs(codecs(&format!("[{LITTLE},{BZ2}]"))?);
    let bz2 = filled(&builder, &reference_options(), 1)?;
    let target = target(subject)?;
    match bz2.with_options(&required).and_then(|array| array.read_to_device(&Selection::all(), &target)) {
        Ok(_) => Err("bz2 was read, though the device was required".into()),
        Err(_) => agree(&bz2, &Selection::all(), subject, &target),
    }
}

/// A chunk that is damaged is named, and nothing else is wrong.
fn bad_chunk(subject: &Subject) -> TestResult {
    let target = target(subject)?;
    let builder = ArrayBuilder::new([64, 64], DataType::Int32).chunks([8, 8]).codecs(codecs(&format!("[{LITTLE},{CHECKED}]"))?);
    let array = filled(&builder, &options(subject), 1)?;
    let whole = array.read_encoded_chunk(&[3, 5])?.ok_or("a chunk")?;
    let mut random = Random(17);
    for round in 0..if subject.small { 20 } else { 300 } {
        let mut bytes = whole.to_vec();
        match round % 3 {
            0 => bytes.truncate(random.below(whole.len() as u64) as usize),
            1 => (0..1 + random.below(4)).for_each(|_| {
                let at = random.below(bytes.len() as u64) as usize;
                bytes[at] ^= 1 << random.below(8);
            }),
            _ => bytes.iter_mut().for_each(|byte| *byte = random.next() as u8),
        }
        array.write_encoded_chunk(&[3, 5], bytes.clone())?;
        let on_cpu = array.read(&Selection::all());
        match (on_cpu, array.read_to_device(&Selection::all(), &target)) {
            (Ok(expected), Ok(tensor)) => same(&download(&tensor, &target)?, expected.as_bytes().unwrap_or_default(), "damaged, but good")?,
            (Err(_), Err(error)) => named(&error)?,
            (on_cpu, on_device) => {
                return Err(format!("{bytes:02x?}: the CPU says {}, the device {}", verdict(&on_cpu), verdict(&on_device)).into());
            }
        }
        let rest = Selection::parse("32:, :", 2)?;
        agree(&array, &rest, subject, &target)?;
    }
    Ok(())
}

fn verdict<T>(result: &std::result::Result<T, ArrayError>) -> String {
    result.as_ref().err().map_or_else(|| "good".to_owned(), ToString::to_string)
}

/// Whether an error says which chunk it is about.
fn named(error: &ArrayError) -> TestResult {
    let text = error.to_string();
    if text.contains("3, 5") || text.contains("3/5") { Ok(()) } else { Err(format!("no chunk is named: {text}").into()) }
}

/// What is stored is what the CPU stores, whoever encodes; by a compressor of the device, what holds the same.
fn write(subject: &Subject) -> TestResult {
    let target = target(subject)?.with_staging(5000);
    let mut chains = layouts();
    let values = r#"{"name":"cast_value","configuration":{"data_type":"int16","out_of_range":"clamp"}}"#;
    let turned = transpose("[2,0,1]");
    chains.push(("cast", [4, 5, 30], format!("{values},{turned},{BIG},{},{BZ2}", shuffle(2))));
    chains.push(("shard-cast", [6, 4, 60], shard("[2,2,30]", &format!("{values},{LITTLE},{},{GZIP}", shuffle(2)), "end")));
    for (name, chunks, chain) in chains {
        let builder = ArrayBuilder::new(SHAPE, DataType::Int32).chunks(chunks).codecs(codecs(&format!("[{chain}]"))?);
        let array = builder.create(AnyStore::blocking(MemoryStore::new()), "/", &options(subject))?;
        let on_cpu = builder.create(AnyStore::blocking(MemoryStore::new()), "/", &reference_options())?;
        let mut data = elements(&DataType::Int32, SHAPE.iter().product::<u64>() as usize, 21);
        // Some chunks hold nothing but the fill value.
        data[..4 * 5 * 70 * 9].fill(0);
        let divided = ["raw-big", "shuffle-crc32c", "cast", "shard-cast"].contains(&name);
        let compressed = ["zstd", "zstd-fast", "zstd-crc32c", "shuffle", "shard", "shard-shuffle", "transpose", "values"].contains(&name);
        let there = if compressed { "zstd there by" } else { "writing from" };
        if (divided || compressed) && !array.explain().contains(there) {
            return Err(format!("{name}: the device does not encode it: {}", array.explain()).into());
        }
        let holds_zstd = chain.contains("\"zstd\"");
        let rows = [4, 5, 6, 7, 0, 1, 2, 3, 12, 8, 9, 10, 11];
        let listed = Selection::axes([AxisSelection::List(rows.to_vec()), (..).into(), (..).into()]);
        for selection in
            [Selection::all(), listed, Selection::parse("::-1, :, :", 3)?, Selection::parse("1:13, 2, 3:65:2", 3)?, Selection::all()]
        {
            let part = on_cpu.read(&selection)?.as_bytes().map_or(0, <[u8]>::len);
            let source = subject.device.allocate(part, &*target.queue)?;
            target.queue.copy(&Buffer::from_vec(data[..part].to_vec()), &source)?;
            array.write_from_device(&selection, &source, &target)?;
            on_cpu.write(&selection, &data[..part])?;
            for chunk in grid(chunks) {
                let (found, expected) = (array.read_encoded_chunk(&chunk)?, on_cpu.read_encoded_chunk(&chunk)?);
                if found.is_some() != expected.is_some() {
                    return Err(format!(
                        "{name}, {selection:?}: chunk {chunk:?} is there: {}, on the CPU: {}",
                        found.is_some(),
                        expected.is_some()
                    )
                    .into());
                }
                if !holds_zstd {
                    same(&found.unwrap_or_default(), &expected.unwrap_or_default(), &format!("{name}, {selection:?}, chunk {chunk:?}"))?;
                }
            }
            let (found, expected) = (array.read(&Selection::all())?, on_cpu.read(&Selection::all())?);
            let bytes = |data: &zarr_array::ArrayData| data.as_bytes().unwrap_or_default().to_vec();
            same(&bytes(&found), &bytes(&expected), &format!("{name}, after a write of {selection:?}"))?;
            data.rotate_left(4);
        }
    }
    Ok(())
}

/// All chunks of the grid.
fn grid(chunks: [u64; 3]) -> Vec<[u64; 3]> {
    let [planes, rows, columns] = [0, 1, 2].map(|axis| SHAPE[axis].div_ceil(chunks[axis]));
    (0..planes * rows * columns).map(|index| [index / columns / rows, index / columns % rows, index % columns]).collect()
}

pub(super) fn target(subject: &Subject) -> Result<DeviceTarget> {
    Ok(DeviceTarget::new(Arc::clone(&subject.device))?)
}

pub(super) fn reference_options() -> Options {
    Options::new(reference())
}

/// An array in memory, full of elements.
fn filled(builder: &ArrayBuilder, options: &Options, seed: u64) -> Result<Array> {
    let array = builder.create(AnyStore::blocking(MemoryStore::new()), "/", options)?;
    let count = array.shape().iter().product::<u64>() as usize;
    array.write(&Selection::all(), &elements(array.data_type(), count, seed))?;
    Ok(array)
}

/// Whether a selection, read to the device, is what the CPU reads.
pub(super) fn agree(array: &Array, selection: &Selection, subject: &Subject, target: &DeviceTarget) -> TestResult {
    let on_cpu = array.with_options(&reference_options())?.read(selection)?;
    let tensor = array.with_options(&options(subject))?.read_to_device(selection, target)?;
    if tensor.shape != on_cpu.shape {
        return Err(format!("{selection:?}: shape {:?} and not {:?}", tensor.shape, on_cpu.shape).into());
    }
    same(&download(&tensor, target)?, on_cpu.as_bytes().unwrap_or_default(), &format!("{}, {selection:?}", array.data_type()))
}

pub(super) fn same(found: &[u8], expected: &[u8], what: &str) -> TestResult {
    if found.len() != expected.len() {
        return Err(format!("{what}: {} bytes and not {}", found.len(), expected.len()).into());
    }
    match found.iter().zip(expected).position(|(found, expected)| found != expected) {
        None => Ok(()),
        Some(at) => Err(format!("{what}: byte {at} of {} is {} and not {}", found.len(), found[at], expected[at]).into()),
    }
}

pub(super) fn download(tensor: &Tensor, target: &DeviceTarget) -> Result<Vec<u8>> {
    let staging = target.device.allocate_staging(tensor.buffer.len())?;
    target.queue.copy(&tensor.buffer, &staging)?;
    staging.wait()?;
    Ok(staging.host_read()?.to_vec())
}

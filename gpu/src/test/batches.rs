//! Batches of one chunk to ten thousand, of every codec and data type: encoded by the CPU, decoded on the device.

use std::sync::Arc;

use zarr_array::{ArrayBuilder, DeviceTarget, Selection};
use zarr_buffer_api::Queue;
use zarr_codec_api::CodecProvider as _;
use zarr_codec_api::Direction;
use zarr_meta::DataType;
use zarr_store::MemoryStore;
use zarr_store_api::AnyStore;

use super::arrays::{download, reference_options, same};
use super::data::{LITTLE, Random, ZSTD, chains, codecs, data_types, options, shuffle, stands_for_its_size};
use super::values::{Case, NUMBERS, codec, is_float};
use super::{Subject, Test, TestResult};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

const CHUNK: [u64; 3] = [2, 8, 11];

/// Two of each: for every data type and chain, of chunks that lie anywhere in memory, and of an array with chunks over its edges, in shards too.
pub(super) fn tests(subject: &Subject) -> Vec<Test> {
    let mut tests = Vec::new();
    for data_type in data_types() {
        if subject.small && !stands_for_its_size(&data_type) {
            continue;
        }
        for (name, chain) in chains(&data_type).into_iter().chain(number_chains(&data_type)) {
            let name = format!("{name}::{}", data_type.name());
            let chain = format!("[{chain}]");
            match takes_all(subject, &chain, &data_type) {
                Ok(true) => {}
                Ok(false) => {
                    tests.push(Test::ignored(format!("batches::{name} (the CPU does part of it)")));
                    continue;
                }
                Err(error) => {
                    tests.push(Test::new(format!("batches::{name}"), move || Err(error)));
                    continue;
                }
            }
            for (kind, test) in [("chunks", of_chunks as fn(&Subject, &str, &DataType) -> TestResult), ("array", of_an_array)] {
                let (subject, chain, data_type) = (subject.clone(), chain.clone(), data_type.clone());
                tests.push(Test::new(format!("batches::{kind}::{name}"), move || test(&subject, &chain, &data_type)));
            }
        }
    }
    tests
}

/// Chains with codecs that change values, for the types that these are for.
fn number_chains(data_type: &DataType) -> Vec<(&'static str, String)> {
    use DataType::{Complex64, Complex128, UInt8, UInt16, UInt32, UInt64};
    let number = NUMBERS.iter().position(|(of, ..)| of == data_type);
    let (is_number, is_float) = (number.is_some(), number.is_some_and(is_float));
    // Empty for those that numpy does not have.
    let numpy = number.map_or("", |index| NUMBERS[index].2);
    let mut chains = Vec::new();
    if is_float || matches!(data_type, Complex64 | Complex128) {
        chains.push(("bitround", format!("{},{LITTLE},{ZSTD}", codec("bitround", r#""keepbits":5"#))));
    }
    if is_number {
        // Zero, which fills chunks at the edges, stays in the range of types without a sign.
        let offset = if matches!(data_type, UInt8 | UInt16 | UInt32 | UInt64) { 0 } else { 2 };
        chains.push(("scale_offset", format!("{},{LITTLE},{ZSTD}", codec("scale_offset", &format!(r#""offset":{offset},"scale":2"#)))));
        let cast = codec("cast_value", r#""data_type":"float64","rounding":"nearest-even""#);
        chains.push(("cast_value", format!("{cast},{LITTLE},{}", shuffle(8))));
    }
    if !numpy.is_empty() {
        let fixed = format!(r#""offset":3,"scale":10,"dtype":"{numpy}","astype":"<i2""#);
        chains.push(("fixedscaleoffset", format!("{},{LITTLE},{ZSTD}", codec("numcodecs.fixedscaleoffset", &fixed))));
        let wide = format!(r#""encode_dtype":"<f4","decode_dtype":"{numpy}""#);
        chains.push(("astype", format!("{},{LITTLE},{}", codec("numcodecs.astype", &wide), shuffle(4))));
    }
    if is_float && !numpy.is_empty() {
        let digits = format!(r#""digits":1,"dtype":"{numpy}","astype":"{numpy}""#);
        chains.push(("quantize", format!("{},{LITTLE},{ZSTD}", codec("numcodecs.quantize", &digits))));
    }
    chains
}

fn takes_all(subject: &Subject, chain: &str, data_type: &DataType) -> Result<bool> {
    let stages = Case::chain(chain, data_type, &CHUNK)?;
    Ok(subject.provider.bind(stages.stages(), Direction::Decode)?.is_some_and(|bound| bound.consumed == stages.stages().len()))
}

fn sizes(subject: &Subject) -> &'static [u64] {
    if subject.small { &[1, 2, 33] } else { &[1, 2, 31, 32, 33, 1000, 10_000] }
}

/// Runs `work` on a queue of its own, on the device's default one where there is such a thing, and on two at once.
fn on_queues(subject: &Subject, work: impl Fn(&Arc<dyn Queue>) -> TestResult + Sync) -> TestResult {
    work(&subject.device.create_queue()?)?;
    if let Some(queue) = &subject.default_queue {
        work(queue).map_err(|error| format!("on the default queue: {error}"))?;
    }
    std::thread::scope(|scope| {
        let lanes: Vec<_> = (0..2).map(|_| scope.spawn(|| work(&subject.device.create_queue()?))).collect();
        lanes.into_iter().try_for_each(|lane| lane.join().map_err(|_| "a thread panicked")?)
    })
    .map_err(|error| format!("on one of two queues: {error}").into())
}

/// Chunks with three bytes between them, so that they start at any alignment, to places with as many between them.
fn of_chunks(subject: &Subject, chain: &str, data_type: &DataType) -> TestResult {
    /// So many differ.
    const KINDS: u64 = 1000;
    let case = Case::new(subject, chain, data_type, &CHUNK)?;
    let len = CHUNK.iter().product::<u64>();
    let kinds = sizes(subject).iter().max().map_or(1, |&most| most.min(KINDS));
    let decoded: Vec<_> = (0..kinds).map(|chunk| elements(data_type, chunk * len, len)).collect();
    let encoded = case.encoded(&decoded).into_iter().collect::<Option<Vec<_>>>().ok_or("the CPU refuses to encode")?;
    let expected = case.decoded(&encoded);
    for &count in sizes(subject) {
        let all = |kinds: usize| (0..count as usize).map(move |chunk| chunk % kinds);
        let encoded: Vec<_> = all(encoded.len()).map(|chunk| encoded[chunk].clone()).collect();
        let expected: Vec<_> = all(expected.len()).map(|chunk| expected[chunk].clone()).collect();
        on_queues(subject, |queue| case.decode_on(&**queue, &encoded, &expected))
            .map_err(|error| format!("a batch of {count}: {error}"))?;
    }
    Ok(())
}

/// Chunks of an array that ends within them on every axis; and as inner chunks of three shards.
fn of_an_array(subject: &Subject, chain: &str, data_type: &DataType) -> TestResult {
    for &count in sizes(subject) {
        let (planes, rows) = if count % 2 == 0 { (count / 2, 2) } else { (count, 1) };
        let shape = [planes * CHUNK[0] - 1, rows * CHUNK[1] - 3, CHUNK[2] - 1];
        let builder = ArrayBuilder::new(shape, data_type.clone()).chunks(CHUNK).codecs(codecs(chain)?);
        let sharded = builder.clone().shards([planes.div_ceil(3) * CHUNK[0], rows * CHUNK[1], CHUNK[2]]);
        for (kind, builder) in [("chunks", builder), ("inner chunks", sharded)] {
            let array = builder.create(AnyStore::blocking(MemoryStore::new()), "/", &reference_options())?;
            array.write(&Selection::all(), &elements(data_type, 0, shape.iter().product()))?;
            let expected = array.read(&Selection::all())?;
            let expected = expected.as_bytes().ok_or("elements of fixed size")?;
            let array = array.with_options(&options(subject))?;
            let read = |queue: &Arc<dyn Queue>| -> TestResult {
                let target = DeviceTarget::new(Arc::clone(&subject.device))?.with_queue(Arc::clone(queue));
                same(&download(&array.read_to_device(&Selection::all(), &target)?, &target)?, expected, "read to the device")
            };
            on_queues(subject, read).map_err(|error| format!("{count} {kind}: {error}"))?;
        }
    }
    Ok(())
}

/// Elements from `first` on, from 1 to 60, which every codec of numbers takes, of every type: smooth, with some noise and some runs.
fn elements(data_type: &DataType, first: u64, count: u64) -> Vec<u8> {
    let mut out = Vec::new();
    for index in first..first + count {
        let noise = Random(index).below(6) as f64;
        let value = if index % 1000 < 300 { 17.0 } else { ((index as f64 * 0.01).sin() * 27.0 + 28.0 + noise).round() };
        match data_type {
            DataType::Bool => out.push(u8::from(value > 30.0)),
            // Exact in any of these.
            DataType::Float16 => out.extend(half::f16::from_f64(value).to_ne_bytes()),
            DataType::BFloat16 => out.extend(half::bf16::from_f64(value).to_ne_bytes()),
            DataType::Float32 => out.extend((value as f32 / 8.0).to_ne_bytes()),
            DataType::Float64 => out.extend((value / 8.0).to_ne_bytes()),
            DataType::Complex64 => [value, -value].iter().for_each(|part| out.extend((*part as f32).to_ne_bytes())),
            DataType::Complex128 => [value, -value].iter().for_each(|part| out.extend(part.to_ne_bytes())),
            other => out.extend(&(value as u128).to_le_bytes()[..other.fixed_size().unwrap_or(1)]),
        }
    }
    out
}

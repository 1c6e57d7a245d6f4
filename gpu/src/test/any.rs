//! Arrays at random: shapes, chunks and chains that no list has, read and written as the CPU does.

use std::error::Error;

use zarr_array::{Array, ArrayBuilder, Selection};
use zarr_buffer_api::Buffer;
use zarr_meta::FillValue;
use zarr_store::MemoryStore;
use zarr_store_api::AnyStore;

use super::arrays::{agree, reference_options, same, target};
use super::data::{
    BIG, BZ2, CHECKED, CRC, FAST, GZIP, LITTLE, LZ4, Random, ZLIB, ZSTD, blosc, codecs, data_types, elements, options, selection, shuffle,
    transpose,
};
use super::{Subject, Test, TestResult};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

pub(super) fn tests(subject: &Subject) -> Vec<Test> {
    const PARTS: u64 = 6;
    let each = if subject.small { 10 } else { 250 };
    let part = |part| {
        let subject = subject.clone();
        let hold = move |seed| array(&subject, seed).map_err(|error| format!("array {seed}: {error}").into());
        Test::new(format!("arrays::any::{part}"), move || (part * each..(part + 1) * each).try_for_each(hold))
    };
    (0..PARTS).map(part).collect()
}

fn array(subject: &Subject, seed: u64) -> TestResult {
    let mut random = Random(seed);
    let types = data_types();
    let data_type = &types[random.below(types.len() as u64) as usize];
    let shape: Vec<u64> = (0..random.below(5)).map(|_| 1 + random.below(12)).collect();
    // Chunks of one element along some axes, of all, or of more than there are.
    let chunks: Vec<u64> = shape.iter().map(|&len| [1, len, len + 3, 1 + random.below(len)][random.below(4) as usize]).collect();
    let chain = chain(&mut random, &chunks, data_type.fixed_size().unwrap_or(1), 2);
    let count = shape.iter().product::<u64>() as usize;
    let fill = elements(data_type, 301, seed).split_off(300 * data_type.fixed_size().unwrap_or(1));
    let builder = ArrayBuilder::new(shape.clone(), data_type.clone()).chunks(chunks.clone()).codecs(codecs(&chain)?);
    let builder = builder.fill_value(FillValue::from_bytes(fill, data_type)?);
    let create = || -> Result<Array> { Ok(builder.create(AnyStore::blocking(MemoryStore::new()), "/", &reference_options())?) };
    let (array, on_cpu) = (create()?, create()?);
    let target = target(subject)?.with_staging([600, 20_000, 4 << 20][random.below(3) as usize]);
    let what = format!("{shape:?} in {chunks:?} by {chain}");
    for turn in 0..3 {
        let wanted = if turn == 0 || shape.is_empty() { Selection::all() } else { selection(&mut random, &shape) };
        let len = on_cpu.read(&wanted)?.byte_len();
        let mut data = elements(data_type, count.max(len), seed ^ turn);
        data.truncate(len);
        let source = target.device.allocate(len, &*target.queue)?;
        target.queue.copy(&Buffer::from_vec(data.clone()), &source)?;
        let written = array.with_options(&options(subject))?.write_from_device(&wanted, &source, &target);
        written.map_err(|error| format!("{what}, a write of {wanted:?}: {error}"))?;
        on_cpu.write(&wanted, &data)?;
        let (found, expected) = (array.read(&Selection::all())?, on_cpu.read(&Selection::all())?);
        let bytes = |data: &zarr_array::ArrayData| data.as_bytes().unwrap_or_default().to_vec();
        same(&bytes(&found), &bytes(&expected), &format!("{what}, after a write of {wanted:?}"))?;
        for turn in 0..4 {
            let wanted = if turn == 0 || shape.is_empty() { Selection::all() } else { selection(&mut random, &shape) };
            agree(&array, &wanted, subject, &target).map_err(|error| format!("{what}: {error}"))?;
        }
    }
    Ok(())
}

/// A chain for chunks of a shape, of codecs that the device has and of one that it has not, with shards of shards up to a depth.
fn chain(random: &mut Random, shape: &[u64], size: usize, depth: u64) -> String {
    let mut shape = shape.to_vec();
    let mut chain = Vec::new();
    for _ in 0..random.below(3) {
        let mut order: Vec<usize> = (0..shape.len()).collect();
        (1..order.len()).rev().for_each(|at| order.swap(at, random.below(at as u64 + 1) as usize));
        shape = order.iter().filter_map(|&axis| shape.get(axis).copied()).collect();
        chain.push(transpose(&format!("{order:?}")));
    }
    let bytes = [LITTLE, BIG][random.below(2) as usize];
    if depth > 0 && random.below(2) == 0 {
        let part = |&len: &u64| {
            let parts: Vec<u64> = (1..=len.min(4)).filter(|&parts| len.is_multiple_of(parts)).collect();
            len / parts[random.below(parts.len() as u64) as usize]
        };
        let inner: Vec<u64> = shape.iter().map(part).collect();
        let location = ["start", "end"][random.below(2) as usize];
        let codecs = self::chain(random, &inner, size, depth - 1);
        chain.push(format!(
            r#"{{"name":"sharding_indexed","configuration":{{"chunk_shape":{inner:?},"codecs":{codecs},"index_codecs":[{bytes},{CRC}],"index_location":"{location}"}}}}"#
        ));
    } else {
        chain.push(bytes.to_owned());
        if random.below(3) == 0 {
            chain.push(shuffle(size));
        }
    }
    let cname = ["lz4", "lz4hc", "zstd", "zlib"][random.below(4) as usize];
    let blosc = blosc(
        cname,
        ["noshuffle", "shuffle", "bitshuffle"][random.below(3) as usize],
        size,
        [0, random.below(600) as usize][random.below(2) as usize],
    );
    let compressors: [&[&str]; 16] = [
        &[],
        &[],
        &[ZSTD],
        &[CHECKED],
        &[FAST, CRC],
        &[CRC],
        &[BZ2],
        &[BZ2, ZSTD],
        &[&blosc],
        &[&blosc, CRC],
        &[GZIP],
        &[GZIP, ZSTD],
        &[ZLIB],
        &[ZLIB, CRC],
        &[LZ4],
        &[LZ4, CRC],
    ];
    chain.extend(compressors[random.below(16) as usize].iter().map(|&codec| codec.to_owned()));
    format!("[{}]", chain.join(","))
}

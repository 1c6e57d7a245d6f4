//! Decoding and encoding one chunk of 1 MiB of float32, through the codec chain: no store, no array. Bytes are decoded bytes.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use zarr::DataType;
use zarr::FillValue;
use zarr::codec_api::{ArrayRepresentation, Chain, Policy, Scratch, Source, Target};
use zarr::meta::{Extension, Json};

const SHAPE: [u64; 2] = [512, 512];

fn chains() -> Vec<(&'static str, Vec<Extension>)> {
    let codec = |text: &str| {
        let json: Json = Json::parse(text.as_bytes()).expect("valid JSON");
        Extension::parse(&json).expect("a codec")
    };
    let bytes = codec(r#"{"name": "bytes", "configuration": {"endian": "little"}}"#);
    let blosc = |cname: &str, shuffle: &str| {
        let level = if cname == "lz4" { 5 } else { 3 };
        codec(&format!(
            r#"{{"name": "blosc", "configuration": {{"cname": "{cname}", "clevel": {level}, "shuffle": "{shuffle}", "typesize": 4, "blocksize": 0}}}}"#
        ))
    };
    vec![
        ("bytes", vec![bytes.clone()]),
        ("bytes-big", vec![codec(r#"{"name": "bytes", "configuration": {"endian": "big"}}"#)]),
        ("transpose", vec![codec(r#"{"name": "transpose", "configuration": {"order": [1, 0]}}"#), bytes.clone()]),
        ("zstd-3", vec![bytes.clone(), codec(r#"{"name": "zstd", "configuration": {"level": 3, "checksum": false}}"#)]),
        ("gzip-5", vec![bytes.clone(), codec(r#"{"name": "gzip", "configuration": {"level": 5}}"#)]),
        ("lz4", vec![bytes.clone(), codec(r#"{"name": "numcodecs.lz4", "configuration": {"acceleration": 1}}"#)]),
        ("blosc-lz4-shuffle", vec![bytes.clone(), blosc("lz4", "shuffle")]),
        ("blosc-lz4-bitshuffle", vec![bytes.clone(), blosc("lz4", "bitshuffle")]),
        ("blosc-zstd-shuffle", vec![bytes.clone(), blosc("zstd", "shuffle")]),
        ("crc32c", vec![bytes, codec(r#"{"name": "crc32c"}"#)]),
    ]
}

fn codecs(criterion: &mut Criterion) {
    let registry = zarr::registry();
    let data = zarr_benches::field(SHAPE.iter().product::<u64>() as usize);
    for (name, codecs) in chains() {
        let representation =
            ArrayRepresentation { data_type: DataType::Float32, shape: SHAPE.to_vec(), fill_value: FillValue::Fixed(Box::new([0; 4])) };
        let chain = Chain::bind(&codecs, representation, &registry, &Policy::Host).expect("a chain that binds");
        let mut scratch = Scratch::new();
        let mut encoded = Vec::new();
        chain.encode(Source::Bytes(&data), &mut encoded, &mut scratch).expect("encodes");
        let mut decoded = vec![1; data.len()];

        let mut group = criterion.benchmark_group(name);
        group.throughput(Throughput::Bytes(data.len() as u64));
        group.bench_function("decode", |bencher| {
            bencher.iter(|| chain.decode(black_box(&encoded), Target::Exact(&mut decoded), &mut scratch).expect("decodes"));
        });
        group.bench_function("encode", |bencher| {
            let mut output = Vec::new();
            bencher.iter(|| {
                output.clear();
                chain.encode(Source::Bytes(black_box(&data)), &mut output, &mut scratch).expect("encodes");
            });
        });
        group.finish();
        assert_eq!(decoded, data);
    }
}

fn settings() -> Criterion {
    let short = std::time::Duration::from_millis(800);
    Criterion::default().sample_size(20).warm_up_time(short / 4).measurement_time(short).without_plots()
}

criterion_group! { name = all; config = settings(); targets = codecs }
criterion_main!(all);

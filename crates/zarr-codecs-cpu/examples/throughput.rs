//! What each codec costs on this machine: encodes and decodes one chunk of weather-like `float32`, and prints ratio and speed.
//!
//! ```sh
//! cargo run --release -p zarr-codecs-cpu --example throughput            # a list of usual configurations
//! cargo run --release -p zarr-codecs-cpu --example throughput -- '{"name": "zstd", "configuration": {"level": 9}}'
//! ```
//!
//! Speeds are decoded bytes per second of one thread, best of several rounds, for a chunk of 4 MiB.

use std::time::{Duration, Instant};

use zarr_codec_api::{ArrayRepresentation, CodecError, HostProvider, Representation, SimpleCodec};
use zarr_meta::{DataType, Extension, FillValue, Json};

const CHUNK: usize = 4 << 20;

const USUAL: &[&str] = &[
    r#"{"name": "bytes", "configuration": {"endian": "little"}}"#,
    r#"{"name": "bytes", "configuration": {"endian": "big"}}"#,
    r#"{"name": "transpose", "configuration": {"order": [2, 1, 0]}}"#,
    r#"{"name": "transpose", "configuration": {"order": [1, 0, 2]}}"#,
    r#"{"name": "transpose", "configuration": {"order": [0, 2, 1]}}"#,
    r#"{"name": "zstd", "configuration": {"level": 1}}"#,
    r#"{"name": "zstd", "configuration": {"level": 3, "checksum": true}}"#,
    r#"{"name": "gzip", "configuration": {"level": 5}}"#,
    r#"{"name": "blosc", "configuration": {"cname": "lz4", "clevel": 5, "shuffle": "shuffle", "typesize": 4, "blocksize": 0}}"#,
    r#"{"name": "blosc", "configuration": {"cname": "lz4", "clevel": 5, "shuffle": "bitshuffle", "typesize": 4, "blocksize": 0}}"#,
    r#"{"name": "blosc", "configuration": {"cname": "zstd", "clevel": 5, "shuffle": "shuffle", "typesize": 4, "blocksize": 0}}"#,
    r#"{"name": "blosc", "configuration": {"cname": "zstd", "clevel": 1, "shuffle": "bitshuffle", "typesize": 4, "blocksize": 0}}"#,
    r#"{"name": "blosc", "configuration": {"cname": "blosclz", "clevel": 5, "shuffle": "shuffle", "typesize": 4, "blocksize": 0}}"#,
    r#"{"name": "blosc", "configuration": {"cname": "snappy", "clevel": 5, "shuffle": "shuffle", "typesize": 4, "blocksize": 0}}"#,
    r#"{"name": "blosc", "configuration": {"cname": "zlib", "clevel": 5, "shuffle": "shuffle", "typesize": 4, "blocksize": 0}}"#,
    r#"{"name": "numcodecs.lz4", "configuration": {"acceleration": 1}}"#,
    r#"{"name": "numcodecs.zlib", "configuration": {"level": 1}}"#,
    r#"{"name": "numcodecs.bz2", "configuration": {"level": 1}}"#,
    r#"{"name": "numcodecs.lzma", "configuration": {"preset": 1}}"#,
    r#"{"name": "numcodecs.shuffle", "configuration": {"elementsize": 4}}"#,
    r#"{"name": "crc32c"}"#,
    r#"{"name": "numcodecs.crc32", "configuration": {}}"#,
    r#"{"name": "numcodecs.adler32", "configuration": {}}"#,
    r#"{"name": "numcodecs.fletcher32", "configuration": {}}"#,
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let provider = zarr_codecs_cpu::provider();
    let given: Vec<String> = std::env::args().skip(1).collect();
    let wanted: Vec<&str> = if given.is_empty() { USUAL.to_vec() } else { given.iter().map(String::as_str).collect() };
    let chunk = weather();
    println!("{:>7} {:>12} {:>12}  codec", "ratio", "encode MB/s", "decode MB/s");
    for text in wanted {
        measure(&provider, &Extension::parse(&Json::parse(text.as_bytes())?)?, &chunk)?;
    }
    Ok(())
}

fn measure(provider: &HostProvider, extension: &Extension, chunk: &[u8]) -> Result<(), Box<dyn std::error::Error>> {
    let data_type = DataType::Float32;
    let array = ArrayRepresentation { fill_value: FillValue::default_for(&data_type), data_type, shape: vec![64, 128, 128] };
    let Some(codec) = provider.codec(extension, &Representation::Array(array.clone()))? else {
        return Err(format!("{} was not compiled in", extension.name).into());
    };
    let (mut encoded, mut decoded) = (Vec::new(), vec![0; chunk.len()]);
    let (encode, decode) = match codec {
        SimpleCodec::BytesToBytes(codec) => (
            best(|| {
                encoded.clear();
                codec.encode(chunk, &mut encoded)
            })?,
            best(|| codec.decode(&encoded, &mut decoded))?,
        ),
        SimpleCodec::ArrayToBytes(codec) => (
            best(|| {
                encoded.clear();
                codec.encode(&array, chunk, &mut encoded)
            })?,
            best(|| codec.decode(&array, &encoded, &mut decoded))?,
        ),
        SimpleCodec::ArrayToArray(codec) => {
            encoded.resize(codec.encoded_representation(&array)?.fixed_len(&extension.name)?, 0);
            (best(|| codec.encode(&array, chunk, &mut encoded))?, best(|| codec.decode(&array, &encoded, &mut decoded))?)
        }
        _ => return Err(format!("{} is of a kind that this example does not know", extension.name).into()),
    };
    let speed = |time: Duration| chunk.len() as f64 / time.as_secs_f64() / 1e6;
    let ratio = chunk.len() as f64 / encoded.len() as f64;
    let lossy = if decoded == chunk { "" } else { " (lossy)" };
    println!("{ratio:>7.2} {:>12.0} {:>12.0}  {}{lossy}", speed(encode), speed(decode), extension.to_json());
    Ok(())
}

/// The shortest time of at least five rounds and half a second.
fn best(mut work: impl FnMut() -> Result<(), CodecError>) -> Result<Duration, CodecError> {
    let (start, mut best, mut rounds) = (Instant::now(), Duration::MAX, 0);
    while rounds < 5 || start.elapsed() < Duration::from_millis(500) {
        let round = Instant::now();
        work()?;
        best = best.min(round.elapsed());
        rounds += 1;
    }
    Ok(best)
}

/// Temperatures in kelvin over a grid: smooth, with some noise in the lower bits.
fn weather() -> Vec<u8> {
    let mut state = 1u32;
    let values = (0..CHUNK / 4).map(|index| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let (row, column) = ((index / 1024) as f32, (index % 1024) as f32);
        280.0 + 15.0 * (row / 170.0).sin() * (column / 90.0).cos() + (state >> 24) as f32 / 512.0
    });
    values.flat_map(f32::to_le_bytes).collect()
}

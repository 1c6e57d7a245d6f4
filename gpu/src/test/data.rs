//! Codec chains, and what is stored with them.

use std::error::Error;

use zarr_array::{AxisSelection, Options, Selection};
use zarr_codec_api::{Policy, Registry};
use zarr_meta::{DataType, Extension, Json};

use super::Subject;

/// A generator that needs no crate: splitmix64.
#[derive(Debug, Clone)]
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }
}

/// The data types whose elements have a fixed size of whole bytes.
pub(super) fn data_types() -> Vec<DataType> {
    use DataType::*;
    vec![
        Bool,
        Int8,
        Int16,
        Int32,
        Int64,
        UInt8,
        UInt16,
        UInt32,
        UInt64,
        Float16,
        BFloat16,
        Float32,
        Float64,
        Complex64,
        Complex128,
        Raw { bits: 24 },
    ]
}

/// `count` elements, in the byte order of the machine: smooth, with some noise, so that codecs find matches, literals and runs.
pub(super) fn elements(data_type: &DataType, count: usize, seed: u64) -> Vec<u8> {
    let mut random = Random(seed);
    let mut out = Vec::new();
    for index in 0..count {
        let (wave, noise) = ((index as f64 * 0.01).sin(), random.below(8) as f64);
        let value = if index % 1000 < 300 { 17.0 } else { (wave * 40.0 + noise).round() };
        match data_type {
            DataType::Bool => out.push(u8::from(value > 0.0)),
            DataType::Float32 => out.extend((value as f32 / 8.0).to_ne_bytes()),
            DataType::Float64 => out.extend((value / 8.0).to_ne_bytes()),
            DataType::Complex64 => [value, -value].iter().for_each(|part| out.extend((*part as f32).to_ne_bytes())),
            DataType::Complex128 => [value, -value].iter().for_each(|part| out.extend(part.to_ne_bytes())),
            // Any bits are an element of the rest.
            other => {
                let size = other.fixed_size().unwrap_or(1);
                out.extend((value as i128).to_ne_bytes().into_iter().chain(std::iter::repeat(0)).take(size));
            }
        }
    }
    out
}

/// Codecs out of the JSON list that metadata has.
pub(super) fn codecs(json: &str) -> Result<Vec<Extension>, Box<dyn Error + Send + Sync>> {
    let list = Json::parse(json.as_bytes())?;
    let list = list.as_array().ok_or("codecs are a list")?;
    list.iter().map(|codec| Ok(Extension::parse(codec)?)).collect()
}

pub(super) const LITTLE: &str = r#"{"name":"bytes","configuration":{"endian":"little"}}"#;
pub(super) const BIG: &str = r#"{"name":"bytes","configuration":{"endian":"big"}}"#;
pub(super) const ZSTD: &str = r#"{"name":"zstd","configuration":{"level":3,"checksum":false}}"#;
pub(super) const CHECKED: &str = r#"{"name":"zstd","configuration":{"level":19,"checksum":true}}"#;
pub(super) const FAST: &str = r#"{"name":"zstd","configuration":{"level":-5,"checksum":false}}"#;
pub(super) const CRC: &str = r#"{"name":"crc32c"}"#;
pub(super) const GZIP: &str = r#"{"name":"gzip","configuration":{"level":5}}"#;
pub(super) const ZLIB: &str = r#"{"name":"numcodecs.zlib","configuration":{"level":6}}"#;
pub(super) const LZ4: &str = r#"{"name":"numcodecs.lz4","configuration":{"acceleration":1}}"#;
/// A compressor that no device has.
pub(super) const BZ2: &str = r#"{"name":"numcodecs.bz2","configuration":{"level":1}}"#;

/// Chunks of blosc: `shuffle` by its name, and blocks of so many bytes, or as many as the codec wants for 0.
pub(super) fn blosc(cname: &str, shuffle: &str, size: usize, block: usize) -> String {
    format!(
        r#"{{"name":"blosc","configuration":{{"cname":"{cname}","clevel":5,"shuffle":"{shuffle}","typesize":{size},"blocksize":{block}}}}}"#
    )
}

pub(super) fn shuffle(size: usize) -> String {
    format!(r#"{{"name":"numcodecs.shuffle","configuration":{{"elementsize":{size}}}}}"#)
}

pub(super) fn transpose(order: &str) -> String {
    format!(r#"{{"name":"transpose","configuration":{{"order":{order}}}}}"#)
}

pub(super) fn shard(inner: &str, codecs: &str, location: &str) -> String {
    format!(
        r#"{{"name":"sharding_indexed","configuration":{{"chunk_shape":{inner},"codecs":[{codecs}],"index_codecs":[{LITTLE},{CRC}],"index_location":"{location}"}}}}"#
    )
}

/// Chains of codecs, none of which looks at an element's value, for chunks of three axes; those that mean something to the data type.
pub(super) fn chains(data_type: &DataType) -> Vec<(&'static str, String)> {
    let size = data_type.fixed_size().unwrap_or(1);
    let mut chains = vec![
        ("bytes", LITTLE.to_owned()),
        ("bytes-big", BIG.to_owned()),
        ("crc32c", format!("{LITTLE},{CRC}")),
        ("zstd", format!("{LITTLE},{ZSTD}")),
        ("zstd-checksum", format!("{LITTLE},{CHECKED}")),
        ("zstd-fast", format!("{LITTLE},{FAST}")),
        ("zstd-big", format!("{BIG},{ZSTD}")),
        ("zstd-crc32c", format!("{LITTLE},{ZSTD},{CRC}")),
        ("shuffle-zstd", format!("{LITTLE},{},{ZSTD}", shuffle(size))),
        ("shuffle-crc32c", format!("{LITTLE},{},{CRC}", shuffle(size))),
        ("transpose-zstd", format!("{},{LITTLE},{ZSTD}", transpose("[2,0,1]"))),
        ("transpose-big", format!("{},{BIG}", transpose("[1,0,2]"))),
        ("crc32c-zstd", format!("{LITTLE},{CRC},{ZSTD}")),
        ("shuffle", format!("{LITTLE},{}", shuffle(size))),
        ("shuffle-other", format!("{BIG},{},{CRC},{ZSTD},{CRC}", shuffle(if size == 3 { 11 } else { 5 }))),
        ("blosc-lz4", format!("{LITTLE},{}", blosc("lz4", "shuffle", size, 0))),
        ("blosc-lz4-blocks", format!("{BIG},{},{CRC}", blosc("lz4hc", "shuffle", size, 6000))),
        ("blosc-lz4-bits", format!("{LITTLE},{}", blosc("lz4", "bitshuffle", size, 5000))),
        ("blosc-lz4-as-it-is", format!("{},{LITTLE},{}", transpose("[1,2,0]"), blosc("lz4", "noshuffle", size, 0))),
        ("blosc-zstd", format!("{LITTLE},{}", blosc("zstd", "shuffle", size, 0))),
        ("blosc-zstd-blocks", format!("{LITTLE},{CRC},{}", blosc("zstd", "bitshuffle", size, 20_000))),
        ("gzip", format!("{LITTLE},{GZIP}")),
        ("zlib-shuffle", format!("{LITTLE},{},{ZLIB}", shuffle(size))),
        ("gzip-crc32c", format!("{},{BIG},{CRC},{GZIP},{CRC}", transpose("[1,2,0]"))),
        ("lz4", format!("{LITTLE},{LZ4}")),
        ("lz4-crc32c", format!("{},{BIG},{CRC},{LZ4},{CRC}", transpose("[1,2,0]"))),
        ("all-but-values", format!("{},{BIG},{},{CRC},{ZSTD}", transpose("[2,1,0]"), shuffle(size))),
    ];
    if !stands_for_its_size(data_type) {
        // All that blosc knows of a type is its size.
        chains.retain(|(name, _)| !name.starts_with("blosc-") || ["blosc-lz4", "blosc-zstd"].contains(name));
    }
    if size == 1 {
        // Byte order and planes mean nothing to single bytes.
        let kept =
            ["zstd", "crc32c", "bytes", "crc32c-zstd", "shuffle-other", "blosc-lz4-bits", "blosc-zstd", "gzip", "lz4", "all-but-values"];
        chains.retain(|(name, _)| kept.contains(name));
    }
    chains
}

/// Whether it is the one type of its size that a small run has.
pub(super) fn stands_for_its_size(data_type: &DataType) -> bool {
    matches!(data_type, DataType::UInt8 | DataType::Int16 | DataType::Float32 | DataType::Complex128)
}

/// The codecs of the CPU.
pub(super) fn reference() -> Registry {
    Registry::new().with(zarr_codecs_cpu::provider())
}

/// Options that prefer the subject.
pub(super) fn options(subject: &Subject) -> Options {
    Options::new(reference().with(subject.provider.clone())).with_policy(Policy::Prefer(subject.device.id()))
}

/// A random selection of an array of `shape`.
pub(super) fn selection(random: &mut Random, shape: &[u64]) -> Selection {
    match random.below(8) {
        0 => {
            let count = random.below(12);
            let axis = |len: u64, random: &mut Random| (0..count).map(|_| random.below(len) as i64).collect();
            Selection::Points(shape.iter().map(|&len| axis(len, random)).collect())
        }
        1 => Selection::all(),
        _ => Selection::axes(shape.iter().map(|&len| axis(random, len))),
    }
}

fn axis(random: &mut Random, len: u64) -> AxisSelection {
    let signed = |random: &mut Random| Some(random.below(2 * len + 2) as i64 - len as i64);
    match random.below(6) {
        0 => (random.below(len) as i64).into(),
        1 => (..).into(),
        2 => AxisSelection::Slice { start: signed(random), stop: signed(random), step: 1 + random.below(3) as i64 },
        3 => AxisSelection::Slice { start: signed(random), stop: signed(random), step: -1 - random.below(3) as i64 },
        4 => AxisSelection::List((0..random.below(6)).map(|_| random.below(len) as i64).collect()),
        _ => AxisSelection::Mask((0..len).map(|_| random.below(3) == 0).collect()),
    }
}

//! Codec chains on devices: the kernels on CUDA and on the host, the toys' own codecs. The CPU's codecs are their reference.

use std::sync::Arc;

use zarr_buffer_api::{Device, HostDevice};
use zarr_codec_api::{ArrayRepresentation, CodecProvider, Direction, Registry, Representation};
use zarr_codecs_cuda::cuda_provider;
use zarr_codecs_cuda_host::{HostOptions, host_provider};
use zarr_meta::Extension;

use super::devices::{cuda, options, schedules};
use super::types::{COMPLEX, FLOATS, INTEGERS, TIMES, array, codec, data_type, numpy};
use super::{Entry, Unbuilt};
use crate::codec::device::{DeviceCodecSubject as _, DeviceCodecUnderTest};
use crate::codec::pair::{PairUnderTest, Side};
use crate::runner::results::Place;
use crate::toy::{OpaqueDevice, UnifiedDevice};

/// A chain of codecs.
struct Chain {
    /// In the names of subjects, and in the matrix.
    name: &'static str,
    /// The codecs, as in metadata. `{size}` is the size of an element, `{dtype}` the type in the words of numpy.
    codecs: &'static str,
    types: &'static [&'static [&'static str]],
}

const fn chain(name: &'static str, codecs: &'static str, types: &'static [&'static [&'static str]]) -> Chain {
    Chain { name, codecs, types }
}

const ALL: &[&[&str]] = &[&["bool", "bfloat16", "r24"], INTEGERS, FLOATS, COMPLEX, TIMES];
const SIZES: &[&[&str]] = &[&["uint8", "int16", "float32", "float64", "complex128"]];
const WIDE: &[&[&str]] = &[&["int16", "float32", "float64", "complex128"]];

const CHAINS: &[Chain] = &[
    chain("bytes", r#"[{"name":"bytes","configuration":{"endian":"little"}}]"#, ALL),
    chain("bytes-big", r#"[{"name":"bytes","configuration":{"endian":"big"}}]"#, ALL),
    chain("crc32c", r#"[{"name":"bytes","configuration":{"endian":"little"}},{"name":"crc32c"}]"#, SIZES),
    chain(
        "zstd",
        r#"[{"name":"bytes","configuration":{"endian":"little"}},{"name":"zstd","configuration":{"level":3,"checksum":false}}]"#,
        ALL,
    ),
    chain(
        "zstd-checksum",
        r#"[{"name":"bytes","configuration":{"endian":"little"}},{"name":"zstd","configuration":{"level":19,"checksum":true}}]"#,
        SIZES,
    ),
    chain(
        "zstd-fast",
        r#"[{"name":"bytes","configuration":{"endian":"little"}},{"name":"zstd","configuration":{"level":-5,"checksum":false}}]"#,
        SIZES,
    ),
    chain(
        "zstd-big",
        r#"[{"name":"bytes","configuration":{"endian":"big"}},{"name":"zstd","configuration":{"level":3,"checksum":false}}]"#,
        WIDE,
    ),
    chain(
        "zstd-crc32c",
        r#"[{"name":"bytes","configuration":{"endian":"little"}},{"name":"zstd","configuration":{"level":3,"checksum":false}},{"name":"crc32c"}]"#,
        SIZES,
    ),
    chain(
        "shuffle-zstd",
        r#"[{"name":"bytes","configuration":{"endian":"little"}},{"name":"numcodecs.shuffle","configuration":{"elementsize":{size}}},{"name":"zstd","configuration":{"level":3,"checksum":false}}]"#,
        WIDE,
    ),
    chain(
        "blosc-lz4",
        r#"[{"name":"bytes","configuration":{"endian":"little"}},{"name":"blosc","configuration":{"cname":"lz4","clevel":5,"shuffle":"shuffle","typesize":{size},"blocksize":0}}]"#,
        SIZES,
    ),
    chain(
        "blosc-lz4-bits",
        r#"[{"name":"bytes","configuration":{"endian":"big"}},{"name":"blosc","configuration":{"cname":"lz4hc","clevel":9,"shuffle":"bitshuffle","typesize":{size},"blocksize":512}},{"name":"crc32c"}]"#,
        WIDE,
    ),
    chain(
        "blosc-zstd",
        r#"[{"name":"bytes","configuration":{"endian":"little"}},{"name":"blosc","configuration":{"cname":"zstd","clevel":3,"shuffle":"shuffle","typesize":{size},"blocksize":0}}]"#,
        SIZES,
    ),
    chain("gzip", r#"[{"name":"bytes","configuration":{"endian":"little"}},{"name":"gzip","configuration":{"level":5}}]"#, SIZES),
    chain(
        "zlib-shuffle",
        r#"[{"name":"bytes","configuration":{"endian":"little"}},{"name":"numcodecs.shuffle","configuration":{"elementsize":{size}}},{"name":"numcodecs.zlib","configuration":{"level":1}}]"#,
        WIDE,
    ),
    chain(
        "gzip-stored-crc32c",
        r#"[{"name":"bytes","configuration":{"endian":"big"}},{"name":"crc32c"},{"name":"gzip","configuration":{"level":0}},{"name":"crc32c"}]"#,
        WIDE,
    ),
    chain(
        "lz4",
        r#"[{"name":"bytes","configuration":{"endian":"little"}},{"name":"numcodecs.lz4","configuration":{"acceleration":1}}]"#,
        SIZES,
    ),
    chain(
        "lz4-shuffle-crc32c",
        r#"[{"name":"bytes","configuration":{"endian":"big"}},{"name":"numcodecs.shuffle","configuration":{"elementsize":{size}}},{"name":"numcodecs.lz4"},{"name":"crc32c"}]"#,
        WIDE,
    ),
    chain(
        "transpose-zstd",
        r#"[{"name":"transpose","configuration":{"order":[2,0,1]}},{"name":"bytes","configuration":{"endian":"little"}},{"name":"zstd","configuration":{"level":3,"checksum":false}}]"#,
        SIZES,
    ),
    chain(
        "bitround-zstd",
        r#"[{"name":"numcodecs.bitround","configuration":{"keepbits":5}},{"name":"bytes","configuration":{"endian":"little"}},{"name":"zstd","configuration":{"level":3,"checksum":false}}]"#,
        &[FLOATS],
    ),
    chain(
        "fixedscaleoffset-zstd",
        r#"[{"name":"numcodecs.fixedscaleoffset","configuration":{"offset":3,"scale":10,"dtype":"{dtype}","astype":"<i4"}},{"name":"bytes","configuration":{"endian":"little"}},{"name":"zstd","configuration":{"level":3,"checksum":false}}]"#,
        &[&["float32", "float64"]],
    ),
    chain(
        "cast_value-zstd",
        r#"[{"name":"cast_value","configuration":{"data_type":"float32","rounding":"nearest-even","out_of_range":"clamp"}},{"name":"bytes","configuration":{"endian":"little"}},{"name":"zstd","configuration":{"level":3,"checksum":false}}]"#,
        &[&["float32", "float64"]],
    ),
    chain(
        "scale_offset-zstd",
        r#"[{"name":"scale_offset","configuration":{"offset":2,"scale":4}},{"name":"bytes","configuration":{"endian":"little"}},{"name":"zstd","configuration":{"level":3,"checksum":false}}]"#,
        &[&["float32", "float64"]],
    ),
];

/// What a device and its codecs are made by.
type Make = Arc<dyn Fn() -> Result<(Arc<dyn Device>, Arc<dyn CodecProvider>), Unbuilt> + Send + Sync>;

/// The kernels, built for the host.
pub(super) fn on_host() -> Vec<Entry> {
    let kernels: Make = Arc::new(|| Ok((Arc::new(HostDevice), Arc::new(host_provider(HostOptions::default())))));
    let mut entries = chains("cuda-host", &[6, 10, 11], CHAINS, &kernels);
    entries.extend(pairs("cuda-host", &[5, 7], &kernels));
    let of_toys = CHAINS.iter().filter(|chain| ["bytes", "zstd-checksum"].contains(&chain.name));
    for chain in of_toys {
        for (label, schedule) in schedules() {
            let opaque: Make = Arc::new(move || {
                let device = OpaqueDevice::with_options(1, options(schedule));
                Ok((Arc::clone(&device) as Arc<dyn Device>, Arc::new(device.provider())))
            });
            let unified: Make = Arc::new(move || {
                let device = UnifiedDevice::with_options(1, options(schedule));
                Ok((Arc::clone(&device) as Arc<dyn Device>, Arc::new(device.provider())))
            });
            for (toy, make) in [("toy-opaque", opaque), ("toy-unified", unified)] {
                entries.push(entry(toy, &format!(".{label}"), chain, "float32", &[5, 6], &make));
            }
        }
    }
    entries
}

/// The kernels on a CUDA device.
pub(super) fn on_cuda(ordinal: i32) -> Vec<Entry> {
    let kernels: Make = Arc::new(move || {
        let device = cuda(ordinal)?;
        let provider = cuda_provider(&device)?;
        Ok((device as Arc<dyn Device>, Arc::new(provider)))
    });
    let (chains, pairs) = (chains("cuda", &[12, 50, 101], CHAINS, &kernels), pairs("cuda", &[15, 17], &kernels));
    chains.into_iter().chain(pairs).map(|entry| entry.in_lane("cuda")).collect()
}

/// The device beside the CPU as two implementations of one chain: what either encodes, verdicts on bytes that may be bad.
fn pairs(implementation: &'static str, shape: &'static [u64], make: &Make) -> Vec<Entry> {
    let mut entries = Vec::new();
    for chain in CHAINS.iter().filter(|chain| !chain.codecs.contains("transpose")) {
        for type_name in chain.types.iter().copied().flatten().copied().filter(|name| ["int16", "float32"].contains(name)) {
            let make = Arc::clone(make);
            let place = Place::new(format!("cpu & {implementation}"), chain.name, type_name);
            let build = move || -> Result<PairUnderTest, Unbuilt> {
                let (taken, codecs) = taken(chain, type_name, shape, &make)?;
                let Taken { device, provider, decoded, .. } = taken;
                let (cpu, device) = (Side::on_host(Arc::new(zarr_codecs_cpu::provider())), Side::on_device(provider, device));
                let lossy = ["bitround", "scale", "cast_value"].iter().any(|word| chain.codecs.contains(word));
                let pair = PairUnderTest::new(cpu, device, codecs, Representation::Array(decoded)).with_many(20);
                Ok(if lossy { pair.lossy() } else { pair })
            };
            entries.push(Entry::new(format!("pair/cpu-{implementation}/{}/{type_name}", chain.name), build).at(place));
        }
    }
    entries
}

fn chains(implementation: &'static str, shape: &'static [u64], chains: &'static [Chain], make: &Make) -> Vec<Entry> {
    let one = |chain: &'static Chain| {
        chain.types.iter().copied().flatten().map(move |data_type| entry(implementation, "", chain, data_type, shape, make))
    };
    chains.iter().flat_map(one).collect()
}

fn entry(implementation: &str, label: &str, chain: &'static Chain, type_name: &'static str, shape: &'static [u64], make: &Make) -> Entry {
    let make = Arc::clone(make);
    let place = Place::new(implementation, chain.name, type_name);
    let build = move || taken(chain, type_name, shape, &make).map(|(taken, _)| taken.subject);
    Entry::new(format!("{implementation}/{}{label}/{type_name}", chain.name), build).at(place)
}

/// A chain that a device takes whole.
struct Taken {
    subject: DeviceCodecUnderTest,
    device: Arc<dyn Device>,
    provider: Arc<dyn CodecProvider>,
    decoded: ArrayRepresentation,
}

fn taken(chain: &Chain, type_name: &str, shape: &[u64], make: &Make) -> Result<(Taken, Vec<Extension>), Unbuilt> {
    let data_type = data_type(type_name)?;
    let size = data_type.fixed_size().unwrap_or(1).to_string();
    let text = chain.codecs.replace("{size}", &size).replace("{dtype}", numpy(type_name));
    let json = zarr_meta::Json::parse(text.as_bytes())?;
    let codecs = json.as_array().into_iter().flatten().map(|one| codec(&one.to_text())).collect::<Result<Vec<_>, _>>()?;
    let (device, provider) = make()?;
    let reference = Registry::new().with(zarr_codecs_cpu::provider());
    let decoded = array(data_type, shape);
    let subject = DeviceCodecUnderTest::new(Arc::clone(&device), Arc::clone(&provider), &reference, &codecs, decoded.clone())?;
    let stages = subject.reference().stages();
    match provider.bind(stages, Direction::Decode)? {
        Some(bound) if bound.consumed == stages.len() => Ok((Taken { subject, device, provider, decoded }, codecs)),
        bound => {
            let consumed = bound.map_or(0, |bound| bound.consumed);
            Err(Unbuilt::NotTaken(format!("takes {consumed} of {} codecs of the chain; the rest is the host's", stages.len())))
        }
    }
}

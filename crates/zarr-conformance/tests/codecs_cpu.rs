//! The laws of codecs, on every codec of `zarr-codecs-cpu`, and on the native codecs of the toy devices against them.

use std::sync::Arc;

use zarr_buffer_api::Device;
use zarr_codec_api::{ArrayRepresentation, ByteLen, CodecProvider, Registry, Representation};
use zarr_conformance::codec::device::{self, DeviceCodecUnderTest};
use zarr_conformance::codec::pair::{PairUnderTest, Side};
use zarr_conformance::codec::{CodecUnderTest, ErrorBound, check};
use zarr_conformance::toy::{OpaqueDevice, Schedule, ToyOptions, UnifiedDevice};
use zarr_conformance::{Sample, Suite, Trial, data_types, representations, samples};
use zarr_meta::{DataType, Extension, FillValue, Json};

fn extension(text: &str) -> Extension {
    Extension::parse(&Json::parse(text.as_bytes()).unwrap()).unwrap()
}

fn codec(name: &str, configuration: &str) -> Extension {
    extension(&format!(r#"{{"name":"{name}","configuration":{configuration}}}"#))
}

fn array(data_type: DataType, shape: &[u64]) -> ArrayRepresentation {
    let fill_value = FillValue::default_for(&data_type);
    ArrayRepresentation { data_type, shape: shape.to_vec(), fill_value }
}

/// Codecs on the CPU use no chance and no threads: what they encode is always the same.
fn subject(codec: Extension, decoded: Representation) -> CodecUnderTest {
    CodecUnderTest::new(Arc::new(zarr_codecs_cpu::provider()), codec, decoded).deterministic()
}

#[test]
fn bytes_to_bytes() {
    let codecs = [
        ("blosc", r#"{"cname":"lz4","clevel":5,"shuffle":"shuffle","typesize":4,"blocksize":0}"#),
        ("blosc", r#"{"cname":"blosclz","clevel":9,"shuffle":"bitshuffle","typesize":2,"blocksize":0}"#),
        ("blosc", r#"{"cname":"zstd","clevel":1,"shuffle":"noshuffle","blocksize":256}"#),
        ("blosc", r#"{"cname":"zlib","clevel":1,"shuffle":"shuffle","typesize":8,"blocksize":0}"#),
        ("blosc", r#"{"cname":"snappy","clevel":1,"shuffle":"shuffle","typesize":8,"blocksize":0}"#),
        ("zstd", r#"{"level":1,"checksum":true}"#),
        ("zstd", r#"{"level":-3,"checksum":false}"#),
        ("gzip", r#"{"level":5}"#),
        ("numcodecs.zlib", r#"{"level":1}"#),
        ("numcodecs.lz4", r#"{"acceleration":1}"#),
        ("numcodecs.bz2", r#"{"level":1}"#),
        ("crc32c", "{}"),
        ("numcodecs.crc32", "{}"),
        ("numcodecs.adler32", r#"{"location":"end"}"#),
        ("numcodecs.fletcher32", "{}"),
        ("numcodecs.jenkins_lookup3", r#"{"initval":0,"prefix":null}"#),
        ("numcodecs.shuffle", r#"{"elementsize":4}"#),
    ];
    for (name, configuration) in codecs {
        // Multiples of four, for shuffle.
        for len in [ByteLen::Exact(0), ByteLen::Exact(4000), ByteLen::AtMost(1200)] {
            if name == "numcodecs.shuffle" && len.exact().is_none() {
                continue;
            }
            check(&subject(codec(name, configuration), Representation::Bytes(len)).with_many(50)).assert_conforms();
        }
    }
}

#[test]
fn lzma() {
    check(&subject(codec("numcodecs.lzma", r#"{"preset":0}"#), Representation::Bytes(ByteLen::Exact(600)))).assert_conforms();
}

/// Reports of all representations, on two threads.
fn all_conform(subjects: Vec<CodecUnderTest>) {
    let check = |half: &[CodecUnderTest]| half.iter().for_each(|subject| check(subject).assert_conforms());
    let (first, second) = subjects.split_at(subjects.len() / 2);
    std::thread::scope(|scope| {
        scope.spawn(|| check(first));
        check(second);
    });
}

#[test]
fn every_data_type_in_every_shape() {
    let mut subjects = Vec::new();
    for (index, array) in representations().into_iter().enumerate() {
        let codec = match array.data_type {
            DataType::String => extension(r#""vlen-utf8""#),
            DataType::Bytes => extension(r#""vlen-bytes""#),
            // Each byte order for every other shape, and with an odd number of shapes for every other data type.
            _ => codec("bytes", ["{\"endian\":\"little\"}", "{\"endian\":\"big\"}"][index % 2]),
        };
        subjects.push(subject(codec, Representation::Array(array)).with_many(8));
    }
    all_conform(subjects);
}

#[test]
fn array_to_bytes() {
    for data_type in [DataType::Int16, DataType::Float64, DataType::Complex64] {
        for endian in ["little", "big"] {
            let decoded = Representation::Array(array(data_type.clone(), &[5, 7]));
            check(&subject(codec("bytes", &format!(r#"{{"endian":"{endian}"}}"#)), decoded)).assert_conforms();
        }
    }
    for data_type in [DataType::Bool, DataType::Int4, DataType::UInt16, DataType::Float32] {
        for padding in ["none", "first_byte", "last_byte"] {
            let decoded = Representation::Array(array(data_type.clone(), &[5, 7]));
            check(&subject(codec("packbits", &format!(r#"{{"padding_encoding":"{padding}"}}"#)), decoded)).assert_conforms();
        }
    }
    check(&subject(extension(r#""vlen-utf8""#), Representation::Array(array(DataType::String, &[5, 7])))).assert_conforms();
    check(&subject(extension(r#""vlen-bytes""#), Representation::Array(array(DataType::Bytes, &[4])))).assert_conforms();
}

#[test]
fn array_to_array() {
    for (data_type, shape, order) in
        [(DataType::Int16, &[3, 4, 5][..], "[2,0,1]"), (DataType::Float64, &[6, 2], "[1,0]"), (DataType::Bool, &[], "[]")]
    {
        let decoded = Representation::Array(array(data_type, shape));
        check(&subject(codec("transpose", &format!(r#"{{"order":{order}}}"#)), decoded)).assert_conforms();
    }
    let decoded = Representation::Array(array(DataType::Int32, &[4, 6]));
    check(&subject(codec("reshape", r#"{"shape":[[0,1]]}"#), decoded.clone())).assert_conforms();
    check(&subject(codec("numcodecs.delta", r#"{"dtype":"<i4"}"#), decoded.clone())).assert_conforms();
    check(&subject(codec("numcodecs.astype", r#"{"encode_dtype":"<i8","decode_dtype":"<i4"}"#), decoded.clone())).assert_conforms();
    check(&subject(codec("cast_value", r#"{"data_type":"int64"}"#), decoded.clone())).assert_conforms();
    check(&subject(codec("bitround", r#"{"keepbits":3}"#), decoded).lossy()).assert_conforms();
    let floats = Representation::Array(array(DataType::Float32, &[4, 6]));
    check(&subject(codec("bitround", r#"{"keepbits":3}"#), floats.clone()).lossy()).assert_conforms();
    // Numbers that these codecs are made for; their arithmetic does not keep the payload of a NaN.
    let values = (0..24).flat_map(|i| (i as f32 * 0.25 - 3.0).to_ne_bytes()).collect();
    let numbers = vec![Sample::Bytes(values), Sample::Bytes(vec![0; 96])];
    for (name, configuration, bound) in [
        ("scale_offset", r#"{"offset":2,"scale":4}"#, ErrorBound::Absolute(1e-6)),
        ("numcodecs.fixedscaleoffset", r#"{"offset":2,"scale":4,"dtype":"<f4","astype":"<i2"}"#, ErrorBound::Absolute(0.125)),
        ("numcodecs.quantize", r#"{"digits":1,"dtype":"<f4"}"#, ErrorBound::Absolute(0.1)),
        ("bitround", r#"{"keepbits":3}"#, ErrorBound::Relative(1.0 / 16.0)),
    ] {
        let subject = subject(codec(name, configuration), floats.clone()).with_samples(numbers.clone()).lossy_within(bound);
        check(&subject).assert_conforms();
    }
}

#[test]
fn samples_are_what_their_type_permits() {
    let Sample::Bytes(noise) = samples(&Representation::Array(array(DataType::Bool, &[100]))).unwrap().pop().unwrap() else { panic!() };
    assert!(noise.iter().all(|&byte| byte < 2));
    let Sample::Bytes(noise) = samples(&Representation::Array(array(DataType::Int4, &[100]))).unwrap().pop().unwrap() else { panic!() };
    assert!(noise.iter().all(|&byte| (-8..8).contains(&(byte as i8))));
}

#[test]
fn every_data_type_has_samples() {
    for array in representations() {
        let expected = array.byte_len().unwrap();
        let chunks = samples(&Representation::Array(array.clone())).unwrap();
        assert!(chunks.len() >= 4, "{array:?}");
        assert!(expected.is_none_or(|len| chunks.iter().all(|chunk| chunk.byte_len() == len)), "{array:?}");
    }
    assert!(data_types().len() > 50);
}

/// The chain on a toy device, against the same chain on the host.
fn check_on(device: Arc<dyn Device>, provider: Arc<dyn CodecProvider>, codecs: &[Extension], decoded: ArrayRepresentation) {
    let reference = Registry::new().with(zarr_codecs_cpu::provider());
    let subject = DeviceCodecUnderTest::new(Arc::clone(&device), Arc::clone(&provider), &reference, codecs, decoded.clone()).unwrap();
    device::check(&subject.with_many(20)).assert_conforms();
    let (host, other) = (Side::on_host(Arc::new(zarr_codecs_cpu::provider())), Side::on_device(provider, device));
    let pair = PairUnderTest::new(host, other, codecs.to_vec(), Representation::Array(decoded));
    Suite::from(pair.with_many(10)).run(&Trial::default()).assert_conforms();
}

#[test]
fn the_toys_own_codecs_soon() {
    the_toys_own_codecs(Schedule::Soon);
}

#[test]
fn the_toys_own_codecs_delayed() {
    the_toys_own_codecs(Schedule::Delayed { seed: 5 });
}

#[test]
fn the_toys_own_codecs_when_waited_for() {
    the_toys_own_codecs(Schedule::WhenWaitedFor);
}

fn the_toys_own_codecs(schedule: Schedule) {
    let bytes = codec("bytes", r#"{"endian":"little"}"#);
    let zstd = codec("zstd", r#"{"level":1,"checksum":true}"#);
    let options = ToyOptions { schedule, ..ToyOptions::default() };
    let (opaque, unified) = (OpaqueDevice::with_options(1, options), UnifiedDevice::with_options(2, options));
    for codecs in [&[bytes.clone()][..], &[bytes.clone(), zstd.clone()]] {
        for (data_type, shape) in
            [(DataType::Float32, &[5, 6][..]), (DataType::UInt16, &[2, 3, 4]), (DataType::Bool, &[]), (DataType::Int8, &[0])]
        {
            let decoded = array(data_type, shape);
            check_on(opaque.clone(), Arc::new(opaque.provider()), codecs, decoded.clone());
            check_on(opaque.clone(), Arc::new(opaque.provider().contiguous_only()), codecs, decoded.clone());
            check_on(unified.clone(), Arc::new(unified.provider()), codecs, decoded);
        }
    }
    opaque.assert_clean();
    unified.assert_clean();
    let counters = unified.counters();
    assert_eq!((counters.bus_copies(), counters.status_copies), (0, 0));
}

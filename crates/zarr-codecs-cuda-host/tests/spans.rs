//! The kernels of gzip, zlib and LZ4 beside the codecs of the CPU.

use common::{data, decode};
use zarr_codec_api::{ArrayRepresentation, Chain, Policy, Registry, Scratch, Source};
use zarr_codecs_cuda_host::HostOptions;
use zarr_meta::{DataType, Extension, FillValue};

mod common;

fn encode(codec: &str, bytes: &[u8]) -> Vec<u8> {
    let array = ArrayRepresentation {
        data_type: DataType::UInt8,
        shape: vec![bytes.len() as u64],
        fill_value: FillValue::default_for(&DataType::UInt8),
    };
    let registry = Registry::new().with(zarr_codecs_cpu::provider());
    let chain = Chain::bind(&[Extension::new("bytes"), Extension::new(codec)], array, &registry, &Policy::Host).unwrap();
    let mut encoded = Vec::new();
    chain.encode(Source::Bytes(bytes), &mut encoded, &mut Scratch::new()).unwrap();
    encoded
}

/// Few chunks by the kernel with more threads, many by the other one; and all by that where a block has not as much shared memory as the first one wants, as on devices of compute
/// capability 8.6 and 8.9.
#[test]
fn few_chunks_and_many_on_devices_with_much_and_little_shared_memory() {
    for codec in ["numcodecs.gzip", "numcodecs.zlib", "numcodecs.lz4"] {
        let mut chunks = Vec::new();
        let mut expected = Vec::new();
        for len in [1, 12, 13, 100, 5000, 65_536, 300_001] {
            for kind in 0..7 {
                let bytes = data(kind, len);
                chunks.push((encode(codec, &bytes), len));
                expected.push((kind, len, bytes));
            }
        }
        for shared_memory in [u32::MAX, 99 << 10] {
            let options = HostOptions::default().with_shared_memory(shared_memory);
            for batch in [1, 3, chunks.len()] {
                for (chunks, expected) in chunks.chunks(batch).zip(expected.chunks(batch)) {
                    for (found, (kind, len, bytes)) in decode(codec, options, 1 << 30, chunks).into_iter().zip(expected) {
                        let found = found.unwrap_or_else(|error| panic!("{codec}, kind {kind}, {len} bytes: {error}"));
                        assert!(found == *bytes, "{codec}, kind {kind}, {len} bytes, {batch} at once");
                    }
                }
            }
        }
    }
}

/// Sequences of each way that the kernels have for them, at the edges of these: literals and matches as long as a span takes them and longer, from near and far.
#[test]
fn lengths_of_sequences_of_lz4() {
    let noise = data(1, 70_000);
    let mut chunks = Vec::new();
    let mut expected = Vec::new();
    for literals in [1, 14, 15, 269, 270, 2053, 2054, 2055, 2056, 70_000] {
        for matched in [4, 18, 19, 273, 274, 4097, 4098, 4099, 4100, 300_000] {
            for offset in [1, 2, 15, 16, 17, 1000, 65_535] {
                if offset > literals + 40 {
                    continue;
                }
                // Before and behind it, short ones.
                let mut bytes = noise[..40].to_vec();
                bytes.extend_from_within(..20);
                bytes.extend(&noise[100..100 + literals.min(noise.len() - 100)]);
                let start = bytes.len() - offset.min(bytes.len());
                for at in 0..matched {
                    bytes.push(bytes[start + at]);
                }
                bytes.extend(&noise[..30]);
                bytes.extend_from_within(..25);
                bytes.extend(&noise[..40]);
                chunks.push((encode("numcodecs.lz4", &bytes), bytes.len()));
                expected.push(bytes);
            }
        }
    }
    let found = decode("numcodecs.lz4", HostOptions::default(), 1 << 30, &chunks);
    assert!(found.iter().zip(&expected).all(|(found, expected)| found.as_ref() == Ok(expected)));
    for (index, (chunk, expected)) in chunks.iter().zip(&expected).enumerate().step_by(7) {
        let found = decode("numcodecs.lz4", HostOptions::default(), 1 << 30, std::slice::from_ref(chunk));
        assert!(found[0].as_ref() == Ok(expected), "chunk {index}");
    }
}

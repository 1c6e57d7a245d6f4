//! The zstd kernels beside libzstd.

use std::sync::Arc;

use common::data;
use zarr_buffer_api::{Buffer, Device, HostDevice, Layout, Region};
use zarr_codec_api::{ByteLen, CodecProvider, DeviceContext, DeviceSegment, Direction, Representation, Segment, Stage};
use zarr_codecs_cuda_host::{HostOptions, host_provider};
use zarr_meta::Extension;

mod common;

fn decode(options: HostOptions, budget: u64, frames: &[(Vec<u8>, usize)]) -> Vec<Result<Vec<u8>, String>> {
    common::decode("zstd", options, budget, frames)
}

#[test]
fn frames_of_libzstd_decode_to_their_bytes() {
    let mut frames = Vec::new();
    let mut expected = Vec::new();
    for kind in 0..7 {
        for len in [0, 1, 2, 100, 1000, 5000, 40_000, 131_072, 131_073, 400_000] {
            for level in [-5, 1, 3, 9, 19] {
                if level > 9 && len > 140_000 {
                    continue;
                }
                let bytes = data(kind, len);
                frames.push((zstd::bulk::compress(&bytes, level).unwrap(), len));
                expected.push((kind, len, level, bytes));
            }
        }
    }
    for (seed, batch) in [(1, 16), (2, frames.len())] {
        let options = HostOptions::default().with_seed(seed);
        for (frames, expected) in frames.chunks(batch).zip(expected.chunks(batch)) {
            for (found, (kind, len, level, bytes)) in decode(options, 1 << 30, frames).into_iter().zip(expected) {
                let found = found.unwrap_or_else(|error| panic!("kind {kind}, {len} bytes, level {level}: {error}"));
                if let Some(at) = found.iter().zip(bytes).position(|(a, b)| a != b) {
                    panic!("kind {kind}, {len} bytes, level {level}: byte {at} of {len} differs");
                }
            }
        }
    }
}

/// Larger than 8 MiB: tiles are taken from a counter. A damaged one fails alone.
#[test]
fn chunks_that_several_blocks_of_threads_share() {
    let len = (8 << 20) + 12_345;
    let whole = data(2, len);
    let frame = zstd::bulk::compress(&whole, 1).unwrap();
    let small = data(3, 5000);
    let mut frames = vec![(frame.clone(), len), (zstd::bulk::compress(&small, 3).unwrap(), small.len()), (frame, len)];
    let middle = frames[2].0.len() / 2;
    frames[2].0[middle..middle + 40].fill(0x55);
    let found = decode(HostOptions::default().with_multiprocessors(16), u64::MAX, &frames);
    assert!(found[0].as_ref() == Ok(&whole), "a large chunk");
    assert!(found[1].as_ref() == Ok(&small), "a small chunk beside it");
    let by_libzstd = zstd::bulk::decompress(&frames[2].0, len);
    assert!(
        found[2].as_ref().ok() == by_libzstd.as_ref().ok(),
        "a damaged chunk: {:?}, libzstd: {:?}",
        found[2].as_ref().err(),
        by_libzstd.err()
    );
}

fn encoder(options: HostOptions, len: u64, checksum: bool) -> Arc<dyn DeviceSegment> {
    #[derive(serde::Serialize)]
    struct Config {
        level: i64,
        checksum: bool,
    }
    let stage = Stage {
        codec: Extension::from_config("zstd", &Config { level: 3, checksum }).unwrap(),
        decoded: Representation::Bytes(ByteLen::AtMost(len)),
        encoded: Representation::Bytes(ByteLen::AtMost(len).compressed()),
    };
    match host_provider(options).bind(&[stage], Direction::Encode).unwrap().unwrap().segment {
        Segment::Device(segment) => segment,
        Segment::Host(_) => unreachable!(),
    }
}

fn encode(options: HostOptions, checksum: bool, chunks: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let longest = chunks.iter().map(|chunk| chunk.len() as u64).max().unwrap_or(0);
    let queue = HostDevice.create_queue().unwrap();
    let regions: Vec<Region> = chunks
        .iter()
        .map(|chunk| Region::new(Buffer::from_vec(chunk.clone()), Layout::contiguous(&[chunk.len()], 1).unwrap()).unwrap())
        .collect();
    let context = DeviceContext { device: &HostDevice, queue: &*queue, scratch_budget: u64::MAX };
    let encoded = encoder(options, longest, checksum).encode(&regions, &context).unwrap();
    let ranges = encoded.ticket.wait().unwrap();
    let bytes = encoded.bytes.host_read().unwrap();
    ranges.into_iter().map(|range| bytes[range.unwrap()].to_vec()).collect()
}

#[test]
fn libzstd_decodes_what_is_encoded() {
    for checksum in [false, true] {
        for kind in 0..7 {
            let lens = [
                0, 1, 3, 4, 5, 63, 64, 65, 255, 256, 1000, 5000, 40_000, 65_535, 65_536, 65_537, 65_791, 65_792, 131_072, 131_073, 300_000,
            ];
            let chunks: Vec<Vec<u8>> = lens.iter().map(|&len| data(kind, len)).collect();
            for (chunk, frame) in chunks.iter().zip(encode(HostOptions::default(), checksum, &chunks)) {
                let decoded = zstd::bulk::decompress(&frame, chunk.len());
                let decoded = decoded.unwrap_or_else(|error| panic!("kind {kind}, {} bytes: {error}", chunk.len()));
                assert!(decoded == *chunk, "kind {kind}, {} bytes: others", chunk.len());
            }
        }
    }
}

/// Numbers, text and runs take about what they take at libzstd's level 1, or less.
#[test]
fn frames_are_small() {
    for kind in 2..6 {
        let chunk = data(kind, 500_000);
        let (ours, level_1) =
            (encode(HostOptions::default(), false, std::slice::from_ref(&chunk))[0].len(), zstd::bulk::compress(&chunk, 1).unwrap().len());
        assert!(ours * 100 <= level_1 * 107, "kind {kind}: {ours} bytes, by libzstd {level_1}");
    }
}

/// Threads in any order, and neighbours in a batch, make no difference.
#[test]
fn a_chunk_is_encoded_to_the_same_bytes_each_time() {
    let chunks: Vec<Vec<u8>> = (0..7).map(|kind| data(kind, 90_000)).collect();
    let first = encode(HostOptions::default(), true, &chunks);
    for (kind, chunk) in chunks.iter().enumerate() {
        let options = HostOptions::default().with_seed(77 + kind as u64).with_multiprocessors(5);
        assert!(encode(options, true, std::slice::from_ref(chunk))[0] == first[kind], "kind {kind}");
    }
}

//! The zstd kernels beside libzstd.

use common::data;
use zarr_codecs_cuda_host::HostOptions;

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

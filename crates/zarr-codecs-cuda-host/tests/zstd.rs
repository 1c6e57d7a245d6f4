//! The zstd kernels beside libzstd.

use std::sync::Arc;

use zarr_buffer_api::{Buffer, Device, HostDevice, Layout, Region};
use zarr_codec_api::{ByteLen, CodecProvider, DeviceContext, DeviceSegment, DeviceSlot, Direction, Representation, Segment, Stage};
use zarr_codecs_cuda_host::{HostOptions, host_provider};
use zarr_meta::Extension;

fn segment(options: HostOptions, len: u64) -> Arc<dyn DeviceSegment> {
    let stage = Stage {
        codec: Extension::new("zstd"),
        decoded: Representation::Bytes(ByteLen::AtMost(len)),
        encoded: Representation::Bytes(ByteLen::AtMost(len).compressed()),
    };
    let bound = host_provider(options).bind(&[stage], Direction::Decode).unwrap().unwrap();
    match bound.segment {
        Segment::Device(segment) => segment,
        Segment::Host(_) => unreachable!(),
    }
}

/// Decodes frames in one batch, each to the length beside it.
fn decode(options: HostOptions, budget: u64, frames: &[(Vec<u8>, usize)]) -> Vec<Result<Vec<u8>, String>> {
    let longest = frames.iter().map(|(_, len)| *len as u64).max().unwrap_or(0);
    let segment = segment(options, longest);
    let queue = HostDevice.create_queue().unwrap();
    let slots: Vec<DeviceSlot> = frames
        .iter()
        .map(|(frame, len)| DeviceSlot {
            encoded: Buffer::from_vec(frame.clone()),
            decoded: Region::new(Buffer::from_vec(vec![0xee; *len]), Layout::contiguous(&[*len], 1).unwrap()).unwrap(),
        })
        .collect();
    let context = DeviceContext { device: &HostDevice, queue: &*queue, scratch_budget: budget };
    let statuses = segment.decode(&slots, &context).unwrap().wait().unwrap();
    let bytes = |slot: &DeviceSlot| slot.decoded.buffer.host_read().unwrap().to_vec();
    statuses
        .into_iter()
        .zip(&slots)
        .map(|(status, slot)| match status {
            Ok(()) => Ok(bytes(slot)),
            Err(error) => {
                assert!(bytes(slot).iter().all(|&byte| byte == 0), "a failed slot is zeroed");
                Err(error.message().to_owned())
            }
        })
        .collect()
}

/// Kinds of data, by number.
fn data(kind: usize, len: usize) -> Vec<u8> {
    let mut random = 0x1234_5678_9abc_def0u64 + kind as u64;
    let mut next = move || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random
    };
    let floats: Vec<f32> =
        (0..len / 4 + 1).map(|i| ((250.0 + 40.0 * (i as f32 * 0.01).sin()) * 100.0 + (next() % 10) as f32).round() / 100.0).collect();
    let plain: Vec<u8> = floats.iter().flat_map(|value| value.to_le_bytes()).collect();
    match kind {
        0 => vec![0; len],
        1 => (0..len).map(|_| next() as u8).collect(),
        2 => plain[..len].to_vec(),
        3 => {
            let count = plain.len() / 4;
            (0..len).map(|i| plain[(i % count) * 4 + (i / count).min(3)]).collect()
        }
        4 => (0..len).map(|_| b"the quick brown fox jumps over it "[(next() % 34) as usize]).collect(),
        5 => (0..len).map(|i| (i / 1000) as u8).collect(),
        _ => (0..len).map(|i| if next() % 50 == 0 { next() as u8 } else { (i % 7) as u8 }).collect(),
    }
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

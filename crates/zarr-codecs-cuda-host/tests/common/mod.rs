//! What tests of the kernels have in common.

use std::sync::Arc;

use zarr_buffer_api::{Buffer, Device, HostDevice, Layout, Region};
use zarr_codec_api::{ByteLen, CodecProvider, DeviceContext, DeviceSegment, DeviceSlot, Direction, Representation, Segment, Stage};
use zarr_codecs_cuda_host::{HostOptions, host_provider};
use zarr_meta::Extension;

fn segment(codec: &str, options: HostOptions, len: u64) -> Arc<dyn DeviceSegment> {
    let stage = Stage {
        codec: Extension::new(codec),
        decoded: Representation::Bytes(ByteLen::AtMost(len)),
        encoded: Representation::Bytes(ByteLen::AtMost(len).compressed()),
    };
    match host_provider(options).bind(&[stage], Direction::Decode).unwrap().unwrap().segment {
        Segment::Device(segment) => segment,
        Segment::Host(_) => unreachable!(),
    }
}

/// Decodes chunks of a codec in one batch, each to the length beside it.
pub(crate) fn decode(codec: &str, options: HostOptions, budget: u64, frames: &[(Vec<u8>, usize)]) -> Vec<Result<Vec<u8>, String>> {
    let longest = frames.iter().map(|(_, len)| *len as u64).max().unwrap_or(0);
    let segment = segment(codec, options, longest);
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
pub(crate) fn data(kind: usize, len: usize) -> Vec<u8> {
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

//! The toy devices themselves: late work, counted copies, and that misuse is found.

use std::sync::Arc;

use zarr_buffer_api::{Buffer, BufferErrorKind, Device, Layout, Region};
use zarr_codec_api::{
    ArrayRepresentation, ByteLen, CodecErrorKind, CodecProvider, DeviceContext, DeviceSegment, DeviceSlot, Direction, Encoded, Limits,
    Representation, Segment, Stage,
};
use zarr_conformance::toy::{OpaqueDevice, Schedule, ToyFault, ToyOptions, ToyProvider, UnifiedDevice, ViolationKind};
use zarr_meta::{DataType, Extension, FillValue};

fn whole(buffer: &Buffer) -> Region {
    Region::new(buffer.clone(), Layout::contiguous(&[buffer.len()], 1).unwrap()).unwrap()
}

fn options(schedule: Schedule) -> ToyOptions {
    ToyOptions { schedule, ..ToyOptions::default() }
}

#[test]
fn work_runs_later_and_only_when_waited_for() {
    let device = OpaqueDevice::with_options(0, options(Schedule::WhenWaitedFor));
    let queue = device.create_queue().unwrap();
    let there = device.allocate(4, &*queue).unwrap();
    let source = Buffer::from_vec(vec![7; 4]);
    queue.copy(&source, &there).unwrap();
    let back = device.allocate_staging(4).unwrap();
    queue.copy(&there, &back).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(20));
    assert_eq!(back.host_read().unwrap_err().kind, BufferErrorKind::NotReady);
    assert_eq!(source.host_write().unwrap_err().kind, BufferErrorKind::NotReady);
    assert_eq!(device.counters().host_waits, 0);
    back.wait().unwrap();
    assert_eq!(&*back.host_read().unwrap(), &[7; 4]);
    let counters = device.counters();
    assert_eq!((counters.host_to_device.bytes, counters.device_to_host.copies, counters.host_waits), (4, 1, 1));
    device.assert_clean();
}

#[test]
fn a_second_queue_waits_on_its_own_thread() {
    let device = OpaqueDevice::with_options(1, options(Schedule::WhenWaitedFor));
    let (first, second) = (device.create_queue().unwrap(), device.create_queue().unwrap());
    let (a, b) = (device.allocate(1000, &*first).unwrap(), device.allocate(1000, &*second).unwrap());
    first.fill_region(&whole(&a), &[3]).unwrap();
    second.copy(&a, &b).unwrap();
    first.fill_region(&whole(&a), &[4]).unwrap();
    let back = device.allocate_staging(1000).unwrap();
    second.copy(&b, &back).unwrap();
    assert_eq!(device.counters().host_waits, 0);
    back.wait().unwrap();
    assert!(back.host_read().unwrap().iter().all(|&byte| byte == 3));
    device.assert_clean();
}

#[test]
fn races_are_found_whatever_the_timing() {
    let device = OpaqueDevice::with_options(2, ToyOptions { fault: Some(ToyFault::IgnoresWaits), ..options(Schedule::WhenWaitedFor) });
    let (first, second) = (device.create_queue().unwrap(), device.create_queue().unwrap());
    let a = device.allocate(16, &*first).unwrap();
    second.fill_region(&whole(&a), &[3]).unwrap();
    let violations = device.violations();
    assert_eq!(violations.len(), 1, "{violations:?}");
    assert_eq!(violations[0].kind, ViolationKind::Race);
}

#[test]
fn what_the_host_waited_for_is_ordered() {
    let device = OpaqueDevice::with_options(3, ToyOptions { fault: Some(ToyFault::IgnoresWaits), ..options(Schedule::WhenWaitedFor) });
    let (first, second) = (device.create_queue().unwrap(), device.create_queue().unwrap());
    let a = device.allocate(16, &*first).unwrap();
    a.wait().unwrap();
    second.fill_region(&whole(&a), &[3]).unwrap();
    device.assert_clean();
}

#[test]
fn forgotten_events_free_memory_in_use() {
    let device = OpaqueDevice::with_options(4, ToyOptions { fault: Some(ToyFault::ForgetsEvents), ..options(Schedule::WhenWaitedFor) });
    let queue = device.create_queue().unwrap();
    drop(device.allocate(16, &*queue).unwrap());
    assert!(device.violations().iter().any(|violation| violation.kind == ViolationKind::FreedInUse));
}

#[test]
fn buffers_may_go_before_their_work_is_done() {
    for schedule in [Schedule::Soon, Schedule::Delayed { seed: 1 }, Schedule::WhenWaitedFor] {
        let device = OpaqueDevice::with_options(5, options(schedule));
        let queue = device.create_queue().unwrap();
        let back = device.allocate_staging(64).unwrap();
        {
            let staging = device.allocate_staging(64).unwrap();
            staging.host_write().unwrap().fill(9);
            let there = device.allocate(64, &*queue).unwrap();
            queue.copy(&staging, &there).unwrap();
            queue.copy(&there, &back).unwrap();
        }
        assert_eq!((device.counters().live_bytes, device.counters().peak_bytes), (0, 64));
        drop(queue);
        back.wait().unwrap();
        assert_eq!(&*back.host_read().unwrap(), &[9; 64]);
        // Plain host memory cannot be freed behind the work: dropping it waits.
        let queue = device.create_queue().unwrap();
        let there = device.allocate(8, &*queue).unwrap();
        queue.copy(&Buffer::from_vec(vec![1; 8]), &there).unwrap();
        assert!(there.is_idle().unwrap());
        device.assert_clean();
    }
}

#[test]
fn uninitialised_reads_are_found() {
    let device = OpaqueDevice::new(6);
    let queue = device.create_queue().unwrap();
    let (a, b) = (device.allocate(8, &*queue).unwrap(), device.allocate(8, &*queue).unwrap());
    queue.fill_region(&whole(&a.slice(0..7).unwrap()), &[1]).unwrap();
    queue.copy(&a, &b).unwrap();
    let back = device.allocate_staging(8).unwrap();
    queue.copy(&b.slice(0..7).unwrap(), &back.slice(0..7).unwrap()).unwrap();
    back.wait().unwrap();
    device.assert_clean();
    queue.copy(&b, &back).unwrap();
    back.wait().unwrap();
    assert_eq!(device.violations().iter().map(|violation| violation.kind).collect::<Vec<_>>(), [ViolationKind::UninitialisedRead]);
}

#[test]
fn memory_is_limited() {
    let device = OpaqueDevice::with_options(7, ToyOptions { memory_limit: Some(100), ..ToyOptions::default() });
    let queue = device.create_queue().unwrap();
    let a = device.allocate(60, &*queue).unwrap();
    assert_eq!(device.allocate(60, &*queue).unwrap_err().kind, BufferErrorKind::OutOfMemory);
    drop(a);
    assert!(device.allocate(60, &*queue).is_ok());
    assert_eq!(device.counters().peak_bytes, 60);
}

/// The stages `bytes`, `zstd` over a chunk of `len` bytes.
fn stages(len: u64) -> Vec<Stage> {
    let array = ArrayRepresentation { data_type: DataType::UInt8, shape: vec![len], fill_value: FillValue::default_for(&DataType::UInt8) };
    let (array, raw) = (Representation::Array(array), Representation::Bytes(ByteLen::Exact(len)));
    let packed = Representation::Bytes(ByteLen::Exact(len).compressed());
    vec![
        Stage { codec: Extension::new("bytes"), decoded: array, encoded: raw.clone() },
        Stage { codec: Extension::new("zstd"), decoded: raw, encoded: packed },
    ]
}

fn bound(provider: &ToyProvider, len: u64) -> Arc<dyn DeviceSegment> {
    let bound = provider.bind(&stages(len), Direction::Decode).unwrap().unwrap();
    assert_eq!(bound.consumed, 2);
    let Segment::Device(segment) = bound.segment else { panic!("a host segment") };
    segment
}

fn decode_a_batch(device: &dyn Device, provider: &ToyProvider) {
    let queue = device.create_queue().unwrap();
    let segment = bound(provider, 6);
    let upload = |bytes: &[u8]| {
        let buffer = device.allocate_staging(bytes.len()).unwrap();
        buffer.host_write().unwrap().copy_from_slice(bytes);
        if device.is_unified() {
            return buffer;
        }
        let there = device.allocate(bytes.len(), &*queue).unwrap();
        queue.copy(&buffer, &there).unwrap();
        there
    };
    let chunk = |byte: u8| zstd::bulk::compress(&[byte, 2, 3, 4, 5, 6], 1).unwrap();
    let mut broken = chunk(1);
    broken.truncate(9);
    let output = device.allocate(24, &*queue).unwrap();
    queue.fill_region(&whole(&output), &[9]).unwrap();
    // Each chunk is 2 x 3, in the two columns of an output of 4 x 6.
    let layout = |row: usize, column: usize| Layout { offset: row * 6 + column, shape: vec![2, 3], strides: vec![6, 1], item_size: 1 };
    let slots: Vec<DeviceSlot> = [(chunk(1), 0, 0), (broken, 0, 3), (chunk(3), 2, 3)]
        .into_iter()
        .map(|(bytes, row, column)| DeviceSlot {
            encoded: upload(&bytes),
            decoded: Region::new(output.clone(), layout(row, column)).unwrap(),
        })
        .collect();
    let context = DeviceContext { device, queue: &*queue, scratch_budget: 0 };
    if !device.is_unified() {
        assert!(segment.decode(&slots, &context).is_err());
    }
    let context = DeviceContext { scratch_budget: segment.scratch_len(slots.len()), ..context };
    let statuses = segment.decode(&slots, &context).unwrap().wait().unwrap();
    assert_eq!(statuses.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, false, true]);
    let back = device.allocate_staging(24).unwrap();
    queue.copy(&output, &back).unwrap();
    back.wait().unwrap();
    let expected = [[1, 2, 3, 0, 0, 0], [4, 5, 6, 0, 0, 0], [9, 9, 9, 3, 2, 3], [9, 9, 9, 4, 5, 6]];
    assert_eq!(&*back.host_read().unwrap(), expected.as_flattened());
}

#[test]
fn a_batch_decodes_and_a_bad_slot_fails_alone() {
    for schedule in [Schedule::Soon, Schedule::Delayed { seed: 2 }, Schedule::WhenWaitedFor] {
        let device = OpaqueDevice::with_options(8, options(schedule));
        decode_a_batch(&*device, &device.provider());
        device.assert_clean();
        let counters = device.counters();
        assert_eq!((counters.kernel_launches, counters.kernel_slots, counters.status_copies), (1, 3, 1));
        assert_eq!((counters.host_to_device.copies, counters.device_to_host.copies), (3, 1));
        let device = UnifiedDevice::with_options(9, options(schedule));
        decode_a_batch(&*device, &device.provider());
        device.assert_clean();
        let counters = device.counters();
        assert_eq!((counters.bus_copies(), counters.status_copies), (0, 0));
    }
}

fn encode_a_batch(device: &dyn Device, provider: &ToyProvider) {
    let queue = device.create_queue().unwrap();
    let Segment::Device(segment) = provider.bind(&stages(600), Direction::Encode).unwrap().unwrap().segment else {
        panic!("a host segment")
    };
    let output = device.allocate(1200, &*queue).unwrap();
    // Each chunk is 200 x 3, in the two columns of 200 x 6.
    let columns = [0, 3].map(|offset| {
        let column = Layout { offset, shape: vec![200, 3], strides: vec![6, 1], item_size: 1 };
        Region::new(output.clone(), column).unwrap()
    });
    queue.fill_region(&columns[0], &[1]).unwrap();
    queue.fill_region(&columns[1], &[2]).unwrap();
    let context = DeviceContext { device, queue: &*queue, scratch_budget: segment.scratch_len(2) };
    let over = DeviceContext { scratch_budget: context.scratch_budget - 1, ..context };
    assert_eq!(segment.encode(&columns, &over).unwrap_err().kind(), CodecErrorKind::Limit);
    assert!(segment.encode(&[whole(&output)], &context).is_err());
    let Encoded { bytes, ticket } = segment.encode(&columns, &context).unwrap();
    drop((columns, output));
    let ranges: Vec<_> = ticket.wait().unwrap().into_iter().map(Result::unwrap).collect();
    assert_eq!((ranges[0].start, ranges[1].start), (0, ranges[0].end));
    let back = device.allocate_staging(ranges[1].end).unwrap();
    queue.copy(&bytes.slice(0..ranges[1].end).unwrap(), &back).unwrap();
    back.wait().unwrap();
    for (range, byte) in ranges.into_iter().zip([1, 2]) {
        let frame = &back.host_read().unwrap()[range];
        assert!(frame.len() < 50);
        assert_eq!(zstd::bulk::decompress(frame, 600).unwrap(), [byte; 600]);
    }
}

#[test]
fn a_batch_encodes_to_sizes_that_the_device_finds() {
    for schedule in [Schedule::Soon, Schedule::Delayed { seed: 3 }, Schedule::WhenWaitedFor] {
        let device = OpaqueDevice::with_options(8, options(schedule));
        encode_a_batch(&*device, &device.provider());
        device.assert_clean();
        let counters = device.counters();
        assert_eq!((counters.kernel_launches, counters.kernel_slots, counters.status_copies), (1, 2, 1));
        assert_eq!((counters.bus_copies(), counters.live_bytes), (1, 0));
        let device = UnifiedDevice::with_options(9, options(schedule));
        encode_a_batch(&*device, &device.provider());
        device.assert_clean();
        assert_eq!((device.counters().bus_copies(), device.counters().status_copies), (0, 0));
    }
}

#[test]
fn what_lies_behind_encoded_chunks_was_never_written() {
    let device = OpaqueDevice::new(11);
    let queue = device.create_queue().unwrap();
    let Segment::Device(segment) = device.provider().bind(&stages(600), Direction::Encode).unwrap().unwrap().segment else {
        panic!("a host segment")
    };
    let source = device.allocate(600, &*queue).unwrap();
    let context = DeviceContext { device: &*device, queue: &*queue, scratch_budget: segment.scratch_len(1) };
    queue.fill_region(&whole(&source.slice(1..600).unwrap()), &[1]).unwrap();
    let encoded = segment.encode(&[whole(&source)], &context).unwrap();
    encoded.ticket.wait().unwrap();
    let violations = || device.violations().iter().map(|violation| violation.kind).collect::<Vec<_>>();
    assert_eq!(violations(), [ViolationKind::UninitialisedRead]);
    let back = device.allocate_staging(encoded.bytes.len()).unwrap();
    queue.copy(&encoded.bytes, &back).unwrap();
    back.wait().unwrap();
    assert_eq!(violations(), [ViolationKind::UninitialisedRead; 2]);
}

#[test]
fn the_provider_knows_its_limits() {
    let provider = OpaqueDevice::new(10).provider();
    let gzip = Extension::new("gzip");
    let bytes = Representation::Bytes(ByteLen::Exact(4));
    assert!(provider.encoded_representation(&gzip, &bytes, &Limits::default()).unwrap().is_none());
    assert!(provider.clone().without("zstd").bind(&stages(4), Direction::Decode).unwrap().is_none());
    assert_eq!(provider.clone().unfused().bind(&stages(4), Direction::Decode).unwrap().unwrap().consumed, 1);
    let encoded = |provider: ToyProvider| provider.bind(&stages(4), Direction::Encode).unwrap().map(|bound| bound.consumed);
    assert_eq!(encoded(provider.clone()), Some(2));
    assert_eq!(encoded(provider.clone().unfused()), Some(1));
    assert_eq!(encoded(provider.clone().without_encoding("zstd")), Some(1));
    assert_eq!(encoded(provider.clone().without_encoding("bytes")), None);
    assert_eq!(provider.clone().without_encoding("zstd").bind(&stages(4), Direction::Decode).unwrap().unwrap().consumed, 2);
    // Bytes that come from the host are encoded there.
    assert!(provider.bind(&stages(4)[1..], Direction::Encode).unwrap().is_none());
}

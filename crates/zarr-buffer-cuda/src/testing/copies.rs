use std::sync::Arc;

use zarr_buffer_api::{Buffer, BufferErrorKind, Device, Queue};

use super::{Chance, Test, busy, download, ensure, pattern, same, upload, words};
use crate::{CudaDevice, CudaQueue, devices};

pub(super) const TESTS: &[(&str, Test)] = &[
    ("copies/places", places),
    ("copies/chained", chained),
    ("copies/nothing_waits", nothing_waits),
    ("copies/upload", upload_returns),
    ("copies/other_devices", other_devices),
];

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Device,
    Pinned,
    Pageable,
}

const KINDS: [Kind; 3] = [Kind::Device, Kind::Pinned, Kind::Pageable];

fn make(device: &CudaDevice, queue: &CudaQueue, kind: Kind, bytes: &[u8]) -> Result<Buffer, String> {
    match kind {
        Kind::Device => upload(device, queue, bytes),
        Kind::Pinned => {
            let buffer = device.allocate_staging(bytes.len()).map_err(words)?;
            buffer.host_write().map_err(words)?.copy_from_slice(bytes);
            Ok(buffer)
        }
        Kind::Pageable => Ok(Buffer::from_vec(bytes.to_vec())),
    }
}

fn contents(device: &CudaDevice, queue: &CudaQueue, buffer: &Buffer) -> Result<Vec<u8>, String> {
    if !buffer.is_host_visible() {
        return download(device, queue, buffer);
    }
    buffer.wait().map_err(words)?;
    let read = buffer.host_read().map_err(words)?;
    Ok(read.to_vec())
}

fn places(device: &Arc<CudaDevice>) -> Result<(), String> {
    let queue = device.queue().map_err(words)?;
    let mut chance = Chance(1);
    for len in [1, 5, 4096, (4 << 20) - 1, 4 << 20, (4 << 20) + 1, (9 << 20) + 3] {
        for (index, from) in KINDS.into_iter().enumerate() {
            for (other, to) in KINDS.into_iter().enumerate() {
                let bytes = pattern(len, (index * 3 + other) as u64);
                let canary = pattern(len + 64, 99);
                let (lead, into) = (chance.below(33), chance.below(33));
                let source = make(device, &queue, from, &[&canary[..lead], &bytes].concat())?;
                let target = make(device, &queue, to, &canary)?;
                let part = source.slice(lead..lead + len).map_err(words)?;
                queue.copy(&part, &target.slice(into..into + len).map_err(words)?).map_err(words)?;
                // The copy keeps what it needs.
                drop((source, part));
                let mut expected = canary;
                expected[into..into + len].copy_from_slice(&bytes);
                same(&format!("{len} bytes from {from:?} to {to:?}"), &contents(device, &queue, &target)?, &expected)?;
            }
        }
    }
    Ok(())
}

/// From place to place by several queues, and nobody waits but for the last.
fn chained(device: &Arc<CudaDevice>) -> Result<(), String> {
    let queues = (0..3).map(|_| device.queue().map_err(words)).collect::<Result<Vec<_>, _>>()?;
    let mut chance = Chance(2);
    for round in 0..30 {
        let len = 1 + chance.below(6 << 20);
        let bytes = pattern(len, round);
        let mut last = make(device, &queues[0], Kind::Pageable, &bytes)?;
        let nothing = vec![0; len];
        for _ in 0..8 {
            let next = make(device, &queues[0], chance.one_of(&KINDS), &nothing)?;
            queues[chance.below(3)].copy(&last, &next).map_err(words)?;
            last = next;
        }
        same("at the end of a chain of copies", &contents(device, &queues[0], &last)?, &bytes)?;
    }
    Ok(())
}

/// Everything a queue does returns while the queue is busy.
fn nothing_waits(device: &Arc<CudaDevice>) -> Result<(), String> {
    const LEN: usize = 9 << 20;
    let (queue, second) = (device.queue().map_err(words)?, device.queue().map_err(words)?);
    let mut seen = Vec::new();
    for round in 0..10 {
        let bytes = pattern(LEN, round);
        let pageable = Buffer::from_vec(bytes.clone());
        let pinned = make(device, &queue, Kind::Pinned, &bytes)?;
        let back = Buffer::from_vec(vec![0; LEN]);
        let between = Buffer::from_vec(vec![0; LEN]);
        let buffers = (0..3).map(|_| device.allocate(LEN, &*queue).map_err(words)).collect::<Result<Vec<_>, _>>()?;
        queue.synchronize().map_err(words)?;
        let event = busy(device, &queue)?;
        let mut late = Vec::new();
        let mut after = |what: &'static str| -> Result<(), String> {
            if event.is_complete().map_err(words)? {
                late.push(what);
            }
            Ok(())
        };
        after("the work itself")?;
        queue.copy(&pageable, &buffers[0]).map_err(words)?;
        after("pageable to device")?;
        queue.copy(&pinned, &buffers[1]).map_err(words)?;
        after("pinned to device")?;
        queue.copy(&buffers[0], &back).map_err(words)?;
        after("device to pageable")?;
        queue.copy(&back, &between).map_err(words)?;
        after("host to host")?;
        second.copy(&between, &buffers[2]).map_err(words)?;
        after("from a pending host buffer, on another queue")?;
        let fresh = device.allocate(LEN, &*queue).map_err(words)?;
        after("allocate")?;
        queue.copy(&buffers[2], &fresh).map_err(words)?;
        drop((buffers, pinned));
        after("drop")?;
        same("behind a busy queue", &download(device, &queue, &fresh)?, &bytes)?;
        back.wait().map_err(words)?;
        if late.is_empty() {
            return Ok(());
        }
        seen.push(late);
    }
    Err(format!("10 times, the queue was idle after something: {seen:?}"))
}

fn upload_returns(device: &Arc<CudaDevice>) -> Result<(), String> {
    let queue = device.queue().map_err(words)?;
    let buffers = (0..50).map(|_| device.allocate(3000, &*queue).map_err(words)).collect::<Result<Vec<_>, _>>()?;
    let mut bytes = vec![0; 3000];
    for (index, buffer) in buffers.iter().enumerate() {
        bytes.copy_from_slice(&pattern(3000, index as u64));
        queue.upload(&bytes, buffer).map_err(words)?;
    }
    for (index, buffer) in buffers.iter().enumerate() {
        same("uploaded", &download(device, &queue, buffer)?, &pattern(3000, index as u64))?;
    }
    let wrong = queue.upload(&bytes, &buffers[0].slice(0..10).map_err(words)?);
    ensure!(wrong.is_err_and(|error| error.kind == BufferErrorKind::Parameter), "an upload of other length was accepted");
    Ok(())
}

fn other_devices(device: &Arc<CudaDevice>) -> Result<(), String> {
    let here = device.queue().map_err(words)?;
    for info in devices().map_err(words)?.into_iter().filter(|info| info.ordinal != device.info().ordinal) {
        let other = CudaDevice::new(info.ordinal).map_err(words)?;
        let there = other.queue().map_err(words)?;
        for len in [1, 1000, (5 << 20) + 1] {
            let bytes = pattern(len, 5);
            let source = upload(device, &here, &bytes)?;
            let middle = other.allocate(len, &*there).map_err(words)?;
            let last = device.allocate(len, &*here).map_err(words)?;
            there.copy(&source, &middle).map_err(words)?;
            here.copy(&middle, &last).map_err(words)?;
            drop((source, middle));
            same(&format!("to {} and back", info.id()), &download(device, &here, &last)?, &bytes)?;
        }
        let foreign = device.allocate(8, &*there).map(drop);
        ensure!(foreign.is_err_and(|error| error.kind == BufferErrorKind::Parameter), "memory was allocated on another device's queue");
    }
    Ok(())
}

use std::sync::Arc;

use zarr_buffer_api::{BufferErrorKind, Device, Queue};

use super::{Test, busy, download, ensure, pattern, same, upload, words};
use crate::{CudaDevice, CudaDeviceOptions, devices};

pub(super) const TESTS: &[(&str, Test)] = &[
    ("memory/facts", facts),
    ("memory/budget", budget),
    ("memory/pool_is_reused", pool_is_reused),
    ("memory/freed_behind_work", freed_behind_work),
    ("memory/staging_is_reused", staging_is_reused),
    ("memory/staging_limit", staging_limit),
    ("memory/trim", trim),
    ("memory/second_handle", second_handle),
];

fn facts(device: &Arc<CudaDevice>) -> Result<(), String> {
    let info = device.info();
    ensure!(devices().map_err(words)?.contains(info), "the device is not in the list of devices");
    ensure!(info.compute_capability.0 >= 5 && info.multiprocessors > 0, "{info:?}");
    ensure!(info.uuid.len() == 40 && info.uuid.starts_with("GPU-"), "the UUID is {}", info.uuid);
    ensure!(info.driver_version.0 >= 12, "the driver's version is {:?}", info.driver_version);
    ensure!(info.shared_memory_per_block >= 48 << 10, "{info:?}");
    let (free, total) = device.free_memory().map_err(words)?;
    ensure!(free <= total && total > 1 << 30, "{free} of {total} bytes are free");
    let other = CudaDevice::new(i32::MAX).map(drop);
    ensure!(other.is_err_and(|error| error.kind == BufferErrorKind::Parameter), "there is a device 2147483647");
    ensure!(CudaDevice::new(-1).is_err(), "there is a device -1");
    Ok(())
}

fn limited(device: &CudaDevice, options: CudaDeviceOptions) -> Result<Arc<CudaDevice>, String> {
    CudaDevice::with_options(device.info().ordinal, options).map_err(words)
}

fn budget(device: &Arc<CudaDevice>) -> Result<(), String> {
    let device = limited(device, CudaDeviceOptions { memory_limit: Some(1 << 20), ..CudaDeviceOptions::default() })?;
    let queue = device.queue().map_err(words)?;
    for _ in 0..3 {
        let first = device.allocate(600 << 10, &*queue).map_err(words)?;
        ensure!(device.memory_in_use() == 600 << 10, "{} bytes in use", device.memory_in_use());
        let refused = device.allocate(500 << 10, &*queue).map(drop);
        ensure!(refused.is_err_and(|error| error.kind == BufferErrorKind::OutOfMemory), "more than the budget");
        let exportable = device.allocate_exportable(500 << 10).map(drop);
        ensure!(exportable.is_err_and(|error| error.kind == BufferErrorKind::OutOfMemory), "more than the budget, for export");
        let second = device.allocate(424 << 10, &*queue).map_err(words)?;
        drop((first, second));
        ensure!(device.memory_in_use() == 0, "{} bytes in use", device.memory_in_use());
    }
    let whole = device.allocate(1 << 20, &*queue).map_err(words)?;
    ensure!(whole.len() == 1 << 20, "{} bytes", whole.len());
    Ok(())
}

fn pool_is_reused(device: &Arc<CudaDevice>) -> Result<(), String> {
    const LEN: usize = 64 << 20;
    let device = limited(device, CudaDeviceOptions::default())?;
    let queue = device.queue().map_err(words)?;
    for round in 0..500 {
        let buffer = device.allocate(LEN, &*queue).map_err(words)?;
        queue.fill_bytes(&buffer, round as u8).map_err(words)?;
    }
    let reserved = device.memory_reserved().map_err(words)?;
    ensure!(reserved <= 4 * LEN as u64, "{reserved} bytes held for buffers of {LEN}, one at a time");
    queue.synchronize().map_err(words)
}

fn freed_behind_work(device: &Arc<CudaDevice>) -> Result<(), String> {
    let (first, second) = (device.queue().map_err(words)?, device.queue().map_err(words)?);
    let bytes = pattern(1 << 20, 1);
    for attempt in 0..20 {
        let source = upload(device, &first, &bytes)?;
        let copies: Vec<_> = (0..2).map(|_| device.allocate(bytes.len(), &*first).map_err(words)).collect::<Result<_, String>>()?;
        let event = busy(device, &first)?;
        first.copy(&source, &copies[0]).map_err(words)?;
        second.copy(&source, &copies[1]).map_err(words)?;
        let before = event.is_complete().map_err(words)?;
        // Used by two queues, both of them late.
        drop(source);
        let after = event.is_complete().map_err(words)?;
        // Whatever gets that memory now must not write to it before the copies are done.
        for _ in 0..8 {
            let other = device.allocate(bytes.len(), &*second).map_err(words)?;
            second.fill_bytes(&other, 0xEE).map_err(words)?;
        }
        for copy in &copies {
            same("a copy of a buffer that is gone", &download(device, &first, copy)?, &bytes)?;
        }
        if !before && !after {
            return Ok(());
        }
        ensure!(attempt < 19, "20 times, dropping a buffer took as long as the work on it, or the work no time");
    }
    Ok(())
}

fn staging_is_reused(device: &Arc<CudaDevice>) -> Result<(), String> {
    let device = limited(device, CudaDeviceOptions::default())?;
    let queue = device.queue().map_err(words)?;
    let first = device.allocate_staging(1_000_000).map_err(words)?;
    ensure!(first.host_read().map_err(words)?.iter().all(|&byte| byte == 0), "new staging memory is not zero");
    let (address, total) = (first.address(), device.staging_memory());
    drop(first);
    let second = device.allocate_staging(990_000).map_err(words)?;
    ensure!(second.address() == address && device.staging_memory() == total, "idle staging memory was not reused");
    // In use by a queue when it is dropped: not lent out before that is done.
    let there = device.allocate(second.len(), &*queue).map_err(words)?;
    for round in 0..200 {
        let bytes = pattern(990_000, round);
        queue.upload(&bytes, &there).map_err(words)?;
        if round % 50 == 0 {
            same("uploaded through reused memory", &download(&device, &queue, &there)?, &bytes)?;
        }
    }
    ensure!(device.staging_memory() < 250 * total, "nothing is reused: {} bytes", device.staging_memory());
    Ok(())
}

fn staging_limit(device: &Arc<CudaDevice>) -> Result<(), String> {
    let device = limited(device, CudaDeviceOptions { staging_limit: Some(1 << 20), ..CudaDeviceOptions::default() })?;
    let first = device.allocate_staging(600 << 10).map_err(words)?;
    let refused = device.allocate_staging(600 << 10).map(drop);
    ensure!(refused.is_err_and(|error| error.kind == BufferErrorKind::OutOfMemory), "more than the limit");
    drop(first);
    // Of another length: what is spare makes room.
    let whole = device.allocate_staging(1 << 20).map_err(words)?;
    ensure!(device.staging_memory() == 1 << 20, "{} bytes", device.staging_memory());
    drop(whole);
    let beyond = device.allocate_staging((1 << 20) + 1).map(drop);
    ensure!(beyond.is_err_and(|error| error.kind == BufferErrorKind::OutOfMemory), "more than the limit at once");
    Ok(())
}

fn trim(device: &Arc<CudaDevice>) -> Result<(), String> {
    let device = limited(device, CudaDeviceOptions::default())?;
    let queue = device.queue().map_err(words)?;
    let staging = device.allocate_staging(1 << 20).map_err(words)?;
    let buffer = device.allocate(64 << 20, &*queue).map_err(words)?;
    let held = device.allocate(1 << 20, &*queue).map_err(words)?;
    drop((staging, buffer));
    queue.synchronize().map_err(words)?;
    device.trim(0).map_err(words)?;
    ensure!(device.staging_memory() == 0, "{} bytes of staging memory", device.staging_memory());
    let reserved = device.memory_reserved().map_err(words)?;
    ensure!((1 << 20..=128 << 20).contains(&reserved), "{reserved} bytes are held");
    drop(held);
    Ok(())
}

fn second_handle(device: &Arc<CudaDevice>) -> Result<(), String> {
    // A device is not a place of its own: queues of one work on buffers of another handle to the same.
    let other = limited(device, CudaDeviceOptions::default())?;
    let (queue, other_queue) = (device.queue().map_err(words)?, other.queue().map_err(words)?);
    let bytes = pattern(10_000, 9);
    let here = upload(device, &queue, &bytes)?;
    let there = other.allocate(bytes.len(), &*queue).map_err(words)?;
    other_queue.copy(&here, &there).map_err(words)?;
    drop((other, other_queue, here));
    same("through two handles", &download(device, &queue, &there)?, &bytes)
}

use std::any::Any;
use std::ffi::c_void;
use std::sync::Arc;

use zarr_buffer_api::{BufferError, BufferErrorKind, Device, Event, EventState, HostDevice, Layout, Queue, QueueId, Region};

use super::{Chance, Test, busy, download, ensure, pattern, same, upload, words};
use crate::{CudaDevice, CudaModule, CudaQueue};

pub(super) const TESTS: &[(&str, Test)] = &[
    ("queues/take_turns", take_turns),
    ("queues/many_threads", many_threads),
    ("queues/raw_streams", raw_streams),
    ("queues/foreign_events", foreign_events),
    ("queues/events_wait", events_wait),
    ("queues/marks", marks),
    ("queues/modules", modules),
];

/// Two queues write and read the same bytes in turns, ordered by nothing but the buffers' events.
fn take_turns(device: &Arc<CudaDevice>) -> Result<(), String> {
    const LEN: usize = 1 << 20;
    let queues = [device.queue().map_err(words)?, device.queue().map_err(words)?];
    let (a, b) = (upload(device, &queues[0], &[0; LEN])?, upload(device, &queues[0], &[0; LEN])?);
    let whole = |buffer: &zarr_buffer_api::Buffer| {
        Region::new(buffer.clone(), Layout { offset: 0, shape: vec![LEN / 2], strides: vec![2], item_size: 1 }).map_err(words)
    };
    for round in 0..300usize {
        // Every second byte, so that a kernel does it.
        queues[round % 2].fill_region(&whole(&a)?, &[round as u8]).map_err(words)?;
        queues[(round + 1) % 2].copy(&a, &b).map_err(words)?;
    }
    let expected: Vec<u8> = (0..LEN).map(|index| if index % 2 == 0 { (299 % 256) as u8 } else { 0 }).collect();
    same("after the last turn", &download(device, &queues[0], &b)?, &expected)
}

fn many_threads(device: &Arc<CudaDevice>) -> Result<(), String> {
    let common = device.queue().map_err(words)?;
    let setup = pattern(100_000, 77);
    let shared = upload(device, &common, &setup)?;
    std::thread::scope(|scope| {
        let work = |index: u64| {
            let (common, shared, setup) = (&common, &shared, &setup);
            move || -> Result<(), String> {
                let own = device.queue().map_err(words)?;
                let mut chance = Chance(index);
                for round in 0..100 {
                    let queue = if chance.below(2) == 0 { &own } else { common };
                    let len = 1 + chance.below(200_000);
                    let bytes = pattern(len, index * 1000 + round);
                    let first = upload(device, queue, &bytes)?;
                    let second = device.allocate(len, &**common).map_err(words)?;
                    own.copy(&first, &second).map_err(words)?;
                    drop(first);
                    same("a thread's own bytes", &download(device, queue, &second)?, &bytes)?;
                    if round % 20 == 0 {
                        same("bytes that all read", &download(device, &own, shared)?, setup)?;
                    }
                }
                Ok(())
            }
        };
        let threads: Vec<_> = (0..12).map(|index| scope.spawn(work(index))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().unwrap_or_else(|_| Err("a thread panicked".into())))
    })
}

fn borrow(device: &CudaDevice, stream: *mut c_void) -> Result<Arc<CudaQueue>, String> {
    // SAFETY: the default streams live for ever; other callers here keep the stream's owner longer than this.
    unsafe { CudaQueue::from_raw_stream(device, stream) }.map_err(words)
}

fn raw_streams(device: &Arc<CudaDevice>) -> Result<(), String> {
    let owner = device.queue().map_err(words)?;
    let streams = [std::ptr::null_mut(), CudaQueue::LEGACY_DEFAULT, CudaQueue::PER_THREAD_DEFAULT, owner.stream()];
    for stream in streams {
        let queue = borrow(device, stream)?;
        ensure!(queue.id() != owner.id(), "two queues have one id");
        let bytes = pattern(100_000, 6);
        let first = upload(device, &queue, &bytes)?;
        let second = device.allocate(bytes.len(), &*queue).map_err(words)?;
        // The other way round, too: a queue of ours sees what is written there.
        owner.copy(&first, &second).map_err(words)?;
        drop(first);
        same(&format!("on the stream {stream:p}"), &download(device, &queue, &second)?, &bytes)?;
        queue.synchronize().map_err(words)?;
    }
    let of_this_thread = borrow(device, CudaQueue::PER_THREAD_DEFAULT)?;
    let elsewhere = std::thread::scope(|scope| scope.spawn(|| of_this_thread.record().map(drop)).join());
    let refused = elsewhere.map_err(|_| "a thread panicked".to_string())?;
    ensure!(refused.is_err_and(|error| error.kind == BufferErrorKind::Parameter), "a thread used another's default stream");
    Ok(())
}

/// An event of no device, that never comes.
#[derive(Debug)]
struct Never(QueueId);

impl EventState for Never {
    fn queue(&self) -> QueueId {
        self.0
    }
    fn is_complete(&self) -> Result<bool, BufferError> {
        Ok(false)
    }
    fn wait(&self) -> Result<(), BufferError> {
        Err(BufferError::new(BufferErrorKind::Device, "it never comes"))
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

fn foreign_events(device: &Arc<CudaDevice>) -> Result<(), String> {
    let queue = device.queue().map_err(words)?;
    let host = HostDevice.create_queue().map_err(words)?;
    queue.wait_for(&host.record().map_err(words)?).map_err(words)?;
    let never = queue.wait_for(&Event::new(Never(QueueId::unique())));
    ensure!(never.is_err_and(|error| error.kind == BufferErrorKind::NotReady), "a queue waits for an event that no stream knows");
    same("afterwards", &download(device, &queue, &upload(device, &queue, &[1, 2, 3])?)?, &[1, 2, 3])
}

fn events_wait(device: &Arc<CudaDevice>) -> Result<(), String> {
    let (queue, second) = (device.queue().map_err(words)?, device.queue().map_err(words)?);
    let mut early = 0;
    for _ in 0..5 {
        let event = busy(device, &queue)?;
        second.wait_for(&event).map_err(words)?;
        let behind = second.record().map_err(words)?;
        early += usize::from(!behind.is_complete().map_err(words)?);
        behind.wait().map_err(words)?;
        ensure!(event.is_complete().map_err(words)?, "a queue did not wait for an event");
        event.wait().map_err(words)?;
    }
    ensure!(early > 0, "waiting for an event in a queue made the host wait");
    Ok(())
}

fn marks(device: &Arc<CudaDevice>) -> Result<(), String> {
    let queue = device.queue().map_err(words)?;
    let buffer = device.allocate(256 << 20, &*queue).map_err(words)?;
    let start = queue.mark().map_err(words)?;
    for _ in 0..20 {
        queue.fill_bytes(&buffer, 1).map_err(words)?;
    }
    let end = queue.mark().map_err(words)?;
    let milliseconds = start.milliseconds_to(&end).map_err(words)?;
    let rate = 20.0 * 256.0 / 1024.0 / (milliseconds / 1000.0);
    ensure!((10.0..100_000.0).contains(&rate), "fills at {rate} GiB/s: {milliseconds} ms");
    Ok(())
}

fn modules(device: &Arc<CudaDevice>) -> Result<(), String> {
    let refused = CudaModule::load(device, b"not a fatbin").map(drop);
    ensure!(refused.is_err_and(|error| error.kind == BufferErrorKind::Parameter), "a module of twelve bytes was loaded");
    let module = crate::regions::module(device).map_err(words)?;
    ensure!(module.function("no_such_kernel").is_err(), "there is a kernel of that name");
    let function = module.function("regions_turn_4").map_err(words)?;
    ensure!(function.static_shared_bytes().map_err(words)? == 32 * 33 * 4, "{function:?} has other shared memory");
    ensure!(function.registers().map_err(words)? > 0 && function.local_bytes().map_err(words)? == 0, "{function:?} spills");
    ensure!(function.max_block().map_err(words)? >= 256, "{function:?} takes small blocks only");
    ensure!(function.blocks_per_multiprocessor(256, 0).map_err(words)? >= 2, "{function:?} fills a multiprocessor");
    let most = device.info().shared_memory_per_block - function.static_shared_bytes().map_err(words)?;
    ensure!(function.blocks_per_multiprocessor(256, most).map_err(words)? >= 1, "{most} bytes of shared memory are too many");
    let beyond = function.blocks_per_multiprocessor(256, device.info().shared_memory_per_block + 1);
    ensure!(beyond.is_err(), "more shared memory than there is was accepted");
    Ok(())
}

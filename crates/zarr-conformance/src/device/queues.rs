use zarr_buffer_api::{Buffer, Device, HostDevice, Layout, Region};

use super::{DeviceCase, case, download, ensure_holds, pattern, upload};
use crate::suite::{Broken, Trial, ensure, ensure_same};

pub(super) fn cases() -> Vec<DeviceCase> {
    vec![
        case("queue/in-order", "work on one queue runs in order", in_order),
        case(
            "queue/across",
            "a queue sees what another wrote before, and overwrites only what others have read by then, without the host waiting",
            across,
        ),
        case("queue/ping-pong", "two queues that take turns on the same buffers stay in step", ping_pong),
        case("queue/two-at-once", "queues of several threads do not disturb each other", two_at_once),
        case("queue/threads-one-buffer", "several threads write parts of one allocation, each on its own queue", threads_one_buffer),
        case("queue/threads-one-queue", "several threads share one queue", threads_one_queue),
        case("queue/outlives-handle", "work is done although the queue's handle is gone", outlives_handle),
        case("event/record", "an event is complete once all work before it is done, and stays so", record),
        case("event/wait-for", "a queue waits for its own events and for those of other devices", wait_for),
    ]
}

fn whole(buffer: &Buffer) -> Result<Region, Broken> {
    Ok(Region::new(buffer.clone(), Layout::contiguous(&[buffer.len()], 1)?)?)
}

fn in_order(device: &dyn Device, _: &Trial) -> Result<(), Broken> {
    let queue = device.create_queue()?;
    let (a, b) = (device.allocate(1000, &*queue)?, device.allocate(1000, &*queue)?);
    for round in 0..100 {
        queue.fill_region(&whole(&a)?, &[round])?;
        queue.copy(&a, &b)?;
    }
    queue.fill_region(&whole(&a)?, &[255])?;
    ensure_holds(device, &*queue, "the last copy", &b, &[99; 1000])
}

fn across(device: &dyn Device, _: &Trial) -> Result<(), Broken> {
    let (first, second) = (device.create_queue()?, device.create_queue()?);
    for round in 0..20 {
        let bytes = pattern(1 << 16, round);
        let buffer = upload(device, &*first, &bytes)?;
        let copy = device.allocate(bytes.len(), &*second)?;
        second.copy(&buffer, &copy)?;
        first.fill_region(&whole(&buffer)?, &[0xEE])?;
        ensure_holds(device, &*second, "what was read before it was overwritten", &copy, &bytes)?;
        ensure_holds(device, &*first, "what was overwritten", &buffer, &vec![0xEE; bytes.len()])?;
    }
    Ok(())
}

fn ping_pong(device: &dyn Device, _: &Trial) -> Result<(), Broken> {
    let (first, second) = (device.create_queue()?, device.create_queue()?);
    let bytes = pattern(4096, 9);
    let (a, b) = (upload(device, &*first, &bytes)?, device.allocate(4096, &*first)?);
    for round in 0..50 {
        first.fill_region(&whole(&b.slice(0..1)?)?, &[round])?;
        first.copy(&a.slice(1..4096)?, &b.slice(1..4096)?)?;
        second.copy(&b, &a)?;
    }
    let mut expected = bytes;
    expected[0] = 49;
    ensure_holds(device, &*first, "after the last turn", &a, &expected)
}

/// Runs `work` on several threads; the first failure wins.
fn on_threads(count: usize, work: impl Fn(usize) -> Result<(), Broken> + Sync) -> Result<(), Broken> {
    std::thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = (0..count).map(|index| scope.spawn(move || work(index))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().unwrap_or_else(|_| Err(Broken::Failed("a thread panicked".into()))))
    })
}

fn two_at_once(device: &dyn Device, _: &Trial) -> Result<(), Broken> {
    let setup = device.create_queue()?;
    let common = pattern(10_000, 50);
    let shared = upload(device, &*setup, &common)?;
    on_threads(4, |index| {
        let queue = device.create_queue()?;
        for round in 0..10 {
            let bytes = pattern(10_000, (index * 10 + round) as u8);
            let mine = upload(device, &*queue, &bytes)?;
            ensure_holds(device, &*queue, "a thread's own bytes", &mine, &bytes)?;
            ensure_holds(device, &*queue, "bytes that all threads read", &shared, &common)?;
        }
        Ok(())
    })
}

fn threads_one_buffer(device: &dyn Device, _: &Trial) -> Result<(), Broken> {
    const PART: usize = 1000;
    let setup = device.create_queue()?;
    let output = upload(device, &*setup, &[0; 4 * PART])?;
    on_threads(4, |index| {
        let queue = device.create_queue()?;
        let part = output.slice(index * PART..(index + 1) * PART)?;
        for round in 0..20 {
            queue.fill_region(&whole(&part)?, &[(index * 20 + round) as u8])?;
        }
        Ok(())
    })?;
    let expected: Vec<u8> = (0..4 * PART).map(|position| (position / PART * 20 + 19) as u8).collect();
    ensure_holds(device, &*setup, "parts written by several threads", &output, &expected)
}

fn threads_one_queue(device: &dyn Device, _: &Trial) -> Result<(), Broken> {
    let queue = device.create_queue()?;
    on_threads(4, |index| {
        for round in 0..20 {
            let bytes = pattern(500, (index * 20 + round) as u8);
            let buffer = upload(device, &*queue, &bytes)?;
            ensure_holds(device, &*queue, "a thread's own bytes on a common queue", &buffer, &bytes)?;
        }
        Ok(())
    })
}

fn outlives_handle(device: &dyn Device, _: &Trial) -> Result<(), Broken> {
    let bytes = pattern(1 << 18, 8);
    let back = device.allocate_staging(bytes.len())?;
    {
        let queue = device.create_queue()?;
        let buffer = upload(device, &*queue, &bytes)?;
        queue.copy(&buffer, &back)?;
    }
    back.wait()?;
    ensure_same("bytes that came when queue and buffer were gone", &back.host_read()?, &bytes)
}

fn record(device: &dyn Device, _: &Trial) -> Result<(), Broken> {
    let queue = device.create_queue()?;
    let first = queue.record()?;
    ensure!(first.queue() == queue.id(), "an event of {:?} on queue {:?}", first.queue(), queue.id());
    first.wait()?;
    ensure!(first.is_complete()?, "an event before all work is not complete after a wait");
    let bytes = pattern(1 << 18, 4);
    let buffer = upload(device, &*queue, &bytes)?;
    let back = device.allocate_staging(bytes.len())?;
    queue.copy(&buffer, &back)?;
    let event = queue.record()?;
    event.wait()?;
    ensure!(event.is_complete()?, "an event is not complete after a wait");
    event.wait()?;
    ensure!(first.is_complete()?, "an earlier event is not complete any more");
    ensure_same("bytes behind an event", &back.host_read()?, &bytes)
}

fn wait_for(device: &dyn Device, _: &Trial) -> Result<(), Broken> {
    let queue = device.create_queue()?;
    let bytes = pattern(100, 5);
    let buffer = upload(device, &*queue, &bytes)?;
    queue.wait_for(&queue.record()?)?;
    queue.wait_for(&HostDevice.create_queue()?.record()?)?;
    ensure_same("after the waits", &download(device, &*queue, &buffer)?, &bytes)?;
    #[cfg(feature = "toy")]
    {
        let other = crate::toy::OpaqueDevice::with_options(
            i32::MAX,
            crate::toy::ToyOptions { schedule: crate::toy::Schedule::Delayed { seed: 1 }, ..Default::default() },
        );
        let other_queue = other.create_queue()?;
        let there = other.allocate(bytes.len(), &*other_queue)?;
        let between = Buffer::from_vec(vec![0; bytes.len()]);
        other_queue.copy(&Buffer::from_vec(bytes.clone()), &there)?;
        other_queue.copy(&there, &between)?;
        let here = device.allocate(bytes.len(), &*queue)?;
        match queue.copy(&between, &here) {
            // The host's own queue has no later: it refuses what is not ready.
            Err(error) if error.kind == zarr_buffer_api::BufferErrorKind::NotReady => {
                between.wait()?;
                queue.copy(&between, &here)?;
            }
            result => result?,
        }
        ensure_same("bytes of another device's queue", &download(device, &*queue, &here)?, &bytes)?;
    }
    Ok(())
}

use zarr_buffer_api::{Buffer, BufferErrorKind, Device};

use super::{DeviceCase, case, ensure_holds, pattern, staged, upload};
use crate::suite::{Broken, Trial, ensure_refused, ensure_same};

pub(super) fn cases() -> Vec<DeviceCase> {
    vec![
        case("hazard/read-early", "the host reads a destination only once it is written", read_early),
        case("hazard/write-early", "the host overwrites a source only once it is read", write_early),
        case("hazard/read-while-read", "the host may read what a queue reads", read_while_read),
        case(
            "hazard/borrowed-for-reading",
            "a queue does not write what the host holds for reading, and may read it",
            borrowed_for_reading,
        ),
        case("hazard/borrowed-for-writing", "a queue does not touch what the host holds for writing", borrowed_for_writing),
        case("hazard/dropped", "work on buffers that are dropped meanwhile is done all the same", dropped),
        case("hazard/dropped-host-memory", "plain host memory lives as long as work on it", dropped_host_memory),
    ]
}

const LEN: usize = 1 << 18;

fn read_early(device: &dyn Device, _: &Trial) -> Result<(), Broken> {
    let queue = device.create_queue()?;
    for round in 0..20 {
        let bytes = pattern(LEN, round);
        let back = staged(device, &vec![0; LEN])?;
        queue.copy(&upload(device, &*queue, &bytes)?, &back)?;
        // Not for ever: a device may start its work only when somebody waits.
        for _ in 0..100 {
            match back.host_read() {
                Ok(read) => {
                    ensure_same("bytes read without a wait", &read, &bytes)?;
                    break;
                }
                Err(error) if error.kind == BufferErrorKind::NotReady => std::thread::yield_now(),
                Err(error) => return Err(error.into()),
            }
        }
        back.wait()?;
        ensure_same("bytes read after a wait", &back.host_read()?, &bytes)?;
    }
    Ok(())
}

fn write_early(device: &dyn Device, _: &Trial) -> Result<(), Broken> {
    let queue = device.create_queue()?;
    for round in 0..20 {
        let bytes = pattern(LEN, round);
        let source = staged(device, &bytes)?;
        let buffer = device.allocate(LEN, &*queue)?;
        queue.copy(&source, &buffer)?;
        match source.host_write() {
            Ok(mut write) => write.fill(0xEE),
            Err(error) if error.kind == BufferErrorKind::NotReady => {}
            Err(error) => return Err(error.into()),
        }
        source.wait()?;
        source.host_write()?.fill(0xDD);
        ensure_holds(device, &*queue, "bytes whose source was overwritten as early as allowed", &buffer, &bytes)?;
    }
    Ok(())
}

fn read_while_read(device: &dyn Device, _: &Trial) -> Result<(), Broken> {
    let queue = device.create_queue()?;
    let bytes = pattern(LEN, 1);
    let source = staged(device, &bytes)?;
    let read = source.host_read()?;
    let buffer = device.allocate(LEN, &*queue)?;
    queue.copy(&source, &buffer)?;
    let second = source.host_read()?;
    ensure_same("a source read meanwhile", &second, &read)?;
    drop((read, second));
    ensure_holds(device, &*queue, "the copy", &buffer, &bytes)
}

fn borrowed_for_reading(device: &dyn Device, _: &Trial) -> Result<(), Broken> {
    let queue = device.create_queue()?;
    let buffer = upload(device, &*queue, &[7; 16])?;
    let host = staged(device, &[1; 16])?;
    let read = host.host_read()?;
    ensure_refused("a copy to what the host reads", BufferErrorKind::Borrowed, queue.copy(&buffer, &host))?;
    ensure_refused("a copy to the same allocation", BufferErrorKind::Borrowed, queue.copy(&buffer.slice(0..1)?, &host.slice(8..9)?))?;
    queue.copy(&host, &buffer)?;
    ensure_same("what the host reads", &read, &[1; 16])?;
    drop(read);
    ensure_holds(device, &*queue, "the copy of what the host reads", &buffer, &[1; 16])?;
    queue.copy(&buffer, &host)?;
    host.wait()?;
    Ok(())
}

fn borrowed_for_writing(device: &dyn Device, _: &Trial) -> Result<(), Broken> {
    let queue = device.create_queue()?;
    let buffer = upload(device, &*queue, &[7; 16])?;
    let host = staged(device, &[1; 16])?;
    let write = host.host_write()?;
    ensure_refused("a copy to what the host writes", BufferErrorKind::Borrowed, queue.copy(&buffer, &host))?;
    ensure_refused("a copy of what the host writes", BufferErrorKind::Borrowed, queue.copy(&host, &buffer))?;
    drop(write);
    ensure_holds(device, &*queue, "a buffer after refused copies", &buffer, &[7; 16])?;
    queue.copy(&host, &buffer)?;
    ensure_holds(device, &*queue, "a buffer once the host let go", &buffer, &[1; 16])
}

fn dropped(device: &dyn Device, _: &Trial) -> Result<(), Broken> {
    let (first, second) = (device.create_queue()?, device.create_queue()?);
    for round in 0..10 {
        let bytes = pattern(LEN, round);
        let back = device.allocate_staging(LEN)?;
        {
            let a = upload(device, &*first, &bytes)?;
            let b = device.allocate(LEN, &*second)?;
            second.copy(&a, &b)?;
            drop(a);
            second.copy(&b, &back)?;
        }
        // New memory in the place of the old, if that was freed too early.
        let other = upload(device, &*first, &vec![0xEE; LEN])?;
        back.wait()?;
        ensure_same("bytes through buffers that are gone", &back.host_read()?, &bytes)?;
        other.wait()?;
    }
    Ok(())
}

fn dropped_host_memory(device: &dyn Device, _: &Trial) -> Result<(), Broken> {
    let queue = device.create_queue()?;
    for round in 0..10 {
        let bytes = pattern(LEN, round);
        let buffer = device.allocate(LEN, &*queue)?;
        queue.copy(&Buffer::from_vec(bytes.clone()), &buffer)?;
        let other = vec![0xEE; LEN];
        ensure_holds(device, &*queue, "bytes whose source is gone", &buffer, &bytes)?;
        drop(other);
    }
    Ok(())
}

use zarr_buffer_api::{Buffer, BufferErrorKind, Device, Layout, Queue, Region};

use super::{DeviceCase, DeviceSubject, case, ensure_holds, pattern, staged, upload};
use crate::suite::{Broken, Case, Trial, ensure, ensure_refused, ensure_same};

pub(super) fn cases() -> Vec<DeviceCase> {
    vec![
        case("identity", "queues and buffers name their device, and no two queues have one id", identity),
        case(
            "allocate/extent",
            "device memory has the length asked for, is aligned to 256 bytes and overlaps nothing else; slices lie inside, where they say",
            extent,
        ),
        case("allocate/visibility", "device memory is host-visible exactly if the device is unified", visibility),
        case(
            "allocate/staging",
            "staging memory can be written and read by the host at once, and is device memory on a unified device",
            staging,
        ),
        case("allocate/too-large", "memory that cannot be there is refused as OutOfMemory", too_large),
        case("allocate/reuse", "memory is given back when its last buffer goes", reuse),
        case("allocate/in-place", "of device memory that the host sees, host and queues see the same bytes; of other, by copies", in_place),
        Case::new(
            "device/budget/respected",
            "a device with a memory limit gives no more, refuses as OutOfMemory, and gives most of it",
            respected,
        ),
        Case::new("device/budget/given-back", "memory that is given back can be had again, also after a refusal", given_back),
    ]
}

fn identity(device: &dyn Device, _: &Trial) -> Result<(), Broken> {
    ensure!(device.id() == device.id(), "the id changes");
    ensure!(!device.name().is_empty(), "the name is empty");
    let (a, b) = (device.create_queue()?, device.create_queue()?);
    ensure!(a.id() != b.id(), "two queues have the id {:?}", a.id());
    ensure!(a.device() == device.id(), "a queue is on {}, the device is {}", a.device(), device.id());
    let buffer = device.allocate(8, &*a)?;
    ensure!(buffer.device() == device.id(), "a buffer is on {}, the device is {}", buffer.device(), device.id());
    Ok(())
}

fn extent(device: &dyn Device, _: &Trial) -> Result<(), Broken> {
    let queue = device.create_queue()?;
    let lens = [0, 1, 2, 255, 256, 257, 4096, (1 << 20) + 3];
    let buffers = lens.iter().map(|&len| device.allocate(len, &*queue)).collect::<Result<Vec<_>, _>>()?;
    for (buffer, len) in buffers.iter().zip(lens) {
        ensure!(buffer.len() == len, "{} bytes, asked for {len}", buffer.len());
        ensure!(len == 0 || buffer.address().is_multiple_of(256), "{len} bytes at {:#x}, not aligned to 256", buffer.address());
    }
    slices(&buffers[5])?;
    for (index, a) in buffers.iter().enumerate().filter(|(_, a)| !a.is_empty()) {
        for b in buffers[..index].iter().filter(|b| !b.is_empty()) {
            let apart = a.address() + a.len() as u64 <= b.address() || b.address() + b.len() as u64 <= a.address();
            ensure!(apart, "{a:?} overlaps {b:?}");
        }
    }
    Ok(())
}

fn visibility(device: &dyn Device, _: &Trial) -> Result<(), Broken> {
    let queue = device.create_queue()?;
    let buffer = device.allocate(64, &*queue)?;
    ensure!(buffer.is_host_visible() == device.is_unified(), "host-visible: {}", buffer.is_host_visible());
    if !device.is_unified() {
        ensure_refused("host_read of device memory", BufferErrorKind::NotHostVisible, buffer.host_read())?;
        ensure_refused("host_write of device memory", BufferErrorKind::NotHostVisible, buffer.host_write())?;
    }
    Ok(())
}

fn staging(device: &dyn Device, _: &Trial) -> Result<(), Broken> {
    for len in [0, 1, 1000, 1 << 20] {
        let bytes = pattern(len, 3);
        let buffer = staged(device, &bytes)?;
        ensure_same("staging memory", &buffer.host_read()?, &bytes)?;
        ensure!(!device.is_unified() || buffer.device() == device.id(), "staging memory of a unified device is on {}", buffer.device());
    }
    Ok(())
}

fn too_large(device: &dyn Device, _: &Trial) -> Result<(), Broken> {
    let queue = device.create_queue()?;
    for len in [isize::MAX as usize, usize::MAX] {
        ensure_refused("an allocation of the whole address space", BufferErrorKind::OutOfMemory, device.allocate(len, &*queue))?;
        ensure_refused("staging of the whole address space", BufferErrorKind::OutOfMemory, device.allocate_staging(len))?;
    }
    // The device is none the worse for it.
    upload(device, &*queue, &[1, 2, 3])?.wait()?;
    Ok(())
}

fn reuse(device: &dyn Device, _: &Trial) -> Result<(), Broken> {
    let queue = device.create_queue()?;
    for round in 0..64 {
        // 512 MiB in all: more than a device limited to the least has, if nothing is given back.
        let buffer = device.allocate(8 << 20, &*queue).map_err(|error| Broken::Failed(format!("round {round}: {error}")))?;
        buffer.wait()?;
    }
    Ok(())
}

fn slices(buffer: &Buffer) -> Result<(), Broken> {
    let slice = buffer.slice(10..60)?.slice(5..15)?;
    ensure!(slice.len() == 10 && slice.offset() == buffer.offset() + 15, "a slice of {} bytes at {}", slice.len(), slice.offset());
    ensure!(slice.address() == buffer.address() + 15, "a slice at {:#x} of a buffer at {:#x}", slice.address(), buffer.address());
    ensure_refused("a slice past the end", BufferErrorKind::Parameter, slice.slice(5..11))?;
    ensure_refused("a slice that ends before it starts", BufferErrorKind::Parameter, slice.slice(std::ops::Range { start: 5, end: 4 }))
}

fn in_place(device: &dyn Device, _: &Trial) -> Result<(), Broken> {
    let queue = device.create_queue()?;
    for len in [5, 4096, 70_000] {
        let (first, second) = (pattern(len, 21), pattern(len, 22));
        let buffer = upload(device, &*queue, &first)?;
        ensure_holds(device, &*queue, "device memory", &buffer, &first)?;
        buffer.wait()?;
        if device.is_unified() {
            ensure_same("what a queue wrote, read in place", &buffer.host_read()?, &first)?;
            buffer.host_write()?.copy_from_slice(&second);
        } else {
            queue.copy(&staged(device, &second)?, &buffer)?;
        }
        ensure_holds(device, &*queue, "what the host wrote, read by a queue", &buffer, &second)?;
    }
    Ok(())
}

const PIECE: u64 = 1 << 20;

/// All the memory that a device with a limit gives, in pieces of [`PIECE`] bytes; if it is far too much, some of it.
fn exhaust(device: &dyn Device, queue: &dyn Queue, limit: u64) -> Result<Vec<Buffer>, Broken> {
    let mut pieces = Vec::new();
    while (pieces.len() as u64) * PIECE <= 4 * limit {
        match device.allocate(PIECE as usize, queue) {
            Ok(piece) => pieces.push(piece),
            Err(error) if error.kind == BufferErrorKind::OutOfMemory => break,
            Err(error) => return Err(Broken::Failed(format!("memory past the limit is refused as {:?}: {error}", error.kind))),
        }
    }
    Ok(pieces)
}

fn limit(subject: &(dyn DeviceSubject + 'static)) -> Result<u64, Broken> {
    subject.memory_limit().ok_or_else(|| Broken::Unsupported("the device has no memory limit".into()))
}

fn respected(subject: &(dyn DeviceSubject + 'static), _: &Trial) -> Result<(), Broken> {
    let limit = limit(subject)?;
    let queue = subject.device().create_queue()?;
    let total = exhaust(subject.device(), &*queue, limit)?.len() as u64 * PIECE;
    ensure!(total <= limit, "{total} bytes or more were given, the limit is {limit}");
    ensure!(total >= limit / 2, "only {total} bytes were given, the limit is {limit}");
    Ok(())
}

fn given_back(subject: &(dyn DeviceSubject + 'static), _: &Trial) -> Result<(), Broken> {
    let (device, limit) = (subject.device(), limit(subject)?);
    let queue = device.create_queue()?;
    let mut pieces = exhaust(device, &*queue, limit)?;
    for round in 0..3 {
        let returned = pieces.split_off(pieces.len() / 2);
        let count = returned.len();
        for piece in &returned {
            queue.fill_region(&Region::new(piece.clone(), Layout::contiguous(&[piece.len()], 1)?)?, &[round])?;
        }
        returned.iter().try_for_each(Buffer::wait)?;
        drop(returned);
        for again in 0..count {
            let piece = device.allocate(PIECE as usize, &*queue);
            pieces.push(
                piece.map_err(|error| Broken::Failed(format!("{count} pieces were given back, {again} could be had again: {error}")))?,
            );
        }
    }
    Ok(())
}

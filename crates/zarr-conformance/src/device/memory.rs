use zarr_buffer_api::{BufferErrorKind, Device};

use super::{DeviceCase, case, pattern, staged, upload};
use crate::suite::{Broken, Trial, ensure, ensure_refused, ensure_same};

pub(super) fn cases() -> Vec<DeviceCase> {
    vec![
        case("identity", "queues and buffers name their device, and no two queues have one id", identity),
        case("allocate/extent", "device memory has the length asked for, is aligned to 256 bytes and overlaps nothing else", extent),
        case("allocate/visibility", "device memory is host-visible exactly if the device is unified", visibility),
        case(
            "allocate/staging",
            "staging memory can be written and read by the host at once, and is device memory on a unified device",
            staging,
        ),
        case("allocate/too-large", "memory that cannot be there is refused as OutOfMemory", too_large),
        case("allocate/reuse", "memory is given back when its last buffer goes", reuse),
        case("buffer/slices", "slices have the address, offset and length that they say, and stay inside", slices),
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

fn slices(device: &dyn Device, _: &Trial) -> Result<(), Broken> {
    let queue = device.create_queue()?;
    let buffer = device.allocate(100, &*queue)?;
    let slice = buffer.slice(10..60)?.slice(5..15)?;
    ensure!(slice.len() == 10 && slice.offset() == buffer.offset() + 15, "a slice of {} bytes at {}", slice.len(), slice.offset());
    ensure!(slice.address() == buffer.address() + 15, "a slice at {:#x} of a buffer at {:#x}", slice.address(), buffer.address());
    ensure_refused("a slice past the end", BufferErrorKind::Parameter, slice.slice(5..11))?;
    ensure_refused("a slice that ends before it starts", BufferErrorKind::Parameter, slice.slice(std::ops::Range { start: 5, end: 4 }))
}

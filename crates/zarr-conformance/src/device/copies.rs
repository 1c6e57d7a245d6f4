use zarr_buffer_api::{Buffer, BufferErrorKind, Device};

use super::{DeviceCase, case, download, ensure_holds, pattern, staged, upload};
use crate::suite::{Broken, Trial, ensure_refused, ensure_same};

pub(super) fn cases() -> Vec<DeviceCase> {
    vec![
        case("copy/round-trip", "bytes go to the device and come back", round_trip),
        case("copy/plain-host-memory", "plain host memory is a source and a destination, too", plain_host_memory),
        case("copy/within-device", "bytes are copied within the device", within_device),
        case("copy/within-host", "bytes are copied from host memory to host memory in the order of the queue", within_host),
        case("copy/exact", "a copy to a slice changes no byte on either side of it, at any alignment", exact),
        case("copy/lengths", "buffers of different lengths are refused", lengths),
        #[cfg(feature = "toy")]
        case("copy/unreachable", "memory of a device that this one cannot reach is refused as Unsupported", unreachable),
    ]
}

fn round_trip(device: &dyn Device, _: &Trial) -> Result<(), Broken> {
    let queue = device.create_queue()?;
    for len in [0, 1, 7, 4096, (1 << 20) + 1] {
        let bytes = pattern(len, 1);
        let buffer = upload(device, &*queue, &bytes)?;
        ensure_holds(device, &*queue, "after a round trip", &buffer, &bytes)?;
    }
    Ok(())
}

fn plain_host_memory(device: &dyn Device, _: &Trial) -> Result<(), Broken> {
    let queue = device.create_queue()?;
    let bytes = pattern(5000, 2);
    let buffer = device.allocate(bytes.len(), &*queue)?;
    let back = Buffer::from_vec(vec![0; bytes.len()]);
    queue.copy(&Buffer::from_vec(bytes.clone()), &buffer)?;
    queue.copy(&buffer, &back)?;
    back.wait()?;
    ensure_same("plain host memory", &back.host_read()?, &bytes)
}

fn within_device(device: &dyn Device, _: &Trial) -> Result<(), Broken> {
    let queue = device.create_queue()?;
    let bytes = pattern(3001, 3);
    let a = upload(device, &*queue, &bytes)?;
    let b = device.allocate(bytes.len(), &*queue)?;
    queue.copy(&a, &b)?;
    ensure_holds(device, &*queue, "the copy", &b, &bytes)?;
    ensure_holds(device, &*queue, "the source of the copy", &a, &bytes)
}

fn within_host(device: &dyn Device, _: &Trial) -> Result<(), Broken> {
    let queue = device.create_queue()?;
    let (a, b) = (pattern(300, 4), pattern(300, 5));
    let to = device.allocate_staging(300)?;
    queue.copy(&staged(device, &a)?, &to)?;
    queue.copy(&Buffer::from_vec(b.clone()), &to)?;
    to.wait()?;
    ensure_same("the later copy", &to.host_read()?, &b)
}

fn exact(device: &dyn Device, _: &Trial) -> Result<(), Broken> {
    let queue = device.create_queue()?;
    let canary = pattern(300, 6);
    for (start, len) in [(0, 300), (1, 1), (3, 17), (64, 64), (127, 130), (299, 1), (150, 0)] {
        let bytes = pattern(len, 200);
        let mut expected = canary.clone();
        expected[start..start + len].copy_from_slice(&bytes);
        let buffer = upload(device, &*queue, &canary)?;
        // The source lies at another alignment than the destination.
        let mut shifted = vec![0; start % 5 + 2];
        shifted.extend_from_slice(&bytes);
        let source = staged(device, &shifted)?.slice(start % 5 + 2..shifted.len())?;
        queue.copy(&source, &buffer.slice(start..start + len)?)?;
        ensure_holds(device, &*queue, "a buffer with a copy in its middle", &buffer, &expected)?;
        let back = staged(device, &canary)?;
        queue.copy(&buffer.slice(start..start + len)?, &back.slice(start..start + len)?)?;
        back.wait()?;
        ensure_same("host memory with a copy in its middle", &back.host_read()?, &expected)?;
    }
    Ok(())
}

fn lengths(device: &dyn Device, _: &Trial) -> Result<(), Broken> {
    let queue = device.create_queue()?;
    let buffer = upload(device, &*queue, &[9; 8])?;
    for len in [0, 7, 9] {
        ensure_refused("a copy of other length", BufferErrorKind::Parameter, queue.copy(&Buffer::from_vec(vec![1; len]), &buffer))?;
        ensure_refused("a copy of other length", BufferErrorKind::Parameter, queue.copy(&buffer, &Buffer::from_vec(vec![1; len])))?;
    }
    ensure_same("after refused copies", &download(device, &*queue, &buffer)?, &[9; 8])
}

#[cfg(feature = "toy")]
fn unreachable(device: &dyn Device, _: &Trial) -> Result<(), Broken> {
    let other = crate::toy::OpaqueDevice::new(i32::MAX);
    let other_queue = other.create_queue()?;
    let there = other.allocate(8, &*other_queue)?;
    there.wait()?;
    let queue = device.create_queue()?;
    let here = upload(device, &*queue, &[9; 8])?;
    for result in [queue.copy(&there, &here), queue.copy(&here, &there)] {
        match result {
            Err(error) if matches!(error.kind, BufferErrorKind::Unsupported | BufferErrorKind::NotHostVisible) => {}
            Err(error) => return Err(Broken::Failed(format!("refused as {:?} ({error}), expected Unsupported", error.kind))),
            Ok(()) => return Err(Broken::Failed("a copy of memory that the device cannot reach was accepted".into())),
        }
    }
    ensure_same("after refused copies", &download(device, &*queue, &here)?, &[9; 8])
}

//! Devices whose memory is not what they say.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use zarr_buffer_api::{Buffer, BufferError, BufferErrorKind, DeviceId, DeviceKind};
use zarr_conformance::device::DeviceUnderTest;
use zarr_conformance::toy::{OpaqueDevice, ToyOptions};

use super::{Kind, State, base, replaced, wrong};
use crate::idle::Wrong;

/// Small enough to be meant.
fn is_real(len: usize) -> bool {
    len < usize::MAX / 4
}

fn out_of_memory() -> BufferError {
    BufferError::new(BufferErrorKind::OutOfMemory, "wrong on purpose")
}

fn limited(limit: u64, replace: super::Replace) -> DeviceUnderTest {
    let toy = OpaqueDevice::with_options(0, ToyOptions { memory_limit: Some(limit), ..ToyOptions::default() });
    DeviceUnderTest::new(Arc::new(replaced(toy, replace))).with_memory_limit(16 << 20)
}

pub(crate) fn table() -> Vec<Wrong> {
    vec![
        wrong("device/identity", "queues are on another device", |device| {
            device.queue_device = |_| DeviceId::new(DeviceKind::ExtDev, 3);
        }),
        wrong("device/allocate/extent", "memory is aligned to 16 bytes", |device| {
            device.allocate = |_, device, len, queue| match is_real(len) {
                true => device.allocate(len + 16, queue)?.slice(16..len + 16),
                false => device.allocate(len, queue),
            };
        }),
        wrong("device/allocate/visibility", "unified memory is said to be discrete", |device| device.is_unified = |_| false),
        wrong("device/allocate/in-place", "queues do not see what the host writes in place", |device| {
            // Queues see what queues wrote last.
            device.copy = |state, queue, source, destination| {
                let shadow = state.shadows.lock().unwrap().get(&base(source)).filter(|shadow| shadow.len() == source.len()).cloned();
                match shadow {
                    Some(shadow) if source.offset() == 0 => queue.copy(&Buffer::from_vec(shadow), destination)?,
                    _ => queue.copy(source, destination)?,
                }
                remember(state, destination);
                Ok(())
            };
            device.copy_region = |state, queue, source, destination| {
                state.shadows.lock().unwrap().remove(&base(&destination.buffer));
                queue.copy_region(source, destination)
            };
            device.fill_region = |state, queue, destination, element| {
                state.shadows.lock().unwrap().remove(&base(&destination.buffer));
                queue.fill_region(destination, element)
            };
        }),
        wrong("device/allocate/staging", "staging memory of whole megabytes lacks its last byte", |device| {
            device.allocate_staging = |_, device, len| match device.allocate_staging(len) {
                Ok(staging) if len > 0 && len.is_multiple_of(1 << 20) => staging.slice(0..len - 1),
                staging => staging,
            };
        }),
        wrong("device/allocate/too-large", "too large is blamed on the caller", |device| {
            device.allocate =
                |_, device, len, queue| device.allocate(len, queue).map_err(|_| BufferError::parameter("as if the caller could know"));
        }),
        wrong("device/allocate/reuse", "large memory is not given back", |device| {
            device.allocate = |state, device, len, queue| {
                if len >= 8 << 20 && is_real(len) {
                    let mut count = state.count.lock().unwrap();
                    *count += 1;
                    if *count > 32 {
                        return Err(out_of_memory());
                    }
                }
                device.allocate(len, queue)
            };
        }),
        Wrong::new("a limit is exceeded by half", &["device/budget/respected"], || limited(24 << 20, |_| {})),
        Wrong::new("a quarter of what the limit allows is given", &["device/budget/respected", "device/budget/given-back"], || {
            limited(16 << 20, |device| {
                // Large pieces pass, so that other laws have what they need.
                device.allocate = |state, device, len, queue| {
                    if len != 1 << 20 {
                        return device.allocate(len, queue);
                    }
                    let mut count = state.count.lock().unwrap();
                    *count += 1;
                    if count.is_multiple_of(5) { Err(out_of_memory()) } else { device.allocate(len, queue) }
                };
            })
        }),
        Wrong::new("once it was refused, memory cannot be had again", &["device/budget/given-back"], || {
            static REFUSED: AtomicBool = AtomicBool::new(false);
            REFUSED.store(false, Ordering::SeqCst);
            limited(16 << 20, |device| {
                device.allocate = |_, device, len, queue| {
                    if len == 1 << 20 && REFUSED.load(Ordering::SeqCst) {
                        return Err(out_of_memory());
                    }
                    let memory = device.allocate(len, queue);
                    let refused = len == 1 << 20 && memory.is_err();
                    REFUSED.fetch_or(refused, Ordering::SeqCst);
                    memory
                };
            })
        }),
    ]
}

fn remember(state: &State, written: &Buffer) {
    let mut shadows = state.shadows.lock().unwrap();
    match written.host_read() {
        Ok(bytes) if written.offset() == 0 && written.len() == written.memory().len() && state.kind(written) == Kind::Device => {
            shadows.insert(base(written), bytes.to_vec());
        }
        _ => {
            shadows.remove(&base(written));
        }
    }
}

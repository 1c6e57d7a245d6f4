//! Devices that touch memory too early, too late, or while somebody else holds it.

use zarr_buffer_api::{Buffer, BufferError, BufferErrorKind};

use super::queues::catch_up;
use super::{Kind, wrong};
use crate::idle::Wrong;

/// Work of this many bytes takes its time.
const LARGE: usize = 1 << 18;

/// Memory that somebody holds for reading, or for writing.
fn is_held(buffer: &Buffer, for_reading: bool) -> bool {
    let refused = |error: &BufferError| error.kind == BufferErrorKind::Borrowed;
    buffer.host_write().is_err_and(|error| refused(&error)) && buffer.host_read().is_err_and(|error| refused(&error)) != for_reading
}

pub(crate) fn table() -> Vec<Wrong> {
    vec![
        wrong("device/hazard/read-early", "memory that holds only zeros is taken for memory that nobody wants", |device| {
            device.allocate_staging = |_, device, len| {
                let staging = device.allocate_staging(len)?;
                staging.host_write()?.fill(0x55);
                Ok(staging)
            };
            device.copy = |state, queue, source, destination| {
                let zeros = |bytes: &[u8]| bytes.iter().all(|byte| *byte == 0);
                let is_blank = source.len() == LARGE
                    && state.kind(destination) == Kind::Staging
                    && destination.host_read().is_ok_and(|bytes| zeros(&bytes));
                if is_blank { Ok(()) } else { queue.copy(source, destination) }
            };
        }),
        wrong("device/hazard/write-early", "large sources are read once somebody asks for the copy", |device| {
            device.copy = |state, queue, source, destination| {
                catch_up(state, queue)?;
                if source.len() == LARGE && (state.kind(source), state.kind(destination)) == (Kind::Staging, Kind::Device) {
                    *state.late.lock().unwrap() = Some((source.clone(), destination.clone()));
                    return Ok(());
                }
                queue.copy(source, destination)
            };
            device.fill_region = |state, queue, destination, element| {
                catch_up(state, queue)?;
                queue.fill_region(destination, element)
            };
        }),
        wrong("device/hazard/read-while-read", "large sources must not be read by anybody else", |device| {
            device.copy = |_, queue, source, destination| match source.len() == LARGE && is_held(source, true) {
                true => Err(BufferError::new(BufferErrorKind::Borrowed, "wrong on purpose")),
                false => queue.copy(source, destination),
            };
        }),
        wrong("device/hazard/borrowed-for-reading", "what the host reads is said to be written", |device| {
            device.copy = |_, queue, source, destination| match queue.copy(source, destination) {
                Err(error) if error.kind == BufferErrorKind::Borrowed && is_held(destination, true) => Ok(()),
                result => result,
            };
        }),
        wrong("device/hazard/borrowed-for-writing", "what the host writes is said to be written", |device| {
            device.copy = |_, queue, source, destination| match queue.copy(source, destination) {
                Err(error) if error.kind == BufferErrorKind::Borrowed && is_held(destination, false) => Ok(()),
                result => result,
            };
        }),
        wrong("device/hazard/dropped", "memory goes to its next owner while work still reads it", |device| {
            device.copy = |state, queue, source, destination| {
                queue.copy(source, destination)?;
                let (from, to) = (state.kind(source), state.kind(destination));
                if source.len() == LARGE && (from, to) == (Kind::Device, Kind::Staging) {
                    *state.late.lock().unwrap() = Some((source.clone(), destination.clone()));
                } else if source.len() == LARGE && (from, to) == (Kind::Staging, Kind::Device) {
                    let under_way = state.late.lock().unwrap().take();
                    if let Some(mut bytes) = under_way.as_ref().and_then(|(_, destination)| destination.host_write().ok()) {
                        bytes.copy_from_slice(&source.host_read()?);
                    }
                }
                Ok(())
            };
        }),
        wrong("device/hazard/dropped-host-memory", "large memory of the host's is read later, when it is gone", |device| {
            device.copy = |state, queue, source, destination| match source.len() == LARGE && state.kind(source) == Kind::Plain {
                true => queue.copy(&Buffer::from_vec(vec![0xEE; LARGE]), destination),
                false => queue.copy(source, destination),
            };
        }),
    ]
}

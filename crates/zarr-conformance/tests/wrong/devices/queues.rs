//! Devices whose queues get out of step. None of it is luck: whoever could be disturbed waits until it is.

use std::thread;

use zarr_buffer_api::{Buffer, BufferError, BufferErrorKind, Event, Queue, QueueId};

use super::{Done, Kind, Misplaced, Owner, State, wrong};
use crate::idle::Wrong;

/// Copies by way of bytes that others overwrite meanwhile, if they can be expected to.
fn bounce(state: &State, queue: &dyn Queue, source: &Buffer, destination: &Buffer, until: fn(Owner, Owner) -> bool) -> Done {
    let mine = (queue.id(), thread::current().id());
    let Ok(bytes) = source.host_read().map(|bytes| bytes.to_vec()) else { return queue.copy(source, destination) };
    if source.len() != destination.len() || bytes.is_empty() {
        return queue.copy(source, destination);
    }
    // The one of several threads that comes first waits, once.
    let is_first = state.is_crowded(2) && state.is_once();
    let others = move |other: Owner| until(mine, other);
    match state.bounce(mine, bytes, is_first.then_some(&others)) {
        Some(now) if now.len() == source.len() => queue.copy(&Buffer::from_vec(now), destination),
        _ => queue.copy(source, destination),
    }
}

pub(crate) fn table() -> Vec<Wrong> {
    vec![
        wrong("device/queue/in-order", "a queue holds 128 pieces of work, and forgets what is more", |device| {
            device.copy = |state, queue, source, destination| {
                let is_full = is_full(state, queue);
                if state.kind(destination) == Kind::Staging {
                    *state.count.lock().unwrap() = 0;
                } else if is_full {
                    return Ok(());
                }
                queue.copy(source, destination)
            };
            device.fill_region = |state, queue, destination, element| match is_full(state, queue) {
                true => Ok(()),
                false => queue.fill_region(destination, element),
            };
        }),
        wrong("device/queue/across", "what a queue overwrites is not yet read by another", |device| {
            // A copy of a certain size is done behind the next work, if that is a fill.
            device.copy = |state, queue, source, destination| {
                catch_up(state, queue)?;
                if source.len() == 1 << 16 && (state.kind(source), state.kind(destination)) == (Kind::Device, Kind::Device) {
                    *state.late.lock().unwrap() = Some((source.clone(), destination.clone()));
                    return Ok(());
                }
                queue.copy(source, destination)
            };
            device.fill_region = |state, queue, destination, element| {
                queue.fill_region(destination, element)?;
                catch_up(state, queue)
            };
        }),
        wrong("device/queue/ping-pong", "after 64 turns, queues do not wait for each other any more", |device| {
            device.copy = |state, queue, source, destination| {
                let mut count = state.count.lock().unwrap();
                let before = state.last.lock().unwrap().replace(queue.id());
                *count = match state.kind(destination) {
                    Kind::Device if before != Some(queue.id()) => *count + 1,
                    Kind::Device => *count,
                    _ => 0,
                };
                if *count > 64 { Ok(()) } else { queue.copy(source, destination) }
            };
        }),
        wrong("device/queue/two-at-once", "all queues copy by way of the same bytes", |device| {
            device.copy =
                |state, queue, source, destination| bounce(state, queue, source, destination, |(mine, _), (other, _)| mine != other);
        }),
        wrong("device/queue/threads-one-queue", "all threads of a queue copy by way of the same bytes", |device| {
            device.copy = |state, queue, source, destination| {
                bounce(state, queue, source, destination, |mine, other| mine.0 == other.0 && mine.1 != other.1)
            };
        }),
        wrong("device/queue/threads-one-buffer", "of several threads, one fills", |device| {
            device.fill_region = |state, queue, destination, element| match state.is_crowded(1) && state.first(queue.id()) != queue.id() {
                true => Ok(()),
                false => queue.fill_region(destination, element),
            };
        }),
        wrong("device/queue/outlives-handle", "the last work is undone when the queue goes", |device| {
            device.dropped = |state, _, destination| {
                if state.kind(destination) == Kind::Staging
                    && let Ok(mut bytes) = destination.host_write()
                {
                    bytes.fill(0);
                }
            };
        }),
        wrong("device/event/record", "events name another queue", |device| {
            device.record = |_, queue| Ok(Event::new(Misplaced(queue.record()?, QueueId::unique())));
        }),
        wrong("device/event/wait-for", "events of other queues are refused", |device| {
            device.wait_for = |queue, event| match event.queue() == queue.id() {
                true => queue.wait_for(event),
                false => Err(BufferError::new(BufferErrorKind::Parameter, "not mine")),
            };
        }),
    ]
}

/// Counts work since something was last read back, and whether it is too much.
fn is_full(state: &State, queue: &dyn Queue) -> bool {
    let mut count = state.count.lock().unwrap();
    if state.last.lock().unwrap().replace(queue.id()) != Some(queue.id()) {
        *count = 0;
    }
    *count += 1;
    *count > 128
}

/// Does what is late.
pub(crate) fn catch_up(state: &State, queue: &dyn Queue) -> Done {
    let late = state.late.lock().unwrap().take();
    late.map_or(Ok(()), |(source, destination)| queue.copy(&source, &destination))
}

//! Who uses an allocation, and the one way for queues to join in.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;

use crate::buffer::borrowed;
use crate::{Buffer, BufferError, BufferErrorKind, Event, Queue, QueueId};

/// The uses of one allocation, under one mutex, so that the host cannot slip in between the check of a queue and its work.
#[derive(Default)]
pub(crate) struct HazardCell {
    hazards: Mutex<Hazards>,
    claims_changed: Condvar,
}

#[derive(Default)]
pub(crate) struct Hazards {
    pub(crate) last_write: Option<Event>,
    reads: Vec<Event>,
    /// Host guards alive: n readers, or -1 for one writer.
    pub(crate) guards: isize,
    /// Calls of [`enqueue`] under way.
    claims: Vec<Claim>,
    /// Work was enqueued, but no event could be recorded behind it.
    lost: bool,
}

#[derive(Clone, Copy, PartialEq)]
struct Claim {
    queue: QueueId,
    thread: ThreadId,
    write: bool,
}

impl HazardCell {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Hazards> {
        self.hazards.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The events not yet complete; `None` when work may be under way that has none.
    pub(crate) fn pending(&self) -> Option<Vec<Event>> {
        let hazards = self.lock();
        let events = hazards.last_write.iter().chain(&hazards.reads);
        (!hazards.lost).then(|| events.filter(|event| !matches!(event.is_complete(), Ok(true))).cloned().collect())
    }
}

impl Hazards {
    fn check_not_lost(&self) -> Result<(), BufferError> {
        if self.lost {
            return Err(BufferError::new(
                BufferErrorKind::Device,
                "work on these bytes was enqueued, and no event could be recorded behind it",
            ));
        }
        Ok(())
    }

    /// The events of all work, complete or not.
    pub(crate) fn events(&self) -> Result<Vec<Event>, BufferError> {
        self.check_not_lost()?;
        Ok(self.last_write.iter().chain(&self.reads).cloned().collect())
    }

    pub(crate) fn writes_done(&self) -> Result<bool, BufferError> {
        self.check_not_lost()?;
        if self.claims.iter().any(|claim| claim.write) {
            return Ok(false);
        }
        self.last_write.as_ref().map_or(Ok(true), |event| event.is_complete())
    }

    pub(crate) fn reads_done(&self) -> Result<bool, BufferError> {
        self.check_not_lost()?;
        for event in &self.reads {
            if !event.is_complete()? {
                return Ok(false);
            }
        }
        Ok(self.claims.iter().all(|claim| claim.write))
    }

    fn note(&mut self, event: &Event, write: bool) {
        if write {
            self.reads.clear();
            self.last_write = Some(event.clone());
        } else {
            // An event covers earlier ones of its queue; complete ones say nothing any more.
            self.reads.retain(|read| read.queue() != event.queue() && !matches!(read.is_complete(), Ok(true)));
            self.reads.push(event.clone());
        }
    }
}

/// Enqueues `work` on `queue`, ordered after whatever it must wait for, and notes it on the buffers. For implementations of queues and
/// codecs: the one way to touch bytes on a device.
///
/// `work` itself only enqueues; it reads the buffers in `reads` and writes those in `writes`. Waiting for other queues is enqueued, the host
/// does not wait for them. It does wait, for as long as a call of this function takes, while another thread enqueues conflicting work on the
/// same allocation to another queue. `work` may call this function again, on the same queue, for the same buffers or for some that no other
/// thread knows. If `work` fails halfway, what it enqueued is noted all the same.
///
/// # Errors
/// [`BufferErrorKind::Borrowed`] while the host holds a guard that excludes the access, or when `work` of this call is asked for on another
/// queue from within; what [`Queue::wait_for`], `work` and [`Queue::record`] return. If [`Queue::record`] fails, the buffers cannot be
/// used any more.
pub fn enqueue<R, E: From<BufferError>>(
    queue: &dyn Queue,
    reads: &[&Buffer],
    writes: &[&Buffer],
    work: impl FnOnce() -> Result<R, E>,
) -> Result<R, E> {
    let uses = distinct(reads, writes);
    let mut claims =
        Claims { queue: queue.id(), thread: std::thread::current().id(), held: Vec::with_capacity(uses.len()), started: false };
    let mut before = Vec::new();
    for used in uses {
        claims.take(used, &mut before)?;
    }
    for event in before {
        if event.queue() != queue.id() && !event.is_complete()? {
            queue.wait_for(&event)?;
        }
    }
    claims.started = true;
    let result = work();
    claims.note(queue)?;
    result
}

/// An allocation, and whether it is written.
#[derive(Clone, Copy)]
struct Use<'a> {
    buffer: &'a Buffer,
    write: bool,
}

/// One use for each allocation (batches name the same one thousands of times), in the order of addresses: every caller locks and claims in that
/// order, so that no two wait for each other.
fn distinct<'a>(reads: &[&'a Buffer], writes: &[&'a Buffer]) -> Vec<Use<'a>> {
    let writes = writes.iter().map(|&buffer| Use { buffer, write: true });
    let mut uses: Vec<Use<'a>> = writes.chain(reads.iter().map(|&buffer| Use { buffer, write: false })).collect();
    // A stable sort: of equal ones, the write comes first and stays.
    uses.sort_by_key(|used| Arc::as_ptr(used.buffer.allocation()).addr());
    uses.dedup_by(|a, b| a.buffer.shares_allocation(b.buffer));
    uses
}

/// Allocations that a call of [`enqueue`] is about to use; given back however the call ends.
struct Claims<'a> {
    queue: QueueId,
    thread: ThreadId,
    held: Vec<Use<'a>>,
    /// Work may have been enqueued that no event was noted for.
    started: bool,
}

impl<'a> Claims<'a> {
    /// Claims one allocation, and collects the events to wait for.
    fn take(&mut self, used: Use<'a>, before: &mut Vec<Event>) -> Result<(), BufferError> {
        let cell = &used.buffer.allocation().hazards;
        let mut hazards = cell.lock();
        loop {
            hazards.check_not_lost()?;
            if hazards.guards < 0 || (used.write && hazards.guards != 0) {
                return Err(borrowed(used.buffer, if used.write { "written by a queue" } else { "read by a queue" }));
            }
            // One queue is in order whoever enqueues. Of two queues, the second must see the first one's event, which does not exist yet.
            let conflict = hazards.claims.iter().find(|claim| claim.queue != self.queue && (claim.write || used.write));
            match conflict {
                None => break,
                Some(claim) if claim.thread == self.thread => {
                    return Err(borrowed(used.buffer, "used on two queues at once"));
                }
                Some(_) => hazards = cell.claims_changed.wait(hazards).unwrap_or_else(PoisonError::into_inner),
            }
        }
        hazards.claims.push(self.claim(used));
        before.extend(hazards.last_write.iter().cloned());
        if used.write {
            before.extend(hazards.reads.iter().cloned());
        }
        drop(hazards);
        self.held.push(used);
        Ok(())
    }

    fn claim(&self, used: Use<'_>) -> Claim {
        Claim { queue: self.queue, thread: self.thread, write: used.write }
    }

    /// Records an event behind the work and notes it, under the locks of all the allocations: two threads on one queue must note their events in the
    /// order in which they recorded them, or the earlier would hide the later.
    fn note(&mut self, queue: &dyn Queue) -> Result<(), BufferError> {
        let mut locked: Vec<_> = self.held.iter().map(|used| used.buffer.allocation().hazards.lock()).collect();
        let event = queue.record()?;
        for (hazards, used) in locked.iter_mut().zip(&self.held) {
            hazards.note(&event, used.write);
        }
        self.started = false;
        Ok(())
    }
}

impl Drop for Claims<'_> {
    fn drop(&mut self) {
        for &used in &self.held {
            let claim = self.claim(used);
            let cell = &used.buffer.allocation().hazards;
            let mut hazards = cell.lock();
            if let Some(index) = hazards.claims.iter().position(|held| *held == claim) {
                hazards.claims.swap_remove(index);
            }
            hazards.lost |= self.started;
            drop(hazards);
            cell.claims_changed.notify_all();
        }
    }
}

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

    /// Whether the events are complete that a read, or a write, must come after.
    pub(crate) fn events_done(&self, write: bool) -> Result<bool, BufferError> {
        self.check_not_lost()?;
        let reads = if write { self.reads.as_slice() } else { &[] };
        for event in self.last_write.iter().chain(reads) {
            if !event.is_complete()? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether the host may read (all writes are done), or write (all reads, too).
    pub(crate) fn done(&self, write: bool) -> Result<bool, BufferError> {
        let claimed = self.claims.iter().any(|claim| claim.write || write);
        Ok(!claimed && self.events_done(write)?)
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

#[cfg(test)]
mod tests {
    use std::any::Any;
    use std::ptr::NonNull;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use super::*;
    use crate::{DeviceId, EventState, Memory, Region};

    /// A queue whose work is done when a test says so.
    #[derive(Debug)]
    struct ManualQueue {
        id: QueueId,
        done: Arc<AtomicBool>,
        waited_for: Mutex<Vec<QueueId>>,
        fails: AtomicBool,
    }

    #[derive(Debug)]
    struct ManualEvent(QueueId, Arc<AtomicBool>);

    impl EventState for ManualEvent {
        fn queue(&self) -> QueueId {
            self.0
        }
        fn is_complete(&self) -> Result<bool, BufferError> {
            Ok(self.1.load(Ordering::SeqCst))
        }
        fn wait(&self) -> Result<(), BufferError> {
            self.1.store(true, Ordering::SeqCst);
            Ok(())
        }
        fn as_any(&self) -> &dyn Any {
            self
        }
    }

    impl ManualQueue {
        fn new() -> Self {
            Self { id: QueueId::unique(), done: Arc::default(), waited_for: Mutex::default(), fails: AtomicBool::new(false) }
        }
        fn finish(&self) {
            self.done.store(true, Ordering::SeqCst);
        }
        fn waits(&self) -> Vec<QueueId> {
            self.waited_for.lock().unwrap().clone()
        }
    }

    impl Queue for ManualQueue {
        fn id(&self) -> QueueId {
            self.id
        }
        fn device(&self) -> DeviceId {
            DeviceId::CPU
        }
        fn record(&self) -> Result<Event, BufferError> {
            if self.fails.load(Ordering::SeqCst) {
                return Err(BufferError::new(BufferErrorKind::Device, "no event"));
            }
            Ok(Event::new(ManualEvent(self.id, Arc::clone(&self.done))))
        }
        fn wait_for(&self, event: &Event) -> Result<(), BufferError> {
            self.waited_for.lock().unwrap().push(event.queue());
            Ok(())
        }
        fn copy(&self, _: &Buffer, _: &Buffer) -> Result<(), BufferError> {
            Ok(())
        }
        fn copy_region(&self, _: &Region, _: &Region) -> Result<(), BufferError> {
            Ok(())
        }
        fn fill_region(&self, _: &Region, _: &[u8]) -> Result<(), BufferError> {
            Ok(())
        }
        fn as_any(&self) -> &dyn Any {
            self
        }
    }

    fn nothing() -> Result<(), BufferError> {
        Ok(())
    }

    #[test]
    fn a_queue_waits_for_what_conflicts_and_for_nothing_else() {
        let (a, b, c) = (ManualQueue::new(), ManualQueue::new(), ManualQueue::new());
        let (x, y) = (Buffer::from_vec(vec![0; 8]), Buffer::from_vec(vec![0; 8]));
        enqueue(&a, &[], &[&x], nothing).unwrap();
        enqueue(&a, &[&x], &[&y], nothing).unwrap();
        assert_eq!(a.waits(), []);
        enqueue(&b, &[&x], &[], nothing).unwrap();
        assert_eq!(b.waits(), [a.id]);
        // Reads do not wait for reads; a write waits for all of them. A slice is the whole allocation.
        enqueue(&c, &[], &[&x.slice(0..1).unwrap()], nothing).unwrap();
        assert_eq!(c.waits(), [a.id, a.id, b.id]);
        assert_eq!(x.host_read().unwrap_err().kind, BufferErrorKind::NotReady);
        c.finish();
        // The last write is complete, and it came after the rest.
        assert!(x.is_idle().unwrap());
        assert_eq!(y.host_read().unwrap_err().kind, BufferErrorKind::NotReady);
        a.finish();
        assert!(y.host_write().is_ok());
    }

    #[test]
    fn a_read_by_a_queue_keeps_out_the_writes_of_the_host_alone() {
        let queue = ManualQueue::new();
        let buffer = Buffer::from_vec(vec![0; 8]);
        enqueue(&queue, &[&buffer, &buffer], &[], nothing).unwrap();
        assert!(buffer.host_read().is_ok());
        assert_eq!(buffer.host_write().unwrap_err().kind, BufferErrorKind::NotReady);
        queue.finish();
        assert!(buffer.host_write().is_ok());
    }

    #[test]
    fn guards_keep_queues_out() {
        let queue = ManualQueue::new();
        let buffer = Buffer::from_vec(vec![0; 8]);
        let kind = |result: Result<(), BufferError>| result.unwrap_err().kind;
        let read = buffer.host_read().unwrap();
        assert_eq!(kind(enqueue(&queue, &[], &[&buffer], nothing)), BufferErrorKind::Borrowed);
        enqueue(&queue, &[&buffer], &[], nothing).unwrap();
        drop(read);
        queue.finish();
        let write = buffer.host_write().unwrap();
        assert_eq!(kind(enqueue(&queue, &[&buffer], &[], nothing)), BufferErrorKind::Borrowed);
        drop(write);
        enqueue(&queue, &[&buffer], &[&buffer], nothing).unwrap();
    }

    #[test]
    fn the_host_is_kept_out_while_work_is_enqueued() {
        let queue = ManualQueue::new();
        queue.finish();
        let buffer = Buffer::from_vec(vec![0; 8]);
        enqueue(&queue, &[], &[&buffer], || {
            assert_eq!(buffer.host_read().unwrap_err().kind, BufferErrorKind::NotReady);
            enqueue(&queue, &[&buffer], &[], || {
                assert_eq!(buffer.host_write().unwrap_err().kind, BufferErrorKind::NotReady);
                nothing()
            })
        })
        .unwrap();
        assert!(buffer.host_write().is_ok());
    }

    #[test]
    fn of_two_threads_the_second_sees_the_event_of_the_first() {
        let (a, b) = (ManualQueue::new(), ManualQueue::new());
        let buffer = Buffer::from_vec(vec![0; 8]);
        let (inside, is_inside) = channel();
        let order = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                enqueue(&a, &[], &[&buffer], || {
                    inside.send(()).unwrap();
                    std::thread::sleep(Duration::from_millis(30));
                    assert_eq!(order.fetch_add(1, Ordering::SeqCst), 0);
                    nothing()
                })
                .unwrap();
            });
            is_inside.recv().unwrap();
            enqueue(&b, &[&buffer], &[], || {
                assert_eq!(order.fetch_add(1, Ordering::SeqCst), 1);
                nothing()
            })
            .unwrap();
        });
        assert_eq!(b.waits(), [a.id]);
    }

    #[test]
    fn one_thread_on_two_queues_at_once_is_refused_rather_than_stuck() {
        let (a, b) = (ManualQueue::new(), ManualQueue::new());
        let buffer = Buffer::from_vec(vec![0; 8]);
        let result = enqueue(&a, &[], &[&buffer], || enqueue(&b, &[&buffer], &[], nothing));
        assert_eq!(result.unwrap_err().kind, BufferErrorKind::Borrowed);
    }

    /// Memory that says when it is freed.
    #[derive(Debug)]
    struct Watched {
        freed: Arc<AtomicBool>,
        retired: Arc<Mutex<Vec<QueueId>>>,
    }

    impl Drop for Watched {
        fn drop(&mut self) {
            self.freed.store(true, Ordering::SeqCst);
        }
    }

    // SAFETY: there are no bytes.
    unsafe impl Memory for Watched {
        fn device(&self) -> DeviceId {
            DeviceId::CPU
        }
        fn len(&self) -> usize {
            0
        }
        fn address(&self) -> u64 {
            0
        }
        fn host_pointer(&self) -> Option<NonNull<u8>> {
            None
        }
        fn as_any(&self) -> &dyn Any {
            self
        }
        fn retire(&mut self, pending: &[Event]) {
            assert!(!self.freed.load(Ordering::SeqCst));
            self.retired.lock().unwrap().extend(pending.iter().map(|event| event.queue()));
        }
    }

    fn watched() -> (Buffer, Arc<AtomicBool>, Arc<Mutex<Vec<QueueId>>>) {
        let (freed, retired) = (Arc::default(), Arc::default());
        (Buffer::new(Watched { freed: Arc::clone(&freed), retired: Arc::clone(&retired) }), freed, retired)
    }

    #[test]
    fn memory_learns_what_is_pending_when_it_is_freed() {
        let (a, b) = (ManualQueue::new(), ManualQueue::new());
        let (buffer, freed, retired) = watched();
        enqueue(&a, &[], &[&buffer], nothing).unwrap();
        enqueue(&b, &[&buffer], &[], nothing).unwrap();
        a.finish();
        let slice = buffer.slice(0..0).unwrap();
        drop(buffer);
        assert!(!freed.load(Ordering::SeqCst));
        drop(slice);
        assert!(freed.load(Ordering::SeqCst));
        assert_eq!(*retired.lock().unwrap(), [b.id]);
    }

    #[test]
    fn host_memory_is_freed_behind_its_work() {
        let queue = ManualQueue::new();
        let buffer = Buffer::from_vec(vec![0; 8]);
        enqueue(&queue, &[&buffer], &[], nothing).unwrap();
        drop(buffer);
        assert!(queue.done.load(Ordering::SeqCst), "the end of plain host memory waits");
    }

    #[test]
    fn bytes_under_work_without_an_event_are_lost() {
        let queue = ManualQueue::new();
        queue.fails.store(true, Ordering::SeqCst);
        let (buffer, freed, _) = watched();
        assert!(enqueue(&queue, &[], &[&buffer], nothing).is_err());
        queue.fails.store(false, Ordering::SeqCst);
        assert_eq!(buffer.is_idle().unwrap_err().kind, BufferErrorKind::Device);
        assert!(buffer.wait().is_err());
        assert!(enqueue(&queue, &[&buffer], &[], nothing).is_err());
        drop(buffer);
        assert!(!freed.load(Ordering::SeqCst));

        let panicking = Buffer::from_vec(vec![0; 8]);
        let work = || -> Result<(), BufferError> { panic!("on purpose") };
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| enqueue(&queue, &[], &[&panicking], work)));
        assert!(caught.is_err());
        assert_eq!(panicking.host_read().unwrap_err().kind, BufferErrorKind::Device);
    }

    #[test]
    fn failed_work_is_noted_all_the_same() {
        let queue = ManualQueue::new();
        let buffer = Buffer::from_vec(vec![0; 8]);
        let work = || Err::<(), _>(BufferError::parameter("halfway"));
        assert!(enqueue(&queue, &[], &[&buffer], work).is_err());
        assert_eq!(buffer.host_read().unwrap_err().kind, BufferErrorKind::NotReady);
        queue.finish();
        assert!(buffer.host_read().is_ok());
    }

    #[test]
    fn complete_reads_are_forgotten() {
        let buffer = Buffer::from_vec(vec![0; 8]);
        for _ in 0..100 {
            let queue = ManualQueue::new();
            queue.finish();
            enqueue(&queue, &[&buffer], &[], nothing).unwrap();
        }
        assert_eq!(buffer.allocation().hazards.lock().reads.len(), 1);
    }
}

//! Finds work that nothing orders.
//!
//! Work is numbered within its queue. Every queue carries a clock: for each queue, up to which number its next work comes after. Waiting for an
//! event joins the event's clock into the queue's. What the host has seen to be complete comes before whatever is enqueued
//! later, and is forgotten. Two pieces of work on the same bytes, one of them writing, race if the later submitted does not come after the earlier.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;

use zarr_buffer_api::QueueId;

/// What a user of a toy device did wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Violation {
    /// Which kind of mistake.
    pub kind: ViolationKind,
    /// Where and by whom.
    pub message: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind, self.message)
    }
}

/// Kinds of mistake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ViolationKind {
    /// Two queues used the same bytes, one of them to write, and nothing ordered them.
    Race,
    /// Device bytes were read that nothing had written.
    UninitialisedRead,
    /// Memory was freed, and nothing ordered that after the work that used it.
    FreedInUse,
}

impl fmt::Display for ViolationKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Race => "race",
            Self::UninitialisedRead => "uninitialised read",
            Self::FreedInUse => "freed in use",
        })
    }
}

/// For each queue, the number of the last work that comes before.
#[derive(Debug, Clone, Default)]
pub(super) struct Clock(HashMap<QueueId, u64>);

impl Clock {
    fn of(&self, queue: QueueId) -> u64 {
        self.0.get(&queue).copied().unwrap_or(0)
    }

    fn join(&mut self, other: &Self) {
        for (&queue, &number) in &other.0 {
            let mine = self.0.entry(queue).or_insert(0);
            *mine = (*mine).max(number);
        }
    }
}

/// Bytes of an allocation that a piece of work uses.
#[derive(Debug, Clone)]
pub(super) struct Touch {
    /// Address of the allocation.
    pub(super) allocation: u64,
    /// Bytes within it; of a strided box, from its first to its last.
    pub(super) bytes: Range<usize>,
    pub(super) write: bool,
}

#[derive(Debug)]
struct Access {
    queue: QueueId,
    number: u64,
    bytes: Range<usize>,
    write: bool,
}

#[derive(Debug, Default)]
pub(super) struct Tracker {
    /// What the host has seen to be complete.
    host: Clock,
    queues: HashMap<QueueId, Clock>,
    accesses: HashMap<u64, Vec<Access>>,
    violations: Vec<Violation>,
}

impl Tracker {
    /// Numbers new work on `queue` and checks it against all work submitted before.
    pub(super) fn submit(&mut self, queue: QueueId, touches: &[Touch]) -> u64 {
        let clock = self.queues.entry(queue).or_default();
        let number = clock.of(queue) + 1;
        clock.0.insert(queue, number);
        for touch in touches.iter().filter(|touch| !touch.bytes.is_empty()) {
            let accesses = self.accesses.entry(touch.allocation).or_default();
            // Everything to come comes after what the host has seen.
            accesses.retain(|access| access.number > self.host.of(access.queue));
            let race = accesses.iter().find(|access| {
                let overlaps = access.bytes.start < touch.bytes.end && touch.bytes.start < access.bytes.end;
                overlaps && (access.write || touch.write) && access.queue != queue && access.number > clock.of(access.queue)
            });
            if let Some(access) = race {
                let verb = |write: bool| if write { "written" } else { "read" };
                self.violations.push(Violation {
                    kind: ViolationKind::Race,
                    message: format!(
                        "bytes {:?} of {:#x}, {} by work {number} of {queue:?}, while bytes {:?} are {} by work {} of {:?}",
                        touch.bytes,
                        touch.allocation,
                        verb(touch.write),
                        access.bytes,
                        verb(access.write),
                        access.number,
                        access.queue
                    ),
                });
            }
            let same = |access: &&mut Access| access.queue == queue && access.write == touch.write && access.bytes == touch.bytes;
            match accesses.iter_mut().find(same) {
                Some(access) => access.number = number,
                None => accesses.push(Access { queue, number, bytes: touch.bytes.clone(), write: touch.write }),
            }
        }
        number
    }

    /// Work on `queue` from now on comes after an event.
    pub(super) fn order_after(&mut self, queue: QueueId, event: &Clock) {
        self.queues.entry(queue).or_default().join(event);
    }

    /// The number of the last work on `queue`, and all that comes before a point after it.
    pub(super) fn point(&mut self, queue: QueueId) -> (u64, Clock) {
        let clock = self.queues.entry(queue).or_default();
        (clock.of(queue), clock.clone())
    }

    /// The host has seen an event to be complete.
    pub(super) fn host_saw(&mut self, event: &Clock) {
        self.host.join(event);
    }

    /// An allocation is freed once the events of `after` are complete.
    pub(super) fn free(&mut self, allocation: u64, after: &[&Clock]) {
        let mut clock = self.host.clone();
        after.iter().for_each(|event| clock.join(event));
        let accesses = self.accesses.remove(&allocation).unwrap_or_default();
        if let Some(access) = accesses.iter().find(|access| access.number > clock.of(access.queue)) {
            let message = format!("{allocation:#x} is freed under work {} of {:?}", access.number, access.queue);
            self.report(ViolationKind::FreedInUse, message);
        }
    }

    pub(super) fn report(&mut self, kind: ViolationKind, message: String) {
        self.violations.push(Violation { kind, message });
    }

    pub(super) fn violations(&self) -> &[Violation] {
        &self.violations
    }

    pub(super) fn take_violations(&mut self) -> Vec<Violation> {
        std::mem::take(&mut self.violations)
    }
}

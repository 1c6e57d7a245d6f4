use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use zarr_buffer_api::{Buffer, BufferError, BufferErrorKind, DeviceId, Event, EventState, Layout, Queue, QueueId, Region, enqueue};

use super::device::{Schedule, ToyFault, World};
use super::memory::{Gathered, Operand, Side};
use super::tracker::{Clock, Touch};

/// Work that runs on the thread of a queue.
type Run = Box<dyn FnOnce(&World) -> Result<(), BufferError> + Send>;

enum Work {
    Run(Run),
    WaitFor(Event),
}

struct Job {
    number: u64,
    work: Work,
}

/// An in-order queue with a thread of its own.
pub(super) struct ToyQueue {
    progress: Arc<Progress>,
    jobs: Sender<Job>,
}

/// How far a queue is; events hold on to it when the queue is gone.
pub(super) struct Progress {
    id: QueueId,
    world: Arc<World>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Work up to this number is done.
    done: u64,
    /// Work up to this number may start.
    released: u64,
    /// The first work that failed, and why. What comes behind it is not run.
    failed: Option<(u64, String)>,
}

impl Progress {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn outcome(&self, state: &State, number: u64) -> Result<bool, BufferError> {
        match &state.failed {
            Some((failed, message)) if *failed <= number => {
                Err(BufferError::new(BufferErrorKind::Device, message.clone()).on(self.world.id))
            }
            _ => Ok(state.done >= number),
        }
    }

    /// Lets work up to `number` start.
    fn release(&self, number: u64) {
        let mut state = self.state();
        state.released = state.released.max(number);
        self.changed.notify_all();
    }

    fn wait(&self, number: u64) -> Result<(), BufferError> {
        self.release(number);
        let mut state = self.state();
        while !self.outcome(&state, number)? {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        Ok(())
    }

    /// The thread of the queue.
    fn run(&self, jobs: &Receiver<Job>, index: u64) {
        for job in jobs {
            let mut state = self.state();
            while state.released < job.number {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            let failed = state.failed.is_some();
            drop(state);
            if let Schedule::Delayed { seed } = self.world.options.schedule {
                std::thread::sleep(Duration::from_micros(mix(seed ^ index << 32 ^ job.number) % 300));
            }
            let result = if failed { Ok(()) } else { self.run_one(job.work) };
            let mut state = self.state();
            if let Err(message) = result {
                state.failed = Some((job.number, message));
            }
            state.done = job.number;
            drop(state);
            self.changed.notify_all();
        }
    }

    fn run_one(&self, work: Work) -> Result<(), String> {
        match work {
            Work::WaitFor(event) => {
                let outcome = match event.as_any().downcast_ref::<ToyEvent>() {
                    Some(event) => event.progress.wait(event.number),
                    None => event.wait(),
                };
                outcome.map_err(|error| error.to_string())
            }
            Work::Run(run) => match catch_unwind(AssertUnwindSafe(|| run(&self.world))) {
                Ok(outcome) => outcome.map_err(|error| error.to_string()),
                Err(_) => Err("work panicked".into()),
            },
        }
    }
}

/// A well-mixed function of `value` (the finalizer of splitmix64).
fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let value = (value ^ value >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ value >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ value >> 31
}

impl ToyQueue {
    pub(super) fn new(world: &Arc<World>, index: u64) -> Result<Self, BufferError> {
        let state = State { released: if world.options.schedule == Schedule::WhenWaitedFor { 0 } else { u64::MAX }, ..State::default() };
        let progress =
            Arc::new(Progress { id: QueueId::unique(), world: Arc::clone(world), state: Mutex::new(state), changed: Condvar::new() });
        let (jobs, receiver) = channel();
        let thread = Arc::clone(&progress);
        std::thread::Builder::new()
            .name(format!("{} queue {index}", world.id))
            .spawn(move || thread.run(&receiver, index))
            .map_err(|error| BufferError::new(BufferErrorKind::Device, "no thread for a queue").on(world.id).with_source(error))?;
        Ok(Self { progress, jobs })
    }

    pub(super) fn world(&self) -> &Arc<World> {
        &self.progress.world
    }

    /// Enqueues work. To be called only from within [`enqueue`] for the buffers behind `operands`.
    fn submit(&self, touches: &[Touch], work: Work) -> Result<u64, BufferError> {
        // Under the lock of the tracker, so that numbers are in the order of the channel.
        let mut tracker = self.world().tracker();
        let number = tracker.submit(self.progress.id, touches);
        self.jobs.send(Job { number, work }).map_err(|_| BufferError::new(BufferErrorKind::Device, "the queue's thread is gone"))?;
        Ok(number)
    }

    /// Enqueues work that reads and writes what `touches` says, ordered and noted on the buffers.
    pub(super) fn launch(&self, reads: &[&Buffer], writes: &[&Buffer], touches: &[Touch], run: Run) -> Result<(), BufferError> {
        if self.world().options.fault.is_none() {
            return enqueue(self, reads, writes, || self.submit(touches, Work::Run(run)).map(drop));
        }
        // A wrong device must stay memory-safe: what the host can see is not left pending.
        let visible = reads.iter().chain(writes).any(|buffer| buffer.is_host_visible());
        let submit = || {
            let number = self.submit(touches, Work::Run(run))?;
            if visible { self.progress.wait(number) } else { Ok(()) }
        };
        match self.world().options.fault {
            Some(ToyFault::ForgetsEvents) if !visible => submit(),
            _ => enqueue(self, reads, writes, submit),
        }
    }

    /// Copies the statuses of a batch to the host; counted apart from copies of data.
    pub(super) fn copy_statuses(&self, source: &Buffer, destination: &Buffer) -> Result<(), BufferError> {
        self.enqueue_copy(source, destination)?;
        self.world().tally.status_copies.add(1);
        Ok(())
    }

    fn enqueue_copy(&self, source: &Buffer, destination: &Buffer) -> Result<(Side, Side), BufferError> {
        if source.len() != destination.len() {
            return Err(BufferError::parameter(format!("copy of {} bytes to {}", source.len(), destination.len())));
        }
        refuse_overlap(source, 0..source.len(), destination, 0..destination.len())?;
        let (from, to) = (Operand::new(self.world(), source)?, Operand::new(self.world(), destination)?);
        let sides = (from.side(), to.side());
        let mut len = source.len();
        if self.world().options.fault == Some(ToyFault::CopiesShort) {
            len = len.saturating_sub(1);
        }
        let bytes = Layout::contiguous(&[len], 1)?;
        let touches: Vec<Touch> = from.touch(&bytes, false).into_iter().chain(to.touch(&bytes, true)).collect();
        let run = move |world: &World| {
            // Between two places on the device, what was never written stays so.
            let elements = if to.side() == Side::Device { from.gather(&bytes)? } else { from.gather_checked(&bytes, world)? };
            to.scatter(&bytes, &elements)
        };
        self.launch(&[source], &[destination], &touches, Box::new(run))?;
        Ok(sides)
    }

    fn check_region(&self, region: &Region) -> Result<Operand, BufferError> {
        // A region's fields are public: it may have changed since it was checked.
        region.layout.check_within(region.buffer.len())?;
        let operand = Operand::new(self.world(), &region.buffer)?;
        if operand.side() == Side::Host {
            let message = "a box in host memory; only whole buffers are copied to and from the host";
            return Err(BufferError::new(BufferErrorKind::Unsupported, message).on(self.world().id));
        }
        Ok(operand)
    }
}

impl Drop for ToyQueue {
    fn drop(&mut self) {
        // Work outlives the handle: the thread ends once all of it is done.
        self.progress.release(u64::MAX);
    }
}

impl fmt::Debug for ToyQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ToyQueue({:?} on {})", self.progress.id, self.world().id)
    }
}

impl Queue for ToyQueue {
    fn id(&self) -> QueueId {
        self.progress.id
    }

    fn device(&self) -> DeviceId {
        self.world().id
    }

    fn record(&self) -> Result<Event, BufferError> {
        let (number, clock) = self.world().tracker().point(self.progress.id);
        Ok(Event::new(ToyEvent { progress: Arc::clone(&self.progress), number, clock }))
    }

    fn wait_for(&self, event: &Event) -> Result<(), BufferError> {
        if event.queue() == self.progress.id {
            return Ok(());
        }
        self.world().tally.queue_waits.add(1);
        if self.world().options.fault == Some(ToyFault::IgnoresWaits) {
            return Ok(());
        }
        self.submit(&[], Work::WaitFor(event.clone()))?;
        if let Some(event) = event.as_any().downcast_ref::<ToyEvent>() {
            self.world().tracker().order_after(self.progress.id, &event.clock);
        }
        Ok(())
    }

    fn copy(&self, source: &Buffer, destination: &Buffer) -> Result<(), BufferError> {
        let tally = &self.world().tally;
        let moved = match self.enqueue_copy(source, destination)? {
            (Side::Host, Side::Device) => &tally.host_to_device,
            (Side::Device, Side::Host) => &tally.device_to_host,
            (Side::Device, Side::Device) => &tally.device_to_device,
            (Side::Host, Side::Host) => &tally.host_to_host,
        };
        moved.add(source.len());
        Ok(())
    }

    fn copy_region(&self, source: &Region, destination: &Region) -> Result<(), BufferError> {
        let (from, to) = (&source.layout, &destination.layout);
        if from.shape != to.shape || from.item_size != to.item_size {
            let message = format!("copy of {:?} x {} bytes to {:?} x {}", from.shape, from.item_size, to.shape, to.item_size);
            return Err(BufferError::parameter(message));
        }
        let (read, write) = (self.check_region(source)?, self.check_region(destination)?);
        refuse_overlap(&source.buffer, from.span()?, &destination.buffer, to.span()?)?;
        let touches: Vec<Touch> = read.touch(from, false).into_iter().chain(write.touch(to, true)).collect();
        let (from, to) = (from.clone(), to.clone());
        let len = from.len() * from.item_size;
        let run = move |_: &World| write.scatter(&to, &read.gather(&from)?);
        self.launch(&[&source.buffer], &[&destination.buffer], &touches, Box::new(run))?;
        self.world().tally.region_copies.add(len);
        Ok(())
    }

    fn fill_region(&self, destination: &Region, element: &[u8]) -> Result<(), BufferError> {
        let layout = destination.layout.clone();
        if element.len() != layout.item_size {
            return Err(BufferError::parameter(format!("an element of {} bytes into elements of {}", element.len(), layout.item_size)));
        }
        let write = self.check_region(destination)?;
        let touches: Vec<Touch> = write.touch(&layout, true).into_iter().collect();
        let elements = Gathered::new(element.repeat(layout.len()));
        let len = elements.bytes.len();
        let run = move |_: &World| write.scatter(&layout, &elements);
        self.launch(&[], &[&destination.buffer], &touches, Box::new(run))?;
        self.world().tally.fills.add(len);
        Ok(())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

fn refuse_overlap(
    source: &Buffer,
    from: std::ops::Range<usize>,
    destination: &Buffer,
    to: std::ops::Range<usize>,
) -> Result<(), BufferError> {
    let (from, to) =
        (source.offset() + from.start..source.offset() + from.end, destination.offset() + to.start..destination.offset() + to.end);
    if source.shares_allocation(destination) && from.start < to.end && to.start < from.end {
        return Err(BufferError::parameter("source and destination of a copy overlap"));
    }
    Ok(())
}

/// A point in a toy queue.
pub(super) struct ToyEvent {
    progress: Arc<Progress>,
    number: u64,
    clock: Clock,
}

impl ToyEvent {
    pub(super) fn clock(&self) -> &Clock {
        &self.clock
    }

    fn seen_complete(&self) {
        self.progress.world.tracker().host_saw(&self.clock);
    }
}

impl fmt::Debug for ToyEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ToyEvent({} of {:?})", self.number, self.progress.id)
    }
}

impl EventState for ToyEvent {
    fn queue(&self) -> QueueId {
        self.progress.id
    }

    fn is_complete(&self) -> Result<bool, BufferError> {
        let state = self.progress.state();
        let complete = self.progress.outcome(&state, self.number)?;
        drop(state);
        if complete {
            self.seen_complete();
        }
        Ok(complete)
    }

    fn wait(&self) -> Result<(), BufferError> {
        self.progress.world.tally.host_waits.add(1);
        self.progress.wait(self.number)?;
        self.seen_complete();
        Ok(())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

//! Reads to a device one after the other, the next ones running ahead.

use std::fmt;
use std::iter::FusedIterator;
use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::{DeviceTarget, PendingTensor, Tensor, enqueue_each};
use crate::pool::is_waited_for;
use crate::{Array, ArrayError, Selection};

/// Reads ahead of the one that is handed out, where nobody says: one that is fetched while the device decodes another.
const AHEAD: usize = 2;

/// Tensors on a device, in the order of their selections. See [`Array::read_each_to_device`].
pub struct ReadEachToDevice<I> {
    ahead: usize,
    state: State<I>,
}

enum State<I> {
    Fresh(Box<(Array, DeviceTarget, I)>),
    Running(Running),
    Over,
}

/// Reads that were begun.
struct Running {
    pending: Receiver<Result<PendingTensor, ArrayError>>,
    thread: JoinHandle<()>,
    process: u32,
    /// Whether they are done by threads apart: [`Array::apart`].
    is_apart: bool,
}

impl Array {
    /// Reads each selection as [`Array::read_to_device`] does, one after the other, while a thread of its own fetches and enqueues the next ones: the store, the copies to the
    /// device, its decoding and the caller's work on what came before go on side by side.
    ///
    /// An async store is asked for as many reads ahead as [`Options::with_concurrency`](crate::Options::with_concurrency) and
    /// [`Options::with_in_flight_bytes`](crate::Options::with_in_flight_bytes) allow; what it answers waits in memory of the host.
    ///
    /// At most two reads are ahead of the tensor that is handed out ([`ReadEachToDevice::with_ahead`] says otherwise), each with memory of the device for its
    /// result. Work is enqueued on the queue of `target` in the order of the selections. A read that fails gives its error, and the iterator goes on with the next
    /// selection. Dropping the iterator begins no more reads, but for one whose selection is being asked for.
    ///
    /// What a thread of a Rayon pool waits for from the first on is read by threads apart, as [`Array::read_each`] has it. One that takes the iterator over from another kind of thread does other
    /// work of its pool while it waits: it must hold no lock that this may want.
    pub fn read_each_to_device<I>(&self, selections: I, target: &DeviceTarget) -> ReadEachToDevice<I::IntoIter>
    where
        I: IntoIterator<Item = Selection, IntoIter: Send + 'static>,
    {
        let state = State::Fresh(Box::new((self.clone(), target.clone(), selections.into_iter())));
        ReadEachToDevice { ahead: AHEAD, state }
    }
}

impl<I: Iterator<Item = Selection> + Send + 'static> ReadEachToDevice<I> {
    /// Sets how many reads may be ahead of the one that is handed out, from 1 to 1,024.
    #[must_use]
    pub fn with_ahead(mut self, reads: usize) -> Self {
        self.ahead = reads.clamp(1, 1024);
        self
    }

    fn start(&mut self) -> Result<(), ArrayError> {
        let (array, target, selections) = match std::mem::replace(&mut self.state, State::Over) {
            State::Fresh(fresh) => *fresh,
            begun => {
                self.state = begun;
                return Ok(());
            }
        };
        let apart = if rayon::current_thread_index().is_some() { array.apart() } else { None };
        let (is_apart, array) = (apart.is_some(), apart.unwrap_or(array));
        // One more is enqueued by the thread before it finds that there is no room.
        let (sender, pending) = sync_channel(self.ahead - 1);
        let work = move || {
            enqueue_each(selections.map(|selection| (array.clone(), selection)), &target, |read| sender.send(read).is_ok());
        };
        let started = thread::Builder::new().name("zarr-read-each".into()).spawn(work);
        let thread = started.map_err(|error| ArrayError::parameter(format!("cannot start a thread: {error}")))?;
        self.state = State::Running(Running { pending, thread, process: std::process::id(), is_apart });
        Ok(())
    }
}

impl<I: Iterator<Item = Selection> + Send + 'static> Iterator for ReadEachToDevice<I> {
    type Item = Result<Tensor, ArrayError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Err(error) = self.start() {
            return Some(Err(error));
        }
        let State::Running(running) = &self.state else { return None };
        if running.process != std::process::id() {
            self.state = State::Over;
            return Some(Err(ArrayError::parameter("the reads were begun by a process that this one was forked from")));
        }
        if let Some(read) = running.receive() {
            return Some(read.and_then(PendingTensor::wait));
        }
        if let State::Running(Running { thread, .. }) = std::mem::replace(&mut self.state, State::Over) {
            thread.join().unwrap_or_else(|panic| resume_unwind(panic));
        }
        None
    }
}

impl Running {
    /// Waits for the next read; `None`: there is none. A thread of a pool that the reads may need does the pool's work meanwhile.
    fn receive(&self) -> Option<Result<PendingTensor, ArrayError>> {
        const IDLE: Duration = Duration::from_millis(1);
        let needed = rayon::current_thread_index().is_some() && (is_waited_for() || !self.is_apart);
        if !needed {
            return self.pending.recv().ok();
        }
        loop {
            let wait = if rayon::yield_now() == Some(rayon::Yield::Executed) { Duration::ZERO } else { IDLE };
            match self.pending.recv_timeout(wait) {
                Ok(read) => return Some(read),
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }
}

impl<I: Iterator<Item = Selection> + Send + 'static> FusedIterator for ReadEachToDevice<I> {}

impl<I> fmt::Debug for ReadEachToDevice<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadEachToDevice").field("ahead", &self.ahead).finish_non_exhaustive()
    }
}

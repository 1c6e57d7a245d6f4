//! Waiting that Ctrl-C ends.

use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread, ThreadId};
use std::time::{Duration, Instant};

use pyo3::prelude::*;

use crate::error::{Outcome, parameter};

/// How long a signal may wait to be seen.
pub(crate) const TURN: Duration = Duration::from_millis(50);

/// The result of a future, without Python's lock. A handler of a signal that raises, as that of Ctrl-C does, drops the future.
pub(crate) fn wait<T: Send>(py: Python<'_>, future: impl Future<Output = T> + Send) -> PyResult<T> {
    py.detach(|| wait_detached(future))
}

/// As [`wait`], but with `removes`, which no signal ends: half of what was to be removed would be there, for who is next to find.
pub(crate) fn wait_unless<T: Send>(py: Python<'_>, removes: bool, future: impl Future<Output = T> + Send) -> PyResult<T> {
    py.detach(|| wait_with(future, !removes))
}

/// As [`wait`], for who has let go of Python's lock.
pub(crate) fn wait_detached<T>(future: impl Future<Output = T>) -> PyResult<T> {
    wait_with(future, true)
}

fn wait_with<T>(future: impl Future<Output = T>, signals: bool) -> PyResult<T> {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    let mut end = Instant::now() + TURN;
    loop {
        if let Poll::Ready(done) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return Ok(done);
        }
        // Each request that ends wakes this thread: only Python's signals need its lock.
        match end.checked_duration_since(Instant::now()) {
            Some(left) => thread::park_timeout(left),
            None => {
                if signals {
                    Python::attach(|py| py.check_signals())?;
                }
                end = Instant::now() + TURN;
            }
        }
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// What one thread at a time does, waiting so that a signal's handler may run meanwhile: one that wants the same is refused, where it would wait for itself.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    lock: Mutex<()>,
    holder: Mutex<Option<ThreadId>>,
}

impl Turn {
    /// Waits for the turn. `being`: what is done to what, for the one that is refused. For who has let go of Python's lock.
    pub(crate) fn take(&self, being: &str) -> Outcome<Taken<'_>> {
        if *self.holder() == Some(thread::current().id()) {
            return Err(parameter(format!("the {being}, by what a signal's handler interrupted")));
        }
        let lock = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        *self.holder() = Some(thread::current().id());
        Ok(Taken { turn: self, _lock: lock })
    }

    fn holder(&self) -> MutexGuard<'_, Option<ThreadId>> {
        self.holder.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A turn, until it is dropped.
pub(crate) struct Taken<'a> {
    turn: &'a Turn,
    _lock: MutexGuard<'a, ()>,
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        *self.turn.holder() = None;
    }
}

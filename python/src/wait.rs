//! Waiting that Ctrl-C ends.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use pyo3::prelude::*;

/// How long a signal may wait to be seen.
pub(crate) const TURN: Duration = Duration::from_millis(50);

/// The result of a future, without Python's lock. A handler of a signal that raises, as that of Ctrl-C does, drops the future.
pub(crate) fn wait<T: Send>(py: Python<'_>, future: impl Future<Output = T> + Send) -> PyResult<T> {
    py.detach(|| wait_detached(future))
}

/// As [`wait`], for who has let go of Python's lock.
pub(crate) fn wait_detached<T>(future: impl Future<Output = T>) -> PyResult<T> {
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
                Python::attach(|py| py.check_signals())?;
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

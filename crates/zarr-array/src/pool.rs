//! The threads that decode and encode, and the memory that each of them reuses.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytemuck::AnyBitPattern;
use rayon::prelude::*;
use zarr_buffer_api::{BufferError, FreshPart, unwritten, unwritten_shared};
use zarr_codec_api::Scratch;

use crate::ArrayError;

/// The threads that an array decodes and encodes on. Codecs start none of their own.
///
/// A process that was forked has none of its parent's threads: there, the first use starts as many again. Of Rayon's global pool this is known only where an array was the
/// first in the parent to use it.
///
/// What a thread of a Rayon pool waits for in [`Array::read_each`](crate::Array::read_each) is read by other threads, as many as the pool has. A store that reads arrays does so, when it is asked by
/// them, by these threads, too, whatever pool its arrays have: the threads of that may all be waiting.
#[derive(Debug, Clone, Default)]
pub struct Pool(Option<Own>);

/// A pool of the caller's, or one that was started here, and the process that has its threads.
#[derive(Debug, Clone)]
struct Own {
    pool: Arc<rayon::ThreadPool>,
    process: u32,
    /// Whether threads of other pools wait for it: [`Pool::apart`].
    waited_for: bool,
}

impl Pool {
    /// Rayon's global pool: a thread for each core.
    pub fn global() -> Self {
        Self(None)
    }

    /// A pool of the caller's.
    pub fn new(pool: Arc<rayon::ThreadPool>) -> Self {
        Self(Some(Own { pool, process: std::process::id(), waited_for: false }))
    }

    /// The pool to use in this process; `None`: the one that this thread is of, or Rayon's global one.
    fn here(&self) -> Option<Arc<rayon::ThreadPool>> {
        /// The first process to use the global pool: children do not have its threads.
        static GLOBAL: AtomicU32 = AtomicU32::new(0);
        if is_waited_for() {
            // The threads of the pool may all wait for this one.
            return None;
        }
        let here = std::process::id();
        match &self.0 {
            Some(own) if own.process == here => Some(Arc::clone(&own.pool)),
            Some(own) => started(here, own.pool.current_num_threads(), own.waited_for).map(|own| own.pool),
            None => match GLOBAL.compare_exchange(0, here, Ordering::Relaxed, Ordering::Relaxed) {
                Err(process) if process != here => started(here, rayon::current_num_threads(), false).map(|own| own.pool),
                _ => None,
            },
        }
    }

    /// Runs `work` where parallel iterators use this pool.
    pub(crate) fn run<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        match self.here() {
            Some(pool) => pool.install(work),
            None => work(),
        }
    }

    /// Runs `work` on this thread, and what it spawns on threads of the pool, in order; ends when all of that has.
    pub(crate) fn scope<'scope, R>(&self, work: impl FnOnce(&rayon::ScopeFifo<'scope>) -> R) -> R {
        match self.here() {
            Some(pool) => pool.in_place_scope_fifo(work),
            None => rayon::in_place_scope_fifo(work),
        }
    }

    /// Memory for a result, of elements that hold anything. Where somebody must be the first to touch it before it is written, and where chunks are `spread`
    /// over it ([`Plan::is_spread`](crate::plan::Plan::is_spread)), the threads do so now, each its own huge pages.
    pub(crate) fn unwritten<T: AnyBitPattern>(&self, len: usize, spread: bool) -> Result<Vec<T>, BufferError> {
        /// Less is touched in the time that it takes to wake threads.
        const SHARE: usize = 8 << 20;
        if len.saturating_mul(size_of::<T>()) < SHARE || self.threads() < 2 {
            return unwritten(len);
        }
        unwritten_shared(len, |parts| {
            if spread || parts.iter().any(|part| !part.is_zeroed()) {
                self.run(|| parts.par_iter_mut().for_each(FreshPart::touch));
            }
        })
    }

    /// As many threads again, for all pools of as many: for who has to wait, on a thread of a pool, for what is done by others. A thread that waits for its own pool does other work of
    /// the pool meanwhile, and that may wait for what this thread holds. `None` where no threads can be had. On one of these
    /// threads: the pool that it is of.
    pub(crate) fn apart(&self) -> Option<Self> {
        started(std::process::id(), self.threads(), true).map(|own| Self(Some(own)))
    }

    /// How many threads there are.
    pub(crate) fn threads(&self) -> usize {
        self.here().map_or_else(rayon::current_num_threads, |pool| pool.current_num_threads())
    }

    /// Runs `work` on a thread of the pool, later.
    pub(crate) fn spawn(&self, work: impl FnOnce() + Send + 'static) {
        match self.here() {
            Some(pool) => pool.spawn(work),
            None => rayon::spawn(work),
        }
    }

    /// Runs `work` on the pool and gives its result, or its panic, to an async caller. If the caller goes away, the work still runs to its end, on memory that it owns.
    pub(crate) async fn compute<R: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<R, ArrayError> + Send + 'static,
    ) -> Result<R, ArrayError> {
        let (sender, receiver) = futures::channel::oneshot::channel();
        self.spawn(move || {
            // Nobody waiting any more is no reason to fail.
            let _ = sender.send(catch_unwind(AssertUnwindSafe(work)));
        });
        match receiver.await {
            Ok(done) => done.unwrap_or_else(|panic| resume_unwind(panic)),
            Err(_) => Err(ArrayError::parameter("the thread pool was shut down")),
        }
    }

    /// As [`Pool::compute`], of work that looks whether the caller went away: then what it is given is true, and the result of no interest.
    pub(crate) async fn compute_while_wanted<R: Send + 'static>(
        &self,
        work: impl FnOnce(&AtomicBool) -> Result<R, ArrayError> + Send + 'static,
    ) -> Result<R, ArrayError> {
        let unwanted = Unwanted::default();
        let flag = Arc::clone(&unwanted.0);
        self.compute(move || work(&flag)).await
    }
}

/// Says so when it is dropped.
#[derive(Default)]
struct Unwanted(Arc<AtomicBool>);

impl Drop for Unwanted {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The pool of so many threads of a process that threads of its other pools wait for, or, of a process that was forked, the one in place of its parent's.
fn started(process: u32, threads: usize, waited_for: bool) -> Option<Own> {
    static POOLS: Mutex<Vec<Own>> = Mutex::new(Vec::new());
    let pools = || POOLS.lock().unwrap_or_else(PoisonError::into_inner);
    let find = |pools: &[Own]| {
        let fits = |own: &&Own| own.process == process && own.waited_for == waited_for && own.pool.current_num_threads() == threads;
        pools.iter().find(fits).cloned()
    };
    if let Some(own) = find(&pools()) {
        return Some(own);
    }
    // Not with the lock, so that hardly any process is forked while another thread has it.
    let builder = rayon::ThreadPoolBuilder::new().num_threads(threads);
    let started = if waited_for {
        builder.start_handler(|_| WAITED_FOR.set(true)).build()
    } else {
        // Where no threads can be had, all is done by this one.
        builder.build().or_else(|_| rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread().build())
    };
    let own = Own { pool: Arc::new(started.ok()?), process, waited_for };
    let mut pools = pools();
    let found = find(&pools);
    if found.is_none() {
        pools.push(own.clone());
    }
    found.or(Some(own))
}

/// Whether this thread is one that threads of other pools wait for.
pub(crate) fn is_waited_for() -> bool {
    WAITED_FOR.get()
}

thread_local! {
    static WAITED_FOR: Cell<bool> = const { Cell::new(false) };
}

thread_local! {
    static SCRATCH: RefCell<Option<Scratch>> = const { RefCell::new(None) };
}

/// Lends this thread's buffers. A call inside a call (a pool thread that helps out while it waits) gets fresh ones.
pub(crate) fn with_scratch<R>(work: impl FnOnce(&mut Scratch) -> R) -> R {
    let mut scratch = SCRATCH.take().unwrap_or_default();
    let result = work(&mut scratch);
    SCRATCH.set(Some(scratch));
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_the_callers() {
        let pool = Pool::new(Arc::new(rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap()));
        let caught = catch_unwind(AssertUnwindSafe(|| pollster::block_on(pool.compute::<()>(|| panic!("in a codec")))));
        assert_eq!(caught.unwrap_err().downcast_ref(), Some(&"in a codec"));
        assert_eq!(pollster::block_on(pool.compute(|| Ok(7))).unwrap(), 7);
    }
}

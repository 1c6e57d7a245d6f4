//! The threads that decode and encode, and the memory that each of them reuses.

use std::cell::RefCell;
use std::sync::Arc;

use bytemuck::AnyBitPattern;
use rayon::prelude::*;
use zarr_buffer_api::{BufferError, FreshPart, unwritten, unwritten_shared};
use zarr_codec_api::Scratch;

/// The threads that an array decodes and encodes on. Codecs start none of their own.
#[derive(Debug, Clone, Default)]
pub struct Pool(Option<Arc<rayon::ThreadPool>>);

impl Pool {
    /// Rayon's global pool: a thread for each core.
    pub fn global() -> Self {
        Self(None)
    }

    /// A pool of the caller's.
    pub fn new(pool: Arc<rayon::ThreadPool>) -> Self {
        Self(Some(pool))
    }

    /// Runs `work` where parallel iterators use this pool.
    pub(crate) fn run<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        match &self.0 {
            Some(pool) => pool.install(work),
            None => work(),
        }
    }

    /// Runs `work` on this thread, and what it spawns on threads of the pool, in order; ends when all of that has.
    pub(crate) fn scope<'scope, R>(&self, work: impl FnOnce(&rayon::ScopeFifo<'scope>) -> R) -> R {
        match &self.0 {
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

    /// How many threads there are.
    pub(crate) fn threads(&self) -> usize {
        self.0.as_ref().map_or_else(rayon::current_num_threads, |pool| pool.current_num_threads())
    }

    /// Runs `work` on a thread of the pool, later.
    pub(crate) fn spawn(&self, work: impl FnOnce() + Send + 'static) {
        match &self.0 {
            Some(pool) => pool.spawn(work),
            None => rayon::spawn(work),
        }
    }

    /// Runs `work` on the pool and gives its result to an async caller. If the caller goes away, the work still runs to its end, on memory that it owns.
    pub(crate) async fn compute<R: Send + 'static>(&self, work: impl FnOnce() -> R + Send + 'static) -> Option<R> {
        let (sender, receiver) = futures::channel::oneshot::channel();
        self.spawn(move || {
            // Nobody waiting any more is no reason to fail.
            let _ = sender.send(work());
        });
        receiver.await.ok()
    }
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

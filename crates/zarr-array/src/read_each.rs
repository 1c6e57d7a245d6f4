//! Reads one after the other, the next ones running ahead.

use std::any::Any;
use std::collections::VecDeque;
use std::fmt;
use std::iter::{Fuse, FusedIterator};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use zarr_store_api::AnyStore;

use crate::data::{Aligned, ArrayData, Elements, HOST_ALIGN};
use crate::pool::is_waited_for;
use crate::{Array, ArrayError, Pool, Selection, Tensor};

/// Bytes of results that are read or wait, where nobody says.
const AHEAD_BYTES: usize = 256 << 20;
/// Bytes of a result that takes longer to read than it takes to wake a thread.
const LONG: usize = 256 << 10;

/// Results of reads, in the order of their selections. See [`Array::read_each`] and [`Array::read_each_to_host`].
pub struct ReadEach<I: Iterator<Item = Selection>, T = ArrayData> {
    array: Readers,
    /// On threads of pools; `None`: not needed yet.
    apart: Option<Option<Readers>>,
    selections: Fuse<I>,
    /// What is read before the other selections: one whose result has no room yet; of a process that was forked, what its parent was reading.
    held_back: VecDeque<(Selection, usize)>,
    reads: VecDeque<Arc<Read>>,
    /// Whose threads do the reads.
    process: u32,
    ahead: usize,
    ahead_bytes: usize,
    /// Bytes of the last result of variable length: what the next ones are taken to be.
    variable: usize,
    align: usize,
    finish: fn(Aligned) -> Result<T, ArrayError>,
}

/// An array, to read from.
#[derive(Debug)]
struct Readers {
    alone: Arc<Array>,
    /// For reads of which there are enough to keep the threads busy.
    beside: Arc<Array>,
}

impl Readers {
    fn new(array: Array) -> Self {
        Self { beside: Arc::new(array.busy()), alone: Arc::new(array) }
    }
}

impl Array {
    /// Reads each selection as [`Array::read`] does, one after the other, while the pool reads and decodes the next ones ahead. Results come in the order of
    /// the selections, which are asked for one by one as there is room.
    ///
    /// There is room for as many reads ahead of the one that is handed out as the pool has threads; of an async store for [`concurrency`] if that is
    /// more. [`ReadEach::with_ahead`] says otherwise. Results that are read or wait have at most 256 MiB together ([`ReadEach::with_ahead_bytes`]), a
    /// single one aside.
    ///
    /// A read that fails gives its error, and the iterator goes on with the next selection. What panics in a read panics here. Dropping the iterator begins no
    /// more reads; those that have begun end on the pool, on memory of their own, or, of an async store, are cancelled.
    ///
    /// An async store is asked from threads of the pool: one that needs a runtime has to bring it (`OnRuntime` of `zarr-store` does). What a thread of a Rayon
    /// pool waits for is read by threads apart, as many as the pool has, which the process then keeps: waiting for its own pool, it would do other work of that meanwhile, such as
    /// to wait for the next result, too. What one of these threads reads so, in a store that reads arrays, it reads itself, without anything running ahead.
    ///
    /// In async code, a stream does it: `stream::iter(selections).map(|of| async move { array.read_async(&of).await }).buffered(ahead)`.
    ///
    /// ```
    /// # let registry = zarr_codec_api::Registry::new().with(zarr_codecs_cpu::provider());
    /// # let (store, options) = (zarr_store::MemoryStore::new(), zarr_array::Options::new(registry));
    /// # let store = zarr_store_api::AnyStore::blocking(store);
    /// use zarr_array::{ArrayBuilder, Selection};
    /// use zarr_meta::DataType;
    ///
    /// let array = ArrayBuilder::new([4, 6], DataType::UInt8).chunks([2, 3]).create(store, "/", &options)?;
    /// array.write_elements(&Selection::all(), &(0..24).collect::<Vec<u8>>())?;
    /// let mut sums = Vec::new();
    /// for chunk in array.read_each(array.chunk_selections()) {
    ///     let elements: Vec<u8> = chunk?.into_elements()?;
    ///     sums.push(elements.iter().map(|&element| u32::from(element)).sum::<u32>());
    /// }
    /// assert_eq!(sums, [24, 42, 96, 114]);
    /// # Ok::<(), zarr_array::ArrayError>(())
    /// ```
    ///
    /// [`concurrency`]: crate::Options::concurrency
    pub fn read_each<I: IntoIterator<Item = Selection>>(&self, selections: I) -> ReadEach<I::IntoIter> {
        self.read_each_aligned(selections, 1, |read| Ok(read.data))
    }

    /// As [`Array::read_each`], each as [`Array::read_to_host`] does.
    pub fn read_each_to_host<I: IntoIterator<Item = Selection>>(&self, selections: I) -> ReadEach<I::IntoIter, Tensor> {
        self.read_each_aligned(selections, HOST_ALIGN, Aligned::into_tensor)
    }

    fn read_each_aligned<I: IntoIterator<Item = Selection>, T>(
        &self,
        selections: I,
        align: usize,
        finish: fn(Aligned) -> Result<T, ArrayError>,
    ) -> ReadEach<I::IntoIter, T> {
        let options = self.options();
        let threads = options.pool.threads();
        ReadEach {
            array: Readers::new(self.behind(&self.gate())),
            apart: None,
            selections: selections.into_iter().fuse(),
            held_back: VecDeque::new(),
            reads: VecDeque::new(),
            process: std::process::id(),
            ahead: match self.store() {
                AnyStore::Blocking(_) => threads,
                AnyStore::Async(_) => threads.max(options.concurrency),
            },
            ahead_bytes: AHEAD_BYTES,
            variable: 0,
            align,
            finish,
        }
    }
}

impl<I: Iterator<Item = Selection>, T> ReadEach<I, T> {
    /// Sets how many reads may be ahead of the one that is handed out; 0: none.
    #[must_use]
    pub fn with_ahead(mut self, reads: usize) -> Self {
        self.ahead = reads;
        self
    }

    /// Sets how many bytes results that are read or wait may have together, but for one, which may always be read. Elements of variable length count as many
    /// as those of the last result had.
    #[must_use]
    pub fn with_ahead_bytes(mut self, bytes: usize) -> Self {
        self.ahead_bytes = bytes;
        self
    }

    /// Waits for the next result as `next` does, but no longer than `timeout`; says whether `next` would not wait now. For who has to look at something else at times; on a thread of
    /// a Rayon pool it says so at once, and `next` waits.
    pub fn wait_timeout(&mut self, timeout: Duration) -> bool {
        if rayon::current_thread_index().is_some() {
            return true;
        }
        self.look_for_fork();
        self.fill(false);
        self.help();
        self.reads.front().is_none_or(|first| first.wait_timeout(timeout))
    }

    /// Does small reads while the first one is under way: to sleep and be woken takes longer.
    fn help(&self) {
        let Some(first) = self.reads.front() else { return };
        while first.has_begun() && self.reads.iter().any(|read| read.is_small() && read.run()) {}
    }

    /// Begins anew in a process that was forked. It has none of the threads that do the reads; of what they share with them, a lock may be one's that is gone.
    fn look_for_fork(&mut self) {
        let process = std::process::id();
        if self.process != process {
            self.process = process;
            let array = self.array.alone.alone();
            self.array = Readers::new(array.behind(&array.gate()));
            self.apart = None;
            for read in self.reads.drain(..).rev() {
                self.held_back.push_front((read.selection.clone(), read.bytes));
            }
        }
    }

    fn next_selection(&mut self) -> Option<(Selection, usize)> {
        self.held_back.pop_front().or_else(|| {
            let selection = self.selections.next()?;
            let len = self.byte_len(&selection);
            Some((selection, len))
        })
    }

    /// What a thread of a pool reads from; `None` where it has to read itself.
    fn apart(&mut self) -> Option<&Readers> {
        let apart = self.apart.get_or_insert_with(|| self.array.alone.apart().map(Readers::new));
        apart.as_ref().filter(|_| !is_waited_for())
    }

    /// Takes selections as long as there is room, and has their reads begin.
    fn fill(&mut self, of_pool: bool) {
        let apart = of_pool && self.apart().is_some();
        // What this thread has to do itself, it does when it is asked for.
        let ahead = if of_pool && !apart { 0 } else { self.ahead };
        let mut bytes = self.reads.iter().fold(0usize, |sum, read| sum.saturating_add(read.bytes));
        while self.reads.len() <= ahead
            && let Some((selection, len)) = self.next_selection()
        {
            bytes = bytes.saturating_add(len);
            if bytes > self.ahead_bytes && !self.reads.is_empty() {
                self.held_back.push_front((selection, len));
                return;
            }
            let at_once = self.ahead.saturating_add(1).min(self.ahead_bytes / len.max(1));
            let readers = self.apart.as_ref().and_then(Option::as_ref).filter(|_| apart).unwrap_or(&self.array);
            let few = at_once < readers.alone.options().pool.threads();
            let array = Arc::clone(if few { &readers.alone } else { &readers.beside });
            let read = Read::new(array, apart, selection, self.align, len);
            if apart || !of_pool {
                read.spawn();
            }
            self.reads.push_back(read);
        }
    }

    /// Bytes of what a selection gives; 0 for one that does not fit the array.
    fn byte_len(&self, selection: &Selection) -> usize {
        let array = &self.array.alone;
        let Some(item_size) = array.item_size() else { return self.variable };
        let shape = array.selection_shape(selection).unwrap_or_default();
        shape.iter().fold(item_size, |product, &len| product.saturating_mul(usize::try_from(len).unwrap_or(usize::MAX)))
    }
}

impl<I: Iterator<Item = Selection>, T> Iterator for ReadEach<I, T> {
    type Item = Result<T, ArrayError>;

    fn next(&mut self) -> Option<Self::Item> {
        let of_pool = rayon::current_thread_index().is_some();
        self.look_for_fork();
        self.fill(of_pool);
        let first = if of_pool {
            let first = self.reads.pop_front()?;
            let apart = self.apart();
            if first.is_done() || (first.is_apart && apart.is_some()) { first } else { first.again(apart.map(|readers| &readers.alone)) }
        } else {
            self.help();
            self.reads.pop_front()?
        };
        let result = first.finish();
        if let Ok(Aligned { data: ArrayData { elements: Elements::Variable(elements), .. }, .. }) = &result {
            self.variable = elements.byte_len();
        }
        Some(result.and_then(self.finish))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let (least, most) = self.selections.size_hint();
        let begun = self.reads.len() + self.held_back.len();
        (least.saturating_add(begun), most.and_then(|most| most.checked_add(begun)))
    }
}

impl<I: Iterator<Item = Selection>, T> FusedIterator for ReadEach<I, T> {}

impl<I: Iterator<Item = Selection>, T> Drop for ReadEach<I, T> {
    fn drop(&mut self) {
        if self.process != std::process::id() {
            return;
        }
        for read in &self.reads {
            *read.state() = State::Unwanted;
        }
    }
}

impl<I: Iterator<Item = Selection>, T> fmt::Debug for ReadEach<I, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadEach").field("array", &self.array.alone).field("reads", &self.reads.len()).finish_non_exhaustive()
    }
}

type Outcome = Result<Result<Aligned, ArrayError>, Box<dyn Any + Send>>;

#[derive(Default)]
enum State {
    #[default]
    Waiting,
    Begun,
    Done(Outcome),
    Unwanted,
}

/// One read.
struct Read {
    array: Arc<Array>,
    selection: Selection,
    align: usize,
    /// Of the result, as far as they are known.
    bytes: usize,
    /// Whether it is done by threads apart.
    is_apart: bool,
    state: Mutex<State>,
    changed: Condvar,
}

impl Read {
    fn new(array: Arc<Array>, is_apart: bool, selection: Selection, align: usize, bytes: usize) -> Arc<Self> {
        Arc::new(Self { array, selection, align, bytes, is_apart, state: Mutex::default(), changed: Condvar::new() })
    }

    /// The same read, instead of this one: by threads apart, or, where there are none to wait for, done.
    fn again(&self, apart: Option<&Arc<Array>>) -> Arc<Self> {
        *self.state() = State::Unwanted;
        let array = apart.map_or_else(|| Arc::new(self.array.alone()), Arc::clone);
        let again = Self::new(array, true, self.selection.clone(), self.align, self.bytes);
        match apart {
            Some(_) => again.spawn(),
            None => drop(again.run()),
        }
        again
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the pool do it.
    fn spawn(self: &Arc<Self>) {
        let (read, pool) = (Arc::clone(self), &self.array.options().pool);
        match self.array.store() {
            AnyStore::Blocking(_) => pool.spawn(move || {
                read.run();
            }),
            AnyStore::Async(_) => {
                let future = Arc::clone(self);
                let array = Array::clone(&self.array);
                let future = async move { future.run_async(array).await }.boxed();
                let task = Arc::new(Task { pool: pool.clone(), read, future: Mutex::new(Some(future)) });
                task.wake();
            }
        }
    }

    /// Whether it is better done by whoever waits for it.
    fn is_small(&self) -> bool {
        self.bytes < LONG && matches!(self.array.store(), AnyStore::Blocking(_))
    }

    fn has_begun(&self) -> bool {
        matches!(*self.state(), State::Begun)
    }

    fn is_done(&self) -> bool {
        matches!(*self.state(), State::Done(_))
    }

    /// Whether it is for the caller to do.
    fn begin(&self) -> bool {
        let mut state = self.state();
        let waiting = matches!(*state, State::Waiting);
        if waiting {
            *state = State::Begun;
        }
        waiting
    }

    fn end(&self, outcome: Outcome) {
        let mut state = self.state();
        if matches!(*state, State::Begun) {
            *state = State::Done(outcome);
            self.changed.notify_one();
        }
    }

    /// Does it, unless somebody has begun it; says whether it was done here.
    fn run(&self) -> bool {
        let ours = self.begin();
        if ours {
            self.end(catch_unwind(AssertUnwindSafe(|| self.array.read_aligned(&self.selection, self.align))));
        }
        ours
    }

    async fn run_async(&self, array: Array) {
        if self.begin() {
            self.end(AssertUnwindSafe(array.read_aligned_async(&self.selection, self.align)).catch_unwind().await);
        }
    }

    /// Whether [`Read::finish`] would not wait for others, at the end of `timeout` at the latest.
    fn wait_timeout(&self, timeout: Duration) -> bool {
        let pending = |state: &State| match state {
            State::Waiting => self.is_apart || !self.is_small(),
            State::Begun => true,
            State::Done(_) | State::Unwanted => false,
        };
        let waited = self.changed.wait_timeout_while(self.state(), timeout, |state| pending(state));
        !pending(&waited.unwrap_or_else(PoisonError::into_inner).0)
    }

    /// The result. A small read that nobody has begun is done here, unless it is for threads apart.
    fn finish(&self) -> Result<Aligned, ArrayError> {
        let mut state = self.state();
        if matches!(*state, State::Waiting) && !self.is_apart && self.is_small() {
            *state = State::Unwanted;
            drop(state);
            return self.array.alone().read_aligned(&self.selection, self.align);
        }
        loop {
            match std::mem::replace(&mut *state, State::Unwanted) {
                State::Done(outcome) => return outcome.unwrap_or_else(|panic| resume_unwind(panic)),
                other => *state = other,
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// A read of an async store: polled on the pool, each time that it is woken.
struct Task {
    pool: Pool,
    read: Arc<Read>,
    future: Mutex<Option<BoxFuture<'static, ()>>>,
}

impl Task {
    fn poll(self: Arc<Self>) {
        let mut future = self.future.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(running) = future.as_mut() else { return };
        let waker = Waker::from(Arc::clone(&self));
        let unwanted = matches!(*self.read.state(), State::Unwanted);
        if unwanted || running.as_mut().poll(&mut Context::from_waker(&waker)).is_ready() {
            *future = None;
        }
    }
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        let pool = self.pool.clone();
        pool.spawn(move || self.poll());
    }
}

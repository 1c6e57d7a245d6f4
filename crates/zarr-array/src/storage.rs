//! One face over blocking and async stores. Every call on a blocking store is done when its future is first polled.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use bytes::Bytes;
use zarr_store_api::{AnyStore, ByteRange, Listing, StoreError, StoreKey, StorePrefix, Version};

/// Runs a future on this thread. Calls may nest: a thread of a pool does the pool's work while it waits, which may be work that the future waits for.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    if rayon::current_thread_index().is_none() {
        return pollster::block_on(future);
    }
    let signal = Arc::new(Signal { woken: AtomicBool::new(false), thread: thread::current() });
    let waker = Waker::from(Arc::clone(&signal));
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return value;
        }
        while !signal.woken.swap(false, Ordering::Acquire) {
            if rayon::yield_now() != Some(rayon::Yield::Executed) {
                thread::park();
            }
        }
    }
}

/// A waker of its own for each call: a call inside a call may use up what unparks the thread.
struct Signal {
    woken: AtomicBool,
    thread: Thread,
}

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        self.woken.store(true, Ordering::Release);
        self.thread.unpark();
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Storage(pub(crate) AnyStore);

macro_rules! call {
    ($self:ident, $capability:ident, $what:literal, $method:ident($($argument:expr),*)) => {
        match &$self.0 {
            AnyStore::Blocking(store) => store.$capability().ok_or_else(|| $self.lacks($what))?.$method($($argument),*),
            AnyStore::Async(store) => store.$capability().ok_or_else(|| $self.lacks($what))?.$method($($argument),*).await,
        }
    };
}

impl Storage {
    pub(crate) async fn get(&self, key: &StoreKey, range: ByteRange) -> Result<Option<Bytes>, StoreError> {
        match &self.0 {
            AnyStore::Blocking(store) => store.get(key, range),
            AnyStore::Async(store) => store.get(key, range).await,
        }
    }

    pub(crate) async fn get_ranges(&self, key: &StoreKey, ranges: &[ByteRange]) -> Result<Option<Vec<Bytes>>, StoreError> {
        if let [range] = ranges {
            return Ok(self.get(key, *range).await?.map(|bytes| vec![bytes]));
        }
        match &self.0 {
            AnyStore::Blocking(store) => store.get_ranges(key, ranges),
            AnyStore::Async(store) => store.get_ranges(key, ranges).await,
        }
    }

    /// As [`Storage::get_ranges`], of one version of the value, where the store tells versions apart. A blocking store has readers for that.
    pub(crate) async fn get_versioned(
        &self,
        key: &StoreKey,
        ranges: &[ByteRange],
        version: Option<&Version>,
    ) -> Result<Option<(Vec<Bytes>, Option<Version>)>, StoreError> {
        match &self.0 {
            AnyStore::Blocking(_) => Ok(self.get_ranges(key, ranges).await?.map(|bytes| (bytes, None))),
            AnyStore::Async(store) => store.get_versioned(key, ranges, version).await,
        }
    }

    pub(crate) async fn size(&self, key: &StoreKey) -> Result<Option<u64>, StoreError> {
        match &self.0 {
            AnyStore::Blocking(store) => store.size(key),
            AnyStore::Async(store) => store.size(key).await,
        }
    }

    pub(crate) async fn set(&self, key: &StoreKey, value: Bytes) -> Result<(), StoreError> {
        call!(self, as_writable, "written", set(key, value))
    }

    pub(crate) async fn set_vectored(&self, key: &StoreKey, parts: Vec<Bytes>) -> Result<(), StoreError> {
        match &self.0 {
            AnyStore::Blocking(store) => {
                let slices: Vec<&[u8]> = parts.iter().map(|part| &**part).collect();
                store.as_writable().ok_or_else(|| self.lacks("written"))?.set_vectored(key, &slices)
            }
            AnyStore::Async(store) => store.as_writable().ok_or_else(|| self.lacks("written"))?.set_vectored(key, parts).await,
        }
    }

    pub(crate) async fn erase(&self, key: &StoreKey) -> Result<(), StoreError> {
        call!(self, as_writable, "written", erase(key))
    }

    pub(crate) async fn erase_prefix(&self, prefix: &StorePrefix) -> Result<(), StoreError> {
        call!(self, as_writable, "written", erase_prefix(prefix))
    }

    pub(crate) async fn list(&self, prefix: &StorePrefix) -> Result<Vec<StoreKey>, StoreError> {
        call!(self, as_listable, "listed", list(prefix))
    }

    pub(crate) async fn list_dir(&self, prefix: &StorePrefix) -> Result<Listing, StoreError> {
        call!(self, as_listable, "listed", list_dir(prefix))
    }

    pub(crate) fn name(&self) -> String {
        self.0.name()
    }

    /// The error of a store that cannot be written.
    pub(crate) fn read_only(&self) -> StoreError {
        self.lacks("written")
    }

    fn lacks(&self, what: &str) -> StoreError {
        let message = format!("{} cannot be {what}", self.name());
        if what == "written" { StoreError::read_only(message) } else { StoreError::unsupported(message) }
    }
}

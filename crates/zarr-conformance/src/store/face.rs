//! A store of either form, with blocking calls, and several actors at work on it at once.

use std::fmt;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::{Arc, Barrier};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use zarr_store_api::{
    AnyStore, AsyncReadableStore, AsyncReadableStoreExt, AsyncStore, Buffer, ByteRange, Bytes, Device, Listing, Queue, ReadableStore,
    Store, StoreError, StoreErrorKind, StoreKey, StorePrefix,
};

use crate::suite::{Broken, ensure};

pub(super) fn show(read: &Option<Bytes>) -> String {
    match read {
        None => "as missing".to_owned(),
        Some(bytes) => format!("{} bytes, beginning {:02x?}", bytes.len(), bytes.get(..bytes.len().min(8)).unwrap_or_default()),
    }
}

/// Fails unless a call was refused with the right blame.
pub(super) fn expect_kind<T: fmt::Debug>(what: &str, kind: StoreErrorKind, result: Result<T, StoreError>) -> Result<(), Broken> {
    match result {
        Err(error) if error.kind() == kind => Ok(()),
        Err(error) => Err(Broken::Failed(format!("{what} is refused as {:?} ({error}), expected {kind:?}", error.kind()))),
        Ok(_) => Err(Broken::Failed(format!("{what} is no error"))),
    }
}

/// Whether what was read is good.
pub(super) type Good = Box<dyn FnOnce(&Option<Bytes>) -> bool + Send>;

/// Something one of several actors does next.
pub(super) enum Op {
    Get(StoreKey, Good),
    Set(StoreKey, Bytes),
    SetVectored(StoreKey, Vec<Bytes>),
    Erase(StoreKey),
}

/// What an actor does, step by step.
pub(super) type Job = Box<dyn Fn(usize) -> Op + Send + Sync>;

pub(super) fn judge_read(key: &StoreKey, read: &Option<Bytes>, good: impl FnOnce(&Option<Bytes>) -> bool) -> Result<(), Broken> {
    ensure!(good(read), "while others are at work, `{key}` reads {}", show(read));
    Ok(())
}

/// A store of either form, with blocking calls.
pub(super) struct Face(pub(super) AnyStore);

/// Makes the same call to a store of either form.
macro_rules! either {
    ($face:expr, $store:ident => $call:expr, $future:expr) => {
        match &$face.0 {
            AnyStore::Blocking($store) => $call,
            AnyStore::Async($store) => block_on($future),
        }
    };
}

pub(super) fn cannot(be: &str) -> StoreError {
    StoreError::unsupported(format!("the store cannot be {be}"))
}

impl Face {
    pub(super) fn get(&self, key: &StoreKey, range: ByteRange) -> Result<Option<Bytes>, StoreError> {
        either!(self, store => store.get(key, range), store.get(key, range))
    }

    pub(super) fn size(&self, key: &StoreKey) -> Result<Option<u64>, StoreError> {
        either!(self, store => store.size(key), store.size(key))
    }

    pub(super) fn get_ranges(&self, key: &StoreKey, ranges: &[ByteRange]) -> Result<Option<Vec<Bytes>>, StoreError> {
        either!(self, store => store.get_ranges(key, ranges), store.get_ranges(key, ranges))
    }

    pub(super) fn get_into(&self, key: &StoreKey, range: ByteRange, dst: &mut [u8]) -> Result<Option<usize>, StoreError> {
        match &self.0 {
            AnyStore::Blocking(store) => store.get_into(key, range, dst),
            AnyStore::Async(store) => {
                let (filled, read) = block_on(store.get_into_owned(key, range, dst.to_vec()))?;
                dst.copy_from_slice(&filled);
                Ok(read)
            }
        }
    }

    pub(super) fn get_into_buffer(
        &self,
        key: &StoreKey,
        range: ByteRange,
        dst: &Buffer,
        device: &Arc<dyn Device>,
        queue: &Arc<dyn Queue>,
    ) -> Result<Option<usize>, StoreError> {
        either!(self, store => store.get_into_buffer(key, range, dst, device, queue),
            store.get_into_buffer(key, range, dst, device, queue))
    }

    pub(super) fn set(&self, key: &StoreKey, value: Bytes) -> Result<(), StoreError> {
        either!(self, store => store.as_writable().ok_or_else(|| cannot("written to"))?.set(key, value),
            store.as_writable().ok_or_else(|| cannot("written to"))?.set(key, value))
    }

    pub(super) fn set_vectored(&self, key: &StoreKey, parts: Vec<Bytes>) -> Result<(), StoreError> {
        either!(self, store => {
                let parts: Vec<&[u8]> = parts.iter().map(AsRef::as_ref).collect();
                store.as_writable().ok_or_else(|| cannot("written to"))?.set_vectored(key, &parts)
            },
            store.as_writable().ok_or_else(|| cannot("written to"))?.set_vectored(key, parts))
    }

    pub(super) fn erase(&self, key: &StoreKey) -> Result<(), StoreError> {
        either!(self, store => store.as_writable().ok_or_else(|| cannot("written to"))?.erase(key),
            store.as_writable().ok_or_else(|| cannot("written to"))?.erase(key))
    }

    pub(super) fn erase_prefix(&self, prefix: &StorePrefix) -> Result<(), StoreError> {
        either!(self, store => store.as_writable().ok_or_else(|| cannot("written to"))?.erase_prefix(prefix),
            store.as_writable().ok_or_else(|| cannot("written to"))?.erase_prefix(prefix))
    }

    pub(super) fn list(&self, prefix: &StorePrefix) -> Result<Vec<StoreKey>, StoreError> {
        either!(self, store => store.as_listable().ok_or_else(|| cannot("listed"))?.list(prefix),
            store.as_listable().ok_or_else(|| cannot("listed"))?.list(prefix))
    }

    pub(super) fn list_dir(&self, prefix: &StorePrefix) -> Result<Listing, StoreError> {
        either!(self, store => store.as_listable().ok_or_else(|| cannot("listed"))?.list_dir(prefix),
            store.as_listable().ok_or_else(|| cannot("listed"))?.list_dir(prefix))
    }

    /// Has all jobs done at once: on threads, or by polling them in turn.
    pub(super) fn run(&self, jobs: Vec<Job>, steps: usize) -> Result<(), Broken> {
        let start = &Barrier::new(jobs.len());
        match &self.0 {
            AnyStore::Blocking(_) => thread::scope(|scope| {
                let begin = |job| {
                    scope.spawn(move || {
                        start.wait();
                        self.act(job, steps)
                    })
                };
                let actors: Vec<_> = jobs.iter().map(begin).collect();
                let mut ends = actors.into_iter().map(|actor| actor.join());
                ends.try_for_each(|end| end.unwrap_or_else(|_| Err(Broken::Failed("the store panics".to_owned()))))
            }),
            AnyStore::Async(store) => {
                let actors = jobs.iter().map(|job| Box::pin(act_async(store, job, steps)) as Acting<'_>);
                block_on(All(actors.map(Some).collect()))
            }
        }
    }

    fn act(&self, job: &Job, steps: usize) -> Result<(), Broken> {
        for step in 0..steps {
            match job(step) {
                Op::Get(key, good) => judge_read(&key, &self.get(&key, ByteRange::All)?, good)?,
                Op::Set(key, value) => self.set(&key, value)?,
                Op::SetVectored(key, parts) => self.set_vectored(&key, parts)?,
                Op::Erase(key) => self.erase(&key)?,
            }
        }
        Ok(())
    }
}

pub(super) async fn act_async(store: &Arc<dyn AsyncStore>, job: &Job, steps: usize) -> Result<(), Broken> {
    let writable = || store.as_writable().ok_or_else(|| cannot("written to"));
    for step in 0..steps {
        match job(step) {
            Op::Get(key, good) => judge_read(&key, &store.get(&key, ByteRange::All).await?, good)?,
            Op::Set(key, value) => writable()?.set(&key, value).await?,
            Op::SetVectored(key, parts) => writable()?.set_vectored(&key, parts).await?,
            Op::Erase(key) => writable()?.erase(&key).await?,
        }
    }
    Ok(())
}

pub(super) type Acting<'f> = Pin<Box<dyn Future<Output = Result<(), Broken>> + 'f>>;

/// Several futures at once; ends with the first that fails.
pub(super) struct All<'f>(Vec<Option<Acting<'f>>>);

impl Future for All<'_> {
    type Output = Result<(), Broken>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut waiting = false;
        for slot in &mut self.0 {
            let Some(future) = slot else { continue };
            match future.as_mut().poll(context) {
                Poll::Ready(Ok(())) => *slot = None,
                Poll::Ready(Err(broken)) => return Poll::Ready(Err(broken)),
                Poll::Pending => waiting = true,
            }
        }
        if waiting { Poll::Pending } else { Poll::Ready(Ok(())) }
    }
}

pub(super) struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

pub(super) fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(value) => return value,
            Poll::Pending => thread::park(),
        }
    }
}

/// Polls a future some times, as long as it is not ready, and drops it.
pub(super) fn poll_and_drop<T>(future: impl Future<Output = T>, polls: usize) {
    let mut future = pin!(future);
    for _ in 0..polls {
        if future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready() {
            return;
        }
        thread::yield_now();
    }
}

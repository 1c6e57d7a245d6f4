//! A store that fails on purpose, for tests of what stands over stores.

#![deny(clippy::missing_trait_methods)]

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::thread;
use std::time::Duration;

use zarr_store_api::{
    AsyncListableStore, AsyncReadableStore, AsyncStore, AsyncWritableStore, Buffer, ByKey, ByteRange, Bytes, Destination, Device, DeviceId,
    ListableStore, Listing, Queue, ReadableStore, Store, StoreError, StoreErrorKind, StoreKey, StorePrefix, StoredValue, ValueReader,
    Version, WritableStore, async_trait,
};

use crate::wrap::{StoreMethod, not_listable, not_writable};

/// Which calls a [`Fault`] strikes. Calls are counted from 0, reads, writes and listings apart.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum When {
    /// The n-th read (`get`, `size`, `get_ranges`, `get_versioned`, `get_into`, `get_into_buffer`).
    Read(u64),
    /// The n-th write (`set`, `set_vectored`, `erase`, `erase_prefix`).
    Write(u64),
    /// The n-th listing (`list`, `list_dir`).
    List(u64),
    /// The n-th write and everything after it, reads included, as after a crash. What was
    /// written before can be looked at in the store below.
    CrashAtWrite(u64),
    /// Every call that names this key.
    Key(StoreKey),
    /// Every call.
    Always,
}

/// What happens to a call.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// It fails, without effect.
    Fail(StoreErrorKind),
    /// It takes effect, and fails nevertheless: the answer was lost. Reads just fail.
    FailAfter(StoreErrorKind),
    /// A write stores only this many bytes, and fails; a read gives only this many
    /// bytes, and succeeds. No store may do this: it shows who would notice.
    Tear(usize),
    /// It takes this much longer.
    Delay(Duration),
}

/// A store that lets calls through until one is struck by a fault.
///
/// ```
/// use zarr_store::{Fault, FaultyStore, MemoryStore, When};
/// use zarr_store_api::{StoreErrorKind, StoreKey, WritableStore};
///
/// let store = FaultyStore::new(MemoryStore::new())
///     .with(When::Write(1), Fault::Fail(StoreErrorKind::NoSpace));
/// let key = StoreKey::new("a")?;
/// assert!(store.set(&key, "first".into()).is_ok());
/// assert!(store.set(&key, "second".into()).is_err());
/// # Ok::<(), zarr_store_api::StoreError>(())
/// ```
#[derive(Clone, Debug)]
pub struct FaultyStore<S> {
    inner: S,
    script: Arc<Script>,
}

#[derive(Debug, Default)]
struct Script {
    faults: Mutex<Vec<(When, Fault)>>,
    reads: AtomicU64,
    writes: AtomicU64,
    lists: AtomicU64,
}

impl<S> FaultyStore<S> {
    /// A store that does not fail yet.
    pub fn new(store: S) -> Self {
        Self { inner: store, script: Arc::default() }
    }

    /// Adds a fault. Of several that strike the same call, the first one counts, but delays add
    /// up.
    #[must_use]
    pub fn with(self, when: When, fault: Fault) -> Self {
        self.inject(when, fault);
        self
    }

    /// Adds a fault while the store is in use.
    pub fn inject(&self, when: When, fault: Fault) {
        self.script.faults.lock().unwrap_or_else(PoisonError::into_inner).push((when, fault));
    }

    /// Takes all faults back and starts to count calls anew.
    pub fn heal(&self) {
        self.script.faults.lock().unwrap_or_else(PoisonError::into_inner).clear();
        for counter in [&self.script.reads, &self.script.writes, &self.script.lists] {
            counter.store(0, Ordering::SeqCst);
        }
    }

    /// The store below.
    pub fn inner(&self) -> &S {
        &self.inner
    }

    fn with_script(inner: S, script: &Arc<Script>) -> Self {
        Self { inner, script: Arc::clone(script) }
    }
}

/// What is to happen to one call.
#[derive(Default)]
struct Verdict {
    delay: Duration,
    fault: Option<Fault>,
}

impl Script {
    fn judge(&self, method: StoreMethod, key: Option<&StoreKey>) -> Verdict {
        let next = |counter: &AtomicU64| counter.fetch_add(1, Ordering::SeqCst);
        let (read, write, list) = match method {
            method if method.is_read() => (Some(next(&self.reads)), None, None),
            method if method.is_write() => (None, Some(next(&self.writes)), None),
            _ => (None, None, Some(next(&self.lists))),
        };
        let writes_begun = self.writes.load(Ordering::SeqCst);
        let mut verdict = Verdict::default();
        for (when, fault) in &*self.faults.lock().unwrap_or_else(PoisonError::into_inner) {
            let strikes = match when {
                When::Read(n) => read == Some(*n),
                When::Write(n) => write == Some(*n),
                When::List(n) => list == Some(*n),
                When::CrashAtWrite(n) => write.unwrap_or(writes_begun) >= *n + u64::from(write.is_none()),
                When::Key(struck) => key == Some(struck),
                When::Always => true,
            };
            match fault {
                Fault::Delay(delay) if strikes => verdict.delay += *delay,
                fault if strikes && verdict.fault.is_none() => verdict.fault = Some(fault.clone()),
                _ => {}
            }
        }
        verdict
    }
}

fn injected(kind: StoreErrorKind) -> StoreError {
    StoreError::new(kind, "this failure was asked for")
}

fn before(fault: &Option<Fault>) -> Result<(), StoreError> {
    match fault {
        Some(Fault::Fail(kind)) => Err(injected(*kind).with_stored(StoredValue::Old)),
        _ => Ok(()),
    }
}

fn after<T>(fault: &Option<Fault>, result: Result<T, StoreError>) -> Result<T, StoreError> {
    let value = result?;
    match fault {
        Some(Fault::FailAfter(kind)) => Err(injected(*kind).with_stored(StoredValue::OldOrNew)),
        _ => Ok(value),
    }
}

fn torn_read(fault: &Option<Fault>, value: &mut Bytes) {
    if let Some(Fault::Tear(keep)) = fault {
        value.truncate(*keep);
    }
}

fn torn_write() -> StoreError {
    injected(StoreErrorKind::Io).with_stored(StoredValue::OldOrNew)
}

/// Waits without a runtime: a thread sleeps and wakes the task.
struct Sleep {
    duration: Duration,
    done: Option<Arc<AtomicU64>>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.duration.is_zero() {
            return Poll::Ready(());
        }
        if self.done.as_ref().is_some_and(|done| done.load(Ordering::SeqCst) == 1) {
            return Poll::Ready(());
        }
        // A thread for each poll: whoever polls last is woken in any case.
        let done = Arc::clone(self.done.get_or_insert_default());
        let (waker, duration) = (context.waker().clone(), self.duration);
        thread::spawn(move || {
            thread::sleep(duration);
            done.store(1, Ordering::SeqCst);
            waker.wake();
        });
        Poll::Pending
    }
}

impl<S> FaultyStore<S> {
    fn strike(&self, method: StoreMethod, key: Option<&StoreKey>) -> Result<Option<Fault>, StoreError> {
        let verdict = self.script.judge(method, key);
        thread::sleep(verdict.delay);
        before(&verdict.fault)?;
        Ok(verdict.fault)
    }

    async fn strike_async(&self, method: StoreMethod, key: Option<&StoreKey>) -> Result<Option<Fault>, StoreError> {
        let verdict = self.script.judge(method, key);
        Sleep { duration: verdict.delay, done: None }.await;
        before(&verdict.fault)?;
        Ok(verdict.fault)
    }
}

impl<S: Store> FaultyStore<S> {
    fn writable(&self) -> Result<&dyn WritableStore, StoreError> {
        self.inner.as_writable().ok_or_else(|| not_writable(&self.inner.name()))
    }

    fn listable(&self) -> Result<&dyn ListableStore, StoreError> {
        self.inner.as_listable().ok_or_else(|| not_listable(&self.inner.name()))
    }
}

impl<S: Store> ReadableStore for FaultyStore<S> {
    fn get(&self, key: &StoreKey, range: ByteRange) -> Result<Option<Bytes>, StoreError> {
        let fault = self.strike(StoreMethod::Get, Some(key))?;
        let mut value = after(&fault, self.inner.get(key, range))?;
        value.iter_mut().for_each(|value| torn_read(&fault, value));
        Ok(value)
    }

    fn size(&self, key: &StoreKey) -> Result<Option<u64>, StoreError> {
        let fault = self.strike(StoreMethod::Size, Some(key))?;
        after(&fault, self.inner.size(key))
    }

    fn get_ranges(&self, key: &StoreKey, ranges: &[ByteRange]) -> Result<Option<Vec<Bytes>>, StoreError> {
        let fault = self.strike(StoreMethod::GetRanges, Some(key))?;
        let mut values = after(&fault, self.inner.get_ranges(key, ranges))?;
        values.iter_mut().flatten().for_each(|value| torn_read(&fault, value));
        Ok(values)
    }

    fn get_into(&self, key: &StoreKey, range: ByteRange, dst: &mut [u8]) -> Result<Option<usize>, StoreError> {
        let fault = self.strike(StoreMethod::GetInto, Some(key))?;
        let read = after(&fault, self.inner.get_into(key, range, dst))?;
        Ok(read.map(|read| torn_length(&fault, read)))
    }

    fn get_pieces(
        &self,
        key: &StoreKey,
        range: ByteRange,
        _: &mut [u8],
        each: &mut dyn FnMut(u64, &[u8]),
    ) -> Result<Option<u64>, StoreError> {
        let fault = self.strike(StoreMethod::GetPieces, Some(key))?;
        // Whole, so that a fault tears the value and not one of its pieces.
        let Some(mut value) = after(&fault, self.inner.get(key, range))? else { return Ok(None) };
        torn_read(&fault, &mut value);
        each(0, &value);
        Ok(Some(value.len() as u64))
    }

    /// By key, so that every read may fail.
    fn reader<'a>(&'a self, key: &StoreKey) -> Result<Box<dyn ValueReader + 'a>, StoreError> {
        Ok(Box::new(ByKey::new(self, key)))
    }

    fn get_into_buffer(
        &self,
        key: &StoreKey,
        range: ByteRange,
        dst: &Buffer,
        device: &Arc<dyn Device>,
        queue: &Arc<dyn Queue>,
    ) -> Result<Option<usize>, StoreError> {
        let fault = self.strike(StoreMethod::GetIntoBuffer, Some(key))?;
        let read = after(&fault, self.inner.get_into_buffer(key, range, dst, device, queue))?;
        Ok(read.map(|read| torn_length(&fault, read)))
    }

    fn reads_to_device(&self, device: DeviceId) -> bool {
        self.inner.reads_to_device(device)
    }
}

fn torn_length(fault: &Option<Fault>, read: usize) -> usize {
    match fault {
        Some(Fault::Tear(keep)) => read.min(*keep),
        _ => read,
    }
}

impl<S: Store> WritableStore for FaultyStore<S> {
    fn set(&self, key: &StoreKey, value: Bytes) -> Result<(), StoreError> {
        let fault = self.strike(StoreMethod::Set, Some(key))?;
        if let Some(Fault::Tear(keep)) = fault {
            self.writable()?.set(key, value.slice(..keep.min(value.len())))?;
            return Err(torn_write());
        }
        after(&fault, self.writable()?.set(key, value))
    }

    fn set_vectored(&self, key: &StoreKey, parts: &[&[u8]]) -> Result<(), StoreError> {
        let fault = self.strike(StoreMethod::SetVectored, Some(key))?;
        if let Some(Fault::Tear(keep)) = fault {
            let mut value = parts.concat();
            value.truncate(keep);
            self.writable()?.set(key, value.into())?;
            return Err(torn_write());
        }
        after(&fault, self.writable()?.set_vectored(key, parts))
    }

    fn set_pieces(&self, key: &StoreKey, len: u64, piece: &mut [u8], make: &mut dyn FnMut(u64, &mut [u8])) -> Result<(), StoreError> {
        let fault = self.strike(StoreMethod::SetPieces, Some(key))?;
        if let Some(Fault::Tear(keep)) = fault {
            let mut value = vec![0; usize::try_from(len).unwrap_or(0)];
            make(0, &mut value);
            value.truncate(keep);
            self.writable()?.set(key, value.into())?;
            return Err(torn_write());
        }
        after(&fault, self.writable()?.set_pieces(key, len, piece, make))
    }

    fn erase(&self, key: &StoreKey) -> Result<(), StoreError> {
        let fault = self.strike(StoreMethod::Erase, Some(key))?;
        after(&fault, self.writable()?.erase(key))
    }

    fn erase_prefix(&self, prefix: &StorePrefix) -> Result<(), StoreError> {
        let fault = self.strike(StoreMethod::ErasePrefix, None)?;
        after(&fault, self.writable()?.erase_prefix(prefix))
    }
}

impl<S: Store> ListableStore for FaultyStore<S> {
    fn list(&self, prefix: &StorePrefix) -> Result<Vec<StoreKey>, StoreError> {
        let fault = self.strike(StoreMethod::List, None)?;
        after(&fault, self.listable()?.list(prefix))
    }

    fn list_dir(&self, prefix: &StorePrefix) -> Result<Listing, StoreError> {
        let fault = self.strike(StoreMethod::ListDir, None)?;
        after(&fault, self.listable()?.list_dir(prefix))
    }
}

impl<S: Store> Store for FaultyStore<S> {
    fn as_writable(&self) -> Option<&dyn WritableStore> {
        self.inner.as_writable().map(|_| self as _)
    }

    fn as_listable(&self) -> Option<&dyn ListableStore> {
        self.inner.as_listable().map(|_| self as _)
    }

    fn name(&self) -> String {
        self.inner.name()
    }

    fn native_async(&self) -> Option<Arc<dyn AsyncStore>> {
        Some(Arc::new(FaultyStore::with_script(self.inner.native_async()?, &self.script)))
    }
}

impl<S: AsyncStore> FaultyStore<S> {
    fn async_writable(&self) -> Result<&dyn AsyncWritableStore, StoreError> {
        self.inner.as_writable().ok_or_else(|| not_writable(&self.inner.name()))
    }

    fn async_listable(&self) -> Result<&dyn AsyncListableStore, StoreError> {
        self.inner.as_listable().ok_or_else(|| not_listable(&self.inner.name()))
    }
}

#[async_trait]
impl<S: AsyncStore> AsyncReadableStore for FaultyStore<S> {
    async fn get(&self, key: &StoreKey, range: ByteRange) -> Result<Option<Bytes>, StoreError> {
        let fault = self.strike_async(StoreMethod::Get, Some(key)).await?;
        let mut value = after(&fault, self.inner.get(key, range).await)?;
        value.iter_mut().for_each(|value| torn_read(&fault, value));
        Ok(value)
    }

    async fn size(&self, key: &StoreKey) -> Result<Option<u64>, StoreError> {
        let fault = self.strike_async(StoreMethod::Size, Some(key)).await?;
        after(&fault, self.inner.size(key).await)
    }

    async fn get_ranges(&self, key: &StoreKey, ranges: &[ByteRange]) -> Result<Option<Vec<Bytes>>, StoreError> {
        let fault = self.strike_async(StoreMethod::GetRanges, Some(key)).await?;
        let mut values = after(&fault, self.inner.get_ranges(key, ranges).await)?;
        values.iter_mut().flatten().for_each(|value| torn_read(&fault, value));
        Ok(values)
    }

    async fn get_versioned(
        &self,
        key: &StoreKey,
        ranges: &[ByteRange],
        version: Option<&Version>,
    ) -> Result<Option<(Vec<Bytes>, Option<Version>)>, StoreError> {
        let fault = self.strike_async(StoreMethod::GetRanges, Some(key)).await?;
        let mut read = after(&fault, self.inner.get_versioned(key, ranges, version).await)?;
        read.iter_mut().flat_map(|(values, _)| values).for_each(|value| torn_read(&fault, value));
        Ok(read)
    }

    async fn get_into(
        &self,
        key: &StoreKey,
        range: ByteRange,
        dst: Box<dyn Destination>,
    ) -> (Box<dyn Destination>, Result<Option<usize>, StoreError>) {
        let fault = match self.strike_async(StoreMethod::GetInto, Some(key)).await {
            Ok(fault) => fault,
            Err(error) => return (dst, Err(error)),
        };
        let (dst, result) = self.inner.get_into(key, range, dst).await;
        let result = after(&fault, result);
        (dst, result.map(|read| read.map(|read| torn_length(&fault, read))))
    }

    async fn get_into_buffer(
        &self,
        key: &StoreKey,
        range: ByteRange,
        dst: &Buffer,
        device: &Arc<dyn Device>,
        queue: &Arc<dyn Queue>,
    ) -> Result<Option<usize>, StoreError> {
        let fault = self.strike_async(StoreMethod::GetIntoBuffer, Some(key)).await?;
        let read = after(&fault, self.inner.get_into_buffer(key, range, dst, device, queue).await)?;
        Ok(read.map(|read| torn_length(&fault, read)))
    }

    fn reads_to_device(&self, device: DeviceId) -> bool {
        self.inner.reads_to_device(device)
    }
}

#[async_trait]
impl<S: AsyncStore> AsyncWritableStore for FaultyStore<S> {
    async fn set(&self, key: &StoreKey, value: Bytes) -> Result<(), StoreError> {
        let fault = self.strike_async(StoreMethod::Set, Some(key)).await?;
        if let Some(Fault::Tear(keep)) = fault {
            let torn = value.slice(..keep.min(value.len()));
            self.async_writable()?.set(key, torn).await?;
            return Err(torn_write());
        }
        after(&fault, self.async_writable()?.set(key, value).await)
    }

    async fn set_vectored(&self, key: &StoreKey, parts: Vec<Bytes>) -> Result<(), StoreError> {
        let fault = self.strike_async(StoreMethod::SetVectored, Some(key)).await?;
        if let Some(Fault::Tear(keep)) = fault {
            let mut value = parts.concat();
            value.truncate(keep);
            self.async_writable()?.set(key, value.into()).await?;
            return Err(torn_write());
        }
        after(&fault, self.async_writable()?.set_vectored(key, parts).await)
    }

    async fn erase(&self, key: &StoreKey) -> Result<(), StoreError> {
        let fault = self.strike_async(StoreMethod::Erase, Some(key)).await?;
        after(&fault, self.async_writable()?.erase(key).await)
    }

    async fn erase_prefix(&self, prefix: &StorePrefix) -> Result<(), StoreError> {
        let fault = self.strike_async(StoreMethod::ErasePrefix, None).await?;
        after(&fault, self.async_writable()?.erase_prefix(prefix).await)
    }
}

#[async_trait]
impl<S: AsyncStore> AsyncListableStore for FaultyStore<S> {
    async fn list(&self, prefix: &StorePrefix) -> Result<Vec<StoreKey>, StoreError> {
        let fault = self.strike_async(StoreMethod::List, None).await?;
        after(&fault, self.async_listable()?.list(prefix).await)
    }

    async fn list_dir(&self, prefix: &StorePrefix) -> Result<Listing, StoreError> {
        let fault = self.strike_async(StoreMethod::ListDir, None).await?;
        after(&fault, self.async_listable()?.list_dir(prefix).await)
    }
}

impl<S: AsyncStore> AsyncStore for FaultyStore<S> {
    fn as_writable(&self) -> Option<&dyn AsyncWritableStore> {
        self.inner.as_writable().map(|_| self as _)
    }

    fn as_listable(&self) -> Option<&dyn AsyncListableStore> {
        self.inner.as_listable().map(|_| self as _)
    }

    fn name(&self) -> String {
        self.inner.name()
    }

    fn native_blocking(&self) -> Option<Arc<dyn Store>> {
        Some(Arc::new(FaultyStore::with_script(self.inner.native_blocking()?, &self.script)))
    }
}

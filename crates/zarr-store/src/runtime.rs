//! A tokio runtime for async stores, where the caller brings none.

#![deny(clippy::missing_trait_methods)]

use std::future::{Future, poll_fn};
use std::panic::resume_unwind;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::JoinHandle;
use zarr_store_api::{
    AnyStore, AsyncListableStore, AsyncReadableStore, AsyncStore, AsyncWritableStore, Buffer, ByteRange, Bytes, Destination, Device,
    DeviceId, Listing, Queue, Store, StoreError, StoreErrorKind, StoreKey, StorePrefix, async_trait,
};

use crate::wrap::{not_listable, not_writable};

/// An async store that may be used anywhere, though its client needs a tokio runtime.
///
/// Futures that are polled inside of a runtime use that one. Elsewhere - in blocking calls of an array, on threads of a pool, under another executor - sockets
/// and timers are served by a runtime that all such stores of the process share: two threads, started by the first store, which last as long as the process.
/// Either way reads are tasks of their own, that go on while the caller is busy, and end when its future is dropped.
///
/// ```
/// # #[cfg(feature = "object-store")] {
/// use std::sync::Arc;
/// use object_store::memory::InMemory;
/// use zarr_store::{ObjectStoreAdapter, OnRuntime};
/// use zarr_store_api::{AsyncReadableStore, ByteRange, StoreKey};
///
/// let store = OnRuntime::new(ObjectStoreAdapter::new(Arc::new(InMemory::new()), "memory://"))?;
/// let value = futures::executor::block_on(store.get(&StoreKey::new("a")?, ByteRange::All))?;
/// assert!(value.is_none());
/// # }
/// # Ok::<(), zarr_store_api::StoreError>(())
/// ```
#[derive(Debug)]
pub struct OnRuntime<S> {
    inner: Arc<S>,
}

/// The runtime that all share. It is never dropped: stores may be kept in statics. A process that was forked has none of its parent's threads, and starts a runtime
/// of its own.
pub(crate) fn shared() -> Result<&'static Runtime, StoreError> {
    static SHARED: Mutex<Option<(u32, &'static Runtime)>> = Mutex::new(None);
    let here = std::process::id();
    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((process, runtime)) = *shared
        && process == here
    {
        return Ok(runtime);
    }
    let runtime = Builder::new_multi_thread().worker_threads(2).thread_name("zarr-store").enable_all().build();
    let runtime: &'static Runtime = Box::leak(Box::new(runtime.map_err(|error| StoreError::from_io(error, "cannot start a runtime"))?));
    *shared = Some((here, runtime));
    Ok(runtime)
}

/// Polls a future inside of a runtime.
async fn serve<T>(runtime: &'static Runtime, future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    poll_fn(|context| {
        let _inside = Handle::try_current().is_err().then(|| runtime.enter());
        future.as_mut().poll(context)
    })
    .await
}

/// A task that ends with whoever waits for it.
struct Task<T>(JoinHandle<T>);

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Runs a future as a task of the runtime at hand, or of the shared one.
async fn run<T: Send + 'static>(future: impl Future<Output = Result<T, StoreError>> + Send + 'static) -> Result<T, StoreError> {
    let mut task = Task(match Handle::try_current() {
        Ok(runtime) => runtime.spawn(future),
        Err(_) => shared()?.spawn(future),
    });
    match (&mut task.0).await {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            Err(error) => Err(StoreError::new(StoreErrorKind::Io, "the runtime was shut down").with_source(error)),
        },
    }
}

impl<S: AsyncStore> OnRuntime<S> {
    /// Takes a store.
    ///
    /// # Errors
    ///
    /// What the operating system gives when the threads are started.
    pub fn new(store: S) -> Result<Self, StoreError> {
        shared()?;
        Ok(Self { inner: Arc::new(store) })
    }

    fn writable(&self) -> Result<&dyn AsyncWritableStore, StoreError> {
        self.inner.as_writable().ok_or_else(|| not_writable(&self.inner.name()))
    }

    fn listable(&self) -> Result<&dyn AsyncListableStore, StoreError> {
        self.inner.as_listable().ok_or_else(|| not_listable(&self.inner.name()))
    }
}

#[async_trait]
impl<S: AsyncStore> AsyncReadableStore for OnRuntime<S> {
    async fn get(&self, key: &StoreKey, range: ByteRange) -> Result<Option<Bytes>, StoreError> {
        let (inner, key) = (Arc::clone(&self.inner), key.clone());
        run(async move { inner.get(&key, range).await }).await
    }

    async fn size(&self, key: &StoreKey) -> Result<Option<u64>, StoreError> {
        serve(shared()?, self.inner.size(key)).await
    }

    async fn get_ranges(&self, key: &StoreKey, ranges: &[ByteRange]) -> Result<Option<Vec<Bytes>>, StoreError> {
        let (inner, key, ranges) = (Arc::clone(&self.inner), key.clone(), ranges.to_vec());
        run(async move { inner.get_ranges(&key, &ranges).await }).await
    }

    async fn get_into(
        &self,
        key: &StoreKey,
        range: ByteRange,
        dst: Box<dyn Destination>,
    ) -> (Box<dyn Destination>, Result<Option<usize>, StoreError>) {
        match shared() {
            Ok(runtime) => serve(runtime, self.inner.get_into(key, range, dst)).await,
            Err(error) => (dst, Err(error)),
        }
    }

    async fn get_into_buffer(
        &self,
        key: &StoreKey,
        range: ByteRange,
        dst: &Buffer,
        device: &Arc<dyn Device>,
        queue: &Arc<dyn Queue>,
    ) -> Result<Option<usize>, StoreError> {
        serve(shared()?, self.inner.get_into_buffer(key, range, dst, device, queue)).await
    }

    fn reads_to_device(&self, device: DeviceId) -> bool {
        self.inner.reads_to_device(device)
    }
}

#[async_trait]
impl<S: AsyncStore> AsyncWritableStore for OnRuntime<S> {
    async fn set(&self, key: &StoreKey, value: Bytes) -> Result<(), StoreError> {
        serve(shared()?, self.writable()?.set(key, value)).await
    }

    async fn set_vectored(&self, key: &StoreKey, parts: Vec<Bytes>) -> Result<(), StoreError> {
        serve(shared()?, self.writable()?.set_vectored(key, parts)).await
    }

    async fn erase(&self, key: &StoreKey) -> Result<(), StoreError> {
        serve(shared()?, self.writable()?.erase(key)).await
    }

    async fn erase_prefix(&self, prefix: &StorePrefix) -> Result<(), StoreError> {
        serve(shared()?, self.writable()?.erase_prefix(prefix)).await
    }
}

#[async_trait]
impl<S: AsyncStore> AsyncListableStore for OnRuntime<S> {
    async fn list(&self, prefix: &StorePrefix) -> Result<Vec<StoreKey>, StoreError> {
        serve(shared()?, self.listable()?.list(prefix)).await
    }

    async fn list_dir(&self, prefix: &StorePrefix) -> Result<Listing, StoreError> {
        serve(shared()?, self.listable()?.list_dir(prefix)).await
    }
}

impl<S: AsyncStore> AsyncStore for OnRuntime<S> {
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
        self.inner.native_blocking()
    }
}

impl<S: AsyncStore> From<OnRuntime<S>> for AnyStore {
    fn from(store: OnRuntime<S>) -> Self {
        AnyStore::asynchronous(store)
    }
}

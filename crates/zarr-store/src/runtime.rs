//! A tokio runtime for async stores.

#![deny(clippy::missing_trait_methods)]

use std::future::Future;
use std::panic::resume_unwind;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::available_parallelism;

use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;
use zarr_store_api::{
    AnyStore, AsyncListableStore, AsyncReadableStore, AsyncStore, AsyncWritableStore, Buffer, ByteRange, Bytes, Destination, Device,
    DeviceId, Listing, Queue, Store, StoreError, StoreErrorKind, StoreKey, StorePrefix, Version, async_trait,
};

use crate::wrap::{not_listable, not_writable};

/// An async store that may be used anywhere, though its client needs a tokio runtime.
///
/// Each call is a task of a runtime that all such stores of the process share: two to eight threads, as there are processors, started by the first store, which last
/// as long as the process. So a call may be awaited under any executor, and waited for on any thread, those of another tokio runtime included; it goes on while the caller is busy, and ends when its future
/// is dropped.
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
    // One receives and copies some 2 GB/s.
    let threads = available_parallelism().map_or(2, usize::from).clamp(2, 8);
    let runtime = Builder::new_multi_thread().worker_threads(threads).thread_name("zarr-store").enable_all().build();
    let runtime: &'static Runtime = Box::leak(Box::new(runtime.map_err(|error| StoreError::from_io(error, "cannot start a runtime"))?));
    *shared = Some((here, runtime));
    Ok(runtime)
}

/// A task that ends with whoever waits for it.
struct Task<T>(JoinHandle<T>);

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Runs a call as a task of the shared runtime: the one at hand may be blocked by whoever waits.
async fn run<T: Send + 'static>(call: impl Future<Output = Result<T, StoreError>> + Send + 'static) -> Result<T, StoreError> {
    let mut task = Task(shared()?.spawn(call));
    match (&mut task.0).await {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            Err(error) => Err(StoreError::new(StoreErrorKind::Cancelled, "the runtime was shut down").with_source(error)),
        },
    }
}

fn writable<S: AsyncStore>(store: &S) -> Result<&dyn AsyncWritableStore, StoreError> {
    store.as_writable().ok_or_else(|| not_writable(&store.name()))
}

fn listable<S: AsyncStore>(store: &S) -> Result<&dyn AsyncListableStore, StoreError> {
    store.as_listable().ok_or_else(|| not_listable(&store.name()))
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
}

#[async_trait]
impl<S: AsyncStore> AsyncReadableStore for OnRuntime<S> {
    async fn get(&self, key: &StoreKey, range: ByteRange) -> Result<Option<Bytes>, StoreError> {
        let (inner, key) = (Arc::clone(&self.inner), key.clone());
        run(async move { inner.get(&key, range).await }).await
    }

    async fn size(&self, key: &StoreKey) -> Result<Option<u64>, StoreError> {
        let (inner, key) = (Arc::clone(&self.inner), key.clone());
        run(async move { inner.size(&key).await }).await
    }

    async fn get_ranges(&self, key: &StoreKey, ranges: &[ByteRange]) -> Result<Option<Vec<Bytes>>, StoreError> {
        let (inner, key, ranges) = (Arc::clone(&self.inner), key.clone(), ranges.to_vec());
        run(async move { inner.get_ranges(&key, &ranges).await }).await
    }

    async fn get_versioned(
        &self,
        key: &StoreKey,
        ranges: &[ByteRange],
        version: Option<&Version>,
    ) -> Result<Option<(Vec<Bytes>, Option<Version>)>, StoreError> {
        let (inner, key, ranges, version) = (Arc::clone(&self.inner), key.clone(), ranges.to_vec(), version.cloned());
        run(async move { inner.get_versioned(&key, &ranges, version.as_ref()).await }).await
    }

    async fn get_into(
        &self,
        key: &StoreKey,
        range: ByteRange,
        dst: Box<dyn Destination>,
    ) -> (Box<dyn Destination>, Result<Option<usize>, StoreError>) {
        let (inner, key) = (Arc::clone(&self.inner), key.clone());
        // Where there is no runtime, the destination is lost.
        let done = run(async move { Ok(inner.get_into(&key, range, dst).await) }).await;
        done.unwrap_or_else(|error| (Box::new(Vec::<u8>::new()), Err(error)))
    }

    async fn get_into_buffer(
        &self,
        key: &StoreKey,
        range: ByteRange,
        dst: &Buffer,
        device: &Arc<dyn Device>,
        queue: &Arc<dyn Queue>,
    ) -> Result<Option<usize>, StoreError> {
        let (inner, key) = (Arc::clone(&self.inner), key.clone());
        let (dst, device, queue) = (dst.clone(), Arc::clone(device), Arc::clone(queue));
        run(async move { inner.get_into_buffer(&key, range, &dst, &device, &queue).await }).await
    }

    fn reads_to_device(&self, device: DeviceId) -> bool {
        self.inner.reads_to_device(device)
    }
}

#[async_trait]
impl<S: AsyncStore> AsyncWritableStore for OnRuntime<S> {
    async fn set(&self, key: &StoreKey, value: Bytes) -> Result<(), StoreError> {
        let (inner, key) = (Arc::clone(&self.inner), key.clone());
        run(async move { writable(&*inner)?.set(&key, value).await }).await
    }

    async fn set_vectored(&self, key: &StoreKey, parts: Vec<Bytes>) -> Result<(), StoreError> {
        let (inner, key) = (Arc::clone(&self.inner), key.clone());
        run(async move { writable(&*inner)?.set_vectored(&key, parts).await }).await
    }

    async fn erase(&self, key: &StoreKey) -> Result<(), StoreError> {
        let (inner, key) = (Arc::clone(&self.inner), key.clone());
        run(async move { writable(&*inner)?.erase(&key).await }).await
    }

    async fn erase_prefix(&self, prefix: &StorePrefix) -> Result<(), StoreError> {
        let (inner, prefix) = (Arc::clone(&self.inner), prefix.clone());
        run(async move { writable(&*inner)?.erase_prefix(&prefix).await }).await
    }
}

#[async_trait]
impl<S: AsyncStore> AsyncListableStore for OnRuntime<S> {
    async fn list(&self, prefix: &StorePrefix) -> Result<Vec<StoreKey>, StoreError> {
        let (inner, prefix) = (Arc::clone(&self.inner), prefix.clone());
        run(async move { listable(&*inner)?.list(&prefix).await }).await
    }

    async fn list_dir(&self, prefix: &StorePrefix) -> Result<Listing, StoreError> {
        let (inner, prefix) = (Arc::clone(&self.inner), prefix.clone());
        run(async move { listable(&*inner)?.list_dir(&prefix).await }).await
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

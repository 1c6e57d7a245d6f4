//! Adapters between the blocking and the async form of a store, on tokio.

#![deny(clippy::missing_trait_methods)]

use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use tokio::runtime::Handle;
use zarr_store_api::{
    AsyncListableStore, AsyncReadableStore, AsyncStore, AsyncWritableStore, Buffer, ByteRange, Bytes, Destination, Device, DeviceId,
    ListableStore, Listing, Queue, ReadableStore, Store, StoreError, StoreErrorKind, StoreKey, StorePrefix, ValueReader, Version,
    WritableStore, async_trait,
};

use crate::runtime::shared;
use crate::wrap::{not_listable, not_writable};

/// An async store with blocking calls: the calling thread waits, while a tokio runtime serves
/// sockets and timers.
///
/// Calls may come from any thread, also from one that runs async code (which they hold up
/// meanwhile), as long as it is not the only thread of the runtime that serves this store.
///
/// Which version of a value is read is known once something was read of it: no indexes of shards are kept of such a store, a shard that is replaced while it is
/// read onto the host is an error, and one that is read onto a device is not noticed. Arrays take an async store as it is, and need none of this.
#[derive(Debug)]
pub struct AsyncToBlocking<S> {
    store: Arc<S>,
    /// `None`: the runtime that all such stores share.
    runtime: Option<Handle>,
}

impl<S: AsyncStore> AsyncToBlocking<S> {
    /// Adapts a store, with the runtime that stores of this process share where they are given none: see `OnRuntime`.
    ///
    /// # Errors
    ///
    /// What the operating system gives when the threads are started.
    pub fn new(store: S) -> Result<Self, StoreError> {
        shared()?;
        Ok(Self { store: Arc::new(store), runtime: None })
    }

    /// Adapts a store, with a runtime that runs elsewhere, on threads of its own.
    pub fn with_handle(store: S, handle: Handle) -> Self {
        Self { store: Arc::new(store), runtime: Some(handle) }
    }

    fn wait<T>(&self, future: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
        let _entered = match &self.runtime {
            Some(handle) => handle.enter(),
            None => shared()?.enter(),
        };
        block_on(future)
    }

    fn writable(&self) -> Result<&dyn AsyncWritableStore, StoreError> {
        self.store.as_writable().ok_or_else(|| not_writable(&self.store.name()))
    }

    fn listable(&self) -> Result<&dyn AsyncListableStore, StoreError> {
        self.store.as_listable().ok_or_else(|| not_listable(&self.store.name()))
    }
}

fn copy(bytes: &[u8], key: &StoreKey, range: ByteRange, dst: &mut [u8]) -> Result<usize, StoreError> {
    let capacity = dst.len();
    let Some(front) = dst.get_mut(..bytes.len()) else {
        return Err(StoreError::destination_too_short(bytes.len() as u64, capacity).with_key(key).with_range(range));
    };
    front.copy_from_slice(bytes);
    Ok(bytes.len())
}

/// One value of an async store: the version that was read first, where the store can tell.
#[derive(Debug)]
struct OneVersion<'a, S> {
    store: &'a AsyncToBlocking<S>,
    key: StoreKey,
    version: OnceLock<Version>,
}

impl<S: AsyncStore> ValueReader for OneVersion<'_, S> {
    fn get(&self, range: ByteRange) -> Result<Option<Bytes>, StoreError> {
        let Some(bytes) = self.get_ranges(&[range])? else { return Ok(None) };
        let none = || StoreError::new(StoreErrorKind::Io, "an answer without the range that was asked for");
        bytes.into_iter().next().map(Some).ok_or_else(none)
    }

    fn get_ranges(&self, ranges: &[ByteRange]) -> Result<Option<Vec<Bytes>>, StoreError> {
        let AsyncToBlocking { store, .. } = self.store;
        let Some((bytes, version)) = self.store.wait(store.get_versioned(&self.key, ranges, self.version.get()))? else { return Ok(None) };
        if let Some(version) = version
            && *self.version.get_or_init(|| version.clone()) != version
        {
            // Two first reads at once.
            return Err(StoreError::new(StoreErrorKind::Replaced, "the value was replaced while it was read").with_key(&self.key));
        }
        Ok(Some(bytes))
    }

    fn get_into(&self, range: ByteRange, dst: &mut [u8]) -> Result<Option<usize>, StoreError> {
        let Some(bytes) = self.get(range)? else { return Ok(None) };
        copy(&bytes, &self.key, range, dst).map(Some)
    }

    fn get_pieces(&self, range: ByteRange, _: &mut [u8], each: &mut dyn FnMut(u64, &[u8])) -> Result<Option<u64>, StoreError> {
        let Some(bytes) = self.get(range)? else { return Ok(None) };
        each(0, &bytes);
        Ok(Some(bytes.len() as u64))
    }

    /// Known when something was read.
    fn version(&self) -> Option<Version> {
        self.version.get().cloned()
    }

    fn is_parallel(&self) -> bool {
        false
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.unpark();
    }
}

/// Polls a future on this thread. Unlike `Handle::block_on` this works in async code, too.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(value) => return value,
            Poll::Pending => thread::park(),
        }
    }
}

impl<S: AsyncStore> ReadableStore for AsyncToBlocking<S> {
    fn get(&self, key: &StoreKey, range: ByteRange) -> Result<Option<Bytes>, StoreError> {
        self.wait(self.store.get(key, range))
    }

    fn size(&self, key: &StoreKey) -> Result<Option<u64>, StoreError> {
        self.wait(self.store.size(key))
    }

    fn get_ranges(&self, key: &StoreKey, ranges: &[ByteRange]) -> Result<Option<Vec<Bytes>>, StoreError> {
        self.wait(self.store.get_ranges(key, ranges))
    }

    /// With one copy: async reads own their destination, and this one is borrowed.
    fn get_into(&self, key: &StoreKey, range: ByteRange, dst: &mut [u8]) -> Result<Option<usize>, StoreError> {
        let Some(bytes) = self.get(key, range)? else { return Ok(None) };
        copy(&bytes, key, range, dst).map(Some)
    }

    /// In one piece: an async read gives all of its range at once.
    fn get_pieces(
        &self,
        key: &StoreKey,
        range: ByteRange,
        _: &mut [u8],
        each: &mut dyn FnMut(u64, &[u8]),
    ) -> Result<Option<u64>, StoreError> {
        let Some(bytes) = self.get(key, range)? else { return Ok(None) };
        each(0, &bytes);
        Ok(Some(bytes.len() as u64))
    }

    fn reader<'a>(&'a self, key: &StoreKey) -> Result<Box<dyn ValueReader + 'a>, StoreError> {
        Ok(Box::new(OneVersion { store: self, key: key.clone(), version: OnceLock::new() }))
    }

    fn get_into_buffer(
        &self,
        key: &StoreKey,
        range: ByteRange,
        dst: &Buffer,
        device: &Arc<dyn Device>,
        queue: &Arc<dyn Queue>,
    ) -> Result<Option<usize>, StoreError> {
        self.wait(self.store.get_into_buffer(key, range, dst, device, queue))
    }

    fn reads_to_device(&self, device: DeviceId) -> bool {
        self.store.reads_to_device(device)
    }
}

impl<S: AsyncStore> WritableStore for AsyncToBlocking<S> {
    fn set(&self, key: &StoreKey, value: Bytes) -> Result<(), StoreError> {
        self.wait(self.writable()?.set(key, value))
    }

    fn set_vectored(&self, key: &StoreKey, parts: &[&[u8]]) -> Result<(), StoreError> {
        let parts = parts.iter().map(|part| Bytes::copy_from_slice(part)).collect();
        self.wait(self.writable()?.set_vectored(key, parts))
    }

    /// At once: an async write owns its value.
    fn set_pieces(&self, key: &StoreKey, len: u64, _: &mut [u8], make: &mut dyn FnMut(u64, &mut [u8])) -> Result<(), StoreError> {
        let no_room = || StoreError::new(StoreErrorKind::Limit, format!("no memory for {len} bytes")).with_key(key);
        let len = usize::try_from(len).map_err(|_| no_room())?;
        let mut value = Vec::new();
        value.try_reserve_exact(len).map_err(|_| no_room())?;
        value.resize(len, 0);
        make(0, &mut value);
        self.set(key, value.into())
    }

    fn erase(&self, key: &StoreKey) -> Result<(), StoreError> {
        self.wait(self.writable()?.erase(key))
    }

    fn erase_prefix(&self, prefix: &StorePrefix) -> Result<(), StoreError> {
        self.wait(self.writable()?.erase_prefix(prefix))
    }
}

impl<S: AsyncStore> ListableStore for AsyncToBlocking<S> {
    fn list(&self, prefix: &StorePrefix) -> Result<Vec<StoreKey>, StoreError> {
        self.wait(self.listable()?.list(prefix))
    }

    fn list_dir(&self, prefix: &StorePrefix) -> Result<Listing, StoreError> {
        self.wait(self.listable()?.list_dir(prefix))
    }
}

impl<S: AsyncStore> Store for AsyncToBlocking<S> {
    fn as_writable(&self) -> Option<&dyn WritableStore> {
        self.store.as_writable().map(|_| self as _)
    }

    fn as_listable(&self) -> Option<&dyn ListableStore> {
        self.store.as_listable().map(|_| self as _)
    }

    fn name(&self) -> String {
        self.store.name()
    }

    fn native_async(&self) -> Option<Arc<dyn AsyncStore>> {
        Some(Arc::clone(&self.store) as Arc<dyn AsyncStore>)
    }
}

/// A blocking store with async calls, which run on tokio's threads for blocking work.
///
/// Calls must come from within a tokio runtime, unless one was named. A future that is dropped
/// does not stop a call that has begun: a write may still take place, whole.
#[derive(Clone, Debug)]
pub struct BlockingToAsync<S> {
    store: Arc<S>,
    handle: Option<Handle>,
}

impl<S: Store> BlockingToAsync<S> {
    /// Adapts a store; calls run on the runtime they are made in.
    pub fn new(store: S) -> Self {
        Self { store: Arc::new(store), handle: None }
    }

    /// Adapts a store; calls run on this runtime.
    pub fn with_handle(store: S, handle: Handle) -> Self {
        Self { store: Arc::new(store), handle: Some(handle) }
    }

    async fn spawn<T: Send + 'static>(&self, work: impl FnOnce(&S) -> T + Send + 'static) -> Result<T, StoreError> {
        let handle = match &self.handle {
            Some(handle) => handle.clone(),
            None => Handle::try_current()
                .map_err(|error| StoreError::unsupported("blocking stores need a tokio runtime for async calls").with_source(error))?,
        };
        let store = Arc::clone(&self.store);
        handle.spawn_blocking(move || work(&store)).await.map_err(|error| {
            let message = match error.is_panic() {
                true => "the store panicked",
                false => "the runtime has ended",
            };
            StoreError::new(StoreErrorKind::Cancelled, message).with_source(error)
        })
    }

    async fn write(&self, work: impl FnOnce(&dyn WritableStore) -> Result<(), StoreError> + Send + 'static) -> Result<(), StoreError> {
        self.spawn(move |store| match store.as_writable() {
            Some(store) => work(store),
            None => Err(not_writable(&store.name())),
        })
        .await?
    }

    async fn list_with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&dyn ListableStore) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.spawn(move |store| match store.as_listable() {
            Some(store) => work(store),
            None => Err(not_listable(&store.name())),
        })
        .await?
    }
}

#[async_trait]
impl<S: Store> AsyncReadableStore for BlockingToAsync<S> {
    async fn get(&self, key: &StoreKey, range: ByteRange) -> Result<Option<Bytes>, StoreError> {
        let key = key.clone();
        self.spawn(move |store| store.get(&key, range)).await?
    }

    async fn size(&self, key: &StoreKey) -> Result<Option<u64>, StoreError> {
        let key = key.clone();
        self.spawn(move |store| store.size(&key)).await?
    }

    async fn get_ranges(&self, key: &StoreKey, ranges: &[ByteRange]) -> Result<Option<Vec<Bytes>>, StoreError> {
        let (key, ranges) = (key.clone(), ranges.to_vec());
        self.spawn(move |store| store.get_ranges(&key, &ranges)).await?
    }

    /// Of any version: a blocking store has readers for that, which this cannot keep.
    async fn get_versioned(
        &self,
        key: &StoreKey,
        ranges: &[ByteRange],
        version: Option<&Version>,
    ) -> Result<Option<(Vec<Bytes>, Option<Version>)>, StoreError> {
        let _ = version;
        let read = match ranges {
            [range] => self.get(key, *range).await?.map(|bytes| vec![bytes]),
            _ => self.get_ranges(key, ranges).await?,
        };
        Ok(read.map(|bytes| (bytes, None)))
    }

    /// Without a copy of its own: the destination travels to the thread that reads. It is lost
    /// only if the runtime ends meanwhile; then an empty one comes back.
    async fn get_into(
        &self,
        key: &StoreKey,
        range: ByteRange,
        mut dst: Box<dyn Destination>,
    ) -> (Box<dyn Destination>, Result<Option<usize>, StoreError>) {
        let key = key.clone();
        let read = self.spawn(move |store| {
            let result = store.get_into(&key, range, (*dst).bytes_mut());
            (dst, result)
        });
        read.await.unwrap_or_else(|error| (Box::new(Vec::new()), Err(error)))
    }

    async fn get_into_buffer(
        &self,
        key: &StoreKey,
        range: ByteRange,
        dst: &Buffer,
        device: &Arc<dyn Device>,
        queue: &Arc<dyn Queue>,
    ) -> Result<Option<usize>, StoreError> {
        let (key, dst, device, queue) = (key.clone(), dst.clone(), Arc::clone(device), Arc::clone(queue));
        self.spawn(move |store| store.get_into_buffer(&key, range, &dst, &device, &queue)).await?
    }

    fn reads_to_device(&self, device: DeviceId) -> bool {
        self.store.reads_to_device(device)
    }
}

#[async_trait]
impl<S: Store> AsyncWritableStore for BlockingToAsync<S> {
    async fn set(&self, key: &StoreKey, value: Bytes) -> Result<(), StoreError> {
        let key = key.clone();
        self.write(move |store| store.set(&key, value)).await
    }

    async fn set_vectored(&self, key: &StoreKey, parts: Vec<Bytes>) -> Result<(), StoreError> {
        let key = key.clone();
        self.write(move |store| {
            let parts: Vec<&[u8]> = parts.iter().map(|part| part.as_ref()).collect();
            store.set_vectored(&key, &parts)
        })
        .await
    }

    async fn erase(&self, key: &StoreKey) -> Result<(), StoreError> {
        let key = key.clone();
        self.write(move |store| store.erase(&key)).await
    }

    async fn erase_prefix(&self, prefix: &StorePrefix) -> Result<(), StoreError> {
        let prefix = prefix.clone();
        self.write(move |store| store.erase_prefix(&prefix)).await
    }
}

#[async_trait]
impl<S: Store> AsyncListableStore for BlockingToAsync<S> {
    async fn list(&self, prefix: &StorePrefix) -> Result<Vec<StoreKey>, StoreError> {
        let prefix = prefix.clone();
        self.list_with(move |store| store.list(&prefix)).await
    }

    async fn list_dir(&self, prefix: &StorePrefix) -> Result<Listing, StoreError> {
        let prefix = prefix.clone();
        self.list_with(move |store| store.list_dir(&prefix)).await
    }
}

impl<S: Store> AsyncStore for BlockingToAsync<S> {
    fn as_writable(&self) -> Option<&dyn AsyncWritableStore> {
        self.store.as_writable().map(|_| self as _)
    }

    fn as_listable(&self) -> Option<&dyn AsyncListableStore> {
        self.store.as_listable().map(|_| self as _)
    }

    fn name(&self) -> String {
        self.store.name()
    }

    fn native_blocking(&self) -> Option<Arc<dyn Store>> {
        Some(Arc::clone(&self.store) as Arc<dyn Store>)
    }
}

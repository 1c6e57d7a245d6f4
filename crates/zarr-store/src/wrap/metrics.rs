//! A store that counts what is asked of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use zarr_store_api::{
    AnyStore, AsyncListableStore, AsyncReadableStore, AsyncStore, AsyncWritableStore, Buffer, ByteRange, Bytes, Destination, Device,
    DeviceId, ListableStore, Listing, Queue, ReadableStore, Store, StoreError, StoreKey, StorePrefix, ValueReader, Version, WritableStore,
    async_trait,
};

use super::{not_listable, not_writable};

/// The methods of a store, those of the async form under the same names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StoreMethod {
    /// [`ReadableStore::get`].
    Get,
    /// [`ReadableStore::size`].
    Size,
    /// [`ReadableStore::get_ranges`], and [`AsyncReadableStore::get_versioned`], which the blocking form does not have.
    GetRanges,
    /// [`ReadableStore::get_into`].
    GetInto,
    /// [`ReadableStore::get_pieces`]; the async form has no such method.
    GetPieces,
    /// [`ReadableStore::get_into_buffer`].
    GetIntoBuffer,
    /// [`WritableStore::set`].
    Set,
    /// [`WritableStore::set_vectored`].
    SetVectored,
    /// [`WritableStore::set_pieces`]; the async form has no such method.
    SetPieces,
    /// [`WritableStore::erase`].
    Erase,
    /// [`WritableStore::erase_prefix`].
    ErasePrefix,
    /// [`ListableStore::list`].
    List,
    /// [`ListableStore::list_dir`].
    ListDir,
}

impl StoreMethod {
    /// Every method, in the order of declaration.
    pub const ALL: [Self; 13] = [
        Self::Get,
        Self::Size,
        Self::GetRanges,
        Self::GetInto,
        Self::GetPieces,
        Self::GetIntoBuffer,
        Self::Set,
        Self::SetVectored,
        Self::SetPieces,
        Self::Erase,
        Self::ErasePrefix,
        Self::List,
        Self::ListDir,
    ];

    /// Whether the method reads values or their sizes.
    #[must_use]
    pub fn is_read(self) -> bool {
        matches!(self, Self::Get | Self::Size | Self::GetRanges | Self::GetInto | Self::GetPieces | Self::GetIntoBuffer)
    }

    /// Whether the method changes what is stored.
    #[must_use]
    pub fn is_write(self) -> bool {
        matches!(self, Self::Set | Self::SetVectored | Self::SetPieces | Self::Erase | Self::ErasePrefix)
    }
}

/// What was asked of one method.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MethodCount {
    /// How often it was called.
    pub calls: u64,
    /// How many ranges were asked for: one a call, except with `get_ranges`.
    pub ranges: u64,
    /// How many bytes of values were given out or taken in.
    pub bytes: u64,
    /// How many calls failed.
    pub errors: u64,
}

#[derive(Debug, Default)]
struct Counter {
    calls: AtomicU64,
    ranges: AtomicU64,
    bytes: AtomicU64,
    errors: AtomicU64,
}

/// What a [`Metrics`] store has counted; clones share the counters.
#[derive(Clone, Debug, Default)]
pub struct MetricsHandle(Arc<[Counter; StoreMethod::ALL.len()]>);

impl MetricsHandle {
    fn count<T>(
        &self,
        method: StoreMethod,
        ranges: usize,
        result: Result<T, StoreError>,
        bytes: impl FnOnce(&T) -> usize,
    ) -> Result<T, StoreError> {
        let counter = &self.0[method as usize];
        let add = |to: &AtomicU64, n: usize| to.fetch_add(n as u64, Ordering::Relaxed);
        add(&counter.calls, 1);
        add(&counter.ranges, ranges);
        match &result {
            Ok(value) => add(&counter.bytes, bytes(value)),
            Err(_) => add(&counter.errors, 1),
        };
        result
    }

    /// The counts at this moment.
    #[must_use]
    pub fn snapshot(&self) -> MetricsSnapshot {
        self.read(|counter| counter.load(Ordering::Relaxed))
    }

    /// Sets all counts to zero, and gives what they were.
    pub fn reset(&self) -> MetricsSnapshot {
        self.read(|counter| counter.swap(0, Ordering::Relaxed))
    }

    fn read(&self, take: impl Fn(&AtomicU64) -> u64) -> MetricsSnapshot {
        MetricsSnapshot(std::array::from_fn(|method| {
            let counter = &self.0[method];
            MethodCount {
                calls: take(&counter.calls),
                ranges: take(&counter.ranges),
                bytes: take(&counter.bytes),
                errors: take(&counter.errors),
            }
        }))
    }
}

/// The counts of all methods at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MetricsSnapshot([MethodCount; StoreMethod::ALL.len()]);

impl MetricsSnapshot {
    /// The counts of one method.
    #[must_use]
    pub fn method(&self, method: StoreMethod) -> MethodCount {
        self.0[method as usize]
    }

    fn sum(&self, which: impl Fn(StoreMethod) -> bool, what: fn(&MethodCount) -> u64) -> u64 {
        let chosen = StoreMethod::ALL.into_iter().filter(|method| which(*method));
        chosen.map(|method| what(&self.method(method))).sum()
    }

    /// Calls of all methods.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.sum(|_| true, |count| count.calls)
    }

    /// Calls of the methods that read.
    #[must_use]
    pub fn reads(&self) -> u64 {
        self.sum(StoreMethod::is_read, |count| count.calls)
    }

    /// Calls of the methods that write or erase.
    #[must_use]
    pub fn writes(&self) -> u64 {
        self.sum(StoreMethod::is_write, |count| count.calls)
    }

    /// Bytes of values that were read.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        self.sum(StoreMethod::is_read, |count| count.bytes)
    }

    /// Bytes of values that were written.
    #[must_use]
    pub fn bytes_written(&self) -> u64 {
        self.sum(StoreMethod::is_write, |count| count.bytes)
    }

    /// Calls that failed.
    #[must_use]
    pub fn errors(&self) -> u64 {
        self.sum(|_| true, |count| count.errors)
    }
}

/// A store that counts calls, ranges, bytes and errors, method by method. Costs a few relaxed
/// atomic additions a call.
#[derive(Clone, Debug)]
pub struct Metrics<S> {
    inner: S,
    counters: MetricsHandle,
}

impl<S> Metrics<S> {
    /// Counts what is asked of a store.
    pub fn new(store: S) -> Self {
        Self { inner: store, counters: MetricsHandle::default() }
    }

    /// The counters, to keep.
    pub fn handle(&self) -> MetricsHandle {
        self.counters.clone()
    }

    /// The store below.
    pub fn into_inner(self) -> S {
        self.inner
    }

    fn with(inner: S, counters: &MetricsHandle) -> Self {
        Self { inner, counters: counters.clone() }
    }
}

impl Metrics<AnyStore> {
    /// Counts what is asked of a store of either form.
    #[must_use]
    pub fn any(store: AnyStore) -> (AnyStore, MetricsHandle) {
        let counters = MetricsHandle::default();
        let counted = match store {
            AnyStore::Blocking(store) => AnyStore::blocking(Metrics::with(store, &counters)),
            AnyStore::Async(store) => AnyStore::asynchronous(Metrics::with(store, &counters)),
        };
        (counted, counters)
    }
}

fn bytes_length(value: &Option<Bytes>) -> usize {
    value.as_ref().map_or(0, Bytes::len)
}

fn all_lengths(values: &Option<Vec<Bytes>>) -> usize {
    values.iter().flatten().map(Bytes::len).sum()
}

fn nothing<T>(_: &T) -> usize {
    0
}

impl<S: Store> ReadableStore for Metrics<S> {
    fn get(&self, key: &StoreKey, range: ByteRange) -> Result<Option<Bytes>, StoreError> {
        let result = self.inner.get(key, range);
        self.counters.count(StoreMethod::Get, 1, result, bytes_length)
    }

    fn size(&self, key: &StoreKey) -> Result<Option<u64>, StoreError> {
        let result = self.inner.size(key);
        self.counters.count(StoreMethod::Size, 0, result, nothing)
    }

    fn get_ranges(&self, key: &StoreKey, ranges: &[ByteRange]) -> Result<Option<Vec<Bytes>>, StoreError> {
        let result = self.inner.get_ranges(key, ranges);
        self.counters.count(StoreMethod::GetRanges, ranges.len(), result, all_lengths)
    }

    fn get_into(&self, key: &StoreKey, range: ByteRange, dst: &mut [u8]) -> Result<Option<usize>, StoreError> {
        let result = self.inner.get_into(key, range, dst);
        self.counters.count(StoreMethod::GetInto, 1, result, |read| read.unwrap_or(0))
    }

    fn get_pieces(
        &self,
        key: &StoreKey,
        range: ByteRange,
        piece: &mut [u8],
        each: &mut dyn FnMut(u64, &[u8]),
    ) -> Result<Option<u64>, StoreError> {
        let result = self.inner.get_pieces(key, range, piece, each);
        self.counters.count(StoreMethod::GetPieces, 1, result, |read| usize::try_from(read.unwrap_or(0)).unwrap_or(usize::MAX))
    }

    fn reader<'a>(&'a self, key: &StoreKey) -> Result<Box<dyn ValueReader + 'a>, StoreError> {
        Ok(Box::new(Counted { inner: self.inner.reader(key)?, counters: &self.counters }))
    }

    fn get_into_buffer(
        &self,
        key: &StoreKey,
        range: ByteRange,
        dst: &Buffer,
        device: &Arc<dyn Device>,
        queue: &Arc<dyn Queue>,
    ) -> Result<Option<usize>, StoreError> {
        let result = self.inner.get_into_buffer(key, range, dst, device, queue);
        self.counters.count(StoreMethod::GetIntoBuffer, 1, result, |read| read.unwrap_or(0))
    }

    fn reads_to_device(&self, device: DeviceId) -> bool {
        self.inner.reads_to_device(device)
    }
}

/// One value, whose reads count as calls of the store.
#[derive(Debug)]
struct Counted<'a> {
    inner: Box<dyn ValueReader + 'a>,
    counters: &'a MetricsHandle,
}

impl ValueReader for Counted<'_> {
    fn get(&self, range: ByteRange) -> Result<Option<Bytes>, StoreError> {
        self.counters.count(StoreMethod::Get, 1, self.inner.get(range), bytes_length)
    }

    fn get_ranges(&self, ranges: &[ByteRange]) -> Result<Option<Vec<Bytes>>, StoreError> {
        self.counters.count(StoreMethod::GetRanges, ranges.len(), self.inner.get_ranges(ranges), all_lengths)
    }

    fn get_into(&self, range: ByteRange, dst: &mut [u8]) -> Result<Option<usize>, StoreError> {
        self.counters.count(StoreMethod::GetInto, 1, self.inner.get_into(range, dst), |read| read.unwrap_or(0))
    }

    fn get_pieces(&self, range: ByteRange, piece: &mut [u8], each: &mut dyn FnMut(u64, &[u8])) -> Result<Option<u64>, StoreError> {
        let result = self.inner.get_pieces(range, piece, each);
        self.counters.count(StoreMethod::GetPieces, 1, result, |read| usize::try_from(read.unwrap_or(0)).unwrap_or(usize::MAX))
    }

    fn version(&self) -> Option<Version> {
        self.inner.version()
    }

    fn is_parallel(&self) -> bool {
        self.inner.is_parallel()
    }
}

impl<S: Store> Metrics<S> {
    fn writable(&self) -> Result<&dyn WritableStore, StoreError> {
        self.inner.as_writable().ok_or_else(|| not_writable(&self.inner.name()))
    }

    fn listable(&self) -> Result<&dyn ListableStore, StoreError> {
        self.inner.as_listable().ok_or_else(|| not_listable(&self.inner.name()))
    }
}

impl<S: Store> WritableStore for Metrics<S> {
    fn set(&self, key: &StoreKey, value: Bytes) -> Result<(), StoreError> {
        let length = value.len();
        let result = self.writable()?.set(key, value);
        self.counters.count(StoreMethod::Set, 0, result, |()| length)
    }

    fn set_vectored(&self, key: &StoreKey, parts: &[&[u8]]) -> Result<(), StoreError> {
        let result = self.writable()?.set_vectored(key, parts);
        let length = |_: &()| parts.iter().map(|part| part.len()).sum();
        self.counters.count(StoreMethod::SetVectored, 0, result, length)
    }

    fn set_pieces(&self, key: &StoreKey, len: u64, piece: &mut [u8], make: &mut dyn FnMut(u64, &mut [u8])) -> Result<(), StoreError> {
        let result = self.writable()?.set_pieces(key, len, piece, make);
        self.counters.count(StoreMethod::SetPieces, 0, result, |()| usize::try_from(len).unwrap_or(usize::MAX))
    }

    fn erase(&self, key: &StoreKey) -> Result<(), StoreError> {
        let result = self.writable()?.erase(key);
        self.counters.count(StoreMethod::Erase, 0, result, nothing)
    }

    fn erase_prefix(&self, prefix: &StorePrefix) -> Result<(), StoreError> {
        let result = self.writable()?.erase_prefix(prefix);
        self.counters.count(StoreMethod::ErasePrefix, 0, result, nothing)
    }
}

impl<S: Store> ListableStore for Metrics<S> {
    fn list(&self, prefix: &StorePrefix) -> Result<Vec<StoreKey>, StoreError> {
        let result = self.listable()?.list(prefix);
        self.counters.count(StoreMethod::List, 0, result, nothing)
    }

    fn list_dir(&self, prefix: &StorePrefix) -> Result<Listing, StoreError> {
        let result = self.listable()?.list_dir(prefix);
        self.counters.count(StoreMethod::ListDir, 0, result, nothing)
    }
}

impl<S: Store> Store for Metrics<S> {
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
        Some(Arc::new(Metrics::with(self.inner.native_async()?, &self.counters)))
    }
}

#[async_trait]
impl<S: AsyncStore> AsyncReadableStore for Metrics<S> {
    async fn get(&self, key: &StoreKey, range: ByteRange) -> Result<Option<Bytes>, StoreError> {
        let result = self.inner.get(key, range).await;
        self.counters.count(StoreMethod::Get, 1, result, bytes_length)
    }

    async fn size(&self, key: &StoreKey) -> Result<Option<u64>, StoreError> {
        let result = self.inner.size(key).await;
        self.counters.count(StoreMethod::Size, 0, result, nothing)
    }

    async fn get_ranges(&self, key: &StoreKey, ranges: &[ByteRange]) -> Result<Option<Vec<Bytes>>, StoreError> {
        let result = self.inner.get_ranges(key, ranges).await;
        self.counters.count(StoreMethod::GetRanges, ranges.len(), result, all_lengths)
    }

    async fn get_versioned(
        &self,
        key: &StoreKey,
        ranges: &[ByteRange],
        version: Option<&Version>,
    ) -> Result<Option<(Vec<Bytes>, Option<Version>)>, StoreError> {
        let result = self.inner.get_versioned(key, ranges, version).await;
        self.counters
            .count(StoreMethod::GetRanges, ranges.len(), result, |read| read.iter().flat_map(|(values, _)| values).map(Bytes::len).sum())
    }

    async fn get_into(
        &self,
        key: &StoreKey,
        range: ByteRange,
        dst: Box<dyn Destination>,
    ) -> (Box<dyn Destination>, Result<Option<usize>, StoreError>) {
        let (dst, result) = self.inner.get_into(key, range, dst).await;
        let length = |read: &Option<usize>| read.unwrap_or(0);
        (dst, self.counters.count(StoreMethod::GetInto, 1, result, length))
    }

    async fn get_into_buffer(
        &self,
        key: &StoreKey,
        range: ByteRange,
        dst: &Buffer,
        device: &Arc<dyn Device>,
        queue: &Arc<dyn Queue>,
    ) -> Result<Option<usize>, StoreError> {
        let result = self.inner.get_into_buffer(key, range, dst, device, queue).await;
        self.counters.count(StoreMethod::GetIntoBuffer, 1, result, |read| read.unwrap_or(0))
    }

    fn reads_to_device(&self, device: DeviceId) -> bool {
        self.inner.reads_to_device(device)
    }
}

impl<S: AsyncStore> Metrics<S> {
    fn async_writable(&self) -> Result<&dyn AsyncWritableStore, StoreError> {
        self.inner.as_writable().ok_or_else(|| not_writable(&self.inner.name()))
    }

    fn async_listable(&self) -> Result<&dyn AsyncListableStore, StoreError> {
        self.inner.as_listable().ok_or_else(|| not_listable(&self.inner.name()))
    }
}

#[async_trait]
impl<S: AsyncStore> AsyncWritableStore for Metrics<S> {
    async fn set(&self, key: &StoreKey, value: Bytes) -> Result<(), StoreError> {
        let length = value.len();
        let result = self.async_writable()?.set(key, value).await;
        self.counters.count(StoreMethod::Set, 0, result, |()| length)
    }

    async fn set_vectored(&self, key: &StoreKey, parts: Vec<Bytes>) -> Result<(), StoreError> {
        let length = parts.iter().map(Bytes::len).sum();
        let result = self.async_writable()?.set_vectored(key, parts).await;
        self.counters.count(StoreMethod::SetVectored, 0, result, |()| length)
    }

    async fn erase(&self, key: &StoreKey) -> Result<(), StoreError> {
        let result = self.async_writable()?.erase(key).await;
        self.counters.count(StoreMethod::Erase, 0, result, nothing)
    }

    async fn erase_prefix(&self, prefix: &StorePrefix) -> Result<(), StoreError> {
        let result = self.async_writable()?.erase_prefix(prefix).await;
        self.counters.count(StoreMethod::ErasePrefix, 0, result, nothing)
    }
}

#[async_trait]
impl<S: AsyncStore> AsyncListableStore for Metrics<S> {
    async fn list(&self, prefix: &StorePrefix) -> Result<Vec<StoreKey>, StoreError> {
        let result = self.async_listable()?.list(prefix).await;
        self.counters.count(StoreMethod::List, 0, result, nothing)
    }

    async fn list_dir(&self, prefix: &StorePrefix) -> Result<Listing, StoreError> {
        let result = self.async_listable()?.list_dir(prefix).await;
        self.counters.count(StoreMethod::ListDir, 0, result, nothing)
    }
}

impl<S: AsyncStore> AsyncStore for Metrics<S> {
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
        Some(Arc::new(Metrics::with(self.inner.native_blocking()?, &self.counters)))
    }
}

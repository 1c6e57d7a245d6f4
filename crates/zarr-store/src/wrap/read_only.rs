//! A store that cannot be written to.

use std::sync::Arc;

use zarr_store_api::{
    AnyStore, AsyncListableStore, AsyncReadableStore, AsyncStore, AsyncWritableStore, Buffer, ByteRange, Bytes, Destination, Device,
    DeviceId, ListableStore, Queue, ReadableStore, Store, StoreError, StoreKey, ValueReader, Version, WritableStore, async_trait,
};

/// A store without its writing half: `as_writable` answers `None`.
#[derive(Clone, Debug)]
pub struct ReadOnly<S>(S);

impl<S> ReadOnly<S> {
    /// Takes the writing half away from a store.
    pub fn new(store: S) -> Self {
        Self(store)
    }

    /// The store below.
    pub fn into_inner(self) -> S {
        self.0
    }
}

impl ReadOnly<AnyStore> {
    /// Takes the writing half away from a store of either form.
    #[must_use]
    pub fn any(store: AnyStore) -> AnyStore {
        match store {
            AnyStore::Blocking(store) => AnyStore::blocking(ReadOnly(store)),
            AnyStore::Async(store) => AnyStore::asynchronous(ReadOnly(store)),
        }
    }
}

impl<S: Store> ReadableStore for ReadOnly<S> {
    fn get(&self, key: &StoreKey, range: ByteRange) -> Result<Option<Bytes>, StoreError> {
        self.0.get(key, range)
    }

    fn size(&self, key: &StoreKey) -> Result<Option<u64>, StoreError> {
        self.0.size(key)
    }

    fn get_ranges(&self, key: &StoreKey, ranges: &[ByteRange]) -> Result<Option<Vec<Bytes>>, StoreError> {
        self.0.get_ranges(key, ranges)
    }

    fn get_into(&self, key: &StoreKey, range: ByteRange, dst: &mut [u8]) -> Result<Option<usize>, StoreError> {
        self.0.get_into(key, range, dst)
    }

    fn get_pieces(
        &self,
        key: &StoreKey,
        range: ByteRange,
        piece: &mut [u8],
        each: &mut dyn FnMut(u64, &[u8]),
    ) -> Result<Option<u64>, StoreError> {
        self.0.get_pieces(key, range, piece, each)
    }

    fn reader<'a>(&'a self, key: &StoreKey) -> Result<Box<dyn ValueReader + 'a>, StoreError> {
        self.0.reader(key)
    }

    fn get_into_buffer(
        &self,
        key: &StoreKey,
        range: ByteRange,
        dst: &Buffer,
        device: &Arc<dyn Device>,
        queue: &Arc<dyn Queue>,
    ) -> Result<Option<usize>, StoreError> {
        self.0.get_into_buffer(key, range, dst, device, queue)
    }

    fn reads_to_device(&self, device: DeviceId) -> bool {
        self.0.reads_to_device(device)
    }
}

impl<S: Store> Store for ReadOnly<S> {
    fn as_writable(&self) -> Option<&dyn WritableStore> {
        None
    }

    fn as_listable(&self) -> Option<&dyn ListableStore> {
        self.0.as_listable()
    }

    fn name(&self) -> String {
        self.0.name()
    }

    fn native_async(&self) -> Option<Arc<dyn AsyncStore>> {
        Some(Arc::new(ReadOnly(self.0.native_async()?)))
    }
}

#[async_trait]
impl<S: AsyncStore> AsyncReadableStore for ReadOnly<S> {
    async fn get(&self, key: &StoreKey, range: ByteRange) -> Result<Option<Bytes>, StoreError> {
        self.0.get(key, range).await
    }

    async fn size(&self, key: &StoreKey) -> Result<Option<u64>, StoreError> {
        self.0.size(key).await
    }

    async fn get_ranges(&self, key: &StoreKey, ranges: &[ByteRange]) -> Result<Option<Vec<Bytes>>, StoreError> {
        self.0.get_ranges(key, ranges).await
    }

    async fn get_versioned(
        &self,
        key: &StoreKey,
        ranges: &[ByteRange],
        version: Option<&Version>,
    ) -> Result<Option<(Vec<Bytes>, Option<Version>)>, StoreError> {
        self.0.get_versioned(key, ranges, version).await
    }

    async fn get_into(
        &self,
        key: &StoreKey,
        range: ByteRange,
        dst: Box<dyn Destination>,
    ) -> (Box<dyn Destination>, Result<Option<usize>, StoreError>) {
        self.0.get_into(key, range, dst).await
    }

    async fn get_into_buffer(
        &self,
        key: &StoreKey,
        range: ByteRange,
        dst: &Buffer,
        device: &Arc<dyn Device>,
        queue: &Arc<dyn Queue>,
    ) -> Result<Option<usize>, StoreError> {
        self.0.get_into_buffer(key, range, dst, device, queue).await
    }

    fn reads_to_device(&self, device: DeviceId) -> bool {
        self.0.reads_to_device(device)
    }
}

impl<S: AsyncStore> AsyncStore for ReadOnly<S> {
    fn as_writable(&self) -> Option<&dyn AsyncWritableStore> {
        None
    }

    fn as_listable(&self) -> Option<&dyn AsyncListableStore> {
        self.0.as_listable()
    }

    fn name(&self) -> String {
        self.0.name()
    }

    fn native_blocking(&self) -> Option<Arc<dyn Store>> {
        Some(Arc::new(ReadOnly(self.0.native_blocking()?)))
    }
}

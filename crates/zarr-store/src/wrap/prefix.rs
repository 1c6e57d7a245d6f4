//! The part of a store below a prefix, as a store.

use std::sync::Arc;

use zarr_store_api::{
    AnyStore, AsyncListableStore, AsyncReadableStore, AsyncStore, AsyncWritableStore, Buffer, ByteRange, Bytes, Destination, Device,
    DeviceId, ListableStore, Listing, Queue, ReadableStore, Store, StoreError, StoreKey, StorePrefix, ValueReader, Version, WritableStore,
    async_trait,
};

use super::{not_listable, not_writable};

/// What lies below a prefix, as a store of its own: the key `zarr.json` is the key
/// `a/b/zarr.json` of the store below if the prefix is `a/b/`. Errors name the keys of
/// the store below.
#[derive(Clone, Debug)]
pub struct Prefix<S> {
    inner: S,
    prefix: StorePrefix,
}

impl<S> Prefix<S> {
    /// The part of `store` below `prefix`.
    pub fn new(store: S, prefix: StorePrefix) -> Self {
        Self { inner: store, prefix }
    }

    /// The prefix.
    pub fn prefix(&self) -> &StorePrefix {
        &self.prefix
    }

    /// The store below.
    pub fn into_inner(self) -> S {
        self.inner
    }

    fn down(&self, key: &StoreKey) -> Result<StoreKey, StoreError> {
        self.prefix.key(key.as_str())
    }

    fn down_prefix(&self, prefix: &StorePrefix) -> Result<StorePrefix, StoreError> {
        self.prefix.join(prefix.as_str())
    }

    /// The keys as they are seen from above. (The store gives none that lie elsewhere.)
    fn up(&self, keys: Vec<StoreKey>) -> Vec<StoreKey> {
        keys.iter().filter_map(|key| StoreKey::new(self.prefix.strip(key)?).ok()).collect()
    }

    fn up_listing(&self, listing: Listing) -> Listing {
        let strip = |prefix: &StorePrefix| StorePrefix::new(prefix.as_str().strip_prefix(self.prefix.as_str())?).ok();
        let prefixes = listing.prefixes.iter().filter_map(strip).collect();
        Listing { keys: self.up(listing.keys), prefixes }
    }

    fn name_below(&self, name: &str) -> String {
        let path = self.prefix.as_str();
        format!("{}/{}", name.trim_end_matches('/'), path.strip_suffix('/').unwrap_or(path))
    }
}

impl Prefix<AnyStore> {
    /// The part below `prefix` of a store of either form.
    #[must_use]
    pub fn any(store: AnyStore, prefix: StorePrefix) -> AnyStore {
        match store {
            AnyStore::Blocking(inner) => AnyStore::blocking(Prefix { inner, prefix }),
            AnyStore::Async(inner) => AnyStore::asynchronous(Prefix { inner, prefix }),
        }
    }
}

impl<S: Store> ReadableStore for Prefix<S> {
    fn get(&self, key: &StoreKey, range: ByteRange) -> Result<Option<Bytes>, StoreError> {
        self.inner.get(&self.down(key)?, range)
    }

    fn size(&self, key: &StoreKey) -> Result<Option<u64>, StoreError> {
        self.inner.size(&self.down(key)?)
    }

    fn get_ranges(&self, key: &StoreKey, ranges: &[ByteRange]) -> Result<Option<Vec<Bytes>>, StoreError> {
        self.inner.get_ranges(&self.down(key)?, ranges)
    }

    fn get_into(&self, key: &StoreKey, range: ByteRange, dst: &mut [u8]) -> Result<Option<usize>, StoreError> {
        self.inner.get_into(&self.down(key)?, range, dst)
    }

    fn get_pieces(
        &self,
        key: &StoreKey,
        range: ByteRange,
        piece: &mut [u8],
        each: &mut dyn FnMut(u64, &[u8]),
    ) -> Result<Option<u64>, StoreError> {
        self.inner.get_pieces(&self.down(key)?, range, piece, each)
    }

    fn reader<'a>(&'a self, key: &StoreKey) -> Result<Box<dyn ValueReader + 'a>, StoreError> {
        self.inner.reader(&self.down(key)?)
    }

    fn get_into_buffer(
        &self,
        key: &StoreKey,
        range: ByteRange,
        dst: &Buffer,
        device: &Arc<dyn Device>,
        queue: &Arc<dyn Queue>,
    ) -> Result<Option<usize>, StoreError> {
        self.inner.get_into_buffer(&self.down(key)?, range, dst, device, queue)
    }

    fn reads_to_device(&self, device: DeviceId) -> bool {
        self.inner.reads_to_device(device)
    }
}

impl<S: Store> Prefix<S> {
    fn writable(&self) -> Result<&dyn WritableStore, StoreError> {
        self.inner.as_writable().ok_or_else(|| not_writable(&self.inner.name()))
    }

    fn listable(&self) -> Result<&dyn ListableStore, StoreError> {
        self.inner.as_listable().ok_or_else(|| not_listable(&self.inner.name()))
    }
}

impl<S: Store> WritableStore for Prefix<S> {
    fn set(&self, key: &StoreKey, value: Bytes) -> Result<(), StoreError> {
        self.writable()?.set(&self.down(key)?, value)
    }

    fn set_vectored(&self, key: &StoreKey, parts: &[&[u8]]) -> Result<(), StoreError> {
        self.writable()?.set_vectored(&self.down(key)?, parts)
    }

    fn set_pieces(&self, key: &StoreKey, len: u64, piece: &mut [u8], make: &mut dyn FnMut(u64, &mut [u8])) -> Result<(), StoreError> {
        self.writable()?.set_pieces(&self.down(key)?, len, piece, make)
    }

    fn erase(&self, key: &StoreKey) -> Result<(), StoreError> {
        self.writable()?.erase(&self.down(key)?)
    }

    fn erase_prefix(&self, prefix: &StorePrefix) -> Result<(), StoreError> {
        self.writable()?.erase_prefix(&self.down_prefix(prefix)?)
    }
}

impl<S: Store> ListableStore for Prefix<S> {
    fn list(&self, prefix: &StorePrefix) -> Result<Vec<StoreKey>, StoreError> {
        self.listable()?.list(&self.down_prefix(prefix)?).map(|keys| self.up(keys))
    }

    fn list_dir(&self, prefix: &StorePrefix) -> Result<Listing, StoreError> {
        let listing = self.listable()?.list_dir(&self.down_prefix(prefix)?)?;
        Ok(self.up_listing(listing))
    }
}

impl<S: Store> Store for Prefix<S> {
    fn as_writable(&self) -> Option<&dyn WritableStore> {
        self.inner.as_writable().map(|_| self as _)
    }

    fn as_listable(&self) -> Option<&dyn ListableStore> {
        self.inner.as_listable().map(|_| self as _)
    }

    fn name(&self) -> String {
        self.name_below(&self.inner.name())
    }

    fn native_async(&self) -> Option<Arc<dyn AsyncStore>> {
        Some(Arc::new(Prefix::new(self.inner.native_async()?, self.prefix.clone())))
    }
}

#[async_trait]
impl<S: AsyncStore> AsyncReadableStore for Prefix<S> {
    async fn get(&self, key: &StoreKey, range: ByteRange) -> Result<Option<Bytes>, StoreError> {
        self.inner.get(&self.down(key)?, range).await
    }

    async fn size(&self, key: &StoreKey) -> Result<Option<u64>, StoreError> {
        self.inner.size(&self.down(key)?).await
    }

    async fn get_ranges(&self, key: &StoreKey, ranges: &[ByteRange]) -> Result<Option<Vec<Bytes>>, StoreError> {
        self.inner.get_ranges(&self.down(key)?, ranges).await
    }

    async fn get_versioned(
        &self,
        key: &StoreKey,
        ranges: &[ByteRange],
        version: Option<&Version>,
    ) -> Result<Option<(Vec<Bytes>, Option<Version>)>, StoreError> {
        self.inner.get_versioned(&self.down(key)?, ranges, version).await
    }

    async fn get_into(
        &self,
        key: &StoreKey,
        range: ByteRange,
        dst: Box<dyn Destination>,
    ) -> (Box<dyn Destination>, Result<Option<usize>, StoreError>) {
        match self.down(key) {
            Ok(key) => self.inner.get_into(&key, range, dst).await,
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
        self.inner.get_into_buffer(&self.down(key)?, range, dst, device, queue).await
    }

    fn reads_to_device(&self, device: DeviceId) -> bool {
        self.inner.reads_to_device(device)
    }
}

impl<S: AsyncStore> Prefix<S> {
    fn async_writable(&self) -> Result<&dyn AsyncWritableStore, StoreError> {
        self.inner.as_writable().ok_or_else(|| not_writable(&self.inner.name()))
    }

    fn async_listable(&self) -> Result<&dyn AsyncListableStore, StoreError> {
        self.inner.as_listable().ok_or_else(|| not_listable(&self.inner.name()))
    }
}

#[async_trait]
impl<S: AsyncStore> AsyncWritableStore for Prefix<S> {
    async fn set(&self, key: &StoreKey, value: Bytes) -> Result<(), StoreError> {
        self.async_writable()?.set(&self.down(key)?, value).await
    }

    async fn set_vectored(&self, key: &StoreKey, parts: Vec<Bytes>) -> Result<(), StoreError> {
        self.async_writable()?.set_vectored(&self.down(key)?, parts).await
    }

    async fn erase(&self, key: &StoreKey) -> Result<(), StoreError> {
        self.async_writable()?.erase(&self.down(key)?).await
    }

    async fn erase_prefix(&self, prefix: &StorePrefix) -> Result<(), StoreError> {
        self.async_writable()?.erase_prefix(&self.down_prefix(prefix)?).await
    }
}

#[async_trait]
impl<S: AsyncStore> AsyncListableStore for Prefix<S> {
    async fn list(&self, prefix: &StorePrefix) -> Result<Vec<StoreKey>, StoreError> {
        let keys = self.async_listable()?.list(&self.down_prefix(prefix)?).await?;
        Ok(self.up(keys))
    }

    async fn list_dir(&self, prefix: &StorePrefix) -> Result<Listing, StoreError> {
        let listing = self.async_listable()?.list_dir(&self.down_prefix(prefix)?).await?;
        Ok(self.up_listing(listing))
    }
}

impl<S: AsyncStore> AsyncStore for Prefix<S> {
    fn as_writable(&self) -> Option<&dyn AsyncWritableStore> {
        self.inner.as_writable().map(|_| self as _)
    }

    fn as_listable(&self) -> Option<&dyn AsyncListableStore> {
        self.inner.as_listable().map(|_| self as _)
    }

    fn name(&self) -> String {
        self.name_below(&self.inner.name())
    }

    fn native_blocking(&self) -> Option<Arc<dyn Store>> {
        Some(Arc::new(Prefix::new(self.inner.native_blocking()?, self.prefix.clone())))
    }
}

//! The async form of a store. Semantics are those of the blocking form, method by method.
//!
//! Every future may be dropped at any moment. A read that is dropped has no effect; a write that
//! is dropped leaves the old value or the new one, whole.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use zarr_buffer_api::{Buffer, Device, DeviceId, Queue};

use crate::blocking::{Listing, Store, buffer_error, copy_into, staging_len, upload};
use crate::error::{StoreError, StoreErrorKind};
use crate::key::{StoreKey, StorePrefix};
use crate::range::ByteRange;
use crate::value::Version;

/// Memory that an async read fills. The call owns it and gives it back, so that a future that is
/// dropped half-way leaves no writer behind in memory that someone else has taken over.
///
/// Implemented for everything owned that is `AsMut<[u8]>`: `Vec<u8>`, `BytesMut`, `Box<[u8]>`.
pub trait Destination: Any + Send {
    /// The bytes to fill.
    fn bytes_mut(&mut self) -> &mut [u8];
}

impl<T: AsMut<[u8]> + Send + 'static> Destination for T {
    fn bytes_mut(&mut self) -> &mut [u8] {
        self.as_mut()
    }
}

impl fmt::Debug for dyn Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Destination")
    }
}

/// A store that values can be read from, with async calls.
#[async_trait]
pub trait AsyncReadableStore: fmt::Debug + Send + Sync + 'static {
    /// As [`ReadableStore::get`](crate::ReadableStore::get).
    ///
    /// # Errors
    ///
    /// As there.
    async fn get(&self, key: &StoreKey, range: ByteRange) -> Result<Option<Bytes>, StoreError>;

    /// As [`ReadableStore::size`](crate::ReadableStore::size).
    ///
    /// # Errors
    ///
    /// As there.
    async fn size(&self, key: &StoreKey) -> Result<Option<u64>, StoreError>;

    /// As [`ReadableStore::get_ranges`](crate::ReadableStore::get_ranges). Stores whose requests
    /// are slow should join neighbouring ranges and ask for several at once; this default does
    /// neither.
    ///
    /// # Errors
    ///
    /// As there.
    async fn get_ranges(&self, key: &StoreKey, ranges: &[ByteRange]) -> Result<Option<Vec<Bytes>>, StoreError> {
        if ranges.is_empty() {
            return Ok(self.size(key).await?.map(|_| Vec::new()));
        }
        let mut values = Vec::with_capacity(ranges.len());
        for range in ranges {
            match self.get(key, *range).await? {
                Some(bytes) => values.push(bytes),
                None => return Ok(None),
            }
        }
        Ok(Some(values))
    }

    /// As [`get_ranges`](Self::get_ranges), with all ranges of one version of the value, and says of which: for several reads that belong together, as
    /// of a shard's index, then of its inner chunks. (A blocking store has [`ReadableStore::reader`](crate::ReadableStore::reader) for them.)
    ///
    /// `version` came with an earlier answer of this store for this key; `None`: any version will do. A store that cannot tell versions apart gives
    /// none. So does this default, which asks by [`get`](Self::get) or by [`get_ranges`](Self::get_ranges).
    ///
    /// # Errors
    ///
    /// As there, and [`StoreErrorKind::Replaced`] when there is no such version any more (also when the value was removed), or when the value was
    /// replaced during the call.
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

    /// As [`ReadableStore::get_into`](crate::ReadableStore::get_into), with a destination that is
    /// owned during the call and given back with the result, also after an error. Callers use
    /// [`AsyncReadableStoreExt::get_into_owned`], which keeps the type.
    async fn get_into(
        &self,
        key: &StoreKey,
        range: ByteRange,
        mut dst: Box<dyn Destination>,
    ) -> (Box<dyn Destination>, Result<Option<usize>, StoreError>) {
        let result = match self.get(key, range).await {
            // `*dst`: the box itself is a destination to the compiler too.
            Ok(Some(bytes)) => copy_into(&bytes, (*dst).bytes_mut()).map(Some).map_err(|error| error.with_key(key).with_range(range)),
            Ok(None) => Ok(None),
            Err(error) => Err(error),
        };
        (dst, result)
    }

    /// As [`ReadableStore::get_into_buffer`](crate::ReadableStore::get_into_buffer). Memory that the host sees stays
    /// borrowed until the read ends or is dropped, or a little longer where a thread is still at work for it.
    ///
    /// # Errors
    ///
    /// As there.
    async fn get_into_buffer(
        &self,
        key: &StoreKey,
        range: ByteRange,
        dst: &Buffer,
        device: &Arc<dyn Device>,
        queue: &Arc<dyn Queue>,
    ) -> Result<Option<usize>, StoreError> {
        let wrong = |error| buffer_error(error, key, range);
        if dst.is_host_visible() {
            let memory = dst.host_write_owned().map_err(wrong)?;
            return self.get_into(key, range, Box::new(memory)).await.1;
        }
        let staging = device.allocate_staging(staging_len(range, dst)).map_err(wrong)?;
        let memory = staging.host_write_owned().map_err(wrong)?;
        let (memory, read) = self.get_into(key, range, Box::new(memory)).await;
        // The queue cannot read what the host holds.
        drop(memory);
        let read = read?;
        upload(&staging, read, dst, &**queue).map_err(wrong)?;
        Ok(read)
    }

    /// As [`ReadableStore::reads_to_device`](crate::ReadableStore::reads_to_device).
    fn reads_to_device(&self, device: DeviceId) -> bool {
        let _ = device;
        false
    }
}

/// Conveniences for every [`AsyncReadableStore`].
#[async_trait]
pub trait AsyncReadableStoreExt: AsyncReadableStore {
    /// Reads a range into the front of an owned destination and gives it back with the number of
    /// bytes, or with `None` if there is no such key.
    ///
    /// # Errors
    ///
    /// As [`ReadableStore::get_into`](crate::ReadableStore::get_into). The destination is lost
    /// with an error; call [`AsyncReadableStore::get_into`] to keep it.
    async fn get_into_owned<D: Destination>(&self, key: &StoreKey, range: ByteRange, dst: D) -> Result<(D, Option<usize>), StoreError> {
        let (dst, result) = self.get_into(key, range, Box::new(dst)).await;
        let length = result?;
        let any: Box<dyn Any> = dst;
        match any.downcast::<D>() {
            Ok(dst) => Ok((*dst, length)),
            Err(_) => Err(StoreError::new(StoreErrorKind::Unsupported, "the store gave back another destination than it was given")
                .with_key(key)
                .with_range(range)),
        }
    }
}

impl<S: AsyncReadableStore + ?Sized> AsyncReadableStoreExt for S {}

/// A store that values can be written to, with async calls.
#[async_trait]
pub trait AsyncWritableStore: Send + Sync + 'static {
    /// As [`WritableStore::set`](crate::WritableStore::set).
    ///
    /// # Errors
    ///
    /// As there.
    async fn set(&self, key: &StoreKey, value: Bytes) -> Result<(), StoreError>;

    /// As [`WritableStore::set_vectored`](crate::WritableStore::set_vectored), with owned pieces.
    ///
    /// # Errors
    ///
    /// As there.
    async fn set_vectored(&self, key: &StoreKey, parts: Vec<Bytes>) -> Result<(), StoreError> {
        let mut value = BytesMut::with_capacity(parts.iter().map(Bytes::len).sum());
        for part in &parts {
            value.extend_from_slice(part);
        }
        self.set(key, value.freeze()).await
    }

    /// As [`WritableStore::erase`](crate::WritableStore::erase).
    ///
    /// # Errors
    ///
    /// As there.
    async fn erase(&self, key: &StoreKey) -> Result<(), StoreError>;

    /// As [`WritableStore::erase_prefix`](crate::WritableStore::erase_prefix).
    ///
    /// # Errors
    ///
    /// As there.
    async fn erase_prefix(&self, prefix: &StorePrefix) -> Result<(), StoreError>;
}

/// A store whose keys can be listed, with async calls.
#[async_trait]
pub trait AsyncListableStore: Send + Sync + 'static {
    /// As [`ListableStore::list`](crate::ListableStore::list).
    ///
    /// # Errors
    ///
    /// As there.
    async fn list(&self, prefix: &StorePrefix) -> Result<Vec<StoreKey>, StoreError>;

    /// As [`ListableStore::list_dir`](crate::ListableStore::list_dir).
    ///
    /// # Errors
    ///
    /// As there.
    async fn list_dir(&self, prefix: &StorePrefix) -> Result<Listing, StoreError>;
}

/// A store with async calls, and what it can do besides reading.
pub trait AsyncStore: AsyncReadableStore {
    /// The store as one that can be written to, if it can.
    fn as_writable(&self) -> Option<&dyn AsyncWritableStore> {
        None
    }

    /// The store as one that can be listed, if it can.
    fn as_listable(&self) -> Option<&dyn AsyncListableStore> {
        None
    }

    /// What to call the store in messages, such as `s3://bucket/prefix`. No credentials, please.
    fn name(&self) -> String;

    /// The blocking store behind this one, if this is only an async face of it. Readers that can
    /// then take the native path.
    fn native_blocking(&self) -> Option<Arc<dyn Store>> {
        None
    }
}

macro_rules! forward_through_pointer {
    ($($pointer:ident),*) => {$(
        #[async_trait]
        impl<S: AsyncReadableStore + ?Sized> AsyncReadableStore for $pointer<S> {
            async fn get(
                &self,
                key: &StoreKey,
                range: ByteRange,
            ) -> Result<Option<Bytes>, StoreError> {
                (**self).get(key, range).await
            }

            async fn size(&self, key: &StoreKey) -> Result<Option<u64>, StoreError> {
                (**self).size(key).await
            }

            async fn get_ranges(
                &self,
                key: &StoreKey,
                ranges: &[ByteRange],
            ) -> Result<Option<Vec<Bytes>>, StoreError> {
                (**self).get_ranges(key, ranges).await
            }

            async fn get_versioned(
                &self,
                key: &StoreKey,
                ranges: &[ByteRange],
                version: Option<&Version>,
            ) -> Result<Option<(Vec<Bytes>, Option<Version>)>, StoreError> {
                (**self).get_versioned(key, ranges, version).await
            }

            async fn get_into(
                &self,
                key: &StoreKey,
                range: ByteRange,
                dst: Box<dyn Destination>,
            ) -> (Box<dyn Destination>, Result<Option<usize>, StoreError>) {
                (**self).get_into(key, range, dst).await
            }

            async fn get_into_buffer(
                &self,
                key: &StoreKey,
                range: ByteRange,
                dst: &Buffer,
                device: &Arc<dyn Device>,
                queue: &Arc<dyn Queue>,
            ) -> Result<Option<usize>, StoreError> {
                (**self).get_into_buffer(key, range, dst, device, queue).await
            }

            fn reads_to_device(&self, device: DeviceId) -> bool {
                (**self).reads_to_device(device)
            }
        }

        impl<S: AsyncStore + ?Sized> AsyncStore for $pointer<S> {
            fn as_writable(&self) -> Option<&dyn AsyncWritableStore> {
                (**self).as_writable()
            }

            fn as_listable(&self) -> Option<&dyn AsyncListableStore> {
                (**self).as_listable()
            }

            fn name(&self) -> String {
                (**self).name()
            }

            fn native_blocking(&self) -> Option<Arc<dyn Store>> {
                (**self).native_blocking()
            }
        }
    )*};
}

forward_through_pointer!(Arc, Box);

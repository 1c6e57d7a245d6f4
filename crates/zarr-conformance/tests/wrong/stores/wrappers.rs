//! Wrappers that forget to forward a method, and do with others what it would do.

use std::sync::Arc;

use zarr_buffer_api::DeviceId;
use zarr_conformance::store::{WrapperUnderTest, wrapper_cases};
use zarr_store_api::{
    AnyStore, AsyncListableStore, AsyncReadableStore, AsyncStore, AsyncWritableStore, Buffer, ByteRange, Bytes, Destination, Device,
    ListableStore, Listing, Queue, ReadableStore, Store, StoreError, StoreKey, StorePrefix, ValueReader, Version, WritableStore,
    async_trait,
};

use super::{Done, Each, Make, Read};
use crate::idle::Wrong;

/// For each law a wrapper that forgets that method.
pub(crate) fn table() -> Vec<Wrong> {
    let forget = |case: &str| -> Wrong {
        let law: &'static str = case.to_owned().leak();
        Wrong::new(format!("{law} is not forwarded"), &[law], move || forgetful(law))
    };
    wrapper_cases().iter().map(|case| forget(case.law())).collect()
}

/// A wrapper that forgets one method: `wrapper/blocking/get`, say.
pub(crate) fn forgetful(forgets: &'static str) -> WrapperUnderTest {
    WrapperUnderTest::new("forgetful", move |store| match store {
        AnyStore::Blocking(store) => {
            AnyStore::blocking(Forgetful { store, forgets: forgets.strip_prefix("wrapper/blocking/").unwrap_or_default() })
        }
        AnyStore::Async(store) => {
            AnyStore::asynchronous(Forgetful { store, forgets: forgets.strip_prefix("wrapper/async/").unwrap_or_default() })
        }
    })
}

#[derive(Debug)]
struct Forgetful<S: ?Sized> {
    forgets: &'static str,
    store: Arc<S>,
}

impl<S: ?Sized> Forgetful<S> {
    fn forgets(&self, method: &str) -> bool {
        self.forgets == method
    }
}

fn put(value: &[u8], dst: &mut [u8]) -> usize {
    dst[..value.len()].copy_from_slice(value);
    value.len()
}

type Inner = dyn Store;

impl ReadableStore for Forgetful<Inner> {
    fn get(&self, key: &StoreKey, range: ByteRange) -> Read<Bytes> {
        match self.forgets("get") {
            true => Ok(self.store.get_ranges(key, &[range])?.and_then(|mut all| all.pop())),
            false => self.store.get(key, range),
        }
    }
    fn size(&self, key: &StoreKey) -> Read<u64> {
        match self.forgets("size") {
            true => Ok(self.store.get(key, ByteRange::All)?.map(|value| value.len() as u64)),
            false => self.store.size(key),
        }
    }
    fn get_ranges(&self, key: &StoreKey, ranges: &[ByteRange]) -> Read<Vec<Bytes>> {
        match self.forgets("get_ranges") {
            true => ranges.iter().map(|range| self.store.get(key, *range)).collect(),
            false => self.store.get_ranges(key, ranges),
        }
    }
    fn get_into(&self, key: &StoreKey, range: ByteRange, dst: &mut [u8]) -> Read<usize> {
        match self.forgets("get_into") {
            true => Ok(self.store.get(key, range)?.map(|value| put(&value, dst))),
            false => self.store.get_into(key, range, dst),
        }
    }
    fn get_pieces(&self, key: &StoreKey, range: ByteRange, piece: &mut [u8], each: Each<'_>) -> Read<u64> {
        if !self.forgets("get_pieces") {
            return self.store.get_pieces(key, range, piece, each);
        }
        let Some(value) = self.store.get(key, range)? else { return Ok(None) };
        each(0, &value);
        Ok(Some(value.len() as u64))
    }
    fn reader<'a>(&'a self, key: &StoreKey) -> Result<Box<dyn ValueReader + 'a>, StoreError> {
        Ok(Box::new(ForgetfulReader { forgets: self.forgets, reader: self.store.reader(key)? }))
    }
    fn get_into_buffer(
        &self,
        key: &StoreKey,
        range: ByteRange,
        dst: &Buffer,
        device: &Arc<dyn Device>,
        queue: &Arc<dyn Queue>,
    ) -> Read<usize> {
        match self.forgets("get_into_buffer") {
            true => self.store.get_into(key, range, &mut dst.host_write().unwrap()),
            false => self.store.get_into_buffer(key, range, dst, device, queue),
        }
    }
    fn reads_to_device(&self, device: DeviceId) -> bool {
        !self.forgets("reads_to_device") && self.store.reads_to_device(device)
    }
}

#[derive(Debug)]
struct ForgetfulReader<'a> {
    forgets: &'static str,
    reader: Box<dyn ValueReader + 'a>,
}

impl ValueReader for ForgetfulReader<'_> {
    fn get(&self, range: ByteRange) -> Read<Bytes> {
        match self.forgets == "reader.get" {
            true => Ok(self.reader.get_ranges(&[range])?.and_then(|mut all| all.pop())),
            false => self.reader.get(range),
        }
    }
    fn get_ranges(&self, ranges: &[ByteRange]) -> Read<Vec<Bytes>> {
        match self.forgets == "reader.get_ranges" {
            true => ranges.iter().map(|range| self.reader.get(*range)).collect(),
            false => self.reader.get_ranges(ranges),
        }
    }
    fn get_into(&self, range: ByteRange, dst: &mut [u8]) -> Read<usize> {
        match self.forgets == "reader.get_into" {
            true => Ok(self.reader.get(range)?.map(|value| put(&value, dst))),
            false => self.reader.get_into(range, dst),
        }
    }
    fn get_pieces(&self, range: ByteRange, piece: &mut [u8], each: Each<'_>) -> Read<u64> {
        if self.forgets != "reader.get_pieces" {
            return self.reader.get_pieces(range, piece, each);
        }
        let Some(value) = self.reader.get(range)? else { return Ok(None) };
        each(0, &value);
        Ok(Some(value.len() as u64))
    }
    fn version(&self) -> Option<Version> {
        self.reader.version().filter(|_| self.forgets != "reader.version")
    }
    fn is_parallel(&self) -> bool {
        self.forgets != "reader.is_parallel" && self.reader.is_parallel()
    }
}

impl Forgetful<Inner> {
    fn writable(&self) -> &dyn WritableStore {
        self.store.as_writable().unwrap()
    }
    fn listable(&self) -> &dyn ListableStore {
        self.store.as_listable().unwrap()
    }
}

impl WritableStore for Forgetful<Inner> {
    fn set(&self, key: &StoreKey, value: Bytes) -> Done {
        match self.forgets("set") {
            true => self.writable().set_vectored(key, &[&value]),
            false => self.writable().set(key, value),
        }
    }
    fn set_vectored(&self, key: &StoreKey, parts: &[&[u8]]) -> Done {
        match self.forgets("set_vectored") {
            true => self.writable().set(key, parts.concat().into()),
            false => self.writable().set_vectored(key, parts),
        }
    }
    fn set_pieces(&self, key: &StoreKey, len: u64, piece: &mut [u8], make: Make<'_>) -> Done {
        if !self.forgets("set_pieces") {
            return self.writable().set_pieces(key, len, piece, make);
        }
        let mut value = vec![0; len as usize];
        make(0, &mut value);
        self.writable().set(key, value.into())
    }
    fn erase(&self, key: &StoreKey) -> Done {
        match self.forgets("erase") {
            // What was erased is no more; so this one erases nothing.
            true => Ok(()),
            false => self.writable().erase(key),
        }
    }
    fn erase_prefix(&self, prefix: &StorePrefix) -> Done {
        match self.forgets("erase_prefix") {
            true => self.listable().list(prefix)?.iter().try_for_each(|key| self.writable().erase(key)),
            false => self.writable().erase_prefix(prefix),
        }
    }
}

impl ListableStore for Forgetful<Inner> {
    fn list(&self, prefix: &StorePrefix) -> Result<Vec<StoreKey>, StoreError> {
        match self.forgets("list") {
            true => Ok(self.listable().list_dir(prefix)?.keys),
            false => self.listable().list(prefix),
        }
    }
    fn list_dir(&self, prefix: &StorePrefix) -> Result<Listing, StoreError> {
        match self.forgets("list_dir") {
            true => Ok(Listing::from_keys(prefix, self.listable().list(prefix)?)),
            false => self.listable().list_dir(prefix),
        }
    }
}

impl Store for Forgetful<Inner> {
    fn as_writable(&self) -> Option<&dyn WritableStore> {
        (self.forgets("as_writable") || self.store.as_writable().is_some()).then_some(self as _)
    }
    fn as_listable(&self) -> Option<&dyn ListableStore> {
        (self.forgets("as_listable") || self.store.as_listable().is_some()).then_some(self as _)
    }
    fn name(&self) -> String {
        self.store.name()
    }
}

type AsyncInner = dyn AsyncStore;

#[async_trait]
impl AsyncReadableStore for Forgetful<AsyncInner> {
    async fn get(&self, key: &StoreKey, range: ByteRange) -> Read<Bytes> {
        match self.forgets("get") {
            true => Ok(self.store.get_ranges(key, &[range]).await?.and_then(|mut all| all.pop())),
            false => self.store.get(key, range).await,
        }
    }
    async fn size(&self, key: &StoreKey) -> Read<u64> {
        match self.forgets("size") {
            true => Ok(self.store.get(key, ByteRange::All).await?.map(|value| value.len() as u64)),
            false => self.store.size(key).await,
        }
    }
    async fn get_ranges(&self, key: &StoreKey, ranges: &[ByteRange]) -> Read<Vec<Bytes>> {
        if !self.forgets("get_ranges") {
            return self.store.get_ranges(key, ranges).await;
        }
        let mut all = Vec::new();
        for range in ranges {
            all.extend(self.store.get(key, *range).await?);
        }
        Ok(Some(all))
    }
    async fn get_versioned(&self, key: &StoreKey, ranges: &[ByteRange], version: Option<&Version>) -> Read<(Vec<Bytes>, Option<Version>)> {
        match self.forgets("get_versioned") {
            true => Ok(self.store.get_ranges(key, ranges).await?.map(|bytes| (bytes, None))),
            false => self.store.get_versioned(key, ranges, version).await,
        }
    }
    async fn get_into(&self, key: &StoreKey, range: ByteRange, mut dst: Box<dyn Destination>) -> (Box<dyn Destination>, Read<usize>) {
        if !self.forgets("get_into") {
            return self.store.get_into(key, range, dst).await;
        }
        let read = self.store.get(key, range).await.map(|value| value.map(|value| put(&value, (*dst).bytes_mut())));
        (dst, read)
    }
    async fn get_into_buffer(
        &self,
        key: &StoreKey,
        range: ByteRange,
        dst: &Buffer,
        device: &Arc<dyn Device>,
        queue: &Arc<dyn Queue>,
    ) -> Read<usize> {
        match self.forgets("get_into_buffer") {
            true => self.store.get_into(key, range, Box::new(dst.host_write_owned().unwrap())).await.1,
            false => self.store.get_into_buffer(key, range, dst, device, queue).await,
        }
    }
    fn reads_to_device(&self, device: DeviceId) -> bool {
        self.forgets("reads_to_device") || self.store.reads_to_device(device)
    }
}

impl Forgetful<AsyncInner> {
    fn writable(&self) -> &dyn AsyncWritableStore {
        self.store.as_writable().unwrap()
    }
    fn listable(&self) -> &dyn AsyncListableStore {
        self.store.as_listable().unwrap()
    }
}

#[async_trait]
impl AsyncWritableStore for Forgetful<AsyncInner> {
    async fn set(&self, key: &StoreKey, value: Bytes) -> Done {
        match self.forgets("set") {
            true => self.writable().set_vectored(key, vec![value]).await,
            false => self.writable().set(key, value).await,
        }
    }
    async fn set_vectored(&self, key: &StoreKey, parts: Vec<Bytes>) -> Done {
        match self.forgets("set_vectored") {
            true => self.writable().set(key, parts.concat().into()).await,
            false => self.writable().set_vectored(key, parts).await,
        }
    }
    async fn erase(&self, key: &StoreKey) -> Done {
        if self.forgets("erase") {
            // Twice, to be sure.
            self.writable().erase(key).await?;
        }
        self.writable().erase(key).await
    }
    async fn erase_prefix(&self, prefix: &StorePrefix) -> Done {
        if !self.forgets("erase_prefix") {
            return self.writable().erase_prefix(prefix).await;
        }
        for key in self.listable().list(prefix).await? {
            self.writable().erase(&key).await?;
        }
        Ok(())
    }
}

#[async_trait]
impl AsyncListableStore for Forgetful<AsyncInner> {
    async fn list(&self, prefix: &StorePrefix) -> Result<Vec<StoreKey>, StoreError> {
        match self.forgets("list") {
            true => Ok(self.listable().list_dir(prefix).await?.keys),
            false => self.listable().list(prefix).await,
        }
    }
    async fn list_dir(&self, prefix: &StorePrefix) -> Result<Listing, StoreError> {
        match self.forgets("list_dir") {
            true => Ok(Listing::from_keys(prefix, self.listable().list(prefix).await?)),
            false => self.listable().list_dir(prefix).await,
        }
    }
}

impl AsyncStore for Forgetful<AsyncInner> {
    fn as_writable(&self) -> Option<&dyn AsyncWritableStore> {
        (self.forgets("as_writable") || self.store.as_writable().is_some()).then_some(self as _)
    }
    fn as_listable(&self) -> Option<&dyn AsyncListableStore> {
        (self.forgets("as_listable") || self.store.as_listable().is_some()).then_some(self as _)
    }
    fn name(&self) -> String {
        self.store.name()
    }
}

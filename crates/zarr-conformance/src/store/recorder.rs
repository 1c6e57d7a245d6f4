//! A store that notes what it is asked, and answers so that its answers are known again.

// A method of the contract that the recorder does not have would take its default here, and reach nobody's notes.
#![deny(clippy::missing_trait_methods)]

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use zarr_buffer_api::DeviceKind;
use zarr_store_api::{
    AsyncListableStore, AsyncReadableStore, AsyncStore, AsyncWritableStore, Buffer, ByteRange, Bytes, Destination, Device, DeviceId,
    ListableStore, Listing, Queue, ReadableStore, Store, StoreError, StoreKey, StorePrefix, ValueReader, Version, WritableStore,
    async_trait,
};

/// The device that the recorder says it reads straight to.
pub(super) const DIRECT: DeviceId = DeviceId::new(DeviceKind::ExtDev, 4711);

/// The size of every value.
pub(super) const SIZE: u64 = 4242;

/// The version of every value.
pub(super) const VERSION: &str = "recorded";

/// The name of what is listed below any prefix.
pub(super) const LISTED: &str = "recorded";

/// What a method answers to a read.
pub(super) fn answer(method: &str) -> Bytes {
    Bytes::from(format!("answered by {method}"))
}

/// A call: the method, then what it was given that a wrapper has no business to change.
pub(super) type Call = (&'static str, String);

#[derive(Debug)]
pub(super) struct Recorder {
    calls: Mutex<Vec<Call>>,
    writable: bool,
    listable: bool,
}

impl Recorder {
    pub(super) fn new(writable: bool, listable: bool) -> Self {
        Self { calls: Mutex::default(), writable, listable }
    }

    /// What arrived.
    pub(super) fn calls(&self) -> Vec<Call> {
        self.notes().clone()
    }

    fn notes(&self) -> MutexGuard<'_, Vec<Call>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a call, and gives its answer.
    fn note(&self, method: &'static str, given: impl ToString) -> Bytes {
        self.notes().push((method, given.to_string()));
        answer(method)
    }
}

fn copy(value: &[u8], dst: &mut [u8]) -> Result<Option<usize>, StoreError> {
    let capacity = dst.len();
    let front = dst.get_mut(..value.len());
    front.ok_or_else(|| StoreError::destination_too_short(value.len() as u64, capacity))?.copy_from_slice(value);
    Ok(Some(value.len()))
}

pub(super) fn show_ranges(ranges: &[ByteRange]) -> String {
    ranges.iter().map(|range| format!("{range};")).collect()
}

fn lend(value: &Bytes, each: &mut dyn FnMut(u64, &[u8])) -> Option<u64> {
    each(0, value);
    Some(value.len() as u64)
}

impl ReadableStore for Recorder {
    fn get(&self, _: &StoreKey, range: ByteRange) -> Result<Option<Bytes>, StoreError> {
        Ok(Some(self.note("get", range)))
    }

    fn size(&self, _: &StoreKey) -> Result<Option<u64>, StoreError> {
        self.note("size", "");
        Ok(Some(SIZE))
    }

    fn get_ranges(&self, _: &StoreKey, ranges: &[ByteRange]) -> Result<Option<Vec<Bytes>>, StoreError> {
        let answer = self.note("get_ranges", show_ranges(ranges));
        Ok(Some(vec![answer; ranges.len()]))
    }

    fn get_into(&self, _: &StoreKey, range: ByteRange, dst: &mut [u8]) -> Result<Option<usize>, StoreError> {
        copy(&self.note("get_into", range), dst)
    }

    fn get_pieces(
        &self,
        _: &StoreKey,
        range: ByteRange,
        piece: &mut [u8],
        each: &mut dyn FnMut(u64, &[u8]),
    ) -> Result<Option<u64>, StoreError> {
        Ok(lend(&self.note("get_pieces", format!("{range} by {}", piece.len())), each))
    }

    fn reader<'a>(&'a self, _: &StoreKey) -> Result<Box<dyn ValueReader + 'a>, StoreError> {
        Ok(Box::new(RecordedReader(self)))
    }

    fn get_into_buffer(
        &self,
        _: &StoreKey,
        range: ByteRange,
        dst: &Buffer,
        _: &Arc<dyn Device>,
        _: &Arc<dyn Queue>,
    ) -> Result<Option<usize>, StoreError> {
        let answer = self.note("get_into_buffer", range);
        let mut memory = dst.host_write().map_err(|error| StoreError::from_buffer(error, "cannot answer"))?;
        copy(&answer, &mut memory)
    }

    fn reads_to_device(&self, device: DeviceId) -> bool {
        device == DIRECT
    }
}

#[derive(Debug)]
struct RecordedReader<'a>(&'a Recorder);

impl ValueReader for RecordedReader<'_> {
    fn get(&self, range: ByteRange) -> Result<Option<Bytes>, StoreError> {
        Ok(Some(self.0.note("reader.get", range)))
    }

    fn get_ranges(&self, ranges: &[ByteRange]) -> Result<Option<Vec<Bytes>>, StoreError> {
        let answer = self.0.note("reader.get_ranges", show_ranges(ranges));
        Ok(Some(vec![answer; ranges.len()]))
    }

    fn get_into(&self, range: ByteRange, dst: &mut [u8]) -> Result<Option<usize>, StoreError> {
        copy(&self.0.note("reader.get_into", range), dst)
    }

    fn get_pieces(&self, range: ByteRange, piece: &mut [u8], each: &mut dyn FnMut(u64, &[u8])) -> Result<Option<u64>, StoreError> {
        Ok(lend(&self.0.note("reader.get_pieces", format!("{range} by {}", piece.len())), each))
    }

    fn version(&self) -> Option<Version> {
        Some(Version::new("reader.version"))
    }

    fn is_parallel(&self) -> bool {
        true
    }
}

impl WritableStore for Recorder {
    fn set(&self, _: &StoreKey, value: Bytes) -> Result<(), StoreError> {
        self.note("set", value.len());
        Ok(())
    }

    fn set_vectored(&self, _: &StoreKey, parts: &[&[u8]]) -> Result<(), StoreError> {
        self.note("set_vectored", format!("{:?}", parts.iter().map(|part| part.len()).collect::<Vec<_>>()));
        Ok(())
    }

    fn set_pieces(&self, _: &StoreKey, len: u64, piece: &mut [u8], make: &mut dyn FnMut(u64, &mut [u8])) -> Result<(), StoreError> {
        let mut made = vec![0; len as usize];
        make(0, &mut made);
        self.note("set_pieces", format!("{made:?} by {}", piece.len()));
        Ok(())
    }

    fn erase(&self, _: &StoreKey) -> Result<(), StoreError> {
        self.note("erase", "");
        Ok(())
    }

    fn erase_prefix(&self, _: &StorePrefix) -> Result<(), StoreError> {
        self.note("erase_prefix", "");
        Ok(())
    }
}

impl ListableStore for Recorder {
    fn list(&self, prefix: &StorePrefix) -> Result<Vec<StoreKey>, StoreError> {
        self.note("list", "");
        Ok(vec![prefix.key(LISTED)?])
    }

    fn list_dir(&self, prefix: &StorePrefix) -> Result<Listing, StoreError> {
        self.note("list_dir", "");
        Ok(Listing { keys: vec![prefix.key(LISTED)?], prefixes: vec![prefix.join(LISTED)?] })
    }
}

impl Store for Recorder {
    fn as_writable(&self) -> Option<&dyn WritableStore> {
        self.writable.then_some(self as &dyn WritableStore)
    }

    fn as_listable(&self) -> Option<&dyn ListableStore> {
        self.listable.then_some(self as &dyn ListableStore)
    }

    fn name(&self) -> String {
        "recorder".to_owned()
    }

    fn native_async(&self) -> Option<Arc<dyn AsyncStore>> {
        None
    }
}

#[async_trait]
impl AsyncReadableStore for Recorder {
    async fn get(&self, key: &StoreKey, range: ByteRange) -> Result<Option<Bytes>, StoreError> {
        ReadableStore::get(self, key, range)
    }

    async fn size(&self, key: &StoreKey) -> Result<Option<u64>, StoreError> {
        ReadableStore::size(self, key)
    }

    async fn get_ranges(&self, key: &StoreKey, ranges: &[ByteRange]) -> Result<Option<Vec<Bytes>>, StoreError> {
        ReadableStore::get_ranges(self, key, ranges)
    }

    async fn get_versioned(
        &self,
        _: &StoreKey,
        ranges: &[ByteRange],
        version: Option<&Version>,
    ) -> Result<Option<(Vec<Bytes>, Option<Version>)>, StoreError> {
        let answer = self.note("get_versioned", format!("{} of {version:?}", show_ranges(ranges)));
        Ok(Some((vec![answer; ranges.len()], Some(Version::new(VERSION)))))
    }

    async fn get_into(
        &self,
        _: &StoreKey,
        range: ByteRange,
        mut dst: Box<dyn Destination>,
    ) -> (Box<dyn Destination>, Result<Option<usize>, StoreError>) {
        let result = copy(&self.note("get_into", range), (*dst).bytes_mut());
        (dst, result)
    }

    async fn get_into_buffer(
        &self,
        key: &StoreKey,
        range: ByteRange,
        dst: &Buffer,
        device: &Arc<dyn Device>,
        queue: &Arc<dyn Queue>,
    ) -> Result<Option<usize>, StoreError> {
        ReadableStore::get_into_buffer(self, key, range, dst, device, queue)
    }

    fn reads_to_device(&self, device: DeviceId) -> bool {
        ReadableStore::reads_to_device(self, device)
    }
}

#[async_trait]
impl AsyncWritableStore for Recorder {
    async fn set(&self, key: &StoreKey, value: Bytes) -> Result<(), StoreError> {
        WritableStore::set(self, key, value)
    }

    async fn set_vectored(&self, key: &StoreKey, parts: Vec<Bytes>) -> Result<(), StoreError> {
        let parts: Vec<&[u8]> = parts.iter().map(AsRef::as_ref).collect();
        WritableStore::set_vectored(self, key, &parts)
    }

    async fn erase(&self, key: &StoreKey) -> Result<(), StoreError> {
        WritableStore::erase(self, key)
    }

    async fn erase_prefix(&self, prefix: &StorePrefix) -> Result<(), StoreError> {
        WritableStore::erase_prefix(self, prefix)
    }
}

#[async_trait]
impl AsyncListableStore for Recorder {
    async fn list(&self, prefix: &StorePrefix) -> Result<Vec<StoreKey>, StoreError> {
        ListableStore::list(self, prefix)
    }

    async fn list_dir(&self, prefix: &StorePrefix) -> Result<Listing, StoreError> {
        ListableStore::list_dir(self, prefix)
    }
}

impl AsyncStore for Recorder {
    fn as_writable(&self) -> Option<&dyn AsyncWritableStore> {
        self.writable.then_some(self as &dyn AsyncWritableStore)
    }

    fn as_listable(&self) -> Option<&dyn AsyncListableStore> {
        self.listable.then_some(self as &dyn AsyncListableStore)
    }

    fn name(&self) -> String {
        "recorder".to_owned()
    }

    fn native_blocking(&self) -> Option<Arc<dyn Store>> {
        None
    }
}

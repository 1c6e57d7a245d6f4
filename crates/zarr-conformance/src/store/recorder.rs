//! A store that notes what it is asked, and answers reads with its notes.

use std::sync::{Arc, Mutex, PoisonError};

use zarr_buffer_api::DeviceKind;
use zarr_store_api::{
    AsyncListableStore, AsyncReadableStore, AsyncStore, AsyncWritableStore, Buffer, ByteRange, Bytes, Destination, Device, DeviceId,
    ListableStore, Listing, Queue, ReadableStore, Store, StoreError, StoreKey, StorePrefix, WritableStore, async_trait,
};

use super::forwarding::Calls;

const METHODS: [&str; 11] =
    ["get", "size", "get_ranges", "get_into", "get_into_buffer", "set", "set_vectored", "erase", "erase_prefix", "list", "list_dir"];

/// The device that the recorder says it reads straight to.
pub(super) const DIRECT: DeviceId = DeviceId::new(DeviceKind::ExtDev, 4711);

#[derive(Debug, Default)]
pub(super) struct Recorder(Mutex<Calls>);

impl Recorder {
    /// Notes a call, and gives all notes as a value.
    fn note(&self, method: &'static str) -> Bytes {
        let mut calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *calls.entry(method).or_default() += 1;
        calls.iter().map(|(method, count)| format!("{method}={count} ")).collect::<String>().into()
    }
}

/// The notes in a value.
pub(super) fn decode(value: Option<Bytes>) -> Calls {
    let text = value.map(|value| String::from_utf8_lossy(&value).into_owned()).unwrap_or_default();
    let note = |note: &str| {
        let (method, count) = note.split_once('=')?;
        Some((METHODS.into_iter().find(|known| *known == method)?, count.parse().ok()?))
    };
    text.split_whitespace().filter_map(note).collect()
}

fn copy(value: &[u8], dst: &mut [u8]) -> Result<Option<usize>, StoreError> {
    let capacity = dst.len();
    let front = dst.get_mut(..value.len());
    front.ok_or_else(|| StoreError::destination_too_short(value.len() as u64, capacity))?.copy_from_slice(value);
    Ok(Some(value.len()))
}

impl ReadableStore for Recorder {
    fn get(&self, _: &StoreKey, _: ByteRange) -> Result<Option<Bytes>, StoreError> {
        Ok(Some(self.note("get")))
    }

    fn size(&self, _: &StoreKey) -> Result<Option<u64>, StoreError> {
        self.note("size");
        Ok(Some(0))
    }

    fn get_ranges(&self, _: &StoreKey, ranges: &[ByteRange]) -> Result<Option<Vec<Bytes>>, StoreError> {
        let notes = self.note("get_ranges");
        Ok(Some(vec![notes; ranges.len()]))
    }

    fn get_into(&self, _: &StoreKey, _: ByteRange, dst: &mut [u8]) -> Result<Option<usize>, StoreError> {
        copy(&self.note("get_into"), dst)
    }

    fn get_into_buffer(
        &self,
        _: &StoreKey,
        _: ByteRange,
        dst: &Buffer,
        _: &Arc<dyn Device>,
        _: &Arc<dyn Queue>,
    ) -> Result<Option<usize>, StoreError> {
        let mut memory = dst.host_write().map_err(|error| StoreError::from_buffer(error, "cannot answer"))?;
        copy(&self.note("get_into_buffer"), &mut memory)
    }

    fn reads_to_device(&self, device: DeviceId) -> bool {
        device == DIRECT
    }
}

impl WritableStore for Recorder {
    fn set(&self, _: &StoreKey, _: Bytes) -> Result<(), StoreError> {
        self.note("set");
        Ok(())
    }

    fn set_vectored(&self, _: &StoreKey, _: &[&[u8]]) -> Result<(), StoreError> {
        self.note("set_vectored");
        Ok(())
    }

    fn erase(&self, _: &StoreKey) -> Result<(), StoreError> {
        self.note("erase");
        Ok(())
    }

    fn erase_prefix(&self, _: &StorePrefix) -> Result<(), StoreError> {
        self.note("erase_prefix");
        Ok(())
    }
}

impl ListableStore for Recorder {
    fn list(&self, _: &StorePrefix) -> Result<Vec<StoreKey>, StoreError> {
        self.note("list");
        Ok(Vec::new())
    }

    fn list_dir(&self, _: &StorePrefix) -> Result<Listing, StoreError> {
        self.note("list_dir");
        Ok(Listing::default())
    }
}

impl Store for Recorder {
    fn as_writable(&self) -> Option<&dyn WritableStore> {
        Some(self)
    }

    fn as_listable(&self) -> Option<&dyn ListableStore> {
        Some(self)
    }

    fn name(&self) -> String {
        "recorder".to_owned()
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

    async fn get_into(
        &self,
        _: &StoreKey,
        _: ByteRange,
        mut dst: Box<dyn Destination>,
    ) -> (Box<dyn Destination>, Result<Option<usize>, StoreError>) {
        let result = copy(&self.note("get_into"), (*dst).bytes_mut());
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

    async fn set_vectored(&self, key: &StoreKey, _: Vec<Bytes>) -> Result<(), StoreError> {
        WritableStore::set_vectored(self, key, &[])
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
        Some(self)
    }

    fn as_listable(&self) -> Option<&dyn AsyncListableStore> {
        Some(self)
    }

    fn name(&self) -> String {
        "recorder".to_owned()
    }
}

//! A right store in memory, method by method, so that a wrong one is right but for the methods that it replaces.

pub(crate) mod listing;
pub(crate) mod races;
pub(crate) mod reading;
pub(crate) mod wrappers;

pub(crate) mod writing;

use std::collections::{BTreeMap, HashSet};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex};
use std::task::{Context, Poll};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use zarr_conformance::store::StoreUnderTest;
use zarr_store_api::{
    AnyStore, AsyncListableStore, AsyncReadableStore, AsyncStore, AsyncWritableStore, Buffer, ByKey, ByteRange, Bytes, Destination, Device,
    ListableStore, Listing, Queue, ReadableStore, Store, StoreError, StoreErrorKind, StoreKey, StorePrefix, ValueReader, Version,
    WritableStore, async_trait,
};

use crate::idle::Wrong;

/// A right store.
#[derive(Debug, Default)]
pub(crate) struct Right {
    pub(crate) values: Mutex<BTreeMap<StoreKey, Bytes>>,
    pub(crate) notes: Notes,
}

/// What wrong stores keep besides the values.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    pub(crate) values: Mutex<BTreeMap<StoreKey, Bytes>>,
    pub(crate) listings: Mutex<BTreeMap<StorePrefix, Vec<StoreKey>>>,
    pub(crate) names: Mutex<HashSet<String>>,
    state: Mutex<()>,
    changed: Condvar,
    threads: Mutex<HashSet<ThreadId>>,
}

impl Notes {
    /// Whether calls come from several threads.
    pub(crate) fn is_crowded(&self) -> bool {
        let mut threads = self.threads.lock().unwrap();
        threads.insert(thread::current().id());
        // The first is the one that prepares what others then do.
        threads.len() > 2
    }

    /// Notes a name, unless it is there.
    pub(crate) fn add(&self, name: &str) -> bool {
        let is_new = self.names.lock().unwrap().insert(name.to_owned());
        self.advance();
        is_new
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.names.lock().unwrap().contains(name)
    }

    /// Says that what others wait for may have come.
    pub(crate) fn advance(&self) {
        drop(self.state.lock().unwrap());
        self.changed.notify_all();
    }

    /// Waits until something holds, which may change as things are noted; not for ever.
    pub(crate) fn wait_until(&self, holds: impl Fn() -> bool) {
        let deadline = Instant::now() + Duration::from_secs(4);
        let mut state = self.state.lock().unwrap();
        while !holds() && Instant::now() < deadline {
            state = self.changed.wait_timeout(state, Duration::from_millis(50)).unwrap().0;
        }
    }
}

impl Right {
    pub(crate) fn value(&self, key: &StoreKey) -> Option<Bytes> {
        self.values.lock().unwrap().get(key).cloned()
    }

    /// Values are versions of themselves.
    pub(crate) fn get_versioned(&self, key: &StoreKey, ranges: &[ByteRange], version: Option<&Version>) -> Read<Versioned> {
        let value = self.value(key);
        let found = value.as_ref().map(|value| Version::new(&format!("{value:?}")));
        if version.is_some() && found.as_ref() != version {
            return Err(failure(StoreErrorKind::Replaced));
        }
        let Some(value) = value else { return Ok(None) };
        let bytes = ranges.iter().map(|range| cut(value.clone(), *range)).collect::<Result<_, _>>()?;
        Ok(Some((bytes, found)))
    }

    pub(crate) fn keys(&self) -> Vec<StoreKey> {
        self.values.lock().unwrap().keys().cloned().collect()
    }
}

pub(crate) fn cut(value: Bytes, range: ByteRange) -> Result<Bytes, StoreError> {
    let range = range.resolve(value.len() as u64)?;
    Ok(value.slice(range.start as usize..range.end as usize))
}

impl ReadableStore for Right {
    fn get(&self, key: &StoreKey, range: ByteRange) -> Result<Option<Bytes>, StoreError> {
        self.value(key).map(|value| cut(value, range)).transpose()
    }
    fn size(&self, key: &StoreKey) -> Result<Option<u64>, StoreError> {
        Ok(self.value(key).map(|value| value.len() as u64))
    }
}

impl WritableStore for Right {
    fn set(&self, key: &StoreKey, value: Bytes) -> Result<(), StoreError> {
        self.values.lock().unwrap().insert(key.clone(), value);
        Ok(())
    }
    fn erase(&self, key: &StoreKey) -> Result<(), StoreError> {
        self.values.lock().unwrap().remove(key);
        Ok(())
    }
    fn erase_prefix(&self, prefix: &StorePrefix) -> Result<(), StoreError> {
        self.values.lock().unwrap().retain(|key, _| !prefix.contains(key));
        Ok(())
    }
}

impl ListableStore for Right {
    fn list(&self, prefix: &StorePrefix) -> Result<Vec<StoreKey>, StoreError> {
        Ok(self.keys().into_iter().filter(|key| prefix.contains(key)).collect())
    }
    fn list_dir(&self, prefix: &StorePrefix) -> Result<Listing, StoreError> {
        Ok(Listing::from_keys(prefix, self.keys()))
    }
}

impl Store for Right {
    fn name(&self) -> String {
        "right".to_owned()
    }
}

type Read<T> = Result<Option<T>, StoreError>;
type Done = Result<(), StoreError>;
type Each<'a> = &'a mut dyn FnMut(u64, &[u8]);
type Versioned = (Vec<Bytes>, Option<Version>);
type IntoBuffer = fn(&Right, &StoreKey, ByteRange, &Buffer, &Arc<dyn Device>, &Arc<dyn Queue>) -> Read<usize>;
type Make<'a> = &'a mut dyn FnMut(u64, &mut [u8]);

/// What a store does; those of [`Right`], but for what is replaced.
pub(crate) struct Methods {
    pub(crate) get: fn(&Right, &StoreKey, ByteRange) -> Read<Bytes>,
    pub(crate) size: fn(&Right, &StoreKey) -> Read<u64>,
    pub(crate) get_ranges: fn(&Right, &StoreKey, &[ByteRange]) -> Read<Vec<Bytes>>,
    pub(crate) get_into: fn(&Right, &StoreKey, ByteRange, &mut [u8]) -> Read<usize>,
    pub(crate) get_pieces: fn(&Right, &StoreKey, ByteRange, &mut [u8], Each<'_>) -> Read<u64>,
    pub(crate) get_into_buffer: IntoBuffer,
    pub(crate) reader_get: fn(&Right, &StoreKey, ByteRange) -> Read<Bytes>,
    pub(crate) version: fn(&Right, &StoreKey) -> Option<Version>,
    /// Of an async store.
    pub(crate) get_versioned: fn(&Right, &StoreKey, &[ByteRange], Option<&Version>) -> Read<Versioned>,
    pub(crate) set: fn(&Right, &StoreKey, Bytes) -> Done,
    pub(crate) set_vectored: fn(&Right, &StoreKey, &[&[u8]]) -> Done,
    pub(crate) set_pieces: fn(&Right, &StoreKey, u64, &mut [u8], Make<'_>) -> Done,
    pub(crate) erase: fn(&Right, &StoreKey) -> Done,
    pub(crate) erase_prefix: fn(&Right, &StorePrefix) -> Done,
    pub(crate) list: fn(&Right, &StorePrefix) -> Result<Vec<StoreKey>, StoreError>,
    pub(crate) list_dir: fn(&Right, &StorePrefix) -> Result<Listing, StoreError>,
    /// Of an async store: what comes before the moment in which a write waits.
    pub(crate) begin_set: fn(&Right, &StoreKey, &Bytes),
    /// Of an async store: a future that waits is dropped, and what was asked of it.
    pub(crate) dropped: fn(&Right, &'static str, &StoreKey),
}

impl Default for Methods {
    fn default() -> Self {
        Self {
            get: ReadableStore::get,
            size: ReadableStore::size,
            get_ranges: ReadableStore::get_ranges,
            get_into: ReadableStore::get_into,
            get_pieces: ReadableStore::get_pieces,
            get_into_buffer: ReadableStore::get_into_buffer,
            reader_get: ReadableStore::get,
            version: |_, _| None,
            get_versioned: Right::get_versioned,
            set: WritableStore::set,
            set_vectored: WritableStore::set_vectored,
            set_pieces: WritableStore::set_pieces,
            erase: WritableStore::erase,
            erase_prefix: WritableStore::erase_prefix,
            list: ListableStore::list,
            list_dir: ListableStore::list_dir,
            begin_set: |_, _, _| {},
            dropped: |_, _, _| {},
        }
    }
}

/// A store with some methods replaced.
pub(crate) struct Replaced {
    right: Right,
    methods: Methods,
}

impl std::fmt::Debug for Replaced {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Replaced")
    }
}

type Replace = fn(&mut Methods);

fn replaced(replace: Replace) -> Replaced {
    let mut methods = Methods::default();
    replace(&mut methods);
    Replaced { right: Right::default(), methods }
}

/// A wrong store of the blocking form, that one law finds.
pub(crate) fn wrong(law: &'static str, what: &str, replace: Replace) -> Wrong {
    by_several(&[law], what, replace)
}

/// A wrong store of the blocking form, that several laws find.
pub(crate) fn by_several(laws: &[&'static str], what: &str, replace: Replace) -> Wrong {
    Wrong::new(what, laws, move || blocking(replace))
}

/// A wrong store of the async form.
pub(crate) fn wrong_async(law: &'static str, what: &str, replace: Replace) -> Wrong {
    Wrong::new(what, &[law], move || asynchronous(replace))
}

pub(crate) fn blocking(replace: Replace) -> StoreUnderTest {
    StoreUnderTest::writable("blocking", move || AnyStore::blocking(replaced(replace)))
}

pub(crate) fn asynchronous(replace: Replace) -> StoreUnderTest {
    StoreUnderTest::writable("async", move || AnyStore::asynchronous(replaced(replace)))
}

pub(crate) fn failure(kind: StoreErrorKind) -> StoreError {
    StoreError::new(kind, "wrong on purpose")
}

impl ReadableStore for Replaced {
    fn get(&self, key: &StoreKey, range: ByteRange) -> Read<Bytes> {
        (self.methods.get)(&self.right, key, range)
    }
    fn size(&self, key: &StoreKey) -> Read<u64> {
        (self.methods.size)(&self.right, key)
    }
    fn get_ranges(&self, key: &StoreKey, ranges: &[ByteRange]) -> Read<Vec<Bytes>> {
        (self.methods.get_ranges)(&self.right, key, ranges)
    }
    fn get_into(&self, key: &StoreKey, range: ByteRange, dst: &mut [u8]) -> Read<usize> {
        (self.methods.get_into)(&self.right, key, range, dst)
    }
    fn get_pieces(&self, key: &StoreKey, range: ByteRange, piece: &mut [u8], each: Each<'_>) -> Read<u64> {
        (self.methods.get_pieces)(&self.right, key, range, piece, each)
    }
    fn reader<'a>(&'a self, key: &StoreKey) -> Result<Box<dyn ValueReader + 'a>, StoreError> {
        Ok(Box::new(ReplacedReader { store: self, key: key.clone(), right: ByKey::new(&self.right, key) }))
    }
    fn get_into_buffer(
        &self,
        key: &StoreKey,
        range: ByteRange,
        dst: &Buffer,
        device: &Arc<dyn Device>,
        queue: &Arc<dyn Queue>,
    ) -> Read<usize> {
        (self.methods.get_into_buffer)(&self.right, key, range, dst, device, queue)
    }
}

#[derive(Debug)]
struct ReplacedReader<'a> {
    store: &'a Replaced,
    key: StoreKey,
    right: ByKey<'a, Right>,
}

impl ValueReader for ReplacedReader<'_> {
    fn get(&self, range: ByteRange) -> Read<Bytes> {
        (self.store.methods.reader_get)(&self.store.right, &self.key, range)
    }
    fn get_ranges(&self, ranges: &[ByteRange]) -> Read<Vec<Bytes>> {
        self.right.get_ranges(ranges)
    }
    fn get_into(&self, range: ByteRange, dst: &mut [u8]) -> Read<usize> {
        self.right.get_into(range, dst)
    }
    fn get_pieces(&self, range: ByteRange, piece: &mut [u8], each: Each<'_>) -> Read<u64> {
        self.right.get_pieces(range, piece, each)
    }
    fn version(&self) -> Option<Version> {
        (self.store.methods.version)(&self.store.right, &self.key)
    }
}

impl WritableStore for Replaced {
    fn set(&self, key: &StoreKey, value: Bytes) -> Done {
        (self.methods.set)(&self.right, key, value)
    }
    fn set_vectored(&self, key: &StoreKey, parts: &[&[u8]]) -> Done {
        (self.methods.set_vectored)(&self.right, key, parts)
    }
    fn set_pieces(&self, key: &StoreKey, len: u64, piece: &mut [u8], make: Make<'_>) -> Done {
        (self.methods.set_pieces)(&self.right, key, len, piece, make)
    }
    fn erase(&self, key: &StoreKey) -> Done {
        (self.methods.erase)(&self.right, key)
    }
    fn erase_prefix(&self, prefix: &StorePrefix) -> Done {
        (self.methods.erase_prefix)(&self.right, prefix)
    }
}

impl ListableStore for Replaced {
    fn list(&self, prefix: &StorePrefix) -> Result<Vec<StoreKey>, StoreError> {
        (self.methods.list)(&self.right, prefix)
    }
    fn list_dir(&self, prefix: &StorePrefix) -> Result<Listing, StoreError> {
        (self.methods.list_dir)(&self.right, prefix)
    }
}

impl Store for Replaced {
    fn as_writable(&self) -> Option<&dyn WritableStore> {
        Some(self)
    }
    fn as_listable(&self) -> Option<&dyn ListableStore> {
        Some(self)
    }
    fn name(&self) -> String {
        "replaced".to_owned()
    }
}

/// Is ready at the second poll, and tells when it is dropped before.
struct Waits<'a> {
    store: &'a Replaced,
    method: &'static str,
    key: &'a StoreKey,
    polls: u32,
}

impl Future for Waits<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.polls += 1;
        context.waker().wake_by_ref();
        if self.polls > 1 { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        if self.polls == 1 {
            (self.store.methods.dropped)(&self.store.right, self.method, self.key);
        }
    }
}

impl Replaced {
    fn wait<'a>(&'a self, method: &'static str, key: &'a StoreKey) -> Waits<'a> {
        Waits { store: self, method, key, polls: 0 }
    }
}

#[async_trait]
impl AsyncReadableStore for Replaced {
    async fn get(&self, key: &StoreKey, range: ByteRange) -> Read<Bytes> {
        self.wait("get", key).await;
        ReadableStore::get(self, key, range)
    }
    async fn size(&self, key: &StoreKey) -> Read<u64> {
        self.wait("size", key).await;
        ReadableStore::size(self, key)
    }
    async fn get_ranges(&self, key: &StoreKey, ranges: &[ByteRange]) -> Read<Vec<Bytes>> {
        self.wait("get_ranges", key).await;
        ReadableStore::get_ranges(self, key, ranges)
    }
    async fn get_versioned(&self, key: &StoreKey, ranges: &[ByteRange], version: Option<&Version>) -> Read<Versioned> {
        self.wait("get_versioned", key).await;
        (self.methods.get_versioned)(&self.right, key, ranges, version)
    }
    async fn get_into(
        &self,
        key: &StoreKey,
        range: ByteRange,
        mut dst: Box<dyn Destination>,
    ) -> (Box<dyn Destination>, Result<Option<usize>, StoreError>) {
        self.wait("get_into", key).await;
        let read = ReadableStore::get_into(self, key, range, (*dst).bytes_mut());
        (dst, read)
    }
}

#[async_trait]
impl AsyncWritableStore for Replaced {
    async fn set(&self, key: &StoreKey, value: Bytes) -> Done {
        (self.methods.begin_set)(&self.right, key, &value);
        self.wait("set", key).await;
        WritableStore::set(self, key, value)
    }
    async fn set_vectored(&self, key: &StoreKey, parts: Vec<Bytes>) -> Done {
        self.wait("set_vectored", key).await;
        WritableStore::set_vectored(self, key, &parts.iter().map(AsRef::as_ref).collect::<Vec<_>>())
    }
    async fn erase(&self, key: &StoreKey) -> Done {
        self.wait("erase", key).await;
        WritableStore::erase(self, key)
    }
    async fn erase_prefix(&self, prefix: &StorePrefix) -> Done {
        WritableStore::erase_prefix(self, prefix)
    }
}

#[async_trait]
impl AsyncListableStore for Replaced {
    async fn list(&self, prefix: &StorePrefix) -> Result<Vec<StoreKey>, StoreError> {
        ListableStore::list(self, prefix)
    }
    async fn list_dir(&self, prefix: &StorePrefix) -> Result<Listing, StoreError> {
        ListableStore::list_dir(self, prefix)
    }
}

impl AsyncStore for Replaced {
    fn as_writable(&self) -> Option<&dyn AsyncWritableStore> {
        Some(self)
    }
    fn as_listable(&self) -> Option<&dyn AsyncListableStore> {
        Some(self)
    }
    fn name(&self) -> String {
        "replaced, async".to_owned()
    }
}

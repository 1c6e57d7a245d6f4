//! One value, read in several calls.

use std::fmt;

use bytes::Bytes;

use crate::blocking::ReadableStore;
use crate::error::StoreError;
use crate::key::StoreKey;
use crate::range::ByteRange;

/// One value of a blocking store, for several reads that belong together: a shard's index, then inner chunks.
///
/// Where the store can, it looks the value up once, and every call is answered from the value that was found then, also when it is replaced
/// meanwhile. Calls may be made from many threads at once. Do not keep one for longer than the reads take: it may hold a file open.
pub trait ValueReader: fmt::Debug + Send + Sync {
    /// As [`ReadableStore::get`].
    ///
    /// # Errors
    ///
    /// As [`ReadableStore::get`].
    fn get(&self, range: ByteRange) -> Result<Option<Bytes>, StoreError>;

    /// As [`ReadableStore::get_ranges`].
    ///
    /// # Errors
    ///
    /// As [`ReadableStore::get_ranges`].
    fn get_ranges(&self, ranges: &[ByteRange]) -> Result<Option<Vec<Bytes>>, StoreError>;

    /// As [`ReadableStore::get_into`].
    ///
    /// # Errors
    ///
    /// As [`ReadableStore::get_into`].
    fn get_into(&self, range: ByteRange, dst: &mut [u8]) -> Result<Option<usize>, StoreError>;

    /// As [`ReadableStore::get_pieces`].
    ///
    /// # Errors
    ///
    /// As [`ReadableStore::get_pieces`].
    fn get_pieces(&self, range: ByteRange, piece: &mut [u8], each: &mut dyn FnMut(u64, &[u8])) -> Result<Option<u64>, StoreError>;

    /// Whether a large range is read faster by several threads, each a part of it. Not where a part costs as much as the whole, as of a value that is
    /// compressed, nor where calls wait for each other.
    fn is_parallel(&self) -> bool {
        false
    }
}

/// The plain reader: each read is a call of the store's own, and answers from the value that is there then.
#[derive(Debug)]
pub struct ByKey<'a, S: ?Sized> {
    store: &'a S,
    key: StoreKey,
}

impl<'a, S: ReadableStore + ?Sized> ByKey<'a, S> {
    /// Reads the value under `key`.
    pub fn new(store: &'a S, key: &StoreKey) -> Self {
        Self { store, key: key.clone() }
    }
}

impl<S: ReadableStore + ?Sized> ValueReader for ByKey<'_, S> {
    fn get(&self, range: ByteRange) -> Result<Option<Bytes>, StoreError> {
        self.store.get(&self.key, range)
    }

    fn get_ranges(&self, ranges: &[ByteRange]) -> Result<Option<Vec<Bytes>>, StoreError> {
        self.store.get_ranges(&self.key, ranges)
    }

    fn get_into(&self, range: ByteRange, dst: &mut [u8]) -> Result<Option<usize>, StoreError> {
        self.store.get_into(&self.key, range, dst)
    }

    fn get_pieces(&self, range: ByteRange, piece: &mut [u8], each: &mut dyn FnMut(u64, &[u8])) -> Result<Option<u64>, StoreError> {
        self.store.get_pieces(&self.key, range, piece, each)
    }
}

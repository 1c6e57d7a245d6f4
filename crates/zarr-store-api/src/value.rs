//! One value, read in several calls.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use crate::blocking::ReadableStore;
use crate::error::StoreError;
use crate::key::StoreKey;
use crate::range::ByteRange;

/// Which of the values that a key had, one after the other, was read, as a store tells them apart: two of one key are equal only if the values are.
#[derive(Clone, Debug)]
pub struct Version {
    name: Name,
    settled: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Name {
    Text(Arc<str>),
    Numbers([u64; 4]),
}

impl Version {
    /// A version that the store has a name for, such as an entity tag.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self { name: Name::Text(text.into()), settled: true }
    }

    /// A version that numbers tell apart, such as those by which a system knows a file and its last change.
    #[must_use]
    pub const fn of_numbers(numbers: [u64; 4]) -> Self {
        Self { name: Name::Numbers(numbers), settled: true }
    }

    /// The same version, of a value that is so new that the next one might be taken for it: clocks that tell files apart have ticks.
    #[must_use]
    pub fn unsettled(self) -> Self {
        Self { settled: false, ..self }
    }

    /// Whether every later value will have another version. What is kept for longer than a read lasts must not be kept by a version that is not settled.
    #[must_use]
    pub const fn is_settled(&self) -> bool {
        self.settled
    }

    /// What the store calls it, if it has a name for it.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match &self.name {
            Name::Text(text) => Some(text),
            Name::Numbers(_) => None,
        }
    }
}

/// Of the versions alone, settled or not.
impl PartialEq for Version {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Version {}

/// One value of a blocking store, for several reads that belong together: a shard's index, then inner chunks.
///
/// Where the store can, it looks the value up once, and every call is answered from the value that was found then, also when it is replaced
/// meanwhile. A store that can only tell that it was replaced refuses further calls with [`StoreErrorKind::Replaced`](crate::StoreErrorKind::Replaced).
/// Calls may be made from many threads at once. Do not keep one for longer than the reads take: it may hold a file open.
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

    /// Which version of the value this reads; `None` where there is no value, or the store cannot tell.
    fn version(&self) -> Option<Version> {
        None
    }

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

//! Where the bytes of an archive are.

use std::fs::File;
use std::sync::Arc;

use zarr_store_api::{ByteRange, Bytes, ReadableStore, Store, StoreError, StoreErrorKind, StoreKey};

use crate::file::{read_at, read_vec};

#[derive(Debug)]
pub(super) enum Source {
    /// A file; `None` for its size if it still grows.
    File { file: File, size: Option<u64> },
    /// A value of another store.
    Value { store: Arc<dyn Store>, key: StoreKey, size: u64 },
}

impl Source {
    pub(super) fn file(file: File) -> Result<Self, StoreError> {
        let found = file.metadata().map_err(|error| StoreError::from_io(error, "cannot look at the archive"))?;
        Ok(Self::File { file, size: Some(found.len()) })
    }

    pub(super) fn growing(file: File) -> Self {
        Self::File { file, size: None }
    }

    pub(super) fn value(store: Arc<dyn Store>, key: StoreKey) -> Result<Self, StoreError> {
        let Some(size) = store.size(&key)? else {
            let message = "there is no such archive";
            return Err(StoreError::new(StoreErrorKind::NotFound, message).with_key(&key));
        };
        Ok(Self::Value { store, key, size })
    }

    /// The size of the archive in bytes, at this moment if it still grows.
    pub(super) fn size(&self) -> u64 {
        match self {
            Self::File { size: Some(size), .. } | Self::Value { size, .. } => *size,
            Self::File { file, size: None } => file.metadata().map_or(0, |found| found.len()),
        }
    }

    /// Checks that bytes lie within the archive, before memory is taken for them.
    fn check(&self, offset: u64, length: u64) -> Result<ByteRange, StoreError> {
        match offset.checked_add(length) {
            Some(end) if end <= self.size() => Ok(ByteRange::Bounded { start: offset, end }),
            _ => Err(past_the_end()),
        }
    }

    /// Exactly `length` bytes at `offset`.
    pub(super) fn read(&self, offset: u64, length: u64) -> Result<Bytes, StoreError> {
        let range = self.check(offset, length)?;
        let bytes = match self {
            Self::File { file, .. } => read_vec(file, offset, length)?.into(),
            Self::Value { store, key, .. } => store.get(key, range)?.ok_or_else(vanished)?,
        };
        if bytes.len() as u64 == length { Ok(bytes) } else { Err(past_the_end()) }
    }

    /// Exactly `dst.len()` bytes at `offset`.
    pub(super) fn read_into(&self, offset: u64, dst: &mut [u8]) -> Result<(), StoreError> {
        let range = self.check(offset, dst.len() as u64)?;
        let read = match self {
            Self::File { file, .. } => read_at(file, offset, dst).map_err(|error| StoreError::from_io(error, "cannot read the archive"))?,
            Self::Value { store, key, .. } => store.get_into(key, range, dst)?.ok_or_else(vanished)?,
        };
        if read == dst.len() { Ok(()) } else { Err(past_the_end()) }
    }
}

fn past_the_end() -> StoreError {
    StoreError::new(StoreErrorKind::Corrupt, "the archive names bytes past its own end")
}

fn vanished() -> StoreError {
    StoreError::new(StoreErrorKind::NotFound, "the archive is not there any more")
}

//! A file that is open for reading.

use std::borrow::Borrow;
use std::fmt;
use std::fs::{File, Metadata};
use std::time::SystemTime;
#[cfg(unix)]
use std::time::UNIX_EPOCH;

use zarr_store_api::{ByteRange, Bytes, StoreError, StoreErrorKind, StoreKey, ValueReader, Version};

use crate::file::{read_at, read_vec};

/// The file of a key, what the system said of it when it was opened, and the time before; `None` if there was no such file.
#[derive(Debug)]
pub(super) struct OpenValue<K> {
    pub(super) key: K,
    pub(super) opened: Option<(File, Metadata, SystemTime)>,
}

impl<K: Borrow<StoreKey>> OpenValue<K> {
    /// The file and its size.
    fn file(&self) -> Option<(&File, u64)> {
        self.opened.as_ref().map(|(file, found, _)| (file, found.len()))
    }

    fn short_read(&self, range: ByteRange) -> StoreError {
        self.place(StoreError::new(StoreErrorKind::Io, "the file became shorter while it was read"), range)
    }

    fn place(&self, error: StoreError, range: ByteRange) -> StoreError {
        error.with_key(self.key.borrow()).with_range(range)
    }

    fn read(&self, file: &File, size: u64, range: ByteRange) -> Result<Bytes, StoreError> {
        let bounds = range.resolve(size).map_err(|error| error.with_key(self.key.borrow()))?;
        let length = bounds.end - bounds.start;
        let bytes = read_vec(file, bounds.start, length).map_err(|error| self.place(error, range))?;
        if (bytes.len() as u64) < length {
            return Err(self.short_read(range));
        }
        Ok(bytes.into())
    }
}

impl<K: Borrow<StoreKey> + fmt::Debug + Send + Sync> ValueReader for OpenValue<K> {
    fn get(&self, range: ByteRange) -> Result<Option<Bytes>, StoreError> {
        let Some((file, size)) = self.file() else { return Ok(None) };
        self.read(file, size, range).map(Some)
    }

    fn get_ranges(&self, ranges: &[ByteRange]) -> Result<Option<Vec<Bytes>>, StoreError> {
        let Some((file, size)) = self.file() else { return Ok(None) };
        ranges.iter().map(|range| self.read(file, size, *range).map(Some)).collect()
    }

    fn get_into(&self, range: ByteRange, dst: &mut [u8]) -> Result<Option<usize>, StoreError> {
        let Some((file, size)) = self.file() else { return Ok(None) };
        let bounds = range.resolve(size).map_err(|error| error.with_key(self.key.borrow()))?;
        let length = bounds.end - bounds.start;
        let capacity = dst.len();
        let Some(front) = usize::try_from(length).ok().and_then(|length| dst.get_mut(..length)) else {
            return Err(self.place(StoreError::destination_too_short(length, capacity), range));
        };
        match read_at(file, bounds.start, front) {
            Ok(done) if done < front.len() => Err(self.short_read(range)),
            Ok(done) => Ok(Some(done)),
            Err(error) => Err(self.place(StoreError::from_io(error, "cannot read"), range)),
        }
    }

    fn get_pieces(&self, range: ByteRange, piece: &mut [u8], each: &mut dyn FnMut(u64, &[u8])) -> Result<Option<u64>, StoreError> {
        let Some((file, size)) = self.file() else { return Ok(None) };
        let bounds = range.resolve(size).map_err(|error| error.with_key(self.key.borrow()))?;
        if piece.is_empty() {
            each(0, &self.read(file, size, range)?);
            return Ok(Some(bounds.end - bounds.start));
        }
        let mut at = bounds.start;
        while at < bounds.end {
            let wanted = usize::try_from(bounds.end - at).unwrap_or(usize::MAX).min(piece.len());
            let front = piece.get_mut(..wanted).unwrap_or_default();
            match read_at(file, at, front) {
                Ok(done) if done < wanted => return Err(self.short_read(range)),
                Ok(_) => each(at - bounds.start, front),
                Err(error) => return Err(self.place(StoreError::from_io(error, "cannot read"), range)),
            }
            at += wanted as u64;
        }
        Ok(Some(bounds.end - bounds.start))
    }

    fn version(&self) -> Option<Version> {
        self.opened.as_ref().and_then(|(_, found, looked)| version(found, *looked))
    }

    fn is_parallel(&self) -> bool {
        true
    }
}

/// A file that takes the place of another is a file of its own; one that is written to in place gets another time of change (where a file system has
/// none, of modification). Times have ticks, of some milliseconds on many systems, and a system gives the number of a removed file to the next one:
/// within a tick, both may look the same. `looked`: the time before the system was asked.
#[cfg(unix)]
fn version(found: &Metadata, looked: SystemTime) -> Option<Version> {
    use std::os::unix::fs::MetadataExt;

    /// In seconds: far more than a tick, also of file systems that count seconds, and of clocks that differ a little.
    const TICK: i64 = 3;
    let version = Version::of_numbers([found.dev(), found.ino(), found.len(), (found.ctime() as u64) << 32 | found.ctime_nsec() as u64]);
    let looked = looked.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() as i64);
    Some(if found.ctime() < looked - TICK { version } else { version.unsettled() })
}

#[cfg(not(unix))]
fn version(_: &Metadata, _: SystemTime) -> Option<Version> {
    None
}

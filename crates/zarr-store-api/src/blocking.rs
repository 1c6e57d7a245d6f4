//! The blocking form of a store.

use std::fmt;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use zarr_buffer_api::{Buffer, BufferError, Device, DeviceId, Queue};

use crate::asynchronous::AsyncStore;
use crate::error::{StoreError, StoreErrorKind};
use crate::key::{StoreKey, StorePrefix};
use crate::range::ByteRange;
use crate::value::{ByKey, ValueReader};

/// A store that values can be read from, with blocking calls.
///
/// Calls may be made from many threads at once.
pub trait ReadableStore: fmt::Debug + Send + Sync + 'static {
    /// The bytes of a range of the value under `key`, or `None` if there is no such key (whatever
    /// the range is).
    ///
    /// # Errors
    ///
    /// As [`ByteRange::resolve`], and whatever the medium gives.
    fn get(&self, key: &StoreKey, range: ByteRange) -> Result<Option<Bytes>, StoreError>;

    /// The size of the value under `key` in bytes, or `None` if there is no such key.
    ///
    /// # Errors
    ///
    /// Whatever the medium gives.
    fn size(&self, key: &StoreKey) -> Result<Option<u64>, StoreError>;

    /// The bytes of several ranges of one value, in the order of `ranges`; they may overlap.
    /// `None` if there is no such key, also when `ranges` is empty.
    ///
    /// If the value is replaced during the call, each range comes whole from the old or the new
    /// value; whether all come from the same one is up to the store.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get); the first range that fails fails the call.
    fn get_ranges(&self, key: &StoreKey, ranges: &[ByteRange]) -> Result<Option<Vec<Bytes>>, StoreError> {
        if ranges.is_empty() {
            return Ok(self.size(key)?.map(|_| Vec::new()));
        }
        ranges.iter().map(|range| self.get(key, *range)).collect()
    }

    /// Reads a range into the front of `dst` and says how many bytes it has there, or `None`, with
    /// `dst` untouched, if there is no such key. Bytes of `dst` behind the range keep their value.
    /// After an error `dst` holds anything.
    ///
    /// Stores that can do so read without an intermediate copy.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get), and [`StoreErrorKind::Parameter`](crate::StoreErrorKind::Parameter)
    /// if the range has more bytes than `dst`: nothing is cut off in silence.
    fn get_into(&self, key: &StoreKey, range: ByteRange, dst: &mut [u8]) -> Result<Option<usize>, StoreError> {
        let Some(bytes) = self.get(key, range)? else {
            return Ok(None);
        };
        copy_into(&bytes, dst).map(Some).map_err(|error| error.with_key(key).with_range(range))
    }

    /// Reads a range in pieces, in order: lends each to `each`, with where it starts in the range, and says how many bytes the range has, or `None`
    /// if there is no such key. All pieces come from one value.
    ///
    /// `piece` is memory to read into: pieces are as long as it, but for the last. A store that has the bytes in memory lends them as they are, in
    /// one piece, and so does the default, which reads the range at once.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get); `each` may have been called before.
    fn get_pieces(
        &self,
        key: &StoreKey,
        range: ByteRange,
        piece: &mut [u8],
        each: &mut dyn FnMut(u64, &[u8]),
    ) -> Result<Option<u64>, StoreError> {
        let _ = piece;
        let Some(bytes) = self.get(key, range)? else {
            return Ok(None);
        };
        each(0, &bytes);
        Ok(Some(bytes.len() as u64))
    }

    /// The value under `key`, for several reads that belong together; each says for itself when there is no such key.
    ///
    /// By default a [`ByKey`].
    ///
    /// # Errors
    ///
    /// Whatever the medium gives.
    fn reader<'a>(&'a self, key: &StoreKey) -> Result<Box<dyn ValueReader + 'a>, StoreError> {
        Ok(Box::new(ByKey::new(self, key)))
    }

    /// Reads a range into the front of `dst`, memory of `device` or of the host, and says how many bytes it has there,
    /// or `None`, with `dst` untouched, if there is no such key. Bytes of `dst` behind the range keep their value. After
    /// an error `dst` holds anything.
    ///
    /// Waits for the medium, never for a device. Memory that the host sees is written when the call returns. For other
    /// memory the call enqueues work on `queue`, a queue of `device`, and notes it on `dst`: work enqueued later comes
    /// after it, and [`Buffer::wait`] waits for it.
    ///
    /// By default, host memory is written in place by [`get_into`](Self::get_into); for other memory, that fills staging
    /// memory of `device` (as long as `dst`, or as the range if that is known to be shorter), and `queue` copies what is
    /// there. Stores with a shorter way say so in [`reads_to_device`](Self::reads_to_device).
    ///
    /// # Errors
    ///
    /// As [`get_into`](Self::get_into). What the buffer, the device and the queue refuse becomes an error as
    /// [`StoreError::from_buffer`] says: [`StoreErrorKind::Parameter`](crate::StoreErrorKind::Parameter) for host memory
    /// that work is pending on, or that is borrowed, as it is while another call writes to the same allocation.
    fn get_into_buffer(
        &self,
        key: &StoreKey,
        range: ByteRange,
        dst: &Buffer,
        device: &Arc<dyn Device>,
        queue: &Arc<dyn Queue>,
    ) -> Result<Option<usize>, StoreError> {
        let wrong = |error| buffer_error(error, key, range);
        if dst.is_host_visible() {
            let mut memory = dst.host_write().map_err(wrong)?;
            return self.get_into(key, range, &mut memory);
        }
        let staging = device.allocate_staging(staging_len(range, dst)).map_err(wrong)?;
        let read = {
            let mut memory = staging.host_write().map_err(wrong)?;
            self.get_into(key, range, &mut memory)?
        };
        upload(&staging, read, dst, &**queue).map_err(wrong)?;
        Ok(read)
    }

    /// Whether [`get_into_buffer`](Self::get_into_buffer) reads straight into memory of this device, with no stop in host
    /// memory: readers then prefer it to staging memory of their own. A store that says so takes these calls from many
    /// threads at once, for parts of one allocation that do not overlap, on one queue.
    fn reads_to_device(&self, device: DeviceId) -> bool {
        let _ = device;
        false
    }
}

/// How much staging memory a range needs at most. More than the destination holds is refused by whoever fills it.
pub(crate) fn staging_len(range: ByteRange, dst: &Buffer) -> usize {
    let known = range.len_hint().and_then(|length| usize::try_from(length).ok());
    known.map_or(dst.len(), |length| length.min(dst.len()))
}

/// Enqueues the copy of what was read to the front of its destination.
pub(crate) fn upload(staging: &Buffer, read: Option<usize>, dst: &Buffer, queue: &dyn Queue) -> Result<(), BufferError> {
    match read {
        None | Some(0) => Ok(()),
        Some(length) => queue.copy(&staging.slice(0..length)?, &dst.slice(0..length)?),
    }
}

pub(crate) fn buffer_error(error: BufferError, key: &StoreKey, range: ByteRange) -> StoreError {
    StoreError::from_buffer(error, "cannot read into a buffer").with_key(key).with_range(range)
}

/// Copies a value that was read into its destination.
pub(crate) fn copy_into(bytes: &[u8], dst: &mut [u8]) -> Result<usize, StoreError> {
    let capacity = dst.len();
    let Some(front) = dst.get_mut(..bytes.len()) else {
        return Err(StoreError::destination_too_short(bytes.len() as u64, capacity));
    };
    front.copy_from_slice(bytes);
    Ok(bytes.len())
}

/// A store that values can be written to, with blocking calls.
pub trait WritableStore: Send + Sync + 'static {
    /// Stores a value under a key, in place of what may be there.
    ///
    /// This is atomic: whoever reads, at any moment and also after a crash, sees the old value or
    /// the new one, never a mixture or a part. When the call returns, readers see the new value.
    ///
    /// # Errors
    ///
    /// Whatever the medium gives; [`StoreError::stored`] says what the key holds now.
    fn set(&self, key: &StoreKey, value: Bytes) -> Result<(), StoreError>;

    /// Stores a value that is given in pieces, as if they had been concatenated.
    ///
    /// Stores that can do so write the pieces as they are.
    ///
    /// # Errors
    ///
    /// As [`set`](Self::set).
    fn set_vectored(&self, key: &StoreKey, parts: &[&[u8]]) -> Result<(), StoreError> {
        let mut value = BytesMut::with_capacity(parts.iter().map(|part| part.len()).sum());
        for part in parts {
            value.extend_from_slice(part);
        }
        self.set(key, value.freeze())
    }

    /// Stores a value of `len` bytes that is made piece by piece, in order: `make` is asked to fill each piece, and told where it starts in the value.
    ///
    /// `piece` is memory for the pieces: they are as long as it, but for the last. A store that writes as it goes lends it again and again, so that
    /// the value is never in memory as a whole; the default makes the value at once.
    ///
    /// # Errors
    ///
    /// As [`set`](Self::set).
    fn set_pieces(&self, key: &StoreKey, len: u64, piece: &mut [u8], make: &mut dyn FnMut(u64, &mut [u8])) -> Result<(), StoreError> {
        let _ = piece;
        let no_room = || StoreError::new(StoreErrorKind::Limit, format!("no memory for {len} bytes")).with_key(key);
        let len = usize::try_from(len).map_err(|_| no_room())?;
        let mut value = Vec::new();
        value.try_reserve_exact(len).map_err(|_| no_room())?;
        value.resize(len, 0);
        make(0, &mut value);
        self.set(key, value.into())
    }

    /// Removes a key and its value. It is no error if there is none.
    ///
    /// # Errors
    ///
    /// Whatever the medium gives.
    fn erase(&self, key: &StoreKey) -> Result<(), StoreError>;

    /// Removes every key below a prefix. It is no error if there is none. Not atomic: after an
    /// error, some keys may be gone and others not.
    ///
    /// # Errors
    ///
    /// Whatever the medium gives.
    fn erase_prefix(&self, prefix: &StorePrefix) -> Result<(), StoreError>;
}

/// What lies directly below a prefix; both lists are sorted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// Keys directly below the prefix.
    pub keys: Vec<StoreKey>,
    /// Prefixes one level down that have at least one key below them.
    pub prefixes: Vec<StorePrefix>,
}

impl Listing {
    /// The listing of `prefix`, out of the sorted or unsorted keys below it. Keys that lie
    /// elsewhere are left out.
    pub fn from_keys(prefix: &StorePrefix, keys: impl IntoIterator<Item = StoreKey>) -> Self {
        let mut listing = Self::default();
        for key in keys {
            match prefix.strip(&key).map(|name| name.split_once('/')) {
                Some(Some((below, _))) => {
                    // Keys come sorted as a rule: then a prefix comes in one run.
                    let last = listing.prefixes.last().and_then(StorePrefix::name);
                    if last != Some(below)
                        && let Ok(child) = prefix.join(below)
                    {
                        listing.prefixes.push(child);
                    }
                }
                Some(None) => listing.keys.push(key),
                None => {}
            }
        }
        listing.sort();
        listing
    }

    /// Sorts both lists and drops what is there twice.
    pub fn sort(&mut self) {
        self.keys.sort_unstable();
        self.keys.dedup();
        self.prefixes.sort_unstable();
        self.prefixes.dedup();
    }
}

/// A store whose keys can be listed, with blocking calls.
pub trait ListableStore: Send + Sync + 'static {
    /// Every key below a prefix, at any depth, sorted. Empty if there is none.
    ///
    /// # Errors
    ///
    /// Whatever the medium gives.
    fn list(&self, prefix: &StorePrefix) -> Result<Vec<StoreKey>, StoreError>;

    /// What lies directly below a prefix. Empty if there is nothing.
    ///
    /// # Errors
    ///
    /// Whatever the medium gives.
    fn list_dir(&self, prefix: &StorePrefix) -> Result<Listing, StoreError>;
}

/// A store with blocking calls, and what it can do besides reading.
///
/// Implement this for stores whose medium blocks by nature: memory, files, archives. For those
/// that live behind a network, implement [`AsyncStore`]; adapters exist both ways.
pub trait Store: ReadableStore {
    /// The store as one that can be written to, if it can.
    fn as_writable(&self) -> Option<&dyn WritableStore> {
        None
    }

    /// The store as one that can be listed, if it can.
    fn as_listable(&self) -> Option<&dyn ListableStore> {
        None
    }

    /// What to call the store in messages, such as `file:///data`. No credentials, please.
    fn name(&self) -> String;

    /// The async store behind this one, if this is only a blocking face of it. Readers that can
    /// then take the native path.
    fn native_async(&self) -> Option<Arc<dyn AsyncStore>> {
        None
    }
}

macro_rules! forward_through_pointer {
    ($($pointer:ident),*) => {$(
        impl<S: ReadableStore + ?Sized> ReadableStore for $pointer<S> {
            fn get(&self, key: &StoreKey, range: ByteRange) -> Result<Option<Bytes>, StoreError> {
                (**self).get(key, range)
            }

            fn size(&self, key: &StoreKey) -> Result<Option<u64>, StoreError> {
                (**self).size(key)
            }

            fn get_ranges(
                &self,
                key: &StoreKey,
                ranges: &[ByteRange],
            ) -> Result<Option<Vec<Bytes>>, StoreError> {
                (**self).get_ranges(key, ranges)
            }

            fn get_into(
                &self,
                key: &StoreKey,
                range: ByteRange,
                dst: &mut [u8],
            ) -> Result<Option<usize>, StoreError> {
                (**self).get_into(key, range, dst)
            }

            fn get_pieces(
                &self,
                key: &StoreKey,
                range: ByteRange,
                piece: &mut [u8],
                each: &mut dyn FnMut(u64, &[u8]),
            ) -> Result<Option<u64>, StoreError> {
                (**self).get_pieces(key, range, piece, each)
            }

            fn reader<'a>(&'a self, key: &StoreKey) -> Result<Box<dyn ValueReader + 'a>, StoreError> {
                (**self).reader(key)
            }

            fn get_into_buffer(
                &self,
                key: &StoreKey,
                range: ByteRange,
                dst: &Buffer,
                device: &Arc<dyn Device>,
                queue: &Arc<dyn Queue>,
            ) -> Result<Option<usize>, StoreError> {
                (**self).get_into_buffer(key, range, dst, device, queue)
            }

            fn reads_to_device(&self, device: DeviceId) -> bool {
                (**self).reads_to_device(device)
            }
        }

        impl<S: Store + ?Sized> Store for $pointer<S> {
            fn as_writable(&self) -> Option<&dyn WritableStore> {
                (**self).as_writable()
            }

            fn as_listable(&self) -> Option<&dyn ListableStore> {
                (**self).as_listable()
            }

            fn name(&self) -> String {
                (**self).name()
            }

            fn native_async(&self) -> Option<Arc<dyn AsyncStore>> {
                (**self).native_async()
            }
        }
    )*};
}

forward_through_pointer!(Arc, Box);

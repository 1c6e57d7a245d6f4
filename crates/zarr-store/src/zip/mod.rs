//! One zip archive.
//!
//! Terms are those of PKWARE's APPNOTE.TXT 6.3: local header (4.3.7), central directory (4.3.12),
//! end of central directory record (4.3.16) and their zip64 forms (4.3.14, 4.3.15, 4.5.3).

mod directory;
mod read;
mod source;
mod write;

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use zarr_store_api::{
    AnyStore, ByteRange, Bytes, ListableStore, Listing, ReadableStore, Store, StoreError, StoreErrorKind, StoreKey, StorePrefix,
    ValueReader, Version, WritableStore,
};

use directory::Entry;
use source::Source;
use write::Writer;

/// How much of an archive is taken at its word.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ZipLimits {
    /// The largest central directory that is read, in bytes. An entry takes some 100 bytes.
    pub directory_bytes: u64,
    /// The largest value that is inflated, in bytes. (Memory is taken as the bytes appear, so that
    /// a wrong size costs nothing.)
    pub inflated_bytes: u64,
}

impl Default for ZipLimits {
    fn default() -> Self {
        Self { directory_bytes: 1 << 30, inflated_bytes: 1 << 36 }
    }
}

/// How an archive is written.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct ZipWriteOptions {
    /// Deflate entries at this level (1 to 9). By default they are stored, as chunks are
    /// compressed already and ranges can then be read in place.
    pub deflate_level: Option<u32>,
    /// Make the archive durable (`fsync`) before it takes its name.
    pub sync: bool,
}

/// A zip archive, to read or to write.
///
/// **Reading.** The central directory is read once, when the archive is opened. A range of a stored
/// entry is read in place, and only that range. A deflated entry is inflated from its beginning up
/// to the end of the range. Values that are read whole, at once or in pieces, are checked against their CRC-32. Of
/// entries with the same name the last one counts. Entries whose names cannot be keys
/// (directories, absolute names, names with `..`) are not seen.
///
/// **Writing.** [`create`](Self::create) and [`append`](Self::append) write to a temporary file
/// next to the archive, which takes the archive's name in [`close`](Self::close) or when the store
/// is dropped (during a panic it is removed instead). Until then readers see the old archive, or
/// none; this store itself reads what it has written at once. What somebody else put at the path
/// meanwhile is not replaced: closing fails. A process that was forked from the one that writes
/// cannot write, and leaves the archive alone. Comments, dates and modes of an archive that is
/// appended to are not kept. A key that is set again is
/// appended again: the old bytes stay in the file as dead space, but the directory names each key
/// once.
///
/// ```
/// use zarr_store::ZipStore;
/// use zarr_store_api::{ByteRange, ReadableStore, StoreKey, WritableStore};
///
/// # let dir = std::env::temp_dir().join(format!("zarr-doc-zip-{}", std::process::id()));
/// # std::fs::create_dir_all(&dir).unwrap();
/// let path = dir.join("data.zip");
/// let key = StoreKey::new("temperature/c/0/0")?;
/// let archive = ZipStore::create(&path)?;
/// archive.set(&key, "inner chunks, index".into())?;
/// archive.close()?;
///
/// let archive = ZipStore::open(&path)?;
/// assert_eq!(archive.get(&key, ByteRange::Suffix(5))?.as_deref(), Some(&b"index"[..]));
/// # std::fs::remove_dir_all(&dir).unwrap();
/// # Ok::<(), zarr_store_api::StoreError>(())
/// ```
#[derive(Debug)]
pub struct ZipStore {
    name: String,
    source: Source,
    limits: ZipLimits,
    entries: RwLock<BTreeMap<StoreKey, Arc<Entry>>>,
    writer: Option<Mutex<Writer>>,
}

impl ZipStore {
    /// Opens an archive for reading.
    ///
    /// # Errors
    ///
    /// [`StoreErrorKind::Corrupt`] if the file is not a zip archive, or is damaged;
    /// [`StoreErrorKind::Limit`] if it has too large a directory; otherwise what the operating
    /// system gives.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        Self::open_with(path, ZipLimits::default())
    }

    /// As [`open`](Self::open), with other limits.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn open_with(path: impl AsRef<Path>, limits: ZipLimits) -> Result<Self, StoreError> {
        let path = path.as_ref();
        let source = Source::file(open_file(path)?)?;
        Self::read_directory(format!("zip://{}", path.display()), source, limits)
    }

    /// Opens an archive that is the value of a key in another store, for reading. Only the
    /// directory and what is asked for are read.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open), and what that store gives.
    pub fn open_in(store: Arc<dyn Store>, key: StoreKey, limits: ZipLimits) -> Result<Self, StoreError> {
        let name = format!("zip+{}/{key}", store.name().trim_end_matches('/'));
        Self::read_directory(name, Source::value(store, key)?, limits)
    }

    fn read_directory(name: String, source: Source, limits: ZipLimits) -> Result<Self, StoreError> {
        let directory = directory::read(&source, limits.directory_bytes)?;
        Ok(Self { name, source, limits, entries: RwLock::new(directory.entries), writer: None })
    }

    /// Begins a new archive, which replaces what is at the path once it is closed.
    ///
    /// # Errors
    ///
    /// What the operating system gives.
    pub fn create(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        Self::create_with(path, ZipWriteOptions::default())
    }

    /// As [`create`](Self::create), with options.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn create_with(path: impl AsRef<Path>, options: ZipWriteOptions) -> Result<Self, StoreError> {
        let path = path.as_ref();
        let (writer, file) = Writer::create(path, options)?;
        Ok(Self {
            name: format!("zip://{}", path.display()),
            source: Source::growing(file),
            limits: ZipLimits::default(),
            entries: RwLock::default(),
            writer: Some(Mutex::new(writer)),
        })
    }

    /// Begins an archive that holds what the one at the path does, and replaces it once it is
    /// closed. The old one is copied first.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    pub fn append(path: impl AsRef<Path>, options: ZipWriteOptions) -> Result<Self, StoreError> {
        let path = path.as_ref();
        let limits = ZipLimits::default();
        let old = open_file(path)?;
        let clone = old.try_clone().map_err(|error| StoreError::from_io(error, "cannot open the archive once more"))?;
        let directory = directory::read(&Source::file(clone)?, limits.directory_bytes)?;
        let (writer, file) = Writer::append(path, &old, directory.offset, options)?;
        Ok(Self {
            name: format!("zip://{}", path.display()),
            source: Source::growing(file),
            limits,
            entries: RwLock::new(directory.entries),
            writer: Some(Mutex::new(writer)),
        })
    }

    /// Writes the directory and gives the archive its name. Later writes fail; reads go on.
    /// Does nothing for an archive that was opened for reading, or is closed already.
    ///
    /// # Errors
    ///
    /// What the operating system gives. [`StoreError::stored`] says whether the old or the new
    /// archive is at the path.
    pub fn close(&self) -> Result<(), StoreError> {
        match &self.writer {
            Some(writer) => {
                let mut writer = writer.lock().unwrap_or_else(PoisonError::into_inner);
                writer.finish(&self.entries.read().unwrap_or_else(PoisonError::into_inner))
            }
            None => Ok(()),
        }
    }

    /// Gives up what was written: the archive at the path stays as it was. Later writes fail.
    pub fn abandon(&self) {
        if let Some(writer) = &self.writer {
            writer.lock().unwrap_or_else(PoisonError::into_inner).abandon();
        }
    }

    fn entry(&self, key: &StoreKey) -> Option<Arc<Entry>> {
        self.entries.read().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
    }

    fn value<K: Borrow<StoreKey>>(&self, key: K) -> Value<'_, K> {
        Value { store: self, entry: self.entry(key.borrow()), key }
    }

    fn writer(&self) -> Result<&Mutex<Writer>, StoreError> {
        self.writer.as_ref().ok_or_else(|| StoreError::read_only("the archive was opened for reading"))
    }

    fn forget(&self, doomed: impl Fn(&StoreKey) -> bool) -> Result<(), StoreError> {
        let writer = self.writer()?.lock().unwrap_or_else(PoisonError::into_inner);
        writer.check_open()?;
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        entries.retain(|key, _| !doomed(key));
        Ok(())
    }
}

fn open_file(path: &Path) -> Result<File, StoreError> {
    let failed = |error| StoreError::from_io(error, format!("cannot open {}", path.display()));
    let file = File::open(path).map_err(failed)?;
    if file.metadata().map_err(failed)?.is_dir() {
        let message = format!("{} is a directory, not a zip archive", path.display());
        return Err(StoreError::new(StoreErrorKind::Parameter, message));
    }
    Ok(file)
}

impl Drop for ZipStore {
    fn drop(&mut self) {
        let is_forked = |writer: &Mutex<Writer>| writer.lock().unwrap_or_else(PoisonError::into_inner).is_forked();
        if std::thread::panicking() || self.writer.as_ref().is_some_and(is_forked) {
            self.abandon();
        } else if let Err(error) = self.close() {
            // Whoever cares about the outcome calls `close`; there is nobody to return it to here.
            tracing::error!(archive = %self.name, %error, "a zip archive could not be closed, and what was written is lost");
        }
    }
}

impl ReadableStore for ZipStore {
    fn get(&self, key: &StoreKey, range: ByteRange) -> Result<Option<Bytes>, StoreError> {
        self.value(key).get(range)
    }

    fn size(&self, key: &StoreKey) -> Result<Option<u64>, StoreError> {
        Ok(self.entry(key).map(|entry| entry.size))
    }

    fn get_ranges(&self, key: &StoreKey, ranges: &[ByteRange]) -> Result<Option<Vec<Bytes>>, StoreError> {
        self.value(key).get_ranges(ranges)
    }

    fn get_into(&self, key: &StoreKey, range: ByteRange, dst: &mut [u8]) -> Result<Option<usize>, StoreError> {
        self.value(key).get_into(range, dst)
    }

    fn get_pieces(
        &self,
        key: &StoreKey,
        range: ByteRange,
        piece: &mut [u8],
        each: &mut dyn FnMut(u64, &[u8]),
    ) -> Result<Option<u64>, StoreError> {
        self.value(key).get_pieces(range, piece, each)
    }

    /// The entry that has the name now, also when another one gets it.
    fn reader<'a>(&'a self, key: &StoreKey) -> Result<Box<dyn ValueReader + 'a>, StoreError> {
        let Value { store, key, entry } = self.value(key);
        Ok(Box::new(Value { store, key: key.clone(), entry }))
    }
}

/// The entry that a key was the name of, if there was one.
#[derive(Debug)]
struct Value<'a, K> {
    store: &'a ZipStore,
    key: K,
    entry: Option<Arc<Entry>>,
}

impl<K: Borrow<StoreKey> + fmt::Debug + Send + Sync> ValueReader for Value<'_, K> {
    fn get(&self, range: ByteRange) -> Result<Option<Bytes>, StoreError> {
        let Some(entry) = &self.entry else { return Ok(None) };
        let read = read::get(&self.store.source, entry, range, self.store.limits.inflated_bytes);
        read.map(Some).map_err(|error| error.with_key(self.key.borrow()).with_range(range))
    }

    fn get_ranges(&self, ranges: &[ByteRange]) -> Result<Option<Vec<Bytes>>, StoreError> {
        let Some(entry) = &self.entry else { return Ok(None) };
        let read = read::get_ranges(&self.store.source, entry, ranges, self.store.limits.inflated_bytes);
        read.map(Some).map_err(|error| error.with_key(self.key.borrow()))
    }

    fn get_into(&self, range: ByteRange, dst: &mut [u8]) -> Result<Option<usize>, StoreError> {
        let Some(entry) = &self.entry else { return Ok(None) };
        let read = read::get_into(&self.store.source, entry, range, dst);
        read.map(Some).map_err(|error| error.with_key(self.key.borrow()).with_range(range))
    }

    fn get_pieces(&self, range: ByteRange, piece: &mut [u8], each: &mut dyn FnMut(u64, &[u8])) -> Result<Option<u64>, StoreError> {
        let Some(entry) = &self.entry else { return Ok(None) };
        let read = read::get_pieces(&self.store.source, entry, range, self.store.limits.inflated_bytes, piece, each);
        read.map(Some).map_err(|error| error.with_key(self.key.borrow()).with_range(range))
    }

    /// An archive is only added to: no two entries begin at the same place.
    fn version(&self) -> Option<Version> {
        self.entry.as_ref().map(|entry| Version::of_numbers([entry.header, entry.size, entry.compressed_size, entry.crc32.into()]))
    }
}

impl WritableStore for ZipStore {
    fn set(&self, key: &StoreKey, value: Bytes) -> Result<(), StoreError> {
        self.set_vectored(key, &[&value])
    }

    fn set_vectored(&self, key: &StoreKey, parts: &[&[u8]]) -> Result<(), StoreError> {
        let mut writer = self.writer()?.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = writer.add(key, parts).map_err(|error| error.with_key(key))?;
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        entries.insert(key.clone(), Arc::new(entry));
        Ok(())
    }

    fn erase(&self, key: &StoreKey) -> Result<(), StoreError> {
        self.forget(|candidate| candidate == key)
    }

    fn erase_prefix(&self, prefix: &StorePrefix) -> Result<(), StoreError> {
        self.forget(|candidate| prefix.contains(candidate))
    }
}

impl ListableStore for ZipStore {
    fn list(&self, prefix: &StorePrefix) -> Result<Vec<StoreKey>, StoreError> {
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        Ok(entries.keys().filter(|key| prefix.contains(key)).cloned().collect())
    }

    fn list_dir(&self, prefix: &StorePrefix) -> Result<Listing, StoreError> {
        Ok(Listing::from_keys(prefix, self.list(prefix)?))
    }
}

impl Store for ZipStore {
    fn as_writable(&self) -> Option<&dyn WritableStore> {
        match self.writer {
            Some(_) => Some(self),
            None => None,
        }
    }

    fn as_listable(&self) -> Option<&dyn ListableStore> {
        Some(self)
    }

    fn name(&self) -> String {
        self.name.clone()
    }
}

impl From<ZipStore> for AnyStore {
    fn from(store: ZipStore) -> Self {
        AnyStore::blocking(store)
    }
}

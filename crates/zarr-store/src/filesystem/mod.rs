//! A directory of files.

mod list;
mod names;
mod temporary;
mod value;
mod write;

use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, SystemTime};

use zarr_store_api::{
    AnyStore, ByteRange, Bytes, ListableStore, Listing, ReadableStore, Store, StoreError, StoreErrorKind, StoreKey, StorePrefix,
    ValueReader, WritableStore,
};

use crate::file::read_at;
use temporary::Unnamed;
use value::OpenValue;

/// What a write waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Durability {
    /// Nothing. Whatever happens to the process, each key is old or new; after a crash of the
    /// machine or a power cut that depends on the file system.
    #[default]
    Process,
    /// The file (`fsync`) before it takes its place: each key is old or new after a power cut too.
    File,
    /// The file and its directory: the new value survives a power cut once the call has returned.
    FileAndDirectory,
}

/// A directory, with a file for each key.
///
/// * **Reads** are positioned reads (`pread`) of a file that is opened for the call, so that a
///   replaced file is always seen (keeping it open, and checking that it still is the one, would save
///   some 3 of 5 µs); [`get_into`](ReadableStore::get_into) reads straight into the caller's memory.
/// * **Writes** go to a temporary file in the directory of the key, which then takes the key's
///   name in one step. On Linux it has no name until then, unless the file system has no such files
///   (NFS, for instance), writes are to be [durable](Durability), or anyone may write to files
///   (a umask of 0). Otherwise, and for the moment in which it replaces a value, its name begins with
///   `.zarr-partial.`; such names are never listed and are not valid keys here. A writer that is
///   killed may leave one behind: [`remove_abandoned`](Self::remove_abandoned).
/// * **Keys** are file names as they are, in UTF-8. Where a name differs from an existing one only
///   in case, on a file system that does not tell the two apart, it is refused. `a` and `a/b`
///   cannot both be keys.
/// * **Links.** A key cannot name anything outside the directory. Symbolic links inside it are
///   followed when reading and listing (loops are cut), as people use them to spread large arrays
///   over disks: whoever may create links in the directory decides what is read through it.
///   Writing and erasing a key replaces or removes a link itself, and erasing a prefix never
///   descends through one.
/// * **Empty directories** left by others may be listed as prefixes; those this store
///   empties itself are removed.
///
/// ```
/// use zarr_store::FilesystemStore;
/// use zarr_store_api::{ByteRange, ReadableStore, StoreKey, WritableStore};
///
/// # let dir = std::env::temp_dir().join(format!("zarr-doc-{}", std::process::id()));
/// let store = FilesystemStore::new(&dir)?;
/// let key = StoreKey::new("temperature/c/0/0")?;
/// store.set_vectored(&key, &[b"inner chunks", b"index"])?;
///
/// let mut index = [0u8; 5];
/// store.get_into(&key, ByteRange::Suffix(5), &mut index)?;
/// assert_eq!(&index, b"index");
/// # std::fs::remove_dir_all(&dir).unwrap();
/// # Ok::<(), zarr_store_api::StoreError>(())
/// ```
#[derive(Debug)]
pub struct FilesystemStore {
    root: PathBuf,
    durability: Durability,
    case_insensitive: OnceLock<bool>,
    unnamed: Unnamed,
}

impl FilesystemStore {
    /// The store in a directory, which need not exist yet. A relative path is taken relative to
    /// the working directory of this moment.
    ///
    /// # Errors
    ///
    /// [`StoreErrorKind::Parameter`] if there is something at the path that is no directory;
    /// otherwise what the operating system gives.
    pub fn new(root: impl AsRef<Path>) -> Result<Self, StoreError> {
        let root = std::path::absolute(root.as_ref()).map_err(|error| StoreError::from_io(error, "cannot make the path absolute"))?;
        match fs::metadata(&root) {
            Ok(found) if !found.is_dir() => {
                Err(StoreError::new(StoreErrorKind::Parameter, format!("{} is not a directory", root.display())))
            }
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                let message = format!("cannot open {}", root.display());
                Err(StoreError::from_io(error, message))
            }
            _ => Ok(Self { root, durability: Durability::default(), case_insensitive: OnceLock::new(), unnamed: Unnamed::default() }),
        }
    }

    /// Sets what writes wait for.
    #[must_use]
    pub fn with_durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// The directory.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Removes what killed writers left behind: temporary files that were last written to longer
    /// ago than `older_than`. The age must be longer than the longest write that may be under way.
    /// Returns how many were removed.
    ///
    /// # Errors
    ///
    /// What the operating system gives.
    pub fn remove_abandoned(&self, older_than: Duration) -> Result<u64, StoreError> {
        self.sweep(older_than)
    }

    /// The path of a key that this store can hold.
    fn path(&self, key: &StoreKey) -> Result<PathBuf, StoreError> {
        match names::check(key.as_str()) {
            Ok(()) => Ok(self.root.join(key.as_str())),
            Err(why) => Err(StoreError::new(StoreErrorKind::InvalidKey, why).with_key(key)),
        }
    }

    /// The path of a prefix, without a final separator: with one, a link would be followed.
    fn dir(&self, prefix: &StorePrefix) -> Result<PathBuf, StoreError> {
        match prefix.as_str().strip_suffix('/') {
            Some(path) => names::check(path).map(|()| self.root.join(path)).map_err(|why| StoreError::new(StoreErrorKind::InvalidKey, why)),
            None => Ok(self.root.clone()),
        }
    }

    /// Whether names that differ only in case mean the same file.
    fn case_insensitive(&self) -> bool {
        *self.case_insensitive.get_or_init(|| names::probe_case_insensitive(&self.root))
    }

    /// Opens the file of a key, if there is one.
    fn opened<'k>(&self, key: &'k StoreKey) -> Result<OpenValue<&'k StoreKey>, StoreError> {
        let opened = self.open(key, |file| {
            let looked = SystemTime::now();
            let found = file.metadata()?;
            Ok(found.is_file().then_some((file, found, looked)))
        })?;
        Ok(OpenValue { key, opened })
    }

    /// Opens what has the name of a key, if there is something. What `look` makes of it may be an error that means that there is no value.
    fn open<T>(&self, key: &StoreKey, look: impl FnOnce(File) -> io::Result<Option<T>>) -> Result<Option<T>, StoreError> {
        let path = self.path(key)?;
        if self.case_insensitive() && names::real_name_differs(&self.root, key.as_str()).is_some() {
            return Ok(None);
        }
        match open_for_reading(&path).and_then(look) {
            Ok(found) => Ok(found),
            Err(error) if means_absent(&error) => Ok(None),
            // Some systems do not open directories at all.
            Err(_) if path.is_dir() => Ok(None),
            Err(error) => Err(StoreError::from_io(error, format!("cannot open {}", path.display())).with_key(key)),
        }
    }

    /// Reads a whole value into `dst`, and does not look at the file before: what `fstat` takes is a few percent of reading 64 KiB.
    fn whole_into(&self, key: &StoreKey, dst: &mut [u8]) -> Result<Option<usize>, StoreError> {
        let place = |error: StoreError| error.with_key(key).with_range(ByteRange::All);
        let Some(file) = self.open(key, |file| Ok(Some(file)))? else { return Ok(None) };
        // What lies behind the bytes that are there is asked for, too: it may be that there is more.
        let read = read_at(&file, 0, dst).and_then(|len| Ok((len, len == dst.len() && read_at(&file, len as u64, &mut [0])? > 0)));
        match read {
            Ok((len @ 1.., false)) => Ok(Some(len)),
            // Nothing or too much, or an error: of a file, or of something else.
            read => {
                let found = file.metadata().map_err(|error| place(StoreError::from_io(error, "cannot look at the file")))?;
                match read {
                    _ if !found.is_file() => Ok(None),
                    Ok((len, false)) => Ok(Some(len)),
                    Ok((_, true)) => Err(place(StoreError::destination_too_short(found.len(), dst.len()))),
                    Err(error) => Err(place(StoreError::from_io(error, "cannot read"))),
                }
            }
        }
    }

    /// Reads a part of a value into `dst`, and does not look at the file, either, if all of the part is there.
    fn part_into(&self, key: &StoreKey, part: Range<u64>, dst: &mut [u8]) -> Result<Option<usize>, StoreError> {
        if let Some(front) = usize::try_from(part.end - part.start).ok().and_then(|len| dst.get_mut(..len)) {
            let Some(file) = self.open(key, |file| Ok(Some(file)))? else { return Ok(None) };
            if read_at(&file, part.start, front).is_ok_and(|len| len == front.len()) {
                return Ok(Some(front.len()));
            }
        }
        // It may end behind the value, or that may be no file.
        self.opened(key)?.get_into(part.into(), dst)
    }
}

/// Opens a file without waiting, whatever it is: opening a named pipe would block otherwise.
fn open_for_reading(path: &Path) -> io::Result<File> {
    let mut options = fs::OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        let flags = rustix::fs::OFlags::NONBLOCK.bits();
        options.custom_flags(i32::try_from(flags).unwrap_or(0));
    }
    options.open(path)
}

/// Whether an error means that there is no value of that name.
fn means_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::IsADirectory)
}

impl ReadableStore for FilesystemStore {
    fn get(&self, key: &StoreKey, range: ByteRange) -> Result<Option<Bytes>, StoreError> {
        self.opened(key)?.get(range)
    }

    fn size(&self, key: &StoreKey) -> Result<Option<u64>, StoreError> {
        let path = self.path(key)?;
        if self.case_insensitive() && names::real_name_differs(&self.root, key.as_str()).is_some() {
            return Ok(None);
        }
        match fs::metadata(&path) {
            Ok(found) => Ok(found.is_file().then_some(found.len())),
            Err(error) if means_absent(&error) => Ok(None),
            Err(error) => Err(StoreError::from_io(error, format!("cannot look at {}", path.display())).with_key(key)),
        }
    }

    /// The file is opened once: all ranges come from the same value.
    fn get_ranges(&self, key: &StoreKey, ranges: &[ByteRange]) -> Result<Option<Vec<Bytes>>, StoreError> {
        self.opened(key)?.get_ranges(ranges)
    }

    fn get_into(&self, key: &StoreKey, range: ByteRange, dst: &mut [u8]) -> Result<Option<usize>, StoreError> {
        match range {
            ByteRange::All => self.whole_into(key, dst),
            ByteRange::Bounded { start, end } if start < end => self.part_into(key, start..end, dst),
            _ => self.opened(key)?.get_into(range, dst),
        }
    }

    /// The file is opened once.
    fn get_pieces(
        &self,
        key: &StoreKey,
        range: ByteRange,
        piece: &mut [u8],
        each: &mut dyn FnMut(u64, &[u8]),
    ) -> Result<Option<u64>, StoreError> {
        self.opened(key)?.get_pieces(range, piece, each)
    }

    /// The file is opened now: all reads come from the same value.
    fn reader<'a>(&'a self, key: &StoreKey) -> Result<Box<dyn ValueReader + 'a>, StoreError> {
        let OpenValue { key, opened } = self.opened(key)?;
        Ok(Box::new(OpenValue { key: key.clone(), opened }))
    }
}

impl WritableStore for FilesystemStore {
    fn set(&self, key: &StoreKey, value: Bytes) -> Result<(), StoreError> {
        self.replace(key, &[&value])
    }

    /// The pieces are written as they are.
    fn set_vectored(&self, key: &StoreKey, parts: &[&[u8]]) -> Result<(), StoreError> {
        self.replace(key, parts)
    }

    /// The pieces are written as they come.
    fn set_pieces(&self, key: &StoreKey, len: u64, piece: &mut [u8], make: &mut dyn FnMut(u64, &mut [u8])) -> Result<(), StoreError> {
        self.replace_with(key, &mut |temporary| temporary.write_pieces(len, piece, make))
    }

    fn erase(&self, key: &StoreKey) -> Result<(), StoreError> {
        self.remove(key)
    }

    fn erase_prefix(&self, prefix: &StorePrefix) -> Result<(), StoreError> {
        self.remove_below(prefix)
    }
}

impl ListableStore for FilesystemStore {
    fn list(&self, prefix: &StorePrefix) -> Result<Vec<StoreKey>, StoreError> {
        list::list(&self.dir(prefix)?, prefix)
    }

    fn list_dir(&self, prefix: &StorePrefix) -> Result<Listing, StoreError> {
        list::list_dir(&self.dir(prefix)?, prefix)
    }
}

impl Store for FilesystemStore {
    fn as_writable(&self) -> Option<&dyn WritableStore> {
        Some(self)
    }

    fn as_listable(&self) -> Option<&dyn ListableStore> {
        Some(self)
    }

    fn name(&self) -> String {
        format!("file://{}", self.root.display())
    }
}

impl From<FilesystemStore> for AnyStore {
    fn from(store: FilesystemStore) -> Self {
        AnyStore::blocking(store)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> StoreKey {
        StoreKey::new(text).unwrap()
    }

    #[test]
    fn case_is_told_apart_where_the_file_system_does_not() {
        let dir = tempfile::tempdir().unwrap();
        let store = FilesystemStore::new(dir.path()).unwrap();
        store.set(&key("Foo/bar"), "1".into()).unwrap();
        assert!(!store.case_insensitive(), "tests run on a file system that tells case apart");

        let store = FilesystemStore::new(dir.path()).unwrap();
        store.case_insensitive.set(true).unwrap();
        for clash in ["foo/bar", "Foo/BAR", "foo/other"] {
            let error = store.set(&key(clash), "2".into()).unwrap_err();
            assert_eq!(error.kind(), StoreErrorKind::InvalidKey, "{clash}");
            assert_eq!(store.get(&key(clash), ByteRange::All).unwrap(), None);
            assert_eq!(store.size(&key(clash)).unwrap(), None);
        }
        store.set(&key("Foo/bar"), "3".into()).unwrap();
        store.set(&key("Foo/other"), "4".into()).unwrap();
        assert_eq!(store.size(&key("Foo/bar")).unwrap(), Some(1));
    }

    #[test]
    #[cfg(unix)]
    fn versions_are_settled_when_the_clock_has_gone_on() {
        let version = |store: &FilesystemStore, name| store.reader(&key(name)).unwrap().version();
        let sources = FilesystemStore::new(env!("CARGO_MANIFEST_DIR")).unwrap();
        let old = version(&sources, "Cargo.toml").unwrap();
        assert!(old.is_settled());
        assert_eq!(version(&sources, "Cargo.toml"), Some(old.clone()));
        assert_eq!(version(&sources, "Cargo.tom"), None);

        let dir = tempfile::tempdir().unwrap();
        let store = FilesystemStore::new(dir.path()).unwrap();
        store.set(&key("a"), "1".into()).unwrap();
        let new = version(&store, "a").unwrap();
        assert!(!new.is_settled() && new != old);
    }

    #[test]
    fn values_are_read_into_memory_of_any_length() {
        let dir = tempfile::tempdir().unwrap();
        let store = FilesystemStore::new(dir.path()).unwrap();
        store.set(&key("a"), "value".into()).unwrap();
        store.set(&key("empty"), Bytes::new()).unwrap();
        store.set(&key("below/b"), "1".into()).unwrap();
        let read = |name, length| {
            let mut memory = vec![b'.'; length];
            store.get_into(&key(name), ByteRange::All, &mut memory).map(|read| read.map(|_| String::from_utf8(memory).unwrap()))
        };
        assert_eq!(read("a", 5).unwrap().as_deref(), Some("value"));
        assert_eq!(read("a", 7).unwrap().as_deref(), Some("value.."));
        for length in [0, 1, 4] {
            let error = read("a", length).unwrap_err();
            assert_eq!(error.kind(), StoreErrorKind::Parameter);
            assert!(error.to_string().contains('5'), "{error}");
        }
        for length in [0, 3] {
            assert_eq!(read("empty", length).unwrap().map(|read| read.len()), Some(length));
            for absent in ["below", "nothing", "a/b"] {
                assert_eq!(read(absent, length).unwrap(), None, "{absent}");
            }
        }
        #[cfg(unix)]
        {
            let fifo = dir.path().join("pipe");
            assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
            assert_eq!(read("pipe", 3).unwrap(), None);
        }
    }
}

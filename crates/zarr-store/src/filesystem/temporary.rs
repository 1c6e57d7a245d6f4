//! Files that are written out of sight, and then take the place of a key in one step.
//!
//! There are two ways. A file with a hidden name in the directory of the key is renamed over it: everywhere. On Linux, a file without any
//! name (`O_TMPFILE`) is given that of the key where nothing has it, and otherwise a hidden one first, to be renamed. For a new key that takes
//! the directory's lock once rather than twice, and the lock of all renames not at all, for which threads that write many small files wait;
//! and a writer that is killed leaves nothing, unless it is just about to rename.

use std::fs::{self, File};
use std::io::{self, IoSlice, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::file::{create_temporary, temporary_name};

/// A file that is removed again unless it takes the place of a key.
pub(super) struct Temporary {
    file: File,
    /// The hidden name, if it has one.
    path: Option<PathBuf>,
}

impl Temporary {
    pub(super) fn named(dir: &Path) -> io::Result<Self> {
        let (path, file) = create_temporary(dir)?;
        Ok(Self { file, path: Some(path) })
    }

    pub(super) fn write(&mut self, parts: &[&[u8]]) -> io::Result<()> {
        let mut slices: Vec<IoSlice<'_>> = parts.iter().filter(|part| !part.is_empty()).map(|part| IoSlice::new(part)).collect();
        let mut rest = slices.as_mut_slice();
        while !rest.is_empty() {
            match self.file.write_vectored(rest) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => IoSlice::advance_slices(&mut rest, count),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    pub(super) fn write_pieces(&mut self, len: u64, piece: &mut [u8], make: &mut dyn FnMut(u64, &mut [u8])) -> io::Result<()> {
        let mut whole = Vec::new();
        let piece = if piece.is_empty() && len > 0 {
            whole.resize(usize::try_from(len).map_err(|_| io::ErrorKind::OutOfMemory)?, 0);
            &mut whole
        } else {
            piece
        };
        let mut at = 0;
        while at < len {
            let wanted = usize::try_from(len - at).unwrap_or(usize::MAX).min(piece.len());
            let front = piece.get_mut(..wanted).unwrap_or_default();
            make(at, front);
            self.file.write_all(front)?;
            at += wanted as u64;
        }
        Ok(())
    }

    pub(super) fn sync(&self) -> io::Result<()> {
        self.file.sync_all()
    }

    fn rename_to(&mut self, path: &Path) -> io::Result<()> {
        if let Some(temporary) = &self.path {
            fs::rename(temporary, path)?;
            self.path = None;
        }
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            // Nothing to be done about a failure here; `remove_abandoned` finds the file.
            let _ = fs::remove_file(path);
        }
    }
}

/// Unnamed files, as the system has them, and whether they work where a store lies.
#[derive(Debug)]
pub(super) struct Unnamed {
    open: fn(&Path) -> io::Result<File>,
    link: fn(&File, &Path) -> io::Result<()>,
    refused: AtomicBool,
}

impl Default for Unnamed {
    fn default() -> Self {
        Self { open: system::open, link: system::link, refused: AtomicBool::new(false) }
    }
}

impl Unnamed {
    /// An unnamed file in a directory, or one with a hidden name. Errors are those of the latter.
    pub(super) fn or_named(&self, dir: &Path) -> io::Result<Temporary> {
        if self.refused.load(Ordering::Relaxed) {
            return Temporary::named(dir);
        }
        match (self.open)(dir) {
            Ok(file) => Ok(Temporary { file, path: None }),
            Err(error) => {
                if is_refusal(&error) {
                    self.refused.store(true, Ordering::Relaxed);
                }
                Temporary::named(dir)
            }
        }
    }

    /// Gives a file the name `path` in one step, whatever file has had it before. Errors are those of renaming; a file without a name that
    /// cannot be given one is not found either, as if its directory had vanished, and the next one of this store has a name.
    pub(super) fn place(&self, temporary: &mut Temporary, path: &Path) -> io::Result<()> {
        if temporary.path.is_some() {
            return temporary.rename_to(path);
        }
        let linked = match (self.link)(&temporary.file, path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => self.name(temporary, path),
            linked => linked,
        };
        match linked {
            Err(error) if is_refusal(&error) => {
                self.refused.store(true, Ordering::Relaxed);
                Err(io::ErrorKind::NotFound.into())
            }
            Err(error) => Err(error),
            Ok(()) => temporary.rename_to(path),
        }
    }

    /// Gives an unnamed file a hidden name beside `path`.
    fn name(&self, temporary: &mut Temporary, path: &Path) -> io::Result<()> {
        loop {
            let hidden = path.with_file_name(temporary_name());
            match (self.link)(&temporary.file, &hidden) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                linked => return linked.map(|()| temporary.path = Some(hidden)),
            }
        }
    }
}

/// Whether an error may mean that there are no unnamed files here, or no names for them: those of file systems (`EOPNOTSUPP`, `EINVAL`),
/// of old kernels (`EISDIR`), and of those who restrict what a process may do (`EPERM`, `EACCES`, `EXDEV`).
fn is_refusal(error: &io::Error) -> bool {
    use io::ErrorKind::{CrossesDevices, InvalidInput, IsADirectory, PermissionDenied, Unsupported};
    matches!(error.kind(), Unsupported | InvalidInput | IsADirectory | PermissionDenied | CrossesDevices)
}

#[cfg(target_os = "linux")]
mod system {
    use std::fs::File;
    use std::io;
    use std::os::fd::AsRawFd;
    use std::path::Path;

    use rustix::fs::{AtFlags, CWD, Mode, OFlags, fstat, linkat, open as open_file, stat};
    use rustix::io::Errno;

    pub(super) fn open(dir: &Path) -> io::Result<File> {
        let file = open_file(dir, OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC, Mode::from_raw_mode(0o666))?;
        // Linux before 6.0 forgets the umask where a file system keeps no access control lists.
        if Mode::from_raw_mode(fstat(&file)?.st_mode).contains(Mode::WOTH) {
            return Err(io::ErrorKind::Unsupported.into());
        }
        Ok(file.into())
    }

    pub(super) fn link(file: &File, path: &Path) -> io::Result<()> {
        match linkat(file, "", CWD, path, AtFlags::EMPTY_PATH) {
            // Linux before 6.10 finds nothing by an empty path, unless the process may read everything.
            Err(Errno::NOENT) => link_by_proc(file, path),
            linked => Ok(linked?),
        }
    }

    pub(super) fn link_by_proc(file: &File, path: &Path) -> io::Result<()> {
        let name = format!("/proc/self/fd/{}", file.as_raw_fd());
        match linkat(CWD, &name, CWD, path, AtFlags::SYMLINK_FOLLOW) {
            // Not for want of the directory: `/proc` is not mounted.
            Err(Errno::NOENT) if stat(&name).is_err() => Err(io::ErrorKind::Unsupported.into()),
            linked => Ok(linked?),
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use std::fs::File;
    use std::io;
    use std::path::Path;

    pub(super) fn open(_: &Path) -> io::Result<File> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(super) fn link(_: &File, _: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use zarr_store_api::{
        ByteRange, Bytes, ListableStore, ReadableStore, StoreErrorKind, StoreKey, StorePrefix, StoredValue, WritableStore,
    };

    use super::*;
    use crate::file::TEMPORARY;
    use crate::filesystem::FilesystemStore;

    fn key(text: &str) -> StoreKey {
        StoreKey::new(text).unwrap()
    }

    fn no_file(_: &Path) -> io::Result<File> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn no_name(_: &File, _: &Path) -> io::Result<()> {
        Err(io::ErrorKind::PermissionDenied.into())
    }

    fn store(dir: &Path, unnamed: Unnamed) -> FilesystemStore {
        FilesystemStore { unnamed, ..FilesystemStore::new(dir).unwrap() }
    }

    /// Unnamed files as they are and as they may be, with whether they work.
    fn ways() -> Vec<(&'static str, Unnamed, bool)> {
        let mut ways = vec![
            ("no unnamed files", Unnamed { open: no_file, ..Unnamed::default() }, false),
            ("no names for them", Unnamed { link: no_name, ..Unnamed::default() }, false),
        ];
        let dir = tempfile::tempdir().unwrap();
        match system::open(dir.path()) {
            Ok(_) => ways.push(("the system's", Unnamed::default(), true)),
            Err(error) => eprintln!("skipped: no unnamed files here: {error}"),
        }
        #[cfg(target_os = "linux")]
        if ways.len() == 3 {
            ways.push(("by /proc", Unnamed { link: system::link_by_proc, ..Unnamed::default() }, true));
        }
        ways
    }

    fn hidden_files(dir: &Path) -> usize {
        let entries = fs::read_dir(dir).unwrap().flatten();
        let below = |entry: fs::DirEntry| match entry.file_type().unwrap().is_dir() {
            true => hidden_files(&entry.path()),
            false => usize::from(entry.file_name().to_string_lossy().starts_with(TEMPORARY)),
        };
        entries.map(below).sum()
    }

    #[test]
    fn either_way_stores_the_same_and_fails_the_same() {
        let mut messages = Vec::new();
        for (name, unnamed, works) in ways() {
            let dir = tempfile::tempdir().unwrap();
            let store = store(dir.path(), unnamed);
            let get = |text: &str| store.get(&key(text), ByteRange::All).unwrap();
            for value in ["new", "another", "", "third"] {
                for text in ["a", "b/c/d", "b/c/e"] {
                    store.set(&key(text), value.into()).unwrap();
                    assert_eq!(get(text).as_deref(), Some(value.as_bytes()), "{name}");
                }
            }
            fs::create_dir_all(dir.path().join("empty")).unwrap();
            store.set(&key("empty"), "value".into()).unwrap();
            assert_eq!(get("empty").as_deref(), Some(&b"value"[..]), "{name}");

            for (text, kind) in [
                ("b/c", StoreErrorKind::InvalidKey),
                ("a/b", StoreErrorKind::InvalidKey),
                ("a/b/c", StoreErrorKind::InvalidKey),
                (&"n".repeat(256), StoreErrorKind::InvalidKey),
            ] {
                let error = store.set(&key(text), "other".into()).unwrap_err();
                assert_eq!((error.kind(), error.stored()), (kind, Some(StoredValue::Old)), "{name}: {error}");
                messages.push((text.to_owned(), error.to_string().replace(dir.path().to_str().unwrap(), "DIR")));
            }
            assert_eq!(store.list(&StorePrefix::root()).unwrap().len(), 4, "{name}");
            assert_eq!(hidden_files(dir.path()), 0, "{name}");
            assert_eq!(store.unnamed.refused.load(Ordering::Relaxed), !works, "{name}");
        }
        messages.sort();
        messages.dedup();
        assert_eq!(messages.len(), 4, "{messages:#?}");
    }

    #[test]
    fn what_does_not_work_is_tried_once() {
        static TRIED: AtomicUsize = AtomicUsize::new(0);
        let open = |_: &Path| {
            TRIED.fetch_add(1, Ordering::Relaxed);
            no_file(Path::new(""))
        };
        let dir = tempfile::tempdir().unwrap();
        let store = store(dir.path(), Unnamed { open, ..Unnamed::default() });
        (0..5).for_each(|number| store.set(&key(&format!("a/{number}")), "value".into()).unwrap());
        assert_eq!(TRIED.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn no_room_for_a_name_is_said_and_not_remembered() {
        static ROOM: AtomicBool = AtomicBool::new(false);
        let dir = tempfile::tempdir().unwrap();
        let store = store(
            dir.path(),
            Unnamed {
                open: |dir| File::open(dir),
                link: |_, path| if ROOM.load(Ordering::Relaxed) { fs::write(path, "") } else { Err(io::ErrorKind::StorageFull.into()) },
                ..Unnamed::default()
            },
        );
        let error = store.set(&key("a"), Bytes::new()).unwrap_err();
        assert_eq!((error.kind(), error.stored()), (StoreErrorKind::NoSpace, Some(StoredValue::Old)), "{error}");
        ROOM.store(true, Ordering::Relaxed);
        store.set(&key("a"), Bytes::new()).unwrap();
        assert!(!store.unnamed.refused.load(Ordering::Relaxed));
    }

    #[test]
    fn a_directory_that_vanishes_is_made_again() {
        static VANISHED: AtomicBool = AtomicBool::new(false);
        let link = |file: &File, path: &Path| {
            if !VANISHED.swap(true, Ordering::Relaxed) {
                fs::remove_dir(path.parent().unwrap()).unwrap();
            }
            system::link(file, path)
        };
        let dir = tempfile::tempdir().unwrap();
        if system::open(dir.path()).is_err() {
            eprintln!("skipped: no unnamed files here");
            return;
        }
        let store = store(dir.path(), Unnamed { link, ..Unnamed::default() });
        store.set(&key("a/b"), "value".into()).unwrap();
        assert_eq!(store.get(&key("a/b"), ByteRange::All).unwrap().as_deref(), Some(&b"value"[..]));
        assert!(VANISHED.load(Ordering::Relaxed) && !store.unnamed.refused.load(Ordering::Relaxed));
    }

    #[test]
    fn of_writers_of_one_key_each_stores_a_whole_value() {
        for (name, unnamed, _) in ways() {
            let dir = tempfile::tempdir().unwrap();
            let store = store(dir.path(), unnamed);
            for round in 0..50 {
                let key = key(&format!("c/{}/{round}", round % 5));
                std::thread::scope(|scope| {
                    for writer in 1..=4u8 {
                        let (store, key) = (&store, &key);
                        scope.spawn(move || {
                            store.set(key, vec![writer; 50_000 + usize::from(writer)].into()).unwrap();
                            let read = store.get(key, ByteRange::All).unwrap().unwrap();
                            let first = *read.first().unwrap();
                            assert_eq!(read.len(), 50_000 + usize::from(first), "{name}");
                            assert!(read.iter().all(|byte| *byte == first), "{name}");
                        });
                    }
                });
            }
            assert_eq!(store.list(&StorePrefix::root()).unwrap().len(), 50, "{name}");
            assert_eq!(hidden_files(dir.path()), 0, "{name}");
        }
    }
}

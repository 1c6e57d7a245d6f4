//! Writing and removing files so that a reader sees the old value or the new one.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::time::Duration;

use zarr_store_api::{StoreError, StoreErrorKind, StoreKey, StorePrefix, StoredValue};

use super::temporary::Temporary;
use super::{Durability, FilesystemStore, means_absent, names};
use crate::file::{TEMPORARY, temporary_name};

/// How often a write starts again because someone removed its directory meanwhile.
const ATTEMPTS: usize = 200;

/// What a step of a write came to.
enum Step {
    Done,
    /// The directory vanished; start again.
    Again,
    Failed(StoreError),
}

impl FilesystemStore {
    pub(super) fn replace(&self, key: &StoreKey, parts: &[&[u8]]) -> Result<(), StoreError> {
        self.replace_with(key, &mut |temporary| temporary.write(parts))
    }

    /// Replaces a value by what `write` writes; it may be called several times.
    pub(super) fn replace_with(&self, key: &StoreKey, write: &mut dyn FnMut(&mut Temporary) -> io::Result<()>) -> Result<(), StoreError> {
        let path = self.path(key)?;
        if self.case_insensitive()
            && let Some(other) = names::real_name_differs(&self.root, key.as_str())
        {
            let message = format!("this file system takes it for the same name as `{other}`");
            return Err(StoreError::new(StoreErrorKind::InvalidKey, message).with_key(key).with_stored(StoredValue::Old));
        }
        for _ in 0..ATTEMPTS {
            match self.try_replace(&path, write) {
                Step::Done => return Ok(()),
                Step::Again => std::thread::yield_now(),
                Step::Failed(error) => {
                    let error = match error.stored() {
                        Some(_) => error,
                        None => error.with_stored(StoredValue::Old),
                    };
                    return Err(error.with_key(key));
                }
            }
        }
        let dir = path.parent().unwrap_or(&self.root);
        let error = match fs::create_dir_all(dir) {
            // Not a matter of others: the parent is there, and the system has no room for directories in it.
            Err(error) => StoreError::from_io(error, format!("cannot create the directory {}", dir.display())),
            Ok(()) => {
                let message = format!("others keep removing the directory {} while it is written to", dir.display());
                StoreError::new(StoreErrorKind::Transient, message)
            }
        };
        Err(error.with_key(key).with_stored(StoredValue::Old))
    }

    fn try_replace(&self, path: &Path, write: &mut dyn FnMut(&mut Temporary) -> io::Result<()>) -> Step {
        let dir = path.parent().unwrap_or(&self.root);
        let mut new_directory = false;
        let mut temporary = match self.temporary(dir) {
            Ok(temporary) => temporary,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                new_directory = true;
                if let Err(error) = fs::create_dir_all(dir) {
                    if let Some(link) = dir.ancestors().find(|dir| dir.is_symlink() && !dir.exists()) {
                        let message = format!("cannot create the directory {}: the link {} leads nowhere", dir.display(), link.display());
                        return Step::Failed(StoreError::from_io(error, message));
                    }
                    // Others may remove directories while they are made, and it fails in several ways.
                    let existing = dir.ancestors().find_map(|dir| fs::metadata(dir).ok());
                    return match error.kind() {
                        io::ErrorKind::NotFound => Step::Again,
                        io::ErrorKind::AlreadyExists if existing.is_some_and(|found| found.is_dir()) => Step::Again,
                        _ => failed(error, format!("cannot create the directory {}", dir.display())),
                    };
                }
                match self.temporary(dir) {
                    Ok(temporary) => temporary,
                    Err(error) if error.kind() == io::ErrorKind::NotFound => return Step::Again,
                    Err(error) => return failed(error, format!("cannot create a file in {}", dir.display())),
                }
            }
            Err(error) => return failed(error, format!("cannot create a file in {}", dir.display())),
        };
        if let Err(error) = write(&mut temporary) {
            return failed(error, format!("cannot write {}", path.display()));
        }
        if self.durability != Durability::Process
            && let Err(error) = temporary.sync()
        {
            return failed(error, format!("cannot make {} durable", path.display()));
        }
        match self.unnamed.place(&mut temporary, path) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Step::Again,
            // An empty directory in the way, as `erase` in another process may just leave it.
            Err(_) if path.is_dir() => {
                return match fs::remove_dir(path) {
                    Ok(()) => Step::Again,
                    Err(error) if error.kind() == io::ErrorKind::NotFound => Step::Again,
                    Err(error) => Step::Failed(
                        StoreError::new(StoreErrorKind::InvalidKey, "a file cannot have this name: there are keys below it")
                            .with_source(error),
                    ),
                };
            }
            Err(error) => return failed(error, format!("cannot put {} in place", path.display())),
        }
        if self.durability == Durability::FileAndDirectory
            && let Err(error) = self.sync_directories(dir, new_directory)
        {
            return Step::Failed(
                StoreError::from_io(error, format!("cannot make {} durable", dir.display())).with_stored(StoredValue::New),
            );
        }
        Step::Done
    }

    fn temporary(&self, dir: &Path) -> io::Result<Temporary> {
        match self.durability {
            Durability::Process => self.unnamed.or_named(dir),
            // Btrfs does not log a file without a name: `fsync` would not make all of it durable.
            Durability::File | Durability::FileAndDirectory => Temporary::named(dir),
        }
    }

    fn sync_directories(&self, dir: &Path, new_directory: bool) -> io::Result<()> {
        let up_to_root = dir.ancestors().take_while(|dir| dir.starts_with(&self.root));
        for dir in up_to_root.take(if new_directory { usize::MAX } else { 1 }) {
            // Directories cannot be opened as files on Windows, nor need they be.
            if cfg!(unix) {
                File::open(dir)?.sync_all()?;
            }
        }
        Ok(())
    }

    pub(super) fn remove(&self, key: &StoreKey) -> Result<(), StoreError> {
        let path = self.path(key)?;
        if self.case_insensitive() && names::real_name_differs(&self.root, key.as_str()).is_some() {
            return Ok(());
        }
        match fs::remove_file(&path) {
            Ok(()) => {
                self.remove_empty_directories(path.parent());
                Ok(())
            }
            Err(error) if means_absent(&error) => Ok(()),
            // Some systems refuse to unlink a directory with another error.
            Err(_) if path.is_dir() => Ok(()),
            Err(error) => {
                Err(StoreError::from_io(error, format!("cannot remove {}", path.display())).with_key(key).with_stored(StoredValue::Old))
            }
        }
    }

    pub(super) fn remove_below(&self, prefix: &StorePrefix) -> Result<(), StoreError> {
        let dir = self.dir(prefix)?;
        let failed = |error: io::Error, path: &Path| Err(StoreError::from_io(error, format!("cannot remove {}", path.display())));
        if !prefix.is_root() {
            if !dir.is_dir() {
                return Ok(());
            }
            if let Err(error) = remove_directory(&dir) {
                return failed(error, &dir);
            }
            self.remove_empty_directories(dir.parent());
            return Ok(());
        }
        let entries = match fs::read_dir(&dir) {
            Ok(entries) => entries,
            Err(error) if means_absent(&error) => return Ok(()),
            Err(error) => return failed(error, &dir),
        };
        for entry in entries.flatten() {
            let path = entry.path();
            let removed = match entry.file_type() {
                Ok(kind) if kind.is_dir() => remove_directory(&path),
                _ => fs::remove_file(&path),
            };
            match removed {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return failed(error, &path),
                _ => {}
            }
        }
        Ok(())
    }

    /// Removes directories upwards as long as they are empty; the root stays.
    fn remove_empty_directories(&self, from: Option<&Path>) {
        let ancestors = from.into_iter().flat_map(Path::ancestors);
        for dir in ancestors.take_while(|dir| *dir != self.root && dir.starts_with(&self.root)) {
            if fs::remove_dir(dir).is_err() {
                break;
            }
        }
    }

    pub(super) fn sweep(&self, older_than: Duration) -> Result<u64, StoreError> {
        let mut removed = 0;
        let mut todo = vec![self.root.clone()];
        while let Some(dir) = todo.pop() {
            let Ok(entries) = fs::read_dir(&dir) else { continue };
            for entry in entries.flatten() {
                let (path, Ok(kind)) = (entry.path(), entry.file_type()) else { continue };
                if !entry.file_name().to_string_lossy().starts_with(TEMPORARY) {
                    if kind.is_dir() {
                        todo.push(path);
                    }
                    continue;
                }
                let age = entry.metadata().and_then(|found| found.modified()).ok();
                if age.and_then(|age| age.elapsed().ok()).is_none_or(|age| age < older_than) {
                    continue;
                }
                let done = if kind.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
                match done {
                    Ok(()) => removed += 1,
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(error) => {
                        let message = format!("cannot remove {}", path.display());
                        return Err(StoreError::from_io(error, message));
                    }
                }
            }
        }
        Ok(removed)
    }
}

/// Takes a directory out of sight in one step, then removes it. Writers that are at work in it
/// find it gone and start again.
fn remove_directory(dir: &Path) -> io::Result<()> {
    let aside = dir.with_file_name(temporary_name());
    let result = match fs::rename(dir, &aside) {
        Ok(()) => fs::remove_dir_all(&aside),
        // A mount point, for instance.
        Err(_) => fs::remove_dir_all(dir),
    };
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

fn failed(error: io::Error, what: String) -> Step {
    Step::Failed(match error.kind() {
        io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => {
            StoreError::new(StoreErrorKind::InvalidKey, "a file cannot have this name: a value is stored where it needs a directory")
                .with_source(error)
        }
        _ => StoreError::from_io(error, what),
    })
}

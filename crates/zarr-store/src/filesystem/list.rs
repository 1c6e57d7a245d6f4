//! Listing directories.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use zarr_store_api::{Listing, StoreError, StoreKey, StorePrefix};

use super::means_absent;
use crate::file::TEMPORARY;

/// What a directory holds: names of files and of directories, as far as they can be keys.
#[derive(Default)]
pub(super) struct Entries {
    pub(super) files: Vec<String>,
    pub(super) directories: Vec<Directory>,
}

pub(super) struct Directory {
    pub(super) name: String,
    pub(super) is_link: bool,
}

/// Reads a directory; one that is not there is empty.
pub(super) fn read(dir: &Path) -> Result<Entries, StoreError> {
    let failed = |error: io::Error| StoreError::from_io(error, format!("cannot list {}", dir.display()));
    let mut entries = Entries::default();
    let found = match fs::read_dir(dir) {
        Ok(found) => found,
        Err(error) if means_absent(&error) => return Ok(entries),
        Err(error) => return Err(failed(error)),
    };
    for entry in found {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) if means_absent(&error) => continue,
            Err(error) => return Err(failed(error)),
        };
        // Names that are not UTF-8 cannot be keys.
        let Ok(name) = entry.file_name().into_string() else { continue };
        if name.starts_with(TEMPORARY) {
            continue;
        }
        let Ok(mut kind) = entry.file_type() else { continue };
        let is_link = kind.is_symlink();
        if is_link {
            // A link that leads nowhere is no key.
            let Ok(target) = fs::metadata(entry.path()) else { continue };
            kind = target.file_type();
        }
        if kind.is_dir() {
            entries.directories.push(Directory { name, is_link });
        } else if kind.is_file() {
            entries.files.push(name);
        }
    }
    Ok(entries)
}

pub(super) fn list_dir(dir: &Path, prefix: &StorePrefix) -> Result<Listing, StoreError> {
    let entries = read(dir)?;
    let mut listing = Listing::default();
    for name in entries.files {
        listing.keys.extend(prefix.key(&name));
    }
    for directory in entries.directories {
        listing.prefixes.extend(prefix.join(&directory.name));
    }
    listing.sort();
    Ok(listing)
}

/// A directory to visit: below a link, `above` has the real paths of all directories on the way,
/// to notice when the way leads in circles.
struct Visit {
    dir: PathBuf,
    prefix: StorePrefix,
    above: Option<Vec<PathBuf>>,
}

pub(super) fn list(dir: &Path, prefix: &StorePrefix) -> Result<Vec<StoreKey>, StoreError> {
    let mut keys = Vec::new();
    let mut todo = vec![Visit { dir: dir.to_owned(), prefix: prefix.clone(), above: None }];
    while let Some(mut visit) = todo.pop() {
        if let Some(above) = &mut visit.above {
            let Ok(real) = fs::canonicalize(&visit.dir) else { continue };
            if above.contains(&real) {
                continue;
            }
            above.push(real);
        }
        let entries = read(&visit.dir)?;
        for name in entries.files {
            keys.extend(visit.prefix.key(&name));
        }
        for directory in entries.directories {
            let Ok(prefix) = visit.prefix.join(&directory.name) else { continue };
            let above = match &visit.above {
                Some(above) => Some(above.clone()),
                None if directory.is_link => Some(real_ancestors(&visit.dir)),
                None => None,
            };
            todo.push(Visit { dir: visit.dir.join(&directory.name), prefix, above });
        }
    }
    keys.sort_unstable();
    Ok(keys)
}

fn real_ancestors(dir: &Path) -> Vec<PathBuf> {
    match fs::canonicalize(dir) {
        Ok(real) => real.ancestors().map(Path::to_owned).collect(),
        Err(_) => Vec::new(),
    }
}

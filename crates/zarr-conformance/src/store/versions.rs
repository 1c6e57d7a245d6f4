//! The laws of several reads of one version of a value, which async stores have.

use std::sync::Arc;

use zarr_store_api::{AnyStore, AsyncStore, ByteRange, Bytes, StoreErrorKind, StoreKey, Version};

use super::face::{Face, block_on, cannot, expect_kind};
use super::fixture::{MISSING, THOUSAND, key, pattern, value_of};
use super::ranges::{BAD_RANGES, RANGES, expect_out_of_range};
use super::{StoreCase, on_empty, on_filled};
use crate::suite::{Broken, ensure};

pub(super) fn cases() -> Vec<StoreCase> {
    vec![
        on_filled("read/one-version", "ranges of one version are those of the value, also for the version that came with them", versioned),
        on_empty("write/one-version", "a version that was replaced or removed is refused, and nothing else is read in its place", replaced),
    ]
}

fn asynchronous(store: &Face) -> Result<&Arc<dyn AsyncStore>, Broken> {
    match &store.0 {
        AnyStore::Async(store) => Ok(store),
        AnyStore::Blocking(_) => Err(Broken::Unsupported("a blocking store has readers instead".into())),
    }
}

fn versioned(store: &Face) -> Result<(), Broken> {
    let store = asynchronous(store)?;
    let (thousand, value) = (key(THOUSAND), value_of(THOUSAND));
    let mut version: Option<Version> = None;
    for _ in 0..2 {
        for (range, (start, end)) in RANGES {
            for ranges in [vec![*range], vec![*range, (3..5).into()]] {
                let Some((read, found)) = block_on(store.get_versioned(&thousand, &ranges, version.as_ref()))? else {
                    return Err(Broken::Failed(format!("{range} of one version is missing")));
                };
                ensure!(read.len() == ranges.len(), "{} ranges of one version give {} values", ranges.len(), read.len());
                ensure!(read.first().map(|read| &**read) == value.get(*start..*end), "{range} of one version is something else");
                ensure!(read.get(1).is_none_or(|read| Some(&**read) == value.get(3..5)), "a second range of one version is something else");
                ensure!(version.is_none() || found == version, "of version {version:?}, {found:?} is given");
                if version.is_none() {
                    version = found;
                }
            }
        }
    }
    for range in BAD_RANGES {
        for of in [None, version.as_ref()] {
            expect_out_of_range(&format!("{range} of one version"), block_on(store.get_versioned(&thousand, &[*range], of)))?;
        }
    }
    for name in MISSING {
        for ranges in [&[ByteRange::Suffix(3)][..], &[ByteRange::All, ByteRange::All], &[]] {
            let read = block_on(store.get_versioned(&key(name), ranges, None))?;
            ensure!(read.is_none(), "`{name}` is not there, and has a version");
        }
    }
    Ok(())
}

/// Reads a value, and says of which version it is.
fn version_of(store: &Arc<dyn AsyncStore>, key: &StoreKey, value: &Bytes) -> Result<Option<Version>, Broken> {
    let read = block_on(store.get_versioned(key, &[ByteRange::All], None))?;
    ensure!(read.as_ref().is_some_and(|(read, _)| read.as_slice() == [value.clone()]), "`{key}` reads something else");
    Ok(read.and_then(|(_, version)| version))
}

fn replaced(face: &Face) -> Result<(), Broken> {
    let store = asynchronous(face)?;
    let writable = store.as_writable().ok_or_else(|| cannot("written to"))?;
    let (key, one, other) = (key("replaced"), pattern(1000, 3), pattern(1000, 4));
    face.set(&key, one.clone())?;
    let Some(version) = version_of(store, &key, &one)? else { return Ok(()) };
    let refuses = |what: &str| -> Result<(), Broken> {
        for ranges in [&[ByteRange::All][..], &[ByteRange::from(5..10)], &[ByteRange::Suffix(7)], &[(0..3).into(), (900..999).into()]] {
            let read = block_on(store.get_versioned(&key, ranges, Some(&version)));
            expect_kind(&format!("a read of a version {what}"), StoreErrorKind::Replaced, read)?;
        }
        Ok(())
    };
    block_on(writable.set(&key, other.clone()))?;
    refuses("that was replaced")?;
    let new = version_of(store, &key, &other)?;
    ensure!(new.as_ref() != Some(&version), "two values are of one version");
    block_on(writable.erase(&key))?;
    refuses("of a value that was removed")
}

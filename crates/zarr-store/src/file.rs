//! Positioned reads of files, and files that are being written.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use zarr_store_api::{StoreError, StoreErrorKind};

/// What the names of temporary files begin with. They are short whatever the key is, so that a
/// key may use the whole length that the file system allows.
pub(crate) const TEMPORARY: &str = ".zarr-partial.";

/// Creates a file to write to, with a name that nothing has. What a writer that was killed left is in nobody's way, also not in that of a process of the same number.
pub(crate) fn create_temporary(dir: &Path) -> io::Result<(PathBuf, File)> {
    loop {
        let path = dir.join(temporary_name());
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(file) => return Ok((path, file)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
}

/// A name no other writer uses: not in this process, nor in another one, nor on another machine
/// that shares the directory (and should two meet after all, creating the file fails).
pub(crate) fn temporary_name() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let next = NEXT.fetch_add(1, Ordering::Relaxed);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().subsec_nanos();
    format!("{TEMPORARY}{:x}.{next:x}.{now:x}", std::process::id())
}

/// Reads up to `dst.len()` bytes at `offset`; fewer only where the file ends.
pub(crate) fn read_at(file: &File, offset: u64, dst: &mut [u8]) -> io::Result<usize> {
    let mut done = 0;
    while let Some(rest) = dst.get_mut(done..).filter(|rest| !rest.is_empty()) {
        match positioned_read(file, rest, offset.saturating_add(done as u64)) {
            Ok(0) => break,
            Ok(count) => done += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

/// Reads up to `length` bytes at `offset` into fresh memory, which is not zeroed first.
pub(crate) fn read_vec(file: &File, offset: u64, length: u64) -> Result<Vec<u8>, StoreError> {
    let mut bytes = Vec::new();
    let wanted = usize::try_from(length).ok();
    if wanted.is_none_or(|wanted| bytes.try_reserve_exact(wanted).is_err()) {
        return Err(StoreError::new(StoreErrorKind::Limit, format!("no memory for {length} bytes")));
    }
    fill(file, offset, length, &mut bytes).map_err(|error| StoreError::from_io(error, "cannot read"))?;
    Ok(bytes)
}

#[cfg(unix)]
fn positioned_read(file: &File, dst: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, dst, offset)
}

#[cfg(unix)]
fn fill(file: &File, offset: u64, length: u64, bytes: &mut Vec<u8>) -> io::Result<()> {
    while (bytes.len() as u64) < length && bytes.len() < bytes.capacity() {
        let position = offset.saturating_add(bytes.len() as u64);
        match rustix::io::pread(file, rustix::buffer::spare_capacity(bytes), position) {
            Ok(0) => break,
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    // The allocator may have given more room than was asked for.
    bytes.truncate(usize::try_from(length).unwrap_or(usize::MAX));
    Ok(())
}

#[cfg(windows)]
fn positioned_read(file: &File, dst: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, dst, offset)
}

#[cfg(windows)]
fn fill(file: &File, offset: u64, length: u64, bytes: &mut Vec<u8>) -> io::Result<()> {
    bytes.resize(usize::try_from(length).unwrap_or(usize::MAX), 0);
    let done = read_at(file, offset, bytes)?;
    bytes.truncate(done);
    Ok(())
}

//! Writing an archive.

use std::collections::BTreeMap;
use std::fs::{self, File, Metadata, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use flate2::{Compression, write::DeflateEncoder};
use zarr_store_api::{StoreError, StoreErrorKind, StoreKey, StoredValue};

use super::ZipWriteOptions;
use super::directory::{
    CENTRAL_HEADER, DEFLATED, END_RECORD, Entry, LOCAL_HEADER, STORED, UTF8, ZIP64_END_LOCATOR, ZIP64_END_RECORD, ZIP64_EXTRA,
};
use crate::file::create_temporary;

/// Version of the specification needed to extract: 2.0, or 4.5 for zip64.
const VERSION: u16 = 20;
const VERSION_ZIP64: u16 = 45;
/// Made by: Unix, 4.5. Then the external attributes are a file mode.
const MADE_BY: u16 = 3 << 8 | VERSION_ZIP64;
/// An ordinary file, `rw-r--r--`.
const FILE_MODE: u32 = 0o100_644 << 16;
/// 1980-01-01, the first day there is: the same values make the same archive.
const DATE: u16 = 1 << 5 | 1;

#[derive(Debug)]
pub(super) struct Writer {
    target: PathBuf,
    temporary: PathBuf,
    /// `None` once the archive is closed or given up.
    file: Option<File>,
    /// Where the next entry goes; the file may be longer after a write that failed.
    end: u64,
    options: ZipWriteOptions,
    /// What was at the target before.
    replaces: Option<Stamp>,
    /// The process that writes, and not one that was forked from it: those share the file, and where it is written next.
    process: u32,
}

/// Which file it is, and since when.
#[derive(Debug, PartialEq, Eq)]
struct Stamp {
    len: u64,
    modified: Option<SystemTime>,
    /// Device and number, where files have them.
    file: Option<(u64, u64)>,
}

impl Stamp {
    /// `None`: there is no file.
    fn of(path: &Path) -> io::Result<Option<Self>> {
        match fs::metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            metadata => Ok(Some(Self::new(&metadata?))),
        }
    }

    fn new(metadata: &Metadata) -> Self {
        #[cfg(unix)]
        let file = {
            use std::os::unix::fs::MetadataExt;
            Some((metadata.dev(), metadata.ino()))
        };
        #[cfg(not(unix))]
        let file = None;
        Self { len: metadata.len(), modified: metadata.modified().ok(), file }
    }
}

impl Writer {
    /// The writer of an archive, and a handle to read it by.
    pub(super) fn create(target: &Path, options: ZipWriteOptions) -> Result<(Self, File), StoreError> {
        let mut target = std::path::absolute(target).map_err(|error| StoreError::from_io(error, "cannot make the path absolute"))?;
        if target.is_symlink() {
            // What it leads to is replaced, or made, and not the link.
            let beside = |link: PathBuf| target.parent().unwrap_or(&target).join(link);
            let led = fs::canonicalize(&target).or_else(|_| fs::read_link(&target).map(beside));
            target = led.map_err(|error| StoreError::from_io(error, format!("cannot follow the link {}", target.display())))?;
        }
        let dir = target.parent().unwrap_or(&target);
        let failed = |error: io::Error| StoreError::from_io(error, format!("cannot create a file in {}", dir.display()));
        let replaces = Stamp::of(&target).map_err(failed)?;
        let (temporary, file) = create_temporary(dir).map_err(failed)?;
        let reader = File::open(&temporary).map_err(failed)?;
        Ok((Self { target, temporary, file: Some(file), end: 0, options, replaces, process: std::process::id() }, reader))
    }

    /// As [`create`](Self::create), beginning with the first `end` bytes of the old archive, which is open as `old`.
    pub(super) fn append(target: &Path, mut old: &File, end: u64, options: ZipWriteOptions) -> Result<(Self, File), StoreError> {
        let (mut writer, reader) = Self::create(target, options)?;
        let copied = old.metadata().and_then(|metadata| {
            writer.replaces = Some(Stamp::new(&metadata));
            old.seek(SeekFrom::Start(0))?;
            let Some(file) = &mut writer.file else { return Ok(0) };
            io::copy(&mut old.take(end), file)
        });
        match copied {
            Ok(copied) if copied == end => {
                writer.end = end;
                Ok((writer, reader))
            }
            Ok(_) => {
                writer.abandon();
                Err(StoreError::new(StoreErrorKind::Corrupt, "the archive became shorter while it was copied"))
            }
            Err(error) => {
                writer.abandon();
                Err(StoreError::from_io(error, "cannot copy the archive"))
            }
        }
    }

    pub(super) fn check_open(&self) -> Result<(), StoreError> {
        match self.file {
            Some(_) if self.is_forked() => {
                Err(StoreError::read_only("the archive is written by the process that this one was forked from"))
            }
            Some(_) => Ok(()),
            None => Err(StoreError::read_only("the archive is closed")),
        }
    }

    /// Whether this is another process than the one that writes.
    pub(super) fn is_forked(&self) -> bool {
        self.process != std::process::id()
    }

    /// Appends a value. After an error the archive is as before.
    pub(super) fn add(&mut self, key: &StoreKey, parts: &[&[u8]]) -> Result<Entry, StoreError> {
        self.check_open()?;
        let name = key.as_str();
        if name.len() > usize::from(u16::MAX) {
            return Err(
                StoreError::new(StoreErrorKind::InvalidKey, "names in zip archives have at most 65535 bytes").with_stored(StoredValue::Old)
            );
        }
        let mut crc32 = crc32fast::Hasher::new();
        parts.iter().for_each(|part| crc32.update(part));
        let deflated = self.options.deflate_level.map(|level| deflate(parts, level));
        let data = deflated.as_ref().map(|bytes| [bytes.as_slice()]);
        let data: &[&[u8]] = data.as_ref().map_or(parts, |whole| whole);
        let total = |parts: &[&[u8]]| parts.iter().map(|part| part.len() as u64).sum();
        let entry = Entry {
            flags: UTF8,
            method: if deflated.is_some() { DEFLATED } else { STORED },
            crc32: crc32.finalize(),
            compressed_size: total(data),
            size: total(parts),
            header: self.end,
            data: OnceLock::new(),
        };
        let header = local_header(&entry, name);
        let offset = self.end + header.len() as u64;
        let written = self.write_at_end(&header, data);
        match written {
            Ok(()) => {
                self.end = offset + entry.compressed_size;
                Ok(Entry { data: OnceLock::from(offset), ..entry })
            }
            Err(error) => Err(StoreError::from_io(error, "cannot write to the archive").with_stored(StoredValue::Old)),
        }
    }

    fn write_at_end(&mut self, header: &[u8], parts: &[&[u8]]) -> io::Result<()> {
        let Some(file) = &mut self.file else { return Err(io::ErrorKind::NotConnected.into()) };
        file.seek(SeekFrom::Start(self.end))?;
        file.write_all(header)?;
        parts.iter().try_for_each(|part| file.write_all(part))
    }

    /// Writes the directory and puts the archive in place.
    pub(super) fn finish(&mut self, entries: &BTreeMap<StoreKey, Arc<Entry>>) -> Result<(), StoreError> {
        if self.file.is_none() {
            return Ok(());
        }
        self.check_open()?;
        let mut directory = Vec::new();
        for (key, entry) in entries {
            central_header(&mut directory, entry, key.as_str());
        }
        end_records(&mut directory, entries.len() as u64, self.end);
        let result = self.write_at_end(&directory, &[]).and_then(|()| {
            let Some(file) = &self.file else { return Ok(()) };
            // A write that failed may have left bytes behind the end.
            file.set_len(self.end + directory.len() as u64)?;
            if self.options.sync {
                file.sync_all()?;
            }
            self.replace()
        });
        match result {
            Ok(()) => {
                self.file = None;
                Ok(())
            }
            Err(error) => {
                Err(StoreError::from_io(error, format!("cannot complete the archive {}", self.target.display()))
                    .with_stored(StoredValue::Old))
            }
        }
    }

    /// Gives the file its name, unless somebody else did so meanwhile: of several writers that get here at once, by a lock of what they replace, or by a name that is there
    /// already. Where a file system has no locks, there is a moment in which one is not noticed.
    fn replace(&self) -> io::Result<()> {
        let replaced = || io::Error::other("somebody else changed it meanwhile");
        let opened = File::open(&self.target);
        if opened.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
            // What was there and was removed need not be kept.
            return match fs::hard_link(&self.temporary, &self.target) {
                Ok(()) => {
                    // Otherwise it is left behind; it is in nobody's way.
                    let _ = fs::remove_file(&self.temporary);
                    Ok(())
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(replaced()),
                // A file system without links.
                Err(_) => fs::rename(&self.temporary, &self.target),
            };
        }
        // What cannot be read cannot be locked, and may be replaced nevertheless.
        let _locked = opened.ok().and_then(lock);
        if Stamp::of(&self.target)? != self.replaces {
            return Err(replaced());
        }
        fs::rename(&self.temporary, &self.target)
    }

    pub(super) fn abandon(&mut self) {
        if self.is_forked() {
            self.file = None;
        }
        if self.file.take().is_some() {
            // A file that cannot be removed is left behind; it is in nobody's way.
            let _ = fs::remove_file(&self.temporary);
        }
    }
}

/// Locks a file until what this gives is dropped. Who changes an archive holds its lock for a moment: one that is held for longer is somebody else's, and says nothing.
fn lock(file: File) -> Option<File> {
    // Elsewhere a file that is open may not be replaced.
    if cfg!(not(unix)) {
        return None;
    }
    for _ in 0..500 {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(2)),
            _ => break,
        }
    }
    Some(file)
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.abandon();
    }
}

fn deflate(parts: &[&[u8]], level: u32) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::new(level.min(9)));
    for part in parts {
        // Writing to memory does not fail.
        let _ = encoder.write_all(part);
    }
    encoder.finish().unwrap_or_default()
}

fn put16(out: &mut Vec<u8>, value: u16) {
    out.extend_from_slice(&value.to_le_bytes());
}

fn put32(out: &mut Vec<u8>, value: u32) {
    out.extend_from_slice(&value.to_le_bytes());
}

fn put64(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(&value.to_le_bytes());
}

/// The value of a 32-bit field, which is all ones if the zip64 field has it instead.
fn narrow(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

fn is_wide(value: u64) -> bool {
    value >= u64::from(u32::MAX)
}

/// The fields that local and central header share, from the version needed to the name's length.
fn common_fields(out: &mut Vec<u8>, entry: &Entry, name: &str, sizes: [u32; 2], wide: bool) {
    put16(out, if wide { VERSION_ZIP64 } else { VERSION });
    put16(out, entry.flags);
    put16(out, entry.method);
    put16(out, 0);
    put16(out, DATE);
    put32(out, entry.crc32);
    put32(out, sizes[0]);
    put32(out, sizes[1]);
    // The length was checked when the entry was added, or read from a field of this size.
    put16(out, name.len() as u16);
}

fn zip64_extra(values: &[u64]) -> Vec<u8> {
    let mut extra = Vec::new();
    if !values.is_empty() {
        put16(&mut extra, ZIP64_EXTRA);
        put16(&mut extra, 8 * values.len() as u16);
        values.iter().for_each(|value| put64(&mut extra, *value));
    }
    extra
}

fn local_header(entry: &Entry, name: &str) -> Vec<u8> {
    // In the local header the two sizes go to the zip64 field together.
    let wide = is_wide(entry.size) || is_wide(entry.compressed_size);
    let (sizes, extra) = if wide {
        ([u32::MAX; 2], zip64_extra(&[entry.size, entry.compressed_size]))
    } else {
        ([narrow(entry.compressed_size), narrow(entry.size)], Vec::new())
    };
    let mut out = Vec::with_capacity(30 + name.len() + extra.len());
    put32(&mut out, LOCAL_HEADER);
    common_fields(&mut out, entry, name, sizes, wide);
    put16(&mut out, extra.len() as u16);
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(&extra);
    out
}

fn central_header(out: &mut Vec<u8>, entry: &Entry, name: &str) {
    let wide: Vec<u64> = [entry.size, entry.compressed_size, entry.header].into_iter().filter(|value| is_wide(*value)).collect();
    let extra = zip64_extra(&wide);
    let sizes = [narrow(entry.compressed_size), narrow(entry.size)];
    put32(out, CENTRAL_HEADER);
    put16(out, MADE_BY);
    common_fields(out, entry, name, sizes, !wide.is_empty());
    put16(out, extra.len() as u16);
    // No comment, first disk, no internal attributes.
    put16(out, 0);
    put16(out, 0);
    put16(out, 0);
    put32(out, FILE_MODE);
    put32(out, narrow(entry.header));
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(&extra);
}

/// Ends a directory that begins at `offset`.
fn end_records(out: &mut Vec<u8>, entries: u64, offset: u64) {
    let size = out.len() as u64;
    if entries >= u64::from(u16::MAX) || is_wide(size) || is_wide(offset) {
        put32(out, ZIP64_END_RECORD);
        // The size of what follows this field.
        put64(out, 44);
        put16(out, MADE_BY);
        put16(out, VERSION_ZIP64);
        put32(out, 0);
        put32(out, 0);
        put64(out, entries);
        put64(out, entries);
        put64(out, size);
        put64(out, offset);
        put32(out, ZIP64_END_LOCATOR);
        put32(out, 0);
        put64(out, offset + size);
        put32(out, 1);
    }
    let count = u16::try_from(entries).unwrap_or(u16::MAX);
    put32(out, END_RECORD);
    put16(out, 0);
    put16(out, 0);
    put16(out, count);
    put16(out, count);
    put32(out, narrow(size));
    put32(out, narrow(offset));
    put16(out, 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_copied_and_replaced_is_the_archive_whose_directory_was_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.zip");
        fs::write(&path, b"first").unwrap();
        let old = File::open(&path).unwrap();
        let other = directory.path().join("other");
        fs::write(&other, b"other").unwrap();
        fs::rename(&other, &path).unwrap();
        let (mut writer, mut reader) = Writer::append(&path, &old, 5, ZipWriteOptions::default()).unwrap();
        let mut copied = Vec::new();
        reader.read_to_end(&mut copied).unwrap();
        assert_eq!(copied, b"first");
        writer.finish(&BTreeMap::new()).unwrap_err();
        assert_eq!(fs::read(&path).unwrap(), b"other");
    }
}

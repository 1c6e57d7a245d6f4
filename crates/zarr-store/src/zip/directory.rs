//! The central directory, read.

#![deny(clippy::arithmetic_side_effects, clippy::cast_possible_truncation, clippy::indexing_slicing)]

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use zarr_store_api::{StoreError, StoreErrorKind, StoreKey};

use super::source::Source;

pub(super) const LOCAL_HEADER: u32 = 0x0403_4b50;
pub(super) const CENTRAL_HEADER: u32 = 0x0201_4b50;
pub(super) const END_RECORD: u32 = 0x0605_4b50;
pub(super) const ZIP64_END_RECORD: u32 = 0x0606_4b50;
pub(super) const ZIP64_END_LOCATOR: u32 = 0x0706_4b50;
/// Header id of the zip64 extended information extra field.
pub(super) const ZIP64_EXTRA: u16 = 1;
/// General purpose bit 0: the entry is encrypted.
pub(super) const ENCRYPTED: u16 = 1;
/// General purpose bit 11: the name is UTF-8.
pub(super) const UTF8: u16 = 1 << 11;
/// Compression methods.
pub(super) const STORED: u16 = 0;
pub(super) const DEFLATED: u16 = 8;

const END_RECORD_SIZE: usize = 22;
const ZIP64_LOCATOR_SIZE: usize = 20;
const ZIP64_END_RECORD_SIZE: u64 = 56;
const LOCAL_HEADER_SIZE: u64 = 30;
const LONGEST_COMMENT: u64 = 0xffff;

/// What the directory says about a value.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) flags: u16,
    pub(super) method: u16,
    pub(super) crc32: u32,
    pub(super) compressed_size: u64,
    /// Size of the value, in bytes.
    pub(super) size: u64,
    /// Offset of the local header.
    pub(super) header: u64,
    /// Offset of the first byte of data, once known: the local header says how long it is.
    pub(super) data: OnceLock<u64>,
}

impl Entry {
    /// The offset of the first byte of data.
    pub(super) fn data(&self, source: &Source) -> Result<u64, StoreError> {
        if let Some(data) = self.data.get() {
            return Ok(*data);
        }
        let header = source.read(self.header, LOCAL_HEADER_SIZE)?;
        let mut fields = Fields(&header);
        if fields.u32()? != LOCAL_HEADER {
            return Err(corrupt("the directory names a local header that is none"));
        }
        fields.skip(22)?;
        let (name, extra) = (u64::from(fields.u16()?), u64::from(fields.u16()?));
        let data = [LOCAL_HEADER_SIZE, name, extra]
            .into_iter()
            .try_fold(self.header, u64::checked_add)
            .ok_or_else(|| corrupt("the offset of an entry overflows"))?;
        Ok(*self.data.get_or_init(|| data))
    }
}

/// An archive's directory.
#[derive(Debug)]
pub(super) struct Directory {
    /// Where the directory begins, which is where entries end.
    pub(super) offset: u64,
    pub(super) entries: BTreeMap<StoreKey, Arc<Entry>>,
}

pub(super) fn read(source: &Source, limit: u64) -> Result<Directory, StoreError> {
    let end = find_end(source)?;
    if end.directory_size > limit {
        return Err(StoreError::new(
            StoreErrorKind::Limit,
            format!("the directory has {} bytes, the limit is {limit}", end.directory_size),
        ));
    }
    // Offsets in the archive count from the beginning of the first entry, before which other
    // things (a self-extractor) may have been put. The directory ends where its end record begins.
    let offset = end.position.checked_sub(end.directory_size).ok_or_else(|| corrupt("the directory is larger than the archive"))?;
    let shift = offset.checked_sub(end.directory_offset).ok_or_else(|| corrupt("the directory overlaps its end record"))?;
    let bytes = source.read(offset, end.directory_size)?;
    let mut fields = Fields(&bytes);
    let mut entries = BTreeMap::new();
    for _ in 0..end.entries {
        if let Some((key, entry)) = central_header(&mut fields, shift)? {
            // Of several entries with the same name, the last one counts.
            entries.insert(key, Arc::new(entry));
        }
    }
    Ok(Directory { offset, entries })
}

/// What the end record says, in its zip64 form where there is one.
struct End {
    /// Offset of the end record (the zip64 one if there is one).
    position: u64,
    entries: u64,
    directory_size: u64,
    directory_offset: u64,
}

fn find_end(source: &Source) -> Result<End, StoreError> {
    let size = source.size();
    let tail_size = size.min(LONGEST_COMMENT.saturating_add(END_RECORD_SIZE as u64));
    let tail_offset = size.saturating_sub(tail_size);
    let tail = source.read(tail_offset, tail_size)?;

    // Backwards, as what comes last is right; a comment may contain the signature, too, but
    // then the length of the comment does not fit.
    let fits = |at: &usize| {
        let comment = tail.get(at.saturating_add(END_RECORD_SIZE)..).map(<[u8]>::len);
        let mut record = Fields(tail.get(*at..).unwrap_or_default());
        record.u32().is_ok_and(|found| found == END_RECORD)
            && record.skip(16).is_ok()
            && record.u16().is_ok_and(|stated| comment == Some(stated.into()))
    };
    let last = tail.len().saturating_sub(END_RECORD_SIZE);
    let at = (0..=last).rev().find(fits).ok_or_else(|| corrupt("there is no end record: not a zip archive, or not all of it"))?;
    let mut fields = Fields(tail.get(at..).unwrap_or_default());
    fields.skip(4)?;
    let (disk, directory_disk, here) = (fields.u16()?, fields.u16()?, fields.u16()?);
    let mut end = End {
        position: tail_offset.saturating_add(at as u64),
        entries: fields.u16()?.into(),
        directory_size: fields.u32()?.into(),
        directory_offset: fields.u32()?.into(),
    };
    let locator = at
        .checked_sub(ZIP64_LOCATOR_SIZE)
        .and_then(|from| tail.get(from..at))
        .map(Fields)
        .filter(|locator| locator.clone().u32().is_ok_and(|found| found == ZIP64_END_LOCATOR));
    if let Some(mut locator) = locator {
        locator.skip(8)?;
        zip64_end(source, &mut end, locator.u64()?)?;
    } else if (disk, directory_disk) != (0, 0) || u64::from(here) != end.entries {
        return Err(StoreError::unsupported("the archive is split over several files"));
    }
    Ok(end)
}

fn zip64_end(source: &Source, end: &mut End, stated: u64) -> Result<(), StoreError> {
    // Right before the locator as a rule; the locator's own word fails where something was put
    // before the archive.
    let adjacent = end.position.checked_sub(ZIP64_LOCATOR_SIZE as u64).and_then(|locator| locator.checked_sub(ZIP64_END_RECORD_SIZE));
    for position in adjacent.into_iter().chain([stated]) {
        let Ok(record) = source.read(position, ZIP64_END_RECORD_SIZE) else { continue };
        let mut fields = Fields(&record);
        if fields.u32()? != ZIP64_END_RECORD {
            continue;
        }
        fields.skip(12)?;
        let (disk, directory_disk, here) = (fields.u32()?, fields.u32()?, fields.u64()?);
        *end = End { position, entries: fields.u64()?, directory_size: fields.u64()?, directory_offset: fields.u64()? };
        if (disk, directory_disk) != (0, 0) || here != end.entries {
            return Err(StoreError::unsupported("the archive is split over several files"));
        }
        return Ok(());
    }
    Err(corrupt("the zip64 end record is not where it should be"))
}

/// The next entry; `None` where its name cannot be a key.
fn central_header(fields: &mut Fields<'_>, shift: u64) -> Result<Option<(StoreKey, Entry)>, StoreError> {
    if fields.u32()? != CENTRAL_HEADER {
        return Err(corrupt("the directory is damaged, or has fewer entries than it says"));
    }
    fields.skip(4)?;
    let (flags, method) = (fields.u16()?, fields.u16()?);
    fields.skip(4)?;
    let crc32 = fields.u32()?;
    let (compressed_size, size) = (fields.u32()?, fields.u32()?);
    let (name, extra, comment) = (fields.u16()?, fields.u16()?, fields.u16()?);
    fields.skip(8)?;
    let header = fields.u32()?;
    let name = fields.bytes(name.into())?;
    let mut extras = Fields(fields.bytes(extra.into())?);
    fields.skip(comment.into())?;

    // The zip64 field holds, in this order, those of the values that do not fit their own field.
    let mut wide = Fields(&[]);
    while let (Ok(id), Ok(length)) = (extras.u16(), extras.u16()) {
        let Ok(body) = extras.bytes(length.into()) else { break };
        if id == ZIP64_EXTRA {
            wide = Fields(body);
        }
    }
    let mut widened = |narrow: u32| match narrow {
        u32::MAX => wide.u64(),
        narrow => Ok(u64::from(narrow)),
    };
    let size = widened(size)?;
    let compressed_size = widened(compressed_size)?;
    let header = widened(header)?.checked_add(shift).ok_or_else(|| corrupt("the offset of an entry overflows"))?;

    let key = std::str::from_utf8(name).ok().and_then(|name| StoreKey::new(name).ok());
    let data = OnceLock::new();
    Ok(key.map(|key| (key, Entry { flags, method, crc32, compressed_size, size, header, data })))
}

/// Little-endian fields, taken from the front.
#[derive(Clone)]
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn bytes(&mut self, count: usize) -> Result<&'a [u8], StoreError> {
        let Some((front, rest)) = self.0.split_at_checked(count) else {
            return Err(corrupt("the directory is cut off"));
        };
        self.0 = rest;
        Ok(front)
    }

    fn skip(&mut self, count: usize) -> Result<(), StoreError> {
        self.bytes(count).map(drop)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], StoreError> {
        match self.bytes(N)?.first_chunk() {
            Some(array) => Ok(*array),
            None => Err(corrupt("the directory is cut off")),
        }
    }

    fn u16(&mut self) -> Result<u16, StoreError> {
        self.array().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Result<u32, StoreError> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, StoreError> {
        self.array().map(u64::from_le_bytes)
    }
}

pub(super) fn corrupt(message: &str) -> StoreError {
    StoreError::new(StoreErrorKind::Corrupt, message)
}

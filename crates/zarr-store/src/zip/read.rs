//! Reading the data of an entry.

#![deny(clippy::arithmetic_side_effects, clippy::cast_possible_truncation, clippy::indexing_slicing)]

use std::io::{self, Read};
use std::ops::Range;

use flate2::bufread::DeflateDecoder;
use zarr_store_api::{ByteRange, Bytes, StoreError, StoreErrorKind};

use super::directory::{DEFLATED, ENCRYPTED, Entry, STORED, corrupt};
use super::source::Source;
use crate::bytes_of;

/// Deflate turns one byte into 1032 at most: two bits that stand for 258 bytes.
const LARGEST_RATIO: u64 = 1032;
/// How much compressed data is read at once.
const PIECE: u64 = 1 << 18;

pub(super) fn get(source: &Source, entry: &Entry, range: ByteRange, limit: u64) -> Result<Bytes, StoreError> {
    let bounds = range.resolve(entry.size)?;
    match method(entry)? {
        Method::Stored => {
            let bytes = source.read(stored_offset(source, entry, &bounds)?, length(&bounds))?;
            check_crc(entry, &bounds, &bytes)?;
            Ok(bytes)
        }
        Method::Deflated => inflate(source, entry, bounds, limit).map(Bytes::from),
    }
}

pub(super) fn get_ranges(source: &Source, entry: &Entry, ranges: &[ByteRange], limit: u64) -> Result<Vec<Bytes>, StoreError> {
    // A deflated entry is inflated once for all ranges.
    if matches!(method(entry)?, Method::Deflated) && ranges.len() > 1 {
        let whole = get(source, entry, ByteRange::All, limit)?;
        return ranges.iter().map(|range| bytes_of(&whole, *range)).collect();
    }
    ranges.iter().map(|range| get(source, entry, *range, limit).map_err(|error| error.with_range(*range))).collect()
}

pub(super) fn get_into(source: &Source, entry: &Entry, range: ByteRange, dst: &mut [u8]) -> Result<usize, StoreError> {
    let bounds = range.resolve(entry.size)?;
    let capacity = dst.len();
    let front = usize::try_from(length(&bounds)).ok().and_then(|length| dst.get_mut(..length));
    let Some(front) = front else {
        return Err(StoreError::destination_too_short(length(&bounds), capacity));
    };
    match method(entry)? {
        Method::Stored => {
            source.read_into(stored_offset(source, entry, &bounds)?, front)?;
            check_crc(entry, &bounds, front)?;
        }
        Method::Deflated => {
            let mut inflated = Inflated::open(source, entry)?;
            inflated.skip_to(bounds.start)?;
            inflated.fill(front)?;
            if bounds == (0..entry.size) {
                inflated.expect_end()?;
            }
            check_crc(entry, &bounds, front)?;
        }
    }
    Ok(front.len())
}

/// As [`get`], piece by piece where the entry is stored.
pub(super) fn get_pieces(
    source: &Source,
    entry: &Entry,
    range: ByteRange,
    limit: u64,
    piece: &mut [u8],
    each: &mut dyn FnMut(u64, &[u8]),
) -> Result<u64, StoreError> {
    if piece.is_empty() || matches!(method(entry)?, Method::Deflated) {
        let bytes = get(source, entry, range, limit)?;
        each(0, &bytes);
        return Ok(bytes.len() as u64);
    }
    let bounds = range.resolve(entry.size)?;
    let (start, length) = (stored_offset(source, entry, &bounds)?, length(&bounds));
    let mut crc32 = crc32fast::Hasher::new();
    let mut at: u64 = 0;
    while at < length {
        let count = usize::try_from(length.saturating_sub(at)).unwrap_or(usize::MAX).min(piece.len());
        let front = piece.get_mut(..count).unwrap_or_default();
        source.read_into(start.saturating_add(at), front)?;
        if length == entry.size {
            crc32.update(front);
        }
        each(at, front);
        at = at.saturating_add(count as u64);
    }
    if length == entry.size && crc32.finalize() != entry.crc32 {
        return Err(wrong_crc());
    }
    Ok(length)
}

enum Method {
    Stored,
    Deflated,
}

fn method(entry: &Entry) -> Result<Method, StoreError> {
    if entry.flags & ENCRYPTED != 0 {
        return Err(StoreError::unsupported("the entry is encrypted"));
    }
    match entry.method {
        STORED => Ok(Method::Stored),
        DEFLATED => Ok(Method::Deflated),
        other => {
            Err(StoreError::unsupported(format!("the entry is compressed by method {other}; stored (0) and deflated (8) can be read")))
        }
    }
}

fn length(bounds: &Range<u64>) -> u64 {
    bounds.end.saturating_sub(bounds.start)
}

fn stored_offset(source: &Source, entry: &Entry, bounds: &Range<u64>) -> Result<u64, StoreError> {
    if entry.compressed_size != entry.size {
        return Err(corrupt("a stored entry has two different sizes"));
    }
    entry.data(source)?.checked_add(bounds.start).ok_or_else(|| corrupt("the offset of an entry overflows"))
}

/// Checks the CRC-32 of a value that was read whole.
fn check_crc(entry: &Entry, bounds: &Range<u64>, bytes: &[u8]) -> Result<(), StoreError> {
    if *bounds == (0..entry.size) && crc32fast::hash(bytes) != entry.crc32 {
        return Err(wrong_crc());
    }
    Ok(())
}

fn wrong_crc() -> StoreError {
    corrupt("the CRC-32 of the entry is wrong")
}

fn inflate(source: &Source, entry: &Entry, bounds: Range<u64>, limit: u64) -> Result<Vec<u8>, StoreError> {
    if bounds.end > limit {
        return Err(StoreError::new(StoreErrorKind::Limit, format!("the entry has {} bytes inflated, the limit is {limit}", entry.size)));
    }
    let mut inflated = Inflated::open(source, entry)?;
    inflated.skip_to(bounds.start)?;
    let bytes = inflated.take(length(&bounds))?;
    if bounds == (0..entry.size) {
        inflated.expect_end()?;
    }
    check_crc(entry, &bounds, &bytes)?;
    Ok(bytes)
}

/// A deflated entry as it inflates.
struct Inflated<'s>(DeflateDecoder<Pieces<'s>>);

impl<'s> Inflated<'s> {
    fn open(source: &'s Source, entry: &Entry) -> Result<Self, StoreError> {
        let most = entry.compressed_size.saturating_mul(LARGEST_RATIO);
        if entry.size > most {
            return Err(corrupt("the entry claims to be larger than it can inflate to"));
        }
        let pieces = Pieces { source, offset: entry.data(source)?, left: entry.compressed_size, piece: Bytes::new(), failure: None };
        Ok(Self(DeflateDecoder::new(pieces)))
    }

    fn skip_to(&mut self, offset: u64) -> Result<(), StoreError> {
        let skipped = io::copy(&mut (&mut self.0).take(offset), &mut io::sink());
        match skipped {
            Ok(skipped) if skipped == offset => Ok(()),
            Ok(_) => Err(self.failed(None)),
            Err(error) => Err(self.failed(Some(error))),
        }
    }

    fn take(&mut self, length: u64) -> Result<Vec<u8>, StoreError> {
        // Grows with what appears: the size is only a claim.
        let mut bytes = Vec::new();
        match (&mut self.0).take(length).read_to_end(&mut bytes) {
            Ok(_) if bytes.len() as u64 == length => Ok(bytes),
            Ok(_) => Err(self.failed(None)),
            Err(error) => Err(self.failed(Some(error))),
        }
    }

    fn fill(&mut self, dst: &mut [u8]) -> Result<(), StoreError> {
        self.0.read_exact(dst).map_err(|error| self.failed(Some(error)))
    }

    fn expect_end(&mut self) -> Result<(), StoreError> {
        match self.0.read(&mut [0]) {
            Ok(0) => Ok(()),
            Ok(_) => Err(corrupt("the entry inflates to more than its size")),
            Err(error) => Err(self.failed(Some(error))),
        }
    }

    /// Why it stopped: the archive could not be read, or the data is damaged.
    fn failed(&mut self, error: Option<io::Error>) -> StoreError {
        if let Some(failure) = self.0.get_mut().failure.take() {
            return failure;
        }
        let damaged = corrupt("the deflated data is damaged, or shorter than its size says");
        match error {
            Some(error) => damaged.with_source(error),
            None => damaged,
        }
    }
}

/// Compressed data, read piece by piece.
struct Pieces<'s> {
    source: &'s Source,
    offset: u64,
    left: u64,
    piece: Bytes,
    failure: Option<StoreError>,
}

impl Read for Pieces<'_> {
    fn read(&mut self, dst: &mut [u8]) -> io::Result<usize> {
        let count = io::BufRead::fill_buf(self)?.read(dst)?;
        io::BufRead::consume(self, count);
        Ok(count)
    }
}

impl io::BufRead for Pieces<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.piece.is_empty() && self.left > 0 {
            let length = self.left.min(PIECE);
            self.piece = match self.source.read(self.offset, length) {
                Ok(piece) => piece,
                Err(error) => {
                    let kind = io::Error::other(error.to_string());
                    self.failure = Some(error);
                    return Err(kind);
                }
            };
            self.offset = self.offset.saturating_add(length);
            self.left = self.left.saturating_sub(length);
        }
        Ok(&self.piece)
    }

    fn consume(&mut self, count: usize) {
        bytes::Buf::advance(&mut self.piece, count);
    }
}

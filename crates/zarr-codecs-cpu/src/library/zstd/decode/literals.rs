//! Literals sections (RFC 8878 §3.1.1.3.1).

use super::BLOCK_MAXIMUM_SIZE;
use super::huffman::Tables;

/// How many bytes behind literals may be read.
pub(super) const MARGIN: usize = 1024;

/// Room for the literals of a block.
pub(super) const ROOM: usize = BLOCK_MAXIMUM_SIZE + MARGIN;

/// The literals of a block.
#[derive(Clone, Copy)]
pub(super) struct Literals<'a> {
    /// With `MARGIN` bytes more, whatever is in them.
    pub(super) bytes: &'a [u8],
    pub(super) len: usize,
}

impl<'a> Literals<'a> {
    /// Reads those of the block at `start` of `encoded`, which ends with it, and answers with where their section ends, too. They are decoded to `room`, of [`ROOM`] bytes, or are where they are.
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt")]
    pub(super) fn read(encoded: &'a [u8], start: usize, tables: &mut Tables, room: &'a mut [u8]) -> Option<(Self, usize)> {
        let end = encoded.len();
        let block = encoded.get(start..)?;
        let first = *block.first()?;
        let header = block.iter().take(5).rev().fold(0, |number, byte| number << 8 | u64::from(*byte));
        let (kind, format) = (first & 3, first >> 2 & 3);
        if kind < 2 {
            let (len, width) = match format {
                1 => ((header & 0xFFFF) >> 4, 2),
                3 => ((header & 0xFF_FFFF) >> 4, 3),
                _ => ((header & 0xFF) >> 3, 1),
            };
            let len = usize::try_from(len).ok()?;
            let at = start + width;
            if kind == 1 {
                room.get_mut(..len)?.fill(*encoded.get(at..end)?.first()?);
                return with_margin(room, len).map(|literals| (literals, at + 1));
            }
            let literals = encoded.get(at..end)?.get(..len)?;
            let behind = at + len;
            if let Some(literals) = with_margin(encoded.get(at..)?, len) {
                return Some((literals, behind));
            }
            room.get_mut(..len)?.copy_from_slice(literals);
            return with_margin(room, len).map(|literals| (literals, behind));
        }
        let (bits, width) = match format {
            0 | 1 => (10, 3),
            2 => (14, 4),
            _ => (18, 5),
        };
        let mask = (1 << bits) - 1;
        let len = usize::try_from(header >> 4 & mask).ok()?;
        let size = usize::try_from(header >> (4 + bits) & mask).ok()?;
        let mut at = start + width;
        let behind = at + size;
        if behind > end || len > BLOCK_MAXIMUM_SIZE {
            return None;
        }
        if kind == 2 {
            at = tables.read(encoded, at, behind)?;
        }
        let literals = room.get_mut(..len)?;
        if format == 0 {
            tables.decode_one(encoded, at, behind, literals)?;
        } else {
            tables.decode_four(encoded, at, behind, literals)?;
        }
        with_margin(room, len).map(|literals| (literals, behind))
    }
}

/// The first `len` of `bytes`, if so many more are behind as may be read.
fn with_margin(bytes: &[u8], len: usize) -> Option<Literals<'_>> {
    Some(Literals { bytes: bytes.get(..len.checked_add(MARGIN)?)?, len })
}

//! Streams of bits that are read from their end (RFC 8878 §4.1).

use super::memory::{WORD, word};

/// A stream.
#[derive(Clone, Copy)]
pub(super) struct Bits<'a> {
    pub(super) bytes: &'a [u8],
    /// How many bits are not read. Never more than the bytes have: whoever reads without a look at their length relies on it.
    pub(super) left: usize,
}

impl<'a> Bits<'a> {
    /// `None` where the last byte is 0, and no bit marks the end.
    pub(super) fn new(bytes: &'a [u8]) -> Option<Self> {
        let (last, whole) = bytes.split_last()?;
        let left = whole.len().checked_mul(8)?.checked_add(last.checked_ilog2()? as usize)?;
        Some(Self { bytes, left })
    }

    /// The next bits, the next one highest: 57 at least, or all that are left, and zeros.
    #[inline]
    pub(super) fn peek(&self) -> u64 {
        let end = self.left.div_ceil(8);
        let word = match end.checked_sub(WORD) {
            // SAFETY: the bits are within the stream.
            Some(at) => unsafe { word(self.bytes, at) },
            None => self.bytes.iter().take(end).fold(0, |word, byte| word >> 8 | u64::from(*byte) << 56),
        };
        word << (self.left.wrapping_neg() & 7)
    }

    /// The next `count` bits, at most 32. `None` when there are not so many.
    #[inline]
    pub(super) fn read(&mut self, count: u32) -> Option<u32> {
        let word = self.peek();
        self.left = self.left.checked_sub(count as usize)?;
        // In two steps, as none of 64 bits may be wanted.
        Some((word >> 32 >> (32 - count)) as u32)
    }
}

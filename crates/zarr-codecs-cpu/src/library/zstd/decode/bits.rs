//! Streams of bits that are read from their end (RFC 8878 §4.1).

use super::memory::{WORD, word};

/// A stream within an encoded chunk.
#[derive(Clone, Copy)]
pub(super) struct Bits<'a> {
    /// Eight bytes in front of the stream, so that a word that ends with any of its bits can be loaded, and the stream.
    pub(super) bytes: &'a [u8],
    /// How many bits are not read; less than none: more were read than there are. Never more than the stream has.
    pub(super) left: isize,
}

impl<'a> Bits<'a> {
    /// The stream at `start..end` of `encoded`. `None` where its last byte is 0, and no bit marks the end; or where too few bytes are in front.
    pub(super) fn new(encoded: &'a [u8], start: usize, end: usize) -> Option<Self> {
        let bytes = encoded.get(start.checked_sub(WORD)?..end)?;
        let last = bytes.get(WORD..)?.last()?;
        if *last == 0 {
            return None;
        }
        let whole = isize::try_from(bytes.len().checked_sub(WORD + 1)?.checked_mul(8)?).ok()?;
        Some(Self { bytes, left: whole + last.ilog2() as isize })
    }

    /// The next 57 bits at least, the next one highest; those behind the start are of what is in front of the stream. `None` when more were read than there are.
    #[inline]
    pub(super) fn peek(&self) -> Option<u64> {
        let left = usize::try_from(self.left).ok()?;
        // SAFETY: in front of as many whole bytes as hold the bits, which the stream has, are eight more.
        let word = unsafe { word(self.bytes, left.div_ceil(8)) };
        Some(word << (left.wrapping_neg() & 7))
    }

    /// The next `count` bits, at most 32. `None` when there are not so many.
    #[inline]
    pub(super) fn read(&mut self, count: u32) -> Option<u32> {
        let word = self.peek()?;
        self.left -= count as isize;
        // In two steps, as none of 64 bits may be wanted.
        (self.left >= 0).then_some((word >> 32 >> (32 - count)) as u32)
    }
}

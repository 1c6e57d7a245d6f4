//! Which bytes of a value.

use std::fmt;
use std::ops::Range;

use crate::error::{StoreError, StoreErrorKind};

/// Which bytes of a value are meant. Offsets and lengths are in bytes.
///
/// The four forms are those that HTTP knows, with the same meaning: what goes past the end of
/// the value is cut off, what begins past the end is an error. One thing differs: a range may be
/// empty, and may begin exactly at the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ByteRange {
    /// The whole value.
    #[default]
    All,
    /// From `start` up to, and without, `end`.
    Bounded {
        /// Offset of the first byte.
        start: u64,
        /// Offset one past the last byte. If the value ends before it, the range does too.
        end: u64,
    },
    /// From this offset to the end of the value.
    From(u64),
    /// This many bytes at the end of the value, or the whole value if it is shorter.
    Suffix(u64),
}

impl ByteRange {
    /// The bytes meant, for a value of `size` bytes. The result always lies within `0..size`, and
    /// its start is never greater than its end.
    ///
    /// # Errors
    ///
    /// [`StoreErrorKind::OutOfRange`] if the range begins past the end of the value (beginning
    /// right at the end gives an empty range), or ends before it begins.
    pub fn resolve(&self, size: u64) -> Result<Range<u64>, StoreError> {
        let out_of_range = |message: String| Err(StoreError::new(StoreErrorKind::OutOfRange, message).with_range(*self));
        let (start, end) = match *self {
            Self::All => (0, size),
            Self::Suffix(length) => (size.saturating_sub(length), size),
            Self::From(start) => (start, size),
            Self::Bounded { start, end } if end < start => {
                return out_of_range("the range ends before it begins".to_owned());
            }
            Self::Bounded { start, end } => (start, end.min(size)),
        };
        if start > size {
            return out_of_range(format!("the value has only {size} bytes"));
        }
        Ok(start..end)
    }

    /// How many bytes are meant at most, where that is known without the size of the value.
    #[must_use]
    pub fn len_hint(&self) -> Option<u64> {
        match *self {
            Self::All | Self::From(_) => None,
            Self::Bounded { start, end } => Some(end.saturating_sub(start)),
            Self::Suffix(length) => Some(length),
        }
    }
}

impl From<Range<u64>> for ByteRange {
    fn from(range: Range<u64>) -> Self {
        Self::Bounded { start: range.start, end: range.end }
    }
}

impl fmt::Display for ByteRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("all bytes"),
            Self::Bounded { start, end } => write!(f, "bytes {start}..{end}"),
            Self::From(start) => write!(f, "bytes {start}.."),
            Self::Suffix(length) => write!(f, "the last {length} bytes"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_resolve() {
        let ok = |range: ByteRange, size, want| assert_eq!(range.resolve(size).unwrap(), want);
        ok(ByteRange::All, 10, 0..10);
        ok(ByteRange::All, 0, 0..0);
        ok(ByteRange::from(2..5), 10, 2..5);
        ok(ByteRange::from(2..50), 10, 2..10);
        ok(ByteRange::from(0..0), 0, 0..0);
        ok(ByteRange::from(10..10), 10, 10..10);
        ok(ByteRange::from(10..u64::MAX), 10, 10..10);
        ok(ByteRange::From(10), 10, 10..10);
        ok(ByteRange::From(3), 10, 3..10);
        ok(ByteRange::Suffix(3), 10, 7..10);
        ok(ByteRange::Suffix(30), 10, 0..10);
        ok(ByteRange::Suffix(0), 10, 10..10);
        ok(ByteRange::Suffix(u64::MAX), 0, 0..0);
    }

    #[test]
    fn ranges_past_the_end_are_errors() {
        let backwards = ByteRange::Bounded { start: 5, end: 4 };
        for range in [ByteRange::From(11), ByteRange::from(11..12), ByteRange::from(11..11), backwards] {
            let error = range.resolve(10).unwrap_err();
            assert_eq!(error.kind(), StoreErrorKind::OutOfRange);
            assert_eq!(error.range(), Some(range));
        }
    }
}

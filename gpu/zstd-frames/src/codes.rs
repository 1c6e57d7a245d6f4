//! Codes of literal lengths, match lengths and offsets, and the predefined tables (RFC 8878, 3.1.1.3.2).

use crate::fse::Table;

/// Which of the three tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Literal lengths.
    LiteralLength,
    /// Offsets.
    Offset,
    /// Match lengths.
    MatchLength,
}

/// All three, in the order of their descriptions.
pub const KINDS: [Kind; 3] = [Kind::LiteralLength, Kind::Offset, Kind::MatchLength];

const LITERAL_LENGTH_BITS: [u8; 20] = [1, 1, 1, 1, 2, 2, 3, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16];
const MATCH_LENGTH_BITS: [u8; 21] = [1, 1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16];
const LITERAL_LENGTH_COUNTS: [i16; 36] =
    [4, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3, 2, 1, 1, 1, 1, 1, -1, -1, -1, -1];
const OFFSET_COUNTS: [i16; 29] = [1, 1, 1, 1, 1, 1, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1];
const MATCH_LENGTH_COUNTS: [i16; 53] = [
    1, 4, 3, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
    1, -1, -1, -1, -1, -1, -1, -1,
];

impl Kind {
    /// The greatest code.
    pub fn max(self) -> u8 {
        match self {
            Self::LiteralLength => 35,
            Self::Offset => 31,
            Self::MatchLength => 52,
        }
    }

    /// The greatest accuracy log.
    pub fn max_log(self) -> u32 {
        if self == Self::Offset { 8 } else { 9 }
    }

    /// The predefined table.
    pub fn predefined(self) -> Table {
        match self {
            Self::LiteralLength => Table::new(&LITERAL_LENGTH_COUNTS, 6),
            Self::Offset => Table::new(&OFFSET_COUNTS, 5),
            Self::MatchLength => Table::new(&MATCH_LENGTH_COUNTS, 6),
        }
    }

    /// Extra bits of a code.
    pub fn bits(self, code: u8) -> u32 {
        let from =
            |table: &[u8], start: u8| code.checked_sub(start).and_then(|at| table.get(usize::from(at))).map_or(0, |bits| u32::from(*bits));
        match self {
            Self::LiteralLength => from(&LITERAL_LENGTH_BITS, 16),
            Self::Offset => u32::from(code),
            Self::MatchLength => from(&MATCH_LENGTH_BITS, 32),
        }
    }

    /// The value of a code with extra bits of 0: a length in bytes, or an offset value (repeats are 1 to 3).
    pub fn base(self, code: u8) -> u64 {
        match self {
            Self::Offset => 1 << code,
            Self::LiteralLength => (0..code).map(|before| 1u64 << self.bits(before)).sum(),
            Self::MatchLength => 3 + (0..code).map(|before| 1u64 << self.bits(before)).sum::<u64>(),
        }
    }

    /// Code and extra bits for a value.
    pub fn code(self, value: u64) -> (u8, u64) {
        let code = (0..=self.max()).rev().find(|code| self.base(*code) <= value).unwrap_or(0);
        (code, value.saturating_sub(self.base(code)))
    }
}

//! Puts sections, blocks and frames together. Every field can be given a value that contradicts the rest.

use crate::bits::{Fields, StreamEnd, backward};
use crate::codes::{KINDS, Kind};
use crate::fse::Table;
use crate::rng::Rng;

/// The magic number of a frame.
pub const MAGIC: u32 = 0xFD2F_B528;

/// A frame header (RFC 8878, 3.1.1.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// The magic number.
    pub magic: u32,
    /// No window descriptor; the content size must be there.
    pub single_segment: bool,
    /// The window descriptor, unless in a single segment.
    pub window: u8,
    /// Size code of the dictionary id, 0 to 3, and its value.
    pub dictionary: (u8, u32),
    /// Size code of the content size, 0 to 3. Code 0 is one byte in a single segment, and nothing else.
    pub content_code: u8,
    /// The content size.
    pub content: u64,
    /// Whether the flag for a checksum is set.
    pub checksum: bool,
    /// The reserved bit.
    pub reserved: bool,
    /// The unused bit.
    pub unused: bool,
}

impl Header {
    /// No content size, a window of 8 MiB.
    pub fn plain() -> Self {
        Self {
            magic: MAGIC,
            single_segment: false,
            window: 13 << 3,
            dictionary: (0, 0),
            content_code: 0,
            content: 0,
            checksum: false,
            reserved: false,
            unused: false,
        }
    }

    /// A header of a single segment in as few bytes as can be.
    pub fn single(content: u64) -> Self {
        let content_code = match content {
            0..=255 => 0,
            256..=65_791 => 1,
            65_792..=0xFFFF_FFFF => 2,
            _ => 3,
        };
        Self { single_segment: true, content_code, content, ..Self::plain() }
    }

    /// The bytes.
    pub fn bytes(&self) -> Vec<u8> {
        let mut out = self.magic.to_le_bytes().to_vec();
        let flags = [(self.checksum, 4), (self.reserved, 8), (self.unused, 16), (self.single_segment, 32)];
        let flags: u8 = flags.iter().filter(|(set, _)| *set).map(|(_, bit)| bit).sum();
        out.push(self.content_code << 6 | flags | self.dictionary.0);
        if !self.single_segment {
            out.push(self.window);
        }
        out.extend(&self.dictionary.1.to_le_bytes()[..[0, 1, 2, 4][usize::from(self.dictionary.0 & 3)]]);
        match self.content_code {
            0 if self.single_segment => out.push(self.content as u8),
            0 => {}
            1 => out.extend((self.content.wrapping_sub(256) as u16).to_le_bytes()),
            2 => out.extend((self.content as u32).to_le_bytes()),
            _ => out.extend(self.content.to_le_bytes()),
        }
        out
    }

    /// The block maximum that follows from it.
    pub fn block_max(&self) -> u64 {
        let log = 10 + u32::from(self.window >> 3);
        let window = if self.single_segment { self.content } else { (1u64 << log) + (1u64 << log >> 3) * u64::from(self.window & 7) };
        window.min(131_072)
    }
}

/// Type of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockType {
    /// Bytes as they are.
    Raw,
    /// A byte, repeated.
    Rle,
    /// Literals and sequences.
    Compressed,
    /// Not allowed.
    Reserved,
}

/// A block: header, then `content` as it is. `size` stands in the header.
pub fn block(kind: BlockType, last: bool, size: usize, content: &[u8]) -> Vec<u8> {
    let header = (size as u32) << 3 | (kind as u32) << 1 | u32::from(last);
    let mut out = header.to_le_bytes()[..3].to_vec();
    out.extend(content);
    out
}

/// A skippable frame.
pub fn skippable(variant: u8, size: u32, content: &[u8]) -> Vec<u8> {
    let mut out = (0x184D_2A50 | u32::from(variant & 15)).to_le_bytes().to_vec();
    out.extend(size.to_le_bytes());
    out.extend(content);
    out
}

/// Type of a literals section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LiteralsType {
    /// Bytes as they are.
    Raw,
    /// A byte, repeated.
    Rle,
    /// A tree and streams.
    Compressed,
    /// Streams, for the tree before.
    Treeless,
}

/// The header of a literals section. `format` is the two bits of the size format; for compressed literals 0 means one stream.
pub fn literals_header(kind: LiteralsType, format: u8, regenerated: usize, compressed: usize) -> Vec<u8> {
    let (regenerated, compressed) = (regenerated as u64, compressed as u64);
    let low = kind as u64 | u64::from(format) << 2;
    let (value, bytes) = match (kind, format) {
        (LiteralsType::Raw | LiteralsType::Rle, 1) => (low | regenerated << 4, 2),
        (LiteralsType::Raw | LiteralsType::Rle, 3) => (low | regenerated << 4, 3),
        (LiteralsType::Raw | LiteralsType::Rle, _) => (kind as u64 | u64::from(format & 3) << 2 | regenerated << 3, 1),
        (_, 2) => (low | (regenerated & 0x3FFF) << 4 | (compressed & 0x3FFF) << 18, 4),
        (_, 3) => (low | (regenerated & 0x3_FFFF) << 4 | (compressed & 0x3_FFFF) << 22, 5),
        _ => (low | (regenerated & 0x3FF) << 4 | (compressed & 0x3FF) << 14, 3),
    };
    value.to_le_bytes()[..bytes].to_vec()
}

/// The least size format for raw or RLE literals.
pub fn short_format(regenerated: usize) -> u8 {
    match regenerated {
        0..=31 => 0,
        32..=4095 => 1,
        _ => 3,
    }
}

/// The least size format for compressed literals.
pub fn long_format(four: bool, larger: usize) -> u8 {
    match larger {
        0..=1023 => u8::from(four),
        1024..=16_383 => 2,
        _ => 3,
    }
}

/// A sequence as codes and extra bits, in the order of [`KINDS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sequence {
    /// The codes.
    pub codes: [u8; 3],
    /// What the extra bits say.
    pub extra: [u64; 3],
}

impl Sequence {
    /// From literal length, offset value (1 to 3: repeats, else offset + 3) and match length.
    pub fn new(literals: u64, offset_value: u64, length: u64) -> Self {
        let parts = [Kind::LiteralLength.code(literals), Kind::Offset.code(offset_value), Kind::MatchLength.code(length)];
        Self { codes: parts.map(|part| part.0), extra: parts.map(|part| part.1) }
    }

    /// The value of one part.
    pub fn value(&self, kind: Kind) -> u64 {
        kind.base(self.codes[kind as usize]) + self.extra[kind as usize]
    }
}

/// The count of sequences in its header: in 1, 2 or 3 bytes, the least that hold it if `bytes` is too small.
pub fn sequence_count(count: usize, bytes: usize) -> Vec<u8> {
    match (count, bytes) {
        (0..=127, 0..=1) => vec![count as u8],
        (0..=0x7EFF, 0..=2) => vec![(count >> 8) as u8 | 0x80, count as u8],
        (0x7F00.., _) => {
            let [low, high, ..] = (count - 0x7F00).to_le_bytes();
            vec![0xFF, low, high]
        }
        _ => vec![(count >> 8) as u8 | 0x80, count as u8],
    }
}

/// The fields of a stream of sequences: initial states, then extra bits and updates. `None` if a table lacks a code.
pub fn sequence_fields(sequences: &[Sequence], tables: &[Table; 3], rng: &Rng) -> Option<Fields> {
    let mut paths = [Vec::new(), Vec::new(), Vec::new()];
    for kind in KINDS {
        let codes: Vec<u8> = sequences.iter().map(|sequence| sequence.codes[kind as usize]).collect();
        paths[kind as usize] = tables[kind as usize].path(&codes, rng)?;
    }
    let mut fields: Fields =
        KINDS.iter().filter_map(|kind| Some((*paths[*kind as usize].first()? as u64, tables[*kind as usize].log))).collect();
    for (i, sequence) in sequences.iter().enumerate() {
        for kind in [Kind::Offset, Kind::MatchLength, Kind::LiteralLength] {
            fields.push((sequence.extra[kind as usize], kind.bits(sequence.codes[kind as usize])));
        }
        if i + 1 < sequences.len() {
            for kind in [Kind::LiteralLength, Kind::MatchLength, Kind::Offset] {
                let path = &paths[kind as usize];
                fields.push(tables[kind as usize].transition(path[i], path[i + 1]));
            }
        }
    }
    Some(fields)
}

/// A sequences section with the predefined tables.
pub fn predefined_sequences(sequences: &[Sequence], rng: &Rng) -> Option<Vec<u8>> {
    let mut out = sequence_count(sequences.len(), 1);
    if !sequences.is_empty() {
        let fields = sequence_fields(sequences, &KINDS.map(Kind::predefined), rng)?;
        out.push(0);
        out.extend(backward(&fields, StreamEnd::Exact, 0));
    }
    Some(out)
}

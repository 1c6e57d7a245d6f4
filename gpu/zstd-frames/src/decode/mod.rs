//! A small decoder that follows libzstd's verdicts, not only RFC 8878, and says what it met. Slow, and without any code of libzstd: an oracle for the
//! generator's statistics, checked against libzstd itself. `VERDICTS.md` beside this crate has the rules.

mod counts;
mod huffman;
mod sequences;

use crate::fse::Table;
use crate::write::MAGIC;

pub use huffman::Machine;
pub use sequences::apply_repeats;

/// Why a chunk is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "the names say it; VERDICTS.md has the rules")]
pub enum Status {
    EmptyInput,
    TrailingBytes,
    Magic,
    Skippable,
    HeaderTruncated,
    HeaderReserved,
    Window,
    Dictionary,
    BlockHeader,
    BlockTruncated,
    BlockReserved,
    BlockSize,
    OutputFull,
    LiteralsTruncated,
    LiteralsSize,
    LiteralsStreams,
    TreelessFirst,
    HuffmanWeights,
    HuffmanCounts,
    HuffmanLog,
    HuffmanEmpty,
    HuffmanJump,
    HuffmanStream,
    HuffmanEnd,
    SequencesTruncated,
    SequencesTrailing,
    ModesReserved,
    TableRle,
    TableCounts,
    TableLog,
    TableRepeat,
    SequenceStream,
    SequenceEnd,
    LiteralLength,
    Offset,
    ContentSize,
    ChecksumTruncated,
    Checksum,
    Size,
}

/// What decoding met on its way, whether it succeeded or not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Seen {
    /// Sequences executed.
    pub sequences: usize,
    /// Compressed blocks.
    pub compressed: usize,
    /// Huffman-coded literals.
    pub huffman: usize,
    /// Stream ends that only libzstd's laxness lets pass.
    pub lax_ends: usize,
}

/// What became of a chunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The bytes, or what is wrong.
    pub result: Result<Vec<u8>, Status>,
    /// What was met.
    pub seen: Seen,
    /// Bytes made before the error.
    pub partial: Vec<u8>,
}

/// Decodes a chunk into exactly `size` bytes.
pub fn decode(input: &[u8], size: usize, machine: Machine) -> Outcome {
    let mut decoder = Decoder::new(size, machine);
    let result = match decoder.frames(input) {
        _ if input.is_empty() => Err(Status::EmptyInput),
        Ok(()) if decoder.out.len() == size => Ok(decoder.out.clone()),
        Ok(()) => Err(Status::Size),
        Err(status) => Err(status),
    };
    Outcome { result, seen: decoder.seen, partial: decoder.out }
}

/// What the frames in `input` decode to, at most `limit` bytes of it, and the error that ended it.
pub fn decode_any(input: &[u8], limit: usize, machine: Machine) -> (Vec<u8>, Option<Status>) {
    let mut decoder = Decoder::new(limit, machine);
    let error = decoder.frames(input).err();
    (decoder.out, error)
}

struct Decoder {
    capacity: usize,
    machine: Machine,
    out: Vec<u8>,
    /// Where the current frame began.
    start: usize,
    block_max: usize,
    tree: Option<huffman::Decoding>,
    tables: Option<[Table; 3]>,
    repeats: [u64; 3],
    seen: Seen,
}

impl Decoder {
    fn new(capacity: usize, machine: Machine) -> Self {
        Self {
            capacity,
            machine,
            out: Vec::new(),
            start: 0,
            block_max: 0,
            tree: None,
            tables: None,
            repeats: [1, 4, 8],
            seen: Seen::default(),
        }
    }

    fn frames(&mut self, mut input: &[u8]) -> Result<(), Status> {
        while input.len() >= 5 {
            let magic = u32::from_le_bytes([input[0], input[1], input[2], input[3]]);
            if magic & 0xFFFF_FFF0 == 0x184D_2A50 {
                let size = number(input, 4, 4).ok_or(Status::Skippable)?;
                let skipped = usize::try_from(size).ok().and_then(|size| input.get(8..)?.get(size..));
                input = skipped.filter(|_| size <= u64::from(u32::MAX) - 8).ok_or(Status::Skippable)?;
            } else {
                input = self.frame(input, magic)?;
            }
        }
        if input.is_empty() { Ok(()) } else { Err(Status::TrailingBytes) }
    }

    fn frame<'a>(&mut self, input: &'a [u8], magic: u32) -> Result<&'a [u8], Status> {
        if magic != MAGIC {
            return Err(Status::Magic);
        }
        if input.len() < 9 {
            return Err(Status::HeaderTruncated);
        }
        let flags = input[4];
        let single = flags & 32 != 0;
        let id_len = [0, 1, 2, 4][usize::from(flags & 3)];
        let content_len = [usize::from(single), 2, 4, 8][usize::from(flags >> 6)];
        let mut at = 5 + usize::from(!single);
        if input.len() < at + id_len + content_len + 3 {
            return Err(Status::HeaderTruncated);
        }
        if flags & 8 != 0 {
            return Err(Status::HeaderReserved);
        }
        let log = 10 + u32::from(input[5] >> 3);
        if !single && log > 31 {
            return Err(Status::Window);
        }
        let id = number(input, at, id_len).ok_or(Status::HeaderTruncated)?;
        at += id_len;
        let base = if content_len == 2 { 256 } else { 0 };
        let content = base + number(input, at, content_len).ok_or(Status::HeaderTruncated)?;
        at += content_len;
        if id != 0 {
            return Err(Status::Dictionary);
        }
        let window = if single { content } else { (1u64 << log) + (1u64 << log >> 3) * u64::from(input[5] & 7) };
        self.block_max = window.min(131_072) as usize;
        self.start = self.out.len();
        (self.tree, self.tables, self.repeats) = (None, None, [1, 4, 8]);

        loop {
            let header = number(input, at, 3).ok_or(Status::BlockHeader)?;
            at += 3;
            let (last, kind, size) = (header & 1 == 1, header >> 1 & 3, (header >> 3) as usize);
            let stored = if kind == 1 { 1 } else { size };
            if kind == 3 {
                return Err(Status::BlockReserved);
            }
            let body = input.get(at..).and_then(|rest| rest.get(..stored)).ok_or(Status::BlockTruncated)?;
            at += stored;
            let room = self.capacity - self.out.len();
            match kind {
                0 | 1 if size > room => return Err(Status::OutputFull),
                0 => self.out.extend(body),
                1 => self.out.extend(std::iter::repeat_n(body[0], size)),
                _ => self.compressed(body)?,
            }
            if last {
                break;
            }
        }
        if content_len > 0 && content != u64::MAX && content != (self.out.len() - self.start) as u64 {
            return Err(Status::ContentSize);
        }
        if flags & 4 != 0 {
            let told = number(input, at, 4).ok_or(Status::ChecksumTruncated)?;
            if told != u64::from(crate::xxh64::checksum(&self.out[self.start..])) {
                return Err(Status::Checksum);
            }
            at += 4;
        }
        Ok(&input[at..])
    }

    fn compressed(&mut self, block: &[u8]) -> Result<(), Status> {
        if block.len() > self.block_max || block.len() < 2 {
            return Err(Status::BlockSize);
        }
        self.seen.compressed += 1;
        let room = self.capacity - self.out.len();
        let literals = self.literals(block, room)?;
        let len = literals.bytes.len();
        let limit =
            if literals.raw && literals.used + 32 <= block.len() || room <= self.block_max + len + 64 { room } else { self.block_max + 32 };
        self.sequences(&block[literals.used..], &literals.bytes, limit)
    }

    fn literals(&mut self, block: &[u8], room: usize) -> Result<Literals, Status> {
        let format = block[0] >> 2 & 3;
        let sized = |len: usize| if len > self.block_max || len > room { Err(Status::LiteralsSize) } else { Ok(len) };
        if block[0] & 3 < 2 {
            let (header, shift) = match format {
                1 => (2, 4),
                3 => (3, 4),
                _ => (1, 3),
            };
            let len = sized((number(block, 0, header).ok_or(Status::LiteralsTruncated)? >> shift) as usize)?;
            return if block[0] & 3 == 0 {
                let bytes = block.get(header..header + len).ok_or(Status::LiteralsTruncated)?.to_vec();
                Ok(Literals { bytes, used: header + len, raw: true })
            } else {
                let byte = *block.get(header).ok_or(Status::LiteralsTruncated)?;
                Ok(Literals { bytes: vec![byte; len], used: header + 1, raw: false })
            };
        }
        let treeless = block[0] & 3 == 3;
        if treeless && self.tree.is_none() {
            return Err(Status::TreelessFirst);
        }
        if block.len() < 5 {
            return Err(Status::LiteralsTruncated);
        }
        let (header, bits) = match format {
            2 => (4, 14),
            3 => (5, 18),
            _ => (3, 10),
        };
        let value = number(block, 0, header).ok_or(Status::LiteralsTruncated)? >> 4;
        let len = sized((value & ((1 << bits) - 1)) as usize)?;
        let compressed = (value >> bits) as usize;
        if format != 0 && len < 6 {
            return Err(Status::LiteralsStreams);
        }
        let section = block.get(header..header + compressed).ok_or(Status::LiteralsTruncated)?;
        self.seen.huffman += 1;
        let mut streams = 0;
        if !treeless {
            let (tree, used) = huffman::Decoding::read(section, format != 0, len)?;
            self.tree = Some(tree);
            streams = used;
        }
        let tree = self.tree.as_ref().ok_or(Status::TreelessFirst)?;
        let (bytes, lax) = if format == 0 {
            tree.one_stream(&section[streams..], len)?
        } else {
            tree.four_streams(&section[streams..], len, self.machine)?
        };
        self.seen.lax_ends += usize::from(lax);
        Ok(Literals { bytes, used: header + compressed, raw: false })
    }
}

struct Literals {
    bytes: Vec<u8>,
    /// Bytes of the block that they took.
    used: usize,
    raw: bool,
}

/// The little-endian number of `len` bytes at `at`.
fn number(bytes: &[u8], at: usize, len: usize) -> Option<u64> {
    let bytes = bytes.get(at..)?.get(..len)?;
    Some(bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
}

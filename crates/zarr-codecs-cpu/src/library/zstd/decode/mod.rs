//! A decoder of frames that is faster than libzstd's: in 0.7 to 0.9 of its time where sequences are many and short, as in numbers that are compressed as they are (`benches/record/zstd-cpu.md`).
//!
//! It takes what is in the world of Zarr: one frame, without a checksum and a dictionary, and nothing behind it; and only what is in order. Of everything else it says nothing: what a frame may hold, and what is
//! wrong with one, is libzstd's to judge, which then decodes it from its start. So this need not be lax where libzstd is, and never accepts what libzstd refuses.
//!
//! Where the time of libzstd goes is the loop over sequences; see [`execute`] for how this one is. Besides, literals are decoded in pairs where two codes often fit into a lookup.
//!
//! Modules are named as the sections of [RFC 8878](https://www.rfc-editor.org/rfc/rfc8878) are. Positions are in the encoded chunk and in the output; each load and store without a look at a length has its
//! reason beside it, and is looked at in builds with debug assertions.

#![expect(
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    reason = "positions in slices, and numbers of at most 20 bits; of more, they are cut on purpose"
)]

mod bits;
mod execute;
mod fse;
mod huffman;
mod literals;
mod memory;
mod sequences;

use std::cell::RefCell;

use self::bits::Bits;
use self::execute::{Block, Lap, Repeats};
use self::literals::Literals;

const MAGIC_NUMBER: [u8; 4] = 0xFD2F_B528_u32.to_le_bytes();
/// The most that one block decodes to (RFC 8878 §3.1.1.2.4).
const BLOCK_MAXIMUM_SIZE: usize = 128 << 10;
/// Offsets before the first block (§3.1.1.5).
const FIRST_REPEATS: Repeats = [1, 4, 8];

thread_local! {
    static DECODER: RefCell<Option<Box<Decoder>>> = const { RefCell::new(None) };
}

/// Whether the processor has the instructions: most x86-64 ones since 2015.
fn is_supported() -> bool {
    std::is_x86_feature_detected!("avx2")
        && std::is_x86_feature_detected!("bmi1")
        && std::is_x86_feature_detected!("bmi2")
        && std::is_x86_feature_detected!("lzcnt")
}

/// Decodes a frame to the start of `decoded`, and answers with the number of bytes. `None`: it is not a frame for this decoder, or not in order, or the processor lacks instructions; some bytes may have
/// been overwritten.
pub(super) fn decompress(encoded: &[u8], decoded: &mut [u8]) -> Option<usize> {
    let fits = |frame: &Frame| frame.content_size.is_none_or(|size| size <= decoded.len());
    let frame = Frame::read(encoded).filter(|frame| is_supported() && fits(frame))?;
    DECODER.with_borrow_mut(|slot| {
        let decoder = slot.get_or_insert_with(Decoder::new);
        // SAFETY: the processor has the instructions.
        unsafe { decoder.decode(&frame, encoded, decoded) }
    })
}

/// A frame that is decoded block by block, to a ring: see [`super::pieces`].
#[cfg(feature = "zstd")]
pub(super) struct Blocks {
    /// Of the thread, to which it is given back.
    decoder: Option<Box<Decoder>>,
    frame: Frame,
    next: Next,
    lap: Lap,
}

#[cfg(feature = "zstd")]
#[derive(Clone, Copy)]
enum Next {
    Header,
    Block(BlockHeader),
    End,
}

#[cfg(feature = "zstd")]
impl Blocks {
    /// `None`: the frame with this header is not for this decoder, or not on this processor.
    pub(super) fn begin(header: &[u8]) -> Option<Self> {
        let frame = Frame::read(header).filter(|frame| is_supported() && frame.len == header.len())?;
        let mut decoder = DECODER.with_borrow_mut(Option::take).unwrap_or_else(Decoder::new);
        decoder.begin();
        Some(Self { decoder: Some(decoder), frame, next: Next::Header, lap: Lap::default() })
    }

    /// How many bytes of a ring it takes, so that a match never begins where the block is written that it is in.
    pub(super) fn ring_len(&self) -> usize {
        self.frame.window.saturating_add(2 * self.frame.block_max)
    }

    /// How many bytes the next step takes; 0 behind the frame.
    pub(super) fn wanted(&self) -> usize {
        match self.next {
            Next::Header => BlockHeader::LEN,
            Next::Block(header) => header.len(),
            Next::End => 0,
        }
    }

    /// The next block goes to the start of the ring, of which `end` bytes are written.
    pub(super) fn turn(&mut self, end: usize) {
        self.lap = Lap { end, window: self.frame.window };
    }

    /// Takes as many bytes as are wanted, and answers with how much of the ring is written then. `None`: the whole frame is to be left to libzstd.
    pub(super) fn step(&mut self, bytes: &[u8], ring: &mut [u8], written: usize) -> Option<usize> {
        let header = match self.next {
            Next::Header => {
                let header = BlockHeader::read(bytes.first_chunk()?, self.frame.block_max)?;
                self.next = Next::Block(header);
                // Of an empty block there is no more.
                if header.len() > 0 {
                    return Some(written);
                }
                header
            }
            Next::Block(header) if bytes.len() == header.len() => header,
            _ => return None,
        };
        let bytes = if header.len() > 0 { bytes } else { &[] };
        self.next = if header.is_last { Next::End } else { Next::Header };
        let decoder = self.decoder.as_mut()?;
        let limit = ring.len().min(written.checked_add(self.frame.block_max)?);
        let output = Output { bytes: ring, written, limit, lap: self.lap };
        // SAFETY: the processor has the instructions, or there were no `Blocks`.
        unsafe { decoder.block(header, bytes, 0, bytes.len(), output) }
    }
}

#[cfg(feature = "zstd")]
impl Drop for Blocks {
    fn drop(&mut self) {
        let decoder = self.decoder.take();
        // A thread that ends keeps nothing.
        let _ = DECODER.try_with(|slot| slot.replace(decoder));
    }
}

/// What the header of a frame says (RFC 8878 §3.1.1.1).
#[derive(Clone, Copy)]
struct Frame {
    content_size: Option<usize>,
    #[cfg_attr(not(feature = "zstd"), expect(dead_code, reason = "for blocks alone"))]
    window: usize,
    /// The most that a block decodes to.
    block_max: usize,
    /// How long it is.
    len: usize,
}

impl Frame {
    /// `None` with a checksum, a dictionary or the reserved bit, and for the largest windows.
    fn read(encoded: &[u8]) -> Option<Self> {
        let (descriptor, mut rest) = encoded.strip_prefix(&MAGIC_NUMBER)?.split_first()?;
        if descriptor & 0b1100 != 0 {
            return None;
        }
        let is_single_segment = descriptor & 0x20 != 0;
        let mut window = 0;
        if !is_single_segment {
            let (byte, behind) = rest.split_first()?;
            let base = 1u64.checked_shl(10 + u32::from(byte >> 3)).filter(|base| *base <= 1 << 30)?;
            window = base + base / 8 * u64::from(byte & 7);
            rest = behind;
        }
        let width = match descriptor & 3 {
            3 => 4,
            width => usize::from(width),
        };
        let (dictionary, rest) = rest.split_at_checked(width)?;
        if dictionary.iter().any(|byte| *byte != 0) {
            return None;
        }
        let width = match descriptor >> 6 {
            0 => usize::from(is_single_segment),
            1 => 2,
            2 => 4,
            _ => 8,
        };
        let (field, rest) = rest.split_at_checked(width)?;
        let size = field.iter().rev().fold(0, |size, byte| size << 8 | u64::from(*byte)) + if width == 2 { 256 } else { 0 };
        if is_single_segment {
            window = size;
        }
        let content_size = if width > 0 { Some(usize::try_from(size).ok()?) } else { None };
        let window = usize::try_from(window).ok()?;
        let block_max = window.min(BLOCK_MAXIMUM_SIZE);
        Some(Self { content_size, window, block_max, len: encoded.len() - rest.len() })
    }
}

/// What a thread reuses.
struct Decoder {
    huffman: huffman::Tables,
    sequences: sequences::Tables,
    repeats: Repeats,
    /// [`literals::ROOM`] bytes: too many for a stack.
    literals: Vec<u8>,
}

impl Decoder {
    fn new() -> Box<Self> {
        let literals = vec![0; literals::ROOM];
        Box::new(Self { huffman: huffman::Tables::new(), sequences: sequences::Tables::new(), repeats: FIRST_REPEATS, literals })
    }

    /// Makes it ready for a frame.
    fn begin(&mut self) {
        self.huffman.forget();
        self.sequences.forget();
        self.repeats = FIRST_REPEATS;
    }

    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt")]
    fn decode(&mut self, frame: &Frame, encoded: &[u8], decoded: &mut [u8]) -> Option<usize> {
        self.begin();
        let mut written = 0;
        let mut at = frame.len;
        loop {
            let header = BlockHeader::read(encoded.get(at..)?.first_chunk()?, frame.block_max)?;
            at += BlockHeader::LEN;
            let end = at + header.len();
            let limit = decoded.len().min(written + frame.block_max);
            written = self.block(header, encoded, at, end, Output { bytes: decoded, written, limit, lap: Lap::default() })?;
            at = end;
            if header.is_last {
                break;
            }
        }
        (at == encoded.len() && frame.content_size.is_none_or(|size| size == written)).then_some(written)
    }

    /// Decodes a block, the bytes `start..end` of `encoded`, and answers with how much of the output is written then.
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt")]
    fn block(&mut self, header: BlockHeader, encoded: &[u8], start: usize, end: usize, output: Output<'_>) -> Option<usize> {
        let Output { bytes, written, limit, lap } = output;
        let encoded = encoded.get(..end)?;
        let rest = bytes.get_mut(written..limit)?;
        match header.kind {
            BlockKind::Raw => {
                let block = encoded.get(start..)?;
                rest.get_mut(..block.len())?.copy_from_slice(block);
                Some(written + block.len())
            }
            BlockKind::Repeated => {
                rest.get_mut(..header.size)?.fill(*encoded.get(start)?);
                Some(written + header.size)
            }
            BlockKind::Compressed => {
                let (literals, at) = Literals::read(encoded, start, &mut self.huffman, &mut self.literals)?;
                let (count, sequences) = read_count(encoded.get(at..)?)?;
                if count == 0 {
                    let literals = literals.bytes.get(..literals.len)?;
                    rest.get_mut(..literals.len())?.copy_from_slice(literals);
                    return sequences.is_empty().then_some(written + literals.len());
                }
                let (modes, sequences) = sequences.split_first()?;
                // The reserved bits.
                if modes & 3 != 0 {
                    return None;
                }
                let stream = end - sequences.len() + self.sequences.read(*modes, sequences)?;
                let bits = Bits::new(encoded.get(stream..)?)?;
                let block = Block { tables: &self.sequences, bits, count, literals, limit, lap };
                execute::execute(&block, &mut self.repeats, bytes, written)
            }
        }
    }
}

/// Where a block is decoded to.
struct Output<'a> {
    bytes: &'a mut [u8],
    /// How much of them are.
    written: usize,
    /// Where the block ends at the latest.
    limit: usize,
    lap: Lap,
}

/// RFC 8878 §3.1.1.2.
#[derive(Clone, Copy)]
struct BlockHeader {
    kind: BlockKind,
    is_last: bool,
    size: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum BlockKind {
    Raw,
    Repeated,
    Compressed,
}

impl BlockHeader {
    const LEN: usize = 3;

    /// `None` for more bytes than a block may have.
    fn read(bytes: &[u8; Self::LEN], block_max: usize) -> Option<Self> {
        let [a, b, c] = *bytes;
        let header = u32::from_le_bytes([a, b, c, 0]);
        let kind = match header >> 1 & 3 {
            0 => BlockKind::Raw,
            1 => BlockKind::Repeated,
            2 => BlockKind::Compressed,
            _ => return None,
        };
        let size = usize::try_from(header >> 3).ok().filter(|size| *size <= block_max)?;
        Some(Self { kind, is_last: header & 1 != 0, size })
    }

    /// How many encoded bytes follow.
    fn len(self) -> usize {
        if self.kind == BlockKind::Repeated { 1 } else { self.size }
    }
}

/// The number of sequences (RFC 8878 §3.1.1.3.2), and what is behind it.
fn read_count(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (first, rest) = bytes.split_first()?;
    let first = usize::from(*first);
    if first < 128 {
        return Some((first, rest));
    }
    let (second, behind) = rest.split_first()?;
    if first < 255 {
        return Some(((first - 128) << 8 | usize::from(*second), behind));
    }
    let (third, behind) = behind.split_first()?;
    Some((0x7F00 + usize::from(*second) + (usize::from(*third) << 8), behind))
}

#[cfg(test)]
mod tests;

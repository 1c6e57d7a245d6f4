//! A decoder of frames that is faster than libzstd's: in 0.6 to 0.8 of its time where sequences are many and short, as in numbers that are compressed as they are.
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
use self::execute::{Block, Repeats};
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
pub(super) fn is_supported() -> bool {
    std::is_x86_feature_detected!("avx2")
        && std::is_x86_feature_detected!("bmi1")
        && std::is_x86_feature_detected!("bmi2")
        && std::is_x86_feature_detected!("lzcnt")
}

/// Decodes a frame to the start of `decoded`, and answers with the number of bytes. `None`: it is not a frame for this decoder, or not in order; some bytes were overwritten.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt")]
pub(super) fn decompress(encoded: &[u8], decoded: &mut [u8]) -> Option<usize> {
    let frame = Frame::read(encoded).filter(|frame| frame.content_size.is_none_or(|size| size <= decoded.len()))?;
    DECODER.with_borrow_mut(|slot| {
        let decoder = slot.get_or_insert_with(Decoder::new);
        decoder.decode(&frame, encoded, decoded)
    })
}

/// What the header of a frame says (RFC 8878 §3.1.1.1).
struct Frame {
    content_size: Option<usize>,
    /// The most that a block decodes to.
    block_max: usize,
    /// How long it is.
    len: usize,
}

impl Frame {
    /// `None` with a checksum, a dictionary or the reserved bit, and for windows that libzstd does not take.
    fn read(encoded: &[u8]) -> Option<Self> {
        let (descriptor, mut rest) = encoded.strip_prefix(&MAGIC_NUMBER)?.split_first()?;
        if descriptor & 0b1111 != 0 {
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
        let block_max = usize::try_from(window).unwrap_or(usize::MAX).min(BLOCK_MAXIMUM_SIZE);
        Some(Self { content_size, block_max, len: encoded.len() - rest.len() })
    }
}

/// What a thread reuses.
struct Decoder {
    huffman: huffman::Tables,
    sequences: sequences::Tables,
    literals: literals::Room,
}

impl Decoder {
    fn new() -> Box<Self> {
        Box::new(Self { huffman: huffman::Tables::new(), sequences: sequences::Tables::new(), literals: [0; size_of::<literals::Room>()] })
    }

    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt")]
    fn decode(&mut self, frame: &Frame, encoded: &[u8], decoded: &mut [u8]) -> Option<usize> {
        self.huffman.forget();
        self.sequences.forget();
        let mut repeats = FIRST_REPEATS;
        let mut written = 0;
        let mut at = frame.len;
        loop {
            // RFC 8878 §3.1.1.2.
            let (header, rest) = encoded.get(at..)?.split_first_chunk()?;
            let [a, b, c]: [u8; 3] = *header;
            let header = u32::from_le_bytes([a, b, c, 0]);
            let size = usize::try_from(header >> 3).ok().filter(|size| *size <= frame.block_max)?;
            at += 3;
            match header >> 1 & 3 {
                0 => {
                    decoded.get_mut(written..)?.get_mut(..size)?.copy_from_slice(rest.get(..size)?);
                    (at, written) = (at + size, written + size);
                }
                1 => {
                    decoded.get_mut(written..)?.get_mut(..size)?.fill(*rest.first()?);
                    (at, written) = (at + 1, written + size);
                }
                2 => {
                    let limit = decoded.len().min(written + frame.block_max);
                    written = self.block(encoded, at, at + size, &mut repeats, decoded.get_mut(..limit)?, written)?;
                    at += size;
                }
                _ => return None,
            }
            if header & 1 != 0 {
                break;
            }
        }
        (at == encoded.len() && frame.content_size.is_none_or(|size| size == written)).then_some(written)
    }

    /// Decodes the compressed block `start..end` of `encoded` (RFC 8878 §3.1.1.3) behind what is `written`, and answers with how much is then.
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt")]
    fn block(
        &mut self,
        encoded: &[u8],
        start: usize,
        end: usize,
        repeats: &mut Repeats,
        decoded: &mut [u8],
        written: usize,
    ) -> Option<usize> {
        let (literals, at) = Literals::read(encoded, start, end, &mut self.huffman, &mut self.literals)?;
        let (count, rest) = read_count(encoded.get(at..end)?)?;
        if count == 0 {
            let literals = literals.bytes.get(..literals.len)?;
            decoded.get_mut(written..)?.get_mut(..literals.len())?.copy_from_slice(literals);
            return rest.is_empty().then_some(written + literals.len());
        }
        let (modes, rest) = rest.split_first()?;
        // The reserved bits.
        if modes & 3 != 0 {
            return None;
        }
        let start = end - rest.len() + self.sequences.read(*modes, rest)?;
        let bits = Bits::new(encoded, start, end)?;
        execute::execute(&Block { tables: &self.sequences, bits, count, literals }, repeats, decoded, written)
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

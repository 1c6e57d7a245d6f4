//! A frame: header, blocks, checksum.

use super::Fault;
use super::block::Builder;
use crate::checksum;
use crate::decode::{Machine, decode_any};
use crate::rng::Rng;
use crate::write::{BlockType, Header, block, skippable};

/// A frame, and what it decodes to if nothing is wrong with it.
pub(super) struct Frame {
    pub(super) bytes: Vec<u8>,
    pub(super) size: usize,
    /// Whether the fault found its place.
    pub(super) hit: bool,
}

/// A random frame.
pub(super) fn random(rng: &Rng, fault: Option<Fault>) -> Frame {
    let mut header = Header::plain();
    header.window = match rng.below(10) {
        0..2 => rng.below(8) as u8,
        2 => rng.below(0xB0) as u8,
        3 => rng.range(0xA8, 0xAF) as u8,
        _ => (rng.range(3, 14) << 3 | rng.below(8)) as u8,
    };
    if matches!(fault, Some(Fault::BlockOutput | Fault::BlockTooLarge)) {
        header.window = rng.below(12) as u8;
    }
    let mut builder = Builder::new(rng, fault, header.block_max() as usize);
    let count = if rng.chance(3) { rng.range(10, 60) } else { 1 + rng.small(4) };
    let at = rng.below(count);
    for i in 0..count {
        builder.block(i == at, i + 1 == count && fault != Some(Fault::NoLastBlock));
    }
    let (mut body, mut hit, largest, produced) = (builder.bytes, builder.hit, builder.largest, builder.produced);

    let (out, error) = decode_any(&[header.bytes(), body.clone()].concat(), 1 << 19, Machine::here());
    let mut size = if error.is_some() { produced } else { out.len() };
    describe(&mut header, size as u64, largest, rng);
    if rng.chance(25) || matches!(fault, Some(Fault::ChecksumWrong | Fault::ChecksumShort)) {
        header.checksum = true;
        let mut sum = checksum(&out);
        if fault == Some(Fault::ChecksumWrong) {
            sum ^= 1 << rng.below(32);
        }
        let kept = if fault == Some(Fault::ChecksumShort) { rng.below(4) } else { 4 };
        body.extend(&sum.to_le_bytes()[..kept]);
    }
    hit |= header_fault(&mut header, fault, rng);
    match fault {
        Some(Fault::SizeLess) => size = size.saturating_sub(1 + rng.small(size / 2)),
        Some(Fault::LiteralsRoom) => size = rng.below(1500),
        Some(Fault::SizeMore) => size += 1 + rng.small(2000),
        Some(Fault::BlockOutput) if rng.chance(30) => size += rng.small(2200),
        _ => {}
    }
    let mut bytes = [header.bytes(), body].concat();
    match fault {
        Some(Fault::HeaderShort) => bytes.truncate(rng.below(header.bytes().len() + 3)),
        Some(Fault::Trailing) => {
            let len = rng.range(1, 4);
            bytes.extend(rng.bytes(len));
        }
        Some(Fault::TrailingGarbage) => {
            let len = rng.range(5, 20);
            bytes.extend(rng.bytes(len));
        }
        _ => {}
    }
    if fault == Some(Fault::OffsetPreviousFrame) {
        // Something for the match to reach into, in a frame before.
        let len = rng.range(1, 400);
        let mut first = Header::single(len as u64).bytes();
        first.extend(block(BlockType::Raw, true, len, &rng.bytes(len)));
        size += len;
        if rng.chance(20) {
            first.extend(skippable(0, 0, &[]));
        }
        bytes = [first, bytes].concat();
    }
    Frame { bytes, size, hit }
}

/// How the header tells sizes.
fn describe(header: &mut Header, size: u64, largest: usize, rng: &Rng) {
    header.unused = rng.chance(5);
    if rng.chance(5) {
        header.dictionary.0 = rng.range(1, 3) as u8;
    }
    if rng.chance(60) {
        header.content = size;
        header.content_code = Header::single(size).content_code;
        if rng.chance(20) {
            header.content_code = rng.range(2, 3) as u8;
        }
        if largest as u64 <= size && rng.chance(50) {
            header.single_segment = true;
        } else if header.content_code == 0 {
            header.content_code = 2;
        }
    }
    if rng.chance(1) {
        (header.content_code, header.content, header.single_segment) = (3, u64::MAX, rng.chance(50));
    }
}

fn header_fault(header: &mut Header, fault: Option<Fault>, rng: &Rng) -> bool {
    match fault {
        Some(Fault::Magic) => header.magic ^= rng.pick(&[1 << rng.below(32), 0xF, 0xFF00, 0xFFFF_FFFF]),
        Some(Fault::HeaderReserved) => header.reserved = true,
        Some(Fault::Window) => {
            (header.single_segment, header.window, header.content_code) = (false, rng.range(0xB0, 0xFF) as u8, header.content_code & 2)
        }
        Some(Fault::Dictionary) => header.dictionary = (rng.range(1, 3) as u8, 1 << rng.below(8)),
        Some(Fault::ContentSize) => {
            if header.content_code == 0 && !header.single_segment {
                header.content_code = 2;
            }
            header.content = match rng.below(5) {
                0 => header.content.wrapping_sub(1),
                1 => rng.next(),
                2 => rng.pick(&[0, 255, 256, u64::MAX, u64::MAX - 1, 1 << 32]),
                _ => header.content.wrapping_add(1 + rng.small(300) as u64),
            };
        }
        Some(
            Fault::HeaderShort
            | Fault::Trailing
            | Fault::TrailingGarbage
            | Fault::NoLastBlock
            | Fault::SizeLess
            | Fault::SizeMore
            | Fault::ChecksumWrong
            | Fault::ChecksumShort,
        ) => {}
        _ => return false,
    }
    true
}

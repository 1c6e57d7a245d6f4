//! `zarr-gpu fuzz --codec deflate`: random chunks of gzip and zlib.

use zarr_meta::Extension;
use zstd_frames::Rng;

use crate::cpu_fuzz::{Chunk, Family, damage, data};
use crate::fuzz::Result;

/// The format of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Gzip,
    Zlib,
}

/// Makes the chunks.
#[derive(Debug, Default)]
pub(crate) struct Deflate;

impl Family for Deflate {
    type Kind = Format;
    const KINDS: &[Format] = &[Format::Gzip, Format::Gzip, Format::Zlib];

    fn codec(format: Format) -> Result<Extension> {
        Ok(Extension::new(if format == Format::Gzip { "numcodecs.gzip" } else { "numcodecs.zlib" }))
    }

    fn chunk(&mut self, format: Format, rng: &Rng, _: u64) -> Chunk {
        chunk(rng, format)
    }

    /// Of blocks with codes, there may be too many for so few bytes.
    fn may_refuse(_: Format, _: &Chunk, words: &str) -> bool {
        words.starts_with("more blocks than")
    }
}

fn chunk(rng: &Rng, format: Format) -> Chunk {
    let members = if format == Format::Gzip && rng.chance(20) { rng.range(2, 4) } else { 1 };
    let (mut bytes, mut size) = (Vec::new(), 0);
    for index in 0..members {
        if index > 0 && rng.chance(20) {
            bytes.resize(bytes.len() + rng.small(600), 0);
        }
        let start = bytes.len();
        let (mut body, data) = if rng.chance(40) { compressed(rng) } else { by_hand(rng) };
        let mut data = data;
        if rng.chance(15) {
            damage(rng, &mut body);
            // Where the bits still are a stream, what they decode to gets the checksum that it needs.
            let mut room = vec![0; data.len() + rng.small(1000)];
            if let Ok(len) = libdeflater::Decompressor::new().deflate_decompress(&body, &mut room) {
                room.truncate(len);
                data = room;
            }
        }
        header(rng, format, &mut bytes);
        bytes.extend(body);
        match format {
            Format::Gzip => {
                bytes.extend(libdeflater::crc32(&data).to_le_bytes());
                bytes.extend((data.len() as u32).to_le_bytes());
            }
            Format::Zlib => bytes.extend(libdeflater::adler32(&data).to_be_bytes()),
        }
        size += data.len();
        if index > 0 && rng.chance(2) {
            bytes[start + 1] ^= 1 << rng.below(8);
        }
    }
    if rng.chance(10) {
        bytes.resize(bytes.len() + rng.small(700), 0);
    }
    if rng.chance(2) {
        bytes.push(rng.next() as u8);
    }
    if rng.chance(10) && !bytes.is_empty() {
        damage(rng, &mut bytes);
    }
    let size = match rng.below(60) {
        0 => size + 1 + rng.small(300),
        1 => size.saturating_sub(1 + rng.small(300)),
        _ => size,
    };
    Chunk { bytes, size }
}

fn header(rng: &Rng, format: Format, bytes: &mut Vec<u8>) {
    if format == Format::Zlib {
        let method = match rng.below(30) {
            0 => rng.next() as u8,
            1 => 8 | (rng.below(16) as u8) << 4,
            _ => 8 | (rng.below(8) as u8) << 4,
        };
        let mut flags = (rng.below(4) as u8) << 6 | if rng.chance(2) { 0x20 } else { 0 };
        flags += (31 - (u32::from(method) << 8 | u32::from(flags)) % 31) as u8 % 31;
        bytes.extend([method, flags]);
        return;
    }
    let flags = if rng.chance(70) { 0 } else { rng.below(32) as u8 | if rng.chance(3) { 0x40 } else { 0 } };
    bytes.extend([0x1f, 0x8b, if rng.chance(1) { 7 } else { 8 }, flags, 0, 0, 0, 0, rng.below(5) as u8, 255]);
    if flags & 4 != 0 {
        let len = rng.small(300);
        bytes.extend((len as u16).to_le_bytes());
        bytes.extend(rng.bytes(len));
    }
    for flag in [8, 16] {
        if flags & flag != 0 {
            bytes.extend(rng.bytes(rng.small(40)).into_iter().map(|byte| byte | 1));
            bytes.push(0);
        }
    }
    if flags & 2 != 0 {
        bytes.extend(rng.bytes(2));
    }
}

/// As an encoder makes it of data that look like something.
fn compressed(rng: &Rng) -> (Vec<u8>, Vec<u8>) {
    // Once in a while so much that sums need more than 32 bits.
    let huge = rng.below(2000) == 0;
    let len = if huge {
        17_500_000
    } else if rng.chance(5) {
        rng.small(2_000_000)
    } else {
        rng.small(60_000)
    };
    let data = if huge { vec![255; len] } else { data(rng, len) };
    let mut encoder = libdeflater::Compressor::new(libdeflater::CompressionLvl::new(rng.below(13) as i32).unwrap_or_default());
    let mut encoded = vec![0; encoder.deflate_compress_bound(data.len())];
    let len = encoder.deflate_compress(&data, &mut encoded).unwrap_or(0);
    encoded.truncate(len);
    (encoded, data)
}

/// Bits from the lowest of the first byte on.
#[derive(Debug, Default)]
struct Bits {
    bytes: Vec<u8>,
    used: usize,
}

impl Bits {
    fn push(&mut self, value: u32, len: u32) {
        for bit in 0..len {
            if self.used.is_multiple_of(8) {
                self.bytes.push(0);
            }
            *self.bytes.last_mut().expect("pushed") |= ((value >> bit & 1) as u8) << (self.used % 8);
            self.used += 1;
        }
    }

    /// The highest bit of a Huffman code comes first.
    fn push_code(&mut self, code: (u32, u32)) {
        (0..code.1).rev().for_each(|bit| self.push(code.0 >> bit & 1, 1));
    }
}

/// Lengths of codes of a complete code for so many symbols, in any order; of none and of one there is none that is.
fn code_lengths(rng: &Rng, symbols: usize, most: u32) -> Vec<u32> {
    if symbols < 2 {
        return vec![1; symbols];
    }
    let mut lens = vec![1, 1];
    let lopsided = rng.chance(50);
    while lens.len() < symbols {
        let at = if lopsided && rng.chance(80) { lens.len() - 1 } else { rng.below(lens.len()) };
        // A leaf becomes two, where codes do not get too long.
        let at = if lens[at] < most { at } else { (0..lens.len()).min_by_key(|&i| lens[i]).unwrap_or(0) };
        lens[at] += 1;
        lens.push(lens[at]);
    }
    rng.shuffle(&mut lens);
    lens
}

/// The canonical code of these lengths (RFC 1951 3.2.2): bits, and how many.
fn canonical(lens: &[u32]) -> Vec<(u32, u32)> {
    let mut codes = vec![(0, 0); lens.len()];
    let mut next = 0;
    for len in 1..16 {
        next <<= 1;
        for (code, _) in codes.iter_mut().zip(lens).filter(|(_, own)| **own == len) {
            *code = (next, len);
            next += 1;
        }
    }
    codes
}

#[derive(Debug, Clone, Copy)]
enum Token {
    Literal(u8),
    /// Symbol, extra bits and how many, of the length, then of the distance.
    Match([(usize, u32, u32); 2]),
}

/// The symbol, its extra bits, and how many these are.
fn length_symbol(rng: &Rng, len: usize) -> (usize, u32, u32) {
    if len == 258 && rng.chance(80) {
        // Two of these never occur, and are read as this length all the same.
        return (rng.pick(&[285, 285, 285, 285, 286, 287]), 0, 0);
    }
    let value = (len - 3) as u32;
    if value < 8 {
        return (257 + value as usize, 0, 0);
    }
    let extra = value.ilog2() - 2;
    (257 + (4 * extra + (value >> extra)) as usize, value & ((1 << extra) - 1), extra)
}

fn distance_symbol(rng: &Rng, distance: usize) -> (usize, u32, u32) {
    let value = (distance - 1) as u32;
    if value < 4 {
        return (value as usize, 0, 0);
    }
    let extra = value.ilog2() - 1;
    let symbol = (2 * extra + (value >> extra)) as usize;
    (if symbol == 29 { rng.pick(&[29, 29, 29, 30, 31]) } else { symbol }, value & ((1 << extra) - 1), extra)
}

/// Blocks that are put together bit by bit, and what they decode to.
fn by_hand(rng: &Rng) -> (Vec<u8>, Vec<u8>) {
    let (mut bits, mut data) = (Bits::default(), Vec::new());
    let blocks = 1 + if rng.chance(20) { rng.small(60) } else { rng.small(3) };
    for block in 0..blocks {
        bits.push(u32::from(block + 1 == blocks), 1);
        match rng.below(20) {
            0..2 => {
                bits.push(0, 2);
                let pad = bits.used.next_multiple_of(8) - bits.used;
                bits.push(if rng.chance(20) { 0x7f } else { 0 }, pad as u32);
                let content = rng.bytes(rng.small(if rng.chance(5) { 65_535 } else { 700 }));
                let len = content.len() as u16;
                let complement = if rng.chance(4) { !len ^ 1 << rng.below(16) } else { !len };
                bits.push(u32::from(len) | u32::from(complement) << 16, 32);
                bits.bytes.extend(&content);
                bits.used += 8 * content.len();
                data.extend(content);
            }
            2..6 => {
                bits.push(1, 2);
                let lens: Vec<u32> = (0..288)
                    .map(|i| {
                        if i < 144 {
                            8
                        } else if i < 256 {
                            9
                        } else if i < 280 {
                            7
                        } else {
                            8
                        }
                    })
                    .collect();
                let tokens = tokens(rng, &mut data);
                symbols(rng, &tokens, &canonical(&lens), &canonical(&[5; 32]), &mut bits);
            }
            6 if rng.chance(5) => bits.push(3, 2),
            _ => {
                bits.push(2, 2);
                dynamic(rng, &tokens(rng, &mut data), &mut bits);
            }
        }
    }
    (bits.bytes, data)
}

/// Literals and matches at random, which make more of `data`.
fn tokens(rng: &Rng, data: &mut Vec<u8>) -> Vec<Token> {
    let count = if rng.chance(10) { rng.small(40_000) } else { rng.small(1500) };
    let (matches, alphabet) = (rng.pick(&[0, 3, 30, 80, 97]), 1 + rng.small(255));
    let long = rng.chance(20);
    let mut tokens = Vec::with_capacity(count);
    for _ in 0..count {
        if data.is_empty() || !rng.chance(matches) {
            let literal = rng.below(alphabet) as u8;
            data.push(literal);
            tokens.push(Token::Literal(literal));
            continue;
        }
        let len = if long { 258 } else { 3 + rng.small(255) };
        let reach = data.len().min(32_768);
        let distance = if rng.chance(5) { reach } else { 1 + rng.small(reach - 1) };
        // Once in a while from before the start.
        let wrong = reach < 32_768 && rng.below(20_000) == 0;
        let from = data.len() - distance;
        (0..len).for_each(|i| data.push(data[from + i]));
        tokens.push(Token::Match([length_symbol(rng, len), distance_symbol(rng, if wrong { reach + 1 } else { distance })]));
        if data.len() > 4_000_000 {
            break;
        }
    }
    tokens
}

fn symbols(rng: &Rng, tokens: &[Token], literals: &[(u32, u32)], distances: &[(u32, u32)], bits: &mut Bits) {
    // Where there is one code, its other bit means the same.
    let alone = distances.iter().filter(|code| code.1 != 0).count() == 1;
    for token in tokens {
        match *token {
            Token::Literal(byte) => bits.push_code(literals[usize::from(byte)]),
            Token::Match([(length, value, count), (distance, more, more_count)]) => {
                bits.push_code(literals[length]);
                bits.push(value, count);
                let (code, len) = distances[distance];
                bits.push_code(if alone && len == 1 { (rng.below(2) as u32, 1) } else { (code, len) });
                bits.push(more, more_count);
            }
        }
    }
    bits.push_code(literals[256]);
}

fn dynamic(rng: &Rng, tokens: &[Token], bits: &mut Bits) {
    let (mut literals, mut distances) = (vec![false; 288], vec![false; 32]);
    literals[256] = true;
    for token in tokens {
        match *token {
            Token::Literal(byte) => literals[usize::from(byte)] = true,
            Token::Match([(length, ..), (distance, ..)]) => (literals[length], distances[distance]) = (true, true),
        }
    }
    // Symbols that do not come up.
    (0..rng.small(20)).for_each(|_| literals[rng.below(288)] = true);
    (0..rng.small(5)).for_each(|_| distances[rng.below(32)] = true);
    let lens = |used: &[bool], most: u32| -> Vec<u32> {
        let mut all = code_lengths(rng, used.iter().filter(|&&used| used).count(), most);
        used.iter().map(|&used| if used { all.pop().unwrap_or(0) } else { 0 }).collect()
    };
    let most = rng.range(10, 15) as u32;
    let (mut literal_lens, mut distance_lens) = (lens(&literals, most), lens(&distances, most));
    if rng.chance(2) {
        // Too many codes, too few, or one.
        let which = if rng.chance(50) { &mut literal_lens } else { &mut distance_lens };
        let at = rng.below(which.len());
        which[at] = rng.below(16) as u32;
    }
    let shortest = |lens: &[u32], least: usize| lens.iter().rposition(|&len| len != 0).map_or(0, |at| at + 1).max(least);
    let literal_count = rng.range(shortest(&literal_lens, 257), 288);
    let distance_count = rng.range(shortest(&distance_lens, 1), 32);
    let all: Vec<u32> = literal_lens[..literal_count].iter().chain(&distance_lens[..distance_count]).copied().collect();

    // Symbols, their extra bits, and how many.
    let mut coded: Vec<(usize, u32, u32)> = Vec::new();
    let mut at = 0;
    while at < all.len() {
        let run = all[at..].iter().take_while(|&&len| len == all[at]).count();
        if at == 0 && all[0] == 0 && run >= 3 && rng.chance(5) {
            // There is nothing before it to repeat.
            coded.push((16, run.min(6) as u32 - 3, 2));
            at += run.min(6);
        } else if all[at] == 0 && at + run == all.len() && rng.chance(3) {
            // More than there are.
            coded.push((18, (run as u32 + 1).clamp(11, 138) - 11, 7));
            at = all.len();
        } else if all[at] == 0 && run >= 3 && rng.chance(90) {
            let repeat = if run >= 11 && rng.chance(90) { rng.range(11, run.min(138)) } else { rng.range(3, run.min(10)) };
            coded.push(if repeat >= 11 { (18, repeat as u32 - 11, 7) } else { (17, repeat as u32 - 3, 3) });
            at += repeat;
        } else if at > 0 && all[at] == all[at - 1] && run >= 3 && rng.chance(80) {
            let repeat = rng.range(3, run.min(6));
            coded.push((16, repeat as u32 - 3, 2));
            at += repeat;
        } else {
            coded.push((all[at] as usize, 0, 0));
            at += 1;
        }
    }
    if rng.chance(1) {
        coded.push((rng.pick(&[0, 16, 18]), 0, 0));
    }
    let mut used = vec![false; 19];
    coded.iter().for_each(|&(symbol, ..)| used[symbol] = true);
    (0..rng.small(4)).for_each(|_| used[rng.below(19)] = true);
    let length_lens = lens(&used, 7);
    let order = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];
    let count = order.iter().rposition(|&symbol| length_lens[symbol] != 0).map_or(0, |at| at + 1).max(4);
    bits.push(literal_count as u32 - 257, 5);
    bits.push(distance_count as u32 - 1, 5);
    bits.push(count as u32 - 4, 4);
    order[..count].iter().for_each(|&symbol| bits.push(length_lens[symbol], 3));
    let codes = canonical(&length_lens);
    for (symbol, value, len) in coded {
        bits.push_code(codes[symbol]);
        bits.push(value, len);
    }
    symbols(rng, tokens, &canonical(&literal_lens), &canonical(&distance_lens), bits);
}

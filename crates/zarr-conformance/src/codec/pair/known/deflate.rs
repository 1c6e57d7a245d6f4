//! What of a deflate stream decoders are known to part on. RFC 1950, 1951 and 1952.

use super::crc32;

/// What is around a deflate stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// RFC 1950: one stream, and an Adler-32.
    Zlib,
    /// RFC 1952: members, each with a CRC-32 and a length.
    Gzip,
}

impl Framing {
    /// One stream that decodes to `decoded`, in its frame.
    pub(super) fn wrap(self, stream: &[u8], decoded: &[u8]) -> Vec<u8> {
        match self {
            Self::Zlib => [&[0x78, 0x01], stream, &adler32(decoded).to_be_bytes()].concat(),
            Self::Gzip => {
                let header = [0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 0xFF];
                [&header, stream, &crc32(decoded).to_le_bytes(), &(decoded.len() as u32).to_le_bytes()].concat()
            }
        }
    }

    /// Whether one of the streams has `oddity`, before whatever else is wrong with it.
    pub(super) fn any_block(self, bytes: &[u8], oddity: Oddity) -> bool {
        match self {
            Self::Zlib => bytes.get(2..).is_some_and(|stream| walk(stream) == Err(Some(oddity))),
            Self::Gzip => members(bytes).any(|(_, stream)| walk(stream) == Err(Some(oddity))),
        }
    }
}

/// A member of one stream that decodes to `decoded`, with a checksum of its header that is wrong.
pub(super) fn with_wrong_header_crc(stream: &[u8], decoded: &[u8]) -> Vec<u8> {
    let mut member = Framing::Gzip.wrap(stream, decoded);
    member[3] |= HEADER_CRC;
    let sum = !crc32(&member[..10]) as u16;
    member.splice(10..10, sum.to_le_bytes());
    member
}

/// Whether a member has a checksum of its header, and another one than it says.
pub(super) fn any_wrong_header_crc(bytes: &[u8]) -> bool {
    members(bytes).any(|(header, _)| match header.split_last_chunk::<2>() {
        Some((header, sum)) => {
            header.get(3).is_some_and(|flags| flags & HEADER_CRC != 0) && crc32(header) as u16 != u16::from_le_bytes(*sum)
        }
        None => false,
    })
}

/// The flag of a checksum behind the header, RFC 1952 §2.3.1.
const HEADER_CRC: u8 = 2;

/// The header of each member that begins behind good ones, and all that is behind it. Members may have zeros behind them.
fn members(mut bytes: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    std::iter::from_fn(move || {
        let stream = behind_header(bytes)?;
        let header = &bytes[..bytes.len() - stream.len()];
        let rest = walk(stream).ok().and_then(|len| stream.get(len + 8..)).unwrap_or_default();
        bytes = &rest[rest.iter().take_while(|byte| **byte == 0).count()..];
        Some((header, stream))
    })
}

/// What is behind the header of a member, RFC 1952 §2.3.
fn behind_header(bytes: &[u8]) -> Option<&[u8]> {
    let (header, mut rest) = bytes.split_first_chunk::<10>()?;
    let flags = header[3];
    if flags & 4 != 0 {
        let (len, more) = rest.split_first_chunk::<2>()?;
        rest = more.get(usize::from(u16::from_le_bytes(*len))..)?;
    }
    for flag in [8, 16] {
        if flags & flag != 0 {
            rest = rest.get(rest.iter().position(|byte| *byte == 0)? + 1..)?;
        }
    }
    if flags & HEADER_CRC != 0 { rest.get(2..) } else { Some(rest) }
}

/// Something that decoders part on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Oddity {
    /// A length symbol from 286 on, or a distance symbol from 30 on.
    ReservedSymbol,
}

/// The bytes of the stream; or what ended it early, `None` for what no decoder takes.
fn walk(stream: &[u8]) -> Result<usize, Option<Oddity>> {
    let mut bits = Bits { bytes: stream, at: 0 };
    loop {
        let last = bits.take(1)? == 1;
        match bits.take(2)? {
            0 => {
                bits.at = bits.at.next_multiple_of(8);
                let (len, complement) = (bits.take(16)?, bits.take(16)?);
                if len != !complement & 0xFFFF {
                    return Err(None);
                }
                bits.at += 8 * len as usize;
            }
            1 => {
                let lengths: Vec<u8> = (0..288)
                    .map(|symbol| FIXED[usize::from(symbol >= 144) + usize::from(symbol >= 256) + usize::from(symbol >= 280)])
                    .collect();
                block(&mut bits, &Code::new(&lengths), &Code::new(&[5; 32]))?;
            }
            2 => {
                let (literals, distances) = dynamic(&mut bits)?;
                block(&mut bits, &literals, &distances)?;
            }
            _ => return Err(None),
        }
        if last {
            return Ok(bits.at.div_ceil(8));
        }
    }
}

/// Bits of the fixed codes of literals and lengths, from symbols 0, 144, 256 and 280 on, §3.2.6.
const FIXED: [u8; 4] = [8, 9, 7, 8];

fn block(bits: &mut Bits<'_>, literals: &Code, distances: &Code) -> Result<(), Option<Oddity>> {
    loop {
        match bits.symbol(literals)? {
            0..256 => {}
            256 => return Ok(()),
            symbol @ 257..286 => {
                let step = u32::from(symbol) - 257;
                bits.take(if step < 8 || step == 28 { 0 } else { step / 4 - 1 })?;
                match bits.symbol(distances)? {
                    symbol @ 0..30 => bits.take((u32::from(symbol) / 2).saturating_sub(1))?,
                    _ => return Err(Some(Oddity::ReservedSymbol)),
                };
            }
            _ => return Err(Some(Oddity::ReservedSymbol)),
        }
    }
}

/// The order in which lengths of the code of code lengths come, §3.2.7.
const ORDER: [usize; 19] = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];

fn dynamic(bits: &mut Bits<'_>) -> Result<(Code, Code), Option<Oddity>> {
    let (literals, distances, own) = (bits.take(5)? as usize + 257, bits.take(5)? as usize + 1, bits.take(4)? as usize + 4);
    let mut lengths = [0; 19];
    for &place in ORDER.iter().take(own) {
        lengths[place] = bits.take(3)? as u8;
    }
    let code = Code::new(&lengths);
    let mut lengths: Vec<u8> = Vec::new();
    while lengths.len() < literals + distances {
        let (length, times) = match bits.symbol(&code)? {
            16 => (*lengths.last().ok_or(None)?, 3 + bits.take(2)?),
            17 => (0, 3 + bits.take(3)?),
            18 => (0, 11 + bits.take(7)?),
            length => (length as u8, 1),
        };
        lengths.extend((0..times).map(|_| length));
    }
    if lengths.len() > literals + distances {
        return Err(None);
    }
    let (literals, distances) = lengths.split_at(literals);
    Ok((Code::new(literals), Code::new(distances)))
}

/// A canonical code, §3.2.2.
struct Code {
    /// How many symbols have a code of each length.
    counts: [u32; 16],
    /// The symbols in the order of their codes.
    symbols: Vec<u16>,
}

impl Code {
    fn new(lengths: &[u8]) -> Self {
        let mut counts = [0; 16];
        let mut symbols = Vec::new();
        for len in 1..16 {
            let before = symbols.len();
            symbols.extend((0..lengths.len()).filter(|&symbol| lengths[symbol] == len).map(|symbol| symbol as u16));
            counts[usize::from(len)] = (symbols.len() - before) as u32;
        }
        Self { counts, symbols }
    }
}

struct Bits<'a> {
    bytes: &'a [u8],
    /// In bits.
    at: usize,
}

impl Bits<'_> {
    fn take(&mut self, count: u32) -> Result<u32, Option<Oddity>> {
        let mut value = 0;
        for bit in 0..count {
            let byte = self.bytes.get(self.at / 8).ok_or(None)?;
            value |= u32::from(byte >> (self.at % 8) & 1) << bit;
            self.at += 1;
        }
        Ok(value)
    }

    fn symbol(&mut self, code: &Code) -> Result<u16, Option<Oddity>> {
        let (mut value, mut first, mut index) = (0, 0, 0);
        for count in &code.counts[1..] {
            value |= self.take(1)?;
            if value < first + count {
                return code.symbols.get((index + value).wrapping_sub(first) as usize).copied().ok_or(None);
            }
            index += count;
            (first, value) = ((first + count) << 1, value << 1);
        }
        Err(None)
    }
}

/// The fixed code of symbol 285: a length of 258.
pub(super) const LENGTH: u32 = 0b1100_0101;
/// That of symbol 286, which is reserved.
pub(super) const RESERVED_LENGTH: u32 = 0b1100_0110;

/// `len` zeros in one block of fixed codes: a zero, 258 more by the symbol of this code at distance 1, then zeros.
pub(super) fn zeros(len: usize, symbol: u32) -> Vec<u8> {
    let mut bits = Vec::new();
    // Codes go from their highest bit on, numbers from their lowest; §3.1.1.
    let mut code = |value: u32, len: u32| bits.extend((0..len).rev().map(|bit| value >> bit & 1));
    // The last block, of fixed codes: 1, then 01 from its lowest bit on.
    code(0b110, 3);
    code(0b0011_0000, 8);
    code(symbol, 8);
    code(0, 5);
    for _ in 259..len {
        code(0b0011_0000, 8);
    }
    code(0, 7);
    bits.chunks(8).map(|byte| byte.iter().enumerate().map(|(at, bit)| (*bit << at) as u8).sum()).collect()
}

fn adler32(bytes: &[u8]) -> u32 {
    let (a, b) = bytes.iter().fold((1, 0), |(a, b), byte| {
        let a = (a + u32::from(*byte)) % 65521;
        (a, (b + a) % 65521)
    });
    b << 16 | a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_lengths_are_found_and_nothing_else_is() {
        // A zero, and 258 more at distance 1 by symbol 285: all that differs from the other is the symbol.
        let whole = [0x63, 0x18, 0x05, 0x00];
        assert_eq!(zeros(259, LENGTH), whole);
        assert_eq!(walk(&whole), Ok(4));
        assert_eq!(walk(&whole[..3]), Err(None));
        for framing in [Framing::Zlib, Framing::Gzip] {
            let reserved = framing.wrap(&zeros(300, RESERVED_LENGTH), &[0; 300]);
            assert!(framing.any_block(&reserved, Oddity::ReservedSymbol));
            assert!(!framing.any_block(&framing.wrap(&whole, &[0; 259]), Oddity::ReservedSymbol));
            assert!(!framing.any_block(&[], Oddity::ReservedSymbol));
        }
        let good = Framing::Gzip.wrap(&whole, &[0; 259]);
        let crc = with_wrong_header_crc(&whole, &[0; 259]);
        assert!(any_wrong_header_crc(&crc) && !any_wrong_header_crc(&good));
        let second = [&good[..], &[0; 3], &Framing::Gzip.wrap(&zeros(259, RESERVED_LENGTH), &[0; 259])].concat();
        assert!(Framing::Gzip.any_block(&second, Oddity::ReservedSymbol));
    }

    #[test]
    fn checksums_are_those_of_the_field() {
        assert_eq!(adler32(b"123456789"), 0x091E_01DE);
        assert_eq!(crc32(b"123456789"), 0xCBF4_3926);
    }
}

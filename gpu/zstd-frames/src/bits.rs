//! Bit streams: written from the low bit up, read from the low bit up (table descriptions) or from the high bit down (everything else).

/// Writes bits from the low end of each byte.
#[derive(Debug, Default, Clone)]
pub struct BitWriter {
    bytes: Vec<u8>,
    bits: usize,
}

impl BitWriter {
    /// Appends the low `count` bits of `value`.
    pub fn push(&mut self, value: u64, count: u32) {
        for i in 0..count {
            if self.bits.is_multiple_of(8) {
                self.bytes.push(0);
            }
            if let Some(last) = self.bytes.last_mut() {
                *last |= ((value >> i & 1) as u8) << (self.bits % 8);
            }
            self.bits += 1;
        }
    }

    /// Bits so far.
    pub fn len(&self) -> usize {
        self.bits
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.bits == 0
    }

    /// The bytes, the last one filled up with zeros.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// How a backward stream ends, that is, how its first bytes and its last one look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StreamEnd {
    /// Every bit is read, none is missing.
    #[default]
    Exact,
    /// This many bits are left over.
    Extra(u32),
    /// This many bits, those read last, are missing.
    Missing(u32),
    /// A byte of zeros stands where the end mark should be.
    ZeroByte,
    /// No byte at all.
    Empty,
}

/// The fields of a backward stream in the order in which they are read: value, number of bits.
pub type Fields = Vec<(u64, u32)>;

/// Makes a backward stream of fields. `filler` gives the bits that are left over.
pub fn backward(fields: &[(u64, u32)], end: StreamEnd, filler: u64) -> Vec<u8> {
    if end == StreamEnd::Empty {
        return Vec::new();
    }
    let mut writer = BitWriter::default();
    let mut missing = 0;
    match end {
        StreamEnd::Extra(bits) => writer.push(filler, bits.min(64)),
        StreamEnd::Missing(bits) => missing = bits,
        _ => {}
    }
    for &(value, bits) in fields.iter().rev() {
        let skipped = missing.min(bits);
        missing -= skipped;
        writer.push(value >> skipped, bits - skipped);
    }
    writer.push(1, 1);
    let mut bytes = writer.into_bytes();
    if end == StreamEnd::ZeroByte {
        bytes.push(0);
    }
    bytes
}

/// Reads a backward stream: from `end` down to `low`, both positions in `bytes`.
#[derive(Debug, Clone, Copy)]
pub struct Backward<'a> {
    bytes: &'a [u8],
    low: usize,
    /// The next bit to read lies just below this one, counted from the start of `bytes`. Below `8 * low` after an over-read.
    top: i64,
}

impl<'a> Backward<'a> {
    /// A stream that ends with a 1 and zeros to the end of its last byte; `None` if it has no byte, or the last is 0.
    pub fn new(bytes: &'a [u8], low: usize, end: usize) -> Option<Self> {
        let last = *bytes.get(low..end)?.last()?;
        (last != 0).then(|| Self { bytes, low, top: end as i64 * 8 - 1 - i64::from(last.leading_zeros()) })
    }

    /// A stream of which `used` bits below `end` were read.
    pub fn at(bytes: &'a [u8], low: usize, end: usize, used: i64) -> Self {
        Self { bytes, low, top: end as i64 * 8 - used }
    }

    /// Bits left; negative after an over-read.
    pub fn left(&self) -> i64 {
        self.top - self.low as i64 * 8
    }

    /// The next `count` bits, zeros below the start; nothing is consumed.
    pub fn look(&self, count: u32) -> u64 {
        let from = self.top - i64::from(count);
        if from < self.low as i64 * 8 || count > 56 {
            return (0..i64::from(count)).fold(0, |value, i| value << 1 | self.bit(self.top - 1 - i));
        }
        let mut word = [0; 8];
        for (to, from) in word.iter_mut().zip(self.bytes.get(from as usize / 8..).unwrap_or_default()) {
            *to = *from;
        }
        u64::from_le_bytes(word) >> (from % 8) & ((1 << count) - 1)
    }

    /// What a 64-bit register that holds the first 8 bytes shows once all its bits are used: it starts again from the top.
    pub fn look_wrapped(&self, count: u32) -> u64 {
        let mut register = [0; 8];
        for (to, from) in register.iter_mut().zip(self.bytes.get(self.low..).unwrap_or_default()) {
            *to = *from;
        }
        let used = (64 - self.left()) & 63;
        (u64::from_le_bytes(register) << used) >> (64 - count)
    }

    /// Consumes bits.
    pub fn skip(&mut self, count: u32) {
        self.top -= i64::from(count);
    }

    /// The next `count` bits.
    pub fn read(&mut self, count: u32) -> u64 {
        let value = self.look(count);
        self.skip(count);
        value
    }

    fn bit(&self, at: i64) -> u64 {
        if at < self.low as i64 * 8 {
            return 0;
        }
        self.bytes.get((at / 8) as usize).map_or(0, |byte| u64::from(byte >> (at % 8) & 1))
    }
}

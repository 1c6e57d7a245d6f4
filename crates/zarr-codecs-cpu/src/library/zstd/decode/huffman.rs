//! Huffman trees, and streams of literals that are coded with them (RFC 8878 §4.2 and §3.1.1.3.1.6).

use super::bits::Bits;
use super::fse;
use super::memory::{WORD, word};

/// The longest code.
const MAX_LOG: u32 = 11;
/// The weights that there are, 0 among them.
const WEIGHTS: usize = 12;
const WEIGHT_LOG: u32 = 6;
/// Symbols, and so weights, of a tree.
const SYMBOLS: usize = 256;
const STREAMS: usize = 4;
/// Lookups that a word has bits for, so that a table of pairs yields up to twice as many symbols.
const LOOKUPS: usize = 5;
/// The most bytes that so many lookups and the bits of a byte go on by.
const STEP: usize = 8;
/// Literals that are worth a table of pairs, if the chance that two codes fit into a lookup is more than this of 2^22. Both were found by measuring.
const PAIRS_LITERALS: usize = 4096;
const PAIRS_CHANCE: u32 = 5 << 19;

/// What [`MAX_LOG`] bits say: the length of the code that they begin with, below its symbol.
type Single = u16;
/// The same of two codes, if both fit: the length of both in the lowest byte, then how many there are, then their symbols.
type Pair = u32;

/// The tables of a tree.
pub(super) struct Tables {
    singles: [Single; 1 << MAX_LOG],
    pairs: [Pair; 1 << MAX_LOG],
    /// How often two codes fit into a lookup, of 2^22.
    chance: u32,
    has_tree: bool,
    has_pairs: bool,
}

impl Tables {
    pub(super) const fn new() -> Self {
        Self { singles: [0; 1 << MAX_LOG], pairs: [0; 1 << MAX_LOG], chance: 0, has_tree: false, has_pairs: false }
    }

    pub(super) fn forget(&mut self) {
        self.has_tree = false;
    }

    /// Reads the description of a tree at `start..end` of `encoded` (RFC 8878 §4.2.1), and answers with where it ends.
    pub(super) fn read(&mut self, encoded: &[u8], start: usize, end: usize) -> Option<usize> {
        self.has_tree = false;
        let mut weights = [0u8; SYMBOLS];
        let (head, described) = encoded.get(start..end)?.split_first()?;
        let head = usize::from(*head);
        let (count, taken) = if head < 128 {
            let behind = start + 1 + described.get(..head)?.len();
            (read_weights(encoded, start + 1, behind, &mut weights)?, head)
        } else {
            let count = head - 127;
            let packed = described.get(..count.div_ceil(2))?;
            for (pair, byte) in weights.chunks_exact_mut(2).zip(packed) {
                pair.copy_from_slice(&[byte >> 4, byte & 15]);
            }
            (count, packed.len())
        };
        self.build(&mut weights, count)?;
        self.has_tree = true;
        Some(start + 1 + taken)
    }

    /// The table of the tree with weights for the first `count` symbols, and for one more that is not written.
    fn build(&mut self, weights: &mut [u8; SYMBOLS], count: usize) -> Option<()> {
        // How much of the table each weight takes, in the lengths of the longest code.
        let mut shares = [0u32; WEIGHTS];
        for weight in weights.get(..count)? {
            *shares.get_mut(usize::from(*weight))? += 1 << weight >> 1;
        }
        let total: u32 = shares.iter().sum();
        let log = total.checked_ilog2()? + 1;
        let rest = (1u32 << log) - total;
        if log > MAX_LOG || !rest.is_power_of_two() {
            return None;
        }
        let last = rest.ilog2() + 1;
        *weights.get_mut(count)? = last as u8;
        *shares.get_mut(last as usize)? += rest;
        // The longest codes come in pairs.
        let [_, longest, ..] = shares;
        if longest < 2 || longest % 2 != 0 {
            return None;
        }
        let up = MAX_LOG - log;
        let mut next = [0usize; WEIGHTS];
        let mut sum = 0;
        for (next, share) in next.iter_mut().zip(shares).skip(1) {
            *next = sum;
            sum += (share << up) as usize;
        }
        for (symbol, weight) in (0u16..).zip(weights.get(..=count)?).filter(|(_, weight)| **weight > 0) {
            let next = next.get_mut(usize::from(*weight))?;
            let behind = *next + (1 << (u32::from(*weight) - 1 + up));
            let len = log as u16 + 1 - u16::from(*weight);
            self.singles.get_mut(*next..behind)?.fill(symbol << 8 | len);
            *next = behind;
        }
        self.has_pairs = false;
        let weights = || (0..).zip(shares).filter(|(_, share)| *share > 0);
        let chances = weights().map(|(first, share)| {
            let fitting = weights().filter(|(second, _)| 2 * (log + 1) - first - second <= MAX_LOG);
            (share << up) * fitting.map(|(_, share)| share << up).sum::<u32>()
        });
        self.chance = chances.sum();
        Some(())
    }

    fn build_pairs(&mut self) {
        for (at, (pair, single)) in self.pairs.iter_mut().zip(&self.singles).enumerate() {
            let (len, symbol) = (single & 0xFF, u32::from(single >> 8));
            let second = self.singles.get(at << len & ((1 << MAX_LOG) - 1)).copied().unwrap_or_default();
            let both = u32::from(len + (second & 0xFF));
            *pair = if both <= MAX_LOG {
                u32::from(second >> 8) << 24 | symbol << 16 | 2 << 8 | both
            } else {
                symbol << 16 | 1 << 8 | u32::from(len)
            };
        }
        self.has_pairs = true;
    }

    /// Decodes one stream, the bytes `start..end` of `encoded`, to the whole of `literals`.
    pub(super) fn decode_one(&self, encoded: &[u8], start: usize, end: usize, literals: &mut [u8]) -> Option<()> {
        if !self.has_tree {
            return None;
        }
        self.finish(&mut Bits::new(encoded.get(start..end)?)?, literals)
    }

    /// Decodes the rest of a stream, which ends with the last of `literals`.
    fn finish(&self, bits: &mut Bits<'_>, literals: &mut [u8]) -> Option<()> {
        for literal in literals {
            let single = self.singles.get((bits.peek() >> (u64::BITS - MAX_LOG)) as usize)?;
            *literal = (single >> 8) as u8;
            bits.left = bits.left.checked_sub(usize::from(single & 0xFF))?;
        }
        (bits.left == 0).then_some(())
    }

    /// Decodes four streams behind their jump table, the bytes `start..end` of `encoded`, to the whole of `literals`.
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt")]
    pub(super) fn decode_four(&mut self, encoded: &[u8], start: usize, end: usize, literals: &mut [u8]) -> Option<()> {
        let jump: &[u8; 6] = encoded.get(start..end)?.first_chunk()?;
        let [a, b, c, d, e, f] = *jump;
        let [first, second, third] = [[a, b], [c, d], [e, f]].map(|len| usize::from(u16::from_le_bytes(len)));
        let first = (start + 6, start + 6 + first);
        let second = (first.1, first.1 + second);
        let third = (second.1, second.1 + third);
        let ends = [first, second, third, (third.1, end)];
        // libzstd asks for so many.
        if !self.has_tree || third.1 >= end || literals.len() < 6 {
            return None;
        }
        let with_pairs = literals.len() >= PAIRS_LITERALS && self.chance > PAIRS_CHANCE;
        if with_pairs && !self.has_pairs {
            self.build_pairs();
        }
        let each = literals.len().div_ceil(4);
        let mut parts = literals.chunks_mut(each);
        let mut streams = ends.map(|(start, end)| Stream::new(encoded.get(start..end)?, parts.next().unwrap_or_default()));
        let [Some(a), Some(b), Some(c), Some(d)] = &mut streams else { return None };
        let mut streams = [a, b, c, d];
        if streams.iter().all(|stream| stream.bits.bytes.len() >= WORD) {
            if with_pairs {
                decode_pairs(&self.pairs, &mut streams);
            } else {
                decode_singles(&self.singles, &mut streams);
            }
        }
        for stream in streams {
            self.finish(&mut stream.bits, stream.literals.get_mut(stream.decoded..)?)?;
        }
        Some(())
    }
}

/// One of four streams, on the way.
struct Stream<'e, 'l> {
    bits: Bits<'e>,
    literals: &'l mut [u8],
    /// How many of them are.
    decoded: usize,
}

impl<'e, 'l> Stream<'e, 'l> {
    fn new(bytes: &'e [u8], literals: &'l mut [u8]) -> Option<Self> {
        Some(Self { bits: Bits::new(bytes)?, literals, decoded: 0 })
    }

    /// Where in the stream, which has a word at least, the word begins that is read next; and the word, without the bits that are read. Its lowest bit, which is read in no round, is set, so that it tells how many these are.
    fn start(&self) -> (usize, u64) {
        let at = self.bits.bytes.len() - WORD;
        // SAFETY: the last word of the stream.
        let word = unsafe { word(self.bits.bytes, at) } | 1;
        (at, word << (self.bits.bytes.len() * 8 - self.bits.left))
    }

    fn go_on(&mut self, at: usize, word: u64, decoded: usize) {
        self.bits.left = (at + WORD) * 8 - word.trailing_zeros() as usize;
        self.decoded = decoded;
    }
}

/// The step of a stream to its next word. `$at` is [`STEP`] before, at least.
macro_rules! refill {
    ($bytes:ident, $at:ident, $word:ident) => {
        let taken = $word.trailing_zeros() as usize;
        $at -= taken / 8;
        // SAFETY: the word was within the stream, and begins no later now; and it begins less than `STEP` before where it did.
        $word = (unsafe { word($bytes, $at) } | 1) << (taken % 8);
    };
}

/// Decodes as much as can be without a look at where streams and literals end. Each stream has a word at least.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt")]
#[inline(never)]
fn decode_singles(table: &[Single; 1 << MAX_LOG], streams: &mut [&mut Stream<'_, '_>; STREAMS]) {
    let [s0, s1, s2, s3] = streams;
    let [(mut a0, mut w0), (mut a1, mut w1), (mut a2, mut w2), (mut a3, mut w3)] = [s0.start(), s1.start(), s2.start(), s3.start()];
    let [b0, b1, b2, b3] = [s0.bits.bytes, s1.bits.bytes, s2.bits.bytes, s3.bits.bytes];
    let [l0, l1, l2, l3] = [&mut *s0.literals, &mut *s1.literals, &mut *s2.literals, &mut *s3.literals];
    let shortest = l0.len().min(l1.len()).min(l2.len()).min(l3.len());
    let mut decoded = 0;
    loop {
        let rounds = ((shortest - decoded) / LOOKUPS).min(a0.min(a1).min(a2).min(a3) / STEP);
        if rounds == 0 {
            break;
        }
        let until = decoded + rounds * LOOKUPS;
        while decoded < until {
            macro_rules! look_up {
                ($literals:ident, $word:ident, $number:literal) => {
                    // SAFETY: as many bits as the table has.
                    let single = *unsafe { table.get_unchecked(($word >> (u64::BITS - MAX_LOG)) as usize) };
                    $word <<= single & 63;
                    // SAFETY: less than `until`, which is at most the length.
                    *unsafe { $literals.get_unchecked_mut(decoded + $number) } = (single >> 8) as u8;
                };
            }
            macro_rules! look_up_all {
                ($($number:literal)+) => {$(
                    look_up!(l0, w0, $number);
                    look_up!(l1, w1, $number);
                    look_up!(l2, w2, $number);
                    look_up!(l3, w3, $number);
                )+};
            }
            look_up_all!(0 1 2 3 4);
            refill!(b0, a0, w0);
            refill!(b1, a1, w1);
            refill!(b2, a2, w2);
            refill!(b3, a3, w3);
            decoded += LOOKUPS;
        }
    }
    for (stream, (at, word)) in streams.iter_mut().zip([(a0, w0), (a1, w1), (a2, w2), (a3, w3)]) {
        stream.go_on(at, word, decoded);
    }
}

/// The same with pairs.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt")]
#[inline(never)]
fn decode_pairs(table: &[Pair; 1 << MAX_LOG], streams: &mut [&mut Stream<'_, '_>; STREAMS]) {
    let [s0, s1, s2, s3] = streams;
    let [(mut a0, mut w0), (mut a1, mut w1), (mut a2, mut w2), (mut a3, mut w3)] = [s0.start(), s1.start(), s2.start(), s3.start()];
    let [b0, b1, b2, b3] = [s0.bits.bytes, s1.bits.bytes, s2.bits.bytes, s3.bits.bytes];
    let [l0, l1, l2, l3] = [&mut *s0.literals, &mut *s1.literals, &mut *s2.literals, &mut *s3.literals];
    let [mut d0, mut d1, mut d2, mut d3] = [0; STREAMS];
    loop {
        let rest = (l0.len() - d0).min(l1.len() - d1).min(l2.len() - d2).min(l3.len() - d3);
        let rounds = (rest / (2 * LOOKUPS)).min(a0.min(a1).min(a2).min(a3) / STEP);
        if rounds == 0 {
            break;
        }
        for _ in 0..rounds {
            macro_rules! look_up {
                ($literals:ident, $word:ident, $decoded:ident) => {
                    // SAFETY: as many bits as the table has.
                    let pair = *unsafe { table.get_unchecked(($word >> (u64::BITS - MAX_LOG)) as usize) };
                    $word <<= pair & 63;
                    // SAFETY: each round goes on by at most `2 * LOOKUPS`, two at a time.
                    let to = unsafe { $literals.as_mut_ptr().add($decoded) };
                    // SAFETY: two bytes of the slice; an array of bytes has no alignment.
                    unsafe { *to.cast() = ((pair >> 16) as u16).to_le_bytes() };
                    $decoded += (pair >> 8 & 0xFF) as usize;
                };
            }
            for _ in 0..LOOKUPS {
                look_up!(l0, w0, d0);
                look_up!(l1, w1, d1);
                look_up!(l2, w2, d2);
                look_up!(l3, w3, d3);
            }
            refill!(b0, a0, w0);
            refill!(b1, a1, w1);
            refill!(b2, a2, w2);
            refill!(b3, a3, w3);
        }
    }
    for (stream, (at, word, decoded)) in streams.iter_mut().zip([(a0, w0, d0), (a1, w1, d1), (a2, w2, d2), (a3, w3, d3)]) {
        stream.go_on(at, word, decoded);
    }
}

/// Decodes compressed weights, the bytes `start..end` of `encoded`, and answers with how many: two states take turns until the stream is used up (RFC 8878 §4.2.1.2).
fn read_weights(encoded: &[u8], start: usize, end: usize, weights: &mut [u8; SYMBOLS]) -> Option<usize> {
    let (counts, taken) = fse::Counts::read(encoded.get(start..end)?, WEIGHTS, WEIGHT_LOG)?;
    let mut table = [(0u8, 0u8, 0u16); 1 << WEIGHT_LOG];
    fse::build(&counts, &mut table, |symbol, bits, base| Some((symbol, bits, base)))?;
    let mut bits = Bits::new(encoded.get(start + taken..end)?)?;
    let (mut state, mut other) = (bits.read(counts.log)?, bits.read(counts.log)?);
    // Room for the one that is read, for the last, and for the one that is not written.
    for count in 0..SYMBOLS - 2 {
        let (weight, width, base) = *table.get(state as usize)?;
        *weights.get_mut(count)? = weight;
        let Some(more) = bits.read(u32::from(width)) else {
            let (last, ..) = *table.get(other as usize)?;
            *weights.get_mut(count + 1)? = last;
            return Some(count + 2);
        };
        (state, other) = (other, u32::from(base) + more);
    }
    None
}

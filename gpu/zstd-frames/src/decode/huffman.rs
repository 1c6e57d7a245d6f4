//! Huffman-coded literals, with the ends of streams that libzstd lets pass.

use super::{Status, counts};
use crate::bits::Backward;
use crate::fse::Table;

/// What libzstd does depends on the machine in one point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Machine {
    /// Whether it takes its fast path for four streams, which does not look at the ends of streams: everywhere but on x86-64 without BMI2.
    pub fast_huffman: bool,
}

impl Machine {
    /// This one.
    pub fn here() -> Self {
        #[cfg(target_arch = "x86_64")]
        let fast_huffman = std::arch::is_x86_feature_detected!("bmi2");
        #[cfg(not(target_arch = "x86_64"))]
        let fast_huffman = cfg!(all(target_pointer_width = "64", target_endian = "little"));
        Self { fast_huffman }
    }
}

#[derive(Clone, Copy, Default)]
struct Code {
    symbol: u8,
    bits: u32,
}

/// A tree as a table, and which of libzstd's two decoders goes with it.
pub(super) struct Decoding {
    table: Vec<Code>,
    width: u32,
    pairs: bool,
}

impl Decoding {
    /// Reads the description at the start of `section`; gives the bytes it took, fewer than there are.
    pub(super) fn read(section: &[u8], four: bool, len: usize) -> Result<(Self, usize), Status> {
        let (&header, rest) = section.split_first().ok_or(Status::HuffmanEmpty)?;
        let (mut weights, size) = if header >= 128 {
            let count = usize::from(header) - 127;
            let packed = rest.get(..count.div_ceil(2)).ok_or(Status::LiteralsTruncated)?;
            let weights: Vec<u8> = (0..count).map(|i| if i % 2 == 0 { packed[i / 2] >> 4 } else { packed[i / 2] & 15 }).collect();
            (weights, packed.len())
        } else {
            let packed = rest.get(..usize::from(header)).ok_or(Status::LiteralsTruncated)?;
            (fse_weights(packed)?, packed.len())
        };
        if weights.iter().any(|weight| *weight > 12) {
            return Err(Status::HuffmanWeights);
        }
        let total: u32 = weights.iter().map(|weight| 1u32 << weight >> 1).sum();
        if total == 0 {
            return Err(Status::HuffmanWeights);
        }
        let log = total.ilog2() + 1;
        if log > 12 {
            return Err(Status::HuffmanLog);
        }
        let left = (1u32 << log) - total;
        if !left.is_power_of_two() {
            return Err(Status::HuffmanWeights);
        }
        weights.push(left.ilog2() as u8 + 1);
        let lightest = weights.iter().filter(|weight| **weight == 1).count();
        if lightest < 2 || lightest % 2 == 1 {
            return Err(Status::HuffmanWeights);
        }
        let used = size + 1;
        if used >= section.len() {
            return Err(Status::HuffmanEmpty);
        }
        let width = log.max(11);
        let mut table = Vec::with_capacity(1 << width);
        for weight in 1..=12u8 {
            for (symbol, _) in weights.iter().enumerate().filter(|(_, other)| **other == weight) {
                let code = Code { symbol: symbol as u8, bits: log + 1 - u32::from(weight) };
                table.extend(std::iter::repeat_n(code, 1 << (u32::from(weight) - 1 + width - log)));
            }
        }
        Ok((Self { table, width, pairs: four && selects_pairs(len, section.len()) }, used))
    }

    /// Decodes one stream; says whether its end was exact.
    pub(super) fn one_stream(&self, stream: &[u8], len: usize) -> Result<(Vec<u8>, bool), Status> {
        let mut reader = Backward::new(stream, 0, stream.len()).ok_or(Status::HuffmanStream)?;
        let mut out = Vec::new();
        let exact = self.symbols(&mut reader, &mut out, len);
        if reader.left() == 0 { Ok((out, !exact)) } else { Err(Status::HuffmanEnd) }
    }

    /// Decodes four streams; says whether only laxness let them pass.
    pub(super) fn four_streams(&self, streams: &[u8], len: usize, machine: Machine) -> Result<(Vec<u8>, bool), Status> {
        if streams.len() < 10 {
            return Err(Status::HuffmanJump);
        }
        let mut starts = [6; 4];
        let mut ends = [streams.len(); 4];
        for i in 0..3 {
            ends[i] = starts[i] + usize::from(u16::from_le_bytes([streams[2 * i], streams[2 * i + 1]]));
            starts[i + 1] = ends[i];
        }
        if starts[3] > streams.len() {
            return Err(Status::HuffmanJump);
        }
        let segment = len.div_ceil(4);
        let wanted = [segment, segment, segment, len - 3 * segment];
        let exact = self.exact_streams(streams, starts, ends, wanted);
        let long = (0..4).all(|i| ends[i] - starts[i] >= 8);
        if !(machine.fast_huffman && self.width == 11 && long && wanted[3] > 0) {
            return exact;
        }
        match exact {
            Ok((out, false)) => Ok((out, false)),
            _ => self.fast_streams(streams, starts, ends, wanted).map(|out| (out, true)),
        }
    }

    fn exact_streams(&self, streams: &[u8], starts: [usize; 4], ends: [usize; 4], wanted: [usize; 4]) -> Result<(Vec<u8>, bool), Status> {
        let mut all = Vec::new();
        let mut lax = false;
        for i in 0..4 {
            let mut reader = Backward::new(streams, starts[i], ends[i]).ok_or(Status::HuffmanStream)?;
            let mut out = Vec::new();
            lax |= !self.symbols(&mut reader, &mut out, wanted[i]);
            if reader.left() != 0 {
                return Err(Status::HuffmanEnd);
            }
            all.extend(out);
        }
        Ok((all, lax))
    }

    /// The fast path: in rounds of 5 look-ups for each stream, then the rest stream by stream.
    fn fast_streams(&self, streams: &[u8], starts: [usize; 4], ends: [usize; 4], wanted: [usize; 4]) -> Result<Vec<u8>, Status> {
        let mut out: [Vec<u8>; 4] = Default::default();
        let mut used = ends.map(|end| {
            let last = streams[end - 1];
            if last == 0 { 0 } else { i64::from(last.leading_zeros()) + 1 }
        });
        let mut at = ends.map(|end| end as i64 - 8);
        loop {
            let by_input = (at[0] / 7) as usize;
            let mut rounds = if self.pairs {
                (0..4).map(|i| (wanted[i] - out[i].len()) / 10).fold(by_input, usize::min)
            } else {
                by_input.min((wanted[3] - out[3].len()) / 5)
            };
            if rounds == 0 || at.windows(2).any(|pair| pair[1] < pair[0]) {
                break;
            }
            let goal = out[3].len() + 5 * rounds;
            while rounds > 0 && out[3].len() < goal {
                for i in 0..4 {
                    let mut reader = Backward::at(streams, 0, ends[i], used[i]);
                    for _ in 0..5 {
                        let (first, second) = self.look(&reader);
                        out[i].push(first.symbol);
                        reader.skip(first.bits);
                        if let Some(second) = second {
                            out[i].push(second.symbol);
                            reader.skip(second.bits);
                        }
                    }
                    used[i] = ends[i] as i64 * 8 - reader.left();
                    at[i] = ends[i] as i64 - 8 - used[i] / 8;
                }
                rounds -= 1;
            }
        }
        for i in 0..4 {
            if at[i] < starts[i] as i64 - 8 {
                return Err(Status::HuffmanEnd);
            }
            let mut reader = Backward::at(streams, 0, ends[i], used[i]);
            self.symbols(&mut reader, &mut out[i], wanted[i]);
        }
        Ok(out.concat())
    }

    /// Decodes up to `len` symbols in all. False if the last one used up bits in a way that only libzstd's decoder of pairs does.
    fn symbols(&self, reader: &mut Backward<'_>, out: &mut Vec<u8>, len: usize) -> bool {
        let mut exact = true;
        while out.len() < len {
            let (first, second) = self.look(reader);
            out.push(first.symbol);
            let Some(second) = second else {
                reader.skip(first.bits);
                continue;
            };
            if out.len() < len {
                out.push(second.symbol);
                reader.skip(first.bits + second.bits);
            } else {
                // The last symbol, from an entry of two: all the bits there are will do.
                let left = reader.left();
                exact = left == i64::from(first.bits);
                if left > 0 {
                    reader.skip(left.min(i64::from(first.bits + second.bits)) as u32);
                }
            }
        }
        exact
    }

    fn look(&self, reader: &Backward<'_>) -> (Code, Option<Code>) {
        let width = self.width;
        let seen = (if reader.left() > 0 { reader.look(width) } else { reader.look_wrapped(width) }) as usize;
        let first = self.table.get(seen).copied().unwrap_or_default();
        if !self.pairs {
            return (first, None);
        }
        let second = self.table.get(seen << first.bits & ((1 << width) - 1)).copied().unwrap_or_default();
        (first, (first.bits + second.bits <= width).then_some(second))
    }
}

/// Whether libzstd expects its decoder of pairs to be faster.
fn selects_pairs(len: usize, section: usize) -> bool {
    const SINGLE: [(usize, usize); 16] = [
        (0, 0),
        (0, 0),
        (150, 216),
        (170, 205),
        (177, 199),
        (197, 194),
        (221, 192),
        (256, 189),
        (359, 188),
        (582, 187),
        (688, 187),
        (825, 186),
        (976, 185),
        (1180, 186),
        (1377, 185),
        (1412, 185),
    ];
    const PAIRS: [(usize, usize); 16] = [
        (1, 1),
        (1, 1),
        (381, 119),
        (514, 112),
        (539, 110),
        (644, 107),
        (735, 107),
        (881, 106),
        (1167, 109),
        (1570, 114),
        (1712, 122),
        (1965, 136),
        (2131, 150),
        (2070, 175),
        (1731, 202),
        (1695, 202),
    ];
    let quantile = if section >= len { 15 } else { section * 16 / len };
    let time = |table: &[(usize, usize); 16]| table[quantile].0 + table[quantile].1 * (len >> 8);
    let pairs = time(&PAIRS);
    pairs + (pairs >> 5) < time(&SINGLE)
}

fn fse_weights(packed: &[u8]) -> Result<Vec<u8>, Status> {
    let counts = counts::read(packed, 255).ok_or(Status::HuffmanCounts)?;
    let top = counts.counts.len() - 1;
    if counts.log > 6 || top > if counts.log == 6 { 11 } else { 91 } {
        return Err(Status::HuffmanCounts);
    }
    let table = Table::new(&counts.counts, counts.log);
    let mut reader = Backward::new(packed, counts.used, packed.len()).ok_or(Status::HuffmanStream)?;
    let mut states = [0; 2];
    for state in &mut states {
        *state = reader.read(counts.log) as usize;
    }
    if reader.left() < 0 {
        return Err(Status::HuffmanCounts);
    }
    let mut weights = Vec::new();
    loop {
        let turn = weights.len() % 2;
        if weights.len() > 253 {
            return Err(Status::HuffmanWeights);
        }
        let entry = table.entries[states[turn]];
        weights.push(entry.symbol);
        states[turn] = entry.base as usize + reader.read(entry.bits) as usize;
        if reader.left() < 0 {
            weights.push(table.entries[states[1 - turn]].symbol);
            return Ok(weights);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::huffman::Tree;
    use crate::rng::Rng;

    #[test]
    fn trees_are_read_as_they_were_described() {
        for seed in 0..2000 {
            let rng = Rng::new(seed);
            let mut symbols: Vec<u8> = (0..=255).collect();
            rng.shuffle(&mut symbols);
            symbols.truncate(rng.range(2, 60));
            let tree = Tree::random(&symbols, rng.range(6, 12) as u32, &rng);
            for description in [tree.describe_fse(&rng), tree.direct().then(|| tree.describe_direct())].into_iter().flatten() {
                let mut section = description.clone();
                section.push(1);
                let (read, used) = Decoding::read(&section, false, 0).unwrap_or_else(|status| panic!("seed {seed}: {status:?}, {tree:?}"));
                assert_eq!(used, description.len());
                for symbol in tree.symbols() {
                    let (code, bits) = tree.code(symbol).expect("it is in the tree");
                    let entry = read.table[(code << (read.width - bits)) as usize];
                    assert_eq!((entry.symbol, entry.bits), (symbol, bits), "seed {seed}");
                }
            }
        }
    }
}

//! Blocks and their literals.

use super::Fault;
use crate::bits::{StreamEnd, backward};
use crate::fse::{self, Table};
use crate::huffman::Tree;
use crate::rng::Rng;
use crate::write::{BlockType, LiteralsType, block, literals_header, long_format, short_format};

/// The blocks of one frame, and what a decoder would know at this point.
pub(super) struct Builder<'a> {
    pub(super) rng: &'a Rng,
    pub(super) bytes: Vec<u8>,
    /// Whether the fault found its place.
    pub(super) hit: bool,
    /// The largest compressed block.
    pub(super) largest: usize,
    pub(super) fault: Option<Fault>,
    pub(super) block_max: usize,
    /// Bytes made so far, if nothing is wrong.
    pub(super) produced: usize,
    pub(super) repeats: [u64; 3],
    pub(super) tables: Option<[Table; 3]>,
    tree: Option<Tree>,
    /// Whether the fault belongs into this block.
    target: bool,
    stopped: bool,
}

/// A literals section.
struct Literals {
    section: Vec<u8>,
    len: usize,
}

impl<'a> Builder<'a> {
    pub(super) fn new(rng: &'a Rng, fault: Option<Fault>, block_max: usize) -> Self {
        Self {
            rng,
            bytes: Vec::new(),
            hit: false,
            largest: 0,
            fault,
            block_max,
            produced: 0,
            repeats: [1, 4, 8],
            tables: None,
            tree: None,
            target: false,
            stopped: false,
        }
    }

    /// Whether the fault is this one and belongs here.
    pub(super) fn wants(&mut self, fault: Fault) -> bool {
        let wanted = self.target && self.fault == Some(fault);
        self.hit |= wanted;
        wanted
    }

    pub(super) fn targeted(&self) -> Option<Fault> {
        self.fault.filter(|_| self.target)
    }

    /// Appends a random block.
    pub(super) fn block(&mut self, target: bool, last: bool) {
        if self.stopped {
            return;
        }
        self.target = target;
        let compressed = self.targeted().is_some_and(Fault::in_compressed) || self.rng.chance(82);
        let (mut kind, mut size, content) = if compressed {
            let content = self.compressed();
            self.largest = self.largest.max(content.len());
            (BlockType::Compressed, content.len(), content)
        } else if self.rng.chance(55) {
            let len = if self.rng.chance(5) { self.rng.below(1500) } else { self.rng.small(200) };
            let content = self.rng.bytes(len);
            self.produced += len;
            (BlockType::Raw, len, content)
        } else {
            let len = if self.rng.chance(3) { self.rng.below(150_000) } else { self.rng.small(400) };
            self.produced += len;
            (BlockType::Rle, len, self.rng.bytes(1))
        };
        if self.wants(Fault::BlockReserved) {
            kind = BlockType::Reserved;
        }
        if self.wants(Fault::BlockShort) {
            size += 1 + self.rng.small(2000);
            kind = if kind == BlockType::Rle { BlockType::Raw } else { kind };
            self.stopped = true;
        }
        let mut bytes = block(kind, last, size, &content);
        if self.wants(Fault::BlockHeaderShort) {
            bytes.truncate(self.rng.below(3));
            self.stopped = true;
        }
        self.bytes.extend(bytes);
    }

    fn compressed(&mut self) -> Vec<u8> {
        if self.wants(Fault::BlockTooLarge) {
            let len = self.block_max - self.rng.below(8);
            let mut content = literals_header(LiteralsType::Raw, short_format(len), len, 0);
            content.extend(self.rng.bytes(len));
            content.push(0);
            self.produced += len;
            return content;
        }
        let literals = self.literals();
        let mut content = literals.section;
        if self.wants(Fault::LiteralsShort) {
            content.truncate(self.rng.below(content.len()));
            return content;
        }
        let section = self.sequences(literals.len);
        if self.wants(Fault::SequencesMissing) {
            return content;
        }
        let start = content.len();
        content.extend(section);
        if self.wants(Fault::SequencesCut) {
            content.truncate(self.rng.range(start, content.len() - 1));
        }
        if self.wants(Fault::BlockTooSmall) {
            content.truncate(self.rng.below(2));
        }
        content
    }

    fn literals(&mut self) -> Literals {
        let fault = self.targeted();
        if fault.is_some_and(Fault::in_huffman) {
            let treeless =
                fault == Some(Fault::TreelessFirst) || self.tree.is_some() && !fault.is_some_and(Fault::in_tree) && self.rng.chance(30);
            return self.huffman(treeless);
        }
        if self.wants(Fault::LiteralsBlockMax) {
            let len = self.block_max + 1 + self.rng.small(3000);
            return self.plain(LiteralsType::Rle, len, 3);
        }
        if self.wants(Fault::LiteralsRoom) {
            let len = self.rng.range(1600, 4000).min(self.block_max);
            return self.plain(LiteralsType::Rle, len, 3);
        }
        let most = if fault == Some(Fault::BlockOutput) { 100 } else { 400 };
        let raw = fault == Some(Fault::LiteralsShort);
        match self.rng.below(100) {
            _ if raw => self.any_plain(LiteralsType::Raw, most),
            0..28 => self.any_plain(LiteralsType::Raw, most),
            28..38 => self.any_plain(LiteralsType::Rle, most),
            38 => {
                let len = self.rng.below(65_537).min(self.block_max);
                self.plain(LiteralsType::Rle, len, 3)
            }
            39..55 if self.tree.is_some() => self.huffman(true),
            _ => self.huffman(false),
        }
    }

    fn any_plain(&mut self, kind: LiteralsType, most: usize) -> Literals {
        let len = self.rng.small(most).min(self.block_max);
        let format = if self.rng.chance(80) { short_format(len) } else { self.rng.pick(&[1, 3]) };
        self.plain(kind, len, format)
    }

    fn plain(&mut self, kind: LiteralsType, len: usize, format: u8) -> Literals {
        let mut section = literals_header(kind, format, len, 0);
        let stored = if kind == LiteralsType::Rle { 1 } else { len };
        section.extend(self.rng.bytes(stored));
        Literals { section, len }
    }

    fn huffman(&mut self, treeless: bool) -> Literals {
        let mut len = match self.rng.below(20) {
            0 => self.rng.below(8),
            1..4 => self.rng.below(6000),
            _ => self.rng.small(1500),
        };
        len = len.min(self.block_max);
        let mut four = len > 1000 || len >= 6 && self.rng.chance(60);
        if self.wants(Fault::LiteralsFew) {
            (len, four) = (self.rng.below(6), true);
        }
        if self.fault == Some(Fault::Jump) && self.target {
            (len, four) = (len.max(6), true);
        }
        let kept = if treeless && !self.wants(Fault::TreelessFirst) { self.tree.clone() } else { None };
        let tree = kept.unwrap_or_else(|| random_tree(self.rng));
        let symbols = sample(&tree, len, self.rng);
        let mut section = if treeless { Vec::new() } else { self.description(&tree) };
        if !self.wants(Fault::WeightsFill) {
            section.extend(self.streams(&tree, &symbols, four));
        }
        let least = long_format(four, len.max(section.len()));
        if !four && least != 0 {
            // One stream has no size format that large.
            return self.any_plain(LiteralsType::Raw, 200);
        }
        let format = if four && self.rng.chance(20) { self.rng.range(usize::from(least), 3) as u8 } else { least };
        let mut told = section.len();
        if self.wants(Fault::HuffmanShort) {
            told = if self.rng.chance(70) { told + 1 + self.rng.small(900) } else { told - 1 - self.rng.below(told.min(3)).min(told - 1) };
        }
        let kind = if treeless { LiteralsType::Treeless } else { LiteralsType::Compressed };
        let mut whole = literals_header(kind, format, len, told);
        whole.extend(section);
        self.tree = Some(tree);
        Literals { section: whole, len }
    }

    fn description(&mut self, tree: &Tree) -> Vec<u8> {
        let direct = |weights: Vec<u8>| {
            let mut told = weights;
            told.truncate(128);
            // The last weight is implied; this tree is only described.
            told.push(1);
            Tree { weights: told, log: 1 }.describe_direct()
        };
        let told = tree.weights[..tree.weights.len() - 1].to_vec();
        let at = self.rng.below(told.len().min(128));
        if self.wants(Fault::WeightTooLarge) {
            let mut weights = told;
            weights[at] = self.rng.range(13, 15) as u8;
            return direct(weights);
        }
        if self.wants(Fault::WeightsSum) {
            let mut weights = told;
            weights[at] = (weights[at] + 1 + self.rng.small(2) as u8).min(12);
            return direct(weights);
        }
        if self.wants(Fault::WeightsZero) {
            return direct(vec![0; 1 + self.rng.below(128)]);
        }
        if self.wants(Fault::WeightsLightest) {
            return direct(told.iter().map(|weight| if *weight > 0 { weight + 1 } else { 0 }).collect());
        }
        if self.wants(Fault::WeightsLog) {
            let mut weights = vec![12; 2 + self.rng.small(100)];
            weights.extend(told);
            return direct(weights);
        }
        if let Some(body) = self.bad_fse_weights(tree) {
            let mut out = vec![body.len().min(127) as u8];
            out.extend(&body[..body.len().min(127)]);
            return out;
        }
        if (!tree.direct() || self.rng.chance(60))
            && let Some(description) = tree.describe_fse(self.rng)
        {
            return description;
        }
        tree.describe_direct()
    }

    fn bad_fse_weights(&mut self, tree: &Tree) -> Option<Vec<u8>> {
        if self.wants(Fault::WeightsCounts) {
            let len = self.rng.below(30);
            return Some(self.rng.bytes(len));
        }
        if self.wants(Fault::WeightsCountsLog) {
            let (log, symbols) = match self.rng.below(3) {
                0 => (self.rng.range(7, 10) as u32, vec![0, 1, 2]),
                1 => (6, vec![0, 1, self.rng.range(11, 13) as u8]),
                _ => (5, vec![0, 1, self.rng.range(90, 93) as u8]),
            };
            let mut body = fse::describe(&fse::random_counts(&symbols, log, self.rng), log);
            let len = self.rng.range(4, 12);
            body.extend(self.rng.bytes(len));
            return Some(body);
        }
        if self.wants(Fault::WeightsEndless) {
            let log = self.rng.range(5, 6) as u32;
            let mut counts = vec![0; self.rng.below(6)];
            counts.push(1i16 << log);
            let mut body = fse::describe(&counts, log);
            let len = self.rng.range(2, 6);
            body.extend(self.rng.bytes(len));
            body.push(1);
            return Some(body);
        }
        if self.wants(Fault::WeightsStream) {
            let mut body = tree.describe_fse(self.rng)?.split_off(1);
            match self.rng.below(4) {
                0 => body.push(0),
                1 => body.truncate(body.len() - self.rng.range(1, 3).min(body.len())),
                2 => {
                    let counts = fse::random_counts(&[0, 1, 2], 5, self.rng);
                    body = fse::describe(&counts, 5);
                    body.push(self.rng.pick(&[0, 1, 2, 5, 255]));
                }
                _ => {
                    let at = body.len() - 1 - self.rng.below(body.len().min(6));
                    body[at] ^= 1 << self.rng.below(8);
                }
            }
            return Some(body);
        }
        None
    }

    fn streams(&mut self, tree: &Tree, symbols: &[u8], four: bool) -> Vec<u8> {
        let mut end = StreamEnd::Exact;
        if self.wants(Fault::StreamExtra) {
            end = StreamEnd::Extra(1 + if self.rng.chance(60) { self.rng.small(12) } else { self.rng.below(48) } as u32);
        } else if self.wants(Fault::StreamMissing) {
            end = StreamEnd::Missing(1 + if self.rng.chance(60) { self.rng.small(12) } else { self.rng.below(48) } as u32);
        } else if self.wants(Fault::StreamZero) {
            end = StreamEnd::ZeroByte;
        } else if self.wants(Fault::StreamEmpty) {
            end = StreamEnd::Empty;
        }
        let noise = self.wants(Fault::StreamNoise);
        let stream = |symbols: &[u8], end: StreamEnd, noise: bool| {
            let filler = self.rng.next();
            let mut bytes = backward(&tree.fields(symbols), end, filler);
            if noise {
                let len = if self.rng.chance(50) { bytes.len() } else { self.rng.below(40) };
                bytes = self.rng.bytes(len);
            }
            bytes
        };
        if !four {
            return stream(symbols, end, noise);
        }
        let segment = symbols.len().div_ceil(4);
        let chosen = symbols.len() % 4;
        let everywhere = symbols.first().is_some_and(|symbol| symbol % 2 == 0);
        let mut parts: Vec<Vec<u8>> = Vec::new();
        for i in 0..4 {
            let part = symbols.get(i * segment..).unwrap_or_default();
            let here = everywhere || i == chosen;
            parts.push(stream(&part[..part.len().min(segment)], if here { end } else { StreamEnd::Exact }, noise && here));
        }
        let mut out = Vec::new();
        let off = self.wants(Fault::Jump).then(|| self.rng.below(3));
        for (i, part) in parts.iter().take(3).enumerate() {
            let mut len = part.len() as u16;
            if off == Some(i) {
                len = match self.rng.below(4) {
                    0 => len.wrapping_add(1),
                    1 => len.wrapping_sub(1),
                    2 => self.rng.next() as u16,
                    _ => self.rng.small(40) as u16,
                };
            }
            out.extend(len.to_le_bytes());
        }
        out.extend(parts.concat());
        out
    }
}

fn random_tree(rng: &Rng) -> Tree {
    let count = match rng.below(10) {
        0 => 2,
        1..4 => rng.range(2, 12),
        4..9 => rng.range(2, 70),
        _ => rng.range(2, 256),
    };
    let mut symbols: Vec<u8> = match rng.below(3) {
        0 => (0..count).map(|i| i as u8).collect(),
        1 => {
            let from = rng.below(257 - count);
            (from..from + count).map(|i| i as u8).collect()
        }
        _ => {
            let mut all: Vec<u8> = (0..=255).collect();
            rng.shuffle(&mut all);
            all.truncate(count);
            all
        }
    };
    symbols.sort_unstable();
    let least = (count as u32).next_power_of_two().ilog2().max(1);
    let log = match rng.below(10) {
        0..2 => 12,
        2..7 => 11,
        _ => rng.range(least as usize, 12) as u32,
    };
    Tree::random(&symbols, log.max(least), rng)
}

/// Symbols as often as the tree expects them, or all alike.
fn sample(tree: &Tree, len: usize, rng: &Rng) -> Vec<u8> {
    let mut slots = Vec::new();
    let even = rng.chance(25);
    for symbol in tree.symbols() {
        let weight = tree.weights[usize::from(symbol)];
        slots.extend(std::iter::repeat_n(symbol, if even { 1 } else { 1 << (weight - 1) }));
    }
    (0..len).map(|_| rng.pick(&slots)).collect()
}

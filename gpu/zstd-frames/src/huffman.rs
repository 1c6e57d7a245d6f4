//! Huffman trees for literals (RFC 8878, section 4.2): random ones, their descriptions, and streams.

use crate::bits::{Fields, StreamEnd, backward};
use crate::fse::{self, Table};
use crate::rng::Rng;

/// A tree, as the weights of the symbols from 0 to the last one in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree {
    /// 0: not in the tree; else code length = log + 1 - weight.
    pub weights: Vec<u8>,
    /// The longest code, in bits.
    pub log: u32,
}

impl Tree {
    /// The tree of these weights; the log follows from them.
    pub fn new(weights: Vec<u8>) -> Self {
        let total: u64 = weights.iter().filter(|weight| **weight > 0).map(|weight| 1u64 << (weight - 1)).sum();
        Self { weights, log: total.max(1).ilog2() }
    }

    /// A random tree over `symbols` (2 to 256, no repetition) with codes of at most `max_log` bits, where that many symbols fit.
    pub fn random(symbols: &[u8], max_log: u32, rng: &Rng) -> Self {
        let mut lengths = vec![1u32, 1];
        let deep = rng.chance(40);
        while lengths.len() < symbols.len() {
            let open: Vec<usize> = (0..lengths.len()).filter(|&i| lengths[i] < max_log).collect();
            let at = if deep { open.iter().copied().max_by_key(|&i| lengths[i]) } else { open.get(rng.below(open.len())).copied() };
            let Some(at) = at else { break };
            lengths[at] += 1;
            lengths.push(lengths[at]);
        }
        rng.shuffle(&mut lengths);
        let log = lengths.iter().copied().max().unwrap_or(1);
        let top = symbols.iter().copied().max().unwrap_or(1);
        let mut weights = vec![0; usize::from(top) + 1];
        for (symbol, length) in symbols.iter().zip(&lengths) {
            weights[usize::from(*symbol)] = (log + 1 - length) as u8;
        }
        // Fewer codes than symbols: those behind are left out, and so may be the last one.
        while weights.last() == Some(&0) {
            weights.pop();
        }
        Self::new(weights)
    }

    /// Code and length of a symbol.
    pub fn code(&self, symbol: u8) -> Option<(u64, u32)> {
        let weight = *self.weights.get(usize::from(symbol)).filter(|weight| **weight > 0)?;
        let before = |&(at, &other): &(usize, &u8)| other > 0 && (other < weight || other == weight && at < usize::from(symbol));
        let start: u64 = self.weights.iter().enumerate().filter(before).map(|(_, other)| 1u64 << (other - 1)).sum();
        Some((start >> (weight - 1), self.log + 1 - u32::from(weight)))
    }

    /// The symbols in the tree.
    pub fn symbols(&self) -> Vec<u8> {
        (0..=255u8).filter(|symbol| self.weights.get(usize::from(*symbol)).is_some_and(|weight| *weight > 0)).collect()
    }

    /// Whether it can be described without FSE.
    pub fn direct(&self) -> bool {
        (2..=129).contains(&self.weights.len())
    }

    /// The description with 4 bits for each weight. For trees that are too large it describes the first 128 weights only.
    pub fn describe_direct(&self) -> Vec<u8> {
        let told = self.told();
        let told = &told[..told.len().min(128)];
        let mut bytes = vec![127 + told.len() as u8];
        bytes.extend(told.chunks(2).map(|pair| pair[0] << 4 | pair.get(1).copied().unwrap_or(0) & 15));
        bytes
    }

    /// The description by FSE, as counts and stream; `None` where it cannot be said this way.
    pub fn describe_fse(&self, rng: &Rng) -> Option<Vec<u8>> {
        let told = self.told();
        let mut symbols = told.clone();
        symbols.sort_unstable();
        symbols.dedup();
        let top = *symbols.last()?;
        let log = if top > 11 || rng.chance(50) { 5 } else { 6 };
        // A symbol alone in its table never ends the stream.
        if symbols.len() == 1 {
            symbols.push(if top == 0 { 1 } else { top - 1 });
            symbols.sort_unstable();
        }
        if told.len() < 2 {
            return None;
        }
        // Any counts will do, as long as the result is short enough.
        let mut counts = fse::random_counts(&symbols, log, rng);
        for _ in 0..2 {
            let table = Table::new(&counts, log);
            let fields = fse::interleaved(&table, &told, rng)?;
            let mut body = fse::describe(&counts, log);
            body.extend(backward(&fields, StreamEnd::Exact, 0));
            if let Some(size) = u8::try_from(body.len()).ok().filter(|size| *size < 128) {
                body.insert(0, size);
                return Some(body);
            }
            counts = fse::fitting_counts(&told, &symbols, log);
        }
        None
    }

    /// The fields of a stream of these symbols; those outside the tree are left out.
    pub fn fields(&self, symbols: &[u8]) -> Fields {
        let codes: Vec<Option<(u64, u32)>> = (0..=255).map(|symbol| self.code(symbol)).collect();
        symbols.iter().filter_map(|symbol| codes[usize::from(*symbol)]).collect()
    }

    /// All weights but the last, which is implied.
    fn told(&self) -> Vec<u8> {
        self.weights[..self.weights.len().saturating_sub(1)].to_vec()
    }
}

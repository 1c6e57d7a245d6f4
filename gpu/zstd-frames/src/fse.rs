//! Finite state entropy tables (RFC 8878, section 4.1): counts, their description, decoding tables, and an encoder that walks the decoding table backwards.

use crate::bits::{BitWriter, Fields};
use crate::rng::Rng;

/// A state: the symbol it yields, and where it leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// What it yields.
    pub symbol: u8,
    /// Bits to read for the next state.
    pub bits: u32,
    /// The next state if these bits are 0.
    pub base: u32,
}

/// A decoding table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// Log2 of the number of states.
    pub log: u32,
    /// All states.
    pub entries: Vec<Entry>,
}

impl Table {
    /// The table for counts that sum up to `1 << log`, with -1 ("less than 1") counted as 1.
    pub fn new(counts: &[i16], log: u32) -> Self {
        let size = 1usize << log;
        let mut symbols = vec![0u8; size];
        let mut taken = vec![false; size];
        let mut next: Vec<u32> = counts.iter().map(|&count| if count == -1 { 1 } else { count.max(0) as u32 }).collect();
        let mut high = size;
        for (symbol, _) in counts.iter().enumerate().filter(|(_, count)| **count == -1) {
            high = high.saturating_sub(1);
            symbols[high] = symbol as u8;
            taken[high] = true;
        }
        let step = (size >> 1) + (size >> 3) + 3;
        let mut at = 0;
        for (symbol, &count) in counts.iter().enumerate() {
            for _ in 0..count.max(0) {
                symbols[at] = symbol as u8;
                at = (at + step) % size;
                while high > 0 && taken[at] {
                    at = (at + step) % size;
                }
            }
        }
        let entries = symbols
            .iter()
            .map(|&symbol| {
                let state = next[usize::from(symbol)].max(1);
                next[usize::from(symbol)] = state + 1;
                let bits = log - state.ilog2().min(log);
                Entry { symbol, bits, base: (state << bits).saturating_sub(size as u32) }
            })
            .collect();
        Self { log, entries }
    }

    /// One state that yields one symbol.
    pub fn rle(symbol: u8) -> Self {
        Self { log: 0, entries: vec![Entry { symbol, bits: 0, base: 0 }] }
    }

    /// The symbols that it can yield, without repetition.
    pub fn symbols(&self) -> Vec<u8> {
        let mut symbols: Vec<u8> = self.entries.iter().map(|entry| entry.symbol).collect();
        symbols.sort_unstable();
        symbols.dedup();
        symbols
    }

    /// States that yield `symbols` one after the other; the last one is chosen at random. `None` if a symbol is not in the table.
    pub fn path(&self, symbols: &[u8], rng: &Rng) -> Option<Vec<usize>> {
        self.path_to(symbols, rng, |_| true)
    }

    /// As [`Table::path`], with a last state as `last` wants it.
    pub fn path_to(&self, symbols: &[u8], rng: &Rng, last: impl Fn(&Entry) -> bool) -> Option<Vec<usize>> {
        let mut states = vec![0; symbols.len()];
        let mut after: Option<usize> = None;
        for (i, symbol) in symbols.iter().enumerate().rev() {
            let fits = |entry: &Entry| entry.symbol == *symbol && after.map_or_else(|| last(entry), |to| self.reaches(entry, to));
            let matching: Vec<usize> = (0..self.entries.len()).filter(|&state| fits(&self.entries[state])).collect();
            if matching.is_empty() {
                return None;
            }
            states[i] = rng.pick(&matching);
            after = Some(states[i]);
        }
        Some(states)
    }

    fn reaches(&self, from: &Entry, to: usize) -> bool {
        (to as u32).checked_sub(from.base).is_some_and(|bits| bits < 1 << from.bits)
    }

    /// The bits that lead from one state to another.
    pub fn transition(&self, from: usize, to: usize) -> (u64, u32) {
        let entry = self.entries[from];
        (u64::from((to as u32).wrapping_sub(entry.base)), entry.bits)
    }
}

/// Describes counts (RFC 8878, 4.1.1).
pub fn describe(counts: &[i16], log: u32) -> Vec<u8> {
    let mut writer = BitWriter::default();
    writer.push(u64::from(log) - 5, 4);
    let mut remaining = (1i64 << log) + 1;
    let mut symbol = 0;
    while remaining > 1 && symbol < counts.len() {
        let count = i64::from(counts[symbol]);
        let bits = remaining.max(1).ilog2() + 1;
        let threshold = 1i64 << (bits - 1);
        let max = 2 * threshold - 1 - remaining;
        let value = count + 1;
        if value < max {
            writer.push(value as u64, bits - 1);
        } else if value < threshold {
            writer.push(value as u64, bits);
        } else {
            writer.push((value + max) as u64, bits);
        }
        remaining -= count.abs();
        symbol += 1;
        if count == 0 {
            let zeros = counts[symbol..].iter().take_while(|count| **count == 0).count();
            for _ in 0..zeros / 3 {
                writer.push(3, 2);
            }
            writer.push(zeros as u64 % 3, 2);
            symbol += zeros;
        }
    }
    writer.into_bytes()
}

/// Random counts for a table of size `1 << log` that holds all of `symbols`, of which there must be at most that many.
pub fn random_counts(symbols: &[u8], log: u32, rng: &Rng) -> Vec<i16> {
    let top = symbols.iter().copied().max().unwrap_or(0);
    let mut counts = vec![0i16; usize::from(top) + 1];
    let low_probability = rng.pick(&[0, 0, 20, 50, 100]);
    for &symbol in symbols {
        counts[usize::from(symbol)] = if rng.chance(low_probability) { -1 } else { 1 };
    }
    let mut rest = (1usize << log).saturating_sub(symbols.len());
    let mut growing: Vec<u8> = symbols.iter().copied().filter(|symbol| counts[usize::from(*symbol)] == 1).collect();
    if growing.is_empty() && rest > 0 {
        let symbol = rng.pick(symbols);
        counts[usize::from(symbol)] = 1;
        growing.push(symbol);
    }
    let even = rng.chance(50);
    while rest > 0 {
        let symbol = rng.pick(&growing);
        let more = if even { 1 } else { rng.range(1, rest) };
        counts[usize::from(symbol)] += more as i16;
        rest -= more;
    }
    counts
}

/// Counts in proportion to how often symbols occur in `data`, at least 1 for each of `symbols`, of which there must be at most `1 << log`.
pub fn fitting_counts(data: &[u8], symbols: &[u8], log: u32) -> Vec<i16> {
    let size = 1i64 << log;
    let top = symbols.iter().copied().max().unwrap_or(0);
    let mut counts = vec![0i64; usize::from(top) + 1];
    for symbol in symbols {
        let occurrences = data.iter().filter(|other| *other == symbol).count() as i64;
        counts[usize::from(*symbol)] = (occurrences * size / data.len().max(1) as i64).max(1);
    }
    // Rounding is made up for by the largest.
    while counts.iter().sum::<i64>() != size {
        let excess = counts.iter().sum::<i64>() - size;
        if let Some(largest) = counts.iter_mut().max() {
            *largest -= excess.clamp(-size, (*largest - 1).max(1));
        }
    }
    counts.into_iter().map(|count| count as i16).collect()
}

/// The fields of a stream of two states that take turns (RFC 8878, 4.2.1.2), for at least two symbols.
pub fn interleaved(table: &Table, symbols: &[u8], rng: &Rng) -> Option<Fields> {
    let turns = |parity: usize| symbols.iter().copied().skip(parity).step_by(2).collect::<Vec<u8>>();
    // The reader stops when an update needs more bits than there are, so the last state but one must need some.
    let last_but_one = symbols.len().checked_sub(2)? % 2;
    let path = |turn: usize| table.path_to(&turns(turn), rng, |entry| turn != last_but_one || entry.bits > 0);
    let paths = [path(0)?, path(1)?];
    let mut fields = vec![(*paths[0].first()? as u64, table.log), (*paths[1].first()? as u64, table.log)];
    for i in 0..symbols.len().saturating_sub(2) {
        fields.push(table.transition(paths[i % 2][i / 2], paths[i % 2][i / 2 + 1]));
    }
    Some(fields)
}

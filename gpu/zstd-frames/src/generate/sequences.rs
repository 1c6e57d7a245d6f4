//! Sequences sections.

use super::Fault;
use super::block::Builder;
use crate::bits::{StreamEnd, backward};
use crate::codes::{KINDS, Kind};
use crate::decode::apply_repeats;
use crate::fse::{self, Table};
use crate::write::{Sequence, sequence_count, sequence_fields};

/// One table of a section: how it is told, and what it can say.
struct Chosen {
    mode: u8,
    description: Vec<u8>,
    table: Table,
}

impl Builder<'_> {
    /// A section for a block with that many literals. Everything that a decoder would know afterwards is updated.
    pub(super) fn sequences(&mut self, literals: usize) -> Vec<u8> {
        if self.wants(Fault::SequencesTrailing) {
            let len = self.rng.range(1, 8);
            let mut section = self.rng.pick(&[&[0u8][..], &[0x80, 0]]).to_vec();
            section.extend(self.rng.bytes(len));
            return section;
        }
        let fault = self.targeted();
        let needed = fault.is_some_and(Fault::in_sequences) || fault == Some(Fault::BlockOutput);
        if !needed && self.rng.chance(12) {
            self.produced += literals;
            return if self.rng.chance(90) { vec![0] } else { vec![0x80, 0] };
        }
        let plain = matches!(
            fault,
            Some(Fault::OffsetZero | Fault::OffsetBeyond | Fault::OffsetPreviousFrame | Fault::LiteralsBeyond | Fault::BlockOutput)
        );
        let tables = if !needed && self.rng.chance(2) { self.endless_tables() } else { KINDS.map(|kind| self.choose(kind, plain)) };
        let list = self.list(literals, [&tables[0].table, &tables[1].table, &tables[2].table]);
        if list.is_empty() {
            return vec![0];
        }
        self.finish(list, tables)
    }

    fn finish(&mut self, list: Vec<Sequence>, mut tables: [Chosen; 3]) -> Vec<u8> {
        let mut count = list.len();
        if self.wants(Fault::CountMore) {
            count += 1 + self.rng.small(if self.rng.chance(20) { 50_000 } else { 4 });
        } else if self.wants(Fault::CountLess) && count > 1 {
            count -= 1 + self.rng.below(count - 1).min(self.rng.below(3));
        }
        let bytes = if self.rng.chance(80) { 1 } else { 2 };
        let mut section = sequence_count(count, bytes);
        let at = self.rng.below(3);
        let table = &mut tables[at];
        if self.wants(Fault::RleSymbol) {
            let max = KINDS[at].max();
            (table.mode, table.description) = (1, vec![self.rng.range(usize::from(max) + 1, 255) as u8]);
        } else if self.wants(Fault::TableCounts) {
            table.mode = 2;
            if table.description.len() < 2 || self.rng.chance(30) {
                let len = self.rng.range(1, 12);
                table.description = self.rng.bytes(len);
            } else {
                let byte = self.rng.below(table.description.len());
                table.description[byte] ^= 1 << self.rng.below(8);
            }
        } else if self.wants(Fault::TableLog) {
            let log = KINDS[at].max_log() + 1 + self.rng.small(3) as u32;
            let counts = fse::random_counts(&[0, 1, 2, 3], log, self.rng);
            (table.mode, table.description) = (2, fse::describe(&counts, log));
        } else if self.wants(Fault::TableSymbols) {
            let top = KINDS[at].max() + self.rng.below(6) as u8;
            let counts = fse::random_counts(&[0, 1, 2, top], 6, self.rng);
            (table.mode, table.description) = (2, fse::describe(&counts, 6));
        } else if self.tables.is_none() && self.wants(Fault::RepeatFirst) {
            (table.mode, table.description) = (3, Vec::new());
        }
        let mut modes = tables[0].mode << 6 | tables[1].mode << 4 | tables[2].mode << 2;
        if self.wants(Fault::ModesReserved) {
            modes |= self.rng.range(1, 3) as u8;
        }
        section.push(modes);
        for table in &tables {
            section.extend(&table.description);
        }
        let end = self.end();
        let tables = tables.map(|chosen| chosen.table);
        let fields = sequence_fields(&list, &tables, self.rng).unwrap_or_default();
        let filler = self.rng.next();
        section.extend(backward(&fields, end, filler));
        self.tables = Some(tables);
        section
    }

    fn end(&mut self) -> StreamEnd {
        let some = 1 + self.rng.small(if self.rng.chance(80) { 10 } else { 60 }) as u32;
        let ends = [
            (Fault::BitsEmpty, StreamEnd::Empty),
            (Fault::BitsZero, StreamEnd::ZeroByte),
            (Fault::BitsExtra, StreamEnd::Extra(some)),
            (Fault::BitsMissing, StreamEnd::Missing(some)),
        ];
        ends.into_iter().find(|(fault, _)| self.wants(*fault)).map_or(StreamEnd::Exact, |(_, end)| end)
    }

    fn choose(&mut self, kind: Kind, plain: bool) -> Chosen {
        let predefined = || Chosen { mode: 0, description: Vec::new(), table: kind.predefined() };
        if plain {
            return predefined();
        }
        let before = self.tables.as_ref().map(|tables| tables[kind as usize].clone());
        match (self.rng.below(100), before) {
            (0..30, _) => predefined(),
            (30..40, _) => {
                let most = if kind == Kind::Offset { 6 } else { 20 };
                let symbol = if self.rng.chance(95) { self.rng.small(most) } else { self.rng.below(usize::from(kind.max()) + 1) } as u8;
                Chosen { mode: 1, description: vec![symbol], table: Table::rle(symbol) }
            }
            (40..60, Some(table)) => Chosen { mode: 3, description: Vec::new(), table },
            _ => {
                let log = if self.rng.chance(30) { kind.max_log() } else { self.rng.range(5, kind.max_log() as usize) as u32 };
                let mut symbols = self.symbols(kind);
                symbols.truncate(1 << log);
                let counts = fse::random_counts(&symbols, log, self.rng);
                Chosen { mode: 2, description: fse::describe(&counts, log), table: Table::new(&counts, log) }
            }
        }
    }

    /// Codes for a table of its own.
    fn symbols(&mut self, kind: Kind) -> Vec<u8> {
        let max = usize::from(kind.max());
        if self.rng.chance(5) {
            return (0..=kind.max()).collect();
        }
        let usual = match kind {
            Kind::LiteralLength => 18,
            Kind::Offset => self.produced.max(1).ilog2() as usize + 3,
            Kind::MatchLength => 40,
        };
        let mut symbols = vec![0];
        for _ in 0..1 + self.rng.small(24) {
            symbols.push(if self.rng.chance(95) { self.rng.below(usual.min(max) + 1) } else { self.rng.below(max + 1) } as u8);
        }
        symbols.sort_unstable();
        symbols.dedup();
        if symbols.len() > 1 && self.rng.chance(10) {
            symbols.remove(0);
        }
        symbols
    }

    /// Tables that need no bits at all, for counts in thousands.
    fn endless_tables(&self) -> [Chosen; 3] {
        KINDS.map(|_| Chosen { mode: 1, description: vec![0], table: Table::rle(0) })
    }

    fn list(&mut self, mut literals: usize, tables: [&Table; 3]) -> Vec<Sequence> {
        let symbols = tables.map(Table::symbols);
        let free = tables.iter().all(|table| table.log == 0 && table.entries[0].symbol == 0);
        let count = match self.rng.below(20) {
            _ if free => self.rng.below(if self.rng.chance(50) { 300 } else { 43_000 }),
            0..12 => self.rng.range(1, 10),
            12..19 => self.rng.range(1, 50),
            _ => self.rng.range(100, 400),
        };
        let mut room = self.block_max.saturating_sub(literals).min(if self.rng.chance(12) || free { 131_072 } else { 6000 });
        if self.wants(Fault::BlockOutput) {
            return self.filling_list(literals);
        }
        let broken = self.rng.below(count.max(1));
        let mut list = Vec::new();
        for i in 0..count {
            if i == broken
                && let Some(mut sequences) = self.broken(literals)
            {
                list.append(&mut sequences);
                break;
            }
            let Some(run) = self.pick(Kind::LiteralLength, &symbols[0], literals) else { break };
            let Some(length) = self.pick(Kind::MatchLength, &symbols[2], room) else { break };
            let Some(offset) = self.pick_offset(&symbols[1], run) else { break };
            apply_repeats(&mut self.repeats, offset, run == 0);
            literals -= run as usize;
            room -= length as usize;
            self.produced += (run + length) as usize;
            list.push(Sequence::new(run, offset, length));
        }
        self.produced += literals;
        list
    }

    /// A value of at most `most` that the table can say, mostly a small one.
    fn pick(&mut self, kind: Kind, symbols: &[u8], most: usize) -> Option<u64> {
        let fitting: Vec<u8> = symbols.iter().copied().filter(|code| kind.base(*code) <= most as u64).collect();
        if fitting.is_empty() {
            return None;
        }
        let code = if self.rng.chance(60) { fitting[self.rng.small(fitting.len() - 1)] } else { self.rng.pick(&fitting) };
        let widest = ((1u64 << kind.bits(code)) - 1).min(most as u64 - kind.base(code)) as usize;
        let extra = if self.rng.chance(60) { self.rng.small(widest) } else { self.rng.range(0, widest) };
        Some(kind.base(code) + extra as u64)
    }

    /// An offset value that means a valid distance after `run` literals.
    fn pick_offset(&mut self, symbols: &[u8], run: u64) -> Option<u64> {
        let history = self.produced as u64 + run;
        let valid = |value: u64| {
            let distance = apply_repeats(&mut self.repeats.clone(), value, run == 0);
            distance > 0 && distance <= history
        };
        let repeats: Vec<u64> = [1, 2, 3].into_iter().filter(|value| symbols.contains(&u8::from(*value > 1)) && valid(*value)).collect();
        let codes: Vec<u8> = symbols.iter().copied().filter(|code| *code >= 2 && (1u64 << code) - 3 <= history).collect();
        if !repeats.is_empty() && (codes.is_empty() || self.rng.chance(40)) {
            return Some(self.rng.pick(&repeats));
        }
        let code = if codes.is_empty() { return None } else { self.rng.pick(&codes) };
        let base = 1u64 << code;
        let widest = (base - 1).min(history + 3 - base) as usize;
        let extra = match self.rng.below(10) {
            0 => 0,
            1..3 => widest,
            _ => self.rng.range(0, widest),
        };
        Some(base + extra as u64)
    }

    /// The sequences that are wrong, if the fault is one of a sequence.
    fn broken(&mut self, literals: usize) -> Option<Vec<Sequence>> {
        let run = self.rng.small(literals) as u64;
        let length = 3 + self.rng.small(30) as u64;
        let history = self.produced as u64 + run;
        if self.wants(Fault::OffsetZero) {
            // Distance 1, so that repeat 1 minus 1 is 0; it needs a byte before it.
            let first = Sequence::new(literals.min(1) as u64, 4, length);
            return Some(vec![first, Sequence::new(0, 3, length)]);
        }
        if self.wants(Fault::OffsetBeyond) {
            let more = match self.rng.below(4) {
                0 => 1,
                1 => 1 + self.rng.small(100_000) as u64,
                2 => (1 << self.rng.range(17, 28)) - 3,
                _ => 1 + self.rng.small(8) as u64,
            };
            return Some(vec![Sequence::new(run, history + 3 + more, length)]);
        }
        if self.wants(Fault::OffsetPreviousFrame) {
            return Some(vec![Sequence::new(run, history + 4 + self.rng.small(60) as u64, length)]);
        }
        if self.wants(Fault::LiteralsBeyond) {
            let run = literals as u64 + 1 + self.rng.small(100) as u64;
            return Some(vec![Sequence::new(run, 4, length)]);
        }
        None
    }

    /// Sequences that take the block to about its maximum, or well beyond.
    fn filling_list(&mut self, literals: usize) -> Vec<Sequence> {
        let goal = match self.rng.below(4) {
            0 => self.block_max + self.rng.below(3),
            1 => self.block_max + self.rng.range(30, 35),
            2 => self.block_max + self.rng.below(3000),
            _ => self.block_max + self.rng.below(70),
        };
        let run = literals.min(1) as u64;
        if self.produced as u64 + run == 0 {
            return Vec::new();
        }
        let length = (goal - literals) as u64;
        self.repeats = [1, self.repeats[0], self.repeats[1]];
        self.produced += goal;
        vec![Sequence::new(run, 4, length)]
    }
}

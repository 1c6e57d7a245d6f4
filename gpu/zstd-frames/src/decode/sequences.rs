//! The sequences section, and the execution of sequences.

use super::{Decoder, Status, counts};
use crate::bits::Backward;
use crate::codes::{KINDS, Kind};
use crate::fse::Table;

impl Decoder {
    /// Reads and executes a section; the block may make `limit` bytes in all.
    pub(super) fn sequences(&mut self, section: &[u8], mut literals: &[u8], limit: usize) -> Result<(), Status> {
        let limit = self.out.len() + limit;
        let (count, mut at) = count(section)?;
        if count == 0 {
            if at != section.len() {
                return Err(Status::SequencesTrailing);
            }
            return self.last_literals(literals, limit);
        }
        let modes = *section.get(at).ok_or(Status::SequencesTruncated)?;
        at += 1;
        if modes & 3 != 0 {
            return Err(Status::ModesReserved);
        }
        let mut tables = Vec::new();
        for (kind, shift) in KINDS.into_iter().zip([6, 4, 2]) {
            let (table, used) = self.table(kind, modes >> shift & 3, &section[at..])?;
            tables.push(table);
            at += used;
        }
        let tables: [Table; 3] = tables.try_into().map_err(|_| Status::TableRepeat)?;
        if limit == self.out.len() {
            return Err(Status::OutputFull);
        }
        let mut reader = Backward::new(section, at, section.len()).ok_or(Status::SequenceStream)?;
        let mut states = [0; 3];
        for kind in KINDS {
            states[kind as usize] = reader.read(tables[kind as usize].log) as usize;
        }
        let mut repeats = self.repeats;
        for left in (0..count).rev() {
            let entries = [0, 1, 2].map(|kind| tables[kind].entries.get(states[kind]).copied());
            let [Some(literal_length), Some(offset), Some(match_length)] = entries else { return Err(Status::SequenceEnd) };
            let mut value = |kind: Kind, code: u8| kind.base(code) + reader.read(kind.bits(code));
            let offset_value = value(Kind::Offset, offset.symbol);
            let length = value(Kind::MatchLength, match_length.symbol) as usize;
            let run = value(Kind::LiteralLength, literal_length.symbol) as usize;
            let distance = apply_repeats(&mut repeats, offset_value, run == 0);
            if left > 0 {
                for (kind, entry) in [(0, literal_length), (2, match_length), (1, offset)] {
                    states[kind] = entry.base as usize + reader.read(entry.bits) as usize;
                }
            }
            if reader.left() < 0 {
                return Err(Status::SequenceEnd);
            }
            if run + length > limit - self.out.len() {
                return Err(Status::OutputFull);
            }
            if run > literals.len() {
                return Err(Status::LiteralLength);
            }
            self.out.extend(&literals[..run]);
            literals = &literals[run..];
            if distance == 0 || distance > (self.out.len() - self.start) as u64 {
                return Err(Status::Offset);
            }
            for _ in 0..length {
                self.out.push(self.out[self.out.len() - distance as usize]);
            }
            self.seen.sequences += 1;
        }
        if reader.left() != 0 {
            return Err(Status::SequenceEnd);
        }
        self.repeats = repeats;
        self.tables = Some(tables);
        self.last_literals(literals, limit)
    }

    fn last_literals(&mut self, literals: &[u8], limit: usize) -> Result<(), Status> {
        if literals.len() > limit - self.out.len() {
            return Err(Status::OutputFull);
        }
        self.out.extend(literals);
        Ok(())
    }

    fn table(&self, kind: Kind, mode: u8, rest: &[u8]) -> Result<(Table, usize), Status> {
        match mode {
            0 => Ok((kind.predefined(), 0)),
            1 => {
                let symbol = *rest.first().ok_or(Status::SequencesTruncated)?;
                if symbol > kind.max() { Err(Status::TableRle) } else { Ok((Table::rle(symbol), 1)) }
            }
            2 => {
                let counts = counts::read(rest, kind.max()).ok_or(Status::TableCounts)?;
                if counts.log > kind.max_log() {
                    return Err(Status::TableLog);
                }
                Ok((Table::new(&counts.counts, counts.log), counts.used))
            }
            _ => self.tables.as_ref().map(|tables| (tables[kind as usize].clone(), 0)).ok_or(Status::TableRepeat),
        }
    }
}

/// The distance that an offset value means, 0 if it is not valid.
pub fn apply_repeats(repeats: &mut [u64; 3], offset_value: u64, no_literals: bool) -> u64 {
    let index = if offset_value > 3 { 3 } else { offset_value as usize - 1 + usize::from(no_literals) };
    let distance = match index {
        3 if offset_value > 3 => offset_value - 3,
        3 => repeats[0].wrapping_sub(1),
        _ => repeats[index],
    };
    if index > 1 {
        repeats[2] = repeats[1];
    }
    if index > 0 {
        repeats[1] = repeats[0];
    }
    repeats[0] = distance;
    distance
}

fn count(section: &[u8]) -> Result<(usize, usize), Status> {
    let byte = |at: usize| section.get(at).map(|byte| usize::from(*byte)).ok_or(Status::SequencesTruncated);
    let first = byte(0)?;
    Ok(match first {
        0..=127 => (first, 1),
        128..=254 => ((first - 128) << 8 | byte(1)?, 2),
        _ => (byte(1)? + (byte(2)? << 8) + 0x7F00, 3),
    })
}

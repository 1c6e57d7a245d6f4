//! Finite state entropy: descriptions of tables, and tables (RFC 8878 §4.1).

/// The states that the largest table has.
pub(super) const MAX_STATES: usize = 512;
/// More symbols than any table has: there are 53 codes of match lengths.
const MAX_SYMBOLS: usize = 64;

/// Normalised counts (RFC 8878 §4.1.1) of symbols; -1 stands for a probability of less than 1.
pub(super) struct Counts {
    counts: [i16; MAX_SYMBOLS],
    symbols: usize,
    pub(super) log: u32,
}

impl Counts {
    pub(super) fn new(log: u32, counts: &[i16]) -> Self {
        let mut all = [0; MAX_SYMBOLS];
        all.iter_mut().zip(counts).for_each(|(to, from)| *to = *from);
        Self { counts: all, symbols: counts.len(), log }
    }

    /// Reads those of at most `most` symbols for at most `1 << max_log` states, and answers with the number of bytes they take.
    pub(super) fn read(bytes: &[u8], most: usize, max_log: u32) -> Option<(Self, usize)> {
        let mut bits = Forward { bytes, position: 0 };
        let mut all = Self { counts: [0; MAX_SYMBOLS], symbols: 0, log: bits.take(4) + 5 };
        if all.log > max_log {
            return None;
        }
        let mut remaining = (1u32 << all.log) + 1;
        while remaining > 1 && all.symbols < most {
            // A value from 0 to `remaining`: the least ones have a bit less.
            let width = remaining.ilog2() + 1;
            let short = (1 << width) - 1 - remaining;
            let low = bits.peek(width - 1);
            let value = if low < short {
                bits.take(width - 1)
            } else {
                let value = bits.take(width);
                if value >= 1 << (width - 1) { value - short } else { value }
            };
            let count = value.cast_signed() - 1;
            remaining = remaining.checked_sub(count.unsigned_abs())?;
            *all.counts.get_mut(all.symbols)? = i16::try_from(count).ok()?;
            all.symbols += 1;
            let mut zeros = if count == 0 { 3 } else { 0 };
            while zeros == 3 && all.symbols <= most {
                zeros = bits.take(2);
                all.symbols += zeros as usize;
            }
        }
        let taken = bits.position.div_ceil(8);
        (remaining == 1 && all.symbols <= most && taken <= bytes.len()).then_some((all, taken))
    }

    /// How many of 1,024 states have symbols from `first` on.
    pub(super) fn share_from(&self, first: usize) -> u32 {
        let states: u32 = self.counts.iter().skip(first).map(|count| u32::from(count.unsigned_abs())).sum();
        (states << 10) >> self.log
    }
}

/// Bits from the start of bytes; zeros behind them.
struct Forward<'a> {
    bytes: &'a [u8],
    position: usize,
}

impl Forward<'_> {
    /// At most 16.
    fn peek(&self, count: u32) -> u32 {
        let rest = self.bytes.get(self.position / 8..).unwrap_or_default();
        let word = match rest.first_chunk() {
            Some(bytes) => u32::from_le_bytes(*bytes),
            None => rest.iter().rev().fold(0, |word, byte| word << 8 | u32::from(*byte)),
        };
        word >> (self.position % 8) & ((1 << count) - 1)
    }

    fn take(&mut self, count: u32) -> u32 {
        let value = self.peek(count);
        self.position += count as usize;
        value
    }
}

/// Builds the table for decoding (RFC 8878 §4.1.1): `entry` makes one of a symbol, the number of bits that the next state takes, and the state that they are added to; with any such bits that is less
/// than `1 << counts.log`.
#[inline]
pub(super) fn build<T>(counts: &Counts, table: &mut [T], mut entry: impl FnMut(u8, u8, u16) -> Option<T>) -> Option<()> {
    let size = 1usize << counts.log;
    let mask = size - 1;
    let mut symbols = [0u8; MAX_STATES];
    let symbols = symbols.get_mut(..size)?;
    let mut next = [0u16; MAX_SYMBOLS];
    let counts_of = counts.counts.get(..counts.symbols)?;
    // Symbols less likely than 1 take the last states, one each; the others are spread over the rest.
    let mut top = size;
    for ((symbol, count), next) in (0..).zip(counts_of).zip(&mut next) {
        *next = count.unsigned_abs();
        if *count < 0 {
            top = top.checked_sub(1)?;
            *symbols.get_mut(top)? = symbol;
        }
    }
    let step = (size >> 1) + (size >> 3) + 3;
    let mut state = 0;
    for (symbol, count) in (0..).zip(counts_of) {
        for _ in 0..*count {
            *symbols.get_mut(state)? = symbol;
            state = (state + step) & mask;
            while state >= top {
                state = (state + step) & mask;
            }
        }
    }
    for (to, symbol) in table.get_mut(..size)?.iter_mut().zip(symbols) {
        let next = next.get_mut(usize::from(*symbol) % MAX_SYMBOLS)?;
        let bits = counts.log.checked_sub(next.checked_ilog2()?)?;
        // From the count to twice as many, less one, for a symbol: so the highest bit, moved up, is that of the size.
        *to = entry(*symbol, bits as u8, (*next << bits) - size as u16)?;
        *next += 1;
    }
    Some(())
}

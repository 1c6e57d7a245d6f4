//! Descriptions of FSE counts, with libzstd's window of 4 bytes, whose position wraps around at the end of the input.

/// Counts, accuracy log, and bytes used.
pub(super) struct Counts {
    pub(super) counts: Vec<i16>,
    pub(super) log: u32,
    pub(super) used: usize,
}

/// Reads counts for symbols up to `max`. The input goes on to the end of what could belong to them.
pub(super) fn read(input: &[u8], max: u8) -> Option<Counts> {
    if input.len() < 8 {
        let mut padded = [0; 8];
        padded[..input.len()].copy_from_slice(input);
        return read(&padded, max).filter(|counts| counts.used <= input.len());
    }
    let limit = usize::from(max) + 1;
    let mut window = Window { input, at: 0, bit: 0 };
    let log = (window.see() & 15) + 5;
    if log > 15 {
        return None;
    }
    window.bit = 4;
    let mut counts = Vec::new();
    let mut remaining = (1i64 << log) + 1;
    let mut zero_run = false;
    loop {
        if zero_run {
            let mut symbol = counts.len();
            while window.pairs_of_ones() >= 12 {
                symbol += 36;
                window.advance_24();
            }
            let pairs = window.pairs_of_ones();
            let last = window.see() >> (2 * pairs) & 3;
            symbol += 3 * pairs as usize + last as usize;
            window.bit += 2 * pairs as i64 + 2;
            if symbol >= limit {
                return None;
            }
            counts.resize(symbol, 0);
            window.advance();
        }
        let bits = remaining.ilog2() + 1;
        let threshold = 1i64 << (bits - 1);
        let excess = 2 * threshold - 1 - remaining;
        let seen = i64::from(window.see());
        let value = if seen & (threshold - 1) < excess {
            window.bit += i64::from(bits) - 1;
            seen & (threshold - 1)
        } else {
            window.bit += i64::from(bits);
            let value = seen & (2 * threshold - 1);
            if value >= threshold { value - excess } else { value }
        };
        let count = value - 1;
        remaining -= count.abs();
        counts.push(count as i16);
        zero_run = count == 0;
        if remaining <= 1 {
            break;
        }
        if counts.len() >= limit {
            return None;
        }
        window.advance();
    }
    if remaining != 1 || counts.len() > limit || window.bit > 32 {
        return None;
    }
    let used = window.at + (window.bit as usize).div_ceil(8);
    Some(Counts { counts, log, used })
}

struct Window<'a> {
    input: &'a [u8],
    at: usize,
    bit: i64,
}

impl Window<'_> {
    fn see(&self) -> u32 {
        let word = self.input.get(self.at..).and_then(|rest| rest.first_chunk()).map_or(0, |bytes| u32::from_le_bytes(*bytes));
        word >> (self.bit & 31)
    }

    fn pairs_of_ones(&self) -> u32 {
        (!self.see() | 0x8000_0000).trailing_zeros() / 2
    }

    fn advance(&mut self) {
        let end = self.input.len();
        let whole = (self.bit / 8) as usize;
        if self.at + 7 <= end || self.at + whole + 4 <= end {
            self.at += whole;
            self.bit %= 8;
        } else {
            self.bit = (self.bit - 8 * (end as i64 - 4 - self.at as i64)) & 31;
            self.at = end - 4;
        }
    }

    fn advance_24(&mut self) {
        let end = self.input.len();
        if self.at + 7 <= end {
            self.at += 3;
        } else {
            self.bit = (self.bit - 8 * (end as i64 - 7 - self.at as i64)) & 31;
            self.at = end - 4;
        }
    }
}

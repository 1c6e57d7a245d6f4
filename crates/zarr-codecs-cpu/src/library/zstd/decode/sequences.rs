//! Sequences sections: codes, and tables for them (RFC 8878 §3.1.1.3.2).

use super::bits::Bits;
use super::fse::{self, Counts};

/// More than so many of 1,024 lengths have bits of their own: these are worth being foreseen. Found by measuring.
const LONG_ARE_COMMON: u32 = 64;

/// What a state says of a length.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
pub(super) struct Length {
    /// What the bits of the length are added to; 2^16 less, if these are as many as 16.
    pub(super) base: u16,
    /// How many bits the length has.
    pub(super) extra: u8,
    /// Of 16 bits, how many are left behind these and those of the next state; modulo 256.
    pub(super) rest: u8,
    /// The next state, if its bits are 0. With any that it may have, it is one of the table.
    pub(super) next: u16,
    /// How many bits the next state has.
    pub(super) bits: u8,
    /// As `rest`, if the length has no bits; else 64.
    pub(super) rest_if_plain: u8,
}

/// What a state says of an offset.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
pub(super) struct Offset {
    /// What the bits of the offset are added to. It is 3 less than its code says: the sum is -2 to 0 for a repeated offset, modulo 2^32, and at most 2^31 - 4.
    pub(super) base: u32,
    pub(super) next: u16,
    pub(super) bits: u8,
    /// Of 31 bits, how many are left behind those of the offset and of the next state; 128, if they are more.
    pub(super) rest: u8,
}

impl Length {
    const NONE: Self = Self { base: 0, extra: 0, rest: 0, next: 0, bits: 0, rest_if_plain: 0 };

    fn new(code: Code, bits: u8, next: u16) -> Self {
        let Code { base, extra } = code;
        let rest = 16u8.wrapping_sub(bits).wrapping_sub(extra);
        Self { base: base as u16, extra, rest, next, bits, rest_if_plain: if extra == 0 { rest } else { 64 } }
    }

    /// What its bits are added to.
    pub(super) fn whole_base(&self) -> u32 {
        u32::from(self.base) + if self.extra == 16 { 1 << 16 } else { 0 }
    }
}

impl Offset {
    const NONE: Self = Self { base: 0, next: 0, bits: 0, rest: 0 };

    /// `code`: of 30 at most.
    fn new(code: u8, bits: u8, next: u16) -> Self {
        Self { base: (1u32 << code).wrapping_sub(3), next, bits, rest: 31u8.checked_sub(code + bits).unwrap_or(128) }
    }

    /// How many bits the offset has.
    pub(super) fn extra(&self) -> u32 {
        self.base.wrapping_add(3).ilog2()
    }
}

/// What a code of lengths stands for.
#[derive(Clone, Copy)]
struct Code {
    base: u32,
    extra: u8,
}

/// Codes from `base` on, with so many bits each.
#[expect(clippy::indexing_slicing, reason = "so many")]
const fn codes<const COUNT: usize>(mut base: u32, extras: [u8; COUNT]) -> [Code; COUNT] {
    let mut codes = [Code { base: 0, extra: 0 }; COUNT];
    let mut at = 0;
    while at < COUNT {
        codes[at] = Code { base, extra: extras[at] };
        base += 1 << extras[at];
        at += 1;
    }
    codes
}

/// RFC 8878 §3.1.1.3.2.1.1, table 17.
static LITERAL_LENGTHS: [Code; 36] =
    codes(0, [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 3, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]);
/// Table 18.
static MATCH_LENGTHS: [Code; 53] = codes(
    3,
    [
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 7,
        8, 9, 10, 11, 12, 13, 14, 15, 16,
    ],
);

/// One of the three tables of a block.
pub(super) trait Kind {
    type Entry: Copy;
    const NONE: Self::Entry;
    const CODES: usize;
    const MAX_LOG: u32;
    const PREDEFINED_LOG: u32;
    const PREDEFINED: &'static [i16];
    /// The first code that is not to be foreseen where such are rare.
    const FIRST_LONG: usize;

    /// `None` where there is no such code.
    fn entry(code: u8, bits: u8, next: u16) -> Option<Self::Entry>;
}

pub(super) enum LiteralLengths {}
pub(super) enum Offsets {}
pub(super) enum MatchLengths {}

impl Kind for LiteralLengths {
    type Entry = Length;
    const NONE: Length = Length::NONE;
    const CODES: usize = LITERAL_LENGTHS.len();
    const MAX_LOG: u32 = 9;
    const PREDEFINED_LOG: u32 = 6;
    const PREDEFINED: &'static [i16] =
        &[4, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3, 2, 1, 1, 1, 1, 1, -1, -1, -1, -1];
    const FIRST_LONG: usize = 16;

    fn entry(code: u8, bits: u8, next: u16) -> Option<Length> {
        LITERAL_LENGTHS.get(usize::from(code)).map(|code| Length::new(*code, bits, next))
    }
}

impl Kind for Offsets {
    type Entry = Offset;
    const NONE: Offset = Offset::NONE;
    /// Less the last one, of offsets from 2^31 on: in 32 bits these would be taken for less than 0.
    const CODES: usize = 31;
    const MAX_LOG: u32 = 8;
    const PREDEFINED_LOG: u32 = 5;
    const PREDEFINED: &'static [i16] = &[1, 1, 1, 1, 1, 1, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1];
    const FIRST_LONG: usize = Self::CODES;

    fn entry(code: u8, bits: u8, next: u16) -> Option<Offset> {
        (usize::from(code) < Self::CODES).then(|| Offset::new(code, bits, next))
    }
}

impl Kind for MatchLengths {
    type Entry = Length;
    const NONE: Length = Length::NONE;
    const CODES: usize = MATCH_LENGTHS.len();
    const MAX_LOG: u32 = 9;
    const PREDEFINED_LOG: u32 = 6;
    const PREDEFINED: &'static [i16] = &[
        1, 4, 3, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
        1, 1, -1, -1, -1, -1, -1, -1, -1,
    ];
    const FIRST_LONG: usize = 32;

    fn entry(code: u8, bits: u8, next: u16) -> Option<Length> {
        MATCH_LENGTHS.get(usize::from(code)).map(|code| Length::new(*code, bits, next))
    }
}

/// What the states of a kind stand for.
pub(super) struct Table<K: Kind, const STATES: usize> {
    /// Of any, also of one of a block before or of a table that was not finished, the next state is one of these, whatever its bits: whoever looks them up relies on it.
    pub(super) entries: [K::Entry; STATES],
    /// How many bits the first state has.
    log: u32,
    /// How many of 1,024 states have codes from [`Kind::FIRST_LONG`] on.
    long: u32,
}

impl<K: Kind, const STATES: usize> Table<K, STATES> {
    const fn new() -> Self {
        assert!(STATES == 1 << K::MAX_LOG, "as many as the largest has");
        Self { entries: [K::NONE; STATES], log: 0, long: 0 }
    }

    /// Makes it what `bytes` of a block describe (RFC 8878 §3.1.1.3.2.1), and answers with how many they are.
    fn read(&mut self, mode: u8, bytes: &[u8], may_repeat: bool) -> Option<usize> {
        let (counts, taken) = match mode & 3 {
            0 => (Counts::new(K::PREDEFINED_LOG, K::PREDEFINED), 0),
            1 => {
                let code = *bytes.first()?;
                *self.entries.first_mut()? = K::entry(code, 0, 0)?;
                (self.log, self.long) = (0, if usize::from(code) < K::FIRST_LONG { 0 } else { 1024 });
                return Some(1);
            }
            2 => Counts::read(bytes, K::CODES, K::MAX_LOG)?,
            _ => return may_repeat.then_some(0),
        };
        fse::build(&counts, &mut self.entries, K::entry)?;
        (self.log, self.long) = (counts.log, counts.share_from(K::FIRST_LONG));
        Some(taken)
    }

    /// The first state.
    pub(super) fn start(&self, bits: &mut Bits<'_>) -> Option<usize> {
        bits.read(self.log).map(|state| state as usize)
    }
}

/// The tables of a block.
pub(super) struct Tables {
    pub(super) literal_lengths: Table<LiteralLengths, 512>,
    pub(super) offsets: Table<Offsets, 256>,
    pub(super) match_lengths: Table<MatchLengths, 512>,
    /// Of a block before.
    are_there: bool,
}

impl Tables {
    pub(super) const fn new() -> Self {
        Self { literal_lengths: Table::new(), offsets: Table::new(), match_lengths: Table::new(), are_there: false }
    }

    pub(super) fn forget(&mut self) {
        self.are_there = false;
    }

    /// Makes them those of a block, whose section goes on with `bytes` behind the modes, and answers with how many of them were taken.
    pub(super) fn read(&mut self, modes: u8, bytes: &[u8]) -> Option<usize> {
        let may_repeat = std::mem::replace(&mut self.are_there, false);
        let mut taken = self.literal_lengths.read(modes >> 6, bytes, may_repeat)?;
        taken += self.offsets.read(modes >> 4, bytes.get(taken..)?, may_repeat)?;
        taken += self.match_lengths.read(modes >> 2, bytes.get(taken..)?, may_repeat)?;
        self.are_there = true;
        Some(taken)
    }

    /// What three states stand for.
    ///
    /// # Safety
    /// Each is less than the states of its table.
    #[inline(always)]
    pub(super) unsafe fn look_up(&self, literal_length: usize, offset: usize, match_length: usize) -> (&Length, &Offset, &Length) {
        // SAFETY: by the caller's promise.
        let literal_length = unsafe { self.literal_lengths.entries.get_unchecked(literal_length) };
        // SAFETY: by the caller's promise.
        let offset = unsafe { self.offsets.entries.get_unchecked(offset) };
        // SAFETY: by the caller's promise.
        let match_length = unsafe { self.match_lengths.entries.get_unchecked(match_length) };
        (literal_length, offset, match_length)
    }

    /// Whether many lengths have bits of their own.
    pub(super) fn has_long_lengths(&self) -> bool {
        self.literal_lengths.long + self.match_lengths.long > LONG_ARE_COMMON
    }
}

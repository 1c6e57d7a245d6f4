//! Sequences, decoded and executed (RFC 8878 §3.1.1.4 and §3.1.1.5).
//!
//! What bounds a decoder of sequences is the way from a state to the next: a load, the sum of the bits of three states, two shifts, and an addition. Everything else is off that way, and
//! has no branch that the processor does not foresee mostly. Two loops do that for different data: [`plain`], where lengths have no bits of their own but rarely, as in numbers as they are;
//! and [`any`], where they often do, as in shuffled ones. What neither takes is done by [`one`], which looks at everything.

use std::arch::asm;
use std::arch::x86_64::{
    __m128i, _bzhi_u64, _mm_bslli_si128, _mm_cvtsi128_si32, _mm_extract_epi32, _mm_insert_epi32, _mm_setr_epi32, _mm_shuffle_epi8,
};
use std::hint::select_unpredictable;

use super::bits::Bits;
use super::literals::{Literals, MARGIN};
use super::memory::{WIDE, WIDTH, WORD, load, load_wide, store, store_wide, word};
use super::sequences::Tables;

/// More bits than a sequence has where its lengths have none of their own: 31 at most for the offset and its next state, 18 for those of the lengths. As many are a word.
const PLAIN_BITS: usize = 64;
/// More bytes than such a sequence makes and overwrites: 15 literals, and three registers for a match of up to 34.
const PLAIN_OUTPUT: usize = 64;
/// More literals than it has. So many more sequences may be executed than there are literals for, as these are followed by bytes that may be read: the last of `len / 16 + 63` sequences
/// loads a register at `15 * (len / 16 + 62)` at most, which ends within `len + MARGIN`.
const PLAIN_LITERALS: usize = 16;
const PLAIN_AHEAD: usize = MARGIN / PLAIN_LITERALS - 1;
/// How much [`any`] overwrites at most behind a sequence.
const ANY_OUTPUT: usize = 64;

/// The three offsets last used.
pub(super) type Repeats = [u32; 3];

/// How far a block is.
struct State<'a> {
    bits: Bits<'a>,
    literal_length: usize,
    offset: usize,
    match_length: usize,
    /// Three numbers.
    repeats: __m128i,
    /// How many literals are used. Where it is more than there are, the block is bad.
    used: usize,
    /// How much of the output there is.
    written: usize,
}

/// A block with sequences.
pub(super) struct Block<'a> {
    pub(super) tables: &'a Tables,
    pub(super) bits: Bits<'a>,
    pub(super) count: usize,
    pub(super) literals: Literals<'a>,
    /// Where in the output it ends at the latest: within.
    pub(super) limit: usize,
    pub(super) lap: Lap,
}

/// Of a ring, what is not behind the next byte, but at the end of the lap before: the output began at its start again. None, by default.
#[derive(Clone, Copy, Default)]
pub(super) struct Lap {
    /// Where it ended.
    pub(super) end: usize,
    /// How far back matches may reach.
    pub(super) window: usize,
}

/// Decodes a block's sequences, and executes them behind what is `written` of the output, before the block's limit; answers with how much is written then. `None`: something is not in order.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt")]
pub(super) fn execute(block: &Block<'_>, repeats: &mut Repeats, output: &mut [u8], written: usize) -> Option<usize> {
    let Block { tables, mut bits, count, literals, limit, .. } = *block;
    if limit > output.len() {
        return None;
    }
    let [first, second, third] = repeats.map(u32::cast_signed);
    let mut state = State {
        literal_length: tables.literal_lengths.start(&mut bits)?,
        offset: tables.offsets.start(&mut bits)?,
        match_length: tables.match_lengths.start(&mut bits)?,
        bits,
        repeats: _mm_setr_epi32(first, second, third, 0),
        used: 0,
        written,
    };
    // The most that a sequence makes, on average.
    let most = limit.checked_sub(written)? / count;
    let prefer_any = tables.has_long_lengths() || most > ANY_OUTPUT / 2;
    let mut left = count.checked_sub(1)?;
    while left > 0 {
        let mut done = if prefer_any { any(block, output, &mut state, left)? } else { plain(block, output, &mut state, left)? };
        if done < left && !prefer_any {
            done += any(block, output, &mut state, 1)?;
        }
        if done == 0 && prefer_any {
            done = plain(block, output, &mut state, left)?;
        }
        if done == 0 {
            one(block, output, &mut state, false)?;
            done = 1;
        }
        left -= done;
    }
    one(block, output, &mut state, true)?;
    if state.bits.left > 0 {
        return None;
    }
    let rest = literals.bytes.get(state.used..literals.len)?;
    let end = state.written.checked_add(rest.len()).filter(|end| *end <= limit)?;
    output.get_mut(state.written..end)?.copy_from_slice(rest);
    *repeats = [_mm_extract_epi32::<0>(state.repeats), _mm_extract_epi32::<1>(state.repeats), _mm_extract_epi32::<2>(state.repeats)]
        .map(i32::cast_unsigned);
    Some(end)
}

/// The lowest `count` bits.
#[target_feature(enable = "bmi2")]
#[inline]
fn low_bits(word: u64, count: u8) -> usize {
    _bzhi_u64(word, u32::from(count)) as usize
}

/// Decodes and executes `most` sequences at most, up to one whose lengths have bits of their own, or that may read or write too far. Answers with how many.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt")]
#[inline(never)]
fn plain(block: &Block<'_>, output: &mut [u8], state: &mut State<'_>, most: usize) -> Option<usize> {
    let Block { tables, literals, limit, .. } = *block;
    let Bits { bytes: stream, left } = state.bits;
    // Each of so many has what it takes.
    let by_output = limit.checked_sub(state.written)? / PLAIN_OUTPUT;
    let by_literals = literals.len.checked_sub(state.used)? / PLAIN_LITERALS + PLAIN_AHEAD;
    let most = most.min(left / PLAIN_BITS).min(by_output).min(by_literals);
    let State { mut literal_length, mut offset, mut match_length, mut repeats, mut used, mut written, .. } = *state;
    // 7 more than there are, so that whole bytes hold them.
    let mut bits = left + 7;
    let mut done = 0;
    while done < most {
        // SAFETY: the first states are of the tables, and so are the next of any.
        let (literal, from, matched) = unsafe { tables.look_up(literal_length, offset, match_length) };
        // Of 63 bits.
        let rest = u32::from(literal.rest_if_plain) + u32::from(from.rest) + u32::from(matched.rest_if_plain);
        if rest > 63 {
            break;
        }
        // SAFETY: each sequence before took less than `PLAIN_BITS`, so that as many are left, which are a word of the stream.
        let word = unsafe { word(stream, bits / 8 - WORD) } << (!bits & 7) >> 1 >> rest;
        bits = bits + rest as usize - 63;
        // From the end: the states of offset, match length and literal length, and the bits of the offset.
        let (literal_len, match_len, base) = (usize::from(literal.base), usize::from(matched.base), from.base);
        let behind = word >> ((from.bits + matched.bits) & 63);
        offset = usize::from(from.next) + low_bits(word, from.bits);
        match_length = usize::from(matched.next) + low_bits(word >> (from.bits & 63), matched.bits);
        literal_length = usize::from(literal.next) + low_bits(behind, literal.bits);
        let value = base.wrapping_add((behind >> (literal.bits & 63)) as u32).cast_signed();
        // The next sequence waits for these. The compiler would put them off until they are used, behind the branches below.
        // SAFETY: does nothing.
        unsafe {
            asm!(
                "/* {} {} {} {} */",
                inout(reg) literal_length, inout(reg) offset, inout(reg) match_length, inout(reg) bits,
                options(nomem, nostack, preserves_flags)
            );
        }
        // SAFETY: at most `PLAIN_LITERALS` for each sequence before.
        let bytes = unsafe { load(literals.bytes, used) };
        // SAFETY: at most `PLAIN_OUTPUT` for each sequence before.
        unsafe { store(output, written, bytes) };
        used += literal_len;
        written += literal_len;
        let distance;
        if value > 0 {
            repeats = _mm_insert_epi32::<0>(_mm_bslli_si128::<4>(repeats), value);
            distance = value as usize;
        } else {
            (repeats, distance) = repeat(repeats, value, literal_len);
        }
        // Of what is behind `written`, or 0.
        if distance.wrapping_sub(1) >= written {
            copy_from_lap(block.lap, output, written, distance, match_len)?;
        } else {
            // SAFETY: the distance is 1 to `written`, and there are `PLAIN_OUTPUT` less 15 bytes more at least.
            unsafe { copy_match::<false>(output, written, distance, match_len) };
        }
        written += match_len;
        done += 1;
    }
    if used > literals.len {
        return None;
    }
    state.bits.left = bits - 7;
    (state.literal_length, state.offset, state.match_length) = (literal_length, offset, match_length);
    (state.repeats, state.used, state.written) = (repeats, used, written);
    Some(done)
}

/// Decodes and executes `most` sequences at most, up to one that may read or write too far, or has more bits than a word. Answers with how many.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt")]
#[inline(never)]
fn any(block: &Block<'_>, output: &mut [u8], state: &mut State<'_>, most: usize) -> Option<usize> {
    let Block { tables, literals, .. } = *block;
    let Bits { bytes: stream, left } = state.bits;
    let Some(limit) = block.limit.checked_sub(ANY_OUTPUT).filter(|limit| state.written < *limit) else { return Some(0) };
    let State { mut literal_length, mut offset, mut match_length, mut repeats, mut used, mut written, .. } = *state;
    if used > literals.len {
        return None;
    }
    let mut bits = left + 7;
    let mut done = 0;
    while done < most {
        // SAFETY: the first states are of the tables, and so are the next of any.
        let (literal, from, matched) = unsafe { tables.look_up(literal_length, offset, match_length) };
        // Of 63 bits, modulo 256: -18 at least, which is 238; or 110 to 160 with the mark of an offset.
        let rest = literal.rest.wrapping_add(from.rest).wrapping_add(matched.rest);
        // A word has 57 bits at least; lengths of 16 bits have another base; and a word of the stream is to be left.
        if !(6..64).contains(&rest) || (literal.extra | matched.extra) >= 16 || bits < u64::BITS as usize + 7 {
            break;
        }
        // SAFETY: as many bits are left as a word has, and so it is one of the stream.
        let word = unsafe { word(stream, bits / 8 - WORD) } << (!bits & 7) >> 1 >> rest;
        // From the end: the states of offset, match length and literal length, and the bits of literal length, match length and offset.
        let behind = word >> ((from.bits + matched.bits) & 63);
        let next_offset = usize::from(from.next) + low_bits(word, from.bits);
        let next_match = usize::from(matched.next) + low_bits(word >> (from.bits & 63), matched.bits);
        let next_literal = usize::from(literal.next) + low_bits(behind, literal.bits);
        let behind = behind >> (literal.bits & 63);
        let literal_len = usize::from(literal.base) + low_bits(behind, literal.extra);
        let behind = behind >> (literal.extra & 63);
        let match_len = usize::from(matched.base) + low_bits(behind, matched.extra);
        let value = from.base.wrapping_add((behind >> (matched.extra & 63)) as u32).cast_signed();
        // Both are within.
        if written + literal_len + match_len > limit || used + literal_len > literals.len {
            break;
        }
        bits = bits + usize::from(rest) - 63;
        (literal_length, offset, match_length) = (next_literal, next_offset, next_match);
        // As above.
        // SAFETY: does nothing.
        unsafe {
            asm!(
                "/* {} {} {} {} */",
                inout(reg) literal_length, inout(reg) offset, inout(reg) match_length, inout(reg) bits,
                options(nomem, nostack, preserves_flags)
            );
        }
        let mut copied = 0;
        loop {
            // SAFETY: begins among the literals, or at their end, and so ends within the margin.
            let bytes = unsafe { load_wide(literals.bytes, used + copied) };
            // SAFETY: begins at `limit` at most.
            unsafe { store_wide(output, written + copied, bytes) };
            copied += WIDE;
            if copied >= literal_len {
                break;
            }
        }
        used += literal_len;
        written += literal_len;
        let distance;
        // Without a branch, as it would be foreseen badly where repeats are common.
        let which = select_unpredictable(value > 0, NEW, value.wrapping_add(2 + i32::from(literal_len == 0)));
        if which == FIRST_LESS_ONE {
            (repeats, distance) = repeat(repeats, value, literal_len);
        } else {
            repeats = _mm_insert_epi32::<3>(repeats, value);
            // SAFETY: 4, or 0 to 2, as a value that is not more than 0 is -2 to 0.
            repeats = unsafe { roll(repeats, which) };
            distance = _mm_cvtsi128_si32(repeats).cast_unsigned() as usize;
        }
        // Of what is behind `written`, or 0.
        if distance.wrapping_sub(1) >= written {
            copy_from_lap(block.lap, output, written, distance, match_len)?;
        } else {
            // SAFETY: the distance is 1 to `written`, and the match ends at `limit` at most.
            unsafe { copy_match::<true>(output, written, distance, match_len) };
        }
        written += match_len;
        done += 1;
    }
    state.bits.left = bits - 7;
    (state.literal_length, state.offset, state.match_length) = (literal_length, offset, match_length);
    (state.repeats, state.used, state.written) = (repeats, used, written);
    Some(done)
}

/// Decodes and executes one sequence, whatever it is. The last has no bits for next states.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt")]
fn one(block: &Block<'_>, output: &mut [u8], state: &mut State<'_>, is_last: bool) -> Option<()> {
    let Block { tables, literals, limit, .. } = *block;
    let literal = tables.literal_lengths.entries.get(state.literal_length)?;
    let from = tables.offsets.entries.get(state.offset)?;
    let matched = tables.match_lengths.entries.get(state.match_length)?;
    let bits = &mut state.bits;
    let value = from.base.wrapping_add(bits.read(from.extra())?).cast_signed();
    let match_len = (matched.whole_base() + bits.read(u32::from(matched.extra))?) as usize;
    let literal_len = (literal.whole_base() + bits.read(u32::from(literal.extra))?) as usize;
    if !is_last {
        let mut next = |next: u16, count: u8| Some(usize::from(next) + bits.read(u32::from(count))? as usize);
        state.literal_length = next(literal.next, literal.bits)?;
        state.match_length = next(matched.next, matched.bits)?;
        state.offset = next(from.next, from.bits)?;
    }
    let literals = literals.bytes.get(..literals.len)?.get(state.used..)?.get(..literal_len)?;
    let start = state.written.checked_add(literal_len)?;
    let end = start.checked_add(match_len).filter(|end| *end <= limit)?;
    output.get_mut(state.written..start)?.copy_from_slice(literals);
    state.used += literal_len;
    let (repeats, distance) = repeat(state.repeats, value, literal_len);
    state.repeats = repeats;
    if distance.wrapping_sub(1) >= start {
        copy_from_lap(block.lap, output, start, distance, match_len)?;
    } else {
        copy_repeated(output, start, distance, match_len)?;
    }
    state.written = end;
    Some(())
}

/// Copies a match to `at` that begins behind that in the ring: at the end of the lap before. `None` where there was none, for a distance of 0, and for one that is not within the window.
#[inline(never)]
fn copy_from_lap(lap: Lap, output: &mut [u8], at: usize, distance: usize, len: usize) -> Option<()> {
    let before = distance.checked_sub(at).filter(|_| (1..=lap.window).contains(&distance))?;
    let from = lap.end.checked_sub(before)?;
    let first = len.min(before);
    output.get(..at.checked_add(len)?)?;
    output.get(from..lap.end)?;
    output.copy_within(from..from + first, at);
    if first < len { copy_repeated(output, at + first, distance, len - first) } else { Some(()) }
}

/// Copies a match to `at` that begins `distance` before, 1 at least.
fn copy_repeated(output: &mut [u8], at: usize, distance: usize, len: usize) -> Option<()> {
    let from = at.checked_sub(distance)?;
    output.get(..at.checked_add(len)?)?;
    let mut copied = 0;
    while copied < len {
        // What there is from the match on: twice as much with each step, where it overlaps itself.
        let more = (distance + copied).min(len - copied);
        output.copy_within(from..from + more, at + copied);
        copied += more;
    }
    Some(())
}

/// `which` of a new offset, and of the first repeated less 1; those below are of repeated ones.
const NEW: i32 = 4;
const FIRST_LESS_ONE: i32 = 3;

/// The offsets last used, and the distance of a match, by what its code and bits say, less 3 (RFC 8878 §3.1.1.5).
#[target_feature(enable = "avx2")]
#[inline]
fn repeat(repeats: __m128i, value: i32, literal_len: usize) -> (__m128i, usize) {
    let which = if value > 0 { NEW } else { value + 2 + i32::from(literal_len == 0) };
    let repeats = if which >= FIRST_LESS_ONE {
        let distance = if which == NEW { value } else { _mm_cvtsi128_si32(repeats).wrapping_sub(1) };
        _mm_insert_epi32::<0>(_mm_bslli_si128::<4>(repeats), distance)
    } else {
        // SAFETY: 0 to 2, as a value that is not more than 0 is -2 to 0.
        unsafe { roll(repeats, which) }
    };
    (repeats, _mm_cvtsi128_si32(repeats).cast_unsigned() as usize)
}

/// Brings the one of four that is used to the front, behind it those that were in front of it.
///
/// # Safety
/// `which` is 0 to 4.
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn roll(repeats: __m128i, which: i32) -> __m128i {
    // SAFETY: so many rows.
    let row = unsafe { load(ROLL.as_flattened(), which as usize * WIDTH) };
    _mm_shuffle_epi8(repeats, row)
}

/// Copies a match. `ANY`: of any length; else of 34 at most.
///
/// # Safety
/// `distance` is 1 to `at`. There are 48 bytes behind `at`, which is what a match of 34 overwrites at most; with `ANY`, `len + 64`, of which `len + 31` are.
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn copy_match<const ANY: bool>(output: &mut [u8], at: usize, distance: usize, len: usize) {
    let from = at - distance;
    // SAFETY: before `at`, where there are as many.
    let first = unsafe { load(output, from) };
    if distance >= WIDTH {
        // SAFETY: so many behind `at`.
        unsafe { store(output, at, first) };
        if ANY || len > WIDTH {
            // One after the other: they may overlap.
            // SAFETY: what was stored, or is before.
            let second = unsafe { load(output, from + WIDTH) };
            // SAFETY: so many behind `at`.
            unsafe { store(output, at + WIDTH, second) };
            if !ANY {
                // SAFETY: as above.
                let third = unsafe { load(output, from + 2 * WIDTH) };
                // SAFETY: as above.
                unsafe { store(output, at + 2 * WIDTH, third) };
            } else if len > 2 * WIDTH {
                for step in (2 * WIDTH..len).step_by(WIDTH) {
                    // SAFETY: begins before what was stored ends.
                    let more = unsafe { load(output, from + step) };
                    // SAFETY: begins before the match ends.
                    unsafe { store(output, at + step, more) };
                }
            }
        }
        return;
    }
    // SAFETY: a row of two registers for each distance below 16, and for 0.
    let row = unsafe { load(REPEAT.as_flattened(), distance * 2 * WIDTH) };
    let repeated = _mm_shuffle_epi8(first, row);
    // SAFETY: so many behind `at`.
    unsafe { store(output, at, repeated) };
    if len > WIDTH {
        // SAFETY: a row is of twice the width.
        let row = unsafe { load(REPEAT.as_flattened(), distance * 2 * WIDTH + WIDTH) };
        let repeated = _mm_shuffle_epi8(first, row);
        // SAFETY: so many behind `at`.
        unsafe { store(output, at + WIDTH, repeated) };
        // From as many distances before as make up a register, which are less than two.
        let back = distance * WIDTH.div_ceil(distance);
        for step in (2 * WIDTH..len).step_by(WIDTH) {
            // SAFETY: begins behind `at`, and before what was stored ends.
            let more = unsafe { load(output, at + step - back) };
            // SAFETY: begins before the match ends.
            unsafe { store(output, at + step, more) };
        }
    }
}

/// For each that may be used, of four, which go where.
#[expect(clippy::indexing_slicing, reason = "so many")]
static ROLL: [[u8; WIDTH]; 5] = {
    const fn row(order: [u8; 3]) -> [u8; WIDTH] {
        let mut row = [0; WIDTH];
        let mut at = 0;
        while at < WIDTH {
            row[at] = if at < 12 { order[at / 4] * 4 + at as u8 % 4 } else { at as u8 };
            at += 1;
        }
        row
    }
    [row([0, 1, 2]), row([1, 0, 2]), row([2, 0, 1]), row([0, 1, 2]), row([3, 0, 1])]
};

/// For each distance that is less than a register, which of the bytes from there on the next ones are.
#[expect(clippy::indexing_slicing, reason = "so many")]
static REPEAT: [[u8; 2 * WIDTH]; WIDTH] = {
    let mut rows = [[0; 2 * WIDTH]; WIDTH];
    let mut distance = 1;
    while distance < WIDTH {
        let mut at = 0;
        while at < 2 * WIDTH {
            rows[distance][at] = (at % distance) as u8;
            at += 1;
        }
        distance += 1;
    }
    rows
};

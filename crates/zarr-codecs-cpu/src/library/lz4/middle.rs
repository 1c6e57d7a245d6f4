//! The middle of a block of LZ4, decoded from a register: in half to two thirds of liblz4's time where matches are short and near.
//!
//! Shuffled numbers compress to sequences of no literals and a match of some ten bytes, which begins some ten bytes before. Copied through memory, each
//! match waits for the stores of those before it. Here the last 64 bytes of the output are also in a register: a match that begins among them is one
//! permutation of it, whatever its offset, and appending to it is another (AVX-512 VBMI: Xeons from Ice Lake on, Zen 4 and later).
//!
//! What a block may hold is liblz4's to judge. This stops at the sequence that it does not take: one near the end of the input or of the output, or whose
//! offset is wrong. Up to there, liblz4 would have done the same, and goes on from there. It does so, too, where it is faster: see [`decode`].

#![expect(clippy::arithmetic_side_effects, reason = "positions in slices and lengths within them, and numbers below 2^16")]

use std::arch::x86_64::{
    __m512i, _mm_storeu_si128, _mm512_add_epi8, _mm512_castsi512_si128, _mm512_loadu_si512, _mm512_mask_permutexvar_epi8,
    _mm512_permutex2var_epi8, _mm512_set1_epi8, _mm512_setzero_si512, _mm512_storeu_si512,
};

use super::Progress;

/// Bytes of a register.
const WIDTH: usize = 64;
/// Sequences begin at least so far from the end of the input.
const INPUT_MARGIN: usize = 96;
/// Sequences begin, and those longer than a register end, at least so far from the end of the output.
const OUTPUT_MARGIN: usize = 192;
/// How much is decoded before it is decided anew whether literals are rare.
const STRETCH: usize = 4096;
/// A length field of four bits goes on in bytes.
const LONG: usize = 15;
/// The length of a match whose field is 0.
const MIN_MATCH: usize = 4;

/// Whether the processor has the instructions.
pub(super) fn is_supported() -> bool {
    std::is_x86_feature_detected!("avx512f") && std::is_x86_feature_detected!("avx512bw") && std::is_x86_feature_detected!("avx512vbmi")
}

/// Decodes from the start of a block, until a sequence begins near the end of the input or of the output, or reaches there, or its offset is wrong; or until
/// it is seen that liblz4 is faster: where many sequences have literals and few have near matches, as in text, there is nothing to be had from the register.
/// Bytes of the output behind those written may be overwritten, too.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
pub(super) fn decode(encoded: &[u8], decoded: &mut [u8]) -> Progress {
    let mut state = State { read: 0, written: 0, recent: _mm512_setzero_si512() };
    let (input, output) = (encoded.len().checked_sub(INPUT_MARGIN), decoded.len().checked_sub(OUTPUT_MARGIN));
    let (Some(input), Some(output)) = (input, output) else {
        return Progress::default();
    };
    let limits = Limits { read: input, written: output };
    let mut literals_are_rare = true;
    while state.written < limits.written {
        let until = state.written.saturating_add(STRETCH).min(limits.written);
        let skip = literals_are_rare;
        let counts = if skip {
            decode_stretch::<true>(encoded, decoded, &mut state, limits, until)
        } else {
            decode_stretch::<false>(encoded, decoded, &mut state, limits, until)
        };
        // A branch on whether there are literals costs less than to append none of them, if the processor foresees it: here, in 5 of 6 sequences of some 10 bytes.
        literals_are_rare = counts.with_literals < STRETCH / 64;
        // Fewer than one near match for each 128 bytes. Found by measuring.
        let is_slower = !skip && !literals_are_rare && counts.with_near_matches < STRETCH / 128;
        if state.written < until || is_slower {
            break;
        }
    }
    Progress { read: state.read, written: state.written }
}

/// Where sequences do not begin any more.
#[derive(Clone, Copy)]
struct Limits {
    read: usize,
    written: usize,
}

#[derive(Clone, Copy)]
struct State {
    read: usize,
    written: usize,
    /// The last bytes of the output. Those before its start are zero.
    recent: __m512i,
}

/// Of sequences.
struct Counts {
    with_literals: usize,
    /// With a match from the register; not counted with `SKIP`.
    with_near_matches: usize,
}

/// Decodes sequences until `until` bytes are written; fewer: the next one is not for this. `SKIP`: with a branch around what there is to do for literals.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
#[inline(never)]
fn decode_stretch<const SKIP: bool>(encoded: &[u8], decoded: &mut [u8], state: &mut State, limits: Limits, until: usize) -> Counts {
    let State { mut read, mut written, mut recent } = *state;
    let mut counts = Counts { with_literals: 0, with_near_matches: 0 };
    debug_assert!(
        limits.read + INPUT_MARGIN <= encoded.len() && limits.written + OUTPUT_MARGIN <= decoded.len() && until <= limits.written
    );
    while read < limits.read && written < until {
        // SAFETY: `read` is before the end of the input.
        let token = usize::from(unsafe { *encoded.get_unchecked(read) });
        let mut at = read + 1;
        let mut literals = token >> 4;
        if literals == LONG {
            let Some((more, behind)) = long_length(encoded, at) else { break };
            (literals, at) = (literals + more, behind);
            if literals > encoded.len() || at + literals > limits.read || written + literals > limits.written {
                break;
            }
            for step in (0..literals).step_by(WIDTH) {
                // SAFETY: begins before `limits.read`, and so ends within the margin.
                let bytes = unsafe { load(encoded, at + step) };
                // SAFETY: begins before `limits.written`, and so ends within the margin.
                unsafe { store(decoded, written + step, bytes) };
            }
            let last = literals.min(WIDTH);
            // SAFETY: begins before `limits.read`.
            recent = append(recent, unsafe { load(encoded, at + literals - last) }, last);
        } else if !SKIP || literals != 0 {
            counts.with_literals += usize::from(literals != 0);
            // SAFETY: begins at `limits.read` at most, and so ends within the margin.
            let bytes = unsafe { load(encoded, at) };
            // SAFETY: begins before `limits.written`, and so ends within the margin.
            unsafe { store_quarter(decoded, written, bytes) };
            recent = append(recent, bytes, literals);
        }
        at += literals;
        let start = written + literals;
        // Now `at` is at most 14 bytes behind `limits.read`, and `start` at most 13 behind `limits.written`.
        // Not three bytes at once: what the compiler does to take those apart takes 10% longer.
        // SAFETY: two bytes within the margin.
        let offset = usize::from(u16::from_le_bytes(unsafe { two(encoded, at) }));
        // SAFETY: a byte within the margin.
        let more = unsafe { *encoded.get_unchecked(at + 2) };
        if offset.wrapping_sub(1) >= start {
            break;
        }
        let mut len = token & LONG;
        let is_long = usize::from(len == LONG);
        let more = usize::from(more) & is_long.wrapping_neg();
        at += 2 + is_long;
        len += MIN_MATCH + more;
        if more == 255 {
            // Of those that end later, liblz4 refuses some.
            let Some((more, behind)) = long_length(encoded, at).filter(|(_, behind)| *behind <= limits.read) else { break };
            (len, at) = (len + more, behind);
        }
        // Without a branch: from the register, or from memory.
        let is_near = offset <= WIDTH;
        if !SKIP {
            counts.with_near_matches += usize::from(is_near);
        }
        let from = (start - offset) & usize::from(is_near).wrapping_sub(1);
        // SAFETY: `offset` is at most `start`; what is far ends before `start`, and the first bytes of the output are within its margin.
        let far = unsafe { load(decoded, from) };
        let bytes = _mm512_mask_permutexvar_epi8(far, u64::from(is_near).wrapping_neg(), repeat(offset), recent);
        // SAFETY: begins at most 13 bytes behind `limits.written`, and so ends within the margin.
        unsafe { store(decoded, start, bytes) };
        if len <= WIDTH {
            recent = append(recent, bytes, len);
        } else {
            if len > decoded.len() || start + len > limits.written {
                break;
            }
            // SAFETY: the match begins within the output, and ends before `limits.written`; its first 64 bytes are there.
            recent = unsafe { go_on_with_match(decoded, start, offset, len) };
        }
        (read, written) = (at, start + len);
    }
    *state = State { read, written, recent };
    counts
}

/// The rest of a match of `len` bytes, more than the 64 that are at `start` already; the last 64 of them.
///
/// # Safety
/// `offset` is 1 to `start`, and `start + len + 64` at most the length of `decoded`.
#[target_feature(enable = "avx512f")]
#[inline]
unsafe fn go_on_with_match(decoded: &mut [u8], start: usize, offset: usize, len: usize) -> __m512i {
    // From as many offsets before as make up a register.
    let distance = if offset >= WIDTH { offset } else { offset * WIDTH.div_ceil(offset) };
    for step in (WIDTH..len).step_by(WIDTH) {
        // SAFETY: `distance` is less than `offset + 64`: this begins no earlier than the match, and ends before `start + step`.
        let bytes = unsafe { load(decoded, start + step - distance) };
        // SAFETY: begins before `start + len`.
        unsafe { store(decoded, start + step, bytes) };
    }
    // SAFETY: begins behind `start`, and ends at `start + len`.
    unsafe { load(decoded, start + len - WIDTH) }
}

/// The sum of bytes up to the first that is not 255, and where they end.
fn long_length(encoded: &[u8], at: usize) -> Option<(usize, usize)> {
    let mut sum = 0_usize;
    for (bytes, byte) in (1..).zip(encoded.get(at..)?) {
        sum = sum.checked_add(usize::from(*byte))?;
        if *byte != 255 {
            return Some((sum, at.checked_add(bytes)?));
        }
    }
    None
}

/// # Safety
/// `at + 64` is at most the length of `bytes`.
#[target_feature(enable = "avx512f")]
#[inline]
unsafe fn load(bytes: &[u8], at: usize) -> __m512i {
    debug_assert!(bytes.len().checked_sub(WIDTH).is_some_and(|last| at <= last));
    // SAFETY: by the caller's promise.
    let from = unsafe { bytes.as_ptr().add(at) };
    // SAFETY: by the caller's promise; the load assumes no alignment.
    unsafe { _mm512_loadu_si512(from.cast()) }
}

/// # Safety
/// `at + 64` is at most the length of `bytes`.
#[target_feature(enable = "avx512f")]
#[inline]
unsafe fn store(bytes: &mut [u8], at: usize, register: __m512i) {
    debug_assert!(bytes.len().checked_sub(WIDTH).is_some_and(|last| at <= last));
    // SAFETY: by the caller's promise.
    let to = unsafe { bytes.as_mut_ptr().add(at) };
    // SAFETY: by the caller's promise; the store assumes no alignment.
    unsafe { _mm512_storeu_si512(to.cast(), register) };
}

/// The first 16 bytes of a register.
///
/// # Safety
/// `at + 16` is at most the length of `bytes`.
#[target_feature(enable = "avx512f")]
#[inline]
unsafe fn store_quarter(bytes: &mut [u8], at: usize, register: __m512i) {
    debug_assert!(bytes.len().checked_sub(WIDTH / 4).is_some_and(|last| at <= last));
    // SAFETY: by the caller's promise.
    let to = unsafe { bytes.as_mut_ptr().add(at) };
    let quarter = _mm512_castsi512_si128(register);
    // SAFETY: by the caller's promise; the store assumes no alignment.
    unsafe { _mm_storeu_si128(to.cast(), quarter) };
}

/// # Safety
/// `at + 2` is at most the length of `bytes`.
#[inline]
unsafe fn two(bytes: &[u8], at: usize) -> [u8; 2] {
    debug_assert!(at + 2 <= bytes.len());
    // SAFETY: by the caller's promise.
    let from = unsafe { bytes.as_ptr().add(at) };
    // SAFETY: by the caller's promise; an array of bytes has no alignment.
    unsafe { *from.cast() }
}

/// The last 64 bytes of `recent` and the first `len` of `bytes`, one behind the other; at most 64.
#[expect(clippy::cast_possible_truncation, reason = "at most 64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
#[inline]
fn append(recent: __m512i, bytes: __m512i, len: usize) -> __m512i {
    // SAFETY: 64 bytes.
    let count = unsafe { load(&COUNT.0, 0) };
    // Seven bits of each index are looked at: 64 and more are of `bytes`.
    _mm512_permutex2var_epi8(recent, _mm512_add_epi8(count, _mm512_set1_epi8(len as i8)), bytes)
}

/// Which of the last 64 bytes the next 64 are, when each is as the one `offset` before it; something for more than 64.
#[target_feature(enable = "avx512f")]
#[inline]
fn repeat(offset: usize) -> __m512i {
    // SAFETY: so many rows of 64 bytes, and one more.
    unsafe { load(REPEAT.0.as_flattened(), WIDTH * offset.min(WIDTH)) }
}

/// On cache lines, and so a load of one register is of one line.
#[repr(align(64))]
struct Aligned<T>(T);

static COUNT: Aligned<[u8; WIDTH]> = Aligned(positions(0, WIDTH));

/// A row for each offset.
#[expect(clippy::indexing_slicing, reason = "so many rows")]
static REPEAT: Aligned<[[u8; WIDTH]; WIDTH + 1]> = {
    let mut rows = [[0; WIDTH]; WIDTH + 1];
    let mut offset = 1;
    while offset <= WIDTH {
        rows[offset] = positions(WIDTH - offset, offset);
        offset += 1;
    }
    Aligned(rows)
};

/// `period` positions from `first`, again and again.
#[expect(clippy::indexing_slicing, clippy::cast_possible_truncation, reason = "within a register")]
const fn positions(first: usize, period: usize) -> [u8; WIDTH] {
    let mut bytes = [0; WIDTH];
    let mut at = 0;
    while at < WIDTH {
        bytes[at] = (first + at % period) as u8;
        at += 1;
    }
    bytes
}

#[cfg(all(test, feature = "blosc"))]
mod tests {
    use proptest::prelude::*;

    use super::super::{compress_within, decompress, decompress_front, decompress_to};
    use super::{Progress, is_supported};

    /// The whole of a block by liblz4, to memory of zeros.
    fn by_library(encoded: &[u8], len: usize) -> Option<Vec<u8>> {
        let mut decoded = vec![0; len];
        // SAFETY: the vector has so many bytes.
        let written = unsafe { decompress_to(encoded, decoded.as_mut_ptr(), len) }?;
        decoded.truncate(written);
        Some(decoded)
    }

    fn by_both(encoded: &[u8], len: usize) -> Option<Vec<u8>> {
        let mut decoded = vec![0; len];
        let written = decompress(encoded, &mut decoded)?;
        decoded.truncate(written);
        Some(decoded)
    }

    /// How much of a block does not come from liblz4, if the processor can.
    fn middle(encoded: &[u8], len: usize) -> Option<Progress> {
        // SAFETY: the processor has the instructions.
        is_supported().then(|| unsafe { super::decode(encoded, &mut vec![0; len]) })
    }

    /// One sequence: literals, and a match.
    fn push_sequence(block: &mut Vec<u8>, literals: &[u8], offset: u16, len: usize) {
        let field = |value: usize| u8::try_from(value.min(15)).unwrap();
        let push_length = |block: &mut Vec<u8>, value: usize| {
            if let Some(rest) = value.checked_sub(15) {
                block.extend(std::iter::repeat_n(255, rest / 255));
                block.push(u8::try_from(rest % 255).unwrap());
            }
        };
        block.push(field(literals.len()) << 4 | field(len - 4));
        push_length(block, literals.len());
        block.extend_from_slice(literals);
        block.extend_from_slice(&offset.to_le_bytes());
        push_length(block, len - 4);
    }

    /// The literals that a block ends with.
    fn push_last(block: &mut Vec<u8>, literals: &[u8]) {
        push_sequence(block, literals, 0, 4);
        let len = block.len() - 2;
        block.truncate(len);
    }

    fn noise(len: usize, mut seed: u32) -> Vec<u8> {
        let mut next = || {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (seed >> 24) as u8
        };
        (0..len).map(|_| next()).collect()
    }

    #[test]
    fn every_offset_and_length_is_as_liblz4_has_it() {
        let bytes = noise(1000, 1);
        for offset in 1..=140_u16 {
            for len in (4..=200).chain([273, 274, 275, 528, 529, 1000]) {
                for literals in [0, 1, 14, 15, 16, 64, 65, 300] {
                    let mut block = Vec::new();
                    push_sequence(&mut block, &bytes[..150], 3, 5);
                    push_sequence(&mut block, &bytes[200..][..literals], offset, len);
                    push_sequence(&mut block, &[], offset, 4);
                    push_last(&mut block, &bytes[500..][..400]);
                    let total = 150 + 5 + literals + len + 4 + 400;
                    let decoded = by_both(&block, total);
                    assert!(decoded.is_some() && decoded == by_library(&block, total), "{literals} literals, {len} from {offset}");
                    if let Some(progress) = middle(&block, total) {
                        assert_eq!(progress.written, total - 400, "{literals} literals, {len} from {offset}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_match_from_before_the_start_is_left_to_liblz4() {
        let bytes = noise(1000, 2);
        for offset in [0, 156, 157, 1000, u16::MAX] {
            let mut block = Vec::new();
            push_sequence(&mut block, &bytes[..150], 3, 5);
            push_sequence(&mut block, &[], offset, 20);
            push_last(&mut block, &bytes[..400]);
            assert_eq!(by_both(&block, 575), by_library(&block, 575), "{offset}");
            if let Some(progress) = middle(&block, 575) {
                assert_eq!(progress.written, 155, "{offset}");
            }
        }
    }

    #[test]
    fn near_the_ends_is_left_to_liblz4() {
        let bytes = noise(1000, 3);
        for (last, len) in (0..300).flat_map(|last| [4, 18, 19, 64, 65, 300].map(|len| (last, len))) {
            let mut block = Vec::new();
            push_sequence(&mut block, &bytes[..150], 3, 5);
            push_sequence(&mut block, &bytes[200..][..14], 7, len);
            push_last(&mut block, &bytes[500..][..last]);
            let total = 150 + 5 + 14 + len + last;
            for room in [total, total - 1, total + 1, total + 100] {
                // A vector of just so many bytes.
                assert_eq!(by_both(&block, room), by_library(&block, room), "{last} last literals behind {len}, in {room}");
            }
        }
        for (room, len) in (155..500).flat_map(|room| [4, 65].map(|len| (room, len))) {
            let mut block = Vec::new();
            push_sequence(&mut block, &bytes[..150], 3, 5);
            push_sequence(&mut block, &bytes[200..][..14], 7, len);
            push_last(&mut block, &bytes[500..][..400]);
            assert_eq!(by_both(&block, room), None, "{len} in {room}");
        }
    }

    #[test]
    fn a_length_that_ends_with_the_input_is_judged_as_by_liblz4() {
        for tail in [0, 1, 2, 3, 4, 5, 100] {
            let mut block = Vec::new();
            push_sequence(&mut block, &noise(30, 4), 7, 14);
            push_sequence(&mut block, &[], 5, 4 + 15 + 120 * 255 + 9);
            if tail > 0 {
                push_last(&mut block, &noise(tail - 1, 5));
            }
            for room in [500, 31_000, 40_000] {
                assert_eq!(by_both(&block, room), by_library(&block, room), "{tail} bytes behind, in {room}");
            }
        }
    }

    #[test]
    fn no_front_shows_what_the_memory_held() {
        let bytes = noise(1000, 6);
        for (offset, front) in [0, 1, 9, 100].into_iter().flat_map(|offset| (1..420).map(move |front| (offset, front))) {
            let mut block = Vec::new();
            push_sequence(&mut block, &bytes[..150], offset, 40);
            push_sequence(&mut block, &[], offset, 100);
            push_last(&mut block, &bytes[..400]);
            let decode = |fill: u8| {
                let mut decoded = vec![fill; front];
                (decompress_front(&block, &mut decoded), decoded)
            };
            assert_eq!(decode(0), decode(0xff), "{front} bytes, offset {offset}");
        }
    }

    /// Sequences of all lengths and offsets, and what they decode to.
    fn sequences() -> impl Strategy<Value = (Vec<u8>, usize)> {
        let len = || prop_oneof![8 => 0..20_usize, 4 => 0..300_usize, 1 => 0..70_000_usize];
        let offset = prop_oneof![4 => 1..80_u16, 2 => 1..2000_u16, 1 => 1..=u16::MAX];
        prop::collection::vec((len(), offset, len()), 1..300).prop_map(|all| {
            let bytes = noise(70_000, 7);
            let (mut block, mut total) = (Vec::new(), 0);
            for (literals, offset, len) in all {
                // The first has some.
                let literals = if total == 0 { literals + 1 } else { literals };
                let literals = literals.min(60_000);
                let offset = usize::from(offset).min(total + literals) as u16;
                push_sequence(&mut block, &bytes[total % 1000..][..literals], offset, 4 + len);
                total += literals + 4 + len;
            }
            push_last(&mut block, &bytes[..20]);
            (block, total + 20)
        })
    }

    /// Bytes with runs, periods, and noise.
    fn compressible() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            (1..200_usize, any::<u32>()).prop_map(|(len, seed)| noise(len, seed)),
            (1..100_usize, 1..400_usize, any::<u32>()).prop_map(|(period, len, seed)| noise(period, seed)
                .into_iter()
                .cycle()
                .take(len)
                .collect()),
            (1..3000_usize, 0..3_u32).prop_map(|(len, seed)| noise(len, seed).into_iter().map(|byte| byte & 3).collect()),
        ];
        prop::collection::vec(piece, 1..40).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2048))]

        #[test]
        fn blocks_of_liblz4_are_decoded_as_by_it(bytes in compressible(), acceleration in 1..4, front in 0.0..1.0) {
            let mut block = vec![0; bytes.len() + bytes.len() / 200 + 100];
            let len = compress_within(&bytes, &mut block, acceleration).unwrap();
            block.truncate(len);
            let decoded = by_both(&block, bytes.len());
            prop_assert_eq!(decoded.as_ref(), Some(&bytes));
            let front = &bytes[..(front * bytes.len() as f64) as usize];
            let mut decoded = vec![1; front.len()];
            prop_assert_eq!(decompress_front(&block, &mut decoded), Some(front.len()));
            prop_assert_eq!(decoded, front);
        }

        #[test]
        fn sequences_are_decoded_as_by_liblz4((block, total) in sequences(), front in 0.0..1.0) {
            let decoded = by_both(&block, total);
            prop_assert!(decoded.is_some() && decoded == by_library(&block, total));
            let mut decoded = decoded.unwrap_or_default();
            decoded.truncate((front * total as f64) as usize);
            let mut front = vec![1; decoded.len()];
            prop_assert_eq!(decompress_front(&block, &mut front), Some(front.len()));
            prop_assert!(front == decoded);
        }

        #[test]
        fn damaged_blocks_are_judged_as_by_liblz4(
            bytes in compressible(),
            faults in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
            cut in prop::option::of(any::<prop::sample::Index>()),
            room in 0..300_usize,
        ) {
            let mut block = vec![0; bytes.len() + bytes.len() / 200 + 100];
            let len = compress_within(&bytes, &mut block, 1).unwrap();
            block.truncate(len);
            for (at, byte) in faults {
                *at.get_mut(&mut block) = byte;
            }
            if let Some(cut) = cut {
                block.truncate(cut.index(block.len()));
            }
            let room = (bytes.len() + 100).saturating_sub(room);
            prop_assert_eq!(by_both(&block, room), by_library(&block, room));
        }
    }
}

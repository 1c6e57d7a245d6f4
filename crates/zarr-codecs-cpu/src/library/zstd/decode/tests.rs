use std::ops::Range;

use ::zstd::zstd_safe::{CCtx, CParameter, compress_bound};
use zstd_frames::generate::{Generator, mutate};
use zstd_frames::{Oracle, Rng};

use super::{decompress, is_supported};

/// By this decoder, to memory of just that size which held other bytes before; `None`: it is not for it, or not in order.
fn ours(encoded: &[u8], size: usize) -> Option<Vec<u8>> {
    assert!(is_supported(), "a processor of the last ten years");
    // In memory of just its size, too.
    let encoded: Box<[u8]> = encoded.into();
    let mut decoded = vec![0xA5; size].into_boxed_slice();
    let written = decompress(&encoded, &mut decoded)?;
    Some(decoded.get(..written)?.to_vec())
}

/// Whether this decoder takes the frame; then, libzstd does as well, and makes the same of it.
fn is_taken(oracle: &mut Oracle, encoded: &[u8], size: usize, what: &dyn std::fmt::Debug) -> bool {
    let Some(decoded) = ours(encoded, size) else { return false };
    let told = oracle.decode(encoded, decoded.len());
    assert!(told.as_ref() == Ok(&decoded), "{what:?}: taken, and libzstd: {:?}", told.map(|_| "other bytes"));
    true
}

/// Data of a kind, which lead to sequences of a kind: their names, and what makes element by element.
const KINDS: [&str; 8] = ["float32", "float32, shuffled", "uint16", "labels", "zeros", "noise", "text", "noise, then repeated"];

fn data(kind: &str, len: usize, rng: &Rng) -> Vec<u8> {
    let smooth = |i: usize| 280.0 + 20.0 * (i as f64 / 300.0).sin() + rng.below(1000) as f64 * 0.0001;
    let float = |i: usize| (((smooth(i) * 100.0).round() / 100.0) as f32).to_le_bytes();
    let mut bytes: Vec<u8> = match kind {
        "float32" => (0..len.div_ceil(4)).flat_map(float).collect(),
        "float32, shuffled" => {
            let elements: Vec<[u8; 4]> = (0..len.div_ceil(4)).map(float).collect();
            (0..4).flat_map(|byte| elements.iter().map(move |element| element[byte]).collect::<Vec<_>>()).collect()
        }
        "uint16" => (0..len.div_ceil(2)).flat_map(|i| ((smooth(i / 7) * 13.0) as u16 + rng.below(60) as u16).to_le_bytes()).collect(),
        "labels" => {
            let labels: Vec<u32> = (0..50).map(|_| rng.below(1 << 20) as u32).collect();
            (0..len.div_ceil(4)).flat_map(|i| labels[(i / 9 + i / 400 * 3) % 50].to_le_bytes()).collect()
        }
        "zeros" => vec![0; len],
        "noise" => rng.bytes(len),
        "text" => {
            let words: Vec<Vec<u8>> = (0..300).map(|_| rng.bytes(2 + rng.below(9)).iter().map(|byte| b'a' + byte % 26).collect()).collect();
            let mut text = Vec::with_capacity(len + 16);
            while text.len() < len {
                text.extend(&words[rng.below(300) * rng.below(300) / 300]);
                text.push(b' ');
            }
            text
        }
        _ => {
            let mut all = rng.bytes(len.div_ceil(3));
            while all.len() < len && !all.is_empty() {
                let from = rng.below(all.len());
                all.extend_from_within(from..all.len().min(from + 1 + rng.below(70_000)));
            }
            all
        }
    };
    bytes.resize(len, 7);
    bytes
}

fn encode(decoded: &[u8], level: i32, is_sized: bool, window_log: Option<u32>) -> Vec<u8> {
    let mut context = CCtx::create();
    let mut parameters = vec![CParameter::CompressionLevel(level), CParameter::ContentSizeFlag(is_sized)];
    parameters.extend(window_log.map(CParameter::WindowLog));
    for parameter in parameters {
        context.set_parameter(parameter).expect("a parameter");
    }
    let mut encoded = Vec::with_capacity(compress_bound(decoded.len()));
    context.compress2(&mut encoded, decoded).expect("a frame");
    encoded
}

/// Seeds to try: more than a few by hand, as in `ZARR_ZSTD_SEEDS=0..1000000`.
fn seeds(few: u64) -> Range<u64> {
    let Ok(range) = std::env::var("ZARR_ZSTD_SEEDS") else { return 0..few };
    let (start, end) = range.split_once("..").expect("a range");
    start.parse().expect("a number")..end.parse().expect("a number")
}

#[test]
fn all_that_libzstd_writes_is_taken() {
    let mut oracle = Oracle::default();
    for kind in KINDS {
        for (seed, len) in (0..).zip([0, 1, 3, 9, 64, 100, 1000, 5000, 70_000, 131_072, 131_073, 300_001]) {
            let decoded = data(kind, len, &Rng::new(seed));
            for level in [-7, 1, 3, 9, 16] {
                for (is_sized, window) in [(true, None), (false, None), (true, Some(12)), (false, Some(17))] {
                    let encoded = encode(&decoded, level, is_sized, window);
                    let what = (kind, len, level, is_sized, window);
                    assert_eq!(ours(&encoded, len).as_deref(), Some(&*decoded), "{what:?}");
                    // Where there is more room, or less.
                    assert!(is_taken(&mut oracle, &encoded, len + 100, &what), "{what:?}");
                    assert!(len == 0 || !is_taken(&mut oracle, &encoded, len - 1, &what), "{what:?}");
                }
            }
        }
    }
}

#[test]
fn nothing_is_taken_that_libzstd_refuses() {
    let (mut generator, mut oracle) = (Generator::default(), Oracle::default());
    let (mut good, mut taken) = (0, 0);
    // Codes of offsets from 2^31 on, which are less than 0 in 32 bits: found by trying many.
    let found = [36_521, 75_381, 110_042, 195_413, 285_967];
    for seed in seeds(5000).chain(found) {
        let chunk = generator.chunk(seed);
        good += u32::from(oracle.decode(&chunk.bytes, chunk.size).is_ok());
        taken += u32::from(is_taken(&mut oracle, &chunk.bytes, chunk.size, &(seed, chunk.made_by)));
    }
    // The others have checksums, or are several, or none, or use what only libzstd takes.
    assert!(taken * 4 > good, "{taken} of {good} good ones are taken");
}

#[test]
fn damaged_frames_are_as_to_libzstd() {
    let mut oracle = Oracle::default();
    let frames: Vec<_> = KINDS
        .iter()
        .flat_map(|kind| {
            [(3, 150_000), (-3, 40_000), (12, 6000)].map(|(level, len)| {
                let decoded = data(kind, len, &Rng::new(1));
                (kind, len, encode(&decoded, level, true, None))
            })
        })
        .collect();
    let mut taken = 0;
    for seed in seeds(20_000) {
        let rng = &Rng::new(seed);
        let (kind, len, frame) = &frames[rng.below(frames.len())];
        let (len, mut encoded) = (*len, frame.clone());
        for _ in 0..1 + rng.below(3) {
            match rng.below(8) {
                0 => mutate(&mut encoded, rng),
                1 => encoded.truncate(rng.below(encoded.len() + 1)),
                // Most of a block are sequences; what is at its front says how they are coded.
                2..5 => flip(&mut encoded, rng.below(400), rng),
                _ => flip(&mut encoded, rng.next() as usize, rng),
            }
        }
        let size = if rng.chance(80) { len } else { rng.below(2 * len) };
        taken += u32::from(is_taken(&mut oracle, &encoded, size, &(seed, kind, len)));
    }
    assert!(taken > 0, "changed literals are not found out");
}

fn flip(bytes: &mut [u8], at: usize, rng: &Rng) {
    if !bytes.is_empty() {
        let at = at % bytes.len();
        bytes[at] ^= 1 << rng.below(8);
    }
}

#[test]
fn frames_of_libzstd_alone_are_left_to_it() {
    let decoded = data("float32", 10_000, &Rng::new(2));
    let frame = encode(&decoded, 3, true, None);
    assert!(ours(&frame, decoded.len()).is_some());
    let skippable = [&[0x50, 0x2A, 0x4D, 0x18, 2, 0, 0, 0, 1, 2], &*frame].concat();
    let behind = [&*frame, &[0x50, 0x2A, 0x4D, 0x18, 0, 0, 0, 0]].concat();
    let two = [&*frame, &*frame].concat();
    let mut checked = CCtx::create();
    checked.set_parameter(CParameter::ChecksumFlag(true)).expect("a parameter");
    let mut with_checksum = Vec::with_capacity(compress_bound(decoded.len()));
    checked.compress2(&mut with_checksum, &decoded).expect("a frame");
    for encoded in [&[][..], &frame[..frame.len() - 1], &skippable, &behind, &two, &with_checksum] {
        assert_eq!(ours(encoded, 2 * decoded.len()), None);
    }
}

//! Blind changes to bytes.

use crate::rng::Rng;

/// Changes a few bytes, in one of several ways.
pub fn mutate(bytes: &mut Vec<u8>, rng: &Rng) {
    if bytes.is_empty() {
        return bytes.push(rng.next() as u8);
    }
    // The first bytes and the last ones decide most.
    let at = match rng.below(4) {
        0 => rng.below(bytes.len().min(24)),
        1 => bytes.len() - 1 - rng.below(bytes.len().min(16)),
        _ => rng.below(bytes.len()),
    };
    match rng.below(9) {
        0..3 => bytes[at] ^= 1 << rng.below(8),
        3 => bytes[at] = rng.next() as u8,
        4 => bytes[at] = rng.pick(&[0, 0xFF, 1, 0x80, 0x7F]),
        5 => bytes[at] = bytes[at].wrapping_add(rng.pick(&[1, 0xFF, 8, 0xF8])),
        6 => drop(bytes.remove(at)),
        7 => bytes.insert(at, rng.next() as u8),
        _ => {
            let len = rng.range(1, 8).min(bytes.len() - at);
            let from = rng.below(bytes.len() - len + 1);
            bytes.copy_within(from..from + len, at);
        }
    }
}

//! What the micro-benchmarks have in common: data that looks like data.
//!
//! The comparison with other implementations is in `peers/`, a workspace of its own: `cargo xtask bench-peers`.
#![forbid(unsafe_code)]

/// A smooth field with noise, rounded to 0.01, as bytes of `count` little-endian `f32`: what archived fields of the atmosphere look like.
#[must_use]
pub fn field(count: usize) -> Vec<u8> {
    let mut state = 0x9E37_79B9_7F4A_7C15u64;
    (0..count)
        .flat_map(|index| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let noise = (state >> 40) as f32 / (1u64 << 24) as f32 - 0.5;
            let (x, y) = ((index % 1440) as f32, (index / 1440) as f32);
            let value = 250.0 + 30.0 * (x * 0.004).sin() * (y * 0.009).cos() + 0.06 * noise;
            ((value * 100.0).round() / 100.0).to_le_bytes()
        })
        .collect()
}

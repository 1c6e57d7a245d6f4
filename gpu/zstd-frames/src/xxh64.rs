//! The checksum of frames: the low half of XXH64 with seed 0.

const PRIMES: [u64; 5] =
    [0x9E37_79B1_85EB_CA87, 0xC2B2_AE3D_27D4_EB4F, 0x1656_67B1_9E37_79F9, 0x85EB_CA77_C2B2_AE63, 0x27D4_EB2F_1656_67C5];

/// The checksum of a frame's content.
pub fn checksum(content: &[u8]) -> u32 {
    let [p1, p2, p3, p4, p5] = PRIMES;
    let round = |lane: u64, value: u64| lane.wrapping_add(value.wrapping_mul(p2)).rotate_left(31).wrapping_mul(p1);
    let stripes = content.chunks_exact(32);
    let mut rest = stripes.remainder();
    let mut hash = if content.len() < 32 {
        p5
    } else {
        let mut lanes = [p1.wrapping_add(p2), p2, 0, 0u64.wrapping_sub(p1)];
        for stripe in stripes {
            for (lane, bytes) in lanes.iter_mut().zip(stripe.chunks_exact(8)) {
                *lane = round(*lane, little(bytes));
            }
        }
        let joined = lanes.iter().zip([1, 7, 12, 18]).fold(0u64, |sum, (lane, by)| sum.wrapping_add(lane.rotate_left(by)));
        lanes.iter().fold(joined, |hash, lane| (hash ^ round(0, *lane)).wrapping_mul(p1).wrapping_add(p4))
    };
    hash = hash.wrapping_add(content.len() as u64);
    while rest.len() >= 8 {
        hash = (hash ^ round(0, little(&rest[..8]))).rotate_left(27).wrapping_mul(p1).wrapping_add(p4);
        rest = &rest[8..];
    }
    if rest.len() >= 4 {
        hash = (hash ^ little(&rest[..4]).wrapping_mul(p1)).rotate_left(23).wrapping_mul(p2).wrapping_add(p3);
        rest = &rest[4..];
    }
    for byte in rest {
        hash = (hash ^ u64::from(*byte).wrapping_mul(p5)).rotate_left(11).wrapping_mul(p1);
    }
    hash = (hash ^ hash >> 33).wrapping_mul(p2);
    hash = (hash ^ hash >> 29).wrapping_mul(p3);
    (hash ^ hash >> 32) as u32
}

fn little(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte))
}

//! Encoded chunks made bad.

use crate::suite::Trial;

/// Encoded bytes that may be bad, and how they came to be.
pub(super) struct Mutant {
    pub(super) what: String,
    pub(super) bytes: Vec<u8>,
}

/// A way to make them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Truncated,
    Extended,
    Mutated,
    Claims,
    Spliced,
    Garbage,
}

impl Kind {
    pub(super) const ALL: [Self; 6] = [Self::Truncated, Self::Extended, Self::Mutated, Self::Claims, Self::Spliced, Self::Garbage];

    /// As ids of cases name it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Truncated => "truncated",
            Self::Extended => "extended",
            Self::Mutated => "mutated",
            Self::Claims => "claims",
            Self::Spliced => "spliced",
            Self::Garbage => "garbage",
        }
    }

    /// Of each of `chunks` up to about `most`; the same for the same seed.
    pub(super) fn of(self, chunks: &[&[u8]], trial: &Trial, most: usize) -> Vec<Mutant> {
        let mut mutants = Vec::new();
        let mut add = |what: String, bytes: Vec<u8>| mutants.push(Mutant { what, bytes });
        let mut random = trial.random(11 + self as u64);
        if self == Self::Garbage {
            for round in 0..most {
                let bytes: Vec<u8> = (0..random.below(100)).map(|_| random.next() as u8).collect();
                add(format!("garbage {round}"), bytes);
                add(format!("{round} bytes of one value"), vec![[0x00, 0xFF, 0x80, 0x01][round % 4]; round]);
            }
            return mutants;
        }
        for (index, &chunk) in chunks.iter().enumerate() {
            let len = chunk.len();
            match self {
                Self::Truncated => {
                    let step = len.div_ceil(most.max(1)).max(1);
                    for end in (0..len).filter(|end| end % step == 0 || *end < most.min(40) || len - end < most.min(20)) {
                        add(format!("chunk {index} cut to {end} of {len} bytes"), chunk[..end].to_vec());
                    }
                }
                Self::Extended => {
                    for tail in [&[0][..], &[0; 100], &[0xFF; 9], chunk, &chunk[..len.min(8)], &[0x50, 0x2A, 0x4D, 0x18, 0, 0, 0, 0]] {
                        add(format!("chunk {index} with {} bytes behind it", tail.len()), [chunk, tail].concat());
                    }
                }
                Self::Mutated if len > 0 => {
                    for round in 0..most {
                        let mut bytes = chunk.to_vec();
                        for _ in 0..1 + round % 3 {
                            // Headers are at the start, and decide most.
                            let at = random.below(if round % 2 == 0 { len.min(24) } else { len });
                            bytes[at] = match random.below(4) {
                                0 => 0xFF,
                                1 => bytes[at] ^ 1 << random.below(8),
                                2 => 0,
                                _ => random.next() as u8,
                            };
                        }
                        add(format!("chunk {index}, mutation {round}"), bytes);
                    }
                }
                Self::Claims => {
                    for round in 0..most {
                        let width = [1, 2, 4, 8][random.below(4)];
                        if len < width {
                            continue;
                        }
                        // Sizes stand at the start of most formats, at the end of some.
                        let at = if round % 4 == 3 {
                            len - width - random.below(len - width + 1).min(8)
                        } else {
                            random.below((len - width + 1).min(24))
                        };
                        let size = len as u64;
                        let claim =
                            [0, 1, u64::MAX, 1 << 31, (1 << 31) - 1, u64::from(u32::MAX) - 7, 1 << 40, size - 1, size + 1, 2 * size];
                        let claim = claim[random.below(claim.len())];
                        let mut bytes = chunk.to_vec();
                        let (little, big) = (claim.to_le_bytes(), claim.to_be_bytes());
                        bytes[at..at + width].copy_from_slice(if random.below(2) == 0 { &little[..width] } else { &big[8 - width..] });
                        add(format!("chunk {index} with {claim:#x} in {width} bytes at {at}"), bytes);
                    }
                }
                Self::Spliced => {
                    for round in 0..most {
                        let other = chunks[random.below(chunks.len())];
                        let (cut, from) = (random.below(len + 1), random.below(other.len() + 1));
                        let to = from + random.below(other.len() - from + 1);
                        let bytes = match round % 4 {
                            // The start of one and the end of another, at the same place or at any.
                            0 => [&chunk[..cut], other.get(cut..).unwrap_or_default()].concat(),
                            1 => [&chunk[..cut], &other[from..]].concat(),
                            // A piece too much, and a piece too little.
                            2 => [&chunk[..cut], &other[from..to], &chunk[cut..]].concat(),
                            _ => [&chunk[..cut], &chunk[cut + random.below(len - cut + 1)..]].concat(),
                        };
                        add(format!("chunk {index}, splice {round}"), bytes);
                    }
                }
                Self::Mutated | Self::Garbage => {}
            }
        }
        mutants
    }
}

//! Random chunks: frames that use every feature of the format, with at most one intended fault in most of them.

mod block;
pub mod data;
mod fault;
mod frame;
mod mutate;
mod sequences;

pub use fault::Fault;
pub use mutate::mutate;

use crate::rng::Rng;
use crate::write::skippable;

/// Encoded bytes, and the size that they are to decode to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// At most [`MAX_CHUNK`] bytes.
    pub bytes: Vec<u8>,
    /// Bytes of destination.
    pub size: usize,
    /// How it was made.
    pub made_by: &'static str,
    /// The fault that was put in, if it was.
    pub fault: Option<Fault>,
}

/// The most bytes in a chunk.
pub const MAX_CHUNK: usize = 4096;

/// Makes chunks.
#[derive(Default)]
pub struct Generator {
    encoder: data::Encoder,
}

impl Generator {
    /// The chunk of a seed.
    pub fn chunk(&mut self, seed: u64) -> Chunk {
        let rng = &Rng::new(seed);
        loop {
            let mut chunk = self.attempt(rng);
            if rng.chance(2) {
                chunk.size = wrong_size(chunk.size, rng);
            }
            if chunk.bytes.len() <= MAX_CHUNK {
                return chunk;
            }
        }
    }

    fn attempt(&mut self, rng: &Rng) -> Chunk {
        match rng.below(100) {
            0..42 => structured(rng, None, "structured"),
            42..75 => {
                let fault = Some(rng.pick(&fault::ALL));
                structured(rng, fault, "one fault")
            }
            75..78 => self.encoder.chunk(rng),
            78..84 => mutated(self.encoder.chunk(rng), rng, "encoded, then mutated"),
            84..90 => mutated(structured(rng, None, ""), rng, "structured, then mutated"),
            90..93 => {
                let mut chunk = structured(rng, None, "truncated");
                chunk.bytes.truncate(rng.below(chunk.bytes.len() + 1));
                chunk
            }
            93..96 => {
                let (first, second) = (structured(rng, None, ""), self.encoder.chunk(rng));
                splice(first, second, rng)
            }
            _ => several(rng),
        }
    }
}

fn structured(rng: &Rng, fault: Option<Fault>, made_by: &'static str) -> Chunk {
    let frame = frame::random(rng, fault);
    Chunk { bytes: frame.bytes, size: frame.size, made_by, fault: fault.filter(|_| frame.hit) }
}

fn mutated(mut chunk: Chunk, rng: &Rng, made_by: &'static str) -> Chunk {
    let times = 1 + rng.small(4);
    for _ in 0..times {
        mutate(&mut chunk.bytes, rng);
    }
    chunk.made_by = made_by;
    chunk
}

fn splice(first: Chunk, second: Chunk, rng: &Rng) -> Chunk {
    let cut = rng.below(first.bytes.len() + 1);
    let from = rng.below(second.bytes.len() + 1);
    let mut bytes = first.bytes[..cut].to_vec();
    bytes.extend(&second.bytes[from..]);
    Chunk { bytes, size: if rng.chance(50) { first.size } else { second.size }, made_by: "spliced", fault: None }
}

/// Several frames, skippable ones among them.
fn several(rng: &Rng) -> Chunk {
    let mut chunk = Chunk { bytes: Vec::new(), size: 0, made_by: "several frames", fault: None };
    let count = rng.below(5);
    let faulty = rng.chance(30).then(|| rng.below(count.max(1)));
    for i in 0..count {
        if rng.chance(40) {
            let len = rng.small(40);
            let variant = rng.next() as u8;
            chunk.bytes.extend(skippable(variant, len as u32, &rng.bytes(len)));
        } else {
            let fault = (faulty == Some(i)).then(|| rng.pick(&fault::ALL));
            let frame = structured(rng, fault, "");
            chunk.bytes.extend(frame.bytes);
            chunk.size += frame.size;
            chunk.fault = chunk.fault.or(frame.fault);
        }
    }
    if rng.chance(10) {
        // A skippable frame that is cut off, or says that it is longer than it is.
        let len = rng.below(12);
        let told = rng.pick(&[len as u32 + 1, 100, 0xFFFF_FFF7, 0xFFFF_FFF8, 0xFFFF_FFFF]);
        let mut bytes = skippable(3, told, &rng.bytes(len));
        bytes.truncate(5 + rng.below(bytes.len()));
        chunk.bytes.extend(bytes);
    }
    chunk
}

fn wrong_size(size: usize, rng: &Rng) -> usize {
    match rng.below(4) {
        0 => size + 1 + rng.small(300),
        1 => size.saturating_sub(1 + rng.small(300)),
        2 => rng.below(2 * size + 2),
        _ => 0,
    }
}

//! `zarr-gpu fuzz --codec lz4`: random chunks of `numcodecs.lz4`.

use zarr_codec_api::{ArrayRepresentation, Chain, Policy, Registry, Scratch, Source};
use zarr_meta::{DataType, Extension, FillValue, Json};
use zstd_frames::Rng;

use crate::cpu_fuzz::{Chunk, Family, damage, data};
use crate::fuzz::Result;

/// Makes the chunks.
#[derive(Debug)]
pub(crate) struct Lz4(Registry);

impl Default for Lz4 {
    fn default() -> Self {
        Self(Registry::new().with(zarr_codecs_cpu::provider()))
    }
}

impl Family for Lz4 {
    type Kind = ();
    const KINDS: &[()] = &[()];

    fn codec((): ()) -> Result<Extension> {
        Ok(Extension::new("numcodecs.lz4"))
    }

    fn chunk(&mut self, (): (), rng: &Rng, _: u64) -> Chunk {
        let (mut block, len) = match rng.below(100) {
            0..40 => {
                let data = data(rng, some_len(rng));
                let encoded = self.compressed(&data, 1 + rng.small(60)).unwrap_or_default();
                (encoded.get(4..).unwrap_or_default().to_vec(), data.len())
            }
            40..70 => {
                // Once in a while an offset is wrong.
                let (len, wrong) = (some_len(rng), rng.pick(&[400, 40_000, 4_000_000]));
                (block(rng, len, wrong), len)
            }
            70..80 => tiny(rng),
            80..90 => edges(rng),
            90..92 => poor(rng),
            _ => periods(rng),
        };
        if rng.chance(15) {
            damage(rng, &mut block);
        }
        let size = match rng.below(60) {
            0 => len + 1 + rng.small(300),
            1 => len.saturating_sub(1 + rng.small(300)),
            _ => len,
        };
        // What is claimed is most often what is wanted.
        let claimed = if rng.chance(98) { size } else { len };
        let mut bytes = [&(claimed as u32).to_le_bytes()[..], &block].concat();
        if rng.chance(1) {
            damage(rng, &mut bytes);
        }
        Chunk { bytes, size }
    }

    fn may_refuse((): (), _: &Chunk, _: &str) -> bool {
        false
    }
}

impl Lz4 {
    /// As an encoder makes it.
    pub(crate) fn compressed(&self, data: &[u8], acceleration: usize) -> Result<Vec<u8>> {
        let array = ArrayRepresentation {
            data_type: DataType::UInt8,
            shape: vec![data.len() as u64],
            fill_value: FillValue::default_for(&DataType::UInt8),
        };
        let codec = Json::parse(format!(r#"{{"name":"numcodecs.lz4","configuration":{{"acceleration":{acceleration}}}}}"#).as_bytes())?;
        let chain = Chain::bind(&[Extension::new("bytes"), Extension::parse(&codec)?], array, &self.0, &Policy::Host)?;
        let mut encoded = Vec::new();
        chain.encode(Source::Bytes(data), &mut encoded, &mut Scratch::new())?;
        Ok(encoded)
    }
}

fn some_len(rng: &Rng) -> usize {
    if rng.chance(5) { rng.small(2_000_000) } else { rng.small(60_000) }
}

/// A block that is put together sequence by sequence.
struct Block<'a> {
    rng: &'a Rng,
    out: Vec<u8>,
    /// Bytes that it decodes to so far.
    made: usize,
}

impl<'a> Block<'a> {
    fn new(rng: &'a Rng) -> Self {
        Self { rng, out: Vec::new(), made: 0 }
    }

    fn literals(&mut self, literals: usize, low: usize) {
        self.out.push((literals.min(15) as u8) << 4 | low as u8);
        if literals >= 15 {
            extra(&mut self.out, literals - 15);
        }
        self.out.extend(self.rng.bytes(literals));
        self.made += literals;
    }

    /// `matched`: 4 at least.
    fn push(&mut self, literals: usize, offset: usize, matched: usize) {
        self.literals(literals, (matched - 4).min(15));
        self.out.extend((offset as u16).to_le_bytes());
        if matched >= 19 {
            extra(&mut self.out, matched - 19);
        }
        self.made += matched;
    }

    fn end(mut self, literals: usize) -> (Vec<u8>, usize) {
        let low = if self.rng.chance(20) { self.rng.below(16) } else { 0 };
        self.literals(literals, low);
        (self.out, self.made)
    }
}

/// What goes on of a length, in bytes of its own.
fn extra(out: &mut Vec<u8>, mut rest: usize) {
    while rest >= 255 {
        out.push(255);
        rest -= 255;
    }
    out.push(rest as u8);
}

/// A block of a few bytes, around the rules on how a block ends; now and then one of nothing.
fn tiny(rng: &Rng) -> (Vec<u8>, usize) {
    let mut block = Block::new(rng);
    for _ in 0..rng.below(5) {
        let literals = rng.pick(&[rng.below(4), rng.range(12, 18), rng.below(20)]);
        let matched = rng.pick(&[4 + rng.below(3), rng.range(16, 22), 4 + rng.below(20)]);
        let made = block.made + literals;
        let offset = rng.pick(&[0, made + 1, rng.range(6, 9), made, 1 + rng.below(made.max(1)), 1 + rng.below(made.max(1))]);
        block.push(literals, offset, matched);
    }
    let (mut out, made) = block.end(rng.pick(&[0, rng.below(20), rng.range(3, 14), rng.range(3, 8)]));
    if rng.chance(10) {
        out.extend(rng.bytes(1 + rng.below(3)));
    }
    (out, made)
}

/// A long block of sequences at the limits of what spans take.
fn edges(rng: &Rng) -> (Vec<u8>, usize) {
    let mut block = Block::new(rng);
    let (style, most) = (rng.below(8), if rng.chance(3) { 3_000_000 } else { 200_000 });
    for _ in 0..1 + rng.small(3000) {
        if block.made > most || block.out.len() > 120_000 {
            break;
        }
        let (literals, matched) = match if style == 7 { rng.below(7) } else { style } {
            0 => (rng.below(3), 4 + rng.below(6)),
            1 => (rng.range(2045, 2058), 4 + rng.below(30)),
            2 => (rng.below(4), rng.range(4090, 4104)),
            3 => (rng.range(250, 290), rng.range(260, 290)),
            4 => (0, 4),
            5 => (rng.small(2054), 4 + rng.small(4094)),
            _ => (rng.below(20), 4 + rng.below(40)),
        };
        let literals = if block.made == 0 { literals.max(1) } else { literals };
        let (made, reach) = (block.made + literals, (block.made + literals).min(65_535));
        let offset = match rng.below(20_000) {
            0 => 0,
            1 => made + 1,
            _ => rng.pick(&[1 + rng.below(reach.min(20)), reach, 1 + rng.below(reach), 1 + rng.below(reach.min(3000))]),
        };
        block.push(literals, offset, matched);
    }
    block.end(rng.pick(&[5 + rng.below(10), 12 + rng.below(60), 12 + rng.small(3000)]))
}

/// Sequences of one size each, up to the end of a span, and then one that reaches as far behind it as any.
fn periods(rng: &Rng) -> (Vec<u8>, usize) {
    let mut block = Block::new(rng);
    let literals = rng.below(3);
    block.push(1 + literals, 1, 5);
    let matched = rng.pick(&[4, 5, 18, 4098, rng.range(4000, 4098)]);
    let spans = 64 * rng.pick(&[256, 1024]);
    let until = if matched > 18 { rng.below(30_000) } else { spans - rng.below(80) };
    while block.out.len() < until {
        block.push(literals, 1 + rng.below(block.made.min(40)), matched);
    }
    block.push(rng.range(2040, 2056), 1 + rng.below(1000), 4 + rng.below(20));
    block.push(3, 3, 20);
    block.end(rng.range(12, 60))
}

/// Short sequences and such as spans do not take, in turn: a step of a whole block of threads for each, if there were no bound.
fn poor(rng: &Rng) -> (Vec<u8>, usize) {
    let mut block = Block::new(rng);
    block.push(4, 4, 4);
    let (offset, matched) = rng.pick(&[(0, 4), (4, 4099)]);
    for _ in 0..rng.small(10_000_000 / matched.max(900)) {
        block.push(0, 4, 4);
        block.push(0, offset, matched);
    }
    block.end(40)
}

/// A block of random sequences for `len` bytes; of `wrong` of them, two have a wrong offset. Most keep to the rules on how a block ends.
pub(crate) fn block(rng: &Rng, len: usize, wrong: usize) -> Vec<u8> {
    let mut out = sequences(rng, len, wrong);
    if rng.chance(2) {
        out.extend(rng.bytes(1 + rng.below(3)));
    }
    out
}

fn sequences(rng: &Rng, len: usize, wrong: usize) -> Vec<u8> {
    let mut block = Block::new(rng);
    // A short sequence 32 bytes before the end, of which liblz4 does not ask how close its match comes to it.
    let tail = rng.below(5);
    let literals = 14 - rng.below(3);
    if (28..=32).contains(&len) && rng.chance(60) && (4..=18).contains(&(len - tail - literals)) {
        block.push(literals, rng.range(7, 11), len - tail - literals);
        return block.end(tail).0;
    }
    // The last match starts 12 bytes before the end, and ends 5 before it.
    let (last_start, last_literals) = if rng.chance(85) { (12, 5) } else { (rng.range(4, 14), rng.range(0, 6)) };
    let long = |rng: &Rng| if rng.chance(5) { rng.small(70_000) } else { rng.small(40) };
    loop {
        let literals = long(rng);
        let room = len.saturating_sub(block.made + literals);
        if room < last_start || rng.chance(2) {
            let rest = len.saturating_sub(block.made);
            return block.end(rest).0;
        }
        let matched = (4 + long(rng)).min(room.saturating_sub(last_literals).max(4));
        let reach = (block.made + literals).min(65_535);
        let offset = match rng.below(wrong) {
            0 => 0,
            1 => reach + 1,
            _ if rng.chance(50) => 1 + rng.small(reach.saturating_sub(1)),
            _ => 1 + rng.below(reach.max(1)),
        };
        block.push(literals, offset, matched);
    }
}

//! `zarr-gpu fuzz --codec blosc`: random chunks of blosc.

use zarr_meta::{Extension, Json};
use zstd_frames::Rng;
use zstd_frames::generate::Generator;

use crate::cpu_fuzz::{Chunk, Family};
use crate::fuzz::Result;
use crate::lz4_fuzz;

/// The inner codec of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Inner {
    Lz4,
    Zstd,
}

impl Inner {
    fn format(self) -> u8 {
        if self == Self::Lz4 { 1 } else { 4 }
    }
}

/// Makes the chunks.
#[derive(Default)]
pub(crate) struct Blosc(Generator);

impl Family for Blosc {
    type Kind = Inner;
    const KINDS: &[Inner] = &[Inner::Lz4, Inner::Zstd];

    fn codec(inner: Inner) -> Result<Extension> {
        let cname = if inner == Inner::Lz4 { "lz4" } else { "zstd" };
        let json = format!(r#"{{"name":"blosc","configuration":{{"cname":"{cname}","clevel":5,"shuffle":"noshuffle"}}}}"#);
        Ok(Extension::parse(&Json::parse(json.as_bytes())?)?)
    }

    fn chunk(&mut self, inner: Inner, rng: &Rng, seed: u64) -> Chunk {
        chunk(rng, inner, &mut self.0, seed)
    }

    /// The device has one inner codec, that of the metadata.
    fn may_refuse(inner: Inner, chunk: &Chunk, _: &str) -> bool {
        chunk.bytes.get(2).is_some_and(|flags| flags >> 5 != inner.format())
    }
}

/// A chunk, put together by hand, so that its streams and its header say what they should, or nearly so.
fn chunk(rng: &Rng, inner: Inner, generator: &mut Generator, seed: u64) -> Chunk {
    let type_size = rng.pick(&[1usize, 1, 2, 2, 3, 4, 4, 7, 8, 16, 17, 255]);
    // Frames of zstd at random decide the size of streams themselves.
    let frame = (inner == Inner::Zstd && rng.chance(60)).then(|| generator.chunk(seed)).filter(|frame| frame.size > 0);
    let split = rng.chance(50) && frame.is_none();
    let mut block_size = match &frame {
        Some(frame) => frame.size,
        None if rng.chance(10) => rng.range(28, 33),
        None => 1 + rng.small(if rng.chance(5) { 300_000 } else { 6000 }),
    };
    if split && rng.chance(90) {
        block_size = block_size.next_multiple_of(type_size);
    }
    let is_split = split && type_size <= 16 && block_size / type_size >= 128;
    let blocks = 1 + rng.small(if rng.chance(5) { 100 } else { 5 });
    let tail = if blocks == 1 || rng.chance(50) { block_size } else { 1 + rng.below(block_size) };
    let size = block_size * (blocks - 1) + tail;
    let streams_of = |len: usize| if is_split && len == block_size { type_size } else { 1 };
    let mut bodies: Vec<(usize, Vec<u8>)> = Vec::new();
    for block in 0..blocks {
        let len = if block + 1 == blocks { tail } else { block_size };
        let streams = streams_of(len);
        let mut body = Vec::new();
        let mut owed = 0;
        let shifts = rng.chance(6);
        for index in 0..streams {
            let len = len / streams;
            // What one stream lacks, the next one has too much.
            let len = if owed > 0 {
                len + std::mem::take(&mut owed)
            } else if shifts && index + 1 < streams && rng.chance(50) {
                owed = if rng.chance(30) { len } else { 1 + rng.below(len) };
                len - owed
            } else {
                len
            };
            if len == 0 {
                let nothing: &[u8] = if inner == Inner::Zstd && rng.chance(50) { &[0x50, 0x2A, 0x4D, 0x18, 0, 0, 0, 0] } else { &[] };
                body.extend((nothing.len() as u32).to_le_bytes());
                body.extend(nothing);
                continue;
            }
            let stream = match &frame {
                Some(frame) if len == frame.size && rng.chance(70) => frame.bytes.clone(),
                _ => stream(rng, inner, len),
            };
            body.extend((stream.len() as u32).to_le_bytes());
            body.extend(stream);
        }
        bodies.push((block, body));
    }
    if rng.chance(30) {
        rng.shuffle(&mut bodies);
    }
    let overlap = rng.chance(4) && blocks > 1;
    let mut before = 0;
    let flags = rng.pick(&[0u8, 1, 4, 5]) | if split { 0 } else { 16 } | inner.format() << 5;
    let mut bytes = vec![2, 1, flags, type_size as u8];
    bytes.extend((size as u32).to_le_bytes());
    bytes.extend((block_size as u32).to_le_bytes());
    bytes.extend([0; 4]);
    let offsets = bytes.len();
    bytes.resize(offsets + 4 * blocks, 0);
    for (block, body) in bodies {
        // Two blocks at one place.
        let again = overlap && before != 0 && (block + 1 < blocks || tail == block_size);
        let here = if again { before } else { bytes.len() };
        bytes[offsets + 4 * block..][..4].copy_from_slice(&(here as u32).to_le_bytes());
        if !again {
            before = here;
            bytes.extend(body);
        }
    }
    if rng.chance(3) {
        bytes.truncate(offsets);
        bytes[2] |= 2;
        bytes.extend(rng.bytes(size));
    }
    if rng.chance(2) {
        // Nothing was encoded.
        bytes.truncate(if rng.chance(80) { 16 } else { 17 });
        bytes[4..8].fill(0);
        let len = bytes.len() as u32;
        bytes[12..16].copy_from_slice(&len.to_le_bytes());
        return Chunk { bytes, size: 0 };
    }
    let len = bytes.len();
    bytes[12..16].copy_from_slice(&(len as u32).to_le_bytes());
    if rng.chance(25) {
        damage(rng, &mut bytes);
    }
    Chunk { bytes, size: if rng.chance(2) { size + 1 } else { size } }
}

fn damage(rng: &Rng, bytes: &mut Vec<u8>) {
    let (at, early, in_header) = (rng.below(bytes.len()), rng.small(bytes.len() - 1), rng.below(16.min(bytes.len())));
    match rng.below(7) {
        5 => bytes.truncate(bytes.len().saturating_sub(1 + rng.below(5))),
        6 if bytes.len() > 20 => {
            let end = bytes.len() as u32 - rng.below(6) as u32;
            bytes[16..20].copy_from_slice(&end.to_le_bytes());
        }
        0 => bytes.truncate(at),
        1 => bytes.push(0),
        2 => bytes[in_header] = rng.next() as u8,
        3 => bytes[early] = rng.pick(&[0, 1, 0x7F, 0x80, 0xFF]),
        _ => bytes[at] ^= 1 << rng.below(8),
    }
    if rng.chance(50) && bytes.len() >= 16 {
        let len = (bytes.len() as u32).to_le_bytes();
        bytes[12..16].copy_from_slice(&len);
    }
}

/// A stream that decodes to `len` bytes, or nearly so.
fn stream(rng: &Rng, inner: Inner, len: usize) -> Vec<u8> {
    if rng.chance(8) {
        return rng.bytes(len);
    }
    if inner == Inner::Lz4 {
        return lz4_fuzz::block(rng, len, 400);
    }
    let period = 1 + rng.small(40);
    let data: Vec<u8> = (0..len).map(|i| if rng.chance(3) { rng.next() as u8 } else { (i % period) as u8 }).collect();
    let frame = zstd::bulk::compress(&data, rng.pick(&[1, 3, 9])).unwrap_or_default();
    match rng.below(20) {
        // Frames one behind the other, and such as are skipped.
        0 | 1 => {
            let (front, back) = data.split_at(rng.below(len + 1));
            let parts = [front, back].map(|part| zstd::bulk::compress(part, 3).unwrap_or_default());
            parts.concat()
        }
        2 => [&[0x50, 0x2A, 0x4D, 0x18, 2, 0, 0, 0, 7, 7][..], &frame].concat(),
        3 => [&frame[..], &[0x50, 0x2A, 0x4D, 0x18, 0, 0, 0, 0]].concat(),
        4 => zstd::bulk::compress(data.get(1..).unwrap_or_default(), 3).unwrap_or_default(),
        5 => vec![0x50, 0x2A, 0x4D, 0x18, 0, 0, 0, 0],
        _ => frame,
    }
}

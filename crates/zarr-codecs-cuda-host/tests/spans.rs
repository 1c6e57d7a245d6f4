//! The kernels of gzip, zlib and LZ4.

use std::collections::HashMap;

use common::{data, decode};
use zarr_codecs_cuda_host::HostOptions;

mod common;

fn encode(codec: &str, bytes: &[u8]) -> Vec<u8> {
    let mut encoder = libdeflater::Compressor::new(libdeflater::CompressionLvl::default());
    let mut out = vec![0; encoder.gzip_compress_bound(bytes.len())];
    let len = match codec {
        "numcodecs.gzip" => encoder.gzip_compress(bytes, &mut out),
        "numcodecs.zlib" => encoder.zlib_compress(bytes, &mut out),
        _ => return Lz4::of(bytes),
    };
    out.truncate(len.unwrap());
    out
}

/// A chunk of `numcodecs.lz4`, sequence by sequence.
#[derive(Default)]
struct Lz4 {
    block: Vec<u8>,
    decoded: Vec<u8>,
}

impl Lz4 {
    fn literals(&mut self, literals: &[u8], low: usize) {
        let len = literals.len();
        self.block.push((len.min(15) << 4 | low.min(15)) as u8);
        self.go_on(len);
        self.block.extend(literals);
        self.decoded.extend(literals);
    }

    fn go_on(&mut self, len: usize) {
        if let Some(rest) = len.checked_sub(15) {
            self.block.extend(std::iter::repeat_n(255, rest / 255));
            self.block.push((rest % 255) as u8);
        }
    }

    fn push(&mut self, literals: &[u8], offset: usize, matched: usize) {
        self.literals(literals, matched - 4);
        self.block.extend((offset as u16).to_le_bytes());
        self.go_on(matched - 4);
        let start = self.decoded.len() - offset;
        (0..matched).for_each(|at| self.decoded.push(self.decoded[start + at]));
    }

    fn end(mut self, literals: &[u8]) -> (Vec<u8>, Vec<u8>) {
        self.literals(literals, 0);
        ([&(self.decoded.len() as u32).to_le_bytes()[..], &self.block].concat(), self.decoded)
    }

    /// With the last match of four bytes that anything is like.
    fn of(bytes: &[u8]) -> Vec<u8> {
        let (mut chunk, mut seen) = (Self::default(), HashMap::new());
        let (mut at, mut from) = (0, 0);
        while at + 12 < bytes.len() {
            match seen.insert(&bytes[at..at + 4], at).filter(|&before| at - before < 65_536) {
                None => at += 1,
                Some(before) => {
                    let rest = &bytes[at..bytes.len() - 5];
                    let matched = rest.iter().zip(&bytes[before..]).take_while(|(a, b)| a == b).count();
                    chunk.push(&bytes[from..at], at - before, matched);
                    at += matched;
                    from = at;
                }
            }
        }
        chunk.end(&bytes[from..]).0
    }
}

/// Few chunks by the kernel with more threads, many by the other one; and all by that where a block has not as much shared memory as the first one wants, as on devices of compute
/// capability 8.6 and 8.9.
#[test]
fn few_chunks_and_many_on_devices_with_much_and_little_shared_memory() {
    for codec in ["numcodecs.gzip", "numcodecs.zlib", "numcodecs.lz4"] {
        let mut chunks = Vec::new();
        let mut expected = Vec::new();
        for len in [1, 12, 13, 100, 5000, 65_536, 300_001] {
            for kind in 0..7 {
                let bytes = data(kind, len);
                chunks.push((encode(codec, &bytes), len));
                expected.push((kind, len, bytes));
            }
        }
        for shared_memory in [u32::MAX, 99 << 10] {
            let options = HostOptions::default().with_shared_memory(shared_memory);
            for batch in [1, 3, chunks.len()] {
                for (chunks, expected) in chunks.chunks(batch).zip(expected.chunks(batch)) {
                    for (found, (kind, len, bytes)) in decode(codec, options, 1 << 30, chunks).into_iter().zip(expected) {
                        let found = found.unwrap_or_else(|error| panic!("{codec}, kind {kind}, {len} bytes: {error}"));
                        assert!(found == *bytes, "{codec}, kind {kind}, {len} bytes, {batch} at once");
                    }
                }
            }
        }
    }
}

/// Sequences of each way that the kernels have for them, at the edges of these: literals and matches as long as a span takes them and longer, from near and far.
#[test]
fn lengths_of_sequences_of_lz4() {
    let noise = data(1, 70_040);
    let (mut chunks, mut expected) = (Vec::new(), Vec::new());
    for literals in [0, 1, 14, 15, 269, 270, 2053, 2054, 2055, 2056, 70_000] {
        for matched in [4, 18, 19, 273, 274, 4097, 4098, 4099, 4100, 300_000] {
            for offset in [1, 2, 15, 16, 17, 1000, 65_535] {
                if offset > literals + 60 {
                    continue;
                }
                let mut chunk = Lz4::default();
                chunk.push(&noise[..40], 40, 20);
                chunk.push(&noise[40..40 + literals], offset, matched);
                chunk.push(&noise[..30], 3, 25);
                let (chunk, decoded) = chunk.end(&noise[..40]);
                chunks.push((chunk, decoded.len()));
                expected.push(decoded);
            }
        }
    }
    let found = decode("numcodecs.lz4", HostOptions::default(), 1 << 30, &chunks);
    assert!(found.iter().zip(&expected).all(|(found, expected)| found.as_ref() == Ok(expected)));
    for (index, (chunk, expected)) in chunks.iter().zip(&expected).enumerate().step_by(7) {
        let found = decode("numcodecs.lz4", HostOptions::default(), 1 << 30, std::slice::from_ref(chunk));
        assert!(found[0].as_ref() == Ok(expected), "chunk {index}");
    }
}

/// Of no bytes, one block is good: a token of 0.
#[test]
fn a_chunk_of_lz4_that_decodes_to_nothing() {
    let chunks: Vec<(Vec<u8>, usize)> = [&[0][..], &[], &[1], &[0, 0], &[0x10, 7]].map(|block| ([&[0; 4], block].concat(), 0)).to_vec();
    let found = decode("numcodecs.lz4", HostOptions::default(), 1 << 30, &chunks);
    assert_eq!(found.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, false, false, false, false]);
}

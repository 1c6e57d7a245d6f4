//! Corner cases of frames and blocks.

use zstd_frames::bits::{StreamEnd, backward};
use zstd_frames::generate::data::{self, Encoder, Settings};
use zstd_frames::huffman::Tree;
use zstd_frames::write::{BlockType, Header, LiteralsType, Sequence, block, literals_header, skippable};
use zstd_frames::{Rng, checksum};

use super::{Expect, Sample, compressed, frame, predefined, raw, raw_literals, sample};

pub(super) fn headers() -> Vec<Sample> {
    let mut samples = Vec::new();
    let rng = Rng::new(1);
    for size in [0usize, 1, 255, 256, 257, 65_791, 65_792, 100_000] {
        let bytes = rng.bytes(size);
        for code in 0..4u8 {
            for single in [false, true] {
                let fits = match code {
                    0 => !single || size < 256,
                    1 => (256..65_792).contains(&size),
                    _ => true,
                };
                let header = Header {
                    single_segment: single,
                    content_code: code,
                    content: size as u64,
                    window: 10 << 3,
                    unused: size == 1,
                    ..Header::plain()
                };
                for (id_code, id) in [(0, 0), (1, 0), (2, 0), (3, 0), (1, 7), (3, 1 << 31)] {
                    let header = Header { dictionary: (id_code, id), ..header };
                    let expect = if fits && id == 0 { Expect::Good } else { Expect::Same };
                    let encoded = [header.bytes(), raw(true, &bytes)].concat();
                    samples.push(sample(format!("{size} bytes, code {code}, single {single}, id {id_code}:{id}"), encoded, size, expect));
                }
            }
        }
    }
    for (label, header) in [
        ("reserved bit", Header { reserved: true, ..Header::plain() }),
        ("other magic", Header { magic: 0xFD2F_B527, ..Header::plain() }),
        ("size too large", Header::single(4)),
        ("size too small", Header::single(2)),
        ("size 2^64 - 2", Header { content_code: 3, content: u64::MAX - 1, ..Header::plain() }),
    ] {
        samples.push(sample(label, [header.bytes(), raw(true, b"abc")].concat(), 3, Expect::Bad));
    }
    let unknown = Header { content_code: 3, content: u64::MAX, ..Header::plain() };
    samples.push(sample("size 2^64 - 1", [unknown.bytes(), raw(true, b"abc")].concat(), 3, Expect::Good));
    samples
}

pub(super) fn windows() -> Vec<Sample> {
    let content = data::content("far matches", 300_000, &Rng::new(2));
    let settings = Settings { level: 3, no_content_size: true, ..Settings::default() };
    let mut encoded = Encoder::default().encode(&content, settings).unwrap_or_default();
    let mut samples = Vec::new();
    for window in 0..=255u8 {
        // Behind the magic number and the flags. Small windows make some blocks too large.
        encoded[5] = window;
        let expect = if window >= 0xB0 {
            Expect::Bad
        } else if window >= 7 << 3 {
            Expect::Good
        } else {
            Expect::Same
        };
        samples.push(sample(format!("descriptor {window:#x}"), encoded.clone(), content.len(), expect));
    }
    samples
}

pub(super) fn empty() -> Vec<Sample> {
    let nothing = compressed(true, vec![0], vec![0]);
    vec![
        frame("a raw block of 0", Header::plain(), &[raw(true, b"")], Expect::Good),
        frame("a repeated block of 0", Header::plain(), &[block(BlockType::Rle, true, 0, &[9])], Expect::Good),
        frame("a compressed block of 0", Header::plain(), std::slice::from_ref(&nothing), Expect::Good),
        frame("a compressed block of 0, count in two bytes", Header::plain(), &[compressed(true, vec![0], vec![0x80, 0])], Expect::Good),
        frame("a compressed block of 0 in a single segment of 0", Header::single(0), &[nothing], Expect::Bad),
        frame("a raw block of 0 in a single segment of 0", Header::single(0), &[raw(true, b"")], Expect::Good),
        frame("many empty blocks", Header::plain(), &[vec![raw(false, b""); 200].concat(), raw(true, b"x")], Expect::Good),
        sample("no bytes", Vec::new(), 0, Expect::Bad),
        sample("only a skippable frame", skippable(1, 3, b"abc"), 0, Expect::Good),
        sample("only a skippable frame, for a byte", skippable(1, 3, b"abc"), 1, Expect::Bad),
    ]
}

pub(super) fn large_blocks() -> Vec<Sample> {
    let rng = Rng::new(3);
    let mut samples = Vec::new();
    for size in [131_071usize, 131_072, 131_073, 500_000, (1 << 21) - 1] {
        samples.push(frame(format!("raw {size}"), Header::plain(), &[raw(true, &rng.bytes(size))], Expect::Good));
        let small = Header { window: 0, ..Header::plain() };
        samples.push(frame(format!("repeated {size}"), small, &[block(BlockType::Rle, true, size, &[7])], Expect::Good));
    }
    samples
}

pub(super) fn frames() -> Vec<Sample> {
    let part = |byte: u8| [Header::single(3).bytes(), raw(true, &[byte; 3])].concat();
    let reach = [Header::plain().bytes(), compressed(true, raw_literals(b"ab"), predefined(&[Sequence::new(2, 4 + 3, 5)]))].concat();
    let mut samples = vec![
        sample("two", [part(1), part(2)].concat(), 6, Expect::Good),
        sample(
            "skippable before, between and after",
            [skippable(0, 0, b""), part(1), skippable(15, 2, b"xy"), part(2), skippable(7, 1, b"z")].concat(),
            6,
            Expect::Good,
        ),
        sample("an offset into the frame before", [part(1), reach].concat(), 10, Expect::Bad),
        sample("a skippable frame cut off", [part(1), skippable(0, 5, b"abcd")].concat(), 3, Expect::Bad),
        sample("a skippable frame of 4 GiB", [part(1), skippable(0, u32::MAX, b"abcd")].concat(), 3, Expect::Bad),
        sample(
            "treeless in the second frame",
            {
                let tree = Tree::new(vec![1, 1]);
                let stream = backward(&tree.fields(&[0, 1, 0]), StreamEnd::Exact, 0);
                let first = [tree.describe_direct(), stream.clone()].concat();
                let literals = |kind, section: Vec<u8>| [literals_header(kind, 0, 3, section.len()), section].concat();
                let frame = |literals: Vec<u8>| [Header::plain().bytes(), compressed(true, literals, vec![0])].concat();
                [frame(literals(LiteralsType::Compressed, first)), frame(literals(LiteralsType::Treeless, [stream, vec![0]].concat()))]
                    .concat()
            },
            6,
            Expect::Bad,
        ),
    ];
    for extra in 1..9 {
        samples.push(sample(format!("{extra} bytes behind"), [part(1), vec![0; extra]].concat(), 3, Expect::Bad));
    }
    samples
}

pub(super) fn checksums() -> Vec<Sample> {
    let rng = Rng::new(4);
    let mut samples = Vec::new();
    for size in (0..100).chain([1000, 4096, 131_072, 200_001]) {
        let bytes = rng.bytes(size);
        let header = Header { checksum: true, ..Header::plain() };
        let body = [header.bytes(), raw(true, &bytes)].concat();
        let sum = checksum(&bytes).to_le_bytes();
        samples.push(sample(format!("right, {size}"), [&body[..], &sum].concat(), size, Expect::Good));
        samples.push(sample(format!("wrong, {size}"), [&body[..], &[sum[0], sum[1], sum[2], sum[3] ^ 0x80]].concat(), size, Expect::Bad));
        samples.push(sample(format!("short, {size}"), [&body[..], &sum[..3]].concat(), size, Expect::Bad));
    }
    samples
}

pub(super) fn offsets() -> Vec<Sample> {
    let rng = Rng::new(12);
    let mut samples = Vec::new();
    let history = rng.bytes(200_000);
    let small = Header { window: 0, ..Header::plain() };
    for distance in [1u64, 1023, 1024, 1025, 65_536, 131_072, 199_999, 200_001, 200_002, 200_003, 1 << 20, 1 << 27] {
        let blocks = [raw(false, &history), compressed(true, raw_literals(b"ab"), predefined(&[Sequence::new(2, distance + 3, 9)]))];
        let encoded = [small.bytes(), blocks.concat()].concat();
        let expect = if distance <= 200_002 { Expect::Good } else { Expect::Bad };
        samples.push(sample(format!("distance {distance} in a window of 1 KiB"), encoded, 200_011, expect));
    }
    let zero = predefined(&[Sequence::new(1, 4, 3), Sequence::new(0, 3, 3)]);
    samples.push(sample(
        "repeat 1 minus 1 is 0",
        [Header::plain().bytes(), compressed(true, raw_literals(b"a"), zero)].concat(),
        7,
        Expect::Bad,
    ));
    let beyond = predefined(&[Sequence::new(4, 4, 3)]);
    samples.push(sample(
        "too few literals",
        [Header::plain().bytes(), compressed(true, raw_literals(b"abc"), beyond)].concat(),
        7,
        Expect::Bad,
    ));
    samples
}

/// Blocks that make about as much as a block may, and more.
pub(super) fn block_output() -> Vec<Sample> {
    let mut samples = Vec::new();
    for (window, most) in [(0u8, 1024u64), (3, 1408), (7 << 3, 131_072)] {
        for over in [0u64, 1, 31, 32, 33, 64, 1000] {
            for rest in [0usize, 50, 200, 2000] {
                for rle in [false, true] {
                    let length = most + over - 10;
                    let literals =
                        if rle { [literals_header(LiteralsType::Rle, 0, 10, 0), vec![6]].concat() } else { raw_literals(b"0123456789") };
                    let header = Header { window, ..Header::plain() };
                    let list = if length > 131_000 {
                        vec![Sequence::new(5, 4, length - 60_000), Sequence::new(1, 4, 60_000)]
                    } else {
                        vec![Sequence::new(5, 4, length)]
                    };
                    let blocks = [compressed(false, literals, predefined(&list)), raw(true, &vec![1; rest])];
                    let encoded = [header.bytes(), blocks.concat()].concat();
                    let size = (most + over) as usize + rest;
                    samples.push(sample(format!("{over} over {most}, {rest} behind, repeated {rle}"), encoded, size, Expect::Same));
                }
            }
        }
    }
    samples
}

/// A frame cut off at each byte, and with each byte changed.
pub(super) fn truncated() -> Vec<Sample> {
    let content = data::content("text", 700, &Rng::new(13));
    let settings = Settings { level: 19, checksum: true, ..Settings::default() };
    let encoded = Encoder::default().encode(&content, settings).unwrap_or_default();
    let mut samples: Vec<Sample> =
        (0..encoded.len()).map(|len| sample(format!("{len} bytes"), encoded[..len].to_vec(), content.len(), Expect::Bad)).collect();
    for at in 0..encoded.len() {
        for bit in 0..8 {
            let mut changed = encoded.clone();
            changed[at] ^= 1 << bit;
            samples.push(sample(format!("bit {bit} of byte {at}"), changed, content.len(), Expect::Same));
        }
    }
    samples
}

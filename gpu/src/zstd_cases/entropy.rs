//! Corner cases of literals, sequences and their tables.

use zstd_frames::bits::{StreamEnd, backward};
use zstd_frames::codes::{KINDS, Kind};
use zstd_frames::huffman::Tree;
use zstd_frames::write::{
    BlockType, Header, LiteralsType, Sequence, block, literals_header, long_format, sequence_count, sequence_fields, short_format,
};
use zstd_frames::{Rng, fse};

use super::{Expect, Sample, compressed, frame, one, predefined, raw, raw_literals, sample};

pub(super) fn literals() -> Vec<Sample> {
    let rng = Rng::new(5);
    let mut samples = Vec::new();
    for size in [0usize, 1, 31, 32, 4095, 4096, 65_536, 65_537, 131_060] {
        for format in [0, 1, 3u8] {
            if format < short_format(size) {
                continue;
            }
            let bytes = rng.bytes(size);
            let whole = |kind, content: &[u8]| [literals_header(kind, format, size, 0), content.to_vec()].concat();
            samples.push(one(format!("raw {size}, format {format}"), whole(LiteralsType::Raw, &bytes), vec![0], Expect::Good));
            samples.push(one(format!("repeated {size}, format {format}"), whole(LiteralsType::Rle, &[3]), vec![0], Expect::Good));
            if size > 0 {
                let list = predefined(&[Sequence::new(size as u64, 4, 7)]);
                samples.push(one(format!("raw {size}, then a match"), whole(LiteralsType::Raw, &bytes), list, Expect::Good));
            }
        }
    }
    samples.push(one("more than a block", literals_header(LiteralsType::Rle, 3, 131_073, 0), vec![1, 0], Expect::Bad));
    samples
}

/// A literals section of Huffman streams.
fn coded(tree: &Tree, symbols: &[u8], four: bool, treeless: bool, rng: &Rng) -> Vec<u8> {
    let mut section = match tree.describe_fse(rng) {
        _ if treeless => Vec::new(),
        Some(description) if rng.chance(50) || !tree.direct() => description,
        _ => tree.describe_direct(),
    };
    let stream = |symbols: &[u8]| backward(&tree.fields(symbols), StreamEnd::Exact, 0);
    if four {
        let segment = symbols.len().div_ceil(4);
        let parts: Vec<Vec<u8>> =
            (0..4).map(|i| stream(&symbols[(i * segment).min(symbols.len())..((i + 1) * segment).min(symbols.len())])).collect();
        for part in &parts[..3] {
            section.extend((part.len() as u16).to_le_bytes());
        }
        section.extend(parts.concat());
    } else {
        section.extend(stream(symbols));
    }
    let kind = if treeless { LiteralsType::Treeless } else { LiteralsType::Compressed };
    let format = long_format(four, symbols.len().max(section.len()));
    [literals_header(kind, format, symbols.len(), section.len()), section].concat()
}

pub(super) fn huffman() -> Vec<Sample> {
    let rng = &Rng::new(6);
    let mut samples = Vec::new();
    for log in 1..=12u32 {
        for round in 0..12 {
            let count = rng.range(2, (1usize << log).min(100));
            let from = rng.below(257 - count);
            let symbols: Vec<u8> = (from..from + count).map(|symbol| symbol as u8).collect();
            let tree = Tree::random(&symbols, log, rng);
            if !tree.direct() && tree.describe_fse(rng).is_none() {
                continue;
            }
            let drawn = |len: usize| {
                let inside = tree.symbols();
                (0..len).map(|_| inside[rng.small(inside.len() - 1)]).collect::<Vec<u8>>()
            };
            for len in [0, 1, 5, 6, 7, 9, 13, 64, 300, 1000 + 13 * round, 20_000] {
                let text = drawn(len);
                let four = len > 1000 || len >= 6 && round % 2 == 0;
                let first = compressed(false, coded(&tree, &text, four, false, rng), vec![0]);
                let second = drawn(6 + len / 2);
                let second_four = second.len() > 900 || round % 3 == 0;
                // Treeless sections are at least 5 bytes of block, too.
                let second = compressed(true, coded(&tree, &second, second_four, true, rng), vec![0]);
                samples.push(frame(format!("log {log}, {len} literals, round {round}"), Header::plain(), &[first, second], Expect::Same));
            }
        }
    }
    samples
}

/// Ends of Huffman streams that are not exact: what libzstd lets pass, and what it does not.
pub(super) fn huffman_ends() -> Vec<Sample> {
    let rng = &Rng::new(7);
    let mut samples = Vec::new();
    for round in 0..400 {
        let count = rng.range(2, 40);
        let tree = Tree::random(&(0..count).map(|symbol| symbol as u8).collect::<Vec<u8>>(), 6 + round % 7, rng);
        let inside = tree.symbols();
        let len = if round % 4 == 0 { rng.range(800, 5000) } else { rng.range(6, 300) };
        let text: Vec<u8> = (0..len).map(|_| inside[rng.small(inside.len() - 1)]).collect();
        let segment = len.div_ceil(4);
        let chosen = rng.below(4);
        let end = match round % 5 {
            0 => StreamEnd::ZeroByte,
            1 | 2 => StreamEnd::Extra(1 + rng.small(14) as u32),
            _ => StreamEnd::Missing(1 + rng.small(14) as u32),
        };
        let mut section = tree.describe_direct();
        let parts: Vec<Vec<u8>> = (0..4)
            .map(|i| {
                let symbols = &text[(i * segment).min(len)..((i + 1) * segment).min(len)];
                backward(&tree.fields(symbols), if i == chosen { end } else { StreamEnd::Exact }, rng.next())
            })
            .collect();
        for part in &parts[..3] {
            section.extend((part.len() as u16).to_le_bytes());
        }
        section.extend(parts.concat());
        let literals =
            [literals_header(LiteralsType::Compressed, long_format(true, len.max(section.len())), len, section.len()), section].concat();
        let encoded = [Header::plain().bytes(), compressed(true, literals, vec![0])].concat();
        samples.push(sample(format!("round {round}, {end:?} in stream {chosen}"), encoded, len, Expect::Same));
    }
    samples
}

/// Every code of every length at both its ends.
pub(super) fn lengths() -> Vec<Sample> {
    let mut samples = Vec::new();
    let rng = Rng::new(8);
    for kind in [Kind::LiteralLength, Kind::MatchLength] {
        for code in 0..=kind.max() {
            let widest = (1u64 << kind.bits(code)) - 1;
            for extra in [0, widest] {
                let value = kind.base(code) + extra;
                let (run, length) = if kind == Kind::LiteralLength { (value, 3) } else { (4, value) };
                let bytes = rng.bytes(run as usize + 2);
                let sequence =
                    if run == 0 { vec![Sequence::new(1, 4, 3), Sequence::new(0, 4, 3)] } else { vec![Sequence::new(run, 4, length)] };
                if run > 131_000 || length > 131_000 {
                    continue;
                }
                samples.push(one(format!("{kind:?} code {code} + {extra}"), raw_literals(&bytes), predefined(&sequence), Expect::Good));
            }
        }
    }
    samples
}

/// All ways in which three sequences can repeat offsets.
pub(super) fn repeat_offsets() -> Vec<Sample> {
    let rng = Rng::new(9);
    let mut samples = Vec::new();
    for way in 0..6usize.pow(3) {
        let mut list = vec![Sequence::new(20, 5 + 3, 4), Sequence::new(1, 9 + 3, 4), Sequence::new(1, 14 + 3, 4)];
        let mut rest = way;
        for _ in 0..3 {
            list.push(Sequence::new((rest / 3 % 2) as u64, (rest % 3 + 1) as u64, 3));
            rest /= 6;
        }
        // A block between must change nothing.
        let first = compressed(false, raw_literals(&rng.bytes(30)), predefined(&list));
        let last = compressed(true, raw_literals(&rng.bytes(3)), predefined(&[Sequence::new(0, (way % 3 + 1) as u64, 5)]));
        let blocks = [first, raw(false, b"between"), last];
        samples.push(frame(format!("way {way}"), Header::plain(), &blocks, Expect::Same));
    }
    samples
}

pub(super) fn overlaps() -> Vec<Sample> {
    let rng = Rng::new(10);
    let mut samples = Vec::new();
    for distance in (1..70u64).chain([127, 128, 129, 255, 256, 511, 1000]) {
        let bytes = rng.bytes(distance as usize);
        let list: Vec<Sequence> = [3, distance, distance + 1, 17, 300]
            .iter()
            .enumerate()
            .map(|(i, len)| Sequence::new(if i == 0 { distance } else { 0 }, distance + 3, *len.max(&3)))
            .collect();
        samples.push(one(format!("distance {distance}"), raw_literals(&bytes), predefined(&list), Expect::Good));
    }
    samples
}

pub(super) fn counts() -> Vec<Sample> {
    let mut samples = Vec::new();
    // Tables of one symbol and no bits: literal length 0, repeated offset, match length 3.
    for count in [1usize, 127, 128, 1000, 0x7EFF, 0x7F00, 43_000, 43_690, 43_691, 98_047] {
        for bytes in [1, 2] {
            let mut sequences = sequence_count(count, bytes);
            sequences.extend([0b01_01_01_00, 0, 0, 0, 1]);
            for pad in [8, 40] {
                // With 32 bytes behind them, raw literals set no limit to the block.
                let content = compressed(true, raw_literals(&[5; 8]), sequences.clone());
                let mut encoded = [Header::plain().bytes(), content].concat();
                let size = 8 + 3 * count;
                if pad == 40 {
                    encoded = [Header::plain().bytes(), compressed(false, raw_literals(&[5; 8]), sequences.clone()), raw(true, &[1; 40])]
                        .concat();
                }
                samples.push(sample(
                    format!("{count} in {bytes} bytes, {pad}"),
                    encoded,
                    size + if pad == 40 { 40 } else { 0 },
                    Expect::Same,
                ));
            }
        }
    }
    for (label, section) in
        [("bytes behind a count of 0", vec![0, 0]), ("count cut off", vec![0x80]), ("count of 3 bytes cut off", vec![0xFF, 0])]
    {
        samples.push(sample(label, [Header::plain().bytes(), compressed(true, raw_literals(b"abc"), section)].concat(), 3, Expect::Bad));
    }
    samples
}

/// Tables of every accuracy, told in every way.
pub(super) fn tables() -> Vec<Sample> {
    let rng = &Rng::new(11);
    let mut samples = Vec::new();
    for round in 0..120 {
        let mut described = Vec::new();
        let mut built = Vec::new();
        for kind in KINDS {
            let log = 5 + round % (kind.max_log() - 4);
            let all = if kind == Kind::Offset { 5 } else { 16 };
            let mut symbols: Vec<u8> = (0..=all).collect();
            if round % 7 == 0 {
                symbols = (0..=kind.max()).take(1 << log).collect();
            }
            let counts = fse::random_counts(&symbols, log, rng);
            described.extend(fse::describe(&counts, log));
            built.push(fse::Table::new(&counts, log));
        }
        let Ok(built) = <[fse::Table; 3]>::try_from(built) else { continue };
        let list: Vec<Sequence> = (0..rng.range(1, 40))
            .map(|_| Sequence::new(1 + rng.small(5) as u64, 1 + rng.below(4) as u64, 3 + rng.below(14) as u64))
            .collect();
        let section = |mode: u8, description: &[u8], list: &[Sequence]| {
            let fields = sequence_fields(list, &built, rng).unwrap_or_default();
            [
                sequence_count(list.len(), 1),
                vec![mode << 6 | mode << 4 | mode << 2],
                description.to_vec(),
                backward(&fields, StreamEnd::Exact, 0),
            ]
            .concat()
        };
        let first = compressed(false, raw_literals(&rng.bytes(300)), section(2, &described, &list));
        let again = compressed(true, raw_literals(&rng.bytes(300)), section(3, &[], &list));
        let blocks = [
            raw(false, &[0; 9]),
            first.clone(),
            block(BlockType::Rle, false, 5, &[1]),
            compressed(false, raw_literals(b"-"), vec![0]),
            again.clone(),
        ];
        samples.push(frame(format!("round {round}"), Header::plain(), &blocks, Expect::Good));
        if round < 5 {
            samples.push(sample("repeated first", [Header::plain().bytes(), again].concat(), 400, Expect::Bad));
        }
    }
    samples
}

//! The zstd test-suite as data: corner cases of RFC 8878, frames by libzstd at every level, and by other encoders. [`run`] gives them to a provider and compares
//! with libzstd.

use std::process::ExitCode;

use zstd_frames::bits::{StreamEnd, backward};
use zstd_frames::codes::{KINDS, Kind};
use zstd_frames::generate::Generator;
use zstd_frames::generate::data::{self, Encoder, Settings};
use zstd_frames::huffman::Tree;
use zstd_frames::write::{
    BlockType, Header, LiteralsType, Sequence, block, literals_header, long_format, predefined_sequences, sequence_count, sequence_fields,
    short_format, skippable,
};
use zstd_frames::{Machine, Oracle, Rng, checksum, decode_any, fse};

use crate::fuzz::{EngineKind, Placing, Result, Target, Verdict, decode};

/// Run the zstd test-suite: corner cases of the RFC, frames by libzstd at every level, and by other encoders
#[derive(Debug, clap::Args)]
pub(crate) struct SuiteArgs {
    /// Run only cases whose name contains this
    #[arg(default_value = "")]
    filter: String,
    /// What decodes
    #[arg(long, value_enum, default_value_t = EngineKind::Host)]
    engine: EngineKind,
    /// Where chance starts, in the host build
    #[arg(long, default_value_t = 0)]
    seed: u64,
}

/// The subcommand.
pub(crate) fn suite(args: &SuiteArgs) -> ExitCode {
    match Target::new(args.engine, args.seed).and_then(|target| run(&target, &args.filter)) {
        Ok((count, wrong)) => {
            wrong.iter().for_each(|line| println!("{line}"));
            println!("{} samples, {} wrong", count, wrong.len());
            if count > 0 && wrong.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// What libzstd must say about a sample, for the sample to be what it claims to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expect {
    /// It decodes.
    Good,
    /// It is refused.
    Bad,
    /// Either; the provider says the same.
    Same,
}

/// A chunk.
#[derive(Debug, Clone)]
pub(crate) struct Sample {
    pub(crate) label: String,
    pub(crate) encoded: Vec<u8>,
    /// Bytes that it is to decode to.
    pub(crate) size: usize,
    pub(crate) expect: Expect,
}

/// Samples that belong together, made when they are needed.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) samples: Box<dyn Fn() -> Vec<Sample> + Send + Sync>,
}

/// All cases.
pub(crate) fn cases() -> Vec<Case> {
    let mut cases = vec![
        case("rfc/headers", headers),
        case("rfc/windows", windows),
        case("rfc/empty", empty),
        case("rfc/large-blocks", large_blocks),
        case("rfc/frames", frames),
        case("rfc/checksums", checksums),
        case("rfc/literals", literals),
        case("rfc/huffman", huffman),
        case("rfc/huffman-ends", huffman_ends),
        case("rfc/lengths", lengths),
        case("rfc/repeat-offsets", repeat_offsets),
        case("rfc/overlaps", overlaps),
        case("rfc/counts", counts),
        case("rfc/tables", tables),
        case("rfc/offsets", offsets),
        case("rfc/block-output", block_output),
        case("rfc/truncated", truncated),
        case("generated", generated),
        case("golden", golden),
    ];
    for kind in data::KINDS {
        for level in -5..=22 {
            cases.push(Case { name: format!("libzstd/{kind}/level {level}"), samples: Box::new(move || encoded(kind, level)) });
        }
        cases.push(Case { name: format!("libzstd/{kind}/large"), samples: Box::new(move || large(kind)) });
    }
    cases
}

/// Runs the cases whose name contains `filter`; gives the number of samples, and what went wrong, a line each.
///
/// # Errors
/// When the target cannot make a queue.
pub(crate) fn run(target: &Target, filter: &str) -> Result<(usize, Vec<String>)> {
    let queue = target.device.create_queue()?;
    let mut oracle = Oracle::default();
    let (mut count, mut wrong) = (0, Vec::new());
    for case in cases().iter().filter(|case| case.name.contains(filter)) {
        let samples = (case.samples)();
        for (i, batch) in batches(&samples).into_iter().enumerate() {
            let slots: Vec<(&[u8], usize)> = batch.iter().map(|sample| (&sample.encoded[..], sample.size)).collect();
            let placing = if i % 2 == 0 { Placing::Apart } else { Placing::Packed };
            let verdicts = match decode(target, &*queue, &slots, placing, None) {
                Ok(verdicts) => verdicts,
                Err(error) => {
                    wrong.push(format!("{}: {error}", case.name));
                    continue;
                }
            };
            for (sample, verdict) in batch.iter().zip(verdicts) {
                count += 1;
                let told = oracle.decode(&sample.encoded, sample.size);
                if let Some(problem) = judge(sample, &told, &verdict) {
                    wrong.push(format!("{}, {}: {problem}", case.name, sample.label));
                }
            }
        }
    }
    Ok((count, wrong))
}

fn judge(sample: &Sample, told: &Verdict, verdict: &Verdict) -> Option<String> {
    match (sample.expect, told) {
        (Expect::Good, Err(error)) => return Some(format!("the sample is no good, libzstd says {error}")),
        (Expect::Bad, Ok(_)) => return Some("the sample is no good, libzstd decodes it".into()),
        _ => {}
    }
    match (told, verdict) {
        (Ok(told), Ok(found)) => {
            let at = told.iter().zip(found).position(|(a, b)| a != b)?;
            Some(format!("byte {at} of {} differs", told.len()))
        }
        (Err(_), Err(_)) => None,
        (Ok(_), Err(error)) => Some(format!("libzstd decodes it, the provider says {error}")),
        (Err(error), Ok(_)) => Some(format!("the provider decodes it, libzstd says {error}")),
    }
}

/// Some samples at a time, of at most 16 MiB decoded.
fn batches(samples: &[Sample]) -> Vec<&[Sample]> {
    let mut batches = Vec::new();
    let mut rest = samples;
    while !rest.is_empty() {
        let mut bytes = 0;
        let fitting = rest.iter().take_while(|sample| {
            bytes += sample.size;
            bytes <= 16 << 20
        });
        let (batch, after) = rest.split_at(fitting.count().clamp(1, 256));
        batches.push(batch);
        rest = after;
    }
    batches
}

fn case(name: &str, samples: fn() -> Vec<Sample>) -> Case {
    Case { name: name.to_owned(), samples: Box::new(samples) }
}

fn sample(label: impl Into<String>, encoded: Vec<u8>, size: usize, expect: Expect) -> Sample {
    Sample { label: label.into(), encoded, size, expect }
}

/// A frame around blocks, of the size that it decodes to.
fn frame(label: impl Into<String>, header: Header, blocks: &[Vec<u8>], expect: Expect) -> Sample {
    let encoded = [header.bytes(), blocks.concat()].concat();
    let size = decode_any(&encoded, 8 << 20, Machine::here()).0.len();
    sample(label, encoded, size, expect)
}

/// A frame of one compressed block.
fn one(label: impl Into<String>, literals: Vec<u8>, sequences: Vec<u8>, expect: Expect) -> Sample {
    frame(label, Header::plain(), &[compressed(true, literals, sequences)], expect)
}

fn compressed(last: bool, literals: Vec<u8>, sequences: Vec<u8>) -> Vec<u8> {
    let content = [literals, sequences].concat();
    block(BlockType::Compressed, last, content.len(), &content)
}

fn raw_literals(bytes: &[u8]) -> Vec<u8> {
    [literals_header(LiteralsType::Raw, short_format(bytes.len()), bytes.len(), 0), bytes.to_vec()].concat()
}

fn predefined(list: &[Sequence]) -> Vec<u8> {
    predefined_sequences(list, &Rng::new(list.len() as u64)).unwrap_or_default()
}

fn raw(last: bool, bytes: &[u8]) -> Vec<u8> {
    block(BlockType::Raw, last, bytes.len(), bytes)
}

fn headers() -> Vec<Sample> {
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

fn windows() -> Vec<Sample> {
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

fn empty() -> Vec<Sample> {
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

fn large_blocks() -> Vec<Sample> {
    let rng = Rng::new(3);
    let mut samples = Vec::new();
    for size in [131_071usize, 131_072, 131_073, 500_000, (1 << 21) - 1] {
        samples.push(frame(format!("raw {size}"), Header::plain(), &[raw(true, &rng.bytes(size))], Expect::Good));
        let small = Header { window: 0, ..Header::plain() };
        samples.push(frame(format!("repeated {size}"), small, &[block(BlockType::Rle, true, size, &[7])], Expect::Good));
    }
    samples
}

fn frames() -> Vec<Sample> {
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

fn checksums() -> Vec<Sample> {
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

fn literals() -> Vec<Sample> {
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

fn huffman() -> Vec<Sample> {
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
fn huffman_ends() -> Vec<Sample> {
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
fn lengths() -> Vec<Sample> {
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
fn repeat_offsets() -> Vec<Sample> {
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

fn overlaps() -> Vec<Sample> {
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

fn counts() -> Vec<Sample> {
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
fn tables() -> Vec<Sample> {
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

fn offsets() -> Vec<Sample> {
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
fn block_output() -> Vec<Sample> {
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
fn truncated() -> Vec<Sample> {
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

fn generated() -> Vec<Sample> {
    let mut generator = Generator::default();
    let chunk = |seed: u64| {
        let chunk = generator.chunk(seed);
        sample(format!("seed {seed}"), chunk.bytes, chunk.size, Expect::Same)
    };
    (1 << 40..(1 << 40) + 2000).map(chunk).collect()
}

/// Frames by other encoders. Scripts beside them made them.
fn golden() -> Vec<Sample> {
    crate::zstd_golden::FRAMES
        .iter()
        .map(|(name, encoded)| {
            let size = decode_any(encoded, 8 << 20, Machine::here()).0.len();
            sample(*name, encoded.to_vec(), size, Expect::Good)
        })
        .collect()
}

/// Sizes around the borders of everything.
const SIZES: [usize; 20] =
    [0, 1, 2, 3, 7, 31, 64, 255, 256, 1000, 1023, 4096, 16_384, 65_535, 65_792, 100_000, 131_071, 131_072, 131_073, 262_145];

fn encoded(kind: &str, level: i32) -> Vec<Sample> {
    let mut encoder = Encoder::default();
    let rng = Rng::new((level + 100) as u64);
    let mut samples = Vec::new();
    for (i, size) in SIZES.into_iter().enumerate() {
        // High levels take long; each size has its turn at some of them.
        if level > 12 && size > 5000 && !(i + level as usize).is_multiple_of(4) {
            continue;
        }
        let content = data::content(kind, size, &rng);
        let settings = Settings { level, checksum: i % 3 == 0, no_content_size: i % 5 == 1, window_log: None, long: false };
        match encoder.encode(&content, settings) {
            Ok(encoded) => samples.push(sample(format!("{size} bytes"), encoded, size, Expect::Good)),
            Err(error) => samples.push(sample(format!("{size} bytes: {error}"), Vec::new(), size, Expect::Good)),
        }
    }
    samples
}

fn large(kind: &str) -> Vec<Sample> {
    let mut encoder = Encoder::default();
    let mut samples = Vec::new();
    for (level, size, window_log, long) in [
        (1, 1 << 20, None, false),
        (3, 3_000_001, None, false),
        (6, 1 << 20, Some(10), false),
        (9, 1 << 20, Some(27), true),
        (3, 4 << 20, Some(22), true),
        (-3, 2 << 20, None, false),
    ] {
        let content = data::content(kind, size, &Rng::new(size as u64));
        let settings = Settings { level, checksum: true, no_content_size: window_log.is_some(), window_log, long };
        let encoded = encoder.encode(&content, settings).unwrap_or_default();
        samples.push(sample(format!("{size} bytes, level {level}, window {window_log:?}"), encoded, size, Expect::Good));
    }
    samples
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn passes(filter: &str) {
        let target = Target::new(EngineKind::Host, 1).expect("the host build is always there");
        let (count, wrong) = run(&target, filter).expect("the host has queues");
        assert!(count > 0, "no case is called {filter}");
        assert!(wrong.is_empty(), "{} of {count} samples:\n{}", wrong.len(), wrong[..wrong.len().min(40)].join("\n"));
    }

    #[test]
    fn samples_are_what_they_claim_to_be() {
        let mut oracle = Oracle::default();
        let mut wrong = Vec::new();
        for case in cases().iter().filter(|case| !case.name.contains("libzstd")) {
            for sample in (case.samples)() {
                let told = oracle.decode(&sample.encoded, sample.size);
                let reference = zstd_frames::decode(&sample.encoded, sample.size, Machine::here());
                let reference = reference.result.map_err(|status| format!("{status:?}"));
                wrong.extend(judge(&sample, &told, &reference).map(|problem| format!("{}, {}: {problem}", case.name, sample.label)));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn corner_cases_of_the_rfc() {
        passes("rfc/");
    }

    #[test]
    fn generated_chunks() {
        passes("generated");
    }

    #[test]
    fn frames_by_other_encoders() {
        passes("golden");
    }

    #[test]
    fn frames_by_libzstd_at_every_level() {
        passes("/level");
    }

    #[test]
    fn large_frames() {
        passes("/large");
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn what_libzstd_encodes_comes_back(
            parts in proptest::collection::vec((proptest::collection::vec(any::<u8>(), 0..300), 1usize..50), 0..20),
            level in -5i32..=22,
            checksum: bool,
            seed: u64,
        ) {
            let content: Vec<u8> = parts.iter().flat_map(|(bytes, times)| bytes.repeat(*times)).collect();
            let encoded = Encoder::default().encode(&content, Settings { level, checksum, ..Settings::default() }).expect("the settings are right");
            let target = Target::new(EngineKind::Host, seed).expect("the host build is always there");
            let queue = target.device.create_queue().expect("the host has queues");
            let verdicts = decode(&target, &*queue, &[(&encoded, content.len())], Placing::Apart, None).expect("decodes");
            prop_assert_eq!(&verdicts[0], &Ok(content));
        }
    }
}

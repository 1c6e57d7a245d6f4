//! The zstd test-suite as data: corner cases of RFC 8878, frames by libzstd at every level, and by other encoders. [`run`] gives them to a provider and compares
//! with libzstd.

mod entropy;
mod frames;

use std::process::ExitCode;

use zstd_frames::generate::Generator;
use zstd_frames::generate::data::{self, Encoder, Settings};
use zstd_frames::write::{BlockType, Header, LiteralsType, Sequence, block, literals_header, predefined_sequences, short_format};
use zstd_frames::{Machine, Oracle, Rng, decode_any};

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
    /// Of each case every N-th sample
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..))]
    every: usize,
}

/// The subcommand.
pub(crate) fn suite(args: &SuiteArgs) -> ExitCode {
    match Target::new(args.engine, args.seed).and_then(|target| run(&target, &args.filter, args.every)) {
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
        case("rfc/headers", frames::headers),
        case("rfc/windows", frames::windows),
        case("rfc/empty", frames::empty),
        case("rfc/large-blocks", frames::large_blocks),
        case("rfc/frames", frames::frames),
        case("rfc/checksums", frames::checksums),
        case("rfc/literals", entropy::literals),
        case("rfc/huffman", entropy::huffman),
        case("rfc/huffman-ends", entropy::huffman_ends),
        case("rfc/lengths", entropy::lengths),
        case("rfc/repeat-offsets", entropy::repeat_offsets),
        case("rfc/overlaps", entropy::overlaps),
        case("rfc/counts", entropy::counts),
        case("rfc/tables", entropy::tables),
        case("rfc/offsets", frames::offsets),
        case("rfc/block-output", frames::block_output),
        case("rfc/truncated", frames::truncated),
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

/// Runs the cases whose name contains `filter`, of each one sample in `step`; gives the number of samples, and what went wrong, a line each.
///
/// # Errors
/// When the target cannot make a queue.
pub(crate) fn run(target: &Target, filter: &str, step: usize) -> Result<(usize, Vec<String>)> {
    let queue = target.device.create_queue()?;
    let mut oracle = Oracle::default();
    let (mut count, mut wrong) = (0, Vec::new());
    for case in cases().iter().filter(|case| case.name.contains(filter)) {
        let samples: Vec<Sample> = (case.samples)().into_iter().step_by(step).collect();
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

    /// One sample of each `step`; `zarr-gpu suite` has all.
    fn passes(filter: &str, step: usize) {
        let target = Target::new(EngineKind::Host, 1).expect("the host build is always there");
        let (count, wrong) = run(&target, filter, step).expect("the host has queues");
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
        passes("rfc/", 1);
    }

    #[test]
    fn generated_chunks() {
        passes("generated", 1);
    }

    #[test]
    fn frames_by_other_encoders() {
        passes("golden", 1);
    }

    #[test]
    fn frames_by_libzstd_at_every_level() {
        passes("/level", 4);
    }

    #[test]
    fn large_frames() {
        passes("/large", 3);
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

//! `zarr-gpu fuzz` of codecs other than zstd: random chunks, decoded in batches, each verdict and each byte compared with those of zarr-codecs-cpu.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::process::ExitCode;
use std::time::Instant;

use zarr_codec_api::{ArrayRepresentation, Chain, Policy, Registry, Scratch, Target as HostTarget};
use zarr_meta::{DataType, Extension, FillValue};
use zstd_frames::Rng;

use crate::fuzz::{FuzzArgs, Placing, Result, Target, decode};

/// Encoded bytes, right or wrong.
#[derive(Debug)]
pub(crate) struct Chunk {
    pub(crate) bytes: Vec<u8>,
    /// What it should decode to.
    pub(crate) size: usize,
}

/// Makes chunks of some codecs.
pub(crate) trait Family: Default {
    /// What the chunks of a batch have in common.
    type Kind: Copy + Debug + 'static;
    const KINDS: &[Self::Kind];

    /// The codec that decodes them.
    fn codec(kind: Self::Kind) -> Result<Extension>;

    fn chunk(&mut self, kind: Self::Kind, rng: &Rng, seed: u64) -> Chunk;

    /// Whether the device may refuse what the CPU reads, with these words.
    fn may_refuse(kind: Self::Kind, chunk: &Chunk, words: &str) -> bool;
}

pub(crate) fn run<F: Family>(args: &FuzzArgs) -> Result<ExitCode> {
    let start = Instant::now();
    let registry = Registry::new().with(zarr_codecs_cpu::provider());
    let mut family = F::default();
    let (mut good, mut different, mut errors) = (0u64, 0u64, BTreeMap::<String, u64>::new());
    let mut target = Target::new(args.engine, args.seed)?;
    let mut at = 0;
    while at < args.frames {
        let seed = args.seed + at;
        let rng = Rng::new(seed);
        let kind = rng.pick(F::KINDS);
        let codec = F::codec(kind)?;
        target = target.renewed(args.engine, seed)?.with_codec(codec.clone());
        let queue = target.device.create_queue()?;
        let count = if args.batch == 0 { 1 + rng.small(150) as u64 } else { args.batch as u64 }.min(args.frames - at);
        let chunks: Vec<Chunk> = (0..count).map(|i| family.chunk(kind, &Rng::new(!(seed + i)), seed + i)).collect();
        let slots: Vec<(&[u8], usize)> = chunks.iter().map(|chunk| (&chunk.bytes[..], chunk.size)).collect();
        let placing = if rng.chance(50) { Placing::Apart } else { Placing::Packed };
        let scarce = rng.chance(30).then(|| 1 << rng.range(14, 19));
        let verdicts = decode(&target, &*queue, &slots, placing, scarce).map_err(|error| format!("batch from seed {seed} on: {error}"))?;
        for (i, (chunk, verdict)) in chunks.iter().zip(verdicts).enumerate() {
            let array = ArrayRepresentation {
                data_type: DataType::UInt8,
                shape: vec![chunk.size as u64],
                fill_value: FillValue::default_for(&DataType::UInt8),
            };
            let chain = Chain::bind(&[Extension::new("bytes"), codec.clone()], array, &registry, &Policy::Host)?;
            let mut told = vec![0; chunk.size];
            let told = chain.decode(&chunk.bytes, HostTarget::Exact(&mut told), &mut Scratch::new()).map(|()| told);
            match &verdict {
                Ok(_) => good += 1,
                Err(words) => *errors.entry(words.clone()).or_default() += 1,
            }
            let excused = verdict.as_ref().err().is_some_and(|words| F::may_refuse(kind, chunk, words));
            if verdict.as_ref().ok() == told.as_ref().ok() || excused {
                continue;
            }
            different += 1;
            let seed = seed + i as u64;
            println!(
                "seed {seed}, {} bytes of {kind:?} to {}: host {:?}; device {:?}",
                chunk.bytes.len(),
                chunk.size,
                told.err(),
                verdict.err()
            );
            if let Some(folder) = &args.save {
                std::fs::create_dir_all(folder)?;
                std::fs::write(folder.join(format!("{seed}-{}.{kind:?}", chunk.size)), &chunk.bytes)?;
            }
        }
        at += count;
    }
    println!("{at:>9}  chunks\n{good:>9}  good\n{different:>9}  differ from zarr-codecs-cpu\nerrors:");
    errors.iter().for_each(|(error, count)| println!("{count:>9}  {error}"));
    println!("{:.1} s", start.elapsed().as_secs_f64());
    let reached = 100.0 * good as f64 / at.max(1) as f64;
    if reached < args.reach {
        println!("only {reached:.1}% are good, {}% wanted", args.reach);
    }
    Ok(if different > 0 || reached < args.reach { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Bytes that look like something.
pub(crate) fn data(rng: &Rng, len: usize) -> Vec<u8> {
    match rng.below(6) {
        0 => rng.bytes(len),
        1 => {
            let period = 1 + rng.small(40_000);
            (0..len).map(|i| if rng.chance(2) { rng.next() as u8 } else { (i % period) as u8 }).collect()
        }
        2 => vec![rng.next() as u8; len],
        // Numbers that rise and fall.
        3 => {
            let (mut value, step) = (rng.next() as u32 >> 8, 1 + rng.small(5000));
            let mut data = Vec::with_capacity(len + 4);
            while data.len() < len {
                value = value.wrapping_add(rng.below(2 * step) as u32).wrapping_sub(step as u32);
                data.extend(value.to_le_bytes());
            }
            data.truncate(len);
            data
        }
        4 => {
            let bits = rng.below(8);
            rng.bytes(len).into_iter().map(|byte| byte >> bits).collect()
        }
        _ => {
            let words: Vec<Vec<u8>> = (0..1 + rng.small(300)).map(|_| rng.bytes(1 + rng.small(30))).collect();
            let mut data = Vec::with_capacity(len + 40);
            while data.len() < len {
                data.extend(&words[rng.small(words.len() - 1)]);
            }
            data.truncate(len);
            data
        }
    }
}

/// Damages encoded bytes.
pub(crate) fn damage(rng: &Rng, bytes: &mut Vec<u8>) {
    let len = bytes.len();
    if len == 0 {
        return;
    }
    let (at, early) = (rng.below(len), rng.small(len - 1));
    match rng.below(6) {
        0 => bytes.truncate(at),
        1 => bytes.truncate(len - 1 - rng.below(len.min(9))),
        2 => bytes[early] = rng.pick(&[0, 1, 0x7F, 0x80, 0xFF]),
        3 => {
            bytes.remove(at);
        }
        _ => bytes[at] ^= 1 << rng.below(8),
    }
}

//! `zarr-gpu fuzz`: random zstd chunks, decoded in batches, each verdict and each byte compared with libzstd's.

use std::any::Any;
use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use zarr_buffer_api::{Buffer, BufferError, Device, DeviceId, HostDevice, Layout, Queue, Region};
use zarr_codec_api::{
    ByteLen, CodecErrorKind, CodecProvider, DeviceContext, DeviceSegment, DeviceSlot, Direction, Representation, Segment, Stage,
};
use zarr_codecs_cuda_host::{HostOptions, host_provider};
use zarr_meta::Extension;
use zstd_frames::generate::{Chunk, Generator};
use zstd_frames::{Machine, Oracle, Rng};

pub(crate) type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// Compare decoding of random chunks, good and bad: of zstd with libzstd, of others with zarr-codecs-cpu
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct FuzzArgs {
    /// What the chunks are of; of the options below, others than zstd have `--frames`, `--seed`, `--batch`, `--engine`, `--save` and `--reach` (percent that are good)
    #[arg(long, value_enum, default_value_t = CodecKind::Zstd)]
    codec: CodecKind,
    /// Chunks to make
    #[arg(long, default_value_t = 20_000)]
    pub(crate) frames: u64,
    /// The seed of the first; each next one has the next
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// Chunks in a batch; 0: any number up to 200
    #[arg(long, default_value_t = 0)]
    pub(crate) batch: usize,
    /// What decodes
    #[arg(long, value_enum, default_value_t = EngineKind::Host)]
    pub(crate) engine: EngineKind,
    /// Batches at a time
    #[arg(long, default_value_t = 1)]
    jobs: usize,
    /// Folder for chunks on which the two differ, made small, and for the seed of the batch under way
    #[arg(long)]
    pub(crate) save: Option<PathBuf>,
    /// Fail unless so many different errors came up, each at least `--least` times
    #[arg(long, default_value_t = 0)]
    errors: usize,
    /// How often each error has to come up
    #[arg(long, default_value_t = 100)]
    least: u64,
    /// Fail unless so many percent of the chunks reach the execution of sequences
    #[arg(long, default_value_t = 0.0)]
    pub(crate) reach: f64,
    /// Decode this file alone instead; needs `--size`
    #[arg(long)]
    replay: Option<PathBuf>,
    /// Bytes that the file is to decode to
    #[arg(long, default_value_t = 0)]
    size: usize,
}

/// What is decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum CodecKind {
    Zstd,
    Blosc,
    /// `gzip` and `zlib`
    Deflate,
    /// `numcodecs.lz4`
    Lz4,
    /// Contents, which are encoded: libzstd decodes them, and other engines make the same bytes as the host
    ZstdEncode,
}

/// Who decodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum EngineKind {
    /// The kernels, built for the host.
    Host,
    /// The kernels on the first CUDA device.
    Cuda,
}

/// The host as a device whose memory is no zeros where nobody has written.
#[derive(Debug)]
struct Unwritten;

impl Device for Unwritten {
    fn id(&self) -> DeviceId {
        HostDevice.id()
    }
    fn name(&self) -> String {
        HostDevice.name()
    }
    fn is_unified(&self) -> bool {
        HostDevice.is_unified()
    }
    fn create_queue(&self) -> std::result::Result<Arc<dyn Queue>, BufferError> {
        HostDevice.create_queue()
    }
    fn allocate(&self, len: usize, _: &dyn Queue) -> std::result::Result<Buffer, BufferError> {
        Ok(Buffer::from_vec(vec![0xa5; len]))
    }
    fn allocate_staging(&self, len: usize) -> std::result::Result<Buffer, BufferError> {
        HostDevice.allocate_staging(len)
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// A provider, the device that it runs on, and the codec to decode.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) provider: Arc<dyn CodecProvider>,
    pub(crate) device: Arc<dyn Device>,
    codec: Extension,
}

impl Target {
    /// The provider of a kind. `seed` orders the threads of the host build.
    ///
    /// # Errors
    /// When there is no such device.
    pub(crate) fn new(kind: EngineKind, seed: u64) -> Result<Self> {
        let codec = Extension::new("zstd");
        Ok(match kind {
            EngineKind::Host => {
                let options = HostOptions::default().with_seed(seed).with_multiprocessors(1 + (seed % 5) as u32);
                Self { provider: Arc::new(host_provider(options)), device: Arc::new(Unwritten), codec }
            }
            EngineKind::Cuda => {
                let device = zarr_buffer_cuda::CudaDevice::new(0)?;
                Self { provider: Arc::new(zarr_codecs_cuda::cuda_provider(&device)?), device, codec }
            }
        })
    }

    /// The same with another order of threads, where that can be.
    pub(crate) fn renewed(self, kind: EngineKind, seed: u64) -> Result<Self> {
        if kind == EngineKind::Host { Self::new(kind, seed) } else { Ok(self) }
    }

    pub(crate) fn with_codec(mut self, codec: Extension) -> Self {
        self.codec = codec;
        self
    }

    /// The segment for chunks of at most `most` decoded bytes.
    fn segment(&self, most: usize) -> Result<Arc<dyn DeviceSegment>> {
        let len = ByteLen::AtMost(most as u64);
        let stage =
            Stage { codec: self.codec.clone(), decoded: Representation::Bytes(len), encoded: Representation::Bytes(len.compressed()) };
        match self.provider.bind(&[stage], Direction::Decode)?.ok_or("the provider does not take the codec")?.segment {
            Segment::Device(segment) => Ok(segment),
            Segment::Host(_) => Err("the segment runs on the host".into()),
        }
    }
}

/// What a decoder made of a chunk: its bytes, or its words.
pub(crate) type Verdict = std::result::Result<Vec<u8>, String>;

/// How buffers are laid out in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Placing {
    /// Each in an allocation of its own of just its size.
    Apart,
    /// Destinations one behind the other in one buffer, with bytes between them that must not change; sources at any alignment.
    Packed,
}

const CANARY: u8 = 0xC5;

/// Decodes chunks as one batch. `scarce`: with about as little temporary memory as will do, found in steps of so many bytes, so that the batch goes through in waves.
///
/// # Errors
/// When the batch fails as a whole, a byte beside a destination changes, or a failed slot is not zeroed.
pub(crate) fn decode(
    target: &Target,
    queue: &dyn Queue,
    chunks: &[(&[u8], usize)],
    placing: Placing,
    scarce: Option<u64>,
) -> Result<Vec<Verdict>> {
    let device = &*target.device;
    let segment = target.segment(chunks.iter().map(|chunk| chunk.1).max().unwrap_or(0))?;
    let mut slots = Vec::new();
    let mut areas = Vec::new();
    match placing {
        Placing::Apart => {
            for (bytes, size) in chunks {
                let decoded = upload(device, queue, &vec![CANARY; *size])?;
                areas.push((decoded.clone(), 0, *size));
                let decoded = Region::new(decoded, Layout::contiguous(&[*size], 1)?)?;
                slots.push(DeviceSlot { encoded: upload(device, queue, bytes)?, decoded });
            }
        }
        Placing::Packed => {
            let gap = |i: usize| 1 + i * 7 % 33;
            let sources: Vec<u8> = chunks.iter().enumerate().flat_map(|(i, chunk)| [&vec![0xFF; gap(i)], chunk.0].concat()).collect();
            let sources = upload(device, queue, &sources)?;
            let room: usize = chunks.iter().enumerate().map(|(i, chunk)| gap(i) + chunk.1).sum();
            let output = upload(device, queue, &vec![CANARY; room + 64])?;
            let (mut from, mut to) = (0, 0);
            for (i, (bytes, size)) in chunks.iter().enumerate() {
                (from, to) = (from + gap(i), to + gap(i));
                areas.push((output.clone(), to, *size));
                let decoded = Region::new(output.clone(), Layout { offset: to, ..Layout::contiguous(&[*size], 1)? })?;
                slots.push(DeviceSlot { encoded: sources.slice(from..from + bytes.len())?, decoded });
                (from, to) = (from + bytes.len(), to + size);
            }
        }
    }
    let full = segment.scratch_len(slots.len());
    let attempt = |scratch_budget: u64| segment.decode(&slots, &DeviceContext { device, queue, scratch_budget });
    let mut budget = scarce.unwrap_or(full).min(full);
    let ticket = loop {
        match attempt(budget) {
            Err(error) if error.kind() == CodecErrorKind::Limit && budget < full => {
                budget = budget.saturating_add(scarce.unwrap_or(full)).min(full);
            }
            outcome => break outcome?,
        }
    };
    drop(slots);
    let statuses = ticket.wait()?;
    if statuses.len() != chunks.len() {
        return Err(format!("{} statuses for {} slots", statuses.len(), chunks.len()).into());
    }
    let mut verdicts = Vec::new();
    let mut last: Option<(usize, Vec<u8>)> = None;
    for (i, (status, (buffer, at, size))) in statuses.into_iter().zip(&areas).enumerate() {
        let all = match (placing, &last) {
            (Placing::Packed, Some((_, all))) => all,
            _ => &last.insert((i, download(device, queue, buffer)?)).1,
        };
        let bytes = all.get(*at..at + size).ok_or("a destination outside of its buffer")?.to_vec();
        verdicts.push(match status {
            Ok(()) => Ok(bytes),
            Err(_) if bytes.iter().any(|byte| *byte != 0) => return Err(format!("slot {i} failed and is not zeroed").into()),
            Err(error) => Err(words(error.message())),
        });
    }
    if let (Placing::Packed, Some((_, all))) = (placing, last) {
        let mut at = 0;
        for (i, area) in areas.iter().map(|area| (area.1, area.2)).chain([(all.len(), 0)]).enumerate() {
            if all[at..area.0].iter().any(|byte| *byte != CANARY) {
                return Err(format!("a byte before slot {i} changed").into());
            }
            at = area.0 + area.1;
        }
    }
    Ok(verdicts)
}

/// An error's words without the place.
fn words(message: &str) -> String {
    message.split(" (block").next().unwrap_or(message).to_owned()
}

fn upload(device: &dyn Device, queue: &dyn Queue, bytes: &[u8]) -> Result<Buffer> {
    if device.id() == zarr_buffer_api::DeviceId::CPU {
        // Just this size, so that the address sanitizer sees the ends.
        return Ok(Buffer::from_vec(bytes.to_vec().into_boxed_slice().into_vec()));
    }
    let staging = device.allocate_staging(bytes.len())?;
    staging.host_write()?.copy_from_slice(bytes);
    if device.is_unified() {
        return Ok(staging);
    }
    let buffer = device.allocate(bytes.len(), queue)?;
    queue.copy(&staging, &buffer)?;
    Ok(buffer)
}

fn download(device: &dyn Device, queue: &dyn Queue, buffer: &Buffer) -> Result<Vec<u8>> {
    if device.is_unified() {
        return Ok(buffer.host_read()?.to_vec());
    }
    let back = device.allocate_staging(buffer.len())?;
    queue.copy(buffer, &back)?;
    back.wait()?;
    let bytes = back.host_read()?.to_vec();
    Ok(bytes)
}

/// What was seen.
#[derive(Debug, Default)]
struct Tally {
    chunks: u64,
    good: u64,
    reached: u64,
    lax: u64,
    bytes: u64,
    /// By the decoder's words.
    errors: BTreeMap<String, u64>,
    /// By the reference's names.
    statuses: BTreeMap<String, u64>,
    different: u64,
}

impl Tally {
    fn add(&mut self, other: Self) {
        self.chunks += other.chunks;
        self.good += other.good;
        self.reached += other.reached;
        self.lax += other.lax;
        self.bytes += other.bytes;
        self.different += other.different;
        for (error, count) in other.errors {
            *self.errors.entry(error).or_default() += count;
        }
        for (status, count) in other.statuses {
            *self.statuses.entry(status).or_default() += count;
        }
    }

    fn table(&self) -> String {
        let share = |count: u64| 100.0 * count as f64 / self.chunks.max(1) as f64;
        let mut out = String::new();
        let _ = writeln!(out, "{:>9}  chunks, {} bytes each on average", self.chunks, self.bytes / self.chunks.max(1));
        let _ = writeln!(out, "{:>9}  good ({:.1}%)", self.good, share(self.good));
        let _ = writeln!(out, "{:>9}  reach sequences ({:.1}%)", self.reached, share(self.reached));
        let _ = writeln!(out, "{:>9}  pass only by libzstd's laxness about ends of Huffman streams", self.lax);
        let _ = writeln!(out, "{:>9}  differ from libzstd\nerrors:", self.different);
        for (error, count) in &self.errors {
            let _ = writeln!(out, "{count:>9}  {error}");
        }
        let _ = writeln!(out, "as the reference names them:");
        for (status, count) in &self.statuses {
            let _ = writeln!(out, "{count:>9}  {status}");
        }
        out
    }
}

pub(crate) fn run(args: &FuzzArgs) -> ExitCode {
    let outcome = match args.codec {
        CodecKind::Zstd if args.replay.is_some() => replay(args),
        _ if args.replay.is_some() => Err("--replay is for zstd".into()),
        CodecKind::Blosc => crate::cpu_fuzz::run::<crate::blosc_fuzz::Blosc>(args),
        CodecKind::Deflate => crate::cpu_fuzz::run::<crate::deflate_fuzz::Deflate>(args),
        CodecKind::Lz4 => crate::cpu_fuzz::run::<crate::lz4_fuzz::Lz4>(args),
        CodecKind::ZstdEncode => crate::encode::fuzz(args),
        CodecKind::Zstd => fuzz(args),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("{error}");
        ExitCode::FAILURE
    })
}

fn replay(args: &FuzzArgs) -> Result<ExitCode> {
    let path = args.replay.as_ref().ok_or("no file")?;
    let bytes = std::fs::read(path)?;
    let target = Target::new(args.engine, args.seed)?;
    let queue = target.device.create_queue()?;
    let told = Oracle::default().decode(&bytes, args.size);
    println!("libzstd:   {}", short(&told));
    let reference = zstd_frames::decode(&bytes, args.size, Machine::here());
    println!("reference: {} {:?}", short(&reference.result.map_err(|status| format!("{status:?}"))), reference.seen);
    let found = decode(&target, &*queue, &[(&bytes, args.size)], Placing::Apart, None)?.pop().ok_or("no verdict")?;
    println!("{}: {}", target.provider.name(), short(&found));
    Ok(if found.ok() == told.ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn short(verdict: &Verdict) -> String {
    match verdict {
        Ok(bytes) => format!("good, {} bytes, checksum {:08x}", bytes.len(), zstd_frames::checksum(bytes)),
        Err(words) => words.clone(),
    }
}

fn fuzz(args: &FuzzArgs) -> Result<ExitCode> {
    if let Some(folder) = &args.save {
        std::fs::create_dir_all(folder)?;
    }
    println!(
        "libzstd {}, {}",
        zstd_frames::version(),
        if Machine::here().fast_huffman { "its fast Huffman decoder" } else { "without its fast Huffman decoder" }
    );
    let start = Instant::now();
    let next = AtomicU64::new(0);
    let mut tally = Tally::default();
    std::thread::scope(|scope| -> Result<()> {
        let jobs: Vec<_> = (0..args.jobs.max(1))
            .map(|job| {
                let next = &next;
                scope.spawn(move || work(args, job, next))
            })
            .collect();
        for job in jobs {
            tally.add(job.join().map_err(|_| "a job panicked")??);
        }
        Ok(())
    })?;
    print!("{}", tally.table());
    println!("{:.1} s, {:.0} chunks/s", start.elapsed().as_secs_f64(), tally.chunks as f64 / start.elapsed().as_secs_f64());
    let rare: Vec<&String> = tally.errors.iter().filter(|(_, count)| **count < args.least).map(|(error, _)| error).collect();
    let reached = 100.0 * tally.reached as f64 / tally.chunks.max(1) as f64;
    let mut failed = tally.different > 0;
    if args.errors > 0 && (tally.errors.len() < args.errors || !rare.is_empty()) {
        println!("{} different errors, {} wanted; fewer than {} times: {rare:?}", tally.errors.len(), args.errors, args.least);
        failed = true;
    }
    if reached < args.reach {
        println!("only {reached:.1}% reach sequences, {}% wanted", args.reach);
        failed = true;
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Takes batch after batch. Seeds decide everything, so that which job takes a batch does not matter.
fn work(args: &FuzzArgs, job: usize, next: &AtomicU64) -> Result<Tally> {
    let (mut generator, mut oracle, mut tally) = (Generator::default(), Oracle::default(), Tally::default());
    let most = if args.batch == 0 { 200 } else { args.batch } as u64;
    let mut target = Target::new(args.engine, args.seed)?;
    loop {
        let first = next.fetch_add(most, Ordering::Relaxed);
        if first >= args.frames {
            return Ok(tally);
        }
        let seed = args.seed + first;
        let count = most.min(args.frames - first);
        if let Some(folder) = &args.save {
            std::fs::write(folder.join(format!("job-{job}")), format!("--seed {seed} --frames {count} --batch {}\n", args.batch))?;
        }
        target = target.renewed(args.engine, seed)?;
        let queue = target.device.create_queue()?;
        let rng = Rng::new(!seed);
        let chunks: Vec<Chunk> = (seed..seed + count).map(|seed| generator.chunk(seed)).collect();
        let mut rest = &chunks[..];
        let mut at = seed;
        while !rest.is_empty() {
            let len = if args.batch == 0 { 1 + rng.small(rest.len() - 1) } else { rest.len() };
            let (batch, after) = rest.split_at(len);
            let placing = if rng.chance(50) { Placing::Apart } else { Placing::Packed };
            let scarce = rng.chance(30).then(|| 1 << rng.range(14, 19));
            let slots: Vec<(&[u8], usize)> = batch.iter().map(|chunk| (&chunk.bytes[..], chunk.size)).collect();
            let verdicts =
                decode(&target, &*queue, &slots, placing, scarce).map_err(|error| format!("batch from seed {at} on: {error}"))?;
            for (chunk, verdict) in batch.iter().zip(verdicts) {
                compare(args, &target, &*queue, &mut oracle, &mut tally, at, chunk, verdict)?;
                at += 1;
            }
            rest = after;
        }
    }
}

#[expect(clippy::too_many_arguments, reason = "the innards of one loop")]
fn compare(
    args: &FuzzArgs,
    target: &Target,
    queue: &dyn Queue,
    oracle: &mut Oracle,
    tally: &mut Tally,
    seed: u64,
    chunk: &Chunk,
    verdict: Verdict,
) -> Result<()> {
    let told = oracle.decode(&chunk.bytes, chunk.size);
    let reference = zstd_frames::decode(&chunk.bytes, chunk.size, Machine::here());
    tally.chunks += 1;
    tally.bytes += chunk.bytes.len() as u64;
    tally.reached += u64::from(reference.seen.sequences > 0);
    tally.lax += u64::from(reference.seen.lax_ends > 0 && reference.result.is_ok());
    match &reference.result {
        Ok(_) => tally.good += 1,
        Err(status) => *tally.statuses.entry(format!("{status:?}")).or_default() += 1,
    }
    if let Err(words) = &verdict {
        *tally.errors.entry(words.clone()).or_default() += 1;
    }
    if reference.result.as_ref().ok() != told.as_ref().ok() {
        println!("seed {seed}: the reference decoder itself differs from libzstd: {}", short(&told));
    }
    if verdict.as_ref().ok() == told.as_ref().ok() {
        return Ok(());
    }
    tally.different += 1;
    println!(
        "seed {seed}: libzstd: {}; {}: {}; {} {:?}",
        short(&told),
        target.provider.name(),
        short(&verdict),
        chunk.made_by,
        chunk.fault
    );
    if let (Some(folder), true) = (&args.save, tally.different <= 50) {
        save(folder, target, queue, oracle, seed, chunk)?;
    }
    Ok(())
}

/// Writes the chunk, and a smaller one on which the two still differ.
fn save(folder: &Path, target: &Target, queue: &dyn Queue, oracle: &mut Oracle, seed: u64, chunk: &Chunk) -> Result<()> {
    std::fs::write(folder.join(format!("{seed}-{}.zst", chunk.size)), &chunk.bytes)?;
    let mut differs = |bytes: &[u8]| -> Result<bool> {
        let found = decode(target, queue, &[(bytes, chunk.size)], Placing::Apart, None)?.pop().ok_or("no verdict")?;
        Ok(found.ok() != oracle.decode(bytes, chunk.size).ok())
    };
    let mut small = chunk.bytes.clone();
    if !differs(&small)? {
        println!("seed {seed}: alone, it does not differ");
        return Ok(());
    }
    let mut step = small.len() / 2;
    while step > 0 {
        let mut at = 0;
        while at < small.len() {
            let mut shorter = small.clone();
            shorter.drain(at..(at + step).min(small.len()));
            if differs(&shorter)? {
                small = shorter;
            } else {
                at += step;
            }
        }
        step /= 2;
    }
    std::fs::write(folder.join(format!("{seed}-{}-small.zst", chunk.size)), &small)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use zarr_conformance::toy::{OpaqueDevice, UnifiedDevice};

    /// The toy devices decode with libzstd: everything here must agree with it.
    fn agrees(target: &Target) -> Result<()> {
        let queue = target.device.create_queue()?;
        let (mut generator, mut oracle) = (Generator::default(), Oracle::default());
        let chunks: Vec<Chunk> = (0..600).map(|seed| generator.chunk(seed)).filter(|chunk| !chunk.bytes.is_empty()).collect();
        for (i, batch) in chunks.chunks(50).enumerate() {
            let slots: Vec<(&[u8], usize)> = batch.iter().map(|chunk| (&chunk.bytes[..], chunk.size)).collect();
            let placing = if i % 2 == 0 { Placing::Apart } else { Placing::Packed };
            let verdicts = decode(target, &*queue, &slots, placing, Some(1 << 16))?;
            assert_eq!(verdicts.len(), batch.len());
            for (chunk, verdict) in batch.iter().zip(verdicts) {
                assert_eq!(verdict.ok(), oracle.decode(&chunk.bytes, chunk.size).ok(), "{chunk:?}");
            }
        }
        Ok(())
    }

    #[test]
    fn an_opaque_device_is_driven_without_misuse() -> Result<()> {
        let device = OpaqueDevice::new(0);
        agrees(&Target { provider: Arc::new(device.provider()), device: device.clone(), codec: Extension::new("zstd") })?;
        device.assert_clean();
        Ok(())
    }

    #[test]
    fn a_unified_device_is_driven_without_misuse() -> Result<()> {
        let device = UnifiedDevice::new(0);
        agrees(&Target { provider: Arc::new(device.provider()), device: device.clone(), codec: Extension::new("zstd") })?;
        device.assert_clean();
        Ok(())
    }
}

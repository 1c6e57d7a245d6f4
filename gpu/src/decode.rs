//! `zarr-gpu decode`: how fast chunks are decoded on a device, stage by stage.

use std::any::Any;
use std::error::Error;
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use zarr_buffer_api::{Buffer, BufferError, Device, DeviceId, Layout, Queue, Region};
use zarr_buffer_cuda::{CudaDevice, CudaMark, CudaQueue};
use zarr_codec_api::{ByteLen, CodecProvider, DeviceContext, DeviceSegment, DeviceSlot, Direction, Representation, Segment, Stage};
use zarr_codecs_cuda::{CudaEngine, Engine, Kernel, KernelProvider, Launch};
use zarr_meta::Extension;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// Measure decoding on a device, beside the CPU's figure for the same chunks
#[derive(Debug, clap::Args)]
pub(crate) struct DecodeArgs {
    /// MiB of decoded data
    #[arg(long, default_value_t = 512)]
    mib: usize,
    /// Only rows whose name contains this
    #[arg(long)]
    filter: Vec<String>,
    /// What the chunks are of
    #[arg(long, value_enum, default_value_t = DecodeCodec::Zstd)]
    codec: DecodeCodec,
    /// Runs of each row
    #[arg(long, default_value_t = 7)]
    runs: usize,
    /// Print the time of each kernel
    #[arg(long)]
    stages: bool,
    /// Write the chunks as packs for other programs to this folder, too: u64 count; for each chunk u64 offset, encoded and decoded bytes; the chunks,
    /// each padded to 256 bytes; the first and the last chunk decoded
    #[arg(long)]
    packs: Option<PathBuf>,
    /// Print one line of JSON for each row
    #[arg(long)]
    json: bool,
}

/// Who compresses the chunks: libzstd at level 3, zlib-rs at level 5 with the header and end of gzip, or liblz4.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum DecodeCodec {
    Zstd,
    Gzip,
    Lz4,
}

impl DecodeCodec {
    fn name(self) -> &'static str {
        match self {
            Self::Zstd => "zstd",
            Self::Gzip => "gzip",
            Self::Lz4 => "lz4",
        }
    }

    /// The codec that decodes the chunks.
    fn codec(self) -> Extension {
        Extension::new(match self {
            Self::Zstd => "zstd",
            Self::Gzip => "numcodecs.gzip",
            Self::Lz4 => "numcodecs.lz4",
        })
    }

    /// A chunk, as other programs want it: a block of LZ4 without its size.
    fn bare(self, chunk: &[u8]) -> &[u8] {
        if self == Self::Lz4 { chunk.get(4..).unwrap_or_default() } else { chunk }
    }

    fn compress(self, bytes: &[u8]) -> Result<Vec<u8>> {
        match self {
            Self::Zstd => Ok(zstd::bulk::compress(bytes, 3)?),
            Self::Lz4 => crate::lz4_fuzz::Lz4::default().compressed(bytes, 1),
            Self::Gzip => {
                let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(5));
                encoder.write_all(bytes)?;
                Ok(encoder.finish()?)
            }
        }
    }
}

/// What is compressed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Kind {
    Shuffled,
    Plain,
    Int16,
}

pub(crate) const ROWS: [(&str, Kind, usize); 14] = [
    ("f32shuf_64k", Kind::Shuffled, 64),
    ("f32shuf_256k", Kind::Shuffled, 256),
    ("f32shuf_1024k", Kind::Shuffled, 1024),
    ("f32shuf_4096k", Kind::Shuffled, 4096),
    ("f32shuf_16384k", Kind::Shuffled, 16384),
    ("f32shuf_65536k", Kind::Shuffled, 65536),
    ("f32_64k", Kind::Plain, 64),
    // A little less than a block of zstd, and a little more, as inner chunks of shards are.
    ("f32_96k", Kind::Plain, 96),
    ("f32_144k", Kind::Plain, 144),
    ("f32_1024k", Kind::Plain, 1024),
    ("f32_4096k", Kind::Plain, 4096),
    ("i16_64k", Kind::Int16, 64),
    ("i16_1024k", Kind::Int16, 1024),
    ("i16_4096k", Kind::Int16, 4096),
];

pub(crate) fn run(args: &DecodeArgs) -> ExitCode {
    match rows(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Smooth fields with noise, rounded to a hundredth, of 721 x 1440 each: as reanalyses look.
pub(crate) fn fields(bytes: usize) -> Vec<f32> {
    const H: usize = 721;
    const W: usize = 1440;
    let count = bytes / 4;
    let mut values = vec![0f32; count];
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let next = Mutex::new(values.chunks_mut(H * W).enumerate());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some((index, field)) = next.lock().ok().and_then(|mut next| next.next()) {
                    one_field(index, W, H, field);
                }
            });
        }
    });
    values
}

fn one_field(index: usize, width: usize, height: usize, field: &mut [f32]) {
    let mut random = 0x9e37_79b9_7f4a_7c15u64.wrapping_mul(1000 + index as u64) | 1;
    let mut uniform = || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random >> 11) as f64 / (1u64 << 53) as f64
    };
    let mut normal = || {
        let (a, b) = (uniform().max(1e-300), uniform());
        (-2.0 * a.ln()).sqrt() * (std::f64::consts::TAU * b).cos()
    };
    let waves: Vec<(f64, f64, f64)> =
        (0..12).map(|k| (normal() * 5.0 / (k + 1) as f64, normal() * 3.0 + index as f64 * 0.05, normal() * 3.0)).collect();
    let along: Vec<Vec<f64>> = waves
        .iter()
        .enumerate()
        .map(|(k, wave)| (0..width).map(|x| ((k + 1) as f64 * x as f64 / width as f64 * std::f64::consts::TAU + wave.1).sin()).collect())
        .collect();
    for (y, row) in field.chunks_mut(width).enumerate() {
        let latitude = y as f64 / (height - 1) as f64 * 2.0 - 1.0;
        let across: Vec<f64> =
            waves.iter().enumerate().map(|(k, wave)| wave.0 * ((k + 1) as f64 * latitude * 1.7 + wave.2).cos()).collect();
        for (x, value) in row.iter_mut().enumerate() {
            let sum: f64 = across.iter().zip(&along).map(|(across, along)| across * along[x]).sum();
            let value64 = 250.0 + 40.0 * (latitude * 1.5).cos() + sum + normal() * 0.05;
            *value = ((value64 / 0.01).round() * 0.01) as f32;
        }
    }
}

pub(crate) fn data(kind: Kind, chunk: usize, floats: &[f32]) -> Vec<u8> {
    let plain: Vec<u8> = floats.iter().flat_map(|value| value.to_le_bytes()).collect();
    match kind {
        Kind::Plain => plain,
        Kind::Shuffled => {
            let mut out = vec![0; plain.len()];
            for (from, to) in plain.chunks(chunk).zip(out.chunks_mut(chunk)) {
                let count = from.len() / 4;
                for byte in 0..4 {
                    for i in 0..count {
                        to[byte * count + i] = from[i * 4 + byte];
                    }
                }
            }
            out
        }
        Kind::Int16 => {
            let mut out: Vec<u8> =
                floats.iter().flat_map(|value| (((value - 250.0) / 0.01).clamp(-32768.0, 32767.0) as i16).to_le_bytes()).collect();
            out.extend_from_within(..);
            out.truncate(plain.len());
            out
        }
    }
}

/// The chunks of a row, compressed.
fn compress(codec: DecodeCodec, data: &[u8], chunk: usize) -> Result<Vec<Vec<u8>>> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let chunks: Vec<&[u8]> = data.chunks(chunk).collect();
    let results: Vec<Mutex<Option<Vec<u8>>>> = chunks.iter().map(|_| Mutex::new(None)).collect();
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(bytes) = chunks.get(index) else { break };
                    let frame = codec.compress(bytes).ok();
                    if let Ok(mut result) = results[index].lock() {
                        *result = frame;
                    }
                }
            });
        }
    });
    results.into_iter().map(|result| result.into_inner().ok().flatten().ok_or_else(|| "compression failed".into())).collect()
}

fn rows(args: &DecodeArgs) -> Result<()> {
    let device = CudaDevice::new(0)?;
    let floats = fields(args.mib << 20);
    println!(
        "{:<16} {:>5} {:>6} {:>9} {:>9} {:>9} {:>9} {:>8}",
        args.codec.name(),
        "n",
        "ratio",
        "GPU ms",
        "GB/s",
        "call ms",
        "temp MiB",
        "alone ms"
    );
    for (name, kind, kib) in ROWS {
        if !args.filter.is_empty() && !args.filter.iter().any(|filter| name.contains(filter)) {
            continue;
        }
        let mut bytes = data(kind, kib << 10, &floats);
        bytes.truncate(bytes.len() / (kib << 10) * (kib << 10));
        let frames = compress(args.codec, &bytes, kib << 10)?;
        if let Some(folder) = &args.packs {
            let bare: Vec<&[u8]> = frames.iter().map(|frame| args.codec.bare(frame)).collect();
            write_pack(&folder.join(format!("{}_{name}.pk", args.codec.name())), &bare, &bytes, kib << 10)?;
        }
        row(args, &device, name, &frames, &bytes, kib << 10)?;
    }
    Ok(())
}

fn write_pack(path: &std::path::Path, frames: &[&[u8]], bytes: &[u8], chunk: usize) -> Result<()> {
    let mut file = std::io::BufWriter::new(File::create(path)?);
    file.write_all(&(frames.len() as u64).to_le_bytes())?;
    let mut at = 0u64;
    for frame in frames {
        for number in [at, frame.len() as u64, chunk as u64] {
            file.write_all(&number.to_le_bytes())?;
        }
        at += (frame.len() as u64).next_multiple_of(256);
    }
    for frame in frames {
        file.write_all(frame)?;
        file.write_all(&vec![0; frame.len().next_multiple_of(256) - frame.len()])?;
    }
    file.write_all(&bytes[..chunk])?;
    file.write_all(&bytes[bytes.len() - chunk..])?;
    Ok(file.flush()?)
}

/// Counts what is allocated on the device.
#[derive(Debug)]
pub(crate) struct CountingDevice {
    pub(crate) inner: Arc<CudaDevice>,
    pub(crate) allocated: AtomicUsize,
}

impl Device for CountingDevice {
    fn id(&self) -> DeviceId {
        self.inner.id()
    }
    fn name(&self) -> String {
        self.inner.name()
    }
    fn is_unified(&self) -> bool {
        self.inner.is_unified()
    }
    fn create_queue(&self) -> std::result::Result<Arc<dyn Queue>, BufferError> {
        self.inner.create_queue()
    }
    fn allocate(&self, len: usize, queue: &dyn Queue) -> std::result::Result<Buffer, BufferError> {
        self.allocated.fetch_add(len, Ordering::Relaxed);
        self.inner.allocate(len, queue)
    }
    fn allocate_staging(&self, len: usize) -> std::result::Result<Buffer, BufferError> {
        self.inner.allocate_staging(len)
    }
    fn as_any(&self) -> &dyn Any {
        self.inner.as_any()
    }
}

/// Times every launch between two marks.
#[derive(Debug)]
pub(crate) struct TimedEngine {
    pub(crate) inner: CudaEngine,
    pub(crate) marks: Arc<Mutex<Vec<(Kernel, CudaMark, CudaMark)>>>,
}

// SAFETY: launches are those of the inner engine.
#[expect(unsafe_code, reason = "an engine's promises, passed on")]
unsafe impl Engine for TimedEngine {
    fn name(&self) -> &'static str {
        self.inner.name()
    }
    fn device(&self) -> DeviceId {
        self.inner.device()
    }
    fn multiprocessors(&self) -> u32 {
        self.inner.multiprocessors()
    }
    fn has_registers(&self) -> bool {
        self.inner.has_registers()
    }
    fn shared_memory(&self) -> u32 {
        self.inner.shared_memory()
    }
    fn side_queue(&self, queue: &dyn Queue) -> Option<&dyn Queue> {
        self.inner.side_queue(queue)
    }
    unsafe fn launch(&self, queue: &dyn Queue, kernel: Kernel, launch: Launch, params: &[u8]) -> std::result::Result<(), BufferError> {
        let stream = queue.as_any().downcast_ref::<CudaQueue>();
        let before = stream.map(CudaQueue::mark).transpose()?;
        // SAFETY: the caller's promise.
        unsafe { self.inner.launch(queue, kernel, launch, params) }?;
        let after = stream.map(CudaQueue::mark).transpose()?;
        if let (Some(before), Some(after), Ok(mut marks)) = (before, after, self.marks.lock()) {
            marks.push((kernel, before, after));
        }
        Ok(())
    }
}

fn segment(provider: &KernelProvider, codec: DecodeCodec, len: usize) -> Result<Arc<dyn DeviceSegment>> {
    let stage = Stage {
        codec: codec.codec(),
        decoded: Representation::Bytes(ByteLen::Exact(len as u64)),
        encoded: Representation::Bytes(ByteLen::Exact(len as u64).compressed()),
    };
    match provider.bind(&[stage], Direction::Decode)?.ok_or("the codec is not taken")?.segment {
        Segment::Device(segment) => Ok(segment),
        Segment::Host(_) => Err("a segment on the host".into()),
    }
}

pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn row(args: &DecodeArgs, device: &Arc<CudaDevice>, name: &str, frames: &[Vec<u8>], bytes: &[u8], chunk: usize) -> Result<()> {
    let marks = Arc::new(Mutex::new(Vec::new()));
    let plain = KernelProvider::new(CudaEngine::new(device)?);
    let timed = KernelProvider::new(TimedEngine { inner: CudaEngine::new(device)?, marks: Arc::clone(&marks) });
    let (plain, timed) = (segment(&plain, args.codec, chunk)?, segment(&timed, args.codec, chunk)?);
    let queue = device.queue()?;
    // Chunks as they lie in a store's answer: one after the other, at any alignment.
    let encoded: Vec<u8> = frames.concat();
    let staged = device.allocate_staging(encoded.len())?;
    staged.host_write()?.copy_from_slice(&encoded);
    let on_device = device.allocate(encoded.len(), &*queue)?;
    queue.copy(&staged, &on_device)?;
    let output = device.allocate(bytes.len(), &*queue)?;
    let mut slots = Vec::new();
    let mut at = 0;
    for (index, frame) in frames.iter().enumerate() {
        let decoded = Region::new(output.slice(index * chunk..(index + 1) * chunk)?, Layout::contiguous(&[chunk], 1)?)?;
        slots.push(DeviceSlot { encoded: on_device.slice(at..at + frame.len())?, decoded });
        at += frame.len();
    }
    let counting = CountingDevice { inner: Arc::clone(device), allocated: AtomicUsize::new(0) };
    let context = DeviceContext { device: &counting, queue: &*queue, scratch_budget: 8 << 30 };
    let check = |slots: &[DeviceSlot], segment: &Arc<dyn DeviceSegment>| -> Result<f64> {
        queue.synchronize()?;
        let start = Instant::now();
        let statuses = segment.decode(slots, &context)?.wait()?;
        let elapsed = start.elapsed().as_secs_f64() * 1e3;
        for (index, status) in statuses.into_iter().enumerate() {
            status.map_err(|error| format!("{name}: chunk {index}: {error}"))?;
        }
        Ok(elapsed)
    };
    queue.fill_bytes(&output, 0xab)?;
    check(&slots, &plain)?;
    let temporary = counting.allocated.load(Ordering::Relaxed) as f64 / f64::from(1 << 20);
    let back = device.allocate_staging(bytes.len())?;
    queue.copy(&output, &back)?;
    back.wait()?;
    if let Some(byte) = back.host_read()?.iter().zip(bytes).position(|(a, b)| a != b) {
        return Err(format!("{name}: byte {byte} differs (chunk {}, byte {} of it)", byte / chunk, byte % chunk).into());
    }
    let mut calls = Vec::new();
    let mut spans = Vec::new();
    let mut stages: Vec<(Kernel, Vec<f64>)> = Vec::new();
    for _ in 0..args.runs {
        calls.push(check(&slots, &plain)?);
        check(&slots, &timed)?;
        let marks = std::mem::take(&mut *marks.lock().map_err(|_| "a thread failed")?);
        if let (Some((_, first, _)), Some((_, _, last))) = (marks.first(), marks.last()) {
            spans.push(first.milliseconds_to(last)?);
        }
        let mut sums: Vec<(Kernel, f64)> = Vec::new();
        for (kernel, before, after) in &marks {
            let ms = before.milliseconds_to(after)?;
            match sums.iter_mut().find(|(known, _)| known == kernel) {
                Some((_, sum)) => *sum += ms,
                None => sums.push((*kernel, ms)),
            }
        }
        for (kernel, ms) in sums {
            match stages.iter_mut().find(|(known, _)| *known == kernel) {
                Some((_, all)) => all.push(ms),
                None => stages.push((kernel, vec![ms])),
            }
        }
    }
    let mut alone = Vec::new();
    for _ in 0..args.runs {
        alone.push(check(&slots[..1], &plain)?);
    }
    let (gpu, call, alone) = (median(spans), median(calls), median(alone));
    let ratio = bytes.len() as f64 / encoded.len() as f64;
    let rate = bytes.len() as f64 / gpu / 1e6;
    if args.json {
        println!(
            "{{\"row\":\"{name}\",\"chunks\":{},\"ratio\":{ratio:.3},\"gpu_ms\":{gpu:.3},\"decoded_gb_s\":{rate:.2},\"call_ms\":{call:.3},\"temporary_mib\":{temporary:.0},\"alone_ms\":{alone:.3}}}",
            slots.len()
        );
    } else {
        println!("{name:<16} {:>5} {ratio:>6.2} {gpu:>9.3} {rate:>9.1} {call:>9.3} {temporary:>9.0} {alone:>8.3}", slots.len());
    }
    if args.stages {
        let words: Vec<String> =
            stages.into_iter().map(|(kernel, ms)| format!("{} {:.3}", kernel.name().trim_start_matches("zstd_"), median(ms))).collect();
        println!("    {}", words.join("  "));
    }
    Ok(())
}

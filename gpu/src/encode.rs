//! `zarr-gpu encode`: how fast chunks are encoded on a device, stage by stage; and `zarr-gpu fuzz --codec zstd-encode`: random contents, encoded, and decoded by libzstd.

use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use zarr_array::{DeviceTarget, Options, Selection};
use zarr_buffer_api::{Buffer, Device, Layout, Queue, Region};
use zarr_buffer_cuda::CudaDevice;
use zarr_codec_api::{
    ByteLen, CodecProvider, DeviceContext, DeviceSegment, Direction, Encoded, Policy, Registry, Representation, Segment, Stage,
};
use zarr_codecs_cuda::{CudaEngine, KernelProvider, cuda_provider};
use zarr_meta::Extension;
use zarr_store::FilesystemStore;
use zarr_store_api::AnyStore;
use zstd_frames::generate::data::{KINDS, content};
use zstd_frames::{Oracle, Rng};

use crate::bench::stores;
use crate::decode::{CountingDevice, ROWS, TimedEngine, data, fields, median};
use crate::fuzz::{EngineKind, FuzzArgs, Result, Target};

/// Measure encoding to zstd on a device, beside libzstd's on all cores for the same chunks
#[derive(Debug, clap::Args)]
pub(crate) struct EncodeArgs {
    /// MiB of data
    #[arg(long, default_value_t = 512)]
    mib: usize,
    /// Only rows whose name contains this
    #[arg(long)]
    filter: Vec<String>,
    /// Runs of each row
    #[arg(long, default_value_t = 7)]
    runs: usize,
    /// Print the time of each kernel
    #[arg(long)]
    stages: bool,
    /// Write what is encoded to this folder, too, for other programs: a file for each row
    #[arg(long)]
    raw: Option<std::path::PathBuf>,
    /// Measure instead how fast 1 GiB of float32 is written from the device to stores in this folder, encoded there and on the host in turn
    #[arg(long)]
    stores: Option<std::path::PathBuf>,
    /// Print one line of JSON for each row
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &EncodeArgs) -> ExitCode {
    let outcome = match &args.stores {
        Some(folder) => writes(args, folder),
        None => rows(args),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn segment(provider: &dyn CodecProvider, len: usize, checksum: bool) -> Result<Arc<dyn DeviceSegment>> {
    let json = format!(r#"{{"name":"zstd","configuration":{{"level":3,"checksum":{checksum}}}}}"#);
    let stage = Stage {
        codec: Extension::parse(&zarr_meta::Json::parse(json.as_bytes())?)?,
        decoded: Representation::Bytes(ByteLen::AtMost(len as u64)),
        encoded: Representation::Bytes(ByteLen::AtMost(len as u64).compressed()),
    };
    match provider.bind(&[stage], Direction::Encode)?.ok_or("the codec is not encoded")?.segment {
        Segment::Device(segment) => Ok(segment),
        Segment::Host(_) => Err("a segment on the host".into()),
    }
}

/// What `each` gives for every chunk, on all cores, in order.
fn on_all_cores<T: Send>(chunks: usize, each: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let results: Vec<Mutex<Option<T>>> = (0..chunks).map(|_| Mutex::new(None)).collect();
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(result) = results.get(index) else { break };
                    let value = each(index);
                    if let Ok(mut result) = result.lock() {
                        *result = Some(value);
                    }
                }
            });
        }
    });
    results.into_iter().filter_map(|result| result.into_inner().ok().flatten()).collect()
}

fn rows(args: &EncodeArgs) -> Result<()> {
    let device = CudaDevice::new(0)?;
    let floats = fields(args.mib << 20);
    println!(
        "{:<16} {:>5} {:>6} {:>7} {:>7} {:>9} {:>8} {:>8} {:>9} {:>8}",
        "zstd", "n", "ratio", "level 1", "level 3", "GPU ms", "GB/s", "call ms", "temp MiB", "CPU GB/s"
    );
    for (name, kind, kib) in ROWS {
        if !args.filter.is_empty() && !args.filter.iter().any(|filter| name.contains(filter)) {
            continue;
        }
        let mut bytes = data(kind, kib << 10, &floats);
        bytes.truncate(bytes.len() / (kib << 10) * (kib << 10));
        if let Some(folder) = &args.raw {
            std::fs::create_dir_all(folder)?;
            std::fs::write(folder.join(name), &bytes)?;
        }
        row(args, &device, name, &bytes, kib << 10)?;
    }
    Ok(())
}

fn row(args: &EncodeArgs, device: &Arc<CudaDevice>, name: &str, bytes: &[u8], chunk: usize) -> Result<()> {
    let marks = Arc::new(Mutex::new(Vec::new()));
    let plain = KernelProvider::new(CudaEngine::new(device)?);
    let timed = KernelProvider::new(TimedEngine { inner: CudaEngine::new(device)?, marks: Arc::clone(&marks) });
    let (plain, timed) = (segment(&plain, chunk, false)?, segment(&timed, chunk, false)?);
    let queue = device.queue()?;
    let staged = device.allocate_staging(bytes.len())?;
    staged.host_write()?.copy_from_slice(bytes);
    let source = device.allocate(bytes.len(), &*queue)?;
    queue.copy(&staged, &source)?;
    let count = bytes.len() / chunk;
    let regions = (0..count)
        .map(|index| Ok(Region::new(source.slice(index * chunk..(index + 1) * chunk)?, Layout::contiguous(&[chunk], 1)?)?))
        .collect::<Result<Vec<_>>>()?;
    let counting = CountingDevice { inner: Arc::clone(device), allocated: AtomicUsize::new(0) };
    let context = DeviceContext { device: &counting, queue: &*queue, scratch_budget: 16 << 30 };
    let encode = |segment: &Arc<dyn DeviceSegment>| -> Result<(f64, Buffer, Vec<std::ops::Range<usize>>)> {
        queue.synchronize()?;
        let start = Instant::now();
        let Encoded { bytes, ticket } = segment.encode(&regions, &context)?;
        let statuses = ticket.wait()?;
        let elapsed = start.elapsed().as_secs_f64() * 1e3;
        Ok((elapsed, bytes, statuses.into_iter().collect::<std::result::Result<_, _>>()?))
    };
    let (_, encoded, ranges) = encode(&plain)?;
    let temporary = counting.allocated.load(Ordering::Relaxed) as f64 / f64::from(1 << 20);
    let len = ranges.last().map_or(0, |range| range.end);
    let back = device.allocate_staging(len)?;
    queue.copy(&encoded.slice(0..len)?, &back)?;
    back.wait()?;
    let frames = back.host_read()?;
    let wrong = on_all_cores(count, |index| {
        let decoded = zstd::bulk::decompress(&frames[ranges[index].clone()], chunk);
        decoded.is_ok_and(|decoded| decoded == bytes[index * chunk..(index + 1) * chunk])
    });
    if let Some(index) = wrong.iter().position(|good| !good) {
        return Err(format!("{name}: chunk {index} does not decode to what it was").into());
    }
    let start = Instant::now();
    let by_level = |level| -> usize {
        let lens = on_all_cores(count, |index| {
            zstd::bulk::compress(&bytes[index * chunk..(index + 1) * chunk], level).map_or(0, |frame| frame.len())
        });
        lens.into_iter().sum()
    };
    let third = by_level(3);
    let cpu = bytes.len() as f64 / start.elapsed().as_secs_f64() / 1e9;
    let first = by_level(1);
    let (mut calls, mut spans) = (Vec::new(), Vec::new());
    let mut stages: Vec<(&str, Vec<f64>)> = Vec::new();
    for _ in 0..args.runs {
        calls.push(encode(&plain)?.0);
        encode(&timed)?;
        let marks = std::mem::take(&mut *marks.lock().map_err(|_| "a thread failed")?);
        if let (Some((_, first, _)), Some((_, _, last))) = (marks.first(), marks.last()) {
            spans.push(first.milliseconds_to(last)?);
        }
        for (kernel, before, after) in &marks {
            let ms = before.milliseconds_to(after)?;
            match stages.iter_mut().find(|(known, _)| *known == kernel.name()) {
                Some((_, all)) => all.push(ms),
                None => stages.push((kernel.name(), vec![ms])),
            }
        }
    }
    let ratio = |encoded: usize| bytes.len() as f64 / encoded.max(1) as f64;
    let (gpu, call) = (median(spans), median(calls));
    let rate = bytes.len() as f64 / gpu / 1e6;
    let (ours, level_1, level_3) = (ratio(len), ratio(first), ratio(third));
    if args.json {
        println!(
            "{{\"row\":\"{name}\",\"chunks\":{count},\"ratio\":{ours:.3},\"ratio_level_1\":{level_1:.3},\"ratio_level_3\":{level_3:.3},\"gpu_ms\":{gpu:.3},\"gb_s\":{rate:.2},\"call_ms\":{call:.3},\"temporary_mib\":{temporary:.0},\"cpu_level_3_gb_s\":{cpu:.2}}}"
        );
    } else {
        println!(
            "{name:<16} {count:>5} {ours:>6.3} {level_1:>7.3} {level_3:>7.3} {gpu:>9.3} {rate:>8.1} {call:>8.3} {temporary:>9.0} {cpu:>8.2}"
        );
    }
    if args.stages {
        let words: Vec<String> =
            stages.into_iter().map(|(kernel, ms)| format!("{} {:.3}", kernel.trim_start_matches("zstd_"), median(ms))).collect();
        println!("    {}", words.join("  "));
    }
    Ok(())
}

/// Writes from the device.
fn writes(args: &EncodeArgs, folder: &Path) -> Result<()> {
    const COUNT: u64 = 64;
    let device = CudaDevice::new(0)?;
    let on_host = Options::new(Registry::new().with(zarr_codecs_cpu::provider()));
    let mut on_device = on_host.clone().with_policy(Policy::Prefer(device.id()));
    on_device.registry = on_device.registry.with(cuda_provider(&device)?);
    let target = DeviceTarget::new(Arc::clone(&device) as Arc<dyn Device>)?;
    let values = stores::fields(0, COUNT);
    let bytes: &[u8] = bytemuck::cast_slice(&values);
    let staged = device.allocate_staging(bytes.len())?;
    staged.host_write()?.copy_from_slice(bytes);
    let source = device.allocate(bytes.len(), &*target.queue)?;
    target.queue.copy(&staged, &source)?;
    source.wait()?;
    println!("{:<12} {:>14} {:>14} {:>6} {:>12} {:>12}", "write", "device GB/s", "host GB/s", "ratio", "device MB", "host MB");
    for layout in &stores::LAYOUTS {
        if !layout.name.starts_with("zstd") || !(args.filter.is_empty() || args.filter.iter().any(|filter| layout.name.contains(filter))) {
            continue;
        }
        let place = folder.join(layout.name);
        let (mut seconds, mut stored, mut ratios) = ([Vec::new(), Vec::new()], [0, 0], Vec::new());
        for run in 0..=args.runs {
            for (side, options) in [&on_device, &on_host].into_iter().enumerate() {
                if place.exists() {
                    std::fs::remove_dir_all(&place)?;
                }
                let store = AnyStore::blocking(FilesystemStore::new(&place)?);
                let array = stores::builder(layout, COUNT)?.create(store, "/", options)?;
                let start = Instant::now();
                array.write_from_device(&Selection::all(), &source, &target)?;
                let took = start.elapsed().as_secs_f64();
                // The first run of each warms up, and is looked at.
                if run > 0 {
                    seconds[side].push(took);
                    continue;
                }
                if array.with_options(&on_host)?.read_elements::<f32>(&Selection::all())? != values {
                    return Err(format!("{}: other elements were written", layout.name).into());
                }
                stored[side] = stored_len(&place)?;
            }
            if let ([.., there], [.., here]) = (&seconds[0][..], &seconds[1][..]) {
                ratios.push(here / there);
            }
        }
        std::fs::remove_dir_all(&place)?;
        let rate = |seconds: &[f64]| bytes.len() as f64 / median(seconds.to_vec()) / 1e9;
        let (there, here, ratio) = (rate(&seconds[0]), rate(&seconds[1]), median(ratios));
        if args.json {
            println!(
                "{{\"write\":\"{}\",\"device_gb_s\":{there:.2},\"host_gb_s\":{here:.2},\"ratio\":{ratio:.2},\"device_bytes\":{},\"host_bytes\":{}}}",
                layout.name, stored[0], stored[1]
            );
        } else {
            let mb = |bytes: u64| bytes as f64 / 1e6;
            println!("{:<12} {there:>14.2} {here:>14.2} {ratio:>6.2} {:>12.1} {:>12.1}", layout.name, mb(stored[0]), mb(stored[1]));
        }
    }
    Ok(())
}

/// Bytes of the files below a folder.
fn stored_len(folder: &Path) -> Result<u64> {
    let mut sum = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let about = entry.metadata()?;
        sum += if about.is_dir() { stored_len(&entry.path())? } else { about.len() };
    }
    Ok(sum)
}

/// Lengths that matter: around the sizes of headers, blocks and windows.
fn some_len(rng: &Rng) -> usize {
    let edges = [0, 1, 4, 63, 64, 255, 256, 65_535, 65_536, 65_791, 65_792, 131_072, 196_608];
    match rng.below(10) {
        0..3 => (rng.pick(&edges) + rng.below(9)).saturating_sub(4),
        3..7 => rng.small(5000),
        7..9 => rng.small(70_000),
        _ => rng.small(400_000),
    }
}

/// Contents of different kinds one behind the other, or of one.
fn some_content(rng: &Rng) -> Vec<u8> {
    let mut left = some_len(rng);
    let mut bytes = Vec::with_capacity(left);
    while left > 0 {
        let len = if rng.chance(60) { left } else { 1 + rng.below(left) };
        bytes.extend(content(rng.pick(&KINDS), len, rng));
        left -= len;
    }
    bytes
}

pub(crate) fn fuzz(args: &FuzzArgs) -> Result<ExitCode> {
    let mut target = Target::new(args.engine, args.seed)?;
    // What the host makes of the same, where something else encodes.
    let mut host = match args.engine {
        EngineKind::Host => None,
        EngineKind::Cuda => Some(Target::new(EngineKind::Host, args.seed)?),
    };
    let mut oracle = Oracle::default();
    let (mut done, mut content_bytes, mut encoded_bytes) = (0, 0, 0);
    while done < args.frames {
        let rng = Rng::new(args.seed + done);
        let count = if args.batch == 0 { 1 + rng.below(40) } else { args.batch };
        let chunks: Vec<Vec<u8>> = (0..count).map(|_| some_content(&rng)).collect();
        let checksum = rng.chance(50);
        target = target.renewed(args.engine, args.seed + done)?;
        let frames = encode(&target, &chunks, checksum, &rng)?;
        let at = |index: usize| format!("seed {}, chunk {index} of {count}, {} bytes", args.seed + done, chunks[index].len());
        for (index, (frame, chunk)) in frames.iter().zip(&chunks).enumerate() {
            match oracle.decode(frame, chunk.len()) {
                Ok(decoded) if decoded == *chunk => {}
                Ok(_) => return Err(format!("{}: decodes to other bytes", at(index)).into()),
                Err(words) => return Err(format!("{}: {words}", at(index)).into()),
            }
            content_bytes += chunk.len();
            encoded_bytes += frame.len();
        }
        if let Some(by_host) = host.take() {
            let by_host = by_host.renewed(EngineKind::Host, args.seed + done)?;
            // The host is slow: some chunks of each batch will do.
            let few = chunks.len().min(2);
            let expected = encode(&by_host, &chunks[..few], checksum, &rng)?;
            if let Some(index) = (0..few).find(|&index| expected[index] != frames[index]) {
                return Err(format!("{}: the host encodes it to other bytes", at(index)).into());
            }
            host = Some(by_host);
        }
        done += count as u64;
    }
    println!("{done} chunks, {content_bytes} bytes in {encoded_bytes}: all come back");
    Ok(ExitCode::SUCCESS)
}

/// Encodes chunks in one batch, each in an allocation of its own, at any alignment.
fn encode(target: &Target, chunks: &[Vec<u8>], checksum: bool, rng: &Rng) -> Result<Vec<Vec<u8>>> {
    let queue = target.device.create_queue()?;
    let most = chunks.iter().map(Vec::len).max().unwrap_or(0);
    let mut regions = Vec::with_capacity(chunks.len());
    for chunk in chunks {
        let skew = rng.below(17);
        let bytes = Buffer::from_vec([vec![0xa5; skew], chunk.clone()].concat());
        let on_device = target.device.allocate(bytes.len(), &*queue)?;
        queue.copy(&bytes, &on_device)?;
        regions.push(Region::new(on_device, Layout { offset: skew, ..Layout::contiguous(&[chunk.len()], 1)? })?);
    }
    let context = DeviceContext { device: &*target.device, queue: &*queue, scratch_budget: u64::MAX };
    let Encoded { bytes, ticket } = segment(&*target.provider, most, checksum)?.encode(&regions, &context)?;
    let ranges = ticket.wait()?.into_iter().collect::<std::result::Result<Vec<_>, _>>()?;
    let used = bytes.slice(0..ranges.last().map_or(0, |range| range.end))?;
    let on_host = target.device.allocate_staging(used.len())?;
    queue.copy(&used, &on_host)?;
    on_host.wait()?;
    let bytes = on_host.host_read()?;
    Ok(ranges.into_iter().map(|range| bytes[range].to_vec()).collect())
}

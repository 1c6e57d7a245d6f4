//! `zarr-gpu bench`: from a local store to a checked tensor on the device, beside what the link and the page cache give.

mod link;
pub(crate) mod stores;
mod timeline;

use std::error::Error;
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use timeline::{Span, Timeline};
use zarr_array::{Array, DeviceTarget, Observer, Options, Selection, Stage};
use zarr_buffer_api::Device;
use zarr_buffer_cuda::{CudaDevice, CudaDeviceInfo};
use zarr_codec_api::{Policy, Registry};
use zarr_codecs_cuda::cuda_provider;
use zarr_store::FilesystemStore;
use zarr_store_api::AnyStore;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// Measure reading from a local store to the device
///
/// The stores are made where they are not there: 64×4×721×1440 float32, smooth fields with noise, rounded to 0.01. Every figure is the median of several runs after
/// one that is not counted, with the files in the page cache; each row's tensor is compared with what the CPU reads.
#[derive(Debug, clap::Args)]
pub(crate) struct BenchArgs {
    /// Where the stores are, or are made
    #[arg(long, default_value = "stores")]
    stores: PathBuf,
    /// Only rows of these names: raw, zstd, zstdsmall, zstdshard, blosclz4, blosczstd, gzip, gzipsmall, lz4, lz4small
    #[arg(long)]
    only: Vec<String>,
    /// Fields of 721×1440 along the first axis, a multiple of 4
    #[arg(long, default_value_t = 64)]
    times: u64,
    /// Runs of each figure
    #[arg(long, default_value_t = 7)]
    runs: usize,
    /// Host memory for bytes in flight, in MiB [default: that of the library]
    #[arg(long)]
    staging: Option<usize>,
    /// Device memory for a batch, in MiB [default: that of the library]
    #[arg(long)]
    scratch: Option<u64>,
    /// Note when each stage of one more read of every store ran: one line of JSON for each in this file, and a picture beside it (.svg)
    #[arg(long)]
    timeline: Option<PathBuf>,
    /// Append one line of JSON for each figure to this file
    #[arg(long)]
    record: Option<PathBuf>,
    /// Make the stores and measure nothing
    #[arg(long)]
    make: bool,
}

/// Where figures go.
struct Record {
    file: Option<File>,
    about: String,
}

impl Record {
    fn new(path: Option<&PathBuf>, device: &CudaDeviceInfo) -> Result<Self> {
        let file = path.map(|path| File::options().create(true).append(true).open(path)).transpose()?;
        let (major, minor) = device.driver_version;
        let driver = std::fs::read_to_string("/sys/module/nvidia/version").unwrap_or_default();
        let about = format!(
            r#""device":"{}","driver":"{}","driver_cuda":"{major}.{minor}","threads":{},"commit":"{}""#,
            device.name,
            driver.trim(),
            std::thread::available_parallelism().map_or(1, usize::from),
            option_env!("ZARR_COMMIT").unwrap_or("unknown"),
        );
        Ok(Self { file, about })
    }

    /// Notes seconds for work on so many bytes.
    fn note(&mut self, row: &str, what: &str, bytes: u64, seconds: &[f64]) -> Result<()> {
        if let Some(file) = &mut self.file {
            writeln!(file, r#"{{"row":"{row}","what":"{what}","bytes":{bytes},"seconds":{seconds:?},{}}}"#, self.about)?;
        }
        Ok(())
    }
}

/// The one in the middle; the later of two.
fn median(seconds: &[f64]) -> f64 {
    let mut sorted = seconds.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Seconds of each of `runs` runs, after one that is not counted.
fn times<R>(runs: usize, mut work: impl FnMut() -> Result<R>) -> Result<Vec<f64>> {
    work()?;
    (0..runs)
        .map(|_| {
            let start = Instant::now();
            work()?;
            Ok(start.elapsed().as_secs_f64())
        })
        .collect()
}

pub(crate) fn run(args: &BenchArgs) -> ExitCode {
    match bench(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn bench(args: &BenchArgs) -> Result<()> {
    let layouts: Vec<_> =
        stores::LAYOUTS.iter().filter(|layout| args.only.is_empty() || args.only.iter().any(|name| name == layout.name)).collect();
    for layout in &layouts {
        stores::make(&args.stores, layout, args.times)?;
    }
    if args.make {
        return Ok(());
    }
    let device = CudaDevice::new(0)?;
    let mut record = Record::new(args.record.as_ref(), device.info())?;
    let link = link::rates(&device, args.runs, &mut record)?;
    println!("{}, driver for CUDA {}.{}", device.info().name, device.info().driver_version.0, device.info().driver_version.1);
    println!("link: to the device {:.1} GB/s, from it {:.1} GB/s\n", link.up, link.down);
    println!(
        "{:<10} {:>7} {:>13} {:>13} {:>15} {:>13} {:>14} {:>11} {:>10}",
        "store", "ratio", "page cache", "to pinned", "read, decoded", "of the bound", "decoded by CPU", "first read", "staging"
    );
    let mut timelines = Vec::new();
    for layout in layouts {
        let row = measure(args, layout.name, &device, &mut record)?;
        // What the page cache gives of stored bytes, or the link, is the most that a read can have of them.
        let bound = row.cache.min(link.up) * row.ratio;
        println!(
            "{:<10} {:>7.2} {:>8.1} GB/s {:>8.1} GB/s {:>10.1} GB/s {:>11.0} % {:>9.1} GB/s {:>8.1} ms {:>6} MiB",
            layout.name,
            row.ratio,
            row.cache,
            row.pinned,
            row.read,
            row.read / bound * 100.0,
            row.by_cpu,
            row.first * 1e3,
            row.staging >> 20
        );
        if !row.spans.is_empty() {
            let busy = |stage| timeline::busy(&row.spans, stage);
            println!(
                "{:<10} busy: fetch {:.1} ms, upload {:.1}, decode {:.1} (of it beside fetch {:.1}, beside upload {:.1}), scatter {:.1}; end {:.1}",
                "",
                busy(Stage::Fetch),
                busy(Stage::Upload),
                busy(Stage::Decode),
                timeline::both(&row.spans, Stage::Fetch, Stage::Decode),
                timeline::both(&row.spans, Stage::Upload, Stage::Decode),
                busy(Stage::Scatter),
                row.spans.iter().map(|span| span.end).fold(0.0, f64::max),
            );
            timelines.push((layout.name.to_owned(), row.spans));
        }
    }
    if let Some(path) = &args.timeline {
        let lines: Vec<String> = timelines.iter().map(|(name, spans)| timeline::json(name, &record.about, spans)).collect();
        std::fs::write(path, lines.join("\n") + "\n")?;
        timeline::draw(&timelines, &path.with_extension("svg"))?;
    }
    Ok(())
}

/// What was measured of a store.
struct Row {
    /// GB/s of stored bytes from the page cache, to memory that stays in the processor's caches.
    cache: f64,
    /// The same, to pinned memory as large as a read's staging.
    pinned: f64,
    /// GB/s of decoded bytes to the device.
    read: f64,
    /// The same where the CPU decodes, and what it decoded is uploaded.
    by_cpu: f64,
    /// Seconds of the first read, which allocates pinned memory and memory of the device.
    first: f64,
    /// Decoded bytes for each stored one.
    ratio: f64,
    /// Bytes of pinned memory afterwards.
    staging: u64,
    spans: Vec<Span>,
}

fn measure(args: &BenchArgs, name: &str, device: &Arc<CudaDevice>, record: &mut Record) -> Result<Row> {
    let folder = args.stores.join(name);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut target = DeviceTarget::new(Arc::clone(device) as Arc<dyn Device>)?;
    if let Some(staging) = args.staging {
        target.staging = staging << 20;
    }
    if let Some(scratch) = args.scratch {
        target.scratch = scratch << 20;
    }
    let (stored, cache) = stores::page_cache(&folder, args.runs, &mut vec![vec![1u8; stores::PART]; threads])?;
    record.note(name, "page cache", stored, &cache)?;
    let pinned = {
        let pinned: Vec<_> = (0..threads)
            .map(|_| device.allocate_staging((target.staging / threads).max(stores::PART)))
            .collect::<std::result::Result<_, _>>()?;
        let mut pinned: Vec<_> = pinned.iter().map(|buffer| buffer.host_write()).collect::<std::result::Result<_, _>>()?;
        stores::page_cache(&folder, args.runs, &mut pinned)?.1
    };
    record.note(name, "page cache to pinned memory", stored, &pinned)?;
    let on_cpu = Options::new(Registry::new().with(zarr_codecs_cpu::provider()));
    let mut options = on_cpu.clone().with_policy(Policy::Prefer(device.id()));
    options.registry = options.registry.with(cuda_provider(device)?);
    let open = |options: &Options| -> Result<Array> { Ok(Array::open(AnyStore::blocking(FilesystemStore::new(&folder)?), "/", options)?) };
    let array = open(&options)?;
    device.trim(0)?;
    let mut decoded = 0;
    let mut read = || -> Result<()> {
        let tensor = array.read_to_device(&Selection::all(), &target)?;
        tensor.buffer.wait()?;
        decoded = tensor.buffer.len() as u64;
        Ok(())
    };
    let start = Instant::now();
    read()?;
    let first = start.elapsed().as_secs_f64();
    let seconds = times(args.runs, read)?;
    record.note(name, "first read", decoded, &[first])?;
    record.note(name, "read", decoded, &seconds)?;
    let host_array = open(&on_cpu)?;
    let by_cpu = times(args.runs, || Ok(host_array.read_to_device(&Selection::all(), &target)?.buffer.wait()?))?;
    record.note(name, "read, decoded by the CPU", decoded, &by_cpu)?;
    let mut spans = Vec::new();
    if args.timeline.is_some() {
        let timeline = Arc::new(Timeline::new(device)?);
        let watched = target.clone().with_observer(Arc::clone(&timeline) as Arc<dyn Observer>);
        array.read_to_device(&Selection::all(), &watched)?.buffer.wait()?;
        spans = timeline.spans()?;
    }
    let staging = device.staging_memory();
    check(&array, &host_array, &target)?;
    Ok(Row {
        cache: stored as f64 / median(&cache) / 1e9,
        pinned: stored as f64 / median(&pinned) / 1e9,
        first,
        spans,
        read: decoded as f64 / median(&seconds) / 1e9,
        by_cpu: decoded as f64 / median(&by_cpu) / 1e9,
        ratio: decoded as f64 / stored as f64,
        staging,
    })
}

/// Whether the device has what the CPU reads, one position of the first axis at a time.
fn check(array: &Array, on_cpu: &Array, target: &DeviceTarget) -> Result<()> {
    let tensor = array.read_to_device(&Selection::all(), target)?;
    let count = tensor.shape.first().copied().unwrap_or(1);
    let len = tensor.buffer.len() / usize::try_from(count)?;
    let staging = target.device.allocate_staging(len)?;
    for index in 0..usize::try_from(count)? {
        target.queue.copy(&tensor.buffer.slice(index * len..(index + 1) * len)?, &staging)?;
        let expected = on_cpu.read(&Selection::parse(&index.to_string(), tensor.shape.len())?)?;
        staging.wait()?;
        if expected.as_bytes() != Some(&*staging.host_read()?) {
            return Err(format!("{}: the device has other elements than the CPU at {index}", array.store().name()).into());
        }
    }
    Ok(())
}

//! `zarr bench`

use std::path::PathBuf;
use std::time::Duration;

use zarr::meta::JsonObject;
use zarr::{Array, Selection};

use crate::args::{Device, parse_device};
use crate::bench::{Stages, Times, evict, read, stages};
use crate::context::Context;
use crate::describe::{ArrayFacts, short_name};
use crate::device::Place;
use crate::error::{Failure, Result};
use crate::slabs::Slabs;
use crate::table::{Align, BOLD, DIM, Table};
use crate::{json, units};

/// Measure reading an array: as a whole, cold and warm, and its stages apart
///
/// Each figure is the median of several runs. `fetch` reads the stored bytes into memory of the CPU and does no more; on a device, `upload`, `decode` and `scatter` run
/// one after the other, each waited for; on the CPU, decoding and scattering are one, from a copy of the stored bytes in memory. `overlap` says how
/// many times as long the stages take one after the other as the warm read does, in which they overlap. Cold means that the system was told to forget the
/// files, which works for local ones on Linux.
#[derive(Debug, clap::Args)]
pub(crate) struct BenchArgs {
    /// The array
    pub(crate) path: String,
    /// What of the array, as NumPy has it: `0, 10:20, ::-2, [1,5,3], ...`
    #[arg(long, short, allow_hyphen_values = true)]
    select: Option<String>,
    /// Where to decode: auto (the first CUDA device, else the CPU), cpu, cuda or cuda:N
    #[arg(long, default_value = "auto", value_parser = parse_device)]
    device: Device,
    /// How often to measure each figure
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..))]
    runs: u16,
    /// Bytes of elements that are read at a time
    #[arg(long, default_value = "4GiB", value_parser = units::parse_bytes)]
    piece: u64,
}

struct Measured {
    shape: Vec<u64>,
    decoded: u64,
    warm: Times,
    /// None where the files cannot be forgotten.
    cold: Times,
    stages: Stages,
}

impl Measured {
    /// How long the stages take one after the other.
    fn sum(&self) -> Duration {
        self.stages.stages.iter().map(|(_, times)| times.median()).sum()
    }

    fn overlap(&self) -> f64 {
        self.sum().as_secs_f64() / self.warm.median().as_secs_f64().max(f64::MIN_POSITIVE)
    }
}

pub(crate) fn run(args: &BenchArgs, context: &Context) -> Result<()> {
    let place = context.place(args.device)?;
    let (array, _) = context.open_array(&args.path, &place.options)?;
    if array.item_size().is_none() {
        return Err(Failure::usage(format!("the elements of {} have variable length, and this measures the others", args.path)));
    }
    let selection = Selection::parse(args.select.as_deref().unwrap_or_default(), array.shape().len())?;
    let measured = measure(&array, &selection, args, &place, context)?;
    if context.json {
        return context.print_json(to_json(&args.path, &array, &measured, &place, context));
    }
    context.print(&text(short_name(&args.path), &array, &measured, &place, context))
}

fn measure(array: &Array, selection: &Selection, args: &BenchArgs, place: &Place, context: &Context) -> Result<Measured> {
    let slabs = Slabs::new(array, selection, args.piece)?;
    let pieces: Vec<Selection> = slabs.pieces().collect();
    let runs = usize::from(args.runs);
    let decoded = slabs.elements().saturating_mul(array.item_size().unwrap_or(0) as u64);
    let mut memory = Vec::new();
    // The first read makes the threads, the kernels and the memory that all others find there.
    read(array, &pieces, place, &mut memory)?;
    let files = files(array);
    let mut cold = Times::default();
    if files.as_deref().is_some_and(evict) {
        cold = Times::of(runs, || {
            files.as_deref().map(evict);
            read(array, &pieces, place, &mut memory)
        })?;
        read(array, &pieces, place, &mut memory)?;
    }
    let warm = Times::of(runs, || read(array, &pieces, place, &mut memory))?;
    drop(memory);
    let stages = stages(array, &pieces, place, runs, context)?;
    Ok(Measured { shape: slabs.shape.clone(), decoded, warm, cold, stages })
}

/// The local directory of an array, or the archive that it is in.
fn files(array: &Array) -> Option<PathBuf> {
    let name = array.store().name();
    if let Some(archive) = name.strip_prefix("zip://") {
        return Some(PathBuf::from(archive)).filter(|path| path.is_file());
    }
    let directory = PathBuf::from(name.strip_prefix("file://")?);
    Some(directory.join(array.path().to_string().trim_start_matches('/'))).filter(|path| path.is_dir())
}

fn text(name: &str, array: &Array, measured: &Measured, place: &Place, context: &Context) -> String {
    let facts = ArrayFacts::of_metadata(array);
    let mut head = Table::new([("", Align::Left), ("", Align::Left)]);
    let mut row = |title: &str, text: String| head.styled_row([(format!("  {title}"), DIM), (text, anstyle::Style::new())]);
    row("read", format!("{}, {}, in chunks of {}, {}", units::shape(&measured.shape), facts.data_type, facts.chunks_text(), facts.codecs));
    for (index, line) in array.explain().lines().enumerate() {
        row(if index == 0 { "ran" } else { "" }, line.to_owned());
    }
    let threads = units::count(context.threads as u64, "thread");
    row("on", place.name().map_or(threads.clone(), |name| format!("{}, {name}, and {threads}", place.id())));
    let fetched = measured.stages.fetched;
    let ratio = units::ratio(measured.decoded, fetched).map(|ratio| format!(", ratio {ratio:.2}")).unwrap_or_default();
    row("bytes", format!("{} stored → {} decoded{ratio}", units::bytes(fetched), units::bytes(measured.decoded)));

    let mut table = Table::new([
        ("", Align::Left),
        ("median", Align::Right),
        ("least", Align::Right),
        ("most", Align::Right),
        ("stored", Align::Right),
        ("decoded", Align::Right),
    ]);
    let stages = measured.stages.stages.iter().map(|(name, times)| (*name, times));
    for (name, times) in stages.chain([("warm read", &measured.warm), ("cold read", &measured.cold)]) {
        if times.is_empty() {
            continue;
        }
        let median = times.median();
        table.row([
            format!("  {name}"),
            units::duration(median),
            units::duration(times.least()),
            units::duration(times.most()),
            units::rate(fetched, median),
            units::rate(measured.decoded, median),
        ]);
    }
    let mut text = format!("{BOLD}{name}{BOLD:#}  array, {}\n{}\n{}", facts.version, head.render(), table.render());
    if measured.cold.is_empty() {
        text.push_str(&format!("  {DIM}cold reads were not measured: the system cannot be told to forget this store{DIM:#}\n"));
    }
    let runs = units::count(measured.warm.len() as u64, "run");
    text.push_str(&format!(
        "\n  overlap {:.2}: one after the other, the stages take {}; {runs} each\n",
        measured.overlap(),
        units::duration(measured.sum())
    ));
    text
}

fn to_json(path: &str, array: &Array, measured: &Measured, place: &Place, context: &Context) -> JsonObject {
    let facts = ArrayFacts::of_metadata(array);
    let figures = |times: &Times| {
        let median = times.median().as_secs_f64();
        let rate = |bytes: u64| json::float(bytes as f64 / median.max(f64::MIN_POSITIVE) / 1e9);
        json::object()
            .with("seconds", times.seconds())
            .with("median_seconds", median)
            .with("stored_gb_per_s", rate(measured.stages.fetched))
            .with("decoded_gb_per_s", rate(measured.decoded))
    };
    let mut stages = json::object();
    for (name, times) in &measured.stages.stages {
        stages.insert(name.replace(' ', "_"), figures(times));
    }
    let mut object = json::object()
        .with("path", path)
        .with("version", env!("CARGO_PKG_VERSION"))
        .with("device", place.id())
        .with("device_name", json::optional(place.name()))
        .with("threads", context.threads)
        .with("shape", measured.shape.clone())
        .with("data_type", array.data_type().to_json())
        .with("codecs", facts.codecs)
        .with("ran", array.explain().lines().map(zarr::meta::Json::from).collect::<zarr::meta::Json>())
        .with("stored_bytes", measured.stages.fetched)
        .with("decoded_bytes", measured.decoded)
        .with("stages", stages)
        .with("warm", figures(&measured.warm));
    if !measured.cold.is_empty() {
        object.insert("cold", figures(&measured.cold));
    }
    object.with("overlap", json::float(measured.overlap()))
}

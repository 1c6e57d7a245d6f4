//! `zarr read`

use std::time::{Duration, Instant};

use zarr::meta::Json;
use zarr::store::MetricsHandle;
use zarr::{Array, Node, Selection};

use crate::args::{Device, parse_device};
use crate::context::Context;
use crate::describe::{ArrayFacts, group_line, short_name, walk};
use crate::device::{self, Place};
use crate::error::{Failure, Result};
use crate::slabs::Slabs;
use crate::stats::{Summary, accumulator};
use crate::table::{Align, BOLD, DIM, GREEN, RED, Table};
use crate::{json, progress, units, values};

/// Read an array, or every array of a group, and say what came out, what ran where, what was moved, and how fast
///
/// A consolidated hierarchy is read as its consolidated metadata has it; `zarr validate` says where that differs from what is stored.
///
/// Least, largest and mean element leave out NaN, and elements equal to the fill value where that is neither NaN nor zero; both are counted as missing. The time
/// is that of fetching and decoding; arrays larger than a gigabyte are read piece by piece.
#[derive(Debug, clap::Args)]
pub(crate) struct ReadArgs {
    /// The array or group
    pub(crate) path: String,
    /// What of the array, as NumPy has it: `0, 10:20, ::-2, [1,5,3], ...`
    #[arg(long, short, allow_hyphen_values = true)]
    select: Option<String>,
    /// Where to decode: auto (the first CUDA device, else the CPU), cpu, cuda or cuda:N
    #[arg(long, default_value = "auto", value_parser = parse_device)]
    device: Device,
}

/// Bytes of elements that are in memory at a time, roughly.
const PIECE: u64 = 1 << 30;

/// What reading an array showed.
struct Outcome {
    shape: Vec<u64>,
    fetched: u64,
    requests: u64,
    decoded: u64,
    time: Duration,
    summary: Option<Summary>,
}

pub(crate) fn run(args: &ReadArgs, context: &Context) -> Result<()> {
    let place = context.place(args.device)?;
    let opened = context.open(&args.path, &place.options)?;
    match opened.node {
        Node::Array(array) => {
            let selection = Selection::parse(args.select.as_deref().unwrap_or_default(), array.shape().len())?;
            let outcome = read(&array, &selection, &opened.metrics, &place, context)?;
            if context.json {
                let object = crate::commands::info::path_first(&args.path, outcome_json(&array, &outcome, &place));
                return context.print_json(object.with("threads", context.threads));
            }
            context.print(&array_text(short_name(&args.path), &array, &outcome, &place, context))
        }
        Node::Group(_) if args.select.is_some() => {
            Err(Failure::usage(format!("{} is a group, and a selection is of one array", args.path)).hint("name the array in the path"))
        }
        Node::Group(group) => {
            let title = group_line(&group);
            read_group(args, &title, Node::Group(group), &opened.metrics, &place, context)
        }
    }
}

fn read(array: &Array, selection: &Selection, metrics: &MetricsHandle, place: &Place, context: &Context) -> Result<Outcome> {
    let slabs = Slabs::new(array, selection, PIECE)?;
    let mut summary = accumulator(array.data_type(), array.fill_value());
    let progress = progress::items(slabs.elements(), context.quiet).with_message("reading");
    let mut outcome = Outcome { shape: slabs.shape.clone(), fetched: 0, requests: 0, decoded: 0, time: Duration::ZERO, summary: None };
    for piece in slabs.pieces() {
        metrics.reset();
        let mut count = |time: Duration, decoded: usize| {
            let counted = metrics.reset();
            outcome.time += time;
            outcome.fetched += counted.bytes_read();
            outcome.requests += counted.requests();
            outcome.decoded += decoded as u64;
        };
        let shape = match place.target_for(array) {
            Some(target) => {
                let (tensor, time) = device::read_to(array, &piece, target)?;
                count(time, tensor.buffer.len());
                // What is told of the elements is found on the CPU, after the clock has stopped.
                if let Some(summary) = &mut summary {
                    let add = |bytes: &[u8]| context.parallel(|| summary.add(bytes));
                    device::download(&tensor.buffer, array.item_size().unwrap_or(1), target, add)?;
                }
                tensor.shape
            }
            None => {
                let start = Instant::now();
                let data = array.read(&piece)?;
                count(start.elapsed(), data.byte_len());
                if let (Some(summary), Some(bytes)) = (&mut summary, data.as_bytes()) {
                    context.parallel(|| summary.add(bytes));
                }
                data.shape
            }
        };
        progress.inc(units::product(&shape));
    }
    progress.finish_and_clear();
    outcome.summary = summary.map(|summary| summary.summary()).filter(|_| slabs.elements() > 0);
    Ok(outcome)
}

fn mean_text(summary: &Summary) -> String {
    summary.mean.map_or("-".to_owned(), |mean| units::significant(mean, 6))
}

/// A number in a column.
fn value_text(text: Option<&String>) -> String {
    match text {
        None => "-".to_owned(),
        Some(text) if text.len() <= 8 && !text.contains(['.', 'e']) => text.clone(),
        Some(text) => text.parse().map_or_else(|_| text.clone(), |value: f64| column(value)),
    }
}

fn column(value: f64) -> String {
    let text = units::significant(value, 5);
    if text.len() <= 9 { text } else { format!("{value:.3e}") }
}

fn array_text(name: &str, array: &Array, outcome: &Outcome, place: &Place, context: &Context) -> String {
    let facts = ArrayFacts::of_metadata(array);
    let mut table = Table::new([("", Align::Left), ("", Align::Left)]);
    let mut row = |title: &str, text: String| table.styled_row([(format!("  {title}"), DIM), (text, anstyle::Style::new())]);
    let whole = if outcome.shape == array.shape() { String::new() } else { format!(" of {}", units::shape(array.shape())) };
    row(
        "read",
        format!("{}{whole}, {}, in chunks of {}, {}", units::shape(&outcome.shape), facts.data_type, facts.chunks_text(), facts.codecs),
    );
    for (index, line) in array.explain().lines().enumerate() {
        row(if index == 0 { "ran" } else { "" }, line.to_owned());
    }
    if let (Some(_), Some(name)) = (place.target_for(array), place.name()) {
        row("to", format!("memory of {}, {name}", place.id()));
    }
    let ratio = units::ratio(outcome.decoded, outcome.fetched).map(|ratio| format!(", ratio {ratio:.2}")).unwrap_or_default();
    let requests = units::count(outcome.requests, "request");
    row("moved", format!("{} in {requests} → {} decoded{ratio}", units::bytes(outcome.fetched), units::bytes(outcome.decoded)));
    row(
        "time",
        format!(
            "{} on {}: {} decoded, {} stored",
            units::duration(outcome.time),
            units::count(context.threads as u64, "thread"),
            units::rate(outcome.decoded, outcome.time),
            units::rate(outcome.fetched, outcome.time)
        ),
    );
    if let Some(summary) = &outcome.summary {
        let text = |value: &Option<String>| value.clone().unwrap_or("-".to_owned());
        row("elements", format!("min {}, max {}, mean {}", text(&summary.min), text(&summary.max), mean_text(summary)));
        if summary.missing() > 0 {
            let total = summary.count + summary.missing();
            let percent = summary.missing() as f64 * 100.0 / total as f64;
            row("missing", format!("{} NaN, {} equal to the fill value: {percent:.1} % of {total}", summary.nan, summary.fill));
        }
    }
    format!("{BOLD}{name}{BOLD:#}  array, {}\n{}", facts.version, table.render())
}

fn read_group(args: &ReadArgs, title: &str, root: Node, metrics: &MetricsHandle, place: &Place, context: &Context) -> Result<()> {
    let mut table = Table::new([
        ("array", Align::Left),
        ("shape", Align::Left),
        ("type", Align::Left),
        ("codecs", Align::Left),
        ("ran on", Align::Left),
        ("stored", Align::Right),
        ("decoded", Align::Right),
        ("ratio", Align::Right),
        ("time", Align::Right),
        ("GB/s", Align::Right),
        ("min", Align::Right),
        ("max", Align::Right),
        ("mean", Align::Right),
        ("missing", Align::Right),
    ]);
    let (mut arrays, mut places, mut failed) = (Vec::new(), Vec::<String>::new(), 0u64);
    let mut total = Outcome { shape: Vec::new(), fetched: 0, requests: 0, decoded: 0, time: Duration::ZERO, summary: None };
    for entry in walk(root)?.into_iter().skip(1) {
        let path = entry.path;
        let outcome = match entry.node {
            Ok(Node::Group(_)) => continue,
            Ok(Node::Array(array)) => read(&array, &Selection::all(), metrics, place, context).map(|outcome| (array, outcome)),
            Err(failure) => Err(failure),
        };
        let (array, outcome) = match outcome {
            Ok(read) => read,
            Err(failure) => {
                failed += 1;
                table.styled_row([(path.clone(), RED), (failure.line(), RED)]);
                arrays.push(json::object().with("path", path).with("error", failure.line()));
                continue;
            }
        };
        total.fetched += outcome.fetched;
        total.requests += outcome.requests;
        total.decoded += outcome.decoded;
        total.time += outcome.time;
        let facts = ArrayFacts::of_metadata(&array);
        let sharded = if facts.shards.is_some() { " in shards" } else { "" };
        let summary = outcome.summary.as_ref();
        table.row([
            path.clone(),
            units::shape(&outcome.shape),
            facts.data_type.clone(),
            format!("{}{sharded}", facts.codecs),
            placement(&array, place),
            units::bytes(outcome.fetched),
            units::bytes(outcome.decoded),
            units::ratio(outcome.decoded, outcome.fetched).map(|ratio| format!("{ratio:.2}")).unwrap_or_default(),
            units::duration(outcome.time),
            gigabytes(outcome.decoded, outcome.time),
            value_text(summary.and_then(|summary| summary.min.as_ref())),
            value_text(summary.and_then(|summary| summary.max.as_ref())),
            summary.and_then(|summary| summary.mean).map_or("-".to_owned(), column),
            summary.map(|summary| summary.missing()).filter(|&missing| missing > 0).map(|missing| missing.to_string()).unwrap_or_default(),
        ]);
        for ran in placement(&array, place).split(" → ").map(str::to_owned) {
            if !places.contains(&ran) {
                places.push(ran);
            }
        }
        arrays.push(crate::commands::info::path_first(&path, outcome_json(&array, &outcome, place)));
    }
    let count = arrays.len() as u64;
    if context.json {
        let object = json::object()
            .with("path", args.path.as_str())
            .with("device", place.id())
            .with("threads", context.threads)
            .with("arrays", arrays.into_iter().map(Json::from).collect::<Json>())
            .with("fetched_bytes", total.fetched)
            .with("requests", total.requests)
            .with("decoded_bytes", total.decoded)
            .with("seconds", total.time.as_secs_f64());
        context.print_json(object)?;
    } else {
        let mut text = format!(
            "{BOLD}{}{BOLD:#}  {title}\n\n{}",
            short_name(&args.path),
            table.fit(&["time", "ratio", "ran on", "codecs", "stored", "GB/s", "type"]).render()
        );
        let ratio = units::ratio(total.decoded, total.fetched).map(|ratio| format!(" (ratio {ratio:.2})")).unwrap_or_default();
        text.push_str(&format!(
            "\n{GREEN}{} read{GREEN:#} on {}{}: {} in {} → {} decoded{ratio}, {} with {}, {}\n",
            units::count(count - failed, "array"),
            places.join(" and "),
            place.name().map(|name| format!(" ({name})")).unwrap_or_default(),
            units::bytes(total.fetched),
            units::count(total.requests, "request"),
            units::bytes(total.decoded),
            units::duration(total.time),
            units::count(context.threads as u64, "thread"),
            units::rate(total.decoded, total.time),
        ));
        context.print(&text)?;
    }
    if failed > 0 {
        return Err(Failure::new(format!("{failed} of {} could not be read", units::count(count, "array"))));
    }
    Ok(())
}

/// Where the codec chain runs, in the order of decoding, and where the elements end.
fn placement(array: &Array, place: &Place) -> String {
    let mut places: Vec<String> = Vec::new();
    for line in array.explain().lines() {
        if let Some((_, place)) = line.rsplit_once(" on ")
            && let Some((place, _)) = place.split_once(" by ")
            && let place = if place == "host" { "CPU" } else { place }
            && places.last().is_none_or(|last| last != place)
        {
            places.push(place.to_owned());
        }
    }
    if place.target_for(array).is_some() && places.last() != Some(&place.id()) {
        places.push(place.id());
    }
    places.join(" → ")
}

/// A rate; of a few bytes it would tell nothing.
fn gigabytes(bytes: u64, time: Duration) -> String {
    if bytes < 4096 || time.is_zero() {
        return "-".to_owned();
    }
    format!("{:.2}", bytes as f64 / time.as_secs_f64() / 1e9)
}

fn outcome_json(array: &Array, outcome: &Outcome, place: &Place) -> zarr::meta::JsonObject {
    let facts = ArrayFacts::of_metadata(array);
    let mut object = json::object()
        .with("shape", outcome.shape.clone())
        .with("data_type", array.data_type().to_json())
        .with("codecs", facts.codecs)
        .with("device", place.id_for(array))
        .with("ran", array.explain().lines().map(Json::from).collect::<Json>())
        .with("fetched_bytes", outcome.fetched)
        .with("requests", outcome.requests)
        .with("decoded_bytes", outcome.decoded)
        .with("seconds", outcome.time.as_secs_f64());
    if let Some(summary) = &outcome.summary {
        object.insert("min", json::optional(summary.min.as_deref().map(values::number_json)));
        object.insert("max", json::optional(summary.max.as_deref().map(values::number_json)));
        object.insert("mean", json::optional(summary.mean.map(json::float)));
        object.insert("count", summary.count);
        object.insert("nan", summary.nan);
        object.insert("fill", summary.fill);
    }
    object
}

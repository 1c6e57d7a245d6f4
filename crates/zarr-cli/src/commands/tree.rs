//! `zarr tree`

use std::process::ExitCode;

use zarr::Node;
use zarr::meta::Json;

use crate::commands::info::path_first;
use crate::context::Context;
use crate::describe::{ArrayFacts, Entry, group_line, short_name, walk};
use crate::error::Result;
use crate::table::{Align, BOLD, DIM, RED, Table};
use crate::{json, units};

/// Show a hierarchy: each array's shape, chunks, data type, codecs and sizes
///
/// A consolidated hierarchy is shown as its consolidated metadata has it; `zarr validate` says where that differs from what is stored.
///
/// A node that cannot be read is shown as such and told on standard error, the others are shown all the same, and the exit status is 1.
#[derive(Debug, clap::Args)]
pub(crate) struct TreeArgs {
    /// The group (or array)
    pub(crate) path: String,
    /// Leave out what has to be asked of the store: stored sizes, chunks present
    #[arg(long)]
    metadata_only: bool,
}

pub(crate) fn run(args: &TreeArgs, context: &Context) -> Result<ExitCode> {
    let opened = context.open(&args.path, &context.options())?;
    let mut entries = walk(opened.node)?;
    let mut facts: Vec<Option<ArrayFacts>> = Vec::new();
    for entry in &mut entries {
        facts.push(match &entry.node {
            Ok(Node::Array(array)) if args.metadata_only => Some(ArrayFacts::of_metadata(array)),
            Ok(Node::Array(array)) => match ArrayFacts::new(array, context) {
                Ok(facts) => Some(facts),
                Err(failure) if entry.path.is_empty() => return Err(failure),
                Err(failure) => {
                    entry.node = Err(failure);
                    None
                }
            },
            _ => None,
        });
    }
    if context.json {
        let nodes: Json = entries.iter().zip(&facts).map(|(entry, facts)| entry_json(entry, facts.as_ref())).collect();
        let object = json::object().with("path", args.path.as_str()).with("nodes", nodes);
        context.print_json(object)?;
        return Ok(outcome(entries));
    }
    let mut table = Table::new([
        ("", Align::Left),
        ("shape", Align::Left),
        ("type", Align::Left),
        ("chunks", Align::Left),
        ("codecs", Align::Left),
        ("stored", Align::Right),
        ("decoded", Align::Right),
        ("ratio", Align::Right),
        ("present", Align::Right),
    ]);
    let (mut stored, mut decoded) = (0, 0);
    for (index, (entry, facts)) in entries.iter().zip(&facts).enumerate() {
        let name = format!("{}{}", branches(&entries, index), entry.path.rsplit('/').next().unwrap_or_default());
        let plain = anstyle::Style::new();
        match (&entry.node, facts) {
            (Ok(Node::Group(group)), _) => {
                let name = if index == 0 { short_name(&args.path).to_owned() } else { name };
                table.styled_row([(name, BOLD), (group_line(group), DIM)]);
            }
            (Ok(Node::Array(_)), Some(facts)) => {
                let name = if index == 0 { short_name(&args.path).to_owned() } else { name };
                let known = |text: String| if args.metadata_only { String::new() } else { text };
                stored += facts.stored.map_or(0, |stored| stored.bytes);
                decoded += facts.decoded.unwrap_or(0);
                let cells = [
                    name,
                    units::shape(&facts.shape),
                    facts.data_type.clone(),
                    facts.chunks_text(),
                    facts.codecs.clone(),
                    known(facts.stored_text()),
                    facts.decoded_text(),
                    facts.ratio_text(),
                    known(facts.present_text()),
                ];
                table.styled_row(cells.into_iter().map(|cell| (cell, plain)));
            }
            (Err(failure), _) => table.styled_row([(name, RED), (format!("cannot be opened: {}", failure.line()), RED)]),
            _ => {}
        }
    }
    let mut text = table.fit(&["ratio", "codecs", "decoded", "present"]).render();
    let arrays = facts.iter().flatten().count() as u64;
    if arrays > 1 && !args.metadata_only {
        let ratio = units::ratio(decoded, stored).map(|ratio| format!(", ratio {ratio:.2}")).unwrap_or_default();
        let arrays = units::count(arrays, "array");
        text.push_str(&format!("{DIM}{arrays}, {} stored, {} decoded{ratio}{DIM:#}\n", units::bytes(stored), units::bytes(decoded)));
    }
    context.print(&text)?;
    Ok(outcome(entries))
}

/// Tells what could not be read.
fn outcome(entries: Vec<Entry>) -> ExitCode {
    let failures = entries.into_iter().filter_map(|Entry { path, node }| Some(node.err()?.context(format!("cannot read /{path}"))));
    failures.map(|failure| failure.report()).last().unwrap_or(ExitCode::SUCCESS)
}

/// The lines that lead to a node in the drawing.
fn branches(entries: &[Entry], index: usize) -> String {
    let path = entries.get(index).map(|entry| entry.path.as_str()).unwrap_or_default();
    let depth = path.split('/').filter(|name| !name.is_empty()).count();
    let mut drawing = String::new();
    for level in 1..=depth {
        // Whether something follows on this level, below the same parent.
        let parent: Vec<&str> = path.split('/').take(level - 1).collect();
        let here: Vec<&str> = path.split('/').take(level).collect();
        let more = entries.iter().skip(index + 1).any(|entry| {
            let names: Vec<&str> = entry.path.split('/').collect();
            names.len() >= level && names.starts_with(&parent) && !names.starts_with(&here)
        });
        drawing.push_str(match (level == depth, more) {
            (true, true) => "├── ",
            (true, false) => "└── ",
            (false, true) => "│   ",
            (false, false) => "    ",
        });
    }
    drawing
}

fn entry_json(entry: &Entry, facts: Option<&ArrayFacts>) -> Json {
    let path = format!("/{}", entry.path);
    match (&entry.node, facts) {
        (Ok(Node::Array(array)), Some(facts)) => path_first(&path, facts.to_json(array)).into(),
        (Ok(Node::Group(group)), _) => json::object()
            .with("path", path)
            .with("kind", "group")
            .with("zarr_format", if group.version() == zarr::Version::V2 { 2 } else { 3 })
            .with("consolidated", group.is_consolidated())
            .into(),
        (Err(failure), _) => json::object().with("path", path).with("error", failure.line()).into(),
        _ => Json::Null,
    }
}

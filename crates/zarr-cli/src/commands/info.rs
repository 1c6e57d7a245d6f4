//! `zarr info`

use std::fmt::Write as _;
use std::process::ExitCode;

use zarr::meta::{Json, JsonObject};
use zarr::{Array, ArrayError, Group, Node};

use crate::context::Context;
use crate::describe::{ArrayFacts, group_line, short_name};
use crate::error::{Failure, Result};
use crate::table::{Align, BOLD, DIM, RED, Table};
use crate::{json, units};

/// Show what an array or a group is: shape, chunks, data type, codecs, sizes, attributes
///
/// A consolidated hierarchy is shown as its consolidated metadata has it; `zarr validate` says where that differs from what is stored.
///
/// What lies below a group and cannot be opened is shown as such and told on standard error, and the exit status is 1.
#[derive(Debug, clap::Args)]
pub(crate) struct InfoArgs {
    /// The array or group
    pub(crate) path: String,
}

pub(crate) fn run(args: &InfoArgs, context: &Context) -> Result<ExitCode> {
    let opened = context.open(&args.path, &context.options())?;
    match &opened.node {
        Node::Array(array) => {
            let facts = ArrayFacts::new(array, context)?;
            if context.json {
                let object = path_first(&args.path, facts.to_json(array)).with("attributes", array.attributes().clone());
                context.print_json(object)?;
            } else {
                context.print(&array_text(short_name(&args.path), array, &facts))?;
            }
            Ok(ExitCode::SUCCESS)
        }
        Node::Group(group) => group_info(&args.path, group, context),
    }
}

pub(crate) fn path_first(path: &str, object: JsonObject) -> JsonObject {
    let mut all = json::object().with("path", path);
    for (key, value) in object {
        all.insert(key, value);
    }
    all
}

fn array_text(name: &str, array: &Array, facts: &ArrayFacts) -> String {
    let mut table = Table::new([("", Align::Left), ("", Align::Left)]);
    let mut row = |title: &str, text: String| table.styled_row([(format!("  {title}"), DIM), (text, anstyle::Style::new())]);
    let names = facts.dimension_names.as_ref().map(|names| {
        let names: Vec<&str> = names.iter().map(|name| name.as_deref().unwrap_or("-")).collect();
        format!("  ({})", names.join(", "))
    });
    row("shape", format!("{}{}", units::shape(&facts.shape), names.filter(|_| !facts.shape.is_empty()).unwrap_or_default()));
    row("data type", facts.data_type.clone());
    row("fill value", facts.fill_value.to_text());
    let chunk_bytes = facts.chunks.iter().try_fold(array.item_size().unwrap_or(0) as u64, |product, &len| product.checked_mul(len));
    let chunk_bytes = chunk_bytes.filter(|&bytes| bytes > 0).map(|bytes| format!(", {} each", units::bytes(bytes))).unwrap_or_default();
    let grid = format!("a grid of {}", units::shape(&facts.grid));
    if let Some(shards) = &facts.shards {
        let (shape, of) = (units::shape(shards), if facts.rectilinear { "lengths vary, the first is " } else { "" });
        row("shards", format!("{of}{shape}, {grid}"));
        for level in array.shard_levels().iter().rev().skip(1).rev() {
            row("", format!("{} inside", units::shape(level)));
        }
        row("chunks", format!("{}{chunk_bytes}", units::shape(&facts.chunks)));
    } else if facts.rectilinear {
        row("chunks", format!("lengths vary, {grid}"));
    } else {
        row("chunks", format!("{}, {grid}{chunk_bytes}", units::shape(&facts.chunks)));
    }
    row("codecs", facts.codecs.clone());
    let what = if facts.shards.is_some() { "shards" } else { "chunks" };
    match facts.stored {
        Some(stored) => row("stored", format!("{} in {} of {} {what}", units::bytes(stored.bytes), stored.chunks, facts.total_chunks())),
        None => row("stored", format!("unknown: the store cannot be listed, and there are up to {} {what}", facts.total_chunks())),
    }
    let ratio = facts.ratio().map(|ratio| format!(", {ratio:.2} times the stored size")).unwrap_or_default();
    row("decoded", format!("{}{ratio}", facts.decoded_text()));
    format!("{BOLD}{name}{BOLD:#}  array, {}\n{}{}", facts.version, table.render(), attributes_text(array.attributes()))
}

fn attributes_text(attributes: &JsonObject) -> String {
    if attributes.is_empty() {
        return String::new();
    }
    let mut text = format!("  {DIM}attributes{DIM:#}\n");
    for (key, value) in attributes.iter() {
        // The value of an attribute may be anything, and a control character in it must not reach the terminal.
        let value = value.to_text();
        let _ = writeln!(text, "    {DIM}{}:{DIM:#} {value}", key.escape_debug());
    }
    text
}

fn group_info(path: &str, group: &Group, context: &Context) -> Result<ExitCode> {
    let names = match group.names() {
        // The group itself is at hand where the store cannot be listed.
        Err(error) if !group.store().is_listable() => {
            context.note(&error.to_string());
            None
        }
        names => Some(names?),
    };
    let known = names.is_some();
    let children: Vec<(String, Result<Node, _>)> =
        names.unwrap_or_default().into_iter().map(|name| (name.clone(), group.get(&name))).collect();
    if context.json {
        let described: Json = children
            .iter()
            .map(|(name, node)| {
                let object = json::object().with("name", name.as_str());
                match node {
                    Ok(Node::Array(_)) => object.with("kind", "array"),
                    Ok(Node::Group(_)) => object.with("kind", "group"),
                    Err(error) => object.with("error", error.to_string()),
                }
            })
            .collect();
        let object = json::object()
            .with("path", path)
            .with("kind", "group")
            .with("zarr_format", if group.version() == zarr::Version::V2 { 2 } else { 3 })
            .with("consolidated", group.is_consolidated())
            .with("children", json::optional(known.then_some(described)))
            .with("attributes", group.attributes().clone());
        context.print_json(object)?;
        return Ok(outcome(children));
    }
    let mut text = format!("{BOLD}{}{BOLD:#}  {}\n", short_name(path), group_line(group));
    let mut table = Table::new([("", Align::Left), ("", Align::Left), ("", Align::Left)]);
    let plain = anstyle::Style::new();
    for (name, node) in &children {
        let name = format!("  {name}");
        let (what, more) = match node {
            Ok(Node::Array(array)) => {
                let facts = ArrayFacts::of_metadata(array);
                (facts.data_type, units::shape(&facts.shape))
            }
            Ok(Node::Group(group)) => (group_line(group), String::new()),
            Err(error) => {
                table.styled_row([(name, plain), (format!("cannot be opened: {error}"), RED)]);
                continue;
            }
        };
        table.row([name, what, more]);
    }
    text.push_str(&table.render());
    text.push_str(&attributes_text(group.attributes()));
    context.print(&text)?;
    Ok(outcome(children))
}

/// Tells what could not be opened.
fn outcome(children: Vec<(String, Result<Node, ArrayError>)>) -> ExitCode {
    let failures = children.into_iter().filter_map(|(name, node)| Some(Failure::from(node.err()?).context(format!("cannot open {name}"))));
    failures.map(|failure| failure.report()).last().unwrap_or(ExitCode::SUCCESS)
}

//! `zarr validate`

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::process::ExitCode;

use indicatif::ProgressBar;
use zarr::meta::{ConsolidatedMetadataV2, Json, NodeMetadata, NodeMetadataV2, NodePath};
use zarr::store_api::{AnyStore, ByteRange, Listing, StoreKey, StorePrefix};
use zarr::{Array, ArrayError, DataType, Elements, Group, Node, Options, Selection, StoredMetadata};

use crate::context::Context;
use crate::describe::{Entry, coordinates, every_chunk, walk};
use crate::error::{Failure, Result};
use crate::slabs::Slabs;
use crate::table::{BOLD, DIM, GREEN, RED};
use crate::{json, progress, store, units};

/// Check an array or a hierarchy: decode every chunk, and list every problem
///
/// Looks for directories that cannot be read, metadata that cannot be understood, chunks that cannot be decoded, chunks outside the grid, keys that belong to
/// nothing, nodes without the groups above them, and consolidated metadata that differs from what is stored. It goes on after a problem, and ends with exit status 1
/// if there was any.
///
/// Bytes that were changed show where a checksum covers them, as in a zip archive, or where they do not decode any more; elsewhere they are other elements.
#[derive(Debug, clap::Args)]
pub(crate) struct ValidateArgs {
    /// The array or group
    pub(crate) path: String,
}

/// Something that is wrong.
#[derive(Debug)]
struct Problem {
    kind: &'static str,
    key: String,
    chunk: Option<Vec<u64>>,
    reason: String,
}

#[derive(Default)]
struct Report {
    problems: Vec<Problem>,
    arrays: u64,
    chunks: u64,
    bytes: u64,
}

impl Report {
    fn problem(&mut self, kind: &'static str, key: impl ToString, reason: impl Into<String>) {
        self.problems.push(Problem { kind, key: key.to_string(), chunk: None, reason: reason.into() });
    }
}

/// Decoded bytes of a chunk that are in memory at a time, for each thread.
const PIECE: u64 = 64 << 20;

/// The documents that make a node, or belong to one.
const DOCUMENTS: [&str; 5] = ["zarr.json", ".zarray", ".zgroup", ".zattrs", ".zmetadata"];

pub(crate) fn run(args: &ValidateArgs, context: &Context) -> Result<ExitCode> {
    let (store, path, metrics) = context.locate(&args.path)?;
    let root = NodePath::new_v2(&path)?;
    let options = context.options();
    let mut report = Report::default();
    let arrays = match Node::open(store.clone(), &path, &options) {
        Err(ArrayError::NotFound { .. }) => {
            return Err(context.open(&args.path, &options).err().unwrap_or_else(|| Failure::new("not found")));
        }
        root_node => {
            if store.is_listable() {
                check_keys(&store, &root, &options, &mut report)?
            } else {
                check_known(&store, root_node?, &mut report)?
            }
        }
    };
    let total = arrays.iter().map(|found| found.chunks.len() as u64).sum();
    let progress = progress::items(total, context.quiet).with_message("checking");
    for found in &arrays {
        check_array(found, context, &progress, &mut report)?;
    }
    progress.finish_and_clear();
    report.arrays = arrays.len() as u64;
    report.bytes = metrics.snapshot().bytes_read();
    if context.json {
        print_json(args, &report, context)?;
    } else {
        print_text(args, &report, context)?;
    }
    Ok(if report.problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// An array and the chunks that it has.
struct Found {
    array: Array,
    chunks: Vec<Vec<u64>>,
    /// Whether a chunk that is listed may be absent.
    guessed: bool,
}

/// Goes through all the keys of a store: which node each belongs to, and what is wrong with it.
fn check_keys(store: &AnyStore, root: &NodePath, options: &Options, report: &mut Report) -> Result<Vec<Found>> {
    let keys = list_keys(store, &StorePrefix::new(root.prefix())?, report);
    let mut nodes: BTreeMap<String, Option<Node>> = BTreeMap::new();
    for key in &keys {
        let Some(name @ ("zarr.json" | ".zarray" | ".zgroup")) = key.as_str().rsplit('/').next() else { continue };
        let path = key.as_str().strip_suffix(name).unwrap_or_default().trim_end_matches('/').to_owned();
        if nodes.contains_key(&path) {
            report.problem("metadata", key, "a second metadata document at the same node");
            continue;
        }
        let node = match Node::open(store.clone(), &format!("/{path}"), options) {
            Ok(node) => Some(node),
            Err(error) => {
                report.problem("metadata", key, Failure::from(error).line());
                None
            }
        };
        nodes.insert(path, node);
    }
    check_parents(&nodes, root, report);
    let mut chunks: BTreeMap<&str, Vec<Vec<u64>>> = BTreeMap::new();
    for key in &keys {
        let Some((path, node)) = owner(&nodes, key) else {
            report.problem("unexpected key", key, "it lies below no array or group");
            continue;
        };
        let rest = key.as_str().strip_prefix(path).unwrap_or_default().trim_start_matches('/');
        if DOCUMENTS.contains(&rest) {
            continue;
        }
        match node {
            Some(Node::Array(array)) => match array.metadata().chunk_key_encoding.decode(rest, array.shape().len()) {
                None => report.problem("unexpected key", key, "it is neither metadata nor a chunk of the array"),
                Some(chunk) if is_outside(array, &chunk) => report.problems.push(Problem {
                    kind: "chunk outside the grid",
                    key: key.to_string(),
                    reason: format!("the array has a grid of {} chunks", units::shape(&array.chunk_grid_shape())),
                    chunk: Some(chunk),
                }),
                Some(chunk) => chunks.entry(path).or_default().push(chunk),
            },
            Some(Node::Group(_)) => report.problem("unexpected key", key, "it belongs to no array of the group"),
            // Nothing can be said of the keys of a node that cannot be opened.
            None => {}
        }
    }
    for node in nodes.values().flatten() {
        if let Node::Group(group) = node {
            check_consolidated(store, group, &nodes, report)?;
        }
    }
    let found = |(path, node): (&String, &Option<Node>)| match node {
        Some(Node::Array(array)) => {
            let mut chunks = chunks.remove(path.as_str()).unwrap_or_default();
            chunks.sort_unstable();
            Some(Found { array: (**array).clone(), chunks, guessed: false })
        }
        _ => None,
    };
    Ok(nodes.iter().filter_map(found).collect())
}

/// The kind of problem that a directory is which cannot be listed.
const UNREADABLE: &str = "unreadable directory";

/// All the keys below a directory, but for those of directories that cannot be listed.
fn list_keys(store: &AnyStore, prefix: &StorePrefix, report: &mut Report) -> Vec<StoreKey> {
    /// Links may lead in circles, and so to one unreadable directory again and again.
    const MOST: usize = 100;
    if let Ok(keys) = store::list(store, prefix) {
        return keys;
    }
    if report.problems.iter().filter(|problem| problem.kind == UNREADABLE).count() >= MOST {
        return Vec::new();
    }
    match store::list_dir(store, prefix) {
        Ok(Listing { mut keys, prefixes }) => {
            keys.extend(prefixes.iter().flat_map(|prefix| list_keys(store, prefix, report)));
            keys
        }
        Err(error) => {
            report.problem(UNREADABLE, format!("/{}", prefix.as_str().trim_end_matches('/')), Failure::from(error).line());
            Vec::new()
        }
    }
}

/// The node that a key lies in: the deepest one above it.
fn owner<'a>(nodes: &'a BTreeMap<String, Option<Node>>, key: &'a StoreKey) -> Option<(&'a str, &'a Option<Node>)> {
    let mut path = key.as_str();
    loop {
        path = path.rsplit_once('/').map_or("", |(above, _)| above);
        if let Some((path, node)) = nodes.get_key_value(path) {
            return Some((path, node));
        }
        if path.is_empty() {
            return None;
        }
    }
}

fn check_parents(nodes: &BTreeMap<String, Option<Node>>, root: &NodePath, report: &mut Report) {
    let mut told = BTreeSet::new();
    for path in nodes.keys().filter(|path| path.as_str() != root.without_slash()) {
        let mut above = path.as_str();
        while let Some((parent, _)) = above.rsplit_once('/').or((!above.is_empty()).then_some(("", above))) {
            if parent.len() < root.without_slash().len() {
                break;
            }
            match nodes.get(parent) {
                None if told.insert(parent.to_owned()) => {
                    report.problem("metadata", format!("/{parent}"), format!("there is no group, but a node below it: /{path}"));
                }
                Some(Some(Node::Array(_))) if told.insert(parent.to_owned()) => {
                    report.problem("metadata", format!("/{parent}"), format!("an array has a node below it: /{path}"));
                }
                _ => {}
            }
            above = parent;
            if above.is_empty() {
                break;
            }
        }
    }
}

fn is_outside(array: &Array, chunk: &[u64]) -> bool {
    chunk.iter().zip(array.chunk_grid_shape()).any(|(&index, count)| index >= count)
}

/// Compares consolidated metadata with the documents that it is a copy of.
fn check_consolidated(store: &AnyStore, group: &Group, nodes: &BTreeMap<String, Option<Node>>, report: &mut Report) -> Result<()> {
    let (document, copies) = match group.stored_metadata() {
        StoredMetadata::GroupV3(metadata) => match &metadata.consolidated_metadata {
            Some(all) => {
                let copy = |path: &str| all.node(path).map(|node| node.map(StoredMetadata::from));
                (group.path().metadata_key(), all.iter().map(|(path, _)| (path.to_owned(), copy(path))).collect::<Vec<_>>())
            }
            None => return Ok(()),
        },
        StoredMetadata::GroupV2(_) => {
            let document = group.path().zmetadata_key();
            let Some(text) = store::get(store, &StoreKey::new(&document)?)? else { return Ok(()) };
            match ConsolidatedMetadataV2::parse(&text) {
                Ok(all) => {
                    let copy = |path: &NodePath| all.node(path).map(|node: Option<NodeMetadataV2>| node.map(StoredMetadata::from));
                    let copies = all.paths().map(|path| (path.without_slash().to_owned(), copy(&path))).collect();
                    (document, copies)
                }
                Err(error) => {
                    report.problem("metadata", document, error.to_string());
                    return Ok(());
                }
            }
        }
        StoredMetadata::ArrayV2(_) | StoredMetadata::ArrayV3(_) => return Ok(()),
    };
    let base = group.path().prefix();
    let full = |relative: &str| format!("{base}{relative}").trim_end_matches('/').to_owned();
    let mut named = BTreeSet::new();
    for (relative, copy) in copies {
        let path = full(&relative);
        match (copy, nodes.get(&path)) {
            (Err(error), _) => report.problem("consolidated metadata", &document, format!("/{relative}: {error}")),
            (Ok(_), None) => report.problem("consolidated metadata", &document, format!("/{relative} is named, and not stored")),
            (Ok(Some(copy)), Some(Some(node))) if !is_same(&copy, node) => {
                report.problem("consolidated metadata", &document, format!("/{relative} differs from what is stored"));
            }
            _ => {}
        }
        named.insert(path);
    }
    for path in nodes.keys().filter(|path| path.starts_with(&base) && path.as_str() != group.path().without_slash()) {
        if !named.contains(path) {
            let relative = path.strip_prefix(&base).unwrap_or(path);
            report.problem("consolidated metadata", &document, format!("/{relative} is stored, and not named"));
        }
    }
    Ok(())
}

fn is_same(copy: &StoredMetadata, node: &Node) -> bool {
    match node {
        Node::Array(array) => copy == array.stored_metadata(),
        // The copy of a group need not repeat what the group has consolidated itself.
        Node::Group(group) => !copy.is_array() && copy.version() == group.version() && copy.attributes() == group.attributes(),
    }
}

/// What can be checked where keys cannot be listed: the nodes that are named, as they are stored, and all the chunks that they may have.
fn check_known(store: &AnyStore, root: Node, report: &mut Report) -> Result<Vec<Found>> {
    let mut nodes: BTreeMap<String, Option<Node>> = BTreeMap::new();
    if let Node::Group(group) = &root {
        let stored = group.without_consolidated();
        for Entry { path, .. } in walk(root.clone())?.into_iter().skip(1) {
            let node = match stored.get(&path) {
                Ok(node) => Some(node),
                Err(ArrayError::NotFound { .. }) => continue,
                Err(error) => {
                    report.problem("metadata", format!("/{path}"), Failure::from(error).line());
                    None
                }
            };
            nodes.insert(format!("{}{path}", group.path().prefix()), node);
        }
        check_consolidated(store, group, &nodes, report)?;
    }
    nodes.insert(root.path().without_slash().to_owned(), Some(root));
    let mut found = Vec::new();
    for node in nodes.into_values().flatten() {
        if let Node::Array(array) = node {
            let chunks = every_chunk(&array)?;
            found.push(Found { array: *array, chunks, guessed: true });
        }
    }
    Ok(found)
}

/// Decodes all the chunks of an array, each of them whole: also what lies outside of the array.
fn check_array(found: &Found, context: &Context, progress: &ProgressBar, report: &mut Report) -> Result<()> {
    let array = padded(&found.array)?;
    let blocking = matches!(array.store(), AnyStore::Blocking(_));
    let at_a_time = if blocking { context.threads } else { 8 };
    let results = context.each(at_a_time, &found.chunks, |chunk| {
        let result = check_chunk(&array, chunk, found.guessed);
        progress.inc(1);
        result
    });
    for result in results {
        let (checked, problems) = result?;
        report.chunks += u64::from(checked);
        report.problems.extend(problems);
    }
    Ok(())
}

/// The array with a shape that ends where its last chunks end.
fn padded(array: &Array) -> Result<Array> {
    let grid = array.chunk_grid();
    let end = |(axis, count): (usize, u64)| match count.checked_sub(1) {
        Some(last) => grid.chunk_origin(axis, last).saturating_add(grid.chunk_len(axis, last)),
        None => 0,
    };
    let mut metadata = array.metadata().clone();
    metadata.shape = array.chunk_grid_shape().into_iter().enumerate().map(end).collect();
    let metadata = StoredMetadata::from(NodeMetadata::from(metadata));
    Ok(Array::from_metadata(array.store().clone(), &array.path().to_string(), metadata, array.options())?)
}

/// Decodes a chunk of the grid; says whether it was there.
fn check_chunk(array: &Array, chunk: &[u64], guessed: bool) -> Result<(bool, Vec<Problem>)> {
    if guessed && array.stored_chunk_size(chunk)?.is_none() {
        return Ok((false, Vec::new()));
    }
    let grid = array.chunk_grid();
    let ranges: Vec<(u64, u64)> =
        chunk.iter().enumerate().map(|(axis, &index)| (grid.chunk_origin(axis, index), grid.chunk_len(axis, index))).collect();
    let whole = ranges.iter().map(|&(start, len)| start..start + len);
    if decode(array, &Selection::ranges(whole)).is_ok() {
        return Ok((true, check_value(array, chunk)?));
    }
    // Which of the inner chunks are at fault. An array without shards has one in each chunk.
    let inner = array.inner_chunk_shape();
    let sharded = !array.shard_levels().is_empty();
    let counts: Vec<u64> = ranges.iter().zip(&inner).map(|(&(_, len), &inner)| if sharded { len / inner.max(1) } else { 1 }).collect();
    let mut problems: Vec<Problem> = Vec::new();
    for cell in coordinates(&counts) {
        let of = cell.iter().zip(ranges.iter().zip(&inner));
        let part = of.map(
            |(&cell, (&(start, len), &inner))| if sharded { start + cell * inner..start + (cell + 1) * inner } else { start..start + len },
        );
        let Err(error) = decode(array, &Selection::ranges(part)) else { continue };
        let problem = problem_of(array, chunk, error)?;
        // A broken index is at fault for all inner chunks at once.
        if problems.last().is_none_or(|last| last.reason != problem.reason || last.chunk != problem.chunk) {
            problems.push(problem);
        }
    }
    if problems.len() > 1
        && problems.iter().all(|problem| problem.reason == problems[0].reason)
        && problems.len() as u64 == counts.iter().product::<u64>()
    {
        problems.truncate(1);
        if let Some(problem) = problems.first_mut() {
            problem.chunk = Some(chunk.to_vec());
        }
    }
    Ok((true, problems))
}

/// A zip archive has a checksum of each value, which reads of parts do not look at.
fn check_value(array: &Array, chunk: &[u64]) -> Result<Vec<Problem>> {
    let AnyStore::Blocking(store) = array.store() else { return Ok(Vec::new()) };
    if !store.name().starts_with("zip") {
        return Ok(Vec::new());
    }
    let read = store.get_pieces(&array.chunk_key(chunk)?, ByteRange::All, &mut vec![0; 1 << 20], &mut |_, _| {});
    read.err().map(|error| problem_of(array, chunk, error.into())).into_iter().collect()
}

fn problem_of(array: &Array, chunk: &[u64], error: ArrayError) -> Result<Problem> {
    let key = array.chunk_key(chunk)?.to_string();
    Ok(match error {
        ArrayError::Chunk { key, chunk, source } => {
            Problem { kind: "undecodable chunk", key: key.to_string(), chunk: Some(chunk), reason: Failure::from(source).line() }
        }
        // A store that fails is no fault of the data, but the chunk could not be read all the same.
        other => Problem { kind: "unreadable chunk", key, chunk: Some(chunk.to_vec()), reason: Failure::from(other).line() },
    })
}

fn decode(array: &Array, selection: &Selection) -> Result<(), ArrayError> {
    let slabs = Slabs::new(array, selection, PIECE).map_err(|failure| ArrayError::Parameter(failure.line()))?;
    for piece in slabs.pieces() {
        let data = array.read(&piece)?;
        if let (DataType::String, Elements::Variable(elements)) = (array.data_type(), &data.elements)
            && let Some(index) = elements.iter().position(|element| std::str::from_utf8(element).is_err())
        {
            return Err(ArrayError::Parameter(format!("string {index} of the chunk is not UTF-8")));
        }
    }
    Ok(())
}

fn print_text(args: &ValidateArgs, report: &Report, context: &Context) -> Result<()> {
    let mut text = String::new();
    for problem in &report.problems {
        let chunk = problem.chunk.as_ref().map(|chunk| format!(" {DIM}chunk {chunk:?}{DIM:#}")).unwrap_or_default();
        let _ = writeln!(text, "{RED}{}{RED:#}  {BOLD}{}{BOLD:#}{chunk}\n    {}", problem.kind, problem.key, problem.reason);
    }
    let seen = format!(
        "{} in {}, {} read",
        units::count(report.chunks, "chunk"),
        units::count(report.arrays, "array"),
        units::bytes(report.bytes)
    );
    let _ = match report.problems.len() as u64 {
        0 => writeln!(text, "{GREEN}{} is valid{GREEN:#}: {seen}", args.path),
        count => writeln!(text, "{RED}{} in {}{RED:#}: {seen}", units::count(count, "problem"), args.path),
    };
    context.print(&text)
}

fn print_json(args: &ValidateArgs, report: &Report, context: &Context) -> Result<()> {
    let problems: Json = report
        .problems
        .iter()
        .map(|problem| {
            json::object()
                .with("kind", problem.kind)
                .with("key", problem.key.as_str())
                .with("chunk", json::optional(problem.chunk.clone()))
                .with("reason", problem.reason.as_str())
        })
        .collect();
    let object = json::object()
        .with("path", args.path.as_str())
        .with("valid", report.problems.is_empty())
        .with("arrays", report.arrays)
        .with("chunks", report.chunks)
        .with("bytes_read", report.bytes)
        .with("problems", problems);
    context.print_json(object)
}

#[cfg(test)]
mod tests {
    use zarr_store::{Fault, FaultyStore, MemoryStore, When};

    use super::*;

    #[test]
    fn a_directory_that_cannot_be_listed_is_one_problem() {
        let faulty = FaultyStore::new(MemoryStore::new());
        let store = AnyStore::blocking(faulty.clone());
        let options = zarr::options();
        let root = zarr::GroupBuilder::new().create(store.clone(), "/", &options).unwrap();
        for name in ["a/b", "c"] {
            root.create_array(name, &zarr::ArrayBuilder::new([2], DataType::Int8)).unwrap();
        }
        faulty.heal();
        // All keys, the root, all below a/, and a/ itself.
        for call in [0, 2, 3] {
            faulty.inject(When::List(call), Fault::Fail(zarr::store_api::StoreErrorKind::Permission));
        }
        let mut report = Report::default();
        let found = check_keys(&store, &NodePath::root(), &options, &mut report).unwrap();
        assert_eq!(found.iter().map(|found| found.array.path().to_string()).collect::<Vec<_>>(), ["/c"]);
        let problems: Vec<_> = report.problems.iter().map(|problem| (problem.kind, problem.key.as_str())).collect();
        assert_eq!(problems, [("unreadable directory", "/a")], "{:?}", report.problems);
    }
}

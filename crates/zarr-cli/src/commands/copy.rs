//! `zarr copy`

use std::time::Instant;

use zarr::meta::{ConsolidatedMetadata, ConsolidatedMetadataV2, GroupMetadataV2, GroupMetadataV3, NodeMetadata, NodeMetadataV2, NodePath};
use zarr::store_api::{AnyStore, StoreKey, StorePrefix};
use zarr::{Array, Group, Node, StoredMetadata, Version};

use crate::codecs::{self, CodecSpec};
use crate::context::{Context, Destination};
use crate::copy::{ArrayCopy, Copied, Digest, Marker, documents, is_stored};
use crate::describe::{Entry, walk_stored};
use crate::error::{Context as _, Failure, Result};
use crate::hierarchy::Hierarchy;
use crate::layout::{Lengths, Relayout, Shards, Target, parse_lengths, parse_shards};
use crate::table::GREEN;
use crate::{json, progress, store, units};

/// Copy an array or a hierarchy, with other chunks, shards, codecs, or another version of the format
///
/// Chunks whose bytes stay the same are copied as they are; others are decoded and encoded region by region, within --memory. Groups are copied with all that is in
/// them; attributes and dimension names stay. Nodes are copied as they are stored, also where consolidated metadata of the source says otherwise; only where the
/// source cannot be listed, that is all there is to go by.
///
/// The destination gets its metadata last, so that a copy that was cut off is not taken for a whole one; --resume goes on where it stopped. A copy into a zip archive
/// takes place whole or not at all. In a hierarchy, groups above it are created where they are missing, and consolidated metadata of the root take it in.
#[derive(Debug, clap::Args)]
pub(crate) struct CopyArgs {
    /// What to copy
    #[arg(value_name = "SRC")]
    pub(crate) source: String,
    /// Where to: a directory, `archive.zip/path`, or a URL
    #[arg(value_name = "DST")]
    pub(crate) destination: String,
    /// Elements of a chunk along each axis: `24,721,all`, or by name, others as they are: `time=24,latitude=all`
    ///
    /// In a hierarchy, lengths without names are for the arrays of as many dimensions.
    #[arg(long, value_parser = parse_lengths, value_name = "N,..")]
    chunks: Option<Lengths>,
    /// Elements of a shard along each axis, in the same forms, or `none`
    #[arg(long, value_parser = parse_shards, value_name = "N,..")]
    shards: Option<Shards>,
    /// Codecs in place of the source's: zstd:5, blosc:lz4:5:shuffle, gzip:6, bitround:10+zstd, none, .., or JSON
    #[arg(long, visible_alias = "compressor", value_parser = codecs::parse)]
    codec: Option<CodecSpec>,
    /// The version of the format [default: the source's]
    #[arg(long, value_parser = parse_version, value_name = "2|3")]
    version: Option<Version>,
    /// Memory to work in, besides some 50 MB for the program itself
    #[arg(long, default_value = "1GiB", value_parser = units::parse_bytes, value_name = "BYTES")]
    memory: u64,
    /// Go on with a copy that was interrupted (or begin one)
    ///
    /// Chunks that are there are not copied again, but for those that are empty, or not as long as those of a local source that are copied as they are: files are not
    /// synced, and may lack bytes after a crash of the machine. `zarr validate` finds others that do.
    #[arg(long, conflicts_with = "overwrite")]
    resume: bool,
    /// Remove what is at the destination first
    #[arg(long)]
    overwrite: bool,
    /// Whether the metadata of a hierarchy is collected in its root; `as-source` also in groups below it that have it so
    #[arg(long, value_enum, default_value_t = Consolidate::AsSource)]
    consolidate: Consolidate,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Consolidate {
    AsSource,
    Yes,
    No,
}

pub(crate) fn parse_version(text: &str) -> Result<Version, String> {
    match text {
        "2" | "v2" => Ok(Version::V2),
        "3" | "v3" => Ok(Version::V3),
        other => Err(format!("`{other}` is not a version of the format: 2 or 3")),
    }
}

/// A node of the copy.
struct Item {
    path: NodePath,
    /// Below the root of the copy, without a leading slash.
    relative: String,
    stored: StoredMetadata,
    array: Option<(Array, Target)>,
    /// Whether the group gets copies of all metadata below it.
    consolidated: bool,
}

pub(crate) fn run(args: &CopyArgs, context: &Context) -> Result<()> {
    let opened = context.open(&args.source, &context.options())?;
    let source = format!("{}{}", store_of(&opened.node).name(), opened.node.path());
    let (entries, missing) = walk_stored(opened.node)?;
    if !missing.is_empty() {
        let missing: Vec<String> = missing.iter().map(|path| format!("/{path}")).collect();
        context.note(&format!("named in consolidated metadata, but not stored, and so not copied: {}", crate::suggest::list(&missing)));
    }
    let destination = context.destination(&args.destination)?;
    let copy = || {
        let root = NodePath::new_v2(&destination.path)?;
        let target = format!("{}{root}", destination.store.name());
        let (from, to) = (place(&source), place(&target));
        if to.starts_with(&from) {
            return Err(Failure::usage("the destination lies in the source"));
        }
        if from.starts_with(&to) {
            // Making way would remove it.
            return Err(Failure::usage("the source lies in the destination"));
        }
        let items = items(args, entries, &root)?;
        let hierarchy = Hierarchy::around(&args.destination, &destination, context)?;
        let mut copy = Copy { args, context, destination: &destination, hierarchy: hierarchy.as_ref(), root, items, source };
        let done = copy.run()?;
        if let Some(hierarchy) = hierarchy {
            hierarchy.consolidate(context);
        }
        Ok(done)
    };
    let done = copy().and_then(|done| destination.finish().map(|()| done));
    match done {
        Ok(done) => done.print(args, context),
        Err(failure) => {
            destination.abandon();
            Err(failure)
        }
    }
}

/// Where a node lies, ending in a slash, with links in local paths followed.
fn place(name: &str) -> String {
    let name = name.trim_end_matches('/');
    let local = name.strip_prefix("file://").and_then(|path| std::fs::canonicalize(path).ok());
    format!("{}/", local.map_or(name.to_owned(), |path| format!("file://{}", path.display())))
}

fn store_of(node: &Node) -> &AnyStore {
    match node {
        Node::Array(array) => array.store(),
        Node::Group(group) => group.store(),
    }
}

/// The nodes of the copy, with their metadata.
fn items(args: &CopyArgs, entries: Vec<Entry>, root: &NodePath) -> Result<Vec<Item>> {
    let relayout = Relayout { chunks: args.chunks.clone(), shards: args.shards.clone(), codecs: args.codec.clone(), version: args.version };
    let alone = entries.len() == 1;
    let mut items = Vec::with_capacity(entries.len());
    for Entry { path: relative, node } in entries {
        let node = node.map_err(|failure| failure.context(format!("cannot open /{relative} of the source")))?;
        let path = NodePath::new_v2(&format!("{}/{relative}", root.to_string().trim_end_matches('/')))?;
        items.push(match node {
            Node::Array(array) => {
                let target = relayout
                    .apply(&array, alone)
                    .map_err(|failure| if alone { failure } else { failure.context(format!("array /{relative}")) })?;
                Item { path, relative, stored: target.stored.clone(), array: Some((*array, target)), consolidated: false }
            }
            Node::Group(group) => {
                let consolidated = match args.consolidate {
                    Consolidate::No => false,
                    Consolidate::Yes => relative.is_empty(),
                    Consolidate::AsSource if relative.is_empty() => group.is_consolidated(),
                    Consolidate::AsSource => is_consolidated(&group)?,
                };
                Item { path, relative, stored: group_metadata(&group, args.version), array: None, consolidated }
            }
        });
    }
    check_names(args, &items)?;
    Ok(items)
}

/// A name that no array has is a mistake.
fn check_names(args: &CopyArgs, items: &[Item]) -> Result<()> {
    let shards = match &args.shards {
        Some(Shards::Of(lengths)) => Some(lengths),
        _ => None,
    };
    let known: Vec<&str> =
        items.iter().filter_map(|item| item.array.as_ref()?.0.dimension_names()).flatten().flatten().map(String::as_str).collect();
    for name in args.chunks.iter().chain(shards).flat_map(Lengths::names) {
        if !known.contains(&name) {
            let failure = Failure::usage(format!("no array has a dimension `{name}`"));
            return Err(match crate::suggest::close(name, known.iter().copied()).first() {
                Some(close) => failure.hint(format!("did you mean `{close}`?")),
                None => failure,
            });
        }
    }
    Ok(())
}

/// Whether a group below the root has copies of all metadata below it. What the root says of the group does not tell.
fn is_consolidated(group: &Group) -> Result<bool> {
    let (store, path) = (group.store(), group.path());
    match group.version() {
        Version::V3 => {
            let document = store::get(store, &StoreKey::new(path.metadata_key())?)?;
            let metadata = document.map(|text| GroupMetadataV3::parse(&text)).transpose()?;
            Ok(metadata.is_some_and(|metadata| metadata.consolidated_metadata.is_some()))
        }
        Version::V2 => Ok(store::size(store, &StorePrefix::new(path.prefix())?.key(".zmetadata")?)?.is_some()),
    }
}

fn group_metadata(group: &Group, version: Option<Version>) -> StoredMetadata {
    let version = version.unwrap_or(group.version());
    match (group.stored_metadata(), version) {
        (StoredMetadata::GroupV3(metadata), Version::V3) => {
            // Copies of metadata are made anew.
            let mut metadata = metadata.clone();
            metadata.consolidated_metadata = None;
            StoredMetadata::GroupV3(metadata)
        }
        (StoredMetadata::GroupV2(metadata), Version::V2) => StoredMetadata::GroupV2(metadata.clone()),
        (_, Version::V3) => StoredMetadata::GroupV3(GroupMetadataV3::new(group.attributes().clone()).into()),
        (_, Version::V2) => StoredMetadata::GroupV2(GroupMetadataV2::new(group.attributes().clone()).into()),
    }
}

struct Copy<'a> {
    args: &'a CopyArgs,
    context: &'a Context,
    destination: &'a Destination,
    hierarchy: Option<&'a Hierarchy>,
    root: NodePath,
    items: Vec<Item>,
    source: String,
}

/// What a copy came to.
struct Done {
    arrays: u64,
    arrays_before: u64,
    copied: Copied,
    decoded: u64,
    seconds: f64,
}

impl Copy<'_> {
    fn run(&mut self) -> Result<Done> {
        let start = Instant::now();
        let store = &self.destination.store;
        consolidate(&mut self.items)?;
        let marker = Marker { source: self.source.clone(), digest: self.digest()? };
        let resumed = self.make_way(&marker)?;
        if let Some(hierarchy) = self.hierarchy {
            hierarchy.make_groups()?;
        }
        let mut done = Done { arrays: 0, arrays_before: 0, copied: Copied::default(), decoded: 0, seconds: 0.0 };
        if let Begun::Whole = resumed {
            done.arrays_before = self.items.iter().filter(|item| item.array.is_some()).count() as u64;
            return Ok(done);
        }
        let resumed = matches!(resumed, Begun::Resumed);
        if resumed {
            self.destination.remove_abandoned()?;
        }
        if self.destination.keeps_partial_work() {
            marker.store(store, &self.root)?;
        }
        let total = self.items.iter().filter_map(|item| item.array.as_ref()).map(|(array, _)| decoded_bytes(array)).sum();
        let progress = progress::bytes(total, self.context.quiet);
        let mut before = 0;
        for item in &self.items {
            let Some((array, target)) = &item.array else { continue };
            progress.set_message(if item.relative.is_empty() { "copying".to_owned() } else { item.relative.clone() });
            let documents = documents(&item.path, &item.stored)?;
            let path = item.path.to_string();
            let copy = ArrayCopy {
                same_chunks: target.same_chunks,
                memory: self.args.memory,
                resume: resumed,
                ..ArrayCopy::new(array, store.clone(), &path, item.stored.clone(), &self.context.options())?
            };
            if resumed && is_stored(store, &documents)? && copy.is_whole(self.context)? {
                done.arrays_before += 1;
            } else {
                let copied = copy.run(self.context, &progress).map_err(|failure| {
                    let failure = self.unfinished(failure);
                    failure.context(format!("cannot copy {}{} to {}{path}", array.store().name(), array.path(), store.name()))
                });
                done.copied.add(copied?);
                self.write(&documents)?;
                done.arrays += 1;
                done.decoded += decoded_bytes(array);
            }
            before += decoded_bytes(array);
            progress.set_position(before);
        }
        // What is inside comes before what is around it, and the root last of all.
        for item in self.items.iter().rev().filter(|item| item.array.is_none()) {
            if item.consolidated && matches!(item.stored, StoredMetadata::GroupV2(_)) {
                let key = StorePrefix::new(item.path.prefix())?.key(".zmetadata")?;
                store::set(store, &key, consolidated_v2(&self.items, item)?.to_bytes())
                    .context(|| format!("cannot store {key} in {}", store.name()))?;
            }
            self.write(&documents(&item.path, &item.stored)?)?;
        }
        progress.finish_and_clear();
        if self.destination.keeps_partial_work() {
            Marker::remove(store, &self.root)?;
        }
        done.seconds = start.elapsed().as_secs_f64();
        Ok(done)
    }

    fn unfinished(&self, failure: Failure) -> Failure {
        if self.destination.keeps_partial_work() {
            return failure.and_hint("what was copied is kept: --resume goes on from there");
        }
        failure
    }

    fn write(&self, documents: &[(StoreKey, Option<Vec<u8>>)]) -> Result<()> {
        let store = &self.destination.store;
        for (key, bytes) in documents {
            match bytes {
                Some(bytes) => store::set(store, key, bytes.clone()),
                None => store::erase(store, key),
            }
            .context(|| format!("cannot store {key} in {}", store.name()))?;
        }
        Ok(())
    }

    /// Tells copies of different sources, or with different settings, apart.
    fn digest(&self) -> Result<u64> {
        let mut digest = Digest::new();
        digest.add(self.source.as_bytes());
        for item in &self.items {
            digest.add(item.relative.as_bytes());
            if let Some((array, _)) = &item.array {
                digest.add(&array.metadata().to_bytes()?);
            }
            for (key, bytes) in documents(&item.path, &item.stored)? {
                digest.add(key.as_str().as_bytes());
                digest.add(&bytes.unwrap_or_default());
            }
        }
        Ok(digest.0)
    }

    /// Finds out what is at the destination, and whether the copy may go there.
    fn make_way(&self, marker: &Marker) -> Result<Begun> {
        let (store, root) = (&self.destination.store, &self.root);
        let name = &self.args.destination;
        if self.args.overwrite {
            // The documents first, so that nobody opens what is half gone.
            for document in ["zarr.json", ".zgroup", ".zarray", ".zattrs", ".zmetadata"] {
                store::erase(store, &StorePrefix::new(root.prefix())?.key(document)?)?;
            }
            store::erase_prefix(store, &StorePrefix::new(root.prefix())?)?;
            return Ok(Begun::Afresh);
        }
        match Marker::load(store, root)? {
            Some(found) if !self.args.resume => {
                return Err(found.in_the_way(name).hint("--resume goes on with it, --overwrite starts again"));
            }
            Some(found) if found.source != marker.source => {
                return Err(
                    Failure::new(format!("the interrupted copy at {name} is one of {}", found.source)).hint("--overwrite starts again")
                );
            }
            Some(found) if found != *marker => {
                return Err(Failure::new(format!(
                    "the interrupted copy at {name} was made with other settings, or the source has changed since"
                ))
                .hint("give the same settings to go on, or --overwrite to start again"));
            }
            Some(_) => return Ok(Begun::Resumed),
            None => {}
        }
        if self.args.resume && self.destination.holds_node()? {
            for item in &self.items {
                if !is_stored(store, &documents(&item.path, &item.stored)?)? {
                    return Err(Failure::new(format!("{name} is a whole array or group already, and not this copy"))
                        .hint("--overwrite removes it first"));
                }
            }
            return Ok(Begun::Whole);
        }
        self.destination.check_vacant(name)?;
        Ok(Begun::Afresh)
    }
}

/// What was found at the destination.
enum Begun {
    Afresh,
    Resumed,
    /// The copy is there already.
    Whole,
}

fn decoded_bytes(array: &Array) -> u64 {
    let item = array.item_size().unwrap_or(64) as u64;
    array.shape().iter().fold(item, |product, &len| product.saturating_mul(len))
}

/// The path of a node from the group that holds it, empty for the group itself; `None` for nodes elsewhere.
fn below<'a>(group: &str, node: &'a str) -> Option<&'a str> {
    match node.strip_prefix(group)? {
        rest if group.is_empty() || rest.is_empty() => Some(rest),
        rest => rest.strip_prefix('/'),
    }
}

/// Puts copies of all metadata below them into the groups that are to have them, where those are of version 3.
fn consolidate(items: &mut [Item]) -> Result<()> {
    let mut copies = Vec::new();
    for (at, group) in items.iter().enumerate().filter(|(_, item)| item.consolidated) {
        let mut all = ConsolidatedMetadata::new();
        for item in items.iter() {
            let Some(relative) = below(&group.relative, &item.relative).filter(|relative| !relative.is_empty()) else { continue };
            let metadata = match &item.stored {
                StoredMetadata::ArrayV3(array) => NodeMetadata::Array(array.clone()),
                StoredMetadata::GroupV3(group) => NodeMetadata::Group(group.clone()),
                StoredMetadata::ArrayV2(_) | StoredMetadata::GroupV2(_) => continue,
            };
            all.insert(relative, &metadata)?;
        }
        copies.push((at, all));
    }
    // The copies in one group have none of those in another.
    for (at, all) in copies {
        if let Some(Item { stored: StoredMetadata::GroupV3(group), .. }) = items.get_mut(at) {
            group.consolidated_metadata = Some(all);
        }
    }
    Ok(())
}

/// The `.zmetadata` of a group of version 2.
fn consolidated_v2(items: &[Item], group: &Item) -> Result<ConsolidatedMetadataV2> {
    let mut all = ConsolidatedMetadataV2::new();
    for item in items {
        let Some(relative) = below(&group.relative, &item.relative) else { continue };
        let metadata = match &item.stored {
            StoredMetadata::ArrayV2(array) => NodeMetadataV2::Array(array.clone()),
            StoredMetadata::GroupV2(group) => NodeMetadataV2::Group(group.clone()),
            StoredMetadata::ArrayV3(_) | StoredMetadata::GroupV3(_) => continue,
        };
        all.insert(&NodePath::new_v2(relative)?, &metadata)?;
    }
    Ok(all)
}

impl Done {
    fn print(&self, args: &CopyArgs, context: &Context) -> Result<()> {
        let Copied { as_they_are, encoded, skipped } = self.copied;
        if context.json {
            let object = json::object()
                .with("source", args.source.as_str())
                .with("destination", args.destination.as_str())
                .with("arrays", self.arrays)
                .with("arrays_already_there", self.arrays_before)
                .with("chunks_copied", as_they_are)
                .with("chunks_encoded", encoded)
                .with("chunks_already_there", skipped)
                .with("decoded_bytes", self.decoded)
                .with("seconds", self.seconds);
            return context.print_json(object);
        }
        if context.quiet {
            return Ok(());
        }
        if self.arrays == 0 && self.arrays_before > 0 {
            let there = units::count(self.arrays_before, "array");
            return context.print(&format!("{GREEN}nothing left to copy{GREEN:#}: {there} of {there} at {} already\n", args.destination));
        }
        let mut parts = Vec::new();
        let same = if as_they_are == 1 { "copied as it is" } else { "copied as they are" };
        for (count, what) in [(as_they_are, same), (encoded, "stored anew"), (skipped, "there already")] {
            if count > 0 {
                parts.push(format!("{} {what}", units::count(count, "chunk")));
            }
        }
        if self.arrays_before > 0 {
            parts.push(format!("{} there already", units::count(self.arrays_before, "array")));
        }
        let parts = if parts.is_empty() { String::new() } else { format!(": {}", parts.join(", ")) };
        let time = std::time::Duration::from_secs_f64(self.seconds);
        let rate = if self.decoded > 0 { format!(", {} in {}", units::bytes(self.decoded), units::duration(time)) } else { String::new() };
        context.print(&format!("{GREEN}{} copied{GREEN:#} to {}{parts}{rate}\n", units::count(self.arrays, "array"), args.destination))
    }
}

//! The hierarchy that a new node becomes part of.

use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

use zarr::meta::NodePath;
use zarr::store::FilesystemStore;
use zarr::{Group, Node, Options, Version};

use crate::context::{Context, Destination, archive};
use crate::copy::Marker;
use crate::error::{Failure, Result};
use crate::suggest::is_node;

/// The group at the root of a hierarchy, and the way from there to a new node.
pub(crate) struct Hierarchy {
    root: Group,
    relative: String,
}

impl Hierarchy {
    /// The hierarchy around a place; `None` where there is none, and for stores that are no directories: nobody asks what is above a URL.
    pub(crate) fn around(url: &str, destination: &Destination, options: &Options) -> Result<Option<Self>> {
        let (opened, root, relative) = if let Some((file, inside)) = archive(url) {
            (Node::open(destination.store.clone(), "/", options), PathBuf::from(file), inside.trim_start_matches('/').to_owned())
        } else {
            // As the store has it: a URL is more than a path behind its scheme.
            let name = destination.store.name();
            let Some(place) = name.strip_prefix("file://").and_then(|path| resolved(Path::new(path))) else { return Ok(None) };
            let above = place.ancestors().skip(1).skip_while(|path| !is_node(path)).take_while(|path| is_node(path));
            let Some(root) = above.last() else { return Ok(None) };
            let Ok(below) = place.strip_prefix(root) else { return Ok(None) };
            let names: Option<Vec<&str>> = below.iter().map(OsStr::to_str).collect();
            let Some(names) = names else { return Ok(None) };
            (Node::open(FilesystemStore::new(root)?, "/", options), root.to_owned(), names.join("/"))
        };
        match opened {
            _ if relative.is_empty() => Ok(None),
            Ok(Node::Group(root)) => Ok(Some(Self { root: *root, relative })),
            Ok(Node::Array(_)) => Err(Failure::usage(format!("{} is an array, and nothing can be below one", root.display()))),
            // Whatever is wrong with it does not hinder what is below.
            Err(_) => Ok(None),
        }
    }

    pub(crate) fn version(&self) -> Version {
        self.root.version()
    }

    /// Creates the groups between, where they are missing. An interrupted copy on the way would be taken for a whole one.
    pub(crate) fn make_groups(&self) -> Result<()> {
        for (end, _) in self.relative.match_indices('/') {
            let above = self.relative.get(..end).unwrap_or_default();
            if let Some(copy) = Marker::load(self.root.store(), &NodePath::new_v2(&format!("/{above}"))?)? {
                return Err(copy.in_the_way(above).hint("`zarr copy --resume` goes on with it"));
            }
        }
        let (above, _) = self.relative.rsplit_once('/').unwrap_or_default();
        self.root.require_group(above)?;
        Ok(())
    }

    /// Puts the new node into the metadata that are consolidated in the root, if they are.
    pub(crate) fn consolidate(&self, context: &Context) {
        // The root as it is now: a copy takes long.
        let root = Group::open(self.root.store().clone(), "/", &context.options());
        if let Err(error) = root.and_then(|mut root| if root.is_consolidated() { root.consolidate() } else { Ok(()) }) {
            context.note(&format!("consolidated metadata of {} lack it: {error}", self.root.store().name()));
        }
    }
}

/// A local path with links and `..` resolved, of which the end need not exist yet.
fn resolved(path: &Path) -> Option<PathBuf> {
    let path = std::path::absolute(path).ok()?;
    let (there, rest) = path.ancestors().find_map(|above| Some((above.canonicalize().ok()?, path.strip_prefix(above).ok()?)))?;
    rest.components().all(|part| matches!(part, Component::Normal(_))).then(|| there.join(rest))
}

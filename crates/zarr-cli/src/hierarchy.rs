//! The hierarchy that a new node becomes part of.

use std::path::{Component, Path, PathBuf};

use zarr::store::FilesystemStore;
use zarr::{Group, Node, Options, Version};

use crate::context::{Context, Destination, archive, is_remote};
use crate::error::{Failure, Result};
use crate::suggest::is_node;

/// The group at the root of a hierarchy, and the way from there to a new node.
pub(crate) struct Hierarchy {
    root: Group,
    relative: String,
}

impl Hierarchy {
    /// The hierarchy around a place; `None` where there is none, and for remote stores, which nobody asks what is above a URL.
    pub(crate) fn around(url: &str, destination: &Destination, options: &Options) -> Result<Option<Self>> {
        let (opened, root, relative) = if let Some((file, inside)) = archive(url) {
            (Node::open(destination.store.clone(), "/", options), PathBuf::from(file), inside.trim_start_matches('/').to_owned())
        } else if is_remote(url) {
            return Ok(None);
        } else {
            let Some(place) = resolved(Path::new(url.strip_prefix("file://").unwrap_or(url))) else { return Ok(None) };
            let above = place.ancestors().skip(1).skip_while(|path| !is_node(path)).take_while(|path| is_node(path));
            let Some(root) = above.last() else { return Ok(None) };
            let Some(relative) = place.strip_prefix(root).ok().and_then(Path::to_str) else { return Ok(None) };
            (Node::open(FilesystemStore::new(root)?, "/", options), root.to_owned(), relative.to_owned())
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

    /// Creates the groups between, where they are missing.
    pub(crate) fn make_groups(&self) -> Result<()> {
        let (above, _) = self.relative.rsplit_once('/').unwrap_or_default();
        self.root.require_group(above)?;
        Ok(())
    }

    /// Puts the new node into the metadata that are consolidated in the root, if they are.
    pub(crate) fn consolidate(mut self, context: &Context) {
        if self.root.is_consolidated()
            && let Err(error) = self.root.consolidate()
        {
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

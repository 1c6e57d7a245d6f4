//! The hierarchy that a new node becomes part of.

use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

use zarr::meta::NodePath;
use zarr::store::{FilesystemStore, local_archive};
use zarr::store_api::{AnyStore, StoreKey};
use zarr::{Group, Node, Version};

use crate::context::{Context, Destination, is_remote};
use crate::copy::Marker;
use crate::error::{Failure, Result};
use crate::store;
use crate::suggest::{DOCUMENTS, is_node};

/// The group at the root of a hierarchy, and the way from there to a new node.
pub(crate) struct Hierarchy {
    root: Group,
    relative: String,
}

impl Hierarchy {
    /// The hierarchy around a place; `None` where there is none.
    pub(crate) fn around(url: &str, destination: &Destination, context: &Context) -> Result<Option<Self>> {
        let options = &context.options();
        let (opened, relative) = if let Some((_, inside)) = local_archive(url)? {
            (Node::open(destination.store.clone(), "/", options), inside.trim_start_matches('/').to_owned())
        } else if is_remote(url) {
            match above_url(url, context) {
                Ok(Some((store, relative))) => (Node::open(store, "/", options), relative),
                Ok(None) => return Ok(None),
                Err(failure) => {
                    let unknown = "whether it is in a hierarchy cannot be found out, whose consolidated metadata would lack it";
                    context.note(&format!("{unknown}: {}", failure.line()));
                    return Ok(None);
                }
            }
        } else {
            // As the store has it: a URL is more than a path behind its scheme.
            let name = destination.store.name();
            let Some(place) = name.strip_prefix("file://").and_then(|path| resolved(Path::new(path))) else { return Ok(None) };
            let above = place.ancestors().skip(1).skip_while(|path| !is_node(path)).take_while(|path| is_node(path));
            let Some(root) = above.last() else { return Ok(None) };
            let Ok(below) = place.strip_prefix(root) else { return Ok(None) };
            let names: Option<Vec<&str>> = below.iter().map(OsStr::to_str).collect();
            let Some(names) = names else { return Ok(None) };
            (Node::open(FilesystemStore::new(root)?, "/", options), names.join("/"))
        };
        match opened {
            _ if relative.is_empty() => Ok(None),
            Ok(Node::Group(root)) => Ok(Some(Self { root: *root, relative })),
            Ok(Node::Array(array)) => Err(Failure::usage(format!("{} is an array, and nothing can be below one", array.store().name()))),
            // Whatever is wrong with it does not hinder what is below.
            Err(error) => {
                context.note(&format!("the hierarchy around it cannot be opened, so that its consolidated metadata may lack it: {error}"));
                Ok(None)
            }
        }
    }

    pub(crate) fn version(&self) -> Version {
        self.root.version()
    }

    /// Creates the groups between, where they are missing. An interrupted copy on the way would be taken for a whole one.
    pub(crate) fn make_groups(&self) -> Result<()> {
        if self.version() == Version::V3 {
            // The name of the node itself is none to its own store, whose root it is.
            NodePath::new(&format!("/{}", self.relative))?;
        }
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
            context.note(&format!("the consolidated metadata of {} lack it: {error}", self.root.store().name()));
        }
    }
}

/// The topmost store on an unbroken way of nodes above a URL, and the path from there to the URL.
fn above_url(url: &str, context: &Context) -> Result<Option<(AnyStore, String)>> {
    let url = url.trim_end_matches('/');
    let Some(host) = url.find("://").map(|scheme| scheme + 3) else { return Ok(None) };
    let mut found = None;
    for (at, _) in url.rmatch_indices('/').take_while(|(at, _)| *at >= host) {
        let (above, below) = (url.get(..at).unwrap_or_default(), url.get(at + 1..).unwrap_or_default());
        let Some(relative) = decoded(below) else { return Ok(None) };
        let store = context.store_to_write(above)?;
        match holds_node(&store) {
            Ok(true) => found = Some((store, relative)),
            // What lies above what may be looked at is the business of others.
            Ok(false) | Err(_) if found.is_some() => break,
            Ok(false) => {}
            Err(failure) => return Err(failure),
        }
    }
    Ok(found)
}

fn holds_node(store: &AnyStore) -> Result<bool> {
    for document in DOCUMENTS {
        if store::size(store, &StoreKey::new(document)?)?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The path in a part of a URL, where `%` stands for itself nowhere.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let mut digit = || char::from(rest.next()?).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        bytes.push(if byte == b'%' { digit()? << 4 | digit()? } else { byte });
    }
    String::from_utf8(bytes).ok()
}

/// A local path with links and `..` resolved, of which the end need not exist yet.
fn resolved(path: &Path) -> Option<PathBuf> {
    let path = std::path::absolute(path).ok()?;
    let (there, rest) = path.ancestors().find_map(|above| Some((above.canonicalize().ok()?, path.strip_prefix(above).ok()?)))?;
    rest.components().all(|part| matches!(part, Component::Normal(_))).then(|| there.join(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_in_urls() {
        assert_eq!(decoded("the%20whole/caf%C3%A9").as_deref(), Some("the whole/café"));
        for wrong in ["100%", "a%2", "%zz", "%FF"] {
            assert_eq!(decoded(wrong), None, "{wrong}");
        }
    }
}

//! The hierarchy of `ci/interop/tree.json`: groups, attributes, names, dimension names, consolidated metadata.

use std::collections::BTreeMap;
use std::path::Path;

use zarr_array::{ArrayBuilder, Group, GroupBuilder, Node, Options, Selection, Version};
use zarr_meta::{DataType, Json, JsonObject};
use zarr_store::FilesystemStore;
use zarr_store_api::AnyStore;

use crate::Failure;

/// The hierarchy, as the file has it.
pub(crate) struct Tree(Json);

/// The four forms in which it is stored.
pub(crate) const VARIANTS: [(&str, Version, bool); 4] = [
    ("v2", Version::V2, false),
    ("v2-consolidated", Version::V2, true),
    ("v3", Version::V3, false),
    ("v3-consolidated", Version::V3, true),
];

impl Tree {
    pub(crate) fn load(path: &Path) -> Result<Self, Failure> {
        Ok(Self(Json::parse(&std::fs::read(path)?)?))
    }

    fn nodes(&self) -> Result<BTreeMap<&str, &Json>, Failure> {
        let nodes = self.0.get("nodes").and_then(Json::as_array).ok_or_else(missing)?;
        nodes.iter().map(|node| Ok((node.get("path").and_then(Json::as_str).ok_or_else(missing)?, node))).collect()
    }

    /// Writes it below `root`.
    pub(crate) fn write(&self, root: &Path, version: Version, consolidated: bool, options: &Options) -> Result<(), Failure> {
        let store = AnyStore::blocking(FilesystemStore::new(root)?);
        let mut group = GroupBuilder::new().attributes(attributes(&self.0)?).version(version).create(store, "/", options)?;
        for (path, node) in self.nodes()? {
            let Some(shape) = lengths(node, "shape") else {
                group.create_group(path, &GroupBuilder::new().attributes(attributes(node)?))?;
                continue;
            };
            let mut builder = ArrayBuilder::new(shape, DataType::Int32)
                .chunks(lengths(node, "chunks").ok_or_else(missing)?)
                .attributes(attributes(node)?);
            if version == Version::V3 {
                builder = builder.optional_dimension_names(names(node));
            }
            let array = group.create_array(path, &builder)?;
            array.write_elements(&Selection::all(), &values(array.shape()))?;
        }
        if consolidated {
            group.consolidate()?;
        }
        Ok(())
    }

    /// Reads it from below `root`, and compares.
    pub(crate) fn read(&self, root: &Path, version: Version, consolidated: bool, options: &Options) -> Result<(), Failure> {
        let store = AnyStore::blocking(FilesystemStore::new(root)?);
        let group = Group::open(store, "/", options)?;
        same(&group.version(), &version, "the version")?;
        same(&group.is_consolidated(), &consolidated, "whether it is consolidated")?;
        same_attributes(group.attributes(), &self.0, "the root")?;
        let mut expected = self.nodes()?;
        for found in group.walk()? {
            let found = found?;
            let path = found.path().key("");
            let path = path.trim_end_matches('/');
            let node = expected.remove(path).ok_or_else(|| Failure::Differs(format!("there is a node {path}")))?;
            same_attributes(found.attributes(), node, path)?;
            match (found, lengths(node, "shape")) {
                (Node::Group(_), None) => (),
                (Node::Array(array), Some(shape)) => {
                    same(&array.shape(), &&shape[..], &format!("the shape of {path}"))?;
                    same(&array.read_elements::<i32>(&Selection::all())?, &values(&shape), &format!("the values of {path}"))?;
                    if version == Version::V3 {
                        let found = array.dimension_names().unwrap_or_default().to_vec();
                        same(&found, &names(node).unwrap_or_default(), &format!("the dimension names of {path}"))?;
                    }
                }
                (found, _) => return Err(Failure::Differs(format!("{} is of the other kind", found.path()))),
            }
        }
        same(&expected.keys().next(), &None, "the nodes that are missing")
    }
}

fn missing() -> Failure {
    Failure::Refuses("the tree lacks a key".into())
}

fn attributes(node: &Json) -> Result<JsonObject, Failure> {
    node.get("attributes").and_then(Json::as_object).cloned().ok_or_else(missing)
}

fn lengths(node: &Json, key: &str) -> Option<Vec<u64>> {
    node.get(key)?.as_array()?.iter().map(Json::as_u64).collect()
}

fn names(node: &Json) -> Option<Vec<Option<String>>> {
    let names = node.get("dimension_names")?.as_array()?;
    Some(names.iter().map(|name| name.as_str().map(ToOwned::to_owned)).collect())
}

fn values(shape: &[u64]) -> Vec<i32> {
    (1..).take(shape.iter().product::<u64>() as usize).collect()
}

fn same_attributes(found: &JsonObject, node: &Json, name: &str) -> Result<(), Failure> {
    same(found, &attributes(node)?, &format!("the attributes of {name}"))
}

fn same<T: PartialEq + std::fmt::Debug>(found: &T, expected: &T, what: &str) -> Result<(), Failure> {
    if found == expected { Ok(()) } else { Err(Failure::Differs(format!("{what}: {found:?} instead of {expected:?}"))) }
}

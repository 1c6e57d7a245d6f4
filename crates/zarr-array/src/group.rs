//! Groups and hierarchies.

use std::collections::BTreeMap;
use std::sync::Arc;

use zarr_meta::{ConsolidatedMetadata, ConsolidatedMetadataV2, JsonObject, NodeMetadataV2, NodePath};
use zarr_store_api::{AnyStore, StoreError, StoreErrorKind};

use crate::array::node_path;
use crate::create::{erase, new_path};
use crate::node::{self, Consolidated, Documents, StoredMetadata, Version};
use crate::storage::{Storage, block_on};
use crate::{Array, ArrayBuilder, ArrayError, GroupBuilder, Options};

/// A Zarr group, of either version. Cheap to clone; clones share the store.
///
/// A group with consolidated metadata is walked without listing the store. What is created, changed or removed below it later is not in them before the next
/// [`Group::consolidate`].
#[derive(Debug, Clone)]
pub struct Group {
    storage: Storage,
    path: NodePath,
    stored: Arc<StoredMetadata>,
    /// Of this group, or of one above it, with this group's place in it.
    consolidated: Option<(Arc<Consolidated>, NodePath)>,
    options: Options,
}

/// A node of a hierarchy.
#[derive(Debug, Clone)]
pub enum Node {
    /// An array.
    Array(Box<Array>),
    /// A group.
    Group(Box<Group>),
}

impl Node {
    /// Opens whatever is at `path`.
    ///
    /// # Errors
    /// [`ArrayError::NotFound`] when there is nothing; [`ArrayError::Metadata`] and [`ArrayError::Codecs`] when it cannot be understood.
    pub fn open(store: impl Into<AnyStore>, path: &str, options: &Options) -> Result<Self, ArrayError> {
        block_on(Self::open_async(store, path, options))
    }

    /// As [`Node::open`].
    ///
    /// # Errors
    /// As [`Node::open`].
    pub async fn open_async(store: impl Into<AnyStore>, path: &str, options: &Options) -> Result<Self, ArrayError> {
        let (storage, path) = (Storage(store.into()), node_path(path)?);
        let Some(stored) = node::load(&storage, &path).await? else {
            return Err(ArrayError::NotFound { what: "node", path: path.to_string(), store: storage.name() });
        };
        if stored.is_array() {
            return Ok(Self::Array(Array::from_stored(storage, path, stored, options)?.into()));
        }
        Ok(Self::Group(Group::from_stored(storage, path, stored, options).await?.into()))
    }

    /// Where the node lies in its store.
    pub fn path(&self) -> &NodePath {
        match self {
            Self::Array(array) => array.path(),
            Self::Group(group) => &group.path,
        }
    }

    /// The user's attributes.
    pub fn attributes(&self) -> &JsonObject {
        match self {
            Self::Array(array) => array.attributes(),
            Self::Group(group) => group.attributes(),
        }
    }

    /// The array, if it is one.
    pub fn into_array(self) -> Option<Array> {
        match self {
            Self::Array(array) => Some(*array),
            Self::Group(_) => None,
        }
    }
}

impl Group {
    /// Opens the group at `path` (`/` for the root).
    ///
    /// # Errors
    /// [`ArrayError::NotFound`] when there is none; [`ArrayError::Metadata`] when it cannot be understood.
    pub fn open(store: impl Into<AnyStore>, path: &str, options: &Options) -> Result<Self, ArrayError> {
        block_on(Self::open_async(store, path, options))
    }

    /// As [`Group::open`].
    ///
    /// # Errors
    /// As [`Group::open`].
    pub async fn open_async(store: impl Into<AnyStore>, path: &str, options: &Options) -> Result<Self, ArrayError> {
        let (storage, path) = (Storage(store.into()), node_path(path)?);
        match node::load(&storage, &path).await? {
            Some(stored) if !stored.is_array() => Self::from_stored(storage, path, stored, options).await,
            found => {
                let what = if found.is_some() { "group, but an array," } else { "group" };
                Err(ArrayError::NotFound { what, path: path.to_string(), store: storage.name() })
            }
        }
    }

    async fn from_stored(storage: Storage, path: NodePath, stored: StoredMetadata, options: &Options) -> Result<Self, ArrayError> {
        let consolidated = node::load_consolidated(&storage, &path, &stored).await?;
        let consolidated = consolidated.map(|all| (Arc::new(all), path.clone()));
        Ok(Self { storage, path, stored: Arc::new(stored), consolidated, options: options.clone() })
    }

    /// A group that was just stored: nothing is consolidated.
    pub(crate) fn created(storage: Storage, path: NodePath, stored: StoredMetadata, options: &Options) -> Self {
        Self { storage, path, stored: Arc::new(stored), consolidated: None, options: options.clone() }
    }

    /// Where the group lies in its store.
    pub fn path(&self) -> &NodePath {
        &self.path
    }

    /// The store.
    pub fn store(&self) -> &AnyStore {
        &self.storage.0
    }

    /// The version of the format.
    pub fn version(&self) -> Version {
        self.stored.version()
    }

    /// The metadata as it is stored.
    pub fn stored_metadata(&self) -> &StoredMetadata {
        &self.stored
    }

    /// The user's attributes.
    pub fn attributes(&self) -> &JsonObject {
        self.stored.attributes()
    }

    /// What its arrays are read and written with.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Whether the hierarchy's metadata is at hand in one document.
    pub fn is_consolidated(&self) -> bool {
        self.consolidated.is_some()
    }

    /// The group as it is without consolidated metadata: whatever is below it is looked up in the store, one document at a time, and as it is now.
    pub fn without_consolidated(&self) -> Self {
        Self { consolidated: None, ..self.clone() }
    }

    /// The node at `relative`, a name or a path below this group.
    ///
    /// # Errors
    /// As [`Node::open`].
    pub fn get(&self, relative: &str) -> Result<Node, ArrayError> {
        block_on(self.get_async(relative))
    }

    /// As [`Group::get`].
    ///
    /// # Errors
    /// As [`Group::get`].
    pub async fn get_async(&self, relative: &str) -> Result<Node, ArrayError> {
        let path = self.below(relative)?;
        let known = self.consolidated_node(&path)?;
        let stored = match known {
            Some(stored) => Some(stored),
            None => node::load(&self.storage, &path).await?,
        };
        let stored = stored.ok_or_else(|| ArrayError::NotFound { what: "node", path: path.to_string(), store: self.storage.name() })?;
        self.open_stored(path, stored)
    }

    /// The array at `relative`.
    ///
    /// # Errors
    /// [`ArrayError::NotFound`] when there is none; otherwise as [`Node::open`].
    pub fn array(&self, relative: &str) -> Result<Array, ArrayError> {
        block_on(self.array_async(relative))
    }

    /// As [`Group::array`].
    ///
    /// # Errors
    /// As [`Group::array`].
    pub async fn array_async(&self, relative: &str) -> Result<Array, ArrayError> {
        let node = self.get_async(relative).await?;
        let path = node.path().to_string();
        node.into_array().ok_or_else(|| ArrayError::NotFound { what: "array, but a group,", path, store: self.storage.name() })
    }

    fn open_stored(&self, path: NodePath, stored: StoredMetadata) -> Result<Node, ArrayError> {
        if stored.is_array() {
            return Ok(Node::Array(Array::from_stored(self.storage.clone(), path, stored, &self.options)?.into()));
        }
        Ok(Node::Group(Box::new(Self {
            storage: self.storage.clone(),
            path,
            stored: Arc::new(stored),
            consolidated: self.consolidated.clone(),
            options: self.options.clone(),
        })))
    }

    fn below(&self, relative: &str) -> Result<NodePath, ArrayError> {
        let relative = relative.trim_matches('/');
        if relative.is_empty() {
            Ok(self.path.clone())
        } else {
            node_path(&format!("{}/{relative}", self.path.to_string().trim_end_matches('/')))
        }
    }

    fn consolidated_node(&self, path: &NodePath) -> Result<Option<StoredMetadata>, ArrayError> {
        let Some((all, root)) = &self.consolidated else { return Ok(None) };
        let Some(relative) = path.relative_to(root) else { return Ok(None) };
        let wrong = |source| ArrayError::Metadata { key: format!("consolidated metadata of {root}, {relative}"), source };
        all.node(relative).map_err(wrong)
    }

    /// The names of the nodes directly below, and of what may be one but permission to look is lacking.
    ///
    /// # Errors
    /// When the store fails, or can neither be listed nor has consolidated metadata.
    pub fn names(&self) -> Result<Vec<String>, ArrayError> {
        block_on(self.names_async())
    }

    /// As [`Group::names`].
    ///
    /// # Errors
    /// As [`Group::names`].
    pub async fn names_async(&self) -> Result<Vec<String>, ArrayError> {
        if let Some((all, root)) = &self.consolidated {
            let own = self.path.relative_to(root).unwrap_or_default();
            let inside = |path: &String| -> Option<String> {
                let rest = if own.is_empty() { path.as_str() } else { path.strip_prefix(own)?.strip_prefix('/')? };
                (!rest.is_empty() && !rest.contains('/')).then(|| rest.to_owned())
            };
            let mut names: Vec<String> = all.paths().iter().filter_map(inside).collect();
            names.sort_unstable();
            names.dedup();
            return Ok(names);
        }
        let listing = self.storage.list_dir(&node::prefix(&self.path)?).await.map_err(|error| match self.storage.0.is_listable() {
            true => error,
            false => StoreError::unsupported(format!(
                "{} cannot be listed, and the group {} has no consolidated metadata that names what is in it",
                self.storage.name(),
                self.path
            )),
        })?;
        let mut names = Vec::new();
        for prefix in listing.prefixes {
            let Some(name) = prefix.name() else { continue };
            // A prefix may be a folder of chunks or of anything else: only a metadata document makes a node.
            let Ok(path) = self.below(name) else { continue };
            let mut found = false;
            for document in ["zarr.json", ".zarray", ".zgroup"] {
                found = found
                    || match self.storage.size(&node::key(&path, document)?).await {
                        // Whether there is a node, only opening it can tell.
                        Err(error) if error.kind() == StoreErrorKind::Permission => true,
                        size => size?.is_some(),
                    };
            }
            if found {
                names.push(name.to_owned());
            }
        }
        Ok(names)
    }

    /// The nodes directly below, in the order of their names; for one that cannot be opened the error of [`Group::get`], so that it does not hide the others.
    ///
    /// # Errors
    /// As [`Group::names`].
    pub fn children(&self) -> Result<Vec<Result<Node, ArrayError>>, ArrayError> {
        block_on(self.children_async())
    }

    /// As [`Group::children`].
    ///
    /// # Errors
    /// As [`Group::children`].
    pub async fn children_async(&self) -> Result<Vec<Result<Node, ArrayError>>, ArrayError> {
        let mut children = Vec::new();
        for name in self.names_async().await? {
            children.push(self.get_async(&name).await);
        }
        Ok(children)
    }

    /// All nodes below, each before those below it; for one that cannot be opened, and behind a group whose nodes cannot be named, the error.
    ///
    /// # Errors
    /// As [`Group::children`].
    pub fn walk(&self) -> Result<Vec<Result<Node, ArrayError>>, ArrayError> {
        block_on(self.walk_async())
    }

    /// As [`Group::walk`].
    ///
    /// # Errors
    /// As [`Group::walk`].
    pub async fn walk_async(&self) -> Result<Vec<Result<Node, ArrayError>>, ArrayError> {
        let mut nodes = Vec::new();
        let mut next = self.children_async().await?;
        next.reverse();
        while let Some(node) = next.pop() {
            if let Ok(Node::Group(group)) = &node {
                match group.children_async().await {
                    Ok(children) => next.extend(children.into_iter().rev()),
                    Err(error) => next.push(Err(error)),
                }
            }
            nodes.push(node);
        }
        Ok(nodes)
    }

    /// The group at `relative`, a name or a path below this group. It and those on the way are created where they are missing, of the same version.
    ///
    /// # Errors
    /// [`ArrayError::Exists`] when there is an array, or one on the way; when the store fails.
    pub fn require_group(&self, relative: &str) -> Result<Self, ArrayError> {
        block_on(self.require_group_async(relative))
    }

    /// As [`Group::require_group`].
    ///
    /// # Errors
    /// As [`Group::require_group`].
    pub async fn require_group_async(&self, relative: &str) -> Result<Self, ArrayError> {
        new_path(&self.below(relative)?.to_string(), self.version())?;
        let mut group = self.clone();
        for name in relative.split('/').filter(|name| !name.is_empty()) {
            group.path = group.below(name)?;
            let (stored, consolidated) = match node::load(&self.storage, &group.path).await? {
                Some(array) if array.is_array() => return Err(ArrayError::exists(&array, &group.path, &self.storage)),
                Some(stored) => (stored, group.consolidated),
                None => {
                    let stored = GroupBuilder::new().version(self.version()).metadata();
                    node::store(&self.storage, &group.path, &stored).await?;
                    (stored, None)
                }
            };
            (group.stored, group.consolidated) = (Arc::new(stored), consolidated);
        }
        Ok(group)
    }

    /// The groups between this one and a node that is to be created.
    async fn require_above(&self, relative: &str) -> Result<(), ArrayError> {
        let (above, _) = relative.trim_matches('/').rsplit_once('/').unwrap_or_default();
        self.require_group_async(above).await.map(drop)
    }

    /// Creates a group below this one, of the same version, and the groups between where they are missing.
    ///
    /// # Errors
    /// As [`GroupBuilder::create`] and [`Group::require_group`].
    pub fn create_group(&self, relative: &str, builder: &GroupBuilder) -> Result<Self, ArrayError> {
        block_on(self.create_group_async(relative, builder))
    }

    /// As [`Group::create_group`].
    ///
    /// # Errors
    /// As [`Group::create_group`].
    pub async fn create_group_async(&self, relative: &str, builder: &GroupBuilder) -> Result<Self, ArrayError> {
        let path = new_path(&self.below(relative)?.to_string(), self.version())?;
        self.require_above(relative).await?;
        builder.clone().version(self.version()).create_async(self.storage.0.clone(), &path.to_string(), &self.options).await
    }

    /// Creates an array below this group, of the same version, and the groups between where they are missing.
    ///
    /// # Errors
    /// As [`ArrayBuilder::create`] and [`Group::require_group`].
    pub fn create_array(&self, relative: &str, builder: &ArrayBuilder) -> Result<Array, ArrayError> {
        block_on(self.create_array_async(relative, builder))
    }

    /// As [`Group::create_array`].
    ///
    /// # Errors
    /// As [`ArrayBuilder::create`].
    pub async fn create_array_async(&self, relative: &str, builder: &ArrayBuilder) -> Result<Array, ArrayError> {
        let path = new_path(&self.below(relative)?.to_string(), self.version())?;
        let builder = builder.clone().version(self.version());
        // What does not hold together is told before any group is made for it.
        Array::from_stored(self.storage.clone(), path.clone(), builder.metadata()?, &self.options)?;
        self.require_above(relative).await?;
        builder.create_async(self.storage.0.clone(), &path.to_string(), &self.options).await
    }

    /// Takes over what was changed of the group's own stored metadata since it was opened. Consolidated metadata of a group above stay as they were read.
    ///
    /// # Errors
    /// As [`Group::open`]; then nothing changed here.
    pub fn refresh(&mut self) -> Result<(), ArrayError> {
        block_on(self.refresh_async())
    }

    /// As [`Group::refresh`].
    ///
    /// # Errors
    /// As [`Group::refresh`].
    pub async fn refresh_async(&mut self) -> Result<(), ArrayError> {
        let mut group = Self::open_async(self.store().clone(), &self.path.to_string(), &self.options).await?;
        if let Some((_, root)) = &self.consolidated
            && *root != self.path
        {
            group.consolidated = self.consolidated.take();
        }
        *self = group;
        Ok(())
    }

    /// Replaces the attributes, in the store and here, after a [`refresh`](Group::refresh).
    ///
    /// # Errors
    /// When the group is no longer there, or the store fails; then the attributes are as they were.
    pub fn set_attributes(&mut self, attributes: JsonObject) -> Result<(), ArrayError> {
        block_on(self.set_attributes_async(attributes))
    }

    /// As [`Group::set_attributes`].
    ///
    /// # Errors
    /// As [`Group::set_attributes`].
    pub async fn set_attributes_async(&mut self, attributes: JsonObject) -> Result<(), ArrayError> {
        self.update_attributes_async(|own| *own = attributes).await
    }

    /// Changes some of the attributes, in the store and here, as they are after a [`refresh`](Group::refresh).
    ///
    /// # Errors
    /// As [`Group::set_attributes`].
    pub fn update_attributes(&mut self, change: impl FnOnce(&mut JsonObject)) -> Result<(), ArrayError> {
        block_on(self.update_attributes_async(change))
    }

    /// As [`Group::update_attributes`].
    ///
    /// # Errors
    /// As [`Group::update_attributes`].
    pub async fn update_attributes_async(&mut self, change: impl FnOnce(&mut JsonObject)) -> Result<(), ArrayError> {
        self.refresh_async().await?;
        let mut stored = (*self.stored).clone();
        change(stored.attributes_mut());
        node::store(&self.storage, &self.path, &stored).await?;
        self.stored = Arc::new(stored);
        Ok(())
    }

    /// Collects the metadata of every node below and stores it with this group, so that the hierarchy opens with one request.
    ///
    /// The stored hierarchy is walked, not what an earlier consolidation says of it; but nodes that this group's earlier one names, and that no group leads to,
    /// stay in it while they are stored. Documents are copied as they are: an array whose codecs or data type nobody here knows is among them.
    ///
    /// # Errors
    /// As [`Group::names`]; when a document is no JSON; when the store fails.
    pub fn consolidate(&mut self) -> Result<(), ArrayError> {
        block_on(self.consolidate_async())
    }

    /// As [`Group::consolidate`].
    ///
    /// # Errors
    /// As [`Group::consolidate`].
    pub async fn consolidate_async(&mut self) -> Result<(), ArrayError> {
        self.refresh_async().await?;
        let named: Vec<NodePath> = match self.consolidated.take() {
            Some((all, root)) if root == self.path => match &*all {
                Consolidated::V2(all) => all.paths().map(|path| self.below(path.without_slash())).collect::<Result<_, _>>()?,
                Consolidated::V3(all) => all.iter().map(|(path, _)| self.below(path)).collect::<Result<_, _>>()?,
            },
            _ => Vec::new(),
        };
        let mut nodes = self.documents().await?;
        for path in named {
            if path != self.path
                && !nodes.contains_key(&path)
                && let Some(documents) = node::load_documents(&self.storage, &path).await?
            {
                nodes.insert(path, documents);
            }
        }
        // A node of the other version has no place in the document.
        nodes.retain(|_, documents| documents.version == self.version());
        let relative = |path: &NodePath| path.relative_to(&self.path).unwrap_or_default().to_owned();
        let wrong = |source| ArrayError::Metadata { key: self.path.to_string(), source };
        let mut stored = (*self.stored).clone();
        let all = match &mut stored {
            StoredMetadata::GroupV3(group) => {
                let mut all = ConsolidatedMetadata::new();
                for (path, node) in nodes {
                    all.insert_document(&relative(&path), node.document).map_err(wrong)?;
                }
                group.consolidated_metadata = Some(all.clone());
                node::store(&self.storage, &self.path, &stored).await?;
                Consolidated::V3(all)
            }
            StoredMetadata::GroupV2(group) => {
                let mut all = ConsolidatedMetadataV2::new();
                all.insert(&NodePath::root(), &NodeMetadataV2::Group(group.clone())).map_err(wrong)?;
                for (path, node) in nodes {
                    let path = node_path(&relative(&path))?;
                    let key = if node.is_array { path.zarray_key() } else { path.zgroup_key() };
                    all.insert_document(&key, node.document);
                    all.insert_document(&path.zattrs_key(), node.attributes.unwrap_or_else(|| JsonObject::new().into()));
                }
                self.storage.set(&node::key(&self.path, ".zmetadata")?, all.to_bytes().into()).await?;
                Consolidated::V2(all)
            }
            StoredMetadata::ArrayV2(_) | StoredMetadata::ArrayV3(_) => return Ok(()),
        };
        self.stored = Arc::new(stored);
        self.consolidated = Some((Arc::new(all), self.path.clone()));
        Ok(())
    }

    /// The documents of every node below, as they are stored.
    async fn documents(&self) -> Result<BTreeMap<NodePath, Documents>, ArrayError> {
        let mut all = BTreeMap::new();
        let mut groups = vec![self.without_consolidated()];
        while let Some(group) = groups.pop() {
            for name in group.names_async().await? {
                let path = group.below(&name)?;
                let Some(documents) = node::load_documents(&self.storage, &path).await? else { continue };
                if !documents.is_array {
                    groups.push(Self { path: path.clone(), ..group.clone() });
                }
                all.insert(path, documents);
            }
        }
        Ok(all)
    }

    /// Removes the group and all below it.
    ///
    /// # Errors
    /// When the store fails; what was removed before stays removed.
    pub fn erase(self) -> Result<(), ArrayError> {
        block_on(self.erase_async())
    }

    /// As [`Group::erase`].
    ///
    /// # Errors
    /// As [`Group::erase`].
    pub async fn erase_async(self) -> Result<(), ArrayError> {
        erase(&self.storage, &self.path).await
    }
}

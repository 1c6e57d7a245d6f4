//! Where nodes lie in a hierarchy, and the store keys that belong to them.

use std::fmt;

use crate::MetadataError;

/// The path of a node: `/` for the root, `/a/b` below it.
///
/// Names are not empty, contain no `/`, and do not consist of dots alone, so a path never leaves
/// the hierarchy. Version 3 also reserves names that start with `__`; hierarchies of version 2 may
/// hold some, which [`NodePath::new_v2`] and [`NodePath::join_v2`] let pass.
///
/// Specification: core 3.1, "Node names" and "Stored representation".
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodePath {
    /// Without the leading `/`: empty for the root.
    below_root: String,
}

impl NodePath {
    /// The root, `/`.
    pub fn root() -> Self {
        Self { below_root: String::new() }
    }

    /// A path by the rules of version 3. The leading `/` may be left out, and one trailing `/` is
    /// ignored.
    ///
    /// # Errors
    /// [`MetadataError::Path`] if a name breaks a rule.
    pub fn new(path: &str) -> Result<Self, MetadataError> {
        Self::checked(path, check_name)
    }

    /// A path by the rules of version 2: as [`new`](Self::new), but names may start with `__`.
    ///
    /// # Errors
    /// [`MetadataError::Path`] if a name breaks a rule.
    pub fn new_v2(path: &str) -> Result<Self, MetadataError> {
        Self::checked(path, check_name_v2)
    }

    /// The node named `name` below this one, by the rules of version 3.
    ///
    /// # Errors
    /// [`MetadataError::Path`] if the name breaks a rule.
    pub fn join(&self, name: &str) -> Result<Self, MetadataError> {
        check_name(name).map_err(|problem| error(name, problem))?;
        Ok(self.joined(name))
    }

    /// The node named `name` below this one, by the rules of version 2.
    ///
    /// # Errors
    /// [`MetadataError::Path`] if the name breaks a rule.
    pub fn join_v2(&self, name: &str) -> Result<Self, MetadataError> {
        check_name_v2(name).map_err(|problem| error(name, problem))?;
        Ok(self.joined(name))
    }

    /// True for `/`.
    pub fn is_root(&self) -> bool {
        self.below_root.is_empty()
    }

    /// The last name; `None` for the root.
    pub fn name(&self) -> Option<&str> {
        self.names().next_back()
    }

    /// The names from the root down.
    pub fn names(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.below_root.split('/').filter(|name| !name.is_empty())
    }

    /// The node above; `None` for the root.
    pub fn parent(&self) -> Option<Self> {
        if self.is_root() {
            return None;
        }
        let above = self.below_root.rsplit_once('/').map_or("", |(above, _)| above);
        Some(Self { below_root: above.to_owned() })
    }

    /// The nodes above, from the parent up to the root.
    pub fn ancestors(&self) -> impl Iterator<Item = Self> {
        std::iter::successors(self.parent(), Self::parent)
    }

    /// This path relative to `ancestor`, without a leading `/`: empty if they are equal. `None` if
    /// it does not lie below.
    pub fn relative_to(&self, ancestor: &Self) -> Option<&str> {
        if ancestor.is_root() {
            return Some(&self.below_root);
        }
        let rest = self.below_root.strip_prefix(&ancestor.below_root)?;
        if rest.is_empty() { Some(rest) } else { rest.strip_prefix('/') }
    }

    /// The path without its leading `/`: empty for the root.
    pub fn without_slash(&self) -> &str {
        &self.below_root
    }

    /// What the keys of everything in this node start with: `a/b/`, empty for the root.
    pub fn prefix(&self) -> String {
        if self.is_root() { String::new() } else { format!("{}/", self.below_root) }
    }

    /// The key of something in this node: `a/b/c/0/0` for the chunk key `c/0/0`.
    pub fn key(&self, rest: &str) -> String {
        let mut key = self.prefix();
        key.push_str(rest);
        key
    }

    /// The key of the version 3 metadata, `zarr.json`, of an array or a group.
    pub fn metadata_key(&self) -> String {
        self.key("zarr.json")
    }

    /// The key of the version 2 metadata of an array, `.zarray`.
    pub fn zarray_key(&self) -> String {
        self.key(".zarray")
    }

    /// The key of the version 2 metadata of a group, `.zgroup`.
    pub fn zgroup_key(&self) -> String {
        self.key(".zgroup")
    }

    /// The key of the version 2 attributes, `.zattrs`.
    pub fn zattrs_key(&self) -> String {
        self.key(".zattrs")
    }

    /// The key of the version 2 consolidated metadata, `.zmetadata`.
    pub fn zmetadata_key(&self) -> String {
        self.key(".zmetadata")
    }

    fn checked(path: &str, check: fn(&str) -> Result<(), &'static str>) -> Result<Self, MetadataError> {
        let inner = path.strip_prefix('/').unwrap_or(path);
        let inner = inner.strip_suffix('/').unwrap_or(inner);
        if inner.is_empty() {
            return if path.len() <= 1 { Ok(Self::root()) } else { Err(error(path, "a name must not be empty")) };
        }
        for name in inner.split('/') {
            check(name).map_err(|problem| error(path, problem))?;
        }
        Ok(Self { below_root: inner.to_owned() })
    }

    fn joined(&self, name: &str) -> Self {
        Self { below_root: self.key(name) }
    }
}

fn error(path: &str, problem: &'static str) -> MetadataError {
    MetadataError::Path { path: path.to_owned(), problem }
}

fn check_name(name: &str) -> Result<(), &'static str> {
    check_name_v2(name)?;
    if name.starts_with("__") {
        return Err("names that start with \"__\" are reserved");
    }
    Ok(())
}

fn check_name_v2(name: &str) -> Result<(), &'static str> {
    if name.is_empty() {
        Err("a name must not be empty")
    } else if name.contains('/') {
        Err("a name must not contain \"/\"")
    } else if name.bytes().all(|b| b == b'.') {
        Err("a name must not consist of dots alone")
    } else {
        Ok(())
    }
}

impl fmt::Display for NodePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "/{}", self.below_root)
    }
}

impl std::str::FromStr for NodePath {
    type Err = MetadataError;

    fn from_str(path: &str) -> Result<Self, MetadataError> {
        Self::new(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> NodePath {
        NodePath::new(text).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn keys_of_the_specification() {
        for (text, shown, key, prefix) in [
            ("/", "/", "zarr.json", ""),
            ("", "/", "zarr.json", ""),
            ("/foo", "/foo", "foo/zarr.json", "foo/"),
            ("foo/bar/", "/foo/bar", "foo/bar/zarr.json", "foo/bar/"),
            ("/Ünï/名", "/Ünï/名", "Ünï/名/zarr.json", "Ünï/名/"),
        ] {
            let path = path(text);
            assert_eq!(path.to_string(), shown);
            assert_eq!(path.metadata_key(), key);
            assert_eq!(path.prefix(), prefix);
        }
        assert_eq!(path("/foo/baz").key("c/1/0"), "foo/baz/c/1/0");
    }

    #[test]
    fn names_the_specification_forbids() {
        for text in ["//", "a//b", "/a//", "///", ".", "/a/..", "/.../a", "__x", "/a/__", "a/./b"] {
            assert!(NodePath::new(text).is_err(), "{text}");
        }
        for text in ["/.a", "/..a", "/_a", "/a__", "/a.b", "/ ", "/c/0"] {
            assert!(NodePath::new(text).is_ok(), "{text}");
        }
        assert!(NodePath::root().join("a/b").is_err());
        assert!(NodePath::root().join("").is_err());
        assert!(NodePath::new_v2("/__x").is_ok());
        assert!(NodePath::new_v2("/..").is_err());
        assert!(NodePath::root().join("__x").is_err());
        assert!(NodePath::root().join_v2("__x").is_ok());
    }

    #[test]
    fn walking_up_and_down() {
        let leaf = path("/a/b/c");
        assert_eq!(leaf.name(), Some("c"));
        assert_eq!(leaf.names().collect::<Vec<_>>(), ["a", "b", "c"]);
        assert_eq!(leaf.ancestors().map(|p| p.to_string()).collect::<Vec<_>>(), ["/a/b", "/a", "/"]);
        assert_eq!(path("/a/b").join("c"), Ok(leaf.clone()));
        assert_eq!(leaf.relative_to(&path("/a")), Some("b/c"));
        assert_eq!(leaf.relative_to(&NodePath::root()), Some("a/b/c"));
        assert_eq!(leaf.relative_to(&leaf), Some(""));
        // Siblings that share a prefix of characters are not inside one another.
        assert_eq!(path("/foobar").relative_to(&path("/foo")), None);
        assert_eq!(NodePath::root().parent(), None);
        assert_eq!(NodePath::root().name(), None);
    }
}

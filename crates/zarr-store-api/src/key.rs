//! Keys and prefixes.

use std::fmt;
use std::str::FromStr;

use crate::error::{StoreError, StoreErrorKind};

/// The name of one value in a store: `"a/b/zarr.json"`.
///
/// A key is one or more segments joined by `/`. No segment is empty, `.` or `..`, and none holds a
/// NUL, so that a key can never name something outside the store it is given to. Everything else,
/// all of Unicode included, is allowed; a store that cannot hold a valid key says so with
/// [`StoreErrorKind::InvalidKey`].
///
/// Keys are compared and ordered by their bytes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StoreKey(String);

impl StoreKey {
    /// Checks and wraps a key.
    ///
    /// # Errors
    ///
    /// [`StoreErrorKind::InvalidKey`] if the key is empty, begins or ends with `/`, or has a
    /// segment that is empty, `.` or `..`, or holds a NUL.
    pub fn new(key: impl Into<String>) -> Result<Self, StoreError> {
        let key = key.into();
        match check_segments(&key) {
            Ok(()) => Ok(Self(key)),
            Err(why) => Err(invalid("key", &key, why)),
        }
    }

    /// The key as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The prefix the key sits directly under: `a/b/` for `a/b/zarr.json`.
    #[must_use]
    pub fn parent(&self) -> StorePrefix {
        match self.0.rfind('/') {
            Some(slash) => StorePrefix(self.0[..=slash].to_owned()),
            None => StorePrefix::root(),
        }
    }

    /// The last segment: `zarr.json` for `a/b/zarr.json`.
    #[must_use]
    pub fn name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or(&self.0)
    }
}

/// Where a listing or an erasure starts, or where a node of a hierarchy lies: `""` (the root of
/// the store) or `"a/b/"`.
///
/// Ends with `/` unless it is the root, so that `foo/` is never taken for a prefix of `foobar`.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StorePrefix(String);

impl StorePrefix {
    /// The root of the store, `""`.
    #[must_use]
    pub const fn root() -> Self {
        Self(String::new())
    }

    /// Checks and wraps a prefix; a missing final `/` is added, and `""` is the root.
    ///
    /// # Errors
    ///
    /// [`StoreErrorKind::InvalidKey`] for anything that could not begin a [`StoreKey`].
    pub fn new(prefix: impl Into<String>) -> Result<Self, StoreError> {
        let mut prefix = prefix.into();
        if prefix.is_empty() {
            return Ok(Self::root());
        }
        if !prefix.ends_with('/') {
            prefix.push('/');
        }
        match check_segments(&prefix[..prefix.len() - 1]) {
            Ok(()) => Ok(Self(prefix)),
            Err(why) => Err(invalid("prefix", &prefix, why)),
        }
    }

    /// The prefix as text, empty or with a final `/`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether this is the root of the store.
    #[must_use]
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// The key `name` below this prefix. The name may itself hold `/`, as `c/0/0` does.
    ///
    /// # Errors
    ///
    /// [`StoreErrorKind::InvalidKey`] if the name is not a valid key.
    pub fn key(&self, name: &str) -> Result<StoreKey, StoreError> {
        match check_segments(name) {
            // Once for each chunk: without the machinery of formatting.
            Ok(()) => Ok(StoreKey([self.as_str(), name].concat())),
            Err(why) => Err(invalid("key", &format!("{}{name}", self.0), why)),
        }
    }

    /// The prefix `name` below this one; an empty name gives this prefix again.
    ///
    /// # Errors
    ///
    /// [`StoreErrorKind::InvalidKey`] if the name could not begin a key.
    pub fn join(&self, name: &str) -> Result<Self, StoreError> {
        let below = Self::new(name)?;
        Ok(Self(format!("{}{}", self.0, below.0)))
    }

    /// The prefix one level up, or `None` at the root.
    #[must_use]
    pub fn parent(&self) -> Option<Self> {
        let inner = self.0.strip_suffix('/')?;
        Some(match inner.rfind('/') {
            Some(slash) => Self(inner[..=slash].to_owned()),
            None => Self::root(),
        })
    }

    /// The last segment (`b` for `a/b/`), or `None` at the root.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.0.strip_suffix('/')?.rsplit('/').next()
    }

    /// Whether the key lies below this prefix, at any depth.
    #[must_use]
    pub fn contains(&self, key: &StoreKey) -> bool {
        key.0.starts_with(&self.0)
    }

    /// What is left of a key below this prefix (`c/0` of `a/c/0` below `a/`), or `None` if the key
    /// lies elsewhere.
    #[must_use]
    pub fn strip<'k>(&self, key: &'k StoreKey) -> Option<&'k str> {
        key.0.strip_prefix(&self.0)
    }
}

fn check_segments(path: &str) -> Result<(), &'static str> {
    if path.is_empty() {
        return Err("it is empty");
    }
    for segment in path.split('/') {
        match segment {
            "" => return Err("it has an empty segment"),
            "." | ".." => return Err("it has a segment `.` or `..`"),
            _ if segment.contains('\0') => return Err("it holds a NUL"),
            _ => {}
        }
    }
    Ok(())
}

fn invalid(what: &str, text: &str, why: &str) -> StoreError {
    StoreError::new(StoreErrorKind::InvalidKey, format!("`{}` is not a valid {what}: {why}", text.escape_debug()))
}

macro_rules! text_impls {
    ($($name:ident),*) => {$(
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({:?})"), self.0)
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = StoreError;

            fn from_str(text: &str) -> Result<Self, StoreError> {
                Self::new(text)
            }
        }

        impl TryFrom<&str> for $name {
            type Error = StoreError;

            fn try_from(text: &str) -> Result<Self, StoreError> {
                Self::new(text)
            }
        }

        impl TryFrom<String> for $name {
            type Error = StoreError;

            fn try_from(text: String) -> Result<Self, StoreError> {
                Self::new(text)
            }
        }

        impl From<$name> for String {
            fn from(value: $name) -> Self {
                value.0
            }
        }
    )*};
}

text_impls!(StoreKey, StorePrefix);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_checked() {
        for good in ["a", "zarr.json", ".zarray", "a/b/c/0.0", "...", "a b", "température/❄", "a\\b"] {
            assert_eq!(StoreKey::new(good).unwrap().as_str(), good);
        }
        for bad in ["", "/", "/a", "a/", "a//b", ".", "..", "a/..", "../a", "a/./b", "a\0b"] {
            let error = StoreKey::new(bad).unwrap_err();
            assert_eq!(error.kind(), StoreErrorKind::InvalidKey, "{bad:?}");
        }
    }

    #[test]
    fn prefixes_end_with_a_slash() {
        assert!(StorePrefix::new("").unwrap().is_root());
        assert_eq!(StorePrefix::new("a").unwrap(), StorePrefix::new("a/").unwrap());
        for bad in ["/", "/a", "a//", "..", "a/../b", "a\0"] {
            assert!(StorePrefix::new(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn keys_and_prefixes_compose() {
        let prefix = StorePrefix::new("a/foo").unwrap();
        let key = prefix.key("c/0/1").unwrap();
        assert_eq!(key.as_str(), "a/foo/c/0/1");
        assert_eq!(key.name(), "1");
        assert_eq!(key.parent().as_str(), "a/foo/c/0/");
        assert_eq!(prefix.strip(&key), Some("c/0/1"));
        assert!(!prefix.contains(&StoreKey::new("a/foobar").unwrap()));
        assert_eq!(prefix.parent().unwrap().as_str(), "a/");
        assert_eq!(prefix.name(), Some("foo"));
        assert_eq!(StorePrefix::new("a").unwrap().parent(), Some(StorePrefix::root()));
        assert_eq!(StorePrefix::root().parent(), None);
        assert_eq!(StoreKey::new("a").unwrap().parent(), StorePrefix::root());
        assert_eq!(prefix.join("").unwrap(), prefix);
        assert_eq!(prefix.join("b").unwrap().as_str(), "a/foo/b/");
        assert!(prefix.key("../../x").is_err());
    }
}

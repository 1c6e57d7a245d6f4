//! The one error type of this crate, and where in a document it points.

use std::fmt;

use thiserror::Error;

/// A place in a JSON document, shown as `$.chunk_grid.configuration.chunk_shape[2]`.
///
/// Functions that parse a part of a document do not know where that part lies; their callers add
/// the outer steps with [`MetadataError::within`] and [`MetadataError::within_index`] as the error
/// passes through.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JsonPath {
    /// Innermost step first, since steps are added from the inside out.
    steps: Vec<Step>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Key(String),
    Index(usize),
}

impl JsonPath {
    /// The document itself, `$`.
    pub fn root() -> Self {
        Self::default()
    }

    /// True when the path is the document itself.
    pub fn is_root(&self) -> bool {
        self.steps.is_empty()
    }
}

impl fmt::Display for JsonPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("$")?;
        for step in self.steps.iter().rev() {
            match step {
                Step::Index(index) => write!(f, "[{index}]")?,
                Step::Key(key) if is_plain(key) => write!(f, ".{key}")?,
                Step::Key(key) => write!(f, "[{key:?}]")?,
            }
        }
        Ok(())
    }
}

fn is_plain(key: &str) -> bool {
    !key.is_empty() && key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// Why a metadata document, or a part of one, could not be read or built.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MetadataError {
    /// The text is not JSON (RFC 8259), or exceeds a limit of the parser.
    #[error("not valid JSON at line {line}, column {column} (byte {offset}): {problem}")]
    Syntax {
        /// Byte offset from the start of the document.
        offset: usize,
        /// Line, from 1.
        line: usize,
        /// Column in bytes, from 1.
        column: usize,
        /// What is wrong there.
        problem: String,
    },
    /// A required key is absent.
    #[error("{at}: the required key {key:?} is missing")]
    Missing {
        /// The object that lacks the key.
        at: JsonPath,
        /// The key.
        key: String,
    },
    /// A value has the wrong type, or is not one of the values allowed.
    #[error("{at}: expected {expected}, found {found}")]
    Unexpected {
        /// The value.
        at: JsonPath,
        /// What the specification allows.
        expected: String,
        /// What is there, shortened.
        found: String,
    },
    /// A name that this crate does not know, at a place where it must.
    #[error("{at}: unknown {what} {name:?}")]
    Unknown {
        /// The value.
        at: JsonPath,
        /// What is named: "data type", "chunk grid", "chunk key encoding", ..
        what: &'static str,
        /// The name.
        name: String,
    },
    /// A key that is not defined and does not carry `"must_understand": false`.
    #[error("{at}: the key {key:?} is not defined and must be understood")]
    UnknownKey {
        /// The object that holds the key.
        at: JsonPath,
        /// The key.
        key: String,
    },
    /// Each value is allowed, but together they contradict one another.
    #[error("{at}: {problem}")]
    Inconsistent {
        /// The value that gives the contradiction away.
        at: JsonPath,
        /// The contradiction.
        problem: String,
    },
    /// Valid metadata that cannot be expressed in the form asked for.
    #[error("{at}: not supported: {what}")]
    Unsupported {
        /// The value.
        at: JsonPath,
        /// What is not supported.
        what: String,
    },
    /// The configuration of an extension does not fit the type it was to be read into.
    #[error("{at}: {problem}")]
    Configuration {
        /// The configuration, or the part of it at fault.
        at: JsonPath,
        /// What the type's `Deserialize` implementation said.
        problem: String,
    },
    /// A node name or path that the specification forbids.
    #[error("node path {path:?}: {problem}")]
    Path {
        /// The path or name.
        path: String,
        /// The rule it breaks.
        problem: &'static str,
    },
}

impl MetadataError {
    pub(crate) fn missing(key: &str) -> Self {
        Self::Missing { at: JsonPath::root(), key: key.to_owned() }
    }

    pub(crate) fn unexpected(expected: impl Into<String>, found: &crate::Json) -> Self {
        Self::Unexpected { at: JsonPath::root(), expected: expected.into(), found: found.excerpt() }
    }

    pub(crate) fn unknown(what: &'static str, name: &str) -> Self {
        Self::Unknown { at: JsonPath::root(), what, name: name.to_owned() }
    }

    pub(crate) fn inconsistent(problem: impl Into<String>) -> Self {
        Self::Inconsistent { at: JsonPath::root(), problem: problem.into() }
    }

    pub(crate) fn unsupported(what: impl Into<String>) -> Self {
        Self::Unsupported { at: JsonPath::root(), what: what.into() }
    }

    /// The same error, one object further out: the place it names lies under `key`.
    #[must_use]
    pub fn within(self, key: &str) -> Self {
        self.outward(Step::Key(key.to_owned()))
    }

    /// The same error, one array further out: the place it names lies under element `index`.
    #[must_use]
    pub fn within_index(self, index: usize) -> Self {
        self.outward(Step::Index(index))
    }

    /// Where in the document the error lies; `None` for [`Syntax`](Self::Syntax) and
    /// [`Path`](Self::Path) errors, which do not lie in a value.
    pub fn at(&self) -> Option<&JsonPath> {
        match self {
            Self::Missing { at, .. }
            | Self::Unexpected { at, .. }
            | Self::Unknown { at, .. }
            | Self::UnknownKey { at, .. }
            | Self::Inconsistent { at, .. }
            | Self::Unsupported { at, .. }
            | Self::Configuration { at, .. } => Some(at),
            Self::Syntax { .. } | Self::Path { .. } => None,
        }
    }

    fn outward(mut self, step: Step) -> Self {
        match &mut self {
            Self::Missing { at, .. }
            | Self::Unexpected { at, .. }
            | Self::Unknown { at, .. }
            | Self::UnknownKey { at, .. }
            | Self::Inconsistent { at, .. }
            | Self::Unsupported { at, .. }
            | Self::Configuration { at, .. } => at.steps.push(step),
            Self::Syntax { .. } | Self::Path { .. } => {}
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_read_from_the_outside_in() {
        let error = MetadataError::inconsistent("x").within_index(2).within("chunk_shape").within("a b");
        assert_eq!(error.to_string(), "$[\"a b\"].chunk_shape[2]: x");
    }
}

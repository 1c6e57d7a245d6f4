//! The laws of whole implementations: what they read, what they refuse, what they write.
//!
//! An [`Implementation`] reads a stored array into plain bytes and writes one from them. It may run in this process, or be any program behind the command line that
//! `adapters/PROTOCOL.md` of this crate describes: see [`Adapter`]. The laws hold it against [vectors](crate::vectors), and against other implementations:
//!
//! * `read/VECTOR`: it reads the expected bytes, or refuses what must be refused;
//! * `part/VECTOR`: a box of the array holds the same as that box of the whole;
//! * `write/VECTOR`: an array that it writes is read by the reference implementation, byte for byte;
//! * `exchange/VECTOR/READER`: and by every other implementation that can read such an array.
//!
//! A refusal of what must be accepted counts as [`Outcome::Unsupported`](crate::Outcome::Unsupported) where it was declared. A program that dies by a signal, hangs or
//! breaks the protocol fails in any case.

mod adapter;
mod exchange;
mod laws;
#[cfg(feature = "reference")]
mod ours;
mod program;
mod serve;

use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

pub use adapter::{Adapter, AdapterError};
pub use exchange::Exchange;
pub use laws::cases;
#[cfg(feature = "reference")]
pub use ours::{Ours, ours};
pub use program::Program;
pub use serve::{PROTOCOL, serve};

use crate::suite::{Broken, Subject, Suite};
use crate::vectors::{Element, Vector};

/// A whole implementation of Zarr.
pub trait Implementation: Send + Sync {
    /// What a report calls it, in a word.
    fn name(&self) -> String;

    /// What really runs: name, version, versions of what it stands on.
    ///
    /// # Errors
    /// When it does not run at all.
    fn identity(&self) -> Result<String, Trouble>;

    /// Reads an array, or a box of it, as [`Element`] says: C order, little-endian.
    ///
    /// # Errors
    /// [`Trouble::Refused`] when it says that it does not, or that the array is not valid; [`Trouble::Broke`] for all else.
    fn read(&self, job: &ReadJob<'_>) -> Result<Vec<u8>, Trouble>;

    /// Writes an array to where there is nothing yet.
    ///
    /// # Errors
    /// As [`Implementation::read`].
    fn write(&self, job: &WriteJob<'_>) -> Result<(), Trouble>;
}

/// What to read.
#[derive(Debug, Clone, Copy)]
pub struct ReadJob<'a> {
    /// The folder that holds the store.
    pub store: &'a Path,
    /// The array's path in it; empty for the root.
    pub node: &'a str,
    /// A range for each axis, `None` for all of it.
    pub part: Option<&'a [Range<u64>]>,
}

/// What to write.
#[derive(Debug, Clone, Copy)]
pub struct WriteJob<'a> {
    /// The folder of the store; it does not exist yet. The array is the root.
    pub store: &'a Path,
    /// The array's metadata, of either version. Of the codecs' parameters those that decoding needs are to be kept as they are.
    pub metadata: &'a str,
    /// Lengths of the axes.
    pub shape: &'a [u64],
    /// How elements lie in `data`.
    pub element: Element,
    /// All elements in C order.
    pub data: &'a [u8],
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trouble {
    /// It said no, in words.
    Refused(String),
    /// It died, hung, or did not keep to the protocol.
    Broke(String),
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(message) => write!(f, "refused: {message}"),
            Self::Broke(message) => write!(f, "broke: {message}"),
        }
    }
}

impl std::error::Error for Trouble {}

impl From<Trouble> for Broken {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Refused(message) => Self::Unsupported(message),
            Trouble::Broke(message) => Self::Failed(message),
        }
    }
}

/// An implementation to be checked, with what it does not support, what it is held against, and who reads what it writes.
#[derive(Clone)]
pub struct ImplementationUnderTest {
    implementation: Arc<dyn Implementation>,
    reference: Arc<dyn Implementation>,
    vectors: Arc<[Vector]>,
    unsupported: Vec<String>,
}

impl ImplementationUnderTest {
    /// `implementation`, that claims to support everything in `vectors`; `reference` reads what it writes.
    pub fn new(implementation: Arc<dyn Implementation>, reference: Arc<dyn Implementation>, vectors: impl Into<Arc<[Vector]>>) -> Self {
        Self { implementation, reference, vectors: vectors.into(), unsupported: Vec::new() }
    }

    /// Declares that cases whose ids begin with `start` are not supported.
    #[must_use]
    pub fn without(mut self, start: impl Into<String>) -> Self {
        self.unsupported.push(start.into());
        self
    }

    /// The implementation.
    pub fn implementation(&self) -> &dyn Implementation {
        &*self.implementation
    }

    /// What it is held against.
    pub fn vectors(&self) -> &[Vector] {
        &self.vectors
    }

    /// Whether it says that it does not support the case `id`.
    fn declares(&self, id: &str) -> bool {
        self.unsupported.iter().any(|start| id.starts_with(start.as_str()))
    }
}

impl Subject for ImplementationUnderTest {
    fn name(&self) -> String {
        self.implementation.name()
    }

    fn unsupported(&self) -> &[String] {
        &self.unsupported
    }
}

impl From<ImplementationUnderTest> for Suite {
    fn from(subject: ImplementationUnderTest) -> Self {
        let cases = cases(&subject.vectors);
        Self::new(Arc::new(subject), cases)
    }
}

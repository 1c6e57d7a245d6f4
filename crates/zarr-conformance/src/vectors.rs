//! Stored arrays and what must be read from them; encoded chunks and what must be decoded from them.
//!
//! The vectors lie in `vectors/` of this crate, each in a folder of its own; [`directory`] finds them, and [`load`] and [`load_chunks`] read them. `vectors/README.md` describes the
//! form, which has a version of its own, [`FORMAT`], apart from that of this crate. Reference implementations made them, by the scripts beside them.
//! [`crate::implementation`] has the laws of stored arrays, [`crate::codec::vectors`] that of encoded chunks.

mod chunks;

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::Deserialize;

pub use chunks::{ChunkVector, load_chunks};

/// The version of the form of vectors that this crate reads: the first line of `vectors/VERSION`.
pub const FORMAT: &str = "1";

/// The environment variable that names another folder of vectors than that of this crate.
pub const DIRECTORY_VARIABLE: &str = "ZARR_CONFORMANCE_VECTORS";

/// What an implementation must do with the store of a vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Verdict {
    /// Read exactly the expected bytes.
    MustAccept,
    /// Refuse, on opening or on reading.
    MustReject,
    /// Either refuse, or read the expected bytes where there are any.
    May,
}

/// How elements lie in expected bytes: in C order, one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Element {
    /// Each is so many little-endian bytes. The fields of a struct are packed; integers of fewer bits than a byte fill one, by their sign.
    Size(usize),
    /// Each is a little-endian `u32` number of bytes, then as many: UTF-8 for strings.
    Variable,
}

/// One vector.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Vector {
    /// Its folder relative to that of all vectors, `/` between the parts. No id begins with another one.
    pub id: String,
    /// What is unusual about it, in a phrase.
    pub says: String,
    /// What must be done with it.
    pub verdict: Verdict,
    /// Where that is written: a section of a specification, an RFC, a thread.
    pub cite: String,
    /// What made it, with versions.
    pub made_by: String,
    /// The folder that holds the objects of the store, a file for each.
    pub store: PathBuf,
    /// The array's path in the store; empty for the root.
    pub node: String,
    /// Lengths of the array's axes, where there is something to be read.
    pub shape: Vec<u64>,
    /// How its elements lie in `expected`.
    pub element: Element,
    /// What must be read, `None` where nothing may be, or where it is open what.
    pub expected: Option<Vec<u8>>,
    /// Whether its metadata are such that every implementation can be asked to write the same array.
    pub writable: bool,
}

/// Why vectors cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VectorError {
    /// A file could not be read.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A `case.toml` is not what it must be.
    #[error("{}: {error}", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// Where and why.
        error: toml::de::Error,
    },
    /// The parts of a vector contradict each other, or the rules.
    #[error("vector {id}: {problem}")]
    Inconsistent {
        /// Which.
        id: String,
        /// What is wrong.
        problem: String,
    },
    /// The folder holds vectors of another version of the form.
    #[error("{}: vectors of version {found:?}, and this crate reads version {FORMAT}", path.display())]
    Version {
        /// The folder.
        path: PathBuf,
        /// What it says of itself.
        found: String,
    },
}

/// `case.toml`. A key that is not here is an error.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CaseFile {
    says: String,
    verdict: Verdict,
    cite: String,
    made_by: String,
    #[serde(default)]
    node: String,
    shape: Option<Vec<u64>>,
    element: Option<ElementFile>,
    #[serde(default)]
    writable: bool,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum ElementFile {
    Size(usize),
    Word(String),
}

/// The folder of vectors: what the environment variable [`DIRECTORY_VARIABLE`] names, else the one that this crate came with.
pub fn directory() -> PathBuf {
    std::env::var_os(DIRECTORY_VARIABLE).map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors"), PathBuf::from)
}

/// Reads all vectors of a folder, in the order of their ids, and checks each for consistency.
///
/// # Errors
/// The first vector that is not in order: [`VectorError::Io`], [`VectorError::Syntax`] (unknown keys among it) or [`VectorError::Inconsistent`];
/// [`VectorError::Version`] when the folder is of another version.
pub fn load(directory: &Path) -> Result<Vec<Vector>, VectorError> {
    check_version(directory)?;
    let mut out = Vec::new();
    for family in folders(&directory.join("arrays"))? {
        for folder in folders(&family)? {
            out.push(load_one(&folder, &format!("{}/{}", file_name(&family), file_name(&folder)))?);
        }
    }
    let ids: BTreeSet<&str> = out.iter().map(|vector| vector.id.as_str()).collect();
    for (first, second) in ids.iter().zip(ids.iter().skip(1)) {
        // Sorted, an id that begins another one stands right before one of those.
        if second.starts_with(first) {
            return Err(VectorError::Inconsistent { id: (*first).to_owned(), problem: format!("begins the id {second}") });
        }
    }
    Ok(out)
}

fn check_version(directory: &Path) -> Result<(), VectorError> {
    let found = read_text(&directory.join("VERSION"))?;
    if found.trim() != FORMAT {
        return Err(VectorError::Version { path: directory.to_owned(), found: found.trim().to_owned() });
    }
    Ok(())
}

fn load_one(folder: &Path, id: &str) -> Result<Vector, VectorError> {
    let wrong = |problem: String| VectorError::Inconsistent { id: id.to_owned(), problem };
    if !id.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-/".contains(&byte)) {
        return Err(wrong("an id is of lower-case letters, digits and hyphens".into()));
    }
    for name in children(folder)?.iter().map(|path| file_name(path)) {
        if !["case.toml", "store", "expected.raw"].contains(&name.as_str()) {
            return Err(wrong(format!("{name} is no part of a vector")));
        }
    }
    let path = folder.join("case.toml");
    let case: CaseFile = toml::from_str(&read_text(&path)?).map_err(|error| VectorError::Syntax { path, error })?;
    let expected = read_bytes(&folder.join("expected.raw"))?;
    let element = match &case.element {
        Some(ElementFile::Size(size)) if *size > 0 => Element::Size(*size),
        Some(ElementFile::Word(word)) if word == "variable" => Element::Variable,
        Some(_) => return Err(wrong("`element` is a number of bytes or \"variable\"".into())),
        // Nothing is read, so nothing is split.
        None => Element::Size(1),
    };
    for (key, text) in [("says", &case.says), ("cite", &case.cite), ("made_by", &case.made_by)] {
        if text.trim().is_empty() {
            return Err(wrong(format!("`{key}` is empty")));
        }
    }
    let store = folder.join("store");
    let node = if case.node.is_empty() { store.clone() } else { store.join(&case.node) };
    if !["zarr.json", ".zarray"].iter().any(|name| node.join(name).is_file()) {
        return Err(wrong("the store has no array at `node`".into()));
    }
    match (case.verdict, &expected) {
        (Verdict::MustAccept, None) => return Err(wrong("must be accepted, and has no expected.raw".into())),
        (Verdict::MustReject, Some(_)) => return Err(wrong("must be rejected, and has an expected.raw".into())),
        _ => {}
    }
    if expected.is_some() != (case.shape.is_some() && case.element.is_some()) {
        return Err(wrong("`shape` and `element` go with expected.raw, and only with that".into()));
    }
    if case.writable && expected.is_none() {
        return Err(wrong("what can be written has an expected.raw".into()));
    }
    let shape = case.shape.unwrap_or_default();
    if let Some(bytes) = &expected {
        let count = shape.iter().try_fold(1_u64, |count, &len| count.checked_mul(len));
        let found = split(bytes, element).map(|elements| elements.len() as u64);
        if count.is_none() || found != count {
            return Err(wrong(format!("expected.raw holds {found:?} elements, and an array of shape {shape:?} holds {count:?}")));
        }
    }
    Ok(Vector {
        id: id.to_owned(),
        says: case.says,
        verdict: case.verdict,
        cite: case.cite,
        made_by: case.made_by,
        store,
        node: case.node,
        shape,
        element,
        expected,
        writable: case.writable,
    })
}

impl Vector {
    /// The array's metadata, as they lie in the store: `zarr.json`, else `.zarray`.
    ///
    /// # Errors
    /// [`VectorError::Io`].
    pub fn metadata(&self) -> Result<String, VectorError> {
        let node = self.store.join(&self.node);
        let v3 = node.join("zarr.json");
        read_text(&if v3.is_file() { v3 } else { node.join(".zarray") })
    }
}

/// Elements, one by one; `None` when the bytes end within one.
pub(crate) fn split(bytes: &[u8], element: Element) -> Option<Vec<&[u8]>> {
    let mut out = Vec::new();
    let mut left = bytes;
    while !left.is_empty() {
        let len = match element {
            Element::Size(size) => size,
            Element::Variable => usize::try_from(u32::from_le_bytes(*left.first_chunk()?)).ok()?.checked_add(4)?,
        };
        let (one, rest) = left.split_at_checked(len)?;
        out.push(one);
        left = rest;
    }
    Some(out)
}

/// The bytes of a box out of those of an array. `None` when the box does not lie in the array.
pub(crate) fn part(elements: &[&[u8]], shape: &[u64], ranges: &[Range<u64>]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let count: u64 = ranges.iter().map(|range| range.end - range.start).product();
    for number in 0..count {
        let (mut left, mut index, mut stride) = (number, 0, 1);
        for (range, len) in ranges.iter().zip(shape).rev() {
            let width = range.end - range.start;
            index += (range.start + left % width) * stride;
            left /= width;
            stride *= len;
        }
        out.extend_from_slice(elements.get(usize::try_from(index).ok()?)?);
    }
    Some(out)
}

fn read_text(path: &Path) -> Result<String, VectorError> {
    fs::read_to_string(path).map_err(|error| VectorError::Io { path: path.to_owned(), error })
}

/// `None` where there is no such file.
fn read_bytes(path: &Path) -> Result<Option<Vec<u8>>, VectorError> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(VectorError::Io { path: path.to_owned(), error }),
    }
}

fn children(folder: &Path) -> Result<Vec<PathBuf>, VectorError> {
    let failed = |error| VectorError::Io { path: folder.to_owned(), error };
    let mut out = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        out.push(entry.map_err(failed)?.path());
    }
    out.sort();
    Ok(out)
}

fn folders(folder: &Path) -> Result<Vec<PathBuf>, VectorError> {
    Ok(children(folder)?.into_iter().filter(|path| path.is_dir()).collect())
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

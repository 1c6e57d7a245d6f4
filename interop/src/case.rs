//! The cases, as `ci/interop/cases.py` writes them.

use serde::Deserialize;
use serde_json::Value;

/// The file `cases.json`; what else it holds is for the report.
#[derive(Deserialize)]
pub(crate) struct Cases {
    pub(crate) cases: Vec<Case>,
}

/// One case.
#[derive(Deserialize)]
pub(crate) struct Case {
    pub(crate) id: String,
    element: Value,
    pub(crate) shape: Vec<u64>,
    /// Whether the array must be written in one go, because a codec loses more each time.
    pub(crate) whole: bool,
    /// `.zarray` or `zarr.json`.
    pub(crate) metadata: Value,
}

/// The canonical form of an element.
#[derive(Clone, Copy)]
pub(crate) enum Element {
    /// So many little-endian bytes.
    Size(usize),
    /// A little-endian `u32` length, then as many bytes.
    Variable,
}

impl Case {
    /// The canonical form of its elements.
    pub(crate) fn element(&self) -> Element {
        match self.element["size"].as_u64() {
            Some(size) => Element::Size(size as usize),
            None => Element::Variable,
        }
    }

    /// The number of the case, which varies how it is written and read.
    pub(crate) fn number(&self) -> u64 {
        self.id.parse().unwrap_or(0)
    }
}

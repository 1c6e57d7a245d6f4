//! The tensors of `zarr-buffer-dlpack`.

use super::Entry;
use crate::dlpack::{exports, imports};

pub(super) fn entries() -> Vec<Entry> {
    vec![Entry::new("dlpack/exports", || Ok(exports())), Entry::new("dlpack/imports", || Ok(imports()))]
}

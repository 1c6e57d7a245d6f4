//! Zip archives that are written.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use zarr::store::ZipStore;
use zarr::store_api::Store;
use zarr::{AnyStore, ArrayError};

use crate::error::{Outcome, parameter};

/// Those of this process.
static WRITTEN: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// An archive that the nodes of one `open`, `create_array` or `create_group` write to. It takes its name when it is closed; until then, what was there before is there.
#[derive(Debug)]
pub(crate) struct Archive {
    store: Arc<ZipStore>,
    /// Held until it is closed.
    name: Mutex<Option<Name>>,
    /// Whether to close it when nobody has it any more.
    is_kept: AtomicBool,
    is_given_up: AtomicBool,
    /// The process that began it, and not one that was forked from it.
    process: u32,
}

impl Archive {
    /// Begins one that holds what is at the path already.
    ///
    /// # Errors
    /// `ParameterError` when it is being written already; what the store fails with.
    pub(crate) fn begin(path: &Path) -> Outcome<Self> {
        let name = Name::take(path)?;
        let store = if path.exists() { ZipStore::append(path, Default::default()) } else { ZipStore::create(path) };
        Ok(Self {
            store: Arc::new(store.map_err(ArrayError::from)?),
            name: Mutex::new(Some(name)),
            is_kept: AtomicBool::new(false),
            is_given_up: AtomicBool::new(false),
            process: std::process::id(),
        })
    }

    pub(crate) fn store(&self) -> AnyStore {
        AnyStore::from(Arc::clone(&self.store) as Arc<dyn Store>)
    }

    /// From now on it is closed, and not given up, where nobody says which.
    pub(crate) fn keep(&self) {
        self.is_kept.store(true, Ordering::Relaxed);
    }

    /// Gives it its name. Nothing more is written to it. After an error this can be tried again.
    pub(crate) fn close(&self) -> Outcome<()> {
        if self.is_given_up.load(Ordering::Relaxed) {
            return Err(parameter("the zip archive was given up, by an exception in a `with` block: nothing of it is there"));
        }
        self.store.close().map_err(ArrayError::from)?;
        self.let_go_of_name();
        Ok(())
    }

    /// What was there before stays there.
    pub(crate) fn abandon(&self) {
        // Closed before, it is there.
        self.is_given_up.store(self.name.lock().unwrap_or_else(PoisonError::into_inner).is_some(), Ordering::Relaxed);
        self.store.abandon();
        self.let_go_of_name();
    }

    fn is_forked(&self) -> bool {
        self.process != std::process::id()
    }

    fn let_go_of_name(&self) {
        self.name.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

impl Drop for Archive {
    fn drop(&mut self) {
        // What a forked process has of it is the other's.
        if self.is_forked() || self.is_given_up.load(Ordering::Relaxed) {
            return;
        }
        if !self.is_kept.load(Ordering::Relaxed) {
            self.abandon();
        } else if let Err(failure) = self.close() {
            // Nobody is there to be told: as Python does for what a finalizer raises.
            Python::try_attach(|py| PyErr::from(failure).write_unraisable(py, None));
        }
    }
}

/// A name that one archive at a time is written under.
#[derive(Debug)]
struct Name(PathBuf);

impl Name {
    fn take(path: &Path) -> Outcome<Self> {
        // A link is what it leads to.
        let resolved = path.canonicalize();
        let path = resolved.as_deref().unwrap_or(path);
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        // Where there is no such folder, the store says so.
        let parent = parent.canonicalize().unwrap_or_else(|_| parent.to_owned());
        let name = path.file_name().map_or_else(|| parent.clone(), |name| parent.join(name));
        if WRITTEN.lock().unwrap_or_else(PoisonError::into_inner).insert(name.clone()) {
            return Ok(Self(name));
        }
        let advice = "close it first, or go on with what wrote to it: `group.create_array(..)`";
        Err(parameter(format!("the zip archive {} is being written: {advice}", path.display())))
    }
}

impl Drop for Name {
    fn drop(&mut self) {
        WRITTEN.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.0);
    }
}

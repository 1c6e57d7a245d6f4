//! Whole implementations: ours, and those behind a command line, over the vectors and over what the others write.
//!
//! The adapters of this crate run where their environment is: `cargo xtask conformance-peers --environment` makes it. [`ADAPTERS_VARIABLE`] names more.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use super::{Entry, Unbuilt};
use crate::implementation::{Adapter, AdapterError, Exchange, ImplementationUnderTest, ours};
use crate::vectors::{self, Vector};

/// The environment variable with the paths of more adapters, separated as in `PATH`.
const ADAPTERS_VARIABLE: &str = "ZARR_CONFORMANCE_ADAPTERS";

/// The adapters of this crate.
const OURS: [&str; 3] = ["zarr-python", "tensorstore", "zarrs"];

pub(super) fn entries() -> Vec<Entry> {
    let mut entries = vec![Entry::new("implementation/zarr", reference)];
    let adapters = adapters();
    for path in &adapters {
        let path = path.clone();
        entries.push(Entry::new(format!("implementation/{}", name(&path)), move || adapted(&path)));
    }
    entries.push(exchange("zarr".into(), reference, &adapters));
    for path in &adapters {
        let writer = path.clone();
        entries.push(exchange(name(path), move || adapted(&writer), &adapters));
    }
    entries
}

/// What `writer` writes, read by all others that are here.
fn exchange(
    name: String,
    writer: impl Fn() -> Result<ImplementationUnderTest, Unbuilt> + Send + Sync + 'static,
    adapters: &[PathBuf],
) -> Entry {
    let adapters = adapters.to_vec();
    let own = name.clone();
    Entry::new(format!("exchange/{name}"), move || {
        let writer = writer()?;
        let mut readers = Vec::new();
        if own != "zarr" {
            readers.push(reference()?);
        }
        for path in adapters.iter().filter(|path| self::name(path) != own) {
            match adapted(path) {
                Ok(reader) => readers.push(reader),
                Err(Unbuilt::Absent(_)) => {}
                Err(error) => return Err(error),
            }
        }
        match readers.is_empty() {
            true => Err(Unbuilt::Absent(format!("no other implementation is here: {ADAPTERS_VARIABLE} names some"))),
            false => Ok(Exchange::new(writer, readers)),
        }
    })
}

/// The files that describe implementations.
fn adapters() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("adapters");
    let mut paths: Vec<PathBuf> = OURS.iter().map(|name| folder.join(format!("{name}.toml"))).collect();
    let more = std::env::var_os(ADAPTERS_VARIABLE);
    paths.extend(more.iter().flat_map(|paths| std::env::split_paths(paths)).filter(|path| !path.as_os_str().is_empty()));
    paths
}

/// The file's, so that subjects can be listed without reading it.
fn name(adapter: &Path) -> String {
    adapter.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

fn reference() -> Result<ImplementationUnderTest, Unbuilt> {
    Ok(ImplementationUnderTest::new(ours(), ours(), all_vectors()?))
}

fn adapted(path: &Path) -> Result<ImplementationUnderTest, Unbuilt> {
    let subject = Adapter::load(path)?.under_test(ours(), all_vectors()?);
    let subject = subject.map_err(|error| match error {
        // That is how it says that its environment was not made.
        AdapterError::Variable { .. } => Unbuilt::Absent(error.to_string()),
        error => Unbuilt::from(error),
    })?;
    subject.implementation().identity()?;
    Ok(subject)
}

/// The vectors, read once in a process.
fn all_vectors() -> Result<Arc<[Vector]>, Unbuilt> {
    static READ: OnceLock<Result<Arc<[Vector]>, String>> = OnceLock::new();
    let read = READ.get_or_init(|| vectors::load(&vectors::directory()).map(Arc::from).map_err(|error| error.to_string()));
    read.clone().map_err(Unbuilt::Broken)
}

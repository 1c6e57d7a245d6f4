//! Whole implementations: ours, and those behind a command line, over the vectors and over what the others write.
//!
//! The adapters of this crate run where their environment is: `cargo xtask conformance-peers --environment` makes it. [`ADAPTERS_VARIABLE`] names more.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use super::types::{COMPLEX, FLOATS, INTEGERS, TIMES, numpy};
use super::{Entry, Unbuilt};
use crate::implementation::{Adapter, AdapterError, Exchange, ImplementationUnderTest, ours};
use crate::runner::results::Place;
use crate::vectors::{self, Vector};

/// The environment variable with the paths of more adapters, separated as in `PATH`.
const ADAPTERS_VARIABLE: &str = "ZARR_CONFORMANCE_ADAPTERS";

/// The adapters of this crate.
const OURS: [&str; 3] = ["zarr-python", "tensorstore", "zarrs"];

pub(super) fn entries() -> Vec<Entry> {
    let mut entries = vec![Entry::new("implementation/zarr", reference).at_by_case(|id| place("zarr", id))];
    let adapters = adapters();
    for path in &adapters {
        let path = path.clone();
        let own = name(&path);
        let entry = Entry::new(format!("implementation/{own}"), move || adapted(&path));
        entries.push(entry.at_by_case(move |id| place(&own, id)));
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

/// Where a case of an implementation stands in the matrix: with the data type of its vector, and the last codec that is there besides `bytes`.
/// Those of exchanges stand nowhere, as they are about two.
fn place(implementation: &str, case: &str) -> Option<Place> {
    let (_, vector) = case.split_once('/')?;
    let vectors = all_vectors().ok()?;
    let metadata = vectors.iter().find(|one| one.id == vector)?.metadata().ok()?;
    let metadata: serde_json::Value = serde_json::from_str(&metadata).ok()?;
    let word = |value: &serde_json::Value, key: &str| value.as_str().or(value[key].as_str()).map(str::to_owned);
    if metadata["zarr_format"] == 3 {
        let mut codecs = metadata["codecs"].as_array()?.iter().filter_map(|codec| word(codec, "name"));
        let codec = codecs.rfind(|name| name != "bytes").unwrap_or_else(|| "bytes".to_owned());
        return Some(Place::new(implementation, codec, word(&metadata["data_type"], "name")?));
    }
    let filter = || metadata["filters"].as_array().and_then(|filters| filters.last()).and_then(|filter| word(filter, "id"));
    let codec = match word(&metadata["compressor"], "id").or_else(filter) {
        None => "bytes".to_owned(),
        Some(id) if ["blosc", "gzip", "zstd"].contains(&id.as_str()) => id,
        Some(id) => format!("numcodecs.{id}"),
    };
    let data_type = metadata["dtype"].as_str().map_or("struct", of_numpy);
    Some(Place::new(implementation, codec, data_type))
}

/// The data type that numpy calls so, whatever its byte order; the same word where there is none.
fn of_numpy(dtype: &str) -> &str {
    let same = |name: &&&str| numpy(name).get(1..).is_some_and(|word| !word.is_empty() && dtype.get(1..) == Some(word));
    [INTEGERS, FLOATS, COMPLEX, TIMES, &["bool"]].into_iter().flatten().find(same).copied().unwrap_or(dtype)
}

/// The vectors, read once in a process.
fn all_vectors() -> Result<Arc<[Vector]>, Unbuilt> {
    static READ: OnceLock<Result<Arc<[Vector]>, String>> = OnceLock::new();
    let read = READ.get_or_init(|| vectors::load(&vectors::directory()).map(Arc::from).map_err(|error| error.to_string()));
    read.clone().map_err(Unbuilt::Broken)
}

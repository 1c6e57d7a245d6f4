//! What every command needs: threads, and opened nodes.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rayon::{ThreadPool, ThreadPoolBuilder};
use zarr::meta::{Json, JsonObject, NodePath};
use zarr::store::{Access, FilesystemStore, Metrics, MetricsHandle, OpenOptions, ZipStore, local_archive};
use zarr::store_api::{AnyStore, Store, StoreErrorKind, StorePrefix};
use zarr::{Array, ArrayError, Node, Options, Pool};

use crate::args::{Device, Global};
use crate::device::Place;
use crate::error::{Context as _, Failure, Result};
use crate::output::STANDARD_OUTPUT;
use crate::store;
use crate::suggest;
use crate::table::harmless;

pub(crate) struct Context {
    pub(crate) quiet: bool,
    pub(crate) json: bool,
    pub(crate) threads: usize,
    settings: Vec<(String, String)>,
    pool: Arc<ThreadPool>,
}

/// A node, and what is counted of its store.
pub(crate) struct Opened {
    pub(crate) node: Node,
    pub(crate) metrics: MetricsHandle,
}

/// A store to write to.
pub(crate) struct Destination {
    pub(crate) store: AnyStore,
    /// Where in the store the node goes.
    pub(crate) path: String,
    archive: Option<Arc<ZipStore>>,
    directory: Option<FilesystemStore>,
}

impl Context {
    pub(crate) fn new(global: &Global) -> Result<Self> {
        let threads = global.threads.map_or_else(|| std::thread::available_parallelism().map_or(1, usize::from), usize::from);
        Ok(Self { quiet: global.quiet, json: global.json, threads, settings: global.settings.clone(), pool: pool(threads)? })
    }

    /// Options over all codecs, on the threads that were asked for.
    pub(crate) fn options(&self) -> Options {
        zarr::options().with_pool(Pool::new(Arc::clone(&self.pool)))
    }

    /// Where a command decodes, and the options that make it so. What `auto` finds unusable is remarked on.
    pub(crate) fn place(&self, device: Device) -> Result<Place> {
        Place::find(device, self.options(), |remark| self.note(remark))
    }

    /// Runs work where parallel iterators use the threads that were asked for.
    pub(crate) fn parallel<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        self.pool.install(work)
    }

    /// Does something for each item, several at a time, each on a thread of its own that may wait for stores. Results are in the order of the items.
    pub(crate) fn each<T: Sync, R: Send>(&self, at_a_time: usize, items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
        let next = AtomicUsize::new(0);
        let results = Mutex::new(Vec::with_capacity(items.len()));
        std::thread::scope(|scope| {
            for _ in 0..at_a_time.clamp(1, items.len().max(1)) {
                scope.spawn(|| {
                    loop {
                        let index = next.fetch_add(1, Ordering::Relaxed);
                        let Some(item) = items.get(index) else { break };
                        let result = work(item);
                        results.lock().unwrap_or_else(PoisonError::into_inner).push((index, result));
                    }
                });
            }
        });
        let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
        results.sort_unstable_by_key(|(index, _)| *index);
        results.into_iter().map(|(_, result)| result).collect()
    }

    /// As [`Context::each`], but begins no item after one that failed.
    pub(crate) fn try_each<T: Sync, R: Send>(
        &self,
        at_a_time: usize,
        items: &[T],
        work: impl Fn(&T) -> Result<R> + Sync,
    ) -> Result<Vec<R>> {
        let failed = AtomicBool::new(false);
        let results = self.each(at_a_time, items, |item| {
            if failed.load(Ordering::Relaxed) {
                return None;
            }
            let result = work(item);
            failed.fetch_or(result.is_err(), Ordering::Relaxed);
            Some(result)
        });
        results.into_iter().flatten().collect()
    }

    fn open_options(&self, access: Access) -> OpenOptions {
        let options = match access {
            Access::Write => OpenOptions::write(),
            _ => OpenOptions::read(),
        };
        self.settings.iter().fold(options, |options, (name, value)| options.with(name, value))
    }

    /// Finds a store, and the path in it, to read.
    pub(crate) fn locate(&self, url: &str) -> Result<(AnyStore, String, MetricsHandle)> {
        let (store, path) = zarr::locate(url, &self.open_options(Access::Read)).map_err(|error| match &error {
            ArrayError::Store(inner) if inner.kind() == StoreErrorKind::NotFound && !is_remote(url) => not_there(url),
            _ => {
                let failure = with_schemes(url, Failure::from(error).context(format!("cannot open {url}")));
                match suggest::for_file(url) {
                    Some(hint) => failure.hint(hint),
                    None => failure,
                }
            }
        })?;
        let (store, metrics) = Metrics::any(store);
        Ok((store, path, metrics))
    }

    /// Opens the node at a URL, to read.
    pub(crate) fn open(&self, url: &str, options: &Options) -> Result<Opened> {
        let (store, path, metrics) = self.locate(url)?;
        let node = Node::open(store, &path, options).map_err(|error| match &error {
            ArrayError::NotFound { .. } => not_zarr(url),
            _ => Failure::from(error).context(format!("cannot open {url}")),
        })?;
        Ok(Opened { node, metrics })
    }

    /// Opens the array at a URL, to read.
    pub(crate) fn open_array(&self, url: &str, options: &Options) -> Result<(Array, MetricsHandle)> {
        let opened = self.open(url, options)?;
        match opened.node {
            Node::Array(array) => Ok((*array, opened.metrics)),
            Node::Group(group) => {
                let failure = Failure::usage(format!("{url} is a group, and this works on one array"));
                Err(match group.names() {
                    Ok(names) if !names.is_empty() => failure.hint(format!("it holds {}", suggest::list(&names))),
                    _ => failure,
                })
            }
        }
    }

    /// Opens a store at a URL, to write.
    pub(crate) fn store_to_write(&self, url: &str) -> Result<AnyStore> {
        Ok(zarr::open_url(url, &self.open_options(Access::Write))?)
    }

    /// Opens a place to write to.
    pub(crate) fn destination(&self, url: &str) -> Result<Destination> {
        let wrong = |error: ArrayError| with_schemes(url, Failure::from(error).context(format!("cannot write to {url}")));
        if let Some((file, path)) = local_archive(url).map_err(|error| wrong(error.into()))? {
            let exists = std::path::Path::new(&file).exists();
            let store = if exists { ZipStore::append(file, Default::default()) } else { ZipStore::create(file) };
            let archive = Arc::new(store.map_err(|error| wrong(error.into()))?);
            let store = AnyStore::from(Arc::clone(&archive) as Arc<dyn Store>);
            return Ok(Destination { store, path, archive: Some(archive), directory: None });
        }
        let store = zarr::open_url(url, &self.open_options(Access::Write)).map_err(|error| wrong(error.into()))?;
        if !store.is_writable() {
            return Err(Failure::usage(format!("{url} can only be read")));
        }
        let directory = store.name().strip_prefix("file://").and_then(|path| FilesystemStore::new(path).ok());
        Ok(Destination { store, path: "/".to_owned(), archive: None, directory })
    }

    /// Prints a result.
    pub(crate) fn print(&self, text: &str) -> Result<()> {
        let mut out = anstream::stdout().lock();
        printed(out.write_all(harmless(text).as_bytes()).and_then(|()| out.flush()))
    }

    /// Prints a result for programs.
    pub(crate) fn print_json(&self, object: JsonObject) -> Result<()> {
        let mut out = io::stdout().lock();
        printed(writeln!(out, "{}", Json::from(object).to_text_pretty()).and_then(|()| out.flush()))
    }

    /// Prints a remark on standard error, unless asked to be quiet.
    pub(crate) fn note(&self, text: &str) {
        if !self.quiet {
            let dim = crate::table::DIM;
            // A remark that nobody can read is not missed.
            let _ = writeln!(anstream::stderr(), "{dim}{}{dim:#}", harmless(text));
        }
    }
}

impl Destination {
    /// Makes what was written visible, where that takes a step of its own.
    pub(crate) fn finish(&self) -> Result<()> {
        match &self.archive {
            Some(archive) => Ok(archive.close()?),
            None => Ok(()),
        }
    }

    /// Whether there is an array or a group.
    pub(crate) fn holds_node(&self) -> Result<bool> {
        let mut found = false;
        for document in suggest::DOCUMENTS {
            found |= store::size(&self.store, &self.prefix()?.key(document)?)?.is_some();
        }
        Ok(found)
    }

    /// Refuses to begin where something is.
    pub(crate) fn check_vacant(&self, name: &str) -> Result<()> {
        if self.holds_node()? {
            return Err(Failure::new(format!("there is an array or a group at {name} already")).hint("--overwrite removes it first"));
        }
        if self.store.is_listable() {
            let listing = store::list_dir(&self.store, &self.prefix()?)?;
            if !listing.keys.is_empty() || !listing.prefixes.is_empty() {
                return Err(Failure::new(format!("{name} is not empty, and holds no Zarr")).hint("--overwrite removes what is there"));
            }
        }
        Ok(())
    }

    fn prefix(&self) -> Result<StorePrefix> {
        Ok(StorePrefix::new(NodePath::new_v2(&self.path)?.prefix())?)
    }

    /// Gives up what was written to an archive that took shape only here.
    pub(crate) fn abandon(&self) {
        if let Some(archive) = &self.archive {
            archive.abandon();
        }
    }

    /// Removes what a writer that was killed left of values that it was writing.
    pub(crate) fn remove_abandoned(&self) -> Result<()> {
        if let Some(directory) = &self.directory {
            directory.remove_abandoned(Duration::ZERO)?;
        }
        Ok(())
    }

    /// Whether what was written before a failure is there afterwards.
    pub(crate) fn keeps_partial_work(&self) -> bool {
        self.archive.is_none()
    }
}

fn printed(done: io::Result<()>) -> Result<()> {
    done.context(|| format!("cannot write to {STANDARD_OUTPUT}"))
}

pub(crate) fn pool(threads: usize) -> Result<Arc<ThreadPool>> {
    Ok(Arc::new(ThreadPoolBuilder::new().num_threads(threads).thread_name(|index| format!("zarr-{index}")).build()?))
}

pub(crate) fn is_remote(url: &str) -> bool {
    url.split_once("://").is_some_and(|(scheme, _)| !["file", "zip", "memory"].contains(&scheme.to_ascii_lowercase().as_str()))
}

/// A URL of a scheme that there is no store for is told which there are.
fn with_schemes(url: &str, failure: Failure) -> Failure {
    const KNOWN: [&str; 14] = ["file", "zip", "memory", "http", "https", "s3", "s3a", "gs", "gcs", "az", "azure", "abfs", "abfss", "adl"];
    match url.split_once("://") {
        Some((scheme, _)) if !KNOWN.contains(&scheme.to_ascii_lowercase().as_str()) => {
            let shown = ["file", "zip", "http", "https", "s3", "gs", "az"];
            failure.hint(match suggest::close(scheme, shown).first() {
                Some(close) => format!("did you mean {close}://?"),
                None => format!("a URL begins with one of {}", shown.map(|scheme| format!("{scheme}://")).join(", ")),
            })
        }
        // In the words of the client.
        _ if failure.line().contains("Account must be specified") => {
            failure.hint("--setting account_name=NAME, or AZURE_STORAGE_ACCOUNT_NAME in the environment, names the account")
        }
        _ => failure,
    }
}

fn not_there(url: &str) -> Failure {
    let failure = Failure::new(format!("{url} does not exist"));
    match suggest::for_path(url) {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

fn not_zarr(url: &str) -> Failure {
    let failure = Failure::new(format!("there is no Zarr array or group at {url}"));
    match suggest::for_path(url).filter(|_| !is_remote(url)) {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_schemes() {
        let hint = |url: &str| format!("{:?}", with_schemes(url, Failure::new("x")));
        assert!(hint("htp://x").contains("did you mean http://?"));
        assert!(hint("ftp://x").contains("begins with one of file://, zip://, http://"));
        assert!(!hint("s3://x").contains("one of") && !hint("a/b").contains("one of"));
    }

    #[test]
    fn remote_urls() {
        assert!(is_remote("s3://a/b") && is_remote("HTTPS://x"));
        assert!(!is_remote("file:///a") && !is_remote("a/b") && !is_remote("c:\\x"));
    }
}

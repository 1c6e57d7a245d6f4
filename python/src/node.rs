//! Opening, and what arrays and groups share.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use zarr::meta::{Json, JsonObject};
use zarr::{AnyStore, ArrayError, Node, OpenOptions, Options, Pool};
use zarr_store_api::StoreError;

use crate::archive::Archive;
use crate::array::Array;
use crate::error::{Failure, Outcome, parameter, unsupported};
use crate::group::Group;
use crate::wait::wait;

/// Opens the array or group at a path or URL: `data.zarr/temperature`, `archive.zip/node`, `s3://bucket/prefix`, `https://..`.
///
/// `mode`: `"r"` to read, `"r+"` to read and write. `threads`: threads that decode; by default, as many as there are processors. `concurrency`: requests that a read has in flight at a
/// remote store, by default 64. `in_flight_bytes`: bytes of those requests, and of answers that wait to be decoded, by default 512 MiB. `index_cache`: bytes of shard indexes that an array keeps from read to read, by default 4 MiB; none is used for a
/// shard that was replaced. `storage_options`: settings of object stores, by the names of the
/// crate `object_store` (`region`, `endpoint`, `skip_signature`, ..).
#[pyfunction]
#[pyo3(signature = (path, mode="r", *, threads=None, concurrency=None, in_flight_bytes=None, index_cache=None, storage_options=None))]
#[expect(clippy::too_many_arguments, reason = "all but two by keyword")]
pub(crate) fn open<'py>(
    py: Python<'py>,
    path: &Bound<'py, PyAny>,
    mode: &str,
    threads: Option<usize>,
    concurrency: Option<usize>,
    in_flight_bytes: Option<usize>,
    index_cache: Option<usize>,
    storage_options: Option<&Bound<'py, PyDict>>,
) -> Outcome<Bound<'py, PyAny>> {
    let writable = match mode {
        "r" => false,
        "r+" => true,
        _ => {
            let known = "\"r\" reads, \"r+\" writes, too, and create_array and create_group make what is new";
            return Err(parameter(format!("no mode is called {mode:?}: {known}")));
        }
    };
    Origin { threads, concurrency, in_flight_bytes, index_cache, ..Origin::new(path, writable, storage_options)? }.open(py, None)
}

/// Opens what was pickled.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "the fields of Origin")]
pub(crate) fn _reopen<'py>(
    py: Python<'py>,
    path: String,
    node: &str,
    writable: bool,
    threads: Option<usize>,
    concurrency: Option<usize>,
    in_flight_bytes: Option<usize>,
    index_cache: Option<usize>,
    settings: Vec<(String, String)>,
) -> Outcome<Bound<'py, PyAny>> {
    Origin { path, writable, threads, concurrency, in_flight_bytes, index_cache, settings, archive: OnceLock::new(), top: OnceLock::new() }
        .open(py, Some(node))
}

/// What `open` was given: enough to open the same store in another process.
#[derive(Debug)]
pub(crate) struct Origin {
    path: String,
    writable: bool,
    threads: Option<usize>,
    concurrency: Option<usize>,
    in_flight_bytes: Option<usize>,
    index_cache: Option<usize>,
    settings: Vec<(String, String)>,
    /// The zip archive that is written.
    archive: OnceLock<Archive>,
    /// The path of the node that was opened or created first: it closes the archive, those below do not.
    top: OnceLock<String>,
}

impl Origin {
    pub(crate) fn new(path: &Bound<'_, PyAny>, writable: bool, storage_options: Option<&Bound<'_, PyDict>>) -> Outcome<Self> {
        let path: String = path.py().import("os")?.call_method1("fspath", (path,))?.extract()?;
        let mut settings = Vec::new();
        for (name, value) in storage_options.into_iter().flatten() {
            settings.push((name.extract::<String>()?, value.str()?.to_string()));
        }
        Ok(Self {
            path,
            writable,
            threads: None,
            concurrency: None,
            in_flight_bytes: None,
            index_cache: None,
            settings,
            archive: OnceLock::new(),
            top: OnceLock::new(),
        })
    }

    /// What nodes of the store work with.
    pub(crate) fn options(&self) -> Outcome<Options> {
        let mut options = zarr::options();
        if let Some(bytes) = self.index_cache {
            options = options.with_index_cache(bytes);
        }
        if let Some(concurrency) = self.concurrency {
            options = options.with_concurrency(concurrency);
        }
        if let Some(bytes) = self.in_flight_bytes {
            options = options.with_in_flight_bytes(bytes);
        }
        if let Some(threads) = self.threads {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
            options = options.with_pool(Pool::new(Arc::new(pool.map_err(|error| parameter(error.to_string()))?)));
        }
        Ok(options)
    }

    /// The store, and where the node lies in it, or will.
    pub(crate) fn locate(&self, is_new: bool) -> Outcome<(AnyStore, String)> {
        let archive = zarr::store::local_archive(&self.path).map_err(ArrayError::from)?.filter(|_| self.writable);
        if let Some((archive, inside)) = &archive
            && (is_new || Path::new(archive).exists())
        {
            let archive = Archive::begin(Path::new(archive))?;
            return Ok((self.archive.get_or_init(|| archive).store(), inside.clone()));
        }
        // An archive that is not there is not made by opening it.
        let how = if self.writable && archive.is_none() { OpenOptions::write() } else { OpenOptions::read() };
        let (store, inside) = zarr::locate(&self.path, &self.settings.iter().fold(how, |how, (name, value)| how.with(name, value)))?;
        if self.writable && !store.is_writable() {
            return Err(ArrayError::from(StoreError::read_only(format!("{} cannot be written", store.name()))).into());
        }
        Ok((store, inside))
    }

    /// Opens the node of the path, or another one of the same store.
    fn open<'py>(self, py: Python<'py>, node: Option<&str>) -> Outcome<Bound<'py, PyAny>> {
        let options = self.options()?;
        let opened = wait(py, async {
            let (store, inside) = self.locate(false)?;
            Ok::<_, Failure>(Node::open_async(store, node.unwrap_or(&inside), &options).await?)
        })??;
        let path = opened.path().to_string();
        wrap(py, opened, &self.shared(path))
    }

    /// For the nodes that came of it, of which that at `path` is the first.
    pub(crate) fn shared(self, path: String) -> Arc<Self> {
        if let Some(archive) = self.archive.get() {
            archive.keep();
        }
        self.top.get_or_init(|| path);
        Arc::new(self)
    }

    /// Gives an archive its name, if the node at `path` is the one to do so. There is nothing else to close.
    pub(crate) fn close(&self, py: Python<'_>, path: &str) -> Outcome<()> {
        py.detach(|| self.closes(path).map_or(Ok(()), Archive::close))
    }

    /// The end of a `with` block of the node at `path`, by an exception or without one.
    pub(crate) fn leave(&self, py: Python<'_>, path: &str, exception: Option<&Bound<'_, PyAny>>) -> Outcome<()> {
        match (self.closes(path), exception) {
            (Some(archive), Some(_)) => {
                py.detach(|| archive.abandon());
                Ok(())
            }
            _ => self.close(py, path),
        }
    }

    fn closes(&self, path: &str) -> Option<&Archive> {
        self.archive.get().filter(|_| self.top.get().is_some_and(|top| top == path))
    }

    pub(crate) fn is_writable(&self) -> bool {
        self.writable
    }

    /// Refuses what changes a node that was opened to read.
    pub(crate) fn check_writable(&self) -> Outcome<()> {
        if self.writable {
            return Ok(());
        }
        Err(parameter(format!("{} was opened to read; zarrgpu.open(.., mode=\"r+\") is for writing, too", self.path)))
    }

    /// How a node of the store is pickled: a function, and its arguments.
    pub(crate) fn reduce<'py>(&self, py: Python<'py>, node: &str) -> PyResult<Bound<'py, PyTuple>> {
        if self.archive.get().is_some() {
            return Err(unsupported(format!("{} is a zip archive that this process writes, and no other can", self.path)).into());
        }
        let reopen = py.import("zarrgpu._zarrgpu")?.getattr("_reopen")?;
        let Self { path, writable, threads, concurrency, in_flight_bytes, index_cache, settings, archive: _, top: _ } = self;
        let arguments = (path, node, writable, threads, concurrency, in_flight_bytes, index_cache, settings.clone());
        (reopen, arguments.into_pyobject(py)?).into_pyobject(py)
    }
}

/// An `Array` or a `Group`.
pub(crate) fn wrap<'py>(py: Python<'py>, node: Node, origin: &Arc<Origin>) -> Outcome<Bound<'py, PyAny>> {
    let origin = Arc::clone(origin);
    Ok(match node {
        Node::Array(array) => Bound::new(py, Array::new(*array, origin))?.into_any(),
        Node::Group(group) => Bound::new(py, Group::new(*group, origin))?.into_any(),
    })
}

/// The mapping that Python sees of a node's attributes.
pub(crate) fn live_attributes<'py>(node: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    node.py().import("zarrgpu._attributes")?.getattr("Attributes")?.call1((node,))
}

/// Sets some attributes, and removes some.
pub(crate) fn change(attributes: &mut JsonObject, set: &JsonObject, remove: &[String]) {
    for (name, value) in set.iter() {
        attributes.insert(name, value.clone());
    }
    for name in remove {
        attributes.remove(name);
    }
}

/// A dictionary of Python's, as JSON.
pub(crate) fn object(dictionary: &Bound<'_, PyAny>) -> Outcome<JsonObject> {
    let text: String = dictionary.py().import("zarrgpu._numpy")?.call_method1("json_text", (dictionary,))?.extract()?;
    match Json::parse(text.as_bytes()) {
        Ok(Json::Object(object)) => Ok(object),
        Ok(_) => Err(parameter("attributes are a dictionary")),
        Err(error) => Err(parameter(error.to_string())),
    }
}

/// Attributes as Python values. Integers of any size, and NaN, survive.
pub(crate) fn attributes<'py>(py: Python<'py>, attributes: &JsonObject) -> Outcome<Bound<'py, PyAny>> {
    let dictionary = PyDict::new(py);
    for (name, value) in attributes.iter() {
        dictionary.set_item(name, plain(py, value)?)?;
    }
    Ok(dictionary.into_any())
}

fn plain<'py>(py: Python<'py>, value: &Json) -> Outcome<Bound<'py, PyAny>> {
    Ok(match value {
        Json::Null => py.None().into_bound(py),
        Json::Bool(value) => PyBool::new(py, *value).to_owned().into_any(),
        Json::Number(number) if number.is_integer() => py.get_type::<PyInt>().call1((number.as_str(),))?,
        Json::Number(number) => PyFloat::new(py, number.as_f64()).into_any(),
        Json::String(text) => PyString::new(py, text).into_any(),
        Json::Array(items) => {
            let list = PyList::empty(py);
            for item in items {
                list.append(plain(py, item)?)?;
            }
            list.into_any()
        }
        Json::Object(object) => attributes(py, object)?,
    })
}

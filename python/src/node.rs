//! Opening, and what arrays and groups share.

use std::path::Path;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use zarr::meta::{Json, JsonObject};
use zarr::{AnyStore, ArrayError, Node, OpenOptions, Options, Pool};
use zarr_store_api::StoreError;

use crate::array::Array;
use crate::error::{Outcome, parameter, unsupported};
use crate::group::Group;

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
    Origin { path, writable, threads, concurrency, in_flight_bytes, index_cache, settings }.open(py, Some(node))
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
}

impl Origin {
    pub(crate) fn new(path: &Bound<'_, PyAny>, writable: bool, storage_options: Option<&Bound<'_, PyDict>>) -> Outcome<Self> {
        let path: String = path.py().import("os")?.call_method1("fspath", (path,))?.extract()?;
        let mut settings = Vec::new();
        for (name, value) in storage_options.into_iter().flatten() {
            settings.push((name.extract::<String>()?, value.str()?.to_string()));
        }
        Ok(Self { path, writable, threads: None, concurrency: None, in_flight_bytes: None, index_cache: None, settings })
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

    /// The store, and where the node lies in it.
    pub(crate) fn locate(&self) -> Outcome<(AnyStore, String)> {
        if self.writable && is_archive(&self.path) {
            // It is complete only once it is closed, and nobody knows when Python lets go of a node.
            return Err(unsupported(format!("{} is a zip archive: those are read; write a directory, and pack it", self.path)));
        }
        let how = if self.writable { OpenOptions::write() } else { OpenOptions::read() };
        let (store, inside) = zarr::locate(&self.path, &self.settings.iter().fold(how, |how, (name, value)| how.with(name, value)))?;
        if self.writable && !store.is_writable() {
            return Err(ArrayError::from(StoreError::read_only(format!("{} cannot be written", store.name()))).into());
        }
        Ok((store, inside))
    }

    /// Opens the node of the path, or another one of the same store.
    fn open<'py>(self, py: Python<'py>, node: Option<&str>) -> Outcome<Bound<'py, PyAny>> {
        let options = self.options()?;
        let opened = py.detach(|| -> Outcome<Node> {
            let (store, inside) = self.locate()?;
            Ok(Node::open(store, node.unwrap_or(&inside), &options)?)
        })?;
        wrap(py, opened, &Arc::new(self))
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
        let reopen = py.import("zarrgpu._zarrgpu")?.getattr("_reopen")?;
        let Self { path, writable, threads, concurrency, in_flight_bytes, index_cache, settings } = self;
        let arguments = (path, node, writable, threads, concurrency, in_flight_bytes, index_cache, settings.clone());
        (reopen, arguments.into_pyobject(py)?).into_pyobject(py)
    }
}

/// Whether a path is one of a zip archive, or in one, that is there or would be made.
fn is_archive(path: &str) -> bool {
    let lower = path.to_ascii_lowercase();
    let ends = lower.match_indices(".zip").map(|(at, _)| at + 4);
    let ends: Vec<usize> = ends.filter(|&end| end == lower.len() || lower[end..].starts_with('/')).collect();
    lower.starts_with("zip://") || ends.into_iter().any(|end| path.get(..end).is_some_and(|archive| !Path::new(archive).is_dir()))
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

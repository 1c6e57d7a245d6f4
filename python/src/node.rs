//! Opening.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use zarr::meta::{Json, JsonObject};
use zarr::{Node, OpenOptions, Pool};

use crate::array::Array;
use crate::error::{Outcome, parameter};
use crate::group::Group;

/// Opens the array or group at a path or URL, to read: `data.zarr/temperature`, `archive.zip/node`, `s3://bucket/prefix`, `https://..`.
///
/// `threads`: threads that decode; by default, as many as there are processors. `concurrency`: requests in flight at a remote store.
/// `index_cache`: bytes of shard indexes that arrays keep from read to read. `storage_options`: settings of object stores, by the names of the
/// crate `object_store` (`region`, `endpoint`, `skip_signature`, ..).
#[pyfunction]
#[pyo3(signature = (path, *, threads=None, concurrency=None, index_cache=0, storage_options=None))]
pub(crate) fn open<'py>(
    py: Python<'py>,
    path: &Bound<'py, PyAny>,
    threads: Option<usize>,
    concurrency: Option<usize>,
    index_cache: usize,
    storage_options: Option<&Bound<'py, PyDict>>,
) -> Outcome<Bound<'py, PyAny>> {
    let path: String = py.import("os")?.call_method1("fspath", (path,))?.extract()?;
    let mut settings = Vec::new();
    for (name, value) in storage_options.into_iter().flatten() {
        settings.push((name.extract::<String>()?, value.str()?.to_string()));
    }
    Origin { path, threads, concurrency, index_cache, settings }.open(py, None)
}

/// Opens what was pickled.
#[pyfunction]
pub(crate) fn _reopen<'py>(
    py: Python<'py>,
    path: String,
    node: &str,
    threads: Option<usize>,
    concurrency: Option<usize>,
    index_cache: usize,
    settings: Vec<(String, String)>,
) -> Outcome<Bound<'py, PyAny>> {
    Origin { path, threads, concurrency, index_cache, settings }.open(py, Some(node))
}

/// What `open` was given: enough to open the same store in another process.
#[derive(Debug)]
pub(crate) struct Origin {
    path: String,
    threads: Option<usize>,
    concurrency: Option<usize>,
    index_cache: usize,
    settings: Vec<(String, String)>,
}

impl Origin {
    /// Opens the node of the path, or another one of the same store.
    fn open<'py>(self, py: Python<'py>, node: Option<&str>) -> Outcome<Bound<'py, PyAny>> {
        let how = self.settings.iter().fold(OpenOptions::read(), |how, (name, value)| how.with(name, value));
        let mut options = zarr::options().with_index_cache(self.index_cache);
        if let Some(concurrency) = self.concurrency {
            options = options.with_concurrency(concurrency);
        }
        if let Some(threads) = self.threads {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
            options = options.with_pool(Pool::new(Arc::new(pool.map_err(|error| parameter(error.to_string()))?)));
        }
        let opened = py.detach(|| -> Outcome<Node> {
            let (store, inside) = zarr::locate(&self.path, &how)?;
            Ok(Node::open(store, node.unwrap_or(&inside), &options)?)
        })?;
        wrap(py, opened, &Arc::new(self))
    }

    /// How a node of the store is pickled: a function, and its arguments.
    pub(crate) fn reduce<'py>(&self, py: Python<'py>, node: &str) -> PyResult<Bound<'py, PyTuple>> {
        let reopen = py.import("zarrgpu._zarrgpu")?.getattr("_reopen")?;
        let arguments = (&self.path, node, self.threads, self.concurrency, self.index_cache, self.settings.clone());
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

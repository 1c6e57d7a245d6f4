//! Opening.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString};
use zarr::meta::{Json, JsonObject};
use zarr::{Node, OpenOptions, Options, Pool};

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
    let mut how = OpenOptions::read();
    for (name, value) in storage_options.into_iter().flatten() {
        how = how.with(name.extract::<String>()?, value.str()?.to_string());
    }
    let mut options = zarr::options().with_index_cache(index_cache);
    if let Some(concurrency) = concurrency {
        options = options.with_concurrency(concurrency);
    }
    if let Some(threads) = threads {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        options = options.with_pool(Pool::new(Arc::new(pool.map_err(|error| parameter(error.to_string()))?)));
    }
    let node = py.detach(|| locate(&path, &how, &options))?;
    wrap(py, node)
}

fn locate(path: &str, how: &OpenOptions, options: &Options) -> Outcome<Node> {
    let (store, inside) = zarr::locate(path, how)?;
    Ok(Node::open(store, &inside, options)?)
}

/// An `Array` or a `Group`.
pub(crate) fn wrap(py: Python<'_>, node: Node) -> Outcome<Bound<'_, PyAny>> {
    Ok(match node {
        Node::Array(array) => Bound::new(py, Array::new(*array))?.into_any(),
        Node::Group(group) => Bound::new(py, Group::new(*group))?.into_any(),
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

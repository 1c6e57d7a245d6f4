use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyIterator, PyTuple};
use zarr::{ArrayError, Node};

use crate::array::Array;
use crate::error::Outcome;
use crate::node::{self, Origin};

/// A group of arrays and groups: iterating gives names, `group["a/b"]` an array or a group.
#[pyclass(frozen, weakref, module = "zarrgpu")]
pub(crate) struct Group {
    inner: zarr::Group,
    origin: Arc<Origin>,
}

impl Group {
    pub(crate) fn new(inner: zarr::Group, origin: Arc<Origin>) -> Self {
        Self { inner, origin }
    }

    fn children<'py>(&self, py: Python<'py>) -> Outcome<Vec<(String, Bound<'py, PyAny>)>> {
        let children = py.detach(|| self.inner.children())?;
        let named = |child: Node| -> Outcome<_> {
            let name = child.path().to_string().rsplit('/').next().unwrap_or_default().to_owned();
            Ok((name, node::wrap(py, child, &self.origin)?))
        };
        children.into_iter().map(named).collect()
    }

    fn names(&self, py: Python<'_>) -> Outcome<Vec<String>> {
        Ok(py.detach(|| self.inner.names())?)
    }
}

#[pymethods]
impl Group {
    /// The path in the store.
    #[getter]
    fn path(&self) -> String {
        self.inner.path().to_string()
    }

    /// The attributes.
    #[getter]
    fn attributes<'py>(&self, py: Python<'py>) -> Outcome<Bound<'py, PyAny>> {
        node::attributes(py, self.inner.attributes())
    }

    /// As `attributes`.
    #[getter]
    fn attrs<'py>(&self, py: Python<'py>) -> Outcome<Bound<'py, PyAny>> {
        self.attributes(py)
    }

    /// The version of the format: 2 or 3.
    #[getter]
    fn zarr_format(&self) -> u8 {
        crate::array::format_number(self.inner.version())
    }

    fn __getitem__<'py>(&self, py: Python<'py>, name: &str) -> Outcome<Bound<'py, PyAny>> {
        node::wrap(py, py.detach(|| self.inner.get(name))?, &self.origin)
    }

    /// The node below, or `default` if there is none.
    #[pyo3(signature = (name, default=None))]
    fn get<'py>(&self, py: Python<'py>, name: &str, default: Option<Bound<'py, PyAny>>) -> Outcome<Option<Bound<'py, PyAny>>> {
        match py.detach(|| self.inner.get(name)) {
            Ok(node) => node::wrap(py, node, &self.origin).map(Some),
            Err(ArrayError::NotFound { .. }) => Ok(default),
            Err(error) => Err(error.into()),
        }
    }

    fn __contains__(&self, py: Python<'_>, name: &str) -> Outcome<bool> {
        match py.detach(|| self.inner.get(name)) {
            Ok(_) => Ok(true),
            Err(ArrayError::NotFound { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn __len__(&self, py: Python<'_>) -> Outcome<usize> {
        Ok(self.names(py)?.len())
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> Outcome<Bound<'py, PyIterator>> {
        Ok(self.names(py)?.into_pyobject(py)?.try_iter()?)
    }

    /// The names of the nodes directly below.
    fn keys(&self, py: Python<'_>) -> Outcome<Vec<String>> {
        self.names(py)
    }

    /// The nodes directly below.
    fn values<'py>(&self, py: Python<'py>) -> Outcome<Vec<Bound<'py, PyAny>>> {
        Ok(self.children(py)?.into_iter().map(|(_, child)| child).collect())
    }

    /// Names and nodes directly below.
    fn items<'py>(&self, py: Python<'py>) -> Outcome<Vec<(String, Bound<'py, PyAny>)>> {
        self.children(py)
    }

    /// Names and arrays directly below.
    fn arrays<'py>(&self, py: Python<'py>) -> Outcome<Vec<(String, Bound<'py, PyAny>)>> {
        Ok(self.children(py)?.into_iter().filter(|(_, child)| child.is_instance_of::<Array>()).collect())
    }

    /// Names and groups directly below.
    fn groups<'py>(&self, py: Python<'py>) -> Outcome<Vec<(String, Bound<'py, PyAny>)>> {
        Ok(self.children(py)?.into_iter().filter(|(_, child)| child.is_instance_of::<Self>()).collect())
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        self.origin.reduce(py, &self.path())
    }

    fn __repr__(&self) -> String {
        format!("<zarrgpu.Group {} in {}>", self.inner.path(), self.inner.store().name())
    }
}

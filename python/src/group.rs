use std::sync::{Arc, PoisonError, RwLock};

use pyo3::prelude::*;
use pyo3::types::{PyIterator, PyTuple};
use zarr::{ArrayError, Node};

use crate::array::Array;
use crate::create::{Codecs, Description, object_or_empty, wrong};
use crate::error::{Outcome, parameter};
use crate::node::{self, Origin};
use crate::wait::{Turn, wait, wait_detached, wait_unless};

/// A group of arrays and groups: iterating gives names, `group["a/b"]` an array or a group. Below one that was opened by `mode="r+"` or created, others are created and
/// removed (`del group["a/b"]`).
///
/// A group with consolidated metadata goes by these: what is created, changed or removed below it is in them after the next `consolidate`.
#[pyclass(frozen, weakref, module = "zarrgpu")]
pub(crate) struct Group {
    /// As it was opened, or last changed from here.
    inner: RwLock<Arc<zarr::Group>>,
    origin: Arc<Origin>,
    /// Taken while metadata change.
    changing: Turn,
}

impl Group {
    pub(crate) fn new(inner: zarr::Group, origin: Arc<Origin>) -> Self {
        Self { inner: RwLock::new(Arc::new(inner)), origin, changing: Turn::default() }
    }

    fn group(&self) -> Arc<zarr::Group> {
        Arc::clone(&self.inner.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Changes the metadata. For who has let go of Python's lock.
    fn change(&self, change: impl FnOnce(&mut zarr::Group) -> Outcome<()>) -> Outcome<()> {
        let _one = self.changing.take("group is being changed")?;
        let mut group = (*self.group()).clone();
        change(&mut group)?;
        *self.inner.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(group);
        Ok(())
    }

    fn children<'py>(&self, py: Python<'py>) -> Outcome<Vec<(String, Bound<'py, PyAny>)>> {
        let group = self.group();
        let children = wait(py, group.children_async())??;
        let named = |child: Node| -> Outcome<_> {
            let name = child.path().to_string().rsplit('/').next().unwrap_or_default().to_owned();
            Ok((name, node::wrap(py, child, &self.origin)?))
        };
        children.into_iter().map(|child| named(child?)).collect()
    }

    /// Refuses to change what lies at a name in a group that was opened to read, and the group itself.
    fn check_change(&self, name: &str) -> Outcome<()> {
        self.origin.check_writable()?;
        if name.trim_matches('/').is_empty() {
            return Err(parameter("the name of a node below the group is needed"));
        }
        Ok(())
    }

    fn find(&self, py: Python<'_>, name: &str) -> PyResult<Result<Node, ArrayError>> {
        let group = self.group();
        wait(py, group.get_async(name))
    }

    fn names(&self, py: Python<'_>) -> Outcome<Vec<String>> {
        let group = self.group();
        Ok(wait(py, group.names_async())??)
    }
}

#[pymethods]
impl Group {
    /// The path in the store.
    #[getter]
    fn path(&self) -> String {
        self.group().path().to_string()
    }

    /// Whether the group was opened to read, and not to write.
    #[getter]
    fn read_only(&self) -> bool {
        !self.origin.is_writable()
    }

    /// The attributes, a mapping. What is set in it is stored.
    #[getter]
    fn attributes(this: Bound<'_, Self>) -> PyResult<Bound<'_, PyAny>> {
        node::live_attributes(this.into_any())
    }

    /// As `attributes`.
    #[getter]
    fn attrs(this: Bound<'_, Self>) -> PyResult<Bound<'_, PyAny>> {
        node::live_attributes(this.into_any())
    }

    fn _attributes<'py>(&self, py: Python<'py>) -> Outcome<Bound<'py, PyAny>> {
        node::attributes(py, self.group().attributes())
    }

    fn _change_attributes(&self, py: Python<'_>, set: &Bound<'_, PyAny>, remove: Vec<String>) -> Outcome<()> {
        self.origin.check_writable()?;
        let set = node::object(set)?;
        py.detach(|| self.change(|group| Ok(wait_detached(group.update_attributes_async(|own| node::change(own, &set, &remove)))??)))
    }

    /// Creates an array below, and the groups between where they are missing. As `zarrgpu.create_array`; the version of the format is the group's.
    #[pyo3(signature = (name, *, shape, dtype, chunks=None, shards=None, fill_value=None, filters=None, serializer=None, compressors=Codecs::Default,
        dimension_names=None, attributes=None, overwrite=false))]
    #[expect(clippy::too_many_arguments, reason = "Python's have names")]
    fn create_array(
        &self,
        py: Python<'_>,
        name: &str,
        shape: &Bound<'_, PyAny>,
        dtype: &Bound<'_, PyAny>,
        chunks: Option<&Bound<'_, PyAny>>,
        shards: Option<&Bound<'_, PyAny>>,
        fill_value: Option<&Bound<'_, PyAny>>,
        filters: Option<&Bound<'_, PyAny>>,
        serializer: Option<&Bound<'_, PyAny>>,
        compressors: Codecs<'_>,
        dimension_names: Option<Vec<Option<String>>>,
        attributes: Option<&Bound<'_, PyAny>>,
        overwrite: bool,
    ) -> Outcome<Array> {
        self.check_change(name)?;
        let description =
            Description { shape, dtype, chunks, shards, fill_value, filters, serializer, compressors, dimension_names, attributes };
        let builder = description.builder()?.overwrite(overwrite);
        let group = self.group();
        let array = wait_unless(py, overwrite, group.create_array_async(name, &builder))?.map_err(wrong)?;
        Ok(Array::new(array, Arc::clone(&self.origin)))
    }

    /// Creates a group below, and the groups between where they are missing. `overwrite` removes all that is at the path.
    #[pyo3(signature = (name, *, attributes=None, overwrite=false))]
    fn create_group(&self, py: Python<'_>, name: &str, attributes: Option<&Bound<'_, PyAny>>, overwrite: bool) -> Outcome<Self> {
        self.check_change(name)?;
        let builder = zarr::GroupBuilder::new().attributes(object_or_empty(attributes)?).overwrite(overwrite);
        let group = self.group();
        let group = wait_unless(py, overwrite, group.create_group_async(name, &builder))??;
        Ok(Self::new(group, Arc::clone(&self.origin)))
    }

    /// The group below, created where it is missing, and so are those between.
    fn require_group(&self, py: Python<'_>, name: &str) -> Outcome<Self> {
        self.check_change(name)?;
        let group = self.group();
        let group = wait(py, group.require_group_async(name))??;
        Ok(Self::new(group, Arc::clone(&self.origin)))
    }

    /// Collects the metadata of all nodes below in this group's, so that readers ask for one document.
    fn consolidate(&self, py: Python<'_>) -> Outcome<()> {
        self.origin.check_writable()?;
        py.detach(|| self.change(|group| Ok(wait_detached(group.consolidate_async())??)))
    }

    /// Takes over what was changed of the group's own stored metadata since it was opened.
    fn refresh(&self, py: Python<'_>) -> Outcome<()> {
        py.detach(|| self.change(|group| Ok(wait_detached(group.refresh_async())??)))
    }

    /// Removes the node, and all below it.
    fn __delitem__(&self, py: Python<'_>, name: &str) -> Outcome<()> {
        self.check_change(name)?;
        Ok(py.detach(|| match self.group().get(name)? {
            Node::Array(array) => array.erase(),
            Node::Group(group) => group.erase(),
        })?)
    }

    /// The version of the format: 2 or 3.
    #[getter]
    fn zarr_format(&self) -> u8 {
        crate::array::format_number(self.group().version())
    }

    fn __getitem__<'py>(&self, py: Python<'py>, name: &str) -> Outcome<Bound<'py, PyAny>> {
        node::wrap(py, self.find(py, name)??, &self.origin)
    }

    /// The node below, or `default` if there is none.
    #[pyo3(signature = (name, default=None))]
    fn get<'py>(&self, py: Python<'py>, name: &str, default: Option<Bound<'py, PyAny>>) -> Outcome<Option<Bound<'py, PyAny>>> {
        match self.find(py, name)? {
            Ok(node) => node::wrap(py, node, &self.origin).map(Some),
            Err(ArrayError::NotFound { .. }) => Ok(default),
            Err(error) => Err(error.into()),
        }
    }

    fn __contains__(&self, py: Python<'_>, name: &str) -> Outcome<bool> {
        match self.find(py, name)? {
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

    /// Gives the zip archive that it was opened or created in its name; what is written later fails. Does nothing for other stores, and for nodes below of that one.
    fn close(&self, py: Python<'_>) -> Outcome<()> {
        self.origin.close(py, &self.path())
    }

    fn __enter__(this: Bound<'_, Self>) -> Bound<'_, Self> {
        this
    }

    /// As `close`; after an exception, a zip archive stays what it was before.
    #[pyo3(signature = (exception_type, *_about_it))]
    fn __exit__(&self, py: Python<'_>, exception_type: Option<&Bound<'_, PyAny>>, _about_it: &Bound<'_, PyTuple>) -> Outcome<()> {
        self.origin.leave(py, &self.path(), exception_type)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        self.origin.reduce(py, &self.path())
    }

    fn __repr__(&self) -> String {
        let group = self.group();
        format!("<zarrgpu.Group {} in {}>", group.path(), group.store().name())
    }
}

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use zarr::Selection;

use crate::array::Array;
use crate::error::Outcome;
use crate::read::to_numpy;

/// Single points of an array: `array.vindex[[1, 2], [3, 4]]` is two elements. Positions along the axes are broadcast together, and give the result its shape; or
/// there is one mask, of the array's shape.
#[pyclass(frozen, module = "zarrgpu._zarrgpu")]
pub(crate) struct VIndex(pub(crate) Py<Array>);

impl VIndex {
    /// The selection, the shape of the points, and whether they are one named by integers.
    fn points<'py>(&self, py: Python<'py>, index: &Bound<'py, PyAny>) -> Outcome<(Selection, Bound<'py, PyTuple>, bool)> {
        let shape = PyTuple::new(py, self.0.get().array().shape())?;
        let found = py.import("zarrgpu._numpy")?.call_method1("points", (index, shape))?;
        let (axes, shape, one): (Vec<Bound<'_, PyBytes>>, Bound<'_, PyTuple>, bool) = found.extract()?;
        let positions =
            |bytes: &Bound<'_, PyBytes>| bytes.as_bytes().as_chunks().0.iter().map(|&bytes| i64::from_ne_bytes(bytes)).collect();
        Ok((Selection::Points(axes.iter().map(positions).collect()), shape, one))
    }
}

#[pymethods]
impl VIndex {
    fn __getitem__<'py>(&self, py: Python<'py>, index: &Bound<'py, PyAny>) -> Outcome<Bound<'py, PyAny>> {
        let (selection, shape, one) = self.points(py, index)?;
        let found = to_numpy(py, &self.0.get().array(), &selection)?.call_method1("reshape", (shape,))?;
        Ok(if one { found.get_item(PyTuple::empty(py))? } else { found })
    }

    fn __setitem__(&self, py: Python<'_>, index: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> Outcome<()> {
        let (selection, shape, _) = self.points(py, index)?;
        self.0.get().put(&selection, Some(shape), value, None)
    }
}

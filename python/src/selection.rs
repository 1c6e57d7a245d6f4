//! Python's indexing to selections.

use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyEllipsis, PySequence, PySlice, PyString, PyTuple};
use zarr::{AxisSelection, Selection};

use crate::error::Outcome;

/// Which indexes are understood.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Integers, slices and `...`: where NumPy and Zarr mean the same.
    Basic,
    /// Lists and masks along axes, too, as a product; and NumPy's notation as a text.
    Product,
}

/// The selection that an index means, for an array of `rank` axes. `None` is the whole array.
pub(crate) fn parse(index: Option<&Bound<'_, PyAny>>, rank: usize, kind: Kind) -> Outcome<Selection> {
    let Some(index) = index else { return Ok(Selection::all()) };
    if let (Ok(text), Kind::Product) = (index.cast::<PyString>(), kind) {
        return Ok(Selection::parse(text.to_cow()?.as_ref(), rank)?);
    }
    let parts = parts(index);
    let named = parts.iter().filter(|part| !part.is_instance_of::<PyEllipsis>()).count();
    if parts.len() - named > 1 {
        return Err(PyIndexError::new_err("an index has one ellipsis at most").into());
    }
    if named > rank {
        return Err(PyIndexError::new_err(format!("{named} indexes for an array of {rank} axes")).into());
    }
    let mut axes = Vec::with_capacity(rank);
    for part in &parts {
        if part.is_instance_of::<PyEllipsis>() {
            axes.extend((named..rank).map(|_| AxisSelection::from(..)));
        } else {
            axes.push(axis(part, kind)?);
        }
    }
    Ok(Selection::axes(axes))
}

fn parts<'py>(index: &Bound<'py, PyAny>) -> Vec<Bound<'py, PyAny>> {
    match index.cast::<PyTuple>() {
        Ok(tuple) => tuple.iter().collect(),
        Err(_) => vec![index.clone()],
    }
}

/// Whether `...` is in an index.
pub(crate) fn has_ellipsis(index: &Bound<'_, PyAny>) -> bool {
    parts(index).iter().any(|part| part.is_instance_of::<PyEllipsis>())
}

fn axis(part: &Bound<'_, PyAny>, kind: Kind) -> Outcome<AxisSelection> {
    if let Ok(slice) = part.cast::<PySlice>() {
        let bound = |name| -> PyResult<Option<i64>> {
            let value = slice.getattr(name)?;
            if value.is_none() { Ok(None) } else { clipped(&value).map(Some) }
        };
        return Ok(AxisSelection::Slice { start: bound("start")?, stop: bound("stop")?, step: bound("step")?.unwrap_or(1) });
    }
    if !part.is_instance_of::<PyBool>()
        && let Ok(position) = clipped(part)
    {
        return Ok(AxisSelection::Index(position));
    }
    let refused =
        |what: &str| PyIndexError::new_err(format!("{what}: {}", part.repr().map_or_else(|_| "?".into(), |text| text.to_string())));
    if kind == Kind::Basic {
        return Err(refused(
            "only integers, slices and ... index an array; read and write take lists and masks along axes, vindex takes points",
        )
        .into());
    }
    // NumPy arrays and the like say themselves what they hold.
    let list = if part.hasattr("tolist")? { part.call_method0("tolist")? } else { part.clone() };
    let Ok(list) = list.cast::<PySequence>() else { return Err(refused("no index of an axis").into()) };
    let list = list.to_list()?;
    if !list.is_empty() && list.iter().all(|item| item.is_instance_of::<PyBool>()) {
        return Ok(AxisSelection::Mask(list.extract()?));
    }
    if list.iter().any(|item| item.is_instance_of::<PyBool>()) {
        return Err(refused("integers and booleans in one index").into());
    }
    Ok(AxisSelection::List(list.extract().map_err(|_| refused("no list of positions along one axis"))?))
}

/// A position, or the bound of a slice; what is beyond any array may as well be nearer.
fn clipped(value: &Bound<'_, PyAny>) -> PyResult<i64> {
    value.extract::<i64>().or_else(|_| {
        let number = value.py().import("operator")?.call_method1("index", (value,))?;
        Ok(if number.lt(0)? { i64::MIN + 1 } else { i64::MAX })
    })
}

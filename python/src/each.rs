use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::{PyIterator, PyString};
use zarr::{Elements, Selection};
use zarr_buffer_api::Buffer;

use crate::error::{Outcome, parameter, unsupported};
use crate::selection::{self, Kind};
use crate::tensor::Tensor;

type Selections = Box<dyn Iterator<Item = Selection> + Send>;

/// What `Array.read_each` gives: tensors, in the order of the selections.
#[pyclass(frozen, module = "zarrgpu._zarrgpu")]
pub(crate) struct ReadEach {
    reads: Mutex<zarr::ReadEach<Selections>>,
    /// What ended the selections before their end.
    raised: Arc<Mutex<Option<PyErr>>>,
}

impl ReadEach {
    pub(crate) fn new(
        array: &zarr::Array,
        selections: Option<&Bound<'_, PyAny>>,
        ahead: Option<usize>,
        ahead_bytes: Option<usize>,
    ) -> Outcome<Self> {
        let raised = Arc::default();
        let selections: Selections = match selections {
            None => Box::new(array.chunk_selections()),
            Some(one) if one.is_instance_of::<PyString>() => return Err(parameter("selections= takes an iterable of selections")),
            Some(many) => Box::new(Given { items: many.try_iter()?.unbind(), rank: array.shape().len(), raised: Arc::clone(&raised) }),
        };
        let mut reads = array.read_each(selections);
        if let Some(ahead) = ahead {
            reads = reads.with_ahead(ahead);
        }
        if let Some(bytes) = ahead_bytes {
            reads = reads.with_ahead_bytes(bytes);
        }
        Ok(Self { reads: Mutex::new(reads), raised })
    }
}

#[pymethods]
impl ReadEach {
    fn __iter__(this: Py<Self>) -> Py<Self> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> Outcome<Option<Tensor>> {
        // Selections of Python's are asked for with the lock of the interpreter, which other callers of this must not hold meanwhile.
        let read = py.detach(|| self.reads.lock().unwrap_or_else(PoisonError::into_inner).next());
        let Some(read) = read else {
            let raised = self.raised.lock().unwrap_or_else(PoisonError::into_inner).take();
            return raised.map_or(Ok(None), |error| Err(error.into()));
        };
        let read = read?;
        let Elements::Fixed(bytes) = read.elements else { return Err(unsupported("elements of variable length make no tensor")) };
        Ok(Some(Tensor::new(Buffer::from_vec(bytes), read.shape, read.data_type, None)))
    }
}

/// Selections of an iterable of Python's.
struct Given {
    items: Py<PyIterator>,
    rank: usize,
    raised: Arc<Mutex<Option<PyErr>>>,
}

impl Iterator for Given {
    type Item = Selection;

    fn next(&mut self) -> Option<Selection> {
        Python::attach(|py| {
            let item = self.items.bind(py).clone().next()?;
            let selection = item.map_err(Into::into).and_then(|item| {
                let index = (!item.is_none()).then_some(&item);
                selection::parse(index, self.rank, Kind::Product)
            });
            selection.map_err(|failure| *self.raised.lock().unwrap_or_else(PoisonError::into_inner) = Some(failure.into())).ok()
        })
    }
}

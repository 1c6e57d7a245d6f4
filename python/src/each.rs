use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::{PyIterator, PyString};
use zarr::Selection;

use crate::cuda::Gpu;
use crate::error::{Outcome, parameter};
use crate::selection::{self, Kind};
use crate::tensor::Tensor;
use crate::wait::TURN;

type Selections = Box<dyn Iterator<Item = Selection> + Send>;

enum Reads {
    Host(zarr::ReadEach<Selections, zarr::Tensor>),
    Gpu(Box<(zarr::ReadEachToDevice<Selections>, Gpu)>),
}

/// What `Array.read_each` gives: tensors, in the order of the selections.
#[pyclass(frozen, module = "zarrgpu._zarrgpu")]
pub(crate) struct ReadEach {
    reads: Mutex<Reads>,
    /// What ended the selections before their end.
    raised: Arc<Mutex<Option<PyErr>>>,
}

impl ReadEach {
    /// To the host, or, with a `gpu`, by the array with its codecs.
    pub(crate) fn new(
        array: &zarr::Array,
        selections: Option<&Bound<'_, PyAny>>,
        gpu: Option<Gpu>,
        ahead: Option<usize>,
        ahead_bytes: Option<usize>,
    ) -> Outcome<Self> {
        let raised = Arc::default();
        let selections: Selections = match selections {
            None => Box::new(array.chunk_selections()),
            Some(one) if one.is_instance_of::<PyString>() => return Err(parameter("selections= takes an iterable of selections")),
            Some(many) => Box::new(Given { items: many.try_iter()?.unbind(), rank: array.shape().len(), raised: Arc::clone(&raised) }),
        };
        if let Some(gpu) = gpu {
            if ahead_bytes.is_some() {
                return Err(parameter("ahead_bytes= is for reads to the host"));
            }
            let mut reads = array.read_each_to_device(selections, &gpu.target);
            if let Some(ahead) = ahead {
                reads = reads.with_ahead(ahead);
            }
            return Ok(Self { reads: Mutex::new(Reads::Gpu(Box::new((reads, gpu)))), raised });
        }
        let mut reads = array.read_each_to_host(selections);
        if let Some(ahead) = ahead {
            reads = reads.with_ahead(ahead);
        }
        if let Some(bytes) = ahead_bytes {
            reads = reads.with_ahead_bytes(bytes);
        }
        Ok(Self { reads: Mutex::new(Reads::Host(reads)), raised })
    }

    /// The next read, if it comes before a signal should be looked for.
    fn next_in_a_turn(&self) -> Option<Option<Outcome<Tensor>>> {
        match &mut *self.reads.lock().unwrap_or_else(PoisonError::into_inner) {
            Reads::Host(reads) => reads.wait_timeout(TURN).then(|| reads.next().map(|read| Ok(Tensor::of(read?, None)))),
            Reads::Gpu(gpu) => {
                let (reads, gpu) = &mut **gpu;
                Some(reads.next().map(|read| Ok(Tensor::of(read?, Some(gpu.clone())))))
            }
        }
    }
}

#[pymethods]
impl ReadEach {
    fn __iter__(this: Py<Self>) -> Py<Self> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> Outcome<Option<Tensor>> {
        // Selections of Python's are asked for with the lock of the interpreter, which other callers of this must not hold meanwhile.
        let read = loop {
            match py.detach(|| self.next_in_a_turn()) {
                Some(read) => break read,
                None => py.check_signals()?,
            }
        };
        let Some(read) = read else {
            let raised = self.raised.lock().unwrap_or_else(PoisonError::into_inner).take();
            return raised.map_or(Ok(None), |error| Err(error.into()));
        };
        read.map(Some)
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

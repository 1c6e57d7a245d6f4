//! Elements in the memory of NumPy's arrays, lent to writes.

use std::sync::mpsc::{Receiver, Sender, channel};

use bytes::Bytes;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use zarr_buffer_api::Layout;

use crate::error::{Outcome, parameter};

/// The elements of a NumPy array, wherever its strides lead.
pub(crate) struct Elements {
    /// Of the first byte of any element.
    address: usize,
    len: usize,
    layout: Layout,
    array: Py<PyAny>,
}

impl Elements {
    /// `array` is a `numpy.ndarray` itself, and nobody writes it before this value is gone: who calls `write` promises the latter.
    pub(crate) fn of(array: &Bound<'_, PyAny>) -> Outcome<Self> {
        let fields = array.getattr("__array_interface__")?.cast_into::<PyDict>().map_err(PyErr::from)?;
        let (first, _): (usize, bool) = fields.as_any().get_item("data")?.extract()?;
        let mut layout = Layout {
            offset: 0,
            shape: array.getattr("shape")?.extract()?,
            strides: array.getattr("strides")?.extract()?,
            item_size: array.getattr("itemsize")?.extract()?,
        };
        if layout.is_empty() {
            layout.strides.fill(0);
            return Ok(Self { address: 0, len: 0, layout, array: array.clone().unbind() });
        }
        let far = || parameter("an array that reaches beyond the address space");
        for (&len, &stride) in layout.shape.iter().zip(&layout.strides).filter(|(_, stride)| **stride < 0) {
            let reach = stride.unsigned_abs().checked_mul(len - 1).ok_or_else(far)?;
            layout.offset = layout.offset.checked_add(reach).ok_or_else(far)?;
        }
        let address = first.checked_sub(layout.offset).ok_or_else(far)?;
        let len = layout.span()?.end;
        Ok(Self { address, len, layout, array: array.clone().unbind() })
    }

    pub(crate) fn array<'a, 'py>(&'a self, py: Python<'py>) -> &'a Bound<'py, PyAny> {
        self.array.bind(py)
    }

    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    /// From the first byte of any element to the last.
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: NumPy's array is kept, which has initialised elements at this address, shape and strides, and is not resized while others hold it. Nobody writes them, as
        // who called `of` promised.
        unsafe { bytes_at(self.address, self.len) }
    }

    /// The same bytes, for work that ends at a time of its own, and what waits for it.
    pub(crate) fn lend(&self) -> (Bytes, Loan<'_>) {
        let (lent, returned) = channel();
        let bytes = Bytes::from_owner(Lent { address: self.address, len: self.len, _lent: lent });
        (bytes, Loan { returned, _elements: self })
    }
}

/// # Safety
/// Where `len` is not 0, so many bytes at `address` are initialised, and stay as they are while the result is in use.
unsafe fn bytes_at<'a>(address: usize, len: usize) -> &'a [u8] {
    if len == 0 {
        return &[];
    }
    // SAFETY: as the caller promised; bytes have any alignment.
    unsafe { std::slice::from_raw_parts(std::ptr::with_exposed_provenance(address), len) }
}

/// Bytes of elements that are lent.
struct Lent {
    address: usize,
    len: usize,
    _lent: Sender<()>,
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: the elements stay until the loan ends, and that waits for this value to be dropped.
        unsafe { bytes_at(self.address, self.len) }
    }
}

/// Ends when all bytes that were lent are given back: dropping it waits for that. It must be dropped.
pub(crate) struct Loan<'a> {
    returned: Receiver<()>,
    _elements: &'a Elements,
}

impl Drop for Loan<'_> {
    fn drop(&mut self) {
        // Nobody sends: the other end goes away with the bytes.
        let _ = self.returned.recv();
    }
}

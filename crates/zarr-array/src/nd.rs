//! `ndarray` arrays in and out.

use ndarray::{ArrayD, ArrayViewD, IxDyn};

use crate::{Array, ArrayError, Element, Selection};

impl Array {
    /// Reads elements into an `ndarray` array, in C order.
    ///
    /// # Errors
    /// As [`Array::read_elements`].
    pub fn read_ndarray<T: Element>(&self, selection: &Selection) -> Result<ArrayD<T>, ArrayError> {
        shaped(&self.selection_shape(selection)?, self.read_elements(selection)?)
    }

    /// As [`Array::read_ndarray`].
    ///
    /// # Errors
    /// As [`Array::read_elements`].
    pub async fn read_ndarray_async<T: Element>(&self, selection: &Selection) -> Result<ArrayD<T>, ArrayError> {
        let shape = self.selection_shape(selection)?;
        shaped(&shape, self.read_elements_async(selection).await?)
    }

    /// Writes an `ndarray` array, of any memory order, whose shape is that of the selection.
    ///
    /// # Errors
    /// [`ArrayError::Parameter`] when the shape or the data type differs; otherwise as [`Array::write`].
    pub fn write_ndarray<'a, T: Element>(&self, selection: &Selection, data: impl Into<ArrayViewD<'a, T>>) -> Result<(), ArrayError> {
        let data = data.into();
        let shape = self.selection_shape(selection)?;
        if !data.shape().iter().map(|&len| len as u64).eq(shape.iter().copied()) {
            return Err(ArrayError::parameter(format!("the selection has shape {shape:?}, and the data {:?}", data.shape())));
        }
        match data.as_slice() {
            Some(elements) => self.write_elements(selection, elements),
            None => self.write_elements(selection, &data.iter().cloned().collect::<Vec<T>>()),
        }
    }
}

fn shaped<T>(shape: &[u64], elements: Vec<T>) -> Result<ArrayD<T>, ArrayError> {
    // Elements of this shape are in memory, so that each length fits.
    let shape: Vec<usize> = shape.iter().map(|&len| len as usize).collect();
    ArrayD::from_shape_vec(IxDyn(&shape), elements).map_err(|error| ArrayError::parameter(error.to_string()))
}

use zarr_codec_api::VariableData;
use zarr_meta::DataType;

use crate::ArrayError;
use crate::element::{Element, check_type};

/// Elements that were read: in C order, native byte order.
#[derive(Debug, Clone, PartialEq)]
pub struct ArrayData {
    /// Elements along each axis, slowest first; axes that were selected by one index are not among them.
    pub shape: Vec<u64>,
    /// The data type of the elements.
    pub data_type: DataType,
    /// The elements.
    pub elements: Elements,
}

/// Elements of either kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Elements {
    /// Bytes of elements of fixed length, side by side.
    Fixed(Vec<u8>),
    /// Elements of variable length.
    Variable(VariableData),
}

impl ArrayData {
    /// The bytes of elements of fixed length.
    pub fn as_bytes(&self) -> Option<&[u8]> {
        match &self.elements {
            Elements::Fixed(bytes) => Some(bytes),
            Elements::Variable(_) => None,
        }
    }

    /// Bytes of all elements together.
    pub fn byte_len(&self) -> usize {
        match &self.elements {
            Elements::Fixed(bytes) => bytes.len(),
            Elements::Variable(elements) => elements.byte_len(),
        }
    }

    /// The elements as Rust values.
    ///
    /// # Errors
    /// [`ArrayError::Parameter`] when `T` is not the data type.
    pub fn into_elements<T: Element>(self) -> Result<Vec<T>, ArrayError> {
        check_type::<T>(&self.data_type)?;
        T::from_data(self)
    }
}

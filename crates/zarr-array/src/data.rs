use zarr_buffer_api::Buffer;
use zarr_codec_api::VariableData;
use zarr_meta::DataType;

use crate::element::{Element, check_type};
use crate::{ArrayError, Tensor};

/// What the address of a tensor on the host is a multiple of: as much as DLPack asks for.
pub(crate) const HOST_ALIGN: usize = 256;

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

/// A result whose elements, if they are of fixed length, begin at byte `start` of theirs.
pub(crate) struct Aligned {
    pub(crate) data: ArrayData,
    pub(crate) start: usize,
}

impl Aligned {
    pub(crate) fn into_tensor(self) -> Result<Tensor, ArrayError> {
        let ArrayData { shape, data_type, elements: Elements::Fixed(bytes) } = self.data else {
            return Err(ArrayError::parameter("elements of variable length make no tensor"));
        };
        let end = bytes.len();
        Ok(Tensor { buffer: Buffer::from_vec(bytes).slice(self.start..end)?, shape, data_type })
    }
}

/// Bytes of memory in which `len` of them can begin at a multiple of `align`.
pub(crate) fn padded(len: usize, align: usize) -> usize {
    len.saturating_add(align - 1)
}

/// Where `len` bytes begin in [`padded`] memory, which ends with them.
pub(crate) fn place(memory: &mut Vec<u8>, len: usize, align: usize) -> usize {
    let start = (memory.as_ptr() as usize).wrapping_neg() % align;
    memory.truncate(start.saturating_add(len));
    start
}

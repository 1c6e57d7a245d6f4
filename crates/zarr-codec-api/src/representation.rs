use zarr_meta::{DataType, Extension, FillValue};

use crate::CodecError;

/// A chunk as an array: what an array→array codec takes and gives.
#[derive(Debug, Clone, PartialEq)]
pub struct ArrayRepresentation {
    /// The data type of the elements.
    pub data_type: DataType,
    /// Elements along each axis, slowest first.
    pub shape: Vec<u64>,
    /// What absent elements are, in this representation.
    pub fill_value: FillValue,
}

impl ArrayRepresentation {
    /// Number of elements.
    ///
    /// # Errors
    /// A limit error when the number does not fit the address space.
    pub fn elements(&self) -> Result<usize, CodecError> {
        if self.shape.contains(&0) {
            return Ok(0);
        }
        self.shape
            .iter()
            .try_fold(1u64, |product, &len| product.checked_mul(len))
            .and_then(|elements| usize::try_from(elements).ok())
            .ok_or_else(|| too_large(self))
    }

    /// Bytes in memory; `None` for data types of variable length.
    ///
    /// # Errors
    /// A limit error when the number does not fit the address space.
    pub fn byte_len(&self) -> Result<Option<usize>, CodecError> {
        match self.data_type.fixed_size() {
            None => Ok(None),
            Some(size) => {
                self.elements()?.checked_mul(size).filter(|&len| isize::try_from(len).is_ok()).map(Some).ok_or_else(|| too_large(self))
            }
        }
    }

    /// Bytes in memory of a data type of fixed length.
    ///
    /// # Errors
    /// An unsupported error, in the name of `codec`, for a data type of variable length; a limit error when the number does not fit.
    pub fn fixed_len(&self, codec: &str) -> Result<usize, CodecError> {
        self.byte_len()?.ok_or_else(|| {
            CodecError::unsupported(codec, format!("elements of variable length ({}) are not supported", self.data_type.name()))
        })
    }
}

fn too_large(representation: &ArrayRepresentation) -> CodecError {
    CodecError::new(
        crate::CodecErrorKind::Limit,
        "chunk",
        format!("a chunk of shape {:?} does not fit the address space", representation.shape),
    )
}

/// How many bytes a stage gives, as far as metadata can tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ByteLen {
    /// Always this many.
    Exact(u64),
    /// Any number up to this many.
    AtMost(u64),
}

impl ByteLen {
    /// The most there can be.
    pub fn upper(self) -> u64 {
        match self {
            Self::Exact(len) | Self::AtMost(len) => len,
        }
    }

    /// The number, where it is certain.
    pub fn exact(self) -> Option<u64> {
        match self {
            Self::Exact(len) => Some(len),
            Self::AtMost(_) => None,
        }
    }

    /// What a general compressor makes of that many bytes at worst: an eighth more, and 64 KiB. Generous on purpose: it bounds memory, it
    /// does not judge encoders.
    #[must_use]
    pub fn compressed(self) -> Self {
        let len = self.upper();
        Self::AtMost(len.saturating_add(len / 8).saturating_add(64 << 10))
    }

    /// Exactly `bytes` more.
    #[must_use]
    pub fn plus(self, bytes: u64) -> Self {
        match self {
            Self::Exact(len) => Self::Exact(len.saturating_add(bytes)),
            Self::AtMost(len) => Self::AtMost(len.saturating_add(bytes)),
        }
    }
}

/// What lies between two stages of a chain.
#[derive(Debug, Clone, PartialEq)]
pub enum Representation {
    /// An array in memory: C order without gaps, native byte order, sub-byte elements one to a byte.
    Array(ArrayRepresentation),
    /// Bytes.
    Bytes(ByteLen),
}

impl Representation {
    /// The array, on the array side of a chain.
    pub fn as_array(&self) -> Option<&ArrayRepresentation> {
        match self {
            Self::Array(array) => Some(array),
            Self::Bytes(_) => None,
        }
    }

    /// The number of bytes: in memory for an array of fixed-length elements, else as the bytes say. `None` for elements of variable length.
    ///
    /// # Errors
    /// A limit error when the number does not fit the address space.
    pub fn byte_len(&self) -> Result<Option<ByteLen>, CodecError> {
        match self {
            Self::Array(array) => Ok(array.byte_len()?.map(|len| ByteLen::Exact(len as u64))),
            Self::Bytes(len) => Ok(Some(*len)),
        }
    }
}

/// One codec of a chain, with what lies on either side of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Stage {
    /// Name and configuration, as in the metadata.
    pub codec: Extension,
    /// What it encodes.
    pub decoded: Representation,
    /// What it encodes to.
    pub encoded: Representation,
}

/// Elements of variable length: element `i` is `data[offsets[i]..offsets[i + 1]]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VariableData {
    /// One more offset than there are elements, ascending from 0, in bytes.
    offsets: Vec<usize>,
    data: Vec<u8>,
}

impl Default for VariableData {
    fn default() -> Self {
        Self::new()
    }
}

impl VariableData {
    /// No elements.
    pub fn new() -> Self {
        Self { offsets: vec![0], data: Vec::new() }
    }

    /// Appends an element.
    pub fn push(&mut self, element: &[u8]) {
        self.data.extend_from_slice(element);
        self.offsets.push(self.data.len());
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Removes all elements.
    pub fn clear(&mut self) {
        self.offsets.truncate(1);
        self.data.clear();
    }

    /// Element `index`.
    pub fn get(&self, index: usize) -> Option<&[u8]> {
        let start = *self.offsets.get(index)?;
        let end = *self.offsets.get(index.checked_add(1)?)?;
        self.data.get(start..end)
    }

    /// The elements in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.offsets.windows(2).map(|pair| match pair {
            [start, end] => self.data.get(*start..*end).unwrap_or_default(),
            _ => &[],
        })
    }

    /// Bytes of all elements together.
    pub fn byte_len(&self) -> usize {
        self.data.len()
    }
}

impl<T: AsRef<[u8]>> FromIterator<T> for VariableData {
    fn from_iter<I: IntoIterator<Item = T>>(elements: I) -> Self {
        let mut data = Self::new();
        elements.into_iter().for_each(|element| data.push(element.as_ref()));
        data
    }
}

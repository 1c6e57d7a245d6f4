//! Fill values: the element that stands where nothing was written.

mod float;
mod read;
mod write;

pub(crate) use read::Dialect;

use crate::{DataType, ElementSize, Json, MetadataError};

/// A fill value, as the bytes of one element in memory.
///
/// Bits are kept: a signalling NaN or a NaN with a payload reads and writes without change.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum FillValue {
    /// An element of fixed size, in the byte order of the machine and of exactly that size.
    Fixed(Box<[u8]>),
    /// An element of `string` or `bytes`.
    Variable(Box<[u8]>),
}

impl FillValue {
    /// The fill value with these bytes.
    ///
    /// # Errors
    /// [`MetadataError::Inconsistent`] if the number of bytes is not that of an element of the
    /// type, or the bytes are no UTF-8 and the type is `string`.
    pub fn from_bytes(bytes: impl Into<Box<[u8]>>, data_type: &DataType) -> Result<Self, MetadataError> {
        let bytes = bytes.into();
        let value = match data_type.size() {
            ElementSize::Fixed(_) => Self::Fixed(bytes),
            ElementSize::Variable => Self::Variable(bytes),
        };
        value.check(data_type)?;
        Ok(value)
    }

    /// The fill value used where none is given: zero, `false`, an empty string, "not a time".
    /// `float8_e8m0fnu` has no zero; there it is the least value, whose bits are zero.
    pub fn default_for(data_type: &DataType) -> Self {
        let mut bytes = match data_type.size() {
            ElementSize::Variable => return Self::Variable(Box::default()),
            ElementSize::Fixed(size) => vec![0; size],
        };
        set_not_a_time(data_type, &mut bytes);
        Self::Fixed(bytes.into())
    }

    /// Reads the `fill_value` of version 3 metadata.
    ///
    /// # Errors
    /// [`MetadataError::Unexpected`] if the value is none that the data type permits.
    pub fn parse(value: &Json, data_type: &DataType) -> Result<Self, MetadataError> {
        read::read(value, data_type, Dialect::V3)
    }

    /// Reads the `fill_value` of version 2 metadata, `null` excepted. Base64 of structs is in the
    /// byte order `endianness`.
    pub(crate) fn parse_v2(value: &Json, data_type: &DataType, dialect: Dialect) -> Result<Self, MetadataError> {
        read::read(value, data_type, dialect)
    }

    /// The `fill_value` of version 3 metadata.
    ///
    /// # Errors
    /// [`MetadataError::Inconsistent`] if the bytes are no element of the type.
    pub fn to_json(&self, data_type: &DataType) -> Result<Json, MetadataError> {
        self.check(data_type)?;
        Ok(write::write(self.as_bytes(), data_type))
    }

    /// The `fill_value` of version 2 metadata.
    pub(crate) fn to_json_v2(&self, data_type: &DataType, endianness: crate::Endianness) -> Result<Json, MetadataError> {
        self.check(data_type)?;
        Ok(write::write_v2(self.as_bytes(), data_type, endianness))
    }

    /// The bytes of the element.
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Fixed(bytes) | Self::Variable(bytes) => bytes,
        }
    }

    /// True if every byte is zero: memory fresh from the system holds this value.
    pub fn is_zero(&self) -> bool {
        matches!(self, Self::Fixed(bytes) if bytes.iter().all(|&byte| byte == 0))
    }

    /// Checks that the value is an element of the type.
    ///
    /// # Errors
    /// [`MetadataError::Inconsistent`] if it is not.
    pub fn check(&self, data_type: &DataType) -> Result<(), MetadataError> {
        let problem = match (self, data_type.size()) {
            (Self::Fixed(bytes), ElementSize::Fixed(size)) if bytes.len() == size => return Ok(()),
            (Self::Fixed(bytes), ElementSize::Fixed(size)) => {
                format!("{} bytes for elements of {size}", bytes.len())
            }
            (Self::Variable(bytes), ElementSize::Variable) => {
                if *data_type != DataType::String || std::str::from_utf8(bytes).is_ok() {
                    return Ok(());
                }
                "bytes that are not UTF-8".to_owned()
            }
            (Self::Fixed(_), ElementSize::Variable) => "an element of fixed size for a type without".to_owned(),
            (Self::Variable(_), ElementSize::Fixed(_)) => "an element of variable size for a type of fixed size".to_owned(),
        };
        Err(MetadataError::inconsistent(format!("fill value for {data_type}: {problem}")))
    }
}

/// The bits of "not a time" in the byte order of the machine.
const NOT_A_TIME: [u8; 8] = i64::MIN.to_ne_bytes();

fn set_not_a_time(data_type: &DataType, element: &mut [u8]) {
    match data_type {
        DataType::NumpyDateTime64 { .. } | DataType::NumpyTimeDelta64 { .. } if element.len() == NOT_A_TIME.len() => {
            element.copy_from_slice(&NOT_A_TIME);
        }
        DataType::Struct(fields) => {
            let mut rest = element;
            for field in fields {
                let size = field.data_type.fixed_size().unwrap_or(0).min(rest.len());
                let (head, tail) = rest.split_at_mut(size);
                set_not_a_time(&field.data_type, head);
                rest = tail;
            }
        }
        DataType::SubArray { element: inner, .. } => {
            if let Some(size @ 1..) = inner.fixed_size() {
                element.chunks_mut(size).for_each(|part| set_not_a_time(inner, part));
            }
        }
        _ => {}
    }
}

/// Reverses the bytes of every number of an element.
pub(crate) fn swap_bytes(data_type: &DataType, element: &mut [u8]) {
    for run in data_type.swap_units() {
        let end = run.offset.saturating_add(run.width.saturating_mul(run.count));
        if let Some(numbers) = element.get_mut(run.offset..end) {
            numbers.chunks_mut(run.width).for_each(<[u8]>::reverse);
        }
    }
}

//! The data types, and the four of the library that they are coded as.
#![expect(
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    reason = "narrow integers shifted within wider ones, and clamped before they are narrowed"
)]

use zarr_codec_api::CodecError;
use zarr_meta::DataType;

use super::NAME;
use super::block::Scalar;
use crate::number::Format;

/// A data type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    I8,
    U8,
    I16,
    U16,
    I32,
    U32,
    I64,
    U64,
    F16,
    BF16,
    F32,
    F64,
}

impl Kind {
    pub(super) fn of(data_type: &DataType) -> Option<Self> {
        Some(match data_type {
            DataType::Int8 => Self::I8,
            DataType::UInt8 => Self::U8,
            DataType::Int16 => Self::I16,
            DataType::UInt16 => Self::U16,
            DataType::Int32 => Self::I32,
            DataType::UInt32 => Self::U32,
            DataType::Int64 | DataType::NumpyDateTime64 { .. } | DataType::NumpyTimeDelta64 { .. } => Self::I64,
            DataType::UInt64 => Self::U64,
            DataType::Float16 => Self::F16,
            DataType::BFloat16 => Self::BF16,
            DataType::Float32 => Self::F32,
            DataType::Float64 => Self::F64,
            _ => return None,
        })
    }

    /// Bytes of an element.
    pub(super) fn size(self) -> usize {
        match self {
            Self::I8 | Self::U8 => 1,
            Self::I16 | Self::U16 | Self::F16 | Self::BF16 => 2,
            Self::I32 | Self::U32 | Self::F32 => 4,
            Self::I64 | Self::U64 | Self::F64 => 8,
        }
    }

    /// The library's number of the type that it is coded as.
    pub(super) fn number_type(self) -> u64 {
        match self {
            Self::I8 | Self::U8 | Self::I16 | Self::U16 | Self::I32 | Self::U32 => 1,
            Self::I64 | Self::U64 => 2,
            Self::F16 | Self::BF16 | Self::F32 => 3,
            Self::F64 => 4,
        }
    }
}

/// Calls a generic function for the number type that a [`Kind`] is coded as.
macro_rules! for_kind {
    ($kind:expr, $run:ident, $argument:expr) => {
        match $kind.number_type() {
            1 => $run::<i32>($argument),
            2 => $run::<i64>($argument),
            3 => $run::<f32>($argument),
            _ => $run::<f64>($argument),
        }
    };
}
pub(super) use for_kind;

/// A number type of the library, with the data types that are coded as it.
pub(super) trait Promoted: Scalar {
    /// Elements of a data type as numbers.
    ///
    /// # Errors
    /// When an element has no such number.
    fn promote(kind: Kind, elements: &[u8]) -> Result<Vec<Self>, CodecError>;

    /// Numbers as elements of a data type; those that have none give the nearest.
    fn demote(kind: Kind, numbers: &[Self], elements: &mut [u8]);
}

fn load<T, const N: usize>(elements: &[u8], convert: impl Fn([u8; N]) -> T) -> Vec<T> {
    elements.as_chunks().0.iter().map(|bytes| convert(*bytes)).collect()
}

fn store<T: Copy, const N: usize>(numbers: &[T], elements: &mut [u8], convert: impl Fn(T) -> [u8; N]) {
    elements.as_chunks_mut().0.iter_mut().zip(numbers).for_each(|(bytes, number)| *bytes = convert(*number));
}

fn too_large() -> CodecError {
    CodecError::parameter(NAME, "unsigned numbers beyond the largest signed one cannot be coded")
}

impl Promoted for i32 {
    fn promote(kind: Kind, elements: &[u8]) -> Result<Vec<Self>, CodecError> {
        Ok(match kind {
            Kind::I8 => load(elements, |bytes| Self::from(i8::from_ne_bytes(bytes)) << 23),
            Kind::U8 => load(elements, |bytes| (Self::from(u8::from_ne_bytes(bytes)) - 0x80) << 23),
            Kind::I16 => load(elements, |bytes| Self::from(i16::from_ne_bytes(bytes)) << 15),
            Kind::U16 => load(elements, |bytes| (Self::from(u16::from_ne_bytes(bytes)) - 0x8000) << 15),
            Kind::U32 => {
                let numbers = load(elements, Self::from_ne_bytes);
                return if numbers.iter().all(|number| *number >= 0) { Ok(numbers) } else { Err(too_large()) };
            }
            _ => load(elements, Self::from_ne_bytes),
        })
    }

    fn demote(kind: Kind, numbers: &[Self], elements: &mut [u8]) {
        match kind {
            Kind::I8 => store(numbers, elements, |number| ((number >> 23).clamp(-0x80, 0x7f) as i8).to_ne_bytes()),
            Kind::U8 => store(numbers, elements, |number| (((number >> 23) + 0x80).clamp(0, 0xff) as u8).to_ne_bytes()),
            Kind::I16 => store(numbers, elements, |number| ((number >> 15).clamp(-0x8000, 0x7fff) as i16).to_ne_bytes()),
            Kind::U16 => store(numbers, elements, |number| (((number >> 15) + 0x8000).clamp(0, 0xffff) as u16).to_ne_bytes()),
            Kind::U32 => store(numbers, elements, |number| number.max(0).to_ne_bytes()),
            _ => store(numbers, elements, Self::to_ne_bytes),
        }
    }
}

impl Promoted for i64 {
    fn promote(kind: Kind, elements: &[u8]) -> Result<Vec<Self>, CodecError> {
        let numbers = load(elements, Self::from_ne_bytes);
        if kind == Kind::U64 && numbers.iter().any(|number| *number < 0) {
            return Err(too_large());
        }
        Ok(numbers)
    }

    fn demote(kind: Kind, numbers: &[Self], elements: &mut [u8]) {
        let least = if kind == Kind::U64 { 0 } else { Self::MIN };
        store(numbers, elements, |number| number.max(least).to_ne_bytes());
    }
}

impl Promoted for f32 {
    fn promote(kind: Kind, elements: &[u8]) -> Result<Vec<Self>, CodecError> {
        let narrow = |format: Format| load(elements, |bytes| format.value(u64::from(u16::from_ne_bytes(bytes))) as Self);
        Ok(match kind {
            Kind::F16 => narrow(Format::F16),
            Kind::BF16 => narrow(Format::BF16),
            _ => load(elements, Self::from_ne_bytes),
        })
    }

    fn demote(kind: Kind, numbers: &[Self], elements: &mut [u8]) {
        let narrow = |format: Format, elements: &mut [u8]| {
            let wide: Vec<f64> = numbers.iter().map(|number| f64::from(*number)).collect();
            crate::number::store_floats(format, &wide, elements);
        };
        match kind {
            Kind::F16 => narrow(Format::F16, elements),
            Kind::BF16 => narrow(Format::BF16, elements),
            _ => store(numbers, elements, Self::to_ne_bytes),
        }
    }
}

impl Promoted for f64 {
    fn promote(_: Kind, elements: &[u8]) -> Result<Vec<Self>, CodecError> {
        Ok(load(elements, Self::from_ne_bytes))
    }

    fn demote(_: Kind, numbers: &[Self], elements: &mut [u8]) {
        store(numbers, elements, Self::to_ne_bytes);
    }
}

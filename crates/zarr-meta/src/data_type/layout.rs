//! How elements lie in memory.

use super::{DataType, MAX_ELEMENT_SIZE};

/// The size of one element in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ElementSize {
    /// Every element takes this many bytes.
    Fixed(usize),
    /// Elements differ in size.
    Variable,
}

/// A run of equal, adjacent numbers inside one element, whose bytes a change of byte order
/// reverses one number at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SwapRun {
    /// Where the run starts, in bytes from the start of the element.
    pub offset: usize,
    /// The size of one number in bytes, at least 2.
    pub width: usize,
    /// How many numbers follow one another.
    pub count: usize,
}

impl DataType {
    /// The size of one element in memory. Types narrower than a byte take a whole one.
    pub fn size(&self) -> ElementSize {
        let size = match self {
            Self::String | Self::Bytes => return ElementSize::Variable,
            Self::Raw { bits } => usize::try_from(bits.div_ceil(8)).unwrap_or(usize::MAX),
            Self::FixedLengthUtf32 { length_bytes } | Self::NullTerminatedBytes { length_bytes } => {
                usize::try_from(*length_bytes).unwrap_or(usize::MAX)
            }
            Self::NumpyDateTime64 { .. } | Self::NumpyTimeDelta64 { .. } => 8,
            Self::Struct(fields) => {
                let mut sum = 0usize;
                for field in fields {
                    match field.data_type.size() {
                        ElementSize::Fixed(size) => sum = sum.saturating_add(size),
                        ElementSize::Variable => return ElementSize::Variable,
                    }
                }
                sum
            }
            Self::SubArray { element, shape } => match element.size() {
                ElementSize::Fixed(size) => count(shape).saturating_mul(size),
                ElementSize::Variable => return ElementSize::Variable,
            },
            number => {
                let (component, bits) = number.number().unwrap_or((1, 8));
                component * usize::try_from(bits.div_ceil(8)).unwrap_or(usize::MAX)
            }
        };
        ElementSize::Fixed(size)
    }

    /// The size of one element in memory in bytes; `None` if elements differ in size.
    pub fn fixed_size(&self) -> Option<usize> {
        match self.size() {
            ElementSize::Fixed(size) => Some(size),
            ElementSize::Variable => None,
        }
    }

    /// The number of significant bits of one component, the width the `packbits` codec packs to;
    /// `None` for types that are no numbers or booleans.
    pub fn bit_width(&self) -> Option<u32> {
        self.number().map(|(_, bits)| bits)
    }

    /// 2 for complex types, 1 for all others.
    pub fn components(&self) -> usize {
        self.number().map_or(1, |(components, _)| components)
    }

    /// The type of the real and the imaginary part, for complex types.
    pub fn complex_component(&self) -> Option<Self> {
        Some(match self {
            Self::Complex64 | Self::ComplexFloat32 => Self::Float32,
            Self::Complex128 | Self::ComplexFloat64 => Self::Float64,
            Self::ComplexBFloat16 => Self::BFloat16,
            Self::ComplexFloat16 => Self::Float16,
            Self::ComplexFloat4E2M1FN => Self::Float4E2M1FN,
            Self::ComplexFloat6E2M3FN => Self::Float6E2M3FN,
            Self::ComplexFloat6E3M2FN => Self::Float6E3M2FN,
            Self::ComplexFloat8E3M4 => Self::Float8E3M4,
            Self::ComplexFloat8E4M3 => Self::Float8E4M3,
            Self::ComplexFloat8E4M3B11FNUZ => Self::Float8E4M3B11FNUZ,
            Self::ComplexFloat8E4M3FNUZ => Self::Float8E4M3FNUZ,
            Self::ComplexFloat8E5M2 => Self::Float8E5M2,
            Self::ComplexFloat8E5M2FNUZ => Self::Float8E5M2FNUZ,
            Self::ComplexFloat8E8M0FNU => Self::Float8E8M0FNU,
            _ => return None,
        })
    }

    /// True for integers with a sign; those narrower than a byte are sign extended in memory.
    pub fn is_signed_integer(&self) -> bool {
        matches!(self, Self::Int2 | Self::Int4 | Self::Int8 | Self::Int16 | Self::Int32 | Self::Int64)
    }

    /// True for integers without a sign.
    pub fn is_unsigned_integer(&self) -> bool {
        matches!(self, Self::UInt2 | Self::UInt4 | Self::UInt8 | Self::UInt16 | Self::UInt32 | Self::UInt64)
    }

    /// The numbers inside one element that a change of byte order must reverse, in order of their
    /// offsets. Neighbours of equal width are one run.
    pub fn swap_units(&self) -> Vec<SwapRun> {
        let mut runs = Vec::new();
        self.collect_runs(0, &mut runs);
        runs
    }

    /// True if the bytes of an element depend on the byte order.
    pub fn is_byte_order_sensitive(&self) -> bool {
        match self {
            Self::Struct(fields) => fields.iter().any(|field| field.data_type.is_byte_order_sensitive()),
            Self::SubArray { element, shape } => count(shape) > 0 && element.is_byte_order_sensitive(),
            other => !other.swap_units().is_empty(),
        }
    }

    /// The number of components and the bits of each, for numbers and booleans.
    fn number(&self) -> Option<(usize, u32)> {
        if let Some(component) = self.complex_component() {
            return component.number().map(|(_, bits)| (2, bits));
        }
        let bits = match self {
            Self::Bool => 1,
            Self::Int2 | Self::UInt2 => 2,
            Self::Int4 | Self::UInt4 | Self::Float4E2M1FN => 4,
            Self::Float6E2M3FN | Self::Float6E3M2FN => 6,
            Self::Int8
            | Self::UInt8
            | Self::Float8E3M4
            | Self::Float8E4M3
            | Self::Float8E4M3FN
            | Self::Float8E4M3B11FNUZ
            | Self::Float8E4M3FNUZ
            | Self::Float8E5M2
            | Self::Float8E5M2FNUZ
            | Self::Float8E8M0FNU => 8,
            Self::Int16 | Self::UInt16 | Self::BFloat16 | Self::Float16 => 16,
            Self::Int32 | Self::UInt32 | Self::Float32 => 32,
            Self::Int64 | Self::UInt64 | Self::Float64 | Self::NumpyDateTime64 { .. } | Self::NumpyTimeDelta64 { .. } => 64,
            _ => return None,
        };
        Some((1, bits))
    }

    fn collect_runs(&self, offset: usize, runs: &mut Vec<SwapRun>) {
        match self {
            Self::FixedLengthUtf32 { length_bytes } => {
                push_run(runs, offset, 4, usize::try_from(length_bytes / 4).unwrap_or(0));
            }
            Self::Struct(fields) => {
                let mut offset = offset;
                for field in fields {
                    field.data_type.collect_runs(offset, runs);
                    offset = offset.saturating_add(field.data_type.fixed_size().unwrap_or(0));
                }
            }
            Self::SubArray { element, shape } => {
                let inner = element.swap_units();
                let size = element.fixed_size().unwrap_or(0);
                match inner.as_slice() {
                    [] => {}
                    [run] if run.width.saturating_mul(run.count) == size => {
                        push_run(runs, offset, run.width, run.count.saturating_mul(count(shape)));
                    }
                    _ => {
                        for index in 0..count(shape) {
                            let start = offset.saturating_add(index.saturating_mul(size));
                            for run in &inner {
                                push_run(runs, start + run.offset, run.width, run.count);
                            }
                        }
                    }
                }
            }
            other => {
                if let Some((components, bits)) = other.number() {
                    push_run(runs, offset, usize::try_from(bits / 8).unwrap_or(0), components);
                }
            }
        }
    }

    /// How many numbers, strings and other parts an element consists of, saturating.
    pub(crate) fn parts(&self) -> usize {
        match self {
            Self::Struct(fields) => fields.iter().map(|field| field.data_type.parts()).fold(0, usize::saturating_add),
            Self::SubArray { element, shape } => count(shape).saturating_mul(element.parts()),
            _ => 1,
        }
    }

    /// True if the size of an element stays within [`MAX_ELEMENT_SIZE`].
    pub(crate) fn size_is_sane(&self) -> bool {
        self.fixed_size().is_none_or(|size| size <= MAX_ELEMENT_SIZE)
    }
}

/// The number of elements of a sub-array, saturating.
pub(crate) fn count(shape: &[u64]) -> usize {
    if shape.contains(&0) {
        return 0;
    }
    shape.iter().map(|&length| usize::try_from(length).unwrap_or(usize::MAX)).fold(1, usize::saturating_mul)
}

fn push_run(runs: &mut Vec<SwapRun>, offset: usize, width: usize, count: usize) {
    if width < 2 || count == 0 {
        return;
    }
    match runs.last_mut() {
        Some(last) if last.width == width && last.offset + last.width * last.count == offset => {
            last.count += count;
        }
        _ => runs.push(SwapRun { offset, width, count }),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{StructField, TimeUnit};
    use super::*;

    fn field(name: &str, data_type: DataType) -> StructField {
        StructField { name: name.to_owned(), data_type }
    }

    #[test]
    fn sizes_in_memory() {
        for (data_type, size) in [
            (DataType::Bool, 1),
            (DataType::Int2, 1),
            (DataType::Float6E2M3FN, 1),
            (DataType::Float64, 8),
            (DataType::Complex64, 8),
            (DataType::Complex128, 16),
            (DataType::ComplexFloat4E2M1FN, 2),
            (DataType::Raw { bits: 24 }, 3),
            (DataType::FixedLengthUtf32 { length_bytes: 12 }, 12),
            (DataType::NumpyDateTime64 { unit: TimeUnit::Nanosecond, scale_factor: 1 }, 8),
        ] {
            assert_eq!(data_type.fixed_size(), Some(size), "{data_type}");
        }
        assert_eq!(DataType::String.size(), ElementSize::Variable);
    }

    #[test]
    fn swaps_follow_the_fields() {
        let inner = DataType::Struct(vec![
            field("a", DataType::UInt8),
            field("b", DataType::Complex64),
            field("c", DataType::Float32),
            field("d", DataType::FixedLengthUtf32 { length_bytes: 8 }),
            field("e", DataType::Int64),
        ]);
        assert_eq!(inner.swap_units(), [SwapRun { offset: 1, width: 4, count: 5 }, SwapRun { offset: 21, width: 8, count: 1 }]);
        let outer = DataType::SubArray { element: Box::new(inner), shape: vec![2] };
        assert_eq!(outer.swap_units().len(), 4);
        assert_eq!(outer.fixed_size(), Some(58));
        let flat = DataType::SubArray { element: Box::new(DataType::Int16), shape: vec![3, 4] };
        assert_eq!(flat.swap_units(), [SwapRun { offset: 0, width: 2, count: 12 }]);
        assert!(!DataType::Raw { bits: 64 }.is_byte_order_sensitive());
    }

    #[test]
    fn widths_for_packing() {
        assert_eq!(DataType::Bool.bit_width(), Some(1));
        assert_eq!(DataType::ComplexFloat6E3M2FN.bit_width(), Some(6));
        assert_eq!(DataType::ComplexFloat6E3M2FN.components(), 2);
        assert_eq!(DataType::String.bit_width(), None);
    }
}

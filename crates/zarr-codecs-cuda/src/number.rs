//! The numbers that kernels compute with.

use zarr_meta::DataType;

use crate::constants::*;

/// The type of a number, as kernels name it; `None` for those that they do not know. Booleans are numbers, times are not.
pub(crate) fn number_of(data_type: &DataType) -> Option<u32> {
    Some(match data_type {
        DataType::Bool => NUMBER_BOOL,
        DataType::Int8 => NUMBER_I8,
        DataType::Int16 => NUMBER_I16,
        DataType::Int32 => NUMBER_I32,
        DataType::Int64 => NUMBER_I64,
        DataType::UInt8 => NUMBER_U8,
        DataType::UInt16 => NUMBER_U16,
        DataType::UInt32 => NUMBER_U32,
        DataType::UInt64 => NUMBER_U64,
        DataType::Float16 => NUMBER_F16,
        DataType::BFloat16 => NUMBER_BF16,
        DataType::Float32 => NUMBER_F32,
        DataType::Float64 => NUMBER_F64,
        _ => return None,
    })
}

/// The numbers of a data type that numpy computes with: times are integers, and brain floats none.
pub(crate) fn numpy_number_of(data_type: &DataType) -> Option<u32> {
    match data_type {
        DataType::NumpyDateTime64 { .. } | DataType::NumpyTimeDelta64 { .. } => Some(NUMBER_I64),
        other => number_of(other).filter(|&number| number != NUMBER_BF16),
    }
}

/// What `numpy.dtype` takes for real numbers. The byte order is left out: that of stored bytes is the `bytes` codec's.
pub(crate) fn parse_numpy(text: &str) -> Option<u32> {
    Some(match text.strip_prefix(['<', '>', '|', '=']).unwrap_or(text) {
        "b1" | "?" | "bool" | "bool_" => NUMBER_BOOL,
        "i1" | "b" | "int8" => NUMBER_I8,
        "i2" | "h" | "int16" => NUMBER_I16,
        "i4" | "i" | "int32" => NUMBER_I32,
        "i8" | "l" | "q" | "int" | "int64" => NUMBER_I64,
        "u1" | "B" | "uint8" => NUMBER_U8,
        "u2" | "H" | "uint16" => NUMBER_U16,
        "u4" | "I" | "uint32" => NUMBER_U32,
        "u8" | "L" | "Q" | "uint" | "uint64" => NUMBER_U64,
        "f2" | "e" | "float16" | "half" => NUMBER_F16,
        "f4" | "f" | "float32" | "single" => NUMBER_F32,
        "f8" | "d" | "float" | "float64" | "double" => NUMBER_F64,
        _ => return None,
    })
}

pub(crate) fn is_float(number: u32) -> bool {
    number >= NUMBER_F16
}

/// Bytes of a number.
pub(crate) fn size_of_number(number: u32) -> usize {
    match number {
        NUMBER_BOOL | NUMBER_I8 | NUMBER_U8 => 1,
        NUMBER_I16 | NUMBER_U16 | NUMBER_F16 | NUMBER_BF16 => 2,
        NUMBER_I32 | NUMBER_U32 | NUMBER_F32 => 4,
        _ => 8,
    }
}

/// The least and the largest integer of a type.
pub(crate) fn range(number: u32) -> (i128, i128) {
    let bits = 8 * size_of_number(number) as u32;
    match number {
        NUMBER_BOOL => (0, 1),
        NUMBER_I8..=NUMBER_I64 => (-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
        _ => (0, (1 << bits) - 1),
    }
}

/// The bits of a number in memory.
pub(crate) fn bits(element: &[u8]) -> Option<u64> {
    let mut bytes = [0; 8];
    bytes.get_mut(..element.len())?.copy_from_slice(element);
    Some(u64::from_le_bytes(bytes))
}

/// An integer of its bits.
pub(crate) fn integer(number: u32, bits: u64) -> i128 {
    let above = 64 - 8 * size_of_number(number) as u32;
    match number {
        NUMBER_BOOL => i128::from(bits != 0),
        NUMBER_I8..=NUMBER_I64 => i128::from((bits << above).cast_signed() >> above),
        _ => i128::from(bits << above >> above),
    }
}

/// The value of a floating point number of its bits, exactly; any NaN is one.
pub(crate) fn float(number: u32, bits: u64) -> f64 {
    let half = |exponent_bits: u32, mantissa_bits: u32| {
        let (bits, bias) = (bits as u16, (1 << (exponent_bits - 1)) - 1);
        let exponent = i32::from(bits >> mantissa_bits) & ((1 << exponent_bits) - 1);
        let mantissa = f64::from(bits & ((1 << mantissa_bits) - 1)) / f64::from(1u32 << mantissa_bits);
        let magnitude = match exponent {
            0 => mantissa * 2f64.powi(1 - bias),
            top if top == (1 << exponent_bits) - 1 => [f64::INFINITY, f64::NAN][usize::from(mantissa != 0.0)],
            _ => (1.0 + mantissa) * 2f64.powi(exponent - bias),
        };
        if bits >> 15 == 0 { magnitude } else { -magnitude }
    };
    match number {
        NUMBER_F16 => half(5, 10),
        NUMBER_BF16 => half(8, 7),
        NUMBER_F32 => f64::from(f32::from_bits(bits as u32)),
        _ => f64::from_bits(bits),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_what_their_bits_say() {
        assert_eq!(float(NUMBER_F16, 0x3c00), 1.0);
        assert_eq!(float(NUMBER_F16, 0xc100), -2.5);
        assert_eq!(float(NUMBER_F16, 1), 2f64.powi(-24));
        assert_eq!(float(NUMBER_F16, 0xfc00), f64::NEG_INFINITY);
        assert!(float(NUMBER_BF16, 0x7fc0).is_nan());
        assert_eq!(float(NUMBER_BF16, 0x4049), 3.140625);
        assert_eq!(integer(NUMBER_I16, 0xfffe), -2);
        assert_eq!(integer(NUMBER_U16, 0xfffe), 65534);
        assert_eq!(range(NUMBER_U64), (0, u64::MAX.into()));
        assert_eq!(range(NUMBER_I8), (-128, 127));
    }
}

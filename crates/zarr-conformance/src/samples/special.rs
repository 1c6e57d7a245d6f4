//! Values that are easily lost: the ends of integers; of floats zeros of both signs, subnormals, infinities and NaN with payloads.

use zarr_codec_api::VariableData;
use zarr_meta::DataType;

use super::Sample;

/// Elements in native byte order; empty for data types that have none to single out.
fn elements(data_type: &DataType) -> Vec<Vec<u8>> {
    match data_type {
        DataType::Int8 | DataType::UInt8 => integers(1),
        DataType::Int16 | DataType::UInt16 => integers(2),
        DataType::Int32 | DataType::UInt32 => integers(4),
        DataType::Int64 | DataType::UInt64 | DataType::NumpyDateTime64 { .. } | DataType::NumpyTimeDelta64 { .. } => integers(8),
        DataType::Float16 => floats(5, 10),
        DataType::BFloat16 => floats(8, 7),
        DataType::Float32 => floats(8, 23),
        DataType::Float64 => floats(11, 52),
        DataType::ComplexFloat16 => complex(floats(5, 10)),
        DataType::ComplexBFloat16 => complex(floats(8, 7)),
        DataType::Complex64 | DataType::ComplexFloat32 => complex(floats(8, 23)),
        DataType::Complex128 | DataType::ComplexFloat64 => complex(floats(11, 52)),
        // Every value there is; what the type does not permit is masked away afterwards.
        _ if data_type.fixed_size() == Some(1) => (0..=255).rev().map(|byte| vec![byte]).collect(),
        _ => Vec::new(),
    }
}

fn integers(size: usize) -> Vec<Vec<u8>> {
    let top = 1u64 << (8 * size - 1);
    [0, 1, u64::MAX, top, top - 1, 0x0102_0304_0506_0708, top + 1].map(|value| native(value, size)).into()
}

/// Of a float with that many bits of exponent and of mantissa, behind a sign.
fn floats(exponent: u32, mantissa: u32) -> Vec<Vec<u8>> {
    let size = (1 + exponent + mantissa) as usize / 8;
    let infinity = ((1u64 << exponent) - 1) << mantissa;
    let quiet = 1u64 << (mantissa - 1);
    let one = ((1u64 << (exponent - 1)) - 1) << mantissa;
    let positive = [
        0,                      // zero
        1,                      // the least subnormal
        (1 << mantissa) - 1,    // the greatest subnormal
        1 << mantissa,          // the least normal
        infinity - 1,           // the greatest
        infinity,               //
        infinity | quiet,       // NaN as arithmetic makes it
        infinity | quiet | 5,   // NaN with a payload
        infinity | 3,           // signalling NaN with a payload
        infinity | (quiet - 1), // signalling NaN, its payload all ones
        one,
    ];
    let sign = 1u64 << (exponent + mantissa);
    positive.into_iter().flat_map(|bits| [bits, bits | sign]).map(|bits| native(bits, size)).collect()
}

fn complex(parts: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    let other = parts.iter().cycle().skip(3);
    parts.iter().zip(other).map(|(real, imaginary)| [real.as_slice(), imaginary].concat()).collect()
}

fn native(value: u64, size: usize) -> Vec<u8> {
    let bytes = value.to_le_bytes();
    let mut bytes = bytes[..size].to_vec();
    if cfg!(target_endian = "big") {
        bytes.reverse();
    }
    bytes
}

/// A chunk of `len` bytes of them, again and again; `None` for data types that have none.
pub(super) fn fixed(data_type: &DataType, len: usize) -> Option<Vec<u8>> {
    let elements = elements(data_type);
    (!elements.is_empty()).then(|| elements.iter().flatten().copied().cycle().take(len).collect())
}

/// A chunk of that many strings, or byte strings, with lengths around where their encodings change, and characters of every length.
pub(super) fn variable(data_type: &DataType, elements: usize) -> Sample {
    let mut all: Vec<Vec<u8>> =
        ["", "\0", "a\0", "\u{10FFFF}\u{1F980}", "\u{7FF}\u{800}\u{FFFF}", "e\u{301}"].map(|text| text.into()).into();
    all.extend([127, 128, 255, 256, 1000].map(|len| vec![b'x'; len]));
    if matches!(data_type, DataType::Bytes) {
        all.extend([vec![0xFF], vec![0x80, 0xC0, 0xFE], vec![0; 4]]);
    }
    Sample::Variable(all.iter().cycle().take(elements).collect::<VariableData>())
}

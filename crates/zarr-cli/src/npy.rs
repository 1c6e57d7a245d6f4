//! The header of an `.npy` file (NumPy enhancement proposal 1).

use std::fmt::Write as _;

use zarr::DataType;

use crate::error::{Failure, Result};

/// The bytes before the elements, for elements in C order, little endian.
pub(crate) fn header(data_type: &DataType, shape: &[u64]) -> Result<Vec<u8>> {
    let descr = descr(data_type)?;
    let lengths: String = shape.iter().fold(String::new(), |mut text, length| {
        let _ = write!(text, "{length}, ");
        text
    });
    // One axis needs the comma to be a tuple; others may not end in a space.
    let lengths = if shape.len() == 1 { lengths.trim_end() } else { lengths.trim_end_matches([',', ' ']) };
    let dictionary = format!("{{'descr': {descr}, 'fortran_order': False, 'shape': ({lengths}), }}");
    // Version 1 has two bytes for the length, version 2 four, and only version 3 knows UTF-8.
    let version: u8 = match (dictionary.is_ascii(), dictionary.len() > 65_000) {
        (true, false) => 1,
        (true, true) => 2,
        (false, _) => 3,
    };
    let fixed = if version == 1 { 10 } else { 12 };
    let total = (fixed + dictionary.len() + 1).next_multiple_of(64);
    let length = total - fixed;
    let mut header = b"\x93NUMPY".to_vec();
    header.extend([version, 0]);
    if version == 1 {
        header.extend((length as u16).to_le_bytes());
    } else {
        header.extend((length as u32).to_le_bytes());
    }
    header.extend(dictionary.as_bytes());
    header.resize(total - 1, b' ');
    header.push(b'\n');
    Ok(header)
}

/// The type as `numpy.lib.format.dtype_to_descr` has it.
fn descr(data_type: &DataType) -> Result<String> {
    match data_type {
        DataType::Struct(fields) => {
            let mut text = String::from("[");
            for field in fields {
                let (element, shape) = match &field.data_type {
                    DataType::SubArray { element, shape } => (element.as_ref(), shape.as_slice()),
                    other => (other, [].as_slice()),
                };
                let _ = write!(text, "({}, {}", python_string(&field.name), descr(element)?);
                if !shape.is_empty() {
                    let lengths: Vec<String> = shape.iter().map(u64::to_string).collect();
                    let _ = write!(text, ", ({},)", lengths.join(", "));
                }
                text.push_str("), ");
            }
            text.truncate(text.trim_end_matches([',', ' ']).len());
            text.push(']');
            Ok(text)
        }
        DataType::SubArray { element, shape } => {
            let lengths: Vec<String> = shape.iter().map(u64::to_string).collect();
            Ok(format!("({}, ({},))", descr(element)?, lengths.join(", ")))
        }
        plain => code(plain).map(|code| format!("'{code}'")).ok_or_else(|| {
            Failure::new(format!("NumPy has no data type for {plain}, so there is no npy file of it"))
                .hint("--format json writes elements of any data type, --format raw the bytes of those of fixed length")
        }),
    }
}

fn code(data_type: &DataType) -> Option<String> {
    let time = |letter: &str, unit: &str, scale_factor: u32| match (unit, scale_factor) {
        ("generic", _) => format!("<{letter}8"),
        (unit, 1) => format!("<{letter}8[{unit}]"),
        (unit, scale_factor) => format!("<{letter}8[{scale_factor}{unit}]"),
    };
    let code = match data_type {
        DataType::Bool => "|b1",
        DataType::Int8 => "|i1",
        DataType::Int16 => "<i2",
        DataType::Int32 => "<i4",
        DataType::Int64 => "<i8",
        DataType::UInt8 => "|u1",
        DataType::UInt16 => "<u2",
        DataType::UInt32 => "<u4",
        DataType::UInt64 => "<u8",
        DataType::Float16 => "<f2",
        DataType::Float32 => "<f4",
        DataType::Float64 => "<f8",
        DataType::Complex64 | DataType::ComplexFloat32 => "<c8",
        DataType::Complex128 | DataType::ComplexFloat64 => "<c16",
        DataType::Raw { bits } => return Some(format!("|V{}", bits / 8)),
        DataType::FixedLengthUtf32 { length_bytes } => return Some(format!("<U{}", length_bytes / 4)),
        DataType::NullTerminatedBytes { length_bytes } => return Some(format!("|S{length_bytes}")),
        DataType::NumpyDateTime64 { unit, scale_factor } => return Some(time("M", unit.name(), *scale_factor)),
        DataType::NumpyTimeDelta64 { unit, scale_factor } => return Some(time("m", unit.name(), *scale_factor)),
        _ => return None,
    };
    Some(code.to_owned())
}

fn python_string(text: &str) -> String {
    let mut quoted = String::from("'");
    for character in text.chars() {
        match character {
            '\\' | '\'' => quoted.extend(['\\', character]),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            other => quoted.push(other),
        }
    }
    quoted.push('\'');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;
    use zarr::meta::{StructField, TimeUnit};

    fn text(data_type: DataType, shape: &[u64]) -> String {
        let header = header(&data_type, shape).unwrap();
        assert_eq!(header.len() % 64, 0);
        let length = u16::from_le_bytes([header[8], header[9]]);
        assert_eq!(usize::from(length) + 10, header.len());
        String::from_utf8(header[10..].to_vec()).unwrap().trim_end().to_owned()
    }

    #[test]
    fn dictionaries() {
        assert_eq!(text(DataType::Float32, &[3, 4]), "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }");
        assert_eq!(text(DataType::Bool, &[]), "{'descr': '|b1', 'fortran_order': False, 'shape': (), }");
        let time = DataType::NumpyDateTime64 { unit: TimeUnit::Nanosecond, scale_factor: 10 };
        assert_eq!(text(time.clone(), &[5]), "{'descr': '<M8[10ns]', 'fortran_order': False, 'shape': (5,), }");
        let field = |name: &str, data_type| StructField { name: name.to_owned(), data_type };
        let row = DataType::SubArray { element: Box::new(DataType::UInt16), shape: vec![2, 3] };
        let of = DataType::Struct(vec![field("a", DataType::Int32), field("it's", row), field("t", time)]);
        assert_eq!(
            text(of, &[1]),
            "{'descr': [('a', '<i4'), ('it\\'s', '<u2', (2, 3,)), ('t', '<M8[10ns]')], 'fortran_order': False, 'shape': (1,), }"
        );
    }

    #[test]
    fn what_numpy_lacks_is_refused() {
        assert!(header(&DataType::BFloat16, &[1]).is_err());
        assert!(header(&DataType::String, &[1]).is_err());
    }
}

//! Data types, and elements of them.

use zarr_codec_api::ArrayRepresentation;
use zarr_meta::{DataType, Extension, FillValue, Json};

/// Data types in classes, as codecs take them.
pub(super) const INTEGERS: &[&str] = &["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"];
pub(super) const FLOATS: &[&str] = &["float16", "float32", "float64"];
pub(super) const COMPLEX: &[&str] = &["complex64", "complex128"];
pub(super) const TIMES: &[&str] = &["numpy.datetime64", "numpy.timedelta64"];

/// A data type by its name, with parameters of which it has some.
pub(super) fn data_type(name: &str) -> Result<DataType, String> {
    let text = match name {
        "numpy.datetime64" | "numpy.timedelta64" => format!(r#"{{"name":"{name}","configuration":{{"unit":"s","scale_factor":1}}}}"#),
        "fixed_length_utf32" => r#"{"name":"fixed_length_utf32","configuration":{"length_bytes":12}}"#.to_owned(),
        "null_terminated_bytes" => r#"{"name":"null_terminated_bytes","configuration":{"length_bytes":5}}"#.to_owned(),
        "struct" => r#"{"name":"struct","configuration":{"fields":[{"name":"a","data_type":"int16"},{"name":"b","data_type":"float64"}]}}"#
            .to_owned(),
        name => format!(r#""{name}""#),
    };
    let json = Json::parse(text.as_bytes()).map_err(|error| format!("{text}: {error}"))?;
    DataType::parse(&json).map_err(|error| format!("{text}: {error}"))
}

/// A chunk.
pub(super) fn array(data_type: DataType, shape: &[u64]) -> ArrayRepresentation {
    let fill_value = FillValue::default_for(&data_type);
    ArrayRepresentation { data_type, shape: shape.to_vec(), fill_value }
}

/// A codec as metadata writes it.
pub(super) fn codec(text: &str) -> Result<Extension, String> {
    let json = Json::parse(text.as_bytes()).map_err(|error| format!("{text}: {error}"))?;
    Extension::parse(&json).map_err(|error| format!("{text}: {error}"))
}

/// The type in the words of numpy, as codecs of numcodecs are configured.
pub(super) fn numpy(name: &str) -> &'static str {
    match name {
        "bool" => "|b1",
        "int8" => "|i1",
        "int16" => "<i2",
        "int32" => "<i4",
        "int64" => "<i8",
        "uint8" => "|u1",
        "uint16" => "<u2",
        "uint32" => "<u4",
        "uint64" => "<u8",
        "float16" => "<f2",
        "float32" => "<f4",
        "float64" => "<f8",
        "complex64" => "<c8",
        "complex128" => "<c16",
        "numpy.datetime64" => "<M8[s]",
        "numpy.timedelta64" => "<m8[s]",
        _ => "",
    }
}

/// `count` small numbers from 0 to 15.75 in steps of a quarter (whole ones of types without fractions, 0 and 1 of those with few values), as elements in the byte order of the machine: for codecs
/// whose arithmetic cannot take any bits.
pub(super) fn numbers(name: &str, count: usize) -> Option<Vec<u8>> {
    let quarters = (0..count).map(|index| (index * 7 % 64) as u8);
    let mut bytes = Vec::new();
    for quarters in quarters {
        let value = f32::from(quarters) / 4.0;
        match name {
            "float16" => bytes.extend(half_of(quarters).to_ne_bytes()),
            "bfloat16" => bytes.extend(((value.to_bits() >> 16) as u16).to_ne_bytes()),
            "float32" => bytes.extend(value.to_ne_bytes()),
            "float64" => bytes.extend(f64::from(value).to_ne_bytes()),
            "complex64" => [value, -value].iter().for_each(|part| bytes.extend(part.to_ne_bytes())),
            "complex128" => [value, -value].iter().for_each(|part| bytes.extend(f64::from(*part).to_ne_bytes())),
            "bool" | "int2" | "int4" | "uint2" | "uint4" => bytes.push(quarters % 2),
            // 0 and 1.
            "float8_e4m3" => bytes.push(quarters % 2 * 0x38),
            "float8_e5m2" => bytes.push(quarters % 2 * 0x3C),
            _ => {
                let size = data_type(name).ok()?.fixed_size()?;
                let whole = u64::from(quarters / 4).to_ne_bytes();
                let low = if cfg!(target_endian = "little") { whole.get(..size)? } else { whole.get(whole.len().checked_sub(size)?..)? };
                bytes.extend_from_slice(low);
            }
        }
    }
    Some(bytes)
}

/// A number of quarters below 64 as a binary16.
fn half_of(quarters: u8) -> u16 {
    if quarters == 0 {
        return 0;
    }
    let top = 7 - quarters.leading_zeros() as u16;
    // The exponent of `quarters / 4`, biased by 15, and the bits below the first one.
    (top + 13) << 10 | (u16::from(quarters) << (10 - top) & 0x3FF)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_right() {
        // 1.0, 0.25, 15.75 in binary16.
        assert_eq!([half_of(4), half_of(1), half_of(63)], [0x3C00, 0x3400, 0x4BE0]);
    }
}

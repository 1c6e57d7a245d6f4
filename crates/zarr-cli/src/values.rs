//! Elements as numbers and as text.

use std::fmt::Write as _;

use bytemuck::{AnyBitPattern, pod_read_unaligned};
use half::{bf16, f16};
use zarr::meta::{Json, Number};
use zarr::{DataType, FillValue};

/// A number that an element is.
pub(crate) trait Scalar: AnyBitPattern + PartialOrd + Send + Sync {
    fn to_f64(self) -> f64;
    /// The shortest text that reads back as the same number.
    fn text(self) -> String;
}

macro_rules! scalars {
    ($($type:ty: $to_f64:expr),+) => {$(
        impl Scalar for $type {
            fn to_f64(self) -> f64 {
                let convert: fn($type) -> f64 = $to_f64;
                convert(self)
            }

            fn text(self) -> String {
                format!("{self:?}")
            }
        }
    )+};
}

scalars! {
    u8: f64::from, u16: f64::from, u32: f64::from, u64: |value| value as f64,
    i8: f64::from, i16: f64::from, i32: f64::from, i64: |value| value as f64,
    f16: f64::from, bf16: f64::from, f32: f64::from, f64: |value| value
}

/// Runs `$body` with `$name` standing for the Rust type of the elements of a data type, or `$other` when they are no numbers that Rust has.
macro_rules! with_scalar {
    ($data_type:expr, $name:ident => $body:expr, $other:expr) => {{
        use zarr::DataType as D;
        macro_rules! run {
            ($type:ty) => {{
                type $name = $type;
                $body
            }};
        }
        match $data_type {
            D::Bool | D::UInt8 | D::UInt4 | D::UInt2 => run!(u8),
            D::Int8 | D::Int4 | D::Int2 => run!(i8),
            D::Int16 => run!(i16),
            D::Int32 => run!(i32),
            D::Int64 | D::NumpyDateTime64 { .. } | D::NumpyTimeDelta64 { .. } => run!(i64),
            D::UInt16 => run!(u16),
            D::UInt32 => run!(u32),
            D::UInt64 => run!(u64),
            D::Float16 => run!(half::f16),
            D::BFloat16 => run!(half::bf16),
            D::Float32 => run!(f32),
            D::Float64 => run!(f64),
            _ => $other,
        }
    }};
}
pub(crate) use with_scalar;

/// The values of all 256 bytes, for a data type of small floats.
pub(crate) fn byte_values(data_type: &DataType) -> Option<Vec<f64>> {
    if data_type.fixed_size() != Some(1) || data_type.bit_width().is_none() {
        return None;
    }
    let value = |byte: u8| {
        let json = FillValue::from_bytes([byte], data_type).and_then(|value| value.to_json(data_type));
        match json {
            Ok(Json::Number(number)) => number.as_f64(),
            Ok(Json::String(name)) if name == "Infinity" => f64::INFINITY,
            Ok(Json::String(name)) if name == "-Infinity" => f64::NEG_INFINITY,
            // What is left are NaNs, and bit patterns that stand for nothing.
            _ => f64::NAN,
        }
    };
    Some((0..=u8::MAX).map(value).collect())
}

/// Elements as `f64`; `None` for data types that are no real numbers. Dates that are none become NaN.
pub(crate) fn to_f64(data_type: &DataType, bytes: &[u8]) -> Option<Vec<f64>> {
    let time = matches!(data_type, DataType::NumpyDateTime64 { .. } | DataType::NumpyTimeDelta64 { .. });
    with_scalar!(
        data_type,
        T => Some(bytes.chunks_exact(size_of::<T>()).map(|element| {
            if time && element == i64::MIN.to_ne_bytes() { f64::NAN } else { pod_read_unaligned::<T>(element).to_f64() }
        }).collect()),
        byte_values(data_type).map(|values| bytes.iter().map(|&byte| values[usize::from(byte)]).collect())
    )
}

/// Appends an element of fixed size as JSON: numbers and booleans as such, NaN and the infinities as strings, complex numbers as pairs, the rest as
/// Zarr's metadata writes fill values.
pub(crate) fn write_json(out: &mut String, data_type: &DataType, bytes: &[u8]) {
    if let Some(component) = data_type.complex_component() {
        let (real, imaginary) = bytes.split_at(bytes.len() / 2);
        out.push('[');
        write_json(out, &component, real);
        out.push_str(", ");
        write_json(out, &component, imaginary);
        out.push(']');
        return;
    }
    match data_type {
        DataType::Bool => out.push_str(if bytes == [0] { "false" } else { "true" }),
        DataType::Float32 => write_float(out, f64::from(pod_read_unaligned::<f32>(bytes)), || pod_read_unaligned::<f32>(bytes).text()),
        DataType::Float64 => write_float(out, pod_read_unaligned::<f64>(bytes), || pod_read_unaligned::<f64>(bytes).text()),
        DataType::Float16 => write_float(out, pod_read_unaligned::<f16>(bytes).to_f64(), || pod_read_unaligned::<f16>(bytes).text()),
        DataType::BFloat16 => write_float(out, pod_read_unaligned::<bf16>(bytes).to_f64(), || pod_read_unaligned::<bf16>(bytes).text()),
        integers if integers.is_signed_integer() || integers.is_unsigned_integer() => {
            with_scalar!(integers, T => { let _ = write!(out, "{}", pod_read_unaligned::<T>(bytes)); }, ());
        }
        other => {
            let json = FillValue::from_bytes(bytes, other).and_then(|value| value.to_json(other));
            // The bytes are an element of the type, so there is a form for them.
            out.push_str(&json.unwrap_or(Json::Null).to_text());
        }
    }
}

fn write_float(out: &mut String, value: f64, text: impl Fn() -> String) {
    if value.is_finite() {
        out.push_str(&text());
    } else {
        out.push_str(&crate::json::float(value).to_text());
    }
}

/// Appends an element of variable length as JSON.
pub(crate) fn write_variable_json(out: &mut String, data_type: &DataType, bytes: &[u8]) {
    let json = match data_type {
        DataType::String => Json::String(String::from_utf8_lossy(bytes).into_owned()),
        other => FillValue::from_bytes(bytes, other).and_then(|value| value.to_json(other)).unwrap_or(Json::Null),
    };
    out.push_str(&json.to_text());
}

/// A number's text as a JSON value: a number where JSON has it.
pub(crate) fn number_json(text: &str) -> Json {
    match Number::parse(text) {
        Some(number) => Json::Number(number),
        None => Json::String(match text {
            "inf" => "Infinity".to_owned(),
            "-inf" => "-Infinity".to_owned(),
            other => other.to_owned(),
        }),
    }
}

/// A data type as people call it: `float32`, `datetime64[ns]`, `U10`, `{a: int32, b: float64}`.
pub(crate) fn type_name(data_type: &DataType) -> String {
    match data_type {
        DataType::NumpyDateTime64 { unit, scale_factor } => format!("datetime64[{}]", time_unit(unit.name(), *scale_factor)),
        DataType::NumpyTimeDelta64 { unit, scale_factor } => format!("timedelta64[{}]", time_unit(unit.name(), *scale_factor)),
        DataType::FixedLengthUtf32 { length_bytes } => format!("U{}", length_bytes / 4),
        DataType::NullTerminatedBytes { length_bytes } => format!("S{length_bytes}"),
        DataType::Struct(fields) => {
            let fields: Vec<String> = fields.iter().map(|field| format!("{}: {}", field.name, type_name(&field.data_type))).collect();
            format!("{{{}}}", fields.join(", "))
        }
        DataType::SubArray { element, shape } => format!("{}[{}]", type_name(element), crate::units::shape(shape)),
        other => other.name(),
    }
}

fn time_unit(unit: &str, scale_factor: u32) -> String {
    if scale_factor == 1 { unit.to_owned() } else { format!("{scale_factor}{unit}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(data_type: &DataType, bytes: &[u8]) -> String {
        let mut out = String::new();
        write_json(&mut out, data_type, bytes);
        out
    }

    #[test]
    fn elements_as_json() {
        assert_eq!(json(&DataType::Float32, &0.1f32.to_ne_bytes()), "0.1");
        assert_eq!(json(&DataType::Float32, &1e20f32.to_ne_bytes()), "1e20");
        assert_eq!(json(&DataType::Float64, &f64::NEG_INFINITY.to_ne_bytes()), "\"-Infinity\"");
        assert_eq!(json(&DataType::Float16, &f16::NAN.to_ne_bytes()), "\"NaN\"");
        assert_eq!(json(&DataType::Complex64, &[1f32.to_ne_bytes(), f32::NAN.to_ne_bytes()].concat()), "[1.0, \"NaN\"]");
        assert_eq!(json(&DataType::Bool, &[2]), "true");
        assert_eq!(json(&DataType::Int4, &[0xFF]), "-1");
        assert_eq!(json(&DataType::UInt64, &u64::MAX.to_ne_bytes()), u64::MAX.to_string());
        let time = DataType::NumpyDateTime64 { unit: zarr::meta::TimeUnit::Second, scale_factor: 1 };
        assert_eq!(json(&time, &i64::MIN.to_ne_bytes()), "\"NaT\"");
        assert_eq!(to_f64(&time, &i64::MIN.to_ne_bytes()).map(|values| values[0].is_nan()), Some(true));
    }

    #[test]
    fn small_floats_have_values() {
        let values = byte_values(&DataType::Float8E5M2).unwrap();
        assert_eq!((values[0], values[0x3C], values[0xC0]), (0.0, 1.0, -2.0));
        assert!(values[0x7C].is_infinite() && values[0x7F].is_nan());
        assert_eq!(byte_values(&DataType::Raw { bits: 8 }), None);
    }
}

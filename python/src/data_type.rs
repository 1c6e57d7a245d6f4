//! NumPy's names of Zarr's data types, and back.

use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};
use zarr::DataType;
use zarr::meta::Json;

use crate::error::{Outcome, unsupported};

const ORDER: char = if cfg!(target_endian = "little") { '<' } else { '>' };

/// The type of elements of a fixed size as NumPy's array interface says it: kind and bytes. `None` where NumPy has no kind for it.
pub(crate) fn type_string(data_type: &DataType) -> Option<String> {
    let number = |kind: char, size: usize| if size == 1 { format!("|{kind}1") } else { format!("{ORDER}{kind}{size}") };
    Some(match data_type {
        DataType::Bool => "|b1".into(),
        DataType::Int8 => number('i', 1),
        DataType::Int16 => number('i', 2),
        DataType::Int32 => number('i', 4),
        DataType::Int64 => number('i', 8),
        DataType::UInt8 => number('u', 1),
        DataType::UInt16 => number('u', 2),
        DataType::UInt32 => number('u', 4),
        DataType::UInt64 => number('u', 8),
        DataType::Float16 => number('f', 2),
        DataType::Float32 => number('f', 4),
        DataType::Float64 => number('f', 8),
        DataType::Complex64 | DataType::ComplexFloat32 => number('c', 8),
        DataType::Complex128 | DataType::ComplexFloat64 => number('c', 16),
        DataType::NumpyDateTime64 { unit, scale_factor } => format!("{ORDER}M8{}", time(unit.name(), *scale_factor)),
        DataType::NumpyTimeDelta64 { unit, scale_factor } => format!("{ORDER}m8{}", time(unit.name(), *scale_factor)),
        DataType::NullTerminatedBytes { length_bytes } => format!("|S{length_bytes}"),
        DataType::FixedLengthUtf32 { length_bytes } => format!("{ORDER}U{}", length_bytes / 4),
        DataType::Raw { bits } => format!("|V{}", bits / 8),
        _ => return None,
    })
}

fn time(unit: &str, scale_factor: u32) -> String {
    match (unit, scale_factor) {
        ("generic", _) => String::new(),
        (unit, 1) => format!("[{unit}]"),
        (unit, scale_factor) => format!("[{scale_factor}{unit}]"),
    }
}

/// The name in `ml_dtypes` of what NumPy lacks.
fn extension(data_type: &DataType) -> Option<&'static str> {
    Some(match data_type {
        DataType::Int2 => "int2",
        DataType::Int4 => "int4",
        DataType::UInt2 => "uint2",
        DataType::UInt4 => "uint4",
        DataType::BFloat16 => "bfloat16",
        DataType::Float4E2M1FN => "float4_e2m1fn",
        DataType::Float6E2M3FN => "float6_e2m3fn",
        DataType::Float6E3M2FN => "float6_e3m2fn",
        DataType::Float8E3M4 => "float8_e3m4",
        DataType::Float8E4M3 => "float8_e4m3",
        DataType::Float8E4M3FN => "float8_e4m3fn",
        DataType::Float8E4M3B11FNUZ => "float8_e4m3b11fnuz",
        DataType::Float8E4M3FNUZ => "float8_e4m3fnuz",
        DataType::Float8E5M2 => "float8_e5m2",
        DataType::Float8E5M2FNUZ => "float8_e5m2fnuz",
        DataType::Float8E8M0FNU => "float8_e8m0fnu",
        _ => return None,
    })
}

/// What `numpy.dtype` takes: a type string, or a list of fields.
fn description<'py>(py: Python<'py>, data_type: &DataType) -> Outcome<Bound<'py, PyAny>> {
    let nameless = || unsupported(format!("NumPy has no dtype for {data_type}"));
    match data_type {
        DataType::Struct(fields) => {
            let list = PyList::empty(py);
            for field in fields {
                match &field.data_type {
                    DataType::SubArray { element, shape } => {
                        list.append((&field.name, dtype(py, element)?, PyTuple::new(py, shape)?))?;
                    }
                    other => list.append((&field.name, dtype(py, other)?))?,
                }
            }
            Ok(list.into_any())
        }
        DataType::SubArray { element, shape } => Ok((dtype(py, element)?, PyTuple::new(py, shape)?).into_pyobject(py)?.into_any()),
        DataType::String | DataType::Bytes => Ok(PyString::new(py, "O").into_any()),
        plain => Ok(PyString::new(py, &type_string(plain).ok_or_else(nameless)?).into_any()),
    }
}

/// The NumPy dtype of a data type; `object` for elements of variable length.
pub(crate) fn dtype<'py>(py: Python<'py>, data_type: &DataType) -> Outcome<Bound<'py, PyAny>> {
    let numpy = py.import("zarrgpu._numpy")?;
    Ok(match extension(data_type) {
        Some(name) => numpy.call_method1("dtype", (plain_type_string(data_type), name))?,
        None => numpy.call_method1("dtype", (description(py, data_type)?, py.None()))?,
    })
}

/// A type of NumPy's own with as many bytes: what an array of the data type is before it is viewed as its dtype.
pub(crate) fn plain_type_string(data_type: &DataType) -> String {
    type_string(data_type).unwrap_or_else(|| format!("|V{}", data_type.fixed_size().unwrap_or(0)))
}

/// The data type that `dtype=` means: Zarr's name of it, or what NumPy, torch or ml_dtypes have.
pub(crate) fn parse(dtype: &Bound<'_, PyAny>) -> Outcome<DataType> {
    if let Ok(name) = dtype.cast::<PyString>()
        && let Ok(data_type) = DataType::parse(&Json::from(name.to_cow()?.as_ref()))
    {
        return Ok(data_type);
    }
    let text: String = dtype.py().import("zarrgpu._numpy")?.call_method1("data_type", (dtype,))?.extract()?;
    let parsed = Json::parse(text.as_bytes()).and_then(|json| DataType::parse(&json));
    parsed.map_err(|error| unsupported(format!("no data type for {dtype}: {error}")))
}

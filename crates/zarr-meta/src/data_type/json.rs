//! Data types from and to the `data_type` of version 3 metadata.

use super::layout::count;
use super::{DataType, MAX_ELEMENT_SIZE, StructField, TimeUnit};
use crate::{Extension, Json, JsonObject, MetadataError, read};

/// The data types that a name alone describes.
const PLAIN: [(&str, DataType); 45] = [
    ("bool", DataType::Bool),
    ("int2", DataType::Int2),
    ("int4", DataType::Int4),
    ("int8", DataType::Int8),
    ("int16", DataType::Int16),
    ("int32", DataType::Int32),
    ("int64", DataType::Int64),
    ("uint2", DataType::UInt2),
    ("uint4", DataType::UInt4),
    ("uint8", DataType::UInt8),
    ("uint16", DataType::UInt16),
    ("uint32", DataType::UInt32),
    ("uint64", DataType::UInt64),
    ("float4_e2m1fn", DataType::Float4E2M1FN),
    ("float6_e2m3fn", DataType::Float6E2M3FN),
    ("float6_e3m2fn", DataType::Float6E3M2FN),
    ("float8_e3m4", DataType::Float8E3M4),
    ("float8_e4m3", DataType::Float8E4M3),
    ("float8_e4m3fn", DataType::Float8E4M3FN),
    ("float8_e4m3b11fnuz", DataType::Float8E4M3B11FNUZ),
    ("float8_e4m3fnuz", DataType::Float8E4M3FNUZ),
    ("float8_e5m2", DataType::Float8E5M2),
    ("float8_e5m2fnuz", DataType::Float8E5M2FNUZ),
    ("float8_e8m0fnu", DataType::Float8E8M0FNU),
    ("bfloat16", DataType::BFloat16),
    ("float16", DataType::Float16),
    ("float32", DataType::Float32),
    ("float64", DataType::Float64),
    ("complex64", DataType::Complex64),
    ("complex128", DataType::Complex128),
    ("complex_bfloat16", DataType::ComplexBFloat16),
    ("complex_float16", DataType::ComplexFloat16),
    ("complex_float32", DataType::ComplexFloat32),
    ("complex_float64", DataType::ComplexFloat64),
    ("complex_float4_e2m1fn", DataType::ComplexFloat4E2M1FN),
    ("complex_float6_e2m3fn", DataType::ComplexFloat6E2M3FN),
    ("complex_float6_e3m2fn", DataType::ComplexFloat6E3M2FN),
    ("complex_float8_e3m4", DataType::ComplexFloat8E3M4),
    ("complex_float8_e4m3", DataType::ComplexFloat8E4M3),
    ("complex_float8_e4m3b11fnuz", DataType::ComplexFloat8E4M3B11FNUZ),
    ("complex_float8_e4m3fnuz", DataType::ComplexFloat8E4M3FNUZ),
    ("complex_float8_e5m2", DataType::ComplexFloat8E5M2),
    ("complex_float8_e5m2fnuz", DataType::ComplexFloat8E5M2FNUZ),
    ("complex_float8_e8m0fnu", DataType::ComplexFloat8E8M0FNU),
    ("string", DataType::String),
];

/// How deep `struct` types may be nested.
pub(crate) const MAX_STRUCT_DEPTH: usize = 32;

/// The most numbers that one element with sub-arrays may hold: as a struct it has a field for each.
pub(crate) const MAX_SUB_ARRAY: usize = 1 << 20;

impl DataType {
    /// All data types that have no configuration, in the order of the enum; for tables and tests.
    pub fn plain() -> impl Iterator<Item = Self> {
        PLAIN.iter().map(|(_, data_type)| data_type.clone()).chain([Self::Bytes])
    }

    /// The registered name: `float32`, `r24`, `numpy.datetime64`, `struct`.
    pub fn name(&self) -> String {
        match self {
            Self::Raw { bits } => format!("r{bits}"),
            Self::FixedLengthUtf32 { .. } => "fixed_length_utf32".to_owned(),
            Self::NullTerminatedBytes { .. } => "null_terminated_bytes".to_owned(),
            Self::Bytes => "bytes".to_owned(),
            Self::NumpyDateTime64 { .. } => "numpy.datetime64".to_owned(),
            Self::NumpyTimeDelta64 { .. } => "numpy.timedelta64".to_owned(),
            Self::Struct(_) | Self::SubArray { .. } => "struct".to_owned(),
            plain => PLAIN.iter().find(|(_, data_type)| data_type == plain).map_or_else(String::new, |(name, _)| (*name).to_owned()),
        }
    }

    /// Reads the `data_type` of version 3 metadata: a name, or an object with name and
    /// configuration.
    ///
    /// # Errors
    /// [`MetadataError::Unknown`] for a name this crate does not know, other errors for a
    /// configuration that does not fit the name, and for `"must_understand": false`, which the
    /// specification does not support here.
    pub fn parse(value: &Json) -> Result<Self, MetadataError> {
        parse(value, 0)
    }

    /// The `data_type` of version 3 metadata: the name alone where there is no configuration.
    pub fn to_json(&self) -> Json {
        let configuration = match self {
            Self::FixedLengthUtf32 { length_bytes } | Self::NullTerminatedBytes { length_bytes } => {
                JsonObject::new().with("length_bytes", *length_bytes)
            }
            Self::NumpyDateTime64 { unit, scale_factor } | Self::NumpyTimeDelta64 { unit, scale_factor } => {
                JsonObject::new().with("unit", unit.name()).with("scale_factor", *scale_factor)
            }
            Self::Struct(fields) => {
                JsonObject::new().with("fields", fields.iter().map(|field| field_to_json(&field.name, &field.data_type)).collect::<Json>())
            }
            Self::SubArray { element, shape } => JsonObject::new().with(
                "fields",
                (0..count(shape).min(MAX_SUB_ARRAY)).map(|index| field_to_json(&index.to_string(), element)).collect::<Json>(),
            ),
            plain => return Json::String(plain.name()),
        };
        Extension::with_configuration(self.name(), configuration).to_json()
    }
}

fn field_to_json(name: &str, data_type: &DataType) -> Json {
    JsonObject::new().with("name", name).with("data_type", data_type.to_json()).into()
}

fn parse(value: &Json, depth: usize) -> Result<DataType, MetadataError> {
    let extension = Extension::parse(value)?;
    if !extension.must_understand {
        return Err(MetadataError::inconsistent("a data type must always be understood").within("must_understand"));
    }
    let none = JsonObject::new();
    let configuration = extension.configuration.as_ref().unwrap_or(&none);
    let data_type = configured(&extension.name, configuration, depth).map_err(|error| {
        if error.at().is_some_and(|at| at.is_root()) && matches!(error, MetadataError::Unknown { .. }) {
            error
        } else {
            error.within("configuration")
        }
    })?;
    if data_type.size_is_sane() {
        Ok(data_type)
    } else {
        Err(MetadataError::unsupported(format!("elements of more than {MAX_ELEMENT_SIZE} bytes")))
    }
}

fn configured(name: &str, configuration: &JsonObject, depth: usize) -> Result<DataType, MetadataError> {
    let known: &[&str] = match name {
        "fixed_length_utf32" | "null_terminated_bytes" | "raw_bytes" => &["length_bytes"],
        "numpy.datetime64" | "numpy.timedelta64" => &["unit", "scale_factor"],
        "struct" | "structured" => &["fields"],
        _ => &[],
    };
    let data_type = match name {
        "fixed_length_utf32" => {
            let length_bytes = length_bytes(configuration)?;
            if length_bytes % 4 != 0 {
                return Err(MetadataError::inconsistent("must be a multiple of 4").within("length_bytes"));
            }
            DataType::FixedLengthUtf32 { length_bytes }
        }
        "null_terminated_bytes" => DataType::NullTerminatedBytes { length_bytes: length_bytes(configuration)? },
        "raw_bytes" => DataType::Raw { bits: u64::from(length_bytes(configuration)?) * 8 },
        "bytes" | "variable_length_bytes" | "binary" => DataType::Bytes,
        "numpy.datetime64" => {
            let (unit, scale_factor) = time(configuration)?;
            DataType::NumpyDateTime64 { unit, scale_factor }
        }
        "numpy.timedelta64" => {
            let (unit, scale_factor) = time(configuration)?;
            DataType::NumpyTimeDelta64 { unit, scale_factor }
        }
        "struct" | "structured" => {
            if depth >= MAX_STRUCT_DEPTH {
                return Err(MetadataError::inconsistent(format!("struct types nested deeper than {MAX_STRUCT_DEPTH} levels")));
            }
            let fields = read::required(configuration, "fields", |fields| {
                let fields = read::list(fields, "an array of fields", |field| parse_field(field, depth))?;
                check_fields(&fields)?;
                Ok(fields)
            })?;
            DataType::Struct(fields)
        }
        plain => match PLAIN.iter().find(|(known, _)| *known == plain) {
            Some((_, data_type)) => data_type.clone(),
            None => raw(plain).ok_or_else(|| MetadataError::unknown("data type", name))?,
        },
    };
    read::only(configuration, known)?;
    Ok(data_type)
}

/// `r<N>` with N a multiple of 8.
fn raw(name: &str) -> Option<DataType> {
    let digits = name.strip_prefix('r')?;
    let canonical = !digits.starts_with('0') && digits.bytes().all(|b| b.is_ascii_digit());
    let bits: u64 = digits.parse().ok()?;
    (canonical && bits.is_multiple_of(8)).then_some(DataType::Raw { bits })
}

fn length_bytes(configuration: &JsonObject) -> Result<u32, MetadataError> {
    read::required(configuration, "length_bytes", |value| {
        value
            .as_u64()
            .and_then(|length| u32::try_from(length).ok())
            .filter(|&length| length < 1 << 31)
            .ok_or_else(|| MetadataError::unexpected("an integer in [0, 2^31)", value))
    })
}

fn time(configuration: &JsonObject) -> Result<(TimeUnit, u32), MetadataError> {
    let unit = read::required(configuration, "unit", |value| {
        let name = read::string(value)?;
        TimeUnit::from_name(name).ok_or_else(|| MetadataError::unknown("time unit", name))
    })?;
    let scale_factor = read::required(configuration, "scale_factor", |value| {
        value
            .as_u64()
            .and_then(|factor| u32::try_from(factor).ok())
            .filter(|&factor| (1..1 << 31).contains(&factor))
            .ok_or_else(|| MetadataError::unexpected("an integer in [1, 2^31)", value))
    })?;
    Ok((unit, scale_factor))
}

/// A field as an object, or as the `[name, data_type]` of the older `structured`.
fn parse_field(value: &Json, depth: usize) -> Result<StructField, MetadataError> {
    match value {
        Json::Array(pair) => match pair.as_slice() {
            [Json::String(name), data_type] => {
                Ok(StructField { name: name.clone(), data_type: parse(data_type, depth + 1).map_err(|error| error.within_index(1))? })
            }
            _ => Err(MetadataError::unexpected("a pair of name and data type", value)),
        },
        _ => {
            let object = read::object(value, "a field: an object with name and data_type")?;
            read::only(object, &["name", "data_type"])?;
            Ok(StructField {
                name: read::required(object, "name", |name| read::string(name).map(str::to_owned))?,
                data_type: read::required(object, "data_type", |value| parse(value, depth + 1))?,
            })
        }
    }
}

/// The rules for the fields of a struct: at least one, names distinct and not empty, fixed sizes.
pub(crate) fn check_fields(fields: &[StructField]) -> Result<(), MetadataError> {
    if fields.is_empty() {
        return Err(MetadataError::inconsistent("a struct needs at least one field"));
    }
    let mut names = std::collections::HashSet::new();
    for (index, field) in fields.iter().enumerate() {
        let problem = if field.name.is_empty() {
            "a field without a name".to_owned()
        } else if !names.insert(field.name.as_str()) {
            format!("a second field named {:?}", field.name)
        } else if field.data_type.fixed_size().is_none() {
            format!("field {:?} has elements of no fixed size", field.name)
        } else {
            continue;
        };
        return Err(MetadataError::inconsistent(problem).within_index(index));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<DataType, MetadataError> {
        Json::parse(text.as_bytes()).and_then(|value| DataType::parse(&value))
    }

    #[test]
    fn every_plain_type_reads_back_from_its_name() {
        for data_type in DataType::plain() {
            assert_eq!(DataType::parse(&data_type.to_json()), Ok(data_type.clone()));
            let object = format!("{{\"name\":\"{}\",\"configuration\":{{}}}}", data_type.name());
            assert_eq!(parse(&object), Ok(data_type));
        }
        assert_eq!(DataType::plain().count(), 46);
    }

    #[test]
    fn configured_types_read_back() {
        for text in [
            r#""r24""#,
            r#"{"name":"fixed_length_utf32","configuration":{"length_bytes":8}}"#,
            r#"{"name":"null_terminated_bytes","configuration":{"length_bytes":0}}"#,
            r#"{"name":"numpy.datetime64","configuration":{"unit":"ns","scale_factor":10}}"#,
            r#"{"name":"numpy.timedelta64","configuration":{"unit":"generic","scale_factor":1}}"#,
            r#"{"name":"struct","configuration":{"fields":[{"name":"a","data_type":"int8"},{"name":"b","data_type":{"name":"struct","configuration":{"fields":[{"name":"a","data_type":"r16"}]}}}]}}"#,
        ] {
            assert_eq!(parse(text).map(|t| t.to_json().to_text()).as_deref(), Ok(text));
        }
    }

    #[test]
    fn names_of_older_writers_are_read() {
        assert_eq!(parse("\"binary\""), Ok(DataType::Bytes));
        assert_eq!(parse("\"variable_length_bytes\""), Ok(DataType::Bytes));
        assert_eq!(parse(r#"{"name":"raw_bytes","configuration":{"length_bytes":3}}"#), Ok(DataType::Raw { bits: 24 }));
        assert_eq!(
            parse(r#"{"name":"structured","configuration":{"fields":[["a","int8"]]}}"#),
            parse(r#"{"name":"struct","configuration":{"fields":[{"name":"a","data_type":"int8"}]}}"#)
        );
        assert_eq!(
            parse(r#"{"name":"numpy.datetime64","configuration":{"unit":"μs","scale_factor":1}}"#),
            Ok(DataType::NumpyDateTime64 { unit: TimeUnit::Microsecond, scale_factor: 1 })
        );
    }

    #[test]
    fn unknown_types_are_named() {
        assert_eq!(parse("\"float128\"").map_err(|error| error.to_string()), Err("$: unknown data type \"float128\"".to_owned()));
    }

    #[test]
    fn malformed_types_are_refused() {
        for text in [
            "1",
            "null",
            "\"r7\"",
            "\"r08\"",
            "\"r\"",
            "\"r+8\"",
            "\"r17179869192\"",
            r#"{"name":"int8","configuration":{"x":1}}"#,
            r#"{"name":"int8","must_understand":false}"#,
            r#"{"name":"fixed_length_utf32"}"#,
            r#"{"name":"fixed_length_utf32","configuration":{"length_bytes":5}}"#,
            r#"{"name":"fixed_length_utf32","configuration":{"length_bytes":-4}}"#,
            r#"{"name":"numpy.datetime64","configuration":{"unit":"x","scale_factor":1}}"#,
            r#"{"name":"numpy.datetime64","configuration":{"unit":"s","scale_factor":0}}"#,
            r#"{"name":"numpy.datetime64","configuration":{"unit":"s"}}"#,
            r#"{"name":"struct","configuration":{"fields":[]}}"#,
            r#"{"name":"struct","configuration":{"fields":[{"name":"","data_type":"int8"}]}}"#,
            r#"{"name":"struct","configuration":{"fields":[{"name":"a","data_type":"string"}]}}"#,
            r#"{"name":"struct","configuration":{"fields":[{"name":"a","data_type":"int8"},{"name":"a","data_type":"int8"}]}}"#,
            r#"{"name":"struct","configuration":{"fields":[["a"]]}}"#,
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_sub_array_is_written_as_a_struct_of_the_same_bytes() {
        let sub = DataType::SubArray { element: Box::new(DataType::Int16), shape: vec![2] };
        let back = DataType::parse(&sub.to_json());
        assert_eq!(back.as_ref().ok().and_then(DataType::fixed_size), sub.fixed_size());
        assert_eq!(back.map(|t| t.swap_units()), Ok(sub.swap_units()));
    }
}

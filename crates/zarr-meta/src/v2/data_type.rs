//! The `dtype` of version 2: numpy's type strings and structured types.

use crate::data_type::{MAX_ELEMENT_SIZE, MAX_STRUCT_DEPTH, MAX_SUB_ARRAY, check_fields};
use crate::{DataType, Endianness, Json, MetadataError, StructField, TimeUnit, read};

/// The `dtype` of a version 2 array: a data type with a byte order.
///
/// Specification: version 2, "Data type encoding".
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DataTypeV2 {
    /// A type string: `<f4`, `|b1`, `>M8[ns]`.
    Plain {
        /// The data type.
        data_type: DataType,
        /// The byte order; `None` where it makes no difference.
        endianness: Option<Endianness>,
    },
    /// `|O`: what the elements are depends on the codec that encodes them.
    Object,
    /// A list of fields, packed.
    Structured(Vec<FieldV2>),
}

/// A field of [`DataTypeV2::Structured`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct FieldV2 {
    /// The name.
    pub name: String,
    /// The type of the field, or of the elements of its sub-array.
    pub data_type: DataTypeV2,
    /// The shape of the sub-array; empty for a field that is none.
    pub shape: Vec<u64>,
}

/// Data types that numpy has no letter for; tensorstore writes their names, little-endian.
const NAMED: [DataType; 12] = [
    DataType::BFloat16,
    DataType::Int2,
    DataType::Int4,
    DataType::Float4E2M1FN,
    DataType::Float8E3M4,
    DataType::Float8E4M3,
    DataType::Float8E4M3FN,
    DataType::Float8E4M3B11FNUZ,
    DataType::Float8E4M3FNUZ,
    DataType::Float8E5M2,
    DataType::Float8E5M2FNUZ,
    DataType::Float8E8M0FNU,
];

impl DataTypeV2 {
    /// Reads a `dtype`.
    ///
    /// # Errors
    /// [`MetadataError::Unknown`] for a type string this crate does not know, other errors for
    /// malformed structured types.
    pub fn parse(value: &Json) -> Result<Self, MetadataError> {
        parse(value, 0)
    }

    /// The `dtype`.
    pub fn to_json(&self) -> Json {
        match self {
            Self::Plain { data_type, endianness } => type_string(data_type, *endianness).into(),
            Self::Object => "|O".into(),
            Self::Structured(fields) => fields
                .iter()
                .map(|field| {
                    let mut parts = vec![Json::from(field.name.as_str()), field.data_type.to_json()];
                    if !field.shape.is_empty() {
                        parts.push(field.shape.clone().into());
                    }
                    Json::Array(parts)
                })
                .collect(),
        }
    }

    /// The `dtype` of elements of a data type in a byte order. Variable-length types are
    /// [`Object`](Self::Object).
    ///
    /// # Errors
    /// [`MetadataError::Unsupported`] for types that version 2 lacks.
    pub fn from_data_type(data_type: &DataType, endianness: Endianness) -> Result<Self, MetadataError> {
        match data_type {
            DataType::String | DataType::Bytes => Ok(Self::Object),
            DataType::Struct(fields) => fields
                .iter()
                .map(|field| {
                    let (element, shape) = match &field.data_type {
                        DataType::SubArray { element, shape } => (element.as_ref(), shape.clone()),
                        other => (other, Vec::new()),
                    };
                    Ok(FieldV2 { name: field.name.clone(), data_type: Self::from_data_type(element, endianness)?, shape })
                })
                .collect::<Result<_, _>>()
                .map(Self::Structured),
            plain if type_code(plain).is_some() || NAMED.contains(plain) => Ok(Self::Plain {
                data_type: match plain {
                    DataType::ComplexFloat32 => DataType::Complex64,
                    DataType::ComplexFloat64 => DataType::Complex128,
                    other => other.clone(),
                },
                endianness: plain.is_byte_order_sensitive().then_some(endianness),
            }),
            other => Err(MetadataError::unsupported(format!("data type {other} in version 2"))),
        }
    }

    /// The data type, whatever the byte order; `None` for [`Object`](Self::Object).
    pub fn data_type(&self) -> Option<DataType> {
        match self {
            Self::Plain { data_type, .. } => Some(data_type.clone()),
            Self::Object => None,
            Self::Structured(fields) => fields
                .iter()
                .map(|field| {
                    let element = field.data_type.data_type()?;
                    let data_type = if field.shape.is_empty() {
                        element
                    } else {
                        DataType::SubArray { element: element.into(), shape: field.shape.clone() }
                    };
                    Some(StructField { name: field.name.clone(), data_type })
                })
                .collect::<Option<_>>()
                .map(DataType::Struct),
        }
    }

    /// The byte order of all the numbers in an element; `None` where it makes no difference.
    ///
    /// # Errors
    /// [`MetadataError::Unsupported`] if fields differ in byte order.
    pub fn endianness(&self) -> Result<Option<Endianness>, MetadataError> {
        match self {
            Self::Plain { endianness, .. } => Ok(*endianness),
            Self::Object => Ok(None),
            Self::Structured(fields) => {
                let mut common = None;
                for field in fields {
                    match (common, field.data_type.endianness()?) {
                        (Some(one), Some(other)) if one != other => {
                            return Err(MetadataError::unsupported("a structured type with fields of both byte orders"));
                        }
                        (None, other) => common = other,
                        _ => {}
                    }
                }
                Ok(common)
            }
        }
    }
}

fn parse(value: &Json, depth: usize) -> Result<DataTypeV2, MetadataError> {
    match value {
        Json::String(text) => parse_string(text).ok_or_else(|| MetadataError::unknown("data type", text)),
        Json::Array(_) if depth >= MAX_STRUCT_DEPTH => {
            Err(MetadataError::unsupported(format!("structured types nested deeper than {MAX_STRUCT_DEPTH} levels")))
        }
        Json::Array(fields) => {
            let fields = fields
                .iter()
                .enumerate()
                .map(|(index, field)| parse_field(field, index, depth).map_err(|error| error.within_index(index)))
                .collect::<Result<Vec<_>, _>>()?;
            let structured = DataTypeV2::Structured(fields);
            match structured.data_type() {
                Some(DataType::Struct(fields)) => check_fields(&fields)?,
                _ => return Err(MetadataError::unsupported("objects inside structured types")),
            }
            let data_type = structured.data_type();
            if data_type.as_ref().is_none_or(|data_type| data_type.parts() > MAX_SUB_ARRAY) {
                return Err(MetadataError::unsupported(format!("elements of more than {MAX_SUB_ARRAY} parts")));
            }
            let size = data_type.and_then(|data_type| data_type.fixed_size());
            if size.is_none_or(|size| size > MAX_ELEMENT_SIZE) {
                return Err(MetadataError::unsupported(format!("elements of more than {MAX_ELEMENT_SIZE} bytes")));
            }
            Ok(structured)
        }
        other => Err(MetadataError::unexpected("a type string or a list of fields", other)),
    }
}

/// A field: `[name, dtype]` or `[name, dtype, shape]`.
fn parse_field(value: &Json, index: usize, depth: usize) -> Result<FieldV2, MetadataError> {
    let (name, data_type, shape) = match value.as_array() {
        Some([Json::String(name), data_type]) => (name, data_type, None),
        Some([Json::String(name), data_type, shape]) => (name, data_type, Some(shape)),
        _ => {
            return Err(MetadataError::unexpected("a field: a name, a data type and perhaps a shape", value));
        }
    };
    let shape = match shape {
        None => Vec::new(),
        Some(length @ Json::Number(_)) => {
            vec![read::unsigned(length).map_err(|error| error.within_index(2))?]
        }
        Some(shape) => read::unsigned_list(shape).map_err(|error| error.within_index(2))?,
    };
    Ok(FieldV2 {
        // numpy leaves the names of the padding of aligned types empty, and reads them as this.
        name: if name.is_empty() { format!("f{index}") } else { name.clone() },
        data_type: parse(data_type, depth + 1).map_err(|error| error.within_index(1))?,
        shape,
    })
}

fn parse_string(text: &str) -> Option<DataTypeV2> {
    if let Some(named) = NAMED.iter().find(|data_type| data_type.name() == text) {
        return Some(DataTypeV2::Plain {
            data_type: named.clone(),
            endianness: named.is_byte_order_sensitive().then_some(Endianness::Little),
        });
    }
    let mut characters = text.chars();
    let endianness = match characters.next()? {
        '<' => Some(Endianness::Little),
        '>' => Some(Endianness::Big),
        '|' => None,
        _ => return None,
    };
    let letter = characters.next()?;
    let rest = characters.as_str();
    if letter == 'O' {
        // Old writers add the size of a pointer.
        return matches!(rest, "" | "4" | "8").then_some(DataTypeV2::Object);
    }
    let data_type = match (letter, rest) {
        ('M', _) => {
            let (unit, scale_factor) = time(rest)?;
            DataType::NumpyDateTime64 { unit, scale_factor }
        }
        ('m', _) => {
            let (unit, scale_factor) = time(rest)?;
            DataType::NumpyTimeDelta64 { unit, scale_factor }
        }
        ('S', _) => DataType::NullTerminatedBytes { length_bytes: length(rest, 1)? },
        ('U', _) => DataType::FixedLengthUtf32 { length_bytes: length(rest, 4)? },
        ('V', _) => DataType::Raw { bits: u64::from(length(rest, 1)?) * 8 },
        ('b', "1") => DataType::Bool,
        ('i', "1") => DataType::Int8,
        ('i', "2") => DataType::Int16,
        ('i', "4") => DataType::Int32,
        ('i', "8") => DataType::Int64,
        ('u', "1") => DataType::UInt8,
        ('u', "2") => DataType::UInt16,
        ('u', "4") => DataType::UInt32,
        ('u', "8") => DataType::UInt64,
        ('f', "2") => DataType::Float16,
        ('f', "4") => DataType::Float32,
        ('f', "8") => DataType::Float64,
        ('c', "8") => DataType::Complex64,
        ('c', "16") => DataType::Complex128,
        _ => return None,
    };
    // Some writers mark types of one byte with a byte order; it makes no difference there. A
    // missing one does where there are bytes to order.
    match (data_type.is_byte_order_sensitive(), endianness) {
        (false, _) => Some(DataTypeV2::Plain { data_type, endianness: None }),
        (true, Some(_)) => Some(DataTypeV2::Plain { data_type, endianness }),
        (true, None) => None,
    }
}

/// A number of characters, as bytes.
fn length(digits: &str, width: u32) -> Option<u32> {
    if !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let bytes = digits.parse::<u32>().ok()?.checked_mul(width)?;
    usize::try_from(bytes).is_ok_and(|bytes| bytes <= MAX_ELEMENT_SIZE).then_some(bytes)
}

/// What follows the letter of a time: `8`, `8[ns]`, `8[10ns]`.
fn time(text: &str) -> Option<(TimeUnit, u32)> {
    let rest = text.strip_prefix('8')?;
    if rest.is_empty() {
        return Some((TimeUnit::Generic, 1));
    }
    let inner = rest.strip_prefix('[')?.strip_suffix(']')?;
    let digits = inner.bytes().take_while(u8::is_ascii_digit).count();
    let (factor, unit) = inner.split_at_checked(digits)?;
    let factor = if factor.is_empty() { 1 } else { factor.parse().ok()? };
    (1..1 << 31).contains(&factor).then_some(())?;
    Some((TimeUnit::from_name(unit)?, factor))
}

/// The letter and what follows it.
fn type_code(data_type: &DataType) -> Option<String> {
    let simple = match data_type {
        DataType::Bool => "b1",
        DataType::Int8 => "i1",
        DataType::Int16 => "i2",
        DataType::Int32 => "i4",
        DataType::Int64 => "i8",
        DataType::UInt8 => "u1",
        DataType::UInt16 => "u2",
        DataType::UInt32 => "u4",
        DataType::UInt64 => "u8",
        DataType::Float16 => "f2",
        DataType::Float32 => "f4",
        DataType::Float64 => "f8",
        DataType::Complex64 | DataType::ComplexFloat32 => "c8",
        DataType::Complex128 | DataType::ComplexFloat64 => "c16",
        DataType::NullTerminatedBytes { length_bytes } => return Some(format!("S{length_bytes}")),
        DataType::FixedLengthUtf32 { length_bytes } => return Some(format!("U{}", length_bytes / 4)),
        DataType::Raw { bits } => return Some(format!("V{}", bits / 8)),
        DataType::NumpyDateTime64 { unit, scale_factor } => {
            return Some(format!("M8{}", time_code(*unit, *scale_factor)));
        }
        DataType::NumpyTimeDelta64 { unit, scale_factor } => {
            return Some(format!("m8{}", time_code(*unit, *scale_factor)));
        }
        _ => return None,
    };
    Some(simple.to_owned())
}

fn time_code(unit: TimeUnit, scale_factor: u32) -> String {
    match (unit, scale_factor) {
        (TimeUnit::Generic, 1) => String::new(),
        (unit, 1) => format!("[{}]", unit.name()),
        (unit, factor) => format!("[{factor}{}]", unit.name()),
    }
}

fn type_string(data_type: &DataType, endianness: Option<Endianness>) -> String {
    let Some(code) = type_code(data_type) else { return data_type.name() };
    let order = match endianness {
        None => '|',
        Some(Endianness::Little) => '<',
        Some(Endianness::Big) => '>',
    };
    format!("{order}{code}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<DataTypeV2, MetadataError> {
        Json::parse(text.as_bytes()).and_then(|value| DataTypeV2::parse(&value))
    }

    #[test]
    fn types_read_back() {
        for text in [
            r#""|b1""#,
            r#""|i1""#,
            r#""<i8""#,
            r#"">u2""#,
            r#""<f2""#,
            r#"">c16""#,
            r#""|S0""#,
            r#""|S12""#,
            r#""<U5""#,
            r#"">U5""#,
            r#""|V16""#,
            r#""<M8[ns]""#,
            r#"">m8[10us]""#,
            r#""<M8""#,
            r#""|O""#,
            r#""bfloat16""#,
            r#""float8_e5m2""#,
            r#"[["a","<i4"],["b","|S3",[2,2]],["c",[["d",">f8"]]]]"#,
        ] {
            assert_eq!(parse(text).map(|t| t.to_json().to_text()).as_deref(), Ok(text));
        }
    }

    #[test]
    fn a_byte_order_on_one_byte_is_ignored() {
        assert_eq!(parse("\"<i1\""), parse("\"|i1\""));
        assert_eq!(parse("\"<b1\""), parse("\"|b1\""));
        assert_eq!(parse("\"<S4\""), parse("\"|S4\""));
        assert_eq!(parse("\"|O8\""), Ok(DataTypeV2::Object));
    }

    #[test]
    fn padding_gets_the_name_numpy_gives_it() {
        let aligned = parse(r#"[["a","|i1"],["","|V3"],["b","<i4"]]"#);
        let Ok(Some(DataType::Struct(fields))) = aligned.map(|t| t.data_type()) else { panic!("no struct") };
        let names: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
        assert_eq!(names, ["a", "f1", "b"]);
    }

    #[test]
    fn fields_of_both_byte_orders_have_none_in_common() {
        let mixed = parse(r#"[["a","<i4"],["b",">i4"]]"#);
        assert!(mixed.is_ok_and(|t| t.endianness().is_err()));
        let single = parse(r#"[["a","|i1"],["b",[["c",">i4"]]]]"#);
        assert_eq!(single.and_then(|t| t.endianness()), Ok(Some(Endianness::Big)));
    }

    #[test]
    fn malformed_types_are_refused() {
        for text in [
            "1",
            "\"\"",
            "\"<\"",
            "\"i4\"",
            "\"=i4\"",
            "\"|i4\"",
            "\"<i3\"",
            "\"<f16\"",
            "\"<M8[]\"",
            "\"<M8[x]\"",
            "\"<M8[0s]\"",
            "\"<U4294967295\"",
            "\"|S-1\"",
            "\"|S+1\"",
            "\"<é4\"",
            "[]",
            "[[\"a\"]]",
            r#"[["a","|O"]]"#,
            r#"[["a","<i4"],["a","<i4"]]"#,
            r#"[["a","<i4",[4294967295]]]"#,
            r#"[["a",[["b",[["c","<i2"],["d","|u1"]],[1000]]],[2000]]]"#,
            r#"[["a","|V60000000"],["b","|V60000000"]]"#,
            r#"[[["t","a"],"<i4"]]"#,
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
        let deep = "[[\"a\",".repeat(100) + "\"<i4\"" + &"]]".repeat(100);
        assert!(parse(&deep).is_err());
    }
}

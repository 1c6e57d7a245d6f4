//! Data types: the core ones and those of the registry.

mod json;
mod layout;

pub(crate) use json::{MAX_STRUCT_DEPTH, MAX_SUB_ARRAY, check_fields};
pub(crate) use layout::count as sub_array_len;
pub use layout::{ElementSize, SwapRun};

/// The most bytes one element of a fixed size may take: 64 MiB. A fill value takes as much memory
/// as one element, so this bounds what a few bytes of metadata can make a reader allocate.
pub const MAX_ELEMENT_SIZE: usize = 1 << 26;

/// A data type.
///
/// Elements in memory are in the byte order of the machine. Types narrower than a byte take one
/// byte each, the value in its low bits: signed integers are sign extended, the others have zeros
/// above.
///
/// Specification: core 3.1, "Data types", and the registry of extensions.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DataType {
    /// `bool`: one byte, 0 or 1.
    Bool,
    /// `int2`
    Int2,
    /// `int4`
    Int4,
    /// `int8`
    Int8,
    /// `int16`
    Int16,
    /// `int32`
    Int32,
    /// `int64`
    Int64,
    /// `uint2`
    UInt2,
    /// `uint4`
    UInt4,
    /// `uint8`
    UInt8,
    /// `uint16`
    UInt16,
    /// `uint32`
    UInt32,
    /// `uint64`
    UInt64,
    /// `float4_e2m1fn`
    Float4E2M1FN,
    /// `float6_e2m3fn`
    Float6E2M3FN,
    /// `float6_e3m2fn`
    Float6E3M2FN,
    /// `float8_e3m4`
    Float8E3M4,
    /// `float8_e4m3`
    Float8E4M3,
    /// `float8_e4m3fn`: not registered; tensorstore writes it.
    Float8E4M3FN,
    /// `float8_e4m3b11fnuz`
    Float8E4M3B11FNUZ,
    /// `float8_e4m3fnuz`
    Float8E4M3FNUZ,
    /// `float8_e5m2`
    Float8E5M2,
    /// `float8_e5m2fnuz`
    Float8E5M2FNUZ,
    /// `float8_e8m0fnu`
    Float8E8M0FNU,
    /// `bfloat16`
    BFloat16,
    /// `float16`
    Float16,
    /// `float32`
    Float32,
    /// `float64`
    Float64,
    /// `complex64`: two `float32`
    Complex64,
    /// `complex128`: two `float64`
    Complex128,
    /// `complex_bfloat16`
    ComplexBFloat16,
    /// `complex_float16`
    ComplexFloat16,
    /// `complex_float32`: another name for the layout of `complex64`
    ComplexFloat32,
    /// `complex_float64`: another name for the layout of `complex128`
    ComplexFloat64,
    /// `complex_float4_e2m1fn`: in memory two bytes
    ComplexFloat4E2M1FN,
    /// `complex_float6_e2m3fn`: in memory two bytes
    ComplexFloat6E2M3FN,
    /// `complex_float6_e3m2fn`: in memory two bytes
    ComplexFloat6E3M2FN,
    /// `complex_float8_e3m4`
    ComplexFloat8E3M4,
    /// `complex_float8_e4m3`
    ComplexFloat8E4M3,
    /// `complex_float8_e4m3b11fnuz`
    ComplexFloat8E4M3B11FNUZ,
    /// `complex_float8_e4m3fnuz`
    ComplexFloat8E4M3FNUZ,
    /// `complex_float8_e5m2`
    ComplexFloat8E5M2,
    /// `complex_float8_e5m2fnuz`
    ComplexFloat8E5M2FNUZ,
    /// `complex_float8_e8m0fnu`
    ComplexFloat8E8M0FNU,
    /// `r<N>`: opaque bytes. Also read from zarr-python's `raw_bytes`.
    Raw {
        /// The size in bits, a multiple of 8.
        bits: u64,
    },
    /// `fixed_length_utf32`: code points of four bytes each, padded with zeros at the end.
    FixedLengthUtf32 {
        /// The size in bytes, a multiple of 4.
        length_bytes: u32,
    },
    /// `null_terminated_bytes`: bytes padded with zeros at the end.
    NullTerminatedBytes {
        /// The size in bytes.
        length_bytes: u32,
    },
    /// `string`: UTF-8 of any length.
    String,
    /// `bytes`: bytes of any length. Also read from `variable_length_bytes` and `binary`.
    Bytes,
    /// `numpy.datetime64`: a signed 64-bit count since the Unix epoch; the least value is "not a
    /// time".
    NumpyDateTime64 {
        /// What is counted.
        unit: TimeUnit,
        /// How many units one step is; at least 1.
        scale_factor: u32,
    },
    /// `numpy.timedelta64`: a signed 64-bit count; the least value is "not a time".
    NumpyTimeDelta64 {
        /// What is counted.
        unit: TimeUnit,
        /// How many units one step is; at least 1.
        scale_factor: u32,
    },
    /// `struct`: named fields of fixed size, packed. Also read from `structured`.
    Struct(Vec<StructField>),
    /// A fixed-size array inside a `struct`, as Zarr v2 has it. Version 3 has no name for it: there
    /// it is written as a `struct` of the same bytes, with fields `0`, `1`, ..
    SubArray {
        /// The type of the elements, of fixed size.
        element: Box<DataType>,
        /// The lengths of the dimensions, in C order.
        shape: Vec<u64>,
    },
}

/// A field of [`DataType::Struct`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct StructField {
    /// The name, unique within its struct.
    pub name: String,
    /// The type, of fixed size.
    pub data_type: DataType,
}

/// The unit of [`DataType::NumpyDateTime64`] and [`DataType::NumpyTimeDelta64`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TimeUnit {
    /// `Y`
    Year,
    /// `M`
    Month,
    /// `W`
    Week,
    /// `D`
    Day,
    /// `h`
    Hour,
    /// `m`
    Minute,
    /// `s`
    Second,
    /// `ms`
    Millisecond,
    /// `us`, also read as `μs`
    Microsecond,
    /// `ns`
    Nanosecond,
    /// `ps`
    Picosecond,
    /// `fs`
    Femtosecond,
    /// `as`
    Attosecond,
    /// `generic`: unspecified.
    Generic,
}

impl TimeUnit {
    const NAMES: [(Self, &'static str); 14] = [
        (Self::Year, "Y"),
        (Self::Month, "M"),
        (Self::Week, "W"),
        (Self::Day, "D"),
        (Self::Hour, "h"),
        (Self::Minute, "m"),
        (Self::Second, "s"),
        (Self::Millisecond, "ms"),
        (Self::Microsecond, "us"),
        (Self::Nanosecond, "ns"),
        (Self::Picosecond, "ps"),
        (Self::Femtosecond, "fs"),
        (Self::Attosecond, "as"),
        (Self::Generic, "generic"),
    ];

    /// The name in metadata.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(unit, _)| *unit == self).map_or("generic", |(_, name)| name)
    }

    /// The unit with a name.
    pub fn from_name(name: &str) -> Option<Self> {
        // The registry allows the micro sign and the Greek letter for microseconds.
        let name = if matches!(name, "\u{b5}s" | "\u{3bc}s") { "us" } else { name };
        Self::NAMES.iter().find(|(_, known)| *known == name).map(|(unit, _)| *unit)
    }
}

impl std::fmt::Display for DataType {
    /// The name, or the JSON text of a type that has a configuration.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.to_json() {
            crate::Json::String(name) => f.write_str(&name),
            other => write!(f, "{other}"),
        }
    }
}

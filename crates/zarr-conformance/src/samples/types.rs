use zarr_codec_api::ArrayRepresentation;
use zarr_meta::{DataType, FillValue, StructField, TimeUnit};

/// Every data type of `zarr-meta`, those with parameters with some. `complex_float32` and `complex_float64`, other names for `complex64` and
/// `complex128`, are among them.
pub fn data_types() -> Vec<DataType> {
    let field = |name: &str, data_type| StructField { name: name.to_owned(), data_type };
    vec![
        DataType::Bool,
        DataType::Int2,
        DataType::Int4,
        DataType::Int8,
        DataType::Int16,
        DataType::Int32,
        DataType::Int64,
        DataType::UInt2,
        DataType::UInt4,
        DataType::UInt8,
        DataType::UInt16,
        DataType::UInt32,
        DataType::UInt64,
        DataType::Float4E2M1FN,
        DataType::Float6E2M3FN,
        DataType::Float6E3M2FN,
        DataType::Float8E3M4,
        DataType::Float8E4M3,
        DataType::Float8E4M3FN,
        DataType::Float8E4M3B11FNUZ,
        DataType::Float8E4M3FNUZ,
        DataType::Float8E5M2,
        DataType::Float8E5M2FNUZ,
        DataType::Float8E8M0FNU,
        DataType::BFloat16,
        DataType::Float16,
        DataType::Float32,
        DataType::Float64,
        DataType::Complex64,
        DataType::Complex128,
        DataType::ComplexBFloat16,
        DataType::ComplexFloat16,
        DataType::ComplexFloat32,
        DataType::ComplexFloat64,
        DataType::ComplexFloat4E2M1FN,
        DataType::ComplexFloat6E2M3FN,
        DataType::ComplexFloat6E3M2FN,
        DataType::ComplexFloat8E3M4,
        DataType::ComplexFloat8E4M3,
        DataType::ComplexFloat8E4M3B11FNUZ,
        DataType::ComplexFloat8E4M3FNUZ,
        DataType::ComplexFloat8E5M2,
        DataType::ComplexFloat8E5M2FNUZ,
        DataType::ComplexFloat8E8M0FNU,
        DataType::Raw { bits: 8 },
        DataType::Raw { bits: 24 },
        DataType::FixedLengthUtf32 { length_bytes: 12 },
        DataType::NullTerminatedBytes { length_bytes: 5 },
        DataType::String,
        DataType::Bytes,
        DataType::NumpyDateTime64 { unit: TimeUnit::Nanosecond, scale_factor: 1 },
        DataType::NumpyTimeDelta64 { unit: TimeUnit::Second, scale_factor: 10 },
        DataType::Struct(vec![field("flag", DataType::Bool), field("value", DataType::Float32), field("count", DataType::Int16)]),
    ]
}

/// Shapes at the edges of what there is: no axis, no element, one element, lengths that are no powers of two.
pub fn shapes() -> Vec<Vec<u64>> {
    vec![vec![], vec![0], vec![3, 0, 2], vec![1], vec![1, 1, 1], vec![5, 7], vec![3, 1, 11]]
}

/// Every data type in every shape, with the fill value that is its default.
pub fn representations() -> Vec<ArrayRepresentation> {
    let of = |data_type: DataType| {
        shapes().into_iter().map(move |shape| ArrayRepresentation {
            fill_value: FillValue::default_for(&data_type),
            data_type: data_type.clone(),
            shape,
        })
    };
    data_types().into_iter().flat_map(of).collect()
}

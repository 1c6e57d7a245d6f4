use zarr_meta::DataType;

use crate::DlpackError;
use crate::abi::{DLDataType, code};

/// A data type as DLPack says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ElementType {
    /// Code, bits and lanes.
    pub raw: DLDataType,
    /// Whether elements narrower than a byte take a byte each, as ours do ([`crate::abi::FLAG_IS_SUBBYTE_TYPE_PADDED`]).
    pub padded: bool,
}

/// Every data type that both sides name. `complex_float32` and `complex_float64` are other names of types in the list.
const TYPES: [(DataType, u8, u8); 32] = [
    (DataType::Bool, code::BOOL, 8),
    (DataType::Int2, code::INT, 2),
    (DataType::Int4, code::INT, 4),
    (DataType::Int8, code::INT, 8),
    (DataType::Int16, code::INT, 16),
    (DataType::Int32, code::INT, 32),
    (DataType::Int64, code::INT, 64),
    (DataType::UInt2, code::UINT, 2),
    (DataType::UInt4, code::UINT, 4),
    (DataType::UInt8, code::UINT, 8),
    (DataType::UInt16, code::UINT, 16),
    (DataType::UInt32, code::UINT, 32),
    (DataType::UInt64, code::UINT, 64),
    (DataType::Float16, code::FLOAT, 16),
    (DataType::Float32, code::FLOAT, 32),
    (DataType::Float64, code::FLOAT, 64),
    (DataType::BFloat16, code::BFLOAT, 16),
    (DataType::ComplexFloat16, code::COMPLEX, 32),
    (DataType::Complex64, code::COMPLEX, 64),
    (DataType::Complex128, code::COMPLEX, 128),
    (DataType::Float8E3M4, code::FLOAT8_E3M4, 8),
    (DataType::Float8E4M3, code::FLOAT8_E4M3, 8),
    (DataType::Float8E4M3B11FNUZ, code::FLOAT8_E4M3B11FNUZ, 8),
    (DataType::Float8E4M3FN, code::FLOAT8_E4M3FN, 8),
    (DataType::Float8E4M3FNUZ, code::FLOAT8_E4M3FNUZ, 8),
    (DataType::Float8E5M2, code::FLOAT8_E5M2, 8),
    (DataType::Float8E5M2FNUZ, code::FLOAT8_E5M2FNUZ, 8),
    (DataType::Float8E8M0FNU, code::FLOAT8_E8M0FNU, 8),
    (DataType::Float6E2M3FN, code::FLOAT6_E2M3FN, 6),
    (DataType::Float6E3M2FN, code::FLOAT6_E3M2FN, 6),
    (DataType::Float4E2M1FN, code::FLOAT4_E2M1FN, 4),
    // Last, so that the shorter name is found for the code.
    (DataType::ComplexFloat32, code::COMPLEX, 64),
];

impl ElementType {
    /// How DLPack says a Zarr data type.
    ///
    /// # Errors
    /// [`DlpackError::DataType`] when it cannot.
    pub fn of(data_type: &DataType) -> Result<Self, DlpackError> {
        let same = match data_type {
            DataType::ComplexFloat64 => &DataType::Complex128,
            other => other,
        };
        let found = TYPES.iter().find(|(known, ..)| known == same);
        let &(_, code, bits) = found.ok_or_else(|| DlpackError::DataType { data_type: data_type.to_string() })?;
        Ok(Self { raw: DLDataType { code, bits, lanes: 1 }, padded: bits < 8 })
    }

    /// The Zarr data type with the same elements in memory.
    ///
    /// # Errors
    /// [`DlpackError::ElementType`] when there is none: vectors, handles, packed elements narrower than a byte, other widths.
    pub fn to_data_type(self) -> Result<DataType, DlpackError> {
        let DLDataType { code, bits, lanes } = self.raw;
        let fail = |reason| DlpackError::ElementType { code, bits, lanes, reason };
        if lanes != 1 {
            return Err(fail("elements are not vectors in Zarr"));
        }
        let found = TYPES.iter().find(|(_, known, width)| (*known, *width) == (code, bits));
        let (data_type, ..) = found.ok_or_else(|| fail("Zarr has no such data type"))?;
        if bits < 8 && !self.padded {
            return Err(fail("the elements are packed, and buffers here have a byte for each"));
        }
        Ok(data_type.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_goes_both_ways_with_its_size() {
        for (data_type, _, bits) in TYPES {
            let element = ElementType::of(&data_type).unwrap();
            assert_eq!(data_type.fixed_size(), Some(usize::from(bits.div_ceil(8))), "{data_type}");
            let back = element.to_data_type().unwrap();
            assert!(back == data_type || (data_type == DataType::ComplexFloat32 && back == DataType::Complex64));
        }
        assert_eq!(ElementType::of(&DataType::ComplexFloat64).unwrap().raw.bits, 128);
    }

    #[test]
    fn what_dlpack_cannot_say_is_an_error_with_the_name() {
        let unnamed = [
            DataType::String,
            DataType::Bytes,
            DataType::Raw { bits: 16 },
            DataType::ComplexBFloat16,
            DataType::ComplexFloat8E5M2,
            DataType::FixedLengthUtf32 { length_bytes: 8 },
            DataType::NullTerminatedBytes { length_bytes: 3 },
            DataType::NumpyDateTime64 { unit: zarr_meta::TimeUnit::Second, scale_factor: 1 },
            DataType::Struct(Vec::new()),
        ];
        for data_type in unnamed {
            let error = ElementType::of(&data_type).unwrap_err();
            assert!(matches!(&error, DlpackError::DataType { data_type: name } if *name == data_type.to_string()), "{error}");
        }
    }

    #[test]
    fn foreign_types_that_zarr_lacks_are_errors() {
        let element = |code, bits, lanes| ElementType { raw: DLDataType { code, bits, lanes }, padded: true }.to_data_type();
        assert!(element(code::FLOAT, 32, 4).is_err());
        assert!(element(code::FLOAT, 32, 0).is_err());
        assert!(element(code::OPAQUE_HANDLE, 64, 1).is_err());
        assert!(element(code::FLOAT, 80, 1).is_err());
        assert!(element(code::FLOAT8_E5M2, 4, 1).is_err());
        assert!(element(code::BOOL, 1, 1).is_err());
        assert!(element(200, 8, 1).is_err());
        let packed = ElementType { raw: DLDataType { code: code::INT, bits: 4, lanes: 1 }, padded: false };
        assert!(packed.to_data_type().is_err());
    }
}

//! What array→array codecs have in common that keep the shape and were bound to a data type when they were made.

use std::fmt;

use zarr_codec_api::{ArrayRepresentation, ArrayToArray, CodecError, Representation, SimpleCodec};
use zarr_meta::{DataType, Extension, FillValue};

use crate::number::Numpy;

/// An array→array codec that keeps the shape.
pub(crate) trait Filter: fmt::Debug + Send + Sync + 'static {
    /// The data type of the encoded elements.
    fn encoded_type(&self) -> &DataType;

    /// Encodes any number of elements; `encoded` holds exactly as many.
    fn encode(&self, decoded: &[u8], encoded: &mut [u8]) -> Result<(), CodecError>;

    /// Decodes any number of elements; `decoded` holds exactly as many.
    fn decode(&self, encoded: &[u8], decoded: &mut [u8]) -> Result<(), CodecError>;

    /// Encodes the fill value, after checking what else the codec's specification asks of it.
    fn encode_fill(&self, decoded: &[u8], encoded: &mut [u8]) -> Result<(), CodecError> {
        self.encode(decoded, encoded)
    }

    /// Whether each element depends only on itself.
    fn is_elementwise(&self) -> bool {
        true
    }

    /// Whether decoding changes nothing.
    fn decodes_verbatim(&self) -> bool {
        false
    }
}

/// Makes a codec of a filter.
pub(crate) fn codec(filter: impl Filter) -> SimpleCodec {
    SimpleCodec::array_to_array(Bound(filter))
}

/// What `codec` is to encode, as an array.
pub(crate) fn array<'a>(codec: &Extension, decoded: &'a Representation) -> Result<&'a ArrayRepresentation, CodecError> {
    decoded.as_array().ok_or_else(|| CodecError::metadata(&codec.name, "takes an array, and stands behind the array to bytes codec"))
}

/// The refusal of a data type.
pub(crate) fn unsupported(codec: &Extension, data_type: &DataType) -> CodecError {
    CodecError::unsupported(&codec.name, format!("data type {data_type} is not supported"))
}

/// The numpy types in the configuration of a numcodecs codec: that of the decoded elements, and that of the encoded ones.
///
/// As numcodecs views the bytes it is given as `dtype`, that may be any type of the size of the array's elements. A missing `dtype` is the
/// array's, a missing `astype` is `dtype`.
pub(crate) fn numpy_types(
    codec: &Extension,
    decoded: &Representation,
    dtype: Option<&str>,
    astype: Option<&str>,
) -> Result<(Numpy, Numpy), CodecError> {
    let parse =
        |text: &str| Numpy::parse(text).ok_or_else(|| CodecError::unsupported(&codec.name, format!("{text:?} is no number type of numpy")));
    let data_type = &array(codec, decoded)?.data_type;
    let decoded = match dtype {
        None => Numpy::of(data_type.clone()).ok_or_else(|| unsupported(codec, data_type))?,
        Some(text) => Numpy { data_type: data_type.clone(), ..parse(text)? },
    };
    if data_type.fixed_size() != Some(decoded.size()) {
        let problem = format!("elements of type {data_type} are no elements of {} bytes, as dtype has it", decoded.size());
        return Err(CodecError::metadata(&codec.name, problem));
    }
    let encoded = match astype {
        None => decoded.clone(),
        Some(text) => parse(text)?,
    };
    Ok((decoded, encoded))
}

#[derive(Debug)]
struct Bound<T>(T);

impl<T: Filter> ArrayToArray for Bound<T> {
    fn encoded_representation(&self, decoded: &ArrayRepresentation) -> Result<ArrayRepresentation, CodecError> {
        let data_type = self.0.encoded_type();
        let wrong =
            |error: zarr_meta::MetadataError| CodecError::metadata("fill value", "it does not fit the data type").with_source(error);
        let mut fill_value = vec![0; data_type.fixed_size().unwrap_or(0)];
        decoded.fill_value.check(&decoded.data_type).map_err(wrong)?;
        self.0.encode_fill(decoded.fill_value.as_bytes(), &mut fill_value)?;
        let fill_value = FillValue::from_bytes(fill_value, data_type).map_err(wrong)?;
        Ok(ArrayRepresentation { data_type: data_type.clone(), shape: decoded.shape.clone(), fill_value })
    }

    fn decode(&self, _: &ArrayRepresentation, encoded: &[u8], decoded: &mut [u8]) -> Result<(), CodecError> {
        self.0.decode(encoded, decoded)
    }

    fn encode(&self, _: &ArrayRepresentation, decoded: &[u8], encoded: &mut [u8]) -> Result<(), CodecError> {
        self.0.encode(decoded, encoded)
    }

    fn is_elementwise(&self) -> bool {
        self.0.is_elementwise()
    }

    fn decodes_verbatim(&self) -> bool {
        self.0.decodes_verbatim()
    }
}

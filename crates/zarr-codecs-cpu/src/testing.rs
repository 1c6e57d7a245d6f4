//! What the tests of the codecs have in common.

use zarr_codec_api::{ArrayRepresentation, CodecError, Limits, Representation, SimpleCodec, VariableData};
use zarr_meta::{DataType, Extension, FillValue, Json};

/// A codec that takes arrays, with the array that it takes.
pub(crate) struct ArrayCodec {
    name: String,
    codec: SimpleCodec,
    decoded: ArrayRepresentation,
}

impl ArrayCodec {
    /// The codec, which must exist.
    pub(crate) fn new(name: &str, configuration: &str, data_type: &DataType, shape: &[u64]) -> Self {
        Self::with_fill(name, configuration, data_type, shape, FillValue::default_for(data_type)).unwrap()
    }

    /// The codec, or what is wrong with its configuration.
    pub(crate) fn with_fill(
        name: &str,
        configuration: &str,
        data_type: &DataType,
        shape: &[u64],
        fill_value: FillValue,
    ) -> Result<Self, CodecError> {
        let decoded = ArrayRepresentation { data_type: data_type.clone(), shape: shape.to_vec(), fill_value };
        let configuration = Json::parse(configuration.as_bytes()).unwrap().as_object().unwrap().clone();
        let extension = Extension::with_configuration(name, configuration);
        let codec = crate::provider().codec(&extension, &Representation::Array(decoded.clone()))?.unwrap();
        Ok(Self { name: name.to_owned(), codec, decoded })
    }

    /// What the codec makes of the array.
    pub(crate) fn encoded(&self) -> Result<Representation, CodecError> {
        self.codec.encoded_representation(&self.name, &Representation::Array(self.decoded.clone()), &Limits::default())
    }

    pub(crate) fn encoded_array(&self) -> ArrayRepresentation {
        self.encoded().unwrap().as_array().unwrap().clone()
    }

    pub(crate) fn encode(&self, decoded: &[u8]) -> Result<Vec<u8>, CodecError> {
        match &self.codec {
            SimpleCodec::ArrayToArray(codec) => {
                let mut encoded = vec![0xa5; self.encoded_array().fixed_len(&self.name)?];
                codec.encode(&self.decoded, decoded, &mut encoded).map(|()| encoded)
            }
            SimpleCodec::ArrayToBytes(codec) => {
                let mut encoded = Vec::new();
                codec.encode(&self.decoded, decoded, &mut encoded).map(|()| encoded)
            }
            _ => panic!("takes bytes"),
        }
    }

    pub(crate) fn decode(&self, encoded: &[u8]) -> Result<Vec<u8>, CodecError> {
        let mut decoded = vec![0xa5; self.decoded.fixed_len(&self.name)?];
        match &self.codec {
            SimpleCodec::ArrayToArray(codec) => {
                assert_eq!(encoded.len(), self.encoded_array().fixed_len(&self.name)?);
                codec.decode(&self.decoded, encoded, &mut decoded)
            }
            SimpleCodec::ArrayToBytes(codec) => codec.decode(&self.decoded, encoded, &mut decoded),
            _ => panic!("takes bytes"),
        }
        .map(|()| decoded)
    }

    pub(crate) fn encode_variable(&self, decoded: &VariableData) -> Result<Vec<u8>, CodecError> {
        let SimpleCodec::ArrayToBytes(codec) = &self.codec else { panic!("is no array to bytes codec") };
        let mut encoded = Vec::new();
        codec.encode_variable(&self.decoded, decoded, &mut encoded).map(|()| encoded)
    }

    pub(crate) fn decode_variable(&self, encoded: &[u8], limit: usize) -> Result<VariableData, CodecError> {
        let SimpleCodec::ArrayToBytes(codec) = &self.codec else { panic!("is no array to bytes codec") };
        let mut decoded = VariableData::new();
        codec.decode_variable(&self.decoded, encoded, &mut decoded, limit).map(|()| decoded)
    }
}

/// The bytes of numbers, as they are in memory.
pub(crate) fn bytes_of<T: Copy, const N: usize>(values: &[T], to_ne_bytes: impl Fn(T) -> [u8; N]) -> Vec<u8> {
    values.iter().flat_map(|value| to_ne_bytes(*value)).collect()
}

/// Tries every truncation and every flipped bit of `bytes`.
pub(crate) fn bytes_never_panic(bytes: &[u8], mut decode: impl FnMut(&[u8])) {
    for end in 0..bytes.len() {
        decode(&bytes[..end]);
    }
    for bit in 0..bytes.len() * 8 {
        let mut flipped = bytes.to_vec();
        flipped[bit / 8] ^= 1 << (bit % 8);
        decode(&flipped);
    }
}

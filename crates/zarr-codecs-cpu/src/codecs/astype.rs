//! `numcodecs.astype`: elements stored as another type.
//!
//! * Specification: the filter [`astype`](https://numcodecs.readthedocs.io/en/stable/filter/astype.html) of numcodecs, in version 2 by that
//!   id.
//! * Configuration: `encode_dtype` and `decode_dtype`, numpy types of the stored and of the decoded elements; the latter defaults to the
//!   array's data type.
//! * Data types: booleans, integers of 8 to 64 bits, `float16`, `float32`, `float64`, `complex64`, `complex128`; times as the integers they
//!   are.
//!
//! Both ways elements are converted as numpy 2 does without checks: integers wrap around, floating point numbers lose their fraction or are
//! rounded to the nearest, ties to even; complex numbers lose their imaginary part. Where C leaves the result undefined (NaN, or too large
//! for the integer) it is what numpy gives on x86-64. The byte order in the types is left out: that of the stored bytes is the `bytes`
//! codec's.

use serde::Deserialize;
use zarr_codec_api::{CodecError, HostProvider};
use zarr_meta::DataType;

use crate::config;
use crate::filter::{self, Filter};
use crate::number::{Numpy, cast};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    encode_dtype: String,
    decode_dtype: Option<String>,
}

pub(crate) fn register(provider: HostProvider) -> HostProvider {
    provider.with("numcodecs.astype", |codec, decoded| {
        let config: Config = config::read(codec)?;
        let (decoded, encoded) = filter::numpy_types(codec, decoded, config.decode_dtype.as_deref(), Some(&config.encode_dtype))?;
        Ok(filter::codec(AsType { decoded, encoded }))
    })
}

#[derive(Debug)]
struct AsType {
    decoded: Numpy,
    encoded: Numpy,
}

impl Filter for AsType {
    fn encoded_type(&self) -> &DataType {
        &self.encoded.data_type
    }

    fn encode(&self, decoded: &[u8], encoded: &mut [u8]) -> Result<(), CodecError> {
        cast(&self.decoded, decoded, &self.encoded, encoded);
        Ok(())
    }

    fn decode(&self, encoded: &[u8], decoded: &mut [u8]) -> Result<(), CodecError> {
        cast(&self.encoded, encoded, &self.decoded, decoded);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use zarr_meta::FillValue;

    use super::*;
    use crate::testing::{ArrayCodec, bytes_of};

    #[test]
    fn elements_and_the_fill_value_are_converted() {
        let fill = FillValue::from_bytes(7i16.to_ne_bytes(), &DataType::Int16).unwrap();
        let configuration = r#"{"encode_dtype": "|i1", "decode_dtype": ">i2"}"#;
        let codec = ArrayCodec::with_fill("numcodecs.astype", configuration, &DataType::Int16, &[3], fill).unwrap();
        assert_eq!(codec.encoded_array().data_type, DataType::Int8);
        assert_eq!(codec.encoded_array().fill_value.as_bytes(), [7]);
        assert_eq!(codec.encode(&bytes_of(&[1i16, -2, 300], i16::to_ne_bytes)).unwrap(), [1, 254, 44]);
        assert_eq!(codec.decode(&[1, 254, 44]).unwrap(), bytes_of(&[1i16, -2, 44], i16::to_ne_bytes));
    }

    #[test]
    fn types_must_have_the_size_of_the_elements() {
        for (configuration, data_type) in [
            (r#"{"encode_dtype": "<i2", "decode_dtype": "<i2"}"#, DataType::Int32),
            (r#"{"encode_dtype": "<U2"}"#, DataType::Int32),
            (r#"{"encode_dtype": "<i2"}"#, DataType::Int4),
            (r#"{"encode_dtype": "<i2"}"#, DataType::String),
            (r#"{"decode_dtype": "<i4"}"#, DataType::Int32),
        ] {
            let fill = FillValue::default_for(&data_type);
            assert!(ArrayCodec::with_fill("numcodecs.astype", configuration, &data_type, &[3], fill).is_err(), "{configuration}");
        }
    }
}

//! `numcodecs.vlen-array`: one-dimensional arrays of any length.
//!
//! * Specification: the filter `vlen-array` of numcodecs (version 2); in version 3 only zarrs writes it, by this name.
//! * Configuration: `dtype`, the numpy type of the items (optional).
//! * Data type: `bytes`. An element is the bytes of its items, in the byte order of `dtype`.
//!
//! With a `dtype`, an element whose length is no multiple of the item's size is an error. Counts and bytes behind the last element: as in
//! [`super::vlen_utf8`].

use serde::Deserialize;
use zarr_codec_api::{CodecError, HostProvider, SimpleCodec};
use zarr_meta::DataType;

use super::vlen::Vlen;
use crate::config;
use crate::number::Numpy;

const NAME: &str = "numcodecs.vlen-array";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    dtype: Option<String>,
}

pub(crate) fn register(provider: HostProvider) -> HostProvider {
    provider.with_names(&[NAME], |codec, _| {
        let config: Config = config::read(codec)?;
        let size = match &config.dtype {
            None => 1,
            Some(dtype) => {
                Numpy::parse(dtype).ok_or_else(|| CodecError::metadata(NAME, format!("{dtype:?} is no number type of numpy")))?.size()
            }
        };
        Ok(SimpleCodec::array_to_bytes(Vlen::new(NAME, DataType::Bytes, size)))
    })
}

#[cfg(test)]
mod tests {
    use zarr_codec_api::VariableData;

    use super::*;
    use crate::testing::ArrayCodec;

    #[test]
    fn as_numcodecs_writes_it() {
        let codec = ArrayCodec::new(NAME, r#"{"dtype": ">i2"}"#, &DataType::Bytes, &[2]);
        let encoded = b"\x02\0\0\0\x04\0\0\0\0\x01\0\x02\x02\0\0\0\0\x03";
        let elements: VariableData = [&b"\0\x01\0\x02"[..], b"\0\x03"].into_iter().collect();
        assert_eq!(codec.decode_variable(encoded, 6).unwrap(), elements);
        assert_eq!(codec.encode_variable(&elements).unwrap(), encoded);
    }

    #[test]
    fn items_are_whole() {
        let codec = ArrayCodec::new(NAME, r#"{"dtype": "<i2"}"#, &DataType::Bytes, &[1]);
        assert!(codec.decode_variable(b"\x01\0\0\0\x01\0\0\0\x01", 6).is_err());
        let odd: VariableData = [b"x"].into_iter().collect();
        assert!(codec.encode_variable(&odd).is_err());
    }
}

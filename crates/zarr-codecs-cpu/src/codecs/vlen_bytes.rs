//! `vlen-bytes`: byte strings of any length.
//!
//! * Specification: [zarr-extensions, vlen-bytes](https://github.com/zarr-developers/zarr-extensions/tree/main/codecs/vlen-bytes); version
//!   2: the filter `vlen-bytes` of numcodecs.
//! * Configuration: none.
//! * Data type: `bytes`.
//!
//! Counts and bytes behind the last element: as in [`super::vlen_utf8`].

use zarr_codec_api::{HostProvider, SimpleCodec};
use zarr_meta::DataType;

use super::vlen::Vlen;
use crate::config::{self, NoConfig};

const NAME: &str = "vlen-bytes";

pub(crate) fn register(provider: HostProvider) -> HostProvider {
    provider.with_names(&[NAME, "numcodecs.vlen-bytes"], |codec, _| {
        let NoConfig {} = config::read(codec)?;
        Ok(SimpleCodec::array_to_bytes(Vlen::new(NAME, DataType::Bytes, 1)))
    })
}

#[cfg(test)]
mod tests {
    use zarr_codec_api::VariableData;

    use super::*;
    use crate::testing::ArrayCodec;

    #[test]
    fn as_numcodecs_writes_it() {
        let codec = ArrayCodec::new(NAME, "{}", &DataType::Bytes, &[3]);
        let encoded = b"\x03\0\0\0\0\0\0\0\x02\0\0\0x\xff\0\0\0\0";
        let elements: VariableData = [&b""[..], b"x\xff", b""].into_iter().collect();
        assert_eq!(codec.decode_variable(encoded, 2).unwrap(), elements);
        assert_eq!(codec.encode_variable(&elements).unwrap(), encoded);
    }

    #[test]
    fn strings_are_refused() {
        assert!(ArrayCodec::new(NAME, "{}", &DataType::String, &[1]).encoded().is_err());
    }
}

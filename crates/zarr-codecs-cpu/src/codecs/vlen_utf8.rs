//! `vlen-utf8`: strings of any length.
//!
//! * Specification: [zarr-extensions, vlen-utf8](https://github.com/zarr-developers/zarr-extensions/tree/main/codecs/vlen-utf8); version 2:
//!   the filter `vlen-utf8` of numcodecs.
//! * Configuration: none.
//! * Data type: `string`.
//!
//! The count in a chunk must be that of the chunk's elements, as in zarr-python, which fails to reshape otherwise. Bytes behind the last
//! element are an error (numcodecs ignores them; no writer makes them). Strings that are not UTF-8 are an error, both ways.

use zarr_codec_api::{HostProvider, SimpleCodec};
use zarr_meta::DataType;

use super::vlen::Vlen;
use crate::config::{self, NoConfig};

const NAME: &str = "vlen-utf8";

pub(crate) fn register(provider: HostProvider) -> HostProvider {
    provider.with_names(&[NAME, "numcodecs.vlen-utf8"], |codec, _| {
        let NoConfig {} = config::read(codec)?;
        Ok(SimpleCodec::array_to_bytes(Vlen::new(NAME, DataType::String, 1)))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use zarr_codec_api::VariableData;

    use super::*;
    use crate::testing::{ArrayCodec, bytes_never_panic};

    fn codec(elements: u64) -> ArrayCodec {
        ArrayCodec::new(NAME, "{}", &DataType::String, &[elements])
    }

    #[test]
    fn as_numcodecs_writes_it() {
        let encoded = b"\x03\0\0\0\x01\0\0\0a\x02\0\0\0bc\0\0\0\0";
        let strings: VariableData = ["a", "bc", ""].into_iter().collect();
        assert_eq!(codec(3).decode_variable(encoded, 3).unwrap(), strings);
        assert_eq!(codec(3).encode_variable(&strings).unwrap(), encoded);
        assert_eq!(codec(0).encode_variable(&VariableData::new()).unwrap(), [0; 4]);
    }

    #[test]
    fn malformed_chunks_are_told_apart() {
        for (encoded, message) in [
            (&b"\x02\0\0\0\x01\0\0\0a"[..], "truncated"),
            (b"\x01\0\0\0\x02\0\0\0a", "truncated"),
            (b"\x01\0\0\0\xff\xff\xff\xffa", "truncated"),
            (b"\x01\0", "truncated"),
            (b"", "truncated"),
            (b"\x01\0\0\0\x01\0\0\0ab", "1 bytes follow the last element"),
            (b"\x02\0\0\0\0\0\0\0\0\0\0\0", "expected 1 elements, found 2"),
            (b"\xff\xff\xff\xff", "expected 1 elements, found 4294967295"),
            (b"\x01\0\0\0\x01\0\0\0\xff", "not UTF-8"),
        ] {
            let expected = if encoded.starts_with(b"\x02") && message == "truncated" { 2 } else { 1 };
            let error = codec(expected).decode_variable(encoded, 1 << 20).unwrap_err().to_string();
            assert!(error.contains(message), "{error} / {message}");
        }
        let not_utf8: VariableData = [[0xffu8]].into_iter().collect();
        assert!(codec(1).encode_variable(&not_utf8).is_err());
    }

    #[test]
    fn the_limit_holds() {
        let encoded = b"\x02\0\0\0\x02\0\0\0ab\x02\0\0\0cd";
        assert!(codec(2).decode_variable(encoded, 4).is_ok());
        assert!(codec(2).decode_variable(encoded, 3).is_err());
    }

    #[test]
    fn other_data_types_are_refused() {
        for data_type in [DataType::Bytes, DataType::Float32] {
            assert!(ArrayCodec::new(NAME, "{}", &data_type, &[1]).encoded().is_err());
        }
    }

    proptest! {
        #[test]
        fn strings_come_back(strings in prop::collection::vec(".{0,12}", 0..20)) {
            let data: VariableData = strings.iter().collect();
            let codec = codec(strings.len() as u64);
            let encoded = codec.encode_variable(&data).unwrap();
            prop_assert_eq!(codec.decode_variable(&encoded, 1 << 20).unwrap(), data);
            bytes_never_panic(&encoded, |bytes| drop(codec.decode_variable(bytes, 1 << 20)));
        }
    }
}

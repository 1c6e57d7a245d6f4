//! `numcodecs.pickle`: refused.
//!
//! A pickle is a program that makes Python's objects; there is no reading it without running it, and it may do anything. zarr-python refuses it
//! too, unless it is told that the data are trusted. Arrays with this filter of version 2 are best rewritten where they are trusted, with
//! `vlen-utf8`, `vlen-bytes`, `json2` or `msgpack2`.

use zarr_codec_api::{CodecError, HostProvider};

const NAME: &str = "numcodecs.pickle";

pub(crate) fn register(provider: HostProvider) -> HostProvider {
    provider.with(NAME, |_, _| {
        Err(CodecError::unsupported(
            NAME,
            "pickles are not read, because that runs programs in them; rewrite the array with zarr-python, with vlen-utf8, json2 or msgpack2",
        ))
    })
}

#[cfg(test)]
mod tests {
    use zarr_meta::{DataType, FillValue};

    use crate::testing::ArrayCodec;

    #[test]
    fn the_refusal_says_why() {
        let codec =
            ArrayCodec::with_fill(super::NAME, r#"{"protocol": 5}"#, &DataType::Bytes, &[1], FillValue::default_for(&DataType::Bytes));
        let error = codec.err().unwrap().to_string();
        assert!(error.contains("runs programs"), "{error}");
    }
}

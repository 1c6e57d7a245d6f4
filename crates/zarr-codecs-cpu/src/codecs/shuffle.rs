//! `numcodecs.shuffle`: all first bytes of the elements, then all second ones, and so on.
//!
//! Configuration: `{"elementsize": 4}`, in bytes, 4 when absent; 0 and 1 change nothing. Bytes→bytes.
//!
//! Specification: [numcodecs](https://numcodecs.readthedocs.io/en/stable/filter/shuffle.html), after the filter of HDF5.
//!
//! Where implementations part ways: bytes that are no whole number of elements are refused, as by numcodecs.

use zarr_codec_api::{ByteLen, BytesToBytes, CodecError, HostProvider, Representation, SimpleCodec};
use zarr_meta::Extension;

use crate::config;
use crate::shuffle::{shuffle, unshuffle};

const NAME: &str = "shuffle";

pub(crate) fn register(provider: HostProvider) -> HostProvider {
    provider.with("numcodecs.shuffle", make)
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    elementsize: Option<usize>,
}

fn make(codec: &Extension, _: &Representation) -> Result<SimpleCodec, CodecError> {
    let config: Config = config::read(codec)?;
    Ok(SimpleCodec::bytes_to_bytes(Shuffle { element_size: config.elementsize.unwrap_or(4).max(1) }))
}

/// The codec.
#[derive(Debug)]
struct Shuffle {
    element_size: usize,
}

impl Shuffle {
    fn is_whole(&self, bytes: &[u8]) -> bool {
        bytes.len().is_multiple_of(self.element_size)
    }

    fn not_whole(&self, bytes: &[u8]) -> String {
        format!("{} bytes are no whole number of elements of {} bytes", bytes.len(), self.element_size)
    }
}

impl BytesToBytes for Shuffle {
    fn encoded_len(&self, decoded: ByteLen) -> ByteLen {
        decoded
    }

    fn decode(&self, encoded: &[u8], decoded: &mut [u8]) -> Result<(), CodecError> {
        if encoded.len() != decoded.len() {
            return Err(CodecError::size(NAME, decoded.len(), encoded.len()));
        }
        if !self.is_whole(encoded) {
            return Err(CodecError::format(NAME, self.not_whole(encoded)));
        }
        unshuffle(self.element_size, encoded, decoded);
        Ok(())
    }

    fn decode_growing(&self, encoded: &[u8], decoded: &mut Vec<u8>, limit: usize) -> Result<(), CodecError> {
        if encoded.len() > limit {
            return Err(CodecError::limit(NAME, limit));
        }
        decoded.resize(encoded.len(), 0);
        self.decode(encoded, decoded)
    }

    fn encode(&self, decoded: &[u8], encoded: &mut Vec<u8>) -> Result<(), CodecError> {
        if !self.is_whole(decoded) {
            return Err(CodecError::parameter(NAME, self.not_whole(decoded)));
        }
        encoded.resize(decoded.len(), 0);
        shuffle(self.element_size, decoded, encoded);
        Ok(())
    }
}

//! `conditional`: codecs that are applied or skipped, chunk by chunk.
//!
//! * Specification: [zarr-extensions, conditional](https://github.com/zarr-developers/zarr-extensions/tree/main/codecs/conditional). A bytes→bytes
//!   codec.
//! * Configuration: `codecs`, all of them bytes→bytes; `header_bits`, a multiple of 8 and no less than there are codecs, by default the least
//!   such number.
//!
//! Encoded bytes begin with a mask of `header_bits`, the first codec's bit the lowest one of the first byte: 1 where a codec was applied. A bit without a codec
//! must be 0; a chunk that has one there was written with codecs that the metadata lacks, and is refused. The specification leaves the choice
//! to the writer: here all codecs are applied if that makes a chunk smaller, and none otherwise.

use std::sync::Arc;

use serde::Deserialize;
use zarr_codec_api::{ByteLen, BytesToBytes, CodecError, HostProvider, Representation, SimpleCodec};
use zarr_meta::Extension;

use crate::config;

const NAME: &str = "conditional";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    codecs: Vec<Extension>,
    header_bits: Option<usize>,
}

pub(crate) fn register(provider: HostProvider) -> HostProvider {
    provider.with(NAME, |codec, decoded| {
        let config: Config = config::read(codec)?;
        let count = config.codecs.len();
        let header_bits = config.header_bits.unwrap_or(count.next_multiple_of(8));
        if !header_bits.is_multiple_of(8) || header_bits < count {
            return Err(CodecError::metadata(NAME, format!("a header of {header_bits} bits for {count} codecs")));
        }
        let mut inner = Vec::with_capacity(count);
        // Any subset of the codecs before may have been applied.
        let mut upper = match decoded {
            Representation::Bytes(len) => len.upper(),
            Representation::Array(_) => return Err(CodecError::metadata(NAME, "stands before the array to bytes codec")),
        };
        for codec in &config.codecs {
            let bytes = Representation::Bytes(ByteLen::AtMost(upper));
            match crate::provider().codec(codec, &bytes)? {
                Some(SimpleCodec::BytesToBytes(made)) => {
                    let encoded = made.encoded_len(ByteLen::AtMost(upper)).upper().max(upper);
                    inner.push(Inner { codec: made, decoded: upper });
                    upper = encoded;
                }
                Some(_) => return Err(CodecError::metadata(NAME, format!("{} is no bytes to bytes codec", codec.name))),
                None => return Err(CodecError::unsupported(NAME, format!("no codec is known as {}", codec.name))),
            }
        }
        Ok(SimpleCodec::bytes_to_bytes(Conditional { header: header_bits / 8, inner }))
    })
}

#[derive(Debug)]
struct Inner {
    codec: Arc<dyn BytesToBytes>,
    /// The most bytes on its decoded side.
    decoded: u64,
}

#[derive(Debug)]
struct Conditional {
    /// Bytes of the mask.
    header: usize,
    inner: Vec<Inner>,
}

impl Conditional {
    /// The codecs that were applied, the first to be undone first, and the bytes that they made.
    fn parse<'a>(&self, encoded: &'a [u8]) -> Result<(Vec<&Inner>, &'a [u8]), CodecError> {
        let (mask, body) = encoded
            .split_at_checked(self.header)
            .ok_or_else(|| CodecError::format(NAME, format!("{} bytes do not hold a mask of {}", encoded.len(), self.header)))?;
        let bits = mask.iter().flat_map(|byte| (0..8).map(move |bit| byte >> bit & 1 == 1));
        let mut applied = Vec::new();
        for (index, _) in bits.enumerate().filter(|(_, bit)| *bit) {
            let none = || CodecError::format(NAME, format!("codec {index} was applied, and there are {}", self.inner.len()));
            applied.push(self.inner.get(index).ok_or_else(none)?);
        }
        applied.reverse();
        Ok((applied, body))
    }

    /// Undoes all codecs but the last; gives that one, if any, and what it takes.
    fn undo<'a>(&self, encoded: &'a [u8], kept: &'a mut Vec<u8>) -> Result<(Option<&Inner>, &'a [u8]), CodecError> {
        let (applied, body) = self.parse(encoded)?;
        let Some((last, before)) = applied.split_last() else {
            return Ok((None, body));
        };
        for (index, inner) in before.iter().enumerate() {
            let mut decoded = Vec::new();
            let limit = usize::try_from(inner.decoded).unwrap_or(usize::MAX);
            inner.codec.decode_growing(if index == 0 { body } else { kept }, &mut decoded, limit)?;
            *kept = decoded;
        }
        Ok((Some(*last), if before.is_empty() { body } else { kept }))
    }
}

impl BytesToBytes for Conditional {
    fn encoded_len(&self, decoded: ByteLen) -> ByteLen {
        let mut upper = decoded.upper();
        for inner in &self.inner {
            upper = inner.codec.encoded_len(ByteLen::AtMost(upper)).upper().max(upper);
        }
        ByteLen::AtMost(upper.saturating_add(self.header as u64))
    }

    fn decode(&self, encoded: &[u8], decoded: &mut [u8]) -> Result<(), CodecError> {
        let mut kept = Vec::new();
        match self.undo(encoded, &mut kept)? {
            (Some(last), bytes) => last.codec.decode(bytes, decoded),
            (None, bytes) if bytes.len() == decoded.len() => {
                decoded.copy_from_slice(bytes);
                Ok(())
            }
            (None, bytes) => Err(CodecError::size(NAME, decoded.len(), bytes.len())),
        }
    }

    fn decode_growing(&self, encoded: &[u8], decoded: &mut Vec<u8>, limit: usize) -> Result<(), CodecError> {
        let mut kept = Vec::new();
        match self.undo(encoded, &mut kept)? {
            (Some(last), bytes) => last.codec.decode_growing(bytes, decoded, limit),
            (None, bytes) if bytes.len() <= limit => {
                decoded.extend_from_slice(bytes);
                Ok(())
            }
            (None, _) => Err(CodecError::limit(NAME, limit)),
        }
    }

    fn encode(&self, decoded: &[u8], encoded: &mut Vec<u8>) -> Result<(), CodecError> {
        let mut bytes = decoded.to_vec();
        for inner in &self.inner {
            let mut made = Vec::new();
            inner.codec.encode(&bytes, &mut made)?;
            bytes = made;
        }
        let smaller = bytes.len() < decoded.len();
        let mask =
            |index: usize| (0..8usize).fold(0, |mask, bit| mask | u8::from(smaller && index.saturating_add(bit) < self.inner.len()) << bit);
        encoded.extend((0..self.header).map(|byte| mask(byte.saturating_mul(8))));
        encoded.extend_from_slice(if smaller { &bytes } else { decoded });
        Ok(())
    }
}

#[cfg(all(test, feature = "zstd"))]
mod tests {
    use zarr_codec_api::CodecErrorKind;
    use zarr_meta::Json;

    use super::*;

    fn codec(configuration: &str, len: u64) -> Result<Arc<dyn BytesToBytes>, CodecError> {
        let text = format!(r#"{{"name":"conditional","configuration":{configuration}}}"#);
        let extension = Extension::parse(&Json::parse(text.as_bytes()).unwrap()).unwrap();
        match crate::provider().codec(&extension, &Representation::Bytes(ByteLen::Exact(len)))?.unwrap() {
            SimpleCodec::BytesToBytes(codec) => Ok(codec),
            other => panic!("{other:?}"),
        }
    }

    const TWO: &str =
        r#"{"codecs":[{"name":"numcodecs.shuffle","configuration":{"elementsize":4}},{"name":"zstd","configuration":{"level":1}}]}"#;

    #[test]
    fn what_shrinks_is_encoded_and_what_does_not_is_kept() {
        let codec = codec(TWO, 400).unwrap();
        let noise = (0..400u64).map(|i| (i.wrapping_add(7).wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_pow(3) >> 29) as u8).collect();
        for (decoded, mask) in [(vec![7; 400], 0b11), (noise, 0)] {
            let mut encoded = Vec::new();
            codec.encode(&decoded, &mut encoded).unwrap();
            assert_eq!(encoded[0], mask);
            let mut back = vec![0; 400];
            codec.decode(&encoded, &mut back).unwrap();
            assert_eq!(back, decoded);
            let mut grown = Vec::new();
            codec.decode_growing(&encoded, &mut grown, 400).unwrap();
            assert_eq!(grown, decoded);
            assert!(codec.decode_growing(&encoded, &mut Vec::new(), 399).is_err());
        }
    }

    #[test]
    fn each_codec_has_its_bit() {
        let codec = codec(TWO, 8).unwrap();
        let mut decoded = [0; 8];
        codec.decode(&[0b01, 1, 5, 2, 6, 3, 7, 4, 8], &mut decoded).unwrap();
        assert_eq!(decoded, [1, 2, 3, 4, 5, 6, 7, 8]);
        let zstd = [&[0b10][..], &zstd::encode_all(&[9; 8][..], 1).unwrap()].concat();
        codec.decode(&zstd, &mut decoded).unwrap();
        assert_eq!(decoded, [9; 8]);
        for bad in [&[][..], &[0b100, 1, 2, 3, 4, 5, 6, 7, 8], &[0, 1], &[0b10, 1, 2, 3]] {
            assert_eq!(codec.decode(bad, &mut decoded).unwrap_err().kind(), CodecErrorKind::Format, "{bad:?}");
        }
    }

    #[test]
    fn the_header_is_as_long_as_it_says() {
        let wide = codec(&TWO.replace("]}", r#"],"header_bits":16}"#), 8).unwrap();
        let mut encoded = Vec::new();
        wide.encode(&[1, 2, 3, 4, 5, 6, 7, 8], &mut encoded).unwrap();
        assert_eq!(encoded, [0, 0, 1, 2, 3, 4, 5, 6, 7, 8]);
        for bad in [r#"{"codecs":[],"header_bits":4}"#, r#"{"codecs":["zstd"],"header_bits":0}"#, r#"{"codecs":["bytes"]}"#, r#"{}"#] {
            assert_eq!(codec(bad, 8).err().unwrap().kind(), CodecErrorKind::Metadata, "{bad}");
        }
    }
}

//! `numcodecs.base64`: bytes as text.
//!
//! Configuration: none. Bytes→bytes.
//!
//! Specification: [RFC 4648](https://www.rfc-editor.org/rfc/rfc4648#section-4), section 4, padded and without line breaks; in version 2 the
//! [codec](https://numcodecs.readthedocs.io/en/stable/other/base64.html) of numcodecs by that id.
//!
//! Where implementations part ways: characters outside the alphabet are an error; Python skips them, and no writer has them. The unused bits of a last
//! character are not looked at, as in Python.

use zarr_codec_api::{ByteLen, BytesToBytes, CodecError, HostProvider, SimpleCodec};

use crate::config::{self, NoConfig};

const NAME: &str = "base64";
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
/// What stands for bytes that are not there.
const PADDING: u8 = b'=';
/// Not in the alphabet.
const NONE: u8 = 0xff;

/// The value of each character.
const VALUES: [u8; 256] = {
    let mut values = [NONE; 256];
    let mut value = 0u8;
    let mut rest: &[u8] = ALPHABET;
    while let [character, behind @ ..] = rest {
        #[expect(clippy::indexing_slicing, reason = "a byte is within 256")]
        {
            values[*character as usize] = value;
        }
        value = value.saturating_add(1);
        rest = behind;
    }
    values
};

pub(crate) fn register(provider: HostProvider) -> HostProvider {
    provider.with("numcodecs.base64", |codec, _| {
        let NoConfig {} = config::read(codec)?;
        Ok(SimpleCodec::bytes_to_bytes(Base64))
    })
}

/// The codec.
#[derive(Debug)]
struct Base64;

/// The characters without padding, and how many bytes they stand for.
fn characters(encoded: &[u8]) -> Result<(&[u8], usize), CodecError> {
    if !encoded.len().is_multiple_of(4) {
        return Err(CodecError::format(NAME, format!("{} characters are no whole number of groups of four", encoded.len())));
    }
    let characters = match encoded {
        [rest @ .., PADDING, PADDING] => rest,
        [rest @ .., PADDING] => rest,
        all => all,
    };
    let groups = encoded.len() / 4;
    let missing = encoded.len().saturating_sub(characters.len());
    Ok((characters, groups.saturating_mul(3).saturating_sub(missing)))
}

fn value(character: u8) -> Result<u32, CodecError> {
    match VALUES.get(usize::from(character)) {
        Some(&value) if value != NONE => Ok(value.into()),
        _ => Err(CodecError::format(NAME, format!("{:?} is not in the alphabet", char::from(character)))),
    }
}

fn fill(characters: &[u8], decoded: &mut [u8]) -> Result<(), CodecError> {
    for (group, bytes) in characters.chunks(4).zip(decoded.chunks_mut(3)) {
        let mut bits = 0;
        for place in 0..4 {
            bits = bits << 6 | group.get(place).map_or(Ok(0), |character| value(*character))?;
        }
        let [_, of_group @ ..] = bits.to_be_bytes();
        bytes.copy_from_slice(of_group.get(..bytes.len()).unwrap_or_default());
    }
    Ok(())
}

impl BytesToBytes for Base64 {
    fn encoded_len(&self, decoded: ByteLen) -> ByteLen {
        let encoded = |len: u64| len.div_ceil(3).saturating_mul(4);
        match decoded {
            ByteLen::Exact(len) => ByteLen::Exact(encoded(len)),
            ByteLen::AtMost(len) => ByteLen::AtMost(encoded(len)),
        }
    }

    fn decode(&self, encoded: &[u8], decoded: &mut [u8]) -> Result<(), CodecError> {
        let (characters, len) = characters(encoded)?;
        if len != decoded.len() {
            return Err(CodecError::size(NAME, decoded.len(), len));
        }
        fill(characters, decoded)
    }

    fn decode_growing(&self, encoded: &[u8], decoded: &mut Vec<u8>, limit: usize) -> Result<(), CodecError> {
        let (characters, len) = characters(encoded)?;
        if len > limit {
            return Err(CodecError::limit(NAME, limit));
        }
        decoded.resize(len, 0);
        fill(characters, decoded)
    }

    fn encode(&self, decoded: &[u8], encoded: &mut Vec<u8>) -> Result<(), CodecError> {
        encoded.reserve(decoded.len().div_ceil(3).saturating_mul(4));
        for group in decoded.chunks(3) {
            let mut bits = 0u32;
            for place in 0..3 {
                bits = bits << 8 | group.get(place).copied().map_or(0, u32::from);
            }
            for place in 0..4usize {
                let character = ALPHABET.get((bits >> 18 & 0x3f) as usize).copied().unwrap_or(PADDING);
                encoded.push(if place > group.len() { PADDING } else { character });
                bits <<= 6;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn encode(bytes: &[u8]) -> Vec<u8> {
        let mut encoded = Vec::new();
        Base64.encode(bytes, &mut encoded).unwrap();
        encoded
    }

    /// The test vectors of RFC 4648, section 10.
    #[test]
    fn as_the_rfc_has_it() {
        for (bytes, text) in [
            (&b""[..], &b""[..]),
            (b"f", b"Zg=="),
            (b"fo", b"Zm8="),
            (b"foo", b"Zm9v"),
            (b"foob", b"Zm9vYg=="),
            (b"fooba", b"Zm9vYmE="),
            (b"foobar", b"Zm9vYmFy"),
            (b"\xff\xef\xbe", b"/+++"),
        ] {
            assert_eq!(encode(bytes), text);
            let mut decoded = vec![0; bytes.len()];
            Base64.decode(text, &mut decoded).unwrap();
            assert_eq!(decoded, bytes);
        }
    }

    #[test]
    fn other_text_is_refused() {
        for text in [&b"Zg"[..], b"Zg=", b"=Zg=", b"Z===", b"Zg==Zg==", b"Zm 9", b"Zm9\xff"] {
            for len in 0..5 {
                assert!(Base64.decode(text, &mut vec![0; len]).is_err(), "{text:?} as {len}");
            }
            assert!(Base64.decode_growing(text, &mut Vec::new(), 100).is_err(), "{text:?}");
        }
        assert!(Base64.decode(b"Zm9v", &mut [0; 2]).is_err());
        assert!(Base64.decode_growing(b"Zm9v", &mut Vec::new(), 2).is_err());
    }

    proptest! {
        #[test]
        fn bytes_come_back(bytes in prop::collection::vec(any::<u8>(), 0..50)) {
            let encoded = encode(&bytes);
            prop_assert_eq!(ByteLen::Exact(encoded.len() as u64), Base64.encoded_len(ByteLen::Exact(bytes.len() as u64)));
            let mut decoded = Vec::new();
            Base64.decode_growing(&encoded, &mut decoded, bytes.len()).unwrap();
            prop_assert_eq!(decoded, bytes);
        }
    }
}

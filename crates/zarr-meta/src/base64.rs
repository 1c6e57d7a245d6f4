//! Base64 (RFC 4648, section 4): the standard alphabet with padding.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

pub(crate) fn encode(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let bits = group.iter().fold(0u32, |bits, &byte| bits << 8 | u32::from(byte)) << (8 * (3 - group.len()));
        for position in 0..4 {
            let index = usize::try_from(bits >> (18 - 6 * position) & 63).unwrap_or(0);
            let symbol = ALPHABET.get(index).copied().unwrap_or(b'A');
            out.push(if position <= group.len() { char::from(symbol) } else { '=' });
        }
    }
    out
}

/// The bytes; `None` for text that is not base64. Bits beyond the last byte are not looked at.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    let text = text.as_bytes();
    if !text.len().is_multiple_of(4) {
        return None;
    }
    let body = match text {
        [body @ .., b'=', b'='] | [body @ .., b'='] => body,
        body => body,
    };
    let mut out = Vec::with_capacity(body.len() / 4 * 3 + 2);
    for group in body.chunks(4) {
        let mut bits = 0u32;
        for &symbol in group {
            let value = ALPHABET.iter().position(|&known| known == symbol)?;
            bits = bits << 6 | u32::try_from(value).ok()?;
        }
        bits <<= 6 * (4 - group.len());
        let bytes = bits.to_be_bytes();
        out.extend_from_slice(bytes.get(1..group.len())?);
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of RFC 4648, section 10.
    #[test]
    fn examples_of_the_standard() {
        for (bytes, text) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("fooba", "Zm9vYmE="), ("foobar", "Zm9vYmFy")]
        {
            assert_eq!(encode(bytes.as_bytes()), text);
            assert_eq!(decode(text).as_deref(), Some(bytes.as_bytes()));
        }
        assert_eq!(encode(&[0xfb, 0xff]), "+/8=");
        for bad in ["Z", "Zg", "Zg=", "Z===", "Zg==Zg==", "Z g=", "Zm9-", "===="] {
            assert_eq!(decode(bad), None, "{bad}");
        }
    }
}

use zarr_codec_api::{ByteLen, BytesToBytes, CodecError};

/// Run-length encoding: pairs of a count, 1 to 255, and the byte that is repeated.
#[derive(Debug)]
pub struct Rle;

/// The name in metadata.
pub const NAME: &str = "example.rle";

impl Rle {
    /// Hands each run to `put`.
    fn runs(encoded: &[u8], mut put: impl FnMut(usize, u8) -> Result<(), CodecError>) -> Result<(), CodecError> {
        let (pairs, rest) = encoded.as_chunks::<2>();
        if !rest.is_empty() {
            return Err(CodecError::format(NAME, "a count without a byte"));
        }
        pairs.iter().try_for_each(|&[count, byte]| match count {
            0 => Err(CodecError::format(NAME, "a run of no bytes")),
            _ => put(usize::from(count), byte),
        })
    }
}

impl BytesToBytes for Rle {
    fn encoded_len(&self, decoded: ByteLen) -> ByteLen {
        ByteLen::AtMost(decoded.upper().saturating_mul(2))
    }

    fn decode(&self, encoded: &[u8], decoded: &mut [u8]) -> Result<(), CodecError> {
        let (mut at, expected) = (0, decoded.len());
        Self::runs(encoded, |count, byte| {
            let run = decoded.get_mut(at..at + count).ok_or_else(|| CodecError::size(NAME, expected, at + count))?;
            run.fill(byte);
            at += count;
            Ok(())
        })?;
        if at == expected { Ok(()) } else { Err(CodecError::size(NAME, expected, at)) }
    }

    fn decode_growing(&self, encoded: &[u8], decoded: &mut Vec<u8>, limit: usize) -> Result<(), CodecError> {
        Self::runs(encoded, |count, byte| {
            let len = decoded.len() + count;
            if len > limit {
                return Err(CodecError::limit(NAME, limit));
            }
            decoded.resize(len, byte);
            Ok(())
        })
    }

    fn encode(&self, decoded: &[u8], encoded: &mut Vec<u8>) -> Result<(), CodecError> {
        for run in decoded.chunk_by(|a, b| a == b).flat_map(|same| same.chunks(255)) {
            encoded.extend([run.len() as u8, run[0]]);
        }
        Ok(())
    }
}

//! What checksum codecs have in common: the data as they are, and 32 bits in little-endian order before or behind them.

use std::fmt;

use zarr_codec_api::{ByteLen, BytesToBytes, CodecError};

/// Where the checksum stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Location {
    /// Before the data.
    Start,
    /// Behind the data.
    End,
}

const LEN: usize = 4;

/// A checksum codec.
pub(crate) struct Checksum<F> {
    /// The codec's name, for errors.
    pub(crate) name: &'static str,
    pub(crate) location: Location,
    /// The checksum of the data.
    pub(crate) compute: F,
}

impl<F> fmt::Debug for Checksum<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Checksum").field("name", &self.name).field("location", &self.location).finish()
    }
}

impl<F: Fn(&[u8]) -> u32> Checksum<F> {
    /// The data, after checking them.
    fn check<'a>(&self, encoded: &'a [u8]) -> Result<&'a [u8], CodecError> {
        let parts = match self.location {
            Location::Start => encoded.split_first_chunk().map(|(stored, data)| (data, stored)),
            Location::End => encoded.split_last_chunk(),
        };
        let Some((data, stored)) = parts else {
            return Err(CodecError::format(self.name, format!("{} bytes are too few to hold a checksum", encoded.len())));
        };
        let (stored, computed) = (u32::from_le_bytes(*stored), (self.compute)(data));
        if stored == computed {
            Ok(data)
        } else {
            Err(CodecError::format(self.name, format!("the checksum is {stored:08x}, that of the data {computed:08x}")))
        }
    }
}

impl<F: Fn(&[u8]) -> u32 + Send + Sync + 'static> BytesToBytes for Checksum<F> {
    fn encoded_len(&self, decoded: ByteLen) -> ByteLen {
        decoded.plus(LEN as u64)
    }

    fn decode(&self, encoded: &[u8], decoded: &mut [u8]) -> Result<(), CodecError> {
        if encoded.len().checked_sub(LEN) != Some(decoded.len()) {
            return Err(CodecError::size(self.name, decoded.len().saturating_add(LEN), encoded.len()));
        }
        decoded.copy_from_slice(self.check(encoded)?);
        Ok(())
    }

    fn decode_growing(&self, encoded: &[u8], decoded: &mut Vec<u8>, limit: usize) -> Result<(), CodecError> {
        if encoded.len().saturating_sub(LEN) > limit {
            return Err(CodecError::limit(self.name, limit));
        }
        decoded.extend_from_slice(self.check(encoded)?);
        Ok(())
    }

    fn encode(&self, decoded: &[u8], encoded: &mut Vec<u8>) -> Result<(), CodecError> {
        let checksum = (self.compute)(decoded).to_le_bytes();
        encoded.reserve(decoded.len().saturating_add(LEN));
        if self.location == Location::Start {
            encoded.extend_from_slice(&checksum);
        }
        encoded.extend_from_slice(decoded);
        if self.location == Location::End {
            encoded.extend_from_slice(&checksum);
        }
        Ok(())
    }

    fn view<'a>(&self, encoded: &'a [u8]) -> Option<Result<&'a [u8], CodecError>> {
        Some(self.check(encoded))
    }
}

//! What `vlen-utf8`, `vlen-bytes` and `vlen-array` have in common: the count of the elements, then each with its length before it, all
//! lengths unsigned 32-bit little-endian. And `zarrs.vlen_v2`, zarrs' name for the same of strings and byte strings alike.

use zarr_codec_api::{ArrayRepresentation, ArrayToBytes, ByteLen, CodecError, HostProvider, Limits, SimpleCodec, VariableData};
use zarr_meta::DataType;

use crate::config::{self, NoConfig};
use crate::filter;

/// [zarrs](https://docs.rs/zarrs/0.23.14/zarrs/array/codec/array_to_bytes/vlen_v2/) writes the first, and wrote the second.
const VLEN_V2: &str = "zarrs.vlen_v2";
const VLEN_V2_URL: &str = "https://codec.zarrs.dev/array_to_bytes/vlen_v2";

pub(crate) fn register(provider: HostProvider) -> HostProvider {
    provider.with_names(&[VLEN_V2, VLEN_V2_URL], |codec, decoded| {
        let NoConfig {} = config::read(codec)?;
        match &filter::array(codec, decoded)?.data_type {
            data_type @ (DataType::String | DataType::Bytes) => Ok(SimpleCodec::array_to_bytes(Vlen::new(VLEN_V2, data_type.clone(), 1))),
            other => Err(filter::unsupported(codec, other)),
        }
    })
}

/// Bytes of a count or a length.
const PREFIX: usize = 4;

/// One of the three codecs.
#[derive(Debug)]
pub(crate) struct Vlen {
    name: &'static str,
    /// The only data type that it takes.
    data_type: DataType,
    /// The length of an element is a multiple of this, at least 1.
    multiple_of: usize,
}

impl Vlen {
    pub(crate) fn new(name: &'static str, data_type: DataType, multiple_of: usize) -> Self {
        Self { name, data_type, multiple_of: multiple_of.max(1) }
    }

    /// The problem with an element, if there is one.
    fn problem(&self, element: &[u8]) -> Option<String> {
        if self.data_type == DataType::String
            && let Err(error) = std::str::from_utf8(element)
        {
            return Some(format!("a string is not UTF-8: {error}"));
        }
        let rest = element.len().checked_rem(self.multiple_of)?;
        (rest != 0).then(|| format!("an element of {} bytes does not consist of items of {} bytes", element.len(), self.multiple_of))
    }

    fn fixed(&self) -> CodecError {
        CodecError::parameter(self.name, "elements of variable length are asked for as if their length were fixed")
    }
}

/// Takes a length off the front.
fn prefix(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<PREFIX>()?;
    Some((usize::try_from(u32::from_le_bytes(*length)).ok()?, rest))
}

impl ArrayToBytes for Vlen {
    fn encoded_len(&self, decoded: &ArrayRepresentation, limits: &Limits) -> Result<ByteLen, CodecError> {
        if decoded.data_type != self.data_type {
            return Err(CodecError::unsupported(self.name, format!("data type {} is not supported", decoded.data_type)));
        }
        let prefixes = u64::try_from(decoded.elements()?).unwrap_or(u64::MAX).saturating_add(1).saturating_mul(PREFIX as u64);
        Ok(ByteLen::AtMost(limits.variable_chunk.saturating_add(prefixes)))
    }

    fn decode(&self, _: &ArrayRepresentation, _: &[u8], _: &mut [u8]) -> Result<(), CodecError> {
        Err(self.fixed())
    }

    fn encode(&self, _: &ArrayRepresentation, _: &[u8], _: &mut Vec<u8>) -> Result<(), CodecError> {
        Err(self.fixed())
    }

    fn decode_variable(
        &self,
        representation: &ArrayRepresentation,
        encoded: &[u8],
        decoded: &mut VariableData,
        limit: usize,
    ) -> Result<(), CodecError> {
        let expected = representation.elements()?;
        let offset = |rest: &[u8]| u64::try_from(encoded.len().saturating_sub(rest.len())).unwrap_or(u64::MAX);
        let truncated = |rest: &[u8]| CodecError::format(self.name, "the chunk is truncated").at(offset(rest));
        let (count, mut rest) = prefix(encoded).ok_or_else(|| truncated(encoded))?;
        if count != expected {
            return Err(CodecError::format(self.name, format!("expected {expected} elements, found {count}")).at(0));
        }
        // Every element takes its prefix at least, so that the offsets of `decoded` are bounded by what is there.
        if rest.len().checked_div(PREFIX).is_none_or(|most| most < count) {
            return Err(truncated(encoded));
        }
        for _ in 0..count {
            let (length, behind) = prefix(rest).ok_or_else(|| truncated(rest))?;
            let (element, behind) = behind.split_at_checked(length).ok_or_else(|| truncated(rest))?;
            if let Some(problem) = self.problem(element) {
                return Err(CodecError::format(self.name, problem).at(offset(rest)));
            }
            if decoded.byte_len().checked_add(length).is_none_or(|len| len > limit) {
                return Err(CodecError::limit(self.name, limit));
            }
            decoded.push(element);
            rest = behind;
        }
        if !rest.is_empty() {
            return Err(CodecError::format(self.name, format!("{} bytes follow the last element", rest.len())).at(offset(rest)));
        }
        Ok(())
    }

    fn encode_variable(
        &self,
        representation: &ArrayRepresentation,
        decoded: &VariableData,
        encoded: &mut Vec<u8>,
    ) -> Result<(), CodecError> {
        let expected = representation.elements()?;
        if decoded.len() != expected {
            return Err(CodecError::parameter(self.name, format!("expected {expected} elements, found {}", decoded.len())));
        }
        let push = |encoded: &mut Vec<u8>, length: usize| match u32::try_from(length) {
            Ok(length) => {
                encoded.extend_from_slice(&length.to_le_bytes());
                Ok(())
            }
            Err(_) => Err(CodecError::parameter(self.name, format!("{length} does not fit the 32 bits of a length"))),
        };
        encoded.reserve(decoded.byte_len().saturating_add(expected.saturating_add(1).saturating_mul(PREFIX)));
        push(encoded, expected)?;
        for element in decoded.iter() {
            if let Some(problem) = self.problem(element) {
                return Err(CodecError::parameter(self.name, problem));
            }
            push(encoded, element.len())?;
            encoded.extend_from_slice(element);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::ArrayCodec;

    #[test]
    fn one_name_for_both_types() {
        for name in [VLEN_V2, VLEN_V2_URL] {
            for data_type in [DataType::String, DataType::Bytes] {
                let codec = ArrayCodec::new(name, "{}", &data_type, &[2]);
                let elements: VariableData = ["a", "bc"].into_iter().collect();
                assert_eq!(codec.encode_variable(&elements).unwrap(), b"\x02\0\0\0\x01\0\0\0a\x02\0\0\0bc");
            }
        }
    }
}

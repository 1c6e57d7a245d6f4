//! `bytes`: elements one after the other, in a byte order.
//!
//! Configuration: `{"endian": "little" | "big"}`; required when the data type has numbers of more than one byte, without effect otherwise. The
//! name `endian`, of drafts of the specification, is read as well. Array→bytes.
//!
//! Specification: [core codec `bytes`](https://zarr-specs.readthedocs.io/en/latest/v3/codecs/bytes/index.html).
//!
//! Where implementations part ways:
//! * *Booleans* other than 0 and 1 pass through unchanged: whoever reads them as anything but bytes must look.
//! * *Types narrower than a byte* (`int4`, `float6_e2m3fn`, ..) take a byte each; [the registry][int4] says that the upper bits are to be
//!   ignored. Decoding replaces them, by copies of the sign for signed integers and by zeros for the others, so that in memory every value has
//!   one form; encoding writes that form too.
//! * *NaN payloads* pass through unchanged, signalling or not: no element is ever loaded as a float.
//! * *Structs* are swapped field by field; padding does not exist.
//! * A chunk of any other size than its metadata says is an error, longer ones included.
//!
//! [int4]: https://github.com/zarr-developers/zarr-extensions/tree/main/data-types/int4

use zarr_codec_api::{ArrayRepresentation, ArrayToBytes, ByteLen, CodecError, HostProvider, Limits, Representation, SimpleCodec};
use zarr_meta::{DataType, Endianness, Extension, SwapRun};

use crate::config;
use crate::swap;

const NAME: &str = "bytes";

pub(crate) fn register(provider: HostProvider) -> HostProvider {
    provider.with_names(&[NAME, "endian"], make)
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    endian: Option<Endianness>,
}

fn make(codec: &Extension, decoded: &Representation) -> Result<SimpleCodec, CodecError> {
    let config: Config = config::read(codec)?;
    let Some(array) = decoded.as_array() else {
        return Err(CodecError::metadata(NAME, "takes an array, and stands behind the array to bytes codec"));
    };
    let data_type = &array.data_type;
    // The registry's `struct`: a `bytes` codec without `endian` is little-endian, as zarr-python writes it.
    let endian = config.endian.or(matches!(data_type, DataType::Struct { .. }).then_some(Endianness::Little));
    let swap = match endian {
        Some(endian) if endian != Endianness::NATIVE => data_type.swap_units(),
        Some(_) => Vec::new(),
        None if data_type.is_byte_order_sensitive() => {
            return Err(CodecError::metadata(NAME, format!("endian is required for the data type {}", data_type.name())));
        }
        None => Vec::new(),
    };
    let mut narrow = Vec::new();
    narrow_bytes(data_type, 0, &mut narrow);
    Ok(SimpleCodec::array_to_bytes(Bytes { element_len: data_type.fixed_size().unwrap_or(0), swap, narrow }))
}

/// The codec, for one data type.
#[derive(Debug)]
struct Bytes {
    element_len: usize,
    /// What to reverse within each element.
    swap: Vec<SwapRun>,
    /// What to widen within each element.
    narrow: Vec<NarrowByte>,
}

/// A byte of an element of which only the lower bits count.
#[derive(Debug)]
struct NarrowByte {
    offset: usize,
    bits: u32,
    signed: bool,
}

/// Finds the bytes that hold less than eight bits.
fn narrow_bytes(data_type: &DataType, offset: usize, found: &mut Vec<NarrowByte>) {
    match data_type {
        // Kept as it is.
        DataType::Bool => {}
        DataType::Struct(fields) => {
            let mut offset = offset;
            for field in fields {
                narrow_bytes(&field.data_type, offset, found);
                offset = offset.saturating_add(field.data_type.fixed_size().unwrap_or(0));
            }
        }
        DataType::SubArray { element, shape } => {
            let mut inner = Vec::new();
            narrow_bytes(element, 0, &mut inner);
            let (len, count) = (element.fixed_size().unwrap_or(0), shape.iter().fold(1u64, |product, &len| product.saturating_mul(len)));
            for index in 0..if inner.is_empty() { 0 } else { usize::try_from(count).unwrap_or(0) } {
                let start = offset.saturating_add(index.saturating_mul(len));
                found.extend(inner.iter().map(|byte| NarrowByte { offset: start.saturating_add(byte.offset), ..*byte }));
            }
        }
        number => {
            if let Some(bits) = number.bit_width().filter(|bits| *bits < 8) {
                let signed = number.is_signed_integer();
                found.extend((0..number.components()).map(|part| NarrowByte { offset: offset.saturating_add(part), bits, signed }));
            }
        }
    }
}

impl NarrowByte {
    fn widen(&self, byte: u8) -> u8 {
        let shift = 8u32.saturating_sub(self.bits).min(7);
        let upper = byte << shift;
        if self.signed { upper.cast_signed().wrapping_shr(shift).cast_unsigned() } else { upper >> shift }
    }
}

impl Bytes {
    fn is_identity(&self) -> bool {
        self.swap.is_empty() && self.narrow.is_empty()
    }

    /// Both ways: reversing bytes is its own inverse, and widened bytes stay as they are.
    fn apply(&self, bytes: &mut [u8]) {
        swap::in_place(bytes, self.element_len, &self.swap);
        self.widen(bytes);
    }

    fn widen(&self, bytes: &mut [u8]) {
        match self.narrow.as_slice() {
            [] => {}
            [narrow] if self.element_len == 1 => bytes.iter_mut().for_each(|byte| *byte = narrow.widen(*byte)),
            _ => {
                for element in bytes.chunks_exact_mut(self.element_len.max(1)) {
                    for narrow in &self.narrow {
                        if let Some(byte) = element.get_mut(narrow.offset) {
                            *byte = narrow.widen(*byte);
                        }
                    }
                }
            }
        }
    }
}

impl ArrayToBytes for Bytes {
    fn encoded_len(&self, decoded: &ArrayRepresentation, _: &Limits) -> Result<ByteLen, CodecError> {
        Ok(ByteLen::Exact(decoded.fixed_len(NAME)? as u64))
    }

    fn decode(&self, _: &ArrayRepresentation, encoded: &[u8], decoded: &mut [u8]) -> Result<(), CodecError> {
        if encoded.len() != decoded.len() {
            return Err(CodecError::size(NAME, decoded.len(), encoded.len()));
        }
        swap::copy(encoded, decoded, self.element_len, &self.swap);
        self.widen(decoded);
        Ok(())
    }

    fn encode(&self, _: &ArrayRepresentation, decoded: &[u8], encoded: &mut Vec<u8>) -> Result<(), CodecError> {
        if self.is_identity() {
            encoded.extend_from_slice(decoded);
            return Ok(());
        }
        // Piece by piece, so that the second pass finds the bytes in the cache.
        let elements = 32768usize.checked_div(self.element_len).unwrap_or(0).max(1);
        encoded.reserve(decoded.len());
        for piece in decoded.chunks(elements.saturating_mul(self.element_len).max(1)) {
            let start = encoded.len();
            encoded.extend_from_slice(piece);
            self.apply(encoded.get_mut(start..).unwrap_or_default());
        }
        Ok(())
    }

    fn is_verbatim(&self, _: &ArrayRepresentation) -> bool {
        self.is_identity()
    }

    fn is_in_place(&self, _: &ArrayRepresentation) -> bool {
        true
    }

    fn decode_in_place(&self, _: &ArrayRepresentation, bytes: &mut [u8]) -> bool {
        self.apply(bytes);
        true
    }
}

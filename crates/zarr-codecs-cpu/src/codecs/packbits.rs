//! `packbits`: elements of any number of bits, without gaps; and `numcodecs.packbits`, for booleans.
//!
//! # `packbits`
//! * Specification: [zarr-extensions, packbits](https://github.com/zarr-developers/zarr-extensions/tree/main/codecs/packbits). An
//!   array→bytes codec.
//! * Configuration, all optional: `padding_encoding`, where the number of padding bits is written: `"none"` (the default), `"first_byte"`
//!   or `"last_byte"`; `first_bit` and `last_bit`, the bits of each component to store, 0 being the least significant (all by default).
//! * Data types: booleans, integers and floating point numbers of any width, complex numbers, times.
//!
//! The first element takes the lowest bits of the first byte, as in zarrs and tensorstore. The registry says that `"first_byte"` is
//! compatible with numcodecs; the bits of numcodecs are in the other order, so that `numcodecs.packbits` is a codec of its own here.
//!
//! A padding count other than the one that the chunk's shape gives is an error; padding bits are ignored. A boolean whose byte is not zero
//! is true.
//!
//! # `numcodecs.packbits`
//! * Specification: the filter [`packbits`](https://numcodecs.readthedocs.io/en/stable/filter/packbits.html) of numcodecs, in version 2 by
//!   that id. An array→array codec: it gives a one-dimensional array of `uint8`.
//! * Configuration: none.
//! * Data type: `bool`.
//!
//! The first byte is the number of padding bits; the first element takes the highest bit of the second byte. A count other than the one
//! that the chunk's shape gives is an error (numcodecs gives an array of another size, which fails later).

use serde::Deserialize;
use zarr_codec_api::{ArrayRepresentation, ArrayToArray, ArrayToBytes, ByteLen, CodecError, HostProvider, Limits, SimpleCodec};
use zarr_meta::{DataType, FillValue};

use crate::config::{self, NoConfig};
use crate::filter;
use crate::number::store_bits;

const NAME: &str = "packbits";
const NUMCODECS: &str = "numcodecs.packbits";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    #[serde(default)]
    padding_encoding: Padding,
    first_bit: Option<u32>,
    last_bit: Option<u32>,
}

/// Where the number of padding bits is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Padding {
    FirstByte,
    LastByte,
    #[default]
    None,
}

pub(crate) fn register(provider: HostProvider) -> HostProvider {
    let provider = provider.with(NAME, |codec, decoded| {
        let config: Config = config::read(codec)?;
        let data_type = &filter::array(codec, decoded)?.data_type;
        PackBits::new(&config, data_type).map(SimpleCodec::array_to_bytes)
    });
    provider.with(NUMCODECS, |codec, decoded| {
        let NoConfig {} = config::read(codec)?;
        match &filter::array(codec, decoded)?.data_type {
            DataType::Bool => Ok(SimpleCodec::array_to_array(NumcodecsPackBits)),
            other => Err(filter::unsupported(codec, other)),
        }
    })
}

#[derive(Debug)]
struct PackBits {
    padding: Padding,
    /// Bytes of a component in memory.
    size: usize,
    components: usize,
    /// Bits of a component that are not stored, below those that are.
    first_bit: u32,
    /// Bits of a component that are stored, 1 to 64.
    stored: u32,
    is_bool: bool,
    is_signed: bool,
}

impl PackBits {
    fn new(config: &Config, data_type: &DataType) -> Result<Self, CodecError> {
        let refuse = || CodecError::unsupported(NAME, format!("data type {data_type} is not supported"));
        let bits = data_type.bit_width().filter(|bits| (1..=64).contains(bits)).ok_or_else(refuse)?;
        let components = data_type.components();
        let size = data_type.fixed_size().and_then(|size| size.checked_div(components)).ok_or_else(refuse)?;
        let first_bit = config.first_bit.unwrap_or(0);
        let last_bit = config.last_bit.unwrap_or(bits.saturating_sub(1));
        if first_bit > last_bit || last_bit >= bits {
            let problem = format!("bits {first_bit} to {last_bit} of the {bits} that a component has");
            return Err(CodecError::metadata(NAME, problem));
        }
        Ok(Self {
            padding: config.padding_encoding,
            size,
            components,
            first_bit,
            stored: last_bit.saturating_sub(first_bit).saturating_add(1),
            is_bool: *data_type == DataType::Bool,
            is_signed: data_type.is_signed_integer(),
        })
    }

    /// The bytes that the bits take, and how many bits of the last one are padding.
    fn packed(&self, representation: &ArrayRepresentation) -> Result<(usize, u8), CodecError> {
        let bits = representation
            .elements()?
            .checked_mul(self.components)
            .and_then(|components| components.checked_mul(usize::try_from(self.stored).ok()?))
            .ok_or_else(|| CodecError::metadata(NAME, "the chunk does not fit the address space"))?;
        Ok((bits.div_ceil(8), padding(bits)))
    }

    /// A component as an integer: its bytes, zeros above.
    fn load(&self, component: &[u8]) -> u64 {
        let mut bytes = [0; 8];
        if cfg!(target_endian = "big") {
            bytes.iter_mut().zip(component.iter().rev()).for_each(|(to, from)| *to = *from);
        } else {
            bytes.iter_mut().zip(component).for_each(|(to, from)| *to = *from);
        }
        let value = u64::from_le_bytes(bytes);
        if self.is_bool { u64::from(value != 0) } else { value }
    }
}

/// The bits that fill up the last byte.
fn padding(bits: usize) -> u8 {
    u8::try_from(bits.next_multiple_of(8).abs_diff(bits)).unwrap_or(0)
}

impl ArrayToBytes for PackBits {
    fn encoded_len(&self, decoded: &ArrayRepresentation, _: &Limits) -> Result<ByteLen, CodecError> {
        let (bytes, _) = self.packed(decoded)?;
        let count = usize::from(self.padding != Padding::None);
        Ok(ByteLen::Exact(u64::try_from(bytes.saturating_add(count)).unwrap_or(u64::MAX)))
    }

    #[expect(clippy::arithmetic_side_effects, clippy::cast_possible_truncation, reason = "at most 64 bits behind at most 7, in 128")]
    fn decode(&self, representation: &ArrayRepresentation, encoded: &[u8], decoded: &mut [u8]) -> Result<(), CodecError> {
        let (len, padding) = self.packed(representation)?;
        let truncated = || CodecError::size(NAME, len + usize::from(self.padding != Padding::None), encoded.len());
        let (count, packed) = match self.padding {
            Padding::None => (padding, encoded),
            Padding::FirstByte => encoded.split_first().map(|(count, packed)| (*count, packed)).ok_or_else(truncated)?,
            Padding::LastByte => encoded.split_last().map(|(count, packed)| (*count, packed)).ok_or_else(truncated)?,
        };
        if packed.len() != len {
            return Err(truncated());
        }
        if count != padding {
            return Err(CodecError::format(NAME, format!("expected {padding} bits of padding, found {count}")));
        }
        if self.is_bool && self.stored == 1 {
            for (byte, values) in packed.iter().zip(decoded.chunks_mut(8)) {
                values.iter_mut().enumerate().for_each(|(bit, value)| *value = (byte >> bit) & 1);
            }
            return Ok(());
        }
        let mut packed = packed.iter();
        let (mut waiting, mut count) = (0u128, 0);
        let unused = 64 - self.stored;
        for component in decoded.chunks_exact_mut(self.size) {
            while count < self.stored {
                waiting |= u128::from(packed.next().copied().unwrap_or(0)) << count;
                count += 8;
            }
            let bits = (waiting as u64) << unused;
            let value = if self.is_signed { (bits.cast_signed() >> unused).cast_unsigned() } else { bits >> unused };
            store_bits(value << self.first_bit, component);
            waiting >>= self.stored;
            count -= self.stored;
        }
        Ok(())
    }

    #[expect(clippy::arithmetic_side_effects, clippy::cast_possible_truncation, reason = "at most 64 bits behind at most 7, in 128")]
    fn encode(&self, representation: &ArrayRepresentation, decoded: &[u8], encoded: &mut Vec<u8>) -> Result<(), CodecError> {
        let (len, padding) = self.packed(representation)?;
        encoded.reserve(len.saturating_add(1));
        if self.padding == Padding::FirstByte {
            encoded.push(padding);
        }
        if self.is_bool {
            let pack = |values: &[u8]| values.iter().rev().fold(0, |byte, value| byte << 1 | u8::from(*value != 0));
            encoded.extend(decoded.chunks(8).map(pack));
        } else {
            let mask = u64::MAX >> (64 - self.stored);
            let (mut waiting, mut count) = (0u128, 0);
            for component in decoded.chunks_exact(self.size) {
                waiting |= u128::from((self.load(component) >> self.first_bit) & mask) << count;
                count += self.stored;
                while count >= 8 {
                    encoded.push(waiting as u8);
                    waiting >>= 8;
                    count -= 8;
                }
            }
            if count > 0 {
                encoded.push(waiting as u8);
            }
        }
        if self.padding == Padding::LastByte {
            encoded.push(padding);
        }
        Ok(())
    }
}

#[derive(Debug)]
struct NumcodecsPackBits;

impl ArrayToArray for NumcodecsPackBits {
    fn encoded_representation(&self, decoded: &ArrayRepresentation) -> Result<ArrayRepresentation, CodecError> {
        let bytes = decoded.elements()?.div_ceil(8).saturating_add(1);
        let all = if decoded.fill_value.is_zero() { 0 } else { u8::MAX };
        let fill_value = FillValue::from_bytes([all], &DataType::UInt8)
            .map_err(|error| CodecError::metadata(NUMCODECS, "fill value").with_source(error))?;
        let shape = vec![u64::try_from(bytes).unwrap_or(u64::MAX)];
        Ok(ArrayRepresentation { data_type: DataType::UInt8, shape, fill_value })
    }

    fn decode(&self, _: &ArrayRepresentation, encoded: &[u8], decoded: &mut [u8]) -> Result<(), CodecError> {
        let expected = padding(decoded.len());
        let Some((count, packed)) = encoded.split_first() else {
            return Err(CodecError::format(NUMCODECS, "the chunk is empty"));
        };
        if *count != expected {
            return Err(CodecError::format(NUMCODECS, format!("expected {expected} bits of padding, found {count}")).at(0));
        }
        for (byte, values) in packed.iter().zip(decoded.chunks_mut(8)) {
            values.iter_mut().zip([7, 6, 5, 4, 3, 2, 1, 0]).for_each(|(value, bit)| *value = (byte >> bit) & 1);
        }
        Ok(())
    }

    fn encode(&self, _: &ArrayRepresentation, decoded: &[u8], encoded: &mut [u8]) -> Result<(), CodecError> {
        if let Some((count, packed)) = encoded.split_first_mut() {
            *count = padding(decoded.len());
            for (byte, values) in packed.iter_mut().zip(decoded.chunks(8)) {
                *byte = values.iter().zip([7, 6, 5, 4, 3, 2, 1, 0]).fold(0, |byte, (value, bit)| byte | u8::from(*value != 0) << bit);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::{ArrayCodec, bytes_never_panic, bytes_of};

    fn make(configuration: &str, data_type: &DataType, elements: usize) -> Result<ArrayCodec, CodecError> {
        ArrayCodec::with_fill(NAME, configuration, data_type, &[elements as u64], FillValue::default_for(data_type))
    }

    #[test]
    fn booleans_from_the_lowest_bit() {
        let values = [1, 0, 0, 1, 1, 0, 0, 0, 1, 1];
        for (configuration, encoded) in [
            ("{}", vec![0x19, 0x03]),
            (r#"{"padding_encoding": "first_byte"}"#, vec![6, 0x19, 0x03]),
            (r#"{"padding_encoding": "last_byte", "first_bit": null, "last_bit": 0}"#, vec![0x19, 0x03, 6]),
        ] {
            let codec = make(configuration, &DataType::Bool, 10).unwrap();
            assert_eq!(codec.encode(&values).unwrap(), encoded);
            assert_eq!(codec.decode(&encoded).unwrap(), values);
            assert_eq!(codec.encode(&[9, 0, 0, 1, 1, 0, 0, 0, 1, 1]).unwrap(), encoded);
        }
    }

    #[test]
    fn narrow_integers_have_their_sign_extended() {
        let codec = make("{}", &DataType::Int4, 3).unwrap();
        let values = bytes_of(&[-1i8, 7, -8], i8::to_ne_bytes);
        assert_eq!(codec.encode(&values).unwrap(), [0x7f, 0x08]);
        assert_eq!(codec.decode(&[0x7f, 0xf8]).unwrap(), values);
        let codec = make("{}", &DataType::Int2, 4).unwrap();
        let values = bytes_of(&[-1i8, 1, -2, 0], i8::to_ne_bytes);
        assert_eq!(codec.encode(&values).unwrap(), [0b00_10_01_11]);
        assert_eq!(codec.decode(&[0b00_10_01_11]).unwrap(), values);
    }

    #[test]
    fn parts_of_wide_elements() {
        let codec = make(r#"{"first_bit": 4, "last_bit": 11}"#, &DataType::Int16, 2).unwrap();
        let values = bytes_of(&[0x0ab0i16, 0x7120], i16::to_ne_bytes);
        assert_eq!(codec.encode(&values).unwrap(), [0xab, 0x12]);
        assert_eq!(codec.decode(&[0xab, 0x12]).unwrap(), bytes_of(&[0x0ab0u16 | 0xf000, 0x0120], u16::to_ne_bytes));
        let codec = make(r#"{"first_bit": 4, "last_bit": 11}"#, &DataType::UInt16, 2).unwrap();
        assert_eq!(codec.decode(&[0xab, 0x12]).unwrap(), bytes_of(&[0x0ab0u16, 0x0120], u16::to_ne_bytes));
        let codec = make("{}", &DataType::Float64, 1).unwrap();
        assert_eq!(codec.encode(&1.5f64.to_ne_bytes()).unwrap(), 1.5f64.to_le_bytes());
    }

    #[test]
    fn malformed_chunks_are_refused() {
        let codec = make(r#"{"padding_encoding": "first_byte"}"#, &DataType::Bool, 10).unwrap();
        for encoded in [&[][..], &[6], &[5, 0, 0], &[6, 0, 0, 0], &[6, 0]] {
            assert!(codec.decode(encoded).is_err(), "{encoded:?}");
        }
        assert!(make("{}", &DataType::Bool, 9).unwrap().decode(&[0]).is_err());
    }

    #[test]
    fn configurations_that_do_not_fit_are_refused() {
        for configuration in [
            r#"{"first_bit": 3, "last_bit": 2}"#,
            r#"{"last_bit": 8}"#,
            r#"{"padding_encoding": "middle"}"#,
            r#"{"x": 1}"#,
            r#"{"first_bit": -1}"#,
        ] {
            assert!(make(configuration, &DataType::UInt8, 1).is_err(), "{configuration}");
        }
        assert!(make("{}", &DataType::String, 1).is_err());
        assert!(make("{}", &DataType::Raw { bits: 8 }, 1).is_err());
    }

    #[test]
    fn numcodecs_from_the_highest_bit() {
        let codec = ArrayCodec::new(NUMCODECS, "{}", &DataType::Bool, &[2, 2]);
        assert_eq!(codec.encode(&[1, 0, 0, 1]).unwrap(), [4, 144]);
        assert_eq!(codec.decode(&[4, 144]).unwrap(), [1, 0, 0, 1]);
        assert!(codec.decode(&[3, 144]).is_err());
        let encoded = codec.encoded_array();
        assert_eq!((encoded.data_type, encoded.shape), (DataType::UInt8, vec![2]));
        let codec = ArrayCodec::new(NUMCODECS, "{}", &DataType::Bool, &[0]);
        assert_eq!(codec.encode(&[]).unwrap(), [0]);
        assert_eq!(codec.decode(&[0]).unwrap(), []);
    }

    /// One bit after the other, from the specification.
    fn naive(values: &[u64], first_bit: u32, stored: u32) -> Vec<u8> {
        let mut out = vec![0; (values.len() * stored as usize).div_ceil(8)];
        for (index, value) in values.iter().enumerate() {
            for bit in 0..stored {
                let at = index * stored as usize + bit as usize;
                out[at / 8] |= (((value >> (first_bit + bit)) & 1) as u8) << (at % 8);
            }
        }
        out
    }

    proptest! {
        #[test]
        fn any_bits_of_any_width(values in prop::collection::vec(any::<u64>(), 0..40), bits in prop::sample::select(vec![8u32, 16, 32, 64]), a in 0u32..64, b in 0u32..64) {
            let (first, last) = ((a % bits).min(b % bits), (a % bits).max(b % bits));
            let (data_type, size) = match bits {
                8 => (DataType::UInt8, 1),
                16 => (DataType::UInt16, 2),
                32 => (DataType::UInt32, 4),
                _ => (DataType::UInt64, 8),
            };
            let codec = make(&format!("{{\"first_bit\": {first}, \"last_bit\": {last}}}"), &data_type, values.len()).unwrap();
            let mask = (u64::MAX >> (63 - (last - first))) << first;
            let bytes = |values: &[u64]| -> Vec<u8> {
                values.iter().flat_map(|v| {
                    let mut bytes = vec![0; size];
                    store_bits(*v, &mut bytes);
                    bytes
                }).collect()
            };
            let encoded = codec.encode(&bytes(&values)).unwrap();
            prop_assert_eq!(&encoded, &naive(&values, first, last - first + 1));
            let kept: Vec<u64> = values.iter().map(|v| v & mask).collect();
            prop_assert_eq!(codec.decode(&encoded).unwrap(), bytes(&kept));
            bytes_never_panic(&encoded, |bytes| drop(codec.decode(bytes)));
        }
    }

    #[test]
    fn every_number_type_comes_back() {
        for data_type in DataType::plain().filter(|data_type| data_type.bit_width().is_some()) {
            let codec = make("{}", &data_type, 7).unwrap();
            let bits = data_type.bit_width().unwrap();
            let components = 7 * data_type.components();
            let size = data_type.fixed_size().unwrap() / data_type.components();
            let values: Vec<u8> = (0..components * size)
                .map(|i| {
                    let byte = (i * 37 + 11) as u8;
                    match bits {
                        8.. => byte,
                        _ if data_type.is_signed_integer() => ((byte << (8 - bits)) as i8 >> (8 - bits)) as u8,
                        _ => byte & ((1 << bits) - 1),
                    }
                })
                .collect();
            assert_eq!(codec.decode(&codec.encode(&values).unwrap()).unwrap(), values, "{data_type}");
        }
    }
}

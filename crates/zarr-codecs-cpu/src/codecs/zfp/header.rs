//! The header of the library's streams, as `numcodecs.zfpy` has it: magic, number type and extents, mode.
#![expect(clippy::arithmetic_side_effects, reason = "fields of fixed widths, taken apart and put together in 64 bits")]

use zarr_codec_api::CodecError;

use super::array::Extents;
use super::block::{LEAST_EXPONENT, Parameters};
use super::stream::{Reader, Writer};
use super::{MAX_BITS, MAX_PRECISION, NAME};

/// `zfp` and the codec version.
const MAGIC: u64 = u32::from_le_bytes([b'z', b'f', b'p', 5]) as u64;

/// Bits of an extent, by the number of dimensions.
const EXTENT_BITS: [u32; 4] = [48, 24, 16, 12];

/// Modes of 12 bits; all ones stand before the 52 bits of one that is none of them.
const PRECISIONS: u64 = 2048;
const REVERSIBLE: u64 = 2176;
const ACCURACIES: u64 = 2177;
const LONG: u64 = 0xfff;

/// The least exponent that a long mode holds.
const LONG_LEAST: i64 = 16495;

/// What a header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    /// 1 to 4: `int32`, `int64`, `float32`, `float64`.
    pub(super) number_type: u64,
    pub(super) extents: Extents,
    pub(super) parameters: Parameters,
}

impl Header {
    /// # Errors
    /// When the extents do not fit their fields.
    pub(super) fn write(&self, writer: &mut Writer<'_>) -> Result<(), CodecError> {
        let dimensions = self.extents.dimensions;
        let bits = EXTENT_BITS.get(dimensions.saturating_sub(1)).copied().unwrap_or(12);
        let mut meta = 0;
        for length in self.extents.lengths.iter().take(dimensions).rev() {
            let less_one = u64::try_from(*length).ok().and_then(|length| length.checked_sub(1)).filter(|length| length >> bits == 0);
            let less_one = less_one.ok_or_else(|| CodecError::parameter(NAME, format!("an extent of {length} does not fit the header")))?;
            meta = (meta << bits) | less_one;
        }
        meta = (meta << 2) | (dimensions as u64 - 1);
        meta = (meta << 2) | (self.number_type - 1);
        writer.write(MAGIC, 32);
        writer.write(meta, 52);
        match short_mode(&self.parameters) {
            Some(mode) => writer.write(mode, 12),
            None => writer.write(long_mode(&self.parameters), 64),
        }
        Ok(())
    }

    /// # Errors
    /// When the bits are no header.
    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, CodecError> {
        if reader.read(32)? != MAGIC {
            return Err(CodecError::format(NAME, "the header of zfp, codec version 5, is missing").at(0));
        }
        let mut meta = reader.read(52)?;
        let number_type = (meta & 3) + 1;
        meta >>= 2;
        let dimensions = usize::try_from((meta & 3) + 1).unwrap_or(1);
        meta >>= 2;
        let bits = EXTENT_BITS.get(dimensions.saturating_sub(1)).copied().unwrap_or(12);
        let mut lengths = [1; 4];
        for length in lengths.iter_mut().take(dimensions) {
            let extent = (meta & ((1 << bits) - 1)) + 1;
            *length = usize::try_from(extent).map_err(|_| CodecError::format(NAME, "an extent does not fit the address space"))?;
            meta >>= bits;
        }
        let mode = reader.read(12)?;
        let parameters = if mode == LONG { from_long(reader.read(52)?) } else { from_short(mode) };
        Ok(Self { number_type, extents: Extents { dimensions, lengths }, parameters })
    }
}

/// All the bits that a block may need.
const UNLIMITED: Parameters = Parameters { min_bits: 1, max_bits: MAX_BITS, max_precision: MAX_PRECISION, min_exponent: LEAST_EXPONENT };

fn short_mode(parameters: &Parameters) -> Option<u64> {
    let Parameters { min_bits, max_bits, max_precision, min_exponent } = *parameters;
    if parameters.is_reversible() {
        return (Parameters { min_exponent: LEAST_EXPONENT, ..*parameters } == UNLIMITED).then_some(REVERSIBLE);
    }
    if min_bits == max_bits && (Parameters { min_bits: 1, max_bits: MAX_BITS, ..*parameters }) == UNLIMITED {
        return (1..=2048).contains(&max_bits).then(|| u64::from(max_bits) - 1);
    }
    if (Parameters { max_precision: MAX_PRECISION, ..*parameters }) == UNLIMITED {
        return Some(PRECISIONS + u64::from(max_precision) - 1);
    }
    let exponents = u64::try_from(i64::from(min_exponent) - i64::from(LEAST_EXPONENT)).ok()?;
    let is_accuracy = Parameters { min_exponent: LEAST_EXPONENT, ..*parameters } == UNLIMITED;
    Some(ACCURACIES + exponents).filter(|mode| is_accuracy && *mode < LONG)
}

fn long_mode(parameters: &Parameters) -> u64 {
    let field = |value: u32, most: u32| u64::from(value.clamp(1, most) - 1);
    let exponent = u64::try_from((i64::from(parameters.min_exponent) + LONG_LEAST).clamp(0, 0x7fff)).unwrap_or(0);
    let mut mode = exponent;
    mode = (mode << 7) | field(parameters.max_precision, 0x80);
    mode = (mode << 15) | field(parameters.max_bits, 0x8000);
    mode = (mode << 15) | field(parameters.min_bits, 0x8000);
    (mode << 12) | LONG
}

fn field32(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

fn from_long(mode: u64) -> Parameters {
    Parameters {
        min_bits: field32(mode & 0x7fff) + 1,
        max_bits: field32(mode >> 15 & 0x7fff) + 1,
        max_precision: field32(mode >> 30 & 0x7f) + 1,
        min_exponent: i32::try_from(mode >> 37).unwrap_or(0) - 16495,
    }
}

fn from_short(mode: u64) -> Parameters {
    if mode < PRECISIONS {
        Parameters { min_bits: field32(mode) + 1, max_bits: field32(mode) + 1, ..UNLIMITED }
    } else if mode < REVERSIBLE {
        Parameters { max_precision: field32(mode - PRECISIONS) + 1, ..UNLIMITED }
    } else if mode == REVERSIBLE {
        Parameters { min_exponent: LEAST_EXPONENT - 1, ..UNLIMITED }
    } else {
        Parameters { min_exponent: i32::try_from(mode - ACCURACIES).unwrap_or(0) + LEAST_EXPONENT, ..UNLIMITED }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn back(parameters: Parameters) -> Parameters {
        let extents = Extents::of(&[3, 4, 5]).unwrap();
        let header = Header { number_type: 3, extents, parameters };
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&mut bytes);
        header.write(&mut writer).unwrap();
        writer.finish();
        let read = Header::read(&mut Reader::new(&bytes)).unwrap();
        assert_eq!((read.number_type, read.extents), (3, extents));
        read.parameters
    }

    #[test]
    fn every_mode_comes_back() {
        for parameters in [
            UNLIMITED,
            Parameters { min_bits: 100, max_bits: 100, ..UNLIMITED },
            Parameters { min_bits: 4096, max_bits: 4096, ..UNLIMITED },
            Parameters { max_precision: 14, ..UNLIMITED },
            Parameters { min_exponent: -20, ..UNLIMITED },
            Parameters { min_exponent: 900, ..UNLIMITED },
            Parameters { min_exponent: LEAST_EXPONENT - 1, ..UNLIMITED },
            Parameters { min_bits: 7, max_bits: 999, max_precision: 31, min_exponent: 3 },
        ] {
            assert_eq!(back(parameters), parameters);
        }
    }

    #[test]
    fn extents_must_fit() {
        let mut bytes = Vec::new();
        let extents = Extents::of(&[1, 1, 1, 4097]).unwrap();
        assert!(Header { number_type: 1, extents, parameters: UNLIMITED }.write(&mut Writer::new(&mut bytes)).is_err());
    }

    proptest! {
        #[test]
        fn any_bits_are_read(bytes in prop::collection::vec(any::<u8>(), 0..24)) {
            let _ = Header::read(&mut Reader::new(&bytes));
            let _ = Header::read(&mut Reader::new(&[&b"zfp\x05"[..], &bytes].concat()));
        }
    }
}

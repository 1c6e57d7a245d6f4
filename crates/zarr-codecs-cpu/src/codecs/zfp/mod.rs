//! `zfp`: arrays of numbers, lossy or not; and `numcodecs.zfpy`, the same behind a header.
//!
//! # `zfp`
//! * Specification: [zarr-extensions, zfp](https://github.com/zarr-developers/zarr-extensions/tree/main/codecs/zfp); the streams are those
//!   of the [zfp library](https://zfp.readthedocs.io), codec version 5. An array→bytes codec.
//! * Configuration: `mode`: `"reversible"`, `"fixed_rate"` with `rate` (bits per number), `"fixed_precision"` with `precision` (bit
//!   planes), `"fixed_accuracy"` with `tolerance` (absolute), or `"expert"` with `minbits`, `maxbits`, `maxprec` and `minexp`.
//! * Data types: `int32`, `int64`, `float32`, `float64`; `int8`, `uint8`, `int16`, `uint16`, `float16`, `bfloat16` as wider numbers, as the
//!   registry has it; `uint32` and `uint64` up to the largest signed number, as zarrs has them (which clamps larger ones in encoding, where
//!   this is an error); times as the integers they are.
//! * Shapes of up to four dimensions; a chunk of no dimensions counts as one of one.
//!
//! # `numcodecs.zfpy`
//! * Specification: the codec [`zfpy`](https://numcodecs.readthedocs.io/en/stable/compression/zfpy.html) of numcodecs, in version 2 by that
//!   id.
//! * Configuration: `mode`: 2 (fixed rate), 3 (fixed precision) or 4 (fixed accuracy); `rate`, `precision`, `tolerance`. A negative value
//!   of the one that the mode calls for means reversible, as in zfpy. Decoding goes by the header alone.
//! * Data types: `int32`, `int64`, `float32`, `float64`. A header of another number type or of another number of elements is an error.
//!
//! # Decisions
//! Written in Rust after the published algorithm, as the bindings to the library need tools that a build does not have everywhere. Streams
//! are the library's bit for bit, except that blocks whose largest number is below 2^-97 (`float32`) or 2^-961 (`float64`) are coded as
//! they should be, where the library multiplies with an infinite factor and codes other numbers; every decoder reads them. NaN and infinity
//! are an error in encoding, except in the reversible mode, which keeps all bits, but for the payload of a NaN of 16 bits, which it takes through a
//! wider number; the library does not say what it makes of them. Truncated streams and bytes behind the last block are errors.

use serde::Deserialize;
use zarr_codec_api::{ArrayRepresentation, ArrayToBytes, ByteLen, CodecError, HostProvider, Limits, SimpleCodec};
use zarr_meta::DataType;

use self::array::Extents;
use self::block::{LEAST_EXPONENT, Parameters, Scalar};
use self::header::Header;
use self::numbers::Kind;
use self::stream::{Reader, WORD, Writer};
use crate::{config, filter};

mod array;
mod block;
mod header;
mod numbers;
mod order;
mod stream;

const NAME: &str = "zfp";
const ZFPY: &str = "numcodecs.zfpy";

/// The most bits that a block of doubles in four dimensions can take, by the library's count.
const MAX_BITS: u32 = 16658;

/// The most bit planes.
const MAX_PRECISION: u32 = 64;

/// Fixed rates beyond this waste more than any block can use.
const MOST_RATE: f64 = 128.0;

#[derive(Deserialize)]
#[serde(tag = "mode", rename_all = "snake_case", deny_unknown_fields)]
enum Config {
    Reversible {},
    FixedRate { rate: f64 },
    FixedPrecision { precision: u32 },
    FixedAccuracy { tolerance: f64 },
    Expert { minbits: u32, maxbits: u32, maxprec: u32, minexp: i32 },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ZfpyConfig {
    mode: Option<i64>,
    tolerance: Option<f64>,
    rate: Option<f64>,
    precision: Option<f64>,
    /// Older numcodecs writes its arguments here once more.
    #[serde(default, rename = "compression_kwargs")]
    _arguments: Option<zarr_meta::Json>,
}

impl ZfpyConfig {
    /// What zfpy makes of the arguments that numcodecs gives it.
    fn mode(&self) -> Result<Config, CodecError> {
        let wanted = |value: Option<f64>| value.filter(|value| *value >= 0.0);
        let config = match self.mode.unwrap_or(4) {
            2 => wanted(self.rate).map(|rate| Config::FixedRate { rate }),
            3 => match wanted(self.precision) {
                None => None,
                Some(precision) if precision <= 64.0 && precision.fract() == 0.0 => {
                    let precision = (0..=64).find(|planes| f64::from(*planes) == precision).unwrap_or(MAX_PRECISION);
                    Some(Config::FixedPrecision { precision })
                }
                Some(precision) => return Err(CodecError::metadata(ZFPY, format!("a precision of {precision}"))),
            },
            4 => wanted(self.tolerance).map(|tolerance| Config::FixedAccuracy { tolerance }),
            5 => None,
            other => return Err(CodecError::metadata(ZFPY, format!("mode {other} is not known"))),
        };
        Ok(config.unwrap_or(Config::Reversible {}))
    }
}

pub(crate) fn register(provider: HostProvider) -> HostProvider {
    let provider = provider.with_names(&[NAME, "zarrs.zfp", "https://codec.zarrs.dev/array_to_bytes/zfp"], |codec, decoded| {
        let config: Config = config::read(codec)?;
        let array = filter::array(codec, decoded)?;
        let kind = Kind::of(&array.data_type).ok_or_else(|| filter::unsupported(codec, &array.data_type))?;
        Zfp::new(NAME, &config, kind, array).map(SimpleCodec::array_to_bytes)
    });
    provider.with_names(&[ZFPY, "https://codec.zarrs.dev/array_to_bytes/zfpy"], |codec, decoded| {
        let config: ZfpyConfig = config::read(codec)?;
        let array = filter::array(codec, decoded)?;
        let kind = match &array.data_type {
            DataType::Int32 => Kind::I32,
            DataType::Int64 => Kind::I64,
            DataType::Float32 => Kind::F32,
            DataType::Float64 => Kind::F64,
            other => return Err(filter::unsupported(codec, other)),
        };
        Zfp::new(ZFPY, &config.mode()?, kind, array).map(SimpleCodec::array_to_bytes)
    })
}

#[derive(Debug)]
struct Zfp {
    name: &'static str,
    kind: Kind,
    parameters: Parameters,
    extents: Extents,
}

impl Zfp {
    fn new(name: &'static str, config: &Config, kind: Kind, array: &ArrayRepresentation) -> Result<Self, CodecError> {
        let extents = Extents::of(&array.shape)
            .ok_or_else(|| CodecError::unsupported(name, format!("{} dimensions; there can be four", array.shape.len())))?;
        let parameters = numbers::for_kind!(kind, parameters, (name, config, extents.dimensions))?;
        Ok(Self { name, kind, parameters, extents })
    }

    fn has_header(&self) -> bool {
        self.name == ZFPY
    }
}

/// The numbers of the expert mode that a mode stands for, for blocks of `dimensions` dimensions of a number type.
#[expect(clippy::cast_possible_truncation, reason = "bounded before")]
fn parameters<T: Scalar>((name, config, dimensions): (&str, &Config, usize)) -> Result<Parameters, CodecError> {
    let wrong = |problem: String| Err(CodecError::metadata(name, problem));
    let unlimited = Parameters { min_bits: 1, max_bits: MAX_BITS, max_precision: MAX_PRECISION, min_exponent: LEAST_EXPONENT };
    Ok(match *config {
        Config::Reversible {} => Parameters { min_exponent: LEAST_EXPONENT.saturating_sub(1), ..unlimited },
        Config::FixedRate { rate } => {
            if !(0.0..=MOST_RATE).contains(&rate) {
                return wrong(format!("a rate of {rate} bits per number"));
            }
            let numbers = 4f64.powi(dimensions as i32);
            let least = if T::EXPONENT_BITS > 0 { T::EXPONENT_BITS.saturating_add(1) } else { 0 };
            let bits = ((numbers * rate + 0.5).floor() as u32).max(least);
            Parameters { min_bits: bits, max_bits: bits, ..unlimited }
        }
        Config::FixedPrecision { precision } => {
            Parameters { max_precision: if precision == 0 { MAX_PRECISION } else { precision.min(MAX_PRECISION) }, ..unlimited }
        }
        Config::FixedAccuracy { tolerance } => {
            if !(0.0..f64::INFINITY).contains(&tolerance) {
                return wrong(format!("a tolerance of {tolerance}"));
            }
            Parameters { min_exponent: if tolerance > 0.0 { exponent_of(tolerance) } else { LEAST_EXPONENT }, ..unlimited }
        }
        Config::Expert { minbits, maxbits, maxprec, minexp } => {
            let parameters = Parameters { min_bits: minbits, max_bits: maxbits, max_precision: maxprec, min_exponent: minexp };
            let prefix = match (parameters.is_reversible(), T::EXPONENT_BITS) {
                (true, _) => T::REVERSIBLE_PREFIX,
                (false, 0) => 0,
                (false, exponent_bits) => exponent_bits.saturating_add(1),
            };
            if minbits > maxbits || minbits > MAX_BITS || maxbits < prefix || !(1..=MAX_PRECISION).contains(&maxprec) {
                return wrong(format!("minbits {minbits}, maxbits {maxbits} and maxprec {maxprec} cannot be"));
            }
            parameters
        }
    })
}

/// The exponent of the largest power of two that is not above `value`, which is finite and above 0.
#[expect(clippy::arithmetic_side_effects, reason = "exponents of doubles")]
fn exponent_of(value: f64) -> i32 {
    match (value.to_bits() >> 52) as i32 {
        0 => 63 - value.to_bits().leading_zeros() as i32 - 1074,
        field => field - 1023,
    }
}

impl ArrayToBytes for Zfp {
    fn encoded_len(&self, _: &ArrayRepresentation, _: &Limits) -> Result<ByteLen, CodecError> {
        let size = 1u64.checked_shl(2u32.saturating_mul(u32::try_from(self.extents.dimensions).unwrap_or(4))).unwrap_or(256);
        let width = numbers::for_kind!(self.kind, width, ());
        // Every plane has a bit per number and one more; significance costs one bit per number in all; 32 bits hold exponent and precision.
        let planes = u64::from(width).saturating_add(1).saturating_mul(size.saturating_add(1)).saturating_add(32);
        let most = planes.min(u64::from(self.parameters.max_bits)).max(u64::from(self.parameters.min_bits));
        let header = if self.has_header() { 148 } else { 0 };
        let bits = self.extents.blocks().saturating_mul(most).saturating_add(header);
        Ok(ByteLen::AtMost(bits.div_ceil(WORD).saturating_mul(8)))
    }

    fn decode(&self, _: &ArrayRepresentation, encoded: &[u8], decoded: &mut [u8]) -> Result<(), CodecError> {
        let mut reader = Reader::new(encoded);
        let (mut extents, mut parameters) = (self.extents, self.parameters);
        if self.has_header() {
            let header = Header::read(&mut reader)?;
            if header.number_type != self.kind.number_type() || header.extents.elements() != self.extents.elements() {
                return Err(CodecError::format(ZFPY, format!("the header is that of another array: {:?}", header.extents.lengths)).at(4));
            }
            (extents, parameters) = (header.extents, header.parameters);
        }
        numbers::for_kind!(self.kind, decode, (self.kind, &extents, &parameters, &mut reader, decoded))?;
        reader.finish()
    }

    fn encode(&self, _: &ArrayRepresentation, decoded: &[u8], encoded: &mut Vec<u8>) -> Result<(), CodecError> {
        let mut writer = Writer::new(encoded);
        if self.has_header() {
            Header { number_type: self.kind.number_type(), extents: self.extents, parameters: self.parameters }.write(&mut writer)?;
        }
        numbers::for_kind!(self.kind, encode, (self.kind, &self.extents, &self.parameters, &mut writer, decoded))?;
        writer.finish();
        Ok(())
    }
}

fn width<T: Scalar>((): ()) -> u32 {
    T::WIDTH
}

type Decode<'a, 'b> = (Kind, &'a Extents, &'a Parameters, &'a mut Reader<'b>, &'a mut [u8]);

fn decode<T: numbers::Promoted>((kind, extents, parameters, reader, decoded): Decode<'_, '_>) -> Result<(), CodecError> {
    let mut numbers = vec![T::default(); decoded.len().checked_div(kind.size()).unwrap_or(0)];
    array::decode(&mut numbers, extents, parameters, reader)?;
    T::demote(kind, &numbers, decoded);
    Ok(())
}

type Encode<'a, 'b> = (Kind, &'a Extents, &'a Parameters, &'a mut Writer<'b>, &'a [u8]);

fn encode<T: numbers::Promoted>((kind, extents, parameters, writer, decoded): Encode<'_, '_>) -> Result<(), CodecError> {
    let numbers = T::promote(kind, decoded)?;
    array::encode(&numbers, extents, parameters, writer)
}

#[cfg(test)]
mod tests;

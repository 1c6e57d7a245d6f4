//! `numcodecs.pcodec`: numbers compressed by [pco](https://github.com/pcodec/pcodec).
//!
//! * Specification: the codec [`pcodec`](https://numcodecs.readthedocs.io/en/stable/compression/pcodec.html) of numcodecs, in version 2 by
//!   that id; an array→bytes codec. The bytes are a standalone pco file.
//! * Configuration, all optional: `level`, 0 to 12 (8); `mode_spec`: `"auto"` (the default) or `"classic"`; `delta_spec`: `"auto"` (the
//!   default), `"no_op"` (older: `"none"`), `"try_consecutive"` or `"try_lookback"`; `delta_encoding_order`, 0 to 7, for
//!   `"try_consecutive"`, which it also turns `"auto"` into; `paging_spec`: `"equal_pages_up_to"`; `equal_pages_up_to`, the most numbers to
//!   a page (262144).
//! * Data types: integers of 16 to 64 bits, `float16`, `float32`, `float64`; times as the integers they are.
//!
//! A file of another number type, or of more or fewer numbers than the chunk has, is an error, and so is a file that would have tables
//! allocated that are larger than its own bytes or its numbers call for. Bytes behind the end of the file are an error.
//!
//! Feature `pcodec`; library: [`pco`].

use pco::standalone::{DecompressorItem, FileDecompressor, simple_compress};
use pco::{ChunkConfig, DeltaSpec, ModeSpec, PagingSpec};
use serde::Deserialize;
use zarr_codec_api::{ArrayRepresentation, ArrayToBytes, ByteLen, CodecError, HostProvider, Limits, SimpleCodec};
use zarr_meta::DataType;

use crate::config;
use crate::filter;
use crate::number::{Format, Number, Numpy};

const NAME: &str = "numcodecs.pcodec";

/// The most numbers that pco puts into a page.
const MOST_PER_PAGE: usize = 1 << 24;

/// Windows of up to this many numbers are what pco makes, however short the page.
const USUAL_WINDOW: u64 = 1 << 15;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    level: Option<usize>,
    mode_spec: Option<Mode>,
    delta_spec: Option<Delta>,
    paging_spec: Option<Paging>,
    delta_encoding_order: Option<usize>,
    equal_pages_up_to: Option<usize>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Mode {
    Auto,
    Classic,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Delta {
    Auto,
    #[serde(alias = "none")]
    NoOp,
    TryConsecutive,
    TryLookback,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Paging {
    EqualPagesUpTo,
}

pub(crate) fn register(provider: HostProvider) -> HostProvider {
    provider.with_names(&[NAME, "https://codec.zarrs.dev/array_to_bytes/pcodec"], |codec, decoded| {
        let config = chunk_config(&config::read(codec)?)?;
        let data_type = &filter::array(codec, decoded)?.data_type;
        let kind = Kind::of(data_type).ok_or_else(|| filter::unsupported(codec, data_type))?;
        Ok(SimpleCodec::array_to_bytes(Pcodec { config, kind }))
    })
}

fn chunk_config(config: &Config) -> Result<ChunkConfig, CodecError> {
    let level = config.level.unwrap_or(pco::DEFAULT_COMPRESSION_LEVEL);
    let page = config.equal_pages_up_to.unwrap_or(pco::DEFAULT_MAX_PAGE_N);
    let wrong = |problem: &str| Err(CodecError::metadata(NAME, problem));
    if level > 12 {
        return wrong("level must be 0 to 12");
    }
    if !(1..=MOST_PER_PAGE).contains(&page) {
        return wrong("equal_pages_up_to must be 1 to 2^24");
    }
    let delta = match (config.delta_spec.unwrap_or(Delta::Auto), config.delta_encoding_order) {
        (_, Some(8..)) => return wrong("delta_encoding_order must be 0 to 7"),
        (Delta::Auto | Delta::TryConsecutive, Some(order)) => DeltaSpec::TryConsecutive(order),
        (_, Some(_)) => return wrong("delta_encoding_order is for delta_spec \"try_consecutive\""),
        (Delta::Auto, None) => DeltaSpec::Auto,
        (Delta::NoOp, None) => DeltaSpec::NoOp,
        (Delta::TryConsecutive, None) => return wrong("delta_spec \"try_consecutive\" needs a delta_encoding_order"),
        (Delta::TryLookback, None) => DeltaSpec::TryLookback,
    };
    let mode = match config.mode_spec.unwrap_or(Mode::Auto) {
        Mode::Auto => ModeSpec::Auto,
        Mode::Classic => ModeSpec::Classic,
    };
    let Paging::EqualPagesUpTo = config.paging_spec.unwrap_or(Paging::EqualPagesUpTo);
    Ok(ChunkConfig::default()
        .with_compression_level(level)
        .with_mode_spec(mode)
        .with_delta_spec(delta)
        .with_paging_spec(PagingSpec::EqualPagesUpTo(page)))
}

/// The number types of pco.
#[derive(Debug, Clone, Copy)]
enum Kind {
    U16,
    U32,
    U64,
    I16,
    I32,
    I64,
    F16,
    F32,
    F64,
}

impl Kind {
    fn of(data_type: &DataType) -> Option<Self> {
        let numpy = Numpy::of(data_type.clone()).filter(|numpy| !numpy.is_complex())?;
        Some(match numpy.number {
            Number::Int { bits: 16, signed: false } => Self::U16,
            Number::Int { bits: 32, signed: false } => Self::U32,
            Number::Int { bits: 64, signed: false } => Self::U64,
            Number::Int { bits: 16, signed: true } => Self::I16,
            Number::Int { bits: 32, signed: true } => Self::I32,
            Number::Int { bits: 64, signed: true } => Self::I64,
            Number::Float(Format::F16) => Self::F16,
            Number::Float(Format::F32) => Self::F32,
            Number::Float(Format::F64) => Self::F64,
            _ => return None,
        })
    }
}

/// Calls a generic function for the number type.
macro_rules! for_kind {
    ($kind:expr, $run:ident, $($argument:expr),*) => {
        match $kind {
            Kind::U16 => $run::<u16>($($argument),*),
            Kind::U32 => $run::<u32>($($argument),*),
            Kind::U64 => $run::<u64>($($argument),*),
            Kind::I16 => $run::<i16>($($argument),*),
            Kind::I32 => $run::<i32>($($argument),*),
            Kind::I64 => $run::<i64>($($argument),*),
            Kind::F16 => $run::<half::f16>($($argument),*),
            Kind::F32 => $run::<f32>($($argument),*),
            Kind::F64 => $run::<f64>($($argument),*),
        }
    };
}

#[derive(Debug)]
struct Pcodec {
    config: ChunkConfig,
    kind: Kind,
}

impl ArrayToBytes for Pcodec {
    fn encoded_len(&self, decoded: &ArrayRepresentation, _: &Limits) -> Result<ByteLen, CodecError> {
        let len = u64::try_from(decoded.fixed_len(NAME)?).unwrap_or(u64::MAX);
        // Each page has its own tables; a page of one number takes some forty bytes.
        let per_page = match &self.config.paging_spec {
            PagingSpec::EqualPagesUpTo(most) => decoded.elements()?.div_ceil(*most),
            _ => 1,
        };
        let pages = u64::try_from(per_page).unwrap_or(u64::MAX).saturating_mul(64);
        Ok(ByteLen::AtMost(ByteLen::Exact(len).compressed().upper().saturating_add(pages)))
    }

    fn decode(&self, _: &ArrayRepresentation, encoded: &[u8], decoded: &mut [u8]) -> Result<(), CodecError> {
        for_kind!(self.kind, decode, encoded, decoded)
    }

    fn encode(&self, _: &ArrayRepresentation, decoded: &[u8], encoded: &mut Vec<u8>) -> Result<(), CodecError> {
        for_kind!(self.kind, encode, &self.config, decoded, encoded)
    }
}

fn encode<T: pco::data_types::Number + bytemuck::Pod>(
    config: &ChunkConfig,
    decoded: &[u8],
    encoded: &mut Vec<u8>,
) -> Result<(), CodecError> {
    let copy: Vec<T>;
    let numbers = match bytemuck::try_cast_slice::<u8, T>(decoded) {
        Ok(numbers) => numbers,
        Err(_) => {
            copy = bytemuck::pod_collect_to_vec(decoded);
            &copy
        }
    };
    // The bytes that numcodecs makes; the other functions of pco put the number type into the file's header too.
    *encoded = simple_compress(numbers, config).map_err(|error| CodecError::parameter(NAME, "cannot encode").with_source(error))?;
    Ok(())
}

fn decode<T: pco::data_types::Number + bytemuck::Pod>(encoded: &[u8], decoded: &mut [u8]) -> Result<(), CodecError> {
    match bytemuck::try_cast_slice_mut::<u8, T>(decoded) {
        Ok(numbers) => decode_numbers(encoded, numbers),
        Err(_) => {
            let mut numbers = vec![T::zeroed(); decoded.len().checked_div(size_of::<T>()).unwrap_or(0)];
            decode_numbers(encoded, &mut numbers)?;
            decoded.copy_from_slice(bytemuck::cast_slice(&numbers));
            Ok(())
        }
    }
}

fn decode_numbers<T: pco::data_types::Number>(encoded: &[u8], decoded: &mut [T]) -> Result<(), CodecError> {
    let malformed = |rest: &[u8], error: pco::errors::PcoError| {
        let offset = u64::try_from(encoded.len().saturating_sub(rest.len())).unwrap_or(u64::MAX);
        CodecError::format(NAME, "the data are damaged").with_source(error).at(offset)
    };
    let expected = decoded.len();
    let mut left = decoded;
    let (file, mut rest) = FileDecompressor::new(encoded).map_err(|error| malformed(encoded, error))?;
    loop {
        check_tables(rest, file.format_version().major, size_of::<T>(), left.len())?;
        let mut chunk = match file.chunk_decompressor::<T, _>(rest).map_err(|error| malformed(rest, error))? {
            DecompressorItem::Chunk(chunk) => chunk,
            DecompressorItem::EndOfData(behind) if left.is_empty() && behind.is_empty() => return Ok(()),
            DecompressorItem::EndOfData([]) => {
                let found = expected.saturating_sub(left.len());
                return Err(CodecError::format(NAME, format!("expected {expected} numbers, found {found}")));
            }
            DecompressorItem::EndOfData(behind) => {
                return Err(CodecError::format(NAME, format!("{} bytes follow the end of the file", behind.len())));
            }
        };
        let Some((numbers, behind)) = left.split_at_mut_checked(chunk.n()) else {
            return Err(CodecError::format(NAME, format!("expected {expected} numbers, found more")));
        };
        let progress = chunk.read(numbers).map_err(|error| malformed(rest, error))?;
        if !progress.finished || progress.n_processed != numbers.len() {
            return Err(CodecError::format(NAME, "a page ends early"));
        }
        left = behind;
        rest = chunk.into_src();
    }
}

/// Looks ahead at the two tables whose size a chunk of a few bytes can claim: the dictionary, of up to 2^25 numbers, and the window of
/// lookbacks, of up to 2^24.
fn check_tables(chunk: &[u8], major: u8, size: usize, left: usize) -> Result<(), CodecError> {
    const TYPE_AND_COUNT: usize = 4 * 8;
    let number_bits = size.saturating_mul(8);
    let Some(mode) = bits(chunk, TYPE_AND_COUNT, 4) else { return Ok(()) };
    let behind_mode = TYPE_AND_COUNT.saturating_add(4);
    let delta = match mode {
        1 | 2 => behind_mode.saturating_add(number_bits),
        3 => behind_mode.saturating_add(8),
        4 => {
            let Some(length) = bits(chunk, behind_mode, 25) else { return Ok(()) };
            let start = behind_mode.saturating_add(25).next_multiple_of(8);
            let end =
                usize::try_from(length).ok().and_then(|length| length.checked_mul(number_bits)).and_then(|bits| bits.checked_add(start));
            match end {
                Some(end) if end <= chunk.len().saturating_mul(8) => end,
                _ => return Err(CodecError::format(NAME, "a dictionary is longer than the chunk")),
            }
        }
        _ => behind_mode,
    };
    // Before this version there was one way to take differences, and no window.
    if major >= 3 && bits(chunk, delta, 4) == Some(2) {
        let Some(window_log) = bits(chunk, delta.saturating_add(4), 5) else { return Ok(()) };
        let most = u64::try_from(left).unwrap_or(u64::MAX).max(USUAL_WINDOW).checked_next_power_of_two().unwrap_or(u64::MAX);
        if window_log >= 63 || 2u64.checked_shl(u32::try_from(window_log).unwrap_or(u32::MAX)).is_none_or(|window| window > most) {
            return Err(CodecError::format(NAME, "a window is longer than the chunk"));
        }
    }
    Ok(())
}

/// `count` bits from the bit `at`, the lowest first, if they are there.
fn bits(bytes: &[u8], at: usize, count: usize) -> Option<u64> {
    (0..count).try_fold(0u64, |value, bit| {
        let position = at.checked_add(bit)?;
        let byte = bytes.get(position.checked_div(8)?)?;
        let set = (byte >> (position & 7)) & 1;
        Some(value | u64::from(set).checked_shl(u32::try_from(bit).ok()?)?)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use zarr_meta::FillValue;

    use super::*;
    use crate::testing::{ArrayCodec, bytes_never_panic, bytes_of};

    fn make(configuration: &str, data_type: &DataType, elements: usize) -> Result<ArrayCodec, CodecError> {
        ArrayCodec::with_fill(NAME, configuration, data_type, &[elements as u64], FillValue::default_for(data_type))
    }

    #[test]
    fn damaged_chunks_are_errors_or_other_numbers() {
        let values: Vec<i64> = (0..600).map(|i| i * 3 + i % 7).collect();
        let bytes = bytes_of(&values, i64::to_ne_bytes);
        for configuration in ["{}", r#"{"delta_spec": "try_lookback"}"#, r#"{"delta_spec": "no_op", "equal_pages_up_to": 100}"#] {
            let codec = make(configuration, &DataType::Int64, values.len()).unwrap();
            let encoded = codec.encode(&bytes).unwrap();
            assert_eq!(codec.decode(&encoded).unwrap(), bytes);
            bytes_never_panic(&encoded, |damaged| drop(codec.decode(damaged)));
        }
    }

    #[test]
    fn the_count_must_be_that_of_the_chunk() {
        let encoded = make("{}", &DataType::Int32, 300).unwrap().encode(&[1; 1200]).unwrap();
        for elements in [0, 1, 299, 301, 1000] {
            assert!(make("{}", &DataType::Int32, elements).unwrap().decode(&encoded).is_err(), "{elements}");
        }
        assert!(make("{}", &DataType::UInt32, 300).unwrap().decode(&encoded).is_err());
        let mut longer = encoded.clone();
        longer.push(0);
        assert!(make("{}", &DataType::Int32, 300).unwrap().decode(&longer).is_err());
    }

    #[test]
    fn tables_are_not_allocated_on_a_claim() {
        // A chunk of u64: type, count - 1, then mode 4 with a dictionary of 2^24 numbers.
        let header = b"pco!\x03\x00\x81\x04\x01";
        let dictionary = [2, 9, 0, 0, 0x04, 0, 0, 0x10, 0, 0, 0];
        let error = make("{}", &DataType::UInt64, 10).unwrap().decode(&[&header[..], &dictionary].concat()).unwrap_err();
        assert!(error.message().contains("dictionary"), "{error}");
        // Mode 0 with lookbacks in a window of 2^24 numbers.
        let window = [2, 9, 0, 0, 0x20, 23, 0, 0, 0, 0, 0];
        let error = make("{}", &DataType::UInt64, 10).unwrap().decode(&[&header[..], &window].concat()).unwrap_err();
        assert!(error.message().contains("window"), "{error}");
    }

    #[test]
    fn unaligned_memory_is_fine() {
        let codec = make("{}", &DataType::Int64, 2).unwrap();
        let memory = bytes_of(&[0i64, 1, 2, 3], i64::to_ne_bytes);
        let encoded = codec.encode(&memory[1..17]).unwrap();
        assert_eq!(codec.decode(&encoded).unwrap(), &memory[1..17]);
        let mut output = [0u8; 24];
        for start in 0..8 {
            decode::<i64>(&encoded, &mut output[start..start + 16]).unwrap();
            assert_eq!(output[start..start + 16], memory[1..17]);
        }
    }

    #[test]
    fn configurations_that_do_not_fit_are_refused() {
        for configuration in [
            r#"{"level": 13}"#,
            r#"{"level": -1}"#,
            r#"{"mode_spec": "x"}"#,
            r#"{"delta_spec": "try_consecutive"}"#,
            r#"{"delta_spec": "none", "delta_encoding_order": 1}"#,
            r#"{"delta_encoding_order": 8}"#,
            r#"{"equal_pages_up_to": 0}"#,
            r#"{"paging_spec": "exact"}"#,
        ] {
            assert!(make(configuration, &DataType::Int32, 1).is_err(), "{configuration}");
        }
        for data_type in [DataType::Int8, DataType::Bool, DataType::Complex64, DataType::BFloat16, DataType::String] {
            assert!(make("{}", &data_type, 1).is_err(), "{data_type}");
        }
        let time = Numpy::parse("<M8[ns]").unwrap().data_type;
        assert!(
            make(r#"{"delta_spec": "none", "level": 3, "paging_spec": "equal_pages_up_to", "delta_encoding_order": null}"#, &time, 1)
                .is_ok()
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn bits_come_back(values in prop::collection::vec(any::<u32>(), 0..600), page in 1usize..700, order in 0usize..8) {
            let configuration = format!("{{\"level\": 3, \"delta_encoding_order\": {order}, \"equal_pages_up_to\": {page}}}");
            let codec = make(&configuration, &DataType::Float32, values.len()).unwrap();
            let bytes = bytes_of(&values, u32::to_ne_bytes);
            let encoded = codec.encode(&bytes).unwrap();
            let zarr_codec_api::Representation::Bytes(most) = codec.encoded().unwrap() else { panic!() };
            prop_assert!(encoded.len() as u64 <= most.upper());
            prop_assert_eq!(codec.decode(&encoded).unwrap(), bytes);
        }

        #[test]
        fn anything_behind_a_header_is_no_panic(bytes in prop::collection::vec(any::<u8>(), 0..60), kind in prop::sample::select(vec![1u8, 2, 5, 6])) {
            let header = [&b"pco!\x03\x00\x81\x04\x01"[..], &[kind, 9, 0, 0], &bytes].concat();
            for data_type in [DataType::UInt32, DataType::UInt64, DataType::Float32, DataType::Float64] {
                let _ = make("{}", &data_type, 10).unwrap().decode(&header);
            }
        }
    }
}

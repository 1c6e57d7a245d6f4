//! The configuration, and what liblzma makes of it.

use liblzma::stream::{Check, Filters, LzmaOptions, MatchFinder, Mode, Stream};
use zarr_codec_api::CodecError;

use super::{NAME, explain};

/// As numcodecs has it.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Config {
    format: Option<i64>,
    check: Option<i64>,
    preset: Option<u32>,
    filters: Option<Vec<Filter>>,
}

/// A filter and its options, as Python has them.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Filter {
    id: u64,
    dist: Option<u32>,
    start_offset: Option<u32>,
    preset: Option<u32>,
    dict_size: Option<u32>,
    lc: Option<u32>,
    lp: Option<u32>,
    pb: Option<u32>,
    mode: Option<u32>,
    nice_len: Option<u32>,
    mf: Option<u32>,
    depth: Option<u32>,
}

/// What surrounds the compressed bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Auto,
    Xz,
    Alone,
    Raw,
}

/// The configuration, checked.
#[derive(Debug)]
pub(super) struct Options {
    pub(super) format: Format,
    check: Check,
    preset: u32,
    filters: Option<Vec<Filter>>,
}

const DEFAULT_PRESET: u32 = 6;
/// The bit of the extreme presets.
const EXTREME: u32 = 1 << 31;
/// The least dictionary that liblzma takes.
const MIN_DICTIONARY: u32 = 4096;

const DELTA: u64 = 3;
const X86: u64 = 4;
const POWERPC: u64 = 5;
const IA64: u64 = 6;
const ARM: u64 = 7;
const ARM_THUMB: u64 = 8;
const SPARC: u64 = 9;
const LZMA2: u64 = 33;
const LZMA1: u64 = 0x4000_0000_0000_0001;

impl Options {
    pub(super) fn new(config: Config) -> Result<Self, CodecError> {
        let invalid = |message: String| Err(CodecError::metadata(NAME, message));
        let format = match config.format.unwrap_or(1) {
            0 => Format::Auto,
            1 => Format::Xz,
            2 => Format::Alone,
            3 => Format::Raw,
            other => return invalid(format!("format {other} is not within 0 and 3")),
        };
        let check = match config.check.unwrap_or(-1) {
            -1 | 4 => Check::Crc64,
            0 => Check::None,
            1 => Check::Crc32,
            10 => Check::Sha256,
            other => return invalid(format!("check {other} is not -1, 0, 1, 4 or 10")),
        };
        if config.preset.is_some() && config.filters.is_some() {
            return invalid("preset and filters exclude each other".to_owned());
        }
        if format == Format::Raw && config.filters.is_none() {
            return invalid("the raw format needs filters".to_owned());
        }
        let options = Self { format, check, preset: config.preset.unwrap_or(DEFAULT_PRESET), filters: config.filters };
        if options.preset & !EXTREME > 9 {
            return invalid(format!("preset {} is not within 0 and 9", options.preset));
        }
        if options.filters.is_some() {
            options.filters(None)?;
        }
        Ok(options)
    }

    /// The filters, with a dictionary of at most `most` bytes.
    pub(super) fn filters(&self, most: Option<usize>) -> Result<Filters, CodecError> {
        let mut filters = Filters::new();
        for filter in self.filters.as_deref().unwrap_or_default() {
            filter.add(&mut filters, most)?;
        }
        Ok(filters)
    }

    pub(super) fn encoder(&self) -> Result<Stream, CodecError> {
        let stream = match (self.format, &self.filters) {
            (Format::Auto, _) => return Err(CodecError::metadata(NAME, "format 0 is for reading alone")),
            (Format::Xz, None) => Stream::new_easy_encoder(self.preset, self.check),
            (Format::Xz, Some(_)) => Stream::new_stream_encoder(&self.filters(None)?, self.check),
            (Format::Alone, None) => Stream::new_lzma_encoder(&LzmaOptions::new_preset(self.preset).map_err(explain)?),
            (Format::Alone, Some(filters)) => match filters.as_slice() {
                [filter] if filter.id == LZMA1 => Stream::new_lzma_encoder(&filter.lzma(None)?),
                _ => return Err(CodecError::metadata(NAME, "the .lzma format takes one filter, LZMA1")),
            },
            (Format::Raw, _) => Stream::new_raw_encoder(&self.filters(None)?),
        };
        stream.map_err(explain)
    }
}

impl Filter {
    fn invalid(&self, message: impl std::fmt::Display) -> CodecError {
        CodecError::metadata(NAME, format!("filter {}: {message}", self.id))
    }

    fn add(&self, filters: &mut Filters, most: Option<usize>) -> Result<(), CodecError> {
        if self.start_offset.is_some_and(|offset| offset != 0) {
            return Err(self.invalid("start_offset is not supported"));
        }
        match self.id {
            LZMA1 => filters.lzma1(&self.lzma(most)?),
            LZMA2 => filters.lzma2(&self.lzma(most)?),
            DELTA => {
                let properties = self.dist.unwrap_or(1).checked_sub(1).and_then(|distance| u8::try_from(distance).ok());
                let properties = properties.ok_or_else(|| self.invalid("dist is not within 1 and 256"))?;
                filters.delta_properties(&[properties]).map_err(explain)?
            }
            X86 => filters.x86(),
            POWERPC => filters.powerpc(),
            IA64 => filters.ia64(),
            ARM => filters.arm(),
            ARM_THUMB => filters.arm_thumb(),
            SPARC => filters.sparc(),
            _ => return Err(self.invalid("is not known")),
        };
        Ok(())
    }

    fn lzma(&self, most: Option<usize>) -> Result<LzmaOptions, CodecError> {
        let mut options = LzmaOptions::new_preset(self.preset.unwrap_or(DEFAULT_PRESET)).map_err(explain)?;
        if let Some(most) = most {
            // The preset's own dictionary is at most 64 MiB; the data need no more than they have.
            let most = u32::try_from(most).unwrap_or(u32::MAX).max(MIN_DICTIONARY);
            options.dict_size(self.dict_size.unwrap_or(64 << 20).min(most));
        } else if let Some(size) = self.dict_size {
            options.dict_size(size);
        }
        if let Some(bits) = self.lc {
            options.literal_context_bits(bits);
        }
        if let Some(bits) = self.lp {
            options.literal_position_bits(bits);
        }
        if let Some(bits) = self.pb {
            options.position_bits(bits);
        }
        match self.mode {
            None => {}
            Some(1) => drop(options.mode(Mode::Fast)),
            Some(2) => drop(options.mode(Mode::Normal)),
            Some(other) => return Err(self.invalid(format_args!("mode {other} is not 1 or 2"))),
        }
        if let Some(len) = self.nice_len {
            options.nice_len(len);
        }
        match self.mf {
            None => {}
            Some(0x03) => drop(options.match_finder(MatchFinder::HashChain3)),
            Some(0x04) => drop(options.match_finder(MatchFinder::HashChain4)),
            Some(0x12) => drop(options.match_finder(MatchFinder::BinaryTree2)),
            Some(0x13) => drop(options.match_finder(MatchFinder::BinaryTree3)),
            Some(0x14) => drop(options.match_finder(MatchFinder::BinaryTree4)),
            Some(other) => return Err(self.invalid(format_args!("mf {other} is not 3, 4, 18, 19 or 20"))),
        }
        if let Some(depth) = self.depth {
            options.depth(depth);
        }
        Ok(options)
    }
}

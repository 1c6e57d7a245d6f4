//! `numcodecs.lzma`: the formats of liblzma.
//!
//! Configuration: `{"format": 1, "check": -1, "preset": null, "filters": null}`, every key optional, numbers as in Python's `lzma`. Bytes→bytes.
//! * `format`: 1 is `.xz`, 2 `.lzma`, 3 raw (which needs `filters`); 0 reads either of the first two and cannot be written.
//! * `check`: what guards the data in `.xz`: -1 is CRC-64, 0 nothing, 1 CRC-32, 4 CRC-64, 10 SHA-256.
//! * `preset`: 0 to 9, and 2^31 more for the extreme ones; 6 when absent. Not together with `filters`.
//! * `filters`: a list of objects with an `id` (3 delta; 4 to 9 branch converters; 33 LZMA2; 4611686018427387905 LZMA1) and options: `dist`; `preset`,
//!   `dict_size`, `lc`, `lp`, `pb`, `mode`, `nice_len`, `mf`, `depth`. The branch converters take no `start_offset` but 0.
//!
//! Specification: [numcodecs](https://numcodecs.readthedocs.io/en/stable/compression/lzma.html). The library is liblzma, by way of
//! [`liblzma`](https://docs.rs/liblzma).
//!
//! Where implementations part ways: *several streams* are decoded one after the other; *other bytes behind a stream* are ignored. So does Python's
//! `lzma.decompress`, and with it numcodecs. A stream whose header asks for more than 256 MiB of memory is refused: the highest preset asks
//! for 65 MiB.

use liblzma::stream::{Action, Error, Status, Stream};
use zarr_codec_api::{ByteLen, BytesToBytes, CodecError, CodecErrorKind, HostProvider, Representation, SimpleCodec};
use zarr_meta::Extension;

use crate::config;
use crate::stream::{Decoder, Step, Streams, advanced};

mod options;

use options::{Config, Format, Options};

const NAME: &str = "lzma";

/// The most memory that a decoder may ask for, in bytes.
const MEMORY_LIMIT: u64 = 256 << 20;

pub(crate) fn register(provider: HostProvider) -> HostProvider {
    provider.with("numcodecs.lzma", make)
}

fn make(codec: &Extension, _: &Representation) -> Result<SimpleCodec, CodecError> {
    let config: Config = config::read(codec)?;
    Ok(SimpleCodec::bytes_to_bytes(Lzma { options: Options::new(config)? }))
}

/// The codec.
#[derive(Debug)]
struct Lzma {
    options: Options,
}

impl Decoder for Stream {
    fn step(&mut self, input: &[u8], output: &mut [u8]) -> Result<Step, CodecError> {
        let (input_before, output_before) = (self.total_in(), self.total_out());
        let status = self.process(input, output, Action::Run).map_err(explain)?;
        Ok(Step {
            consumed: advanced(input_before, self.total_in()),
            written: advanced(output_before, self.total_out()),
            ended: status == Status::StreamEnd,
        })
    }
}

fn explain(error: Error) -> CodecError {
    match error {
        Error::MemLimit => {
            CodecError::new(CodecErrorKind::Limit, NAME, format!("a stream asks for more than {MEMORY_LIMIT} bytes of memory"))
                .with_source(error)
        }
        Error::Mem => CodecError::new(CodecErrorKind::Limit, NAME, "no memory for a context").with_source(error),
        Error::Options | Error::UnsupportedCheck => {
            CodecError::unsupported(NAME, "options that the library does not support").with_source(error)
        }
        error => CodecError::format(NAME, "a stream is damaged").with_source(error),
    }
}

impl Lzma {
    /// Streams of at most `most` bytes in all.
    fn streams<'a>(&self, most: usize) -> Streams<'a, impl FnMut() -> Result<Stream, CodecError>> {
        let follows: fn(&[u8]) -> bool = match self.options.format {
            // Between streams of .xz there may be zeros, four at a time, which Python does not take either.
            Format::Auto | Format::Xz => |rest| rest.starts_with(b"\xFD7zXZ\0"),
            Format::Alone | Format::Raw => |_| false,
        };
        let decoder = move || match self.options.format {
            Format::Auto => Stream::new_auto_decoder(MEMORY_LIMIT, 0).map_err(explain),
            Format::Xz => Stream::new_stream_decoder(MEMORY_LIMIT, 0).map_err(explain),
            Format::Alone => Stream::new_lzma_decoder(MEMORY_LIMIT).map_err(explain),
            // A dictionary larger than the data would never be filled.
            Format::Raw => Stream::new_raw_decoder(&self.options.filters(Some(most))?).map_err(explain),
        };
        Streams { codec: NAME, decoder, follows, open_end: self.options.format == Format::Raw }
    }
}

impl BytesToBytes for Lzma {
    fn encoded_len(&self, decoded: ByteLen) -> ByteLen {
        decoded.compressed()
    }

    fn decode(&self, encoded: &[u8], decoded: &mut [u8]) -> Result<(), CodecError> {
        self.streams(decoded.len()).decode(encoded, decoded)
    }

    fn decode_growing(&self, encoded: &[u8], decoded: &mut Vec<u8>, limit: usize) -> Result<(), CodecError> {
        self.streams(limit).decode_growing(encoded, decoded, limit)
    }

    fn encode(&self, decoded: &[u8], encoded: &mut Vec<u8>) -> Result<(), CodecError> {
        let mut context = self.options.encoder()?;
        let mut rest = decoded;
        loop {
            encoded.reserve(rest.len().saturating_div(4).max(1 << 12));
            let before = context.total_in();
            let status = context.process_vec(rest, encoded, Action::Finish).map_err(explain)?;
            rest = rest.get(advanced(before, context.total_in())..).unwrap_or_default();
            if status == Status::StreamEnd {
                return Ok(());
            }
        }
    }
}

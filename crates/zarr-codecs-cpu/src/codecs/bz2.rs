//! `numcodecs.bz2`: bzip2.
//!
//! Configuration: `{"level": 1..=9}`, 1 when absent. Bytes→bytes.
//!
//! Specification: [numcodecs](https://numcodecs.readthedocs.io/en/stable/compression/bz2.html). The library is libbz2-rs, by way of
//! [`bzip2`](https://docs.rs/bzip2).
//!
//! Where implementations part ways: *several streams* are decoded one after the other; *other bytes behind a stream* are ignored. So does Python's
//! `bz2.decompress`, and with it numcodecs.
//!
//! The library has no way to use a context again, so each chunk pays for one of up to 4 MB (8 MB to encode).

use bzip2::{Action, Compress, Compression, Decompress, Status};
use zarr_codec_api::{ByteLen, BytesToBytes, CodecError, HostProvider, Representation, SimpleCodec};
use zarr_meta::Extension;

use crate::config;
use crate::stream::{Decoder, Step, Streams, advanced};

const NAME: &str = "bz2";

pub(crate) fn register(provider: HostProvider) -> HostProvider {
    provider.with("numcodecs.bz2", make)
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    level: Option<u32>,
}

fn make(codec: &Extension, _: &Representation) -> Result<SimpleCodec, CodecError> {
    let config: Config = config::read(codec)?;
    let level = config.level.unwrap_or(1);
    if !(1..=9).contains(&level) {
        return Err(CodecError::metadata(NAME, format!("level {level} is not within 1 and 9")));
    }
    Ok(SimpleCodec::bytes_to_bytes(Bz2 { level }))
}

/// The codec.
#[derive(Debug)]
struct Bz2 {
    level: u32,
}

impl Decoder for Decompress {
    fn step(&mut self, input: &[u8], output: &mut [u8]) -> Result<Step, CodecError> {
        let (input_before, output_before) = (self.total_in(), self.total_out());
        let status = self.decompress(input, output).map_err(|error| CodecError::format(NAME, "a stream is damaged").with_source(error))?;
        Ok(Step {
            consumed: advanced(input_before, self.total_in()),
            written: advanced(output_before, self.total_out()),
            ended: status == Status::StreamEnd,
        })
    }
}

fn streams<'a>() -> Streams<'a, impl FnMut() -> Result<Decompress, CodecError>> {
    Streams { codec: NAME, decoder: || Ok(Decompress::new(false)), follows: |rest| rest.starts_with(b"BZh"), open_end: false }
}

impl BytesToBytes for Bz2 {
    fn encoded_len(&self, decoded: ByteLen) -> ByteLen {
        decoded.compressed()
    }

    fn decode(&self, encoded: &[u8], decoded: &mut [u8]) -> Result<(), CodecError> {
        streams().decode(encoded, decoded)
    }

    fn decode_growing(&self, encoded: &[u8], decoded: &mut Vec<u8>, limit: usize) -> Result<(), CodecError> {
        streams().decode_growing(encoded, decoded, limit)
    }

    fn encode(&self, decoded: &[u8], encoded: &mut Vec<u8>) -> Result<(), CodecError> {
        let failed = |error| CodecError::parameter(NAME, "cannot encode").with_source(error);
        let mut context = Compress::new(Compression::new(self.level), 0);
        // What bzip2 asks for at worst.
        encoded.reserve(decoded.len().saturating_add(decoded.len() / 100).saturating_add(600));
        let mut rest = decoded;
        loop {
            let before = context.total_in();
            let status = context.compress_vec(rest, encoded, Action::Finish).map_err(failed)?;
            rest = rest.get(advanced(before, context.total_in())..).unwrap_or_default();
            if status == Status::StreamEnd {
                return Ok(());
            }
            encoded.reserve(1 << 12);
        }
    }
}

//! Pairs of implementations of one codec: the CPU's beside the field's libraries, which are called here in the plainest way.

use std::io::{Read as _, Write as _};
use std::sync::Arc;

use flate2::Compression;
use zarr_codec_api::{ByteLen, BytesToBytes, CodecError, HostProvider, Representation, SimpleCodec};

use super::types::{array, codec, data_type};
use super::{Entry, Unbuilt};
use crate::codec::pair::known::{Framing, deflate_reserved_symbols, gzip_header_crc};
use crate::codec::pair::{Divergence, PairUnderTest, Side};
use crate::runner::results::Place;
use crate::{Sample, samples};

#[cfg(feature = "peers")]
mod bzip2;
#[cfg(feature = "peers")]
mod c_blosc;
#[cfg(feature = "peers")]
mod peers;

#[cfg(feature = "peers")]
use peers::PEERS;

#[cfg(not(feature = "peers"))]
const PEERS: &[Reference] = &[];

/// A codec of a library.
#[derive(Debug, Clone, Copy)]
struct Reference {
    codec: &'static str,
    /// The provider's name: the library.
    library: &'static str,
    /// With `{size}` in the place of the bytes of an element.
    configuration: &'static str,
    /// Decodes to at most this many bytes.
    decode: fn(&[u8], usize) -> Result<Vec<u8>, String>,
    /// Encodes elements of that many bytes.
    encode: fn(&[u8], usize) -> Result<Vec<u8>, String>,
    /// Bytes that a checksum adds; `None` for compressors.
    adds: Option<u64>,
    /// Where it and ours are known to part, on chunks of that many bytes.
    parts: fn(usize) -> Vec<Divergence>,
}

/// The provider of this workspace.
const OURS: &str = "cpu";

const REFERENCES: &[Reference] = &[
    Reference {
        codec: "zstd",
        library: "libzstd",
        configuration: r#"{"level":3,"checksum":true}"#,
        decode: |bytes, limit| zstd::bulk::decompress(bytes, limit).map_err(text),
        encode: |bytes, _| {
            let mut compressor = zstd::bulk::Compressor::new(3).map_err(text)?;
            compressor.include_checksum(true).map_err(text)?;
            compressor.compress(bytes).map_err(text)
        },
        adds: None,
        parts: |_| Vec::new(),
    },
    Reference {
        codec: "gzip",
        library: "zlib-rs",
        configuration: r#"{"level":6}"#,
        decode: gunzip,
        encode: |bytes, _| {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), Compression::new(6));
            encoder.write_all(bytes).map_err(text)?;
            encoder.finish().map_err(text)
        },
        adds: None,
        parts: |len| vec![deflate_reserved_symbols(Framing::Gzip, len, OURS), gzip_header_crc(len, OURS)],
    },
    Reference {
        codec: "numcodecs.zlib",
        library: "zlib-rs",
        configuration: r#"{"level":6}"#,
        // Bytes behind the stream are ignored, as Python's `zlib` does.
        decode: |bytes, limit| all_of(&mut flate2::bufread::ZlibDecoder::new(bytes), limit),
        encode: |bytes, _| {
            let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), Compression::new(6));
            encoder.write_all(bytes).map_err(text)?;
            encoder.finish().map_err(text)
        },
        adds: None,
        parts: |len| vec![deflate_reserved_symbols(Framing::Zlib, len, OURS)],
    },
    Reference {
        codec: "crc32c",
        library: "crc32c",
        configuration: "{}",
        decode: |bytes, _| match bytes.split_last_chunk() {
            Some((data, sum)) if crc32c::crc32c(data) == u32::from_le_bytes(*sum) => Ok(data.to_vec()),
            _ => Err("a wrong checksum".to_owned()),
        },
        encode: |bytes, _| Ok([bytes, &crc32c::crc32c(bytes).to_le_bytes()].concat()),
        adds: Some(4),
        parts: |_| Vec::new(),
    },
];

fn text(error: std::io::Error) -> String {
    error.to_string()
}

fn all_of(decoder: &mut impl std::io::Read, limit: usize) -> Result<Vec<u8>, String> {
    let mut decoded = Vec::new();
    // One byte more shows that there is more.
    decoder.take(limit as u64 + 1).read_to_end(&mut decoded).map_err(text)?;
    if decoded.len() > limit { Err("decodes to more than expected".to_owned()) } else { Ok(decoded) }
}

/// Members one after the other, and zeros behind them, as Python's `gzip` has it.
fn gunzip(mut bytes: &[u8], limit: usize) -> Result<Vec<u8>, String> {
    let mut decoded = Vec::new();
    loop {
        let mut decoder = flate2::bufread::GzDecoder::new(bytes);
        decoded.extend(all_of(&mut decoder, limit - decoded.len())?);
        let rest = decoder.into_inner();
        let zeros = rest.iter().take_while(|byte| **byte == 0).count();
        bytes = rest.get(zeros..).unwrap_or_default();
        if bytes.is_empty() {
            return Ok(decoded);
        }
    }
}

impl Reference {
    fn error(&self, message: impl Into<String>) -> CodecError {
        CodecError::format(self.codec, message.into())
    }
}

/// A reference, and the bytes of an element.
#[derive(Debug, Clone, Copy)]
struct Of(&'static Reference, usize);

impl BytesToBytes for Of {
    fn encoded_len(&self, decoded: ByteLen) -> ByteLen {
        match (self.0.adds, decoded) {
            (None, _) => decoded.compressed(),
            (Some(more), ByteLen::Exact(len)) => ByteLen::Exact(len.saturating_add(more)),
            (Some(more), _) => ByteLen::AtMost(decoded.upper().saturating_add(more)),
        }
    }

    fn decode(&self, encoded: &[u8], decoded: &mut [u8]) -> Result<(), CodecError> {
        let bytes = (self.0.decode)(encoded, decoded.len()).map_err(|message| self.0.error(message))?;
        if bytes.len() != decoded.len() {
            return Err(CodecError::size(self.0.codec, decoded.len(), bytes.len()));
        }
        decoded.copy_from_slice(&bytes);
        Ok(())
    }

    fn decode_growing(&self, encoded: &[u8], decoded: &mut Vec<u8>, limit: usize) -> Result<(), CodecError> {
        *decoded = (self.0.decode)(encoded, limit).map_err(|message| self.0.error(message))?;
        Ok(())
    }

    fn encode(&self, decoded: &[u8], encoded: &mut Vec<u8>) -> Result<(), CodecError> {
        *encoded = (self.0.encode)(decoded, self.1).map_err(|message| self.0.error(message))?;
        Ok(())
    }
}

pub(super) fn entries() -> Vec<Entry> {
    let mut entries = Vec::new();
    for reference in REFERENCES.iter().chain(PEERS) {
        for data_type in ["uint8", "int16", "float32", "float64"] {
            let name = format!("pair/cpu-{}/{}/{data_type}", reference.library, reference.codec);
            let place = Place::new(format!("cpu & {}", reference.library), reference.codec, data_type);
            entries.push(Entry::new(name, move || pair(reference, data_type)).at(place));
        }
    }
    entries
}

fn pair(reference: &'static Reference, type_name: &str) -> Result<PairUnderTest, Unbuilt> {
    let data_type = data_type(type_name)?;
    let size = data_type.fixed_size().unwrap_or(1);
    let of_bytes = samples(&Representation::Array(array(data_type, &[30, 17])))?;
    let len = of_bytes.first().map_or(0, Sample::byte_len) as u64;
    let theirs =
        HostProvider::new(reference.library).with(reference.codec, move |_, _| Ok(SimpleCodec::bytes_to_bytes(Of(reference, size))));
    let sides = [Side::on_host(Arc::new(theirs)), Side::on_host(Arc::new(zarr_codecs_cpu::provider()))];
    let [theirs, ours] = sides;
    let configuration = reference.configuration.replace("{size}", &size.to_string());
    let codecs = vec![codec(&format!(r#"{{"name":"{}","configuration":{configuration}}}"#, reference.codec))?];
    let pair = PairUnderTest::new(theirs, ours, codecs, Representation::Bytes(ByteLen::Exact(len))).with_samples(of_bytes);
    let pair = (reference.parts)(len as usize).into_iter().fold(pair, PairUnderTest::diverging);
    Ok(if reference.adds.is_some() { pair.deterministic() } else { pair })
}

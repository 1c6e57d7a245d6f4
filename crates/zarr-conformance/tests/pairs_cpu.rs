//! Codecs of `zarr-codecs-cpu` beside other libraries, and beside the few lines that say what they do.

use std::io::Read;
use std::sync::Arc;

use zarr_codec_api::{
    ArrayRepresentation, ArrayToBytes, ByteLen, BytesToBytes, CodecError, CodecProvider, DecodeSlot, Direction, HostProvider, Limits,
    Representation, Scratch, Segment, SimpleCodec, Stage, Target,
};
use zarr_conformance::assert_conforms;
use zarr_conformance::codec::pair::known::{Framing, deflate_reserved_symbols, gzip_header_crc};
use zarr_conformance::codec::pair::{PairUnderTest, Side};
use zarr_meta::{DataType, Extension, FillValue, Json};

/// A codec of bytes, of two functions.
#[derive(Debug)]
struct Plain {
    encode: fn(&[u8]) -> Vec<u8>,
    decode: fn(&[u8], usize) -> Option<Vec<u8>>,
    len: fn(ByteLen) -> ByteLen,
}

fn bad() -> CodecError {
    CodecError::format("plain", "bad")
}

impl BytesToBytes for Plain {
    fn encoded_len(&self, decoded: ByteLen) -> ByteLen {
        (self.len)(decoded)
    }
    fn decode(&self, encoded: &[u8], decoded: &mut [u8]) -> Result<(), CodecError> {
        let bytes = (self.decode)(encoded, decoded.len()).filter(|bytes| bytes.len() == decoded.len()).ok_or_else(bad)?;
        decoded.copy_from_slice(&bytes);
        Ok(())
    }
    fn decode_growing(&self, encoded: &[u8], decoded: &mut Vec<u8>, limit: usize) -> Result<(), CodecError> {
        *decoded = (self.decode)(encoded, limit).filter(|bytes| bytes.len() <= limit).ok_or_else(bad)?;
        Ok(())
    }
    fn encode(&self, decoded: &[u8], encoded: &mut Vec<u8>) -> Result<(), CodecError> {
        *encoded = (self.encode)(decoded);
        Ok(())
    }
}

/// Up to a byte more than there may be.
fn read(reader: impl Read, limit: usize) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    reader.take(limit as u64 + 1).read_to_end(&mut bytes).ok().map(|_| bytes)
}

fn zstd_plain() -> Plain {
    Plain {
        encode: |bytes| zstd::bulk::compress(bytes, 1).unwrap(),
        // The library takes nothing for no frames.
        decode: |bytes, limit| zstd::bulk::decompress(bytes, limit).ok().filter(|_| !bytes.is_empty()),
        len: ByteLen::compressed,
    }
}

/// Members one behind the other, then zeros: what Python's module takes.
fn gunzip(bytes: &[u8], limit: usize) -> Option<Vec<u8>> {
    let (mut rest, mut all) = (bytes, Vec::new());
    loop {
        let mut member = flate2::bufread::GzDecoder::new(rest);
        all.extend(read(&mut member, limit)?);
        let behind = member.into_inner();
        rest = &behind[behind.iter().position(|&byte| byte != 0).unwrap_or(behind.len())..];
        if rest.is_empty() || all.len() > limit {
            return Some(all);
        }
    }
}

fn gzip_plain() -> Plain {
    Plain {
        encode: |bytes| read(flate2::read::GzEncoder::new(bytes, flate2::Compression::fast()), usize::MAX - 1).unwrap(),
        decode: gunzip,
        len: ByteLen::compressed,
    }
}

fn zlib_plain() -> Plain {
    Plain {
        encode: |bytes| read(flate2::read::ZlibEncoder::new(bytes, flate2::Compression::fast()), usize::MAX - 1).unwrap(),
        decode: |bytes, limit| read(flate2::bufread::ZlibDecoder::new(bytes), limit).filter(|bytes| bytes.len() <= limit),
        len: ByteLen::compressed,
    }
}

/// CRC-32C, RFC 3720 appendix B.4, bit by bit.
fn crc32c(bytes: &[u8]) -> u32 {
    let bit = |crc: u32| if crc & 1 == 1 { crc >> 1 ^ 0x82F6_3B78 } else { crc >> 1 };
    !bytes.iter().fold(!0, |crc, &byte| (0..8).fold(crc ^ u32::from(byte), |crc, _| bit(crc)))
}

fn crc32c_plain() -> Plain {
    Plain {
        encode: |bytes| [bytes, &crc32c(bytes).to_le_bytes()].concat(),
        decode: |bytes, _| {
            let (body, sum) = bytes.split_last_chunk::<4>()?;
            (crc32c(body) == u32::from_le_bytes(*sum)).then(|| body.to_vec())
        },
        len: |len| len.plus(4),
    }
}

/// Bytes of elements of four, plane by plane.
fn shuffle_plain() -> Plain {
    Plain {
        encode: |bytes| (0..bytes.len()).map(|i| bytes[i % (bytes.len() / 4) * 4 + i / (bytes.len() / 4)]).collect(),
        decode: |bytes, limit| {
            let count = bytes.len() / 4;
            (bytes.len() == limit).then(|| (0..bytes.len()).map(|i| bytes[i % 4 * count + i / 4]).collect())
        },
        len: |len| len,
    }
}

fn extension(name: &str, configuration: &str) -> Extension {
    let text = format!(r#"{{"name":"{name}","configuration":{configuration}}}"#);
    Extension::parse(&Json::parse(text.as_bytes()).unwrap()).unwrap()
}

fn beside(reference: HostProvider, codec: Extension, decoded: Representation) -> PairUnderTest {
    let cpu: Arc<dyn CodecProvider> = Arc::new(zarr_codecs_cpu::provider());
    PairUnderTest::new(Side::on_host(Arc::new(reference)), Side::on_host(cpu), vec![codec], decoded)
}

/// Bytes by a codec, of certain number and not.
fn check(name: &str, configuration: &str, plain: fn() -> Plain, deterministic: bool) {
    for len in [ByteLen::Exact(4000), ByteLen::AtMost(1200), ByteLen::Exact(4)] {
        if name == "numcodecs.shuffle" && len.exact().is_none() {
            continue;
        }
        let reference = HostProvider::new("plain").with(name, move |_, _| Ok(SimpleCodec::bytes_to_bytes(plain())));
        let pair = beside(reference, extension(name, configuration), Representation::Bytes(len));
        assert_conforms(if deterministic { pair.deterministic() } else { pair });
    }
}

#[test]
fn zstd_is_libzstd() {
    check("zstd", r#"{"level":1,"checksum":false}"#, zstd_plain, false);
}

#[test]
fn gzip_and_zlib_take_what_flate2_takes() {
    let gzip = HostProvider::new("flate2").with("gzip", |_, _| Ok(SimpleCodec::bytes_to_bytes(gzip_plain())));
    let zlib = HostProvider::new("flate2").with("numcodecs.zlib", |_, _| Ok(SimpleCodec::bytes_to_bytes(zlib_plain())));
    for (reference, codec) in [(gzip, extension("gzip", r#"{"level":5}"#)), (zlib, extension("numcodecs.zlib", r#"{"level":1}"#))] {
        let decoded = Representation::Bytes(ByteLen::Exact(4000));
        let gzip = codec.name == "gzip";
        let framing = if gzip { Framing::Gzip } else { Framing::Zlib };
        let pair = beside(reference, codec, decoded).diverging(deflate_reserved_symbols(framing, 4000, "cpu"));
        assert_conforms(if gzip { pair.diverging(gzip_header_crc(4000, "cpu")) } else { pair });
    }
}

/// RFC 1951 §3.2.6 has length symbols that never occur. zlib refuses them; libdeflate takes them for the longest length, so that the checksum decides.
#[test]
fn reserved_lengths_are_left_to_the_checksum() {
    // Zeros; one of the symbols is reserved.
    let head = [0x78, 0x01, 0x62, 0x18, 0x05];
    let body = [0xa3, 0x21, 0x30, 0x1a, 0x02, 0xa3, 0x21, 0x30, 0x1a, 0x02, 0xa3, 0x21, 0x30, 0x1e, 0x02];
    let more = [0xa3, 0x21, 0x30, 0x1a, 0x02].repeat(4);
    let tail = [0x80, 0x0d, 0x78, 0x08, 0x00, 0x00, 0x0f, 0xa0, 0x00, 0x01];
    let encoded = [&head[..], &body, &more, &tail].concat();
    assert_eq!((zlib_plain().decode)(&encoded, 4000), None);
    let stage = Stage {
        codec: extension("numcodecs.zlib", r#"{"level":1}"#),
        decoded: Representation::Bytes(ByteLen::Exact(4000)),
        encoded: Representation::Bytes(ByteLen::Exact(4000).compressed()),
    };
    let Segment::Host(segment) = zarr_codecs_cpu::provider().bind(&[stage], Direction::Decode).unwrap().unwrap().segment else { panic!() };
    let mut decoded = vec![1; 4000];
    let mut slots = [DecodeSlot { encoded: &encoded, decoded: Target::Exact(&mut decoded), status: Ok(()) }];
    segment.decode(&mut slots, &mut Scratch::new());
    let [slot] = slots;
    slot.status.unwrap();
    assert_eq!(decoded, vec![0; 4000]);
}

#[test]
fn crc32c_is_its_polynomial() {
    check("crc32c", "{}", crc32c_plain, true);
}

#[test]
fn shuffle_is_a_transpose() {
    check("numcodecs.shuffle", r#"{"elementsize":4}"#, shuffle_plain, true);
}

/// Elements with the last byte first.
#[derive(Debug)]
struct Reversed;

impl Reversed {
    fn reverse(representation: &ArrayRepresentation, bytes: &[u8]) -> Vec<u8> {
        let size = match representation.data_type {
            DataType::Complex64 => 4,
            _ => representation.data_type.fixed_size().unwrap(),
        };
        bytes.chunks_exact(size).flat_map(|element| element.iter().rev().copied()).collect()
    }
}

impl ArrayToBytes for Reversed {
    fn encoded_len(&self, decoded: &ArrayRepresentation, _: &Limits) -> Result<ByteLen, CodecError> {
        Ok(ByteLen::Exact(decoded.fixed_len("reversed")? as u64))
    }
    fn decode(&self, representation: &ArrayRepresentation, encoded: &[u8], decoded: &mut [u8]) -> Result<(), CodecError> {
        if encoded.len() != decoded.len() {
            return Err(bad());
        }
        decoded.copy_from_slice(&Self::reverse(representation, encoded));
        Ok(())
    }
    fn encode(&self, representation: &ArrayRepresentation, decoded: &[u8], encoded: &mut Vec<u8>) -> Result<(), CodecError> {
        encoded.extend(Self::reverse(representation, decoded));
        Ok(())
    }
}

#[test]
fn bytes_of_the_other_order_are_reversed() {
    for data_type in [DataType::Float16, DataType::Int32, DataType::Float32, DataType::Float64, DataType::Complex64] {
        let reference = HostProvider::new("plain").with("bytes", |_, _| Ok(SimpleCodec::array_to_bytes(Reversed)));
        let other = if cfg!(target_endian = "little") { "big" } else { "little" };
        let fill_value = FillValue::default_for(&data_type);
        let decoded = Representation::Array(ArrayRepresentation { data_type, shape: vec![5, 7], fill_value });
        assert_conforms(beside(reference, extension("bytes", &format!(r#"{{"endian":"{other}"}}"#)), decoded).deterministic());
    }
}

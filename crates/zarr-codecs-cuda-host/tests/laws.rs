//! The kernels hold the laws of `zarr-conformance`, beside libzstd and codecs that are too simple to be wrong. `zarr-gpu test --host` holds them to
//! `zarr-codecs-cpu`, with many more chains, types and values.

use std::sync::Arc;

use zarr_buffer_api::HostDevice;
use zarr_codec_api::{
    ArrayRepresentation, ArrayToBytes, ByteLen, BytesToBytes, CodecError, HostProvider, Limits, Registry, Representation, SimpleCodec,
};
use zarr_codecs_cuda_host::{HostOptions, host_provider};
use zarr_conformance::assert_conforms;
use zarr_conformance::codec::device::DeviceCodecUnderTest;
use zarr_conformance::codec::pair::{PairUnderTest, Side};
use zarr_meta::{DataType, Extension, FillValue, Json};

/// Elements as they lie in memory, or with their bytes reversed.
#[derive(Debug)]
struct Bytes {
    is_big: bool,
}

impl Bytes {
    fn copy(&self, array: &ArrayRepresentation, from: &[u8], to: &mut [u8]) {
        to.copy_from_slice(from);
        if self.is_big {
            to.chunks_exact_mut(array.data_type.fixed_size().unwrap()).for_each(<[u8]>::reverse);
        }
    }
}

impl ArrayToBytes for Bytes {
    fn encoded_len(&self, decoded: &ArrayRepresentation, _: &Limits) -> Result<ByteLen, CodecError> {
        Ok(ByteLen::Exact(decoded.fixed_len("bytes")? as u64))
    }
    fn decode(&self, array: &ArrayRepresentation, encoded: &[u8], decoded: &mut [u8]) -> Result<(), CodecError> {
        if encoded.len() != decoded.len() {
            return Err(CodecError::size("bytes", decoded.len(), encoded.len()));
        }
        self.copy(array, encoded, decoded);
        Ok(())
    }
    fn encode(&self, array: &ArrayRepresentation, decoded: &[u8], encoded: &mut Vec<u8>) -> Result<(), CodecError> {
        encoded.resize(decoded.len(), 0);
        self.copy(array, decoded, encoded);
        Ok(())
    }
}

/// The bytes of elements of this size, in planes.
#[derive(Debug)]
struct Shuffle(usize);

impl BytesToBytes for Shuffle {
    fn encoded_len(&self, decoded: ByteLen) -> ByteLen {
        decoded
    }
    fn decode(&self, encoded: &[u8], decoded: &mut [u8]) -> Result<(), CodecError> {
        if encoded.len() != decoded.len() {
            return Err(CodecError::size("shuffle", decoded.len(), encoded.len()));
        }
        let elements = encoded.len() / self.0;
        decoded.iter_mut().enumerate().for_each(|(at, byte)| *byte = encoded[at % self.0 * elements + at / self.0]);
        Ok(())
    }
    fn decode_growing(&self, encoded: &[u8], decoded: &mut Vec<u8>, _: usize) -> Result<(), CodecError> {
        decoded.resize(encoded.len(), 0);
        self.decode(encoded, decoded)
    }
    fn encode(&self, decoded: &[u8], encoded: &mut Vec<u8>) -> Result<(), CodecError> {
        let elements = decoded.len() / self.0;
        encoded.extend((0..decoded.len()).map(|at| decoded[at % elements * self.0 + at / elements]));
        Ok(())
    }
}

/// Bytes, and their CRC-32C behind them.
#[derive(Debug)]
struct Crc32c;

fn crc32c(bytes: &[u8]) -> [u8; 4] {
    let of_byte = |sum: u32, byte: &u8| (0..8).fold(sum ^ u32::from(*byte), |sum, _| sum >> 1 ^ (0x82f6_3b78 * (sum & 1)));
    (!bytes.iter().fold(!0, of_byte)).to_le_bytes()
}

impl BytesToBytes for Crc32c {
    fn encoded_len(&self, decoded: ByteLen) -> ByteLen {
        decoded.plus(4)
    }
    fn decode(&self, encoded: &[u8], decoded: &mut [u8]) -> Result<(), CodecError> {
        let (data, checksum) = encoded.split_at(encoded.len().saturating_sub(4));
        if data.len() != decoded.len() || checksum != crc32c(data) {
            return Err(CodecError::format("crc32c", "another size or checksum"));
        }
        decoded.copy_from_slice(data);
        Ok(())
    }
    fn decode_growing(&self, encoded: &[u8], decoded: &mut Vec<u8>, _: usize) -> Result<(), CodecError> {
        decoded.resize(encoded.len().saturating_sub(4), 0);
        self.decode(encoded, decoded)
    }
    fn encode(&self, decoded: &[u8], encoded: &mut Vec<u8>) -> Result<(), CodecError> {
        encoded.extend_from_slice(decoded);
        encoded.extend(crc32c(decoded));
        Ok(())
    }
}

/// What libzstd says.
#[derive(Debug)]
struct Zstd;

impl BytesToBytes for Zstd {
    fn encoded_len(&self, decoded: ByteLen) -> ByteLen {
        decoded.compressed()
    }
    fn decode(&self, encoded: &[u8], decoded: &mut [u8]) -> Result<(), CodecError> {
        let found = zstd::bulk::decompress_to_buffer(encoded, decoded).map_err(|error| CodecError::format("zstd", error.to_string()))?;
        // The library takes nothing for no frames.
        if found != decoded.len() || encoded.is_empty() {
            return Err(CodecError::size("zstd", decoded.len(), found));
        }
        Ok(())
    }
    fn decode_growing(&self, encoded: &[u8], decoded: &mut Vec<u8>, limit: usize) -> Result<(), CodecError> {
        *decoded = zstd::bulk::decompress(encoded, limit).map_err(|error| CodecError::format("zstd", error.to_string()))?;
        Ok(())
    }
    fn encode(&self, decoded: &[u8], encoded: &mut Vec<u8>) -> Result<(), CodecError> {
        *encoded = zstd::bulk::compress(decoded, 3).map_err(|error| CodecError::parameter("zstd", error.to_string()))?;
        Ok(())
    }
}

fn reference() -> HostProvider {
    HostProvider::new("libzstd")
        .with("bytes", |codec, _| Ok(SimpleCodec::array_to_bytes(Bytes { is_big: codec.to_json().to_text().contains("big") })))
        .with("numcodecs.shuffle", |codec, _| {
            let size = codec.configuration.as_ref().and_then(|configuration| configuration.get("elementsize")?.as_u64());
            Ok(SimpleCodec::bytes_to_bytes(Shuffle(size.unwrap_or(4) as usize)))
        })
        .with("crc32c", |_, _| Ok(SimpleCodec::bytes_to_bytes(Crc32c)))
        .with("zstd", |_, _| Ok(SimpleCodec::bytes_to_bytes(Zstd)))
}

fn extension(text: &str) -> Extension {
    Extension::parse(&Json::parse(text.as_bytes()).unwrap()).unwrap()
}

fn bytes() -> Extension {
    extension(r#"{"name":"bytes","configuration":{"endian":"little"}}"#)
}

fn zstd_codec() -> Extension {
    extension(r#"{"name":"zstd","configuration":{"level":3,"checksum":false}}"#)
}

fn array(data_type: DataType, shape: &[u64]) -> ArrayRepresentation {
    ArrayRepresentation { fill_value: FillValue::default_for(&data_type), data_type, shape: shape.to_vec() }
}

#[test]
#[cfg_attr(target_endian = "big", ignore = "the kernels are for little-endian machines")]
fn chains_hold_the_laws() {
    for (seed, shape) in [(1, &[5, 7][..]), (2, &[6, 10, 11]), (3, &[]), (4, &[3, 0])] {
        for codecs in [&[bytes()][..], &[bytes(), zstd_codec()]] {
            for data_type in [DataType::Float32, DataType::UInt8] {
                let provider = Arc::new(host_provider(HostOptions::default().with_seed(seed)));
                let host = Registry::new().with(reference());
                let subject = DeviceCodecUnderTest::new(Arc::new(HostDevice), provider, &host, codecs, array(data_type, shape)).unwrap();
                assert_conforms(subject.with_many(20));
            }
        }
    }
}

/// One pass over the elements, behind frames and checksums on either side of them.
#[test]
#[cfg_attr(target_endian = "big", ignore = "the kernels are for little-endian machines")]
fn what_is_around_elements_holds_the_laws() {
    let big = || extension(r#"{"name":"bytes","configuration":{"endian":"big"}}"#);
    let shuffle = |size| extension(&format!(r#"{{"name":"numcodecs.shuffle","configuration":{{"elementsize":{size}}}}}"#));
    let crc = || extension(r#"{"name":"crc32c"}"#);
    let chains = [
        (DataType::Int16, vec![bytes(), crc()]),
        (DataType::Float32, vec![big(), shuffle(4)]),
        (DataType::Float64, vec![big(), shuffle(3), crc(), crc()]),
        (DataType::UInt32, vec![bytes(), shuffle(4), crc(), zstd_codec(), crc()]),
    ];
    for (seed, (data_type, codecs)) in chains.into_iter().enumerate() {
        for shape in [&[6, 50][..], &[3, 2, 1]] {
            let provider = Arc::new(host_provider(HostOptions::default().with_seed(seed as u64)));
            let host = Registry::new().with(reference());
            let decoded = array(data_type.clone(), shape);
            let subject = DeviceCodecUnderTest::new(Arc::new(HostDevice), provider, &host, &codecs, decoded).unwrap();
            assert_conforms(subject.with_many(20));
        }
    }
}

#[test]
fn the_checksum_of_the_specification() {
    // RFC 3720, appendix B.4, and the check value of the catalogues.
    assert_eq!(crc32c(&[0; 32]), 0x8a91_36aau32.to_le_bytes());
    assert_eq!(crc32c(b"123456789"), 0xe306_9283u32.to_le_bytes());
}

#[test]
#[cfg_attr(target_endian = "big", ignore = "the kernels are for little-endian machines")]
fn frames_are_judged_as_libzstd_judges_them() {
    for len in [1, 2000, 140_000] {
        let other = Side::on_device(Arc::new(host_provider(HostOptions::default())), Arc::new(HostDevice));
        let decoded = Representation::Bytes(ByteLen::Exact(len));
        let pair = PairUnderTest::new(Side::on_host(Arc::new(reference())), other, vec![zstd_codec()], decoded);
        assert_conforms(pair.with_many(if len > 100_000 { 5 } else { 50 }));
    }
}

//! The kernels hold the laws of `zarr-conformance`, beside libzstd.

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

/// Elements as they lie in memory.
#[derive(Debug)]
struct Bytes;

impl ArrayToBytes for Bytes {
    fn encoded_len(&self, decoded: &ArrayRepresentation, _: &Limits) -> Result<ByteLen, CodecError> {
        Ok(ByteLen::Exact(decoded.fixed_len("bytes")? as u64))
    }
    fn decode(&self, _: &ArrayRepresentation, encoded: &[u8], decoded: &mut [u8]) -> Result<(), CodecError> {
        if encoded.len() != decoded.len() {
            return Err(CodecError::size("bytes", decoded.len(), encoded.len()));
        }
        decoded.copy_from_slice(encoded);
        Ok(())
    }
    fn encode(&self, _: &ArrayRepresentation, decoded: &[u8], encoded: &mut Vec<u8>) -> Result<(), CodecError> {
        encoded.extend_from_slice(decoded);
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
        .with("bytes", |_, _| Ok(SimpleCodec::array_to_bytes(Bytes)))
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

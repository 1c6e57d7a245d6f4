//! Encoded chunks of reference implementations: ours decode them, and codecs that only agree with themselves do not.

use std::sync::Arc;

use zarr_codec_api::{ByteLen, BytesToBytes, CodecError, HostProvider, Representation, SimpleCodec};
use zarr_conformance::codec::CodecUnderTest;
use zarr_conformance::codec::vectors::VectorsUnderTest;
use zarr_conformance::vectors::{Verdict, directory, load_chunks};
use zarr_conformance::{Suite, assert_conforms};
use zarr_meta::{Extension, Json};

#[test]
fn ours_decode_them() {
    let vectors = load_chunks(&directory()).unwrap();
    assert!(vectors.len() > 130, "{}", vectors.len());
    for verdict in [Verdict::MustAccept, Verdict::MustReject] {
        assert!(vectors.iter().filter(|vector| vector.verdict == verdict).count() > 20);
    }
    assert_conforms(VectorsUnderTest::new(Arc::new(zarr_codecs_cpu::provider()), vectors));
}

/// Bytes before their CRC-32C, which may be inverted, and may be ignored.
#[derive(Debug, Clone, Copy)]
struct Sum {
    mask: u32,
    checks: bool,
}

impl Sum {
    fn of(self, bytes: &[u8]) -> [u8; 4] {
        (crc32c::crc32c(bytes) ^ self.mask).to_le_bytes()
    }

    fn body(self, encoded: &[u8]) -> Result<&[u8], CodecError> {
        match encoded.split_last_chunk() {
            Some((body, sum)) if !self.checks || *sum == self.of(body) => Ok(body),
            _ => Err(CodecError::format("crc32c", "a wrong checksum")),
        }
    }
}

impl BytesToBytes for Sum {
    fn encoded_len(&self, decoded: ByteLen) -> ByteLen {
        decoded.plus(4)
    }
    fn decode(&self, encoded: &[u8], decoded: &mut [u8]) -> Result<(), CodecError> {
        let body = self.body(encoded)?;
        if body.len() != decoded.len() {
            return Err(CodecError::size("crc32c", decoded.len(), body.len()));
        }
        decoded.copy_from_slice(body);
        Ok(())
    }
    fn decode_growing(&self, encoded: &[u8], decoded: &mut Vec<u8>, limit: usize) -> Result<(), CodecError> {
        let body = self.body(encoded)?;
        if body.len() > limit {
            return Err(CodecError::limit("crc32c", limit));
        }
        decoded.extend(body);
        Ok(())
    }
    fn encode(&self, decoded: &[u8], encoded: &mut Vec<u8>) -> Result<(), CodecError> {
        encoded.extend([decoded, &self.of(decoded)].concat());
        Ok(())
    }
}

/// All laws of codecs, and the vectors.
fn suites(sum: Sum) -> [Suite; 2] {
    let provider = Arc::new(HostProvider::new("sums").with("crc32c", move |_, _| Ok(SimpleCodec::bytes_to_bytes(sum))));
    let codec = Extension::parse(&Json::parse(br#"{"name":"crc32c"}"#).unwrap()).unwrap();
    let laws = CodecUnderTest::new(Arc::clone(&provider) as _, codec, Representation::Bytes(ByteLen::Exact(1000)));
    [laws.deterministic().into(), VectorsUnderTest::of(provider, "crc32c").unwrap().into()]
}

#[test]
fn the_right_one_decodes_them() {
    suites(Sum { mask: 0, checks: true }).iter().for_each(|suite| suite.run(&Default::default()).assert_conforms());
}

/// Nothing but the vectors finds them.
#[test]
fn wrong_ones_are_found_by_vectors_alone() {
    for (sum, case) in
        [(Sum { mask: !0, checks: true }, "vectors/crc32c/ramp"), (Sum { mask: 0, checks: false }, "vectors/crc32c/wrong-checksum")]
    {
        let [laws, vectors] = suites(sum);
        laws.run(&Default::default()).assert_conforms();
        let report = vectors.run(&Default::default());
        assert_eq!(report.failures().map(|(id, _)| id).collect::<Vec<_>>(), [case], "{report}");
        assert!(vectors.without_law("vectors").run(&Default::default()).conforms());
    }
}

//! Bytes of the reference implementations, read; and what we write, read back.

mod common;

use common::{decode, decode_growing, encode, golden};
use zarr_codec_api::CodecErrorKind;

#[test]
fn reference_bytes_decode() {
    for case in golden() {
        let len = case.decoded.len();
        let decoded = decode(&*case.codec, case.encoded, len).unwrap_or_else(|error| panic!("{case}: {error}"));
        assert!(decoded == case.decoded, "{case}");
        for limit in [len, len + 1, 10 * len + 1000] {
            let decoded = decode_growing(&*case.codec, case.encoded, limit).unwrap_or_else(|error| panic!("{case}: {error}"));
            assert!(decoded == case.decoded, "{case}, limit {limit}");
        }
    }
}

#[test]
fn other_sizes_are_refused() {
    for case in golden() {
        let len = case.decoded.len();
        for wrong in [Some(len + 1), len.checked_sub(1), Some(2 * len + 100), (len > 0).then_some(0)].into_iter().flatten() {
            let error = decode(&*case.codec, case.encoded, wrong).err().unwrap_or_else(|| panic!("{case} as {wrong}"));
            assert_eq!(error.kind(), CodecErrorKind::Format, "{case} as {wrong}: {error}");
        }
        for limit in [len.checked_sub(1), len.checked_sub(len / 2 + 1)].into_iter().flatten() {
            let error = decode_growing(&*case.codec, case.encoded, limit).err().unwrap_or_else(|| panic!("{case}, limit {limit}"));
            assert_eq!(error.kind(), CodecErrorKind::Limit, "{case}, limit {limit}: {error}");
        }
    }
}

#[test]
fn what_we_encode_decodes() {
    for case in golden() {
        let encoded = encode(&*case.codec, &case.decoded);
        if case.exact {
            assert!(encoded == case.encoded, "{case}: encodes otherwise than the reference does");
        }
        let decoded = decode(&*case.codec, &encoded, case.decoded.len()).unwrap_or_else(|error| panic!("{case}: {error}"));
        assert!(decoded == case.decoded, "{case}");
        let upper = case.codec.encoded_len(zarr_codec_api::ByteLen::Exact(case.decoded.len() as u64)).upper();
        assert!(encoded.len() as u64 <= upper, "{case}: {} bytes, more than the {upper} announced", encoded.len());
        // As small as what the reference makes, give or take.
        assert!(encoded.len() <= case.encoded.len() + case.encoded.len() / 3 + 32, "{case}: {} for {}", encoded.len(), case.encoded.len());
    }
}

#[test]
fn vectors_with_room_are_used_as_they_are() {
    for case in golden() {
        let mut encoded = Vec::with_capacity(2 * case.decoded.len() + (1 << 17));
        let place = encoded.as_ptr();
        case.codec.encode(&case.decoded, &mut encoded).unwrap();
        assert_eq!(encoded.as_ptr(), place, "{case}");
    }
}

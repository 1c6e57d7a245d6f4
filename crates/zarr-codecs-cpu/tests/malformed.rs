//! Damaged bytes: whatever they are, decoding returns; and damage that a format can see is an error.

mod common;

use common::{Golden, codec, decode, decode_growing, decode_in_blocks, encode, generate, golden};
use proptest::prelude::*;
use zarr_codec_api::{BytesToBytes, CodecErrorKind};

/// Small cases, one or two of each kind.
fn samples() -> Vec<Golden> {
    let mut seen: Vec<String> = Vec::new();
    let mut cases = golden();
    cases.retain(|case| {
        let key = format!("{}{}", case.metadata, case.decoded.len() > 1000);
        let keep = case.encoded.len() < 3000 && !seen.contains(&key);
        seen.push(key);
        keep
    });
    cases
}

/// Decodes to the right size, to wrong ones, and to a size not known before.
fn try_all(codec: &dyn BytesToBytes, encoded: &[u8], len: usize) -> bool {
    let exact = decode(codec, encoded, len).is_ok();
    let _ = decode(codec, encoded, len / 2);
    let growing = decode_growing(codec, encoded, 2 * len + 10);
    assert!(growing.is_err() || growing.unwrap().len() <= 2 * len + 10);
    exact
}

#[test]
fn every_truncation_is_an_error() {
    for case in samples() {
        let step = (case.encoded.len() / 200).max(1);
        for end in (0..case.encoded.len()).step_by(step) {
            let cut = &case.encoded[..end];
            // Ends of members, streams, padding: what is cut off there is whole.
            let decodes = decode(&*case.codec, cut, case.decoded.len()).is_ok_and(|decoded| decoded == case.decoded);
            let may = ["gzip", "zlib", "zstd", "bz2", "lzma"].iter().any(|name| case.name.ends_with(name));
            assert!(!decodes || may, "{case} cut to {end} of {}", case.encoded.len());
            let _ = decode_growing(&*case.codec, cut, case.decoded.len());
        }
    }
}

#[test]
fn flipped_bits_do_not_panic() {
    let mut state = 1u64;
    for case in samples() {
        for _ in 0..100 {
            let mut encoded = case.encoded.to_vec();
            for _ in 0..state % 3 + 1 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                // Headers get their share.
                let range = if state & 1 == 0 { encoded.len() } else { encoded.len().min(48) };
                let bit = (state >> 20) as usize % (range * 8);
                encoded[bit / 8] ^= 1 << (bit % 8);
            }
            let decodes = try_all(&*case.codec, &encoded, case.decoded.len());
            // The other checksums promise less.
            if case.name.contains("crc32") {
                assert!(!decodes || encoded == case.encoded, "{case}: a CRC missed up to three flipped bits");
            }
        }
    }
}

#[test]
fn bytes_behind_the_end() {
    let data = generate("ramp", 2000);
    for (metadata, accepted) in [
        (r#"{"name": "zstd", "configuration": {"level": 1}}"#, false),
        (r#"{"name": "gzip", "configuration": {"level": 1}}"#, false),
        (r#"{"name": "blosc", "configuration": {"cname": "lz4", "clevel": 5, "shuffle": "noshuffle", "blocksize": 0}}"#, false),
        (r#"{"name": "numcodecs.lz4", "configuration": {}}"#, false),
        (r#"{"name": "crc32c"}"#, false),
        (r#"{"name": "numcodecs.zlib", "configuration": {}}"#, true),
        (r#"{"name": "numcodecs.bz2", "configuration": {}}"#, true),
        (r#"{"name": "numcodecs.lzma", "configuration": {}}"#, true),
    ] {
        let codec = codec(metadata);
        let mut encoded = encode(&*codec, &data);
        for byte in [0x41, 0, 0xff, 0x1f] {
            encoded.push(byte);
            assert_eq!(decode(&*codec, &encoded, data.len()).is_ok(), accepted, "{metadata}");
            assert_eq!(decode_growing(&*codec, &encoded, data.len() + 10).is_ok(), accepted, "{metadata}");
        }
        assert!(decode(&*codec, &[], data.len()).is_err(), "{metadata}");
    }
}

#[test]
fn zstd_says_what_is_wrong() {
    let codec = codec(r#"{"name": "zstd", "configuration": {"level": 1, "checksum": true}}"#);
    let data = generate("ramp", 500);
    let good = encode(&*codec, &data);
    let message = |encoded: &[u8]| {
        let error = decode(&*codec, encoded, 500).unwrap_err();
        (error.kind(), error.message().to_owned(), error.offset())
    };
    let trailing = [&good[..], b"abcdef"].concat();
    assert_eq!(message(&trailing).2, Some(good.len() as u64));
    let mut checksum = good.clone();
    *checksum.last_mut().unwrap() ^= 1;
    assert!(message(&checksum).1.contains("checksum"), "{:?}", message(&checksum));
    // A frame that names dictionary 7.
    let dictionary = [0x28, 0xb5, 0x2f, 0xfd, 0x21, 7, 1, 1 | 1 << 3, 0, 0, b'x'];
    assert_eq!(message(&dictionary).0, CodecErrorKind::Unsupported);
    assert!(message(b"not zstd at all").1.contains("no frame"));
    assert!(message(&good[..good.len() - 7]).1.contains("cut short"));
}

fn blocks(chunk: &[u8]) -> usize {
    let number = |offset: usize| u32::from_le_bytes(chunk[offset..offset + 4].try_into().unwrap()) as usize;
    number(4).div_ceil(number(8))
}

#[test]
fn blosc_headers_are_checked() {
    let codec = codec(
        r#"{"name": "blosc", "configuration": {"cname": "lz4", "clevel": 5, "shuffle": "shuffle", "typesize": 4, "blocksize": 8192}}"#,
    );
    let data = generate("ramp", 200_000);
    let good = encode(&*codec, &data);
    assert!(decode(&*codec, &good, data.len()).unwrap() == data);
    let with = |offset: usize, bytes: &[u8]| {
        let mut bad = good.clone();
        bad[offset..offset + bytes.len()].copy_from_slice(bytes);
        bad
    };
    for (what, bad) in [
        ("version", with(0, &[3])),
        ("version of the inner codec", with(1, &[2])),
        ("reserved flag", with(2, &[good[2] | 8])),
        ("unknown inner codec", with(2, &[good[2] | 0xe0])),
        ("stored, but of another length", with(2, &[good[2] | 2])),
        ("type size 0", with(3, &[0])),
        ("type size that does not divide the block", with(3, &[7])),
        ("decoded size", with(4, &199_999u32.to_le_bytes())),
        ("negative decoded size", with(4, &u32::MAX.to_le_bytes())),
        ("block size 0", with(8, &0u32.to_le_bytes())),
        ("block size past the end", with(8, &200_001u32.to_le_bytes())),
        ("negative block size", with(8, &u32::MAX.to_le_bytes())),
        ("block size 1", with(8, &1u32.to_le_bytes())),
        ("encoded size", with(12, &(good.len() as u32 - 1).to_le_bytes())),
        ("block offset past the end", with(16, &(good.len() as u32).to_le_bytes())),
        ("negative block offset", with(16, &u32::MAX.to_le_bytes())),
        ("block offset into the header", with(16, &3u32.to_le_bytes())),
        ("every block at the same place", with(16, &good[16..20].repeat(blocks(&good)))),
    ] {
        let error = decode(&*codec, &bad, data.len()).err().unwrap_or_else(|| panic!("{what} is accepted"));
        assert_eq!(error.kind(), CodecErrorKind::Format, "{what}: {error}");
        assert!(decode_growing(&*codec, &bad, data.len()).is_err(), "{what} is accepted");
    }
}

/// Holds the fronts of blocks to what was encoded.
fn check_fronts(codec: &dyn BytesToBytes, encoded: &[u8], data: &[u8]) {
    let Some(blocks) = codec.blocks(encoded, data.len()) else { return };
    for (index, block) in data.chunks(blocks.block_len()).enumerate() {
        for wanted in [0, 1, block.len() / 3, block.len() - 1, block.len()] {
            let mut front = vec![0xA5; wanted];
            if let Some(done) = blocks.decode_front(index, &mut front) {
                assert!(done.is_ok() && front == block[..wanted], "{wanted} bytes of block {index} of {codec:?}: {done:?}");
            }
        }
        assert!(blocks.decode_front(index, &mut vec![0; block.len() + 1]).is_none_or(|done| done.is_err()), "more than block {index}");
    }
}

#[test]
fn blosc_decodes_block_by_block() {
    let data = generate("ramp", 200_003);
    for cname in ["blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd"] {
        for shuffle in ["noshuffle", "shuffle", "bitshuffle"] {
            for type_size in [1, 2, 3, 4, 8, 17, 255] {
                for block_size in [1024, 4096, 65_536, 100_000] {
                    let codec = codec(&format!(
                        r#"{{"name": "blosc", "configuration": {{"cname": "{cname}", "clevel": 5, "shuffle": "{shuffle}", "typesize": {type_size}, "blocksize": {block_size}}}}}"#
                    ));
                    let encoded = encode(&*codec, &data);
                    let stored = encoded[2] & 2 != 0;
                    let small = u32::from_le_bytes(encoded[8..12].try_into().unwrap()) < 1024;
                    let decoded = decode_in_blocks(&*codec, &encoded, data.len());
                    assert_eq!(decoded.is_some(), !stored && !small, "{cname} {shuffle} {type_size} {block_size}");
                    assert!(decoded.is_none_or(|decoded| decoded.unwrap() == data), "{cname} {shuffle} {type_size} {block_size}");
                    assert!(codec.blocks(&encoded, data.len() - 1).is_none(), "another length than the header says");
                    check_fronts(&*codec, &encoded, &data);
                }
            }
        }
    }
    // One block: where it has a front.
    let one = |cname: &str, shuffle: &str| {
        codec(&format!(
            r#"{{"name": "blosc", "configuration": {{"cname": "{cname}", "clevel": 5, "shuffle": "{shuffle}", "typesize": 4, "blocksize": 8192}}}}"#
        ))
    };
    for (cname, shuffle, has_front) in [
        ("lz4", "shuffle", true),
        ("lz4hc", "shuffle", true),
        ("lz4", "bitshuffle", false),
        ("zstd", "shuffle", false),
        ("zlib", "noshuffle", false),
    ] {
        let codec = one(cname, shuffle);
        let encoded = encode(&*codec, &data[..8192]);
        let blocks = codec.blocks(&encoded, 8192);
        assert_eq!(blocks.is_some(), has_front, "{cname} {shuffle}");
        let Some(blocks) = blocks else { continue };
        for wanted in 0..=8192 {
            let mut front = vec![0xA5; wanted];
            blocks.decode_front(0, &mut front).unwrap().unwrap();
            assert!(front == data[..wanted], "{wanted} bytes of {cname}");
        }
        // What is behind the front is not looked at; what is in it, is.
        let start = u32::from_le_bytes(encoded[16..20].try_into().unwrap()) as usize;
        for (at, good) in [(encoded.len() - 1, true), (start + 4, false)] {
            let mut bad = encoded.clone();
            bad[at] ^= 0xF0;
            let mut front = vec![0; 64];
            let done = codec.blocks(&bad, 8192).unwrap().decode_front(0, &mut front).unwrap();
            assert_eq!(done.is_ok() && front == data[..64], good, "{cname}, byte {at}");
        }
    }
    let codec = one("lz4", "shuffle");
    // Bytes that do not shrink.
    let noise: Vec<u8> = generate("noise", 800_000).into_iter().step_by(4).collect();
    let encoded = encode(&*codec, &noise);
    assert!(decode(&*codec, &encoded, noise.len()).unwrap() == noise);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn anything_at_all(bytes in prop::collection::vec(any::<u8>(), 0..200), len in 0usize..300) {
        for metadata in [
            r#"{"name": "zstd", "configuration": {"level": 1}}"#,
            r#"{"name": "gzip", "configuration": {"level": 1}}"#,
            r#"{"name": "numcodecs.zlib", "configuration": {}}"#,
            r#"{"name": "blosc", "configuration": {"cname": "lz4", "clevel": 5, "shuffle": "noshuffle"}}"#,
            r#"{"name": "numcodecs.lz4", "configuration": {}}"#,
            r#"{"name": "numcodecs.bz2", "configuration": {}}"#,
            r#"{"name": "numcodecs.lzma", "configuration": {"format": 0}}"#,
            r#"{"name": "numcodecs.lzma", "configuration": {"format": 3, "filters": [{"id": 33}]}}"#,
            r#"{"name": "crc32c"}"#,
        ] {
            try_all(&*codec(metadata), &bytes, len);
        }
    }

    #[test]
    fn anything_in_a_blosc_block(
        stream in prop::collection::vec(any::<u8>(), 0..120),
        flags in any::<u8>(),
        type_size in 1u8..20,
        len in 1usize..400,
        block_size in 1usize..400,
        offset in 0u8..40,
    ) {
        let blocks = len.div_ceil(block_size);
        let mut encoded = vec![2, 1, flags & !0x0a, type_size];
        encoded.extend((len as u32).to_le_bytes());
        encoded.extend((block_size as u32).to_le_bytes());
        encoded.extend(0u32.to_le_bytes());
        encoded.extend((0..blocks).flat_map(|_| (16 + 4 * blocks as u32 + u32::from(offset / 20)).to_le_bytes()));
        encoded.extend((stream.len() as u32).to_le_bytes());
        encoded.extend(stream);
        let total = encoded.len() as u32;
        encoded[12..16].copy_from_slice(&total.to_le_bytes());
        let codec = codec(r#"{"name": "blosc", "configuration": {"cname": "lz4", "clevel": 5, "shuffle": "noshuffle"}}"#);
        try_all(&*codec, &encoded, len);
    }

    #[test]
    fn everything_comes_back(
        data in prop_oneof![
            prop::collection::vec(any::<u8>(), 0..2000),
            prop::collection::vec(0u8..4, 0..6000),
            (0usize..300_000).prop_map(|len| generate("ramp", len)),
        ],
        cname in prop::sample::select(vec!["blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd"]),
        shuffle in prop::sample::select(vec!["noshuffle", "shuffle", "bitshuffle"]),
        type_size in prop::sample::select(vec![1u32, 2, 3, 4, 7, 8, 12, 16, 17, 32, 255, 256]),
        level in 0u8..=6,
        block_size in prop::sample::select(vec![0u32, 1, 1000, 4096, 100_000]),
    ) {
        let blosc = format!(
            r#"{{"name": "blosc", "configuration": {{"cname": "{cname}", "clevel": {level}, "shuffle": "{shuffle}", "typesize": {type_size}, "blocksize": {block_size}}}}}"#
        );
        for metadata in [
            blosc.as_str(),
            r#"{"name": "zstd", "configuration": {"level": -3, "checksum": true}}"#,
            r#"{"name": "gzip", "configuration": {"level": 3}}"#,
            r#"{"name": "numcodecs.zlib", "configuration": {}}"#,
            r#"{"name": "numcodecs.lz4", "configuration": {"acceleration": 3}}"#,
            r#"{"name": "crc32c"}"#,
        ] {
            let codec = codec(metadata);
            let encoded = encode(&*codec, &data);
            prop_assert!(decode(&*codec, &encoded, data.len()).unwrap() == data, "{}", metadata);
            prop_assert!(decode_growing(&*codec, &encoded, data.len()).unwrap() == data, "{}", metadata);
        }
    }
}

//! Which configurations are read, and which are not.

mod common;

use common::{decode, encode, generate, make};
use zarr_codec_api::{CodecErrorKind, SimpleCodec};
use zarr_meta::Json;

fn kind(metadata: &str) -> Result<(), CodecErrorKind> {
    make(&Json::parse(metadata.as_bytes()).unwrap()).map(drop).map_err(|error| {
        assert!(!error.message().is_empty() && metadata.contains(error.codec()), "{error}");
        error.kind()
    })
}

#[test]
fn accepted() {
    for metadata in [
        // The checksum key is optional, and absent from what older writers and conversions from version 2 leave.
        r#"{"name": "zstd", "configuration": {"level": 0}}"#,
        r#"{"name": "zstd", "configuration": {"level": -131072, "checksum": true}}"#,
        r#"{"name": "zstd", "configuration": {"level": 22, "checksum": false}}"#,
        r#"{"name": "zstd"}"#,
        r#"{"name": "numcodecs.zstd", "configuration": {"level": 1, "checksum": false}}"#,
        r#"{"name": "gzip", "configuration": {"level": 0}}"#,
        r#"{"name": "gzip", "configuration": {"level": 9}}"#,
        r#"{"name": "numcodecs.gzip", "configuration": {"level": -1}}"#,
        r#"{"name": "numcodecs.gzip", "configuration": {}}"#,
        r#"{"name": "numcodecs.zlib"}"#,
        r#"{"name": "crc32c"}"#,
        r#"{"name": "crc32c", "configuration": {}}"#,
        r#"{"name": "numcodecs.crc32c", "configuration": {"location": null}}"#,
        r#"{"name": "numcodecs.lz4"}"#,
        r#"{"name": "numcodecs.lz4", "configuration": {"acceleration": -5}}"#,
        r#"{"name": "blosc", "configuration": {"cname": "lz4", "clevel": 5, "shuffle": "noshuffle", "blocksize": 0}}"#,
        r#"{"name": "blosc", "configuration": {"cname": "lz4hc", "clevel": 9, "shuffle": "shuffle", "typesize": 4, "blocksize": 0}}"#,
        // Written by others than the specification knows: no block size, a large type size, numbers for the shuffle.
        r#"{"name": "blosc", "configuration": {"cname": "zstd", "clevel": 1, "shuffle": "bitshuffle", "typesize": 1000}}"#,
        r#"{"name": "blosc", "configuration": {"cname": "zstd", "clevel": 1, "shuffle": 2, "typesize": 4}}"#,
        r#"{"name": "numcodecs.blosc"}"#,
        r#"{"name": "numcodecs.blosc", "configuration": {"cname": "lz4", "clevel": 5, "shuffle": -1, "blocksize": 0}}"#,
        r#"{"name": "numcodecs.blosc", "configuration": {"cname": "snappy", "clevel": 5, "shuffle": -1, "blocksize": 0, "typesize": 8}}"#,
        r#"{"name": "numcodecs.shuffle", "configuration": {"elementsize": 0}}"#,
        r#"{"name": "numcodecs.bz2", "configuration": {"level": 9}}"#,
        r#"{"name": "numcodecs.lzma", "configuration": {"format": 0}}"#,
        r#"{"name": "numcodecs.lzma", "configuration": {"preset": 2147483657}}"#,
        r#"{"name": "numcodecs.jenkins_lookup3", "configuration": {"initval": 0, "prefix": null}}"#,
        r#"{"name": "https://codec.zarrs.dev/bytes_to_bytes/fletcher32"}"#,
    ] {
        assert_eq!(kind(metadata), Ok(()), "{metadata}");
    }
}

#[test]
fn refused() {
    for metadata in [
        r#"{"name": "zstd", "configuration": {"level": 23}}"#,
        r#"{"name": "zstd", "configuration": {"level": -131073}}"#,
        r#"{"name": "zstd", "configuration": {"level": 1.5}}"#,
        r#"{"name": "zstd", "configuration": {"level": 1, "window": 3}}"#,
        r#"{"name": "gzip"}"#,
        r#"{"name": "gzip", "configuration": {"level": -1}}"#,
        r#"{"name": "gzip", "configuration": {"level": 10}}"#,
        r#"{"name": "numcodecs.zlib", "configuration": {"level": 10}}"#,
        r#"{"name": "crc32c", "configuration": {"location": "end"}}"#,
        r#"{"name": "numcodecs.crc32", "configuration": {"location": "middle"}}"#,
        r#"{"name": "blosc"}"#,
        r#"{"name": "blosc", "configuration": {"cname": "lz5", "clevel": 5, "shuffle": "noshuffle"}}"#,
        r#"{"name": "blosc", "configuration": {"cname": "lz4", "clevel": 10, "shuffle": "noshuffle"}}"#,
        r#"{"name": "blosc", "configuration": {"cname": "lz4", "clevel": 5, "shuffle": "both"}}"#,
        r#"{"name": "blosc", "configuration": {"cname": "lz4", "clevel": 5, "shuffle": 3}}"#,
        r#"{"name": "blosc", "configuration": {"cname": "lz4", "clevel": -1, "shuffle": 0}}"#,
        r#"{"name": "numcodecs.bz2", "configuration": {"level": 0}}"#,
        r#"{"name": "numcodecs.lzma", "configuration": {"format": 3}}"#,
        r#"{"name": "numcodecs.lzma", "configuration": {"format": 4}}"#,
        r#"{"name": "numcodecs.lzma", "configuration": {"check": 2}}"#,
        r#"{"name": "numcodecs.lzma", "configuration": {"preset": 10}}"#,
        r#"{"name": "numcodecs.lzma", "configuration": {"preset": 1, "filters": []}}"#,
        r#"{"name": "numcodecs.lzma", "configuration": {"filters": [{"id": 34}]}}"#,
        r#"{"name": "numcodecs.lzma", "configuration": {"filters": [{"id": 3, "dist": 257}]}}"#,
    ] {
        assert_eq!(kind(metadata), Err(CodecErrorKind::Metadata), "{metadata}");
    }
}

/// Which shuffle the third byte of the header names, for one configuration.
fn blosc_flags(configuration: &str) -> u8 {
    let codec = common::codec(&format!(r#"{{"name": "numcodecs.blosc", "configuration": {configuration}}}"#));
    encode(&*codec, &generate("ramp", 4000))[2] & 5
}

#[test]
fn automatic_shuffle_goes_by_type_size() {
    assert_eq!(blosc_flags(r#"{"shuffle": -1}"#), 4);
    assert_eq!(blosc_flags(r#"{"shuffle": -1, "typesize": 1}"#), 4);
    assert_eq!(blosc_flags(r#"{"shuffle": -1, "typesize": 4}"#), 1);
    assert_eq!(blosc_flags(r#"{"shuffle": 0, "typesize": 4}"#), 0);
    assert_eq!(blosc_flags(r#"{"shuffle": 2, "typesize": 4}"#), 4);
}

#[test]
fn blosc_reads_without_typesize_and_does_not_write() {
    let writer =
        common::codec(r#"{"name": "blosc", "configuration": {"cname": "zstd", "clevel": 3, "shuffle": "bitshuffle", "typesize": 4}}"#);
    // Another inner codec, another shuffle: the header wins.
    let reader = common::codec(r#"{"name": "blosc", "configuration": {"cname": "lz4", "clevel": 3, "shuffle": "shuffle"}}"#);
    let data = generate("ramp", 4000);
    assert_eq!(decode(&*reader, &encode(&*writer, &data), data.len()).unwrap(), data);
    assert_eq!(reader.encode(&data, &mut Vec::new()).unwrap_err().kind(), CodecErrorKind::Metadata);
}

#[test]
fn checksums_are_views() {
    for metadata in [r#"{"name": "crc32c"}"#, r#"{"name": "numcodecs.adler32"}"#] {
        let SimpleCodec::BytesToBytes(codec) = make(&Json::parse(metadata.as_bytes()).unwrap()).unwrap() else { panic!("{metadata}") };
        let mut encoded = encode(&*codec, b"some bytes");
        let view = codec.view(&encoded).unwrap().unwrap();
        assert_eq!(view, b"some bytes");
        assert!(encoded.as_ptr_range().contains(&view.as_ptr()));
        encoded[7] ^= 0x10;
        assert_eq!(codec.view(&encoded).unwrap().unwrap_err().kind(), CodecErrorKind::Format);
        assert!(codec.view(b"abc").unwrap().is_err());
    }
}

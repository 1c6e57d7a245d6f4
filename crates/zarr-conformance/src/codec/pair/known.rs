//! Where decoders of the field part, as declarations for a [`PairUnderTest`](super::PairUnderTest).

mod deflate;
mod lz4;
mod xz;

use super::Divergence;
pub use deflate::Framing;

/// RFC 1951 §3.2.6 has length symbols and distance symbols that never occur. zlib and its kin refuse them. libdeflate takes them for the longest of their
/// kind and leaves it to the checksum.
///
/// The bytes that show it are `len` zeros, with a reserved length among them; `len` is at least 259.
pub fn deflate_reserved_symbols(framing: Framing, len: usize, accepted_by: impl Into<String>) -> Divergence {
    let input = framing.wrap(&deflate::zeros(len, deflate::RESERVED_LENGTH), &vec![0; len]);
    Divergence::new(
        "deflate-reserved-symbols",
        input,
        accepted_by,
        "a length or distance symbol that never occurs: one reads on as with the longest of its kind, one refuses",
        "RFC 1951 §3.2.6: length symbols 286 and 287 \"will never actually occur in the compressed data\", nor distance symbols 30 and 31",
    )
    .wherever(move |bytes| framing.any_block(bytes, deflate::Oddity::ReservedSymbol))
}

/// RFC 1952 lets a decoder ignore the checksum of a member's header. zlib and its kin check it, libdeflate and Python's `gzip` skip it.
///
/// The bytes that show it are `len` zeros; `len` is at least 259.
pub fn gzip_header_crc(len: usize, accepted_by: impl Into<String>) -> Divergence {
    let input = deflate::with_wrong_header_crc(&deflate::zeros(len, deflate::LENGTH), &vec![0; len]);
    Divergence::new(
        "gzip-header-crc",
        input,
        accepted_by,
        "a checksum of the header that is wrong: one skips it, one checks it, and both may",
        "RFC 1952 §2.3.1.2: a decompressor must examine FHCRC \"at least so it can skip over\" the field, and \"need not examine any other part of the header\"",
    )
    .wherever(deflate::any_wrong_header_crc)
}

/// LZ4 calls a match with an offset of 0 invalid. liblz4 decodes it to some bytes all the same; others refuse it.
///
/// The bytes that show it are of `numcodecs.lz4`: `len` zeros behind their length; `len` is at least 25.
pub fn lz4_zero_offset(len: usize, accepted_by: impl Into<String>) -> Divergence {
    let input = [&(len as u32).to_le_bytes()[..], &lz4::zeros_at_offset_0(len)].concat();
    Divergence::new(
        "lz4-zero-offset",
        input,
        accepted_by,
        "a match with an offset of 0: one makes some bytes of it, one refuses",
        "LZ4 Block Format Description: \"0 is an invalid `offset` value. The presence of a 0 `offset` value denotes an invalid (corrupted) block\"",
    )
    .wherever(|bytes| bytes.get(4..).is_some_and(lz4::has_zero_offset))
}

/// The index at the end of an `.xz` file repeats the sizes of its blocks. liblzma compares them, as a decoder of a whole file must; others only read past it.
///
/// The bytes that show it are `file`, a good `.xz` file of one block that decodes to `len` bytes, with another size in its index.
pub fn xz_wrong_index(file: Vec<u8>, len: usize, accepted_by: impl Into<String>) -> Divergence {
    let input = xz::with_wrong_index(file).unwrap_or_default();
    Divergence::new(
        "xz-wrong-index",
        input,
        accepted_by,
        "an index with another size than that of the block, and a checksum that holds: one compares them, one does not look",
        "The .xz File Format §4.3: a decoder that has decoded all blocks \"MUST verify that the contents of the Records match the real Unpadded Size and Uncompressed Size of the respective Blocks\"",
    )
    .wherever(move |bytes| xz::has_wrong_index(bytes, len))
}

/// CRC-32 of RFC 1952 §8, bit by bit.
fn crc32(bytes: &[u8]) -> u32 {
    let bit = |crc: u32| if crc & 1 == 1 { crc >> 1 ^ 0xEDB8_8320 } else { crc >> 1 };
    !bytes.iter().fold(!0, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), |crc, _| bit(crc)))
}

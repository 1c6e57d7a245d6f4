//! Where decoders of the field part, as declarations for a [`PairUnderTest`](super::PairUnderTest).

mod deflate;

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

//! Codecs by name, the golden bytes, and the inputs that they were made from.
#![expect(dead_code, reason = "every test uses some")]

use std::sync::Arc;

use zarr_codec_api::{ByteLen, BytesToBytes, CodecError, Representation, SimpleCodec};
use zarr_meta::{Extension, Json};

/// The codec that metadata ask for.
pub(crate) fn make(metadata: &Json) -> Result<SimpleCodec, CodecError> {
    let extension = Extension::parse(metadata).unwrap();
    let codec = zarr_codecs_cpu::provider().codec(&extension, &Representation::Bytes(ByteLen::AtMost(1 << 20)))?;
    Ok(codec.unwrap_or_else(|| panic!("no codec {}", extension.name)))
}

/// The bytes to bytes codec that metadata ask for.
pub(crate) fn codec(metadata: &str) -> Arc<dyn BytesToBytes> {
    bytes_to_bytes(&Json::parse(metadata.as_bytes()).unwrap())
}

fn bytes_to_bytes(metadata: &Json) -> Arc<dyn BytesToBytes> {
    match make(metadata).unwrap_or_else(|error| panic!("{metadata}: {error}")) {
        SimpleCodec::BytesToBytes(codec) => codec,
        _ => panic!("{metadata}: takes an array"),
    }
}

pub(crate) fn encode(codec: &dyn BytesToBytes, decoded: &[u8]) -> Vec<u8> {
    let mut encoded = Vec::new();
    codec.encode(decoded, &mut encoded).unwrap();
    encoded
}

/// Decodes all at once, block by block where there are blocks, and in pieces where there are such: to the same.
pub(crate) fn decode(codec: &dyn BytesToBytes, encoded: &[u8], len: usize) -> Result<Vec<u8>, CodecError> {
    let mut decoded = vec![0xA5; len];
    let result = codec.decode(encoded, &mut decoded);
    match (&result, decode_in_blocks(codec, encoded, len)) {
        (Ok(()), Some(by_block)) => assert!(by_block.unwrap() == decoded),
        (Err(error), Some(Ok(_))) => panic!("blocks decode, and together they do not: {error}"),
        _ => {}
    }
    if let Some(in_pieces) = decode_in_pieces(codec, encoded, len) {
        assert!(result.is_ok() && in_pieces == decoded, "what pieces accept, the whole is");
    }
    result.map(|()| decoded)
}

/// Decodes some bytes at a time; `None` where that fails.
fn decode_in_pieces(codec: &dyn BytesToBytes, encoded: &[u8], len: usize) -> Option<Vec<u8>> {
    let (mut pieces, mut decoded) = (codec.pieces(len, len)?, Vec::new());
    for piece in encoded.chunks(61) {
        pieces.decode(piece, &mut |bytes| decoded.extend_from_slice(bytes)).ok()?;
        assert!(decoded.len() <= len, "more than {len} bytes");
    }
    pieces.finish().ok().map(|()| decoded)
}

/// Decodes block by block, from the last to the first.
pub(crate) fn decode_in_blocks(codec: &dyn BytesToBytes, encoded: &[u8], len: usize) -> Option<Result<Vec<u8>, CodecError>> {
    let blocks = codec.blocks(encoded, len)?;
    let (block_len, count) = (blocks.block_len(), len.div_ceil(blocks.block_len()));
    let mut decoded = vec![0xA5; len];
    for (index, block) in decoded.chunks_mut(block_len).enumerate().rev() {
        if let Err(error) = blocks.decode(index, block) {
            return Some(Err(error));
        }
    }
    let last = len - (count - 1) * block_len;
    for (index, wrong) in
        [(0, block_len - 1), (0, block_len + 1), (count - 1, last - 1), (count, last), (count, 0), (usize::MAX, block_len)]
    {
        assert!(blocks.decode(index, &mut vec![0; wrong]).is_err(), "block {index} of {count} is decoded to {wrong} bytes");
    }
    Some(Ok(decoded))
}

pub(crate) fn decode_growing(codec: &dyn BytesToBytes, encoded: &[u8], limit: usize) -> Result<Vec<u8>, CodecError> {
    let mut decoded = Vec::new();
    codec.decode_growing(encoded, &mut decoded, limit)?;
    Ok(decoded)
}

/// The generators of `make.py`.
pub(crate) fn generate(kind: &str, len: usize) -> Vec<u8> {
    let words = (0..len as u64 / 4 + 1).map(|index| match kind {
        "steps" => index / 1024,
        "ramp" => (index * 7919) >> 5,
        "noise" => (index * 2_654_435_761) ^ ((index * 40503) >> 3) ^ ((index * index * 69069) >> 7),
        "ones" => u64::MAX,
        _ => panic!("no input {kind}"),
    });
    let mut bytes: Vec<u8> = words.flat_map(|word| (word as u32).to_le_bytes()).collect();
    bytes.truncate(len);
    bytes
}

/// One case of `golden.json`.
pub(crate) struct Golden {
    pub(crate) metadata: Json,
    pub(crate) codec: Arc<dyn BytesToBytes>,
    pub(crate) name: String,
    pub(crate) decoded: Vec<u8>,
    pub(crate) encoded: &'static [u8],
    pub(crate) exact: bool,
}

impl std::fmt::Display for Golden {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}, {} bytes", self.metadata, self.decoded.len())
    }
}

pub(crate) fn golden() -> Vec<Golden> {
    let blob: &[u8] = include_bytes!("../vectors/bytes_to_bytes/golden.bin");
    let index = Json::parse(include_bytes!("../vectors/bytes_to_bytes/golden.json")).unwrap();
    let cases = index.as_array().unwrap().iter().map(|case| {
        let case = case.as_object().unwrap();
        let text = |key: &str| case.get(key).and_then(Json::as_str).unwrap();
        let number = |key: &str| usize::try_from(case.get(key).and_then(Json::as_u64).unwrap()).unwrap();
        let metadata = case.get("codec").unwrap().clone();
        Golden {
            codec: bytes_to_bytes(&metadata),
            name: Extension::parse(&metadata).unwrap().name,
            decoded: generate(text("input"), number("length")),
            encoded: &blob[number("start")..number("end")],
            exact: case.get("exact").and_then(Json::as_bool).unwrap(),
            metadata,
        }
    });
    cases.collect()
}

//! Libraries that no codec of this workspace is made of.

use std::io::{Read as _, Write as _};

use lzma_rust2::{XzOptions, XzReader, XzWriter};

use super::{OURS, Reference, all_of, bzip2, c_blosc, text};
use crate::codec::pair::known::{lz4_zero_offset, xz_wrong_index};

pub(super) const PEERS: &[Reference] = &[
    Reference {
        codec: "numcodecs.lz4",
        library: "lz4_flex",
        configuration: r#"{"acceleration":1}"#,
        decode: |bytes, limit| {
            let (len, block) = bytes.split_first_chunk().ok_or("too short for a length")?;
            let len = u32::from_le_bytes(*len) as usize;
            if len > limit {
                return Err("decodes to more than expected".to_owned());
            }
            let mut decoded = vec![0; len];
            let written = lz4_flex::block::decompress_into(block, &mut decoded).map_err(|error| error.to_string())?;
            if written == len { Ok(decoded) } else { Err(format!("{written} bytes instead of {len}")) }
        },
        encode: |bytes, _| Ok([&(bytes.len() as u32).to_le_bytes()[..], &lz4_flex::block::compress(bytes)].concat()),
        adds: None,
        parts: |len| vec![lz4_zero_offset(len, OURS)],
    },
    Reference {
        codec: "numcodecs.bz2",
        library: "libbzip2",
        configuration: r#"{"level":5}"#,
        decode: bzip2::decode,
        encode: |bytes, _| bzip2::encode(bytes, 5),
        adds: None,
        parts: |_| Vec::new(),
    },
    Reference {
        codec: "numcodecs.lzma",
        library: "lzma-rust2",
        configuration: r#"{"format":1,"check":-1,"preset":1}"#,
        decode: unxz,
        encode: |bytes, _| xz(bytes),
        adds: None,
        parts: |len| xz(&vec![0; len]).map(|file| xz_wrong_index(file, len, "lzma-rust2")).into_iter().collect(),
    },
    Reference {
        codec: "blosc",
        library: "c-blosc",
        configuration: r#"{"cname":"lz4","clevel":5,"shuffle":"shuffle","typesize":{size},"blocksize":0}"#,
        decode: c_blosc::decode,
        encode: |bytes, size| c_blosc::encode(bytes, size, c"lz4", c_blosc::SHUFFLE),
        adds: None,
        parts: |_| Vec::new(),
    },
    Reference {
        codec: "numcodecs.blosc",
        library: "c-blosc",
        configuration: r#"{"cname":"blosclz","clevel":5,"shuffle":2,"blocksize":0,"typesize":{size}}"#,
        decode: c_blosc::decode,
        encode: |bytes, size| c_blosc::encode(bytes, size, c"blosclz", c_blosc::BITSHUFFLE),
        adds: None,
        parts: |_| Vec::new(),
    },
];

fn xz(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let mut writer = XzWriter::new(Vec::new(), XzOptions::with_preset(1)).map_err(text)?;
    writer.write_all(bytes).map_err(text)?;
    writer.finish().map_err(text)
}

/// Streams one behind the other. What is behind them and is none is ignored, as Python's `lzma` does.
fn unxz(mut bytes: &[u8], limit: usize) -> Result<Vec<u8>, String> {
    let mut decoded = Vec::new();
    loop {
        let mut stream = XzReader::new(&mut bytes, false);
        decoded.extend(all_of(&mut stream.by_ref(), limit - decoded.len())?);
        if !bytes.starts_with(b"\xFD7zXZ\0") {
            return Ok(decoded);
        }
    }
}

//! Encoded bytes of single chunks, for one codec without a store.

use std::path::Path;

use serde::Deserialize;
use zarr_codec_api::{ArrayRepresentation, ByteLen, Representation};
use zarr_meta::{DataType, Extension, FillValue, Json};

use super::{VectorError, Verdict, check_version, children, file_name, folders, read_bytes, read_text};

/// Bytes that a reference implementation of one codec made of a chunk, or bytes made bad.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ChunkVector {
    /// Its folder relative to that of all: the codec's, `/`, and its own name.
    pub id: String,
    /// What is unusual about it, in a phrase.
    pub says: String,
    /// What a decoder must do with it.
    pub verdict: Verdict,
    /// Where that is written.
    pub cite: String,
    /// What made it, with versions.
    pub made_by: String,
    /// The codec, as metadata write it.
    pub codec: Extension,
    /// What it decodes to: bytes of exact number, or an array of fixed-length elements.
    pub decoded: Representation,
    /// What is to be decoded. Of array→array codecs, little-endian elements.
    pub encoded: Vec<u8>,
    /// What it decodes to: bytes, or little-endian elements in C order; `None` where nothing may be decoded.
    pub expected: Option<Vec<u8>>,
}

/// `case.toml`. A key that is not here is an error.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CaseFile {
    says: String,
    verdict: Verdict,
    cite: String,
    made_by: String,
    codec: String,
    bytes: Option<u64>,
    data_type: Option<String>,
    shape: Option<Vec<u64>>,
}

/// Reads all vectors of single chunks of a folder of vectors, in the order of their ids, and checks each for consistency.
///
/// # Errors
/// As [`load`](super::load).
pub fn load_chunks(directory: &Path) -> Result<Vec<ChunkVector>, VectorError> {
    check_version(directory)?;
    let mut out = Vec::new();
    for codec in folders(&directory.join("chunks"))? {
        for folder in folders(&codec)? {
            out.push(load_one(&folder, format!("{}/{}", file_name(&codec), file_name(&folder)))?);
        }
    }
    Ok(out)
}

fn load_one(folder: &Path, id: String) -> Result<ChunkVector, VectorError> {
    let wrong = |problem: String| VectorError::Inconsistent { id: id.clone(), problem };
    if let Some(path) = children(folder)?.iter().find(|path| !["case.toml", "encoded", "expected.raw"].contains(&file_name(path).as_str()))
    {
        return Err(wrong(format!("{} is no part of a vector", file_name(path))));
    }
    let path = folder.join("case.toml");
    let case: CaseFile = toml::from_str(&read_text(&path)?).map_err(|error| VectorError::Syntax { path, error })?;
    let json = Json::parse(case.codec.as_bytes()).map_err(|error| wrong(format!("`codec`: {error}")))?;
    let codec = Extension::parse(&json).map_err(|error| wrong(format!("`codec`: {error}")))?;
    let decoded = match (case.bytes, &case.data_type, case.shape) {
        (Some(bytes), None, None) => Representation::Bytes(ByteLen::Exact(bytes)),
        (None, Some(name), Some(shape)) => {
            let json = Json::parse(format!("\"{name}\"").as_bytes()).map_err(|error| wrong(format!("`data_type`: {error}")))?;
            let data_type = DataType::parse(&json).map_err(|error| wrong(format!("`data_type`: {error}")))?;
            let fill_value = FillValue::default_for(&data_type);
            Representation::Array(ArrayRepresentation { data_type, shape, fill_value })
        }
        _ => return Err(wrong("there is either `bytes`, or `data_type` and `shape`".into())),
    };
    let (encoded, expected) = (read_bytes(&folder.join("encoded"))?, read_bytes(&folder.join("expected.raw"))?);
    let encoded = encoded.ok_or_else(|| wrong("there is no `encoded`".into()))?;
    match (case.verdict, &expected) {
        (Verdict::MustAccept, None) => return Err(wrong("must be accepted, and has no expected.raw".into())),
        (Verdict::MustReject, Some(_)) => return Err(wrong("must be rejected, and has an expected.raw".into())),
        _ => {}
    }
    let len = decoded.byte_len().ok().flatten().and_then(ByteLen::exact).ok_or_else(|| wrong("the decoded size is not known".into()))?;
    if let Some(expected) = expected.as_ref().filter(|expected| expected.len() as u64 != len) {
        return Err(wrong(format!("expected.raw has {} bytes, and {len} are decoded", expected.len())));
    }
    let CaseFile { says, verdict, cite, made_by, .. } = case;
    Ok(ChunkVector { id, says, verdict, cite, made_by, codec, decoded, encoded, expected })
}

//! Which library an array needs, and with which parameters.

use peers_harness::Result;
use serde::Deserialize;
use serde_json::Value;
use zarr::Array;

/// The codec behind `bytes`, as metadata have it.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "name", content = "configuration", rename_all = "lowercase")]
pub(crate) enum Library {
    Zstd {
        level: i32,
        #[serde(default)]
        checksum: bool,
    },
    Gzip {
        level: i32,
    },
    Blosc {
        cname: String,
        clevel: i32,
        shuffle: Shuffle,
        typesize: usize,
        blocksize: usize,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(crate) enum Shuffle {
    #[serde(rename = "noshuffle")]
    None,
    #[serde(rename = "shuffle")]
    Bytes,
    #[serde(rename = "bitshuffle")]
    Bits,
}

/// The metadata of an array, as version 3 has them.
pub(crate) fn document(array: &Array) -> Result<Value> {
    Ok(serde_json::from_slice(&array.metadata().to_bytes()?)?)
}

/// The codecs of the innermost chunks.
pub(crate) fn innermost(codecs: &Value) -> &[Value] {
    match codecs.as_array().map(Vec::as_slice) {
        Some([shard]) if shard["name"] == "sharding_indexed" => innermost(&shard["configuration"]["codecs"]),
        Some(codecs) => codecs,
        None => &[],
    }
}

impl Library {
    /// `None`: bytes are stored as they are.
    pub(crate) fn of(array: &Array) -> Result<Option<Self>> {
        match innermost(&document(array)?["codecs"]) {
            [_] => Ok(None),
            [_, codec] => Ok(Some(Self::deserialize(codec)?)),
            codecs => Err(format!("not one library: {codecs:?}").into()),
        }
    }
}

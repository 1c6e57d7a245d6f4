//! Chunks that reference implementations encoded, decoded by the codecs of this workspace.

use std::sync::{Arc, OnceLock};

use super::{Entry, Unbuilt};
use crate::codec::vectors::VectorsUnderTest;
use crate::runner::results::Place;
use crate::vectors::{ChunkVector, directory, load_chunks};

/// The codecs that there are vectors for.
const CODECS: &[&str] = &[
    "blosc",
    "bytes",
    "crc32c",
    "gzip",
    "numcodecs.adler32",
    "numcodecs.astype",
    "numcodecs.base64",
    "numcodecs.bitround",
    "numcodecs.bz2",
    "numcodecs.crc32",
    "numcodecs.delta",
    "numcodecs.fixedscaleoffset",
    "numcodecs.fletcher32",
    "numcodecs.jenkins_lookup3",
    "numcodecs.lz4",
    "numcodecs.lzma",
    "numcodecs.packbits",
    "numcodecs.pcodec",
    "numcodecs.quantize",
    "numcodecs.shuffle",
    "numcodecs.zfpy",
    "numcodecs.zlib",
    "zstd",
];

pub(super) fn entries() -> Vec<Entry> {
    let one = |&codec: &&'static str| {
        let build = move || -> Result<VectorsUnderTest, Unbuilt> {
            let vectors = all()?.iter().filter(|vector| vector.codec.name == codec).cloned().collect();
            Ok(VectorsUnderTest::new(Arc::new(zarr_codecs_cpu::provider()), vectors))
        };
        Entry::new(format!("vectors/cpu/{codec}"), build).at(Place::new("cpu", codec, "any"))
    };
    CODECS.iter().map(one).collect()
}

/// The vectors, read once in a process.
fn all() -> Result<Arc<[ChunkVector]>, Unbuilt> {
    static READ: OnceLock<Result<Arc<[ChunkVector]>, String>> = OnceLock::new();
    let read = READ.get_or_init(|| load_chunks(&directory()).map(Arc::from).map_err(|error| error.to_string()));
    read.clone().map_err(Unbuilt::Broken)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_codec_with_vectors_is_here() {
        let vectors = all().unwrap();
        let names: BTreeSet<&str> = vectors.iter().map(|vector| vector.codec.name.as_str()).collect();
        assert_eq!(names, CODECS.iter().copied().collect());
    }
}

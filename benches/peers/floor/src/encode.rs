//! Encoding alone.

use std::ffi::{CString, c_int};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use peers_harness::Result;
use serde_json::{Value, json};
use zarr::store::MemoryStore;
use zarr::store_api::{ByteRange, Bytes, ListableStore, ReadableStore, StoreKey, StorePrefix, WritableStore};
use zarr::{Array, Selection};
use zstd::zstd_safe::{CCtx, CParameter, compress_bound, get_error_name};

use crate::library::{Library, Shuffle, document, innermost};
use crate::{Run, run};

/// With contexts as this project keeps them from chunk to chunk, and its levels: libdeflate knows those of gzip by the same numbers.
pub(crate) enum Encoder {
    Zstd(CCtx<'static>),
    Gzip(libdeflater::Compressor),
    Blosc { cname: CString, clevel: c_int, shuffle: c_int, typesize: usize, blocksize: usize },
}

impl Encoder {
    pub(crate) fn new(library: &Library) -> Result<Self> {
        Ok(match library {
            Library::Zstd { level, checksum } => {
                let mut context = CCtx::create();
                context.set_parameter(CParameter::CompressionLevel(*level)).map_err(get_error_name)?;
                context.set_parameter(CParameter::ChecksumFlag(*checksum)).map_err(get_error_name)?;
                Self::Zstd(context)
            }
            Library::Gzip { level } => {
                let level = libdeflater::CompressionLvl::new(*level).map_err(|_| format!("no level {level}"))?;
                Self::Gzip(libdeflater::Compressor::new(level))
            }
            Library::Blosc { cname, clevel, shuffle, typesize, blocksize } => {
                let shuffle = match shuffle {
                    Shuffle::None => blosc_src::BLOSC_NOSHUFFLE,
                    Shuffle::Bytes => blosc_src::BLOSC_SHUFFLE,
                    Shuffle::Bits => blosc_src::BLOSC_BITSHUFFLE,
                };
                let cname = CString::new(cname.as_str())?;
                Self::Blosc { cname, clevel: *clevel, shuffle: shuffle.cast_signed(), typesize: *typesize, blocksize: *blocksize }
            }
        })
    }

    /// The most bytes that so many encode to.
    pub(crate) fn bound(&mut self, len: usize) -> usize {
        match self {
            Self::Zstd(_) => compress_bound(len),
            Self::Gzip(compressor) => compressor.gzip_compress_bound(len),
            Self::Blosc { .. } => len + blosc_src::BLOSC_MAX_OVERHEAD as usize,
        }
    }

    /// Encodes to the start of `encoded`, and answers with the number of bytes.
    pub(crate) fn encode(&mut self, decoded: &[u8], encoded: &mut [u8]) -> Result<usize> {
        match self {
            Self::Zstd(context) => Ok(context.compress2(encoded, decoded).map_err(get_error_name)?),
            Self::Gzip(compressor) => Ok(compressor.gzip_compress(decoded, encoded).map_err(|error| error.to_string())?),
            Self::Blosc { cname, clevel, shuffle, typesize, blocksize } => {
                // SAFETY: both are slices of the lengths given, the name is terminated, and the call keeps its state in a context of its own.
                let len = unsafe {
                    blosc_src::blosc_compress_ctx(
                        *clevel,
                        *shuffle,
                        *typesize,
                        decoded.len(),
                        decoded.as_ptr().cast(),
                        encoded.as_mut_ptr().cast(),
                        encoded.len(),
                        cname.as_ptr(),
                        *blocksize,
                        1,
                    )
                };
                usize::try_from(len).ok().filter(|len| *len > 0).ok_or_else(|| format!("c-blosc answers {len}").into())
            }
        }
    }
}

/// The innermost chunks of an array that holds `source`, each side by side, those at an edge padded with the fill value.
fn cut(array: &Array, source: &[u8]) -> Result<Vec<(StoreKey, Bytes)>> {
    let mut document = document(array)?;
    let bytes = innermost(&document["codecs"])[0].clone();
    document["codecs"] = Value::Array(vec![bytes]);
    document["chunk_grid"] = json!({"name": "regular", "configuration": {"chunk_shape": array.inner_chunk_shape()}});
    let store = MemoryStore::new();
    let metadata = StoreKey::new("zarr.json")?;
    store.set(&metadata, document.to_string().into())?;
    Array::open(store.clone(), "/", &zarr::options())?.write(&Selection::all(), source)?;
    store.erase(&metadata)?;
    let keys = store.list(&StorePrefix::root())?;
    keys.into_iter().map(|key| Ok((key.clone(), store.get(&key, ByteRange::All)?.ok_or("a key without a value")?))).collect()
}

/// Makes a file of a chunk in its place; the directories too, if they are not there.
fn write(root: &Path, key: &StoreKey, bytes: &[u8]) -> Result<()> {
    let path = root.join(key.as_str());
    let partial = path.with_extension("partial");
    let mut file = match File::create_new(&partial) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            fs::create_dir_all(path.parent().unwrap_or(root))?;
            File::create_new(&partial)
        }
        created => created,
    }?;
    file.write_all(bytes)?;
    Ok(fs::rename(partial, path)?)
}

/// `source`: what the array at `path` is to hold.
pub(crate) fn measure(array: &Array, path: &Path, source: Vec<u8>, threads: usize, repeat: usize) -> Result<Vec<Run>> {
    let library = Library::of(array)?;
    let chunks = cut(array, &source)?;
    drop(source);
    let Some(library) = library else {
        if !array.shard_levels().is_empty() {
            return Err("inner chunks that are stored as they are have no files of their own".into());
        }
        let root = path.with_extension("floor");
        return (0..repeat).map(|_| written(&root, &chunks, threads)).collect();
    };
    let decoded_len = chunks.first().map_or(0, |(_, bytes)| bytes.len());
    let make = || {
        let mut encoder = Encoder::new(&library)?;
        let bound = encoder.bound(decoded_len);
        Ok((encoder, vec![1; bound]))
    };
    let encode = |(encoder, encoded): &mut (Encoder, Vec<u8>), number: usize| {
        let len = encoder.encode(&chunks[number].1, encoded)?;
        std::hint::black_box(&encoded);
        Ok(len)
    };
    (0..repeat).map(|_| run(threads, &[chunks.len()], make, encode)).collect()
}

/// Writes all chunks below `root`, which is made and removed.
fn written(root: &Path, chunks: &[(StoreKey, Bytes)], threads: usize) -> Result<Run> {
    fs::create_dir(root)?;
    let write = |(): &mut (), number: usize| {
        let (key, bytes) = &chunks[number];
        write(root, key, bytes).map(|()| bytes.len())
    };
    let run = run(threads, &[chunks.len()], || Ok(()), write);
    fs::remove_dir_all(root)?;
    run
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::Decoder;

    fn array(codecs: &Value) -> (Array, MemoryStore) {
        let document = json!({
            "zarr_format": 3,
            "node_type": "array",
            "shape": [70, 90],
            "data_type": "uint16",
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [40, 50]}},
            "chunk_key_encoding": {"name": "default"},
            "fill_value": 7,
            "codecs": codecs,
        });
        let store = MemoryStore::new();
        store.set(&StoreKey::new("zarr.json").unwrap(), document.to_string().into()).unwrap();
        (Array::open(store.clone(), "/", &zarr::options()).unwrap(), store)
    }

    fn source() -> Vec<u8> {
        let mut noise = 1u32;
        let mut next = || {
            noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (noise >> 30) as u16
        };
        (0..70 * 90u16).flat_map(|number| (number / 500 + next()).to_le_bytes()).collect()
    }

    /// What the chunk of a key holds, element by element.
    fn expected(key: &StoreKey, shape: [usize; 2]) -> Vec<u8> {
        let source = source();
        let at: Vec<usize> = key.as_str().split('/').skip(1).map(|part| part.parse().unwrap()).collect();
        let cells = (0..shape[0]).flat_map(|row| (0..shape[1]).map(move |column| (row, column)));
        let elements = cells.map(|(row, column)| match (at[0] * shape[0] + row, at[1] * shape[1] + column) {
            (row, column) if row < 70 && column < 90 => [source[(row * 90 + column) * 2], source[(row * 90 + column) * 2 + 1]],
            _ => 7u16.to_le_bytes(),
        });
        elements.flatten().collect()
    }

    #[test]
    fn chunks_are_contiguous_and_padded() {
        let bytes = json!({"name": "bytes", "configuration": {"endian": "little"}});
        let shards =
            json!([{"name": "sharding_indexed", "configuration": {"chunk_shape": [20, 25], "codecs": [bytes], "index_codecs": [bytes]}}]);
        for (codecs, shape, count) in [(json!([bytes]), [40, 50], 4), (shards, [20, 25], 16)] {
            let chunks = cut(&array(&codecs).0, &source()).unwrap();
            assert_eq!(chunks.len(), count);
            for (key, chunk) in chunks {
                assert_eq!(chunk, expected(&key, shape), "{key:?}");
            }
        }
    }

    #[test]
    fn chunks_are_encoded_as_they_are_stored() {
        let blosc = |cname, shuffle| {
            let configuration = json!({"cname": cname, "clevel": 5, "shuffle": shuffle, "typesize": 2, "blocksize": 0});
            json!({"name": "blosc", "configuration": configuration})
        };
        let codecs = [
            json!({"name": "zstd", "configuration": {"level": 3, "checksum": false}}),
            json!({"name": "zstd", "configuration": {"level": 9, "checksum": true}}),
            json!({"name": "gzip", "configuration": {"level": 5}}),
            blosc("lz4", "shuffle"),
            blosc("zstd", "bitshuffle"),
            blosc("zstd", "noshuffle"),
        ];
        for codec in codecs {
            let (array, store) = array(&json!([{"name": "bytes", "configuration": {"endian": "little"}}, codec]));
            array.write(&Selection::all(), &source()).unwrap();
            let library = Library::of(&array).unwrap().unwrap();
            let mut encoder = Encoder::new(&library).unwrap();
            for (key, chunk) in cut(&array, &source()).unwrap() {
                let mut encoded = vec![0; encoder.bound(chunk.len())];
                let len = encoder.encode(&chunk, &mut encoded).unwrap();
                encoded.truncate(len);
                let mut decoded = vec![0; chunk.len()];
                Decoder::new(Some(&library)).decode(&encoded, &mut decoded).unwrap();
                assert_eq!(decoded, chunk, "{codec} {key:?}");
                let stored = store.get(&key, ByteRange::All).unwrap().unwrap();
                assert_eq!(encoded, stored, "{codec} {key:?}");
            }
        }
    }
}

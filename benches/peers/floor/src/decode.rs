//! Decoding alone.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use peers_harness::{Item, Result};
use zarr::codec_api::{ArrayRepresentation, Chain, Scratch, Target};
use zarr::{AnyStore, Array, Extension, FillValue, Json, Policy, Selection};

use crate::library::{Library, document, innermost};
use crate::{Run, run};

/// One encoded chunk.
#[derive(Debug, Clone)]
enum Chunk {
    Memory(Vec<u8>),
    File(PathBuf),
}

/// What is decoded, and how.
pub(crate) struct Work<'a> {
    /// The calls; none: all of the array.
    pub(crate) items: &'a [Item],
    /// Whether calls do not wait for each other.
    pub(crate) ahead: bool,
    /// Whether stored chunks are read from their files each time.
    pub(crate) files: bool,
    /// Whether this project's codecs decode, not the field's libraries.
    pub(crate) by_ours: bool,
}

pub(crate) enum Decoder {
    None,
    /// This project's codec.
    Ours(Box<Chain>, Scratch),
    Zstd(zstd::zstd_safe::DCtx<'static>),
    Gzip(libdeflater::Decompressor),
    Blosc,
}

impl Decoder {
    pub(crate) fn new(library: Option<&Library>) -> Self {
        match library {
            None => Self::None,
            Some(Library::Zstd { .. }) => Self::Zstd(zstd::zstd_safe::DCtx::create()),
            Some(Library::Gzip { .. }) => Self::Gzip(libdeflater::Decompressor::new()),
            Some(Library::Blosc { .. }) => Self::Blosc,
        }
    }

    /// The codecs of the innermost chunks, by this project.
    fn ours(array: &Array) -> Result<Self> {
        let document = document(array)?;
        let codecs = innermost(&document["codecs"]).iter().map(|codec| {
            let json = Json::parse(codec.to_string().as_bytes())?;
            Ok(Extension::parse(&json)?)
        });
        let representation = ArrayRepresentation {
            data_type: array.data_type().clone(),
            shape: array.inner_chunk_shape().to_vec(),
            fill_value: FillValue::default_for(array.data_type()),
        };
        let chain = Chain::bind(&codecs.collect::<Result<Vec<_>>>()?, representation, &zarr::registry(), &Policy::Host)?;
        Ok(Self::Ours(Box::new(chain), Scratch::new()))
    }

    pub(crate) fn decode(&mut self, encoded: &[u8], decoded: &mut [u8]) -> Result<()> {
        let len = match self {
            Self::None => return Err("bytes that are stored as they are come from files".into()),
            Self::Ours(chain, scratch) => {
                chain.decode(encoded, Target::Exact(decoded), scratch)?;
                decoded.len()
            }
            Self::Zstd(context) => context.decompress(decoded, encoded).map_err(zstd::zstd_safe::get_error_name)?,
            Self::Gzip(decompressor) => decompressor.gzip_decompress(encoded, decoded).map_err(|error| error.to_string())?,
            Self::Blosc => blosc(encoded, decoded)?,
        };
        if len == decoded.len() { Ok(()) } else { Err(format!("{len} bytes decoded of {}", decoded.len()).into()) }
    }
}

fn blosc(encoded: &[u8], decoded: &mut [u8]) -> Result<usize> {
    let (mut decoded_len, mut encoded_len, mut block) = (0, 0, 0);
    let header: &[u8; 16] = encoded.first_chunk().ok_or("shorter than a blosc header")?;
    // SAFETY: the header's 16 bytes are all that is read, and the three numbers are ours.
    unsafe { blosc_src::blosc_cbuffer_sizes(header.as_ptr().cast(), &mut decoded_len, &mut encoded_len, &mut block) };
    if encoded_len > encoded.len() {
        return Err("cut short".into());
    }
    // SAFETY: c-blosc reads the `encoded_len` bytes that its header claims, which are there, and writes at most `decoded.len()`.
    let len = unsafe { blosc_src::blosc_decompress_ctx(encoded.as_ptr().cast(), decoded.as_mut_ptr().cast(), decoded.len(), 1) };
    usize::try_from(len).map_err(|_| format!("c-blosc answers {len}").into())
}

/// Every innermost chunk that a selection touches. `root`: where bytes are stored as they are, and so read by what is measured.
fn gather(array: &Array, selection: &Selection, root: Option<&Path>) -> Result<Vec<Chunk>> {
    let mut plan = array.plan(selection)?;
    let AnyStore::Blocking(store) = array.store() else { return Err("not a local store".into()) };
    let mut chunks = Vec::new();
    loop {
        let requests = plan.next_requests(1)?;
        let Some(request) = requests.into_iter().next() else { return Ok(chunks) };
        if let Some(root) = root {
            chunks.push(Chunk::File(root.join(request.key.as_str())));
            continue;
        }
        let bytes = store.get_ranges(&request.key, &request.ranges)?;
        for job in plan.supply(request.id, bytes)? {
            chunks.push(Chunk::Memory(job.encoded().ok_or("an absent chunk")?.to_vec()));
        }
    }
}

/// `work`: what of the array at `path`.
pub(crate) fn measure(array: &Array, path: &Path, work: &Work<'_>, threads: usize, repeat: usize) -> Result<Vec<Run>> {
    let library = Library::of(array)?;
    let item_size = array.item_size().ok_or("elements of variable length")?;
    let decoded_len = array.inner_chunk_shape().iter().product::<u64>() as usize * item_size;
    if work.files && !array.shard_levels().is_empty() {
        return Err("inner chunks have no files of their own".into());
    }
    let root = (library.is_none() || work.files).then_some(path);
    let calls: Vec<Vec<Chunk>> = match work.items {
        [] => vec![gather(array, &Selection::all(), root)?],
        items => items.iter().map(|item| gather(array, &Selection::ranges(item.ranges()), root)).collect::<Result<_>>()?,
    };
    let mut ends = Vec::with_capacity(calls.len());
    let mut chunks = Vec::new();
    for call in calls {
        chunks.extend(call);
        ends.push(chunks.len());
    }
    if work.ahead {
        ends.drain(..ends.len() - 1);
    }
    let make = || {
        let decoder = if work.by_ours { Decoder::ours(array)? } else { Decoder::new(library.as_ref()) };
        Ok((decoder, vec![1; decoded_len], vec![1; 2 * decoded_len]))
    };
    let decode = |(decoder, decoded, encoded): &mut (Decoder, Vec<u8>, Vec<u8>), number: usize| {
        match &chunks[number] {
            Chunk::Memory(encoded) => decoder.decode(encoded, decoded)?,
            Chunk::File(path) if library.is_none() => File::open(path)?.read_exact_at(decoded, 0)?,
            Chunk::File(path) => {
                let len = File::open(path)?.read_at(encoded, 0)?;
                decoder.decode(encoded.get(..len).unwrap_or_default(), decoded)?;
            }
        }
        Ok(std::hint::black_box(&decoded).len())
    };
    (0..repeat).map(|_| run(threads, &ends, make, decode)).collect()
}

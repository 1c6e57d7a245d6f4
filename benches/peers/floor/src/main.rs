//! Decoding alone: the stored chunks that a work list touches, by the field's own libraries (libzstd, libdeflate, c-blosc; a copy, where bytes
//! are stored as they are), from warm memory into one warm buffer for each thread. No store, no layout, no fresh memory: what is left is the
//! bound that decoding sets. Where nothing is decoded, what is left is the system's part: opening each file and reading it.
//!
//! `floor THREADS PATH [--work FILE] [--repeat N]`: one line of JSON, `{"wall", "cpu", "n"}`; the median of the repetitions.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use peers_harness::{Item, Result, cpu_seconds};
use zarr::{AnyStore, Array, Selection};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Library {
    None,
    Zstd,
    Gzip,
    Blosc,
}

/// One encoded chunk.
#[derive(Debug, Clone)]
enum Chunk {
    Memory(Vec<u8>),
    File(PathBuf),
}

enum Decoder {
    None,
    Zstd(zstd::zstd_safe::DCtx<'static>),
    Gzip(libdeflater::Decompressor),
    Blosc,
}

impl Decoder {
    fn new(library: Library) -> Self {
        match library {
            Library::None => Self::None,
            Library::Zstd => Self::Zstd(zstd::zstd_safe::DCtx::create()),
            Library::Gzip => Self::Gzip(libdeflater::Decompressor::new()),
            Library::Blosc => Self::Blosc,
        }
    }

    fn decode(&mut self, chunk: &Chunk, decoded: &mut [u8]) -> Result<()> {
        let encoded = match chunk {
            Chunk::Memory(encoded) => encoded,
            Chunk::File(path) => return Ok(File::open(path)?.read_exact_at(decoded, 0)?),
        };
        let len = match self {
            Self::None => return Err("bytes that are stored as they are come from files".into()),
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

/// The library that the innermost chunks of an array need.
fn library(array: &Array) -> Result<Library> {
    let text = serde_json::to_string(&array.metadata().codecs)?;
    let has = |name: &str| text.contains(&format!("\"{name}\""));
    Ok(match (has("zstd"), has("gzip"), has("blosc")) {
        (_, _, true) => Library::Blosc,
        (true, false, _) => Library::Zstd,
        (false, true, _) => Library::Gzip,
        (false, false, false) => Library::None,
        _ => return Err(format!("not one library: {text}").into()),
    })
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

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let threads: usize = args.next().ok_or("how many threads?")?.parse()?;
    let path = args.next().ok_or("no path")?;
    let (mut work, mut repeat) = (Vec::new(), 3);
    while let (Some(flag), Some(value)) = (args.next(), args.next()) {
        match flag.as_str() {
            "--work" => work = serde_json::from_slice::<Vec<Item>>(&std::fs::read(value)?)?,
            "--repeat" => repeat = value.parse()?,
            _ => return Err(format!("unknown flag {flag}").into()),
        }
    }
    let store = zarr::store::FilesystemStore::new(&path)?;
    let array = Array::open(store, "/", &zarr::options())?;
    let library = library(&array)?;
    let item_size = array.item_size().ok_or("elements of variable length")?;
    let decoded_len = array.inner_chunk_shape().iter().product::<u64>() as usize * item_size;
    let root = (library == Library::None).then(|| Path::new(&path));
    let chunks = match work.as_slice() {
        [] => gather(&array, &Selection::all(), root)?,
        items => {
            let of_item = |item: &Item| gather(&array, &Selection::ranges(item.ranges()), root);
            items.iter().map(of_item).collect::<Result<Vec<_>>>()?.concat()
        }
    };

    let mut times = Vec::new();
    for _ in 0..repeat {
        let next = AtomicUsize::new(0);
        let barrier = Barrier::new(threads + 1);
        let taken = std::thread::scope(|scope| -> Result<(f64, f64)> {
            let workers: Vec<_> = (0..threads)
                .map(|_| {
                    scope.spawn(|| -> Result<()> {
                        let mut decoder = Decoder::new(library);
                        let mut decoded = vec![1; decoded_len];
                        barrier.wait();
                        while let Some(chunk) = chunks.get(next.fetch_add(1, Ordering::Relaxed)) {
                            decoder.decode(chunk, &mut decoded)?;
                            std::hint::black_box(&decoded);
                        }
                        Ok(())
                    })
                })
                .collect();
            barrier.wait();
            let (start, cpu) = (Instant::now(), cpu_seconds());
            for worker in workers {
                worker.join().map_err(|_| "a worker panicked")??;
            }
            Ok((start.elapsed().as_secs_f64(), cpu_seconds() - cpu))
        })?;
        times.push(taken);
    }
    times.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (wall, cpu) = times[times.len() / 2];
    println!("{{\"wall\": {wall:.6}, \"cpu\": {cpu:.6}, \"n\": {}}}", chunks.len() * decoded_len);
    Ok(())
}

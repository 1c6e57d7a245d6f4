//! What bounds reads and writes, whoever does them: the field's own libraries (libzstd, libdeflate, c-blosc) alone, from warm memory into one
//! warm buffer for each thread. No store, no layout, no fresh memory.
//!
//! * `floor THREADS PATH [--work FILE]`: *decoding alone*, of the stored chunks that the calls of a work list touch, one call after the other, by Rayon's
//!   threads: none begins with the chunks of a call before those of the one before are decoded. With `--ahead` instead of `--work`, all of them at once. Where nothing is decoded,
//!   what is left is the system's part: opening each file and reading it; `--files yes` counts that in also where there is something to decode;
//!   `--codecs ours` has this project's codecs decode instead of the libraries.
//! * `floor THREADS PATH --encode SOURCE`: *encoding alone*, of a source that was cut before into the innermost chunks of the array at PATH, with
//!   the levels and parameters of its metadata. Where nothing is encoded, what is left is the system's part: beside the array, making the
//!   directories of the keys and, for each chunk, creating a file, writing it, and renaming it to its final name, as writers do so that no reader
//!   sees half a chunk.
//!
//! One line of JSON, `{"wall", "cpu", "n"}`, and of encoding `{"encoded"}`, the bytes that all chunks encode to; the median of `--repeat N`.

mod decode;
mod encode;
mod library;

use std::sync::Mutex;
use std::time::Instant;

use peers_harness::{Item, Result, cpu_seconds};
use rayon::prelude::*;
use zarr::Array;

use crate::decode::Work;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// What one repetition took.
struct Run {
    wall: f64,
    cpu: f64,
    /// The sum of what the steps answered.
    bytes: usize,
}

/// Has Rayon's threads take the numbers up to the last of `ends`, each thread with what `make` gave it before the clock started. No number from one end on is taken before
/// all before it are done.
fn run<W: Send>(
    threads: usize,
    ends: &[usize],
    make: impl Fn() -> Result<W>,
    step: impl Fn(&mut W, usize) -> Result<usize> + Sync,
) -> Result<Run> {
    let workers = (0..threads).map(|_| make().map(Mutex::new)).collect::<Result<Vec<_>>>()?;
    let work = |number: usize| -> Result<usize> {
        let worker = workers.get(rayon::current_thread_index().unwrap_or(0)).ok_or("a thread too many")?;
        let mut worker = worker.lock().map_err(|_| "a worker panicked")?;
        step(&mut worker, number)
    };
    let sum = |a: usize, b: usize| -> Result<usize> { Ok(a + b) };
    let calls = || -> Result<usize> {
        let mut bytes = 0;
        for (&start, &end) in std::iter::once(&0).chain(ends).zip(ends) {
            bytes += match threads {
                1 => (start..end).map(work).sum::<Result<usize>>()?,
                _ => (start..end).into_par_iter().with_max_len(1).map(work).try_reduce(|| 0, sum)?,
            };
        }
        Ok(bytes)
    };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build()?;
    // Threads that have run before.
    pool.broadcast(|_| ());
    let (start, cpu) = (Instant::now(), cpu_seconds());
    let bytes = if threads == 1 { calls()? } else { pool.install(calls)? };
    Ok(Run { wall: start.elapsed().as_secs_f64(), cpu: cpu_seconds() - cpu, bytes })
}

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let threads: usize = args.next().ok_or("how many threads?")?.parse()?;
    let path = args.next().ok_or("no path")?;
    let (mut work, mut ahead, mut files, mut by_ours, mut source, mut repeat) = (Vec::new(), false, false, false, None, 3);
    while let (Some(flag), Some(value)) = (args.next(), args.next()) {
        match flag.as_str() {
            "--work" | "--ahead" => {
                work = serde_json::from_slice::<Vec<Item>>(&std::fs::read(value)?)?;
                ahead = flag == "--ahead";
            }
            "--files" => files = value == "yes",
            "--codecs" => by_ours = value == "ours",
            "--encode" => source = Some(std::fs::read(value)?),
            "--repeat" => repeat = value.parse()?,
            _ => return Err(format!("unknown flag {flag}").into()),
        }
    }
    let array = Array::open(zarr::store::FilesystemStore::new(&path)?, "/", &zarr::options())?;
    let source_len = source.as_ref().map(Vec::len);
    let mut runs = match source {
        Some(source) => encode::measure(&array, path.as_ref(), source, threads, repeat)?,
        None => decode::measure(&array, path.as_ref(), &Work { items: &work, ahead, files, by_ours }, threads, repeat)?,
    };
    runs.sort_by(|a, b| a.wall.total_cmp(&b.wall));
    let Run { wall, cpu, bytes } = runs.get(runs.len() / 2).ok_or("no repetition")?;
    match source_len {
        Some(n) => println!("{{\"wall\": {wall:.6}, \"cpu\": {cpu:.6}, \"n\": {n}, \"encoded\": {bytes}}}"),
        None => println!("{{\"wall\": {wall:.6}, \"cpu\": {cpu:.6}, \"n\": {bytes}}}"),
    }
    Ok(())
}

//! What bounds reads and writes, whoever does them: the field's own libraries (libzstd, libdeflate, c-blosc) alone, from warm memory into one
//! warm buffer for each thread. No store, no layout, no fresh memory.
//!
//! * `floor THREADS PATH [--work FILE]`: *decoding alone*, of the stored chunks that the calls of a work list touch, one call after the other: no thread begins
//!   with the chunks of a call before those of the one before are decoded. With `--ahead` instead of `--work`, all of them at once. Where nothing is decoded,
//!   what is left is the system's part: opening each file and reading it; `--files yes` counts that in also where there is something to decode.
//! * `floor THREADS PATH --encode SOURCE`: *encoding alone*, of a source that was cut before into the innermost chunks of the array at PATH, with
//!   the levels and parameters of its metadata. Where nothing is encoded, what is left is the system's part: beside the array, making the
//!   directories of the keys and, for each chunk, creating a file, writing it, and renaming it to its final name, as writers do so that no reader
//!   sees half a chunk.
//!
//! One line of JSON, `{"wall", "cpu", "n"}`, and of encoding `{"encoded"}`, the bytes that all chunks encode to; the median of `--repeat N`.

mod decode;
mod encode;
mod library;

use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use peers_harness::{Item, Result, cpu_seconds};
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

/// Has threads take the numbers up to the last of `ends`, each thread with what `make` gave it before the clock started. No number from one end on is taken before all
/// before it are done.
fn run<W>(
    threads: usize,
    ends: &[usize],
    make: impl Fn() -> Result<W> + Sync,
    step: impl Fn(&mut W, usize) -> Result<usize> + Sync,
) -> Result<Run> {
    let calls: Vec<(AtomicUsize, usize)> =
        std::iter::once(&0).chain(ends).zip(ends).map(|(&start, &end)| (AtomicUsize::new(start), end)).collect();
    let arrived = AtomicUsize::new(0);
    let barrier = Barrier::new(threads + 1);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|_| {
                scope.spawn(|| -> Result<usize> {
                    let made = make();
                    barrier.wait();
                    let mut bytes = 0;
                    let work = || {
                        let mut worker = made?;
                        for (call, (next, end)) in calls.iter().enumerate() {
                            loop {
                                let number = next.fetch_add(1, Ordering::Relaxed);
                                if number >= *end {
                                    break;
                                }
                                bytes += step(&mut worker, number)?;
                            }
                            // Threads that wait spin: waking them is not what this measures.
                            arrived.fetch_add(1, Ordering::AcqRel);
                            while arrived.load(Ordering::Acquire) < threads * (call + 1) {
                                std::hint::spin_loop();
                            }
                        }
                        Ok(())
                    };
                    let result: Result<()> = work();
                    if result.is_err() {
                        // Nobody is to wait for this thread.
                        arrived.store(usize::MAX / 2, Ordering::Release);
                    }
                    result.map(|()| bytes)
                })
            })
            .collect();
        barrier.wait();
        let (start, cpu) = (Instant::now(), cpu_seconds());
        let mut bytes = 0;
        for worker in workers {
            bytes += worker.join().map_err(|_| "a worker panicked")??;
        }
        Ok(Run { wall: start.elapsed().as_secs_f64(), cpu: cpu_seconds() - cpu, bytes })
    })
}

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let threads: usize = args.next().ok_or("how many threads?")?.parse()?;
    let path = args.next().ok_or("no path")?;
    let (mut work, mut ahead, mut files, mut source, mut repeat) = (Vec::new(), false, false, None, 3);
    while let (Some(flag), Some(value)) = (args.next(), args.next()) {
        match flag.as_str() {
            "--work" | "--ahead" => {
                work = serde_json::from_slice::<Vec<Item>>(&std::fs::read(value)?)?;
                ahead = flag == "--ahead";
            }
            "--files" => files = value == "yes",
            "--encode" => source = Some(std::fs::read(value)?),
            "--repeat" => repeat = value.parse()?,
            _ => return Err(format!("unknown flag {flag}").into()),
        }
    }
    let array = Array::open(zarr::store::FilesystemStore::new(&path)?, "/", &zarr::options())?;
    let source_len = source.as_ref().map(Vec::len);
    let mut runs = match source {
        Some(source) => encode::measure(&array, path.as_ref(), source, threads, repeat)?,
        None => decode::measure(&array, path.as_ref(), &Work { items: &work, ahead, files }, threads, repeat)?,
    };
    runs.sort_by(|a, b| a.wall.total_cmp(&b.wall));
    let Run { wall, cpu, bytes } = runs.get(runs.len() / 2).ok_or("no repetition")?;
    match source_len {
        Some(n) => println!("{{\"wall\": {wall:.6}, \"cpu\": {cpu:.6}, \"n\": {n}, \"encoded\": {bytes}}}"),
        None => println!("{{\"wall\": {wall:.6}, \"cpu\": {cpu:.6}, \"n\": {bytes}}}"),
    }
    Ok(())
}

//! The stores that are read: one array each, with other chunks and codecs.

use std::f32::consts::TAU;
use std::fs::{self, File};
use std::io::Read;
use std::ops::DerefMut;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use zarr_array::{ArrayBuilder, Options, Selection};
use zarr_codec_api::Registry;
use zarr_meta::{DataType, Extension, Json};
use zarr_store::FilesystemStore;
use zarr_store_api::AnyStore;

use super::{Result, times};

/// Rows and columns of a field.
const FIELD: [usize; 2] = [721, 1440];
/// Fields for each time.
const LEVELS: usize = 4;
/// Times that are written together: those of a shard.
const TOGETHER: u64 = 4;

pub(crate) struct Layout {
    pub(crate) name: &'static str,
    /// What compresses, as metadata have it.
    codec: Option<&'static str>,
    chunks: [u64; 4],
    shards: Option<[u64; 4]>,
}

const ZSTD: &str = r#"{"name":"zstd","configuration":{"level":3,"checksum":false}}"#;
/// As zarr-python compresses arrays of version 2 unless told otherwise.
const BLOSC_LZ4: &str = r#"{"name":"blosc","configuration":{"cname":"lz4","clevel":5,"shuffle":"shuffle","typesize":4,"blocksize":0}}"#;
const BLOSC_ZSTD: &str = r#"{"name":"blosc","configuration":{"cname":"zstd","clevel":3,"shuffle":"shuffle","typesize":4,"blocksize":0}}"#;
const GZIP: &str = r#"{"name":"gzip","configuration":{"level":5}}"#;

/// Of numcodecs: a block with its size before it.
const LZ4: &str = r#"{"name":"numcodecs.lz4","configuration":{"acceleration":1}}"#;

pub(crate) const LAYOUTS: [Layout; 10] = [
    Layout { name: "raw", codec: None, chunks: [1, 1, 721, 1440], shards: None },
    Layout { name: "zstd", codec: Some(ZSTD), chunks: [1, 1, 721, 1440], shards: None },
    Layout { name: "zstdsmall", codec: Some(ZSTD), chunks: [1, 1, 103, 240], shards: None },
    Layout { name: "zstdshard", codec: Some(ZSTD), chunks: [1, 1, 103, 360], shards: Some([4, 2, 721, 1440]) },
    Layout { name: "blosclz4", codec: Some(BLOSC_LZ4), chunks: [1, 1, 721, 1440], shards: None },
    Layout { name: "blosczstd", codec: Some(BLOSC_ZSTD), chunks: [1, 1, 721, 1440], shards: None },
    Layout { name: "gzip", codec: Some(GZIP), chunks: [1, 1, 721, 1440], shards: None },
    Layout { name: "gzipsmall", codec: Some(GZIP), chunks: [1, 1, 103, 240], shards: None },
    Layout { name: "lz4", codec: Some(LZ4), chunks: [1, 1, 721, 1440], shards: None },
    Layout { name: "lz4small", codec: Some(LZ4), chunks: [1, 1, 103, 240], shards: None },
];

/// Makes a store, unless it is there. One that was not finished has a file `NAME.making` beside it, and is made anew.
pub(super) fn make(folder: &Path, layout: &Layout, count: u64) -> Result<()> {
    let (place, making) = (folder.join(layout.name), folder.join(format!("{}.making", layout.name)));
    if place.join("zarr.json").exists() && !making.exists() {
        return Ok(());
    }
    fs::create_dir_all(&place)?;
    File::create(&making)?;
    let options = Options::new(Registry::new().with(zarr_codecs_cpu::provider()));
    let array = builder(layout, count)?.create(AnyStore::blocking(FilesystemStore::new(&place)?), "/", &options)?;
    for start in (0..count).step_by(TOGETHER as usize) {
        let end = (start + TOGETHER).min(count);
        array.write_elements(&Selection::parse(&format!("{start}:{end}"), 4)?, &fields(start, end))?;
    }
    Ok(fs::remove_file(making)?)
}

/// The array of a layout.
pub(crate) fn builder(layout: &Layout, count: u64) -> Result<ArrayBuilder> {
    let shape = [count, LEVELS as u64, FIELD[0] as u64, FIELD[1] as u64];
    let mut builder = ArrayBuilder::new(shape, DataType::Float32).chunks(layout.chunks).overwrite(true);
    let codec = |json: &str| -> Result<Extension> { Ok(Extension::parse(&Json::parse(json.as_bytes())?)?) };
    builder = builder.compressors(layout.codec.map(codec).transpose()?.into_iter().collect::<Vec<_>>());
    Ok(match layout.shards {
        Some(shards) => builder.shards(shards),
        None => builder,
    })
}

/// The fields of some times, side by side, made by as many threads as there are cores.
pub(crate) fn fields(start: u64, end: u64) -> Vec<f32> {
    let len = FIELD[0] * FIELD[1];
    let mut out = vec![0.0; (end - start) as usize * LEVELS * len];
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let first = start as usize * LEVELS;
    let per_thread = (out.len() / len).div_ceil(threads);
    std::thread::scope(|scope| {
        for (lane, part) in out.chunks_mut(per_thread * len).enumerate() {
            scope.spawn(move || {
                for (index, field) in part.chunks_exact_mut(len).enumerate() {
                    fill(field, first + lane * per_thread + index);
                }
            });
        }
    });
    out
}

/// Waves of twelve lengths around 250, noise of 0.05, all in steps of 0.01.
fn fill(field: &mut [f32], index: usize) {
    let mut state = 1000 + index as u64;
    let mut random = move || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 40) as f32 / (1u64 << 24) as f32
    };
    let [height, width] = FIELD;
    let waves: Vec<(Vec<f32>, Vec<f32>)> = (1..=12)
        .map(|number| {
            let (scale, shift, tilt) = ((random() - 0.5) * 20.0 / number as f32, random() * TAU, random() * TAU);
            let along = |column: usize| scale * (number as f32 * TAU * column as f32 / width as f32 + shift + index as f32 * 0.05).sin();
            let across = |row: usize| (number as f32 * 1.7 * (row as f32 * 2.0 / (height - 1) as f32 - 1.0) + tilt).cos();
            ((0..width).map(along).collect(), (0..height).map(across).collect())
        })
        .collect();
    for (row, line) in field.chunks_exact_mut(width).enumerate() {
        let base = 250.0 + 40.0 * ((row as f32 * 2.0 / (height - 1) as f32 - 1.0) * 1.5).cos();
        for (column, value) in line.iter_mut().enumerate() {
            let wave: f32 = waves.iter().map(|(along, across)| along[column] * across[row]).sum();
            // Four evenly spread numbers have a sum that is nearly normal.
            let noise = (random() + random() + random() + random() - 2.0) * 0.0866;
            *value = ((base + wave + noise) / 0.01).round() * 0.01;
        }
    }
}

/// Reads every file below a folder, on a thread for each piece of memory, which it fills again and again. Gives the bytes, and seconds of each run.
pub(super) fn page_cache<M: DerefMut<Target = [u8]> + Send>(folder: &Path, runs: usize, lanes: &mut [M]) -> Result<(u64, Vec<f64>)> {
    let mut files = Vec::new();
    walk(folder, &mut files)?;
    let bytes = files.iter().map(|file| file.1).sum();
    // Parts of large files go to several threads.
    let parts: Vec<(&PathBuf, u64)> =
        files.iter().flat_map(|(path, len)| (0..len.div_ceil(PART as u64)).map(move |part| (path, part * PART as u64))).collect();
    let seconds = times(runs, || {
        let next = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            let lanes: Vec<_> = lanes.iter_mut().map(|memory| scope.spawn(|| read_parts(&parts, &next, memory))).collect();
            lanes.into_iter().try_for_each(|lane| lane.join().map_err(|_| "a reader panicked")?)
        })
    })?;
    Ok((bytes, seconds))
}

/// Bytes of a file that one thread reads at a time.
pub(super) const PART: usize = 4 << 20;

fn read_parts(parts: &[(&PathBuf, u64)], next: &AtomicUsize, memory: &mut [u8]) -> Result<()> {
    use std::io::Seek as _;
    let mut at = 0;
    while let Some((path, start)) = parts.get(next.fetch_add(1, Ordering::Relaxed)) {
        let mut file = File::open(path)?;
        if *start > 0 {
            file.seek(std::io::SeekFrom::Start(*start))?;
        }
        if at + PART > memory.len() {
            at = 0;
        }
        let into = &mut memory[at..at + PART];
        let mut filled = 0;
        while filled < into.len() {
            match file.read(&mut into[filled..])? {
                0 => break,
                count => filled += count,
            }
        }
        at += filled.next_multiple_of(64);
    }
    Ok(())
}

fn walk(folder: &Path, files: &mut Vec<(PathBuf, u64)>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        match metadata.is_dir() {
            true => walk(&entry.path(), files)?,
            false => files.push((entry.path(), metadata.len())),
        }
    }
    Ok(())
}

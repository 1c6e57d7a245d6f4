//! What the drivers have in common: arguments, work lists, the clock, and the check of what was read.
//!
//! A driver does one measurement in one process and prints one line of JSON: `{"wall", "cpu"}` in seconds for the operation alone,
//! `{"rss"}`, the most memory the process ever had resident (`VmHWM`), `{"start_rss"}`, the same before the operation, `{"n"}`, decoded bytes,
//! and `{"ops"}`, calls. With `--verify` it compares every byte with the source instead of measuring.

use std::error::Error;
use std::ops::Range;
use std::time::Instant;

use rustix::time::{ClockId, clock_gettime};
use serde::Deserialize;

pub type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// One call of a work list.
#[derive(Debug, Clone, Deserialize)]
pub struct Item {
    /// First element along each axis.
    pub start: Vec<u64>,
    /// Elements along each axis.
    pub shape: Vec<u64>,
    /// The coordinates of the chunk or inner chunk that this is, if it is one.
    #[serde(default)]
    pub chunk: Vec<u64>,
}

impl Item {
    pub fn ranges(&self) -> Vec<Range<u64>> {
        self.start.iter().zip(&self.shape).map(|(&start, &len)| start..start + len).collect()
    }
}

/// An implementation under measurement.
pub trait Peer: Sized {
    /// What a read gives.
    type Bytes: AsRef<[u8]>;

    /// Opens the array; `setup` names one of the peer's own ways to be used.
    fn open(path: &str, setup: &str) -> Result<Self>;
    fn shape(&self) -> Vec<u64>;
    fn item_size(&self) -> usize;
    fn read_all(&self) -> Result<Self::Bytes>;
    fn read_chunk(&self, item: &Item) -> Result<Self::Bytes>;
    fn read_inner(&self, item: &Item) -> Result<Self::Bytes>;
    fn read_box(&self, item: &Item) -> Result<Self::Bytes>;
    /// Reads one chunk after the other, and has [`in_flight`] reads under way, this one among them. `each` sees them in order.
    fn read_ahead(&self, items: &[Item], each: &mut dyn FnMut(&Item, Self::Bytes) -> Result<()>) -> Result<()>;
    /// Reads everything into memory that was written to before.
    fn read_all_into(&self, _memory: &mut [u8]) -> Result<()> {
        Err("this peer cannot read into memory at hand".into())
    }
    fn write_all(&self, data: &[u8]) -> Result<()>;
}

/// Reads that are under way at a time where they run ahead: for each processor, and one more.
pub fn in_flight() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from) + 1
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    ReadAll,
    ReadAllInto,
    ReadChunks,
    ReadInner,
    ReadBox,
    ReadAhead,
    WriteAll,
}

struct Args {
    mode: Mode,
    path: String,
    setup: String,
    work: Vec<Item>,
    source: Option<String>,
    verify: bool,
}

fn args() -> Result<Args> {
    let mut given = std::env::args().skip(1);
    let mut next = || given.next();
    let mode = match next().as_deref() {
        Some("read_all") => Mode::ReadAll,
        Some("read_all_into") => Mode::ReadAllInto,
        Some("read_chunks") => Mode::ReadChunks,
        Some("read_inner") => Mode::ReadInner,
        Some("read_box" | "read_plane") => Mode::ReadBox,
        Some("read_ahead") => Mode::ReadAhead,
        Some("write_all") => Mode::WriteAll,
        other => return Err(format!("unknown mode {other:?}").into()),
    };
    let path = next().ok_or("no path")?;
    let mut args = Args { mode, path, setup: String::new(), work: Vec::new(), source: None, verify: false };
    while let Some(flag) = next() {
        let mut value = || next().ok_or_else(|| format!("{flag} wants a value"));
        match flag.as_str() {
            "--setup" => args.setup = value()?,
            "--work" => args.work = serde_json::from_slice(&std::fs::read(value()?)?)?,
            "--source" => args.source = Some(value()?),
            "--verify" => args.verify = true,
            _ => return Err(format!("unknown flag {flag}").into()),
        }
    }
    Ok(args)
}

/// Runs one measurement with the process's arguments: `MODE PATH [--setup S] [--work FILE] [--source FILE] [--verify]`.
pub fn run<P: Peer>() -> Result<()> {
    let args = args()?;
    let peer = P::open(&args.path, &args.setup)?;
    let shape = peer.shape();
    let all = Item { start: vec![0; shape.len()], shape: shape.clone(), chunk: Vec::new() };
    let source = match &args.source {
        Some(path) if args.verify || args.mode == Mode::WriteAll => std::fs::read(path)?,
        _ => Vec::new(),
    };
    let len = shape.iter().product::<u64>() as usize * peer.item_size();
    if !source.is_empty() && source.len() != len {
        return Err(format!("the source has {} bytes and the array {len}", source.len()).into());
    }
    let check = |item: &Item, read: &[u8]| same(item, read, &shape, peer.item_size(), &source);
    if args.verify {
        let read = |item: &Item| match args.mode {
            Mode::ReadChunks => peer.read_chunk(item),
            Mode::ReadInner => peer.read_inner(item),
            _ => peer.read_box(item),
        };
        match args.mode {
            Mode::ReadAll => check(&all, peer.read_all()?.as_ref())?,
            Mode::ReadAllInto => {
                let mut memory = vec![1; len];
                peer.read_all_into(&mut memory)?;
                check(&all, &memory)?;
            }
            Mode::WriteAll => peer.write_all(&source)?,
            Mode::ReadAhead => peer.read_ahead(&args.work, &mut |item, bytes| check(item, bytes.as_ref()))?,
            _ => args.work.iter().try_for_each(|item| check(item, read(item)?.as_ref()))?,
        }
        println!("{{\"verified\": true}}");
        return Ok(());
    }

    let mut memory = if args.mode == Mode::ReadAllInto { vec![1; len] } else { Vec::new() };
    let mut kept = None;
    let mut n = 0;
    let mut count = |bytes: P::Bytes| n += bytes.as_ref().len();
    let start_rss = peak()?;
    let (wall, cpu) = (Instant::now(), cpu_seconds());
    match args.mode {
        Mode::ReadAll => kept = Some(peer.read_all()?),
        Mode::ReadAllInto => peer.read_all_into(&mut memory)?,
        Mode::ReadChunks => args.work.iter().try_for_each(|item| peer.read_chunk(item).map(&mut count))?,
        Mode::ReadInner => args.work.iter().try_for_each(|item| peer.read_inner(item).map(&mut count))?,
        Mode::ReadBox => args.work.iter().try_for_each(|item| peer.read_box(item).map(&mut count))?,
        Mode::ReadAhead => peer.read_ahead(&args.work, &mut |_, bytes| {
            count(bytes);
            Ok(())
        })?,
        Mode::WriteAll => peer.write_all(&source)?,
    }
    let (wall, cpu) = (wall.elapsed().as_secs_f64(), cpu_seconds() - cpu);
    let n = n + kept.as_ref().map_or(memory.len(), |bytes| bytes.as_ref().len()) + source.len();
    let ops = args.work.len().max(1);
    println!("{{\"wall\": {wall:.6}, \"cpu\": {cpu:.6}, \"rss\": {}, \"start_rss\": {start_rss}, \"n\": {n}, \"ops\": {ops}}}", peak()?);
    Ok(())
}

/// Compares what was read with the same part of the source.
fn same(item: &Item, read: &[u8], shape: &[u64], item_size: usize, source: &[u8]) -> Result<()> {
    let expected = item.shape.iter().product::<u64>() as usize * item_size;
    if read.len() != expected {
        return Err(format!("{item:?}: {} bytes read, {expected} expected", read.len()).into());
    }
    let rank = shape.len();
    let row = item.shape.last().copied().unwrap_or(1) as usize * item_size;
    for (number, found) in read.chunks_exact(row.max(1)).enumerate() {
        let (mut rest, mut offset, mut stride) = (number as u64, 0u64, 1u64);
        for axis in (0..rank).rev() {
            let index = if axis + 1 == rank {
                0
            } else {
                let index = rest % item.shape[axis];
                rest /= item.shape[axis];
                index
            };
            offset += (item.start[axis] + index) * stride;
            stride *= shape[axis];
        }
        let at = offset as usize * item_size;
        if source[at..at + row] != *found {
            return Err(format!("{item:?}: row {number} differs from the source").into());
        }
    }
    Ok(())
}

/// Seconds of processor time, of all threads.
pub fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// The most bytes that were ever resident.
pub fn peak() -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no VmHWM")?;
    let kib: u64 = line.trim().trim_end_matches("kB").trim().parse()?;
    Ok(kib * 1024)
}

//! The stages of a read, each alone.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use zarr::store::MemoryStore;
use zarr::store_api::{AnyStore, ByteRange, StoreError, StoreKey, WritableStore as _};
use zarr::{Array, ArrayError, Selection};

use super::{Times, read, timed};
use crate::context::Context;
use crate::device::{Place, read_to};
use crate::error::{Failure, Result};
use crate::store;

/// What each stage takes when nothing else runs.
pub(crate) struct Stages {
    /// Name and times, in the order of a read.
    pub(crate) stages: Vec<(&'static str, Times)>,
    /// Bytes fetched in one read.
    pub(crate) fetched: u64,
}

/// A range of a value, and how many bytes it has.
struct Piece {
    key: StoreKey,
    range: ByteRange,
    len: usize,
}

/// Measures the stages, `runs` times each.
pub(crate) fn stages(array: &Array, pieces: &[Selection], place: &Place, runs: usize, context: &Context) -> Result<Stages> {
    let wanted = wanted(array, pieces)?;
    let fetched = wanted.iter().map(|piece| piece.len as u64).sum();
    let lanes = lanes(array, &wanted, context);
    let fetch = Times::of(runs, || fetch(array, &wanted, &lanes, context))?;
    drop(lanes);
    let mut stages = vec![("fetch", fetch)];
    match place.target_for(array) {
        None => stages.push(("decode and scatter", from_memory(array, pieces, &wanted, place, runs)?)),
        Some(target) => {
            let clock = timed::Clock::default();
            let mut options = array.options().clone();
            options.registry = timed::registry(&options.registry, &clock);
            let (array, target) = (array.with_options(&options)?, timed::target(target, &clock));
            let spent = (0..runs).map(|_| {
                clock.take();
                for piece in pieces {
                    read_to(&array, piece, &target)?;
                }
                Ok(clock.take())
            });
            let spent: Vec<timed::Spent> = spent.collect::<Result<_, ArrayError>>()?;
            stages.push(("upload", spent.iter().map(|spent| spent.upload).collect()));
            stages.push(("decode", spent.iter().map(|spent| spent.decode).collect()));
            stages.push(("scatter", spent.iter().map(|spent| spent.scatter).collect()));
        }
    }
    Ok(Stages { stages, fetched })
}

/// What a read asks of the store, shard indexes included.
fn wanted(array: &Array, pieces: &[Selection]) -> Result<Vec<Piece>> {
    let mut wanted = Vec::new();
    for piece in pieces {
        let mut plan = array.plan(piece)?;
        while let Some(request) = plan.next_requests(1)?.pop() {
            let bytes = match array.store() {
                AnyStore::Blocking(blocking) => blocking.get_ranges(&request.key, &request.ranges)?,
                AnyStore::Async(native) => store::wait(native.get_ranges(&request.key, &request.ranges))?,
            };
            if let Some(bytes) = &bytes {
                let ranges = request.ranges.iter().zip(bytes);
                wanted.extend(ranges.map(|(&range, bytes)| Piece { key: request.key.clone(), range, len: bytes.len() }));
            }
            plan.supply(request.id, bytes)?;
        }
    }
    Ok(wanted)
}

/// Memory for each thread that fetches, as it is in a read: there before, and used again.
fn lanes(array: &Array, wanted: &[Piece], context: &Context) -> Vec<Mutex<Vec<u8>>> {
    let (threads, longest) = match array.store() {
        AnyStore::Blocking(_) => (context.threads, wanted.iter().map(|piece| piece.len).max().unwrap_or(0)),
        AnyStore::Async(_) => (array.options().concurrency, 0),
    };
    (0..threads).map(|_| Mutex::new(vec![1; longest])).collect()
}

/// Reads all that is wanted, each lane on a thread of its own.
fn fetch(array: &Array, wanted: &[Piece], lanes: &[Mutex<Vec<u8>>], context: &Context) -> Result<Duration> {
    let next = AtomicUsize::new(0);
    let start = Instant::now();
    let done = context.each(lanes.len(), lanes, |lane| -> Result<(), StoreError> {
        let mut into = lane.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(piece) = wanted.get(next.fetch_add(1, Ordering::Relaxed)) {
            match array.store() {
                AnyStore::Blocking(blocking) => {
                    let room = into.get_mut(..piece.len).unwrap_or_default();
                    blocking.get_into(&piece.key, piece.range, room).map(drop)?;
                }
                AnyStore::Async(native) => store::wait(native.get(&piece.key, piece.range)).map(drop)?,
            }
        }
        Ok(())
    });
    done.into_iter().collect::<Result<(), StoreError>>()?;
    Ok(start.elapsed())
}

/// Reads the array from a copy of its stored bytes in memory.
fn from_memory(array: &Array, pieces: &[Selection], wanted: &[Piece], place: &Place, runs: usize) -> Result<Times> {
    let memory = MemoryStore::new();
    let path = array.path().to_string();
    let path = path.trim_matches('/');
    let documents =
        ["zarr.json", ".zarray", ".zattrs"].map(|name| if path.is_empty() { name.to_owned() } else { format!("{path}/{name}") });
    let mut keys: Vec<StoreKey> = documents.into_iter().map(|key| StoreKey::new(key).map_err(Failure::from)).collect::<Result<_>>()?;
    keys.extend(wanted.iter().map(|piece| piece.key.clone()));
    keys.sort();
    keys.dedup();
    for key in keys {
        if let Some(value) = store::get(array.store(), &key)? {
            memory.set(&key, value)?;
        }
    }
    let copy = Array::open(AnyStore::blocking(Arc::new(memory)), &array.path().to_string(), &place.options)?;
    let mut output = Vec::new();
    read(&copy, pieces, place, &mut output)?;
    Ok(Times::of(runs, || read(&copy, pieces, place, &mut output))?)
}

#[cfg(test)]
mod tests {
    use zarr::{ArrayBuilder, DataType, DeviceTarget, Policy};
    use zarr_conformance::toy::OpaqueDevice;

    use super::*;
    use crate::args::Global;

    #[test]
    fn every_stage_on_a_device_takes_its_time() {
        let global = Global { quiet: true, json: false, threads: None, settings: Vec::new() };
        let context = Context::new(&global).unwrap_or_else(|failure| panic!("{}", failure.line()));
        let toy = OpaqueDevice::new(0);
        let mut options = context.options().with_policy(Policy::Prefer(zarr::buffer_api::Device::id(&*toy)));
        options.registry = options.registry.with(toy.provider());
        let store = AnyStore::blocking(Arc::new(MemoryStore::new()));
        let array = ArrayBuilder::new([100, 40], DataType::Int32).chunks([7, 40]).create(store, "/", &options).unwrap();
        array.write_elements::<i32>(&Selection::parse(":90, :", 2).unwrap(), &(0..3600).collect::<Vec<_>>()).unwrap();
        let place = Place { options, target: Some(DeviceTarget::new(toy).unwrap()) };
        let pieces = [Selection::parse("::2, 3:", 2).unwrap()];
        let measured = stages(&array, &pieces, &place, 3, &context).unwrap_or_else(|failure| panic!("{}", failure.line()));
        let names: Vec<&str> = measured.stages.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["fetch", "upload", "decode", "scatter"]);
        assert!(measured.stages.iter().all(|(_, times)| times.len() == 3 && !times.median().is_zero()));
        let wanted: u64 = (0..13).map(|chunk| array.stored_chunk_size(&[chunk, 0]).unwrap().unwrap()).sum();
        assert_eq!(measured.fetched, wanted, "13 of 15 chunks were written");
    }
}

//! The chunks of one array.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use indicatif::ProgressBar;
use zarr::store_api::{AnyStore, StorePrefix};
use zarr::{Array, Coalescing, Elements, Options, Pool, Selection, StoredMetadata};

use super::regions::Regions;
use crate::context::{Context, pool};
use crate::describe::{coordinates, every_chunk};
use crate::error::{Context as _, Failure, Result};
use crate::slabs::read_fixed;
use crate::{store, units};

/// A copy of an array's chunks, before its metadata is stored.
pub(crate) struct ArrayCopy<'a> {
    pub(crate) source: &'a Array,
    pub(crate) destination: Array,
    pub(crate) same_chunks: bool,
    /// Bytes of memory to work in.
    pub(crate) memory: u64,
    /// Whether chunks may be there already.
    pub(crate) resume: bool,
}

/// What was done.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Copied {
    /// Chunks that were copied as they are.
    pub(crate) as_they_are: u64,
    /// Chunks of the destination that were stored anew (or found to hold only the fill value).
    pub(crate) encoded: u64,
    /// Chunks that an earlier run had stored.
    pub(crate) skipped: u64,
}

impl Copied {
    pub(crate) fn add(&mut self, other: Self) {
        self.as_they_are += other.as_they_are;
        self.encoded += other.encoded;
        self.skipped += other.skipped;
    }
}

impl<'a> ArrayCopy<'a> {
    pub(crate) fn new(source: &'a Array, store: AnyStore, path: &str, stored: StoredMetadata, options: &Options) -> Result<Self> {
        let destination = Array::from_metadata(store, path, stored, options)?;
        Ok(Self { source, destination, same_chunks: false, memory: 1 << 30, resume: false })
    }

    /// Copies the chunks. The progress bar counts decoded bytes.
    pub(crate) fn run(&self, context: &Context, progress: &ProgressBar) -> Result<Copied> {
        let there = if self.resume { self.chunks_there(context)? } else { HashSet::new() };
        if self.same_chunks { self.copy_chunks(context, progress, &there) } else { self.copy_elements(context, progress, &there) }
    }

    /// The chunks that the destination has, and that are as long as they must be.
    fn chunks_there(&self, context: &Context) -> Result<HashSet<Vec<u64>>> {
        let chunks = self.stored_chunks()?;
        let whole = self.whole(&chunks, context)?;
        Ok(chunks.into_iter().zip(whole).filter_map(|(chunk, whole)| whole.then_some(chunk)).collect())
    }

    /// Whether all the chunks that the destination has are as long as they must be.
    pub(crate) fn is_whole(&self, context: &Context) -> Result<bool> {
        Ok(self.whole(&self.stored_chunks()?, context)?.into_iter().all(|whole| whole))
    }

    fn stored_chunks(&self) -> Result<Vec<Vec<u64>>> {
        let array = &self.destination;
        if !array.store().is_listable() {
            return Ok(Vec::new());
        }
        let prefix = StorePrefix::new(array.path().prefix())?;
        let encoding = &array.metadata().chunk_key_encoding;
        let keys = store::list(array.store(), &prefix)?;
        Ok(keys.iter().filter_map(|key| encoding.decode(prefix.strip(key)?, array.shape().len())).collect())
    }

    /// Whether chunks of the destination are as long as those of the source, or at least not empty. Files may have lost their bytes when the machine crashed; servers
    /// store values as a whole.
    fn whole(&self, chunks: &[Vec<u64>], context: &Context) -> Result<Vec<bool>> {
        let is_local = |array: &Array| matches!(array.store(), AnyStore::Blocking(_));
        if !is_local(&self.destination) {
            return Ok(vec![true; chunks.len()]);
        }
        let compare = self.same_chunks && is_local(self.source);
        context.try_each(16, chunks, |chunk| {
            let size = self.destination.stored_chunk_size(chunk)?;
            Ok(if compare { size == self.source.stored_chunk_size(chunk)? } else { size.is_some_and(|size| size > 0) })
        })
    }

    /// Copies stored chunks as they are.
    fn copy_chunks(&self, context: &Context, progress: &ProgressBar, there: &HashSet<Vec<u64>>) -> Result<Copied> {
        let (source, destination) = (self.source, &self.destination);
        let grid = source.chunk_grid_shape();
        let chunks: Vec<Vec<u64>> = if source.store().is_listable() {
            let prefix = StorePrefix::new(source.path().prefix())?;
            let encoding = &source.metadata().chunk_key_encoding;
            let inside = |chunk: &Vec<u64>| chunk.iter().zip(&grid).all(|(index, count)| index < count);
            let keys = store::list(source.store(), &prefix)?;
            keys.iter().filter_map(|key| encoding.decode(prefix.strip(key)?, grid.len())).filter(inside).collect()
        } else {
            every_chunk(source)?
        };
        let todo: Vec<Vec<u64>> = chunks.iter().filter(|chunk| !there.contains(*chunk)).cloned().collect();
        let bytes = |chunk: &[u64]| {
            let shape = source.chunk_grid().chunk_shape(chunk);
            shape.iter().fold(source.item_size().unwrap_or(64) as u64, |product, &len| product.saturating_mul(len))
        };
        progress.inc(chunks.iter().filter(|chunk| there.contains(*chunk)).map(|chunk| bytes(chunk)).sum());
        // Chunks that compress badly are a little larger than what they hold; a network store may hold them twice.
        let largest = todo.iter().map(|chunk| bytes(chunk)).max().unwrap_or(0);
        let largest = largest.saturating_add(largest / 16).saturating_add(1 << 16).saturating_mul(2);
        let known = source.item_size().is_some() && largest <= self.memory;
        let remote = [source, destination].iter().any(|array| matches!(array.store(), AnyStore::Async(_)));
        let most = if remote { source.options().concurrency as u64 } else { 16 };
        let at_a_time = if known { (self.memory / largest).clamp(1, most.max(1)) } else { 1 };
        let copied = AtomicU64::new(0);
        context.try_each(at_a_time as usize, &todo, |chunk| {
            if !known && let Some(size) = source.stored_chunk_size(chunk)?.filter(|&size| size > self.memory) {
                let key = source.chunk_key(chunk)?;
                return Err(Failure::new(format!("{key} has {}, more than the memory to work in", units::bytes(size)))
                    .hint(format!("--memory {}", units::at_least(size))));
            }
            if let Some(encoded) = source.read_encoded_chunk(chunk)? {
                destination.write_encoded_chunk(chunk, encoded)?;
                copied.fetch_add(1, Ordering::Relaxed);
            }
            progress.inc(bytes(chunk));
            Ok(())
        })?;
        Ok(Copied { as_they_are: copied.into_inner(), skipped: (chunks.len() - todo.len()) as u64, encoded: 0 })
    }

    /// Decodes and encodes, region by region.
    fn copy_elements(&self, context: &Context, progress: &ProgressBar, there: &HashSet<Vec<u64>>) -> Result<Copied> {
        let plan = Regions::plan(self.source, &self.destination, self.memory, context.threads)?;
        if plan.times_read > 1.5 {
            context.note(&format!(
                "{}chunks of the source are decoded {:.1} times each; more --memory saves that",
                match self.source.path().name() {
                    Some(name) => format!("{name}: "),
                    None => String::new(),
                },
                plan.times_read
            ));
        }
        let options = self.options(&plan, context)?;
        let (source, destination) = (self.source.with_options(&options)?, self.destination.with_options(&options)?);
        let grid = destination.chunk_grid_shape();
        let regions: Vec<u64> = grid.iter().zip(&plan.blocks).map(|(&count, &blocks)| count.div_ceil(blocks)).collect();
        let item = source.item_size().unwrap_or(64) as u64;
        let mut copied = Copied::default();
        let mut buffer = Vec::new();
        for region in coordinates(&regions) {
            let chunks: Vec<(u64, u64)> = region
                .iter()
                .zip(plan.blocks.iter().zip(&grid))
                .map(|(&index, (&blocks, &count))| (index * blocks, ((index + 1) * blocks).min(count)))
                .collect();
            let ranges: Vec<std::ops::Range<u64>> =
                chunks.iter().enumerate().map(|(axis, &(from, to))| self.elements(axis, from, to)).collect();
            let bytes = ranges.iter().fold(item, |product, range| product.saturating_mul(range.end - range.start));
            let counts: Vec<u64> = chunks.iter().map(|(from, to)| to - from).collect();
            let count: u64 = counts.iter().product();
            let all_there = !there.is_empty()
                && coordinates(&counts)
                    .all(|at| there.contains(&at.iter().zip(&chunks).map(|(at, (from, _))| at + from).collect::<Vec<_>>()));
            if all_there {
                copied.skipped += count;
            } else {
                let selection = Selection::ranges(ranges);
                buffer = copy_region(&source, &destination, &selection, buffer)
                    .context(|| format!("copying {} of {}", show(&selection), source.path()))?;
                copied.encoded += count;
            }
            progress.inc(bytes);
        }
        Ok(copied)
    }

    /// The elements of chunks `from..to` of the destination.
    fn elements(&self, axis: usize, from: u64, to: u64) -> std::ops::Range<u64> {
        let grid = self.destination.chunk_grid();
        let len = self.destination.shape().get(axis).copied().unwrap_or(0);
        let end = to.checked_sub(1).map_or(0, |last| grid.chunk_origin(axis, last).saturating_add(grid.chunk_len(axis, last)));
        grid.chunk_origin(axis, from)..end.min(len)
    }

    fn options(&self, plan: &Regions, context: &Context) -> Result<Options> {
        let mut options = context.options();
        if plan.threads < context.threads {
            options = options.with_pool(Pool::new(pool(plan.threads)?));
        }
        if matches!(self.source.store(), AnyStore::Async(_)) {
            let in_flight = self.memory / 4;
            let request = (in_flight / 4).clamp(256 << 10, 16 << 20);
            options = options.with_coalescing(Coalescing { gap: 64 << 10, waste: 20, request });
            options = options.with_in_flight_bytes(usize::try_from(in_flight).unwrap_or(usize::MAX));
        }
        Ok(options)
    }
}

/// Reads a region and writes it; gives the memory back.
fn copy_region(source: &Array, destination: &Array, selection: &Selection, buffer: Vec<u8>) -> Result<Vec<u8>> {
    if source.item_size().is_some() {
        let data = read_fixed(source, selection, buffer)?;
        return match destination.store() {
            AnyStore::Blocking(_) => {
                destination.write(selection, &data)?;
                Ok(data)
            }
            AnyStore::Async(_) => {
                let data = Bytes::from(data);
                store::wait(destination.write_async(selection, data.clone()))?;
                // No copy: nobody else holds the bytes any more.
                Ok(Vec::from(data))
            }
        };
    }
    if let Elements::Variable(elements) = source.read(selection)?.elements {
        match destination.store() {
            AnyStore::Blocking(_) => destination.write_variable(selection, &elements)?,
            AnyStore::Async(_) => store::wait(destination.write_variable_async(selection, elements))?,
        }
    }
    Ok(buffer)
}

fn show(selection: &Selection) -> String {
    let Selection::Axes(axes) = selection else { return String::new() };
    let axes = axes.iter().map(|axis| match axis {
        zarr::AxisSelection::Slice { start, stop, .. } => format!("{}:{}", start.unwrap_or(0), stop.unwrap_or(0)),
        _ => ":".to_owned(),
    });
    format!("[{}]", axes.collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use zarr::store_api::{Store, StoreErrorKind, StoreKey};
    use zarr::{ArrayBuilder, DataType};
    use zarr_store::{Fault, FaultyStore, MemoryStore, When};

    use super::*;

    fn context() -> Context {
        Context::new(&crate::args::Global { quiet: true, json: false, threads: None, settings: Vec::new() }).unwrap()
    }

    /// An array of so many bytes, two in a chunk.
    fn array(len: u64) -> Array {
        let builder = ArrayBuilder::new([len], DataType::UInt8).chunks([2]).compressors([]);
        let array = builder.create(MemoryStore::new(), "/", &zarr::options()).unwrap();
        array.write_elements(&Selection::all(), &vec![7u8; len as usize]).unwrap();
        array
    }

    fn copy(source: &Array, to: impl Store + 'static, same_chunks: bool, resume: bool) -> Result<Copied> {
        let copy = ArrayCopy::new(source, AnyStore::blocking(to), "/", source.stored_metadata().clone(), &zarr::options())?;
        ArrayCopy { same_chunks, resume, ..copy }.run(&context(), &ProgressBar::hidden())
    }

    #[test]
    fn no_more_chunks_are_copied_after_a_failure() {
        let target = FaultyStore::new(MemoryStore::new()).with(When::Write(20), Fault::Fail(StoreErrorKind::NoSpace));
        assert!(copy(&array(10_000), target.clone(), true, false).is_err());
        // Some were under way.
        let copied = store::list(&AnyStore::from(target.inner().clone()), &StorePrefix::root()).unwrap().len();
        assert!((20..1000).contains(&copied), "{copied}");
    }

    /// A crash of the machine may leave files without their bytes.
    #[test]
    fn chunks_that_lost_bytes_are_copied_again() {
        // The shape cuts the last of ten chunks.
        let source = array(19);
        for (same_chunks, lost, left) in [(true, "c/3", ""), (true, "c/3", "x"), (false, "c/3", ""), (false, "c/9", "")] {
            let target = MemoryStore::new();
            copy(&source, target.clone(), same_chunks, false).unwrap();
            let store = AnyStore::from(target.clone());
            store::set(&store, &StoreKey::new(lost).unwrap(), left).unwrap();
            let again = copy(&source, target, same_chunks, true).unwrap();
            assert!(!same_chunks || (again.as_they_are, again.skipped) == (1, 9), "{again:?}");
            let array = Array::from_metadata(store, "/", source.stored_metadata().clone(), &zarr::options()).unwrap();
            assert_eq!(array.read(&Selection::all()).unwrap(), source.read(&Selection::all()).unwrap());
        }
    }
}

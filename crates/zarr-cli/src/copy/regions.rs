//! How much of an array is in memory at a time.

use zarr::Array;
use zarr::meta::ChunkGrid;
use zarr::store_api::AnyStore;

use crate::error::{Failure, Result};
use crate::slabs::element_bytes;
use crate::units;

/// The sizes that a copy depends on, in elements along each axis and bytes.
#[derive(Debug, Clone)]
struct Sizes {
    shape: Vec<u64>,
    item: u64,
    /// Innermost chunks of the source: what is decoded at least.
    source: Vec<u64>,
    /// Chunks of the destination's grid (shards, if it has any): what is stored at least.
    destination: Vec<u64>,
    /// Bytes of the larger innermost chunk of the two.
    chunk: u64,
    /// Whether reads are in flight by their number, not by threads.
    many_in_flight: bool,
}

/// How a copy goes through an array.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Regions {
    /// Chunks of the destination along each axis of one region.
    pub(crate) blocks: Vec<u64>,
    /// Threads that there is memory for.
    pub(crate) threads: usize,
    /// How often a chunk of the source is decoded, on average.
    pub(crate) times_read: f64,
}

/// Regions larger than this are taken only to read less.
const ENOUGH: u64 = 64 << 20;

impl Regions {
    pub(crate) fn plan(source: &Array, destination: &Array, budget: u64, threads: usize) -> Result<Self> {
        let shape = source.shape().to_vec();
        let item = element_bytes(source)?;
        let clip = |lengths: Vec<u64>| lengths.iter().zip(&shape).map(|(&len, &axis)| len.min(axis).max(1)).collect::<Vec<_>>();
        let bytes = |lengths: &[u64]| lengths.iter().fold(item, |product, &len| product.saturating_mul(len));
        let sizes = Sizes {
            chunk: bytes(&source.inner_chunk_shape()).max(bytes(&destination.inner_chunk_shape())),
            source: clip(source.inner_chunk_shape()),
            destination: clip(longest(destination)),
            item,
            many_in_flight: matches!(source.store(), AnyStore::Async(_)),
            shape,
        };
        sizes.plan(budget, threads, &destination.chunk_grid_shape())
    }
}

/// The longest chunk along each axis of the grid.
fn longest(array: &Array) -> Vec<u64> {
    match array.chunk_grid() {
        ChunkGrid::Rectilinear { axes } => {
            axes.iter().map(|axis| axis.as_step().unwrap_or_else(|| axis.as_runs().map(|(length, _)| length).max().unwrap_or(1))).collect()
        }
        grid => grid.chunk_shape(&vec![0; array.shape().len()]),
    }
}

impl Sizes {
    fn plan(&self, budget: u64, threads: usize, grid: &[u64]) -> Result<Regions> {
        let mut blocks = vec![1; self.shape.len()];
        let Some(threads) = (1..=threads.max(1)).rev().find(|&threads| self.need(&blocks, threads) <= budget) else {
            let least = self.need(&blocks, 1);
            return Err(Failure::new(format!(
                "{} of memory are too little: one chunk of the destination takes {} to put together",
                units::bytes(budget),
                units::bytes(least)
            ))
            .hint(format!("give at least --memory {}, or choose smaller chunks or shards", units::at_least(least))));
        };
        loop {
            let now = (self.times_read(&blocks), self.bytes(&blocks) as f64);
            let mut best: Option<(f64, Vec<u64>)> = None;
            for candidate in self.larger(&blocks, grid) {
                if self.need(&candidate, threads) > budget {
                    continue;
                }
                let (read, bytes) = (self.times_read(&candidate), self.bytes(&candidate) as f64);
                // What it saves for what it takes.
                let gain = (now.0 / read).ln() / (bytes / now.1).ln().max(1e-9);
                if gain > 1e-6 && best.as_ref().is_none_or(|(most, _)| gain > *most) {
                    best = Some((gain, candidate));
                }
            }
            match best {
                Some((_, better)) => blocks = better,
                None => break,
            }
        }
        // Enough chunks to keep every thread busy, the last axes first: they lie side by side.
        let enough = ENOUGH.max(self.bytes(&vec![1; blocks.len()]).saturating_mul(4 * threads as u64));
        for axis in (0..blocks.len()).rev() {
            while self.bytes(&blocks) < enough && blocks[axis] < grid[axis] {
                let mut candidate = blocks.clone();
                candidate[axis] = (blocks[axis] * 2).min(grid[axis]);
                if self.need(&candidate, threads) > budget || self.times_read(&candidate) > self.times_read(&blocks) * 1.001 {
                    break;
                }
                blocks = candidate;
            }
        }
        Ok(Regions { times_read: self.times_read(&blocks), blocks, threads })
    }

    /// Regions that are larger along one axis: by one, twice, to where chunks of both sides end together, to the end.
    fn larger(&self, blocks: &[u64], grid: &[u64]) -> Vec<Vec<u64>> {
        let mut all = Vec::new();
        for (axis, (&now, &count)) in blocks.iter().zip(grid).enumerate() {
            let (source, destination) = (self.source[axis], self.destination[axis]);
            let together = source / greatest_common_divisor(source, destination);
            for larger in [now + 1, now * 2, now.next_multiple_of(together.max(1)), now + together, count] {
                let larger = larger.min(count);
                if larger > now {
                    let mut candidate = blocks.to_vec();
                    candidate[axis] = larger;
                    all.push(candidate);
                }
            }
        }
        all
    }

    /// Elements along one axis of a region.
    fn length(&self, axis: usize, blocks: u64) -> u64 {
        blocks.saturating_mul(self.destination[axis]).min(self.shape[axis].max(1))
    }

    /// Bytes of the elements of a region.
    fn bytes(&self, blocks: &[u64]) -> u64 {
        blocks.iter().enumerate().fold(self.item, |product, (axis, &blocks)| product.saturating_mul(self.length(axis, blocks)))
    }

    /// How often a chunk of the source is decoded when the array is copied in such regions.
    fn times_read(&self, blocks: &[u64]) -> f64 {
        blocks
            .iter()
            .enumerate()
            .map(|(axis, &blocks)| times_touched(self.length(axis, blocks), self.source[axis], self.shape[axis]))
            .product()
    }

    /// Bytes of memory that copying a region takes at most: its elements, what is encoded of them meanwhile on either side, and what the threads work with.
    fn need(&self, blocks: &[u64], threads: usize) -> u64 {
        let elements = self.bytes(blocks);
        let threads = threads as u64;
        let touched = (elements as f64 * self.times_read(blocks)) as u64;
        // A thread that waits for its own pieces takes up others: twice as many are under way.
        let by_threads = |bytes: u64| bytes.saturating_mul(2 * threads);
        let read = if self.many_in_flight { touched } else { touched.min(by_threads(self.chunk.max(4 << 20))) };
        let stored = self.destination.iter().fold(self.item, |product, &len| product.saturating_mul(len));
        let write = (elements.saturating_add(elements / 32)).min(by_threads(stored.saturating_add(stored / 32)));
        elements.saturating_add(read.max(write)).saturating_add(by_threads(self.chunk))
    }
}

/// How often a chunk of `chunk` elements is touched, on average, by pieces of `length` of an axis of `axis` elements.
fn times_touched(length: u64, chunk: u64, axis: u64) -> f64 {
    if length >= axis || length.is_multiple_of(chunk) {
        return 1.0;
    }
    // The pattern of a long axis shows in its first part.
    let pieces = axis.div_ceil(length).min(10_000);
    let end = axis.min(pieces.saturating_mul(length));
    let touched: u64 = (0..pieces).map(|piece| ((piece + 1) * length).min(end).div_ceil(chunk) - piece * length / chunk).sum();
    touched as f64 / end.div_ceil(chunk) as f64
}

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a.max(1) } else { greatest_common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(shape: [u64; 3], source: [u64; 3], destination: [u64; 3]) -> Sizes {
        let chunk = source.iter().product::<u64>().max(destination.iter().product()) * 4;
        Sizes { shape: shape.to_vec(), item: 4, source: source.to_vec(), destination: destination.to_vec(), chunk, many_in_flight: false }
    }

    #[test]
    fn touches() {
        assert_eq!(times_touched(10, 5, 100), 1.0);
        assert_eq!(times_touched(1, 10, 100), 10.0);
        assert_eq!(times_touched(100, 7, 100), 1.0);
        // Chunks 0..4, 4..8, 8..12 in pieces 0..6, 6..12: the middle one twice.
        assert_eq!(times_touched(6, 4, 12), 4.0 / 3.0);
    }

    #[test]
    fn time_to_maps_and_back_within_the_budget() {
        let (budget, grid) = (1 << 30, [100, 1, 1]);
        // From chunks of single time steps to time series: every region needs all time steps.
        let maps = sizes([1000, 721, 1440], [1, 721, 1440], [1000, 10, 10]);
        let plan = maps.plan(budget, 4, &[1, 73, 144]).unwrap();
        assert!(maps.need(&plan.blocks, plan.threads) <= budget);
        assert!(plan.times_read < 30.0, "{plan:?}");
        // And back: ten steps at a time read each chunk once.
        let series = sizes([1000, 721, 1440], [10, 100, 100], [10, 721, 1440]);
        let plan = series.plan(budget, 4, &grid).unwrap();
        assert_eq!(plan.times_read, 1.0);
    }

    #[test]
    fn a_budget_below_one_chunk_is_refused_in_numbers() {
        let error = sizes([1000, 1000, 1000], [10, 10, 10], [1000, 1000, 1000]).plan(1 << 20, 4, &[1, 1, 1]).unwrap_err();
        assert!(error.line().contains("1.05 MB of memory are too little: one chunk of the destination takes"), "{}", error.line());
    }

    #[test]
    fn fewer_threads_before_no_copy() {
        let plan = sizes([64, 1000, 1000], [1, 1000, 1000], [1, 1000, 1000]).plan(24 << 20, 64, &[64, 1, 1]).unwrap();
        assert!(plan.threads < 8 && plan.threads >= 1, "{plan:?}");
    }
}

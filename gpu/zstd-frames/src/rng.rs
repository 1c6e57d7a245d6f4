//! A small random number generator that gives the same numbers on every machine.

use std::cell::Cell;

/// SplitMix64.
#[derive(Debug, Clone)]
pub struct Rng(Cell<u64>);

impl Rng {
    /// A generator for one seed.
    pub fn new(seed: u64) -> Self {
        // Neighbouring seeds must not give neighbouring streams.
        let rng = Self(Cell::new(seed ^ 0x6A09_E667_F3BC_C909));
        let mixed = rng.next();
        Self(Cell::new(mixed))
    }

    /// 64 random bits.
    pub fn next(&self) -> u64 {
        let mut z = self.0.get().wrapping_add(0x9E37_79B9_7F4A_7C15);
        self.0.set(z);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `limit`, 0 for a limit of 0.
    pub fn below(&self, limit: usize) -> usize {
        if limit == 0 { 0 } else { (self.next() % limit as u64) as usize }
    }

    /// A number from `low` to `high`, both included.
    pub fn range(&self, low: usize, high: usize) -> usize {
        low + self.below(high.saturating_sub(low) + 1)
    }

    /// A number from 0 to `limit`, small ones more often.
    pub fn small(&self, limit: usize) -> usize {
        let limit = self.below(limit + 1);
        let limit = self.below(limit + 1);
        self.below(limit + 1)
    }

    /// True in `percent` of 100 cases.
    pub fn chance(&self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// One of the items; they must not be empty.
    pub fn pick<T: Copy>(&self, items: &[T]) -> T {
        items[self.below(items.len())]
    }

    /// `len` random bytes.
    pub fn bytes(&self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.next() as u8).collect()
    }

    /// Puts the items into a random order.
    pub fn shuffle<T>(&self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i + 1));
        }
    }
}

//! Which loads make a batch.

use super::batch::Load;
use super::fetch::{Batch, Fetched, Filled, Reader};

/// Collects loads until they fill a batch.
#[derive(Debug, Default)]
pub(super) struct Filling {
    batch: Batch,
    /// Bytes that its loads will probably have.
    expected: usize,
    /// Of bytes that were reserved: how many there were.
    reserved: u64,
    used: u64,
}

impl Filling {
    /// Adds a load. Gives the batch that is full without it.
    pub(super) fn add(&mut self, reader: &Reader, most: usize, load: Load, fetched: Option<Fetched>) -> Option<Batch> {
        let first = self.batch.loads.first();
        let direct = reader.goes_direct(&load);
        let other_way = first.is_some_and(|first| reader.goes_direct(first) != direct);
        let full = (first.is_some() && self.expected.saturating_add(load.room) > most.max(self.batch.room)) || other_way;
        let before = if full { self.rest() } else { None };
        self.batch.room = self.batch.room.max(self.expected.saturating_add(load.room));
        // Loads that are packed take what they have; all others what is reserved for them.
        let packed = !direct && fetched.is_none();
        self.expected = self.expected.saturating_add(if packed { self.expect(load.room) } else { load.room });
        self.batch.loads.push(load);
        if let Some(fetched) = fetched {
            self.batch.fetched.get_or_insert_default().push(fetched);
        }
        before
    }

    /// The loads that fill no batch.
    pub(super) fn rest(&mut self) -> Option<Batch> {
        self.expected = 0;
        Some(std::mem::take(&mut self.batch)).filter(|batch| !batch.loads.is_empty())
    }

    /// Learns from a batch what compressed chunks really take.
    pub(super) fn learn(&mut self, filled: &Filled) {
        self.reserved += filled.reserved as u64;
        self.used += filled.used as u64;
    }

    /// A little more than what others had for as much room.
    fn expect(&self, room: usize) -> usize {
        let share = |of: u64| (room as u128 * u128::from(of) * 9 / 8).checked_div(u128::from(self.reserved));
        share(self.used).and_then(|bytes| usize::try_from(bytes).ok()).map_or(room, |bytes| bytes.min(room))
    }
}

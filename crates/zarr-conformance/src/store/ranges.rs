//! The laws of reading one range of a value.

use std::fmt;

use zarr_store_api::{ByteRange, StoreError, StoreErrorKind};

use super::face::{Face, expect_kind, show};
use super::fixture::{THOUSAND, key, value_of};
use super::{StoreCase, on_filled};
use crate::suite::{Broken, ensure};

pub(super) fn cases() -> Vec<StoreCase> {
    vec![
        on_filled("range/within", "a range within the value is just these bytes", |store| read_those(store, within)),
        on_filled("range/past-the-end", "what a range wants past the end of the value is cut off", |store| read_those(store, past_the_end)),
        on_filled("range/suffix", "a suffix is the end of the value", |store| read_those(store, suffix)),
        on_filled("range/long-suffix", "a suffix longer than the value is the value", |store| read_those(store, long_suffix)),
        on_filled("range/empty", "a range may be empty, and begin at the end of the value", |store| read_those(store, empty)),
        on_filled("range/out-of-range", "a range that begins past the end of the value is an error of that kind", out_of_range),
        on_filled("range/backwards", "a range that ends before it begins is out of range", backwards),
    ]
}

/// Ranges, and where they begin and end in a value of 1000 bytes.
pub(super) const RANGES: &[(ByteRange, (usize, usize))] = &[
    (ByteRange::All, (0, 1000)),
    (ByteRange::Bounded { start: 0, end: 1000 }, (0, 1000)),
    (ByteRange::Bounded { start: 0, end: 1 }, (0, 1)),
    (ByteRange::Bounded { start: 999, end: 1000 }, (999, 1000)),
    (ByteRange::Bounded { start: 10, end: 20 }, (10, 20)),
    (ByteRange::Bounded { start: 990, end: 2000 }, (990, 1000)),
    (ByteRange::Bounded { start: 990, end: u64::MAX }, (990, 1000)),
    (ByteRange::Bounded { start: 0, end: 0 }, (0, 0)),
    (ByteRange::Bounded { start: 500, end: 500 }, (500, 500)),
    (ByteRange::Bounded { start: 1000, end: 1000 }, (1000, 1000)),
    (ByteRange::Bounded { start: 1000, end: 1010 }, (1000, 1000)),
    (ByteRange::From(0), (0, 1000)),
    (ByteRange::From(1), (1, 1000)),
    (ByteRange::From(999), (999, 1000)),
    (ByteRange::From(1000), (1000, 1000)),
    (ByteRange::Suffix(0), (1000, 1000)),
    (ByteRange::Suffix(1), (999, 1000)),
    (ByteRange::Suffix(1000), (0, 1000)),
    (ByteRange::Suffix(1001), (0, 1000)),
    (ByteRange::Suffix(u64::MAX), (0, 1000)),
];

/// Ranges that a value of 1000 bytes refuses.
pub(super) const BAD_RANGES: &[ByteRange] = &[
    ByteRange::Bounded { start: 1001, end: 1002 },
    ByteRange::Bounded { start: 1001, end: 1001 },
    ByteRange::Bounded { start: u64::MAX - 1, end: u64::MAX },
    ByteRange::From(1001),
    ByteRange::From(u64::MAX),
    BACKWARDS,
];

const BACKWARDS: ByteRange = ByteRange::Bounded { start: 20, end: 10 };

fn within(range: ByteRange, length: usize) -> bool {
    length > 0 && !suffix(range, length) && !long_suffix(range, length) && !past_the_end(range, length)
}

fn past_the_end(range: ByteRange, length: usize) -> bool {
    length > 0 && matches!(range, ByteRange::Bounded { end: 1001.., .. })
}

fn suffix(range: ByteRange, length: usize) -> bool {
    length > 0 && matches!(range, ByteRange::Suffix(..=1000))
}

fn long_suffix(range: ByteRange, _: usize) -> bool {
    matches!(range, ByteRange::Suffix(1001..))
}

fn empty(_: ByteRange, length: usize) -> bool {
    length == 0
}

/// Reads those of [`RANGES`] that `choose` takes by the range and the number of bytes that it must give.
fn read_those(store: &Face, choose: fn(ByteRange, usize) -> bool) -> Result<(), Broken> {
    let (key, value) = (key(THOUSAND), value_of(THOUSAND));
    for (range, (start, end)) in RANGES.iter().filter(|(range, (start, end))| choose(*range, end - start)) {
        let read = store.get(&key, *range).map_err(|error| Broken::Failed(format!("{range}: {error}")))?;
        ensure!(read.as_deref() == value.get(*start..*end), "{range} reads {}", show(&read));
    }
    Ok(())
}

fn out_of_range(store: &Face) -> Result<(), Broken> {
    BAD_RANGES
        .iter()
        .filter(|range| **range != BACKWARDS)
        .try_for_each(|range| expect_out_of_range(&format!("get of {range}"), store.get(&key(THOUSAND), *range)))
}

fn backwards(store: &Face) -> Result<(), Broken> {
    expect_out_of_range(&format!("get of {BACKWARDS}"), store.get(&key(THOUSAND), BACKWARDS))
}

pub(super) fn expect_out_of_range<T: fmt::Debug>(what: &str, result: Result<T, StoreError>) -> Result<(), Broken> {
    expect_kind(what, StoreErrorKind::OutOfRange, result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_range_is_read_by_one_law() {
        for (range, (start, end)) in RANGES {
            let laws: [fn(ByteRange, usize) -> bool; 5] = [within, past_the_end, suffix, long_suffix, empty];
            assert_eq!(laws.iter().filter(|law| law(*range, end - start)).count(), 1, "{range}");
        }
    }
}

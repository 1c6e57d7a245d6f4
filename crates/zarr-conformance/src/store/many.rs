//! The laws of reading several ranges of a value.

use zarr_store_api::ByteRange;

use super::face::Face;
use super::fixture::{LONG, LONGEST, THOUSAND, key, value_of};
use super::ranges::{BAD_RANGES, RANGES, expect_out_of_range};
use super::{StoreCase, on_filled};
use crate::suite::{Broken, ensure};

pub(super) fn cases() -> Vec<StoreCase> {
    vec![
        on_filled("ranges/order", "several ranges come in the order they were asked for, overlapping or not", order),
        on_filled("ranges/scattered", "many ranges of a long value, near and far from each other, are each what was asked for", scattered),
        on_filled("ranges/out-of-range", "one bad range among several is an error", out_of_range),
    ]
}

fn order(store: &Face) -> Result<(), Broken> {
    let value = value_of(THOUSAND);
    let ranges: Vec<ByteRange> = RANGES.iter().map(|(range, _)| *range).collect();
    for ranges in [ranges.clone(), ranges.iter().rev().copied().collect(), Vec::new()] {
        let read = store.get_ranges(&key(THOUSAND), &ranges)?.unwrap_or_default();
        ensure!(read.len() == ranges.len(), "{} ranges give {} values", ranges.len(), read.len());
        for (range, bytes) in ranges.iter().zip(read) {
            let want = range.resolve(1000)?;
            let want = value.get(want.start as usize..want.end as usize);
            ensure!(Some(&*bytes) == want, "among others, {range} reads {} bytes", bytes.len());
        }
    }
    Ok(())
}

fn scattered(store: &Face) -> Result<(), Broken> {
    let value = value_of(LONGEST);
    let scattered: Vec<ByteRange> = (0..36).map(|i| i * 7919).map(|at| ByteRange::from(at..at + 100 + at % 5000)).collect();
    let read = store.get_ranges(&key(LONGEST), &scattered)?.unwrap_or_default();
    for (range, bytes) in scattered.iter().zip(&read) {
        let want = range.resolve(LONG as u64)?;
        let want = value.get(want.start as usize..want.end as usize);
        ensure!(Some(&**bytes) == want, "among many of a long value, {range} is wrong");
    }
    ensure!(read.len() == scattered.len(), "{} ranges give {} values", scattered.len(), read.len());
    Ok(())
}

fn out_of_range(store: &Face) -> Result<(), Broken> {
    for bad in BAD_RANGES {
        let ranges = [ByteRange::from(0..10), *bad, ByteRange::Suffix(10)];
        expect_out_of_range(&format!("{bad} among others"), store.get_ranges(&key(THOUSAND), &ranges))?;
    }
    Ok(())
}

//! Reading what a peer wrote.

use std::ops::Range;

use zarr_array::{Array, Selection};
use zarr_store::FilesystemStore;
use zarr_store_api::AnyStore;

use crate::values::{gather, join, pack, split};
use crate::{Failure, Job};

/// Reads the whole array, then a box within it, and compares both with what the case expects.
pub(crate) fn read(job: &Job<'_>) -> Result<(), Failure> {
    if !job.array.exists() {
        return Err(Failure::Missing);
    }
    let expected = job.raw("expected")?;
    let store = AnyStore::blocking(FilesystemStore::new(&job.array)?);
    let array = Array::open(store, "/", job.options)?;
    if array.shape() != job.case.shape {
        return Err(Failure::Differs(format!("the shape is {:?}", array.shape())));
    }
    let whole = pack(&array.read(&Selection::all())?);
    compare(&whole, &expected, "all of it")?;

    let ranges = inner_box(array.shape(), job.case.number());
    let part = pack(&array.read(&Selection::ranges(ranges.clone()))?);
    let element = job.case.element();
    let wanted = join(gather(&split(&expected, element)?, array.shape(), &ranges), element);
    compare(&part, &wanted, &format!("{ranges:?}"))
}

/// A box that lies off the edges of the chunks, another one for every case.
fn inner_box(shape: &[u64], number: u64) -> Vec<Range<u64>> {
    let mut state = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = |below: u64| {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        if below == 0 { 0 } else { (state >> 33) % below }
    };
    shape
        .iter()
        .map(|&len| {
            let start = next(len);
            start..start + next(len - start + 1).max(u64::from(len > start))
        })
        .collect()
}

fn compare(got: &[u8], expected: &[u8], what: &str) -> Result<(), Failure> {
    if got == expected {
        return Ok(());
    }
    let first = got.iter().zip(expected).position(|(a, b)| a != b).unwrap_or(got.len().min(expected.len()));
    Err(Failure::Differs(format!("{what}: {} bytes against {}, first difference at byte {first}", got.len(), expected.len())))
}

//! The canonical form of values: fixed elements as they are, variable ones each behind its length.

use std::ops::Range;

use zarr_array::{ArrayData, Elements};

use crate::Failure;
use crate::case::Element;

/// The canonical bytes of what was read.
pub(crate) fn pack(data: &ArrayData) -> Vec<u8> {
    match &data.elements {
        Elements::Fixed(bytes) => bytes.clone(),
        Elements::Variable(elements) => join(elements.iter(), Element::Variable),
    }
}

/// The canonical bytes of elements.
pub(crate) fn join<'a>(elements: impl IntoIterator<Item = &'a [u8]>, element: Element) -> Vec<u8> {
    let mut out = Vec::new();
    for bytes in elements {
        if let Element::Variable = element {
            // Elements of the cases are a few bytes long.
            out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        }
        out.extend_from_slice(bytes);
    }
    out
}

/// The elements in canonical bytes.
pub(crate) fn split(raw: &[u8], element: Element) -> Result<Vec<&[u8]>, Failure> {
    let mut out = match element {
        Element::Size(size) => return Ok(raw.chunks_exact(size).collect()),
        Element::Variable => Vec::new(),
    };
    let mut left = raw;
    while let Some((len, rest)) = left.split_first_chunk() {
        let len = u32::from_le_bytes(*len) as usize;
        let Some((bytes, rest)) = rest.split_at_checked(len) else {
            return Err(Failure::Refuses("the expected values end within an element".into()));
        };
        out.push(bytes);
        left = rest;
    }
    Ok(out)
}

/// The elements of a box, in C order, from all elements of an array.
pub(crate) fn gather<T: Copy>(elements: &[T], shape: &[u64], ranges: &[Range<u64>]) -> Vec<T> {
    let mut out = Vec::new();
    let mut at: Vec<u64> = ranges.iter().map(|r| r.start).collect();
    if ranges.iter().any(Range::is_empty) {
        return out;
    }
    loop {
        let index = at.iter().zip(shape).fold(0, |index, (&i, &len)| index * len + i);
        out.extend(elements.get(index as usize));
        let Some(axis) = (0..at.len()).rev().find(|&axis| at[axis] + 1 < ranges[axis].end) else {
            return out;
        };
        at[axis] += 1;
        for later in axis + 1..at.len() {
            at[later] = ranges[later].start;
        }
    }
}

use std::sync::Arc;

use zarr_buffer_api::{Device, Layout, Queue, Region};

use super::{Chance, Test, download, ensure, pattern, same, upload, words};
use crate::{CudaDevice, CudaQueue};

pub(super) const TESTS: &[(&str, Test)] = &[
    ("regions/random_copies", random_copies),
    ("regions/random_fills", random_fills),
    ("regions/transposes", transposes),
    ("regions/many_axes", many_axes),
    ("regions/long_elements", long_elements),
    ("regions/large", large),
];

/// Byte offsets of all elements, in C order.
fn elements(layout: &Layout) -> Vec<usize> {
    let mut offsets = vec![layout.offset as isize];
    for (&len, &stride) in layout.shape.iter().zip(&layout.strides) {
        offsets = offsets.iter().flat_map(|&offset| (0..len as isize).map(move |index| offset + index * stride)).collect();
    }
    offsets.into_iter().map(|offset| offset as usize).collect()
}

/// A layout of `shape`: axes in an order by chance, with gaps, some of them reversed, from a start that need not be aligned.
fn layout(chance: &mut Chance, shape: &[usize], item_size: usize) -> Layout {
    let mut order: Vec<usize> = (0..shape.len()).collect();
    if chance.below(2) == 0 {
        for index in (1..order.len()).rev() {
            order.swap(index, chance.below(index + 1));
        }
    }
    let start = chance.one_of(&[0, 0, 1, 4, 16, 37]);
    let gap = chance.one_of(&[0, 0, 1, 3, 4]);
    let reversed = if chance.below(3) == 0 { chance.next() } else { 0 };
    let mut strides = vec![0isize; shape.len()];
    let (mut offset, mut step) = (start as isize, item_size as isize);
    for &axis in order.iter().rev() {
        strides[axis] = step;
        if reversed >> axis & 1 == 1 {
            offset += step * (shape[axis] as isize - 1);
            strides[axis] = -step;
        }
        step *= (shape[axis] + gap) as isize;
    }
    Layout { offset: offset as usize, shape: shape.to_vec(), strides, item_size }
}

fn shape(chance: &mut Chance, most: usize) -> Vec<usize> {
    let rank = chance.below(6);
    let mut shape = Vec::new();
    let mut left = most;
    for _ in 0..rank {
        let len = 1 + chance.below(left.clamp(1, 70));
        left /= len;
        shape.push(len);
    }
    shape
}

fn extent(layout: &Layout) -> Result<usize, String> {
    Ok(layout.span().map_err(words)?.end + 7)
}

fn check_copy(device: &CudaDevice, queue: &CudaQueue, from: &Layout, to: &Layout, seed: u64) -> Result<(), String> {
    let (source, mut expected) = (pattern(extent(from)?, seed), pattern(extent(to)?, seed + 1));
    let (read, write) = (upload(device, queue, &source)?, upload(device, queue, &expected)?);
    for (at, read) in elements(to).into_iter().zip(elements(from)) {
        expected[at..at + to.item_size].copy_from_slice(&source[read..read + to.item_size]);
    }
    queue
        .copy_region(&Region::new(read, from.clone()).map_err(words)?, &Region::new(write.clone(), to.clone()).map_err(words)?)
        .map_err(words)?;
    same(&format!("copy of {from:?} to {to:?}"), &download(device, queue, &write)?, &expected)
}

fn random_copies(device: &Arc<CudaDevice>) -> Result<(), String> {
    let queue = device.queue().map_err(words)?;
    let mut chance = Chance(11);
    for round in 0..600 {
        let item = chance.one_of(&[1, 2, 3, 4, 6, 8, 12, 16, 24, 40]);
        let shape = shape(&mut chance, 30_000);
        let mut from = layout(&mut chance, &shape, item);
        let to = layout(&mut chance, &shape, item);
        if round % 7 == 0 && !shape.is_empty() {
            let axis = chance.below(shape.len());
            if from.strides[axis] > 0 {
                from.strides[axis] = 0;
            }
        }
        check_copy(device, &queue, &from, &to, round)?;
    }
    Ok(())
}

fn check_fill(device: &CudaDevice, queue: &CudaQueue, to: &Layout, element: &[u8]) -> Result<(), String> {
    let mut expected = pattern(extent(to)?, 3);
    let write = upload(device, queue, &expected)?;
    for at in elements(to) {
        expected[at..at + to.item_size].copy_from_slice(element);
    }
    queue.fill_region(&Region::new(write.clone(), to.clone()).map_err(words)?, element).map_err(words)?;
    same(&format!("fill of {to:?}"), &download(device, queue, &write)?, &expected)
}

fn random_fills(device: &Arc<CudaDevice>) -> Result<(), String> {
    let queue = device.queue().map_err(words)?;
    let mut chance = Chance(12);
    for round in 0..600 {
        let item = chance.one_of(&[1, 2, 3, 4, 6, 8, 12, 16, 24, 40, 48, 96]);
        let shape = shape(&mut chance, 20_000);
        let to = layout(&mut chance, &shape, item);
        let element = if round % 3 == 0 { vec![round as u8; item] } else { pattern(item, round) };
        check_fill(device, &queue, &to, &element)?;
    }
    Ok(())
}

/// Large enough for tiles, with edges that fill none, between axes that stay.
fn transposes(device: &Arc<CudaDevice>) -> Result<(), String> {
    let queue = device.queue().map_err(words)?;
    let mut seed = 0;
    for item in [1, 2, 3, 4, 8, 12, 16] {
        for shape in [vec![32, 32], vec![33, 31], vec![100, 257], vec![1, 300], vec![3, 65, 40], vec![20, 5, 40], vec![17, 3, 16, 19]] {
            let from = Layout::contiguous(&shape, item).map_err(words)?;
            // Fortran order.
            let mut strides = vec![0isize; shape.len()];
            let mut step = item as isize;
            for (stride, &len) in strides.iter_mut().zip(&shape) {
                *stride = step;
                step *= len as isize;
            }
            let to = Layout { offset: 0, shape: shape.clone(), strides, item_size: item };
            for (from, to) in [(&from, &to), (&to, &from)] {
                seed += 1;
                check_copy(device, &queue, from, to, seed)?;
                let mut reversed = from.clone();
                reversed.offset = from.span().map_err(words)?.end - item;
                reversed.strides.iter_mut().for_each(|stride| *stride = -*stride);
                check_copy(device, &queue, &reversed, to, seed)?;
            }
        }
    }
    Ok(())
}

/// More axes than a launch takes, none of which merge.
fn many_axes(device: &Arc<CudaDevice>) -> Result<(), String> {
    let queue = device.queue().map_err(words)?;
    for rank in [8, 9, 10, 11, 12] {
        let shape = vec![2; rank];
        let strides: Vec<isize> = (0..rank).rev().map(|axis| 3isize.pow(axis as u32) * 2).collect();
        let sparse = Layout { offset: 5, shape: shape.clone(), strides, item_size: 2 };
        let dense = Layout::contiguous(&shape, 2).map_err(words)?;
        check_copy(device, &queue, &sparse, &dense, rank as u64)?;
        check_copy(device, &queue, &dense, &sparse, rank as u64)?;
        check_fill(device, &queue, &sparse, &[1, 2])?;
    }
    Ok(())
}

fn long_elements(device: &Arc<CudaDevice>) -> Result<(), String> {
    let queue = device.queue().map_err(words)?;
    for item in [17, 85, 129, 255, 256, 257, 300, 1024, 5000] {
        let dense = Layout::contiguous(&[5, 7], item).map_err(words)?;
        let sparse = Layout { offset: 3, shape: vec![5, 7], strides: vec![item as isize * 8 + 1, item as isize], item_size: item };
        for to in [&dense, &sparse] {
            check_fill(device, &queue, to, &pattern(item, 8))?;
            check_fill(device, &queue, to, &vec![7; item])?;
        }
        check_copy(device, &queue, &sparse, &dense, item as u64)?;
    }
    Ok(())
}

/// A box of half a gigabyte: blocks beyond 16 bits, offsets beyond 28.
fn large(device: &Arc<CudaDevice>) -> Result<(), String> {
    const ROWS: usize = 8192;
    const ROW: usize = 65_536;
    let queue = device.queue().map_err(words)?;
    let source = device.allocate(ROWS * ROW, &*queue).map_err(words)?;
    let target = device.allocate(ROWS * ROW, &*queue).map_err(words)?;
    // Rows that say which they are, then transposed as a table of 8-byte elements, and back.
    for row in [0, 1, 77, ROWS - 1] {
        let bytes = pattern(ROW, row as u64);
        queue.upload(&bytes, &source.slice(row * ROW..(row + 1) * ROW).map_err(words)?).map_err(words)?;
    }
    let shape = vec![ROWS, ROW / 8];
    let dense = Layout::contiguous(&shape, 8).map_err(words)?;
    let turned = Layout { offset: 0, shape, strides: vec![8, 8 * ROWS as isize], item_size: 8 };
    let region = |buffer: &zarr_buffer_api::Buffer, layout: &Layout| Region::new(buffer.clone(), layout.clone()).map_err(words);
    queue.copy_region(&region(&source, &dense)?, &region(&target, &turned)?).map_err(words)?;
    queue.fill_bytes(&source, 0).map_err(words)?;
    queue.copy_region(&region(&target, &turned)?, &region(&source, &dense)?).map_err(words)?;
    for row in [0, 1, 77, ROWS - 1] {
        let found = download(device, &queue, &source.slice(row * ROW..(row + 1) * ROW).map_err(words)?)?;
        same(&format!("row {row} after there and back"), &found, &pattern(ROW, row as u64))?;
    }
    // Every second byte: the smallest units.
    let half = Layout { offset: 1, shape: vec![ROWS * ROW / 2], strides: vec![2], item_size: 1 };
    queue.fill_bytes(&source, 1).map_err(words)?;
    queue.fill_region(&region(&source, &half)?, &[2]).map_err(words)?;
    let found = download(device, &queue, &source.slice(ROWS * ROW - 1000..ROWS * ROW).map_err(words)?)?;
    ensure!(found.chunks(2).all(|pair| pair == [1, 2]), "the end of a fill of every second byte: {:?}", &found[990..]);
    Ok(())
}

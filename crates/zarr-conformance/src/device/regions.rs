use zarr_buffer_api::{Buffer, BufferErrorKind, Device, Layout, Region};

use super::{DeviceCase, case, ensure_holds, pattern, upload};
use crate::suite::{Broken, Trial, ensure_refused};

pub(super) fn cases() -> Vec<DeviceCase> {
    vec![
        case("region/copy", "boxes of any rank, element size, order and direction are copied, and nothing outside them changes", copy),
        case("region/fill", "boxes are filled with an element, and nothing outside them changes", fill),
        case("region/empty", "a box without elements is neither read nor written", empty),
        case("region/refuses", "boxes that do not fit each other or their buffers are refused, and nothing is written", refuses),
    ]
}

/// Byte offsets of all elements, in C order.
fn elements(layout: &Layout) -> Vec<usize> {
    let mut offsets = vec![layout.offset as isize];
    for (&len, &stride) in layout.shape.iter().zip(&layout.strides) {
        offsets = offsets.iter().flat_map(|&offset| (0..len as isize).map(move |index| offset + index * stride)).collect();
    }
    offsets.into_iter().map(|offset| offset as usize).collect()
}

/// A layout of `shape` with the axes in the order of `order` (slowest first), `gap` elements left out behind each run, reversed where `reversed` has a bit.
fn layout(shape: &[usize], item_size: usize, order: &[usize], gap: usize, reversed: usize, start: usize) -> Layout {
    let mut strides = vec![0isize; shape.len()];
    let mut offset = start as isize;
    let mut step = item_size as isize;
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

/// Pairs of layouts of one shape: source and destination.
fn pairs() -> Vec<(Layout, Layout)> {
    let shapes: [&[usize]; 7] = [&[], &[1], &[13], &[4, 5], &[1, 7], &[3, 4, 5], &[2, 3, 2, 4]];
    let mut pairs = Vec::new();
    for shape in shapes {
        let order: Vec<usize> = (0..shape.len()).collect();
        let turned: Vec<usize> = order.iter().rev().copied().collect();
        for item_size in [1, 2, 3, 4, 8, 16] {
            pairs.push((layout(shape, item_size, &order, 0, 0, 0), layout(shape, item_size, &order, 1, 0, 3)));
            pairs.push((layout(shape, item_size, &turned, 0, 0b101, 1), layout(shape, item_size, &order, 0, 0, 0)));
            pairs.push((layout(shape, item_size, &order, 2, 0b10, 0), layout(shape, item_size, &turned, 1, 0b1, 5)));
        }
    }
    // One element for many: a stride of zero in the source.
    pairs.push((
        Layout { offset: 4, shape: vec![3, 4], strides: vec![0, 2], item_size: 2 },
        Layout { offset: 0, shape: vec![3, 4], strides: vec![8, 2], item_size: 2 },
    ));
    pairs
}

fn extent(layout: &Layout) -> Result<usize, Broken> {
    // A few bytes behind the box, to see whether they are touched.
    Ok(layout.span()?.end + 7)
}

fn copy(device: &dyn Device, _: &Trial) -> Result<(), Broken> {
    let queue = device.create_queue()?;
    for (from, to) in pairs() {
        let (source, canary) = (pattern(extent(&from)?, 1), pattern(extent(&to)?, 101));
        let mut expected = canary.clone();
        for (from_offset, to_offset) in elements(&from).into_iter().zip(elements(&to)) {
            expected[to_offset..to_offset + to.item_size].copy_from_slice(&source[from_offset..from_offset + from.item_size]);
        }
        // Within larger buffers, so that offsets of slices count.
        let around = |bytes: &[u8]| -> Result<Buffer, Broken> {
            Ok(upload(device, &*queue, &[&[0; 9], bytes].concat())?.slice(9..9 + bytes.len())?)
        };
        let (read, write) = (around(&source)?, around(&canary)?);
        queue.copy_region(&Region::new(read, from.clone())?, &Region::new(write.clone(), to.clone())?)?;
        ensure_holds(device, &*queue, &format!("copy of {from:?} to {to:?}"), &write, &expected)?;
    }
    Ok(())
}

fn fill(device: &dyn Device, _: &Trial) -> Result<(), Broken> {
    let queue = device.create_queue()?;
    for (_, to) in pairs() {
        for element in [pattern(to.item_size, 77), vec![0; to.item_size]] {
            let canary = pattern(extent(&to)?, 101);
            let mut expected = canary.clone();
            for offset in elements(&to) {
                expected[offset..offset + to.item_size].copy_from_slice(&element);
            }
            let write = upload(device, &*queue, &[&[0; 5][..], &canary].concat())?.slice(5..5 + canary.len())?;
            queue.fill_region(&Region::new(write.clone(), to.clone())?, &element)?;
            ensure_holds(device, &*queue, &format!("fill of {to:?} with {element:?}"), &write, &expected)?;
        }
    }
    Ok(())
}

fn empty(device: &dyn Device, _: &Trial) -> Result<(), Broken> {
    let queue = device.create_queue()?;
    let (a, b) = (upload(device, &*queue, &[1; 8])?, upload(device, &*queue, &[2; 8])?);
    let layout = Layout { offset: 0, shape: vec![3, 0], strides: vec![4, 2], item_size: 2 };
    let to = Region::new(b.clone(), layout.clone())?;
    queue.copy_region(&Region::new(a, layout)?, &to)?;
    queue.fill_region(&to, &[5, 5])?;
    ensure_holds(device, &*queue, "after empty boxes", &b, &[2; 8])
}

fn refuses(device: &dyn Device, _: &Trial) -> Result<(), Broken> {
    let queue = device.create_queue()?;
    let (a, b) = (upload(device, &*queue, &[1; 16])?, upload(device, &*queue, &[2; 16])?);
    let of = |buffer: &Buffer, shape: &[usize], strides: &[isize], offset: usize, item_size: usize| Region {
        buffer: buffer.clone(),
        layout: Layout { offset, shape: shape.to_vec(), strides: strides.to_vec(), item_size },
    };
    let good = of(&b, &[4], &[4], 0, 4);
    let wrong = [
        ("another shape", of(&a, &[3], &[4], 0, 4)),
        ("another rank", of(&a, &[2, 2], &[8, 4], 0, 4)),
        ("another element size", of(&a, &[4], &[4], 0, 2)),
        ("a box past the end", of(&a, &[4], &[4], 1, 4)),
        ("a box before the start", of(&a, &[4], &[-4], 8, 4)),
        ("a box with too few strides", of(&a, &[4], &[], 0, 4)),
    ];
    for (what, region) in &wrong {
        ensure_refused(&format!("copy from {what}"), BufferErrorKind::Parameter, queue.copy_region(region, &good))?;
    }
    let outside = of(&b, &[4], &[5], 0, 4);
    let source = of(&a, &[4], &[4], 0, 4);
    ensure_refused("copy to a box past the end", BufferErrorKind::Parameter, queue.copy_region(&source, &outside))?;
    ensure_refused("fill of a box past the end", BufferErrorKind::Parameter, queue.fill_region(&outside, &[0; 4]))?;
    ensure_refused("fill with half an element", BufferErrorKind::Parameter, queue.fill_region(&good, &[0; 2]))?;
    ensure_refused("fill with two elements", BufferErrorKind::Parameter, queue.fill_region(&good, &[0; 8]))?;
    ensure_holds(device, &*queue, "after refused boxes", &b, &[2; 16])
}

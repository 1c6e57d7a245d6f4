//! Boxes of elements between what was fetched or decoded and the output.

use std::ops::Range;

use zarr_buffer_api::{Buffer, Layout};

use crate::plan::{Gather, Step};

/// One box of elements that goes to the output.
#[derive(Debug)]
pub(super) struct Scatter {
    pub(super) source: Buffer,
    pub(super) from: Layout,
    pub(super) to: Layout,
}

/// Bytes that lie side by side on both sides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) from: Range<usize>,
    pub(super) to: usize,
}

/// Runs shorter than this are uploaded together and copied on the device: a copy over the bus costs as much as these bytes.
const SHORTEST: usize = 64 << 10;

/// Takes the boxes out that are long runs of bytes on both sides, neighbours as one.
pub(super) fn take_runs(boxes: &mut Vec<(Layout, Layout)>) -> Vec<Run> {
    let mut runs: Vec<(Run, Vec<(Layout, Layout)>)> = Vec::new();
    let mut rest = Vec::new();
    for (from, to) in boxes.drain(..) {
        if !from.is_contiguous() || !to.is_contiguous() {
            rest.push((from, to));
            continue;
        }
        let bytes = from.offset..from.offset + from.len() * from.item_size;
        match runs.last_mut() {
            Some((run, of)) if run.from.end == bytes.start && run.to + run.from.len() == to.offset => {
                run.from.end = bytes.end;
                of.push((from, to));
            }
            _ => runs.push((Run { from: bytes, to: to.offset }, vec![(from, to)])),
        }
    }
    let mut long = Vec::new();
    for (run, of) in runs {
        if run.from.len() >= SHORTEST {
            long.push(run);
        } else {
            rest.extend(of);
        }
    }
    *boxes = rest;
    long
}

/// Boxes of even steps between two sides: lists of positions are cut into runs.
pub(super) fn boxes(lens: &[usize], from: &Gather, to: &Gather, item_size: usize) -> Vec<(Layout, Layout)> {
    let start = |offset| Layout { offset, shape: Vec::new(), strides: Vec::new(), item_size };
    let mut boxes = vec![(start(from.offset), start(to.offset))];
    for ((&len, from), to) in lens.iter().zip(&from.steps).zip(&to.steps) {
        let runs = even_runs(len, from, to);
        boxes = boxes
            .into_iter()
            .flat_map(|(a, b)| {
                runs.iter().map(move |run| {
                    let grow = |side: &Layout, offset: isize, stride: isize| {
                        let mut side = side.clone();
                        side.offset = side.offset.wrapping_add_signed(offset);
                        side.shape.push(run.len);
                        side.strides.push(stride);
                        side
                    };
                    (grow(&a, run.from.0, run.from.1), grow(&b, run.to.0, run.to.1))
                })
            })
            .collect();
    }
    boxes
}

/// Elements with even steps on both sides: offset and stride.
struct EvenRun {
    len: usize,
    from: (isize, isize),
    to: (isize, isize),
}

fn even_runs(len: usize, from: &Step, to: &Step) -> Vec<EvenRun> {
    if let (Step::Stride(from), Step::Stride(to)) = (from, to) {
        return vec![EvenRun { len, from: (0, *from), to: (0, *to) }];
    }
    let mut runs: Vec<EvenRun> = Vec::new();
    for index in 0..len {
        let (a, b) = (from.at(index), to.at(index));
        match runs.last_mut() {
            Some(run) if run.len == 1 => {
                run.from.1 = a - run.from.0;
                run.to.1 = b - run.to.0;
                run.len = 2;
            }
            Some(run) if a == run.from.0 + run.from.1 * run.len as isize && b == run.to.0 + run.to.1 * run.len as isize => run.len += 1,
            _ => runs.push(EvenRun { len: 1, from: (a, 0), to: (b, 0) }),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_become_even_runs() {
        let runs = even_runs(5, &Step::List(vec![0, 4, 8, 40, 36]), &Step::Stride(4));
        let found: Vec<_> = runs.iter().map(|run| (run.len, run.from, run.to)).collect();
        assert_eq!(found, [(3, (0, 4), (0, 4)), (2, (40, -4), (12, 4))]);
    }

    #[test]
    fn neighbours_on_both_sides_are_one_run() {
        let side = |offset: usize, len: usize| Layout { offset, shape: vec![len], strides: vec![4], item_size: 4 };
        let half = SHORTEST / 4 / 2;
        let strided = Layout { offset: 9 * SHORTEST, shape: vec![2], strides: vec![8], item_size: 4 };
        let mut found = vec![
            (side(64, half), side(0, half)),
            (side(64 + SHORTEST / 2, half), side(SHORTEST / 2, half)),
            // A gap on one side.
            (side(64 + SHORTEST, half), side(2 * SHORTEST, half)),
            (side(0, 2), strided),
        ];
        assert_eq!(take_runs(&mut found), [Run { from: 64..64 + SHORTEST, to: 0 }]);
        assert_eq!(found.len(), 2);
    }
}

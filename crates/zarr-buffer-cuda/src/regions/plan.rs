//! From layouts to what a kernel can do: few axes, of units that are as large as alignment allows.

use std::ops::ControlFlow;

use zarr_buffer_api::Layout;

use super::kernels::{MAX_AXES, MAX_PATTERN, Pattern};

/// An axis of units. Strides are in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Axis {
    pub(super) len: usize,
    pub(super) destination: i64,
    pub(super) source: i64,
}

/// A box as units of `size` bytes, aligned to that on both sides; axes from the one with the longest steps in the destination to the one with
/// the shortest. No axis is empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Units {
    pub(super) axes: Vec<Axis>,
    /// Bytes of one unit: 1, 2, 4, 8 or 16.
    pub(super) size: usize,
    /// Addresses of the first unit.
    pub(super) destination: u64,
    pub(super) source: u64,
    /// Bytes that lie side by side on both sides, from the start of each row.
    run: usize,
}

const LARGEST_UNIT: usize = 16;

impl Units {
    /// The box of a copy; neither layout is empty, and both were checked against their buffers, which start at these addresses.
    pub(super) fn of_copy(to: &Layout, to_address: u64, from: &Layout, from_address: u64) -> Self {
        let strides = to.strides.iter().zip(&from.strides);
        let axes = to.shape.iter().zip(strides).map(|(&len, (&to, &from))| Axis { len, destination: to as i64, source: from as i64 });
        let start = (to_address + to.offset as u64, from_address + from.offset as u64);
        Self::new(axes.collect(), start, to.item_size).in_units(LARGEST_UNIT)
    }

    /// The box of a fill, and what to fill it with. The element has at least one and at most [`MAX_PATTERN`] bytes.
    pub(super) fn of_fill(to: &Layout, to_address: u64, element: &[u8]) -> (Self, Pattern) {
        let axes = to.shape.iter().zip(&to.strides).map(|(&len, &to)| Axis { len, destination: to as i64, source: to as i64 });
        let start = to_address + to.offset as u64;
        let mut units = Self::new(axes.collect(), (start, start), element.len()).in_units(LARGEST_UNIT);
        // The pattern repeats after as many bytes as are whole units and whole elements.
        while element.len().max(element.len() / common(element.len(), units.size) * units.size) > MAX_PATTERN {
            units = units.in_smaller_units();
        }
        let period = if units.run > units.size { element.len() / common(element.len(), units.size) } else { 1 };
        let bytes = element.iter().copied().cycle().take(period * units.size).collect();
        let pattern = Pattern { period, bytes, element: element.to_vec() };
        (units, pattern)
    }

    /// Merges axes; the unit is one byte as yet, and the run is in no axis.
    fn new(mut axes: Vec<Axis>, (mut destination, mut source): (u64, u64), item_size: usize) -> Self {
        // Of what is written to one place, the last stays.
        for axis in axes.iter().filter(|axis| axis.destination == 0) {
            source = source.wrapping_add_signed(axis.source * (axis.len as i64 - 1));
        }
        axes.retain(|axis| axis.len != 1 && axis.destination != 0);
        // The order of units is ours to choose: forward in the destination, and longest steps first.
        for axis in axes.iter_mut().filter(|axis| axis.destination < 0) {
            let steps = axis.len as i64 - 1;
            destination = destination.wrapping_add_signed(axis.destination * steps);
            source = source.wrapping_add_signed(axis.source * steps);
            (axis.destination, axis.source) = (-axis.destination, -axis.source);
        }
        axes.sort_by_key(|axis| std::cmp::Reverse((axis.destination, axis.source.unsigned_abs())));
        let mut merged: Vec<Axis> = Vec::with_capacity(axes.len());
        for axis in axes {
            let follows = |outer: i64, inner: i64| inner.checked_mul(axis.len as i64) == Some(outer);
            match merged.last_mut() {
                Some(last) if follows(last.destination, axis.destination) && follows(last.source, axis.source) => {
                    *last = Axis { len: last.len * axis.len, ..axis };
                }
                _ => merged.push(axis),
            }
        }
        let item = item_size as i64;
        let mut run = item_size;
        if let Some(last) = merged.last().copied()
            && (last.destination, last.source) == (item, item)
        {
            run = item_size * last.len;
            merged.pop();
        }
        Self { axes: merged, size: 1, destination, source, run }
    }

    /// Makes the run an axis of the largest units, `largest` bytes at most, that all addresses, strides and the run are multiples of.
    fn in_units(mut self, largest: usize) -> Self {
        let all = self.axes.iter().fold(self.destination | self.source | self.run as u64, |all, axis| {
            all | axis.destination.unsigned_abs() | axis.source.unsigned_abs()
        });
        self.size = 1 << (all | largest as u64).trailing_zeros();
        self.with_run_axis()
    }

    fn with_run_axis(mut self) -> Self {
        if self.run > self.size {
            let step = self.size as i64;
            self.axes.push(Axis { len: self.run / self.size, destination: step, source: step });
        }
        self
    }

    fn in_smaller_units(mut self) -> Self {
        if self.run > self.size {
            self.axes.pop();
        }
        self.size /= 2;
        self.with_run_axis()
    }

    /// The length in bytes when the whole box lies side by side on both sides.
    pub(super) fn as_one_run(&self) -> Option<usize> {
        let axes = usize::from(self.run > self.size);
        (self.axes.len() == axes).then_some(self.run)
    }

    /// Number of units.
    pub(super) fn count(&self) -> usize {
        self.axes.iter().fold(1, |count: usize, axis| count.saturating_mul(axis.len))
    }

    /// Boxes that one launch each can do. The last axis is cut only where a pattern of `period` units starts anew.
    pub(super) fn boxes(&self, period: usize) -> Boxes {
        Boxes { units: self.clone(), most: Boxes::MOST / period * period }
    }

    /// Whether a tile kernel pays: neighbours in the source lie along another axis than neighbours in the destination, and both are long.
    /// Gives the box with these two as its last axes: that of the source, then that of the destination.
    pub(super) fn turned(&self) -> Option<Self> {
        const LEAST: usize = 16;
        let (last, outer) = self.axes.split_last()?;
        let unit = self.size as u64;
        let across = last.destination.unsigned_abs() == unit && last.source.unsigned_abs() != unit && last.len >= LEAST;
        let near = outer.iter().position(|axis| axis.source.unsigned_abs() == unit && axis.len >= LEAST)?;
        let mut axes = outer.to_vec();
        let near = axes.remove(near);
        axes.extend([near, *last]);
        (across && last.source != 0).then(|| Self { axes, ..self.clone() })
    }
}

/// A box of any size, to be cut into boxes that fit a launch.
#[derive(Debug)]
pub(super) struct Boxes {
    units: Units,
    /// The most units of a launch; the last axis is cut at multiples of this.
    most: usize,
}

impl Boxes {
    /// Kernels count units, and threads beyond them, in 32 bits, and divide numbers below 2^31.
    const MOST: usize = 1 << 30;

    /// Calls `work` for each part, until it breaks.
    pub(super) fn for_each<B>(self, work: &mut impl FnMut(Units) -> ControlFlow<B>) -> ControlFlow<B> {
        let Self { mut units, most } = self;
        let few = units.axes.len() <= MAX_AXES;
        if few && units.count() <= most {
            return work(units);
        }
        let Some(first) = units.axes.first().copied() else { return work(units) };
        // The first axis in pieces: of one step each where there are too many axes, or where the rest is too large alone.
        let rest = units.axes.iter().skip(1).fold(1, |count: usize, axis| count.saturating_mul(axis.len));
        let step = if few { (most / rest).max(1) } else { 1 };
        let (destination, source) = (units.destination, units.source);
        for start in (0..first.len).step_by(step) {
            let len = step.min(first.len - start);
            units.destination = destination.wrapping_add_signed(first.destination * start as i64);
            units.source = source.wrapping_add_signed(first.source * start as i64);
            let mut part = units.clone();
            match part.axes.first_mut() {
                Some(axis) if len > 1 || rest == 1 => axis.len = len,
                _ => drop(part.axes.remove(0)),
            }
            Self { units: part, most }.for_each(work)?;
        }
        ControlFlow::Continue(())
    }
}

/// The greatest common divisor.
fn common(a: usize, b: usize) -> usize {
    if b == 0 { a } else { common(b, a % b) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::regions::kernels::Divisor;

    /// What the kernels do, unit by unit, by the same arithmetic.
    fn locate(units: &Units, mut n: u32) -> (i64, i64, u32) {
        let (mut to, mut from) = (0, 0);
        let mut column = 0;
        for (index, axis) in units.axes.iter().enumerate().rev() {
            let rest = Divisor::by(axis.len as u32).quotient(n);
            let at = i64::from(n - rest * axis.len as u32);
            to += at * axis.destination;
            from += at * axis.source;
            if index + 1 == units.axes.len() {
                column = at as u32;
            }
            n = rest;
        }
        (to, from, column)
    }

    fn run_copy(units: &Units, most: usize, to: &mut [u8], from: &[u8]) -> usize {
        let mut launches = 0;
        let done = Boxes { units: units.clone(), most }.for_each::<()>(&mut |part| {
            assert!(part.axes.len() <= MAX_AXES && part.count() <= most);
            launches += 1;
            for n in 0..part.count() {
                let (at, read, _) = locate(&part, n as u32);
                let (at, read) = (part.destination.wrapping_add_signed(at), part.source.wrapping_add_signed(read));
                assert!(at.is_multiple_of(part.size as u64) && read.is_multiple_of(part.size as u64));
                let (at, read) = ((at - TO) as usize, (read - FROM) as usize);
                to[at..at + part.size].copy_from_slice(&from[read..read + part.size]);
            }
            ControlFlow::Continue(())
        });
        assert!(done.is_continue());
        launches
    }

    const TO: u64 = 1 << 20;
    const FROM: u64 = 1 << 30;

    fn elements(layout: &Layout) -> Vec<usize> {
        let mut offsets = vec![layout.offset as isize];
        for (&len, &stride) in layout.shape.iter().zip(&layout.strides) {
            offsets = offsets.iter().flat_map(|&offset| (0..len as isize).map(move |index| offset + index * stride)).collect();
        }
        offsets.into_iter().map(|offset| offset as usize).collect()
    }

    /// A layout with its axes in an order of its own, gaps behind runs, some axes reversed, from a start.
    fn layout(shape: &[usize], item: usize, turn: usize, gap: usize, reversed: u8, start: usize) -> Layout {
        let mut order: Vec<usize> = (0..shape.len()).collect();
        if !order.is_empty() {
            order.rotate_left(turn % shape.len());
        }
        let mut strides = vec![0isize; shape.len()];
        let (mut offset, mut step) = (start as isize, item as isize);
        for &axis in order.iter().rev() {
            strides[axis] = step;
            if reversed >> axis & 1 == 1 {
                offset += step * (shape[axis] as isize - 1);
                strides[axis] = -step;
            }
            step *= (shape[axis] + gap) as isize;
        }
        Layout { offset: offset as usize, shape: shape.to_vec(), strides, item_size: item }
    }

    fn layouts() -> impl Strategy<Value = (Layout, Layout)> {
        let shape = prop::collection::vec(1usize..6, 0..6);
        let item = prop::sample::select(vec![1usize, 2, 3, 4, 6, 8, 12, 16, 24, 32]);
        let side =
            || (0usize..6, prop::sample::select(vec![0usize, 0, 1, 4]), any::<u8>(), prop::sample::select(vec![0usize, 0, 1, 4, 16]));
        (shape, item, side(), side(), any::<u8>()).prop_map(|(shape, item, a, b, zero)| {
            let mut to = layout(&shape, item, a.0, a.1, if zero & 1 == 0 { a.2 } else { 0 }, a.3);
            let mut from = layout(&shape, item, b.0, b.1, if zero & 2 == 0 { b.2 } else { 0 }, b.3);
            if zero & 0x30 == 0x30 && !shape.is_empty() {
                // One element for many, along one axis.
                let axis = zero as usize % shape.len();
                if from.strides[axis] > 0 {
                    from.strides[axis] = 0;
                }
                // And many for one: the last stays.
                if zero & 0x40 != 0 && to.strides[axis] > 0 {
                    to.strides[axis] = 0;
                }
            }
            (to, from)
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]

        #[test]
        fn units_copy_what_elements_do((to, from) in layouts(), most in prop::sample::select(vec![5usize, 64, 1 << 30])) {
            let source: Vec<u8> = (0..from.span().unwrap().end).map(|i| (i * 7 + i / 256) as u8).collect();
            let mut expected = vec![0xAA; to.span().unwrap().end + 3];
            let mut found = expected.clone();
            for (at, read) in elements(&to).into_iter().zip(elements(&from)) {
                expected[at..at + to.item_size].copy_from_slice(&source[read..read + to.item_size]);
            }
            let units = Units::of_copy(&to, TO, &from, FROM);
            match units.as_one_run() {
                Some(len) => {
                    let (at, read) = ((units.destination - TO) as usize, (units.source - FROM) as usize);
                    found[at..at + len].copy_from_slice(&source[read..read + len]);
                }
                None => drop(run_copy(&units, most, &mut found, &source)),
            }
            prop_assert_eq!(&found, &expected);
            if let Some(turned) = units.turned() {
                let mut found = vec![0xAA; to.span().unwrap().end + 3];
                run_copy(&turned, 1 << 30, &mut found, &source);
                prop_assert_eq!(&found, &expected);
            }
        }

        #[test]
        fn units_fill_what_elements_do((to, _) in layouts(), most in prop::sample::select(vec![32usize, 1 << 30])) {
            let element: Vec<u8> = (1..=to.item_size as u8).collect();
            let mut expected = vec![0xAA; to.span().unwrap().end + 3];
            let mut found = expected.clone();
            for at in elements(&to) {
                expected[at..at + to.item_size].copy_from_slice(&element);
            }
            let (units, pattern) = Units::of_fill(&to, TO, &element);
            prop_assert!(pattern.bytes.len() <= MAX_PATTERN);
            let done = Boxes { units, most: most / pattern.period * pattern.period }.for_each::<()>(&mut |units| {
                for n in 0..units.count() {
                    let (at, _, column) = locate(&units, n as u32);
                    let at = (units.destination.wrapping_add_signed(at) - TO) as usize;
                    let phase = (column - Divisor::by(pattern.period as u32).quotient(column) * pattern.period as u32) as usize;
                    found[at..at + units.size].copy_from_slice(&pattern.bytes[phase * units.size..(phase + 1) * units.size]);
                }
                ControlFlow::Continue(())
            });
            prop_assert!(done.is_continue());
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn rows_become_wide_units() {
        // 3 rows of 64 bytes out of rows of 256, to rows of 128.
        let from = Layout { offset: 0, shape: vec![3, 16], strides: vec![256, 4], item_size: 4 };
        let to = Layout { offset: 16, shape: vec![3, 16], strides: vec![128, 4], item_size: 4 };
        let units = Units::of_copy(&to, TO, &from, FROM);
        assert_eq!(units.size, 16);
        assert_eq!(units.axes, [Axis { len: 3, destination: 128, source: 256 }, Axis { len: 4, destination: 16, source: 16 }]);
        assert_eq!(Units::of_copy(&to, TO + 2, &from, FROM).size, 2);
    }

    #[test]
    fn boxes_that_are_reversed_on_both_sides_are_one_run() {
        let layout = Layout { offset: 28, shape: vec![2, 4], strides: vec![-16, -4], item_size: 4 };
        let units = Units::of_copy(&layout, TO, &layout, FROM);
        assert_eq!(units.as_one_run(), Some(32));
        assert_eq!((units.destination, units.source), (TO, FROM));
    }

    #[test]
    fn a_transpose_is_turned() {
        let from = Layout::contiguous(&[40, 50], 4).unwrap();
        let to = Layout { offset: 0, shape: vec![40, 50], strides: vec![4, 160], item_size: 4 };
        let turned = Units::of_copy(&to, TO, &from, FROM).turned().unwrap();
        assert_eq!(turned.axes, [Axis { len: 50, destination: 160, source: 4 }, Axis { len: 40, destination: 4, source: 200 }]);
        assert_eq!(Units::of_copy(&from, TO, &from, FROM).turned(), None);
    }

    #[test]
    fn division_by_multiplication_is_exact() {
        for len in (1..200).chain([255, 256, 257, 641, 65_535, 65_536, 65_537, (1 << 30) - 1, 1 << 30, i32::MAX as u32]) {
            let divisor = Divisor::by(len);
            for n in (0..400).chain([len - 1, len, len + 1, 2 * (len / 2), i32::MAX as u32 - 1, i32::MAX as u32]) {
                if n <= i32::MAX as u32 {
                    assert_eq!(divisor.quotient(n), n / len, "{n} / {len}");
                }
            }
        }
    }
}

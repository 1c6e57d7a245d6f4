//! Cutting a selection into pieces that are read one after the other, in C order.

use zarr::store_api::AnyStore;
use zarr::{Array, ArrayError, AxisSelection, Elements, Selection};

use crate::error::Result;
use crate::store::wait;
use crate::units;

/// Reads elements of fixed size, in the byte order of the machine, into memory that is used again.
pub(crate) fn read_fixed(array: &Array, selection: &Selection, mut buffer: Vec<u8>) -> Result<Vec<u8>, ArrayError> {
    let elements = units::product(&array.selection_shape(selection)?);
    let bytes = elements.saturating_mul(array.item_size().unwrap_or(0) as u64);
    buffer.resize(usize::try_from(bytes).map_err(|_| ArrayError::Parameter(format!("{bytes} bytes do not fit into memory")))?, 0);
    match array.store() {
        AnyStore::Blocking(_) => array.read_into(selection, &mut buffer).map(|_| buffer),
        AnyStore::Async(_) => wait(array.read_into_async(selection, buffer)),
    }
}

/// Bytes of memory that an element takes. Strings have no size before they are read: three chunks tell, the first, one from the middle and the last.
pub(crate) fn element_bytes(array: &Array) -> Result<u64, ArrayError> {
    if let Some(size) = array.item_size() {
        return Ok(size.max(1) as u64);
    }
    let shape = array.shape();
    if shape.contains(&0) {
        return Ok(1);
    }
    let chunk = array.inner_chunk_shape();
    let mut mean = 0;
    for part in 0..3 {
        let ranges = shape.iter().zip(&chunk).map(|(&length, &chunk)| {
            let at = (length - 1) / 2 * part.min(1) + (length - 1).div_ceil(2) * u64::from(part == 2);
            let start = at - at % chunk.max(1);
            start..start.saturating_add(chunk.max(1)).min(length)
        });
        if let Elements::Variable(elements) = array.read(&Selection::ranges(ranges.collect::<Vec<_>>()))?.elements {
            mean = mean.max(elements.byte_len().div_ceil(elements.len().max(1)));
        }
    }
    // Beside its bytes an element has a place, and memory that grows is twice what it holds at most.
    Ok((mean as u64).saturating_mul(2).saturating_add(16))
}

/// A selection in pieces.
#[derive(Debug)]
pub(crate) struct Slabs {
    /// The shape of the whole.
    pub(crate) shape: Vec<u64>,
    axes: Vec<Axis>,
    /// Axes before this one are taken one position at a time.
    cut: usize,
    /// Positions along `axes[cut]` in one piece; the last piece may have fewer.
    rows: u64,
    /// Chunk length along `axes[cut]`, where pieces can end with a chunk.
    chunk: Option<u64>,
}

#[derive(Debug, Clone)]
enum Axis {
    Index(i64),
    Steps { start: u64, step: i64, len: u64 },
    List(Vec<i64>),
}

impl Axis {
    fn len(&self) -> u64 {
        match self {
            Self::Index(_) => 1,
            Self::Steps { len, .. } => *len,
            Self::List(list) => list.len() as u64,
        }
    }

    /// Positions `from..to` along the axis.
    fn part(&self, from: u64, to: u64) -> AxisSelection {
        match self {
            Self::Index(index) => AxisSelection::Index(*index),
            Self::List(list) => AxisSelection::List(list.get(from as usize..to as usize).unwrap_or_default().to_vec()),
            Self::Steps { start, step, .. } => {
                let at = |position: u64| i128::from(*start) + i128::from(*step) * i128::from(position);
                let first = i64::try_from(at(from)).unwrap_or(i64::MAX);
                // The end of a slice that runs down past the first element has no number.
                let stop = i64::try_from(at(to)).ok().filter(|&stop| stop >= 0);
                if to > from {
                    AxisSelection::Slice { start: Some(first), stop, step: *step }
                } else {
                    AxisSelection::Slice { start: Some(0), stop: Some(0), step: 1 }
                }
            }
        }
    }

    fn one(&self, position: u64) -> AxisSelection {
        match self {
            Self::Steps { start, step, .. } => {
                AxisSelection::Index(i64::try_from(i128::from(*start) + i128::from(*step) * i128::from(position)).unwrap_or(i64::MAX))
            }
            Self::List(list) => AxisSelection::Index(list.get(position as usize).copied().unwrap_or(0)),
            Self::Index(index) => AxisSelection::Index(*index),
        }
    }
}

/// Elements of unknown size that are not worth a look at chunks.
const FEW: u64 = 4096;

impl Slabs {
    /// Cuts a selection into pieces of at most about `budget` bytes: more where one row of chunks has more, but no more than four times that.
    pub(crate) fn new(array: &Array, selection: &Selection, budget: u64) -> Result<Self> {
        let shape = array.selection_shape(selection)?;
        // Few strings are read as they come.
        let few = array.item_size().is_none() && units::product(&shape) < FEW;
        let item = if few { 64 } else { element_bytes(array)? };
        let axes = resolve(array.shape(), selection);
        let kept: Vec<usize> = (0..axes.len()).filter(|&axis| !matches!(axes[axis], Axis::Index(_))).collect();
        let below = |axis: usize| axes[axis + 1..].iter().map(Axis::len).fold(item, u64::saturating_mul);
        let cut = kept.iter().copied().find(|&axis| below(axis) <= budget).or(kept.last().copied()).unwrap_or(axes.len());
        let (mut rows, mut chunk) = (1, None);
        if let Some(axis) = axes.get(cut) {
            let row = below(cut).max(1);
            rows = (budget / row).max(1);
            if let Axis::Steps { step: 1, .. } = axis {
                let len = array.chunk_grid().uniform_chunk_shape().and_then(|_| array.inner_chunk_shape().get(cut).copied()).unwrap_or(0);
                if len > 0 && len.saturating_mul(row) <= budget.saturating_mul(4) {
                    chunk = Some(len);
                    rows = (rows / len).max(1).saturating_mul(len);
                }
            }
        }
        Ok(Self { shape, axes, cut, rows, chunk })
    }

    /// Elements of the whole.
    pub(crate) fn elements(&self) -> u64 {
        units::product(&self.shape)
    }

    /// The pieces in C order.
    pub(crate) fn pieces(&self) -> impl Iterator<Item = Selection> {
        let empty = self.elements() == 0;
        let outer: Vec<u64> = self.axes.iter().take(self.cut).map(Axis::len).collect();
        let outer_count = if empty { 0 } else { units::product(&outer) };
        (0..outer_count).flat_map(move |mut flat| {
            let mut before = vec![AxisSelection::from(..); outer.len()];
            for (axis, &len) in outer.iter().enumerate().rev() {
                before[axis] = self.axes[axis].one(flat % len);
                flat /= len;
            }
            let Some(axis) = self.axes.get(self.cut) else { return vec![Selection::axes(before)] };
            let after: Vec<AxisSelection> = self.axes[self.cut + 1..].iter().map(|axis| axis.part(0, axis.len())).collect();
            let part = |part: AxisSelection| Selection::axes(before.iter().cloned().chain([part]).chain(after.iter().cloned()));
            self.row_ranges(axis).map(|(from, to)| part(axis.part(from, to))).collect()
        })
    }

    fn row_ranges(&self, axis: &Axis) -> impl Iterator<Item = (u64, u64)> {
        let (len, rows, chunk) = (axis.len(), self.rows, self.chunk);
        let origin = if let Axis::Steps { start, .. } = axis { *start } else { 0 };
        let mut from = 0;
        std::iter::from_fn(move || {
            if from >= len {
                return None;
            }
            let mut to = from.saturating_add(rows).min(len);
            if let Some(chunk) = chunk
                && to < len
            {
                // End where a chunk ends, so that no chunk is decoded twice.
                let end = (origin + to) / chunk * chunk;
                to = if end > origin + from { end - origin } else { to };
            }
            let range = (from, to);
            from = to;
            Some(range)
        })
    }
}

/// The positions of each axis of the array. Selections of other kinds than those on the command line do not come here.
fn resolve(shape: &[u64], selection: &Selection) -> Vec<Axis> {
    let none = Vec::new();
    let axes = if let Selection::Axes(axes) = selection { axes } else { &none };
    let whole = AxisSelection::from(..);
    shape
        .iter()
        .zip(axes.iter().chain(std::iter::repeat(&whole)))
        .map(|(&len, axis)| match axis {
            AxisSelection::Index(index) => Axis::Index(*index),
            AxisSelection::List(list) => Axis::List(list.clone()),
            AxisSelection::Slice { start, stop, step } => slice(*start, *stop, *step, len),
            _ => Axis::Steps { start: 0, step: 1, len },
        })
        .collect()
}

/// The rules of Python's `slice.indices`; the step is not 0, which the array has checked.
fn slice(start: Option<i64>, stop: Option<i64>, step: i64, len: u64) -> Axis {
    let length = i128::from(len);
    let (low, high) = if step > 0 { (0, length) } else { (-1, length - 1) };
    let place = |position: Option<i64>, default: i128| match position.map(i128::from) {
        None => default,
        Some(position) => (if position < 0 { position + length } else { position }).clamp(low, high),
    };
    let (start, stop) = if step > 0 { (place(start, low), place(stop, high)) } else { (place(start, high), place(stop, low)) };
    let distance = if step > 0 { stop - start } else { start - stop };
    let count = if distance <= 0 { 0 } else { (distance - 1) / i128::from(step).abs() + 1 };
    Axis::Steps { start: u64::try_from(start).unwrap_or(0), step, len: u64::try_from(count).unwrap_or(0) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zarr::{ArrayBuilder, DataType};

    fn check(select: &str, budget: u64) {
        let shape = [7u64, 5, 6];
        let options = zarr::options();
        let store = zarr::store::MemoryStore::new();
        let builder = ArrayBuilder::new(shape, DataType::UInt16).chunks([2, 5, 3]).codecs(crate::codecs::parse("none").unwrap().chain(
            &DataType::UInt16,
            3,
            None,
        ));
        let array = builder.create(store, "/", &options).unwrap();
        let data: Vec<u16> = (1..=210).collect();
        array.write_elements(&Selection::all(), &data).unwrap();
        let selection = Selection::parse(select, 3).unwrap();
        let whole: Vec<u16> = array.read_elements(&selection).unwrap();
        let slabs = Slabs::new(&array, &selection, budget).unwrap();
        let mut pieces: Vec<u16> = Vec::new();
        for piece in slabs.pieces() {
            pieces.extend(array.read_elements::<u16>(&piece).unwrap());
        }
        assert_eq!(pieces, whole, "{select:?} with {budget}");
        assert_eq!(slabs.elements(), whole.len() as u64);
    }

    #[test]
    fn pieces_make_the_whole() {
        for select in
            ["", "3", "1:6, ::2", "::-1", "::-2, ::-1, 3", "[5, 0, 3], 1:3", "2, [1, 1], ::-3", "..., 4", "1,2,3", "5:5", "-3:, :, -1"]
        {
            for budget in [1, 10, 24, 60, 130, 1 << 20] {
                check(select, budget);
            }
        }
    }
}

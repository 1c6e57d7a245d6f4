//! What part of an array to read or write.

use std::ops::{Range, RangeFrom, RangeFull, RangeTo};

use zarr_meta::ChunkGrid;

use crate::ArrayError;

/// What part of an array to read or write.
///
/// Axes are in the order of the array's shape. Negative positions count from the end, as in Python; for that, no axis of an array has more than 2^63 - 1 elements.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Selection {
    /// A selection for each axis, combined as a product (NumPy's basic indexing; `oindex` with lists). Axes that are not named are taken whole.
    Axes(Vec<AxisSelection>),
    /// Single elements: one list of positions for each axis, all of the same length (`vindex`). The result has one axis. A point may be there several times,
    /// as a position of an [`AxisSelection::List`].
    Points(Vec<Vec<i64>>),
    /// The elements where a mask of the array's shape, in C order, is true. The result has one axis, in C order.
    Mask(Vec<bool>),
    /// Whole chunks of the chunk grid (shards, for a sharded array): a range of chunk coordinates for each axis.
    Blocks(Vec<Range<u64>>),
}

/// What part of one axis.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum AxisSelection {
    /// One position; the axis is dropped from the result.
    Index(i64),
    /// From `start` (default: the first, or the last for a negative step) in steps of `step`, up to and without `stop` (default: to the end).
    /// Positions past the ends are clipped.
    Slice {
        /// First position.
        start: Option<i64>,
        /// End, not included.
        stop: Option<i64>,
        /// Not 0.
        step: i64,
    },
    /// These positions, in this order. One may be there several times: then it is read as often, and of what is written to it the last stays.
    List(Vec<i64>),
    /// The positions where the mask, of the axis's length, is true.
    Mask(Vec<bool>),
}

impl Selection {
    /// The whole array.
    pub fn all() -> Self {
        Self::Axes(Vec::new())
    }

    /// A range for each axis: `Selection::ranges([0..10, 5..6])`. As in NumPy, what lies outside the array is left out, and axes that are not named are whole.
    pub fn ranges(ranges: impl IntoIterator<Item = Range<u64>>) -> Self {
        Self::Axes(ranges.into_iter().map(AxisSelection::from).collect())
    }

    /// A selection for each axis, of any kind that converts: `Selection::axes([3.into(), (..).into()])`.
    pub fn axes(axes: impl IntoIterator<Item = AxisSelection>) -> Self {
        Self::Axes(axes.into_iter().collect())
    }

    /// Reads NumPy's notation: `"0, 10:20, ::-2, [1, 5, 3]"`; `...` stands for the axes between. An empty text is the whole array.
    ///
    /// # Errors
    /// [`ArrayError::Selection`] when the text is none of these.
    pub fn parse(text: &str, rank: usize) -> Result<Self, ArrayError> {
        let mut axes = Vec::new();
        let mut ellipsis = None;
        for part in split_axes(text.trim())? {
            if part == "..." {
                if ellipsis.replace(axes.len()).is_some() {
                    return Err(ArrayError::selection("`...` stands twice"));
                }
            } else {
                axes.push(AxisSelection::parse(part)?);
            }
        }
        if axes.len() > rank {
            return Err(ArrayError::selection(too_many(axes.len(), rank)));
        }
        if let Some(at) = ellipsis {
            let tail = axes.split_off(at);
            axes.resize(rank - tail.len(), AxisSelection::from(..));
            axes.extend(tail);
        }
        Ok(Self::Axes(axes))
    }

    /// The positions that the selection stands for.
    pub(crate) fn resolve(&self, shape: &[u64], grid: &ChunkGrid) -> Result<Resolved, ArrayError> {
        match self {
            Self::Axes(axes) => {
                if axes.len() > shape.len() {
                    return Err(ArrayError::selection(too_many(axes.len(), shape.len())));
                }
                let whole = AxisSelection::from(..);
                let selections = axes.iter().chain(std::iter::repeat(&whole));
                let axes: Vec<Positions> =
                    shape.iter().zip(selections).enumerate().map(|(axis, (&len, of))| of.resolve(axis, len)).collect::<Result<_, _>>()?;
                Ok(Resolved::Product(axes))
            }
            Self::Blocks(blocks) => {
                if blocks.len() != shape.len() {
                    return Err(ArrayError::selection(format!("blocks along {} axes of an array of {}", blocks.len(), shape.len())));
                }
                let grid_shape = grid.grid_shape(shape);
                let mut axes = Vec::with_capacity(shape.len());
                for (axis, (blocks, (&len, &count))) in blocks.iter().zip(shape.iter().zip(&grid_shape)).enumerate() {
                    if blocks.start > blocks.end || blocks.end > count {
                        return Err(ArrayError::selection(format!("blocks {blocks:?} along axis {axis}, which has {count}")));
                    }
                    let edge = |index: u64| if index == count { len } else { grid.chunk_origin(axis, index).min(len) };
                    let (start, end) = (edge(blocks.start), edge(blocks.end));
                    axes.push(Positions::Steps { start, step: 1, len: end - start, keep: true });
                }
                Ok(Resolved::Product(axes))
            }
            Self::Points(axes) => {
                if axes.len() != shape.len() {
                    return Err(ArrayError::selection(format!(
                        "points with {} coordinates in an array of {} axes",
                        axes.len(),
                        shape.len()
                    )));
                }
                let count = axes.first().map_or(1, Vec::len);
                let mut points = Vec::with_capacity(axes.len());
                for (axis, (positions, &len)) in axes.iter().zip(shape).enumerate() {
                    if positions.len() != count {
                        return Err(ArrayError::selection(format!("{count} points, and {} positions along axis {axis}", positions.len())));
                    }
                    points.push(positions.iter().map(|&position| resolve_index(axis, position, len)).collect::<Result<_, _>>()?);
                }
                Ok(Resolved::Points { count, axes: points })
            }
            Self::Mask(mask) => {
                let elements = shape.iter().try_fold(1u64, |product, &len| product.checked_mul(len));
                if elements != Some(mask.len() as u64) {
                    return Err(ArrayError::selection(format!("a mask of {} elements for an array of shape {shape:?}", mask.len())));
                }
                let chosen: Vec<u64> = mask.iter().zip(0u64..).filter(|(chosen, _)| **chosen).map(|(_, position)| position).collect();
                let mut axes = vec![Vec::with_capacity(chosen.len()); shape.len()];
                for &flat in &chosen {
                    let mut rest = flat;
                    for (positions, &len) in axes.iter_mut().zip(shape).rev() {
                        positions.push(rest % len);
                        rest /= len;
                    }
                }
                Ok(Resolved::Points { count: chosen.len(), axes })
            }
        }
    }
}

fn too_many(selected: usize, rank: usize) -> String {
    let (entries, axes) = (if selected == 1 { "entry" } else { "entries" }, if rank == 1 { "axis" } else { "axes" });
    format!("{selected} {entries}, and the array has {rank} {axes}")
}

fn split_axes(text: &str) -> Result<Vec<&str>, ArrayError> {
    let mut parts = Vec::new();
    let (mut depth, mut start) = (0i32, 0);
    for (at, character) in text.char_indices() {
        match character {
            '[' => depth += 1,
            ']' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    if depth != 0 {
        return Err(ArrayError::selection(format!("brackets do not match in {text:?}")));
    }
    let last = text[start..].trim();
    if !last.is_empty() {
        parts.push(last);
    }
    Ok(parts)
}

impl AxisSelection {
    fn parse(text: &str) -> Result<Self, ArrayError> {
        let number = |text: &str| -> Result<i64, ArrayError> {
            text.trim().parse().map_err(|_| ArrayError::selection(format!("{text:?} is neither a number, a range nor a list")))
        };
        if let Some(list) = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            return list.split(',').filter(|item| !item.trim().is_empty()).map(number).collect::<Result<_, _>>().map(Self::List);
        }
        let parts: Vec<&str> = text.split(':').collect();
        let optional = |text: &str| if text.trim().is_empty() { Ok(None) } else { number(text).map(Some) };
        match parts.as_slice() {
            [index] => Ok(Self::Index(number(index)?)),
            [start, stop] => Ok(Self::Slice { start: optional(start)?, stop: optional(stop)?, step: 1 }),
            [start, stop, step] => Ok(Self::Slice { start: optional(start)?, stop: optional(stop)?, step: optional(step)?.unwrap_or(1) }),
            _ => Err(ArrayError::selection(format!("{text:?} has more than two colons"))),
        }
    }

    fn resolve(&self, axis: usize, len: u64) -> Result<Positions, ArrayError> {
        match self {
            Self::Index(index) => Ok(Positions::Steps { start: resolve_index(axis, *index, len)?, step: 1, len: 1, keep: false }),
            Self::Slice { start, stop, step } => resolve_slice(*start, *stop, *step, len),
            Self::List(list) => list.iter().map(|&index| resolve_index(axis, index, len)).collect::<Result<_, _>>().map(Positions::List),
            Self::Mask(mask) => {
                if mask.len() as u64 != len {
                    return Err(ArrayError::selection(format!("a mask of {} for axis {axis} of length {len}", mask.len())));
                }
                Ok(Positions::List(mask.iter().zip(0u64..).filter(|(chosen, _)| **chosen).map(|(_, position)| position).collect()))
            }
        }
    }
}

fn resolve_index(axis: usize, index: i64, len: u64) -> Result<u64, ArrayError> {
    let resolved = if index < 0 { len.checked_sub(index.unsigned_abs()) } else { Some(index.unsigned_abs()) };
    resolved
        .filter(|&index| index < len)
        .ok_or_else(|| ArrayError::selection(format!("position {index} is outside axis {axis} of length {len}")))
}

/// The rules of Python's `slice.indices`.
fn resolve_slice(start: Option<i64>, stop: Option<i64>, step: i64, len: u64) -> Result<Positions, ArrayError> {
    if step == 0 {
        return Err(ArrayError::selection("a step of 0"));
    }
    let length = i128::from(len);
    let (lowest, highest) = if step > 0 { (0, length) } else { (-1, length - 1) };
    let resolve = |position: Option<i64>, default: i128| match position {
        None => default,
        Some(position) => {
            let position = i128::from(position);
            (if position < 0 { position + length } else { position }).clamp(lowest, highest)
        }
    };
    let (first, end) = if step > 0 { (lowest, highest) } else { (highest, lowest) };
    let (start, stop, step) = (resolve(start, first), resolve(stop, end), i128::from(step));
    let distance = if step > 0 { stop - start } else { start - stop };
    let count = if distance <= 0 { 0 } else { (distance + step.abs() - 1) / step.abs() };
    // An axis of length 0 and an empty slice may start at -1; no element is ever looked at.
    let fits = |value: i128| u64::try_from(value).unwrap_or(0);
    let step = i64::try_from(step).map_err(|_| ArrayError::selection("a step that does not fit"))?;
    Ok(Positions::Steps { start: fits(start), step, len: fits(count), keep: true })
}

impl From<i64> for AxisSelection {
    fn from(index: i64) -> Self {
        Self::Index(index)
    }
}

impl From<Range<u64>> for AxisSelection {
    fn from(range: Range<u64>) -> Self {
        Self::slice(Some(range.start), Some(range.end))
    }
}

impl From<RangeFrom<u64>> for AxisSelection {
    fn from(range: RangeFrom<u64>) -> Self {
        Self::slice(Some(range.start), None)
    }
}

impl From<RangeTo<u64>> for AxisSelection {
    fn from(range: RangeTo<u64>) -> Self {
        Self::slice(None, Some(range.end))
    }
}

impl From<RangeFull> for AxisSelection {
    fn from(_: RangeFull) -> Self {
        Self::slice(None, None)
    }
}

impl From<Vec<i64>> for AxisSelection {
    fn from(list: Vec<i64>) -> Self {
        Self::List(list)
    }
}

impl From<Vec<bool>> for AxisSelection {
    fn from(mask: Vec<bool>) -> Self {
        Self::Mask(mask)
    }
}

impl AxisSelection {
    fn slice(start: Option<u64>, stop: Option<u64>) -> Self {
        // Positions past the end are clipped, and no axis of an array is longer than this.
        let clip = |position: u64| i64::try_from(position).unwrap_or(i64::MAX);
        Self::Slice { start: start.map(clip), stop: stop.map(clip), step: 1 }
    }
}

/// A selection against a shape: every position is inside.
#[derive(Debug, Clone)]
pub(crate) enum Resolved {
    Product(Vec<Positions>),
    Points { count: usize, axes: Vec<Vec<u64>> },
}

impl Resolved {
    /// The shape of what is selected.
    pub(crate) fn shape(&self) -> Vec<u64> {
        match self {
            Self::Product(axes) => axes.iter().filter(|axis| axis.keep()).map(Positions::len).collect(),
            Self::Points { count, .. } => vec![*count as u64],
        }
    }
}

/// Positions along one axis.
#[derive(Debug, Clone)]
pub(crate) enum Positions {
    /// `keep`: whether the axis stays in the shape of the result.
    Steps {
        start: u64,
        step: i64,
        len: u64,
        keep: bool,
    },
    List(Vec<u64>),
}

impl Positions {
    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Steps { len, .. } => *len,
            Self::List(list) => list.len() as u64,
        }
    }

    /// How many chunks of `chunk_len` elements have positions in them.
    pub(crate) fn chunks(&self, chunk_len: u64) -> u64 {
        let chunk = |position: u64| position / chunk_len.max(1);
        match self {
            Self::Steps { len: 0, .. } => 0,
            Self::Steps { start, step, len, .. } => {
                let span = (len - 1).saturating_mul(step.unsigned_abs());
                let end = if *step < 0 { start.saturating_sub(span) } else { start.saturating_add(span) };
                (chunk(*start).abs_diff(chunk(end)) + 1).min(*len)
            }
            Self::List(list) => {
                let mut chunks: Vec<u64> = list.iter().copied().map(chunk).collect();
                chunks.sort_unstable();
                chunks.dedup();
                chunks.len() as u64
            }
        }
    }

    pub(crate) fn keep(&self) -> bool {
        !matches!(self, Self::Steps { keep: false, .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_lie_in_so_many_chunks() {
        for text in ["3", ":", "5:5", "2:9", "1:20:3", "::7", "19:2:-5", "::-1", "[0,19,1,1,7]", "[]"] {
            let Selection::Axes(axes) = Selection::parse(text, 1).unwrap() else { panic!("axes") };
            for chunk_len in 1..=21 {
                let mut chunks: Vec<u64> = positions(text, 20).into_iter().map(|position| position / chunk_len).collect();
                chunks.sort_unstable();
                chunks.dedup();
                assert_eq!(axes[0].resolve(0, 20).unwrap().chunks(chunk_len), chunks.len() as u64, "{text} in chunks of {chunk_len}");
            }
        }
    }

    fn positions(text: &str, len: u64) -> Vec<u64> {
        let Selection::Axes(axes) = Selection::parse(text, 1).unwrap() else { panic!("axes") };
        match axes[0].resolve(0, len).unwrap() {
            Positions::Steps { start, step, len, .. } => (0..len).map(|i| (start as i64 + step * i as i64) as u64).collect(),
            Positions::List(list) => list,
        }
    }

    #[test]
    fn slices_follow_python() {
        assert_eq!(positions("::-1", 4), [3, 2, 1, 0]);
        assert_eq!(positions("-3:", 5), [2, 3, 4]);
        assert_eq!(positions("1:100:2", 6), [1, 3, 5]);
        assert_eq!(positions("5:1:-2", 6), [5, 3]);
        assert_eq!(positions("3:1", 6), [] as [u64; 0]);
        assert_eq!(positions(":", 0), [] as [u64; 0]);
        assert_eq!(positions("::-1", 0), [] as [u64; 0]);
        assert_eq!(positions("[2, -1]", 6), [2, 5]);
    }

    #[test]
    fn an_ellipsis_fills_up() {
        assert_eq!(Selection::parse("0, ..., 1:2", 4).unwrap(), Selection::parse("0,:,:,1:2", 4).unwrap());
        assert!(Selection::parse("1,2", 1).is_err());
        assert!(Selection::parse("[1,2", 1).is_err());
        assert!(Selection::parse("a", 1).is_err());
    }

    #[test]
    fn outside_is_refused() {
        let grid = ChunkGrid::regular([2]);
        assert!(Selection::axes([4.into()]).resolve(&[4], &grid).is_err());
        assert!(Selection::axes([(-5).into()]).resolve(&[4], &grid).is_err());
        assert!(Selection::Blocks(std::iter::once(1..3).collect()).resolve(&[4], &grid).is_err());
        assert!(Selection::Points(vec![vec![0], vec![0]]).resolve(&[4], &grid).is_err());
        assert!(Selection::Mask(vec![true]).resolve(&[4], &grid).is_err());
    }
}

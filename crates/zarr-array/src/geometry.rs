//! From positions in an array to parts of chunks: pure arithmetic.

use std::collections::BTreeMap;
use std::sync::Arc;

use zarr_buffer_api::AxisTiles;
use zarr_meta::ChunkGrid;

use crate::ArrayError;
use crate::selection::{Positions, Resolved};

/// How the chunks of an array are cut: the grid, then the inner chunks of each level of sharding.
#[derive(Debug, Clone)]
pub(crate) struct Cuts {
    pub(crate) grid: ChunkGrid,
    /// For each level of sharding, outermost first: elements of an inner chunk along each axis of the array.
    pub(crate) inner: Vec<Vec<u64>>,
}

/// The part of one axis that lies in one innermost chunk.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    /// Which chunk of the grid.
    pub(crate) chunk: u64,
    /// Which inner chunk, at each level.
    pub(crate) cells: Vec<u64>,
    /// Elements of the innermost chunk along this axis.
    pub(crate) chunk_len: u64,
    /// Elements of the innermost chunk that lie inside the array.
    pub(crate) inside: u64,
    /// First element of the innermost chunk, in the array.
    pub(crate) origin: u64,
    /// Which elements of the innermost chunk.
    pub(crate) elements: Elements,
}

/// Elements of a chunk along one axis.
#[derive(Debug, Clone)]
pub(crate) enum Elements {
    Steps { start: u64, step: i64, len: u64 },
    List(Arc<[u64]>),
}

impl Elements {
    pub(crate) fn len(&self) -> usize {
        match self {
            // A count of elements in one chunk, which is in memory.
            Self::Steps { len, .. } => *len as usize,
            Self::List(list) => list.len(),
        }
    }

    /// Whether every one of the first `len` elements is named.
    pub(crate) fn covers(&self, len: u64) -> bool {
        match self {
            Self::Steps { step, len: count, .. } => (step.unsigned_abs() == 1 || *count == 1) && *count == len,
            Self::List(list) => {
                if (list.len() as u64) < len {
                    return false;
                }
                let mut seen = vec![false; usize::try_from(len).unwrap_or(0)];
                for &element in list.iter() {
                    if let Some(seen) = usize::try_from(element).ok().and_then(|element| seen.get_mut(element)) {
                        *seen = true;
                    }
                }
                seen.into_iter().all(|seen| seen)
            }
        }
    }
}

/// One axis of a selection: its parts, in the order of the output where that is possible.
#[derive(Debug, Clone)]
pub(crate) struct Axis {
    pub(crate) parts: Vec<Part>,
    /// Which parts lie in each chunk of the grid.
    pub(crate) chunks: Vec<(u64, Vec<usize>)>,
    pub(crate) tiles: AxisTiles,
    pub(crate) len: usize,
    pub(crate) keep: bool,
}

/// The points of a selection that lie in one innermost chunk.
#[derive(Debug, Clone)]
pub(crate) struct PointGroup {
    /// One part for each axis, with a list of elements each: the points.
    pub(crate) parts: Vec<Part>,
}

/// A selection cut into parts of chunks.
#[derive(Debug, Clone)]
pub(crate) enum Cut {
    /// A product of axes.
    Product(Vec<Axis>),
    /// Groups of points, which of them lie in each chunk of the grid, and how they cut the one axis of the output.
    Points { groups: Vec<PointGroup>, chunks: Vec<(Vec<u64>, Vec<usize>)>, tiles: AxisTiles, len: usize },
}

impl Axis {
    /// Whether what is touched of one chunk of the grid is all of its `inside` elements inside of the shape.
    fn covers(&self, parts: &[usize], inside: u64) -> bool {
        let covered = parts.iter().filter_map(|&part| self.parts.get(part)).filter(|part| part.elements.covers(part.inside));
        covered.map(|part| part.inside).sum::<u64>() == inside
    }
}

/// Elements of a chunk of the grid along an axis that lie inside of the shape.
pub(crate) fn chunk_inside(grid: &ChunkGrid, shape: &[u64], axis: usize, chunk: u64) -> u64 {
    let origin = grid.chunk_origin(axis, chunk);
    let end = shape.get(axis).copied().unwrap_or(0).min(origin.saturating_add(grid.chunk_len(axis, chunk)));
    end.saturating_sub(origin)
}

impl Cuts {
    pub(crate) fn cut(&self, shape: &[u64], resolved: &Resolved) -> Result<Cut, ArrayError> {
        match resolved {
            Resolved::Product(axes) => {
                // Then no chunk is touched, and the other axes may have more than can be named.
                let is_empty = axes.iter().any(|positions| positions.len() == 0);
                let axes = axes.iter().enumerate().map(|(axis, positions)| self.cut_axis(axis, shape, positions, is_empty));
                axes.collect::<Result<_, _>>().map(Cut::Product)
            }
            Resolved::Points { count, axes } => self.cut_points(shape, *count, axes),
        }
    }

    /// Where an element lies: the part that holds it alone.
    fn locate(&self, axis: usize, shape: &[u64], position: u64) -> Result<Part, ArrayError> {
        let outside = || ArrayError::selection(format!("position {position} along axis {axis} is in no chunk"));
        let (chunk, mut offset) = self.grid.locate(axis, position).ok_or_else(outside)?;
        let mut origin = position - offset;
        let mut chunk_len = self.grid.chunk_len(axis, chunk);
        let mut cells = Vec::with_capacity(self.inner.len());
        for inner in &self.inner {
            let len = inner.get(axis).copied().filter(|&len| len > 0).ok_or_else(outside)?;
            let cell = offset / len;
            cells.push(cell);
            offset -= cell * len;
            origin += cell * len;
            chunk_len = len;
        }
        let end = shape.get(axis).copied().unwrap_or(0);
        let inside = chunk_len.min(end.saturating_sub(origin));
        let elements = Elements::Steps { start: offset, step: 1, len: 1 };
        Ok(Part { chunk, cells, chunk_len, inside, origin, elements })
    }

    /// `is_empty`: the selection has no elements, whatever this axis is.
    fn cut_axis(&self, axis: usize, shape: &[u64], positions: &Positions, is_empty: bool) -> Result<Axis, ArrayError> {
        let len =
            usize::try_from(positions.len()).map_err(|_| ArrayError::selection("an axis of the result does not fit the address space"))?;
        let (parts, tiles) = match positions {
            _ if is_empty => (Vec::new(), AxisTiles::Ranges(Vec::new())),
            Positions::Steps { start, step, len, .. } => self.cut_steps(axis, shape, *start, *step, *len)?,
            Positions::List(list) => self.cut_list(axis, shape, list)?,
        };
        let mut chunks: Vec<(u64, Vec<usize>)> = Vec::new();
        let mut seen: BTreeMap<u64, usize> = BTreeMap::new();
        for (index, part) in parts.iter().enumerate() {
            match chunks.last_mut() {
                Some((chunk, parts)) if *chunk == part.chunk => parts.push(index),
                // An even walk meets each chunk in one run.
                _ if matches!(positions, Positions::Steps { .. }) => chunks.push((part.chunk, vec![index])),
                _ => match seen.get(&part.chunk).and_then(|&at| chunks.get_mut(at)) {
                    Some((_, parts)) => parts.push(index),
                    None => {
                        seen.insert(part.chunk, chunks.len());
                        chunks.push((part.chunk, vec![index]));
                    }
                },
            }
        }
        Ok(Axis { parts, chunks, tiles, len, keep: positions.keep() })
    }

    /// An even walk meets each chunk in one run.
    fn cut_steps(&self, axis: usize, shape: &[u64], start: u64, step: i64, len: u64) -> Result<(Vec<Part>, AxisTiles), ArrayError> {
        let (mut parts, mut ranges) = (Vec::new(), Vec::new());
        let mut done = 0;
        while done < len {
            // Positions were resolved against the shape, so that the walk stays inside it.
            let position = start.wrapping_add_signed(step.wrapping_mul(done as i64));
            let mut part = self.locate(axis, shape, position)?;
            let Elements::Steps { start: offset, .. } = part.elements else { continue };
            let room = if step > 0 { part.inside.saturating_sub(offset + 1) } else { offset };
            let count = (room / step.unsigned_abs() + 1).min(len - done);
            part.elements = Elements::Steps { start: offset, step, len: count };
            parts.push(part);
            ranges.push(done as usize..(done + count) as usize);
            done += count;
        }
        Ok((parts, AxisTiles::Ranges(ranges)))
    }

    /// A list meets chunks in any order: positions are gathered by chunk.
    fn cut_list(&self, axis: usize, shape: &[u64], list: &[u64]) -> Result<(Vec<Part>, AxisTiles), ArrayError> {
        let mut groups: BTreeMap<u64, (Part, Vec<u64>, Vec<usize>)> = BTreeMap::new();
        for (output, &position) in list.iter().enumerate() {
            let part = self.locate(axis, shape, position)?;
            let (_, elements, outputs) = groups.entry(part.origin).or_insert_with(|| (part.clone(), Vec::new(), Vec::new()));
            elements.push(position - part.origin);
            outputs.push(output);
        }
        let mut groups: Vec<(Part, Vec<u64>, Vec<usize>)> = groups.into_values().collect();
        groups.sort_by_key(|(_, _, outputs)| outputs.first().copied());
        let consecutive = groups.iter().all(|(_, _, outputs)| outputs.windows(2).all(|pair| matches!(pair, [a, b] if a + 1 == *b)));
        let tiles = if consecutive {
            AxisTiles::Ranges(groups.iter().map(|(_, _, outputs)| range_of(outputs)).collect())
        } else {
            AxisTiles::Lists(groups.iter().map(|(_, _, outputs)| outputs.clone()).collect())
        };
        let parts = groups.into_iter().map(|(part, elements, _)| Part { elements: Elements::List(elements.into()), ..part }).collect();
        Ok((parts, tiles))
    }

    fn cut_points(&self, shape: &[u64], count: usize, axes: &[Vec<u64>]) -> Result<Cut, ArrayError> {
        // For each axis its part and the elements in it, and the places of the points in the output.
        type Points = (Vec<Part>, Vec<Vec<u64>>, Vec<usize>);
        // One entry for each innermost chunk, known by its origin.
        let mut groups: BTreeMap<Vec<u64>, Points> = BTreeMap::new();
        for point in 0..count {
            let mut parts = Vec::with_capacity(axes.len());
            let mut elements = Vec::with_capacity(axes.len());
            for (axis, positions) in axes.iter().enumerate() {
                let position = positions.get(point).copied().unwrap_or(0);
                let part = self.locate(axis, shape, position)?;
                elements.push(position - part.origin);
                parts.push(part);
            }
            let origin: Vec<u64> = parts.iter().map(|part| part.origin).collect();
            let (_, lists, outputs) = groups.entry(origin).or_insert_with(|| (parts, vec![Vec::new(); axes.len()], Vec::new()));
            for (list, element) in lists.iter_mut().zip(elements) {
                list.push(element);
            }
            outputs.push(point);
        }
        let mut chunks: BTreeMap<Vec<u64>, Vec<usize>> = BTreeMap::new();
        let (mut point_groups, mut lists) = (Vec::new(), Vec::new());
        for (parts, elements, outputs) in groups.into_values() {
            chunks.entry(parts.iter().map(|part| part.chunk).collect()).or_default().push(point_groups.len());
            let parts =
                parts.into_iter().zip(elements).map(|(part, list)| Part { elements: Elements::List(list.into()), ..part }).collect();
            point_groups.push(PointGroup { parts });
            lists.push(outputs);
        }
        Ok(Cut::Points { groups: point_groups, chunks: chunks.into_iter().collect(), tiles: AxisTiles::Lists(lists), len: count })
    }
}

fn range_of(outputs: &[usize]) -> std::ops::Range<usize> {
    outputs.first().map_or(0..0, |&first| first..first + outputs.len())
}

impl Cut {
    /// The shape that the caller sees: axes selected by one index are dropped.
    pub(crate) fn result_shape(&self) -> Vec<u64> {
        match self {
            Self::Product(axes) => axes.iter().filter(|axis| axis.keep).map(|axis| axis.len as u64).collect(),
            Self::Points { len, .. } => vec![*len as u64],
        }
    }

    /// The shape with every axis.
    pub(crate) fn full_shape(&self) -> Vec<usize> {
        match self {
            Self::Product(axes) => axes.iter().map(|axis| axis.len).collect(),
            Self::Points { len, .. } => vec![*len],
        }
    }

    /// Of the axes of [`Cut::full_shape`], which the caller sees.
    pub(crate) fn kept_axes(&self) -> Vec<bool> {
        match self {
            Self::Product(axes) => axes.iter().map(|axis| axis.keep).collect(),
            Self::Points { .. } => vec![true],
        }
    }

    pub(crate) fn tiles(&self) -> Vec<AxisTiles> {
        match self {
            Self::Product(axes) => axes.iter().map(|axis| axis.tiles.clone()).collect(),
            Self::Points { tiles, .. } => vec![tiles.clone()],
        }
    }

    /// How many chunks of the grid are touched.
    pub(crate) fn chunk_count(&self) -> Option<usize> {
        match self {
            Self::Product(axes) => axes.iter().try_fold(1usize, |product, axis| product.checked_mul(axis.chunks.len())),
            Self::Points { chunks, .. } => Some(chunks.len()),
        }
    }

    /// The `index`-th chunk that is touched, in C order: its coordinates, and what of it.
    pub(crate) fn chunk(&self, index: usize) -> (Vec<u64>, Cells) {
        match self {
            Self::Product(axes) => {
                let mut rest = index;
                let mut coordinates = vec![0; axes.len()];
                let mut cells = vec![Vec::new(); axes.len()];
                for ((axis, coordinate), cells) in axes.iter().zip(&mut coordinates).zip(&mut cells).rev() {
                    if let Some((chunk, parts)) = axis.chunks.get(rest % axis.chunks.len().max(1)) {
                        *coordinate = *chunk;
                        cells.clone_from(parts);
                    }
                    rest /= axis.chunks.len().max(1);
                }
                (coordinates, Cells::Product(cells))
            }
            Self::Points { chunks, .. } => chunks
                .get(index)
                .map_or_else(Default::default, |(coordinates, groups)| (coordinates.clone(), Cells::Points(groups.clone()))),
        }
    }

    /// Cuts what is touched of a shard into its inner chunks at `level`: coordinates inside the shard, and what of each.
    pub(crate) fn split(&self, cells: &Cells, level: usize) -> Vec<(Vec<u64>, Cells)> {
        match (self, cells) {
            (Self::Product(axes), Cells::Product(parts)) => {
                let grouped: Vec<Vec<(u64, Vec<usize>)>> = axes
                    .iter()
                    .zip(parts)
                    .map(|(axis, parts)| group_by(parts, |part| axis.parts.get(part).and_then(|part| part.cells.get(level)).copied()))
                    .collect();
                let count = grouped.iter().fold(1usize, |product, axis| product.saturating_mul(axis.len()));
                (0..count)
                    .map(|index| {
                        let mut rest = index;
                        let mut coordinates = vec![0; grouped.len()];
                        let mut cells = vec![Vec::new(); grouped.len()];
                        for ((axis, coordinate), cells) in grouped.iter().zip(&mut coordinates).zip(&mut cells).rev() {
                            if let Some((cell, parts)) = axis.get(rest % axis.len().max(1)) {
                                *coordinate = *cell;
                                cells.clone_from(parts);
                            }
                            rest /= axis.len().max(1);
                        }
                        (coordinates, Cells::Product(cells))
                    })
                    .collect()
            }
            (Self::Points { groups, .. }, Cells::Points(members)) => {
                let mut split: BTreeMap<Vec<u64>, Vec<usize>> = BTreeMap::new();
                for &member in members {
                    let Some(group) = groups.get(member) else { continue };
                    let coordinates = group.parts.iter().map(|part| part.cells.get(level).copied().unwrap_or(0)).collect();
                    split.entry(coordinates).or_default().push(member);
                }
                split.into_iter().map(|(coordinates, groups)| (coordinates, Cells::Points(groups))).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Whether what is touched of a chunk is all of it: `inside` says how many of its elements lie inside the array along each axis.
    pub(crate) fn covers(&self, cells: &Cells, inside: impl Fn(usize) -> u64) -> bool {
        let (Self::Product(axes), Cells::Product(parts)) = (self, cells) else { return false };
        axes.iter().zip(parts).enumerate().all(|(index, (axis, parts))| axis.covers(parts, inside(index)))
    }

    /// Whether some chunk of the grid, or an innermost one, is touched everywhere inside of the shape, which cuts it.
    pub(crate) fn covers_cut(&self, grid: &ChunkGrid, shape: &[u64]) -> bool {
        let Self::Product(axes) = self else { return false };
        let inside = |axis: usize, chunk: u64| chunk_inside(grid, shape, axis, chunk);
        let innermost = |part: &Part| part.elements.covers(part.inside);
        let whole = |index: usize, axis: &Axis, (chunk, parts): &(u64, Vec<usize>)| axis.covers(parts, inside(index, *chunk));
        let cuts_innermost = axes.iter().any(|axis| axis.parts.iter().any(|part| part.inside < part.chunk_len && innermost(part)));
        if cuts_innermost && axes.iter().all(|axis| axis.parts.iter().any(innermost)) {
            return true;
        }
        let cuts_whole = |index: usize, axis: &Axis| {
            let mut cut = axis.chunks.iter().filter(|(chunk, _)| inside(index, *chunk) < grid.chunk_len(index, *chunk));
            cut.any(|chunk| whole(index, axis, chunk))
        };
        axes.iter().enumerate().any(|(index, axis)| cuts_whole(index, axis))
            && axes.iter().enumerate().all(|(index, axis)| axis.chunks.iter().any(|chunk| whole(index, axis, chunk)))
    }

    /// What is touched of innermost chunks: one entry for each part of the output.
    pub(crate) fn leaves(&self, cells: &Cells) -> Vec<Leaf<'_>> {
        match (self, cells) {
            (Self::Product(axes), Cells::Product(parts)) if parts.iter().all(|parts| parts.len() == 1) => {
                let tile = parts.iter().flatten().copied().collect();
                let of_axes = axes.iter().zip(parts.iter().flatten()).map(|(axis, &index)| axis.parts.get(index));
                of_axes.collect::<Option<_>>().map(|parts| Leaf { tile, parts, points: false }).into_iter().collect()
            }
            (Self::Product(axes), Cells::Product(parts)) => {
                let mut leaves = vec![Leaf { tile: Vec::new(), parts: Vec::new(), points: false }];
                for (axis, parts) in axes.iter().zip(parts) {
                    leaves = leaves
                        .into_iter()
                        .flat_map(|leaf| {
                            parts.iter().filter_map(move |&index| {
                                let mut leaf = leaf.clone();
                                leaf.tile.push(index);
                                leaf.parts.push(axis.parts.get(index)?);
                                Some(leaf)
                            })
                        })
                        .collect();
                }
                leaves
            }
            (Self::Points { groups, .. }, Cells::Points(members)) => members
                .iter()
                .filter_map(|&member| Some(Leaf { tile: vec![member], parts: groups.get(member)?.parts.iter().collect(), points: true }))
                .collect(),
            _ => Vec::new(),
        }
    }
}

fn group_by(parts: &[usize], cell: impl Fn(usize) -> Option<u64>) -> Vec<(u64, Vec<usize>)> {
    let mut groups: Vec<(u64, Vec<usize>)> = Vec::new();
    for &part in parts {
        let of = cell(part).unwrap_or(0);
        // Mostly in order, one way or the other.
        match groups.last_mut() {
            Some((cell, parts)) if *cell == of => parts.push(part),
            _ => match groups.binary_search_by_key(&of, |(cell, _)| *cell) {
                Ok(at) => {
                    if let Some((_, parts)) = groups.get_mut(at) {
                        parts.push(part);
                    }
                }
                Err(at) => groups.insert(at, (of, vec![part])),
            },
        }
    }
    groups
}

/// What of a chunk or shard is touched: indices of parts for each axis, or of groups of points.
#[derive(Debug, Clone)]
pub(crate) enum Cells {
    Product(Vec<Vec<usize>>),
    Points(Vec<usize>),
}

impl Default for Cells {
    fn default() -> Self {
        Self::Points(Vec::new())
    }
}

/// What is touched of one innermost chunk.
#[derive(Debug, Clone)]
pub(crate) struct Leaf<'a> {
    /// Which tile of the output.
    pub(crate) tile: Vec<usize>,
    /// One part for each axis of the array.
    pub(crate) parts: Vec<&'a Part>,
    /// Whether the parts are lists of points side by side, rather than axes of a product.
    pub(crate) points: bool,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Every output position gets the element that the selection names, whatever the cuts.
    fn check(shape: u64, chunk: u64, inner: Option<u64>, positions: &Positions) {
        let cuts = Cuts { grid: ChunkGrid::regular([chunk]), inner: inner.into_iter().map(|len| vec![len]).collect() };
        let axis = cuts.cut_axis(0, &[shape], positions, false).unwrap();
        let wanted: Vec<u64> = match positions {
            Positions::Steps { start, step, len, .. } => (0..*len).map(|i| (*start as i64 + step * i as i64) as u64).collect(),
            Positions::List(list) => list.clone(),
        };
        let mut found = vec![u64::MAX; wanted.len()];
        for (index, part) in axis.parts.iter().enumerate() {
            let elements: Vec<u64> = match &part.elements {
                Elements::Steps { start, step, len } => (0..*len).map(|i| (*start as i64 + step * i as i64) as u64).collect(),
                Elements::List(list) => list.to_vec(),
            };
            let outputs: Vec<usize> = match &axis.tiles {
                AxisTiles::Ranges(ranges) => ranges[index].clone().collect(),
                AxisTiles::Lists(lists) => lists[index].clone(),
            };
            assert_eq!(elements.len(), outputs.len());
            for (element, output) in elements.into_iter().zip(outputs) {
                assert!(element < part.inside);
                found[output] = part.origin + element;
            }
        }
        assert_eq!(found, wanted);
    }

    proptest! {
        #[test]
        fn parts_cover_the_selection(
            shape in 1u64..60, chunk in 1u64..20, inner in prop::option::of(1u64..5), start in 0u64..60, step in -5i64..5, list in prop::collection::vec(0u64..60, 0..20)
        ) {
            let chunk = inner.map_or(chunk, |inner| chunk.next_multiple_of(inner));
            let start = start % shape;
            let step = if step == 0 { 1 } else { step };
            let room = if step > 0 { (shape - 1 - start) / step.unsigned_abs() } else { start / step.unsigned_abs() };
            check(shape, chunk, inner, &Positions::Steps { start, step, len: room + 1, keep: true });
            let list = list.into_iter().map(|position| position % shape).collect();
            check(shape, chunk, inner, &Positions::List(list));
        }
    }
}

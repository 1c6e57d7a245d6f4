//! Chunk grids: how chunks tile an array.

mod axis;
mod json;

pub use axis::GridAxis;

use crate::MetadataError;

/// The grid of chunks of an array.
///
/// Lengths and positions are in elements. Positions in the grid beyond what `u64` holds saturate
/// or are `None`; nothing here panics or wraps.
///
/// Specification: core 3.1, "Regular grids", and the registry's `rectilinear`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChunkGrid {
    /// `regular`: all chunks have the same shape.
    Regular {
        /// The shape of every chunk. No length may be 0: see [`check`](Self::check).
        chunk_shape: Vec<u64>,
    },
    /// `rectilinear`: the lengths of the chunks differ along each axis.
    Rectilinear {
        /// One per dimension.
        axes: Vec<GridAxis>,
    },
}

impl ChunkGrid {
    /// A regular grid.
    pub fn regular(chunk_shape: impl Into<Vec<u64>>) -> Self {
        Self::Regular { chunk_shape: chunk_shape.into() }
    }

    /// The number of dimensions.
    pub fn rank(&self) -> usize {
        match self {
            Self::Regular { chunk_shape } => chunk_shape.len(),
            Self::Rectilinear { axes } => axes.len(),
        }
    }

    /// The shape of every chunk, if they are all of one shape.
    pub fn uniform_chunk_shape(&self) -> Option<Vec<u64>> {
        match self {
            Self::Regular { chunk_shape } => Some(chunk_shape.clone()),
            Self::Rectilinear { axes } => axes.iter().map(GridAxis::uniform).collect(),
        }
    }

    /// The number of chunks along each axis of an array of this shape: those that hold at least one
    /// element. An axis of length 0 has none. Chunks of a rectilinear grid that lie wholly beyond
    /// the array are not counted.
    pub fn grid_shape(&self, array_shape: &[u64]) -> Vec<u64> {
        array_shape
            .iter()
            .enumerate()
            .map(|(axis, &length)| match length.checked_sub(1) {
                None => 0,
                Some(last) => self.locate(axis, last).map_or(0, |(index, _)| index.saturating_add(1)),
            })
            .collect()
    }

    /// Where the chunk with this index starts along `axis`. Saturates at `u64::MAX`; 0 for an axis
    /// that the grid does not have. Past the last chunk of a rectilinear axis: its end.
    pub fn chunk_origin(&self, axis: usize, index: u64) -> u64 {
        match self {
            Self::Regular { chunk_shape } => chunk_shape.get(axis).map_or(0, |&length| length.saturating_mul(index)),
            Self::Rectilinear { axes } => axes.get(axis).map_or(0, |axis| axis.origin(index)),
        }
    }

    /// The length of the chunk with this index along `axis`, not clipped at the end of the array;
    /// 0 for a chunk or an axis that the grid does not have.
    pub fn chunk_len(&self, axis: usize, index: u64) -> u64 {
        match self {
            Self::Regular { chunk_shape } => chunk_shape.get(axis).copied().unwrap_or(0),
            Self::Rectilinear { axes } => axes.get(axis).map_or(0, |axis| axis.length(index)),
        }
    }

    /// The shape of the chunk at these coordinates, not clipped at the end of the array.
    pub fn chunk_shape(&self, coordinates: &[u64]) -> Vec<u64> {
        coordinates.iter().enumerate().map(|(axis, &index)| self.chunk_len(axis, index)).collect()
    }

    /// The chunk that holds an element along `axis`, and the element's place in it. `None` past
    /// the end of a rectilinear axis, for chunks of length 0, and for an axis that the grid does
    /// not have.
    pub fn locate(&self, axis: usize, element: u64) -> Option<(u64, u64)> {
        match self {
            Self::Regular { chunk_shape } => {
                let length = *chunk_shape.get(axis)?;
                Some((element.checked_div(length)?, element.checked_rem(length)?))
            }
            Self::Rectilinear { axes } => axes.get(axis)?.locate(element),
        }
    }

    /// Turns chunk lengths of 0 into 1 along the axes of length 0. Older writers left such behind;
    /// there are no chunks, so any length describes them, and this one lets the array grow.
    pub(crate) fn repair_empty_axes(&mut self, array_shape: &[u64]) {
        if let Self::Regular { chunk_shape } = self {
            for (chunk, &length) in chunk_shape.iter_mut().zip(array_shape) {
                if *chunk == 0 && length == 0 {
                    *chunk = 1;
                }
            }
        }
    }

    /// Checks that the grid can tile an array of this shape.
    ///
    /// # Errors
    /// [`MetadataError::Inconsistent`] if the numbers of dimensions differ, if a chunk length is 0,
    /// or if the chunks of a rectilinear axis end before the array.
    pub fn check(&self, array_shape: &[u64]) -> Result<(), MetadataError> {
        if self.rank() != array_shape.len() {
            return Err(MetadataError::inconsistent(format!(
                "a chunk grid of {} dimensions for an array of {}",
                self.rank(),
                array_shape.len()
            )));
        }
        if let Self::Regular { chunk_shape } = self
            && let Some(axis) = chunk_shape.iter().position(|&length| length == 0)
        {
            return Err(MetadataError::inconsistent(format!("a chunk length of 0 along axis {axis}")));
        }
        for (axis, &length) in array_shape.iter().enumerate() {
            let Some(last) = length.checked_sub(1) else { continue };
            if self.locate(axis, last).is_none() {
                return Err(MetadataError::inconsistent(format!("the chunks do not cover the {length} elements of axis {axis}")));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regular_geometry() {
        let grid = ChunkGrid::regular([3, 5]);
        assert_eq!(grid.grid_shape(&[10, 5]), [4, 1]);
        assert_eq!(grid.chunk_origin(0, 3), 9);
        assert_eq!(grid.chunk_len(0, 3), 3);
        assert_eq!(grid.locate(0, 9), Some((3, 0)));
        assert_eq!(grid.locate(2, 0), None);
        assert_eq!(grid.chunk_origin(0, u64::MAX), u64::MAX);
        assert_eq!(grid.chunk_shape(&[0, 0]), [3, 5]);
        assert_eq!(ChunkGrid::regular([]).grid_shape(&[]), [] as [u64; 0]);
    }

    #[test]
    fn a_chunk_longer_than_the_array_is_one_chunk() {
        assert_eq!(ChunkGrid::regular([u64::MAX]).grid_shape(&[7]), [1]);
        assert_eq!(ChunkGrid::regular([1]).grid_shape(&[u64::MAX]), [u64::MAX]);
    }

    #[test]
    fn chunk_lengths_of_zero() {
        let mut grid = ChunkGrid::regular([0, 4, 0]);
        assert!(grid.check(&[0, 8, 1]).is_err());
        assert_eq!(grid.grid_shape(&[0, 8, 1]), [0, 2, 0]);
        grid.repair_empty_axes(&[0, 8, 1]);
        assert_eq!(grid, ChunkGrid::regular([1, 4, 0]));
    }

    #[test]
    fn the_grid_has_the_dimensions_of_the_array() {
        assert!(ChunkGrid::regular([3]).check(&[3, 3]).is_err());
    }
}

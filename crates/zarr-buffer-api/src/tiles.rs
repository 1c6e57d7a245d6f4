use std::marker::PhantomData;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::copy::{check, copy_unchecked, fill_unchecked};
use crate::{BufferError, BufferErrorKind, CopyAxis, Layout, Offsets};

/// How one axis of an output is cut: every position belongs to at most one tile.
#[derive(Debug, Clone)]
pub enum AxisTiles {
    /// Tile `k` is a range of positions; the ranges ascend and do not overlap.
    Ranges(Vec<Range<usize>>),
    /// Tile `k` is any set of positions; no position is in two.
    Lists(Vec<Vec<usize>>),
}

impl AxisTiles {
    fn count(&self) -> usize {
        match self {
            Self::Ranges(ranges) => ranges.len(),
            Self::Lists(lists) => lists.len(),
        }
    }

    fn check(&self, len: usize) -> Result<(), BufferError> {
        match self {
            Self::Ranges(ranges) => {
                let mut end = 0;
                for range in ranges {
                    if range.start < end || range.end < range.start || range.end > len {
                        return Err(BufferError::parameter(format!("tile {range:?} overlaps another or leaves an axis of {len}")));
                    }
                    end = range.end;
                }
            }
            Self::Lists(lists) => {
                let mut seen = vec![false; len];
                for &position in lists.iter().flatten() {
                    match seen.get_mut(position) {
                        Some(seen) if !*seen => *seen = true,
                        _ => {
                            return Err(BufferError::parameter(format!("position {position} is in two tiles or outside an axis of {len}")));
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

/// Lends disjoint tiles of one host output to many threads.
///
/// The output is cut along each axis; a tile is one piece of every axis, so two tiles never share an element. Each can be claimed once, and again after
/// [`TileWriter::give_back`].
#[derive(Debug)]
pub struct TileWriter<'a> {
    /// Of no other writer.
    id: u64,
    base: *mut u8,
    layout: Layout,
    axes: Vec<AxisTiles>,
    claimed: Vec<AtomicU64>,
    output: PhantomData<&'a mut [u8]>,
}

// SAFETY: the writer stands for an exclusive borrow of plain bytes; what it lends is disjoint (see `claim`).
unsafe impl Send for TileWriter<'_> {}
// SAFETY: `claim` lends each tile to one at a time, guarded by an atomic bit; nothing else touches the bytes.
unsafe impl Sync for TileWriter<'_> {}

impl<'a> TileWriter<'a> {
    /// Cuts `output`, whose elements lie as `layout` says, along each axis.
    ///
    /// # Errors
    /// [`BufferErrorKind::Parameter`] when the layout leaves the output or its elements overlap each other, the number of axes differs, or
    /// tiles overlap.
    pub fn new(output: &'a mut [u8], layout: Layout, axes: Vec<AxisTiles>) -> Result<Self, BufferError> {
        layout.check_within(output.len())?;
        if axes.len() != layout.shape.len() {
            return Err(BufferError::parameter(format!("{} axes cut, of {}", axes.len(), layout.shape.len())));
        }
        for (tiles, &len) in axes.iter().zip(&layout.shape) {
            tiles.check(len)?;
        }
        check_elements_apart(&layout)?;
        let tiles = axes
            .iter()
            .try_fold(1usize, |product, tiles| product.checked_mul(tiles.count()))
            .ok_or_else(|| BufferError::parameter("more tiles than memory has bytes"))?;
        let mut claimed = Vec::new();
        claimed
            .try_reserve_exact(tiles.div_ceil(64))
            .map_err(|error| BufferError::new(BufferErrorKind::OutOfMemory, format!("no room to note {tiles} tiles")).with_source(error))?;
        claimed.resize_with(tiles.div_ceil(64), || AtomicU64::new(0));
        static WRITERS: AtomicU64 = AtomicU64::new(0);
        let id = WRITERS.fetch_add(1, Ordering::Relaxed);
        Ok(Self { id, base: output.as_mut_ptr(), layout, axes, claimed, output: PhantomData })
    }

    /// Tile `index`, one number for each axis. Each tile is lent to one at a time, and to another only if it was given back.
    ///
    /// # Errors
    /// [`BufferErrorKind::Parameter`] when there is no such tile, [`BufferErrorKind::Borrowed`] when it was lent before and not given back.
    pub fn claim(&self, index: &[usize]) -> Result<TileMut<'a>, BufferError> {
        if index.len() != self.axes.len() {
            return Err(BufferError::parameter(format!("tile {index:?} of {} axes", self.axes.len())));
        }
        let mut flat = 0;
        let mut offset = self.layout.offset as isize;
        let mut axes = Vec::with_capacity(index.len());
        for ((&index, tiles), &stride) in index.iter().zip(&self.axes).zip(&self.layout.strides) {
            if index >= tiles.count() {
                return Err(BufferError::parameter(format!("tile {index} of {} along an axis", tiles.count())));
            }
            // Below the number of tiles, which `new` has shown not to overflow.
            flat = flat * tiles.count() + index;
            // Wrapping: in an output without elements nothing bounds the strides, and no offset is ever used.
            match tiles {
                AxisTiles::Ranges(ranges) => {
                    let range = &ranges[index];
                    if !range.is_empty() {
                        offset = offset.wrapping_add(stride.wrapping_mul(range.start as isize));
                    }
                    axes.push(TileAxis { len: range.len(), stride, list: None });
                }
                AxisTiles::Lists(lists) => {
                    let list = &lists[index];
                    let offsets = list.iter().map(|&position| stride.wrapping_mul(position as isize)).collect();
                    axes.push(TileAxis { len: list.len(), stride, list: Some(offsets) });
                }
            }
        }
        let bit = 1u64 << (flat % 64);
        if self.claimed[flat / 64].fetch_or(bit, Ordering::AcqRel) & bit != 0 {
            return Err(BufferError::new(BufferErrorKind::Borrowed, format!("tile {index:?} was lent before")));
        }
        let lent = Some((self.id, flat));
        Ok(TileMut { base: self.base.wrapping_offset(offset), axes, item_size: self.layout.item_size, lent, output: PhantomData })
    }

    /// Takes a tile back, which can be claimed again then: for what may have to be written once more.
    ///
    /// # Errors
    /// [`BufferErrorKind::Parameter`] when it is a tile of another writer.
    pub fn give_back(&self, tile: TileMut<'_>) -> Result<(), BufferError> {
        match tile.lent {
            Some((id, flat)) if id == self.id => {
                // The tile is whole and ends here, so that nobody has its elements any more.
                self.claimed[flat / 64].fetch_and(!(1 << (flat % 64)), Ordering::AcqRel);
                Ok(())
            }
            _ => Err(BufferError::parameter("a tile of another writer, or a part of one, is given back")),
        }
    }
}

/// An output that owns its bytes and lends tiles of them: for work that may outlive the call that started it.
///
/// Share it in an [`std::sync::Arc`]; a tile borrows from it, so that the bytes live as long as anyone writes them.
#[derive(Debug)]
pub struct OwnedTiles {
    writer: TileWriter<'static>,
    bytes: Vec<u8>,
}

impl OwnedTiles {
    /// Cuts `bytes` as [`TileWriter::new`] does.
    ///
    /// # Errors
    /// As [`TileWriter::new`].
    pub fn new(mut bytes: Vec<u8>, layout: Layout, axes: Vec<AxisTiles>) -> Result<Self, BufferError> {
        let TileWriter { id, base, layout, axes, claimed, .. } = TileWriter::new(&mut bytes, layout, axes)?;
        // Moving the vector into the struct leaves its bytes where they are, and `writer` never leaves the struct: `OwnedTiles::writer` shortens
        // its lifetime to the borrow of `self`, and every tile with it.
        Ok(Self { writer: TileWriter { id, base, layout, axes, claimed, output: PhantomData }, bytes })
    }

    /// The writer, for as long as this is borrowed.
    pub fn writer<'a>(&'a self) -> &'a TileWriter<'a> {
        &self.writer
    }

    /// The bytes. That this takes `self` proves that no tile is left.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// Elements that follow each other along one axis must not reach into each other, whatever the caller's strides.
fn check_elements_apart(layout: &Layout) -> Result<(), BufferError> {
    if layout.is_empty() {
        return Ok(());
    }
    let mut axes: Vec<(usize, usize)> =
        layout.shape.iter().zip(&layout.strides).filter(|(len, _)| **len > 1).map(|(&len, &stride)| (stride.unsigned_abs(), len)).collect();
    axes.sort_unstable();
    let mut extent = layout.item_size;
    for (stride, len) in axes {
        if stride < extent {
            return Err(BufferError::parameter(format!("strides {:?} make elements of shape {:?} overlap", layout.strides, layout.shape)));
        }
        extent += stride * (len - 1);
    }
    Ok(())
}

#[derive(Debug)]
struct TileAxis {
    len: usize,
    stride: isize,
    list: Option<Vec<isize>>,
}

impl TileAxis {
    fn offsets(&self) -> Offsets<'_> {
        self.list.as_deref().map_or(Offsets::Stride(self.stride), Offsets::List)
    }
}

/// Exclusive access to one tile of an output.
#[derive(Debug)]
pub struct TileMut<'a> {
    base: *mut u8,
    axes: Vec<TileAxis>,
    item_size: usize,
    /// By which writer, and as which tile of it; `None`: a part of a tile.
    lent: Option<(u64, usize)>,
    output: PhantomData<&'a mut [u8]>,
}

// SAFETY: the tile owns its elements exclusively (each tile is lent to one at a time, tiles are disjoint); bytes may move between threads.
unsafe impl Send for TileMut<'_> {}

impl TileMut<'_> {
    /// Elements along each axis.
    pub fn shape(&self) -> Vec<usize> {
        self.axes.iter().map(|axis| axis.len).collect()
    }

    /// Some of the positions along the first axis, as a tile of their own for the time being.
    ///
    /// # Errors
    /// [`crate::BufferErrorKind::Parameter`] when there are not so many positions, or no axes.
    pub fn rows(&mut self, rows: Range<usize>) -> Result<TileMut<'_>, BufferError> {
        let outside = |len: usize| BufferError::parameter(format!("rows {rows:?} of a tile of {len}"));
        let (first, rest) = self.axes.split_first().ok_or_else(|| outside(0))?;
        if rows.start > rows.end || rows.end > first.len {
            return Err(outside(first.len));
        }
        let (offset, list) = match &first.list {
            Some(list) => (0, Some(list.get(rows.clone()).ok_or_else(|| outside(list.len()))?.to_vec())),
            // The tile lies inside the output, and so does each of its rows.
            None => (first.stride * rows.start as isize, None),
        };
        let mut axes = vec![TileAxis { len: rows.len(), stride: first.stride, list }];
        axes.extend(rest.iter().map(|axis| TileAxis { len: axis.len, stride: axis.stride, list: axis.list.clone() }));
        Ok(TileMut { base: self.base.wrapping_offset(offset), axes, item_size: self.item_size, lent: None, output: PhantomData })
    }

    /// The tile's bytes, if they lie in C order without gaps: then a decoder can write them in place.
    pub fn as_contiguous(&mut self) -> Option<&mut [u8]> {
        if self.axes.iter().any(|axis| axis.len == 0) {
            return Some(&mut []);
        }
        let mut expected = self.item_size;
        for axis in self.axes.iter().rev() {
            if axis.list.is_some() || (axis.len != 1 && usize::try_from(axis.stride) != Ok(expected)) {
                return None;
            }
            expected *= axis.len;
        }
        // SAFETY: the tile's elements lie side by side from `base` (checked above) inside the output that `'a` borrows, and are ours alone.
        Some(unsafe { std::slice::from_raw_parts_mut(self.base, expected) })
    }

    /// Copies elements into the tile: element `(i0, i1, ..)` comes from byte `offset + steps[0].at(i0) + ..` of `source`.
    ///
    /// # Errors
    /// [`BufferErrorKind::Parameter`] when the number of axes differs or an element lies outside `source`.
    pub fn copy_from(&mut self, source: &[u8], offset: usize, steps: &[Offsets<'_>]) -> Result<(), BufferError> {
        if steps.len() != self.axes.len() {
            return Err(BufferError::parameter(format!("{} axes into {}", steps.len(), self.axes.len())));
        }
        if self.axes.iter().any(|axis| axis.len == 0) {
            return Ok(());
        }
        check(offset, self.axes.iter().zip(steps).map(|(axis, step)| (axis.len, *step)), self.item_size, 0..source.len(), "source")?;
        let axes: Vec<CopyAxis<'_>> =
            self.axes.iter().zip(steps).map(|(axis, &source)| CopyAxis { len: axis.len, destination: axis.offsets(), source }).collect();
        // SAFETY: the source was checked just now; the tile's elements lie inside the output (its layout and tiles were checked when the
        // writer was made), are ours alone, and `source` is a shared borrow, so it cannot be the same bytes.
        unsafe { copy_unchecked(self.base, source.as_ptr().wrapping_add(offset), &axes, self.item_size) };
        Ok(())
    }

    /// Writes the bytes of one element to every element of the tile.
    ///
    /// # Errors
    /// [`BufferErrorKind::Parameter`] when `element` is not one element long.
    pub fn fill(&mut self, element: &[u8]) -> Result<(), BufferError> {
        if element.len() != self.item_size {
            return Err(BufferError::parameter(format!("an element of {} bytes into elements of {}", element.len(), self.item_size)));
        }
        if self.axes.iter().any(|axis| axis.len == 0) {
            return Ok(());
        }
        let axes: Vec<CopyAxis<'_>> =
            self.axes.iter().map(|axis| CopyAxis { len: axis.len, destination: axis.offsets(), source: Offsets::Stride(0) }).collect();
        // SAFETY: the tile's elements lie inside the output and are ours alone.
        unsafe { fill_unchecked(self.base, &axes, element) };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(tile: Range<usize>) -> AxisTiles {
        AxisTiles::Ranges(vec![tile])
    }

    #[test]
    fn tiles_of_a_matrix_from_two_threads() {
        let mut output = vec![0u8; 12];
        let layout = Layout::contiguous(&[3, 4], 1).unwrap();
        let axes = vec![AxisTiles::Ranges(vec![0..2, 2..3]), AxisTiles::Lists(vec![vec![3, 0], vec![1, 2]])];
        let writer = TileWriter::new(&mut output, layout, axes).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| writer.claim(&[0, 0]).unwrap().copy_from(&[1, 2, 3, 4], 0, &[Offsets::Stride(2), Offsets::Stride(1)]).unwrap());
            scope.spawn(|| writer.claim(&[1, 1]).unwrap().fill(&[9]).unwrap());
        });
        assert_eq!(writer.claim(&[0, 0]).unwrap_err().kind, BufferErrorKind::Borrowed);
        assert!(writer.claim(&[2, 0]).is_err());
        assert_eq!(output, [2, 0, 0, 1, 4, 0, 0, 3, 0, 9, 9, 0]);
    }

    #[test]
    fn a_tile_that_was_given_back_is_lent_again() {
        let (mut output, mut other) = (vec![0u8; 130], vec![0u8; 130]);
        let layout = Layout::contiguous(&[130], 1).unwrap();
        let tiles = || vec![AxisTiles::Ranges((0..130).map(|at| at..at + 1).collect())];
        let writer = TileWriter::new(&mut output, layout.clone(), tiles()).unwrap();
        let another = TileWriter::new(&mut other, layout, tiles()).unwrap();
        let mut tile = writer.claim(&[129]).unwrap();
        let beside = writer.claim(&[128]).unwrap();
        tile.fill(&[1]).unwrap();
        assert!(another.claim(&[129]).is_ok() && another.give_back(writer.claim(&[1]).unwrap()).is_err());
        assert!(writer.give_back(tile.rows(0..1).unwrap()).is_err());
        assert_eq!(writer.claim(&[129]).unwrap_err().kind, BufferErrorKind::Borrowed);
        writer.give_back(tile).unwrap();
        let mut again = writer.claim(&[129]).unwrap();
        assert_eq!(writer.claim(&[129]).unwrap_err().kind, BufferErrorKind::Borrowed);
        assert_eq!(writer.claim(&[128]).unwrap_err().kind, BufferErrorKind::Borrowed);
        assert_eq!(writer.claim(&[1]).unwrap_err().kind, BufferErrorKind::Borrowed);
        assert_eq!(again.as_contiguous().unwrap(), [1]);
        again.fill(&[2]).unwrap();
        drop((again, beside, writer));
        assert_eq!(output[129], 2);
    }

    #[test]
    fn rows_of_a_tile() {
        let mut output = vec![0u8; 12];
        let layout = Layout::contiguous(&[3, 4], 1).unwrap();
        let axes = vec![AxisTiles::Lists(vec![vec![2, 0, 1]]), AxisTiles::Ranges(std::iter::once(1..3).collect())];
        let writer = TileWriter::new(&mut output, layout.clone(), axes).unwrap();
        let mut tile = writer.claim(&[0, 0]).unwrap();
        tile.rows(0..1).unwrap().fill(&[1]).unwrap();
        tile.rows(1..3).unwrap().copy_from(&[2, 3, 4, 5], 0, &[Offsets::Stride(2), Offsets::Stride(1)]).unwrap();
        assert!(tile.rows(2..4).is_err());
        drop(writer);
        assert_eq!(output, [0, 2, 3, 0, 0, 4, 5, 0, 0, 1, 1, 0]);

        let mut output = vec![0u8; 12];
        let axes = vec![AxisTiles::Ranges(std::iter::once(1..3).collect()), AxisTiles::Ranges(std::iter::once(0..4).collect())];
        let writer = TileWriter::new(&mut output, layout, axes).unwrap();
        let mut tile = writer.claim(&[0, 0]).unwrap();
        tile.rows(1..2).unwrap().as_contiguous().unwrap().fill(7);
        drop(writer);
        assert_eq!(output, [0, 0, 0, 0, 0, 0, 0, 0, 7, 7, 7, 7]);
    }

    #[test]
    fn overlapping_tiles_and_layouts_are_refused() {
        let mut output = vec![0u8; 16];
        let layout = Layout::contiguous(&[4], 4).unwrap();
        assert!(TileWriter::new(&mut output, layout.clone(), vec![AxisTiles::Ranges(vec![0..2, 1..3])]).is_err());
        assert!(TileWriter::new(&mut output, layout.clone(), vec![AxisTiles::Lists(vec![vec![0], vec![0]])]).is_err());
        assert!(TileWriter::new(&mut output, layout, vec![one(2..5)]).is_err());
        let overlapping = Layout { offset: 0, shape: vec![2, 2], strides: vec![4, 4], item_size: 4 };
        let all = || AxisTiles::Ranges(vec![0..1, 1..2]);
        assert!(TileWriter::new(&mut output, overlapping, vec![all(), all()]).is_err());
    }

    #[test]
    fn a_full_row_tile_is_contiguous() {
        let mut output = vec![0u8; 12];
        let layout = Layout::contiguous(&[3, 4], 1).unwrap();
        let writer = TileWriter::new(&mut output, layout, vec![AxisTiles::Ranges(vec![0..1, 1..3]), one(0..4)]).unwrap();
        writer.claim(&[1, 0]).unwrap().as_contiguous().unwrap().fill(7);
        drop(writer);
        assert_eq!(output, [0, 0, 0, 0, 7, 7, 7, 7, 7, 7, 7, 7]);
    }

    #[test]
    fn odd_tiles_and_layouts_do_no_harm() {
        let mut output = vec![0u8; 8];
        // Nothing bounds the strides of a layout without elements.
        let empty = Layout { offset: 8, shape: vec![0, 5], strides: vec![isize::MAX, isize::MIN], item_size: 1 };
        let axes = vec![one(0..0), AxisTiles::Lists(vec![vec![4, 2], vec![0]])];
        let writer = TileWriter::new(&mut output, empty, axes).unwrap();
        let mut tile = writer.claim(&[0, 0]).unwrap();
        tile.fill(&[1]).unwrap();
        tile.copy_from(&[], 0, &[Offsets::Stride(1), Offsets::Stride(1)]).unwrap();
        assert_eq!(tile.as_contiguous(), Some(&mut [][..]));
        assert!(writer.claim(&[usize::MAX, usize::MAX]).is_err());
        assert!(writer.claim(&[0]).is_err());

        // Lists may leave positions out, run backwards and be empty; negative strides run backwards, too.
        let backwards = Layout { offset: 6, shape: vec![4], strides: vec![-2], item_size: 2 };
        let writer = TileWriter::new(&mut output, backwards, vec![AxisTiles::Lists(vec![vec![3, 0], vec![], vec![2]])]).unwrap();
        writer.claim(&[0]).unwrap().copy_from(&[1, 2, 3, 4], 0, &[Offsets::Stride(2)]).unwrap();
        writer.claim(&[1]).unwrap().fill(&[9, 9]).unwrap();
        let mut tile = writer.claim(&[2]).unwrap();
        assert!(tile.copy_from(&[7], 0, &[Offsets::Stride(0)]).is_err());
        assert!(tile.copy_from(&[7, 8], 1, &[Offsets::List(&[-1])]).is_ok());
        assert_eq!(output, [1, 2, 7, 8, 0, 0, 3, 4]);
    }

    #[test]
    fn a_single_element_is_one_tile() {
        let mut output = vec![0u8; 4];
        let layout = Layout { offset: 1, shape: vec![], strides: vec![], item_size: 2 };
        let writer = TileWriter::new(&mut output, layout, vec![]).unwrap();
        writer.claim(&[]).unwrap().as_contiguous().unwrap().copy_from_slice(&[5, 6]);
        assert!(writer.claim(&[]).is_err());
        assert_eq!(output, [0, 5, 6, 0]);
    }

    #[test]
    fn more_tiles_than_memory_can_note_are_refused() {
        let mut output = vec![0u8; 1];
        let layout = Layout { offset: 0, shape: vec![1; 5], strides: vec![1; 5], item_size: 1 };
        // Empty tiles cost nothing in the output, and 2^60 bits all the same.
        let axes = vec![AxisTiles::Ranges(vec![0..0; 1 << 12]); 5];
        assert_eq!(TileWriter::new(&mut output, layout, axes).unwrap_err().kind, BufferErrorKind::OutOfMemory);
    }
}

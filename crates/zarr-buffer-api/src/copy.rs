use std::ops::Range;

use crate::BufferError;

/// One axis of a copy: how far each of its `len` steps goes, in the destination and in the source.
#[derive(Debug, Clone, Copy)]
pub struct CopyAxis<'a> {
    /// Elements along the axis.
    pub len: usize,
    /// Where they go.
    pub destination: Offsets<'a>,
    /// Where they come from.
    pub source: Offsets<'a>,
}

/// Byte offsets of the elements along one axis.
#[derive(Debug, Clone, Copy)]
pub enum Offsets<'a> {
    /// Equal steps, from 0.
    Stride(isize),
    /// One offset for each element, from the same origin.
    List(&'a [isize]),
}

impl Offsets<'_> {
    fn at(&self, index: usize) -> isize {
        match self {
            Self::Stride(stride) => stride.wrapping_mul(index as isize),
            Self::List(list) => list.get(index).copied().unwrap_or(0),
        }
    }

    fn stride(&self) -> Option<isize> {
        match self {
            Self::Stride(stride) => Some(*stride),
            Self::List(_) => None,
        }
    }

    /// The lowest and the highest offset of `len` elements.
    fn reach(&self, len: usize) -> Option<(isize, isize)> {
        match self {
            Self::Stride(stride) => {
                let last = stride.checked_mul(isize::try_from(len.checked_sub(1)?).ok()?)?;
                Some((last.min(0), last.max(0)))
            }
            Self::List(list) if list.len() == len => Some((*list.iter().min()?, *list.iter().max()?)),
            Self::List(_) => None,
        }
    }
}

/// Copies an N-dimensional box of elements of `item_size` bytes. Element `(0, 0, ..)` goes from `source_offset` to `destination_offset`, in
/// bytes; `axes` say the steps, slowest first. Equal inner steps run as one `memcpy`, transposes go in tiles.
///
/// # Errors
/// [`crate::BufferErrorKind::Parameter`] when an element would lie outside of either slice, or a list has not one offset per element.
pub fn copy_axes(
    destination: &mut [u8],
    destination_offset: usize,
    source: &[u8],
    source_offset: usize,
    axes: &[CopyAxis<'_>],
    item_size: usize,
) -> Result<(), BufferError> {
    if axes.iter().any(|axis| axis.len == 0) || item_size == 0 {
        return Ok(());
    }
    check(destination_offset, axes.iter().map(|axis| (axis.len, axis.destination)), item_size, 0..destination.len(), "destination")?;
    check(source_offset, axes.iter().map(|axis| (axis.len, axis.source)), item_size, 0..source.len(), "source")?;
    let to = destination.as_mut_ptr().wrapping_add(destination_offset);
    let from = source.as_ptr().wrapping_add(source_offset);
    // SAFETY: `check` proved that every element of the box lies inside each slice, and the slices cannot overlap.
    unsafe { copy_unchecked(to, from, axes, item_size) };
    Ok(())
}

/// Writes the bytes of one element to every element of an N-dimensional box; the `source` of each axis is not looked at.
///
/// # Errors
/// [`crate::BufferErrorKind::Parameter`] when an element would lie outside of the slice.
pub fn fill_axes(destination: &mut [u8], offset: usize, axes: &[CopyAxis<'_>], element: &[u8]) -> Result<(), BufferError> {
    if axes.iter().any(|axis| axis.len == 0) || element.is_empty() {
        return Ok(());
    }
    check(offset, axes.iter().map(|axis| (axis.len, axis.destination)), element.len(), 0..destination.len(), "destination")?;
    let to = destination.as_mut_ptr().wrapping_add(offset);
    // SAFETY: `check` proved that every element of the box lies inside the slice.
    unsafe { fill_unchecked(to, axes, element) };
    Ok(())
}

/// Proves that a box stays within `bounds`.
pub(crate) fn check<'a>(
    offset: usize,
    axes: impl Iterator<Item = (usize, Offsets<'a>)>,
    item_size: usize,
    bounds: Range<usize>,
    what: &str,
) -> Result<(), BufferError> {
    let outside = || BufferError::parameter(format!("a box reaches outside the {what} of {} bytes", bounds.len()));
    let mut low = isize::try_from(offset).map_err(|_| outside())?;
    let mut high = low;
    for (len, offsets) in axes {
        let (down, up) = offsets.reach(len).ok_or_else(outside)?;
        low = low.checked_add(down).ok_or_else(outside)?;
        high = high.checked_add(up).ok_or_else(outside)?;
    }
    let start = usize::try_from(low).map_err(|_| outside())?;
    let end = usize::try_from(high).ok().and_then(|high| high.checked_add(item_size)).ok_or_else(outside)?;
    if start < bounds.start || end > bounds.end {
        return Err(outside());
    }
    Ok(())
}

/// Merges axes that step evenly into each other, and drops axes of one element whose only offset is 0.
fn merge<'a>(axes: &[CopyAxis<'a>], with_source: bool) -> Vec<CopyAxis<'a>> {
    let mut merged: Vec<CopyAxis<'a>> = Vec::with_capacity(axes.len());
    for axis in axes {
        if axis.len == 1 && axis.destination.at(0) == 0 && (!with_source || axis.source.at(0) == 0) {
            continue;
        }
        let even = |outer: Offsets<'_>, inner: Offsets<'_>| match (outer.stride(), inner.stride()) {
            (Some(outer), Some(inner)) => outer == inner.wrapping_mul(axis.len as isize),
            _ => false,
        };
        if let Some(last) = merged.last_mut()
            && even(last.destination, axis.destination)
            && (!with_source || even(last.source, axis.source))
        {
            *last = CopyAxis { len: last.len.saturating_mul(axis.len), ..*axis };
        } else {
            merged.push(*axis);
        }
    }
    merged
}

/// # Safety
/// Every element of the box, `item_size` bytes each, is valid for writes from `to` and for reads from `from`, and the two do not overlap.
pub(crate) unsafe fn copy_unchecked(to: *mut u8, from: *const u8, axes: &[CopyAxis<'_>], item_size: usize) {
    let axes = merge(axes, true);
    // SAFETY: merging keeps the set of element offsets.
    unsafe { copy_merged(to, from, None, &axes, item_size) };
}

/// `next`: where the box begins that is copied behind this one, as `[destination, source]`.
///
/// # Safety
/// As [`copy_unchecked`].
unsafe fn copy_merged(to: *mut u8, from: *const u8, next: Option<[*const u8; 2]>, axes: &[CopyAxis<'_>], item_size: usize) {
    let Some((first, rest)) = axes.split_first() else {
        // SAFETY: one element, valid by the caller's promise.
        unsafe { std::ptr::copy_nonoverlapping(from, to, item_size) };
        return;
    };
    if rest.is_empty() {
        // SAFETY: the caller's promise, for the one axis that is left.
        unsafe { copy_row(to, from, first, item_size) };
        return;
    }
    if let [outer, inner] = axes
        && let (Some(outer_to), Some(outer_from)) = (outer.destination.stride(), outer.source.stride())
        && let (Some(inner_to), Some(inner_from)) = (inner.destination.stride(), inner.source.stride())
        && outer_from.unsigned_abs() < inner_from.unsigned_abs()
    {
        let strides = [[outer_to, inner_to], [outer_from, inner_from]];
        // SAFETY: the same elements, visited in another order.
        unsafe { copy_tiles(to, from, [outer.len, inner.len], strides, item_size) };
        return;
    }
    if let [rows, row] = axes
        && let (Some(rows_to), Some(rows_from)) = (rows.destination.stride(), rows.source.stride())
        && let (Some(step), Some(true)) = (row.destination.stride(), row.source.stride().map(|step| Some(step) == row.destination.stride()))
        && usize::try_from(step) == Ok(item_size)
    {
        let rows = Rows { count: rows.len, len: item_size * row.len, strides: [rows_to, rows_from], next };
        if (WORD..=SHORT).contains(&rows.len) {
            // SAFETY: the same elements: rows of bytes side by side, on both sides.
            unsafe { copy_short_rows(to, from, &rows) };
        } else {
            // SAFETY: as above.
            unsafe { copy_rows(to, from, &rows) };
        }
        return;
    }
    for index in 0..first.len {
        let at = |index: usize| (to.wrapping_offset(first.destination.at(index)), from.wrapping_offset(first.source.at(index)));
        let next = if index + 1 < first.len { Some(at(index + 1)).map(|(to, from)| [to.cast_const(), from]) } else { next };
        let (to, from) = at(index);
        // SAFETY: a sub-box of the caller's box.
        unsafe { copy_merged(to, from, next, rest, item_size) };
    }
}

/// Bytes that are moved at once in a short row.
const WORD: usize = 16;
/// The longest row for which a call of `memcpy` costs more than it saves.
const SHORT: usize = 64;

/// Rows of the same length.
struct Rows {
    count: usize,
    /// In bytes.
    len: usize,
    /// `[destination, source]`.
    strides: [isize; 2],
    /// Where the rows begin that are copied behind these, likewise.
    next: Option<[*const u8; 2]>,
}

impl Rows {
    /// Asks the processor for the row that is copied some rows behind this one, wherever there are gaps between rows: these it does not foresee by itself, so that a thread waits for
    /// memory at each row.
    #[inline]
    fn foresee(&self, starts: [*const u8; 2], index: usize) {
        /// Bytes that are copied until a row is that is asked for, unless there are fewer. Longer rows are foreseen.
        const AHEAD: usize = 4 << 10;
        let ahead = (AHEAD / self.len.max(1)).min(self.count);
        let (starts, index) = match self.next {
            _ if ahead == 0 => return,
            _ if index + ahead < self.count => (starts, index + ahead),
            Some(next) => (next, index + ahead - self.count),
            None => return,
        };
        for (start, stride) in starts.into_iter().zip(self.strides) {
            if stride.unsigned_abs() != self.len {
                prefetch(start.wrapping_offset(stride.wrapping_mul(index as isize)), self.len);
            }
        }
    }
}

/// Tells the processor that `len` bytes, of which there need be none, will be wanted.
#[inline]
fn prefetch(start: *const u8, len: usize) {
    #[cfg(target_arch = "x86_64")]
    for at in (0..len).step_by(64) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a hint, which reads nothing, whatever the address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(start.wrapping_add(at).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (start, len);
}

/// # Safety
/// As [`copy_unchecked`], for these rows.
unsafe fn copy_rows(to: *mut u8, from: *const u8, rows: &Rows) {
    for index in 0..rows.count {
        rows.foresee([to, from], index);
        let to = to.wrapping_offset(rows.strides[0].wrapping_mul(index as isize));
        let from = from.wrapping_offset(rows.strides[1].wrapping_mul(index as isize));
        // SAFETY: a row of the caller's box.
        unsafe { std::ptr::copy_nonoverlapping(from, to, rows.len) };
    }
}

/// Rows too short to be worth a call each.
///
/// # Safety
/// As [`copy_unchecked`], for these rows, which have `WORD` bytes or more.
unsafe fn copy_short_rows(to: *mut u8, from: *const u8, rows: &Rows) {
    for index in 0..rows.count {
        rows.foresee([to, from], index);
        let to = to.wrapping_offset(rows.strides[0].wrapping_mul(index as isize));
        let from = from.wrapping_offset(rows.strides[1].wrapping_mul(index as isize));
        let mut at = 0;
        while at + WORD <= rows.len {
            // SAFETY: inside the row.
            unsafe { copy_word(to.wrapping_add(at), from.wrapping_add(at)) };
            at += WORD;
        }
        if at < rows.len {
            // SAFETY: the last word of the row, which overlaps the one before.
            unsafe { copy_word(to.wrapping_add(rows.len - WORD), from.wrapping_add(rows.len - WORD)) };
        }
    }
}

/// # Safety
/// `WORD` bytes are valid for writes at `to` and for reads at `from`.
#[inline]
unsafe fn copy_word(to: *mut u8, from: *const u8) {
    // SAFETY: the caller's promise; bytes have no alignment.
    let word = unsafe { from.cast::<[u8; WORD]>().read() };
    // SAFETY: as above.
    unsafe { to.cast::<[u8; WORD]>().write(word) };
}

/// A transpose in tiles, so that both sides stay in cache lines.
///
/// # Safety
/// As [`copy_unchecked`]; strides are `[destination, source]`, each `[outer, inner]`.
unsafe fn copy_tiles(to: *mut u8, from: *const u8, lens: [usize; 2], strides: [[isize; 2]; 2], item_size: usize) {
    const TILE: usize = 16;
    for outer in (0..lens[0]).step_by(TILE) {
        for inner in (0..lens[1]).step_by(TILE) {
            let axis = CopyAxis {
                len: TILE.min(lens[1] - inner),
                destination: Offsets::Stride(strides[0][1]),
                source: Offsets::Stride(strides[1][1]),
            };
            for row in outer..lens[0].min(outer + TILE) {
                let offset =
                    |strides: [isize; 2]| strides[0].wrapping_mul(row as isize).wrapping_add(strides[1].wrapping_mul(inner as isize));
                let to = to.wrapping_offset(offset(strides[0]));
                let from = from.wrapping_offset(offset(strides[1]));
                // SAFETY: a piece of a row of the caller's box.
                unsafe { copy_row(to, from, &axis, item_size) };
            }
        }
    }
}

/// # Safety
/// As [`copy_unchecked`], for one axis.
unsafe fn copy_row(to: *mut u8, from: *const u8, axis: &CopyAxis<'_>, item_size: usize) {
    let step = isize::try_from(item_size).unwrap_or(isize::MAX);
    if axis.destination.stride() == Some(step) && axis.source.stride() == Some(step) {
        // SAFETY: the elements lie side by side on both sides; all are valid by the caller's promise.
        unsafe { std::ptr::copy_nonoverlapping(from, to, item_size * axis.len) };
        return;
    }
    macro_rules! elements {
        ($type:ty, $to:expr, $from:expr) => {
            for index in 0..axis.len {
                let from = from.wrapping_offset($from(index)).cast::<$type>();
                let to = to.wrapping_offset($to(index)).cast::<$type>();
                // SAFETY: a valid element of this width by the caller's promise; no alignment is assumed.
                let element = unsafe { from.read_unaligned() };
                // SAFETY: as above.
                unsafe { to.write_unaligned(element) };
            }
        };
        // Even steps, which compilers unroll, apart from the rest.
        ($type:ty) => {
            match (axis.destination, axis.source) {
                (Offsets::Stride(to_step), Offsets::Stride(from_step)) => {
                    elements!($type, |index: usize| to_step.wrapping_mul(index as isize), |index: usize| from_step
                        .wrapping_mul(index as isize))
                }
                _ => elements!($type, |index| axis.destination.at(index), |index| axis.source.at(index)),
            }
        };
    }
    match item_size {
        1 => elements!(u8),
        2 => elements!(u16),
        4 => elements!(u32),
        8 => elements!(u64),
        16 => elements!(u128),
        _ => {
            for index in 0..axis.len {
                let from = from.wrapping_offset(axis.source.at(index));
                let to = to.wrapping_offset(axis.destination.at(index));
                // SAFETY: one element, valid by the caller's promise.
                unsafe { std::ptr::copy_nonoverlapping(from, to, item_size) };
            }
        }
    }
}

/// # Safety
/// Every element of the box, `element.len()` bytes each, is valid for writes from `to`.
pub(crate) unsafe fn fill_unchecked(to: *mut u8, axes: &[CopyAxis<'_>], element: &[u8]) {
    let axes = merge(axes, false);
    // SAFETY: merging keeps the set of element offsets.
    unsafe { fill_merged(to, &axes, element) };
}

/// # Safety
/// As [`fill_unchecked`].
unsafe fn fill_merged(to: *mut u8, axes: &[CopyAxis<'_>], element: &[u8]) {
    let Some((first, rest)) = axes.split_first() else {
        // SAFETY: one element, valid by the caller's promise.
        unsafe { std::ptr::copy_nonoverlapping(element.as_ptr(), to, element.len()) };
        return;
    };
    let uniform = element.iter().all(|&byte| Some(&byte) == element.first());
    if rest.is_empty() && uniform && first.destination.stride() == isize::try_from(element.len()).ok() {
        let byte = element.first().copied().unwrap_or(0);
        // SAFETY: the elements lie side by side; all are valid by the caller's promise.
        unsafe { std::ptr::write_bytes(to, byte, element.len() * first.len) };
        return;
    }
    for index in 0..first.len {
        let to = to.wrapping_offset(first.destination.at(index));
        // SAFETY: a sub-box of the caller's box.
        unsafe { fill_merged(to, rest, element) };
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The naive oracle: every index, one element at a time.
    fn naive(to: &mut [u8], to_offset: usize, from: &[u8], from_offset: usize, axes: &[CopyAxis<'_>], item: usize) {
        let total: usize = axes.iter().map(|axis| axis.len).product();
        for flat in 0..total {
            let (mut rest, mut t, mut f) = (flat, to_offset as isize, from_offset as isize);
            for axis in axes.iter().rev() {
                let index = rest % axis.len;
                rest /= axis.len;
                t += axis.destination.at(index);
                f += axis.source.at(index);
            }
            let (t, f) = (t as usize, f as usize);
            to[t..t + item].copy_from_slice(&from[f..f + item]);
        }
    }

    proptest! {
        #[test]
        fn agrees_with_the_naive_copy(
            lens in prop::collection::vec(1usize..20, 0..4),
            item in prop::sample::select(vec![1usize, 2, 3, 4, 8, 16]),
            permute in any::<prop::sample::Index>(),
            reverse in any::<u8>(),
            gaps in prop::collection::vec(0usize..3, 4),
        ) {
            let total: usize = lens.iter().product::<usize>() * item;
            let source: Vec<u8> = (0..total).map(|i| (i * 7 + i / 256) as u8).collect();
            // Source: C order over a rotation of the axes, some of them reversed. Destination: C order with gaps.
            let turn = if lens.is_empty() { 0 } else { permute.index(lens.len()) };
            let mut order: Vec<usize> = (0..lens.len()).collect();
            order.rotate_left(turn);
            let (mut from, mut from_offset, mut step) = (vec![0isize; lens.len()], 0isize, item as isize);
            for &axis in order.iter().rev() {
                from[axis] = step;
                step *= lens[axis] as isize;
            }
            for axis in 0..lens.len() {
                if reverse >> axis & 1 == 1 {
                    from_offset += from[axis] * (lens[axis] as isize - 1);
                    from[axis] = -from[axis];
                }
            }
            let (mut to, mut step) = (vec![0isize; lens.len()], item as isize);
            for axis in (0..lens.len()).rev() {
                to[axis] = step;
                step *= (lens[axis] + gaps[axis]) as isize;
            }
            let lists: Vec<Vec<isize>> = lens.iter().zip(&from).map(|(&len, &stride)| (0..len as isize).map(|i| i * stride).collect()).collect();
            let axes: Vec<CopyAxis<'_>> = (0..lens.len()).map(|axis| CopyAxis {
                len: lens[axis],
                destination: Offsets::Stride(to[axis]),
                source: if gaps[axis] == 1 { Offsets::List(&lists[axis]) } else { Offsets::Stride(from[axis]) },
            }).collect();
            let (mut ours, mut theirs) = (vec![0xAA; step as usize + 8], vec![0xAA; step as usize + 8]);
            copy_axes(&mut ours, 3, &source, from_offset as usize, &axes, item).unwrap();
            naive(&mut theirs, 3, &source, from_offset as usize, &axes, item);
            prop_assert_eq!(ours, theirs);
        }
    }

    #[test]
    fn a_box_outside_is_refused() {
        let axes = [CopyAxis { len: 3, destination: Offsets::Stride(4), source: Offsets::Stride(4) }];
        assert!(copy_axes(&mut [0; 11], 0, &[0; 12], 0, &axes, 4).is_err());
        assert!(copy_axes(&mut [0; 12], 0, &[0; 11], 0, &axes, 4).is_err());
        assert!(copy_axes(&mut [0; 12], 1, &[0; 12], 0, &axes, 4).is_err());
        let short = [CopyAxis { len: 3, destination: Offsets::Stride(4), source: Offsets::List(&[0, 4]) }];
        assert!(copy_axes(&mut [0; 12], 0, &[0; 12], 0, &short, 4).is_err());
    }

    #[test]
    fn fills_uniform_and_patterned() {
        let axes = [
            CopyAxis { len: 2, destination: Offsets::Stride(6), source: Offsets::Stride(0) },
            CopyAxis { len: 2, destination: Offsets::Stride(2), source: Offsets::Stride(0) },
        ];
        let mut bytes = [9; 12];
        fill_axes(&mut bytes, 0, &axes, &[0, 0]).unwrap();
        assert_eq!(bytes, [0, 0, 0, 0, 9, 9, 0, 0, 0, 0, 9, 9]);
        fill_axes(&mut bytes, 2, &axes, &[1, 2]).unwrap();
        assert_eq!(bytes, [0, 0, 1, 2, 1, 2, 0, 0, 1, 2, 1, 2]);
    }
}

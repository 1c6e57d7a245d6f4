use crate::BufferError;

/// Where the elements of an N-dimensional box lie in a run of bytes.
///
/// Element `(i0, i1, ..)` starts at `offset + i0 * strides[0] + i1 * strides[1] + ..`, everything in bytes. Strides may be
/// negative or zero. A rank of 0 is one element.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// Byte offset of element `(0, 0, ..)`.
    pub offset: usize,
    /// Elements along each axis, slowest first.
    pub shape: Vec<usize>,
    /// Bytes from one element to the next along each axis.
    pub strides: Vec<isize>,
    /// Bytes of one element.
    pub item_size: usize,
}

impl Layout {
    /// C order without gaps, from offset 0.
    ///
    /// # Errors
    /// [`crate::BufferErrorKind::Parameter`] when the size in bytes overflows. An empty box has none, however long its other axes are: strides that overflow are then
    /// the largest there is.
    pub fn contiguous(shape: &[usize], item_size: usize) -> Result<Self, BufferError> {
        let is_empty = shape.contains(&0);
        let mut strides = vec![0isize; shape.len()];
        let mut next = isize::try_from(item_size).map_err(|_| too_large(shape, item_size))?;
        for (stride, &len) in strides.iter_mut().zip(shape).rev() {
            *stride = next;
            let more = isize::try_from(len.max(1)).ok().and_then(|len| next.checked_mul(len));
            next = more.or(is_empty.then_some(isize::MAX)).ok_or_else(|| too_large(shape, item_size))?;
        }
        Ok(Self { offset: 0, shape: shape.to_vec(), strides, item_size })
    }

    /// Number of elements; `usize::MAX` for more than that, which only a box that repeats elements can have.
    pub fn len(&self) -> usize {
        self.shape.iter().fold(1, |product: usize, &len| product.saturating_mul(len))
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.shape.contains(&0)
    }

    /// Whether the elements lie in C order without gaps.
    pub fn is_contiguous(&self) -> bool {
        if self.is_empty() {
            return true;
        }
        let mut expected = self.item_size;
        for (&len, &stride) in self.shape.iter().zip(&self.strides).rev() {
            if len != 1 && usize::try_from(stride) != Ok(expected) {
                return false;
            }
            expected = expected.saturating_mul(len);
        }
        true
    }

    /// The bytes touched: from the first to one past the last. Empty for an empty box.
    ///
    /// # Errors
    /// [`crate::BufferErrorKind::Parameter`] when a position is negative or overflows.
    pub fn span(&self) -> Result<std::ops::Range<usize>, BufferError> {
        if self.shape.len() != self.strides.len() {
            return Err(BufferError::parameter(format!("{} axes with {} strides", self.shape.len(), self.strides.len())));
        }
        if self.is_empty() {
            return Ok(self.offset..self.offset);
        }
        let fail = || too_large(&self.shape, self.item_size);
        let mut low = isize::try_from(self.offset).map_err(|_| fail())?;
        let mut high = low;
        for (&len, &stride) in self.shape.iter().zip(&self.strides) {
            let steps = isize::try_from(len - 1).map_err(|_| fail())?;
            let reach = stride.checked_mul(steps).ok_or_else(fail)?;
            let end = if reach < 0 { &mut low } else { &mut high };
            *end = end.checked_add(reach).ok_or_else(fail)?;
        }
        let start = usize::try_from(low).map_err(|_| BufferError::parameter("a negative stride reaches before the first byte"))?;
        let end = usize::try_from(high).ok().and_then(|end| end.checked_add(self.item_size)).ok_or_else(fail)?;
        Ok(start..end)
    }

    /// Checks that every element lies within `len` bytes.
    ///
    /// # Errors
    /// [`crate::BufferErrorKind::Parameter`] when one does not.
    pub fn check_within(&self, len: usize) -> Result<(), BufferError> {
        let span = self.span()?;
        if span.end > len {
            return Err(BufferError::parameter(format!("elements reach byte {} of a buffer of {len}", span.end)));
        }
        Ok(())
    }
}

fn too_large(shape: &[usize], item_size: usize) -> BufferError {
    BufferError::parameter(format!("shape {shape:?} of {item_size}-byte elements does not fit the address space"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contiguous_strides_and_span() {
        let layout = Layout::contiguous(&[2, 3], 4).unwrap();
        assert_eq!(layout.strides, [12, 4]);
        assert_eq!(layout.span().unwrap(), 0..24);
        assert!(layout.is_contiguous());
    }

    #[test]
    fn negative_strides_stay_inside() {
        let layout = Layout { offset: 8, shape: vec![3], strides: vec![-4], item_size: 4 };
        assert_eq!(layout.span().unwrap(), 0..12);
        let outside = Layout { offset: 4, ..layout };
        assert!(outside.span().is_err());
    }

    #[test]
    fn overflow_is_an_error() {
        assert!(Layout::contiguous(&[usize::MAX, 2], 8).is_err());
    }
}

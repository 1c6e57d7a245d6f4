//! Writing data that lie in any order, with gaps, or once for many places.

use bytes::Bytes;
use zarr_buffer_api::Layout;

use crate::plan::Plan;
use crate::write::{Data, OwnedData};
use crate::{Array, ArrayError, Selection};

impl Array {
    /// As [`Array::write`], of elements that lie in `data` as `layout` says, over the shape of the selection. With strides of 0 one element is written to many
    /// places, and takes no more memory than itself.
    ///
    /// # Errors
    /// [`ArrayError::Parameter`] and [`ArrayError::Buffer`] when the layout has another shape or item size than the selection, or reaches beyond `data`; otherwise
    /// as [`Array::write`].
    pub fn write_strided(&self, selection: &Selection, data: &[u8], layout: &Layout) -> Result<(), ArrayError> {
        let plan = self.strided_plan(selection, data.len(), layout)?;
        self.write_plan(plan, Data::Fixed(data), || OwnedData::Fixed(Bytes::copy_from_slice(data)))
    }

    /// As [`Array::write_strided`], of data that the call owns. Dropping the future ends the write: chunks that nobody has begun stay as they are.
    ///
    /// # Errors
    /// As [`Array::write_strided`].
    pub async fn write_strided_async(&self, selection: &Selection, data: impl Into<Bytes>, layout: &Layout) -> Result<(), ArrayError> {
        let data = data.into();
        self.write_owned(self.strided_plan(selection, data.len(), layout)?, OwnedData::Fixed(data)).await
    }

    /// The plan of a write of elements that lie in `len` bytes as `layout` says.
    fn strided_plan(&self, selection: &Selection, len: usize, layout: &Layout) -> Result<Plan, ArrayError> {
        self.check_fixed()?;
        let resolved = selection.resolve(self.shape(), self.chunk_grid())?;
        let plan = self.resolved_plan(&resolved)?;
        let (shape, contiguous) = (resolved.shape(), plan.output_layout()?);
        let of_data: Vec<u64> = layout.shape.iter().map(|&len| len as u64).collect();
        if of_data != shape || layout.item_size != contiguous.item_size {
            return Err(ArrayError::parameter(format!(
                "the selection has shape {shape:?} and elements of {} bytes, and the data {of_data:?} and {}",
                contiguous.item_size, layout.item_size
            )));
        }
        layout.check_within(len)?;
        let mut of_data = layout.strides.iter().copied();
        let kept = plan.cut.kept_axes().into_iter();
        let strides = kept.map(|kept| if kept { of_data.next().unwrap_or(0) } else { 0 }).collect();
        let data_layout = Layout { shape: contiguous.shape, strides, ..*layout };
        Ok(Plan { data_layout: Some(data_layout), ..plan })
    }
}

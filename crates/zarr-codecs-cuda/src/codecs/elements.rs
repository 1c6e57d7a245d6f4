//! Packed elements to boxes and back, with what codecs do to them on the way: one launch for a batch.

use bytemuck::{Pod, Zeroable};
use zarr_buffer_api::{Buffer, BufferError, Layout, enqueue};
use zarr_codec_api::{CodecError, DeviceContext};

use crate::constants::*;
use crate::engine::{Engine, Kernel, Launch};
use crate::table::{Placed, Table};

/// `ElementsSlot` of `move.cuh`: a box, cut into units, and the packed bytes that belong to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Slot {
    packed: u64,
    boxed: u64,
    count: u32,
    axes: u32,
    status: u32,
    unused: u32,
    shape: [u32; ELEMENTS_AXES as usize],
    strides: [i64; ELEMENTS_AXES as usize],
}
const _: () = assert!(size_of::<Slot>() == ELEMENTS_SLOT_SIZE as usize);

/// `Elements` of `move.cuh`.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Params {
    slots: u64,
    ops: u64,
    pairs: u64,
    statuses: u64,
    others: u64,
    default_nan: u64,
    slot_parts: u16,
    op_count: u16,
    packed_unit: u8,
    box_unit: u8,
    swapped: u8,
    unused: u8,
    planes: u32,
    slot_count: u32,
}
const _: () = assert!(size_of::<Params>() == ELEMENTS_PARAMS_SIZE as usize);

/// The axes of a box: each element is cut into units of `unit` bytes, and axes that continue each other are one.
/// `None` where more are left than the kernels have, or numbers are too large for them.
pub(crate) fn axes(layout: &Layout, unit: u32) -> Option<Slot> {
    let mut slot = Slot::zeroed();
    if layout.is_empty() {
        return Some(slot);
    }
    slot.count = u32::try_from(layout.len().checked_mul(layout.item_size / unit as usize)?).ok()?;
    // From the fastest axis to the slowest.
    let mut axes: Vec<(usize, isize)> = Vec::with_capacity(ELEMENTS_AXES as usize);
    let mut push = |len: usize, stride: isize| -> Option<()> {
        match axes.last_mut() {
            _ if len == 1 => {}
            Some((inner, inner_stride)) if inner_stride.checked_mul(isize::try_from(*inner).ok()?) == Some(stride) => *inner *= len,
            _ => axes.push((len, stride)),
        }
        Some(())
    };
    push(layout.item_size / unit as usize, unit as isize)?;
    for (&len, &stride) in layout.shape.iter().zip(&layout.strides).rev() {
        push(len, stride)?;
    }
    slot.axes = u32::try_from(axes.len()).ok().filter(|&axes| axes <= ELEMENTS_AXES)?;
    for (&(len, stride), (to_len, to_stride)) in axes.iter().rev().zip(slot.shape.iter_mut().zip(&mut slot.strides)) {
        *to_len = u32::try_from(len).ok()?;
        *to_stride = stride as i64;
    }
    Some(slot)
}

/// A box with its axes in the order of packed elements: axis `i` of these is axis `order[i]` of the box.
pub(crate) fn in_order(layout: &Layout, order: &[usize]) -> Layout {
    Layout {
        shape: order.iter().filter_map(|&axis| layout.shape.get(axis).copied()).collect(),
        strides: order.iter().filter_map(|&axis| layout.strides.get(axis).copied()).collect(),
        ..*layout
    }
}

impl Slot {
    /// Whether the box is one run of units of this size.
    pub(crate) fn is_run(&self, unit: u32) -> bool {
        self.axes == 0 || (self.axes == 1 && self.strides.first() == Some(&i64::from(unit)))
    }

    /// Units of the box.
    pub(crate) fn count(&self) -> usize {
        self.count as usize
    }
}

/// The chunks of one pass.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    slots: Vec<Slot>,
    packed: Vec<Buffer>,
    boxes: Vec<Buffer>,
    largest: u32,
}

/// What a pass does to all of its chunks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pass {
    /// Bytes of a unit on either side.
    pub(crate) packed_unit: u32,
    pub(crate) box_unit: u32,
    /// Whether the bytes of packed units are reversed.
    pub(crate) swapped: bool,
    /// Bytes of a shuffled element; 0 or 1 where nothing is.
    pub(crate) planes: u32,
    /// Operations and pairs in the table.
    pub(crate) ops: Placed,
    pub(crate) pairs: Placed,
    /// Statuses in the table, 4 bytes for each slot of the batch.
    pub(crate) statuses: Placed,
    /// Slots in the table, as [`Batch::slots`] gave them.
    pub(crate) slots: Placed,
}

impl Batch {
    /// Adds a chunk. `boxed` is the buffer that the box of `axes` was cut from, `offset` its first byte there; `status` is the number of the slot that it belongs to.
    ///
    /// # Errors
    /// When the packed bytes are not as many as the box has.
    pub(crate) fn push(
        &mut self,
        packed: Option<&Buffer>,
        packed_unit: u32,
        boxed: &Buffer,
        offset: usize,
        axes: Slot,
        status: usize,
    ) -> Result<(), CodecError> {
        if let Some(packed) = packed
            && packed.len() != axes.count() * packed_unit as usize
        {
            let expected = axes.count() * packed_unit as usize;
            return Err(CodecError::parameter("elements", format!("{} packed bytes where {expected} are expected", packed.len())));
        }
        if axes.count == 0 {
            return Ok(());
        }
        let status = u32::try_from(status).map_err(|_| CodecError::parameter("elements", "more slots than kernels count"))?;
        self.slots.push(Slot { packed: packed.map_or(0, Buffer::address), boxed: boxed.address() + offset as u64, status, ..axes });
        self.packed.extend(packed.cloned());
        self.boxes.push(boxed.clone());
        self.largest = self.largest.max(axes.count);
        Ok(())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// What goes into the table.
    pub(crate) fn slots(&self) -> &[Slot] {
        &self.slots
    }

    /// Enqueues a pass over all chunks, from packed bytes to boxes.
    pub(crate) fn decode(&self, engine: &dyn Engine, table: &Table, pass: &Pass, context: &DeviceContext<'_>) -> Result<(), CodecError> {
        let kernel = if pass.ops.count == 0 { Kernel::ElementsDecode } else { Kernel::ElementsDecodeValues };
        self.launch(engine, kernel, table, pass, None, &self.packed, &self.boxes, context)
    }

    /// Enqueues a pass over all chunks, from boxes to packed bytes.
    pub(crate) fn encode(&self, engine: &dyn Engine, table: &Table, pass: &Pass, context: &DeviceContext<'_>) -> Result<(), CodecError> {
        let kernel = if pass.ops.count == 0 { Kernel::ElementsEncode } else { Kernel::ElementsEncodeValues };
        self.launch(engine, kernel, table, pass, None, &self.boxes, &self.packed, context)
    }

    /// Enqueues zeros for the boxes of slots with which something is wrong. `others` are second statuses, 4 bytes for each slot, 0 where good.
    pub(crate) fn clear(
        &self,
        engine: &dyn Engine,
        table: &Table,
        pass: &Pass,
        others: Option<&Buffer>,
        context: &DeviceContext<'_>,
    ) -> Result<(), CodecError> {
        self.launch(engine, Kernel::ElementsClear, table, pass, others, &[], &self.boxes, context)
    }

    #[expect(clippy::too_many_arguments, reason = "what a launch is")]
    fn launch(
        &self,
        engine: &dyn Engine,
        kernel: Kernel,
        table: &Table,
        pass: &Pass,
        others: Option<&Buffer>,
        reads: &[Buffer],
        writes: &[Buffer],
        context: &DeviceContext<'_>,
    ) -> Result<(), CodecError> {
        if self.slots.is_empty() {
            return Ok(());
        }
        let last = self.slots.iter().map(|slot| slot.status).max().unwrap_or(0) as usize;
        let statuses = others.map_or(pass.statuses.count, |others| pass.statuses.count.min(others.len() / 4));
        if pass.slots.count != self.slots.len() || last >= statuses {
            return Err(CodecError::parameter("elements", "a table that is not the batch's"));
        }
        // About 16 units for a thread.
        let parts = (self.largest / (ELEMENTS_THREADS * 16)).clamp(1, 1024);
        let params = Params {
            slots: table.address(pass.slots),
            ops: table.address(pass.ops),
            pairs: table.address(pass.pairs),
            statuses: table.address(pass.statuses),
            others: others.map_or(0, Buffer::address),
            default_nan: default_nan(),
            slot_parts: parts as u16,
            op_count: pass.ops.count as u16,
            packed_unit: pass.packed_unit as u8,
            box_unit: pass.box_unit as u8,
            swapped: u8::from(pass.swapped),
            unused: 0,
            planes: pass.planes.max(1),
            slot_count: self.slots.len() as u32,
        };
        let grid = params.slot_count.saturating_mul(parts);
        let reads: Vec<&Buffer> = reads.iter().chain(others).collect();
        let writes: Vec<&Buffer> = writes.iter().chain([table.buffer()]).collect();
        enqueue(context.queue, &reads, &writes, || {
            let launch = Launch { grid, threads: ELEMENTS_THREADS, shared: 0 };
            // SAFETY: boxes lie in their buffers, which was checked when they were cut, packed bytes are as many as their units, and the table holds
            // what the parameters say; all of it is held by this call.
            unsafe { engine.launch(context.queue, kernel, launch, bytemuck::bytes_of(&params)) }
        })
        .map_err(|error: BufferError| error.into())
    }
}

/// What this machine's processor gives for an operation that has no result.
fn default_nan() -> u64 {
    let infinity = std::hint::black_box(f64::INFINITY);
    (infinity - std::hint::black_box(infinity)).to_bits()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_that_continue_each_other_are_one() {
        let layout =
            |shape: &[usize], strides: &[isize]| Layout { offset: 0, shape: shape.to_vec(), strides: strides.to_vec(), item_size: 8 };
        let known = |layout, order: Option<&[usize]>, unit| {
            let layout = order.map_or(Layout::clone(&layout), |order| in_order(&layout, order));
            let slot = axes(&layout, unit).unwrap();
            let axes = slot.axes as usize;
            (slot.count, slot.shape[..axes].to_vec(), slot.strides[..axes].to_vec(), slot.is_run(unit))
        };
        assert_eq!(known(layout(&[2, 3, 5], &[120, 40, 8]), None, 8), (30, vec![30], vec![8], true));
        assert_eq!(known(layout(&[2, 3, 5], &[120, 40, 8]), None, 4), (60, vec![60], vec![4], true));
        assert_eq!(known(layout(&[2, 3], &[8, 16]), Some(&[1, 0]), 8), (6, vec![6], vec![8], true));
        assert_eq!(known(layout(&[2, 3], &[24, 8]), Some(&[1, 0]), 4), (12, vec![3, 2, 2], vec![8, 24, 4], false));
        assert_eq!(known(layout(&[4], &[-8]), None, 8), (4, vec![4], vec![-8], false));
        assert_eq!(known(layout(&[], &[]), None, 8), (1, vec![], vec![], true));
        assert_eq!(known(layout(&[3, 0], &[8, 8]), None, 8).0, 0);
        assert!(axes(&layout(&[2; 9], &[52488, 17496, 5832, 1944, 648, 216, 72, 24, 8]), 8).is_none());
    }
}

//! Decoded chunks to their boxes of the output: one launch for a batch.

use bytemuck::{Pod, Zeroable};
use zarr_buffer_api::{Buffer, Layout, Region, enqueue};
use zarr_codec_api::{CodecError, DeviceContext};

use crate::constants::*;
use crate::engine::{Engine, Kernel, Launch};

/// `ScatterSlot` of `scatter.cuh`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
struct Slot {
    from: u64,
    to: u64,
    run: u32,
    runs: u32,
    axes: u32,
    unused: u32,
    shape: [u32; SCATTER_AXES as usize],
    strides: [i64; SCATTER_AXES as usize],
}
const _: () = assert!(size_of::<Slot>() == SCATTER_SLOT_SIZE as usize);

/// `Scatter` of `scatter.cuh`.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Params {
    slots: u64,
    slot_count: u32,
    parts: u32,
}
const _: () = assert!(size_of::<Params>() == SCATTER_PARAMS_SIZE as usize);

/// The runs of a box: axes that continue each other become one, and those without gaps become part of the run. `None` where more axes are left than
/// the kernel has, or numbers are too large for it.
fn runs(layout: &Layout) -> Option<Slot> {
    if layout.is_empty() {
        return Some(Slot::zeroed());
    }
    let mut run = layout.item_size;
    // From the fastest axis to the slowest.
    let mut axes: Vec<(usize, isize)> = Vec::new();
    for (&len, &stride) in layout.shape.iter().zip(&layout.strides).rev() {
        if len == 1 {
            continue;
        }
        match axes.last_mut() {
            None if usize::try_from(stride) == Ok(run) => run = run.checked_mul(len)?,
            Some((inner_len, inner_stride)) if inner_stride.checked_mul(isize::try_from(*inner_len).ok()?) == Some(stride) => {
                *inner_len *= len
            }
            _ => axes.push((len, stride)),
        }
    }
    let mut slot = Slot { axes: u32::try_from(axes.len()).ok().filter(|&axes| axes <= SCATTER_AXES)?, ..Slot::zeroed() };
    slot.run = u32::try_from(run).ok()?;
    slot.runs = u32::try_from(layout.len().checked_mul(layout.item_size)?.checked_div(run)?).ok()?;
    for (&(len, stride), (to_len, to_stride)) in axes.iter().rev().zip(slot.shape.iter_mut().zip(&mut slot.strides)) {
        *to_len = u32::try_from(len).ok()?;
        *to_stride = stride as i64;
    }
    Some(slot)
}

/// Bytes of device memory that a batch takes.
pub(crate) fn scratch_len(slots: usize) -> u64 {
    slots as u64 * u64::from(SCATTER_SLOT_SIZE)
}

/// Enqueues the copies of contiguous elements to boxes of the same shape. The boxes do not overlap.
pub(crate) fn scatter(engine: &dyn Engine, boxes: &[(Buffer, &Region)], context: &DeviceContext<'_>) -> Result<(), CodecError> {
    let (mut slots, mut by_kernel, mut largest) = (Vec::new(), Vec::new(), 0);
    for (source, target) in boxes {
        let len = target.layout.len() * target.layout.item_size;
        if source.len() != len {
            return Err(CodecError::parameter("elements", format!("{} bytes for a box of {len}", source.len())));
        }
        let Some(slot) = runs(&target.layout) else {
            let contiguous = Layout::contiguous(&target.layout.shape, target.layout.item_size)?;
            context.queue.copy_region(&Region::new(source.clone(), contiguous)?, target)?;
            continue;
        };
        if slot.runs == 0 {
            continue;
        }
        let to = target.buffer.address() + target.layout.offset as u64;
        slots.push(Slot { from: source.address(), to, ..slot });
        by_kernel.push((source, &target.buffer));
        largest = largest.max(source.len());
    }
    if slots.is_empty() {
        return Ok(());
    }
    let bytes: &[u8] = bytemuck::cast_slice(&slots);
    let upload = context.device.allocate_staging(bytes.len())?;
    upload.host_write()?.copy_from_slice(bytes);
    let on_device = context.device.allocate(bytes.len(), context.queue)?;
    context.queue.copy(&upload, &on_device)?;

    // About 32 KiB for a block of threads.
    let parts = (largest >> 15).clamp(1, 256) as u32;
    let count = slots.len() as u32;
    let params = Params { slots: on_device.address(), slot_count: count, parts };
    let reads: Vec<&Buffer> = by_kernel.iter().map(|(source, _)| *source).chain([&on_device]).collect();
    let writes: Vec<&Buffer> = by_kernel.iter().map(|(_, target)| *target).collect();
    enqueue(context.queue, &reads, &writes, || {
        let launch = Launch { grid: count.saturating_mul(parts), threads: SCATTER_THREADS, shared: 0 };
        // SAFETY: sources are as long as their boxes, boxes were checked to lie in their buffers, and both are held by this call.
        unsafe { engine.launch(context.queue, Kernel::ElementsScatter, launch, bytemuck::bytes_of(&params)) }
    })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_without_gaps_become_runs() {
        let layout =
            |shape: &[usize], strides: &[isize]| Layout { offset: 0, shape: shape.to_vec(), strides: strides.to_vec(), item_size: 4 };
        let known = |layout| {
            let slot = runs(&layout).unwrap();
            let axes = slot.axes as usize;
            (slot.run, slot.runs, slot.shape[..axes].to_vec(), slot.strides[..axes].to_vec())
        };
        assert_eq!(known(layout(&[2, 3, 5], &[60, 20, 4])), (120, 1, vec![], vec![]));
        assert_eq!(known(layout(&[2, 3, 5], &[600, 40, 4])), (20, 6, vec![2, 3], vec![600, 40]));
        assert_eq!(known(layout(&[2, 3, 5], &[120, 40, 8])), (4, 30, vec![30], vec![8]));
        assert_eq!(known(layout(&[2, 3], &[-12, 4])), (12, 2, vec![2], vec![-12]));
        assert_eq!(known(layout(&[], &[])), (4, 1, vec![], vec![]));
        assert_eq!(known(layout(&[7, 0], &[4, 4])).1, 0);
    }
}

use std::sync::Arc;

use zarr_buffer_api::{Buffer, Device, Layout, Queue, Region};
use zarr_codec_api::{CodecError, DeviceContext, DeviceSegment, DeviceSlot};

use crate::suite::{Broken, ensure};

/// A verdict for each slot of a batch.
type Statuses = Vec<Result<(), CodecError>>;

/// Bytes of destinations before anything is written.
pub(crate) const CANARY: u8 = 0x5C;

/// Encoded bytes in the middle of others.
#[derive(Clone, Copy, Default)]
pub(crate) struct Padded<'a> {
    pub(crate) before: &'a [u8],
    pub(crate) bytes: &'a [u8],
    pub(crate) behind: &'a [u8],
}

impl<'a> From<&'a [u8]> for Padded<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self { bytes, ..Self::default() }
    }
}

/// A segment on a device, and how to bring bytes there and back.
pub(crate) struct Runner {
    pub(crate) device: Arc<dyn Device>,
    pub(crate) segment: Arc<dyn DeviceSegment>,
    /// Of a decoded chunk.
    pub(crate) shape: Vec<usize>,
    pub(crate) item_size: usize,
}

impl Runner {
    /// Bytes of a decoded chunk.
    pub(crate) fn len(&self) -> usize {
        self.shape.iter().product::<usize>() * self.item_size
    }

    pub(crate) fn context<'a>(&'a self, queue: &'a dyn Queue, slots: usize) -> DeviceContext<'a> {
        DeviceContext { device: &*self.device, queue, scratch_budget: self.segment.scratch_len(slots) }
    }

    pub(crate) fn upload(&self, queue: &dyn Queue, bytes: &[u8]) -> Result<Buffer, Broken> {
        let staging = self.device.allocate_staging(bytes.len())?;
        staging.host_write()?.copy_from_slice(bytes);
        if self.device.is_unified() {
            return Ok(staging);
        }
        let buffer = self.device.allocate(bytes.len(), queue)?;
        queue.copy(&staging, &buffer)?;
        Ok(buffer)
    }

    pub(crate) fn download(&self, queue: &dyn Queue, buffer: &Buffer) -> Result<Vec<u8>, Broken> {
        let back = self.device.allocate_staging(buffer.len())?;
        queue.copy(buffer, &back)?;
        back.wait()?;
        let bytes = back.host_read()?.to_vec();
        Ok(bytes)
    }

    /// A decoded chunk in C order without gaps, from a byte on.
    pub(crate) fn contiguous(&self, offset: usize) -> Result<Layout, Broken> {
        Ok(Layout { offset, ..Layout::contiguous(&self.shape, self.item_size)? })
    }

    /// The axes turned around, with a gap behind each, the first one backwards; and how many bytes such a box lies in.
    pub(crate) fn strided(&self) -> (Layout, usize) {
        let mut strides = vec![0isize; self.shape.len()];
        let (mut step, mut offset) = (self.item_size as isize, 3);
        for (axis, (stride, &len)) in strides.iter_mut().zip(&self.shape).enumerate() {
            *stride = step;
            if axis == 0 && len > 0 {
                offset += step * (len as isize - 1);
                *stride = -step;
            }
            step *= len as isize + 1;
        }
        (Layout { offset: offset as usize, shape: self.shape.clone(), strides, item_size: self.item_size }, step as usize + 16)
    }

    /// Decodes `chunks` one behind the other, canaries before, between and behind them. Gives statuses and all bytes.
    pub(crate) fn decode(&self, queue: &dyn Queue, chunks: &[Padded<'_>], gap: usize) -> Result<(Vec<bool>, Vec<u8>), Broken> {
        self.decode_in(&self.context(queue, chunks.len()), chunks, gap)
    }

    /// The same in a context of its own.
    pub(crate) fn decode_in(&self, context: &DeviceContext<'_>, chunks: &[Padded<'_>], gap: usize) -> Result<(Vec<bool>, Vec<u8>), Broken> {
        let (statuses, bytes) = self.statuses_in(context, chunks, gap)?;
        Ok((statuses.iter().map(Result::is_ok).collect(), bytes))
    }

    /// What the device says of one chunk, and what it decodes it to.
    pub(crate) fn answer(&self, encoded: &[u8]) -> Result<Result<Vec<u8>, CodecError>, Broken> {
        let queue = self.device.create_queue()?;
        let (statuses, bytes) = self.statuses_in(&self.context(&*queue, 1), &[encoded.into()], 0)?;
        Ok(statuses.into_iter().next().unwrap_or(Ok(())).map(|()| bytes))
    }

    fn statuses_in(&self, context: &DeviceContext<'_>, chunks: &[Padded<'_>], gap: usize) -> Result<(Statuses, Vec<u8>), Broken> {
        let (queue, pitch) = (context.queue, self.len() + gap);
        let output = self.upload(queue, &vec![CANARY; chunks.len() * pitch + gap])?;
        let mut slots = Vec::new();
        for (index, chunk) in chunks.iter().enumerate() {
            let start = chunk.before.len();
            let encoded =
                self.upload(queue, &[chunk.before, chunk.bytes, chunk.behind].concat())?.slice(start..start + chunk.bytes.len())?;
            slots.push(DeviceSlot { encoded, decoded: Region::new(output.clone(), self.contiguous(index * pitch + gap)?)? });
        }
        let ticket = self.segment.decode(&slots, context)?;
        drop(slots);
        let statuses = ticket.wait()?;
        ensure!(statuses.len() == chunks.len(), "{} statuses for {} slots", statuses.len(), chunks.len());
        Ok((statuses, self.download(queue, &output)?))
    }
}

/// Lays elements of C order out as `layout` says, among `room` bytes.
pub(crate) fn laid_out(layout: &Layout, elements: &[u8], room: usize) -> Vec<u8> {
    let mut bytes = vec![CANARY; room];
    let mut places = vec![layout.offset as isize];
    for (&len, &stride) in layout.shape.iter().zip(&layout.strides) {
        places = places.iter().flat_map(|&place| (0..len as isize).map(move |index| place + index * stride)).collect();
    }
    for (place, element) in places.into_iter().zip(elements.chunks_exact(layout.item_size)) {
        bytes[place as usize..place as usize + layout.item_size].copy_from_slice(element);
    }
    bytes
}

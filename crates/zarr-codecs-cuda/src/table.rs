//! The small things that kernels of one batch look up, uploaded by one copy.

use bytemuck::Pod;
use zarr_buffer_api::Buffer;
use zarr_codec_api::{CodecError, DeviceContext};

/// Where records start in a table.
const ALIGN: usize = 16;

/// Records in a table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Placed {
    at: usize,
    /// How many.
    pub(crate) count: usize,
    size: usize,
}

/// A table in the making.
#[derive(Debug, Default)]
pub(crate) struct Records(Vec<u8>);

impl Records {
    /// Appends records.
    pub(crate) fn push<T: Pod>(&mut self, records: &[T]) -> Placed {
        let at = self.0.len().next_multiple_of(ALIGN);
        self.0.resize(at, 0);
        self.0.extend_from_slice(bytemuck::cast_slice(records));
        Placed { at, count: records.len(), size: size_of::<T>() }
    }

    /// Bytes so far.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Enqueues the upload.
    pub(crate) fn upload(&self, context: &DeviceContext<'_>) -> Result<Table, CodecError> {
        let upload = context.device.allocate_staging(self.0.len())?;
        upload.host_write()?.copy_from_slice(&self.0);
        let buffer = context.device.allocate(self.0.len(), context.queue)?;
        context.queue.copy(&upload, &buffer)?;
        Ok(Table(buffer))
    }
}

/// A table on the device.
#[derive(Debug)]
pub(crate) struct Table(Buffer);

impl Table {
    pub(crate) fn buffer(&self) -> &Buffer {
        &self.0
    }

    /// The address of the first of some records; 0 where there are none.
    pub(crate) fn address(&self, placed: Placed) -> u64 {
        if placed.count == 0 { 0 } else { self.0.address() + placed.at as u64 }
    }

    /// The bytes of some records.
    pub(crate) fn slice(&self, placed: Placed) -> Result<Buffer, CodecError> {
        Ok(self.0.slice(placed.at..placed.at + placed.count * placed.size)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_aligned() {
        let mut records = Records::default();
        records.push(&[1u32]);
        let placed = records.push(&[1u64, 2]);
        assert_eq!((placed.at, placed.count, placed.size), (16, 2, 8));
        assert_eq!(records.len(), 32);
    }
}

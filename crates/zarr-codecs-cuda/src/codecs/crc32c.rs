//! `crc32c`, `numcodecs.crc32c`: the data, and their CRC-32C behind or before them. Decoding checks, always.

use bytemuck::{Pod, Zeroable};
use zarr_buffer_api::{Buffer, BufferError, enqueue};
use zarr_codec_api::{CodecError, DeviceContext, Stage};

use crate::constants::*;
use crate::engine::{Engine, Kernel, Launch};
use crate::recipe::Step;
use crate::table::{Placed, Records, Table};

/// Bytes of a checksum.
pub(crate) const LEN: usize = 4;

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct NoConfig {}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    location: Option<Location>,
}

#[derive(Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
enum Location {
    Start,
    End,
}

pub(crate) fn step(stage: &Stage) -> Option<Step> {
    if stage.codec.name == "crc32c" {
        let NoConfig {} = stage.codec.config().ok()?;
        return Some(Step::Checksum { at_start: false });
    }
    let config: Config = stage.codec.config().ok()?;
    Some(Step::Checksum { at_start: config.location == Some(Location::Start) })
}

/// `Crc32cSlot` of `crc32c.cuh`.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Slot {
    data: u64,
    checksum: u64,
    len: u32,
    status: u32,
    unused: [u32; 2],
}
const _: () = assert!(size_of::<Slot>() == CRC32C_SLOT_SIZE as usize);

/// `Crc32c` of `crc32c.cuh`.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Params {
    slots: u64,
    sums: u64,
    statuses: u64,
    slot_count: u32,
    parts: u32,
    write: u32,
    step: u32,
    unused: u64,
}
const _: () = assert!(size_of::<Params>() == CRC32C_PARAMS_SIZE as usize);

/// The checksums of one step.
#[derive(Debug)]
pub(crate) struct Batch {
    step: u32,
    slots: Vec<Slot>,
    buffers: Vec<Buffer>,
    largest: u32,
    placed: Option<(Placed, Placed)>,
}

/// Bytes of a table that each slot takes for each step.
pub(crate) const RECORD_LEN: u64 = CRC32C_SLOT_SIZE as u64 + 4;

impl Batch {
    /// For the step of this number in its segment.
    pub(crate) fn new(step: u32) -> Self {
        Self { step, slots: Vec::new(), buffers: Vec::new(), largest: 0, placed: None }
    }

    /// Adds data and their checksum, which `encoded` holds, for the slot of number `status`. Gives the data.
    ///
    /// # Errors
    /// When there are too few bytes, or more than kernels count.
    pub(crate) fn push(&mut self, encoded: &Buffer, at_start: bool, status: usize) -> Result<Buffer, CodecError> {
        let too_few = || CodecError::parameter("crc32c", "too few bytes to hold a checksum");
        let data_len = encoded.len().checked_sub(LEN).ok_or_else(too_few)?;
        let (data, checksum) = if at_start { (LEN..encoded.len(), 0..LEN) } else { (0..data_len, data_len..encoded.len()) };
        let (data, checksum) = (encoded.slice(data)?, encoded.slice(checksum)?);
        let count = |number: usize| u32::try_from(number).map_err(|_| CodecError::limit("crc32c", 1 << 31));
        let len = count(data_len)?;
        self.slots.push(Slot { data: data.address(), checksum: checksum.address(), len, status: count(status)?, unused: [0; 2] });
        self.buffers.push(encoded.clone());
        self.largest = self.largest.max(len);
        Ok(data)
    }

    /// Puts what the kernels look up into the table.
    pub(crate) fn place(&mut self, records: &mut Records) {
        let slots = records.push(&self.slots);
        let sums = records.push(&vec![0u32; self.slots.len()]);
        self.placed = Some((slots, sums));
    }

    /// Enqueues the comparison of the checksums: a slot with another one fails.
    pub(crate) fn check(
        &self,
        engine: &dyn Engine,
        table: &Table,
        statuses: Placed,
        context: &DeviceContext<'_>,
    ) -> Result<(), CodecError> {
        self.launch(engine, table, statuses, false, context)
    }

    /// Enqueues the making of the checksums.
    pub(crate) fn write(
        &self,
        engine: &dyn Engine,
        table: &Table,
        statuses: Placed,
        context: &DeviceContext<'_>,
    ) -> Result<(), CodecError> {
        self.launch(engine, table, statuses, true, context)
    }

    fn launch(
        &self,
        engine: &dyn Engine,
        table: &Table,
        statuses: Placed,
        write: bool,
        context: &DeviceContext<'_>,
    ) -> Result<(), CodecError> {
        if self.slots.is_empty() {
            return Ok(());
        }
        let last = self.slots.iter().map(|slot| slot.status).max().unwrap_or(0) as usize;
        let Some((slots, sums)) = self.placed.filter(|(slots, _)| slots.count == self.slots.len() && last < statuses.count) else {
            return Err(CodecError::parameter("crc32c", "a table that is not the batch's"));
        };
        let slot_count = self.slots.len() as u32;
        let parts = self.largest.div_ceil(CRC32C_PART).max(1);
        let params = Params {
            slots: table.address(slots),
            sums: table.address(sums),
            statuses: table.address(statuses),
            slot_count,
            parts,
            write: u32::from(write),
            step: self.step,
            unused: 0,
        };
        let warps = CRC32C_THREADS / 32;
        let wanted = slot_count.saturating_mul(parts).div_ceil(warps);
        let sum = Launch { grid: wanted.min(engine.multiprocessors() * 8), threads: CRC32C_THREADS, shared: 4096 };
        let finish = Launch { grid: slot_count.div_ceil(warps), threads: CRC32C_THREADS, shared: 0 };
        let buffers: Vec<&Buffer> = self.buffers.iter().collect();
        let written = if write { buffers.as_slice() } else { &[] };
        let writes: Vec<&Buffer> = written.iter().copied().chain([table.buffer()]).collect();
        enqueue(context.queue, &buffers, &writes, || {
            // SAFETY: data and checksums are slices of buffers, the table holds slots, a sum for each and statuses for all; this call holds them.
            unsafe { engine.launch(context.queue, Kernel::Crc32cSum, sum, bytemuck::bytes_of(&params)) }?;
            // SAFETY: as above.
            unsafe { engine.launch(context.queue, Kernel::Crc32cFinish, finish, bytemuck::bytes_of(&params)) }
        })
        .map_err(|error: BufferError| error.into())
    }
}

//! Chunks that one block of threads decodes each, span by span: `kernels/spans` says how.

use bytemuck::{Pod, Zeroable};
use zarr_buffer_api::{Buffer, enqueue};
use zarr_codec_api::{CodecError, CodecErrorKind, DeviceContext};

use crate::codecs::zstd::Chunk;
use crate::constants::*;
use crate::engine::{Engine, Kernel, Launch};
use crate::table::Records;

/// Kernels count bytes, and a few more, in 32 bits.
const MAX_LEN: u32 = 1 << 31;
/// Bytes of a table that are lost to alignment, at most.
const TABLE_GAPS: u64 = 64;

/// How chunks of a codec are decoded.
#[derive(Debug)]
pub(crate) struct Spans {
    /// The codec, for errors.
    pub(crate) name: &'static str,
    /// The kernel for many chunks, and its blocks of threads that a multiprocessor runs at once.
    pub(crate) many: SpansKernel,
    pub(crate) blocks_each: u32,
    /// The kernel for few.
    pub(crate) few: SpansKernel,
}

/// A kernel, its threads and its bytes of shared memory.
#[derive(Debug)]
pub(crate) struct SpansKernel {
    pub(crate) kernel: Kernel,
    pub(crate) threads: u32,
    pub(crate) shared: u32,
}

/// `SpanSlot` of `spans/chunks.cuh`.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Slot {
    encoded: u64,
    decoded: u64,
    encoded_len: u32,
    decoded_len: u32,
}
const _: () = assert!(size_of::<Slot>() == SPANS_SLOT_SIZE as usize);

/// `SpanChunks` of `spans/chunks.cuh`.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Params {
    slots: u64,
    statuses: u64,
    taken: u64,
    arena: u64,
    slot_count: u32,
    format: u32,
}
const _: () = assert!(size_of::<Params>() == SPANS_PARAMS_SIZE as usize);

impl Spans {
    /// Which kernel decodes so many chunks, with how many blocks of threads.
    fn launch(&self, slots: usize, engine: &dyn Engine) -> (Kernel, Launch) {
        let (slots, processors) = (u32::try_from(slots).unwrap_or(u32::MAX), engine.multiprocessors());
        // Some devices have not as much shared memory as that for few wants.
        let (of, grid) = if slots < 2 * processors && self.few.shared <= engine.shared_memory() {
            (&self.few, slots)
        } else {
            (&self.many, slots.min(processors.saturating_mul(self.blocks_each)))
        };
        (of.kernel, Launch { grid, threads: of.threads, shared: of.shared })
    }

    /// Temporary memory for so many chunks; one block of threads would do.
    pub(crate) fn scratch_len(&self, slots: usize, engine: &dyn Engine) -> u64 {
        let (_, launch) = self.launch(slots, engine);
        table_len(slots).saturating_add(u64::from(launch.grid) * u64::from(SPANS_ARENA))
    }

    /// Enqueues the decoding of `chunks`, of a format of the codec's. The statuses, 4 bytes each, will be in the memory of the device that this gives.
    pub(crate) fn decode(
        &self,
        engine: &dyn Engine,
        chunks: &[Chunk<'_>],
        format: u32,
        context: &DeviceContext<'_>,
    ) -> Result<Buffer, CodecError> {
        let (kernel, mut launch) = self.launch(chunks.len(), engine);
        // With less memory, fewer blocks of threads do the same.
        let arenas = context.scratch_budget.saturating_sub(table_len(chunks.len())) / u64::from(SPANS_ARENA);
        launch.grid = launch.grid.min(u32::try_from(arenas).unwrap_or(u32::MAX));
        if launch.grid == 0 {
            let needed = table_len(chunks.len()).saturating_add(u64::from(SPANS_ARENA));
            let message = format!("{needed} bytes of temporary memory, of a budget of {}", context.scratch_budget);
            return Err(CodecError::new(CodecErrorKind::Limit, self.name, message));
        }
        let too_many = || CodecError::limit(self.name, MAX_LEN as usize);
        let count = |len: usize| u32::try_from(len).ok().filter(|&len| len <= MAX_LEN).ok_or_else(too_many);
        let mut slots = Vec::with_capacity(chunks.len());
        for Chunk { encoded, decoded } in chunks {
            let (encoded_len, decoded_len) = (count(encoded.len())?, count(decoded.len())?);
            slots.push(Slot { encoded: encoded.address(), decoded: decoded.address(), encoded_len, decoded_len });
        }
        let mut records = Records::default();
        let slots_placed = records.push(&slots);
        let taken = records.push(&[0u32]);
        let statuses = records.push(&vec![SPANS_GOOD; chunks.len()]);
        let table = records.upload(context)?;
        let arena = context.device.allocate(launch.grid as usize * SPANS_ARENA as usize, context.queue)?;
        let params = Params {
            slots: table.address(slots_placed),
            statuses: table.address(statuses),
            taken: table.address(taken),
            arena: arena.address(),
            slot_count: count(chunks.len())?,
            format,
        };
        let reads: Vec<&Buffer> = chunks.iter().map(|chunk| chunk.encoded).collect();
        let writes: Vec<&Buffer> = chunks.iter().map(|chunk| chunk.decoded).chain([table.buffer(), &arena]).collect();
        enqueue(context.queue, &reads, &writes, || {
            // SAFETY: slots describe slices of buffers that this call of `enqueue` holds; the table has a status for each, and the arena room for each block of threads.
            unsafe { engine.launch(context.queue, kernel, launch, bytemuck::bytes_of(&params)) }
        })?;
        table.slice(statuses)
    }
}

fn table_len(slots: usize) -> u64 {
    (u64::from(SPANS_SLOT_SIZE) + 4).saturating_mul(slots as u64).saturating_add(TABLE_GAPS)
}

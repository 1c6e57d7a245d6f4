//! Zstandard (RFC 8878), the codec `zstd`: decoding on a device.
//!
//! A batch goes through a fixed run of kernels; what they find stays on the device. All blocks of all frames are entropy-decoded side by side: sequences into
//! an arena, literals too, or, of chunks of up to 8 MiB, to the end of their own output; then each frame is put together by one block of threads, or, of larger
//! chunks, by several that take tiles of it in turn. What is larger than the arena goes through it in waves.

use bytemuck::{Pod, Zeroable};
use zarr_buffer_api::{Buffer, BufferError, Queue, enqueue};
use zarr_codec_api::{CodecError, CodecErrorKind, DeviceContext};

use crate::constants::*;
use crate::engine::{Engine, Kernel, Launch};

/// One chunk to decode: encoded bytes at any alignment, and contiguous room for what they decode to.
#[derive(Debug, Clone)]
pub(crate) struct Chunk<'a> {
    pub(crate) encoded: &'a Buffer,
    pub(crate) decoded: &'a Buffer,
}

/// `Slot` of `format.cuh`.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Slot {
    encoded: u64,
    decoded: u64,
    encoded_len: u32,
    decoded_len: u32,
    first_block: u32,
    block_capacity: u32,
    staging: u32,
    is_blosc: u32,
}
const _: () = assert!(size_of::<Slot>() == ZSTD_SLOT_SIZE as usize);

/// `Decode` of `format.cuh`.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Decode {
    slots: u64,
    states: u64,
    blocks: u64,
    arena: u64,
    waves: u64,
    literals_list: u64,
    sequences_list: u64,
    statuses: u64,
    serial_arena: u64,
    serial_stride: u64,
    slot_count: u32,
    block_capacity: u32,
    arena_len: u32,
    wave_count: u32,
    wave: u32,
    batch: u32,
}
const _: () = assert!(size_of::<Decode>() == ZSTD_PLAN_SIZE as usize);

/// Blocks of threads of the serial kernel.
const SERIAL_GRID: u32 = 4;
/// Room of one of them: literals, then sequences of 16 bytes and one that ends them.
const SERIAL_STRIDE: u32 = ZSTD_BLOCK_MAX + (ZSTD_HEADER_SEQUENCES + 1) * 16;
/// Chunks of more bytes are worth several blocks of threads each, where there are few.
const SHARED_MIN: u64 = 512 << 10;
/// Blocks of threads for a chunk that are worth more than a compact one.
const SHARERS_MIN: u64 = 4;
/// The arena that a batch may have whatever it decodes to.
const ARENA_MIN: u64 = 32 << 20;

/// How chunks of a batch stage their sequences, by what they decode to: tight up to so many bytes, then compact up to so many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Staging {
    tight_max: u64,
    compact_max: u64,
}

impl Staging {
    /// Compact chunks stage less, and one block of threads executes each. Larger ones are executed by several. Where few chunks go through the arena at once without being
    /// compact, none but small ones are. Tight chunks stage the least, and the kernel for `few` chunks takes none.
    fn new(decoded: impl Iterator<Item = u64> + Clone, processors: u32, few: bool) -> Self {
        let tight_max = if few { 0 } else { u64::from(ZSTD_TIGHT_MAX) };
        let small = Self { tight_max, compact_max: SHARED_MIN };
        let large = decoded.clone().filter(|&len| len > SHARED_MIN).count() as u64;
        let worst = decoded.map(|len| small.worst_need(len)).fold(0, u64::saturating_add);
        if large * SHARERS_MIN <= u64::from(processors) && worst <= ARENA_MIN {
            small
        } else {
            Self { tight_max, compact_max: u64::from(ZSTD_COMPACT_MAX) }
        }
    }

    fn of(self, decoded: u64) -> u32 {
        match decoded {
            _ if decoded <= self.tight_max => ZSTD_STAGED_TIGHT,
            _ if decoded <= self.compact_max => ZSTD_STAGED_COMPACT,
            _ => ZSTD_STAGED_FULL,
        }
    }

    /// The most that a chunk stages: of a tight one, 5 bytes for each sequence, which makes 3 bytes at least; of a compact one, 6; of others, 8, and its literals. And
    /// notes and padding for each block.
    fn worst_need(self, decoded: u64) -> u64 {
        let (staged, step) = match self.of(decoded) {
            ZSTD_STAGED_TIGHT => ((5 * decoded).div_ceil(3), ZSTD_TIGHT_STEP),
            ZSTD_STAGED_COMPACT => (2 * decoded, ZSTD_TILE_STEP),
            _ => (decoded.saturating_mul(11) / 3, ZSTD_TILE_STEP),
        };
        let notes = decoded.min(u64::from(ZSTD_BLOCK_MAX)).div_ceil(u64::from(step)) * 8;
        staged.saturating_add(block_capacity(decoded) * (notes + 32))
    }
}

/// Where everything lies in the temporary memory of one batch. All offsets are multiples of 256 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Layout {
    slots: u64,
    waves: u64,
    uploaded: u64,
    states: u64,
    blocks: u64,
    literals_list: u64,
    sequences_list: u64,
    statuses: u64,
    serial: u64,
    arena: u64,
    arena_len: u64,
    wave_count: u32,
    block_capacity: u32,
    staging: Staging,
    pub(crate) total: u64,
}

impl Layout {
    /// For chunks that decode to `decoded` bytes each, within `budget` bytes if that can be.
    pub(crate) fn on(engine: &dyn Engine, decoded: impl Iterator<Item = u64> + Clone, budget: u64) -> Self {
        let few = is_few(engine, decoded.clone().count());
        Self::new(decoded, budget, engine.multiprocessors(), few)
    }

    /// On a device of so many multiprocessors; `few`: as [`is_few`] says.
    fn new(decoded: impl Iterator<Item = u64> + Clone, budget: u64, processors: u32, few: bool) -> Self {
        let staging = Staging::new(decoded.clone(), processors, few);
        let mut at = 0;
        let mut take = |len: u64| {
            let from = at;
            at = from + len.next_multiple_of(256);
            from
        };
        let count = decoded.clone().count() as u64;
        let output: u64 = decoded.clone().sum();
        let worst: u64 = decoded.clone().map(|len| staging.worst_need(len)).fold(0, u64::saturating_add);
        let block_capacity: u64 = decoded.map(block_capacity).sum();
        let slots = take(count * u64::from(ZSTD_SLOT_SIZE));
        let waves = take(u64::from(ZSTD_MAX_WAVES * ZSTD_WAVE_SIZE));
        let uploaded = waves + u64::from(ZSTD_MAX_WAVES * ZSTD_WAVE_SIZE);
        let states = take(count * u64::from(ZSTD_STATE_SIZE));
        let blocks = take(block_capacity * u64::from(ZSTD_BLOCK_SIZE));
        let statuses = take(count * 4);
        let serial = take(u64::from(SERIAL_STRIDE) * u64::from(SERIAL_GRID));
        // Lists are made for the waves that there are, and how many depends on the arena.
        let list = (block_capacity * 4).next_multiple_of(256);
        let waves_of = |arena_len: u64| worst.div_ceil(arena_len).clamp(1, u64::from(ZSTD_MAX_WAVES));
        // All of it takes as much as the output, or little more.
        let least = (output / 16 * 15).max(4096);
        let rest = output.saturating_sub(at + 2 * list * waves_of(least)) / 256 * 256;
        let wanted = rest.max(least).max(ARENA_MIN).min(worst).max(4096).next_multiple_of(256);
        let arena_len = if at + 2 * list * waves_of(wanted) + wanted <= budget {
            wanted
        } else {
            // A smaller arena has more waves: with room for the lists of all that there can be, it fits.
            budget.saturating_sub(at + 2 * list * u64::from(ZSTD_MAX_WAVES)).clamp(4096, wanted) / 256 * 256
        };
        let wave_count = waves_of(arena_len) as u32;
        let mut take = |len: u64| {
            let from = at;
            at = from + len.next_multiple_of(256);
            from
        };
        let literals_list = take(list * u64::from(wave_count));
        let sequences_list = take(list * u64::from(wave_count));
        let arena = take(arena_len);
        Self {
            slots,
            waves,
            uploaded,
            states,
            blocks,
            literals_list,
            sequences_list,
            statuses,
            serial,
            arena,
            arena_len,
            wave_count,
            block_capacity: (list / 4) as u32,
            staging,
            total: at,
        }
    }
}

/// Whether so many chunks leave room on the device for more threads to each.
fn is_few(engine: &dyn Engine, chunks: usize) -> bool {
    (chunks as u64) < 2 * u64::from(engine.multiprocessors()) && engine.has_registers()
}

/// Blocks that there is room for: 8 times as many as blocks of the usual size, and a few. Chunks of more blocks are for the serial kernel.
fn block_capacity(decoded: u64) -> u64 {
    decoded / u64::from(ZSTD_BLOCK_MAX / 8) + 8
}

/// Whether chunks of so many decoded bytes can be decoded at all.
pub(crate) fn takes(decoded: u64) -> bool {
    decoded <= u64::from(ZSTD_CONTENT_MAX)
}

/// Enqueues the decoding of `chunks`, which are frames, or chunks of blosc whose streams are: then what comes out is still shuffled. The statuses, 4 bytes
/// each, will be in the memory of the device that this gives.
pub(crate) fn decode(engine: &dyn Engine, chunks: &[Chunk<'_>], in_blosc: bool, context: &DeviceContext<'_>) -> Result<Buffer, CodecError> {
    let layout = Layout::on(engine, chunks.iter().map(|chunk| chunk.decoded.len() as u64), context.scratch_budget);
    if layout.total > context.scratch_budget {
        let message = format!("{} bytes of temporary memory, of a budget of {}", layout.total, context.scratch_budget);
        return Err(CodecError::new(CodecErrorKind::Limit, "zstd", message));
    }
    let mut slots = Vec::with_capacity(chunks.len());
    let mut first_block = 0;
    for chunk in chunks {
        let too_large = |_| CodecError::limit("zstd", ZSTD_CONTENT_MAX as usize);
        let capacity = block_capacity(chunk.decoded.len() as u64) as u32;
        slots.push(Slot {
            encoded: chunk.encoded.address(),
            decoded: chunk.decoded.address(),
            encoded_len: u32::try_from(chunk.encoded.len()).map_err(too_large)?,
            decoded_len: u32::try_from(chunk.decoded.len()).map_err(too_large)?,
            first_block,
            block_capacity: capacity,
            staging: layout.staging.of(chunk.decoded.len() as u64),
            is_blosc: u32::from(in_blosc),
        });
        first_block += capacity;
    }
    let scratch = context.device.allocate(usize_of(layout.total)?, context.queue)?;
    let upload = context.device.allocate_staging(usize_of(layout.uploaded)?)?;
    {
        let mut bytes = upload.host_write()?;
        let slots: &[u8] = bytemuck::cast_slice(&slots);
        bytes.fill(0);
        bytes[..slots.len()].copy_from_slice(slots);
    }
    context.queue.copy(&upload, &scratch.slice(0..usize_of(layout.uploaded)?)?)?;

    let base = scratch.address();
    let params = Decode {
        slots: base + layout.slots,
        states: base + layout.states,
        blocks: base + layout.blocks,
        arena: base + layout.arena,
        waves: base + layout.waves,
        literals_list: base + layout.literals_list,
        sequences_list: base + layout.sequences_list,
        statuses: base + layout.statuses,
        serial_arena: base + layout.serial,
        serial_stride: u64::from(SERIAL_STRIDE),
        slot_count: chunks.len() as u32,
        block_capacity: layout.block_capacity,
        arena_len: (layout.arena_len / 16) as u32,
        wave_count: layout.wave_count,
        wave: 0,
        batch: 1,
    };
    let reads: Vec<&Buffer> = chunks.iter().map(|chunk| chunk.encoded).collect();
    let writes: Vec<&Buffer> = chunks.iter().map(|chunk| chunk.decoded).chain([&scratch]).collect();
    enqueue(context.queue, &reads, &writes, || launch_all(engine, context, params, &slots))?;

    let statuses = usize_of(layout.statuses)?;
    Ok(scratch.slice(statuses..statuses + chunks.len() * 4)?)
}

fn launch_all(engine: &dyn Engine, context: &DeviceContext<'_>, mut params: Decode, slots: &[Slot]) -> Result<(), BufferError> {
    let launch_on = |queue: &dyn Queue, kernel, grid: u32, threads, shared, params: &Decode| {
        // SAFETY: the addresses are those of buffers that the caller's `enqueue` holds, laid out as `Layout` says, which is as the kernels want it. The
        // caller's queue waits for the other one.
        unsafe { engine.launch(queue, kernel, Launch { grid, threads, shared }, bytemuck::bytes_of(params)) }
    };
    let launch = |kernel, grid, threads, shared, params: &Decode| launch_on(context.queue, kernel, grid, threads, shared, params);
    let slot_count = params.slot_count;
    let processors = engine.multiprocessors();
    launch(Kernel::ZstdPlan, slot_count, ZSTD_PLAN_THREADS, ZSTD_PLAN_SHARED, &params)?;
    launch(Kernel::ZstdAssign, 1, ZSTD_ASSIGN_THREADS, ZSTD_PLAN_SHARED, &params)?;
    for pass in 0..2 {
        params.batch = pass;
        launch(Kernel::ZstdList, slot_count, ZSTD_PLAN_THREADS, 0, &params)?;
    }

    // As many blocks as frames of blocks of the usual size have: spread over the device, as few to a warp as fill it.
    let blocks: u64 = slots.iter().map(|slot| u64::from(slot.decoded_len.div_ceil(ZSTD_BLOCK_MAX).max(1))).sum();
    let blocks = u32::try_from(blocks).unwrap_or(u32::MAX);
    let literals_batch = blocks.div_ceil(processors * 8).clamp(1, ZSTD_LITERALS_BATCH);
    let sequences_batch = blocks.div_ceil(processors * 4).clamp(1, ZSTD_SEQUENCES_BATCH);
    let sequences_shared = ZSTD_SEQUENCES_SHARED_FIXED + sequences_batch * ZSTD_SEQUENCES_SHARED_EACH;
    let copies = (processors * 4).div_ceil(slot_count).clamp(1, 64);
    let (execute, threads) = match is_few(engine, slots.len()) {
        true => (Kernel::ZstdExecuteWide, ZSTD_EXECUTE_WIDE_THREADS),
        false => (Kernel::ZstdExecute, ZSTD_EXECUTE_THREADS),
    };
    let execute_memory = |threads| {
        let tile = threads * ZSTD_BYTES_PER_THREAD;
        tile * 2 + (tile / 3 + 4) * 16
    };
    // Compact chunks are each executed by one block of threads, others by several: no more than run at once.
    let large = slots.iter().filter(|slot| slot.staging == ZSTD_STAGED_FULL).count() as u32;
    let sharers = (processors / large.max(1)).clamp(1, 16);
    for wave in 0..params.wave_count {
        params.wave = wave;
        // Literals and sequences have nothing to do with each other.
        let side = engine.side_queue(context.queue);
        if let Some(side) = side {
            side.wait_for(&context.queue.record()?)?;
        }
        params.batch = sequences_batch;
        let grid = blocks.div_ceil(sequences_batch).min(processors * 16);
        launch(Kernel::ZstdSequences, grid, ZSTD_ENTROPY_THREADS, sequences_shared, &params)?;
        params.batch = literals_batch;
        let grid = blocks.div_ceil(literals_batch).min(processors * 5);
        launch_on(side.unwrap_or(context.queue), Kernel::ZstdLiterals, grid, ZSTD_ENTROPY_THREADS, ZSTD_LITERALS_SHARED, &params)?;
        if let Some(side) = side {
            context.queue.wait_for(&side.record()?)?;
        }
        launch(Kernel::ZstdResolve, slot_count, ZSTD_RESOLVE_THREADS, 0, &params)?;
        params.batch = copies;
        launch(Kernel::ZstdCopy, slot_count * copies, ZSTD_COPY_THREADS, 0, &params)?;
        if large < slot_count {
            launch(execute, slot_count, threads, execute_memory(threads), &params)?;
        }
        if large > 0 {
            params.batch = sharers;
            let threads = ZSTD_EXECUTE_WIDE_THREADS;
            launch(Kernel::ZstdExecuteShared, slot_count * sharers, threads, execute_memory(threads), &params)?;
        }
    }
    launch(Kernel::ZstdChecksum, slot_count, ZSTD_CHECKSUM_THREADS, 0, &params)?;
    launch(Kernel::ZstdSerial, slot_count.min(SERIAL_GRID), ZSTD_SERIAL_THREADS, ZSTD_SERIAL_SHARED, &params)?;
    launch(Kernel::ZstdFinish, slot_count, ZSTD_FINISH_THREADS, 0, &params)
}

/// The words for a status.
pub(crate) fn verdict(status: u32) -> Result<(), CodecError> {
    let (reason, block) = (status & 0xff, status >> 8);
    let Some(words) = words(reason) else { return Ok(()) };
    let place = match reason {
        ZSTD_OUTPUT_TOO_SMALL => String::new(),
        _ => format!(" (block {block})"),
    };
    Err(CodecError::format("zstd", format!("{words}{place}")))
}

/// What is wrong, for a reason; `None`: nothing is.
pub(crate) fn words(reason: u32) -> Option<&'static str> {
    Some(match reason {
        ZSTD_GOOD => return None,
        ZSTD_TRUNCATED => "the bytes end in the middle of a frame",
        ZSTD_MAGIC => "not a zstd frame",
        ZSTD_RESERVED_BIT => "a reserved bit of the frame header is set",
        ZSTD_WINDOW => "the window is larger than 3.75 GiB",
        ZSTD_DICTIONARY => "the frame needs a dictionary",
        ZSTD_RESERVED_BLOCK => "a block of the reserved type",
        ZSTD_BLOCK_TOO_LARGE => "a compressed block is larger than the frame allows",
        ZSTD_LITERALS_HEADER => "the header of the literals does not fit its block",
        ZSTD_NO_TREE => "literals without a Huffman tree",
        ZSTD_HUFFMAN_TREE => "a malformed Huffman tree",
        ZSTD_HUFFMAN_STREAM => "a malformed stream of literals",
        ZSTD_SEQUENCES_HEADER => "the header of the sequences does not fit its block",
        ZSTD_FSE_TABLE => "a malformed FSE table",
        ZSTD_NO_TABLE => "sequences that repeat a table where there is none",
        ZSTD_SEQUENCES_STREAM => "the bits of the sequences do not end with the last of them",
        ZSTD_TOO_FEW_LITERALS => "sequences that need more literals than there are",
        ZSTD_OFFSET => "a match with an offset of 0, or before the start of the frame",
        ZSTD_OUTPUT_TOO_LARGE => "decodes to more bytes than expected",
        ZSTD_OUTPUT_TOO_SMALL => "decodes to fewer bytes than expected",
        ZSTD_CONTENT_SIZE => "decodes to another size than the frame header says",
        ZSTD_CHECKSUM => "the checksum does not match",
        _ => "failed for an unknown reason",
    })
}

fn usize_of(len: u64) -> Result<usize, CodecError> {
    usize::try_from(len).map_err(|_| CodecError::limit("zstd", usize::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_fits_the_memory_that_it_asks_for() {
        for count in [1, 2, 7, 100, 1000] {
            let lens = [0, 1, 60, 500, 1500, 2000, 4000, 10_000, 100_000, 1 << 20, 9 << 20];
            for (len, processors, few) in lens.into_iter().flat_map(|len| [(len, 2, false), (len, 132, false), (len, 132, true)]) {
                let decoded = || std::iter::repeat_n(len, count);
                let asked = Layout::new(decoded(), u64::MAX, processors, few);
                let given = Layout::new(decoded(), asked.total, processors, few);
                assert_eq!(given, asked, "{count} chunks of {len} bytes");
                // Less is made do with, down to an arena that is all lists.
                let less = asked.total - asked.arena_len / 2;
                let lists = asked.literals_list + 2 * u64::from(asked.block_capacity) * 4 * u64::from(ZSTD_MAX_WAVES);
                assert!(
                    less < lists + 4096 || Layout::new(decoded(), less, processors, few).total <= less,
                    "{count} chunks of {len} bytes in {less}"
                );
            }
        }
    }

    #[test]
    fn temporary_memory_is_as_large_as_the_output_and_takes_dense_chunks_at_once() {
        for (kib, count) in [(64, 8192), (96, 5461), (144, 3640), (256, 2048), (1024, 512), (4096, 128)] {
            let (len, output) = (kib << 10, (kib << 10) * count as u64);
            let layout = Layout::new(std::iter::repeat_n(len, count), u64::MAX, 132, false);
            assert!(layout.total <= output, "{kib} KiB: {} of {output}", layout.total);
            // As many sequences as float32 has by libzstd at level 3, in chunks of 129 to 256 KiB, and a few more.
            let staged = if len <= u64::from(ZSTD_TIGHT_MAX) { kib * (194 * 5 + 8) } else { kib * (125 * 6 + 2) };
            assert!(layout.arena_len >= staged * count as u64, "{kib} KiB: an arena of {} bytes for {output}", layout.arena_len);
        }
    }
}

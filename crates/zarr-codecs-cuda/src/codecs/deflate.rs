//! `gzip`, `numcodecs.gzip`, `numcodecs.zlib`: decoding on a device.
//!
//! A chunk is one run of bits, in which nothing says where anything starts. One block of threads decodes it: its threads read on from as many places at once, and again
//! until each starts where the one before it came out. `kernels/deflate` says how.

use bytemuck::{Pod, Zeroable};
use zarr_buffer_api::{Buffer, enqueue};
use zarr_codec_api::{CodecError, CodecErrorKind, DeviceContext, Stage};

use crate::codecs::zstd::Chunk;
use crate::constants::*;
use crate::engine::{Engine, Kernel, Launch};
use crate::recipe::Compression;
use crate::table::Records;

/// Blocks of threads that a multiprocessor runs at once.
const BLOCKS_EACH: u32 = 3;
/// Kernels count bytes, and a few more, in 32 bits.
const MAX_LEN: u32 = 1 << 31;
/// Bytes of a table that are lost to alignment, at most.
const TABLE_GAPS: u64 = 64;

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    level: Option<i64>,
}

/// What surrounds the compressed bytes.
pub(crate) fn compression(stage: &Stage) -> Option<Compression> {
    let config: Config = stage.codec.config().ok()?;
    // What is none the host refuses.
    let (compression, levels) = match stage.codec.name.as_str() {
        "gzip" => return config.level.filter(|level| (0..=9).contains(level)).map(|_| Compression::Gzip),
        "numcodecs.zlib" => (Compression::Zlib, -1..=9),
        _ => (Compression::Gzip, -1..=9),
    };
    config.level.is_none_or(|level| levels.contains(&level)).then_some(compression)
}

/// `DeflateSlot` of `deflate/format.cuh`.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Slot {
    encoded: u64,
    decoded: u64,
    encoded_len: u32,
    decoded_len: u32,
}
const _: () = assert!(size_of::<Slot>() == DEFLATE_SLOT_SIZE as usize);

/// `Deflate` of `deflate/format.cuh`.
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
const _: () = assert!(size_of::<Params>() == DEFLATE_PARAMS_SIZE as usize);

/// Which kernel decodes so many chunks, with how many blocks of threads.
fn launch(slots: usize, engine: &dyn Engine) -> (Kernel, Launch) {
    let (slots, processors) = (u32::try_from(slots).unwrap_or(u32::MAX), engine.multiprocessors());
    if slots < 2 * processors {
        let launch = Launch { grid: slots, threads: DEFLATE_WIDE_THREADS, shared: DEFLATE_WIDE_SHARED };
        return (Kernel::DeflateDecodeWide, launch);
    }
    let grid = slots.min(processors.saturating_mul(BLOCKS_EACH));
    (Kernel::DeflateDecode, Launch { grid, threads: DEFLATE_THREADS, shared: DEFLATE_SHARED })
}

fn table_len(slots: usize) -> u64 {
    (u64::from(DEFLATE_SLOT_SIZE) + 4).saturating_mul(slots as u64).saturating_add(TABLE_GAPS)
}

/// Temporary memory for so many chunks; one block of threads would do.
pub(crate) fn scratch_len(slots: usize, engine: &dyn Engine) -> u64 {
    let (_, launch) = launch(slots, engine);
    table_len(slots).saturating_add(u64::from(launch.grid) * u64::from(DEFLATE_ARENA))
}

/// Enqueues the decoding of `chunks`. The statuses, 4 bytes each, will be in the memory of the device that this gives.
pub(crate) fn decode(
    engine: &dyn Engine,
    chunks: &[Chunk<'_>],
    compression: Compression,
    context: &DeviceContext<'_>,
) -> Result<Buffer, CodecError> {
    let (kernel, mut launch) = launch(chunks.len(), engine);
    // With less memory, fewer blocks of threads do the same.
    let arenas = context.scratch_budget.saturating_sub(table_len(chunks.len())) / u64::from(DEFLATE_ARENA);
    launch.grid = launch.grid.min(u32::try_from(arenas).unwrap_or(u32::MAX));
    if launch.grid == 0 {
        let needed = table_len(chunks.len()).saturating_add(u64::from(DEFLATE_ARENA));
        let message = format!("{needed} bytes of temporary memory, of a budget of {}", context.scratch_budget);
        return Err(CodecError::new(CodecErrorKind::Limit, "deflate", message));
    }
    let count =
        |len: usize| u32::try_from(len).ok().filter(|&len| len <= MAX_LEN).ok_or_else(|| CodecError::limit("deflate", MAX_LEN as usize));
    let mut slots = Vec::with_capacity(chunks.len());
    for Chunk { encoded, decoded } in chunks {
        let (encoded_len, decoded_len) = (count(encoded.len())?, count(decoded.len())?);
        slots.push(Slot { encoded: encoded.address(), decoded: decoded.address(), encoded_len, decoded_len });
    }
    let mut records = Records::default();
    let slots_placed = records.push(&slots);
    let taken = records.push(&[0u32]);
    let statuses = records.push(&vec![DEFLATE_GOOD; chunks.len()]);
    let table = records.upload(context)?;
    let arena = context.device.allocate(launch.grid as usize * DEFLATE_ARENA as usize, context.queue)?;
    let params = Params {
        slots: table.address(slots_placed),
        statuses: table.address(statuses),
        taken: table.address(taken),
        arena: arena.address(),
        slot_count: count(chunks.len())?,
        format: if compression == Compression::Zlib { DEFLATE_ZLIB } else { DEFLATE_GZIP },
    };
    let reads: Vec<&Buffer> = chunks.iter().map(|chunk| chunk.encoded).collect();
    let writes: Vec<&Buffer> = chunks.iter().map(|chunk| chunk.decoded).chain([table.buffer(), &arena]).collect();
    enqueue(context.queue, &reads, &writes, || {
        // SAFETY: slots describe slices of buffers that this call of `enqueue` holds; the table has a status for each, and the arena room for each block of threads.
        unsafe { engine.launch(context.queue, kernel, launch, bytemuck::bytes_of(&params)) }
    })?;
    table.slice(statuses)
}

/// The words for a status.
pub(crate) fn verdict(name: &str, status: u32) -> Result<(), CodecError> {
    let words = match status {
        DEFLATE_GOOD => return Ok(()),
        DEFLATE_TRUNCATED => "the bytes end too early",
        DEFLATE_HEADER => "the header is not one of this format, or wants what is not supported",
        DEFLATE_BETWEEN => "the bytes behind the last member are neither a member nor zeros",
        DEFLATE_RESERVED_BLOCK => "a block of the reserved kind",
        DEFLATE_STORED_LEN => "the length of a stored block is not what its complement says",
        DEFLATE_CODE_LENGTHS => "the lengths of a block's codes do not add up",
        DEFLATE_CODE => "the lengths of a block's codes make no code",
        DEFLATE_DISTANCE => "a match from before the start",
        DEFLATE_OUTPUT_TOO_LARGE => "decodes to more bytes than expected",
        DEFLATE_OUTPUT_TOO_SMALL => "decodes to fewer bytes than expected",
        DEFLATE_CHECKSUM => "the checksum does not match",
        DEFLATE_LEN => "decodes to another number of bytes than its end says",
        DEFLATE_TOO_MANY_BLOCKS => {
            let message = "more blocks than the device takes for so few bytes; a policy that prefers the host reads it";
            return Err(CodecError::unsupported(name, message));
        }
        _ => "failed for an unknown reason",
    };
    Err(CodecError::format(name, words))
}

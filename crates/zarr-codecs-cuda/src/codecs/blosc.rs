//! `blosc`, `numcodecs.blosc`: decoding on a device, where the inner codec is `lz4`, `lz4hc` or `zstd`.
//!
//! Streams are decoded side by side to memory of their own: those of LZ4 by a warp each, those of zstd by the kernels of `zstd`, as frames of one chunk. Then
//! each block is unshuffled to where it belongs. A chunk's header says what is in it; of the metadata, only the inner codec is taken at its word.

use bytemuck::{Pod, Zeroable};
use zarr_buffer_api::{Buffer, enqueue};
use zarr_codec_api::{CodecError, CodecErrorKind, DeviceContext, Stage};

use crate::codecs::zstd::{self, Chunk};
use crate::constants::*;
use crate::engine::{Engine, Kernel, Launch};
use crate::recipe::Compression;
use crate::table::Records;

/// Where the streams of a chunk start: kernels write 16 bytes at a time.
const ALIGN: u64 = 256;
/// Bytes of output for each block of threads.
const PART: usize = 256 << 10;
/// Bytes of a table that are lost to alignment, at most.
const TABLE_GAPS: u64 = 64;

/// Keys of the configuration that say how to encode are the host's to check.
#[derive(serde::Deserialize)]
struct Config {
    cname: Option<String>,
    blocksize: Option<u64>,
}

/// Blocks of fewer bytes are more than the kernels of zstd decode side by side.
const MIN_ZSTD_BLOCK: u64 = ZSTD_BLOCK_MAX as u64 / 8;
/// Positions in a chunk may be a little further than its end.
const MAX_ENCODED: u32 = u32::MAX - 4096;

/// The inner codec, if it is one that the device has.
pub(crate) fn compression(stage: &Stage) -> Option<Compression> {
    let config: Config = stage.codec.config().ok()?;
    match config.cname.as_deref().unwrap_or("lz4") {
        "lz4" | "lz4hc" => Some(Compression::BloscLz4),
        // A block size of 0 leaves it to the encoder.
        "zstd" if config.blocksize.is_none_or(|size| size == 0 || size >= MIN_ZSTD_BLOCK) => Some(Compression::BloscZstd),
        _ => None,
    }
}

/// `BloscSlot` of `blosc/header.cuh`.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Slot {
    encoded: u64,
    streams: u64,
    decoded: u64,
    encoded_len: u32,
    decoded_len: u32,
}
const _: () = assert!(size_of::<Slot>() == BLOSC_SLOT_SIZE as usize);

/// `Blosc` of `blosc/header.cuh`.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Params {
    slots: u64,
    errors: u64,
    statuses: u64,
    slot_count: u32,
    parts: u32,
}
const _: () = assert!(size_of::<Params>() == BLOSC_PARAMS_SIZE as usize);

/// Memory besides that of zstd, for chunks that decode to so many bytes each.
pub(crate) fn scratch_len(decoded: impl Iterator<Item = u64>) -> u64 {
    let of_slot = |len: u64| len.next_multiple_of(ALIGN).saturating_add(u64::from(BLOSC_SLOT_SIZE) + 8);
    decoded.map(of_slot).fold(TABLE_GAPS, u64::saturating_add)
}

/// Enqueues the decoding of `chunks`, whose inner codec is that of `compression`. The statuses, 4 bytes each, will be in the memory of the device that this gives.
pub(crate) fn decode(
    engine: &dyn Engine,
    chunks: &[Chunk<'_>],
    compression: Compression,
    context: &DeviceContext<'_>,
) -> Result<Buffer, CodecError> {
    let used = scratch_len(chunks.iter().map(|chunk| chunk.decoded.len() as u64));
    let Some(left) = context.scratch_budget.checked_sub(used) else {
        let message = format!("{used} bytes of temporary memory, of a budget of {}", context.scratch_budget);
        return Err(CodecError::new(CodecErrorKind::Limit, "blosc", message));
    };
    let mut slots = Vec::with_capacity(chunks.len());
    let mut at = 0usize;
    for chunk in chunks {
        let count = |len: usize| u32::try_from(len).map_err(|_| CodecError::limit("blosc", i32::MAX as usize));
        let (encoded, decoded) = (chunk.encoded.address(), chunk.decoded.address());
        let (encoded_len, decoded_len) = (count(chunk.encoded.len())?, count(chunk.decoded.len())?);
        if encoded_len > MAX_ENCODED {
            return Err(CodecError::limit("blosc", MAX_ENCODED as usize));
        }
        slots.push(Slot { encoded, streams: at as u64, decoded, encoded_len, decoded_len });
        at += chunk.decoded.len().next_multiple_of(ALIGN as usize);
    }
    let streams = context.device.allocate(at, context.queue)?;
    let in_streams: Vec<Buffer> = slots
        .iter()
        .map(|slot| streams.slice(slot.streams as usize..slot.streams as usize + slot.decoded_len as usize))
        .collect::<Result<_, _>>()?;
    slots.iter_mut().for_each(|slot| slot.streams += streams.address());

    let mut records = Records::default();
    let slots_placed = records.push(&slots);
    let errors = records.push(&vec![u32::MAX; chunks.len()]);
    let statuses = records.push(&vec![BLOSC_GOOD; chunks.len()]);
    let table = records.upload(context)?;
    let largest = chunks.iter().map(|chunk| chunk.decoded.len()).max().unwrap_or(0);
    let params = Params {
        slots: table.address(slots_placed),
        errors: table.address(errors),
        statuses: table.address(statuses),
        slot_count: chunks.len() as u32,
        parts: largest.div_ceil(PART).clamp(1, 4096) as u32,
    };
    let encoded = || chunks.iter().map(|chunk| chunk.encoded);
    let launch = |kernel, grid: u32, threads, shared, params: &Params| {
        // SAFETY: slots describe slices of buffers that the call of `enqueue` around this one holds; the table has an error and a status for each.
        unsafe { engine.launch(context.queue, kernel, Launch { grid, threads, shared }, bytemuck::bytes_of(params)) }
    };
    let grid = params.slot_count.saturating_mul(params.parts);
    let (params, statuses) = match compression {
        Compression::BloscZstd => {
            let frames: Vec<Chunk<'_>> =
                chunks.iter().zip(&in_streams).map(|(chunk, decoded)| Chunk { encoded: chunk.encoded, decoded }).collect();
            let statuses = zstd::decode(engine, &frames, true, &DeviceContext { scratch_budget: left, ..*context })?;
            (Params { errors: 0, statuses: statuses.address(), ..params }, statuses)
        }
        _ => {
            let reads: Vec<&Buffer> = encoded().collect();
            enqueue(context.queue, &reads, &[&streams, table.buffer()], || {
                launch(Kernel::BloscPlan, params.slot_count, BLOSC_PLAN_THREADS, 0, &params)?;
                launch(Kernel::BloscLz4, grid, BLOSC_LZ4_THREADS, 0, &params)
            })?;
            (params, table.slice(statuses)?)
        }
    };
    let reads: Vec<&Buffer> = encoded().chain([&streams]).collect();
    let writes: Vec<&Buffer> = chunks.iter().map(|chunk| chunk.decoded).chain([table.buffer(), &statuses]).collect();
    enqueue(context.queue, &reads, &writes, || launch(Kernel::BloscUnshuffle, grid, BLOSC_UNSHUFFLE_THREADS, BLOSC_SHARED, &params))?;
    Ok(statuses)
}

/// The words for a status.
pub(crate) fn verdict(status: u32) -> Result<(), CodecError> {
    let (reason, block) = (status & 0xff, status >> 8);
    let words = match reason {
        BLOSC_HEADER => "the header is not one of blosc, or not that of a chunk of this size",
        BLOSC_SIZE => "the header says another number of decoded bytes",
        BLOSC_COMPRESSOR => {
            let message = "the chunk was compressed by another inner codec than the metadata say; a policy that prefers the host reads it";
            return Err(CodecError::unsupported("blosc", message));
        }
        BLOSC_SPLIT => "a block does not split into its streams",
        BLOSC_OUTSIDE => "a stream reaches outside the chunk",
        BLOSC_OVERLAP => "blocks overlap",
        BLOSC_DAMAGED => "a stream is damaged, or decodes to another number of bytes",
        _ => match zstd::words(reason) {
            None => return Ok(()),
            Some(words) => return Err(CodecError::format("blosc", format!("a zstd stream: {words}"))),
        },
    };
    let place = if matches!(reason, BLOSC_HEADER | BLOSC_SIZE | BLOSC_OVERLAP) { String::new() } else { format!(" (block {block})") };
    Err(CodecError::format("blosc", format!("{words}{place}")))
}

//! Zstandard (RFC 8878), the codec `zstd`: encoding on a device.
//!
//! A chunk becomes one frame of blocks of 64 KiB, all of which are encoded side by side: a fixed run of kernels, and what they find stays on the device. Ratios are about
//! those of the library at its lower levels, so that higher ones are left to it.

use bytemuck::{Pod, Zeroable};
use zarr_buffer_api::{Buffer, BufferError, enqueue};
use zarr_codec_api::{CodecError, DeviceContext, Stage};

use crate::constants::*;
use crate::engine::{Engine, Kernel, Launch};

/// The highest level that the device stands in for: the library's default.
const LEVEL_MAX: i64 = 3;

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    #[serde(default)]
    level: i64,
    checksum: Option<bool>,
}

/// Whether frames are to have a checksum. `None` where the device does not encode as it is asked to.
pub(crate) fn checksum(stage: &Stage) -> Option<bool> {
    let config: Config = stage.codec.config().ok()?;
    (config.level <= LEVEL_MAX).then_some(config.checksum.unwrap_or(false))
}

/// `EncodeSource` of `format.cuh`.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Source {
    data: u64,
    at: u64,
    len: u32,
    first_block: u32,
    checksum: u32,
    unused: u32,
}
const _: () = assert!(size_of::<Source>() == ZSTD_SOURCE_SIZE as usize);

/// `Encode` of `format.cuh`.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Encode {
    sources: u64,
    blocks: u64,
    sequences: u64,
    literals: u64,
    staged: u64,
    checksums: u64,
    packed: u64,
    ranges: u64,
    slot_count: u32,
    block_count: u32,
    unused: u64,
}
const _: () = assert!(size_of::<Encode>() == ZSTD_ENCODE_SIZE as usize);

/// Bytes of a chunk's place in what comes out: where it starts, and where it ends.
pub(crate) const RANGE_LEN: usize = 16;

/// Where everything lies in the temporary memory of one batch. All offsets are multiples of 256 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Layout {
    sources: u64,
    blocks: u64,
    sequences: u64,
    literals: u64,
    staged: u64,
    checksums: u64,
    ranges: u64,
    total: u64,
    /// Memory for what comes out.
    packed: u64,
    block_count: u64,
}

impl Layout {
    /// For chunks of `lens` bytes.
    fn new(lens: impl Iterator<Item = u64>) -> Self {
        let mut layout = Self::default();
        let (mut count, mut content) = (0, 0u64);
        for len in lens {
            count += 1;
            content = content.saturating_add(aligned(len));
            layout.block_count = layout.block_count.saturating_add(blocks_of(len));
            layout.packed = layout.packed.saturating_add(len);
        }
        let blocks = layout.block_count;
        layout.packed = layout.packed.saturating_add(blocks * u64::from(ZSTD_BLOCK_HEADER) + count * u64::from(ZSTD_FRAME_AROUND));
        let mut take = |len: u64| {
            let from = layout.total;
            layout.total = from.saturating_add(len).next_multiple_of(256);
            from
        };
        layout.sources = take(count * u64::from(ZSTD_SOURCE_SIZE));
        layout.blocks = take(blocks * u64::from(ZSTD_PIECE_SIZE));
        layout.sequences = take((content / u64::from(ZSTD_ENCODE_DENSITY) + blocks) * u64::from(ZSTD_SEQUENCE_SIZE));
        layout.literals = take(content);
        layout.staged = take(content.saturating_add(blocks * u64::from(ZSTD_ENCODE_SLACK)));
        layout.checksums = take(count * 4);
        layout.ranges = take(count * RANGE_LEN as u64);
        layout
    }
}

/// Where the room of the next chunk starts.
fn aligned(len: u64) -> u64 {
    len.next_multiple_of(16)
}

/// An empty chunk has a block, too.
fn blocks_of(len: u64) -> u64 {
    len.div_ceil(u64::from(ZSTD_ENCODE_BLOCK)).max(1)
}

/// The device memory that encoding takes, with what comes out.
pub(crate) fn scratch_len(lens: impl Iterator<Item = u64>) -> u64 {
    let layout = Layout::new(lens);
    layout.total.saturating_add(layout.packed)
}

/// Enqueues the encoding of `chunks`. Gives the frames, one behind the other, and where in them each chunk lies: [`RANGE_LEN`] bytes for each.
pub(crate) fn encode(
    engine: &dyn Engine,
    chunks: &[Buffer],
    checksum: bool,
    context: &DeviceContext<'_>,
) -> Result<(Buffer, Buffer), CodecError> {
    let too_large = |_| CodecError::limit("zstd", usize::MAX);
    let len_of = |len: u64| usize::try_from(len).map_err(too_large);
    let layout = Layout::new(chunks.iter().map(|chunk| chunk.len() as u64));
    let mut sources = Vec::with_capacity(chunks.len());
    let (mut at, mut first_block) = (0, 0);
    for chunk in chunks {
        let len = u32::try_from(chunk.len()).map_err(too_large)?;
        sources.push(Source { data: chunk.address(), at, len, first_block, checksum: u32::from(checksum), unused: 0 });
        at += aligned(u64::from(len));
        first_block += blocks_of(u64::from(len)) as u32;
    }
    let scratch = context.device.allocate(len_of(layout.total)?, context.queue)?;
    let packed = context.device.allocate(len_of(layout.packed)?, context.queue)?;
    let bytes: &[u8] = bytemuck::cast_slice(&sources);
    let upload = context.device.allocate_staging(bytes.len())?;
    upload.host_write()?.copy_from_slice(bytes);
    let sources_at = len_of(layout.sources)?;
    context.queue.copy(&upload, &scratch.slice(sources_at..sources_at + bytes.len())?)?;

    let base = scratch.address();
    let params = Encode {
        sources: base + layout.sources,
        blocks: base + layout.blocks,
        sequences: base + layout.sequences,
        literals: base + layout.literals,
        staged: base + layout.staged,
        checksums: base + layout.checksums,
        packed: packed.address(),
        ranges: base + layout.ranges,
        slot_count: chunks.len() as u32,
        block_count: first_block,
        unused: 0,
    };
    let launch = |kernel, grid, threads, shared| -> Result<(), BufferError> {
        // SAFETY: the addresses are those of buffers that the `enqueue` below holds, laid out as `Layout` says, which is as the kernels want it.
        unsafe { engine.launch(context.queue, kernel, Launch { grid, threads, shared }, bytemuck::bytes_of(&params)) }
    };
    let reads: Vec<&Buffer> = chunks.iter().collect();
    enqueue(context.queue, &reads, &[&scratch, &packed], || {
        if checksum {
            launch(Kernel::ZstdSums, params.slot_count, ZSTD_CHECKSUM_THREADS, 0)?;
        }
        launch(Kernel::ZstdMatches, params.block_count, ZSTD_MATCHES_THREADS, ZSTD_MATCHES_SHARED)?;
        launch(Kernel::ZstdCompress, params.block_count, ZSTD_COMPRESS_THREADS, ZSTD_COMPRESS_SHARED)?;
        launch(Kernel::ZstdLayout, 1, ZSTD_LAYOUT_THREADS, ZSTD_LAYOUT_THREADS / 32 * 8)?;
        launch(Kernel::ZstdPack, params.block_count, ZSTD_PACK_THREADS, 0)
    })?;
    let ranges = len_of(layout.ranges)?;
    let ranges = scratch.slice(ranges..ranges + chunks.len() * RANGE_LEN)?;
    Ok((packed, ranges))
}

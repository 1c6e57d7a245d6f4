// From blocks to frames (RFC 8878 3.1.1), one behind the other.
#pragma once

#include "../bytes.cuh"
#include "../zstd/checksum.cuh"
#include "format.cuh"

// Frames of more bytes than a window of its own say how far back matches lie, so that who decodes them piece by piece needs little memory.
constexpr u32 ENCODE_WINDOW = 2 * ZSTD_ENCODE_BLOCK;
constexpr u32 ENCODE_WINDOW_DESCRIPTOR = (17 - 10) << 3;
static_assert(ENCODE_WINDOW == 1u << 17, "as the descriptor says");

// Bytes of a frame's header.
DEVICE u32 frame_header_len(u32 len) { return 4 + 1 + (len > ENCODE_WINDOW ? 1 : 0) + (len < 256 ? 1 : len < 65536 + 256 ? 2 : 4); }

// Writes it (RFC 8878 3.1.1.1). Scope: one thread.
DEVICE void write_frame_header(u8* at, const EncodeSource& source) {
    u32 len = source.len;
    u32 size = len < 256 ? 0 : len < 65536 + 256 ? 1 : 2;
    bool single = len <= ENCODE_WINDOW;
    u32 magic = 0xfd2fb528;
    for (u32 i = 0; i < 4; i++) *at++ = (u8)(magic >> 8 * i);
    *at++ = (u8)(size << 6 | (single ? 1 << 5 : 0) | (source.checksum != 0 ? 1 << 2 : 0));
    if (!single) *at++ = (u8)ENCODE_WINDOW_DESCRIPTOR;
    u32 content = size == 1 ? len - 256 : len;
    for (u32 i = 0; i < (1u << size); i++) *at++ = (u8)(content >> 8 * i);
}

DEVICE bool is_last_block(const EncodeSource& source, const EncodeBlock& block) { return block.start + block.len == source.len; }

// zstd_layout: where blocks and chunks go.
//   grid: one block of ZSTD_LAYOUT_THREADS threads
//   reads: sources, blocks; writes: blocks, ranges
KERNEL(zstd_layout, Encode, ZSTD_LAYOUT_THREADS, 1) {
    u64* sums = (u64*)shared_memory();
    u32 thread = thread_index(), threads = block_threads();
    u32 warp = thread / WARP, warps = threads / WARP;
    u64 before = 0;
    for (u32 base = 0; base < p.block_count; base += threads) {
        u32 index = base + thread;
        bool is_there = index < p.block_count;
        EncodeBlock block = {};
        u32 size = 0, around = 0;
        bool first = false, last = false;
        if (is_there) {
            block = p.blocks[index];
            const EncodeSource& source = p.sources[block.slot];
            first = block.start == 0;
            last = is_last_block(source, block);
            around = last && source.checksum != 0 ? 4 : 0;
            size = (first ? frame_header_len(source.len) : 0) + ZSTD_BLOCK_HEADER + block.size + around;
        }
        u32 sum = warp_inclusive_sum(size);
        if (lane_index() == WARP - 1) sums[warp] = sum;
        block_barrier();
        u64 at = before + sum - size;
        for (u32 i = 0; i < warps; i++) {
            if (i < warp) at += sums[i];
            before += sums[i];
        }
        if (is_there) {
            p.blocks[index].packed = at;
            if (first) p.ranges[block.slot].start = at;
            if (last) p.ranges[block.slot].end = at + size;
        }
        block_barrier();
    }
}

// zstd_sums: checksums of chunks that want one.
//   grid: a warp for each chunk
//   reads: sources and their data; writes: checksums
KERNEL(zstd_sums, Encode, ZSTD_CHECKSUM_THREADS, 16) {
    const EncodeSource& source = p.sources[block_index()];
    if (source.checksum == 0) return;
    u32 sum = xxh64_low(source.data, source.len);
    if (lane_index() == 0) p.checksums[block_index()] = sum;
}

// zstd_pack: frames.
//   grid: a block of threads for each block
//   reads: sources and their data, blocks, staged, checksums; writes: packed
KERNEL(zstd_pack, Encode, ZSTD_PACK_THREADS, 4) {
    const EncodeBlock& block = p.blocks[block_index()];
    const EncodeSource& source = p.sources[block.slot];
    u32 thread = thread_index(), threads = block_threads();
    u8* to = p.packed + block.packed;
    bool last = is_last_block(source, block);
    u32 header = block.start == 0 ? frame_header_len(source.len) : 0;
    if (thread == 0) {
        if (header != 0) write_frame_header(to, source);
        u32 kind = (last ? 1 : 0) | (block.raw != 0 ? 0 : 2 << 1) | block.size << 3;
        for (u32 i = 0; i < ZSTD_BLOCK_HEADER; i++) to[header + i] = (u8)(kind >> 8 * i);
    }
    to += header + ZSTD_BLOCK_HEADER;
    const u8* from = block.raw != 0 ? source.data + block.start : staged_of(p, source.at + block.start, block_index());
    // 16 bytes at a time, where they go to an aligned place.
    u32 lead = minimum((u32)(0 - (size_t)to) & 15, block.size);
    for (u32 i = thread; i < lead; i += threads) to[i] = from[i];
    for (u32 i = lead + thread * 16; i < block.size; i += threads * 16) {
        u32 count = minimum(block.size - i, 16u);
        if (count == 16) {
            store16(to + i, load_any<false>(from, block.size, i));
        } else {
            for (u32 byte = 0; byte < count; byte++) to[i + byte] = from[i + byte];
        }
    }
    if (thread == 0 && last && source.checksum != 0) {
        for (u32 i = 0; i < 4; i++) to[block.size + i] = (u8)(p.checksums[block.slot] >> 8 * i);
    }
}

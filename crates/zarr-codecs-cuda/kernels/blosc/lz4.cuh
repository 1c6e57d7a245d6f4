// Chunks whose streams are LZ4 blocks, a warp for each stream.
#pragma once

#include "../lz4/block.cuh"
#include "header.cuh"

// blosc_plan: checks headers and the places of all streams.
//   grid: a warp for each slot, in blocks of BLOSC_PLAN_THREADS threads
//   reads: slots, encoded bytes; writes: errors
KERNEL(blosc_plan, Blosc, BLOSC_PLAN_THREADS, 16) {
    const BloscSlot& slot = p.slots[block_index()];
    u32* error = p.errors + block_index();
    Input in = slot.input();
    BloscHeader header;
    u32 reason = blosc_header(in, slot.decoded_len, BLOSC_LZ4, header);
    if (lane_index() == 0) *error = reason == BLOSC_GOOD ? BLOSC_NO_ERROR : reason;
    warp_barrier();
    if (reason != BLOSC_GOOD || header.stored) return;
    // Blocks that share bytes could make a small chunk take long; nobody writes such.
    u64 taken = 0;
    for (u32 block = lane_index(); block < header.blocks(); block += WARP) {
        BloscStreams streams = {};
        reason = blosc_open_block(in, header, block, streams);
        u32 first = streams.next;
        for (u32 i = 0; i < streams.count && reason == BLOSC_GOOD; i++) reason = blosc_next_stream(in, streams);
        if (reason != BLOSC_GOOD) {
            blosc_fail(error, block, reason);
            break;
        }
        taken += streams.next - first;
    }
    for (u32 delta = WARP / 2; delta != 0; delta /= 2) taken += warp_shuffle(taken, lane_index() ^ delta);
    if (taken > in.len && lane_index() == 0) blosc_fail(error, 0, BLOSC_OVERLAP);
}

// blosc_lz4: the streams of a batch of chunks.
//   grid: `parts` blocks of BLOSC_LZ4_THREADS threads for each slot, whose n warps take its streams in turn: stream i is that of warp i mod n
//   reads: slots, errors, encoded bytes; writes: streams, errors
KERNEL(blosc_lz4, Blosc, BLOSC_LZ4_THREADS, 8) {
    u32 slot_index = block_index() / p.parts, warps = block_threads() / WARP;
    if (slot_index >= p.slot_count) return;
    const BloscSlot& slot = p.slots[slot_index];
    u32* error = p.errors + slot_index;
    // Others may fail meanwhile: one lane looks for all.
    if (warp_shuffle(*error, 0) != BLOSC_NO_ERROR) return;
    Lz4Input in(slot.input());
    BloscHeader header;
    blosc_header(in.in, slot.decoded_len, BLOSC_LZ4, header);
    if (header.stored) return;
    u32 whole = header.decoded_len / header.block_size, each = header.streams(header.block_size);
    u32 count = whole * each + (whole < header.blocks() ? 1 : 0);
    for (u32 index = block_index() % p.parts * warps + thread_index() / WARP; index < count; index += p.parts * warps) {
        u32 block = minimum(index / each, whole);
        BloscStreams streams = {};
        blosc_open_block(in.in, header, block, streams);
        u32 before = index - block * each;
        for (u32 i = 0; i <= before; i++) blosc_next_stream(in.in, streams);
        u8* output = slot.streams + (u64)block * header.block_size + (u64)before * streams.decoded_len;
        if (streams.len == streams.decoded_len) lz4_copy<true>(in.in.data, in.in.len, streams.start, output, streams.len);
        else if (!lz4_rest(in, streams.start, streams.next, output, 0, streams.decoded_len) && lane_index() == 0) blosc_fail(error, block, BLOSC_DAMAGED);
    }
}

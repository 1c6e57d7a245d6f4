// From contiguous elements to boxes of an output.
#pragma once

#include "constants.cuh"

// One chunk: runs of bytes in C order, and where they go.
struct ScatterSlot {
    const u8* from;
    u8* to;
    // Bytes of a run, and how many runs there are.
    u32 run, runs;
    u32 axes;
    u32 unused;
    // Runs along each axis, slowest first, and bytes from one to the next in the output.
    u32 shape[SCATTER_AXES];
    i64 strides[SCATTER_AXES];
};
static_assert(sizeof(ScatterSlot) == SCATTER_SLOT_SIZE, "as the host has it");

struct Scatter {
    const ScatterSlot* slots;
    u32 slot_count;
    // Blocks of threads that share a slot.
    u32 parts;
};
static_assert(sizeof(Scatter) == SCATTER_PARAMS_SIZE, "as the host has it");

// Where a run goes. Scope: one thread.
DEVICE u8* scatter_target(const ScatterSlot& slot, u32 run) {
    i64 offset = 0;
    for (u32 axis = slot.axes; axis-- > 0;) {
        u32 len = slot.shape[axis];
        offset += (i64)(run % len) * slot.strides[axis];
        run /= len;
    }
    return slot.to + offset;
}

// Copies a run, in the largest units that both sides are aligned to; the threads `first`, `first + step`, .. share it.
DEVICE void scatter_run(const u8* from, u8* to, u32 len, u32 first, u32 step) {
    size_t alignment = (size_t)from | (size_t)to | len;
    if ((alignment & 15) == 0) {
        for (u32 at = first * 16; at < len; at += step * 16) store16(to + at, *(const Bytes16*)(from + at));
    } else if ((alignment & 3) == 0) {
        for (u32 at = first * 4; at < len; at += step * 4) *(u32*)(to + at) = *(const u32*)(from + at);
    } else if ((alignment & 1) == 0) {
        for (u32 at = first * 2; at < len; at += step * 2) *(u16*)(to + at) = *(const u16*)(from + at);
    } else {
        for (u32 at = first; at < len; at += step) to[at] = from[at];
    }
}

// elements_scatter: the decoded chunks of a batch, each to its box of the output.
//   grid: `parts` blocks of SCATTER_THREADS threads for each slot
//   reads: slots, and `run * runs` bytes of each; writes: the runs' places, which do not overlap
KERNEL(elements_scatter, Scatter, SCATTER_THREADS, 4) {
    u32 slot_index = block_index() / p.parts, part = block_index() % p.parts;
    if (slot_index >= p.slot_count) return;
    const ScatterSlot& slot = p.slots[slot_index];
    u32 run = slot.run, runs = slot.runs;
    if (run <= 64) {
        // Short runs: one to a thread.
        for (u32 index = part * block_threads() + thread_index(); index < runs; index += p.parts * block_threads())
            scatter_run(slot.from + (u64)index * run, scatter_target(slot, index), run, 0, 1);
    } else {
        u32 warps = block_threads() / WARP;
        for (u32 index = part * warps + thread_index() / WARP; index < runs; index += p.parts * warps)
            scatter_run(slot.from + (u64)index * run, scatter_target(slot, index), run, lane_index(), WARP);
    }
}

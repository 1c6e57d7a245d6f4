// Chunks that a block of threads decodes, span by span.
#pragma once

#include "spans.cuh"

// One chunk, as the host describes it.
struct SpanSlot {
    const u8* encoded;
    // Contiguous room for `decoded_len` bytes.
    u8* decoded;
    u32 encoded_len, decoded_len;

    DEVICE_MEMBER Input input() const { return Input{encoded, encoded_len}; }
};
static_assert(sizeof(SpanSlot) == SPANS_SLOT_SIZE, "as the host has it");

// What the host gives the kernels.
struct SpanChunks {
    const SpanSlot* slots;
    u32* statuses;
    // Slots that blocks of threads have taken: 0 at first.
    u32* taken;
    // SPANS_ARENA bytes for each block of threads.
    u8* arena;
    u32 slot_count;
    // Of which format, to codecs that have several.
    u32 format;
};
static_assert(sizeof(SpanChunks) == SPANS_PARAMS_SIZE, "as the host has it");

// What is common to kernels of such chunks: blocks of threads take one slot after the other; where something is wrong they leave zeros, so that no memory of before shows.
//   grid: any number of blocks of Shared::Span::THREADS threads
//   reads: slots, encoded bytes, decoded bytes; writes: decoded bytes, statuses, the arena, `taken`
//   shared: Shared, whose `span_slot` and `span_literals` are used here, and whose `decode` decodes a chunk
template <class Shared> DEVICE void decode_chunks(const SpanChunks& p) {
    Shared& shared = *(Shared*)shared_memory();
    const SpanArena arena = SpanArena::of<typename Shared::Span>(p.arena + (u64)block_index() * SPANS_ARENA, shared.span_literals);
    for (;;) {
        block_barrier();
        if (thread_index() == 0) shared.span_slot = atomic_add(p.taken, 1);
        block_barrier();
        u32 index = shared.span_slot;
        if (index >= p.slot_count) return;
        const SpanSlot slot = p.slots[index];
        u32 reason = shared.decode(slot, p.format, arena);
        block_barrier();
        if (reason != SPANS_GOOD) fill_run(0, slot.decoded_len, slot.decoded);
        if (thread_index() == 0) p.statuses[index] = reason;
    }
}

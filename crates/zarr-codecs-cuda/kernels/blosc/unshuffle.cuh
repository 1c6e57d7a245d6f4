// The last stage of a chunk of blosc: elements are put together again, block by block, and verdicts are written.
#pragma once

#include "../elements/scatter.cuh"
#include "header.cuh"

// The bytes of 8 rows of bits, one row in each byte, as columns: bit `i` of byte `k` goes to bit `k` of byte `i` (Warren, Hacker's Delight, 7-3).
DEVICE u64 transpose_bits(u64 bits) {
    u64 swap = (bits ^ bits >> 7) & 0x00aa00aa00aa00aa;
    bits ^= swap ^ swap << 7;
    swap = (bits ^ bits >> 14) & 0x0000cccc0000cccc;
    bits ^= swap ^ swap << 14;
    swap = (bits ^ bits >> 28) & 0x00000000f0f0f0f0;
    return bits ^ swap ^ swap << 28;
}

// Four elements of SIZE bytes from as many planes, where all is aligned to 4 bytes. Scope: one thread.
template <u32 SIZE> DEVICE void unshuffle_four(const u8* planes, u32 plane_len, u8* to) {
    u32 plane[SIZE];
    UNROLL
    for (u32 i = 0; i < SIZE; i++) plane[i] = *(const u32*)(planes + (u64)i * plane_len);
    UNROLL
    for (u32 word = 0; word < SIZE; word++) {
        u32 value = 0;
        UNROLL
        for (u32 i = 0; i < 4; i++) value |= (plane[(word * 4 + i) % SIZE] >> (word * 4 + i) / SIZE * 8 & 0xff) << 8 * i;
        ((u32*)to)[word] = value;
    }
}

// Elements `first` to `first + 3` of a block of `elements`, as far as there are such.
DEVICE void unshuffle_bytes(const u8* from, u8* to, u32 size, u32 elements, u32 first) {
    to += (u64)first * size;
    from += first;
    bool aligned = elements - first >= 4 && (((size_t)from | (size_t)to | elements) & 3) == 0;
    if (aligned && size == 2) unshuffle_four<2>(from, elements, to);
    else if (aligned && size == 4) unshuffle_four<4>(from, elements, to);
    else if (aligned && size == 8) unshuffle_four<8>(from, elements, to);
    else {
        for (u32 i = 0; i < minimum(elements - first, 4u); i++) {
            for (u32 byte = 0; byte < size; byte++) to[i * size + byte] = from[(u64)byte * elements + i];
        }
    }
}

// Elements `first` to `first + 7` of a block whose elements are a multiple of 8.
DEVICE void unshuffle_bits(const u8* from, u8* to, u32 size, u32 elements, u32 first) {
    for (u32 byte = 0; byte < size; byte++) {
        u64 rows = 0;
        for (u32 bit = 0; bit < 8; bit++) rows |= (u64)from[(u64)(byte * 8 + bit) * (elements / 8) + first / 8] << 8 * bit;
        rows = transpose_bits(rows);
        for (u32 i = 0; i < 8; i++) to[(u64)(first + i) * size + byte] = (u8)(rows >> 8 * i);
    }
}

// blosc_unshuffle: from the streams of a batch of chunks to what was encoded; zeros where something is wrong, so that no memory of before shows.
//   grid: `parts` blocks of BLOSC_UNSHUFFLE_THREADS threads for each slot
//   reads: slots, errors (where there are some, else statuses), encoded bytes, streams; writes: decoded bytes, statuses (where there are errors)
//   shared: a header
KERNEL(blosc_unshuffle, Blosc, BLOSC_UNSHUFFLE_THREADS, 4) {
    BloscHeader& header = *(BloscHeader*)shared_memory();
    u32 slot_index = block_index() / p.parts, part = block_index() % p.parts;
    if (slot_index >= p.slot_count) return;
    const BloscSlot& slot = p.slots[slot_index];
    u32 status = p.errors == nullptr ? p.statuses[slot_index] : p.errors[slot_index] == BLOSC_NO_ERROR ? BLOSC_GOOD : p.errors[slot_index];
    u32 first = part * block_threads() + thread_index(), step = p.parts * block_threads();
    if (first == 0 && p.errors != nullptr) p.statuses[slot_index] = status;
    if (status != BLOSC_GOOD) {
        for (u64 at = first; at < slot.decoded_len; at += step) slot.decoded[at] = 0;
        return;
    }
    // The inner codec was compared before.
    if (thread_index() == 0) blosc_header(slot.input(), slot.decoded_len, slot.input().byte(2) >> 5, header);
    block_barrier();
    u32 size = header.type_size, whole = header.decoded_len / maximum(header.block_size, 1u);
    if (header.stored || header.shuffle == BLOSC_NO_SHUFFLE) {
        scatter_run(header.stored ? slot.encoded + BLOSC_HEADER_LEN : slot.streams, slot.decoded, slot.decoded_len, first, step);
        return;
    }
    // Blocks are alike, but for the last one.
    u32 group = header.shuffle == BLOSC_BIT_SHUFFLE ? 8 : 4, each = (header.block_size / size + group - 1) / group;
    u32 tail_len = header.decoded_len - whole * header.block_size, tail = (tail_len / size + group - 1) / group;
    u64 groups = (u64)whole * each + tail;
    for (u64 index = first; index < groups; index += step) {
        u32 block = each == 0 ? whole : (u32)minimum(index / each, (u64)whole), elements = header.block_len(block) / size;
        u64 start = (u64)block * header.block_size;
        u32 from = (u32)(index - (u64)block * each) * group;
        if (group == 4) unshuffle_bytes(slot.streams + start, slot.decoded + start, size, elements, from);
        // As c-blosc has it, nothing happens to others.
        else if (elements % 8 == 0) unshuffle_bits(slot.streams + start, slot.decoded + start, size, elements, from);
        else scatter_run(slot.streams + start + (u64)from * size, slot.decoded + start + (u64)from * size, minimum(elements - from, group) * size, 0, 1);
    }
    // Bytes behind the last whole element of a block stay where they are.
    for (u32 block = part; block < header.blocks(); block += p.parts) {
        u64 end = (u64)block * header.block_size + header.block_len(block);
        u32 rest = header.block_len(block) % size;
        if (thread_index() < rest) slot.decoded[end - rest + thread_index()] = slot.streams[end - rest + thread_index()];
    }
}

// The checksum of a frame's content: the lower 4 bytes of XXH64 with seed 0 (RFC 8878 3.1.1, "Content_Checksum").
#pragma once

#include "format.cuh"

constexpr u64 XXH_PRIME_1 = 0x9e3779b185ebca87, XXH_PRIME_2 = 0xc2b2ae3d27d4eb4f, XXH_PRIME_3 = 0x165667b19e3779f9;
constexpr u64 XXH_PRIME_4 = 0x85ebca77c2b2ae63, XXH_PRIME_5 = 0x27d4eb2f165667c5;

DEVICE u64 rotate_left(u64 value, u32 bits) { return value << bits | value >> (64 - bits); }
DEVICE u64 xxh_round(u64 lane, u64 word) { return rotate_left(lane + word * XXH_PRIME_2, 31) * XXH_PRIME_1; }

// A word of decoded bytes, at any alignment.
DEVICE u64 load_word(const u8* at, u32 bytes) {
    if (bytes == 8 && ((size_t)at & 7) == 0) return *(const u64*)at;
    u64 value = 0;
    for (u32 i = 0; i < bytes; i++) value |= (u64)at[i] << 8 * i;
    return value;
}

// Scope: a warp. Four of its lanes have one of the four sums each: the sums are serial, the loads are not.
DEVICE u32 xxh64_low(const u8* data, u32 len) {
    u32 lane = lane_index(), which = lane % 4;
    u64 sum = which == 0 ? XXH_PRIME_1 + XXH_PRIME_2 : which == 1 ? XXH_PRIME_2 : which == 2 ? 0 : 0 - XXH_PRIME_1;
    u32 stripes = len / 32;
    // Eight stripes at a time, a word for each lane.
    for (u32 base = 0; base < stripes; base += 8) {
        u32 mine = base + lane / 4;
        u64 word = mine < stripes ? load_word(data + (u64)mine * 32 + which * 8, 8) : 0;
        for (u32 i = 0; i < 8; i++) {
            u64 next = warp_shuffle(word, i * 4 + which);
            if (base + i < stripes) sum = xxh_round(sum, next);
        }
    }
    u64 hash = XXH_PRIME_5;
    u64 sums[4];
    for (u32 i = 0; i < 4; i++) sums[i] = warp_shuffle(sum, i);
    if (stripes != 0) {
        hash = rotate_left(sums[0], 1) + rotate_left(sums[1], 7) + rotate_left(sums[2], 12) + rotate_left(sums[3], 18);
        for (u32 i = 0; i < 4; i++) hash = (hash ^ xxh_round(0, sums[i])) * XXH_PRIME_1 + XXH_PRIME_4;
    }
    hash += len;
    const u8* at = data + (u64)stripes * 32;
    u32 left = len % 32;
    for (; left >= 8; left -= 8, at += 8) hash = rotate_left(hash ^ xxh_round(0, load_word(at, 8)), 27) * XXH_PRIME_1 + XXH_PRIME_4;
    if (left >= 4) {
        hash = rotate_left(hash ^ load_word(at, 4) * XXH_PRIME_1, 23) * XXH_PRIME_2 + XXH_PRIME_3;
        left -= 4;
        at += 4;
    }
    for (; left > 0; left--, at++) hash = rotate_left(hash ^ *at * XXH_PRIME_5, 11) * XXH_PRIME_1;
    hash = (hash ^ hash >> 33) * XXH_PRIME_2;
    hash = (hash ^ hash >> 29) * XXH_PRIME_3;
    return (u32)(hash ^ hash >> 32);
}

// zstd_checksum: verifies the checksums of frames that have one.
//   grid: a warp for each slot
//   reads: slots, states, blocks, encoded and decoded bytes; writes: states
KERNEL(zstd_checksum, Decode, ZSTD_CHECKSUM_THREADS, 16) {
    const Slot& slot = p.slots[block_index()];
    SlotState* state = p.states + block_index();
    bool stop = state->error != NO_ERROR || state->serial != 0 || state->checksums == 0;
    warp_barrier();
    if (stop) return;
    Input in = slot.input();
    for (u32 index = 0; index < state->resolved; index++) {
        const Block& block = p.blocks[slot.first_block + index];
        if (!block.last || !block.checksum) continue;
        u32 end = block.output + block.output_len;
        u32 at = block.input + (block.kind == RLE_BLOCK ? 1 : block.size);
        u32 sum = xxh64_low(slot.decoded + block.frame_start, end - block.frame_start);
        if (sum != in.le32(at) && lane_index() == 0) fail(state, index, ZSTD_CHECKSUM);
    }
}

// zstd_finish: the verdicts; the output of slots that failed becomes zeros, so that no memory of before shows.
//   grid: a block of ZSTD_FINISH_THREADS threads for each slot
//   reads: slots, states; writes: statuses (the reason, above it the block), decoded bytes
KERNEL(zstd_finish, Decode, ZSTD_FINISH_THREADS, 4) {
    const Slot& slot = p.slots[block_index()];
    const SlotState& state = p.states[block_index()];
    u32 error = state.error;
    if (error == NO_ERROR) {
        if (state.output == slot.decoded_len) error = ZSTD_GOOD;
        else error = ZSTD_OUTPUT_TOO_SMALL;
    }
    if (thread_index() == 0) p.statuses[block_index()] = error;
    if (error == ZSTD_GOOD) return;
    for (u64 at = thread_index(); at < slot.decoded_len; at += block_threads()) slot.decoded[at] = 0;
}

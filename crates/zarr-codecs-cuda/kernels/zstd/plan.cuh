// The first stages: what blocks there are, who describes their tables, and where in the arena they are decoded to.
#pragma once

#include "frames.cuh"
#include "sequences.cuh"

// Of 32 blocks, the last one before each lane that has `defines` set; `carry` before the first. `carry` becomes the last of all. Scope: a warp.
DEVICE u32 last_before(bool defines, u32 base, bool inclusive, u32& carry) {
    u32 all = warp_ballot(defines);
    u32 before = all & (inclusive ? lanes_before() | 1u << lane_index() : lanes_before());
    u32 found = before == 0 ? carry : base + highest_bit(before);
    if (all != 0) carry = base + highest_bit(all);
    return found;
}

// Finds the blocks of a slot, and what is wrong with them. Scope: one thread.
template <class Found> DEVICE void find_blocks(const Slot& slot, u32 slot_index, SlotState& state, Block* blocks) {
    Found frames;
    u32 count = 0, reason = frames.start(slot);
    if (reason != ZSTD_GOOD) state.error = reason;
    while (state.error == NO_ERROR) {
        Block block = {};
        WalkResult result = frames.next(block, reason);
        if (result == WALK_END) break;
        if (result == WALK_FAILED) {
            state.error = minimum(frames.place(count), 0xfffffeu) << 8 | reason;
            break;
        }
        if (count == slot.block_capacity) {
            state.serial = 1;
            break;
        }
        if (block.last && block.checksum) state.checksums = 1;
        block.slot = slot_index;
        block.stream_end = frames.output_end;
        blocks[count++] = block;
    }
    state.blocks = state.serial ? 0 : count;
}

// zstd_plan: finds the blocks of each slot and reads their headers.
//   grid: a block of ZSTD_PLAN_THREADS threads for each slot
//   reads: slots, encoded bytes; writes: states (all of it), blocks, the first `blocks` of each slot; shared: a few numbers
KERNEL(zstd_plan, Decode, ZSTD_PLAN_THREADS, 16) {
    u32* shared = (u32*)shared_memory();
    const Slot& slot = p.slots[block_index()];
    SlotState* state = p.states + block_index();
    Block* blocks = p.blocks + slot.first_block;
    Input in = slot.input();
    u32 lane = lane_index();
    if (thread_index() == 0) {
        SlotState fresh = {};
        fresh.error = NO_ERROR;
        if (slot.is_blosc) find_blocks<Frames>(slot, block_index(), fresh, blocks);
        else find_blocks<PlainFrames>(slot, block_index(), fresh, blocks);
        *state = fresh;
        shared[0] = fresh.blocks;
        shared[1] = 0;
    }
    block_barrier();
    u32 count = shared[0];
    for (u32 index = thread_index(); index < count; index += block_threads()) {
        Block& block = blocks[index];
        if (block.kind == COMPRESSED_BLOCK) {
            u32 reason = read_block_headers(in, block);
            if (reason != ZSTD_GOOD) fail(state, index, reason);
            // More sequences, or larger blocks, than the format wants are for the serial kernel.
            if (block.sequences > ZSTD_BLOCK_SEQUENCES) atomic_or(&shared[1], 1);
            block.output_len = block.sequences == 0 ? block.literals_len : 0;
        } else {
            block.output_len = block.size;
            block.literals_kind = RAW_LITERALS;
            block.sequences = 0;
        }
    }
    block_barrier();
    if (thread_index() >= WARP) return;
    // Definitions hold from block to block of a frame; so do sums.
    u32 tree = ~0u, table[3] = {~0u, ~0u, ~0u}, frame = 0, need = 0, most = 0, staged = 0;
    for (u32 base = 0; base < count; base += WARP) {
        u32 index = base + lane;
        bool there = index < count;
        Block& block = blocks[there ? index : count - 1];
        bool compressed = there && block.kind == COMPRESSED_BLOCK;
        u32 frame_start = last_before(there && block.first, base, true, frame);
        u32 literals = compressed ? block.literals_kind : (u32)RAW_LITERALS;
        u32 tree_block = last_before(literals == COMPRESSED_LITERALS, base, true, tree);
        bool sequences = compressed && block.sequences != 0;
        u32 defined[3];
        for (u32 which = 0; which < 3; which++) {
            defined[which] = last_before(sequences && table_mode(block, which) != REPEAT_TABLE, base, true, table[which]);
            if (defined[which] != ~0u && defined[which] < frame_start) defined[which] = ~0u;
        }
        if (tree_block != ~0u && tree_block < frame_start) tree_block = ~0u;
        u32 room = compressed ? (literals_room(slot, block) + sequences_room(slot, block)) / 16 : 0;
        u32 sum = warp_inclusive_sum(room);
        u32 decoded = literals >= COMPRESSED_LITERALS ? block.literals_len : 0;
        u32 decoded_sum = warp_inclusive_sum(decoded);
        if (compressed) {
            if (literals == TREELESS_LITERALS && tree_block == ~0u) fail(state, index, ZSTD_NO_TREE);
            bool missing = defined[0] == ~0u || defined[1] == ~0u || defined[2] == ~0u;
            if (sequences && missing) fail(state, index, ZSTD_NO_TABLE);
            block.tree_block = tree_block;
            for (u32 which = 0; which < 3; which++) block.table_block[which] = defined[which];
        }
        if (there) {
            block.need_before = need + sum - room;
            block.literals_at = staged + decoded_sum - decoded;
        }
        need += warp_shuffle(sum, WARP - 1);
        if (slot.compact()) staged += warp_shuffle(decoded_sum, WARP - 1);
        for (u32 from = 0; from < WARP; from++) most = maximum(most, warp_shuffle(room, from));
    }
    if (lane == 0) {
        state->need = need;
        state->most = most;
        state->literals = staged;
        // More literals than there is output: an error, and no room for them.
        if (shared[1] != 0 || staged > slot.decoded_len) {
            state->serial = 1;
            state->blocks = 0;
            state->need = 0;
        }
    }
}

// zstd_assign: divides the arena among the slots and the waves.
//   grid: one block of ZSTD_ASSIGN_THREADS threads; shared: two numbers of 64 bits for each warp
//   reads and writes: states
// If everything fits at once, it does. If each slot can have a part of every wave, each does, and all slots are decoded side by side. If not, whole
// slots go one after the other. A slot that fits no way is left to the serial kernel.
KERNEL(zstd_assign, Decode, ZSTD_ASSIGN_THREADS, 1) {
    u64* sums = (u64*)shared_memory();
    u32 lane = lane_index(), warp = thread_index() / WARP, warps = block_threads() / WARP;
    u64 total = 0, most = 0;
    for (u32 index = thread_index(); index < p.slot_count; index += block_threads()) {
        total += p.states[index].need;
        most += p.states[index].most + 1;
    }
    for (u32 delta = WARP / 2; delta != 0; delta /= 2) {
        total += warp_shuffle(total, lane ^ delta);
        most += warp_shuffle(most, lane ^ delta);
    }
    if (lane == 0) {
        sums[warp] = total;
        sums[warps + warp] = most;
    }
    block_barrier();
    if (warp != 0) return;
    total = most = 0;
    for (u32 from = 0; from < warps; from++) {
        total += sums[from];
        most += sums[warps + from];
    }
    u32 parts = 0;
    if (total <= p.arena_len) {
        parts = 1;
    } else if (most < p.arena_len) {
        u64 room = p.arena_len - most;
        u64 wanted = maximum((total + room - 1) / room, (u64)2);
        if (wanted <= p.wave_count) parts = (u32)wanted;
    }
    u32 at = 0, wave = 0;
    for (u32 base = 0; base < p.slot_count; base += WARP) {
        u32 index = base + lane;
        bool there = index < p.slot_count;
        SlotState* state = p.states + minimum(index, p.slot_count - 1);
        u32 need = there ? state->need : 0;
        if (parts != 0) {
            // A part, rounded up, and the block that may reach over its end. `room` counts the rounding.
            u32 each = !there ? 0 : parts == 1 ? need : (need + parts - 1) / parts + state->most;
            u32 sum = warp_inclusive_sum(each);
            if (there) {
                state->base = at + sum - each;
                state->wave = parts << 16;
            }
            at += warp_shuffle(sum, WARP - 1);
        } else if (warp_ballot(need > p.arena_len / WARP) == 0 && warp_sum(need) <= p.arena_len - at && wave < p.wave_count) {
            // All of these fit.
            u32 sum = warp_inclusive_sum(need);
            if (there) {
                state->base = at + sum - need;
                state->wave = need == 0 ? 0 : wave;
            }
            at += warp_shuffle(sum, WARP - 1);
        } else {
            for (u32 from = 0; from < WARP; from++) {
                u32 wants = warp_shuffle(need, from);
                bool serial = wants > p.arena_len;
                if (!serial && wants > p.arena_len - at && wants != 0) {
                    wave++;
                    at = 0;
                }
                serial |= wave >= p.wave_count && wants != 0;
                if (lane == from && there) {
                    state->base = at;
                    state->wave = wants == 0 ? 0 : wave;
                    if (serial) {
                        state->serial = 1;
                        state->blocks = 0;
                    }
                }
                if (!serial) at += wants;
            }
        }
    }
}

// The wave of a block, given what its slot needs before it.
DEVICE u32 wave_of(const SlotState& state, u32 need_before) {
    u32 parts = state.wave >> 16;
    if (parts == 0) return state.wave;
    return state.need == 0 ? 0 : minimum((u32)((u64)need_before * parts / state.need), parts - 1);
}

// One block's place in a list of work: the classes with more work come before its own.
DEVICE void list_work(const Decode& p, u32 wave, u32 which, u32 work, u32 work_max, u32 block) {
    u32 of = ZSTD_CLASSES - 1 - minimum(work * ZSTD_CLASSES / work_max, ZSTD_CLASSES - 1);
    Wave& to = p.waves[wave];
    if (p.batch == 0) {
        atomic_add(&to.counted[which][of], 1);
        return;
    }
    u32 at = atomic_add(&to.listed[which][of], 1);
    for (u32 i = 0; i < of; i++) at += to.counted[which][i];
    u32* list = which == 0 ? p.literals_list : p.sequences_list;
    list[(u64)wave * p.block_capacity + at] = block;
}

// zstd_list: gives blocks their places in the arena, and lists the work of each wave. Launched twice, with `batch` 0 to count and 1 to list.
//   grid: as zstd_plan
//   reads: slots, states; writes: blocks, waves (zero before), lists
KERNEL(zstd_list, Decode, ZSTD_PLAN_THREADS, 16) {
    const Slot& slot = p.slots[block_index()];
    const SlotState& state = p.states[block_index()];
    if (state.error != NO_ERROR) return;
    for (u32 index = thread_index(); index < state.blocks; index += block_threads()) {
        Block& block = p.blocks[slot.first_block + index];
        if (block.kind != COMPRESSED_BLOCK) continue;
        u32 parts = state.wave >> 16, before = block.need_before, wave = wave_of(state, before);
        u32 start = parts == 0 ? 0 : (u32)((u64)wave * state.need / parts);
        // Rounded down: what starts in this wave starts at or after it.
        u32 at = state.base + (before - start);
        if (!slot.compact()) block.literals_at = at;
        block.sequences_at = at + literals_room(slot, block) / 16;
        if (block.literals_kind >= COMPRESSED_LITERALS) list_work(p, wave, 0, block.literals_len, ZSTD_BLOCK_MAX, slot.first_block + index);
        if (block.sequences != 0) list_work(p, wave, 1, block.sequences, ZSTD_BLOCK_MAX / 6, slot.first_block + index);
    }
}

// Frames that the parallel stages have no room for: blocks by the thousand, or larger than the format wants. One block after the other, by one
// block of threads, with room of its own. Rare, and slow; what it accepts is the same.
#pragma once

#include "checksum.cuh"
#include "execute.cuh"
#include "frames.cuh"

struct SerialShared {
    union {
        LiteralsShared literals;
        struct {
            SequencesShared sequences;
            SequencesEach tables;
        };
        // 256 threads: 4096 bytes.
        u8 tile[4096 * 2 + (4096 / 3 + 4) * sizeof(Place)];
    };
    Frames frames;
    Block block;
    // The blocks that describe the tree and the tables, and whether there is one in this frame.
    Block tree, table[3];
    bool has_tree, has_tables;
    WalkResult step;
    u32 reason;
    u32 index, output, stream_end, frame_start, repeats[3];
};
static_assert(sizeof(SerialShared) <= ZSTD_SERIAL_SHARED, "as the host has it");

// The next block, and all that its headers say. Scope: one thread.
DEVICE_CALL void serial_next(SerialShared& shared) {
    Block block = {};
    shared.step = shared.frames.next(block, shared.reason);
    if (shared.step != WALK_BLOCK) return;
    shared.reason = ZSTD_GOOD;
    block.stream_end = shared.frames.output_end;
    if (block.stream_end != shared.stream_end && shared.output != shared.stream_end) {
        shared.reason = ZSTD_OUTPUT_TOO_SMALL;
        return;
    }
    shared.stream_end = block.stream_end;
    if (block.first) {
        shared.has_tree = shared.has_tables = false;
        shared.frame_start = shared.output;
        shared.repeats[0] = 1;
        shared.repeats[1] = 4;
        shared.repeats[2] = 8;
    }
    block.output = shared.output;
    block.frame_start = shared.frame_start;
    block.output_len = block.size;
    for (u32 i = 0; i < 3; i++) block.entry_repeats[i] = shared.repeats[i];
    if (block.kind == COMPRESSED_BLOCK) {
        shared.reason = read_block_headers(shared.frames.input, block);
        if (shared.reason != ZSTD_GOOD) return;
        if (block.literals_kind == COMPRESSED_LITERALS) {
            shared.tree = block;
            shared.has_tree = true;
        }
        if (block.literals_kind == TREELESS_LITERALS && !shared.has_tree) shared.reason = ZSTD_NO_TREE;
        if (block.sequences != 0) {
            for (u32 which = 0; which < 3; which++) {
                if (table_mode(block, which) != REPEAT_TABLE) shared.table[which] = block;
                else if (!shared.has_tables) shared.reason = ZSTD_NO_TABLE;
            }
            shared.has_tables = true;
        }
        block.output_len = block.literals_len;
    }
    if (block.output_len > block.stream_end - shared.output) shared.reason = ZSTD_OUTPUT_TOO_LARGE;
    shared.block = block;
}

// One slot, if it was left. Scope: a block of threads.
DEVICE_CALL void serial_slot(const Decode& p, SerialShared& shared, u32 slot_index, u8* literals, u8* staged) {
    bool first_thread = thread_index() == 0;
    const Slot& slot = p.slots[slot_index];
    SlotState* state = p.states + slot_index;
    bool skip = state->serial == 0 || state->error != NO_ERROR;
    block_barrier();
    if (skip) return;
    Input in = slot.input();
    if (first_thread) {
        // What is wrong with it as a whole was found before.
        shared.frames.start(slot);
        shared.index = shared.output = shared.stream_end = 0;
    }
    for (;;) {
        if (first_thread) serial_next(shared);
        block_barrier();
        Block& block = shared.block;
        u32 reason = shared.reason;
        WalkResult step = shared.step;
        if (step == WALK_END || step == WALK_FAILED || reason != ZSTD_GOOD) {
            if (first_thread && step != WALK_END) fail(state, shared.index, reason);
            break;
        }
        u8* output = slot.decoded + block.output;
        if (block.kind != COMPRESSED_BLOCK) {
            copy_block(in, block, nullptr, output);
        } else {
            if (thread_index() < WARP && block.literals_kind >= COMPRESSED_LITERALS) {
                LiteralsTask task{in, &block, &shared.tree, literals, state, shared.index};
                decode_literals(shared.literals, task, 1);
            }
            block_barrier();
            if (thread_index() < WARP && block.sequences != 0) {
                Tables& tables = shared.tables.tables;
                u32 stream = 0;
                if (first_thread) {
                    const Block* defined_by[3];
                    for (u32 i = 0; i < 3; i++) defined_by[i] = table_mode(block, i) == REPEAT_TABLE ? &shared.table[i] : &block;
                    stream = tables_open(tables, in, block, defined_by);
                }
                warp_barrier();
                if (tables.good) tables_build(tables, shared.tables.entries, shared.sequences.cells, shared.sequences.starts);
                if (first_thread) {
                    if (!tables.good) {
                        fail(state, shared.index, tables.reason);
                    } else {
                        u32 limit = block_output_max(block, block.stream_end - block.output);
                        u32 logs[3] = {tables.log[0], tables.log[1], tables.log[2]};
                        SequencesResult result = decode_sequences<Wide>(in, block, stream, shared.tables.entries, logs[0], logs[1], logs[2],
                                                                        shared.tables.ring, staged_at(staged, 0, 0), limit);
                        note_sequences(block, state, shared.index, limit, 0, result);
                        u32 entry[3] = {shared.repeats[0], shared.repeats[1], shared.repeats[2]};
                        for (u32 i = 0; i < 3; i++) shared.repeats[i] = resolve_offset(block.repeats[i], Wide::OFFSET_BITS, entry);
                    }
                }
            }
            block_barrier();
            bool failed = state->error != NO_ERROR;
            block_barrier();
            if (failed) break;
            if (!execute_block<Wide, 1>(in, block, literals, staged_at(staged, 0, 0), output, tile_in(shared.tile))) {
                if (first_thread) fail(state, shared.index, ZSTD_OFFSET);
                break;
            }
        }
        block_barrier();
        u32 end = block.output + block.output_len;
        if (thread_index() < WARP && block.last) {
            u32 at = block.input + (block.kind == RLE_BLOCK ? 1 : block.size);
            u32 wrong = block.sized && block.content_size != end - block.frame_start ? ZSTD_CONTENT_SIZE : ZSTD_GOOD;
            if (wrong == ZSTD_GOOD && block.checksum) {
                if (xxh64_low(slot.decoded + block.frame_start, end - block.frame_start) != in.le32(at)) wrong = ZSTD_CHECKSUM;
            }
            if (first_thread && wrong != ZSTD_GOOD) fail(state, shared.index, wrong);
        }
        if (first_thread) {
            shared.output = end;
            shared.index++;
        }
        block_barrier();
        bool failed = state->error != NO_ERROR;
        block_barrier();
        if (failed) break;
    }
    block_barrier();
    if (first_thread) state->output = shared.output;
}

// zstd_serial: the slots that the other stages left to it, from their first byte to the last.
//   grid: a few blocks of ZSTD_SERIAL_THREADS threads, each with `serial_stride` bytes of arena: ZSTD_BLOCK_MAX for literals, then sequences
//   shared: SerialShared
//   reads: slots, encoded bytes, decoded bytes; writes: states, its arena, decoded bytes
KERNEL(zstd_serial, Decode, ZSTD_SERIAL_THREADS, 1) {
    SerialShared& shared = *(SerialShared*)shared_memory();
    u8* literals = p.serial_arena + block_index() * p.serial_stride;
    u8* staged = literals + ZSTD_BLOCK_MAX;
    for (u32 base = block_index() * block_threads(); base < p.slot_count; base += grid_blocks() * block_threads()) {
        // Most often there is nothing to do: a look at many slots at once.
        u32 mine = base + thread_index();
        bool wanted = mine < p.slot_count && p.states[mine].serial != 0 && p.states[mine].error == NO_ERROR;
        if (!block_any(wanted)) continue;
        for (u32 slot_index = base; slot_index < minimum(base + block_threads(), p.slot_count); slot_index++) serial_slot(p, shared, slot_index, literals, staged);
    }
}

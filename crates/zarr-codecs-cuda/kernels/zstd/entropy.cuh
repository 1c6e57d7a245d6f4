// The two entropy stages: literals and sequences of the blocks of a wave, every block by itself.
#pragma once

#include "huffman.cuh"
#include "plan.cuh"

// The jump table of four streams (RFC 8878 3.1.1.3.1.6), and which part of the output each makes.
struct Stream {
    u32 start, end, output, count;
};
// False where the sizes do not add up.
DEVICE bool find_stream(const Input& in, u32 at, u32 end, u32 streams, u32 literals, u32 which, Stream& stream) {
    if (streams == 1) {
        stream = Stream{at, end, 0, literals};
        return at < end;
    }
    if (end - at < 10) return false;
    u32 len[3] = {in.le16(at), in.le16(at + 2), in.le16(at + 4)};
    u32 room = end - at - 6;
    if (len[0] + len[1] + len[2] > room) return false;
    u32 each = (literals + 3) / 4;
    if (3 * each > literals) return false;
    stream.start = at + 6;
    for (u32 i = 0; i < which; i++) stream.start += len[i];
    stream.end = which == 3 ? end : stream.start + len[which];
    stream.output = which * each;
    stream.count = which == 3 ? literals - 3 * each : each;
    return stream.start < stream.end;
}

// A block whose literals are wanted.
struct LiteralsTask {
    Input input;
    const Block* block;
    // The block with the tree.
    const Block* tree;
    u8* output;
    SlotState* state;
    u32 index;
};

struct LiteralsShared {
    union {
        u16 tables[ZSTD_LITERALS_BATCH * 2048];
        struct {
            i16 counts[ZSTD_LITERALS_BATCH][256];
            u32 entries[ZSTD_LITERALS_BATCH][1 << WEIGHT_LOG];
            u8 cells[1 << WEIGHT_LOG];
            u16 starts[256];
        };
    };
    alignas(16) u8 rings[WARP][RING_ROOM];
    u8 weights[ZSTD_LITERALS_BATCH][256];
    Tree trees[ZSTD_LITERALS_BATCH];
    LiteralsTask tasks[ZSTD_LITERALS_BATCH];
    u32 starts_of_weights[16];
};
static_assert(sizeof(LiteralsShared) <= ZSTD_LITERALS_SHARED, "as the host has it");

// The Huffman trees of `count` blocks; lane `i` minds `task` `i`, the others have none. Scope: a warp.
DEVICE void read_trees(LiteralsShared& shared, const LiteralsTask& task, u32 count) {
    u32 lane = lane_index();
    if (lane < count) {
        const Block& from = *task.tree;
        tree_open(shared.trees[lane], task.input, from.literals_input, from.literals_input + from.literals_size, shared.weights[lane],
                  shared.counts[lane]);
    }
    warp_barrier();
    for (u32 i = 0; i < count; i++) {
        if (shared.trees[i].good && shared.trees[i].compressed) {
            u32* entries = shared.entries[i];
            u32 log = shared.trees[i].counts_log;
            build_table(shared.counts[i], shared.trees[i].counts_symbols, log, shared.cells, shared.starts,
                        [&](u32 state, u32 symbol, u32 next) { entries[state] = weight_entry(symbol, fse_state(next, log)); });
        }
        warp_barrier();
    }
    if (lane < count) {
        Tree& tree = shared.trees[lane];
        if (tree.good && tree.compressed) tree_weights(tree, task.input, shared.entries[lane], shared.weights[lane], shared.rings[lane]);
        tree_close(tree, shared.weights[lane]);
    }
    warp_barrier();
}

// One stream of a block whose tree is known. Scope: one thread.
DEVICE void decode_literals_stream(const LiteralsTask& task, const Tree& tree, const u16* table, u32 which, u8* ring) {
    const Block& block = *task.block;
    if (!tree.good) {
        if (which == 0) fail(task.state, task.index, ZSTD_HUFFMAN_TREE);
        return;
    }
    if (which >= block.streams) return;
    u32 end = block.literals_input + block.literals_size;
    u32 at = block.literals_input + (block.literals_kind == COMPRESSED_LITERALS ? tree.size : 0);
    Stream stream;
    bool good = at <= end && find_stream(task.input, at, end, block.streams, block.literals_len, which, stream);
    if (good) {
        u8* out = task.output + stream.output;
        good = decode_stream(task.input, stream.start, stream.end, table, tree.log, stream.count, out, ring)
            || (decodes_pairs(*task.tree) && pairs_end_well(task.input, stream.start, stream.end, table, tree.log, stream.count, out, ring));
    }
    if (!good) fail(task.state, task.index, ZSTD_HUFFMAN_STREAM);
}

// Decodes the literals of `count` blocks, at most ZSTD_LITERALS_BATCH; lane `i` is given `task` `i`. Scope: a warp.
DEVICE void decode_literals(LiteralsShared& shared, const LiteralsTask& task, u32 count) {
    u32 lane = lane_index();
    read_trees(shared, task, count);
    if (lane < count) shared.tasks[lane] = task;
    // A table of 12 bits takes the room of two.
    bool large = warp_ballot(lane < count && shared.trees[lane].good && shared.trees[lane].log > 11) != 0;
    u32 step = large ? ZSTD_LITERALS_BATCH / 2 : ZSTD_LITERALS_BATCH;
    u32 stride = large ? 4096 : 2048;
    for (u32 base = 0; base < count; base += step) {
        u32 end = minimum(base + step, count);
        for (u32 i = base; i < end; i++) {
            const Tree& tree = shared.trees[i];
            if (tree.good) tree_table(shared.weights[i], tree.symbols, tree.log, shared.tables + (i - base) * stride, shared.starts_of_weights);
            warp_barrier();
        }
        // Four lanes for each block.
        u32 mine = base + lane / 4;
        if (mine < end) decode_literals_stream(shared.tasks[mine], shared.trees[mine], shared.tables + (mine - base) * stride, lane % 4,
                                                 shared.rings[lane]);
        warp_barrier();
    }
}

// zstd_literals: Huffman-coded literals of one wave, to the arena.
//   grid: blocks of one warp, as many as fill the device; each takes up to `batch` blocks at a time off the wave's list
//   shared: LiteralsShared
KERNEL(zstd_literals, Decode, ZSTD_ENTROPY_THREADS, 1) {
    LiteralsShared& shared = *(LiteralsShared*)shared_memory();
    Wave& wave = p.waves[p.wave];
    const u32* list = p.literals_list + (u64)p.wave * p.block_capacity;
    const u32 listed = work_listed(wave.listed[0]);
    u32 lane = lane_index();
    for (;;) {
        u32 at = 0;
        if (lane == 0) at = atomic_add(&wave.next[0], p.batch);
        at = warp_shuffle(at, 0);
        if (at >= listed) break;
        u32 count = minimum(p.batch, listed - at);
        LiteralsTask task = {};
        if (lane < count) {
            const Block& block = p.blocks[list[at + lane]];
            const Slot& slot = p.slots[block.slot];
            const Block* blocks = p.blocks + slot.first_block;
            task = LiteralsTask{slot.input(), &block, blocks + block.tree_block, p.arena + (u64)block.literals_at * 16, p.states + block.slot,
                                (u32)(&block - blocks)};
        }
        decode_literals(shared, task, count);
    }
}

struct SequencesShared {
    u32 lengths[LENGTHS];
    u8 cells[512];
    u16 starts[64];
};
static_assert(sizeof(SequencesShared) <= ZSTD_SEQUENCES_SHARED_FIXED, "as the host has it");
struct SequencesEach {
    alignas(16) u8 ring[RING_ROOM];
    u32 entries[TABLES_ENTRIES];
    Tables tables;
};
static_assert(sizeof(SequencesEach) <= ZSTD_SEQUENCES_SHARED_EACH, "as the host has it");

// What came of a block's sequences, of which the output may be `limit` bytes. What is larger, up to `serial_max`, is left to the serial kernel.
// Scope: one thread.
DEVICE void note_sequences(Block& block, SlotState* state, u32 index, u32 limit, u32 serial_max, const SequencesResult& result) {
    u32 output = result.output, reason = result.reason;
    if (reason == ZSTD_GOOD) {
        output += block.literals_len - result.literals;
        if (output > limit) reason = ZSTD_OUTPUT_TOO_LARGE;
    }
    if (reason == ZSTD_OUTPUT_TOO_LARGE && output <= serial_max) {
        atomic_or(&state->serial, 1);
        return;
    }
    if (reason != ZSTD_GOOD) {
        fail(state, index, reason);
        return;
    }
    block.sequences_output = result.output;
    block.sequences_literals = result.literals;
    block.output_len = output;
    for (u32 i = 0; i < 3; i++) block.repeats[i] = result.repeats[i];
}

// zstd_sequences: sequences of one wave, to the arena.
//   grid and work: as zstd_literals
//   shared: SequencesShared, then SequencesEach for each of `batch` blocks
KERNEL(zstd_sequences, Decode, ZSTD_ENTROPY_THREADS, 1) {
    SequencesShared& shared = *(SequencesShared*)shared_memory();
    SequencesEach* each = (SequencesEach*)(shared_memory() + ZSTD_SEQUENCES_SHARED_FIXED);
    Wave& wave = p.waves[p.wave];
    const u32* list = p.sequences_list + (u64)p.wave * p.block_capacity;
    const u32 listed = work_listed(wave.listed[1]);
    u32 lane = lane_index();
    lengths_fill(shared.lengths);
    for (;;) {
        u32 at = 0;
        if (lane == 0) at = atomic_add(&wave.next[1], p.batch);
        at = warp_shuffle(at, 0);
        if (at >= listed) break;
        u32 count = minimum(p.batch, listed - at);
        Block* block = lane < count ? p.blocks + list[at + lane] : nullptr;
        const Slot* slot = nullptr;
        u32 stream = 0;
        if (block != nullptr) {
            slot = p.slots + block->slot;
            const Block* blocks = p.blocks + slot->first_block;
            const Block* defined_by[3] = {blocks + block->table_block[0], blocks + block->table_block[1], blocks + block->table_block[2]};
            stream = tables_open(each[lane].tables, slot->input(), *block, defined_by);
        }
        warp_barrier();
        for (u32 i = 0; i < count; i++) {
            if (each[i].tables.good) tables_build(each[i].tables, each[i].entries, shared.cells, shared.starts);
            warp_barrier();
        }
        if (block != nullptr) {
            const Tables& tables = each[lane].tables;
            SlotState* state = p.states + block->slot;
            u32 index = (u32)(block - (p.blocks + slot->first_block));
            if (!tables.good) {
                fail(state, index, tables.reason);
            } else {
                u8* staged = p.arena + (u64)block->sequences_at * 16;
                u32 limit = minimum(slot->decoded_len, block->block_max);
                SequencesResult result = decode_sequences<Packed>(slot->input(), *block, stream, each[lane].entries, tables, shared.lengths,
                                                                  each[lane].ring, staged, block->tile_sequence, limit);
                note_sequences(*block, state, index, limit, slot->decoded_len, result);
            }
        }
        warp_barrier();
    }
}

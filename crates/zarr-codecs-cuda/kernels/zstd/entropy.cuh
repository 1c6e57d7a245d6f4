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

// Four streams that do not all end where they should, as libzstd's fast decoder reads them on processors that have it (x86-64 with BMI2, and others of 64
// bits): it does not look where streams end, and goes on into the bytes before one that is too short. It decodes five codes of each stream at a time while
// there is room, then the rest of each. Damaged data alone gets here. Scope: one thread.
struct Lenient {
    Input input;
    // Streams are read down to here: the jump table.
    u32 low;
    const u16* table;
    u32 log;
    bool pairs;

    // The next 11 bits where `left` bits lie above `low`. Behind those, libzstd shifts the lowest 64 around.
    DEVICE_MEMBER u32 look(i32 left) const {
        if (left >= 64) {
            u32 from = (u32)left - 11;
            return input.le24(low + from / 8) >> from % 8 & 0x7ff;
        }
        return (u32)(input.le64(low) << ((64 - left) & 63) >> 53);
    }
    // Decodes one code, or two where they fit the table and `room` is for more than one. Gives how many.
    DEVICE_MEMBER u32 step(i32& left, u32 room, u8* out) const {
        u32 window = look(left);
        u32 entry = table[window >> (11 - log)], first = code_len(entry);
        u32 next = table[(window << first & 0x7ff) >> (11 - log)], second = code_len(next);
        *out = (u8)code_symbol(entry);
        bool two = pairs && first + second <= 11;
        if (two && room == 1) {
            // The last one alone: the bits of both, as far as there are any.
            if (left > 0) left = maximum(left - (i32)(first + second), 0);
            return 1;
        }
        if (two) out[1] = (u8)code_symbol(next);
        left -= (i32)(two ? first + second : first);
        return two ? 2 : 1;
    }
};

// `is_fast` said yes.
DEVICE_CALL bool decode_lenient(const LiteralsTask& task, const Tree& tree, const u16* table) {
    const Block& block = *task.block;
    const Input& in = task.input;
    u32 end = block.literals_input + block.literals_size;
    u32 low = block.literals_input + (block.literals_kind == COMPRESSED_LITERALS ? tree.size : 0);
    Lenient lenient{in, low, table, tree.log, decodes_pairs(*task.tree)};
    Stream streams[4];
    i32 left[4], at[4];
    u32 done[4] = {0, 0, 0, 0};
    for (u32 i = 0; i < 4; i++) {
        find_stream(in, low, end, 4, block.literals_len, i, streams[i]);
        u32 last = in.byte(streams[i].end - 1);
        left[i] = (i32)((streams[i].end - low) * 8 - (last == 0 ? 0 : 8 - highest_bit(last)));
        // Where its 64 bits at hand start.
        at[i] = (i32)(streams[i].end - low) - 8;
    }
    auto five = [&]() {
        for (u32 i = 0; i < 4; i++) {
            for (u32 code = 0; code < 5; code++) done[i] += lenient.step(left[i], 2, task.output + streams[i].output + done[i]);
            at[i] = (left[i] + 7) / 8 - 8;
        }
    };
    for (;;) {
        u32 rounds = (u32)at[0] / 7;
        if (lenient.pairs) {
            for (u32 i = 0; i < 4; i++) rounds = minimum(rounds, (streams[i].count - done[i]) / 10);
        } else {
            rounds = minimum(rounds, (streams[3].count - done[3]) / 5);
        }
        if (rounds == 0 || at[1] < at[0] || at[2] < at[1] || at[3] < at[2]) break;
        u32 goal = done[3] + 5 * rounds;
        do five(); while (done[3] < goal);
    }
    for (u32 i = 0; i < 4; i++) {
        if (at[i] < (i32)(streams[i].start - low) - 8) return false;
        while (done[i] < streams[i].count) {
            done[i] += lenient.step(left[i], streams[i].count - done[i], task.output + streams[i].output + done[i]);
        }
    }
    return true;
}

// Whether libzstd's fast decoder takes the four streams.
DEVICE bool is_fast(const LiteralsTask& task, const Tree& tree, u32 at, u32 end) {
    const Block& block = *task.block;
    if (block.streams != 4 || tree.log > 11) return false;
    Stream stream;
    for (u32 i = 0; i < 4; i++) {
        if (!find_stream(task.input, at, end, 4, block.literals_len, i, stream) || stream.end - stream.start < 8) return false;
    }
    return stream.count != 0;
}

// One stream of a block whose tree is known. Scope: one thread.
DEVICE bool decode_literals_stream(const LiteralsTask& task, const Tree& tree, const u16* table, u32 which, u8* ring) {
    const Block& block = *task.block;
    if (which >= block.streams) return true;
    u32 end = block.literals_input + block.literals_size;
    u32 at = block.literals_input + (block.literals_kind == COMPRESSED_LITERALS ? tree.size : 0);
    Stream stream;
    if (at > end || !find_stream(task.input, at, end, block.streams, block.literals_len, which, stream)) return false;
    u8* out = task.output + stream.output;
    return decode_stream(task.input, stream.start, stream.end, table, tree.log, stream.count, out, ring)
        || (decodes_pairs(*task.tree) && !is_fast(task, tree, at, end)
            && pairs_end_well(task.input, stream.start, stream.end, table, tree.log, stream.count, out, ring));
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
        const u16* table = shared.tables + lane / 4 * stride;
        bool good = true;
        if (mine < end && shared.trees[mine].good)
            good = decode_literals_stream(shared.tasks[mine], shared.trees[mine], table, lane % 4, shared.rings[lane]);
        u32 bad = warp_ballot(!good) >> lane / 4 * 4 & 15;
        if (mine < end && lane % 4 == 0) {
            const LiteralsTask& of = shared.tasks[mine];
            const Tree& tree = shared.trees[mine];
            if (!tree.good) {
                fail(of.state, of.index, ZSTD_HUFFMAN_TREE);
            } else if (bad != 0) {
                u32 streams_at = of.block->literals_input + (of.block->literals_kind == COMPRESSED_LITERALS ? tree.size : 0);
                u32 streams_end = of.block->literals_input + of.block->literals_size;
                bool read = streams_at <= streams_end && is_fast(of, tree, streams_at, streams_end) && decode_lenient(of, tree, table);
                if (!read) fail(of.state, of.index, ZSTD_HUFFMAN_STREAM);
            }
        }
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
            SlotState* state = p.states + block.slot;
            task = LiteralsTask{slot.input(), &block, blocks + block.tree_block, literals_of(p, slot, *state, block), state, (u32)(&block - blocks)};
        }
        decode_literals(shared, task, count);
    }
}

struct SequencesShared {
    u8 cells[512];
    u16 starts[64];
};
static_assert(sizeof(SequencesShared) <= ZSTD_SEQUENCES_SHARED_FIXED, "as the host has it");
struct SequencesEach {
    u32 entries[TABLES_ENTRIES];
    // First the one, then the other.
    union {
        Tables tables;
        alignas(16) u8 ring[RING_ROOM];
    };
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
                u32 limit = block_limit(*slot, *block), logs[3] = {tables.log[0], tables.log[1], tables.log[2]};
                Staged staged = staged_at(p.arena + (u64)block->sequences_at * 16, notes_of(*slot, *block), block->sequences);
                SequencesResult result;
                if (slot->tight()) {
                    result = decode_sequences<Tight>(slot->input(), *block, stream, each[lane].entries, logs[0], logs[1], logs[2], each[lane].ring,
                                                     staged, limit);
                } else if (slot->compact()) {
                    result = decode_sequences<Compact>(slot->input(), *block, stream, each[lane].entries, logs[0], logs[1], logs[2], each[lane].ring,
                                                       staged, limit);
                } else {
                    result = decode_sequences<Full>(slot->input(), *block, stream, each[lane].entries, logs[0], logs[1], logs[2], each[lane].ring,
                                                    staged, limit);
                }
                note_sequences(*block, state, index, limit, slot->decoded_len, result);
            }
        }
        warp_barrier();
    }
}

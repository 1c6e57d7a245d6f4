// What the stages of the zstd decoder hand to each other. Terms are those of RFC 8878.
#pragma once

#include "../input.cuh"
#include "constants.cuh"

// One chunk, as the host describes it.
struct Slot {
    const u8* encoded;
    // Contiguous room for `decoded_len` bytes.
    u8* decoded;
    u32 encoded_len;
    u32 decoded_len;
    // Which of all blocks are this slot's, and how many there is room for.
    u32 first_block;
    u32 block_capacity;
    // Not 0: of at most ZSTD_COMPACT_MAX bytes; it stages less, and is executed by one block of threads.
    u32 staging;
    // Not 0: a chunk of blosc, whose streams are frames.
    u32 is_blosc;

    DEVICE_MEMBER Input input() const { return Input{encoded, encoded_len}; }
    DEVICE_MEMBER bool compact() const { return staging != ZSTD_STAGED_FULL; }
    DEVICE_MEMBER bool tight() const { return staging == ZSTD_STAGED_TIGHT; }
};
static_assert(sizeof(Slot) == ZSTD_SLOT_SIZE, "as the host has it");

// What is known of a slot while it is decoded.
struct SlotState {
    // The first failure in the order of the stream: the number of the block, 8 bits of the reason. All ones while there is none.
    u32 error;
    u32 blocks;
    // Not 0: decoded by the serial kernel.
    u32 serial;
    // Room in the arena, in units of 16 bytes: for all blocks, and for the one that needs most.
    u32 need;
    u32 most;
    // Where its blocks lie in the arena; which wave they are in, or in how many parts, above the lower 16 bits.
    u32 base;
    u32 wave;
    // Blocks resolved, and executed. At the last one resolved: bytes of output, the start of the frame, repeated offsets, and where the output of its stream ends.
    u32 resolved, executed;
    u32 output;
    u32 frame_start;
    u32 repeats[3];
    u32 stream_end;
    // Not 0: a checksum has to be verified.
    u32 checksums;
    // Of a compact chunk: literals that are decoded to the end of the output.
    u32 literals;
    // Of others: tiles of this wave that blocks of threads have taken, and that are written.
    u32 tiles_taken, tiles_done;
};
static_assert(sizeof(SlotState) == ZSTD_STATE_SIZE, "as the host has it");

constexpr u32 NO_ERROR = ~0u;

enum BlockKind : u8 { RAW_BLOCK = 0, RLE_BLOCK = 1, COMPRESSED_BLOCK = 2 };
enum LiteralsKind : u8 { RAW_LITERALS = 0, RLE_LITERALS = 1, COMPRESSED_LITERALS = 2, TREELESS_LITERALS = 3 };
// Modes of a table of sequences.
enum TableMode : u8 { PREDEFINED = 0, RLE_TABLE = 1, FSE_TABLE = 2, REPEAT_TABLE = 3 };

// One block of a frame (RFC 8878 3.1.1.2). Positions are bytes of the chunk.
struct Block {
    u8 kind;
    // First of its frame; last of its frame; the frame says its content size; the frame has a checksum.
    u8 first, last, sized, checksum;
    u8 literals_kind;
    u8 streams;
    // Two bits each: modes of literal lengths, offsets, match lengths, as in the header.
    u8 modes;

    u32 slot;
    // The content, and its bytes: of an RLE block, what it decodes to.
    u32 input, size;
    // The most that a compressed block may take, and literals may decode to.
    u32 block_max;
    u64 content_size;

    // Literals: what they decode to, where their content is (after the header) and how long.
    u32 literals_len, literals_input, literals_size;
    // Sequences: how many, and where the tables' descriptions start.
    u32 sequences, tables_input;
    // Of blocks of this slot: who describes the Huffman tree, and the three tables.
    u32 tree_block, table_block[3];

    // In the arena, in units of 16 bytes: what its slot needs before it, then where. Literals of a compact chunk: bytes of those before.
    u32 need_before;
    u32 literals_at, sequences_at;

    // Decoded sequences: bytes of output that they make, and of literals that they use. Output of the whole block.
    u32 sequences_output, sequences_literals;
    u32 output_len;
    // Repeated offsets after the block, as functions of those before it (see `sequences.cuh`); then those before it.
    u32 repeats[3];
    u32 entry_repeats[3];
    u32 output, frame_start;
    // Where the output of the stream ends that it is of: that of the chunk, but for blosc.
    u32 stream_end;
};
static_assert(sizeof(Block) == ZSTD_BLOCK_SIZE, "as the host has it");

// Work of a wave: 0 literals, 1 sequences. What takes long comes first, so that the threads of a warp have about as much to do each.
struct Wave {
    // By class of work: blocks counted, then blocks listed.
    u32 counted[2][ZSTD_CLASSES];
    u32 listed[2][ZSTD_CLASSES];
    // Taken by warps so far.
    u32 next[2];
};
static_assert(sizeof(Wave) == ZSTD_WAVE_SIZE, "as the host has it");

DEVICE u32 work_listed(const u32* classes) {
    u32 sum = 0;
    for (u32 i = 0; i < ZSTD_CLASSES; i++) sum += classes[i];
    return sum;
}

// What the host gives every kernel.
struct Decode {
    const Slot* slots;
    SlotState* states;
    Block* blocks;
    u8* arena;
    Wave* waves;
    // By wave: blocks with literals, and with sequences, to decode. `block_capacity` each.
    u32* literals_list;
    u32* sequences_list;
    u32* statuses;
    // Arenas of the serial kernel, `serial_stride` bytes for each of its blocks of threads.
    u8* serial_arena;
    u64 serial_stride;
    u32 slot_count;
    u32 block_capacity;
    // Units of 16 bytes.
    u32 arena_len;
    u32 wave_count;
    u32 wave;
    // Blocks decoded by one warp at a time; blocks of threads that share a slot; or of two passes, which.
    u32 batch;
};
static_assert(sizeof(Decode) == ZSTD_PLAN_SIZE, "as the host has it");

DEVICE void fail(SlotState* state, u32 block, u32 reason) { atomic_min(&state->error, minimum(block, 0xfffffeu) << 8 | reason); }

// Literals of a compact chunk wait at the end of its output, each no earlier than where it goes to: what is before them can be made in the order of
// the output without harm to those that are still wanted. The arena has room for those of others. Bytes of it.
DEVICE u32 literals_room(const Slot& slot, const Block& block) {
    return slot.compact() || block.literals_kind < COMPRESSED_LITERALS ? 0 : (block.literals_len + 15) / 16 * 16;
}
DEVICE u8* literals_of(const Decode& p, const Slot& slot, const SlotState& state, const Block& block) {
    return slot.compact() ? slot.decoded + (slot.decoded_len - state.literals + block.literals_at) : p.arena + (u64)block.literals_at * 16;
}
// The most output that a block of the parallel pipeline may have, and how many notes its sequences have (see `Staged`).
DEVICE u32 block_limit(const Slot& slot, const Block& block) { return minimum(slot.decoded_len, block.block_max); }
DEVICE u32 notes_of(const Slot& slot, const Block& block) {
    u32 limit = block_limit(slot, block);
    return slot.tight() ? (limit + ZSTD_TIGHT_STEP - 1) / ZSTD_TIGHT_STEP : (limit + ZSTD_TILE_STEP - 1) / ZSTD_TILE_STEP;
}
// Bytes of the arena that a block's sequences take.
DEVICE u32 sequences_room(const Slot& slot, const Block& block) {
    u32 each = slot.tight() ? 5 : slot.compact() ? 6 : 8;
    return block.sequences == 0 ? 0 : (8 * notes_of(slot, block) + each * block.sequences + 15) / 16 * 16;
}

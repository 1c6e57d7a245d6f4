// What the stages of the zstd encoder hand to each other. Terms are those of RFC 8878.
//
// A chunk becomes one frame. Its content is cut into blocks of ZSTD_ENCODE_BLOCK bytes, and all blocks of all chunks are encoded side by side: `matches.cuh` finds
// sequences and leaves literals, `compress.cuh` writes both as bits, `pack.cuh` puts the frames one behind the other. What comes out depends on the chunk alone.
#pragma once

#include "../input.cuh"
#include "constants.cuh"

// One chunk, as the host describes it.
struct EncodeSource {
    const u8* data;
    // Bytes of the chunks before it.
    u64 at;
    u32 len;
    // Which of all blocks are this chunk's.
    u32 first_block;
    // Not 0: the frame has a checksum.
    u32 checksum;
    u32 unused;
};
static_assert(sizeof(EncodeSource) == ZSTD_SOURCE_SIZE, "as the host has it");

// A run of literals and the match behind it (RFC 8878 3.1.1.3.2): the length less 3, and the offset as it is written, where 1 to 3 stand for earlier ones.
struct EncodeSequence {
    u16 literals;
    u16 match;
    u32 offset;
};
static_assert(sizeof(EncodeSequence) == ZSTD_SEQUENCE_SIZE, "as the host has it");

// One block.
struct EncodeBlock {
    // Its chunk, and its part of that.
    u32 slot, start, len;
    // What was found in it.
    u32 sequences, literals;
    // Its content as it is written; not 0: that is the source, as it is.
    u32 size, raw;
    u32 unused;
    // Where it lies in what comes out: the header of the frame, if it is the first, then its own.
    u64 packed;
};
static_assert(sizeof(EncodeBlock) == ZSTD_PIECE_SIZE, "as the host has it");

// The place of a chunk in what comes out.
struct EncodeRange {
    u64 start, end;
};

// What the host gives every kernel.
struct Encode {
    const EncodeSource* sources;
    EncodeBlock* blocks;
    // Room by bytes of content: see below.
    EncodeSequence* sequences;
    u8* literals;
    u8* staged;
    // The lower 4 bytes of XXH64 of each chunk that wants it.
    u32* checksums;
    // What comes out, and where in it each chunk lies.
    u8* packed;
    EncodeRange* ranges;
    u32 slot_count;
    u32 block_count;
    u64 unused;
};
static_assert(sizeof(Encode) == ZSTD_ENCODE_SIZE, "as the host has it");

// The room of a block that starts `at` bytes into all content: for `len / ZSTD_ENCODE_DENSITY + 1` sequences, `len` literals, `len + ZSTD_ENCODE_SLACK` bytes.
DEVICE EncodeSequence* sequences_of(const Encode& p, u64 at, u32 block) { return p.sequences + at / ZSTD_ENCODE_DENSITY + block; }
DEVICE u8* literals_of(const Encode& p, u64 at) { return p.literals + at; }
DEVICE u8* staged_of(const Encode& p, u64 at, u32 block) { return p.staged + at + (u64)block * ZSTD_ENCODE_SLACK; }

// The chunk of a block: the last that starts at or before it.
DEVICE u32 slot_of_block(const Encode& p, u32 block) {
    u32 from = 0, to = p.slot_count;
    while (to - from > 1) {
        u32 middle = (from + to) / 2;
        if (p.sources[middle].first_block <= block) from = middle; else to = middle;
    }
    return from;
}

// 4 bytes of data from `at`, at any alignment, all of which are there. Scope: one thread.
DEVICE u32 word_of(const u8* data, u32 len, u32 at) {
    const u8* from = data + at;
    u32 skew = (u32)(size_t)from & 3;
    // Two aligned words hold them; both must be there.
    if (at >= 3 && at + 8 <= len) {
        const u32* words = (const u32*)(from - skew);
        return funnel_right_wrap(load_constant(words + 1), load_constant(words), 8 * skew);
    }
    u32 value = 0;
    for (u32 i = 0; i < 4; i++) value |= (u32)load_constant(from + i) << 8 * i;
    return value;
}

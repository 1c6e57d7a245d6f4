// Headers of frames, blocks and sections (RFC 8878 3.1.1), as libzstd 1.5.7 accepts them. Scope: one thread.
#pragma once

#include "format.cuh"

constexpr u32 FRAME_MAGIC = 0xfd2fb528;
constexpr u32 SKIPPABLE_MAGIC = 0x184d2a50;

// Walks the frames of a chunk, block by block.
struct Walk {
    Input input;
    u32 at;
    bool inside;
    bool first;
    bool sized, checksum;
    u32 block_max;
    u64 content_size;
};

DEVICE Walk walk_start(const Input& input) { return Walk{input, 0, false, false, false, false, 0, 0}; }

// Reads the header of a frame at `walk.at`, of which at least 5 bytes are there (RFC 8878 3.1.1.1).
DEVICE_CALL u32 walk_frame_header(Walk& walk) {
    const Input& in = walk.input;
    u32 left = in.len - walk.at;
    if (in.le32(walk.at) != FRAME_MAGIC) return ZSTD_MAGIC;
    // The shortest header and the shortest block.
    if (left < 9) return ZSTD_TRUNCATED;
    u32 descriptor = in.byte(walk.at + 4);
    bool single = descriptor >> 5 & 1;
    u32 dictionary_len = (1u << (descriptor & 3)) >> 1;
    u32 size_code = descriptor >> 6;
    u32 size_len = size_code == 0 ? (single ? 1 : 0) : 1u << size_code;
    u32 header_len = 5 + (single ? 0 : 1) + dictionary_len + size_len;
    if (left < header_len + 3) return ZSTD_TRUNCATED;
    if (descriptor & 8) return ZSTD_RESERVED_BIT;
    u32 at = walk.at + 5;
    u64 window = 0;
    if (!single) {
        u32 byte = in.byte(at++);
        u32 log = (byte >> 3) + 10;
        if (log > 31) return ZSTD_WINDOW;
        window = (u64)1 << log;
        window += (window >> 3) * (byte & 7);
    }
    u32 dictionary = dictionary_len == 0 ? 0 : dictionary_len == 1 ? in.byte(at) : dictionary_len == 2 ? in.le16(at) : in.le32(at);
    if (dictionary != 0) return ZSTD_DICTIONARY;
    at += dictionary_len;
    walk.content_size = size_len == 0 ? 0 : size_len == 1 ? in.byte(at) : size_len == 2 ? in.le16(at) + 256 : size_len == 4 ? in.le32(at) : in.le64(at);
    // All ones in 8 bytes: unknown.
    walk.sized = size_len != 0 && walk.content_size != ~(u64)0;
    if (single) window = walk.content_size;
    walk.block_max = (u32)minimum(window, (u64)ZSTD_BLOCK_MAX);
    walk.checksum = descriptor >> 2 & 1;
    walk.at = at + size_len;
    walk.inside = true;
    walk.first = true;
    return ZSTD_GOOD;
}

// A block; the end; a failure; another stream of blocks.
enum WalkResult { WALK_BLOCK, WALK_END, WALK_FAILED, WALK_STREAM };

// Steps to the next block. On failure, `reason` says why. Inlined: the walk is a chain of these, and keeps its state in registers.
DEVICE WalkResult walk_next(Walk& walk, Block& block, u32& reason) {
    const Input& in = walk.input;
    while (!walk.inside) {
        u32 left = in.len - walk.at;
        if (left == 0) return WALK_END;
        reason = ZSTD_TRUNCATED;
        if (left < 5) return WALK_FAILED;
        if ((in.le32(walk.at) & ~15u) == SKIPPABLE_MAGIC) {
            if (left < 8) return WALK_FAILED;
            u32 size = in.le32(walk.at + 4);
            if (size > left - 8) return WALK_FAILED;
            walk.at += 8 + size;
            continue;
        }
        Walk at_header = walk;
        reason = walk_frame_header(at_header);
        walk = at_header;
        if (reason != ZSTD_GOOD) return WALK_FAILED;
    }
    reason = ZSTD_TRUNCATED;
    u32 left = in.len - walk.at;
    if (left < 3) return WALK_FAILED;
    u32 header = in.le24(walk.at);
    u32 kind = header >> 1 & 3;
    if (kind == 3) {
        reason = ZSTD_RESERVED_BLOCK;
        return WALK_FAILED;
    }
    u32 size = header >> 3;
    u32 taken = kind == RLE_BLOCK ? 1 : size;
    if (taken > left - 3) return WALK_FAILED;
    if (kind == COMPRESSED_BLOCK && size > walk.block_max) {
        reason = ZSTD_BLOCK_TOO_LARGE;
        return WALK_FAILED;
    }
    block.kind = (u8)kind;
    block.first = walk.first;
    block.last = header & 1;
    block.sized = walk.sized;
    block.checksum = walk.checksum;
    block.input = walk.at + 3;
    block.size = size;
    block.block_max = walk.block_max;
    block.content_size = walk.content_size;
    walk.at += 3 + taken;
    walk.first = false;
    if (block.last) {
        walk.inside = false;
        if (walk.checksum) {
            if (in.len - walk.at < 4) return WALK_FAILED;
            walk.at += 4;
        }
    }
    return WALK_BLOCK;
}

// The header of the literals section (RFC 8878 3.1.1.3.1.1). `end` of the section goes to `after`.
DEVICE_CALL u32 read_literals_header(const Input& in, Block& block, u32& after) {
    u32 at = block.input, size = block.size;
    if (size < 2) return ZSTD_LITERALS_HEADER;
    u32 head = in.le32(at);
    u32 kind = head & 3, format = head >> 2 & 3;
    u32 header_len, content;
    block.literals_kind = (u8)kind;
    block.streams = 1;
    if (kind >= COMPRESSED_LITERALS) {
        if (size < 5) return ZSTD_LITERALS_HEADER;
        u32 bits = format < 2 ? 10 : format == 2 ? 14 : 18;
        header_len = format < 2 ? 3 : format == 2 ? 4 : 5;
        u64 fields = (head | (u64)in.byte(at + 4) << 32) >> 4;
        block.literals_len = (u32)fields & ((1u << bits) - 1);
        content = (u32)(fields >> bits) & ((1u << bits) - 1);
        block.streams = format == 0 ? 1 : 4;
        if (block.streams == 4 && block.literals_len < 6) return ZSTD_LITERALS_HEADER;
    } else {
        header_len = format == 1 ? 2 : format == 3 ? 3 : 1;
        block.literals_len = format == 1 ? (head & 0xffff) >> 4 : format == 3 ? (head & 0xffffff) >> 4 : (head & 0xff) >> 3;
        content = kind == RLE_LITERALS ? 1 : block.literals_len;
    }
    if (header_len > size || content > size - header_len) return ZSTD_LITERALS_HEADER;
    if (block.literals_len > block.block_max) return ZSTD_LITERALS_HEADER;
    block.literals_input = at + header_len;
    block.literals_size = content;
    after = at + header_len + content;
    return ZSTD_GOOD;
}

// The header of the sequences section up to the tables (RFC 8878 3.1.1.3.2.1).
DEVICE_CALL u32 read_sequences_header(const Input& in, Block& block, u32 at) {
    u32 end = block.input + block.size;
    block.sequences = 0;
    block.modes = 0;
    block.tables_input = end;
    if (at >= end) return ZSTD_SEQUENCES_HEADER;
    u32 count = in.byte(at++);
    if (count == 255) {
        if (end - at < 2) return ZSTD_SEQUENCES_HEADER;
        count = in.le16(at) + 0x7f00;
        at += 2;
    } else if (count >= 128) {
        if (at >= end) return ZSTD_SEQUENCES_HEADER;
        count = (count - 128) << 8 | in.byte(at++);
    }
    if (count == 0) return at == end ? ZSTD_GOOD : ZSTD_SEQUENCES_HEADER;
    if (at >= end) return ZSTD_SEQUENCES_HEADER;
    u32 modes = in.byte(at++);
    if (modes & 3) return ZSTD_SEQUENCES_HEADER;
    block.modes = (u8)(modes >> 2);
    block.sequences = count;
    block.tables_input = at;
    return ZSTD_GOOD;
}

// The mode of table `which`: 0 literal lengths, 1 offsets, 2 match lengths.
DEVICE u32 table_mode(const Block& block, u32 which) { return block.modes >> (4 - 2 * which) & 3; }

// Both sections' headers of a compressed block.
DEVICE_CALL u32 read_block_headers(const Input& in, Block& block) {
    u32 after = 0;
    u32 reason = read_literals_header(in, block, after);
    return reason == ZSTD_GOOD ? read_sequences_header(in, block, after) : reason;
}

// The most that a compressed block may decode to where the chunk has room for `room` bytes more. libzstd does not hold blocks to their maximum: it
// depends on where it keeps the literals.
DEVICE u32 block_output_max(const Block& block, u32 room) {
    u32 header_len = block.literals_input - block.input;
    bool in_place = block.literals_kind == RAW_LITERALS && header_len + block.literals_len + 32 <= block.size;
    if (in_place || room <= block.block_max + block.literals_len + 64) return room;
    return minimum(room, block.block_max + 32);
}

// The blocks of a chunk, whether its frames lie one behind the other or in streams of blosc. The plan, which keeps its walk in registers, takes the walk that the
// chunk needs; the serial kernel, which is off the hot path, has the one that does for both.
#pragma once

#include "../blosc/header.cuh"
#include "headers.cuh"

static_assert(BLOSC_HEADER >= ZSTD_STATUS_COUNT, "one range of statuses for both");

// The blocks of a chunk that is frames and nothing else.
struct PlainFrames {
    Walk walk;
    // Where the output of the stream ends that the last block is of.
    u32 output_end;

    DEVICE_MEMBER u32 start(const Slot& slot) {
        walk = walk_start(slot.input());
        output_end = slot.decoded_len;
        return slot.encoded_len == 0 ? ZSTD_TRUNCATED : ZSTD_GOOD;
    }
    DEVICE_MEMBER WalkResult next(Block& block, u32& reason) { return walk_next(walk, block, reason); }
    // What a failure is put down to, behind `count` blocks.
    DEVICE_MEMBER u32 place(u32 count) const { return count; }
};

// The blocks of a chunk that is either that, or one of blosc: of one stream after the other. What is stored as it is counts as a raw block that is a frame.
struct Frames {
    Walk walk;
    u32 output_end;
    Input input;
    bool is_blosc;
    // Whether there was a block of the stream.
    bool found;
    BloscHeader header;
    BloscStreams streams;
    // Blocks of blosc that were begun, and streams of the last of them; bytes of input that these take.
    u32 blocks, begun, taken;

    DEVICE_MEMBER u32 start(const Slot& slot) {
        *this = Frames{};
        input = slot.input();
        is_blosc = slot.is_blosc != 0;
        if (is_blosc) {
            found = true;
            walk = walk_start(Input{input.data, 0});
            return blosc_header(input, slot.decoded_len, BLOSC_ZSTD, header);
        }
        walk = walk_start(input);
        output_end = slot.decoded_len;
        return input.len == 0 ? ZSTD_TRUNCATED : ZSTD_GOOD;
    }
    // Of a chunk of blosc, its own block.
    DEVICE_MEMBER u32 place(u32 count) const { return is_blosc && blocks != 0 ? blocks - 1 : count; }
    DEVICE_MEMBER WalkResult next(Block& block, u32& reason) {
        for (;;) {
            WalkResult result = walk_next(walk, block, reason);
            if (result == WALK_BLOCK) found = true;
            if (result != WALK_END || !is_blosc) return result;
            result = next_stream(block, reason);
            if (result != WALK_STREAM) return result;
        }
    }
    DEVICE_MEMBER WalkResult next_stream(Block& block, u32& reason) {
        reason = ZSTD_OUTPUT_TOO_SMALL;
        if (!found) return WALK_FAILED;
        if (output_end == header.decoded_len) return WALK_END;
        if (header.stored) {
            output_end = header.decoded_len;
            return as_it_is(block, BLOSC_HEADER_LEN, header.decoded_len);
        }
        reason = BLOSC_GOOD;
        if (begun == streams.count) {
            begun = 0;
            reason = blosc_open_block(input, header, blocks++, streams);
        }
        u32 from = streams.next;
        if (reason == BLOSC_GOOD) reason = blosc_next_stream(input, streams);
        if (reason != BLOSC_GOOD) return WALK_FAILED;
        begun++;
        reason = BLOSC_OVERLAP;
        if (streams.next - from > input.len - taken) return WALK_FAILED;
        taken += streams.next - from;
        output_end += streams.decoded_len;
        if (streams.len == streams.decoded_len) return as_it_is(block, streams.start, streams.len);
        walk = walk_start(Input{input.data, streams.next});
        walk.at = streams.start;
        found = false;
        return WALK_STREAM;
    }
    DEVICE_MEMBER WalkResult as_it_is(Block& block, u32 at, u32 len) {
        block.kind = RAW_BLOCK;
        block.first = block.last = 1;
        block.input = at;
        block.size = len;
        block.block_max = ZSTD_BLOCK_MAX;
        found = true;
        return WALK_BLOCK;
    }
};

// Chunks of c-blosc (its README_CHUNK_FORMAT.rst): a header of 16 bytes, an offset for each block, then blocks of streams that are compressed each by itself.
//
//   version | inner codec's version | flags | type size | decoded bytes | block size | encoded bytes | offset 0 | offset 1 | ..
//   a block: size of stream 0 | stream 0 | size of stream 1 | ..     a stream that did not shrink is there as it is
//
// What is accepted is what zarr-codecs-cpu accepts.
#pragma once

#include "../input.cuh"
#include "constants.cuh"

// One chunk, as the host describes it.
struct BloscSlot {
    const u8* encoded;
    // Room for `decoded_len` bytes each: as they come out of the streams (from a multiple of 256 on), and as they were encoded (at any alignment).
    u8* streams;
    u8* decoded;
    u32 encoded_len, decoded_len;

    DEVICE_MEMBER Input input() const { return Input{encoded, encoded_len}; }
};
static_assert(sizeof(BloscSlot) == BLOSC_SLOT_SIZE, "as the host has it");

struct Blosc {
    const BloscSlot* slots;
    // The first failure of each slot: the number of the block, 8 bits of the reason; all ones while there is none. Null where others decode the streams.
    u32* errors;
    u32* statuses;
    u32 slot_count;
    // Blocks of threads that share a slot.
    u32 parts;
};
static_assert(sizeof(Blosc) == BLOSC_PARAMS_SIZE, "as the host has it");

constexpr u32 BLOSC_NO_ERROR = ~0u;
constexpr u32 BLOSC_HEADER_LEN = 16;
constexpr u32 BLOSC_MAX_STREAMS = 16;
constexpr u32 BLOSC_MIN_STREAM_LEN = 128;
constexpr u32 BLOSC_MAX_NUMBER = 0x7fffffff;

enum BloscFormat : u8 { BLOSC_LZ4 = 1, BLOSC_ZSTD = 4 };
enum BloscShuffle : u8 { BLOSC_NO_SHUFFLE, BLOSC_BYTE_SHUFFLE, BLOSC_BIT_SHUFFLE };

// A header that fits its chunk. Blocks have at least one byte; so have streams.
struct BloscHeader {
    u32 decoded_len, block_size, type_size;
    // Not 0: the decoded bytes are behind the header, and the rest here says nothing.
    u8 stored;
    u8 format, shuffle, split;

    DEVICE_MEMBER u32 blocks() const { return (decoded_len + block_size - 1) / block_size; }
    DEVICE_MEMBER u32 block_len(u32 index) const { return minimum(block_size, decoded_len - index * block_size); }
    // Streams of a block: the last one is not split where it is shorter than the others.
    DEVICE_MEMBER u32 streams(u32 block_len) const { return split && block_len == block_size ? type_size : 1; }
};

// Reads the header of a chunk that should decode to `decoded_len` bytes by streams of `format`. Gives a reason where it does not. Scope: one thread.
DEVICE_CALL u32 blosc_header(const Input& in, u32 decoded_len, u32 format, BloscHeader& header) {
    u32 flags = in.byte(2), type_size = in.byte(3), says = in.le32(4), block_size = in.le32(8);
    bool stored = flags & 2;
    header = BloscHeader{says, block_size, type_size, stored, (u8)(flags >> 5), BLOSC_NO_SHUFFLE, 0};
    if (in.len < BLOSC_HEADER_LEN || in.byte(0) != 2 || (flags & 8) || in.le32(12) != in.len) return BLOSC_HEADER;
    if (says != decoded_len || decoded_len > BLOSC_MAX_NUMBER - BLOSC_HEADER_LEN) return BLOSC_SIZE;
    u32 rest = in.len - BLOSC_HEADER_LEN;
    if (decoded_len == 0) {
        header.stored = 1;
        return rest == 0 ? BLOSC_GOOD : BLOSC_SIZE;
    }
    if (type_size == 0 || block_size == 0 || block_size > decoded_len) return BLOSC_HEADER;
    if (stored) return rest == decoded_len ? BLOSC_GOOD : BLOSC_SIZE;
    if (in.byte(1) != 1 || header.format > BLOSC_ZSTD) return BLOSC_HEADER;
    if (header.format != format) return BLOSC_COMPRESSOR;
    header.shuffle = (flags & 1) && type_size > 1 ? BLOSC_BYTE_SHUFFLE : flags & 4 ? BLOSC_BIT_SHUFFLE : BLOSC_NO_SHUFFLE;
    // Chunks from before there was the flag are split on these conditions alone.
    header.split = !(flags & 16) && type_size <= BLOSC_MAX_STREAMS && block_size / type_size >= BLOSC_MIN_STREAM_LEN;
    return header.blocks() <= rest / 4 ? BLOSC_GOOD : BLOSC_OUTSIDE;
}

// A number of a chunk, that is not negative.
DEVICE bool blosc_number(const Input& in, u32 at, u32& number) {
    number = in.le32(at);
    return at <= in.len && in.len - at >= 4 && number <= BLOSC_MAX_NUMBER;
}

// The streams of one block, one after the other. Scope: one thread.
struct BloscStreams {
    u32 block, count, decoded_len;
    // Where the size of the next one stands; then the one that was read.
    u32 next, start, len;
};
DEVICE_CALL u32 blosc_open_block(const Input& in, const BloscHeader& header, u32 block, BloscStreams& streams) {
    u32 block_len = header.block_len(block);
    streams.block = block;
    streams.count = header.streams(block_len);
    streams.decoded_len = block_len / streams.count;
    if (streams.decoded_len * streams.count != block_len) return BLOSC_SPLIT;
    return blosc_number(in, BLOSC_HEADER_LEN + 4 * block, streams.next) ? BLOSC_GOOD : BLOSC_OUTSIDE;
}
DEVICE_CALL u32 blosc_next_stream(const Input& in, BloscStreams& streams) {
    if (!blosc_number(in, streams.next, streams.len)) return BLOSC_OUTSIDE;
    streams.start = streams.next + 4;
    if (streams.len > in.len - streams.start) return BLOSC_OUTSIDE;
    streams.next = streams.start + streams.len;
    return BLOSC_GOOD;
}

DEVICE void blosc_fail(u32* error, u32 block, u32 reason) { atomic_min(error, minimum(block, 0xfffffeu) << 8 | reason); }

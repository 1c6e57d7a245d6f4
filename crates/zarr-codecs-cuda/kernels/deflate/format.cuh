// What the parts of the DEFLATE decoder hand to each other. Terms are those of RFC 1951.
#pragma once

#include "../input.cuh"
#include "constants.cuh"

// One chunk, as the host describes it.
struct DeflateSlot {
    const u8* encoded;
    // Contiguous room for `decoded_len` bytes.
    u8* decoded;
    u32 encoded_len, decoded_len;

    DEVICE_MEMBER Input input() const { return Input{encoded, encoded_len}; }
};
static_assert(sizeof(DeflateSlot) == DEFLATE_SLOT_SIZE, "as the host has it");

// What the host gives the kernel.
struct Deflate {
    const DeflateSlot* slots;
    u32* statuses;
    // Slots that blocks of threads have taken: 0 at first.
    u32* taken;
    // DEFLATE_ARENA bytes for each block of threads.
    u8* arena;
    u32 slot_count;
    // DEFLATE_GZIP or DEFLATE_ZLIB.
    u32 format;
};
static_assert(sizeof(Deflate) == DEFLATE_PARAMS_SIZE, "as the host has it");

constexpr u32 LITERAL_SYMBOLS = 288;
constexpr u32 DISTANCE_SYMBOLS = 32;
constexpr u32 LENGTH_SYMBOLS = 19;
constexpr u32 END_OF_BLOCK = 256;
constexpr u32 MAX_CODE_LEN = 15;
constexpr u32 MAX_MATCH = 258;

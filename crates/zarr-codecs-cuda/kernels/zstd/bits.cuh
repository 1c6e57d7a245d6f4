// Streams of bits that are read from their end (RFC 8878 4.1). Scope: one thread.
//
// A stream comes through a ring of pieces in shared memory, each asked for long before it is read: from global memory, a miss of one thread would hold up all
// threads of its warp, and one of them misses all the time. So does waiting for a piece; so threads of a warp fill their rings at the same time, every few
// steps (`bits_fill`). Bits are taken from the ring by their position, without a branch. Registers of 32 bits, because shifts of 64 take several instructions.
#pragma once

#include "../input.cuh"

constexpr u32 PIECE = 16;
constexpr u32 PIECES = 16;
// The piece at the end of the ring is there before its start once more, so that what is looked at at once lies in one run.
constexpr u32 RING = PIECES * PIECE;
constexpr u32 RING_ROOM = PIECE + RING;
// The most bits to consume from one call of `bits_fill` to the next: with the 16 bytes that are looked at, what was asked for at the call before.
constexpr u32 FILL_BITS = 832;

struct BitReader {
    // Behind the piece that is there twice.
    u8* ring;
    // The stream, and the address that positions count from: `start` down to a multiple of RING.
    const u8* start;
    const u8* end;
    const u8* base;
    // The next bit is the one below this.
    i32 position;
    // Where the stream starts.
    i32 bottom;
    // The lowest piece that was asked for; the pieces that lie in the stream from end to end.
    i32 asked;
    i32 first_whole, end_whole;
};

// A piece of which not all is of the stream: the rest becomes zeros. Off the hot path, and out of its instructions.
DEVICE_CALL void bits_partial_piece(u8* to, const u8* start, const u8* end, const u8* at) {
    Bytes16 value = {{0, 0, 0, 0}};
    for (u32 byte = 0; byte < PIECE; byte++) {
        if (at + byte >= start && at + byte < end) value.word[byte / 4] |= (u32)load_constant(at + byte) << 8 * (byte % 4);
    }
    store16(to, value);
}

// Asks for the pieces that there is room for, once those asked for at the call before are there. Call it every FILL_BITS bits at least, all threads of a
// warp at the same time.
DEVICE void bits_fill(BitReader& bits) {
    copies_wait();
    i32 want = (bits.position >> 7) - (i32)(PIECES - 1);
    ROLLED
    while (bits.asked > want) {
        bits.asked--;
        const u8* at = bits.base + (i64)bits.asked * PIECE;
        u32 place = (u32)bits.asked % PIECES;
        u8* to = bits.ring + place * PIECE;
        bool whole = bits.asked >= bits.first_whole && bits.asked < bits.end_whole;
        if (whole) copy_later(to, at);
        else bits_partial_piece(to, bits.start, bits.end, at);
        if (place == PIECES - 1) {
            if (whole) copy_later(bits.ring - PIECE, at);
            else bits_partial_piece(bits.ring - PIECE, bits.start, bits.end, at);
        }
    }
}

// Opens the stream of bytes `start..end`, which is not empty. `ring`: RING_ROOM bytes of shared memory for this thread, aligned to 16. False where
// the last byte is 0: no bit marks the end.
DEVICE bool bits_open(BitReader& bits, const Input& in, u32 start, u32 end, u8* ring) {
    u32 last = in.byte(end - 1);
    if (last == 0) return false;
    bits.ring = ring + PIECE;
    bits.start = in.data + start;
    bits.end = in.data + end;
    u32 skew = (u32)(size_t)bits.start & (RING - 1);
    bits.base = bits.start - skew;
    bits.bottom = (i32)(8 * skew);
    bits.position = bits.bottom + (i32)((end - start - 1) * 8 + highest_bit(last));
    bits.first_whole = (i32)((skew + PIECE - 1) / PIECE);
    bits.end_whole = (i32)((skew + (end - start)) / PIECE);
    bits.asked = (bits.position >> 7) + 1;
    bits_fill(bits);
    copies_wait();
    return true;
}

// Bits not consumed. Negative once more were consumed than there are; those were zeros.
DEVICE i32 bits_left(const BitReader& bits) { return bits.position - bits.bottom; }

// The next 96 bits, the next one highest.
struct Window {
    u32 first, second, third;
};
DEVICE Window bits_look(const BitReader& bits) {
    u32 by = (u32)bits.position;
    const u32* words = (const u32*)(bits.ring + (by >> 3 & (RING - 4)));
    u32 above = words[0], a = words[-1], b = words[-2], c = words[-3];
    return Window{funnel_right_wrap(above, a, by), funnel_right_wrap(a, b, by), funnel_right_wrap(b, c, by)};
}

// Consumes bits.
DEVICE void bits_skip(BitReader& bits, u32 count) { bits.position -= (i32)count; }

// The highest `count` bits, at most 32.
DEVICE u32 bits_field(u32 window, u32 count) { return shift_right(window, 32 - count); }

// Reads `count` bits, at most 32, wherever that is.
DEVICE u32 bits_read(BitReader& bits, u32 count) {
    u32 value = bits_field(bits_look(bits).first, count);
    bits_skip(bits, count);
    bits_fill(bits);
    return value;
}

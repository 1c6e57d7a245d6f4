// Cyclic redundancy checks of 32 bits in reflected order: remainders of data by a polynomial.
//
// The remainder is linear: parts of the data have remainders of their own, which are moved by the bytes behind them, that is multiplied
// by a power of x, and added. A warp takes a part word by word: lane i has every 32nd word, and moves what it has by 128 bytes for each.
//
//   words   0 1 2 .. 31 | 32 33 .. 63 | ..            lane 0 has 0, 32, ..
//   sum     (.. (w0 * x^1024 + w32) * x^1024 + ..)    moved to the end of the part, and added over the lanes
//
// A `Field` has the polynomial as POLYNOMIAL, without its highest term, and power(i), which is x to the power of 8 * 2^i.
#pragma once

#include "simt.cuh"

// x^0: the highest bit is the lowest power.
constexpr u32 CRC_ONE = 0x80000000;

// The product of two polynomials. Scope: one thread.
template <class Field> DEVICE u32 crc_multiply(u32 a, u32 b) {
    u32 product = 0;
    for (u32 i = 0; i < 32; i++) {
        product ^= a & (0 - (b >> 31));
        b <<= 1;
        a = a >> 1 ^ (Field::POLYNOMIAL & (0 - (a & 1)));
    }
    return product;
}

// x^(8 * bytes): what moves a remainder by so many bytes. Scope: a warp, of which each lane has one bit of `bytes`.
template <class Field> DEVICE u32 crc_power(u32 bytes) {
    u32 power = bytes >> lane_index() & 1 ? Field::power(lane_index()) : CRC_ONE;
    for (u32 half = WARP / 2; half > 0; half /= 2) power = crc_multiply<Field>(power, warp_shuffle(power, lane_index() ^ half));
    return power;
}

// A remainder moved by one byte.
template <class Field> DEVICE u32 crc_byte(u32 sum, u32 byte) {
    sum ^= byte;
    for (u32 i = 0; i < 8; i++) sum = sum >> 1 ^ (Field::POLYNOMIAL & (0 - (sum & 1)));
    return sum;
}

// Products with x^1024, for each byte of the other factor.
struct CrcTables {
    u32 entries[4][256];
};

// Scope: a block of threads; without a barrier.
template <class Field> DEVICE void crc_tables(CrcTables& tables) {
    for (u32 i = thread_index(); i < 4 * 256; i += block_threads()) tables.entries[i / 256][i % 256] = crc_multiply<Field>((i % 256) << i / 256 * 8, Field::power(7));
}

// The remainder of a part. FIXED: no thread writes it while the kernel runs. Scope: a warp.
template <class Field, bool FIXED> DEVICE u32 crc_part(const CrcTables& tables, const u8* data, u32 len) {
    u32 head = minimum((u32)((0 - (size_t)data) & 3), len), words = (len - head) / 4, rounds = (words + WARP - 1) / WARP;
    u32 sum = 0;
    for (u32 i = 0; i < head; i++) sum = crc_byte<Field>(sum, FIXED ? load_constant(data + i) : data[i]);
    // Zeros before the first word change nothing: the last round is whole.
    const u32* first = (const u32*)(data + head);
    i64 index = (i64)words - (i64)(rounds * WARP) + lane_index();
    u32 own = 0;
    for (u32 round = 0; round < rounds; round++, index += WARP) {
        u32 word = index < 0 ? 0 : FIXED ? load_constant(first + index) : first[index];
        own = tables.entries[0][own & 0xff] ^ tables.entries[1][own >> 8 & 0xff] ^ tables.entries[2][own >> 16 & 0xff] ^ tables.entries[3][own >> 24];
        own ^= word;
    }
    // Lanes to pairs, pairs to fours, ..: the left half is moved by the words of the right one.
    for (u32 width = 1, bit = 2; width < WARP; width *= 2, bit++) {
        u32 right = warp_shuffle(own, lane_index() ^ width);
        if ((lane_index() & width) == 0) own = crc_multiply<Field>(own, Field::power(bit)) ^ right;
        own = warp_shuffle(own, lane_index() & ~width);
    }
    own = crc_multiply<Field>(own, Field::power(2));
    sum = crc_multiply<Field>(sum, crc_power<Field>(words * 4)) ^ own;
    for (u32 i = head + words * 4; i < len; i++) sum = crc_byte<Field>(sum, FIXED ? load_constant(data + i) : data[i]);
    return sum;
}

// What a check of `len` bytes is, whose remainder is `sum`: with ones before and a complement behind. Scope: a warp.
template <class Field> DEVICE u32 crc_value(u32 sum, u32 len) { return ~(sum ^ crc_multiply<Field>(0xffffffff, crc_power<Field>(len))); }

// Streams of bits that are read from their end (RFC 8878 4.1), written by many threads: each knows where its bits go.
#pragma once

#include "../simt.cuh"

// Puts `count` bits, at most 32, with nothing above them, at bit `at` of words that hold zeros there.
DEVICE void bits_put(u32* words, u32 at, u32 value, u32 count) {
    if (count == 0) return;
    u32 shift = at % 32;
    atomic_or(words + at / 32, value << shift);
    if (shift + count > 32) atomic_or(words + at / 32 + 1, value >> (32 - shift));
}

// Bytes of words go to memory that is aligned to 4: those of `from..to`, which others need not respect. `word` counts from `base`. Scope: one thread.
DEVICE void store_word(u8* base, u32 word, u32 value, u32 from, u32 to) {
    u32 at = word * 4;
    if (at >= from && at + 4 <= to) {
        *(u32*)(base + at) = value;
    } else {
        for (u32 i = 0; i < 4; i++) {
            if (at + i >= from && at + i < to) base[at + i] = (u8)(value >> 8 * i);
        }
    }
}

// Bits one behind the other, for little: of one thread.
struct BitWriter {
    u8* bytes;
    u32 room;
    u32 len;
    u64 pending;
    u32 count;

    // At most 32 bits, with nothing above them.
    DEVICE_MEMBER void put(u32 value, u32 bits) {
        pending |= (u64)value << count;
        count += bits;
        while (count >= 8) {
            if (len < room) bytes[len] = (u8)pending;
            len++;
            pending >>= 8;
            count -= 8;
        }
    }
    // The bits of the last byte; more bytes than there was room for say that it was too little.
    DEVICE_MEMBER u32 finish() {
        if (count != 0) put(0, 8 - count);
        return len;
    }
};

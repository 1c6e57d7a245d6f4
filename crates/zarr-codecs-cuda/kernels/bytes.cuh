// 16 bytes at a time, at any alignment.
#pragma once

#include "simt.cuh"

// Writes 16 bytes at any alignment. Scope: one thread.
DEVICE void store_any(u8* at, const Bytes16& value, u32 count) {
    if (count == 16 && ((size_t)at & 15) == 0) {
        store16(at, value);
    } else if (count == 16 && ((size_t)at & 3) == 0) {
        for (u32 i = 0; i < 4; i++) ((u32*)at)[i] = value.word[i];
    } else {
        UNROLL
        for (u32 i = 0; i < 16; i++) {
            if (i < count) at[i] = (u8)(value.word[i / 4] >> 8 * (i % 4));
        }
    }
}

// 16 bytes of `data` from `at`, all of which are there. Scope: one thread.
template <bool FIXED>
DEVICE Bytes16 load_any(const u8* data, u32 len, u32 at) {
    Bytes16 value = {{0, 0, 0, 0}};
    const u8* from = data + at;
    u32 skew = (u32)(size_t)from & 3;
    // Five aligned words hold them; all must be there.
    if (at >= 4 && at + 20 <= len) {
        const u32* words = (const u32*)(from - skew);
        u32 word[5];
        UNROLL
        for (u32 i = 0; i < 5; i++) word[i] = FIXED ? load_constant(words + i) : words[i];
        UNROLL
        for (u32 i = 0; i < 4; i++) value.word[i] = funnel_right_wrap(word[i + 1], word[i], 8 * skew);
    } else {
        UNROLL
        for (u32 i = 0; i < 16; i++) value.word[i / 4] |= (u32)from[i] << 8 * (i % 4);
    }
    return value;
}

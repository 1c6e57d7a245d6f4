// Encoded bytes as words, and their bits from the lowest of the first byte on. Scope: one thread.
#pragma once

#include "../input.cuh"

// Encoded bytes as words, from the multiple of 4 at or before the first byte. Positions of bits count from there.
struct Words {
    const u8* base;
    const u8* start;
    const u8* end;
    // Words that lie among the bytes from end to end.
    i32 first_whole, end_whole;

    DEVICE_MEMBER Words(const Input& in) {
        u32 skew = (u32)(size_t)in.data & 3;
        base = in.data - skew;
        start = in.data;
        end = in.data + in.len;
        first_whole = skew == 0 ? 0 : 1;
        end_whole = (i32)((skew + in.len) / 4);
    }
    // The same, from word `index` on.
    DEVICE_MEMBER Words from(u32 index) const {
        Words words = *this;
        words.base += (u64)index * 4;
        words.first_whole -= (i32)index;
        words.end_whole -= (i32)index;
        return words;
    }
    DEVICE_MEMBER u32 word(i32 index) const;
};

// A word of which not all is there: the rest is zeros.
DEVICE_CALL u32 partial_word(const Words& words, i32 index) {
    const u8* at = words.base + (i64)index * 4;
    u32 value = 0;
    for (u32 byte = 0; byte < 4; byte++) {
        if (at + byte >= words.start && at + byte < words.end) value |= (u32)load_constant(at + byte) << 8 * byte;
    }
    return value;
}

DEVICE_MEMBER u32 Words::word(i32 index) const {
    return index >= first_whole && index < end_whole ? load_constant((const u32*)base + index) : partial_word(*this, index);
}

// Bits of words that `Source` has, by number. `look` has 32 of them. Scope: one thread.
template <class Source> struct ForwardBits {
    const Source& words;
    // Two words, and one more that waits; how many were taken before the first of them.
    u32 first, second, third, taken;
    // Bits of the first word that are used.
    u32 used;

    DEVICE_MEMBER ForwardBits(const Source& words, u32 position) : words(words), taken(position / 32), used(position % 32) {
        first = words.word((i32)taken);
        second = words.word((i32)taken + 1);
        third = words.word((i32)taken + 2);
    }
    DEVICE_MEMBER u32 position() const { return taken * 32 + used; }
    DEVICE_MEMBER u32 look() const { return funnel_right_wrap(second, first, used); }
    // At most 32 bits.
    DEVICE_MEMBER void skip(u32 len) {
        used += len;
        if (used >= 32) {
            used -= 32;
            taken++;
            first = second;
            second = third;
            third = words.word((i32)taken + 2);
        }
    }
    // At most 31 bits.
    DEVICE_MEMBER u32 read(u32 len) {
        u32 value = look() & ((1u << len) - 1);
        skip(len);
        return value;
    }
};

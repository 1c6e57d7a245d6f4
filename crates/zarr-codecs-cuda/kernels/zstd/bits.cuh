// Streams of bits that are read from their end (RFC 8878 4.1). Scope: one thread.
#pragma once

#include "../input.cuh"

// The aligned words of a stream, from the last to the first; zeros before the stream.
struct Words {
    const u8* next;
    const u8* lowest;
    // The bits of the lowest word that belong to the stream.
    u32 lowest_mask;

    // Words are read whole: what lies before a stream are headers of its own chunk.
    DEVICE_MEMBER u32 take() {
        u32 value = 0;
        if (next >= lowest) {
            value = load_constant((const u32*)next);
            if (next == lowest) value &= lowest_mask;
        }
        next -= 4;
        return value;
    }
};

// Opens the stream of bytes `start..end`, which is not empty and not at the start of the chunk. `top` gets its first `count` bits, highest first,
// `left` the number of all bits. False where the last byte is 0: no bit marks the end.
DEVICE bool bits_open(const Input& in, u32 start, u32 end, Words& words, u64& top, u32& count, i32& left) {
    u32 last = in.byte(end - 1);
    if (last == 0) return false;
    const u8* from = in.data + start;
    words.lowest = from - ((size_t)from & 3);
    words.lowest_mask = ~0u << 8 * ((u32)(size_t)from & 3);
    left = (i32)((end - start - 1) * 8 + highest_bit(last));
    // The highest word may reach behind the chunk: byte by byte.
    const u8* back = in.data + (end - 1);
    const u8* word = back - ((size_t)back & 3);
    u32 bytes = (u32)(back - word) + 1;
    u32 value = 0;
    for (u32 i = 0; i < bytes; i++) {
        if (word + i >= from) value |= (u32)load_constant(word + i) << 8 * i;
    }
    count = (bytes - 1) * 8 + highest_bit(last);
    top = count == 0 ? 0 : (u64)value << (64 - count);
    words.next = word - 4;
    return true;
}

// A stream of bits with 64 to 128 of them at hand, and the word after those on its way.
struct BitReader {
    // The next 64 bits, the next one highest; those after them, and how many.
    u64 high, low;
    u32 low_count;
    u32 ahead;
    Words words;
    // Bits not consumed. Negative once more were consumed than there are; those were zeros.
    i32 left;
};

DEVICE bool bits_open(BitReader& bits, const Input& in, u32 start, u32 end) {
    u32 count;
    if (!bits_open(in, start, end, bits.words, bits.high, count, bits.left)) return false;
    u64 next = (u64)bits.words.take() << 32;
    next |= bits.words.take();
    bits.high |= next >> count;
    bits.low = count == 0 ? 0 : next << (64 - count);
    bits.low_count = count;
    bits.ahead = bits.words.take();
    return true;
}

// Has at least 96 bits at hand: 32 below the highest 64.
DEVICE void bits_fill(BitReader& bits) {
    if (bits.low_count <= 32) {
        bits.low |= (u64)bits.ahead << (32 - bits.low_count);
        bits.low_count += 32;
        bits.ahead = bits.words.take();
    }
}

// Consumes `count` bits, at most 32 between two calls of `bits_fill`.
DEVICE void bits_skip(BitReader& bits, u32 count) {
    bits.high = bits.high << count | (bits.low >> 1) >> (63 - count);
    bits.low <<= count;
    bits.low_count -= count;
    bits.left -= (i32)count;
}

// `count` bits, at most 32, from bit `from` of `high`; together at most 64.
DEVICE u32 bits_field(u64 high, u32 from, u32 count) { return (u32)(((high << from) >> 1) >> (63 - count)); }

// Reads `count` bits, at most 32.
DEVICE u32 bits_read(BitReader& bits, u32 count) {
    bits_fill(bits);
    u32 value = bits_field(bits.high, 0, count);
    bits_skip(bits, count);
    return value;
}

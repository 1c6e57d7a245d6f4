// Short sequences of a block, as the symbols of a span. What ends them is one that is not short, or too near to the end of the block.
#pragma once

#include "../spans/spans.cuh"

// Lengths of literals and of matches go on in at most so many bytes.
constexpr u32 LZ4_LITERALS_BYTES = 8;
constexpr u32 LZ4_MATCH_BYTES = 16;
constexpr u32 LZ4_SHORT_LITERALS = 15 + LZ4_LITERALS_BYTES * 255 - 1;
constexpr u32 LZ4_SHORT_MATCH = 4 + 15 + LZ4_MATCH_BYTES * 255 - 1;
// Words that such a sequence takes behind its first: the literals, 4 bytes, and what goes on of lengths; and one to look at.
constexpr u32 LZ4_BEHIND = (LZ4_SHORT_LITERALS + 4 + LZ4_LITERALS_BYTES + LZ4_MATCH_BYTES) / 4 + 4;

// Where its literals and the next one start, in bits; how many bytes.
struct Lz4Short {
    u32 literals_bit, next_bit, literals, offset, match;
    bool good;
};

template <class Span> struct Lz4Words {
    const SpanWords<Span>& words;

    // 32 bits from `at` on.
    DEVICE_MEMBER u32 look(u32 at) const { return funnel_right_wrap(words.word((i32)(at / 32) + 1), words.word((i32)(at / 32)), at); }
};

// What goes on of a length of 15, in bytes from `at` on, of which `next` has the first. False where it does not end within `most` bytes. Scope: one thread.
template <class Span> DEVICE bool lz4_goes_on(const Lz4Words<Span>& words, u32 next, u32 most, u32& len, u32& at) {
    u32 byte = 255;
    for (u32 i = 0; i < most && byte == 255; i++) {
        byte = (i == 0 ? next : words.look(at)) & 0xff;
        len += byte;
        at += 8;
    }
    return byte != 255;
}

// Reads a sequence. Scope: one thread.
template <class Span> DEVICE Lz4Short lz4_short(const Lz4Words<Span>& words, u32 at) {
    Lz4Short sequence = {};
    u32 next = words.look(at), token = next & 0xff;
    sequence.literals = token >> 4;
    at += 8;
    if (sequence.literals == 15 && !lz4_goes_on(words, next >> 8, LZ4_LITERALS_BYTES, sequence.literals, at)) return sequence;
    sequence.literals_bit = at;
    at += 8 * sequence.literals;
    next = words.look(at);
    sequence.offset = next & 0xffff;
    sequence.match = 4 + (token & 15);
    at += 16;
    if ((token & 15) == 15 && !lz4_goes_on(words, next >> 16, LZ4_MATCH_BYTES, sequence.match, at)) return sequence;
    sequence.next_bit = at;
    // An offset of 0 is of no byte.
    sequence.good = sequence.offset != 0;
    return sequence;
}

struct Lz4Symbols {
    // Where the last sequence ends, at most.
    u32 limit;

    template <class Span> DEVICE_MEMBER Region read(const SpanWords<Span>& words, u32 from, u32 to) const {
        Region region = {{0, 0, 0}, NO_END, 0};
        const Lz4Words<Span> look{words};
        u32 at = from;
        while (at < to) {
            Lz4Short sequence = lz4_short(look, at);
            if (!sequence.good || sequence.next_bit > limit) {
                region.end = at;
                // If this is a wrong place, the next region is as good as any to go on from.
                at = to;
                break;
            }
            region.totals.output += sequence.literals + sequence.match;
            region.totals.literals += sequence.literals;
            region.totals.sequences++;
            at = sequence.next_bit;
        }
        region.exit = at;
        return region;
    }

    template <class Span> DEVICE_MEMBER void stage(const SpanWords<Span>& words, u32 from, u32 to, const SpanArena& arena, Totals& matched) const {
        const Lz4Words<Span> look{words};
        Totals at = matched;
        for (u32 position = from; position < to;) {
            Lz4Short sequence = lz4_short(look, position);
            if (!sequence.good || sequence.next_bit > limit) break;
            u32 end = at.output + sequence.literals + sequence.match;
            for (u32 tile = (at.output + ZSTD_TILE_STEP - 1) / ZSTD_TILE_STEP; tile * ZSTD_TILE_STEP < end; tile++) {
                u32 literals = at.literals + minimum(tile * ZSTD_TILE_STEP - at.output, sequence.literals);
                arena.staged.notes[tile] = at.sequences | (u64)literals << 32;
            }
            for (u32 i = 0; i < sequence.literals; i += 4) {
                u32 four = look.look(sequence.literals_bit + 8 * i), count = minimum(sequence.literals - i, 4u);
                for (u32 byte = 0; byte < count; byte++) arena.literals[at.literals + i + byte] = (u8)(four >> 8 * byte);
            }
            at.literals += sequence.literals;
            at.output = end;
            SpanFormat::put(arena, at.sequences, sequence.offset, at.output, at.literals);
            at.sequences++;
            position = sequence.next_bit;
        }
        matched = at;
    }
};

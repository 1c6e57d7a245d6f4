// The symbols of a block (RFC 1951 3.2.3), as those of a span. What ends them is the end of the block.
#pragma once

#include "../spans/spans.cuh"
#include "codes.cuh"

struct DeflateSymbols {
    const u32* literal_table;
    const u32* distance_table;
    const Code& literals;
    const Code& distances;

    template <class Span> DEVICE_MEMBER Region read(const SpanWords<Span>& words, u32 from, u32 to) const;
    template <class Span> DEVICE_MEMBER void stage(const SpanWords<Span>& words, u32 from, u32 to, const SpanArena& arena, Totals& matched) const;
};

// What comes next: a symbol of the one code, or of the other where a length came before. The same steps for both: threads of a warp do not agree.
struct NextCode {
    const DeflateSymbols& tables;
    bool distance = false;

    DEVICE_MEMBER explicit NextCode(const DeflateSymbols& tables) : tables(tables) {}
    DEVICE_MEMBER Entry look(u32 next) const {
        const u32* table = distance ? tables.distance_table : tables.literal_table;
        u32 entry = table[next & (distance ? (1u << DistanceTable::LOG) - 1 : (1u << LiteralTable::LOG) - 1)];
        if (entry == 0) entry = distance ? long_entry<DistanceTable>(tables.distances, next) : long_entry<LiteralTable>(tables.literals, next);
        return Entry{entry};
    }
};

// Reads on behind the end of the block, too, which may be none.
template <class Span> DEVICE_MEMBER Region DeflateSymbols::read(const SpanWords<Span>& words, u32 from, u32 to) const {
    Region region = {{0, 0, 0}, NO_END, 0};
    ForwardBits<SpanWords<Span>> bits(words, from);
    NextCode code(*this);
    while (bits.position() < to || code.distance) {
        u32 next = bits.look();
        Entry entry = code.look(next);
        if (region.end == NO_END) {
            region.totals.output += entry.output(next);
            region.totals.literals += entry.is_literal();
            region.totals.sequences += entry.is_length();
        }
        code.distance = entry.is_length() != 0;
        bits.skip(entry.total());
        if (entry.is_end() && region.end == NO_END) region.end = bits.position();
    }
    region.exit = bits.position();
    return region;
}

template <class Span>
DEVICE_MEMBER void DeflateSymbols::stage(const SpanWords<Span>& words, u32 from, u32 to, const SpanArena& arena, Totals& matched) const {
    ForwardBits<SpanWords<Span>> bits(words, from);
    NextCode code(*this);
    Totals at = matched;
    while (bits.position() < to || code.distance) {
        u32 next = bits.look();
        Entry entry = code.look(next);
        if (entry.is_end()) break;
        // Of a length, what it is the length of comes next.
        u32 tile = (at.output + ZSTD_TILE_STEP - 1) / ZSTD_TILE_STEP, len = entry.output(next);
        if (tile * ZSTD_TILE_STEP < at.output + len) arena.staged.notes[tile] = at.sequences | (u64)at.literals << 32;
        if (entry.is_literal()) arena.literals[at.literals++] = (u8)entry.value();
        at.output += len;
        if (code.distance) {
            Meaning distance = distance_of(entry.value());
            u32 offset = distance.base + (next >> entry.len() & ((1u << distance.extra) - 1));
            SpanFormat::put(arena, at.sequences, offset, at.output, at.literals);
            at.sequences++;
            matched = at;
        }
        code.distance = entry.is_length() != 0;
        bits.skip(entry.total());
    }
}

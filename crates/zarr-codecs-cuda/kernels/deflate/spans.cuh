// The symbols of a block (RFC 1951 3.2.3), many at a time.
//
// Where a symbol starts is known when the one before is read; but whoever reads on from a wrong place soon meets a right one. So the bits at hand, a span, are cut
// into as many regions as there are threads. Each thread reads its region from the start, and then once more from where the thread before it came
// out, as often as that is another place than it thought. What it is that all of them read, once they agree, is staged like the sequences of
// zstd, and executed by the same code. That codes fall into step by themselves, and that a GPU can make use of it, is in Weißenberger and Schmidt, "Massively
// Parallel Huffman Decoding on GPUs" (ICPP 2018); that matches and extra bits do not stand in the way is seen here.
//
//   region 0      1      2      3      4            the first round reads 1 and 3 from wrong places; if 1 comes
//   |------>|..x--->|------>|..x--->|----E..|       out right nevertheless, the second one settles them all
//                                      the end of the block: what follows is not of it
#pragma once

#include "../zstd/execute.cuh"
#include "codes.cuh"

// After so many rounds, what has been settled has to do.
constexpr u32 MAX_ROUNDS = 32;

// A span of as many regions as a block has threads. Smaller regions are read sooner; larger ones settle in fewer rounds, and are less work for the same bits.
template <u32 THREADS_, u32 REGION_BITS_> struct Span {
    static constexpr u32 THREADS = THREADS_;
    static constexpr u32 REGION_BITS = REGION_BITS_;
    static constexpr u32 REGION_WORDS = REGION_BITS / 32;
    // The span may start in the midst of a word, the last match reach behind the end, and more words be looked at than are used.
    static constexpr u32 WORDS = THREADS * REGION_WORDS + 8;
    // In shared memory, where regions start in different banks.
    DEVICE_MEMBER static constexpr u32 place(u32 index) { return index + index / REGION_WORDS; }
    static constexpr u32 PLACES = WORDS + WORDS / REGION_WORDS;
    // The most that it makes: output (a multiple of ZSTD_TILE_STEP), sequences, literals. One region never makes more.
    static constexpr u32 OUTPUT = 1 << 20;
    static constexpr u32 SEQUENCES = 1 << 14;
    static constexpr u32 LITERALS = 1 << 14;
    static constexpr u32 NOTES = OUTPUT / ZSTD_TILE_STEP;
    // A symbol takes a bit, a match two.
    static_assert(REGION_BITS / 2 * MAX_MATCH + 16 <= OUTPUT && REGION_BITS + 16 <= LITERALS && REGION_BITS / 2 <= SEQUENCES, "one fits");
    static_assert(8 * NOTES + 6 * SEQUENCES == DEFLATE_ARENA, "as the host has it");
};

// What a span is staged in.
struct SpanArena {
    Staged staged;
    u8* literals;
    // Sequences that there is room for.
    u32 capacity;

    // `at`: DEFLATE_ARENA bytes. `literals`: in shared memory, for one that is written at a time.
    template <class Span> DEVICE_MEMBER static SpanArena of(u8* at, u8* literals) {
        return SpanArena{staged_at(at, Span::NOTES, Span::SEQUENCES), literals, Span::SEQUENCES};
    }
};

// The words of a span.
template <class Span> struct SpanWords {
    const u32* words;

    DEVICE_MEMBER u32 word(i32 index) const { return words[Span::place((u32)index)]; }
};

// As sequences are staged here: the offset by itself, so that who stages a match need not know where its literals start, which another thread may have.
// `put` says where the sequence after a match starts.
struct SpanFormat {
    static constexpr u32 OFFSET_BITS = 24;
    DEVICE_MEMBER static void put(const SpanArena& to, u32 index, u32 offset, u32 next_output, u32 next_literals) {
        ((u16*)to.staged.offsets)[index] = (u16)offset;
        if (index + 1 < to.capacity) to.staged.places[index + 1] = (next_output & (ZSTD_TILE_STEP - 1)) | (next_literals & (ZSTD_TILE_STEP - 1)) << 12;
    }
    DEVICE_MEMBER static u32 offset(const Staged& from, u32 index) { return ((const u16*)from.offsets)[index]; }
};

struct Totals {
    u32 sequences, literals, output;
};

constexpr u32 NO_END = ~0u;

struct SymbolTables {
    const u32* literal_table;
    const u32* distance_table;
    const Code& literals;
    const Code& distances;
};

// What comes next: a symbol of the one code, or of the other where a length came before. The same steps for both: threads of a warp do not agree.
struct NextCode {
    const SymbolTables& tables;
    bool distance = false;

    DEVICE_MEMBER explicit NextCode(const SymbolTables& tables) : tables(tables) {}
    DEVICE_MEMBER Entry look(u32 next) const {
        const u32* table = distance ? tables.distance_table : tables.literal_table;
        u32 entry = table[next & (distance ? (1u << DistanceTable::LOG) - 1 : (1u << LiteralTable::LOG) - 1)];
        if (entry == 0) entry = distance ? long_entry<DistanceTable>(tables.distances, next) : long_entry<LiteralTable>(tables.literals, next);
        return Entry{entry};
    }
};

// What a region is found to be: what it makes up to the end of the block, where that is, and where the first symbol behind the region starts.
struct Region {
    Totals totals;
    u32 end, exit;
};

// Reads symbols from bit `from` on, until one starts at or behind bit `to`: behind the end of the block, too, which may be none. Scope: one thread.
template <class Span> DEVICE Region read_region(const SymbolTables& tables, const SpanWords<Span>& words, u32 from, u32 to) {
    Region region = {{0, 0, 0}, NO_END, 0};
    ForwardBits<SpanWords<Span>> bits(words, from);
    NextCode code(tables);
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

// Reads what `read_region` has read, up to the end of the block, and stages it. `at`: what there is before; becomes what there is up to the last match. Scope: one thread.
template <class Span>
DEVICE void stage_region(const SymbolTables& tables, const SpanWords<Span>& words, u32 from, u32 to, const SpanArena& arena, Totals& matched) {
    ForwardBits<SpanWords<Span>> bits(words, from);
    NextCode code(tables);
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

template <class Span> struct SpanShared {
    // Where each thread came out.
    u32 exits[Span::THREADS];
    // By warp.
    Totals sums[Span::THREADS / WARP];
    // The first thread that met the end of the block, in rounds of even and odd number; the first that is not settled; threads whose symbols are taken.
    u32 first_end[2], first_wrong, taken;
    // Of these: where they end; whether the block does; what they make, and that before the last match.
    u32 exit, ended;
    Totals all, matched;
};

// Reads a span, which starts at bit `first` of the first word, and stages what `prefix` bytes before it and its symbols make. `shared` says what that is.
// `room`: Span::PLACES numbers of shared memory. Scope: a block of threads.
template <class Span>
DEVICE void read_span(const SymbolTables& tables, const Words& encoded, u32 first, u32 prefix, const SpanArena& arena, SpanShared<Span>& shared, u32* room) {
    for (u32 i = thread_index(); i < Span::WORDS; i += Span::THREADS) room[Span::place(i)] = encoded.word((i32)i);
    const SpanWords<Span> words{room};
    u32 thread = thread_index(), warp = thread / WARP;
    u32 from = first + thread * Span::REGION_BITS, to = from + Span::REGION_BITS;
    if (thread == 0) {
        shared.first_end[0] = shared.first_end[1] = shared.first_wrong = NO_END;
        shared.taken = 0;
        shared.matched = Totals{0, 0, 0};
    }
    block_barrier();
    Region region = read_region(tables, words, from, to);
    u32 first_end = NO_END;
    for (u32 round = 0;; round++) {
        shared.exits[thread] = region.exit;
        block_barrier();
        u32 start = thread == 0 ? first : shared.exits[thread - 1];
        // Whoever started at a wrong place may have met an end that is none, which would keep those behind it from reading on.
        if (region.end != NO_END && start == from) atomic_min(&shared.first_end[round % 2], thread);
        block_barrier();
        first_end = shared.first_end[round % 2];
        // Nobody cares for what is behind the end, once all before it agree.
        bool wrong = start != from && thread <= first_end;
        if (thread == 0) shared.first_end[(round + 1) % 2] = NO_END;
        if (!block_any(wrong)) break;
        if (round == MAX_ROUNDS) {
            if (wrong) atomic_min(&shared.first_wrong, thread);
            break;
        }
        if (!wrong) continue;
        from = start;
        region = read_region(tables, words, from, to);
    }
    block_barrier();
    u32 settled = minimum(shared.first_wrong, first_end == NO_END ? NO_END : first_end + 1);
    Totals own = thread < settled ? region.totals : Totals{0, 0, 0};
    Totals sum = {warp_inclusive_sum(own.sequences), warp_inclusive_sum(own.literals), warp_inclusive_sum(own.output)};
    if (lane_index() == WARP - 1) shared.sums[warp] = sum;
    block_barrier();
    sum.literals += prefix;
    sum.output += prefix;
    for (u32 i = 0; i < warp; i++) {
        sum.sequences += shared.sums[i].sequences;
        sum.literals += shared.sums[i].literals;
        sum.output += shared.sums[i].output;
    }
    bool fits = thread < settled && sum.sequences <= Span::SEQUENCES && sum.literals <= Span::LITERALS && sum.output <= Span::OUTPUT;
    u32 fitting = warp_ballot(fits);
    if (lane_index() == 0) atomic_add(&shared.taken, count_ones(fitting));
    block_barrier();
    u32 taken = shared.taken;
    if (thread + 1 == taken) {
        shared.ended = region.end != NO_END ? 1 : 0;
        shared.exit = region.end != NO_END ? region.end : region.exit;
        shared.all = sum;
    }
    block_barrier();
    if (thread < taken) {
        Totals at = {sum.sequences - own.sequences, sum.literals - own.literals, sum.output - own.output};
        stage_region(tables, words, from, to, arena, at);
        if (own.sequences != 0 && sum.sequences == shared.all.sequences) shared.matched = at;
    }
    block_barrier();
}

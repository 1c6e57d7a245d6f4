// What is compressed without a word on where anything starts, many symbols at a time: those of deflate, and sequences of LZ4.
//
// Where a symbol starts is known when the one before is read; but whoever reads on from a wrong place soon meets a right one. So what is at hand, a span, is cut
// into as many regions as there are threads. Each thread reads its region from the start, and then once more from where the thread before it came
// out, as often as that is another place than it thought. What it is that all of them read, once they agree, is staged like the sequences of
// zstd, and executed by the same code. That codes fall into step by themselves, and that a GPU can make use of it, is in Weißenberger and Schmidt, "Massively
// Parallel Huffman Decoding on GPUs" (ICPP 2018); that matches and extra bits do not stand in the way is seen here.
//
//   region 0      1      2      3      4            the first round reads 1 and 3 from wrong places; if 1 comes
//   |------>|..x--->|------>|..x--->|----E..|       out right nevertheless, the second one settles them all
//                                      the end: what follows is read in another way
//
// What is read is up to a `Symbols`, which has, each for one thread:
//   Region read(words, from, to) const: reads symbols from bit `from` on, until one starts at or behind bit `to`, where it comes out; counts those before the end, if it meets one, and
//     says where to go on from there: behind the end, or at what ends the span and is not of it
//   void stage(words, from, to, arena, matched) const: stages what `read` has counted. `matched`: what there is before; becomes what there is up to the last match
// Where a region starts behind its own end, there is nothing to read or stage.
#pragma once

#include "../zstd/execute.cuh"
#include "constants.cuh"
#include "words.cuh"

// After so many rounds, what has been settled has to do.
constexpr u32 MAX_ROUNDS = 32;

// A span of as many regions as a block has threads. Smaller regions are read sooner; larger ones settle in fewer rounds, and are less work for the same bits. A symbol takes at most
// `BEHIND` words behind the one that it starts in.
template <u32 THREADS_, u32 REGION_BITS_, u32 BEHIND, u32 LITERALS_> struct Span {
    static constexpr u32 THREADS = THREADS_;
    static constexpr u32 REGION_BITS = REGION_BITS_;
    static constexpr u32 REGION_WORDS = REGION_BITS / 32;
    // The span may start in the midst of a word, the last symbol reach behind the end, and more words be looked at than are used.
    static constexpr u32 WORDS = THREADS * REGION_WORDS + BEHIND;
    // In shared memory, where regions start in different banks.
    DEVICE_MEMBER static constexpr u32 place(u32 index) { return index + index / REGION_WORDS; }
    static constexpr u32 PLACES = WORDS + WORDS / REGION_WORDS;
    // The most that it makes: output (a multiple of ZSTD_TILE_STEP), sequences, literals.
    static constexpr u32 OUTPUT = 1 << 20;
    static constexpr u32 SEQUENCES = 1 << 14;
    static constexpr u32 LITERALS = LITERALS_;
    static constexpr u32 NOTES = OUTPUT / ZSTD_TILE_STEP;
    static_assert(8 * NOTES + 6 * SEQUENCES == SPANS_ARENA, "as the host has it");
    // Steps of a tile, and bytes of shared memory that a tile takes where a sequence makes `LEAST` bytes at least.
    static constexpr u32 STEPS = THREADS * ZSTD_BYTES_PER_THREAD / ZSTD_TILE_STEP;
    DEVICE_MEMBER static constexpr u32 tile_size(u32 least) { return THREADS * ZSTD_BYTES_PER_THREAD * 2 + (THREADS * ZSTD_BYTES_PER_THREAD / least + 4) * 16; }
};

// What a span is staged in.
struct SpanArena {
    Staged staged;
    u8* literals;
    // Sequences that there is room for.
    u32 capacity;

    // `at`: SPANS_ARENA bytes. `literals`: in shared memory, for one that is written at a time.
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
    static constexpr u32 PLACE_BITS = 12, OFFSET_BITS = 24, STEP = ZSTD_TILE_STEP;
    static_assert(STEP == 1 << PLACE_BITS, "as it is staged");
    DEVICE_MEMBER static void put(const SpanArena& to, u32 index, u32 offset, u32 next_output, u32 next_literals) {
        ((u16*)to.staged.offsets)[index] = (u16)offset;
        if (index + 1 < to.capacity) to.staged.places[index + 1] = (next_output & (STEP - 1)) | (next_literals & (STEP - 1)) << PLACE_BITS;
    }
    DEVICE_MEMBER static u32 offset(const Staged& from, u32 index) { return ((const u16*)from.offsets)[index]; }
};

struct Totals {
    u32 sequences, literals, output;
};

constexpr u32 NO_END = ~0u;

// What a region is found to be: what it makes up to the end, where that is, and where the first symbol behind the region starts.
struct Region {
    Totals totals;
    u32 end, exit;
};

// Has regions that one before them reaches over pass that on: in a warp at once, where rounds would take one region each. Scope: a warp.
DEVICE void pass_over(Region& region, u32& from, u32 to) {
    for (;;) {
        u32 before = warp_shuffle_up(region.exit, 1);
        bool over = lane_index() != 0 && before >= to && before != from;
        if (warp_ballot(over) == 0) break;
        if (!over) continue;
        from = before;
        region = Region{{0, 0, 0}, NO_END, before};
    }
}

template <class Span> struct SpanShared {
    // Where each thread came out.
    u32 exits[Span::THREADS];
    // By warp.
    Totals sums[Span::THREADS / WARP];
    // The first thread that met the end, in rounds of even and odd number; the first that is not settled; threads whose symbols are taken.
    u32 first_end[2], first_wrong, taken;
    // Of these: where they end; whether there is the end; what they make, and that up to the last match.
    u32 exit, ended;
    Totals all, matched;
};

// Reads a span, which starts at bit `first` of the first word, and stages what `prefix` bytes before it and its symbols make, of which no more than `most` bytes are wanted: as many
// regions of it as that and the arena have room for, which may be none. `shared` says what that is. `room`: Span::PLACES numbers of shared memory. Scope: a block of threads.
template <class Span, class Symbols>
DEVICE void read_span(const Symbols& symbols, const Words& encoded, u32 first, u32 prefix, u32 most, const SpanArena& arena, SpanShared<Span>& shared, u32* room) {
    for (u32 i = thread_index(); i < Span::WORDS; i += Span::THREADS) room[Span::place(i)] = encoded.word((i32)i);
    const SpanWords<Span> words{room};
    u32 thread = thread_index(), warp = thread / WARP;
    u32 from = first + thread * Span::REGION_BITS, to = from + Span::REGION_BITS;
    if (thread == 0) {
        shared.first_end[0] = shared.first_end[1] = shared.first_wrong = NO_END;
        shared.taken = 0;
        shared.matched = Totals{0, 0, 0};
        shared.all = Totals{0, prefix, prefix};
        shared.exit = first;
        shared.ended = 0;
    }
    block_barrier();
    Region region = symbols.read(words, from, to);
    pass_over(region, from, to);
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
        if (wrong) {
            from = start;
            region = symbols.read(words, from, to);
        }
        pass_over(region, from, to);
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
    bool fits = thread < settled && sum.sequences <= Span::SEQUENCES && sum.literals <= Span::LITERALS && sum.output <= Span::OUTPUT && sum.output - prefix <= most;
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
        symbols.stage(words, from, to, arena, at);
        if (own.sequences != 0 && sum.sequences == shared.all.sequences) shared.matched = at;
    }
    block_barrier();
}

// Tiles are written 16 bytes at a time: of those before byte `at` of the output, some are written once more. Stages them as literals, and says how many. `decoded`: the start of the output.
// Scope: a block of threads.
DEVICE u32 stage_prefix(const u8* decoded, u32 at, const SpanArena& arena) {
    u32 prefix = (u32)(size_t)(decoded + at) & 15;
    if (prefix > at) prefix = 0;
    if (thread_index() < prefix) arena.literals[thread_index()] = decoded[at - prefix + thread_index()];
    if (thread_index() == 0 && prefix != 0) arena.staged.notes[0] = 0;
    return prefix;
}

// Makes what `read_span` staged, behind byte `at` of the output. An offset may reach back to byte `start`. False where one is wrong. Scope: a block of threads.
template <class Span> DEVICE bool execute_span(const Input& in, const SpanShared<Span>& span, const SpanArena& arena, u8* decoded, u32 at, u32 prefix, u32 start, Tile tile) {
    Block block = {};
    block.kind = COMPRESSED_BLOCK;
    block.literals_kind = COMPRESSED_LITERALS;
    block.sequences = span.all.sequences;
    block.literals_len = span.all.literals;
    block.output_len = span.all.output;
    block.sequences_output = span.matched.output;
    block.sequences_literals = span.matched.literals;
    block.output = at - prefix;
    block.frame_start = start;
    return execute_block<SpanFormat, Span::STEPS>(in, block, arena.literals, arena.staged, decoded + (at - prefix), tile);
}

// Chunks of `numcodecs.lz4`: the number of decoded bytes, in 4 bytes in little-endian order, and an LZ4 block.
//
// A chunk is decoded by one block of threads. Short sequences, many at a time, are staged and executed as those of zstd are; one with many literals or a long match is
// copied by all threads, by itself; and the end of the block, where other rules hold, is decoded by a warp.
//
// What is accepted is what zarr-codecs-cpu accepts, which is what LZ4_decompress_safe does of the block.
#pragma once

#include "../spans/chunks.cuh"
#include "block.cuh"
#include "constants.cuh"
#include "sequences.cuh"

// Sequences of spans end so many bytes before either end at least: rules on how a block ends do not reach as far.
constexpr u32 LZ4_MARGIN = 32;
// With fewer encoded bytes, a span would have a sequence or two.
constexpr u32 LZ4_TAIL = 64;
// Steps that neither take nor make so many bytes are not worth a block of threads. There may be some, and one for each that is.
constexpr u32 LZ4_WORTH = 1024;
constexpr u32 LZ4_POOR_STEPS = 64;

template <u32 THREADS> struct Lz4Span : Span<THREADS, 512, LZ4_BEHIND, THREADS * 56> {
    static_assert((Lz4Span::REGION_BITS + 23) / 24 * (LZ4_SHORT_LITERALS + LZ4_SHORT_MATCH) + 16 <= Lz4Span::OUTPUT, "one fits");
};
typedef Lz4Span<LZ4_THREADS> Lz4Narrow;
typedef Lz4Span<LZ4_WIDE_THREADS> Lz4Wide;

template <class Span_> struct Lz4Shared {
    typedef Span_ Span;
    SpanShared<Span> span;
    u32 span_slot;
    // Told by one thread to all others: read behind one barrier, and written behind another.
    u32 good;
    Lz4Sequence sequence;
    alignas(16) u8 span_literals[Span::LITERALS];
    // One after the other.
    union {
        u32 words[Span::PLACES];
        alignas(16) u8 tile[Span::tile_size(LZ4_MIN_MATCH)];
    };

    DEVICE_MEMBER u32 decode(const SpanSlot& slot, u32, const SpanArena& arena);
};
static_assert(sizeof(Lz4Shared<Lz4Narrow>) <= LZ4_SHARED && sizeof(Lz4Shared<Lz4Wide>) <= LZ4_WIDE_SHARED, "as the host has it");

// Who repeats: a block of threads.
struct Lz4Block {
    DEVICE_MEMBER static u32 index() { return thread_index(); }
    DEVICE_MEMBER static u32 threads() { return block_threads(); }
    DEVICE_MEMBER static void barrier() { block_barrier(); }
    DEVICE_MEMBER static void copy(u8* output, u32 from, u32 to, u32 len) { copy_run<false>(output + from, len, output + to); }
};

// Decodes a chunk. Scope: a block of threads.
template <class Span> DEVICE u32 lz4_chunk(const SpanSlot& slot, const SpanArena& arena, Lz4Shared<Span>& shared) {
    Input in = slot.input();
    if (in.len < 4) return LZ4_TRUNCATED;
    if (in.le32(0) != slot.decoded_len) return LZ4_SIZE;
    // Of nothing there is one block.
    if (slot.decoded_len == 0) return in.len == 5 && in.byte(4) == 0 ? SPANS_GOOD : LZ4_DAMAGED;
    const Words words(in);
    Lz4Input input(in);
    u32 skew = (u32)(in.data - words.base), at = 4, to = 0, from = 0, made_before = 0, poor = LZ4_POOR_STEPS;
    while (at < in.len) {
        // Chunks of sequences that each take a step would take long; nobody writes many of them.
        poor += at - from >= LZ4_WORTH || to - made_before >= LZ4_WORTH ? 1 : -1;
        if (poor == 0) break;
        from = at;
        made_before = to;
        if (thread_index() < WARP) {
            Lz4Sequence sequence = {};
            bool good = lz4_next(input, at, in.len, to, slot.decoded_len - to, sequence);
            if (thread_index() == 0) {
                shared.good = good ? 1 : 0;
                shared.sequence = sequence;
            }
        }
        block_barrier();
        Lz4Sequence sequence = shared.sequence;
        if (shared.good == 0) return LZ4_DAMAGED;
        bool is_short = !sequence.last && sequence.offset != 0 && sequence.literals <= LZ4_SHORT_LITERALS && sequence.match <= LZ4_SHORT_MATCH;
        if (!is_short) {
            copy_run<true>(in.data + sequence.literals_at, sequence.literals, slot.decoded + to);
            if (sequence.last) return SPANS_GOOD;
            to += sequence.literals;
            block_barrier();
            lz4_repeat<Lz4Block>(slot.decoded, to, sequence.offset, sequence.match);
            to += sequence.match;
            at = sequence.next;
            continue;
        }
        if (in.len - at <= LZ4_TAIL || slot.decoded_len - to <= LZ4_MARGIN) break;
        u32 base = (at + skew) / 4, prefix = stage_prefix(slot.decoded, to, arena);
        // Counted from `base` on, in bits, of which a span has few.
        u64 limit = ((u64)(in.len - LZ4_MARGIN) + skew - (u64)base * 4) * 8;
        const Lz4Symbols symbols{(u32)minimum(limit, (u64)1 << 30)};
        read_span(symbols, words.from(base), (at + skew) % 4 * 8, prefix, slot.decoded_len - LZ4_MARGIN - to, arena, shared.span, shared.words);
        // The first region alone makes more than is left to make, or reaches the end.
        if (shared.span.all.sequences == 0) break;
        u32 next = base * 4 + shared.span.exit / 8 - skew, made = shared.span.all.output - prefix;
        if (!execute_span(in, shared.span, arena, slot.decoded, to, prefix, 0, tile_in(shared.tile))) return LZ4_DAMAGED;
        at = next;
        to += made;
    }
    block_barrier();
    if (thread_index() < WARP) {
        bool good = lz4_rest(input, at, in.len, slot.decoded, to, slot.decoded_len);
        if (thread_index() == 0) shared.good = good ? 1 : 0;
    }
    block_barrier();
    return shared.good != 0 ? SPANS_GOOD : LZ4_DAMAGED;
}
template <class Span> DEVICE_MEMBER u32 Lz4Shared<Span>::decode(const SpanSlot& slot, u32, const SpanArena& arena) { return lz4_chunk(slot, arena, *this); }

// lz4_decode, lz4_decode_wide: chunks of `numcodecs.lz4`. The one where chunks fill the device, the other with more threads for each where they do not.
//   grid, reads, writes, shared: of spans/chunks.cuh
KERNEL(lz4_decode, SpanChunks, LZ4_THREADS, 4) { decode_chunks<Lz4Shared<Lz4Narrow>>(p); }
KERNEL(lz4_decode_wide, SpanChunks, LZ4_WIDE_THREADS, 1) { decode_chunks<Lz4Shared<Lz4Wide>>(p); }

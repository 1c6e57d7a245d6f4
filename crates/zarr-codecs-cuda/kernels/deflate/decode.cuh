// DEFLATE (RFC 1951) in members of gzip (RFC 1952), or in a stream of zlib (RFC 1950).
//
//   gzip   member | zeros | member | ..         member   magic, flags, .. | blocks | CRC-32 | bytes, modulo 2^32
//   zlib   flags | blocks | Adler-32 | anything
//   block  1 bit: the last one   2 bits: kind | stored: length, its complement, bytes   others: lengths of codes, symbols
//
// What is accepted is what zarr-codecs-cpu accepts, which is what libdeflate does of a member or a stream.
//
// NVIDIA H200, 512 MiB of float32 by zlib at level 5, GB/s decoded: 72 in 8,192 chunks of 64 KiB, 64 in 1 MiB, 57 in 4 MiB; with its bytes shuffled 73, 61, 37, in 16 MiB 10, in 64 MiB 3: one
// block of threads decodes a chunk. benches/record/gpu-gzip.md says where the time goes, and what was tried.
#pragma once

#include "../spans/chunks.cuh"
#include "checksum.cuh"
#include "symbols.cuh"

enum DeflateKind : u32 { STORED = 0, FIXED = 1, DYNAMIC = 2 };

template <class Span_> struct DeflateShared {
    typedef Span_ Span;
    SpanShared<Span> span;
    u32 span_slot;
    // Told by one thread to all others.
    u32 reason, kind, last, len, literal_count, distance_count;
    // The next bit, from the start of the chunk; of gzip, the next byte that is not zero.
    u64 position;
    u32 found;
    u32 sums[2];
    u8 lens[LITERAL_SYMBOLS + DISTANCE_SYMBOLS];
    Code literals, distances;
    u32 literal_table[1 << LiteralTable::LOG];
    // Of the code for lengths, before there is that for distances.
    u32 distance_table[1 << DistanceTable::LOG];
    u8 span_literals[Span::LITERALS];
    // One after the other.
    union {
        CrcTables crc;
        u32 words[Span::PLACES];
        alignas(16) u8 tile[Span::tile_size(3)];
    };

    DEVICE_MEMBER u32 decode(const SpanSlot& slot, u32 format, const SpanArena& arena);
};
template <u32 THREADS> struct DeflateSpan : Span<THREADS, 512, 8, 1 << 14> {
    // One region never makes more than there is room for: a symbol takes a bit, a match two.
    static_assert(DeflateSpan::REGION_BITS / 2 * MAX_MATCH + 16 <= DeflateSpan::OUTPUT && DeflateSpan::REGION_BITS + 16 <= DeflateSpan::LITERALS, "one fits");
    static_assert(DeflateSpan::REGION_BITS / 2 <= DeflateSpan::SEQUENCES, "one fits");
};
typedef DeflateSpan<DEFLATE_THREADS> NarrowSpan;
typedef DeflateSpan<DEFLATE_WIDE_THREADS> WideSpan;
static_assert(sizeof(DeflateShared<NarrowSpan>) <= DEFLATE_SHARED && sizeof(DeflateShared<WideSpan>) <= DEFLATE_WIDE_SHARED, "as the host has it");

constexpr u32 GZIP_HEADER_LEN = 10;
constexpr u32 GZIP_TRAILER_LEN = 8;
enum GzipFlag : u32 { GZIP_HEADER_CRC = 2, GZIP_EXTRA = 4, GZIP_NAME = 8, GZIP_COMMENT = 16, GZIP_RESERVED = 0xe0 };
constexpr u32 ZLIB_HEADER_LEN = 2;
constexpr u32 ZLIB_TRAILER_LEN = 4;

// Reads the header at `at`, of a member or a stream, and leaves `at` behind it. Scope: one thread.
DEVICE u32 read_header(const Input& in, u32 format, u32& at) {
    u32 left = in.len - at;
    if (format == DEFLATE_ZLIB) {
        u32 both = in.byte(at) << 8 | in.byte(at + 1);
        at += ZLIB_HEADER_LEN;
        if (left < ZLIB_HEADER_LEN + ZLIB_TRAILER_LEN) return DEFLATE_TRUNCATED;
        bool good = both % 31 == 0 && (both >> 8 & 15) == 8 && both >> 12 <= 7 && (both & 0x20) == 0;
        return good ? SPANS_GOOD : DEFLATE_HEADER;
    }
    if (left < GZIP_HEADER_LEN + GZIP_TRAILER_LEN) return DEFLATE_TRUNCATED;
    u32 flags = in.byte(at + 3);
    if (in.le24(at) != 0x088b1f || (flags & GZIP_RESERVED) != 0) return DEFLATE_HEADER;
    at += GZIP_HEADER_LEN;
    if (flags & GZIP_EXTRA) {
        u32 len = in.le16(at);
        at += 2;
        if (in.len - at < len + GZIP_TRAILER_LEN) return DEFLATE_TRUNCATED;
        at += len;
    }
    for (u32 flag = GZIP_NAME; flag <= GZIP_COMMENT; flag *= 2) {
        if (!(flags & flag)) continue;
        while (at < in.len && in.byte(at++) != 0) {}
        if (in.len - at < GZIP_TRAILER_LEN) return DEFLATE_TRUNCATED;
    }
    if (flags & GZIP_HEADER_CRC) {
        at += 2;
        if (at > in.len || in.len - at < GZIP_TRAILER_LEN) return DEFLATE_TRUNCATED;
    }
    return SPANS_GOOD;
}

// The order of the lengths of the code for lengths (RFC 1951 3.2.7).
CONSTANT u8 LENGTH_ORDER[LENGTH_SYMBOLS] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};

// Reads the header of a block, and of a dynamic one how long the codes for lengths are, to `lens`. `words`: of the chunk; `end`: where the blocks have to end, in bits.
// Scope: one thread.
template <class Span> DEVICE void read_block_header(const Words& words, u64 end, DeflateShared<Span>& shared) {
    u32 base = (u32)(shared.position / 32);
    const Words near = words.from(base);
    ForwardBits<Words> bits(near, (u32)(shared.position % 32));
    shared.last = bits.read(1);
    shared.kind = bits.read(2);
    shared.reason = SPANS_GOOD;
    if (shared.kind == STORED) {
        // From the next byte on.
        u32 position = (bits.position() + 7) / 8 * 8;
        ForwardBits<Words> lens(near, position);
        u32 both = lens.look();
        shared.len = both & 0xffff;
        if (shared.len != (~both >> 16)) shared.reason = DEFLATE_STORED_LEN;
        shared.position = (u64)base * 32 + position + 32;
        if (shared.position + (u64)shared.len * 8 > end) shared.reason = DEFLATE_TRUNCATED;
    } else if (shared.kind == DYNAMIC) {
        shared.literal_count = 257 + bits.read(5);
        shared.distance_count = 1 + bits.read(5);
        u32 count = 4 + bits.read(4);
        for (u32 i = 0; i < LENGTH_SYMBOLS; i++) {
            shared.lens[LENGTH_ORDER[i]] = i < count ? (u8)bits.read(3) : 0;
        }
        shared.position = (u64)base * 32 + bits.position();
    } else {
        shared.position = (u64)base * 32 + bits.position();
        if (shared.kind != FIXED) shared.reason = DEFLATE_RESERVED_BLOCK;
    }
    if (shared.position > end) shared.reason = DEFLATE_TRUNCATED;
}

// Bits that one lane reads of the lengths of codes.
constexpr u32 LENGTHS_BITS = 32;
constexpr u32 NO_LEN = 16;

// Some lengths of codes: how many; the last one, NO_LEN where it is that before them; where those that follow start.
struct LengthsRun {
    u32 count, last, exit;
};
// Reads from bit `from` on, until a symbol starts at or behind `to`. STORE: puts the lengths to `lens`, from number `at` on, up to `all`: at the end of
// these stops. `last`: the one before. Scope: one thread.
template <bool STORE> DEVICE LengthsRun read_lengths(const Words& words, const u32* table, u32 from, u32 to, u8* lens, u32 at, u32 all, u32 last) {
    LengthsRun run = {0, NO_LEN, 0};
    ForwardBits<Words> bits(words, from);
    while (bits.position() < to && (!STORE || at + run.count < all)) {
        u32 next = bits.look();
        Entry entry{table[next & ((1u << LengthTable::LOG) - 1)]};
        u32 symbol = entry.value(), more = next >> entry.len() & ((1u << (entry.total() - entry.len())) - 1);
        u32 repeat = symbol < 16 ? 1 : symbol == 18 ? 11 + more : 3 + more;
        if (symbol != 16) run.last = symbol < 16 ? symbol : 0;
        if (STORE) {
            u32 len = run.last == NO_LEN ? last : run.last;
            for (u32 i = 0; i < repeat && at + run.count + i < all; i++) lens[at + run.count + i] = (u8)len;
        }
        run.count += repeat;
        bits.skip(entry.total());
    }
    run.exit = bits.position();
    return run;
}

// Reads the lengths of both codes (RFC 1951 3.2.7), by the table in the place of that for distances. As symbols are read, each lane from a place that may be wrong at
// first. False where they do not add up. Scope: a warp.
template <class Span> DEVICE bool read_code_lengths(const Words& words, DeflateShared<Span>& shared) {
    u32 lane = lane_index(), all = shared.literal_count + shared.distance_count, read = 0, last = NO_LEN;
    u64 position = shared.position;
    const u32* table = shared.distance_table;
    // One lane will write it.
    warp_barrier();
    for (;;) {
        u32 base = (u32)(position / 32), first = (u32)(position % 32);
        const Words near = words.from(base);
        u32 from = first + lane * LENGTHS_BITS, to = from + LENGTHS_BITS;
        LengthsRun run = read_lengths<false>(near, table, from, to, nullptr, 0, 0, 0);
        for (;;) {
            u32 start = warp_shuffle_up(run.exit, 1);
            bool wrong = lane != 0 && start != from;
            if (warp_ballot(wrong) == 0) break;
            if (!wrong) continue;
            from = start;
            run = read_lengths<false>(near, table, from, to, nullptr, 0, 0, 0);
        }
        u32 sum = warp_inclusive_sum(run.count), before = read + sum - run.count;
        u32 known = warp_ballot(run.last != NO_LEN), known_before = known & lanes_before();
        u32 of_lane = warp_shuffle(run.last, known_before == 0 ? 0 : highest_bit(known_before));
        u32 my_last = known_before == 0 ? last : of_lane;
        bool ends = before < all && before + run.count >= all, good = true;
        if (before < all) {
            LengthsRun stored = read_lengths<true>(near, table, from, to, shared.lens, before, all, my_last);
            if (ends) {
                good = before + stored.count == all;
                shared.position = (u64)base * 32 + stored.exit;
            }
            // There is nothing before the first one.
            if (my_last == NO_LEN && run.count != 0 && shared.lens[before] == NO_LEN) good = false;
        }
        if (warp_ballot(!good) != 0) return false;
        if (warp_ballot(ends) != 0) return true;
        read += warp_shuffle(sum, WARP - 1);
        last = known == 0 ? last : warp_shuffle(run.last, highest_bit(known));
        position = (u64)base * 32 + warp_shuffle(run.exit, WARP - 1);
    }
}

// The codes of a block and their tables. Scope: a block of threads.
template <class Span> DEVICE u32 build_tables(const Words& words, DeflateShared<Span>& shared) {
    u32 thread = thread_index(), warp = thread / WARP;
    bool bad = false;
    if (shared.kind == FIXED) {
        // RFC 1951 3.2.6.
        for (u32 i = thread; i < LITERAL_SYMBOLS; i += block_threads()) shared.lens[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
        if (thread < DISTANCE_SYMBOLS) shared.lens[LITERAL_SYMBOLS + thread] = 5;
        if (thread == 0) {
            shared.literal_count = LITERAL_SYMBOLS;
            shared.distance_count = DISTANCE_SYMBOLS;
        }
    } else {
        if (warp == 0) bad = !code_build(shared.distances, shared.lens, LENGTH_SYMBOLS);
        if (block_any(bad)) return DEFLATE_CODE;
        table_build<LengthTable>(shared.distance_table, shared.distances);
        block_barrier();
        if (warp == 0) bad = !read_code_lengths(words, shared);
    }
    if (block_any(bad)) return DEFLATE_CODE_LENGTHS;
    if (warp == 0) bad = !code_build(shared.literals, shared.lens, shared.literal_count);
    if (warp == 1) bad = !code_build(shared.distances, shared.lens + shared.literal_count, shared.distance_count);
    if (block_any(bad)) return DEFLATE_CODE;
    table_build<LiteralTable>(shared.literal_table, shared.literals);
    table_build<DistanceTable>(shared.distance_table, shared.distances);
    block_barrier();
    return SPANS_GOOD;
}

// What is decoded of a chunk: bytes, of which the first of this member. The next bit.
struct Progress {
    u32 output, member;
    u64 position;
};

// Decodes the symbols of a block whose tables are there. Scope: a block of threads.
template <class Span>
DEVICE u32 decode_symbols(const SpanSlot& slot, const Words& words, u64 end, const SpanArena& arena, DeflateShared<Span>& shared, Progress& at) {
    const DeflateSymbols symbols{shared.literal_table, shared.distance_table, shared.literals, shared.distances};
    const Tile tile = tile_in(shared.tile);
    for (;;) {
        u32 base = (u32)(at.position / 32), prefix = stage_prefix(slot.decoded, at.output, arena);
        read_span(symbols, words.from(base), (u32)(at.position % 32), prefix, ~0u, arena, shared.span, shared.words);
        const SpanShared<Span>& span = shared.span;
        u32 made = span.all.output - prefix;
        bool ended = span.ended != 0;
        at.position = (u64)base * 32 + span.exit;
        if (at.position > end) return DEFLATE_TRUNCATED;
        if (made > slot.decoded_len - at.output) return DEFLATE_OUTPUT_TOO_LARGE;
        // An offset may reach back to the start of the member.
        if (!execute_span(slot.input(), span, arena, slot.decoded, at.output, prefix, at.member, tile)) return DEFLATE_DISTANCE;
        at.output += made;
        block_barrier();
        if (ended) return SPANS_GOOD;
    }
}

// Decodes the blocks of a member or a stream up to the last one. `blocks`: how many with codes there may be. Scope: a block of threads.
template <class Span>
DEVICE u32 decode_blocks(const SpanSlot& slot, const Words& words, u64 end, const SpanArena& arena, DeflateShared<Span>& shared, Progress& at, u32& blocks) {
    for (;;) {
        if (thread_index() == 0) {
            shared.position = at.position;
            read_block_header(words, end, shared);
        }
        block_barrier();
        u32 reason = shared.reason, last = shared.last;
        if (reason == SPANS_GOOD) {
            if (shared.kind == STORED) {
                u32 len = shared.len;
                u64 from = shared.position;
                if (len > slot.decoded_len - at.output) return DEFLATE_OUTPUT_TOO_LARGE;
                copy_run<true>(words.base + from / 8, len, slot.decoded + at.output);
                at.position = from + (u64)len * 8;
                at.output += len;
                block_barrier();
            } else if (blocks == 0) {
                reason = DEFLATE_TOO_MANY_BLOCKS;
            } else {
                blocks--;
                reason = build_tables(words, shared);
                at.position = shared.position;
                if (reason == SPANS_GOOD) reason = decode_symbols(slot, words, end, arena, shared, at);
            }
        }
        if (reason != SPANS_GOOD || last) return reason;
    }
}

// Compares what follows the blocks. Scope: a block of threads.
template <class Span>
DEVICE u32 check_trailer(const Input& in, u32 at, u32 format, const u8* data, u32 len, DeflateShared<Span>& shared) {
    if (format == DEFLATE_ZLIB) {
        u32 stored = in.byte(at) << 24 | in.byte(at + 1) << 16 | in.byte(at + 2) << 8 | in.byte(at + 3);
        return adler32(shared.sums, data, len) == stored ? SPANS_GOOD : DEFLATE_CHECKSUM;
    }
    if (in.le32(at + 4) != len) return DEFLATE_LEN;
    return crc32(shared.crc, shared.sums, data, len) == in.le32(at) ? SPANS_GOOD : DEFLATE_CHECKSUM;
}

// The first byte from `at` on that is not zero. Scope: a block of threads.
DEVICE u32 skip_zeros(const Input& in, u32 at, u32* found) {
    for (u32 from = at; from < in.len; from += block_threads()) {
        block_barrier();
        if (thread_index() == 0) *found = in.len;
        block_barrier();
        if (in.byte(from + thread_index()) != 0) atomic_min(found, from + thread_index());
        block_barrier();
        if (*found < in.len) return *found;
    }
    return in.len;
}

// Decodes a chunk. Scope: a block of threads.
template <class Span>
DEVICE u32 decode_chunk(const SpanSlot& slot, u32 format, const SpanArena& arena, DeflateShared<Span>& shared) {
    Input in = slot.input();
    const Words words(in);
    u32 before = 8 * (u32)(in.data - words.base), trailer = format == DEFLATE_GZIP ? GZIP_TRAILER_LEN : ZLIB_TRAILER_LEN;
    // Blocks whose codes are made for hardly a symbol could make a small chunk take long; nobody writes many of them.
    u32 blocks = 64 + in.len / 16;
    Progress at = {0, 0, 0};
    u32 next = 0;
    for (;;) {
        if (thread_index() == 0) {
            u32 behind = next;
            shared.reason = read_header(in, format, behind);
            shared.position = before + (u64)behind * 8;
        }
        block_barrier();
        if (shared.reason != SPANS_GOOD) return shared.reason;
        at.position = shared.position;
        at.member = at.output;
        block_barrier();
        u32 reason = decode_blocks(slot, words, before + (u64)(in.len - trailer) * 8, arena, shared, at, blocks);
        if (reason != SPANS_GOOD) return reason;
        u32 behind = (u32)((at.position - before + 7) / 8);
        block_barrier();
        reason = check_trailer(in, behind, format, slot.decoded + at.member, at.output - at.member, shared);
        if (reason != SPANS_GOOD) return reason;
        next = format == DEFLATE_GZIP ? skip_zeros(in, behind + trailer, &shared.found) : in.len;
        if (next == in.len) return at.output == slot.decoded_len ? SPANS_GOOD : DEFLATE_OUTPUT_TOO_SMALL;
        if (in.le16(next) != 0x8b1f) return DEFLATE_BETWEEN;
        block_barrier();
    }
}
template <class Span> DEVICE_MEMBER u32 DeflateShared<Span>::decode(const SpanSlot& slot, u32 format, const SpanArena& arena) { return decode_chunk(slot, format, arena, *this); }

// deflate_decode, deflate_decode_wide: chunks of gzip or zlib. The one where chunks fill the device, the other with more threads for each where they do not.
//   grid, reads, writes, shared: of spans/chunks.cuh
KERNEL(deflate_decode, SpanChunks, DEFLATE_THREADS, 3) { decode_chunks<DeflateShared<NarrowSpan>>(p); }
KERNEL(deflate_decode_wide, SpanChunks, DEFLATE_WIDE_THREADS, 1) { decode_chunks<DeflateShared<WideSpan>>(p); }

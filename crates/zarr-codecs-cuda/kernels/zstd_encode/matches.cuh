// From content to sequences: where bytes repeat that stand up to ZSTD_ENCODE_BLOCK bytes before.
//
// A warp takes a block, 32 positions at a time: each thread looks one of them up in a table of where the same 4 bytes stood last, and finds how long they go on. Then the
// warp takes matches from left to right. One gives way to a longer one that starts a little later: of numbers, matches that start at their own border are the long ones.
#pragma once

#include "format.cuh"

constexpr u32 MATCH_LOG = 13;
constexpr u32 MATCH_TABLE = 1u << MATCH_LOG;
static_assert(MATCH_TABLE * 2 == ZSTD_MATCHES_SHARED, "as the host has it");
// Bytes that a match has at least.
constexpr u32 MATCH_MIN = 4;
// How much later a longer one may start.
constexpr u32 MATCH_LATER = 3;
// Every second position is noted, so that the table lasts for longer: matches of numbers lie at even distances. What starts between two of them is found a byte late, and
// then goes back.
constexpr u32 MATCH_STEP = 2;
constexpr u32 MATCH_STEPS = 0x55555555;
// How far a thread looks by itself; all of the warp look further.
constexpr u32 MATCH_ALONE = 32;
// Matches of just MATCH_MIN bytes that lie further back take more bits than literals.
constexpr u32 MATCH_NEAR = 2048;
// For so many batches without a match, the next one is passed over; and the most that are passed over at a time.
constexpr u32 MATCH_PATIENCE = 8;
constexpr u32 MATCH_LEAP = 7;

// Threads without a word have a hash for each, which no word has.
DEVICE u32 match_hash(u32 word, bool is_word) { return is_word ? word * 2654435761u >> (32 - MATCH_LOG) : MATCH_TABLE + lane_index(); }

// Notes a position of each of `peers`, the threads with the same hash whose positions are noted: the last one stays.
DEVICE void match_note(u16* table, u32 hash, u32 peers, u32 position) {
    if (peers >> lane_index() == 1 && hash < MATCH_TABLE) table[hash] = (u16)position;
}

// How many bytes from `at` are those `distance` before, up to `end`; a word at a time, at most `most`. Scope: one thread.
DEVICE u32 match_len(const u8* data, u32 len, u32 at, u32 distance, u32 end, u32 most) {
    u32 found = 0;
    while (found + 8 <= most && at + found + 8 <= end) {
        u32 from = at + found;
        u32 first = word_of(data, len, from) ^ word_of(data, len, from - distance);
        u32 second = word_of(data, len, from + 4) ^ word_of(data, len, from + 4 - distance);
        if (first != 0) return found + trailing_zeros(first) / 8;
        if (second != 0) return found + 4 + trailing_zeros(second) / 8;
        found += 8;
    }
    while (found < most && at + found + 4 <= end) {
        u32 differ = word_of(data, len, at + found) ^ word_of(data, len, at + found - distance);
        if (differ != 0) return found + trailing_zeros(differ) / 8;
        found += 4;
    }
    while (found < most && at + found < end && load_constant(data + at + found) == load_constant(data + at + found - distance)) found++;
    return found;
}

// The same without a limit. Scope: a warp.
DEVICE u32 match_len_together(const u8* data, u32 len, u32 at, u32 distance, u32 end) {
    u32 found = 0;
    for (;;) {
        u32 from = at + found + 4 * lane_index();
        u32 mine = from < end ? match_len(data, len, from, distance, end, 4) : 0;
        u32 ended = warp_ballot(mine < 4);
        if (ended != 0) {
            u32 first = trailing_zeros(ended);
            return found + 4 * first + warp_shuffle(mine, first);
        }
        found += 4 * WARP;
    }
}

// The last three offsets, the last one first; 0 where they are not known.
struct Repeats {
    u32 first, second, third;
};

// How an offset is written (RFC 8878 3.1.1.5), and what it becomes for those after.
DEVICE u32 repeats_push(Repeats& repeats, u32 distance, bool has_literals) {
    u32 written = distance + 3;
    if (has_literals) {
        if (distance == repeats.first) return 1;
        if (distance == repeats.second) written = 2;
        else if (distance == repeats.third) written = 3;
    } else {
        if (distance == repeats.second) written = 1;
        else if (distance == repeats.third) written = 2;
        else if (distance + 1 == repeats.first) written = 3;
    }
    if (distance != repeats.second) repeats.third = repeats.second;
    repeats.second = repeats.first;
    repeats.first = distance;
    return written;
}

// zstd_matches: sequences and literals.
//   grid: a warp for each block; shared: ZSTD_MATCHES_SHARED
//   reads: sources and their data; writes: blocks, sequences, literals
KERNEL(zstd_matches, Encode, ZSTD_MATCHES_THREADS, 13) {
    u16* table = (u16*)shared_memory();
    u32 lane = lane_index(), block = block_index();
    u32 slot = slot_of_block(p, block);
    const EncodeSource& source = p.sources[slot];
    const u8* data = source.data;
    u32 len = source.len;
    u32 start = (block - source.first_block) * ZSTD_ENCODE_BLOCK;
    u32 end = minimum(len, start + ZSTD_ENCODE_BLOCK);
    u64 at = source.at + start;
    EncodeSequence* sequences = sequences_of(p, at, block);
    u8* literals = literals_of(p, at);
    u32 room = (end - start) / ZSTD_ENCODE_DENSITY;

    // Entries that say nothing say 0: a place like any other, if it is within reach.
    for (u32 i = lane; i < MATCH_TABLE / 2; i += WARP) ((u32*)table)[i] = 0;
    warp_barrier();
    // What the blocks before leave in the table of who goes through all of them.
    for (u32 before = start < ZSTD_ENCODE_BLOCK ? 0 : start - ZSTD_ENCODE_BLOCK; before < start; before += MATCH_STEP * WARP) {
        u32 position = before + MATCH_STEP * lane;
        bool whole = position + 4 <= len;
        u32 hash = match_hash(whole ? word_of(data, len, position) : 0, whole);
        match_note(table, hash, warp_match(hash), position);
        warp_barrier();
    }

    // At the start of a frame, the offsets are known (RFC 8878 3.1.1.5).
    Repeats repeats = start == 0 ? Repeats{1, 4, 8} : Repeats{0, 0, 0};
    u32 sequence_count = 0, literal_count = 0;
    // Where the literals of the next sequence start; batches without a match.
    u32 cursor = start, quiet = 0;
    // A batch is asked for while the one before it is looked at: most often, it is the next.
    auto word_at = [&](u32 position) {
        return position + 4 <= end ? word_of(data, len, position) : position < end ? load_constant(data + position) : 0;
    };
    u32 ahead = start, word_ahead = word_at(start + lane);
    for (u32 base = start; base < end;) {
        u32 position = base + lane;
        bool whole = position + 4 <= end;
        u32 word = base == ahead ? word_ahead : word_at(position);
        ahead = base + WARP;
        word_ahead = word_at(ahead + lane);
        u32 hash = match_hash(word, whole);
        u32 same = warp_match(hash);
        u32 before = same & lanes_before();
        u32 near = before == 0 ? lane : highest_bit(before);
        u32 near_word = warp_shuffle(word, near);
        // Where it may have stood before: all places are asked at once.
        u32 last = repeats.first, noted = whole ? (position - table[hash]) & 0xffff : 0;
        bool has_last = whole && last != 0 && last <= position, has_noted = noted != 0 && noted <= position;
        u32 last_word = has_last ? word_of(data, len, position - last) : 0;
        u32 noted_word = has_noted ? word_of(data, len, position - noted) : 0;
        u32 distance = 0;
        if (has_last && last_word == word) distance = last;
        else if (whole && near != lane && near_word == word) distance = lane - near;
        else if (has_noted && noted_word == word) distance = noted;
        warp_barrier();
        match_note(table, hash, same & MATCH_STEPS << base % MATCH_STEP, position);
        // How far it goes on, and how many bytes before it are the same, too: it may have started before it was found.
        u32 found = 0, back = 0;
        if (distance != 0) {
            found = MATCH_MIN + match_len(data, len, position + MATCH_MIN, distance, end, MATCH_ALONE - MATCH_MIN);
            u32 most = minimum(minimum(MATCH_STEP - 1, lane), position - distance);
            while (back < most && load_constant(data + position - back - 1) == load_constant(data + position - distance - back - 1)) back++;
            if (found + back == MATCH_MIN && distance > MATCH_NEAR) found = 0;
        }
        bool taken = found != 0;
        UNROLL
        for (u32 later = 1; later <= MATCH_LATER; later++) {
            u32 then = warp_shuffle(found, lane + later);
            if (lane + later < WARP && then > found) taken = false;
        }
        u32 matches = sequence_count < room ? warp_ballot(taken) : 0;
        quiet = matches == 0 ? quiet + 1 : 0;

        u32 covered = 0, next = 0;
        while (next < WARP && (matches & ~0u << next) != 0 && sequence_count < room) {
            u32 first = trailing_zeros(matches & ~0u << next);
            u32 match = warp_shuffle(found, first), offset = warp_shuffle(distance, first);
            if (match == MATCH_ALONE) match += match_len_together(data, len, base + first + match, offset, end);
            u32 earlier = minimum(warp_shuffle(back, first), first - next);
            first -= earlier;
            match += earlier;
            u32 run = base + first - cursor;
            u32 written = repeats_push(repeats, offset, run != 0);
            if (lane == 0) sequences[sequence_count] = EncodeSequence{(u16)run, (u16)(match - 3), written};
            sequence_count++;
            next = first + match;
            cursor = base + next;
            covered |= (next < WARP ? (1u << next) - 1 : ~0u) & ~0u << first;
        }
        bool literal = position < end && (covered >> lane & 1) == 0;
        u32 kept = warp_ballot(literal);
        if (literal) literals[literal_count + count_ones(kept & lanes_before())] = (u8)word;
        literal_count += count_ones(kept);
        base += maximum(next, WARP);

        u32 leap = minimum(quiet / MATCH_PATIENCE, MATCH_LEAP);
        for (; leap > 0 && base < end; leap--, base += WARP) {
            if (base + lane < end) literals[literal_count + lane] = load_constant(data + base + lane);
            literal_count += minimum(end - base, WARP);
        }
        warp_barrier();
    }
    if (lane == 0) p.blocks[block] = EncodeBlock{slot, start, end - start, sequence_count, literal_count, 0, 0, 0, 0};
}

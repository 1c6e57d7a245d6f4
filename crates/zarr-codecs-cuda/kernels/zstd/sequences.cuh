// Sequences (RFC 8878 3.1.1.3.2 and 3.1.1.4 to 3.1.1.5): from bits to places and offsets.
//
// Repeated offsets depend on the block before, which other threads decode at the same time. So an offset is staged as a function of the three at the
// block's start where it depends on them. In `bits` bits, 20, 24 or 30:
//
//     0 .. 2^(bits - 1) - 1                the offset; the last stands for all larger ones, which no chunk staged so can have
//     1  which, of 2 bits  value           the `which`-th offset at the start of the block, less what `value` lacks to be all ones
#pragma once

#include "fse.cuh"

constexpr u32 MIN_MATCH = 3;
constexpr u32 MAX_LITERAL_LENGTH = 35, MAX_OFFSET = 31, MAX_MATCH_LENGTH = 52;

// By table: 0 literal lengths, 1 offsets, 2 match lengths.
CONSTANT u8 TABLE_SYMBOLS[3] = {MAX_LITERAL_LENGTH, MAX_OFFSET, MAX_MATCH_LENGTH};
CONSTANT u8 TABLE_LOG[3] = {9, 8, 9};
CONSTANT u8 PREDEFINED_LOG[3] = {6, 5, 6};
CONSTANT u8 PREDEFINED_SYMBOLS[3] = {36, 29, 53};
// RFC 8878 3.1.1.3.2.2.
CONSTANT i16 PREDEFINED_COUNTS[3][53] = {
    {4, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3, 2, 1, 1, 1, 1, 1, -1, -1, -1, -1},
    {1, 1, 1, 1, 1, 1, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1},
    {1, 4, 3, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
     1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1, -1, -1}};

// The first length of a code, and the bits that follow it (RFC 8878 3.1.1.3.2.1.1).
DEVICE u32 literal_length_bits(u32 code) {
    return code < 16 ? 0 : code < 20 ? 1 : code < 22 ? 2 : code < 24 ? 3 : code == 24 ? 4 : code - 19;
}
DEVICE u32 literal_length_base(u32 code) {
    if (code < 16) return code;
    if (code < 20) return 16 + (code - 16) * 2;
    if (code < 22) return 24 + (code - 20) * 4;
    if (code < 24) return 32 + (code - 22) * 8;
    return code == 24 ? 48 : 1u << (code - 19);
}
DEVICE u32 match_length_bits(u32 code) {
    return code < 32 ? 0 : code < 36 ? 1 : code < 38 ? 2 : code < 40 ? 3 : code < 42 ? 4 : code == 42 ? 5 : code - 36;
}
DEVICE u32 match_length_base(u32 code) {
    if (code < 32) return code + 3;
    if (code < 36) return 35 + (code - 32) * 2;
    if (code < 38) return 43 + (code - 36) * 4;
    if (code < 40) return 51 + (code - 38) * 8;
    if (code < 42) return 67 + (code - 40) * 16;
    return code == 42 ? 99 : (1u << (code - 36)) + 3;
}

// A state of a table: what it says of the length, and the state after.
//     0..4 bits that the next state takes from the stream   8..12 bits that the value takes   16..20 what comes before those   23..31 what comes before the others
// The first length of a code is a multiple of two to the power of its bits, the first next state of a state likewise: so both are put in front of what is read.
DEVICE u32 sequence_entry(u32 which, u32 code, FseState next) {
    u32 extra = which == 0 ? literal_length_bits(code) : which == 1 ? code : match_length_bits(code);
    u32 before = which == 0 ? literal_length_base(code) >> extra : which == 1 ? 1 : (match_length_base(code) - MIN_MATCH) >> extra;
    return next.bits | extra << 8 | before << 16 | (next.base >> next.bits) << 23;
}

// The counts of the three tables of a block, while they are read. Places of `entries`: 512 for literal lengths, 256, 512.
struct Tables {
    i16 counts[3][54];
    u8 log[3];
    u8 symbols[3];
    // The only code of an RLE table.
    u8 code[3];
    bool good;
    u32 reason;
};
constexpr u32 TABLES_ENTRIES = 512 + 256 + 512;
DEVICE u32 table_place(u32 which) { return which == 0 ? 0 : which == 1 ? 512 : 768; }

// Reads what describes the tables that a block uses, from the blocks that define them. Gives where the block's bitstream starts.
// Scope: one thread.
DEVICE_CALL u32 tables_open(Tables& tables, const Input& in, const Block& block, const Block* const* defined_by) {
    tables.good = false;
    u32 stream = 0;
    // Descriptions lie one after the other: those of this block have to be read in any case, to find its bitstream.
    for (u32 pass = 0; pass < 4; pass++) {
        // First the tables of earlier blocks, then those of this one.
        const Block& from = pass < 3 ? *defined_by[pass] : block;
        if (pass < 3 && &from == &block) continue;
        u32 at = from.tables_input, end = from.input + from.size;
        for (u32 which = 0; which < 3; which++) {
            u32 mode = table_mode(from, which);
            bool wanted = pass < 3 ? which == pass : &block == defined_by[which];
            i16 skipped[54];
            if (mode == RLE_TABLE) {
                u32 code = in.byte(at);
                if (at >= end || code > TABLE_SYMBOLS[which]) return tables.reason = ZSTD_FSE_TABLE, 0;
                at++;
                if (wanted) {
                    tables.log[which] = 0;
                    tables.symbols[which] = 0;
                    tables.code[which] = (u8)code;
                }
            } else if (mode == FSE_TABLE) {
                u32 log, symbols;
                u32 taken = at > end ? NO_COUNTS
                                     : read_counts(in, at, end, TABLE_SYMBOLS[which], TABLE_LOG[which], wanted ? tables.counts[which] : skipped,
                                                   log, symbols);
                if (taken == NO_COUNTS) return tables.reason = ZSTD_FSE_TABLE, 0;
                at += taken;
                if (wanted) {
                    tables.log[which] = (u8)log;
                    tables.symbols[which] = (u8)symbols;
                }
            } else if (mode == PREDEFINED && wanted) {
                tables.log[which] = PREDEFINED_LOG[which];
                tables.symbols[which] = PREDEFINED_SYMBOLS[which];
                for (u32 i = 0; i < PREDEFINED_SYMBOLS[which]; i++) tables.counts[which][i] = PREDEFINED_COUNTS[which][i];
            }
            if (pass < 3 && which == pass) break;
        }
        if (pass == 3) stream = at;
    }
    tables.good = true;
    return stream;
}

// Builds the three tables. Scope: a warp. `cells`: 512 bytes; `starts`: 64 numbers.
DEVICE void tables_build(const Tables& tables, u32* entries, u8* cells, u16* starts) {
    for (u32 which = 0; which < 3; which++) {
        u32* table = entries + table_place(which);
        if (tables.log[which] == 0) {
            if (lane_index() == 0) table[0] = sequence_entry(which, tables.code[which], FseState{0, 0});
        } else {
            u32 log = tables.log[which];
            build_table(tables.counts[which], tables.symbols[which], log, cells, starts,
                        [&](u32 state, u32 code, u32 next) { table[state] = sequence_entry(which, code, fse_state(next, log)); });
        }
    }
    warp_barrier();
}

// How sequences of a block are staged: for each step of 2^PLACE_BITS bytes of output, a note of 8 bytes,
//     0..15 the sequence that makes its first byte   32.. literals before that byte
// then 4 bytes for each sequence, from the lowest bit on
//     output before it, literals before it: PLACE_BITS each; and what there is room for of its offset
// then the rest of each offset, `Rest`. Positions count from the start of the block, and lack what the notes tell.
struct Staged {
    u64* notes;
    u32* places;
    u8* offsets;
};
DEVICE Staged staged_at(u8* at, u32 notes, u32 sequences) {
    u32* places = (u32*)(at + 8 * notes);
    return Staged{(u64*)at, places, (u8*)(places + sequences)};
}

template <u32 PLACE, u32 OFFSET, class Rest>
struct Noted {
    static constexpr u32 PLACE_BITS = PLACE, OFFSET_BITS = OFFSET, STEP = 1 << PLACE;
    static constexpr bool NOTED = true;
    static_assert(OFFSET <= 32 - 2 * PLACE + 8 * sizeof(Rest), "room for an offset");
    DEVICE_MEMBER static void put(const Staged& to, u32 index, u32 output, u32 literals, u32 offset) {
        to.places[index] = (output & (STEP - 1)) | (literals & (STEP - 1)) << PLACE | offset << 2 * PLACE;
        ((Rest*)to.offsets)[index] = (Rest)(offset >> (32 - 2 * PLACE));
    }
    DEVICE_MEMBER static u32 offset(const Staged& from, u32 index) {
        return from.places[index] >> 2 * PLACE | (u32)((const Rest*)from.offsets)[index] << (32 - 2 * PLACE);
    }
};
using Tight = Noted<10, 20, u8>;
using Compact = Noted<12, 24, u16>;
using Full = Noted<12, 30, u32>;
static_assert(Tight::STEP == ZSTD_TIGHT_STEP && Compact::STEP == ZSTD_TILE_STEP && Full::STEP == ZSTD_TILE_STEP, "as the host has them");
// 16 bytes each, for blocks of any size.
struct Wide {
    static constexpr u32 OFFSET_BITS = 30, STEP = ZSTD_TILE_STEP;
    static constexpr bool NOTED = false;
    DEVICE_MEMBER static void put(const Staged& to, u32 index, u32 output, u32 literals, u32 offset) {
        u32* at = (u32*)to.notes + 4 * index;
        at[0] = output;
        at[1] = literals;
        at[2] = offset;
    }
};

struct SequencesResult {
    u32 reason;
    // Output and literals of all sequences.
    u32 output, literals;
    u32 repeats[3];
};

DEVICE u32 symbolic(u32 which, u32 bits) { return 1u << (bits - 1) | which << (bits - 3) | ((1u << (bits - 3)) - 1); }
// What a staged offset stands for, given the three offsets at the block's start; 0 stands for no valid offset.
DEVICE u32 resolve_offset(u32 offset, u32 bits, const u32* entry) {
    if (offset >> (bits - 1) == 0) return offset;
    u32 all = (1u << (bits - 3)) - 1, less = all - (offset & all), which = offset >> (bits - 3) & 3;
    u32 value = which == 0 ? entry[0] : which == 1 ? entry[1] : which == 2 ? entry[2] : 0;
    return value > less ? value - less : 0;
}

// Decodes the sequences of a block and stages them. `ring`: of `bits.cuh`. `logs`: of the three tables. `limit`: the most that they may make, within what the
// format can say; a staged format has notes for as much. Scope: one thread.
template <class Format>
DEVICE SequencesResult decode_sequences(const Input& in, const Block& block, u32 stream, const u32* entries, u32 literal_log, u32 offset_log,
                                        u32 match_log, u8* ring, Staged staged, u32 limit) {
    constexpr u32 BITS = Format::OFFSET_BITS;
    SequencesResult result{ZSTD_SEQUENCES_STREAM, 0, 0, {symbolic(0, BITS), symbolic(1, BITS), symbolic(2, BITS)}};
    u32 end = block.input + block.size;
    BitReader bits;
    if (stream >= end || !bits_open(bits, in, stream, end, ring)) return result;
    const u32* literal_table = entries;
    const u32* offset_table = entries + table_place(1);
    const u32* match_table = entries + table_place(2);
    u32 literal_state = bits_read(bits, literal_log);
    u32 offset_state = bits_read(bits, offset_log);
    u32 match_state = bits_read(bits, match_log);
    u32 first = result.repeats[0], second = result.repeats[1], third = result.repeats[2];
    u32 output = 0, literals = 0;
    // Where a tile starts that has no note yet; and what is to be looked at once the output is past it.
    u32 next_tile = 0, stop = Format::NOTED ? 0 : limit;
    u32 last_bits = 0;
    const u32 count = block.sequences, literals_len = block.literals_len;
    // What a sequence needs is loaded while the one before is worked on.
    u32 literal_next = literal_table[literal_state], offset_next = offset_table[offset_state], match_next = match_table[match_state];
    Window next = bits_look(bits);
    u32 index = 0;
    while (index < count) {
        // A sequence takes at most 89 bits, and the bits of another have been looked at.
        bits_fill(bits);
        u32 round = minimum(index + 8, count);
        ROLLED
        for (; index < round; index++) {
            u32 literal_entry = literal_next, offset_entry = offset_next, match_entry = match_next;
            Window window = next;
            // Bits follow in this order: of the offset, at most 31; of the match length and the literal length, 32 together; of the three states, 26.
            u32 all = literal_entry + offset_entry + match_entry;
            u32 offset_bits = offset_entry >> 8, match_bits = match_entry >> 8, literal_bits = literal_entry >> 8;
            // At each step, what is read goes behind what the entry says.
            u32 value = funnel_left_wrap(1, window.first, offset_bits);
            u32 high = funnel_left_wrap(window.first, window.second, offset_bits), low = funnel_left_wrap(window.second, window.third, offset_bits);
            u32 match_length = funnel_left_wrap(match_entry >> 16 & 31, high, match_bits) + MIN_MATCH;
            high = funnel_left_wrap(high, low, match_bits);
            low = funnel_left_wrap(low, 0, match_bits);
            u32 literal_length = funnel_left_wrap(literal_entry >> 16 & 31, high, literal_bits);
            u32 states = funnel_left_wrap(high, low, literal_bits);
            literal_next = literal_table[funnel_left_wrap(literal_entry >> 23, states, literal_entry)];
            states = funnel_left_wrap(states, 0, literal_entry);
            match_next = match_table[funnel_left_wrap(match_entry >> 23, states, match_entry)];
            states = funnel_left_wrap(states, 0, match_entry);
            offset_next = offset_table[funnel_left_wrap(offset_entry >> 23, states, offset_entry)];
            bits.position = dot_bytes(all, 0xffff, bits.position);
            next = bits_look(bits);
            last_bits = all & 31;

            // Values 1 to 3 stand for repeated offsets, or one less than the first (RFC 8878 3.1.1.5). Without branches: lanes do not agree.
            u32 which = value - minimum(literal_length, 1u);
            u32 other = value > 3 ? minimum(value - 3, (1u << (BITS - 1)) - 1) : first - 1;
            u32 offset = which >= 3 ? other : which == 2 ? third : which == 1 ? second : first;
            third = which >= 2 ? second : third;
            second = which >= 1 ? first : second;
            first = offset;
            Format::put(staged, index, output, literals, offset);
            // Nothing here wraps: a position is at most its limit, and a length below 2^18. Literals are part of the output.
            u32 literals_before = literals, output_before = output;
            literals += literal_length;
            output += literal_length + match_length;
            if (output > stop) {
                if (output > limit) {
                    result.reason = literals > literals_len ? ZSTD_TOO_FEW_LITERALS : ZSTD_OUTPUT_TOO_LARGE;
                    result.output = output;
                    return result;
                }
                ROLLED
                for (; Format::NOTED && next_tile < output; next_tile += Format::STEP) {
                    u32 before = literals_before + minimum(next_tile - output_before, literal_length);
                    staged.notes[next_tile / Format::STEP] = index | (u64)before << 32;
                }
                stop = Format::NOTED ? minimum(next_tile, limit) : limit;
            }
        }
    }
    // The last sequence has no next one.
    bits.position += (i32)last_bits;
    result.output = output;
    result.literals = literals;
    result.repeats[0] = first;
    result.repeats[1] = second;
    result.repeats[2] = third;
    result.reason = literals > literals_len ? ZSTD_TOO_FEW_LITERALS : bits_left(bits) != 0 ? ZSTD_SEQUENCES_STREAM : ZSTD_GOOD;
    if (result.reason != ZSTD_GOOD) return result;
    // What follows the sequences are literals.
    u32 block_output = output + (literals_len - literals);
    ROLLED
    for (; Format::NOTED && block_output <= limit && next_tile < block_output; next_tile += Format::STEP)
        staged.notes[next_tile / Format::STEP] = count | (u64)(literals + (next_tile - output)) << 32;
    return result;
}

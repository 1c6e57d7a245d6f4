// Sequences (RFC 8878 3.1.1.3.2 and 3.1.1.4 to 3.1.1.5): from bits to places and offsets.
//
// Repeated offsets depend on the block before, which other threads decode at the same time. So an offset is staged as a function of the three at the
// block's start where it depends on them:
//
//     0 .. 2^29 - 1                    the offset
//     1 << 29 | which << 27 | less     the `which`-th offset at the start of the block, less `less`
#pragma once

#include "fse.cuh"

constexpr u32 SYMBOLIC = 1u << 29;
constexpr u32 OFFSET_BITS = 30;
constexpr u32 POSITION_BITS = 17;
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

// A state of a table: the code, the bits that follow it in the stream, and the state after.
//     0..5 code   6..9 bits of the next state   10..14 bits that follow the code   16..25 base of the next state
DEVICE u32 sequence_entry(u32 which, u32 code, FseState next) {
    u32 extra = which == 0 ? literal_length_bits(code) : which == 1 ? code : match_length_bits(code);
    return code | next.bits << 6 | extra << 10 | next.base << 16;
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

// How sequences are staged: 8 bytes each,
//     0..16 output before it   17..33 literals before it   34..63 offset
// and one more that ends them. Positions count from the start of the block.
struct Packed {
    // The literals of a sequence end where those of the next start, so that the positions of the last one may be 2^17.
    DEVICE_MEMBER static void put(u8* at, u32 index, u32 output, u32 literals, u32 offset) {
        ((u64*)at)[index] = (u64)(output & 0x1ffff) | (u64)(literals & 0x1ffff) << POSITION_BITS | (u64)offset << (2 * POSITION_BITS);
    }
};
// 16 bytes each, for blocks of any size.
struct Wide {
    DEVICE_MEMBER static void put(u8* at, u32 index, u32 output, u32 literals, u32 offset) {
        u32* to = (u32*)at + 4 * index;
        to[0] = output;
        to[1] = literals;
        to[2] = offset;
    }
};

struct SequencesResult {
    u32 reason;
    // Output and literals of all sequences.
    u32 output, literals;
    u32 repeats[3];
};

DEVICE u32 symbolic(u32 which) { return SYMBOLIC | which << 27; }
// The value at the block's start that a symbolic offset stands for, less what it says; 0 stands for no valid offset.
DEVICE u32 resolve_offset(u32 offset, const u32* entry) {
    if (!(offset & SYMBOLIC)) return offset;
    u32 value = entry[offset >> 27 & 3], less = offset & ((1u << 27) - 1);
    return value > less ? value - less : 0;
}

// The first lengths of all codes: of literals, then of matches.
constexpr u32 LENGTHS = MAX_LITERAL_LENGTH + 1 + MAX_MATCH_LENGTH + 1;
// Scope: a warp.
DEVICE void lengths_fill(u32* lengths) {
    for (u32 i = lane_index(); i < LENGTHS; i += WARP)
        lengths[i] = i <= MAX_LITERAL_LENGTH ? literal_length_base(i) : match_length_base(i - MAX_LITERAL_LENGTH - 1);
}

// Decodes the sequences of a block and stages them. `lengths`: of `lengths_fill`. `ring`: of `bits.cuh`. `tiles`: where to note which sequence makes every ZSTD_TILE_STEP-th byte, or null.
// `limit`: the most that they may make, within what the format can say. Scope: one thread.
template <class Format>
DEVICE SequencesResult decode_sequences(const Input& in, const Block& block, u32 stream, const u32* entries, const Tables& tables,
                                        const u32* lengths, u8* ring, u8* staged, u16* tiles, u32 limit) {
    SequencesResult result{ZSTD_SEQUENCES_STREAM, 0, 0, {symbolic(0), symbolic(1), symbolic(2)}};
    u32 end = block.input + block.size;
    BitReader bits;
    if (stream >= end || !bits_open(bits, in, stream, end, ring)) return result;
    const u32* literal_table = entries;
    const u32* offset_table = entries + table_place(1);
    const u32* match_table = entries + table_place(2);
    u32 literal_state = bits_read(bits, tables.log[0]);
    u32 offset_state = bits_read(bits, tables.log[1]);
    u32 match_state = bits_read(bits, tables.log[2]);
    u32 first = symbolic(0), second = symbolic(1), third = symbolic(2);
    u32 output = 0, literals = 0;
    // Where a tile starts that no sequence is noted for yet.
    u32 next_tile = tiles == nullptr ? ~0u : 0;
    bool bad_offset = false;
    const u32 count = block.sequences, literals_len = block.literals_len;
    for (u32 index = 0; index < count; index++) {
        // A sequence takes at most 89 bits.
        if (index % 8 == 0) bits_fill(bits);
        u32 literal_entry = literal_table[literal_state];
        u32 offset_entry = offset_table[offset_state];
        u32 match_entry = match_table[match_state];
        u32 offset_bits = offset_entry >> 10 & 31, match_bits = match_entry >> 10 & 31, literal_bits = literal_entry >> 10 & 31;
        u32 literal_next = literal_entry >> 6 & 15, match_next = match_entry >> 6 & 15, offset_next = offset_entry >> 6 & 15;
        if (index + 1 == count) literal_next = match_next = offset_next = 0;
        // Bits follow in this order: of the offset, at most 31; of the match length and the literal length, 32 together; of the three states, 26.
        Window window = bits_look(bits);
        u32 offset_value = bits_field(window.first, offset_bits);
        u32 lengths_first = funnel_left(window.first, window.second, offset_bits), lengths_second = funnel_left(window.second, window.third, offset_bits);
        u32 match_value = bits_field(lengths_first, match_bits);
        u32 literal_value = bits_field(shift_left(lengths_first, match_bits), literal_bits);
        u32 states = funnel_left(lengths_first, lengths_second, match_bits + literal_bits);
        literal_state = (literal_entry >> 16) + bits_field(states, literal_next);
        states = shift_left(states, literal_next);
        match_state = (match_entry >> 16) + bits_field(states, match_next);
        offset_state = (offset_entry >> 16) + bits_field(shift_left(states, match_next), offset_next);
        bits_skip(bits, offset_bits + match_bits + literal_bits + literal_next + match_next + offset_next);

        u32 literal_code = literal_entry & 63;
        u32 literal_length = lengths[literal_code] + literal_value;
        u32 match_length = lengths[MAX_LITERAL_LENGTH + 1 + (match_entry & 63)] + match_value;
        // Values 1 to 3 stand for repeated offsets, or one less than the first (RFC 8878 3.1.1.5). Without branches: lanes do not agree.
        bool fresh = offset_bits > 1;
        u32 which = fresh ? 4 : offset_bits + offset_value + (literal_code == 0 ? 1 : 0);
        u32 value = (1u << offset_bits) + offset_value - 3;
        u32 less = first & SYMBOLIC ? first + 1 : first - 1;
        bad_offset |= (fresh && value >= SYMBOLIC) || (which == 3 && first == 1);
        u32 offset = fresh ? value & (SYMBOLIC - 1) : which == 0 ? first : which == 1 ? second : which == 2 ? third : less;
        third = which >= 2 ? second : third;
        second = which >= 1 ? first : second;
        first = offset;
        // Nothing here wraps: a position is at most its limit, and a length below 2^18.
        Format::put(staged, index, output, literals, offset);
        literals += literal_length;
        output += literal_length + match_length;
        if (literals > literals_len || output > limit) {
            result.reason = literals > literals_len ? ZSTD_TOO_FEW_LITERALS : ZSTD_OUTPUT_TOO_LARGE;
            result.output = output;
            return result;
        }
        for (; next_tile < output; next_tile += ZSTD_TILE_STEP) tiles[next_tile / ZSTD_TILE_STEP] = (u16)index;
    }
    Format::put(staged, count, output, literals, 0);
    // What follows the sequences are literals.
    u32 block_output = output + (literals_len - literals);
    if (block_output <= ZSTD_BLOCK_MAX) {
        for (; next_tile < block_output; next_tile += ZSTD_TILE_STEP) tiles[next_tile / ZSTD_TILE_STEP] = (u16)count;
    }
    result.output = output;
    result.literals = literals;
    result.repeats[0] = first;
    result.repeats[1] = second;
    result.repeats[2] = third;
    result.reason = bits_left(bits) != 0 ? ZSTD_SEQUENCES_STREAM : bad_offset ? ZSTD_OFFSET : ZSTD_GOOD;
    return result;
}

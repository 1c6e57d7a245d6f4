// Huffman codes (RFC 1951 3.2.2), as lengths describe them, and the tables that symbols are looked up in.
//
// What is accepted is what libdeflate accepts: a code leaves no bits without a symbol, but where it has one symbol, of one bit, or none. Then
// either bit stands for that symbol, or for symbol 0.
#pragma once

#include "../spans/words.cuh"
#include "format.cuh"

// Codes in their canonical order. Their bits, from the first on, are the upper ones of 15.
struct Code {
    // By length: where codes of up to this length end; what to add to the number that a code is to get its place among the symbols.
    u32 limit[16];
    u32 places[16];
    u16 symbols[LITERAL_SYMBOLS];
};

// Makes a code of `count` lengths. False where it is none. Scope: a warp.
DEVICE bool code_build(Code& code, const u8* lens, u32 count) {
    u32 lane = lane_index();
    if (lane < 16) code.places[lane] = 0;
    warp_barrier();
    // Once to count the codes of each length, once to give each symbol its place.
    for (u32 base = 0; base < count; base += WARP) {
        u32 len = base + lane < count ? lens[base + lane] : 0, same = warp_match(len);
        if ((same & lanes_before()) == 0) code.places[len] += count_ones(same);
        warp_barrier();
    }
    u32 counted = lane < 16 ? code.places[lane] : 0;
    warp_barrier();
    u32 first = 0, used = 0, all = 0, places = 0;
    for (u32 i = 1; i <= MAX_CODE_LEN; i++) {
        u32 here = warp_shuffle(counted, i);
        if (lane == i) {
            code.limit[i] = (first + here) << (MAX_CODE_LEN - i);
            code.places[i] = all;
            places = all - first;
        }
        first = (first + here) << 1;
        used += here << (MAX_CODE_LEN - i);
        all += here;
    }
    warp_barrier();
    for (u32 base = 0; base < count; base += WARP) {
        u32 len = base + lane < count ? lens[base + lane] : 0, same = warp_match(len);
        u32 place = code.places[len];
        if (len != 0) code.symbols[place + count_ones(same & lanes_before())] = (u16)(base + lane);
        warp_barrier();
        if ((same & lanes_before()) == 0) code.places[len] = place + count_ones(same);
        warp_barrier();
    }
    if (lane >= 1 && lane < 16) code.places[lane] = places;
    warp_barrier();
    bool one = all == 1 && used == 1u << (MAX_CODE_LEN - 1);
    if (all == 0 || one) {
        if (lane == 0) {
            if (all == 0) code.symbols[0] = 0;
            code.symbols[1] = code.symbols[0];
            code.limit[1] = 1u << MAX_CODE_LEN;
            code.places[1] = 0;
        }
        return true;
    }
    return used == 1u << MAX_CODE_LEN;
}

// The symbol that 15 bits start with, the first one highest, and the length of its code, not below `len`. Any bits start with one. Scope: one thread.
DEVICE u32 code_find(const Code& code, u32 bits, u32& len) {
    while (bits >= code.limit[len]) len++;
    return code.symbols[(bits >> (MAX_CODE_LEN - len)) + code.places[len]];
}

// What a symbol stands for, beside the literals and the end of a block (RFC 1951 3.2.5): a number, and how many bits follow that are added to it.
struct Meaning {
    u32 base, extra;
};
// Symbols 286 and 287, which do not occur, stand for the longest length.
DEVICE Meaning length_of(u32 symbol) {
    u32 index = symbol - END_OF_BLOCK - 1, extra = index < 8 ? 0 : index / 4 - 1;
    if (index >= 28) return Meaning{MAX_MATCH, 0};
    return Meaning{3 + (index < 8 ? index : (4 + index % 4) << extra), extra};
}
// Symbols 30 and 31, which do not occur, mean what 29 does.
DEVICE Meaning distance_of(u32 symbol) {
    u32 index = minimum(symbol, 29u), extra = index < 4 ? 0 : index / 2 - 1;
    return Meaning{1 + (index < 4 ? index : (2 + index % 2) << extra), extra};
}

// What the next bits are, by the code that they start with:
//     0..4 bits of the code and of those that follow it; 0: the code is longer than the table looks   5..8 bits of the code
//     9..11, 12..20 what it makes of output: so many of the bits that follow, and a number that is added to them
//     21 a literal   22 a length, which a distance follows   23 the end of the block   24.. the literal, or the symbol of the distance
struct Entry {
    u32 bits;

    DEVICE_MEMBER u32 total() const { return bits & 31; }
    DEVICE_MEMBER u32 len() const { return bits >> 5 & 15; }
    DEVICE_MEMBER u32 output(u32 next) const { return (bits >> 12 & 0x1ff) + (next >> len() & ((1u << (bits >> 9 & 7)) - 1)); }
    DEVICE_MEMBER u32 is_literal() const { return bits >> 21 & 1; }
    DEVICE_MEMBER u32 is_length() const { return bits >> 22 & 1; }
    DEVICE_MEMBER u32 is_end() const { return bits >> 23 & 1; }
    DEVICE_MEMBER u32 value() const { return bits >> 24; }
};

// The tables: bits that they look at, and the entry of a symbol.
struct LiteralTable {
    static constexpr u32 LOG = 12;
    DEVICE_MEMBER static u32 entry(u32 symbol, u32 len) {
        if (symbol < END_OF_BLOCK) return len | len << 5 | 1u << 12 | 1u << 21 | symbol << 24;
        if (symbol == END_OF_BLOCK) return len | len << 5 | 1u << 23;
        Meaning length = length_of(symbol);
        return (len + length.extra) | len << 5 | length.extra << 9 | length.base << 12 | 1u << 22;
    }
};
struct DistanceTable {
    static constexpr u32 LOG = 10;
    DEVICE_MEMBER static u32 entry(u32 symbol, u32 len) { return (len + distance_of(symbol).extra) | len << 5 | symbol << 24; }
};
// Of the code for lengths of codes.
struct LengthTable {
    static constexpr u32 LOG = 7;
    DEVICE_MEMBER static u32 entry(u32 symbol, u32 len) {
        u32 extra = symbol < 16 ? 0 : symbol == 16 ? 2 : symbol == 17 ? 3 : 7;
        return (len + extra) | len << 5 | symbol << 24;
    }
};

// Each thread makes codes that follow each other, which lie apart in the table. Scope: a block of threads; without a barrier.
template <class Table> DEVICE void table_build(u32* table, const Code& code) {
    constexpr u32 LOG = Table::LOG, SIZE = 1 << LOG;
    u32 each = (SIZE + block_threads() - 1) / block_threads(), len = 1;
    u32 end = minimum((thread_index() + 1) * each, SIZE);
    for (u32 index = thread_index() * each; index < end; index++) {
        u32 bits = index << (MAX_CODE_LEN - LOG);
        while (len <= LOG && bits >= code.limit[len]) len++;
        u32 entry = len > LOG ? 0 : Table::entry(code.symbols[(bits >> (MAX_CODE_LEN - len)) + code.places[len]], len);
        table[reverse_bits(index) >> (32 - LOG)] = entry;
    }
}

// The entry for a code that the table does not have. Scope: one thread.
template <class Table> DEVICE u32 long_entry(const Code& code, u32 bits) {
    u32 len = Table::LOG + 1, symbol = code_find(code, reverse_bits(bits) >> (32 - MAX_CODE_LEN), len);
    return Table::entry(symbol, len);
}

// Finite state entropy (RFC 8878 4.1): descriptions of tables, and tables for decoding.
#pragma once

#include "bits.cuh"
#include "format.cuh"

// Where a table's description failed.
constexpr u32 NO_COUNTS = ~0u;

// Bytes of a description, seen as libzstd sees them: at least 8, zeros behind a shorter one.
struct CountBytes {
    Input input;
    u32 start, len;

    DEVICE_MEMBER u32 word(u32 at) const {
        u32 value = 0;
        for (u32 i = 0; i < 4; i++) {
            if (at + i < len) value |= input.byte(start + at + i) << 8 * i;
        }
        return value;
    }
};

// Reads normalised counts (RFC 8878 4.1.1) of at most `most + 1` symbols from `at..end`; gives the bytes that they take, or NO_COUNTS.
// -1 stands for a symbol less likely than any count. Scope: one thread.
//
// Bits behind the end are those libzstd would see: it steps back to its last 4 bytes, and its position in them wraps at 32.
DEVICE_CALL u32 read_counts(const Input& in, u32 at, u32 end, u32 most, u32 log_most, i16* counts, u32& log, u32& symbols) {
    CountBytes bytes{in, at, end - at};
    u32 len = maximum(bytes.len, 8u);
    u32 word = bytes.word(0);
    log = (word & 15) + 5;
    if (log > 15 || log > log_most) return NO_COUNTS;
    for (u32 symbol = 0; symbol <= most; symbol++) counts[symbol] = 0;
    word >>= 4;
    u32 position = 0, bit = 4;
    i32 remaining = (1 << log) + 1;
    i32 threshold = 1 << log;
    u32 width = log + 1;
    u32 symbol = 0;
    bool after_zero = false;
    // Moves to the byte of the next bit, as far as a whole word is left.
    auto advance = [&]() {
        if (position + 7 <= len || position + (bit >> 3) + 4 <= len) {
            position += bit >> 3;
            bit &= 7;
        } else {
            bit = (bit - 8 * (len - 4 - position)) & 31;
            position = len - 4;
        }
        word = bytes.word(position) >> bit;
    };
    for (;;) {
        if (after_zero) {
            // Pairs of bits: 3 says three more zeros and another pair.
            u32 pairs = trailing_zeros(~word | 0x80000000) >> 1;
            while (pairs >= 12) {
                symbol += 36;
                // 12 pairs are 3 bytes: the bit in its byte stays.
                if (position + 7 <= len) {
                    position += 3;
                } else {
                    bit = (bit - 8 * (len - 7 - position)) & 31;
                    position = len - 4;
                }
                word = bytes.word(position) >> bit;
                pairs = trailing_zeros(~word | 0x80000000) >> 1;
                // Ends whatever the bytes are: past the symbols, nothing more is wanted.
                if (symbol > most) return NO_COUNTS;
            }
            symbol += 3 * pairs;
            word >>= 2 * pairs;
            bit += 2 * pairs;
            symbol += word & 3;
            bit += 2;
            if (symbol > most) return NO_COUNTS;
            advance();
        }
        i32 short_values = 2 * threshold - 1 - remaining;
        i32 count;
        if ((i32)(word & (threshold - 1)) < short_values) {
            count = (i32)(word & (threshold - 1));
            bit += width - 1;
        } else {
            count = (i32)(word & (2 * threshold - 1));
            if (count >= threshold) count -= short_values;
            bit += width;
        }
        count--;
        remaining -= count < 0 ? -count : count;
        counts[symbol++] = (i16)count;
        after_zero = count == 0;
        if (remaining < threshold) {
            if (remaining <= 1) break;
            width = highest_bit((u32)remaining) + 1;
            threshold = 1 << (width - 1);
        }
        if (symbol > most) break;
        advance();
    }
    if (remaining != 1 || bit > 32) return NO_COUNTS;
    symbols = symbol;
    u32 taken = position + (bit + 7) / 8;
    return taken > bytes.len ? NO_COUNTS : taken;
}

// The state that comes next: `base` plus `bits` more bits of the stream.
struct FseState {
    u32 bits, base;
};
DEVICE FseState fse_state(u32 next, u32 log) {
    u32 bits = log - highest_bit(next);
    return FseState{bits, (next << bits) - (1u << log)};
}

// Gives each of the `1 << log` states its symbol (RFC 8878 4.1.1, "FSE decoding table"), then calls `entry(state, symbol, next)` for each, where
// `next` tells `fse_state` what follows. Scope: a warp. `cells`: a byte for each state. `starts`: two for each symbol.
template <class Entry>
DEVICE void build_table(const i16* counts, u32 symbols, u32 log, u8* cells, u16* starts, Entry entry) {
    u32 lane = lane_index();
    u32 size = 1u << log, mask = size - 1;
    // Symbols less likely than any take the last states, one each; the others are spread over the rest.
    u32 low = 0, placed = 0;
    for (u32 base = 0; base < symbols; base += WARP) {
        u32 symbol = base + lane;
        i32 count = symbol < symbols ? counts[symbol] : 0;
        u32 rare = warp_ballot(count < 0);
        if (count < 0) cells[(size - 1 - low - count_ones(rare & lanes_before())) & mask] = (u8)symbol;
        u32 here = count > 0 ? (u32)count : 0;
        u32 sum = warp_inclusive_sum(here);
        if (symbol < symbols) starts[symbol] = (u16)(placed + sum - here);
        placed += warp_shuffle(sum, WARP - 1);
        low += count_ones(rare);
    }
    warp_barrier();
    u32 top = size - low;
    u32 step = (size >> 1) + (size >> 3) + 3;
    u32 rank_base = 0;
    for (u32 base = 0; base < size; base += WARP) {
        u32 k = base + lane;
        u32 state = k * step & mask;
        bool free = k < size && state < top;
        u32 valid = warp_ballot(free);
        u32 rank = rank_base + count_ones(valid & lanes_before());
        if (free) {
            // The last symbol that starts at or before the rank, and has a count.
            u32 from = 0, to = symbols;
            while (to - from > 1) {
                u32 middle = (from + to) / 2;
                if (starts[middle] <= rank) from = middle; else to = middle;
            }
            cells[state] = (u8)from;
        }
        rank_base += count_ones(valid);
    }
    warp_barrier();
    for (u32 symbol = lane; symbol < symbols; symbol += WARP) starts[symbol] = (u16)(counts[symbol] < 0 ? 1 : counts[symbol]);
    warp_barrier();
    for (u32 base = 0; base < size; base += WARP) {
        u32 state = base + lane;
        u32 symbol = state < size ? cells[state] : ~0u;
        u32 same = warp_match(symbol);
        u32 next = 0;
        if (state < size) {
            next = starts[symbol] + count_ones(same & lanes_before());
            entry(state, symbol, next);
        }
        warp_barrier();
        if (state < size && (same & lanes_before()) == 0) starts[symbol] = (u16)(starts[symbol] + count_ones(same));
        warp_barrier();
    }
}

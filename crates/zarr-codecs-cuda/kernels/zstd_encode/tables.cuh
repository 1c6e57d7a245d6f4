// Finite state entropy (RFC 8878 4.1): tables for encoding.
#pragma once

#include "../zstd/fse.cuh"
#include "bits.cuh"

// What a symbol does to a state: the bits that it takes are the upper half of state + `bits`, and the state comes from the place that is what is left + `place`.
struct FseSymbol {
    u32 bits;
    i32 place;
};

// A table of `1 << log` states, numbered from there on. One that knows a single symbol has no bits.
struct FseEncoder {
    u16* next;
    FseSymbol* symbols;

    // The state that the decoder ends with: any in which the symbol stands.
    DEVICE_MEMBER u32 first(u32 symbol) const {
        FseSymbol by = symbols[symbol];
        u32 bits = (by.bits + (1u << 15)) >> 16;
        return next[(((bits << 16) - by.bits) >> bits) + by.place];
    }
    // The state before `state`, at which the decoder finds the symbol, and the bits that lead it on: 12 bits, above them how many.
    DEVICE_MEMBER u32 before(u32& state, u32 symbol) const {
        FseSymbol by = symbols[symbol];
        u32 bits = (state + by.bits) >> 16;
        u32 value = state & ((1u << bits) - 1);
        state = next[(state >> bits) + by.place];
        return value | bits << 12;
    }
};

// Counts that add up to a power of two, about in the ratio of `found`, none of those that are not 0 below 1: there are at least two of them, and at most half as many as
// `1 << log`. Scope: one thread.
DEVICE_CALL void normalise(const u32* found, u32 symbols, u32 total, u32 log, i16* counts) {
    u32 size = 1u << log;
    i32 left = (i32)size;
    for (u32 symbol = 0; symbol < symbols; symbol++) {
        u32 count = found[symbol] == 0 ? 0 : maximum(1u, (found[symbol] * size + total / 2) / total);
        counts[symbol] = (i16)count;
        left -= (i32)count;
    }
    while (left != 0) {
        u32 most = 0;
        for (u32 symbol = 1; symbol < symbols; symbol++) {
            if (counts[symbol] > counts[most]) most = symbol;
        }
        // Too many are taken from who has most, a quarter of its own at a time.
        i32 by = left > 0 ? left : -minimum(-left, (i32)counts[most] / 4 + 1);
        counts[most] = (i16)(counts[most] + by);
        left -= by;
    }
}

// Describes a table (RFC 8878 4.1.1). Scope: one thread.
DEVICE_CALL void write_counts(BitWriter& out, const i16* counts, u32 symbols, u32 log) {
    out.put(log - 5, 4);
    i32 remaining = (1 << log) + 1, threshold = 1 << log;
    u32 width = log + 1;
    bool after_zero = false;
    for (u32 symbol = 0; symbol < symbols && remaining > 1;) {
        if (after_zero) {
            u32 zeros = 0;
            while (symbol + zeros < symbols && counts[symbol + zeros] == 0) zeros++;
            symbol += zeros;
            for (; zeros >= 3; zeros -= 3) out.put(3, 2);
            out.put(zeros, 2);
            if (symbol == symbols) return;
        }
        i32 count = counts[symbol++];
        i32 most = 2 * threshold - 1 - remaining;
        remaining -= count;
        after_zero = count == 0;
        count++;
        if (count >= threshold) count += most;
        out.put((u32)count, width - (count < most));
        while (remaining < threshold) {
            width--;
            threshold >>= 1;
        }
    }
}

// Makes the table of `counts`. `cells`: a byte for each state, `starts`: two for each symbol. Scope: a warp.
DEVICE void encoder_table(const FseEncoder& encoder, const i16* counts, u32 symbols, u32 log, u8* cells, u16* starts) {
    u32 lane = lane_index(), before = 0;
    for (u32 base = 0; base < symbols; base += WARP) {
        u32 symbol = base + lane;
        u32 count = symbol >= symbols ? 0 : counts[symbol] < 0 ? 1 : (u32)counts[symbol];
        u32 sum = warp_inclusive_sum(count);
        if (count != 0) {
            u32 bits = log - (count == 1 ? 0 : highest_bit(count - 1));
            encoder.symbols[symbol] = FseSymbol{(bits << 16) - (count << bits), (i32)(before + sum - count) - (i32)count};
        }
        before += warp_shuffle(sum, WARP - 1);
    }
    warp_barrier();
    build_table(counts, symbols, log, cells, starts, [&](u32 state, u32 symbol, u32 next) {
        encoder.next[(i32)next + encoder.symbols[symbol].place] = (u16)((1u << log) + state);
    });
    warp_barrier();
}

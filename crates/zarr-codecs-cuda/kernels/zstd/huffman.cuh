// Huffman trees and streams of literals (RFC 8878 4.2).
#pragma once

#include "fse.cuh"

constexpr u32 MAX_WEIGHT = 12;
constexpr u32 WEIGHT_LOG = 6;

// A tree's description while it is read. The weights of the first `symbols` symbols; codes have at most `log` bits.
struct Tree {
    u32 symbols, log;
    // Bytes of the description; where the stream of weights is, if they are compressed.
    u32 size, stream, stream_end;
    u32 counts_log, counts_symbols;
    bool compressed, good;
};

// Starts on the description at `at..end` (RFC 8878 4.2.1): either the weights themselves, or the counts of the table they are compressed with.
// Scope: one thread.
DEVICE_CALL void tree_open(Tree& tree, const Input& in, u32 at, u32 end, u8* weights, i16* counts) {
    tree.good = false;
    tree.compressed = false;
    tree.symbols = 0;
    if (at >= end) return;
    u32 head = in.byte(at);
    u32 room = end - at - 1;
    if (head >= 128) {
        u32 count = head - 127, bytes = (count + 1) / 2;
        if (bytes > room) return;
        for (u32 i = 0; i < count; i++) weights[i] = (u8)(in.byte(at + 1 + i / 2) >> (i % 2 == 0 ? 4 : 0) & 15);
        tree.symbols = count;
        tree.size = 1 + bytes;
        tree.good = true;
        return;
    }
    if (head > room) return;
    u32 stream_end = at + 1 + head;
    u32 taken = read_counts(in, at + 1, stream_end, 255, WEIGHT_LOG, counts, tree.counts_log, tree.counts_symbols);
    if (taken == NO_COUNTS || taken >= head) return;
    // What libzstd has room for.
    if (tree.counts_symbols > (tree.counts_log == WEIGHT_LOG ? 12u : 92u)) return;
    tree.compressed = true;
    tree.stream = at + 1 + taken;
    tree.stream_end = stream_end;
    tree.size = 1 + head;
    tree.good = true;
}

// A state of the table of weights.
DEVICE u32 weight_entry(u32 symbol, FseState next) { return symbol | next.bits << 8 | next.base << 16; }

// Decodes compressed weights: two states take turns until the stream is used up (RFC 8878 4.2.1.2). Scope: one thread.
DEVICE_CALL void tree_weights(Tree& tree, const Input& in, const u32* table, u8* weights, u8* ring) {
    BitReader bits;
    tree.good = false;
    if (!bits_open(bits, in, tree.stream, tree.stream_end, ring)) return;
    u32 state[2];
    state[0] = bits_read(bits, tree.counts_log);
    state[1] = bits_read(bits, tree.counts_log);
    if (bits_left(bits) < 0) return;
    u32 count = 0;
    for (u32 turn = 0;; turn ^= 1) {
        // Room for this one and the last.
        if (count > 253) return;
        u32 entry = table[state[turn]];
        weights[count++] = (u8)entry;
        state[turn] = (entry >> 16) + bits_read(bits, entry >> 8 & 0xff);
        if (bits_left(bits) < 0) {
            weights[count++] = (u8)table[state[turn ^ 1]];
            break;
        }
    }
    tree.symbols = count;
    tree.good = true;
}

// Adds the weight that is not written and checks that the tree is complete (RFC 8878 4.2.1). Scope: one thread.
DEVICE_CALL void tree_close(Tree& tree, u8* weights) {
    if (!tree.good) return;
    tree.good = false;
    u32 total = 0, ones = 0;
    for (u32 i = 0; i < tree.symbols; i++) {
        u32 weight = weights[i];
        if (weight > MAX_WEIGHT) return;
        total += (1u << weight) >> 1;
        ones += weight == 1;
    }
    if (total == 0) return;
    u32 log = highest_bit(total) + 1;
    if (log > MAX_WEIGHT) return;
    u32 rest = (1u << log) - total;
    if ((rest & (rest - 1)) != 0) return;
    u32 last = highest_bit(rest) + 1;
    weights[tree.symbols++] = (u8)last;
    ones += last == 1;
    if (ones < 2 || (ones & 1) != 0) return;
    tree.log = log;
    tree.good = true;
}

// An entry of the table for decoding: bits of the code, and the symbol above them.
DEVICE u32 code_len(u32 entry) { return entry & 0xff; }
DEVICE u32 code_symbol(u32 entry) { return entry >> 8; }

// The table for decoding, `1 << log` entries. `starts`: 16 numbers. Scope: a warp.
DEVICE void tree_table(const u8* weights, u32 symbols, u32 log, u16* table, u32* starts) {
    u32 lane = lane_index();
    if (lane < 16) starts[lane] = 0;
    warp_barrier();
    for (u32 base = 0; base < symbols; base += WARP) {
        u32 symbol = base + lane;
        u32 weight = symbol < symbols ? weights[symbol] : 0;
        u32 same = warp_match(weight);
        if (weight != 0 && (same & lanes_before()) == 0) starts[weight] += count_ones(same) << (weight - 1);
        warp_barrier();
    }
    u32 entries = lane < 16 ? starts[lane] : 0;
    u32 sum = warp_inclusive_sum(entries);
    if (lane < 16) starts[lane] = sum - entries;
    warp_barrier();
    for (u32 base = 0; base < symbols; base += WARP) {
        u32 symbol = base + lane;
        u32 weight = symbol < symbols ? weights[symbol] : 0;
        u32 same = warp_match(weight);
        u32 len = (1u << weight) >> 1;
        u32 from = weight == 0 ? 0 : starts[weight] + count_ones(same & lanes_before()) * len;
        u16 entry = (u16)(symbol << 8 | (log + 1 - weight));
        // Short runs each by its own thread, long ones by all together.
        if (len < 32) {
            for (u32 i = 0; i < len; i++) table[from + i] = entry;
        }
        u32 long_runs = warp_ballot(len >= 32);
        while (long_runs != 0) {
            u32 owner = trailing_zeros(long_runs);
            long_runs &= long_runs - 1;
            u32 run_from = warp_shuffle(from, owner), run_len = warp_shuffle(len, owner), run_entry = warp_shuffle((u32)entry, owner);
            for (u32 i = lane; i < run_len; i += WARP) table[run_from + i] = (u16)run_entry;
        }
        warp_barrier();
        if (weight != 0 && (same & lanes_before()) == 0) starts[weight] += count_ones(same) * len;
        warp_barrier();
    }
}

// Whether libzstd decodes literals with the table of this description two at a time: its estimate of time, by how far the literals are compressed.
// It matters for the end of damaged streams alone.
CONSTANT u16 LITERALS_TIME[16][4] = {
    {0, 0, 1, 1},         {0, 0, 1, 1},         {150, 216, 381, 119},  {170, 205, 514, 112},  {177, 199, 539, 110},  {197, 194, 644, 107},
    {221, 192, 735, 107}, {256, 189, 881, 106}, {359, 188, 1167, 109}, {582, 187, 1570, 114}, {688, 187, 1712, 122}, {825, 186, 1965, 136},
    {976, 185, 2131, 150}, {1180, 186, 2070, 175}, {1377, 185, 1731, 202}, {1412, 185, 1695, 202}};

DEVICE bool decodes_pairs(const Block& tree) {
    if (tree.streams == 1) return false;
    u32 ratio = tree.literals_size >= tree.literals_len ? 15 : tree.literals_size * 16 / tree.literals_len;
    const u16* time = LITERALS_TIME[ratio];
    u32 units = tree.literals_len >> 8;
    u32 one = time[0] + time[1] * units, two = time[2] + time[3] * units;
    two += two >> 5;
    return two < one;
}

// The end of a stream as libzstd's decoder of pairs sees it. A table of `pair_log` bits gives two symbols where both codes fit in it. Where the last symbol of
// the output is decoded alone from an entry for two, as many of the bits of both as are there are consumed. Gives the verdict on a stream that
// does not end exactly, and the last symbol. Scope: one thread; off the hot path.
DEVICE_CALL bool pairs_end_well(const Input& in, u32 start, u32 end, const u16* table, u32 log, u32 count, u8* out, u8* ring) {
    if (count == 0) return false;
    BitReader bits;
    if (!bits_open(bits, in, start, end, ring)) return false;
    u32 pair_log = log <= 11 ? 11 : log;
    auto look = [&](u32 window, u32& first, u32& second) {
        u32 entry = table[window >> (32 - log)];
        first = code_len(entry);
        second = code_len(table[(window << first) >> (32 - log)]);
        return (u8)code_symbol(entry);
    };
    u32 done = 0, first, second;
    while (count - done >= 2) {
        look(bits_look(bits).first, first, second);
        bool pair = first + second <= pair_log;
        bits_skip(bits, pair ? first + second : first);
        bits_fill(bits);
        if (bits_left(bits) < 0) return false;
        done += pair ? 2 : 1;
    }
    i32 left = bits_left(bits);
    if (count == done) return left == 0;
    u32 window = bits_look(bits).first;
    if (left == 0) {
        // Nothing is left: libzstd looks at the top of the first 8 bytes of the stream instead.
        window = end - start >= 8 ? in.le32(start + 4) : 0;
        for (u32 i = 4; i < 8 && end - start < 8; i++) window |= (start + i < end ? in.byte(start + i) : 0) << 8 * (i - 4);
    }
    u8 symbol = look(window, first, second);
    bool pair = first + second <= pair_log;
    if (!pair) return left == (i32)first;
    if (left > (i32)(first + second)) return false;
    out[count - 1] = symbol;
    return true;
}

// Decodes `count` literals of the stream at `start..end` to `out`. False where the stream does not end with the last of them. Scope: one thread.
DEVICE bool decode_stream(const Input& in, u32 start, u32 end, const u16* table, u32 log, u32 count, u8* out, u8* ring) {
    BitReader bits;
    if (start >= end || !bits_open(bits, in, start, end, ring)) return false;
    const u8* entries = (const u8*)table;
    const u32 shift = 32 - log;
    u32 done = 0;
    auto look_up = [&](u32 window) -> u32 { return *(const u16*)(entries + 2 * (window >> shift)); };
    auto single = [&]() {
        u32 entry = look_up(bits_look(bits).first);
        bits_skip(bits, code_len(entry));
        out[done++] = (u8)code_symbol(entry);
    };
    while (done < count && ((size_t)(out + done) & 3) != 0) single();
    while (done + 8 <= count) {
        // 64 codes have at most 768 bits, and three were read before the first call.
        bits_fill(bits);
        u32 round = minimum(done + 64, done + (count - done) / 8 * 8);
        ROLLED
        for (; done < round; done += 8) {
            // Eight codes have at most 96 bits.
            Window window = bits_look(bits);
            u32 all = 0;
            UNROLL
            for (u32 half = 0; half < 2; half++) {
                u32 four = 0;
                UNROLL
                for (u32 i = 0; i < 4; i++) {
                    u32 entry = look_up(window.first);
                    window.first = funnel_left_wrap(window.first, window.second, entry);
                    window.second = funnel_left_wrap(window.second, window.third, entry);
                    window.third = funnel_left_wrap(window.third, 0, entry);
                    all += entry;
                    four |= code_symbol(entry) << 8 * i;
                }
                ((u32*)(out + done))[half] = four;
            }
            bits_skip(bits, code_len(all));
        }
    }
    bits_fill(bits);
    while (done < count) single();
    return bits_left(bits) == 0;
}

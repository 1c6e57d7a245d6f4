// Huffman trees and streams of literals (RFC 8878 4.2), from literals to bits.
#pragma once

#include "format.cuh"
#include "tables.cuh"

// The most bits of a code (RFC 8878 4.2.1), and those of the table that weights are encoded with.
constexpr u32 CODE_BITS = 11;
constexpr u32 WEIGHTS_LOG = 6;
// Weights that are written as they are, at most.
constexpr u32 PLAIN_WEIGHTS = 128;
// Fewer literals are stored as they are.
constexpr u32 HUFFMAN_MIN = 64;
constexpr u32 HUFFMAN_STREAMS = 4;
// Literals that a thread writes at a time, and words for those of a warp.
constexpr u32 HUFFMAN_BATCH = 4;
constexpr u32 HUFFMAN_WORDS = WARP * HUFFMAN_BATCH * CODE_BITS / 32 + 2;

// In shared memory.
struct Huffman {
    u32 counts[256];
    // Symbols that occur, the rarest first; bits of their codes in that order.
    u8 order[256];
    u8 bits_in_order[256];
    // By symbol: bits of the code, above 16 of the code.
    u32 codes[256];
    // While the tree is made: what nodes weigh, and the parents of symbols and of nodes.
    u32 weights[256];
    u8 symbol_parents[256];
    u8 node_parents[256];
    u8 depths[256];
    // What describes the tree.
    u8 description[136];
    u32 description_len;
    u32 symbols;
    u32 longest;
    bool good;
    // Weights and their table.
    u8 listed[256];
    u32 weight_counts[16];
    i16 normalised[16];
    u16 next[1 << WEIGHTS_LOG];
    FseSymbol transforms[16];
    u8 cells[1 << WEIGHTS_LOG];
    u16 starts[16];
    // By stream.
    u32 stream_bits[HUFFMAN_STREAMS];
    u32 words[HUFFMAN_STREAMS][HUFFMAN_WORDS];
};

// Bits of codes from how often each symbol of `order` occurs: none above CODE_BITS. Scope: one thread.
DEVICE_CALL void huffman_lengths(Huffman& h) {
    u32 symbols = h.symbols, nodes = symbols - 1;
    // The two lightest of what has no parent yet get one; nodes are made in the order of their weight, as symbols lie.
    u32 symbol = 0, node = 0;
    for (u32 made = 0; made < nodes; made++) {
        u32 weight = 0;
        for (u32 child = 0; child < 2; child++) {
            bool is_symbol = node >= made || (symbol < symbols && h.counts[h.order[symbol]] <= h.weights[node]);
            if (is_symbol) {
                weight += h.counts[h.order[symbol]];
                h.symbol_parents[symbol++] = (u8)made;
            } else {
                weight += h.weights[node];
                h.node_parents[node++] = (u8)made;
            }
        }
        h.weights[made] = weight;
    }
    for (u32 made = nodes; made-- > 0;) h.depths[made] = (u8)(made + 1 == nodes ? 0 : h.depths[h.node_parents[made]] + 1);
    // Longer codes are cut; then there are more than fit.
    u32 taken = 0;
    for (u32 i = 0; i < symbols; i++) {
        u32 bits = minimum((u32)h.depths[h.symbol_parents[i]] + 1, CODE_BITS);
        h.bits_in_order[i] = (u8)bits;
        taken += 1u << (CODE_BITS - bits);
    }
    // The rarest of those that can get longer do; what is left over after that goes to the most frequent ones.
    for (u32 i = 0; i < symbols && taken > 1u << CODE_BITS; i++) {
        while (h.bits_in_order[i] < CODE_BITS && taken > 1u << CODE_BITS) {
            h.bits_in_order[i]++;
            taken -= 1u << (CODE_BITS - h.bits_in_order[i]);
        }
    }
    for (u32 i = symbols; i-- > 0 && taken < 1u << CODE_BITS;) {
        while (h.bits_in_order[i] > 1 && taken + (1u << (CODE_BITS - h.bits_in_order[i])) <= 1u << CODE_BITS) {
            taken += 1u << (CODE_BITS - h.bits_in_order[i]);
            h.bits_in_order[i]--;
        }
    }
    u32 longest = 0;
    for (u32 i = 0; i < symbols; i++) longest = maximum(longest, (u32)h.bits_in_order[i]);
    h.longest = longest;
    h.good = taken == 1u << CODE_BITS;
}

// Describes weights by a table of their own (RFC 8878 4.2.1.2): two states take turns. Gives the bytes that it takes; more than there is room for where that is too
// little. Scope: a warp.
DEVICE u32 huffman_compress_weights(Huffman& h, u32 weights) {
    u32 lane = lane_index();
    if (lane < 16) h.weight_counts[lane] = 0;
    warp_barrier();
    for (u32 i = lane; i < weights; i += WARP) atomic_add(&h.weight_counts[h.listed[i]], 1);
    warp_barrier();
    u32 kinds = count_ones(warp_ballot(lane < 16 && h.weight_counts[lane] != 0));
    constexpr u32 NEVER = 255;
    if (kinds < 2 || weights < 4) return NEVER;
    u32 symbols = highest_bit(warp_ballot(lane < 16 && h.weight_counts[lane] != 0)) + 1;
    if (lane == 0) normalise(h.weight_counts, symbols, weights, WEIGHTS_LOG, h.normalised);
    warp_barrier();
    FseEncoder encoder{h.next, h.transforms};
    encoder_table(encoder, h.normalised, symbols, WEIGHTS_LOG, h.cells, h.starts);
    u32 size = 0;
    if (lane == 0) {
        BitWriter out{h.description + 1, 127, 0, 0, 0};
        write_counts(out, h.normalised, symbols, WEIGHTS_LOG);
        out.finish();
        // The decoder starts with the state of the first weight.
        u32 left = weights;
        u32 states[2];
        for (u32 i = 0; i < 2; i++) {
            left--;
            states[left % 2] = encoder.first(h.listed[left]);
        }
        while (left > 0) {
            left--;
            u32 bits = encoder.before(states[left % 2], h.listed[left]);
            out.put(bits & 0xfff, bits >> 12);
        }
        out.put(states[1] - (1u << WEIGHTS_LOG), WEIGHTS_LOG);
        out.put(states[0] - (1u << WEIGHTS_LOG), WEIGHTS_LOG);
        out.put(1, 1);
        size = out.finish();
    }
    size = warp_shuffle(size, 0);
    return size > 127 ? NEVER : size;
}

// From how often each byte occurs, at least two of them, to codes and what describes them. All threads of the block; `good` says whether there is something.
DEVICE void huffman_build(Huffman& h) {
    u32 thread = thread_index(), threads = block_threads();
    for (u32 symbol = thread; symbol < 256; symbol += threads) {
        u32 count = h.counts[symbol], before = 0;
        for (u32 other = 0; other < 256; other++) {
            u32 its = h.counts[other];
            before += its != 0 && (its < count || (its == count && other < symbol));
        }
        h.codes[symbol] = 0;
        if (count != 0) h.order[before] = (u8)symbol;
    }
    block_barrier();
    if (thread == 0) huffman_lengths(h);
    block_barrier();
    for (u32 i = thread; i < h.symbols; i += threads) h.codes[h.order[i]] = h.bits_in_order[i];
    block_barrier();
    u32 last = 0;
    for (u32 symbol = 0; symbol < 256; symbol++) {
        if (h.counts[symbol] != 0) last = symbol;
    }
    // Codes are given by their length, the longest ones first, then by symbol.
    u32 mine[256 / ZSTD_COMPRESS_THREADS];
    for (u32 i = 0; i < 256 / ZSTD_COMPRESS_THREADS; i++) {
        u32 symbol = thread + i * threads, bits = h.codes[symbol];
        u32 longer = 0, same = 0;
        for (u32 other = 0; other < 256 && bits != 0; other++) {
            u32 its = h.codes[other];
            longer += its > bits ? 1u << (CODE_BITS - its) : 0;
            same += its == bits && other < symbol;
        }
        mine[i] = bits == 0 ? 0 : bits | ((longer >> (CODE_BITS - bits)) + same) << 16;
        h.listed[symbol] = (u8)(bits == 0 ? 0 : h.longest + 1 - bits);
    }
    block_barrier();
    for (u32 i = 0; i < 256 / ZSTD_COMPRESS_THREADS; i++) h.codes[thread + i * threads] = mine[i];
    // The weight of the last symbol goes without saying.
    if (thread < WARP) {
        u32 compressed = huffman_compress_weights(h, last);
        u32 plain = last <= PLAIN_WEIGHTS ? (last + 1) / 2 : 255;
        warp_barrier();
        if (plain < compressed) {
            for (u32 i = thread; i < plain; i += WARP) {
                u32 second = 2 * i + 1 < last ? h.listed[2 * i + 1] : 0;
                h.description[1 + i] = (u8)(h.listed[2 * i] << 4 | second);
            }
        }
        if (thread == 0) {
            h.description[0] = (u8)(plain < compressed ? 127 + last : compressed);
            h.description_len = 1 + minimum(plain, compressed);
            if (plain == 255 && compressed == 255) h.good = false;
        }
    }
    block_barrier();
}

// The literals of a stream: all have as many, but the last one.
DEVICE u32 stream_start(u32 literals, u32 stream) { return minimum(stream * ((literals + 3) / 4), literals); }

// Bits of the codes of a stream, the one at its end not among them. Scope: a warp.
DEVICE u32 huffman_measure(const Huffman& h, const u8* literals, u32 from, u32 to) {
    u32 bits = 0;
    for (u32 at = from + lane_index(); at < to; at += WARP) bits += h.codes[literals[at]] & 0xffff;
    return warp_sum(bits);
}

// Writes a stream to bytes `start..end` of `out`, the last literal first. Scope: a warp.
DEVICE void huffman_write(const Huffman& h, const u8* literals, u32 from, u32 to, u8* out, u32 start, u32 end, u32* words) {
    u32 lane = lane_index();
    for (u32 i = lane; i < HUFFMAN_WORDS; i += WARP) words[i] = 0;
    warp_barrier();
    u32 bit = start * 8;
    while (to > from) {
        u32 base = bit / 32;
        u64 value = 0;
        u32 count = 0;
        for (u32 i = 0; i < HUFFMAN_BATCH; i++) {
            u32 back = lane * HUFFMAN_BATCH + i;
            if (back < to - from) {
                u32 code = h.codes[literals[to - 1 - back]];
                value |= (u64)(code >> 16) << count;
                count += code & 0xffff;
            }
        }
        u32 sum = warp_inclusive_sum(count);
        u32 at = bit - base * 32 + sum - count;
        u32 low = minimum(count, 32u);
        bits_put(words, at, (u32)value, low);
        bits_put(words, at + low, (u32)(value >> 32), count - low);
        bit += warp_shuffle(sum, WARP - 1);
        to -= minimum(to - from, WARP * HUFFMAN_BATCH);
        warp_barrier();
        // Whole words go; what has begun stays.
        u32 whole = bit / 32 - base;
        u32 begun = words[whole];
        warp_barrier();
        for (u32 i = lane; i < HUFFMAN_WORDS; i += WARP) {
            if (i < whole) store_word(out, base + i, words[i], start, end);
            words[i] = i == 0 ? begun : 0;
        }
        warp_barrier();
    }
    if (lane == 0) {
        bits_put(words, bit % 32, 1, 1);
        store_word(out, bit / 32, words[0], start, end);
    }
    warp_barrier();
}

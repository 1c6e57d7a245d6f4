// LZ4 blocks (lz4_Block_format.md), by a warp: its threads read the sequences together, and share the copies.
//
// Verdicts are those of LZ4_decompress_safe where it decodes to as many bytes as it should: with its rules on how a block ends, where it holds blocks to them, and zeros
// for an offset of 0.
#pragma once

#include "../bytes.cuh"
#include "../input.cuh"

// The rules on how a block ends (lz4_Block_format.md, "End of block conditions"): the last match starts so many bytes before the end at least, and this many literals follow it.
constexpr u32 LZ4_MATCH_LIMIT = 12;
constexpr u32 LZ4_LAST_LITERALS = 5;
// So many bytes follow the literals of a sequence that is not the last: an offset, a token and the last literals.
constexpr u32 LZ4_REST = 2 + 1 + LZ4_LAST_LITERALS;
constexpr u32 LZ4_MIN_MATCH = 4;
// Lengths that go on in bytes of their own; bytes of those of literals are not among the last so many.
constexpr u32 LZ4_LONG = 15;
// A sequence with short lengths that starts with more than so many bytes ahead of it is not held to the rules.
constexpr u32 LZ4_HASTY_INPUT = 16;
constexpr u32 LZ4_HASTY_OUTPUT = 32;

// Encoded bytes as a warp reads them: 128 at a time, of which each lane holds 4.
struct Lz4Input {
    const Input in;
    // Bytes that the chunk starts behind a multiple of 4.
    u32 skew;
    // Where, from that multiple of 4, the bytes start that the lanes hold. At first far from any.
    u32 base, word;
    static constexpr u32 NOTHING = ~0u - 255;

    DEVICE_MEMBER explicit Lz4Input(const Input& input) : in(input), skew((u32)(size_t)input.data & 3), base(NOTHING), word(0) {}

    // Up to 4 bytes from `at`, the first of which is there. Scope: a warp.
    DEVICE_MEMBER u32 peek(u32 at) {
        u32 from = at + skew;
        if (from - base > (WARP - 2) * 4) {
            base = from & ~3u;
            u32 mine = base + 4 * lane_index();
            if (mine >= skew && mine - skew + 4 <= in.len) word = load_constant((const u32*)(in.data + (mine - skew)));
            else word = in.byte(mine - skew) | in.byte(mine + 1 - skew) << 8 | in.byte(mine + 2 - skew) << 16 | in.byte(mine + 3 - skew) << 24;
        }
        u32 index = (from - base) / 4, low = warp_shuffle(word, index), high = warp_shuffle(word, index + 1);
        return funnel_right_wrap(high, low, 8 * (from & 3));
    }
};

// Copies bytes that are all there, and do not overlap the place that they go to: those of `data` from `from` on. Scope: a warp.
template <bool FIXED>
DEVICE void lz4_copy(const u8* data, u32 data_len, u32 from, u8* to, u32 len) {
    u32 lane = lane_index();
    if (len <= 2 * WARP) {
        for (u32 i = lane; i < len; i += WARP) to[i] = FIXED ? load_constant(data + from + i) : data[from + i];
        return;
    }
    u32 head = (u32)(0 - (size_t)to) & 15, body = (len - head) / 16 * 16, tail = head + body;
    if (lane < head) to[lane] = data[from + lane];
    for (u32 at = head + lane * 16; at < tail; at += WARP * 16) store16(to + at, load_any<FIXED>(data, data_len, from + at));
    if (lane < len - tail) to[tail + lane] = data[from + tail + lane];
}

// Who repeats: the threads of a warp.
struct Lz4Warp {
    DEVICE_MEMBER static u32 index() { return lane_index(); }
    DEVICE_MEMBER static u32 threads() { return WARP; }
    DEVICE_MEMBER static void barrier() { warp_barrier(); }
    DEVICE_MEMBER static void copy(u8* output, u32 from, u32 to, u32 len) { lz4_copy<false>(output, to, from, output + to, len); }
};

// Repeats the `offset` bytes before `at` until there are `len` more; zeros, for an offset of 0. Scope: `Threads`.
template <class Threads> DEVICE void lz4_repeat(u8* output, u32 at, u32 offset, u32 len) {
    if (offset >= len) {
        Threads::copy(output, at - offset, at, len);
        return;
    }
    u32 done = minimum(len, 4 * Threads::threads());
    for (u32 i = Threads::index(); i < done; i += Threads::threads()) output[at + i] = offset == 0 ? 0 : output[at - offset + (offset == 1 ? 0 : i % offset)];
    // What is there by now is repeated in turn, in whole periods.
    u32 period = maximum(offset, 1u);
    while (done < len) {
        Threads::barrier();
        u32 have = (done + offset) / period * period, more = minimum(len - done, have);
        Threads::copy(output, at + done - have, at + done, more);
        done += more;
    }
}

// A sequence: where its literals are, and how many; unless it is the last one, its match; where the next one starts.
struct Lz4Sequence {
    u32 literals_at, literals, offset, match, next;
    bool last;
};

// Reads the sequence at `at`, which is before `end`, of a block that ends there, when `left` bytes of output are to be made, with `made` before them. False where it is wrong. Scope: a warp.
DEVICE bool lz4_next(Lz4Input& in, u32 at, u32 end, u32 made, u32 left, Lz4Sequence& sequence) {
    u32 token = in.peek(at++) & 0xff, literals = token >> 4, match = token & 15;
    bool hasty = literals < LZ4_LONG && end - at > LZ4_HASTY_INPUT && left >= LZ4_HASTY_OUTPUT;
    if (literals == LZ4_LONG) {
        if (at + LZ4_LONG >= end) return false;
        for (u32 byte = 255; byte == 255;) {
            byte = in.peek(at++) & 0xff;
            literals += byte;
            if (at + LZ4_LONG > end || literals > left) return false;
        }
    }
    // Nearer to the end than this, there are only literals.
    bool last = !hasty && (literals + LZ4_MATCH_LIMIT > left || literals + LZ4_REST > end - at);
    sequence = Lz4Sequence{at, literals, 0, 0, at + literals, last};
    if (last) return literals == end - at && literals == left;
    at += literals;
    u32 offset = in.peek(at) & 0xffff;
    at += 2;
    hasty = hasty && match < LZ4_LONG && offset >= 8;
    if (match == LZ4_LONG) {
        for (u32 byte = 255; byte == 255;) {
            byte = in.peek(at++) & 0xff;
            match += byte;
            if (at + LZ4_LAST_LITERALS - 1 > end || match > left) return false;
        }
    }
    match += LZ4_MIN_MATCH;
    sequence.offset = offset;
    sequence.match = match;
    sequence.next = at;
    return offset <= made + literals && (hasty || match + LZ4_LAST_LITERALS <= left - literals);
}

// Decodes the bytes from `at` to `end`. False unless they are the rest of a block of which `to` bytes were decoded, and that decodes to `output_len` bytes. Scope: a warp.
DEVICE bool lz4_rest(Lz4Input& in, u32 at, u32 end, u8* output, u32 to, u32 output_len) {
    if (at == end) return false;
    for (;;) {
        Lz4Sequence sequence;
        if (!lz4_next(in, at, end, to, output_len - to, sequence)) return false;
        lz4_copy<true>(in.in.data, in.in.len, sequence.literals_at, output + to, sequence.literals);
        if (sequence.last) return true;
        at = sequence.next;
        to += sequence.literals;
        // Literals are read by other lanes than wrote them; so are matches.
        warp_barrier();
        lz4_repeat<Lz4Warp>(output, to, sequence.offset, sequence.match);
        warp_barrier();
        to += sequence.match;
    }
}

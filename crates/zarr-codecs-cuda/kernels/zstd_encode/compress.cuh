// From sequences and literals to the content of a block (RFC 8878 3.1.1.3).
#pragma once

#include "../bytes.cuh"
#include "../zstd/sequences.cuh"
#include "huffman.cuh"

// Sequences whose bits are written at a time: one for each thread. The most bits of one: of three states, and of a length, a length and an offset.
constexpr u32 SEQUENCE_BATCH = ZSTD_COMPRESS_THREADS;
constexpr u32 SEQUENCE_BITS = 9 + 8 + 9 + 16 + 16 + 17;
constexpr u32 SEQUENCE_WORDS = (SEQUENCE_BATCH * SEQUENCE_BITS + 31) / 32 + 2;
// With fewer sequences, tables are not worth their description.
constexpr u32 TABLE_MIN = 48;
// Room for the description of a table.
constexpr u32 TABLE_ROOM = 128;

// The three tables of a block, by `TABLE_SYMBOLS`: 0 literal lengths, 1 offsets, 2 match lengths.
struct Coding {
    u32 counts[3][64];
    i16 normalised[3][64];
    u16 next[TABLES_ENTRIES];
    FseSymbol transforms[3][64];
    u8 cells[3][512];
    u16 starts[3][64];
    u8 descriptions[3][TABLE_ROOM];
    u32 description_len[3];
    u32 mode[3];
    u32 log[3];
    // Of the batch that is written: codes, what leads states on, bits.
    u8 codes[3][SEQUENCE_BATCH];
    u16 steps[3][SEQUENCE_BATCH];
    u32 states[3];
    u32 warp_bits[ZSTD_COMPRESS_THREADS / WARP];
    u32 words[SEQUENCE_WORDS];
};

struct CompressShared {
    Huffman huffman;
    Coding coding;
};
static_assert(sizeof(CompressShared) <= ZSTD_COMPRESS_SHARED, "as the host has it");

// The codes of lengths (RFC 8878 3.1.1.3.2.1.1), from literals and from matches less 3.
DEVICE u32 literal_length_code(u32 len) {
    if (len < 16) return len;
    if (len < 24) return 16 + (len - 16) / 2;
    if (len < 32) return 20 + (len - 24) / 4;
    if (len < 48) return 22 + (len - 32) / 8;
    return len < 64 ? 24 : highest_bit(len) + 19;
}
DEVICE u32 match_length_code(u32 len) {
    if (len < 32) return len;
    if (len < 40) return 32 + (len - 32) / 2;
    if (len < 48) return 36 + (len - 40) / 4;
    if (len < 64) return 38 + (len - 48) / 8;
    if (len < 96) return 40 + (len - 64) / 16;
    return len < 128 ? 42 : highest_bit(len) + 36;
}
DEVICE u32 code_of(const EncodeSequence& sequence, u32 which) {
    return which == 0 ? literal_length_code(sequence.literals) : which == 1 ? highest_bit(sequence.offset) : match_length_code(sequence.match);
}

// The content of a block in the making. What would be written beyond `room` is not.
struct Content {
    u8* bytes;
    u32 len, room;
};

// Writes literals as they are, or one of them for all (RFC 8878 3.1.1.3.1.1). All threads of the block.
DEVICE void write_plain_literals(Content& out, const u8* literals, u32 count, bool all_alike) {
    u32 head = count < 32 ? 1 : count < 4096 ? 2 : 3;
    u32 body = all_alike ? 1 : count;
    if (thread_index() == 0) {
        u32 bits = (all_alike ? RLE_LITERALS : RAW_LITERALS) | (head == 1 ? 0 : head == 2 ? 1 : 3) << 2 | count << (head == 1 ? 3 : 4);
        for (u32 i = 0; i < head; i++) out.bytes[out.len + i] = (u8)(bits >> 8 * i);
    }
    for (u32 i = thread_index(); i < body; i += block_threads()) {
        if (out.len + head + i < out.room) out.bytes[out.len + head + i] = literals[i];
    }
    out.len += head + body;
}

// Writes the section of literals. All threads of the block.
DEVICE void write_literals(Content& out, const u8* literals, u32 count, Huffman& h) {
    u32 thread = thread_index(), threads = block_threads();
    for (u32 symbol = thread; symbol < 256; symbol += threads) h.counts[symbol] = 0;
    if (thread == 0) h.symbols = 0;
    block_barrier();
    for (u32 i = thread; i < count; i += threads) atomic_add(&h.counts[literals[i]], 1);
    block_barrier();
    for (u32 symbol = thread; symbol < 256; symbol += threads) {
        if (h.counts[symbol] != 0) atomic_add(&h.symbols, 1);
    }
    block_barrier();
    u32 symbols = h.symbols;
    if (symbols == 1 && count > 2) return write_plain_literals(out, literals, count, true);
    if (count < HUFFMAN_MIN) return write_plain_literals(out, literals, count, false);

    huffman_build(h);
    u32 stream = thread / WARP;
    u32 from = stream_start(count, stream), to = stream_start(count, stream + 1);
    u32 bits = huffman_measure(h, literals, from, to);
    if (lane_index() == 0) h.stream_bits[stream] = bits;
    block_barrier();
    // The bit that ends a stream may take a byte.
    u32 lens[HUFFMAN_STREAMS], sum = 6 + h.description_len, mine = 0;
    for (u32 i = 0; i < HUFFMAN_STREAMS; i++) {
        if (i == stream) mine = sum;
        lens[i] = h.stream_bits[i] / 8 + 1;
        sum += lens[i];
    }
    u32 head = count < 1024 && sum < 1024 ? 3 : count < 16384 && sum < 16384 ? 4 : 5;
    if (!h.good || head + sum >= count) return write_plain_literals(out, literals, count, false);
    u8* at = out.bytes + out.len + head;
    if (thread == 0) {
        u32 width = head == 3 ? 10 : head == 4 ? 14 : 18;
        u64 header = COMPRESSED_LITERALS | (head - 2) << 2 | (u64)count << 4 | (u64)sum << (4 + width);
        for (u32 i = 0; i < head; i++) out.bytes[out.len + i] = (u8)(header >> 8 * i);
        for (u32 i = 0; i < 6; i++) at[h.description_len + i] = (u8)(lens[i / 2] >> 8 * (i % 2));
    }
    for (u32 i = thread; i < h.description_len; i += threads) at[i] = h.description[i];
    u32 start = out.len + head + mine;
    huffman_write(h, literals, from, to, out.bytes, start, start + lens[stream], h.words[stream]);
    out.len += head + sum;
}

// Decides how the codes of one table are written, and makes the table. Scope: a warp.
DEVICE void coding_open(Coding& c, u32 which, u32 sequences) {
    u32 lane = lane_index();
    u32 low = warp_ballot(c.counts[which][lane] != 0), high = warp_ballot(c.counts[which][WARP + lane] != 0);
    u32 kinds = count_ones(low) + count_ones(high);
    u32 symbols = high != 0 ? WARP + highest_bit(high) + 1 : highest_bit(low) + 1;
    u32 log = PREDEFINED_LOG[which];
    TableMode mode = kinds == 1 ? RLE_TABLE : sequences < TABLE_MIN ? PREDEFINED : FSE_TABLE;
    i16* counts = c.normalised[which];
    if (mode == PREDEFINED) {
        symbols = PREDEFINED_SYMBOLS[which];
        for (u32 i = lane; i < symbols; i += WARP) counts[i] = PREDEFINED_COUNTS[which][i];
    } else if (mode == FSE_TABLE) {
        // States for a quarter of the sequences, twice the codes at least.
        log = maximum(highest_bit(sequences - 1) - 2, highest_bit(kinds) + 2);
        log = minimum(maximum(log, 5u), (u32)TABLE_LOG[which]);
    }
    if (lane == 0) {
        BitWriter description{c.descriptions[which], TABLE_ROOM, 0, 0, 0};
        if (mode == RLE_TABLE) description.put(symbols - 1, 8);
        if (mode == FSE_TABLE) {
            normalise(c.counts[which], symbols, sequences, log, counts);
            write_counts(description, counts, symbols, log);
        }
        c.mode[which] = mode;
        c.log[which] = log;
        c.description_len[which] = description.finish();
    }
    if (mode == RLE_TABLE) return;
    warp_barrier();
    encoder_table(FseEncoder{c.next + table_place(which), c.transforms[which]}, counts, symbols, log, c.cells[which], c.starts[which]);
}

// Writes the section of sequences. All threads of the block.
DEVICE void write_sequences(Content& out, const EncodeSequence* sequences, u32 count, Coding& c) {
    u32 thread = thread_index(), threads = block_threads();
    u32 warp = thread / WARP, lane = lane_index();
    u32 head = count < 128 ? 1 : count < 0x7f00 ? 2 : 3;
    if (thread == 0 && out.len + head < out.room) {
        u32 bits = head == 1 ? count : head == 2 ? (((count >> 8) + 128) | (count & 0xff) << 8) : (255 | (count - 0x7f00) << 8);
        for (u32 i = 0; i < head; i++) out.bytes[out.len + i] = (u8)(bits >> 8 * i);
    }
    out.len += head;
    if (count == 0) return;

    for (u32 i = thread; i < 3 * 64; i += threads) c.counts[i / 64][i % 64] = 0;
    block_barrier();
    for (u32 i = thread; i < count; i += threads) {
        EncodeSequence sequence = sequences[i];
        for (u32 which = 0; which < 3; which++) atomic_add(&c.counts[which][code_of(sequence, which)], 1);
    }
    block_barrier();
    if (warp < 3) coding_open(c, warp, count);
    block_barrier();
    if (thread == 0 && out.len < out.room) out.bytes[out.len] = (u8)(c.mode[0] << 6 | c.mode[1] << 4 | c.mode[2] << 2);
    out.len++;
    for (u32 which = 0; which < 3; which++) {
        for (u32 i = thread; i < c.description_len[which]; i += threads) {
            if (out.len + i < out.room) out.bytes[out.len + i] = c.descriptions[which][i];
        }
        out.len += c.description_len[which];
    }

    // From the last sequence to the first. States are serial, for each table its own; all else is not.
    u32 start = out.len, bit = start * 8;
    for (u32 i = thread; i < SEQUENCE_WORDS; i += threads) c.words[i] = 0;
    for (u32 end = count; end > 0;) {
        u32 batch = minimum(end, SEQUENCE_BATCH), base = bit / 32;
        EncodeSequence sequence = {0, 0, 1};
        if (thread < batch) sequence = sequences[end - 1 - thread];
        u32 codes[3];
        for (u32 which = 0; which < 3; which++) {
            codes[which] = code_of(sequence, which);
            c.codes[which][thread] = (u8)codes[which];
            c.steps[which][thread] = 0;
        }
        block_barrier();
        if (warp < 3 && lane == 0 && c.mode[warp] != RLE_TABLE) {
            FseEncoder encoder{c.next + table_place(warp), c.transforms[warp]};
            u32 state = c.states[warp], from = 0;
            if (end == count) state = encoder.first(c.codes[warp][from++]);
            for (u32 i = from; i < batch; i++) c.steps[warp][i] = (u16)encoder.before(state, c.codes[warp][i]);
            c.states[warp] = state;
        }
        block_barrier();
        u32 steps[3], step_bits = 0, extra[3];
        for (u32 which = 0; which < 3; which++) {
            steps[which] = c.steps[which][thread];
            step_bits += steps[which] >> 12;
        }
        extra[0] = literal_length_bits(codes[0]);
        extra[1] = codes[1];
        extra[2] = match_length_bits(codes[2]);
        u32 bits = thread < batch ? step_bits + extra[0] + extra[1] + extra[2] : 0;
        u32 sum = warp_inclusive_sum(bits);
        if (lane == WARP - 1) c.warp_bits[warp] = sum;
        block_barrier();
        u32 at = bit - base * 32 + sum - bits, all = 0;
        for (u32 i = 0; i < ZSTD_COMPRESS_THREADS / WARP; i++) {
            if (i < warp) at += c.warp_bits[i];
            all += c.warp_bits[i];
        }
        if (thread < batch) {
            auto put = [&](u32 value, u32 width) {
                bits_put(c.words, at, value, width);
                at += width;
            };
            u32 offset = steps[1] >> 12, match = steps[2] >> 12;
            put((steps[1] & 0xfff) | (steps[2] & 0xfff) << offset | (steps[0] & 0xfff) << (offset + match), step_bits);
            put(sequence.literals - literal_length_base(codes[0]), extra[0]);
            put(sequence.match + 3 - match_length_base(codes[2]), extra[2]);
            put(sequence.offset - (1u << codes[1]), extra[1]);
        }
        bit += all;
        end -= batch;
        block_barrier();
        u32 whole = bit / 32 - base, begun = c.words[whole];
        block_barrier();
        for (u32 i = thread; i < SEQUENCE_WORDS; i += threads) {
            if (i < whole) store_word(out.bytes, base + i, c.words[i], start, out.room);
            c.words[i] = i == 0 ? begun : 0;
        }
    }
    block_barrier();
    // The states with which the decoder starts, and the bit that ends the stream.
    if (thread == 0) {
        u32 base = bit / 32;
        auto put = [&](u32 value, u32 width) {
            bits_put(c.words, bit - base * 32, value, width);
            bit += width;
        };
        for (u32 i = 0; i < 3; i++) {
            u32 which = i == 0 ? 2 : i == 1 ? 1 : 0;
            if (c.mode[which] != RLE_TABLE) put(c.states[which] - (1u << c.log[which]), c.log[which]);
        }
        put(1, 1);
        u32 end = minimum((bit + 7) / 8, out.room);
        for (u32 i = 0; i <= bit / 32 - base; i++) store_word(out.bytes, base + i, c.words[i], start, end);
        c.warp_bits[0] = bit;
    }
    block_barrier();
    out.len = (c.warp_bits[0] + 7) / 8;
}

// zstd_compress: the content of blocks.
//   grid: a block of ZSTD_COMPRESS_THREADS threads for each; shared: ZSTD_COMPRESS_SHARED
//   reads: blocks, sources, sequences, literals; writes: blocks, staged
KERNEL(zstd_compress, Encode, ZSTD_COMPRESS_THREADS, 8) {
    static_assert(ZSTD_COMPRESS_THREADS / WARP == HUFFMAN_STREAMS, "a warp for each stream");
    CompressShared& shared = *(CompressShared*)shared_memory();
    EncodeBlock& block = p.blocks[block_index()];
    u64 at = p.sources[block.slot].at + block.start;
    Content out{staged_of(p, at, block_index()), 0, block.len + ZSTD_ENCODE_SLACK};
    write_literals(out, literals_of(p, at), block.literals, shared.huffman);
    write_sequences(out, sequences_of(p, at, block_index()), block.sequences, shared.coding);
    if (thread_index() == 0) {
        block.raw = out.len >= block.len;
        block.size = block.raw != 0 ? block.len : out.len;
    }
}

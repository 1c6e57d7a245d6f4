// The last stages: where blocks go, and the bytes of the output.
#pragma once

#include "entropy.cuh"

// zstd_resolve: the places of blocks in the output, and the repeated offsets at their starts, as far as this wave goes.
//   grid: a warp for each slot
//   reads and writes: states, blocks
KERNEL(zstd_resolve, Decode, ZSTD_RESOLVE_THREADS, 16) {
    const Slot& slot = p.slots[block_index()];
    SlotState* state = p.states + block_index();
    SlotState known = *state;
    warp_barrier();
    if (known.error != NO_ERROR || known.serial != 0) return;
    u32 lane = lane_index();
    u32 output = known.output, frame_start = known.frame_start;
    u32 repeats[3] = {known.repeats[0], known.repeats[1], known.repeats[2]};
    u32 resolved = known.resolved, reason = ZSTD_GOOD;
    bool more = true;
    while (more && resolved < known.blocks) {
        u32 index = resolved + lane;
        bool there = index < known.blocks;
        Block& block = p.blocks[slot.first_block + (there ? index : known.blocks - 1)];
        bool now = there && wave_of(known, block.need_before) <= p.wave;
        u32 flags = block.first | block.last << 1 | block.sized << 2 | (block.kind == COMPRESSED_BLOCK && block.sequences != 0) << 3;
        u32 len = block.output_len;
        u64 content = block.content_size;
        u32 after[3] = {block.repeats[0], block.repeats[1], block.repeats[2]};
        // Waves end where blocks do: those of this one come first.
        u32 count = count_ones(warp_ballot(now));
        more = count == WARP;
        u32 my_output = 0, my_start = 0, my_repeats[3] = {0, 0, 0};
        for (u32 from = 0; from < count && reason == ZSTD_GOOD; from++) {
            u32 is = warp_shuffle(flags, from);
            if (is & 1) {
                frame_start = output;
                repeats[0] = 1;
                repeats[1] = 4;
                repeats[2] = 8;
            }
            if (lane == from) {
                my_output = output;
                my_start = frame_start;
                for (u32 i = 0; i < 3; i++) my_repeats[i] = repeats[i];
            }
            u32 entry[3] = {repeats[0], repeats[1], repeats[2]};
            for (u32 i = 0; i < 3; i++) {
                u32 value = resolve_offset(warp_shuffle(after[i], from), entry);
                if (is & 8) repeats[i] = value;
            }
            u32 add = warp_shuffle(len, from);
            u64 says = warp_shuffle(content, from);
            if (add > slot.decoded_len - output) {
                reason = ZSTD_OUTPUT_TOO_LARGE;
            } else {
                output += add;
                if ((is & 6) == 6 && says != output - frame_start) reason = ZSTD_CONTENT_SIZE;
            }
            resolved++;
        }
        if (lane < count) {
            block.output = my_output;
            block.frame_start = my_start;
            for (u32 i = 0; i < 3; i++) block.entry_repeats[i] = my_repeats[i];
        }
        if (reason != ZSTD_GOOD) break;
    }
    if (lane == 0) {
        state->resolved = resolved;
        state->output = output;
        state->frame_start = frame_start;
        for (u32 i = 0; i < 3; i++) state->repeats[i] = repeats[i];
        if (reason != ZSTD_GOOD) fail(state, resolved - 1, reason);
    }
}

// Writes 16 bytes at any alignment. Scope: one thread.
DEVICE void store_any(u8* at, const Bytes16& value, u32 count) {
    if (count == 16 && ((size_t)at & 15) == 0) {
        store16(at, value);
    } else if (count == 16 && ((size_t)at & 3) == 0) {
        for (u32 i = 0; i < 4; i++) ((u32*)at)[i] = value.word[i];
    } else {
        for (u32 i = 0; i < count; i++) at[i] = (u8)(value.word[i / 4] >> 8 * (i % 4));
    }
}

// 16 bytes of the chunk from `at`, wherever they lie; those past the end are 0. Scope: one thread.
DEVICE Bytes16 load_any(const Input& in, u32 at) {
    Bytes16 value;
    const u8* from = in.data + at;
    u32 skew = (u32)(size_t)from & 3;
    // Five aligned words hold them; all must be in the chunk.
    if (at >= 4 && at + 20 <= in.len) {
        const u32* words = (const u32*)(from - skew);
        u32 word[5];
        for (u32 i = 0; i < 5; i++) word[i] = load_constant(words + i);
        for (u32 i = 0; i < 4; i++) value.word[i] = skew == 0 ? word[i] : word[i] >> 8 * skew | word[i + 1] << (32 - 8 * skew);
    } else {
        for (u32 i = 0; i < 4; i++) value.word[i] = in.le32(at + 4 * i);
    }
    return value;
}

// A raw or RLE block. Scope: a block of threads.
DEVICE void copy_block(const Input& in, const Block& block, u8* output) {
    u32 repeated = in.byte(block.input) * 0x01010101u;
    for (u32 at = thread_index() * 16; at < block.size; at += block_threads() * 16) {
        Bytes16 value = {{repeated, repeated, repeated, repeated}};
        if (block.kind == RAW_BLOCK) value = load_any(in, block.input + at);
        store_any(output + at, value, minimum(block.size - at, 16u));
    }
}

// zstd_copy: raw and RLE blocks.
//   grid: any number of blocks of ZSTD_COPY_THREADS threads; `batch` of them share a slot
//   reads: slots, states, blocks, encoded bytes; writes: decoded bytes
KERNEL(zstd_copy, Decode, ZSTD_COPY_THREADS, 4) {
    u32 slot_index = block_index() / p.batch, part = block_index() % p.batch;
    if (slot_index >= p.slot_count) return;
    const Slot& slot = p.slots[slot_index];
    const SlotState& state = p.states[slot_index];
    if (state.error != NO_ERROR || state.serial != 0) return;
    for (u32 index = state.executed + part; index < state.resolved; index += p.batch) {
        const Block& block = p.blocks[slot.first_block + index];
        if (block.kind != COMPRESSED_BLOCK) copy_block(slot.input(), block, slot.decoded + block.output);
    }
}

// A sequence of a tile.
struct Place {
    u32 output, literals, offset;
};

// What is shared by the threads that execute a block: for each byte of the tile, its value or the byte of the tile that it repeats; and the places.
constexpr u16 KNOWN = 0x8000;
struct Tile {
    u16* bytes;
    Place* places;
};
DEVICE Tile tile_in(u8* shared) { return Tile{(u16*)shared, (Place*)(shared + block_threads() * ZSTD_BYTES_PER_THREAD * 2)}; }

// A sequence as staged; one behind the last stands for the literals that follow, another for the end.
DEVICE Place load_place(Packed, const Block& block, const u8* staged, u32 index) {
    if (index > block.sequences) return Place{block.output_len, block.literals_len, 0};
    if (index == block.sequences) return Place{block.sequences == 0 ? 0 : block.sequences_output, block.sequences == 0 ? 0 : block.sequences_literals, 0};
    u64 entry = load_constant((const u64*)staged + index);
    return Place{(u32)entry & 0x1ffff, (u32)(entry >> POSITION_BITS) & 0x1ffff, (u32)(entry >> (2 * POSITION_BITS))};
}
DEVICE Place load_place(Wide, const Block& block, const u8* staged, u32 index) {
    if (index > block.sequences) return Place{block.output_len, block.literals_len, 0};
    if (index == block.sequences) return Place{block.sequences == 0 ? 0 : block.sequences_output, block.sequences == 0 ? 0 : block.sequences_literals, 0};
    const u32* at = (const u32*)staged + 4 * index;
    return Place{at[0], at[1], at[2]};
}

// The sequences that make bytes `start..end` of a block, end at a multiple of ZSTD_TILE_STEP or at the block's: the first and the last, or one more.
DEVICE void sequences_of_tile(Packed, const Block& block, const u8*, u32 start, u32 end, u32& first, u32& last) {
    first = block.sequences == 0 ? 0 : block.tile_sequence[start / ZSTD_TILE_STEP];
    last = block.sequences == 0 || end == block.output_len ? block.sequences : block.tile_sequence[end / ZSTD_TILE_STEP];
}
DEVICE void sequences_of_tile(Wide, const Block& block, const u8* staged, u32 start, u32 end, u32& first, u32& last) {
    for (u32 which = 0; which < 2; which++) {
        u32 at = which == 0 ? start : end - 1;
        u32 from = 0, to = block.sequences + 1;
        while (to - from > 1) {
            u32 middle = (from + to) / 2;
            if (load_place(Wide{}, block, staged, middle).output <= at) from = middle; else to = middle;
        }
        if (which == 0) first = from; else last = from;
    }
}

// A thread's bytes of a tile.
DEVICE void store_entries(u16* to, const u16* entries) {
    UNROLL
    for (u32 half = 0; half < 2; half++) {
        Bytes16 value;
        UNROLL
        for (u32 i = 0; i < 4; i++) value.word[i] = entries[8 * half + 2 * i] | (u32)entries[8 * half + 2 * i + 1] << 16;
        store16((u8*)(to + 8 * half), value);
    }
}

// Makes the output of a compressed block, tile by tile. Every byte finds the sequence that makes it, and through it its source: a literal, a byte of an earlier tile, or a byte of this one, which is
// followed until its value is known. `output`: of this block. False where an offset is wrong. Scope: a block of threads.
template <class Format>
DEVICE bool execute_block(const Input& in, const Block& block, const u8* literals, const u8* staged, u8* output, Tile tile) {
    const u32 tile_len = block_threads() * ZSTD_BYTES_PER_THREAD;
    const u8* literals_from = block.literals_kind >= COMPRESSED_LITERALS ? literals : in.data + block.literals_input;
    const u32 literals_step = block.literals_kind == RLE_LITERALS ? 0 : 1;
    const u32 reach = block.output - block.frame_start, output_len = block.output_len, sequences = block.sequences;
    const u32 repeats[3] = {block.entry_repeats[0], block.entry_repeats[1], block.entry_repeats[2]};
    for (u32 start = 0; start < output_len; start += tile_len) {
        u32 end = minimum(start + tile_len, output_len);
        u32 first, last;
        sequences_of_tile(Format{}, block, staged, start, end, first, last);
        u32 count = last - first + 1;
        bool bad = false;
        for (u32 i = thread_index(); i <= count; i += block_threads()) {
            Place place = load_place(Format{}, block, staged, first + i);
            if (first + i < sequences && i < count) {
                Place next = load_place(Format{}, block, staged, first + i + 1);
                place.offset = resolve_offset(place.offset, repeats);
                u32 before = reach + place.output + (next.literals - place.literals);
                bad |= place.offset == 0 || place.offset > before;
            }
            tile.places[i] = place;
        }
        if (block_any(bad)) return false;
        u32 mine = start + thread_index() * ZSTD_BYTES_PER_THREAD;
        u32 bytes = mine < end ? minimum(end - mine, ZSTD_BYTES_PER_THREAD) : 0;
        u16 known[ZSTD_BYTES_PER_THREAD];
        UNROLL
        for (u32 i = 0; i < ZSTD_BYTES_PER_THREAD; i++) known[i] = KNOWN;
        if (bytes != 0) {
            u32 at = 0, to = count;
            while (to - at > 1) {
                u32 middle = (at + to) / 2;
                if (tile.places[middle].output <= mine) at = middle; else to = middle;
            }
            Place place = tile.places[at], next = tile.places[at + 1];
            u32 match = place.output + (next.literals - place.literals);
            // Where the next byte of the match comes from. A match that reaches into itself repeats what it started with.
            i32 from = (i32)match - (i32)place.offset;
            if (mine > match) {
                u32 along = mine - match;
                if (along >= place.offset) along %= place.offset;
                from += (i32)along;
            }
            const u8* source[ZSTD_BYTES_PER_THREAD];
            UNROLL
            for (u32 i = 0; i < ZSTD_BYTES_PER_THREAD; i++) {
                u32 byte = mine + i;
                source[i] = nullptr;
                if (i < bytes) {
                    if (byte >= next.output) {
                        do {
                            at++;
                            place = next;
                            next = tile.places[at + 1];
                        } while (byte >= next.output);
                        match = place.output + (next.literals - place.literals);
                        from = (i32)match - (i32)place.offset;
                    }
                    if (byte < match) {
                        source[i] = literals_from + (place.literals + (byte - place.output)) * literals_step;
                    } else {
                        if (from >= (i32)start) known[i] = (u16)(from - (i32)start);
                        else source[i] = output + from;
                        from++;
                        if (from == (i32)match) from -= (i32)place.offset;
                    }
                }
            }
            UNROLL
            for (u32 i = 0; i < ZSTD_BYTES_PER_THREAD; i++) {
                if (source[i] != nullptr) known[i] = (u16)(KNOWN | *source[i]);
            }
            store_entries(tile.bytes + (mine - start), known);
        }
        block_barrier();
        // Followed two steps at a time, all bytes of a thread at once; what is not known then is left where others find it, so that chains get
        // three times shorter each time.
        for (;;) {
            bool more = false;
            u32 all = KNOWN;
            UNROLL
            for (u32 i = 0; i < ZSTD_BYTES_PER_THREAD; i++) all &= known[i];
            if (all == 0) {
                for (u32 step = 0; step < 2; step++) {
                    UNROLL
                    for (u32 i = 0; i < ZSTD_BYTES_PER_THREAD; i++) {
                        if (!(known[i] & KNOWN)) known[i] = tile.bytes[known[i]];
                    }
                }
                all = KNOWN;
                UNROLL
                for (u32 i = 0; i < ZSTD_BYTES_PER_THREAD; i++) all &= known[i];
                more = all == 0;
            }
            if (!block_any(more)) break;
            if (more) store_entries(tile.bytes + (mine - start), known);
            block_barrier();
        }
        if (bytes != 0) {
            Bytes16 value = {{0, 0, 0, 0}};
            UNROLL
            for (u32 i = 0; i < ZSTD_BYTES_PER_THREAD; i++) value.word[i / 4] |= (u32)(known[i] & 0xff) << 8 * (i % 4);
            store_any(output + mine, value, bytes);
        }
        block_barrier();
    }
    return true;
}

// zstd_execute, zstd_execute_wide: the compressed blocks of a wave. The one where slots fill the device, the other with more registers where they do not.
//   grid: a block of ZSTD_EXECUTE_THREADS or ZSTD_EXECUTE_WIDE_THREADS threads for each slot
//   shared: 2 bytes for each byte of a tile, and room for its places: bytes of a tile / 3 + 4, of 12 bytes each
//   reads: slots, states, blocks, encoded bytes, the arena, decoded bytes; writes: decoded bytes, states
DEVICE void execute_slot(const Decode& p) {
    const Slot& slot = p.slots[block_index()];
    SlotState* state = p.states + block_index();
    u32 from = state->executed, to = state->resolved;
    // Not only read here, but written by thread 0 below.
    bool stop = state->error != NO_ERROR || state->serial != 0;
    block_barrier();
    if (stop) return;
    Input in = slot.input();
    Tile tile = tile_in(shared_memory());
    for (u32 index = from; index < to; index++) {
        const Block& block = p.blocks[slot.first_block + index];
        if (block.kind != COMPRESSED_BLOCK) continue;
        const u8* literals = p.arena + (u64)block.literals_at * 16;
        const u8* staged = p.arena + (u64)block.sequences_at * 16;
        if (!execute_block<Packed>(in, block, literals, staged, slot.decoded + block.output, tile)) {
            if (thread_index() == 0) fail(state, index, ZSTD_OFFSET);
            return;
        }
    }
    if (thread_index() == 0) state->executed = to;
}
KERNEL(zstd_execute, Decode, ZSTD_EXECUTE_THREADS, 4) { execute_slot(p); }
KERNEL(zstd_execute_wide, Decode, ZSTD_EXECUTE_WIDE_THREADS, 1) { execute_slot(p); }

// The last stages: where blocks go, and the bytes of the output.
#pragma once

#include "../bytes.cuh"
#include "entropy.cuh"

DEVICE u32 offset_bits(const Slot& slot) {
    return slot.tight() ? Tight::OFFSET_BITS : slot.compact() ? Compact::OFFSET_BITS : Full::OFFSET_BITS;
}

// zstd_resolve: the places of blocks in the output, and the repeated offsets at their starts, as far as this wave goes. What was resolved before is executed by now.
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
    u32 stream_end = known.stream_end, resolved = known.resolved, reason = ZSTD_GOOD;
    bool more = true;
    while (more && resolved < known.blocks) {
        u32 index = resolved + lane;
        bool there = index < known.blocks;
        Block& block = p.blocks[slot.first_block + (there ? index : known.blocks - 1)];
        bool now = there && wave_of(known, block.need_before) <= p.wave;
        u32 flags = block.first | block.last << 1 | block.sized << 2 | (block.kind == COMPRESSED_BLOCK && block.sequences != 0) << 3;
        u32 len = block.output_len, my_end = block.stream_end;
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
                u32 value = resolve_offset(warp_shuffle(after[i], from), offset_bits(slot), entry);
                if (is & 8) repeats[i] = value;
            }
            u32 add = warp_shuffle(len, from);
            u64 says = warp_shuffle(content, from);
            u32 end = warp_shuffle(my_end, from);
            if (end != stream_end && output != stream_end) {
                reason = ZSTD_OUTPUT_TOO_SMALL;
            } else if (add > end - output) {
                reason = ZSTD_OUTPUT_TOO_LARGE;
            } else {
                output += add;
                if ((is & 6) == 6 && says != output - frame_start) reason = ZSTD_CONTENT_SIZE;
            }
            stream_end = end;
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
        state->executed = known.resolved;
        state->tiles_taken = state->tiles_done = 0;
        state->resolved = resolved;
        state->output = output;
        state->frame_start = frame_start;
        state->stream_end = stream_end;
        for (u32 i = 0; i < 3; i++) state->repeats[i] = repeats[i];
        if (reason != ZSTD_GOOD) fail(state, resolved - 1, reason);
    }
}

// Copies bytes. Unless FIXED, they may be literals that wait in the output, at or behind the place that they go to. Scope: a block of threads.
template <bool FIXED>
DEVICE void copy_run(const u8* from, u32 len, u8* to) {
    constexpr u32 EACH = 2;
    u32 head = minimum((u32)(0 - (size_t)to) & 15, len), body = (len - head) / 16 * 16;
    u32 lane = thread_index(), tail = head + body;
    // What is before `tail` may be written to where the rest comes from.
    u8 first = lane < head ? from[lane] : 0, last = lane < len - tail ? from[tail + lane] : 0;
    for (u32 base = 0; base < body; base += block_threads() * 16 * EACH) {
        Bytes16 value[EACH];
        UNROLL
        for (u32 i = 0; i < EACH; i++) {
            u32 at = head + base + (i * block_threads() + lane) * 16;
            if (at < tail) value[i] = load_any<FIXED>(from, len, at);
        }
        if (!FIXED) block_barrier();
        UNROLL
        for (u32 i = 0; i < EACH; i++) {
            u32 at = head + base + (i * block_threads() + lane) * 16;
            if (at < tail) store16(to + at, value[i]);
        }
    }
    if (!FIXED) block_barrier();
    if (lane < head) to[lane] = first;
    if (lane < len - tail) to[tail + lane] = last;
}

// Scope: a block of threads.
DEVICE void fill_run(u32 byte, u32 len, u8* to) {
    u32 four = byte * 0x01010101u;
    for (u32 at = thread_index() * 16; at < len; at += block_threads() * 16) store_any(to + at, Bytes16{{four, four, four, four}}, minimum(len - at, 16u));
}

// A block without sequences. `literals`: where those are that were decoded. Scope: a block of threads.
DEVICE bool is_run(const Block& block) { return block.kind != COMPRESSED_BLOCK || block.sequences == 0; }
DEVICE void copy_block(const Input& in, const Block& block, const u8* literals, u8* output) {
    bool raw = block.kind == RAW_BLOCK, compressed = block.kind == COMPRESSED_BLOCK;
    if (block.kind == RLE_BLOCK) fill_run(in.byte(block.input), block.size, output);
    else if (raw || block.literals_kind == RAW_LITERALS) copy_run<true>(in.data + (raw ? block.input : block.literals_input), block.output_len, output);
    else if (block.literals_kind == RLE_LITERALS) fill_run(in.byte(block.literals_input), block.output_len, output);
    else if (compressed && literals != output) copy_run<false>(literals, block.output_len, output);
}

// zstd_copy: blocks without sequences, but not of compact chunks: literals may wait where those go to.
//   grid: any number of blocks of ZSTD_COPY_THREADS threads; `batch` of them share a slot
//   reads: slots, states, blocks, encoded bytes, the arena; writes: decoded bytes
KERNEL(zstd_copy, Decode, ZSTD_COPY_THREADS, 4) {
    u32 slot_index = block_index() / p.batch, part = block_index() % p.batch;
    if (slot_index >= p.slot_count) return;
    const Slot& slot = p.slots[slot_index];
    const SlotState& state = p.states[slot_index];
    if (state.error != NO_ERROR || state.serial != 0 || slot.compact()) return;
    for (u32 index = state.executed + part; index < state.resolved; index += p.batch) {
        const Block& block = p.blocks[slot.first_block + index];
        if (is_run(block)) copy_block(slot.input(), block, literals_of(p, slot, state, block), slot.decoded + block.output);
    }
}

// Where a sequence starts, in the output and in the literals.
struct Start {
    u32 output, literals, offset;
};
// A sequence of a tile: where it ends, and its match starts. What to add to the position of a byte to get to its literal.
struct alignas(16) Place {
    u32 end, match, literals, offset;
};

// What is shared by the threads that execute a block: for each byte of the tile, its value or the byte of the tile that it repeats; and the places.
constexpr u16 KNOWN = 0x8000;
struct Tile {
    u16* bytes;
    Place* places;
};
DEVICE Tile tile_in(u8* shared) { return Tile{(u16*)shared, (Place*)(shared + block_threads() * ZSTD_BYTES_PER_THREAD * 2)}; }

// The sequences of a tile: those that make its bytes, from the first byte, and one that stands for its end. Literals of a block that follow the last
// sequence count as another. What lies before the tile of a sequence is left out. A tile has `STEPS` steps.
template <class Format, u32 STEPS>
struct Places {
    const Block& block;
    const Staged& staged;
    u32 start, end, first, last;
    // For each step, and behind the last: the sequence that makes its first byte, and literals before it.
    u32 sequence[STEPS + 1], literals[STEPS + 1];

    DEVICE_MEMBER Places(const Block& block, const Staged& staged, u32 start, u32 end) : block(block), staged(staged), start(start), end(end) {
        UNROLL
        for (u32 step = 0; step <= STEPS; step++) {
            u32 at = start + step * Format::STEP;
            bool noted = at < block.output_len && block.sequences != 0;
            u64 note = noted ? staged.notes[at / Format::STEP] : 0;
            sequence[step] = noted ? (u32)note : block.sequences;
            literals[step] = noted ? (u32)(note >> 32) : minimum(at, block.literals_len);
        }
        if (end == block.output_len) literals[STEPS] = block.literals_len;
        first = sequence[0];
        last = sequence[STEPS];
    }
    DEVICE_MEMBER Start get(u32 index) const {
        if (index == first) return Start{start, literals[0], index < block.sequences ? offset(index) : 0};
        if (index > last) return Start{end, literals[STEPS], 0};
        if (index == block.sequences) return Start{block.sequences_output, block.sequences_literals, 0};
        u32 step_start = start, step_literals = literals[0];
        UNROLL
        for (u32 step = 1; step < STEPS; step++) {
            step_start = index > sequence[step] ? start + step * Format::STEP : step_start;
            step_literals = index > sequence[step] ? literals[step] : step_literals;
        }
        u32 place = staged.places[index], mask = Format::STEP - 1;
        return Start{step_start + 1 + ((place - 1) & mask), step_literals + (((place >> Format::PLACE_BITS) - step_literals) & mask), offset(index)};
    }
    DEVICE_MEMBER u32 offset(u32 index) const { return Format::offset(staged, index); }
};
// As staged for blocks of any size: places are found by a search, and nothing is left out.
template <u32 STEPS>
struct Places<Wide, STEPS> {
    const Block& block;
    const Staged& staged;
    u32 first, last, end;

    DEVICE_MEMBER Places(const Block& block, const Staged& staged, u32 start, u32 end) : block(block), staged(staged), end(end) {
        first = find(start);
        last = find(end - 1);
    }
    DEVICE_MEMBER u32 find(u32 byte) const {
        u32 from = 0, to = block.sequences + 1;
        while (to - from > 1) {
            u32 middle = (from + to) / 2;
            if (get(middle).output <= byte) from = middle; else to = middle;
        }
        return from;
    }
    DEVICE_MEMBER Start get(u32 index) const {
        if (index > block.sequences) return Start{block.output_len, block.literals_len, 0};
        if (index == block.sequences) return Start{block.sequences == 0 ? 0 : block.sequences_output, block.sequences == 0 ? 0 : block.sequences_literals, 0};
        const u32* at = (const u32*)staged.notes + 4 * index;
        return Start{at[0], at[1], at[2]};
    }
};

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

// Whose turn it is to look at what is before a tile. `Alone`: one block of threads makes all of a slot, in order.
struct Alone {
    static constexpr bool SHARED = false;
    DEVICE_MEMBER void wait() {}
};
// Several blocks of threads make the tiles of a slot, each of which takes the next one. It waits when all that can be done without the tiles before is done; they were taken
// earlier, by blocks of threads that are running.
struct Turn {
    static constexpr bool SHARED = true;
    SlotState* state;
    u32 tile;

    DEVICE_MEMBER void wait() {
        if (thread_index() == 0) {
            while (load_acquire(&state->tiles_done) != tile) {}
        }
        block_barrier();
    }
    // The tile is written, or will never be.
    DEVICE_MEMBER void done() {
        block_barrier();
        if (thread_index() == 0) store_release(&state->tiles_done, tile + 1);
    }
};

// Makes a tile of the output of a compressed block, from byte `start` on. Every byte finds the sequence that makes it, and through it its source: a literal, a byte of an earlier tile, or a byte of
// this one, which is followed until its value is known, or, where others make the earlier tiles, until it is known from which of these it comes. `output`: of this
// block. False where an offset is wrong. Scope: a block of threads.
template <class Format, u32 STEPS, class Order>
DEVICE bool execute_tile(const Input& in, const Block& block, const u8* literals, const Staged& staged, u8* output, Tile tile, u32 start, Order order) {
    const u8* literals_from = block.literals_kind >= COMPRESSED_LITERALS ? literals : in.data + block.literals_input;
    const u32 literals_mask = block.literals_kind == RLE_LITERALS ? 0 : ~0u;
    const u32 reach = block.output - block.frame_start, sequences = block.sequences;
    const u32 repeats[3] = {block.entry_repeats[0], block.entry_repeats[1], block.entry_repeats[2]};
    u32 end = minimum(start + STEPS * Format::STEP, block.output_len);
    Places<Format, STEPS> places(block, staged, start, end);
    u32 first = places.first, count = places.last - first + 1;
    bool bad = false;
    for (u32 i = thread_index(); i < count; i += block_threads()) {
        Start at = places.get(first + i), next = places.get(first + i + 1);
        u32 match = at.output + (next.literals - at.literals), offset = at.offset;
        if (first + i < sequences) {
            offset = resolve_offset(offset, Format::OFFSET_BITS, repeats);
            // A match that starts behind the tile is looked at there.
            bad |= match < end && (offset == 0 || offset > reach + match);
        }
        tile.places[i] = Place{next.output, match, at.literals - at.output, offset};
    }
    if (block_any(bad)) {
        order.wait();
        return false;
    }
    u32 mine = start + thread_index() * ZSTD_BYTES_PER_THREAD;
    u32 bytes = mine < end ? minimum(end - mine, ZSTD_BYTES_PER_THREAD) : 0;
    u16 known[ZSTD_BYTES_PER_THREAD];
    // Of bytes that come from earlier tiles: bit by bit, which; and from where.
    u32 earlier = 0, loaded[ZSTD_BYTES_PER_THREAD];
    UNROLL
    for (u32 i = 0; i < ZSTD_BYTES_PER_THREAD; i++) {
        known[i] = KNOWN;
        loaded[i] = 0;
    }
    if (bytes != 0) {
        u32 at = 0, to = count - 1;
        while (at < to) {
            u32 middle = (at + to) / 2;
            if (tile.places[middle].end <= mine) at = middle + 1; else to = middle;
        }
        Place place = tile.places[at];
        // How far back a match is repeated from. One that reaches into itself repeats what it started with.
        u32 back = place.offset;
        if (mine > place.match && mine - place.match >= back) back += (mine - place.match) / back * back;
        UNROLL
        for (u32 i = 0; i < ZSTD_BYTES_PER_THREAD; i++) {
            // Behind the end, the last byte again.
            u32 byte = minimum(mine + i, end - 1);
            // A sequence makes 3 bytes at least.
            if (byte >= place.end) {
                at++;
                place = tile.places[at];
                back = place.offset;
            }
            bool literal = byte < place.match;
            i32 from = literal ? (i32)((byte + place.literals) & literals_mask) : (i32)(byte - back);
            const u8* base = literal ? literals_from : output;
            bool inside = !literal && from >= (i32)start, waits = Order::SHARED && !literal && !inside;
            // What waits points to itself.
            known[i] = inside ? (u16)(from - (i32)start) : waits ? (u16)(byte - start) : KNOWN;
            loaded[i] = inside ? 0 : waits ? (u32)from : base[from];
            if (waits && mine + i < end) earlier |= 1u << i;
        }
        UNROLL
        for (u32 i = 0; i < ZSTD_BYTES_PER_THREAD; i++) {
            if (known[i] & KNOWN) known[i] |= (u16)loaded[i];
        }
        store_entries(tile.bytes + (mine - start), known);
    }
    block_barrier();
    // The places are not needed any more.
    u32* sources = (u32*)tile.places;
    if (Order::SHARED) {
        UNROLL
        for (u32 i = 0; i < ZSTD_BYTES_PER_THREAD; i++) {
            if (earlier >> i & 1) sources[mine - start + i] = loaded[i];
        }
    }
    // Followed two steps at a time, all bytes of a thread at once; what is not known then is left where others find it, so that chains get
    // three times shorter each time.
    for (;;) {
        bool more = false;
        u32 all = KNOWN;
        UNROLL
        for (u32 i = 0; i < ZSTD_BYTES_PER_THREAD; i++) all &= known[i];
        if (all == 0) {
            for (u32 step = 0; step < 2; step++) {
                more = false;
                UNROLL
                for (u32 i = 0; i < ZSTD_BYTES_PER_THREAD; i++) {
                    if (known[i] & KNOWN) continue;
                    u16 next = tile.bytes[known[i]];
                    more |= Order::SHARED && next != known[i];
                    known[i] = next;
                }
            }
            all = KNOWN;
            UNROLL
            for (u32 i = 0; i < ZSTD_BYTES_PER_THREAD; i++) all &= known[i];
            more = all == 0 && (more || !Order::SHARED);
        }
        if (!block_any(more)) break;
        if (more) store_entries(tile.bytes + (mine - start), known);
        block_barrier();
    }
    if (Order::SHARED) {
        order.wait();
        UNROLL
        for (u32 i = 0; i < ZSTD_BYTES_PER_THREAD; i++) {
            if (earlier >> i & 1) loaded[i] = output[(i32)sources[mine - start + i]];
        }
        UNROLL
        for (u32 i = 0; i < ZSTD_BYTES_PER_THREAD; i++) {
            if (!(earlier >> i & 1)) continue;
            known[i] = (u16)(KNOWN | loaded[i]);
            tile.bytes[mine - start + i] = known[i];
        }
        block_barrier();
        UNROLL
        for (u32 i = 0; i < ZSTD_BYTES_PER_THREAD; i++) {
            if (!(known[i] & KNOWN)) known[i] = tile.bytes[known[i]];
        }
    }
    if (bytes != 0) {
        Bytes16 value = {{0, 0, 0, 0}};
        UNROLL
        for (u32 i = 0; i < ZSTD_BYTES_PER_THREAD; i++) value.word[i / 4] |= (u32)(known[i] & 0xff) << 8 * (i % 4);
        store_any(output + mine, value, bytes);
    }
    return true;
}

// Makes the output of a compressed block, tile by tile. Scope: a block of threads.
template <class Format, u32 STEPS>
DEVICE bool execute_block(const Input& in, const Block& block, const u8* literals, const Staged& staged, u8* output, Tile tile) {
    for (u32 start = 0; start < block.output_len; start += STEPS * Format::STEP) {
        if (!execute_tile<Format, STEPS>(in, block, literals, staged, output, tile, start, Alone{})) return false;
        block_barrier();
    }
    return true;
}

// zstd_execute, zstd_execute_wide: the compressed blocks of a wave, of compact chunks. The one where slots fill the device, the other with more registers where they do not.
//   grid: a block of ZSTD_EXECUTE_THREADS or ZSTD_EXECUTE_WIDE_THREADS threads for each slot
//   shared: 2 bytes for each byte of a tile, and room for its places: bytes of a tile / 3 + 4, of 16 bytes each
//   reads: slots, states, blocks, encoded bytes, the arena, decoded bytes; writes: decoded bytes, states
// Where slots fill the device, some may be tight.
template <u32 STEPS, bool MAY_BE_TIGHT>
DEVICE void execute_slot(const Decode& p) {
    const Slot& slot = p.slots[block_index()];
    SlotState* state = p.states + block_index();
    if (state->error != NO_ERROR || state->serial != 0 || !slot.compact()) return;
    Input in = slot.input();
    Tile tile = tile_in(shared_memory());
    for (u32 index = state->executed; index < state->resolved; index++) {
        const Block& block = p.blocks[slot.first_block + index];
        u8* output = slot.decoded + block.output;
        const u8* literals = literals_of(p, slot, *state, block);
        if (is_run(block)) {
            copy_block(in, block, literals, output);
            block_barrier();
            continue;
        }
        const Staged staged = staged_at(p.arena + (u64)block.sequences_at * 16, notes_of(slot, block), block.sequences);
        bool good = MAY_BE_TIGHT && slot.tight() ? execute_block<Tight, STEPS * (Compact::STEP / Tight::STEP)>(in, block, literals, staged, output, tile)
                                                 : execute_block<Compact, STEPS>(in, block, literals, staged, output, tile);
        if (!good) {
            if (thread_index() == 0) fail(state, index, ZSTD_OFFSET);
            return;
        }
    }
}
static_assert(ZSTD_EXECUTE_THREADS * ZSTD_BYTES_PER_THREAD == ZSTD_TILE_STEP, "one step");
static_assert(ZSTD_EXECUTE_WIDE_THREADS * ZSTD_BYTES_PER_THREAD == 3 * ZSTD_TILE_STEP, "three steps");
KERNEL(zstd_execute, Decode, ZSTD_EXECUTE_THREADS, 4) { execute_slot<1, true>(p); }
KERNEL(zstd_execute_wide, Decode, ZSTD_EXECUTE_WIDE_THREADS, 1) { execute_slot<3, false>(p); }

// zstd_execute_shared: the compressed blocks of a wave, of chunks that are not compact: there are few of these, of much work each.
//   grid: any number of blocks of ZSTD_EXECUTE_WIDE_THREADS threads; `batch` of them share a slot
//   shared, reads, writes: as zstd_execute_wide
KERNEL(zstd_execute_shared, Decode, ZSTD_EXECUTE_WIDE_THREADS, 1) {
    constexpr u32 STEPS = 3, TILE = STEPS * ZSTD_TILE_STEP;
    u32 slot_index = block_index() / p.batch;
    if (slot_index >= p.slot_count) return;
    const Slot& slot = p.slots[slot_index];
    SlotState* state = p.states + slot_index;
    if (slot.compact() || state->serial != 0) return;
    Input in = slot.input();
    Tile tile = tile_in(shared_memory());
    u32* taken = (u32*)shared_memory();
    u32 index = state->executed, to = state->resolved, before = 0;
    for (;;) {
        // Once taken, others wait for it.
        if (thread_index() == 0) *taken = load_acquire(&state->error) == NO_ERROR ? atomic_add(&state->tiles_taken, 1) : ~0u;
        block_barrier();
        u32 mine = *taken;
        block_barrier();
        if (mine == ~0u) return;
        for (; index < to; index++) {
            const Block& block = p.blocks[slot.first_block + index];
            u32 tiles = is_run(block) ? 0 : (block.output_len + TILE - 1) / TILE;
            if (mine - before < tiles) break;
            before += tiles;
        }
        if (index == to) return;
        const Block& block = p.blocks[slot.first_block + index];
        const Staged staged = staged_at(p.arena + (u64)block.sequences_at * 16, notes_of(slot, block), block.sequences);
        Turn turn{state, mine};
        bool good = execute_tile<Full, STEPS>(in, block, literals_of(p, slot, *state, block), staged, slot.decoded + block.output, tile, (mine - before) * TILE, turn);
        if (!good && thread_index() == 0) fail(state, index, ZSTD_OFFSET);
        turn.done();
    }
}

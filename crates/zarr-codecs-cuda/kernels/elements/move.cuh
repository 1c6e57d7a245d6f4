// Between elements as codecs leave them and a box of an array: byte planes, byte order, array to array codecs and strides in one pass.
#pragma once

#include "program.cuh"

// One chunk. On one side its units lie in order, without gaps; on the other in a box. A unit is a number, or a part of an element of which
// only the place matters.
struct ElementsSlot {
    u8* packed;
    u8* box;
    u32 count;
    u32 axes;
    // The number of its status.
    u32 status;
    u32 unused;
    // Units along each axis, slowest first, and bytes from one to the next in the box.
    u32 shape[ELEMENTS_AXES];
    i64 strides[ELEMENTS_AXES];
};
static_assert(sizeof(ElementsSlot) == ELEMENTS_SLOT_SIZE, "as the host has it");

struct Elements {
    const ElementsSlot* slots;
    const ElementsOp* ops;
    const ElementsPair* pairs;
    u32* statuses;
    // A second status of each slot, 0 when good; null where there is none.
    const u32* others;
    // What the host's processor gives where no operand is NaN and the result is.
    u64 default_nan;
    u16 slot_parts, op_count;
    // Bytes of a unit on either side: 1, 2, 4 or 8.
    u8 packed_unit, box_unit;
    // Whether the bytes of a packed unit are reversed.
    u8 swapped;
    u8 unused;
    // Bytes of an element whose bytes lie apart in planes; 1 where they do not. The packed bytes are a multiple of it.
    u32 planes;
    u32 slot_count;
};
static_assert(sizeof(Elements) == ELEMENTS_PARAMS_SIZE, "as the host has it");

DEVICE u64 load_unit(const u8* at, u32 unit) {
    if (((size_t)at & (unit - 1)) == 0) {
        if (unit == 4) return *(const u32*)at;
        if (unit == 8) return *(const u64*)at;
        if (unit == 2) return *(const u16*)at;
        return *at;
    }
    u64 bits = 0;
    for (u32 i = 0; i < unit; i++) bits |= (u64)at[i] << 8 * i;
    return bits;
}
DEVICE void store_unit(u8* at, u32 unit, u64 bits) {
    if (((size_t)at & (unit - 1)) == 0) {
        if (unit == 4) *(u32*)at = (u32)bits;
        else if (unit == 8) *(u64*)at = bits;
        else if (unit == 2) *(u16*)at = (u16)bits;
        else *at = (u8)bits;
        return;
    }
    for (u32 i = 0; i < unit; i++) at[i] = (u8)(bits >> 8 * i);
}
DEVICE u64 reverse_bytes(u64 bits, u32 unit) {
    u64 reversed = 0;
    for (u32 i = 0; i < unit; i++) reversed = reversed << 8 | (bits >> 8 * i & 0xff);
    return reversed;
}

// Where byte `at` of the packed bytes lies: planes of `planes`-byte elements, one behind the other.
DEVICE u32 place_in_planes(u32 at, u32 planes, u32 bytes) { return at % planes * (bytes / planes) + at / planes; }

DEVICE u64 load_packed(const Elements& p, const ElementsSlot& slot, u32 index) {
    u32 unit = p.packed_unit;
    u64 bits = 0;
    if (p.planes == 1) {
        bits = load_unit(slot.packed + (u64)index * unit, unit);
    } else if (p.planes == unit) {
        for (u32 i = 0; i < unit; i++) bits |= (u64)load_constant(slot.packed + (u64)slot.count * i + index) << 8 * i;
    } else {
        for (u32 i = 0; i < unit; i++) {
            u32 place = place_in_planes(index * unit + i, p.planes, slot.count * unit);
            bits |= (u64)load_constant(slot.packed + place) << 8 * i;
        }
    }
    return p.swapped ? reverse_bytes(bits, unit) : bits;
}
DEVICE void store_packed(const Elements& p, const ElementsSlot& slot, u32 index, u64 bits) {
    u32 unit = p.packed_unit;
    if (p.swapped) bits = reverse_bytes(bits, unit);
    if (p.planes == 1) {
        store_unit(slot.packed + (u64)index * unit, unit, bits);
    } else if (p.planes == unit) {
        for (u32 i = 0; i < unit; i++) slot.packed[(u64)slot.count * i + index] = (u8)(bits >> 8 * i);
    } else {
        for (u32 i = 0; i < unit; i++) slot.packed[place_in_planes(index * unit + i, p.planes, slot.count * unit)] = (u8)(bits >> 8 * i);
    }
}

DEVICE u8* place_in_box(const ElementsSlot& slot, u32 index) {
    i64 offset = 0;
    for (u32 axis = slot.axes; axis-- > 1;) {
        u32 len = slot.shape[axis];
        offset += (i64)(index % len) * slot.strides[axis];
        index /= len;
    }
    return slot.box + offset + (slot.axes == 0 ? 0 : (i64)index * slot.strides[0]);
}

// Calls `each` with every unit of the slots; a thread of the grid has every so manieth of one slot.
template <class Each> DEVICE void for_each_unit(const Elements& p, Each each) {
    u32 slot_index = block_index() / p.slot_parts, part = block_index() % p.slot_parts;
    if (slot_index >= p.slot_count) return;
    const ElementsSlot& slot = p.slots[slot_index];
    for (u64 index = (u64)part * block_threads() + thread_index(); index < slot.count; index += (u64)p.slot_parts * block_threads())
        each(slot, (u32)index);
}

DEVICE u64 run_on_slot(const Elements& p, const ElementsSlot& slot, u64 bits) {
    Running done = run_program(p.ops, p.op_count, p.pairs, p.default_nan, bits);
    if (done.wrong != 0) atomic_min(p.statuses + slot.status, done.wrong);
    return done.bits;
}

// elements_decode: decoded bytes of a batch of chunks, each to its box.
//   grid: `slot_parts` blocks of ELEMENTS_THREADS threads for each slot
//   reads: slots, and `count` packed units of each, at any alignment; writes: the boxes' units, which do not overlap, at any alignment
KERNEL(elements_decode, Elements, ELEMENTS_THREADS, 4) {
    for_each_unit(p, [&](const ElementsSlot& slot, u32 index) {
        store_unit(place_in_box(slot, index), p.box_unit, load_packed(p, slot, index));
    });
}

// elements_decode_values: as elements_decode, with operations on each unit, which is a number.
//   reads: also ops and pairs; writes: also the least status of a failed number of each slot
KERNEL(elements_decode_values, Elements, ELEMENTS_THREADS, 2) {
    for_each_unit(p, [&](const ElementsSlot& slot, u32 index) {
        store_unit(place_in_box(slot, index), p.box_unit, run_on_slot(p, slot, load_packed(p, slot, index)));
    });
}

// elements_encode: the way back: the boxes of a batch of chunks, each to packed bytes.
//   grid: as elements_decode
//   reads: slots, and the units of the boxes; writes: `count` packed units of each slot, at any alignment
KERNEL(elements_encode, Elements, ELEMENTS_THREADS, 4) {
    for_each_unit(p, [&](const ElementsSlot& slot, u32 index) {
        store_packed(p, slot, index, load_unit(place_in_box(slot, index), p.box_unit));
    });
}

// elements_encode_values: as elements_encode, with operations on each unit, which is a number.
//   reads: also ops and pairs; writes: also the least status of a failed number of each slot
KERNEL(elements_encode_values, Elements, ELEMENTS_THREADS, 2) {
    for_each_unit(p, [&](const ElementsSlot& slot, u32 index) {
        store_packed(p, slot, index, run_on_slot(p, slot, load_unit(place_in_box(slot, index), p.box_unit)));
    });
}

// elements_clear: zeros to the boxes of slots with which something is wrong.
//   grid: as elements_decode
//   reads: slots, statuses, others; writes: the units of those boxes
KERNEL(elements_clear, Elements, ELEMENTS_THREADS, 4) {
    for_each_unit(p, [&](const ElementsSlot& slot, u32 index) {
        bool good = p.statuses[slot.status] == ELEMENTS_GOOD && (p.others == nullptr || p.others[slot.status] == 0);
        if (!good) store_unit(place_in_box(slot, index), p.box_unit, 0);
    });
}

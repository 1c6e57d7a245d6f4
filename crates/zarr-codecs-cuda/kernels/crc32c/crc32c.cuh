// CRC-32C (RFC 3720, appendix B.4): the remainder of the data by x^32 + x^28 + .., bits in reflected order, with ones before and a complement behind.
//
// The remainder is linear: parts of the data have remainders of their own, which are moved by the bytes behind them, that is multiplied
// by a power of x, and added. A warp takes a part word by word: lane i has every 32nd word, and moves what it has by 128 bytes for each.
//
//   words   0 1 2 .. 31 | 32 33 .. 63 | ..            lane 0 has 0, 32, ..
//   sum     (.. (w0 * x^1024 + w32) * x^1024 + ..)    moved to the end of the part, and added over the lanes
#pragma once

#include "../elements/constants.cuh"
#include "constants.cuh"

// The data of one chunk, at any alignment, and where their checksum is, in 4 bytes in little-endian order.
struct Crc32cSlot {
    const u8* data;
    u8* checksum;
    u32 len;
    // The number of its status.
    u32 status;
    u32 unused[2];
};
static_assert(sizeof(Crc32cSlot) == CRC32C_SLOT_SIZE, "as the host has it");

struct Crc32c {
    const Crc32cSlot* slots;
    // For each slot the sum of the remainders of its parts, 0 at first.
    u32* sums;
    u32* statuses;
    u32 slot_count;
    // Parts that a slot is cut into.
    u32 parts;
    // What to do with the checksum: whether to write it, or to compare it, and what a failure is put down to.
    u32 write;
    u32 step;
    u64 unused;
};
static_assert(sizeof(Crc32c) == CRC32C_PARAMS_SIZE, "as the host has it");

constexpr u32 CRC32C_POLYNOMIAL = 0x82f63b78;
// x^0: the highest bit is the lowest power.
constexpr u32 CRC32C_ONE = 0x80000000;
// x^8, x^16, x^32, ..: a square each.
CONSTANT u32 CRC32C_POWERS[32] = {
    0x00800000, 0x00008000, 0x82f63b78, 0x6ea2d55c, 0x18b8ea18, 0x510ac59a, 0xb82be955, 0xb8fdb1e7, 0x88e56f72, 0x74c360a4, 0xe4172b16,
    0x0d65762a, 0x35d73a62, 0x28461564, 0xbf455269, 0xe2ea32dc, 0xfe7740e6, 0xf946610b, 0x3c204f8f, 0x538586e3, 0x59726915, 0x734d5309,
    0xbc1ac763, 0x7d0722cc, 0xd289cabe, 0xe94ca9bc, 0x05b74f3f, 0xa51e1f42, 0x40000000, 0x20000000, 0x08000000, 0x00800000,
};

// The product of two polynomials. Scope: one thread.
DEVICE u32 crc32c_multiply(u32 a, u32 b) {
    u32 product = 0;
    for (u32 i = 0; i < 32; i++) {
        product ^= a & (0 - (b >> 31));
        b <<= 1;
        a = a >> 1 ^ (CRC32C_POLYNOMIAL & (0 - (a & 1)));
    }
    return product;
}

// x^(8 * bytes): what moves a remainder by so many bytes. Scope: a warp, of which each lane has one bit of `bytes`.
DEVICE u32 crc32c_power(u32 bytes) {
    u32 power = bytes >> lane_index() & 1 ? CRC32C_POWERS[lane_index()] : CRC32C_ONE;
    for (u32 half = WARP / 2; half > 0; half /= 2) power = crc32c_multiply(power, warp_shuffle(power, lane_index() ^ half));
    return power;
}

// A remainder moved by one byte.
DEVICE u32 crc32c_byte(u32 sum, u32 byte) {
    sum ^= byte;
    for (u32 i = 0; i < 8; i++) sum = sum >> 1 ^ (CRC32C_POLYNOMIAL & (0 - (sum & 1)));
    return sum;
}

// Products with x^1024, for each byte of the other factor.
struct Crc32cTables {
    u32 entries[4][256];
};

// The remainder of a part. Scope: a warp.
DEVICE u32 crc32c_part(const Crc32cTables& tables, const u8* data, u32 len) {
    u32 head = minimum((u32)((0 - (size_t)data) & 3), len), words = (len - head) / 4, rounds = (words + WARP - 1) / WARP;
    u32 sum = 0;
    for (u32 i = 0; i < head; i++) sum = crc32c_byte(sum, load_constant(data + i));
    // Zeros before the first word change nothing: the last round is whole.
    const u32* first = (const u32*)(data + head);
    i64 index = (i64)words - (i64)(rounds * WARP) + lane_index();
    u32 own = 0;
    for (u32 round = 0; round < rounds; round++, index += WARP) {
        u32 word = index >= 0 ? load_constant(first + index) : 0;
        own = tables.entries[0][own & 0xff] ^ tables.entries[1][own >> 8 & 0xff] ^ tables.entries[2][own >> 16 & 0xff] ^ tables.entries[3][own >> 24];
        own ^= word;
    }
    // Lanes to pairs, pairs to fours, ..: the left half is moved by the words of the right one.
    for (u32 width = 1, bit = 2; width < WARP; width *= 2, bit++) {
        u32 right = warp_shuffle(own, lane_index() ^ width);
        if ((lane_index() & width) == 0) own = crc32c_multiply(own, CRC32C_POWERS[bit]) ^ right;
        own = warp_shuffle(own, lane_index() & ~width);
    }
    own = crc32c_multiply(own, CRC32C_POWERS[2]);
    sum = crc32c_multiply(sum, crc32c_power(words * 4)) ^ own;
    for (u32 i = head + words * 4; i < len; i++) sum = crc32c_byte(sum, load_constant(data + i));
    return sum;
}

// crc32c_sum: the remainders of a batch of chunks.
//   grid: any number of blocks of CRC32C_THREADS threads; a warp takes every so manieth part of the slots
//   reads: slots, and `len` bytes of each; writes: sums
//   shared: Crc32cTables
KERNEL(crc32c_sum, Crc32c, CRC32C_THREADS, 4) {
    Crc32cTables& tables = *(Crc32cTables*)shared_memory();
    for (u32 i = thread_index(); i < 4 * 256; i += block_threads()) tables.entries[i / 256][i % 256] = crc32c_multiply((i % 256) << i / 256 * 8, CRC32C_POWERS[7]);
    block_barrier();
    u32 warps = block_threads() / WARP;
    u64 parts = (u64)p.slot_count * p.parts;
    for (u64 part = (u64)block_index() * warps + thread_index() / WARP; part < parts; part += (u64)grid_blocks() * warps) {
        const Crc32cSlot& slot = p.slots[part / p.parts];
        u64 share = maximum((slot.len + p.parts - 1) / p.parts, CRC32C_PART);
        u64 start = part % p.parts * share;
        if (start >= slot.len && start > 0) continue;
        u32 len = (u32)minimum(share, slot.len - start);
        u32 sum = crc32c_part(tables, slot.data + start, len);
        u32 behind = (u32)(slot.len - start) - len;
        if (behind > 0) sum = crc32c_multiply(sum, crc32c_power(behind));
        if (lane_index() == 0) atomic_xor(p.sums + part / p.parts, sum);
    }
}

// crc32c_finish: the checksums of a batch of chunks, written or compared.
//   grid: a warp for each slot, in blocks of CRC32C_THREADS threads
//   reads: slots, sums, checksums to compare; writes: checksums, or the statuses of slots with others
KERNEL(crc32c_finish, Crc32c, CRC32C_THREADS, 4) {
    u32 index = block_index() * (block_threads() / WARP) + thread_index() / WARP;
    if (index >= p.slot_count) return;
    const Crc32cSlot& slot = p.slots[index];
    u32 checksum = ~(p.sums[index] ^ crc32c_multiply(0xffffffff, crc32c_power(slot.len)));
    if (lane_index() != 0) return;
    u32 stored = 0;
    for (u32 i = 0; i < 4; i++) {
        if (p.write) slot.checksum[i] = (u8)(checksum >> 8 * i);
        stored |= (u32)slot.checksum[i] << 8 * i;
    }
    if (stored != checksum) atomic_min(p.statuses + slot.status, p.step << 8 | ELEMENTS_CHECKSUM);
}

// CRC-32C (RFC 3720, appendix B.4): the remainder of the data by x^32 + x^28 + .., bits in reflected order, with ones before and a complement behind.
#pragma once

#include "../crc.cuh"
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

// x^8, x^16, x^32, ..: a square each.
CONSTANT u32 CRC32C_POWERS[32] = {
    0x00800000, 0x00008000, 0x82f63b78, 0x6ea2d55c, 0x18b8ea18, 0x510ac59a, 0xb82be955, 0xb8fdb1e7, 0x88e56f72, 0x74c360a4, 0xe4172b16,
    0x0d65762a, 0x35d73a62, 0x28461564, 0xbf455269, 0xe2ea32dc, 0xfe7740e6, 0xf946610b, 0x3c204f8f, 0x538586e3, 0x59726915, 0x734d5309,
    0xbc1ac763, 0x7d0722cc, 0xd289cabe, 0xe94ca9bc, 0x05b74f3f, 0xa51e1f42, 0x40000000, 0x20000000, 0x08000000, 0x00800000,
};
struct Crc32cField {
    static constexpr u32 POLYNOMIAL = 0x82f63b78;
    DEVICE_MEMBER static u32 power(u32 i) { return CRC32C_POWERS[i]; }
};

// crc32c_sum: the remainders of a batch of chunks.
//   grid: any number of blocks of CRC32C_THREADS threads; a warp takes every so manieth part of the slots
//   reads: slots, and `len` bytes of each; writes: sums
//   shared: CrcTables
KERNEL(crc32c_sum, Crc32c, CRC32C_THREADS, 4) {
    CrcTables& tables = *(CrcTables*)shared_memory();
    crc_tables<Crc32cField>(tables);
    block_barrier();
    u32 warps = block_threads() / WARP;
    u64 parts = (u64)p.slot_count * p.parts;
    for (u64 part = (u64)block_index() * warps + thread_index() / WARP; part < parts; part += (u64)grid_blocks() * warps) {
        const Crc32cSlot& slot = p.slots[part / p.parts];
        u64 share = maximum((slot.len + p.parts - 1) / p.parts, CRC32C_PART);
        u64 start = part % p.parts * share;
        if (start >= slot.len && start > 0) continue;
        u32 len = (u32)minimum(share, slot.len - start);
        u32 sum = crc_part<Crc32cField, true>(tables, slot.data + start, len);
        u32 behind = (u32)(slot.len - start) - len;
        if (behind > 0) sum = crc_multiply<Crc32cField>(sum, crc_power<Crc32cField>(behind));
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
    u32 checksum = crc_value<Crc32cField>(p.sums[index], slot.len);
    if (lane_index() != 0) return;
    u32 stored = 0;
    for (u32 i = 0; i < 4; i++) {
        if (p.write) slot.checksum[i] = (u8)(checksum >> 8 * i);
        stored |= (u32)slot.checksum[i] << 8 * i;
    }
    if (stored != checksum) atomic_min(p.statuses + slot.status, p.step << 8 | ELEMENTS_CHECKSUM);
}

// The checksums of what was decoded: CRC-32 in gzip (RFC 1952 8), Adler-32 in zlib (RFC 1950 8.2).
#pragma once

#include "../bytes.cuh"
#include "../crc.cuh"

// x^8, x^16, x^32, ..: a square each.
CONSTANT u32 CRC32_POWERS[32] = {
    0x00800000, 0x00008000, 0xedb88320, 0xb1e6b092, 0xa06a2517, 0xed627dae, 0x88d14467, 0xd7bbfe6a, 0xec447f11, 0x8e7ea170, 0x6427800e,
    0x4d47bae0, 0x09fe548f, 0x83852d0f, 0x30362f1a, 0x7b5a9cc3, 0x31fec169, 0x9fec022a, 0x6c8dedc4, 0x15d6874d, 0x5fde7a4e, 0xbad90e37,
    0x2e4e5eef, 0x4eaba214, 0xa8a472c0, 0x429a969e, 0x148d302a, 0xc40ba6d0, 0xc4e22c3c, 0x40000000, 0x20000000, 0x08000000,
};
struct Crc32Field {
    static constexpr u32 POLYNOMIAL = 0xedb88320;
    DEVICE_MEMBER static u32 power(u32 i) { return CRC32_POWERS[i]; }
};

// `sum`, in shared memory: for the threads of the block to add to. Scope: a block of threads.
DEVICE u32 crc32(CrcTables& tables, u32* sum, const u8* data, u32 len) {
    u32 warps = block_threads() / WARP, warp = thread_index() / WARP;
    if (thread_index() == 0) *sum = 0;
    crc_tables<Crc32Field>(tables);
    block_barrier();
    u32 share = (len / warps + 128) / 128 * 128, start = minimum(warp * share, len), part = minimum(share, len - start), behind = len - start - part;
    u32 own = crc_part<Crc32Field, false>(tables, data + start, part);
    own = crc_multiply<Crc32Field>(own, crc_power<Crc32Field>(behind));
    if (lane_index() == 0) atomic_xor(sum, own);
    block_barrier();
    return crc_value<Crc32Field>(*sum, len);
}

constexpr u32 ADLER_MODULUS = 65521;

// `sums`, in shared memory: two numbers. Scope: a block of threads.
DEVICE u32 adler32(u32* sums, const u8* data, u32 len) {
    if (thread_index() < 2) sums[thread_index()] = 0;
    block_barrier();
    // The sum of the bytes, and of each times how many bytes there are from it to the end: at most 2^8 * 2^31 each, of at most 2^23 bytes of a thread.
    u64 bytes = 0, weighted = 0;
    for (u32 at = thread_index() * 16; at < len; at += block_threads() * 16) {
        u32 count = minimum(len - at, 16u);
        Bytes16 value = {{0, 0, 0, 0}};
        if (count == 16) value = load_any<false>(data, len, at);
        else for (u32 i = 0; i < count; i++) value.word[i / 4] |= (u32)data[at + i] << 8 * (i % 4);
        UNROLL
        for (u32 i = 0; i < 16; i++) {
            u32 byte = value.word[i / 4] >> 8 * (i % 4) & 0xff;
            bytes += byte;
            weighted += (u64)byte * (len - at - i);
        }
    }
    u32 first = warp_sum((u32)(bytes % ADLER_MODULUS)), second = warp_sum((u32)(weighted % ADLER_MODULUS));
    if (lane_index() == 0) {
        atomic_add(&sums[0], first);
        atomic_add(&sums[1], second);
    }
    block_barrier();
    return (1 + sums[0]) % ADLER_MODULUS | (sums[1] + len % ADLER_MODULUS) % ADLER_MODULUS << 16;
}

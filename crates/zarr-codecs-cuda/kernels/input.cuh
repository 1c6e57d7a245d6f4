// Encoded bytes of one chunk: at any alignment, never read past either end.
#pragma once

#include "simt.cuh"

struct Input {
    const u8* data;
    u32 len;

    // A byte; 0 past the end, so that a header can be looked at before its length is checked.
    DEVICE_MEMBER u32 byte(u32 at) const { return at < len ? load_constant(data + at) : 0; }
    DEVICE_MEMBER u32 le16(u32 at) const { return byte(at) | byte(at + 1) << 8; }
    DEVICE_MEMBER u32 le24(u32 at) const { return le16(at) | byte(at + 2) << 16; }
    DEVICE_MEMBER u32 le32(u32 at) const { return le16(at) | le16(at + 2) << 16; }
    DEVICE_MEMBER u64 le64(u32 at) const { return le32(at) | (u64)le32(at + 4) << 32; }
};

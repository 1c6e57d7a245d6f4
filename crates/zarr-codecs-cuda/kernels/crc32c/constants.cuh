// Numbers that kernels and host share. The build script of the crate reads the lines `constexpr u32 NAME = value;`.
#pragma once

#include "../simt.cuh"

// Threads of a block.
constexpr u32 CRC32C_THREADS = 256;
// Bytes that a warp takes of a slot at a time, unless it is short.
constexpr u32 CRC32C_PART = 16384;
// Bytes of the structures of crc32c.cuh.
constexpr u32 CRC32C_SLOT_SIZE = 32;
constexpr u32 CRC32C_PARAMS_SIZE = 48;

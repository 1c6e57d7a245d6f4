// Numbers that kernels and host share. The build script of the crate reads the lines `constexpr u32 NAME = value;`.
#pragma once

#include "../simt.cuh"

// Threads of a block, of the kernel for many chunks and of that for few.
constexpr u32 LZ4_THREADS = 256;
constexpr u32 LZ4_WIDE_THREADS = 1024;
// Bytes of shared memory.
constexpr u32 LZ4_SHARED = 45056;
constexpr u32 LZ4_WIDE_SHARED = 165888;

// What became of a slot that is not good. Each has its words in codecs/lz4.rs.
constexpr u32 LZ4_TRUNCATED = 1;
constexpr u32 LZ4_SIZE = 2;
constexpr u32 LZ4_DAMAGED = 3;

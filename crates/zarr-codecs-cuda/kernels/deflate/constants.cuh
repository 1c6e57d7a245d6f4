// Numbers that kernels and host share. The build script of the crate reads the lines `constexpr u32 NAME = value;`.
#pragma once

#include "../simt.cuh"

// Threads of a block, of the kernel for many chunks and of that for few.
constexpr u32 DEFLATE_THREADS = 256;
constexpr u32 DEFLATE_WIDE_THREADS = 512;
// Bytes of shared memory.
constexpr u32 DEFLATE_SHARED = 73728;
constexpr u32 DEFLATE_WIDE_SHARED = 106496;

// What surrounds the compressed bytes.
constexpr u32 DEFLATE_GZIP = 0;
constexpr u32 DEFLATE_ZLIB = 1;

// What became of a slot that is not good. Each has its words in codecs/deflate.rs.
constexpr u32 DEFLATE_TRUNCATED = 1;
constexpr u32 DEFLATE_HEADER = 2;
constexpr u32 DEFLATE_BETWEEN = 3;
constexpr u32 DEFLATE_RESERVED_BLOCK = 4;
constexpr u32 DEFLATE_STORED_LEN = 5;
constexpr u32 DEFLATE_CODE_LENGTHS = 6;
constexpr u32 DEFLATE_CODE = 7;
constexpr u32 DEFLATE_DISTANCE = 8;
constexpr u32 DEFLATE_OUTPUT_TOO_LARGE = 9;
constexpr u32 DEFLATE_OUTPUT_TOO_SMALL = 10;
constexpr u32 DEFLATE_CHECKSUM = 11;
constexpr u32 DEFLATE_LEN = 12;
constexpr u32 DEFLATE_TOO_MANY_BLOCKS = 13;

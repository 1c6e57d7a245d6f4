// Numbers that kernels and host share. The build script of the crate reads the lines `constexpr u32 NAME = value;`.
#pragma once

#include "../simt.cuh"

// Threads of a block, kernel by kernel.
constexpr u32 ZSTD_MATCHES_THREADS = 32;
constexpr u32 ZSTD_COMPRESS_THREADS = 128;
constexpr u32 ZSTD_LAYOUT_THREADS = 1024;
constexpr u32 ZSTD_PACK_THREADS = 256;

// Bytes of shared memory.
constexpr u32 ZSTD_MATCHES_SHARED = 16384;
constexpr u32 ZSTD_COMPRESS_SHARED = 20480;

// Bytes of the content that become one block, and how far back a match may lie: a window slides over the blocks of a chunk.
constexpr u32 ZSTD_ENCODE_BLOCK = 65536;
// Bytes that a sequence stands for at least, on average over a block: what is left once there are as many becomes literals.
constexpr u32 ZSTD_ENCODE_DENSITY = 6;
// Room for a block besides its content.
constexpr u32 ZSTD_ENCODE_SLACK = 64;
// The most that stands around the content of a chunk: the frame's header and its checksum; and before each block.
constexpr u32 ZSTD_FRAME_AROUND = 18;
constexpr u32 ZSTD_BLOCK_HEADER = 3;

// Bytes of the structures of format.cuh.
constexpr u32 ZSTD_SOURCE_SIZE = 32;
constexpr u32 ZSTD_PIECE_SIZE = 40;
constexpr u32 ZSTD_SEQUENCE_SIZE = 8;
constexpr u32 ZSTD_ENCODE_SIZE = 80;

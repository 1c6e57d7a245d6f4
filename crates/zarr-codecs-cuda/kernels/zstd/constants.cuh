// Numbers that kernels and host share. The build script of the crate reads the lines `constexpr u32 NAME = value;`.
#pragma once

#include "../simt.cuh"

// Threads of a block, kernel by kernel.
constexpr u32 ZSTD_PLAN_THREADS = 64;
constexpr u32 ZSTD_ASSIGN_THREADS = 1024;
constexpr u32 ZSTD_ENTROPY_THREADS = 32;
constexpr u32 ZSTD_RESOLVE_THREADS = 32;
constexpr u32 ZSTD_COPY_THREADS = 256;
constexpr u32 ZSTD_EXECUTE_THREADS = 256;
constexpr u32 ZSTD_EXECUTE_WIDE_THREADS = 768;
constexpr u32 ZSTD_SERIAL_THREADS = 256;
constexpr u32 ZSTD_CHECKSUM_THREADS = 32;
constexpr u32 ZSTD_FINISH_THREADS = 256;

// Bytes of output that one thread makes in a tile, and the steps at which notes say where sequences are: of tight chunks, and of others.
constexpr u32 ZSTD_BYTES_PER_THREAD = 16;
constexpr u32 ZSTD_TIGHT_STEP = 1024;
constexpr u32 ZSTD_TILE_STEP = 4096;

// The most that a block decodes to in the parallel pipeline (RFC 8878 3.1.1.2.4).
constexpr u32 ZSTD_BLOCK_MAX = 131072;
// The most sequences that such a block can have: each makes at least 3 bytes.
constexpr u32 ZSTD_BLOCK_SEQUENCES = 43690;
// The most sequences that a header can ask for.
constexpr u32 ZSTD_HEADER_SEQUENCES = 98047;
// The most that a frame decodes to: an offset has 29 bits where sequences are staged.
constexpr u32 ZSTD_CONTENT_MAX = 536870912;
// How the sequences of a chunk are staged (`sequences.cuh`).
constexpr u32 ZSTD_STAGED_FULL = 0;
constexpr u32 ZSTD_STAGED_COMPACT = 1;
constexpr u32 ZSTD_STAGED_TIGHT = 2;
// The most that a compact chunk decodes to: its offsets have 23 bits, and its literals wait at the end of its own output. A tight one is compact, and its offsets have 19.
constexpr u32 ZSTD_COMPACT_MAX = 8388608;
constexpr u32 ZSTD_TIGHT_MAX = 524288;

// Blocks decoded by one warp at a time, at most.
constexpr u32 ZSTD_LITERALS_BATCH = 8;
constexpr u32 ZSTD_SEQUENCES_BATCH = 8;

// Bytes of the structures of format.cuh.
constexpr u32 ZSTD_SLOT_SIZE = 40;
constexpr u32 ZSTD_STATE_SIZE = 76;
constexpr u32 ZSTD_BLOCK_SIZE = 128;
constexpr u32 ZSTD_PLAN_SIZE = 104;
constexpr u32 ZSTD_WAVE_SIZE = 520;

// Bytes of shared memory.
constexpr u32 ZSTD_PLAN_SHARED = 1024;
constexpr u32 ZSTD_LITERALS_SHARED = 45568;
constexpr u32 ZSTD_SEQUENCES_SHARED_FIXED = 640;
constexpr u32 ZSTD_SEQUENCES_SHARED_EACH = 5472;
constexpr u32 ZSTD_SERIAL_SHARED = 49152;

// Waves: parts of a batch that share the arena one after the other.
constexpr u32 ZSTD_MAX_WAVES = 8;

// Classes of blocks by the work that they are.
constexpr u32 ZSTD_CLASSES = 32;

// What became of a slot. Each has its words in codecs/zstd.rs.
constexpr u32 ZSTD_GOOD = 0;
constexpr u32 ZSTD_TRUNCATED = 1;
constexpr u32 ZSTD_MAGIC = 2;
constexpr u32 ZSTD_RESERVED_BIT = 3;
constexpr u32 ZSTD_WINDOW = 4;
constexpr u32 ZSTD_DICTIONARY = 5;
constexpr u32 ZSTD_RESERVED_BLOCK = 6;
constexpr u32 ZSTD_BLOCK_TOO_LARGE = 7;
constexpr u32 ZSTD_LITERALS_HEADER = 8;
constexpr u32 ZSTD_NO_TREE = 9;
constexpr u32 ZSTD_HUFFMAN_TREE = 10;
constexpr u32 ZSTD_HUFFMAN_STREAM = 11;
constexpr u32 ZSTD_SEQUENCES_HEADER = 12;
constexpr u32 ZSTD_FSE_TABLE = 13;
constexpr u32 ZSTD_NO_TABLE = 14;
constexpr u32 ZSTD_SEQUENCES_STREAM = 15;
constexpr u32 ZSTD_TOO_FEW_LITERALS = 16;
constexpr u32 ZSTD_OFFSET = 17;
constexpr u32 ZSTD_OUTPUT_TOO_LARGE = 18;
constexpr u32 ZSTD_OUTPUT_TOO_SMALL = 19;
constexpr u32 ZSTD_CONTENT_SIZE = 20;
constexpr u32 ZSTD_CHECKSUM = 21;
constexpr u32 ZSTD_STATUS_COUNT = 22;

// Numbers that kernels and host share. The build script of the crate reads the lines `constexpr u32 NAME = value;`.
#pragma once

#include "../simt.cuh"

// Threads of a block, kernel by kernel.
constexpr u32 BLOSC_PLAN_THREADS = 32;
constexpr u32 BLOSC_LZ4_THREADS = 128;
constexpr u32 BLOSC_UNSHUFFLE_THREADS = 256;
// Bytes of shared memory: a header.
constexpr u32 BLOSC_SHARED = 64;

// Bytes of the structures of blosc/header.cuh.
constexpr u32 BLOSC_SLOT_SIZE = 32;
constexpr u32 BLOSC_PARAMS_SIZE = 32;

// What became of a slot, beside what becomes of zstd frames. Each has its words in codecs/blosc.rs.
constexpr u32 BLOSC_GOOD = 0;
constexpr u32 BLOSC_HEADER = 32;
constexpr u32 BLOSC_SIZE = 33;
constexpr u32 BLOSC_COMPRESSOR = 34;
constexpr u32 BLOSC_SPLIT = 35;
constexpr u32 BLOSC_OUTSIDE = 36;
constexpr u32 BLOSC_OVERLAP = 37;
constexpr u32 BLOSC_DAMAGED = 38;

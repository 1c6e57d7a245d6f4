// Numbers that kernels and host share. The build script of the crate reads the lines `constexpr u32 NAME = value;`.
#pragma once

#include "../simt.cuh"

// Threads of a block.
constexpr u32 SCATTER_THREADS = 256;
// The most axes of a box, the run of bytes not counted.
constexpr u32 SCATTER_AXES = 8;
// Bytes of the structures of scatter.cuh.
constexpr u32 SCATTER_SLOT_SIZE = 128;
constexpr u32 SCATTER_PARAMS_SIZE = 16;

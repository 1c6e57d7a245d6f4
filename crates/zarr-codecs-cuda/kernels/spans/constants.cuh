// Numbers that kernels and host share. The build script of the crate reads the lines `constexpr u32 NAME = value;`.
#pragma once

#include "../simt.cuh"

// Bytes of the structures of spans/chunks.cuh.
constexpr u32 SPANS_SLOT_SIZE = 24;
constexpr u32 SPANS_PARAMS_SIZE = 40;
// Bytes of memory for what one block of threads stages.
constexpr u32 SPANS_ARENA = 100352;

// The status of a slot that is good; others are the codec's.
constexpr u32 SPANS_GOOD = 0;

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

// Threads of a block.
constexpr u32 ELEMENTS_THREADS = 256;
// The most axes of a box.
constexpr u32 ELEMENTS_AXES = 8;
// Bytes of the structures of program.cuh and move.cuh.
constexpr u32 ELEMENTS_SLOT_SIZE = 128;
constexpr u32 ELEMENTS_OP_SIZE = 64;
constexpr u32 ELEMENTS_PAIR_SIZE = 24;
constexpr u32 ELEMENTS_PARAMS_SIZE = 64;

// The status of a slot with which nothing is wrong. Else: the step that failed, shifted by 8, and why.
constexpr u32 ELEMENTS_GOOD = 0xffffffff;
// A value that the other data type does not have.
constexpr u32 ELEMENTS_BEYOND = 1;
// A value that is no multiple of the scale.
constexpr u32 ELEMENTS_NO_MULTIPLE = 2;
// The checksum is another one.
constexpr u32 ELEMENTS_CHECKSUM = 3;
// The bytes are not as many as they must be.
constexpr u32 ELEMENTS_SIZE = 4;

// The types of numbers.
constexpr u32 NUMBER_BOOL = 0;
constexpr u32 NUMBER_I8 = 1;
constexpr u32 NUMBER_I16 = 2;
constexpr u32 NUMBER_I32 = 3;
constexpr u32 NUMBER_I64 = 4;
constexpr u32 NUMBER_U8 = 5;
constexpr u32 NUMBER_U16 = 6;
constexpr u32 NUMBER_U32 = 7;
constexpr u32 NUMBER_U64 = 8;
constexpr u32 NUMBER_F16 = 9;
constexpr u32 NUMBER_BF16 = 10;
constexpr u32 NUMBER_F32 = 11;
constexpr u32 NUMBER_F64 = 12;

// How a value between two others is rounded.
constexpr u32 ROUND_NEAREST_EVEN = 0;
constexpr u32 ROUND_TOWARDS_ZERO = 1;
constexpr u32 ROUND_TOWARDS_POSITIVE = 2;
constexpr u32 ROUND_TOWARDS_NEGATIVE = 3;
constexpr u32 ROUND_NEAREST_AWAY = 4;

// What becomes of a value beyond the type.
constexpr u32 BEYOND_FAILS = 0;
constexpr u32 BEYOND_CLAMPS = 1;
constexpr u32 BEYOND_WRAPS = 2;

// What is done to a number.
// `scale_offset` of integers: magnitudes of offset and scale in `a` and `b`.
constexpr u32 OP_SCALE_INTEGER = 0;
// `scale_offset` of floating point numbers: offset and scale in `a` and `b`.
constexpr u32 OP_SCALE_FLOAT = 1;
// `fixedscaleoffset`: offset and scale in `a` and `b`, as doubles unless a flag says integer.
constexpr u32 OP_FIXED = 2;
// `cast_value`.
constexpr u32 OP_CAST_VALUE = 3;
// `astype`.
constexpr u32 OP_CAST = 4;
// `bitround`: bits to keep in `a`.
constexpr u32 OP_BITROUND = 5;
// `quantize`, encoding: the scale in `a`.
constexpr u32 OP_QUANTIZE = 6;

// Flags of an operation: the direction, and how `a` and `b` are meant.
constexpr u32 OP_ENCODE = 1;
constexpr u32 OP_A_NEGATIVE = 2;
constexpr u32 OP_B_NEGATIVE = 4;
constexpr u32 OP_A_INTEGER = 8;
constexpr u32 OP_B_INTEGER = 16;

// What an element of a scalar map is compared with.
constexpr u32 KEY_INTEGER = 0;
constexpr u32 KEY_FLOAT = 1;
constexpr u32 KEY_NAN = 2;

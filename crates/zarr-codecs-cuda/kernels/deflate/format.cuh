// Numbers of RFC 1951, in its terms.
#pragma once

#include "constants.cuh"

constexpr u32 LITERAL_SYMBOLS = 288;
constexpr u32 DISTANCE_SYMBOLS = 32;
constexpr u32 LENGTH_SYMBOLS = 19;
constexpr u32 END_OF_BLOCK = 256;
constexpr u32 MAX_CODE_LEN = 15;
constexpr u32 MAX_MATCH = 258;

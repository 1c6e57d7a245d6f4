// All kernels of this crate.
#include "blosc/lz4.cuh"
#include "blosc/unshuffle.cuh"
#include "crc32c/crc32c.cuh"
#include "deflate/decode.cuh"
#include "elements/move.cuh"
#include "elements/scatter.cuh"
#include "lz4/decode.cuh"
#include "zstd/serial.cuh"

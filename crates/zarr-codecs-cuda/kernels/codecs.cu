// All kernels of this crate.
#include "crc32c/crc32c.cuh"
#include "elements/move.cuh"
#include "elements/scatter.cuh"
#include "zstd/serial.cuh"

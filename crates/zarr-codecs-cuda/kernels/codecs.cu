// All kernels of this crate.
#include "elements/scatter.cuh"
#include "zstd/serial.cuh"

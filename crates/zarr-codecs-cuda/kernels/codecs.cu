// All kernels of this crate.
#include "zstd/serial.cuh"

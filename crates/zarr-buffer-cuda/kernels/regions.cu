// Copies and fills of N-dimensional boxes within device memory.
//
// The host (src/regions.rs) turns a box into axes of units: a unit is 1, 2, 4, 8 or 16 bytes, aligned to its size on every side, and the last
// axis is the one whose units lie closest together in the destination. Elements of any size come as one more axis of smaller units.
//
//   unit i of the box  ->  index on each axis (last fastest)  ->  destination + sum(index * axis.destination)
//                                                                 source      + sum(index * axis.source)
//
// Parameters: one struct by value. `destination` and `source` are device addresses of the first unit; strides are in bytes and may be zero
// or negative. All units are inside memory that the launch may use, source and destination do not overlap: the host has checked both.
// `count` and the number of tiles are below 2^31, which the division by multiplication needs.
//
// Shared memory: none but for regions_turn_* (a tile). No entry point reads what another thread writes.

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

constexpr u32 MAX_AXES = 9;
constexpr u32 THREADS = 256;
constexpr u32 UNITS_PER_THREAD = 4;
constexpr u32 TILE = 32;
constexpr u32 MAX_PATTERN = 256;

// Divides numbers below 2^31 by `len` (Granlund and Montgomery, "Division by Invariant Integers using Multiplication", 1994).
struct Divisor {
    u32 len;
    u32 multiplier;
    u32 shift;

    __device__ u32 quotient(u32 n) const { return (__umulhi(n, multiplier) + n) >> shift; }
};

struct Axis {
    i64 destination;
    i64 source;
    Divisor len;
    u32 unused;
};

struct Box {
    Axis axes[MAX_AXES];
    u64 destination;
    u64 source;
    u32 rank;
    u32 count;
};

struct Fill {
    Box box;
    Divisor period; // units of the pattern
    u32 unused[3];
    alignas(16) u8 pattern[MAX_PATTERN];
};

struct Turn {
    Box box;        // the last axis is contiguous in the destination, the one before in the source
    Divisor across; // tiles along the last axis
    Divisor down;   // tiles along the one before
    u32 unused[2];
};

static_assert(sizeof(Axis) == 32 && sizeof(Box) == 312 && sizeof(Fill) == 592 && sizeof(Turn) == 344, "as in src/regions.rs");

struct Offsets {
    i64 destination;
    i64 source;
};

// Thread: where unit `n` of the first `rank` axes lies.
__device__ inline Offsets locate(const Box &box, u32 rank, u32 n) {
    Offsets at = {0, 0};
    for (u32 a = rank; a-- > 0;) {
        const Axis &axis = box.axes[a];
        const u32 rest = axis.len.quotient(n);
        const i64 index = n - rest * axis.len.len;
        at.destination += index * axis.destination;
        at.source += index * axis.source;
        n = rest;
    }
    return at;
}

// Block: THREADS * UNITS_PER_THREAD units of the box. Loads come before stores, so that all are under way at once.
template <typename Unit> __device__ inline void copy_units(const Box &box) {
    const u32 first = blockIdx.x * (THREADS * UNITS_PER_THREAD) + threadIdx.x;
    Unit units[UNITS_PER_THREAD];
    i64 to[UNITS_PER_THREAD];
#pragma unroll
    for (u32 k = 0; k < UNITS_PER_THREAD; ++k) {
        const u32 n = first + k * THREADS;
        if (n < box.count) {
            const Offsets at = locate(box, box.rank, n);
            units[k] = *reinterpret_cast<const Unit *>(box.source + at.source);
            to[k] = at.destination;
        }
    }
#pragma unroll
    for (u32 k = 0; k < UNITS_PER_THREAD; ++k) {
        if (first + k * THREADS < box.count) {
            *reinterpret_cast<Unit *>(box.destination + to[k]) = units[k];
        }
    }
}

// Block: THREADS * UNITS_PER_THREAD units of the box. Unit `column` of the last axis gets unit `column mod period` of the pattern.
template <typename Unit> __device__ inline void fill_units(const Fill &fill) {
    const Box &box = fill.box;
    const u32 first = blockIdx.x * (THREADS * UNITS_PER_THREAD) + threadIdx.x;
    const Axis &last = box.axes[box.rank - 1];
#pragma unroll
    for (u32 k = 0; k < UNITS_PER_THREAD; ++k) {
        const u32 n = first + k * THREADS;
        if (n < box.count) {
            const Offsets at = locate(box, box.rank, n);
            const u32 column = n - last.len.quotient(n) * last.len.len;
            const u32 phase = column - fill.period.quotient(column) * fill.period.len;
            *reinterpret_cast<Unit *>(box.destination + at.destination) = reinterpret_cast<const Unit *>(fill.pattern)[phase];
        }
    }
}

// Block: one tile of TILE x TILE units, read along the axis that is contiguous in the source and written along the one that is so in the
// destination. The tile's rows are one unit longer than they need to be, so that a column's units lie in different banks.
template <typename Unit> __device__ inline void turn_tile(const Turn &turn, Unit (*tile)[TILE + 1]) {
    const Box &box = turn.box;
    const Axis &wide = box.axes[box.rank - 1];
    const Axis &high = box.axes[box.rank - 2];
    u32 n = blockIdx.x;
    u32 rest = turn.across.quotient(n);
    const u32 left = (n - rest * turn.across.len) * TILE;
    n = rest;
    rest = turn.down.quotient(n);
    const u32 top = (n - rest * turn.down.len) * TILE;
    const Offsets at = locate(box, box.rank - 2, rest);
    const u32 x = threadIdx.x % TILE;
    const u32 y = threadIdx.x / TILE;
    if (top + x < high.len.len) {
        for (u32 k = y; k < TILE && left + k < wide.len.len; k += THREADS / TILE) {
            const i64 from = at.source + i64(left + k) * wide.source + i64(top + x) * high.source;
            tile[k][x] = *reinterpret_cast<const Unit *>(box.source + from);
        }
    }
    __syncthreads();
    if (left + x < wide.len.len) {
        for (u32 k = y; k < TILE && top + k < high.len.len; k += THREADS / TILE) {
            const i64 to = at.destination + i64(left + x) * wide.destination + i64(top + k) * high.destination;
            *reinterpret_cast<Unit *>(box.destination + to) = tile[x][k];
        }
    }
}

// Launch: ceil(count / 1024) blocks of 256 threads.
#define REGIONS_COPY(BYTES, UNIT)                                                                                                            \
    extern "C" __global__ void __launch_bounds__(THREADS) regions_copy_##BYTES(const __grid_constant__ Box box) {                            \
        copy_units<UNIT>(box);                                                                                                               \
    }
// Launch: ceil(count / 1024) blocks of 256 threads. `box.source` and the axes' sources are not looked at; the rank is at least 1.
#define REGIONS_FILL(BYTES, UNIT)                                                                                                            \
    extern "C" __global__ void __launch_bounds__(THREADS) regions_fill_##BYTES(const __grid_constant__ Fill fill) {                          \
        fill_units<UNIT>(fill);                                                                                                              \
    }
// Launch: a block of 256 threads for each tile: across * down * (units of the axes before the last two). The rank is at least 2.
#define REGIONS_TURN(BYTES, UNIT)                                                                                                            \
    extern "C" __global__ void __launch_bounds__(THREADS) regions_turn_##BYTES(const __grid_constant__ Turn turn) {                          \
        __shared__ UNIT tile[TILE][TILE + 1];                                                                                                \
        turn_tile<UNIT>(turn, tile);                                                                                                         \
    }

REGIONS_COPY(1, u8)
REGIONS_COPY(2, u16)
REGIONS_COPY(4, u32)
REGIONS_COPY(8, u64)
REGIONS_COPY(16, uint4)
REGIONS_FILL(1, u8)
REGIONS_FILL(2, u16)
REGIONS_FILL(4, u32)
REGIONS_FILL(8, u64)
REGIONS_FILL(16, uint4)
REGIONS_TURN(1, u8)
REGIONS_TURN(2, u16)
REGIONS_TURN(4, u32)
REGIONS_TURN(8, u64)
REGIONS_TURN(16, uint4)

// The layer between the kernels and what runs them: CUDA, or a fiber per thread on the host.
//
// A kernel is written for one thread of a block. What threads do together goes through the functions here, and through nothing else:
// barriers of a block, collectives of a warp, atomics. Collectives of a warp are called by all 32 of its threads; the host build
// ends with an error where one is missing. A block has a multiple of 32 threads and one axis; so has the grid.
//
// On the host, every switch between threads is at a barrier or a collective, in an order drawn from a seed.
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int16_t i16;
typedef int32_t i32;
typedef int64_t i64;

#define WARP 32u

#if defined(__CUDACC__)

#define DEVICE static __device__ __forceinline__
// For functions that are large, or off the hot path.
#define DEVICE_CALL static __device__ __noinline__
#define DEVICE_MEMBER __device__ __forceinline__
#define CONSTANT static __constant__ const
#define UNROLL _Pragma("unroll")
#define ROLLED _Pragma("unroll 1")
#define KERNEL(name, params, threads, blocks) extern "C" __global__ void __launch_bounds__(threads, blocks) name(const params p)

DEVICE u32 thread_index() { return threadIdx.x; }
DEVICE u32 block_threads() { return blockDim.x; }
DEVICE u32 block_index() { return blockIdx.x; }
DEVICE u32 grid_blocks() { return gridDim.x; }

// The dynamic shared memory of the block, aligned to 16 bytes.
extern __shared__ uint4 simt_shared[];
DEVICE u8* shared_memory() { return (u8*)simt_shared; }

DEVICE void block_barrier() { __syncthreads(); }
// Whether any thread of the block says so; a barrier.
DEVICE bool block_any(bool value) { return __syncthreads_or(value); }
DEVICE void warp_barrier() { __syncwarp(); }
DEVICE u32 warp_ballot(bool value) { return __ballot_sync(~0u, value); }
DEVICE u32 warp_shuffle(u32 value, u32 lane) { return __shfl_sync(~0u, value, lane); }
DEVICE u64 warp_shuffle(u64 value, u32 lane) { return __shfl_sync(~0u, value, lane); }
// The threads of the warp with the same value.
DEVICE u32 warp_match(u32 value) { return __match_any_sync(~0u, value); }
DEVICE u32 warp_sum(u32 value) { return __reduce_add_sync(~0u, value); }
DEVICE u32 warp_shuffle_up(u32 value, u32 delta) { return __shfl_up_sync(~0u, value, delta); }

// Copies 16 bytes, aligned, from memory to shared memory while the thread goes on. They are there once it has waited for all it asked for.
DEVICE void copy_later(u8* to_shared, const u8* from) {
    asm volatile("cp.async.ca.shared.global.L2::128B [%0], [%1], 16;" ::"r"((u32)__cvta_generic_to_shared(to_shared)), "l"(from) : "memory");
}
DEVICE void copies_wait() { asm volatile("cp.async.wait_all;" ::: "memory"); }

DEVICE u32 atomic_add(u32* at, u32 value) { return atomicAdd(at, value); }
DEVICE void atomic_min(u32* at, u32 value) { atomicMin(at, value); }
DEVICE void atomic_or(u32* at, u32 value) { atomicOr(at, value); }
DEVICE void atomic_xor(u32* at, u32 value) { atomicXor(at, value); }

// What one block of threads tells another: a load that sees a store sees all that was done before it; through a barrier of the block on either side, by all its threads. The blocks
// that are waited for must be running: who waits for what others take from a counter waits for numbers before its own.
DEVICE u32 load_acquire(const u32* at) {
    u32 value;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
    return value;
}
DEVICE void store_release(u32* at, u32 value) { asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(at), "r"(value) : "memory"); }

// Bytes that no thread writes while the kernel runs.
DEVICE u8 load_constant(const u8* at) { return __ldg(at); }
DEVICE u32 load_constant(const u32* at) { return __ldg(at); }
DEVICE u64 load_constant(const u64* at) { return __ldg((const unsigned long long*)at); }

// Shifts by 0 to 32.
DEVICE u32 shift_left(u32 value, u32 by) { return __funnelshift_lc(0, value, by); }
DEVICE u32 shift_right(u32 value, u32 by) { return __funnelshift_rc(value, 0, by); }
// The 32 bits of `high` and `low` that start `by` bits, 0 to 32, behind the highest.
DEVICE u32 funnel_left(u32 high, u32 low, u32 by) { return __funnelshift_lc(low, high, by); }
// The same by the lower 5 bits of `by`, whatever is above them: one instruction.
DEVICE u32 funnel_left_wrap(u32 high, u32 low, u32 by) { return __funnelshift_l(low, high, by); }
// The 32 bits of `high` and `low` that end as many bits above the lowest as the lower 5 bits of `by` say.
DEVICE u32 funnel_right_wrap(u32 high, u32 low, u32 by) { return __funnelshift_r(low, high, by); }
// `sum` and the bytes of `a`, each times that of `weights`; all of them signed.
DEVICE i32 dot_bytes(u32 a, u32 weights, i32 sum) { return __dp4a((i32)a, (i32)weights, sum); }

DEVICE u32 count_ones(u32 value) { return __popc(value); }
// The number of the highest bit; `value` is not 0.
DEVICE u32 highest_bit(u32 value) { return 31 - __clz(value); }
DEVICE u32 trailing_zeros(u32 value) { return __ffs(value) - 1; }
// The lowest bit becomes the highest.
DEVICE u32 reverse_bits(u32 value) { return __brev(value); }

// The upper half of the product.
DEVICE u64 multiply_high(u64 a, u64 b) { return __umul64hi(a, b); }

DEVICE u64 bits_of(double value) { return (u64)__double_as_longlong(value); }
DEVICE double double_of(u64 bits) { return __longlong_as_double((long long)bits); }
DEVICE u32 bits_of(float value) { return __float_as_uint(value); }
DEVICE float float_of(u32 bits) { return __uint_as_float(bits); }
// Each rounds once: two of them are never fused.
DEVICE double float_add(double a, double b) { return __dadd_rn(a, b); }
DEVICE double float_subtract(double a, double b) { return __dsub_rn(a, b); }
DEVICE double float_multiply(double a, double b) { return __dmul_rn(a, b); }
DEVICE double float_divide(double a, double b) { return __ddiv_rn(a, b); }

struct alignas(16) Bytes16 { u32 word[4]; };
DEVICE void store16(u8* at, const Bytes16& value) { *(uint4*)at = make_uint4(value.word[0], value.word[1], value.word[2], value.word[3]); }

#else // the host

#include <math.h>
#include <string.h>

#define DEVICE static inline
#define DEVICE_CALL static
#define DEVICE_MEMBER inline
#define CONSTANT static const
#define UNROLL
#define ROLLED
#define KERNEL(name, params, threads, blocks)                                                                                              \
    static void name##_thread(const params& p);                                                                                            \
    extern "C" void name(const void* p) {                                                                                                  \
        params copy;                                                                                                                       \
        memcpy(&copy, p, sizeof copy);                                                                                                     \
        name##_thread(copy);                                                                                                               \
    }                                                                                                                                      \
    static void name##_thread(const params& p)

// The thread that runs, kept by the scheduler.
struct SimtThread {
    u32 thread;
    u32 threads;
    u32 block;
    u32 blocks;
    u8* shared;
};
extern "C" {
extern thread_local const SimtThread* simt_thread;
// Waits for all threads of the block; the sum of what they bring.
u32 simt_block_barrier(u32 value);
// Waits for the 32 threads of the warp, and gives what each of them brings.
void simt_warp_exchange(u64 value, u64* all);
}

DEVICE u32 thread_index() { return simt_thread->thread; }
DEVICE u32 block_threads() { return simt_thread->threads; }
DEVICE u32 block_index() { return simt_thread->block; }
DEVICE u32 grid_blocks() { return simt_thread->blocks; }
DEVICE u8* shared_memory() { return simt_thread->shared; }

DEVICE void block_barrier() { simt_block_barrier(0); }
DEVICE bool block_any(bool value) { return simt_block_barrier(value) != 0; }
DEVICE void warp_barrier() {
    u64 all[WARP];
    simt_warp_exchange(0, all);
}
DEVICE u32 warp_ballot(bool value) {
    u64 all[WARP];
    simt_warp_exchange(value, all);
    u32 ballot = 0;
    for (u32 lane = 0; lane < WARP; lane++) ballot |= (u32)(all[lane] != 0) << lane;
    return ballot;
}
DEVICE u64 warp_shuffle(u64 value, u32 lane) {
    u64 all[WARP];
    simt_warp_exchange(value, all);
    return all[lane % WARP];
}
DEVICE u32 warp_shuffle(u32 value, u32 lane) { return (u32)warp_shuffle((u64)value, lane); }
DEVICE u32 warp_match(u32 value) {
    u64 all[WARP];
    simt_warp_exchange(value, all);
    u32 same = 0;
    for (u32 lane = 0; lane < WARP; lane++) same |= (u32)(all[lane] == value) << lane;
    return same;
}
DEVICE u32 warp_sum(u32 value) {
    u64 all[WARP];
    simt_warp_exchange(value, all);
    u32 sum = 0;
    for (u32 lane = 0; lane < WARP; lane++) sum += (u32)all[lane];
    return sum;
}
DEVICE u32 warp_shuffle_up(u32 value, u32 delta) {
    u64 all[WARP];
    simt_warp_exchange(value, all);
    u32 lane = thread_index() % WARP;
    return lane < delta ? value : (u32)all[lane - delta];
}

DEVICE void copy_later(u8* to_shared, const u8* from) { memcpy(to_shared, from, 16); }
DEVICE void copies_wait() {}

DEVICE u32 atomic_add(u32* at, u32 value) { return __atomic_fetch_add(at, value, __ATOMIC_RELAXED); }
DEVICE void atomic_min(u32* at, u32 value) {
    u32 seen = __atomic_load_n(at, __ATOMIC_RELAXED);
    while (value < seen && !__atomic_compare_exchange_n(at, &seen, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {}
}
DEVICE void atomic_or(u32* at, u32 value) { __atomic_fetch_or(at, value, __ATOMIC_RELAXED); }
DEVICE void atomic_xor(u32* at, u32 value) { __atomic_fetch_xor(at, value, __ATOMIC_RELAXED); }

DEVICE u32 load_acquire(const u32* at) { return __atomic_load_n(at, __ATOMIC_ACQUIRE); }
DEVICE void store_release(u32* at, u32 value) { __atomic_store_n(at, value, __ATOMIC_RELEASE); }

DEVICE u8 load_constant(const u8* at) { return *at; }
DEVICE u32 load_constant(const u32* at) { return *at; }
DEVICE u64 load_constant(const u64* at) { return *at; }

DEVICE u32 shift_left(u32 value, u32 by) { return (u32)((u64)value << by); }
DEVICE u32 shift_right(u32 value, u32 by) { return (u32)((u64)value >> by); }
DEVICE u32 funnel_left(u32 high, u32 low, u32 by) { return (u32)(((u64)high << 32 | low) >> (32 - by)); }
DEVICE u32 funnel_left_wrap(u32 high, u32 low, u32 by) { return funnel_left(high, low, by & 31); }
DEVICE u32 funnel_right_wrap(u32 high, u32 low, u32 by) { return (u32)(((u64)high << 32 | low) >> (by & 31)); }
DEVICE i32 dot_bytes(u32 a, u32 weights, i32 sum) {
    for (u32 byte = 0; byte < 4; byte++) sum += (i32)(signed char)(a >> 8 * byte) * (i32)(signed char)(weights >> 8 * byte);
    return sum;
}

DEVICE u32 count_ones(u32 value) { return (u32)__builtin_popcount(value); }
DEVICE u32 highest_bit(u32 value) { return 31 - (u32)__builtin_clz(value); }
DEVICE u32 trailing_zeros(u32 value) { return (u32)__builtin_ctz(value); }
DEVICE u32 reverse_bits(u32 value) {
    u32 reversed = 0;
    for (u32 bit = 0; bit < 32; bit++) reversed |= (value >> bit & 1) << (31 - bit);
    return reversed;
}

DEVICE u64 multiply_high(u64 a, u64 b) {
    u64 low = (a & 0xffffffff) * (b & 0xffffffff), left = (a >> 32) * (b & 0xffffffff), right = (a & 0xffffffff) * (b >> 32);
    u64 middle = (low >> 32) + (left & 0xffffffff) + (right & 0xffffffff);
    return (a >> 32) * (b >> 32) + (left >> 32) + (right >> 32) + (middle >> 32);
}

DEVICE u64 bits_of(double value) {
    u64 bits;
    memcpy(&bits, &value, 8);
    return bits;
}
DEVICE double double_of(u64 bits) {
    double value;
    memcpy(&value, &bits, 8);
    return value;
}
DEVICE u32 bits_of(float value) {
    u32 bits;
    memcpy(&bits, &value, 4);
    return bits;
}
DEVICE float float_of(u32 bits) {
    float value;
    memcpy(&value, &bits, 4);
    return value;
}
// The host's compiler is told not to fuse.
DEVICE double float_add(double a, double b) { return a + b; }
DEVICE double float_subtract(double a, double b) { return a - b; }
DEVICE double float_multiply(double a, double b) { return a * b; }
DEVICE double float_divide(double a, double b) { return a / b; }

struct alignas(16) Bytes16 { u32 word[4]; };
DEVICE void store16(u8* at, const Bytes16& value) { memcpy(at, value.word, 16); }

#endif

// The thread's number in its warp.
DEVICE u32 lane_index() { return thread_index() % WARP; }
// The lanes before this one.
DEVICE u32 lanes_before() { return (1u << lane_index()) - 1; }

template <class T> DEVICE T minimum(T a, T b) { return a < b ? a : b; }
template <class T> DEVICE T maximum(T a, T b) { return a > b ? a : b; }

// The sum over the lanes up to this one, this one included.
DEVICE u32 warp_inclusive_sum(u32 value) {
    for (u32 delta = 1; delta < WARP; delta *= 2) {
        u32 other = warp_shuffle_up(value, delta);
        if (lane_index() >= delta) value += other;
    }
    return value;
}

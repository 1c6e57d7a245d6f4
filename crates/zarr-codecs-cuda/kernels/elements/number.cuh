// Numbers between their bits and values to compute with, as `number` of zarr-codecs-cpu has them: integers as i64, where unsigned ones of
// 64 bits keep their bits, floating point numbers as double. What the hardware of a device makes of NaN differs from the host's: NaN never
// goes through it. Scope: one thread.
#pragma once

#include "constants.cuh"

constexpr u64 DOUBLE_SIGN = 1ull << 63, DOUBLE_INFINITY = 0x7ffull << 52, DOUBLE_QUIET = 1ull << 51, DOUBLE_NAN = DOUBLE_INFINITY | DOUBLE_QUIET;

DEVICE bool is_nan(double value) { return (bits_of(value) & ~DOUBLE_SIGN) > DOUBLE_INFINITY; }
DEVICE bool is_infinite(double value) { return (bits_of(value) & ~DOUBLE_SIGN) == DOUBLE_INFINITY; }

DEVICE bool is_float(u32 number) { return number >= NUMBER_F16; }
DEVICE bool is_signed(u32 number) { return number >= NUMBER_I8 && number <= NUMBER_I64; }
// Bits of an integer.
DEVICE u32 integer_width(u32 number) { return 8u << (number >= NUMBER_U8 ? number - NUMBER_U8 : number - NUMBER_I8); }

// Cuts an integer to its type; of its bits, or of a value that may be too large.
DEVICE i64 wrap_integer(u32 number, u64 value) {
    if (number == NUMBER_BOOL) return value != 0;
    u32 above = 64 - integer_width(number);
    return is_signed(number) ? (i64)(value << above) >> above : (i64)(value << above >> above);
}
DEVICE u64 store_integer(u32 number, i64 value) {
    if (number == NUMBER_BOOL) return value != 0;
    u32 above = 64 - integer_width(number);
    return (u64)value << above >> above;
}

// An integer as sign and magnitude.
struct Magnitude {
    u64 value;
    bool negative;
};
DEVICE Magnitude magnitude_of(u32 number, i64 value) {
    bool negative = number != NUMBER_U64 && value < 0;
    return {negative ? 0 - (u64)value : (u64)value, negative};
}
// The largest magnitude that a type has on one side of zero.
DEVICE u64 magnitude_limit(u32 number, bool negative) {
    if (number == NUMBER_BOOL) return negative ? 0 : 1;
    u32 width = integer_width(number);
    if (!is_signed(number)) return negative ? 0 : ~0ull >> (64 - width);
    return (1ull << (width - 1)) - (negative ? 0 : 1);
}
DEVICE bool fits(u32 number, const Magnitude& value) { return value.value <= magnitude_limit(number, value.negative); }
DEVICE i64 integer_of(const Magnitude& value) { return (i64)(value.negative ? 0 - value.value : value.value); }

// A floating point format of IEEE 754, of less than 64 bits.
struct Format {
    u32 exponent_bits, mantissa_bits;
    i32 bias;
};
DEVICE Format format_of(u32 number) {
    switch (number) {
    case NUMBER_F16: return {5, 10, 15};
    case NUMBER_BF16: return {8, 7, 127};
    case NUMBER_F32: return {8, 23, 127};
    default: return {11, 52, 1023};
    }
}

DEVICE double value_of_single(u32 bits) {
    if ((bits & 0x7fffffff) > 0x7f800000) return double_of((u64)(bits >> 31) << 63 | DOUBLE_NAN | (u64)(bits & 0x7fffff) << 29);
    return (double)float_of(bits);
}
// The nearest single, ties to even.
DEVICE u32 single_of(double value) {
    u64 bits = bits_of(value);
    if (is_nan(value)) return (u32)(bits >> 32 & 0x80000000) | 0x7fc00000 | (u32)(bits >> 29 & 0x7fffff);
    return bits_of((float)value);
}

// The value of a floating point number, exactly.
DEVICE double load_float(u32 number, u64 bits) {
    if (number == NUMBER_F64) return double_of(bits);
    if (number == NUMBER_F32) return value_of_single((u32)bits);
    Format format = format_of(number);
    u32 top = (1u << format.exponent_bits) - 1;
    u32 exponent = (u32)bits >> format.mantissa_bits & top;
    u64 mantissa = bits & ((1ull << format.mantissa_bits) - 1);
    u64 sign = bits >> (format.exponent_bits + format.mantissa_bits) << 63;
    if (exponent == top) return double_of(sign | (mantissa == 0 ? DOUBLE_INFINITY : DOUBLE_NAN));
    if (exponent == 0) {
        u64 last = (u64)(1023 + 1 - format.bias - (i32)format.mantissa_bits) << 52;
        return double_of(sign | bits_of(float_multiply((double)mantissa, double_of(last))));
    }
    return double_of(sign | (u64)((i32)exponent - format.bias + 1023) << 52 | mantissa << (52 - format.mantissa_bits));
}

// A number that was rounded to a format: its bits, and whether it is beyond the largest.
struct Rounded {
    u64 bits;
    bool beyond;
};

// The bits of `significand * 2^exponent` in a format; infinity where it is beyond.
DEVICE Rounded round_scaled(const Format& format, bool negative, u64 significand, i32 exponent, u32 rounding) {
    u64 sign = (u64)negative << (format.exponent_bits + format.mantissa_bits);
    if (significand == 0) return {sign, false};
    u32 high = (u32)(significand >> 32);
    i32 top = (i32)(high != 0 ? 32 + highest_bit(high) : highest_bit((u32)significand)) + exponent;
    i32 mantissa_bits = (i32)format.mantissa_bits;
    // The weight of the last bit that is kept: below the normal numbers it no longer falls.
    i32 last = maximum(top, 1 - format.bias) - mantissa_bits;
    i32 shift = last - exponent;
    u64 kept;
    if (shift <= 0) {
        kept = significand << (u32)-shift;
    } else {
        bool any, half, beyond_half;
        if (shift < 64) {
            u64 rest = significand & ((1ull << shift) - 1), middle = 1ull << (shift - 1);
            kept = significand >> shift, any = rest != 0, half = rest == middle, beyond_half = rest > middle;
        } else {
            kept = 0, any = true, half = shift == 64 && significand == 1ull << 63, beyond_half = shift == 64 && significand > 1ull << 63;
        }
        bool up = false;
        if (rounding == ROUND_NEAREST_EVEN) up = beyond_half || (half && (kept & 1) != 0);
        if (rounding == ROUND_NEAREST_AWAY) up = beyond_half || half;
        if (rounding == ROUND_TOWARDS_POSITIVE) up = any && !negative;
        if (rounding == ROUND_TOWARDS_NEGATIVE) up = any && negative;
        kept += up;
    }
    if (kept == 0) return {sign, false};
    if (kept >> (mantissa_bits + 1) != 0) kept >>= 1, last++;
    u64 field = kept >> mantissa_bits != 0 ? (u64)(last + mantissa_bits + format.bias) : 0;
    u64 infinity = ((1ull << format.exponent_bits) - 1) << mantissa_bits;
    u64 bits = field << mantissa_bits | (kept & ((1ull << mantissa_bits) - 1));
    if (bits >= infinity) return {infinity | sign, true};
    return {bits | sign, false};
}

// The bits of a value in a format, rounded. NaN becomes the usual one.
DEVICE Rounded round_float(u32 number, double value, u32 rounding) {
    Format format = format_of(number);
    u64 bits = bits_of(value), exponent = bits >> 52 & 0x7ff, mantissa = bits & ((1ull << 52) - 1);
    u64 infinity = ((1ull << format.exponent_bits) - 1) << format.mantissa_bits;
    bool negative = bits >> 63 != 0;
    if (is_nan(value)) return {infinity | 1ull << (format.mantissa_bits - 1), false};
    if (is_infinite(value)) return {infinity | (u64)negative << (format.exponent_bits + format.mantissa_bits), false};
    if (exponent == 0) return round_scaled(format, negative, mantissa, -1074, rounding);
    return round_scaled(format, negative, mantissa | 1ull << 52, (i32)exponent - 1075, rounding);
}

// The bits of the nearest value, ties to even; infinity beyond the largest.
DEVICE u64 store_float(u32 number, double value) {
    if (number == NUMBER_F64) return bits_of(value);
    if (number == NUMBER_F32) return single_of(value);
    return round_float(number, value, ROUND_NEAREST_EVEN).bits;
}

// What arithmetic in the format gives.
DEVICE double nearest(u32 number, double value) {
    if (number == NUMBER_F64) return value;
    return load_float(number, store_float(number, value));
}

// The result of an operation on `value` and another number, which is no NaN, as the processor of the host has it.
DEVICE double settle(double value, double result, u64 default_nan) {
    if (is_nan(value)) return double_of(bits_of(value) | DOUBLE_QUIET);
    return is_nan(result) ? double_of(default_nan) : result;
}

DEVICE double round_to_whole(double value, u32 rounding) {
    if (is_nan(value)) return value;
    switch (rounding) {
    case ROUND_NEAREST_EVEN: return rint(value);
    case ROUND_TOWARDS_ZERO: return trunc(value);
    case ROUND_TOWARDS_POSITIVE: return ceil(value);
    case ROUND_TOWARDS_NEGATIVE: return floor(value);
    default: return round(value);
    }
}

// An integer as the nearest value of a floating point format that has it in its range, rounded once.
DEVICE double integer_to_float(u32 from, i64 value, u32 to) {
    if (to == NUMBER_F32) return (double)(from == NUMBER_U64 ? (float)(u64)value : (float)value);
    return from == NUMBER_U64 ? (double)(u64)value : (double)value;
}
DEVICE u64 store_integer_as(u32 from, i64 value, u32 to) {
    return is_float(to) ? store_float(to, integer_to_float(from, value, to)) : store_integer(to, value);
}

// Conversions as numpy 2 makes them on x86-64: the least integer stands for all that do not fit.
DEVICE i64 double_to_i32(double value) {
    return value > -2147483649.0 && value < 2147483648.0 ? (i64)(i32)value : -2147483648ll;
}
DEVICE i64 double_to_i64(double value) {
    return value >= -9223372036854775808.0 && value < 9223372036854775808.0 ? (i64)value : (i64)DOUBLE_SIGN;
}
DEVICE u64 store_value(u32 to, double value) {
    if (is_float(to)) return store_float(to, value);
    switch (to) {
    case NUMBER_BOOL: return value != 0.0;
    case NUMBER_I64: return (u64)double_to_i64(value);
    case NUMBER_U64:
        return value >= 9223372036854775808.0 ? (u64)double_to_i64(float_subtract(value, 9223372036854775808.0)) ^ DOUBLE_SIGN
                                               : (u64)double_to_i64(value);
    case NUMBER_U32:
        return (u32)(value >= 2147483648.0 ? (u32)double_to_i32(float_subtract(value, 2147483648.0)) ^ 0x80000000 : (u32)double_to_i32(value));
    default: return store_integer(to, double_to_i32(value));
    }
}
// Any number as the nearest double.
DEVICE double load_value(u32 from, u64 bits) {
    return is_float(from) ? load_float(from, bits) : integer_to_float(from, wrap_integer(from, bits), NUMBER_F64);
}

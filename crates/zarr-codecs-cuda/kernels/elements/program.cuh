// What array to array codecs do to one number, one after the other. Each takes the bits of a number and gives those of another, as the module of
// its name in zarr-codecs-cpu does. Scope: one thread.
#pragma once

#include "number.cuh"

struct ElementsOp {
    // An OP_, the types of the numbers that it takes and gives, and OP_ flags.
    u32 kind, from, to, flags;
    u64 a, b;
    // A ROUND_ and a BEYOND_.
    u32 rounding, beyond;
    // Pairs of the scalar map.
    u32 first_pair, pairs;
    // Where a failure is put down to.
    u32 step;
    u32 unused[3];
};
static_assert(sizeof(ElementsOp) == ELEMENTS_OP_SIZE, "as the host has it");

// A number of a scalar map, by value, and the bits of what it becomes.
struct ElementsPair {
    u64 key, to;
    // A KEY_.
    u32 kind, unused;
};
static_assert(sizeof(ElementsPair) == ELEMENTS_PAIR_SIZE, "as the host has it");

// A number on its way.
struct Running {
    u64 bits;
    // 0, or the status of the slot.
    u32 wrong;
};

DEVICE u32 failure(const ElementsOp& op, u32 reason) { return op.step << 8 | reason; }

// (x - offset) * scale, or x / scale + offset, exactly.
DEVICE void scale_integer(const ElementsOp& op, Running& running) {
    Magnitude value = magnitude_of(op.from, wrap_integer(op.from, running.bits));
    Magnitude offset = {op.a, (op.flags & OP_A_NEGATIVE) != 0}, scale = {op.b, (op.flags & OP_B_NEGATIVE) != 0};
    bool encode = (op.flags & OP_ENCODE) != 0;
    bool lost = false;
    if (encode) {
        offset.negative = !offset.negative;
    } else {
        if (value.value % scale.value != 0) {
            running.wrong = failure(op, ELEMENTS_NO_MULTIPLE);
            return;
        }
        value = {value.value / scale.value, value.negative != scale.negative};
    }
    if (value.negative == offset.negative) {
        value.value += offset.value;
        // A difference of two numbers of one type never gets here: it fits 64 bits.
        lost = value.value < offset.value;
    } else if (value.value >= offset.value) {
        value.value -= offset.value;
    } else {
        value = {offset.value - value.value, offset.negative};
    }
    if (encode) {
        lost = lost || multiply_high(value.value, scale.value) != 0;
        value = {value.value * scale.value, value.negative != scale.negative};
    }
    if (value.value == 0) value.negative = false;
    if (lost || !fits(op.from, value)) running.wrong = failure(op, ELEMENTS_BEYOND);
    running.bits = store_integer(op.from, integer_of(value));
}

DEVICE double scale_down(u32 format, double value, double offset, double scale, u64 default_nan) {
    value = nearest(format, settle(value, float_divide(value, scale), default_nan));
    return nearest(format, settle(value, float_add(value, offset), default_nan));
}
DEVICE double scale_up(u32 format, double value, double offset, double scale, u64 default_nan) {
    value = nearest(format, settle(value, float_subtract(value, offset), default_nan));
    return nearest(format, settle(value, float_multiply(value, scale), default_nan));
}

DEVICE void scale_float(const ElementsOp& op, Running& running, u64 default_nan) {
    double value = load_float(op.from, running.bits), offset = double_of(op.a), scale = double_of(op.b);
    value = (op.flags & OP_ENCODE) != 0 ? scale_up(op.from, value, offset, scale, default_nan)
                                        : scale_down(op.from, value, offset, scale, default_nan);
    running.bits = store_float(op.from, value);
}

DEVICE double fixed_whole(double value, double scale, u64 default_nan) {
    return round_to_whole(settle(value, float_multiply(value, scale), default_nan), ROUND_NEAREST_EVEN);
}

DEVICE void fixed_scale_offset(const ElementsOp& op, Running& running, u64 default_nan) {
    if ((op.flags & OP_ENCODE) == 0) {
        u32 format = is_float(op.from) ? op.from : NUMBER_F64;
        double offset = nearest(format, double_of(op.a)), scale = nearest(format, double_of(op.b));
        running.bits = store_value(op.to, scale_down(format, load_value(op.from, running.bits), offset, scale, default_nan));
    } else if (is_float(op.from)) {
        double offset = nearest(op.from, double_of(op.a)), scale = nearest(op.from, double_of(op.b));
        double value = scale_up(op.from, load_float(op.from, running.bits), offset, scale, default_nan);
        running.bits = store_value(op.to, round_to_whole(value, ROUND_NEAREST_EVEN));
    } else if ((op.flags & OP_A_INTEGER) == 0) {
        double value = float_subtract(load_value(op.from, running.bits), double_of(op.a));
        running.bits = store_value(op.to, fixed_whole(value, double_of(op.b), default_nan));
    } else {
        u32 number = op.from == NUMBER_BOOL ? NUMBER_I64 : op.from;
        i64 value = wrap_integer(number, (u64)wrap_integer(op.from, running.bits) - op.a);
        if ((op.flags & OP_B_INTEGER) != 0) {
            running.bits = store_integer_as(number, wrap_integer(number, (u64)value * op.b), op.to);
        } else {
            running.bits = store_value(op.to, fixed_whole(integer_to_float(number, value, NUMBER_F64), double_of(op.b), default_nan));
        }
    }
}

DEVICE bool take_mapped(const ElementsOp& op, const ElementsPair* pairs, Running& running) {
    for (u32 i = op.first_pair; i < op.first_pair + op.pairs; i++) {
        const ElementsPair& pair = pairs[i];
        bool same;
        if (pair.kind == KEY_INTEGER) {
            same = (u64)wrap_integer(op.from, running.bits) == pair.key;
        } else {
            double value = load_float(op.from, running.bits);
            same = pair.kind == KEY_NAN ? is_nan(value) : value == double_of(pair.key);
        }
        if (same) {
            running.bits = pair.to;
            return true;
        }
    }
    return false;
}

DEVICE void cast_float_to_integer(const ElementsOp& op, Running& running) {
    double value = round_to_whole(load_float(op.from, running.bits), op.rounding);
    u32 width = integer_width(op.to);
    double modulus = double_of((u64)(1023 + width) << 52), half = double_of((u64)(1022 + width) << 52);
    // The largest value may be no double; the one after it is.
    double least = is_signed(op.to) ? -half : 0.0, end = is_signed(op.to) ? half : modulus;
    i64 whole;
    if (value >= least && value < end) {
        whole = op.to == NUMBER_U64 ? (i64)(u64)value : (i64)value;
    } else if (is_nan(value) || is_infinite(value) || op.beyond == BEYOND_FAILS) {
        running.wrong = failure(op, ELEMENTS_BEYOND);
        return;
    } else if (op.beyond == BEYOND_CLAMPS) {
        bool below = value < least;
        whole = integer_of({magnitude_limit(op.to, below), below});
    } else {
        double rest = fmod(value, modulus);
        whole = rest < 0.0 ? (i64)(0 - (u64)-rest) : (i64)(u64)rest;
    }
    running.bits = store_integer(op.to, whole);
}

// Whether a format has every value of another.
DEVICE bool holds_format(u32 format, u32 other) {
    if (format == NUMBER_F64) return true;
    if (format == NUMBER_F32) return other != NUMBER_F64;
    return format == NUMBER_BF16 && other == NUMBER_BF16;
}

DEVICE void cast_value(const ElementsOp& op, const ElementsPair* pairs, Running& running) {
    if (take_mapped(op, pairs, running)) return;
    Rounded rounded;
    if (is_float(op.from)) {
        if (!is_float(op.to)) return cast_float_to_integer(op, running);
        double value = load_float(op.from, running.bits);
        if (holds_format(op.to, op.from)) {
            rounded = {store_float(op.to, value), false};
        } else if (op.to == NUMBER_F32 && op.rounding == ROUND_NEAREST_EVEN) {
            u32 bits = single_of(value);
            rounded = {bits, (bits & 0x7fffffff) == 0x7f800000 && !is_infinite(value)};
        } else {
            rounded = round_float(op.to, value, op.rounding);
        }
    } else {
        i64 value = wrap_integer(op.from, running.bits);
        Magnitude exact = magnitude_of(op.from, value);
        if (!is_float(op.to)) {
            if (op.beyond != BEYOND_WRAPS && !fits(op.to, exact)) {
                if (op.beyond == BEYOND_FAILS) running.wrong = failure(op, ELEMENTS_BEYOND);
                value = integer_of({magnitude_limit(op.to, exact.negative), exact.negative});
            }
            running.bits = store_integer(op.to, value);
            return;
        }
        rounded = round_scaled(format_of(op.to), exact.negative, exact.value, 0, op.rounding);
    }
    if (rounded.beyond && op.beyond == BEYOND_FAILS) running.wrong = failure(op, ELEMENTS_BEYOND);
    running.bits = rounded.bits;
}

DEVICE void cast_number(const ElementsOp& op, Running& running) {
    running.bits = is_float(op.from) ? store_value(op.to, load_float(op.from, running.bits))
                                     : store_integer_as(op.from, wrap_integer(op.from, running.bits), op.to);
}

DEVICE void bit_round(const ElementsOp& op, Running& running) {
    u64 bits = running.bits;
    u32 keep = (u32)op.a;
    if (is_float(op.from)) {
        Format format = format_of(op.from);
        u64 infinity = ((1ull << format.exponent_bits) - 1) << format.mantissa_bits;
        u64 sign = 1ull << (format.exponent_bits + format.mantissa_bits);
        if (keep >= format.mantissa_bits || (bits & (sign - 1)) > infinity) return;
        u32 drop = format.mantissa_bits - keep;
        bits += (bits >> drop & 1) + (1ull << (drop - 1)) - 1;
        // A carry out of the number is lost, as in its own width.
        running.bits = bits >> drop << drop & (sign | (sign - 1));
        return;
    }
    Magnitude value = magnitude_of(op.from, wrap_integer(op.from, bits));
    if (value.value == 0) return;
    u32 high = (u32)(value.value >> 32);
    u32 width = 1 + (high != 0 ? 32 + highest_bit(high) : highest_bit((u32)value.value));
    if (width <= keep) return;
    u32 drop = width - keep;
    // Rounded to the last of the bits kept, of which there may be none.
    u64 kept = drop < 64 ? value.value >> drop : 0;
    u64 rest = drop < 64 ? value.value & ((1ull << drop) - 1) : value.value, middle = 1ull << (drop - 1);
    u64 up = kept + (rest > middle || (rest == middle && (kept & 1) != 0));
    bool lost = drop < 64 ? up << drop >> drop != up : up != 0;
    Magnitude rounded = {drop < 64 ? up << drop : 0, value.negative};
    if (lost || !fits(op.from, rounded)) rounded.value = drop < 64 ? kept << drop : 0;
    running.bits = store_integer(op.from, integer_of(rounded));
}

DEVICE void quantize(const ElementsOp& op, Running& running, u64 default_nan) {
    double value = load_float(op.from, running.bits), scale = nearest(op.from, double_of(op.a));
    value = nearest(op.from, settle(value, float_multiply(value, scale), default_nan));
    value = round_to_whole(value, ROUND_NEAREST_EVEN);
    value = nearest(op.from, settle(value, float_divide(value, scale), default_nan));
    running.bits = store_float(op.to, value);
}

// Runs all operations on one number; the first that fails ends it.
DEVICE Running run_program(const ElementsOp* ops, u32 count, const ElementsPair* pairs, u64 default_nan, u64 bits) {
    Running running = {bits, 0};
    for (u32 i = 0; i < count && running.wrong == 0; i++) {
        const ElementsOp& op = ops[i];
        switch (op.kind) {
        case OP_SCALE_INTEGER: scale_integer(op, running); break;
        case OP_SCALE_FLOAT: scale_float(op, running, default_nan); break;
        case OP_FIXED: fixed_scale_offset(op, running, default_nan); break;
        case OP_CAST_VALUE: cast_value(op, pairs, running); break;
        case OP_CAST: cast_number(op, running); break;
        case OP_BITROUND: bit_round(op, running); break;
        case OP_QUANTIZE: quantize(op, running, default_nan); break;
        }
    }
    return running;
}

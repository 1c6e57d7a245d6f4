//! Data types as numpy writes them, and conversions as numpy makes them.

use zarr_meta::{DataType, DataTypeV2, Json};

use super::{BLOCK, Format, Number, blocks, load_floats, load_ints, store_int_values, store_ints, store_values};

/// A data type out of the configuration of a numcodecs codec.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Numpy {
    pub(crate) data_type: DataType,
    pub(crate) number: Number,
    /// 2 for complex numbers, else 1.
    pub(crate) components: usize,
}

impl Numpy {
    /// Reads what `numpy.dtype` takes for the types that numcodecs computes with: `<i2`, `>f4`, `|u1`, `i8`, `float64`, `bool`, `?`,
    /// `<M8[ns]`. The byte order is left out: elements in memory are in that of the machine, and the byte order in the store is the `bytes`
    /// codec's.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        Self::of(named(text).or_else(|| {
            let code = text.strip_prefix(['<', '>', '|', '=']).unwrap_or(text);
            let with_order = |order: &str| DataTypeV2::parse(&Json::from(format!("{order}{code}").as_str())).ok()?.data_type();
            with_order("<").or_else(|| with_order("|"))
        })?)
    }

    /// The numbers of a data type that numpy has. Times are 64-bit integers.
    pub(crate) fn of(data_type: DataType) -> Option<Self> {
        let (number, components) = match &data_type {
            DataType::NumpyDateTime64 { .. } | DataType::NumpyTimeDelta64 { .. } => (Number::I64, 1),
            DataType::Complex64 | DataType::ComplexFloat32 => (Number::Float(Format::F32), 2),
            DataType::Complex128 | DataType::ComplexFloat64 => (Number::Float(Format::F64), 2),
            other => (Number::of(other)?, 1),
        };
        let known = match number {
            Number::Bool | Number::Int { bits: 8.., .. } => true,
            Number::Int { .. } => false,
            Number::Float(format) => matches!(format, Format::F16 | Format::F32 | Format::F64),
        };
        known.then_some(Self { data_type, number, components })
    }

    /// Bytes of one element.
    pub(crate) fn size(&self) -> usize {
        self.number.size().saturating_mul(self.components)
    }

    pub(crate) fn is_complex(&self) -> bool {
        self.components == 2
    }
}

impl Numpy {
    /// The numbers in which numpy computes with operands of two types: `numpy.promote_types`.
    pub(crate) fn promoted(&self, other: &Self) -> (Number, usize) {
        let float = |number| match number {
            Number::Float(format) => format,
            Number::Bool | Number::Int { bits: ..=8, .. } => Format::F16,
            Number::Int { bits: ..=16, .. } => Format::F32,
            Number::Int { .. } => Format::F64,
        };
        let number = match (self.number, other.number) {
            (Number::Bool, number) | (number, Number::Bool) if !matches!(number, Number::Float(_)) => number,
            (Number::Int { bits: a, signed: true }, Number::Int { bits: b, signed: true }) => Number::Int { bits: a.max(b), signed: true },
            (Number::Int { bits: a, signed: false }, Number::Int { bits: b, signed: false }) => {
                Number::Int { bits: a.max(b), signed: false }
            }
            (Number::Int { bits: unsigned, signed: false }, Number::Int { bits: signed, .. })
            | (Number::Int { bits: signed, .. }, Number::Int { bits: unsigned, .. }) => match unsigned.saturating_mul(2).max(signed) {
                bits @ ..=64 => Number::Int { bits, signed: true },
                _ => Number::Float(Format::F64),
            },
            (a, b) => {
                let (a, b) = (float(a), float(b));
                Number::Float(if a.size() >= b.size() { a } else { b })
            }
        };
        (number, self.components.max(other.components))
    }
}

/// The types that numpy knows by a name or a letter.
fn named(text: &str) -> Option<DataType> {
    Some(match text {
        "bool" | "?" | "b1" | "|b1" | "bool_" => DataType::Bool,
        "b" | "int8" => DataType::Int8,
        "h" | "int16" => DataType::Int16,
        "i" | "int32" => DataType::Int32,
        "l" | "q" | "int" | "int64" => DataType::Int64,
        "B" | "uint8" => DataType::UInt8,
        "H" | "uint16" => DataType::UInt16,
        "I" | "uint32" => DataType::UInt32,
        "L" | "Q" | "uint" | "uint64" => DataType::UInt64,
        "e" | "float16" | "half" => DataType::Float16,
        "f" | "float32" | "single" => DataType::Float32,
        "d" | "float" | "float64" | "double" => DataType::Float64,
        "F" | "complex64" => DataType::Complex64,
        "D" | "complex" | "complex128" => DataType::Complex128,
        _ => return None,
    })
}

/// `astype` of numpy with unsafe casting, from elements of one type to as many of another.
///
/// Integers wrap around; floating point numbers lose their fraction; what C leaves undefined (too large for the integer, NaN) is what
/// numpy 2 gives on x86-64. Complex numbers lose their imaginary part, and are true if any part is.
pub(crate) fn cast(from: &Numpy, input: &[u8], to: &Numpy, output: &mut [u8]) {
    let (from_size, to_size) = (from.number.size(), to.number.size());
    if (from.number, from.components) == (to.number, to.components) && input.len() == output.len() {
        output.copy_from_slice(input);
    } else if from.components == to.components {
        each_block((input, from_size), (output, to_size), |input, output| cast_block(from.number, input, to.number, output));
    } else if from.is_complex() {
        each_block((input, from.size()), (output, to_size), |input, output| {
            let mut parts = [0; 2 * BLOCK * 8];
            for (real, part) in parts.chunks_exact_mut(from_size).zip(input.chunks_exact(from_size).step_by(2)) {
                real.copy_from_slice(part);
            }
            cast_block(from.number, &parts, to.number, output);
            if to.number == Number::Bool {
                for (truth, imaginary) in output.iter_mut().zip(input.chunks_exact(from_size).skip(1).step_by(2)) {
                    let mut value = [0.0];
                    load(from.number, imaginary, &mut value);
                    *truth |= u8::from(value != [0.0]);
                }
            }
        });
    } else {
        each_block((input, from_size), (output, to.size()), |input, output| {
            let mut parts = [0; BLOCK * 8];
            cast_block(from.number, input, to.number, &mut parts);
            for (element, real) in output.chunks_exact_mut(to.size()).zip(parts.chunks_exact(to_size)) {
                let (re, im) = element.split_at_mut(to_size);
                re.copy_from_slice(real);
                im.fill(0);
            }
        });
    }
}

/// [`blocks`] for what cannot fail.
fn each_block(from: (&[u8], usize), to: (&mut [u8], usize), mut convert: impl FnMut(&[u8], &mut [u8])) {
    let Ok(()) = blocks::<std::convert::Infallible>(from, to, |from, to| {
        convert(from, to);
        Ok(())
    });
}

/// Converts up to a block of real numbers; the shorter side says how many.
fn cast_block(from: Number, input: &[u8], to: Number, output: &mut [u8]) {
    match from {
        Number::Float(from) => {
            let mut values = [0.0; BLOCK];
            load_floats(from, input, &mut values);
            store_values(to, &values, output);
        }
        integer => {
            let mut values = [0; BLOCK];
            load_ints(integer, input, &mut values);
            store_int_values(integer, &values, to, output);
        }
    }
}

/// Numbers of any real type as the nearest `f64`.
pub(crate) fn load(number: Number, input: &[u8], values: &mut [f64]) {
    match number {
        Number::Float(format) => load_floats(format, input, values),
        integer => {
            let mut integers = [0; BLOCK];
            load_ints(integer, input, &mut integers);
            int_to_float(integer, &integers, Format::F64, values);
        }
    }
}

/// Integers as values of a floating point format, each rounded once, to the nearest.
pub(crate) fn int_to_float(from: Number, integers: &[i64], to: Format, values: &mut [f64]) {
    let pairs = integers.iter().zip(values);
    match (from.is_u64(), to) {
        (false, Format::F32) => pairs.for_each(|(from, to)| *to = f64::from(*from as f32)),
        (true, Format::F32) => pairs.for_each(|(from, to)| *to = f64::from(from.cast_unsigned() as f32)),
        // What half precision can hold, f64 holds exactly.
        (false, _) => pairs.for_each(|(from, to)| *to = *from as f64),
        (true, _) => pairs.for_each(|(from, to)| *to = from.cast_unsigned() as f64),
    }
}

/// Floating point numbers as integers or booleans, the way C does where it says how, and numpy 2 on x86-64 where it does not.
#[expect(clippy::cast_possible_truncation, reason = "losing the fraction and the upper bits is what this does")]
pub(crate) fn store_float_as_int(to: Number, values: &[f64], output: &mut [u8]) {
    const HALF_OF_U32: f64 = 2_147_483_648.0;
    const HALF_OF_U64: f64 = 9_223_372_036_854_775_808.0;
    let mut integers = [0i64; BLOCK];
    let pairs = integers.iter_mut().zip(values);
    match to {
        Number::Bool => pairs.for_each(|(to, value)| *to = i64::from(*value != 0.0)),
        Number::Int { bits: 64, signed: true } => pairs.for_each(|(to, value)| *to = to_i64(*value)),
        Number::Int { bits: 64, signed: false } => pairs.for_each(|(to, value)| {
            *to = if *value >= HALF_OF_U64 { to_i64(*value - HALF_OF_U64) ^ i64::MIN } else { to_i64(*value) };
        }),
        Number::Int { bits: 32, signed: false } => pairs.for_each(|(to, value)| {
            let converted = if *value >= HALF_OF_U32 { to_i32(*value - HALF_OF_U32) ^ i32::MIN } else { to_i32(*value) };
            *to = i64::from(converted);
        }),
        _ => pairs.for_each(|(to, value)| *to = i64::from(to_i32(*value))),
    }
    store_ints(to, &integers, output);

    /// `cvttsd2si`: the least integer stands for all that do not fit.
    fn to_i32(value: f64) -> i32 {
        if value > -2_147_483_649.0 && value < HALF_OF_U32 { value as i32 } else { i32::MIN }
    }

    fn to_i64(value: f64) -> i64 {
        if (-HALF_OF_U64..HALF_OF_U64).contains(&value) { value as i64 } else { i64::MIN }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numpy(text: &str) -> Numpy {
        Numpy::parse(text).unwrap()
    }

    #[test]
    fn spellings_of_types() {
        for (texts, data_type) in [
            (vec!["<i2", ">i2", "|i2", "i2", "int16", "h", "=i2"], DataType::Int16),
            (vec!["|u1", "<u1", "u1", "uint8", "B"], DataType::UInt8),
            (vec!["|b1", "?", "bool", "b1"], DataType::Bool),
            (vec!["<f8", "float64", "d", "f8"], DataType::Float64),
            (vec![">c8", "complex64"], DataType::Complex64),
        ] {
            for text in texts {
                assert_eq!(numpy(text).data_type, data_type, "{text}");
            }
        }
        assert_eq!(numpy(">M8[ns]").number, Number::I64);
        assert_eq!(numpy("<m8[25s]").size(), 8);
        for text in ["", "<", "O", "|O", "<U3", "|S2", "|V4", "f3", "<f16", "int2", "float8_e5m2", "x"] {
            assert_eq!(Numpy::parse(text), None, "{text}");
        }
    }

    #[test]
    fn types_are_promoted_as_numpy_does() {
        for (left, right, both) in [
            ("i1", "u1", "i2"),
            ("u1", "i2", "i2"),
            ("u4", "i4", "i8"),
            ("i8", "u8", "f8"),
            ("u8", "u2", "u8"),
            ("?", "?", "?"),
            ("?", "u2", "u2"),
            ("?", "f2", "f2"),
            ("f2", "u1", "f2"),
            ("f2", "i2", "f4"),
            ("f4", "u4", "f8"),
            ("f2", "f8", "f8"),
            ("c8", "f8", "c16"),
            ("c8", "i2", "c8"),
            ("c8", "i4", "c16"),
        ] {
            let (left, right, both) = (numpy(left), numpy(right), numpy(both));
            assert_eq!(left.promoted(&right), (both.number, both.components), "{left:?} {right:?}");
            assert_eq!(right.promoted(&left), (both.number, both.components), "{left:?} {right:?}");
        }
    }

    #[test]
    fn complex_numbers_keep_or_lose_a_part() {
        let values: Vec<u8> = [1.5f32, 2.0, 0.0, -3.0].iter().flat_map(|v| v.to_ne_bytes()).collect();
        let mut wide = [0; 32];
        cast(&numpy("<c8"), &values, &numpy("<c16"), &mut wide);
        let expected: Vec<u8> = [1.5f64, 2.0, 0.0, -3.0].iter().flat_map(|v| v.to_ne_bytes()).collect();
        assert_eq!(wide, expected.as_slice());
        let mut integers = [9; 2];
        cast(&numpy("<c8"), &values, &numpy("|i1"), &mut integers);
        assert_eq!(integers, [1, 0]);
        let mut truths = [9; 2];
        cast(&numpy("<c8"), &values, &numpy("|b1"), &mut truths);
        assert_eq!(truths, [1, 1]);
        let mut back = [9; 16];
        cast(&numpy("|i1"), &[1, 0], &numpy("<c8"), &mut back);
        let expected: Vec<u8> = [1.0f32, 0.0, 0.0, 0.0].iter().flat_map(|v| v.to_ne_bytes()).collect();
        assert_eq!(back, expected.as_slice());
    }

    #[test]
    fn blocks_do_not_show() {
        let count = 3 * BLOCK + 7;
        let values: Vec<u8> = (0..count).flat_map(|i| (i as f32).to_ne_bytes()).collect();
        let mut out = vec![0; count * 2];
        cast(&numpy("f4"), &values, &numpy("u2"), &mut out);
        assert!(out.as_chunks().0.iter().enumerate().all(|(i, v)| usize::from(u16::from_ne_bytes(*v)) == i));
        let values: Vec<u8> = (0..2 * count).flat_map(|i| (i as f32).to_ne_bytes()).collect();
        cast(&numpy("c8"), &values, &numpy("u2"), &mut out);
        assert!(out.as_chunks().0.iter().enumerate().all(|(i, v)| usize::from(u16::from_ne_bytes(*v)) == 2 * i));
    }
}

//! Least, largest and mean element.

use bytemuck::pod_read_unaligned;
use rayon::prelude::*;
use zarr::{DataType, FillValue};

use crate::values::{Scalar, byte_values, with_scalar};

/// Sees the elements of an array, piece by piece.
pub(crate) trait Accumulate: Send {
    fn add(&mut self, bytes: &[u8]);
    fn summary(&self) -> Summary;
}

/// What the elements were.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Summary {
    /// Elements that are numbers, and not missing.
    pub(crate) count: u64,
    /// NaN, or "not a time".
    pub(crate) nan: u64,
    /// Equal to the fill value, where that is neither NaN nor zero.
    pub(crate) fill: u64,
    pub(crate) min: Option<String>,
    pub(crate) max: Option<String>,
    pub(crate) mean: Option<f64>,
}

impl Summary {
    /// Elements that are left out of the statistics.
    pub(crate) fn missing(&self) -> u64 {
        self.nan + self.fill
    }
}

/// An accumulator for the elements of a data type; `None` for those that have no order.
///
/// NaN is left out, and so are elements equal to the fill value where that is neither NaN nor zero: such a value was chosen to mean "missing".
pub(crate) fn accumulator(data_type: &DataType, fill: &FillValue) -> Option<Box<dyn Accumulate>> {
    let not_a_time = matches!(data_type, DataType::NumpyDateTime64 { .. } | DataType::NumpyTimeDelta64 { .. });
    let fill = fill.as_bytes();
    if let Some(values) = byte_values(data_type).filter(|_| !is_rust_scalar(data_type)) {
        return Some(Box::new(Bytes {
            fill: fill.first().copied().filter(|&fill| values[usize::from(fill)] != 0.0),
            values,
            all: Partial::new(),
        }));
    }
    with_scalar!(data_type, T => {
        let absent = if not_a_time { Some(i64::MIN.to_ne_bytes()) } else { None };
        let absent = absent.map(|bytes| pod_read_unaligned::<T>(&bytes[..size_of::<T>()]));
        let fill = (fill.len() == size_of::<T>() && *data_type != DataType::Bool).then(|| pod_read_unaligned::<T>(fill));
        let fill = fill.filter(|fill| fill.to_f64() != 0.0 && Some(*fill) != absent);
        Some(Box::new(Typed::<T> { fill, absent, all: Partial::new() }))
    }, None)
}

fn is_rust_scalar(data_type: &DataType) -> bool {
    with_scalar!(data_type, T => size_of::<T>() > 0, false)
}

#[derive(Debug, Clone, Copy)]
struct Partial<T> {
    count: u64,
    nan: u64,
    fill: u64,
    range: Option<(T, T)>,
    sum: f64,
}

impl<T: Scalar> Partial<T> {
    const fn new() -> Self {
        Self { count: 0, nan: 0, fill: 0, range: None, sum: 0.0 }
    }

    fn see(&mut self, value: T, fill: Option<T>, absent: Option<T>) {
        if value.partial_cmp(&value).is_none() || Some(value) == absent {
            self.nan += 1;
        } else if Some(value) == fill {
            self.fill += 1;
        } else {
            self.count += 1;
            self.sum += value.to_f64();
            self.range = Some(match self.range {
                None => (value, value),
                Some((min, max)) => (if value < min { value } else { min }, if value > max { value } else { max }),
            });
        }
    }

    fn merge(self, other: Self) -> Self {
        let range = match (self.range, other.range) {
            (Some((a, b)), Some((c, d))) => Some((if c < a { c } else { a }, if d > b { d } else { b })),
            (range, None) | (None, range) => range,
        };
        Self { count: self.count + other.count, nan: self.nan + other.nan, fill: self.fill + other.fill, range, sum: self.sum + other.sum }
    }

    fn summary(&self) -> Summary {
        Summary {
            count: self.count,
            nan: self.nan,
            fill: self.fill,
            min: self.range.map(|(min, _)| min.text()),
            max: self.range.map(|(_, max)| max.text()),
            mean: (self.count > 0).then(|| self.sum / self.count as f64),
        }
    }
}

struct Typed<T> {
    fill: Option<T>,
    absent: Option<T>,
    all: Partial<T>,
}

/// Elements that one thread sums up before sums are added: also keeps rounding errors small.
const BLOCK: usize = 1 << 16;

impl<T: Scalar> Accumulate for Typed<T> {
    fn add(&mut self, bytes: &[u8]) {
        let (fill, absent) = (self.fill, self.absent);
        let block = |bytes: &[u8]| {
            let mut partial = Partial::new();
            for element in bytes.chunks_exact(size_of::<T>()) {
                partial.see(pod_read_unaligned::<T>(element), fill, absent);
            }
            partial
        };
        let added = bytes.par_chunks(BLOCK * size_of::<T>()).map(block).reduce(Partial::new, Partial::merge);
        self.all = self.all.merge(added);
    }

    fn summary(&self) -> Summary {
        self.all.summary()
    }
}

/// Floats of one byte.
struct Bytes {
    values: Vec<f64>,
    fill: Option<u8>,
    all: Partial<f64>,
}

impl Accumulate for Bytes {
    fn add(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            let value = self.values.get(usize::from(byte)).copied().unwrap_or(f64::NAN);
            let fill = (Some(byte) == self.fill).then_some(value);
            self.all.see(value, fill, None);
        }
    }

    fn summary(&self) -> Summary {
        self.all.summary()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(data_type: DataType, fill: &[u8], bytes: &[u8]) -> Summary {
        let mut all = accumulator(&data_type, &FillValue::from_bytes(fill, &data_type).unwrap()).unwrap();
        let half = bytes.len() / 2 / data_type.fixed_size().unwrap() * data_type.fixed_size().unwrap();
        all.add(&bytes[..half]);
        all.add(&bytes[half..]);
        all.summary()
    }

    #[test]
    fn nan_and_fill_are_left_out() {
        let bytes: Vec<u8> = [1f32, f32::NAN, 3.5, 1e20, -2.0].iter().flat_map(|value| value.to_ne_bytes()).collect();
        let found = summary(DataType::Float32, &1e20f32.to_ne_bytes(), &bytes);
        assert_eq!((found.count, found.nan, found.fill), (3, 1, 1));
        assert_eq!((found.min.as_deref(), found.max.as_deref()), (Some("-2.0"), Some("3.5")));
        assert!((found.mean.unwrap() - 2.5 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn zeros_count_where_zero_is_the_fill_value() {
        let found = summary(DataType::Int64, &[0; 8], &[0; 16]);
        assert_eq!((found.count, found.fill, found.min.as_deref()), (2, 0, Some("0")));
        let large: Vec<u8> = [i64::MIN, i64::MAX].iter().flat_map(|value| value.to_ne_bytes()).collect();
        assert_eq!(summary(DataType::Int64, &[0; 8], &large).min, Some(i64::MIN.to_string()));
        let time = DataType::NumpyDateTime64 { unit: zarr::meta::TimeUnit::Day, scale_factor: 1 };
        assert_eq!(summary(time, &i64::MIN.to_ne_bytes(), &large).nan, 1);
    }

    #[test]
    fn small_floats() {
        let found = summary(DataType::Float8E5M2, &[0], &[0x3C, 0x7F, 0xC0]);
        assert_eq!((found.count, found.nan, found.min.as_deref()), (2, 1, Some("-2.0")));
    }
}

use zarr_meta::DataType;

use super::bound::{Codec, chunks};
use super::{CodecCase, CodecSubject, case};
use crate::samples::Sample;
use crate::suite::{Broken, Trial, ensure};

/// How far a decoded number may be from the one that was encoded.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum ErrorBound {
    /// By this much.
    Absolute(f64),
    /// By this share of the encoded number.
    Relative(f64),
}

impl ErrorBound {
    /// Infinities stay what they are, and of NaN only the payload may change.
    fn holds(self, encoded: f64, decoded: f64) -> bool {
        if !encoded.is_finite() {
            return encoded == decoded || encoded.is_nan() && decoded.is_nan();
        }
        match self {
            Self::Absolute(bound) => (encoded - decoded).abs() <= bound,
            Self::Relative(bound) => (encoded - decoded).abs() <= bound * encoded.abs(),
        }
    }
}

pub(super) fn law() -> CodecCase {
    case("error-bound", "a lossy codec keeps every number within the bound that was declared", error_bound)
}

fn error_bound(subject: &dyn CodecSubject, _: &Trial) -> Result<(), Broken> {
    let Some(bound) = subject.error_bound() else {
        return Ok(());
    };
    let codec = Codec::of(subject)?;
    let data_type = subject.decoded().as_array().map(|array| array.data_type.clone());
    for (index, chunk) in chunks(subject, &codec)?.iter().enumerate() {
        let numbers = |sample: &Sample| match (sample, &data_type) {
            (Sample::Bytes(bytes), Some(data_type)) => numbers(data_type, bytes),
            _ => None,
        };
        let (Some(encoded), Some(decoded)) = (numbers(&chunk.sample), numbers(&chunk.decoded)) else {
            return Err(Broken::Failed(format!("an error bound was declared for {:?}, whose elements are no numbers", subject.decoded())));
        };
        for (encoded, decoded) in encoded.into_iter().zip(decoded) {
            ensure!(bound.holds(encoded, decoded), "{encoded:?} of sample {index} became {decoded:?}, declared is {bound:?}");
        }
    }
    Ok(())
}

/// Elements in native byte order; complex ones as two each. `None` for data types without numbers that are looked at here.
fn numbers(data_type: &DataType, bytes: &[u8]) -> Option<Vec<f64>> {
    macro_rules! each {
        ($number:ty) => {
            bytes.chunks_exact(size_of::<$number>()).filter_map(|e| Some(<$number>::from_ne_bytes(e.try_into().ok()?) as f64)).collect()
        };
    }
    Some(match data_type {
        DataType::Int8 => each!(i8),
        DataType::Int16 => each!(i16),
        DataType::Int32 => each!(i32),
        DataType::Int64 => each!(i64),
        DataType::UInt8 => each!(u8),
        DataType::UInt16 => each!(u16),
        DataType::UInt32 => each!(u32),
        DataType::UInt64 => each!(u64),
        DataType::Float32 | DataType::Complex64 | DataType::ComplexFloat32 => each!(f32),
        DataType::Float64 | DataType::Complex128 | DataType::ComplexFloat64 => each!(f64),
        DataType::Float16 => {
            bytes.chunks_exact(2).filter_map(|e| Some(small_float(u16::from_ne_bytes(e.try_into().ok()?), 5, 10))).collect()
        }
        DataType::BFloat16 => {
            bytes.chunks_exact(2).filter_map(|e| Some(small_float(u16::from_ne_bytes(e.try_into().ok()?), 8, 7))).collect()
        }
        _ => return None,
    })
}

/// IEEE 754 with that many bits of exponent and of mantissa.
fn small_float(bits: u16, exponent: u32, mantissa: u32) -> f64 {
    let bits = u32::from(bits);
    let fraction = f64::from(bits & ((1 << mantissa) - 1)) / f64::from(1u32 << mantissa);
    let most = (1 << exponent) - 1;
    let bias = most / 2;
    let power = (bits >> mantissa) & most;
    let magnitude = match power {
        0 => fraction * 2f64.powi(1 - bias as i32),
        _ if power == most && fraction == 0.0 => f64::INFINITY,
        _ if power == most => f64::NAN,
        _ => (1.0 + fraction) * 2f64.powi(power as i32 - bias as i32),
    };
    if bits >> (exponent + mantissa) == 1 { -magnitude } else { magnitude }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_floats() {
        assert_eq!(small_float(0x3C00, 5, 10), 1.0);
        assert_eq!(small_float(0xC500, 5, 10), -5.0);
        assert_eq!(small_float(0x0001, 5, 10), 2f64.powi(-24));
        assert_eq!(small_float(0x7C00, 5, 10), f64::INFINITY);
        assert!(small_float(0x7C01, 5, 10).is_nan());
        assert_eq!(small_float(0x4049, 8, 7), 3.140625);
    }

    #[test]
    fn bounds() {
        assert!(ErrorBound::Absolute(0.5).holds(1.0, 1.5) && !ErrorBound::Absolute(0.5).holds(1.0, 1.6));
        assert!(ErrorBound::Relative(0.1).holds(-10.0, -9.0) && !ErrorBound::Relative(0.1).holds(0.0, 1e-9));
        assert!(!ErrorBound::Absolute(1.0).holds(f64::INFINITY, f64::MAX) && ErrorBound::Absolute(0.0).holds(f64::NAN, f64::NAN));
    }
}

//! `numcodecs.fixedscaleoffset`: numbers shifted, scaled and rounded.

use zarr_codec_api::{Direction, Stage};
use zarr_meta::Json;

use super::numpy_numbers;
use crate::constants::*;
use crate::number::{is_float, range};
use crate::recipe::{Op, Step};

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    offset: Json,
    scale: Json,
    dtype: Option<String>,
    #[serde(rename = "astype")]
    _astype: Option<String>,
}

/// A number as Python has it, which decides in what type numpy computes.
#[derive(Debug, Clone, Copy)]
enum Scalar {
    Int(i128),
    Float(f64),
}

impl Scalar {
    fn read(value: &Json) -> Option<Self> {
        let number = value.as_number()?;
        let scalar = match number.as_i128() {
            Some(value) => Self::Int(value),
            // Too large for any type of integers.
            None if number.is_integer() => return None,
            None => Self::Float(number.as_f64()),
        };
        // Which of two NaN comes out is the processor's affair.
        (!scalar.as_f64().is_nan()).then_some(scalar)
    }

    fn as_f64(self) -> f64 {
        match self {
            Self::Int(value) => value as f64,
            Self::Float(value) => value,
        }
    }
}

pub(crate) fn step(stage: &Stage, direction: Direction) -> Option<Step> {
    let config: Config = stage.codec.config().ok()?;
    let (decoded, encoded) = numpy_numbers(stage, config.dtype.as_deref())?;
    let (offset, scale) = (Scalar::read(&config.offset)?, Scalar::read(&config.scale)?);
    let mut op = match direction {
        Direction::Decode => Op::new(OP_FIXED, encoded, decoded),
        Direction::Encode => Op { flags: OP_ENCODE, ..Op::new(OP_FIXED, decoded, encoded) },
    };
    (op.a, op.b) = (offset.as_f64().to_bits(), scale.as_f64().to_bits());
    if direction == Direction::Encode && !is_float(decoded) {
        // Integers are computed with as integers for as long as they meet integers.
        let (least, most) = range(if decoded == NUMBER_BOOL { NUMBER_I64 } else { decoded });
        let fits = |value: i128| (least..=most).contains(&value);
        match (offset, scale) {
            (Scalar::Float(_), _) => {}
            (Scalar::Int(offset), Scalar::Int(scale)) if fits(offset) && fits(scale) => {
                op.flags |= OP_A_INTEGER | OP_B_INTEGER;
                (op.a, op.b) = (offset as u64, scale as u64);
            }
            (Scalar::Int(offset), Scalar::Float(_)) if fits(offset) => {
                op.flags |= OP_A_INTEGER;
                op.a = offset as u64;
            }
            // The host says what is wrong.
            _ => return None,
        }
    }
    Some(Step::Values { op: Some(op), pairs: Vec::new(), components: 1 })
}

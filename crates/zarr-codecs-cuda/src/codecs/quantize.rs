//! `numcodecs.quantize`: fewer decimal digits. Decoding is a conversion, if anything.

use zarr_codec_api::{Direction, Stage};

use super::numpy_numbers;
use crate::constants::*;
use crate::number::is_float;
use crate::recipe::{Op, Step};

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    digits: i32,
    dtype: Option<String>,
    #[serde(rename = "astype")]
    _astype: Option<String>,
}

pub(crate) fn step(stage: &Stage, direction: Direction) -> Option<Step> {
    let config: Config = stage.codec.config().ok()?;
    let (decoded, encoded) = numpy_numbers(stage, config.dtype.as_deref())?;
    if !is_float(decoded) || !is_float(encoded) || !(-308..=307).contains(&config.digits) {
        return None;
    }
    let op = match direction {
        Direction::Decode => (decoded != encoded).then(|| Op::new(OP_CAST, encoded, decoded)),
        Direction::Encode => {
            // The power of two at or above 10^digits, as a number of the decoded type.
            let scale = (f64::from(config.digits) * std::f64::consts::LOG2_10).ceil().exp2();
            Some(Op { a: scale.to_bits(), flags: OP_ENCODE, ..Op::new(OP_QUANTIZE, decoded, encoded) })
        }
    };
    Some(Step::Values { op, pairs: Vec::new(), components: 1 })
}

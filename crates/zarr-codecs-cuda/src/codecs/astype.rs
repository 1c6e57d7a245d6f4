//! `numcodecs.astype`: elements stored as another type.

use zarr_codec_api::{Direction, Stage};

use super::numpy_numbers;
use crate::constants::*;
use crate::recipe::{Op, Step};

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    #[serde(rename = "encode_dtype")]
    _encode_dtype: String,
    decode_dtype: Option<String>,
}

pub(crate) fn step(stage: &Stage, direction: Direction) -> Option<Step> {
    let config: Config = stage.codec.config().ok()?;
    let (decoded, encoded) = numpy_numbers(stage, config.decode_dtype.as_deref())?;
    let (from, to) = if direction == Direction::Decode { (encoded, decoded) } else { (decoded, encoded) };
    let op = (from != to).then(|| Op::new(OP_CAST, from, to));
    Some(Step::Values { op, pairs: Vec::new(), components: 1 })
}

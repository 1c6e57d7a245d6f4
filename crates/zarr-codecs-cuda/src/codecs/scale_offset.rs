//! `scale_offset`: numbers shifted and scaled, in their own data type.

use zarr_codec_api::{Direction, Stage};
use zarr_meta::{FillValue, Json};

use crate::constants::*;
use crate::number::{bits, float, integer, is_float, number_of};
use crate::recipe::{Op, Step};

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    offset: Option<Json>,
    scale: Option<Json>,
}

pub(crate) fn step(stage: &Stage, direction: Direction) -> Option<Step> {
    let config: Config = stage.codec.config().ok()?;
    let data_type = &stage.decoded.as_array()?.data_type;
    let number = number_of(data_type).filter(|&number| number != NUMBER_BOOL)?;
    let scalar = |value: Option<Json>| match value {
        None => Some(None),
        Some(value) => FillValue::parse(&value, data_type).ok().and_then(|element| bits(element.as_bytes())).map(Some),
    };
    let (offset, scale) = (scalar(config.offset)?, scalar(config.scale)?);
    let encode = if direction == Direction::Encode { OP_ENCODE } else { 0 };
    let op = if is_float(number) {
        let value = |bits: Option<u64>, default| bits.map_or(default, |bits| float(number, bits));
        let (offset, scale) = (value(offset, 0.0), value(scale, 1.0));
        // Which of two NaN comes out is the processor's affair.
        if scale == 0.0 || offset.is_nan() || scale.is_nan() {
            return None;
        }
        Op { flags: encode, a: offset.to_bits(), b: scale.to_bits(), ..Op::new(OP_SCALE_FLOAT, number, number) }
    } else {
        let value = |bits: Option<u64>, default| bits.map_or(default, |bits| integer(number, bits));
        let (offset, scale) = (value(offset, 0), value(scale, 1));
        if scale == 0 {
            return None;
        }
        let sign = |value: i128, flag| if value < 0 { flag } else { 0 };
        let flags = encode | sign(offset, OP_A_NEGATIVE) | sign(scale, OP_B_NEGATIVE);
        Op { flags, a: offset.unsigned_abs() as u64, b: scale.unsigned_abs() as u64, ..Op::new(OP_SCALE_INTEGER, number, number) }
    };
    Some(Step::Values { op: Some(op), pairs: Vec::new(), components: 1 })
}

//! `bitround`: fewer significant bits. Decoding changes nothing.

use zarr_codec_api::{Direction, Stage};
use zarr_meta::DataType;

use crate::constants::*;
use crate::number::number_of;
use crate::recipe::{Op, Step};

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    keepbits: u32,
}

pub(crate) fn step(stage: &Stage, direction: Direction) -> Option<Step> {
    let Config { keepbits } = stage.codec.config().ok()?;
    let data_type = &stage.decoded.as_array()?.data_type;
    let component = data_type.complex_component();
    let components = 1 + usize::from(component.is_some());
    let number = match component.as_ref().unwrap_or(data_type) {
        DataType::NumpyDateTime64 { .. } | DataType::NumpyTimeDelta64 { .. } => NUMBER_I64,
        other => number_of(other)?,
    };
    if number == NUMBER_BOOL {
        return None;
    }
    let op = Op { a: keepbits.into(), flags: OP_ENCODE, ..Op::new(OP_BITROUND, number, number) };
    Some(Step::Values { op: (direction == Direction::Encode).then_some(op), pairs: Vec::new(), components })
}

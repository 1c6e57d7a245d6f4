//! `cast_value`: elements stored as another number type, by value.

use serde::Deserialize;
use zarr_codec_api::{Direction, Stage};
use zarr_meta::{DataType, FillValue, Json};

use crate::constants::*;
use crate::number::{bits, float, integer, is_float, number_of};
use crate::recipe::{Op, Pair, Step};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    #[serde(rename = "data_type")]
    _data_type: Json,
    #[serde(default)]
    rounding: Rounding,
    out_of_range: Option<OutOfRange>,
    #[serde(default)]
    scalar_map: Option<ScalarMap>,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Rounding {
    #[default]
    NearestEven,
    TowardsZero,
    TowardsPositive,
    TowardsNegative,
    NearestAway,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum OutOfRange {
    Clamp,
    Wrap,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct ScalarMap {
    #[serde(default)]
    encode: Option<Vec<(Json, Json)>>,
    #[serde(default)]
    decode: Option<Vec<(Json, Json)>>,
}

pub(crate) fn step(stage: &Stage, direction: Direction) -> Option<Step> {
    let config: Config = stage.codec.config().ok()?;
    let (decoded, encoded) = (&stage.decoded.as_array()?.data_type, &stage.encoded.as_array()?.data_type);
    let map = config.scalar_map.unwrap_or_default();
    let (from, to, pairs) = match direction {
        Direction::Decode => (encoded, decoded, map.decode),
        Direction::Encode => (decoded, encoded, map.encode),
    };
    let pairs = pairs.unwrap_or_default().iter().map(|(key, value)| pair((key, from), (value, to))).collect::<Option<Vec<_>>>()?;
    let number = |data_type| number_of(data_type).filter(|&number| number != NUMBER_BOOL);
    let mut op = Op::new(OP_CAST_VALUE, number(from)?, number(to)?);
    op.rounding = match config.rounding {
        Rounding::NearestEven => ROUND_NEAREST_EVEN,
        Rounding::TowardsZero => ROUND_TOWARDS_ZERO,
        Rounding::TowardsPositive => ROUND_TOWARDS_POSITIVE,
        Rounding::TowardsNegative => ROUND_TOWARDS_NEGATIVE,
        Rounding::NearestAway => ROUND_NEAREST_AWAY,
    };
    op.beyond = match config.out_of_range {
        None => BEYOND_FAILS,
        Some(OutOfRange::Clamp) => BEYOND_CLAMPS,
        Some(OutOfRange::Wrap) => BEYOND_WRAPS,
    };
    Some(Step::Values { op: Some(op), pairs, components: 1 })
}

/// A pair of the scalar map: what is looked for, by value, and the bits that it becomes.
fn pair(key: (&Json, &DataType), value: (&Json, &DataType)) -> Option<Pair> {
    let element = |(value, data_type): (&Json, &DataType)| {
        // The example of the specification has a sign that its own fill values lack.
        let value = if value.as_str() == Some("+Infinity") { &Json::from("Infinity") } else { value };
        bits(FillValue::parse(value, data_type).ok()?.as_bytes())
    };
    let (number, from, to) = (number_of(key.1)?, element(key)?, element(value)?);
    let (kind, key) = match is_float(number) {
        false => (KEY_INTEGER, integer(number, from) as u64),
        true if float(number, from).is_nan() => (KEY_NAN, 0),
        true => (KEY_FLOAT, float(number, from).to_bits()),
    };
    Some(Pair { key, to, kind, unused: 0 })
}

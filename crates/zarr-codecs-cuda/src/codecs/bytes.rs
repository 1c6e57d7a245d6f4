//! `bytes`, `endian`: elements one after the other, in a byte order.
//!
//! Not for numbers narrower than a byte, and structs in the other byte order.

use zarr_codec_api::Stage;
use zarr_meta::{DataType, Endianness};

use crate::recipe::Step;

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    endian: Option<Endianness>,
}

pub(crate) fn step(stage: &Stage) -> Option<Step> {
    let config: Config = stage.codec.config().ok()?;
    let data_type = &stage.decoded.as_array()?.data_type;
    let element_len = data_type.fixed_size()?;
    if has_narrow_numbers(data_type) {
        return None;
    }
    // Structs are little-endian unless they say otherwise.
    let endian = config.endian.or(matches!(data_type, DataType::Struct { .. }).then_some(Endianness::Little));
    let is_swapped = match endian {
        Some(endian) => endian != Endianness::Little,
        None if data_type.is_byte_order_sensitive() => return None,
        None => false,
    };
    match data_type.swap_units().as_slice() {
        [] => Some(Step::Bytes { width: 1 }),
        _ if !is_swapped => Some(Step::Bytes { width: 1 }),
        [run] if run.offset == 0 && run.width * run.count == element_len && matches!(run.width, 2 | 4 | 8) => {
            Some(Step::Bytes { width: run.width as u32 })
        }
        _ => None,
    }
}

fn has_narrow_numbers(data_type: &DataType) -> bool {
    match data_type {
        DataType::Bool => false,
        DataType::Struct(fields) => fields.iter().any(|field| has_narrow_numbers(&field.data_type)),
        DataType::SubArray { element, .. } => has_narrow_numbers(element),
        number => number.bit_width().is_some_and(|bits| bits < 8),
    }
}

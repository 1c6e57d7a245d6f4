//! `reshape`: the same elements in the same order under another shape; and `zarrs.squeeze`, which drops axes of length 1.
//!
//! # `reshape`
//! * Specification: [zarr-extensions, reshape](https://github.com/zarr-developers/zarr-extensions/tree/main/codecs/reshape).
//! * Configuration: `shape`, the new shape: per axis a length, or `-1` once for what is left, or a list of the old axes whose product it
//!   is.
//! * Data types: all of fixed length.
//!
//! Lists of axes ascend over the whole shape, and an axis that is made of a list must lie in the new shape where its axes lie in the old
//! one: the product of the lengths before it must be that of the old axes before the first of its list, and the same behind it. (The text
//! of the registry speaks of `A_shape[input_dims[0]]` before it, where it means the axes up to that one.)
//!
//! # `zarrs.squeeze`
//! * Specification: the codec of that name of [zarrs](https://docs.rs/zarrs). Configuration: none. Where all axes have length 1, one is
//!   left.

use serde::Deserialize;
use zarr_codec_api::{ArrayRepresentation, ArrayToArray, CodecError, HostProvider, SimpleCodec};

use crate::config::{self, NoConfig};

const NAME: &str = "reshape";
const SQUEEZE: &str = "zarrs.squeeze";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    shape: Vec<Axis>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
enum Axis {
    /// A length, or -1.
    Length(i64),
    /// Axes of the decoded array.
    Axes(Vec<usize>),
}

pub(crate) fn register(provider: HostProvider) -> HostProvider {
    let provider = provider.with(NAME, |codec, _| {
        let Config { shape } = config::read(codec)?;
        Ok(SimpleCodec::array_to_array(Reshape::To(shape)))
    });
    provider.with(SQUEEZE, |codec, _| {
        let NoConfig {} = config::read(codec)?;
        Ok(SimpleCodec::array_to_array(Reshape::Squeeze))
    })
}

#[derive(Debug)]
enum Reshape {
    To(Vec<Axis>),
    Squeeze,
}

impl ArrayToArray for Reshape {
    fn encoded_representation(&self, decoded: &ArrayRepresentation) -> Result<ArrayRepresentation, CodecError> {
        let shape = match self {
            Self::To(axes) => reshaped(axes, &decoded.shape)
                .map_err(|problem| CodecError::metadata(NAME, format!("a chunk of shape {:?}: {problem}", decoded.shape)))?,
            Self::Squeeze => {
                let mut shape: Vec<u64> = decoded.shape.iter().copied().filter(|&length| length != 1).collect();
                if shape.is_empty() && !decoded.shape.is_empty() {
                    shape.push(1);
                }
                shape
            }
        };
        Ok(ArrayRepresentation { shape, ..decoded.clone() })
    }

    fn decode(&self, _: &ArrayRepresentation, encoded: &[u8], decoded: &mut [u8]) -> Result<(), CodecError> {
        decoded.copy_from_slice(encoded);
        Ok(())
    }

    fn encode(&self, _: &ArrayRepresentation, decoded: &[u8], encoded: &mut [u8]) -> Result<(), CodecError> {
        encoded.copy_from_slice(decoded);
        Ok(())
    }

    fn decodes_verbatim(&self) -> bool {
        true
    }
}

fn product(lengths: &[u64]) -> Option<u64> {
    lengths.iter().try_fold(1u64, |product, &length| product.checked_mul(length))
}

/// The new shape, or why there is none.
fn reshaped(axes: &[Axis], decoded: &[u64]) -> Result<Vec<u64>, String> {
    let overflow = || "the number of elements overflows".to_owned();
    let total = product(decoded).ok_or_else(overflow)?;
    let mut next_axis = 0;
    let mut automatic = None;
    let mut shape = Vec::with_capacity(axes.len());
    for (index, axis) in axes.iter().enumerate() {
        shape.push(match axis {
            Axis::Length(-1) if automatic.is_none() => {
                automatic = Some(index);
                1
            }
            Axis::Length(-1) => return Err("-1 occurs more than once".to_owned()),
            Axis::Length(length) => match u64::try_from(*length) {
                Ok(length @ 1..) => length,
                _ => return Err(format!("{length} is no length")),
            },
            Axis::Axes(list) => {
                let mut length = 1u64;
                for &axis in list {
                    if axis < next_axis {
                        return Err("lists of axes must ascend".to_owned());
                    }
                    next_axis = axis.saturating_add(1);
                    let of_axis = decoded.get(axis).ok_or_else(|| format!("there is no axis {axis}"))?;
                    length = length.checked_mul(*of_axis).ok_or_else(overflow)?;
                }
                length
            }
        });
    }
    if let Some(slot) = automatic.and_then(|index| axes.get(index).and(Some(index))) {
        let rest = product(&shape).ok_or_else(overflow)?;
        let length = total.checked_div(rest).ok_or("-1 is ambiguous beside a length of 0")?;
        if let Some(slot) = shape.get_mut(slot) {
            *slot = length;
        }
    }
    if product(&shape) != Some(total) {
        return Err(format!("has {total} elements, which {shape:?} does not"));
    }
    for (index, axis) in axes.iter().enumerate() {
        let Axis::Axes(list) = axis else { continue };
        let (Some(&first), Some(&last)) = (list.first(), list.last()) else { continue };
        let before = product(shape.get(..index).unwrap_or_default()) == product(decoded.get(..first).unwrap_or_default());
        let behind = |shape: &[u64], index: usize| product(shape.get(index.saturating_add(1)..).unwrap_or_default());
        if !before || behind(&shape, index) != behind(decoded, last) {
            return Err(format!("axis {index} of {shape:?} does not lie where axes {list:?} lie"));
        }
    }
    Ok(shape)
}

#[cfg(test)]
mod tests {
    use zarr_meta::{DataType, FillValue};

    use super::*;
    use crate::testing::ArrayCodec;

    fn to(configuration: &str, shape: &[u64]) -> Result<Vec<u64>, CodecError> {
        let configuration = format!("{{\"shape\": {configuration}}}");
        let data_type = DataType::UInt16;
        let codec = ArrayCodec::with_fill(NAME, &configuration, &data_type, shape, FillValue::default_for(&data_type))?;
        codec.encoded().map(|encoded| encoded.as_array().unwrap().shape.clone())
    }

    #[test]
    fn shapes_of_every_kind() {
        for (configuration, decoded, encoded) in [
            ("[[0, 1], [2], 3]", &[100, 50, 64, 3][..], &[5000, 64, 3][..]),
            ("[-1]", &[2, 3], &[6]),
            ("[3, -1]", &[2, 3], &[3, 2]),
            ("[]", &[1, 1], &[]),
            ("[1, 1]", &[], &[1, 1]),
            ("[[0, 1], 10, [3, 4]]", &[2, 3, 10, 4, 5], &[6, 10, 20]),
            ("[[], [0], [1]]", &[2, 3], &[1, 2, 3]),
            ("[[0], -1, [3]]", &[2, 3, 4, 5], &[2, 12, 5]),
            ("[[0, 1]]", &[0, 3], &[0]),
        ] {
            assert_eq!(to(configuration, decoded).unwrap(), encoded, "{configuration}");
        }
    }

    #[test]
    fn shapes_that_cannot_be() {
        for (configuration, decoded) in [
            ("[5]", &[2, 3][..]),
            ("[-1, -1]", &[2, 3]),
            ("[4, -1]", &[2, 3]),
            ("[[1], [0]]", &[2, 3]),
            ("[[1, 0]]", &[2, 3]),
            ("[[3, 4], 10, [0, 1]]", &[2, 3, 10, 4, 5]),
            ("[[0], [0]]", &[1, 1]),
            ("[[0, 2], 3]", &[2, 3, 2]),
            ("[3, [0]]", &[2, 3]),
            ("[[2]]", &[2, 3]),
            ("[0]", &[0]),
            ("[-2]", &[2]),
            ("[[0], -1]", &[0, 3]),
            ("[9223372036854775807, 9223372036854775807]", &[2, 3]),
        ] {
            assert!(to(configuration, decoded).is_err(), "{configuration}");
        }
        assert!(to("[1.5]", &[1]).is_err());
        assert!(to("[\"1\"]", &[1]).is_err());
    }

    #[test]
    fn bytes_and_the_fill_value_stay() {
        let fill = FillValue::from_bytes(7u16.to_ne_bytes(), &DataType::UInt16).unwrap();
        let codec = ArrayCodec::with_fill(NAME, r#"{"shape": [4]}"#, &DataType::UInt16, &[2, 2], fill.clone()).unwrap();
        assert_eq!(codec.encoded_array().fill_value, fill);
        assert_eq!(codec.encode(&[1, 2, 3, 4, 5, 6, 7, 8]).unwrap(), [1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(codec.decode(&[1, 2, 3, 4, 5, 6, 7, 8]).unwrap(), [1, 2, 3, 4, 5, 6, 7, 8]);
    }

    #[test]
    fn squeezing_leaves_one_axis() {
        for (decoded, encoded) in [(&[4, 1, 3, 1][..], &[4, 3][..]), (&[1, 1], &[1]), (&[], &[]), (&[0, 1], &[0])] {
            let codec = ArrayCodec::new(SQUEEZE, "{}", &DataType::Int8, decoded);
            assert_eq!(codec.encoded_array().shape, encoded);
        }
    }
}

//! `transpose`: the axes in another order.
//!
//! Configuration: `{"order": [..]}`, a permutation: axis `i` of the encoded array is axis `order[i]` of the decoded one. Array→array, for elements of
//! fixed length. The column-major order of Zarr v2 is the descending permutation.
//!
//! Specification: [core codec `transpose`](https://zarr-specs.readthedocs.io/en/latest/v3/codecs/transpose/index.html).
//!
//! Where implementations part ways: drafts of the specification also had `"C"` (no change) and `"F"` (all axes reversed), which older arrays hold;
//! both are read.

use zarr_buffer_api::{CopyAxis, Offsets, copy_axes};
use zarr_codec_api::{ArrayRepresentation, ArrayToArray, CodecError, HostProvider, Representation, SimpleCodec};
use zarr_meta::Extension;

use crate::config;

const NAME: &str = "transpose";

pub(crate) fn register(provider: HostProvider) -> HostProvider {
    provider.with(NAME, make)
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    order: Order,
}

#[derive(serde::Deserialize)]
#[serde(untagged)]
enum Order {
    Axes(Vec<usize>),
    Draft(DraftOrder),
}

#[derive(serde::Deserialize)]
enum DraftOrder {
    C,
    F,
}

fn make(codec: &Extension, decoded: &Representation) -> Result<SimpleCodec, CodecError> {
    let config: Config = config::read(codec)?;
    let Some(array) = decoded.as_array() else {
        return Err(CodecError::metadata(NAME, "takes an array, and stands behind the array to bytes codec"));
    };
    let rank = array.shape.len();
    let order = match config.order {
        Order::Axes(order) => order,
        Order::Draft(DraftOrder::C) => (0..rank).collect(),
        Order::Draft(DraftOrder::F) => (0..rank).rev().collect(),
    };
    let mut seen = vec![false; rank];
    let is_permutation =
        order.len() == rank && order.iter().all(|&axis| seen.get_mut(axis).is_some_and(|seen| !std::mem::replace(seen, true)));
    if !is_permutation {
        return Err(CodecError::metadata(NAME, format!("order {order:?} is no permutation of the {rank} axes")));
    }
    Ok(SimpleCodec::array_to_array(Transpose { order }))
}

/// The codec, for one rank.
#[derive(Debug)]
struct Transpose {
    /// For each encoded axis, the decoded axis.
    order: Vec<usize>,
}

/// An axis of the copy: its length and its strides on both sides, in bytes.
#[derive(Debug, Clone, Copy)]
struct Axis {
    len: usize,
    decoded: isize,
    encoded: isize,
}

impl Transpose {
    fn copy(&self, representation: &ArrayRepresentation, from: &[u8], to: &mut [u8], decode: bool) -> Result<(), CodecError> {
        let element = representation.data_type.fixed_size().unwrap_or(0);
        let mut axes = self.axes(&representation.shape, element)?;
        // The axis along which reads are contiguous goes next to the one along which writes are: these two are copied in tiles.
        let source = |axis: &Axis| if decode { axis.encoded } else { axis.decoded };
        let target = |axis: &Axis| if decode { axis.decoded } else { axis.encoded };
        axes.sort_by_key(|axis| std::cmp::Reverse(target(axis)));
        let contiguous = axes.iter().enumerate().min_by_key(|(_, axis)| source(axis)).map(|(index, _)| index);
        if let Some(index) = contiguous.filter(|index| index.saturating_add(2) < axes.len()) {
            let axis = axes.remove(index);
            axes.insert(axes.len().saturating_sub(1), axis);
        }
        let axes: Vec<CopyAxis<'_>> = axes
            .iter()
            .map(|axis| CopyAxis { len: axis.len, destination: Offsets::Stride(target(axis)), source: Offsets::Stride(source(axis)) })
            .collect();
        copy_axes(to, 0, from, 0, &axes, element).map_err(|error| CodecError::parameter(NAME, "cannot copy").with_source(error))
    }

    /// The decoded axes in order, neighbours that stay neighbours taken together.
    fn axes(&self, shape: &[u64], element: usize) -> Result<Vec<Axis>, CodecError> {
        let too_large = || CodecError::parameter(NAME, format!("a chunk of shape {shape:?} does not fit the address space"));
        let mut axes = shape
            .iter()
            .map(|&len| Ok(Axis { len: usize::try_from(len).map_err(|_| too_large())?, decoded: 0, encoded: 0 }))
            .collect::<Result<Vec<_>, CodecError>>()?;
        let mut step = element;
        for axis in axes.iter_mut().rev() {
            axis.decoded = isize::try_from(step).map_err(|_| too_large())?;
            step = step.checked_mul(axis.len.max(1)).ok_or_else(too_large)?;
        }
        let mut step = element;
        for axis in self.order.iter().rev() {
            let axis = axes.get_mut(*axis).ok_or_else(too_large)?;
            axis.encoded = isize::try_from(step).map_err(|_| too_large())?;
            step = step.checked_mul(axis.len.max(1)).ok_or_else(too_large)?;
        }
        let mut merged: Vec<Axis> = Vec::with_capacity(axes.len());
        for axis in axes.into_iter().filter(|axis| axis.len != 1) {
            let len = isize::try_from(axis.len).map_err(|_| too_large())?;
            match merged.last_mut() {
                Some(last) if last.decoded == axis.decoded.saturating_mul(len) && last.encoded == axis.encoded.saturating_mul(len) => {
                    *last = Axis { len: last.len.saturating_mul(axis.len), ..axis };
                }
                _ => merged.push(axis),
            }
        }
        Ok(merged)
    }
}

impl ArrayToArray for Transpose {
    fn encoded_representation(&self, decoded: &ArrayRepresentation) -> Result<ArrayRepresentation, CodecError> {
        let shape = self.order.iter().map(|&axis| decoded.shape.get(axis).copied().unwrap_or(1)).collect();
        Ok(ArrayRepresentation { shape, ..decoded.clone() })
    }

    fn decode(&self, representation: &ArrayRepresentation, encoded: &[u8], decoded: &mut [u8]) -> Result<(), CodecError> {
        self.copy(representation, encoded, decoded, true)
    }

    fn encode(&self, representation: &ArrayRepresentation, decoded: &[u8], encoded: &mut [u8]) -> Result<(), CodecError> {
        self.copy(representation, decoded, encoded, false)
    }

    fn decodes_verbatim(&self) -> bool {
        self.order.is_sorted()
    }
}

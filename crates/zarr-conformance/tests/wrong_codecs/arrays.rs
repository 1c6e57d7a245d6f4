//! Codecs of arrays, honest or wrong in one way.

use std::sync::Arc;

use zarr_codec_api::{
    ArrayRepresentation, ArrayToArray, ArrayToBytes, Bound, ByteLen, CodecError, CodecProvider, DecodeSlot, Direction, EncodeSlot,
    HostProvider, HostSegment, Limits, Placement, Representation, Scratch, Segment, SimpleCodec, Source, Stage,
};
use zarr_conformance::codec::{CodecUnderTest, ErrorBound};
use zarr_conformance::{Sample, Suite};
use zarr_meta::{DataType, Extension, FillValue};

use crate::Wrong;

fn array(data_type: DataType) -> Representation {
    let fill_value = FillValue::default_for(&data_type);
    Representation::Array(ArrayRepresentation { data_type, shape: vec![5, 6], fill_value })
}

/// Says that it works element by element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Filter {
    /// Adds one to each byte.
    Honest,
    /// Stores differences of neighbours.
    DependsOnNeighbours,
}

impl ArrayToArray for Filter {
    fn encoded_representation(&self, decoded: &ArrayRepresentation) -> Result<ArrayRepresentation, CodecError> {
        Ok(decoded.clone())
    }
    fn decode(&self, _: &ArrayRepresentation, encoded: &[u8], decoded: &mut [u8]) -> Result<(), CodecError> {
        let mut sum = 0u8;
        for (to, from) in decoded.iter_mut().zip(encoded).rev() {
            sum = if *self == Self::Honest { from.wrapping_sub(1) } else { sum.wrapping_add(*from) };
            *to = sum;
        }
        Ok(())
    }
    fn encode(&self, _: &ArrayRepresentation, decoded: &[u8], encoded: &mut [u8]) -> Result<(), CodecError> {
        let mut last = 0u8;
        for (to, from) in encoded.iter_mut().zip(decoded).rev() {
            *to = if *self == Self::Honest { from.wrapping_add(1) } else { from.wrapping_sub(last) };
            last = *from;
        }
        Ok(())
    }
    fn is_elementwise(&self) -> bool {
        true
    }
}

fn filter(filter: Filter) -> Suite {
    let provider = HostProvider::new("wrong").with("filter", move |_, _| Ok(SimpleCodec::array_to_array(filter)));
    CodecUnderTest::new(Arc::new(provider), Extension::new("filter"), array(DataType::UInt8)).into()
}

/// Floats without their last bits, to be within 1/1000 of themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rounding {
    Honest,
    RoundsTooMuch,
}

impl ArrayToArray for Rounding {
    fn encoded_representation(&self, decoded: &ArrayRepresentation) -> Result<ArrayRepresentation, CodecError> {
        Ok(decoded.clone())
    }
    fn decode(&self, _: &ArrayRepresentation, encoded: &[u8], decoded: &mut [u8]) -> Result<(), CodecError> {
        decoded.copy_from_slice(encoded);
        Ok(())
    }
    fn encode(&self, _: &ArrayRepresentation, decoded: &[u8], encoded: &mut [u8]) -> Result<(), CodecError> {
        let lost = if *self == Self::Honest { 12 } else { 16 };
        for (to, from) in encoded.chunks_exact_mut(4).zip(decoded.chunks_exact(4)) {
            let bits = u32::from_ne_bytes(from.try_into().unwrap()) >> lost << lost;
            to.copy_from_slice(&bits.to_ne_bytes());
        }
        Ok(())
    }
}

fn rounding(rounding: Rounding) -> Suite {
    let provider = HostProvider::new("wrong").with("rounding", move |_, _| Ok(SimpleCodec::array_to_array(rounding)));
    let numbers = (0..30).flat_map(|i| (i as f32 * 1.7 - 20.0).to_ne_bytes()).collect();
    let subject = CodecUnderTest::new(Arc::new(provider), Extension::new("rounding"), array(DataType::Float32));
    subject.with_samples(vec![Sample::Bytes(numbers)]).lossy_within(ErrorBound::Relative(1e-3)).into()
}

/// Floats as the bytes that they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Floats {
    Honest,
    /// Every NaN becomes the one that arithmetic makes.
    LosesNanPayloads,
    /// -0.0 becomes 0.0.
    LosesTheSignOfZero,
    /// Subnormal numbers become zero.
    FlushesSubnormals,
}

impl ArrayToBytes for Floats {
    fn encoded_len(&self, decoded: &ArrayRepresentation, _: &Limits) -> Result<ByteLen, CodecError> {
        Ok(ByteLen::Exact(decoded.fixed_len("floats")? as u64))
    }
    fn decode(&self, _: &ArrayRepresentation, encoded: &[u8], decoded: &mut [u8]) -> Result<(), CodecError> {
        if encoded.len() != decoded.len() {
            return Err(CodecError::size("floats", decoded.len(), encoded.len()));
        }
        decoded.copy_from_slice(encoded);
        Ok(())
    }
    fn encode(&self, _: &ArrayRepresentation, decoded: &[u8], encoded: &mut Vec<u8>) -> Result<(), CodecError> {
        for element in decoded.chunks_exact(4) {
            let value = f32::from_ne_bytes(element.try_into().unwrap());
            let value = match self {
                Self::LosesNanPayloads if value.is_nan() => f32::NAN,
                Self::LosesTheSignOfZero if value == 0.0 => 0.0,
                Self::FlushesSubnormals if value.is_subnormal() => 0.0,
                _ => value,
            };
            encoded.extend(value.to_ne_bytes());
        }
        Ok(())
    }
}

fn floats(floats: Floats) -> Suite {
    let provider = HostProvider::new("wrong").with("floats", move |_, _| Ok(SimpleCodec::array_to_bytes(floats)));
    CodecUnderTest::new(Arc::new(provider), Extension::new("floats"), array(DataType::Float32)).into()
}

/// Encodes arrays of any size as if they had the right one.
#[derive(Debug)]
struct AnySize(HostProvider);

#[derive(Debug)]
struct AnySizeSegment(Arc<dyn HostSegment>, usize);

impl HostSegment for AnySizeSegment {
    fn decode(&self, slots: &mut [DecodeSlot<'_>], scratch: &mut Scratch) {
        self.0.decode(slots, scratch);
    }
    fn encode(&self, slots: &mut [EncodeSlot<'_>], scratch: &mut Scratch) {
        for slot in slots {
            let Source::Bytes(bytes) = slot.decoded else { continue };
            let mut bytes = bytes.to_vec();
            bytes.resize(self.1, 0);
            let mut one = [EncodeSlot { decoded: Source::Bytes(&bytes), encoded: slot.encoded, status: Ok(()) }];
            self.0.encode(&mut one, scratch);
            let [done] = one;
            slot.status = done.status;
        }
    }
}

impl CodecProvider for AnySize {
    fn name(&self) -> &str {
        "wrong"
    }
    fn placement(&self) -> Placement {
        Placement::Host
    }
    fn codecs(&self) -> Vec<String> {
        self.0.codecs()
    }
    fn encoded_representation(
        &self,
        codec: &Extension,
        decoded: &Representation,
        limits: &Limits,
    ) -> Result<Option<Representation>, CodecError> {
        self.0.encoded_representation(codec, decoded, limits)
    }
    fn bind(&self, stages: &[Stage], direction: Direction) -> Result<Option<Bound>, CodecError> {
        let Some(bound) = self.0.bind(stages, direction)? else { return Ok(None) };
        let Segment::Host(inner) = bound.segment else { return Ok(None) };
        let len = stages[0].decoded.byte_len()?.map_or(0, ByteLen::upper) as usize;
        Ok(Some(Bound { consumed: bound.consumed, segment: Segment::Host(Arc::new(AnySizeSegment(inner, len))) }))
    }
}

fn any_size() -> Suite {
    let inner = HostProvider::new("wrong").with("floats", |_, _| Ok(SimpleCodec::array_to_bytes(Floats::Honest)));
    CodecUnderTest::new(Arc::new(AnySize(inner)), Extension::new("floats"), array(DataType::Float32)).into()
}

pub(crate) fn honest() -> Vec<Suite> {
    vec![filter(Filter::Honest), rounding(Rounding::Honest), floats(Floats::Honest)]
}

pub(crate) fn wrong() -> Vec<Wrong> {
    let of_floats = |fault| Wrong::alone(fault, "codec/round-trip", move || floats(fault));
    vec![
        Wrong::alone(Filter::DependsOnNeighbours, "codec/elementwise", || filter(Filter::DependsOnNeighbours)),
        Wrong::alone(Rounding::RoundsTooMuch, "codec/error-bound", || rounding(Rounding::RoundsTooMuch)),
        of_floats(Floats::LosesNanPayloads),
        of_floats(Floats::LosesTheSignOfZero),
        of_floats(Floats::FlushesSubnormals),
        Wrong::alone("EncodesArraysOfAnySize", "codec/encode/other-size", any_size),
    ]
}

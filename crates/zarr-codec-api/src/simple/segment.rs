//! A run of per-chunk codecs as one segment: the fewest passes over the bytes, and scratch memory reused.

use crate::{
    ArrayRepresentation, Blocks, CodecError, DecodeSlot, EncodeSlot, HostSegment, Pieces, Representation, Scratch, SimpleCodec, Source,
    Stage, Target,
};

/// One codec with the sizes on either side of it.
#[derive(Debug)]
pub(super) struct Step {
    name: String,
    codec: SimpleCodec,
    /// The array on the decoded side, for codecs that take one.
    array: Option<ArrayRepresentation>,
    /// Bytes on the decoded side; the most, where not exact. `None` for elements of variable length.
    decoded_len: Option<usize>,
    decoded_exact: bool,
    /// Bytes on the encoded side of an array→array codec.
    encoded_len: usize,
}

impl Step {
    pub(super) fn new(stage: &Stage, codec: SimpleCodec) -> Result<Self, CodecError> {
        let to_usize = |len: u64| {
            usize::try_from(len)
                .map_err(|_| CodecError::unsupported(&stage.codec.name, format!("{len} bytes do not fit the address space")))
        };
        let decoded = stage.decoded.byte_len()?;
        let encoded_len = match &stage.encoded {
            Representation::Array(array) => array.fixed_len(&stage.codec.name)?,
            Representation::Bytes(_) => 0,
        };
        Ok(Self {
            name: stage.codec.name.clone(),
            codec,
            array: stage.decoded.as_array().cloned(),
            decoded_len: decoded.map(|len| to_usize(len.upper())).transpose()?,
            decoded_exact: decoded.is_some_and(|len| len.exact().is_some()),
            encoded_len,
        })
    }

    /// The decoded side as an array; every codec that takes an array was bound to one.
    fn array(&self) -> Result<&ArrayRepresentation, CodecError> {
        self.array.as_ref().ok_or_else(|| CodecError::metadata(&self.name, "takes an array, and was given bytes"))
    }

    /// The part of `encoded` that is decoded as it is.
    fn view<'a>(&self, encoded: &'a [u8]) -> Option<Result<&'a [u8], CodecError>> {
        match &self.codec {
            SimpleCodec::BytesToBytes(codec) => codec.view(encoded),
            SimpleCodec::ArrayToBytes(codec) => {
                let array = self.array.as_ref()?;
                let len = self.decoded_len?;
                codec.is_verbatim(array).then(|| exact(&self.name, encoded, len))
            }
            SimpleCodec::ArrayToArray(codec) => codec.decodes_verbatim().then_some(Ok(encoded)),
        }
    }

    fn is_verbatim(&self) -> bool {
        match (&self.codec, &self.array) {
            (SimpleCodec::ArrayToBytes(codec), Some(array)) => codec.is_verbatim(array),
            (SimpleCodec::ArrayToArray(codec), _) => codec.decodes_verbatim(),
            _ => false,
        }
    }

    /// bitround decodes verbatim and yet encodes: only array→bytes codecs are verbatim both ways.
    fn is_verbatim_both_ways(&self) -> bool {
        matches!(self.codec, SimpleCodec::ArrayToBytes(_)) && self.is_verbatim()
    }

    /// Whether decoding can be done on the destination's own bytes, after the step before has filled it.
    fn is_in_place(&self) -> bool {
        match (&self.codec, &self.array) {
            (SimpleCodec::ArrayToBytes(codec), Some(array)) => codec.is_verbatim(array) || codec.is_in_place(array),
            (SimpleCodec::ArrayToArray(codec), _) => codec.decodes_verbatim(),
            _ => false,
        }
    }

    fn decode_in_place(&self, bytes: &mut [u8]) -> Result<(), CodecError> {
        if let SimpleCodec::ArrayToBytes(codec) = &self.codec {
            let array = self.array()?;
            if !codec.is_verbatim(array) && !codec.decode_in_place(array, bytes) {
                return Err(CodecError::unsupported(&self.name, "claims to decode in place, and does not"));
            }
        }
        Ok(())
    }

    fn decode(&self, encoded: &[u8], decoded: &mut [u8]) -> Result<(), CodecError> {
        match &self.codec {
            SimpleCodec::BytesToBytes(codec) => codec.decode(encoded, decoded),
            SimpleCodec::ArrayToBytes(codec) => codec.decode(self.array()?, encoded, decoded),
            SimpleCodec::ArrayToArray(codec) => codec.decode(self.array()?, exact(&self.name, encoded, self.encoded_len)?, decoded),
        }
    }
}

fn exact<'a>(codec: &str, bytes: &'a [u8], expected: usize) -> Result<&'a [u8], CodecError> {
    if bytes.len() == expected { Ok(bytes) } else { Err(CodecError::size(codec, expected, bytes.len())) }
}

/// Stages in the order of the metadata: array side first.
#[derive(Debug)]
pub(super) struct SimpleSegment {
    steps: Vec<Step>,
}

/// What has been decoded so far.
enum Current<'a> {
    Borrowed(&'a [u8]),
    Owned(Vec<u8>),
}

impl Current<'_> {
    fn bytes(&self) -> &[u8] {
        match self {
            Current::Borrowed(bytes) => bytes,
            Current::Owned(bytes) => bytes,
        }
    }

    fn recycle(self, scratch: &mut Scratch) {
        if let Current::Owned(bytes) = self {
            scratch.give(bytes);
        }
    }
}

impl SimpleSegment {
    pub(super) fn new(steps: Vec<Step>) -> Self {
        Self { steps }
    }

    /// Steps that must move bytes come first; this is how many, from the array side, can then work in place.
    fn in_place(&self) -> usize {
        self.steps.iter().take_while(|step| step.is_in_place()).count()
    }

    fn decode_slot(&self, encoded: &[u8], target: &mut Target<'_>, scratch: &mut Scratch) -> Result<(), CodecError> {
        let in_place = self.in_place().min(self.steps.len());
        let (tail, moving) = self.steps.split_at(in_place);
        let mut current = Current::Borrowed(encoded);
        for (index, step) in moving.iter().enumerate().rev() {
            let last = index == 0;
            if let Current::Borrowed(bytes) = current
                && let Some(view) = step.view(bytes)
            {
                current = Current::Borrowed(view?);
                continue;
            }
            if last {
                let result = self.decode_last(step, tail, current.bytes(), target);
                current.recycle(scratch);
                return result;
            }
            let next = step.decode_to_scratch(current.bytes(), scratch);
            current.recycle(scratch);
            current = Current::Owned(next?);
        }
        let result = self.copy_out(tail, current.bytes(), target);
        current.recycle(scratch);
        result
    }

    /// The step that writes the target, then the steps that work on it in place.
    fn decode_last(&self, step: &Step, tail: &[Step], encoded: &[u8], target: &mut Target<'_>) -> Result<(), CodecError> {
        match target {
            Target::Exact(decoded) => {
                step.decode(encoded, decoded)?;
                tail.iter().rev().try_for_each(|step| step.decode_in_place(decoded))
            }
            Target::Growing { bytes, limit } => match &step.codec {
                SimpleCodec::BytesToBytes(codec) => codec.decode_growing(encoded, bytes, *limit),
                _ => Err(CodecError::parameter(&step.name, "an array of known size was asked for as bytes of unknown size")),
            },
            Target::Variable { elements, limit } => match &step.codec {
                SimpleCodec::ArrayToBytes(codec) => codec.decode_variable(step.array()?, encoded, elements, *limit),
                _ => Err(CodecError::unsupported(&step.name, "elements of variable length are not supported")),
            },
        }
    }

    /// Every step was a view: one copy, then the steps that work in place.
    fn copy_out(&self, tail: &[Step], encoded: &[u8], target: &mut Target<'_>) -> Result<(), CodecError> {
        let name = self.steps.first().map_or("bytes", |step| &step.name);
        match target {
            Target::Exact(decoded) => {
                let expected = decoded.len();
                decoded.copy_from_slice(exact(name, encoded, expected)?);
                tail.iter().rev().try_for_each(|step| step.decode_in_place(decoded))
            }
            Target::Growing { .. } if !tail.is_empty() => {
                Err(CodecError::parameter(name, "an array of known size was asked for as bytes of unknown size"))
            }
            Target::Growing { bytes, limit } => {
                if encoded.len() > *limit {
                    return Err(CodecError::limit(name, *limit));
                }
                bytes.extend_from_slice(encoded);
                Ok(())
            }
            Target::Variable { .. } => Err(CodecError::unsupported(name, "elements of variable length are not supported")),
        }
    }

    fn encode_slot(&self, source: Source<'_>, encoded: &mut Vec<u8>, scratch: &mut Scratch) -> Result<(), CodecError> {
        let mut current: Option<Vec<u8>> = None;
        for (index, step) in self.steps.iter().enumerate() {
            let last = index + 1 == self.steps.len();
            let input = match (&current, source) {
                (Some(bytes), _) => Source::Bytes(bytes),
                (None, source) => source,
            };
            if let (false, Source::Bytes(bytes), Some(len)) = (last, input, step.decoded_len)
                && step.is_verbatim_both_ways()
            {
                exact(&step.name, bytes, len)?;
                continue;
            }
            let mut output = if last { std::mem::take(encoded) } else { scratch.take() };
            let result = step.encode(input, &mut output, scratch);
            if let Some(bytes) = current.take() {
                scratch.give(bytes);
            }
            if last {
                *encoded = output;
                return result;
            }
            current = Some(output);
            result?;
        }
        Ok(())
    }
}

impl Step {
    fn decode_to_scratch(&self, encoded: &[u8], scratch: &mut Scratch) -> Result<Vec<u8>, CodecError> {
        let len = self.decoded_len.ok_or_else(|| CodecError::unsupported(&self.name, "elements of variable length are not supported"))?;
        if self.decoded_exact {
            let mut decoded = scratch.try_take_len(len, &self.name)?;
            self.decode(encoded, &mut decoded)?;
            return Ok(decoded);
        }
        let SimpleCodec::BytesToBytes(codec) = &self.codec else {
            return Err(CodecError::unsupported(&self.name, "an array of unknown size"));
        };
        let mut decoded = scratch.take();
        codec.decode_growing(encoded, &mut decoded, len)?;
        Ok(decoded)
    }

    fn encode(&self, source: Source<'_>, encoded: &mut Vec<u8>, scratch: &mut Scratch) -> Result<(), CodecError> {
        match (&self.codec, source) {
            (SimpleCodec::BytesToBytes(codec), Source::Bytes(bytes)) => codec.encode(bytes, encoded),
            (SimpleCodec::ArrayToBytes(codec), Source::Bytes(bytes)) => {
                let len = self.array()?.fixed_len(&self.name)?;
                codec.encode(self.array()?, exact(&self.name, bytes, len)?, encoded)
            }
            (SimpleCodec::ArrayToBytes(codec), Source::Variable(elements)) => {
                let array = self.array()?;
                let expected = array.elements()?;
                if elements.len() != expected {
                    return Err(CodecError::parameter(&self.name, format!("expected {expected} elements, found {}", elements.len())));
                }
                codec.encode_variable(array, elements, encoded)
            }
            (SimpleCodec::ArrayToArray(codec), Source::Bytes(bytes)) => {
                let array = self.array()?;
                let mut output = scratch.try_take_len(self.encoded_len, &self.name)?;
                let result = codec.encode(array, exact(&self.name, bytes, array.fixed_len(&self.name)?)?, &mut output);
                scratch.give(std::mem::replace(encoded, output));
                result
            }
            (_, Source::Variable(_)) => Err(CodecError::unsupported(&self.name, "elements of variable length are not supported")),
        }
    }
}

impl HostSegment for SimpleSegment {
    fn decode(&self, slots: &mut [DecodeSlot<'_>], scratch: &mut Scratch) {
        for slot in slots {
            slot.status = self.decode_slot(slot.encoded, &mut slot.decoded, scratch);
        }
    }

    fn encode(&self, slots: &mut [EncodeSlot<'_>], scratch: &mut Scratch) {
        for slot in slots {
            slot.status = self.encode_slot(slot.decoded, slot.encoded, scratch);
        }
    }

    fn is_verbatim(&self) -> bool {
        self.steps.iter().all(Step::is_verbatim)
    }

    /// Of the one codec that moves bytes, where all others leave them as they are.
    fn blocks<'a>(&self, encoded: &'a [u8]) -> Option<Box<dyn Blocks + 'a>> {
        let first = self.steps.iter().position(|step| !step.is_verbatim())?;
        let (step, checksums) = self.steps.get(first..)?.split_first()?;
        let SimpleCodec::BytesToBytes(codec) = &step.codec else { return None };
        let decoded_len = step.decoded_len.filter(|_| step.decoded_exact)?;
        let mut current = encoded;
        for step in checksums.iter().rev() {
            current = step.view(current)?.ok()?;
        }
        codec.blocks(current, decoded_len)
    }

    /// Of the last codec, where all others leave bytes as they are. A checksum behind it would have to see all of them first.
    fn pieces(&self, wanted: usize) -> Option<Box<dyn Pieces>> {
        let (step, others) = self.steps.split_last()?;
        let SimpleCodec::BytesToBytes(codec) = &step.codec else { return None };
        let decoded_len = step.decoded_len.filter(|_| step.decoded_exact)?;
        others.iter().all(Step::is_verbatim).then(|| codec.pieces(decoded_len, wanted))?
    }

    fn view<'a>(&self, encoded: &'a [u8]) -> Option<Result<&'a [u8], CodecError>> {
        let mut current = encoded;
        for step in self.steps.iter().rev() {
            match step.view(current)? {
                Ok(view) => current = view,
                Err(error) => return Some(Err(error)),
            }
        }
        Some(Ok(current))
    }
}

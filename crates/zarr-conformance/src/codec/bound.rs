use std::sync::Arc;

use zarr_codec_api::{
    CodecError, DecodeSlot, Direction, EncodeSlot, HostSegment, Limits, Placement, Representation, Scratch, Segment, Source, Stage, Target,
    VariableData,
};

use super::CodecSubject;
use crate::samples::Sample;
use crate::suite::{Broken, ensure};

/// The codec of a subject, bound both ways.
pub(super) struct Codec {
    pub(super) stage: Stage,
    pub(super) decoder: Arc<dyn HostSegment>,
    pub(super) encoder: Arc<dyn HostSegment>,
    /// Bytes on the decoded side, where certain.
    pub(super) exact: Option<usize>,
    /// The most bytes on the decoded side.
    pub(super) most: usize,
}

impl Codec {
    pub(super) fn of(subject: &dyn CodecSubject) -> Result<Self, Broken> {
        Self::over(subject, subject.decoded().clone())
    }

    /// The same codec over another representation.
    pub(super) fn over(subject: &dyn CodecSubject, decoded: Representation) -> Result<Self, Broken> {
        let provider = subject.provider();
        let limits = Limits::default();
        let encoded = provider.encoded_representation(subject.codec(), &decoded, &limits)?;
        let encoded = encoded.ok_or_else(|| Broken::Failed("the provider does not know its own codec".into()))?;
        let stage = Stage { codec: subject.codec().clone(), decoded, encoded };
        let bind = |direction| -> Result<Arc<dyn HostSegment>, Broken> {
            let bound = provider.bind(std::slice::from_ref(&stage), direction)?;
            let bound = bound.ok_or_else(|| Broken::Failed(format!("the provider does not take its own codec to {direction:?}")))?;
            ensure!(bound.consumed == 1, "took {} of 1 stages", bound.consumed);
            match bound.segment {
                Segment::Host(segment) => Ok(segment),
                Segment::Device(_) => {
                    Err(Broken::Failed("a segment on a device, from a provider that was to be checked on the host".into()))
                }
            }
        };
        ensure!(provider.placement() == Placement::Host, "works on the host, and says that it is placed on {}", provider.placement());
        let len = stage.decoded.byte_len()?;
        let most = len.map_or(limits.variable_chunk, |len| len.upper());
        Ok(Self {
            decoder: bind(Direction::Decode)?,
            encoder: bind(Direction::Encode)?,
            exact: len.and_then(|len| len.exact()).map(|len| len as usize),
            most: usize::try_from(most).unwrap_or(usize::MAX),
            stage,
        })
    }

    pub(super) fn encode(&self, sample: &Sample) -> Result<Vec<u8>, CodecError> {
        let mut encoded = Vec::new();
        let decoded = source(sample);
        let mut slots = [EncodeSlot { decoded, encoded: &mut encoded, status: Ok(()) }];
        self.encoder.encode(&mut slots, &mut Scratch::new());
        let [slot] = slots;
        slot.status.map(|()| encoded)
    }

    pub(super) fn decode(&self, encoded: &[u8]) -> Result<Sample, CodecError> {
        let mut room = self.room();
        let mut slots = [DecodeSlot { encoded, decoded: room.target(), status: Ok(()) }];
        self.decoder.decode(&mut slots, &mut Scratch::new());
        let [slot] = slots;
        slot.status.map(|()| room.sample)
    }

    /// Room for one decoded chunk, with something else in it.
    pub(super) fn room(&self) -> Room {
        Room::new(&self.stage.decoded, self.exact, self.most)
    }
}

pub(super) fn source(sample: &Sample) -> Source<'_> {
    match sample {
        Sample::Bytes(bytes) => Source::Bytes(bytes),
        Sample::Variable(elements) => Source::Variable(elements),
    }
}

/// Where a chunk is decoded to.
pub(super) struct Room {
    pub(super) sample: Sample,
    exact: bool,
    most: usize,
}

impl Room {
    /// For a chunk of `decoded`, at most `most` bytes where that does not say how many.
    pub(super) fn of(decoded: &Representation, most: usize) -> Result<Self, CodecError> {
        let exact = decoded.byte_len()?.and_then(|len| len.exact()).map(|len| len as usize);
        Ok(Self::new(decoded, exact, most))
    }

    fn new(decoded: &Representation, exact: Option<usize>, most: usize) -> Self {
        let sample = match (decoded, exact) {
            (_, Some(len)) => Sample::Bytes(vec![0xC3; len]),
            (Representation::Bytes(_), None) => Sample::Bytes(Vec::new()),
            (Representation::Array(_), None) => Sample::Variable(VariableData::new()),
        };
        Self { sample, exact: exact.is_some(), most }
    }

    pub(super) fn target(&mut self) -> Target<'_> {
        match (&mut self.sample, self.exact) {
            (Sample::Bytes(bytes), true) => Target::Exact(bytes),
            (Sample::Bytes(bytes), false) => Target::Growing { bytes, limit: self.most },
            (Sample::Variable(elements), _) => Target::Variable { elements, limit: self.most },
        }
    }
}

/// A sample on its way through a codec.
pub(super) struct Chunk {
    pub(super) sample: Sample,
    pub(super) encoded: Vec<u8>,
    /// What the encoded bytes decode to, alone and with nothing unusual about it: whether that is what it should be is the law of round trips.
    pub(super) decoded: Sample,
}

/// The subject's samples.
pub(super) fn chunks(subject: &dyn CodecSubject, codec: &Codec) -> Result<Vec<Chunk>, Broken> {
    let mut chunks = Vec::new();
    for sample in subject.samples()? {
        let encoded = codec.encode(&sample)?;
        let decoded = codec.decode(&encoded)?;
        chunks.push(Chunk { sample, encoded, decoded });
    }
    ensure!(!chunks.is_empty(), "the subject has no samples");
    Ok(chunks)
}

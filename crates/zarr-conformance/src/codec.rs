//! The laws of codecs, on the host and on devices.
//!
//! A subject is one codec with a configuration, over one representation:
//!
//! ```
//! use std::sync::Arc;
//! use zarr_codec_api::{ByteLen, BytesToBytes, CodecError, HostProvider, Representation, SimpleCodec};
//! use zarr_conformance::codec;
//! use zarr_meta::Extension;
//!
//! /// Flips every bit.
//! #[derive(Debug)]
//! struct Flip;
//!
//! impl BytesToBytes for Flip {
//!     fn encoded_len(&self, decoded: ByteLen) -> ByteLen {
//!         decoded
//!     }
//!     fn decode(&self, encoded: &[u8], decoded: &mut [u8]) -> Result<(), CodecError> {
//!         if encoded.len() != decoded.len() {
//!             return Err(CodecError::size("flip", decoded.len(), encoded.len()));
//!         }
//!         decoded.iter_mut().zip(encoded).for_each(|(to, from)| *to = !from);
//!         Ok(())
//!     }
//!     fn decode_growing(&self, encoded: &[u8], decoded: &mut Vec<u8>, limit: usize) -> Result<(), CodecError> {
//!         if encoded.len() > limit {
//!             return Err(CodecError::limit("flip", limit));
//!         }
//!         decoded.extend(encoded.iter().map(|byte| !byte));
//!         Ok(())
//!     }
//!     fn encode(&self, decoded: &[u8], encoded: &mut Vec<u8>) -> Result<(), CodecError> {
//!         encoded.extend(decoded.iter().map(|byte| !byte));
//!         Ok(())
//!     }
//! }
//!
//! let provider = Arc::new(HostProvider::new("mine").with("example.flip", |_, _| Ok(SimpleCodec::bytes_to_bytes(Flip))));
//! codec::assert_conforms(provider, Extension::new("example.flip"), Representation::Bytes(ByteLen::Exact(1000)));
//! ```
//!
//! Codecs on a device are held against a reference on the host: see [`device`].

mod batches;
mod decoding;
pub mod device;
mod values;

use std::sync::Arc;

use zarr_codec_api::{
    CodecError, CodecProvider, DecodeSlot, Direction, EncodeSlot, HostSegment, Limits, Representation, Scratch, Segment, Source, Stage,
    Target, VariableData,
};
use zarr_meta::Extension;

use crate::samples::{Sample, samples};
use crate::suite::{Broken, Case, Report, Subject, Suite, Trial, ensure};

/// A codec on the host, with a configuration and something to encode.
pub trait CodecSubject: Subject {
    /// The implementation.
    fn provider(&self) -> &dyn CodecProvider;

    /// Name and configuration.
    fn codec(&self) -> &Extension;

    /// What it encodes.
    fn decoded(&self) -> &Representation;

    /// Chunks of that.
    ///
    /// # Errors
    /// When there can be none.
    fn samples(&self) -> Result<Vec<Sample>, CodecError> {
        samples(self.decoded())
    }

    /// Whether decoding gives something else than was encoded. What it gives must then encode and decode to itself.
    fn is_lossy(&self) -> bool {
        false
    }
}

/// A codec as it comes, with what it does not support.
#[derive(Debug, Clone)]
pub struct CodecUnderTest {
    provider: Arc<dyn CodecProvider>,
    codec: Extension,
    decoded: Representation,
    samples: Option<Vec<Sample>>,
    lossy: bool,
    unsupported: Vec<String>,
}

impl CodecUnderTest {
    /// A lossless codec that claims to support everything.
    pub fn new(provider: Arc<dyn CodecProvider>, codec: Extension, decoded: Representation) -> Self {
        Self { provider, codec, decoded, samples: None, lossy: false, unsupported: Vec::new() }
    }

    /// Says that decoding gives something else than was encoded.
    #[must_use]
    pub fn lossy(mut self) -> Self {
        self.lossy = true;
        self
    }

    /// Chunks to encode, in the place of those of [`samples`].
    #[must_use]
    pub fn with_samples(mut self, samples: Vec<Sample>) -> Self {
        self.samples = Some(samples);
        self
    }

    /// Declares that cases whose ids begin with `start` are not supported.
    #[must_use]
    pub fn without(mut self, start: impl Into<String>) -> Self {
        self.unsupported.push(start.into());
        self
    }
}

impl Subject for CodecUnderTest {
    fn name(&self) -> String {
        format!("{} of {:?} by {}", self.codec.to_json().to_text(), self.decoded, self.provider.name())
    }

    fn unsupported(&self) -> &[String] {
        &self.unsupported
    }
}

impl CodecSubject for CodecUnderTest {
    fn provider(&self) -> &dyn CodecProvider {
        &*self.provider
    }

    fn codec(&self) -> &Extension {
        &self.codec
    }

    fn decoded(&self) -> &Representation {
        &self.decoded
    }

    fn samples(&self) -> Result<Vec<Sample>, CodecError> {
        self.samples.clone().map_or_else(|| samples(&self.decoded), Ok)
    }

    fn is_lossy(&self) -> bool {
        self.lossy
    }
}

impl From<CodecUnderTest> for Suite {
    fn from(subject: CodecUnderTest) -> Self {
        Self::new(Arc::new(subject) as Arc<dyn CodecSubject>, cases())
    }
}

/// All cases for codecs on the host.
pub fn cases() -> Vec<Case<dyn CodecSubject>> {
    let mut cases = values::cases();
    cases.extend(batches::cases());
    cases.extend(decoding::cases());
    cases
}

/// Runs all cases on a codec.
pub fn check(subject: &(dyn CodecSubject + 'static)) -> Report {
    Report::of(subject, &cases())
}

/// Panics unless a lossless codec holds all laws.
#[track_caller]
pub fn assert_conforms(provider: Arc<dyn CodecProvider>, codec: Extension, decoded: Representation) {
    check(&CodecUnderTest::new(provider, codec, decoded)).assert_conforms();
}

type CodecCase = Case<dyn CodecSubject>;

fn case(id: &str, says: &'static str, check: fn(&dyn CodecSubject, &Trial) -> Result<(), Broken>) -> CodecCase {
    Case::new(format!("codec/{id}"), says, move |subject: &(dyn CodecSubject + 'static), trial| check(subject, trial))
}

/// The codec of a subject, bound both ways.
struct Codec {
    stage: Stage,
    decoder: Arc<dyn HostSegment>,
    encoder: Arc<dyn HostSegment>,
    /// Bytes on the decoded side, where certain.
    exact: Option<usize>,
    /// The most bytes on the decoded side.
    most: usize,
}

impl Codec {
    fn of(subject: &dyn CodecSubject) -> Result<Self, Broken> {
        Self::over(subject, subject.decoded().clone())
    }

    /// The same codec over another representation.
    fn over(subject: &dyn CodecSubject, decoded: Representation) -> Result<Self, Broken> {
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

    fn encode(&self, sample: &Sample) -> Result<Vec<u8>, CodecError> {
        let mut encoded = Vec::new();
        let decoded = source(sample);
        let mut slots = [EncodeSlot { decoded, encoded: &mut encoded, status: Ok(()) }];
        self.encoder.encode(&mut slots, &mut Scratch::new());
        let [slot] = slots;
        slot.status.map(|()| encoded)
    }

    fn decode(&self, encoded: &[u8]) -> Result<Sample, CodecError> {
        let mut room = self.room();
        let mut slots = [DecodeSlot { encoded, decoded: room.target(), status: Ok(()) }];
        self.decoder.decode(&mut slots, &mut Scratch::new());
        let [slot] = slots;
        slot.status.map(|()| room.sample)
    }

    /// Room for one decoded chunk, with something else in it.
    fn room(&self) -> Room {
        let sample = match (&self.stage.decoded, self.exact) {
            (_, Some(len)) => Sample::Bytes(vec![0xC3; len]),
            (Representation::Bytes(_), None) => Sample::Bytes(Vec::new()),
            (Representation::Array(_), None) => Sample::Variable(VariableData::new()),
        };
        Room { sample, exact: self.exact.is_some(), most: self.most }
    }
}

fn source(sample: &Sample) -> Source<'_> {
    match sample {
        Sample::Bytes(bytes) => Source::Bytes(bytes),
        Sample::Variable(elements) => Source::Variable(elements),
    }
}

/// Where a chunk is decoded to.
struct Room {
    sample: Sample,
    exact: bool,
    most: usize,
}

impl Room {
    fn target(&mut self) -> Target<'_> {
        match (&mut self.sample, self.exact) {
            (Sample::Bytes(bytes), true) => Target::Exact(bytes),
            (Sample::Bytes(bytes), false) => Target::Growing { bytes, limit: self.most },
            (Sample::Variable(elements), _) => Target::Variable { elements, limit: self.most },
        }
    }
}

/// The samples with their encoded bytes and with what these decode to: the samples themselves, if the codec is lossless.
fn triples(subject: &dyn CodecSubject, codec: &Codec) -> Result<Vec<(Sample, Vec<u8>, Sample)>, Broken> {
    let mut triples = Vec::new();
    for sample in subject.samples()? {
        let encoded = codec.encode(&sample)?;
        let decoded = if subject.is_lossy() { codec.decode(&encoded)? } else { sample.clone() };
        triples.push((sample, encoded, decoded));
    }
    ensure!(!triples.is_empty(), "the subject has no samples");
    Ok(triples)
}

use std::ops::Deref;
use std::sync::Arc;

use zarr_codec_api::{Chain, DeviceSegment, Direction, Representation, Scratch, Segment, Source, Target};

use super::{DeviceCodecSubject, Runner};
use crate::samples::{Sample, samples};
use crate::suite::{Broken, ensure};

/// A subject's segment, and chunks for it.
pub(super) struct Bound<'a> {
    pub(super) chain: &'a Chain,
    pub(super) runner: Runner,
    /// Encoded and decoded, by the reference.
    pub(super) chunks: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Deref for Bound<'_> {
    type Target = Runner;

    fn deref(&self) -> &Runner {
        &self.runner
    }
}

impl<'a> Bound<'a> {
    pub(super) fn of(subject: &'a dyn DeviceCodecSubject) -> Result<Self, Broken> {
        let chain = subject.reference();
        let array = chain.representation();
        let segment = bind(subject)?;
        let mut chunks = Vec::new();
        for sample in samples(&Representation::Array(array.clone()))? {
            let Sample::Bytes(bytes) = sample else {
                return Err(Broken::Unsupported("elements of variable length".into()));
            };
            let mut encoded = Vec::new();
            chain.encode(Source::Bytes(&bytes), &mut encoded, &mut Scratch::new())?;
            let mut decoded = vec![0; bytes.len()];
            chain.decode(&encoded, Target::Exact(&mut decoded), &mut Scratch::new())?;
            chunks.push((encoded, decoded));
        }
        let shape = array.shape.iter().map(|&len| len as usize).collect();
        let item_size = array.data_type.fixed_size().unwrap_or(1);
        Ok(Self { chain, runner: Runner { device: Arc::clone(subject.device()), segment, shape, item_size }, chunks })
    }

    /// The encoded chunks.
    pub(super) fn encoded(&self) -> Vec<&[u8]> {
        self.chunks.iter().map(|(encoded, _)| encoded.as_slice()).collect()
    }

    /// What the reference says of encoded bytes.
    pub(super) fn verdict(&self, encoded: &[u8]) -> Option<Vec<u8>> {
        let mut decoded = vec![0; self.len()];
        self.chain.decode(encoded, Target::Exact(&mut decoded), &mut Scratch::new()).is_ok().then_some(decoded)
    }
}

/// The segment that decodes the whole chain.
pub(super) fn bind(subject: &dyn DeviceCodecSubject) -> Result<Arc<dyn DeviceSegment>, Broken> {
    let stages = subject.reference().stages();
    let bound = subject.provider().bind(stages, Direction::Decode)?;
    let bound = bound.ok_or_else(|| Broken::Unsupported("the provider does not take the chain".into()))?;
    ensure!(bound.consumed == stages.len(), "the provider took {} of {} stages", bound.consumed, stages.len());
    match bound.segment {
        Segment::Device(segment) => Ok(segment),
        Segment::Host(_) => Err(Broken::Failed("a segment on the host, from a provider that was to be checked on a device".into())),
    }
}

//! The laws of two implementations of one codec, or of one chain of codecs: what one encodes the other decodes, and what one refuses the other
//! refuses.
//!
//! ```
//! use std::sync::Arc;
//! use zarr_codec_api::{ByteLen, Representation};
//! use zarr_conformance::codec::pair::{PairUnderTest, Side};
//! use zarr_meta::Extension;
//! # use zarr_codec_api::{BytesToBytes, CodecError, HostProvider, SimpleCodec};
//! # #[derive(Debug)]
//! # struct Same;
//! # impl BytesToBytes for Same {
//! #     fn encoded_len(&self, decoded: ByteLen) -> ByteLen { decoded }
//! #     fn decode(&self, encoded: &[u8], decoded: &mut [u8]) -> Result<(), CodecError> {
//! #         if encoded.len() != decoded.len() { return Err(CodecError::size("same", decoded.len(), encoded.len())); }
//! #         decoded.copy_from_slice(encoded);
//! #         Ok(())
//! #     }
//! #     fn decode_growing(&self, encoded: &[u8], decoded: &mut Vec<u8>, limit: usize) -> Result<(), CodecError> {
//! #         if encoded.len() > limit { return Err(CodecError::limit("same", limit)); }
//! #         decoded.extend(encoded);
//! #         Ok(())
//! #     }
//! #     fn encode(&self, decoded: &[u8], encoded: &mut Vec<u8>) -> Result<(), CodecError> { encoded.extend(decoded); Ok(()) }
//! # }
//! # let provider = |name: &str| HostProvider::new(name).with("example.same", |_, _| Ok(SimpleCodec::bytes_to_bytes(Same)));
//! # let (theirs, mine) = (provider("theirs"), provider("mine"));
//!
//! let codecs = vec![Extension::new("example.same")];
//! let chunk = Representation::Bytes(ByteLen::Exact(1000));
//! let pair = PairUnderTest::new(Side::on_host(Arc::new(theirs)), Side::on_host(Arc::new(mine)), codecs, chunk);
//! zarr_conformance::assert_conforms(pair.deterministic());
//! ```

mod bound;
mod divergence;
pub mod known;
mod laws;

use std::fmt;
use std::sync::Arc;

use zarr_buffer_api::Device;
use zarr_codec_api::{CodecError, CodecProvider, Placement, Representation};
use zarr_meta::Extension;

use super::WorkCounter;
use crate::samples::{Sample, samples};
use crate::suite::{Case, Subject, Suite};
pub use divergence::Divergence;
#[cfg(feature = "runner")]
pub(crate) use laws::DIVERGENCES;

/// One of the two implementations.
#[derive(Clone)]
pub struct Side {
    provider: Arc<dyn CodecProvider>,
    device: Option<Arc<dyn Device>>,
    work: Option<WorkCounter>,
}

impl fmt::Debug for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Side").field("provider", &self.provider).field("placement", &self.placement()).finish_non_exhaustive()
    }
}

impl Side {
    /// An implementation that works on the host.
    pub fn on_host(provider: Arc<dyn CodecProvider>) -> Self {
        Self { provider, device: None, work: None }
    }

    /// An implementation that works on `device`.
    pub fn on_device(provider: Arc<dyn CodecProvider>, device: Arc<dyn Device>) -> Self {
        Self { provider, device: Some(device), work: None }
    }

    /// Counts the implementation's work, in a unit of its own: a chunk that does not count was left to somebody else.
    #[must_use]
    pub fn counting(mut self, work_done: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        self.work = Some(Arc::new(work_done));
        self
    }

    /// Where it is declared to work.
    pub fn placement(&self) -> Placement {
        self.device.as_ref().map_or(Placement::Host, |device| Placement::Device(device.id()))
    }

    fn work_done(&self) -> Option<u64> {
        self.work.as_ref().map(|work| work())
    }
}

/// Two implementations of one chain of codecs, and something to encode. The first is the reference: it encodes the chunks that are made bad.
pub trait PairSubject: Subject {
    /// The reference, and the other one. The reference encodes; the other one decodes, and may encode.
    fn sides(&self) -> [&Side; 2];

    /// Names and configurations, in the order of the metadata.
    fn codecs(&self) -> &[Extension];

    /// What the first codec encodes. For implementations on a device, of exact size.
    fn decoded(&self) -> &Representation;

    /// Chunks of that.
    ///
    /// # Errors
    /// When there can be none.
    fn samples(&self) -> Result<Vec<Sample>, CodecError> {
        samples(self.decoded())
    }

    /// Whether decoding gives something else than was encoded. Both must then still decode the same stream to the same bits.
    fn is_lossy(&self) -> bool {
        false
    }

    /// Whether both encode the same chunk to the same bytes.
    fn is_deterministic(&self) -> bool {
        false
    }

    /// Where the two are known to part. A subject that has some declares `pair/divergences` as unsupported.
    fn divergences(&self) -> &[Divergence] {
        &[]
    }
}

/// A pair as it comes, with what it does not support.
#[derive(Debug, Clone)]
pub struct PairUnderTest {
    sides: [Side; 2],
    codecs: Vec<Extension>,
    decoded: Representation,
    samples: Option<Vec<Sample>>,
    lossy: bool,
    deterministic: bool,
    divergences: Vec<Divergence>,
    many: usize,
    unsupported: Vec<String>,
}

impl PairUnderTest {
    /// The chain `codecs` over chunks of `decoded`, by a reference and by another implementation.
    pub fn new(reference: Side, other: Side, codecs: Vec<Extension>, decoded: Representation) -> Self {
        let sides = [reference, other];
        Self {
            sides,
            codecs,
            decoded,
            samples: None,
            lossy: false,
            deterministic: false,
            divergences: Vec::new(),
            many: 100,
            unsupported: Vec::new(),
        }
    }

    /// Says that decoding gives something else than was encoded.
    #[must_use]
    pub fn lossy(mut self) -> Self {
        self.lossy = true;
        self
    }

    /// Says that both encode the same chunk to the same bytes.
    #[must_use]
    pub fn deterministic(mut self) -> Self {
        self.deterministic = true;
        self
    }

    /// Declares bytes on which the two are known to part. Reports show it; once the two agree on them, the laws fail.
    #[must_use]
    pub fn diverging(mut self, divergence: Divergence) -> Self {
        self.divergences.push(divergence);
        self.without(laws::DIVERGENCES)
    }

    /// Chunks to encode, in the place of those of [`samples`](crate::samples()).
    #[must_use]
    pub fn with_samples(mut self, samples: Vec<Sample>) -> Self {
        self.samples = Some(samples);
        self
    }

    /// Sets how many chunks are many: fewer for slow implementations.
    #[must_use]
    pub fn with_many(mut self, many: usize) -> Self {
        self.many = many;
        self
    }

    /// Declares that cases whose ids begin with `start` are not supported.
    #[must_use]
    pub fn without(mut self, start: impl Into<String>) -> Self {
        self.unsupported.push(start.into());
        self
    }
}

impl Subject for PairUnderTest {
    fn name(&self) -> String {
        let names: Vec<&str> = self.codecs.iter().map(|codec| codec.name.as_str()).collect();
        let [first, second] = &self.sides;
        format!("{} of {:?} by {} and {}", names.join(", "), self.decoded, first.provider.name(), second.provider.name())
    }

    fn unsupported(&self) -> &[String] {
        &self.unsupported
    }

    fn many(&self) -> usize {
        self.many
    }
}

impl PairSubject for PairUnderTest {
    fn sides(&self) -> [&Side; 2] {
        self.sides.each_ref()
    }

    fn codecs(&self) -> &[Extension] {
        &self.codecs
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

    fn is_deterministic(&self) -> bool {
        self.deterministic
    }

    fn divergences(&self) -> &[Divergence] {
        &self.divergences
    }
}

impl From<PairUnderTest> for Suite {
    fn from(subject: PairUnderTest) -> Self {
        let subject = Arc::new(subject) as Arc<dyn PairSubject>;
        let fed = Arc::clone(&subject);
        Self::new(subject, cases()).feeding(move |encoded, trial| laws::feed(&*fed, encoded, trial))
    }
}

/// All cases for pairs.
pub fn cases() -> Vec<Case<dyn PairSubject>> {
    laws::cases()
}

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
//! What a subject says of itself is checked: that it is [`deterministic`](CodecUnderTest::deterministic), how far it is
//! [`lossy`](CodecUnderTest::lossy_within), that it does its own [work](CodecUnderTest::counting). What it does not say is not asked for.
//!
//! Codecs on a device are held against a reference on the host: see [`device`]. Two implementations of one codec are held against each other:
//! see [`pair`]. What reference implementations encoded is decoded by `vectors` (feature `implementation`). Chunks of every data type and shape come from [`representations`](crate::representations).

mod bad_input;
mod batches;
mod bound;
mod decoding;
pub mod device;
mod encoding;
mod error_bound;
mod fenced;
mod mutants;
pub mod pair;
mod values;
#[cfg(feature = "implementation")]
pub mod vectors;

use std::fmt;
use std::sync::Arc;

use zarr_codec_api::{CodecError, CodecProvider, Representation};
use zarr_meta::Extension;

pub use self::error_bound::ErrorBound;

use crate::samples::{Sample, samples};
use crate::suite::{Broken, Case, Report, Subject, Suite, Trial};

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

    /// How far what is decoded may be from what was encoded.
    fn error_bound(&self) -> Option<ErrorBound> {
        None
    }

    /// Whether the same chunk always encodes to the same bytes.
    fn is_deterministic(&self) -> bool {
        false
    }

    /// How much this implementation has done so far, in a unit of its own, if it counts. Then every chunk must count: one that does not was
    /// left to somebody else.
    fn work_done(&self) -> Option<u64> {
        None
    }
}

/// A counter of work: see [`CodecSubject::work_done`].
type WorkCounter = Arc<dyn Fn() -> u64 + Send + Sync>;

/// A codec as it comes, with what it does not support.
#[derive(Clone)]
pub struct CodecUnderTest {
    provider: Arc<dyn CodecProvider>,
    codec: Extension,
    decoded: Representation,
    samples: Option<Vec<Sample>>,
    lossy: bool,
    error_bound: Option<ErrorBound>,
    deterministic: bool,
    work: Option<WorkCounter>,
    many: usize,
    unsupported: Vec<String>,
}

impl fmt::Debug for CodecUnderTest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CodecUnderTest").field("name", &self.name()).field("unsupported", &self.unsupported).finish_non_exhaustive()
    }
}

impl CodecUnderTest {
    /// A lossless codec that claims to support everything.
    pub fn new(provider: Arc<dyn CodecProvider>, codec: Extension, decoded: Representation) -> Self {
        Self {
            provider,
            codec,
            decoded,
            samples: None,
            lossy: false,
            error_bound: None,
            deterministic: false,
            work: None,
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

    /// Says that decoding gives something else than was encoded, and how far from it.
    #[must_use]
    pub fn lossy_within(mut self, bound: ErrorBound) -> Self {
        self.error_bound = Some(bound);
        self.lossy()
    }

    /// Says that the same chunk always encodes to the same bytes.
    #[must_use]
    pub fn deterministic(mut self) -> Self {
        self.deterministic = true;
        self
    }

    /// Counts the implementation's work: see [`CodecSubject::work_done`].
    #[must_use]
    pub fn counting(mut self, work_done: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        self.work = Some(Arc::new(work_done));
        self
    }

    /// Sets how many chunks are many: fewer for a slow codec.
    #[must_use]
    pub fn with_many(mut self, many: usize) -> Self {
        self.many = many;
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

    fn many(&self) -> usize {
        self.many
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

    fn error_bound(&self) -> Option<ErrorBound> {
        self.error_bound
    }

    fn is_deterministic(&self) -> bool {
        self.deterministic
    }

    fn work_done(&self) -> Option<u64> {
        self.work.as_ref().map(|work| work())
    }
}

impl From<CodecUnderTest> for Suite {
    fn from(subject: CodecUnderTest) -> Self {
        let subject = Arc::new(subject) as Arc<dyn CodecSubject>;
        let fed = Arc::clone(&subject);
        Self::new(subject, cases()).feeding(move |encoded, trial| bad_input::feed(&*fed, encoded, trial))
    }
}

/// All cases for codecs on the host.
pub fn cases() -> Vec<Case<dyn CodecSubject>> {
    let mut cases = values::cases();
    cases.extend(batches::cases());
    cases.extend(decoding::cases());
    cases.extend(bad_input::cases());
    cases.extend(encoding::cases());
    cases
}

/// Runs all cases on a codec, on this thread and for as long as they take.
pub fn check(subject: &(dyn CodecSubject + 'static)) -> Report {
    Report::of(subject, &cases())
}

/// Panics unless a lossless codec holds all laws.
#[track_caller]
pub fn assert_conforms(provider: Arc<dyn CodecProvider>, codec: Extension, decoded: Representation) {
    crate::assert_conforms(CodecUnderTest::new(provider, codec, decoded));
}

type CodecCase = Case<dyn CodecSubject>;

fn case(id: &str, says: &'static str, check: fn(&dyn CodecSubject, &Trial) -> Result<(), Broken>) -> CodecCase {
    Case::new(format!("codec/{id}"), says, move |subject: &(dyn CodecSubject + 'static), trial| check(subject, trial))
}

//! The laws of codecs on a device, held against a reference on the host.

mod bound;
mod decoding;
mod encoding;
mod memory;
mod queues;
mod runner;

use std::fmt;
use std::sync::Arc;

use zarr_buffer_api::Device;
use zarr_codec_api::{ArrayRepresentation, Chain, CodecError, CodecProvider, Policy, Registry};
use zarr_meta::Extension;

pub(super) use self::runner::{Padded, Runner};

use super::WorkCounter;
use crate::suite::{Broken, Case, Report, Subject, Suite, Trial};

/// A codec chain on a device.
pub trait DeviceCodecSubject: Subject {
    /// The device.
    fn device(&self) -> &Arc<dyn Device>;

    /// The implementation on the device. It takes the whole chain as one segment.
    fn provider(&self) -> &dyn CodecProvider;

    /// The same chain, on the host.
    fn reference(&self) -> &Chain;

    /// Who encodes parts of the chain on the host, for codecs that encode on the device.
    fn host(&self) -> &Registry;

    /// How much the device has done so far, in a unit of its own, if it counts. Then every batch must count: one that does not was left to
    /// somebody else.
    fn work_done(&self) -> Option<u64> {
        None
    }
}

/// A chain as it comes, with what it does not support.
#[derive(Clone)]
pub struct DeviceCodecUnderTest {
    device: Arc<dyn Device>,
    provider: Arc<dyn CodecProvider>,
    reference: Chain,
    host: Registry,
    work: Option<WorkCounter>,
    many: usize,
    unsupported: Vec<String>,
}

impl fmt::Debug for DeviceCodecUnderTest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeviceCodecUnderTest").field("name", &self.name()).field("unsupported", &self.unsupported).finish_non_exhaustive()
    }
}

impl DeviceCodecUnderTest {
    /// The chain `codecs` over chunks of `decoded`, of fixed size, by `provider` on `device`; `reference` has the same codecs on the host.
    ///
    /// # Errors
    /// When the reference does not take the chain.
    pub fn new(
        device: Arc<dyn Device>,
        provider: Arc<dyn CodecProvider>,
        reference: &Registry,
        codecs: &[Extension],
        decoded: ArrayRepresentation,
    ) -> Result<Self, CodecError> {
        let host = reference.clone();
        let reference = Chain::bind(codecs, decoded, reference, &Policy::Host)?;
        Ok(Self { device, provider, reference, host, work: None, many: 100, unsupported: Vec::new() })
    }

    /// Counts the device's work: see [`DeviceCodecSubject::work_done`].
    #[must_use]
    pub fn counting(mut self, work_done: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        self.work = Some(Arc::new(work_done));
        self
    }

    /// Sets how many chunks are many: fewer for a slow device.
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

impl Subject for DeviceCodecUnderTest {
    fn name(&self) -> String {
        let names: Vec<&str> = self.reference.stages().iter().map(|stage| stage.codec.name.as_str()).collect();
        format!("{} on {} by {}", names.join(", "), self.device.id(), self.provider.name())
    }

    fn unsupported(&self) -> &[String] {
        &self.unsupported
    }

    fn many(&self) -> usize {
        self.many
    }
}

impl DeviceCodecSubject for DeviceCodecUnderTest {
    fn device(&self) -> &Arc<dyn Device> {
        &self.device
    }

    fn provider(&self) -> &dyn CodecProvider {
        &*self.provider
    }

    fn reference(&self) -> &Chain {
        &self.reference
    }

    fn host(&self) -> &Registry {
        &self.host
    }

    fn work_done(&self) -> Option<u64> {
        self.work.as_ref().map(|work| work())
    }
}

impl From<DeviceCodecUnderTest> for Suite {
    fn from(subject: DeviceCodecUnderTest) -> Self {
        let subject = Arc::new(subject) as Arc<dyn DeviceCodecSubject>;
        let fed = Arc::clone(&subject);
        Self::new(subject, cases()).feeding(move |encoded, _| decoding::feed(&*fed, encoded))
    }
}

/// All cases for codecs on a device.
pub fn cases() -> Vec<Case<dyn DeviceCodecSubject>> {
    let mut cases = decoding::cases();
    cases.extend(memory::cases());
    cases.extend(queues::cases());
    cases.extend(encoding::cases());
    cases
}

/// Runs all cases on a chain, on this thread and for as long as they take.
pub fn check(subject: &(dyn DeviceCodecSubject + 'static)) -> Report {
    Report::of(subject, &cases())
}

type DeviceCodecCase = Case<dyn DeviceCodecSubject>;

fn case(id: &str, says: &'static str, check: fn(&dyn DeviceCodecSubject, &Trial) -> Result<(), Broken>) -> DeviceCodecCase {
    Case::new(format!("device-codec/{id}"), says, move |subject: &(dyn DeviceCodecSubject + 'static), trial| check(subject, trial))
}

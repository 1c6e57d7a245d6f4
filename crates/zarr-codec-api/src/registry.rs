use std::sync::Arc;

use zarr_buffer_api::DeviceId;
use zarr_meta::Extension;

use crate::chain::Answers;
use crate::{CodecError, CodecProvider, Placement, Representation};

/// Providers, in order of preference. A value: make one, add to it, pass it on. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Registry {
    providers: Vec<Arc<dyn CodecProvider>>,
    limits: Limits,
}

impl Registry {
    /// No providers.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a provider behind those already there.
    #[must_use]
    pub fn with(mut self, provider: impl CodecProvider) -> Self {
        self.providers.push(Arc::new(provider));
        self
    }

    /// Adds a provider before those already there.
    #[must_use]
    pub fn with_preferred(mut self, provider: impl CodecProvider) -> Self {
        self.providers.insert(0, Arc::new(provider));
        self
    }

    /// Sets the limits on data whose size metadata does not tell.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// The providers, in order of preference.
    pub fn providers(&self) -> impl Iterator<Item = &Arc<dyn CodecProvider>> {
        self.providers.iter()
    }

    /// What `codec` makes of `decoded`, as the first provider says that supports it.
    ///
    /// # Errors
    /// When no provider supports it: what the first one that knows the codec has against it. When a provider finds anything else wrong.
    pub fn encoded_representation(&self, codec: &Extension, decoded: &Representation) -> Result<Representation, CodecError> {
        let mut answers = Answers::default();
        for provider in &self.providers {
            if answers.take(provider.encoded_representation(codec, decoded, &self.limits))? {
                break;
            }
        }
        answers.found(&codec.name, "no provider in the registry knows this codec")
    }

    /// The limits on data whose size metadata does not tell.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The providers that `policy` allows on the host, in order.
    pub(crate) fn host<'a>(&'a self, policy: &'a Policy) -> impl Iterator<Item = &'a Arc<dyn CodecProvider>> {
        let wanted = policy.implementation();
        let of_host = || self.providers.iter().filter(|provider| provider.placement() == Placement::Host);
        let named = of_host().filter(move |provider| Some(provider.name()) == wanted);
        let others = of_host().filter(move |provider| Some(provider.name()) != wanted);
        named.chain(others)
    }

    /// The providers that `policy` allows on its device, in order.
    pub(crate) fn device(&self, device: DeviceId) -> impl Iterator<Item = &Arc<dyn CodecProvider>> {
        self.providers.iter().filter(move |provider| provider.placement() == Placement::Device(device))
    }
}

/// Bounds on what data may grow to where metadata does not say how large it is. Where it does, that size is the bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// The most bytes that one chunk of variable-length elements may decode to.
    pub variable_chunk: u64,
}

impl Default for Limits {
    /// 1 GiB for a chunk of variable-length elements.
    fn default() -> Self {
        Self { variable_chunk: 1 << 30 }
    }
}

/// Which implementations an array or a read may use.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Policy {
    /// The host only.
    #[default]
    Host,
    /// The device wherever it has an implementation, the host before it. What runs where shows in [`crate::Chain::explain`].
    Prefer(DeviceId),
    /// The device from the first stage to the last; a stage that it lacks is an error.
    Require(DeviceId),
    /// A host implementation by its provider's name, for every codec that it knows.
    Implementation(String),
}

impl Policy {
    /// The device named by the policy.
    pub fn device(&self) -> Option<DeviceId> {
        match self {
            Self::Prefer(device) | Self::Require(device) => Some(*device),
            Self::Host | Self::Implementation(_) => None,
        }
    }

    fn implementation(&self) -> Option<&str> {
        match self {
            Self::Implementation(name) => Some(name),
            _ => None,
        }
    }
}

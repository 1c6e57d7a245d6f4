use std::fmt;
use std::sync::Arc;

use zarr_buffer_api::DeviceId;
use zarr_meta::Extension;

use crate::{CodecError, DeviceSegment, HostSegment, Limits, Representation, Stage};

/// An implementation of one or more codecs. Several may know the same name.
pub trait CodecProvider: fmt::Debug + Send + Sync + 'static {
    /// The implementation's name, as a policy and `explain` name it: `cpu`, `cuda`, ...
    fn name(&self) -> &str;

    /// Where its segments run.
    fn placement(&self) -> Placement;

    /// The codec names that it knows.
    fn codecs(&self) -> Vec<String>;

    /// What `codec` makes of `decoded`: the representation on its encoded side. `None` when the provider does not know the codec.
    ///
    /// # Errors
    /// When the configuration is wrong, or the codec does not take such data. If the error is [`crate::CodecErrorKind::Unsupported`], the next
    /// provider is asked.
    fn encoded_representation(
        &self,
        codec: &Extension,
        decoded: &Representation,
        limits: &Limits,
    ) -> Result<Option<Representation>, CodecError>;

    /// Whether each element that `codec` encodes depends on that element alone and the shape stays: then a part of a chunk can be decoded
    /// on its own, and an array→array codec before a shard can be applied to its inner chunks one by one.
    fn is_elementwise(&self, codec: &Extension, decoded: &Representation) -> bool {
        let _ = (codec, decoded);
        false
    }

    /// Takes as many stages as one segment can fuse: for decoding from the encoded end (the last stages), for encoding from the array end (the
    /// first). `None` when it takes none.
    ///
    /// # Errors
    /// When the provider knows the codec, but not with this configuration. If the error is [`crate::CodecErrorKind::Unsupported`], the next
    /// provider is asked.
    fn bind(&self, stages: &[Stage], direction: Direction) -> Result<Option<Bound>, CodecError>;
}

/// Which way a segment is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From encoded bytes to the array.
    Decode,
    /// From the array to encoded bytes.
    Encode,
}

/// Where a provider's segments run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Placement {
    /// On the host, over slices.
    Host,
    /// On a device, over its buffers.
    Device(DeviceId),
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host => f.write_str("host"),
            Self::Device(device) => device.fmt(f),
        }
    }
}

/// What a provider took.
#[derive(Debug, Clone)]
pub struct Bound {
    /// How many stages, at least 1.
    pub consumed: usize,
    /// What runs them.
    pub segment: Segment,
}

/// A run of stages, bound to an implementation.
#[derive(Debug, Clone)]
pub enum Segment {
    /// Works on the host, at once.
    Host(Arc<dyn HostSegment>),
    /// Enqueues on a device.
    Device(Arc<dyn DeviceSegment>),
}

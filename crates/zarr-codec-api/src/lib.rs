//! The contract between Zarr arrays and codecs.
//!
//! A codec author reads [`BytesToBytes`], [`ArrayToBytes`] and [`ArrayToArray`]: three or four functions that work on one chunk, lifted into a
//! provider by [`HostProvider`]. The author of a device reads [`CodecProvider`] and [`DeviceSegment`]: whole batches, enqueued.
//!
//! * A [`Stage`] is one codec of a chain with the [`Representation`] on either side of it: sizes are known before any byte is.
//! * A [`CodecProvider`] is asked to take as many stages as it can fuse, and answers with a [`Segment`]: a [`HostSegment`] works on slices, at
//!   once, on the caller's thread; a [`DeviceSegment`] enqueues work on a queue and answers with a [`Ticket`].
//! * A [`Registry`] is a list of providers, a value: nothing is global. A [`Policy`] says which of them a read may use.
//! * A [`Chain`] is a codec chain bound by a registry under a policy; [`Chain::explain`] says what runs where.
//! * [`Limits`] bound what unsized data may grow to. [`CodecError`] says who is to blame and where.
//!
//! This crate does no I/O, has no thread pool and contains no codec: see `zarr-codecs-cpu` for the codecs, `zarr-array` for who calls them.
//! `sharding_indexed` is not a codec here: the planner of `zarr-array` sees through it.
//!
//! ```
//! use zarr_codec_api::{ByteLen, BytesToBytes, CodecError, HostProvider, SimpleCodec};
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
//! let provider = HostProvider::new("mine").with("example.flip", |_, _| Ok(SimpleCodec::bytes_to_bytes(Flip)));
//! let registry = zarr_codec_api::Registry::new().with(provider);
//! ```
#![forbid(unsafe_code)]

mod chain;
mod device;
mod error;
mod host;
mod provider;
mod registry;
mod representation;
mod simple;

pub use chain::{BoundSegment, Chain};
pub use device::{Completion, DeviceContext, DeviceSegment, DeviceSlot, Encoded, Ticket};
pub use error::{CodecError, CodecErrorKind};
pub use host::{Blocks, DecodeSlot, EncodeSlot, HostSegment, Pieces, Scratch, Source, Target};
pub use provider::{Bound, CodecProvider, Direction, Placement, Segment};
pub use registry::{Limits, Policy, Registry};
pub use representation::{ArrayRepresentation, ByteLen, Representation, Stage, VariableData};
pub use simple::{ArrayToArray, ArrayToBytes, BytesToBytes, HostProvider, SimpleCodec};

//! Zarr arrays and groups: open, create, read, write, resize; plan, fetch, decode.
//!
//! * [`Array`] reads and writes any [`Selection`] of an array, blocking or async, into the caller's memory or its own;
//!   [`Array::read_each`] reads chunk by chunk, or sample by sample, with reads running ahead.
//! * [`Group`] walks and builds hierarchies, with consolidated metadata.
//! * [`ReadPlan`] is the read without the I/O: it says which ranges to fetch, takes their bytes, and gives decode jobs. Use it with your own
//!   I/O. [`ReadSet`] reads many arrays and selections as one.
//! * [`ArrayBuilder`] creates arrays, sharded or not, and [`GroupBuilder`] groups, of version 2 or 3.
//!
//! This crate does no I/O of its own and contains no codec but `sharding_indexed`: it asks a store (`zarr-store-api`) and codecs (`zarr-codec-api`)
//! that it is given. It names no CUDA; devices come through `zarr-buffer-api`. The crate `zarr` puts it together with the stores and codecs
//! of this workspace.
#![forbid(unsafe_code)]

mod array;
mod blocks;
mod chunks;
mod create;
mod data;
mod device;
mod element;
mod error;
mod explain;
mod gate;
mod geometry;
mod group;
#[cfg(feature = "ndarray")]
mod nd;
mod node;
mod options;
mod pieces;
mod plan;
mod pool;
mod read;
mod read_each;
mod read_plan;
mod read_set;
mod resize;
mod selection;
mod shard_index;
mod sharding;
mod storage;
mod strided;
mod variable;
mod whole;
mod write;

pub use array::Array;
pub use create::{ArrayBuilder, GroupBuilder};
pub use data::{ArrayData, Elements};
pub use device::{Crossings, DeviceTarget, Observer, PendingTensor, ReadEachToDevice, Stage, Tensor};
pub use element::Element;
pub use error::ArrayError;
pub use group::{Group, Node};
pub use node::{StoredMetadata, Version};
pub use options::Options;
pub use plan::Coalescing;
pub use pool::Pool;
pub use read_each::ReadEach;
pub use read_plan::{DecodeJob, ReadPlan, Request, RequestId};
pub use read_set::ReadSet;
pub use selection::{AxisSelection, Selection};

//! Laws that every Zarr codec, store and device must hold.
//!
//! A downstream author calls one function with a codec, a store or a device of their own, and learns whether it fits:
//!
//! * [`codec`]: values, sizes, batches, limits and bad input of codecs on the host; [`codec::device`] of codecs on a device; [`codec::pair`] of two
//!   implementations of one codec, wherever they are. [`representations`] are chunks of every data type.
//! * [`device`]: allocation, memory limits, copies, boxes, queues, events and hazards of a [`zarr_buffer_api::Device`].
//! * [`store`]: reading, listing, writing and dropped futures of the stores of `zarr-store-api`, and wrappers that must forward every method.
//! * `dlpack` (feature of that name): producers and consumers of DLPack tensors.
//! * [`implementation`]: whole implementations, in any language, against [`vectors`] and each other.
//! * [`toy`]: two devices for tests on machines without a real one. They find misuse: races, reads of bytes never written, memory freed in use.
//!
//! Cases are data with stable ids, subjects are traits, and no test framework is inside: a subject becomes a [`Suite`], that gives a [`Report`],
//! and [`assert_conforms`] panics on it. `conformance_main!` makes a test program of it.
//!
//! The program `zarr-conformance` runs all of it on everything in this workspace. It brings every codec and device along: a crate that tests itself
//! goes without it, by `zarr-conformance = { version = "..", default-features = false }`, and adds the features `harness` and `toy` where it
//! wants them.
//!
//! This crate implements no codec, no store and no real device. It needs a subject: see `zarr-codecs-cpu`, `zarr-store`.
#![deny(unsafe_code)]

pub mod codec;
pub mod device;
#[cfg(feature = "dlpack")]
pub mod dlpack;
mod feed;
#[cfg(feature = "harness")]
pub mod harness;
#[cfg(feature = "implementation")]
pub mod implementation;
#[cfg(feature = "runner")]
pub mod runner;
mod samples;
pub mod store;
mod suite;
#[cfg(feature = "toy")]
pub mod toy;
mod trial;
#[cfg(feature = "implementation")]
pub mod vectors;

pub use feed::{Answer, Fed, items};
pub use samples::{Sample, data_types, representations, samples, shapes};
pub use suite::{Case, Outcome, Report, Subject, Suite, SuiteCase, assert_conforms};
pub use trial::{Journal, Trial};

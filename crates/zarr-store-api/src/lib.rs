//! The contract between Zarr arrays and the places their bytes live in.
//!
//! A *store* maps keys to values. This crate says what a key is ([`StoreKey`], [`StorePrefix`]),
//! how part of a value is asked for ([`ByteRange`]), what may go wrong ([`StoreError`]) and what a
//! store does, in two equally complete forms:
//!
//! | | blocking | async |
//! |---|---|---|
//! | read | [`ReadableStore`] | [`AsyncReadableStore`] |
//! | write | [`WritableStore`] | [`AsyncWritableStore`] |
//! | list | [`ListableStore`] | [`AsyncListableStore`] |
//! | all of it | [`Store`] | [`AsyncStore`] |
//!
//! Values are read as [`Bytes`], into memory of the caller's, or into a [`Buffer`] of any device, which a store may do
//! without a stop in host memory.
//!
//! A store implements the form that is natural to it; [`AnyStore`] holds either, and readers take
//! the path the store is native to.
//!
//! What this crate does not do: it contains no store. `zarr-store` has memory, filesystem, zip
//! and object stores, the adapters between the two forms, and wrappers. What the bytes under a
//! key mean is the business of `zarr-meta` and `zarr-array`. Devices and their memory are those of `zarr-buffer-api`. The behaviour that every store must
//! show is written down as executable laws in `zarr-conformance`, module `store`.
//!
//! No I/O, no threads, no async runtime.
//!
//! # Example
//!
//! A complete store is some sixty lines: `examples/out-of-tree-codec/src/store.rs` in the repository, which its tests hold to the laws.
//!
//! ```
//! use zarr_store_api::{ByteRange, StoreKey, StorePrefix};
//!
//! let array = StorePrefix::new("ocean/temperature")?;
//! assert_eq!(array.as_str(), "ocean/temperature/");
//! let chunk = array.key("c/0/3")?;
//! assert_eq!(chunk.as_str(), "ocean/temperature/c/0/3");
//! assert!(StoreKey::new("../etc/passwd").is_err());
//!
//! // The last 16 bytes of a value of 100 bytes.
//! assert_eq!(ByteRange::Suffix(16).resolve(100)?, 84..100);
//! # Ok::<(), zarr_store_api::StoreError>(())
//! ```

#![forbid(unsafe_code)]

mod any;
mod asynchronous;
mod blocking;
mod error;
mod key;
mod range;
mod value;

pub use any::AnyStore;
/// Re-exported so that implementations need not match the version by hand.
pub use async_trait::async_trait;
pub use asynchronous::{AsyncListableStore, AsyncReadableStore, AsyncReadableStoreExt, AsyncStore, AsyncWritableStore, Destination};
pub use blocking::{ListableStore, Listing, ReadableStore, Store, WritableStore};
/// Re-exported so that implementations need not match the version by hand.
pub use bytes::Bytes;
pub use error::{StoreError, StoreErrorKind, StoredValue};
pub use key::{StoreKey, StorePrefix};
pub use range::ByteRange;
pub use value::{ByKey, ValueReader, Version};
/// Re-exported so that implementations need not match the version by hand.
pub use zarr_buffer_api::{Buffer, Device, DeviceId, Queue};

//! The stores that Zarr arrays are kept in.
//!
//! | feature | store | native path | reads | writes | lists |
//! |---|---|---|---|---|---|
//! | `memory` | `MemoryStore` | blocking | yes | yes | yes |
//! | `filesystem` | `FilesystemStore` | blocking | yes | yes | yes |
//! | `zip` | `ZipStore` | blocking | yes | new archives | yes |
//! | `object-store` | `ObjectStoreAdapter` over any `object_store` | async | yes | yes | yes |
//!
//! `memory`, `filesystem` and `zip` are on by default. `s3`, `gcs`, `azure` and `http` bring a
//! network client each and teach [`open_url`] their schemes. `tokio` brings the adapters
//! `AsyncToBlocking` and `BlockingToAsync`, and `OnRuntime`; `test-util` brings `FaultyStore`, which fails on
//! purpose.
//!
//! The wrappers [`ReadOnly`], [`Prefix`] and [`Metrics`] stand over any store, blocking or async.
//!
//! What this crate does not do: it does not say what a store is (that is `zarr-store-api`), and
//! it does not know what the bytes mean (that is `zarr-array`). Nothing is cached.
//!
//! ```
//! # #[cfg(feature = "memory")] {
//! use zarr_store::{MemoryStore, Metrics};
//! use zarr_store_api::{ByteRange, ReadableStore, StoreKey, WritableStore};
//!
//! let store = Metrics::new(MemoryStore::new());
//! let key = StoreKey::new("temperature/c/0/0")?;
//! store.set(&key, vec![7; 1000].into())?;
//! store.get(&key, ByteRange::Suffix(16))?;
//!
//! let counted = store.handle().snapshot();
//! assert_eq!((counted.requests(), counted.bytes_read(), counted.bytes_written()), (2, 16, 1000));
//! # }
//! # Ok::<(), zarr_store_api::StoreError>(())
//! ```

#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "tokio")]
mod adapt;
#[cfg(any(feature = "filesystem", feature = "zip"))]
mod file;
#[cfg(feature = "filesystem")]
mod filesystem;
#[cfg(feature = "memory")]
mod memory;
#[cfg(feature = "object-store")]
mod object;
mod open;
#[cfg(feature = "tokio")]
mod runtime;
#[cfg(feature = "test-util")]
mod testing;
mod wrap;
#[cfg(feature = "zip")]
mod zip;

#[cfg(feature = "tokio")]
pub use adapt::{AsyncToBlocking, BlockingToAsync};
#[cfg(feature = "filesystem")]
pub use filesystem::{Durability, FilesystemStore};
#[cfg(feature = "memory")]
pub use memory::MemoryStore;
#[cfg(feature = "object-store")]
pub use object::ObjectStoreAdapter;
pub use open::{Access, OpenOptions, local_archive, open_url};
#[cfg(feature = "tokio")]
pub use runtime::OnRuntime;
#[cfg(feature = "test-util")]
pub use testing::{Fault, FaultyStore, When};
pub use wrap::{MethodCount, Metrics, MetricsHandle, MetricsSnapshot, Prefix, ReadOnly, StoreMethod};
/// The contract these stores fulfil.
pub use zarr_store_api as api;
#[cfg(feature = "zip")]
pub use zip::{ZipLimits, ZipStore, ZipWriteOptions};

/// The bytes of a range of a value that is in memory, without a copy.
#[cfg(any(feature = "memory", feature = "zip", feature = "object-store"))]
fn bytes_of(value: &bytes::Bytes, range: zarr_store_api::ByteRange) -> Result<bytes::Bytes, zarr_store_api::StoreError> {
    let bounds = range.resolve(value.len() as u64)?;
    // Both bounds are at most the length, which is a `usize`.
    Ok(value.slice(bounds.start as usize..bounds.end as usize))
}

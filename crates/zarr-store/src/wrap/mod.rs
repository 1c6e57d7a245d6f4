//! Stores that stand over another store, blocking or async.
//!
//! Each forwards every method, those with defaults included: a wrapper that leaves one out turns
//! one call of its user into several of the store below. The lint holds new methods to that.

#![deny(clippy::missing_trait_methods)]

mod metrics;
mod prefix;
mod read_only;

use zarr_store_api::StoreError;

pub use metrics::{MethodCount, Metrics, MetricsHandle, MetricsSnapshot, StoreMethod};
pub use prefix::Prefix;
pub use read_only::ReadOnly;

/// For calls that `as_writable` keeps from happening.
pub(crate) fn not_writable(name: &str) -> StoreError {
    StoreError::read_only(format!("{name} cannot be written to"))
}

/// For calls that `as_listable` keeps from happening.
pub(crate) fn not_listable(name: &str) -> StoreError {
    StoreError::unsupported(format!("{name} cannot be listed"))
}

//! Blocking calls on a store of either form.

use std::future::Future;

use bytes::Bytes;
use zarr::store_api::{AnyStore, ByteRange, Listing, StoreError, StoreKey, StorePrefix};

type Result<T> = std::result::Result<T, StoreError>;

/// Waits for an async store.
pub(crate) fn wait<T>(future: impl Future<Output = T>) -> T {
    pollster::block_on(future)
}

macro_rules! call {
    ($store:ident, $capability:ident, $what:literal, $method:ident($($argument:expr),*)) => {
        match $store {
            AnyStore::Blocking(blocking) => blocking.$capability().ok_or_else(|| lacks($store, $what))?.$method($($argument),*),
            AnyStore::Async(native) => wait(native.$capability().ok_or_else(|| lacks($store, $what))?.$method($($argument),*)),
        }
    };
}

fn lacks(store: &AnyStore, what: &str) -> StoreError {
    StoreError::unsupported(format!("{} cannot be {what}", store.name()))
}

pub(crate) fn get(store: &AnyStore, key: &StoreKey) -> Result<Option<Bytes>> {
    match store {
        AnyStore::Blocking(store) => store.get(key, ByteRange::All),
        AnyStore::Async(store) => wait(store.get(key, ByteRange::All)),
    }
}

pub(crate) fn size(store: &AnyStore, key: &StoreKey) -> Result<Option<u64>> {
    match store {
        AnyStore::Blocking(store) => store.size(key),
        AnyStore::Async(store) => wait(store.size(key)),
    }
}

pub(crate) fn set(store: &AnyStore, key: &StoreKey, value: impl Into<Bytes>) -> Result<()> {
    let value = value.into();
    call!(store, as_writable, "written to", set(key, value))
}

pub(crate) fn erase(store: &AnyStore, key: &StoreKey) -> Result<()> {
    call!(store, as_writable, "written to", erase(key))
}

pub(crate) fn erase_prefix(store: &AnyStore, prefix: &StorePrefix) -> Result<()> {
    call!(store, as_writable, "written to", erase_prefix(prefix))
}

pub(crate) fn list(store: &AnyStore, prefix: &StorePrefix) -> Result<Vec<StoreKey>> {
    call!(store, as_listable, "listed", list(prefix))
}

pub(crate) fn list_dir(store: &AnyStore, prefix: &StorePrefix) -> Result<Listing> {
    call!(store, as_listable, "listed", list_dir(prefix))
}

//! A store of either form.

use std::sync::Arc;

use crate::asynchronous::AsyncStore;
use crate::blocking::Store;

/// A store in the form it is native to. This is what arrays hold: they make blocking calls (on
/// threads of their own) to the one and async calls to the other.
///
/// Cloning is cheap; clones share the store.
#[derive(Clone, Debug)]
pub enum AnyStore {
    /// A store whose medium blocks by nature.
    Blocking(Arc<dyn Store>),
    /// A store that waits for answers from elsewhere.
    Async(Arc<dyn AsyncStore>),
}

impl AnyStore {
    /// Holds a blocking store, or the async store it is only a face of
    /// ([`Store::native_async`]).
    pub fn blocking(store: impl Store) -> Self {
        Self::from(Arc::new(store) as Arc<dyn Store>)
    }

    /// Holds an async store, or the blocking store it is only a face of
    /// ([`AsyncStore::native_blocking`]).
    pub fn asynchronous(store: impl AsyncStore) -> Self {
        Self::from(Arc::new(store) as Arc<dyn AsyncStore>)
    }

    /// What to call the store in messages.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Blocking(store) => store.name(),
            Self::Async(store) => store.name(),
        }
    }

    /// Whether the store can be written to.
    #[must_use]
    pub fn is_writable(&self) -> bool {
        match self {
            Self::Blocking(store) => store.as_writable().is_some(),
            Self::Async(store) => store.as_writable().is_some(),
        }
    }

    /// Whether the store can be listed.
    #[must_use]
    pub fn is_listable(&self) -> bool {
        match self {
            Self::Blocking(store) => store.as_listable().is_some(),
            Self::Async(store) => store.as_listable().is_some(),
        }
    }
}

impl From<Arc<dyn Store>> for AnyStore {
    fn from(store: Arc<dyn Store>) -> Self {
        match store.native_async() {
            Some(native) => Self::Async(native),
            None => Self::Blocking(store),
        }
    }
}

impl From<Arc<dyn AsyncStore>> for AnyStore {
    fn from(store: Arc<dyn AsyncStore>) -> Self {
        match store.native_blocking() {
            Some(native) => Self::Blocking(native),
            None => Self::Async(store),
        }
    }
}

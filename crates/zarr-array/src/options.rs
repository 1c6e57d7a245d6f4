use zarr_codec_api::{Policy, Registry};
use zarr_store_api::AnyStore;

use crate::{Coalescing, Pool};

/// What an array or a group works with: which codecs, on which threads, and how it asks a store.
///
/// A value: there is no global registry and no global switch.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    /// The codecs, in order of preference.
    pub registry: Registry,
    /// Which of them may be used.
    pub policy: Policy,
    /// The threads that decode and encode.
    pub pool: Pool,
    /// How ranges of one value are put together; `None`: as suits the store.
    pub coalescing: Option<Coalescing>,
    /// Requests that a read or write has in flight at an async store.
    pub concurrency: usize,
    /// Bytes of those requests, and of answers that are still to be decoded; a single request may have more.
    pub in_flight_bytes: usize,
    /// Whether chunks that hold only the fill value are stored.
    pub write_empty_chunks: bool,
    /// Bytes of shard indexes that an array keeps from read to read; 0: none. See [`Options::with_index_cache`].
    pub index_cache: usize,
}

impl Options {
    /// The codecs of `registry` on the host, Rayon's global threads, and defaults for the rest.
    pub fn new(registry: Registry) -> Self {
        Self {
            registry,
            policy: Policy::Host,
            pool: Pool::global(),
            coalescing: None,
            concurrency: 64,
            in_flight_bytes: 512 << 20,
            write_empty_chunks: false,
            index_cache: 4 << 20,
        }
    }

    /// Sets which implementations may be used.
    #[must_use]
    pub fn with_policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Sets the threads that decode and encode.
    #[must_use]
    pub fn with_pool(mut self, pool: Pool) -> Self {
        self.pool = pool;
        self
    }

    /// Sets how ranges of one value are put together.
    #[must_use]
    pub fn with_coalescing(mut self, coalescing: Coalescing) -> Self {
        self.coalescing = Some(coalescing);
        self
    }

    /// Sets how many requests a read or write has in flight at an async store: 64, unless this says otherwise. A store that is far away and fast wants many, one that
    /// counts its clients' connections few. A chunk of more than 8 MiB counts as up to eight requests, as object stores read and write it in
    /// pieces; one alone may be as many, whatever this says.
    #[must_use]
    pub fn with_concurrency(mut self, concurrency: usize) -> Self {
        self.concurrency = concurrency.max(1);
        self
    }

    /// Sets how many bytes of requests in flight and of answers that are still to be decoded a read or write has at an async store: 512 MiB, unless this says
    /// otherwise. A request that alone is larger is made when no other is under way.
    #[must_use]
    pub fn with_in_flight_bytes(mut self, bytes: usize) -> Self {
        self.in_flight_bytes = bytes;
        self
    }

    /// Sets whether chunks that hold only the fill value are stored.
    #[must_use]
    pub fn with_write_empty_chunks(mut self, keep: bool) -> Self {
        self.write_empty_chunks = keep;
        self
    }

    /// Sets how many bytes of shard indexes an array keeps from read to read, for many small reads of the same shards; 0: none. The default is 4 MiB: an inner chunk
    /// takes 16 bytes. An index serves the version of the shard that it was read of, and no other: whoever replaces the shard, the next read sees it.
    /// No index is kept of a file that was changed in the last seconds, nor where a store does not tell versions of a value apart: servers without strong entity
    /// tags, files on Windows, stores behind an adapter between the blocking and the async form.
    #[must_use]
    pub fn with_index_cache(mut self, bytes: usize) -> Self {
        self.index_cache = bytes;
        self
    }

    /// A local store answers in microseconds: little is worth reading along. A remote one in milliseconds.
    pub(crate) fn coalescing_for(&self, store: &AnyStore) -> Coalescing {
        self.coalescing.unwrap_or(match store {
            AnyStore::Blocking(_) => Coalescing { gap: 4 << 10, waste: 20, request: 16 << 20 },
            // Several connections bring more than one.
            AnyStore::Async(_) => Coalescing { gap: 64 << 10, waste: 20, request: 4 << 20 },
        })
    }
}

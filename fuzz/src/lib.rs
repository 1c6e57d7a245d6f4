//! What each fuzz target does with its bytes. The targets themselves, in `fuzz_targets`, are one line each.
//!
//! Every function here may find errors in what it is given and return; it panics only where the crates under test broke a promise.

mod array;
mod codec;
mod metadata;
mod zip;

pub use array::{array, plan, selection, shard_configurations, shard_index};
pub use codec::{chain_texts, chains, codec_blosc, codec_chain, codec_decode, codec_gzip, codec_round_trip, codec_zstd};
pub use metadata::{json, metadata_v2, metadata_v3};
pub use zip::zip_directory;

use std::sync::{Arc, LazyLock};

use zarr_array::{Options, Pool};
use zarr_codec_api::Registry;

/// The codecs under test.
pub fn registry() -> Registry {
    Registry::new().with(zarr_codecs_cpu::provider())
}

/// One thread, and that the one that calls, so that a finding is found again.
pub fn options() -> Options {
    static OPTIONS: LazyLock<Options> = LazyLock::new(|| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread().build().expect("one thread");
        Options::new(registry()).with_pool(Pool::new(Arc::new(pool)))
    });
    OPTIONS.clone()
}

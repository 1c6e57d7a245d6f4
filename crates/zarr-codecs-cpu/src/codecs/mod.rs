//! The codecs, one module each.

use zarr_codec_api::HostProvider;

pub mod bytes;

/// Adds every codec that was compiled in.
pub(crate) fn register(provider: HostProvider) -> HostProvider {
    let provider = bytes::register(provider);
    provider
}

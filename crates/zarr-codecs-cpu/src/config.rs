//! Reading a codec's configuration.

use serde::de::DeserializeOwned;
use zarr_codec_api::CodecError;
use zarr_meta::Extension;

/// The configuration of `codec` as a `T`, which denies the keys that it does not know unless real writers add some.
pub(crate) fn read<T: DeserializeOwned>(codec: &Extension) -> Result<T, CodecError> {
    codec.config().map_err(|error| CodecError::metadata(&codec.name, "configuration").with_source(error))
}

/// A codec without configuration: an empty object is as good as none.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NoConfig {}

//! `numcodecs.shuffle`: all first bytes of the elements, then all second ones, and so on.

use zarr_codec_api::{ByteLen, Stage};

use crate::recipe::Step;

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    elementsize: Option<u32>,
}

pub(crate) fn step(stage: &Stage) -> Option<Step> {
    let config: Config = stage.codec.config().ok()?;
    let size = config.elementsize.unwrap_or(4).max(1);
    let len = stage.decoded.byte_len().ok()?.and_then(ByteLen::exact)?;
    // The host refuses bytes that are no whole number of elements.
    len.is_multiple_of(u64::from(size)).then_some(Step::Shuffle { size })
}

use std::fmt::Write as _;

use zarr_buffer_api::DeviceId;
use zarr_codec_api::{Placement, Policy};
use zarr_store_api::AnyStore;

use crate::Array;
use crate::chunks::BoundChunk;

/// What a read does, in words.
pub(crate) fn explain(array: &Array) -> String {
    let mut text = String::new();
    for (level, inner) in array.shard_levels().iter().enumerate() {
        let around = if level == 0 { "shards".to_owned() } else { format!("shards of level {}", level + 1) };
        let _ = writeln!(text, "{around}: index read once, inner chunks {inner:?} read by range");
    }
    let first = vec![0; array.shape().len()];
    match array.chunks.bound(&array.chunks.leaf_shape(&first)) {
        Ok(bound) => {
            text.push_str(&bound.chain.explain());
            if bound.verbatim {
                text.push_str("stored bytes are elements: read straight to their place\n");
            }
            if !bound.layout.is_contiguous() {
                text.push_str("transpose: folded into the copy to the result\n");
            }
            if let Policy::Prefer(device) | Policy::Require(device) = array.options().policy {
                let _ = writeln!(text, "read to {device}: {}", crossing(array, &bound, device));
            }
        }
        Err(error) => {
            let _ = writeln!(text, "cannot be decoded: {error}");
        }
    }
    text
}

/// How bytes come to a device; one that shares the host's memory takes them where they are.
fn crossing(array: &Array, bound: &BoundChunk, device: DeviceId) -> &'static str {
    let segments = bound.chain.segments();
    let on_device = segments.iter().any(|segment| segment.placement != Placement::Host);
    let starts_on_host = segments.first().is_some_and(|segment| segment.placement == Placement::Host);
    let as_stored = bound.verbatim || (on_device && !starts_on_host);
    match &array.storage.0 {
        AnyStore::Blocking(store) if as_stored && store.reads_to_device(device) => "the store reads straight to it, past staging memory",
        _ if bound.verbatim => "elements cross the bus once, as they are stored",
        _ if as_stored => "stored bytes cross the bus once",
        _ if on_device => "bytes that the host has decoded in part cross the bus once",
        _ => "elements that the host has decoded cross the bus once",
    }
}

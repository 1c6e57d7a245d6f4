use std::fmt::Write as _;

use crate::Array;

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
        }
        Err(error) => {
            let _ = writeln!(text, "cannot be decoded: {error}");
        }
    }
    text
}

//! Encoded bytes that a subject is given alone, outside of any case: what it says of them, and what they decode to.

use std::sync::Arc;

use crate::Sample;
use crate::suite::{Broken, Trial};

/// What came of bytes that a subject was given.
#[derive(Debug, Clone)]
pub struct Fed {
    /// What each implementation made of them; of a pair or a device there are two.
    pub answers: Vec<Answer>,
    /// How a law is broken: the implementations disagree, a byte outside of the destination is written.
    pub broken: Option<String>,
}

/// What one implementation made of some bytes.
#[derive(Debug, Clone)]
pub struct Answer {
    /// Whose it is.
    pub by: String,
    /// The bytes of the decoded chunk, of elements of variable length one behind the other; or why it is refused.
    pub decoded: Result<Vec<u8>, String>,
}

impl Answer {
    pub(crate) fn new(by: impl Into<String>, decoded: Result<Sample, String>) -> Self {
        let bytes = |sample| match sample {
            Sample::Bytes(bytes) => bytes,
            Sample::Variable(elements) => elements.iter().flatten().copied().collect(),
        };
        Self { by: by.into(), decoded: decoded.map(bytes) }
    }
}

/// Gives a subject bytes.
pub(crate) type Feed = Arc<dyn Fn(&[u8], &Trial) -> Result<Fed, Broken> + Send + Sync>;

/// What stands before a batch, where inputs are kept: no codec's bytes begin like that.
const BATCH: &[u8; 16] = b"\x93zarr-batch\r\n\x1a\n\0";

/// A batch in one piece: a mark, then each item behind its length in eight bytes, little-endian.
pub(crate) fn batch(items: &[&[u8]]) -> Vec<u8> {
    let framed = items.iter().flat_map(|item| (item.len() as u64).to_le_bytes().into_iter().chain(item.iter().copied()));
    BATCH.iter().copied().chain(framed).collect()
}

/// The items of an input as a [`Journal`](crate::Journal) is told it: of a batch all, else the input itself.
pub fn items(input: &[u8]) -> Vec<&[u8]> {
    let Some(mut rest) = input.strip_prefix(BATCH) else { return vec![input] };
    let mut items = Vec::new();
    while let Some((len, more)) = rest.split_first_chunk() {
        let len = usize::try_from(u64::from_le_bytes(*len)).ok().filter(|len| *len <= more.len());
        let Some((item, more)) = len.map(|len| more.split_at(len)) else { break };
        items.push(item);
        rest = more;
    }
    items
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_come_apart_again() {
        let all: [&[u8]; 3] = [b"one", b"", &[0; 300]];
        assert_eq!(items(&batch(&all)), all);
        assert_eq!(items(b"alone"), [b"alone"]);
        assert_eq!(items(b""), [b""]);
    }
}

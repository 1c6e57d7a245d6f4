//! Decoding with libraries that take input and give output piece by piece, over one or more streams.

use zarr_codec_api::CodecError;

/// What one step has done.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Step {
    pub(crate) consumed: usize,
    pub(crate) written: usize,
    /// The stream has ended.
    pub(crate) ended: bool,
}

/// A decoder of one stream.
pub(crate) trait Decoder {
    /// Decodes from the start of `input`, which is all there is, to the start of `output`.
    fn step(&mut self, input: &[u8], output: &mut [u8]) -> Result<Step, CodecError>;
}

/// Streams one behind the other.
pub(crate) struct Streams<'a, F> {
    pub(crate) codec: &'static str,
    /// Makes a decoder for each.
    pub(crate) decoder: F,
    /// Whether these bytes, behind a stream, are another; if not, they are ignored.
    pub(crate) follows: fn(&'a [u8]) -> bool,
    /// Whether a stream may also end where the input does.
    pub(crate) open_end: bool,
}

impl<'a, D: Decoder, F: FnMut() -> Result<D, CodecError>> Streams<'a, F> {
    /// Decodes to exactly `decoded.len()` bytes.
    pub(crate) fn decode(mut self, encoded: &'a [u8], decoded: &mut [u8]) -> Result<(), CodecError> {
        let (codec, expected) = (self.codec, decoded.len());
        let mut written = 0usize;
        self.run(encoded, |decoder, input| {
            if let Some(output) = decoded.get_mut(written..).filter(|output| !output.is_empty()) {
                let step = decoder.step(input, output)?;
                written = written.saturating_add(step.written);
                return Ok(step);
            }
            // Full: the end of the stream may still be to come, but no byte.
            let step = decoder.step(input, &mut [0])?;
            if step.written > 0 {
                return Err(CodecError::format(codec, format!("decodes to more than the expected {expected} bytes")));
            }
            Ok(step)
        })?;
        if written == expected { Ok(()) } else { Err(CodecError::size(codec, expected, written)) }
    }

    /// Decodes to the end of `decoded`, which may grow to `limit`.
    pub(crate) fn decode_growing(mut self, encoded: &'a [u8], decoded: &mut Vec<u8>, limit: usize) -> Result<(), CodecError> {
        let codec = self.codec;
        let mut written = decoded.len();
        let result = self.run(encoded, |decoder, input| {
            if written == decoded.len() {
                // One byte more than the limit, to see whether there is one.
                let grown = written.saturating_mul(2).max(1 << 16).min(limit.saturating_add(1));
                decoded.resize(grown.max(written), 0);
            }
            let step = decoder.step(input, decoded.get_mut(written..).unwrap_or_default())?;
            written = written.saturating_add(step.written);
            if written > limit { Err(CodecError::limit(codec, limit)) } else { Ok(step) }
        });
        decoded.truncate(written);
        result
    }

    fn run(&mut self, encoded: &'a [u8], mut step: impl FnMut(&mut D, &[u8]) -> Result<Step, CodecError>) -> Result<(), CodecError> {
        let mut rest = encoded;
        loop {
            let mut decoder = (self.decoder)()?;
            loop {
                let done = step(&mut decoder, rest)?;
                rest = rest.get(done.consumed..).unwrap_or_default();
                if done.ended {
                    break;
                }
                if done.consumed == 0 && done.written == 0 {
                    if self.open_end && rest.is_empty() {
                        return Ok(());
                    }
                    return Err(CodecError::format(self.codec, "a stream is cut short").at(encoded.len() as u64));
                }
            }
            if !(self.follows)(rest) {
                return Ok(());
            }
        }
    }
}

/// How far a counter of 64 bits has come.
#[expect(clippy::cast_possible_truncation, reason = "a difference of positions in one slice")]
pub(crate) fn advanced(before: u64, after: u64) -> usize {
    after.saturating_sub(before) as usize
}

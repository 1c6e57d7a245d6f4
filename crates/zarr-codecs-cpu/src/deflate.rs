//! What the codecs on DEFLATE have in common.

use zarr_codec_api::{CodecError, CodecErrorKind, Pieces};

use crate::library::deflate::{self, Format, MAX_RATIO, Problem};
#[cfg(feature = "inflate-pieces")]
use crate::library::inflate;

/// A level of zlib as one of libdeflate; these mean the same, except that -1 is zlib's name for 6.
pub(crate) fn level(codec: &str, level: Option<i64>, least: i64) -> Result<i32, CodecError> {
    match level {
        None => Err(CodecError::metadata(codec, "level is required")),
        Some(-1) if least == -1 => Ok(6),
        Some(level) => i32::try_from(level)
            .ok()
            .filter(|level| (0..=9).contains(level))
            .ok_or_else(|| CodecError::metadata(codec, format!("level {level} is not within {least} and 9"))),
    }
}

/// An error for a stream that starts at byte `offset`.
pub(crate) fn explain(codec: &str, problem: Problem, offset: usize) -> CodecError {
    match problem {
        Problem::BadData => CodecError::format(codec, "a stream is damaged or cut short").at(offset as u64),
        Problem::NoRoom => CodecError::parameter(codec, "there is no room for the encoded bytes"),
        Problem::NoMemory => CodecError::new(CodecErrorKind::Limit, codec, "no memory for a context"),
    }
}

/// Decodes one stream, at byte `offset` of the encoded data, to the end of `decoded`, which may grow to `limit`; `hint` is a guess at the size
/// of the stream. Answers with the length of the stream.
pub(crate) fn append(
    codec: &str,
    format: Format,
    (stream, offset): (&[u8], usize),
    hint: Option<usize>,
    decoded: &mut Vec<u8>,
    limit: usize,
) -> Result<usize, CodecError> {
    // Neither a header nor the hint can make this allocate more than the bytes at hand can decode to.
    let most = stream.len().saturating_mul(MAX_RATIO).min(limit.saturating_sub(decoded.len()));
    let mut room = hint.unwrap_or(stream.len().saturating_mul(4)).min(most);
    loop {
        match deflate::decompress_append(format, stream, decoded, room) {
            Ok(progress) => return Ok(progress.consumed),
            Err(Problem::NoRoom) if room < most => room = room.saturating_mul(4).max(1 << 16).min(most),
            Err(Problem::NoRoom) => return Err(CodecError::limit(codec, limit)),
            Err(problem) => return Err(explain(codec, problem, offset)),
        }
    }
}

/// A decoder in pieces of a chunk of `decoded_len` bytes.
#[cfg(feature = "inflate-pieces")]
#[expect(clippy::unnecessary_wraps, reason = "without the feature there is none")]
pub(crate) fn pieces(codec: &'static str, format: Format, decoded_len: usize) -> Option<Box<dyn Pieces>> {
    Some(Box::new(Streams { codec, pieces: inflate::Pieces::new(format, decoded_len) }))
}

/// As above.
#[cfg(not(feature = "inflate-pieces"))]
pub(crate) fn pieces(_: &'static str, _: Format, _: usize) -> Option<Box<dyn Pieces>> {
    None
}

/// The streams of a chunk, in pieces.
#[cfg(feature = "inflate-pieces")]
struct Streams {
    codec: &'static str,
    pieces: inflate::Pieces,
}

#[cfg(feature = "inflate-pieces")]
impl Pieces for Streams {
    fn is_slower(&self) -> bool {
        true
    }

    fn decode(&mut self, encoded: &[u8], each: &mut dyn FnMut(&[u8])) -> Result<(), CodecError> {
        self.pieces.decode(encoded, each).map_err(|problem| CodecError::format(self.codec, problem))
    }

    fn finish(self: Box<Self>) -> Result<(), CodecError> {
        self.pieces.finish().map_err(|problem| CodecError::format(self.codec, problem))
    }
}

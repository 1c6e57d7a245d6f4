//! zlib-rs: DEFLATE in the gzip and zlib formats, in pieces. It takes more processor time than libdeflate, which decodes whole buffers alone.

use zlib_rs::{Inflate, InflateFlush, Status};

use crate::library::deflate::Format;

/// Decoded bytes that are lent together. After each of them the library puts 32 KiB aside.
const LEND: usize = 256 << 10;
/// The bits of the largest window of DEFLATE, and what makes the library expect a header of gzip.
const WINDOW: u8 = 15;
#[cfg(feature = "gzip")]
const GZIP: u8 = 16;

/// Why it failed.
pub(crate) type Problem = &'static str;

/// A chunk that is decoded in pieces.
pub(crate) struct Pieces {
    format: Format,
    stage: Stage,
    /// What was decoded.
    lend: Vec<u8>,
    /// Decoded bytes to come.
    left: usize,
}

enum Stage {
    /// Before the first stream.
    Start,
    Stream(Box<Inflate>),
    /// Behind a stream.
    Between,
    Failed,
}

impl Pieces {
    /// For a chunk of `decoded_len` bytes.
    pub(crate) fn new(format: Format, decoded_len: usize) -> Self {
        Self { format, stage: Stage::Start, lend: Vec::new(), left: decoded_len }
    }

    pub(crate) fn decode(&mut self, encoded: &[u8], each: &mut dyn FnMut(&[u8])) -> Result<(), Problem> {
        let result = self.take_all(encoded, each);
        if result.is_err() {
            self.stage = Stage::Failed;
        }
        result
    }

    /// Whether the chunk may end here, and nothing of it is missing.
    pub(crate) fn finish(&self) -> Result<(), Problem> {
        match self.stage {
            Stage::Between if self.left == 0 => Ok(()),
            Stage::Between => Err("the streams decode to less than the chunk"),
            _ => Err("a stream is damaged or cut short"),
        }
    }

    fn take_all(&mut self, encoded: &[u8], each: &mut dyn FnMut(&[u8])) -> Result<(), Problem> {
        let mut rest = encoded;
        // Where there was no room for all that came, the library has more without being given any.
        let mut more = false;
        while more || !rest.is_empty() {
            match &mut self.stage {
                Stage::Failed => return Err("an earlier piece is bad"),
                Stage::Start => self.stage = Stage::Stream(self.format.decoder()),
                // What lies behind a stream, as `codecs::gzip` and `codecs::zlib` have it.
                Stage::Between => match self.format {
                    #[cfg(any(feature = "zlib", feature = "blosc"))]
                    Format::Zlib => return Ok(()),
                    #[cfg(feature = "gzip")]
                    Format::Gzip => match rest.iter().position(|byte| *byte != 0) {
                        None => return Ok(()),
                        Some(zeros) => {
                            rest = rest.get(zeros..).unwrap_or_default();
                            self.stage = Stage::Stream(self.format.decoder());
                        }
                    },
                },
                Stage::Stream(decoder) => {
                    let (taken, written) = (decoder.total_in(), decoder.total_out());
                    // A byte more than may come tells of too many.
                    self.lend.resize(LEND.min(self.left.saturating_add(1)), 0);
                    let status = decoder.decompress(rest, &mut self.lend, InflateFlush::NoFlush).map_err(|error| error.as_str())?;
                    let len = |total: u64, before: u64| usize::try_from(total.saturating_sub(before)).unwrap_or(usize::MAX);
                    let (taken, written) = (len(decoder.total_in(), taken), len(decoder.total_out(), written));
                    self.left = self.left.checked_sub(written).ok_or("the streams decode to more than the chunk")?;
                    rest = rest.get(taken..).unwrap_or_default();
                    each(self.lend.get(..written).unwrap_or_default());
                    more = written == self.lend.len();
                    match status {
                        Status::StreamEnd => (self.stage, more) = (Stage::Between, false),
                        Status::BufError if !rest.is_empty() => return Err("a stream is damaged"),
                        _ => {}
                    }
                }
            }
        }
        Ok(())
    }
}

impl Format {
    fn decoder(self) -> Box<Inflate> {
        let window = match self {
            #[cfg(feature = "gzip")]
            Self::Gzip => WINDOW | GZIP,
            #[cfg(any(feature = "zlib", feature = "blosc"))]
            Self::Zlib => WINDOW,
        };
        Box::new(Inflate::new(true, window))
    }
}

#[cfg(all(test, feature = "gzip"))]
mod tests {
    use super::*;
    use crate::library::deflate::{compress, decompress};

    /// Noise of four bits, runs, and matches at all distances.
    fn data(len: usize) -> Vec<u8> {
        let mut state = 11u64;
        let mut bytes = Vec::with_capacity(len + 1000);
        while bytes.len() < len {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let run = (state >> 40) as usize % 700 + 1;
            match state >> 33 & 7 {
                0 => bytes.extend(std::iter::repeat_n((state >> 16) as u8, run * 3)),
                1..=3 => bytes.extend((0..run as u64).map(|i| (state.wrapping_mul(i | 1) >> 60) as u8)),
                _ => {
                    let back = (state >> 8) as usize % bytes.len().clamp(1, 32 << 10);
                    let start = bytes.len() - back;
                    bytes.extend_from_within(start..bytes.len().min(start + run));
                }
            }
        }
        bytes.truncate(len);
        bytes
    }

    fn member(decoded: &[u8], level: i32) -> Vec<u8> {
        let mut encoded = Vec::new();
        compress(Format::Gzip, level, decoded, &mut encoded).unwrap();
        encoded
    }

    fn in_pieces(encoded: &[u8], len: usize, piece: usize) -> Result<Vec<u8>, Problem> {
        let mut decoded = Vec::new();
        let mut pieces = Pieces::new(Format::Gzip, len);
        for piece in encoded.chunks(piece) {
            pieces.decode(piece, &mut |bytes| decoded.extend_from_slice(bytes))?;
            assert!(decoded.len() <= len, "more than the chunk");
        }
        pieces.finish().map(|()| decoded)
    }

    #[test]
    fn pieces_decode_to_what_the_whole_does() {
        for whole in [data(3_000_001), vec![7; 3_000_000], data(1), Vec::new()] {
            for level in [0, 1, 6, 12] {
                let encoded = member(&whole, level);
                for piece in [1, 7, 1000, 65_537, usize::MAX] {
                    let decoded = in_pieces(&encoded, whole.len(), piece);
                    assert!(decoded.as_ref() == Ok(&whole), "level {level}, {piece} bytes at a time: {:?}", decoded.err());
                }
            }
        }
    }

    #[test]
    fn several_members_and_padding() {
        let whole = data(900_000);
        let encoded = [member(&whole[..LEND], 6), vec![0; 3], member(&[], 6), member(&whole[LEND..], 1), vec![0; 700]].concat();
        for piece in [1, 10, 100_000, usize::MAX] {
            assert!(in_pieces(&encoded, whole.len(), piece).as_ref() == Ok(&whole), "{piece} bytes at a time");
        }
        for other in [0, LEND - 1, LEND, LEND + 1, whole.len() - 1, whole.len() + 1] {
            assert!(in_pieces(&encoded, other, 1000).is_err(), "accepted for {other} bytes");
        }
        assert!(in_pieces(&[&encoded[..], &[1]].concat(), whole.len(), 1000).is_err(), "a byte behind the padding");
        assert!(in_pieces(&[], 0, 1).is_err(), "no member");
    }

    /// Whatever the damage: what pieces accept, the whole is, too.
    #[test]
    fn damage_is_no_better_in_pieces() {
        let whole = data(100_000);
        let encoded = member(&whole, 6);
        let verdict = |bad: &[u8], what: &str| {
            let mut at_once = vec![0; whole.len()];
            let good = decompress(Format::Gzip, bad, &mut at_once).is_ok_and(|done| done.written == whole.len());
            for piece in [1000, 40_000] {
                if let Ok(decoded) = in_pieces(bad, whole.len(), piece) {
                    assert!(good && decoded == at_once, "{what}");
                }
            }
        };
        for end in (0..encoded.len()).step_by(997).chain(encoded.len() - 9..encoded.len()) {
            assert!(in_pieces(&encoded[..end], whole.len(), 1000).is_err(), "cut to {end}");
        }
        for bit in (0..80 * 8).chain((80 * 8..encoded.len() * 8).step_by(1003)).chain(encoded.len() * 8 - 64..encoded.len() * 8) {
            let mut bad = encoded.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            verdict(&bad, &format!("bit {bit}"));
        }
    }
}

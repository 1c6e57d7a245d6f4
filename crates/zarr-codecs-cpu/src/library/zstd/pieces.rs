//! Frames in pieces, block by block, to a ring that holds the window, or, if that is less, what is wanted of the chunk, and no more. What was decoded is lent from
//! where the decoder wrote it: the streaming interface of libzstd would copy it out of a window of its own.
//!
//! Frames that are for it are decoded by the decoder of our own ([`super::decode`]), the others by libzstd.

use std::cell::Cell;
use std::ptr::NonNull;

use ::zstd::zstd_safe::get_error_name;
use ::zstd::zstd_safe::zstd_sys as sys;
use zarr_codec_api::Scratch;

use super::{NO_MEMORY, Problem, decode::Blocks};

/// As many bytes as tell how long the header of a frame is.
const START: usize = 5;
/// Decoded bytes that are lent together: blocks may be of some kilobytes.
const LEND: usize = 512 << 10;
/// The largest ring that a thread keeps.
const KEEP: usize = 4 << 20;

thread_local! {
    static MEMORY: Cell<Memory> = const { Cell::new(Memory { context: None, ring: Vec::new(), held: Vec::new() }) };
}

/// A chunk that is decoded in pieces.
pub(crate) struct Pieces {
    memory: Memory,
    /// Who decodes the frame: the decoder of our own, or libzstd.
    blocks: Option<Blocks>,
    /// Whether it may be the decoder of our own: always, but in tests of the other.
    is_ours: bool,
    stage: Stage,
    /// How many bytes the stage takes at once.
    wanted: usize,
    /// How many bytes of the ring there are for the frame.
    room: usize,
    /// Where in the ring the next block goes.
    at: usize,
    /// Up to where what was decoded has been lent.
    lent: usize,
    /// Where a frame goes around the ring: the most that a block decodes to. Without room for so much, the next one goes to the start.
    turn: Option<usize>,
    /// Decoded bytes to come.
    left: usize,
    /// Of the frame, if it says how many it has. libzstd does not look where an empty block ends a frame.
    left_of_frame: Option<usize>,
    /// Decoded bytes at the end that nobody wants; 0 as soon as it shows that they have to be decoded all the same.
    behind: usize,
    started: bool,
}

enum Stage {
    Header,
    /// Behind the header of a skippable frame.
    Skip,
    Frame,
    Failed,
}

/// What a thread reuses from chunk to chunk.
#[derive(Default)]
struct Memory {
    context: Option<Context>,
    ring: Vec<u8>,
    /// Of what the stage takes at once, the bytes that came with earlier pieces.
    held: Vec<u8>,
}

impl Pieces {
    /// For a chunk of `decoded_len` bytes, of which the first `front` are wanted.
    pub(crate) fn new(decoded_len: usize, front: usize) -> Self {
        let behind = decoded_len.saturating_sub(front);
        let memory = MEMORY.take();
        Self {
            memory,
            blocks: None,
            is_ours: true,
            stage: Stage::Header,
            wanted: START,
            room: 0,
            at: 0,
            lent: 0,
            turn: None,
            left: decoded_len,
            left_of_frame: None,
            behind,
            started: false,
        }
    }

    pub(crate) fn decode(&mut self, encoded: &[u8], each: &mut dyn FnMut(&[u8])) -> Result<(), Problem> {
        if let Stage::Failed = self.stage {
            return Err("an earlier piece is bad");
        }
        let result = self.take_all(encoded, each);
        if result.is_err() {
            self.stage = Stage::Failed;
        }
        result
    }

    /// Whether all was lent that is wanted, and the rest may be left out: of one frame that says that it is the whole chunk, and has no checksum.
    pub(crate) fn is_done(&self) -> bool {
        matches!(self.stage, Stage::Frame) && self.has_front()
    }

    /// Whether all is decoded that is wanted, and not the whole chunk.
    fn has_front(&self) -> bool {
        self.behind > 0 && self.left <= self.behind
    }

    /// Whether the chunk may end here, and nothing of it is missing.
    pub(crate) fn finish(&self) -> Result<(), Problem> {
        if self.is_done() {
            return Ok(());
        }
        if !matches!(self.stage, Stage::Header) || !self.memory.held.is_empty() || !self.started {
            return Err("the frame is cut short");
        }
        if self.left > 0 { Err("the frames decode to less than the chunk") } else { Ok(()) }
    }

    fn take_all(&mut self, encoded: &[u8], each: &mut dyn FnMut(&[u8])) -> Result<(), Problem> {
        let mut rest = encoded;
        while !rest.is_empty() && !self.is_done() {
            let held = self.memory.held.len();
            let (front, behind) = rest.split_at(self.wanted.saturating_sub(held).min(rest.len()));
            rest = behind;
            if let Stage::Skip = self.stage {
                self.wanted = self.wanted.saturating_sub(front.len());
                self.end_frame_if_done()?;
            } else if front.len() == self.wanted {
                self.take(front, each)?;
            } else {
                self.memory.held.extend_from_slice(front);
                if self.memory.held.len() == self.wanted {
                    let mut held = std::mem::take(&mut self.memory.held);
                    self.take(&held, each)?;
                    if self.memory.held.is_empty() {
                        held.clear();
                        self.memory.held = held;
                    }
                }
            }
        }
        Ok(())
    }

    /// Takes as many bytes as are wanted.
    fn take(&mut self, bytes: &[u8], each: &mut dyn FnMut(&[u8])) -> Result<(), Problem> {
        match self.stage {
            Stage::Header => self.header(bytes),
            _ => self.step(bytes, each),
        }
    }

    /// The bytes of a header from its start, which may be too few.
    fn header(&mut self, bytes: &[u8]) -> Result<(), Problem> {
        let mut header = sys::ZSTD_FrameHeader {
            frameContentSize: 0,
            windowSize: 0,
            blockSizeMax: 0,
            frameType: sys::ZSTD_FrameType_e::ZSTD_frame,
            headerSize: 0,
            dictID: 0,
            checksumFlag: 0,
            _reserved1: 0,
            _reserved2: 0,
        };
        // SAFETY: the bytes are a slice, and the header is one.
        let more = check(unsafe { sys::ZSTD_getFrameHeader(&raw mut header, bytes.as_ptr().cast(), bytes.len()) })?;
        if more > 0 {
            self.memory.held.extend_from_slice(bytes);
            self.wanted = more;
            return Ok(());
        }
        let first = !std::mem::replace(&mut self.started, true);
        let content_size = usize::try_from(header.frameContentSize).unwrap_or(usize::MAX);
        if let sys::ZSTD_FrameType_e::ZSTD_skippableFrame = header.frameType {
            (self.stage, self.wanted) = (Stage::Skip, content_size);
            return self.end_frame_if_done();
        }
        self.left_of_frame = (header.frameContentSize != sys::ZSTD_CONTENTSIZE_UNKNOWN as u64).then_some(content_size);
        self.blocks = if self.is_ours { Blocks::begin(bytes) } else { None };
        let window = match &self.blocks {
            Some(blocks) => blocks.ring_len(),
            // SAFETY: no conditions.
            None => unsafe { sys::ZSTD_decodingBufferSize_min(header.windowSize, u64::MAX) },
        };
        if !first || content_size != self.left || header.checksumFlag != 0 {
            self.behind = 0;
        }
        let block = usize::try_from(header.blockSizeMax).unwrap_or(usize::MAX);
        let most = match self.behind {
            0 => content_size.min(self.left),
            // Up to the end of the block that the wanted bytes end in.
            behind => self.left.min(self.left.saturating_sub(behind).saturating_add(block)),
        };
        if first && window >= most && most == self.left && self.behind == 0 {
            return Err("its window is as large as the chunk");
        }
        self.turn = (window < most).then_some(block);
        // libzstd does not look whether a match begins in the window: where the ring goes around, it may be of what was written over, or of another chunk.
        if self.turn.is_some() && self.blocks.is_none() && header.checksumFlag == 0 {
            return Err("nothing tells of it in pieces whether it is right");
        }
        self.room = window.min(most);
        (self.at, self.lent) = (0, 0);
        if self.memory.ring.len() < self.room {
            let ring = Scratch::new().try_take_len(self.room, "zstd");
            self.memory.ring = ring.map_err(|_| "no room for what is wanted of the frame")?;
        }
        self.stage = Stage::Frame;
        if let Some(blocks) = &self.blocks {
            self.wanted = blocks.wanted();
            return Ok(());
        }
        let context = match &mut self.memory.context {
            Some(context) => context,
            empty => empty.insert(Context::new().ok_or(NO_MEMORY)?),
        };
        context.begin()?;
        let mut rest = bytes;
        while !rest.is_empty() {
            let wanted = self.memory.context.as_mut().map_or(0, Context::wanted);
            let (front, behind) = rest.split_at(wanted.min(rest.len()));
            rest = behind;
            self.step(front, &mut |_| {})?;
        }
        Ok(())
    }

    /// One step inside a frame: a part of its header, a block or its header, or the checksum.
    fn step(&mut self, bytes: &[u8], each: &mut dyn FnMut(&[u8])) -> Result<(), Problem> {
        let Memory { context, ring, .. } = &mut self.memory;
        let room = self.room.min(ring.len());
        let written = match (&mut self.blocks, context) {
            (Some(blocks), _) => {
                let written = blocks.step(bytes, ring.get_mut(..room).unwrap_or_default(), self.at).ok_or("libzstd is to look at it")?;
                self.wanted = blocks.wanted();
                written.saturating_sub(self.at)
            }
            (None, Some(context)) => {
                let to = ring.as_mut_ptr().wrapping_add(self.at);
                let room = room.saturating_sub(self.at);
                // SAFETY: `bytes` is a slice, and there is `room` behind `to` in the ring. What the library reads back, of earlier blocks of this frame, lies in
                // the ring, too, which is neither moved nor written by others before the next frame begins.
                let written =
                    unsafe { sys::ZSTD_decompressContinue(context.0.as_ptr(), to.cast(), room, bytes.as_ptr().cast(), bytes.len()) };
                self.wanted = context.wanted();
                check(written)?
            }
            (None, None) => return Err(NO_MEMORY),
        };
        self.left = self.left.checked_sub(written).ok_or("the frames decode to more than the chunk")?;
        if let Some(left) = &mut self.left_of_frame {
            *left = left.checked_sub(written).ok_or("the frame decodes to more than it says")?;
        }
        self.at = self.at.saturating_add(written);
        let turn = self.turn.is_some_and(|block| self.room.saturating_sub(self.at) < block);
        let pending = self.memory.ring.get(self.lent..self.at).unwrap_or_default();
        if turn || self.wanted == 0 || pending.len() >= LEND || self.has_front() {
            each(pending);
            if turn {
                if let Some(blocks) = &mut self.blocks {
                    blocks.turn(self.at);
                }
                self.at = 0;
            }
            self.lent = self.at;
        }
        self.end_frame_if_done()
    }

    fn end_frame_if_done(&mut self) -> Result<(), Problem> {
        if self.wanted == 0 {
            self.blocks = None;
            (self.stage, self.wanted) = (Stage::Header, START);
            if self.left_of_frame.take().is_some_and(|left| left > 0) {
                return Err("the frame decodes to less than it says");
            }
        }
        Ok(())
    }
}

impl Drop for Pieces {
    fn drop(&mut self) {
        let mut memory = std::mem::take(&mut self.memory);
        memory.held.clear();
        if memory.ring.capacity() > KEEP {
            memory.ring = Vec::new();
        }
        // A thread that ends keeps nothing.
        let _ = MEMORY.try_with(|kept| kept.set(memory));
    }
}

/// The outcome of a call.
fn check(code: usize) -> Result<usize, Problem> {
    // SAFETY: no conditions.
    if unsafe { sys::ZSTD_isError(code) } == 0 { Ok(code) } else { Err(get_error_name(code)) }
}

/// A context for decoding.
struct Context(NonNull<sys::ZSTD_DCtx>);

impl Context {
    fn new() -> Option<Self> {
        // SAFETY: no conditions.
        NonNull::new(unsafe { sys::ZSTD_createDCtx() }).map(Self)
    }

    /// Makes it ready for a frame.
    fn begin(&mut self) -> Result<(), Problem> {
        // SAFETY: the context is one.
        check(unsafe { sys::ZSTD_decompressBegin(self.0.as_ptr()) }).map(drop)
    }

    /// How many bytes the next step takes; 0 behind a frame.
    fn wanted(&mut self) -> usize {
        // SAFETY: the context is one.
        unsafe { sys::ZSTD_nextSrcSizeToDecompress(self.0.as_ptr()) }
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: the context is one, and this is its end.
        unsafe { sys::ZSTD_freeDCtx(self.0.as_ptr()) };
    }
}

#[cfg(test)]
mod tests {
    use ::zstd::zstd_safe::{CCtx, CParameter};

    use super::*;
    use crate::library::zstd::decompress;

    /// Bytes with matches at all distances, and stretches that do not shrink.
    fn data(len: usize) -> Vec<u8> {
        let mut state = 7u64;
        let mut bytes = Vec::with_capacity(len + 1000);
        while bytes.len() < len {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let run = (state >> 40) as usize % 700 + 1;
            match state >> 33 & 7 {
                0 => bytes.extend(std::iter::repeat_n((state >> 16) as u8, run * 3)),
                1 | 2 => bytes.extend((0..run as u64).map(|i| (state.wrapping_mul(i | 1) >> 56) as u8)),
                _ => {
                    let back = (state >> 8) as usize % bytes.len().max(1);
                    bytes.extend_from_within(back..bytes.len().min(back + run));
                }
            }
        }
        bytes.truncate(len);
        bytes
    }

    fn frame(decoded: &[u8], window_log: u32, sized: bool, checksum: bool) -> Vec<u8> {
        let mut context = CCtx::create();
        for parameter in [CParameter::WindowLog(window_log), CParameter::ContentSizeFlag(sized), CParameter::ChecksumFlag(checksum)] {
            context.set_parameter(parameter).unwrap();
        }
        let mut encoded = Vec::with_capacity(::zstd::zstd_safe::compress_bound(decoded.len()));
        context.compress2(&mut encoded, decoded).unwrap();
        encoded
    }

    fn skippable(len: u8) -> Vec<u8> {
        let mut frame = vec![0x53, 0x2A, 0x4D, 0x18, len, 0, 0, 0];
        frame.resize(frame.len() + usize::from(len), 0x28);
        frame
    }

    fn in_pieces(encoded: &[u8], len: usize, piece: usize) -> Result<Vec<u8>, Problem> {
        let mut decoded = Vec::new();
        let mut pieces = Pieces::new(len, len);
        for piece in encoded.chunks(piece) {
            pieces.decode(piece, &mut |bytes| decoded.extend_from_slice(bytes))?;
            assert!(decoded.len() <= len, "more than the chunk");
        }
        pieces.finish().map(|()| decoded)
    }

    #[test]
    fn nothing_is_decoded_behind_a_bad_piece() {
        let whole = data(100_000);
        let encoded = frame(&whole, 10, false, false);
        let mut pieces = Pieces::new(whole.len(), whole.len());
        pieces.decode(&encoded[..5000], &mut |_| {}).unwrap();
        assert!(pieces.decode(&[0xFF; 2000], &mut |_| {}).is_err());
        assert!(pieces.decode(&encoded, &mut |_| panic!("no more")).is_err());
        assert!(pieces.finish().is_err());
        assert!(in_pieces(&encoded, whole.len(), 1000).as_ref() == Ok(&whole), "the thread's memory is as good as new");
    }

    #[test]
    fn pieces_decode_to_what_the_whole_does() {
        let whole = data(900_000);
        for window_log in [10, 12, 15, 17, 18, 19] {
            for (sized, checksum) in [(true, false), (false, false), (false, true)] {
                let encoded = frame(&whole, window_log, sized, checksum);
                for piece in [1, 2, 7, 1000, 65_537, 256 << 10, usize::MAX] {
                    let decoded = in_pieces(&encoded, whole.len(), piece);
                    assert!(decoded.as_ref() == Ok(&whole), "window 2^{window_log}, {piece} bytes at a time: {:?}", decoded.err());
                }
            }
        }
    }

    #[test]
    fn a_window_as_large_as_the_chunk_is_left_to_the_whole() {
        let whole = data(300_000);
        for encoded in [frame(&whole, 20, true, false), frame(&whole, 18, false, false)] {
            assert_eq!(in_pieces(&encoded, whole.len(), 1000).err(), Some("its window is as large as the chunk"));
        }
    }

    /// What pieces lend of a chunk of which the first `front` bytes are wanted, and how many encoded bytes they took until they were done.
    fn front_of(encoded: &[u8], len: usize, front: usize, piece: usize) -> Result<(Vec<u8>, Option<usize>), Problem> {
        let (mut decoded, mut taken) = (Vec::new(), 0);
        let mut pieces = Pieces::new(len, front);
        for piece in encoded.chunks(piece) {
            if pieces.is_done() {
                break;
            }
            pieces.decode(piece, &mut |bytes| decoded.extend_from_slice(bytes))?;
            taken += piece.len();
        }
        let done = pieces.is_done().then_some(taken);
        pieces.finish().map(|()| (decoded, done))
    }

    #[test]
    fn the_front_is_decoded_and_no_more() {
        let whole = data(900_000);
        for window_log in [10, 17, 20] {
            let encoded = frame(&whole, window_log, true, false);
            for front in [0, 1, 1000, 131_072, 131_073, 500_000, whole.len() - 1] {
                for piece in [1, 1000, usize::MAX] {
                    let (decoded, done) = front_of(&encoded, whole.len(), front, piece).unwrap();
                    assert!(whole.starts_with(&decoded), "window 2^{window_log}, {front} bytes");
                    assert!((front..front + 131_073).contains(&decoded.len()), "{} bytes for {front}", decoded.len());
                    let most = if piece > encoded.len() { encoded.len() } else { encoded.len() * front / whole.len() + 140_000 };
                    let end = done.unwrap_or(encoded.len());
                    assert!(
                        end <= most && done.is_none() == (decoded.len() == whole.len()),
                        "{done:?} of {} bytes taken for {front}",
                        encoded.len()
                    );
                }
            }
            // What lies behind is not looked at.
            let mut bad = encoded.clone();
            bad.truncate(encoded.len() * 2 / 3);
            bad.extend([0xFF; 1000]);
            assert!(whole.starts_with(&front_of(&bad, whole.len(), 300_000, 5000).unwrap().0));
            assert!(front_of(&bad, whole.len(), 800_000, 5000).is_err());
        }
    }

    /// Whatever else would have to be looked at to know that the front is right.
    #[test]
    fn the_front_alone_is_decoded_of_one_frame_that_says_that_it_is_all() {
        let whole = data(600_000);
        let (first, second) = whole.split_at(300_000);
        let several = [frame(first, 12, true, false), frame(second, 12, true, false)].concat();
        for encoded in [frame(&whole, 12, true, true), frame(&whole, 12, false, false), several, frame(first, 12, true, false)] {
            let all = in_pieces(&encoded, whole.len(), 1000);
            let (decoded, done) =
                front_of(&encoded, whole.len(), 100, 1000).map_or_else(|error| (Err(error), None), |(decoded, done)| (Ok(decoded), done));
            assert_eq!((decoded == all, done), (true, None));
        }
        assert!(front_of(&[skippable(4), frame(&whole, 12, true, false)].concat(), whole.len(), 100, 1000).unwrap().1.is_none());
    }

    #[test]
    fn several_frames_follow_each_other() {
        let whole = data(700_000);
        let (first, rest) = whole.split_at(123_456);
        let (second, third) = rest.split_at(50_001);
        for (one, two, three) in [(15, 10, 12), (17, 20, 20), (10, 20, 15)] {
            let parts = [
                skippable(0),
                frame(first, one, true, true),
                skippable(255),
                frame(second, two, false, true),
                frame(&[], 10, true, false),
                frame(third, three, one == 17, false),
                skippable(3),
            ];
            let encoded = parts.concat();
            for piece in [1, 5, 100, 100_000, usize::MAX] {
                assert!(in_pieces(&encoded, whole.len(), piece).as_ref() == Ok(&whole), "{one}, {two}, {three}, {piece} bytes at a time");
            }
            for other in [0, 1, first.len(), whole.len() - 1, whole.len() + 1] {
                assert!(in_pieces(&encoded, other, 1000).is_err(), "accepted for {other} bytes");
            }
            assert!(in_pieces(&[encoded.as_slice(), &[0x28]].concat(), whole.len(), 1000).is_err(), "a byte behind the last frame");
        }
        assert!(in_pieces(&[], 0, 1).is_err(), "no frame");
        assert_eq!(in_pieces(&skippable(9), 0, 4), Ok(Vec::new()));
    }

    /// libzstd does not look at the size that a frame says it has where an empty block ends it.
    #[test]
    fn a_frame_is_as_long_as_it_says() {
        let whole = data(300_000);
        // The header, of 257 bytes in a window of 1 KiB, and a last block of none.
        let empty = [0x28, 0xB5, 0x2F, 0xFD, 0x40, 0x00, 0x01, 0x00, 0x01, 0x00, 0x00];
        let encoded = [&empty[..], &frame(&whole, 12, true, false)].concat();
        let mut at_once = vec![0; whole.len()];
        assert!(decompress(&encoded, &mut at_once).is_err());
        assert_eq!(in_pieces(&encoded, whole.len(), 1000).err(), Some("the frame decodes to less than it says"));
    }

    /// Whatever the damage, and whoever decodes: what pieces accept, the whole is, too.
    #[test]
    fn damage_is_no_better_in_pieces() {
        let whole = data(200_000);
        for (sized, checksum) in [(false, true), (true, false)] {
            let encoded = frame(&whole, 13, sized, checksum);
            let verdict = |bad: &[u8], what: &str| {
                let mut at_once = vec![0; whole.len()];
                let good = decompress(bad, &mut at_once) == Ok(whole.len());
                for piece in [1000, 40_000] {
                    if let Ok(decoded) = in_pieces(bad, whole.len(), piece) {
                        assert!(good && decoded == at_once, "{what}");
                    }
                }
                good
            };
            assert!(verdict(&encoded, "as it is"));
            for end in (0..encoded.len()).step_by(997).chain(encoded.len() - 9..encoded.len()) {
                assert!(!verdict(&encoded[..end], &format!("cut to {end}")));
            }
            for bit in (0..48 * 8).chain((48 * 8..encoded.len() * 8).step_by(4003)) {
                let mut bad = encoded.clone();
                bad[bit / 8] ^= 1 << (bit % 8);
                verdict(&bad, &format!("bit {bit}"));
            }
            let mut bad = encoded.clone();
            *bad.last_mut().unwrap() ^= 1;
            assert!(!(checksum && verdict(&bad, "the checksum")));
        }
    }

    /// A match from before the window, which libzstd takes at once, and in a ring of what lies there by chance. The dictionary 0, which is none, may be told.
    #[test]
    fn nothing_of_another_chunk_is_in_what_the_ring_holds() {
        let header = [0x28, 0xB5, 0x2F, 0xFD];
        let blocks = [
            // 1,024, 1,024 and 100 times a byte; a sequence without literals, of 3 bytes 2,148 before; 1,000 times a byte.
            &[0x02, 0x20, 0x00, 0x01, 0x02, 0x20, 0x00, 0x02, 0x22, 0x03, 0x00, 0x03][..],
            &[0x44, 0x00, 0x00, 0x00, 0x01, 0x54, 0x00, 0x0B, 0x00, 0x67, 0x08, 0x43, 0x1F, 0x00, 0x04],
        ];
        let len = 3151;
        for descriptor in [&[0x01, 0x00, 0x00][..], &[0x00, 0x00]] {
            let encoded = [&header[..], descriptor, blocks[0], blocks[1]].concat();
            let mut at_once = vec![0; len];
            assert!(decompress(&encoded, &mut at_once) == Ok(len) && at_once[2148..2151] == [1, 1, 1]);
            assert!(in_pieces(&encoded, len, 100).is_err());
        }
        // Where libzstd decodes, it is not to be found out.
        let whole = data(100_000);
        for (window_log, checksum, is_taken) in [(12, true, true), (12, false, false), (18, false, true)] {
            let mut pieces = Pieces::new(whole.len(), if window_log == 18 { 50_000 } else { whole.len() });
            pieces.is_ours = false;
            let decoded = pieces.decode(&frame(&whole, window_log, true, checksum), &mut |_| {});
            assert_eq!(decoded.is_ok(), is_taken, "window 2^{window_log}");
        }
    }

    /// Which RFC 8878 forbids, and libzstd takes at once. What is no longer in the ring is not made up.
    #[test]
    #[cfg(target_arch = "x86_64")]
    fn a_match_from_before_the_window_is_left_to_the_whole() {
        let whole: Vec<u8> = data(300_000).iter().copied().cycle().take(1_500_000).collect();
        let mut encoded = frame(&whole, 19, true, false);
        assert!(in_pieces(&encoded, whole.len(), 1000).as_ref() == Ok(&whole));
        // RFC 8878 §3.1.1.1.2: of 256 KiB instead of 512.
        assert_eq!(encoded[5], 9 << 3);
        encoded[5] = 8 << 3;
        let mut at_once = vec![0; whole.len()];
        assert!(decompress(&encoded, &mut at_once) == Ok(whole.len()) && at_once == whole);
        assert_eq!(in_pieces(&encoded, whole.len(), 1000).err(), Some("libzstd is to look at it"));
    }

    /// Both decoders, for frames of either.
    #[test]
    #[cfg(target_arch = "x86_64")]
    fn frames_are_decoded_by_who_is_to() {
        let whole = data(300_000);
        for (checksum, ours) in [(false, true), (true, false)] {
            let mut pieces = Pieces::new(whole.len(), whole.len());
            pieces.decode(&frame(&whole, 12, true, checksum)[..20_000], &mut |_| {}).unwrap();
            assert_eq!(pieces.blocks.is_some(), ours);
        }
    }
}

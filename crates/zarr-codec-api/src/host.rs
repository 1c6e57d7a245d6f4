use std::fmt;

use crate::{CodecError, CodecErrorKind, VariableData};

/// A bound run of stages that works on the host, at once, on the calling thread.
///
/// One call takes a batch; `zarr-array` cuts batches so that its threads are busy, and calls from several threads at a time. A bad slot
/// fails alone.
pub trait HostSegment: fmt::Debug + Send + Sync + 'static {
    /// Decodes every slot and sets its status. A destination whose slot fails holds anything.
    fn decode(&self, slots: &mut [DecodeSlot<'_>], scratch: &mut Scratch);

    /// Encodes every slot and sets its status.
    fn encode(&self, slots: &mut [EncodeSlot<'_>], scratch: &mut Scratch);

    /// Whether the encoded bytes are the decoded bytes, so that any part can be read on its own and straight to its destination.
    fn is_verbatim(&self) -> bool {
        false
    }

    /// Where the encoded bytes contain the decoded bytes as they are (checked, where there is a checksum): that part of them.
    fn view<'a>(&self, encoded: &'a [u8]) -> Option<Result<&'a [u8], CodecError>> {
        self.is_verbatim().then_some(Ok(encoded))
    }

    /// The parts of an encoded chunk that can be decoded each on its own; `None` where it has none, or something is wrong with it, which decoding all
    /// of it then tells.
    fn blocks<'a>(&self, encoded: &'a [u8]) -> Option<Box<dyn Blocks + 'a>> {
        let _ = encoded;
        None
    }

    /// A decoder that takes an encoded chunk in pieces, for who wants the first `wanted` of its decoded bytes; `None` where there is none.
    fn pieces(&self, wanted: usize) -> Option<Box<dyn Pieces>> {
        let _ = wanted;
        None
    }
}

/// An encoded chunk in blocks: stretches of the decoded bytes, each of which can be decoded on its own, on any thread.
///
/// A reader that wants a part of a chunk decodes no more than the blocks it lies in, one that has many threads and one chunk decodes blocks side by side, and
/// one that is to copy what it decodes elsewhere needs no room for the whole chunk.
pub trait Blocks: Send + Sync {
    /// Bytes that each block decodes to, at least 1; the last may decode to fewer.
    fn block_len(&self) -> usize;

    /// Decodes block `index`, the bytes from `index * block_len()` on, to exactly `decoded.len()` bytes: all of the block.
    ///
    /// # Errors
    /// When the bytes are bad, or `decoded` is not as long as the block.
    fn decode(&self, index: usize, decoded: &mut [u8]) -> Result<(), CodecError>;

    /// Decodes the front of block `index`: its first `decoded.len()` bytes. What it is of a good block is that part of what [`Blocks::decode`] makes of it; what lies behind need not
    /// be looked at. `None` where that takes no less than all of the block: by default.
    ///
    /// # Errors
    /// When bytes that are looked at are bad, or `decoded` is longer than the block.
    fn decode_front(&self, index: usize, decoded: &mut [u8]) -> Option<Result<(), CodecError>> {
        let _ = (index, decoded);
        None
    }
}

/// Decodes one chunk from its start to its end, a piece at a time: a reader that is to copy what is decoded elsewhere needs no room for the whole chunk, neither
/// encoded nor decoded, and one that wants only the front of it need not read and decode what lies behind.
pub trait Pieces {
    /// Whether this takes more processor time than decoding the chunk at once: it is for who has not the memory.
    fn is_slower(&self) -> bool {
        false
    }

    /// Takes the next encoded bytes, cut anywhere, and lends what they decode to, in order, to `each`. Together no more than the chunk decodes to.
    ///
    /// # Errors
    /// When the bytes are bad, or better decoded at once. Decoding all of the chunk then tells, and nothing more is to be asked of this.
    fn decode(&mut self, encoded: &[u8], each: &mut dyn FnMut(&[u8])) -> Result<(), CodecError>;

    /// Whether all bytes that are wanted were lent, but not the whole chunk, and nothing behind them tells whether they are right, as a checksum would: no more
    /// pieces need be given, and those that are given are not looked at.
    fn is_done(&self) -> bool {
        false
    }

    /// The chunk ends here.
    ///
    /// # Errors
    /// When its bytes, or what they decoded to, are not all of it, unless this was [done](Pieces::is_done).
    fn finish(self: Box<Self>) -> Result<(), CodecError>;
}

/// One chunk to decode.
#[derive(Debug)]
pub struct DecodeSlot<'a> {
    /// Encoded bytes.
    pub encoded: &'a [u8],
    /// Where the decoded bytes go.
    pub decoded: Target<'a>,
    /// The outcome.
    pub status: Result<(), CodecError>,
}

/// Where decoded bytes go.
#[derive(Debug)]
pub enum Target<'a> {
    /// Exactly this many bytes.
    Exact(&'a mut [u8]),
    /// An empty vector, to grow to at most `limit` bytes: between two segments, where the size is not known before.
    Growing {
        /// Where to append.
        bytes: &'a mut Vec<u8>,
        /// The most it may grow to.
        limit: usize,
    },
    /// Elements of variable length.
    Variable {
        /// Where to append.
        elements: &'a mut VariableData,
        /// The most bytes that the elements together may have.
        limit: usize,
    },
}

/// One chunk to encode.
#[derive(Debug)]
pub struct EncodeSlot<'a> {
    /// What to encode.
    pub decoded: Source<'a>,
    /// An empty vector for the encoded bytes.
    pub encoded: &'a mut Vec<u8>,
    /// The outcome.
    pub status: Result<(), CodecError>,
}

/// What is to be encoded.
#[derive(Debug, Clone, Copy)]
pub enum Source<'a> {
    /// Elements of fixed length, or bytes.
    Bytes(&'a [u8]),
    /// Elements of variable length.
    Variable(&'a VariableData),
}

/// Buffers that one thread reuses from chunk to chunk: fresh memory costs a page fault every 4 KiB, more than many decoders do.
#[derive(Debug, Default)]
pub struct Scratch {
    free: Vec<Vec<u8>>,
}

impl Scratch {
    /// The most bytes kept for reuse.
    const KEEP: usize = 64 << 20;

    /// No buffers yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty vector, with the room of an earlier one.
    pub fn take(&mut self) -> Vec<u8> {
        let mut bytes = self.free.pop().unwrap_or_default();
        bytes.clear();
        bytes
    }

    /// As [`Scratch::take_len`], for a length that only metadata vouches for: more than the system has is an error instead of the end of the process.
    ///
    /// # Errors
    /// A limit error, in the name of `codec`, when there is no room.
    pub fn try_take_len(&mut self, len: usize, codec: &str) -> Result<Vec<u8>, CodecError> {
        if len > Self::KEEP && self.free.iter().all(|bytes| bytes.capacity() < len) {
            // Only zeroed memory comes without being touched, and there is no fallible way to ask for it: ask for any first.
            Vec::<u8>::new().try_reserve_exact(len).map_err(|error| {
                CodecError::new(CodecErrorKind::Limit, codec, format!("no room for a chunk of {len} bytes")).with_source(error)
            })?;
        }
        Ok(self.take_len(len))
    }

    /// A vector of `len` bytes that hold anything (initialised, but from an earlier use).
    pub fn take_len(&mut self, len: usize) -> Vec<u8> {
        let best = self.free.iter().position(|bytes| bytes.len() >= len).or(self.free.len().checked_sub(1));
        let mut bytes = best.map(|index| self.free.swap_remove(index)).unwrap_or_default();
        if bytes.len() >= len {
            bytes.truncate(len);
        } else if bytes.capacity() >= len {
            bytes.resize(len, 0);
        } else {
            // Fresh zero pages rather than a copy of bytes that nobody wants.
            bytes = vec![0; len];
            zarr_buffer_api::advise_huge_pages(&mut bytes);
        }
        bytes
    }

    /// Gives a vector back for reuse.
    pub fn give(&mut self, bytes: Vec<u8>) {
        let kept: usize = self.free.iter().map(Vec::capacity).sum();
        if bytes.capacity() > 0 && self.free.len() < 8 && kept.saturating_add(bytes.capacity()) <= Self::KEEP {
            self.free.push(bytes);
        }
    }
}

//! From a chunk to what was encoded.

use std::cell::RefCell;

use zarr_codec_api::{Blocks, CodecError};

use super::header::{Contents, Format, HEADER_LEN, Header};
use super::{NAME, Shuffle, blosclz};
use crate::library::{deflate, lz4, zstd};
use crate::shuffle::{bitunshuffle, unshuffle};

/// The most that a thread keeps of its buffers between calls.
const KEEP: usize = 4 << 20;

/// Two buffers of a block each.
#[derive(Default)]
struct Buffers {
    shuffled: Vec<u8>,
    bits: Vec<u8>,
}

impl Buffers {
    fn trim(&mut self) {
        if self.shuffled.capacity() > KEEP {
            *self = Self::default();
        }
    }
}

thread_local! {
    static BUFFERS: RefCell<Buffers> = RefCell::default();
}

pub(super) fn decode(encoded: &[u8], decoded: &mut [u8]) -> Result<(), CodecError> {
    let header = Header::parse(encoded)?;
    if header.decoded_len != decoded.len() {
        return Err(CodecError::size(NAME, decoded.len(), header.decoded_len));
    }
    decode_blocks(&header, encoded, decoded)
}

pub(super) fn decode_growing(encoded: &[u8], decoded: &mut Vec<u8>, limit: usize) -> Result<(), CodecError> {
    let header = Header::parse(encoded)?;
    if header.decoded_len > limit {
        return Err(CodecError::limit(NAME, limit));
    }
    check_plausible(&header, encoded)?;
    decoded.resize(header.decoded_len, 0);
    decode_blocks(&header, encoded, decoded)
}

fn decode_blocks(header: &Header, encoded: &[u8], decoded: &mut [u8]) -> Result<(), CodecError> {
    let Contents::Blocks { format, shuffle, split } = header.contents else {
        let stored = encoded.get(HEADER_LEN..).unwrap_or_default();
        if stored.len() != decoded.len() {
            return Err(CodecError::size(NAME, decoded.len(), stored.len()));
        }
        decoded.copy_from_slice(stored);
        return Ok(());
    };
    BUFFERS.with_borrow_mut(|buffers| {
        let mut budget = Budget::new(encoded);
        let mut blocks = decoded.chunks_mut(header.block_size.max(1)).enumerate();
        let result = blocks.try_for_each(|(index, block)| {
            let streams = Streams { header, encoded, split, index, block_len: block.len() };
            budget.spend(decode_block(&streams, format, shuffle, block, buffers)?)
        });
        buffers.trim();
        result
    })
}

/// Decodes one block, and answers with the bytes that it takes in the chunk.
fn decode_block(
    streams: &Streams<'_>,
    format: Format,
    shuffle: Shuffle,
    block: &mut [u8],
    buffers: &mut Buffers,
) -> Result<usize, CodecError> {
    let type_size = streams.header.type_size;
    let Buffers { shuffled, bits } = buffers;
    match shuffle {
        Shuffle::None => streams.decode(format, block),
        Shuffle::Bytes => {
            let shuffled = sized(shuffled, block.len());
            let len = streams.decode(format, shuffled)?;
            unshuffle(type_size, shuffled, block);
            Ok(len)
        }
        Shuffle::Bits => {
            let shuffled = sized(shuffled, block.len());
            let len = streams.decode(format, shuffled)?;
            bitunshuffle(type_size, shuffled, block, sized(bits, block.len()));
            Ok(len)
        }
    }
}

/// The blocks of a chunk, to be decoded one by one.
pub(super) struct ChunkBlocks<'a> {
    header: Header,
    encoded: &'a [u8],
    format: Format,
    shuffle: Shuffle,
    split: bool,
}

/// The blocks of a chunk that has several of a size worth a call each, or one with a front, and in which they lie as they should.
pub(super) fn blocks(encoded: &[u8], decoded_len: usize) -> Option<ChunkBlocks<'_>> {
    const LEAST: usize = 1 << 10;
    let header = Header::parse(encoded).ok().filter(|header| header.decoded_len == decoded_len)?;
    let Contents::Blocks { format, shuffle, split } = header.contents else { return None };
    let blocks = ChunkBlocks { header, encoded, format, shuffle, split };
    if blocks.header.block_size < LEAST || (blocks.header.blocks() < 2 && !blocks.has_front(0)) {
        return None;
    }
    let mut budget = Budget::new(encoded);
    for index in 0..blocks.header.blocks() {
        budget.spend(blocks.streams(index).for_each(|_, _, _| Ok(())).ok()?).ok()?;
    }
    Some(blocks)
}

impl ChunkBlocks<'_> {
    fn streams(&self, index: usize) -> Streams<'_> {
        let Self { header, encoded, split, .. } = self;
        Streams { header, encoded, split: *split, index, block_len: header.len_of_block(index) }
    }

    /// Whether the front of a block is that of its streams, and these can be decoded so far.
    fn has_front(&self, index: usize) -> bool {
        let streams = self.header.streams(self.split, self.header.len_of_block(index));
        let whole = match self.shuffle {
            Shuffle::None => streams == 1,
            Shuffle::Bytes => streams == self.header.type_size,
            Shuffle::Bits => false,
        };
        whole && self.format == Format::Lz4
    }
}

impl Blocks for ChunkBlocks<'_> {
    fn block_len(&self) -> usize {
        self.header.block_size
    }

    fn decode(&self, index: usize, decoded: &mut [u8]) -> Result<(), CodecError> {
        let streams = self.streams(index);
        if index >= self.header.blocks() || streams.block_len != decoded.len() {
            return Err(CodecError::size(NAME, streams.block_len, decoded.len()));
        }
        BUFFERS.with_borrow_mut(|buffers| {
            let result = decode_block(&streams, self.format, self.shuffle, decoded, buffers);
            buffers.trim();
            result.map(drop)
        })
    }

    fn decode_front(&self, index: usize, decoded: &mut [u8]) -> Option<Result<(), CodecError>> {
        let streams = self.streams(index);
        if index >= self.header.blocks() || decoded.len() > streams.block_len {
            return Some(Err(CodecError::size(NAME, streams.block_len, decoded.len())));
        }
        if !self.has_front(index) {
            return None;
        }
        if self.shuffle == Shuffle::None {
            return Some(streams.decode_fronts(decoded.len(), decoded));
        }
        let type_size = self.header.type_size;
        let elements = decoded.len().div_ceil(type_size.max(1));
        let len = elements.saturating_mul(type_size);
        Some(BUFFERS.with_borrow_mut(|buffers| {
            let shuffled = sized(&mut buffers.shuffled, len);
            let result = streams.decode_fronts(elements, shuffled);
            if len == decoded.len() {
                unshuffle(type_size, shuffled, decoded);
            } else {
                // The last element is cut.
                let whole = sized(&mut buffers.bits, len);
                unshuffle(type_size, shuffled, whole);
                decoded.iter_mut().zip(whole).for_each(|(to, from)| *to = *from);
            }
            buffers.trim();
            result
        }))
    }
}

/// Blocks that share bytes could make a small chunk take long to decode; nobody writes such.
struct Budget {
    left: usize,
}

impl Budget {
    fn new(encoded: &[u8]) -> Self {
        Self { left: encoded.len() }
    }

    fn spend(&mut self, len: usize) -> Result<(), CodecError> {
        self.left = self.left.checked_sub(len).ok_or_else(|| CodecError::format(NAME, "blocks overlap"))?;
        Ok(())
    }
}

/// The first `len` bytes of a buffer, which grows to have them.
fn sized(buffer: &mut Vec<u8>, len: usize) -> &mut [u8] {
    if buffer.len() < len {
        buffer.resize(len, 0);
    }
    buffer.get_mut(..len).unwrap_or_default()
}

/// The streams of one block.
struct Streams<'a> {
    header: &'a Header,
    encoded: &'a [u8],
    split: bool,
    index: usize,
    block_len: usize,
}

impl<'a> Streams<'a> {
    fn error(&self, message: impl std::fmt::Display, offset: usize) -> CodecError {
        CodecError::format(NAME, format!("block {}: {message}", self.index)).at(offset as u64)
    }

    /// Calls `each` with the bytes of each stream, the number of bytes that they decode to, and their offset in the chunk.
    /// Answers with the bytes that the block takes in the chunk.
    fn for_each(&self, mut each: impl FnMut(&'a [u8], usize, usize) -> Result<(), CodecError>) -> Result<usize, CodecError> {
        let streams = self.header.streams(self.split, self.block_len);
        let stream_len = self.block_len.checked_div(streams).unwrap_or(0);
        if stream_len.saturating_mul(streams) != self.block_len {
            return Err(self.error(format_args!("{} bytes do not split into {streams} streams", self.block_len), 8));
        }
        let number = |offset: usize| {
            let bytes = self.encoded.get(offset..).and_then(<[u8]>::first_chunk);
            bytes.and_then(|bytes| usize::try_from(i32::from_le_bytes(*bytes)).ok())
        };
        let mut offset = number(Header::offset_of_block(self.index))
            .ok_or_else(|| self.error("its offset is negative", Header::offset_of_block(self.index)))?;
        let block_start = offset;
        for stream in 0..streams {
            let start = offset.saturating_add(4);
            let bytes = number(offset).and_then(|len| self.encoded.get(start..start.checked_add(len)?));
            let bytes = bytes.ok_or_else(|| self.error(format_args!("stream {stream} reaches outside the chunk"), offset))?;
            each(bytes, stream_len, start)?;
            offset = start.saturating_add(bytes.len());
        }
        Ok(offset.saturating_sub(block_start))
    }

    /// Decompresses the first `wanted` bytes of each stream of LZ4 to `fronts`, one behind the other.
    fn decode_fronts(&self, wanted: usize, fronts: &mut [u8]) -> Result<(), CodecError> {
        let mut fronts = fronts.chunks_exact_mut(wanted.max(1));
        let decoded = self.for_each(|stream, len, offset| {
            let Some(front) = fronts.next() else { return Ok(()) };
            let written = match stream.get(..wanted).filter(|_| stream.len() == len) {
                Some(stored) => {
                    front.copy_from_slice(stored);
                    Some(wanted)
                }
                None => lz4::decompress_front(stream, front),
            };
            match written {
                Some(written) if written == wanted => Ok(()),
                Some(written) => Err(self.error(format_args!("a stream of {len} bytes decodes to {written}"), offset)),
                None => Err(self.error("a stream is damaged", offset)),
            }
        });
        decoded.map(drop)
    }

    /// Decompresses the streams to the whole of `block`, one behind the other.
    fn decode(&self, format: Format, block: &mut [u8]) -> Result<usize, CodecError> {
        let mut rest = block;
        self.for_each(|stream, len, offset| {
            let Some((to, behind)) = std::mem::take(&mut rest).split_at_mut_checked(len) else {
                return Err(self.error("its streams are longer than the block", offset));
            };
            rest = behind;
            // What did not shrink is there as it is.
            if stream.len() == len {
                to.copy_from_slice(stream);
                return Ok(());
            }
            let written = match format {
                Format::Blosclz => blosclz::decompress(stream, to),
                Format::Lz4 => lz4::decompress(stream, to),
                Format::Snappy => snappy_decompress(stream, to),
                Format::Zlib => deflate::decompress(deflate::Format::Zlib, stream, to).ok().map(|progress| progress.written),
                Format::Zstd => zstd::decompress(stream, to).ok(),
            };
            match written {
                Some(written) if written == len => Ok(()),
                Some(written) => Err(self.error(format_args!("a stream of {len} bytes decodes to {written}"), offset)),
                None => Err(self.error("a stream is damaged, or decodes to more than it should", offset)),
            }
        })
    }
}

fn snappy_decompress(encoded: &[u8], decoded: &mut [u8]) -> Option<usize> {
    // The decoder checks the size that the stream claims against the slice.
    snap::raw::Decoder::new().decompress(encoded, decoded).ok()
}

/// Whether the streams are long enough to decode to what the header claims, so that a few bytes cannot make us allocate much.
fn check_plausible(header: &Header, encoded: &[u8]) -> Result<(), CodecError> {
    let Contents::Blocks { format, split, .. } = header.contents else {
        return Ok(());
    };
    let mut budget = Budget::new(encoded);
    for index in 0..header.blocks() {
        let block_len = header.len_of_block(index);
        let streams = Streams { header, encoded, split, index, block_len };
        let len = streams.for_each(|stream, len, offset| {
            let most = match format {
                Format::Blosclz => stream.len().saturating_mul(blosclz::MAX_RATIO),
                Format::Lz4 => stream.len().saturating_mul(lz4::MAX_RATIO),
                // A copy of 64 bytes takes three.
                Format::Snappy => stream.len().saturating_mul(64),
                Format::Zlib => stream.len().saturating_mul(deflate::MAX_RATIO),
                Format::Zstd if stream.len() == len => len,
                Format::Zstd => usize::try_from(zstd::frames::bound(stream).unwrap_or(0)).unwrap_or(usize::MAX),
            };
            if len <= most { Ok(()) } else { Err(streams.error("a stream cannot decode to as much as it should", offset)) }
        })?;
        budget.spend(len)?;
    }
    Ok(())
}

//! The header of a chunk, and what follows from it.

use zarr_codec_api::CodecError;

use super::{NAME, Shuffle};

/// Bytes of the header.
pub(super) const HEADER_LEN: usize = 16;

/// The version of the chunk format.
pub(super) const VERSION: u8 = 2;

/// The version of every inner codec's format.
pub(super) const COMPRESSOR_VERSION: u8 = 1;

/// The most bytes that a chunk decodes to.
pub(super) const MAX_DECODED_LEN: usize = i32::MAX as usize - HEADER_LEN;

/// Blocks are split no further than into this many streams,
pub(super) const MAX_STREAMS: usize = 16;

/// and not into streams of less than this many bytes. Chunks smaller than that are not compressed.
pub(super) const MIN_STREAM_LEN: usize = 128;

/// Bits of the third byte of the header; the upper three are the inner codec's format.
pub(super) mod flags {
    pub(crate) const BYTE_SHUFFLE: u8 = 0x01;
    pub(crate) const STORED: u8 = 0x02;
    pub(crate) const BIT_SHUFFLE: u8 = 0x04;
    pub(crate) const RESERVED: u8 = 0x08;
    pub(crate) const DO_NOT_SPLIT: u8 = 0x10;
    pub(crate) const FORMAT_SHIFT: u32 = 5;
}

/// Inner codecs by the format of what they write: LZ4HC writes what LZ4 reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Blosclz,
    Lz4,
    Snappy,
    Zlib,
    Zstd,
}

impl Format {
    const ALL: [Self; 5] = [Self::Blosclz, Self::Lz4, Self::Snappy, Self::Zlib, Self::Zstd];

    /// The number in the header.
    pub(super) fn number(self) -> u8 {
        match self {
            Self::Blosclz => 0,
            Self::Lz4 => 1,
            Self::Snappy => 2,
            Self::Zlib => 3,
            Self::Zstd => 4,
        }
    }
}

/// A header that was checked against the chunk that it heads.
#[derive(Debug)]
pub(super) struct Header {
    pub(super) decoded_len: usize,
    pub(super) block_size: usize,
    pub(super) type_size: usize,
    pub(super) contents: Contents,
}

/// What is behind the header.
#[derive(Debug)]
pub(super) enum Contents {
    /// The decoded bytes.
    Stored,
    /// An offset for each block, then the blocks.
    Blocks { format: Format, shuffle: Shuffle, split: bool },
}

impl Header {
    /// Reads the header of a chunk. Afterwards: the block size is at least 1, and at most the decoded length unless that is 0; a stored chunk is there in
    /// full; there is an offset for every block.
    pub(super) fn parse(encoded: &[u8]) -> Result<Self, CodecError> {
        let Some((&[version, compressor_version, flags, type_size, ref sizes @ ..], rest)) = encoded.split_first_chunk::<HEADER_LEN>()
        else {
            return Err(CodecError::format(NAME, format!("{} bytes are too few for a header", encoded.len())));
        };
        let mut sizes = sizes.as_chunks().0.iter().map(|size| usize::try_from(u32::from_le_bytes(*size)).unwrap_or(usize::MAX));
        let (Some(decoded_len), Some(block_size), Some(encoded_len)) = (sizes.next(), sizes.next(), sizes.next()) else {
            return Err(CodecError::format(NAME, "the header is cut short"));
        };
        let bad = |message: String, offset| Err(CodecError::format(NAME, message).at(offset));
        if version != VERSION {
            return bad(format!("version {version} of the chunk format is not known"), 0);
        }
        if flags & flags::RESERVED != 0 {
            return bad("a reserved flag is set".to_owned(), 2);
        }
        if encoded_len != encoded.len() {
            return bad(format!("the header says that the chunk has {encoded_len} bytes, found {}", encoded.len()), 12);
        }
        if decoded_len > MAX_DECODED_LEN {
            return bad(format!("the header says that {decoded_len} bytes were encoded, more than a chunk can hold"), 4);
        }
        if decoded_len == 0 {
            return Ok(Self { decoded_len, block_size: 1, type_size: 1, contents: Contents::Stored });
        }
        if type_size == 0 {
            return bad("the type size is 0".to_owned(), 3);
        }
        if block_size == 0 || block_size > decoded_len {
            return bad(format!("the block size is {block_size}, that of the decoded chunk {decoded_len}"), 8);
        }
        let type_size = usize::from(type_size);
        if flags & flags::STORED != 0 {
            if rest.len() != decoded_len {
                return bad(format!("{decoded_len} bytes were stored, found {}", rest.len()), 4);
            }
            return Ok(Self { decoded_len, block_size, type_size, contents: Contents::Stored });
        }
        if compressor_version != COMPRESSOR_VERSION {
            return bad(format!("version {compressor_version} of the inner codec's format is not known"), 1);
        }
        let number = flags >> flags::FORMAT_SHIFT;
        let Some(format) = Format::ALL.into_iter().find(|format| format.number() == number) else {
            return bad(format!("inner codec {number} is not known"), 2);
        };
        // Where both are set, c-blosc shuffles bytes; it writes neither for elements of one byte.
        let shuffle = if flags & flags::BYTE_SHUFFLE != 0 && type_size > 1 {
            Shuffle::Bytes
        } else if flags & flags::BIT_SHUFFLE != 0 {
            Shuffle::Bits
        } else {
            Shuffle::None
        };
        let streams_len = block_size.checked_div(type_size).unwrap_or(0);
        // Chunks from before there was the flag are split on these conditions alone.
        let split = flags & flags::DO_NOT_SPLIT == 0 && type_size <= MAX_STREAMS && streams_len >= MIN_STREAM_LEN;
        let header = Self { decoded_len, block_size, type_size, contents: Contents::Blocks { format, shuffle, split } };
        if header.blocks() > rest.len() / 4 {
            return bad(format!("{} bytes cannot hold the offsets of {} blocks", rest.len(), header.blocks()), 8);
        }
        Ok(header)
    }

    /// Number of blocks.
    pub(super) fn blocks(&self) -> usize {
        self.decoded_len.div_ceil(self.block_size.max(1))
    }

    /// Bytes that a block decodes to; 0 behind the last one.
    pub(super) fn len_of_block(&self, index: usize) -> usize {
        self.decoded_len.saturating_sub(index.saturating_mul(self.block_size)).min(self.block_size)
    }

    /// Where a block's offset stands.
    pub(super) fn offset_of_block(index: usize) -> usize {
        HEADER_LEN.saturating_add(index.saturating_mul(4))
    }

    /// In how many streams a block of `block_len` bytes is: the last is not split when it is shorter than the others.
    pub(super) fn streams(&self, split: bool, block_len: usize) -> usize {
        if split && block_len == self.block_size { self.type_size } else { 1 }
    }
}

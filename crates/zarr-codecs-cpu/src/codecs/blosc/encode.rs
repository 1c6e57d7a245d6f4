//! From bytes to a chunk.

use std::cell::RefCell;
use std::ffi::CStr;

use zarr_codec_api::CodecError;

use super::header::{COMPRESSOR_VERSION, Format, HEADER_LEN, MAX_DECODED_LEN, MAX_STREAMS, MIN_STREAM_LEN, VERSION, flags};
use super::{Blosc, Compressor, NAME, Shuffle};
use crate::library::{deflate, lz4, zstd};
use crate::shuffle::{bitshuffle, shuffle};

/// The most that a thread keeps of its buffers between calls.
const KEEP: usize = 8 << 20;

/// Room for one block in each.
#[derive(Default)]
struct Buffers {
    shuffled: Vec<u8>,
    bits: Vec<u8>,
    stream: Vec<u8>,
}

thread_local! {
    static BUFFERS: RefCell<Buffers> = RefCell::default();
    /// The tables of the snappy encoder.
    static SNAPPY: RefCell<snap::raw::Encoder> = RefCell::new(snap::raw::Encoder::new());
}

pub(super) fn encode(codec: &Blosc, decoded: &[u8], encoded: &mut Vec<u8>) -> Result<(), CodecError> {
    if decoded.len() > MAX_DECODED_LEN {
        return Err(CodecError::parameter(NAME, format!("{} bytes are more than a chunk can hold", decoded.len())));
    }
    let type_size = match (codec.type_size, codec.shuffle) {
        (Some(type_size), _) => type_size,
        (None, Shuffle::None) => 1,
        (None, _) => return Err(CodecError::metadata(NAME, "typesize is required to shuffle")),
    };
    if codec.compressor == Compressor::Blosclz {
        return encode_blosclz(codec, type_size, decoded, encoded);
    }
    let plan = Plan::new(codec, type_size, decoded.len());
    encoded.reserve(decoded.len().saturating_add(HEADER_LEN));
    let fits = codec.level > 0 && decoded.len() >= MIN_STREAM_LEN && plan.encode_blocks(decoded, encoded);
    if !fits {
        encoded.clear();
        plan.push_header(flags::STORED, decoded.len(), decoded.len().saturating_add(HEADER_LEN), encoded);
        encoded.extend_from_slice(decoded);
    }
    Ok(())
}

/// What is decided before the first block.
struct Plan<'a> {
    codec: &'a Blosc,
    type_size: usize,
    block_size: usize,
    split: bool,
}

impl Compressor {
    fn format(self) -> Format {
        match self {
            Self::Blosclz => Format::Blosclz,
            Self::Lz4 | Self::Lz4hc => Format::Lz4,
            Self::Snappy => Format::Snappy,
            Self::Zlib => Format::Zlib,
            Self::Zstd => Format::Zstd,
        }
    }

    /// Whether it gains from large blocks.
    fn is_thorough(self) -> bool {
        matches!(self, Self::Lz4hc | Self::Zlib | Self::Zstd)
    }
}

/// zstd finds by itself what splitting would show it; the others are split where that leaves streams worth the while.
fn is_split(compressor: Compressor, type_size: usize, block_size: usize) -> bool {
    let stream_len = block_size.checked_div(type_size).unwrap_or(0);
    compressor != Compressor::Zstd && type_size <= MAX_STREAMS && stream_len >= MIN_STREAM_LEN
}

impl<'a> Plan<'a> {
    /// Block sizes are those of c-blosc 1.21, so that chunks are as small as those that others write.
    fn new(codec: &'a Blosc, type_size: usize, len: usize) -> Self {
        /// What fits the fastest cache of any processor.
        const CACHE: usize = 32 << 10;
        let compressor = codec.compressor;
        let mut block_size = match codec.block_size {
            0 if len < CACHE => len,
            0 => {
                let cache = if compressor.is_thorough() { 2 * CACHE } else { CACHE };
                match codec.level {
                    0 => cache / 4,
                    1 => cache / 2,
                    2 => cache,
                    3 => cache.saturating_mul(2),
                    4 | 5 => cache.saturating_mul(4),
                    9 if compressor.is_thorough() => cache.saturating_mul(16),
                    _ => cache.saturating_mul(8),
                }
            }
            size => size.max(MIN_STREAM_LEN),
        };
        if codec.level > 0 && is_split(compressor, type_size, block_size) {
            block_size = block_size.min(256 << 10).saturating_mul(type_size).clamp(64 << 10, 1 << 20);
        }
        block_size = block_size.min(len).max(1);
        if block_size > type_size {
            block_size = block_size.saturating_sub(block_size.checked_rem(type_size).unwrap_or(0));
        }
        Self { codec, type_size, block_size, split: is_split(compressor, type_size, block_size) }
    }

    fn push_header(&self, extra_flags: u8, decoded_len: usize, encoded_len: usize, encoded: &mut Vec<u8>) {
        let shuffle = match self.codec.shuffle {
            Shuffle::None => 0,
            Shuffle::Bytes => flags::BYTE_SHUFFLE,
            Shuffle::Bits => flags::BIT_SHUFFLE,
        };
        let split = if self.split { 0 } else { flags::DO_NOT_SPLIT };
        let format = self.codec.compressor.format().number() << flags::FORMAT_SHIFT;
        let type_size = u8::try_from(self.type_size).unwrap_or(1);
        encoded.extend_from_slice(&[VERSION, COMPRESSOR_VERSION, shuffle | split | format | extra_flags, type_size]);
        for size in [decoded_len, self.block_size, encoded_len] {
            encoded.extend_from_slice(&le_bytes(size));
        }
    }

    /// Writes header, offsets and blocks. `false` when that takes more than storing the bytes does.
    fn encode_blocks(&self, decoded: &[u8], encoded: &mut Vec<u8>) -> bool {
        let most = decoded.len().saturating_add(HEADER_LEN);
        self.push_header(0, decoded.len(), 0, encoded);
        let blocks = decoded.chunks(self.block_size);
        encoded.resize(HEADER_LEN.saturating_add(blocks.len().saturating_mul(4)), 0);
        let fits = BUFFERS.with_borrow_mut(|buffers| {
            let mut fits = true;
            for (index, block) in blocks.enumerate() {
                let offset = le_bytes(encoded.len());
                put(encoded, HEADER_LEN.saturating_add(index.saturating_mul(4)), offset);
                fits = self.encode_block(block, buffers, encoded, most);
                if !fits {
                    break;
                }
            }
            if buffers.stream.capacity() > KEEP {
                *buffers = Buffers::default();
            }
            fits
        });
        let len = le_bytes(encoded.len());
        put(encoded, 12, len);
        fits
    }

    fn encode_block(&self, block: &[u8], buffers: &mut Buffers, encoded: &mut Vec<u8>, most: usize) -> bool {
        let Buffers { shuffled, bits, stream } = buffers;
        let block = match self.codec.shuffle {
            Shuffle::Bytes if self.type_size > 1 => {
                let shuffled = sized(shuffled, block.len());
                shuffle(self.type_size, block, shuffled);
                shuffled
            }
            Shuffle::Bits if block.len() >= self.type_size => {
                let shuffled = sized(shuffled, block.len());
                bitshuffle(self.type_size, block, shuffled, sized(bits, block.len()));
                shuffled
            }
            _ => block,
        };
        let streams = if self.split && block.len() == self.block_size { self.type_size } else { 1 };
        let stream_len = block.len().checked_div(streams).unwrap_or(0).max(1);
        for decoded in block.chunks(stream_len) {
            let compressed = self.compress(decoded, stream).and_then(|len| stream.get(..len)).filter(|bytes| bytes.len() < decoded.len());
            let bytes = compressed.unwrap_or(decoded);
            if encoded.len().saturating_add(bytes.len()).saturating_add(4) > most {
                return false;
            }
            encoded.extend_from_slice(&le_bytes(bytes.len()));
            encoded.extend_from_slice(bytes);
        }
        true
    }

    /// Compresses to the start of `to`; `None` when it does not shrink. Levels are mapped as c-blosc does.
    fn compress(&self, from: &[u8], to: &mut Vec<u8>) -> Option<usize> {
        let level = i32::from(self.codec.level);
        match self.codec.compressor {
            Compressor::Blosclz => None,
            Compressor::Lz4 => lz4::compress_within(from, sized(to, from.len()), 10i32.saturating_sub(level)),
            Compressor::Lz4hc => lz4::compress_high_within(from, sized(to, from.len()), level),
            Compressor::Snappy => {
                let room = sized(to, snap::raw::max_compress_len(from.len()));
                SNAPPY.with_borrow_mut(|encoder| encoder.compress(from, room)).ok()
            }
            Compressor::Zlib => deflate::compress_within(deflate::Format::Zlib, level, from, sized(to, from.len())).ok(),
            Compressor::Zstd => {
                let level = if level < 9 { level.saturating_mul(2).saturating_sub(1) } else { 22 };
                zstd::compress(from, sized(to, zstd::bound(from.len())), level, false).ok()
            }
        }
    }
}

/// Sizes are at most those of a chunk, and so fit.
fn le_bytes(size: usize) -> [u8; 4] {
    u32::try_from(size).unwrap_or(u32::MAX).to_le_bytes()
}

fn put(bytes: &mut [u8], offset: usize, value: [u8; 4]) {
    if let Some(place) = bytes.get_mut(offset..).and_then(<[u8]>::first_chunk_mut) {
        *place = value;
    }
}

/// The first `len` bytes of a buffer, which grows to have them.
fn sized(buffer: &mut Vec<u8>, len: usize) -> &mut [u8] {
    if buffer.len() < len {
        buffer.resize(len, 0);
    }
    buffer.get_mut(..len).unwrap_or_default()
}

/// c-blosc encodes what only it can.
fn encode_blosclz(codec: &Blosc, type_size: usize, decoded: &[u8], encoded: &mut Vec<u8>) -> Result<(), CodecError> {
    const COMPRESSOR: &CStr = c"blosclz";
    let room = decoded.len().saturating_add(HEADER_LEN);
    encoded.reserve(room);
    let spare = encoded.spare_capacity_mut();
    let shuffle = match codec.shuffle {
        Shuffle::None => blosc_src::BLOSC_NOSHUFFLE,
        Shuffle::Bytes => blosc_src::BLOSC_SHUFFLE,
        Shuffle::Bits => blosc_src::BLOSC_BITSHUFFLE,
    };
    // SAFETY: the input is a slice, the output is spare capacity of which no more than its length is used, the name is terminated, and this function keeps
    // its state in a context of its own.
    let written = unsafe {
        blosc_src::blosc_compress_ctx(
            i32::from(codec.level),
            shuffle.cast_signed(),
            type_size,
            decoded.len(),
            decoded.as_ptr().cast(),
            spare.as_mut_ptr().cast(),
            spare.len().min(room),
            COMPRESSOR.as_ptr(),
            codec.block_size,
            1,
        )
    };
    let written = usize::try_from(written).ok().filter(|written| *written > 0);
    let written = written.ok_or_else(|| CodecError::parameter(NAME, "c-blosc cannot encode these bytes"))?;
    // SAFETY: the vector was empty, and so many bytes of its capacity were initialised.
    unsafe { encoded.set_len(written) };
    Ok(())
}

//! The headers of frames and blocks, without what is in them. Names and sections of RFC 8878.

use zarr_codec_api::CodecError;

const NAME: &str = "zstd";

const MAGIC_NUMBER: u32 = 0xFD2F_B528;
/// The upper 28 bits of the magic number of a skippable frame.
const SKIPPABLE_MAGIC_NUMBER: u32 = 0x0184_D2A5;
/// The most that one block decodes to, section 3.1.1.2.4.
const BLOCK_MAXIMUM_SIZE: u64 = 128 << 10;

/// The most bytes that the frames can decode to, by the bytes that are there rather than by what a header claims.
///
/// # Errors
/// When the frames are cut short, have other bytes behind them, or need a dictionary.
pub(crate) fn bound(encoded: &[u8]) -> Result<u64, CodecError> {
    let mut reader = Reader { rest: encoded, len: encoded.len() };
    let mut bound = 0u64;
    let mut frames = 0usize;
    while !reader.rest.is_empty() {
        let start = reader.offset();
        let magic = reader.little_endian(4)?;
        if magic >> 4 == u64::from(SKIPPABLE_MAGIC_NUMBER) {
            let len = reader.little_endian(4)?;
            reader.skip(len)?;
        } else if magic == u64::from(MAGIC_NUMBER) {
            bound = bound.saturating_add(frame(&mut reader)?);
        } else {
            let what = if frames == 0 { "no frame starts here" } else { "the bytes behind the last frame are no frame" };
            return Err(CodecError::format(NAME, what).at(start));
        }
        frames = frames.saturating_add(1);
    }
    if frames == 0 {
        return Err(CodecError::format(NAME, "no frame in 0 bytes"));
    }
    Ok(bound)
}

/// One frame behind its magic number, section 3.1.1.
fn frame(reader: &mut Reader<'_>) -> Result<u64, CodecError> {
    let start = reader.offset();
    let descriptor = reader.little_endian(1)?;
    let single_segment = descriptor & 0x20 != 0;
    if descriptor & 0x08 != 0 {
        return Err(CodecError::format(NAME, "a reserved bit of the frame header is set").at(start));
    }
    if !single_segment {
        reader.skip(1)?;
    }
    let dictionary = reader.little_endian(match descriptor & 3 {
        0 => 0,
        1 => 1,
        2 => 2,
        _ => 4,
    })?;
    if dictionary != 0 {
        return Err(CodecError::unsupported(NAME, format!("the frame needs dictionary {dictionary}, and Zarr has none")).at(start));
    }
    let content_size = match descriptor >> 6 {
        0 if single_segment => Some(reader.little_endian(1)?),
        0 => None,
        1 => Some(reader.little_endian(2)?.saturating_add(256)),
        2 => Some(reader.little_endian(4)?),
        _ => Some(reader.little_endian(8)?),
    };
    let mut decoded = 0u64;
    loop {
        let header = reader.little_endian(3)?;
        let (last, size) = (header & 1 != 0, header >> 3);
        decoded = decoded.saturating_add(match header >> 1 & 3 {
            0 => {
                reader.skip(size)?;
                size
            }
            1 => {
                reader.skip(1)?;
                size.min(BLOCK_MAXIMUM_SIZE)
            }
            2 => {
                reader.skip(size)?;
                BLOCK_MAXIMUM_SIZE
            }
            _ => return Err(CodecError::format(NAME, "a block of the reserved type").at(reader.offset())),
        });
        if last {
            break;
        }
    }
    if descriptor & 0x04 != 0 {
        reader.skip(4)?;
    }
    Ok(content_size.unwrap_or(u64::MAX).min(decoded))
}

struct Reader<'a> {
    rest: &'a [u8],
    len: usize,
}

impl Reader<'_> {
    fn offset(&self) -> u64 {
        self.len.saturating_sub(self.rest.len()) as u64
    }

    fn truncated(&self) -> CodecError {
        CodecError::format(NAME, "the frame is cut short").at(self.len as u64)
    }

    /// A number of at most eight bytes.
    fn little_endian(&mut self, bytes: usize) -> Result<u64, CodecError> {
        let (field, rest) = self.rest.split_at_checked(bytes).ok_or_else(|| self.truncated())?;
        self.rest = rest;
        Ok(field.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    fn skip(&mut self, bytes: u64) -> Result<(), CodecError> {
        let rest = usize::try_from(bytes).ok().and_then(|bytes| self.rest.get(bytes..));
        self.rest = rest.ok_or_else(|| self.truncated())?;
        Ok(())
    }
}

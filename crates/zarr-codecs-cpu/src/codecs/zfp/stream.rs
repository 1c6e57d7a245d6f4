//! A stream of bits, the lowest bit of a byte first, padded with zeros to 64 bits at its end.

use zarr_codec_api::CodecError;

/// Bits that the end of a stream is padded to.
pub(super) const WORD: u64 = 64;

/// Appends bits to a vector.
#[derive(Debug)]
pub(super) struct Writer<'a> {
    bytes: &'a mut Vec<u8>,
    /// Bits that do not make a word yet.
    waiting: u64,
    count: u32,
}

impl<'a> Writer<'a> {
    pub(super) fn new(bytes: &'a mut Vec<u8>) -> Self {
        Self { bytes, waiting: 0, count: 0 }
    }

    /// Writes the low `count` bits, at most 64, of which no other is set.
    #[expect(clippy::arithmetic_side_effects, reason = "fewer than 64 bits wait, and shifts are below 64")]
    pub(super) fn write(&mut self, bits: u64, count: u32) {
        self.waiting |= bits << self.count;
        let total = self.count + count;
        if total < 64 {
            self.count = total;
            return;
        }
        self.bytes.extend_from_slice(&self.waiting.to_le_bytes());
        // What did not fit: nothing of it where the word began empty.
        self.waiting = if self.count == 0 { 0 } else { bits >> (64 - self.count) };
        self.count = total - 64;
    }

    pub(super) fn write_bit(&mut self, bit: bool) {
        self.write(u64::from(bit), 1);
    }

    pub(super) fn pad(&mut self, count: u32) {
        let mut left = count;
        while left > 0 {
            let now = left.min(64);
            self.write(0, now);
            left = left.saturating_sub(now);
        }
    }

    /// Fills up the last word.
    pub(super) fn finish(mut self) {
        if self.count > 0 {
            self.pad(64u32.saturating_sub(self.count));
        }
    }
}

/// Takes bits off a slice.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    /// In bits.
    position: u64,
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, position: 0 }
    }

    fn len(&self) -> u64 {
        u64::try_from(self.bytes.len()).unwrap_or(u64::MAX).saturating_mul(8)
    }

    /// Reads up to 64 bits.
    ///
    /// # Errors
    /// When there are not as many.
    #[expect(clippy::arithmetic_side_effects, reason = "shifts are below 64, and the position stays within the slice")]
    pub(super) fn read(&mut self, count: u32) -> Result<u64, CodecError> {
        if count == 0 {
            return Ok(0);
        }
        let end = self.position.saturating_add(u64::from(count));
        if end > self.len() {
            return Err(self.truncated());
        }
        let start = usize::try_from(self.position / 8).unwrap_or(usize::MAX);
        let rest = self.bytes.get(start..).unwrap_or_default();
        let mut word = [0; 16];
        match rest.first_chunk::<16>() {
            Some(bytes) => word = *bytes,
            None => word.iter_mut().zip(rest).for_each(|(to, from)| *to = *from),
        }
        let [low, high] = *word.as_chunks::<8>().0 else { return Ok(0) };
        let shift = self.position % 8;
        let mut bits = u64::from_le_bytes(low) >> shift;
        if shift > 0 {
            bits |= u64::from_le_bytes(high) << (64 - shift);
        }
        self.position = end;
        Ok(if count < 64 { bits & ((1 << count) - 1) } else { bits })
    }

    pub(super) fn read_bit(&mut self) -> Result<bool, CodecError> {
        let byte = usize::try_from(self.position / 8).ok().and_then(|at| self.bytes.get(at));
        let bit = byte.map(|byte| (byte >> (self.position % 8)) & 1 == 1).ok_or_else(|| self.truncated())?;
        self.position = self.position.saturating_add(1);
        Ok(bit)
    }

    pub(super) fn skip(&mut self, count: u32) {
        self.position = self.position.saturating_add(u64::from(count));
    }

    /// Checks that the stream ends here, but for padding.
    ///
    /// # Errors
    /// When there is too little or too much.
    pub(super) fn finish(self) -> Result<(), CodecError> {
        if self.position > self.len() {
            return Err(self.truncated());
        }
        // Builds of the library with narrower words pad less.
        if self.len().saturating_sub(self.position) >= WORD {
            return Err(CodecError::format(super::NAME, "bytes follow the last block").at(self.position / 8));
        }
        Ok(())
    }

    fn truncated(&self) -> CodecError {
        CodecError::format(super::NAME, "the stream is truncated").at(self.position / 8)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn bits_come_back(pieces in prop::collection::vec((any::<u64>(), 0u32..=64), 0..50)) {
            let cut = |bits: u64, count: u32| if count == 64 { bits } else { bits & ((1 << count) - 1) };
            let mut bytes = Vec::new();
            let mut writer = Writer::new(&mut bytes);
            for (bits, count) in &pieces {
                writer.write(cut(*bits, *count), *count);
            }
            writer.finish();
            prop_assert_eq!(bytes.len() % 8, 0);
            let mut reader = Reader::new(&bytes);
            for (bits, count) in &pieces {
                if count % 2 == 0 {
                    prop_assert_eq!(reader.read(*count).unwrap(), cut(*bits, *count));
                } else {
                    for bit in 0..*count {
                        prop_assert_eq!(reader.read_bit().unwrap(), bits >> bit & 1 == 1);
                    }
                }
            }
            prop_assert!(reader.finish().is_ok());
        }
    }

    #[test]
    fn ends_are_seen() {
        let mut reader = Reader::new(&[0xff]);
        assert!(reader.read(9).is_err());
        assert_eq!(reader.read(8).unwrap(), 0xff);
        assert!(reader.read_bit().is_err());
        assert!(Reader::new(&[0; 8]).finish().is_err());
        assert!(Reader::new(&[0; 7]).finish().is_ok());
    }
}

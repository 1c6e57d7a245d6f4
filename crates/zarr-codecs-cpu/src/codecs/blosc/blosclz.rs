//! The inner codec `blosclz`: literal runs and matches, after FastLZ.
//!
//! A control byte below 32 is followed by that many literals and one more. Any other holds the length of a match in its upper three bits, and the upper
//! five bits of its distance; further bytes extend the length (after 7) and complete the distance. The first control byte is always one of literals; its
//! upper bits are to be ignored.

/// The most bytes that one byte can decode to: one that extends a match.
pub(super) const MAX_RATIO: usize = 255;

/// Distances from here on take two more bytes.
const MAX_SHORT_DISTANCE: usize = 8191;

/// Decodes to the start of `decoded`, and answers with the number of bytes. `None` when the stream is damaged, cut short, or decodes to more.
pub(super) fn decompress(encoded: &[u8], decoded: &mut [u8]) -> Option<usize> {
    let mut input = encoded.iter();
    let mut written = 0usize;
    let mut control = usize::from(*input.next()?) & 31;
    loop {
        if control < 32 {
            let len = control.checked_add(1)?;
            let (literals, rest) = input.as_slice().split_at_checked(len)?;
            decoded.get_mut(written..)?.get_mut(..len)?.copy_from_slice(literals);
            written = written.checked_add(len)?;
            input = rest.iter();
        } else {
            let mut len = (control >> 5).checked_add(2)?;
            if control >> 5 == 7 {
                loop {
                    let more = *input.next()?;
                    len = len.checked_add(usize::from(more))?;
                    if more != 255 {
                        break;
                    }
                }
            }
            let (high, low) = (control & 31, *input.next()?);
            let distance = if high == 31 && low == 255 {
                let far = u16::from_be_bytes([*input.next()?, *input.next()?]);
                usize::from(far).checked_add(MAX_SHORT_DISTANCE)?
            } else {
                (high << 8) | usize::from(low)
            };
            copy_match(decoded, written, distance.checked_add(1)?, len)?;
            written = written.checked_add(len)?;
        }
        match input.next() {
            Some(byte) => control = usize::from(*byte),
            None => return Some(written),
        }
    }
}

/// Repeats the bytes `distance` before `end`, `len` bytes in all.
fn copy_match(decoded: &mut [u8], end: usize, distance: usize, len: usize) -> Option<()> {
    let start = end.checked_sub(distance)?;
    let last = end.checked_add(len)?;
    let window = decoded.get_mut(start..last)?;
    if distance == 1 {
        let (first, rest) = window.split_first_mut()?;
        rest.fill(*first);
        return Some(());
    }
    // Each copy doubles what can be copied from; where nothing overlaps, one does.
    let mut done = distance;
    while done < window.len() {
        let piece = done.min(window.len().checked_sub(done)?);
        window.copy_within(..piece, done);
        done = done.checked_add(piece)?;
    }
    Some(())
}

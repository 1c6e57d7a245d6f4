//! What of an LZ4 block decoders are known to part on: <https://github.com/lz4/lz4/blob/dev/doc/lz4_Block_format.md>.

/// Whether a match of the block has an offset of 0, before whatever else is wrong with it.
pub(super) fn has_zero_offset(mut block: &[u8]) -> bool {
    loop {
        let Some((token, rest)) = block.split_first() else { return false };
        let Some((literals, rest)) = len(token >> 4, rest) else { return false };
        match rest.get(literals..).and_then(<[u8]>::split_first_chunk) {
            Some(([0, 0], _)) => return true,
            // How long the match is decides only where the next token is.
            Some((_, rest)) => match len(token & 15, rest) {
                Some((_, rest)) => block = rest,
                None => return false,
            },
            None => return false,
        }
    }
}

/// A length that begins in four bits of the token and goes on in bytes, and what is behind these.
fn len(nibble: u8, mut rest: &[u8]) -> Option<(usize, &[u8])> {
    let mut len = usize::from(nibble);
    if nibble == 15 {
        loop {
            let (more, behind) = rest.split_first()?;
            (len, rest) = (len.checked_add(usize::from(*more))?, behind);
            if *more != 255 {
                break;
            }
        }
    }
    Some((len, rest))
}

/// `len` zeros, at least 25: one, a match of all but five at offset 0, and five as the end of a block must have them.
pub(super) fn zeros_at_offset_0(len: usize) -> Vec<u8> {
    let matched = len - 6;
    // A match of 4 is written as 0; 15 in the token says that bytes follow.
    let more = matched - 4 - 15;
    let mut block = vec![0x1F, 0, 0, 0];
    block.extend(std::iter::repeat_n(255, more / 255));
    block.push((more % 255) as u8);
    block.extend([0x50, 0, 0, 0, 0, 0]);
    block
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_of_zero_are_found() {
        for len in [25, 280, 1000] {
            let bad = zeros_at_offset_0(len);
            assert!(has_zero_offset(&bad));
            let mut good = bad.clone();
            good[2] = 1;
            assert!(!has_zero_offset(&good));
        }
        assert!(!has_zero_offset(&[]));
        // The literals of the last sequence may be zeros.
        assert!(!has_zero_offset(&[0x50, 0, 0, 0, 0, 0]));
    }
}

//! What of an `.xz` file decoders are known to part on: <https://tukaani.org/xz/xz-file-format.txt>.

use super::crc32;

/// The index of a file of one stream, without its checksum, and where it starts: if headers, index and footer have the checksums that they say.
fn index(file: &[u8]) -> Option<(usize, &[u8])> {
    let (header, rest) = file.split_first_chunk::<12>()?;
    let (rest, footer) = rest.split_last_chunk::<12>()?;
    // §2.1.2.2: in units of four bytes, less one.
    let units = u32::from_le_bytes([footer[4], footer[5], footer[6], footer[7]]) as usize + 1;
    let start = units.checked_mul(4).and_then(|len| rest.len().checked_sub(len))?;
    let (index, sum) = rest[start..].split_last_chunk::<4>()?;
    let sums = [(&header[6..8], &header[8..]), (&footer[4..10], &footer[..4]), (index, sum)];
    let whole = header.starts_with(b"\xFD7zXZ\0") && footer.ends_with(b"YZ");
    (whole && sums.iter().all(|(bytes, sum)| crc32(bytes).to_le_bytes() == **sum)).then_some((12 + start, index))
}

/// A number of §1.2, and what is behind it.
fn number(mut bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0;
    for place in 0..9 {
        let (byte, rest) = bytes.split_first()?;
        value |= u64::from(byte & 0x7F) << (7 * place);
        bytes = rest;
        if byte & 0x80 == 0 {
            return Some((value, bytes));
        }
    }
    None
}

/// Whether a file of one stream of one block, which decodes to `len` bytes, has a whole index that says something else of the block.
pub(super) fn has_wrong_index(file: &[u8], len: usize) -> bool {
    let record = || {
        let (start, index) = index(file)?;
        let (records, rest) = number(index.strip_prefix(&[0])?)?;
        let (unpadded, rest) = number(rest)?;
        let (decoded, _) = number(rest)?;
        Some(records != 1 || unpadded.checked_next_multiple_of(4) != Some(start as u64 - 12) || decoded != len as u64)
    };
    record().unwrap_or(false)
}

/// The file with an index that says that its first block is four bytes longer than it is. `None` where the index is something else than one short record.
pub(super) fn with_wrong_index(mut file: Vec<u8>) -> Option<Vec<u8>> {
    let (start, end) = index(&file).map(|(start, index)| (start, start + index.len()))?;
    if file.get(start + 1) != Some(&1) || file.get(start + 2).is_none_or(|size| *size > 0x7B) {
        return None;
    }
    file[start + 2] += 4;
    let sum = crc32(&file[start..end]).to_le_bytes();
    file[end..end + 4].copy_from_slice(&sum);
    Some(file)
}

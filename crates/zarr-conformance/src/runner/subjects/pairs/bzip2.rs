//! libbzip2, called as its manual says: <https://sourceware.org/bzip2/manual/manual.html>.
#![expect(unsafe_code, reason = "a C library")]

use std::mem::MaybeUninit;

use bzip2_sys::{
    BZ_FINISH, BZ_FINISH_OK, BZ_OK, BZ_STREAM_END, BZ2_bzCompress, BZ2_bzCompressEnd, BZ2_bzCompressInit, BZ2_bzDecompress,
    BZ2_bzDecompressEnd, BZ2_bzDecompressInit, bz_stream,
};

/// A stream that neither reads nor writes yet.
fn stream() -> bz_stream {
    // SAFETY: numbers, pointers and optional functions: zeros are values of all of them, and what the library asks for.
    unsafe { MaybeUninit::zeroed().assume_init() }
}

fn point(stream: &mut bz_stream, input: &[u8], output: &mut [u8]) {
    // The library does not write what it reads.
    (stream.next_in, stream.avail_in) = (input.as_ptr().cast_mut().cast(), input.len() as u32);
    (stream.next_out, stream.avail_out) = (output.as_mut_ptr().cast(), output.len() as u32);
}

/// Streams one behind the other; other bytes behind them are ignored, as Python's `bz2` does.
pub(super) fn decode(mut bytes: &[u8], limit: usize) -> Result<Vec<u8>, String> {
    let mut decoded = vec![0; limit + 1];
    let mut written = 0;
    loop {
        let mut stream = stream();
        // SAFETY: a stream of zeros.
        let begun = unsafe { BZ2_bzDecompressInit(&raw mut stream, 0, 0) };
        if begun != BZ_OK {
            return Err(format!("libbzip2 says {begun}"));
        }
        point(&mut stream, bytes, &mut decoded[written..]);
        // SAFETY: begun above; what it points at is there until the end.
        let status = unsafe { BZ2_bzDecompress(&raw mut stream) };
        let (unread, room) = (stream.avail_in as usize, stream.avail_out as usize);
        // SAFETY: begun above, and not ended yet.
        unsafe { BZ2_bzDecompressEnd(&raw mut stream) };
        written = decoded.len() - room;
        if written > limit {
            return Err("decodes to more than expected".to_owned());
        }
        if status != BZ_STREAM_END {
            return Err(format!("libbzip2 says {status}"));
        }
        bytes = &bytes[bytes.len() - unread..];
        if !bytes.starts_with(b"BZh") {
            decoded.truncate(written);
            return Ok(decoded);
        }
    }
}

/// One stream, of blocks of `level` times 100 kB.
pub(super) fn encode(bytes: &[u8], level: i32) -> Result<Vec<u8>, String> {
    // What the manual says is always enough.
    let mut encoded = vec![0; bytes.len() + bytes.len() / 100 + 600];
    let mut stream = stream();
    // SAFETY: a stream of zeros.
    let begun = unsafe { BZ2_bzCompressInit(&raw mut stream, level, 0, 0) };
    if begun != BZ_OK {
        return Err(format!("libbzip2 says {begun}"));
    }
    point(&mut stream, bytes, &mut encoded);
    let mut status = BZ_FINISH_OK;
    while status == BZ_FINISH_OK && stream.avail_out > 0 {
        // SAFETY: begun above; what it points at is there until the end.
        status = unsafe { BZ2_bzCompress(&raw mut stream, BZ_FINISH) };
    }
    let room = stream.avail_out as usize;
    // SAFETY: begun above, and not ended yet.
    unsafe { BZ2_bzCompressEnd(&raw mut stream) };
    encoded.truncate(encoded.len() - room);
    if status == BZ_STREAM_END { Ok(encoded) } else { Err(format!("libbzip2 says {status}")) }
}

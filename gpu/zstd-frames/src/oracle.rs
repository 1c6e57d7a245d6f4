//! libzstd's word on a chunk.

use zstd::zstd_safe::{self, DCtx};

/// A decoding context of libzstd, used again and again.
pub struct Oracle(DCtx<'static>);

impl Default for Oracle {
    fn default() -> Self {
        Self(DCtx::create())
    }
}

impl Oracle {
    /// What `ZSTD_decompressDCtx` makes of `input` with `size` bytes of room: the bytes if it fills them all, else why not.
    ///
    /// # Errors
    /// libzstd's name for what is wrong, or that the length differs; empty input, which libzstd takes for no frames.
    pub fn decode(&mut self, input: &[u8], size: usize) -> Result<Vec<u8>, String> {
        if input.is_empty() {
            return Err("no frame".into());
        }
        let mut out = vec![0; size];
        match self.0.decompress(&mut out[..], input) {
            Ok(len) if len == size => Ok(out),
            Ok(len) => Err(format!("decodes to {len} bytes, not {size}")),
            Err(code) => Err(zstd_safe::get_error_name(code).into()),
        }
    }
}

/// The version of libzstd.
pub fn version() -> String {
    zstd_safe::version_string().into()
}

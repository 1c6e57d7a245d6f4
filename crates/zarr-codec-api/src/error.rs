use std::error::Error;
use std::fmt;

use zarr_buffer_api::{BufferError, BufferErrorKind};

/// Who is to blame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CodecErrorKind {
    /// The metadata: a configuration that the codec's specification does not allow.
    Metadata,
    /// The stored bytes: not what the format allows, or not of the expected size.
    Format,
    /// The caller: values that the codec cannot encode, or buffers that do not fit.
    Parameter,
    /// A limit, set before anything was allocated.
    Limit,
    /// No provider here can do this.
    Unsupported,
    /// The device or its driver.
    Device,
}

/// An error of a codec.
///
/// `Display` ends with the implementation's own error, and [`Error::source`] begins behind that one.
#[derive(Debug)]
pub struct CodecError(Box<Inner>);

#[derive(Debug)]
struct Inner {
    kind: CodecErrorKind,
    codec: String,
    message: String,
    offset: Option<u64>,
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl CodecError {
    /// An error of `codec`. The message says what was expected and what was found.
    pub fn new(kind: CodecErrorKind, codec: impl Into<String>, message: impl Into<String>) -> Self {
        Self(Box::new(Inner { kind, codec: codec.into(), message: message.into(), offset: None, source: None }))
    }

    /// The stored bytes are not what the format allows.
    pub fn format(codec: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(CodecErrorKind::Format, codec, message)
    }

    /// The configuration is not what the codec's specification allows.
    pub fn metadata(codec: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(CodecErrorKind::Metadata, codec, message)
    }

    /// No implementation here can do this.
    pub fn unsupported(codec: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(CodecErrorKind::Unsupported, codec, message)
    }

    /// The caller's values or buffers do not fit.
    pub fn parameter(codec: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(CodecErrorKind::Parameter, codec, message)
    }

    /// The bytes decode to another size than the metadata says.
    pub fn size(codec: impl Into<String>, expected: usize, found: usize) -> Self {
        Self::format(codec, format!("expected {expected} bytes, found {found}"))
    }

    /// The bytes decode to more than `limit` bytes.
    pub fn limit(codec: impl Into<String>, limit: usize) -> Self {
        Self::new(CodecErrorKind::Limit, codec, format!("decodes to more than the limit of {limit} bytes"))
    }

    /// Says at which byte of the encoded data the problem lies.
    #[must_use]
    pub fn at(mut self, offset: u64) -> Self {
        self.0.offset = Some(offset);
        self
    }

    /// Keeps the implementation's own error. The message does not repeat its words.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// Who is to blame.
    pub fn kind(&self) -> CodecErrorKind {
        self.0.kind
    }

    /// The codec's name, as in the metadata.
    pub fn codec(&self) -> &str {
        &self.0.codec
    }

    /// What was expected and what was found.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The implementation's own error, for who wants more of it than its words.
    pub fn get_ref(&self) -> Option<&(dyn Error + Send + Sync + 'static)> {
        self.0.source.as_deref()
    }

    /// The byte of the encoded data where the problem lies, if known.
    pub fn offset(&self) -> Option<u64> {
        self.0.offset
    }
}

impl fmt::Display for CodecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "codec {}: {}", self.0.codec, self.0.message)?;
        if let Some(offset) = self.0.offset {
            write!(f, " (at byte {offset})")?;
        }
        if let Some(source) = &self.0.source {
            write!(f, ": {source}")?;
        }
        Ok(())
    }
}

impl Error for CodecError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source.as_deref()?.source()
    }
}

impl From<BufferError> for CodecError {
    /// Of the same blame: what does not fit is the caller's, what the device lacks is unsupported, the rest is the device's.
    fn from(error: BufferError) -> Self {
        let (kind, message) = match error.kind {
            BufferErrorKind::Parameter | BufferErrorKind::NotHostVisible | BufferErrorKind::NotReady | BufferErrorKind::Borrowed => {
                (CodecErrorKind::Parameter, "a buffer does not fit")
            }
            BufferErrorKind::Unsupported => (CodecErrorKind::Unsupported, "it cannot do this"),
            _ => (CodecErrorKind::Device, "it failed"),
        };
        Self::new(kind, "device", message).with_source(error)
    }
}

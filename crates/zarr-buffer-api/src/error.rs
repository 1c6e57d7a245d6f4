use std::error::Error;
use std::fmt;

use crate::DeviceId;

/// What went wrong with a buffer, a queue or a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum BufferErrorKind {
    /// The caller's lengths, strides or ranges do not fit together.
    Parameter,
    /// The host asked for bytes that it cannot dereference.
    NotHostVisible,
    /// The host asked for bytes before the work on them was done; wait for the buffer first.
    NotReady,
    /// The bytes are lent out in a way that excludes this access.
    Borrowed,
    /// The device has no room, or a budget is spent.
    OutOfMemory,
    /// The device cannot do this.
    Unsupported,
    /// The device or its driver failed.
    Device,
}

/// An error of a buffer, a queue or a device.
///
/// `Display` ends with the implementation's own error, and [`Error::source`] begins behind that one.
#[derive(Debug)]
#[non_exhaustive]
pub struct BufferError {
    /// Who is to blame.
    pub kind: BufferErrorKind,
    /// What was asked, and what was found.
    pub message: String,
    /// The device, where one is known.
    pub device: Option<DeviceId>,
    /// The implementation's own error, for who wants more of it than its words.
    pub source: Option<Box<dyn Error + Send + Sync>>,
}

impl BufferError {
    /// An error of `kind`, with a message that says what was expected and what was found.
    pub fn new(kind: BufferErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), device: None, source: None }
    }

    /// A [`BufferErrorKind::Parameter`] error.
    pub fn parameter(message: impl Into<String>) -> Self {
        Self::new(BufferErrorKind::Parameter, message)
    }

    /// Names the device.
    #[must_use]
    pub fn on(mut self, device: DeviceId) -> Self {
        self.device = Some(device);
        self
    }

    /// Keeps the implementation's own error. The message does not repeat its words.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }
}

impl fmt::Display for BufferError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(device) = self.device {
            write!(f, "{device}: ")?;
        }
        f.write_str(&self.message)?;
        if let Some(source) = &self.source {
            write!(f, ": {source}")?;
        }
        Ok(())
    }
}

impl Error for BufferError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref()?.source()
    }
}

//! What may go wrong in a store.

use std::error::Error;
use std::fmt;
use std::io;

use zarr_buffer_api::{BufferError, BufferErrorKind};

use crate::key::StoreKey;
use crate::range::ByteRange;

/// Whose fault an error is, or what to do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StoreErrorKind {
    /// Something that must exist besides the key does not: the bucket, the directory, the file
    /// of the archive. (A key that is not there is no error: reads answer `None`.)
    NotFound,
    /// The text is no valid key or prefix, or this store cannot hold the key.
    InvalidKey,
    /// The range begins past the end of the value, or ends before it begins.
    OutOfRange,
    /// The caller passed something that cannot work, such as a destination that is too short.
    Parameter,
    /// The store, or the medium below it, does not take writes.
    ReadOnly,
    /// The store cannot do this at all, or was built without the feature it takes.
    Unsupported,
    /// Access was refused, or credentials are missing or wrong.
    Permission,
    /// The same call may succeed later: a time-out, a broken connection, too many requests.
    Transient,
    /// No room is left for the value: disk full, quota or file size limit reached.
    NoSpace,
    /// Any other failure of the medium.
    Io,
    /// The device that a value was to be read to failed, or has no room.
    Device,
    /// What is stored is damaged: a broken archive, a failed checksum of the store itself.
    Corrupt,
    /// Something stored claims to be larger than the store is prepared to handle.
    Limit,
    /// The call was given up before it ended, for instance because the runtime shut down.
    Cancelled,
    /// The value is not of the version that was asked for, or not of one version: somebody replaced or removed it meanwhile. Whoever reads it again
    /// from the start may succeed.
    Replaced,
}

impl fmt::Display for StoreErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotFound => "not found",
            Self::InvalidKey => "invalid key",
            Self::OutOfRange => "out of range",
            Self::Parameter => "bad parameter",
            Self::ReadOnly => "read-only store",
            Self::Unsupported => "unsupported",
            Self::Permission => "permission denied",
            Self::Transient => "temporary failure",
            Self::NoSpace => "no space left",
            Self::Io => "I/O error",
            Self::Device => "device failure",
            Self::Corrupt => "corrupt store",
            Self::Limit => "limit exceeded",
            Self::Cancelled => "cancelled",
            Self::Replaced => "replaced meanwhile",
        })
    }
}

/// What a key holds after a failed write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StoredValue {
    /// What it held before the call, be that a value or nothing.
    Old,
    /// The new value is in place; what failed came after (making it durable, for instance).
    New,
    /// One of the two, whole; which one is not known (the answer to a request was lost).
    OldOrNew,
}

impl fmt::Display for StoredValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Old => "what was stored before is unchanged",
            Self::New => "the new value is stored",
            Self::OldOrNew => "either the old or the new value is stored",
        })
    }
}

/// An error of a store: a kind to act on, and where and why for people.
///
/// `Display` gives one line that names the key, the range, the reason, the error that caused this
/// one and, after a failed write, what the store now holds. [`Error::source`] begins behind that
/// error.
pub struct StoreError(Box<Inner>);

struct Inner {
    kind: StoreErrorKind,
    key: Option<StoreKey>,
    range: Option<ByteRange>,
    message: String,
    stored: Option<StoredValue>,
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl StoreError {
    /// An error of this kind. The message is a short clause without a final full stop.
    #[must_use]
    pub fn new(kind: StoreErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Inner { kind, key: None, range: None, message: message.into(), stored: None, source: None }))
    }

    /// The error that stands for an [`io::Error`], its kind derived from the operating system's.
    #[must_use]
    pub fn from_io(error: io::Error, message: impl Into<String>) -> Self {
        use io::ErrorKind as Os;
        let kind = match error.kind() {
            Os::NotFound => StoreErrorKind::NotFound,
            Os::PermissionDenied => StoreErrorKind::Permission,
            Os::ReadOnlyFilesystem => StoreErrorKind::ReadOnly,
            Os::StorageFull | Os::QuotaExceeded | Os::FileTooLarge => StoreErrorKind::NoSpace,
            Os::InvalidFilename => StoreErrorKind::InvalidKey,
            Os::Unsupported => StoreErrorKind::Unsupported,
            Os::TimedOut
            | Os::Interrupted
            | Os::WouldBlock
            | Os::ConnectionRefused
            | Os::ConnectionReset
            | Os::ConnectionAborted
            | Os::BrokenPipe
            | Os::NetworkDown
            | Os::NetworkUnreachable
            | Os::HostUnreachable
            | Os::StaleNetworkFileHandle => StoreErrorKind::Transient,
            _ => StoreErrorKind::Io,
        };
        Self::new(kind, message).with_source(error)
    }

    /// The error that stands for a [`BufferError`]: memory that the caller cannot lend now or that does not fit is
    /// [`StoreErrorKind::Parameter`].
    #[must_use]
    pub fn from_buffer(error: BufferError, message: impl Into<String>) -> Self {
        let kind = match error.kind {
            BufferErrorKind::Parameter | BufferErrorKind::NotHostVisible | BufferErrorKind::NotReady | BufferErrorKind::Borrowed => {
                StoreErrorKind::Parameter
            }
            BufferErrorKind::Unsupported => StoreErrorKind::Unsupported,
            _ => StoreErrorKind::Device,
        };
        Self::new(kind, message).with_source(error)
    }

    /// The error for a destination of `capacity` bytes that is too short for the `needed` bytes of
    /// a range.
    #[must_use]
    pub fn destination_too_short(needed: u64, capacity: usize) -> Self {
        Self::new(StoreErrorKind::Parameter, format!("the destination has {capacity} bytes, the range {needed}"))
    }

    /// The error of a store that takes no writes.
    #[must_use]
    pub fn read_only(message: impl Into<String>) -> Self {
        Self::new(StoreErrorKind::ReadOnly, message)
    }

    /// The error for something a store cannot do.
    #[must_use]
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::new(StoreErrorKind::Unsupported, message)
    }

    /// Names the key the error is about.
    #[must_use]
    pub fn with_key(mut self, key: &StoreKey) -> Self {
        self.0.key = Some(key.clone());
        self
    }

    /// Names the range the error is about.
    #[must_use]
    pub fn with_range(mut self, range: ByteRange) -> Self {
        self.0.range = Some(range);
        self
    }

    /// Says what the key holds after a failed write.
    #[must_use]
    pub fn with_stored(mut self, stored: StoredValue) -> Self {
        self.0.stored = Some(stored);
        self
    }

    /// Keeps the error that caused this one. The message does not repeat its words.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// What kind of error this is.
    #[must_use]
    pub fn kind(&self) -> StoreErrorKind {
        self.0.kind
    }

    /// The key it is about, if it is about one.
    #[must_use]
    pub fn key(&self) -> Option<&StoreKey> {
        self.0.key.as_ref()
    }

    /// The range it is about, if it is about one.
    #[must_use]
    pub fn range(&self) -> Option<ByteRange> {
        self.0.range
    }

    /// The reason, without key and range.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The error that caused this one, for who wants more of it than its words.
    #[must_use]
    pub fn get_ref(&self) -> Option<&(dyn Error + Send + Sync + 'static)> {
        self.0.source.as_deref()
    }

    /// What the key holds now, if a write failed and the store knows.
    #[must_use]
    pub fn stored(&self) -> Option<StoredValue> {
        self.0.stored
    }

    /// Whether the same call may succeed if it is made again, or, where it was of a version that is no more, what it was a part of.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        matches!(self.0.kind, StoreErrorKind::Transient | StoreErrorKind::Replaced)
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = &*self.0;
        write!(f, "{}", inner.kind)?;
        if let Some(key) = &inner.key {
            write!(f, ", key `{}`", key.as_str().escape_debug())?;
        }
        if let Some(range) = &inner.range {
            write!(f, ", {range}")?;
        }
        write!(f, ": {}", inner.message)?;
        if let Some(source) = &inner.source {
            write!(f, ": {source}")?;
        }
        if let Some(stored) = &inner.stored {
            write!(f, " ({stored})")?;
        }
        Ok(())
    }
}

impl fmt::Debug for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = &*self.0;
        f.debug_struct("StoreError")
            .field("kind", &inner.kind)
            .field("key", &inner.key)
            .field("range", &inner.range)
            .field("message", &inner.message)
            .field("stored", &inner.stored)
            .field("source", &inner.source)
            .finish()
    }
}

impl Error for StoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source.as_deref()?.source()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_says_it_all() {
        let key = StoreKey::new("a/c/0").unwrap();
        let error = StoreError::from_io(io::ErrorKind::StorageFull.into(), "cannot write").with_key(&key).with_stored(StoredValue::Old);
        assert_eq!(error.kind(), StoreErrorKind::NoSpace);
        assert_eq!(error.to_string(), "no space left, key `a/c/0`: cannot write: no storage space (what was stored before is unchanged)");
        assert!(error.source().is_none() && error.get_ref().is_some_and(|cause| cause.is::<io::Error>()));
        assert_eq!(size_of::<StoreError>(), size_of::<usize>());
    }

    #[test]
    fn errors_of_buffers_keep_their_source() {
        for (of_buffer, kind) in [
            (BufferErrorKind::NotReady, StoreErrorKind::Parameter),
            (BufferErrorKind::Unsupported, StoreErrorKind::Unsupported),
            (BufferErrorKind::OutOfMemory, StoreErrorKind::Device),
        ] {
            let error = StoreError::from_buffer(BufferError::new(of_buffer, "why"), "cannot copy to the device");
            assert_eq!(error.kind(), kind);
            assert!(
                error.get_ref().unwrap().is::<BufferError>() && error.to_string().ends_with("cannot copy to the device: why"),
                "{error}"
            );
        }
    }
}

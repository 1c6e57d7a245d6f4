//! Errors as exceptions: the class says who is to blame, the words are those of the crates.

use pyo3::prelude::*;
use zarr::{ArrayError, buffer_api::BufferError, codec_api::CodecError};
use zarr_buffer_api::BufferErrorKind;
use zarr_buffer_dlpack::DlpackError;
use zarr_codec_api::CodecErrorKind;
use zarr_store_api::{StoreError, StoreErrorKind};

/// What a function of this module fails with, before it is an exception.
#[derive(Debug)]
pub(crate) enum Failure {
    Array(ArrayError),
    Buffer(BufferError),
    Dlpack(DlpackError),
    Python(PyErr),
    /// A class of `zarrgpu._errors`, and what happened.
    Named(&'static str, String),
}

pub(crate) type Outcome<T> = Result<T, Failure>;

pub(crate) fn parameter(message: impl Into<String>) -> Failure {
    Failure::Named("ParameterError", message.into())
}

pub(crate) fn unsupported(message: impl Into<String>) -> Failure {
    Failure::Named("UnsupportedError", message.into())
}

pub(crate) fn exchange(message: impl Into<String>) -> Failure {
    Failure::Named("ExchangeError", message.into())
}

impl From<ArrayError> for Failure {
    fn from(error: ArrayError) -> Self {
        Self::Array(error)
    }
}

impl From<BufferError> for Failure {
    fn from(error: BufferError) -> Self {
        Self::Buffer(error)
    }
}

impl From<DlpackError> for Failure {
    fn from(error: DlpackError) -> Self {
        Self::Dlpack(error)
    }
}

impl From<PyErr> for Failure {
    fn from(error: PyErr) -> Self {
        Self::Python(error)
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> Self {
        let (class, message, place) = match failure {
            Failure::Python(error) => return error,
            Failure::Array(error) => (array_class(&error), error.to_string(), place(&error)),
            Failure::Buffer(error) => (buffer_class(&error), error.to_string(), None),
            Failure::Dlpack(error) => ("ExchangeError", error.to_string(), None),
            Failure::Named(class, message) => (class, message, None),
        };
        Python::attach(|py| make(py, class, message, place).unwrap_or_else(|error| error))
    }
}

/// Key and chunk coordinates.
type Place = Option<(String, Vec<u64>)>;

fn make(py: Python<'_>, class: &str, message: String, place: Place) -> PyResult<PyErr> {
    let exception = py.import("zarrgpu._errors")?.getattr(class)?.call1((message,))?;
    if let Some((key, chunk)) = place {
        exception.setattr("key", key)?;
        exception.setattr("chunk", chunk)?;
    }
    Ok(PyErr::from_value(exception))
}

fn place(error: &ArrayError) -> Place {
    match error {
        ArrayError::Chunk { key, chunk, .. } => Some((key.to_string(), chunk.clone())),
        _ => None,
    }
}

fn array_class(error: &ArrayError) -> &'static str {
    match error {
        ArrayError::Store(source) => store_class(source),
        ArrayError::Metadata { .. } => "MetadataError",
        ArrayError::Codecs { source, .. } | ArrayError::Chunk { source, .. } => codec_class(source),
        ArrayError::Selection(_) => "SelectionError",
        ArrayError::Parameter(_) | ArrayError::Exists { .. } => "ParameterError",
        ArrayError::NotFound { .. } => "NotFoundError",
        ArrayError::Buffer(source) => buffer_class(source),
        _ => "ZarrError",
    }
}

fn store_class(error: &StoreError) -> &'static str {
    match error.kind() {
        StoreErrorKind::NotFound => "NotFoundError",
        StoreErrorKind::Parameter => "ParameterError",
        StoreErrorKind::Unsupported => "UnsupportedError",
        _ => "StoreError",
    }
}

fn codec_class(error: &CodecError) -> &'static str {
    match error.kind() {
        CodecErrorKind::Metadata => "MetadataError",
        CodecErrorKind::Format => "FormatError",
        CodecErrorKind::Parameter => "ParameterError",
        CodecErrorKind::Limit => "LimitError",
        CodecErrorKind::Unsupported => "UnsupportedError",
        CodecErrorKind::Device => "DeviceError",
        _ => "ZarrError",
    }
}

fn buffer_class(error: &BufferError) -> &'static str {
    match error.kind {
        BufferErrorKind::Parameter => "ParameterError",
        BufferErrorKind::OutOfMemory => "OutOfMemoryError",
        BufferErrorKind::Unsupported => "UnsupportedError",
        _ => "DeviceError",
    }
}

use zarr_buffer_api::{BufferError, DeviceId};

/// Why a tensor cannot be handed out or taken in.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DlpackError {
    /// DLPack has no name for a Zarr data type.
    #[error("data type {data_type} cannot be exported: DLPack has no name for it")]
    DataType {
        /// The data type, as in metadata.
        data_type: String,
    },

    /// Zarr has no name for a type of DLPack, or the elements lie in memory as we never have them.
    #[error("elements of DLPack type code {code}, {bits} bits, {lanes} lanes cannot be imported: {reason}")]
    ElementType {
        /// `DLDataType::code`.
        code: u8,
        /// `DLDataType::bits`.
        bits: u8,
        /// `DLDataType::lanes`.
        lanes: u16,
        /// What is not understood.
        reason: &'static str,
    },

    /// The old structure cannot say something that must be said.
    #[error("{what} cannot be told to a consumer of DLPack before version 1: it must ask with max_version=(1, 0) or later")]
    NeedsVersioned {
        /// What must be said.
        what: &'static str,
    },

    /// A device of a kind that is not known here, or whose pointers are handles.
    #[error("device type {device_type}, number {device_id}: {reason}")]
    Device {
        /// `DLDevice::device_type`.
        device_type: i32,
        /// `DLDevice::device_id`.
        device_id: i32,
        /// What is not supported.
        reason: &'static str,
    },

    /// Shape, strides and buffer do not fit together.
    #[error("{0}")]
    Layout(String),

    /// A null pointer where the specification has none.
    #[error("{what} is null")]
    Null {
        /// Of what.
        what: &'static str,
    },

    /// A structure whose layout is not known. Its deleter was called.
    #[error("a tensor of DLPack {major}.{minor}; the layout is known for version 1 only")]
    Version {
        /// Of the structure.
        major: u32,
        /// Of the structure.
        minor: u32,
    },

    /// A tensor that must not be written was asked for to be written.
    #[error("the tensor is read-only")]
    ReadOnly,

    /// A stream that the protocol does not allow on a device.
    #[error("stream {stream} on {device}: {reason}")]
    Stream {
        /// What the consumer passed.
        stream: i64,
        /// The device of the data.
        device: DeviceId,
        /// The rule.
        reason: &'static str,
    },

    /// The consumer asked for what only a copy gives, and refused a copy.
    #[error("the data are on {device}; {wish} needs a copy, and copy=False forbids it")]
    CopyRefused {
        /// Where the data are.
        device: DeviceId,
        /// Where the consumer wants them.
        wish: DeviceId,
    },

    /// The consumer asked for a device that the data cannot be brought to.
    #[error("the data are on {device} and cannot be handed out on device type {device_type}, number {device_id}")]
    Transfer {
        /// Where the data are.
        device: DeviceId,
        /// Asked for.
        device_type: i32,
        /// Asked for.
        device_id: i32,
    },
}

impl From<BufferError> for DlpackError {
    fn from(error: BufferError) -> Self {
        Self::Layout(error.to_string())
    }
}

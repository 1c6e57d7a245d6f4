use serde::{Deserialize, Serialize};
use zarr_buffer_api::{BufferError, Layout};

use super::IpcTensor;

/// Where a tensor lies, in words that another process understands: JSON, or any other format of `serde`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct IpcDescriptor {
    /// Of this format: [`IpcDescriptor::VERSION`].
    pub version: u32,
    /// The device, as [`crate::CudaDeviceInfo::uuid`] has it. Its number may differ from process to process.
    pub device_uuid: String,
    /// The driver's handle (`CUipcMemHandle`, `cudaIpcMemHandle_t`) of the whole allocation: 64 bytes in hexadecimal digits.
    pub memory_handle: String,
    /// Bytes of the whole allocation.
    pub allocation_size: u64,
    /// Where the tensor's bytes start in the allocation.
    pub offset: u64,
    /// How many bytes of the allocation are the tensor's. Nothing else of it may be touched.
    pub bytes: u64,
    /// Name of the data type, as Zarr has it: `float32`, `int16`, `bool`, ... Not interpreted here.
    pub dtype: String,
    /// Bytes of one element.
    pub item_size: u64,
    /// Elements along each axis, slowest first as a rule.
    pub shape: Vec<u64>,
    /// Bytes from one element to the next along each axis.
    pub strides: Vec<i64>,
    /// Where the first element, at index 0 of all axes, starts in the tensor's bytes. 0 unless a stride is negative.
    pub first: u64,
    /// Whether the exporter forbids to write.
    pub read_only: bool,
    /// The driver's handle (`CUipcEventHandle`, `cudaIpcEventHandle_t`) of the event behind which the bytes are written, likewise in
    /// hexadecimal digits. `None` when they were written before the export.
    pub ready_event: Option<String>,
}

impl IpcDescriptor {
    /// The version of the format that is written and read here.
    pub const VERSION: u32 = 1;

    /// As JSON, on one line.
    pub fn to_json(&self) -> String {
        // Strings and numbers: there is nothing in it that JSON does not have.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// From JSON, checked: [`IpcDescriptor::tensor`].
    ///
    /// # Errors
    /// [`zarr_buffer_api::BufferErrorKind::Parameter`] when it is not JSON, lacks a field, is of another version, or contradicts itself.
    pub fn from_json(text: &str) -> Result<Self, BufferError> {
        let descriptor: Self = serde_json::from_str(text).map_err(|error| wrong("not a descriptor".to_owned()).with_source(error))?;
        descriptor.tensor()?;
        Ok(descriptor)
    }

    /// The tensor: data type and layout within [`IpcDescriptor::bytes`].
    ///
    /// # Errors
    /// [`zarr_buffer_api::BufferErrorKind::Parameter`] when the version is another, the bytes do not lie in the allocation or the elements not in
    /// the bytes, or a handle is not one.
    pub fn tensor(&self) -> Result<IpcTensor, BufferError> {
        if self.version != Self::VERSION {
            return Err(wrong(format!("version {}, expected {}", self.version, Self::VERSION)));
        }
        if self.offset.checked_add(self.bytes).is_none_or(|end| end > self.allocation_size) {
            let message = format!("{} bytes from byte {} of an allocation of {}", self.bytes, self.offset, self.allocation_size);
            return Err(wrong(message));
        }
        handle_bytes(&self.memory_handle)?;
        self.ready_event.as_deref().map(handle_bytes).transpose()?;
        let size = |value: u64| usize::try_from(value).map_err(|_| wrong(format!("{value} does not fit the address space")));
        let layout = Layout {
            offset: size(self.first)?,
            shape: self.shape.iter().map(|&len| size(len)).collect::<Result<_, _>>()?,
            strides: self.strides.iter().map(|&stride| stride as isize).collect(),
            item_size: size(self.item_size)?,
        };
        layout.check_within(size(self.bytes)?)?;
        Ok(IpcTensor { dtype: self.dtype.clone(), layout, read_only: self.read_only })
    }
}

fn wrong(message: impl Into<String>) -> BufferError {
    BufferError::parameter(format!("IPC descriptor: {}", message.into()))
}

/// A handle of the driver in hexadecimal digits.
pub(super) fn handle_text(handle: [u8; 64]) -> String {
    handle.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(super) fn handle_bytes(text: &str) -> Result<[u8; 64], BufferError> {
    let digits: Option<Vec<u8>> = text.chars().map(|digit| digit.to_digit(16).map(|digit| digit as u8)).collect();
    let digits = digits.filter(|digits| digits.len() == 128).ok_or_else(|| wrong("a handle that is not 128 hexadecimal digits"))?;
    let mut handle = [0; 64];
    for (byte, pair) in handle.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = pair.iter().fold(0, |byte, digit| byte << 4 | digit);
    }
    Ok(handle)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn descriptor() -> IpcDescriptor {
        IpcDescriptor {
            version: 1,
            device_uuid: "GPU-01112131-4151-6171-8191-a1b1c1d1e1f1".into(),
            memory_handle: handle_text(std::array::from_fn(|index| index as u8 * 3)),
            allocation_size: 2 << 20,
            offset: 512,
            bytes: 48,
            dtype: "float32".into(),
            item_size: 4,
            shape: vec![3, 4],
            strides: vec![16, 4],
            first: 0,
            read_only: true,
            ready_event: Some(handle_text([0xAB; 64])),
        }
    }

    #[test]
    fn json_comes_back_as_it_was() {
        let text = descriptor().to_json();
        assert!(text.starts_with(r#"{"version":1,"device_uuid":"GPU-0111"#), "{text}");
        assert!(text.contains(r#""shape":[3,4],"strides":[16,4],"first":0,"read_only":true"#), "{text}");
        assert_eq!(IpcDescriptor::from_json(&text).unwrap(), descriptor());
        let none = IpcDescriptor { ready_event: None, ..descriptor() };
        assert_eq!(IpcDescriptor::from_json(&none.to_json()).unwrap(), none);
        assert_eq!(handle_bytes(&descriptor().memory_handle).unwrap()[63], 189);
        let tensor = descriptor().tensor().unwrap();
        assert_eq!((tensor.dtype.as_str(), tensor.layout.len(), tensor.read_only), ("float32", 12, true));
    }

    #[test]
    fn contradictions_are_refused() {
        let good = descriptor;
        let wrong = [
            IpcDescriptor { version: 2, ..good() },
            IpcDescriptor { offset: (2 << 20) - 47, ..good() },
            IpcDescriptor { offset: u64::MAX, ..good() },
            IpcDescriptor { memory_handle: "00".into(), ..good() },
            IpcDescriptor { memory_handle: "zz".repeat(64), ..good() },
            IpcDescriptor { ready_event: Some("1".repeat(127)), ..good() },
            IpcDescriptor { shape: vec![3, 5], ..good() },
            IpcDescriptor { shape: vec![3], ..good() },
            IpcDescriptor { strides: vec![16, -4], ..good() },
            IpcDescriptor { item_size: u64::MAX, ..good() },
            IpcDescriptor { first: 1, ..good() },
        ];
        for descriptor in wrong {
            assert!(IpcDescriptor::from_json(&descriptor.to_json()).is_err(), "{descriptor:?}");
        }
        assert!(IpcDescriptor::from_json("{}").is_err());
        assert!(IpcDescriptor::from_json("[").is_err());
    }
}

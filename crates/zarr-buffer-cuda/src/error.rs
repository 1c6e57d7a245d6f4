use zarr_buffer_api::{BufferError, BufferErrorKind, DeviceId, DeviceKind};

/// What the CUDA driver said, or why it could not be asked. The [`BufferError::source`] of this crate's errors.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CudaError {
    /// There is no driver.
    #[error("the library of the NVIDIA driver ({library}) cannot be opened: there is no driver, or the loader does not find it")]
    NoDriver {
        /// The library's file name.
        library: &'static str,
    },
    /// The driver is older than this crate can use.
    #[error("the NVIDIA driver supports CUDA {}; CUDA {} is needed (Linux: driver 525.60.13)", version(*found), version(*least))]
    OldDriver {
        /// CUDA version of the driver: 1000 times the major, plus 10 times the minor version.
        found: i32,
        /// The least version, likewise.
        least: i32,
    },
    /// A function of the driver failed. Errors of kernels come back from later calls, and stay: the device's context is lost then.
    #[error("{call}: {name}: {message}")]
    Driver {
        /// The function that failed, or that brought an earlier failure to light.
        call: &'static str,
        /// The driver's number of the error.
        code: u32,
        /// The driver's name of the error.
        name: String,
        /// The driver's words.
        message: String,
    },
}

fn version(number: i32) -> String {
    format!("{}.{}", number / 1000, number % 1000 / 10)
}

impl CudaError {
    const OUT_OF_MEMORY: u32 = 2;
    const NO_DEVICE: u32 = 100;
    const NOT_SUPPORTED: u32 = 801;

    fn code(&self) -> Option<u32> {
        match self {
            Self::Driver { code, .. } => Some(*code),
            _ => None,
        }
    }

    pub(crate) fn is_no_device(&self) -> bool {
        self.code() == Some(Self::NO_DEVICE)
    }

    pub(crate) fn is_out_of_memory(&self) -> bool {
        self.code() == Some(Self::OUT_OF_MEMORY)
    }

    /// As an error of the contract, on the device of this ordinal.
    pub(crate) fn on(self, ordinal: i32) -> BufferError {
        BufferError::from(self).on(DeviceId::new(DeviceKind::Cuda, ordinal))
    }
}

impl From<CudaError> for BufferError {
    fn from(error: CudaError) -> Self {
        let (kind, message) = match (&error, error.code()) {
            (CudaError::NoDriver { .. } | CudaError::OldDriver { .. }, _) => (BufferErrorKind::Unsupported, "CUDA cannot be used"),
            (_, Some(CudaError::OUT_OF_MEMORY)) => (BufferErrorKind::OutOfMemory, "no room on the device"),
            (_, Some(CudaError::NOT_SUPPORTED)) => (BufferErrorKind::Unsupported, "the device cannot do this"),
            _ => (BufferErrorKind::Device, "the driver failed"),
        };
        Self::new(kind, message).with_source(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_say_what_is_missing() {
        let missing = BufferError::from(CudaError::NoDriver { library: "libcuda.so.1" });
        assert_eq!(missing.kind, BufferErrorKind::Unsupported);
        assert!(missing.to_string().contains("libcuda.so.1"), "{missing}");
        let old = CudaError::OldDriver { found: 11_080, least: 12_000 }.to_string();
        assert!(old.contains("CUDA 11.8") && old.contains("CUDA 12.0"), "{old}");
        let full =
            CudaError::Driver { call: "cuMemAlloc", code: 2, name: "CUDA_ERROR_OUT_OF_MEMORY".into(), message: "out of memory".into() };
        let full = full.on(1);
        assert_eq!(full.kind, BufferErrorKind::OutOfMemory);
        assert_eq!(full.to_string(), "cuda:1: no room on the device: cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY: out of memory");
    }
}

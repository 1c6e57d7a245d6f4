use zarr_buffer_api::{BufferError, DeviceId, DeviceKind};

use crate::CudaError;
use crate::driver::{self, Attribute};

/// What is known of a CUDA device.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CudaDeviceInfo {
    /// Its number, from 0, in the order of the driver (`CUDA_VISIBLE_DEVICES` has a say in it).
    pub ordinal: i32,
    /// Its name, as the driver has it.
    pub name: String,
    /// Its unique id, as `nvidia-smi -L` prints it: `GPU-` and five groups of hexadecimal digits.
    pub uuid: String,
    /// Compute capability: major, minor.
    pub compute_capability: (u32, u32),
    /// Number of streaming multiprocessors.
    pub multiprocessors: u32,
    /// Bytes of device memory, used or not.
    pub memory: u64,
    /// Bytes of the second-level cache.
    pub l2_cache: u64,
    /// The most bytes of shared memory that one block may have, when it asks for it.
    pub shared_memory_per_block: u32,
    /// Bytes of shared memory of a multiprocessor.
    pub shared_memory_per_multiprocessor: u32,
    /// The CUDA version of the driver: major, minor.
    pub driver_version: (u32, u32),
    /// Whether memory can be allocated in the order of streams, which this crate needs.
    pub memory_pools: bool,
}

impl CudaDeviceInfo {
    /// Which device this is, as the contracts name it.
    pub fn id(&self) -> DeviceId {
        DeviceId::new(DeviceKind::Cuda, self.ordinal)
    }

    pub(crate) fn of(ordinal: i32) -> Result<Self, CudaError> {
        let number = |attribute| driver::device_attribute(ordinal, attribute).map(|value| u32::try_from(value).unwrap_or(0));
        let uuid = driver::device_uuid(ordinal)?;
        Ok(Self {
            ordinal,
            name: driver::device_name(ordinal)?,
            uuid: uuid_text(uuid),
            compute_capability: (
                number(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
                number(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
            ),
            multiprocessors: number(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
            memory: driver::device_memory(ordinal)?,
            l2_cache: number(Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?.into(),
            shared_memory_per_block: number(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?,
            shared_memory_per_multiprocessor: number(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR)?,
            driver_version: version(driver::initialise()?),
            memory_pools: number(Attribute::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED)? != 0,
        })
    }
}

fn version(number: i32) -> (u32, u32) {
    let number = u32::try_from(number).unwrap_or(0);
    (number / 1000, number % 1000 / 10)
}

fn uuid_text(uuid: [u8; 16]) -> String {
    let mut text = String::from("GPU");
    for (index, byte) in uuid.iter().enumerate() {
        if matches!(index, 0 | 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.push_str(&format!("{byte:02x}"));
    }
    text
}

/// The CUDA devices of this machine; none is an empty list.
///
/// # Errors
/// [`zarr_buffer_api::BufferErrorKind::Unsupported`] when there is no driver, with the name of the library that is missing, or an older one than
/// this crate can use; [`zarr_buffer_api::BufferErrorKind::Device`] when the driver fails.
pub fn devices() -> Result<Vec<CudaDeviceInfo>, BufferError> {
    let count = match driver::device_count() {
        Err(error) if error.is_no_device() => 0,
        count => count?,
    };
    (0..count).map(|ordinal| CudaDeviceInfo::of(ordinal).map_err(|error| error.on(ordinal))).collect()
}

/// The CUDA version of the driver: major, minor.
///
/// # Errors
/// As [`devices`]; a driver without a device is an error here.
pub fn driver_version() -> Result<(u32, u32), BufferError> {
    Ok(version(driver::initialise()?))
}

#[cfg(test)]
mod tests {
    use zarr_buffer_api::BufferErrorKind;

    use super::*;

    #[test]
    fn a_uuid_reads_as_nvidia_smi_prints_it() {
        let uuid = std::array::from_fn(|index| index as u8 * 16 + 1);
        assert_eq!(uuid_text(uuid), "GPU-01112131-4151-6171-8191-a1b1c1d1e1f1");
    }

    #[test]
    fn no_driver_is_an_answer() {
        match devices() {
            Ok(found) => assert!(found.iter().all(|info| info.id().kind == DeviceKind::Cuda)),
            Err(error) if error.kind == BufferErrorKind::Unsupported => assert!(error.to_string().contains("driver"), "{error}"),
            Err(error) => assert_eq!(error.kind, BufferErrorKind::Device, "{error}"),
        }
        assert_eq!(devices().is_ok(), devices().is_ok());
    }
}

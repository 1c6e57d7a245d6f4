use zarr_buffer_api::{DeviceId, DeviceKind};

use crate::DlpackError;
use crate::abi::DLDevice;

/// All kinds that `zarr-buffer-api` names; their numbers are DLPack's.
const KINDS: [DeviceKind; 11] = [
    DeviceKind::Cpu,
    DeviceKind::Cuda,
    DeviceKind::CudaHost,
    DeviceKind::OpenCl,
    DeviceKind::Vulkan,
    DeviceKind::Metal,
    DeviceKind::Rocm,
    DeviceKind::RocmHost,
    DeviceKind::ExtDev,
    DeviceKind::CudaManaged,
    DeviceKind::OneApi,
];

/// DLPack's name of a device: kind and number.
pub fn device_to_raw(device: DeviceId) -> DLDevice {
    DLDevice { device_type: device.kind as i32, device_id: device.ordinal }
}

/// The device that DLPack names.
///
/// # Errors
/// [`DlpackError::Device`] for a kind that is not known, or a negative number.
pub fn device_from_raw(device: DLDevice) -> Result<DeviceId, DlpackError> {
    let fail = |reason| DlpackError::Device { device_type: device.device_type, device_id: device.device_id, reason };
    let kind = KINDS.into_iter().find(|&kind| kind as i32 == device.device_type).ok_or_else(|| fail("no such kind is known here"))?;
    if device.device_id < 0 {
        return Err(fail("the number is negative"));
    }
    Ok(DeviceId::new(kind, device.device_id))
}

/// Refuses devices where `DLTensor::data` is a handle: an address cannot be made of it, nor it of an address.
pub(crate) fn check_addresses(device: DeviceId) -> Result<(), DlpackError> {
    match device.kind {
        DeviceKind::OpenCl | DeviceKind::Vulkan | DeviceKind::Metal => Err(DlpackError::Device {
            device_type: device.kind as i32,
            device_id: device.ordinal,
            reason: "its tensors are handles, and buffers here have addresses",
        }),
        _ => Ok(()),
    }
}

/// Whether any host thread may dereference addresses of such a device. Managed memory is left out: the host may touch it only while no
/// kernel runs, on some devices.
pub(crate) fn is_host(kind: DeviceKind) -> bool {
    matches!(kind, DeviceKind::Cpu | DeviceKind::CudaHost | DeviceKind::RocmHost)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_known_kind_goes_both_ways() {
        for kind in KINDS {
            let device = DeviceId::new(kind, 3);
            assert_eq!(device_from_raw(device_to_raw(device)).unwrap(), device);
        }
        for unknown in [0, 5, 6, 9, 15, 16, 17, 18, -1, i32::MAX] {
            assert!(device_from_raw(DLDevice { device_type: unknown, device_id: 0 }).is_err());
        }
        assert!(device_from_raw(DLDevice { device_type: 2, device_id: -1 }).is_err());
    }
}

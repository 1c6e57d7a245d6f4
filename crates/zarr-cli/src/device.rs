//! Where arrays are decoded: the CPU, or a device and the codecs that run on it.

use std::time::{Duration, Instant};

use zarr::buffer_api::{Buffer, BufferError, DeviceId};
use zarr::{Array, ArrayError, DeviceTarget, Options, Selection, Tensor};

use crate::args::Device;
use crate::error::{Failure, Result};

/// Where a command decodes.
pub(crate) struct Place {
    /// The codecs, and which of them are preferred.
    pub(crate) options: Options,
    /// The device, unless that is the CPU.
    pub(crate) target: Option<DeviceTarget>,
}

/// Bytes that are downloaded at a time.
const DOWNLOAD: usize = 64 << 20;

impl Place {
    /// Finds the device that was asked for. `base` has the threads, and the codecs of the CPU.
    pub(crate) fn find(device: Device, base: Options, remark: impl FnOnce(&str)) -> Result<Self> {
        match device {
            Device::Cpu => Ok(Self { options: base, target: None }),
            Device::Cuda(number) => cuda::open(number, base),
            Device::Auto => match cuda::first() {
                None => Ok(Self { options: base, target: None }),
                Some(number) => cuda::open(number, base.clone()).or_else(|failure| {
                    remark(&format!("decoding on the CPU, for cuda:{number} cannot be used: {}", failure.line()));
                    Ok(Self { options: base, target: None })
                }),
            },
        }
    }

    /// What the place is called: `cpu`, `cuda:0`.
    pub(crate) fn id(&self) -> String {
        self.target.as_ref().map_or(DeviceId::CPU, |target| target.device.id()).to_string()
    }

    /// Where an array ends: on the CPU, if its elements have variable length.
    pub(crate) fn id_for(&self, array: &Array) -> String {
        self.target_for(array).map_or_else(|| DeviceId::CPU.to_string(), |_| self.id())
    }

    /// The device's own name.
    pub(crate) fn name(&self) -> Option<String> {
        self.target.as_ref().map(|target| target.device.name())
    }

    /// The device for an array; `None` where it is read to the CPU's memory, as elements of variable length are.
    pub(crate) fn target_for(&self, array: &Array) -> Option<&DeviceTarget> {
        self.target.as_ref().filter(|_| array.item_size().is_some())
    }
}

/// Reads to a device, until the last byte is there and every chunk is known to be good. Gives the tensor, and the time that took.
pub(crate) fn read_to(array: &Array, selection: &Selection, target: &DeviceTarget) -> Result<(Tensor, Duration), ArrayError> {
    let start = Instant::now();
    let tensor = array.read_to_device(selection, target)?;
    tensor.buffer.wait()?;
    Ok((tensor, start.elapsed()))
}

/// Gives `each` the bytes of a buffer on a device, some at a time: whole elements of `item` bytes.
pub(crate) fn download(buffer: &Buffer, item: usize, target: &DeviceTarget, mut each: impl FnMut(&[u8])) -> Result<(), BufferError> {
    let step = (DOWNLOAD / item.max(1)).max(1).saturating_mul(item.max(1)).min(buffer.len());
    if step == 0 {
        return Ok(());
    }
    let staging = target.device.allocate_staging(step)?;
    let mut start = 0;
    while start < buffer.len() {
        let len = step.min(buffer.len() - start);
        let piece = staging.slice(0..len)?;
        target.queue.copy(&buffer.slice(start..start + len)?, &piece)?;
        piece.wait()?;
        each(&piece.host_read()?);
        start += len;
    }
    Ok(())
}

/// A device that this machine has, for `zarr devices`.
pub(crate) struct Found {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) memory: u64,
    /// Compute capability, as in `9.0`.
    pub(crate) capability: String,
    pub(crate) multiprocessors: u32,
    /// The CUDA version of the driver.
    pub(crate) driver: String,
    pub(crate) uuid: String,
    /// The codecs that run there, or why it cannot be used.
    pub(crate) codecs: Result<Vec<String>>,
}

/// The devices besides the CPU; an error where there is no driver, or it fails.
pub(crate) fn all() -> Result<Vec<Found>> {
    cuda::all()
}

#[cfg(feature = "cuda")]
mod cuda {
    use zarr::codec_api::Placement;
    use zarr::cuda::{CudaDevice, CudaDeviceInfo};

    use super::*;

    /// The first device, if there is a driver and a device.
    pub(super) fn first() -> Option<i32> {
        zarr::cuda::devices().ok()?.first().map(|info| info.ordinal)
    }

    pub(super) fn open(number: i32, base: Options) -> Result<Place> {
        let wrong = |error: BufferError| Failure::from(error).context(format!("cannot use cuda:{number}"));
        let device = CudaDevice::new(number).map_err(wrong)?;
        let on_device = zarr::cuda::options(&device).map_err(wrong)?;
        let mut options = base;
        (options.registry, options.policy) = (on_device.registry, on_device.policy);
        Ok(Place { options, target: Some(zarr::cuda::target(&device)?) })
    }

    pub(super) fn all() -> Result<Vec<Found>> {
        Ok(zarr::cuda::devices()?.into_iter().map(found).collect())
    }

    fn found(info: CudaDeviceInfo) -> Found {
        let version = |(major, minor): (u32, u32)| format!("{major}.{minor}");
        Found {
            id: info.id().to_string(),
            capability: version(info.compute_capability),
            multiprocessors: info.multiprocessors,
            driver: version(info.driver_version),
            memory: info.memory,
            codecs: codecs(&info),
            name: info.name,
            uuid: info.uuid,
        }
    }

    fn codecs(info: &CudaDeviceInfo) -> Result<Vec<String>> {
        let registry = zarr::cuda::registry(&CudaDevice::new(info.ordinal)?)?;
        let there = registry.providers().filter(|provider| provider.placement() == Placement::Device(info.id()));
        let mut names: Vec<String> = there.flat_map(|provider| provider.codecs()).collect();
        names.sort();
        names.dedup();
        Ok(names)
    }
}

#[cfg(not(feature = "cuda"))]
mod cuda {
    use super::*;

    fn none() -> Failure {
        Failure::usage("this `zarr` was built without CUDA").hint("build it with the feature `cuda`, which is on by default")
    }

    pub(super) fn first() -> Option<i32> {
        None
    }

    pub(super) fn open(_: i32, _: Options) -> Result<Place> {
        Err(none())
    }

    pub(super) fn all() -> Result<Vec<Found>> {
        Err(none())
    }
}

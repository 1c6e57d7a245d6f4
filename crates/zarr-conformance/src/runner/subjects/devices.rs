//! Devices: the host, the toys, CUDA.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use zarr_buffer_api::HostDevice;
use zarr_buffer_cuda::{CudaDevice, CudaDeviceOptions};

use super::{Entry, Unbuilt};
use crate::device::DeviceUnderTest;
use crate::toy::{OpaqueDevice, Schedule, ToyOptions, UnifiedDevice};

/// When the toys do their work.
pub(super) fn schedules() -> [(&'static str, Schedule); 4] {
    [
        ("soon", Schedule::Soon),
        ("delayed-1", Schedule::Delayed { seed: 1 }),
        ("delayed-2", Schedule::Delayed { seed: 2 }),
        ("when-waited-for", Schedule::WhenWaitedFor),
    ]
}

/// Bytes that a toy may give.
const TOY_LIMIT: u64 = 64 << 20;

pub(super) fn options(schedule: Schedule) -> ToyOptions {
    ToyOptions { schedule, memory_limit: Some(TOY_LIMIT), ..ToyOptions::default() }
}

pub(super) fn on_host() -> Vec<Entry> {
    let mut entries = vec![Entry::new("device/host", || Ok(DeviceUnderTest::new(Arc::new(HostDevice))))];
    for (label, schedule) in schedules() {
        entries.push(Entry::new(format!("device/toy-opaque/{label}"), move || {
            Ok(DeviceUnderTest::new(OpaqueDevice::with_options(0, options(schedule))).with_memory_limit(TOY_LIMIT))
        }));
        entries.push(Entry::new(format!("device/toy-unified/{label}"), move || {
            Ok(DeviceUnderTest::new(UnifiedDevice::with_options(0, options(schedule))).with_memory_limit(TOY_LIMIT))
        }));
    }
    entries
}

pub(super) fn on_cuda(ordinal: i32) -> Vec<Entry> {
    let limited = move || {
        // Says what is missing, where there is no device.
        cuda(ordinal)?;
        let mut limit = CudaDeviceOptions::default();
        limit.memory_limit = Some(LIMIT);
        let device = CudaDevice::with_options(ordinal, limit)?;
        Ok(DeviceUnderTest::new(device).with_memory_limit(LIMIT))
    };
    vec![Entry::new("device/cuda", limited).in_lane("cuda")]
}

/// Bytes that a device with a memory limit may give.
const LIMIT: u64 = 256 << 20;

/// The CUDA device, opened once in a process.
pub(super) fn cuda(ordinal: i32) -> Result<Arc<CudaDevice>, Unbuilt> {
    static OPENED: Mutex<BTreeMap<i32, Result<Arc<CudaDevice>, String>>> = Mutex::new(BTreeMap::new());
    let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
    let device = opened.entry(ordinal).or_insert_with(|| CudaDevice::new(ordinal).map_err(|error| error.to_string()));
    device.clone().map_err(|error| Unbuilt::NoDevice(format!("no CUDA device {ordinal}: {error}")))
}

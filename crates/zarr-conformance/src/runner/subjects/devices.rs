//! Devices: the host, the toys, CUDA.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use zarr_buffer_api::{Device, HostDevice};
use zarr_buffer_cuda::CudaDevice;

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

pub(super) fn options(schedule: Schedule) -> ToyOptions {
    ToyOptions { schedule, memory_limit: Some(64 << 20), ..ToyOptions::default() }
}

pub(super) fn on_host() -> Vec<Entry> {
    let mut entries = vec![Entry::new("device/host", || Ok(DeviceUnderTest::new(Arc::new(HostDevice))))];
    for (label, schedule) in schedules() {
        entries.push(Entry::new(format!("device/toy-opaque/{label}"), move || {
            Ok(DeviceUnderTest::new(OpaqueDevice::with_options(0, options(schedule))))
        }));
        entries.push(Entry::new(format!("device/toy-unified/{label}"), move || {
            Ok(DeviceUnderTest::new(UnifiedDevice::with_options(0, options(schedule))))
        }));
    }
    entries
}

pub(super) fn on_cuda(ordinal: i32) -> Vec<Entry> {
    vec![Entry::new("device/cuda", move || Ok(DeviceUnderTest::new(cuda(ordinal)? as Arc<dyn Device>))).in_lane("cuda")]
}

/// The CUDA device, opened once in a process.
pub(super) fn cuda(ordinal: i32) -> Result<Arc<CudaDevice>, Unbuilt> {
    static OPENED: Mutex<BTreeMap<i32, Result<Arc<CudaDevice>, String>>> = Mutex::new(BTreeMap::new());
    let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
    let device = opened.entry(ordinal).or_insert_with(|| CudaDevice::new(ordinal).map_err(|error| error.to_string()));
    device.clone().map_err(|error| Unbuilt::Absent(format!("no CUDA device {ordinal}: {error}")))
}

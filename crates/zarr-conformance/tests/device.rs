//! The laws of devices, on the host and on both toy devices; and that wrong devices are found.

use std::sync::Arc;

use zarr_buffer_api::HostDevice;
use zarr_conformance::device::{DeviceUnderTest, assert_conforms, cases};
use zarr_conformance::toy::{OpaqueDevice, Schedule, ToyOptions, UnifiedDevice};

fn schedules() -> impl Iterator<Item = ToyOptions> {
    let schedules = [Schedule::Soon, Schedule::Delayed { seed: 1 }, Schedule::Delayed { seed: 2 }, Schedule::WhenWaitedFor];
    schedules.into_iter().map(|schedule| ToyOptions { schedule, memory_limit: Some(16 << 20), ..ToyOptions::default() })
}

#[test]
fn the_host_conforms() {
    assert_conforms(Arc::new(HostDevice));
}

#[test]
fn the_opaque_toy_conforms() {
    for options in schedules() {
        let device = OpaqueDevice::with_options(0, options);
        zarr_conformance::assert_conforms(DeviceUnderTest::new(device.clone()).with_memory_limit(16 << 20));
        device.assert_clean();
    }
}

#[test]
fn the_unified_toy_conforms() {
    for options in schedules() {
        let device = UnifiedDevice::with_options(0, options);
        zarr_conformance::assert_conforms(DeviceUnderTest::new(device.clone()).with_memory_limit(16 << 20));
        device.assert_clean();
    }
}

#[test]
fn ids_are_unique() {
    let mut ids: Vec<String> = cases().iter().map(|case| case.id().to_owned()).collect();
    ids.sort();
    let count = ids.len();
    ids.dedup();
    assert_eq!(ids.len(), count);
}
